package exact

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

var exactSplit = scheduler.Strategy{Name: "search", Description: "groups and factors of least measured time, by shortest paths",
	Needs: graphturbo.Splittable(), Exact: true,
	Decide: func(ctx context.Context, d *scheduler.Draft) error {
		m, err := measuredSplit(ctx, d)
		if err != nil {
			return err
		}
		o := solve.Outcome{Objective: m.Simulated, Bound: m.Bound}
		o.Status, o.Stop = solve.Judge(true, m.Simulated <= m.Bound*(1+1e-9), m.Stop)
		note := fmt.Sprintf("%d paths simulated, %d of %d columns priced; the gap is from simulated time to "+
			"the bound on all paths over listed columns", m.Paths, m.Priced, m.Listed)
		if m.Fused {
			note += "; each attention is one operator"
		}
		d.Solve("split", scheduler.Solved{Outcome: o, Unit: solve.SecondsUnit, Note: note, Measured: &m})
		return nil
	}}

// SplitProblem is the choice of groups and factors that a network poses, on the
// accelerator as the decisions see it; that of s is its start.
func SplitProblem(s *schedule.Schedule, opt scheduler.Options) (*split.Network, error) {
	return split.FromGraph(s.Graph, schedule.ExecutionOrder(s.Graph), s.Grouping, s.Spec,
		split.NetworkOptions{InPlace: opt.InPlace, Uneven: opt.Uneven.Alternatives()[0], Cost: opt.Cost})
}

// Work of a split by measured prices: so many commands are lowered and simulated, on so many paths at most, some at a
// time. The answer does not depend on the number of cores.
const (
	splitCommands = 8_000_000
	splitPaths    = 500
	splitRound    = 4
	// Where later decisions are exact, too, they are made for so many of the fastest paths, of all so many commands; each
	// takes some forty simulations.
	splitPool, splitPoolCommands = 24, 40_000
)

// commands is a number of commands to simulate, or the options' where that is less.
func commands(d *scheduler.Draft, most int) int { return min(most, cmp.Or(d.Options.Commands, most)) }

// explored holds the paths that a split by measured prices has simulated, before later decisions are made. A graph with
// attention has a second set of paths, with each attention as one operator.
type explored struct {
	graph   *model.Graph
	memo    *schedule.Memo
	columns *split.Columns
	given   []measuredPath // of greedy groupings, the draft's first
	all     []measuredPath // that could be simulated
	scheduler.Measured
}

// A measuredPath took ps, by so many commands.
type measuredPath struct {
	of       *explored
	path     []int
	ps       int64
	commands int
}

// schedule has the groups of a path.
func (t measuredPath) schedule(d *scheduler.Draft) *schedule.Schedule {
	return &schedule.Schedule{Graph: t.of.graph, Spec: d.Spec, Grouping: t.of.columns.Groups(t.path)}
}

// with explores another form of the network, too: its columns are those of a second set of sequences.
func (e *explored) with(o *explored) {
	e.given, e.all = append(e.given, o.given...), append(e.all, o.all...)
	e.Paths, e.Listed, e.Priced = e.Paths+o.Paths, e.Listed+o.Listed, e.Priced+o.Priced
	e.Rows, e.Columns = e.Rows+o.Rows-2, e.Columns+o.Columns // they have source and sink in common
	e.LP, e.Bound = min(e.LP, o.LP), min(e.Bound, o.Bound)
	e.Stop = max(e.Stop, o.Stop)
}

