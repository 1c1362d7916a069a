package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// plan holds the facts of a file that do not depend on the size of its dimensions.
type plan struct {
	m            *modelProto
	order        []*nodeProto // those that outputs depend on
	initializers map[string]*tensorProto
	inputs       []*valueInfo // without initializers, which old files list too
	used         map[string]bool
	declared     map[string]*valueInfo
	missing      bool            // some node has no row
	stepped      map[string]bool // values of which the first dimension counts the steps of a recurrence
}

func prepare(m *modelProto) (*plan, error) {
	if err := m.expand(); err != nil {
		return nil, err
	}
	g := m.graph
	p := &plan{m: m, initializers: map[string]*tensorProto{}, used: map[string]bool{}, declared: map[string]*valueInfo{},
		stepped: map[string]bool{}}
	for _, t := range g.initializers {
		if t.name == "" {
			continue // nothing can refer to it
		}
		if p.initializers[t.name] != nil {
			return nil, fmt.Errorf("two initializers are called %q", t.name)
		}
		p.initializers[t.name] = t
	}
	writer := make(map[string]int, len(g.nodes)+len(p.initializers))
	for name := range p.initializers {
		writer[name] = given
	}
	for _, v := range g.inputs {
		if p.initializers[v.name] != nil {
			continue
		}
		if _, dup := writer[v.name]; dup {
			return nil, fmt.Errorf("two inputs are called %q", v.name)
		}
		writer[v.name] = given
		p.inputs = append(p.inputs, v)
	}
	for _, list := range [][]*valueInfo{g.valueInfo, g.outputs} {
		for _, v := range list {
			p.declared[v.name] = v
		}
	}
	if err := findWriters(g, writer); err != nil {
		return nil, err
	}
	if len(g.outputs) == 0 {
		return nil, errors.New("the graph has no output")
	}
	var need []string
	for _, v := range g.outputs {
		if _, ok := writer[v.name]; !ok {
			return nil, fmt.Errorf("output %q is written by no node", v.name)
		}
		need = append(need, v.name)
	}
	var err error
	if p.order, err = p.live(g, writer, need); err != nil {
		return nil, err
	}
	for _, n := range p.order {
		p.missing = p.missing || n.row == nil
	}
	return p, nil
}

// given marks what no node of the graph writes: inputs and initializers.
const given = -1

// findWriters names nameless nodes and adds to writer which node writes a value.
func findWriters(g *graphProto, writer map[string]int) error {
	for _, n := range g.nodes {
		if n.name == "" {
			if n.name = fmt.Sprintf("%s_%d", n.op, n.index); len(n.outputs) > 0 && n.outputs[0] != "" {
				n.name = n.outputs[0]
			}
		}
		for _, o := range n.outputs {
			if o == "" {
				continue
			}
			if w, dup := writer[o]; dup {
				if w == given {
					return fmt.Errorf("node %q (%s) writes %q, which is an input or initializer", n.name, n.op, o)
				}
				return fmt.Errorf("both node %q (%s) and node %q (%s) write %q", g.nodes[w].name, g.nodes[w].op, n.name, n.op, o)
			}
			writer[o] = n.index
		}
	}
	return nil
}

// live sorts the nodes that the needed values depend on topologically, finds their
// rows and marks what they read as used.
func (p *plan) live(g *graphProto, writer map[string]int, need []string) ([]*nodeProto, error) {
	alive := make([]bool, len(g.nodes))
	var stack []*nodeProto
	want := func(name string) {
		p.used[name] = true
		if w := writer[name]; w != given && !alive[w] {
			alive[w] = true
			stack = append(stack, g.nodes[w])
		}
	}
	for _, name := range need {
		want(name)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n.row, n.captured = lookup(n), nil
		for _, in := range n.inputs {
			if in == "" {
				continue
			}
			if _, ok := writer[in]; !ok {
				return nil, fmt.Errorf("node %q (%s) reads %q, which no node writes and which is neither input nor initializer",
					n.name, n.op, in)
			}
			want(in)
		}
		for _, a := range n.attrs {
			if a.g != nil {
				n.captured = a.g.reads(n.captured)
			}
		}
		// What is missing here is written within the graphs.
		n.captured = slices.DeleteFunc(n.captured, func(s string) bool { _, ok := writer[s]; return !ok })
		for _, name := range n.captured {
			want(name)
		}
	}
	return sortNodes(g, alive, writer)
}

