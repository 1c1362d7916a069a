package joint

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/model/schedule"
)

// costUnit is the model's unit of cost in seconds. Solvers take 1e-6 for nothing.
const costUnit = 1e-6

// maxColumns is the size of the program beyond which none is built: the answer is then the start.
const maxColumns = 400_000

// ILPOptions are the settings of [ILP].
type ILPOptions struct {
	Options
	// MaxColumns is the size of the program beyond which it is not solved, so that its first LP, which no limit on work
	// ends, takes no longer; 0 is no limit.
	MaxColumns int
}

// A program is the integer program, with what it takes to read its solution. Steps count from 0. Instances have windows
// of steps, by what must run before and after them; an output's is from its own first step to the last of its readers.
type program struct {
	p      *Problem
	g      *ordering.Graph
	model  *milp.Model
	labels *binding.Program

	first, last, until    []int        // windows
	begun                 [][]milp.Var // z[i][t-first]; 0 before the window, 1 from its last step on
	held, copied, fetched [][]milp.Var // a, c, d; nil for outputs that nothing reads
	crowd                 [][]int      // of each output those that leave no room for it while they run
}

// formulate fails where the program is too large.
func formulate(ctx context.Context, p *Problem, opts Options) (*program, error) {
	f := &program{p: p, g: ordering.NewGraph(p.Order), model: milp.New("joint")}
	n, columns := len(f.g.Refs), 0
	f.first, f.last = f.g.Closures()
	for i, after := range f.last {
		f.last[i] = n - 1 - after
	}
	for i := range n {
		until := f.last[i]
		for _, j := range f.g.Readers[i] {
			until = max(until, f.last[j])
		}
		f.until = append(f.until, until)
		columns += 4 * (until - f.first[i] + 1)
	}
	if columns > maxColumns {
		return nil, fmt.Errorf("joint: the program would have up to %d columns, more than %d", columns, maxColumns)
	}
	f.order()
	f.labels = p.Labels.State(ctx, f.model, true, opts.Start.Choice) // (10) to (12)
	f.moves()
	f.capacity()
	return f, nil
}

// started are terms that add up to 1 if i has run by step t, and a constant.
func (f *program) started(i, t int, sign float64) (terms []milp.Term, constant float64) {
	switch {
	case t < f.first[i]:
		return nil, 0
	case t >= f.last[i]:
		return nil, sign
	}
	return []milp.Term{f.begun[i][t-f.first[i]].Times(sign)}, 0
}

// runs are terms that add up to 1 if step t runs i, and a constant.
func (f *program) runs(i, t int, sign float64) ([]milp.Term, float64) {
	now, a := f.started(i, t, sign)
	then, b := f.started(i, t-1, -sign)
	return append(now, then...), a + b
}

// runAny is the sum of runs over some instances.
func (f *program) runAny(ids []int, t int) (terms []milp.Term, constant float64) {
	for _, i := range ids {
		more, c := f.runs(i, t, 1)
		terms, constant = append(terms, more...), constant+c
	}
	return terms, constant
}

// atMost adds the row: terms and a constant are at most 0.
func (f *program) atMost(name string, terms []milp.Term, constant float64) {
	if len(terms) > 0 {
		f.model.AddLE(name, terms, -constant)
	}
}

// order states (1) to (3).
func (f *program) order() {
	m, n := f.model, len(f.g.Refs)
	for i := range n {
		var list []milp.Var
		for t := f.first[i]; t < f.last[i]; t++ {
			list = append(list, m.Binary(fmt.Sprintf("z[%d,%d]", i, t), 0))
		}
		f.begun = append(f.begun, list)
	}
	for t := range n - 1 {
		var all []milp.Term
		sum := float64(t + 1)
		for i := range n {
			terms, c := f.started(i, t, 1)
			all, sum = append(all, terms...), sum-c
		}
		if len(all) > 0 {
			m.AddEQ(fmt.Sprintf("(1) runs by step %d", t), all, sum)
		}
	}
	for i := range n {
		for t := f.first[i] + 1; t < f.last[i]; t++ {
			f.atMost(fmt.Sprintf("(2) %d stays run at step %d", i, t),
				append(milp.Sum(f.begun[i][t-1-f.first[i]]), f.begun[i][t-f.first[i]].Times(-1)), 0)
		}
		for _, j := range f.g.Readers[i] {
			for t := f.first[j]; t <= f.last[i]; t++ {
				terms, a := f.started(j, t, 1)
				more, b := f.started(i, t-1, -1)
				f.atMost(fmt.Sprintf("(3) %d before %d by step %d", i, j, t), append(terms, more...), a+b)
			}
		}
	}
}

