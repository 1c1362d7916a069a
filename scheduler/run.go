package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/schedulefile"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// Options are the settings of a run beside the recipe. The zero value is the default.
type Options struct {
	// InPlace lets element-wise operators overwrite their input in Algorithm 1's
	// footprints.
	InPlace bool
	// Uneven says which extents may be cut into pieces that differ. Where Run may choose, a
	// recipe with exact or searched decisions has the pieces that suit the greedy ones.
	Uneven schedule.Uneven `json:",omitempty"`
	// Chunk is the number of batch elements that a cluster works on at a time; 0:
	// try every divisor of its share up to MaxTunedChunk and keep the fastest.
	Chunk int64
	// Clusters is the division of work between clusters; 0 as chunk then tries the divisors
	// of the batch.
	Clusters Division `json:",omitempty"`
	// Lines asks for layers that are straight lines of the network's own operators, or of those with each attention
	// as one: certificates are of no others. Variant tiled else joins and divides some.
	Lines bool `json:",omitempty"`
	// Level says which memory is filled with instances.
	Level Level
	// Cost prices commands in place of the formulas of package cost, which nil stands for.
	Cost cost.Custom `json:"-"`

	// Figures says that the program's commands and their times are not wanted, but what is
	// measured of them: where clusters do the same, Result.Program then has no commands, names
	// and tasks, and Result.Sim no times of commands. Large networks take less memory.
	Figures bool `json:"-"`

	// Tuned holds the nests of kernels for the strategy that takes them; nil: it looks for
	// some.
	Tuned *Tuned `json:",omitempty"`

	// Solver is for the strategies that need one.
	Solver milp.Solver `json:"-"`
	// TimeLimit ends each integer program with what it has found; 0: none. A search ends
	// at a number of states, at the same place on any machine, unless TimeLimitOnly is
	// set: then the time ends it, too, and nothing else.
	TimeLimit     time.Duration `json:",omitempty"`
	TimeLimitOnly bool          `json:",omitempty"`
	// Progress, if not nil, gets better solutions and bounds while a stage is decided;
	// see milp.Options.
	Progress func(stage string, p milp.Progress) `json:"-"`

	// Deciding, if not nil, is called before a strategy decides a stage, and what it returns afterwards; of recipes side
	// by side, by two at a time.
	Deciding func(stage, strategy string) (decided func()) `json:"-"`
	// Chunks, if not nil, is called before each chunk that Run tries, with the number of those before it and of all.
	Chunks func(chunk int64, before, all int) `json:"-"`
}

// A run is a caller's options with the state of what is under way.
type run struct {
	Options
	state
}

// A state is shared by strategies beside the options.
type state struct {
	note          func(string) // sink of Result.Notes
	alone         bool         // no other chunk is tried: what may well be the answer is simulated in full at once
	unchecked     bool         // leave the stages' checks out: the answer is checked later
	times         int64        // how often a cluster runs the chunk, at most; 0: not known
	active        int          // clusters that have work, and so share the DDR; 0: all
	shared        *shared      // what recipes have in common; nil: nothing
	mostInstances int          // that splits may give; 0: no limit
	ddrWeight     float64      // see spread
	// slower, if not nil, says whether a schedule that takes so many picoseconds at least is known not to be the fastest.
	slower func(leastPs int64) bool
	memo   *schedule.Memo
	tiles  *tileMemo  // what tiles were chosen before; nil: nothing
	given  *Decisions // that the recipe need not make; nil: none
}

// deciding tells who listens that a strategy begins with a stage.
func (o Options) deciding(stage, strategy string) (decided func()) {
	if o.Deciding == nil {
		return func() {}
	}
	return o.Deciding(stage, strategy)
}

// tell passes a note on if a sink is set.
func (o state) tell(note string) {
	if o.note != nil {
		o.note(note)
	}
}

