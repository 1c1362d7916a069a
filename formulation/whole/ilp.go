package whole

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
)

// costUnit is the model's unit of cost in seconds. Solvers take 1e-6 for nothing.
const costUnit = 1e-6

// MaxCells is how many variables Formulate makes at most.
const MaxCells = 1_000_000

// A program is the model of the package's documentation, with what it takes to read its
// solution. Instances are numbered part by part, steps from 0.
type program struct {
	p     *Problem
	model *milp.Model
	ids   [][2]int // part and number of each instance
	steps int

	part                  []milp.Var   // p[o]
	run                   [][]milp.Var // x[i][t]
	held, copied, fetched [][]milp.Var // a, c, d; nil for outputs that nothing may read
	label                 [][]milp.Var // y[i][l]
}

// Formulate builds the model.
func Formulate(p *Problem) (*milp.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	f, err := formulate(p)
	if err != nil {
		return nil, err
	}
	return f.model, f.model.Err()
}

// most is the largest number of instances of any set of parts, or more: each atom brings
// its share of the part with most instances to an atom.
func (p *Problem) most() int {
	share := make([]float64, p.Atoms)
	for _, o := range p.Parts {
		for _, a := range o.Atoms {
			share[a] = math.Max(share[a], float64(len(o.Instances))/float64(len(o.Atoms)))
		}
	}
	sum := 0.0
	for _, s := range share {
		sum += s
	}
	return int(sum + 1e-9)
}

func formulate(p *Problem) (*program, error) {
	f := &program{p: p, model: milp.New("whole", milp.Minimize), steps: p.most()}
	number := map[[2]int]int{}
	for o := range p.Parts {
		f.part = append(f.part, f.model.Binary(fmt.Sprintf("p[%d]", o), p.Parts[o].Seconds/costUnit))
		for q := range p.Parts[o].Instances {
			number[[2]int{o, q}] = len(f.ids)
			f.ids = append(f.ids, [2]int{o, q})
		}
	}
	cells := 4 * len(f.ids) * f.steps
	for _, e := range p.Edges {
		cells += len(e.Cost) * len(e.Cost[0])
	}
	if cells > MaxCells {
		return nil, fmt.Errorf("whole: %q makes a program of about %d variables, expected at most %d", p.Name, cells, MaxCells)
	}
	readers := make([][]int, len(f.ids))
	for _, e := range p.Edges {
		readers[number[e.From]] = append(readers[number[e.From]], number[e.To])
	}
	f.choose()
	f.order(readers)
	for k, e := range p.Edges {
		f.edge(k, &e, number[e.From], number[e.To])
	}
	f.capacity()
	return f, nil
}

// choose states (1) to (3) and (10).
func (f *program) choose() {
	m := f.model
	for a := range f.p.Atoms {
		var with []milp.Var
		for o := range f.p.Parts {
			if slices.Contains(f.p.Parts[o].Atoms, a) {
				with = append(with, f.part[o])
			}
		}
		m.AddEQ(fmt.Sprintf("(1) one part of %d", a), milp.Sum(with...), 1)
	}
	for _, x := range f.p.Apart {
		m.AddLE(fmt.Sprintf("(13) parts %d and %d", x[0], x[1]), milp.Sum(f.part[x[0]], f.part[x[1]]), 1)
	}
	for i, id := range f.ids {
		var run, labels []milp.Var
		for t := range f.steps {
			run = append(run, m.Binary(fmt.Sprintf("x[%d,%d]", i, t), 0))
		}
		n := f.p.at(id)
		for l := range n.Labels {
			labels = append(labels, m.Binary(fmt.Sprintf("y[%d,%d]", i, l), n.Cost[l]/costUnit))
		}
		f.run, f.label = append(f.run, run), append(f.label, labels)
		chosen := f.part[id[0]].Times(-1)
		m.AddEQ(fmt.Sprintf("(2) a step for %d", i), append(milp.Sum(run...), chosen), 0)
		m.AddEQ(fmt.Sprintf("(10) a label for %d", i), append(milp.Sum(labels...), chosen), 0)
	}
	for t := range f.steps {
		var now, fewer []milp.Term
		for i := range f.ids {
			now = append(now, f.run[i][t].Times(1))
			if t > 0 {
				fewer = append(fewer, f.run[i][t].Times(1), f.run[i][t-1].Times(-1))
			}
		}
		m.AddLE(fmt.Sprintf("(3) one run at step %d", t), now, 1)
		if t > 0 {
			m.AddLE(fmt.Sprintf("(3) none at step %d behind none", t), fewer, 0)
		}
	}
}

