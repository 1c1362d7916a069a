package stablehlo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
)

// val is a value of the flat module: of its functions all are put in place.
type val struct {
	name  string
	typ   tensorType
	dims  []int // the classes of its dimensions, of dimensions
	by    *flat // nil: an argument
	users []*flat
	arg   *argument

	// While the graph is built:
	shape    model.Shape
	id       model.TensorID
	made     bool
	constant bool
	num      *int64   // of a single integer that follows from constants
	lit      *literal // of the value as a whole
	base     *val     // it is this one, broadcast; its shape aligns at the right
	order    *order   // it is another tensor with its dimensions in another order
}

// flat is an operator with its values.
type flat struct {
	*op
	in, out []*val
	fused   bool // is part of the operator that reads it
}

// network is a module with one function, and without calls.
type source struct {
	args    []*val
	ops     []*flat
	results []*val
	dims    model.DimSets
}

// entry chooses the function that is the network: main, or the only one that no other calls.
func entry(funcs []*function) *function {
	byName := map[string]*function{}
	for _, f := range funcs {
		if byName[f.name] != nil {
			failAt(f.at, "", "function @%s is there twice", f.name)
		}
		byName[f.name] = f
	}
	if f := byName["main"]; f != nil {
		return f
	}
	called := map[string]bool{}
	for _, f := range funcs {
		for _, o := range f.ops {
			called[callee(o)] = true
		}
	}
	var names []string
	var last *function
	for _, f := range funcs {
		if !called[f.name] {
			names = append(names, "@"+f.name)
			last = f
		}
	}
	if len(names) != 1 {
		if len(names) > 10 {
			names = append(names[:10], "...")
		}
		bail.Check(fmt.Errorf("%d functions that no other calls (%s), expected one, or one called @main", len(names),
			strings.Join(names, ", ")))
	}
	return last
}

// callee is the function that an operator stands for; empty: none.
func callee(o *op) string {
	switch o.name {
	case "call", "func.call":
		if f, ok := o.attrs["callee"]; ok {
			return f.word
		}
	case "stablehlo.composite":
		return o.attrs["decomposition"].word
	default:
		return ""
	}
	if len(o.words) > 0 {
		return o.words[0].word
	}
	return ""
}

// flatten puts the functions that a module's network calls in their places.
func flatten(funcs []*function) *source {
	f, n := entry(funcs), &source{}
	fl := &flattener{n: n, funcs: map[string]*function{}}
	for _, f := range funcs {
		fl.funcs[f.name] = f
	}
	for i := range f.args {
		a := &f.args[i]
		if !a.typ.tensor {
			failAt(a.at, "", "argument %s has type %s, expected a tensor", a.name, a.typ)
		}
		n.args = append(n.args, fl.value(strings.TrimPrefix(a.name, "%"), a.typ, nil))
		n.args[i].arg = a
	}
	n.results = fl.inline(f, n.args, "")
	n.exchange()
	return n
}

// failAt ends build with an error.
func failAt(at position, op, format string, args ...any) {
	bail.Check(errorAt(at, op, format, args...))
}

// exchange puts x w in the place of (w x)^T, which JAX prints of a layer that is mapped over a batch: what is then on
// the right is read as weights are.
func (n *source) exchange() {
	gone := map[*flat]bool{}
	for _, x := range n.ops {
		if short(x.name) != "dot_general" || len(x.out) != 1 || len(x.out[0].users) != 1 {
			continue
		}
		t := x.out[0].users[0]
		p, err := x.product()
		if err != nil || len(x.out[0].typ.shape) != len(p.lf)+len(p.rf) || short(t.name) != "transpose" ||
			len(t.in) != 1 || len(t.out) != 1 || len(p.lb) > 0 ||
			slices.Contains(n.results, x.out[0]) || !weightLike(x.in[0]) || slices.Contains(p.rc, 0) {
			continue // also where the batch, in front, is added up over
		}
		var perm []int64
		for d := range len(p.lf) + len(p.rf) {
			perm = append(perm, int64((d+len(p.lf))%(len(p.lf)+len(p.rf))))
		}
		from, to := x.out[0].typ, t.out[0].typ
		if !slices.Equal(t.list("permutation", "dims"), perm) || len(x.op.in) != 2 || len(p.lf)*len(p.rf) == 0 ||
			from.elem != to.elem || !slices.Equal(slices.Concat(from.shape[len(p.lf):], from.shape[:len(p.lf)]), to.shape) {
			continue // or types that don't fit, which is said later
		}
		o := *x.op
		o.in, o.out = []tensorType{o.in[1], o.in[0]}, t.op.out
		o.attrs = maps.Clone(o.attrs)
		o.attrs["contracting_dims"] = attr{list: []attr{{}, {ints: ints(p.rc)}, {ints: ints(p.lc)}}}
		delete(o.attrs, "dot_dimension_numbers")
		x.op, x.in, x.out = &o, []*val{x.in[1], x.in[0]}, t.out
		x.out[0].by = x
		gone[t] = true
	}
	n.ops = slices.DeleteFunc(n.ops, func(x *flat) bool { return gone[x] })
}

