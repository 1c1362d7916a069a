package graphturbo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

// checkUnions groups a graph and compares all that is put together of parts with what is found
// operator by operator.
func checkUnions(t *testing.T, g *model.Graph, opt schedule.SplitOptions) (unions, plain, bounds, split int) {
	t.Helper()
	gr := newGrouper(g, opt)
	gr.tried = func(n *node) {
		ops := slices.Clone(gr.operators(n))
		in, outputs := schedule.Boundary(g, ops)
		if !slices.Equal(outputs, n.outputs) || len(ops) != n.n || gr.rank[ops[len(ops)-1]] != n.last {
			t.Fatalf("%s: %d operators, the last at %d, outputs %v: want %d, %d, %v", g.Name, n.n, n.last, n.outputs, len(ops),
				gr.rank[ops[len(ops)-1]], outputs)
		}
		infos, peak := gr.split.SplitInfo(ops, outputs)
		var found []schedule.SplitInfo
		for _, f := range n.asked.dims {
			if info, ok := n.asked.at(f); ok {
				found = append(found, info)
			}
		}
		bound := n.outside == nil && opt.Peak() != schedule.PeakOptions{} // of what fits
		if n.peak < peak || n.peak > peak && (!bound || n.peak > opt.L1Bytes) || n.split != Best(infos) ||
			!slices.Equal(infos, found) {
			t.Fatalf("%s: union of %d operators up to %q: peak %d, infos %v, want %d, %v", g.Name, len(ops),
				g.Op(ops[len(ops)-1]).Name, n.peak, found, peak, infos)
		}
		unions++
		if n.peak > peak {
			bounds++
		}
		if n.plain {
			plain++
			return
		}
		all := &listed{g, ops, outputs, gr.split.opt.Peak()}
		for dim := range g.Tensor(outputs[0]).Shape {
			got, want := merging{gr, n}.follow(dim), all.follow(dim)
			if got.splittable != want.splittable {
				t.Fatalf("%s: %q along %d: splittable %v, want %v", g.Name, g.Op(ops[len(ops)-1]).Name, dim,
					got.splittable, want.splittable)
			}
			if !want.splittable {
				continue
			}
			split++
			a := fmt.Sprint(got.adds(), got.recomputes, got.unmatched, got.intermediates, got.results, got.inputs.all().extents)
			b := fmt.Sprint(want.adds(), want.recomputes, want.unmatched, want.intermediates, want.results,
				want.inputs.all().extents)
			if a != b {
				t.Fatalf("%s: %q along %d: %s, want %s", g.Name, g.Op(ops[len(ops)-1]).Name, dim, a, b)
			}
			tr := schedule.Track(g, ops, outputs, dim)
			for _, x := range in {
				if have, ok := got.inputs.get(int32(x)); !ok || have.dim != tr.Dim[x] {
					t.Fatalf("%s: %q along %d: input %d is cut along %d, want %d", g.Name, g.Op(ops[len(ops)-1]).Name, dim, x,
						have.dim, tr.Dim[x])
				}
			}
		}
	}
	for _, sg := range gr.group().Groups {
		if peak := (&listed{g, sg.Ops, sg.Outputs, gr.split.opt.Peak()}).footprint(); peak != sg.PeakBytes {
			t.Fatalf("%s: group of %d operators: peak %d, want %d", g.Name, len(sg.Ops), sg.PeakBytes, peak)
		}
	}
	return unions, plain, bounds, split
}

// tangled is a graph of random operators on matrices, some of which read a part of a result,
// of which others may read the rest.
func tangled(r *rand.Rand, operators int) (*model.Graph, error) {
	b := model.NewBuilder("tangled")
	list := []model.TensorID{b.Input("in", model.F16, 2, 12, 8), b.Input("other", model.F16, 2, 12, 8)}
	read := map[model.TensorID]bool{}
	for i := range operators {
		name := fmt.Sprint("op", i)
		x := list[len(list)-1-r.IntN(min(len(list), 4))]
		s := b.Tensor(x).Shape
		read[x] = true
		var out []model.TensorID
		op := func(kind model.Kind, attr model.Attr, in ...model.TensorID) {
			out = append(out, b.Op(kind, name, attr, in...))
		}
		switch r.IntN(8) {
		case 0:
			op("MatMul", model.Attr{}, x, b.Param(name+".weight", model.F16, s[2], int64(4+4*r.IntN(2))))
		case 1:
			op("Softmax", model.Attr{Axis: int64(1 + r.IntN(2))}, x)
		case 2:
			op("Transpose", model.Attr{Perm: []int64{0, 2, 1}}, x)
		case 3:
			op("Reshape", model.Attr{Shape: []int64{s[0], s[2], s[1]}}, x)
		case 4:
			if n := s[1] - int64(r.IntN(2)); n > 1 {
				op("Slice", model.Attr{Shape: []int64{s[0], n / 2, s[2]}, Starts: []int64{0, int64(r.IntN(2)), 0},
					Steps: []int64{1, 2, 1}}, x)
			}
		case 5:
			if s[2]%2 == 0 {
				out = b.OpN("Split", name, model.Attr{Axis: 2, Splits: []int64{s[2] / 2, s[2] / 2}}, x)
			}
		case 6:
			op("Relu", model.Attr{}, x)
		default:
			for _, y := range list {
				if y != x && r.IntN(3) > 0 && slices.Equal(b.Tensor(y).Shape, s) {
					read[y] = true
					op("Add", model.Attr{}, x, y)
					break
				}
			}
		}
		list = append(list, out...)
	}
	for _, x := range list[2:] {
		if !read[x] {
			b.Output(x)
		}
	}
	return b.Build()
}

