package whole

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Part is a set of atoms cut in one way.
type Part struct {
	Name      string
	Atoms     []int   // ascending, each once
	Seconds   float64 // however it runs
	Instances []Instance
}

// An Instance is one piece of a part.
type Instance struct {
	OutputBytes, WorkspaceBytes int64
	Labels                      []binding.Label
	Cost                        []float64 // seconds, per label
}

// An Edge says that an instance reads another one's output, if both their parts are chosen.
type Edge struct {
	From, To [2]int // part and number in it
	// Cost[a][b] is in seconds, where From has label a and To has label b.
	Cost [][]float64
}

// A Problem is to choose parts, and order and labels of their instances, at the least total cost.
type Problem struct {
	Name          string
	Atoms         int
	Parts         []Part
	Edges         []Edge
	Apart         [][2]int // parts that can't be chosen together, though they have no atom in common
	CapacityBytes int64    // of the LBs together
	MoveSeconds   float64  // of a byte that is stored or loaded
}

// Validate reports the first thing that makes no sense.
func (p *Problem) Validate() error {
	bad := func(c float64) bool { return math.IsNaN(c) || math.IsInf(c, 0) || c < 0 }
	if bad(p.MoveSeconds) || p.CapacityBytes < 0 {
		return fmt.Errorf("whole: found a capacity of %d bytes and %g seconds to move one, expected finite numbers from 0 on", p.CapacityBytes, p.MoveSeconds)
	}
	for k, o := range p.Parts {
		for i, a := range o.Atoms {
			if a < 0 || a >= p.Atoms || i > 0 && a <= o.Atoms[i-1] {
				return fmt.Errorf("whole: part %d (%q) has atoms %v, expected some of %d, ascending", k, o.Name, o.Atoms, p.Atoms)
			}
		}
		if len(o.Atoms) == 0 || len(o.Instances) == 0 || bad(o.Seconds) {
			return fmt.Errorf("whole: part %d (%q) has %d atoms, %d instances and takes %g s, expected one of each at least and a finite number from 0 on", k, o.Name, len(o.Atoms), len(o.Instances), o.Seconds)
		}
		for q, n := range o.Instances {
			if len(n.Labels) == 0 || len(n.Labels) != len(n.Cost) || slices.ContainsFunc(n.Cost, bad) || n.OutputBytes < 0 || n.WorkspaceBytes < 0 {
				return fmt.Errorf("whole: part %d (%q), instance %d: %d labels, costs %v, %d and %d bytes; expected as many of both, and finite numbers from 0 on", k, o.Name, q, len(n.Labels), n.Cost, n.OutputBytes, n.WorkspaceBytes)
			}
		}
	}
	for k, x := range p.Apart {
		if min(x[0], x[1]) < 0 || max(x[0], x[1]) >= len(p.Parts) || x[0] == x[1] {
			return fmt.Errorf("whole: apart %d names parts %v, expected two of %d", k, x, len(p.Parts))
		}
	}
	there := func(r [2]int) bool {
		return r[0] >= 0 && r[0] < len(p.Parts) && r[1] >= 0 && r[1] < len(p.Parts[r[0]].Instances)
	}
	seen := map[[2][2]int]bool{}
	for k, e := range p.Edges {
		if !there(e.From) || !there(e.To) || overlap(p.Parts[e.From[0]].Atoms, p.Parts[e.To[0]].Atoms) || seen[[2][2]int{e.From, e.To}] {
			return fmt.Errorf("whole: edge %d joins instances %v and %v, expected two of parts that have no atom in common, once", k, e.From, e.To)
		}
		seen[[2][2]int{e.From, e.To}] = true
		from, to := p.at(e.From), p.at(e.To)
		if len(e.Cost) != len(from.Labels) || slices.ContainsFunc(e.Cost, func(row []float64) bool { return len(row) != len(to.Labels) || slices.ContainsFunc(row, bad) }) {
			return fmt.Errorf("whole: edge %d has costs that are not finite numbers from 0 on for %d x %d labels", k, len(from.Labels), len(to.Labels))
		}
	}
	return nil
}

func (p *Problem) at(r [2]int) *Instance { return &p.Parts[r[0]].Instances[r[1]] }

func overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
}

