package binding

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Label is a choice for an instance: the binding of its first output and the scope of all its outputs.
type Label struct {
	Binding schedule.Binding
	Scope   schedule.Level
	// Output is the binding that the first output really gets: where that uses more cores, the
	// layer that makes it takes its plain binding instead.
	Output schedule.Binding
}

// Equal reports whether both are the same choice.
func (l Label) Equal(o Label) bool { return l.Scope == o.Scope && l.Binding.Equal(o.Binding) }

// find is the label of a binding and a scope, or the first that comes to the same; -1: none.
func find(labels []Label, b schedule.Binding, scope schedule.Level) int {
	same := func(l Label) bool { return l.Scope == scope && l.Binding.Equal(b) }
	if l := slices.IndexFunc(labels, same); l >= 0 {
		return l
	}
	return slices.IndexFunc(labels, func(l Label) bool { return l.Scope == scope && l.Output.Equal(b) })
}

// A Node is an instance with its labels and what each costs by itself.
type Node struct {
	Name   string
	Labels []Label
	Cost   []float64 // seconds, per label
}

// An Edge is a pair of instances of which one reads the other's output.
type Edge struct {
	From, To int
	// Cost[a][b] is in seconds, where From has label a and To has label b.
	Cost [][]float64
}

// A Problem is to give each node one label at the least total cost.
type Problem struct {
	Nodes []Node
	// Edges holds at most one edge for each pair.
	Edges []Edge
}

