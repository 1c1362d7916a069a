package paperfigs

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// spilling compares what leaves a full L1 (§4.3, Fig. 12) by several methods.
type spilling struct {
	hardware string
	// cases are networks with the batch elements per cluster; the figure is of the first.
	cases []spillCase
	// methods in order; the first is the paper's, the second prior work's.
	methods []spillMethod
}

type spillCase struct {
	model      string
	perCluster int64
}

type spillMethod struct {
	name  string
	spill string // strategy
	bound bool   // also find what no plan is below
}

func fig12() spilling {
	return spilling{"stcp920",
		[]spillCase{{"squeezenet", 8}, {"toy-fig3", 8}, {"resnet50", 16}, {"densenet121", 8}, {"mobilenetv2", 16},
			{"inception-v1", 8}, {"inception-v3", 8}, {"nasnet-mobile", 8}, {"swin-t", 4}, {"vit-b16", 4}},
		[]spillMethod{
			{name: "longest lifetime first", spill: "longest-lifetime"},
			{name: "largest first", spill: "largest-first"},
			{name: "least time", spill: "search", bound: true},
		},
	}
}

func (f spilling) experiment() harness.Experiment {
	return harness.Experiment{
		Name:        "fig12",
		Description: "lifetimes of tensors, and what leaves a full L1: longest lifetime first, largest first, or what moves least",
		Paper:       "GraphTurbo (OSDI 2023), §4.3 and Fig. 12",
		Plan:        f.plan,
	}
}

// spillRun is the memory plan of one network by one method.
type spillRun struct {
	Model      string `json:"model"`
	PerCluster int64  `json:"batches_per_cluster"`
	Method     string `json:"method"`
	ToLLB      int    `json:"spilled_to_gb"` // values
	ToDDR      int    `json:"spilled_to_ddr"`
	// SpilledBytes are the values' sizes, MovedBytes what writing them once and reading
	// them at the lower level moves; both of one chunk on one cluster.
	SpilledBytes int64 `json:"spilled_bytes"`
	MovedBytes   int64 `json:"moved_bytes"`
	// AgainBytes counts parameters that pass to the cores once more for each tile after the first.
	AgainBytes int64 `json:"parameters_again_bytes"`
	// BoundBytes is a lower bound on the sum of the two over all memory plans; only of the method that asks for it.
	BoundBytes *int64 `json:"bound_bytes,omitempty"`
	// Lifetime is the mean of the spilled values', in steps.
	Lifetime   float64 `json:"mean_lifetime_steps"`
	Throughput float64 `json:"throughput_per_s"`
	Steps      int     `json:"steps"`
	// FullAt is the first step at which a value had to go, or -1.
	FullAt int          `json:"first_full_step"`
	Values []spillValue `json:"values,omitempty"` // of the first case
}

type spillValue struct {
	ID      int    `json:"id"`
	Name    string `json:"name"`
	First   int    `json:"first_step"`
	End     int    `json:"end_step"` // half-open
	Bytes   int64  `json:"bytes"`
	Level   string `json:"level"`
	Spilled bool   `json:"spilled"`
}

// explainSpills lists values only if they are asked for.
func explainSpills(ctx context.Context, r *scheduler.Result, method spillMethod, values bool) (any, error) {
	s := r.Schedule
	run := spillRun{Model: r.Source, PerCluster: r.Chunk, Method: method.name,
		Throughput: harness.Round(r.ThroughputPerSecond()), Steps: len(s.Steps), FullAt: -1}
	run.MovedBytes, run.AgainBytes = exact.MovedBytes(s)
	if method.bound {
		fresh := *s
		if err := fresh.BuildSteps(ctx, r.Outputs); err != nil {
			return nil, err
		}
		_, best, err := exact.NewSpillProblem(&fresh).Choose(ctx, &fresh, allocate.SweepOptions{})
		if err != nil {
			return nil, err
		}
		run.BoundBytes = &best.Bound
	}
	for _, sp := range s.Spills {
		if run.FullAt < 0 || sp.Step < run.FullAt {
			run.FullAt = sp.Step
		}
	}
	lifetimes, spilled := 0, 0
	for i := range s.Values {
		v := &s.Values[i]
		if v.Def < 0 {
			continue
		}
		gone := v.Wanted == schedule.L1 && v.Level != schedule.L1
		if gone {
			spilled++
			lifetimes += v.Last - v.Def
			run.SpilledBytes += v.Bytes
			if v.Level == schedule.LLB {
				run.ToLLB++
			} else {
				run.ToDDR++
			}
		}
		if values {
			inst := &s.Instances.Instances[v.Instance]
			run.Values = append(run.Values,
				spillValue{v.ID, instanceName(inst.Group, inst.Index) + " " + s.Graph.Tensor(v.Tensor).Name,
					v.Def, min(v.Last+1, len(s.Steps)), v.Bytes, v.Level.String(), gone})
		}
	}
	if spilled > 0 {
		run.Lifetime = harness.Round(float64(lifetimes) / float64(spilled))
	}
	return run, nil
}

