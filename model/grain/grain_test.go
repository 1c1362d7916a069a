package grain_test

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/zoo"
)

// The oracle of the pass is a naive evaluation of graphs on small shapes, element by
// element in float64, with every kind written down from its definition: a composite
// operator and its parts must give equal values.

// at is the index of the element of a tensor that broadcasts to element o of shape out.
func at(s, out model.Shape, o int64) int64 {
	i, stride := int64(0), int64(1)
	for k := len(out) - 1; k >= 0; k-- {
		x := o % out[k]
		o /= out[k]
		if d := len(s) - (len(out) - k); d >= 0 {
			if s[d] > 1 {
				i += x * stride
			}
			stride *= s[d]
		}
	}
	return i
}

// evaluate gives the value of every tensor, given those of inputs and constants.
func evaluate(t *testing.T, g *model.Graph, given map[string][]float64,
	scalars map[model.TensorID]float64) map[string][]float64 {
	t.Helper()
	v := make(map[string][]float64)
	for _, u := range g.Tensors {
		switch {
		case given[u.Name] != nil:
			v[u.Name] = given[u.Name]
		case u.Role == model.Constant:
			x, ok := scalars[u.ID]
			if !ok {
				t.Fatalf("no value for constant %s", u.Name)
			}
			v[u.Name] = []float64{x}
		}
	}
	for _, op := range g.Ops {
		out := g.Tensor(op.Outputs[0])
		in := make([][]float64, len(op.Inputs))
		shapes := make([]model.Shape, len(op.Inputs))
		for k, id := range op.Inputs {
			in[k], shapes[k] = v[g.Tensor(id).Name], g.Tensor(id).Shape
		}
		v[out.Name] = compute(t, op, out.Shape, in, shapes)
	}
	return v
}

// rows lists, for each row along axes, the elements that belong to it, in order.
func rows(s model.Shape, axes []int64) [][]int64 {
	kept := s.Clone()
	for _, a := range axes {
		kept[a] = 1
	}
	out := make([][]int64, kept.Elements())
	for i := int64(0); i < s.Elements(); i++ {
		r := at(kept, s, i)
		out[r] = append(out[r], i)
	}
	return out
}

