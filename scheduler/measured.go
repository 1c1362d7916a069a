package scheduler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Rehearsal simulates the outcome of a stage's decisions while the stage decides: greedy rules decide the later
// stages, and a cluster's chunks follow each other.
type Rehearsal struct {
	after string
	rest  Recipe
	opt   run
	again func(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt run) (*Draft, error)
	busy  int
	Times int            // that the chunk runs, in a row
	Memo  *schedule.Memo // of the graph at hand
	// Instances: what each takes is asked for, and not only each group.
	Instances bool
}

// mostChunks is the number of chunks that a rehearsal runs in a row, at most: later ones take as long as the last.
const mostChunks = 4

// Rehearse returns a rehearsal of a stage's decisions on this draft.
func (d *Draft) Rehearse(stage string) *Rehearsal {
	x := &Rehearsal{after: stage, rest: d.rest, again: d.again, busy: d.Spec.Clusters,
		Times: int(max(1, min(d.state.times, mostChunks)))}
	x.rest.Fallback = nil
	x.opt = run{Options: d.Options, state: state{unchecked: true, times: d.state.times, active: d.state.active,
		ddrWeight: d.state.ddrWeight, rival: d.state.rival, memo: d.state.memo, tiles: d.state.tiles}}
	x.opt.Progress, x.opt.Deciding, x.opt.Chunks = nil, nil, nil
	if x.Memo = x.opt.memo; x.Memo == nil {
		x.Memo = schedule.NewMemo()
	}
	if x.opt.tiles == nil {
		x.opt.tiles = &Memory{}
	}
	x.busy = min(x.busy, cmp.Or(d.Busy, x.busy))
	return x
}

// Draft continues a schedule that has the stage's decisions.
func (x *Rehearsal) Draft(ctx context.Context, s *schedule.Schedule) (*Draft, error) {
	opt := x.opt
	opt.memo = x.Memo
	return x.again(ctx, s, x.after, x.rest, opt)
}

// Simulate is the outcome of Rehearsal.Draft without its schedule. Equal decisions are simulated once.
func (x *Rehearsal) Simulate(ctx context.Context, s *schedule.Schedule) Outcome {
	key, ok := x.key(s)
	if known, there := x.opt.tiles.rehearsed.Load(key); ok && there {
		if o := known.(Outcome); !x.Instances || o.Each != nil {
			return o
		}
	}
	d, err := x.Draft(ctx, s)
	if err != nil {
		return Outcome{Err: err}
	}
	o := x.time(ctx, d)
	if o.Schedule = nil; ok && o.Err == nil {
		x.opt.tiles.rehearsed.Store(key, o)
	}
	return o
}

// rehearsalKey is equal for schedules from which rehearsals go on in the same way.
type rehearsalKey struct {
	draftKey
	decided [sha256.Size]byte
}

// key names what an outcome follows from; not ok: it also follows from a caller's own strategies, or given decisions.
func (x *Rehearsal) key(s *schedule.Schedule) (key rehearsalKey, ok bool) {
	at, err := x.rest.position(x.after)
	own := func(st Stage) bool { return st.own || x.rest.own[st.Name].Decide != nil }
	if err != nil || x.opt.given != nil || s.Place != nil || slices.ContainsFunc(x.rest.table()[at+1:], own) {
		return key, false
	}
	b := fmt.Append(nil, x.after, x.opt.times, x.opt.active, x.opt.ddrWeight, x.busy, x.Times, s.Busy, s.Cores,
		s.OrderName, s.Order, s.LayerKinds, s.Scopes, s.Bindings, s.LayerBindings, len(s.Layers))
	for _, sg := range s.Grouping.Groups {
		b = fmt.Append(b, sg.Ops, sg.Split)
	}
	for _, layer := range slices.Concat(s.Layers...) {
		b = fmt.Append(b, layer.Ops, layer.Anchor)
	}
	return rehearsalKey{keyOfDraft(s, x.rest, x.opt.Options), sha256.Sum256(b)}, true
}

// memoryPlan is the memory plan of a schedule of the same steps.
type memoryPlan struct{ of *schedule.Schedule }

func (memoryPlan) Stage() string            { return "spill" }
func (memoryPlan) Key(_ *Key, _ *Decisions) {}

