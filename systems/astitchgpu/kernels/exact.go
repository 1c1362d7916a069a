package kernels

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/rules"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
	"github.com/dsasched/dsasched/systems/astitchgpu/stitch"
)

// Exact holds the proven figures of the exact method's plan. Times are of memory-intensive kernels, in seconds.
type Exact struct {
	Status milp.Status `json:"-"`
	// Proof is the status in words: optimal, or feasible with what cut the proof short.
	Proof string `json:"status"`
	// Scopes counts AStitch's scopes, Proven those with a proven plan.
	Scopes int     `json:"scopes"`
	Proven int     `json:"proven_scopes"`
	Bound  float64 `json:"bound_s"`
	// Rule is the time of AStitch's rules on the same scopes. Schemes is the best with one kernel for each scope,
	// Kernels the best parting into kernels with AStitch's schemes: Rule less either is the loss of that rule alone.
	Rule    float64 `json:"astitch_s"`
	Schemes float64 `json:"best_schemes_s"`
	Kernels float64 `json:"best_kernels_s"`
	Best    float64 `json:"best_s"`
	// Gap is Rule / Bound - 1, an upper bound on the slowdown of AStitch against the optimum.
	Gap float64 `json:"astitch_gap"`
}

// scope is a stitching scope as a problem of units. A view goes with the operator that makes what it views.
type scope struct {
	g     *model.Graph
	m     *simt.Machine
	units [][]model.OpID // each unit's operator, with its views
	// shared keeps the answers of regional.
	shared map[kernelKey][]model.TensorID
}

// kernelKey is a set of at most 64 units, and whether dominants stay unmerged.
type kernelKey struct {
	set      uint64
	unmerged bool
}

func newScope(g *model.Graph, m *simt.Machine, ops []model.OpID) *scope {
	s := &scope{g: g, m: m, shared: map[kernelKey][]model.TensorID{}}
	unit := map[model.OpID]int{}
	for _, id := range ops {
		op := g.Op(id)
		if op.Class() != model.ViewClass {
			unit[id] = len(s.units)
			s.units = append(s.units, []model.OpID{id})
			continue
		}
		if p := g.Tensor(op.Inputs[0]).Producer; p != model.NoOp {
			if u, ok := unit[p]; ok {
				unit[id] = u
				s.units[u] = append(s.units[u], id)
				continue
			}
		}
		// A view of what another kernel makes is part of none.
	}
	return s
}

// ops are the operators of units, in execution order.
func (s *scope) ops(units []int) []model.OpID {
	var ops []model.OpID
	for _, u := range units {
		ops = append(ops, s.units[u]...)
	}
	slices.Sort(ops)
	return ops
}

