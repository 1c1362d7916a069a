package bound_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// A sketch builds a network's graph.
type sketch struct {
	*model.Builder
	batch int64
	count int
}

func (s *sketch) op(kind model.Kind, a model.Attr, in ...model.TensorID) model.TensorID {
	s.count++
	return s.Op(kind, fmt.Sprintf("%s%d", kind, s.count), a, in...)
}

func (s *sketch) weights(shape ...int64) model.TensorID {
	s.count++
	return s.Param(fmt.Sprintf("w%d", s.count), model.F16, shape...)
}

// times puts so many operators in a row.
func (s *sketch) times(n int, x model.TensorID, kinds ...model.Kind) model.TensorID {
	for i := range n {
		x = s.op(kinds[i%len(kinds)], model.Attr{}, x)
	}
	return x
}

func sketched(name string, build func(s *sketch)) network.Network {
	return network.Network{Name: name, Graph: func(batch int64) (*model.Graph, error) {
		s := &sketch{Builder: model.NewBuilder(name), batch: batch}
		build(s)
		return s.Build()
	}}
}

// Small networks that once had schedules faster than their bound, each for a cause of its own, with
// a latency that a short search reaches.
func TestOnceBroken(t *testing.T) {
	for _, c := range []struct {
		net    network.Network
		batch  int64
		found  float64 // at most
		launch float64 // seconds; 0: the machine's
	}{
		// What lies between two cuts has the second cut once.
		{sketched("two operands of one product below one tensor", func(s *sketch) {
			x := s.op("Relu", model.Attr{}, s.Input("x", model.F16, s.batch, 1, 320, 8))
			y, z := s.op("MatMul", model.Attr{}, x, s.weights(1, 8, 8, 512)), s.op("MatMul", model.Attr{}, x, s.weights(1, 8, 8,
				512))
			y = s.op("MatMul", model.Attr{}, y, s.op("Transpose", model.Attr{Perm: []int64{0, 1, 3, 2}}, z))
			s.Output(s.op("ReduceMax", model.Attr{Axes: []int64{3}}, y))
		}), 4, 59.9e-6, 0},
		// A product does not wait for its bias.
		{sketched("an activation as a bias", func(s *sketch) {
			x := s.Input("x", model.F16, s.batch, 64)
			y, z := s.op("Gemm", model.Attr{}, x, s.weights(64, 1024)), s.op("Gemm", model.Attr{}, x, s.weights(64, 1024))
			y = s.op("Gemm", model.Attr{}, y, s.weights(1024, 1024), s.times(12, z, "Tanh"))
			s.Output(s.op("ReduceSum", model.Attr{Axes: []int64{1}}, y))
		}), 4096, 180e-6, 0},
		// A layer runs at the rate of any of its types that are equally wide.
		{sketched("types of equal size", func(s *sketch) {
			x := s.times(200, s.Input("x", model.I8, s.batch, 65536, 8), "Abs", "Neg")
			s.Output(s.op("Cast", model.Attr{Axis: int64(model.F8)}, x))
		}), 4, 128e-6, 0},
		// Inputs that leave as they are do not move, and results leave once.
		{sketched("an input as an output", func(s *sketch) {
			s.Output(s.op("Relu", model.Attr{}, s.Input("x", model.F16, s.batch, 64)), s.Input("p", model.F16, s.batch, 1<<20))
		}), 4, 20.9e-6, 0},
		{sketched("an output four times", func(s *sketch) {
			x := s.op("Relu", model.Attr{}, s.Input("x", model.F16, s.batch, 1<<20))
			s.Output(x, x, x, x)
		}), 4, 225.7e-6, 0},
		// A constant of a chunk may be smaller than that of the whole share.
		{sketched("a constant that grows with the batch", func(s *sketch) {
			x := s.op("Mul", model.Attr{}, s.Input("x", model.F16, s.batch, 64, 1), s.weights(s.batch, 64, 16384))
			s.Output(s.op("ReduceSum", model.Attr{Axes: []int64{2}, KeepDims: true}, x))
		}), 64, 486e-6, 0},
		// The first core has most of the rows, whichever of a layer's outputs are needed.
		{sketched("the second output alone", func(s *sketch) {
			x := s.op("MatMul", model.Attr{}, s.Input("x", model.F16, s.batch, 57, 8), s.weights(8, 16384))
			for range 10 {
				y := s.op("Mul", model.Attr{}, x, s.weights(1))
				s.Output(s.OpN("TopK", fmt.Sprintf("TopK%d", s.count), model.Attr{Axis: 2, Splits: []int64{64}}, y)[1])
			}
		}), 4, 376e-6, 0},
		// A load that does not happen has no latency.
		{sketched("the border of a Pad", func(s *sketch) {
			x := s.op("Pad", model.Attr{Pads: []int64{0, 64, 0, 0}}, s.Input("x", model.F16, s.batch, 1))
			s.Output(s.op("Relu", model.Attr{}, s.op("Slice", model.Attr{Starts: []int64{0, 0}, Steps: []int64{1, 1},
				Shape: []int64{s.batch, 32}}, x)))
		}), 4, 1e-6, 1e-9},
	} {
		t.Run(c.net.Name, func(t *testing.T) {
			chip, err := scheduler.OpenMachine("stcp920")
			if err != nil {
				t.Fatal(err)
			}
			chip.LaunchSeconds = cmp.Or(c.launch, chip.LaunchSeconds)
			b, err := bound.Cold(t.Context(), c.net, chip, c.batch)
			if err != nil {
				t.Fatal(err)
			}
			greedy, err := recipes.Lookup("cross-layer")
			if err != nil {
				t.Fatal(err)
			}
			best, err := search.Best(t.Context(), c.net, chip, c.batch, search.BestOptions{Evaluations: 200,
				Recipes: []scheduler.Recipe{greedy}})
			if err != nil {
				t.Fatal(err)
			}
			found := best.LatencySeconds()
			if found < b.Seconds || found > c.found {
				t.Errorf("found %g s, the bound is %g s by %q, expected at least that and at most %g s", found, b.Seconds, b.Term,
					c.found)
			}
		})
	}
}

