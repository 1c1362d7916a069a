package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
)

// A rehearsal simulates what comes of a stage's decisions while the stage decides: greedy rules decide the stages
// behind it, and a cluster's chunks follow each other.
type rehearsal struct {
	after string
	rest  Recipe
	opt   run
	again func(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt run) (*Draft, error)
	busy  int
	times int
	// instances: what each takes is asked for, and not only each group.
	instances bool
}

// mostChunks is the number of chunks that a rehearsal runs in a row, at most: later ones take as long as the last.
const mostChunks = 4

// rehearse is for decisions of a stage on a draft.
func (d *Draft) rehearse(stage string) *rehearsal {
	x := &rehearsal{after: stage, rest: d.rest, again: d.again, busy: d.Spec.Clusters,
		times: int(max(1, min(d.state.times, mostChunks)))}
	x.rest.Fallback = nil
	x.opt = run{Options: d.Options, state: state{unchecked: true, times: d.state.times, active: d.state.active,
		ddrWeight: d.state.ddrWeight, rival: d.state.rival, memo: d.state.memo, tiles: d.state.tiles}}
	x.opt.Progress, x.opt.Deciding, x.opt.Chunks = nil, nil, nil
	if x.opt.memo == nil {
		x.opt.memo = schedule.NewMemo()
	}
	if x.opt.tiles == nil {
		x.opt.tiles = &tileMemo{}
	}
	x.busy = min(x.busy, cmp.Or(d.Busy, x.busy))
	return x
}

// simulate goes on from a schedule that has what the stage decides. Took is nil if it takes more than a limit of
// picoseconds, which 0 is none.
func (x *rehearsal) simulate(ctx context.Context, s *schedule.Schedule, limit int64) Outcome {
	d, err := x.again(ctx, s, x.after, x.rest, x.opt)
	if err != nil {
		return Outcome{Err: err}
	}
	return x.time(ctx, d, limit)
}

// time simulates a draft.
func (x *rehearsal) time(ctx context.Context, d *Draft, limit int64) Outcome {
	seg := lower.Segment{Schedule: d.Schedule, Iterations: x.times}
	plans := make([][]lower.Segment, d.Spec.Clusters)
	for k := range x.busy {
		plans[k] = []lower.Segment{seg}
	}
	opt := Until(ctx, d.Lower)
	opt.Memory = x.opt.tiles.take()
	defer x.opt.tiles.give(opt.Memory)
	program, alike, err := lower.Outline("", d.Spec, plans, opt)
	if err != nil {
		return Outcome{Err: err}
	}
	o := Outcome{Schedule: d.Schedule, Outline: Outline{Commands: len(program.Commands)}}
	if o.Ps, o.start, o.Err = sim.Latency(ctx, program, alike, limit); o.Err == nil && o.start != nil {
		if o.Took = took(program, o.start, o.Ps, seg, len(d.Grouping.Groups), nil); x.instances {
			o.each = took(program, o.start, o.Ps, seg, len(d.Order), func(instance int) int { return instance })
		}
	}
	o.start = nil
	return o
}

// Judged says what the simulator makes of a stage's exact answer, of others nearly as good by its objective or seen on
// the way, and of the greedy decision, in seconds of some chunks, if greedy rules decide all behind. The fastest is
// kept; of equals the exact one, then one of the others.
type Judged struct {
	Own    float64 `json:"own_simulated_s"` // before the choice; 0: it can't be simulated
	Others int     `json:"others"`
	Best   float64 `json:"others_simulated_s,omitempty"` // the fastest of them
	Greedy float64 `json:"greedy_simulated_s"`
	Kept   string  `json:"kept"` // own, other or greedy
}

// poolGap is up to how many times the least objective of a decision the simulator chooses among answers.
const poolGap = 1.02

