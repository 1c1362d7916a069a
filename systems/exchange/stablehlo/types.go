package stablehlo

import (
	"slices"
	"strings"
)

// typed compares the types of elements of an operator's operands and results.
func (b *builder) typed(x *flat) {
	b.x = x
	if table[short(x.name)] == nil {
		return
	}
	are := func(elem string, list []*val) {
		for _, v := range list {
			if v.typ.elem != elem {
				b.fail("has %s of type %s, expected elements %s", v.name, v.typ, elem)
			}
		}
	}
	alike := func(of func(string) string, list ...*val) {
		for _, v := range list {
			if of(v.typ.elem) != of(list[0].typ.elem) {
				b.fail("has %s of type %s, expected elements %s as of %s", v.name, v.typ, of(list[0].typ.elem), list[0].name)
			}
		}
	}
	same := func(elem string) string { return elem }
	all := slices.Concat(x.in, x.out)
	switch name := short(x.name); name {
	case "convert", "bitcast_convert", "constant", "iota", "dynamic_iota", "custom_call":
	case "compare", "is_finite":
		alike(same, x.in...)
		are("i1", x.out)
	case "get_dimension_size":
		are("i32", x.out)
	case "select":
		are("i1", x.in[:1])
		alike(same, all[1:]...)
	case "gather", "torch_index_select", "dynamic_slice", "dynamic_broadcast_in_dim", "dynamic_reshape":
		alike(same, x.in[0], x.out[0]) // others are positions and extents
	case "dynamic_update_slice":
		alike(same, x.in[0], x.in[1], x.out[0])
	case "scatter":
		alike(class, x.in[0], x.in[2], x.out[0])
	case "dot", "dot_general", "convolution", "batch_norm_inference": // may be as wide as the sums
		alike(class, all...)
	case "chlo.top_k":
		are("i32", x.out[1:])
		alike(same, x.in[0], x.out[0])
	case "reduce", "reduce_window", "sort", "optimization_barrier":
		for i, y := range x.out[:min(len(x.in), len(x.out))] {
			of := same
			if strings.HasPrefix(name, "reduce") {
				of = class
			}
			alike(of, x.in[i], y)
		}
	default:
		alike(same, all...)
	}
}

// class are the types among which a result may be wider than what it is of.
func class(elem string) string {
	switch {
	case elem == "i1":
		return "i1"
	case strings.HasPrefix(elem, "f"), strings.HasPrefix(elem, "bf"):
		return "of floats"
	case strings.TrimLeft(elem, "usi0123456789") == "":
		return "of integers"
	}
	return elem
}
