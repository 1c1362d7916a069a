package schedule_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

func network(t testing.TB, name string, batch int64) *model.Graph {
	t.Helper()
	g, err := zoo.Build(name, zoo.Options{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	if g, _, err = simplify.Run(g); err != nil {
		t.Fatal(err)
	}
	return g
}

func allOps(g *model.Graph) []model.OpID {
	ids := make([]model.OpID, len(g.Ops))
	for i := range ids {
		ids[i] = model.OpID(i)
	}
	return ids
}

func conv(b *model.Builder, name string, x model.TensorID, out, kernel, stride int64) model.TensorID {
	w := b.Param(name+".w", model.F16, out, b.Tensor(x).Shape[1], kernel, kernel)
	p := kernel / 2
	return b.Op("Conv", name, model.Attr{Strides: []int64{stride, stride}, Dilations: []int64{1, 1},
		Pads: []int64{p, p, p, p}, Group: 1}, x, w)
}

// randomGraph has branches, residuals, reshapes and convolutions.
func randomGraph(t testing.TB, rng *rand.Rand) *model.Graph {
	t.Helper()
	b := model.NewBuilder("random")
	c := 1 + rng.Int63n(6)
	live := []model.TensorID{b.Input("x", model.F16, 4, c, 8, 8)}
	for i, n := 0, 1+rng.Intn(9); i < n; i++ {
		name := fmt.Sprintf("op%d", i)
		x := live[rng.Intn(len(live))]
		var y model.TensorID
		switch rng.Intn(5) {
		case 0:
			y = conv(b, name, x, c, 3, 1)
		case 1:
			y = b.Op("Add", name, model.Attr{}, x, live[rng.Intn(len(live))])
		case 2:
			y = b.Op("Reshape", name, model.Attr{Shape: []int64{4, c * 64}}, x)
			y = b.Op("Reshape", name+"back", model.Attr{Shape: []int64{4, c, 8, 8}}, y)
		case 3:
			y = conv(b, name, x, c, 1, 1)
		default:
			y = b.Op("Relu", name, model.Attr{}, x)
		}
		live = append(live, y)
	}
	b.Output(live[len(live)-1])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	// Dead branches would never be scheduled.
	g, _, err = simplify.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Peak against its definition: at every operator, the bytes of all buffers between
// their first write (external ones: the start) and their last read (outputs: the
// end). A reshape shares its input's buffer.
func TestPeakAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for trial := 0; trial < 400; trial++ {
		g := randomGraph(t, rng)
		if len(g.Ops) == 0 {
			continue
		}
		ops := allOps(g)
		owner := make([]model.TensorID, len(g.Tensors))
		for i := range owner {
			owner[i] = model.TensorID(i)
		}
		for _, op := range g.Ops {
			if op.Kind == "Reshape" {
				owner[op.Outputs[0]] = owner[op.Inputs[0]]
			}
		}
		reg := schedule.InstanceRegions(g, ops, g.Outputs, -1, 1, 0)
		whole := schedule.Peak(g, ops, g.Outputs, reg, schedule.PeakOptions{})
		for _, layered := range []bool{false, true} {
			step, steps := make([]int, len(g.Ops)), len(g.Ops)
			for i := range step {
				step[i] = i
			}
			if layered {
				layers := schedule.Layers(g, ops)
				steps = len(layers)
				for i, l := range layers {
					for _, id := range l.Ops {
						step[id] = i
					}
				}
			}
			from, to := map[model.TensorID]int{}, map[model.TensorID]int{}
			touch := func(id model.TensorID, i int) {
				if g.Tensor(id).Role == model.Constant {
					return
				}
				id = owner[id]
				if _, ok := from[id]; !ok {
					from[id] = i
					if g.Tensor(id).Role == model.Input {
						from[id] = 0
					}
				}
				to[id] = max(to[id], i)
			}
			for o, op := range g.Ops {
				i := step[o]
				for _, in := range op.Inputs {
					touch(in, i)
				}
				for _, o := range op.Outputs {
					touch(o, i)
				}
			}
			for _, o := range g.Outputs {
				touch(o, steps)
			}
			want := int64(0)
			for i := range steps {
				sum := int64(0)
				for id, a := range from {
					made := g.Tensor(id).Producer != model.NoOp
					if a <= i && i <= to[id] && !(layered && made && a == to[id] && len(g.Tensor(id).Consumers) > 0) {
						sum += g.Tensor(id).Bytes()
					}
				}
				want = max(want, sum)
			}
			if got := schedule.Peak(g, ops, g.Outputs, reg, schedule.PeakOptions{Layers: layered}); got != want {
				t.Fatalf("trial %d: peak %d, want %d (layers: %v)", trial, got, want, layered)
			}
		}
		inPlace := schedule.Peak(g, ops, g.Outputs, reg, schedule.PeakOptions{InPlace: true})
		if inPlace > whole {
			t.Fatalf("trial %d: %d bytes in place, %d without", trial, inPlace, whole)
		}
	}
}

// Instances of any split cover the outputs once and find what they read.
func TestInstancesOfRandomSplits(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for trial := 0; trial < 200; trial++ {
		g := randomGraph(t, rng)
		if len(g.Ops) < 2 {
			continue
		}
		cut := 1 + rng.Intn(len(g.Ops)-1)
		gr := &schedule.Grouping{}
		for k, ops := range [][]model.OpID{allOps(g)[:cut], allOps(g)[cut:]} {
			sg := &schedule.SubGraph{ID: k, Name: fmt.Sprint("g", k), Ops: ops, Split: schedule.SplitInfo{Factor: 1, Dim: -1}}
			sg.Inputs, sg.Outputs = schedule.Boundary(g, ops)
			if len(sg.Outputs) == 0 {
				gr = nil
				break
			}
			dims := []int{0, 2, 3}
			d := dims[rng.Intn(3)]
			// The grouping never makes sub-graphs with an output that is also read
			// inside, whose halos would be written twice.
			if len(sg.Outputs) == 1 && len(g.Tensor(sg.Outputs[0]).Shape) == 4 {
				sg.Split = schedule.SplitInfo{Factor: []int64{1, 2, 4}[rng.Intn(3)], Dim: d}
			}
			gr.Groups = append(gr.Groups, sg)
		}
		if gr == nil {
			continue
		}
		if err := schedule.CheckGrouping(g, gr); err != nil {
			t.Fatal(err)
		}
		ig := schedule.NewInstanceGraph(g, gr)
		if err := schedule.CheckInstances(g, gr, ig); err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		edges := 0
		for _, inst := range ig.Instances {
			edges += len(inst.Deps)
		}
		coarse := 0
		for _, sg := range gr.Groups {
			for _, in := range sg.Inputs {
				for _, from := range gr.Groups[:sg.ID] {
					for _, o := range from.Outputs {
						if o == in {
							coarse += int(from.Factor() * sg.Factor())
						}
					}
				}
			}
		}
		if edges+ig.RedundantEdges != coarse {
			t.Fatalf("trial %d: %d edges and %d redundant ones, want %d together", trial, edges, ig.RedundantEdges, coarse)
		}
	}
}

// A 3x3 convolution split along rows reads one row of its neighbours.
func TestHaloDependencies(t *testing.T) {
	b := model.NewBuilder("halo")
	x := b.Input("x", model.F16, 1, 4, 8, 8)
	y := b.Op("Relu", "r", model.Attr{}, x)
	b.Output(conv(b, "c", y, 4, 3, 1))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	gr := &schedule.Grouping{}
	for k, id := range allOps(g) {
		sg := &schedule.SubGraph{ID: k, Name: g.Op(id).Name, Ops: []model.OpID{id},
			Split: schedule.SplitInfo{Factor: 4, Dim: 2}}
		sg.Inputs, sg.Outputs = schedule.Boundary(g, sg.Ops)
		gr.Groups = append(gr.Groups, sg)
	}
	ig := schedule.NewInstanceGraph(g, gr)
	var got [][]int
	for _, inst := range ig.Instances[4:] {
		var from []int
		for _, d := range inst.Deps {
			from = append(from, d.From)
		}
		got = append(got, from)
	}
	want := [][]int{{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("instances read %v, want %v", got, want)
	}
	if ig.RedundantEdges != 16-10 {
		t.Errorf("%d redundant edges, want 6", ig.RedundantEdges)
	}
}

func TestLayers(t *testing.T) {
	for _, c := range []struct {
		network string
		layers  int
	}{
		// 53 convolutions, each with its bias, ReLU and residual; two poolings, the
		// fully connected layer and the softmax. The paper's Table 3 has 58 for TVM.
		{"resnet50", 53 + 2 + 1 + 1},
		// Three of the embedding and 11 per encoder layer: q, k, scores, softmax, v,
		// context, output, norm, up, down, norm.
		{"bert-128", 3 + 12*11},
	} {
		g := network(t, c.network, 1)
		layers := schedule.Layers(g, allOps(g))
		if len(layers) != c.layers {
			t.Errorf("%s has %d layers, want %d", c.network, len(layers), c.layers)
		}
		for _, l := range layers {
			if len(l.Outputs) != 1 {
				t.Errorf("%s: layer %q has %d outputs", c.network, l.Name, len(l.Outputs))
			}
		}
	}
}

const alike, uneven = schedule.SlicesAlike, schedule.SlicesUneven

func TestPlainBinding(t *testing.T) {
	for _, c := range []struct {
		name      string
		shape     []int64 // N, C, H, W
		forbidden []bool
		cores     int64
		how       schedule.Slices
		want      schedule.Binding
	}{
		{"the batch takes all", []int64{8, 64, 56, 56}, nil, 8, alike, schedule.Binding{8, 1, 1, 1}},
		{"rows for one image", []int64{1, 64, 56, 56}, nil, 8, alike, schedule.Binding{1, 1, 8, 1}},
		{"rows do not divide further", []int64{2, 64, 28, 28}, nil, 8, alike, schedule.Binding{2, 1, 4, 1}},
		{"on to columns and channels", []int64{1, 64, 14, 14}, nil, 8, alike, schedule.Binding{1, 2, 2, 2}},
		{"odd extents leave it to the channels", []int64{1, 512, 7, 7}, nil, 8, alike, schedule.Binding{1, 8, 1, 1}},
		{"nothing divides", []int64{1, 5, 7, 7}, nil, 8, alike, schedule.Binding{1, 1, 1, 1}},
		{"a forbidden dimension", []int64{8, 64, 56, 56}, []bool{true, false, false, false}, 8, alike,
			schedule.Binding{1, 1, 8, 1}},
		{"nine cores use eight", []int64{9, 64, 56, 56}, nil, 9, alike, schedule.Binding{1, 1, 8, 1}},
		{"uneven: what divides stays", []int64{1, 64, 14, 14}, nil, 8, uneven, schedule.Binding{1, 2, 2, 2}},
		{"uneven: rows, 7.88 of 8 cores busy", []int64{1, 768, 197, 1}, nil, 8, uneven, schedule.Binding{1, 1, 8, 1}},
		{"uneven: not 7 rows, 7 of 8", []int64{1, 512, 7, 7}, nil, 8, uneven, schedule.Binding{1, 8, 1, 1}},
		{"uneven: 7 rows, if nothing keeps more busy", []int64{1, 5, 7, 7}, nil, 8, uneven, schedule.Binding{1, 1, 7, 1}},
		{"uneven: heads and rows", []int64{1, 197, 12, 197}, []bool{false, true, false, false}, 8, uneven,
			schedule.Binding{1, 1, 4, 2}},
		{"six cores, three images", []int64{3, 64, 56, 56}, nil, 6, uneven, schedule.Binding{1, 1, 4, 1}},
		{"by divisors", []int64{3, 64, 56, 56}, nil, 6, schedule.SlicesByDivisors, schedule.Binding{3, 1, 2, 1}},
		{"twelve cores", []int64{1, 64, 56, 56}, nil, 12, schedule.SlicesByDivisors, schedule.Binding{1, 1, 4, 3}},
	} {
		r := model.Whole(c.shape)
		got := schedule.GridBinding(r, []int{0, 2, 3, 1}, c.forbidden, []int64{c.cores}, c.how)
		if !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if err := schedule.CheckBinding(r, got, c.forbidden, c.cores); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Loops go to the dimensions of a grid one after the other.
func TestGridBinding(t *testing.T) {
	for _, c := range []struct {
		name      string
		shape     []int64 // N, C, H, W
		forbidden []bool
		grid      []int64
		how       schedule.Slices
		want      schedule.Binding
	}{
		{"a line", []int64{2, 64, 28, 28}, nil, []int64{8}, alike, schedule.Binding{2, 1, 4, 1}},
		{"images along one, channels along the other", []int64{16, 64, 56, 56}, nil, []int64{8, 4}, alike,
			schedule.Binding{8, 4, 1, 1}},
		{"what one image leaves goes to the rows", []int64{1, 64, 56, 56}, nil, []int64{8, 4}, alike,
			schedule.Binding{1, 4, 8, 1}},
		{"a whole dimension that is no power of two", []int64{9, 768, 1, 1}, nil, []int64{9, 12}, alike,
			schedule.Binding{9, 12, 1, 1}},
		{"else a power of two", []int64{32, 64, 1, 1}, nil, []int64{9, 12}, alike, schedule.Binding{8, 8, 1, 1}},
		{"forbidden channels", []int64{16, 64, 56, 56}, []bool{false, true, false, false}, []int64{8, 4}, alike,
			schedule.Binding{8, 1, 1, 4}},
		{"three dimensions", []int64{16, 64, 56, 56}, nil, []int64{8, 4, 2}, alike, schedule.Binding{8, 4, 2, 1}},
		{"nothing divides", []int64{1, 5, 7, 7}, nil, []int64{2, 3}, alike, schedule.Binding{1, 1, 1, 1}},
		{"uneven: rows and channels", []int64{1, 5, 7, 7}, nil, []int64{2, 3}, uneven, schedule.Binding{1, 3, 2, 1}},
	} {
		r := model.Whole(c.shape)
		got := schedule.GridBinding(r, []int{0, 2, 3, 1}, c.forbidden, c.grid, c.how)
		if !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		cores := int64(1)
		for _, n := range c.grid {
			cores *= n
		}
		if err := schedule.CheckBinding(r, got, c.forbidden, cores); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The uneven plain binding keeps most cores busy, of all tuples of powers of two for
// which there are cores, and where the even one is as good, it is that or one further out.
func TestUnevenBindingAgainstAll(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for range 500 {
		r := model.Region{{Hi: 1 + rng.Int63n(9)}, {Hi: 1 + rng.Int63n(30)}, {Hi: 1 + rng.Int63n(9)}}
		layout := rng.Perm(3)
		cores := int64(1) << rng.Intn(5)
		got := schedule.GridBinding(r, layout, nil, []int64{cores}, uneven)
		if err := schedule.CheckBinding(r, got, nil, cores); err != nil {
			t.Fatal(err)
		}
		var best schedule.Binding
		for i := cores; i > 0; i /= 2 {
			for j := cores / i; j > 0; j /= 2 {
				for k := cores / i / j; k > 0; k /= 2 {
					b := schedule.One(3)
					for at, n := range []int64{i, j, k} {
						b[layout[at]] = model.Pieces(r[layout[at]].Len(), n)
					}
					if best == nil || b.Busy(r) > best.Busy(r) {
						best = b
					}
				}
			}
		}
		if got.Busy(r) != best.Busy(r) {
			t.Fatalf("%v on %d cores: %v keeps %d busy, %v keeps %d", r, cores, got, got.Busy(r), best, best.Busy(r))
		}
		even := schedule.GridBinding(r, layout, nil, []int64{cores}, alike)
		further := 0
		for at := 0; at < 3 && further == 0; at++ {
			further = cmp.Compare(got[layout[at]], even[layout[at]])
		}
		if even.Busy(r) == best.Busy(r) && further < 0 {
			t.Fatalf("%v on %d cores, layout %v: %v, though %v keeps as many busy", r, cores, layout, got, even)
		}
	}
}

// The cores' slices partition the box.
func TestSlicesPartition(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for trial := 0; trial < 200; trial++ {
		r := model.Region{{Lo: 3, Hi: 4 + rng.Int63n(12)}, {Lo: 0, Hi: 1 + rng.Int63n(20)}, {Lo: 5, Hi: 6 + rng.Int63n(5)}}
		b := schedule.One(3)
		for d := range b {
			b[d] = model.Pieces(r[d].Len(), 1+rng.Int63n(16))
		}
		if err := schedule.CheckBinding(r, b, nil, b.Cores()); err != nil {
			t.Fatal(err)
		}
		layout := rng.Perm(3)
		sum := int64(0)
		var seen []model.Region
		for c := int64(0); c < b.Cores(); c++ {
			s := schedule.Slice(r, b, layout, c)
			if n := s.Elements(); n == 0 || c > 0 && n > seen[0].Elements() {
				t.Fatalf("binding %v: core %d has %d elements, the first one %v", b, c, n, seen)
			}
			sum += s.Elements()
			for _, o := range seen {
				if s.Overlap(o) != 0 {
					t.Fatalf("binding %v: slices %v and %v overlap", b, s, o)
				}
			}
			seen = append(seen, s)
		}
		if sum != r.Elements() {
			t.Fatalf("binding %v: slices hold %d of %d elements", b, sum, r.Elements())
		}
		if schedule.Slice(r, b, layout, b.Cores()) != nil {
			t.Fatalf("binding %v: core %d has a slice", b, b.Cores())
		}
	}
}

func TestTrack(t *testing.T) {
	g := network(t, "bert-128", 4)
	// From the first attention's output back through the heads' reshapes and
	// transposes to the queries: the batch matches everywhere.
	var ops []model.OpID
	for _, op := range g.Ops {
		ops = append(ops, op.ID)
		if op.Name == "encoder.layer0.attention.norm" {
			break
		}
	}
	out := g.Op(ops[len(ops)-1]).Outputs
	tr := schedule.Track(g, ops, out, 0)
	if !tr.Splittable || !tr.Exact || tr.Recomputes || tr.Unmatched != 0 {
		t.Errorf("batch: %+v", tr)
	}
	// A LayerNorm's own axis must not be split.
	if tr := schedule.Track(g, ops, out, 2); tr.Splittable {
		t.Error("the hidden dimension of a LayerNorm counts as splittable")
	}
	// Positions mix in the attention: splitting them computes keys again.
	if tr := schedule.Track(g, ops, out, 1); !tr.Recomputes {
		t.Error("splitting positions through an attention recomputes nothing")
	}
}

func TestEvaluateOrder(t *testing.T) {
	// Two producers, a third output that waits, a consumer of the first two.
	items := []schedule.OrderItem{
		{OutputBytes: 4, WorkspaceBytes: 2, Seconds: 1},
		{OutputBytes: 4, WorkspaceBytes: 2, Seconds: 1},
		{OutputBytes: 4, WorkspaceBytes: 2, Seconds: 1},
		{OutputBytes: 4, WorkspaceBytes: 2, Seconds: 1, Reads: []int{0, 1}},
		{OutputBytes: 1, Seconds: 1, Reads: []int{2, 3}},
	}
	for _, c := range []struct {
		name            string
		order           []int
		capacity, moved int64
		overflow, peak  int64
	}{
		{"all fits", []int{0, 1, 2, 3, 4}, 18, 0, 0, 18},
		// Output 2 lives longest and leaves when instance 3 needs 14 bytes.
		{"the waiting output is stored and loaded", []int{0, 1, 2, 3, 4}, 14, 8, 0, 14},
		{"a better order moves nothing", []int{0, 1, 3, 2, 4}, 14, 0, 0, 14},
		{"a single instance does not fit", []int{0, 1, 3, 2, 4}, 13, 0, 1, 14},
	} {
		got := schedule.EvaluateOrder(items, c.order, c.capacity)
		if got.MovedBytes != c.moved || max(0, got.OverflowBytes) != c.overflow || got.PeakBytes != c.peak {
			t.Errorf("%s: %+v, want %d bytes moved, %d too many, peak %d", c.name, got, c.moved, c.overflow, c.peak)
		}
	}
}

// On the space of all orders of small chains, the evaluation never claims fewer
// moves than an exhaustive search over all orders and moves finds possible.
func TestEvaluateOrderAgainstExhaustive(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	reached := 0
	for trial := 0; trial < 60; trial++ {
		n := 3 + rng.Intn(3)
		items := make([]schedule.OrderItem, n)
		for i := range items {
			items[i].OutputBytes = 1 + rng.Int63n(4)
			items[i].WorkspaceBytes = rng.Int63n(3)
			for j := 0; j < i; j++ {
				if rng.Intn(2) == 0 {
					items[i].Reads = append(items[i].Reads, j)
				}
			}
		}
		capacity := int64(0)
		for _, it := range items {
			need := it.OutputBytes + it.WorkspaceBytes
			for _, p := range it.Reads {
				need += items[p].OutputBytes
			}
			capacity = max(capacity, need)
		}
		best := exhaustive(items, capacity)
		found := int64(math.MaxInt64)
		var order []int
		var walk func(done int)
		walk = func(done int) {
			if len(order) == n {
				got := schedule.EvaluateOrder(items, order, capacity).MovedBytes
				if got < best {
					t.Fatalf("trial %d: order %v moves %d bytes, the least possible is %d", trial, order, got, best)
				}
				found = min(found, got)
				return
			}
			for i := 0; i < n; i++ {
				ready := done&(1<<i) == 0
				for _, p := range items[i].Reads {
					ready = ready && done&(1<<p) != 0
				}
				if ready {
					order = append(order, i)
					walk(done | 1<<i)
					order = order[:len(order)-1]
				}
			}
		}
		walk(0)
		if found == best {
			reached++
		}
	}
	// The moves are greedy, so the best order need not reach the optimum, but it
	// mostly does.
	if reached < 50 {
		t.Errorf("the best order reaches the optimum in %d of 60 cases", reached)
	}
}

// exhaustive finds the least bytes moved over all orders and all stores and loads,
// by shortest paths over states (ran, in the L1, copied in the LLB).
func exhaustive(items []schedule.OrderItem, capacity int64) int64 {
	type state struct{ ran, lb, gb int }
	dist := map[state]int64{{}: 0}
	done := map[state]bool{}
	n := len(items)
	liveUntil := func(ran int) func(int) bool {
		return func(i int) bool {
			for j, it := range items {
				if ran&(1<<j) != 0 {
					continue
				}
				for _, p := range it.Reads {
					if p == i {
						return true
					}
				}
			}
			return false
		}
	}
	for {
		var s state
		best := int64(-1)
		for k, d := range dist {
			if !done[k] && (best < 0 || d < best) {
				s, best = k, d
			}
		}
		if best < 0 {
			return -1
		}
		done[s] = true
		if s.ran == 1<<n-1 {
			return best
		}
		relax := func(t state, d int64) {
			if old, ok := dist[t]; !ok || d < old {
				dist[t] = d
			}
		}
		used := int64(0)
		for i := range items {
			if s.lb&(1<<i) != 0 {
				used += items[i].OutputBytes
			}
		}
		for i, it := range items {
			bit := 1 << i
			if s.lb&bit != 0 { // store (free with a copy)
				cost := it.OutputBytes
				if s.gb&bit != 0 {
					cost = 0
				}
				relax(state{s.ran, s.lb &^ bit, s.gb | bit}, best+cost)
			} else if s.gb&bit != 0 && used+it.OutputBytes <= capacity {
				relax(state{s.ran, s.lb | bit, s.gb}, best+it.OutputBytes)
			}
			if s.ran&bit == 0 {
				ok := used+it.OutputBytes+it.WorkspaceBytes <= capacity
				for _, p := range it.Reads {
					ok = ok && s.lb&(1<<p) != 0
				}
				if ok {
					t := state{s.ran | bit, s.lb | bit, s.gb}
					live := liveUntil(t.ran)
					for j := 0; j < n; j++ {
						if !live(j) {
							t.lb &^= 1 << j
							t.gb &^= 1 << j
						}
					}
					relax(t, best)
				}
			}
		}
	}
}

// A product keeps what is element-wise behind it, and a reshape; a transposition begins
// a layer of its own, which keeps what follows. Where no product is in front, nothing
// is cut.
func TestFusedLayers(t *testing.T) {
	b := model.NewBuilder("attention")
	x := b.Input("x", model.F16, 4, 16)
	h := b.Op("MatMul", "query", model.Attr{}, x, b.Param("w", model.F16, 16, 16))
	h = b.Op("Add", "bias", model.Attr{}, h, b.Param("b", model.F16, 16))
	h = b.Op("Reshape", "heads", model.Attr{Shape: []int64{4, 2, 8}}, h)
	h = b.Op("Transpose", "turn", model.Attr{Perm: []int64{1, 0, 2}}, h)
	h = b.Op("Relu", "relu", model.Attr{}, h)
	h = b.Op("Softmax", "softmax", model.Attr{Axis: 2}, h)
	b.Output(b.Op("Transpose", "back", model.Attr{Perm: []int64{1, 0, 2}}, h))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range schedule.FusedLayers(g, allOps(g)) {
		s := l.Name + ":"
		for _, id := range l.Ops {
			s += " " + g.Op(id).Name
		}
		got = append(got, s)
	}
	want := []string{"query: query bias heads", "relu: turn relu", "back: softmax back"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("layers %q, want %q", got, want)
	}
}

// Kernels of TVM: Table 3 of the GraphTurbo paper counts 58 and 242 results. What is
// missing of the 242 are the parts of two normalisations in each of twelve layers.
func TestFusedLayersOfNetworks(t *testing.T) {
	for _, c := range []struct {
		name string
		want int
	}{{"resnet50", 57}, {"bert-128", 3 + 12*15}} {
		g := network(t, c.name, 1)
		if got := len(schedule.FusedLayers(g, allOps(g))); got != c.want {
			t.Errorf("%s: %d layers, want %d", c.name, got, c.want)
		}
	}
}

// A scalar that an operator reads is one element.
func TestScalarIsNeeded(t *testing.T) {
	b := model.NewBuilder("scalar")
	x, c := b.Input("x", model.F16, 4), b.Param("c", model.F16)
	b.Output(b.Op("Add", "add", model.Attr{}, c, x))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	reg := schedule.InstanceRegions(g, []model.OpID{0}, g.Outputs, -1, 1, 0)
	if n := reg[c].Elements(); n != 1 {
		t.Errorf("%d elements of the scalar are needed, expected one", n)
	}
}

// Operators in one place of blocks that repeat have one role, and products of the same shapes that are used differently
// have others.
func TestRoles(t *testing.T) {
	g := network(t, "bert-128", 1)
	roles := schedule.Roles(g)
	role := func(layer int, what string) int {
		name := fmt.Sprintf("encoder.layer%d.attention.%s", layer, what)
		i := slices.IndexFunc(g.Ops, func(op *model.Op) bool { return op.Name == name && op.Kind == "MatMul" })
		if i < 0 {
			t.Fatalf("found no product %q", name)
		}
		return roles[i]
	}
	products := []string{"query", "key", "value", "output"}
	for k, what := range products {
		for layer := 2; layer < 10; layer++ { // the first and the last have other neighbours
			if role(layer, what) != role(1, what) {
				t.Errorf("layer %d: %s has another role than in layer 1", layer, what)
			}
		}
		for _, other := range products[:k] {
			if role(4, what) == role(4, other) {
				t.Errorf("%s and %s have one role", what, other)
			}
		}
	}
}
