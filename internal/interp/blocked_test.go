package interp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// blockedNet is a layer with a product: constant or computed second operand, products of images,
// a residual or a bias behind it.
func blockedNet(r *rand.Rand, name string) network.Network {
	kind, extra, heads := r.IntN(5), r.IntN(4), 1+r.Int64N(4)
	m, n, k, reps := 1+r.Int64N(20), 1+r.Int64N(16), 1+r.Int64N(24), 1+r.Int64N(4)
	kernel, stride := 1+r.Int64N(3), 1+r.Int64N(2)
	return network.Network{Name: name, Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder(name)
		var y model.TensorID
		switch kind {
		case 0:
			x := b.Input("x", model.F16, batch, m, k)
			y = b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, k, n))
		case 1:
			x := b.Input("x", model.F16, batch, reps, m, k)
			y = b.Op("MatMul", "product", model.Attr{}, x, b.Input("z", model.F16, batch, reps, k, n))
		case 2:
			x := b.Input("x", model.F16, batch*m, k)
			y = b.Op("Gemm", "product", model.Attr{TransB: true}, x, b.Param("w", model.F16, n, k), b.Param("bias", model.F16,
				n))
		case 3:
			x := b.Input("x", model.F16, batch, m, k)
			y = b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, k, heads*n))
			y = b.Op("Reshape", "heads", model.Attr{Shape: []int64{batch, m, heads, n}}, y)
		default:
			x := b.Input("x", model.F16, batch, k, 3+m/2, kernel+reps)
			y = b.Op("Conv", "product", model.Attr{Strides: []int64{stride, stride}, Dilations: []int64{1, 1},
				Pads: []int64{kernel / 2, kernel / 2, kernel / 2, kernel / 2}, Group: 1}, x,
				b.Param("w", model.F16, n, k, kernel, kernel), b.Param("bias", model.F16, n))
		}
		switch extra {
		case 1:
			y = b.Op("Relu", "relu", model.Attr{}, y)
		case 2:
			y = b.Op("Add", "sum", model.Attr{}, y, b.Input("residual", model.F16, b.Tensor(y).Shape...))
		}
		b.Output(y)
		return b.Build()
	}}
}

// randomBlocked is some blocked nest of a step: most can run.
func randomBlocked(r *rand.Rand, l *lower.Loops, rows int64, window int64) *schedule.Nest {
	cut := func(n, unit int64) []int64 {
		var list []int64
		for at := int64(0); at < n; {
			size := min(n-at, unit*(1+r.Int64N(max(1, n/unit))))
			list = append(list, size)
			at += size
		}
		return list
	}
	d, slices := l.Dims, int64(0)
	if n := 2 + r.Int64N(3); l.Weights > 0 && d.Reps == 1 && d.K/window%n == 0 {
		slices = n
		d.K /= n
	}
	nest := &schedule.Nest{Rfactor: slices, Tiles: d.Reps * (1 + r.Int64N(max(1, min(6, rows/d.Reps)))),
		Depth: 1 + r.Int64N(4),
		Loads: 1, Pieces: 1, Vector: schedule.AtColumns, Store: schedule.AtColumns,
		Columns: cut(d.N, 1), Reduction: cut(d.K, window), ColumnsFirst: r.IntN(2) == 0, Sums: 1 + r.Int64N(2)}
	if r.IntN(3) == 0 { // parts of panels stay
		nest.ColumnsFirst, nest.Depth, nest.Reduction = false, 3+r.Int64N(3), nil
		for at := int64(0); at < d.K; at += window {
			nest.Reduction = append(nest.Reduction, min(window, d.K-at))
		}
	}
	if l.Weights == 0 {
		nest.ColumnDepth = r.Int64N(4)
	} else {
		nest.Stay = r.IntN(3) == 0
		if n := nest.ReductionTiles(); n%2 == 0 && r.IntN(2) == 0 {
			nest.Group = 2
		}
	}
	switch n := nest.ReductionTiles(); r.IntN(4) {
	case 0:
		nest.Stage = 1
	case 1:
		nest.Stage = n
	}
	nest.Once = nest.Stage > 0 && r.IntN(2) == 0
	if n := nest.Staying(); n > 1 && r.IntN(2) == 0 {
		nest.Keep = 1 + r.Int64N(n-1)
	}
	return nest
}

