package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/server"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Stage is a decision of the pipeline, with the strategies that can make it.
type Stage struct {
	Name        string // also of a flag, and of a key in sweeps
	Description string
	// Strategies are the rows to choose from; a recipe that names none has the first.
	// Where there is one row, the stage does what follows from the others.
	Strategies []Strategy

	keep  func(to, from *schedule.Schedule) // copies the decision; nil: it is always made anew
	check func(d *Draft) error              // judges what the stage leaves behind; nil: nothing can be wrong

	// What follows is of decisions that a search changes. take is the decision of a finished schedule, as far as the
	// recipe's own strategies do not make it again at once, or all of it; nil: row heldBy has it, or it follows.
	take      func(d *Draft, all bool) Decision
	heldBy    string                              // an earlier row, which decides this one, too
	settings  [][]func(*Decisions) *Decisions     // changes of decisions: of each setting all values
	moves     []Move                              // other changes that a search tries,
	unlessNil bool                                // but not where the decision is nil
	read      func(data []byte) (Decision, error) // of a schedule file, as encoding/json has written it
	text      func(b *strings.Builder, d *Draft)  // a line for each thing decided; nil: the JSON of take
	inPlan    bool                                // the schedule file has the decision in words of its own
	own       bool                                // a caller's
}

// by is a check that looks at the schedule only.
func by(check func(*schedule.Schedule) error) func(*Draft) error {
	return func(d *Draft) error { return check(d.Schedule) }
}

// A Strategy is a way to make one decision. A caller's own has the form of the
// built-in ones; [Recipe.With] puts it into a recipe.
type Strategy struct {
	Name        string
	Alias       string // another name, if any
	Description string
	NeedsSolver bool // Options.Solver must be set
	Exact       bool // looks for an optimum
	Trials      bool // simulates kernels or chunks, many times
	// Sets are picks that a recipe gets with the strategy unless others are asked for.
	// Needs are picks, one of which there must be at each stage that they name.
	Sets, Needs []Pick
	// Decide reads what earlier stages have left in the draft, and writes its decision.
	Decide func(ctx context.Context, d *Draft) error
	// Refine, if there is one, changes the steps that follow from bindings and scopes
	// before the memory plan is made.
	Refine func(s *schedule.Schedule)
}

// A Draft is a schedule in the making, of one chunk on one cluster. A stage writes:
//
//	group    Grouping, and Layers where schedule.Layers does not give them
//	split    the Split of each group, or other groups; Layers and Instances follow
//	outputs  Outputs, Between, KeepOutputs
//	order    Order, OrderName, and Costs to compare it with others
//	kinds    LayerKinds
//	bind     Bindings, Scopes, LayerBindings if any; Joins, Steps and Values follow
//	spill    levels and addresses of the Values, tiles of the Steps, Spills
//	address  addresses of the Values and stages in the LB
//	issue    Lower
//	prefetch Lower
//	weights  Lower
//	nest     the Nest of Steps, which [schedule.Schedule.Follow] sets
type Draft struct {
	*schedule.Schedule
	Recipe  Recipe
	Options Options
	Cost    *cost.Model             // of commands on the machine, the caller's own included
	Machine graphturbo.SplitOptions // the machine as Algorithm 1 sees it
	Outputs schedule.Level          // where a layer's output should stay
	Between schedule.Level          // where results pass from kernel to kernel, if not where Outputs and scopes say (LB)
	Lower   lower.Options           // what the kernel generator may do

	state   state
	refine  func(*schedule.Schedule) // of the recipe's binding
	values  map[string]Decision      // of settings, by stage; never written to
	answers map[string]Solved        // by stage
	method  string                   // the strategy at work
	// again is Continue with another answer, for strategies, which can't know the table of
	// stages that they stand in.
	again func(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt run) (*Draft, error)
}

// solve keeps what an exact strategy says of its answer to a stage.
func (d *Draft) solve(stage, unit string, answer solve.Outcome, note string) {
	if answer.Status == milp.Feasible || answer.Status == milp.Limit {
		d.state.tell(fmt.Sprintf("%s by %s: not proven to be the best (%s): %.4g %s, bound %.4g", stage, d.method,
			answer.Stop, answer.Objective, unit, answer.Bound))
	}
	if d.answers == nil {
		d.answers = map[string]Solved{}
	}
	d.answers[stage] = Solved{answer, unit, note}
}

