package onnx

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A recurrent operator becomes its steps, one after the other, as a compiler without loops sees them: a product of all
// inputs with the weights of the gates, then for each step the product of the state with those of the recurrence.
// Weights are one tensor for all steps.

// recurrence is one direction of a recurrent operator.
type recurrence struct {
	*call
	name               string // in front of the names of its steps
	dir                int64
	batch, hidden      int64
	gates              int64 // of hidden rows each, in the weights
	act                []model.Kind
	variant            string // of the activations
	clip               string // the limit of what goes into an activation; empty: none
	one                arg    // the number
	w, r, wbias, rbias func(from, to int64) arg
}

// maxSteps bounds the steps of all recurrent operators of a file, each of which is a dozen operators.
const maxSteps = 1 << 13

// rows cuts rows of one direction out of weights [direction, row, ..] or biases. Those of a constant are a constant.
func (c *call) rows(v *value, dir, first int64) func(from, to int64) arg {
	known := map[[2]int64]arg{}
	return func(from, to int64) arg {
		from, to = from+first, to+first
		if a, ok := known[[2]int64{from, to}]; ok {
			return a
		}
		shape := v.shape[1:].Clone()
		shape[0] = to - from
		what := fmt.Sprintf("%d/%d:%d", dir, from, to)
		a := arg{v.part(what, v.dtype, shape...), parameter}
		if !v.constant {
			s := model.SliceOf(v.shape, 1, from, to)
			s.Starts[0], s.Shape = dir, slices.Concat([]int64{1}, shape)
			a = operandOf(c.step(v.name+"/"+what, "Slice", s, operandOf(v)))
			a = operandOf(c.step(v.name+"/"+what+"/rows", "Reshape", model.Attr{Shape: shape}, a))
		}
		known[[2]int64{from, to}] = a
		return a
	}
}

// at adds an operator of a step.
func (r *recurrence) at(what string, kind model.Kind, a model.Attr, in ...arg) arg {
	return operandOf(r.step(r.name+what, kind, a, in...))
}

// activate applies activation i.
func (r *recurrence) activate(what string, i int, x arg) arg {
	if r.clip != "" {
		x = r.at(what+"/clip", "Clip", model.Attr{Variant: r.clip}, x)
	}
	return r.at(what, r.act[i], model.Attr{Variant: r.variant}, x)
}

// product is that of the state with rows of the recurrence's weights, and a bias.
func (r *recurrence) product(what string, h arg, from, to int64) arg {
	in := []arg{h, r.r(from*r.hidden, to*r.hidden)}
	if r.rbias != nil {
		in = append(in, r.rbias(from*r.hidden, to*r.hidden))
	}
	return r.at(what, "Gemm", model.Attr{TransB: true}, in...)
}

// split cuts columns into parts of so many gates each.
func (r *recurrence) split(what string, x arg, gates ...int64) []arg {
	if len(gates) == 1 {
		return []arg{x}
	}
	names := make([]string, len(gates))
	for i := range gates {
		names[i], gates[i] = fmt.Sprint(i), gates[i]*r.hidden
	}
	return args(r.parts(r.name+what, x, 1, gates, names...)...)
}

// lstm is a step: gates input, output, forget and cell. x has the products of the input.
func (r *recurrence) lstm(at string, x, h, cell arg) (arg, arg) {
	sum := r.at(at+"/gates", "Add", model.Attr{}, x, r.product(at+"/state", h, 0, 4))
	g := r.split(at+"/gate", sum, 1, 1, 1, 1)
	in, out, new := r.activate(at+"/input", 0, g[0]), r.activate(at+"/output", 0, g[1]), r.activate(at+"/new", 1, g[3])
	forget := r.activate(at+"/forget", 0, g[2])
	cell = r.at(at+"/cell", "Add", model.Attr{}, r.at(at+"/kept", "Mul", model.Attr{}, forget, cell),
		r.at(at+"/added", "Mul", model.Attr{}, in, new))
	return r.at(at+"/hidden", "Mul", model.Attr{}, out, r.activate(at+"/squashed", 2, cell)), cell
}

// gru is a step: gates update, reset and hidden. The reset is applied to the state before its product, or to that.
func (r *recurrence) gru(at string, x, h arg, before bool) arg {
	xs := r.split(at+"/input", x, 2, 1)
	last := int64(3)
	if !before {
		last = 2
	}
	hs := []arg{r.product(at+"/state", h, 0, last)}
	if before {
		hs = r.split(at+"/state", hs[0], 2, 1)
	}
	g := r.split(at+"/gate", r.at(at+"/gates", "Add", model.Attr{}, xs[0], hs[0]), 1, 1)
	update, reset := r.activate(at+"/update", 0, g[0]), r.activate(at+"/reset", 0, g[1])
	var old arg
	if before {
		old = r.at(at+"/old", "Mul", model.Attr{}, reset, hs[1])
	} else {
		old = r.product(at+"/old", r.at(at+"/kept", "Mul", model.Attr{}, reset, h), 2, 3)
	}
	new := r.activate(at+"/new", 1, r.at(at+"/sum", "Add", model.Attr{}, xs[1], old))
	share := r.at(at+"/share", "Sub", model.Attr{}, r.one, update)
	return r.at(at+"/hidden", "Add", model.Attr{}, r.at(at+"/added", "Mul", model.Attr{}, share, new),
		r.at(at+"/carried", "Mul", model.Attr{}, update, h))
}

