package simplify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

const f16 = model.F16

func conv3(b *model.Builder, name string, x, w model.TensorID) model.TensorID {
	return b.Op("Conv", name, convAttr(), x, w)
}

func convAttr() model.Attr {
	return model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1}
}

func batchNorm(b *model.Builder, name string, x model.TensorID) model.TensorID {
	c := b.Tensor(x).Shape[1]
	return b.Op("BatchNorm", name, model.Attr{}, x,
		b.Param(name+".scale", f16, c), b.Param(name+".shift", f16, c),
		b.Const(name+".mean", f16, nil, c), b.Const(name+".var", f16, nil, c))
}

func image(b *model.Builder) model.TensorID { return b.Input("x", f16, 1, 4, 8, 8) }

func weight(b *model.Builder, name string) model.TensorID { return b.Param(name, f16, 4, 4, 3, 3) }

// text describes a graph by its operators, one a line.
func text(g *model.Graph) string {
	var s strings.Builder
	for _, op := range g.Ops {
		for i, o := range op.Outputs {
			if i > 0 {
				s.WriteByte(',')
			}
			s.WriteString(g.Tensor(o).Name)
		}
		fmt.Fprintf(&s, " = %s(", op.Kind)
		for i, in := range op.Inputs {
			if i > 0 {
				s.WriteByte(' ')
			}
			s.WriteString(g.Tensor(in).Name)
		}
		s.WriteString(")\n")
	}
	return s.String()
}

