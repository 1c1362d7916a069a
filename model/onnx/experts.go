package onnx

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// expertWeights are the weights of one of the products of all experts: [expert, row, column], several
// to a byte if they have scales.
type expertWeights struct {
	name           string
	w, scale, bias *value
	block          int64 // columns that share a scale; 0: all
	rows, columns  int64
}

// product multiplies rows with the weights of an expert.
func (e *expertWeights) product(c *call, prefix string, expert int64, x *value) *value {
	part := func(v *value, shape ...int64) *value {
		return v.part(fmt.Sprintf("expert%d", expert), v.dtype, shape...)
	}
	prefix += "/" + e.name
	in := []arg{operandOf(x)}
	if e.scale == nil {
		in = append(in, arg{part(e.w, e.rows, e.columns), parameter})
	} else {
		codes, groups := part(e.w, e.rows, e.columns), int64(1)
		if e.block > 0 {
			groups = e.columns / e.block
		}
		d := c.step(prefix+"/weights", "Dequantize", model.Attr{Axis: int64(x.dtype)}, arg{codes, parameter},
			arg{part(e.scale, e.rows, groups), statistic})
		in = append(in, operandOf(d))
	}
	if e.bias != nil {
		in = append(in, arg{part(e.bias, e.rows), parameter})
	}
	return c.step(prefix, "Gemm", model.Attr{TransB: true}, in...)
}

// mixture: input, scores of the experts, and weights and a bias for each of three products.
func mixture(c *call) {
	c.experts([3]expertWeights{{name: "fc1", w: c.in[2], bias: c.in[3]}, {name: "fc2", w: c.in[4], bias: c.in[5]},
		{name: "fc3", w: c.in[6], bias: c.in[7]}}, nil)
}

// quantisedMixture: input, scores, and weights, scales and a bias for each of three products,
// zero points of each, and scores for the sum.
func quantisedMixture(c *call) {
	c.one("quant_type", "int", "int")
	width := c.int("expert_weight_bits", 4)
	if width != 2 && width != 4 && width != 8 {
		c.fail("attribute \"expert_weight_bits\" is %d, expected 2, 4 or 8", width)
		return
	}
	var block int64
	if c.has("block_size") {
		block = c.block(0)
	}
	var fc [3]expertWeights
	for i := range fc {
		fc[i] = expertWeights{name: fmt.Sprintf("fc%d", i+1), w: c.in[2+3*i], scale: c.in[3+3*i],
			bias: c.in[4+3*i], block: block}
		if w := fc[i].w; w != nil && len(w.shape) == 3 && c.err == nil {
			unpacked := *w
			unpacked.shape, unpacked.dtype = w.shape.Clone(), packedTypes[width]
			unpacked.shape[2] *= 8 / width
			fc[i].w = &unpacked
			if fc[i].scale == nil {
				c.fail("has no scales of %s", fc[i].name)
			}
		}
	}
	c.experts(fc, c.in[14])
}