// oneAtATime are the options for recipes side by side, of which one reports at a time.
func (o run) oneAtATime() run {
	if report := o.Progress; report != nil {
		var mu sync.Mutex
		o.Progress = func(stage string, p milp.Progress) {
			mu.Lock()
			defer mu.Unlock()
			report(stage, p)
		}
	}
	return o
}

// searchLimit is the time that a search has, 0 if states are counted instead.
func (o Options) searchLimit() time.Duration {
	if o.TimeLimitOnly {
		return o.TimeLimit
	}
	return 0
}

// ReportTo is the sink of a stage's progress, nil if none is set.
func ReportTo(o Options, stage string) func(milp.Progress) {
	if o.Progress == nil {
		return nil
	}
	return func(p milp.Progress) { o.Progress(stage, p) }
}

// Level is the memory that plays the role of the paper's LB.
type Level string

// The levels.
const (
	// LevelAuto is the GB where hardware.Spec.NeedsRaise says so, else the LB.
	LevelAuto Level = ""
	LevelLB   Level = "lb"
	LevelGB   Level = "gb" // one core for each cluster, see hardware.Raise
)

// Machine returns the accelerator as the decisions see it.
func Machine(spec *hardware.Spec, level Level) (*hardware.Spec, error) {
	switch level {
	case LevelLB:
		return spec, nil
	case LevelGB:
		return hardware.Raise(spec)
	case LevelAuto:
		if spec.NeedsRaise() {
			return hardware.Raise(spec)
		}
		return spec, nil
	}
	return nil, fmt.Errorf("level is %q, expected %q, %q or nothing", level, LevelLB, LevelGB)
}

// Result is a simulated schedule.
type Result struct {
	Recipe   Recipe
	Source   string
	Machine  *hardware.Spec // as described
	Spec     *hardware.Spec // as the decisions saw it, see Level
	Batch    int64
	Chunk    int64
	Uneven   schedule.Uneven      // not UnevenFastest
	Shares   []int64              // of the batch that each cluster sees: all of it if they divide the network
	Clusters Division             // of the work
	Schedule *schedule.Schedule   // of the first cluster's first chunk, or of all clusters without their steps
	Outputs  schedule.Level       // where layers' outputs should stay
	Lower    lower.Options        // what the kernel generator may do
	Plans    [][]lower.Segment    // what each cluster runs
	wholes   []*schedule.Schedule // sums of the segments that clusters divide
	Program  *isa.Program
	Sim      *sim.Result
	// Tried lists the chunk sizes that were tuned over, with their throughput.
	Tried []Trial
	Notes []string

	winner  Recipe // see By
	level   Level
	figures bool              // see Options.Figures
	answers map[string]Solved // of the exact strategies, by stage
	// values has the values of settings, by schedule and stage.
	values map[*schedule.Schedule]map[string]Decision
}

// Trial is a chunk size and what it gave.
type Trial struct {
	Chunk               int64
	ThroughputPerSecond float64
	Err                 error
}

// By is the recipe that made the schedule: Recipe, or the fastest of those that it takes the fastest of.
func (r *Result) By() Recipe {
	if r.winner.Name != "" {
		return r.winner
	}
	return r.Recipe
}

// Improved is the result under the name of the search that began with its recipe.
func (r *Result) Improved() *Result {
	x := *r
	x.Recipe, x.winner = r.By(), Recipe{}
	if !strings.HasPrefix(x.Recipe.Name, "best (") { // else a search has gone on from what one had found
		x.Recipe.Name = fmt.Sprintf("best (from %s)", x.Recipe.Name)
		x.Recipe.Description = "a recipe's schedule, improved as a whole"
	}
	if r.Program != nil {
		p := *r.Program
		x.Program, p.Name = &p, ProgramName(&x)
	}
	return &x
}

// LatencySeconds is the time of the whole batch.
func (r *Result) LatencySeconds() float64 { return float64(r.Sim.TotalPs) * 1e-12 }

// ThroughputPerSecond is in batch elements.
func (r *Result) ThroughputPerSecond() float64 { return float64(r.Batch) / r.LatencySeconds() }

