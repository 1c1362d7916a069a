package stablehlo

import "slices"

// product are the dimensions of a dot_general: of batch, contracted and free ones of both sides.
type product struct{ lb, rb, lc, rc, lf, rf []int }

func (x *flat) product() (p product, err error) {
	if len(x.in) != 2 || len(x.out) != 1 {
		return p, errorAt(x.at, x.name, "has %d operands and %d results, expected 2 and 1", len(x.in), len(x.out))
	}
	a, b := x.in[0], x.in[1]
	numbers := x.attrs["dot_dimension_numbers"].dict
	pair := func(pretty, generic string) (l, r []int64) {
		if v, ok := x.attrs[pretty]; ok && len(v.list) == 3 {
			return v.list[1].ints, v.list[2].ints
		}
		return numbers["lhs_"+generic].ints, numbers["rhs_"+generic].ints
	}
	lb, rb := pair("batching_dims", "batching_dimensions")
	lc, rc := pair("contracting_dims", "contracting_dimensions")
	if short(x.name) == "dot" {
		if len(a.dims) == 0 || len(b.dims) == 0 || len(a.dims) > 2 || len(b.dims) > 2 {
			return p, errorAt(x.at, x.name, "multiplies %s by %s, expected vectors or matrices", a.typ, b.typ)
		}
		lc, rc = []int64{int64(len(a.dims)) - 1}, []int64{0}
	}
	if len(lb) != len(rb) || len(lc) != len(rc) {
		return p, errorAt(x.at, x.name, "batch %v and %v, contracted %v and %v, expected as many on both sides",
			lb, rb, lc, rc)
	}
	side := func(v *val, batch, contracted []int64) (bs, cs, free []int) {
		taken := make([]bool, len(v.dims))
		for i, d := range slices.Concat(batch, contracted) {
			if d < 0 || d >= int64(len(taken)) || taken[d] {
				err = errorAt(x.at, x.name, "dimensions %v and %v do not fit %s", batch, contracted, v.typ)
				return
			}
			taken[d] = true
			if i < len(batch) {
				bs = append(bs, int(d))
			} else {
				cs = append(cs, int(d))
			}
		}
		for d, t := range taken {
			if !t {
				free = append(free, d)
			}
		}
		return
	}
	p.lb, p.lc, p.lf = side(a, lb, lc)
	if err == nil {
		p.rb, p.rc, p.rf = side(b, rb, rc)
	}
	return p, err
}

// convolution are the dimensions of a convolution, each as batch, features, spatial ones; of the kernel as output
// features, input features, spatial ones.
type convolution struct{ in, kernel, out []int }

func (x *flat) convolution() (c convolution, err error) {
	if len(x.in) != 2 || len(x.out) != 1 {
		return c, errorAt(x.at, x.name, "has %d operands and %d results, expected 2 and 1", len(x.in), len(x.out))
	}
	v := x.attrs["dim_numbers"]
	parts := v.list
	if len(parts) > 0 && parts[0].word == "*" {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		for _, e := range x.attrs["dimension_numbers"].list {
			if e.word != "x" {
				parts = append(parts, e)
			}
		}
	}
	if len(parts) != 3 {
		return c, errorAt(x.at, x.name, "has no dimension numbers such as [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]")
	}
	read := func(part attr, v *val, first, second string) []int {
		n := len(part.list)
		p := make([]int, n)
		seen := make([]bool, n)
		for d, e := range part.list {
			k := -1
			switch {
			case e.word == first:
				k = 0
			case e.word == second:
				k = 1
			case len(e.ints) == 1 && e.ints[0] >= 0 && e.ints[0] < int64(n-2):
				k = 2 + int(e.ints[0])
			}
			if k < 0 || k >= n || seen[k] || n != len(v.dims) {
				err = errorAt(x.at, x.name, "dimension numbers do not fit %s", v.typ)
				return p
			}
			seen[k] = true
			p[k] = d
		}
		if n < 2 {
			err = errorAt(x.at, x.name, "dimension numbers have %d entries, expected at least 2", n)
		}
		return p
	}
	c.in = read(parts[0], x.in[0], "b", "f")
	c.kernel = read(parts[1], x.in[1], "o", "i")
	c.out = read(parts[2], x.out[0], "b", "f")
	if err == nil && (len(c.in) != len(c.kernel) || len(c.in) != len(c.out)) {
		err = errorAt(x.at, x.name, "dimension numbers have %d, %d and %d entries, expected equally many", len(c.in),
			len(c.kernel), len(c.out))
	}
	return c, err
}

// gathered are the dimension numbers of a gather.
type gathered struct {
	offset, collapsed, start []int64
	vector                   int64
}

func (x *flat) gatherDims() gathered {
	d := x.attrs["dimension_numbers"].dict
	g := gathered{offset: d["offset_dims"].ints, collapsed: d["collapsed_slice_dims"].ints,
		start: d["start_index_map"].ints}
	if v := d["index_vector_dim"].ints; len(v) == 1 {
		g.vector = v[0]
	}
	return g
}

// ofIndices is the dimension of the indices that one of the result is; -1: none.
func (g gathered) ofIndices(dim int) int {
	if slices.Contains(g.offset, int64(dim)) {
		return -1
	}
	k := 0
	for d := range dim {
		if !slices.Contains(g.offset, int64(d)) {
			k++
		}
	}
	if int64(k) >= g.vector {
		k++
	}
	return k
}