// experts sends each row of the input to the k experts of the highest scores, and adds up what they
// make of it by these scores. How many rows an expert has is known only at run time: they are
// taken to spread as evenly as they can, and an expert without a row is not there.
func (c *call) experts(fc [3]expertWeights, shares *value) {
	x, scores := c.in[0], c.in[1]
	if len(x.shape) != 2 && len(x.shape) != 3 || len(scores.shape) != 2 {
		c.fail("input %v and scores %v, expected two or three and two dimensions", x.shape, scores.shape)
		return
	}
	hidden := x.shape[len(x.shape)-1]
	tokens, count := x.shape[:len(x.shape)-1].Elements(), scores.shape[1]
	k := c.within("k", 1, 1, count)
	activation := c.one("activation_type", "relu", "relu", "gelu", "silu", "swiglu", "identity")
	fusion := c.within("swiglu_fusion", 0, 0, 2)
	normalise := c.bool("normalize_routing_weights", false)
	if c.bool("use_sparse_mixer", false) {
		c.unsupported("has a sparse mixer")
	}
	gated, twice := fc[2].w != nil, int64(1)
	if activation == "swiglu" && fusion > 0 {
		twice = 2
	}
	if activation == "swiglu" && gated == (twice == 2) {
		c.fail("has the activation swiglu with swiglu_fusion %d, expected weights of fc3 if and only if that is 0", fusion)
	}
	if c.err != nil {
		return
	}
	if scores.shape[0] != tokens {
		c.fail("scores %v for %d tokens, expected [%d,%d]", scores.shape, tokens, tokens, count)
		return
	}
	// Older files have [expert, column, row].
	first, old := fc[0].w.shape, 0
	if len(first) == 3 && fc[0].scale == nil && first[1] == hidden && first[2] != hidden {
		old = 1
	}
	if len(first) != 3 || first[1+old]%twice != 0 {
		c.fail("weights %q have shape %v, expected [%d,%d * inner,%d]", fc[0].w.name, fc[0].w.shape, count, twice, hidden)
		return
	}
	inner := first[1+old] / twice
	for i := range fc {
		e := &fc[i]
		if e.w == nil {
			continue
		}
		e.rows, e.columns = []int64{twice * inner, hidden, inner}[i], []int64{hidden, inner, hidden}[i]
		want := model.Shape{count, e.rows, e.columns}
		if old == 1 {
			want[1], want[2] = e.columns, e.rows
		}
		if !e.w.shape.Equal(want) {
			c.fail("weights %q have shape %v, expected %v", e.w.name, e.w.shape, want)
		}
		if want := (model.Shape{count, e.rows}); e.bias != nil && !e.bias.shape.Equal(want) {
			c.fail("bias %q has shape %v, expected %v", e.bias.name, e.bias.shape, want)
		}
		if e.scale != nil && e.block > 0 {
			c.perBlock(e.w.shape, e.scale, 2, e.block)
		} else if want := (model.Shape{count, e.rows}); e.scale != nil && !e.scale.shape.Equal(want) {
			c.fail("scales %q have shape %v, expected %v", e.scale.name, e.scale.shape, want)
		}
		for _, v := range []*value{e.w, e.scale, e.bias} {
			if v != nil && !v.constant {
				c.unsupported("has weights (%q) that are computed while the network runs", v.name)
			}
		}
	}
	all := tokens * k
	// An expert is some operators: few bytes of a file could ask for a large graph.
	const most, each = 1 << 12, 40
	if count > most || all > 1<<30 {
		c.fail("has %d experts and %d tokens, expected at most %d and %d", count, tokens, most, int64(1<<30)/k)
	} else if c.budget -= min(count, all) * each; c.budget < 0 {
		c.fail("has %d experts, and others before it: expected at most %d in all", count, maxKnown/each)
	}
	if c.err != nil {
		return
	}
	if c.opt.Assume != nil {
		c.opt.Assume(
			fmt.Sprintf(
				"the tokens spread as evenly as they can over the %d experts of a layer, %d for each token, and an expert without one is not there", count, k))
	}

	share, choice := c.best(scores, shares, k, normalise)
	rows, order := c.sorted(x, choice, tokens, k)
	var made []arg
	var sizes []int64
	for i := range min(count, all) {
		sizes = append(sizes, (all+count-1-i)/count)
	}
	parts := []*value{rows}
	if len(sizes) > 1 {
		names := make([]string, len(sizes))
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		parts = c.parts("parts", operandOf(rows), 0, sizes, names...)
	}
	for i, p := range parts {
		prefix := fmt.Sprintf("expert%d", i)
		y := c.activate(prefix, activation, fusion, fc[0].product(c, prefix, int64(i), p),
			func() *value { return fc[2].product(c, prefix, int64(i), p) }, gated, inner)
		if c.err != nil {
			return
		}
		made = append(made, operandOf(fc[1].product(c, prefix, int64(i), y)))
	}
	y := made[0]
	if len(made) > 1 {
		y = operandOf(c.step("joined", "Concat", model.Attr{}, made...))
	}
	c.leave("activation_beta")
	// Back in the order of the tokens, where the shares are.
	back := c.positions("back", order, all)
	y = operandOf(c.step("unsorted", "Gather", model.Attr{}, y, operandOf(back)))
	y = operandOf(c.step("pairs", "Reshape", model.Attr{Shape: []int64{tokens, k, hidden}}, y))
	column := c.step("share", "Reshape", model.Attr{Shape: []int64{tokens, k, 1}}, operandOf(share))
	y = operandOf(c.step("shared", "Mul", model.Attr{}, y, operandOf(column)))
	if len(x.shape) == 2 {
		c.finish("ReduceSum", model.Attr{Axes: []int64{1}, Variant: c.variant()}, y)
		return
	}
	sum := c.step("sum", "ReduceSum", model.Attr{Axes: []int64{1}, Variant: c.variant()}, y)
	c.finish("Reshape", model.Attr{Shape: x.shape.Clone()}, operandOf(sum))
}

