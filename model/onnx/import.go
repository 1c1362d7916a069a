package onnx

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
)

// Options adjust an import. The zero value takes the file as it is.
type Options struct {
	// Batch, if positive, is the batch size to import at. The leading dimension of the first
	// network input with one is the batch. A name: all inputs that use it follow. A number: the
	// batch is the leading dimension of the first input that is an output's too, if there is one,
	// and inputs with that number follow where theirs is as well. 0 keeps the file's.
	Batch int64
	// Dims binds symbolic dimensions by name. A dimension without a name is called
	// after its input and position, such as "x.2".
	Dims map[string]int64
	// Float, if not nil, is the type that all floating-point tensors become: one of
	// the floating-point types, or I8 for a network as it would be after quantisation.
	Float *model.DType
	// AllowUnknown imports operators outside the table as work of one operation per
	// output element (kind Unknown), each with a warning.
	AllowUnknown bool
	// Warn, if not nil, is called with what was not taken literally.
	Warn func(string)

	dir string // the model's, for the values of small tensors beside it; "": none
}

// Import reads the network in a file.
func Import(path string, opt Options) (*model.Graph, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opt.dir = filepath.Dir(path)
	return ImportReader(path, f, opt)
}

// ImportReader reads a network from r, which is called name in errors and becomes the graph's name without folder and
// extension. If r is an io.Seeker, weights are jumped over instead of read.
func ImportReader(name string, r io.Reader, opt Options) (*model.Graph, error) {
	m, err := read(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	g, _, err := build(name, m, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}

func read(r io.Reader) (*modelProto, error) {
	d, err := newDecoder(r)
	if err != nil {
		return nil, err
	}
	if magic, _ := d.br.Peek(4); string(magic) == "ML\xefR" {
		return nil, errors.New("not an ONNX file but MLIR bytecode: print it as text (stablehlo-translate --deserialize)")
	}
	m, err := decodeModel(d)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a valid ONNX file: at byte %d: %w", d.pos, err)
	case d.pos == 0:
		return nil, errors.New("not a valid ONNX file: it is empty")
	case m.graph == nil:
		return nil, errors.New("not a valid ONNX file: it holds no graph")
	case len(m.opsets) == 0 && m.irVersion >= 3:
		return nil, errors.New("not a valid ONNX file: it does not say which operator set it uses")
	}
	return m, nil
}

// UnsupportedError names the nodes that have no row in the table of operators.
type UnsupportedError struct {
	// Countable: with Options.AllowUnknown all of them are read, as work of one operation per output element.
	Countable bool
	Nodes     []UnsupportedNode // the first few, in the order of the file
	More      int               // how many there are besides
	// kinds counts all nodes that have operator, domain and reason in common, in the order of their first ones.
	kinds []unsupportedKind
}

// UnsupportedNode is a node that can't be imported.
type UnsupportedNode struct {
	Name, Type string
	Domain     string // "ai.onnx" for the default
	Reason     string // may be empty
	countable  bool
}

// An unsupportedKind is nodes that differ in their names alone.
type unsupportedKind struct {
	first UnsupportedNode
	count int
}

func (e *UnsupportedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d unsupported operator", len(e.Nodes)+e.More)
	if len(e.Nodes)+e.More > 1 {
		b.WriteByte('s')
	}
	for i, k := range e.kinds {
		if i == maxListed {
			fmt.Fprintf(&b, "; and %d more kinds", len(e.kinds)-i)
			break
		}
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep)
		if k.count == 1 {
			fmt.Fprintf(&b, "node %q is %s of domain %s", k.first.Name, k.first.Type, k.first.Domain)
		} else {
			fmt.Fprintf(&b, "%d x %s of domain %s, such as node %q", k.count, k.first.Type, k.first.Domain, k.first.Name)
		}
		if k.first.Reason != "" {
			fmt.Fprintf(&b, " (%s)", k.first.Reason)
		}
	}
	return b.String()
}

