package onnx

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/internal/bail"
)

// Functions of the file are replaced by their nodes before anything else reads the graph. An operator that the table
// knows stays as it is, even if the file defines it too: one node is cheaper to schedule well than its parts.

const (
	maxCallDepth = 64
	callBytes    = 400
	callNames    = 8 // words that a name or attribute of a call takes
)

// expander replaces calls.
type expander struct {
	m     *modelProto
	stack []*functionProto // calls that we are in
	taken map[string]bool  // names of values
	calls map[string]int   // how often a name was the prefix of a call
}

// scope maps the names of a function's body to the values around its call; nil for the graph itself.
type scope struct {
	prefix string
	names  map[string]string
	attrs  map[string]*attribute
}

func (m *modelProto) expand() (err error) {
	defer bail.Caught(&err)
	e := &expander{m: m}
	if len(m.functions) > 0 {
		e.taken, e.calls = map[string]bool{}, map[string]int{}
		e.take(m.graph)
	}
	m.graph.nodes = e.nodes(m.graph.nodes, nil, m.opsets)
	return nil
}

func (e *expander) take(g *graphProto) {
	for _, t := range g.initializers {
		e.taken[t.name] = true
	}
	for _, v := range g.inputs {
		e.taken[v.name] = true
	}
	for _, n := range g.nodes {
		for _, o := range n.outputs {
			e.taken[o] = true
		}
		for _, a := range n.attrs {
			if a.g != nil {
				e.take(a.g)
			}
		}
	}
}

// nodes returns the nodes of a body with all calls expanded.
func (e *expander) nodes(body []*nodeProto, s *scope, opsets map[string]int64) []*nodeProto {
	out := body[:0]
	if s != nil {
		out = nil // a body may be needed again
	}
	changed := s != nil
	for i, n := range body {
		if s != nil {
			n = e.copy(n, s)
		}
		n.opsets = opsets
		for _, a := range n.attrs {
			if a.g != nil {
				a.g.nodes = e.nodes(a.g.nodes, nil, opsets)
			}
		}
		f := e.m.functions[functionKey{n.domain, n.op, n.overload}]
		if f == nil || lookup(n) != nil {
			if changed {
				n.index = len(out)
			}
			out = append(out, n)
			continue
		}
		if !changed {
			// From here on there are more nodes than in the body.
			out = append([]*nodeProto(nil), body[:i]...)
			changed = true
		}
		for _, k := range e.call(n, f) {
			k.index = len(out)
			out = append(out, k)
		}
	}
	return out
}

func (e *expander) charge(n int) {
	if e.m.budget -= int64(n); e.m.budget < 0 {
		bail.Check(fmt.Errorf("with its functions expanded, %w", errBudget))
	}
}

// call returns the nodes that a call of f stands for.
func (e *expander) call(n *nodeProto, f *functionProto) []*nodeProto {
	fail := func(format string, args ...any) {
		bail.Check(fmt.Errorf("node %q calls function %v: %s", n.name, f.functionKey, fmt.Sprintf(format, args...)))
	}
	for i, g := range e.stack {
		if g == f {
			var names []string
			for _, g := range e.stack[i:] {
				names = append(names, g.name)
			}
			fail("which calls itself: %s -> %s", shortList(names, " -> "), f.name)
		}
	}
	if len(e.stack) == maxCallDepth {
		fail("calls are nested more than %d deep", maxCallDepth)
	}
	if len(n.inputs) > len(f.inputs) {
		fail("%d inputs, expected at most %d", len(n.inputs), len(f.inputs))
	}
	if len(n.outputs) > len(f.outputs) {
		fail("%d outputs, expected at most %d", len(n.outputs), len(f.outputs))
	}
	// Paid before anything is made of it.
	names := len(f.inputs) + len(f.outputs) + len(f.defaults) + len(n.attrs)
	e.charge(callBytes + len(n.name) + elementBytes*callNames*names)
	s := &scope{prefix: n.name, names: make(map[string]string, len(f.inputs)+len(f.outputs)),
		attrs: map[string]*attribute{}}
	if s.prefix == "" {
		s.prefix = n.op
		if len(n.outputs) > 0 && n.outputs[0] != "" {
			s.prefix = n.outputs[0]
		}
	}
	e.calls[s.prefix]++
	if k := e.calls[s.prefix]; k > 1 {
		s.prefix = fmt.Sprintf("%s.%d", s.prefix, k-1)
	}
	for _, a := range f.defaults {
		s.attrs[a.name] = a
	}
	for _, a := range n.attrs {
		s.attrs[a.name] = a
	}
	for i, in := range f.inputs {
		s.names[in] = ""
		if i < len(n.inputs) {
			s.names[in] = n.inputs[i]
		}
	}
	// A function may return an input as it is.
	var pass []*nodeProto
	for i, o := range f.outputs {
		actual := ""
		if i < len(n.outputs) {
			actual = n.outputs[i]
		}
		if from, isInput := s.names[o]; isInput {
			if actual != "" {
				pass = append(pass, &nodeProto{name: s.prefix + "/" + o, op: "Identity", inputs: []string{from},
					outputs: []string{actual}, opsets: map[string]int64{"": 13}})
			}
			continue
		}
		if actual != "" {
			s.names[o] = actual
		}
	}
	e.stack = append(e.stack, f)
	out := e.nodes(f.graph.nodes, s, f.opsets)
	e.stack = e.stack[:len(e.stack)-1]
	return append(out, pass...)
}

