// Package scheduler puts the decisions together: a variant is a row of a table that
// names which implementation makes each decision, and Run takes a network through
// all of them, from the graph to the simulated result.
//
// # The parts
//
//	Variant   a choice per decision: how operators are grouped, groups split, instances
//	          ordered and bound, where outputs stay, what the kernel generator may do.
//	          Table has the paper's five, Baselines and Exact the others, Lookup all.
//	Source    a network at any batch size; package network opens one.
//	Options   what does not belong to a variant: the batch elements that a cluster works
//	          on at a time, the spill rule, an operator cost of the caller's own.
//	Result    the schedule of a cluster's chunk, the program of all clusters, and what
//	          the simulator says of it.
//
// Run divides the batch over the clusters, tries every divisor of a cluster's share as
// chunk unless Options.Chunk says one, and keeps the fastest. Schedule makes the
// decisions for one chunk and does not simulate. Each schedule is checked by
// schedule.Check and each simulated program by sim.CheckBuffers before it is returned.
//
// # Own decisions
//
// Variant.Grouper, Orderer and Binder put a decision of the caller's in the place of a
// named one; docs/extend-scheduler.md shows how.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/astitch"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/spell"
)

// Grouping, Splitting and Ordering name the implementations of those decisions.
type (
	Grouping  string
	Splitting string
	Ordering  string
	Binding   string
	Memory    string
)

// The implementations that exist.
const (
	LayerKernels Grouping = "layers"     // a layer is a kernel
	ConvPairs    Grouping = "conv-pairs" // a layer is a kernel, or two convolutions are
	Algorithm2   Grouping = "alg2"
	StitchOps    Grouping = "stitch" // memory-intensive operators together, a layer with a matrix operator apart

	NoSplit    Splitting = "none"
	OneFactor  Splitting = "one-factor" // that of the hungriest group, for all
	Algorithm1 Splitting = "alg1"       // each group its own

	LayerByLayer Ordering = "layer-by-layer"
	ChunkByChunk Ordering = "chunk-by-chunk" // every group of one chunk before the next chunk
	BreadthFirst Ordering = "bfs"            // of the two that Algorithm 3 chooses from, this one
	DepthFirst   Ordering = "dfs"            // or that one
	Algorithm3   Ordering = "alg3"

	PlainBinding  Binding = "plain"
	Algorithm4    Binding = "alg4"
	BlockLocality Binding = "block-local" // plain; only what a core itself reads again stays with it, within a kernel

	SpillByRule Memory = "" // that of Options.Spill
)

// Variant is a choice per decision.
type Recipe struct {
	Name        string
	Description string
	Groups      Grouping
	Split       Splitting
	Outputs     schedule.Level // where a layer's output should stay
	// Between says where results pass from kernel to kernel, if that is not where
	// Outputs and Bind leave them (LB).
	Between schedule.Level
	Order   Ordering
	Bind    Binding
	Memory  Memory
	Lower   lower.Options
	// Decisions of the caller's own in the place of those that Groups, Order and Bind name;
	// nil: none.
	Grouper Grouper `json:"-"`
	Orderer Orderer `json:"-"`
	Binder  Binder  `json:"-"`
}

// Table lists the variants in the order of the paper's Fig. 15: each row changes
// one idea of the row before.
func Table() []Recipe {
	return []Recipe{
		{Name: "tvm", Description: "a kernel per layer, results through the DDR, the batch looped over in chunks",
			Groups: LayerKernels, Split: NoSplit, Outputs: schedule.DDR, Order: LayerByLayer, Bind: PlainBinding},
		{Name: "llb", Description: "variant 1: sub-graphs of Algorithm 2, split alike, outputs in the LLB",
			Groups: Algorithm2, Split: OneFactor, Outputs: schedule.GB, Order: ChunkByChunk, Bind: PlainBinding, Lower: lower.Options{KeepWeights: true}},
		{Name: "l1", Description: "variant 2: outputs in the L1",
			Groups: Algorithm2, Split: OneFactor, Outputs: schedule.LB, Order: ChunkByChunk, Bind: PlainBinding, Lower: lower.Options{KeepWeights: true}},
		{Name: "ordering", Description: "variant 3: each sub-graph its own factor, instances ordered (Algorithms 1, 3, 4)",
			Groups: Algorithm2, Split: Algorithm1, Outputs: schedule.LB, Order: Algorithm3, Bind: Algorithm4, Lower: lower.Options{KeepWeights: true}},
		{Name: "cross-layer", Description: "variant 4: instructions scheduled across layers; all of GraphTurbo",
			Groups: Algorithm2, Split: Algorithm1, Outputs: schedule.LB, Order: Algorithm3, Bind: Algorithm4, Lower: lower.Options{KeepWeights: true, CrossLayer: true, Prefetch: true}},
	}
}