// Joint is the problem that is left with parts chosen; its instances are theirs, part by part.
// It is nil, without an error, if they wait for each other in a circle.
func (p *Problem) Joint(parts []int) (*joint.Problem, error) {
	covered := make([]int, p.Atoms)
	for _, o := range parts {
		if o < 0 || o >= len(p.Parts) {
			return nil, fmt.Errorf("whole: the choice names part %d of %d", o, len(p.Parts))
		}
		for _, a := range p.Parts[o].Atoms {
			covered[a]++
		}
	}
	if a := slices.IndexFunc(covered, func(n int) bool { return n != 1 }); a >= 0 {
		return nil, fmt.Errorf("whole: atom %d is in %d of the parts chosen, expected one", a, covered[a])
	}
	// Sub-graphs of an ordering problem stand in an order in which they can run.
	if parts = p.Arrange(parts); parts == nil {
		return nil, nil
	}
	j := &joint.Problem{SecondsPerCost: p.MoveSeconds, Labels: &binding.Problem{},
		Order: &ordering.Problem{Name: p.Name, CapacityBytes: p.CapacityBytes, StoreCostPerByte: 1, LoadCostPerByte: 1, Subgraphs: []ordering.Subgraph{}, Arcs: []ordering.Arc{}}}
	number := map[[2]int]int{}
	for _, o := range parts {
		for q, n := range p.Parts[o].Instances {
			name := fmt.Sprintf("%s/%d", p.Parts[o].Name, q)
			number[[2]int{o, q}] = len(j.Labels.Nodes)
			j.Labels.Nodes = append(j.Labels.Nodes, binding.Node{Name: name, Labels: n.Labels, Cost: n.Cost})
			j.Order.Subgraphs = append(j.Order.Subgraphs, ordering.Subgraph{Name: name, Instances: 1, OutputBytes: n.OutputBytes, WorkspaceBytes: n.WorkspaceBytes})
		}
	}
	for _, e := range p.Edges {
		from, one := number[e.From]
		to, two := number[e.To]
		if one && two {
			j.Labels.Edges = append(j.Labels.Edges, binding.Edge{From: from, To: to, Cost: e.Cost})
			j.Order.Arcs = append(j.Order.Arcs, ordering.Arc{From: from, To: to, Reads: [][2]int{{0, 1}}})
		}
	}
	return j, nil
}

// Arrange puts parts into an order in which they can run; nil if there is none.
func (p *Problem) Arrange(parts []int) []int {
	for _, x := range p.Apart {
		if slices.Contains(parts, x[0]) && slices.Contains(parts, x[1]) {
			return nil
		}
	}
	var order []int
	waits := map[[2]int]bool{}
	for _, e := range p.Edges {
		waits[[2]int{e.To[0], e.From[0]}] = true
	}
	for left := slices.Clone(parts); len(left) > 0; {
		k := slices.IndexFunc(left, func(o int) bool {
			return !slices.ContainsFunc(left, func(f int) bool { return waits[[2]int{o, f}] })
		})
		if k < 0 {
			return nil
		}
		order, left = append(order, left[k]), slices.Delete(left, k, k+1)
	}
	return order
}

// A Choice is an answer: parts in an order in which they can run, and for their
// instances, part by part, labels and steps.
type Choice struct {
	Parts  []int           `json:"parts"`
	Labels []int           `json:"labels"`
	Steps  []ordering.Step `json:"steps"`
}

// Seconds is the cost of a choice; an error says which rule it breaks.
func (p *Problem) Seconds(c *Choice) (float64, error) {
	j, err := p.Joint(c.Parts)
	if err != nil {
		return 0, err
	}
	if j == nil {
		return 0, fmt.Errorf("whole: the parts %v wait for each other in a circle", c.Parts)
	}
	if err := j.Labels.CheckChoice(c.Labels); err != nil {
		return 0, err
	}
	labels, moves, err := j.Seconds(c.Labels, c.Steps)
	sum := labels + moves
	for _, o := range c.Parts {
		sum += p.Parts[o].Seconds
	}
	return sum, err
}

// Options are what every method takes.
type Options = solve.Options[*Choice]

// A Result is a method's answer. Costs are in seconds of the cost model.
type Result struct {
	Method    string      `json:"method"`
	Status    milp.Status `json:"status"`
	Stop      milp.Stop   `json:"stop"`
	Objective float64     `json:"objective"`      // 0 without an answer
	Bound     float64     `json:"bound"`          // no answer costs less
	Seconds   float64     `json:"seconds"`        // that the method took
	Sets      int         `json:"sets,omitempty"` // of parts that the search has solved
	*Choice               // nil if none is known
}

// Outcome is what the answer says of itself, in seconds of the cost model.
func (r *Result) Outcome() solve.Outcome {
	o := solve.Outcome{Status: r.Status, Objective: r.Objective, Bound: r.Bound, Stop: r.Stop}
	if r.Choice == nil {
		o.Objective = math.Inf(1)
	}
	return o
}

// tolerance is that of package joint.
const tolerance = 1e-9

// finish sets what follows from the best choice known and the bound.
func (r *Result) finish(bound float64, stop milp.Stop) *Result {
	r.Bound = math.Max(bound, 0)
	if r.Choice != nil {
		r.Bound = math.Min(r.Bound, r.Objective)
	} else if math.IsInf(bound, 1) {
		r.Status, r.Stop, r.Bound = milp.Infeasible, milp.Complete, 0
		return r
	}
	r.Status, r.Stop = solve.Judge(r.Choice != nil, r.Choice != nil && r.Objective-r.Bound <= tolerance*r.Objective, stop)
	return r
}

// begin checks the problem and the settings, and takes up the start.
func (p *Problem) begin(method string, opts *Options) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("whole: %w", err)
	}
	r := &Result{Method: method}
	if opts.Start != nil {
		cost, err := p.Seconds(opts.Start)
		if err != nil {
			return nil, fmt.Errorf("whole: the start: %w", err)
		}
		r.Choice, r.Objective = opts.Start, cost
	}
	return r, nil
}

// floor is what a part costs at least.
func (o *Part) floor() float64 {
	sum := o.Seconds
	for _, n := range o.Instances {
		sum += slices.Min(n.Cost)
	}
	return sum
}

// inLB reports whether a label leaves the output in the LB.
func inLB(l binding.Label) bool { return l.Scope == schedule.LB }
