package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// term is an operand of an Einsum with a label per dimension.
type term struct {
	v      *value
	labels []rune
}

// einsum multiplies its operands from left to right. Each product is a MatMul over
// [shared, rows, inner] and [shared, inner, columns].
func einsum(c *call) {
	terms, out, err := parseEinsum(c.str("equation", ""), c.in)
	var not *notSupported
	switch {
	case errors.As(err, &not):
		c.unsupported("equation %q: %v", c.str("equation", ""), err)
	case err != nil:
		c.fail("equation %q: %v", c.str("equation", ""), err)
	}
	acc := terms[0]
	for i := 1; i < len(terms); i++ {
		// What later operands or the result still need.
		needed := slices.Clone(out)
		for _, t := range terms[i+1:] {
			needed = append(needed, t.labels...)
		}
		acc = c.contract(fmt.Sprintf("product%d", i), acc, terms[i], needed)
	}
	acc = c.sumOut("sum", acc, out)
	acc = c.permute("result", acc, out)
	y := *acc.v
	if y.id == absent || len(terms) == 1 && acc.v == c.in[0] {
		c.finish("Identity", model.Attr{}, operandOf(acc.v))
		return
	}
	c.bind(0, &y)
}

// parseEinsum labels the dimensions. "..." stands for as many dimensions as the
// operand has beyond its letters; they get labels of their own, aligned at the right.
func parseEinsum(eq string, in []*value) (terms []term, out []rune, err error) {
	eq = strings.ReplaceAll(eq, " ", "")
	left, right, explicit := strings.Cut(eq, "->")
	lists := strings.Split(left, ",")
	if len(lists) != len(in) {
		return nil, nil, fmt.Errorf("%d operands, expected %d", len(in), len(lists))
	}
	const firstDot = 'z' + 1 // labels of "...", counted from the right
	expand := func(s string, rank int) ([]rune, error) {
		head, tail, dots := strings.Cut(s, "...")
		var l []rune
		l = append(l, []rune(head)...)
		if n := rank - len(head) - len(tail); dots && n >= 0 && n <= maxRank {
			for i := n - 1; i >= 0; i-- {
				l = append(l, rune(firstDot+i))
			}
		}
		l = append(l, []rune(tail)...)
		for _, r := range head + tail {
			if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return nil, fmt.Errorf("%q is not a label", r)
			}
		}
		if len(l) != rank {
			return nil, fmt.Errorf("%q for an operand of %d dimensions", s, rank)
		}
		return l, nil
	}
	extent := map[rune]int64{}
	count, most := map[rune]int{}, 0
	for i, s := range lists {
		l, err := expand(s, len(in[i].shape))
		if err != nil {
			return nil, nil, err
		}
		most = max(most, strings.Count(s, "...")*(len(l)-len(s)+3))
		for d, r := range l {
			if slices.Contains(l[:d], r) {
				return nil, nil, &notSupported{fmt.Sprintf("a diagonal, %q twice in one operand", r)}
			}
			n := in[i].shape[d]
			if e, ok := extent[r]; ok && e != n && min(e, n) == 1 {
				return nil, nil, &notSupported{"a broadcast from one element to several"}
			} else if ok && e != n {
				return nil, nil, fmt.Errorf("label %q is both %d and %d", r, e, n)
			}
			extent[r] = n
			count[r]++
		}
		terms = append(terms, term{in[i], l})
	}
	if explicit {
		dots := strings.Count(right, "...")
		if dots > 1 {
			return nil, nil, fmt.Errorf("%q has several ellipses", right)
		}
		if out, err = expand(right, len(right)-3*dots+dots*most); err != nil {
			return nil, nil, err
		}
	} else {
		for i := most - 1; i >= 0; i-- {
			out = append(out, rune(firstDot+i))
		}
		var once []rune
		for r, n := range count {
			if n == 1 && r < firstDot {
				once = append(once, r)
			}
		}
		slices.Sort(once)
		out = append(out, once...)
	}
	for d, r := range out {
		if _, ok := extent[r]; !ok || slices.Contains(out[:d], r) {
			return nil, nil, fmt.Errorf("label %q of the result", r)
		}
	}
	return terms, out, nil
}

// sumOut adds up the dimensions without a reader.
func (c *call) sumOut(suffix string, t term, needed []rune) term {
	var axes []int64
	var left []rune
	for d, r := range t.labels {
		if slices.Contains(needed, r) {
			left = append(left, r)
		} else {
			axes = append(axes, int64(d))
		}
	}
	if len(axes) == 0 {
		return t
	}
	return term{c.step(suffix, "ReduceSum", model.Attr{Axes: axes}, operandOf(t.v)), left}
}

// permute brings the dimensions into an order.
func (c *call) permute(suffix string, t term, order []rune) term {
	if slices.Equal(t.labels, order) {
		return t
	}
	var perm []int64
	for _, r := range order {
		perm = append(perm, int64(slices.Index(t.labels, r)))
	}
	return term{c.step(suffix+"/transpose", "Transpose", model.Attr{Perm: perm}, operandOf(t.v)), slices.Clone(order)}
}

func (t term) extents(labels []rune) model.Shape {
	s := model.Shape{}
	for _, r := range labels {
		s = append(s, t.v.shape[slices.Index(t.labels, r)])
	}
	return s
}

// contract multiplies two operands and sums over what only they have.
func (c *call) contract(suffix string, a, b term, needed []rune) term {
	a = c.sumOut(suffix+"/left", a, append(slices.Clone(needed), b.labels...))
	b = c.sumOut(suffix+"/right", b, append(slices.Clone(needed), a.labels...))
	var shared, inner, rows, columns []rune
	for _, r := range a.labels {
		switch {
		case !slices.Contains(b.labels, r):
			rows = append(rows, r)
		case slices.Contains(needed, r):
			shared = append(shared, r)
		default:
			inner = append(inner, r)
		}
	}
	for _, r := range b.labels {
		if !slices.Contains(a.labels, r) {
			columns = append(columns, r)
		}
	}
	// Dimensions of one group become one, unless it is one already.
	matrix := func(side string, t term, first, second []rune) *value {
		t = c.permute(suffix+"/"+side, t, slices.Concat(shared, first, second))
		s := append(t.extents(shared), t.extents(first).Elements(), t.extents(second).Elements())
		if s.Equal(t.v.shape) {
			return t.v
		}
		return c.step(suffix+"/"+side+"/matrix", "Reshape", model.Attr{Shape: s}, operandOf(t.v))
	}
	x, y := matrix("left", a, rows, inner), matrix("right", b, inner, columns)
	p := c.step(suffix, "MatMul", model.Attr{}, operandOf(x), operandOf(y))
	labels := slices.Concat(shared, rows, columns)
	s := slices.Concat(a.extents(shared), a.extents(rows), b.extents(columns))
	if !s.Equal(p.shape) {
		p = c.step(suffix+"/apart", "Reshape", model.Attr{Shape: s}, operandOf(p))
	}
	return term{p, labels}
}