// Baselines lists the other published systems beside the table's TVM.
func Baselines() []Recipe {
	return []Recipe{
		{Name: "astitch", Description: "TVM's kernels; those without a matrix operator stitched, results inside in the L1",
			Groups: StitchOps, Split: NoSplit, Outputs: schedule.LB, Order: LayerByLayer, Bind: BlockLocality},
	}
}

// All lists the table's variants, then the other baselines, then those with exact
// decisions.
func All() []Recipe { return append(append(Table(), Baselines()...), Exact()...) }

// ConvFusion is the baseline with convolutions fused in pairs, which the paper compares
// with on a GPU (§5.6). It is no step of the breakdown, so it is not in the table.
func ConvFusion() Recipe {
	return Recipe{Name: "conv-fusion", Description: "a kernel per layer, but one for a convolution and the 1x1 convolution behind it (CUTLASS)",
		Groups: ConvPairs, Split: NoSplit, Outputs: schedule.LB, Between: schedule.DDR, Order: LayerByLayer, Bind: PlainBinding}
}

// Lookup finds a variant by name.
func Lookup(name string) (Recipe, error) {
	var names []string
	for _, v := range All() {
		if v.Name == name {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return Recipe{}, fmt.Errorf("unknown variant %q%s, expected one of %s", name, spell.Hint(name, names), strings.Join(names, ", "))
}

// Options are the settings of a run beside the variant.
type Options struct {
	// InPlace lets element-wise operators overwrite their input in Algorithm 1's
	// footprints.
	InPlace bool
	// Spill is the rule of the memory plan; empty: the paper's.
	Spill graphturbo.SpillRule
	// Chunk is the number of batch elements that a cluster works on at a time; 0:
	// try every divisor of its share up to MaxTunedChunk and keep the fastest.
	Chunk int64
	// Level says which memory is filled with instances.
	Level Level
	// Cost tells what commands take in place of the formulas of package cost; nil: they.
	Cost cost.Custom `json:"-"`

	// Solver is for the strategies that need one.
	Solver milp.Solver `json:"-"`
	// TimeLimit ends each solve with what it has found; 0: none. Other methods have
	// limits that do not depend on the machine.
	TimeLimit time.Duration `json:",omitempty"`
	// Progress, if not nil, hears of better solutions and bounds while a decision is
	// made; see milp.Options.
	Progress func(decision string, p milp.Progress) `json:"-"`

	note func(string) // what the answer should tell
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

// Machine is the accelerator as the decisions see it.
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
	Shares   []int64            // per cluster
	Schedule *schedule.Schedule // of the first cluster's first chunk
	Plans    [][]lower.Segment  // what each cluster runs
	Program  *isa.Program
	Sim      *sim.Result
	// Tried lists the chunk sizes that were tuned over, with their throughput.
	Tried []Trial
	Notes []string

	level  Level
	custom cost.Custom // as in Options.Cost
}

// Trial is a chunk size and what it gave.
type Trial struct {
	Chunk               int64
	ThroughputPerSecond float64
	Err                 error
}

// LatencySeconds is the time of the whole batch.
func (r *Result) LatencySeconds() float64 { return float64(r.Sim.TotalPs) * 1e-12 }

// ThroughputPerSecond is in batch elements.
func (r *Result) ThroughputPerSecond() float64 { return float64(r.Batch) / r.LatencySeconds() }

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

// Run schedules and simulates one variant.
func Run(ctx context.Context, src network.Network, spec *hardware.Spec, batch int64, v Recipe, opt Options) (*Result, error) {
	if batch < 1 {
		return nil, fmt.Errorf("batch is %d, expected at least 1", batch)
	}
	if batch > MaxBatch {
		return nil, fmt.Errorf("batch is %d, expected at most %d", batch, MaxBatch)
	}
	described := spec
	spec, err := Machine(spec, opt.Level)
	if err != nil {
		return nil, err
	}
	v.Lower.Cost = opt.Cost
	shares := Shares(batch, spec.Clusters)
	if opt.Chunk != 0 {
		if opt.Chunk < 0 || opt.Chunk > shares[0] {
			return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements of a cluster", opt.Chunk, shares[0])
		}
		return runChunk(ctx, src, described, spec, batch, shares, opt.Chunk, v, opt)
	}
	var best *Result
	var tried []Trial
	var firstErr error
	for _, chunk := range Divisors(shares[0], MaxTunedChunk) {
		r, err := runChunk(ctx, src, described, spec, batch, shares, chunk, v, opt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			// A chunk may be too large; anything else that goes wrong is an error.
			var tooBig *graphturbo.DoesNotFitError
			var tooMany *lower.TooLargeError
			if !errors.As(err, &tooBig) && !errors.As(err, &tooMany) {
				return nil, err
			}
			if firstErr == nil {
				firstErr = err
			}
			tried = append(tried, Trial{Chunk: chunk, Err: err})
			continue
		}
		tried = append(tried, Trial{Chunk: chunk, ThroughputPerSecond: r.ThroughputPerSecond()})
		if best == nil || r.Sim.TotalPs < best.Sim.TotalPs {
			best = r
		}
	}
	if best == nil {
		return nil, firstErr
	}
	best.Tried = tried
	return best, nil
}

// Prepare makes all decisions of [Run] for a given chunk and simulates nothing: Program and
// Sim are nil, until [Result.On] gives them.
func Prepare(ctx context.Context, src network.Network, spec *hardware.Spec, batch int64, v Recipe, opt Options) (*Result, error) {
	described := spec
	spec, err := Machine(spec, opt.Level)
	if err != nil {
		return nil, err
	}
	shares := Shares(batch, spec.Clusters)
	if opt.Chunk < 1 || opt.Chunk > shares[0] {
		return nil, fmt.Errorf("chunk is %d, expected 1 to %d, the batch elements of a cluster", opt.Chunk, shares[0])
	}
	return prepare(ctx, src, described, spec, batch, shares, opt.Chunk, v, opt)
}

func runChunk(ctx context.Context, src network.Network, described, spec *hardware.Spec, batch int64, shares []int64, chunk int64, v Recipe, opt Options) (*Result, error) {
	r, err := prepare(ctx, src, described, spec, batch, shares, chunk, v, opt)
	if err != nil {
		return nil, err
	}
	if err := r.simulate(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func prepare(ctx context.Context, src network.Network, described, spec *hardware.Spec, batch int64, shares []int64, chunk int64, v Recipe, opt Options) (*Result, error) {
	schedules := map[int64]*schedule.Schedule{}
	get := func(size int64) (*schedule.Schedule, error) {
		if s := schedules[size]; s != nil {
			return s, nil
		}
		g, err := src.Graph(size)
		if err != nil {
			return nil, err
		}
		s, err := scheduleChunk(ctx, g, spec, v, opt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%s on %s, variant %s, %d per cluster: %w", src.Name, described.Name, v.Name, size, err)
		}
		schedules[size] = s
		return s, nil
	}
	r := &Result{Recipe: v, Source: src.Name, Machine: described, Spec: spec, Batch: batch, Chunk: chunk, Shares: shares, level: opt.Level, custom: opt.Cost}
	opt.note = func(text string) { r.Notes = append(r.Notes, text) }
	plans := make([][]lower.Segment, len(shares))
	idle := 0
	for k, share := range shares {
		if share == 0 {
			idle++
			continue
		}
		for _, part := range []struct{ size, times int64 }{{min(chunk, share), share / min(chunk, share)}, {share % min(chunk, share), 1}} {
			if part.size == 0 {
				continue
			}
			s, err := get(part.size)
			if err != nil {
				return nil, err
			}
			if r.Schedule == nil {
				r.Schedule = s
			}
			plans[k] = append(plans[k], lower.Segment{Schedule: s, Iterations: int(part.times)})
		}
	}
	r.Plans = plans
	return r, r.describe(idle)
}

// describe notes what is odd about a result that has its plans. idle counts the
// clusters without work.
func (r *Result) describe(idle int) error {
	if idle > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("batch %d leaves %d of %d clusters idle", r.Batch, idle, len(r.Shares)))
	}
	if r.Batch%int64(len(r.Shares)) != 0 && idle == 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("batch %d does not divide over %d clusters: they take %v", r.Batch, len(r.Shares), r.Shares))
	}
	m, err := cost.NewWith(r.Spec, r.custom)
	if err != nil {
		return err
	}
	if dt := lower.ComputeType(r.Schedule.Graph); !m.Native(dt) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s gives no matrix rate for %v; it is derived from another type's by element size", r.Machine.Name, dt))
	}
	return nil
}

