package experiments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// table4 is what scheduling itself costs. Its figures are wall times: they are of
// the machine that measured them and do not repeat.
type table4 struct {
	hardware       string
	configurations []Configuration
	variants       []string
	suffix         string // of the cells' names, if some variants are left out
}

func fullTable4() table4 {
	return table4{hardware: "stcp920", configurations: Configurations(), variants: []string{"tvm", "astitch", "cross-layer", "exact-all"}}
}

// schedulingTime is the result of a cell.
type schedulingTime struct {
	Variant string  `json:"variant"`
	Seconds float64 `json:"wall_time_s"` // the median of several runs
}

// schedulingRuns is how often each schedule is made. That of exact methods, which may
// take long, is made once.
const schedulingRuns = 3

func (e table4) experiment() Experiment {
	return Experiment{Name: "table4", Description: "time to schedule, by network and method (measured, so different each time it is computed)",
		Paper: "GraphTurbo (OSDI 2023), Table 4: compile times on a par with the baselines", plan: e.plan, heuristic: e.heuristics().plan}
}

// heuristics is the same without the methods that look for optima.
func (e table4) heuristics() table4 {
	var kept []string
	for _, name := range e.variants {
		if !isExactVariant(name) {
			kept = append(kept, name)
		}
	}
	if len(kept) < len(e.variants) {
		e.suffix = "-heuristics"
	}
	e.variants = kept
	return e
}

func isExactVariant(name string) bool {
	return slices.ContainsFunc(scheduler.Exact(), func(v scheduler.Recipe) bool { return v.Name == name })
}

func (e table4) plan() (*plan, error) {
	return configured[[]schedulingTime]{
		Experiment: e.experiment(), hardware: e.hardware, configurations: e.configurations, suffix: e.suffix,
		inputs: func(c Configuration, hardwareHash string) any {
			return struct {
				Model        string   `json:"model"`
				HardwareHash string   `json:"hardware_sha256"`
				Variants     []string `json:"variants"`
			}{c.Network, hardwareHash, e.variants}
		},
		run: e.measure, report: e.report, files: e.files,
	}.plan()
}

func (e table4) measure(ctx context.Context, src network.Network, spec *hardware.Spec, c Configuration) ([]schedulingTime, error) {
	var list []schedulingTime
	for _, name := range e.variants {
		v, err := scheduler.Lookup(name)
		if err != nil {
			return nil, err
		}
		chunk := c.TVMBatchesPerCluster
		if v.Groups == scheduler.Algorithm2 {
			chunk = c.GraphTurboBatchesPerCluster
		}
		g, err := src.Graph(chunk)
		if err != nil {
			return nil, err
		}
		runs := schedulingRuns
		if isExactVariant(name) {
			runs = 1
		}
		var times []float64
		for range runs {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			began := time.Now()
			if _, err := scheduler.Schedule(g, spec, v, scheduler.Options{}); err != nil {
				return nil, err
			}
			times = append(times, time.Since(began).Seconds())
		}
		slices.Sort(times)
		list = append(list, schedulingTime{name, times[len(times)/2]})
	}
	return list, nil
}

func (e table4) files(all [][]schedulingTime) ([]file, error) {
	out := [][]string{{"model", "variant", "wall_time_s"}}
	for i, c := range e.configurations {
		for _, t := range all[i] {
			out = append(out, []string{c.Network, t.Variant, fixed(t.Seconds, 4)})
		}
	}
	return []file{{"table4.csv", csvBytes(out)}}, nil
}

func (e table4) report(all [][]schedulingTime, b *gridReport) error {
	t := table{title: "Time to schedule (ms), from the simplified graph to memory plan and checks, without lowering and simulation", label: "tab:table4",
		columns: []column{{name: "Network", text: true}}}
	for _, v := range e.variants {
		t.columns = append(t.columns, column{name: v})
	}
	for i, c := range e.configurations {
		row := []string{c.Network}
		for _, x := range all[i] {
			row = append(row, fixed(1e3*x.Seconds, 1))
		}
		t.rows = append(t.rows, row)
	}
	t.notes = []string{fmt.Sprintf("Medians of %d runs on the machine at hand (exact methods: one), one chunk of the paper's batches per cluster.", schedulingRuns)}
	if err := b.table(t); err != nil {
		return err
	}
	b.note("The paper says only that compile times are on a par with the baselines'; theirs generate code as well.")
	return nil
}
