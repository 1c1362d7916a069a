package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// Options are the settings of a run beside the recipe. The zero value is the default.
type Options struct {
	// InPlace lets element-wise operators overwrite their input in Algorithm 1's footprints.
	InPlace bool
	// Uneven says which extents may be cut into pieces that differ. Where Run may choose, a
	// recipe with exact or searched decisions has the pieces that suit the greedy ones.
	Uneven schedule.Uneven `json:",omitempty"`
	// Chunk is the number of batch elements that a cluster works on at a time; 0:
	// try every divisor of its share up to MaxTunedChunk and keep the fastest.
	Chunk int64
	// Times is how often a cluster runs the chunk of one schedule that is made by itself; 0: once.
	Times int64 `json:"-"`
	// Busy is the number of clusters that have work where one schedule is made by itself; 0: all.
	Busy int `json:"-"`
	// Clusters is the division of work between clusters; 0 as chunk then tries the divisors of the batch.
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

	// Tuned holds the nests of kernels in the form of the strategy that takes them; nil: it looks for some.
	Tuned any `json:",omitempty"`

	// Solver is for the strategies that need one.
	Solver milp.Solver `json:"-"`
	// TimeLimit ends each integer program with what it has found; 0: none. A search ends at a number of states, at the
	// same place on any machine, unless TimeLimitOnly is set: then the time ends it, too, and nothing else.
	TimeLimit     time.Duration `json:",omitempty"`
	TimeLimitOnly bool          `json:",omitempty"`
	// WorkLimit ends each integer program after so many nodes, at the same place on any machine; 0: none.
	WorkLimit int64 `json:",omitempty"`
	// Commands ends each decision by measured prices after about so many simulated commands; 0: limits of its own.
	Commands int `json:",omitempty"`
	// Progress, if not nil, gets better solutions and bounds while a stage is decided; see milp.Options.
	Progress func(stage string, p milp.Progress) `json:"-"`

	// Deciding, if not nil, is called before a strategy decides a stage, and what it returns afterwards; of recipes side
	// by side, by two at a time.
	Deciding func(stage, strategy string) (decided func()) `json:"-"`
	// Chunks, if not nil, is called before each chunk that Run tries, with the number of those before it and of all.
	Chunks func(chunk int64, before, all int) `json:"-"`

	explored *sync.Map // by exploredKey; nil: nothing is kept
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
	several       bool         // recipes side by side
	mostInstances int          // that splits may give; 0: no limit
	ddrWeight     float64      // see spread
	within        int          // clusters that layers are divided over; 0: all
	// slower, if not nil, says whether a schedule that takes so many picoseconds at least is known not to be the fastest.
	slower func(leastPs int64) bool
	memo   *schedule.Memo
	paths  int            // that a split by measured prices simulates; 0: splitPaths
	rival  *rival         // nil: no chunk of another size is tried
	part   part           // of a cluster that may be used; the zero value: all
	whole  *hardware.Spec // with the memories that steps are made for; nil: those that decisions see
	rests  bool           // what is left of a share beside whole chunks has cores and pieces of its own
	cut    bool           // such a rest is two chunks; see Result.plan
	share  int64          // that clusters have, as many as there is work for; 0: as even ones as can be
	tiles  *Memory        // what tiles were chosen before; nil: nothing
	given  *Decisions     // that the recipe need not make; nil: none
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

// SearchLimit is the time that a search has, 0 if states are counted instead.
func (o Options) SearchLimit() time.Duration {
	if o.TimeLimitOnly {
		return o.TimeLimit
	}
	return 0
}

// ReportTo is the sink of a stage's progress, nil if none is set.
func (o Options) ReportTo(stage string) func(milp.Progress) {
	if o.Progress == nil {
		return nil
	}
	return func(p milp.Progress) { o.Progress(stage, p) }
}

// Level is the memory that plays the role of the paper's L1.
type Level string

// The levels.
const (
	// LevelAuto is the LLB where hardware.Spec.NeedsRaise says so, else the L1.
	LevelAuto Level = ""
	LevelL1   Level = "lb"
	LevelLLB  Level = "gb" // one core for each cluster, see hardware.Raise
)

// Machine returns the accelerator as the decisions see it.
func (l Level) Machine(spec *hardware.Spec) (*hardware.Spec, error) {
	switch l {
	case LevelL1:
		return spec, nil
	case LevelLLB:
		return hardware.Raise(spec)
	case LevelAuto:
		if spec.NeedsRaise() {
			return hardware.Raise(spec)
		}
		return spec, nil
	}
	return nil, fmt.Errorf("level is %q, expected %q, %q or nothing", l, LevelL1, LevelLLB)
}

// Limits of one run. A batch far beyond them says nothing new: it is the same chunk over and over.
const (
	MaxBatch = 1 << 20
	// MaxTunedChunk is the largest chunk that tuning tries.
	MaxTunedChunk = 512
)

// CheckInput refuses a network without a graph, no machine, and a batch that is not from 1 to MaxBatch.
func CheckInput(net network.Network, machine *hardware.Spec, batch int64) error {
	if net.Graph == nil || machine == nil {
		return errors.New("found a network without Graph or a machine that is nil, expected both")
	} else if batch < 1 || batch > MaxBatch {
		return fmt.Errorf("batch is %d, expected 1 to %d", batch, MaxBatch)
	}
	return nil
}

// TooLarge reports whether an error means that a chunk is too large for the machine or the program, so that another
// chunk or recipe may succeed.
func TooLarge(err error) bool {
	var large interface{ TooLarge() }
	return errors.As(err, &large)
}

// fatal reports whether an error ends the rest: it is one, and not that something is too large.
func fatal(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || !TooLarge(err))
}

