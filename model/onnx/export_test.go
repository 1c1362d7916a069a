package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

func exported(t testing.TB, g *model.Graph, opt ExportOptions) []byte {
	t.Helper()
	var b, again bytes.Buffer
	if err := ExportWith(&b, g, opt); err != nil {
		t.Fatal(err)
	}
	if err := ExportWith(&again, g, opt); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("other bytes the second time")
	}
	return b.Bytes()
}

// roundTrip exports a graph, with and without values for its weights, and
// compares what is imported again.
func roundTrip(t testing.TB, g *model.Graph) {
	t.Helper()
	for _, zero := range []bool{false, true} {
		if zero && slices.ContainsFunc(g.Ops,
			func(op *model.Op) bool { return len(parseVariant(op.Attr.Variant).tensors) > 0 }) {
			continue // a limit of unknown value becomes zero
		}
		data := exported(t, g, ExportOptions{Version: "1", ZeroWeights: zero})
		back, err := ImportReader(g.Name+".onnx", bytes.NewReader(data), Options{})
		if err != nil {
			t.Errorf("zero weights %t: %v", zero, err)
			continue
		}
		if d := difference(g, back); d != "" {
			t.Errorf("zero weights %t: %s", zero, d)
		}
	}
}

// difference returns the first difference between two graphs, or nothing. Constants
// that nothing uses do not count, nor do the numbers of tensors.
func difference(a, b *model.Graph) string {
	if a.Name != b.Name {
		return fmt.Sprintf("name: %q, then %q", a.Name, b.Name)
	}
	names := func(g *model.Graph, ids []model.TensorID) []string {
		var list []string
		for _, id := range ids {
			list = append(list, g.Tensor(id).Name)
		}
		return list
	}
	for i := range max(len(a.Ops), len(b.Ops)) {
		if i >= len(a.Ops) || i >= len(b.Ops) {
			return fmt.Sprintf("%d operators, then %d", len(a.Ops), len(b.Ops))
		}
		x, y := a.Ops[i], b.Ops[i]
		head := fmt.Sprintf("operator %d %q (%s): ", i, x.Name, x.Kind)
		if x.Name != y.Name || x.Kind != y.Kind {
			return head + fmt.Sprintf("then %q (%s)", y.Name, y.Kind)
		}
		if in, out := names(a, x.Inputs), names(b, y.Inputs); !slices.Equal(in, out) {
			return head + fmt.Sprintf("inputs %q, then %q", in, out)
		}
		if in, out := names(a, x.Outputs), names(b, y.Outputs); !slices.Equal(in, out) {
			return head + fmt.Sprintf("outputs %q, then %q", in, out)
		}
		if reflect.DeepEqual(x.Attr, y.Attr) {
			continue
		}
		for f := range reflect.TypeFor[model.Attr]().NumField() {
			field := reflect.TypeFor[model.Attr]().Field(f).Name
			u, v := fmt.Sprint(reflect.ValueOf(*x.Attr).Field(f)), fmt.Sprint(reflect.ValueOf(*y.Attr).Field(f))
			if field == "Variant" {
				u, v = exportable(x, u), unbracket(v)
			}
			if u != v {
				return head + fmt.Sprintf("%s %s, then %s", field, u, v)
			}
		}
	}
	for _, l := range []struct {
		what string
		a, b []model.TensorID
	}{{"inputs", a.Inputs, b.Inputs}, {"outputs", a.Outputs, b.Outputs}} {
		if x, y := names(a, l.a), names(b, l.b); !slices.Equal(x, y) {
			return fmt.Sprintf("%s %q, then %q", l.what, x, y)
		}
	}
	tensors := func(g *model.Graph) []string {
		var list []string
		for _, t := range g.Tensors {
			if t.Role == model.Constant && len(t.Consumers) == 0 && !g.IsOutput(t.ID) {
				continue
			}
			list = append(list, fmt.Sprintf("tensor %q: %v of %v, %v, learned %t, values %v, layout %v",
				t.Name, t.Shape, t.DType, t.Role, t.Learned, t.Ints, t.Layout))
		}
		slices.Sort(list)
		return list
	}
	x, y := tensors(a), tensors(b)
	for i := range max(len(x), len(y)) {
		switch {
		case i >= len(x):
			return "nothing, then " + y[i]
		case i >= len(y):
			return x[i] + ", then nothing"
		case x[i] != y[i]:
			return x[i] + ", then " + y[i]
		}
	}
	return ""
}