// blockedCase makes a random layer with a blocked nest; nil: the nest can't run.
func blockedCase(t *testing.T, seed uint64) ([][]lower.Segment, *isa.Program, *schedule.Nest) {
	r := rand.New(rand.NewPCG(seed, 7))
	spec := machine(r)
	spec.Clusters = 1
	spec.CoreTypes[0].Count = pick(r, 1, 2, 3, 4, 6, 12)
	spec.L1.SizeBytes, spec.L1WeightBytes = hardware.Bytes(pick(r, 1, 4, 16)<<10), hardware.Bytes(pick(r, 0, 1, 4)<<10)
	recipe, err := recipes.Lookup(pick(r, "tvm", "tvm-llb"))
	if err != nil {
		t.Fatal(err)
	}
	net := blockedNet(r, fmt.Sprintf("blocked-%d", seed))
	made, err := scheduler.Run(context.Background(), net, spec, 1+r.Int64N(2), recipe,
		scheduler.Options{Uneven: schedule.UnevenAll})
	if err != nil {
		return nil, nil, nil
	}
	s := *made.Plans[0][0].Schedule
	s.Steps, s.Values = slices.Clone(s.Steps), slices.Clone(s.Values)
	i := slices.IndexFunc(s.Steps, func(st schedule.Step) bool {
		return s.Graph.OnMatrixUnit(s.Graph.Op(s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer].Anchor))
	})
	if i < 0 {
		return nil, nil, nil
	}
	st := &s.Steps[i]
	cores := schedule.One(len(st.Binding))
	for d := range cores {
		cores[d] = 1 + r.Int64N(3)
	}
	if s.Rebind(i, cores) != nil {
		cores = st.Binding
	}
	m, err := cost.New(s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	l := lower.LoopsOf(&s, i, m)
	if l.Dims.N == 0 {
		return nil, nil, nil
	}
	window := int64(1)
	if a := s.Graph.Op(s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer].Anchor); a.Kind == "Conv" {
		for _, x := range s.Graph.Tensor(a.Inputs[1]).Shape[2:] {
			window *= x
		}
	}
	nest := randomBlocked(r, l, st.CoreOutput.Elements()/l.Dims.N, window)
	nest.Cores = cores
	if shared := s.Shared(i); shared > 0 && r.IntN(2) == 0 {
		nest.Ring = 64 * (1 + r.Int64N(shared/64))
	}
	if s.Follow(i, nest) != nil {
		return nil, nil, nest
	}
	plans := [][]lower.Segment{{{Schedule: &s, Iterations: 1}}}
	p, err := lower.Program(s.Graph.Name, s.Spec, plans, made.Lower)
	if err != nil {
		return nil, nil, nest
	}
	return plans, p, nest
}

// Blocked nests of products and convolutions compute what the network says. With DSASCHED_LONG=1 in the environment
// 10,000 run.
func TestBlockedNests(t *testing.T) {
	ran, sliced, moved, held, most, seeds := 0, 0, 0, 0, 10_000, uint64(sample(700))
	if os.Getenv("DSASCHED_LONG") != "" {
		seeds = 50_000
	}
	for seed := range seeds {
		if ran == most {
			break
		}
		plans, p, nest := blockedCase(t, seed)
		if p == nil {
			continue
		}
		ran++
		if nest.Rfactor > 0 {
			sliced++
		}
		if nest.Ring > 0 {
			moved++
		}
		if nest.Held() > 0 {
			held++
		}
		if err := sim.CheckBuffers(p, simulated(t, p)); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, *nest, err)
		}
		if _, err := interp.Run(p, graphs(plans), seed); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, *nest, err)
		}
	}
	found := fmt.Sprintf("%d nests ran, %d with slices of the reduction, %d with a ring of their own, "+
		"in %d parts of panels stay", ran, sliced, moved, held)
	t.Log(found)
	if least := min(most, int(seeds)/3); ran < least || min(sliced, moved, held) < max(10, least/25) {
		t.Errorf("%s, expected %d, and of these %d", found, least, max(10, least/25))
	}
}

