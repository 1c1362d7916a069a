package simplify

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Scan is the operators around running sums: all that are joined by tensors as large as the sums, which are
// element-wise, running sums along the same axis, or sums over other axes at the end.
type Scan struct {
	Ops     []model.OpID
	Inputs  []model.TensorID // activations from outside
	Outputs []model.TensorID // results of the sums over other axes
	Axis    int              // of all large tensors
	Length  int64            // along it
}

// TakeApart makes operators that need all of a long axis at once several that do not, in a copy of a graph: group
// normalisations that the caller asks for, see splitNorm, and scans. A scan is cut along its axis into as many parts as
// the caller says: each has its elements of the inputs, and what the running sums of the part before it have come to; 1
// leaves it as it is. Graph.Together has the parts, so that no large tensor between their operators is ever a value.
func TakeApart(g *model.Graph, split func(norm *model.Op) bool, parts func(*Scan) int64) (*model.Graph, error) {
	e := newEditor(g)
	var made [][]*model.Op
	for i := range len(e.g.Ops) {
		op := e.g.Ops[i] // without scale and bias it would be less work in passes than at once
		if op.Kind == "GroupNorm" && len(op.Inputs) == 3 && len(e.g.Tensors[op.Inputs[0]].Shape) > 2 && split(op) {
			made = append(made, e.splitNorm(op))
		}
	}
	seen := map[model.OpID]bool{}
	for i := range len(e.g.Ops) {
		if e.g.Ops[i].Kind != "CumSum" || seen[model.OpID(i)] {
			continue
		}
		s := e.scan(e.g.Ops[i])
		if s == nil {
			continue
		}
		for _, id := range s.Ops {
			seen[id] = true
		}
		n := min(parts(s), s.Length)
		if n <= 1 {
			var ops []*model.Op
			for _, id := range s.Ops {
				ops = append(ops, e.g.Ops[id])
			}
			made = append(made, ops)
			continue
		}
		made = append(made, e.cutScan(s, n)...)
	}
	if len(made) == 0 {
		return e.g, nil
	}
	g, err := e.finished("parts")
	if err != nil {
		return nil, err
	}
	g.Together = make([][]model.OpID, len(made))
	for i, ops := range made {
		for _, op := range ops {
			g.Together[i] = append(g.Together[i], op.ID)
		}
		slices.Sort(g.Together[i])
	}
	return g, nil
}

// scan grows the scan that a running sum is of; nil: something else reads a large tensor, or makes one.
func (e *editor) scan(sum *model.Op) *Scan {
	g := e.g
	shape, axis := g.Tensors[sum.Outputs[0]].Shape, sum.Attr.Axis
	large := func(t model.TensorID) bool {
		return g.Tensors[t].Role == model.Activation && g.Tensors[t].Shape.Equal(shape)
	}
	s := &Scan{Axis: int(axis), Length: shape[axis]}
	inside, inputs := map[model.OpID]bool{sum.ID: true}, map[model.TensorID]bool{}
	for todo := []*model.Op{sum}; len(todo) > 0; todo = todo[1:] {
		op := todo[0]
		add := func(id model.OpID) {
			if !inside[id] {
				inside[id] = true
				todo = append(todo, g.Ops[id])
			}
		}
		reduces := op.Kind == "ReduceSum" && !slices.Contains(op.Attr.Axes, axis)
		switch {
		case e.dead[op.ID] || len(op.Outputs) != 1:
			return nil
		case op.Kind == "CumSum" && op.Attr.Axis != axis:
			return nil
		case op.Kind != "CumSum" && op.Class() != model.ElementwiseClass && !reduces:
			return nil
		}
		s.Ops = append(s.Ops, op.ID)
		for _, in := range op.Inputs {
			switch t := g.Tensors[in]; {
			case large(in) && t.Producer != model.NoOp:
				add(t.Producer)
			case t.Role != model.Constant:
				inputs[in] = true
			}
		}
		if out := op.Outputs[0]; !reduces {
			if e.isOutput[out] || !large(out) {
				return nil
			}
			for _, id := range g.Tensors[out].Consumers {
				add(id)
			}
		} else {
			s.Outputs = append(s.Outputs, out)
		}
	}
	slices.Sort(s.Ops)
	slices.Sort(s.Outputs)
	for in := range inputs {
		s.Inputs = append(s.Inputs, in)
	}
	slices.Sort(s.Inputs)
	if len(s.Outputs) != 1 {
		return nil
	}
	return s
}

