package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// BuildSteps lists the steps of all instances in order with their values and reads, from groups, layers, order and
// instance bindings. Values are wanted at level want (L1: at their instance's scope if they leave it), network inputs
// in the DDR, and so are network outputs but for those of which KeepOutputs speaks. If ctx ends, it returns its error.
func (s *Schedule) BuildSteps(ctx context.Context, want Level) error {
	b, n := Builders(want, s)[0], 0
	for _, id := range s.Order {
		n += len(s.Layers[s.Instances.Instances[id].Group])
	}
	s.Steps, s.Values = make([]Step, 0, n), slices.Grow(s.Values, n)
	for _, id := range s.Order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.Add(id); err != nil {
			return err
		}
	}
	for i := range s.Values {
		if v := &s.Values[i]; v.Last == v.Def && v.Instance >= 0 && s.Graph.IsOutput(v.Tensor) {
			v.Last = len(s.Steps)
			v.Wanted, v.Level = DDR, DDR // others may read what other instances make of the tensor
		}
	}
	return nil
}

// made is a tensor of one instance; -1: of the network.
type made struct {
	instance int
	tensor   model.TensorID
}

// A StepBuilder is BuildSteps an instance at a time.
type StepBuilder struct {
	*Schedule
	want       Level
	kind       int            // of the cores that run the layer at hand,
	machine    *hardware.Spec // with those alone
	cores      int64
	grid       []int64
	made       map[made]int // values
	inferences []*Inference // of groups, made where they are needed
	steps      int          // so far, those included that the caller has taken out of Steps
	values     int          // before the present instance

	// the present instance
	inst           *Instance
	inference      **Inference
	leaves         map[model.TensorID]bool // the tensors that other sub-graphs read
	group          int64                   // the sub-graph's number in the memo
	key            keyed                   // room for one
	need           []Regions               // of a step, see needs
	attentionTiles map[string]*Attending   // what has been found for attentions that are alike
}

// Builders are for schedules that differ in bindings and scopes alone, which begin anew.
func Builders(want Level, schedules ...*Schedule) []*StepBuilder {
	var list []*StepBuilder
	for _, s := range schedules {
		s.Steps, s.Values, s.near = nil, nil, nil
		if s.Attentions == nil {
			s.Attentions = &sync.Map{}
		}
		b := &StepBuilder{Schedule: s, want: want, made: map[made]int{}}
		if b.inferences = make([]*Inference, len(s.Grouping.Groups)); len(list) > 0 {
			b.inferences = list[0].inferences
		}
		b.on(0)
		for _, t := range b.Graph.Inputs {
			r := model.Whole(b.Graph.Tensor(t).Shape)
			b.addValue(Value{Tensor: t, Instance: -1, Region: r, Binding: One(len(r)), Wanted: DDR,
				Bytes: b.Graph.Tensor(t).Bytes(), Def: -1, Last: -1})
		}
		list = append(list, b)
	}
	return list
}

// on lets what follows be of the cores of a kind.
func (b *StepBuilder) on(kind int) {
	if b.machine == nil || b.kind != kind {
		if b.kind, b.machine = kind, cmp.Or(b.Whole, b.Spec).Kind(kind); b.Cores > 0 {
			b.machine = b.machine.Part(b.Cores)
		}
		b.cores, b.grid = CoresWithL1(b.machine), Grid(b.machine)
	}
}

// Add adds the steps of the next instance, which may be the only ones in Steps then.
func (b *StepBuilder) Add(id int) error {
	b.values = len(b.Values)
	sg := b.Grouping.Groups[b.Instances.Instances[id].Group]
	b.enter(id, &b.inferences[sg.ID])
	for layer := range b.Layers[sg.ID] {
		if err := b.step(layer); err != nil {
			return err
		}
	}
	return nil
}

// AddAs is Add where another builder has just added the same, without the steps.
func (b *StepBuilder) AddAs(other *StepBuilder) {
	b.values = len(b.Values)
	for _, v := range other.Values[other.values:] {
		b.addValue(v)
	}
}

func (b *StepBuilder) enter(id int, inference **Inference) {
	b.inst, b.inference = &b.Instances.Instances[id], inference
	b.leaves = map[model.TensorID]bool{}
	sg := b.Grouping.Groups[b.inst.Group]
	for _, t := range sg.Outputs {
		b.leaves[t] = true
	}
	if b.Memo != nil {
		b.key = keyOf(b.key[:0], sg.Ops)
		b.group = b.Memo.group(b.key)
	}
}

