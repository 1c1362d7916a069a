package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dsasched/dsasched/model"
)

// content takes the message out of the first field of m: a node that node made for
// a graph, say.
func content(m msg) msg {
	_, _, n := protowire.ConsumeTag(m)
	b, _ := protowire.ConsumeBytes(m[n:])
	return b
}

// defined is a function of the domain "f", whose nodes are of an operator set.
func defined(name string, opset int64, inputs, outputs []string, nodes []msg, defaults ...msg) msg {
	f := msg(nil).str(1, name).str(10, "f").sub(9, msg(nil).str(1, "").int(2, opset))
	for _, s := range inputs {
		f = f.str(4, s)
	}
	for _, s := range outputs {
		f = f.str(5, s)
	}
	for _, n := range nodes {
		f = f.sub(7, content(n))
	}
	for _, a := range defaults {
		f = f.sub(11, a)
	}
	return f
}

// callOf is a node that calls a function.
func callOf(name, label string, inputs, outputs []string, attrs ...msg) msg {
	return nodeOf("f", name, label, inputs, outputs, attrs...)
}

// attrFrom is an attribute with the value of one of the function's.
func attrFrom(name, from string, typ int64) msg {
	return msg(nil).str(1, name).str(21, from).int(20, typ)
}

// with adds functions to a file.
func with(data []byte, functions ...msg) []byte {
	m := msg(slices.Clone(data))
	for _, f := range functions {
		m = m.sub(25, f)
	}
	return m
}

func yes(name string) msg {
	return node("Constant", "", nil, out(name), attrTensor("value", tensor("", tBool).sub(9, []byte{1})))
}

