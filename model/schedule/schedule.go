package schedule

import (
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// Level is a level of the memory hierarchy where a value may live.
type Level uint8

// The levels, nearest first.
const (
	LB Level = iota
	GB
	DDR
)

func (l Level) String() string { return [...]string{"LB", "GB", "DDR"}[l] }

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

// Value is a tensor of one instance that is kept from the step that makes it to
// the last step that reads it.
type Value struct {
	ID       int
	Tensor   model.TensorID
	Instance int // -1: network input
	Region   model.Region
	Binding  Binding
	Wanted   Level // before spilling
	Level    Level
	Bytes    int64 // whole
	// CoreBytes is what the busiest core holds; addresses in the LB are the same on
	// every core.
	CoreBytes int64
	Def       int // step that makes it; -1 for network inputs
	Last      int // last step that reads it; number of steps for network outputs
	Address   int64
}

// Read is what one step needs of one value.
type Read struct {
	Value int
	// Region is the box around what all cores need.
	Region model.Region
	// Bytes summed over cores; the same byte on two cores counts twice.
	NeedBytes   int64
	RemoteBytes int64 // of these, not in the reading core's own LB slice
	// Of the busiest core.
	CoreNeedBytes   int64
	CoreRemoteBytes int64
	// UnionBytes counts each byte once.
	UnionBytes int64
	// TensorCoreBytes is what the busiest core needs of the whole tensor, which may
	// lie in several values.
	TensorCoreBytes int64
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

// ParamRead is what one step needs of one constant.
type ParamRead struct {
	Tensor model.TensorID
	Region model.Region // the box around what all cores read
	// CoreBytes is what the busiest core reads, UnionBytes what leaves the GB when
	// cores that need the same bytes share one broadcast.
	CoreBytes, UnionBytes int64
	// Offset is the first element read, which tells parts of equal size apart.
	Offset int64
	// Rows marks a table of which only the rows looked up are read: it has no reuse
	// and is not kept.
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
	// StageBytes of LB per core hold what passes through: data of other cores, data
	// of other levels. Tiles > 1 means that it passes in pieces, two at a time.
	StageBytes int64
	// Panels: the stationary operand of a product of activations does not fit and
	// passes by blocks of the matrix unit's size.
	Panels       bool
	StageAddress int64
	Tiles        int64
}

// Schedule is the complete answer for one cluster working on one chunk of its
// share of the batch.
type Schedule struct {
	Graph     *model.Graph
	Spec      *hardware.Spec
	Grouping  *Grouping
	Layers    [][]Layer // per group
	Instances *InstanceGraph
	Order     []int
	OrderName string // "bfs", "dfs", ...
	Costs     []NamedCost
	Bindings  []Binding // per instance, of its first output
	Scopes    []Level   // per instance
	Joins     []Join
	Steps     []Step
	Values    []Value
	// LBCapacity is per core, GBCapacity per cluster; both without reserves.
	LBCapacity, GBCapacity int64
	// GBActivationBytes is the part of the GB that values take; the rest stages
	// weights and transfers.
	GBActivationBytes int64
	Spills            []Spill
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

// WeightBufferBytes is the fixed part of each core's LB that weights pass
// through: the separate weight memory where there is one, else a quarter of the
// LB.
func WeightBufferBytes(spec *hardware.Spec) int64 {
	if spec.LBWeightBytes > 0 {
		return int64(spec.LBWeightBytes)
	}
	if spec.LB == nil {
		return 0
	}
	return int64(spec.LB.SizeBytes) / 4
}

// WeightHomeBytes is the part of each core's weight buffer in which weights stay
// from use to use on a machine without a GB that could keep them.
func WeightHomeBytes(spec *hardware.Spec) int64 {
	if spec.GB != nil {
		return 0
	}
	return WeightBufferBytes(spec) / 4 * 3 &^ 63
}

// WeightRingBytes is the part of the weight buffer that the anchors' weights pass
// through; a third as much is for biases, scales and tables.
func WeightRingBytes(spec *hardware.Spec) int64 {
	b := WeightBufferBytes(spec) - WeightHomeBytes(spec)
	return b - b/4
}

// DataBytes is the part of each core's LB that activations may use.
func DataBytes(spec *hardware.Spec) int64 {
	if spec.LB == nil {
		return 0
	}
	if spec.LBWeightBytes > 0 {
		return int64(spec.LB.SizeBytes)
	}
	return int64(spec.LB.SizeBytes) - WeightBufferBytes(spec)
}

// CoresWithLB is the number of cores of a cluster that hold data.
func CoresWithLB(spec *hardware.Spec) int64 {
	n := int64(0)
	for _, ct := range spec.CoreTypes {
		if ct.HasLB {
			n += int64(ct.Count)
		}
	}
	return n
}

// Grid is how the cores of a cluster that hold data are arranged: in a line, or as
// the description says if all are of one type.
func Grid(spec *hardware.Spec) []int64 {
	var grid []int64
	types := 0
	for _, ct := range spec.CoreTypes {
		if !ct.HasLB {
			continue
		}
		types++
		for _, n := range ct.Grid {
			grid = append(grid, int64(n))
		}
	}
	if types != 1 || len(grid) == 0 {
		return []int64{CoresWithLB(spec)}
	}
	return grid
}

// Align rounds a size up to the grain of LB addresses.
func Align(n int64) int64 { return (n + 63) &^ 63 }

// Kernels is the number of kernels that the schedule launches: one per instance.
func (s *Schedule) Kernels() int { return len(s.Order) }

// BuildSteps lists the steps of all instances in order with their values and
// reads, from groups, layers, order and instance bindings. Values are wanted at
// level want (LB: at their instance's scope if they leave it), network inputs and
// outputs in the DDR.
func (s *Schedule) BuildSteps(want Level) error {
	g := s.Graph
	s.Steps, s.Values = nil, nil
	type key struct {
		inst int
		t    model.TensorID
	}
	values := map[key]int{}
	for _, t := range g.Inputs {
		r := model.Whole(g.Tensor(t).Shape)
		values[key{-1, t}] = len(s.Values)
		s.Values = append(s.Values, Value{ID: len(s.Values), Tensor: t, Instance: -1, Region: r, Binding: One(len(r)),
			Wanted: DDR, Level: DDR, Bytes: g.Tensor(t).Bytes(), Def: -1, Last: -1})
	}
	inference := make([]*Inference, len(s.Grouping.Groups))
	cores, grid := CoresWithLB(s.Spec), Grid(s.Spec)
	for _, id := range s.Order {
		inst := &s.Instances.Instances[id]
		sg := s.Grouping.Groups[inst.Group]
		if inference[sg.ID] == nil {
			inference[sg.ID] = NewInference(g, sg)
		}
		external := map[model.TensorID]bool{}
		for _, t := range sg.Outputs {
			external[t] = true
		}
		for li := range s.Layers[sg.ID] {
			layer := &s.Layers[sg.ID][li]
			st := Step{ID: len(s.Steps), Instance: id, Layer: li, Output: -1}
			// The first output of which this instance needs anything.
			var main model.TensorID
			var region model.Region
			for _, t := range layer.Outputs {
				if r := inst.Regions[t]; r.Elements() > 0 {
					main, region = t, r
					break
				}
			}
			if region == nil {
				continue // this instance does not need the layer
			}
			st.Binding = s.layerBinding(inference[sg.ID], layer, id, main, region, grid)
			st.Cores = st.Binding.Cores()
			st.Output = main
			layout := g.Tensor(main).Layout
			st.CoreOutput = Slice(region, st.Binding, layout, 0)

			for _, t := range layer.Outputs {
				r := inst.Regions[t]
				if r == nil || r.Elements() == 0 {
					continue
				}
				v := Value{ID: len(s.Values), Tensor: t, Instance: id, Region: r, Wanted: want, Def: st.ID, Last: st.ID}
				v.Binding = st.Binding
				if t != main && CheckBinding(r, v.Binding, nil, cores) != nil {
					v.Binding = GridBinding(r, g.Tensor(t).Layout, nil, grid)
				}
				size := g.Tensor(t).DType.Bytes()
				v.Bytes = r.Elements() * size
				v.CoreBytes = Align(Slice(r, v.Binding, g.Tensor(t).Layout, 0).Elements() * size)
				if want == LB && external[t] {
					v.Wanted = s.Scopes[id]
				}
				if g.IsOutput(t) {
					v.Wanted = DDR
				}
				v.Level = v.Wanted
				values[key{id, t}] = v.ID
				s.Values = append(s.Values, v)
				st.Writes = append(st.Writes, v.ID)
			}

			// What each core needs, through the layer's operators.
			need := make([]Regions, st.Cores)
			for c := range need {
				reg := Regions{}
				for _, w := range st.Writes {
					v := &s.Values[w]
					if sl := Slice(v.Region, v.Binding, g.Tensor(v.Tensor).Layout, int64(c)); sl != nil {
						reg[v.Tensor] = sl
					}
				}
				BackPropagate(g, layer.Ops, reg)
				need[c] = reg
			}
			one := model.Whole(g.Tensor(main).Shape)
			for d := range one {
				mid := (st.CoreOutput[d].Lo + st.CoreOutput[d].Hi) / 2
				one[d] = model.Interval{Lo: mid, Hi: mid + 1}
			}
			element := Regions{main: one}
			BackPropagate(g, layer.Ops, element)
			for _, t := range layer.Constants {
				if pr := s.params(layer, t, need); pr.CoreBytes > 0 {
					st.Params = append(st.Params, pr)
				}
			}
			for _, t := range layer.Inputs {
				var pieces []int
				switch p := g.Tensor(t).Producer; {
				case p == model.NoOp:
					pieces = append(pieces, values[key{-1, t}])
				default:
					if v, ok := values[key{id, t}]; ok {
						pieces = append(pieces, v)
						break
					}
					for _, d := range inst.Deps {
						if d.Tensor == t {
							v, ok := values[key{d.From, t}]
							if !ok {
								return fmt.Errorf("instance %d reads %q of instance %d, which has not run", id, g.Tensor(t).Name, d.From)
							}
							pieces = append(pieces, v)
						}
					}
				}
				tensorCore := int64(0)
				for _, reg := range need {
					if r := reg[t]; r != nil {
						tensorCore = max(tensorCore, r.Elements()*g.Tensor(t).DType.Bytes())
					}
				}
				for _, v := range pieces {
					rd := s.read(v, t, need)
					rd.TensorCoreBytes = tensorCore
					if r := element[t]; r != nil {
						rd.ElementBytes = r.Elements() * g.Tensor(t).DType.Bytes()
					}
					if rd.NeedBytes == 0 {
						continue
					}
					if a := g.Op(layer.Anchor); a.Class() == model.MatrixClass && a.Inputs[1] == t {
						// Each of a core's products needs its own stationary operand, whole.
						products, columns, rows := int64(1), int64(1), int64(1)
						if d, ok := g.MatrixDims(a, need[0][a.Outputs[0]]); ok {
							products, columns, rows = d.Reps, d.N, d.K
						}
						rd.ElementBytes = max(rd.ElementBytes, (tensorCore+products-1)/products)
						rd.Stationary = true
						rd.PanelBytes = rd.ElementBytes
						if u, ok := s.Spec.UnitOf(hardware.Matrix); ok {
							block := min(columns, int64(u.Cols)) * min(rows, int64(u.Rows))
							rd.PanelBytes = (rd.ElementBytes*block + columns*rows - 1) / (columns * rows)
						}
					} else if a.Class() == model.MatrixClass && a.Inputs[0] == t {
						// The matrix unit adds up over the reduction, one array of rows at a time.
						if u, ok := s.Spec.UnitOf(hardware.Matrix); ok {
							if k := g.Work(a, nil).MACs / max(1, g.Tensor(a.Outputs[0]).Shape.Elements()); k > int64(u.Rows) {
								rd.ElementBytes = rd.ElementBytes * int64(u.Rows) / k
							}
						}
					}
					// What every element needs in full, every tile does.
					rd.Whole = rd.ElementBytes >= tensorCore
					st.Reads = append(st.Reads, rd)
					s.Values[v].Last = max(s.Values[v].Last, st.ID)
				}
			}
			s.Steps = append(s.Steps, st)
		}
	}
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 && g.IsOutput(v.Tensor) {
			v.Last = len(s.Steps)
		}
	}
	return nil
}

// layerBinding follows the instance's binding to the layer's output, or takes
// the plain binding if that uses more cores (line 16 of Algorithm 4).
func (s *Schedule) layerBinding(inf *Inference, layer *Layer, inst int, t model.TensorID, r model.Region, grid []int64) Binding {
	g := s.Graph
	tensor := g.Tensor(t)
	forbidden := Forbidden(g, layer.Ops, t)
	plain := GridBinding(r, tensor.Layout, forbidden, grid)
	b := inf.Infer(g, s.Bindings[inst], t, r)
	if b == nil || CheckBinding(r, b, forbidden, CoresWithLB(s.Spec)) != nil || b.Cores() < plain.Cores() {
		return plain
	}
	return b
}

// Forbidden tells which dimensions of t must not be bound to cores: those that
// an operator of ops runs along sequentially.
func Forbidden(g *model.Graph, ops []model.OpID, t model.TensorID) []bool {
	f := make([]bool, len(g.Tensor(t).Shape))
	for d := range f {
		if !Track(g, ops, []model.TensorID{t}, d).Splittable {
			f[d] = true
		}
	}
	return f
}

func (s *Schedule) read(v int, t model.TensorID, need []Regions) Read {
	g := s.Graph
	val := &s.Values[v]
	size := g.Tensor(t).DType.Bytes()
	rd := Read{Value: v}
	var union model.Region
	distinct := int64(0)
	var previous model.Region
	for c, reg := range need {
		r := reg[t]
		if r == nil {
			continue
		}
		r = r.Intersect(val.Region)
		n := r.Elements()
		if n == 0 {
			continue
		}
		local := int64(0)
		if val.Instance >= 0 {
			if own := Slice(val.Region, val.Binding, g.Tensor(t).Layout, int64(c)); own != nil {
				local = r.Overlap(own)
			}
		}
		rd.NeedBytes += n * size
		rd.RemoteBytes += (n - local) * size
		rd.CoreNeedBytes = max(rd.CoreNeedBytes, n*size)
		rd.CoreRemoteBytes = max(rd.CoreRemoteBytes, (n-local)*size)
		union = union.Hull(r)
		if previous == nil || !previous.Equal(r) {
			distinct += n
		}
		previous = r
	}
	rd.UnionBytes = min(distinct, union.Elements()) * size
	rd.Region = union
	return rd
}

func (s *Schedule) params(layer *Layer, t model.TensorID, need []Regions) ParamRead {
	g := s.Graph
	pr := ParamRead{Tensor: t}
	size := g.Tensor(t).DType.Bytes()
	gather := model.TensorID(-1)
	for _, id := range layer.Ops {
		if op := g.Op(id); op.Kind == "Gather" && op.Inputs[0] == t {
			pr.Rows = true
			gather = op.Outputs[0]
		}
	}
	var previous, hull model.Region
	for _, reg := range need {
		r := reg[t]
		if r.Elements() == 0 {
			continue
		}
		hull = hull.Hull(r)
		n := r.Elements() * size
		if pr.Rows {
			n = min(n, reg[gather].Elements()*size)
		}
		pr.CoreBytes = max(pr.CoreBytes, n)
		if pr.Rows || previous == nil || !previous.Equal(r) {
			pr.UnionBytes += n
		}
		previous = r
	}
	pr.Region = hull
	for d, iv := range hull {
		pr.Offset = pr.Offset*g.Tensor(t).Shape[d] + iv.Lo
	}
	// Cores that need the same part need not be neighbours.
	if !pr.Rows {
		pr.UnionBytes = min(pr.UnionBytes, g.Tensor(t).Bytes())
	}
	return pr
}

// StagePart is LB space that reads From to To of a step share, or, if From is
// negative, that the written value To takes on its way out.
type StagePart struct {
	From, To int
	Bytes    int64
	Least    int64 // no tile needs less
	Whole    bool
}

// Space is the LB space that the part takes when it passes in the given number of
// tiles, two of which are there at a time.
func (p StagePart) Space(tiles int64) int64 {
	n := p.Bytes
	if tiles > 1 && !p.Whole {
		n = min(n, max(2*((n+tiles-1)/tiles), p.Least))
	}
	return Align(n)
}

// least is the smallest part of a read that a tile can do with, and whether that is
// all of it.
func (st *Step) least(r *Read) (int64, bool) {
	if st.Panels && r.Stationary {
		return r.PanelBytes, false
	}
	return r.ElementBytes, r.Whole
}

// Whole tells whether every tile of the step needs all of a read.
func (st *Step) Whole(r *Read) bool {
	_, whole := st.least(r)
	return whole
}

// Staged lists the LB space per core that a step needs for what passes through:
// inputs from other cores and other levels, and outputs for other levels. All
// values of one input tensor share a part, since a core needs some of them only.
func (s *Schedule) Staged(st *Step) []StagePart {
	var parts []StagePart
	for i := 0; i < len(st.Reads); {
		t := s.Values[st.Reads[i].Value].Tensor
		p := StagePart{From: i}
		for ; i < len(st.Reads) && s.Values[st.Reads[i].Value].Tensor == t; i++ {
			r := &st.Reads[i]
			if s.Values[r.Value].Level == LB {
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
		if p.Bytes > 0 {
			parts = append(parts, p)
		}
	}
	for _, w := range st.Writes {
		if v := &s.Values[w]; v.Level != LB {
			parts = append(parts, StagePart{From: -1, To: w, Bytes: v.CoreBytes})
		}
	}
	return parts
}