// Two results of one layer may be spread over different numbers of cores, all of which load what they need.
func TestTwoResultsOfOneLayer(t *testing.T) {
	net := sketched("two results", func(s *sketch) {
		x := s.Input("x", model.F16, s.batch, 1)
		s.Output(s.op("Concat", model.Attr{}, x, x), s.op("Relu", model.Attr{}, s.Input("y", model.F16, s.batch, 64, 16, 64)))
	})
	chip, err := scheduler.OpenMachine("tpu-v4i")
	if err != nil {
		t.Fatal(err)
	}
	chip.CoreTypes[0].Count, chip.DDR.BandwidthBytesPerSecond = 4, 1e9
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	recipe = recipe.With("group", scheduler.Strategy{Name: "one", Decide: func(_ context.Context,
		d *scheduler.Draft) error {
		sg := &schedule.SubGraph{Ops: []model.OpID{0, 1}}
		sg.Inputs, sg.Outputs = schedule.Boundary(d.Graph, sg.Ops)
		d.Grouping = &schedule.Grouping{Groups: []*schedule.SubGraph{sg}}
		return nil
	}})
	made, err := scheduler.Run(t.Context(), net, chip, 1, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bound.Cold(t.Context(), net, made.Spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := made.File(schedulefile.Origin{})
	p := &f.Schedules[0]
	p.Groups[0].Layers, p.Groups[0].LayerCores, p.Memory = [][]int{{0, 1}}, nil, nil
	p.Instances[0].Cores = []int64{2, 1}
	if made, err = scheduler.Restore(t.Context(), f, chip); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(made.LatencySeconds()); err != nil {
		t.Error(err)
	}
}

// One load gathers up to three quarters of the LLB of an input.
func TestInputInOneLoad(t *testing.T) {
	net := sketched("product", func(s *sketch) {
		s.Output(s.op("MatMul", model.Attr{}, s.Input("x", model.F16, s.batch, 89, 256), s.weights(256, 16)))
	})
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	chip.Clusters, chip.LLB.SizeBytes, chip.DDRLink.LatencySeconds = 1, 64<<10, 1e-4
	recipe, err := recipes.Lookup("tvm-llb")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduler.Run(t.Context(), net, chip, 1, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := *made.Plans[0][0].Schedule
	nest := &schedule.Nest{Tiles: 1, Columns: []int64{8}, Reduction: []int64{64, 64, 64, 64}, Depth: 2, Loads: 1,
		Pieces: 1, Sums: 1, Vector: schedule.AtColumns, Store: schedule.AtColumns, Stage: 4, Once: true, Group: 4,
		Cores: s.Steps[0].Binding}
	if err := s.Follow(0, nest); err != nil {
		t.Fatal(err)
	}
	p, err := lower.Program(net.Name, made.Spec, [][]lower.Segment{{{Schedule: &s, Iterations: 1}}}, made.Lower)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for _, c := range p.Commands {
		if c.Kind == isa.DDRLoad && c.Operand == 0 {
			most = max(most, c.Bytes)
		}
	}
	if most < 40<<10 {
		t.Errorf("a load brings %d bytes of the input at most, expected more than half of the LLB", most)
	}
	r, err := sim.Run(t.Context(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bound.Cold(t.Context(), net, made.Spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(float64(r.TotalPs) * 1e-12); err != nil {
		t.Error(err)
	}
}

// What tiles bring of a tensor adds up to all of it.
func TestTilesBringAll(t *testing.T) {
	net := sketched("attention", func(s *sketch) {
		x, y := s.Input("x", model.F16, s.batch, 2, 64, 64), s.Input("y", model.F16, s.batch, 2, 64, 64)
		s.Output(s.op("Attention", model.Attr{Group: 1, Softmax: true}, x, y, s.weights(s.batch, 2, 64, 5)))
	})
	chip, err := scheduler.OpenMachine("ipu")
	if err != nil {
		t.Fatal(err)
	}
	chip.Clusters = 1
	recipe, err := recipes.Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduler.Run(t.Context(), net, chip, 200, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	brought := map[int32]int64{}
	for _, c := range made.Program.Commands {
		if c.Kind == isa.DDRLoad {
			brought[c.Operand] += c.Bytes
		}
	}
	for operand, want := range []int64{200 * 2 * 64 * 64 * 2, 200 * 2 * 64 * 64 * 2, 200 * 2 * 64 * 5 * 2} {
		if n := brought[int32(operand)]; n < want {
			t.Errorf("%d bytes come of operand %d, expected at least its %d", n, operand, want)
		}
	}
}

// An attention has tiles of its own of each of its operands, and so no two of them are one tensor.
func TestAttentionOfItself(t *testing.T) {
	whole := sketched("one operator", func(s *sketch) {
		x := s.Input("x", model.F16, s.batch, 2, 64, 64)
		s.Output(s.op("Attention", model.Attr{Group: 1, Softmax: true}, x, x, s.weights(s.batch, 2, 64, 5)))
	})
	if _, err := whole.Graph(1); err == nil || !strings.Contains(err.Error(), `reads "x" as inputs 0 and 1`) {
		t.Errorf("got %v, expected the second operand to be refused", err)
	}
	g, err := sketched("several", func(s *sketch) {
		x := s.Input("x", model.F16, s.batch, 2, 64, 64)
		y := s.op("MatMul", model.Attr{}, x, s.op("Transpose", model.Attr{Perm: []int64{0, 1, 3, 2}}, x))
		s.Output(s.op("MatMul", model.Attr{}, s.op("Softmax", model.Attr{Axis: 3}, y), s.Input("v", model.F16, s.batch, 2, 64,
			8)))
	}).Graph(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, n, err := simplify.FuseAttention(g); n > 0 || err != nil {
		t.Errorf("%d attentions are put together (%v), expected none", n, err)
	}
}