// regional lists the values of a kernel that pass through shared memory by the rules.
func (s *scope) regional(units []int, unmerged bool) []model.TensorID {
	key := kernelKey{unmerged: unmerged}
	for _, u := range units {
		key.set |= 1 << u
	}
	if roots, ok := s.shared[key]; ok {
		return roots
	}
	k, _ := rules.Kernel(s.g, s.m, s.ops(units), rules.Options{NoMerging: unmerged}, nil)
	roots := []model.TensorID{}
	for _, l := range k.Links {
		if root := fusion.Root(s.g, l.Tensor); l.Scheme == fusion.Regional && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	s.shared[key] = roots
	return roots
}

// maxOpen bounds the values of a kernel whose scheme is left open: 2^6 ways. The first
// ones are; the others keep AStitch's scheme.
const maxOpen = 6

// Choices of a kernel: bit 0 leaves dominants unmerged; of the others, bit i sends the
// i-th regional value through global memory.
func (s *scope) Choices(units []int) int {
	if len(units) == 1 {
		return 1
	}
	n := max(len(s.regional(units, false)), len(s.regional(units, true)))
	return 2 << min(maxOpen, n)
}

// kernel makes one.
func (s *scope) kernel(units []int, choice int) (fusion.Kernel, bool) {
	ops := s.ops(units)
	opt := rules.Options{NoMerging: choice&1 == 1}
	global := map[model.TensorID]bool{}
	if choice > 1 {
		roots := s.regional(units, opt.NoMerging)
		if choice>>1 >= 1<<min(maxOpen, len(roots)) {
			return fusion.Kernel{}, false // as another choice
		}
		for i, root := range roots {
			global[root] = choice>>(i+1)&1 == 1
		}
	}
	return rules.Kernel(s.g, s.m, ops, opt, func(_ model.OpID, t model.TensorID) bool {
		return global[fusion.Root(s.g, t)]
	})
}

// Seconds prices one.
func (s *scope) Seconds(units []int, choice int) (float64, bool) {
	k, ok := s.kernel(units, choice)
	return k.Seconds, ok
}

// problem states the scope for package systems/astitchgpu/stitch.
func (s *scope) problem() *stitch.Problem {
	p := &stitch.Problem{Units: len(s.units), Price: s}
	unit := map[model.OpID]int{}
	for u, ops := range s.units {
		unit[ops[0]] = u
	}
	reads := map[model.TensorID]int64{}
	bytes := int64(0)
	for u, ops := range s.units {
		op := s.g.Op(ops[0])
		for k, t := range op.Inputs {
			root := fusion.Root(s.g, t)
			if from, ok := unit[s.g.Tensor(root).Producer]; ok {
				p.Arcs = append(p.Arcs, [2]int{from, u})
				continue
			}
			n := fusion.ReadBytes(s.g, op, k)
			bytes += max(0, n-reads[root])
			reads[root] = max(reads[root], n)
		}
		for _, t := range op.Outputs {
			readers, leaves := fusion.Readers(s.g, t)
			for _, c := range readers {
				_, inside := unit[c]
				leaves = leaves || !inside
			}
			if leaves {
				bytes += s.g.Tensor(t).Bytes()
			}
		}
	}
	p.Floor = s.m.LaunchSeconds + float64(bytes)/s.m.DRAM.BytesPerSecond
	return p
}

// signature is equal for scopes that are the same problem: the same operators on the
// same shapes, connected alike. Networks repeat their layers.
func (s *scope) signature() string {
	var b strings.Builder
	label := map[model.TensorID]int{}
	of := func(t model.TensorID) int {
		if _, ok := label[t]; !ok {
			label[t] = len(label)
		}
		return label[t]
	}
	inside := map[model.OpID]bool{}
	for _, ops := range s.units {
		for _, id := range ops {
			inside[id] = true
		}
	}
	for _, ops := range s.units {
		for _, id := range ops {
			op := s.g.Op(id)
			fmt.Fprintf(&b, "%s %+v(", op.Kind, *op.Attr)
			for _, t := range op.Inputs {
				u, root := s.g.Tensor(t), fusion.Root(s.g, t)
				fmt.Fprintf(&b, "%d/%d %v %v;", of(t), of(root), u.Shape, u.DType)
			}
			for _, t := range op.Outputs {
				u := s.g.Tensor(t)
				readers, leaves := fusion.Readers(s.g, t)
				for _, c := range readers {
					leaves = leaves || !inside[c]
				}
				direct := s.g.IsOutput(t)
				for _, c := range u.Consumers {
					direct = direct || !inside[c]
				}
				fmt.Fprintf(&b, ")%d %v %v %v %v", of(t), u.Shape, u.DType, leaves, direct)
			}
			b.WriteByte('\n')
		}
		b.WriteByte('|')
	}
	return b.String()
}

// solved is the answer for a scope.
type solved struct {
	best                   *stitch.Result
	rule, schemes, kernels float64
}

func (s *scope) solve(ctx context.Context) (*solved, error) {
	p := s.problem()
	all := make([]int, p.Units)
	for u := range all {
		all[u] = u
	}
	out := &solved{}
	rule, ok := s.Seconds(all, 0)
	if !ok {
		return nil, fmt.Errorf("kernels: machine %s can't run the kernel of %q", s.m.Name, s.g.Op(s.units[0][0]).Name)
	}
	out.rule, out.schemes, out.kernels = rule, rule, rule
	if p.Units > stitch.MaxUnits {
		out.best = &stitch.Result{Status: milp.Feasible, Stop: milp.StopMemory, Seconds: rule, Bound: math.Min(rule, p.Floor),
			Kernels: []stitch.Kernel{{Units: all}}}
		return out, nil
	}
	var err error
	if out.best, err = stitch.Search(ctx, p, stitch.Options{}); err != nil {
		return nil, err
	}
	if err := p.Check(out.best); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		to  *float64
		opt stitch.Options
	}{{&out.schemes, stitch.Options{Whole: true}}, {&out.kernels, stitch.Options{Rule: true}}} {
		r, err := stitch.Search(ctx, p, part.opt)
		if err != nil {
			return nil, err
		}
		*part.to = r.Seconds
	}
	return out, nil
}

// exact makes the best plan within AStitch's scopes.
func exact(ctx context.Context, g *model.Graph, m *simt.Machine) (*Result, error) {
	scopes, err := rules.Scopes(g, rules.Options{})
	if err != nil {
		return nil, err
	}
	e := &Exact{Status: milp.Optimal}
	known := map[string]*solved{}
	stops := map[string]bool{}
	var list []fusion.Kernel
	for _, sc := range scopes {
		if sc.Library {
			list = append(list, fusion.Library(g, m, sc.Ops[0]))
			continue
		}
		s := newScope(g, m, sc.Ops)
		key := s.signature()
		answer := known[key]
		if answer == nil {
			if answer, err = s.solve(ctx); err != nil {
				return nil, err
			}
			known[key] = answer
		}
		e.Scopes++
		e.Rule += answer.rule
		e.Schemes += answer.schemes
		e.Kernels += answer.kernels
		e.Best += answer.best.Seconds
		e.Bound += answer.best.Bound
		if answer.best.Status == milp.Optimal {
			e.Proven++
		} else {
			e.Status = milp.Feasible
			stops[map[milp.Stop]string{milp.StopTime: "time", milp.StopCancelled: "cancelled",
				milp.StopMemory: "too many sets of operators", milp.StopWork: "too many kernels to price"}[answer.best.Stop]] = true
		}
		for _, k := range answer.best.Kernels {
			kernel, ok := s.kernel(k.Units, k.Choice)
			if !ok {
				return nil, fmt.Errorf("kernels: the kernel of %q can't run", g.Op(s.units[k.Units[0]][0]).Name)
			}
			list = append(list, kernel)
		}
	}
	e.Proof = e.Status.String()
	for _, why := range []string{"time", "cancelled", "too many sets of operators", "too many kernels to price"} {
		if stops[why] {
			e.Proof += " (" + why + ")"
		}
	}
	if e.Bound > 0 {
		e.Gap = e.Rule/e.Bound - 1
	}
	p, err := fusion.Finish("exact", g, m, list, func(from, to model.OpID) string {
		return "a library call between them, or faster apart"
	})
	if err != nil {
		return nil, err
	}
	return &Result{Plan: p, Exact: e}, nil
}