// maxListed bounds the lists in errors.
const maxListed = 20

func shortList(s []string, sep string) string {
	if n := len(s); n > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(s[:maxListed], sep), n-maxListed)
	}
	return strings.Join(s, sep)
}

// build makes the graph. The values that it returns are for tests.
func build(name string, m *modelProto, opt Options) (*model.Graph, map[string]*value, error) {
	to := opt.Float
	if to != nil && !to.IsFloat() {
		if *to != model.I8 {
			return nil, nil, fmt.Errorf("floats cannot become %v", *to)
		}
		f := model.F16
		opt.Float = &f
	}
	p, err := prepare(m)
	if err != nil {
		return nil, nil, err
	}
	base := filepath.Base(name)
	title := strings.TrimSuffix(base, filepath.Ext(base))
	if opt.Batch > 0 && p.overSteps(title, opt) {
		if opt.Batch > 1 {
			return nil, nil, errors.New("the leading dimension counts the steps of a recurrence: expected batch 1")
		}
		opt.Batch = 0
	}
	file, want, err := p.bind(opt, nil)
	if err != nil {
		if p.missing && !opt.AllowUnknown {
			return nil, nil, p.unknown() // more than a flag can mend
		}
		return nil, nil, err
	}
	var own map[string]*value
	alike := want // all inputs that have the batch's number
	numbered := opt.Batch > 0 && file.lead != nil && file.lead.dims[0].fixed && file.batch == file.lead.dims[0].value
	other := func(v *valueInfo) bool { return len(v.dims) > 0 && !v.leads(opt.Batch) }
	if file.batch != want.batch || numbered && slices.ContainsFunc(p.inputs, other) {
		// What the file was written for: a hard-coded size can only be understood beside the sizes it was meant for.
		quiet := opt
		quiet.Warn = nil
		g, values, err := p.run(title, quiet, file, nil, file.batch)
		if err != nil {
			return nil, nil, err
		}
		if list, _ := p.followers(g, file.lead); numbered && list != nil {
			if file, want, err = p.bind(opt, list); err != nil {
				return nil, nil, err
			}
		}
		if file.batch != want.batch {
			own = values
		}
	}
	g, values, err := p.run(title, opt, want, own, file.batch)
	if err != nil && own != nil {
		var failed error
		if g, values, failed = p.run(title, opt, alike, own, file.batch); failed != nil {
			err = fmt.Errorf("at batch %d in place of the file's %d: %w", want.batch, file.batch, err)
		} else {
			err = nil
		}
	}
	if err == nil && opt.Warn != nil {
		p.compareOutputs(own, values, file, opt.Warn)
	}
	if err == nil && own != nil && file.batch > 1 && opt.Warn != nil {
		// Of a network without a batch it is something else, such as the tokens.
		opt.Warn(fmt.Sprintf("the first dimension of input %q, %d in the file, is taken as the batch",
			file.lead.name, file.batch))
	}
	if err == nil && to != nil && !to.IsFloat() {
		g.Retype(model.F16, *to)
	}
	return g, values, err
}

// value is a tensor of the file as far as it is known.
type value struct {
	name     string
	shape    model.Shape
	dtype    model.DType
	constant bool
	lit      *literal // the values, if known
	// lost: the node that yields it is not supported. That is reported at
	// the end, with all other nodes, if an output of the network depends on it.
	lost bool
	// derived: the importer computed the values; those in the file may be trained.
	derived bool
	causal  bool // a mask that hides what comes later
	// missing says why an external file did not give the values.
	missing string
	within  *value         // of positions that a pool yields: what they point into
	id      model.TensorID // absent until an operator needs it
}

const absent model.TensorID = -1

// maxKnown bounds the elements of all known values together.
const maxKnown = 2 << 20

var errKnown = fmt.Errorf("the known values of the graph have more than %d elements", maxKnown)

