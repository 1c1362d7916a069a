package astitch_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/heuristics/astitch"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

const cores = 8

// byID is an execution order: operators are numbered topologically.
func byID(g *model.Graph) []model.OpID {
	order := make([]model.OpID, len(g.Ops))
	for i := range order {
		order[i] = model.OpID(i)
	}
	return order
}

func names(g *model.Graph, ops []model.OpID) string {
	var s []string
	for _, id := range ops {
		s = append(s, g.Op(id).Name)
	}
	return strings.Join(s, " ")
}

// describe writes one line per kernel: its loop nests, the operators of each, the
// dominant in brackets, sub-dominants in parentheses.
func describe(g *model.Graph, plan astitch.Plan) []string {
	var lines []string
	for k, sg := range plan.Grouping.Groups {
		if plan.Loops[k] == nil {
			lines = append(lines, names(g, sg.Ops))
			continue
		}
		var nests []string
		for i, layer := range plan.Layers[k] {
			var s []string
			for _, id := range layer.Ops {
				name := g.Op(id).Name
				if id == plan.Loops[k][i].Dominant {
					name = "[" + name + "]"
				}
				for _, sub := range plan.Loops[k][i].Sub {
					if sub == id {
						name = "(" + name + ")"
					}
				}
				s = append(s, name)
			}
			nests = append(nests, strings.Join(s, " "))
		}
		lines = append(lines, "stitch: "+strings.Join(nests, " | "))
	}
	return lines
}

