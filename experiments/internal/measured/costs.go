package measured

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// evaluations is the number of schedules the search for the best whole one simulates.
const evaluations = 60

// What commands cost is published for these machines, beside the work that they do.
var (
	costMachines = []string{"stcp920", "inferentia2", "wormhole-n150"}
	costNetworks = []string{"squeezenet", "resnet50", "mobilenetv2"}
	costVariants = []string{"tvm", "l1", "cross-layer", "tiled"}
)

// withoutCosts is a machine whose commands cost nothing but their work: no fills, least times, latencies, launches and
// gaps. A gap of a picosecond keeps what a gap forbids.
func withoutCosts(spec *hardware.Spec) *hardware.Spec {
	m := spec.Clone()
	m.LaunchSeconds, m.SyncSeconds, m.MatrixStartSeconds = 0, 0, 0
	if m.GapSeconds > 0 {
		m.GapSeconds = 1e-12
	}
	m.DDR.LatencySeconds, m.DDRLink.LatencySeconds, m.CoreLink.LatencySeconds = 0, 0, 0
	for i := range m.CoreTypes {
		for k := range m.CoreTypes[i].Units {
			u := &m.CoreTypes[i].Units[k]
			u.FillCycles, u.LeastCycles = 0, 0
		}
	}
	return m
}

// cheaper are the latencies of a network on a machine with its costs or without, in seconds.
type cheaper struct {
	Network  string    `json:"network"`
	Costs    bool      `json:"costs"`
	Variants []float64 `json:"variants_s"`
	Best     float64   `json:"best_s,omitempty"`
}

func planCosts(pl *harness.Plan, nets []string, evaluations int) error {
	for _, name := range costMachines {
		spec, hash := harness.Machine(name)
		pl.Cells = append(pl.Cells, harness.Cell{Key: "costs-" + name, Label: "costs of commands on " + name,
			Inputs: struct {
				HardwareHash string   `json:"hardware_sha256"`
				Networks     []string `json:"networks"`
				Variants     []string `json:"variants"`
				Evaluations  int      `json:"evaluations"`
			}{hash, nets, costVariants, evaluations},
			Run: func(ctx context.Context) (any, error) { return compareCosts(ctx, spec, nets, evaluations) }})
	}
	return nil
}

func compareCosts(ctx context.Context, spec *hardware.Spec, nets []string, evaluations int) (
	list []cheaper, err error) {
	for _, name := range nets {
		net, err := network.Open(name, network.Options{DType: harness.Precision(spec)})
		if err != nil {
			return nil, err
		}
		for _, costs := range []bool{false, true} {
			m, batch := spec, int64(spec.Clusters)
			if !costs {
				m = withoutCosts(spec)
			}
			c := cheaper{Network: name, Costs: costs}
			for _, v := range costVariants {
				recipe := harness.Recipe(v)
				r, err := scheduler.Run(ctx, net, m, batch, recipe, scheduler.Options{Chunk: 1})
				if err != nil {
					return nil, fmt.Errorf("%s of %s on %s: %w", v, name, spec.Name, err)
				}
				c.Variants = append(c.Variants, r.LatencySeconds())
			}
			if evaluations > 0 {
				found, err := search.Best(ctx, net, m, batch, search.BestOptions{Evaluations: evaluations})
				if err != nil {
					return nil, err
				}
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				c.Best = found.LatencySeconds()
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// costsTable compares the conclusions with and without the costs of commands.
func costsTable(results []json.RawMessage) (t harness.Table, err error) {
	t = harness.Table{Name: "costs", Title: "What is concluded with and without what commands cost",
		Columns: harness.Columns("<Accelerator", "<Network", "<Costs", "tvm, us",
			"Speedup over tvm|l1|cross-layer|tiled", "Best over|cross-layer|tiled")}
	for i, name := range costMachines {
		var list []cheaper
		if err := json.Unmarshal(results[i], &list); err != nil {
			return t, fmt.Errorf("a result can't be read: %w", err)
		}
		for _, c := range list {
			text := "without"
			if c.Costs {
				text = "published"
			}
			row := []string{name, c.Network, text, harness.Significant(1e6 * c.Variants[0])}
			for _, x := range c.Variants[1:] {
				row = append(row, number(c.Variants[0]/x))
			}
			for _, x := range c.Variants[2:] {
				if c.Best == 0 {
					row = append(row, "–")
				} else {
					row = append(row, number(x/c.Best))
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	t.Notes = []string{
		"An image a cluster, cold. Without: no fill, least time, latency, launch, barrier or gap of any command. Best: " +
			fmt.Sprintf("the best of %d schedules beside those of the variants.", evaluations)}
	return t, nil
}
