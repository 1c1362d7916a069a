package tiling

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/heap"
)

// Space is the tilings of a task as decisions in a row.
type Space struct {
	Decisions int
	// Behind lists the choices for the decision behind some, of which there may be none.
	Behind func(prefix []int) []int
	// Bound is a lower bound on all tilings that begin with these choices; +Inf: none can run.
	Bound func(prefix []int) float64
	// Cost is the cost of a tiling, +Inf if it can't run; an error ends the search.
	Cost func(choices []int) (float64, error)
}

// Found is the best tiling that was found; Choices is nil if none can run.
type Found struct {
	solve.Outcome
	Choices []int
	// Nodes is the number of bounded prefixes, Costs the number of measured tilings.
	Nodes, Costs int64
}

// node is a prefix to look behind.
type node struct {
	prefix []int
	bound  float64
}

// Search is the branch and bound. It goes on behind the prefix of the least bound, so that at any time that bound holds
// for all tilings. Its work is the tilings measured; Start is one to begin from.
func Search(ctx context.Context, s Space, opt solve.Options[[]int]) (*Found, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	f := &Found{}
	f.Objective = math.Inf(1)
	report := opt.Reporter()
	measure := func(choices []int) error {
		f.Costs++
		x, err := s.Cost(choices)
		if err == nil && x < f.Objective {
			f.Objective, f.Choices = x, slices.Clone(choices)
		}
		return err
	}
	if opt.Start != nil {
		if len(opt.Start) != s.Decisions {
			return nil, fmt.Errorf("the start has %d choices, expected %d", len(opt.Start), s.Decisions)
		}
		if err := measure(opt.Start); err != nil {
			return nil, err
		}
		if f.Choices == nil {
			return nil, fmt.Errorf("the start can't run")
		}
	}
	// The least bound first; of equal ones the longest prefix, then the first.
	open := heap.Of(func(a, b node) bool {
		return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(len(b.prefix), len(a.prefix)),
			slices.Compare(a.prefix, b.prefix)) < 0
	})
	open.Push(node{nil, s.Bound(nil)})
	f.Bound = open.First().bound
	for open.Len() > 0 && f.Stop == milp.Complete {
		n := open.Pop()
		if f.Bound = max(f.Bound, n.bound); n.bound >= f.Objective {
			break
		}
		report(f.Objective, f.Bound, false)
		if len(n.prefix) < s.Decisions {
			for _, k := range s.Behind(n.prefix) {
				child := append(slices.Clone(n.prefix), k)
				f.Nodes++
				if b := max(n.bound, s.Bound(child)); b < f.Objective {
					open.Push(node{child, b})
				}
			}
		} else if err := measure(n.prefix); err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			open.Push(n)
		}
		switch why := solve.Why(ctx); {
		case why != milp.Complete:
			f.Stop = why
		case opt.WorkLimit > 0 && f.Costs >= opt.WorkLimit:
			f.Stop = milp.StopWork
		}
	}
	switch {
	case open.Len() == 0 && f.Stop == milp.Complete || f.Bound >= f.Objective:
		f.Bound, f.Stop = f.Objective, milp.Complete
		f.Status = milp.Optimal
		if f.Choices == nil {
			f.Status = milp.Infeasible
		}
	default:
		if open.Len() > 0 {
			f.Bound = max(f.Bound, open.First().bound)
		}
		f.Bound = min(f.Bound, f.Objective)
		f.Status, f.Stop = solve.Judge(f.Choices != nil, false, f.Stop)
	}
	report(f.Objective, f.Bound, true)
	return f, nil
}