func (b *StepBuilder) addValue(v Value) int {
	v.ID, v.Level = len(b.Values), v.Wanted
	b.made[made{v.Instance, v.Tensor}] = v.ID
	b.Values = append(b.Values, v)
	return v.ID
}

// step adds the step of a layer, unless the instance does not need the layer.
func (b *StepBuilder) step(index int) error {
	layer := &b.Layers[b.inst.Group][index]
	st := Step{ID: b.steps, Instance: b.inst.ID, Layer: index, Output: -1, Kind: b.LayerKind(b.inst.Group, index)}
	b.on(st.Kind)
	for _, t := range layer.Outputs {
		if b.inst.Regions[t].Elements() > 0 {
			st.Output = t
			break
		}
	}
	if st.Output < 0 {
		return nil
	}
	region := b.inst.Regions[st.Output]
	st.Binding = b.binding(layer, st.Output, region, b.ownBinding(index))
	sources := make([][]int, len(layer.Inputs))
	for i, t := range layer.Inputs {
		var err error
		if sources[i], err = b.sources(t); err != nil {
			return err
		}
	}
	if b.Memo == nil {
		b.build(layer, &st, sources)
	} else {
		b.recall(layer, &st, sources)
	}
	for i := range st.Reads {
		v := &b.Values[st.Reads[i].Value]
		v.Last = max(v.Last, st.ID)
	}
	b.Steps = append(b.Steps, st)
	b.steps++
	return nil
}

// recall is build, of a step that may have been built before.
func (b *StepBuilder) recall(layer *Layer, st *Step, sources [][]int) {
	key := b.stepKey(layer, st, sources)
	all, built := slices.Concat(sources...), false
	old := recalled(b.Memo, b.Memo.steps, key, memoSize, func() *known {
		built = true
		b.build(layer, st, sources)
		k := &known{step: *st}
		k.step.Reads = slices.Clone(st.Reads)
		for i := range k.step.Reads {
			r := &k.step.Reads[i]
			r.Value = slices.Index(all, r.Value)
		}
		for _, w := range st.Writes {
			k.writes = append(k.writes, b.Values[w])
		}
		return k
	})
	if st.known = old; built {
		return
	}
	made := *st
	*st = old.step
	st.ID, st.Instance, st.Layer, st.known = made.ID, made.Instance, made.Layer, old
	st.Reads, st.Writes = slices.Clone(old.step.Reads), nil
	for i := range st.Reads {
		st.Reads[i].Value = all[st.Reads[i].Value]
	}
	for _, v := range old.writes {
		b.write(v, st)
	}
}

// build finds out what a step writes and reads.
func (b *StepBuilder) build(layer *Layer, st *Step, sources [][]int) {
	region := b.inst.Regions[st.Output]
	st.Cores = st.Binding.Cores()
	st.CoreOutput = Slice(region, st.Binding, b.Graph.Tensor(st.Output).Layout, 0)
	b.writes(layer, st)
	need := b.needs(layer, st)
	if len(layer.Constants) > 0 {
		st.Params = make([]ParamRead, 0, len(layer.Constants))
	}
	for _, t := range layer.Constants {
		if pr := b.params(layer, t, need); pr.CoreBytes > 0 {
			st.Params = append(st.Params, pr)
		}
	}
	b.reads(layer, st, need, sources)
	if st.Attending = b.attending(layer, st.Cores, need, b.want); st.Attending != nil {
		key := b.attentionKey(layer, st.Output, region) + fmt.Sprint(st.Binding)
		if b.attentionTiles == nil {
			b.attentionTiles = map[string]*Attending{}
		}
		if known := b.attentionTiles[key]; known != nil {
			st.Attending.estimates, st.Attending.tilings = known.estimates, known.tilings
		}
		b.attentionTiles[key] = st.Attending
	}
}