// moves states (4) to (8).
func (f *program) moves() {
	m, g := f.model, f.g
	n := len(g.Refs)
	price := func(units int64) float64 { return float64(units) / g.Unit * f.p.SecondsPerCost / costUnit }
	f.crowd = make([][]int, n)
	for j := range n {
		for i := range n {
			if room := g.Capacity - g.Need(j); g.Output[i] > room && i != j && !slices.Contains(g.Reads[j], i) {
				f.crowd[i] = append(f.crowd[i], j)
			}
		}
	}
	f.held, f.copied, f.fetched = make([][]milp.Var, n), make([][]milp.Var, n), make([][]milp.Var, n)
	for i := range n {
		if len(g.Readers[i]) == 0 {
			continue
		}
		inLLB := []milp.Term{}
		for k, l := range f.labels.Kept[i] {
			if f.p.Labels.Nodes[i].Labels[l].Scope == schedule.LLB {
				inLLB = append(inLLB, f.labels.X[i][k].Times(-1))
			}
		}
		for t := f.first[i]; t <= f.until[i]; t++ {
			at := func(number string) string { return fmt.Sprintf("%s output %d at step %d", number, i, t) }
			name := func(letter string) string { return fmt.Sprintf("%s[%d,%d]", letter, i, t) }
			store := 0.0
			if t == f.until[i] {
				store = price(g.Store[i])
			}
			a, c := m.Binary(name("a"), 0), m.Binary(name("c"), store)
			d := m.Binary(name("d"), price(g.Load[i]))
			// At most one of these runs: one row for them all is tighter than a row for each.
			with, one := f.runAny(append(slices.Clone(g.Readers[i]), i), t)
			f.atMost(at("(4) made or read,"), append(with, a.Times(-1)), one)
			if without, one := f.runAny(f.crowd[i], t); len(without) > 0 || one > 0 {
				f.atMost(at("(5) no room for"), append(without, a.Times(1)), one-1)
			}
			stays := append([]milp.Term{a.Times(1), d.Times(-1)}, inLLB...)
			made, one := f.runs(i, t, -1)
			from, grows := []milp.Term{d.Times(1)}, []milp.Term{c.Times(1)}
			if k := t - 1 - f.first[i]; k >= 0 {
				was, had := f.held[i][k], f.copied[i][k]
				stays, from = append(stays, was.Times(-1)), append(from, had.Times(-1))
				grows = append(grows, had.Times(-1), was.Times(-1))
				f.atMost(at("(8) the copy stays,"), []milp.Term{had.Times(1), c.Times(-1)}, 0)
			}
			f.atMost(at("(6) in the L1,"), append(stays, made...), one)
			f.atMost(at("(7) loaded from a copy,"), from, 0)
			f.atMost(at("(8) copied from the L1,"), grows, 0)
			f.held[i], f.copied[i], f.fetched[i] = append(f.held[i], a), append(f.copied[i], c), append(f.fetched[i], d)
		}
	}
}

// capacity states (9), in a unit that divides all sizes.
func (f *program) capacity() {
	g, grain := f.g, int64(0)
	for i := range g.Refs {
		grain = milp.GCD(milp.GCD(grain, g.Output[i]), g.Work[i])
	}
	grain = max(grain, 1)
	for t := range g.Refs {
		var terms []milp.Term
		used := -float64(g.Capacity / grain)
		for i := range g.Refs {
			during := g.Work[i]
			if f.held[i] == nil {
				during += g.Output[i]
			} else if t >= f.first[i] && t <= f.until[i] {
				terms = append(terms, f.held[i][t-f.first[i]].Times(float64(g.Output[i]/grain)))
			}
			if during > 0 {
				more, c := f.runs(i, t, float64(during/grain))
				terms, used = append(terms, more...), used+c
			}
		}
		f.atMost(fmt.Sprintf("(9) capacity at step %d", t), terms, used)
	}
}

// point is the solution of the program that stands for labels and steps.
func (f *program) point(choice []int, steps []ordering.Step) []float64 {
	x := f.labels.Point(choice)
	id, at := map[ordering.Ref]int{}, make([]int, len(choice))
	for i, ref := range f.g.Refs {
		id[ref] = i
	}
	for t, s := range steps {
		at[id[s.Run]] = t
	}
	for i := range choice {
		for t := max(at[i], f.first[i]); t < f.last[i]; t++ {
			x[f.begun[i][t-f.first[i]]] = 1
		}
	}
	gb, held, copied := f.p.inLLB(choice), make([]bool, len(choice)), make([]bool, len(choice))
	for t, s := range steps {
		for _, ref := range s.Store {
			held[id[ref]], copied[id[ref]] = false, true
		}
		for _, ref := range s.Load {
			i := id[ref]
			held[i] = true
			x[f.fetched[i][t-f.first[i]]] = 1
		}
		ran := id[s.Run]
		held[ran] = true
		for i, vars := range f.held {
			if k := t - f.first[i]; vars != nil && k >= 0 && k < len(vars) {
				if held[i] && !gb[i] || gb[i] && (i == ran || slices.Contains(f.g.Reads[ran], i)) {
					x[vars[k]] = 1
				}
				if copied[i] {
					x[f.copied[i][k]] = 1
				}
			}
		}
		for _, i := range append(slices.Clone(f.g.Reads[ran]), ran) {
			live := false
			for _, j := range f.g.Readers[i] {
				live = live || at[j] > t
			}
			held[i] = held[i] && live
		}
	}
	return x
}

