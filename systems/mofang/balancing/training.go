package balancing

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/systems/mofang"
	"github.com/dsasched/dsasched/systems/mofang/balance"
	"github.com/dsasched/dsasched/systems/mofang/pipelining"
	"github.com/dsasched/dsasched/systems/mofang/streams"
)

// trainBatch is the batch of a device in Figs. 22 to 24, which train: the most that a device takes at a time in the
// paper's example of Table 4. Theirs is not published. gainBatches are others beside it.
const trainBatch = balance.DeviceBatch

var gainBatches = []int64{1, 8, trainBatch}

// gain is a network on one V100 in four ways. Times are of a forward pass.
type gain struct {
	Model      string  `json:"model"`
	Batch      int64   `json:"batch"`
	Operators  int     `json:"operators"`
	Tried      int     `json:"splits_tried"`
	Kept       int     `json:"splits_kept"`
	Sequential float64 `json:"sequential_s"`
	Greedy     float64 `json:"greedy_s"`
	Layered    float64 `json:"layered_s"`
	Exact      float64 `json:"exact_s"`
	Proven     bool    `json:"exact_proven"`
	// Pipelined is the time for each sample of a full pipeline of the layers.
	Pipelined float64 `json:"pipelined_s"`
	Stages    int     `json:"stages"`
	// Low and High are the least and the largest utilisation of phases with more than a thousandth of the time.
	GreedyLow, GreedyHigh   float64
	LayeredLow, LayeredHigh float64
	GreedyMean, LayeredMean float64
	PipelinedMean           float64
	GreedyCurve             []use `json:"greedy_curve"`
	LayeredCurve            []use `json:"layered_curve"`
}

type use struct {
	Seconds     float64 `json:"s"`
	Utilization float64 `json:"utilization"`
}

func measureGain(ctx context.Context, name string, batch int64) (g gain) {
	net := bail.Of(network.Open(name, network.Options{DType: model.F32}))
	d := bail.Of(streams.NewDevice(harness.Accelerator("v100"), 0))
	ops, _, err := streams.Operators(bail.Of(net.Graph(batch)), d)
	bail.Check(err)
	g.Model, g.Batch, g.Operators = name, batch, len(ops)
	all := make([]int, len(ops))
	for i := range all {
		all[i] = i
	}
	by := func(method string) *balance.Layering {
		return bail.Of(balance.LayerOperators(ctx, name, &d.Machine, ops, method, balance.LayerOptions{}))
	}
	layered, exact := by("mofang"), by("exact")
	g.Sequential, g.Greedy, g.Layered, g.Exact, g.Proven = layered.Sequential, layered.Greedy, layered.Seconds,
		exact.Seconds, exact.Bound >= exact.Seconds*(1-1e-9)
	g.Tried, g.Kept = layered.Tried, layered.Kept
	var stageLayers []mofang.Layer
	var phases []streams.Phase
	for _, l := range layered.Layers {
		stageLayers = append(stageLayers, mofang.Layer{Seconds: l.Seconds, Utilization: l.Utilization})
		phases = append(phases, l.Phases...)
	}
	stages := mofang.Stages(stageLayers)
	g.Stages = len(stages)
	busy := 0.0
	for _, s := range stages {
		t := 0.0
		for _, l := range stageLayers[s[0]:s[1]] {
			t += l.Seconds
			busy += l.Seconds * l.Utilization
		}
		g.Pipelined = max(g.Pipelined, t)
	}
	g.PipelinedMean = busy / g.Pipelined
	g.GreedyLow, g.GreedyHigh, g.GreedyMean, g.GreedyCurve = summary(d.Run(ops, all, streams.SideBySide))
	g.LayeredLow, g.LayeredHigh, g.LayeredMean, g.LayeredCurve = summary(phases)
	return g
}