func (x memoryPlan) Apply(_ context.Context, d *Draft) error {
	s := *x.of
	s.Steps, s.Values, s.Spills = slices.Clone(s.Steps), slices.Clone(s.Values), slices.Clone(s.Spills)
	*d.Schedule = s
	return nil
}

// amended goes on from a draft behind a stage, with the memory plan of another schedule.
func (x *Rehearsal) amended(after string, s *schedule.Schedule) *Rehearsal {
	y := *x
	y.after = after
	of := Decisions{Recipe: x.rest, Stages: x.rest.table(), Values: make([]Decision, len(x.rest.table()))}
	of.amend(memoryPlan{s})
	y.opt.given = &of
	return &y
}

// time simulates a draft.
func (x *Rehearsal) time(ctx context.Context, d *Draft) Outcome {
	seg := lower.Segment{Schedule: d.Schedule, Iterations: x.Times}
	plans := make([][]lower.Segment, d.Spec.Clusters)
	for k := range x.busy {
		plans[k] = []lower.Segment{seg}
	}
	opt := d.Lower.Until(ctx)
	opt.Memory = x.opt.tiles.take()
	defer x.opt.tiles.give(opt.Memory)
	program, alike, err := lower.Outline("", d.Spec, plans, opt)
	if err != nil {
		return Outcome{Err: err}
	}
	o := Outcome{Schedule: d.Schedule, Outline: Outline{Commands: len(program.Commands)}}
	if o.Ps, o.start, o.Err = sim.Latency(ctx, program, alike, 0); o.Err == nil {
		if o.Took = took(program, o.start, o.Ps, seg, len(d.Grouping.Groups), nil); x.Instances {
			o.Each = took(program, o.start, o.Ps, seg, len(d.Order), func(instance int) int { return instance })
		}
	}
	o.start = nil
	return o
}

// Judged is the simulator's comparison of a stage's exact answer, of near-optimal ones and of the greedy decision, in
// seconds of some chunks, with greedy rules for all later stages. The fastest is kept; of equal ones the exact answer
// first, then one of the others.
type Judged struct {
	Own    float64 `json:"own_simulated_s"` // before the choice; 0: it can't be simulated
	Others int     `json:"others"`
	Best   float64 `json:"others_simulated_s,omitempty"` // the fastest of them
	Greedy float64 `json:"greedy_simulated_s"`
	Kept   string  `json:"kept"` // own, other or greedy
	// Apart: of a memory plan, what stays in the L1s is faster at addresses that were left longer before.
	Apart bool `json:"apart,omitempty"`
}

// PoolGap is up to how many times the least objective of a decision the simulator chooses among answers.
const PoolGap = 1.02

