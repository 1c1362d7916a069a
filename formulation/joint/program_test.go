package joint

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/model/schedule"
)

// ILPOptions are the settings of [ILP].
type ILPOptions struct {
	Options
	// NoPrune keeps labels that another one of the same scope always replaces.
	NoPrune bool
}

// costUnit is the model's unit of cost in seconds. Solvers take 1e-6 for nothing.
const costUnit = 1e-6

// A program is the model of the package's documentation, with what it takes to read
// its solution. Steps count from 0.
type program struct {
	p     *Problem
	g     *ordering.Graph
	kept  [][]int
	model *milp.Model

	run                   [][]milp.Var // x[i][t]
	held, copied, fetched [][]milp.Var // a, c, d; nil for outputs that nothing reads
	label                 [][]milp.Var // y[i][k], k of kept[i]
}

// Formulate builds the model.
func Formulate(p *Problem, opts ILPOptions) (*milp.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	f := formulate(p, opts)
	return f.model, f.model.Err()
}

func formulate(p *Problem, opts ILPOptions) *program {
	f := &program{p: p, g: ordering.NewGraph(p.Order), kept: p.Labels.Prune(true), model: milp.New("joint", milp.Minimize)}
	if opts.NoPrune {
		for i, n := range p.Labels.Nodes {
			f.kept[i] = f.kept[i][:0]
			for l := range n.Labels {
				f.kept[i] = append(f.kept[i], l)
			}
		}
	}
	f.order()
	f.labels()
	f.capacity()
	return f
}