func summary(phases []streams.Phase) (low, high, mean float64, curve []use) {
	total, busy := streams.Seconds(phases), 0.0
	low = 1
	for _, p := range phases {
		curve = append(curve, use{p.Seconds, p.Utilization})
		busy += p.Seconds * p.Utilization
		if p.Seconds > total/1000 {
			low, high = min(low, p.Utilization), max(high, p.Utilization)
		}
	}
	return low, high, busy / total, curve
}

func gains() harness.Experiment {
	models := []string{"resnet50", "inception-v3", "nasnet-mobile", "resnext50-32x4d"}
	return harness.Single("mofang-fig22", "four networks on a V100: greedy, layered, layered and pipelined, beside exact layers",
		paper+"§2.3, §3.4, Table 3 and Fig. 22", models,
		func(ctx context.Context) (rows []gain) {
			for _, name := range models {
				for _, batch := range gainBatches {
					g := measureGain(ctx, name, batch)
					g.GreedyCurve, g.LayeredCurve = nil, nil
					rows = append(rows, g)
				}
			}
			return rows
		},
		func(d *harness.Document, rows []gain) {
			n, err := chips.Load(machine)
			if err != nil {
				d.Fail(err)
				return
			}
			t := harness.Table{Title: "Forward pass, ms", Name: "gains",
				Columns: harness.Columns("<Network", "Batch", "One by one", "Greedy", "Layered", "Exact", "Pipelined",
					"Stages", "Layering %", "Both %")}
			search := harness.Table{Title: fmt.Sprintf("What Algorithm 1 looks at, batch %d", trainBatch), Name: "search",
				Columns: harness.Columns("<Network", "Operators", "Splits", "Kept by the threshold", "%")}
			all := harness.Table{Title: fmt.Sprintf("Training on %d devices, batch %d each: images/s", n.Devices, trainBatch),
				Name: "all", Columns: harness.Columns("<Network", "Greedy, all threads", "All three", "Threads", "Gain %")}
			within := 0
			by := map[string]gain{}
			for _, g := range rows {
				exact := harness.Fixed(1e3*g.Exact, 3)
				if !g.Proven {
					exact += "*"
				}
				t.Add(g.Model, g.Batch, harness.Fixed(1e3*g.Sequential, 3), harness.Fixed(1e3*g.Greedy, 3),
					harness.Fixed(1e3*g.Layered, 3), exact, harness.Fixed(1e3*g.Pipelined, 3), g.Stages,
					harness.Fixed(100*(g.Greedy/g.Layered-1), 1), harness.Fixed(100*(g.Greedy/g.Pipelined-1), 1))
				if g.Batch != trainBatch {
					continue
				}
				by[g.Model] = g
				search.Add(g.Model, g.Operators, g.Tried, g.Kept, harness.Percent(float64(g.Kept)/float64(max(1, g.Tried))))
				const passes = 3 // forward, and two gradients
				rate := func(forward float64) float64 { return float64(n.Devices*trainBatch) / (passes * forward) }
				before := loading(n, rate(g.Greedy), n.Devices*trainBatch)
				after := loading(n, rate(g.Pipelined), n.Devices*trainBatch)
				chosen := choose(after)
				x := float64(before.Batch) / before.BatchSeconds(before.Speedups[len(before.Speedups)-1])
				y := float64(after.Batch) / after.BatchSeconds(pipelining.Speedup(chosen))
				if gained := y/x - 1; gained >= .05 && gained <= .15 {
					within++
				}
				all.Add(g.Model, harness.Fixed(x, 0), harness.Fixed(y, 0), chosen.Threads, harness.Fixed(100*(y/x-1), 1))
			}
			t.Notes = append(t.Notes, "* not proven: a block has more operators than the exact method takes.")
			d.Table(t, search, all)
			d.Number("Inception-v3, layering alone", "% gain", 5, 100*(by["inception-v3"].Greedy/by["inception-v3"].Layered-1))
			d.Why("at a batch that fills the device there is nothing left to balance; at batch 1 layering gains more")
			d.Cause(causeBusy)
			d.Number("Inception-v3, layering and pipeline", "% gain", 10,
				100*(by["inception-v3"].Greedy/by["inception-v3"].Pipelined-1))
			d.Why("layers are too busy for two to run side by side")
			d.Cause(causeBusy)
			d.Number("ResNet-50, layering and pipeline", "% gain", 2, 100*(by["resnet50"].Greedy/by["resnet50"].Pipelined-1))
			d.Cause(causeBusy)
			d.Claim("all three over TensorFlow", "5 to 15 %",
				fmt.Sprintf("in this range for %d of %d networks", within, len(models)), harness.Agreement(within == len(models)))
			d.Why("16 devices wait for the host's threads, whose speed-ups are an assumption")
			d.Cause(causeHost)
			d.Claim("splits that the threshold drops (assumed in §2.3)", "about half",
				fmt.Sprintf("%s %% on Inception-v3",
					harness.Percent(1-float64(by["inception-v3"].Kept)/float64(max(1, by["inception-v3"].Tried)))), "–")
			d.Note(
				"The paper's figure is of training, at a batch that it does not give; lines are of batch %d, the most that a device takes in its example of Table 4. It says 2 to 10 %% in its conclusion and 5 to 15 %% in the text of all three optimisations.", trainBatch)
		})
}