// activationsOf reads the activations of all directions, n each.
func (c *call) activationsOf(dirs int64, def ...string) []model.Kind {
	names := slices.Repeat(def, int(dirs))
	if a := c.get("activations", attrStrings, typeStrings, "a list of strings"); a != nil {
		if names = a.strings; len(names) != int(dirs)*len(def) {
			c.fail("attribute \"activations\" has %d entries, expected %d", len(names), int(dirs)*len(def))
		}
	}
	var kinds []model.Kind
	for _, n := range names {
		k, ok := activations[n]
		if !ok {
			c.unsupported("has activation %q", n)
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// recurrent imports LSTM, GRU and RNN.
func recurrent(c *call) {
	x, w, rw := c.in[0], c.in[1], c.in[2]
	gates := map[string]int64{"LSTM": 4, "GRU": 3, "RNN": 1}[c.node.op]
	direction := c.one("direction", "forward", "forward", "reverse", "bidirectional")
	layout, before := c.within("layout", 0, 0, 1), c.within("linear_before_reset", 0, 0, 1) == 1
	dirs := int64(1)
	if direction == "bidirectional" {
		dirs = 2
	}
	def := map[int64][]string{4: {"Sigmoid", "Tanh", "Tanh"}, 3: {"Sigmoid", "Tanh"}, 1: {"Tanh"}}[gates]
	acts := c.activationsOf(dirs, def...)
	if len(x.shape) != 3 || len(rw.shape) != 3 || rw.shape[0] != dirs || rw.shape[2] < 1 {
		c.fail("input %v and recurrence weights %v, expected three dimensions each, and %d directions", x.shape, rw.shape,
			dirs)
	}
	if layout == 1 {
		x = c.step("steps", "Transpose", model.Attr{Perm: []int64{1, 0, 2}}, operandOf(x))
	}
	steps, batch, hidden := x.shape[0], x.shape[1], rw.shape[2]
	c.stepped[x.name] = true
	c.within("hidden_size", hidden, hidden, hidden)
	fits := func(what string, v *value, want ...int64) {
		if v != nil && !v.shape.Equal(want) {
			c.fail("%s %q has shape %v, expected %v", what, v.name, v.shape, model.Shape(want))
		}
	}
	fits("weights", w, dirs, gates*hidden, x.shape[2])
	fits("recurrence weights", rw, dirs, gates*hidden, hidden)
	fits("bias", c.in[3], dirs, 2*gates*hidden)
	fits("lengths", c.in[4], batch)
	shorter := func(n int64) bool { return n != steps }
	if l := c.in[4]; l != nil && (l.lit == nil || slices.ContainsFunc(l.lit.ints, shorter)) {
		c.unsupported("has sequences of other lengths (%q) than the input's %d steps, or of lengths known at run time only",
			l.name, steps)
	}
	if len(c.in) > 7 && c.in[7] != nil {
		c.unsupported("has peepholes (%q), products of the cell's state with weights of its own", c.in[7].name)
	}
	if c.bool("input_forget", false) {
		c.unsupported("couples its input and forget gates (input_forget)")
	}
	if c.steps += steps * dirs; steps > maxSteps || c.steps > maxSteps {
		c.unsupported("has %d steps, with those of others before it more than %d", steps, maxSteps)
	}
	clip := ""
	if f := c.find("clip"); f != nil {
		clip = "clip=" + f.spell(c.node)
	}
	c.find("output_sequence") // of old operator sets: outputs say it
	var all, lasts, cells []arg
	variant := c.variant()
	for d := range dirs {
		r := &recurrence{call: c, name: []string{"", "reverse/"}[d], dir: d, batch: batch, hidden: hidden, gates: gates,
			act: acts[int(d)*len(def):], variant: variant, clip: clip, one: operandOf(c.number("one", x.dtype)),
			w: c.rows(w, d, 0), r: c.rows(rw, d, 0)}
		if b := c.in[3]; b != nil {
			r.wbias, r.rbias = c.rows(b, d, 0), c.rows(b, d, gates*hidden)
		}
		y, h, cell := r.run(x, d == 1 || direction == "reverse", before, layout)
		all, lasts, cells = append(all, y...), append(lasts, h), append(cells, cell)
	}
	// Outputs have a dimension for the directions.
	join := func(i int, what string, shape []int64, axis int64, parts []arg) {
		if !c.reads(i) {
			return
		}
		for k, p := range parts {
			parts[k] = operandOf(c.step(fmt.Sprintf("%s/direction%d", what, k), "Reshape", model.Attr{Shape: shape}, p))
		}
		y := parts[0]
		if len(parts) > 1 {
			y = operandOf(c.step(what, "Concat", model.Attr{Axis: axis}, parts...))
		}
		if i == 0 && layout == 1 {
			y = operandOf(c.step(what+"/batch", "Transpose", model.Attr{Perm: []int64{2, 0, 1, 3}}, y))
		}
		c.bind(i, y.v)
	}
	join(0, "sequence", []int64{steps, 1, batch, hidden}, 1, all)
	state := []int64{1, batch, hidden}
	if layout == 1 {
		state = []int64{batch, 1, hidden}
	}
	join(1, "last", state, layout, lasts)
	if gates == 4 {
		join(2, "cell", state, layout, cells)
	}
}

// run adds the steps of a direction over x [step, batch, feature]. It gives all states, one below the other, the last
// one, and the last cell.
func (r *recurrence) run(x *value, backwards, before bool, layout int64) (all []arg, h, cell arg) {
	h, cell = r.initial("state", r.in[5], layout), arg{}
	if r.gates == 4 {
		cell = r.initial("cell", r.in[6], layout)
	}
	steps, features := x.shape[0], x.shape[2]
	if steps == 0 {
		nothing := literalValue(&literal{shape: model.Shape{0, r.hidden}, dtype: x.dtype})
		return []arg{operandOf(nothing)}, h, cell
	}
	rows := r.at("inputs", "Reshape", model.Attr{Shape: []int64{steps * r.batch, features}}, operandOf(x))
	in := []arg{rows, r.w(0, r.gates*r.hidden)}
	if r.wbias != nil {
		in = append(in, r.wbias(0, r.gates*r.hidden))
	}
	inputs := []arg{r.at("products", "Gemm", model.Attr{TransB: true}, in...)}
	if steps > 1 {
		names := make([]string, steps)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		inputs = args(r.parts(r.name+"step", inputs[0], 0, slices.Repeat([]int64{r.batch}, int(steps)), names...)...)
	}
	states := make([]arg, steps)
	for i := range steps {
		t := i
		if backwards {
			t = steps - 1 - i
		}
		at := fmt.Sprintf("step%d", t)
		switch r.gates {
		case 4:
			h, cell = r.lstm(at, inputs[t], h, cell)
		case 3:
			h = r.gru(at, inputs[t], h, before)
		default:
			h = r.activate(at+"/hidden", 0, r.at(at+"/sum", "Add", model.Attr{}, inputs[t], r.product(at+"/state", h, 0, 1)))
		}
		states[t] = h
	}
	if steps == 1 || !r.reads(0) {
		return states[:1], h, cell
	}
	return []arg{r.at("states", "Concat", model.Attr{}, states...)}, h, cell
}

// initial is the state before the first step, zero where none is given. One that the file has for one row of the batch
// is that of all.
func (r *recurrence) initial(what string, v *value, layout int64) arg {
	if v == nil {
		return operandOf(r.made(r.name+what+"/zero", model.Shape{r.batch, r.hidden}, r.in[0].dtype))
	}
	if len(v.shape) != 3 || v.shape[layout] <= r.dir || v.shape[2] != r.hidden {
		r.fail("initial %s %q has shape %v, expected %d features for each direction and row", what, v.name, v.shape, r.hidden)
	}
	rows := v.shape[1-layout]
	s := operandOf(v)
	if v.shape[layout] > 1 {
		s = r.at(what, "Slice", model.SliceOf(v.shape, int(layout), r.dir, r.dir+1), s)
	}
	s = r.at(what+"/rows", "Reshape", model.Attr{Shape: []int64{rows, r.hidden}}, s)
	if rows == 1 && r.batch > 1 && v.constant {
		return r.at(what+"/all", "Expand", model.Attr{Shape: []int64{r.batch, r.hidden}}, s)
	}
	if rows != r.batch {
		r.fail("initial %s %q has %d rows, expected %d", what, v.name, rows, r.batch)
	}
	return s
}

// hardmax is one where a row's first largest element is, and zero elsewhere.
func hardmax(c *call) {
	x, attr := c.in[0], lastAxis(c)
	y := operandOf(x)
	if c.opset < 13 { // of all dimensions from the axis on
		a := c.axis(c.int("axis", 1), len(x.shape))
		attr.Axis = 1
		y = operandOf(c.step("rows", "Reshape",
			model.Attr{Shape: []int64{x.shape[:a].Elements(), x.shape[a:].Elements()}}, y))
	}
	s := y.v.shape
	positions := model.Shape(slices.Repeat([]int64{1}, len(s)-int(attr.Axis)))
	positions[0] = s[attr.Axis]
	largest := c.step("largest", "ArgMax", model.Attr{Axes: []int64{attr.Axis}, KeepDims: true}, y)
	equal := c.step("equal", "Equal", model.Attr{}, operandOf(largest),
		operandOf(c.made("positions", positions, model.I64)))
	last := c.step("ones", "Cast", model.Attr{Axis: int64(x.dtype)}, operandOf(equal))
	c.finish("Reshape", model.Attr{Shape: x.shape.Clone()}, operandOf(last))
}
