package ordering

import (
	"fmt"

	"github.com/dsasched/dsasched/formulation/milp"
)

// A Verdict is what [Check] recomputes.
type Verdict struct {
	Cost      float64 // of the moves; for [Peak], the capacity that is needed
	PeakBytes int64
	Stores    int
	Loads     int
}

// A RuleError is the first rule that a result breaks.
type RuleError struct {
	Step   int // -1: the result as a whole
	Reason string
}

func (e *RuleError) Error() string {
	if e.Step < 0 {
		return e.Reason
	}
	return fmt.Sprintf("steps[%d]: %s", e.Step, e.Reason)
}

// Check plays a result by the rules of the package and recomputes its cost and peak. The error is a [*RuleError] for
// the first rule that is broken, be it by the order or by what the result claims of it. The problem must be valid.
//
// Check shares nothing with what makes orders: it walks the file's arcs, keeps
// one flag per output and place, and adds up costs as they are paid.
func Check(p *Problem, r *Result) (*Verdict, error) {
	broken := func(step int, format string, args ...any) error {
		return &RuleError{step, fmt.Sprintf(format, args...)}
	}
	if r.Objective != Traffic && r.Objective != Peak {
		return nil, broken(-1, "objective: found %q, expected %q or %q", r.Objective, Traffic, Peak)
	}
	type output struct{ ran, inL1, inLLB bool }
	var state [][]output
	var open [][]int // readers that have not run
	total := 0
	for _, sg := range p.Subgraphs {
		state = append(state, make([]output, sg.Instances))
		open = append(open, make([]int, sg.Instances))
		total += sg.Instances
	}
	into := make([][]Arc, len(p.Subgraphs))
	for _, a := range p.Arcs {
		into[a.To] = append(into[a.To], a)
		for _, read := range a.Reads {
			for i := read[0]; i < read[1]; i++ {
				open[a.From][i]++
			}
		}
	}
	exists := func(ref Ref) bool {
		return ref[0] >= 0 && ref[0] < len(state) && ref[1] >= 0 && ref[1] < len(state[ref[0]])
	}
	switch r.Status {
	case milp.Infeasible:
		return checkInfeasible(p, r, into, exists)
	case milp.Limit:
		if len(r.Steps) > 0 {
			return nil, broken(-1, "status %q with %d steps, expected none", r.Status, len(r.Steps))
		}
		return &Verdict{}, nil
	case milp.Optimal, milp.Feasible:
	default:
		return nil, broken(-1, "status: found %q, expected %q, %q, %q or %q", r.Status, milp.Optimal, milp.Feasible,
			milp.Infeasible, milp.Limit)
	}

	v := &Verdict{}
	var stored, loaded, used int64 // bytes
	size := func(ref Ref) int64 { return p.Subgraphs[ref[0]].OutputBytes }
	at := func(ref Ref) *output { return &state[ref[0]][ref[1]] }
	for n, step := range r.Steps {
		for _, ref := range step.Store {
			switch {
			case !exists(ref):
				return nil, broken(n, "stores %v, which is no instance", ref)
			case !at(ref).inL1:
				return nil, broken(n, "stores the output of %v, which is not in the L1", ref)
			}
			if !at(ref).inLLB {
				stored += size(ref)
			}
			at(ref).inL1, at(ref).inLLB = false, true
			used -= size(ref)
			v.Stores++
		}
		for _, ref := range step.Load {
			switch {
			case !exists(ref):
				return nil, broken(n, "loads %v, which is no instance", ref)
			case at(ref).inL1:
				return nil, broken(n, "loads the output of %v, which is in the L1", ref)
			case !at(ref).inLLB:
				return nil, broken(n, "loads the output of %v, which is not in the LLB", ref)
			}
			loaded += size(ref)
			at(ref).inL1 = true
			used += size(ref)
			v.Loads++
		}
		run := step.Run
		switch {
		case !exists(run):
			return nil, broken(n, "runs %v, which is no instance", run)
		case at(run).ran:
			return nil, broken(n, "runs %v a second time", run)
		}
		for _, a := range into[run[0]] {
			for i := a.Reads[run[1]][0]; i < a.Reads[run[1]][1]; i++ {
				ref := Ref{a.From, i}
				if !at(ref).ran {
					return nil, broken(n, "runs %v before %v, which it reads", run, ref)
				}
				if !at(ref).inL1 {
					return nil, broken(n, "runs %v, which reads the output of %v, and that is not in the L1", run, ref)
				}
			}
		}
		during := used + size(run) + p.Subgraphs[run[0]].WorkspaceBytes
		if r.Objective == Traffic && during > p.CapacityBytes {
			return nil, broken(n, "runs %v with %d bytes in the L1, %d more than its capacity of %d", run, during,
				during-p.CapacityBytes, p.CapacityBytes)
		}
		v.PeakBytes = max(v.PeakBytes, during)
		at(run).ran = true
		if open[run[0]][run[1]] > 0 {
			at(run).inL1 = true
			used += size(run)
		}
		for _, a := range into[run[0]] {
			for i := a.Reads[run[1]][0]; i < a.Reads[run[1]][1]; i++ {
				if open[a.From][i]--; open[a.From][i] == 0 {
					state[a.From][i].inL1, state[a.From][i].inLLB = false, false
					used -= p.Subgraphs[a.From].OutputBytes
				}
			}
		}
	}
	if len(r.Steps) != total {
		return nil, broken(-1, "the order has %d steps, expected one for each of %d instances", len(r.Steps), total)
	}
	v.Cost = exact(p, stored, loaded)
	if r.Objective == Peak {
		if stored+loaded > 0 {
			return nil, broken(-1, "objective %q with %d bytes moved, expected none", Peak, stored+loaded)
		}
		v.Cost = float64(v.PeakBytes)
	}
	switch {
	case r.Cost != v.Cost:
		return nil, broken(-1, "cost: found %v, expected %v", r.Cost, v.Cost)
	case r.PeakBytes != v.PeakBytes:
		return nil, broken(-1, "peak_bytes: found %d, expected %d", r.PeakBytes, v.PeakBytes)
	case !(r.Bound <= r.Cost):
		return nil, broken(-1, "bound: found %v, expected at most the cost of %v", r.Bound, r.Cost)
	case (r.Status == milp.Optimal) != (r.Bound == r.Cost):
		return nil, broken(-1, "status: found %q, but the bound is %v and the cost %v", r.Status, r.Bound, r.Cost)
	}
	return v, nil
}

