package simplify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Report is the effect of one pass in one sweep.
type Report struct {
	Pass  string
	Sweep int // from 0
	// OpsBefore and OpsAfter count the graph's operators around the pass.
	OpsBefore, OpsAfter int
	// Changes counts what the pass did; see the table for its unit.
	Changes int
}

// Run simplifies a copy of g. The reports cover every pass of every
// sweep except the last, which changes nothing, unless it is the only one.
func Run(g *model.Graph) (*model.Graph, []Report, error) { return runPasses(g, passes, false) }

// runPasses is Run by some passes; with check the graph is validated after each of them, and not at the end alone.
func runPasses(g *model.Graph, passes []pass, check bool) (*model.Graph, []Report, error) {
	if err := g.Validate(); err != nil {
		return nil, nil, fmt.Errorf("simplify: %w", err)
	}
	e := newEditor(g)
	var all []Report
	for sweep := 0; ; sweep++ {
		var reports []Report
		changed := false
		for _, p := range passes {
			r := Report{Pass: p.name, Sweep: sweep, OpsBefore: len(e.g.Ops)}
			r.Changes = p.run(e)
			if r.Changes > 0 {
				changed = true
				if err := e.commit(); err != nil {
					return nil, nil, fmt.Errorf("simplify: pass %s: %w", p.name, err)
				}
				if check {
					if err := e.g.Validate(); err != nil {
						return nil, nil, fmt.Errorf("simplify: pass %s: %w", p.name, err)
					}
				}
			}
			r.OpsAfter = len(e.g.Ops)
			reports = append(reports, r)
		}
		if changed || sweep == 0 {
			all = append(all, reports...)
		}
		if !changed {
			break
		}
	}
	if err := e.g.Validate(); err != nil {
		return nil, nil, fmt.Errorf("simplify: %w", err)
	}
	return e.g, all, nil
}

// editor collects a pass's changes to a graph. Operators are marked dead and
// tensors replaced by others; commit then rewrites the graph at once.
type editor struct {
	g        *model.Graph
	dead     []bool           // by operator
	instead  []model.TensorID // by tensor: read this one instead
	isOutput []bool           // by tensor
	names    map[string]bool  // of all tensors
}

func newEditor(g *model.Graph) *editor {
	e := &editor{g: clone(g), names: map[string]bool{}}
	for _, t := range e.g.Tensors {
		e.names[t.Name] = true
	}
	e.reset()
	return e
}

func (e *editor) reset() {
	g := e.g
	e.dead = make([]bool, len(g.Ops))
	e.instead = make([]model.TensorID, len(g.Tensors))
	for i := range e.instead {
		e.instead[i] = model.TensorID(i)
	}
	e.isOutput = make([]bool, len(g.Tensors))
	for _, o := range g.Outputs {
		e.isOutput[o] = true
	}
}

func (e *editor) commit() error {
	dead := e.dead
	for i, op := range e.g.Ops {
		if !dead[i] {
			e.resolve(op)
		}
	}
	if err := e.g.Compact(func(op *model.Op) bool { return !dead[op.ID] }); err != nil {
		return err
	}
	e.reset()
	return nil
}

// finished is the graph with all changes; what names them in an error.
func (e *editor) finished(what string) (*model.Graph, error) {
	if err := cmp.Or(e.commit(), e.g.Validate()); err != nil {
		return nil, fmt.Errorf("simplify: %s: %w", what, err)
	}
	return e.g, nil
}

// find follows replacements; a pass calls resolve before it looks at an
// operator's inputs, so that one sweep sees through chains.
func (e *editor) find(t model.TensorID) model.TensorID {
	for e.instead[t] != t {
		e.instead[t] = e.instead[e.instead[t]]
		t = e.instead[t]
	}
	return t
}

func (e *editor) resolve(op *model.Op) {
	for i, t := range op.Inputs {
		op.Inputs[i] = e.find(t)
	}
}

// canReplace reports whether readers of old can read new instead without losing an output of the network.
func (e *editor) canReplace(old, new model.TensorID) bool {
	return !e.isOutput[old] || (e.g.Tensors[new].Role == model.Activation && !e.isOutput[new])
}

// replace makes readers of old read new, which holds the same value. If old
// leaves the network, new does so under old's name.
func (e *editor) replace(old, new model.TensorID) {
	g := e.g
	if e.isOutput[old] {
		a, b := g.Tensors[old], g.Tensors[new]
		a.Name, b.Name = b.Name, a.Name
		for i, o := range g.Outputs {
			if o == old {
				g.Outputs[i] = new
			}
		}
		e.isOutput[old], e.isOutput[new] = false, true
	}
	e.instead[old] = new
}

// constant adds a constant with a name of its own.
func (e *editor) constant(t model.Tensor) model.TensorID {
	t.Role = model.Constant
	return e.tensor(t)
}

// tensor adds a tensor with a name of its own.
func (e *editor) tensor(t model.Tensor) model.TensorID {
	base := t.Name
	for n := 1; e.names[t.Name]; n++ {
		t.Name = fmt.Sprintf("%s.%d", base, n)
	}
	e.names[t.Name] = true
	t.ID = model.TensorID(len(e.g.Tensors))
	t.Producer = model.NoOp
	t.Consumers = nil
	e.g.Tensors = append(e.g.Tensors, &t)
	e.instead = append(e.instead, t.ID)
	e.isOutput = append(e.isOutput, false)
	return t.ID
}

func clone(g *model.Graph) *model.Graph {
	c := &model.Graph{
		Name:    g.Name,
		Ops:     make([]*model.Op, len(g.Ops)),
		Tensors: make([]*model.Tensor, len(g.Tensors)),
		Inputs:  slices.Clone(g.Inputs),
		Outputs: slices.Clone(g.Outputs),
	}
	for i, op := range g.Ops {
		o := *op
		o.Inputs, o.Outputs = slices.Clone(op.Inputs), slices.Clone(op.Outputs)
		c.Ops[i] = &o // attributes are shared: no pass writes to their slices
	}
	for i, t := range g.Tensors {
		u := *t
		u.Layout, u.Consumers = slices.Clone(t.Layout), slices.Clone(t.Consumers)
		c.Tensors[i] = &u
	}
	return c
}
