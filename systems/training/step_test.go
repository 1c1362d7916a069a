package training

import (
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/zoo"
)

// values computes every tensor of a graph from those of inputs and constants.
func values(t *testing.T, g *model.Graph, given map[string][]float64,
	scalars map[model.TensorID]float64) map[string][]float64 {
	t.Helper()
	v := map[string][]float64{}
	for _, u := range g.Tensors {
		if x, ok := scalars[u.ID]; ok {
			v[u.Name] = []float64{x}
		} else if u.Producer == model.NoOp {
			if v[u.Name] = given[u.Name]; v[u.Name] == nil {
				t.Fatalf("no value for %s", u.Name)
			}
		}
	}
	for _, op := range g.Ops {
		in := make([][]float64, len(op.Inputs))
		shapes := make([]model.Shape, len(op.Inputs))
		for k, id := range op.Inputs {
			in[k], shapes[k] = v[g.Tensor(id).Name], g.Tensor(id).Shape
		}
		start := int64(0) // of a part of a split
		for _, id := range op.Outputs {
			out := g.Tensor(id)
			y := make([]float64, out.Shape.Elements())
			index := make([]int64, len(out.Shape))
			for o := range y {
				for d, rest := len(index)-1, int64(o); d >= 0; d-- {
					index[d], rest = rest%out.Shape[d], rest/out.Shape[d]
				}
				y[o] = element(t, op, index, start, in, shapes)
			}
			if op.Kind == "Softmax" {
				axis := op.Attr.Axis
				sums := map[int64]float64{}
				inner := out.Shape[axis+1:].Elements()
				row := func(o int) int64 { return int64(o)/(inner*out.Shape[axis])*inner + int64(o)%inner }
				for o := range y {
					sums[row(o)] += y[o]
				}
				for o := range y {
					y[o] /= sums[row(o)]
				}
			}
			if op.Kind == "Split" {
				start += out.Shape[op.Attr.Axis]
			}
			v[out.Name] = y
		}
	}
	return v
}

// place is the element of a tensor at an index, with broadcast.
func place(s model.Shape, index []int64) int64 {
	at := int64(0)
	for d, n := range s {
		x := index[len(index)-len(s)+d]
		if n == 1 {
			x = 0
		}
		at = at*n + x
	}
	return at
}

// element computes one element of a result; of a softmax what is to be normalised.
func element(t *testing.T, op *model.Op, index []int64, start int64, in [][]float64, shapes []model.Shape) float64 {
	of := func(k int) float64 { return in[k][place(shapes[k], index)] }
	moved := func(k int, f func(at []int64)) float64 {
		at := append([]int64(nil), index...)
		f(at)
		return in[k][place(shapes[k], at)]
	}
	choose := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	switch op.Kind {
	case "Add":
		sum := 0.0
		for k := range in {
			sum += of(k)
		}
		return sum
	case "Sub":
		return of(0) - of(1)
	case "Mul":
		return of(0) * of(1)
	case "Div":
		return of(0) / of(1)
	case "Neg":
		return -of(0)
	case "Exp", "Softmax":
		return math.Exp(of(0))
	case "Sqrt":
		return math.Sqrt(of(0))
	case "Reciprocal":
		return 1 / of(0)
	case "Erf":
		return math.Erf(of(0))
	case "Tanh":
		return math.Tanh(of(0))
	case "Sigmoid":
		return 1 / (1 + math.Exp(-of(0)))
	case "Relu":
		return max(0, of(0))
	case "PRelu":
		return max(0, of(0)) + min(0, of(0))*of(1)
	case "Greater":
		return choose(of(0) > of(1))
	case "Where":
		if of(0) == 1 {
			return of(1)
		}
		return of(2)
	case "Expand":
		return of(0)
	case "Reshape":
		at := int64(0)
		for d, n := range op.Attr.Shape {
			at = at*n + index[d]
		}
		return in[0][at]
	case "Transpose":
		return moved(0, func(at []int64) {
			for i, p := range op.Attr.Perm {
				at[p] = index[i]
			}
		})
	case "Slice":
		return moved(0, func(at []int64) {
			for d := range at {
				at[d] += op.Attr.Starts[d]
			}
		})
	case "Pad":
		for d := range index {
			if x := index[d] - op.Attr.Pads[d]; x < 0 || x >= shapes[0][d] {
				return 0
			}
		}
		return moved(0, func(at []int64) {
			for d := range at {
				at[d] -= op.Attr.Pads[d]
			}
		})
	case "Split":
		return moved(0, func(at []int64) { at[op.Attr.Axis] += start })
	case "Concat":
		x, k := index[op.Attr.Axis], 0
		for ; x >= shapes[k][op.Attr.Axis]; k++ {
			x -= shapes[k][op.Attr.Axis]
		}
		return moved(k, func(at []int64) { at[op.Attr.Axis] = x })
	case "Gather":
		row := shapes[0][1]
		at := place(shapes[1], index[:len(index)-1])
		return in[0][int64(in[1][at])*row+index[len(index)-1]]
	case "ReduceSum", "ReduceMean":
		sum, n := 0.0, 0
		kept := shapes[0].Clone()
		for _, a := range op.Attr.Axes {
			kept[a] = 1
		}
		full := append([]int64(nil), index...)
		if !op.Attr.KeepDims {
			full = make([]int64, len(kept))
			d := 0
			for i := range full {
				if kept[i] == shapes[0][i] {
					full[i], d = index[d], d+1
				}
			}
		}
		want := place(kept, full)
		at := make([]int64, len(kept))
		for o := range in[0] {
			for d, rest := len(at)-1, int64(o); d >= 0; d-- {
				at[d], rest = rest%shapes[0][d], rest/shapes[0][d]
			}
			if place(kept, at) == want {
				sum, n = sum+in[0][o], n+1
			}
		}
		if op.Kind == "ReduceMean" {
			return sum / float64(n)
		}
		return sum
	case "MatMul", "Gemm":
		last := len(index) - 1
		inner := shapes[0][len(shapes[0])-1]
		if op.Attr.TransA {
			inner = shapes[0][0]
		}
		sum := 0.0
		for i := range inner {
			a, b := append([]int64(nil), index...), append([]int64(nil), index...)
			if a[last], b[last-1] = i, i; op.Attr.TransA {
				a[last-1], a[last] = i, index[last-1]
			}
			if op.Attr.TransB {
				b[last-1], b[last] = index[last], i
			}
			sum += in[0][place(shapes[0], a)] * in[1][place(shapes[1], b)]
		}
		return sum
	}
	t.Fatalf("the evaluation does not know %s", op.Kind)
	return 0
}

