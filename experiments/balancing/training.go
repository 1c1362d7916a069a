package balancing

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/mofang"
	"github.com/dsasched/dsasched/internal/balance"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/server"
	"github.com/dsasched/dsasched/internal/streams"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
)

// gainBatch is the batch of a device in Figs. 22 to 24: a small one, at which operators
// leave much of the device idle, as the paper's utilisations do. It is not published.
const gainBatch = 1

// gain is a network on one V100 in four ways. Times are of a forward pass.
type gain struct {
	Model      string  `json:"model"`
	Sequential float64 `json:"sequential_s"`
	Greedy     float64 `json:"greedy_s"`
	Layered    float64 `json:"layered_s"`
	Exact      float64 `json:"exact_s"`
	Proven     bool    `json:"exact_proven"`
	// Pipelined is the time for each sample of a full pipeline of the layers.
	Pipelined float64 `json:"pipelined_s"`
	Stages    int     `json:"stages"`
	// Low and High are the least and the largest utilisation of phases with more than
	// a thousandth of the time.
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

func measureGain(ctx context.Context, name string) (g gain, err error) {
	net, err := network.Open(name, network.Options{DType: model.F32})
	if err != nil {
		return g, err
	}
	graph, err := net.Graph(gainBatch)
	if err != nil {
		return g, err
	}
	spec, err := hardware.Load("v100")
	if err != nil {
		return g, err
	}
	d, err := streams.NewDevice(spec, 0)
	if err != nil {
		return g, err
	}
	ops, _, err := streams.Operators(graph, d)
	if err != nil {
		return g, err
	}
	g.Model = name
	all := make([]int, len(ops))
	for i := range all {
		all[i] = i
	}
	layered, err := balance.LayerOperators(ctx, name, &d.Machine, ops, "mofang", balance.LayerOptions{})
	if err != nil {
		return g, err
	}
	exact, err := balance.LayerOperators(ctx, name, &d.Machine, ops, "exact", balance.LayerOptions{})
	if err != nil {
		return g, err
	}
	g.Sequential, g.Greedy, g.Layered, g.Exact, g.Proven = layered.Sequential, layered.Greedy, layered.Seconds, exact.Seconds, exact.Bound >= exact.Seconds*(1-1e-9)
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
	return g, nil
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
	return single("mofang-fig22", "four networks on a V100: greedy, layered, layered and pipelined, beside exact layers", paper+"§3.4 and Fig. 22", models,
		func(ctx context.Context) (rows []gain, err error) {
			for _, name := range models {
				g, err := measureGain(ctx, name)
				if err != nil {
					return nil, err
				}
				g.GreedyCurve, g.LayeredCurve = nil, nil
				rows = append(rows, g)
			}
			return rows, nil
		},
		func(d *harness.Document, rows []gain) error {
			t := harness.Table{Title: fmt.Sprintf("Forward pass at batch %d, ms", gainBatch), Name: "gains", Columns: []harness.Column{text("Network"), number("One by one"), number("Greedy"), number("Layered"), number("Exact"), number("Pipelined"), number("Stages"), number("Layering %"), number("Both %")}}
			for _, g := range rows {
				exact := harness.Fixed(1e3*g.Exact, 3)
				if !g.Proven {
					exact += "*"
				}
				t.Rows = append(t.Rows, []string{g.Model, harness.Fixed(1e3*g.Sequential, 3), harness.Fixed(1e3*g.Greedy, 3), harness.Fixed(1e3*g.Layered, 3), exact, harness.Fixed(1e3*g.Pipelined, 3), fmt.Sprint(g.Stages),
					harness.Fixed(100*(g.Greedy/g.Layered-1), 1), harness.Fixed(100*(g.Greedy/g.Pipelined-1), 1)})
			}
			t.Notes = append(t.Notes, "* not proven: a block has more operators than the exact method takes.")
			if err := d.Table(t); err != nil {
				return err
			}
			d.Number("Inception-v3, layering alone", "% gain", 5, 100*(rows[1].Greedy/rows[1].Layered-1))
			d.Number("Inception-v3, layering and pipeline", "% gain", 10, 100*(rows[1].Greedy/rows[1].Pipelined-1))
			d.Number("ResNet-50, layering and pipeline", "% gain", 2, 100*(rows[0].Greedy/rows[0].Pipelined-1))
			d.Note("The paper says 2 to 10 %% in its conclusion and 5 to 15 %% in the text of all three optimisations.")
			return nil
		})
}

func utilization() harness.Experiment {
	return single("mofang-fig23", "how busy a V100 is with Inception-v3, greedily and in layers", paper+"§3.5 and Fig. 23", "inception-v3",
		func(ctx context.Context) (gain, error) { return measureGain(ctx, "inception-v3") },
		func(d *harness.Document, g gain) error {
			t := harness.Table{Title: "Share of the device that is busy", Name: "utilization", Columns: []harness.Column{text("Schedule"), number("Least %"), number("Mean %"), number("Most %")}}
			row := func(name string, low, mean, high float64) {
				t.Rows = append(t.Rows, []string{name, harness.Fixed(100*low, 0), harness.Fixed(100*mean, 0), harness.Fixed(100*high, 0)})
			}
			row("greedy", g.GreedyLow, g.GreedyMean, g.GreedyHigh)
			row("layered", g.LayeredLow, g.LayeredMean, g.LayeredHigh)
			if err := d.Table(t); err != nil {
				return err
			}
			d.Number("greedy, most", "%", 95, 100*g.GreedyHigh)
			d.Number("greedy, least", "%", 20, 100*g.GreedyLow)
			d.Number("layered, mean (50 to 60)", "%", 55, 100*g.LayeredMean)
			d.Number("layered and pipelined", "%", 90, 100*g.PipelinedMean)
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
			f, err := plots.Lines(c...)
			return d.Figure("utilization", "Share of the device that is busy over time, in the middle of each phase", f, err)
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
	return single("mofang-fig24", "time and energy of training Inception-v3: greedy, layered, layered and pipelined", paper+"§3.6 and Fig. 24", machine,
		func(ctx context.Context) (t energyTable, err error) {
			n, err := server.Load(machine)
			if err != nil {
				return t, err
			}
			g, err := measureGain(ctx, "inception-v3")
			if err != nil {
				return t, err
			}
			const passes = 3 // forward, and two gradients
			joule := func(curve []use) float64 {
				var uses []mofang.Use
				for _, u := range curve {
					uses = append(uses, mofang.Use{Seconds: passes * u.Seconds, Utilization: u.Utilization})
				}
				return mofang.EnergyJoules(uses, n.IdleWatts, n.BusyWatts)
			}
			t.Rows = []joules{{"greedy", passes * g.Greedy, joule(g.GreedyCurve)}, {"layered", passes * g.Layered, joule(g.LayeredCurve)},
				{"layered and pipelined", passes * g.Pipelined, joule([]use{{g.Pipelined, min(1, g.PipelinedMean)}})}}
			t.ThreadsBefore, t.ThreadsAfter = n.Host.Threads, 48
			t.HostBefore = float64(t.ThreadsBefore) * n.Host.WattsPerThread
			t.HostLess = 1 - float64(t.ThreadsAfter)/float64(t.ThreadsBefore)
			return t, nil
		},
		func(d *harness.Document, t energyTable) error {
			table := harness.Table{Title: fmt.Sprintf("A training step at batch %d on one device", gainBatch), Name: "energy", Columns: []harness.Column{text("Schedule"), number("ms"), number("J"), number("of greedy %")}}
			for _, r := range t.Rows {
				table.Rows = append(table.Rows, []string{r.Name, harness.Fixed(1e3*r.Seconds, 3), harness.Fixed(r.Joules, 3), harness.Fixed(100*r.Joules/t.Rows[0].Joules, 1)})
			}
			if err := d.Table(table); err != nil {
				return err
			}
			saved := func(what string, published float64, now, before float64) {
				d.Number(what, "%", published, 100*(1-now/before))
			}
			saved("energy saved by layers", 100*(1-3521.0/4138), t.Rows[1].Joules, t.Rows[0].Joules)
			saved("energy saved by layers and pipeline", 100*(1-3512.0/4138), t.Rows[2].Joules, t.Rows[0].Joules)
			saved("time saved by layers and pipeline", 100*(1-20.0/30), t.Rows[2].Seconds, t.Rows[0].Seconds)
			d.Number("host energy saved by 48 threads in place of 64", "%", 25, 100*t.HostLess)
			d.Given()
			d.Note("The paper prints energies in watts; an integral of power over time is in joules. An epoch of ImageNet in 30 s would be 43 thousand images per second on 16 boards, and is doubtful.")
			return nil
		})
}