// Units of the problems that stages pose.
const (
	BytesUnit   = "bytes moved"
	SecondsUnit = "s"
)

// Solved summarises the answer of an exact strategy.
type Solved struct {
	solve.Outcome
	Unit string // of objective and bound
	Note string
}

// Stages lists the pipeline in the order in which decisions are made: flags, completion,
// sweeps, JSON and documents are made from it.
func Stages() []Stage { return slices.Clone(stageTable()) }

// tableOnce is filled when it is asked for, since strategies ask for it.
var tableOnce struct {
	once sync.Once
	list []Stage
}

// stageTable is Stages for those that change nothing in it.
func stageTable() []Stage {
	tableOnce.once.Do(func() { tableOnce.list = makeStages() })
	return tableOnce.list
}

func makeStages() []Stage {
	return []Stage{
		{Name: "group", Description: "which operators become one kernel",
			Strategies: []Strategy{layerKernels, fusedOps, convPairs, stitchedKernels, stitchedOps, algorithm2,
				algorithm2Divisors, algorithm2InPlace, algorithm2Layers, algorithm2Apart, oneKernel, slicedKernel},
			keep:  keepGroups,
			check: by(checkGroups), take: takeGroups, text: groupText},
		{Name: "split", Description: "how a group is cut into instances",
			Strategies: []Strategy{NoSplit, oneFactorForAll, algorithm1, exactSplit},
			keep:       func(_, _ *schedule.Schedule) {}, // the groups have it
			check:      by(checkGroups), heldBy: "group", text: splitText},
		{Name: "layers", Description: "where the layers of a kernel begin, and in which order they run",
			Strategies: []Strategy{derivedLayers},
			keep:       func(to, _ *schedule.Schedule) { deriveLayers(to) }, // the groups have them
			check:      by(schedule.CheckLayers), take: takeLayers, moves: layerMoves, text: layersText},
		{Name: "instances", Description: "the instances that follow, and what they read of each other",
			Strategies: []Strategy{instances},
			keep:       func(to, from *schedule.Schedule) { to.Instances = from.Instances },
			check:      by(checkInstances), text: instancesText},
		{Name: "outputs", Description: "the memory where a layer's output should stay",
			Strategies: []Strategy{outputsDDR, outputsLLB, outputsL1, outputsInside, outputsLLBKept,
				outputsL1Kept},
			check: checkOutputs, take: takeOutputs, text: outputsText},
		{Name: "kinds", Description: "which kind of core runs a layer, where a cluster has several",
			Strategies: []Strategy{greedyKinds, exactKinds, ilpKinds},
			keep:       func(to, from *schedule.Schedule) { to.LayerKinds = from.LayerKinds },
			check:      by(schedule.CheckKinds), take: takeKinds, moves: kindMoves, unlessNil: true, text: kindsText},
		{Name: "order", Description: "the order of the instances",
			Strategies: []Strategy{layerByLayer, chunkByChunk, BreadthFirst, depthFirst, heaviestFirst, algorithm3, exactOrder,
				ilpOrder},
			keep: func(to, from *schedule.Schedule) {
				to.Order, to.OrderName, to.Costs = slices.Clone(from.Order), from.OrderName, slices.Clone(from.Costs)
				to.Place, to.Cluster = from.Place, from.Cluster
			},
			check: by(schedule.CheckOrder), take: takeOrder, moves: orderMoves, text: orderText},
		{Name: "bind", Description: "over which cores an output is spread, and its scope",
			Strategies: []Strategy{plainBinding, EvenBinding, blockLocality, algorithm4, insideBinding, exactBinding,
				ilpBinding},
			keep: func(to, from *schedule.Schedule) {
				to.Bindings, to.Scopes, to.LayerBindings = slices.Clone(from.Bindings), slices.Clone(from.Scopes),
					from.LayerBindings
			},
			check: by(checkBindings), take: takeBindings, moves: bindMoves, text: bindText},
		{Name: "join", Description: "the copies and redistributions that follow, and the steps of the kernels",
			Strategies: []Strategy{joins},
			check:      by(schedule.CheckSteps), text: joinText},
		bufferStage(),
		reserve.Stage(),
		{Name: "spill", Description: "what leaves a full memory first",
			Strategies: []Strategy{longestLifetime, largestFirst, neededSpills, overLongest, overLeastMoved,
				exactSpills},
			check: by(schedule.CheckPlan), take: takePlacement, moves: placementMoves, settings: placementSettings,
			text: spillText},
		addresses.Stage(),
		{Name: "issue", Description: "what the commands of a kernel may overtake",
			Strategies: []Strategy{inOrder, exposed, crossLayer, crossUnit}, take: takeGenerator, settings: generatorSettings,
			text: generatorText},
		{Name: "prefetch", Description: "what loads from the DDR wait for",
			Strategies: []Strategy{loadsWait, loadsAhead, loadsAtStart}, heldBy: "issue", text: generatorText},
		{Name: "weights", Description: "whether weights stay in the LLB from kernel to kernel",
			Strategies: []Strategy{reloadWeights, keepWeights}, heldBy: "issue", text: generatorText},
		{Name: "nest", Description: "the loops in which the cores run a layer",
			Strategies: []Strategy{RuleNests, ansorNests, tiledNests},
			check:      by(schedule.CheckPlan), take: takeLoops, moves: nestMoves, settings: nestSettings,
			text: nestText},
	}
}