// importer builds one graph.
type importer struct {
	*plan
	opt    Options
	b      *model.Builder
	values map[string]*value
	// own holds the values at the file's own batch size; nil if that is the one being built.
	own    map[string]*value
	budget int64 // of known elements, maxKnown at first
	sizes
	fileBatch int64
	steps     int64 // of recurrent operators so far
	bad       []UnsupportedNode
}

func (p *plan) run(title string, opt Options, s sizes, own map[string]*value, fileBatch int64) (*model.Graph,
	map[string]*value, error) {
	im := &importer{plan: p, opt: opt, b: model.NewBuilder(title),
		values: make(map[string]*value, 2*len(p.order)), own: own, budget: maxKnown, sizes: s, fileBatch: fileBatch}
	for i, v := range p.inputs {
		dt, err := im.dtype(v.elem)
		if err != nil {
			return nil, nil, fmt.Errorf("input %q %w", v.name, err)
		}
		if s.shapes[i].Elements() == 0 { // an empty cache: known as it is, and nothing that a graph could hold
			im.values[v.name] = literalValue(&literal{shape: s.shapes[i], dtype: dt})
			im.values[v.name].name = v.name
			im.leaveOut("input", v.name, s.shapes[i])
			continue
		}
		im.values[v.name] = &value{name: v.name, shape: s.shapes[i], dtype: dt, id: im.b.Input(v.name, dt, s.shapes[i]...)}
	}
	for _, n := range p.order {
		if err := im.node(n); err != nil {
			if p.missing && !opt.AllowUnknown {
				return nil, nil, p.unknown()
			}
			return nil, nil, err
		}
	}
	some := false
	for _, v := range p.m.graph.outputs {
		x, err := im.value(v.name)
		if err != nil {
			return nil, nil, fmt.Errorf("output %q: %w", v.name, err)
		}
		if x.lost {
			return nil, nil, unsupported(im.bad)
		}
		n, err := elements(x.shape)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("output %q: %w", v.name, err)
		case n == 0:
			im.leaveOut("output", v.name, x.shape)
			continue
		}
		some = true
		im.b.Output(im.tensor(x, operand))
	}
	if !some {
		return nil, nil, errors.New("no output has an element")
	}
	g, err := im.b.Build()
	if err != nil {
		return nil, nil, err
	}
	return g, im.values, g.DropDead()
}

// compareOutputs tells of outputs, as they are at the file's own sizes, that are declared with another shape. The
// number of a symbolic batch may be that of the file's writer.
func (p *plan) compareOutputs(own, values map[string]*value, file sizes, warn func(string)) {
	for _, v := range p.m.graph.outputs {
		x := values[v.name]
		if own != nil {
			x = own[v.name]
		}
		if x == nil || len(v.dims) == 0 { // some tools write no dimensions where they know none
			continue
		}
		said := append(x.shape.Clone(), make(model.Shape, len(v.dims))...)[:len(v.dims)]
		for i, d := range v.dims {
			if d.fixed && (i > 0 || file.lead == nil || file.lead.dims[0].fixed) {
				said[i] = d.value
			}
		}
		if !slices.Equal(said, x.shape) {
			warn(fmt.Sprintf("output %q: the file declares shape %v, found %v", v.name, said, x.shape))
		}
	}
}

// leaveOut tells of an input or output without an element.
func (im *importer) leaveOut(what, name string, s model.Shape) {
	if im.opt.Warn != nil {
		im.opt.Warn(fmt.Sprintf("%s %q has shape %v and no element; it is left out", what, name, s))
	}
}

// dtype translates an element type.
func (im *importer) dtype(t int64) (model.DType, error) {
	et, ok := elementTypes[t]
	if !ok {
		return 0, fmt.Errorf("has element type %d, which ONNX does not define", t)
	}
	if !et.ok {
		return 0, fmt.Errorf("has element type %s, which is not supported", et.name)
	}
	if et.dtype.IsFloat() && !et.dtype.Narrow() && im.opt.Float != nil { // narrow storage stays
		return *im.opt.Float, nil
	}
	return et.dtype, nil
}