// binding is a layer's own, if it can have that, or follows from its instance's.
func (b *StepBuilder) binding(layer *Layer, t model.TensorID, region model.Region, own Binding) Binding {
	find := func() Binding {
		if own != nil && CheckBinding(region, own, Forbidden(b.Graph, layer.Ops, t), b.cores) == nil {
			return own
		}
		if b.Graph.Op(layer.Anchor).Kind == "Attention" {
			key := [...]any{cmp.Or(b.Whole, b.Spec), b.want, b.cores, b.BusyClusters(), b.Slices,
				b.attentionKey(layer, t, region)}
			made, known := b.Attentions.Load(key)
			if !known {
				made, _ = b.Attentions.LoadOrStore(key, b.attentionBinding(layer, t, region))
			}
			if made := made.(Binding); made != nil {
				return slices.Clone(made)
			}
		}
		if *b.inference == nil {
			*b.inference = NewInference(b.Graph, b.Grouping.Groups[b.inst.Group])
		}
		return b.layerBinding(*b.inference, layer, t, region)
	}
	if b.Memo == nil {
		return find()
	}
	k := keyOf(b.key[:0].number(b.group), layer.Ops).number(int64(t)).region(region)
	k = keyOf(keyOf(k, b.Bindings[b.inst.ID]), own)
	b.key = k.number(int64(b.kind)).number(int64(b.want)).number(int64(b.BusyClusters()))
	return recalled(b.Memo, b.Memo.bindings, b.key, memoSize, find)
}

// ownBinding returns the entry of LayerBindings for a layer of the present instance.
func (b *StepBuilder) ownBinding(layer int) Binding {
	if k := b.inst.Group; k < len(b.LayerBindings) && layer < len(b.LayerBindings[k]) {
		return b.LayerBindings[k][layer]
	}
	return nil
}

// writes adds the values that a step makes.
func (b *StepBuilder) writes(layer *Layer, st *Step) {
	for _, t := range layer.Outputs {
		r := b.inst.Regions[t]
		if r.Elements() == 0 {
			continue
		}
		tensor := b.Graph.Tensor(t)
		v := Value{Tensor: t, Region: r, Binding: st.Binding}
		if t != st.Output && !v.Binding.Follows(r, nil, b.cores, b.Slices) {
			v.Binding = GridBinding(r, tensor.Layout, nil, b.grid, b.Slices)
		}
		v.Bytes = tensor.DType.Bytes(r.Elements())
		v.CoreBytes = Align(tensor.DType.Bytes(Slice(r, v.Binding, tensor.Layout, 0).Elements()))
		b.write(v, st)
	}
}

// Kept reports whether values of a network output are wanted where others are; they are stored besides.
func (s *Schedule) Kept(t model.TensorID) bool {
	return s.KeepOutputs && len(s.Graph.Tensor(t).Consumers) > 0
}

// write adds a value that a step makes, to be kept where its instance says.
func (b *StepBuilder) write(v Value, st *Step) {
	v.Instance, v.Wanted, v.Def, v.Last, v.Kind = b.inst.ID, b.want, st.ID, st.ID, st.Kind
	if b.want == L1 && b.leaves[v.Tensor] {
		v.Wanted = b.Scopes[b.inst.ID]
	}
	t := b.Graph.Tensor(v.Tensor)
	if b.Graph.IsOutput(t.ID) && !b.Kept(t.ID) || b.ReadAway(b.inst.ID, t.ID) {
		v.Wanted = DDR
	}
	st.Writes = append(st.Writes, b.addValue(v))
}

// needs returns the regions that each core needs, through the layer's operators.
func (b *StepBuilder) needs(layer *Layer, st *Step) []Regions {
	cores := st.Cores
	for _, w := range st.Writes { // results that cannot be spread as the first may have more cores
		cores = max(cores, b.Values[w].Binding.Cores())
	}
	for len(b.need) < int(cores) {
		b.need = append(b.need, Regions{})
	}
	need := b.need[:cores]
	for c := range need {
		clear(need[c])
		for _, w := range st.Writes {
			v := &b.Values[w]
			if sl := Slice(v.Region, v.Binding, b.Graph.Tensor(v.Tensor).Layout, int64(c)); sl != nil {
				need[c][v.Tensor] = sl
			}
		}
		BackPropagate(b.Graph, layer.Ops, need[c])
	}
	return need
}

