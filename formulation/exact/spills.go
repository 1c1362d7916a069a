package exact

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// MovedBytes counts the bytes that a memory plan moves into and out of the cores beyond those that any must: each
// value that has left the L1 is written once and streamed by each reader, as often as the cores need it, and
// parameters that do not stay from tile to tile pass again for each tile after the first.
func MovedBytes(s *schedule.Schedule) (spills, again int64) {
	for i := range s.Values {
		if v := &s.Values[i]; v.Spilled() {
			spills += v.Bytes
		}
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		for _, r := range st.Reads {
			if s.Values[r.Value].Spilled() {
				spills += r.NeedBytes
			}
		}
		again += (st.Tiles - 1) * st.Cores * graphturbo.PassesAgain(s, st)
	}
	return spills, again
}

// MovedSeconds is the time of a plan's moves, a move after the other, beyond the least of each value: of values that
// have left the level where they are wanted, of those that stay in the L1s though their readers, on other cores, would
// have them sooner from the next level, and of parameters that pass again for longer than the units of their step work;
// and what places cost that keep steps from running at once, see [beside].
func MovedSeconds(s *schedule.Schedule, m *cost.Model) float64 {
	moves, readers, sum := binding.MovesOf(s, m), readersOf(s), 0.0
	for i := range s.Values {
		if v := &s.Values[i]; v.Def >= 0 {
			sum += leaving(moves, v, v.Level, readers[i], nextLevel(s))
		}
	}
	for i := range s.Steps {
		sum += again(moves, s, &s.Steps[i], s.Steps[i].Tiles)
	}
	_, lost := beside(moves, s)
	return sum + lost
}

// again is the time in which a step loads its parameters again for each further tile, in seconds.
func again(moves binding.Moves, s *schedule.Schedule, st *schedule.Step, tiles int64) float64 {
	if tiles <= 1 || graphturbo.PassesAgain(s, st) == 0 {
		return 0
	}
	return moves.Work(st, tiles) - moves.Work(st, 1)
}

// PredictedSeconds is the time of a schedule by the formulas of [binding], with each value at the level that its memory
// plan gives and each step in as many tiles: launches, work and moves, one after the other but for what [beside] says.
// The first way of weights from the DDR, and moves beside work, it leaves out.
func PredictedSeconds(s *schedule.Schedule, m *cost.Model) float64 {
	moves, readers, sum := binding.MovesOf(s, m), readersOf(s), float64(len(s.Order))*s.Spec.LaunchSeconds
	for i := range s.Values {
		v := &s.Values[i]
		if sum += moves.Leaving(v, v.Level, readers[i]); v.Def < 0 { // nothing writes it
			sum -= moves.Leaving(v, v.Level, nil)
		}
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		sum += moves.Work(st, 1) + again(moves, s, st, st.Tiles)
	}
	saved, _ := beside(moves, s)
	return sum - saved
}

// beside is the time that pairs of steps of a kernel save which run at once: one after the other in the schedule, one
// on the matrix unit, the other not, and the second reads nothing that the first makes. lost is the time that
// other pairs would save, whose second step puts its result at an address that the first still reads or writes.
func beside(moves binding.Moves, s *schedule.Schedule) (saved, lost float64) {
	for i := 0; i+1 < len(s.Steps); i++ {
		a, b := &s.Steps[i], &s.Steps[i+1]
		if a.Instance != b.Instance || onMatrixUnit(s, a) == onMatrixUnit(s, b) ||
			slices.ContainsFunc(b.Reads, func(r schedule.Read) bool { return slices.Contains(a.Writes, r.Value) }) {
			continue
		}
		at := [][2]int64{{a.StageAddress, a.StageBytes}}
		uses := slices.Clone(a.Writes)
		for _, r := range a.Reads {
			uses = append(uses, r.Value)
		}
		for _, v := range uses {
			if v := &s.Values[v]; v.Level == schedule.L1 {
				at = append(at, [2]int64{v.Address, v.CoreBytes})
			}
		}
		if both := min(moves.Work(a, 1), moves.Work(b, 1)); slices.ContainsFunc(b.Writes, func(w int) bool {
			v := &s.Values[w]
			return v.Level == schedule.L1 && slices.ContainsFunc(at, func(x [2]int64) bool {
				return v.Address < x[0]+x[1] && x[0] < v.Address+v.CoreBytes
			})
		}) {
			lost += both
		} else {
			saved += both
		}
		i++ // which may run beside the one before
	}
	return saved, lost
}