// simulate lowers the plans and runs the program.
func (r *Result) simulate(ctx context.Context) error {
	low := r.Recipe.Lower
	low.Cost = r.custom
	var err error
	r.Program, err = lower.Program(fmt.Sprintf("%s/%s/%s", r.Source, r.Spec.Name, r.Recipe.Name), r.Spec, r.Plans, low)
	if err != nil {
		return err
	}
	r.Sim, err = sim.Run(ctx, r.Program, sim.Options{})
	if err != nil {
		return err
	}
	if err := sim.CheckBuffers(r.Program, r.Sim); err != nil {
		return fmt.Errorf("internal error, the program overwrites memory in use: %w", err)
	}
	return nil
}

// On simulates the schedules of r again on a machine that differs from r's only in
// what no decision looks at: the time of a launch, the efficiency of the DDR, what a
// matrix unit loses between blocks. The decisions are not made again.
func (r *Result) On(ctx context.Context, spec *hardware.Spec) (*Result, error) {
	machine, err := Machine(spec, r.level)
	if err != nil {
		return nil, err
	}
	again := *r
	again.Machine, again.Spec, again.Tried = spec, machine, nil
	if err := again.simulate(ctx); err != nil {
		return nil, err
	}
	return &again, nil
}

// Schedule makes all decisions for one chunk.
func Schedule(g *model.Graph, spec *hardware.Spec, v Recipe, opt Options) (*schedule.Schedule, error) {
	return scheduleChunk(context.Background(), g, spec, v, opt)
}