// Choices lists the stages that have more than one strategy.
func Choices() []Stage { return choices(stageTable()) }

func choices(list []Stage) []Stage {
	return slices.DeleteFunc(slices.Clone(list), func(st Stage) bool { return len(st.Strategies) < 2 })
}

// position is the number of a stage in the table.
func (r Recipe) position(name string) (int, error) {
	if _, err := r.stage(name); err != nil {
		return 0, err
	}
	return slices.IndexFunc(r.table(), func(st Stage) bool { return st.Name == name }), nil
}

// LookupStage finds a stage by name.
func LookupStage(name string) (Stage, error) { return lookupStage(stageTable(), name) }

func lookupStage(list []Stage, name string) (Stage, error) {
	var names []string
	for _, st := range list {
		if st.Name == name {
			return st, nil
		}
		names = append(names, st.Name)
	}
	return Stage{}, fmt.Errorf("unknown stage %q%s", name, suggest.Expected(name, names))
}

// Lookup finds a strategy by its name or alias.
func (st Stage) Lookup(name string) (Strategy, error) {
	var names, known []string
	for _, s := range st.Strategies {
		if name == s.Name || name != "" && name == s.Alias {
			return s, nil
		}
		names = append(names, s.Name)
		if known = append(known, s.Name); s.Alias != "" {
			known = append(known, s.Alias)
		}
	}
	return Strategy{}, fmt.Errorf("%s is %q%s", st.Name, name,
		suggest.HintOr(name, known, ", expected one of "+suggest.Some(names)))
}

// Schedule makes all decisions for one chunk.
func Schedule(ctx context.Context, g *model.Graph, spec *hardware.Spec, r Recipe, opt Options) (*schedule.Schedule,
	error) {
	d, err := draft(ctx, g, spec, r, run{Options: opt})
	if err != nil {
		return nil, err
	}
	return d.Schedule, nil
}

// draft is Schedule with what a schedule does not keep.
func draft(ctx context.Context, g *model.Graph, spec *hardware.Spec, r Recipe, opt run) (*Draft, error) {
	if err := allRead(g); err != nil {
		return nil, err
	}
	if spec.Chips != nil && opt.Clusters != Pipelined {
		return nil, fmt.Errorf("%s has %d chips: clusters is %q, expected %q, or one chip", spec.Name, spec.Chips.Count,
			opt.Clusters.Name(), Pipelined)
	}
	if spec.Mixed() && opt.Clusters != OverBatch && opt.Clusters != OverKinds {
		return nil, fmt.Errorf("%s has cores of several kinds: clusters is %q, expected %q or %q", spec.Name,
			opt.Clusters.Name(), OverBatch.Name(), OverKinds)
	}
	if spec.Chips != nil && spec.Chips.Torus != nil {
		return nil, server.NotAllToAll(spec.Chips)
	}
	return decide(ctx, &schedule.Schedule{Graph: g, Spec: spec}, -1, r, opt)
}

