package simplify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// rows computes a graph of products and element-wise operators on matrices from their definitions. Constants follow
// from their names; slices are of the constant of that name in the whole graph.
func rows(t *testing.T, g, whole *model.Graph) map[string][]float64 {
	t.Helper()
	values := map[model.TensorID][]float64{}
	random := func(name string, n int64) []float64 {
		r := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[0])<<16|uint64(name[len(name)-1])))
		x := make([]float64, n)
		for i := range x {
			x[i] = r.Float64() - 0.4
		}
		return x
	}
	slice := func(x *model.Tensor) (own []float64) {
		name, columns, cut := strings.Cut(x.Name, "[")
		if !cut {
			return random(name, x.Shape.Elements())
		}
		var of *model.Tensor
		for _, y := range whole.Tensors {
			if y.Name == name {
				of = y
			}
		}
		all, dim, lo, hi := random(name, of.Shape.Elements()), 0, int64(0), int64(0)
		if _, err := fmt.Sscanf(columns, "%d:%d]", &lo, &hi); err != nil {
			t.Fatal(err)
		}
		for d := range of.Shape {
			if x.Shape[d] != of.Shape[d] {
				dim = d
			}
		}
		inner := of.Shape[dim+1:].Elements()
		for o := range of.Shape[:dim].Elements() {
			own = append(own, all[(o*of.Shape[dim]+lo)*inner:(o*of.Shape[dim]+hi)*inner]...)
		}
		return own
	}
	for _, x := range g.Tensors {
		if x.Producer == model.NoOp {
			values[x.ID] = slice(x)
		}
	}
	named := map[string][]float64{}
	for _, op := range g.Ops {
		out := g.Tensor(op.Outputs[0])
		n := out.Shape[len(out.Shape)-1]
		y := make([]float64, out.Shape.Elements())
		at := func(k int, i int64) float64 { // element-wise
			x := g.Tensor(op.Inputs[k])
			switch last(x.Shape) {
			case 1:
				return values[x.ID][min(i/n, x.Shape.Elements()-1)]
			default:
				return values[x.ID][i%x.Shape.Elements()]
			}
		}
		for i := range int64(len(y)) {
			switch op.Kind {
			case "MatMul", "Gemm":
				x, w := g.Tensor(op.Inputs[0]), g.Tensor(op.Inputs[1])
				depth := last(x.Shape)
				for k := range depth {
					j := k*n + i%n
					if op.Attr.TransB {
						j = i%n*depth + k
					}
					y[i] += values[x.ID][i/n*depth+k] * values[w.ID][j]
				}
				if len(op.Inputs) > 2 {
					y[i] += at(2, i)
				}
			case "Reshape":
				y[i] = values[op.Inputs[0]][i]
			case "Tanh":
				y[i] = math.Tanh(at(0, i))
			case "Relu":
				y[i] = max(0, at(0, i))
			case "Mul":
				y[i] = at(0, i) * at(1, i)
			case "Add":
				y[i] = at(0, i) + at(1, i)
			case "Split":
			default:
				t.Fatalf("operator %q is a %s", op.Name, op.Kind)
			}
		}
		values[out.ID], named[out.Name] = y, y
		if op.Kind == "Split" {
			x, from := g.Tensor(op.Inputs[0]), int64(0)
			for k, o := range op.Outputs {
				var part []float64
				for r := range x.Shape[:len(x.Shape)-1].Elements() {
					part = append(part, values[x.ID][r*last(x.Shape)+from:][:op.Attr.Splits[k]]...)
				}
				values[o], from = part, from+op.Attr.Splits[k]
			}
		}
	}
	return named
}

// fed is feed-forwards of a form, one behind the other; odd ones have something that can't be cut.
func fed(t *testing.T, form, odd string, width int64) *model.Graph {
	t.Helper()
	b := model.NewBuilder("fed")
	shape := []int64{2, 3, 4}
	if form == "gemm" {
		shape = []int64{6, 4}
	}
	x := b.Input("x", model.F32, shape...)
	product := func(name string, x model.TensorID, n int64) model.TensorID {
		in, bias := last(b.Tensor(x).Shape), b.Param(name+".b", model.F32, n)
		if form == "gemm" {
			return b.Op("Gemm", name, model.Attr{TransB: true}, x, b.Param(name+".w", model.F32, n, in), bias)
		}
		y := b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".w", model.F32, in, n))
		return b.Op("Add", name+".add", model.Attr{}, y, bias)
	}
	tanh := func(name string, x model.TensorID) model.TensorID { return b.Op("Tanh", name, model.Attr{}, x) }
	for k := range 2 {
		name := fmt.Sprintf("%c", 'p'+2*k)
		var y model.TensorID
		switch form {
		case "split":
			halves := b.OpN("Split", name+".halves", model.Attr{Axis: 2, Splits: []int64{width, width}},
				product(name+".up", x, 2*width))
			y = b.Op("Mul", name+".gated", model.Attr{}, halves[1], tanh(name+".gate", halves[0]))
		case "gated":
			y = b.Op("Mul", name+".gated", model.Attr{}, product(name+".up", x, width),
				tanh(name+".gate", product(name+".gate.up", x, width)))
		case "reshaped":
			y = b.Op("Reshape", name+".flat", model.Attr{Shape: []int64{6, width}}, product(name+".up", x, width))
			y = b.Op("Reshape", name+".deep", model.Attr{Shape: []int64{2, 3, width}}, tanh(name+".act", y))
		case "scaled":
			y = product(name+".up", x, width)
			y = b.Op("Mul", name+".scaled", model.Attr{}, y, b.Param(name+".scale", model.F32, 1))
			y = b.Op("Mul", name+".each", model.Attr{}, tanh(name+".act", y), b.Param(name+".s", model.F32, width))
		default:
			y = tanh(name+".act", product(name+".up", x, width))
		}
		switch odd {
		case "result":
			b.Output(y)
		case "reader":
			b.Output(b.Op("Relu", name+".read", model.Attr{}, y))
		case "softmax":
			y = b.Op("Softmax", name+".softmax", model.Attr{Axis: 2}, y)
		case "input":
			y = b.Op("Mul", name+".other", model.Attr{}, y, b.Input(name+".in", model.F32, b.Tensor(y).Shape...))
		case "weights":
			x = b.Op("MatMul", name+".product", model.Attr{}, y, b.Input(name+".in", model.F32, width, 4))
			continue
		}
		x = b.Op("Add", name+".residual", model.Attr{}, product(name+".down", y, 4), x)
	}
	b.Output(x)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A feed-forward in slices gives what it gives whole, by as much work on its products, and one slice behind the other.
