package schedulefile

import (
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Kind and Version are the first two fields of each file.
const (
	Kind    = "dsasched-schedule"
	Version = 1
)

// File is a schedule of a whole chip. A field whose tag has omitempty may be left out.
type File struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	// Origin describes the making of the schedule. Nothing depends on it.
	Origin   *Origin  `json:"origin,omitempty"`
	Hardware Hardware `json:"hardware"`
	// Batch is the chip's batch, in elements.
	Batch     int64     `json:"batch"`
	Generator Generator `json:"generator"`
	// Division says what the clusters divide between them: the batch ("", left out), or a
	// chunk's network into stages ("pipeline") or layers ("layers"; between kinds of core: "kinds"). Then each instance
	// has a cluster, and all clusters run the same segments.
	Division string `json:"division,omitempty"`
	// Clusters lists what each cluster runs, one segment after the other; an empty list leaves it idle.
	Clusters  [][]Segment `json:"clusters"`
	Schedules []Plan      `json:"schedules"`
}

// Origin records how a schedule was made.
type Origin struct {
	MadeBy  string `json:"made_by,omitempty"`
	Model   string `json:"model,omitempty"`  // as it was asked for
	Source  string `json:"source,omitempty"` // its short name
	DType   string `json:"dtype,omitempty"`
	Grain   string `json:"grain,omitempty"`   // how far operators were taken apart, if at all
	Variant string `json:"variant,omitempty"` // as people call it
	// Recipe has the strategies of a variant that has no row of its own: STAGE=STRATEGY, separated by spaces.
	Recipe string `json:"recipe,omitempty"`
	// Fastest is the variant that made the schedule, of several that Variant takes the fastest of.
	Fastest string  `json:"fastest,omitempty"`
	InPlace bool    `json:"in_place,omitempty"`
	Spill   string  `json:"spill,omitempty"` // rule
	Tuned   []Trial `json:"tuned,omitempty"` // chunks that were tried
	// Also has in words what else was tried, Notes what the run said of itself.
	Also  []string `json:"also_tried,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Trial is a chunk size and what it gave.
type Trial struct {
	Chunk               int64   `json:"chunk"`
	ThroughputPerSecond float64 `json:"throughput_per_s,omitempty"` // in batch elements; 0: it failed
	Error               string  `json:"error,omitempty"`
}

// Hardware says for which accelerator a schedule was made.
type Hardware struct {
	Name string `json:"name"`
	// Level is the memory that is filled with instances: "lb", or "gb", then each
	// cluster counts as a core and its LLB as the L1.
	Level string `json:"level"`
	// Fingerprint is of the description; see [Fingerprint].
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Generator holds the settings of the kernel generator.
type Generator = schedule.Generator

// Segment is one of the schedules, run a number of times.
type Segment struct {
	Schedule   int   `json:"schedule"`
	Iterations int64 `json:"iterations"`
}

// Plan is the schedule of one cluster for one chunk of its share, or of all clusters for a chunk that they divide.
type Plan struct {
	Batch int64 `json:"batch"` // elements of a chunk
	Graph Graph `json:"graph"`
	// Outputs is the level at which a layer's output should stay, within its
	// instance; what leaves the instance follows its scope.
	Outputs string `json:"outputs"`
	// UnevenCores: layers inside an instance may be spread over cores in slices that
	// differ, where the file does not say how.
	UnevenCores bool `json:"uneven_cores,omitempty"`
	// Divisors: over a dimension may go a divisor of the cores that are left; UnevenCores is true.
	Divisors bool `json:"divisors,omitempty"`
	// Cores of a cluster that have work; 0: all.
	Cores int64 `json:"cores,omitempty"`
	// WeightRoom says the part of a core's L1 for weights, in all schedules of a file alike.
	WeightRoom schedule.WeightRoom `json:"weight_room,omitempty"`
	Groups     []Group             `json:"groups"`
	// Instances, each once, in any order.
	Instances  []Instance  `json:"instances"`
	OrderName  string      `json:"order_name,omitempty"`
	Order      [][2]int    `json:"order" most:"65536"` // group and index of each instance, as they run
	Candidates []Candidate `json:"order_candidates,omitempty"`
	// Memory is the memory plan. Without it, a plan is made when the schedule is run.
	Memory *Memory `json:"memory,omitempty"`
	// Nests are the loops of layers that do not run by the kernel generator's rules.
	Nests []Nest `json:"nests,omitempty"`
	// Merges are the decisions of the grouping algorithm. A factor of 0 says that a part can't be split to fit.
	Merges []schedule.MergeEvent `json:"merges,omitempty"`
	// Decisions holds the values of stages for which this format has no words of its own. The schedule is complete without
	// them.
	Decisions []Decision `json:"decisions,omitempty"`
}

// Decision is the value of a stage.
type Decision struct {
	Stage string `json:"stage"`
	Value string `json:"value"` // JSON as text
}

// Graph is a network at one batch size.
type Graph struct {
	Name    string     `json:"name"`
	Inputs  []int      `json:"inputs"`
	Outputs []int      `json:"outputs"`
	Tensors []Tensor   `json:"tensors"`
	Ops     []Operator `json:"operators"`
}

// Tensor is a value of the graph.
type Tensor struct {
	ID      int     `json:"id"`
	Name    string  `json:"name"`
	Shape   []int64 `json:"shape"`
	DType   string  `json:"dtype"`
	Role    string  `json:"role"` // activation, input or constant
	Learned bool    `json:"learned,omitempty"`
	Ints    []int64 `json:"ints,omitempty"`
	Causal  bool    `json:"causal,omitempty"`
}

// Operator is an operator of the graph.
type Operator struct {
	ID      int         `json:"id"`
	Name    string      `json:"name"`
	Kind    model.Kind  `json:"kind"`
	Inputs  []int       `json:"inputs"`
	Outputs []int       `json:"outputs"`
	Attr    *model.Attr `json:"attributes,omitempty"`
}

// Group is a sub-graph: one kernel for each of its instances.
type Group struct {
	Name   string  `json:"name"`
	Ops    []int   `json:"operators"` // in execution order
	Layers [][]int `json:"layers"`    // the same operators, layer by layer
	// Factor is the number of instances, Dim the dimension of the outputs that they divide, if there is more than one.
	Factor int64 `json:"factor"`
	Dim    *int  `json:"dim,omitempty"`
	// LayerCores has, per layer, the cores per dimension of its first result, where that is another binding than what
	// follows from the instance's; an empty list where it is not, and none for the layers behind the last that has one.
	// Instances of which they do not divide the extents do without.
	LayerCores [][]int64 `json:"layer_cores,omitempty"`
	// LayerTypes has, per layer, the core type that runs it, of a machine with several kinds of core.
	LayerTypes []string `json:"layer_core_types,omitempty"`
	// For explanations: operators that the dimension splits, bytes of the unsplit
	// group at its peak, and whether an instance is too big for the L1 all the same.
	SplitOps  int   `json:"split_operators,omitempty"`
	PeakBytes int64 `json:"peak_bytes,omitempty"`
	TooBig    bool  `json:"too_big,omitempty"`
}

// Instance is where one piece of a group runs and leaves its output.
type Instance struct {
	Group int     `json:"group"`
	Index int64   `json:"index"`
	Cores []int64 `json:"cores"` // per dimension of the group's first output
	Scope string  `json:"scope"`
	// Cluster runs it, where clusters divide a chunk.
	Cluster int `json:"cluster,omitempty"`
}

// Candidate is an order that was weighed, and its cost.
type Candidate struct {
	Name          string  `json:"name"`
	MovedBytes    int64   `json:"moved_bytes"`
	Utilization   float64 `json:"lb_utilization"`
	PeakBytes     int64   `json:"lb_peak_bytes"`
	OverflowBytes int64   `json:"lb_overflow_bytes"`
}

// Memory is a memory plan.
type Memory struct {
	Values []Value `json:"values"`
	Stages []Stage `json:"stages"`
	Spills []Spill `json:"spills,omitempty"`
}

// Value is where a tensor of an instance lives, from the layer that makes it to the last that reads it.
type Value struct {
	Group   int    `json:"group"`
	Index   int64  `json:"index"`
	Tensor  int    `json:"tensor"`
	Wanted  string `json:"wanted,omitempty"` // level before spilling, if another
	Level   string `json:"level"`
	Address *int64 `json:"address,omitempty"` // unless in the DDR; in the L1 the same on every core
}

// Stage is the L1 space through which data of other cores and levels pass while an instance runs a layer.
type Stage struct {
	Group   int   `json:"group"`
	Index   int64 `json:"index"`
	Layer   int   `json:"layer"`
	Tiles   int64 `json:"tiles"` // more than one: two are there at a time
	Panels  bool  `json:"panels,omitempty"`
	Address int64 `json:"address"`
}

// Nest is the loop nest of a layer of an instance, line by line as [schedule.Nest.Text] has it.
type Nest struct {
	Group int      `json:"group"`
	Index int64    `json:"index"`
	Layer int      `json:"layer"`
	Lines []string `json:"lines"`
}

// Spill is a value that had to leave its wanted level, and the layer that ran when space ran out.
type Spill struct {
	Group   int      `json:"group"`
	Index   int64    `json:"index"`
	Tensor  int      `json:"tensor"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	AtLayer [3]int64 `json:"at"` // group, index, layer
}

// OutputLevel is Outputs as a level, of a plan that [Read] has taken.
func (p *Plan) OutputLevel() schedule.Level {
	l, _ := parseLevel(p.Outputs)
	return l
}

// levels in the words of the file.
var levelNames = [...]string{schedule.L1: "lb", schedule.LLB: "gb", schedule.DDR: "ddr"}

func parseLevel(s string) (schedule.Level, bool) {
	for l, name := range levelNames {
		if name == s {
			return schedule.Level(l), true
		}
	}
	return 0, false
}