// exportable is a variant without the attributes that ONNX's operator does not have.
func exportable(op *model.Op, variant string) string {
	typ := forms[op.Kind].typ
	if of := parseVariant(variant).of; slices.Contains(forms[op.Kind].likened, of) {
		typ = of
	}
	words := slices.DeleteFunc(strings.Fields(variant), func(w string) bool {
		name, _, isAttr := strings.Cut(w, "=")
		_, known := options[typ][name]
		return isAttr && !known && !slices.Contains([]string{"min", "max", "value"}, name)
	})
	return unbracket(strings.Join(words, " "))
}

// unbracket spells a limit that is an input as one that is an attribute, which is
// what files older than operator set 11 have.
func unbracket(s string) string { return brackets.Replace(s) }

var brackets = strings.NewReplacer("[", "", "]", "")

func TestDifference(t *testing.T) {
	build := func(change func(*model.Graph)) *model.Graph {
		b := model.NewBuilder("net")
		x := b.Input("x", model.F32, 2, 3)
		b.Output(b.Op("Clip", "c", model.Attr{Variant: "min=0"},
			b.Op("Mul", "m", model.Attr{}, x, b.Param("w", model.F32, 3))))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		change(g)
		return g
	}
	for want, change := range map[string]func(*model.Graph){
		"":          func(*model.Graph) {},
		"name":      func(g *model.Graph) { g.Name = "other" },
		"operators": func(g *model.Graph) { g.Ops = g.Ops[:1] },
		"Div":       func(g *model.Graph) { g.Ops[0].Kind = "Div" },
		"Axis":      func(g *model.Graph) { g.Ops[0].Attr = &model.Attr{Axis: 1} },
		"Variant":   func(g *model.Graph) { g.Ops[1].Attr = &model.Attr{Variant: "min=1"} },
		"inputs":    func(g *model.Graph) { g.Ops[0].Inputs = g.Ops[0].Inputs[:1] },
		"outputs":   func(g *model.Graph) { g.Outputs = nil },
		"f16":       func(g *model.Graph) { g.Tensors[0].DType = model.F16 },
		"learned":   func(g *model.Graph) { g.Tensors[1].Learned = false },
		"values":    func(g *model.Graph) { g.Tensors[1].Ints = []int64{1} },
	} {
		got := difference(build(func(*model.Graph) {}), build(change))
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("difference is %q, want one in %q", got, want)
		}
	}
}

// Each network in one type and at one batch, so that all of both come up.
func TestExportZoo(t *testing.T) {
	types := []model.DType{model.F16, model.F32, model.I8}
	for i, name := range zoo.Names() {
		batch, dt := int64(1+2*(i%2)), types[i%len(types)]
		t.Run(fmt.Sprintf("%s/%d/%v", name, batch, dt), func(t *testing.T) {
			g, err := zoo.Build(name, zoo.Options{Batch: batch, DType: dt})
			if err != nil {
				t.Fatal(err)
			}
			bothForms(t, g)
		})
	}
}

func bothForms(t *testing.T, g *model.Graph) {
	t.Helper()
	roundTrip(t, g)
	s, _, err := simplify.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
}

// The batch of an exported network can be changed like that of any file.
func TestExportedBatch(t *testing.T) {
	for _, name := range zoo.Names() {
		t.Run(name, func(t *testing.T) {
			var graphs [2]*model.Graph
			for i, batch := range []int64{2, 5} {
				var err error
				if graphs[i], err = zoo.Build(name, zoo.Options{Batch: batch}); err != nil {
					t.Fatal(err)
				}
			}
			back, err := ImportReader(name, bytes.NewReader(exported(t, graphs[0], ExportOptions{})), Options{Batch: 5})
			if err != nil {
				t.Fatal(err)
			}
			if d := difference(graphs[1], back); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestExportFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(shared(t, "resnet18.onnx")), "*.onnx"))
	done := 0
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			g, err := Import(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			done++
			bothForms(t, g)
		})
	}
	if done != len(files) {
		t.Errorf("%d of %d files could be imported", done, len(files))
	}
}