func TestSlice(t *testing.T) {
	for _, form := range []string{"plain", "gemm", "split", "gated", "reshaped", "scaled"} {
		for _, parts := range [][]int64{{1, 1}, {2, 1}, {3, 5}, {7, 2}, {100, 6}} {
			const width = 12
			g := fed(t, form, "", width)
			if list := FeedForwards(g); len(list) != 2 || list[1].Width != width {
				t.Fatalf("%s: feed-forwards %v, expected two of width %d", form, list, width)
			}
			cut, err := Slice(g, parts)
			if err != nil {
				t.Fatalf("%s in %v: %v", form, parts, err)
			}
			out := g.Tensor(g.Outputs[0]).Name
			want, got := rows(t, g, g)[out], rows(t, cut, g)[out]
			for i := range want {
				if len(got) != len(want) || math.Abs(got[i]-want[i]) > 1e-9 {
					t.Fatalf("%s in %v: %v, expected %v", form, parts, got, want)
				}
			}
			if a, b := g.MACs(), cut.MACs(); a != b || g.Params() != cut.Params() {
				t.Errorf("%s in %v: %d products and %d parameters, expected %d and %d", form, parts, b, cut.Params(), a,
					g.Params())
			}
			up := 0 // columns so far of the first
			for _, op := range cut.Ops {
				if _, err := fmt.Sscanf(op.Name, "p.down[%d:", new(int)); err == nil && up == 0 {
					t.Errorf("%s in %v: %q is in front of what it multiplies", form, parts, op.Name)
				} else if err == nil {
					up = 0
				} else if _, err := fmt.Sscanf(op.Name, "p.up[%d:", new(int)); err == nil {
					if up++; up > 2 {
						t.Errorf("%s in %v: %q is in front of the product of the slice before it", form, parts, op.Name)
					}
				}
			}
		}
	}
}

// Weights that are both products' are cut along columns for one and along rows for the other.
func TestSliceTiedWeights(t *testing.T) {
	b := model.NewBuilder("tied")
	x, w := b.Input("x", model.F32, 3, 4), b.Param("w", model.F32, 4, 4)
	y := b.Op("Tanh", "act", model.Attr{}, b.Op("MatMul", "up", model.Attr{}, x, w))
	b.Output(b.Op("MatMul", "down", model.Attr{}, y, w))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	cut, err := Slice(g, []int64{2})
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]int{}
	for _, x := range cut.Tensors {
		if x.Role == model.Constant {
			shapes[fmt.Sprint(x.Shape)]++
		}
	}
	if shapes["[4,2]"] != 2 || shapes["[2,4]"] != 2 || len(shapes) != 2 {
		t.Errorf("constants of shapes %v, expected two of [4,2] and two of [2,4]", shapes)
	}
}

// What else reads the hidden columns, or what they need as a whole, stays as it is.
func TestSliceLeavesOthers(t *testing.T) {
	for _, odd := range []string{"result", "reader", "softmax", "input", "weights"} {
		if list := FeedForwards(fed(t, "plain", odd, 12)); len(list) > 0 {
			t.Errorf("%s: feed-forwards %v, expected none", odd, list)
		}
	}
	_, err := Slice(fed(t, "plain", "", 12), []int64{2})
	if err == nil || !strings.Contains(err.Error(), "1 feed-forwards, expected 2") {
		t.Errorf("too few numbers of parts: %v", err)
	}
}

// Parts are as few as leave room beside operands and results.
func TestParts(t *testing.T) {
	g := fed(t, "gated", "", 12) // 96 bytes in and 96 out, 2 x 288 hidden
	f := FeedForwards(g)[0]
	for room, want := range map[int64]int64{768: 1, 767: 2, 480: 2, 479: 3, 240: 12, 239: 1, 100: 1} {
		if got := f.Parts(g, room); got != want || f.Fits(g, room) != (room >= 768) {
			t.Errorf("%d bytes: %d parts, expected %d", room, got, want)
		}
	}
}
