package stablehlo

import (
	"slices"
	"strings"
)

// typed compares the types of elements of an operator's operands and results.
func (b *builder) typed(x *flat) error {
	b.x = x
	if table[short(x.name)] == nil {
		return nil
	}
	is := func(v *val, elem string) error {
		if v.typ.elem != elem {
			return b.errorf("has %s of type %s, expected elements %s", v.name, v.typ, elem)
		}
		return nil
	}
	alike := func(of func(string) string, list ...*val) error {
		for _, v := range list {
			if of(v.typ.elem) != of(list[0].typ.elem) {
				return b.errorf("has %s of type %s, expected elements %s as of %s", v.name, v.typ,
					of(list[0].typ.elem), list[0].name)
			}
		}
		return nil
	}
	same := func(elem string) string { return elem }
	all := slices.Concat(x.in, x.out)
	switch name := short(x.name); name {
	case "convert", "bitcast_convert", "constant", "iota", "dynamic_iota", "custom_call":
		return nil
	case "compare", "is_finite":
		if err := alike(same, x.in...); err != nil {
			return err
		}
		return each(x.out, "i1", is)
	case "get_dimension_size":
		return each(x.out, "i32", is)
	case "select":
		if err := each(x.in[:1], "i1", is); err != nil {
			return err
		}
		return alike(same, all[1:]...)
	case "gather", "torch_index_select", "dynamic_slice", "dynamic_broadcast_in_dim", "dynamic_reshape":
		return alike(same, x.in[0], x.out[0]) // others are positions and extents
	case "dynamic_update_slice":
		return alike(same, x.in[0], x.in[1], x.out[0])
	case "scatter":
		return alike(class, x.in[0], x.in[2], x.out[0])
	case "dot", "dot_general", "convolution", "batch_norm_inference": // may be as wide as the sums
		return alike(class, all...)
	case "chlo.top_k":
		if err := each(x.out[1:], "i32", is); err != nil {
			return err
		}
		return alike(same, x.in[0], x.out[0])
	case "reduce", "reduce_window", "sort", "optimization_barrier":
		for i, y := range x.out[:min(len(x.in), len(x.out))] {
			of := same
			if strings.HasPrefix(name, "reduce") {
				of = class
			}
			if err := alike(of, x.in[i], y); err != nil {
				return err
			}
		}
		return nil
	}
	return alike(same, all...)
}

func each(list []*val, elem string, is func(*val, string) error) error {
	for _, v := range list {
		if err := is(v, elem); err != nil {
			return err
		}
	}
	return nil
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