func compute(t *testing.T, op *model.Op, out model.Shape, in [][]float64, shapes []model.Shape) []float64 {
	y := make([]float64, out.Elements())
	each := func(f func(x ...float64) float64) []float64 {
		args := make([]float64, len(in))
		for o := range y {
			for k := range in {
				args[k] = in[k][at(shapes[k], out, int64(o))]
			}
			y[o] = f(args...)
		}
		return y
	}
	reduce := func(f func(row []float64) float64) []float64 {
		for r, elements := range rows(shapes[0], op.Attr.Axes) {
			var row []float64
			for _, i := range elements {
				row = append(row, in[0][i])
			}
			y[r] = f(row)
		}
		return y
	}
	sum := func(row []float64) (s float64) {
		for _, x := range row {
			s += x
		}
		return s
	}
	mean := func(row []float64) float64 { return sum(row) / float64(len(row)) }
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	hard := func(x float64) float64 { return math.Max(0, math.Min(1, x/6+0.5)) }
	erf := func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) }
	normalise := func(groups [][]int64, centre bool) []float64 {
		eps := 1e-5
		fmt.Sscanf(op.Attr.Variant, "epsilon=%g", &eps)
		for _, elements := range groups {
			m, v := 0.0, 0.0
			for _, i := range elements {
				m += in[0][i] / float64(len(elements))
			}
			if !centre {
				m = 0
			}
			for _, i := range elements {
				v += (in[0][i] - m) * (in[0][i] - m) / float64(len(elements))
			}
			for _, i := range elements {
				y[i] = (in[0][i] - m) / math.Sqrt(v+eps)
			}
		}
		return y
	}
	affine := func(param func(k int, o int64) float64) []float64 {
		for o := range y {
			if len(in) > 1 {
				y[o] *= param(1, int64(o))
			}
			if len(in) > 2 {
				y[o] += param(2, int64(o))
			}
		}
		return y
	}
	byBroadcast := func(k int, o int64) float64 { return in[k][at(shapes[k], out, o)] }
	switch op.Kind {
	case "Add":
		return each(func(x ...float64) float64 { return sum(x) })
	case "Sub":
		return each(func(x ...float64) float64 { return x[0] - x[1] })
	case "Mul":
		return each(func(x ...float64) float64 { return x[0] * x[1] })
	case "Div":
		return each(func(x ...float64) float64 { return x[0] / x[1] })
	case "Exp":
		return each(func(x ...float64) float64 { return math.Exp(x[0]) })
	case "Sqrt":
		return each(func(x ...float64) float64 { return math.Sqrt(x[0]) })
	case "Reciprocal":
		return each(func(x ...float64) float64 { return 1 / x[0] })
	case "Erf":
		return each(func(x ...float64) float64 { return math.Erf(x[0]) })
	case "Tanh":
		return each(func(x ...float64) float64 { return math.Tanh(x[0]) })
	case "Sigmoid":
		return each(func(x ...float64) float64 { return sigmoid(x[0]) })
	case "Softplus":
		return each(func(x ...float64) float64 { return math.Log1p(math.Exp(x[0])) })
	case "HardSigmoid":
		return each(func(x ...float64) float64 { return hard(x[0]) })
	case "Silu":
		return each(func(x ...float64) float64 { return x[0] * sigmoid(x[0]) })
	case "HardSwish":
		return each(func(x ...float64) float64 { return x[0] * hard(x[0]) })
	case "Mish":
		return each(func(x ...float64) float64 { return x[0] * math.Tanh(math.Log1p(math.Exp(x[0]))) })
	case "Gelu":
		if op.Attr.Variant == "approximate=tanh" {
			return each(func(x ...float64) float64 {
				return 0.5 * x[0] * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x[0]+0.044715*x[0]*x[0]*x[0])))
			})
		}
		return each(func(x ...float64) float64 { return erf(x[0]) })
	case "Clip":
		var lo, hi float64
		fmt.Sscanf(op.Attr.Variant, "min=%g max=%g", &lo, &hi)
		return each(func(x ...float64) float64 { return math.Max(lo, math.Min(hi, x[0])) })
	case "Reshape":
		copy(y, in[0])
		return y
	case "ReduceMax":
		return reduce(func(row []float64) float64 {
			m := row[0]
			for _, x := range row {
				m = math.Max(m, x)
			}
			return m
		})
	case "ReduceSum":
		return reduce(sum)
	case "ReduceMean":
		return reduce(mean)
	case "Softmax":
		axes := op.Attr.Axes
		if len(axes) == 0 {
			axes = []int64{op.Attr.Axis}
		}
		for _, elements := range rows(out, axes) {
			total := 0.0
			for _, i := range elements {
				total += math.Exp(in[0][i])
			}
			for _, i := range elements {
				y[i] = math.Exp(in[0][i]) / total
			}
		}
		return y
	case "LayerNorm", "RMSNorm":
		var axes []int64
		for d := op.Attr.Axis; d < int64(len(out)); d++ {
			axes = append(axes, d)
		}
		normalise(rows(out, axes), op.Kind == "LayerNorm")
		return affine(byBroadcast)
	case "GroupNorm":
		spatial := model.Shape(out[2:]).Elements()
		per := out[1] / op.Attr.Group * spatial
		groups := make([][]int64, out[0]*op.Attr.Group)
		for i := range out.Elements() {
			groups[i/per] = append(groups[i/per], i)
		}
		normalise(groups, true)
		return affine(func(k int, o int64) float64 { return in[k][o/spatial%out[1]] })
	case "Gather": // along the first dimension
		row := int64(len(y)) / shapes[1].Elements()
		for o := range y {
			y[o] = in[0][int64(in[1][int64(o)/row])*row+int64(o)%row]
		}
		return y
	}
	t.Fatalf("the evaluation does not know %s", op.Kind)
	return nil
}

// composites are the operators that the pass takes apart, with shapes drawn at random.
var composites = []struct {
	kind model.Kind
	// primitive ones; those of frameworks are inFrameworks
	parts int
	attr  func(r *rand.Rand, s model.Shape) (model.Attr, []model.Shape) // and the parameters
}{
	{"Softmax", 5, func(r *rand.Rand, s model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Axis: r.Int63n(int64(len(s)))}, nil
	}},
	{"Softmax", 5, func(_ *rand.Rand, s model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Axis: 1, Axes: []int64{1, 2}}, nil
	}},
	{"LayerNorm", 9, func(_ *rand.Rand, s model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Axis: 1}, []model.Shape{s[1:], s[2:]}
	}},
	{"LayerNorm", 8, func(_ *rand.Rand, s model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Axis: int64(len(s) - 1), Variant: "epsilon=0.01 stash_type=1"}, []model.Shape{s[len(s)-1:]}
	}},
	{"LayerNorm", 7, func(_ *rand.Rand, s model.Shape) (model.Attr, []model.Shape) { return model.Attr{}, nil }},
	{"RMSNorm", 6, func(_ *rand.Rand, s model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Axis: 2, Variant: "epsilon=0.5"}, []model.Shape{s[2:]}
	}},
	{"GroupNorm", 13, func(_ *rand.Rand, s model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Group: s[1] / 2}, []model.Shape{{s[1]}, {s[1]}}
	}},
	{"GroupNorm", 11, func(_ *rand.Rand, s model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Group: 1}, []model.Shape{{s[1]}}
	}},
	{"GroupNorm", 9, func(_ *rand.Rand, s model.Shape) (model.Attr,
		[]model.Shape) {
		return model.Attr{Group: s[1]}, nil
	}},
	{"Gelu", 5, none}, {"Gelu", 9, func(*rand.Rand, model.Shape) (model.Attr, []model.Shape) {
		return model.Attr{Variant: "approximate=tanh"}, nil
	}},
	{"Silu", 2, none}, {"HardSwish", 2, none}, {"Mish", 3, none},
}