func TestGroup(t *testing.T) {
	none := model.Attr{}
	last := model.Attr{Axis: 2}
	rows := model.Attr{Axes: []int64{2}, KeepDims: true}
	for _, c := range []struct {
		name  string
		build func(b *model.Builder)
		want  []string
		tvm   int // kernels
	}{
		{name: "several readers, all one to one: one loop nest", tvm: 3,
			build: func(b *model.Builder) {
				x := b.Op("Relu", "r", none, b.Input("x", model.F16, 8, 16, 64))
				b.Output(b.Op("Sigmoid", "s", none, x), b.Op("Tanh", "t", none, x))
			},
			want: []string{"stitch: r (s) [t]"}},
		{name: "a reduction takes in its producer and leads", tvm: 2,
			build: func(b *model.Builder) {
				x := b.Op("Relu", "r", none, b.Input("x", model.F16, 8, 16, 64))
				b.Output(x, b.Op("Softmax", "s", last, x))
			},
			want: []string{"stitch: (r) [s]"}},
		{name: "two reductions are two loop nests", tvm: 2,
			build: func(b *model.Builder) {
				x := b.Op("Softmax", "s", last, b.Input("x", model.F16, 8, 16, 64))
				b.Output(b.Op("LayerNorm", "n", last, x, b.Param("scale", model.F16, 64)))
			},
			want: []string{"stitch: [s] | [n]"}},
		{name: "a softmax in parts", tvm: 2,
			build: func(b *model.Builder) {
				x := b.Input("x", model.F16, 8, 16, 64)
				e := b.Op("Exp", "exp", none, b.Op("Sub", "sub", none, x, b.Op("ReduceMax", "max", rows, x)))
				b.Output(b.Op("Div", "div", none, e, b.Op("ReduceSum", "sum", rows, e)))
			},
			want: []string{"stitch: [max] sub exp | [sum] (div)"}},
		{name: "an expensive operator that is broadcast leads", tvm: 5,
			build: func(b *model.Builder) {
				y := b.Input("y", model.F16, 8, 16, 64)
				e := b.Op("Exp", "e", none, b.Input("x", model.F16, 8, 16, 1))
				q := b.Op("Neg", "q", none, e)
				b.Output(b.Op("Mul", "a", none, y, e), b.Op("Mul", "c", none, y, q), b.Op("Sub", "d", none, y, q))
			},
			want: []string{"stitch: [e] q | [a] | [c] | [d]"}},
		{name: "a cheap one does not", tvm: 5,
			build: func(b *model.Builder) {
				y := b.Input("y", model.F16, 8, 16, 64)
				e := b.Op("Abs", "e", none, b.Input("x", model.F16, 8, 16, 1))
				q := b.Op("Neg", "q", none, e)
				b.Output(b.Op("Mul", "a", none, y, e), b.Op("Mul", "c", none, y, q), b.Op("Sub", "d", none, y, q))
			},
			want: []string{"stitch: [e] | [q] | [a] | [c] | [d]"}},
		{name: "overlapping windows are not one to one", tvm: 2,
			build: func(b *model.Builder) {
				x := b.Op("Relu", "r", none, b.Input("x", model.F16, 8, 16, 64, 64))
				b.Output(b.Op("MaxPool", "p", model.Attr{Kernel: []int64{3, 3}, Strides: []int64{2, 2}, Dilations: []int64{1, 1},
					Pads: make([]int64, 4)}, x))
			},
			want: []string{"stitch: [r] | [p]"}},
		{name: "a reduction to one element does not take the cores from its producer", tvm: 2,
			build: func(b *model.Builder) {
				x := b.Op("Relu", "r", none, b.Input("x", model.F16, 64, 64))
				b.Output(b.Op("ReduceSum", "s", model.Attr{Axes: []int64{0, 1}}, x))
			},
			want: []string{"stitch: [r] | [s]"}},
		{name: "matrix operators keep what is behind them, and stand between stitch operators", tvm: 3,
			build: func(b *model.Builder) {
				x := b.Op("Softmax", "s", last, b.Input("x", model.F16, 8, 16, 64))
				y := b.Op("Relu", "r", none, b.Op("MatMul", "m", none, x, b.Param("w", model.F16, 64, 64)))
				b.Output(b.Op("Softmax", "t", last, y))
			},
			want: []string{"stitch: [s]", "m r", "stitch: [t]"}},
		{name: "a path out and back in keeps neighbours apart", tvm: 4,
			build: func(b *model.Builder) {
				s := b.Op("Softmax", "s", last, b.Input("x", model.F16, 8, 16, 64))
				n := b.Op("Softmax", "n", last, b.Op("MatMul", "m", none, s, b.Param("w", model.F16, 64, 64)))
				b.Output(b.Op("Softmax", "t", last, b.Op("Add", "a", none, n, s)))
			},
			want: []string{"stitch: [s]", "m", "stitch: [n] a | [t]"}},
		{name: "a path over another member does not", tvm: 4,
			build: func(b *model.Builder) {
				s := b.Op("Softmax", "s", last, b.Input("x", model.F16, 8, 16, 64))
				n := b.Op("Softmax", "n", last, b.Op("Softmax", "m", last, s))
				b.Output(b.Op("Concat", "c", model.Attr{Axis: 1}, n, s))
			},
			want: []string{"stitch: [s] | [m] | [n] | [c]"}},
		{name: "remote stitching", tvm: 2,
			build: func(b *model.Builder) {
				b.Output(b.Op("Softmax", "s", last, b.Input("x", model.F16, 8, 16, 64)),
					b.Op("Softmax", "t", last, b.Input("y", model.F16, 8, 4, 32)))
			},
			want: []string{"stitch: [s] | [t]"}},
		{name: "a concatenation begins a loop nest and shares it with its one reader", tvm: 3,
			build: func(b *model.Builder) {
				x := b.Op("Softmax", "s", last, b.Input("x", model.F16, 8, 16, 64))
				c := b.Op("Concat", "c", model.Attr{Axis: 2}, x, b.Input("y", model.F16, 8, 16, 64))
				b.Output(c, b.Op("Relu", "r", none, c))
			},
			want: []string{"stitch: [s] | (c) [r]"}},
		{name: "parts of a split are loop nests of their own", tvm: 3,
			build: func(b *model.Builder) {
				p := b.OpN("Split", "p", model.Attr{Axis: 2, Splits: []int64{32, 32}}, b.Input("x", model.F16, 8, 16, 64))
				b.Output(b.Op("Relu", "r", none, p[0]), b.Op("Tanh", "t", none, p[1]))
			},
			want: []string{"stitch: [p] | [r] | [t]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := model.NewBuilder("test")
			c.build(b)
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			plan := astitch.Group(g, byID(g), nil, cores)
			if got := describe(g, plan); !reflect.DeepEqual(got, c.want) {
				t.Errorf("kernels\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if n := len(schedule.FusedLayers(g, byID(g))); n != c.tvm {
				t.Errorf("TVM has %d kernels, the case says %d", n, c.tvm)
			}
			checkPlan(t, g, plan)
		})
	}
}

// checkPlan holds any plan against the rules, with nothing of what made it: a valid
// partition, no kernel that two could be, and no instance but one.
func checkPlan(t *testing.T, g *model.Graph, plan astitch.Plan) {
	t.Helper()
	gr := plan.Grouping
	if err := schedule.CheckGrouping(g, gr); err != nil {
		t.Fatal(err)
	}
	if err := schedule.CheckLayers(&schedule.Schedule{Graph: g, Grouping: gr, Layers: plan.Layers}); err != nil {
		t.Fatal(err)
	}
	owner := make([]int, len(g.Ops))
	for k, sg := range gr.Groups {
		if sg.Factor() != 1 {
			t.Errorf("%s is split into %d", sg.Name, sg.Factor())
		}
		heavy := 0
		for _, id := range sg.Ops {
			owner[id] = k
			if g.Op(id).Class() == model.MatrixClass {
				heavy++
			}
		}
		switch {
		case plan.Loops[k] == nil && (heavy != 1 || len(plan.Layers[k]) != 1):
			t.Errorf("compute-intensive kernel %s has %d matrix operators and %d layers", sg.Name, heavy, len(plan.Layers[k]))
		case plan.Loops[k] != nil && heavy != 0:
			t.Errorf("stitch operator %s has %d matrix operators", sg.Name, heavy)
		case plan.Loops[k] != nil && len(plan.Loops[k]) != len(plan.Layers[k]):
			t.Errorf("%s has %d dominants for %d loop nests", sg.Name, len(plan.Loops[k]), len(plan.Layers[k]))
		}
		for i, l := range plan.Loops[k] {
			reduction := false
			for _, id := range plan.Layers[k][i].Ops {
				reduction = reduction || g.Op(id).Class() == model.ReductionClass
			}
			if reduction != (g.Op(l.Dominant).Class() == model.ReductionClass) {
				t.Errorf("%s: %q leads a loop nest with a reduction", sg.Name, g.Op(l.Dominant).Name)
			}
		}
	}
	// paths[a][b]: the longest path from kernel a to b has this many steps, at most 2
	// counted; kernels stand in topological order.
	n := len(gr.Groups)
	paths := make([][]int, n)
	for a := n - 1; a >= 0; a-- {
		paths[a] = make([]int, n)
		for _, id := range gr.Groups[a].Ops {
			for _, o := range g.Op(id).Outputs {
				for _, c := range g.Tensor(o).Consumers {
					next := owner[c]
					if next == a {
						continue
					}
					paths[a][next] = max(paths[a][next], 1)
					for b := range paths[next] {
						if paths[next][b] > 0 {
							paths[a][b] = 2
						}
					}
				}
			}
		}
	}
	for a := range gr.Groups {
		for b := a + 1; b < n; b++ {
			if plan.Loops[a] == nil || plan.Loops[b] == nil {
				continue
			}
			if d := paths[a][b]; d <= 1 {
				t.Errorf("%s and %s could be one stitch operator", gr.Groups[a].Name, gr.Groups[b].Name)
			}
		}
	}
}

// All networks of the zoo: the rules hold, no kernel is added to TVM's, and the same
// graph gives the same plan.
func TestZoo(t *testing.T) {
	for _, name := range zoo.Names() {
		t.Run(name, func(t *testing.T) {
			g, err := zoo.Build(name, zoo.Options{Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			if g, _, err = simplify.Run(g); err != nil {
				t.Fatal(err)
			}
			order := byID(g)
			tvm := len(schedule.FusedLayers(g, order))
			plan := astitch.Group(g, order, nil, cores)
			checkPlan(t, g, plan)
			if n := len(plan.Grouping.Groups); n > tvm {
				t.Errorf("%d kernels, TVM has %d", n, tvm)
			}
			if again := astitch.Group(g, order, nil, cores); !reflect.DeepEqual(plan, again) {
				t.Error("two plans for one graph")
			}
		})
	}
}

func ExampleGroup() {
	b := model.NewBuilder("softmax in parts")
	x := b.Input("x", model.F16, 8, 16, 64)
	rows := model.Attr{Axes: []int64{2}, KeepDims: true}
	e := b.Op("Exp", "exp", model.Attr{}, b.Op("Sub", "sub", model.Attr{}, x, b.Op("ReduceMax", "max", rows, x)))
	b.Output(b.Op("Div", "div", model.Attr{}, e, b.Op("ReduceSum", "sum", rows, e)))
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	plan := astitch.Group(g, []model.OpID{0, 1, 2, 3, 4}, nil, 8)
	for k, sg := range plan.Grouping.Groups {
		for i, layer := range plan.Layers[k] {
			fmt.Printf("%s, loop nest %d of %d operators, led by %s\n", sg.Name, i, len(layer.Ops),
				g.Op(plan.Loops[k][i].Dominant).Name)
		}
	}
	// Output:
	// stitch0, loop nest 0 of 3 operators, led by max
	// stitch0, loop nest 1 of 2 operators, led by sum
}