// Every gradient agrees with differences of the loss, parameter by parameter. The networks
// have all operators that have a rule.
func TestStepAgainstDifferences(t *testing.T) {
	none := model.Attr{}
	rows := model.Attr{Axes: []int64{1}, KeepDims: true}
	for name, build := range map[string]func(b *model.Builder){
		"attention": func(b *model.Builder) {
			x := b.Op("MatMul", "in", none, b.Input("x", model.F32, 2, 3, 4), b.Param("w", model.F32, 4, 4))
			heads := func(name string, perm ...int64) model.TensorID {
				y := b.Op("Add", name+".add", none, b.Op("MatMul", name, none, x, b.Param(name+".w", model.F32, 4, 4)),
					b.Param(name+".b", model.F32, 4))
				y = b.Op("Reshape", name+".heads", model.Attr{Shape: []int64{2, 3, 2, 2}}, y)
				return b.Op("Transpose", name+".turn", model.Attr{Perm: perm}, y)
			}
			s := b.Op("MatMul", "scores", none, heads("q", 0, 2, 1, 3), heads("k", 0, 2, 3, 1))
			y := b.Op("MatMul", "context", none, b.Op("Softmax", "p", model.Attr{Axis: 3}, s), heads("v", 0, 2, 1, 3))
			y = b.Op("Reshape", "merge", model.Attr{Shape: []int64{2, 3, 4}},
				b.Op("Transpose", "back", model.Attr{Perm: []int64{0, 2, 1, 3}}, y))
			b.Output(b.Op("Add", "residual", none, x, y))
		},
		"normalisation": func(b *model.Builder) {
			x := b.Op("MatMul", "in", none, b.Input("x", model.F32, 3, 4), b.Param("w", model.F32, 4, 5))
			m := b.Op("ReduceMean", "mean", rows, x)
			c := b.Op("Sub", "centre", none, x, m)
			v := b.Op("Sqrt", "root", none, b.Op("ReduceMean", "variance", rows, b.Op("Mul", "square", none, c, c)))
			y := b.Op("Mul", "scaled", none, b.Op("Div", "quotient", none, c, v), b.Param("scale", model.F32, 5))
			y = b.Op("Mul", "gelu", none, y, b.Op("Erf", "erf", none, y))
			y = b.Op("Add", "both", none, b.Op("Relu", "relu", none, y), b.Op("Neg", "neg", none, y))
			b.Output(b.Op("Mul", "inverse", none, y, b.Op("Reciprocal", "r", none, v)))
			b.Output(b.Op("PRelu", "prelu", none, y, b.Param("slope", model.F32, 5)))
		},
		"recurrence": func(b *model.Builder) {
			table := b.Op("Gather", "rows", none, b.Param("table", model.F32, 6, 4), b.Input("ids", model.I32, 2, 3))
			x := b.Op("MatMul", "in", none, table, b.Param("w", model.F32, 4, 4))
			cut := func(name string, at, n int64) model.TensorID {
				y := b.Op("Slice", name, model.Attr{Starts: []int64{0, at, 0}, Steps: []int64{1, 1, 1}, Shape: []int64{2, n, 4}}, x)
				return b.Op("Reshape", name+".flat", model.Attr{Shape: []int64{2 * n, 4}}, y)
			}
			h := b.Op("Concat", "join", model.Attr{Axis: 1}, cut("first", 0, 1), b.Op("Tanh", "tanh", none, cut("second", 1, 1)))
			p := b.OpN("Split", "gates", model.Attr{Axis: 1, Splits: []int64{3, 5}}, h)
			gate := b.Op("Sigmoid", "gate", none, b.Op("ReduceSum", "sum", model.Attr{Axes: []int64{1}}, p[0]))
			gate = b.Op("Reshape", "column", model.Attr{Shape: []int64{2, 1}}, gate)
			b.Output(b.Op("Mul", "gated", none, b.Op("Expand", "expand", model.Attr{Shape: []int64{2, 5}}, gate),
				b.Op("Exp", "exp", none, p[1])))
			b.Output(cut("third", 2, 1))
		},
		"padded": func(b *model.Builder) { // two of three slices, so that their gradients are padded
			x := b.Op("MatMul", "in", none, b.Input("x", model.F32, 3, 4), b.Param("w", model.F32, 4, 4))
			for i := range int64(2) {
				b.Output(b.Op("Slice", "cut", model.Attr{Starts: []int64{i, 0}, Steps: []int64{1, 1}, Shape: []int64{2, 4}}, x))
			}
		},
	} {
		b := model.NewBuilder(name)
		build(b)
		net, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		g, scalars, err := step(net)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := rand.New(rand.NewSource(1))
		given := map[string][]float64{}
		for _, u := range g.Tensors {
			if _, ok := scalars[u.ID]; ok || u.Producer != model.NoOp {
				continue
			}
			x := make([]float64, u.Shape.Elements())
			for i := range x {
				if x[i] = r.NormFloat64(); u.DType == model.I32 {
					x[i] = float64(i) // each row once, so that rows are the table
				}
			}
			given[u.Name] = x
		}
		loss := func() (sum float64) {
			v := values(t, net, given, nil)
			for _, out := range net.Outputs {
				n := net.Tensor(out).Name
				for i, y := range v[n] {
					d := y - given[n+".target"][i]
					sum += d * d / 2
				}
			}
			return sum
		}
		v := values(t, g, given, scalars)
		checked := 0
		for _, u := range net.Tensors {
			if !u.Learned {
				continue
			}
			w := given[u.Name]
			for i := range w {
				const h = 1e-5
				was := w[i]
				w[i] = was + h
				up := loss()
				w[i] = was - h
				want := (up - loss()) / (2 * h)
				w[i] = was
				got := 0.0
				if u.Name == "table" {
					got = v[g.Tensor(g.Outputs[len(net.Outputs)]).Name][i]
				} else {
					got = w[i] - v[u.Name+".update"][i]
				}
				if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Fatalf("%s: the gradient of %s at %d is %g, differences say %g", name, u.Name, i, got, want)
				}
				checked++
			}
		}
		if checked < 16 {
			t.Errorf("%s: %d gradients", name, checked)
		}
	}
}

// A network has as many updates as parameters, but for its tables. What has no gradient is
// an error that names it.
func TestStepOfNetworks(t *testing.T) {
	for name, tables := range map[string]int{"dien": 3} {
		net, err := zoo.Build(name, zoo.Options{Batch: 2, DType: model.F32})
		if err != nil {
			t.Fatal(err)
		}
		g, err := Step(net)
		if err != nil {
			t.Fatal(err)
		}
		params, updates := 0, 0
		for _, u := range net.Tensors {
			if u.Learned {
				params++
			}
		}
		for _, out := range g.Outputs {
			if strings.HasSuffix(g.Tensor(out).Name, ".update") {
				updates++
			}
		}
		if updates != params-tables {
			t.Errorf("%s: %d updates of %d parameters", name, updates, params)
		}
	}
	net, err := zoo.Build("crnn", zoo.Options{Batch: 1, DType: model.F32})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Step(net); err == nil || !strings.Contains(err.Error(), `operator "conv7": found Conv, whose gradient of input 0 is not known, expected`) {
		t.Errorf("crnn: %v", err)
	}
}