// order states (1) to (8), and the labels' variables, which (6) needs.
func (f *program) order() {
	m, g := f.model, f.g
	n := len(g.Refs)
	price := func(units int64) float64 { return float64(units) / g.Unit * f.p.SecondsPerCost / costUnit }
	f.run, f.held, f.copied, f.fetched = make([][]milp.Var, n), make([][]milp.Var, n), make([][]milp.Var, n),
		make([][]milp.Var, n)
	for i := range n {
		for t := range n {
			v := func(letter string) string { return fmt.Sprintf("%s[%d,%d]", letter, i, t) }
			f.run[i] = append(f.run[i], m.Binary(v("x"), 0))
			if len(g.Readers[i]) == 0 {
				continue
			}
			store := 0.0
			if t == n-1 {
				store = price(g.Store[i])
			}
			f.held[i] = append(f.held[i], m.Binary(v("a"), 0))
			f.copied[i] = append(f.copied[i], m.Binary(v("c"), store))
			f.fetched[i] = append(f.fetched[i], m.Binary(v("d"), price(g.Load[i])))
		}
		var labels []milp.Var
		for _, l := range f.kept[i] {
			labels = append(labels, m.Binary(fmt.Sprintf("y[%d,%d]", i, l), f.p.Labels.Nodes[i].Cost[l]/costUnit))
		}
		f.label = append(f.label, labels)
	}
	for t := range n {
		var all []milp.Var
		for i := range n {
			all = append(all, f.run[i][t])
		}
		m.AddEQ(fmt.Sprintf("(1) one run at step %d", t), milp.Sum(all...), 1)
	}
	for i := range n {
		m.AddEQ(fmt.Sprintf("(2) one step for %d", i), milp.Sum(f.run[i]...), 1)
	}
	for i := range n {
		for t := range f.held[i] {
			at := func(number string) string { return fmt.Sprintf("%s output %d at step %d", number, i, t) }
			held, copied, fetched := f.held[i][t], f.copied[i][t], f.fetched[i][t]
			m.AddGE(at("(4) made,"), []milp.Term{held.Times(1), f.run[i][t].Times(-1)}, 0)
			for _, j := range g.Readers[i] {
				m.AddGE(at(fmt.Sprintf("(5) read by %d,", j)), []milp.Term{held.Times(1), f.run[j][t].Times(-1)}, 0)
				before := milp.Sum(f.run[j][:t+1]...)
				for _, x := range f.run[i][:t] {
					before = append(before, x.Times(-1))
				}
				m.AddLE(at(fmt.Sprintf("(3) before %d,", j)), before, 0)
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
			for k, l := range f.kept[i] {
				if f.p.Labels.Nodes[i].Labels[l].Scope == schedule.GB {
					stays = append(stays, f.label[i][k].Times(-1))
				}
			}
			m.AddLE(at("(6) in the LB,"), stays, 0)
			m.AddLE(at("(7) loaded from a copy,"), from, 0)
			m.AddLE(at("(8) copied from the LB,"), grows, 0)
		}
	}
}

// labels states (10) to (12).
func (f *program) labels() {
	m := f.model
	for i := range f.label {
		m.AddEQ(fmt.Sprintf("(10) one label of %d", i), milp.Sum(f.label[i]...), 1)
	}
	for e, edge := range f.p.Labels.Edges {
		columns := make([][]milp.Var, len(f.kept[edge.To]))
		for a, l := range f.kept[edge.From] {
			var row []milp.Var
			for b, o := range f.kept[edge.To] {
				z := m.Continuous(fmt.Sprintf("z[%d,%d,%d]", e, l, o), 0, 1, edge.Cost[l][o]/costUnit)
				row = append(row, z)
				columns[b] = append(columns[b], z)
			}
			m.AddEQ(fmt.Sprintf("(11) edge %d, label %d", e, l), append(milp.Sum(row...), f.label[edge.From][a].Times(-1)), 0)
		}
		for b, o := range f.kept[edge.To] {
			m.AddEQ(fmt.Sprintf("(12) edge %d, label %d", e, o),
				append(milp.Sum(columns[b]...), f.label[edge.To][b].Times(-1)), 0)
		}
	}
}

// capacity states (9), in a unit that divides all sizes.
func (f *program) capacity() {
	g := f.g
	grain := int64(0)
	for i := range g.Refs {
		grain = milp.GCD(milp.GCD(grain, g.Output[i]), g.Work[i])
	}
	grain = max(grain, 1)
	for t := range g.Refs {
		var terms []milp.Term
		for i := range g.Refs {
			during := g.Work[i]
			if f.held[i] == nil {
				during += g.Output[i]
			} else {
				terms = append(terms, f.held[i][t].Times(float64(g.Output[i]/grain)))
			}
			terms = append(terms, f.run[i][t].Times(float64(during/grain)))
		}
		f.model.AddLE(fmt.Sprintf("(9) capacity at step %d", t), terms, float64(g.Capacity/grain))
	}
}

// ILP solves the model. It needs [Options].Solver, which is not given the start: that is
// the answer where the solver finds none that costs less.
func ILP(ctx context.Context, p *Problem, opts ILPOptions) (*Result, error) {
	began := time.Now()
	if r, err := p.begin("ilp", &opts.Options); r != nil || err != nil {
		return r, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	f := formulate(p, opts)
	sol, err := opts.Solver.Solve(ctx, f.model, opts.MILP(costUnit))
	if err != nil {
		return nil, err
	}
	r := &Result{}
	switch sol.Status {
	case milp.Optimal, milp.Feasible:
		f.decode(sol, r)
		labels, moves, err := p.Seconds(r.Choice, r.Steps)
		if err != nil {
			return nil, fmt.Errorf("joint: internal error, the program's solution breaks a rule: %w", err)
		}
		r.LabelSeconds, r.MoveSeconds, r.Objective = labels, moves, labels+moves
	case milp.Limit:
	default:
		return nil, fmt.Errorf("joint: internal error, the solver says %v of a program with a solution", sol.Status)
	}
	bound := math.Max(sol.Bound*costUnit, p.Labels.Floor())
	if sol.Status == milp.Optimal {
		bound = r.Objective // within the solver's tolerance
	}
	if err := r.orStart(p, opts.Start); err != nil {
		return nil, err
	}
	r.finish(bound, sol.Stop)
	r.Method, r.Seconds = "ilp", time.Since(began).Seconds()
	return r, nil
}

// orStart takes the start if that costs less than what is known.
func (r *Result) orStart(p *Problem, start Start) error {
	if start.Choice == nil {
		return nil
	}
	order := start.Order
	if order == nil {
		order = ordering.NewGraph(p.Order).Topological()
	}
	steps, err := p.Sequence(start.Choice, order)
	if err != nil {
		return err
	}
	labels, moves, err := p.Seconds(start.Choice, steps)
	if err == nil && (r.Choice == nil || labels+moves < r.Objective) {
		r.Choice, r.Steps = start.Choice, steps
		r.LabelSeconds, r.MoveSeconds, r.Objective = labels, moves, labels+moves
	}
	return err
}

// decode reads labels and order. An output with scope LB that is not held any more
// though something will read it was stored; one that is held again was loaded.
func (f *program) decode(sol *milp.Solution, r *Result) {
	r.Choice = make([]int, len(f.label))
	for i, vars := range f.label {
		for k, v := range vars {
			if sol.Int(v) == 1 {
				r.Choice[i] = f.kept[i][k]
			}
		}
	}
	gb := f.p.inGB(r.Choice)
	left := make([]int, len(gb)) // readers to run
	for i := range left {
		left[i] = len(f.g.Readers[i])
	}
	inLB := make([]bool, len(gb))
	made := make([]bool, len(gb))
	for t := range gb {
		var step ordering.Step
		ran := -1
		for i := range gb {
			if sol.Int(f.run[i][t]) == 1 {
				ran = i
			}
			if gb[i] || !made[i] || left[i] == 0 {
				continue
			}
			switch held := sol.Int(f.held[i][t]) == 1; {
			case inLB[i] && !held:
				step.Store = append(step.Store, f.g.Refs[i])
				inLB[i] = false
			case !inLB[i] && held:
				step.Load = append(step.Load, f.g.Refs[i])
				inLB[i] = true
			}
		}
		step.Run = f.g.Refs[ran]
		made[ran], inLB[ran] = true, true
		for _, j := range f.g.Reads[ran] {
			left[j]--
		}
		r.Steps = append(r.Steps, step)
	}
}