// exact is the cost of moves without the rounding of a sum.
func exact(p *Problem, stored, loaded int64) float64 {
	unit := p.unit()
	return float64(stored*round(p.StoreCostPerByte*unit)+loaded*round(p.LoadCostPerByte*unit)) / unit
}

func checkInfeasible(p *Problem, r *Result, into [][]Arc, exists func(Ref) bool) (*Verdict, error) {
	e := r.Infeasible
	switch {
	case r.Objective == Peak:
		return nil, &RuleError{-1, "status \"infeasible\" for objective \"peak\", which some capacity always meets"}
	case len(r.Steps) > 0:
		return nil, &RuleError{-1, fmt.Sprintf("status \"infeasible\" with %d steps, expected none", len(r.Steps))}
	case e == nil || !exists(e.Instance):
		return nil, &RuleError{-1, "instance: found none of the problem's, expected the one that does not fit"}
	}
	own := e.Instance
	need := p.Subgraphs[own[0]].OutputBytes + p.Subgraphs[own[0]].WorkspaceBytes
	tensors := map[Ref]bool{own: true}
	for _, a := range into[own[0]] {
		for i := a.Reads[own[1]][0]; i < a.Reads[own[1]][1]; i++ {
			tensors[Ref{a.From, i}] = true
			need += p.Subgraphs[a.From].OutputBytes
		}
	}
	if missing := need - p.CapacityBytes; missing <= 0 || missing != e.MissingBytes {
		return nil, &RuleError{-1, fmt.Sprintf("missing_bytes: found %d, but %v needs %d of %d", e.MissingBytes, own,
			need, p.CapacityBytes)}
	}
	for _, ref := range e.Tensors {
		if !tensors[ref] {
			return nil, &RuleError{-1, fmt.Sprintf("tensors: found %v, which %v does not touch, or a second time", ref, own)}
		}
		delete(tensors, ref)
	}
	if len(tensors) > 0 {
		return nil, &RuleError{-1, fmt.Sprintf("tensors: %d that %v touches are missing", len(tensors), own)}
	}
	return &Verdict{}, nil
}
