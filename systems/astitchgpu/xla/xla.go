// Package xla makes kernels of a graph for a SIMT machine as XLA's fusion passes do: the baseline of
//
//	Z. Zheng et al., "AStitch: Enabling a New Multi-dimensional Optimization Space
//	for Memory-intensive ML Training and Inference on Modern SIMT Architectures",
//	ASPLOS 2022, section 2.3
//
// It follows that paper and the documentation of XLA's GPU passes, in outline, and not their code.
//
// # Rules
//
// Producers are fused into their consumers. An operator is computed within the kernels of all that read it, in each
// again, unless one of these makes it the result of a kernel of its own:
//
//	reduction   there is no reduction in the middle of a kernel
//	output      the network gives it out, or a library call reads it
//	broadcast   it is expensive, and each element would be computed for many others
//	readers     it is expensive, or something expensive is fused into it, and several
//	            operators read it
//	copies      more than 15 kernels would compute it
//
// Afterwards kernels with the same loop become one with several results (multi-output fusion): an element-wise kernel
// and the reduction that reads its result, and kernels that read the same tensor.
//
// A reduction has a block of threads for each row, an element-wise kernel 256 threads a
// block; see [simt.Machine.Plain].
package xla

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// Options are switches. The zero value is XLA's fusion.
type Options struct {
	// Adaptive gives kernels AStitch's mappings, at most a wave of blocks: the first step of AStitch's ablation.
	Adaptive bool
}

// Fuse makes kernels of a graph.
func Fuse(g *model.Graph, m *simt.Machine, opt Options) (*fusion.Plan, error) {
	roles, err := fusion.Roles(g)
	if err != nil {
		return nil, err
	}
	x := &fuser{g: g, roles: roles, why: make([]string, len(g.Ops)), readers: make([][]model.OpID, len(g.Ops)),
		kernel: make([]int, len(g.Ops))}
	x.roots()
	x.kernels()
	x.multiOutput()
	spread := m.Plain
	if opt.Adaptive {
		wave := m.Wave(m.Start())
		spread = func(rows, cols int64) simt.Mapping { return simt.Pack(rows, cols, m.Block.Threads, wave) }
	}
	var kernels []fusion.Kernel
	for _, k := range x.sorted() {
		ops := x.ops[k]
		if roles[ops[0]] == fusion.Heavy {
			kernels = append(kernels, fusion.Library(g, m, ops[0]))
			continue
		}
		var again []model.OpID
		for _, id := range ops {
			if x.why[id] == "" {
				again = append(again, id)
			}
		}
		kernel, ok := fusion.Single(g, m, ops, again, spread)
		if !ok {
			return nil, fmt.Errorf("xla: machine %s can't run the kernel of %q", m.Name, g.Op(ops[0]).Name)
		}
		kernels = append(kernels, kernel)
	}
	return fusion.Finish("xla", g, m, kernels, func(from, to model.OpID) string { return x.why[from] })
}

type fuser struct {
	g     *model.Graph
	roles []fusion.Role
	// why an operator is the result of a kernel; "" if it is computed within others.
	why     []string
	readers [][]model.OpID
	ops     [][]model.OpID // of each kernel, ascending; nil if it has become part of another
	kernel  []int          // of which an operator is a result
	makers  [][]model.OpID // of what each kernel reads, ascending; nil if not yet known
}