// judge keeps the decision that a stage has made exactly, or takes another one or the greedy one in its place if that
// simulates faster. answer is the stage whose answer says so, before one on whose decisions greedy rules can go on.
func (d *Draft) judge(ctx context.Context, st Stage, answer, before string) error {
	others := d.alternatives
	d.alternatives = nil
	if d.Options.Clusters != OverBatch {
		return nil // clusters do different things
	}
	x := d.Rehearse(st.Name)
	first := x.Simulate
	if st.keep == nil { // d is whole, and the others' decisions are asked for
		first = func(ctx context.Context, _ *schedule.Schedule) Outcome { return x.time(ctx, d) }
	}
	own := first(ctx, d.Schedule)
	a := d.answers[answer]
	j := &Judged{Kept: "own", Own: float64(own.Ps) * 1e-12, Others: len(others)}
	best := own
	of, from := x, d.Schedule // of the best
	consider := func(kept string, y *Rehearsal, s *schedule.Schedule) (o Outcome) {
		if o = y.Simulate(ctx, s); o.Err == nil && (best.Err != nil || o.Ps < best.Ps) {
			best, j.Kept, of, from = o, kept, y, s
		}
		return o
	}
	for _, s := range others {
		y := x
		if st.keep == nil {
			y, s = x.amended(before, s), d.Schedule
		}
		if seconds := float64(consider("other", y, s).Ps) * 1e-12; seconds > 0 && (j.Best == 0 || seconds < j.Best) {
			j.Best = seconds
		}
	}
	y := *x
	y.after = before
	greedy := consider("greedy", &y, d.Schedule)
	j.Greedy = float64(greedy.Ps) * 1e-12
	if err := ctx.Err(); err != nil {
		return err
	}
	if best.Err != nil || greedy.Err != nil && st.keep == nil && j.Kept == "own" {
		return nil // who goes on finds out
	}
	if j.Kept != "own" {
		made, err := of.Draft(ctx, from)
		if err != nil {
			return err
		}
		best.Schedule = made.Schedule
	}
	by, than := map[string]string{"own": "the method's first", "other": "a later one of the method's",
		"greedy": "the greedy one"}[j.Kept], "the method's first"
	if st.keep == nil {
		at := *d
		at.Schedule = &schedule.Schedule{}
		err := memoryPlan{best.Schedule}.Apply(ctx, &at)
		if err = cmp.Or(err, plain[bool]{&addresses, true}.Apply(ctx, &at)); err != nil {
			return err
		}
		if o := x.time(ctx, &at); o.Err == nil && o.Ps < best.Ps {
			best, j.Apart, d.values, by = o, true, at.values, by+" with addresses apart"
			if j.Kept == "own" {
				than = "with the lowest addresses"
			}
		}
	}
	if a.Judged = j; j.Kept != "own" || j.Apart {
		faster := ""
		if j.Own > 0 {
			faster = fmt.Sprintf(". It is %.4g times as fast as %s", j.Own*1e12/float64(best.Ps), than)
		}
		a.Note = strings.TrimPrefix(fmt.Sprintf("%s; the simulator timed %d answers and kept %s%s", a.Note, len(others)+2,
			by, faster), "; ")
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

// fewPaths is the number of paths that a split by measured prices simulates where a search goes on from it.
const fewPaths = 32

// Beaten reports whether this chunk size is given up, since another is much faster than ps picoseconds per chunk of
// this one.
func (d *Draft) Beaten(ps int64, paths int) bool { return d.state.rival.beats(d, ps, paths) }

// Paths is the number of groupings that a measured split may simulate; 0: no limit.
func (d *Draft) Paths() int { return d.state.paths }

// Times is how often a cluster runs the chunk, at most; 0: unknown.
func (d *Draft) Times() int64 { return d.state.times }

// ExactStages is the number of stages that the recipe decides exactly.
func (d *Draft) ExactStages() int { return d.exact }

// Exactly returns the rehearsal with later stages decided exactly where the recipe does so.
func (d *Draft) Exactly(x Rehearsal) Rehearsal {
	x.rest, x.rest.Fallback = d.later, nil
	return x
}

// ProductSeconds is the time in seconds of the products of operators on a cluster at the peak rate.
func (d *Draft) ProductSeconds(ops []model.OpID) float64 { return productSeconds(d.Graph, ops, d.Cost) }

// Also adds answers nearly as good as that of the running exact strategy, from which the simulator may choose.
func (d *Draft) Also(others ...*schedule.Schedule) {
	d.alternatives = append(d.alternatives, others...)
}

// exploredKey is equal for drafts whose explorations are the same.
type exploredKey struct {
	draftKey
	groups              string
	times               int64
	chunks, busy, paths int
	rival               int64   // picoseconds, after which an exploration is given up; 0: none
	ddrWeight           float64 // of how layers are divided over clusters
}

// Share keeps what strategies explore for later calls that get the same options.
func (o *Options) Share() { o.explored = &sync.Map{} }

// Explored returns what explore finds by rehearsals for groups of a name. With shared options (Options.Share) a
// repeated call returns the earlier result.
func (d *Draft) Explored(x *Rehearsal, groups string, explore func() (any, error)) (e any, err error) {
	own := len(d.rest.own) // its key does not say all of these, but has the groups
	if d.Options.explored == nil || d.exact == 0 || own > 1 || own == 1 && d.rest.own["group"].Decide == nil ||
		d.rest.stages != nil {
		return explore()
	}
	key := exploredKey{d.key, groups, d.state.times, x.Times, x.busy, d.state.paths,
		cmp.Or(d.state.rival, &rival{}).ps, d.state.ddrWeight}
	made, _ := d.Options.explored.LoadOrStore(key, sync.OnceValues(explore))
	if e, err = made.(func() (any, error))(); err != nil {
		return explore() // the fault may be another caller's, such as the end of its time
	}
	return e, nil
}
