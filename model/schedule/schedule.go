package schedule

import (
	"fmt"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// Level is a level of the memory hierarchy where a value may live.
type Level uint8

// The levels, nearest first.
const (
	L1 Level = iota
	LLB
	DDR
)

func (l Level) String() string { return [...]string{"L1", "LLB", "DDR"}[l] }

// JoinKind is an operator that the paper's §3.5 inserts between instances.
type JoinKind string

// The kinds of join.
const (
	Concat       JoinKind = "concat"       // several producers feed one consumer
	SplitOp      JoinKind = "split"        // one producer feeds several instances of a consumer
	Copy         JoinKind = "copy"         // the scopes differ
	Redistribute JoinKind = "redistribute" // the bindings differ
)

// Join is an inserted operator in front of instance Consumer.
type Join struct {
	Kind     JoinKind
	Consumer int
	Tensor   model.TensorID
	From     []int   // producing instances
	Binding  Binding // redistribute: the smaller factor of each dimension
	Bytes    int64   // moved: 0 for concat and split, which only renumber addresses
}

// Value is a tensor of one instance that is kept from the step that makes it to the last step that reads it.
type Value struct {
	ID       int
	Tensor   model.TensorID
	Instance int // -1: network input
	Region   model.Region
	Binding  Binding
	Wanted   Level // before spilling
	Level    Level
	Bytes    int64 // whole
	// CoreBytes is the part of the busiest core; addresses in the L1 are the same on every core.
	CoreBytes int64
	Def       int // step that makes it; -1 for network inputs
	Last      int // last step that reads it; number of steps for network outputs that none reads
	Address   int64
	Kind      int // of the cores that make it, and hold it in the L1
}

// Read is a step's demand for a value.
type Read struct {
	Value int
	// Region is the box around what all cores need.
	Region model.Region
	// Bytes summed over cores; the same byte on two cores counts twice.
	NeedBytes   int64
	RemoteBytes int64 // of these, not in the reading core's own L1 slice
	// Of the busiest core.
	CoreNeedBytes   int64
	CoreRemoteBytes int64
	// UnionBytes counts each byte once.
	UnionBytes int64
	// TensorCoreBytes is the busiest core's need of the whole tensor, which may
	// lie in several values; Busiest is the first core that needs as much.
	TensorCoreBytes int64
	Busiest         int64
	// ElementBytes is the least that a tile needs of the tensor: what a single element
	// of the step's output reads, or the stationary operand of one product.
	ElementBytes int64
	// Whole: every tile of the step needs all of it (the stationary operand of a
	// single product of two activations, an operand that is broadcast).
	Whole bool
	// Stationary marks the stationary operand of products of activations, and
	// PanelBytes what one block of the matrix unit's size takes of it.
	Stationary bool
	PanelBytes int64
}

// Sent is what cores send of a value in their L1s to others: where they exchange without an LLB and a core sends to
// many at once, each part once, as rows of cores do of rows and columns of columns in SUMMA (van de Geijn, Watts 1997).
func (r *Read) Sent(spec *hardware.Spec) int64 {
	if spec.LLB == nil && spec.CoreLink.Broadcast {
		return min(r.RemoteBytes, r.UnionBytes)
	}
	return r.RemoteBytes
}

// ParamRead is a step's demand for a constant.
type ParamRead struct {
	Tensor model.TensorID
	Region model.Region // the box around what all cores read
	// CoreBytes is read by the busiest core, UnionBytes leave the LLB when
	// cores that need the same bytes share one broadcast.
	CoreBytes, UnionBytes int64
	// Offset is the first element read, which distinguishes parts of equal size.
	Offset int64
	// Rows marks a table of which only the rows looked up are read: it has no reuse and is not kept.
	Rows bool
}

// Step runs one layer of one instance on the cores of a cluster.
type Step struct {
	ID       int
	Instance int
	Layer    int // index into Layers of the group
	Reads    []Read
	Writes   []int // values
	Params   []ParamRead
	Binding  Binding
	// CoreOutput is the box of Output that the busiest core (core 0) computes.
	CoreOutput model.Region
	// Output is the layer's first output of which the instance needs anything.
	Output model.TensorID
	Cores  int64 // that work
	// StageBytes of L1 per core hold what passes through: data of other cores, data
	// of other levels. Tiles > 1 means that it passes in pieces, two at a time.
	StageBytes int64
	// Panels: the stationary operand of a product of activations does not fit and
	// passes by blocks of the matrix unit's size.
	Panels       bool
	StageAddress int64
	Tiles        int64
	// Nest is the loop nest that the cores run; nil: that of the kernel generator's rules.
	Nest *Nest
	// Attending is the attention that the step runs; nil: none.
	Attending *Attending
	Kind      int // of the cores that work; see Schedule.LayerKinds
	known     *known
}

// Found identifies what a memo knew of a step and its instance: those of steps that are alike differ in the values that
// they read and write, and in what was decided behind. The zero value: the memo knew not all.
type Found struct {
	step  *known
	boxes *Regions
	index int64
}

// Found returns what the memo knew of a step.
func (s *Schedule) Found(st *Step) (f Found) {
	if inst := &s.Instances.Instances[st.Instance]; st.known != nil && inst.boxes != nil {
		f = Found{st.known, inst.boxes, inst.Index}
	}
	return f
}

// Schedule is the complete answer for one cluster working on one chunk of its share of the batch.
type Schedule struct {
	Graph     *model.Graph
	Spec      *hardware.Spec
	Whole     *hardware.Spec // that steps are made for, where decisions see a part of Spec's memories; nil: Spec
	Busy      int            // clusters that have work, and share the DDR; 0: all
	Cores     int64          // of a cluster that have work; 0: all. See [hardware.Spec.Part].
	Grouping  *Grouping
	Counting  Counting  // of the rule that made the groups
	Layers    [][]Layer // per group
	Instances *InstanceGraph
	Order     []int
	OrderName string // "bfs", "dfs", ...
	Costs     []NamedCost
	Slices    Slices
	// KeepOutputs: network outputs that layers read are wanted where other values are. Whatever
	// their level, they are stored in the DDR as well.
	KeepOutputs bool
	// Place is the cluster of each instance where clusters work on a chunk together, and
	// Cluster the one whose part this is: Order, Steps and Values are of its instances
	// alone, and what passes between clusters is in the DDR. nil: one has all.
	Place    []int
	Cluster  int
	Bindings []Binding // per instance, of its first output
	Scopes   []Level   // per instance
	// LayerBindings are bindings of layers' first results, by group and layer, that take the place of what follows from
	// the instance's binding, in instances that allow them. Where a list ends or has nil, none does.
	LayerBindings [][]Binding
	// LayerKinds are the kinds of core that run the layers, by group and layer: places in the machine's
	// [hardware.Spec.Kinds]. nil: the first runs all.
	LayerKinds [][]int
	Joins      []Join
	Steps      []Step
	Values     []Value
	// L1Capacity is per core, LLBCapacity per cluster; both without reserves.
	L1Capacity, LLBCapacity int64
	// WeightRoom says the part of a core's L1 for weights.
	WeightRoom WeightRoom
	// Reserve is the number of sixteenths of the LLB that the memory plan leaves to weights and transfers on their
	// way; 0: one.
	Reserve int64
	// LLBActivationBytes is the part of the LLB that values take; the rest stages weights and transfers.
	LLBActivationBytes int64
	Spills             []Spill
	// Memo, if not nil, has steps of other schedules of the same graph and machine.
	Memo *Memo
	// Attentions, if not nil, has the bindings of layers with an attention that schedules have in common.
	Attentions *sync.Map
	near       [][]int // see Index
}

// NamedCost is the cost of one candidate order.
type NamedCost struct {
	Name string
	Cost OrderCost
}

// Spill records that a value had to leave its wanted level.
type Spill struct {
	Value    int
	From, To Level
	Step     int // where space ran out
	Bytes    int64
}

// A WeightRoom says how much of each core's L1 weights have, and what of it they stay in.
type WeightRoom string

// The rooms for weights; WeightsStay is the default.
const (
	// WeightsStay is the separate weight memory where there is one, else a quarter of the L1. On a machine without an LLB
	// that could keep them, weights stay in three quarters of it from use to use.
	WeightsStay WeightRoom = ""
	// WeightsPass is the same room, all of which weights pass.
	WeightsPass WeightRoom = "pass"
	// WeightsTwelfth is a twelfth of an L1 that weights share with values, so that more values stay, else as WeightsPass.
	WeightsTwelfth WeightRoom = "twelfth"
)

// leastBuffer is the bytes that weights have of an L1 if a quarter of it is as much.
const leastBuffer = 256

// Check reports a room that is not known.
func (r WeightRoom) Check() error {
	switch r {
	case WeightsStay, WeightsPass, WeightsTwelfth:
		return nil
	}
	return fmt.Errorf("room for weights is %q, expected %q, %q or none", string(r), WeightsPass, WeightsTwelfth)
}

// BufferBytes is the fixed part of each core's L1 that weights have, the parts below among it.
func (r WeightRoom) BufferBytes(spec *hardware.Spec) int64 {
	switch {
	case spec.L1WeightBytes > 0:
		return int64(spec.L1WeightBytes)
	case spec.L1 == nil:
		return 0
	case r == WeightsTwelfth:
		return max(int64(spec.L1.SizeBytes)/12&^63, min(int64(spec.L1.SizeBytes)/4, leastBuffer))
	}
	return int64(spec.L1.SizeBytes) / 4
}

// HomeBytes is the part of the buffer in which weights stay from use to use.
func (r WeightRoom) HomeBytes(spec *hardware.Spec) int64 {
	if spec.LLB != nil || r != WeightsStay {
		return 0
	}
	return r.BufferBytes(spec) / 4 * 3 &^ 63
}

// RingBytes is the part of the buffer that the anchors' weights pass through; a third as much is for biases, scales
// and tables.
func (r WeightRoom) RingBytes(spec *hardware.Spec) int64 {
	b := r.BufferBytes(spec) - r.HomeBytes(spec)
	return b - b/4
}

// DataBytes is the part of each core's L1 that activations may use.
func (r WeightRoom) DataBytes(spec *hardware.Spec) int64 {
	switch {
	case spec.L1 == nil:
		return 0
	case spec.L1WeightBytes > 0:
		return int64(spec.L1.SizeBytes)
	}
	return int64(spec.L1.SizeBytes) - r.BufferBytes(spec)
}

// WeightBufferBytes is the default size of the weights' buffer.
func WeightBufferBytes(spec *hardware.Spec) int64 { return WeightsStay.BufferBytes(spec) }

// RingBytes is the part of each core's L1 that the anchors' weights pass through.
func (s *Schedule) RingBytes() int64 { return s.WeightRoom.RingBytes(s.Spec) }

// ParamBytes is the number of bytes of parameters beside the anchors' weights that stay for a step: more pass in
// blocks, two of which have room in their part of the weights' buffer.
func (s *Schedule) ParamBytes() int64 {
	r := s.WeightRoom
	return (r.BufferBytes(s.Spec) - r.HomeBytes(s.Spec) - r.RingBytes(s.Spec)) / 2
}

// MovableRing reports whether weights share the L1 of a core with activations, so that a nest may say where one ends.
func MovableRing(spec *hardware.Spec) bool { return spec.L1 != nil && spec.L1WeightBytes == 0 }

// DataBytes is the default size of the part of each core's L1 that activations may use.
func DataBytes(spec *hardware.Spec) int64 { return WeightsStay.DataBytes(spec) }

// BusyClusters is the number of clusters that have work, and so share the DDR.
func (s *Schedule) BusyClusters() int {
	if s.Busy > 0 {
		return min(s.Busy, s.Spec.Clusters)
	}
	return s.Spec.Clusters
}

// CoresWithL1 is the number of cores of a cluster that hold data, among those that run a layer together.
func CoresWithL1(spec *hardware.Spec) int64 {
	n := int64(0)
	for _, ct := range spec.Together() {
		if ct.HasL1 {
			n += int64(ct.Count)
		}
	}
	return n
}

// AllDataBytes is DataBytes of all cores of a cluster together.
func AllDataBytes(spec *hardware.Spec) int64 { return DataBytes(spec) * CoresWithL1(spec) }

// LargestRoom is the size of the larger memory for results in a cluster: the L1s together, or the LLB.
func LargestRoom(spec *hardware.Spec) int64 {
	room := AllDataBytes(spec)
	if spec.LLB != nil {
		room = max(room, int64(spec.LLB.SizeBytes))
	}
	return room
}

// Grid is the arrangement of the cluster's cores that hold data: in a line, or as
// the description says if all are of one type.
func Grid(spec *hardware.Spec) []int64 {
	var grid []int64
	types := 0
	for _, ct := range spec.Together() {
		if !ct.HasL1 {
			continue
		}
		types++
		for _, n := range ct.Grid {
			grid = append(grid, int64(n))
		}
	}
	if types != 1 || len(grid) == 0 {
		return []int64{CoresWithL1(spec)}
	}
	return grid
}

// Align rounds a size up to the grain of L1 addresses.
func Align(n int64) int64 { return (n + 63) &^ 63 }

// OutputBindings are the bindings of the instances' first outputs: those of the steps that make them, whose nests may
// have chosen other cores than the instances' bindings. parts have the steps of clusters that divide the schedule.
func (s *Schedule) OutputBindings(parts ...*Schedule) []Binding {
	list := slices.Clone(s.Bindings)
	for _, part := range append(parts, s) {
		for i := range part.Steps {
			st := &part.Steps[i]
			k := s.Instances.Instances[st.Instance].Group
			if slices.Contains(s.Layers[k][st.Layer].Outputs, s.Grouping.Groups[k].Outputs[0]) {
				list[st.Instance] = st.Binding
			}
		}
	}
	return list
}

// Away reports whether an instance is of another cluster.
func (s *Schedule) Away(instance int) bool {
	return s.Place != nil && instance >= 0 && s.Place[instance] != s.Cluster
}

// ReadAway reports whether another cluster reads a tensor that an instance makes.
func (s *Schedule) ReadAway(instance int, t model.TensorID) bool {
	if s.Place == nil {
		return false
	}
	for _, c := range s.Instances.Consumers[instance] {
		if s.Away(c) && slices.ContainsFunc(s.Instances.Instances[c].Deps,
			func(d Dep) bool { return d.Tensor == t && d.From == instance }) {
			return true
		}
	}
	return false
}

// Kernels is the number of kernels that the schedule launches: one per instance.
func (s *Schedule) Kernels() int { return len(s.Order) }

// StagePart is L1 space that reads From to To of a step share, or, if From is negative, that the written value To takes
// on its way out, or, if To is negative, too, that the sums of other cores take before they are added.
type StagePart struct {
	From, To int
	Bytes    int64
	Least    int64 // no tile needs less
	Whole    bool
	// Sizes, if not nil, are the space by the binary logarithm of the tiles.
	Sizes []int64
}

// Space is the L1 space that the part takes when it passes in the given number of
// tiles, two of which are there at a time.
func (p StagePart) Space(tiles int64) int64 { return p.space(tiles, stageDepth) }

func (p StagePart) space(tiles, depth int64) int64 {
	if p.Sizes != nil {
		return p.Sizes[logarithm(tiles, len(p.Sizes))]
	}
	n := p.Bytes
	if tiles > 1 && !p.Whole {
		n = min(n, max(depth*((n+tiles-1)/tiles), p.Least))
	}
	return Align(n)
}

// least is the smallest part of a read that a tile can do with, and whether that is all of it.
func (st *Step) least(r *Read) (int64, bool) {
	if st.Panels && r.Stationary {
		return r.PanelBytes, false
	}
	return r.ElementBytes, r.Whole
}

// Whole reports whether every tile of the step needs all of a read.
func (st *Step) Whole(r *Read) bool {
	_, whole := st.least(r)
	return whole
}

// Staged lists the L1 space per core that a step needs for what passes through:
// inputs from other cores and other levels, and outputs for other levels. All
// values of one input tensor share a part, since a core needs some of them only.
func (s *Schedule) Staged(st *Step) []StagePart { return s.StagedIn(nil, st) }

// StagedIn is Staged in the room of an empty list.
func (s *Schedule) StagedIn(parts []StagePart, st *Step) []StagePart {
	if st.Nest.Blocked() {
		return s.blockedStage(st)
	}
	if st.Attending != nil {
		return s.attended(st)
	}
	for i := 0; i < len(st.Reads); {
		t := s.Values[st.Reads[i].Value].Tensor
		p := StagePart{From: i}
		for ; i < len(st.Reads) && s.Values[st.Reads[i].Value].Tensor == t; i++ {
			r := &st.Reads[i]
			if s.Values[r.Value].Level == L1 {
				p.Bytes += r.CoreRemoteBytes
			} else {
				p.Bytes += r.CoreNeedBytes
			}
			p.Bytes = min(p.Bytes, r.TensorCoreBytes)
			least, whole := st.least(r)
			p.Least = max(p.Least, least)
			p.Whole = p.Whole || whole
		}
		p.To = i
		if n := st.Slices(); n > 1 && s.SlicesOf(st, t) > 1 {
			p.Bytes, p.Least = (p.Bytes+n-1)/n, (p.Least+n-1)/n
		}
		if p.Bytes > 0 {
			parts = append(parts, p)
		}
	}
	for _, w := range st.Writes {
		if v := &s.Values[w]; v.Level != L1 {
			parts = append(parts, StagePart{From: -1, To: w, Bytes: v.CoreBytes})
		}
	}
	if n := st.Slices(); n > 1 {
		parts = append(parts, StagePart{From: -1, To: -1,
			Bytes: (n - 1) * s.Graph.Tensor(st.Output).DType.Bytes(st.CoreOutput.Elements())})
	}
	return parts
}