// What Mofang's misses come from, nearly all of them the first.
const (
	causeBusy = "at a batch of 64 a device is 99 % busy by any schedule, so that layers and pipelines have nothing to fill; " +
		"the paper gives no batch"
	causeHost = "16 devices wait for the host's threads at any batch; the threads' speed-ups are lost with a table"
)

func utilization() harness.Experiment {
	return harness.Single("mofang-fig23", "how busy a V100 is with Inception-v3, greedily and in layers",
		paper+"§3.5 and Fig. 23", "inception-v3",
		func(ctx context.Context) gain { return measureGain(ctx, "inception-v3", trainBatch) },
		func(d *harness.Document, g gain) {
			t := harness.Table{Title: "Share of the device that is busy", Name: "utilization",
				Columns: harness.Columns("<Schedule", "Least %", "Mean %", "Most %")}
			row := func(name string, low, mean, high float64) {
				t.Add(name, harness.Fixed(100*low, 0), harness.Fixed(100*mean, 0), harness.Fixed(100*high, 0))
			}
			row("greedy", g.GreedyLow, g.GreedyMean, g.GreedyHigh)
			row("layered", g.LayeredLow, g.LayeredMean, g.LayeredHigh)
			d.Table(t)
			// Idle, since shares near all of the device differ little whatever the schedule.
			for _, x := range []struct {
				what            string
				published, ours float64 // busy
			}{{"greedy, at the busiest", .95, g.GreedyHigh}, {"greedy, at the least busy", .2, g.GreedyLow},
				{"layered, at the least busy", .5, g.LayeredLow}, {"layered, at the busiest", .6, g.LayeredHigh},
				{"layered and pipelined", .9, g.PipelinedMean}} {
				d.Number("idle, "+x.what, "%", 100*(1-x.published), 100*(1-x.ours))
				d.Cause(causeBusy)
				if x.ours > .9 {
					d.Why("at this batch the device is full by any schedule")
				}
			}
			d.Claim("layering brings least and most nearer to each other", "from 20 and 95 to 50 and 60 %",
				fmt.Sprintf("from %s and %s to %s and %s %%", harness.Percent(g.GreedyLow), harness.Percent(g.GreedyHigh),
					harness.Percent(g.LayeredLow), harness.Percent(g.LayeredHigh)),
				harness.Agreement(g.LayeredHigh-g.LayeredLow < .9*(g.GreedyHigh-g.GreedyLow)))
			d.Cause(causeBusy)
			d.Claim("the pipeline makes the device busier than layers alone", "over 90 and 50 to 60 %",
				fmt.Sprintf("%s and %s %%", harness.Percent(g.PipelinedMean), harness.Percent(g.LayeredMean)),
				harness.Agreement(g.PipelinedMean > g.LayeredMean*1.01))
			d.Cause(causeBusy)
			c := []plots.Curves{}
			for _, s := range []struct {
				name  string
				curve []use
			}{{"greedy", g.GreedyCurve}, {"layered", g.LayeredCurve}} {
				x := plots.Curves{Title: s.name, XLabel: "Time (ms)", YLabel: "Busy (%)", Series: []plots.Series{{Name: "busy"}}}
				at := 0.0
				for _, u := range s.curve {
					x.X = append(x.X, 1e3*(at+u.Seconds/2))
					x.Series[0].Values = append(x.Series[0].Values, 100*u.Utilization)
					at += u.Seconds
				}
				c = append(c, x)
			}
			d.Curves("utilization", "Share of the device that is busy over time, in the middle of each phase", c...)
		})
}