// weightLike reports whether a value may be weights: an argument that no mark calls an input, or a constant.
func weightLike(v *val) bool {
	for v.by != nil {
		switch name := short(v.by.name); {
		case name == "constant":
			return true
		case slices.Contains([]string{"convert", "transpose", "reshape", "broadcast_in_dim"}, name) && len(v.by.in) == 1:
			v = v.by.in[0]
		default:
			return false
		}
	}
	return v.arg != nil && marked(v.arg) != isInput
}

func ints(list []int) (out []int64) {
	for _, x := range list {
		out = append(out, int64(x))
	}
	return out
}

type flattener struct {
	n     *source
	funcs map[string]*function
	stack []string
	calls int // so far, as each may be of no operator
}

func (fl *flattener) value(name string, t tensorType, by *flat) *val {
	v := &val{name: name, typ: t, by: by, id: -1}
	for range t.shape {
		v.dims = append(v.dims, fl.n.dims.Add())
	}
	return v
}

// inline adds the operators of a function that is called with args.
func (fl *flattener) inline(f *function, args []*val, prefix string) []*val {
	if slices.Contains(fl.stack, f.name) || len(fl.stack) > maxNesting {
		failAt(f.at, "", "function @%s calls itself", f.name)
	}
	if fl.calls++; fl.calls > maxOps {
		failAt(f.at, "", "more than %d calls", maxOps)
	}
	fl.stack = append(fl.stack, f.name)
	defer func() { fl.stack = fl.stack[:len(fl.stack)-1] }()
	if len(args) != len(f.args) {
		failAt(f.at, "", "function @%s is called with %d arguments, expected %d", f.name, len(args), len(f.args))
	}
	env := &scope{names: map[string]*val{}}
	for i, a := range f.args {
		fits(f, f.at, "takes", args[i], a.typ)
		env.names[operandName(a.name)] = args[i]
	}
	in, at := fl.body(f.ops, env, prefix)
	switch {
	case at == nil:
		failAt(f.at, "", "function @%s does not return", f.name)
	case f.out != nil && len(in) != len(f.out):
		failAt(*at, "", "function @%s returns %d values, expected %d", f.name, len(in), len(f.out))
	}
	for i, t := range f.out {
		fits(f, *at, "returns", in[i], t)
	}
	return in
}

// scope are the values that a body can read: its own, and those around a region.
type scope struct {
	names  map[string]*val
	around *scope
}

func (s *scope) find(name string) *val {
	for ; s != nil; s = s.around {
		if v := s.names[name]; v != nil {
			return v
		}
	}
	return nil
}

// body adds the operators of a function or region, and gives what it returns and where.
func (fl *flattener) body(ops []*op, env *scope, prefix string) ([]*val, *position) {
	for _, o := range ops {
		in := make([]*val, len(o.operands))
		for i, name := range o.operands {
			if in[i] = env.find(name); in[i] == nil {
				failAt(o.at, o.name, "reads %s, which is not defined before", strings.TrimSuffix(name, "#0"))
			}
		}
		if o.name == "return" || o.name == "func.return" || short(o.name) == "return" {
			return in, &o.at
		}
		name := callee(o)
		runs := short(o.name) == "while" || short(o.name) == "if" || short(o.name) == "case"
		if name != "" || runs {
			var out []*val
			g := fl.funcs[name]
			switch {
			case runs:
				name = o.name
				out = fl.control(o, in, env, prefix)
			case g == nil:
				failAt(o.at, o.name, "calls @%s, which the module does not hold", name)
			default:
				out = fl.inline(g, in, prefix+name+"/")
			}
			if len(out) != len(o.results) {
				failAt(o.at, o.name, "takes %d results of @%s, which has %d", len(o.results), name, len(out))
			}
			for i, r := range o.results {
				if i < len(o.out) {
					fits(&function{name: name}, o.at, "returns", out[i], o.out[i])
				}
				env.names[r] = out[i]
			}
			continue
		}
		if len(fl.n.ops) >= maxOps {
			failAt(o.at, o.name, "more than %d operators when functions are put in place", maxOps)
		}
		x := &flat{op: o, in: in}
		if len(o.results) > 0 && len(o.results) != len(o.out) {
			failAt(o.at, o.name, "has %d results and %d types", len(o.results), len(o.out))
		}
		for i, r := range o.results {
			name := prefix + strings.TrimSuffix(strings.TrimPrefix(r, "%"), "#0")
			v := fl.value(name, o.out[i], x)
			x.out = append(x.out, v)
			env.names[r] = v
		}
		for _, v := range in {
			if k := len(v.users); k == 0 || v.users[k-1] != x {
				v.users = append(v.users, x)
			}
		}
		fl.n.ops = append(fl.n.ops, x)
		fl.n.unite(x)
		x.count()
	}
	return nil, nil
}