// MakeDraft is [Schedule] with what a schedule does not keep.
func MakeDraft(ctx context.Context, g *model.Graph, spec *hardware.Spec, r Recipe, opt Options) (*Draft, error) {
	return draft(ctx, g, spec, r, run{Options: opt})
}

// ContinueDraft is [Continue] with what a schedule does not keep.
func ContinueDraft(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt Options) (*Draft, error) {
	return resume(ctx, from, after, r, run{Options: opt})
}

// Answer returns the summary of a stage's answer, if its strategy is an exact one.
func Answer(d *Draft, stage string) (a Solved, exact bool) {
	a, exact = d.answers[stage]
	return a, exact
}

// Continue keeps the groups, instances, order and bindings of a schedule up to and with
// those of the stage after, and makes all else anew, as the recipe says. Groups come with
// their factors, which alg1 leaves as they are. Layers that are nil follow from the
// groups. The schedule that it starts from is not changed; what it lacks is an error.
func Continue(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt Options) (*schedule.Schedule,
	error) {
	d, err := resume(ctx, from, after, r, run{Options: opt})
	if err != nil {
		return nil, err
	}
	return d.Schedule, nil
}

func resume(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt run) (*Draft, error) {
	at, err := r.position(after)
	if err != nil {
		return nil, err
	}
	return decide(ctx, from, at, r, opt)
}

