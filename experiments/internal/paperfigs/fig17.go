package paperfigs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// stageUse is the utilisation by stage of a network (Fig. 17).
type stageUse struct {
	hardware      string
	configuration literature.Configuration
	variants      []string
}

func fig17() stageUse {
	return stageUse{"stcp920", literature.Configurations()[0], []string{"tvm", "cross-layer"}}
}

func (f stageUse) experiment() harness.Experiment {
	return harness.Experiment{Name: "fig17",
		Description: "utilisation of the matrix and vector units by stage of ResNet-50",
		Paper:       "GraphTurbo (OSDI 2023), Fig. 17", Plan: f.plan}
}

// stageRow is a stage's share of the units of a cluster.
type stageRow struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"time_s"` // of the whole batch
	Share   float64 `json:"time_share"`
	MACs    int64   `json:"macs"`
	MME     float64 `json:"mme_utilization"`
	VME     float64 `json:"vme_utilization"`
}

// stageRun is the result of a cell: the stages in their order, and last the whole network.
type stageRun struct {
	Variant string     `json:"variant"`
	Chunk   int64      `json:"batches_per_cluster"`
	Rows    []stageRow `json:"stages"`
}

const wholeNetwork = "all"

var lastStages = []string{"stage 2", "stage 3", "stage 4"}

// stagesOf finds the stage of each operator; names lists the stages in order.
func stagesOf(g *model.Graph) (names []string, of map[model.OpID]int) {
	n := structure.Find(g, schedule.ExecutionOrder(g))
	of = map[model.OpID]int{}
	for i, stage := range n.Stages {
		names = append(names, stage.Name)
		for _, b := range n.Blocks[stage.First:stage.End] {
			for _, l := range n.Layers[b.First:b.End] {
				for _, op := range l.Ops {
					of[op] = i
				}
			}
		}
	}
	return names, of
}

// byStage divides the latency of cluster 0 among the stages. Instances of several stages alternate and layers overlap,
// so it cuts the timeline where computations and stores end. Each interval counts for the stage of the command at its
// end. Loads have no interval of their own: their time counts for the command that waits for them.
func byStage(r *scheduler.Result) (stageRun, error) {
	p, s := r.Program, r.Schedule
	names, of := stagesOf(s.Graph)
	stage := make(map[string]int)
	for _, layers := range s.Layers {
		for _, l := range layers {
			k, ok := of[l.Anchor]
			if !ok {
				return stageRun{}, fmt.Errorf("layer %q is of no stage", l.Name)
			}
			stage[l.Name] = k
		}
	}
	var ends []int
	for i := range p.Commands {
		c := &p.Commands[i]
		if p.Queues[c.Queue].Cluster == 0 && (c.Kind.IsCompute() || c.Kind == isa.L1Store || c.Kind == isa.DDRStore) {
			ends = append(ends, i)
		}
	}
	slices.SortStableFunc(ends, func(a, b int) int {
		switch {
		case r.Sim.End[a] < r.Sim.End[b]:
			return -1
		case r.Sim.End[a] > r.Sim.End[b]:
			return 1
		}
		return 0
	})
	n := len(names)
	ps, macs, ops := make([]int64, n+1), make([]int64, n+1), make([]int64, n+1)
	last := int64(0)
	for _, i := range ends {
		c := &p.Commands[i]
		k, ok := stage[p.Labels[c.Label]]
		if !ok {
			return stageRun{}, fmt.Errorf("command %d is of %q, which is no layer", i, p.Labels[c.Label])
		}
		for _, k := range []int{k, n} {
			ps[k] += r.Sim.End[i] - last
			macs[k] += c.MACs
			ops[k] += c.VectorOps
		}
		last = r.Sim.End[i]
	}
	run := stageRun{Variant: r.Recipe.Name, Chunk: r.Chunk}
	clusters := float64(p.Clusters)
	for k, name := range append(names, wholeNetwork) {
		t := float64(ps[k]) * 1e-12
		row := stageRow{Stage: name, Seconds: harness.Round(t),
			Share: harness.Round(float64(ps[k]) / float64(max(1, ps[n]))), MACs: macs[k]}
		if t > 0 {
			row.MME = harness.Round(float64(macs[k]) / (p.PeakMACsPerSecond / clusters * t))
			row.VME = harness.Round(float64(ops[k]) / (p.PeakVectorOpsPerSecond / clusters * t))
		}
		run.Rows = append(run.Rows, row)
	}
	return run, nil
}

func (f stageUse) plan() (*harness.Plan, error) {
	spec, specHash := harness.Machine(f.hardware)
	c := f.configuration
	p := &harness.Plan{Report: harness.Of(f.report)}
	for _, name := range f.variants {
		v, at := literature.ByText(name)
		src, opt := harness.OpenNetwork(literature.At(c.Network, at)), literature.Options(c.PaperChunk(v))
		p.Cells = append(p.Cells, harness.Cell{
			Key: name, Label: c.Network + " " + name,
			Inputs: map[string]any{
				"model": src.Name, "hardware_sha256": specHash, "batch": c.BatchSize, "variant": v,
				"options": opt,
			},
			Run: func(ctx context.Context) (any, error) {
				r, err := scheduler.Run(ctx, src, spec, c.BatchSize, v, opt)
				if err != nil {
					return nil, err
				}
				return byStage(r)
			},
		})
	}
	return p, nil
}

func (f stageUse) report(runs []stageRun) (*harness.Report, error) {
	d := harness.NewDocument(f.experiment())
	c := f.configuration
	t := harness.Table{Name: "stages", Title: fmt.Sprintf("%s, batch %d on %s, the paper's batches per cluster, by stage",
		c.Network, c.BatchSize, f.hardware),
		Columns: harness.Columns("<Stage"),
		Notes: []string{"Utilisation: useful operations over the units' peak in the stage's time.",
			"Time: the interval between the ends of two successive computations or stores counts for the stage of the later one. Each moment counts once, though instances of several stages take turns."}}
	display := map[string]string{"tvm": "TVM", "cross-layer": "GraphTurbo"}
	for _, group := range []string{"MME (%)", "VME (%)", "Share of the time (%)", "Time (ms)"} {
		for _, r := range runs {
			t.AddColumns(group + "|" + display[r.Variant])
		}
	}
	for i, first := range runs[0].Rows {
		line := []string{first.Stage}
		for _, of := range []func(stageRow) string{
			func(s stageRow) string { return harness.Percent(s.MME) }, func(s stageRow) string { return harness.Percent(s.VME) },
			func(s stageRow) string { return harness.Percent(s.Share) },
			func(s stageRow) string { return harness.Fixed(1e3*s.Seconds, 2) }} {
			for _, r := range runs {
				line = append(line, of(r.Rows[i]))
			}
		}
		t.Add(line)
	}
	d.Table(t)
	// The paper's words: far more than TVM in the last three of the four stages.
	var far []string
	for i, first := range runs[0].Rows {
		for _, u := range []struct {
			name string
			of   func(stageRow) float64
		}{{"MME", func(s stageRow) float64 { return s.MME }}, {"VME", func(s stageRow) float64 { return s.VME }}} {
			if x, y := u.of(runs[0].Rows[i]), u.of(runs[1].Rows[i]); y >= 2*x && slices.Contains(lastStages, first.Stage) {
				far = append(far, fmt.Sprintf("%s %s %s×", first.Stage, u.name, harness.Fixed(y/x, 1)))
			}
		}
	}
	d.Claim("GraphTurbo uses the units far more than TVM in the last three of four stages",
		"yes, in a figure without numbers",
		"at least twice as much in: "+strings.Join(far, ", "), harness.Agreement(len(far) == 2*len(lastStages)))
	d.Note("The paper's bars are not published as numbers.")
	var categories []string
	drawn := make([][]stageRow, len(runs)) // the paper's four stages, and what it does not draw behind them
	for i, r := range runs {
		drawn[i] = slices.Clone(r.Rows)
		other := func(s stageRow) int { return min(1, strings.Index(s.Stage+"stage ", "stage ")) }
		slices.SortStableFunc(drawn[i], func(a, b stageRow) int { return other(a) - other(b) })
	}
	for _, s := range drawn[0] {
		categories = append(categories, s.Stage)
	}
	panel := func(title string, of func(stageRow) float64) plots.Groups {
		g := plots.Groups{Title: title, YLabel: "Utilisation (% of peak)", XLabel: "Stage of ResNet-50",
			Categories: categories}
		for i, r := range runs {
			s := plots.Series{Name: display[r.Variant]}
			for _, x := range drawn[i] {
				s.Values = append(s.Values, 100*of(x))
			}
			g.Series = append(g.Series, s)
		}
		return g
	}
	d.Bars("utilization", "Utilisation by stage",
		panel("Matrix units (MME)", func(s stageRow) float64 { return s.MME }),
		panel("Vector units (VME)", func(s stageRow) float64 { return s.VME }))
	d.File("fig17.csv", f.csv(runs))
	return d.Report(harness.Data{Data: runs})
}

func (f stageUse) csv(runs []stageRun) []byte {
	type row struct {
		stageRun
		stageRow
	}
	var list []row
	for _, r := range runs {
		for _, s := range r.Rows {
			list = append(list, row{r, s})
		}
	}
	return harness.CSV(list, harness.Fields(
		"model batch variant batches_per_cluster stage time_s time_share macs mme_utilization vme_utilization",
		harness.Field[row]{Name: "model", Of: func(row) any { return f.configuration.Network }},
		harness.Field[row]{Name: "batch", Of: func(row) any { return f.configuration.BatchSize }}))
}

// Fig17 is the utilisation by stage.
func Fig17() harness.Experiment { return fig17().experiment() }