// Raised reports whether the LLB has the role of the L1; see Level.
func (r *Result) Raised() bool { return r.Spec != r.Machine && r.Clusters != OverKinds }

// Solved returns the status that an exact strategy of a stage gave with its answer.
func (r *Result) Solved(stage string) (answer Solved, exact bool) {
	answer, exact = r.answers[stage]
	return answer, exact
}

// Decided is the value of a stage as JSON; "": it has none that can be written so.
func (r *Result) Decided(stage string) string {
	data, err := json.Marshal(r.values[r.Schedule][stage])
	if err != nil || r.values[r.Schedule][stage] == nil {
		return ""
	}
	return string(data)
}

// Shares divides a batch over clusters as evenly as whole elements allow.
func Shares(batch int64, clusters int) []int64 {
	s := make([]int64, clusters)
	for k := range s {
		s[k] = batch / int64(clusters)
		if int64(k) < batch%int64(clusters) {
			s[k]++
		}
	}
	return s
}

// Limits of one run. A batch far beyond them says nothing new: it is the same chunk
// over and over.
const (
	MaxBatch = 1 << 20
	// MaxTunedChunk is the largest chunk that tuning tries.
	MaxTunedChunk = 512
)

func CheckBatch(batch int64) error {
	if batch < 1 || batch > MaxBatch {
		return fmt.Errorf("batch is %d, expected 1 to %d", batch, MaxBatch)
	}
	return nil
}

// Divisors lists the divisors of n up to most, ascending.
func Divisors(n, most int64) []int64 {
	var d []int64
	for i := int64(1); i <= min(n, most); i++ {
		if n%i == 0 {
			d = append(d, i)
		}
	}
	return d
}

// A Search makes the schedule of a recipe that improves what its picks give.
type Search func(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (*Result, error)

var improve Search

// RegisterSearch sets the search that recipes with evaluations ask for. Package scheduler/search calls it.
func RegisterSearch(s Search) { improve = s }

// Run schedules and simulates a network by a recipe. It divides the batch over the
// clusters, tries every divisor of a cluster's share as chunk unless Options.Chunk says
// one, and keeps the fastest. If ctx ends first, it returns its error. Recipes that it falls
// back to run side by side: Options.Cost and Options.Solver may be called by two at a time.
func Run(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	options Options) (*Result, error) {
	opt := run{Options: options}
	if err := CheckBatch(batch); err != nil {
		return nil, err
	}
	if r.evaluations > 0 {
		return r.improved(ctx, net, machine, batch, options)
	}
	share := int64(0)
	if spec, err := opt.Clusters.machine(machine, opt.Level); err != nil {
		return nil, err
	} else {
		share = opt.Clusters.shares(batch, spec.AllClusters())[0]
	}
	recipes, err := Alternatives(r, options)
	if err != nil {
		return nil, err
	}
	chunks, tune := []int64{opt.Chunk}, opt.Chunk == 0
	if tune {
		chunks = Divisors(share, MaxTunedChunk)
	}
	var best *Result
	var tried []Trial
	var firstErr error // or that of the largest chunk whose program is too large
	least := int64(math.MaxInt64)
	for i, chunk := range chunks {
		opt.Chunk = chunk
		if opt.Chunks != nil && tune {
			opt.Chunks(chunk, i, len(chunks))
		}
		opt.alone = len(chunks) == 1
		made, ps, err := fastest(ctx, net, machine, batch, recipes, opt, tune)
		if err != nil {
			if fatal(ctx, err) {
				return nil, err
			}
			if large := new(lower.TooLargeError); firstErr == nil || errors.As(err, &large) {
				firstErr = err
			}
			tried = append(tried, Trial{Chunk: chunk, Err: err})
			continue
		}
		tried = append(tried, Trial{Chunk: chunk, ThroughputPerSecond: float64(batch) / (float64(ps) * 1e-12)})
		if ps < least {
			best, least = made, ps
		}
	}
	if best == nil && len(chunks) > 1 {
		return nil, fmt.Errorf("none of %d chunks, 1 to %d, can be tried: %w", len(chunks), chunks[len(chunks)-1], firstErr)
	} else if best == nil {
		return nil, firstErr
	}
	if tune {
		best.Tried = tried
	}
	if best.Sim == nil {
		err = Simulate(ctx, best)
	}
	return best, err
}

// TooLarge reports whether an error says that a chunk is too large for the machine or the
// program. Anything else that goes wrong is no reason to try another chunk or recipe.
func TooLarge(err error) bool {
	var tooBig *graphturbo.DoesNotFitError
	var tooMany *lower.TooLargeError
	return errors.As(err, &tooBig) || errors.As(err, &tooMany)
}

// fatal reports whether an error ends the rest: it is one, and not that something is too large.
func fatal(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || !TooLarge(err))
}

