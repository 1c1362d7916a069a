package solve_test

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/systems/mofang/partition"
)

func init() {
	ofSystems = append(ofSystems, addPartition)
	posedBySystems = append(posedBySystems, posePartition)
}

func addPartition(solver milp.Solver, add adder) {
	r := rand.New(rand.NewPCG(1, 3))
	graph := layers(r, 60)
	whole := &partition.Division{CPUs: [][]int{make([]int, len(graph.Nodes))}}
	sum := 0.0
	for i, v := range graph.Nodes {
		whole.CPUs[0][i] = v.ID
		sum += v.CPULatency
	}
	add(partition.Methods(), "partition", sum,
		func(ctx context.Context, name string, set settings) (solve.Outcome, error) {
			return outcome(partition.Solve(ctx, graph, name, partition.Options{Options: with(set, whole, solver)}))
		})
}

func posePartition(r *rand.Rand, unit float64, bytes int64, odd func() float64,
	solver milp.Solver) posed {
	graph := layers(r, 6)
	graph.Accelerators, graph.CPUs = 1+r.IntN(2), r.IntN(2)
	graph.MemoryBytes = 0
	for i := range graph.Nodes {
		v := &graph.Nodes[i]
		v.AcceleratorLatency *= unit * odd()
		v.CPULatency = v.AcceleratorLatency * float64(r.IntN(3))
		v.SizeBytes = float64(r.IntN(4)) * unit * odd()
		if r.IntN(2) == 0 {
			graph.MemoryBytes += v.SizeBytes
		}
	}
	for i := range graph.Edges {
		graph.Edges[i].Cost *= unit
	}
	if err := graph.Validate(); err != nil {
		panic(err)
	}
	least := math.Inf(1)
	every(len(graph.Nodes), graph.Accelerators+graph.CPUs, func(device []int) {
		d := &partition.Division{Accelerators: make([][]int, graph.Accelerators), CPUs: make([][]int, graph.CPUs)}
		for i, at := range device {
			if at < graph.Accelerators {
				d.Accelerators[at] = append(d.Accelerators[at], i)
			} else {
				d.CPUs[at-graph.Accelerators] = append(d.CPUs[at-graph.Accelerators], i)
			}
		}
		if load, err := graph.MaxLoad(d); err == nil && load < least && graph.Check(d) == nil {
			least = load
		}
	})
	return posed{"partition", least, false, partition.Methods(),
		func(ctx context.Context, name string) (solve.Outcome, error) {
			return outcome(partition.Solve(ctx, graph, name,
				partition.Options{Options: with[*partition.Division](settings{}, nil, solver)}))
		}}
}

// layers is a graph of four nodes side by side, to divide over three accelerators and a
// CPU.
func layers(r *rand.Rand, n int) *partition.Problem {
	p := &partition.Problem{Name: "layers", Accelerators: 3, CPUs: 1, MemoryBytes: 1}
	for i := range n {
		time := 1 + r.Float64()
		p.Nodes = append(p.Nodes, partition.Node{ID: i, Supported: true, AcceleratorLatency: time, CPULatency: 10 * time,
			Color: partition.NoColor})
		for range min(i/4, 2) {
			p.Edges = append(p.Edges, partition.Edge{From: i/4*4 - 4 + r.IntN(4), To: i})
		}
	}
	for i := range p.Edges {
		p.Edges[i].Cost = float64(1+p.Edges[i].From%5) / 20
	}
	return p
}