func dump(t *testing.T, g *model.Graph) string {
	t.Helper()
	b, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// invariants runs the passes with all checks and compares interface, inputs and
// repeatability.
func invariants(t *testing.T, g *model.Graph, passes []pass) (*model.Graph, []Report) {
	t.Helper()
	before := dump(t, g)
	s, reports, err := runPasses(g, passes, true)
	if err != nil {
		t.Fatal(err)
	}
	if dump(t, g) != before {
		t.Error("the given graph changed")
	}
	again, _, err := runPasses(g, passes, true)
	if err != nil {
		t.Fatal(err)
	}
	if dump(t, s) != dump(t, again) {
		t.Error("two runs differ")
	}
	twice, more, err := runPasses(s, passes, true)
	if err != nil {
		t.Fatal(err)
	}
	if dump(t, s) != dump(t, twice) {
		t.Errorf("simplifying twice changes the graph:\n%s\n%s", text(s), text(twice))
	}
	for _, r := range more {
		if r.Changes != 0 {
			t.Errorf("second run: %+v", r)
		}
	}
	if a, b := faces(g, g.Inputs), faces(s, s.Inputs); a != b {
		t.Errorf("inputs were %s, now %s", a, b)
	}
	if a, b := faces(g, g.Outputs), faces(s, s.Outputs); a != b {
		t.Errorf("outputs were %s, now %s", a, b)
	}
	return s, reports
}

func faces(g *model.Graph, ids []model.TensorID) string {
	var s []string
	for _, id := range ids {
		t := g.Tensor(id)
		s = append(s, fmt.Sprintf("%s %v %v", t.Name, t.DType, t.Shape))
	}
	return strings.Join(s, ", ")
}

func TestPasses(t *testing.T) {
	tests := []struct {
		name  string
		only  string // the one pass to run; empty: all
		build func(b *model.Builder)
		want  string
	}{
		{"dead operators go, inputs stay", "dead-code", func(b *model.Builder) {
			x, y := image(b), b.Input("unused", f16, 7)
			b.Op("Tanh", "dead2", model.Attr{}, b.Op("Exp", "dead1", model.Attr{}, y))
			b.Output(b.Op("Relu", "r", model.Attr{}, x))
		}, "r = Relu(x)\n"},
		{"an operator stays if one of its outputs is needed", "dead-code", func(b *model.Builder) {
			s := b.OpN("Split", "s", model.Attr{Axis: 1, Splits: []int64{1, 3}}, image(b))
			b.Op("Relu", "dead", model.Attr{}, s[0])
			b.Output(b.Op("Relu", "r", model.Attr{}, s[1]))
		}, "s:0,s:1 = Split(x)\nr = Relu(s:1)\n"},

		{"constants fold along a chain", "fold-constants", func(b *model.Builder) {
			c := b.Param("c", f16, 4)
			r := b.Op("Reshape", "r", model.Attr{Shape: []int64{4, 1, 1}}, c)
			n := b.Op("Neg", "n", model.Attr{}, r)
			b.Output(b.Op("Mul", "m", model.Attr{}, image(b), n))
		}, "m = Mul(x n)\n"},
		{"a large result of a small constant stays computed", "fold-constants", func(b *model.Builder) {
			big := b.Op("Expand", "big", model.Attr{Shape: []int64{64, 4, 8, 8}}, b.Const("c", f16, nil, 1))
			small := b.Op("Expand", "small", model.Attr{Shape: []int64{4, 8, 8}}, b.Const("d", f16, nil, 1))
			b.Output(b.Op("Mul", "m", model.Attr{}, b.Op("Mul", "n", model.Attr{}, image(b), big), small))
		}, "big = Expand(c)\nn = Mul(x big)\nm = Mul(n small)\n"},
		{"an output of the network keeps its operator", "fold-constants", func(b *model.Builder) {
			n := b.Op("Neg", "n", model.Attr{}, b.Const("c", f16, nil, 4))
			b.Output(b.Op("Exp", "e", model.Attr{}, n), b.Op("Relu", "r", model.Attr{}, image(b)))
		}, "e = Exp(n)\nr = Relu(x)\n"},

		{"chain of operators without effect", "remove-identities", func(b *model.Builder) {
			y := b.Op("Dropout", "d", model.Attr{}, b.Op("Identity", "i", model.Attr{}, image(b)))
			y = b.Op("Reshape", "r", model.Attr{Shape: []int64{1, 4, 8, 8}}, y)
			y = b.Op("Transpose", "t", model.Attr{Perm: []int64{0, 1, 2, 3}}, y)
			y = b.Op("Cast", "c", model.Attr{Axis: int64(f16)}, y)
			y = b.Op("Pad", "p", model.Attr{Pads: make([]int64, 8)}, y)
			y = b.Op("Slice", "s", model.Attr{Starts: []int64{0, 0, 0, 0}, Steps: []int64{1, 1, 1, 1},
				Shape: []int64{1, 4, 8, 8}}, y)
			y = b.Op("Concat", "cc", model.Attr{Axis: 1}, y)
			y = b.Op("Split", "sp", model.Attr{Axis: 1, Splits: []int64{4}}, y)
			y = b.Op("Expand", "e", model.Attr{Shape: []int64{4, 1, 1}}, y)
			y = b.Op("Resize", "u", model.Attr{Shape: []int64{1, 4, 8, 8}, Kernel: []int64{1, 1, 1, 1}}, y)
			b.Output(b.Op("Relu", "relu", model.Attr{}, y))
		}, "relu = Relu(x)\n"},
		{"those with an effect stay", "remove-identities", func(b *model.Builder) {
			y := b.Op("Transpose", "t", model.Attr{Perm: []int64{0, 1, 3, 2}}, image(b)) // equal extents
			y = b.Op("Pad", "p", model.Attr{Pads: []int64{0, 0, 1, 0, 0, 0, 0, 0}}, y)
			y = b.Op("Slice", "s", model.Attr{Starts: []int64{0, 0, 1, 0}, Steps: []int64{1, 1, 1, 1},
				Shape: []int64{1, 4, 8, 8}}, y)
			y = b.Op("Cast", "c", model.Attr{Axis: int64(model.F32)}, y)
			b.Output(y)
		}, "t = Transpose(x)\np = Pad(t)\ns = Slice(p)\nc = Cast(s)\n"},
		{"the producer takes the name of the output", "remove-identities", func(b *model.Builder) {
			r := b.Op("Relu", "r", model.Attr{}, image(b))
			b.Output(b.Op("Identity", "out", model.Attr{}, r), b.Op("Neg", "n", model.Attr{}, r))
		}, "out = Relu(x)\nn = Neg(out)\n"},
		{"an identity between input and output stays", "remove-identities", func(b *model.Builder) {
			b.Output(b.Op("Identity", "out", model.Attr{}, image(b)))
		}, "out = Identity(x)\n"},
		{"two outputs of one value stay two", "remove-identities", func(b *model.Builder) {
			r := b.Op("Relu", "r", model.Attr{}, image(b))
			b.Output(r, b.Op("Identity", "i", model.Attr{}, r))
			b.Output(b.Op("Identity", "j", model.Attr{}, r))
		}, "r = Relu(x)\ni = Identity(r)\nj = Identity(r)\n"},

		{"equal operators merge, unequal ones do not", "merge-duplicates", func(b *model.Builder) {
			x := image(b)
			a := b.Op("Clip", "a", model.Attr{Variant: "max=6"}, x)
			c := b.Op("Clip", "c", model.Attr{Variant: "max=6"}, x)
			d := b.Op("Clip", "d", model.Attr{Variant: "max=1"}, x)
			b.Output(b.Op("Concat", "o", model.Attr{Axis: 1}, a, c, d))
		}, "a = Clip(x)\nd = Clip(x)\no = Concat(a a d)\n"},
		{"chains merge in one go", "merge-duplicates", func(b *model.Builder) {
			x, w := image(b), weight(b, "w")
			a := b.Op("Relu", "ra", model.Attr{}, conv3(b, "ca", x, w))
			c := b.Op("Relu", "rc", model.Attr{}, conv3(b, "cc", x, w))
			b.Output(b.Op("Add", "o", model.Attr{}, a, c))
		}, "ca = Conv(x w)\nra = Relu(ca)\no = Add(ra ra)\n"},
		{"sums commute, differences do not", "merge-duplicates", func(b *model.Builder) {
			x := image(b)
			y := b.Op("Exp", "y", model.Attr{}, x)
			b.Output(b.Op("Concat", "o", model.Attr{Axis: 1},
				b.Op("Add", "a", model.Attr{}, x, y), b.Op("Add", "b", model.Attr{}, y, x),
				b.Op("Sub", "c", model.Attr{}, x, y), b.Op("Sub", "d", model.Attr{}, y, x)))
		}, "y = Exp(x)\na = Add(x y)\nc = Sub(x y)\nd = Sub(y x)\no = Concat(a a c d)\n"},
		{"different weights keep convolutions apart", "merge-duplicates", func(b *model.Builder) {
			x := image(b)
			b.Output(b.Op("Add", "o", model.Attr{}, conv3(b, "a", x, weight(b, "w")), conv3(b, "b", x, weight(b, "v"))))
		}, "a = Conv(x w)\nb = Conv(x v)\no = Add(a b)\n"},
		{"a merged output keeps its name", "merge-duplicates", func(b *model.Builder) {
			x := image(b)
			a := b.Op("Relu", "a", model.Attr{}, x)
			b.Output(b.Op("Relu", "out", model.Attr{}, x), b.Op("Neg", "n", model.Attr{}, a))
		}, "out = Relu(x)\nn = Neg(out)\n"},
		{"equal outputs stay two", "merge-duplicates", func(b *model.Builder) {
			x := image(b)
			b.Output(b.Op("Relu", "a", model.Attr{}, x), b.Op("Relu", "b", model.Attr{}, x))
		}, "a = Relu(x)\nb = Relu(x)\n"},
		{"equal indices make equal gathers", "merge-duplicates", func(b *model.Builder) {
			x := image(b)
			i := b.Const("i", model.I64, []int64{1, 2}, 2)
			j := b.Const("j", model.I64, []int64{1, 2}, 2)
			k := b.Const("k", model.I64, []int64{1, 3}, 2)
			g := func(n string, ix model.TensorID) model.TensorID {
				return b.Op("Gather", n, model.Attr{Axis: 1}, x, ix)
			}
			b.Output(b.Op("Concat", "o", model.Attr{Axis: 1}, g("a", i), g("b", j), g("c", k)))
		}, "a = Gather(x i)\nc = Gather(x k)\no = Concat(a a c)\n"},

		{"batch norm into a convolution", "fold-batch-norms", func(b *model.Builder) {
			b.Output(b.Op("Relu", "r", model.Attr{}, batchNorm(b, "bn", conv3(b, "c", image(b), weight(b, "w")))))
		}, "bn = Conv(x w bn.shift)\nr = Relu(bn)\n"},
		{"the bias of the convolution is kept", "fold-batch-norms", func(b *model.Builder) {
			c := b.Op("Conv", "c", convAttr(), image(b), weight(b, "w"), b.Param("c.b", f16, 4))
			b.Output(batchNorm(b, "bn", c))
		}, "bn = Conv(x w c.b)\n"},
		{"shared weights are copied", "fold-batch-norms", func(b *model.Builder) {
			w := weight(b, "w")
			y := batchNorm(b, "bn", conv3(b, "c", image(b), w))
			b.Output(conv3(b, "d", y, w))
		}, "bn = Conv(x c.weight bn.shift)\nd = Conv(bn w)\n"},
		{"into a transposed convolution", "fold-batch-norms", func(b *model.Builder) {
			c := b.Op("ConvTranspose", "c", convAttr(), image(b), weight(b, "w"))
			b.Output(batchNorm(b, "bn", c))
		}, "bn = ConvTranspose(x w bn.shift)\n"},
		{"into a product, whose scalar bias grows", "fold-batch-norms", func(b *model.Builder) {
			c := b.Op("Gemm", "c", model.Attr{}, b.Input("x", f16, 2, 8), b.Param("w", f16, 8, 4), b.Param("c.b", f16, 1))
			b.Output(batchNorm(b, "bn", c))
		}, "bn = Gemm(x w bn.shift)\n"},
		{"not where another reads the raw result", "fold-batch-norms", func(b *model.Builder) {
			c := conv3(b, "c", image(b), weight(b, "w"))
			b.Output(b.Op("Add", "o", model.Attr{}, c, batchNorm(b, "bn", c)))
		}, "c = Conv(x w)\nbn = BatchNorm(c bn.scale bn.shift bn.mean bn.var)\no = Add(c bn)\n"},
		{"not where the raw result is an output", "fold-batch-norms", func(b *model.Builder) {
			c := conv3(b, "c", image(b), weight(b, "w"))
			b.Output(c, batchNorm(b, "bn", c))
		}, "c = Conv(x w)\nbn = BatchNorm(c bn.scale bn.shift bn.mean bn.var)\n"},
		{"not where the weights are computed", "fold-batch-norms", func(b *model.Builder) {
			b.Output(batchNorm(b, "bn", conv3(b, "c", image(b), b.Input("w", f16, 4, 4, 3, 3))))
		}, "c = Conv(x w)\nbn = BatchNorm(c bn.scale bn.shift bn.mean bn.var)\n"},
		{"not into a row-wise bias", "fold-batch-norms", func(b *model.Builder) {
			c := b.Op("Gemm", "c", model.Attr{}, b.Input("x", f16, 2, 8), b.Param("w", f16, 8, 4), b.Param("c.b", f16, 2, 1))
			b.Output(batchNorm(b, "bn", c))
		}, "c = Gemm(x w c.b)\nbn = BatchNorm(c bn.scale bn.shift bn.mean bn.var)\n"},
		{"not before the convolution", "fold-batch-norms", func(b *model.Builder) {
			b.Output(conv3(b, "c", batchNorm(b, "bn", image(b)), weight(b, "w")))
		}, "bn = BatchNorm(x bn.scale bn.shift bn.mean bn.var)\nc = Conv(bn w)\n"},
		{"two in a row", "fold-batch-norms", func(b *model.Builder) {
			b.Output(batchNorm(b, "bn2", batchNorm(b, "bn1", conv3(b, "c", image(b), weight(b, "w")))))
		}, "bn2 = Conv(x w bn1.shift)\n"},

		{"behind a dropout, a dead reader and a reshaped scale", "", func(b *model.Builder) {
			c := conv3(b, "c", image(b), weight(b, "w"))
			b.Op("Exp", "dead", model.Attr{}, c)
			d := b.Op("Dropout", "d", model.Attr{}, c)
			scale := b.Op("Reshape", "scale", model.Attr{Shape: []int64{4}}, b.Param("s", f16, 4, 1))
			b.Output(b.Op("BatchNorm", "bn", model.Attr{}, d, scale,
				b.Param("shift", f16, 4), b.Const("mean", f16, nil, 4), b.Const("var", f16, nil, 4)))
		}, "bn = Conv(x w shift)\n"},
		{"twin branches become one and then fold", "", func(b *model.Builder) {
			x, w := image(b), weight(b, "w")
			scale, shift := b.Param("scale", f16, 4), b.Param("shift", f16, 4)
			mean, vari := b.Const("mean", f16, nil, 4), b.Const("var", f16, nil, 4)
			branch := func(n string) model.TensorID {
				return b.Op("BatchNorm", "bn"+n, model.Attr{}, conv3(b, "c"+n, x, w), scale, shift, mean, vari)
			}
			b.Output(b.Op("Add", "o", model.Attr{}, branch("1"), branch("2")))
		}, "bn1 = Conv(x w shift)\no = Add(bn1 bn1)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := model.NewBuilder("test")
			tt.build(b)
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			some := slices.DeleteFunc(slices.Clone(passes), func(p pass) bool { return tt.only != "" && p.name != tt.only })
			s, _ := invariants(t, g, some)
			if got := text(s); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestOrders runs the passes in every order: swept to the fixed point, each
// gives a valid graph of the same size here, so that the order is a matter of
// effort.
func TestOrders(t *testing.T) {
	b := model.NewBuilder("test")
	c := conv3(b, "c", image(b), weight(b, "w"))
	b.Op("Exp", "dead", model.Attr{}, c)
	d := b.Op("Dropout", "d", model.Attr{}, c)
	y := batchNorm(b, "bn", d)
	b.Output(b.Op("Add", "o", model.Attr{}, b.Op("Identity", "i", model.Attr{}, y), y))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var permute func(done, rest []pass)
	permute = func(done, rest []pass) {
		if len(rest) == 0 {
			s, _, err := runPasses(g, done, true)
			if err != nil {
				t.Fatal(err)
			}
			if want := "bn = Conv(x w bn.shift)\no = Add(bn bn)\n"; text(s) != want {
				t.Errorf("got\n%swant\n%s", text(s), want)
			}
		}
		for i := range rest {
			permute(append(slices.Clone(done), rest[i]), slices.Delete(slices.Clone(rest), i, i+1))
		}
	}
	permute(nil, passes)
}

func TestCheckOrder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		table []pass
		want  string
	}{
		{"good", []pass{{name: "a"}, {name: "b", after: []constraint{{"a", ""}}}}, ""},
		{"late", []pass{{name: "b", after: []constraint{{"a", "of b"}}}, {name: "a"}}, `pass "b" must come after "a": of b`},
		{"unknown", []pass{{name: "b", after: []constraint{{"c", ""}}}}, `pass "b" comes after "c", which does not exist`},
		{"twice", []pass{{name: "b"}, {name: "b"}}, `pass "b" stands twice in the table`},
	} {
		err := checkOrder(tt.table)
		if got := fmt.Sprint(err); err == nil && tt.want != "" || err != nil && got != tt.want {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	g := &model.Graph{Name: "bad", Ops: []*model.Op{{Name: "r", Kind: "Relu", Inputs: []model.TensorID{5}}}}
	if _, _, err := Run(g); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("invalid graph: %v", err)
	}
}

func TestReports(t *testing.T) {
	b := model.NewBuilder("test")
	b.Output(batchNorm(b, "bn", b.Op("Dropout", "d", model.Attr{}, conv3(b, "c", image(b), weight(b, "w")))))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	_, reports, err := Run(g)
	if err != nil {
		t.Fatal(err)
	}
	want := []Report{
		{"dead-code", 0, 3, 3, 0}, {"fold-constants", 0, 3, 3, 0}, {"remove-identities", 0, 3, 2, 1},
		{"move-constants", 0, 2, 2, 0}, {"merge-duplicates", 0, 2, 2, 0}, {"fold-batch-norms", 0, 2, 1, 1},
	}
	if !slices.Equal(reports, want) {
		t.Errorf("got %v, want %v", reports, want)
	}
}

func ExampleRun() {
	b := model.NewBuilder("example")
	x := b.Input("x", model.F16, 1, 8)
	y := b.Op("Gemm", "fc", model.Attr{}, x, b.Param("w", model.F16, 8, 4))
	b.Output(b.Op("Dropout", "y", model.Attr{}, y))
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	s, reports, err := Run(g)
	if err != nil {
		panic(err)
	}
	for _, r := range reports {
		if r.Changes > 0 {
			fmt.Printf("%s: %d -> %d operators\n", r.Pass, r.OpsBefore, r.OpsAfter)
		}
	}
	fmt.Println(s.Ops[0].Name, "writes", s.Tensor(s.Outputs[0]).Name)
	// Output:
	// remove-identities: 2 -> 1 operators
	// fc writes y
}

// BenchmarkRun simplifies a chain of 100 000 operators of which most go.
func BenchmarkRun(b *testing.B) {
	m := model.NewBuilder("chain")
	x := image(m)
	for i := 0; i < 20000; i++ {
		n := fmt.Sprint(i)
		x = conv3(m, "c"+n, x, weight(m, "w"+n))
		x = batchNorm(m, "b"+n, x)
		x = m.Op("Dropout", "d"+n, model.Attr{}, x)
		x = m.Op("Relu", "r"+n, model.Attr{}, x)
		x = m.Op("Identity", "i"+n, model.Attr{}, x)
	}
	m.Output(x)
	g, err := m.Build()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Run(g); err != nil {
			b.Fatal(err)
		}
	}
}