// decide runs the stages behind number last on what from has of those before, and
// judges each of them.
func decide(ctx context.Context, from *schedule.Schedule, last int, r Recipe, opt run) (*Draft, error) {
	if err := r.validate(opt.Options); err != nil {
		return nil, err
	}
	if r.evaluations > 0 {
		return nil, fmt.Errorf("variant %s makes all decisions together, expected one that goes stage by stage", r.Name)
	}
	begun, last := opt.shared.begun(from, last, r, opt.Options)
	d, err := newDraft(begun.Schedule, last, r, opt)
	if err != nil {
		return nil, err
	}
	d.again = resume
	for _, st := range r.table() { // in order, as they were told
		if a, there := begun.answers[st.Name]; there {
			d.method = r.choice(st).Name
			d.solve(st.Name, a.Unit, a.Outcome, a.Note)
		}
	}
	for i, st := range r.table() {
		s := r.choice(st)
		made := i > last || st.keep == nil
		if made {
			d.method = s.Name
			decide := s.Decide
			if x := opt.given.decided(st); x != nil {
				decide = x.Apply
			}
			if s.Name == tiledNests.Name && opt.slower != nil && opt.slower(d.leastPs()) ||
				st.Name == "group" && opt.shared != nil && r.Idle(d.Graph, d.Spec) { // others do
				return nil, errSlower
			}
			decided := opt.deciding(st.Name, s.Name)
			err := decide(ctx, d)
			decided()
			if err != nil {
				return nil, r.blame(st, err)
			}
		}
		if st.check != nil && !opt.unchecked {
			if err := st.check(d); err != nil {
				if !made {
					return nil, fmt.Errorf("%s of the schedule to continue: %w", st.Name, err)
				}
				if _, own := r.own[st.Name]; !own {
					err = fmt.Errorf("internal error, %s %s breaks a rule: %w", st.Name, s.Name, err)
				}
				return nil, r.blame(st, err)
			}
		}
		if st.Name == "split" {
			n, largest := instancesOf(d.Grouping)
			if opt.mostInstances > 0 && n > opt.mostInstances || largest > mostPieces {
				return nil, &lower.TooLargeError{Program: d.Graph.Name,
					What: fmt.Sprintf("have %d instances, %d of one group", n, largest)}
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err // the decision would depend on when it was
		}
		if made {
			opt.shared.keep(d, i)
		}
	}
	return d, nil
}

// decided returns the decision of a stage, nil without one.
func (p *Decisions) decided(st Stage) Decision {
	if p == nil {
		return nil
	}
	if x := p.value(st.Name); x != nil {
		return x
	}
	if p.value(st.heldBy) != nil {
		return held{}
	}
	return nil
}

// held is the decision of a stage that an earlier one has made.
type held struct{}

func (held) Stage() string                       { return "" }
func (held) Apply(context.Context, *Draft) error { return nil }
func (held) Key(*Key, *Decisions)                {}

// mostPieces is the number of instances that a group may have, as in schedule files.
const mostPieces = 1 << 14

// instancesOf counts the instances that groups will have, and those of the group with the most.
func instancesOf(gr *schedule.Grouping) (n, largest int) {
	for _, sg := range gr.Groups {
		n += int(sg.Factor())
		largest = max(largest, int(sg.Factor()))
	}
	return n, largest
}

// newDraft copies what the stages up to number last have decided.
func newDraft(from *schedule.Schedule, last int, r Recipe, opt run) (*Draft, error) {
	m, err := cost.NewWith(from.Spec, opt.Cost)
	if err != nil {
		return nil, err
	}
	opt.Uneven = opt.Uneven.Alternatives()[0]
	s := &schedule.Schedule{Graph: from.Graph, Spec: from.Spec, Busy: cmp.Or(opt.active, from.Busy),
		UnevenCores: opt.Uneven == schedule.UnevenAll, Memo: opt.memo}
	for i, st := range r.table() {
		if i <= last && st.keep != nil {
			st.keep(s, from)
		}
	}
	return &Draft{Schedule: s, refine: r.at("bind").Refine, Recipe: r, Options: opt.Options, state: opt.state, Cost: m,
		Machine: splitOptions(s, m, opt.Options), Lower: lower.Options{Cost: opt.Cost}}, nil
}

// splitOptions are the machine and the switches as Algorithm 1 sees them.
func splitOptions(s *schedule.Schedule, m *cost.Model, opt Options) graphturbo.SplitOptions {
	spec, cores, dt := s.Spec, schedule.CoresWithLB(s.Spec), lower.ComputeType(s.Graph)
	split := graphturbo.SplitOptions{
		LBBytes: schedule.DataBytes(spec) * cores, Cores: cores, InPlace: opt.InPlace, Uneven: opt.Uneven.Alternatives()[0],
		MACsPerSecond:      m.PeakMACsPerSecond(dt) / float64(spec.Clusters),
		VectorOpsPerSecond: m.PeakVectorOpsPerSecond(dt) / float64(spec.Clusters),
		GBBytesPerSecond:   spec.DDR.BandwidthBytesPerSecond / float64(spec.Clusters),
	}
	if spec.GB != nil {
		split.GBBytesPerSecond = spec.GB.BandwidthBytesPerSecond
	}
	return split
}

// SplitOptions returns the options of Algorithm 1 when a schedule was made.
func SplitOptions(s *schedule.Schedule, opt Options) (graphturbo.SplitOptions, error) {
	m, err := CostModel(s, opt)
	if err != nil {
		return graphturbo.SplitOptions{}, err
	}
	return splitOptions(s, m, opt), nil
}

// CostModel prices commands on a schedule's machine.
func CostModel(s *schedule.Schedule, opt Options) (*cost.Model, error) {
	return cost.NewWith(s.Spec, opt.Cost)
}

// allRead reports an operator whose results nobody reads.
func allRead(g *model.Graph) error {
	for _, op := range g.Ops {
		if !slices.ContainsFunc(op.Outputs, func(o model.TensorID) bool {
			return len(g.Tensor(o).Consumers) > 0 || g.IsOutput(o)
		}) {
			return fmt.Errorf("operator %q has no reader; simplify the graph before it is scheduled", op.Name)
		}
	}
	return nil
}

// blame says whose decision failed, where it is a caller's own.
func (r Recipe) blame(st Stage, err error) error {
	if s, own := r.own[st.Name]; own {
		return fmt.Errorf("%s by %s: %w", st.Name, s.Name, err)
	}
	return err
}