// maxTurns bounds the turns of a loop, each of which has operators of its own.
const maxTurns = 1024

// control puts the branch that is taken in the place of an operator, or the turns of a loop one after the other. What
// decides must follow from constants.
func (fl *flattener) control(o *op, in []*val, env *scope, prefix string) []*val {
	run := func(r *region, args []*val, prefix string) []*val {
		if fl.calls++; fl.calls > maxOps {
			failAt(o.at, o.name, "more than %d turns and branches", maxOps)
		}
		s := &scope{names: map[string]*val{}, around: env}
		if len(args) != len(r.args) {
			failAt(o.at, o.name, "has a region of %d arguments for %d values", len(r.args), len(args))
		}
		for i, a := range r.args {
			fits(&function{name: o.name}, o.at, "takes", args[i], a.typ)
			s.names[operandName(a.name)] = args[i]
		}
		out, at := fl.body(r.ops, s, prefix)
		if at == nil {
			failAt(o.at, o.name, "has a region that does not return")
		}
		return out
	}
	if short(o.name) != "while" {
		switch {
		case len(in) != 1 || len(o.regions) == 0 || short(o.name) == "if" && len(o.regions) != 2:
			failAt(o.at, o.name, "has %d operands and %d branches", len(in), len(o.regions))
		case in[0].num == nil:
			failAt(o.at, o.name, "branches that are chosen at run time are not read")
		}
		k := *in[0].num
		if short(o.name) == "if" {
			k = 1 - min(1, max(k, -k)) // the first if it is true
		}
		if k < 0 || k >= int64(len(o.regions)) {
			k = int64(len(o.regions)) - 1 // the default
		}
		return run(o.regions[k], nil, prefix)
	}
	if len(o.regions) != 2 {
		failAt(o.at, o.name, "has %d regions, expected a condition and a body", len(o.regions))
	}
	for turn := 0; ; turn++ {
		at := fmt.Sprintf("%sturn%d/", prefix, turn)
		switch goes := run(o.regions[0], in, at); {
		case len(goes) != 1 || goes[0].num == nil:
			failAt(o.at, o.name, "loops whose number of turns is known at run time only are not read")
		case *goes[0].num == 0:
			return in
		case turn == maxTurns:
			failAt(o.at, o.name, "loops of more than %d turns are not read", maxTurns)
		}
		in = run(o.regions[1], in, at)
	}
}

// count computes an operator on single integers that follow from constants, such as a loop's counter. Its result is a
// constant then.
func (x *flat) count() {
	if len(x.out) != 1 || len(x.out[0].typ.shape) > 0 || class(x.out[0].typ.elem) == "of floats" {
		return
	}
	y := x.out[0]
	if short(x.name) == "constant" {
		lit := x.attrs["value"].lit
		for _, w := range x.words {
			if w.lit != nil {
				lit = w.lit
			}
		}
		if lit != nil && len(lit.ints) == 1 {
			y.num = &lit.ints[0]
		}
		return
	}
	var n []int64
	for _, v := range x.in {
		if v.num == nil {
			return
		}
		n = append(n, *v.num)
	}
	truth := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	var r int64
	switch name := short(x.name); {
	case len(n) == 1 && name == "convert" && y.typ.elem == "i1":
		r = truth(n[0] != 0)
	case len(n) == 1 && name == "convert":
		r = n[0]
	case len(n) == 3 && name == "select":
		if r = n[2]; n[0] != 0 {
			r = n[1]
		}
	case len(n) != 2:
		return
	case name == "compare":
		c := cmp.Compare(n[0], n[1])
		holds, ok := map[string]bool{"EQ": c == 0, "NE": c != 0, "LT": c < 0, "LE": c <= 0, "GT": c > 0,
			"GE": c >= 0}[x.direction()]
		if !ok {
			return
		}
		r = truth(holds)
	case name == "add":
		r = n[0] + n[1]
	case name == "subtract":
		r = n[0] - n[1]
	case name == "multiply":
		r = n[0] * n[1]
	case name == "minimum":
		r = min(n[0], n[1])
	case name == "maximum":
		r = max(n[0], n[1])
	case name == "and":
		r = n[0] & n[1]
	case name == "or":
		r = n[0] | n[1]
	default:
		return
	}
	y.num, y.constant, x.fused = &r, true, true
	y.lit = &literal{splat: true, f: float64(r), ints: []int64{r}}
}

