package rules_test

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/rules"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
	"github.com/dsasched/dsasched/systems/astitchgpu/xla"
)

func v100(t testing.TB) *simt.Machine {
	t.Helper()
	m, err := simt.Load("v100-simt")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func built(t testing.TB, b *model.Builder) *model.Graph {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// parts is a network of the zoo at the frameworks' grain.
func parts(t testing.TB, name string) *model.Graph {
	t.Helper()
	g, err := zoo.Build(name, zoo.Options{Batch: 1, DType: model.F32})
	if err != nil {
		t.Fatal(err)
	}
	if g, _, err = simplify.Run(g); err != nil {
		t.Fatal(err)
	}
	e, err := grain.To(g, grain.Primitive)
	if err != nil {
		t.Fatal(err)
	}
	return e.Graph
}

// The example of the paper's Fig. 7, as far as its text gives it: two reductions, an
// expensive operator in front of a broadcast, element-wise operators around them. The
// published counts are 4, 3 and 1.
func TestPublishedExample(t *testing.T) {
	b := model.NewBuilder("fig7")
	x, y := b.Input("x", model.F32, 2, 128), b.Input("y", model.F32, 2, 128)
	last := model.Attr{Axes: []int64{1}, KeepDims: true}
	r1 := b.Op("ReduceSum", "reduce.1", last, b.Op("Add", "add.1", model.Attr{}, x, y))
	p := b.Op("Pow", "power.1", model.Attr{}, r1, b.Const("two", model.F32, nil, 1))
	m1 := b.Op("Mul", "multiply.1", model.Attr{}, x, p)
	r2 := b.Op("ReduceSum", "reduce.2", last, m1)
	b.Output(b.Op("Add", "add.2", model.Attr{}, y, r2))
	g, m := built(t, b), v100(t)

	a, err := rules.AStitch(g, m, rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	xl, err := xla.Fuse(g, m, xla.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tv, err := rules.TVM(g, m)
	if err != nil {
		t.Fatal(err)
	}
	if x, v, a := xl.Summary.MemoryKernels, tv.Summary.MemoryKernels, a.Summary.MemoryKernels; x != 4 || v != 3 || a != 1 {
		t.Errorf("%d, %d and %d kernels, published 4, 3 and 1", x, v, a)
	}
	// TVM computes the power for each of 128 elements, XLA keeps it.
	if c := xl.Cuts[slices.IndexFunc(xl.Cuts,
		func(c fusion.Cut) bool { return c.FromName == "power.1" })]; !strings.Contains(c.Reason, "many others") {
		t.Errorf("XLA does not fuse the power because %s", c.Reason)
	}
	// The power merges with the first reduction, which leads; each group keeps its rows.
	k := a.Kernels[0]
	var groups []string
	for _, gr := range k.Groups {
		groups = append(groups, gr.DominantName+" "+strings.Join(gr.SubDominants, " "))
	}
	if got := strings.Join(groups, "; "); got != "reduce.1 power.1; reduce.2 ; add.2 " {
		t.Errorf("groups %s", got)
	}
	if a.Summary.Regional != 2 || a.Summary.Global != 0 || k.Phases != 1 {
		t.Errorf("%d regional and %d global links in %d phases, want 2, 0 and 1", a.Summary.Regional,
			a.Summary.Global, k.Phases)
	}
}

// What a stitch operator looks like, case by case.
func TestSchemes(t *testing.T) {
	rows := model.Attr{Axes: []int64{1}, KeepDims: true}
	columns := model.Attr{Axes: []int64{0}, KeepDims: true}
	for _, c := range []struct {
		name             string
		build            func(b *model.Builder)
		regional, global int
		phases           int
		reason           string // of a link that is not local
		kernels          int
	}{
		{"row reductions stay in their blocks", func(b *model.Builder) {
			x := b.Input("x", model.F32, 4096, 256)
			b.Output(b.Op("Sub", "s", model.Attr{}, x, b.Op("ReduceMax", "r", rows, x)))
		}, 1, 0, 1, "one to many", 1},
		{"a column reduction needs all blocks", func(b *model.Builder) {
			x := b.Input("x", model.F32, 4096, 256)
			b.Output(b.Op("Sub", "s", model.Attr{}, x, b.Op("ReduceMax", "r", columns, x)))
		}, 0, 1, 2, "other blocks", 1},
		{"split rows are put together by all", func(b *model.Builder) {
			x := b.Input("x", model.F32, 64, 30000)
			b.Output(b.Op("Sub", "s", model.Attr{}, x, b.Op("ReduceMax", "r", rows, x)))
		}, 0, 1, 2, "split over 2 blocks", 1},
		{"a row that shared memory cannot hold", func(b *model.Builder) {
			x := b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 4096, 30000))
			b.Output(b.Op("Div", "s", model.Attr{}, x, b.Op("ReduceSum", "r", rows, x)))
		}, 1, 1, 2, "shared memory is full", 1},
		{"no dependency, one kernel", func(b *model.Builder) {
			b.Output(b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 100)),
				b.Op("Exp", "f", model.Attr{}, b.Input("y", model.F32, 200)))
		}, 0, 0, 1, "", 1},
		{"a product between", func(b *model.Builder) {
			x := b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 64, 64))
			y := b.Op("MatMul", "m", model.Attr{}, x, b.Param("w", model.F32, 64, 64))
			b.Output(b.Op("Add", "a", model.Attr{}, x, y))
		}, 0, 0, 1, "", 2},
		{"a cheap operator is computed by each reader", func(b *model.Builder) {
			x := b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 64, 1))
			b.Output(b.Op("Add", "a", model.Attr{}, x, b.Input("y", model.F32, 64, 64)))
		}, 0, 0, 1, "", 1},
		{"an expensive one leads a group", func(b *model.Builder) {
			x := b.Op("Exp", "n", model.Attr{}, b.Input("x", model.F32, 2048, 1))
			b.Output(b.Op("Add", "a", model.Attr{}, x, b.Input("y", model.F32, 2048, 64)))
		}, 1, 0, 1, "one to many", 1},
		{"a transposition within a group", func(b *model.Builder) {
			x := b.Op("Transpose", "t", model.Attr{Perm: []int64{1, 0}}, b.Input("x", model.F32, 64, 32))
			b.Output(b.Op("Exp", "e", model.Attr{}, x))
		}, 0, 0, 1, "", 1},
		{"a transposition between reductions", func(b *model.Builder) {
			x := b.Input("x", model.F32, 512, 256)
			y := b.Op("Sub", "s", model.Attr{}, x, b.Op("ReduceMax", "r", rows, x))
			y = b.Op("Transpose", "t", model.Attr{Perm: []int64{1, 0}}, y)
			b.Output(b.Op("ReduceSum", "q", rows, y))
		}, 0, 1, 2, "other blocks", 1},
	} {
		b := model.NewBuilder(c.name)
		c.build(b)
		p, err := rules.AStitch(built(t, b), v100(t), rules.Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		phases, reason := 1, ""
		for _, k := range p.Kernels {
			phases = max(phases, k.Phases)
			for _, l := range k.Links {
				if l.Scheme != fusion.Local {
					reason += l.Reason + "; "
				}
			}
		}
		s := p.Summary
		if s.Regional != c.regional || s.Global != c.global || phases != c.phases || s.MemoryKernels != c.kernels ||
			!strings.Contains(reason, c.reason) || c.reason == "" && reason != "" {
			t.Errorf("%s: %d regional, %d global, %d phases, %d kernels, %q; want %d, %d, %d, %d, %q", c.name,
				s.Regional, s.Global, phases, s.MemoryKernels, reason, c.regional, c.global, c.phases, c.kernels, c.reason)
		}
	}
}