// A Division says what is divided between the clusters: OverBatch, or the name of a Divider.
type Division string

// The divisions that are always there.
const (
	OverBatch Division = ""       // the batch: a cluster runs the whole network on its share
	OverLayer Division = "layers" // layers, where the pieces together take less time
)

// A Divider gives every cluster a part of the network. Each cluster processes the whole batch, chunk by chunk, and
// values pass between clusters through the DDR.
type Divider struct {
	Name  Division
	Chips bool // the clusters may be those of several chips
	Kinds bool // each cluster has cores of one kind ([hardware.Spec.Apart])
	// Weights are those that Divide is tried with; nil: 0.
	Weights func(spec *hardware.Spec) []float64
	// Divide changes the recipe for a chunk's graph and finds the cluster of each instance of what it groups. What weight
	// weighs is the divider's own; note, if not nil, is for who reads the result, once the groups are made.
	Divide func(ctx context.Context, g *model.Graph, spec *hardware.Spec, r Recipe, opt Options, weight float64) (
		made Recipe, home func(sg *schedule.SubGraph, index int64) int, note func() string, err error)
}

var dividers = []Divider{overLayers}

// AddDivision adds a division.
func AddDivision(d Divider) { dividers = append(dividers, d) }

// row is the division's row, an empty one of OverBatch.
func (d Division) row() Divider {
	for _, x := range dividers {
		if x.Name == d {
			return x
		}
	}
	return Divider{}
}

// weights are what the division tries.
func (d Division) weights(spec *hardware.Spec) []float64 {
	if x := d.row(); x.Weights != nil {
		return x.Weights(spec)
	}
	return []float64{0}
}

// Divisions lists the names of all, that of OverBatch being "batch".
func Divisions() []string {
	return divisions(func(Divider) bool { return true }, OverBatch.Name())
}

// divisions are names of dividers behind some others.
func divisions(which func(Divider) bool, names ...string) []string {
	for _, x := range dividers {
		if which(x) {
			names = append(names, string(x.Name))
		}
	}
	slices.Sort(names)
	return names
}

// LookupDivision finds a division by its name.
func LookupDivision(name string) (Division, error) {
	if !slices.Contains(Divisions(), name) {
		return "", fmt.Errorf("unknown division of the clusters' work %q%s", name, suggest.Expected(name, Divisions()))
	}
	if name == "batch" {
		return OverBatch, nil
	}
	return Division(name), nil
}

// Name is the division's name, by which LookupDivision finds it.
func (d Division) Name() string { return cmp.Or(string(d), "batch") }

// machine is that of [Level.Machine], with a cluster for each kind of core if the division wants that.
func (d Division) machine(described *hardware.Spec, level Level) (*hardware.Spec, error) {
	spec, err := level.Machine(described)
	if _, unknown := LookupDivision(d.Name()); err != nil || unknown != nil || !d.row().Kinds {
		return spec, cmp.Or(err, unknown)
	}
	return spec.Apart()
}

// shares are the elements of the batch that each cluster sees.
func (d Division) shares(batch int64, clusters int) []int64 {
	if d == OverBatch {
		return schedule.Shares(batch, clusters)
	}
	return slices.Repeat([]int64{batch}, clusters)
}

// shares are the elements of the batch that each cluster sees.
func (o run) shares(batch int64, spec *hardware.Spec) []int64 {
	list := o.Clusters.shares(batch, spec.AllClusters())
	if o.share >= list[0] && o.Clusters == OverBatch {
		for k := range list {
			list[k] = min(o.share, batch)
			batch -= list[k]
		}
	}
	return list
}

// errSlower ends an attempt whose schedule can't be the fastest.
var errSlower = errors.New("a schedule was faster")