// fits compares the type of a value that a function takes or returns with the one that is declared.
func fits(f *function, at position, does string, v *val, t tensorType) {
	if !v.typ.tensor || !t.tensor {
		return
	}
	ok := v.typ.elem == t.elem && len(v.typ.shape) == len(t.shape)
	for d := 0; ok && d < len(t.shape); d++ {
		ok = v.typ.shape[d] == t.shape[d] || v.typ.shape[d] == dynamic || t.shape[d] == dynamic
	}
	if !ok {
		failAt(at, "", "function @%s %s %s of type %s, expected %s", f.name, does, v.name, v.typ, t)
	}
}

// alike unites dimensions that have equal extents in both values.
func (n *source) alike(a, b *val, of func(d int) int) {
	for d, e := range b.typ.shape {
		if k := of(d); k >= 0 && k < len(a.dims) && a.typ.shape[k] == e {
			n.dims.Join(a.dims[k], b.dims[d])
		}
	}
}

func same(d int) int { return d }

// unite finds which dimensions of an operator's results follow those of its operands.
func (n *source) unite(x *flat) {
	if len(x.out) == 0 || len(x.in) == 0 {
		return
	}
	y, a := x.out[0], x.in[0]
	if r := table[short(x.name)]; r != nil && r.in >= 0 && len(x.in) != r.in {
		failAt(x.at, x.name, "has %d operands, expected %d", len(x.in), r.in)
	}
	switch name := short(x.name); name {
	case "broadcast_in_dim", "dynamic_broadcast_in_dim":
		dims := x.list("broadcast_dimensions", "dims")
		n.alike(a, y, func(d int) int { return slices.Index(dims, int64(d)) })
	case "transpose":
		perm := x.list("permutation", "dims")
		n.alike(a, y, func(d int) int {
			if d < len(perm) {
				return int(min(perm[d], 1<<20))
			}
			return -1
		})
	case "reshape", "dynamic_reshape": // follow when the batch is known
	case "dot_general", "dot":
		p := bail.Of(x.product())
		b := x.in[1]
		for i, d := range p.lb {
			n.dims.Join(a.dims[d], b.dims[p.rb[i]])
		}
		for i, d := range p.lc {
			n.dims.Join(a.dims[d], b.dims[p.rc[i]])
		}
		k := 0
		for _, side := range []struct {
			v    *val
			dims []int
		}{{a, p.lb}, {a, p.lf}, {b, p.rf}} {
			for _, d := range side.dims {
				if k < len(y.dims) {
					n.dims.Join(side.v.dims[d], y.dims[k])
				}
				k++
			}
		}
	case "convolution":
		c := bail.Of(x.convolution())
		n.dims.Join(a.dims[c.in[0]], y.dims[c.out[0]])
		n.dims.Join(x.in[1].dims[c.kernel[0]], y.dims[c.out[1]])
	case "reduce":
		axes := x.list("dimensions")
		var kept []int
		for d := range a.dims {
			if !slices.Contains(axes, int64(d)) {
				kept = append(kept, d)
			}
		}
		for _, y := range x.out {
			n.alike(a, y, func(d int) int {
				if d < len(kept) {
					return kept[d]
				}
				return -1
			})
		}
	case "gather":
		g := x.gatherDims()
		n.alike(x.in[1], y, g.ofIndices)
	default:
		if len(x.regions) > 0 && name != "reduce_window" && name != "sort" && name != "scatter" {
			return
		}
		for _, v := range x.in { // element-wise, or along some dimensions that change
			for _, y := range x.out {
				if len(v.dims) == len(y.dims) {
					n.alike(v, y, same)
				}
			}
		}
	}
}

// list returns the integers of an attribute, under any of its names.
func (x *op) list(names ...string) []int64 {
	for _, n := range names {
		if a, ok := x.attrs[n]; ok {
			return a.ints
		}
	}
	return nil
}