func TestFunctions(t *testing.T) {
	x, y := input("x", 2, 6), output("y")
	x2 := input("x", 1, 4, 7)
	twice := defined("Twice", 13, in("a"), out("b"),
		parts(node("Relu", "r", in("a"), out("t")), node("Tanh", "", in("t"), out("b"))))
	leaky := func(defaults ...msg) msg {
		return defined("Leaky", 16, in("a"), out("b"),
			parts(node("LeakyRelu", "l", in("a"), out("b"), attrFrom("alpha", "slope", typeFloat))), defaults...)
	}
	clip := defined("Limit", 13, in("a", "lo", "hi"), out("b"), parts(node("Clip", "c", in("a", "lo", "hi"), out("b"))))
	six := msg(nil).sub(5, tensor("six", tFloat).sub(9, []byte{0, 0, 192, 64}))
	choose := defined("Choose", 13, in("a"), out("b"), parts(yes("c"), node("If", "if", in("c"), out("b"),
		attrGraph("then_branch", node("LeakyRelu", "l", in("a"), out("t"), attrFrom("alpha", "slope", typeFloat)),
			node("Abs", "", in("t"), out("b")), output("b")),
		attrGraph("else_branch", node("Tanh", "t", in("a"), out("t")), output("t")))), attrFlt("slope", 0.5))
	overload := func(name string, n msg) msg {
		return defined("Act", 13, in("a"), out("b"), parts(n)).str(13, name)
	}
	called := func(name, overload string, inputs, outputs []string) msg {
		return msg(nil).sub(1, content(callOf(name, "", inputs, outputs)).str(8, overload))
	}
	for _, tt := range []struct {
		name  string
		opset int64
		parts []msg
		fs    []msg
		want  string
	}{
		{"once", 13, parts(x, y, callOf("Twice", "n", in("x"), out("y"))), parts(twice),
			"n/t[2,6] = Relu(x)\ny[2,6] = Tanh(n/t)\n> y[2,6] f32\n"},
		{"two calls of one name", 13, parts(x, y, callOf("Twice", "n", in("x"), out("u")),
			callOf("Twice", "n", in("u"), out("y"))), parts(twice),
			"n/t[2,6] = Relu(x)\nu[2,6] = Tanh(n/t)\nn.1/t[2,6] = Relu(u)\ny[2,6] = Tanh(n.1/t)\n> y[2,6] f32\n"},
		{"nameless calls", 13, parts(x, y, callOf("Twice", "", in("x"), out("y"))), parts(twice),
			"y/t[2,6] = Relu(x)\ny[2,6] = Tanh(y/t)\n> y[2,6] f32\n"},
		{"nested", 13, parts(x, y, callOf("Outer", "n", in("x"), out("y"))),
			parts(defined("Outer", 13, in("a"), out("b"),
				parts(callOf("Twice", "i", in("a"), out("t")), callOf("Twice", "j", in("t"), out("b")))), twice),
			"n/i/t[2,6] = Relu(x)\nn/t[2,6] = Tanh(n/i/t)\nn/j/t[2,6] = Relu(n/t)\ny[2,6] = Tanh(n/j/t)\n> y[2,6] f32\n"},
		{"a name that is taken", 13, parts(x, y, node("Neg", "", in("x"), out("n/t")),
			callOf("Twice", "n", in("n/t"), out("y"))), parts(twice),
			"n/t[2,6] = Neg(x)\nn/t.1[2,6] = Relu(n/t)\ny[2,6] = Tanh(n/t.1)\n> y[2,6] f32\n"},
		{"attribute given", 16, parts(x, y, callOf("Leaky", "n", in("x"), out("y"), attrFlt("slope", 0.25))),
			parts(leaky(attrFlt("slope", 0.5))), "y[2,6] = LeakyRelu(x) Variant=alpha=0.25\n> y[2,6] f32\n"},
		{"attribute by default", 16, parts(x, y, callOf("Leaky", "n", in("x"), out("y"))),
			parts(leaky(attrFlt("slope", 0.5))), "y[2,6] = LeakyRelu(x) Variant=alpha=0.5\n> y[2,6] f32\n"},
		{"attribute of neither", 16, parts(x, y, callOf("Leaky", "n", in("x"), out("y"))), parts(leaky()),
			"y[2,6] = LeakyRelu(x)\n> y[2,6] f32\n"},
		{"attribute handed on", 16, parts(x, y, callOf("Outer", "n", in("x"), out("y"), attrFlt("k", 0.125))),
			parts(defined("Outer", 16, in("a"), out("b"),
				parts(callOf("Leaky", "i", in("a"), out("b"), attrFrom("slope", "k", typeFloat)))), leaky(attrFlt("slope", 0.5))),
			"y[2,6] = LeakyRelu(x) Variant=alpha=0.125\n> y[2,6] f32\n"},
		{"attribute handed on that is not there", 16, parts(x, y, callOf("Outer", "n", in("x"), out("y"))),
			parts(defined("Outer", 16, in("a"), out("b"),
				parts(callOf("Leaky", "i", in("a"), out("b"), attrFrom("slope", "k", typeFloat)))), leaky(attrFlt("slope", 0.5))),
			"y[2,6] = LeakyRelu(x) Variant=alpha=0.5\n> y[2,6] f32\n"},
		{"overloads", 13, parts(x, y, called("Act", "a", in("x"), out("t")), called("Act", "b", in("t"), out("y"))),
			parts(overload("a", node("Relu", "", in("a"), out("b"))), overload("b", node("Tanh", "", in("a"), out("b")))),
			"t[2,6] = Relu(x)\ny[2,6] = Tanh(t)\n> y[2,6] f32\n"},
		{"an overload that is not there", 13, parts(x, y, called("Act", "c", in("x"), out("y"))),
			parts(overload("a", node("Relu", "", in("a"), out("b")))),
			`1 unsupported operator: node "y" is Act of domain f`},
		{"all inputs", 13, parts(x, y, six, callOf("Limit", "n", in("x", "six", "six"), out("y"))), parts(clip),
			"y[2,6] = Clip(x) Variant=max=[6] min=[6]\n> y[2,6] f32\n"},
		{"without the last", 13, parts(x, y, six, callOf("Limit", "n", in("x", "six"), out("y"))), parts(clip),
			"y[2,6] = Clip(x) Variant=min=[6]\n> y[2,6] f32\n"},
		{"without the middle", 13, parts(x, y, six, callOf("Limit", "n", in("x", "", "six"), out("y"))), parts(clip),
			"y[2,6] = Clip(x) Variant=max=[6]\n> y[2,6] f32\n"},
		{"without both", 13, parts(x, y, callOf("Limit", "n", in("x"), out("y"))), parts(clip),
			"y[2,6] = Clip(x)\n> y[2,6] f32\n"},
		{"without a needed one", 13, parts(x, y, callOf("Limit", "n", nil, out("y"))), parts(clip),
			`node "n/c" (Clip): has 0 inputs, expected 1 to 3`},
		{"an input as output", 13, parts(x, y, output("z"), callOf("Pass", "n", in("x"), out("y", "z"))),
			parts(defined("Pass", 13, in("a"), out("a", "b"), parts(node("Relu", "", in("a"), out("b"))))),
			"z[2,6] = Relu(x)\ny[2,6] = Identity(x)\n> y[2,6] f32\n> z[2,6] f32\n"},
		{"no body", 13, parts(x, y, callOf("Same", "n", in("x"), out("y"))),
			parts(defined("Same", 13, in("a"), out("a"), nil)), "y[2,6] = Identity(x)\n> y[2,6] f32\n"},
		{"an output left out", 13, parts(x, y, callOf("Two", "n", in("x"), out("", "y"))),
			parts(defined("Two", 13, in("a"), out("b", "c"),
				parts(node("Relu", "", in("a"), out("b")), node("Tanh", "", in("b"), out("c"))))),
			"n/b[2,6] = Relu(x)\ny[2,6] = Tanh(n/b)\n> y[2,6] f32\n"},
		{"operator sets of their own", 13, parts(x, y, callOf("Old", "n", in("x"), out("u")),
			callOf("New", "m", in("u"), out("v")), node("Softmax", "", in("v"), out("y"), attrInt("axis", 0))),
			parts(defined("Old", 12, in("a"), out("b"), parts(node("Softmax", "", in("a"), out("b"), attrInt("axis", 0)))),
				defined("New", 13, in("a"), out("b"), parts(node("Softmax", "", in("a"), out("b"), attrInt("axis", 0))))),
			"u[2,6] = Softmax(x) Axes=[0 1]\nv[2,6] = Softmax(u)\ny[2,6] = Softmax(v)\n> y[2,6] f32\n"},
		{"an operator set without the operator", 13, parts(x, y, callOf("Old", "n", in("x"), out("y"))),
			parts(defined("Old", 6, in("a"), out("b"), parts(node("Add", "s", in("a", "a"), out("b"))))),
			`1 unsupported operator: node "n/s" is Add of domain ai.onnx (operator set 6; known are 7 and later)`},
		{"a condition, and names as around it", 13,
			parts(x, y, callOf("Choose", "n", in("x"), out("u")),
				callOf("Choose", "m", in("u"), out("y"), attrFlt("slope", 0.25))), parts(choose),
			"n/t[2,6] = LeakyRelu(x) Variant=alpha=0.5\nu[2,6] = Abs(n/t)\nm/t[2,6] = LeakyRelu(u) Variant=alpha=0.25\ny[2,6] = Abs(m/t)\n> y[2,6] f32\n"},
		{"a call in a branch", 13, parts(x, y, yes("c"),
			node("If", "if", in("c"), out("y"), attrGraph("then_branch", callOf("Twice", "n", in("x"), out("u")), output("u")),
				attrGraph("else_branch", output("x")))), parts(twice),
			"n/t[2,6] = Relu(x)\nu[2,6] = Tanh(n/t)\n> u[2,6] f32\n"},
		{"an operator of the table stays", 13, parts(x, y, node("Relu", "n", in("x"), out("y"))),
			parts(msg(nil).str(1, "Relu").str(4, "a").str(5, "b").sub(7, content(node("Tanh", "", in("a"), out("b"))))),
			"y[2,6] = Relu(x)\n> y[2,6] f32\n"},
		{"an operator outside the table", 13, parts(x, y, node("Det", "n", in("x"), out("y"))),
			parts(msg(nil).str(1, "Det").str(4, "a").str(5, "b").sub(9, msg(nil).int(2, 13)).sub(7,
				content(node("Tanh", "", in("a"), out("b"))))),
			"y[2,6] = Tanh(x)\n> y[2,6] f32\n"},
		{"unsupported within", 13, parts(x, y, callOf("Odd", "n", in("x"), out("y"))),
			parts(defined("Odd", 13, in("a"), out("b"), parts(node("Loop", "l", in("a"), out("b"))))),
			`1 unsupported operator: node "n/l" is Loop of domain ai.onnx (control flow)`},
		{"an attribute that the shape completes", 13, parts(x2, input("x3", 1, 4, 9), y, output("z"), weights("w", 4, 3, 2),
			callOf("Up", "n", in("x", "w"), out("y")), callOf("Up", "m", in("x3", "w"), out("z"))),
			parts(defined("Up", 13, in("a", "b"), out("c"),
				parts(node("ConvTranspose", "t", in("a", "b"), out("c"), attrList("pads", 0, 0), attrList("output_padding", 0),
					attrList("output_shape", 9))))),
			"y[1,3,9] = ConvTranspose(x w*) Strides=[1] Dilations=[1] Pads=[0 0] Group=1 OutputPadding=[1]\nz[1,3,9] = ConvTranspose(x3 w*) Strides=[1] Dilations=[1] Pads=[1 0] Group=1 OutputPadding=[0]\n> y[1,3,9] f32\n> z[1,3,9] f32\n"},
		{"too many inputs", 13, parts(x, y, callOf("Twice", "n", in("x", "x"), out("y"))), parts(twice),
			`node "n" calls function Twice of domain f: 2 inputs, expected at most 1`},
		{"too many outputs", 13, parts(x, y, callOf("Twice", "n", in("x"), out("y", "z"))), parts(twice),
			`node "n" calls function Twice of domain f: 2 outputs, expected at most 1`},
		{"calls itself", 13, parts(x, y, callOf("F", "n", in("x"), out("y"))),
			parts(defined("F", 13, in("a"), out("b"), parts(callOf("G", "g", in("a"), out("b")))),
				defined("G", 13, in("a"), out("b"), parts(callOf("F", "f", in("a"), out("b"))))),
			`node "n/g/f" calls function F of domain f: which calls itself: F -> G -> F`},
		{"calls itself, unused", 13, parts(x, y, node("Relu", "", in("x"), out("y"))),
			parts(defined("F", 13, in("a"), out("b"), parts(callOf("F", "f", in("a"), out("b"))))),
			"y[2,6] = Relu(x)\n> y[2,6] f32\n"},
		{"an output that nobody writes", 13, parts(x, y, callOf("F", "n", in("x"), out("y"))),
			parts(defined("F", 13, in("a"), out("b"), nil)), `output "y" is written by no node`},
		{"an input overwritten", 13, parts(x, y, callOf("F", "n", in("x"), out("y"))),
			parts(defined("F", 13, in("a"), out("b"),
				parts(node("Relu", "r", in("a"), out("a")), node("Relu", "s", in("a"), out("b"))))),
			`node "n/r" (Relu) writes "x", which is an input or initializer`},
		{"a value from around it", 13, parts(x, y, callOf("F", "n", in("x"), out("y"))),
			parts(defined("F", 13, in("a"), out("b"), parts(node("Add", "s", in("a", "x"), out("b"))))),
			`node "n/s" (Add) reads "n/x", which no node writes and which is neither input nor initializer`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := with(file(tt.opset, tt.parts...), tt.fs...)
			if got := summary(data, Options{}); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			} else if g, err := load(data, Options{Batch: 3}); err == nil {
				exercise(t, g)
			}
		})
	}
	if _, err := load(with(file(13, x, y, callOf("Twice", "n", in("x"), out("y"))), twice, twice),
		Options{}); err == nil || !strings.Contains(err.Error(), "two functions are called Twice of domain f") {
		t.Errorf("two functions of one name: %v", err)
	}
}