// Validate reports the first node or edge that makes no sense.
func (p *Problem) Validate() error {
	costs := func(list []float64, at string, args ...any) error {
		for l, c := range list {
			if math.IsNaN(c) || math.IsInf(c, 0) || c < 0 {
				return strict.Wrong(fmt.Sprint(c), "a finite number from 0 on", at+"[%d]", append(args, l)...)
			}
		}
		return nil
	}
	forEach := func(count, node int, at string, args ...any) error {
		if n := p.Nodes[node]; count != len(n.Labels) {
			return strict.Wrong(fmt.Sprint(count),
				fmt.Sprintf("%d, one for each label of node %d (%q)", len(n.Labels), node, n.Name), at, args...)
		}
		return nil
	}
	for i, n := range p.Nodes {
		if len(n.Labels) == 0 {
			return strict.Wrong("none", "at least one", "nodes[%d].labels", i)
		}
		if err := cmp.Or(forEach(len(n.Cost), i, "nodes[%d].cost", i), costs(n.Cost, "nodes[%d].cost", i)); err != nil {
			return err
		}
	}
	seen := map[[2]int]bool{}
	for k, e := range p.Edges {
		for _, end := range []struct {
			field string
			node  int
		}{{"from", e.From}, {"to", e.To}} {
			if end.node < 0 || end.node >= len(p.Nodes) {
				return strict.Wrong(fmt.Sprint(end.node), fmt.Sprintf("a node from 0 to %d", len(p.Nodes)-1), "edges[%d].%s",
					k, end.field)
			}
		}
		pair := [2]int{min(e.From, e.To), max(e.From, e.To)}
		if e.From == e.To || seen[pair] {
			return strict.Wrong(fmt.Sprint(e.To), fmt.Sprintf("another node than %d, and each pair once", e.From),
				"edges[%d].to", k)
		}
		seen[pair] = true
		if err := forEach(len(e.Cost), e.From, "edges[%d].cost", k); err != nil {
			return err
		}
		for a, row := range e.Cost {
			const at = "edges[%d].cost[%d]"
			if err := cmp.Or(forEach(len(row), e.To, at, k, a), costs(row, at, k, a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Seconds is the cost of a choice, one label per node.
func (p *Problem) Seconds(choice []int) float64 {
	sum := 0.0
	for i, n := range p.Nodes {
		sum += n.Cost[choice[i]]
	}
	for _, e := range p.Edges {
		sum += e.Cost[choice[e.From]][choice[e.To]]
	}
	return sum
}

// begin checks the problem and the settings.
func (p *Problem) begin(opts *Options) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := opts.Validate(); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	if opts.Start != nil {
		return p.CheckChoice(opts.Start)
	}
	return nil
}

// CheckChoice verifies that choice has one label of each node.
func (p *Problem) CheckChoice(choice []int) error {
	if len(choice) != len(p.Nodes) {
		return strict.Error("", "choice", fmt.Sprint(len(choice)), fmt.Sprintf("%d labels, one for each node", len(p.Nodes)))
	}
	for i, l := range choice {
		if l < 0 || l >= len(p.Nodes[i].Labels) {
			return strict.Wrong(fmt.Sprint(l), fmt.Sprintf("a label of node %q, 0 to %d", p.Nodes[i].Name,
				len(p.Nodes[i].Labels)-1), "choice[%d]", i)
		}
	}
	return nil
}

// Floor is the bound that needs no work: the least of every summand.
func (p *Problem) Floor() float64 {
	sum := 0.0
	for _, n := range p.Nodes {
		sum += least(n.Cost)
	}
	for _, e := range p.Edges {
		low := math.Inf(1)
		for _, row := range e.Cost {
			low = math.Min(low, least(row))
		}
		sum += low
	}
	return sum
}

func least(costs []float64) float64 {
	low := math.Inf(1)
	for _, c := range costs {
		low = math.Min(low, c)
	}
	return low
}

// Options are the settings of every method; a start is a choice, one label per node.
type Options = solve.Options[[]int]

// A Result is a method's answer.
type Result struct {
	Method    string       `json:"method"`
	Status    milp.Status  `json:"status"`
	Stop      milp.Stop    `json:"stop"`      // a method can also end without a proof
	Objective float64      `json:"objective"` // seconds of the cost model, as Bound; 0 without a choice
	Bound     float64      `json:"bound"`     // no choice costs less
	Seconds   float64      `json:"seconds"`   // that the method took
	Choice    []int        `json:"choice"`    // one label per node; nil if none is known
	Effort    *milp.Effort `json:"program,omitempty"`
}

// Outcome summarises the answer, in seconds of the cost model.
func (r *Result) Outcome() solve.Outcome {
	return solve.Outcome{Status: r.Status, Objective: r.Objective, Bound: r.Bound, Stop: r.Stop}.If(r.Choice != nil)
}

// tolerance is the relative distance within which an objective and a bound are the
// same: sums of thousands of costs in another order differ by less.
const tolerance = 1e-9

// finish sets what follows from choice and bound.
func (p *Problem) finish(choice []int, bound float64, stop milp.Stop) *Result {
	r := &Result{Choice: choice, Bound: bound}
	if choice != nil {
		r.Objective = p.Seconds(choice)
		r.Bound = math.Min(r.Bound, r.Objective)
	}
	r.Status, r.Stop = solve.Judge(choice != nil, r.Objective-r.Bound <= tolerance*r.Objective, stop)
	return r
}

// Judge makes the result of a choice that some other method has made: it costs what
// it costs, and no choice costs less than [Problem.Floor].
func (p *Problem) Judge(choice []int) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := p.CheckChoice(choice); err != nil {
		return nil, err
	}
	r := p.finish(choice, p.Floor(), milp.Complete)
	r.Method = "greedy"
	return r, nil
}

// Prune drops labels that another one of the same node replaces at no more cost,
// whatever the neighbours have: label l goes if for some other label k
//
//	u(k) + sum over edges of max over b of [w(k, b) - w(l, b)] <= u(l)
//
// where b runs over the neighbour's labels that are left (Goldstein's criterion of dead-end elimination). Labels go
// one by one, so that of two equal ones the first stays, and a best choice is left. With sameScope only labels of one
// scope replace each other, so that a best choice is left for every choice of scopes, and whatever a scope costs
// besides. It returns the labels kept, ascending, per node: more of them where the context ends.
func (p *Problem) Prune(ctx context.Context, sameScope bool) [][]int {
	kept := make([][]int, len(p.Nodes))
	for i, n := range p.Nodes {
		for l := range n.Labels {
			kept[i] = append(kept[i], l)
		}
	}
	edges := p.incident()
	replaces := func(i, k, l int) bool {
		more := p.Nodes[i].Cost[k] - p.Nodes[i].Cost[l]
		for _, at := range edges[i] {
			e := &p.Edges[at]
			worst := math.Inf(-1)
			if e.From == i {
				for _, b := range kept[e.To] {
					worst = max(worst, e.Cost[k][b]-e.Cost[l][b])
				}
			} else {
				for _, a := range kept[e.From] {
					worst = max(worst, e.Cost[a][k]-e.Cost[a][l])
				}
			}
			more += worst
		}
		return more <= 0
	}
	settled := make([]bool, len(p.Nodes)) // nothing goes unless a neighbour's label has gone
	for changed := true; changed; {
		changed = false
		for i := range p.Nodes {
			if settled[i] {
				continue
			}
			settled[i] = true
			for at := len(kept[i]) - 1; at >= 0 && ctx.Err() == nil; at-- {
				for k, other := range kept[i] {
					if sameScope && p.Nodes[i].Labels[other].Scope != p.Nodes[i].Labels[kept[i][at]].Scope {
						continue
					}
					if k != at && replaces(i, other, kept[i][at]) {
						kept[i] = append(kept[i][:at:at], kept[i][at+1:]...)
						changed, settled[i] = true, false
						for _, e := range edges[i] {
							settled[p.Edges[e].From], settled[p.Edges[e].To] = false, false
						}
						break
					}
				}
			}
		}
	}
	return kept
}

// incident lists the edges of each node.
func (p *Problem) incident() [][]int {
	at := make([][]int, len(p.Nodes))
	for k, e := range p.Edges {
		at[e.From] = append(at[e.From], k)
		at[e.To] = append(at[e.To], k)
	}
	return at
}

// Restrict is the problem with the kept labels only.
func (p *Problem) Restrict(kept [][]int) *Problem {
	q := &Problem{}
	for i, n := range p.Nodes {
		m := Node{Name: n.Name}
		for _, l := range kept[i] {
			m.Labels = append(m.Labels, n.Labels[l])
			m.Cost = append(m.Cost, n.Cost[l])
		}
		q.Nodes = append(q.Nodes, m)
	}
	for _, e := range p.Edges {
		f := Edge{From: e.From, To: e.To}
		for _, a := range kept[e.From] {
			row := make([]float64, 0, len(kept[e.To]))
			for _, b := range kept[e.To] {
				row = append(row, e.Cost[a][b])
			}
			f.Cost = append(f.Cost, row)
		}
		q.Edges = append(q.Edges, f)
	}
	return q
}

// original carries a choice of the restricted problem back.
func original(choice []int, kept [][]int) []int {
	if choice == nil {
		return nil
	}
	out := make([]int, len(choice))
	for i, l := range choice {
		out[i] = kept[i][l]
	}
	return out
}

// improve changes one node's label at a time as long as that helps, nodes in order, the first of equally good labels.
func (p *Problem) improve(choice []int) []int {
	c := append([]int(nil), choice...)
	edges := p.incident()
	for changed := true; changed; {
		changed = false
		for i, n := range p.Nodes {
			best, at := math.Inf(1), -1
			now := 0.0
			for l := range n.Labels {
				sum := n.Cost[l]
				for _, k := range edges[i] {
					if e := &p.Edges[k]; e.From == i {
						sum += e.Cost[l][c[e.To]]
					} else {
						sum += e.Cost[c[e.From]][l]
					}
				}
				if l == c[i] {
					now = sum
				}
				if sum < best {
					best, at = sum, l
				}
			}
			// A gain within rounding would go round in circles.
			if best < now-tolerance*now {
				c[i], changed = at, true
			}
		}
	}
	return c
}

// Size is the number of labels of all nodes.
func (p *Problem) Size() (n int) {
	for _, node := range p.Nodes {
		n += len(node.Labels)
	}
	return n
}