// joules is the energy of a training step of one sample, in three ways.
type joules struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"step_s"`
	Joules  float64 `json:"energy_j"`
}

type energyTable struct {
	Rows                 []joules
	ThreadsBefore        int
	ThreadsAfter         int
	HostBefore, HostLess float64
}

func energy() harness.Experiment {
	return harness.Single("mofang-fig24", "time and energy of training Inception-v3: greedy, layered, layered and pipelined",
		paper+"§3.6 and Fig. 24", machine,
		func(ctx context.Context) (t energyTable) {
			n, g := bail.Of(chips.Load(machine)), measureGain(ctx, "inception-v3", trainBatch)
			const passes = 3 // forward, and two gradients
			joule := func(curve []use) float64 {
				uses := harness.Each(curve, func(u use) mofang.Use {
					return mofang.Use{Seconds: passes * u.Seconds, Utilization: u.Utilization}
				})
				return mofang.EnergyJoules(uses, n.IdleWatts, n.BusyWatts)
			}
			t.Rows = []joules{{"greedy", passes * g.Greedy, joule(g.GreedyCurve)},
				{"layered", passes * g.Layered, joule(g.LayeredCurve)},
				{"layered and pipelined", passes * g.Pipelined, joule([]use{{g.Pipelined, min(1, g.PipelinedMean)}})}}
			t.ThreadsBefore, t.ThreadsAfter = n.Host.Threads, 48
			t.HostBefore = float64(t.ThreadsBefore) * n.Host.WattsPerThread
			t.HostLess = 1 - float64(t.ThreadsAfter)/float64(t.ThreadsBefore)
			return t
		},
		func(d *harness.Document, t energyTable) {
			table := harness.Table{Title: fmt.Sprintf("A training step at batch %d on one device", trainBatch), Name: "energy",
				Columns: harness.Columns("<Schedule", "ms", "J", "of greedy %")}
			for _, r := range t.Rows {
				table.Add(r.Name, harness.Fixed(1e3*r.Seconds, 3), harness.Fixed(r.Joules, 3),
					harness.Fixed(100*r.Joules/t.Rows[0].Joules, 1))
			}
			d.Table(table)
			saved := func(what string, published float64, now, before float64) {
				d.Number(what, "%", published, 100*(1-now/before))
				d.Cause(causeBusy)
			}
			saved("energy saved by layers", 100*(1-3521.0/4138), t.Rows[1].Joules, t.Rows[0].Joules)
			saved("energy saved by layers and pipeline", 100*(1-3512.0/4138), t.Rows[2].Joules, t.Rows[0].Joules)
			saved("time saved by layers and pipeline", 100*(1-20.0/30), t.Rows[2].Seconds, t.Rows[0].Seconds)
			d.Number("host energy saved by 48 threads in place of 64", "%", 25, 100*t.HostLess)
			d.Given()
			d.Note(
				"The paper prints energies in watts; an integral of power over time is in joules. An epoch of ImageNet in 30 s would be 43 thousand images per second on 16 boards, and is doubtful.")
		})
}