// sample is a graph of one operator.
type sample struct {
	kind model.Kind
	attr model.Attr
	in   []model.TensorID // of samplesGraph
}

// sampleTensors are the tensors that samples read.
type sampleTensors struct {
	image, matrix, cube, row, scalar, truth, index, bytes model.TensorID
	weight, turned, dense, bias, mean, scale, one         model.TensorID
	mask, number, rows                                    model.TensorID
	bytesOf7, number32, zeros, updates                    model.TensorID
}

func newSampleTensors(b *model.Builder) (s sampleTensors) {
	s.image = b.Input("image", model.F32, 2, 4, 6, 5)
	s.matrix = b.Input("matrix", model.F16, 3, 4)
	s.cube = b.Input("cube", model.F32, 2, 3, 4)
	s.row = b.Input("row", model.F32, 4)
	s.scalar = b.Input("scalar", model.F64)
	s.truth = b.Input("truth", model.Bool, 7)
	s.index = b.Input("index", model.I32, 2, 2)
	s.bytes = b.Input("bytes", model.U8, 4, 4)
	s.weight = b.Param("weight", model.F32, 8, 2, 3, 2)
	s.turned = b.Param("turned", model.F32, 4, 3, 2, 2)
	s.dense = b.Param("dense", model.F16, 5, 4)
	s.bias = b.Param("bias", model.F32, 8)
	s.mean = b.Const("mean", model.F32, nil, 4)
	s.scale = b.Param("scale", model.F32, 4)
	s.one = b.Param("one", model.F32)                                      // learned, though a single number
	s.mask = b.Const("mask", model.F32, nil, 3, 4)                         // not learned, though a table
	s.number = b.Const("number", model.I64, []int64{-1, 1 << 40, 2, 3}, 4) // of known value
	s.rows = b.Const("rows", model.I32, []int64{1, 0, 0, -1, 2, 1}, 3, 2)  // of known value
	s.bytesOf7 = b.Input("bytes7", model.U8, 7)
	s.updates = b.Input("updates", model.U8, 2, 2)
	s.number32 = b.Const("number32", model.F32, nil)
	s.zeros = b.Const("zeros", model.I8, nil, 4)
	return s
}