// order states (4) to (8).
func (f *program) order(readers [][]int) {
	m := f.model
	n := len(f.ids)
	f.held, f.copied, f.fetched = make([][]milp.Var, n), make([][]milp.Var, n), make([][]milp.Var, n)
	for i, id := range f.ids {
		if len(readers[i]) == 0 {
			continue
		}
		in := f.p.at(id)
		move := float64(in.OutputBytes) * f.p.MoveSeconds / costUnit
		for t := range f.steps {
			v := func(letter string) string { return fmt.Sprintf("%s[%d,%d]", letter, i, t) }
			store := 0.0
			if t == f.steps-1 {
				store = move
			}
			f.held[i] = append(f.held[i], m.Binary(v("a"), 0))
			f.copied[i] = append(f.copied[i], m.Binary(v("c"), store))
			f.fetched[i] = append(f.fetched[i], m.Binary(v("d"), move))
		}
		for t, held := range f.held[i] {
			at := func(number string) string { return fmt.Sprintf("%s output %d at step %d", number, i, t) }
			copied, fetched := f.copied[i][t], f.fetched[i][t]
			m.AddGE(at("(5) made,"), []milp.Term{held.Times(1), f.run[i][t].Times(-1)}, 0)
			for _, j := range readers[i] {
				m.AddGE(at(fmt.Sprintf("(6) read by %d,", j)), []milp.Term{held.Times(1), f.run[j][t].Times(-1), f.part[id[0]].Times(-1)}, -1)
				before := append(milp.Sum(f.run[j][:t+1]...), f.part[id[0]].Times(1))
				for _, x := range f.run[i][:t] {
					before = append(before, x.Times(-1))
				}
				m.AddLE(at(fmt.Sprintf("(4) before %d,", j)), before, 1)
			}
			stays := []milp.Term{held.Times(1), f.run[i][t].Times(-1), fetched.Times(-1)}
			from := []milp.Term{fetched.Times(1)}
			grows := []milp.Term{copied.Times(1)}
			if t > 0 {
				stays = append(stays, f.held[i][t-1].Times(-1))
				from = append(from, f.copied[i][t-1].Times(-1))
				m.AddGE(at("(8) the copy stays,"), []milp.Term{copied.Times(1), f.copied[i][t-1].Times(-1)}, 0)
				grows = append(grows, f.copied[i][t-1].Times(-1), f.held[i][t-1].Times(-1))
			}
			for l, y := range f.label[i] {
				if !inLB(in.Labels[l]) {
					stays = append(stays, y.Times(-1))
				}
			}
			m.AddLE(at("(7) in the LB,"), stays, 0)
			m.AddLE(at("(8) loaded from a copy,"), from, 0)
			m.AddLE(at("(8) copied from the LB,"), grows, 0)
		}
	}
}

// edge states (11) and (12).
func (f *program) edge(k int, e *Edge, i, j int) {
	m := f.model
	columns := make([][]milp.Var, len(f.label[j]))
	// side bounds a sum of z by y, and by y where the other part is chosen.
	side := func(name string, z []milp.Var, y, other milp.Var) {
		m.AddLE(name, append(milp.Sum(z...), y.Times(-1)), 0)
		m.AddGE(name+", both chosen", append(milp.Sum(z...), y.Times(-1), other.Times(-1)), -1)
	}
	for l, costs := range e.Cost {
		var row []milp.Var
		for o, cost := range costs {
			z := m.Continuous(fmt.Sprintf("z[%d,%d,%d]", k, l, o), 0, 1, cost/costUnit)
			row = append(row, z)
			columns[o] = append(columns[o], z)
		}
		side(fmt.Sprintf("(11) edge %d, label %d", k, l), row, f.label[i][l], f.part[e.To[0]])
	}
	for o, z := range columns {
		side(fmt.Sprintf("(12) edge %d, label %d", k, o), z, f.label[j][o], f.part[e.From[0]])
	}
}

// capacity states (9), in units of which all sizes are multiples.
func (f *program) capacity() {
	grain := int64(0)
	for _, id := range f.ids {
		in := f.p.at(id)
		grain = milp.GCD(milp.GCD(grain, in.OutputBytes), in.WorkspaceBytes)
	}
	grain = max(grain, 1)
	for t := range f.steps {
		var terms []milp.Term
		for i, id := range f.ids {
			in := f.p.at(id)
			during := in.WorkspaceBytes
			if f.held[i] == nil {
				during += in.OutputBytes
			} else {
				terms = append(terms, f.held[i][t].Times(float64(in.OutputBytes/grain)))
			}
			terms = append(terms, f.run[i][t].Times(float64(during/grain)))
		}
		f.model.AddLE(fmt.Sprintf("(9) capacity at step %d", t), terms, float64(f.p.CapacityBytes/grain))
	}
}

