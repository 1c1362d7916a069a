package balancing

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/systems/mofang/balance"
	"github.com/dsasched/dsasched/systems/mofang/streams"
)

// moduleMachine is the V100 of the module's figures: times are in milliseconds of a
// kernel, the launch of which they contain.
var moduleMachine = streams.Machine{Name: "v100", Processors: 80}

// moduleOperators are the paper's convolutions a, b, c and d; c waits for a. Of the published times and utilisations,
// phase 2 of Fig. 17 is c alone, layer 2 of Fig. 19 less that is b, and phase 1 less b is a and d, whose shares are
// not published: they are taken as equal. Work is utilisation times time; an operator has a width and so many blocks
// that its waves are fine (waves of each processor). Multiply-accumulates, which Mofang balances, stand in the
// proportion of IOS's module, which this one is.
func moduleOperators() []streams.Operator {
	const waves = 8
	op := func(name string, macs int64, utilization, ms float64, after ...int) streams.Operator {
		w := int64(utilization*float64(moduleMachine.Processors) + 0.5)
		return streams.Operator{Name: name, After: after, MACs: macs, Width: w, Blocks: waves * w,
			BlockSeconds: ms * 1e-3 / waves}
	}
	const (
		phase1, phase1ms = 0.95, 0.20
		phase2, phase2ms = 0.20, 0.16
		layer2, layer2ms = 0.50, 0.18
		layer1ms         = 0.16
	)
	b := (layer2*layer2ms - phase2*phase2ms) / layer2ms
	ad := (phase1*phase1ms - b*layer2ms) / layer1ms
	return []streams.Operator{op("a", 1, ad/2, layer1ms), op("b", 1, b, layer2ms), op("c", 2, phase2, phase2ms, 0),
		op("d", 2, ad/2, layer1ms)}
}

// iosOperators are the convolutions of IOS's example (MLSys 2021, Fig. 2), whose letters it has with b and c
// exchanged: 384 channels of 15 x 15 each, 3 x 3 windows, to 384, 768, 384 and 768 channels; b waits for a.
func iosOperators(efficiency float64) (*streams.Device, []streams.Operator) {
	d := bail.Of(streams.NewDevice(harness.Accelerator("v100"), efficiency))
	d.LaunchSeconds = 0 // contained in the fitted efficiency
	const size, channels, window = 15 * 15, 384, 9
	var ops []streams.Operator
	for i, out := range []int64{384, 768, 384, 768} {
		bytes := 4 * (size*channels + channels*window*out + size*out)
		ops = append(ops, bail.Of(d.Product(string(rune('a'+i)), 1, size, out, channels*window, "f32", bytes)))
	}
	ops[1].After = []int{0}
	return d, ops
}

// A ran is one way to run a module.
type ran struct {
	Name   string   `json:"name"`
	Phases []phase  `json:"phases"`
	Total  float64  `json:"total_s"`
	Layers []string `json:"layers"`
}

type phase struct {
	Operators   string  `json:"operators"`
	Seconds     float64 `json:"latency_s"`
	Utilization float64 `json:"utilization"`
	Bars        []bar   `json:"bars"`
}

type bar struct {
	Name string  `json:"name"`
	End  float64 `json:"end_s"`
}

func runModule(ctx context.Context, name string, m *streams.Machine, ops []streams.Operator, method string) ran {
	l := bail.Of(balance.LayerOperators(ctx, name, m, ops, method, balance.LayerOptions{}))
	r := ran{Name: name, Total: l.Seconds}
	for _, layer := range l.Layers {
		r.Layers = append(r.Layers, strings.Join(layer.Operators, ""))
		for _, p := range layer.Phases {
			x := phase{Seconds: p.Seconds, Utilization: p.Utilization}
			for k, i := range p.Operators {
				x.Operators += ops[i].Name
				x.Bars = append(x.Bars, bar{ops[i].Name, p.Ends[k]})
			}
			r.Phases = append(r.Phases, x)
		}
	}
	return r
}