// Alternatives are the recipe and those that it falls back to, all of which can be used.
func Alternatives(r Recipe, opt Options) ([]Recipe, error) {
	list := []Recipe{r}
	for _, name := range r.Fallback {
		other, err := Lookup(name)
		if err != nil {
			return nil, err
		}
		list = append(list, other)
	}
	for _, other := range list {
		if err := other.validate(opt); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// fastest makes the schedule of a chunk by some recipes and gives the fastest, which takes ps, the first one's name. If
// it is to be compared with no other result, and there is but one, ps is 0.
func fastest(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, recipes []Recipe, opt run,
	compared bool) (best *Result, ps int64, err error) {
	net.Graph = once(net.Graph)
	c := &contest{recipes: recipes, weights: opt.Clusters.weights(machine), opt: opt, compared: compared,
		make: func(ctx context.Context, r Recipe, opt run) (*Result, error) {
			return prepare(ctx, net, machine, batch, r, opt)
		},
		measure: func(ctx context.Context, made *Result, limit int64) (int64, error) {
			if opt.alone && made.figures && made.Recipe.Name == recipes[0].Name && limit == math.MaxInt64 {
				if err := Simulate(ctx, made); err != nil {
					return 0, err
				}
				return made.Sim.TotalPs, nil
			}
			return made.latency(ctx, limit)
		}}
	t := c.fastest(ctx, opt.Chunk)
	if best = t.made; best == nil {
		return nil, 0, t.err
	}
	if was := opt.Uneven.Alternatives()[0]; best.Uneven != was {
		best.Notes = append(best.Notes, fmt.Sprintf("uneven pieces: %v, which is faster than %v", best.Uneven, was))
	}
	if first, from := recipes[0], best.Recipe.Name; from != first.Name {
		best.winner, best.Recipe = best.Recipe, first
		best.Notes = append(best.Notes, fmt.Sprintf("%s: the schedule is that of %s, the fastest of %d", first.Name, from,
			len(recipes)))
	}
	return best, t.ps, nil
}

// once keeps the graphs that it is asked for.
func once(graph func(int64) (*model.Graph, error)) func(int64) (*model.Graph, error) {
	var mu sync.Mutex
	known := map[int64]*model.Graph{}
	return func(size int64) (g *model.Graph, err error) {
		mu.Lock()
		defer mu.Unlock()
		if known[size] == nil {
			if g, err = graph(size); err != nil {
				return nil, err
			}
			known[size] = g
		}
		return known[size], nil
	}
}

// latency is the simulated time of the plans, in picoseconds; math.MaxInt64 above a limit.
func (r *Result) latency(ctx context.Context, limit int64) (ps int64, err error) {
	return latency(ctx, ProgramName(r), r.Spec, r.Plans, r.Lower, limit)
}

func latency(ctx context.Context, name string, spec *hardware.Spec, plans [][]lower.Segment, opt lower.Options,
	limit int64) (ps int64, err error) {
	_, made, err := stream(ctx, name, spec, plans, opt, sim.Options{TimesOnly: true, LimitPs: limit}, nil)
	switch {
	case errors.Is(err, sim.ErrLimit):
		return math.MaxInt64, nil
	case err != nil:
		return 0, err
	case made != nil:
		return made.TotalPs, nil
	}
	p, alike, err := lower.Outline(name, spec, plans, Until(ctx, opt))
	if err != nil {
		return 0, err
	}
	ps, _, err = sim.Latency(ctx, p, alike, limit)
	return ps, err
}

// improved runs a recipe that takes a search.
func (r Recipe) improved(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64,
	opt Options) (*Result, error) {
	if improve == nil {
		return nil, fmt.Errorf("variant %s takes a search, expected package scheduler/search in the program", r.Name)
	}
	return improve(ctx, net, machine, batch, r, opt)
}

// Prepare makes all decisions of [Run] for a given chunk, by the recipe itself and not by
// what it falls back to, and simulates nothing: Program and Sim are nil, until
// [Result.On] gives them.
func Prepare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (*Result, error) {
	if r.evaluations > 0 {
		if _, err := CheckChunk(machine, batch, opt); err != nil {
			return nil, err
		}
		made, err := r.improved(ctx, net, machine, batch, opt)
		if err == nil {
			made.Program, made.Sim = nil, nil
		}
		return made, err
	}
	return prepare(ctx, net, machine, batch, r, run{Options: opt})
}

// CheckChunk checks batch and chunk for a machine, which it returns as the decisions see it.
func CheckChunk(machine *hardware.Spec, batch int64, opt Options) (*hardware.Spec, error) {
	if err := CheckBatch(batch); err != nil {
		return nil, err
	}
	spec, err := opt.Clusters.machine(machine, opt.Level)
	if err != nil {
		return nil, err
	}
	if most := opt.Clusters.shares(batch, spec.AllClusters())[0]; opt.Chunk < 1 || opt.Chunk > most {
		return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements %s", opt.Chunk, most, opt.Clusters.whose())
	}
	return spec, nil
}

func prepare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe, opt run) (*Result,
	error) {
	spec, err := CheckChunk(machine, batch, opt.Options)
	if err != nil {
		return nil, err
	}
	shares := opt.Clusters.shares(batch, spec.AllClusters())
	out := &Result{Recipe: r, Source: net.Name, Machine: machine, Spec: spec, Batch: batch, Chunk: opt.Chunk,
		Shares: shares, Clusters: opt.Clusters,
		Uneven: opt.Uneven.Alternatives()[0], level: opt.Level, figures: opt.Figures}
	out.assume(net)
	opt.Uneven, opt.note = out.Uneven, func(text string) { out.Notes = append(out.Notes, text) }
	opt.active = out.active()
	if opt.Clusters != OverBatch {
		idle, err := out.together(ctx, net, r, opt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%s on %s, variant %s, clusters by %s: %w", net.Name, machine.Name, r.Name, opt.Clusters, err)
		}
		return out, out.describe(idle)
	}
	idle, err := out.plan(func(size, times int64) (*Draft, error) {
		g, err := net.Graph(size)
		if err != nil {
			return nil, err
		}
		opt := opt
		opt.times = times
		d, err := draft(ctx, g, spec, r, opt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%s on %s, variant %s, %d per cluster: %w", net.Name, machine.Name, r.Name, size, err)
		}
		return d, nil
	})
	if err != nil {
		return nil, err
	}
	return out, out.describe(idle)
}

// active counts the clusters that have a share of the batch.
func (r *Result) active() (n int) {
	for _, share := range r.Shares {
		if share > 0 {
			n++
		}
	}
	return n
}

// plan gives each cluster its chunks and what is left of its share; get makes the draft
// for so many batch elements, which a cluster runs so many times at most. idle counts the
// clusters without work.
func (r *Result) plan(get func(size, times int64) (*Draft, error)) (idle int, err error) {
	drafts, times := map[int64]*Draft{}, map[int64]int64{}
	type part struct{ size, times int64 }
	parts := func(share int64) []part {
		chunk := min(r.Chunk, share)
		return []part{{chunk, share / max(1, chunk)}, {share % max(1, chunk), 1}}
	}
	for _, share := range r.Shares {
		for _, x := range parts(share) {
			times[x.size] = max(times[x.size], x.times)
		}
	}
	for _, share := range r.Shares {
		var plan []lower.Segment
		if share == 0 {
			idle++
		}
		for _, part := range parts(share) {
			if part.size == 0 {
				continue
			}
			d := drafts[part.size]
			if d == nil {
				if d, err = get(part.size, times[part.size]); err != nil {
					return 0, err
				}
				drafts[part.size] = d
				r.keep(d.Schedule, d.values)
			}
			if r.Schedule == nil {
				r.Schedule, r.Outputs, r.Lower, r.answers = d.Schedule, d.Outputs, d.Lower, d.answers
			}
			plan = append(plan, lower.Segment{Schedule: d.Schedule, Iterations: int(part.times)})
		}
		r.Plans = append(r.Plans, plan)
	}
	return idle, nil
}

// keep notes values of a schedule's settings.
func (r *Result) keep(s *schedule.Schedule, values map[string]Decision) {
	if r.values == nil {
		r.values = map[*schedule.Schedule]map[string]Decision{}
	}
	if r.values[s] == nil {
		r.values[s] = map[string]Decision{}
	}
	maps.Copy(r.values[s], values)
}

// Sizes are the batch elements of the schedules of clusters that divide the batch: whole chunks first, then what is
// left.
func (r *Result) Sizes() map[*schedule.Schedule]int64 {
	sizes := map[*schedule.Schedule]int64{}
	for k, plan := range r.Plans {
		rest := r.Shares[k]
		for i, seg := range plan {
			if _, known := sizes[seg.Schedule]; !known {
				if sizes[seg.Schedule] = rest / int64(seg.Iterations); i == 0 {
					sizes[seg.Schedule] = min(r.Chunk, r.Shares[k])
				}
			}
			rest -= sizes[seg.Schedule] * int64(seg.Iterations)
		}
	}
	return sizes
}

// FastestChunk makes the schedule of a chunk by a recipe, with the pieces that make it fastest, and simulates nothing.
func FastestChunk(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (*Result, error) {
	made, _, err := fastest(ctx, net, machine, batch, []Recipe{r}, run{Options: opt}, false)
	return made, err
}

// assume notes what a network takes for granted.
func (r *Result) assume(net network.Network) {
	if net.Assumed != "" {
		r.Notes = append(r.Notes, "assumed: "+net.Assumed)
	}
}

// describe notes what is odd about a result that has its plans. idle counts the
// clusters without work.
func (r *Result) describe(idle int) error {
	if idle > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("batch %d leaves %d of %d clusters idle", r.Batch, idle, len(r.Shares)))
	}
	if r.Schedule.Place == nil && r.Batch%int64(len(r.Shares)) != 0 && idle == 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("batch %d does not divide over %d clusters: they take %v", r.Batch,
			len(r.Shares), r.Shares))
	}
	if most, mean := r.cores(); most < r.Spec.CoresWith(hardware.Matrix) || most < r.Spec.CoresWith(hardware.Vector) {
		r.Notes = append(r.Notes, fmt.Sprintf("of the %d cores of a cluster at most %d work at a time, %.3g in the mean of "+
			"layers: a number that divides more extents may be faster", r.Spec.Cores(), most, mean))
	}
	m, err := cost.NewWith(r.Spec, r.Lower.Cost)
	if err != nil {
		return err
	}
	if dt := lower.ComputeType(r.Schedule.Graph); !m.Native(dt) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s gives no matrix rate for %v; it is derived from another type's by "+
			"element size", r.Machine.Name, dt))
	}
	if need, size := r.ddrBytes(), int64(r.Spec.DDR.SizeBytes)*int64(r.Spec.ChipCount()); need > size {
		r.Notes = append(r.Notes, fmt.Sprintf("parameters, inputs, outputs and what lies there between groups take at "+
			"least %s of the DDR, which has %s: %s too many", hardware.Bytes(need).Rounded(), hardware.Bytes(size).Rounded(),
			hardware.Bytes(need-size).Rounded()))
	}
	return nil
}