// scheduleChunk is Schedule; the complete methods end with ctx.
func scheduleChunk(ctx context.Context, g *model.Graph, spec *hardware.Spec, v Recipe, opt Options) (*schedule.Schedule, error) {
	split, err := splitOptions(g, spec, opt)
	if err != nil {
		return nil, err
	}
	for _, op := range g.Ops {
		if dead(g, op) {
			return nil, fmt.Errorf("operator %q has no reader; simplify the graph before it is scheduled", op.Name)
		}
	}
	v = v.own()
	s := &schedule.Schedule{Graph: g, Spec: spec}
	// Group and split.
	switch v.Groups {
	case own:
		if err := v.group(s); err != nil {
			return nil, err
		}
	case LayerKernels:
		s.Grouping, s.Layers = tvm.Group(g, graphturbo.ExecutionOrder(g))
	case ConvPairs:
		s.Grouping, s.Layers = tvm.PairConvolutions(g, graphturbo.ExecutionOrder(g))
	case Algorithm2:
		s.Grouping = graphturbo.Group(g, split)
		switch v.Split {
		case OneFactor:
			oneFactor(g, s.Grouping)
		case NoSplit:
			unsplit(s.Grouping)
		case ExactSplit:
			if s.Grouping, err = exactSplit(ctx, g, s.Grouping, spec, opt); err != nil {
				return nil, err
			}
		}
		for _, sg := range s.Grouping.Groups {
			s.Layers = append(s.Layers, schedule.Layers(g, sg.Ops))
		}
	case StitchOps:
		plan := astitch.Group(g, graphturbo.ExecutionOrder(g), split.Cores, astitch.Options{})
		s.Grouping, s.Layers = plan.Grouping, plan.Layers
	default:
		return nil, fmt.Errorf("unknown grouping %q", v.Groups)
	}
	return complete(ctx, s, split, v, opt)
}

// splitOptions are the machine and the switches as Algorithm 1 sees them.
func splitOptions(g *model.Graph, spec *hardware.Spec, opt Options) (graphturbo.SplitOptions, error) {
	m, err := cost.NewWith(spec, opt.Cost)
	if err != nil {
		return graphturbo.SplitOptions{}, err
	}
	cores := schedule.CoresWithLB(spec)
	dt := lower.ComputeType(g)
	split := graphturbo.SplitOptions{
		LBBytes: schedule.DataBytes(spec) * cores, Cores: cores, InPlace: opt.InPlace,
		MACsPerSecond:      m.PeakMACsPerSecond(dt) / float64(spec.Clusters),
		VectorOpsPerSecond: m.PeakVectorOpsPerSecond(dt) / float64(spec.Clusters),
	}
	split.GBBytesPerSecond = spec.DDR.BandwidthBytesPerSecond / float64(spec.Clusters)
	if spec.GB != nil {
		split.GBBytesPerSecond = spec.GB.BandwidthBytesPerSecond
	}
	return split, nil
}