// judge keeps the decision that a stage has made exactly, or takes another one or the greedy one in its place if that
// simulates faster. answer is the stage whose answer says so, before one on whose decisions greedy rules can go on.
func (d *Draft) judge(ctx context.Context, st Stage, answer, before string) error {
	others := d.alternatives
	d.alternatives = nil
	if d.Options.Clusters != OverBatch {
		return nil // clusters do different things
	}
	x := d.rehearse(st.Name)
	with := func(s *schedule.Schedule) Outcome { return x.simulate(ctx, s, 0) }
	var own Outcome
	if st.keep == nil { // d is whole, and the others' decisions are asked for
		own = x.time(ctx, d, 0)
		with = func(s *schedule.Schedule) Outcome {
			y := *x
			y.after = before
			of := Decisions{Recipe: x.rest, Stages: x.rest.table()}
			of.Values = make([]Decision, len(of.Stages))
			of.amend(st.take(&Draft{Schedule: s, Recipe: d.Recipe, Options: d.Options}, false))
			y.opt.given = &of
			return y.simulate(ctx, d.Schedule, 0)
		}
	} else {
		own = with(d.Schedule)
	}
	a := d.answers[answer]
	j := &Judged{Kept: "own", Own: float64(own.Ps) * 1e-12, Others: len(others)}
	best := own
	consider := func(o Outcome, kept string) (seconds float64) {
		if o.Err == nil && (best.Err != nil || o.Ps < best.Ps) {
			best, j.Kept = o, kept
		}
		return float64(o.Ps) * 1e-12
	}
	for _, s := range others {
		if seconds := consider(with(s), "other"); seconds > 0 && (j.Best == 0 || seconds < j.Best) {
			j.Best = seconds
		}
	}
	y := *x
	y.after = before
	greedy := y.simulate(ctx, d.Schedule, 0)
	j.Greedy = consider(greedy, "greedy")
	if err := ctx.Err(); err != nil {
		return err
	}
	if best.Err != nil || greedy.Err != nil && st.keep == nil && j.Kept == "own" {
		return nil // who goes on finds out
	}
	if a.Judged = j; j.Kept != "own" {
		a.Note = strings.TrimPrefix(fmt.Sprintf("%s; the simulator chose the %s answer of %d: %.4g s, %.4g by the method's "+
			"own", a.Note, j.Kept, len(others)+2, float64(best.Ps)*1e-12, j.Own), "; ")
		if st.keep == nil {
			*d.Schedule = *best.Schedule
		} else {
			st.keep(d.Schedule, best.Schedule)
		}
	}
	if d.answers != nil {
		d.answers[answer] = a
	}
	return nil
}

// Work of bindings by measured prices: so many choices are simulated until one is known, as long as they have so many
// commands; behind that, so many with labels that nobody has measured, as long as all have so many.
const (
	bindingRounds, bindingCommands = 10, 1_500_000
	freshRounds, freshCommands     = 40, 300_000
)

