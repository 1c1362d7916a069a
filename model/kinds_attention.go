package model

import (
	"fmt"
	"slices"
)

// A ScoreOp is an element-wise operator that an attention runs on its scores: in place At of the
// operator's operands it reads them, and in the others inputs of the attention, in turn.
type ScoreOp struct {
	Kind     Kind   `json:"kind"`
	Variant  string `json:"variant,omitempty"` // as Attr.Variant has it
	At       int    `json:"at,omitempty"`
	Operands int    `json:"operands"` // all, the scores among them
}

// extra counts the inputs of the score operators.
func (a *Attr) extra() int {
	n := 0
	for _, s := range a.Scores {
		n += s.Operands - 1
	}
	return n
}

// scoreKinds are the kinds that score operators may be.
var scoreKinds = []Kind{"Add", "Sub", "Mul", "Div", "Max", "Min", "Where", "Tanh", "Exp", "Clip"}

// OnScores reports whether operators of a kind may be score operators.
func OnScores(k Kind) bool { return slices.Contains(scoreKinds, k) }

// registerAttention lists attention as one operator: scores Q K^T, what Attr.Scores names, with Attr.Softmax a softmax
// over the keys, and the product with V. Inputs: Q [.., heads, queries, depth], K [.., heads / Group, keys, depth] or,
// with TransB, [.., depth, keys], V [.., heads / Group, keys, width], and what the score operators read, each broadcast
// to [.., heads, queries, keys]. With Causal query i sees the first i + 1 + keys - queries keys. Keys and values may
// come in parts, such as a cache and what is new: Q, K, V, K, V and so on, one part behind the other along the keys.
func registerAttention() {
	register(&KindInfo{Kind: "Attention", Class: MatrixClass,
		Doc:   "attention: softmax of the scores of queries and keys, times values; Group heads of queries share one of keys",
		minIn: 3, maxIn: -1,
		infer:      inferAttention,
		access:     attentionAccess,
		sequential: func(_ *Op, out Shape) []int64 { return []int64{int64(len(out)) - 1} },
		macs: func(op *Op, in []*Tensor, out Shape) int64 {
			return max(1, attentionWork(op, in, Whole(out)).MACs/out.Elements())
		},
		vector: func(op *Op, in []*Tensor, out Shape) VectorWork {
			w, n := attentionWork(op, in, Whole(out)).Vector, out.Elements()
			return VectorWork{Simple: w.Simple/n + min(1, w.Simple%n), Special: w.Special/n + min(1, w.Special%n)}
		},
		work: attentionWork,
	})
}

// KeyParts is the number of parts that the keys of an attention come in, and the values: part i are inputs 2i+1 and
// 2i+2.
func (op *Op) KeyParts() int { return (len(op.Inputs) - 1 - op.Attr.extra()) / 2 }

// KeyPart is the part of the keys or values that an input of an attention is; -1: neither.
func (op *Op) KeyPart(input int) int {
	if input < 1 || input > 2*op.KeyParts() {
		return -1
	}
	return (input - 1) / 2
}

// KeyStart is the number of keys of an attention in front of a part; of those behind the last, all.
func (g *Graph) KeyStart(op *Op, part int) int64 { return keysBefore(g.inputs(op), part) }

func keysBefore(in []*Tensor, part int) (n int64) {
	for i := range part {
		v := in[2*i+2].Shape
		n += v[len(v)-2]
	}
	return n
}

// keyDim is the place of the keys among K's n dimensions.
func keyDim(op *Op, n int) int {
	if op.Attr.TransB {
		return n - 1
	}
	return n - 2
}

func inferAttention(op *Op, in []*Tensor) ([]Shape, error) {
	q, a := in[0].Shape, op.Attr
	n, parts := len(q), op.KeyParts()
	if parts < 1 || len(in) != 1+2*parts+a.extra() {
		return nil, fmt.Errorf("has %d inputs, expected %d, and two more for each further part of the keys", len(in),
			3+a.extra())
	}
	for i := range parts {
		k, v := in[2*i+1].Shape, in[2*i+2].Shape
		if n < 3 || len(k) != n || len(v) != n {
			return nil, fmt.Errorf(
				"queries %v, keys %v and values %v, expected three dimensions or more, as many of each", q, k, v)
		}
		dim := keyDim(op, n)
		keys, depth := k[dim], k[2*n-3-dim]
		if a.Group < 1 || q[n-3] != k[n-3]*a.Group || k[n-3] != v[n-3] || !slices.Equal(q[:n-3], k[:n-3]) ||
			!slices.Equal(q[:n-3], v[:n-3]) {
			return nil, fmt.Errorf(
				"queries %v, keys %v and values %v do not fit for %d heads of queries to one of keys", q, k, v, a.Group)
		}
		if depth != q[n-1] || keys != v[n-2] {
			return nil, fmt.Errorf(
				"queries %v, keys %v and values %v: depths %d and %d, keys %d and %d, expected equal ones",
				q, k, v, q[n-1], depth, keys, v[n-2])
		}
		if first := in[2].Shape; v[n-1] != first[n-1] {
			return nil, fmt.Errorf("values %v and %v, expected equal widths", first, v)
		}
	}
	keys := keysBefore(in, parts)
	if a.Causal && !a.Softmax {
		return nil, fmt.Errorf("hides keys without a softmax over them")
	}
	if a.Causal && keys < q[n-2] {
		return nil, fmt.Errorf("%d queries see what comes before of %d keys, expected no more queries than keys", q[n-2],
			keys)
	}
	for i, s := range a.Scores {
		info := kinds[s.Kind]
		if !OnScores(s.Kind) || s.Operands < info.minIn || info.maxIn >= 0 && s.Operands > info.maxIn || s.At < 0 ||
			s.At >= s.Operands {
			return nil, fmt.Errorf("score operator %d is %q with the scores in place %d of %d operands, expected one of %v",
				i, s.Kind, s.At, s.Operands, scoreKinds)
		}
	}
	for i, t := range in {
		if k := slices.Index(in[:min(i, 1+2*parts)], t); k >= 0 { // each has tiles of its own
			return nil, fmt.Errorf("reads %q as inputs %d and %d, expected different tensors", t.Name, k, i)
		}
	}
	scores := append(q[:n-1].Clone(), keys)
	for _, t := range in[1+2*parts:] {
		if s, err := Broadcast(scores, t.Shape); err != nil || !s.Equal(scores) {
			return nil, fmt.Errorf("operand %v of the scores does not broadcast to %v", t.Shape, scores)
		}
	}
	return []Shape{append(q[:n-1].Clone(), in[2].Shape[n-1])}, nil
}

func attentionAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	n, part := len(out), op.KeyPart(idx)
	s := in[idx].Shape
	keys, dim := keysBefore(in, op.KeyParts()), keyDim(op, n)
	seen := full()
	if op.Attr.Causal {
		seen = Access{Out: n - 2, Num: 1, Den: 1, A: -keys, B: keys - out[n-2] - keysBefore(in, max(0, part))}
	}
	acc := make([]Access, len(s))
	if idx > 0 && part < 0 {
		acc = broadcastAccess(s, append(out[:n-1].Clone(), keys))
		if last := len(s) - 1; last >= 0 {
			if acc[last] = full(); s[last] == keys {
				acc[last] = seen
			}
		}
		return acc
	}
	for d := range acc {
		acc[d] = identity(d)
	}
	if idx == 0 {
		acc[n-1] = full()
		return acc
	}
	if op.Attr.Group > 1 {
		acc[n-3] = blocks(n-3, 1, op.Attr.Group)
	}
	if idx%2 == 0 {
		acc[n-2] = seen
		return acc
	}
	acc[dim], acc[2*n-3-dim] = seen, full()
	return acc
}

// AttentionDims is (a box of) an attention as the cores see it: Products of Rows queries, of all heads that share
// the keys, with up to Keys keys.
type AttentionDims struct {
	Products, Rows, Keys, Depth, Width int64
	// Heads of queries that share keys; Rows are of all of them.
	Heads int64
	// Seen counts the pairs of a query and a key that it sees, of all products.
	Seen int64
}

// AttentionDims returns those of the box r of op's output; nil: all of it.
func (g *Graph) AttentionDims(op *Op, r Region) AttentionDims {
	if r == nil {
		r = Whole(g.Tensors[op.Outputs[0]].Shape)
	}
	return attentionDims(op, g.inputs(op), r)
}

func attentionDims(op *Op, in []*Tensor, r Region) AttentionDims {
	n := len(r)
	keys := keysBefore(in, op.KeyParts())
	if r.Elements() == 0 {
		return AttentionDims{}
	}
	heads, group, rows := r[n-3], op.Attr.Group, r[n-2]
	d := AttentionDims{Products: (heads.Hi-1)/group - heads.Lo/group + 1, Keys: keys, Depth: in[0].Shape[n-1],
		Width: r[n-1].Len()}
	d.Heads = (heads.Len() + d.Products - 1) / d.Products
	d.Rows = d.Heads * rows.Len()
	all := heads.Len()
	for _, iv := range r[:n-3] {
		d.Products *= iv.Len()
		all *= iv.Len()
	}
	d.Seen = all * rows.Len() * keys
	if op.Attr.Causal {
		first := rows.Lo + 1 + keys - in[0].Shape[n-2] // of the first row
		d.Keys = first + rows.Len() - 1
		d.Seen = all * (rows.Len()*first + rows.Len()*(rows.Len()-1)/2)
	}
	return d
}

// attentionWork is the work of a box of the output, of a row of which all or nothing is computed: both products,
// and of each score the operators on it, its maximum, the difference from that, the exponential and the sum; of each
// element a division by the sum. What rescales sums is not among it.
func attentionWork(op *Op, in []*Tensor, r Region) Work {
	d := attentionDims(op, in, r)
	w := Work{MACs: d.Seen * (d.Depth + d.Width)}
	w.Vector = ScoreWork(op).times(d.Seen)
	if op.Attr.Softmax {
		w.Vector.Simple += r.Elements()
		w.Vector.Special += r.Elements() / max(1, d.Width)
	}
	return w
}

// ScoreWork is the vector work of one score of an attention.
func ScoreWork(op *Op) VectorWork {
	w := VectorWork{}
	if op.Attr.Softmax {
		w = VectorWork{Simple: 3, Special: 1}
	}
	for _, s := range op.Attr.Scores {
		w = w.Add(kinds[s.Kind].vector(op, make([]*Tensor, s.Operands), nil))
	}
	return w
}
