package simplify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

func last(s model.Shape) int64 { return s[len(s)-1] }

// rows computes a graph of products, convolutions of 3 x 3 with a border and element-wise operators from their
// definitions. Constants follow from their names; slices are of the constant of that name in the whole graph.
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
			x, from, step := g.Tensor(op.Inputs[k]), int64(0), int64(1)
			for d := range x.Shape {
				n := out.Shape[len(out.Shape)-1-d]
				own := x.Shape[len(x.Shape)-1-d]
				from, step, i = from+i%n%own*step, step*own, i/n
			}
			return values[x.ID][from]
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
			case "Conv":
				x, w := g.Tensor(op.Inputs[0]).Shape, g.Tensor(op.Inputs[1]).Shape
				wide, high := x[3], x[2]
				row, m := i/n, i/n/out.Shape[2]%w[0]
				for c := range w[1] {
					for k := range int64(9) {
						h, v := row%out.Shape[2]*op.Attr.Strides[0]+k/3-1, i%n*op.Attr.Strides[1]+k%3-1
						if h >= 0 && h < high && v >= 0 && v < wide {
							b := i / n / out.Shape[2] / w[0]
							y[i] += values[op.Inputs[0]][((b*w[1]+c)*high+h)*wide+v] *
								values[op.Inputs[1]][(m*w[1]+c)*9+k]
						}
					}
				}
				if len(op.Inputs) > 2 {
					y[i] += values[op.Inputs[2]][m]
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
	if form == "convolved" {
		shape = []int64{2, 4, 5, 6}
	}
	x := b.Input("x", model.F32, shape...)
	product := func(name string, x model.TensorID, n int64) model.TensorID {
		bias := b.Param(name+".b", model.F32, n)
		if form == "convolved" {
			return b.Op("Conv", name, model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1},
				Pads:  []int64{1, 1, 1, 1},
				Group: 1}, x, b.Param(name+".w", model.F32, n, b.Tensor(x).Shape[1], 3, 3), bias)
		}
		in := last(b.Tensor(x).Shape)
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
		case "convolved":
			y = b.Op("Mul", name+".scaled", model.Attr{}, product(name+".up", x, width),
				b.Param(name+".s", model.F32, width, 1, 1))
			y = tanh(name+".act", y)
		default:
			y = tanh(name+".act", product(name+".up", x, width))
		}
		switch odd {
		case "result":
			b.Output(y)
		case "reader":
			b.Output(b.Op("Relu", name+".read", model.Attr{}, y))
		case "statistics":
			params := make([]model.TensorID, 4)
			for i := range params {
				params[i] = b.Param(fmt.Sprint(name, ".stat", i), model.F32, width)
			}
			y = b.Op("BatchNorm", name+".norm", model.Attr{}, append([]model.TensorID{y}, params...)...)
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
	for _, form := range []string{"plain", "gemm", "split", "gated", "reshaped", "scaled", "convolved"} {
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
	if list := FeedForwards(fed(t, "convolved", "statistics", 12)); len(list) > 0 {
		t.Errorf("statistics of channels: feed-forwards %v, expected none", list)
	}
	_, err := Slice(fed(t, "plain", "", 12), []int64{2})
	if err == nil || !strings.Contains(err.Error(), "1 feed-forwards, expected 2") {
		t.Errorf("too few numbers of parts: %v", err)
	}
}

// Parts are as few as leave room beside operands and results, of rows in as few turns as can be.
func TestParts(t *testing.T) {
	check := func(form string, room, least, want int64) {
		t.Helper()
		g := fed(t, form, "", 12)
		if got := FeedForwards(g)[0].Parts(g, room, least); got != want {
			t.Errorf("%s, %d bytes, at least %d columns: %d parts, expected %d", form, room, least, got, want)
		}
	}
	// 96 bytes in and 96 out, 2 x 288 hidden
	for room, want := range map[int64]int64{768: 1, 767: 2, 480: 2, 479: 3, 240: 12, 239: 3, 100: 6} {
		check("gated", room, 1, want)
	}
	for least, want := range map[int64]int64{1: 12, 2: 2, 4: 2, 6: 2, 7: 1, 50: 1} {
		check("gated", 240, least, want)
	}
	// 960 bytes in and 960 out, 2880 hidden, which are there twice
	for room, want := range map[int64]int64{7680: 1, 7679: 2, 3840: 3} {
		check("convolved", room, 1, want)
	}
}

// Slices pay where not all has room, and weights of convolutions would not stay.
func TestPays(t *testing.T) {
	for _, c := range []struct {
		form string
		room int64
		want bool
	}{
		{"gated", 768, false}, {"gated", 767, true},
		// 1920 bytes in and out, 960 hidden, 1152 of weights
		{"convolved", 2880, false}, {"convolved", 2304, false}, {"convolved", 2303, true},
	} {
		width := map[string]int64{"gated": 12, "convolved": 4}[c.form]
		g := fed(t, c.form, "", width)
		if got := FeedForwards(g)[0].Pays(g, c.room); got != c.want {
			t.Errorf("%s, %d bytes: slices pay is %v", c.form, c.room, got)
		}
	}
}
