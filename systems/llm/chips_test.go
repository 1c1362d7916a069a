package llm_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm"
)

// columns is a feed-forward of two products whose weights take the DDR's time.
func columns(batch int64) (*model.Graph, error) {
	b := model.NewBuilder("columns")
	x := b.Input("x", model.F16, batch, 1, 2048)
	y := b.Op("MatMul", "up", model.Attr{}, x, b.Param("up.weight", model.F16, 2048, 8192))
	y = b.Op("MatMul", "down", model.Attr{}, b.Op("Relu", "relu", model.Attr{}, y),
		b.Param("down.weight", model.F16, 8192, 2048))
	b.Output(b.Op("Add", "add", model.Attr{}, x, y))
	return b.Build()
}

// chipAndRecipe is an STCP920 to put several of, and the recipe of their programs.
func chipAndRecipe(t *testing.T) (*hardware.Spec, scheduler.Recipe) {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	return spec, recipe
}

// Columns first, rows second: one sum over the chips for two products, and each chip loads its
// share of the weights.
func TestShard(t *testing.T) {
	spec, recipe := chipAndRecipe(t)
	net := network.Network{Name: "columns", Graph: columns}
	shard := func(method string) (*llm.Sharded, error) {
		list, err := llm.Shard(context.Background(), net, spec, 1, []string{method}, recipe, false, binding.Options{},
			scheduler.Options{})
		if err != nil {
			return nil, err
		}
		return &list[0], nil
	}
	if _, err := shard("search"); err == nil || !strings.Contains(err.Error(), "one chip") {
		t.Errorf("a machine of one chip gives %v", err)
	}
	spec.Chips = &hardware.Chips{Count: 4, Link: hardware.Link{BandwidthBytesPerSecond: 25e9, LatencySeconds: 2e-6}}
	whole, err := shard("whole")
	if err != nil {
		t.Fatal(err)
	}
	if whole.Seconds != whole.OneChip || whole.CollectiveSeconds != 0 || whole.Pieces != 1 {
		t.Errorf("all on every chip takes %g s in %d pieces, on one chip %g", whole.Seconds, whole.Pieces, whole.OneChip)
	}
	a, err := shard("search")
	if err != nil {
		t.Fatal(err)
	}
	if a.Seconds > whole.Seconds/2 || a.Bound > a.Objective || a.Status != "optimal" || a.BatchDivided != nil {
		t.Errorf("four chips take %g s (one %g), %s, objective %g, bound %g", a.Seconds, whole.Seconds, a.Status,
			a.Objective, a.Bound)
	}
	if got := a.Operators[0].Layout + ", " + a.Operators[1].Layout + ", " +
		a.Operators[2].Layout; got != "cut 2, cut 2, partial" {
		t.Errorf("the operators are %s, expected cut 2, cut 2, partial", got)
	}
	sum := 0.0
	for _, m := range a.Moves {
		if m.Before < 1 || m.Before > a.Pieces {
			t.Errorf("%s of %s is before piece %d of %d", m.Kind, m.Tensor, m.Before, a.Pieces)
		}
		sum += m.Seconds
	}
	if math.Abs(sum-a.CollectiveSeconds) > 1e-15 || sum == 0 {
		t.Errorf("collectives take %g s, their sum is %g", a.CollectiveSeconds, sum)
	}
}

