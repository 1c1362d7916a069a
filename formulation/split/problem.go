package split

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
)

// A Group is a set of atoms that may become one sub-graph.
type Group struct {
	Atoms   []int // ascending, each once
	Seconds float64
}

// A Problem is to part the atoms into groups, which can run one after the other, at the least total cost.
type Problem struct {
	// Reads lists, for each atom, those that it reads from, ascending, each once. They all have smaller numbers.
	Reads [][]int
	// Groups to choose from. Each atom must be one by itself, so that there always is
	// an answer; a set of atoms may stand there several times.
	Groups []Group
}

// Validate reports the first atom or group that makes no sense.
func (p *Problem) Validate() error {
	ascending := func(list []int, end int) bool {
		for k, a := range list {
			if a < 0 || a >= end || k > 0 && a <= list[k-1] {
				return false
			}
		}
		return true
	}
	for a, reads := range p.Reads {
		if !ascending(reads, a) {
			return strict.Wrong(fmt.Sprint(reads), "smaller numbers, ascending", "reads[%d]", a)
		}
	}
	alone := make([]bool, len(p.Reads))
	for k, g := range p.Groups {
		if len(g.Atoms) == 0 || !ascending(g.Atoms, len(p.Reads)) {
			return strict.Wrong(fmt.Sprint(g.Atoms), fmt.Sprintf("some of %d atoms, ascending", len(p.Reads)),
				"groups[%d].atoms", k)
		}
		if math.IsNaN(g.Seconds) || math.IsInf(g.Seconds, 0) || g.Seconds < 0 {
			return strict.Wrong(fmt.Sprint(g.Seconds), "a finite number from 0 on", "groups[%d].cost", k)
		}
		if len(g.Atoms) == 1 {
			alone[g.Atoms[0]] = true
		}
	}
	if a := slices.Index(alone, false); a >= 0 {
		return strict.Wrong(fmt.Sprintf("none of atom %d alone", a), "each atom as a group of its own", "groups")
	}
	return nil
}

// Seconds is the cost of a choice of groups.
func (p *Problem) Seconds(choice []int) float64 {
	sum := 0.0
	for _, k := range choice {
		sum += p.Groups[k].Seconds
	}
	return sum
}

// CheckChoice verifies that the groups part the atoms and can run in the order
// given: each reads from itself and from earlier ones.
func (p *Problem) CheckChoice(choice []int) error {
	done := make([]bool, len(p.Reads))
	for i, k := range choice {
		if k < 0 || k >= len(p.Groups) {
			return strict.Wrong(fmt.Sprint(k), fmt.Sprintf("a group, 0 to %d", len(p.Groups)-1), "choice[%d]", i)
		}
		for _, a := range p.Groups[k].Atoms {
			if done[a] {
				return strict.Wrong(fmt.Sprintf("atom %d again, in group %d", a, k), "each atom in one group", "choice[%d]", i)
			}
			done[a] = true
		}
		for _, a := range p.Groups[k].Atoms {
			for _, r := range p.Reads[a] {
				if !done[r] {
					return strict.Wrong(fmt.Sprintf("group %d before atom %d", k, r),
						fmt.Sprintf("it behind, as its atom %d reads that", a), "choice[%d]", i)
				}
			}
		}
	}
	if a := slices.Index(done, false); a >= 0 {
		return strict.Wrong(fmt.Sprintf("no group with atom %d", a), "each atom in one group", "choice")
	}
	return nil
}

// arrange puts groups that part the atoms into an order in which they can run, that of their first atoms as far as
// possible. Without one it returns groups that wait for each other in a circle.
func (p *Problem) arrange(groups []int) (order, circle []int) {
	of := make([]int, len(p.Reads))
	for at, k := range groups {
		for _, a := range p.Groups[k].Atoms {
			of[a] = at
		}
	}
	waits := make([][]int, len(groups)) // for groups, by position
	for a, reads := range p.Reads {
		for _, r := range reads {
			if of[r] != of[a] && !slices.Contains(waits[of[a]], of[r]) {
				waits[of[a]] = append(waits[of[a]], of[r])
			}
		}
	}
	first := make([]int, len(groups))
	for at := range first {
		first[at] = at
	}
	slices.SortFunc(first, func(a, b int) int { return p.Groups[groups[a]].Atoms[0] - p.Groups[groups[b]].Atoms[0] })
	done := make([]bool, len(groups))
	for range groups {
		next := slices.IndexFunc(first, func(at int) bool {
			return !done[at] && !slices.ContainsFunc(waits[at], func(w int) bool { return !done[w] })
		})
		if next < 0 {
			break
		}
		done[first[next]] = true
		order = append(order, groups[first[next]])
	}
	if len(order) == len(groups) {
		return order, nil
	}
	// All that are left wait for one that is left: follow until one comes again.
	at := slices.Index(done, false)
	var path []int
	for !slices.Contains(path, at) {
		path = append(path, at)
		at = waits[at][slices.IndexFunc(waits[at], func(w int) bool { return !done[w] })]
	}
	for _, at := range path[slices.Index(path, at):] {
		circle = append(circle, groups[at])
	}
	return nil, circle
}

// Options are the settings of every method; a start is a choice of groups.
type Options = solve.Options[[]int]

// A Result is a method's answer.
type Result struct {
	Method    string      `json:"method"`
	Status    milp.Status `json:"status"`
	Stop      milp.Stop   `json:"stop"`
	Objective float64     `json:"objective"` // seconds of the cost model, as Bound
	Bound     float64     `json:"bound"`     // no choice costs less
	Seconds   float64     `json:"seconds"`   // that the method took
	// Choice are groups in an order in which they can run; there always is one.
	Choice []int `json:"choice"`
	// States counts the search's sets of atoms.
	States int `json:"states,omitempty"`
	// Effort is of the integer program.
	Effort *milp.Effort `json:"program,omitempty"`
}

// Outcome summarises the answer, in seconds of the cost model.
func (r *Result) Outcome() solve.Outcome {
	return solve.Outcome{Status: r.Status, Objective: r.Objective, Bound: r.Bound, Stop: r.Stop}
}

// tolerance is the relative distance within which an objective and a bound are the
// same: sums of many costs in another order differ by less.
const tolerance = 1e-9

// finish sets what follows from choice and bound.
func (p *Problem) finish(choice []int, bound float64, stop milp.Stop) *Result {
	r := &Result{Choice: choice, Objective: p.Seconds(choice)}
	r.Bound = min(bound, r.Objective)
	r.Status, r.Stop = solve.Judge(true, r.Objective-r.Bound <= tolerance*r.Objective, stop)
	return r
}

// Judge makes the result of a choice that some other method has made: it costs what
// it costs, and the potentials say what no choice is below.
func (p *Problem) Judge(choice []int) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := p.CheckChoice(choice); err != nil {
		return nil, err
	}
	y, _ := p.potentials()
	r := p.finish(choice, total(y), milp.Complete)
	r.Method = "greedy"
	return r, nil
}