// FromSearch solves the model from what a short search finds, from the start.
func FromSearch(ctx context.Context, p *Problem, opts ILPOptions) (*Result, error) {
	from, err := Search(ctx, p, SearchOptions{Options: Options{WorkLimit: subsets, TimeLimit: opts.TimeLimit,
		Start: opts.Start}, MaxStates: searchStates})
	if err != nil {
		return nil, err
	}
	if from.Infeasible != nil {
		from.Method = "ilp"
		return from, nil
	}
	opts.Start = Start{Choice: from.Choice, Steps: from.Steps}
	return ILP(ctx, p, opts)
}

// ILP solves the model from the start. It needs [Options].Solver.
func ILP(ctx context.Context, p *Problem, opts ILPOptions) (*Result, error) {
	began := time.Now()
	if r, err := p.begin("ilp", &opts.Options); r != nil || err != nil {
		return r, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	r, steps, err := &Result{}, opts.Start.Steps, error(nil)
	if opts.Start.Choice != nil {
		if steps == nil {
			steps, err = p.Sequence(opts.Start.Choice, opts.Start.Order)
		}
		if err == nil {
			err = r.take(p, opts.Start.Choice, steps)
		}
		if err != nil {
			return nil, err
		}
	}
	bound, stop := p.Labels.Floor(), milp.StopMemory
	if f, err := formulate(ctx, p, opts.Options); err != nil {
		opts.Notef("not solved, the answer is the start: %v", err)
	} else if size := f.model.Effort(); opts.MaxColumns > 0 && size.Columns > opts.MaxColumns {
		r.Effort, stop = &size, milp.StopWork
		opts.Notef("not solved, the answer is the start: the program has %d columns, more than %d", size.Columns,
			opts.MaxColumns)
	} else {
		settings := opts.MILP(costUnit)
		if r.Choice != nil {
			settings.Start = f.point(r.Choice, r.Steps)
		}
		sol, err := opts.Program(ctx, f.model, settings, func(sol *milp.Solution) (v solve.Verdict, err error) {
			labels, moves, err := p.Seconds(f.decode(sol))
			if err != nil {
				err = fmt.Errorf("joint: internal error, the program's solution breaks a rule: %w", err)
			}
			return solve.Verdict{Cost: (labels + moves) / costUnit}, err
		})
		if err != nil {
			return nil, err
		}
		switch stop = sol.Stop; {
		case sol.Status.HasValues():
			choice, steps := f.decode(sol)
			if err := r.take(p, choice, steps); err != nil {
				return nil, err
			}
		case sol.Status != milp.Limit:
			return nil, fmt.Errorf("joint: internal error, the solver says %v of a program with a solution", sol.Status)
		}
		if bound = math.Max(bound, sol.Bound*costUnit); sol.Status == milp.Optimal {
			bound = r.Objective // within the solver's tolerance
		}
		r.Effort = sol.Effort.In(costUnit, r.Objective)
	}
	r.finish(bound, stop)
	r.Method, r.Seconds = "ilp", time.Since(began).Seconds()
	return r, nil
}

// take makes labels and steps the answer if they cost less than it.
func (r *Result) take(p *Problem, choice []int, steps []ordering.Step) error {
	labels, moves, err := p.Seconds(choice, steps)
	if err == nil && (r.Choice == nil || labels+moves < r.Objective) {
		r.Choice, r.Steps = choice, steps
		r.LabelSeconds, r.MoveSeconds, r.Objective = labels, moves, labels+moves
	}
	return err
}

// decode reads labels and order. An output with scope L1 that is not held any more
// though something will read it was stored; one that is held again was loaded.
func (f *program) decode(sol *milp.Solution) (choice []int, steps []ordering.Step) {
	choice = f.labels.Decode(sol)
	n := len(choice)
	at, left := make([]int, n), make([]int, n) // step, and readers to run
	for i := range n {
		for at[i] = f.first[i]; at[i] < f.last[i] && sol.Int(f.begun[i][at[i]-f.first[i]]) == 0; {
			at[i]++
		}
		left[i] = len(f.g.Readers[i])
	}
	order := make([]int, n)
	for i, t := range at {
		order[t] = i
	}
	gb, inL1 := f.p.inLLB(choice), make([]bool, n)
	for t, ran := range order {
		var step ordering.Step
		for i := range n {
			if gb[i] || at[i] >= t || left[i] == 0 {
				continue
			}
			switch held := sol.Int(f.held[i][t-f.first[i]]) == 1; {
			case inL1[i] && !held:
				step.Store = append(step.Store, f.g.Refs[i])
				inL1[i] = false
			case !inL1[i] && held:
				step.Load = append(step.Load, f.g.Refs[i])
				inL1[i] = true
			}
		}
		step.Run = f.g.Refs[ran]
		inL1[ran] = true
		for _, j := range f.g.Reads[ran] {
			left[j]--
		}
		steps = append(steps, step)
	}
	return choice, steps
}