// roots finds the operators that are results of kernels.
func (x *fuser) roots() {
	g := x.g
	expensive := make([]bool, len(g.Ops)) // it, or something that is fused into it
	for _, op := range g.Ops {
		if x.roles[op.ID] == fusion.View {
			continue
		}
		itself := g.Expensive(op)
		above := false
		for _, t := range op.Inputs {
			if p := g.Tensor(fusion.Root(g, t)).Producer; p != model.NoOp && x.why[p] == "" {
				above = above || expensive[p]
			}
		}
		leaves, library, broadcast := false, false, false
		for _, t := range op.Outputs {
			readers, out := fusion.Readers(g, t)
			leaves = leaves || out
			for _, c := range readers {
				if !slices.Contains(x.readers[op.ID], c) {
					x.readers[op.ID] = append(x.readers[op.ID], c)
				}
				library = library || x.roles[c] == fusion.Heavy
				broadcast = broadcast || !x.oneToOne(g.Op(c), t)
			}
		}
		switch n := len(x.readers[op.ID]); {
		case x.roles[op.ID] == fusion.Heavy:
			x.why[op.ID] = "a library call"
		case x.roles[op.ID] == fusion.Reduce:
			x.why[op.ID] = "no reduction in the middle of a kernel"
		case leaves || n == 0:
			x.why[op.ID] = "the network gives it out"
		case library:
			x.why[op.ID] = "a library call reads it"
		case itself && broadcast:
			x.why[op.ID] = "it is expensive, and each element would be computed for many others"
		case n > 1 && (itself || above):
			x.why[op.ID] = fmt.Sprintf("%d operators read it, and it is expensive to compute again", n)
		}
		expensive[op.ID] = itself || above
	}
	copies := make([]int, len(g.Ops)) // kernels that compute an operator
	for i := len(g.Ops) - 1; i >= 0; i-- {
		copies[i] = 1
		if x.why[i] != "" || x.roles[i] == fusion.View {
			continue
		}
		copies[i] = 0
		for _, c := range x.readers[i] {
			copies[i] += copies[c]
		}
		if copies[i] > maxCopies {
			x.why[i] = fmt.Sprintf("%d kernels would compute it again", copies[i])
			copies[i] = 1
		}
	}
}

// maxCopies bounds the copies of a cheap operator: recalled to be XLA's limit on the duplication of code. Sums that
// run through a whole network, as those of residual connections, would otherwise be added up anew in every layer.
const maxCopies = 15

// oneToOne reports whether each element of t, or of a view of it, serves one of op's.
func (x *fuser) oneToOne(op *model.Op, t model.TensorID) bool {
	return op.Kind == "Split" || !slices.ContainsFunc(op.Inputs, func(in model.TensorID) bool {
		return fusion.Root(x.g, in) == t && !x.g.OneToOne(op, in)
	})
}

// kernels collects what is computed within each root.
func (x *fuser) kernels() {
	seen := slices.Repeat([]model.OpID{-1}, len(x.g.Ops))
	for _, op := range x.g.Ops {
		if x.why[op.ID] == "" || x.roles[op.ID] == fusion.View {
			continue
		}
		var ops []model.OpID
		for stack := []model.OpID{op.ID}; len(stack) > 0; {
			id := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			ops = append(ops, id)
			for _, t := range x.g.Op(id).Inputs {
				p := x.g.Tensor(fusion.Root(x.g, t)).Producer
				if p != model.NoOp && x.why[p] == "" && seen[p] != op.ID {
					seen[p] = op.ID
					stack = append(stack, p)
				}
			}
		}
		slices.Sort(ops)
		x.kernel[op.ID] = len(x.ops)
		x.ops = append(x.ops, ops)
	}
	x.makers = make([][]model.OpID, len(x.ops))
}