// Behind an exchange, nothing begins before it has ended but loads of what no earlier part makes, and some do.
func TestExchange(t *testing.T) {
	spec, recipe := chipAndRecipe(t)
	net := network.Network{Name: "columns", Graph: columns}
	r, err := scheduler.Run(t.Context(), net, spec, 4, recipe, scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	alone := r.Sim.TotalPs
	x := &lower.Exchange{Seconds: 3e-3, Bytes: 1 << 16}
	for _, in := range r.Schedule.Graph.Inputs {
		if tensor := r.Schedule.Graph.Tensor(in); tensor.Name == "x" {
			x.Late = append(x.Late, tensor.Name)
		}
	}
	for k := range r.Plans {
		again := r.Plans[k][0]
		again.Exchange = x
		r.Plans[k] = append(r.Plans[k], again)
	}
	if err := r.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if total := r.Sim.TotalPs; total < alone+3e9 || total >= 2*alone+3e9 {
		t.Errorf("two parts and 3 ms of exchange take %d ps, one %d", total, alone)
	}
	ends, ahead := map[int32]int64{}, 0
	exchanged := map[int32]bool{} // the clusters whose exchange the list has passed
	for i := range r.Program.Commands {
		c := &r.Program.Commands[i]
		cluster := r.Program.Queues[c.Queue].Cluster
		if r.Program.Labels[c.Label] == "exchange" {
			exchanged[cluster] = true
			ends[cluster] = max(ends[cluster], r.Sim.End[i])
			continue
		}
		if !exchanged[cluster] || r.Sim.Start[i] >= ends[cluster] {
			continue
		}
		reads, _, ok := r.Program.Data(i)
		late := !ok || c.Kind != isa.DDRLoad && c.Kind != isa.L1Load
		for _, operand := range reads {
			late = late || slices.Contains(x.Late, r.Schedule.Graph.Tensor(model.TensorID(operand.Tensor)).Name)
		}
		if ahead++; late {
			t.Errorf("command %d, %v, begins %d ps before the exchange has ended", i, c.Kind, ends[cluster]-r.Sim.Start[i])
		}
	}
	if len(exchanged) != spec.Clusters || ahead == 0 || len(x.Late) != 1 {
		t.Errorf("%d clusters exchange %v, %d loads run ahead", len(exchanged), x.Late, ahead)
	}
	x.Late[0] = "y"
	if err := r.Simulate(t.Context()); err == nil || !strings.Contains(err.Error(), `found no input "y"`) {
		t.Errorf("an unknown input: %v", err)
	}
}

// As one program, pieces take no less than their collectives and weights, and at most a launch each more than one after
// the other, where loads run ahead of the first launch.
func TestShardOverlapped(t *testing.T) {
	spec, recipe := chipAndRecipe(t)
	for _, torus := range [][]int{nil, {4}, {2, 2}} {
		spec.Chips = &hardware.Chips{Count: 4, Link: hardware.Link{BandwidthBytesPerSecond: 25e9, LatencySeconds: 2e-6},
			Torus: torus}
		list, err := llm.Shard(t.Context(), network.Network{Name: "columns", Graph: columns}, spec, 1, []string{"search"},
			recipe, true, binding.Options{}, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := &list[0]
		least := a.CollectiveSeconds + 2*2*2048*8192/4/spec.DDR.BandwidthBytesPerSecond
		if a.Overlapped == nil || *a.Overlapped < least || a.Chunk != 1 ||
			*a.Overlapped > a.Seconds+float64(a.Pieces)*spec.LaunchSeconds || len(a.Moves) == 0 {
			t.Errorf("torus %v: %+v, one after the other %g s, at least %g", torus, a, a.Seconds, least)
		} else {
			t.Logf("torus %v: %g s, %g one after the other", torus, *a.Overlapped, a.Seconds)
		}
	}
}

// Where collectives take long, the loads of weights that go on beside them make one program faster than the sum of
// pieces and collectives, by what an LLB takes of them at most.
func TestShardHidesLoads(t *testing.T) {
	spec, recipe := chipAndRecipe(t)
	const latency = 50e-6
	for _, torus := range [][]int{nil, {2}} {
		spec.Chips = &hardware.Chips{Count: 2, Link: hardware.Link{BandwidthBytesPerSecond: 25e9, LatencySeconds: latency},
			Torus: torus}
		net := network.Network{Name: "gated", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("gated")
			x := b.Input("x", model.F16, batch, 1, 2048)
			for i := range 3 {
				up, down := fmt.Sprintf("up%d", i), fmt.Sprintf("down%d", i)
				y := b.Op("Relu", fmt.Sprintf("relu%d", i), model.Attr{}, b.Op("MatMul", up, model.Attr{}, x,
					b.Param(up+".weight", model.F16, 2048, 4096)))
				x = b.Op("Add", fmt.Sprintf("add%d", i), model.Attr{}, x, b.Op("MatMul", down, model.Attr{}, y,
					b.Param(down+".weight", model.F16, 4096, 2048)))
			}
			b.Output(x)
			return b.Build()
		}}
		list, err := llm.Shard(t.Context(), net, spec, 1, []string{"search"}, recipe, true, binding.Options{},
			scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := &list[0]
		if a.Overlapped == nil || len(a.Moves) < 2 {
			t.Fatalf("torus %v: %d collectives, expected two or more beside which loads go on: %+v", torus, len(a.Moves), a)
		}
		hidden := a.Seconds - *a.Overlapped
		most := float64(spec.LLB.SizeBytes) / spec.DDR.BandwidthBytesPerSecond * float64(len(a.Moves))
		if hidden < latency/2 || hidden > min(most, a.CollectiveSeconds)+float64(a.Pieces)*spec.LaunchSeconds {
			t.Errorf("torus %v: %g s as one program, %g one after the other with %d collectives of %g s", torus, *a.Overlapped,
				a.Seconds, len(a.Moves), a.CollectiveSeconds)
		}
		t.Logf("torus %v: %g s as one program, %g one after the other, of which collectives %g", torus, *a.Overlapped,
			a.Seconds, a.CollectiveSeconds)
	}
}