// TestFunctionsOfExporter imports a file in which every layer is a call, and
// conditions are within functions.
func TestFunctionsOfExporter(t *testing.T) {
	g, err := Import(shared(t, "resnet18_dynamo.onnx"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	exercise(t, g)
	if got := g.MACs(); got != 1814073344 {
		t.Errorf("%d MACs, want 1814073344", got)
	}
	if got := g.Params(); got != 11689512 {
		t.Errorf("%d parameters, want 11689512", got)
	}
}

// TestHostileFunctions is TestHostile for what functions and branches can hide.
func TestHostileFunctions(t *testing.T) {
	x, y := input("x", 2), output("y")
	start := file(13, x, y, callOf("F99", "n", in("x"), out("y")))
	chain := func(n int, body func(i int) []msg) []byte {
		data := msg(slices.Clone(start))
		for i := range n {
			data = data.sub(25, defined(fmt.Sprint("F", 100-n+i), 13, in("a"), out("b"), body(100-n+i)))
		}
		return data
	}
	next := func(i int, label, from, to string) msg { return callOf(fmt.Sprint("F", i-1), label, in(from), out(to)) }
	many := func(n int, f func(i int) string) []string {
		var list []string
		for i := range n {
			list = append(list, f(i))
		}
		return list
	}
	long := strings.Repeat("n", 16000)
	short := defined("F0", 13, in("a"), out("b"), parts(node("Relu", "r", in("a"), out("b"))))
	var deep msg = node("Relu", "", in("x"), out("d"))
	for i := range 15 {
		deep = append(yes(fmt.Sprint("c", i)), node("If", fmt.Sprint("i", i), in(fmt.Sprint("c", i)), out("d"),
			attrGraph("then_branch", deep, output("d")), attrGraph("else_branch", output("x")))...)
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string // of the error; empty for none
	}{
		{"two calls each", with(chain(50, func(i int) []msg {
			if i == 50 {
				return parts(node("Relu", "r", in("a"), out("b")))
			}
			return parts(next(i, "p", "a", "t"), next(i, "q", "t", "b"))
		})), "more than 192 MiB"},
		{"two calls each, of nothing", with(chain(50, func(i int) []msg {
			if i == 50 {
				return nil
			}
			return parts(next(i, "", "a", ""), next(i, "", "", ""))
		})), "more than 192 MiB"},
		{"a thousand calls each", with(chain(10, func(i int) []msg {
			if i == 90 {
				return parts(node("Relu", "r", in("a"), out("b")))
			}
			var list []msg
			for range 1000 {
				list = append(list, next(i, "", "a", ""))
			}
			return list
		})), "more than 192 MiB"},
		{"a long chain", with(chain(99, func(i int) []msg { return parts(next(i, "", "a", "b")) }), short),
			"nested more than 64 deep"},
		{"a chain of long names", with(chain(60, func(i int) []msg {
			return append(parts(next(i, long, "a", "t")), slices.Repeat(parts(node("Relu", long, in("t"), nil)), 100)...)
		})), "bytes, more than 16384"},
		{"many calls of long names",
			with(file(13, append(parts(x, y), slices.Repeat(parts(callOf("F1", "n", in("x"), nil)), 1000)...)...),
				defined("F1", 13, in("a"), out("b"), slices.Repeat(parts(callOf("F0", long, in("a"), nil)), 1000)), short),
			"more than 192 MiB"},
		{"a body of long names",
			with(file(13, append(parts(x, y), slices.Repeat(parts(callOf("F0", "n", in("x"), nil)), 1000)...)...),
				defined("F0", 13, in("a"), out("b"), slices.Repeat(parts(node("Relu", long, in("a"), nil)), 1000))),
			"more than 192 MiB"},
		{"many calls of many inputs",
			with(file(13, append(parts(x, y), slices.Repeat(parts(callOf("F0", "n", in("x"), nil)), 100000)...)...),
				defined("F0", 13, many(100000, func(i int) string { return fmt.Sprint("a", i) }), out("b"), nil)),
			"more than 192 MiB"},
		{"many calls of a node of many inputs",
			with(file(13, append(parts(x, y), slices.Repeat(parts(callOf("F0", "n", in("x"), nil)), 100000)...)...),
				defined("F0", 13, in("a"), out("b"), parts(node("Sum", "s", slices.Repeat(in("a"), 4096), out("b"))))),
			"more than 192 MiB"},
		{"many calls of a node of many attributes",
			with(file(13, append(parts(x, y), slices.Repeat(parts(callOf("F0", "n", in("x"), nil)), 100000)...)...),
				defined("F0", 13, in("a"), out("b"),
					parts(node("Sum", "s", in("a"), out("b"), slices.Repeat(parts(attrInt("k", 1)), 50000)...)))),
			"more than 192 MiB"},
		{"many calls of large branches",
			with(file(13, append(parts(x, y), slices.Repeat(parts(callOf("F0", "n", in("x"), nil)), 100000)...)...),
				defined("F0", 13, in("a"), out("b"),
					parts(node("If", "s", in("a"), out("b"),
						attrGraph("then_branch", slices.Repeat(parts(weights("w", 2)), 10000)...))))), "more than 192 MiB"},
		{"a million functions", func() []byte {
			data := msg(slices.Clone(start))
			for i := range 1 << 20 {
				data = data.sub(25, msg(nil).str(1, fmt.Sprint(i)))
			}
			return data
		}(), "more than 192 MiB"},
		{"many functions, one of use", func() []byte {
			data := with(start, defined("F99", 13, in("a"), out("b"), parts(node("Relu", "", in("a"), out("b")))))
			for i := range 20000 {
				data = msg(data).sub(25, msg(nil).str(1, fmt.Sprint(i)))
			}
			return data
		}(), ""},
		{"a name as long as may be", with(file(13, x, y, callOf("F0", strings.Repeat("n", maxName), in("x"), out("y"))),
			defined("F0", 13, in("a"), out("b"),
				parts(node("Relu", "", in("a"), out("t")), node("Relu", "", in("t"), out("b"))))), "bytes, more than 16384"},
		{"branches in branches", file(13, x, output("d"), deep), ""},
		{"huge extents", file(13, input("x", 1<<40, 1<<40), y, node("Relu", "", in("x"), out("y"))), "elements"},
		{"product of huge extents", file(13, input("x", 1<<22, 2), input("z", 2, 1<<30), y,
			node("MatMul", "", in("x", "z"), out("y"))), "elements"},
		{"huge block", file(13, input("x", 1, 1<<20, 2, 2), y,
			node("DepthToSpace", "", in("x"), out("y"), attrInt("blocksize", 1<<40))), "positive size"},
		{"huge tiles", file(13, input("x", 1<<20, 2), list("r", 1<<43, 1<<43), y, node("Tile", "", in("x", "r"), out("y"))),
			"overflow"},
		{"negative extent", file(13, input("x", -2, 3), y, node("Relu", "", in("x"), out("y"))), "is negative"},
		{"a one-hot of huge depth", file(13, of("x", tInt64, 1<<20), msg(nil).sub(5, rawInts("d", nil, 1<<40)),
			weights("v", 2), y, node("OneHot", "", in("x", "d", "v"), out("y"))), "elements"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			used, err := measure(func() error { _, err := load(tt.data, Options{}); return err })
			switch {
			case err == nil && tt.want != "", err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %.300v, want %q", err, tt.want)
			case err != nil && len(err.Error()) > 5000:
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			t.Logf("%.3f s, %d MiB: %.100v", used.seconds, used.bytes>>20, err)
			if used.bytes > 200<<20 || used.seconds > 10 {
				t.Errorf("took %.1f s and %d MiB", used.seconds, used.bytes>>20)
			}
		})
	}
}

// TestAllowUnknown: operators without a row are work of one operation per element.
func TestAllowUnknown(t *testing.T) {
	magic := func(inputs, outputs []string) msg { return nodeOf("com.example", "Magic", "m", inputs, outputs) }
	info := func(name string, elem int64, dims ...any) msg { return msg(nil).sub(13, typed(name, elem, dims...)) }
	x := input("x", 2, 6)
	for _, tt := range []struct {
		name  string
		parts []msg
		opt   Options
		want  string
		warns int
	}{
		{"declared", parts(x, info("t", tHalf, 2, 3), magic(in("x"), out("t")), node("Relu", "", in("t"), out("y")),
			output("y")), Options{},
			"t[2,3] = Unknown(x) Shape=[2 3] Variant=output 0 of \"m\"\ny[2,3] = Relu(t)\n> y[2,3] f16\n", 1},
		{"declared as output", parts(x, magic(in("x"), out("y")), output("y", 4)), Options{},
			"y[4] = Unknown(x) Axis=1 Shape=[4] Variant=output 0 of \"m\"\n> y[4] f32\n", 1},
		{"declared, another batch", parts(x, info("t", tFloat, 2, 3), magic(in("x"), out("t")),
			node("Relu", "", in("t"), out("y")), output("y")), Options{Batch: 8},
			"t[8,3] = Unknown(x) Axis=1 Shape=[8 3] Variant=output 0 of \"m\"\ny[8,3] = Relu(t)\n> y[8,3] f32\n", 2},
		{"declared with a name", parts(input("x", "N", 6), info("t", tFloat, "N", 3), magic(in("x"), out("t")),
			node("Relu", "", in("t"), out("y")), output("y")), Options{Batch: 4},
			"t[4,3] = Unknown(x) Axis=1 Shape=[4 3] Variant=output 0 of \"m\"\ny[4,3] = Relu(t)\n> y[4,3] f32\n", 1},
		{"not declared", parts(weights("w", 7), x, magic(in("w", "", "x"), out("t")), node("Relu", "", in("t"), out("y")),
			output("y")), Options{},
			"t[2,6] = Unknown(w* x) Axis=1 Shape=[2 6] Variant=output 0 of \"m\"\ny[2,6] = Relu(t)\n> y[2,6] f32\n", 1},
		{"not declared, without inputs", parts(x, magic(nil, out("t")), node("Add", "", in("x", "t"), out("y")), output("y")),
			Options{},
			`1 unsupported operator: node "m" is Magic of domain com.example (neither known nor is the shape of output 0 ("t") declared)`, 0},
		{"two outputs", parts(x, info("t", tFloat, 2, 3), info("u", tInt64, 5), magic(in("x"), out("t", "u")),
			node("Gather", "", in("t", "u"), out("y")), output("y")), Options{},
			"t[2,3] = Unknown(x) Axis=1 Shape=[2 3] Variant=output 0 of \"m\"\nu[5] = Unknown(x) Axis=8 Shape=[5] Variant=output 1 of \"m\"\ny[5,3] = Gather(t u)\n> y[5,3] f32\n", 2},
		{"values that are not known", parts(x, node("NonZero", "n", in("x"), out("t")), info("t", tInt64, 2, 12),
			node("Cast", "", in("t"), out("y"), attrInt("to", tFloat)), output("y")), Options{},
			"t[2,12] = Unknown(x) Axis=8 Shape=[2 12] Variant=output 0 of \"n\"\ny[2,12] = Cast(t) Axis=1\n> y[2,12] f32\n", 1},
		{"control flow", parts(x, node("Loop", "l", in("x"), out("y")), output("y")), Options{},
			`1 unsupported operator: node "l" is Loop of domain ai.onnx (control flow)`, 0},
		{"a condition that is not known", parts(of("x", tBool), node("If", "l", in("x"), out("y")), output("y")), Options{},
			`1 unsupported operator: node "l" is If of domain ai.onnx (control flow, and its condition ("x") is computed while the network runs)`, 0},
		{"of the other domain", parts(x, nodeOf("com.microsoft", "Magic", "m", in("x"), out("y")), output("y")), Options{},
			"y[] = Unknown(x) Axis=1 Shape=[] Variant=output 0 of \"m\"\n> y[] f32\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var warned []string
			opt := tt.opt
			opt.AllowUnknown, opt.Warn = true, func(s string) { warned = append(warned, s) }
			data := file(13, tt.parts...)
			if got := summary(data, opt); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if len(warned) != tt.warns {
				t.Errorf("%d warnings, want %d: %q", len(warned), tt.warns, warned)
			}
			for _, w := range warned {
				if !strings.Contains(w, "is not known; it counts as one operation per element of its output") &&
					w != `the first dimension of input "x", 2 in the file, is taken as the batch` {
					t.Errorf("warning %q", w)
				}
			}
			var u *UnsupportedError
			if _, err := load(data, tt.opt); !errors.As(err, &u) {
				t.Errorf("without the option: %v", err)
			}
		})
	}
	g, err := ImportReader("test.onnx", bytes.NewReader(file(13, x, magic(in("x"), out("y")), output("y", 4))),
		Options{AllowUnknown: true})
	if err != nil {
		t.Fatal(err)
	}
	if v := g.Ops[0]; v.Kind != model.Kind("Unknown") || g.MACs() != 0 || g.Params() != 0 {
		t.Errorf("%s of %d MACs and %d parameters", v.Kind, g.MACs(), g.Params())
	}
}
