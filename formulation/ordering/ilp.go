package ordering

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// maxTerms is the size, in variables and terms, beyond which no program is built: the answer
// is then the start. It keeps the program and the solver's copies of it well below 4 GB.
const maxTerms = 3_000_000

// CountingILP is the counting formulation: classes of instances by their counts. Where every output has at most one
// reader it counts all of them; outputs with several readers are stated one by one. It needs [Options].Solver.
// Progress reports on the program that is being solved.
func CountingILP(ctx context.Context, p *Problem, objective Objective, opts Options) (*Result, error) {
	const method = "counting-ilp"
	begin := time.Now()
	g := NewGraph(p)
	if objective == Traffic {
		if err := g.Feasible(); err != nil {
			return noOrder(method, objective, err)
		}
	}
	parts, of, distinct, err := prepare(g, objective, &opts, counted)
	if err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	reason := milp.Complete
	for _, a := range distinct {
		if a.cost <= a.bound && !opts.Relax {
			continue
		}
		cut := solve.Why(ctx)
		if cut == milp.Complete {
			if cut, err = a.improve(ctx, p.Name, opts); err != nil {
				return nil, fmt.Errorf("ordering: %s of %q: %w", method, p.Name, err)
			}
		}
		reason = cmp.Or(reason, cut)
	}
	res, err := assemble(method, p, g, parts, of, objective)
	if err != nil {
		return nil, err
	}
	res.finish(begin, reason)
	var effort milp.Effort
	for _, a := range of {
		effort.Add(a.effort)
	}
	if effort.Columns > 0 {
		if objective == Peak && len(of) > 1 {
			effort.LP = nil
		}
		res.Effort = effort.In(1, res.Cost)
	}
	return res, nil
}

// improve solves the program of a part. It leaves the answer as it is if the program is too large. It returns what cut
// it short.
func (a *answer) improve(ctx context.Context, name string, opts Options) (milp.Stop, error) {
	f := &program{answer: a, opts: opts, steps: len(a.part.ids)}
	if n := f.size(); n > maxTerms {
		opts.Notef("no integer program of %d instances: it has about %d terms, more than %d", len(a.part.ids), n, maxTerms)
		return milp.StopMemory, nil
	}
	f.build(name)
	return f.solve(ctx)
}

// A program is one part's integer program. The numbers of constraints are those
// of docs/formulations.md. Variables of a class are indexed by step, from 0.
type program struct {
	*answer
	opts  Options
	steps int // T

	model *milp.Model
	run   [][]milp.Var // x
	// Counted classes.
	inL1, inLLB, store, load [][]milp.Var // R, G, s, l
	// Shared classes: in the L1 during a step, a copy in the LLB, loaded before it.
	held, copied, fetch [][]milp.Var // a, c, d
	peak                milp.Var     // Z
	grain               int64        // bytes in a unit of capacity
	costGrain           int64        // cost units in one of the objective
}

// size is about how many variables and terms the program has.
func (f *program) size() int {
	perStep, arcs := 0, 0
	for k := range f.classes {
		perStep += 12 + 2*len(f.classes[k].reads)
		if f.classes[k].shared {
			arcs += len(f.classes[k].readers)
		}
	}
	return f.steps*perStep + arcs*f.steps*f.steps
}

func (f *program) traffic() bool { return f.objective == Traffic }