// complete makes all decisions for a schedule that has its groups and their layers.
func complete(ctx context.Context, s *schedule.Schedule, split graphturbo.SplitOptions, v Recipe, opt Options) (*schedule.Schedule, error) {
	g, spec := s.Graph, s.Spec
	v = v.own()
	s.Instances = schedule.NewInstanceGraph(g, s.Grouping)
	// Order.
	switch v.Order {
	case own:
		if err := v.order(s); err != nil {
			return nil, err
		}
	case LayerByLayer:
		for i := range s.Instances.Instances {
			s.Order = append(s.Order, i)
		}
		s.OrderName = "groups"
	case BreadthFirst:
		s.Order, s.OrderName = graphturbo.BFS(s.Instances), "bfs"
	case DepthFirst:
		s.Order, s.OrderName = graphturbo.DFS(s.Instances), "dfs"
	case ChunkByChunk:
		s.Order = chunkOrder(s.Grouping, s.Instances)
		s.OrderName = "chunks"
	case Algorithm3, HeavyOrder, ExactOrder, ILPOrder, JointOrder:
		s.Order, s.OrderName, s.Costs = graphturbo.Order(s.Instances, OrderItems(s, split), split.LBBytes)
		var err error
		switch v.Order {
		case HeavyOrder:
			err = heavyOrder(s, split, opt)
		case ExactOrder, ILPOrder:
			err = solveOrder(ctx, s, split, v.Order, opt)
		}
		if err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("unknown ordering %q", v.Order)
	}
	// Bind.
	switch v.Bind {
	case own:
		if err := v.bind(s); err != nil {
			return nil, err
		}
	case Algorithm4, ExactBinding, ILPBinding, JointBinding:
		s.Bindings, s.Scopes = graphturbo.BindGrid(g, s.Grouping, s.Instances, s.Order, schedule.Grid(spec))
	case PlainBinding, BlockLocality:
		s.Bindings, s.Scopes = graphturbo.PlainBindGrid(g, s.Grouping, s.Instances, schedule.Grid(spec))
		if v.Bind == BlockLocality {
			s.Scopes = astitch.Scopes(len(s.Instances.Instances))
		}
	default:
		return nil, fmt.Errorf("unknown binding %q", v.Bind)
	}
	if v.Between != schedule.LB {
		for i := range s.Scopes {
			s.Scopes[i] = v.Between
		}
	}
	s.Joins = graphturbo.Join(g, s.Grouping, s.Instances, s.Order, s.Bindings, s.Scopes)
	// Place.
	if err := s.BuildSteps(v.Outputs); err != nil {
		return nil, err
	}
	if v.Bind == BlockLocality {
		astitch.Localize(s)
	}
	measureJoins(s)
	if err := place(s, v, opt); err != nil {
		return nil, err
	}
	// A schedule counts only after it was checked.
	if err := schedule.Check(s); err != nil {
		return nil, fmt.Errorf("internal error, the schedule breaks a rule: %w", err)
	}
	switch {
	case (v.Order == JointOrder) != (v.Bind == JointBinding):
		return nil, fmt.Errorf("ordering %q with binding %q, expected %q for both or for neither", v.Order, v.Bind, JointOrder)
	case v.Bind == ExactBinding || v.Bind == ILPBinding:
		return exactBinding(ctx, s, v, opt)
	case v.Bind == JointBinding:
		return exactJoint(ctx, s, v, opt)
	}
	return s, nil
}

// SplitOptions are what Algorithm 1 was told when a schedule was made.
func SplitOptions(s *schedule.Schedule, opt Options) (graphturbo.SplitOptions, error) {
	return splitOptions(s.Graph, s.Spec, opt)
}

func dead(g *model.Graph, op *model.Op) bool {
	for _, o := range op.Outputs {
		if len(g.Tensor(o).Consumers) > 0 || g.IsOutput(o) {
			return false
		}
	}
	return true
}