// ganttOf draws the operators of each way to run a module; what others have drawn already is named there.
func ganttOf(d *harness.Document, file string, runs []ran) {
	var list []plots.Timeline
	var names []string
	for _, r := range runs {
		t := plots.Timeline{Title: r.Name}
		rows := map[string]int{}
		at := 0.0
		for _, p := range r.Phases {
			for _, b := range p.Bars {
				k, ok := rows[b.Name]
				if !ok {
					k = len(t.Rows)
					rows[b.Name] = k
					t.Rows = append(t.Rows, plots.TimelineRow{Name: b.Name})
				}
				t.Rows[k].Bars = append(t.Rows[k].Bars, plots.TimelineBar{Start: at * 1e3, End: (at + b.End) * 1e3})
			}
			at += p.Seconds
			t.Lines = append(t.Lines, plots.TimelineMark{At: at * 1e3, Text: harness.Fixed(100*p.Utilization, 0) + " %"})
		}
		names = []string{"operator; above a phase: share of the device that is busy"}
		if k := slices.IndexFunc(list, func(other plots.Timeline) bool {
			return reflect.DeepEqual(other.Rows, t.Rows) && reflect.DeepEqual(other.Lines, t.Lines)
		}); k >= 0 {
			list[k].Title += ", " + t.Title
			continue
		}
		list = append(list, t)
	}
	f, err := plots.Timelines(list, "Time (ms)", 14, names)
	d.Figure(file, "Operators over time; above each phase the share of the device that is busy", f, err)
}

func phaseTable(d *harness.Document, runs []ran) {
	t := harness.Table{Title: "Phases", Name: "phases",
		Columns: harness.Columns("<Schedule", "<Operators", "ms", "Busy %")}
	for _, r := range runs {
		for _, p := range r.Phases {
			t.Add(r.Name, p.Operators, harness.Fixed(1e3*p.Seconds, 3), harness.Fixed(100*p.Utilization, 0))
		}
		t.Add(r.Name, "all", harness.Fixed(1e3*r.Total, 3), "")
	}
	d.Table(t)
}

// module is Fig. 17 (greedy), 18 (merged, then greedy) or 19 (layers).
func module(name string, figure int) harness.Experiment {
	method := map[int]string{17: "greedy", 18: "greedy", 19: "mofang"}[figure]
	what := map[int]string{17: "greedily", 18: "greedily after merging equal convolutions", 19: "in layers"}[figure]
	return harness.Single(name, "a module of Inception-v3 on a V100, scheduled "+what,
		fmt.Sprintf("%s§3.3 and Fig. %d", paper, figure), figure,
		func(ctx context.Context) ran {
			ops := moduleOperators()
			if figure == 18 {
				for _, i := range []int{0, 1, 3} {
					ops[i].Merge = "one input, equal windows"
				}
				ops, _ = streams.Merged(ops)
			}
			return runModule(ctx, what, &moduleMachine, ops, method)
		},
		func(d *harness.Document, r ran) {
			phaseTable(d, []ran{r})
			if len(r.Phases) != 2 {
				d.Fail(fmt.Errorf("%s: found %d phases, expected two", name, len(r.Phases)))
				return
			}
			ms := func(what string, published, ours float64) { d.Number(what, "ms", published, 1e3*ours); d.Given() }
			busy := func(what string, published, ours float64) { d.Number(what, "%", published, 100*ours); d.Given() }
			switch figure {
			case 17:
				d.Note("The utilisations and times of this figure and of layer 2 of Fig. 19 are what the operators are made of.")
				ms("phase 1", 0.20, r.Phases[0].Seconds)
				ms("phase 2", 0.16, r.Phases[1].Seconds)
				ms("module", 0.36, r.Total)
				busy("phase 1 busy", 95, r.Phases[0].Utilization)
				busy("phase 2 busy", 20, r.Phases[1].Utilization)
			case 18:
				busy("phase 1 busy", 90, r.Phases[0].Utilization)
				busy("phase 2 busy", 20, r.Phases[1].Utilization)
			case 19:
				layers := strings.Join(r.Layers, " | ")
				d.Claim("layers", "ad | bc", layers, harness.Agreement(layers == "ad | bc"))
				d.Given()
				d.Why("ad | bc, ab | cd and a | bcd take the same time; the multiply-accumulates that decide are of IOS's module")
				ms("layer 1", 0.16, r.Phases[0].Seconds)
				ms("layer 2", 0.18, r.Phases[1].Seconds)
				ms("module", 0.34, r.Total)
				busy("layer 1 busy", 70, r.Phases[0].Utilization)
				busy("layer 2 busy", 50, r.Phases[1].Utilization)
			}
			ganttOf(d, "gantt", []ran{r})
		})
}