// random is a small graph of all that the SIMT model has: broadcasts, reductions of
// rows and columns, moves, views, products.
func random(t testing.TB, r *rand.Rand, ops int) *model.Graph {
	t.Helper()
	b := model.NewBuilder("random")
	var all []model.TensorID
	for i := range 2 {
		all = append(all, b.Input(fmt.Sprintf("x%d", i), model.F32, 4, 6))
	}
	shape := func(t model.TensorID) model.Shape { return b.Tensor(t).Shape }
	for i := range ops {
		name := fmt.Sprintf("op%d", i)
		x, y := all[r.Intn(len(all))], all[r.Intn(len(all))]
		axis := int64(r.Intn(2))
		var z model.TensorID
		switch r.Intn(9) {
		case 0:
			z = b.Op("Exp", name, model.Attr{}, x)
		case 1:
			z = b.Op("Neg", name, model.Attr{}, x)
		case 2, 3:
			s, u := shape(x), shape(y)
			if (s[0] != u[0] && s[0] != 1 && u[0] != 1) || (s[1] != u[1] && s[1] != 1 && u[1] != 1) {
				continue
			}
			z = b.Op("Add", name, model.Attr{}, x, y)
		case 4, 5:
			z = b.Op("ReduceSum", name, model.Attr{Axes: []int64{axis}, KeepDims: true}, x)
		case 6:
			z = b.Op("Transpose", name, model.Attr{Perm: []int64{1, 0}}, x)
		case 7:
			z = b.Op("Reshape", name, model.Attr{Shape: []int64{shape(x)[1], shape(x)[0]}}, x)
		case 8:
			z = b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".w", model.F32, shape(x)[1], 6))
		}
		all = append(all, z)
	}
	b.Output(all[len(all)-1])
	for _, x := range all[2:] {
		if r.Intn(6) == 0 {
			b.Output(x)
		}
	}
	return built(t, b)
}