func (f spilling) plan() (*harness.Plan, error) {
	p := &harness.Plan{Report: harness.Of(f.report)}
	for i, x := range f.cases {
		for k, m := range f.methods {
			p.Cells = append(p.Cells, literature.Scheduled(f.hardware, x.model, x.perCluster, "cross-layer",
				scheduler.Pick{Stage: "spill", Strategy: m.spill}).Cell(fmt.Sprintf("%s-%d", x.model, k),
				func(ctx context.Context, r *scheduler.Result) (any, error) { return explainSpills(ctx, r, m, i == 0) }))
		}
	}
	return p, nil
}

func (f spilling) report(runs []spillRun) (*harness.Report, error) {
	d := harness.NewDocument(f.experiment())
	t := harness.Table{Name: "spills", Title: "What leaves the L1, of one chunk on one cluster", Columns: harness.Columns("<Network",
		"Batch per\ncluster", "<Method", "Values to|LLB|DDR", "Mean lifetime\n(steps)", "Spilled\n(MiB)",
		"Moved for it\n(MiB)", "Weights\nagain (MiB)", "Bound of\nboth (MiB)", "Throughput\n(per s)"),
		Notes: []string{
			"Moved: each spilled value is written once and streamed by each reader, as often as the cores need it. Weights again: weights that pass once per tile, without the first tile.",
			"Least time: the plan with the least time of moves, by dynamic programming over the steps; results may overwrite their inputs. Bound: a lower bound on the bytes of all plans in which each value has a place of its own."}}
	fewer, same, more := 0, 0, 0
	faster := 0
	smaller, larger := 0, 0
	proven, least := 0, 0
	for i, r := range runs {
		bound := "–"
		if r.BoundBytes != nil {
			bound = mebibytes(*r.BoundBytes)
			if r.MovedBytes+r.AgainBytes <= *r.BoundBytes {
				proven++
			}
			if paper := runs[i-i%len(f.methods)]; paper.MovedBytes+paper.AgainBytes <= *r.BoundBytes {
				least++
			}
		}
		t.Add(r.Model, r.PerCluster, r.Method, r.ToLLB, r.ToDDR, harness.Fixed(r.Lifetime, 1), mebibytes(r.SpilledBytes),
			mebibytes(r.MovedBytes), mebibytes(r.AgainBytes), bound, r.Throughput)
		if k := i % len(f.methods); k == 1 { // prior work's rule against the paper's
			paper := runs[i-k]
			switch {
			case paper.MovedBytes < r.MovedBytes:
				fewer++
			case paper.MovedBytes > r.MovedBytes:
				more++
			default:
				same++
			}
			switch {
			case paper.SpilledBytes < r.SpilledBytes:
				smaller++
			case paper.SpilledBytes > r.SpilledBytes:
				larger++
			}
			if paper.Throughput >= r.Throughput {
				faster++
			}
		}
	}
	d.Table(t)
	paper := runs[0]
	life := harness.Table{Name: "alive", Title: fmt.Sprintf("Values alive at step %d of %s, where the L1 is first full",
		f.fullAt(runs), paper.Model), Columns: harness.Columns("<Value", "<Steps", "Size (MiB)")}
	for _, m := range f.methods {
		life.AddColumns("<" + m.name)
	}
	for i, v := range paper.Values {
		if v.First > f.fullAt(runs) || v.End <= f.fullAt(runs) {
			continue
		}
		row := []string{v.Name, fmt.Sprintf("%d to %d", v.First, v.End-1), mebibytes(v.Bytes)}
		for k := range f.methods {
			row = append(row, runs[k].Values[i].Level)
		}
		life.Add(row)
	}
	d.Table(life)
	cases := len(f.cases)
	d.Claim("Longest lifetime first moves fewer bytes than largest first", "very likely (no figures)",
		fmt.Sprintf("fewer in %d of %d networks, as many in %d, more in %d", fewer, cases, same, more),
		harness.Agreement(fewer > more))
	if more > 0 {
		d.Why("where it moves more, a long-lived value is read soon and a larger one that ends earlier would have gone at once")
	}
	d.Claim("It spills smaller values", "with a higher probability",
		fmt.Sprintf("fewer bytes in %d of %d networks, as many in %d, more in %d", smaller, cases, cases-smaller-larger,
			larger),
		harness.Agreement(smaller > larger))
	d.Claim("It is at least as fast", "not claimed", fmt.Sprintf("in %d of %d networks", faster, cases), "–")
	d.Note(
		"The plan of least time meets the bound in %d of %d networks, longest lifetime first in %d.",
		proven, cases, least)
	d.Note(
		"Both rules also choose what goes from the LLB to the DDR, and what is spilled so that a layer's weights pass only once. In the plan of least time, longest lifetime first chooses what goes to the DDR.")
	d.Note("In the figure the height of a bar is the size of its value relative to the largest.")
	d.Note(
		"A value is a tensor of one instance; a step is a layer of one instance. A spilled value lives at its lower level from the start.")
	fig, err := f.figure(runs)
	d.Figure("lifetimes", fmt.Sprintf("Lifetimes of values of %s around the step at which the L1 is full",
		paper.Model), fig, err)
	d.File("spills.csv", harness.CSV(runs, harness.Fields[spillRun](
		"model batches_per_cluster method spilled_to_gb spilled_to_ddr mean_lifetime_steps spilled_bytes moved_bytes "+
			"parameters_again_bytes bound_bytes throughput_per_s")))
	return d.Report(harness.Data{Data: runs})
}