// cutScan puts n parts in the place of a scan.
func (e *editor) cutScan(s *Scan, n int64) (parts [][]*model.Op) {
	g := e.g
	out := g.Tensors[s.Outputs[0]]
	large := g.Tensors[g.Ops[out.Producer].Inputs[0]].Shape
	carry := map[model.OpID]model.TensorID{}
	var whole []model.TensorID
	for k := range n {
		lo, hi := s.Length*k/n, s.Length*(k+1)/n
		label := func(name string) string { return fmt.Sprintf("%s.part%d", name, k) }
		first := len(g.Ops)
		slice := func(t model.TensorID, name string, at int, lo, hi int64) model.TensorID {
			x := g.Tensors[t]
			attr := model.SliceOf(x.Shape, at, lo, hi)
			return e.put("Slice", name, &attr, e.result(name, attr.Shape, x.DType), t)
		}
		of := map[model.TensorID]model.TensorID{} // tensors of this part
		// The result first: it is spread over the cores, and the others follow.
		part := func(t *model.Tensor, shape model.Shape) {
			shape = shape.Clone()
			shape[s.Axis] = hi - lo
			of[t.ID] = e.result(label(t.Name), shape, t.DType)
		}
		kept := *g.Ops[out.Producer].Attr
		kept.KeepDims = true
		small := large.Clone()
		for _, a := range kept.Axes {
			small[a] = 1
		}
		part(out, small)
		for _, id := range s.Ops {
			op := g.Ops[id]
			y := op.Outputs[0]
			if y != out.ID {
				part(g.Tensors[y], large)
			}
			in := slices.Clone(op.Inputs)
			for i, t := range in {
				x := g.Tensors[t]
				at := s.Axis - (len(large) - len(x.Shape))
				if own, ok := of[t]; ok {
					in[i] = own
				} else if at >= 0 && x.Shape[at] > 1 {
					of[t] = slice(t, label(x.Name), at, lo, hi)
					in[i] = of[t]
				}
			}
			attr := op.Attr
			if y == out.ID {
				attr = &kept
			}
			if op.Kind != "CumSum" {
				e.put(op.Kind, label(op.Name), attr, of[y], in...)
				continue
			}
			if k > 0 {
				t := g.Tensors[of[y]]
				local := e.put(op.Kind, label(op.Name), attr, e.result(t.Name+".local", t.Shape, t.DType), in...)
				e.put("Add", label(op.Name)+".carry", &model.Attr{}, of[y], local, carry[id])
			} else {
				e.put(op.Kind, label(op.Name), attr, of[y], in...)
			}
			if k < n-1 {
				carry[id] = slice(of[y], label(op.Name)+".end", s.Axis, hi-lo-1, hi-lo)
			}
		}
		parts, whole = append(parts, slices.Clone(g.Ops[first:])), append(whole, of[out.ID])
	}
	for _, id := range s.Ops {
		e.dead[id] = true
	}
	shape := g.Tensors[whole[0]].Shape.Clone()
	shape[s.Axis] = s.Length
	all := e.put("Concat", out.Name+".parts", &model.Attr{Axis: int64(s.Axis)},
		e.result(out.Name+".parts", shape, out.DType), whole...)
	e.put("Reshape", out.Name+".whole", &model.Attr{Shape: out.Shape.Clone()}, out.ID, all)
	return parts
}