// inFrameworks is the number of parts at the grain of frameworks; 1 if it stays whole.
func inFrameworks(kind model.Kind, primitive int) int {
	switch kind {
	case "Softmax":
		return 1
	case "LayerNorm":
		return primitive + 3
	}
	return primitive
}

func none(*rand.Rand, model.Shape) (model.Attr, []model.Shape) { return model.Attr{}, nil }

func random(r *rand.Rand, n int64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// Each operator and its parts give equal values, at equal boundaries, with the work of
// the whole.
func TestPartsComputeTheWhole(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, c := range composites {
		for range 20 {
			s := model.Shape{1 + r.Int63n(3), 2 * (1 + r.Int63n(2)), 1 + r.Int63n(5), 1 + r.Int63n(4)}
			attr, params := c.attr(r, s)
			b := model.NewBuilder("one")
			in := []model.TensorID{b.Input("x", model.F32, s...)}
			given := map[string][]float64{"x": random(r, s.Elements())}
			for i, p := range params {
				name := fmt.Sprintf("p%d", i)
				in = append(in, b.Param(name, model.F32, p...))
				given[name] = random(r, p.Elements())
			}
			b.Output(b.Op(c.kind, "y", attr, in...))
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			for _, to := range []grain.Grain{grain.Framework, grain.Primitive} {
				e, err := grain.To(g, to)
				if err != nil {
					t.Fatal(err)
				}
				want := c.parts
				if to == grain.Framework {
					want = inFrameworks(c.kind, want)
				}
				if len(e.Graph.Ops) != want || e.Expanded != min(1, want-1) {
					t.Fatalf("%s %v, %s: %d parts, want %d", c.kind, attr, to, len(e.Graph.Ops), want)
				}
				whole := evaluate(t, g, given, nil)["y"]
				parts := evaluate(t, e.Graph, given, e.Scalars)["y"]
				for i := range whole {
					if d := math.Abs(whole[i] - parts[i]); !(d <= 1e-9*(1+math.Abs(whole[i]))) {
						t.Fatalf("%s %v of %v, %s: element %d is %g whole and %g in parts", c.kind, attr, s, to, i, whole[i], parts[i])
					}
				}
				checkWork(t, string(c.kind), g, e.Graph)
			}
		}
	}
}

// checkWork: as many multiply-accumulates, and no fewer vector operations but for one
// per element of the operators taken apart.
func checkWork(t *testing.T, name string, g, e *model.Graph) {
	t.Helper()
	if g.MACs() != e.MACs() || g.Params() != e.Params() {
		t.Errorf("%s: %d MACs and %d parameters in parts, want %d and %d", name, e.MACs(), e.Params(), g.MACs(), g.Params())
	}
	var whole, parts, elements int64
	for _, op := range g.Ops {
		n := g.Tensor(op.Outputs[0]).Shape.Elements()
		whole += g.Work(op, nil).Vector.Total()
		elements += n
		switch op.Kind { // the kinds count scale and shift even where there is none
		case "LayerNorm", "GroupNorm":
			whole -= n * int64(3-len(op.Inputs))
		case "RMSNorm":
			whole -= n * int64(2-len(op.Inputs))
		}
	}
	for _, op := range e.Ops {
		parts += e.Work(op, nil).Vector.Total()
	}
	// The tanh form of a Gelu has five operations more than the kind counts.
	if parts < whole || parts > whole+6*elements {
		t.Errorf("%s: %d vector operations in parts, %d whole, %d elements", name, parts, whole, elements)
	}
}

// Look-ups: positions within the table give the same rows.
func TestLookUp(t *testing.T) {
	b := model.NewBuilder("lookup")
	x := b.Input("x", model.I32, 2, 3)
	b.Output(b.Op("Gather", "rows", model.Attr{}, b.Param("table", model.F32, 5, 4), x))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	e, err := grain.To(g, grain.Primitive)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string][]float64{"x": {0, 4, 2, 2, 1, 3}, "table": random(rand.New(rand.NewSource(3)), 20)}
	whole, parts := evaluate(t, g, given, nil)["rows"], evaluate(t, e.Graph, given, e.Scalars)["rows"]
	if len(e.Graph.Ops) != 2 || fmt.Sprint(whole) != fmt.Sprint(parts) {
		t.Errorf("%d operators give %v, want %v of 2", len(e.Graph.Ops), parts, whole)
	}
	given["x"] = []float64{-1, 9, 0, 0, 0, 0} // out of the table: the nearest row
	got := evaluate(t, e.Graph, given, e.Scalars)["rows"]
	if want := append(append([]float64(nil), given["table"][:4]...), given["table"][16:]...); fmt.Sprint(
		got[:8]) != fmt.Sprint(want) {
		t.Errorf("positions outside give %v, want %v", got[:8], want)
	}
}

