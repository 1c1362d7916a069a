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
	outputsDDR    = setting("ddr", "off the chip", func(d *Draft) { d.Outputs = schedule.DDR })
	outputsLLB    = setting("llb", "the buffer of a cluster", func(d *Draft) { d.Outputs = schedule.GB })
	outputsL1     = setting("l1", "the buffer of a core", func(d *Draft) { d.Outputs = schedule.LB })
	outputsInside = setting("l1-inside", "the buffer of a core inside a kernel, off the chip between kernels", func(d *Draft) {
		d.Outputs, d.Between = schedule.LB, schedule.DDR
	})

	inOrder    = setting("in-order", "a layer's commands wait for the layer before", func(d *Draft) { d.Lower.CrossLayer, d.Lower.Exposed = false, false })
	exposed    = setting("exposed", "in-order, and weights come to the L1 only when nothing computes", func(d *Draft) { d.Lower.CrossLayer, d.Lower.Exposed = false, true })
	crossLayer = setting("cross-layer", "loads and units overlap across the layers of a kernel", func(d *Draft) { d.Lower.CrossLayer, d.Lower.Exposed = true, false })

	loadsWait    = setting("wait", "loads from the DDR wait for the launch of their kernel", func(d *Draft) { d.Lower.Prefetch, d.Lower.BeforeFirst = false, false })
	loadsAhead   = setting("ahead", "those of weights and inputs run ahead of it, behind a cluster's first launch", func(d *Draft) { d.Lower.Prefetch, d.Lower.BeforeFirst = true, false })
	loadsAtStart = setting("at-start", "ahead, even of the first launch", func(d *Draft) { d.Lower.Prefetch, d.Lower.BeforeFirst = true, true })

	reloadWeights = setting("reload", "each kernel loads its own", func(d *Draft) { d.Lower.KeepWeights = false })
	keepWeights   = setting("keep", "they stay while there is room", func(d *Draft) { d.Lower.KeepWeights = true })
)

func checkOutputs(d *Draft) error {
	if level := max(d.Outputs, d.Between); level > schedule.DDR {
		return fmt.Errorf("level %d, expected LB, GB or DDR", level)
	}
	return nil
}
