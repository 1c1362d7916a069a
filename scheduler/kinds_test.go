package scheduler

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// mixedMachine is one of two or three kinds of core, of which the last may run no products.
func mixedMachine(t *testing.T, r *rand.Rand) *hardware.Spec {
	s, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	s = s.Clone()
	classes := []string{"matrix", "reduction", "element-wise", "injective"}
	s.LB.SizeBytes = hardware.Bytes(1 << (10 + r.IntN(8)))
	s.CoreLink.BandwidthBytesPerSecond = []float64{1e9, 1e10, 1e11}[r.IntN(3)]
	first := s.CoreTypes[0]
	s.CoreTypes = nil
	for k := range 2 + r.IntN(2) {
		one := first
		one.Name, one.Count, one.Runs, one.Units = fmt.Sprintf("kind%d", k), 1+r.IntN(8), classes, nil
		for _, u := range first.Units {
			if u.Kind == hardware.Matrix {
				u.Rows, u.Cols = 1<<r.IntN(7), 1<<r.IntN(7)
			} else {
				u.Lanes = 1 << r.IntN(9)
			}
			one.Units = append(one.Units, u)
		}
		if k > 0 && r.IntN(3) == 0 {
			one.Runs = classes[1:]
		}
		s.CoreTypes = append(s.CoreTypes, one)
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

// mixedGraph is a small network of products, additions, softmaxes and joins of earlier results.
func mixedGraph(t *testing.T, r *rand.Rand) *model.Graph {
	b := model.NewBuilder("kinds")
	n, d := int64(4<<r.IntN(5)), int64(8<<r.IntN(4))
	x := b.Input("x", model.F16, n, d)
	made := []model.TensorID{x}
	for i := range 3 + r.IntN(5) {
		name, from := fmt.Sprintf("op%d", i), made[r.IntN(len(made))]
		switch r.IntN(4) {
		case 0, 1:
			x = b.Op("MatMul", name, model.Attr{}, from, b.Param(name+".w", model.F16, d, d))
		case 2:
			x = b.Op("Softmax", name, model.Attr{Axis: 1}, from)
		default:
			x = b.Op("Add", name, model.Attr{}, from, made[len(made)-1])
		}
		made = append(made, x)
	}
	for _, y := range made[1:] {
		if len(b.Tensor(y).Consumers) == 0 {
			b.Output(y)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The kinds of core that are searched cost what the least of all choices costs; the greedy ones cost no less.
func TestKindsBruteForce(t *testing.T) {
	exact, err := Lookup("l1")
	if err != nil {
		t.Fatal(err)
	}
	worse, worst, several := 0, 1.0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		spec, g := mixedMachine(t, r), mixedGraph(t, r)
		d, err := MakeDraft(context.Background(), g, spec, exact.With("kinds", exactKinds), Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p, err := d.kindProblem()
		if err != nil {
			t.Fatal(err)
		}
		cost := func(choice []int) float64 {
			sum := 0.0
			for i := range p.Nodes {
				sum += p.Nodes[i].Cost[choice[i]]
			}
			for _, e := range p.Edges {
				sum += e.Cost[choice[e.From]][choice[e.To]]
			}
			return sum
		}
		least, choice := math.Inf(1), make([]int, len(p.Nodes))
		for {
			least = min(least, cost(choice))
			i := 0
			for ; i < len(choice); i++ {
				if choice[i]++; choice[i] < len(p.Nodes[i].Labels) {
					break
				}
				choice[i] = 0
			}
			if i == len(choice) {
				break
			}
		}
		own, used := make([]int, len(p.Nodes)), map[int]bool{}
		i := 0
		for _, kinds := range d.LayerKinds {
			for _, k := range kinds {
				for l, label := range p.Nodes[i].Labels {
					if kindOf(label) == k {
						own[i] = l
					}
				}
				used[k] = true
				i++
			}
		}
		if len(used) > 1 {
			several++
		}
		if got := cost(own); math.Abs(got-least) > 1e-9*least {
			t.Errorf("seed %d: %g s, the least is %g s", seed, got, least)
		}
		for i := range p.Nodes {
			own[i] = 0
			for l, c := range p.Nodes[i].Cost {
				if c < p.Nodes[i].Cost[own[i]] {
					own[i] = l
				}
			}
		}
		if loss := cost(own) / least; loss > 1+1e-9 {
			worse, worst = worse+1, max(worst, loss)
		} else if loss < 1-1e-9 {
			t.Errorf("seed %d: greedy costs %g of the least", seed, loss)
		}
	}
	if worse == 0 || several < 100 {
		t.Errorf("greedy is worse in %d cases, and several kinds work in %d: these say nothing", worse, several)
	}
	t.Logf("several kinds work in %d; greedy is worse in %d of 1000, at most %.2f times", several, worse, worst)
}

// Side by side, a layer's work is on the cluster of its kind, and the kinds of a cluster share an LLB and a way to the
// DDR. Two chains without passing take about the longer of both, less than one behind the other.
func TestKindsSideBySide(t *testing.T) {
	recipe, err := Lookup("llb")
	if err != nil {
		t.Fatal(err)
	}
	s := mixedMachine(t, rand.New(rand.NewPCG(1, 1)))
	s.Clusters, s.LaunchSeconds, s.LB.SizeBytes, s.DDR.BandwidthBytesPerSecond = 1, 1e-9, 1<<20, 1e12
	s.CoreLink.BandwidthBytesPerSecond = 1e11
	s.CoreTypes = s.CoreTypes[:2]
	s.CoreTypes[1] = s.Clone().CoreTypes[0]
	s.CoreTypes[1].Name = "other"
	net := network.Network{Name: "chains", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("chains")
		for chain := range 2 {
			x := b.Input(fmt.Sprintf("x%d", chain), model.F16, 512*batch, 256)
			for i := range 4 {
				name := fmt.Sprintf("product%d.%d", chain, i)
				x = b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".w", model.F16, 256, 256))
			}
			b.Output(x)
		}
		return b.Build()
	}}
	seconds := map[Division]float64{}
	for _, by := range []Division{OverBatch, OverKinds} {
		r, err := Run(t.Context(), net, s, 1, recipe, Options{Chunk: 1, Clusters: by})
		if err != nil {
			t.Fatal(err)
		}
		seconds[by] = r.LatencySeconds()
		used := map[isa.ResourceKind]map[int32]bool{isa.DDRPort: {}, isa.GBBandwidth: {}, isa.LinkIn: {}}
		kinds := map[int32]int{}
		for _, c := range r.Program.Commands {
			for _, u := range c.Uses {
				if of := used[r.Program.Resources[u.Resource].Kind]; of != nil {
					of[u.Resource] = true
				}
			}
			if c.Kind == isa.Matrix {
				kinds[r.Program.Queues[c.Queue].Cluster]++
			}
		}
		if by == OverKinds && (len(used[isa.DDRPort]) != 1 || len(used[isa.GBBandwidth]) != 1 || len(used[isa.LinkIn]) != 2 ||
			len(kinds) != 2 || kinds[0] != kinds[1]) {
			t.Errorf("resources %v, products by cluster %v", used, kinds)
		}
		if u := r.Sim.MACUtilization; u <= 0 || u > 1 {
			t.Errorf("by %s, the units are busy for %g of the time", by.Name(), u)
		}
	}
	if gain := seconds[OverBatch] / seconds[OverKinds]; gain < 1.5 || gain > 2.1 {
		t.Errorf("side by side is %.3f times as fast, expected about twice", gain)
	}
}
