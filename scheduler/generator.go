package scheduler

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/model/schedule"
)

// setting is a strategy that only sets fields of the draft.
func setting(name, description string, set func(*Draft)) Strategy {
	return Strategy{Name: name, Description: description, Decide: func(_ context.Context, d *Draft) error {
		set(d)
		return nil
	}}
}

var (
	outputsDDR     = setting("ddr", "off the chip", func(d *Draft) { d.Outputs = schedule.DDR })
	outputsLLB     = setting("llb", "the buffer of a cluster", func(d *Draft) { d.Outputs = schedule.LLB })
	outputsL1      = setting("l1", "the buffer of a core", func(d *Draft) { d.Outputs = schedule.L1 })
	outputsLLBKept = setting("llb-kept", "llb, network outputs that layers read as well as in the DDR",
		func(d *Draft) { d.Outputs, d.KeepOutputs = schedule.LLB, true })
	outputsL1Kept = setting("l1-kept", "l1, network outputs that layers read as well as in the DDR",
		func(d *Draft) { d.Outputs, d.KeepOutputs = schedule.L1, true })
	outputsInside = setting("l1-inside", "the buffer of a core inside a kernel, off the chip between kernels",
		func(d *Draft) {
			d.Outputs, d.Between = schedule.L1, schedule.DDR
		})

	inOrder = setting("in-order", "a layer's commands wait for the layer before",
		func(d *Draft) { d.Lower.CrossLayer, d.Lower.CrossUnits, d.Lower.Exposed = false, false, false })
	exposed = setting("exposed", "in-order, and weights come to the L1 only when nothing computes",
		func(d *Draft) { d.Lower.CrossLayer, d.Lower.CrossUnits, d.Lower.Exposed = false, false, true })
	crossLayer = setting("cross-layer", "loads and units overlap across the layers of a kernel",
		func(d *Draft) { d.Lower.CrossLayer, d.Lower.CrossUnits, d.Lower.Exposed = true, false, false })
	crossUnit = setting("cross-unit", "cross-layer, and units begin on the parts of a result that are complete",
		func(d *Draft) { d.Lower.CrossLayer, d.Lower.CrossUnits, d.Lower.Exposed = true, true, false })

	loadsWait = setting("wait", "loads from the DDR wait for the launch of their kernel",
		func(d *Draft) { d.Lower.Prefetch, d.Lower.BeforeFirst = false, false })
	loadsAhead = setting("ahead", "those of weights and inputs run ahead of it, behind a cluster's first launch",
		func(d *Draft) { d.Lower.Prefetch, d.Lower.BeforeFirst = true, false })
	loadsAtStart = setting("at-start", "ahead, even of the first launch, and as many at a time as the links allow",
		func(d *Draft) { d.Lower.Prefetch, d.Lower.BeforeFirst = true, true })

	reloadWeights = setting("reload", "each kernel loads its own", func(d *Draft) { d.Lower.KeepWeights = false })
	keepWeights   = setting("keep", "they stay while there is room", func(d *Draft) { d.Lower.KeepWeights = true })
	keepInputs    = setting("keep-inputs", "keep, and so do network inputs that layers read again",
		func(d *Draft) { d.Lower.KeepWeights, d.Lower.KeepInputs = true, true })
)

// residence is where results stay.
type residence struct {
	outputs, between schedule.Level
	kept             bool // see schedule.Schedule.KeepOutputs
}

func takeOutputs(d *Draft, all bool) Decision {
	if !all {
		return nil
	}
	return residence{d.Outputs, d.Between, d.KeepOutputs}
}

// Stage names the row.
func (x residence) Stage() string { return "outputs" }

// Apply sets the levels.
func (x residence) Apply(_ context.Context, d *Draft) error {
	d.Outputs, d.Between, d.KeepOutputs = x.outputs, x.between, x.kept
	return nil
}

// Key has the levels.
func (x residence) Key(b *Key, _ *Decisions) {
	b.Add(int64(x.outputs), int64(x.between))
	addMap(b, map[int]bool{0: x.kept}, is)
}

// After leaves it to the recipe where the results of other groups stay.
func (x residence) After(changed string, _, _ *Decisions) Decision {
	if changed == "group" {
		return nil
	}
	return x
}

// generating is the settings of the kernel generator. Row issue holds it, prefetch and weights included.
type generating schedule.Generator

func takeGenerator(d *Draft, _ bool) Decision { return generating(d.Lower.Generator) }

// Stage names the row.
func (x generating) Stage() string { return "issue" }

// Apply sets what the generator may do.
func (x generating) Apply(_ context.Context, d *Draft) error {
	d.Lower.Generator = schedule.Generator(x)
	return nil
}

// Key has all settings.
func (x generating) Key(b *Key, _ *Decisions) { b.Text(fmt.Sprint(x)) }

// values lists a setting's values as changes of decisions.
func values[T Decision, V any](set func(*T, V), list ...V) (all []func(*Decisions) *Decisions) {
	for _, v := range list {
		all = append(all, alter(func(x *T) { set(x, v) }))
	}
	return all
}

var generatorSettings = [][]func(*Decisions) *Decisions{
	values(func(x *generating, n int64) { x.WeightTiles = n }, 0, 2, 3, 4, 6),
	values(func(x *generating, n int64) { x.LoadTiles = n }, 0, 2, 4, 8),
	values(func(x *generating, set bool) { x.WeightsFirst = set }, false, true),
	values(func(x *generating, set bool) { x.StorePieces = set }, false, true),
	values(func(x *generating, set bool) { x.KeepWeights = set }, false, true),
	values(func(x *generating, set bool) { x.KeepInputs = set }, false, true),
	values(func(x *generating, n int) { x.KeepQuarters = n }, 1, 2, 3, 4),
	values(func(x *generating, n int64) { x.Pieces = n }, 4, 6, 8, 12, 16, 24, 32),
	values(func(x *generating, set bool) { x.BeforeFirst = set }, false, true),
	values(func(x *generating, set bool) { x.CrossLayer = set }, false, true),
	values(func(x *generating, set bool) { x.Prefetch = set }, false, true),
}

func checkOutputs(d *Draft) error {
	if level := max(d.Outputs, d.Between); level > schedule.DDR {
		return fmt.Errorf("level %d, expected L1, LLB or DDR", level)
	}
	return nil
}
