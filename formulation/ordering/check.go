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
	if r.Objective != Traffic && r.Objective != Peak {
		return nil, broken(-1, "objective: found %q, expected %q or %q", r.Objective, Traffic, Peak)
	}
	x := newReferee(p, r.Objective)
	switch r.Status {
	case milp.Infeasible:
		return checkInfeasible(p, r, x.into, x.exists)
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
	for n, step := range r.Steps {
		if err := x.step(n, step); err != nil {
			return nil, err
		}
	}
	if len(r.Steps) != x.instances {
		return nil, broken(-1, "the order has %d steps, expected one for each of %d instances", len(r.Steps), x.instances)
	}
	v := &x.found
	unit := p.unit() // moves cost whole units, without the rounding of a sum
	v.Cost = float64(x.stored*round(p.StoreCostPerByte*unit)+x.loaded*round(p.LoadCostPerByte*unit)) / unit
	if r.Objective == Peak {
		if x.stored+x.loaded > 0 {
			return nil, broken(-1, "objective %q with %d bytes moved, expected none", Peak, x.stored+x.loaded)
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

func broken(step int, format string, args ...any) error {
	return &RuleError{step, fmt.Sprintf(format, args...)}
}

// A referee plays the steps of an order.
type referee struct {
	p         *Problem
	objective Objective
	instances int
	into      [][]Arc // of each sub-graph
	state     [][]output
	open      [][]int // readers that have not run
	// used bytes are in the L1, stored and loaded ones have been moved.
	used, stored, loaded int64
	found                Verdict
}

// output is the state of an instance's result.
type output struct{ ran, inL1, inLLB bool }

func newReferee(p *Problem, objective Objective) *referee {
	x := &referee{p: p, objective: objective, into: make([][]Arc, len(p.Subgraphs))}
	for _, sg := range p.Subgraphs {
		x.state = append(x.state, make([]output, sg.Instances))
		x.open = append(x.open, make([]int, sg.Instances))
		x.instances += sg.Instances
	}
	for _, a := range p.Arcs {
		x.into[a.To] = append(x.into[a.To], a)
		for _, read := range a.Reads {
			for i := read[0]; i < read[1]; i++ {
				x.open[a.From][i]++
			}
		}
	}
	return x
}

func (x *referee) exists(ref Ref) bool {
	return ref[0] >= 0 && ref[0] < len(x.state) && ref[1] >= 0 && ref[1] < len(x.state[ref[0]])
}

func (x *referee) size(ref Ref) int64 { return x.p.Subgraphs[ref[0]].OutputBytes }
func (x *referee) at(ref Ref) *output { return &x.state[ref[0]][ref[1]] }

// step plays step n: stores, loads and a run.
func (x *referee) step(n int, step Step) error {
	for _, ref := range step.Store {
		switch {
		case !x.exists(ref):
			return broken(n, "stores %v, which is no instance", ref)
		case !x.at(ref).inL1:
			return broken(n, "stores the output of %v, which is not in the L1", ref)
		}
		if !x.at(ref).inLLB {
			x.stored += x.size(ref)
		}
		x.at(ref).inL1, x.at(ref).inLLB = false, true
		x.used -= x.size(ref)
		x.found.Stores++
	}
	for _, ref := range step.Load {
		switch {
		case !x.exists(ref):
			return broken(n, "loads %v, which is no instance", ref)
		case x.at(ref).inL1:
			return broken(n, "loads the output of %v, which is in the L1", ref)
		case !x.at(ref).inLLB:
			return broken(n, "loads the output of %v, which is not in the LLB", ref)
		}
		x.loaded += x.size(ref)
		x.at(ref).inL1 = true
		x.used += x.size(ref)
		x.found.Loads++
	}
	return x.run(n, step.Run)
}

// run plays the run of an instance at step n.
func (x *referee) run(n int, run Ref) error {
	switch {
	case !x.exists(run):
		return broken(n, "runs %v, which is no instance", run)
	case x.at(run).ran:
		return broken(n, "runs %v a second time", run)
	}
	for _, a := range x.into[run[0]] {
		for i := a.Reads[run[1]][0]; i < a.Reads[run[1]][1]; i++ {
			ref := Ref{a.From, i}
			if !x.at(ref).ran {
				return broken(n, "runs %v before %v, which it reads", run, ref)
			}
			if !x.at(ref).inL1 {
				return broken(n, "runs %v, which reads the output of %v, and that is not in the L1", run, ref)
			}
		}
	}
	during := x.used + x.size(run) + x.p.Subgraphs[run[0]].WorkspaceBytes
	if x.objective == Traffic && during > x.p.CapacityBytes {
		return broken(n, "runs %v with %d bytes in the L1, %d more than its capacity of %d", run, during,
			during-x.p.CapacityBytes, x.p.CapacityBytes)
	}
	x.found.PeakBytes = max(x.found.PeakBytes, during)
	x.at(run).ran = true
	if x.open[run[0]][run[1]] > 0 {
		x.at(run).inL1 = true
		x.used += x.size(run)
	}
	for _, a := range x.into[run[0]] {
		for i := a.Reads[run[1]][0]; i < a.Reads[run[1]][1]; i++ {
			ref := Ref{a.From, i}
			if x.open[a.From][i]--; x.open[a.From][i] == 0 {
				x.at(ref).inL1, x.at(ref).inLLB = false, false
				x.used -= x.size(ref)
			}
		}
	}
	return nil
}

func checkInfeasible(p *Problem, r *Result, into [][]Arc, exists func(Ref) bool) (*Verdict, error) {
	e := r.Infeasible
	switch {
	case r.Objective == Peak:
		return nil, broken(-1, "status %q for objective %q, which some capacity always meets", milp.Infeasible, Peak)
	case len(r.Steps) > 0:
		return nil, broken(-1, "status %q with %d steps, expected none", r.Status, len(r.Steps))
	case e == nil || !exists(e.Instance):
		return nil, broken(-1, "instance: found none of the problem's, expected the one that does not fit")
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
		return nil, broken(-1, "missing_bytes: found %d, but %v needs %d of %d", e.MissingBytes, own, need, p.CapacityBytes)
	}
	for _, ref := range e.Tensors {
		if !tensors[ref] {
			return nil, broken(-1, "tensors: found %v, which %v does not touch, or a second time", ref, own)
		}
		delete(tensors, ref)
	}
	if len(tensors) > 0 {
		return nil, broken(-1, "tensors: %d that %v touches are missing", len(tensors), own)
	}
	return &Verdict{}, nil
}