// value returns the value of that name; prepare made sure that there is one.
func (im *importer) value(name string) (*value, error) {
	if v := im.values[name]; v != nil {
		return v, nil
	}
	t := im.initializers[name]
	if t == nil {
		return nil, fmt.Errorf("reads %q, which is not there", name)
	}
	v, err := im.stored(t)
	if err != nil {
		return nil, fmt.Errorf("initializer %q %w", name, err)
	}
	v.name = name
	im.values[name] = v
	return v, nil
}

// stored is the value of a tensor in the file.
func (im *importer) stored(t *tensorProto) (*value, error) {
	dt, err := im.dtype(t.typ)
	if err != nil {
		return nil, err
	}
	missing, err := t.fetch(im.opt.dir)
	if err != nil {
		return nil, err
	}
	if missing != "" {
		t.missing = missing
	}
	v := &value{missing: t.missing, shape: t.dims, dtype: dt, constant: true, id: absent}
	if t.known {
		v.lit = &literal{shape: t.dims, dtype: dt, ints: t.ints, floats: t.floats}
	}
	return v, nil
}

// use is the way in which an operator reads an input, as far as it decides whether a constant counts as learned.
type use uint8

const (
	// operand: any operand. Floating-point constants of the file count as learned
	// unless they are single numbers, which are limits, factors and the like.
	operand use = iota
	// parameter: weights, biases, scales; learned whatever their type and size.
	parameter
	// statistic: gathered in training, not learned, such as a running mean.
	statistic
)

// tensor returns the graph's tensor for a value. Constants enter the graph when an operator reads them.
func (im *importer) tensor(v *value, u use) model.TensorID {
	several := v.dtype.IsFloat() && v.shape.Elements() > 1
	learned := v.constant && (u == parameter || u == operand && several)
	if several && v.derived {
		learned = false // made of single numbers: a bias of zeros, say
	}
	if v.id != absent {
		if learned {
			im.b.Tensor(v.id).Learned = true
		}
		return v.id
	}
	if learned {
		v.id = im.b.Param(v.name, v.dtype, v.shape...)
	} else {
		var ints []int64
		if v.lit != nil {
			ints = v.lit.ints
		}
		v.id = im.b.Const(v.name, v.dtype, ints, v.shape...)
		im.b.Tensor(v.id).Causal = v.causal
	}
	return v.id
}

// node imports a node. One that is not supported is noted, and so is not what depends on it.
func (im *importer) node(n *nodeProto) error {
	c := &call{importer: im, node: n, row: n.row, opset: n.opset()}
	err := c.run()
	var not *notSupported
	switch {
	case errors.As(err, &not):
		im.lose(n, not.reason, n.outputs...)
		return nil
	case err != nil:
		return fmt.Errorf("node %q (%s): %w", n.name, n.op, err)
	}
	for i, a := range n.attrs {
		if c.makes && !c.left && c.read&(1<<i) == 0 && im.opt.Warn != nil {
			im.opt.Warn(fmt.Sprintf("node %q (%s): attribute %q is not read; it is taken to be without effect on shapes and work",
				n.name, n.op, a.name))
		}
	}
	return nil
}

// lose notes that a node cannot yield some outputs.
func (im *importer) lose(n *nodeProto, reason string, outputs ...string) {
	if reason != lostInput {
		im.bad = append(im.bad, UnsupportedNode{n.name, n.op, shownDomain(n.domain), reason,
			!im.opt.AllowUnknown && n.countable()})
	}
	for _, o := range outputs {
		if o != "" {
			im.values[o] = &value{name: o, lost: true, id: absent}
		}
	}
}

// notSupported is the error of a node that lies beyond the importer, while the file may be in order.
type notSupported struct{ reason string }

func (e *notSupported) Error() string { return e.reason }

const lostInput = "an input is missing"