// reads appends the names that the nodes of a graph, and of graphs within, read from
// around it. A name that is written within hides one around it.
func (g *graphProto) reads(list []string) []string {
	written := map[string]bool{}
	for _, t := range g.initializers {
		written[t.name] = true
	}
	for _, n := range g.nodes {
		for _, o := range n.outputs {
			written[o] = true
		}
	}
	start := len(list)
	for _, n := range g.nodes {
		for _, in := range n.inputs {
			if in != "" {
				list = append(list, in)
			}
		}
		for _, a := range n.attrs {
			if a.g != nil {
				list = a.g.reads(list)
			}
		}
	}
	for _, v := range g.outputs {
		list = append(list, v.name)
	}
	return slices.Concat(list[:start], slices.DeleteFunc(list[start:], func(s string) bool { return written[s] }))
}

// unsupported lists nodes that cannot be imported.
func unsupported(list []UnsupportedNode) error {
	if len(list) == 0 {
		return nil
	}
	n := min(len(list), maxListed)
	e := &UnsupportedError{Nodes: list[:n], More: len(list) - n, Countable: true}
	at := map[UnsupportedNode]int{} // of a kind, which has no name
	for _, node := range list {
		kind := node
		kind.Name = ""
		k, known := at[kind]
		if !known {
			k = len(e.kinds)
			at[kind] = k
			e.kinds = append(e.kinds, unsupportedKind{first: node})
		}
		e.kinds[k].count++
		e.Countable = e.Countable && node.countable
	}
	return e
}

// opset is the version of a domain's operators that the node was written for.
func (n *nodeProto) opset() int64 {
	if v, ok := n.opsets[n.domain]; ok {
		return v
	}
	return 1 // of files older than the field
}

// lookup finds the row of a node's operator.
func lookup(n *nodeProto) *row {
	v := n.opset()
	for _, r := range table[operator{n.domain, n.op}] {
		if r.since <= v && (r.until == 0 || v <= r.until) {
			return r
		}
	}
	// Some exporters write the ONNX Runtime's operators into the default domain, where no other has these names.
	if n.domain == "" && len(table[operator{n.domain, n.op}]) == 0 && refused[operator{n.domain, n.op}] == "" {
		if rows := table[ms(n.op)]; len(rows) > 0 {
			return rows[0]
		}
	}
	return nil
}

// countable reports whether an operator that is not read can be taken as work of one operation per output element.
func (n *nodeProto) countable() bool {
	return (n.row == nil || n.row.build == nil) && refused[operator{n.domain, n.op}] == ""
}

// whyUnknown says why a node has no row; empty if nothing is known of it.
func whyUnknown(n *nodeProto) string {
	if rows := table[operator{n.domain, n.op}]; len(rows) > 0 {
		var known []string
		for _, r := range rows {
			known = append(known, r.versions())
		}
		return fmt.Sprintf("operator set %d; known are %s", n.opset(), strings.Join(known, ", "))
	}
	why := refused[operator{n.domain, n.op}]
	if n.domain == "" && n.op == "GridSample" {
		why = "where it reads depends on the values of its grid"
	}
	if n.op == "Gradient" && why != "" {
		for _, a := range n.attrs {
			if a.name == "y" {
				why += fmt.Sprintf(": that of %q by %q", a.s, n.inputs)
			}
		}
	}
	return why
}