// ILP solves the model. It needs [Options].Solver, which is not given the start: that is the
// answer where the solver finds none that costs less.
func ILP(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	began := time.Now()
	r, err := p.begin("ilp", &opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	f, err := formulate(p)
	if err != nil {
		return nil, err
	}
	sol, err := opts.Solver.Solve(ctx, f.model, opts.MILP(costUnit))
	if err != nil {
		return nil, err
	}
	bound := sol.Bound * costUnit
	switch sol.Status {
	case milp.Optimal, milp.Feasible:
		c, cost, err := f.decode(sol)
		if errors.Is(err, errCircle) { // the bound holds
			opts.Notef("the parts of the program's solution wait for each other in a circle")
			return r.finish(math.Min(bound, r.Outcome().Objective), milp.StopWork), nil
		}
		if err != nil {
			return nil, fmt.Errorf("whole: internal error, the program's solution breaks a rule: %w", err)
		}
		if r.Choice == nil || cost < r.Objective {
			r.Choice, r.Objective = c, cost
		}
		if sol.Status == milp.Optimal {
			bound = math.Max(bound, cost) // within the solver's tolerance
		}
	case milp.Infeasible:
		bound = math.Inf(1)
	case milp.Limit:
	default:
		return nil, fmt.Errorf("whole: internal error, the solver says %v of a program whose costs are not negative", sol.Status)
	}
	r.finish(bound, sol.Stop)
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// errCircle is what the program does not exclude: parts of which more than two wait for each other in a
// circle, though their instances can run one after the other.
var errCircle = errors.New("the parts wait for each other in a circle")

// decode reads parts, labels and steps. An output with scope LB that is not held any more
// though something will read it was stored; one that is held again was loaded.
func (f *program) decode(sol *milp.Solution) (*Choice, float64, error) {
	c := &Choice{}
	for o, v := range f.part {
		if sol.Int(v) == 1 {
			c.Parts = append(c.Parts, o)
		}
	}
	if c.Parts = f.p.Arrange(c.Parts); c.Parts == nil {
		return nil, 0, errCircle
	}
	place := map[[2]int]int{}
	for _, o := range c.Parts {
		for q := range f.p.Parts[o].Instances {
			place[[2]int{o, q}] = len(place)
		}
	}
	var ids []int // of the instances chosen, by place
	for i, id := range f.ids {
		if _, chosen := place[id]; chosen {
			ids = append(ids, i)
		}
	}
	slices.SortFunc(ids, func(a, b int) int { return place[f.ids[a]] - place[f.ids[b]] })
	left, reads := make([]int, len(ids)), make([][]int, len(ids)) // readers to run, what each reads
	for _, e := range f.p.Edges {
		from, one := place[e.From]
		to, two := place[e.To]
		if one && two {
			left[from]++
			reads[to] = append(reads[to], from)
		}
	}
	gb := make([]bool, len(ids))
	for k, i := range ids {
		l := slices.IndexFunc(f.label[i], func(y milp.Var) bool { return sol.Int(y) == 1 })
		c.Labels = append(c.Labels, l)
		gb[k] = !inLB(f.p.at(f.ids[i]).Labels[l])
	}
	there, made := make([]bool, len(ids)), make([]bool, len(ids))
	for t := range ids {
		var step ordering.Step
		ran := -1
		for k, i := range ids {
			if sol.Int(f.run[i][t]) == 1 {
				ran = k
			}
			if gb[k] || !made[k] || left[k] == 0 {
				continue
			}
			switch held := sol.Int(f.held[i][t]) == 1; {
			case there[k] && !held:
				step.Store = append(step.Store, ordering.Ref{k, 0})
				there[k] = false
			case !there[k] && held:
				step.Load = append(step.Load, ordering.Ref{k, 0})
				there[k] = true
			}
		}
		if ran < 0 {
			return nil, 0, fmt.Errorf("nothing runs at step %d", t)
		}
		step.Run = ordering.Ref{ran, 0}
		made[ran], there[ran] = true, true
		for _, k := range reads[ran] {
			left[k]--
		}
		c.Steps = append(c.Steps, step)
	}
	cost, err := f.p.Seconds(c)
	return c, cost, err
}
