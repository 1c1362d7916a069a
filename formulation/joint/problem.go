package joint

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Problem is to choose labels and an order of the same instances.
type Problem struct {
	Order *ordering.Problem
	// Labels has a node for each instance of Order, sub-graph by sub-graph.
	Labels *binding.Problem
	// SecondsPerCost is the time of a cost of 1 in Order, in seconds (kappa).
	SecondsPerCost float64
	// Given are labels for comparison, Algorithm 4's; nil: none.
	Given []int
}

// Validate reports the first thing that makes no sense.
func (p *Problem) Validate() error {
	if p.Order == nil || p.Labels == nil {
		return fmt.Errorf("joint: a problem without %s", map[bool]string{true: "an order", false: "labels"}[p.Order == nil])
	}
	if err := p.Order.Validate(); err != nil {
		return err
	}
	if err := p.Labels.Validate(); err != nil {
		return err
	}
	n := 0
	for _, sg := range p.Order.Subgraphs {
		n += sg.Instances
	}
	if n != len(p.Labels.Nodes) {
		return fmt.Errorf("joint: %d instances to order and %d to label, expected as many", n, len(p.Labels.Nodes))
	}
	if k := p.SecondsPerCost; math.IsNaN(k) || math.IsInf(k, 0) || k < 0 {
		return fmt.Errorf("joint: a move costs %g seconds per unit, expected a finite number from 0 on", k)
	}
	for i, node := range p.Labels.Nodes {
		for l, label := range node.Labels {
			if label.Scope != schedule.L1 && label.Scope != schedule.LLB {
				return fmt.Errorf("joint: node %d (%q): label %d has scope %v, expected L1 or LLB", i, node.Name, l, label.Scope)
			}
		}
	}
	return nil
}

// inLLB reports whose output has scope LLB under a choice of labels.
func (p *Problem) inLLB(choice []int) []bool {
	llb := make([]bool, len(choice))
	for i, l := range choice {
		llb[i] = p.Labels.Nodes[i].Labels[l].Scope == schedule.LLB
	}
	return llb
}

// moves is the ordering problem that scopes leave of some instances, with each of them a sub-graph of its own.
// What they read of others is workspace.
func (p *Problem) moves(g *ordering.Graph, llb []bool, ids []int) *ordering.Problem {
	q := &ordering.Problem{Name: p.Order.Name, CapacityBytes: p.Order.CapacityBytes,
		StoreCostPerByte: p.Order.StoreCostPerByte, LoadCostPerByte: p.Order.LoadCostPerByte}
	at := map[int]int{}
	for k, i := range ids {
		at[i] = k
	}
	for k, i := range ids {
		sg := ordering.Subgraph{Instances: 1, OutputBytes: g.Output[i], WorkspaceBytes: g.Work[i]}
		if llb[i] {
			sg.OutputBytes, sg.WorkspaceBytes = 0, sg.WorkspaceBytes+sg.OutputBytes
		}
		for _, r := range g.Reads[i] {
			from, inside := at[r]
			if inside {
				q.Arcs = append(q.Arcs, ordering.Arc{From: from, To: k, Reads: [][2]int{{0, 1}}})
			}
			if llb[r] || !inside {
				sg.WorkspaceBytes += g.Output[r]
			}
		}
		q.Subgraphs = append(q.Subgraphs, sg)
	}
	return q
}

// A Start is an answer to begin from: labels, and an order of all instances, each nil for none. Labels alone count
// with the topological order. The program can begin with an order's moves, too.
type Start struct {
	Choice, Order []int
	Steps         []ordering.Step
}

// Options are the settings of every method.
type Options = solve.Options[Start]

// A Result is a method's answer. Costs are in seconds of the cost model.
type Result struct {
	Method string      `json:"method"`
	Status milp.Status `json:"status"`
	Stop   milp.Stop   `json:"stop"`
	// Objective is 0 without an answer.
	Objective float64 `json:"objective"`
	Bound     float64 `json:"bound"` // no answer costs less
	// LabelSeconds and MoveSeconds add up to Objective.
	LabelSeconds float64 `json:"label_seconds"`
	MoveSeconds  float64 `json:"move_seconds"`
	Seconds      float64 `json:"seconds"`            // that the method took
	Branches     int     `json:"branches,omitempty"` // subsets of scopes that the search has looked at
	Choice       []int   `json:"choice"`             // one label per instance; nil if none is known
	// Steps are the order with its moves; they leave out outputs with scope LLB.
	Steps []ordering.Step `json:"steps"`
	// Infeasible is the proof that there is no order, for status Infeasible.
	Infeasible *ordering.InfeasibleError `json:"infeasible,omitempty"`
	// Effort is of the integer program.
	Effort *milp.Effort `json:"program,omitempty"`
}

// Outcome summarises the answer, in seconds of the cost model.
func (r *Result) Outcome() solve.Outcome {
	return solve.Outcome{Status: r.Status, Objective: r.Objective, Bound: r.Bound, Stop: r.Stop}.If(r.Choice != nil)
}

// tolerance is the relative distance within which an objective and a bound are the
// same: sums in another order differ by less.
const tolerance = 1e-9

// finish sets what follows from the answer and the bound.
func (r *Result) finish(bound float64, stop milp.Stop) *Result {
	r.Bound, r.Steps = math.Max(bound, 0), slices.Clone(r.Steps)
	for t, s := range r.Steps { // lists in JSON, which [LoadStart] reads
		r.Steps[t].Store, r.Steps[t].Load = append([]ordering.Ref{}, s.Store...), append([]ordering.Ref{}, s.Load...)
	}
	if r.Choice != nil {
		r.Bound = math.Min(r.Bound, r.Objective)
	}
	r.Status, r.Stop = solve.Judge(r.Choice != nil, r.Objective-r.Bound <= tolerance*r.Objective, stop)
	return r
}