// sortNodes puts the nodes that are alive into topological order and keeps the file's order where it is one already.
func sortNodes(g *graphProto, alive []bool, writer map[string]int) (order []*nodeProto, err error) {
	needs := func(i int) (list []int) {
		if !alive[i] {
			return nil
		}
		for _, in := range slices.Concat(g.nodes[i].inputs, g.nodes[i].captured) {
			if w := writer[in]; in != "" && w != given {
				list = append(list, w)
			}
		}
		return list
	}
	places, err := model.Topological(len(g.nodes), needs, func(i int) string { return g.nodes[i].name })
	for _, i := range places {
		if alive[i] {
			order = append(order, g.nodes[i])
		}
	}
	if cycle := new(model.CycleError); errors.As(err, &cycle) && len(cycle.Ops) > maxListed {
		cycle.Ops = append(cycle.Ops[:maxListed], fmt.Sprintf("(%d more)", len(cycle.Ops)-maxListed))
	}
	return order, err
}

// label is the name by which Options.Dims binds dimension i of an input.
func label(v *valueInfo, i int) string {
	if v.dims[i].name != "" {
		return v.dims[i].name
	}
	return fmt.Sprintf("%s.%d", v.name, i)
}

// sizes are the shapes of the network's inputs.
type sizes struct {
	shapes []model.Shape
	batch  int64      // 0: unknown
	lead   *valueInfo // the input that defines the batch; nil: none does
}

// bind gives every input dimension a number: the file's own sizes, and the wanted ones, which differ in the batch only.
// A symbolic batch, and one of 0, stands for 1 in the file's own sizes. Of inputs with a number in the place of the
// batch, those follow that follows lists; nil: all with the number of the first.
func (p *plan) bind(opt Options, follows []*valueInfo) (file, want sizes, err error) {
	if opt.Batch < 0 {
		return file, want, fmt.Errorf("batch %d, expected a positive number", opt.Batch)
	}
	var lead *valueInfo
	for _, v := range p.inputs {
		switch {
		case !v.tensor:
			return file, want, fmt.Errorf("input %q is not a tensor", v.name)
		case !v.ranked:
			return file, want, fmt.Errorf("input %q has no shape", v.name)
		}
		if len(v.dims) > 0 && (lead == nil || lead.leads(0) && !v.leads(0)) {
			lead = v
		}
	}
	if opt.Batch > 1 && lead == nil {
		return file, want, fmt.Errorf("batch %d: the network has no input with a leading dimension", opt.Batch)
	}
	if len(follows) > 0 {
		lead = follows[0]
	}
	isBatch := func(v *valueInfo, i int) bool {
		if lead == nil {
			return false
		}
		d, l := v.dims[i], lead.dims[0]
		if l.fixed {
			return i == 0 && d.fixed && d.value == l.value && (follows == nil || slices.Contains(follows, v))
		}
		return !d.fixed && d.name == l.name && (i == 0 || d.name != "")
	}
	file.lead, want.lead = lead, lead
	if err := p.checkDims(opt, lead); err != nil {
		return file, want, err
	}
	var unbound []string
	missing := map[string]bool{}
	for _, v := range p.inputs {
		a, b := make(model.Shape, len(v.dims)), make(model.Shape, len(v.dims))
		for i, d := range v.dims {
			n, known := d.value, d.fixed
			if !known {
				n, known = sized(label(v, i), opt.Dims)
			}
			a[i], b[i] = n, n
			if isBatch(v, i) && opt.Batch > 0 {
				if !d.fixed || d.value == 0 {
					a[i], known = 1, true
				}
				b[i] = opt.Batch
			}
			if isBatch(v, i) {
				if known && b[i] == 0 {
					return file, want, fmt.Errorf("input %q: the batch is 0, expected a positive number (give one by --batch)",
						v.name)
				}
				file.batch, want.batch = a[i], b[i]
			}
			if !known {
				if l := label(v, i); !missing[l] {
					missing[l] = true
					what := map[bool]string{true: " (the batch, --batch N)"}[isBatch(v, i)]
					unbound = append(unbound, fmt.Sprintf("%q%s", l, what))
				}
				a[i], b[i] = 1, 1
			}
		}
		for _, s := range []model.Shape{a, b} {
			if _, err := elements(s); err != nil {
				return file, want, fmt.Errorf("input %q: %w", v.name, err)
			}
		}
		file.shapes = append(file.shapes, a)
		want.shapes = append(want.shapes, b)
	}
	if len(unbound) > 0 {
		return file, want, fmt.Errorf("the sizes of these dimensions must be given by --dim NAME=SIZE: %s",
			shortList(unbound, ", "))
	}
	return file, want, nil
}