// A bag of one position is the row itself.
func TestBag(t *testing.T) {
	b := model.NewBuilder("bag")
	x := b.Input("x", model.I32, 3)
	b.Output(b.Op("Gather", "row", model.Attr{Variant: grain.Bag}, b.Param("table", model.F32, 5, 4), x))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	e, err := grain.To(g, grain.Framework)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string][]float64{"x": {4, 0, 2}, "table": random(rand.New(rand.NewSource(3)), 20)}
	whole, parts := evaluate(t, g, given, nil)["row"], evaluate(t, e.Graph, given, e.Scalars)["row"]
	if len(e.Graph.Ops) != 3 || fmt.Sprint(whole) != fmt.Sprint(parts) {
		t.Errorf("%d operators give %v, want %v of 3", len(e.Graph.Ops), parts, whole)
	}
}

// Every network of the zoo keeps its boundary and its work, and nothing is left to take
// apart.
func TestZoo(t *testing.T) {
	for _, name := range zoo.Names() {
		g, err := zoo.Build(name, zoo.Options{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		before := g.KindCounts()
		for _, to := range grain.Grains() {
			e, err := grain.To(g, to)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if fmt.Sprint(before) != fmt.Sprint(g.KindCounts()) {
				t.Errorf("%s: the given graph has changed", name)
			}
			if got, want := boundary(e.Graph), boundary(g); got != want {
				t.Errorf("%s: boundary %s, want %s", name, got, want)
			}
			checkWork(t, name, g, e.Graph)
			again, err := grain.To(e.Graph, to)
			if err != nil {
				t.Fatal(err)
			}
			if again.Expanded > 0 || to == grain.Given && e.Graph != g {
				t.Errorf("%s, %s: %d operators are taken apart again", name, to, again.Expanded)
			}
			for _, c := range e.Graph.KindCounts() {
				switch c.Kind {
				case "LayerNorm", "RMSNorm", "GroupNorm", "Gelu", "Silu", "HardSwish", "Mish", "Softmax":
					if to == grain.Primitive || to == grain.Framework && c.Kind != "Softmax" {
						t.Errorf("%s, %s: %d %s are left", name, to, c.Count, c.Kind)
					}
				}
			}
		}
	}
}

func boundary(g *model.Graph) string {
	var b strings.Builder
	for _, ids := range [][]model.TensorID{g.Inputs, g.Outputs} {
		for _, id := range ids {
			t := g.Tensor(id)
			fmt.Fprintf(&b, "%s %v %v; ", t.Name, t.Shape, t.DType)
		}
	}
	return b.String()
}

// What a rule does not understand stays whole.
func TestUnknownVariantsStay(t *testing.T) {
	for _, kind := range []model.Kind{"Softmax", "LayerNorm", "RMSNorm", "Gelu", "Silu", "GroupNorm"} {
		b := model.NewBuilder("one")
		b.Output(b.Op(kind, "y", model.Attr{Axis: 1, Group: 1, Variant: "of Another"}, b.Input("x", model.F16, 2, 4, 3)))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		e, err := grain.To(g, grain.Primitive)
		if err != nil || e.Expanded != 0 || len(e.Graph.Ops) != 1 {
			t.Errorf("%s: %d operators taken apart, %v", kind, e.Expanded, err)
		}
	}
}