func (f *program) build(name string) {
	f.grain, f.costGrain = 0, 0
	for k := range f.classes {
		c := &f.classes[k]
		f.grain = milp.GCD(milp.GCD(f.grain, c.out), c.work)
		switch {
		case c.shared:
			f.costGrain = milp.GCD(milp.GCD(f.costGrain, c.store), c.load)
		case c.kept():
			f.costGrain = milp.GCD(f.costGrain, c.store+c.load)
		}
	}
	f.grain, f.costGrain = max(f.grain, 1), max(f.costGrain, 1)
	m := milp.New(name)
	f.model = m
	kk := len(f.classes)
	f.run, f.held, f.copied, f.fetch = make([][]milp.Var, kk), make([][]milp.Var, kk), make([][]milp.Var, kk),
		make([][]milp.Var, kk)
	f.inL1, f.inLLB, f.store, f.load = make([][]milp.Var, kk), make([][]milp.Var, kk), make([][]milp.Var, kk),
		make([][]milp.Var, kk)
	if !f.traffic() {
		f.peak = m.Integer("Z", math.Ceil(float64(f.bound)/float64(f.grain)), math.Inf(1), 1)
	}
	for k := range f.classes {
		c := &f.classes[k]
		storeCost, loadCost := float64(c.store/f.costGrain), float64(c.load/f.costGrain)
		if !c.shared {
			loadCost = float64((c.store + c.load) / f.costGrain)
		}
		for t := range f.steps {
			v := func(letter string) string { return fmt.Sprintf("%s[%d,%d]", letter, k, t) }
			f.run[k] = append(f.run[k], m.Binary(v("x"), 0))
			if !c.kept() {
				continue
			}
			n := float64(c.n())
			if c.shared {
				f.held[k] = append(f.held[k], m.Binary(v("a"), 0))
				if f.traffic() {
					price := 0.0
					if t == f.steps-1 {
						price = storeCost
					}
					f.copied[k] = append(f.copied[k], m.Binary(v("c"), price))
					f.fetch[k] = append(f.fetch[k], m.Binary(v("d"), loadCost))
				}
				continue
			}
			f.inL1[k] = append(f.inL1[k], m.Continuous(v("R"), 0, n, 0))
			if f.traffic() {
				f.inLLB[k] = append(f.inLLB[k], m.Continuous(v("G"), 0, n, 0))
				f.store[k] = append(f.store[k], m.Integer(v("s"), 0, n, 0))
				f.load[k] = append(f.load[k], m.Integer(v("l"), 0, float64(c.per), loadCost))
			}
		}
	}
	f.runs()
	for k := range f.classes {
		switch c := &f.classes[k]; {
		case c.shared:
			f.sharedOutput(k)
		case c.kept():
			f.countedOutputs(k)
		}
	}
	f.capacity()
}

// runs states (1), (2), (12) and (13).
func (f *program) runs() {
	m := f.model
	for t := range f.steps {
		var terms []milp.Term
		for k := range f.classes {
			terms = append(terms, f.run[k][t].Times(1))
		}
		m.AddEQ(fmt.Sprintf("(1) one run at step %d", t), terms, 1)
	}
	for k := range f.classes {
		m.AddEQ(fmt.Sprintf("(2) runs of class %d", k), milp.Sum(f.run[k]...), float64(f.classes[k].n()))
	}
	before, after := f.part.graph.Closures()
	for k := range f.classes {
		i := f.classes[k].members[0]
		for t := range f.steps {
			if t < before[i] || t >= f.steps-after[i] {
				m.Fix(f.run[k][t], 0)
			}
		}
	}
	for k := range f.classes {
		if !f.classes[k].shared {
			continue // (3) to (5) say it
		}
		for _, r := range f.classes[k].readers {
			for t := range f.steps {
				terms := make([]milp.Term, 0, 2*t+1)
				for u := 0; u <= t; u++ {
					terms = append(terms, f.run[r][u].Times(1))
					if u < t {
						terms = append(terms, f.run[k][u].Times(-float64(f.classes[r].n())))
					}
				}
				m.AddLE(fmt.Sprintf("(13) %d before %d by step %d", k, r, t), terms, 0)
			}
		}
	}
}

// countedOutputs states (3) to (5) and (14).
func (f *program) countedOutputs(k int) {
	m, c := f.model, &f.classes[k]
	reader := c.readers[0]
	for t := range f.steps {
		at := func(number string) string { return fmt.Sprintf("%s class %d at step %d", number, k, t) }
		l1 := []milp.Term{f.inL1[k][t].Times(1), f.run[k][t].Times(-1), f.run[reader][t].Times(float64(c.per))}
		if t > 0 {
			l1 = append(l1, f.inL1[k][t-1].Times(-1))
		}
		if f.traffic() {
			l1 = append(l1, f.store[k][t].Times(1), f.load[k][t].Times(-1))
			llb := []milp.Term{f.inLLB[k][t].Times(1), f.store[k][t].Times(-1), f.load[k][t].Times(1)}
			if t > 0 {
				llb = append(llb, f.inLLB[k][t-1].Times(-1))
			}
			m.AddEQ(at("(4) LLB,"), llb, 0)
			m.AddLE(at("(14) loads,"), []milp.Term{f.load[k][t].Times(1), f.run[reader][t].Times(-float64(c.per))}, 0)
		}
		m.AddEQ(at("(3) L1,"), l1, 0)
		m.AddGE(at("(5) reads,"), []milp.Term{f.inL1[k][t].Times(1), f.run[k][t].Times(-1)}, 0)
	}
}

