package joint

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/internal/strict"
	"github.com/dsasched/dsasched/model/schedule"
)

// file is a problem as JSON: the two that it joins, in their own formats, and the price of a move.
type file struct {
	Order ordering.Problem `json:"order"`
	// Labels are words whose last one is the scope, L1 or LLB; costs are in nanoseconds.
	Labels             binding.File `json:"labels"`
	NanosecondsPerCost float64      `json:"nanoseconds_per_cost"`
}

// mostInstances and mostNanoseconds are limits of a file: closures take the square of the one, and sums with the other
// stay finite.
const mostInstances, mostNanoseconds = 20_000, 1 << 40

// Load reads a problem from a file.
func Load(path string) (*Problem, error) { return safefile.Load(path, Read) }

// Read reads and validates a problem. Errors are of one line and name file and field.
func Read(name string, data []byte) (*Problem, error) {
	var f file
	if err := strict.Decode(name, data, &f); err != nil {
		return nil, err
	}
	if err := f.Order.Validate(); err != nil {
		return nil, strict.In(name, "order.", err)
	}
	n := 0
	for _, sg := range f.Order.Subgraphs {
		n += sg.Instances
	}
	if n != len(f.Labels.Nodes) || n > mostInstances {
		return nil, strict.Error(name, "labels.nodes", fmt.Sprint(len(f.Labels.Nodes)),
			fmt.Sprintf("%d, one for each instance of order.subgraphs, at most %d", n, mostInstances))
	}
	if k := f.NanosecondsPerCost; k < 0 || k > mostNanoseconds {
		return nil, strict.Error(name, "nanoseconds_per_cost", fmt.Sprint(k), fmt.Sprintf("0 to %d", int64(mostNanoseconds)))
	}
	labels, given, err := f.Labels.Problem(name)
	if err != nil {
		return nil, strict.In(name, "labels.", err)
	}
	seconds := func(costs []float64) {
		for i := range costs {
			costs[i] *= 1e-9
		}
	}
	for i, node := range f.Labels.Nodes {
		seconds(labels.Nodes[i].Cost)
		for l, words := range node.Labels {
			label := &labels.Nodes[i].Labels[l]
			switch words[strings.LastIndexByte(words, ' ')+1:] {
			case schedule.L1.String():
				label.Scope = schedule.L1
			case schedule.LLB.String():
				label.Scope = schedule.LLB
			default:
				return nil, strict.Error(name, fmt.Sprintf("labels.nodes[%d].labels[%d]", i, l), strict.Quote(words),
					"words of which the last is L1 or LLB")
			}
		}
	}
	for _, e := range labels.Edges {
		for _, row := range e.Cost {
			seconds(row)
		}
	}
	p := &Problem{Order: &f.Order, Labels: labels, SecondsPerCost: f.NanosecondsPerCost * 1e-9, Given: given}
	if err := p.Validate(); err != nil {
		return nil, strict.In(name, "", err)
	}
	return p, nil
}

// File is the problem as [Read] reads it; costs of labels are rounded to nanoseconds.
func (p *Problem) File() ([]byte, error) {
	data, err := json.Marshal(file{*p.Order, p.Labels.File(p.Order.Name, p.Given), p.SecondsPerCost * 1e9})
	return append(data, '\n'), err
}

// LoadStart reads choice and steps of an answer, and refuses those that break a rule of the problem.
func LoadStart(path string, p *Problem) (Start, error) {
	data, err := safefile.Read(path)
	if err != nil {
		return Start{}, err
	}
	var a struct {
		Choice []int           `json:"choice"`
		Steps  []ordering.Step `json:"steps"`
		Rest   strict.Rest     `json:"*"`
	}
	if err := strict.Decode(path, data, &a); err != nil {
		return Start{}, err
	}
	if _, _, err := p.Seconds(a.Choice, a.Steps); err != nil {
		return Start{}, strict.In(path, "", err)
	}
	number := map[ordering.Ref]int{}
	for i, ref := range ordering.NewGraph(p.Order).Refs {
		number[ref] = i
	}
	start := Start{Choice: a.Choice, Steps: a.Steps}
	for _, s := range a.Steps {
		start.Order = append(start.Order, number[s.Run])
	}
	return start, nil
}

// run is a method's function.
type run = func(ctx context.Context, p *Problem, opts Options) (*Result, error)

// The search that gives the program its incumbent looks at so many subsets of scopes, and at most at searchStates
// states for one order.
const subsets, searchStates = 4, 200_000

var rows = solve.Table[run]{
	{Method: solve.Method{Name: "greedy", Description: "the labels given, in the order of Algorithm 3"},
		Run: func(_ context.Context, p *Problem, opts Options) (*Result, error) {
			r, err := p.begin("greedy", &opts)
			if r != nil || err != nil {
				return r, err
			}
			start, err := p.greedy()
			if err != nil {
				return nil, err
			}
			r = &Result{Method: "greedy"}
			if start.Steps != nil {
				err = r.take(p, start.Choice, start.Steps)
			}
			return r.finish(p.Labels.Floor(), 0), err
		}},
	{Method: solve.Method{Name: "ilp", Description: "integer program over labels and steps", Exact: true,
		NeedsSolver: true}, Run: func(ctx context.Context, p *Problem, opts Options) (*Result, error) {
		return FromSearch(ctx, p, ILPOptions{Options: opts})
	}},
	{Method: solve.Method{Name: "search", Description: "branch and bound over scopes", Exact: true},
		Run: func(ctx context.Context, p *Problem, opts Options) (*Result, error) {
			return Search(ctx, p, SearchOptions{Options: opts, MaxStates: searchStates})
		}},
}

// greedy has the labels given, in the depth-first order of Algorithm 3.
func (p *Problem) greedy() (Start, error) {
	start := Start{Choice: p.Given}
	order, err := ordering.Order(ordering.NewGraph(p.Order), ordering.DFS)
	if err == nil {
		start.Order = order
		start.Steps, err = p.Sequence(start.Choice, order)
	}
	return start, err
}

// Methods lists the methods.
func Methods() []solve.Method { return rows.Methods() }

// Solve answers a problem with given labels by the method of that name. Without a start the exact ones begin from the
// greedy answer. A problem without an order is an answer, not an error.
func Solve(ctx context.Context, p *Problem, method string, opts Options) (*Result, error) {
	m, err := rows.Find(method, opts.Solver)
	if err != nil {
		return nil, fmt.Errorf("joint: %w", err)
	}
	if opts.Start.Choice == nil && p.Validate() == nil && ordering.NewGraph(p.Order).Feasible() == nil {
		if start, err := p.greedy(); err == nil && start.Steps != nil {
			opts.Start = start
		}
	}
	return m.Run(ctx, p, opts)
}