// cores is how many cores of a cluster work at a time, at most and in the mean of the steps.
func (r *Result) cores() (most int, mean float64) {
	if r.Schedule.Place != nil || len(r.Schedule.Steps) == 0 { // each cluster has its own steps
		return math.MaxInt, 0
	}
	for i := range r.Schedule.Steps {
		n := int(r.Schedule.Steps[i].Active())
		most, mean = max(most, n), mean+float64(n)
	}
	return most, mean / float64(len(r.Schedule.Steps))
}

// ddrBytes is a lower bound on the memory used in the DDR: by parameters once, by inputs and outputs
// of the batch, and, in the cluster with the largest share, by other values when most are alive.
func (r *Result) ddrBytes() (bytes int64) {
	s := r.Schedule
	for _, t := range s.Graph.Tensors {
		if t.Role == model.Constant {
			bytes += t.Bytes()
		}
	}
	chunks := int64(1)
	if r.Clusters == OverBatch {
		chunks = r.Batch / r.Chunk
	}
	for _, id := range slices.Concat(s.Graph.Inputs, s.Graph.Outputs) {
		bytes += chunks * s.Graph.Tensor(id).Bytes()
	}
	if s.Place != nil {
		return bytes // each cluster has its own steps
	}
	change := make([]int64, len(s.Steps)+1)
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 && v.Level == schedule.DDR && !s.Graph.IsOutput(v.Tensor) {
			change[v.Def] += v.Bytes
			change[v.Last+1] -= v.Bytes
		}
	}
	alive, most := int64(0), int64(0)
	for _, by := range change {
		alive += by
		most = max(most, alive)
	}
	return bytes + most
}

