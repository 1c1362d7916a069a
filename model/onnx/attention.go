package onnx

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Attention in its fused forms becomes the operators that it fuses, in the order in which the zoo has them.

// heads are an operand of attention as [batch, head, position, feature].
type heads struct {
	v          *value
	n, seq, at int64 // heads, positions, features of a head
}

// toHeads brings an operand into the order of heads. n is the number of heads of
// [batch, position, feature]; operands of four dimensions have it.
func (c *call) toHeads(suffix string, v *value, n int64) heads {
	s := v.shape
	switch {
	case len(s) == 4:
		return heads{v, s[1], s[2], s[3]}
	case len(s) != 3:
		c.fail("%s has shape %v, expected three or four dimensions", suffix, s)
	case n < 1 || s[2]%n != 0:
		c.fail("%s has %d features, which do not divide over %d heads", suffix, s[2], n)
	}
	h := heads{n: n, seq: s[1], at: s[2] / n}
	x := c.step(suffix+"/heads", "Reshape", model.Attr{Shape: []int64{s[0], s[1], n, h.at}}, operandOf(v))
	h.v = c.step(suffix+"/transpose", "Transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, operandOf(x))
	return h
}

// append sets the positions of a cache before those of an operand.
func (c *call) append(suffix string, past *value, h heads) heads {
	if past == nil {
		return h
	}
	if len(past.shape) != 4 {
		c.fail("the cache %q has shape %v, expected [batch,head,position,feature]", past.name, past.shape)
	}
	h.v = c.step(suffix+"/cache", "Concat", model.Attr{Axis: 2}, operandOf(past), operandOf(h.v))
	h.seq += past.shape[2]
	return h
}

// into writes positions into a cache of fixed length.
func (c *call) into(suffix string, past *value, h heads) heads {
	if past == nil {
		return h
	}
	if s := past.shape; len(s) != 4 || s[0] != h.v.shape[0] || s[1] != h.n || s[2] < h.seq || s[3] != h.at {
		c.fail("the cache %q has shape %v, expected [%d,%d,position,%d]", past.name, s, h.v.shape[0], h.n, h.at)
	}
	at := c.made(suffix+"/position", past.shape[:1].Clone(), model.I32)
	h.v = c.step(suffix+"/cache", "Scatter", model.Attr{Variant: "of TensorScatter"}, operandOf(past),
		operandOf(at), operandOf(h.v))
	h.seq = past.shape[2]
	return h
}

// scores are intermediate results of attention: scaled products, those with masks, and the shares of the values, which
// stand beside them.
type scores struct{ product, masked, shares, values *value }

// attend computes softmax(q k^T scale + bias) v. Fewer heads of keys than of queries are shared by groups of queries.
// The result is [batch, position, feature] if merge, else as heads; variant says what else decides the values.
func (c *call) attend(q, k, v heads, biases []*value, cap, merge bool, variant string) (at scores) {
	at = c.scores(q, k, v, biases, cap, variant)
	switch {
	case merge:
		c.merge(c.context(q, k, v, at))
	case q.n > k.n:
		y := c.step("context", "MatMul", model.Attr{}, operandOf(at.shares), operandOf(at.values))
		c.finish("Reshape", model.Attr{Shape: []int64{q.v.shape[0], q.n, q.seq, v.at}}, operandOf(y))
	default:
		c.finish("MatMul", model.Attr{}, operandOf(at.shares), operandOf(at.values))
	}
	return at
}

// context is what queries see of the values, as heads.
func (c *call) context(q, k, v heads, at scores) *value {
	y := c.step("context", "MatMul", model.Attr{}, operandOf(at.shares), operandOf(at.values))
	if q.n > k.n {
		shape := []int64{q.v.shape[0], q.n, q.seq, v.at}
		y = c.step("context/heads", "Reshape", model.Attr{Shape: shape}, operandOf(y))
	}
	return y
}

// merge is the node's result of contexts as heads.
func (c *call) merge(y *value) {
	s := y.shape
	y = c.step("context/transpose", "Transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, operandOf(y))
	c.finish("Reshape", model.Attr{Shape: []int64{s[0], s[2], s[1] * s[3]}}, operandOf(y))
}

// scores are those of all queries and keys.
func (c *call) scores(q, k, v heads, biases []*value, cap bool, variant string) (at scores) {
	if k.n != v.n || k.n < 1 || q.n%k.n != 0 || k.seq != v.seq || q.at != k.at {
		c.fail("queries of shape %v, keys of %v and values of %v do not fit", q.v.shape, k.v.shape, v.v.shape)
	}
	batch, groups := q.v.shape[0], q.n/k.n
	query, key, val := q.v, k.v, v.v
	perm := []int64{0, 1, 3, 2}
	if groups > 1 {
		// A dimension for the group, along which keys and values are broadcast.
		query = c.step("query/groups", "Reshape", model.Attr{Shape: []int64{batch, k.n, groups, q.seq, q.at}},
			operandOf(query))
		key = c.step("key/groups", "Reshape", model.Attr{Shape: []int64{batch, k.n, 1, k.seq, k.at}}, operandOf(key))
		val = c.step("value/groups", "Reshape", model.Attr{Shape: []int64{batch, k.n, 1, v.seq, v.at}}, operandOf(val))
		perm = []int64{0, 1, 2, 4, 3}
	}
	key = c.step("key/columns", "Transpose", model.Attr{Perm: perm}, operandOf(key))
	p := c.step("scores", "MatMul", model.Attr{}, operandOf(query), operandOf(key))
	p = c.step("scores/scale", "Mul", model.Attr{Variant: variant}, operandOf(p), operandOf(c.number("scale", p.dtype)))
	at.product = p
	if cap {
		p = c.step("scores/cap", "Tanh", model.Attr{Variant: variant}, operandOf(p))
	}
	if groups > 1 && len(biases) > 0 {
		p = c.step("scores/heads", "Reshape", model.Attr{Shape: []int64{batch, q.n, q.seq, k.seq}}, operandOf(p))
	}
	for i, b := range biases {
		kind, in := model.Kind("Add"), []arg{operandOf(p), operandOf(b)}
		if b.dtype == model.Bool || b.dtype == model.I32 || b.dtype == model.I64 {
			kind, in = "Where", []arg{operandOf(b), operandOf(p), operandOf(c.number("masked", p.dtype))}
		}
		p = c.step([]string{"scores/mask", "scores/bias", "scores/bias2"}[min(i, 2)], kind, model.Attr{}, in...)
	}
	if groups > 1 && len(biases) > 0 {
		p = c.step("scores/groups", "Reshape", model.Attr{Shape: []int64{batch, k.n, groups, q.seq, k.seq}}, operandOf(p))
	}
	at.masked = p
	p = c.step("softmax", "Softmax", model.Attr{Axis: int64(len(p.shape) - 1)}, operandOf(p))
	at.shares, at.values = p, val
	return at
}

// causal is a constant mask that hides what comes later.
func (c *call) causal(q, k heads) *value {
	mask := c.made("causal", model.Shape{q.seq, k.seq}, model.Bool)
	mask.causal = q.seq <= k.seq
	return mask
}

// windowed is attend under a causal mask with queries that see a window of keys. They pass in as many parts as windows
// fit, at most 16, each with the keys that any of its queries sees.
func (c *call) windowed(q, k, v heads, bias *value, window int64, cap bool, variant string) {
	slice := func(suffix string, x *value, dim int, lo, hi int64) *value {
		if x == nil || hi-lo == x.shape[dim] {
			return x
		}
		return c.step(suffix+"/window", "Slice", model.SliceOf(x.shape, dim, lo, hi), operandOf(x))
	}
	parts := min(16, (q.seq+window-1)/window)
	each, before := (q.seq+parts-1)/parts, k.seq-q.seq
	var contexts []arg
	for at := int64(0); at < q.seq; at += each {
		end := min(at+each, q.seq)
		lo, hi := max(0, before+at+1-window), before+end
		if each < q.seq {
			c.part = fmt.Sprintf("part%d/", at/each)
		}
		pq, pk, pv, pb := q, k, v, bias
		pq.v, pq.seq = slice("query", q.v, 2, at, end), end-at
		pk.v, pv.v = slice("key", k.v, 2, lo, hi), slice("value", v.v, 2, lo, hi)
		pk.seq, pv.seq = hi-lo, hi-lo
		if bias != nil && len(bias.shape) > 1 {
			if n := len(bias.shape); bias.shape[n-2] == q.seq {
				pb = slice("bias/rows", pb, n-2, at, end)
			}
			if n := len(bias.shape); bias.shape[n-1] == k.seq {
				pb = slice("bias", pb, n-1, lo, hi)
			}
		}
		s := c.scores(pq, pk, pv, c.biases(true, pq, pk, pb), cap, variant)
		contexts = append(contexts, operandOf(c.context(pq, pk, pv, s)))
	}
	if c.part = ""; len(contexts) > 1 {
		contexts[0] = operandOf(c.step("context/parts", "Concat", model.Attr{Axis: 2}, contexts...))
	}
	c.merge(contexts[0].v)
}

// biases lists a causal mask, if there is one, and what else is added to the scores or masks them.
func (c *call) biases(causal bool, q, k heads, others ...*value) (list []*value) {
	if causal {
		list = append(list, c.causal(q, k))
	}
	return append(list, slices.DeleteFunc(others, func(v *value) bool { return v == nil })...)
}

// attention is the standard operator: queries, keys, values, mask, cache of keys and of values.
func attention(c *call) {
	merge := len(c.in[0].shape) == 3
	q := c.toHeads("query", c.in[0], c.int("q_num_heads", 0))
	k := c.toHeads("key", c.in[1], c.int("kv_num_heads", 0))
	v := c.toHeads("value", c.in[2], c.int("kv_num_heads", 0))
	k, v = c.append("key", c.in[4], k), c.append("value", c.in[5], v)
	mask := c.in[3]
	if mask != nil && len(mask.shape) > 0 {
		if n := len(mask.shape); mask.shape[n-1] > 1 && mask.shape[n-1] < k.seq { // hides the keys behind it
			pads := append(make([]int64, 2*n-1), k.seq-mask.shape[n-1])
			mask = c.step("mask", "Pad", model.Attr{Pads: pads}, operandOf(mask))
		}
	}
	biases := c.biases(c.bool("is_causal", false), q, k, mask)
	softcap, mode := c.nonZero("softcap"), c.int("qk_matmul_output_mode", 0)
	if mode < 0 || mode > 3 {
		c.fail("attribute \"qk_matmul_output_mode\" is %d, expected 0 to 3", mode)
	}
	at := c.attend(q, k, v, biases, softcap, merge, c.variant())
	c.present(1, k, v)
	if !c.reads(3) {
		return
	}
	y := *[]*value{at.product, at.masked, at.masked, at.shares}[mode]
	if len(y.shape) == 5 {
		y = *c.step("scores/output", "Reshape", model.Attr{Shape: []int64{y.shape[0], q.n, q.seq, k.seq}}, operandOf(&y))
	}
	c.bind(3, &y)
}

// present binds the outputs that hold keys and values with those of the cache.
func (c *call) present(i int, k, v heads) {
	a, b := *k.v, *v.v
	c.bind(i, &a)
	c.bind(i+1, &b)
}

// rotate turns pairs of features by the angles whose cosines and sines are given per position: halves of the features,
// or neighbours, which cost the same. h is as heads, the tables [.., position, pairs].
func (c *call) rotate(suffix string, x, cos, sin *value, dim int64) *value {
	s := x.shape
	last := len(s) - 1
	dim = cmp.Or(dim, s[last])
	if dim < 2 || dim > s[last] || dim%2 != 0 {
		c.fail("rotates %d of %d features", dim, s[last])
	}
	part := func(name string, from, n int64) *value {
		return c.step(suffix+"/"+name, "Slice", model.SliceOf(s, last, from, from+n), operandOf(x))
	}
	a, b := part("first", 0, dim/2), part("second", dim/2, dim/2)
	times := func(name string, v, t *value) arg {
		return operandOf(c.step(suffix+"/"+name, "Mul", model.Attr{}, operandOf(v), operandOf(t)))
	}
	re := c.step(suffix+"/real", "Sub", model.Attr{}, times("first/cos", a, cos), times("second/sin", b, sin))
	im := c.step(suffix+"/imaginary", "Add", model.Attr{}, times("second/cos", b, cos), times("first/sin", a, sin))
	parts := args(re, im)
	if dim < s[last] {
		parts = append(parts, operandOf(part("rest", dim, s[last]-dim)))
	}
	return c.step(suffix+"/rotated", "Concat", model.Attr{Axis: int64(last)}, parts...)
}

// angles looks positions up in a table of cosines or sines and sets a dimension
// for the heads before the positions. Tables are computed, not learned.
func (c *call) angles(suffix string, table, positions *value, seq int64) *value {
	t := table
	if positions != nil && len(positions.shape) == 2 {
		t = c.step(suffix+"/rows", "Gather", model.Attr{}, arg{table, statistic}, operandOf(positions))
	} else if len(table.shape) == 2 {
		if table.shape[0] < seq {
			c.fail("the table %q has %d positions, expected at least %d", table.name, table.shape[0], seq)
		}
		// One offset for all: as many rows, in order.
		t = c.step(suffix+"/rows", "Slice",
			model.Attr{Starts: []int64{0, 0}, Steps: []int64{1, 1}, Shape: []int64{seq, table.shape[1]}}, arg{table, statistic})
		return t // broadcast over batch and heads
	}
	s := t.shape
	if len(s) != 3 {
		c.fail("the table %q has shape %v", table.name, table.shape)
	}
	return c.step(suffix+"/head", "Reshape", model.Attr{Shape: []int64{s[0], 1, s[1], s[2]}}, arg{t, statistic})
}

// rotation is an operator that only rotates.
func (c *call) rotation(cos, sin, positions *value, n, dim int64) {
	x := c.in[0]
	merge := len(x.shape) == 3
	if merge && n == 0 && cos != nil && len(cos.shape) > 0 {
		if f := 2 * cos.shape[len(cos.shape)-1]; f > 0 {
			n = x.shape[2] / f
		}
	}
	h := c.toHeads("x", x, n)
	y := c.rotate("x", h.v, c.angles("cos", cos, positions, h.seq), c.angles("sin", sin, positions, h.seq), dim)
	if merge {
		y = c.step("merge/transpose", "Transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, operandOf(y))
		c.finish("Reshape", model.Attr{Shape: x.shape, Variant: c.variant()}, operandOf(y))
		return
	}
	c.finish("Identity", model.Attr{Variant: c.variant()}, operandOf(y))
}

func rotary(c *call) {
	c.rotation(c.in[1], c.in[2], c.in[3], c.int("num_heads", 0), c.int("rotary_embedding_dim", 0))
}

func rotaryMS(c *call) {
	c.rotation(c.in[2], c.in[3], c.in[1], c.int("num_heads", 0), c.int("rotary_embedding_dim", 0))
}

// attentionMS projects its input to queries, keys and values by one matrix first.
func attentionMS(c *call) {
	attendProjected(c, operandOf, c.in[3], c.in[4], c.in[5])
}

// attentionQ is attentionMS of integers, whose products a scale makes floats.
func attentionQ(c *call) {
	attendProjected(c, func(sums *value) arg {
		return operandOf(c.step("projection/float", "Dequantize", model.Attr{Axis: int64(c.in[3].dtype)}, operandOf(sums),
			operandOf(c.in[3])))
	}, c.in[5], c.in[8], nil)
}

// attendProjected is both: float makes floats of the products.
func attendProjected(c *call, float func(*value) arg, mask, past, bias *value) {
	x, w := c.in[0], c.in[1]
	if len(x.shape) != 3 || len(w.shape) != 2 {
		c.fail("input %v and weights %v, expected three and two dimensions", x.shape, w.shape)
	}
	n := c.int("num_heads", 0)
	sizes, ok := c.ints("qkv_hidden_sizes")
	if !ok {
		sizes = []int64{w.shape[1] / 3, w.shape[1] / 3, w.shape[1] / 3}
	}
	y := float(c.step("projection", "MatMul", model.Attr{}, operandOf(x), arg{w, parameter}))
	if c.in[2] != nil {
		y = operandOf(c.step("projection/bias", "Add", model.Attr{}, y, arg{c.in[2], parameter}))
	}
	parts := c.parts("split", y, 2, sizes, "q", "k", "v")
	if len(parts) != 3 {
		c.fail("qkv_hidden_sizes is %v, expected three numbers", sizes)
	}
	q, k, v := c.toHeads("query", parts[0], n), c.toHeads("key", parts[1], n), c.toHeads("value", parts[2], n)
	if past != nil {
		// Keys and values of earlier positions, one behind the other.
		s := past.shape
		if len(s) != 5 || s[0] != 2 {
			c.fail("the cache %q has shape %v, expected [2,batch,head,position,feature]", past.name, s)
		}
		before := c.parts("cache", operandOf(past), 0, []int64{1, 1}, "k", "v")
		for i, x := range before {
			before[i] = c.step([]string{"key", "value"}[i]+"/past", "Reshape", model.Attr{Shape: s[1:]}, operandOf(x))
		}
		k, v = c.append("key", before[0], k), c.append("value", before[1], v)
	}
	biases := c.biases(c.bool("unidirectional", false), q, k, c.paddingMask(mask, q, k), bias)
	c.attend(q, k, v, biases, false, true, c.variant())
	if c.reads(1) {
		one := func(suffix string, h heads) arg {
			return operandOf(c.step(suffix+"/present", "Reshape",
				model.Attr{Shape: slices.Concat([]int64{1}, h.v.shape)}, operandOf(h.v)))
		}
		c.bind(1, c.step("present", "Concat", model.Attr{}, one("key", k), one("value", v)))
	}
}

// paddingMask brings a mask of ones and zeros before heads and rows. One that
// gives lengths only is a mask as well, of the same size as one row of keys.
func (c *call) paddingMask(m *value, q, k heads) *value {
	if m == nil {
		return nil
	}
	s := m.shape
	batch := q.v.shape[0]
	switch {
	case len(s) == 4:
		return m
	case len(s) == 1:
		return c.made("lengths", model.Shape{1, 1, 1, k.seq}, model.Bool)
	case len(s) == 2:
		return c.step("mask/rows", "Reshape", model.Attr{Shape: []int64{batch, 1, 1, k.seq}}, operandOf(m))
	case len(s) != 3:
		c.fail("mask %q has shape %v", m.name, s)
	}
	return c.step("mask/heads", "Reshape", model.Attr{Shape: []int64{s[0], 1, s[1], s[2]}}, operandOf(m))
}

// multiHeadAttention: query, key, value, bias of all three, mask, additive bias, cache of keys and of values.
func multiHeadAttention(c *call) { c.multiHeadAttention(false) }

// multiHeadAttention may write into a cache of fixed length instead of making it longer.
func (c *call) multiHeadAttention(fixed bool) {
	n := c.int("num_heads", 0)
	query, key, val := c.in[0], c.in[1], c.in[2]
	if len(query.shape) != 3 || key == nil || val == nil || len(key.shape) == 5 {
		c.unsupported("has packed operands")
	}
	if b := c.in[3]; b != nil && !b.constant {
		c.unsupported("has a bias (%q) that is computed while the network runs", b.name)
	} else if b != nil {
		// One vector for all three; its parts are parameters in their own right.
		add := func(suffix string, x *value) *value {
			if len(x.shape) != 3 {
				return x
			}
			p := &value{name: c.node.name + "/" + suffix + "/bias", shape: x.shape[2:].Clone(), dtype: b.dtype,
				constant: true, id: absent}
			return c.step(suffix+"/add", "Add", model.Attr{}, operandOf(x), arg{p, parameter})
		}
		query, key, val = add("query", query), add("key", key), add("value", val)
	}
	q, k, v := c.toHeads("query", query, n), c.toHeads("key", key, n), c.toHeads("value", val, n)
	if fixed {
		k, v = c.into("key", c.in[6], k), c.into("value", c.in[7], v)
	} else {
		k, v = c.append("key", c.in[6], k), c.append("value", c.in[7], v)
	}
	biases := c.biases(c.bool("unidirectional", false), q, k, c.paddingMask(c.in[4], q, k), c.in[5])
	c.attend(q, k, v, biases, false, true, c.variant())
	c.present(1, k, v)
}

// decoderAttention is of one position behind a cache: query, key, value, mask, additive bias,
// cache of keys and of values, its length, width of the beams, whose cache each is, bias of all three.
func decoderAttention(c *call) {
	n := c.int("num_heads", 0)
	query, key, val, b := c.in[0], c.in[1], c.in[2], c.in[10]
	if s := query.shape; len(s) == 3 && key == nil && val == nil {
		// Packed: queries, keys and values side by side; the cache tells the features of a value.
		width := s[2] / 3
		if v := c.in[6]; v != nil && len(v.shape) == 4 {
			if width = n * v.shape[3]; width >= s[2] || (s[2]-width)%2 != 0 {
				c.fail("input %q has shape %v, which does not hold queries, keys and values of %d features", query.name, s, width)
			}
		}
		parts := c.parts("split", operandOf(query), 2, []int64{(s[2] - width) / 2, (s[2] - width) / 2, width}, "q", "k", "v")
		query, key, val = parts[0], parts[1], parts[2]
	}
	if len(query.shape) != 3 || query.shape[1] != 1 {
		c.fail("query has shape %v, expected [batch,1,features]", query.shape)
	}
	fixed := c.bool("past_present_share_buffer", false)
	c.in = []*value{query, key, val, b, c.in[3], c.in[4], c.in[5], c.in[6]}
	c.multiHeadAttention(fixed)
}

// groupQueryAttention: query, key, value, cache of keys and of values, lengths, total length, tables of cosines and
// sines, positions, additive bias. What the cache holds is known only at run time; it is taken to be full.
func groupQueryAttention(c *call) {
	n, kv := c.int("num_heads", 0), c.int("kv_num_heads", 0)
	query, key, val := c.in[0], c.in[1], c.in[2]
	for _, name := range []string{"num_heads", "kv_num_heads"} {
		if !c.has(name) {
			c.fail("has no attribute %q, which it must have", name)
		}
	}
	if n < 1 || kv < 1 || n%kv != 0 {
		c.fail("%d heads of queries do not divide over %d of keys", n, kv)
	}
	if key == nil || val == nil {
		// Packed: queries, keys and values side by side.
		s := query.shape
		if len(s) != 3 || s[2]%(n+2*kv) != 0 {
			c.fail("input %q has shape %v, which does not divide over %d and twice %d heads", query.name, s, n, kv)
		}
		d := s[2] / (n + 2*kv)
		parts := c.parts("split", operandOf(query), 2, []int64{n * d, kv * d, kv * d}, "q", "k", "v")
		query, key, val = parts[0], parts[1], parts[2]
	}
	q, k, v := c.toHeads("query", query, n), c.toHeads("key", key, kv), c.toHeads("value", val, kv)
	if c.bool("do_rotary", false) {
		cos, sin := c.in[7], c.in[8]
		if cos == nil || sin == nil {
			c.fail("rotates without tables of cosines and sines")
		}
		a, b := c.angles("cos", cos, c.in[9], q.seq), c.angles("sin", sin, c.in[9], q.seq)
		dim := 2 * cos.shape[len(cos.shape)-1]
		q.v, k.v = c.rotate("query", q.v, a, b, dim), c.rotate("key", k.v, a, b, dim)
	}
	k, v = c.append("key", c.in[3], k), c.append("value", c.in[4], v)
	softcap := c.nonZero("softcap")
	if w := c.within("local_window_size", -1, -1, 1<<30); w > 0 && k.seq == v.seq && q.seq > 0 && q.seq <= k.seq {
		c.leave("local_window_size")
		c.windowed(q, k, v, c.in[10], w, softcap, c.variant())
	} else {
		c.attend(q, k, v, c.biases(true, q, k, c.in[10]), softcap, true, c.variant())
	}
	c.present(1, k, v)
}