func samples(s sampleTensors) []sample {
	ids := func(v ...model.TensorID) []model.TensorID { return v }
	var list []sample
	add := func(kind model.Kind, a model.Attr, in ...model.TensorID) {
		list = append(list, sample{kind: kind, attr: a, in: ids(in...)})
	}
	window := model.Attr{Strides: []int64{2, 1}, Dilations: []int64{1, 2}, Pads: []int64{1, 0, 2, 3}}
	conv, pool, turned := window, window, window
	conv.Group = 2
	pool.Kernel, pool.Pads = []int64{3, 2}, []int64{1, 0, 2, 1}
	turned.Group, turned.OutputPadding = 1, []int64{1, 0}
	add("Conv", conv, s.image, s.weight)
	add("Conv", conv, s.image, s.weight, s.bias)
	add("ConvTranspose", turned, s.image, s.turned)
	add("MatMul", model.Attr{}, s.cube, s.row)
	add("Gemm", model.Attr{TransB: true, Variant: "alpha=0.5"}, s.matrix, s.dense)
	add("Gemm", model.Attr{TransA: true, TransB: true}, s.bytes, s.dense)
	for _, ceil := range []bool{false, true} {
		pool.CeilMode = ceil
		add("MaxPool", pool, s.image)
	}
	pool.Variant = "count_include_pad=1"
	add("AveragePool", pool, s.image)
	add("GlobalMaxPool", model.Attr{}, s.image)
	add("GlobalAveragePool", model.Attr{}, s.image)
	add("BatchNorm", model.Attr{Variant: "epsilon=0.001"}, s.image, s.scale, s.scale, s.mean, s.mean)
	add("BatchNorm", model.Attr{}, s.image, s.mean, s.scale, s.scale, s.mean)
	add("LayerNorm", model.Attr{Axis: 1, Variant: "epsilon=1e-12"}, s.cube)
	add("LayerNorm", model.Attr{Axis: 2}, s.cube, s.scale)
	add("LayerNorm", model.Attr{Axis: 2, Variant: "epsilon=1e-12 stash_type=1"}, s.cube, s.scale, s.row)
	add("LRN", model.Attr{Kernel: []int64{3}, Variant: "alpha=0.0001 beta=0.75 bias=2"}, s.image)
	add("Softmax", model.Attr{Axis: 1}, s.cube)
	add("Softmax", model.Attr{Axis: 1, Axes: []int64{1, 2}}, s.cube)
	add("Softmax", model.Attr{Axis: 2, Axes: []int64{0, 2}}, s.cube)
	for _, k := range []model.Kind{"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"} {
		add(k, model.Attr{Axes: []int64{0, 2}}, s.cube)
		add(k, model.Attr{Axes: []int64{1}, KeepDims: true}, s.cube)
	}
	for _, k := range []model.Kind{"Relu", "LeakyRelu", "Elu", "Sigmoid", "HardSigmoid", "HardSwish", "Silu",
		"Softplus", "Tanh",
		"Erf", "Gelu", "Exp", "Log", "Sqrt", "Reciprocal", "Neg", "Abs", "Floor", "Clip", "Identity", "Dropout"} {
		add(k, model.Attr{}, s.cube)
	}
	add("Not", model.Attr{}, s.truth)
	add("Gelu", model.Attr{Variant: "approximate=tanh"}, s.matrix)
	add("LeakyRelu", model.Attr{Variant: "alpha=0.2"}, s.matrix)
	add("HardSigmoid", model.Attr{Variant: "alpha=0.16666667 beta=0.5"}, s.matrix)
	add("Elu", model.Attr{Variant: "alpha=1.5 of Celu"}, s.cube)
	add("Elu", model.Attr{Variant: "of Selu"}, s.cube)
	add("Floor", model.Attr{Variant: "of Ceil"}, s.cube)
	add("Floor", model.Attr{Variant: "of Round"}, s.cube)
	add("Clip", model.Attr{Variant: "max=[6] min=[-0.5]"}, s.matrix)
	add("Clip", model.Attr{Variant: "max=[6]"}, s.scalar)
	add("Clip", model.Attr{Variant: "max=[6] min=[1]"}, s.bytes)
	add("Clip", model.Attr{Variant: "max highest min=[0]"}, s.cube)
	add("Clip", model.Attr{Variant: "max highest"}, s.cube)
	for d := model.DType(0); d <= model.U2; d++ {
		add("Cast", model.Attr{Axis: int64(d)}, s.cube)
	}
	for _, k := range []model.Kind{"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"} {
		add(k, model.Attr{}, s.cube, s.mask)
		add(k, model.Attr{}, s.one, s.row)
	}
	for _, k := range []model.Kind{"Add", "Max", "Min"} {
		add(k, model.Attr{}, s.cube, s.mask, s.row)
	}
	add("PRelu", model.Attr{}, s.cube, s.mask)
	add("Reshape", model.Attr{Shape: []int64{4, 1, 6}}, s.cube)
	add("Reshape", model.Attr{Shape: []int64{1, 1}}, s.scalar)
	add("Transpose", model.Attr{Perm: []int64{2, 0, 1}}, s.cube)
	add("Transpose", model.Attr{}, s.scalar)
	add("Concat", model.Attr{Axis: 0}, s.row, s.mean, s.row)
	add("Split", model.Attr{Axis: 2, Splits: []int64{1, 3}}, s.cube)
	add("Slice", model.Attr{Starts: []int64{0, 1, 0}, Steps: []int64{1, 2, 3}, Shape: []int64{2, 1, 2}}, s.cube)
	add("Slice", model.Attr{Starts: []int64{0, 0}, Steps: []int64{1, 1}, Shape: []int64{3, 4}}, s.matrix)
	add("Pad", model.Attr{Pads: []int64{1, -1, 0, 2}}, s.matrix)
	add("Pad", model.Attr{Pads: []int64{1, 0, 0, 2}, Variant: "mode=reflect"}, s.matrix)
	add("Pad", model.Attr{Pads: []int64{1, 0, 0, 2}, Variant: "mode=constant value=[-1.5]"}, s.matrix)
	add("Gather", model.Attr{Axis: 1}, s.cube, s.index)
	add("Gather", model.Attr{Axis: 0}, s.mask, s.rows)
	add("Gather", model.Attr{Axis: 0}, s.number, s.index)
	add("Expand", model.Attr{Shape: []int64{2, 3, 4}}, s.row)
	ones := func(rest ...int64) []int64 { return append([]int64{1, 1}, rest...) }
	add("Resize", model.Attr{Shape: []int64{2, 4, 12, 15}, Kernel: ones(1, 1),
		Variant: "coordinate_transformation_mode=asymmetric mode=nearest nearest_mode=floor"}, s.image)
	add("Resize", model.Attr{Shape: []int64{6, 8}, Kernel: ones()}, s.matrix)
	add("Resize", model.Attr{Shape: []int64{2, 4, 7, 3}, Kernel: ones(2, 2),
		Variant: "coordinate_transformation_mode=align_corners mode=linear"}, s.image)
	add("Resize", model.Attr{Shape: []int64{2, 4, 7, 5}, Kernel: ones(4, 1), Variant: "mode=cubic"}, s.image)
	add("Resize", model.Attr{Shape: []int64{3<<24 + 1, 4}, Kernel: ones()}, s.matrix)
	add("Slice", model.Attr{Starts: []int64{1, 2, 3}, Steps: []int64{-1, -2, -3}, Shape: []int64{2, 2, 1}}, s.cube)
	for _, k := range []model.Kind{"Mish", "Sin", "Cos"} {
		add(k, model.Attr{}, s.cube)
	}
	for _, k := range []model.Kind{"Mod", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"} {
		add(k, model.Attr{}, s.cube, s.mask)
	}
	for _, k := range []model.Kind{"And", "Or", "Xor"} {
		add(k, model.Attr{}, s.truth, s.truth)
	}
	add("Where", model.Attr{}, s.truth, s.bytesOf7, s.bytesOf7)
	add("Quantize", model.Attr{Axis: int64(model.U8)}, s.image, s.number32)
	add("Quantize", model.Attr{Axis: int64(model.I8), Axes: []int64{1}, Variant: "saturate=0"}, s.image, s.mean, s.zeros)
	add("Dequantize", model.Attr{Axis: int64(model.F32), Axes: []int64{1}}, s.bytes, s.mean)
	add("RMSNorm", model.Attr{Axis: 1, Variant: "epsilon=1e-06"}, s.cube)
	add("RMSNorm", model.Attr{Axis: 2}, s.cube, s.scale)
	add("GroupNorm", model.Attr{Group: 2, Variant: "epsilon=1e-06"}, s.image, s.scale, s.scale)
	add("ArgMax", model.Attr{Axes: []int64{1}, KeepDims: true}, s.cube)
	add("ArgMax", model.Attr{Axes: []int64{2}, Variant: "of ArgMin"}, s.cube)
	add("CumSum", model.Attr{Axis: 1, Variant: "reverse=1"}, s.cube)
	add("TopK", model.Attr{Axis: 2, Splits: []int64{3}, Variant: "largest=0"}, s.cube)
	add("GatherElements", model.Attr{Axis: 1}, s.bytes, s.index)
	add("Scatter", model.Attr{Variant: "axis=1"}, s.bytes, s.index, s.updates)
	add("Scatter", model.Attr{Variant: "of ScatterND"}, s.bytes, s.index, s.updates)
	return list
}