func onMatrixUnit(s *schedule.Schedule, st *schedule.Step) bool {
	return s.Graph.OnMatrixUnit(s.Graph.Op(s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer].Anchor))
}

// readersOf lists the reads of each value.
func readersOf(s *schedule.Schedule) [][]*schedule.Read {
	readers := make([][]*schedule.Read, len(s.Values))
	for i := range s.Steps {
		for k := range s.Steps[i].Reads {
			r := &s.Steps[i].Reads[k]
			readers[r.Value] = append(readers[r.Value], r)
		}
	}
	return readers
}

// nextLevel is where values go that leave the L1s.
func nextLevel(s *schedule.Schedule) schedule.Level {
	if s.Spec.LLB == nil {
		return schedule.DDR
	}
	return schedule.LLB
}

// leaving is the extra time of a value's moves at a level, exchanges between cores included: over the time at the level
// where it is wanted, or, of a value wanted in the L1s, over the least of that and the next level.
func leaving(moves binding.Moves, v *schedule.Value, at schedule.Level, reads []*schedule.Read,
	next schedule.Level) float64 {
	least := moves.Leaving(v, v.Wanted, reads)
	if v.Wanted == schedule.L1 {
		least = min(least, moves.Leaving(v, next, reads))
	}
	return max(0, moves.Leaving(v, at, reads)-least)
}

// A SpillProblem is the choice that a full L1 asks for: a schedule's values that are wanted
// there, over their lifetimes in steps, and a demand of each step for what passes
// through it. Sizes are bytes of the busiest core, costs those of [MovedBytes] or the picoseconds of [MovedSeconds].
type SpillProblem struct {
	*allocate.Problem
	CapacityBytes int64
	Value         []int // of the schedule, that each buffer stands for
	Demands       []allocate.Demand
	again         func(st *schedule.Step, tiles int64) int64 // the cost of what passes again
}

// NewSpillProblem states the problem of a schedule whose steps are built. What is spilled passes through the stages of
// its readers and so makes them larger; stages count as if nothing was spilled. So the problem asks for no more than
// any memory plan must, and its least cost is a bound.
func NewSpillProblem(s *schedule.Schedule) *SpillProblem {
	readers := readersOf(s)
	return newSpillProblem(s, func(v *schedule.Value) int64 {
		bytes := v.Bytes
		for _, r := range readers[v.ID] {
			bytes += r.NeedBytes
		}
		return bytes
	}, func(st *schedule.Step, tiles int64) int64 {
		return (tiles - 1) * st.Cores * graphturbo.PassesAgain(s, st)
	}, nil)
}

// newSpillProblem has costs of values that leave and of tiles, and in place those that take the place of another one.
func newSpillProblem(s *schedule.Schedule, leaves func(*schedule.Value) int64, again func(*schedule.Step, int64) int64,
	over map[int]bool) *SpillProblem {
	p := &SpillProblem{Problem: &allocate.Problem{Name: s.Graph.Name}, CapacityBytes: s.WeightRoom.DataBytes(s.Spec),
		again: again}
	for i := range s.Values {
		v := &s.Values[i]
		if v.Def < 0 || v.Wanted != schedule.L1 || v.CoreBytes == 0 {
			continue
		}
		cost, first, last := leaves(v), v.Def, min(v.Last, len(s.Steps)-1)
		if over[i] {
			first = min(first+1, last)
		}
		p.Buffers = append(p.Buffers, allocate.Buffer{ID: fmt.Sprintf("%s of instance %d", s.Graph.Tensor(v.Tensor).Name,
			v.Instance),
			Lifetime: allocate.Interval{Lower: int64(first), Upper: int64(last) + 1}, Size: v.CoreBytes, Alignment: 64,
			SpillCost: &cost})
		p.Value = append(p.Value, i)
	}
	work := s.Unspilled()
	for t := range work.Steps {
		p.Demands = append(p.Demands, p.demand(work, t))
	}
	return p
}

// demand is a step's demand with the values at their levels: room for one tile
// after the other, or for all of them at once; in between, parameters pass again.
func (p *SpillProblem) demand(s *schedule.Schedule, t int) allocate.Demand {
	return allocate.Demand{Time: int64(t), Tiers: falling(p.tilings(s, s.Steps[t], nil))}
}

// falling returns the tiers that ask for less than all before them.
func falling(tiers []allocate.Tier) (list []allocate.Tier) {
	for _, x := range tiers {
		if n := len(list); n == 0 || x.Free < list[n-1].Free {
			list = append(list, x)
		}
	}
	return list
}