// measuredSplit chooses the groups and ways of least simulated time: see [split.Columns].
func measuredSplit(ctx context.Context, d *scheduler.Draft) (m scheduler.Measured, err error) {
	own := split.Options{TimeLimit: d.Options.SearchLimit()}
	timed, end := own.Begin(ctx)
	defer end()
	x := d.Rehearse("split")
	groups := ""
	for _, sg := range d.Grouping.Groups {
		groups += fmt.Sprint(sg.Ops, sg.Split)
	}
	known, err := d.Explored(x, groups, func() (any, error) { return exploreForms(ctx, d, timed, x) })
	if err != nil {
		return m, err
	}
	e := known.(*explored)
	with := func(y scheduler.Rehearsal, t measuredPath) scheduler.Outcome {
		y.Memo = t.of.memo
		return y.Simulate(timed, t.schedule(d))
	}
	all := slices.SortedStableFunc(slices.Values(e.all), func(a, b measuredPath) int { return cmp.Compare(a.ps, b.ps) })
	best, y := all[0], *x
	if d.ExactStages() > 1 { // later decisions, which may prefer another one of the best paths
		y = d.Exactly(y)
		pool := all[:min(len(all), splitPool, max(1, commands(d, 40*splitPoolCommands)/40/max(1, best.commands)))]
		for _, t := range e.given {
			if !slices.ContainsFunc(pool, func(p measuredPath) bool { return p.of == t.of && slices.Equal(p.path, t.path) }) {
				pool = append(slices.Clone(pool), t)
			}
		}
		least := int64(math.MaxInt64)
		for _, t := range pool {
			if o := with(y, t); o.Err == nil && o.Ps < least {
				best, least = t, o.Ps
			}
		}
	}
	if d.Times() > int64(x.Times) { // greedy groups may be faster over all chunks
		longer, least := y, int64(math.MaxInt64)
		longer.Times = int(d.Times())
		for _, t := range append([]measuredPath{best}, e.given...) {
			if o := with(longer, t); o.Err == nil && o.Ps < least {
				best, least = t, o.Ps
			}
		}
	}
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	m = e.Measured
	m.Simulated, m.Fused = float64(best.ps)*1e-12, best.of.graph != d.Graph
	if m.Fused {
		err = d.Rewrite("attention")
		d.Memo = best.of.memo
	}
	d.Grouping, d.Layers = best.schedule(d).Grouping, nil
	return m, err
}

// exploreForms explores the draft's graph, and that with each attention as one operator.
func exploreForms(ctx context.Context, d *scheduler.Draft, timed context.Context, x *scheduler.Rehearsal) (*explored,
	error) {
	paths := cmp.Or(d.Paths(), splitPaths)
	f := *d
	f.Schedule = &schedule.Schedule{Graph: d.Graph, Spec: d.Spec, Busy: d.Busy, Slices: d.Slices}
	err := f.Rewrite("attention")
	if err != nil || f.Graph == d.Graph || d.Options.Clusters != scheduler.OverBatch { // clusters number operators
		return explore(ctx, d, timed, x, paths)
	}
	e, err := explore(ctx, d, timed, x, paths/2)
	if err != nil {
		return nil, err
	}
	y := *x
	y.Memo = schedule.NewMemo()
	switch o, err := explore(ctx, &f, timed, &y, paths/2); {
	case err == nil:
		e.with(o)
	case ctx.Err() != nil: // else greedy rules can't schedule that form
		return nil, err
	}
	return e, nil
}

// explore simulates paths until no column has a competitive reduced cost, or the work or so many paths are done.
func explore(ctx context.Context, d *scheduler.Draft, timed context.Context, x *scheduler.Rehearsal,
	paths int) (*explored, error) {
	c, given, err := listColumns(ctx, d, timed, x)
	if err != nil {
		return nil, err
	}
	e := &explored{graph: d.Graph, memo: x.Memo, columns: c}
	r := explorer{explored: e, draft: d, rehearsal: x, known: map[string]bool{}, best: math.MaxInt64}
	for _, path := range given {
		r.add(path)
	}
	first, err := r.simulate(ctx)
	if err = cmp.Or(err, first); err != nil {
		return nil, err
	}
	e.given = slices.Clone(e.all)
	e.Greedy = float64(e.all[0].ps) * 1e-12
	rng := rand.New(rand.NewPCG(1, 2))
	for report := d.Options.ReportTo("split"); ; {
		e.Stop = solve.Why(timed)
		if e.Stop == milp.Complete && (e.Paths >= paths || r.work >= commands(d, splitCommands) ||
			d.Beaten(r.best/int64(x.Times), e.Paths)) {
			e.Stop = milp.StopWork
		}
		if e.Stop != milp.Complete {
			break
		}
		if r.propose(rng); len(r.list) == 0 {
			break
		}
		before := r.best
		if _, err := r.simulate(timed); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		}
		if report != nil && r.best < before {
			report(milp.Progress{Objective: float64(r.best) * 1e-12, Bound: c.Bound(), Improved: true})
		}
	}
	program := c.Best(nil)
	e.Listed, e.Priced = c.Size()
	e.Rows, e.Columns, e.LP, e.Chunks, e.Bound = program.Rows, program.Columns, program.Seconds, x.Times, c.Bound()
	return e, nil
}