// measuredBinding goes on from the choice of least cost by formulas: the greedy choice and the last one are simulated,
// what their instances took are prices, and the choice of least cost at these is the next one, until it is known. Then
// come choices that would be the best if labels that nobody has measured took less and less. The answer is the fastest
// choice that was simulated; the others are for the simulator to choose from once more.
func (d *Draft) measuredBinding(ctx context.Context, n *binding.Network, choice []int) ([]int, error) {
	if d.Options.Clusters != OverBatch {
		return choice, nil // a rehearsal has the whole network on each
	}
	x := d.rehearse("bind")
	x.instances = true
	prices, work, known := binding.NewMeasured(n.Problem), 0, map[string]bool{}
	incumbent, least := choice, int64(math.MaxInt64)
	timed, end := (&binding.Options{TimeLimit: d.Options.searchLimit()}).Begin(ctx)
	defer end()
	try := func(next []int) bool {
		known[fmt.Sprint(next)] = true
		s := *d.Schedule
		s.Bindings, s.Scopes = n.Decode(next)
		o := x.simulate(ctx, &s, 0)
		if o.Err != nil {
			return false
		}
		if len(known) > 1 { // the greedy one is simulated anyway
			d.alternatives = append(d.alternatives, &s)
		}
		if o.Ps < least || o.Ps == least && len(known) == 2 { // of equals the one by formulas
			incumbent, least = next, o.Ps
		}
		work += o.Commands
		seconds := make([]float64, len(o.each))
		for i, ps := range o.each {
			seconds[i] = float64(ps) * 1e-12 / float64(x.times)
		}
		prices.Learn(next, seconds)
		return true
	}
	fits := try(n.Given)
	if same := known[fmt.Sprint(choice)]; same && !fits || !same && !try(choice) {
		return n.Given, ctx.Err()
	}
	if !fits {
		return choice, ctx.Err()
	}
	for round, fresh := 0, 1.0; round < freshRounds && fresh > 0.1 && solve.Why(timed) == milp.Complete; round++ {
		if fresh == 1 && (round >= bindingRounds || work > bindingCommands) || fresh < 1 && work > freshCommands {
			break
		}
		r, err := binding.Search(timed, prices.Problem(fresh), binding.Options{Start: choice})
		if err != nil {
			return nil, err
		}
		if known[fmt.Sprint(r.Choice)] {
			fresh *= 0.8
		} else if try(r.Choice); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	bindings, scopes := n.Decode(incumbent)
	d.alternatives = slices.DeleteFunc(d.alternatives, func(s *schedule.Schedule) bool {
		return slices.EqualFunc(s.Bindings, bindings, schedule.Binding.Equal) && slices.Equal(s.Scopes, scopes)
	})
	return incumbent, nil
}

// Work of a split by measured prices: so many commands are lowered and simulated, on so many paths at most, some at a
// time. The answer does not depend on the number of cores.
const (
	splitCommands = 8_000_000
	splitPaths    = 500
	fewPaths      = 32 // where a search goes on from what they give
	splitRound    = 4
	// Where later decisions are exact, too, they are made for so many of the fastest paths, of all so many commands.
	splitPool, splitPoolCommands = 24, 40_000
)

// A rival is the least time of a batch in chunks of other sizes.
type rival struct{ ps int64 }

// A chunk is given up behind if it is so many times slower after so many paths.
const (
	behind      = 1.15
	behindAfter = 48
)

// beats reports whether a chunk that takes ps is given up behind.
func (r *rival) beats(d *Draft, ps int64, paths int) bool {
	all := float64(ps) * float64(max(1, d.state.times))
	return r != nil && r.ps > 0 && paths >= behindAfter && all > behind*float64(r.ps)
}

// explored is what a split by measured prices knows of its paths before later decisions count, and of those of the
// graph with each attention as one operator, whose scores are in no memory, if it has any.
type explored struct {
	graph   *model.Graph
	memo    *schedule.Memo
	columns *split.Columns
	given   []measuredPath // of greedy groupings, the draft's first
	all     []measuredPath // that could be simulated
	Measured
}

// A measuredPath took ps, by so many commands.
type measuredPath struct {
	of       *explored
	path     []int
	ps       int64
	commands int
}

// exploredKey is equal for drafts whose explorations are the same.
type exploredKey struct {
	draftKey
	groups              string
	inPlace             bool
	times               int64
	chunks, busy, paths int
}

// Share keeps what strategies explore for later calls that get the same options, none beside another.
func (o *Options) Share() { o.explored = map[exploredKey]*explored{} }

// schedule has the groups of a path.
func (t measuredPath) schedule(d *Draft) *schedule.Schedule {
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
func (d *Draft) measuredSplit(ctx context.Context) (m Measured, err error) {
	own := split.Options{TimeLimit: d.Options.searchLimit()}
	timed, end := own.Begin(ctx)
	defer end()
	x := d.rehearse("split")
	groups := ""
	for _, sg := range d.Grouping.Groups {
		groups += fmt.Sprint(sg.Ops, sg.Split)
	}
	known := d.Options.explored
	if d.exact == 0 || len(d.rest.own) > 0 || d.rest.stages != nil { // its key does not say all
		known = nil
	}
	key := exploredKey{d.key, groups, d.Options.InPlace || d.Machine.InPlace, d.state.times, x.times, x.busy,
		d.state.paths}
	e := known[key]
	if e == nil {
		if e, err = d.exploreForms(ctx, timed, x); err != nil {
			return m, err
		}
		if known != nil {
			known[key] = e
		}
	}
	with := func(y rehearsal, t measuredPath) Outcome {
		y.opt.memo = t.of.memo
		return y.simulate(timed, t.schedule(d), 0)
	}
	all := slices.SortedStableFunc(slices.Values(e.all), func(a, b measuredPath) int { return cmp.Compare(a.ps, b.ps) })
	best, y := all[0], *x
	if d.exact > 1 { // later decisions, which may prefer another one of the best paths
		y.rest, y.rest.Fallback = d.later, nil
		pool := all[:min(len(all), splitPool, max(1, splitPoolCommands/max(1, best.commands)))]
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
	if d.state.times > int64(x.times) { // greedy groups may be faster over all chunks
		longer, least := y, int64(math.MaxInt64)
		longer.times = int(d.state.times)
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
	if d.Grouping, d.Layers = best.schedule(d).Grouping, nil; m.Fused {
		d.Graph, d.Memo = best.of.graph, best.of.memo
	}
	return m, nil
}

// exploreForms explores the draft's graph, and that with each attention as one operator.
func (d *Draft) exploreForms(ctx, timed context.Context, x *rehearsal) (*explored, error) {
	paths := cmp.Or(d.state.paths, splitPaths)
	fused, n, err := simplify.FuseAttention(d.Graph)
	if err != nil || n == 0 {
		return d.explore(ctx, timed, x, paths)
	}
	e, err := d.explore(ctx, timed, x, paths/2)
	if err != nil {
		return nil, err
	}
	f, y := *d, *x
	f.Schedule = &schedule.Schedule{Graph: fused, Spec: d.Spec, Busy: d.Busy, UnevenCores: d.UnevenCores}
	y.opt.memo = schedule.NewMemo()
	switch o, err := f.explore(ctx, timed, &y, paths/2); {
	case err == nil:
		e.with(o)
	case ctx.Err() != nil: // else greedy rules can't schedule that form
		return nil, err
	}
	return e, nil
}

// explore simulates paths until no column has a competitive reduced cost, or the work or so many paths are done.
func (d *Draft) explore(ctx, timed context.Context, x *rehearsal, paths int) (*explored, error) {
	var groupings []*schedule.Grouping
	if d.Grouping != nil {
		groupings = append(groupings, d.Grouping)
	}
	for _, layers := range []bool{false, true} { // what greedy rules make, by either count of a footprint
		machine := d.Machine
		machine.Layers = layers
		gr, err := graphturbo.GroupContext(ctx, d.Graph, machine)
		if err != nil {
			return nil, err
		}
		groupings = append(groupings, gr)
	}
	n, err := split.FromGraph(d.Graph, graphturbo.ExecutionOrder(d.Graph), groupings[0], d.Spec,
		split.NetworkOptions{InPlace: d.Options.InPlace, Uneven: d.Options.Uneven.Alternatives()[0], Cost: d.Options.Cost,
			MaxGroups: 1, Also: groupings[1:]})
	if err != nil {
		return nil, err
	}
	c, given, err := n.Columns(ctx, groupings, func(ops []model.OpID, factor int64) float64 {
		return float64(x.times) * d.leastOf(ops, factor)
	})
	if err != nil {
		return nil, err
	}
	e := &explored{graph: d.Graph, memo: x.opt.memo, columns: c}
	known, best, work := map[string]bool{}, int64(math.MaxInt64), 0
	var list []measuredPath
	add := func(path []int) bool {
		name := fmt.Sprint(path)
		if path == nil || known[name] {
			return false
		}
		known[name] = true
		list = append(list, measuredPath{of: e, path: path})
		return true
	}
	simulate := func(ctx context.Context) (first error, err error) {
		outcomes := make([]Outcome, len(list))
		var workers errgroup.Group
		workers.SetLimit(splitRound)
		for i := range list {
			workers.Go(func() error {
				outcomes[i] = x.simulate(ctx, list[i].schedule(d), 0)
				outcomes[i].Schedule = nil
				return ctx.Err()
			})
		}
		if err := workers.Wait(); err != nil {
			return nil, err
		}
		for i, o := range outcomes {
			e.Paths++
			if o.Err != nil {
				c.Avoid(list[i].path)
				continue
			}
			work += o.Commands
			c.Learn(list[i].path, o.Took)
			list[i].ps, list[i].commands = o.Ps, o.Commands
			if e.all = append(e.all, list[i]); o.Ps < best {
				best = o.Ps
			}
		}
		return outcomes[0].Err, nil
	}
	for _, path := range given {
		add(path)
	}
	first, err := simulate(ctx)
	if err = cmp.Or(err, first); err != nil {
		return nil, err
	}
	e.given = slices.Clone(e.all)
	e.Greedy = float64(e.all[0].ps) * 1e-12
	rng := rand.New(rand.NewPCG(1, 2))
	for report := d.Options.ReportTo("split"); ; {
		e.Stop = solve.Why(timed)
		if e.Stop == milp.Complete && (e.Paths >= paths || work >= splitCommands ||
			d.state.rival.beats(d, best/int64(x.times), e.Paths)) {
			e.Stop = milp.StopWork
		}
		if e.Stop != milp.Complete {
			break
		}
		list = nil
		add(c.Best(nil).Path)
		for try := 0; len(list) < splitRound/2 && try < splitRound; try++ {
			add(c.Best(rng).Path)
		}
		banned := map[int]bool{}
		for _, deviations := range []float64{0, 0.5, 1, 1.5, 2, 3, 5, 8, 12, 20} {
			for len(list) < splitRound {
				path, fresh := c.Next(deviations, banned)
				if len(fresh) == 0 || !add(path) {
					break
				}
				for _, k := range fresh {
					banned[k] = true
				}
			}
		}
		if len(list) == 0 {
			break
		}
		before := best
		if _, err := simulate(timed); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		}
		if report != nil && best < before {
			report(milp.Progress{Objective: float64(best) * 1e-12, Bound: c.Bound(), Improved: true})
		}
	}
	program := c.Best(nil)
	e.Listed, e.Priced = c.Size()
	e.Rows, e.Columns, e.LP, e.Chunks, e.Bound = program.Rows, program.Columns, program.Seconds, x.times, c.Bound()
	return e, nil
}

// Measured is what a decision by measured prices says of itself. Times are of the chunks that a rehearsal runs, in
// seconds.
type Measured struct {
	Chunks    int       `json:"chunks"`         // that a rehearsal runs
	Paths     int       `json:"paths"`          // simulated
	Listed    int       `json:"listed_columns"` // groups, each in a way to split it
	Priced    int       `json:"priced_columns"` // that were simulated
	Rows      int       `json:"rows"`           // of the program over priced columns
	Columns   int       `json:"columns"`
	LP        float64   `json:"lp_s"` // its value, and that of its relaxation: a shortest path
	Simulated float64   `json:"simulated_s"`
	Greedy    float64   `json:"greedy_simulated_s"`
	Bound     float64   `json:"class_bound_s"`             // of all listed columns
	Fused     bool      `json:"attention_fused,omitempty"` // each attention is one operator
	Stop      milp.Stop `json:"-"`
}

// leastOf is a lower bound on the seconds of a group's kernels: launches, and products at the peak rate.
func (d *Draft) leastOf(ops []model.OpID, factor int64) float64 {
	sum := float64(factor) * d.Spec.LaunchSeconds
	if d.Options.Cost == nil {
		sum += productSeconds(d.Graph, ops, d.Cost)
	}
	return sum
}