// mostGrowing is the number of values a step's stage is followed for; its time is exponential.
const mostGrowing = 8

// growing are the problem's demands with what spilled values add to the stages of their
// readers and makers, for those that add most. Where time runs out, the others' add nothing.
func (p *SpillProblem) growing(ctx context.Context, s *schedule.Schedule) []allocate.Demand {
	buffer := make(map[int]int, len(p.Value))
	for i, v := range p.Value {
		buffer[v] = i
	}
	work := s.Unspilled()
	demands := slices.Clone(p.Demands)
	for t := range demands {
		if solve.Why(ctx) != milp.Complete {
			break
		}
		st := work.Steps[t]
		values := slices.Clone(st.Writes)
		for _, r := range st.Reads {
			values = append(values, r.Value)
		}
		slices.Sort(values)
		values = slices.DeleteFunc(slices.Compact(values), func(v int) bool { _, known := buffer[v]; return !known })
		least, adds := p.tilings(work, st, nil), make(map[int]int64)
		for _, v := range values {
			for k, x := range p.tilings(work, st, []int{v}) {
				adds[v] = max(adds[v], x.Free-least[k].Free)
			}
		}
		values = slices.DeleteFunc(values, func(v int) bool { return adds[v] == 0 })
		slices.SortStableFunc(values, func(a, b int) int { return cmp.Compare(adds[b], adds[a]) })
		if values = values[:min(len(values), mostGrowing)]; len(values) == 0 {
			continue
		}
		d := allocate.Demand{Time: int64(t), Grown: p.grown(work, st, values)}
		for _, v := range values {
			d.Of = append(d.Of, buffer[v])
		}
		d.Tiers = falling(d.Grown(0))
		demands[t] = d
	}
	return demands
}

// tilings are a step's demands with these values spilled and the others where they are,
// from one tile on; those alone that no smaller one costs as little as. As the memory plan has operands
// pass by panels only once nothing else is left in the L1, they ask for all of it.
func (p *SpillProblem) tilings(work *schedule.Schedule, st schedule.Step, spilled []int) []allocate.Tier {
	at := make([]schedule.Level, len(spilled))
	for k, v := range spilled {
		at[k], work.Values[v].Level = work.Values[v].Level, schedule.LLB
	}
	list, capacity := graphturbo.Tilings(work, &st), work.WeightRoom.DataBytes(work.Spec)
	if list[0].StageBytes > capacity {
		st.Panels = true
		for k, x := range graphturbo.Tilings(work, &st) {
			list[k].StageBytes = min(list[k].StageBytes, max(x.StageBytes, capacity))
		}
	}
	for k, v := range spilled {
		work.Values[v].Level = at[k]
	}
	for len(list) > 1 && p.again(&st, list[1].Tiles) == p.again(&st, 1) {
		list = list[1:]
	}
	tiers := make([]allocate.Tier, len(list))
	for k, x := range list {
		tiers[k] = allocate.Tier{Free: x.StageBytes, Cost: p.again(&st, x.Tiles)}
	}
	return tiers
}

// grown gives the tiers of a step for each set of these values that is spilled. A value that is kept
// takes no less than what it would add, which rounding can hide; so a set counts for the
// least that one of its subsets asks for together with the sizes of the rest.
func (p *SpillProblem) grown(work *schedule.Schedule, st schedule.Step, values []int) func(set uint64) []allocate.Tier {
	known := map[uint64][]allocate.Tier{}
	var tiers func(set uint64) []allocate.Tier
	tiers = func(set uint64) []allocate.Tier {
		if list, there := known[set]; there {
			return list
		}
		var spilled []int
		for k, v := range values {
			if set>>k&1 == 1 {
				spilled = append(spilled, v)
			}
		}
		list := p.tilings(work, st, spilled)
		for k, v := range values {
			if set>>k&1 == 1 {
				for j, fewer := range tiers(set &^ (1 << k)) {
					list[j].Free = min(list[j].Free, fewer.Free+work.Values[v].CoreBytes)
				}
			}
		}
		known[set] = list
		return list
	}
	return tiers
}

// spillRounds bounds how often the choice is made again because the stages of what was
// spilled take more than they counted for, betterRounds how often where one can be had.
const spillRounds, betterRounds = 20, 5

