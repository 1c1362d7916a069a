package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/simplify"
)

// shared finds the files that lie beside the project.
func shared(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "onnx", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the shared data are not there: %v", err)
	}
	return path
}

// networks are the files with what is published of them, counted by
// the models' own definitions (torchvision, SqueezeNet's repository).
var networks = []struct {
	file            string
	params, macs    int64
	in, out         string
	ops, simplified int
}{
	// v1.5 by its MACs; without running statistics.
	{"light_resnet50.onnx", 25557032, 4089184256, "[%d,3,224,224]", "[%d,1000]", 176, 123},
	// Version 1.1: 1.0 has 1 248 424 parameters and 0.82 GMAC.
	{"light_squeezenet.onnx", 1235496, 349151936, "[%d,3,224,224]", "[%d,1000,1,1]", 66, 65},
	{"light_vgg19.onnx", 143667240, 19632062464, "[%d,3,224,224]", "[%d,1000]", 46, 44},
	// 11 689 512 minus the 4800 that folding its batch normalisations leaves out.
	{"resnet18.onnx", 11684712, 1814073344, "[%d,3,224,224]", "[%d,1000]", 49, 49},
}

func TestNetworks(t *testing.T) {
	for _, n := range networks {
		for _, batch := range []int64{0, 1, 8} {
			t.Run(fmt.Sprintf("%s/batch%d", n.file, batch), func(t *testing.T) {
				f16 := model.F16
				g, err := Import(shared(t, n.file), Options{Batch: batch, Float: &f16})
				if err != nil {
					t.Fatal(err)
				}
				if err := g.Validate(); err != nil {
					t.Error(err)
				}
				images := max(1, batch)
				if got := g.Params(); got != n.params {
					t.Errorf("%d parameters, want %d", got, n.params)
				}
				if got := g.MACs(); got != n.macs*images {
					t.Errorf("%d MACs, want %d", got, n.macs*images)
				}
				if len(g.Inputs) != 1 || len(g.Outputs) != 1 {
					t.Fatalf("%d inputs, %d outputs", len(g.Inputs), len(g.Outputs))
				}
				x, y := g.Tensor(g.Inputs[0]), g.Tensor(g.Outputs[0])
				if got, want := x.Shape.String(), fmt.Sprintf(n.in, images); got != want {
					t.Errorf("input %s, want %s", got, want)
				}
				if got, want := y.Shape.String(), fmt.Sprintf(n.out, images); got != want {
					t.Errorf("output %s, want %s", got, want)
				}
				if x.DType != f16 || y.DType != f16 {
					t.Errorf("input is %v, output %v", x.DType, y.DType)
				}
				if len(g.Ops) != n.ops {
					t.Errorf("%d operators, want %d", len(g.Ops), n.ops)
				}
				s, _, err := simplify.Run(g)
				if err != nil {
					t.Fatal(err)
				}
				if s.MACs() != g.MACs() || len(s.Ops) != n.simplified {
					t.Errorf("simplified: %d MACs and %d operators, want %d and %d", s.MACs(), len(s.Ops), g.MACs(), n.simplified)
				}
				for _, op := range s.Ops {
					if op.Kind == "BatchNorm" || op.Kind == "Dropout" {
						t.Errorf("%s is left of %s", op.Name, op.Kind)
					}
				}
			})
		}
	}
}

// TestDeclaredShapes compares inferred shapes and types with those that files
// carry themselves.
func TestDeclaredShapes(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(shared(t, "resnet18.onnx")), "*.onnx"))
	least := map[string]int{"resnet18.onnx": 49, "light_resnet50.onnx": 1, "inception_v2_inferred.onnx": 500}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			m, err := read(f)
			if err != nil {
				t.Fatal(err)
			}
			g, values, err := build(path, m, Options{})
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, info := range append(m.graph.valueInfo, m.graph.outputs...) {
				v := values[info.name]
				if v == nil || !info.tensor || !info.ranked {
					continue
				}
				var want model.Shape
				for _, d := range info.dims {
					if !d.fixed {
						want = nil
						break
					}
					want = append(want, d.value)
				}
				if len(want) != len(info.dims) {
					continue
				}
				compared++
				if !v.shape.Equal(want) {
					t.Errorf("%s has shape %v, the file says %v", info.name, v.shape, want)
				}
				if et := elementTypes[info.elem]; et.dtype != v.dtype {
					t.Errorf("%s has type %v, the file says %s", info.name, v.dtype, et.name)
				}
			}
			exercise(t, g)
			t.Logf("%d shapes compared", compared)
			if n := least[filepath.Base(path)]; compared < n {
				t.Errorf("%d shapes compared, expected at least %d", compared, n)
			}
		})
	}
}

