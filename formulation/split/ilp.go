package split

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// unit is the model's unit of cost in seconds. Solvers take 1e-6 for nothing.
const unit = 1e-6

// pairLimit is the largest number of constraints (2).
const pairLimit = 200_000

// program is the model with what it takes to read its solution.
type program struct {
	p     *Problem
	kept  []int // groups, ascending
	model *milp.Model
	x     []milp.Var
}

// Formulate builds the model of the package's documentation, without constraints (3).
func Formulate(p *Problem, opts Options) (*milp.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	pr := formulate(p, opts, nil)
	return pr.model, pr.model.Err()
}

func formulate(p *Problem, opts Options, circles [][]int) *program {
	pr := &program{p: p, kept: p.prune(), model: milp.New("split")}
	// The start's groups stay, or the solver could not be given it.
	for _, k := range opts.Start {
		if at, there := slices.BinarySearch(pr.kept, k); !there {
			pr.kept = slices.Insert(pr.kept, at, k)
		}
	}
	m := pr.model
	of := make([][]milp.Var, len(p.Reads))
	for _, k := range pr.kept {
		v := m.Binary(fmt.Sprintf("x[%d]", k), p.Groups[k].Seconds/unit)
		pr.x = append(pr.x, v)
		for _, a := range p.Groups[k].Atoms {
			of[a] = append(of[a], v)
		}
	}
	for a, vars := range of {
		m.AddEQ(fmt.Sprintf("(1) one group[%d]", a), milp.Sum(vars...), 1)
	}
	for _, pair := range pr.pairs() {
		m.AddLE(fmt.Sprintf("(2) not both[%d,%d]", pr.kept[pair[0]], pr.kept[pair[1]]),
			milp.Sum(pr.x[pair[0]], pr.x[pair[1]]), 1)
	}
	for n, circle := range circles {
		var vars []milp.Var
		for at, k := range pr.kept {
			if slices.Contains(circle, k) {
				vars = append(vars, pr.x[at])
			}
		}
		m.AddLE(fmt.Sprintf("(3) no circle[%d]", n), milp.Sum(vars...), float64(len(circle)-1))
	}
	return pr
}

// pairs lists, by position in kept, the pairs of groups without an atom in common
// that read each other; at most pairLimit of them.
func (pr *program) pairs() [][2]int {
	n := len(pr.p.Reads)
	// Intervals run in the order of the atoms: of a pair that read each other at least one is none.
	sets, needs := make([][]uint64, len(pr.kept)), make([][]uint64, len(pr.kept))
	interval := make([]bool, len(pr.kept))
	for i, k := range pr.kept {
		atoms := pr.p.Groups[k].Atoms
		interval[i] = atoms[len(atoms)-1]-atoms[0]+1 == len(atoms)
		sets[i] = bits(n, atoms)
		var reads []int
		for _, a := range atoms {
			reads = append(reads, pr.p.Reads[a]...)
		}
		needs[i] = bits(n, reads)
	}
	meet := func(a, b []uint64) bool {
		for w := range a {
			if a[w]&b[w] != 0 {
				return true
			}
		}
		return false
	}
	var pairs [][2]int
	for i := range pr.kept {
		if interval[i] {
			continue
		}
		for j := range pr.kept {
			if (!interval[j] && j <= i) || meet(sets[i], sets[j]) || !meet(sets[i], needs[j]) || !meet(sets[j], needs[i]) {
				continue
			}
			if pairs = append(pairs, [2]int{i, j}); len(pairs) == pairLimit {
				return pairs
			}
		}
	}
	return pairs
}

func (pr *program) point(choice []int) []float64 {
	values := make([]float64, pr.model.NumVars())
	for _, k := range choice {
		at, _ := slices.BinarySearch(pr.kept, k)
		values[pr.x[at]] = 1
	}
	return values
}

func (pr *program) decode(sol *milp.Solution) []int {
	var groups []int
	for at, v := range pr.x {
		if sol.Int(v) == 1 {
			groups = append(groups, pr.kept[at])
		}
	}
	return groups
}

// integerProgram solves the model, and again with a constraint (3) more for each circle that
// its answer has, until there is none. It needs [Options].Solver.
func integerProgram(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	began := time.Now()
	y, best, err := p.begin(&opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	opts.Start = best
	bound, effort := total(y), milp.Effort{}
	finish := func(stop milp.Stop) *Result {
		r := p.finish(best, bound, stop)
		r.Method, r.Seconds = "ilp", time.Since(began).Seconds()
		if effort.Columns > 0 {
			r.Effort = effort.In(unit, r.Objective)
		}
		return r
	}
	var circles [][]int
	for {
		if stop := solve.Why(ctx); stop != milp.Complete {
			return finish(stop), nil
		}
		pr := formulate(p, opts, circles)
		if err := pr.model.Err(); err != nil {
			return nil, err
		}
		settings := opts.MILP(unit)
		settings.Start = pr.point(opts.Start)
		sol, err := opts.Program(ctx, pr.model, settings, func(sol *milp.Solution) (solve.Verdict, error) {
			return solve.Verdict{Cost: p.Seconds(pr.decode(sol)) / unit}, nil
		})
		if err != nil {
			return nil, err
		}
		if sol.Status != milp.Optimal && sol.Status != milp.Feasible && sol.Status != milp.Limit {
			return nil, fmt.Errorf("split: the solver says %v, but there always is a choice", sol.Status)
		}
		effort = sol.Effort // with all circles
		if !math.IsInf(sol.Bound, 0) {
			bound = max(bound, sol.Bound*unit)
		}
		var circle []int
		if sol.Status.HasValues() {
			groups := pr.decode(sol)
			var order []int
			if order, circle = p.arrange(groups); circle == nil {
				if err := p.CheckChoice(order); err != nil {
					return nil, errors.Join(errors.New("split: the solver's answer is none"), err)
				}
				if p.Seconds(order) < p.Seconds(best) {
					best = order
				}
			}
		}
		if circle == nil && sol.Status == milp.Optimal {
			bound = p.Seconds(best) // within the solver's tolerance
		}
		if circle == nil || sol.Status != milp.Optimal {
			return finish(sol.Stop), nil
		}
		circles = append(circles, circle)
	}
}