// best chooses k experts for each token: their shares, and their numbers.
func (c *call) best(scores, shares *value, k int64, normalise bool) (share, choice *value) {
	p := scores
	if shares == nil {
		p = c.step("probabilities", "Softmax", model.Attr{Axis: 1}, operandOf(scores))
	}
	out := c.add("TopK", c.node.name+"/best", model.Attr{Axis: 1, Splits: []int64{k}}, args(p),
		[]string{c.node.name + "/best", c.node.name + "/choice"})
	if c.err != nil {
		return p, p
	}
	share, choice = out[0], out[1]
	if shares != nil {
		if !shares.shape.Equal(scores.shape) {
			c.fail("shares %q have shape %v, expected %v", shares.name, shares.shape, scores.shape)
		}
		share = c.step("shares", "GatherElements", model.Attr{Axis: 1}, operandOf(shares), operandOf(choice))
	}
	if normalise {
		total := c.step("total", "ReduceSum", model.Attr{Axes: []int64{1}, KeepDims: true}, operandOf(share))
		share = c.step("normalised", "Div", model.Attr{}, operandOf(share), operandOf(total))
	}
	return share, choice
}

// sorted are the rows in the order of their experts, each as often as it has any.
func (c *call) sorted(x, choice *value, tokens, k int64) (rows, order *value) {
	if c.err != nil {
		return x, x
	}
	all, hidden := tokens*k, x.shape[len(x.shape)-1]
	order = c.positions("order", c.step("choices", "Reshape", model.Attr{Shape: []int64{all}}, operandOf(choice)), all)
	flat := []int64{tokens, hidden}
	if k > 1 {
		rows = c.step("rows", "Reshape", model.Attr{Shape: []int64{tokens, 1, hidden}}, operandOf(x))
		rows = c.step("copies", "Expand", model.Attr{Shape: []int64{tokens, k, hidden}}, operandOf(rows))
		rows = c.step("copies/rows", "Reshape", model.Attr{Shape: []int64{all, hidden}}, operandOf(rows))
	} else {
		rows = c.step("rows", "Reshape", model.Attr{Shape: flat}, operandOf(x))
	}
	return c.step("sorted", "Gather", model.Attr{}, operandOf(rows), operandOf(order)), order
}

// positions sorts a list: where its elements were.
func (c *call) positions(suffix string, list *value, n int64) *value {
	if c.err != nil {
		return list
	}
	name := c.node.name + "/" + suffix
	out := c.add("TopK", name, model.Attr{Splits: []int64{n}}, args(list), []string{name + ":values", name})
	if c.err != nil {
		return list
	}
	return out[1]
}

// activate adds the operators between the products of an expert.
func (c *call) activate(prefix, activation string, fusion int64, g *value, up func() *value, gated bool,
	inner int64) *value {
	if c.err != nil {
		return g
	}
	kind := map[string]model.Kind{"relu": "Relu", "gelu": "Gelu", "silu": "Silu", "swiglu": "Silu"}[activation]
	var l *value
	switch {
	case gated:
		l = up()
	case activation == "swiglu":
		half := func(name string, from int64) *value {
			a := model.Attr{Starts: []int64{0, from * inner}, Steps: []int64{1, 1}, Shape: []int64{g.shape[0], inner}}
			if fusion == 1 { // by turns
				a.Starts[1], a.Steps[1] = from, 2
			}
			return c.step(prefix+"/"+name, "Slice", a, operandOf(g))
		}
		g, l = half("gate", 0), half("up", 1)
	}
	if activation == "swiglu" && c.has("swiglu_limit") {
		g = c.step(prefix+"/gate/clip", "Clip", model.Attr{}, operandOf(g))
		l = c.step(prefix+"/up/clip", "Clip", model.Attr{}, operandOf(l))
	}
	if kind != "" {
		g = c.step(prefix+"/activation", kind, model.Attr{}, operandOf(g))
	}
	if l == nil {
		return g
	}
	if activation == "swiglu" && c.nonZero("activation_beta") {
		l = c.step(prefix+"/up/add", "Add", model.Attr{}, operandOf(l), operandOf(c.number("beta", l.dtype)))
	}
	return c.step(prefix+"/gated", "Mul", model.Attr{}, operandOf(g), operandOf(l))
}
