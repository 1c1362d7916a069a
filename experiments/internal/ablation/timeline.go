package ablation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/plots/recording"
	"github.com/dsasched/dsasched/scheduler"
)

// timeline records what one cluster does by variants, on some of the paper's configurations.
type timeline struct {
	hardware string
	labels   []string // of the configurations
	variants []string
}

// Timeline records the variants of Fig. 15 for the viewer of the report page: each command of a cluster with its
// operator and time, and each buffer with its address, size and time.
func Timeline() harness.Experiment {
	return timeline{"stcp920", []string{"A", "B"}, []string{"tvm", "llb", "l1", "ordering", "cross-layer"}}.experiment()
}

func (t timeline) experiment() harness.Experiment {
	return harness.Experiment{
		Name:        "timeline",
		Description: "what the units and memories of a cluster do over time, variant by variant",
		Paper:       "GraphTurbo (OSDI 2023), the variants of Fig. 15",
		Plan:        t.plan,
	}
}

func (t timeline) plan() (*harness.Plan, error) {
	spec, specHash := harness.Machine(t.hardware)
	var list []literature.Configuration
	for _, c := range literature.Configurations() {
		if slices.Contains(t.labels, c.Label) {
			list = append(list, c)
		}
	}
	p := &harness.Plan{}
	for _, c := range list {
		for _, name := range t.variants {
			v, at := literature.ByText(name)
			src, opt := harness.OpenNetwork(literature.At(c.Network, at)), literature.Options(c.PaperChunk(v))
			p.Cells = append(p.Cells, harness.Cell{
				Key: src.Name + "-" + v.Name,
				Inputs: map[string]any{
					"model": src.Name, "dtype": model.F16.String(), "hardware": spec.Name,
					"hardware_sha256": specHash, "batch": c.BatchSize, "variant": v, "options": opt,
					"tick_ps": recording.TickPs,
				},
				Run: func(ctx context.Context) (any, error) {
					r, err := scheduler.Run(ctx, src, spec, c.BatchSize, v, opt)
					if err != nil {
						return nil, err
					}
					return record(r, c.Unit), nil
				},
			})
		}
	}
	p.Report = harness.Of(func(runs []recording.Recorded) (*harness.Report, error) {
		return t.report(list, spec, runs)
	})
	return p, nil
}

// record takes down what cluster 0 does.
func record(r *scheduler.Result, unit string) recording.Recorded {
	return recording.Record(r, 0, harness.RowOf(r, harness.PaperChunks, unit), math.MaxInt)
}

func (t timeline) report(list []literature.Configuration, spec *hardware.Spec, runs []recording.Recorded) (
	*harness.Report, error) {
	d := harness.NewDocument(t.experiment())
	rec := recording.New()
	type summary struct {
		Model    string      `json:"model"`
		Variant  string      `json:"variant"`
		Commands int         `json:"commands"`
		Buffers  int         `json:"buffers"`
		Row      harness.Row `json:"row"`
	}
	var rows []summary
	for i, c := range list {
		conf, err := recording.Join(recording.Configuration{Name: c.Network, Title: literature.NetworkTitle(c.Network),
			Hardware: t.hardware,
			Batch:    c.BatchSize, Unit: c.Unit}, runs[i*len(t.variants):(i+1)*len(t.variants)])
		if err != nil {
			return nil, err
		}
		rec.Configurations = append(rec.Configurations, conf)
		tab := harness.Table{Name: c.Network, Title: fmt.Sprintf("%s, batch %d on %s, one of %d clusters", conf.Title,
			conf.Batch, t.hardware, spec.Clusters), Columns: harness.Columns("<Variant", "Batches per\ncluster",
			"Latency\n(ms)", "Recorded|commands|buffers")}
		for _, v := range conf.Variants {
			s := summary{Model: c.Network, Variant: v.Name, Row: v.Row}
			for _, q := range v.Queues {
				s.Commands += q.Commands
			}
			for _, m := range v.Memories {
				s.Buffers += m.Buffers
			}
			rows = append(rows, s)
			tab.Add(v.Name, v.Row.BatchesPerCluster, harness.Fixed(1e3*v.Row.LatencySeconds, 2), s.Commands, s.Buffers)
		}
		d.Table(tab)
	}
	d.Note(
		"Batches per cluster are the paper's. All clusters do the same at the same time, so one is recorded: cluster 0, from the first command to the last.")
	d.Note("%s holds every command and buffer, for the viewer of the report page; times are rounded to %d ns.",
		recording.File, recording.TickPs/1000)
	rep, err := d.Report(harness.Data{Data: rows})
	if err != nil {
		return nil, err
	}
	data, err := rec.JSON()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", recording.File, err)
	}
	rep.Files = append(rep.Files, harness.File{Name: recording.File, Data: append(data, '\n')})
	return rep, nil
}