// before lists the kernels that kernel k reads, ascending.
func (x *fuser) before(k int) []int {
	if x.makers[k] == nil {
		makers := []model.OpID{}
		for _, id := range x.ops[k] {
			for _, t := range x.g.Op(id).Inputs {
				if p := x.g.Tensor(fusion.Root(x.g, t)).Producer; p != model.NoOp && x.why[p] != "" {
					makers = append(makers, p)
				}
			}
		}
		slices.Sort(makers)
		x.makers[k] = slices.Compact(makers)
	}
	var out []int
	for _, p := range x.makers[k] {
		if x.kernel[p] != k {
			out = append(out, x.kernel[p])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// loop is the number of elements of a kernel's loop, of what its reduction reads if it has one.
func (x *fuser) loop(k int) (elements int64, reduces bool) {
	for _, id := range x.ops[k] {
		op := x.g.Op(id)
		if x.roles[id] == fusion.Reduce {
			return x.g.Tensor(op.Inputs[0]).Shape.Elements(), true
		}
		if x.why[id] != "" {
			elements = max(elements, x.g.Tensor(op.Outputs[0]).Shape.Elements())
		}
	}
	return elements, false
}

// multiOutput merges kernels with the same loop.
func (x *fuser) multiOutput() {
	g := x.g
	at := func(t model.TensorID) (kernels []int) { // kernels that read t
		seen := map[model.OpID]bool{}
		var roots func(id model.OpID)
		roots = func(id model.OpID) {
			if seen[id] {
				return
			}
			if seen[id] = true; x.why[id] != "" {
				kernels = append(kernels, x.kernel[id])
				return
			}
			for _, c := range x.readers[id] {
				roots(c)
			}
		}
		readers, _ := fusion.Readers(g, t)
		for _, c := range readers {
			roots(c)
		}
		slices.Sort(kernels)
		return slices.Compact(kernels)
	}
	merge := func(a, b int) bool {
		if a == b || x.ops[a] == nil || x.ops[b] == nil || x.roles[x.ops[a][0]] == fusion.Heavy ||
			x.roles[x.ops[b][0]] == fusion.Heavy {
			return false
		}
		na, ra := x.loop(a)
		nb, rb := x.loop(b)
		if na != nb || !ra && !rb && x.direct(a, b) {
			return false
		}
		if x.detour(a, b) || x.detour(b, a) {
			return false
		}
		x.ops[a] = append(x.ops[a], x.ops[b]...)
		slices.Sort(x.ops[a])
		x.ops[a] = slices.Compact(x.ops[a])
		for _, id := range x.ops[b] {
			if x.why[id] != "" {
				x.kernel[id] = a
			}
		}
		x.ops[b], x.makers[a] = nil, nil
		return true
	}
	// An element-wise kernel and the reduction of its result.
	for _, op := range g.Ops {
		if x.why[op.ID] == "" || x.roles[op.ID] != fusion.Light {
			continue
		}
		for _, c := range x.readers[op.ID] {
			if x.roles[c] == fusion.Reduce && x.oneToOne(g.Op(c), op.Outputs[0]) && merge(x.kernel[op.ID], x.kernel[c]) {
				break
			}
		}
	}
	// Kernels that read the same tensor, none of which needs the other.
	for _, t := range g.Tensors {
		if t.Role == model.Constant || fusion.Root(g, t.ID) != t.ID {
			continue
		}
		kernels := at(t.ID)
		for i, a := range kernels {
			for _, b := range kernels[i+1:] {
				if !x.direct(a, b) && !x.direct(b, a) {
					merge(a, b)
				}
			}
		}
	}
}

// direct reports whether kernel b reads kernel a.
func (x *fuser) direct(a, b int) bool { return x.ops[b] != nil && slices.Contains(x.before(b), a) }

// detour reports whether a path leads from kernel a to kernel b over a third one.
func (x *fuser) detour(a, b int) bool {
	seen := make([]bool, len(x.ops))
	seen[b] = true
	stack := []int{b}
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, p := range x.before(k) {
			switch {
			case p == a && k != b:
				return true
			case p != a && !seen[p]:
				seen[p] = true
				stack = append(stack, p)
			}
		}
	}
	return false
}

// sorted lists the kernels in an order in which they can run: of those that can, the
// one with the earliest last operator.
func (x *fuser) sorted() []int {
	waiting := make([]int, len(x.ops))
	after := make([][]int, len(x.ops))
	var ready, out []int
	for k, ops := range x.ops {
		if ops == nil {
			continue
		}
		before := x.before(k)
		for _, p := range before {
			after[p] = append(after[p], k)
		}
		if waiting[k] = len(before); waiting[k] == 0 {
			ready = append(ready, k)
		}
	}
	end := func(k int) model.OpID { return x.ops[k][len(x.ops[k])-1] }
	for len(ready) > 0 {
		best := 0
		for i, k := range ready {
			if end(k) < end(ready[best]) {
				best = i
			}
		}
		k := ready[best]
		ready = append(ready[:best], ready[best+1:]...)
		out = append(out, k)
		for _, n := range after[k] {
			if waiting[n]--; waiting[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
	return out
}
