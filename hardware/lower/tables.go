package lower

import (
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// tables lists each name, tensor and task of a program once, in the order of first use.
type tables struct {
	p         *isa.Program
	labels    map[string]int32
	operators map[string]int32
	tensors   map[tensorKey]int32
	tasks     map[*schedule.Step]int32
	boxes     []isa.Range // room for the next boxes
}

// tensorKey distinguishes the tensors of segments, whose batches may differ.
type tensorKey struct {
	graph *model.Graph
	id    model.TensorID
}

func indexOf(s string, known map[string]int32, list *[]string) int32 {
	i, ok := known[s]
	if !ok {
		i = int32(len(*list))
		known[s] = i
		*list = append(*list, s)
	}
	return i
}

func (t *tables) label(s string) int32 { return indexOf(s, t.labels, &t.p.Labels) }

func (t *tables) tensor(g *model.Graph, id model.TensorID) int32 {
	key := tensorKey{g, id}
	i, ok := t.tensors[key]
	if !ok {
		i = int32(len(t.p.Tensors))
		t.tensors[key] = i
		from := g.Tensor(id)
		order := make([]int32, len(from.Layout))
		for k, d := range from.Layout {
			order[k] = int32(d)
		}
		t.p.Tensors = append(t.p.Tensors, isa.Tensor{Name: from.Name, Shape: from.Shape, Order: order,
			ElementBits: from.DType.Bits()})
	}
	return i
}

func (t *tables) operand(g *model.Graph, id model.TensorID, instance int, r model.Region) isa.Operand {
	if cap(t.boxes)-len(t.boxes) < len(r) {
		t.boxes = make([]isa.Range, 0, 1024+len(r))
	}
	n := len(t.boxes)
	for _, iv := range r {
		t.boxes = append(t.boxes, isa.Range{Lo: iv.Lo, Hi: iv.Hi})
	}
	m := len(t.boxes)
	return isa.Operand{Tensor: t.tensor(g, id), Instance: int32(instance), Box: t.boxes[n:m:m]}
}

// unit is that which reads a tensor: Matrix, Vector, or Launch for both.
func (lp *layerPlan) unit(g *model.Graph, id model.TensorID) isa.Kind {
	product, beside := false, false
	for _, op := range lp.layer.Ops {
		for k, in := range g.Op(op).Inputs {
			of := lp.matrix && op == lp.layer.Anchor && k < 2
			product, beside = product || in == id && of, beside || in == id && !of
		}
	}
	switch {
	case !product:
		return isa.Vector
	case !beside:
		return isa.Matrix
	}
	return isa.Launch
}

// task makes Command.Task of the commands of a step: its reads are the step's, with those of parameters behind.
func (t *tables) task(s *schedule.Schedule, lp *layerPlan) int32 {
	st := lp.step
	if i, ok := t.tasks[st]; ok {
		return i
	}
	g := s.Graph
	task := isa.Task{Instance: int32(st.Instance), Operators: make([]int32, len(lp.layer.Ops)),
		Reads: make([]isa.Operand, 0, len(st.Reads)+len(st.Params)), Writes: make([]isa.Operand, 0, len(st.Writes))}
	for i, op := range lp.layer.Ops {
		task.Operators[i] = indexOf(g.Op(op).Name, t.operators, &t.p.Operators)
	}
	for i := range st.Reads {
		v := &s.Values[st.Reads[i].Value]
		task.Reads = append(task.Reads, t.operand(g, v.Tensor, v.Instance, st.Reads[i].Region))
		task.Reads[i].Unit = lp.unit(g, v.Tensor)
	}
	for i, w := range st.Params {
		task.Reads = append(task.Reads, t.operand(g, w.Tensor, -1, w.Region))
		task.Reads[len(st.Reads)+i].Unit = lp.unit(g, w.Tensor)
	}
	for _, w := range st.Writes {
		v := &s.Values[w]
		o := t.operand(g, v.Tensor, v.Instance, v.Region)
		if v.Binding.Cores() > 1 {
			o.Spread = v.Binding
		}
		if v.Kind > 0 {
			o.First = int32(s.Spec.FirstCore(v.Kind))
		}
		task.Writes = append(task.Writes, o)
	}
	task.Columns, task.Reduction = lp.columns, lp.reduction
	if lp.tiles > 1 {
		task.Tiles, task.Repeat = int32(lp.tiles), int32(lp.repeat)
		if d := st.Depth(); d != 2 {
			task.Depth = int32(d)
		}
	}
	if n := st.Nest; n.Blocked() {
		task.Tiles, task.Depth, task.Sums, task.ColumnsFirst = int32(n.Tiles), int32(n.Depth), int32(n.Sums), n.ColumnsFirst
		task.ColumnDepth, task.Held = int32(n.RoomFor(schedule.ColumnsOperand)), int32(n.Held())
		for i := range task.Writes {
			task.Writes[i].Row = int32(s.RowDims(st, lp.dims.N))
		}
	}
	if n := st.Slices(); n > 1 {
		task.Slices = int32(n)
	}
	if a := lp.attention; a != nil {
		task.Products, task.Positions, task.Keys, task.Slots, task.QuerySlots = int32(a.tiles.Products),
			int32(a.tiles.Positions), int32(a.tiles.Keys), int32(a.Slots(a.tiles)), int32(a.QuerySlots(a.tiles))
		task.Pieces, task.ScoreSlots, task.InTurn = int32(max(1, a.tiles.Pieces)),
			int32(a.ScoreSlots(a.tiles)), a.tiles.InTurn
	}
	t.places(s, st, &task)
	t.p.Tasks = append(t.p.Tasks, task)
	t.tasks[st] = int32(len(t.p.Tasks))
	return t.tasks[st]
}

var levels = [...]isa.Level{schedule.L1: isa.L1, schedule.LLB: isa.LLB, schedule.DDR: isa.DDR}

// places says of a step's values where they are kept, and where they pass through the L1.
func (t *tables) places(s *schedule.Schedule, st *schedule.Step, task *isa.Task) {
	keep := func(o *isa.Operand, v *schedule.Value) {
		o.Level = levels[v.Level]
		if v.Level != schedule.DDR {
			o.Address = v.Address
		}
	}
	written := map[int]*isa.Operand{}
	for i := range st.Reads {
		keep(&task.Reads[i], &s.Values[st.Reads[i].Value])
	}
	for i := range st.Params {
		task.Reads[len(st.Reads)+i].Level = isa.DDR
	}
	for i, w := range st.Writes {
		keep(&task.Writes[i], &s.Values[w])
		written[w] = &task.Writes[i]
	}
	at := st.StageAddress
	for _, part := range s.Staged(st) {
		n := st.Space(part)
		switch {
		case part.From >= 0:
			for i := part.From; i < part.To; i++ {
				task.Reads[i].Stage, task.Reads[i].StageBytes = at, n
			}
		case part.To >= 0:
			written[part.To].Stage, written[part.To].StageBytes = at, n
		}
		at += n
	}
}