// element returns the regions that one element in the middle of a step's output needs.
func (b *StepBuilder) element(layer *Layer, st *Step) Regions {
	one := model.Whole(b.Graph.Tensor(st.Output).Shape)
	for d := range one {
		mid := (st.CoreOutput[d].Lo + st.CoreOutput[d].Hi) / 2
		one[d] = model.Interval{Lo: mid, Hi: mid + 1}
	}
	reg := Regions{st.Output: one}
	BackPropagate(b.Graph, layer.Ops, reg)
	return reg
}

// reads adds what a step needs of earlier values.
func (b *StepBuilder) reads(layer *Layer, st *Step, need []Regions, sources [][]int) {
	element := b.element(layer, st)
	for i, t := range layer.Inputs {
		for _, v := range sources[i] {
			if rd := b.read(v, t, need); rd.NeedBytes > 0 {
				st.Reads = append(st.Reads, b.readOf(layer, rd, t, need, element))
			}
		}
	}
}

// readOf adds to a read what it has of the whole tensor.
func (b *StepBuilder) readOf(layer *Layer, rd Read, t model.TensorID, need []Regions, element Regions) Read {
	busiest, most := busiest(need, t)
	rd.Busiest, rd.TensorCoreBytes = busiest, b.Graph.Tensor(t).DType.Bytes(most)
	rd.ElementBytes = b.Graph.Tensor(t).DType.Bytes(element[t].Elements())
	b.tileNeeds(layer, t, need[0], &rd)
	return rd
}

// busiest returns the first of the cores that need most of a tensor, and the elements that it needs.
func busiest(need []Regions, t model.TensorID) (core, most int64) {
	for c, reg := range need {
		if n := reg[t].Elements(); n > most {
			core, most = int64(c), n
		}
	}
	return core, most
}

// sources are the values that hold a tensor for the present instance: of the network, its
// own, or those of the instances that it depends on.
func (b *StepBuilder) sources(t model.TensorID) ([]int, error) {
	if b.Graph.Tensor(t).Producer == model.NoOp {
		return []int{b.made[made{-1, t}]}, nil
	}
	if v, ok := b.made[made{b.inst.ID, t}]; ok {
		return []int{v}, nil
	}
	var pieces []int
	for _, d := range b.inst.Deps {
		if d.Tensor != t {
			continue
		}
		v, ok := b.made[made{d.From, t}]
		if !ok && b.Away(d.From) {
			r := b.Instances.Instances[d.From].Regions[t]
			v, ok = b.addValue(Value{Tensor: t, Instance: d.From, Region: r, Binding: One(len(r)), Wanted: DDR,
				Bytes: b.Graph.Tensor(t).DType.Bytes(r.Elements()), Def: -1, Last: -1}), true
		}
		if !ok {
			return nil, fmt.Errorf("instance %d reads %q of instance %d, which has not run", b.inst.ID,
				b.Graph.Tensor(t).Name, d.From)
		}
		pieces = append(pieces, v)
	}
	return pieces, nil
}

// tileNeeds completes what a tile needs of a read of tensor t: more than an element does
// if the tensor is an operand of the matrix unit. core has the needs of the busiest core.
func (b *StepBuilder) tileNeeds(layer *Layer, t model.TensorID, core Regions, rd *Read) {
	a := b.Graph.Op(layer.Anchor)
	unit, hasUnit := b.machine.UnitOf(hardware.Matrix)
	switch {
	case a.Class() != model.MatrixClass:
	case a.Inputs[1] == t:
		// Each of a core's products needs its own stationary operand, whole.
		products, columns, rows := int64(1), int64(1), int64(1)
		if d, ok := b.Graph.MatrixDims(a, core[a.Outputs[0]]); ok {
			products, columns, rows = d.Reps, d.N, d.K
		}
		rd.ElementBytes = max(rd.ElementBytes, (rd.TensorCoreBytes+products-1)/products)
		rd.Stationary = true
		rd.PanelBytes = rd.ElementBytes
		if hasUnit {
			block := min(columns, int64(unit.Cols)) * min(rows, int64(unit.Rows))
			rd.PanelBytes = (rd.ElementBytes*block + columns*rows - 1) / (columns * rows)
		}
	case a.Inputs[0] == t && hasUnit:
		// The matrix unit adds up over the reduction, one array of rows at a time.
		if k := b.Graph.Work(a, nil).MACs / max(1, b.Graph.Tensor(a.Outputs[0]).Shape.Elements()); k > int64(unit.Rows) {
			rd.ElementBytes = rd.ElementBytes * int64(unit.Rows) / k
		}
	}
	// What every element needs in full, every tile does.
	rd.Whole = rd.ElementBytes >= rd.TensorCoreBytes
}