// overSteps reports whether what would be the batch is the dimension of a recurrence's steps, at the file's sizes or,
// if these are not known, for one step.
func (p *plan) overSteps(title string, opt Options) bool {
	if !slices.ContainsFunc(p.order, func(n *nodeProto) bool { return n.op == "LSTM" || n.op == "GRU" || n.op == "RNN" }) {
		return false
	}
	opt.Batch, opt.Warn = 0, nil
	file, _, err := p.bind(opt, nil)
	if err != nil {
		opt.Batch = 1
		if file, _, err = p.bind(opt, nil); err != nil {
			return false
		}
	}
	g, _, err := p.run(title, opt, file, nil, file.batch)
	if err != nil {
		return false
	}
	_, stepped := p.followers(g, file.lead)
	return stepped
}

// followers lists the inputs that grow with the batch, the one that defines it first, of a file in which the batch is
// a number: those whose leading dimension is that of an output, through all operators of the graph at the file's own
// batch. nil: no input's is. stepped reports whether the leading dimension of an input is that of a recurrence's steps.
func (p *plan) followers(g *model.Graph, lead *valueInfo) (list []*valueInfo, stepped bool) {
	var sets model.DimSets
	first := make([]int, len(g.Tensors)) // of a tensor's dimensions
	given := map[int]bool{}              // sets with a dimension of extent 1 of an input
	inputs := map[string]*model.Tensor{}
	for i, t := range g.Tensors {
		first[i] = len(sets)
		for _, n := range t.Shape {
			given[sets.Add()] = t.Role == model.Input && n == 1
		}
		if t.Role == model.Input {
			inputs[t.Name] = t
		}
	}
	one := slices.ContainsFunc(p.inputs, func(v *valueInfo) bool { return v.leads(1) })
	for _, op := range g.Ops {
		for in, id := range op.Inputs {
			for k, o := range op.Outputs {
				x, y := g.Tensors[id].Shape, g.Tensors[o].Shape
				join := func(d, e int) {
					if a, b := sets.Find(first[id]+d), sets.Find(first[o]+e); a != b {
						sets.Join(a, b)
						given[b] = given[a] || given[b]
					}
				}
				if op.Kind == "Reshape" {
					model.ReshapePairs(x, y, one, join)
					continue
				}
				acc := g.Access(op, k, in)
				// An input that is broadcast along one of its own dimensions is so along all of extent 1: a mask.
				spread := op.Class() == model.ElementwiseClass && slices.ContainsFunc(model.Dims(0, len(x)), func(d int64) bool {
					return acc[d].Full && given[sets.Find(first[id]+int(d))]
				})
				for d, a := range acc {
					if !a.Full && x[d] == y[a.Out] && !(spread && x[d] == 1) {
						join(d, a.Out)
					}
				}
			}
		}
	}
	for _, t := range g.Tensors {
		stepped = stepped || p.stepped[t.Name] && lead != nil && inputs[lead.name] != nil &&
			sets.Find(first[t.ID]) == sets.Find(first[inputs[lead.name].ID])
	}
	reached := map[int]bool{}
	for _, o := range g.Outputs {
		if len(g.Tensors[o].Shape) > 0 {
			reached[sets.Find(first[o])] = true
		}
	}
	var unread []*valueInfo // but for their sizes
	for _, v := range p.inputs {
		t := inputs[v.name]
		switch {
		case len(v.dims) == 0 || !v.dims[0].fixed || len(list) > 0 && v.dims[0].value != list[0].dims[0].value:
		case t == nil || len(t.Consumers) == 0:
			unread = append(unread, v)
		case reached[sets.Find(first[t.ID])]:
			list = append(list, v)
		}
	}
	if list != nil {
		list = append(list, unread...)
	}
	return list, stepped
}