// begin checks the problem and the settings. If no order fits, it gives the answer.
func (p *Problem) begin(method string, opts *Options) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("joint: %w", err)
	}
	if opts.Start.Choice != nil {
		if err := p.Labels.CheckChoice(opts.Start.Choice); err != nil {
			return nil, err
		}
	}
	g := ordering.NewGraph(p.Order)
	var infeasible *ordering.InfeasibleError
	if err := g.Feasible(); errors.As(err, &infeasible) {
		return &Result{Method: method, Status: milp.Infeasible, Infeasible: infeasible}, nil
	}
	if opts.Start.Order != nil {
		if _, _, _, err := ordering.Sequence(g, opts.Start.Order, ordering.Traffic); err != nil {
			return nil, fmt.Errorf("joint: the start: %w", err)
		}
	}
	return nil, nil
}

// Sequence is a fixed order, nil for the topological one, with the moves that the scopes of a choice leave it, made
// as needed, the output with the longest remaining lifetime first
// ([ordering.Sequence]). Without an order that fits, steps is nil.
func (p *Problem) Sequence(choice, order []int) ([]ordering.Step, error) {
	if err := p.Labels.CheckChoice(choice); err != nil {
		return nil, err
	}
	g := ordering.NewGraph(p.Order)
	if order == nil {
		order = g.Topological()
	}
	llb := p.inLLB(choice)
	r, err := ordering.Fixed("fixed", ordering.NewGraph(p.moves(g, llb, g.ByID())), order, ordering.Traffic)
	if err != nil || !r.HasOrder() {
		return nil, err
	}
	return original(g, llb, r.Steps), nil
}

// original carries steps of [Problem.moves] back, where each instance is a sub-graph,
// without the outputs that have no size there.
func original(g *ordering.Graph, llb []bool, steps []ordering.Step) []ordering.Step {
	refs := func(moved []ordering.Ref) []ordering.Ref {
		var out []ordering.Ref
		for _, ref := range moved {
			if i := ref[0]; !llb[i] {
				out = append(out, g.Refs[i])
			}
		}
		return out
	}
	out := make([]ordering.Step, 0, len(steps))
	for _, s := range steps {
		out = append(out, ordering.Step{Store: refs(s.Store), Load: refs(s.Load), Run: g.Refs[s.Run[0]]})
	}
	return out
}

// Seconds plays labels and steps by the rules of the package and adds up what they
// cost: labels, and moves of outputs with scope L1. The error names the first step
// that breaks a rule. It shares nothing with the methods. The problem must be valid.
func (p *Problem) Seconds(choice []int, steps []ordering.Step) (labels, moves float64, err error) {
	if err := p.Labels.CheckChoice(choice); err != nil {
		return 0, 0, err
	}
	g := ordering.NewGraph(p.Order)
	id := map[ordering.Ref]int{}
	for i, ref := range g.Refs {
		id[ref] = i
	}
	llb := p.inLLB(choice)
	ran, inL1, copied := make([]bool, len(llb)), make([]bool, len(llb)), make([]bool, len(llb))
	units := int64(0)
	for n, s := range steps {
		bad := func(field string, found, expected any) error {
			return strict.Wrong(fmt.Sprint(found), fmt.Sprint(expected), "steps[%d].%s", n, field)
		}
		for _, ref := range s.Store {
			i, known := id[ref]
			if !known || llb[i] || !inL1[i] {
				return 0, 0, bad("store", ref, "an output that is in the L1")
			}
			if !copied[i] {
				units += g.Store[i]
			}
			inL1[i], copied[i] = false, true
		}
		for _, ref := range s.Load {
			i, known := id[ref]
			if !known || llb[i] || inL1[i] || !copied[i] {
				return 0, 0, bad("load", ref, "an output that was stored, and is not in the L1")
			}
			units += g.Load[i]
			inL1[i] = true
		}
		i, known := id[s.Run]
		if !known || ran[i] {
			return 0, 0, bad("run", s.Run, "an instance that has not run")
		}
		used := g.Output[i] + g.Work[i]
		for j, in := range inL1 {
			if in {
				used += g.Output[j]
			}
		}
		for _, r := range g.Reads[i] {
			switch {
			case !ran[r]:
				return 0, 0, bad("run", s.Run, fmt.Sprintf("%v before it, which it reads", g.Refs[r]))
			case llb[r]:
				used += g.Output[r]
			case !inL1[r]:
				return 0, 0, bad("run", s.Run, fmt.Sprintf("%v in the L1, which it reads", g.Refs[r]))
			}
		}
		if used > g.Capacity {
			return 0, 0, bad("run", fmt.Sprintf("%v with %d bytes in the L1", s.Run, used),
				fmt.Sprintf("at most %d", g.Capacity))
		}
		ran[i] = true
		inL1[i] = !llb[i]
		for j, in := range inL1 {
			live := false
			for _, r := range g.Readers[j] {
				live = live || !ran[r]
			}
			inL1[j] = in && live
		}
	}
	if len(steps) != len(llb) {
		return 0, 0, strict.Error("", "steps", fmt.Sprint(len(steps)), fmt.Sprintf("%d, one for each instance", len(llb)))
	}
	return p.Labels.Seconds(choice), float64(units) / g.Unit * p.SecondsPerCost, nil
}