func TestUnions(t *testing.T) {
	var graphs []*model.Graph
	add := func(g *model.Graph, err error) {
		t.Helper()
		if err == nil {
			g, _, err = simplify.Run(g)
		}
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	for _, name := range strings.Fields("toy-fig3 toy-fig5 resnet18 mofang-inception squeezenet dlrm mobilenetv2") {
		add(zoo.Build(name, zoo.Options{Batch: 2}))
	}
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		add(tangled(r, 5+i/4))
	}
	layers := schedule.Counting{Layers: true}
	options := []schedule.SplitOptions{{}, {InPlace: true}, {Counting: layers}, {InPlace: true, Counting: layers}}
	unions, plain, bounds, split := 0, 0, 0, 0
	for _, g := range graphs {
		for _, lb := range []int64{400, 16 << 10, 1 << 20} {
			for _, uneven := range []schedule.Uneven{schedule.UnevenAll, schedule.UnevenNone} {
				for _, opt := range options {
					flat := opt.InPlace || opt.Layers
					if flat && (lb == 400 || len(g.Ops) > 70) {
						continue
					}
					opt.L1Bytes, opt.Cores, opt.Uneven = lb, 8, uneven
					opt.MACsPerSecond, opt.VectorOpsPerSecond, opt.LLBBytesPerSecond = 1e13, 1e12, 1e11
					u, p, b, s := checkUnions(t, g, opt)
					unions, plain, bounds, split = unions+u, plain+p, bounds+b, split+s
				}
			}
		}
	}
	if plain < 300 || plain > unions/2 || bounds < unions/20 || split < unions {
		t.Errorf("%d sub-graphs of which %d are plain and %d above their footprint, %d cuts: not what is to be tested",
			unions, plain, bounds, split)
	}
}

// number is a value of a tree that can be put together in one order only.
type number string

func (a number) with(b number) number { return max(a, b) }
func (a number) then(b number) number { return a + b }

// Trees against maps.
func TestTree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	check := func(x *tree[number], want map[int32]number) {
		t.Helper()
		var keys []int32
		all := number("")
		for k := range want {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			all += want[k]
			if v, ok := x.get(k); !ok || v != want[k] {
				t.Fatalf("%d is %q, want %q", k, v, want[k])
			}
		}
		var visited []int32
		x.visit(func(k int32, _ number) { visited = append(visited, k) })
		if !slices.Equal(visited, keys) || x.all() != all {
			t.Fatalf("keys %v, all %q, want %v, %q", visited, x.all(), keys, all)
		}
	}
	for range 2000 {
		var trees [2]*tree[number]
		maps := [2]map[int32]number{{}, {}}
		span := 1 + r.Int32N(40)
		for i := range trees {
			for range r.IntN(12) {
				k, v := r.Int32N(span), number(rune('a'+r.IntN(26)))
				trees[i] = union(trees[i].without(k), leaf(k, v))
				maps[i][k] = v
			}
			check(trees[i], maps[i])
		}
		both := map[int32]number{}
		shared := 0
		for i := range maps {
			for k, v := range maps[i] {
				both[k] = max(both[k], v)
			}
		}
		common(trees[0], trees[1], func(k int32, a, b number) {
			if maps[0][k] != a || maps[1][k] != b {
				t.Fatalf("common %d: %q, %q, want %q, %q", k, a, b, maps[0][k], maps[1][k])
			}
			shared++
		})
		if want := len(maps[0]) + len(maps[1]) - len(both); shared != want {
			t.Fatalf("%d keys in common, want %d", shared, want)
		}
		joined := union(trees[0], trees[1])
		check(joined, both)
		k := r.Int32N(span)
		delete(both, k)
		check(joined.without(k), both)
		check(trees[0], maps[0]) // as before
	}
}