// Choose chooses the values of the schedule to spill, at the least cost. It counts what spilled values
// add to stages, and its bound with them. Where the stages of what is spilled take more than that, the choice is made
// again with the demands as they then are, so that the cost is one that can be had, if offsets can. Without an answer
// the status is Limit or Infeasible: a stage does not fit by itself.
func (p *SpillProblem) Choose(ctx context.Context, s *schedule.Schedule, opts allocate.SweepOptions) (spills []int,
	sol *allocate.SpillResult, err error) {
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	opts.TimeLimit, opts.Demands = 0, p.growing(ctx, s)
	bound := int64(0)
	for round := 0; round < spillRounds && (sol == nil || round < betterRounds); round++ {
		next, err := allocate.SpillSweep(ctx, p.Problem, p.CapacityBytes, opts)
		if err != nil {
			return nil, nil, err
		}
		if !next.Status.HasValues() {
			if sol == nil {
				return nil, next, nil
			}
			break // the rule chooses the rest
		}
		if round == 0 {
			bound = next.Bound
			opts.MaxStates = cmp.Or(opts.MaxStates, allocate.DefaultMaxStates) // the bound of others does not count
		}
		work := s.Unspilled()
		var out []int
		for i, gone := range next.Spilled {
			if gone {
				out = append(out, p.Value[i])
				work.Values[p.Value[i]].Level = schedule.LLB
			}
		}
		real := make([]allocate.Demand, len(work.Steps))
		for t := range real {
			real[t] = p.demand(work, t)
		}
		cost, ok := allocate.SweepCost(p.Problem, p.CapacityBytes, real, next.Spilled)
		if ok && (sol == nil || cost < sol.Cost) {
			spills, sol = out, &allocate.SpillResult{Status: milp.Feasible, Spilled: next.Spilled, Cost: cost, Bound: bound,
				Nodes: next.Nodes}
		}
		if ok && cost == next.Cost {
			break // nothing that counts was left out
		}
		grown := false
		for t := range real {
			if !slices.Equal(real[t].Tiers, opts.Demands[t].Tiers) && real[t].Tiers[0].Free >= opts.Demands[t].Tiers[0].Free {
				opts.Demands[t], grown = real[t], true
			}
		}
		if !grown {
			break
		}
	}
	if sol == nil {
		return nil, &allocate.SpillResult{Status: milp.Limit, Bound: bound}, nil
	}
	if sol.Bound >= sol.Cost {
		sol.Status, sol.Bound = milp.Optimal, sol.Cost
	}
	return spills, sol, nil
}

var exactSpills = scheduler.Strategy{Name: "search", Description: "what moves least, by dynamic programming",
	Exact: true, Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastMoves(ctx, d) }}

// spillRepriced bounds how often the plan is made anew with what its values take where they then are.
const spillRepriced = 3

// leastMoves chooses what leaves the L1s so that moves take least time. The program has values that leave in the LLB;
// what goes on to the DDR is then priced there, and the choice is made again. Results may take the place of what their
// layer reads last: the program lets all of them do so, which is a relaxation, and plans are made with and without.
func leastMoves(ctx context.Context, d *scheduler.Draft) error {
	limit := solve.Options[allocate.SpillStart]{TimeLimit: d.Options.SearchLimit()}
	ctx, cancel := limit.Begin(ctx)
	defer cancel()
	x, err := newSpiller(d)
	if err != nil {
		return err
	}
	for _, places := range []map[int]bool{x.over, nil} {
		if places != nil && len(x.over) == 0 {
			continue
		}
		if err := x.repriced(ctx, places); err != nil {
			return err
		}
		if x.least <= x.bound || x.least == 0 {
			break
		}
	}
	x.wholePasses(ctx)
	x.byRules()
	x.answer()
	return nil
}

// A spiller makes memory plans of a draft, and keeps the one whose moves take least time.
type spiller struct {
	d       *scheduler.Draft
	moves   binding.Moves
	readers [][]*schedule.Read
	next    schedule.Level // behind the L1
	over    map[int]bool   // results that may take the place of what their layer reads last
	apart   []int          // values that leave even where there is room

	given, best *schedule.Schedule
	near        *schedule.Schedule // the best plan of those of which values leave for want of room alone
	least       float64            // seconds of best
	plans       []*schedule.Schedule
	sol         *allocate.SpillResult // of the first program
	bound       float64
}

