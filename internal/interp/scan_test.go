package interp_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// scans is a selective scan, as Mamba has it, of random extents.
func scans(r *rand.Rand) network.Network {
	tokens, inner, state := 2+r.Int64N(24), 1+r.Int64N(12), 1+r.Int64N(4)
	return network.Network{Name: "scan", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("scan")
		step, u := b.Input("step", model.F16, batch, tokens, inner, 1), b.Input("u", model.F16, batch, tokens, inner, 1)
		decay := b.Op("CumSum", "decay", model.Attr{Axis: 1},
			b.Op("Mul", "rate", model.Attr{}, step, b.Param("a", model.F16, inner, state)))
		since := b.Op("Exp", "since", model.Attr{}, decay)
		enter := b.Op("Mul", "enter", model.Attr{}, b.Op("Mul", "step.u", model.Attr{}, step, u),
			b.Input("b", model.F16, batch, tokens, 1, state))
		sum := b.Op("CumSum", "sum", model.Attr{Axis: 1}, b.Op("Div", "entered", model.Attr{}, enter, since))
		read := b.Op("Mul", "read", model.Attr{}, b.Op("Mul", "state", model.Attr{}, sum, since),
			b.Input("c", model.F16, batch, tokens, 1, state))
		y := b.Op("ReduceSum", "y", model.Attr{Axes: []int64{3}}, read)
		b.Output(b.Op("Relu", "relu", model.Attr{}, y))
		return b.Build()
	}}
}

// Scans that are cut into parts run as programs that compute what the graph says, and no state is ever a value.
func TestScans(t *testing.T) {
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	ran, cut, left := 0, 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 11))
		spec := machine(r)
		spec.L1.SizeBytes, spec.L1WeightBytes = hardware.Bytes(pick(r, 512, 512, 1024)), 4096
		net := scans(r)
		made, err := scheduler.Run(context.Background(), net, spec, int64(spec.Clusters), recipe, scheduler.Options{Chunk: 1})
		if err != nil {
			continue
		}
		ran++
		s := made.Plans[0][0].Schedule
		for _, v := range s.Values {
			if x := s.Graph.Tensor(v.Tensor); len(x.Shape) == 4 && x.Shape[1] > 1 && x.Shape[2] > 1 && x.Shape[3] > 1 &&
				x.Producer != model.NoOp {
				t.Errorf("seed %d: %q of %v is a value", seed, x.Name, x.Shape)
			}
		}
		if err := sim.CheckBuffers(made.Program, simulated(t, made.Program)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := interp.Run(made.Program, graphs(made.Plans), seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !slices.ContainsFunc(s.Graph.Ops, func(op *model.Op) bool { return strings.HasSuffix(op.Name, ".carry") }) {
			continue
		}
		cut++
		for i := range made.Program.Commands {
			c := &made.Program.Commands[i]
			if cut > 6 || c.Kind != isa.L1Load && c.Kind != isa.L1Store {
				continue
			}
			if o := made.Program.Tasks[c.Task-1].Reads; c.Kind == isa.L1Load &&
				made.Program.Tensors[o[c.Operand].Tensor].Name == "a" {
				continue // what was loaded for another part may lie elsewhere
			}
			without := *made.Program
			without.Commands = slices.Clone(without.Commands)
			nothing(&without, i)
			left++
			if _, err := interp.Run(&without, graphs(made.Plans), seed); err == nil {
				t.Errorf("seed %d: nothing is missed without command %d, %v of %+v", seed, i, c.Kind, c.Portion)
			}
		}
	}
	if ran < 60 || cut < 20 || left < 30 {
		t.Errorf("%d scans ran, %d in parts, %d commands were left out, expected 60, 20 and 30", ran, cut, left)
	}
}

// Sums along the axis of running sums, which end with the last position, are no part of a layer with these.
func TestLayersOfScans(t *testing.T) {
	for _, axis := range []int64{1, 2} {
		b := model.NewBuilder("sums")
		x := b.Op("CumSum", "running", model.Attr{Axis: 1}, b.Input("x", model.F16, 1, 8, 4))
		b.Output(b.Op("ReduceSum", "sum", model.Attr{Axes: []int64{axis}}, x))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		sg := &schedule.SubGraph{Name: "all", Ops: []model.OpID{0, 1}}
		s := &schedule.Schedule{Graph: g, Grouping: &schedule.Grouping{Groups: []*schedule.SubGraph{sg}},
			Layers: [][]schedule.Layer{{schedule.NewLayer(g, sg.Ops)}}}
		if err := schedule.CheckLayers(s); (err != nil) != (axis == 1) ||
			err != nil && !strings.Contains(err.Error(), "2 matrix operators and reductions") {
			t.Errorf("a sum along axis %d: %v", axis, err)
		}
	}
}

// Group normalisations in passes compute what their graph says, over several cores, in an L1 that has no room for a
// group.
func TestNormsInPasses(t *testing.T) {
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 17))
		spec := machine(r)
		spec.CoreTypes[0].Count, spec.L1.SizeBytes, spec.L1WeightBytes = pick(r, 2, 4),
			hardware.Bytes(pick(r, 256, 512)), 4096
		groups, each, height, width := 1+r.Int64N(3), 1+r.Int64N(3), 2+r.Int64N(4), 2+r.Int64N(4)
		net := network.Network{Name: "norm", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("norm")
			n := groups * each
			x := b.Op("Relu", "first", model.Attr{}, b.Input("x", model.F16, batch, n, height, width))
			y := b.Op("GroupNorm", "norm", model.Attr{Group: groups}, x, b.Param("scale", model.F16, n),
				b.Param("bias", model.F16, n))
			b.Output(b.Op("Add", "residual", model.Attr{}, b.Op("Silu", "silu", model.Attr{}, y), x))
			return b.Build()
		}}
		made, err := scheduler.Run(context.Background(), net, spec, int64(spec.Clusters), recipe, scheduler.Options{Chunk: 1})
		if err != nil {
			continue
		}
		ran++
		for _, v := range made.Plans[0][0].Schedule.Values {
			if name := made.Plans[0][0].Schedule.Graph.Tensor(v.Tensor).Name; name == "norm.square" || name == "norm.apart" {
				t.Errorf("seed %d: %q is a value", seed, name)
			}
		}
		if err := sim.CheckBuffers(made.Program, simulated(t, made.Program)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := interp.Run(made.Program, graphs(made.Plans), seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if ran < 40 {
		t.Errorf("%d normalisations ran, expected 40", ran)
	}
}