// A blocked nest that can't run is refused with the loop, what it needs and what there is.
func TestBlockedNestsRefused(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	net := network.Network{Name: "one", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("one")
		x := b.Input("x", model.F16, batch, 512, 4096)
		b.Output(b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, 4096, 1024)))
		return b.Build()
	}}
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduler.Run(context.Background(), net, spec, 1, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(n *schedule.Nest)
		want   string // "": it can run
	}{
		{func(*schedule.Nest) {}, ""},
		{func(n *schedule.Nest) { n.Columns = []int64{256, 256} },
			"has columns of 512 and a reduction of 4096 in all, expected 1024 and 4096"},
		{func(n *schedule.Nest) { n.Reduction = []int64{64} }, "has columns of 1024 and a reduction of 64 in all"},
		{func(n *schedule.Nest) { n.Tiles = 1000 }, "has 1000 tiles, expected the step's 1000, and 1 to 64"},
		{func(n *schedule.Nest) { n.Tiles = 1 << 50 }, "tiles, expected"},
		{func(n *schedule.Nest) { n.Sums = 3 }, "has sums of 3 tiles, expected 1 or 2"},
		{func(n *schedule.Nest) { n.Depth = 0 }, "has room for 0 of 2 tiles, expected 1 to all"},
		{func(n *schedule.Nest) { n.Depth = 500 }, "of the L1, there is room for"},
		{func(n *schedule.Nest) { n.Reduction = []int64{2048, 2048} }, "their buffer has 196608"},
		{func(n *schedule.Nest) { n.Stay = true }, "bytes of weights in a buffer of 196608"},
		{func(n *schedule.Nest) { n.Group = 3 }, "brings tiles of weights to the LLB by 3, expected a divisor of the 64"},
		{func(n *schedule.Nest) { n.Stage = 5 }, "gathers tiles of operands in the LLB by 5, expected a divisor of the 64"},
		{func(n *schedule.Nest) { n.Once = true }, "gathers operands in the LLB once, but by no number of tiles"},
		{func(n *schedule.Nest) { n.Keep = 1 }, "keeps 1 loads of a reduction in the LLB, expected once"},
		{func(n *schedule.Nest) { n.ColumnDepth = 2 },
			"has room for 2 tiles of columns, expected 0 or more, and none for weights"},
		{func(n *schedule.Nest) { n.Ring = 64 }, "has a ring of 64 bytes for weights, which have a memory of their own"},
		{func(n *schedule.Nest) { n.Rfactor = 2 }, "rfactor 2 for each of 8 parts, expected 2 or more on 8 cores"},
	} {
		s := *made.Plans[0][0].Schedule
		s.Steps, s.Values = slices.Clone(s.Steps), slices.Clone(s.Values)
		n := &schedule.Nest{Tiles: 2, Depth: 2, Loads: 1, Pieces: 1, Vector: schedule.AtColumns, Store: schedule.AtColumns,
			Sums:    1,
			Columns: []int64{512, 512}, Reduction: slices.Repeat([]int64{64}, 64)}
		c.change(n)
		err := s.Follow(0, n)
		if err == nil {
			_, err = lower.Program("one", s.Spec, [][]lower.Segment{{{Schedule: &s, Iterations: 1}}}, made.Lower)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func simulated(t *testing.T, p *isa.Program) *sim.Result {
	t.Helper()
	r, err := sim.Run(context.Background(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever command of a blocked nest is left out is missed.
func TestBlockedNestsLeftOut(t *testing.T) {
	tried := map[isa.Kind]int{}
	for seed := range uint64(sample(60)) {
		plans, p, nest := blockedCase(t, seed)
		if p == nil || len(p.Commands) > 100 {
			continue
		}
		for i := range p.Commands {
			c := &p.Commands[i]
			if c.Kind < isa.DDRLoad || c.Kind == isa.Vector && nest.Tiles*nest.ColumnTiles() == 1 {
				continue // without any vector work the product's results count
			}
			// Weights that are loaded again may lie elsewhere in their ring.
			if o := p.Tasks[c.Task-1].Reads; c.Kind == isa.DDRLoad || c.Kind == isa.L1Load {
				if name := p.Tensors[o[c.Operand].Tensor].Name; name == "w" || name == "bias" {
					continue
				}
			}
			without := *p
			without.Commands = slices.Clone(p.Commands)
			nothing(&without, i)
			tried[c.Kind]++
			if _, err := interp.Run(&without, graphs(plans), seed); err == nil {
				t.Errorf("seed %d, %+v: nothing is missed without command %d, %v of %+v", seed, *nest, i, c.Kind, c.Portion)
			}
		}
	}
	for _, k := range []isa.Kind{isa.DDRLoad, isa.L1Load, isa.L1Store, isa.DDRStore, isa.Matrix, isa.Vector} {
		if tried[k] < sample(30) {
			t.Errorf("%d commands %v were left out, expected %d", tried[k], k, sample(30))
		}
	}
}