func newSpiller(d *scheduler.Draft) (*spiller, error) {
	x := &spiller{d: d, over: map[int]bool{}, bound: math.Inf(1)}
	x.given = x.copy()
	if err := graphturbo.Place(x.given, scheduler.Placing{Rule: graphturbo.LongestLifetime}, nil); err != nil {
		return nil, err
	}
	x.best, x.near, x.least = x.given, x.given, x.moved(x.given)
	x.moves, x.readers, x.next = binding.MovesOf(d.Schedule, d.Cost), readersOf(d.Schedule), nextLevel(d.Schedule)
	for i := range d.Steps {
		if v, _ := d.Overwritable(&d.Steps[i]); v != nil {
			x.over[d.Steps[i].Writes[0]] = true
		}
	}
	for i := range d.Values {
		if v := &d.Values[i]; v.Def >= 0 && v.Wanted == schedule.L1 && v.CoreBytes > 0 && x.extra(v, schedule.L1) > 0 {
			x.apart = append(x.apart, i)
		}
	}
	return x, nil
}

// copy is the draft's schedule, for a plan.
func (x *spiller) copy() *schedule.Schedule {
	s := *x.d.Schedule
	s.Steps, s.Values, s.Spills = slices.Clone(s.Steps), slices.Clone(s.Values), slices.Clone(s.Spills)
	return &s
}

func (x *spiller) moved(s *schedule.Schedule) float64 { return MovedSeconds(s, x.d.Cost) }

// extra is the time that a value's moves add at a level, in seconds.
func (x *spiller) extra(v *schedule.Value, at schedule.Level) float64 {
	return leaving(x.moves, v, at, x.readers[v.ID], x.next)
}

// leaves is the extra time of a spill over a stay in the L1, at the cheaper of two levels, in picoseconds.
func (x *spiller) leaves(v *schedule.Value, at, or schedule.Level) int64 {
	return picos(max(0, min(x.extra(v, at), x.extra(v, or))-x.extra(v, schedule.L1)))
}

// passing is again, in picoseconds.
func (x *spiller) passing(st *schedule.Step, tiles int64) int64 {
	return picos(again(x.moves, x.d.Schedule, st, tiles))
}

func picos(seconds float64) int64 { return int64(math.Floor(1e12 * seconds)) } // or the sum would be no bound

// place makes the plan in which some values leave.
func (x *spiller) place(ctx context.Context, spills []int, inPlace bool) (*schedule.Schedule, error) {
	plan := x.copy()
	slices.Sort(spills)
	return plan, graphturbo.Place(plan, scheduler.Placing{Rule: graphturbo.LongestLifetime, Over: inPlace, Chosen: true,
		Spilled: slices.Compact(spills)}, Packer(ctx))
}

// repriced makes plans by the program, each with values priced where those of the one before have gone.
func (x *spiller) repriced(ctx context.Context, places map[int]bool) error {
	at := slices.Repeat([]schedule.Level{x.next}, len(x.d.Values))
	for round := range spillRepriced {
		p := newSpillProblem(x.d.Schedule, func(v *schedule.Value) int64 {
			if round == 0 {
				return x.leaves(v, at[v.ID], schedule.DDR)
			}
			return x.leaves(v, at[v.ID], at[v.ID])
		}, x.passing, places)
		var opts allocate.SweepOptions
		opts.Progress = x.d.Options.ReportTo("spill")
		spills, found, err := p.Choose(ctx, x.d.Schedule, opts)
		if err != nil && places != nil && ctx.Err() == nil {
			return nil // a stage that only a result in place leaves room for
		} else if err != nil {
			return err
		}
		if x.sol == nil {
			if x.sol, x.bound = found, float64(found.Bound)*1e-12; places == nil && len(x.over) > 0 {
				x.bound = 0 // results in place may move less
			}
		}
		if !found.Status.HasValues() {
			return nil
		}
		plan, err := x.take(ctx, spills, places != nil)
		if err != nil {
			return err
		}
		more := false
		for i := range plan.Values {
			if v := &plan.Values[i]; v.Spilled() && v.Level > at[i] {
				at[i], more = v.Level, true
			}
		}
		if !more || x.least <= x.bound {
			return nil
		}
	}
	return nil
}

// take makes the plan of an answer, without the values apart and with them, which it returns.
func (x *spiller) take(ctx context.Context, spills []int, inPlace bool) (*schedule.Schedule, error) {
	if len(x.apart) > 0 && (len(spills) > 0 || inPlace) {
		plan, err := x.place(ctx, spills, inPlace)
		if err != nil {
			return nil, err
		}
		if x.moved(plan) < x.moved(x.near) {
			x.near = plan
		}
	}
	plan, err := x.place(ctx, append(spills, x.apart...), inPlace)
	if err != nil {
		return nil, err
	}
	x.plans = append(x.plans, plan)
	if s := x.moved(plan); s < x.least {
		x.best, x.least = plan, s
	}
	return plan, nil
}