// TestExportKinds makes a round trip with every kind, alone and all in one graph.
func TestExportKinds(t *testing.T) {
	unknown := model.NewBuilder("unknown")
	unknown.Output(unknown.Op("Unknown", "u", model.Attr{Shape: []int64{2}}, unknown.Input("x", model.F16, 2)))
	if g, err := unknown.Build(); err != nil {
		t.Error(err)
	} else if err := Export(io.Discard, g); err == nil ||
		!strings.Contains(err.Error(), `operator "u" (Unknown): nothing is known`) {
		t.Errorf("an unknown operator: %v", err)
	}
	for _, k := range model.Kinds() {
		if _, ok := forms[k]; !ok {
			t.Errorf("%s can't be exported", k)
		}
	}
	all := model.NewBuilder("all")
	inAll := newSampleTensors(all)
	seen := map[model.Kind]bool{}
	for i, s := range samples(inAll) {
		name := fmt.Sprintf("%s-%d", s.kind, i)
		seen[s.kind] = true
		t.Run(name, func(t *testing.T) {
			b := model.NewBuilder("one")
			own := samples(newSampleTensors(b))[i]
			b.Output(b.OpN(own.kind, name, own.attr, own.in...)...)
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, g)
		})
		all.Output(all.OpN(s.kind, name, s.attr, s.in...)...)
	}
	for _, k := range model.Kinds() {
		if !seen[k] && k != "Unknown" && k != "Attention" {
			t.Errorf("no sample has kind %s", k)
		}
	}
	g, err := all.Build()
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, g)
}

