package balancing

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/systems/mofang/balance"
	"github.com/dsasched/dsasched/systems/mofang/partition"
)

// divided is a graph divided by each method.
type divided struct {
	Graph   string             `json:"graph"`
	Nodes   int                `json:"nodes"`
	Devices int                `json:"accelerators"`
	Loads   map[string]float64 `json:"max_loads"`
	Bound   float64            `json:"bound"`
	Proven  bool               `json:"proven"`
	Ideals  int                `json:"ideals"`
}

// pipelineGraph draws a graph of a transformer's shape: blocks of three branches that
// meet, with a by-pass, whose times vary by a tenth.
func pipelineGraph(blocks, accelerators int, seed uint64) *partition.Problem {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &partition.Problem{Name: fmt.Sprintf("%d blocks", blocks), Accelerators: accelerators, CPUs: 1, MemoryBytes: 1e12}
	var costs []float64
	add := func(time, cost float64, inputs ...int) int {
		i := len(p.Nodes)
		time *= 1 + rng.Float64()/10
		p.Nodes = append(p.Nodes, partition.Node{ID: i, Supported: true, AcceleratorLatency: time, CPULatency: 10 * time,
			Color: partition.NoColor, SizeBytes: 1e6})
		costs = append(costs, cost)
		for _, h := range inputs {
			p.Edges = append(p.Edges, partition.Edge{From: h, To: i, Cost: costs[h]})
		}
		return i
	}
	x := add(0.1, 0.2)
	for range blocks {
		var heads []int
		for range 3 {
			h := add(1, 0.1, x)
			heads = append(heads, add(0.1, 0.1, h))
		}
		s := add(0.5, 0.3, heads[0], heads[1])
		s = add(0.2, 0.3, s)
		s = add(0.5, 0.1, s, heads[2])
		y := add(0.1, 0.1, add(1, 0.1, s), x)
		f := add(2, 0.4, y)
		f = add(2, 0.1, add(0.3, 0.4, f))
		x = add(0.1, 0.1, f, y)
	}
	return p
}

// short writes a load with four digits.
func short(load float64) string { return fmt.Sprintf("%.4g", load) }

// Networks whose training steps are divided.
var trained = []string{"resnet18", "resnet50", "inception-v3", "bert-128"}

const (
	trainedBatch   = 16
	trainedDevices = 4
)

func partitions() harness.Experiment {
	sizes := [][2]int{{4, 3}, {8, 4}, {16, 6}, {32, 6}}
	return harness.Single("mofang-partition", "graphs divided over accelerators: exactly, as PipeDream does, greedily",
		paper+"its pipelines; Tarnawski et al. (NeurIPS 2020) for the problem", struct {
			Sizes          [][2]int
			Networks       []string
			Batch, Devices int
			Server         string
		}{sizes, trained, trainedBatch, trainedDevices, machine},
		func(ctx context.Context) (rows []divided) {
			problems := harness.Each(sizes, func(size [2]int) *partition.Problem {
				return pipelineGraph(size[0], size[1], 1)
			})
			n := bail.Of(chips.Load(machine))
			for _, name := range trained {
				net := bail.Of(network.Open(name, network.Options{DType: model.F32}))
				p := bail.Of(balance.Division(bail.Of(net.Graph(trainedBatch)), n, trainedDevices, 0))
				p.Name = name + ", training"
				problems = append(problems, p)
			}
			for _, p := range problems {
				row := divided{Graph: p.Name, Nodes: len(p.Nodes), Devices: p.Accelerators, Loads: map[string]float64{}}
				for _, m := range partition.Methods() {
					if m.NeedsSolver {
						continue
					}
					r := bail.Of(partition.Solve(ctx, p, m.Name, partition.Options{}))
					row.Loads[m.Name] = r.MaxLoad
					if m.Name == "exact" {
						row.Bound, row.Proven, row.Ideals = r.Bound, r.Status == milp.Optimal, r.Ideals
					}
				}
				rows = append(rows, row)
			}
			return rows
		},
		func(d *harness.Document, rows []divided) {
			t := harness.Table{Title: "Largest load of a device", Name: "loads",
				Columns: harness.Columns("<Graph", "Nodes", "Accelerators", "Ideals", "Exact", "PipeDream", "Greedy", "<Proven")}
			for _, r := range rows {
				proven := "yes"
				if !r.Proven {
					proven = "no, bound " + short(r.Bound)
				}
				t.Add(r.Graph, r.Nodes, r.Devices, r.Ideals, short(r.Loads["exact"]), short(r.Loads["pipedream"]),
					short(r.Loads["greedy"]), proven)
			}
			d.Note(
				"Training steps are of a batch of %d, in seconds on the devices of %s; the gradients and updates of an operator have its colour.", trainedBatch, machine)
			d.Note(
				"Made graphs of a transformer's shape. The published graphs of the data set are not part of the project: 'dsasched solve partition' reads them, and docs/formulations.md has what it finds.")
			d.Table(t)
		})
}