// listColumns gives the columns of the draft's graph, and the paths of the draft's groups and of those of greedy rules.
func listColumns(ctx context.Context, d *scheduler.Draft, timed context.Context, x *scheduler.Rehearsal) (
	*split.Columns, [][]int, error) {
	var groupings []*schedule.Grouping
	if d.Grouping != nil {
		groupings = append(groupings, d.Grouping)
	}
	for _, layers := range []bool{false, true} { // what greedy rules make, by either count of a footprint
		machine := d.Machine
		machine.Layers = layers
		gr, err := graphturbo.Group(ctx, d.Graph, machine)
		if err != nil {
			return nil, nil, err
		}
		groupings = append(groupings, gr)
	}
	n, err := split.FromGraph(d.Graph, schedule.ExecutionOrder(d.Graph), groupings[0], d.Spec,
		split.NetworkOptions{InPlace: d.Options.InPlace, Uneven: d.Options.Uneven.Alternatives()[0], Cost: d.Options.Cost,
			MaxGroups: 1, Also: groupings[1:]})
	if err != nil {
		return nil, nil, err
	}
	chunks, launch := float64(x.Times), float64(x.Times)*d.Spec.LaunchSeconds
	m, unpriced := cost.New(d.Spec)
	return n.Columns(ctx, timed, groupings, launch, func(ops []model.OpID) (least [2]float64) {
		if unpriced == nil && d.Options.Cost == nil { // else launches alone
			seconds, _ := bound.Group(d.Graph, m, ops)
			least = [2]float64{chunks * seconds, chunks * d.ProductSeconds(ops)}
		}
		return least
	})
}

// An explorer simulates the paths that it proposes, round by round.
type explorer struct {
	*explored
	draft     *scheduler.Draft
	rehearsal *scheduler.Rehearsal
	known     map[string]bool
	list      []measuredPath // of a round
	best      int64          // ps
	work      int            // commands simulated
}

// add puts a path on the list, unless it was there before.
func (r *explorer) add(path []int) bool {
	name := fmt.Sprint(path)
	if path == nil || r.known[name] {
		return false
	}
	r.known[name] = true
	r.list = append(r.list, measuredPath{of: r.explored, path: path})
	return true
}

// propose lists the paths of a round: the shortest, some that are shortest under costs drawn around the means, and some
// through columns that no path had, of least reduced cost first.
func (r *explorer) propose(rng *rand.Rand) {
	r.list = nil
	r.add(r.columns.Best(nil).Path)
	for try := 0; len(r.list) < splitRound/2 && try < splitRound; try++ {
		r.add(r.columns.Best(rng).Path)
	}
	banned := map[int]bool{}
	for _, deviations := range []float64{0, 0.5, 1, 1.5, 2, 3, 5, 8, 12, 20} {
		for len(r.list) < splitRound {
			path, fresh := r.columns.Next(deviations, banned)
			if len(fresh) == 0 || !r.add(path) {
				break
			}
			for _, k := range fresh {
				banned[k] = true
			}
		}
	}
}

// simulate simulates the list, and learns what columns cost; first is the error of its first path.
func (r *explorer) simulate(ctx context.Context) (first error, err error) {
	outcomes := make([]scheduler.Outcome, len(r.list))
	var workers errgroup.Group
	workers.SetLimit(splitRound)
	for i := range r.list {
		workers.Go(func() error {
			outcomes[i] = r.rehearsal.Simulate(ctx, r.list[i].schedule(r.draft))
			return ctx.Err()
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	for i, o := range outcomes {
		r.Paths++
		if o.Err != nil {
			r.columns.Avoid(r.list[i].path)
			continue
		}
		r.work += o.Commands
		r.columns.Learn(r.list[i].path, o.Took)
		r.list[i].ps, r.list[i].commands = o.Ps, o.Commands
		r.all, r.best = append(r.all, r.list[i]), min(r.best, o.Ps)
	}
	return outcomes[0].Err, nil
}