// leads reports whether the leading dimension is that number.
func (v *valueInfo) leads(n int64) bool {
	return len(v.dims) > 0 && v.dims[0].fixed && v.dims[0].value == n
}

// checkDims reports names in opt.Dims that the file does not have: likely a slip.
func (p *plan) checkDims(opt Options, lead *valueInfo) error {
	known := map[string]bool{}
	var names []string
	for _, list := range [][]*valueInfo{p.inputs, p.m.graph.outputs, p.m.graph.valueInfo} {
		for _, v := range list {
			for i, d := range v.dims {
				if l := label(v, i); !d.fixed && !known[l] {
					known[l] = true
					names = append(names, l)
				}
			}
		}
	}
	for _, l := range names { // what sums are of
		for _, word := range strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune("+-*() ", r) }) {
			known[word] = true
		}
	}
	var given []string
	for n := range opt.Dims {
		given = append(given, n)
	}
	slices.Sort(given)
	for _, n := range given {
		if !known[n] {
			return fmt.Errorf("no dimension is called %q; symbolic dimensions: %s", n, cmp.Or(shortList(names, ", "), "none"))
		}
		if opt.Dims[n] < 0 {
			return fmt.Errorf("dimension %q is %d, expected a number of at least 0", n, opt.Dims[n])
		}
		if opt.Batch > 0 && lead != nil && !lead.dims[0].fixed && label(lead, 0) == n && opt.Dims[n] != opt.Batch {
			return fmt.Errorf("dimension %[1]q is the batch: give --batch %[2]d in place of --dim %[1]s=%[2]d", n, opt.Dims[n])
		}
	}
	return nil
}

// unknown lists the nodes outside the table.
func (p *plan) unknown() error {
	var bad []UnsupportedNode
	for _, n := range p.order {
		if n.row == nil {
			bad = append(bad, UnsupportedNode{n.name, n.op, shownDomain(n.domain), whyUnknown(n), n.countable()})
		}
	}
	return unsupported(bad)
}

// sized is the size of a dimension: the one given, or that of a sum, difference or product of
// named ones, as exporters write "past_sequence_length + sequence_length".
func sized(name string, dims map[string]int64) (int64, bool) {
	if n, known := dims[name]; known || len(name) > 200 || strings.Contains(name, "/") {
		return n, known // in Go, what follows // is a comment
	}
	const most = 1 << 31
	var size func(x ast.Expr) (int64, bool)
	size = func(x ast.Expr) (int64, bool) {
		switch x := x.(type) {
		case *ast.Ident:
			n, known := dims[x.Name]
			return n, known && n <= most
		case *ast.BasicLit:
			n, err := strconv.ParseInt(x.Value, 10, 32)
			return n, err == nil
		case *ast.ParenExpr:
			return size(x.X)
		case *ast.BinaryExpr:
			a, known := size(x.X)
			b, too := size(x.Y)
			n := a + b
			switch x.Op {
			case token.ADD:
			case token.SUB:
				n = a - b
			case token.MUL:
				n = a * b
			default:
				known = false
			}
			return n, known && too && max(n, -n) <= most
		}
		return 0, false
	}
	x, err := parser.ParseExpr(name)
	if err != nil {
		return 0, false
	}
	n, known := size(x)
	return n, known && n >= 0
}