// On random graphs every method makes plans that pass the referee, AStitch's scopes
// cannot be merged further, and each regional value passes the element-wise oracle.
func TestRandomGraphs(t *testing.T) {
	m := v100(t)
	for seed := range int64(400) {
		r := rand.New(rand.NewSource(seed))
		g := random(t, r, 4+r.Intn(20))
		a, err := rules.AStitch(g, m, rules.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		again, err := rules.AStitch(g, m, rules.Options{})
		if err != nil || fmt.Sprint(again.Kernels) != fmt.Sprint(a.Kernels) {
			t.Fatalf("seed %d: another answer to the same question: %v", seed, err)
		}
		maximal(t, seed, a)
		for i := range a.Kernels {
			blockLocal(t, seed, g, &a.Kernels[i])
		}
		for _, opt := range []rules.Options{{NoRemote: true}, {NoMerging: true}} {
			p, err := rules.AStitch(g, m, opt)
			if err != nil {
				t.Fatalf("seed %d: %+v: %v", seed, opt, err)
			}
			if opt.NoRemote && p.Summary.MemoryKernels < a.Summary.MemoryKernels {
				t.Fatalf("seed %d: %d kernels without remote stitching, %d with it", seed, p.Summary.MemoryKernels,
					a.Summary.MemoryKernels)
			}
		}
		for _, opt := range []xla.Options{{}, {Adaptive: true}} {
			if _, err := xla.Fuse(g, m, opt); err != nil {
				t.Fatalf("seed %d: XLA %+v: %v", seed, opt, err)
			}
		}
		p, err := rules.TVM(g, m)
		if err != nil {
			t.Fatalf("seed %d: TVM: %v", seed, err)
		}
		once(t, seed, a)
		once(t, seed, p)
	}
}

// once: every operator but views is in one kernel.
func once(t *testing.T, seed int64, p *fusion.Plan) {
	t.Helper()
	n := make([]int, len(p.Graph.Ops))
	for _, k := range p.Kernels {
		for _, id := range k.Ops() {
			n[id]++
		}
	}
	for _, op := range p.Graph.Ops {
		if op.Class() != model.ViewClass && n[op.ID] != 1 {
			t.Fatalf("seed %d: %s: operator %s is in %d kernels", seed, p.Method, op.Name, n[op.ID])
		}
	}
}

// maximal: to merge any two stitch operators would close a cycle. By brute force over
// reachability.
func maximal(t *testing.T, seed int64, p *fusion.Plan) {
	t.Helper()
	g := p.Graph
	kernel := make([]int, len(g.Ops))
	for i := range kernel {
		kernel[i] = -1
	}
	for i := range p.Kernels {
		for _, id := range p.Kernels[i].Ops() {
			kernel[id] = i
		}
	}
	n := len(p.Kernels)
	for i, k := range kernel { // views by themselves
		if k < 0 {
			kernel[i] = n
			n++
		}
	}
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
	}
	for _, op := range g.Ops {
		for _, t := range op.Inputs {
			if p := g.Tensor(t).Producer; p != model.NoOp && kernel[p] != kernel[op.ID] {
				reach[kernel[p]][kernel[op.ID]] = true
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	for a := range p.Kernels {
		for b := range p.Kernels {
			if a == b || p.Kernels[a].Library || p.Kernels[b].Library {
				continue
			}
			cycle := false
			for c := range n {
				cycle = cycle || c != a && c != b && (reach[a][c] && reach[c][b] || reach[b][c] && reach[c][a])
			}
			if !cycle {
				t.Fatalf("seed %d: kernels %d and %d could be one", seed, a, b)
			}
		}
	}
}

// blockLocal follows each row of a regional value: the row of the reader's dominant
// needs of it no element of another row, on the reader's side and on the maker's, in
// linear positions.
func blockLocal(t *testing.T, seed int64, g *model.Graph, k *fusion.Kernel) {
	t.Helper()
	of := map[model.OpID]*fusion.Group{}
	for j := range k.Groups {
		for _, id := range k.Groups[j].Ops {
			of[id] = &k.Groups[j]
		}
	}
	for _, l := range k.Links {
		if l.Scheme != fusion.Regional {
			continue
		}
		rows := of[l.From].Mapping.Rows
		inRow(t, seed, g, of[l.To], g.Op(l.To).Outputs[0], rows)
		needsRow(t, seed, g, g.Op(l.To), l.Tensor, rows)
		inRow(t, seed, g, of[l.From], g.Op(l.From).Outputs[0], rows)
	}
}

// inRow: row r of tensor x, made in a group, and row r of its dominant depend on each
// other only.
func inRow(t *testing.T, seed int64, g *model.Graph, gr *fusion.Group, x model.TensorID, rows int64) {
	t.Helper()
	dominant := g.Op(gr.Dominant).Outputs[0]
	if x == dominant {
		return
	}
	inside := map[model.OpID]bool{}
	for _, id := range gr.Ops {
		inside[id] = true
	}
	for _, pair := range [][2]model.TensorID{{dominant, x}, {x, dominant}} {
		for r := range rows {
			for _, e := range needed(g, inside, pair[0], row(g, pair[0], rows, r), pair[1]) {
				if e*rows/g.Tensor(pair[1]).Shape.Elements() != r {
					t.Fatalf("seed %d: row %d of %s needs element %d of %s", seed, r, g.Tensor(pair[0]).Name, e,
						g.Tensor(pair[1]).Name)
				}
			}
		}
	}
}

// needsRow: row r of what op makes reads row r of x only.
func needsRow(t *testing.T, seed int64, g *model.Graph, op *model.Op, x model.TensorID, rows int64) {
	t.Helper()
	for r := range rows {
		for _, e := range needed(g, map[model.OpID]bool{op.ID: true}, op.Outputs[0], row(g, op.Outputs[0], rows, r), x) {
			if e*rows/g.Tensor(x).Shape.Elements() != r {
				t.Fatalf("seed %d: row %d of %s reads element %d of %s", seed, r, op.Name, e, g.Tensor(x).Name)
			}
		}
	}
}

// row lists the elements of row r, of so many.
func row(g *model.Graph, x model.TensorID, rows, r int64) []int64 {
	n := g.Tensor(x).Shape.Elements() / rows
	var out []int64
	for e := r * n; e < (r+1)*n; e++ {
		out = append(out, e)
	}
	return out
}

// needed lists the elements of want that the given elements of from are computed from,
// by operators inside only, one element at a time.
func needed(g *model.Graph, inside map[model.OpID]bool, from model.TensorID, elements []int64,
	want model.TensorID) []int64 {
	if from == want {
		return elements
	}
	p := g.Tensor(from).Producer
	if p == model.NoOp || !inside[p] {
		return nil
	}
	op := g.Op(p)
	var out []int64
	for k, in := range op.Inputs {
		var reads []int64
		for _, e := range elements {
			if op.Class() == model.ViewClass {
				reads = append(reads, e)
				continue
			}
			s := g.Tensor(from).Shape
			box := make(model.Region, len(s))
			for d, rest := len(s)-1, e; d >= 0; d-- {
				box[d] = model.Interval{Lo: rest % s[d], Hi: rest%s[d] + 1}
				rest /= s[d]
			}
			u := g.Tensor(in).Shape
			region := g.InputRegion(op, 0, k, box)
			for e := range u.Elements() {
				inBox := true
				for d, rest := len(u)-1, e; d >= 0; d-- {
					inBox = inBox && region[d].Lo <= rest%u[d] && rest%u[d] < region[d].Hi
					rest /= u[d]
				}
				if inBox {
					reads = append(reads, e)
				}
			}
		}
		slices.Sort(reads)
		out = append(out, needed(g, inside, in, slices.Compact(reads), want)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Kernels of the zoo's encoders in parts are cut as the paper's are: by 56 to 75 %.
func TestEncodersAreCut(t *testing.T) {
	m := v100(t)
	for _, name := range []string{"bert-128", "vit-b16", "conformer-s", "swin-t"} {
		g := parts(t, name)
		a, err := rules.AStitch(g, m, rules.Options{})
		if err != nil {
			t.Fatal(err)
		}
		x, err := xla.Fuse(g, m, xla.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if cut := 1 - float64(a.Summary.MemoryKernels)/float64(x.Summary.MemoryKernels); cut < 0.56 || cut > 0.75 {
			t.Errorf("%s: %d kernels become %d, a cut of %.0f %%", name, x.Summary.MemoryKernels,
				a.Summary.MemoryKernels, 100*cut)
		}
		if a.Summary.Seconds >= x.Summary.Seconds || a.Summary.WriteTransactions >= x.Summary.WriteTransactions {
			t.Errorf("%s: %+v after %+v", name, a.Summary, x.Summary)
		}
		once(t, 0, a)
	}
}

// Without merging, groups of a reduction and what follows it one to one fall apart.
func TestMerging(t *testing.T) {
	b := model.NewBuilder("merge")
	x := b.Input("x", model.F32, 4096, 256)
	r := b.Op("ReduceSum", "r", model.Attr{Axes: []int64{1}, KeepDims: true}, x)
	b.Output(b.Op("Mul", "m", model.Attr{}, x, b.Op("Exp", "e", model.Attr{}, r)))
	g := built(t, b)
	for opt, want := range map[rules.Options]int{{}: 2, {NoMerging: true}: 3} {
		p, err := rules.AStitch(g, v100(t), opt)
		if err != nil || len(p.Kernels) != 1 || len(p.Kernels[0].Groups) != want {
			t.Errorf("%+v: %v, %v; want %d groups", opt, p, err, want)
		}
	}
}

func TestUnknownOperatorIsNamed(t *testing.T) {
	b := model.NewBuilder("unknown")
	b.Output(b.Op("Unknown", "mystery", model.Attr{Shape: []int64{4}, Axis: int64(model.F32)}, b.Input("x", model.F32, 4)))
	g, m := built(t, b), v100(t)
	_, e1 := rules.AStitch(g, m, rules.Options{})
	_, e2 := xla.Fuse(g, m, xla.Options{})
	_, e3 := rules.TVM(g, m)
	for _, err := range []error{e1, e2, e3} {
		var u *fusion.UnknownError
		if !errors.As(err, &u) || u.Op != "mystery" {
			t.Errorf("%v, want the operator's name", err)
		}
	}
}

func ExampleAStitch() {
	b := model.NewBuilder("softmax")
	b.Output(b.Op("Softmax", "p", model.Attr{Axis: 1}, b.Input("x", model.F32, 4096, 256)))
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	e, err := grain.To(g, grain.Primitive)
	if err != nil {
		panic(err)
	}
	m, err := simt.Load("v100-simt")
	if err != nil {
		panic(err)
	}
	p, err := rules.AStitch(e.Graph, m, rules.Options{})
	if err != nil {
		panic(err)
	}
	for _, gr := range p.Kernels[0].Groups {
		fmt.Println(gr.Operators, "led by", gr.DominantName)
	}
	for _, l := range p.Kernels[0].Links {
		fmt.Println(l.FromName, "->", l.ToName, l.Scheme)
	}
	// Output:
	// [p/max] led by p/max
	// [p/subtract p/exp p/sum] led by p/sum
	// [p] led by p
	// p/max -> p/subtract regional
	// p/subtract -> p/exp local
	// p/exp -> p/sum local
	// p/exp -> p regional
	// p/sum -> p regional
}