// sharedOutput states (6) to (10) and (14).
func (f *program) sharedOutput(k int) {
	m := f.model
	for t := range f.steps {
		at := func(number string) string { return fmt.Sprintf("%s output %d at step %d", number, k, t) }
		m.AddGE(at("(6) made,"), []milp.Term{f.held[k][t].Times(1), f.run[k][t].Times(-1)}, 0)
		for _, r := range f.classes[k].readers {
			m.AddGE(at(fmt.Sprintf("(7) read by %d,", r)), []milp.Term{f.held[k][t].Times(1), f.run[r][t].Times(-1)}, 0)
		}
		stays := []milp.Term{f.held[k][t].Times(1), f.run[k][t].Times(-1)}
		if t > 0 {
			stays = append(stays, f.held[k][t-1].Times(-1))
		}
		if f.traffic() {
			stays = append(stays, f.fetch[k][t].Times(-1))
			from := []milp.Term{f.fetch[k][t].Times(1)}
			grow := []milp.Term{f.copied[k][t].Times(1)}
			if t > 0 {
				from = append(from, f.copied[k][t-1].Times(-1))
				grow = append(grow, f.copied[k][t-1].Times(-1))
			}
			m.AddLE(at("(9) loaded from a copy,"), from, 0)
			m.AddGE(at("(10) the copy stays,"), grow, 0)
			if t > 0 {
				grow = append(grow[:2:2], f.held[k][t-1].Times(-1))
			}
			m.AddLE(at("(10) copied from the L1,"), grow, 0)
			lazy := []milp.Term{f.fetch[k][t].Times(1)}
			for _, r := range f.classes[k].readers {
				lazy = append(lazy, f.run[r][t].Times(-1))
			}
			m.AddLE(at("(14) loads,"), lazy, 0)
		}
		m.AddLE(at("(8) in the L1,"), stays, 0)
	}
}

// capacity states (11) and (15).
func (f *program) capacity() {
	grain := int64(0)
	for k := range f.classes {
		if f.classes[k].kept() {
			grain = milp.GCD(grain, f.classes[k].out)
		}
	}
	limit := f.part.graph.Capacity
	for t := range f.steps {
		var kept, during, room []milp.Term
		for k := range f.classes {
			c := &f.classes[k]
			out := float64(c.out / f.grain)
			own := c.work
			switch {
			case c.shared:
				kept = append(kept, f.held[k][t].Times(out))
			case c.kept():
				if t > 0 {
					kept = append(kept, f.inL1[k][t-1].Times(out))
				}
				if f.traffic() {
					kept = append(kept, f.store[k][t].Times(-out), f.load[k][t].Times(out))
				}
			}
			if !c.shared {
				own += c.out
			}
			during = append(during, f.run[k][t].Times(float64(own/f.grain)))
			if grain > 0 && own <= limit {
				room = append(room, f.run[k][t].Times(-float64((limit-own)/grain*grain/f.grain)))
			}
		}
		name := fmt.Sprintf("(11) capacity at step %d", t)
		if !f.traffic() {
			f.model.AddLE(name, append(append(kept, during...), f.peak.Times(-1)), 0)
			continue
		}
		f.model.AddLE(name, append(during, kept...), float64(limit/f.grain))
		if grain > f.grain {
			f.model.AddLE(fmt.Sprintf("(15) room at step %d", t), append(room, kept...), 0)
		}
	}
}

// solve improves the answer and returns what cut the solver short.
func (f *program) solve(ctx context.Context) (milp.Stop, error) {
	scale, unit := f.costGrain, 1.0
	if f.traffic() {
		unit = f.part.graph.Unit
	} else {
		scale = f.grain
	}
	opts := f.opts.MILP(float64(scale) / unit)
	opts.Start = f.start()
	sol, err := f.opts.Program(ctx, f.model, opts, func(sol *milp.Solution) (solve.Verdict, error) {
		// The solver may move what need not move, at a limit or where it is free.
		return solve.Verdict{Cost: float64(f.takeEvents(f.events(sol))) / float64(scale)}, nil
	})
	if err != nil {
		return milp.Complete, err
	}
	f.effort = *sol.Effort.In(float64(scale)/unit, float64(f.cost)/unit)
	switch sol.Status {
	case milp.Optimal, milp.Feasible, milp.Limit:
	default:
		return milp.Complete, fmt.Errorf("internal error, the solver says %v of a program with a solution", sol.Status)
	}
	// Every cost is a multiple of the scale.
	const tolerance = 1e-4
	if b := math.Ceil(sol.Bound - max(tolerance, 1e-9*sol.Bound)); b > 0 && !math.IsInf(b, 0) {
		f.bound = min(f.cost, max(f.bound, f.reached(int64(b))*scale))
	}
	return sol.Stop, nil
}