// ProgramName names the program of a result.
func ProgramName(r *Result) string {
	if r.Clusters != OverBatch {
		return fmt.Sprintf("%s/%s/%s/%s", r.Source, r.Spec.Name, r.Recipe.Name, r.Clusters)
	}
	return fmt.Sprintf("%s/%s/%s", r.Source, r.Spec.Name, r.Recipe.Name)
}

// Simulate lowers the plans and runs the program.
func Simulate(ctx context.Context, r *Result) error {
	if r.figures {
		opt := r.Lower
		opt.Most = lower.MaxStreamed
		p, made, err := stream(ctx, ProgramName(r), r.Spec, r.Plans, opt, sim.Options{}, nil)
		if made != nil || err != nil {
			r.Program, r.Sim = p, made
			return err
		}
	}
	var err error
	r.Program, err = lower.Program(ProgramName(r), r.Spec, r.Plans, Until(ctx, r.Lower))
	if err != nil {
		return err
	}
	r.Sim, err = Simulated(ctx, r.Program)
	return err
}

// Until makes lowering end with a context.
func Until(ctx context.Context, opt lower.Options) lower.Options {
	opt.Stopped = ctx.Err
	return opt
}

// lookAhead is the number of commands that a stream knows beyond the last that has ended, at first.
const lookAhead = 1 << 13

