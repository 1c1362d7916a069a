package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ValidationError lists everything that is wrong with a graph.
type ValidationError struct {
	Graph    string
	Problems []string
}

func (e *ValidationError) Error() string {
	return fmt.Sprintf("graph %q: %s", e.Graph, strings.Join(e.Problems, "; "))
}

// Validate checks the graph: dense IDs, shapes, roles, dangling tensors, arity, and that every operator's inferred
// output shape is the one recorded. All problems are reported together as a *ValidationError; a cycle as a *CycleError.
// It does not change the graph.
func (g *Graph) Validate() error {
	v := &validation{Graph: g}
	v.tensors()
	v.writers()
	sorted := v.readers()
	v.ends()
	if err := v.err(); err != nil {
		return err
	}
	if !sorted {
		return g.unsorted()
	}
	v.shapes()
	return v.err()
}

// validation collects what is wrong with a graph.
type validation struct {
	*Graph
	bad    []string
	writer []int // operator that writes each tensor, or -1
}

func (v *validation) say(format string, args ...any) {
	v.bad = append(v.bad, fmt.Sprintf(format, args...))
}

func (v *validation) err() error {
	if len(v.bad) == 0 {
		return nil
	}
	return &ValidationError{v.Name, v.bad}
}

func (v *validation) exists(id TensorID) bool { return id >= 0 && int(id) < len(v.Tensors) }

// tensors checks each tensor by itself.
func (v *validation) tensors() {
	names := make(map[string]TensorID, len(v.Tensors))
	for i, t := range v.Tensors {
		if int(t.ID) != i {
			v.say("tensor %q has ID %d at position %d", t.Name, t.ID, i)
		}
		if prev, dup := names[t.Name]; dup {
			v.say("tensors %d and %d share the name %q", prev, i, t.Name)
		}
		names[t.Name] = t.ID
		if !t.DType.Valid() {
			v.say("tensor %q has %v", t.Name, t.DType)
		}
		if err := t.Shape.Check(); err != nil {
			v.say("tensor %q: %v", t.Name, err)
		}
	}
}

// writers checks that each operator writes activations that no other writes.
func (v *validation) writers() {
	v.writer = slices.Repeat([]int{-1}, len(v.Tensors))
	for i, op := range v.Ops {
		if int(op.ID) != i {
			v.say("operator %q has ID %d at position %d", op.Name, op.ID, i)
		}
		if op.Attr == nil {
			v.say("operator %q has no attributes, not even an empty list", op.Name)
		}
		for _, o := range op.Outputs {
			switch {
			case !v.exists(o):
				v.say("operator %q writes tensor %d, which does not exist", op.Name, o)
			case v.writer[o] >= 0:
				v.say("tensor %q is written by both %q and %q", v.Tensors[o].Name, v.Ops[v.writer[o]].Name, op.Name)
			case v.Tensors[o].Role != Activation:
				v.say("operator %q writes %v tensor %q", op.Name, v.Tensors[o].Role, v.Tensors[o].Name)
			default:
				v.writer[o] = i
			}
		}
	}
}

// readers checks that something writes what operators read, and reports whether it does so before them.
func (v *validation) readers() (sorted bool) {
	sorted = true
	for i, op := range v.Ops {
		for _, in := range op.Inputs {
			if !v.exists(in) {
				v.say("operator %q reads tensor %d, which does not exist", op.Name, in)
				continue
			}
			if t := v.Tensors[in]; t.Role == Activation && v.writer[in] < 0 {
				v.say("operator %q reads dangling tensor %q: no operator writes it", op.Name, t.Name)
			}
			sorted = sorted && v.writer[in] < i
		}
	}
	return sorted
}

// ends checks the graph's inputs and outputs.
func (v *validation) ends() {
	for _, o := range v.Outputs {
		if !v.exists(o) {
			v.say("graph output %d does not exist", o)
		} else if v.Tensors[o].Role == Activation && v.writer[o] < 0 {
			v.say("graph output %q is dangling: no operator writes it", v.Tensors[o].Name)
		}
	}
	if len(v.Outputs) == 0 {
		v.say("the graph has no output")
	}
	listed := make([]bool, len(v.Tensors))
	for _, in := range v.Inputs {
		if !v.exists(in) {
			v.say("graph input %d does not exist", in)
			continue
		}
		if t := v.Tensors[in]; t.Role != Input {
			v.say("graph input %q is marked as %v", t.Name, t.Role)
		} else if listed[in] {
			v.say("graph input %q is listed twice", t.Name)
		}
		listed[in] = true
	}
	for i, t := range v.Tensors {
		if t.Role == Input && !listed[i] {
			v.say("tensor %q is marked as input, but the graph's inputs do not list it", t.Name)
		}
	}
}

// unsorted is the error for operators in another order than their tensors': a cycle, which
// Finish names, or just an unsorted list.
func (g *Graph) unsorted() error {
	c := &Graph{Name: g.Name, Tensors: make([]*Tensor, len(g.Tensors)), Ops: make([]*Op, len(g.Ops))}
	for i, t := range g.Tensors {
		u := *t
		c.Tensors[i] = &u
	}
	for i, op := range g.Ops {
		u := *op
		c.Ops[i] = &u
	}
	var cyc *CycleError
	if err := c.Finish(); errors.As(err, &cyc) {
		return fmt.Errorf("graph %q: %w", g.Name, err)
	}
	return &ValidationError{g.Name, []string{"operators are not in topological order"}}
}

// shapes checks that tensors have the shapes and types that their operators yield.
func (v *validation) shapes() {
	for _, op := range v.Ops {
		shapes, dts, err := v.infer(op)
		if err != nil {
			v.say("operator %q (%s): %v", op.Name, op.Kind, err)
			continue
		}
		if len(shapes) != len(op.Outputs) {
			v.say("operator %q (%s) has %d outputs, expected %d", op.Name, op.Kind, len(op.Outputs), len(shapes))
			continue
		}
		for k, s := range shapes {
			t := v.Tensors[op.Outputs[k]]
			if !s.Equal(t.Shape) {
				v.say("tensor %q has shape %v, but operator %q (%s) yields %v", t.Name, t.Shape, op.Name, op.Kind, s)
			}
			if dts[k] != t.DType {
				v.say("tensor %q has type %v, but operator %q (%s) yields %v", t.Name, t.DType, op.Name, op.Kind, dts[k])
			}
		}
	}
}