// reached is the least value from a bound on that the objective can have, as far as large costs tell: they are
// multiples of a unit, to which all others do not add up. A solver's tolerance, a share of the whole, hides those.
func (f *program) reached(bound int64) int64 {
	least, unit, rest := math.Inf(1), int64(0), 0.0
	for j := range f.model.NumVars() {
		if c := f.model.Variable(milp.Var(j)).Cost; c > 0 {
			least = min(least, c)
		}
	}
	for j := range f.model.NumVars() {
		if v := f.model.Variable(milp.Var(j)); v.Cost > least*0x1p16 {
			unit = milp.GCD(unit, int64(v.Cost))
		} else if v.Cost > 0 {
			rest += v.Cost * v.Hi
		}
	}
	if unit > 0 && float64(bound%unit) > rest {
		bound += unit - bound%unit
	}
	return bound
}

// start states the answer so far as values of the variables.
func (f *program) start() []float64 {
	x := make([]float64, f.model.NumVars())
	kk := len(f.classes)
	inL1, inLLB := make([]int, kk), make([]int, kk)
	left := make([]int, len(f.part.ids))
	for i := range left {
		left[i] = len(f.part.graph.Readers[i])
	}
	for t, s := range f.answer.steps {
		stored, loaded := make([]int, kk), make([]int, kk)
		for _, i := range s.store {
			k := f.of[i]
			stored[k]++
			inL1[k]--
			inLLB[k]++
		}
		for _, i := range s.load {
			k := f.of[i]
			loaded[k]++
			inL1[k]++
			if !f.classes[k].shared {
				inLLB[k]--
			}
		}
		ran := f.of[s.run]
		x[f.run[ran][t]] = 1
		if left[s.run] > 0 {
			inL1[ran]++
		}
		for k := range f.classes {
			if !f.classes[k].shared {
				continue
			}
			x[f.held[k][t]] = float64(inL1[k])
			if f.traffic() {
				x[f.copied[k][t]] = float64(min(inLLB[k], 1))
				x[f.fetch[k][t]] = float64(loaded[k])
			}
		}
		for _, r := range f.part.graph.Reads[s.run] {
			if left[r]--; left[r] == 0 {
				inL1[f.of[r]]--
			}
		}
		for k := range f.classes {
			if c := &f.classes[k]; c.shared || !c.kept() {
				continue
			}
			x[f.inL1[k][t]] = float64(inL1[k])
			if f.traffic() {
				x[f.inLLB[k][t]] = float64(inLLB[k])
				x[f.store[k][t]] = float64(stored[k])
				x[f.load[k][t]] = float64(loaded[k])
			}
		}
	}
	if !f.traffic() {
		x[f.peak] = float64(f.cost / f.grain)
	}
	return x
}

// events reads the runs and stores from a solution. A shared output that is not
// held any more was stored if something still reads it.
func (f *program) events(sol *milp.Solution) []event {
	events := make([]event, f.steps)
	left := make([]int, len(f.classes))
	for k := range f.classes {
		for _, r := range f.classes[k].readers {
			left[k] += f.classes[r].n()
		}
	}
	inL1 := make([]bool, len(f.classes))
	for t := range events {
		e := &events[t]
		for k := range f.classes {
			if sol.Int(f.run[k][t]) == 1 {
				e.class = k
			}
		}
		for k := range f.classes {
			switch c := &f.classes[k]; {
			case !f.traffic() || !c.kept():
			case c.shared:
				if inL1[k] && sol.Int(f.held[k][t]) == 0 {
					inL1[k] = false
					e.store = append(e.store, classRead{k, 1})
				}
			default:
				if n := sol.Int(f.store[k][t]); n > 0 {
					e.store = append(e.store, classRead{k, n})
				}
			}
		}
		for _, r := range f.classes[e.class].reads {
			left[r.class]--
			inL1[r.class] = left[r.class] > 0
		}
		inL1[e.class] = left[e.class] > 0
	}
	return events
}