// iosSequential is the published time of IOS's example one operator after another, to
// which the efficiency of a kernel is fitted; the other times follow.
const iosSequential = 0.48e-3

// inception sets the module beside IOS's, whose example it is.
func inception() harness.Experiment {
	return harness.Single("mofang-inception",
		"IOS's example beside the module of Figs. 17 to 19: one by one, greedily, by Mofang, exactly",
		paper+"§3.3; IOS (MLSys 2021), Fig. 2", "v100",
		func(ctx context.Context) (runs []ran) {
			full, ops := iosOperators(1)
			alone := 0.0
			for i := range ops {
				alone += full.Alone(&ops[i])
			}
			d, ops := iosOperators(min(1, alone/iosSequential))
			for _, x := range []struct {
				name string
				m    *streams.Machine
				ops  []streams.Operator
			}{{"IOS", &d.Machine, ops}, {"Mofang", &moduleMachine, moduleOperators()}} {
				for _, m := range [][2]string{{"sequential", "one by one"}, {"greedy", "greedily"}, {"mofang", "in layers"},
					{"exact", "exactly"}} {
					runs = append(runs, runModule(ctx, x.name+": "+m[1], x.m, x.ops, m[0]))
				}
			}
			return runs
		},
		func(d *harness.Document, runs []ran) {
			phaseTable(d, runs)
			by := map[string]ran{}
			for _, r := range runs {
				by[r.Name] = r
			}
			d.Line(harness.Line{What: "IOS's example, one by one", Unit: "ms", Published: 0.48,
				Ours: 1e3 * by["IOS: one by one"].Total, Calibration: true})
			// Times follow from the one that is fitted, so that what is predicted is the gains over it.
			alone := by["IOS: one by one"].Total
			d.Number("IOS's example, greedily over one by one", "x", 0.48/0.37, alone/by["IOS: greedily"].Total)
			d.Number("IOS's example, best over one by one", "x", 0.48/0.33, alone/by["IOS: exactly"].Total)
			layers := strings.Join(by["IOS: exactly"].Layers, " | ")
			d.Claim("IOS's example, layers", "ad | bc", layers, harness.Agreement(layers == "ad | bc"))
			found := strings.Join(by["IOS: in layers"].Layers, " | ")
			d.Claim("the same by Mofang's search", "ad | bc", found, harness.Agreement(found == "ad | bc"))
			d.Number("Mofang's module, greedily", "ms", 0.36, 1e3*by["Mofang: greedily"].Total)
			d.Given()
			d.Number("Mofang's module, layered", "ms", 0.34, 1e3*by["Mofang: in layers"].Total)
			d.Given()
			d.Note(
				"The efficiency of IOS's kernels is fitted to its published time one by one; the other times follow. The best layers take %s less than Mofang's.", harness.Fixed(100*(1-by["IOS: exactly"].Total/by["IOS: in layers"].Total), 1)+" %")
			half := len(runs) / 2
			ganttOf(d, "ios", runs[:half])
			ganttOf(d, "gantt", runs[half:])
		})
}
