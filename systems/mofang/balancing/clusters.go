package balancing

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

const (
	clustersMachine = "stcp920"
	chipsMachine    = "stcp920x4" // of several such chips
	clustersVariant = "cross-layer"
)

var (
	clustersNetworks = []string{"resnet50", "bert-128", "gpt3-175b-decode"}
	clustersBatches  = []int64{1, 2, 4, 8}
	clustersWays     = []way{{"batch", "batch", clustersMachine}, {"pipeline", "pipeline", clustersMachine},
		{"layers", "layers", clustersMachine}, {"pipeline, 4 chips", "pipeline", chipsMachine}}
)

// A way is a division of work over the clusters of a machine.
type way struct{ title, by, machine string }

// A division is a batch of a network on a chip whose clusters divide something between them.
type division struct {
	Model    string `json:"model"`
	Batch    int64  `json:"batch"`
	Machine  string `json:"hardware"`
	Clusters string `json:"clusters"`
	// LatencySeconds is the least of all chunks, and DDRBytes what then passes through the DDR;
	// RatePerSecond, of batches in a row, is the largest.
	LatencySeconds float64 `json:"latency_s"`
	Chunk          int64   `json:"chunk"`
	DDRBytes       int64   `json:"ddr_bytes"`
	LinkBytes      int64   `json:"link_bytes"` // between chips
	RatePerSecond  float64 `json:"steady_throughput_per_s"`
	RateChunk      int64   `json:"steady_chunk"`
}

// divide tries all chunks that divide what a cluster sees of the batch.
func divide(ctx context.Context, name string, batch int64, machine string, by scheduler.Division) (*division, error) {
	net, err := network.Open(name, network.Options{})
	if err != nil {
		return nil, err
	}
	spec, err := scheduler.OpenMachine(machine)
	if err != nil {
		return nil, err
	}
	recipe := harness.Recipe(clustersVariant)
	share := batch
	if by == scheduler.OverBatch {
		share = schedule.Shares(batch, spec.Clusters)[0]
	}
	chunks := schedule.Divisors(share, scheduler.MaxTunedChunk)
	d := &division{Model: name, Batch: batch, Machine: machine, Clusters: by.Name()}
	for _, chunk := range chunks {
		r, err := scheduler.Run(ctx, net, spec, batch, recipe, scheduler.Options{Chunk: chunk, Clusters: by})
		if err != nil {
			return nil, err
		}
		rate, err := r.Steady(ctx)
		var large *lower.TooLargeError
		if err != nil && !errors.As(err, &large) {
			return nil, err
		}
		if l := r.LatencySeconds(); d.Chunk == 0 || l < d.LatencySeconds {
			d.LatencySeconds, d.Chunk, d.DDRBytes, d.LinkBytes = l, chunk, 0, 0
			for i, res := range r.Program.Resources {
				switch bytes := r.Sim.Resources[i].Bytes; res.Kind {
				case isa.DDRBandwidth:
					d.DDRBytes += bytes
				case isa.ToChips:
					d.LinkBytes += bytes
				}
			}
		}
		if rate > d.RatePerSecond {
			d.RatePerSecond, d.RateChunk = rate, chunk
		}
	}
	return d, nil
}

func clusters() harness.Experiment {
	e := harness.Experiment{Name: "mofang-clusters",
		Description: "a network over the clusters of a chip, or of four: by the batch, in pipeline stages, in pieces of layers",
		Paper:       paper + "its pipelines, on clusters and chips"}
	e.Plan = func() (*harness.Plan, error) {
		p := &harness.Plan{}
		for _, name := range clustersNetworks {
			for _, batch := range clustersBatches {
				for _, w := range clustersWays {
					d, err := scheduler.LookupDivision(w.by)
					if err != nil {
						return nil, err
					}
					key := fmt.Sprintf("%s-%d-%s-%s", name, batch, w.by, w.machine)
					p.Cells = append(p.Cells, harness.Cell{Key: key, Label: key,
						Inputs: []any{name, batch, w.by, w.machine, clustersVariant},
						Run:    func(ctx context.Context) (any, error) { return divide(ctx, name, batch, w.machine, d) }})
				}
			}
		}
		p.Report = harness.Of(func(rows []division) (*harness.Report, error) { return reportClusters(e, rows) })
		return p, nil
	}
	return e
}

func reportClusters(e harness.Experiment, rows []division) (*harness.Report, error) {
	d := harness.NewDocument(e)
	latency := harness.Table{Title: "Latency of a batch, ms", Name: "latency",
		Columns: harness.Columns("<Network", "Batch")}
	rate := harness.Table{Title: "Batches in a row, elements/s", Name: "rate",
		Columns: harness.Columns("<Network", "Batch")}
	moved := harness.Table{Title: "Through the DDRs for the latency, MB", Name: "ddr",
		Columns: harness.Columns("<Network", "Batch")}
	for i := 0; i < len(rows); i += len(clustersWays) {
		key := []string{rows[i].Model, fmt.Sprint(rows[i].Batch)}
		l, r, m := append([]string{}, key...), append([]string{}, key...), append([]string{}, key...)
		for k, row := range rows[i : i+len(clustersWays)] {
			if i == 0 {
				for _, t := range []*harness.Table{&latency, &rate, &moved} {
					t.AddColumns(clustersWays[k].title)
				}
			}
			perSecond := "–"
			if row.RatePerSecond > 0 {
				perSecond = short(row.RatePerSecond)
			}
			l, r, m = append(l, short(row.LatencySeconds*1e3)), append(r, perSecond),
				append(m, fmt.Sprintf("%.0f", float64(row.DDRBytes)/1e6))
		}
		latency.Rows, rate.Rows, moved.Rows = append(latency.Rows, l), append(rate.Rows, r), append(moved.Rows, m)
	}
	d.Note(
		"Variant %s on %s. By the batch, a cluster runs the whole network on its share; as a pipeline, each has a stage of the exact partition; by layers, each has a piece of the layers of which that takes less time. What passes between clusters passes through the DDR, and between chips from the sender's DDR over the link of %s.", clustersVariant, clustersMachine, chipsMachine)
	d.Note(
		"Each number is that of the best chunk of all divisors of what a cluster sees. Four chips that each run the network on a batch of their own have four times one chip's elements/s. A dash: batches in a row are too many commands to simulate.")
	d.Table(latency, rate, moved)
	return d.Report(harness.Data{Data: rows})
}