// wholePasses makes a plan by all of the time of parameters that pass again, where that is more than a step's units
// leave them: beside these they keep others waiting, which the simulator judges.
func (x *spiller) wholePasses(ctx context.Context) {
	wholly := func(st *schedule.Step, tiles int64) int64 {
		return (tiles - 1) * min(1, graphturbo.PassesAgain(x.d.Schedule, st)) * picos(x.moves.Again(st))
	}
	if !slices.ContainsFunc(slices.Concat(x.best.Steps, x.near.Steps), func(st schedule.Step) bool {
		return wholly(&st, st.Tiles) > x.passing(&st, st.Tiles)
	}) {
		return
	}
	p := newSpillProblem(x.d.Schedule, func(v *schedule.Value) int64 { return x.leaves(v, x.next, schedule.DDR) }, wholly,
		x.over)
	if spills, sol, err := p.Choose(ctx, x.d.Schedule, allocate.SweepOptions{}); err == nil && sol.Status.HasValues() {
		if plan, err := x.place(ctx, append(spills, x.apart...), len(x.over) > 0); err == nil {
			x.plans = append(x.plans, plan)
		}
	}
}

// byRules makes plans by rules that let results lie over what they read: other steps may run at once in them.
func (x *spiller) byRules() {
	for _, by := range graphturbo.Spills() {
		if s := x.copy(); by.Places.Over && graphturbo.Place(s, *by.Places, nil) == nil {
			x.plans = append(x.plans, s)
		}
	}
}

// answer makes the draft the best plan, and leaves those that are nearly as good to the simulator.
func (x *spiller) answer() {
	most, seen := x.least, []*schedule.Schedule{x.best, x.given}
	if len(x.apart) > 0 { // whether readers have values sooner is simulated
		most, x.plans = max(x.least, x.moved(x.near)), append([]*schedule.Schedule{x.near}, x.plans...)
	}
	most += (scheduler.PoolGap - 1) * PredictedSeconds(x.best, x.d.Cost)
	for _, s := range x.plans {
		if x.moved(s) <= most && !slices.ContainsFunc(seen, func(y *schedule.Schedule) bool { return samePlan(y, s) }) {
			seen = append(seen, s)
		}
	}
	x.d.Also(seen[2:]...) // the given one is the greedy one
	*x.d.Schedule = *x.best
	stop := milp.Complete
	if x.sol != nil { // nil: the given plan moves nothing
		stop = x.sol.Stop
	}
	a := solve.Outcome{Objective: x.least, Bound: x.bound}
	if a.Status, a.Stop = solve.Judge(true, x.least <= x.bound*(1+1e-9), stop); a.Status == milp.Optimal {
		a.Bound = x.least
	}
	x.d.Solve("spill", scheduler.Solved{Outcome: a, Unit: solve.SecondsUnit})
}

// samePlan reports whether two schedules of the same steps and values have them in the same places.
func samePlan(a, b *schedule.Schedule) bool {
	return slices.EqualFunc(a.Values, b.Values, func(x, y schedule.Value) bool {
		return x.Level == y.Level && x.Address == y.Address
	}) && slices.EqualFunc(a.Steps, b.Steps, func(x, y schedule.Step) bool {
		return x.Tiles == y.Tiles && x.StageAddress == y.StageAddress
	})
}

// packNodes bounds the search for addresses, so that it ends anywhere at the same
// place. A node looks at all that is not placed: more than mostPacked are not searched.
const packNodes, mostPacked = 50_000, 10_000

// Packer looks for addresses of what stays in an L1 by search, in bytes.
func Packer(ctx context.Context) func([]graphturbo.Extent, int64) ([]int64, bool) {
	return func(list []graphturbo.Extent, capacity int64) ([]int64, bool) {
		if len(list) > mostPacked {
			return nil, false
		}
		p := &allocate.Problem{}
		for i, x := range list {
			p.Buffers = append(p.Buffers, allocate.Buffer{ID: fmt.Sprint(i),
				Lifetime: allocate.Interval{Lower: int64(x.First), Upper: int64(x.Last) + 1}, Size: x.Bytes, Alignment: 64})
		}
		sol, err := allocate.Fit(ctx, p, capacity, allocate.Options{WorkLimit: packNodes})
		if err != nil || !sol.Status.HasValues() {
			return nil, false
		}
		return sol.Offsets, true
	}
}