// fullAt is the first step at which a value of the figure's network had to go, by any method; 0 if none had to.
func (f spilling) fullAt(runs []spillRun) int {
	at := -1
	for _, r := range runs[:len(f.methods)] {
		if r.FullAt >= 0 && (at < 0 || r.FullAt < at) {
			at = r.FullAt
		}
	}
	return max(at, 0)
}

// spillLevels are the levels in the order of the palette.
var spillLevels = []string{"L1", "LLB", "DDR"}

// figure draws lifetimes near the step at which the L1 is first full; bars are as high
// as the values are large. Methods that do the same there share a panel.
func (f spilling) figure(runs []spillRun) (*plots.Figure, error) {
	const around = 5 // steps
	at := f.fullAt(runs)
	from, to := max(0, at-around), at+around
	var shown []int
	largest := int64(1)
	for i, v := range runs[0].Values {
		if v.First < to && v.End > from {
			shown = append(shown, i)
			largest = max(largest, v.Bytes)
		}
	}
	var list []plots.Timeline
	for k, m := range f.methods {
		r := runs[k]
		tl := plots.Timeline{Title: fmt.Sprintf("%s: %s MiB moved", m.name, mebibytes(r.MovedBytes)),
			Start: float64(from), Lines: []plots.TimelineMark{{At: float64(at)}, {At: float64(at + 1)}}}
		for _, i := range shown {
			v := r.Values[i]
			tl.Rows = append(tl.Rows, plots.TimelineRow{Name: v.Name, Bars: []plots.TimelineBar{{
				Start: float64(max(v.First, from)), End: float64(v.End), Colour: slices.Index(spillLevels, v.Level),
				Height: max(0.12, float64(v.Bytes)/float64(largest))}}})
		}
		alike := func(other plots.Timeline) bool { return reflect.DeepEqual(other.Rows, tl.Rows) }
		if j := slices.IndexFunc(list, alike); j >= 0 {
			list[j].Title = m.name + ", " + list[j].Title
		} else {
			list = append(list, tl)
		}
	}
	for i := range list {
		list[i].Title = fmt.Sprintf("(%c) %s", 'a'+i, list[i].Title)
	}
	used := 0
	for k := range f.methods {
		for _, i := range shown {
			used = max(used, slices.Index(spillLevels, runs[k].Values[i].Level)+1)
		}
	}
	return plots.Timelines(list, "Step; the L1 is full between the lines", 10.5, spillLevels[:used])
}

// Fig12 spills from the L1 by several methods.
func Fig12() harness.Experiment { return fig12().experiment() }