func TestRescale(t *testing.T) {
	s := func(v ...int64) model.Shape { return v }
	for _, tt := range []struct {
		name                string
		own, now, out, want model.Shape
	}{
		{"classifier", s(1, 1000, 1, 1), s(8, 1000, 1, 1), s(1, 1000), s(8, 1000)},
		{"nothing grew", s(3, 4), s(3, 4), s(4, 3), s(4, 3)},
		{"batch dropped", s(1, 64, 768), s(8, 64, 768), s(64, 768), s(512, 768)},
		{"batch restored", s(64, 768), s(512, 768), s(1, 64, 768), s(8, 64, 768)},
		{"heads split", s(1, 64, 768), s(8, 64, 768), s(1, 64, 12, 64), s(8, 64, 12, 64)},
		{"heads joined with the batch", s(1, 12, 64, 64), s(8, 12, 64, 64), s(12, 64, 64), s(96, 64, 64)},
		{"heads parted from the batch", s(12, 64, 64), s(96, 64, 64), s(1, 12, 64, 64), s(8, 12, 64, 64)},
		{"sequence first", s(197, 1, 768), s(197, 8, 768), s(197, 12, 64), s(197, 96, 64)},
		{"sequence first, back", s(197, 12, 64), s(197, 96, 64), s(197, 1, 768), s(197, 8, 768)},
		{"all in one", s(1, 3, 4), s(8, 3, 4), s(12), s(96)},
		{"batch in the middle, all in one", s(3, 1, 4), s(3, 8, 4), s(12), s(96)},
		{"smaller batch", s(32, 10), s(4, 10), s(32, 2, 5), s(4, 2, 5)},
		{"ones at the end", s(1, 5, 1), s(8, 5, 1), s(1, 5, 1, 1, 1), s(8, 5, 1, 1, 1)},
		{"batch among ones at the end", s(5, 1), s(5, 8), s(5), s(40)},
		{"order of elements changes", s(2, 1, 3), s(2, 8, 3), s(3, 2), nil},
		{"no dimension left", s(1), s(8), s(), nil},
		{"batch does not divide", s(12, 5), s(8, 5), s(3, 4, 5), s(2, 4, 5)},
		{"batch does not divide at all", s(12, 5), s(7, 5), s(4, 3, 5), nil},
		{"rank changed", s(12, 5), s(60), s(4, 3, 5), nil},
	} {
		got, err := rescale(tt.own, tt.now, tt.out)
		if (err != nil) != (tt.want == nil) || (err == nil && !got.Equal(tt.want)) {
			t.Errorf("%s: got %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestBatchAndDims(t *testing.T) {
	relu := node("Relu", "r", in("x"), out("y"))
	y := output("y")
	vision := []msg{input("x", 1, 3, 4, 4), y, weights("cls", 1, 1, 6), weights("w", 6, 3, 2, 2), list("s", 1, 6, 4),
		weights("pos", 1, 5, 6),
		node("Conv", "c", in("x", "w"), out("c"), attrList("strides", 2, 2)), node("Reshape", "r", in("c", "s"), out("f")),
		node("Transpose", "t", in("f"), out("p"), attrList("perm", 0, 2, 1)),
		node("Concat", "k", in("cls", "p"), out("q"), attrInt("axis", 1)),
		node("Add", "a", in("q", "pos"), out("y"))}
	for _, tt := range []struct {
		name  string
		parts []msg
		opt   Options
		want  string // text of the graph, or an error
	}{
		{"symbolic batch", []msg{input("x", "N", 3), y, relu}, Options{Batch: 4}, "y[4,3] = Relu(x)\n"},
		{"unnamed batch", []msg{input("x", nil, 3), y, relu}, Options{Batch: 4}, "y[4,3] = Relu(x)\n"},
		{"batch by name", []msg{input("x", "N", 3), y, relu}, Options{Dims: map[string]int64{"N": 4}}, "y[4,3] = Relu(x)\n"},
		{"unnamed by position", []msg{input("x", nil, 3), y, relu}, Options{Dims: map[string]int64{"x.0": 4}},
			"y[4,3] = Relu(x)\n"},
		{"fixed batch", []msg{input("x", 2, 3), y, relu}, Options{Batch: 4}, "y[4,3] = Relu(x)\n"},
		{"second input follows", []msg{input("x", 2, 3), input("z", 2, 1), y, node("Add", "a", in("x", "z"), out("y"))},
			Options{Batch: 4}, "y[4,3] = Add(x z)\n"},
		{"second input has another size", []msg{input("x", 2, 3), input("z", 1, 3), y,
			node("Add", "a", in("x", "z"), out("y"))}, Options{Batch: 4}, "y[4,3] = Add(x z)\n"},
		{"name in another place", []msg{input("x", "N", 3), input("z", 3, "N"), y,
			node("MatMul", "a", in("x", "z"), out("y"))}, Options{Batch: 4}, "y[4,4] = MatMul(x z)\n"},
		{"the batch moves into the first dimension, not the inferred one",
			[]msg{input("x", 1, 6, 1, 1), y, list("s", 1, -1), node("Reshape", "r", in("x", "s"), out("y"))}, Options{Batch: 8},
			"y[8,6] = Reshape(x) Shape=[8 6]\n"},
		{"target that follows by itself", []msg{input("x", 1, 6, 2), y, list("i", 0), list("m", 2, -1),
			node("Shape", "n1", in("x"), out("s")),
			node("Gather", "n2", in("s", "i"), out("n")), node("Concat", "n3", in("n", "m"), out("t"), attrInt("axis", 0)),
			node("Reshape", "r", in("x", "t"), out("y"))}, Options{Batch: 8}, "y[8,2,6] = Reshape(x) Shape=[8 2 6]\n"},
		{"class token", vision, Options{Batch: 8},
			"c[8,6,2,2] = Conv(x w*) Strides=[2 2] Dilations=[1 1] Pads=[0 0 0 0] Group=1\n" +
				"f[8,6,4] = Reshape(c) Shape=[8 6 4]\np[8,4,6] = Transpose(f) Perm=[0 2 1]\nk/expand0[8,1,6] = Expand(cls*) Shape=[8 1 6]\n" +
				"q[8,5,6] = Concat(k/expand0 p) Axis=1\ny[8,5,6] = Add(q pos*)\n"},
		{"constant of the file's batch", []msg{input("x", 2, 3), weights("v", 2, 3), y,
			node("Add", "a", in("x", "v"), out("y"))}, Options{Batch: 4},
			`test.onnx: at batch 4 in place of the file's 2: node "a" (Add): shapes [4,3] and [2,3] do not broadcast`},
		{"negative batch", []msg{input("x", 2, 3), y, relu}, Options{Batch: -1},
			"test.onnx: batch -1, expected a positive number"},
		{"huge batch", []msg{input("x", 2, 3), y, relu}, Options{Batch: 1 << 50},
			`test.onnx: input "x": shape [1125899906842624,3] has more than 17592186044416 elements`},
		{"no batch", []msg{input("x"), y, relu}, Options{Batch: 2},
			"test.onnx: batch 2: the network has no input with a leading dimension"},
		{"unbound", []msg{input("x", "N", "C", nil, "C"), input("z", nil), y, relu}, Options{},
			`test.onnx: the sizes of these dimensions must be given by --dim NAME=SIZE: ` +
				`"N" (the batch, --batch N), "C", "x.2", "z.0"`},
		{"unbound beside the batch", []msg{input("x", "N", "seq"), y, relu}, Options{Batch: 2},
			`test.onnx: the sizes of these dimensions must be given by --dim NAME=SIZE: "seq"`},
		{"unknown name", []msg{input("x", "N", 3), y, relu}, Options{Batch: 1, Dims: map[string]int64{"M": 3}},
			`test.onnx: no dimension is called "M"; symbolic dimensions: N`},
		{"zero size", []msg{input("x", "N", 3), y, relu}, Options{Dims: map[string]int64{"N": 0}},
			`test.onnx: input "x": the batch is 0, expected a positive number (give one by --batch)`},
		{"a batch of 0 in the file", []msg{input("x", 0, 3), input("z", 0, 3), y, node("Add", "a", in("x", "z"), out("y"))},
			Options{Batch: 4}, "y[4,3] = Add(x z)\n"},
		{"a batch of -1", []msg{input("x", -1, 3), y, relu}, Options{Batch: 4}, "y[4,3] = Relu(x)\n"},
		{"a dimension of -1", []msg{input("x", 2, -1), y, relu}, Options{Dims: map[string]int64{"x.1": 5}},
			"y[2,5] = Relu(x)\n"},
		{"a dimension of -1 without a number", []msg{input("x", 2, -1), y, relu}, Options{},
			`test.onnx: the sizes of these dimensions must be given by --dim NAME=SIZE: "x.1"`},
		{"a dimension of -2", []msg{input("x", 2, -2), y, relu}, Options{},
			`test.onnx: input "x": dimension 1 of shape [2,-2] is negative`},
		{"no batch, one image", []msg{input("x"), y, relu}, Options{Batch: 1}, "y[] = Relu(x)\n"},
		{"statistics of as many channels as images", []msg{input("x", 2, 2, 4, 4), input("s", 2), input("b", 2),
			input("m", 2), input("v", 2), y, node("BatchNormalization", "n", in("x", "s", "b", "m", "v"), out("y"))},
			Options{Batch: 4}, "y[4,2,4,4] = BatchNorm(x s b m v)\n"},
		{"a batch of 1 for slopes of two channels", []msg{input("x", 2, 2, 4, 4), input("s", 2), y,
			node("PRelu", "n", in("x", "s2"), out("y")), list("k", 2, 1, 1), node("Reshape", "r", in("s", "k"), out("s2"))},
			Options{Batch: 1}, "s2[2,1,1] = Reshape(s) Shape=[2 1 1]\ny[1,2,4,4] = PRelu(x s2)\n"},
		{"weights in front of the images", []msg{input("w", 3, 5), input("x", 3, 3), y,
			node("MatMul", "m", in("x", "w"), out("y"))}, Options{Batch: 4}, "y[4,5] = MatMul(x w)\n"},
		{"weights of another length in front", []msg{input("w", 7, 5), input("x", 3, 7), y,
			node("MatMul", "m", in("x", "w"), out("y"))}, Options{Batch: 4}, "y[4,5] = MatMul(x w)\n"},
		{"a mask of scores", []msg{input("x", 1, 2, 3, 5), input("m", 1, 1, 3, 3), y,
			node("Transpose", "t", in("x"), out("k"), attrList("perm", 0, 1, 3, 2)), node("MatMul", "p", in("x", "k"), out("s")),
			node("Add", "a", in("s", "m"), out("b")), node("MatMul", "v", in("b", "x"), out("y"))}, Options{Batch: 8},
			"k[8,2,5,3] = Transpose(x) Perm=[0 1 3 2]\ns[8,2,3,3] = MatMul(x k)\nb[8,2,3,3] = Add(s m)\ny[8,2,3,5] = MatMul(b x)\n"},
		{"kinds of tokens", []msg{of("x", tInt64, 1, 3), of("z", tInt64, 1, 3), weights("e", 9, 5), weights("k", 2, 5), y,
			node("Gather", "g", in("e", "x"), out("a")), node("Gather", "h", in("k", "z"), out("b")),
			node("Add", "n", in("a", "b"), out("y"))}, Options{Batch: 8},
			"a[8,3,5] = Gather(e* x)\nb[8,3,5] = Gather(k* z)\ny[8,3,5] = Add(a b)\n"},
		{"a mask of tokens", []msg{input("x", 1, 2, 3, 3), input("m", 1, 3), y, list("u", 1, 2),
			node("Unsqueeze", "r", in("m", "u"), out("w")), node("Add", "a", in("x", "w"), out("y"))}, Options{Batch: 8},
			"w[8,1,1,3] = Reshape(m) Shape=[8 1 1 3]\ny[8,2,3,3] = Add(x w)\n"},
		{"sum of sizes", []msg{input("x", "N", "past + 2*(seq-1)"), y, relu},
			Options{Batch: 1, Dims: map[string]int64{"past": 3, "seq": 4}}, "y[1,9] = Relu(x)\n"},
		{"sum of sizes of which one is missing", []msg{input("x", "N", "past + seq"), y, relu},
			Options{Batch: 1, Dims: map[string]int64{"past": 3}},
			`test.onnx: the sizes of these dimensions must be given by --dim NAME=SIZE: "past + seq"`},
		{"sum that is given", []msg{input("x", "N", "past + seq"), input("z", "N", "seq"), y,
			node("Concat", "k", in("x", "z"), out("y"), attrInt("axis", 1))},
			Options{Batch: 1, Dims: map[string]int64{"past + seq": 7, "seq": 2}}, "y[1,9] = Concat(x z) Axis=1\n"},
		{"quotient of sizes", []msg{input("x", "N", "s//2"), input("z", "N", "s"), y,
			node("Concat", "k", in("x", "z"), out("y"), attrInt("axis", 1))}, Options{Batch: 1, Dims: map[string]int64{"s": 2}},
			`test.onnx: the sizes of these dimensions must be given by --dim NAME=SIZE: "s//2"`},
		{"two batches", []msg{input("x", "N", 3), y, relu}, Options{Batch: 2, Dims: map[string]int64{"N": 3}},
			`test.onnx: dimension "N" is the batch: give --batch 3 in place of --dim N=3`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := load(file(13, tt.parts...), tt.opt)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = describe(g)
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// What has no element is in no graph, wherever it comes from.
func TestEmptiness(t *testing.T) {
	x, y, none := input("x", 2, 3), output("y"), list("i")
	keep := node("Concat", "k", in("e", "x"), out("y"), attrInt("axis", 0))
	for _, tt := range []struct {
		name  string
		parts []msg
		want  string
	}{
		{"a piece of a split", []msg{x, y, list("s", 0, 1, 2), node("Split", "p", in("x", "s"), out("a", "b", "c"),
			attrInt("axis", 1)), node("Concat", "k", in("c", "a", "b"), out("y"), attrInt("axis", 1))},
			"b[2,1] c[2,2] = Split(x) Axis=1 Splits=[1 2]\ny[2,3] = Concat(c b) Axis=1\n"},
		{"all but a piece of a split", []msg{x, y, list("s", 0, 3), node("Split", "p", in("x", "s"), out("a", "y"),
			attrInt("axis", 1))}, "y[2,3] = Identity(x)\n"},
		{"a piece along no elements", []msg{x, y, list("s", 1, 2), input("z", 0, 3), node("Split", "p", in("z", "s"),
			out("e", "b"), attrInt("axis", 1)), node("Concat", "k", in("b", "f"), out("y"), attrInt("axis", 0)),
			list("a", 1), list("b0", 1), list("b1", 3), node("Slice", "l", in("x", "b0", "b1", "a"), out("f"))},
			"f[2,2] = Slice(x) Shape=[2 2] Starts=[0 1] Steps=[1 1]\ny[2,2] = Identity(f)\n"},
		{"rows of no indices", []msg{x, y, none, node("Gather", "g", in("x", "i"), out("e")), keep}, "y[2,3] = Identity(x)\n"},
		{"rows of no table", []msg{input("z", 0, 3), x, y, list("j", 1), node("Gather", "g", in("z", "j"), out("e")), keep},
			`node "g" (Gather): found index 1 in "j", expected one of 0 elements`},
		{"elements at no indices", []msg{x, y, msg(nil).sub(5, tensor("j", tInt64, 2, 0)), node("GatherElements", "g", in("x", "j"), out("e"),
			attrInt("axis", 1)), node("Concat", "k", in("e", "x"), out("y"), attrInt("axis", 1))}, "y[2,3] = Identity(x)\n"},
		{"nothing scattered", []msg{x, y, msg(nil).sub(5, tensor("j", tInt64, 0, 1)), input("u", 0, 3),
			node("ScatterND", "s", in("x", "j", "u"), out("y"))}, "y[2,3] = Identity(x)\n"},
		{"a border around nothing", []msg{input("z", 2, 0), y, list("p", 0, 1, 0, 2), node("Pad", "n", in("z", "p"), out("y"))},
			"y[2,3] = Expand(n/nothing) Shape=[2 3]\n"},
		{"cut to nothing by a border", []msg{x, y, list("p", 0, 0, -2, 0), node("Pad", "n", in("x", "p"), out("e")), keep},
			"y[2,3] = Identity(x)\n"},
		{"a border cut", []msg{x, y, list("p", 0, 0, -1, 0), node("Pad", "n", in("x", "p"), out("y"))},
			"y[1,3] = Pad(x) Pads=[0 0 -1 0]\n"},
		{"a sum over nothing", []msg{input("z", 2, 0), y, list("a", 1), node("ReduceSum", "n", in("z", "a"), out("y"))},
			"y[2,1] = Expand(n/nothing) Shape=[2 1]\n"},
		{"a mean beside nothing", []msg{input("z", 2, 0), x, y, list("a", 0), node("ReduceMean", "n", in("z", "a"), out("m"),
			attrInt("keepdims", 0)), node("Shape", "l", in("m"), out("c")), node("Size", "w", in("m"), out("q")),
			node("Unsqueeze", "v", in("q", "a"), out("o")), node("Concat", "k", in("c", "o"), out("t"), attrInt("axis", 0)),
			node("Slice", "r", in("x", "c", "big", "one"), out("y")), list("big", 9), list("one", 1)},
			"y[2,3] = Slice(x) Shape=[2 3] Starts=[0 0] Steps=[1 1]\n"},
		{"a product over nothing", []msg{input("a", 3, 0), input("b", 0, 5), y, node("MatMul", "m", in("a", "b"), out("y"))},
			"y[3,5] = Expand(m/nothing) Shape=[3 5]\n"},
		{"a product of nothing", []msg{input("z", 0, 3), x, y, weights("w", 3, 3), node("MatMul", "m", in("z", "w"), out("e")),
			keep}, "y[2,3] = Identity(x)\n"},
		{"a bias without a product", []msg{input("a", 3, 0), input("b", 0, 5), weights("c", 5), y,
			node("Gemm", "m", in("a", "b", "c"), out("y"))}, "y[3,5] = Expand(c*) Shape=[3 5]\n"},
		{"products that do not fit",
			[]msg{input("a", 3, 0), input("b", 1, 5), y, node("MatMul", "m", in("a", "b"), out("y"))}, `node "m" (MatMul): cannot multiply [3,0] by [1,5]: inner extents 0 and 1 differ`},
		{"images of none", []msg{input("z", 0, 3, 4, 4), weights("w", 5, 3, 3, 3), input("x", 1, 5, 2, 2), y,
			node("Conv", "c", in("z", "w"), out("a")), node("Relu", "r", in("a"), out("e")), keep}, "y[1,5,2,2] = Identity(x)\n"},
		{"attention to nothing", []msg{input("q", 1, 2, 3, 4), input("k", 1, 2, 0, 4), y,
			node("Attention", "a", in("q", "k", "k"), out("y"))}, "y[1,2,3,4] = Expand(a/nothing) Shape=[1 2 3 4]\n"},
		{"expanded to nothing",
			[]msg{x, input("o", 1, 3), y, list("s", 0, 3), node("Expand", "g", in("o", "s"), out("e")), keep}, "y[2,3] = Identity(x)\n"},
		{"nothing of another shape", []msg{x, input("z", 0, 4), y, list("s", 0, 3), node("Reshape", "g", in("z", "s"), out("e"),
			attrInt("allowzero", 1)), keep}, "y[2,3] = Identity(x)\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if g, err := load(file(23, tt.parts...), Options{}); err != nil {
				got = err.Error()
			} else {
				got = describe(g)
				exercise(t, g)
			}
			if !strings.HasSuffix(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	x, y := input("x", 1, 4, 8, 8), output("y")
	relu := node("Relu", "r", in("x"), out("y"))
	var many, kinds []msg
	for i := range 25 {
		kinds = append(kinds, nodeOf("com.example", fmt.Sprint("Magic", i), fmt.Sprint("m", i), in("x"),
			out(fmt.Sprint("t", i))), output(fmt.Sprint("t", i)))
		many = append(many, nodeOf("com.example", "Magic", fmt.Sprint("m", i), in("x"), out(fmt.Sprint("t", i))),
			output(fmt.Sprint("t", i)))
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a valid ONNX file: it is empty"},
		{"text", []byte("hello, world: this is not a network\n"), "not a valid ONNX file: at byte"},
		{"zeros", make([]byte, 100), "not a valid ONNX file: at byte 1: ModelProto has a field with number 0"},
		{"no graph", msg(nil).int(1, 8), "not a valid ONNX file: it holds no graph"},
		{"no operator set", msg(nil).int(1, 8).sub(7, msg(nil).str(2, "g")), "it does not say which operator set it uses"},
		{"length beyond the end", append(msg(nil).int(1, 8), 7<<3|2, 0xff, 0xff, 0xff, 0xff, 0x7f),
			"bytes announced, 0 left"},
		{"wire type", msg(nil).int(7, 1), "field 7 of ModelProto has wire type 0, expected 2"},
		{"no output", file(13, x, relu), "the graph has no output"},
		{"output of no node", file(13, x, relu, output("z")), `output "z" is written by no node`},
		{"dangling", file(13, x, y, node("Add", "a", in("x", "ghost"), out("y"))),
			`node "a" (Add) reads "ghost", which no node writes and which is neither input nor initializer`},
		{"two writers", file(13, x, y, relu, node("Tanh", "t", in("x"), out("y"))),
			`both node "r" (Relu) and node "t" (Tanh) write "y"`},
		{"overwritten input", file(13, x, y, relu, node("Tanh", "t", in("y"), out("x"))),
			`node "t" (Tanh) writes "x", which is an input or initializer`},
		{"two inputs", file(13, x, x, y, relu), `two inputs are called "x"`},
		{"two initializers", file(13, x, y, relu, weights("w", 1), weights("w", 2)), `two initializers are called "w"`},
		{"cycle", file(13, x, y, node("Add", "a", in("x", "q"), out("p")), node("Relu", "b", in("p"), out("q")),
			node("Relu", "c", in("q"), out("y"))), "cycle: b -> a -> b"},
		{"axes of a scalar", file(18, input("x"), y, list("s", 4),
			node("Resize", "u", in("x", "", "", "s"), out("y"), attrList("axes", 0))), "axis 0 does not exist in 0 dimensions"},
		{"scales and few sizes", file(18, x, y, floats("f", 1, 1, 2, 2), list("s", 16, 8),
			node("Resize", "u", in("x", "", "f", "s"), out("y"))), "sizes [16 8] for shape [1,4,8,8]"},
		{"unsupported",
			file(13, append([]msg{x, y, relu, node("Loop", "again", in("x"), out("i")), output("i"),
				node("Quantum", "q", in("x"), out("j")), output("j")}, many...)...),
			`27 unsupported operators: node "again" is Loop of domain ai.onnx (control flow); node "q" is Quantum of domain ai.onnx; 25 x Magic of domain com.example, such as node "m0"`},
		{"alike", file(13, append([]msg{x, y, relu}, many...)...),
			`25 unsupported operators: 25 x Magic of domain com.example, such as node "m0"`},
		{"the list is cut", file(13, append([]msg{x, y, relu}, kinds...)...), "; and 5 more kinds"},
		{"old operator set", file(6, x, y, node("Add", "a", in("x", "x"), out("y"))),
			`node "a" is Add of domain ai.onnx (operator set 6; known are 7 and later)`},
		{"too few inputs", file(13, x, y, node("Conv", "c", in("x"), out("y"))),
			`node "c" (Conv): has 1 inputs, expected 2 to 3`},
		{"left out", file(13, x, y, node("Conv", "c", in("x", ""), out("y"))),
			`node "c" (Conv): leaves out input 1, which it needs`},
		{"control flow", file(13, x, y, node("If", "n", in("x"), out("y"))),
			`node "n" is If of domain ai.onnx (control flow, and its condition ("x") is computed while the network runs)`},
		{"shape", file(13, x, y, weights("w", 6, 5, 3, 3), node("Conv", "c", in("x", "w"), out("y"))),
			`node "c" (Conv): input [1,4,8,8] and weights [6,5,3,3] do not fit 1 groups`},
		{"kernel", file(13, x, y, weights("w", 6, 4, 3, 3),
			node("Conv", "c", in("x", "w"), out("y"), attrList("kernel_shape", 5, 5))),
			`node "c" (Conv): kernel_shape is [5 5], but the weights have shape [6,4,3,3]`},
		{"pads", file(13, x, y, weights("w", 6, 4, 3, 3), node("Conv", "c", in("x", "w"), out("y"), attrList("pads", 1, 1))),
			`node "c" (Conv): attribute "pads" has 2 entries, expected 4`},
		{"attribute type", file(13, x, y, weights("w", 6, 4, 3, 3),
			node("Conv", "c", in("x", "w"), out("y"), attrStr("group", "one"))),
			`node "c" (Conv): attribute "group" is a string, expected an integer`},
		{"attribute twice", file(13, x, y, node("Elu", "e", in("x"), out("y"), attrFlt("alpha", 1), attrFlt("alpha", 2))),
			`node "e" (Elu): has two attributes "alpha"`},
		{"axis", file(13, x, y, node("Softmax", "s", in("x"), out("y"), attrInt("axis", 4))),
			`node "s" (Softmax): axis 4 does not exist in 4 dimensions`},
		{"no axis", file(13, x, y, node("Concat", "k", in("x", "x"), out("y"))),
			`node "k" (Concat): attribute "axis" is missing`},
		{"target not known", file(13, x, y, msg(nil).sub(11, typed("t", tInt64, 2)),
			node("Reshape", "r", in("x", "t"), out("y"))),
			`node "r" (Reshape): input 1 ("t") is computed while the network runs, expected a known list of integers`},
		{"values of a computed tensor", file(13, x, y, node("NonZero", "e", in("x"), out("t")),
			node("Relu", "r", in("t"), out("y")), output("z"), node("Loop", "l", in("x"), out("z"))),
			`2 unsupported operators: node "e" is NonZero of domain ai.onnx (works on known values only, but input 0 ("x") is not known); node "l" is Loop`},
		{"training", file(14, input("x", 4), y, weights("w", 4), node("BatchNormalization", "n", in("x", "w", "w", "w", "w"),
			out("y"), attrInt("training_mode", 1))),
			`node "n" (BatchNormalization): input "x" has shape [4], expected at least two dimensions`},
		{"used mean", file(13, x, y, weights("w", 8), nodeOf("com.microsoft", "SkipLayerNormalization", "d",
			in("x", "x", "w"), out("t", "y"))),
			`node "d" is SkipLayerNormalization of domain com.microsoft (output 1 ("y") is used, but not supported)`},
		{"optimiser of sequences", file(17, x, y, nodeOf("com.microsoft", "AdamWOptimizer", "n",
			in("x", "x", "x", "x", "x", "x"), out("y"))),
			`1 unsupported operator: node "n" is AdamWOptimizer of domain com.microsoft (sequences of tensors, whose type tells neither their number nor the shape of each)`},
		{"derivative", file(17, x, y, nodeOf("ai.onnx.preview.training", "Gradient", "n", in("x"), out("y"),
			attrStr("y", "loss"))),
			`1 unsupported operator: node "n" is Gradient of domain ai.onnx.preview.training (a derivative, which is not worked out: that of "loss" by ["x"])`},
		{"division by zero", file(13, x, y, list("a", 1), list("z", 0), node("Div", "d", in("a", "z"), out("q")),
			node("Reshape", "r", in("x", "q"), out("y"))), `node "d" (Div): division by zero`},
		{"overflow", file(13, x, y, list("a", 1<<62), node("Add", "d", in("a", "a"), out("q")),
			node("Reshape", "r", in("x", "q"), out("y"))), `node "d" (Add): integer overflow`},
		{"index", file(13, x, y, list("i", 9), node("Shape", "s", in("x"), out("n")),
			node("Gather", "g", in("n", "i"), out("q")), node("Reshape", "r", in("x", "q"), out("y"))),
			`node "g" (Gather): found index 9 in "i", expected one of 4 elements`},
		{"index of data", file(13, x, y, list("i", -5), node("Gather", "g", in("x", "i"), out("y"), attrInt("axis", 1))),
			`node "g" (Gather): found index -5 in "i", expected one of 4 elements`},
		{"negative dimension", file(13, input("x", 1, -3), y, relu), `input "x": dimension 1 of shape [1,-3] is negative`},
		{"huge dimension", file(13, x, y, relu, weights("w", 1<<40, 1<<40)),
			`tensor "w": shape [1099511627776,1099511627776] has more than 17592186044416 elements`},
		{"negative dimension of weights", file(13, x, y, relu, weights("w", -1)),
			`tensor "w": dimension 0 of shape [-1] is negative`},
		{"many dimensions", file(13, x, y, relu, weights("w", make([]int64, 100)...)), `has more than 32 dimensions`},
		{"too little data", file(13, x, y, relu, msg(nil).sub(5, tensor("w", tFloat, 10).sub(9, make([]byte, 39)))),
			`tensor "w": has 39 bytes of data, expected 40 for shape [10] of FLOAT`},
		{"too many numbers", file(13, x, y, relu, msg(nil).sub(5, tensor("w", tInt64, 2).packed(7, 1, 2, 3))),
			`tensor "w": has 3 values, expected 2 for shape [2]`},
		{"element type", file(13, x, y, relu, msg(nil).sub(5, tensor("w", 99, 2))),
			`tensor "w": has element type 99, which ONNX does not define`},
		{"strings", file(13, msg(nil).sub(11, typed("x", tString, 2)), y, relu),
			`input "x" has element type STRING, which is not supported`},
		{"no tensor", file(13, msg(nil).sub(11, msg(nil).str(1, "x").sub(2, msg(nil).sub(4, nil))), y, relu),
			`input "x" is not a tensor`},
		{"long name", file(13, x, y, node("Relu", strings.Repeat("n", 1<<20), in("x"), out("y"))),
			"is a name of 1048576 bytes, more than 16384"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := load(tt.data, Options{})
			if err == nil {
				t.Fatalf("no error\n%s", describe(g))
			}
			if !strings.HasPrefix(err.Error(), "test.onnx: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Error("the error has several lines")
			}
		})
	}
	var u *UnsupportedError
	if _, err := load(file(13, append([]msg{x, y, relu}, many...)...), Options{}); !errors.As(err, &u) ||
		len(u.Nodes) != 20 || u.More != 5 {
		t.Errorf("got %#v", u)
	}
	var c *model.CycleError
	if _, err := load(file(13, x, y, node("Add", "a", in("x", "y"), out("y"))), Options{}); !errors.As(err, &c) {
		t.Errorf("got %v", err)
	}
	if _, err := Import(filepath.Join(t.TempDir(), "missing.onnx"), Options{}); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "missing.onnx") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Import(t.TempDir(), Options{}); err == nil {
		t.Error("a folder is no error")
	}
	i64 := model.I64
	if _, err := load(small(), Options{Float: &i64}); err == nil {
		t.Error("floats became long integers")
	}
}

// small is a file with a bit of everything.
func small() []byte {
	return file(13, input("x", "N", 4, 8, 8), output("y", "N", 6), weights("w", 6, 4, 3, 3),
		list("s", 1, -1), list("i", 0),
		msg(nil).sub(5, tensor("b", tFloat, 6).sub(9, make([]byte, 24))), floats("half", 0.5),
		node("Conv", "c", in("x", "w", "b"), out("c"), attrStr("auto_pad", "SAME_UPPER"), attrList("strides", 2, 2)),
		node("Clip", "k", in("c", "", "half"), out("k")), node("GlobalAveragePool", "g", in("k"), out("g")),
		node("Shape", "sh", in("g"), out("sh")), node("Gather", "n1", in("sh", "i"), out("n")),
		node("Concat", "n2", in("n", "m"), out("t"), attrInt("axis", 0)),
		node("Constant", "n3", nil, out("m"), attrTensor("value", rawInts("", []int64{1}, -1))),
		node("Reshape", "r", in("g", "t"), out("f")), node("Softmax", "y", in("f"), out("y")))
}

func TestUnsortedNodes(t *testing.T) {
	g, err := load(file(13, input("x", 2), output("y"), node("Relu", "c", in("b"), out("y")),
		node("Tanh", "b", in("a"), out("b")), node("Exp", "a", in("x"), out("a"))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describe(g), "a[2] = Exp(x)\nb[2] = Tanh(a)\ny[2] = Relu(b)\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestNames: the graph's names are the file's; nameless nodes are called after
// their output.
func TestNames(t *testing.T) {
	g, err := ImportReader(filepath.Join("some", "net.v2.onnx"),
		bytes.NewReader(file(13, input("image", 2), output("result"), node("Relu", "", in("image"), out("result")))),
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != "net.v2" || g.Ops[0].Name != "result" || g.Tensor(g.Inputs[0]).Name != "image" ||
		g.Tensor(g.Outputs[0]).Name != "result" {
		t.Errorf("graph %q, operator %q, tensors %q and %q", g.Name, g.Ops[0].Name, g.Tensor(g.Inputs[0]).Name,
			g.Tensor(g.Outputs[0]).Name)
	}
}

// TestSeveralOpsets: the newest entry of a domain counts, whatever its name.
func TestSeveralOpsets(t *testing.T) {
	data := msg(file(9, input("x", 1, 2, 3), output("y"), node("Softmax", "s", in("x"), out("y")))).
		sub(8, msg(nil).str(1, "ai.onnx").int(2, 13)).sub(8, msg(nil).int(2, 11))
	g, err := load(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a := g.Ops[0].Attr; a.Axis != 2 || a.Axes != nil {
		t.Errorf("softmax over %d %v", a.Axis, a.Axes)
	}
}

// TestTruncated cuts a file everywhere.
func TestTruncated(t *testing.T) {
	data := small()
	opt := Options{Batch: 2}
	if _, err := load(data, opt); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if g, err := load(data[:n], opt); err == nil {
			t.Errorf("%d of %d bytes: no error\n%s", n, len(data), describe(g))
		}
		// A stream does not tell its length beforehand.
		if _, err := ImportReader("stream", struct{ io.Reader }{bytes.NewReader(data[:n])}, opt); err == nil {
			t.Errorf("%d of %d bytes as a stream: no error", n, len(data))
		}
	}
	if _, err := ImportReader("stream", struct{ io.Reader }{bytes.NewReader(data)}, opt); err != nil {
		t.Error(err)
	}
}

// TestFlipped flips each bit of a file; whatever comes out of it is valid.
func TestFlipped(t *testing.T) {
	data := small()
	failed := 0
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			g, err := load(data, Options{Batch: 2})
			data[i] ^= 1 << bit
			if err != nil {
				failed++
			} else {
				exercise(t, g)
			}
		}
	}
	t.Logf("%d of %d flips are errors", failed, 8*len(data))
}

// TestGarbage feeds noise, alone and behind a good beginning.
func TestGarbage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		data := make([]byte, r.IntN(300))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		if _, err := load(data, Options{}); err == nil {
			t.Errorf("no error for % x", data)
		}
		g := small()
		g = append(g[:r.IntN(len(g))], data...)
		load(g, Options{Batch: 2})
	}
}

// exercise uses a graph as its readers do.
func exercise(t *testing.T, g *model.Graph) {
	t.Helper()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	g.MACs()
	g.Params()
	for _, op := range g.Ops {
		for o := range op.Outputs {
			g.Sequential(op, o)
			whole := model.Whole(g.Tensor(op.Outputs[o]).Shape)
			g.MatrixDims(op, whole)
			for i := range op.Inputs {
				g.InputRegion(op, o, i, whole)
			}
		}
	}
	if _, _, err := simplify.Run(g); err != nil {
		t.Fatal(err)
	}
}

// TestHostile: files that promise or describe far more than they hold end in an
// error soon, without much memory.
func TestHostile(t *testing.T) {
	x, y := input("x", 2), output("y")
	relu := node("Relu", "r", in("x"), out("y"))
	repeat := func(m msg, n int) msg { return bytes.Repeat(m, n) }
	chain := func(n int, f func(i int) msg) msg {
		var m msg
		for i := range n {
			m = append(m, f(i)...)
		}
		return m
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"a million empty nodes", file(13, x, y, relu, repeat(msg(nil).sub(1, nil), 1<<20))},
		{"a million empty initializers", file(13, x, y, relu, repeat(msg(nil).sub(5, nil), 1<<20))},
		{"a million empty inputs", file(13, x, y, relu, repeat(msg(nil).sub(11, nil), 1<<20))},
		{"a million attributes", file(13, x, y, node("Relu", "r", in("x"), out("y"), repeat(msg(nil).sub(5, nil), 1<<20)))},
		{"a million attributes in a node",
			file(13, x, y, msg(nil).sub(1, repeat(msg(nil).sub(5, nil), 1<<20).str(4, "Relu")))},
		{"a million inputs of a node",
			file(13, x, y, msg(nil).sub(1, repeat(msg(nil).str(1, "x"), 1<<20).str(4, "Relu").str(2, "y")))},
		{"a million integers", file(13, x, y, node("Relu", "r", in("x"), out("y"), attrList("a", make([]int64, 1<<20)...)))},
		{"a million dimensions", file(13, x, y, relu, weights("w", make([]int64, 1<<20)...))},
		{"many large known lists", file(13, x, y, relu, list("n", 4096),
			node("ConstantOfShape", "k", in("n"), out("k"), attrTensor("value", rawInts("", []int64{1}, 1))),
			chain(20000, func(i int) msg {
				return append(node("Neg", "n", in("k"), out(fmt.Sprint("t", i))), output(fmt.Sprint("t", i))...)
			}))},
		{"doubling", file(13, x, output("t99"), node("Identity", "", in("x"), out("t-1")), chain(100, func(i int) msg {
			return node("Concat", "", in(fmt.Sprint("t", i-1), fmt.Sprint("t", i-1)), out(fmt.Sprint("t", i)),
				attrInt("axis", 0))
		}))},
		{"growing rank", file(13, x, output("t99"), node("Identity", "", in("x"), out("t-1")), list("a", 0),
			chain(100, func(i int) msg {
				return node("Unsqueeze", "", in(fmt.Sprint("t", i-1), "a"), out(fmt.Sprint("t", i)))
			}))},
		{"endless range", file(13, x, output("r"), node("Constant", "", nil, out("a"), attrInt("value_int", 0)),
			node("Constant", "", nil, out("b"), attrInt("value_int", 1<<62)),
			node("Constant", "", nil, out("c"), attrInt("value_int", 1)), node("Range", "", in("a", "b", "c"), out("r")))},
		{"a long cycle", file(13, x, output("t0"), chain(20000, func(i int) msg {
			return node("Relu", fmt.Sprint("n", i), in(fmt.Sprint("t", (i+1)%20000)), out(fmt.Sprint("t", i)))
		}))},
		{"many open dimensions", file(13, y, relu, x,
			chain(20000, func(i int) msg { return input(fmt.Sprint("i", i), nil, nil) }))},
		{"nested deeply", file(13, x, y, relu, func() msg {
			m := msg{}
			for range 2000 {
				m = msg(nil).sub(5, msg(nil).sub(6, msg(nil).sub(1, m)))
			}
			return msg(nil).sub(1, m.str(4, "If").str(2, "z"))
		}())},
		{"large tensor without data", append(msg(nil).int(1, 8),
			append(protowire.AppendTag(nil, 7, protowire.BytesType), protowire.AppendVarint(nil, 1<<40)...)...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{bytes.NewReader(tt.data), struct{ io.Reader }{bytes.NewReader(tt.data)}} {
				used, err := measure(func() error { _, err := ImportReader("test.onnx", r, Options{}); return err })
				if err == nil {
					t.Fatal("no error")
				}
				if len(err.Error()) > 5000 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				t.Logf("%.3f s, %d MiB: %.200v", used.seconds, used.bytes>>20, err)
				if used.bytes > 200<<20 || used.seconds > 10 {
					t.Errorf("took %.1f s and %d MiB", used.seconds, used.bytes>>20)
				}
			}
		})
	}
}

type usage struct {
	seconds float64
	bytes   uint64 // allocated in all, so an upper limit of the memory
}

func measure(f func() error) (usage, error) {
	var a, b runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&a)
	start := time.Now()
	err := f()
	u := usage{seconds: time.Since(start).Seconds()}
	runtime.ReadMemStats(&b)
	u.bytes = b.TotalAlloc - a.TotalAlloc
	return u, err
}

// heavy writes a network of four products with n bytes of weights, as raw data
// and as float_data. The payload is a hole in the file where the file system
// knows holes.
func heavy(t testing.TB, n int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heavy.onnx")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const parts = 4
	each := n / parts / 4096 * 4096 // a row of 1024 floats
	var heads []msg
	total := int64(0)
	for i := range parts {
		num := protowire.Number(9)
		if i%2 == 1 {
			num = 4
		}
		h := tensor(fmt.Sprint("w", i), tFloat, 1024, each/4096)
		h = protowire.AppendVarint(protowire.AppendTag(h, num, protowire.BytesType), uint64(each))
		h = append(protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.BytesType), uint64(int64(len(h))+each)), h...)
		heads = append(heads, h)
		total += int64(len(h)) + each
	}
	tail := append(input("x", 1, 1024), output("y")...)
	for i := range parts {
		tail = append(tail, node("MatMul", "", in("x", fmt.Sprint("w", i)), out(fmt.Sprint("y", i)))...)
	}
	tail = append(tail, node("Concat", "", in("y0", "y1", "y2", "y3"), out("y"), attrInt("axis", 1))...)
	start := msg(nil).int(1, 8).sub(8, msg(nil).int(2, 13))
	start = protowire.AppendVarint(protowire.AppendTag(start, 7, protowire.BytesType), uint64(total+int64(len(tail))))
	write := func(b []byte) {
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	write(start)
	for _, h := range heads {
		write(h)
		if _, err := f.Seek(each, io.SeekCurrent); err != nil {
			t.Fatal(err)
		}
	}
	write(tail)
	return path
}

// TestHeavy imports a file of one gigabyte.
func TestHeavy(t *testing.T) {
	path := heavy(t, 1<<30)
	check := func(g *model.Graph, used usage, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Params(); got != 1<<28 {
			t.Errorf("%d parameters, want %d", got, 1<<28)
		}
		t.Logf("%.3f s, %d KiB", used.seconds, used.bytes>>10)
		if used.bytes > 10<<20 {
			t.Errorf("took %d MiB", used.bytes>>20)
		}
	}
	var g *model.Graph
	used, err := measure(func() (err error) { g, err = Import(path, Options{}); return err })
	check(g, used, err)
	if testing.Short() {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	used, err = measure(func() (err error) {
		g, err = ImportReader("stream", struct{ io.Reader }{f}, Options{})
		return err
	})
	check(g, used, err)
}

// TestRandomNodes throws inputs and attributes of all sorts at every row of the
// table, which random bytes would take long to reach.
func TestRandomNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(vs ...int64) int64 { return vs[r.IntN(len(vs))] }
	number := func() int64 {
		return pick(0, 1, 1, 1, 2, 3, -1, -2, 4, 8, 100, 1<<30, 1<<31, 1<<40, 1<<62, -1<<62, -1<<63, 1<<63-1)
	}
	extent := func() int64 { return pick(1, 1, 2, 3, 4, 4, 8, 8, 1<<20, 1<<40) }
	several := func(n int, f func() int64) []int64 {
		vs := make([]int64, r.IntN(n+1))
		for i := range vs {
			vs[i] = f()
		}
		return vs
	}
	names := []string{"axis", "axes", "kernel_shape", "strides", "dilations", "pads", "group", "auto_pad", "ceil_mode",
		"perm", "to", "keepdims",
		"split", "num_outputs", "starts", "ends", "steps", "shape", "output_shape", "output_padding", "transA", "transB",
		"value", "value_ints", "size", "scales", "start", "end", "allowzero",
		"num_heads", "kv_num_heads", "q_num_heads", "rotary_embedding_dim", "do_rotary", "unidirectional", "is_causal",
		"qkv_hidden_sizes", "blocksize", "block_size", "k", "p", "K", "N",
		"num_groups", "equation", "activation", "batch_dims", "upper", "dtype", "output_dtype", "noop_with_empty_axes",
		"keep_aspect_ratio_policy", "mode", "opset"}
	imported := 0
	const each = 100
	for _, row := range rows {
		for range each {
			var parts []msg
			var inputs []string
			n := row.minIn
			if row.maxIn > n {
				n += r.IntN(row.maxIn - n + 1)
			} else if row.maxIn < 0 {
				n += r.IntN(3)
			}
			rank := 1 + r.IntN(4)
			for i := range n {
				name := fmt.Sprint("x", i)
				var dims []any
				shape := several(4, extent)
				if r.IntN(2) == 0 { // the usual: equally many dimensions, small
					shape = make([]int64, rank)
					for d := range shape {
						shape[d] = pick(1, 2, 4)
					}
				}
				for _, d := range shape {
					dims = append(dims, int(d))
				}
				switch r.IntN(4) {
				case 0:
					parts = append(parts, list(name, several(4, number)...))
				case 1:
					parts = append(parts, weights(name, shape...))
				case 2:
					parts = append(parts, floats(name, 1, float32(number()), 2, 2))
				default:
					parts = append(parts, msg(nil).sub(11, typed(name, pick(tFloat, tFloat, tInt64, tBool), dims...)))
				}
				inputs = append(inputs, name)
			}
			var attrs []msg
			for _, i := range r.Perm(len(names))[:r.IntN(8)] {
				switch r.IntN(6) {
				case 0:
					attrs = append(attrs, attrStr(names[i],
						[]string{"SAME_UPPER", "SAME_LOWER", "VALID", "odd", "ij,jk->ik", "i...,...j", "Relu", "CRD",
							"not_larger"}[r.IntN(9)]))
				case 1, 2:
					attrs = append(attrs, attrInt(names[i], number()))
				case 3, 4:
					attrs = append(attrs, attrList(names[i], several(4, number)...))
				default:
					attrs = append(attrs, attrTensor(names[i], rawInts("", []int64{1}, number())))
				}
			}
			outputs := out("y", "z", "u")[:1+r.IntN(3)]
			parts = append(parts, nodeOf(row.domain, row.name, "n", inputs, outputs, attrs...), output("y"))
			if r.IntN(2) == 0 { // a reader of what may be known
				parts = append(parts, input("q", 1, 4), node("Reshape", "r", in("q", "y"), out("w")), output("w"))
			}
			opset := row.since
			if row.until == 0 && row.domain == "" {
				opset = max(row.since, pick(7, 11, 13, 18))
			}
			g, err := load(file(opset, parts...), Options{Batch: pick(0, 0, 1, 3)})
			if err == nil {
				imported++
				exercise(t, g)
			}
		}
	}
	t.Logf("%d of %d are valid", imported, each*len(rows))
}

func FuzzImport(f *testing.F) {
	f.Add(small(), int64(0))
	f.Add(small(), int64(3))
	f.Add(file(13, input("x", 1, 4, 8, 8), output("y"),
		node("MaxPool", "p", in("x"), out("y"), attrList("kernel_shape", 3, 3), attrInt("ceil_mode", 1))), int64(2))
	f.Add(file(9, input("x", 1, 4, 8, 8), output("y"), list("b", 1), list("e", 7),
		node("Slice", "s", in("x", "b", "e"), out("t")), node("Transpose", "q", in("t"), out("y"))), int64(0))
	f.Add(file(13, input("x", 2, 6), output("a"), output("b"),
		node("Split", "s", in("x"), out("a", "c"), attrInt("axis", 1)),
		node("Concat", "k", in("c", "a"), out("b"), attrInt("axis", 0))), int64(4))
	f.Add(file(11, input("x", 1, 4, 8, 8), output("y"), weights("w", 4, 3, 2, 2),
		node("ConvTranspose", "c", in("x", "w"), out("u"), attrList("strides", 2, 2)), floats("s", 1, 1, 2, 2),
		node("Resize", "z", in("u", "", "s"), out("z")), node("Pad", "p", in("z", "ps"), out("y")),
		list("ps", 0, 0, 1, 1, 0, 0, 1, 1)), int64(0))
	f.Add(file(17, input("x", 2, 3, 4), output("y"), weights("s", 4),
		node("LayerNormalization", "n", in("x", "s"), out("n")), list("a", 2),
		node("ReduceMean", "m", in("n", "a"), out("m")),
		node("MatMul", "q", in("n", "w"), out("q")), weights("w", 4, 5), node("Gemm", "g", in("f", "w"), out("y")),
		node("Flatten", "f", in("n"), out("f"), attrInt("axis", 2)),
		node("BatchNormalization", "b", in("n", "v", "v", "v", "v"), out("b")), weights("v", 3),
		node("LRN", "l", in("n"), out("l"), attrInt("size", 3))), int64(0))
	f.Add(file(13, input("x", 6), output("y"), node("Constant", "a", nil, out("0"), attrInt("value_int", 0)),
		node("Constant", "b", nil, out("6"), attrInt("value_int", 6)),
		node("Range", "r", in("0", "6", "1"), out("v")), node("Constant", "c", nil, out("1"), attrInt("value_int", 2)),
		node("Less", "l", in("v", "6"), out("c")), node("Where", "w", in("c", "v", "0"), out("ix")),
		node("Gather", "g", in("x", "ix"), out("y")), node("Expand", "e", in("v", "es"), out("e")), list("es", 2, 1),
		node("Squeeze", "sq", in("e"), out("sq")), node("Mod", "m", in("sq", "6"), out("mo"))), int64(0))
	for _, c := range rowCases {
		f.Add(c.file(), int64(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, batch int64) {
		g, err := load(data, Options{Batch: batch})
		if err != nil {
			return
		}
		exercise(t, g)
	})
}

func ExampleImportReader() {
	network := file(13, input("image", "N", 3, 8, 8), output("features"), weights("w", 16, 3, 3, 3),
		node("Conv", "conv", in("image", "w"), out("features"), attrStr("auto_pad", "SAME_UPPER")))
	f16 := model.F16
	g, err := ImportReader("tiny.onnx", bytes.NewReader(network), Options{Batch: 4, Float: &f16})
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Name, g.Tensor(g.Outputs[0]).Shape, g.Tensor(g.Outputs[0]).DType, g.Params(),
		"parameters", g.MACs(), "MACs")
	// Output: tiny [4,16,8,8] f16 432 parameters 110592 MACs
}

func BenchmarkImport(b *testing.B) {
	for _, n := range networks {
		b.Run(n.file, func(b *testing.B) {
			path := shared(b, n.file)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Import(path, Options{Batch: 8}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("1GiB", func(b *testing.B) {
		path := heavy(b, 1<<30)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Import(path, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("100000operators", func(b *testing.B) {
		parts := []msg{input("x", 1, 64), output("t99999"), node("Relu", "", in("x"), out("t0")), weights("w", 64)}
		for i := 1; i < 100000; i++ {
			parts = append(parts, node("Add", fmt.Sprint("node", i), in(fmt.Sprint("t", i-1), "w"), out(fmt.Sprint("t", i))))
		}
		data := file(13, parts...)
		b.ReportAllocs()
		for b.Loop() {
			g, err := load(data, Options{})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := simplify.Run(g); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Each operand is looked at beside all others of its node, of which there are therefore not too many.
func TestOperands(t *testing.T) {
	concat := func(n int) []byte {
		many := slices.Repeat([]string{"x"}, n)
		return file(13, input("x", 1, 8), output("y"), node("Concat", "c", in(many...), out("y"), attrInt("axis", 1)))
	}
	if g, err := ImportReader("test.onnx", bytes.NewReader(concat(4096)), Options{}); err != nil ||
		len(g.Ops) != 1 || len(g.Ops[0].Inputs) != 4096 {
		t.Errorf("4096 inputs: %v", err)
	}
	if _, err := ImportReader("test.onnx", bytes.NewReader(concat(4097)), Options{}); err == nil ||
		!strings.Contains(err.Error(), "a node has more than 4096 inputs") {
		t.Errorf("4097 inputs: %v", err)
	}
}

// The shape that a file declares of an output is compared with what comes out at the file's own sizes, whatever the
// batch is, but for a batch that has a name.
func TestDeclaredOutputs(t *testing.T) {
	for _, c := range []struct {
		in, out any // the leading dimensions
		width   int
		batch   int64
		want    string
	}{
		{2, 2, 3, 0, ""}, {2, 2, 3, 5, ""}, {2, 1, 3, 2, "[1,3], found [2,3]"}, {"N", 1, 3, 4, ""}, {"N", "N", 3, 4, ""},
		{"N", "N", 4, 4, "[1,4], found [1,3]"}, {2, 2, 4, 5, "[2,4], found [2,3]"},
	} {
		var told []string
		_, err := ImportReader("t.onnx", bytes.NewReader(file(13, input("x", c.in, 3), output("y", c.out, c.width),
			node("Relu", "r", in("x"), out("y")))), Options{Batch: c.batch, Warn: func(s string) {
			if strings.HasPrefix(s, "output ") {
				told = append(told, strings.TrimPrefix(s, `output "y": the file declares shape `))
			}
		}})
		if err != nil || strings.Join(told, "; ") != c.want {
			t.Errorf("%+v: %q, %v", c, told, err)
		}
	}
}