func TestExportRefuses(t *testing.T) {
	one := func(kind model.Kind, name string, inputs int) *model.Graph {
		b := model.NewBuilder("net")
		x := b.Input("x", model.F32, 4)
		b.Output(b.Op(kind, name, model.Attr{}, slices.Repeat([]model.TensorID{x}, inputs)...))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	change := func(f func(*model.Graph)) *model.Graph {
		g := one("Relu", "y", 1)
		f(g)
		return g
	}
	for _, c := range []struct {
		g    *model.Graph
		want string
	}{
		{&model.Graph{Name: "empty"}, `graph "empty": the graph has no output`},
		{change(func(g *model.Graph) { g.Ops[0].Kind = "Frobnicate" }), `unknown operator kind "Frobnicate"`},
		{change(func(g *model.Graph) { g.Ops[0].Inputs[0] = 9 }), "reads tensor 9, which does not exist"},
		{change(func(g *model.Graph) { g.Tensors[1].DType = 99 }), `"y" has dtype(99)`},
		{change(func(g *model.Graph) { g.Tensors[0].Name = "" }), "tensor 0 has no name"},
		{change(func(g *model.Graph) { g.Tensors[0].Name = "a\xff" }), `tensor "a\xff": the name is not UTF-8`},
		{change(func(g *model.Graph) { g.Ops[0].Name = "a\xff" }), `operator "a\xff" (Relu): the name is not UTF-8`},
		{one("Mul", "m", 3), `operator "m" (Mul): has 3 inputs, but ONNX's Mul has two`},
	} {
		var b bytes.Buffer
		if err := Export(&b, c.g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %s", err, c.want)
		}
		if b.Len() > 0 {
			t.Errorf("%s: %d bytes were written all the same", c.want, b.Len())
		}
	}
	full := errors.New("disk full")
	if err := Export(failing{full}, one("Relu", "y", 1)); !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// What a file holds besides the graph that comes back.
func TestExportedFile(t *testing.T) {
	b := model.NewBuilder("net")
	x := b.Input("x", model.F16, 2, 3)
	// The name that the target of the second reshape would get is taken.
	y := b.Op("Reshape", "r", model.Attr{Shape: []int64{6}}, x)
	y = b.Op("Reshape", "r", model.Attr{Shape: []int64{3, 2}}, y)
	y = b.Op("Clip", "c", model.Attr{Variant: "max=[6] min=[nonsense] unknown=1"}, y)
	y = b.Op("LeakyRelu", "l", model.Attr{Variant: "alpha=0.25 consumed_inputs=,0"}, y)
	y = b.Op("Silu", "s", model.Attr{}, y)
	b.Output(b.Op("Add", "r/shape.1", model.Attr{}, y, b.Param("w", model.F16, 2)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := read(bytes.NewReader(exported(t, g, ExportOptions{})))
	if err != nil {
		t.Fatal(err)
	}
	if m.irVersion != exportIR || m.opsets[""] != exportOpset || m.opsets[ownDomain] != 1 ||
		m.functions[functionKey{ownDomain, "Silu", ""}] == nil {
		t.Errorf("version %d, operator sets %v, functions %v", m.irVersion, m.opsets, m.functions)
	}
	var nodes, constants, infos []string
	for _, n := range m.graph.nodes {
		attrs := ""
		for _, a := range n.attrs {
			attrs += " " + a.name + "=" + a.spell(n)
		}
		nodes = append(nodes, fmt.Sprintf("%s %s%s(%s)%s", n.name, n.domain, n.op, strings.Join(n.inputs, ","), attrs))
	}
	for _, i := range m.graph.initializers {
		constants = append(constants, fmt.Sprintf("%s %v %d %v %v", i.name, i.dims, i.typ, i.ints, i.floats))
	}
	for _, v := range m.graph.valueInfo {
		infos = append(infos, fmt.Sprintf("%s %d %v", v.name, v.elem, v.dims))
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"nodes", nodes, []string{"r Reshape(x,r/shape)", "r Reshape(r,r/shape.2)", "c Clip(r.1,,c/max)",
			"l LeakyRelu(c) alpha=0.25",
			"s dsaschedSilu(l)", "r/shape.1 Add(s,w)"}},
		{"initializers", constants, []string{"w [2] 10 [] []", "r/shape [1] 7 [6] []", "r/shape.2 [2] 7 [3 2] []",
			"c/max [] 10 [] [6]"}},
		{"values", infos, []string{"r 10 [{6 true }]", "r.1 10 [{3 true } {2 true }]", "c 10 [{3 true } {2 true }]",
			"l 10 [{3 true } {2 true }]", "s 10 [{3 true } {2 true }]"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s are\n%q, want\n%q", c.what, c.got, c.want)
		}
	}
}

// Every half-precision number survives, and what lies between goes to the nearer
// neighbour, from the middle to the even one.
func TestFloatToHalf(t *testing.T) {
	for h := range 0x7c00 {
		v := halfToFloat(uint16(h))
		if got := floatToHalf(v); got != uint16(h) {
			t.Fatalf("%v becomes %#x, want %#x", v, got, h)
		}
		if got := floatToHalf(-v); got != uint16(h)|1<<15 {
			t.Fatalf("%v becomes %#x, want %#x", -v, got, h|1<<15)
		}
		next := halfToFloat(uint16(h + 1))
		if h == 0x7bff {
			next = 65536 // as if there were one more exponent
		}
		middle := (v + next) / 2
		for _, c := range []struct {
			v    float64
			want int
		}{{math.Nextafter(middle, 0), h}, {middle, h + h&1}, {math.Nextafter(middle, next), h + 1}} {
			if got := floatToHalf(c.v); got != uint16(c.want) {
				t.Fatalf("%v becomes %#x, want %#x", c.v, got, c.want)
			}
		}
	}
	if v := halfToFloat(floatToHalf(math.NaN())); v == v {
		t.Errorf("NaN becomes %v", v)
	}
	if got := floatToHalf(math.Inf(-1)); got != 0xfc00 {
		t.Errorf("-Inf becomes %#x", got)
	}
}

func TestFloatToBrain(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want uint16
	}{{0, 0}, {1, 0x3f80}, {-2, 0xc000}, {1 + 1.0/256, 0x3f80}, {1 + 3.0/256, 0x3f82}, {1 + 1.01/256, 0x3f81},
		{math.Inf(1), 0x7f80}, {math.MaxFloat32, 0x7f80}} {
		if got := floatToBrain(c.v); got != c.want {
			t.Errorf("%v becomes %#x, want %#x", c.v, got, c.want)
		}
	}
	if got := floatToBrain(math.NaN()); got&0x7f80 != 0x7f80 || got&0x7f == 0 {
		t.Errorf("NaN becomes %#x", got)
	}
}

func BenchmarkExport(b *testing.B) {
	for _, name := range zoo.Names() {
		b.Run(name, func(b *testing.B) {
			g, err := zoo.Build(name, zoo.Options{Batch: 1})
			if err != nil {
				b.Fatal(err)
			}
			var buf bytes.Buffer
			for b.Loop() {
				buf.Reset()
				if err := Export(&buf, g); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(buf.Len()))
		})
	}
}
