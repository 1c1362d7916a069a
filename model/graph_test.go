package model

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// small is x -> conv -> relu -> add(relu, x) -> out.
func small(t *testing.T) *Graph {
	t.Helper()
	b := NewBuilder("small")
	x := b.Input("x", F16, 1, 4, 8, 8)
	c := b.Op("Conv", "conv", conv(1, 1, 1, 1), x, b.Param("w", F16, 4, 4, 3, 3))
	r := b.Op("Relu", "relu", Attr{}, c)
	b.Output(b.Op("Add", "add", Attr{}, r, x))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func named(t *testing.T, g *Graph, name string) *Tensor {
	t.Helper()
	for _, x := range g.Tensors {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("no tensor %q", name)
	return nil
}

func opNames(g *Graph) string {
	var s []string
	for _, op := range g.Ops {
		s = append(s, op.Name)
	}
	return strings.Join(s, " ")
}

func TestValidate(t *testing.T) {
	if err := small(t).Validate(); err != nil {
		t.Fatalf("the graph that all rows change: %v", err)
	}
	// Tensors of small: 0 x, 1 w, 2 conv, 3 relu, 4 add. Operators: 0 conv, 1 relu, 2 add.
	for _, tt := range []struct {
		name   string
		change func(*Graph)
		want   []string
	}{
		{"tensor ID", func(g *Graph) { g.Tensors[1].ID = 7 }, []string{`tensor "w" has ID 7 at position 1`}},
		{"operator ID", func(g *Graph) { g.Ops[1].ID = 7 }, []string{`operator "relu" has ID 7 at position 1`}},
		{"name twice", func(g *Graph) { g.Tensors[3].Name = "conv" }, []string{`tensors 2 and 3 share the name "conv"`}},
		{"type that does not exist", func(g *Graph) { g.Tensors[0].DType = 77 }, []string{`tensor "x" has dtype(77)`}},
		{"extent 0", func(g *Graph) { g.Tensors[1].Shape[2] = 0 },
			[]string{`tensor "w": dimension 2 of shape [4,4,0,3] is 0`}},
		{"writes nothing that exists", func(g *Graph) { g.Ops[1].Outputs[0] = 9 },
			[]string{`operator "relu" writes tensor 9, which does not exist`, `dangling tensor "relu"`}},
		{"reads nothing that exists", func(g *Graph) { g.Ops[1].Inputs[0] = -1 },
			[]string{`operator "relu" reads tensor -1, which does not exist`}},
		{"two writers", func(g *Graph) { g.Ops[1].Outputs[0] = 2 },
			[]string{`tensor "conv" is written by both "conv" and "relu"`}},
		{"writes a constant", func(g *Graph) { g.Ops[1].Outputs[0] = 1 },
			[]string{`operator "relu" writes constant tensor "w"`}},
		{"writes an input", func(g *Graph) { g.Ops[1].Outputs[0] = 0 }, []string{`operator "relu" writes input tensor "x"`}},
		{"dangling tensor", func(g *Graph) { g.Ops = g.Ops[1:]; g.Ops[0].ID, g.Ops[1].ID = 0, 1 },
			[]string{`operator "relu" reads dangling tensor "conv"`}},
		{"no output", func(g *Graph) { g.Outputs = nil }, []string{"the graph has no output"}},
		{"output that does not exist", func(g *Graph) { g.Outputs[0] = 5 }, []string{"graph output 5 does not exist"}},
		{"dangling output", func(g *Graph) { g.Ops = g.Ops[:2] }, []string{`graph output "add" is dangling`}},
		{"input that does not exist", func(g *Graph) { g.Inputs = append(g.Inputs, 5) },
			[]string{"graph input 5 does not exist"}},
		{"input that is a constant", func(g *Graph) { g.Inputs = append(g.Inputs, 1) },
			[]string{`graph input "w" is marked as constant`}},
		{"input twice", func(g *Graph) { g.Inputs = append(g.Inputs, 0) }, []string{`graph input "x" is listed twice`}},
		{"input that is not listed", func(g *Graph) { g.Inputs = nil }, []string{`tensor "x" is marked as input`}},
		{"attributes", func(g *Graph) { g.Ops[1].Attr = nil }, []string{`operator "relu" has no attributes`}},
		{"unsorted", func(g *Graph) {
			g.Ops[0], g.Ops[1] = g.Ops[1], g.Ops[0]
			g.Ops[0].ID, g.Ops[1].ID = 0, 1
		}, []string{"operators are not in topological order"}},
		{"unknown kind", func(g *Graph) { g.Ops[1].Kind = "Nonsense" },
			[]string{`operator "relu" (Nonsense): unknown operator kind "Nonsense"`}},
		{"unknown kind, and unsorted", func(g *Graph) {
			g.Ops[1].Kind = "Nonsense"
			g.Ops[0], g.Ops[1] = g.Ops[1], g.Ops[0]
			g.Ops[0].ID, g.Ops[1].ID = 0, 1
		}, []string{"operators are not in topological order"}},
		{"number of inputs", func(g *Graph) { g.Ops[0].Inputs = g.Ops[0].Inputs[:1] },
			[]string{`operator "conv" (Conv): has 1 inputs, expected 2 to 3`}},
		{"number of outputs", func(g *Graph) {
			g.Ops[1].Kind, g.Ops[1].Attr = "Split",
				&Attr{Axis: 1, Splits: []int64{2, 2}}
		}, []string{`operator "relu" (Split) has 1 outputs, expected 2`}},
		{"shape", func(g *Graph) { g.Tensors[3].Shape = Shape{1, 4, 8, 7} }, []string{
			`tensor "relu" has shape [1,4,8,7], but operator "relu" (Relu) yields [1,4,8,8]`,
			`operator "add" (Add): shapes [1,4,8,7] and [1,4,8,8] do not broadcast`}},
		{"type", func(g *Graph) { g.Tensors[2].DType = F32 },
			[]string{`tensor "conv" has type f32, but operator "conv" (Conv) yields f16`}},
		{"several operators", func(g *Graph) {
			g.Ops[0].Inputs = g.Ops[0].Inputs[:1]
			g.Ops[1].Kind, g.Ops[1].Attr = "Split", &Attr{Axis: 1, Splits: []int64{2, 2}}
			g.Tensors[4].DType = F32
		}, []string{`operator "conv" (Conv): has 1 inputs`, `operator "relu" (Split) has 1 outputs`,
			`tensor "add" has type f32`}},
		{"several at once", func(g *Graph) { g.Outputs = nil; g.Ops[1].Inputs[0] = 8; g.Tensors[0].DType = 50 },
			[]string{"dtype(50)", "reads tensor 8", "no output"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := small(t)
			tt.change(g)
			err := g.Validate()
			var v *ValidationError
			if !errors.As(err, &v) {
				t.Fatalf("%v, want a ValidationError", err)
			}
			if v.Graph != "small" || !strings.Contains(err.Error(), `graph "small"`) {
				t.Errorf("the error does not name the graph: %v", err)
			}
			for _, want := range tt.want {
				if !slices.ContainsFunc(v.Problems, func(s string) bool { return strings.Contains(s, want) }) {
					t.Errorf("%q, want %q", v.Problems, want)
				}
			}
		})
	}
}

// ring is in -> head -> a -> b -> c -> d -> a with a result behind d; only a to d
// are on the cycle. The operators are listed from number first on.
func ring(first int) *Graph {
	g := &Graph{Name: "ring", Inputs: []TensorID{0}, Outputs: []TensorID{6}}
	for i, name := range []string{"in", "head", "a", "b", "c", "d", "tail"} {
		role := Activation
		if i == 0 {
			role = Input
		}
		g.Tensors = append(g.Tensors, &Tensor{ID: TensorID(i), Name: name, Shape: Shape{2}, Role: role})
	}
	add := func(name string, kind Kind, out TensorID, in ...TensorID) {
		g.Ops = append(g.Ops, &Op{Name: name, Kind: kind, Attr: &Attr{}, Inputs: in, Outputs: []TensorID{out}})
	}
	add("tail", "Relu", 6, 5)
	add("head", "Relu", 1, 0)
	add("a", "Add", 2, 1, 5)
	add("b", "Relu", 3, 2)
	add("c", "Relu", 4, 3)
	add("d", "Relu", 5, 4)
	g.Ops = append(g.Ops[first:], g.Ops[:first]...)
	for i, op := range g.Ops {
		op.ID = OpID(i)
	}
	return g
}

func TestCycle(t *testing.T) {
	for name, check := range map[string]func(*Graph) error{"Finish": (*Graph).Finish, "Validate": (*Graph).Validate} {
		for first := range 6 {
			g := ring(first)
			before := opNames(g)
			err := check(g)
			var c *CycleError
			if !errors.As(err, &c) {
				t.Errorf("%s: %v, want a CycleError", name, err)
				continue
			}
			// A rotation of a, b, c, d: the direction is that of the data.
			if i := slices.Index(c.Ops, "a"); i < 0 ||
				strings.Join(append(slices.Clone(c.Ops[i:]), c.Ops[:i]...), "") != "abcd" {
				t.Errorf("%s: cycle %v, want a, b, c, d", name, c.Ops)
			}
			if want := strings.Join(append(slices.Clone(c.Ops), c.Ops[0]), " -> "); !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not show %q", name, err, want)
			}
			if opNames(g) != before || g.Ops[0].ID != 0 || g.Tensors[2].Layout != nil {
				t.Errorf("%s: the graph has changed", name)
			}
		}
	}
	self := small(t)
	self.Ops[1].Inputs[0] = self.Ops[1].Outputs[0]
	var c *CycleError
	if err := self.Validate(); !errors.As(err, &c) || !slices.Equal(c.Ops, []string{"relu"}) {
		t.Errorf("operator that reads itself: %v", err)
	}
	if err := self.Finish(); !errors.As(err, &c) || !slices.Equal(c.Ops, []string{"relu"}) {
		t.Errorf("operator that reads itself: %v", err)
	}
}

func TestFinish(t *testing.T) {
	g := small(t)
	g.Ops[0], g.Ops[2] = g.Ops[2], g.Ops[0] // add relu conv
	g.Ops[0].Inputs = append(g.Ops[0].Inputs, g.Inputs[0])
	if err := g.Finish(); err != nil {
		t.Fatal(err)
	}
	if got := opNames(g); got != "conv relu add" {
		t.Errorf("order %s", got)
	}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	x := named(t, g, "x")
	if !slices.Equal(x.Consumers, []OpID{0, 2}) || x.Producer != NoOp {
		t.Errorf("x is read by %v and written by %d, want each reader once, in order, and no writer", x.Consumers, x.Producer)
	}
	if relu := named(t, g, "relu"); relu.Producer != 1 || !slices.Equal(relu.Consumers, []OpID{2}) {
		t.Errorf("relu is written by %d and read by %v", relu.Producer, relu.Consumers)
	}
}

// TestFinishRandom: whatever the order, the result is topological, and an order
// that was topological stays as it is.
func TestFinishRandom(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for range 200 {
		b := NewBuilder("random")
		ids := []TensorID{b.Input("x", F16, 2)}
		for i := range 1 + r.Intn(12) {
			ids = append(ids, b.Op("Add", fmt.Sprintf("op%02d", i), Attr{}, ids[r.Intn(len(ids))], ids[r.Intn(len(ids))]))
		}
		b.Output(ids[len(ids)-1])
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		sorted := opNames(g)
		if names := strings.Fields(sorted); !slices.IsSorted(names) {
			t.Fatalf("a topological order was changed to %s", sorted)
		}
		r.Shuffle(len(g.Ops), func(i, j int) { g.Ops[i], g.Ops[j] = g.Ops[j], g.Ops[i] })
		shuffled := opNames(g)
		if err := g.Finish(); err != nil {
			t.Fatal(err)
		}
		if err := g.Validate(); err != nil {
			t.Fatalf("from %s: %v", shuffled, err)
		}
		names := strings.Fields(opNames(g))
		slices.Sort(names)
		if strings.Join(names, " ") != sorted {
			t.Fatalf("from %s: operators are now %v", shuffled, names)
		}
	}
}

func TestFinishUnknownKind(t *testing.T) {
	g := small(t)
	g.Ops[1].Kind = "Nonsense"
	slices.Reverse(g.Ops[2].Inputs) // add follows the image, not the unknown one
	g.Tensors[4].Layout = nil
	if err := g.Finish(); err != nil {
		t.Fatal(err)
	}
	var v *ValidationError
	if err := g.Validate(); !errors.As(err, &v) {
		t.Errorf("%v, want a ValidationError", err)
	}
	if got := named(t, g, "add").Layout; !slices.Equal(got, named(t, g, "conv").Layout) {
		t.Errorf("the operators behind have no layout: %v", got)
	}
}

func TestCompact(t *testing.T) {
	b := NewBuilder("compact")
	x := b.Input("x", F16, 4, 4)
	b.Input("unused", F16, 2)
	dead := b.Op("MatMul", "dead", Attr{}, x, b.Param("dead.w", F16, 4, 4))
	b.Op("Relu", "dead.relu", Attr{}, dead)
	y := b.Op("MatMul", "live", Attr{}, b.OpN("Split", "split", Attr{Axis: 1, Splits: []int64{3, 1}}, x)[0],
		b.Param("live.w", F16, 3, 8))
	b.Output(y, b.Op("Relu", "out", Attr{}, y))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	// Slices that a caller shares between operators are renumbered once.
	shared := []TensorID{y}
	g.Ops[4].Inputs = shared
	g.Ops = append(g.Ops, &Op{Name: "twin", Kind: "Relu", Inputs: shared, Outputs: []TensorID{TensorID(len(g.Tensors))}})
	g.Tensors = append(g.Tensors, &Tensor{ID: TensorID(len(g.Tensors)), Name: "twin", Shape: Shape{4, 8}})
	g.Outputs = append(g.Outputs, g.Tensors[len(g.Tensors)-1].ID)
	if err := g.Compact(func(op *Op) bool { return !strings.HasPrefix(op.Name, "dead") }); err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := opNames(g); got != "split live out twin" {
		t.Errorf("operators %s", got)
	}
	var names []string
	for _, x := range g.Tensors {
		names = append(names, x.Name)
	}
	if want := []string{"x", "unused", "split:0", "split:1", "live.w", "live", "out", "twin"}; !slices.Equal(names, want) {
		t.Errorf("tensors %v, want %v", names, want)
	}
	if !slices.Equal(g.Inputs, []TensorID{0, 1}) || !slices.Equal(g.Outputs, []TensorID{5, 6, 7}) {
		t.Errorf("inputs %v and outputs %v", g.Inputs, g.Outputs)
	}
	if !slices.Equal(named(t, g, "live").Consumers, []OpID{2, 3}) {
		t.Errorf("live is read by %v", named(t, g, "live").Consumers)
	}
	if !slices.Equal(shared, []TensorID{y}) {
		t.Errorf("the caller's slice is now %v", shared)
	}
}

// What is transposed between a product and an attention keeps the product's order; results of the network do not, nor
// does what is read by others.
func TestLayoutsOfProducts(t *testing.T) {
	for _, attends := range []bool{true, false} {
		b := NewBuilder("turned")
		heads := func(name string) TensorID {
			x := b.Op("MatMul", name, Attr{}, b.Input(name+".x", F16, 4, 6, 8), b.Param(name+".w", F16, 8, 8))
			x = b.Op("Reshape", name+".heads", Attr{Shape: []int64{4, 6, 2, 4}}, x)
			return b.Op("Transpose", name+".turned", Attr{Perm: []int64{0, 2, 1, 3}}, x)
		}
		q, k := heads("q"), heads("k")
		cut := b.Op("Reshape", "cut", Attr{Shape: []int64{2, 2, 2, 6, 4}}, heads("c"))
		b.Output(b.Op("Relu", "cut.relu", Attr{}, cut))
		b.Output(b.Op("Reshape", "merged", Attr{Shape: []int64{8, 6, 4}}, heads("m")))
		b.Output(b.Op("Transpose", "keys", Attr{Perm: []int64{0, 1, 3, 2}}, b.Input("other", F16, 4, 2, 6, 4)))
		if attends {
			b.Output(b.Op("Attention", "context", Attr{Softmax: true, Group: 1}, q, k,
				b.Op("Relu", "v.scaled", Attr{}, heads("v"))))
		} else {
			b.Output(q)
			b.Output(k)
			b.Output(b.Op("Relu", "v.scaled", Attr{}, heads("v")))
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]int{"q.turned": {0, 2, 1, 3}, "k.turned": {0, 2, 1, 3}, "v.scaled": {0, 2, 1, 3},
			"cut": {0, 1, 2, 3, 4}, "c.turned": {0, 1, 2, 3}, "q.heads": {0, 1, 2, 3}, "merged": {0, 1, 2},
			"keys": {0, 1, 2, 3}}
		for name, layout := range want {
			if !attends {
				layout = slices.Sorted(slices.Values(layout))
			}
			if got := named(t, g, name).Layout; !slices.Equal(got, layout) {
				t.Errorf("attention %v: %s has layout %v, want %v", attends, name, got, layout)
			}
		}
	}
}

// An operator that only moves elements keeps their order if it takes dimensions in the order in which they lie, or
// merges neighbours. Dimensions of extent 1 stand anywhere.
func TestKeepsOrder(t *testing.T) {
	b := NewBuilder("orders")
	image := b.Op("Conv", "image", conv(1, 1, 1, 1), b.Input("x", F16, 2, 4, 8, 6), b.Param("w", F16, 4, 4, 3, 3))
	rows := b.Op("MatMul", "rows", Attr{}, b.Input("r", F16, 2, 48, 4), b.Param("v", F16, 4, 6))
	reshape := func(name string, x TensorID, shape ...int64) TensorID {
		return b.Op("Reshape", name, Attr{Shape: shape}, x)
	}
	want := map[string]bool{"flat": false, "flat.rows": false, "channels.last": true, "channels.last.flat": true,
		"all": false, "one": true, "heads": true, "merged": true, "across": true, "turned": false, "last ones": true,
		"one turned": true, "strip.flat": true, "strip.all": true}
	flat := reshape("flat", image, 2, 4, 48)
	last := b.Op("Transpose", "channels.last", Attr{Perm: []int64{0, 2, 3, 1}}, image)
	strip := b.Op("Conv", "strip", conv(1, 1, 1, 1), b.Input("z", F16, 1, 4, 1, 6), b.Param("u", F16, 4, 4, 3, 3))
	for _, x := range []TensorID{b.Op("Transpose", "flat.rows", Attr{Perm: []int64{0, 2, 1}}, flat),
		reshape("channels.last.flat", last, 2, 48, 4), reshape("all", image, 2, 192),
		reshape("one", rows, 2, 1, 48, 6), reshape("heads", rows, 2, 48, 2, 3), reshape("merged", rows, 96, 6),
		reshape("across", rows, 3, 32, 6), b.Op("Transpose", "turned", Attr{Perm: []int64{1, 0, 2}}, rows),
		reshape("last ones", rows, 96, 6, 1, 1),
		b.Op("Transpose", "one turned", Attr{Perm: []int64{0, 2, 1, 3}}, reshape("row", rows, 2, 1, 48, 6)),
		reshape("strip.flat", b.Op("Transpose", "strip.rows", Attr{Perm: []int64{2, 3, 0, 1}}, strip), 24),
		reshape("strip.all", b.Op("Transpose", "strip.last", Attr{Perm: []int64{0, 2, 3, 1}}, strip), 6, 1, 4, 1)} {
		b.Output(x)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range g.Ops {
		if kept, there := want[op.Name]; there && g.KeepsOrder(op) != kept {
			t.Errorf("%s of layout %v from %v: keeps the order %v, want %v", op.Name, g.Tensors[op.Outputs[0]].Layout,
				g.Tensors[op.Inputs[0]].Layout, !kept, kept)
		}
	}
	if g.KeepsOrder(g.Ops[0]) {
		t.Errorf("%s does more than move elements", g.Ops[0].Name)
	}
}

func TestLayouts(t *testing.T) {
	b := NewBuilder("layouts")
	x := b.Input("x", F16, 1, 4, 8, 8)
	mask := b.Input("mask", F16, 8, 8)
	b.Op("Relu", "before", Attr{}, x) // reads the image beside the convolution
	c := b.Op("Conv", "conv", conv(1, 1, 1, 1), x, b.Param("w", F16, 4, 4, 3, 3))
	masked := b.Op("Mul", "masked", Attr{}, mask, c) // the mask is of lower rank
	scaled := b.Op("Mul", "scaled", Attr{}, b.Const("s", F16, nil, 1, 4, 1, 1), masked)
	cat := b.Op("Concat", "concat", Attr{Axis: 1}, scaled, c)
	parts := b.OpN("Split", "split", Attr{Axis: 1, Splits: []int64{2, 6}}, cat)
	p := b.Op("MaxPool", "pool", pool(2, 2, 0, false), parts[1])
	sliced := b.Op("Slice", "slice", Attr{Starts: []int64{0, 0, 1, 1}, Steps: []int64{1, 1, 1, 1},
		Shape: []int64{1, 8, 2, 2}}, cat)
	b.Op("Pad", "pad", Attr{Pads: []int64{0, 0, 1, 1, 0, 0, 1, 1}}, sliced)
	b.Op("Softmax", "maps", Attr{Axis: 1}, c) // says nothing of images
	b.Op("Transpose", "last", Attr{Perm: []int64{0, 2, 3, 1}}, c)
	r := b.Op("Reshape", "flat", Attr{Shape: []int64{1, 6, 16}}, p)
	soft := b.Op("Softmax", "soft", Attr{Axis: 2}, r)
	b.Output(b.Op("Relu", "after", Attr{}, soft))
	wave := b.Op("Conv", "wave", Attr{Strides: []int64{1}, Dilations: []int64{1}, Pads: []int64{0, 0}, Group: 1},
		b.Input("audio", F16, 1, 2, 9), b.Param("v", F16, 3, 2, 3))
	b.Output(wave)
	fc := b.Op("Gemm", "fc", Attr{}, b.Input("features", F16, 2, 4), b.Param("u", F16, 4, 4))
	ch := func(n string) TensorID { return b.Param(n, F16, 4) }
	b.Output(b.Op("BatchNorm", "fc.bn", Attr{}, fc, ch("a1"), ch("a2"), ch("a3"), ch("a4")))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	image, plain := []int{0, 2, 3, 1}, []int{0, 1, 2}
	for name, want := range map[string][]int{
		"x": image, "before": image, "conv": image, "masked": image, "scaled": image, "concat": image, "split:0": image,
		"split:1": image, "pool": image, "slice": image, "pad": image, "maps": {0, 1, 2, 3}, "last": {0, 1, 2, 3},
		"flat": plain, "soft": plain, "after": plain, "mask": {0, 1}, "w": {0, 1, 2, 3},
		"audio": {0, 2, 1}, "wave": {0, 2, 1}, "fc": {0, 1}, "fc.bn": {0, 1},
	} {
		if got := named(t, g, name).Layout; !slices.Equal(got, want) {
			t.Errorf("%s has layout %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]string{"conv": "n c h w", "before": "n c h w", "flat": "i0 i1 i2",
		"wave": "i0 i1 i2", "last": "i0 i1 i2 i3"} {
		x := named(t, g, name)
		var got []string
		for d := range x.Shape {
			got = append(got, x.DimName(d))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the dimensions of %s are called %v, want %s", name, got, want)
		}
	}
	image4 := named(t, g, "conv")
	for depth, dim := range image {
		if got := image4.Depth(dim); got != depth {
			t.Errorf("dimension %d has depth %d, want %d", dim, got, depth)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("the depth of a dimension that does not exist does not panic")
		}
	}()
	image4.Depth(4)
}

func TestImageKinds(t *testing.T) {
	image := Shape{2, 4, 8, 8}
	for kind, in := range map[Kind][]Shape{
		"Conv": {image, {4, 4, 1, 1}}, "ConvTranspose": {image, {4, 4, 1, 1}}, "MaxPool": {image}, "AveragePool": {image},
		"GlobalAveragePool": {image}, "GlobalMaxPool": {image}, "BatchNorm": {image, {4}, {4}, {4}, {4}}, "LRN": {image},
		"Resize": {image}, "GroupNorm": {image},
		// These say nothing of images.
		"Relu": {image}, "Softmax": {image}, "Transpose": {image},
	} {
		a := conv(1, 1, 0, 1)
		a.Shape, a.Perm = []int64{2, 4, 16, 16}, []int64{0, 2, 3, 1}
		a.Kernel = []int64{1, 1}
		want := []int{0, 2, 3, 1}
		switch kind {
		case "LRN":
			a.Kernel = []int64{3}
		case "Resize":
			a.Kernel = []int64{1, 1, 1, 1}
		case "Relu", "Softmax", "Transpose":
			want = []int{0, 1, 2, 3}
		}
		p := newProbe(t, kind, a, in)
		for _, id := range []TensorID{p.op.Inputs[0], p.op.Outputs[0]} {
			if got := p.g.Tensor(id).Layout; !slices.Equal(got, want) {
				t.Errorf("%s: %s has layout %v, want %v", kind, p.g.Tensor(id).Name, got, want)
			}
		}
	}
}

func TestGraphCounts(t *testing.T) {
	b := NewBuilder("counts")
	x := b.Input("x", F16, 2, 4)
	b.Param("unread", F16, 100)
	y := b.Op("Gemm", "fc", Attr{}, x, b.Param("w", F16, 4, 3), b.Param("b", F16, 3))
	y = b.Op("Mul", "scale", Attr{}, y, b.Const("half", F16, nil, 1))
	y = b.Op("Relu", "r1", Attr{}, y)
	b.Output(b.Op("Relu", "r2", Attr{}, y))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Params(); got != 15 {
		t.Errorf("%d parameters, want 15: read and learned ones only", got)
	}
	if got := g.MACs(); got != 24 {
		t.Errorf("%d MACs, want 24", got)
	}
	if want := []kindCount{{"Gemm", 1}, {"Mul", 1}, {"Relu", 2}}; !reflect.DeepEqual(g.KindCounts(), want) {
		t.Errorf("%v, want %v", g.KindCounts(), want)
	}
	out := g.Outputs[0]
	if !g.IsOutput(out) || g.IsOutput(y) || g.Op(3).Name != "r2" || g.Tensor(out).Name != "r2" {
		t.Error("IsOutput, Op or Tensor is wrong")
	}
	if got := fmt.Sprint(Activation, Input, Constant); got != "activation input constant" {
		t.Errorf("roles %s", got)
	}
}

// TestAttrKey fails when Attr has a field that its key ignores.
func TestAttrKey(t *testing.T) {
	typ := reflect.TypeFor[Attr]()
	seen := map[string]string{string((&Attr{}).AppendKey(nil)): "none"}
	for i := range typ.NumField() {
		var a Attr
		f := reflect.ValueOf(&a).Elem().Field(i)
		switch f.Kind() {
		case reflect.Slice:
			if f.Type() == reflect.TypeFor[[]ScoreOp]() {
				f.Set(reflect.ValueOf([]ScoreOp{{Kind: "7"}}))
				break
			}
			f.Set(reflect.ValueOf([]int64{7}))
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("7")
		default:
			t.Fatalf("field %s has kind %v", typ.Field(i).Name, f.Kind())
		}
		k := string(a.AppendKey(nil))
		if other, dup := seen[k]; dup {
			t.Errorf("attribute %s has the same key as %s", typ.Field(i).Name, other)
		}
		seen[k] = typ.Field(i).Name
	}
}

// Operators share their attributes, so that none may be changed through another.
func TestSharedAttributes(t *testing.T) {
	b := NewBuilder("casts")
	x := b.Input("x", F32, 2, 3)
	y := b.Op("Cast", "a", Attr{Axis: int64(BF16)}, x)
	z := b.Op("Cast", "b", Attr{Axis: int64(BF16)}, x)
	b.Output(b.Op("Add", "sum", Attr{}, y, z))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if g.Ops[0].Attr != g.Ops[1].Attr || g.Ops[0].Attr == g.Op(2).Attr {
		t.Fatal("equal attributes are not kept once, or others are")
	}
	other := *g.Ops[0]
	g.Retype(BF16, F16)
	if got := DType(other.Attr.Axis); got != BF16 {
		t.Errorf("a copy of an operator casts to %v after the graph was changed", got)
	}
	for _, op := range g.Ops[:2] {
		if got := DType(op.Attr.Axis); got != F16 {
			t.Errorf("%s casts to %v, want %v", op.Name, got, F16)
		}
	}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
}

// Layouts take time in proportion to a chain's length, whatever it moves.
func BenchmarkBuildChain(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				m := NewBuilder("chain")
				x := m.Op("MatMul", "product", Attr{}, m.Input("x", F16, 8, 64), m.Param("w", F16, 64, 64))
				for range n {
					x = m.Op("Relu", "", Attr{}, m.Op("Transpose", "", Attr{Perm: []int64{1, 0}}, x))
				}
				m.Output(x)
				if _, err := m.Build(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