// rename gives the name around the call for one in the function.
func (e *expander) rename(name string, s *scope) string {
	if name == "" {
		return ""
	}
	if to, ok := s.names[name]; ok {
		return to
	}
	base := s.prefix + "/" + name
	to := base
	for i := 1; e.taken[to]; i++ {
		to = fmt.Sprintf("%s.%d", base, i)
	}
	if len(to) > maxName {
		bail.Check(fmt.Errorf("the name of a value in nested functions has %d bytes, more than %d: %s…",
			len(to), maxName, to[:80]))
	}
	e.charge(len(to)*5/4 + 64)
	e.taken[to] = true
	s.names[name] = to
	return to
}

// copy is a node of a function's body with the names and attributes of a call.
func (e *expander) copy(n *nodeProto, s *scope) *nodeProto {
	e.charge(callBytes + len(s.prefix) + len(n.name) + labelBytes*(len(n.inputs)+len(n.outputs)+len(n.attrs)))
	c := *n
	if n.name != "" { // else called after its output, as any other
		c.name = s.prefix + "/" + n.name
	}
	if len(c.name) > maxName {
		bail.Check(fmt.Errorf("the name of a node in nested functions has %d bytes, more than %d: %s…", len(c.name),
			maxName, c.name[:80]))
	}
	all := func(names []string) []string {
		out := make([]string, len(names))
		for i, name := range names {
			out[i] = e.rename(name, s)
		}
		return out
	}
	c.inputs, c.outputs = all(n.inputs), all(n.outputs)
	for len(c.inputs) > 0 && c.inputs[len(c.inputs)-1] == "" {
		c.inputs = c.inputs[:len(c.inputs)-1] // left out by the caller
	}
	c.attrs = make([]*attribute, 0, len(n.attrs))
	for _, a := range n.attrs {
		switch {
		case a.ref != "":
			given := s.attrs[a.ref]
			if given == nil {
				continue // the operator's own default
			}
			b := *given
			b.name = a.name
			a = &b
		case a.g != nil:
			b := *a
			b.g = e.copyGraph(a.g, s)
			a = &b
		}
		c.attrs = append(c.attrs, a)
	}
	return &c
}

// copyGraph is a graph within a function's body. Names within it are renamed as
// those around it, which is enough: only one branch is ever taken.
func (e *expander) copyGraph(g *graphProto, s *scope) *graphProto {
	e.charge(nodeBytes + tensorBytes*len(g.initializers) + infoBytes*len(g.outputs))
	c := &graphProto{name: g.name}
	for _, t := range g.initializers {
		u := *t
		u.name = e.rename(t.name, s)
		c.initializers = append(c.initializers, &u)
	}
	for _, v := range g.outputs {
		u := *v
		u.name = e.rename(v.name, s)
		c.outputs = append(c.outputs, &u)
	}
	for i, n := range g.nodes {
		k := e.copy(n, s)
		k.index = i
		c.nodes = append(c.nodes, k)
	}
	return c
}

// refused are operators that the project leaves out on purpose, and why.
var refused = map[operator]string{}

func init() {
	for reason, ops := range map[string]string{
		"control flow":                          "Loop Scan",
		"a derivative, which is not worked out": "ai.onnx.preview.training:Gradient",
		"sequences of tensors, whose type tells neither their number nor the shape of each": "com.microsoft:AdamWOptimizer com.microsoft:SGDOptimizerV2 com.microsoft:InplaceClipGradNorm",
		"the size of its result depends on the values":                                      "NonMaxSuppression Unique Compress StringSplit",
		"a sequence, not a tensor":                                                          "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence ConcatFromSequence",
		"an optional value, not a tensor":                                                   "Optional OptionalGetElement OptionalHasElement",
		"text":                                                                              "StringConcat StringNormalizer RegexFullMatch TfIdfVectorizer LabelEncoder",
		"random numbers":                                                                    "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
	} {
		for _, op := range strings.Fields(ops) {
			domain, name, other := strings.Cut(op, ":")
			if !other {
				domain, name = "", op
			}
			refused[operator{domain, name}] = reason
		}
	}
}