// layerBinding follows the instance's binding to the layer's output, or takes
// the plain binding if that uses more cores (line 16 of Algorithm 4).
func (b *StepBuilder) layerBinding(inf *Inference, layer *Layer, t model.TensorID, r model.Region) Binding {
	g := b.Graph
	tensor := g.Tensor(t)
	forbidden := Forbidden(g, layer.Ops, t)
	plain := GridBinding(r, tensor.Layout, forbidden, b.grid, b.Slices)
	own := inf.Infer(b.Bindings[b.inst.ID], t, r, b.Slices)
	if own == nil || CheckBinding(r, own, forbidden, b.cores) != nil || own.Busy(r) < plain.Busy(r) {
		return plain
	}
	return own
}

// Forbidden marks the dimensions of t that must not be bound to cores: those that
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

// read is what cores of the present kind need of a value: what those of another kind hold is remote.
func (b *StepBuilder) read(v int, t model.TensorID, need []Regions) Read {
	g := b.Graph
	val := &b.Values[v]
	size := g.Tensor(t).DType.Bytes
	rd := Read{Value: v}
	var union model.Region
	distinct := int64(0)
	rank := len(val.Region)
	room := make(model.Region, 3*rank)
	r, previous, slice := room[:rank], room[rank:2*rank], room[2*rank:]
	for c, reg := range need {
		if reg[t] == nil {
			continue
		}
		for d, iv := range reg[t] {
			r[d] = iv.Intersect(val.Region[d])
		}
		n := r.Elements()
		if n == 0 {
			continue
		}
		local := int64(0)
		if val.Instance >= 0 && val.Def >= 0 && val.Kind == b.kind {
			if own := sliceInto(slice, val.Region, val.Binding, g.Tensor(t).Layout, int64(c)); own != nil {
				local = r.Overlap(own)
			}
		}
		rd.NeedBytes += size(n)
		rd.RemoteBytes += size(n - local)
		rd.CoreNeedBytes = max(rd.CoreNeedBytes, size(n))
		rd.CoreRemoteBytes = max(rd.CoreRemoteBytes, size(n-local))
		if union == nil || !previous.Equal(r) {
			distinct += n
		}
		if union == nil {
			union = r.Clone()
		}
		union.Include(r)
		r, previous = previous, r
	}
	rd.UnionBytes = size(min(distinct, union.Elements()))
	rd.Region = union
	return rd
}

// ConstantElements is the number of elements of a constant operators read to compute the boxes of reg: of a
// table that they look up (rows) what all their look-ups bring, but no more than is read of it.
func ConstantElements(g *model.Graph, ops []model.OpID, t model.TensorID, reg Regions) (n int64, rows bool) {
	for _, id := range ops {
		if op := g.Op(id); op.Kind == "Gather" && op.Inputs[0] == t {
			rows = true
			n += reg[op.Outputs[0]].Elements()
		}
	}
	all := reg[t].Elements()
	if !rows {
		return all, false
	}
	return min(n, all), true
}

// ConstantBytes is the size of what the boxes of a layer's results read of its constants; of a
// table the rows looked up.
func ConstantBytes(g *model.Graph, l *Layer, reg Regions) (sum int64) {
	for _, t := range l.Constants {
		n, _ := ConstantElements(g, l.Ops, t, reg)
		sum += g.Tensor(t).DType.Bytes(n)
	}
	return sum
}

func (s *Schedule) params(layer *Layer, t model.TensorID, need []Regions) ParamRead {
	g := s.Graph
	pr := ParamRead{Tensor: t}
	size := g.Tensor(t).DType.Bytes
	var previous, hull model.Region
	for _, reg := range need {
		r := reg[t]
		n, rows := ConstantElements(g, layer.Ops, t, reg)
		pr.Rows = rows
		if r.Elements() == 0 {
			continue
		}
		if hull == nil {
			hull = r.Clone()
		}
		hull.Include(r)
		n = size(n)
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
		pr.UnionBytes = min(pr.UnionBytes, size(hull.Elements()))
	}
	return pr
}
