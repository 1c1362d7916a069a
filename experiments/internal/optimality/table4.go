package optimality

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"gonum.org/v1/gonum/stat"
)

// table4 measures the processor time of scheduling itself, which is of the machine and does not repeat.
type table4 struct {
	hardware       string
	configurations []literature.Configuration
	variants       []string
	suffix         string // of the cells' names, if some variants are left out
}

func fullTable4() table4 {
	return table4{hardware: "stcp920", configurations: literature.Configurations(),
		variants: []string{"tvm", "astitch", "cross-layer", "exact-all"}}
}

// schedulingTime is the result of a cell.
type schedulingTime struct {
	Variant string  `json:"variant"`
	Seconds float64 `json:"processor_time_s"` // the mean of several runs
}

// schedulingRuns is the number of times that each schedule is made. That of exact methods, which may
// take long, is made once.
const schedulingRuns = 5

func (e table4) experiment() harness.Experiment {
	return harness.Experiment{Name: "table4",
		Description: "time to compile, by network and method (measured, so different each time it is computed)",
		Paper:       "GraphTurbo (OSDI 2023), Table 4: compile times on a par with the baselines", Plan: e.plan,
		Quick: e.heuristics().plan, Heuristic: e.heuristics().plan}
}

// heuristics is the same without the exact methods.
func (e table4) heuristics() table4 {
	var kept []string
	for _, name := range e.variants {
		if !harness.IsExactVariant(name) {
			kept = append(kept, name)
		}
	}
	if len(kept) < len(e.variants) {
		e.suffix = "-heuristics"
	}
	e.variants = kept
	return e
}

func (e table4) plan() (*harness.Plan, error) {
	return configured[[]schedulingTime]{
		Experiment: e.experiment(), Hardware: e.hardware, Configurations: e.configurations, suffix: e.suffix,
		Inputs: map[string]any{"variants": e.variants},
		Run:    e.measure, Report: e.report, Files: e.files,
	}.Plan()
}

func (e table4) measure(ctx context.Context, _ network.Network, spec *hardware.Spec, c literature.Configuration) (
	list []schedulingTime) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, name := range e.variants {
		v, at := literature.ByText(name)
		src, chunk := harness.OpenNetwork(literature.At(c.Network, at)), c.PaperChunk(v)
		runs := schedulingRuns
		if harness.IsExactVariant(name) {
			runs = 1
		}
		began := harness.ThreadTime()
		for range runs {
			bail.Check(ctx.Err())
			r := bail.Of(v.Prepare(ctx, src, spec, chunk*int64(spec.Clusters), literature.Options(chunk)))
			bail.Of(lower.Program(r.ProgramName(), r.Spec, r.Plans, r.Lower))
		}
		list = append(list, schedulingTime{name, (harness.ThreadTime() - began).Seconds() / float64(runs)})
	}
	return list
}

func (e table4) files(all [][]schedulingTime) []harness.File {
	type timed struct {
		model string
		schedulingTime
	}
	var list []timed
	for i, c := range e.configurations {
		for _, t := range all[i] {
			list = append(list, timed{c.Network, t})
		}
	}
	return []harness.File{{Name: "table4.csv", Data: harness.CSV(list, []harness.Field[timed]{
		{Name: "model", Of: func(t timed) any { return t.model }},
		{Name: "variant", Of: func(t timed) any { return t.Variant }},
		{Name: "processor_time_s", Of: func(t timed) any { return harness.Fixed(t.Seconds, 4) }},
	})}}
}

func (e table4) report(all [][]schedulingTime, b *harness.Document) {
	t := harness.Table{Name: "time",
		Title:   "Processor time to compile (ms), from the network to the commands of a chunk, without simulation",
		Columns: harness.Columns("<Network")}
	for _, v := range e.variants {
		t.AddColumns(v)
	}
	for i, c := range e.configurations {
		row := []string{c.Network}
		for _, x := range all[i] {
			row = append(row, harness.Fixed(1e3*x.Seconds, 1))
		}
		t.Add(row)
	}
	t.Notes = []string{
		fmt.Sprintf(
			"Means of %d runs on the machine at hand (exact methods: one), one chunk of the paper's batches per cluster.",
			schedulingRuns)}
	b.Table(t)
	i, j := slices.Index(e.variants, "tvm"), slices.Index(e.variants, "cross-layer")
	if i >= 0 && j >= 0 {
		ratios := harness.Each(all, func(times []schedulingTime) float64 { return times[j].Seconds / times[i].Seconds })
		b.Number("Compile time of GraphTurbo over TVM's, geometric mean: on a par", "x", 1, stat.GeometricMean(ratios, nil))
		b.Why("%.1f to %.1f; what GraphTurbo adds is the graph's part, what it saves is the number of kernels",
			slices.Min(ratios), slices.Max(ratios))
		b.Cause("commands are written out here for each instance and tile, of which 16 images of ResNet-50 have 2.6 times TVM's; the paper's isomorphic instances share a kernel with loops")
	}
	b.Note("The paper says only that compile times are on a par with the baselines'.")
}

// Table4 is the time to schedule.
func Table4() harness.Experiment { return fullTable4().experiment() }