// stream simulates plans while they are lowered, and judges the program unless only times are
// wanted. seen, if not nil, is called with commands before they run, and the number of those before
// them; commands come anew from the first if too few were known, and its error ends the simulation. There is no result
// if clusters do different things.
func stream(ctx context.Context, name string, spec *hardware.Spec, plans [][]lower.Segment, opt lower.Options,
	measure sim.Options, seen func(s *sim.Stream, first int, commands []isa.Command) error) (
	p *isa.Program, made *sim.Result, err error) {
	for ahead := lookAhead; ; ahead *= 4 {
		var s *sim.Stream
		n := 0
		ok, err := lower.Stream(name, spec, plans, Until(ctx, opt), !measure.TimesOnly,
			func(program *isa.Program) (feed func([]isa.Command) error, err error) {
				p = program
				s, err = sim.NewStream(p, ahead, measure)
				return func(commands []isa.Command) error {
					if seen != nil {
						if err := seen(s, n, commands); err != nil {
							return err
						}
					}
					n += len(commands)
					return s.Feed(ctx, commands)
				}, err
			})
		var late *sim.LateError
		if errors.As(err, &late) {
			continue
		}
		if ok && err == nil {
			made, err = s.End(ctx)
		}
		return p, made, err
	}
}

// Simulated runs a program and judges it.
func Simulated(ctx context.Context, p *isa.Program) (*sim.Result, error) {
	r, err := sim.Run(ctx, p, sim.Options{})
	if err != nil {
		return nil, err
	}
	if err := sim.CheckBuffers(p, r); err != nil {
		return nil, fmt.Errorf("internal error, the program overwrites memory in use: %w", err)
	}
	if least := r.Bound.Ps(); least > r.TotalPs {
		return nil, fmt.Errorf("internal error, program %q takes %d ps, less than its bound of %d ps",
			p.Name, r.TotalPs, least)
	}
	return r, nil
}

