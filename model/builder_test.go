package model

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestBuilderStickyError: the first error is the one that Build returns, and
// nothing after it panics or adds to the graph.
func TestBuilderStickyError(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func(*Builder, TensorID)
		want []string
	}{
		{"shape of an input", func(b *Builder, _ TensorID) { b.Input("bad", F16, 2, 0) },
			[]string{`tensor "bad"`, "dimension 1 of shape [2,0] is 0"}},
		{"too large a parameter", func(b *Builder, _ TensorID) { b.Param("bad", F16, 1<<40, 1<<40) },
			[]string{`tensor "bad"`, "more than"}},
		{"shapes of an operator", func(b *Builder, x TensorID) { b.Op("MatMul", "bad", Attr{}, x, x) },
			[]string{`operator "bad" (MatMul)`, "inner extents 4 and 2 differ"}},
		{"unknown kind", func(b *Builder, x TensorID) { b.Op("Nonsense", "bad", Attr{}, x) },
			[]string{`operator "bad"`, `unknown kind "Nonsense"`}},
		{"tensor that does not exist", func(b *Builder, _ TensorID) { b.Op("Relu", "bad", Attr{}, 99) },
			[]string{`operator "bad" (Relu) reads tensor 99`}},
		{"the tensor after the last", func(b *Builder, x TensorID) { b.Op("Relu", "bad", Attr{}, x+1) },
			[]string{"reads tensor 1"}},
		{"negative tensor", func(b *Builder, _ TensorID) { b.Op("Relu", "bad", Attr{}, -1) }, []string{"reads tensor -1"}},
		{"several outputs where one is expected", func(b *Builder, x TensorID) {
			b.Op("Split", "bad", Attr{Axis: 1, Splits: []int64{2, 2}}, x)
		}, []string{`operator "bad" (Split) has 2 outputs, expected one`}},
		{"the caller's own", func(b *Builder, _ TensorID) { b.Fail(errors.New("no such size")) }, []string{"no such size"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuilder("sticky")
			x := b.Input("x", F16, 2, 4)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			tt.fail(b, x)
			first := b.Err()
			if first == nil {
				t.Fatal("no error")
			}
			y := b.Op("Relu", "later", Attr{}, b.Input("late", F16, 1))
			if s := b.Tensor(y); s.ID != -1 || s.Shape != nil {
				t.Errorf("after the error, a tensor is %+v", s)
			}
			if ids := b.OpN("Split", "later", Attr{}, y); ids != nil {
				t.Errorf("after the error, OpN returns %v", ids)
			}
			b.Op("MatMul", "worse", Attr{}, y)
			b.Fail(errors.New("a second error"))
			b.Output(y)
			g, err := b.Build()
			if g != nil || !errors.Is(err, first) {
				t.Fatalf("Build returns %v, %v; want the first error, %v", g, err, first)
			}
			for _, want := range append(tt.want, `graph "sticky"`) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}

func TestBuilderValidates(t *testing.T) {
	b := NewBuilder("none")
	b.Input("x", F16, 2)
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "no output") {
		t.Errorf("without an output: %v", err)
	}
	b = NewBuilder("out of range")
	b.Output(b.Op("Relu", "r", Attr{}, b.Input("x", F16, 2)), 17)
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "graph output 17 does not exist") {
		t.Errorf("output out of range: %v", err)
	}
}

func TestBuilderTensor(t *testing.T) {
	b := NewBuilder("tensors")
	x := b.Input("x", F16, 2)
	if got := b.Tensor(x); got.Name != "x" || !got.Shape.Equal(Shape{2}) {
		t.Errorf("%+v", got)
	}
	for _, id := range []TensorID{-1, 1, 99} {
		if got := b.Tensor(id); got.ID != -1 {
			t.Errorf("tensor %d, which does not exist, is %+v", id, got)
		}
	}
}

func TestBuilderNames(t *testing.T) {
	b := NewBuilder("names")
	x := b.Input("x", F16, 2, 4)
	b.Param("x", F16, 1)
	b.Param("x.1", F16, 1)
	b.Param("x", F16, 1)
	parts := b.OpN("Split", "s", Attr{Axis: 1, Splits: []int64{1, 3}}, x)
	renamed := b.OpNamed("Split", "t", Attr{Axis: 1, Splits: []int64{1, 3}}, []TensorID{x}, []string{"left"})
	b.Output(append(parts, renamed...)...)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range g.Tensors {
		names = append(names, x.Name)
	}
	if want := []string{"x", "x.1", "x.1.1", "x.2", "s:0", "s:1", "left", "t:1"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

// TestBuilderCopies: what the caller does with its slices later does not reach
// the graph.
func TestBuilderCopies(t *testing.T) {
	b := NewBuilder("copies")
	shape := []int64{2, 4}
	in := []TensorID{b.Input("x", F16, shape...), b.Const("ints", I64, []int64{7, 8}, 2)}
	shape[0] = 9
	y := b.Op("Gather", "g", Attr{}, in...)
	in[0] = 42
	b.Output(y)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.Ops[0].Inputs, []TensorID{0, 1}) || !g.Tensor(0).Shape.Equal(Shape{2, 4}) {
		t.Errorf("inputs %v, shape %v", g.Ops[0].Inputs, g.Tensor(0).Shape)
	}
	for i, want := range []struct {
		role    Role
		learned bool
		ints    []int64
	}{{Input, false, nil}, {Constant, false, []int64{7, 8}}, {Activation, false, nil}} {
		if x := g.Tensors[i]; x.Role != want.role || x.Learned != want.learned || !slices.Equal(x.Ints, want.ints) {
			t.Errorf("%s: %v, learned %t, value %v; want %+v", x.Name, x.Role, x.Learned, x.Ints, want)
		}
	}
	if b := NewBuilder("p"); !b.Tensor(b.Param("w", F16, 1)).Learned {
		t.Error("a parameter is not learned")
	}
}