// measureJoins sets the bytes that redistributions move from what the steps read
// of other cores.
func measureJoins(s *schedule.Schedule) {
	type key struct {
		consumer int
		tensor   model.TensorID
	}
	remote := map[key]int64{}
	for i := range s.Steps {
		st := &s.Steps[i]
		for _, r := range st.Reads {
			if v := &s.Values[r.Value]; v.Instance >= 0 && v.Instance != st.Instance {
				remote[key{st.Instance, v.Tensor}] += r.RemoteBytes
			}
		}
	}
	for i := range s.Joins {
		if j := &s.Joins[i]; j.Kind == schedule.Redistribute {
			j.Bytes = remote[key{j.Consumer, j.Tensor}]
		}
	}
}

// OrderItems describes the instances to the ordering problem.
func OrderItems(s *schedule.Schedule, split graphturbo.SplitOptions) []schedule.OrderItem {
	g := s.Graph
	items := make([]schedule.OrderItem, len(s.Instances.Instances))
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		it := &items[i]
		for _, o := range sg.Outputs {
			it.OutputBytes += inst.Regions[o].Elements() * g.Tensor(o).DType.Bytes()
		}
		reads := int64(0)
		for _, d := range inst.Deps {
			if n := len(it.Reads); n == 0 || it.Reads[n-1] != d.From {
				it.Reads = append(it.Reads, d.From)
			}
			reads += d.Bytes
		}
		sort.Ints(it.Reads)
		it.Reads = dedupe(it.Reads)
		peak := schedule.Peak(g, sg.Ops, sg.Outputs, inst.Regions, schedule.PeakOptions{InPlace: split.InPlace})
		it.WorkspaceBytes = max(0, peak-reads-it.OutputBytes)
		for _, id := range sg.Ops {
			for _, o := range g.Op(id).Outputs {
				if r := inst.Regions[o]; r != nil {
					w := g.Work(g.Op(id), r)
					it.Seconds += float64(w.MACs)/split.MACsPerSecond + float64(w.Vector.Total())/split.VectorOpsPerSecond
				}
			}
		}
	}
	return items
}

func dedupe(s []int) []int {
	out := s[:0]
	for i, v := range s {
		if i == 0 || v != s[i-1] {
			out = append(out, v)
		}
	}
	return out
}

// oneFactor gives every group the largest factor of any, along the outermost
// dimension that can be cut that often without computing anything twice; a group
// without one keeps its own.
func oneFactor(g *model.Graph, gr *schedule.Grouping) {
	most := int64(1)
	for _, sg := range gr.Groups {
		most = max(most, sg.Factor())
	}
	for _, sg := range gr.Groups {
		out := g.Tensor(sg.Outputs[0])
		for depth, d := range out.Layout {
			if out.Shape[d]%most != 0 {
				continue
			}
			tr := schedule.Track(g, sg.Ops, sg.Outputs, d)
			if tr.Splittable && !tr.Recomputes {
				sg.Split = schedule.SplitInfo{Ops: len(sg.Ops), Factor: most, Dim: d, Depth: depth}
				break
			}
		}
	}
}

// chunkOrder runs instance q of every group before instance q+1 of any, as far as
// dependencies allow.
func chunkOrder(gr *schedule.Grouping, ig *schedule.InstanceGraph) []int {
	most := int64(1)
	for _, sg := range gr.Groups {
		most = max(most, sg.Factor())
	}
	type key struct{ chunk, group, index int64 }
	keys := make([]key, len(ig.Instances))
	indegree := make([]int, len(ig.Instances))
	for i, inst := range ig.Instances {
		keys[i] = key{inst.Index * most / gr.Groups[inst.Group].Factor(), int64(inst.Group), inst.Index}
		for _, c := range ig.Consumers[i] {
			indegree[c]++
		}
	}
	less := func(a, b int) bool {
		x, y := keys[a], keys[b]
		if x.chunk != y.chunk {
			return x.chunk < y.chunk
		}
		if x.group != y.group {
			return x.group < y.group
		}
		return x.index < y.index
	}
	var ready, order []int
	for i, n := range indegree {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		best := 0
		for i := range ready {
			if less(ready[i], ready[best]) {
				best = i
			}
		}
		id := ready[best]
		ready = append(ready[:best], ready[best+1:]...)
		order = append(order, id)
		for _, c := range ig.Consumers[id] {
			if indegree[c]--; indegree[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
	return order
}