// Fits says why a schedule is none to start from; nil: it is one.
func Fits(r *Result, network string, g *model.Graph, machine *hardware.Spec, batch int64, chunks []int64) error {
	wrong := func(what string, found, want any) error {
		return fmt.Errorf("the schedule to start from: %s: found %v, expected %v", what, found, want)
	}
	switch {
	case r.Clusters != OverBatch:
		return wrong("clusters", r.Clusters.Name(), OverBatch.Name())
	case r.Batch != batch:
		return wrong("batch", r.Batch, batch)
	case !slices.Contains(chunks, r.Chunk):
		return wrong("chunk", r.Chunk, fmt.Sprintf("one of %v", chunks))
	case schedulefile.Fingerprint(r.Machine) != schedulefile.Fingerprint(machine):
		return wrong("accelerator", r.Machine.Name+" as it was described then", machine.Name+" as it is described now")
	case schedulefile.GraphFingerprint(r.Schedule.Graph) != schedulefile.GraphFingerprint(g):
		return wrong("network", r.Source+" with other operators or shapes", network)
	}
	return nil
}

// On simulates the schedules of r again on a machine that differs from r's only in
// what no decision looks at: the time of a launch, the efficiency of the DDR, what a
// matrix unit loses between blocks. The decisions are not made again.
func (r *Result) On(ctx context.Context, spec *hardware.Spec) (*Result, error) {
	machine, err := r.Clusters.machine(spec, r.level)
	if err != nil {
		return nil, err
	}
	again := *r
	again.Machine, again.Spec, again.Tried, again.Sim = spec, machine, nil, nil
	if err := Simulate(ctx, &again); err != nil {
		return nil, err
	}
	return &again, nil
}

// LatencyOn is the latency in seconds of what On gives, without the rest of a result.
func (r *Result) LatencyOn(ctx context.Context, spec *hardware.Spec) (float64, error) {
	machine, err := r.Clusters.machine(spec, r.level)
	if err != nil {
		return 0, err
	}
	on := *r
	on.Spec = machine
	ps, err := on.latency(ctx, math.MaxInt64)
	return float64(ps) * 1e-12, err
}

// Replay simulates a schedule of one cluster's chunk that every busy cluster runs
// a number of times.
func Replay(ctx context.Context, name string, s *schedule.Schedule, clusters int, iterations int,
	opt lower.Options) (*sim.Result, error) {
	plans := make([][]lower.Segment, s.Spec.Clusters)
	for k := range min(clusters, len(plans)) {
		plans[k] = []lower.Segment{{Schedule: s, Iterations: iterations}}
	}
	p, err := lower.Program(name, s.Spec, plans, Until(ctx, opt))
	if err != nil {
		return nil, err
	}
	return Simulated(ctx, p)
}
