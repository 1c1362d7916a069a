package schedule

import (
	"slices"
	"sync"

	"github.com/dsasched/dsasched/model"
)

// PeakOptions are the rules by which a footprint is counted.
type PeakOptions struct {
	// InPlace lets an element-wise operator write over its first activation that ends there and has the same size.
	InPlace bool
	// Layers counts nothing for tensors inside a layer ([Layers]), which exist tile by tile only (§4.1).
	Layers bool
}

// Peak is the largest number of bytes in use while the operators, or the layers, run in order: external inputs from the
// start until their last use, live intermediates, and the outputs until the end.
func Peak(g *model.Graph, ops []model.OpID, outputs []model.TensorID, reg Regions, opt PeakOptions) int64 {
	f := NewFootprint(g, ops, outputs, opt)
	for i, t := range f.tensors {
		f.bytes[i] = g.Tensor(t).DType.Bytes(reg[t].Elements())
	}
	return f.peak()
}

// A Footprint finds the [Peak] of the instances of a sub-graph: the order in which tensors come and go is the same for
// all. It is not for several at a time.
type Footprint struct {
	g       *model.Graph
	ops     []model.OpID
	number  map[model.TensorID]int32 // nil: nobody asked for boxes by tensor
	tensors []model.TensorID         // by the numbers that the rest uses
	inputs  [][]int32                // of the operators; -1: a constant that no view has
	results [][]int32
	outputs []int32
	enters  []int32 // tensors that are there from the start
	steps   []comings
	boxes   []model.Region
	wanted  []bool // tensors that the instance needs
	need    model.Region
	bytes   []int64
}

// comings are the tensors that come and go in one step.
type comings struct {
	made []coming
	// A result without a reader leaves at once, the others after their last use.
	unread, ended []int32
}

// coming is a tensor that is made; over are those whose place it may take, the first that has its size.
type coming struct {
	tensor int32
	over   []int32
}

// places are one more than the numbers of tensors or operators, 0 of those outside a sub-graph: a list of all is
// cheaper than a map of some, if it serves one sub-graph after the other.
var places = sync.Pool{New: func() any { return new([]int32) }}

// numbered is a list of places of n.
func numbered(n int) *[]int32 {
	at := places.Get().(*[]int32)
	if len(*at) < n {
		*at = make([]int32, n)
	}
	return at
}

// NewFootprint prepares the operators of a sub-graph in execution order.
func NewFootprint(g *model.Graph, ops []model.OpID, outputs []model.TensorID, opt PeakOptions) *Footprint {
	f := &Footprint{g: g, ops: ops}
	at := numbered(len(g.Tensors))
	edges := 0
	for _, id := range ops {
		edges += len(g.Op(id).Inputs) + len(g.Op(id).Outputs)
	}
	f.tensors = make([]model.TensorID, 0, edges)
	// By tensor: the place of its producer, -1 if none of these, and its root. Reshapes move nothing: the bytes belong to
	// the tensor that they begin with, but not past the first operator.
	producer, root := make([]int32, 0, edges), make([]int32, 0, edges)
	dimensions, most := 0, 0
	of := func(t model.TensorID) int32 {
		if n := (*at)[t]; n > 0 {
			return n - 1
		}
		n := int32(len(f.tensors))
		(*at)[t] = n + 1
		f.tensors, producer, root = append(f.tensors, t), append(producer, -1), append(root, n)
		d := len(g.Tensor(t).Shape)
		dimensions, most = dimensions+d, max(most, d)
		return n
	}
	list, read := make([]int32, 0, edges), make([]int32, 0, edges)
	f.inputs, f.results = make([][]int32, len(ops)), make([][]int32, len(ops))
	reads := make([][]int32, len(ops)) // the roots of what an operator reads, constants aside
	class := make([]model.Class, len(ops))
	for i, id := range ops {
		op := g.Op(id)
		class[i] = op.Class()
		from, first := len(list), len(read)
		for _, t := range op.Inputs {
			constant := g.Tensor(t).Role == model.Constant
			if constant && class[i] != model.ViewClass {
				list = append(list, -1)
				continue
			}
			n := of(t)
			if list = append(list, n); !constant {
				read = append(read, root[n])
			}
		}
		f.inputs[i], reads[i], from = list[from:len(list):len(list)], read[first:len(read):len(read)], len(list)
		for _, t := range op.Outputs {
			n := of(t)
			if producer[n] = int32(i); class[i] == model.ViewClass {
				root[n] = root[f.inputs[i][0]]
			}
			list = append(list, n)
		}
		f.results[i] = list[from:len(list):len(list)]
	}
	for _, t := range outputs {
		f.outputs = append(f.outputs, of(t))
	}
	slab := make(model.Region, dimensions+most)
	f.boxes, f.wanted, f.bytes = make([]model.Region, len(f.tensors)), make([]bool, len(f.tensors)),
		make([]int64, len(f.tensors))
	for i, t := range f.tensors {
		d := len(g.Tensor(t).Shape)
		f.boxes[i], slab = slab[:d:d], slab[d:]
	}
	f.need = slab
	for _, t := range f.tensors {
		(*at)[t] = 0
	}
	places.Put(at)
	step, steps := layerSteps(g, ops, class, opt.Layers)
	f.order(producer, root, reads, class, step, steps, opt)
	return f
}

// order finds what comes and goes in the steps.
func (f *Footprint) order(producer, root []int32, reads [][]int32, class []model.Class, step []int, steps int,
	opt PeakOptions) {
	const never = -1
	last := slices.Repeat([]int{never}, len(f.tensors)) // step of the last use
	entered, freed := make([]bool, len(f.tensors)), make([]bool, len(f.tensors))
	for i, list := range reads {
		for _, in := range list {
			last[in] = max(last[in], step[i])
			if producer[in] < 0 && !entered[in] {
				entered[in] = true
				f.enters = append(f.enters, in)
			}
		}
	}
	for _, o := range f.outputs {
		last[root[o]] = steps
	}
	passing := func(t int32) bool { // made and read for the last time in one step
		return opt.Layers && last[t] != never && producer[t] >= 0 && step[producer[t]] == last[t]
	}
	f.steps = make([]comings, steps)
	for i, list := range reads {
		c := &f.steps[step[i]]
		for _, o := range f.results[i] {
			if class[i] != model.ViewClass && !passing(o) {
				m := coming{tensor: o}
				for _, in := range list {
					if opt.InPlace && class[i] == model.ElementwiseClass && last[in] == step[i] && !passing(in) {
						m.over = append(m.over, in)
					}
				}
				c.made = append(c.made, m)
			}
			if class[i] != model.ViewClass && last[o] == never {
				c.unread = append(c.unread, o)
			}
		}
		for _, in := range list {
			if last[in] == step[i] && !freed[in] && !passing(in) {
				freed[in] = true
				c.ended = append(c.ended, in)
			}
		}
	}
}

// Instance is the peak of instance q of factor along dimension dim of the outputs (dim < 0: of everything).
func (f *Footprint) Instance(dim int, factor, q int64) int64 {
	f.fill(dim, factor, q)
	for i, t := range f.tensors {
		f.bytes[i] = 0
		if f.wanted[i] {
			f.bytes[i] = f.g.Tensor(t).DType.Bytes(f.boxes[i].Elements())
		}
	}
	return f.peak()
}

// Entering has the bytes that are there from the start of the instance of which the peak was last asked.
func (f *Footprint) Entering() map[model.TensorID]int64 {
	each := make(map[model.TensorID]int64, len(f.enters))
	for _, t := range f.enters {
		each[f.tensors[t]] = f.bytes[t]
	}
	return each
}

// Boxes gives the boxes of an instance's activations, nil of others, until f is asked for something else.
func (f *Footprint) Boxes(dim int, factor, q int64) func(model.TensorID) model.Region {
	f.fill(dim, factor, q)
	if f.number == nil {
		f.number = make(map[model.TensorID]int32, len(f.tensors))
		for n, t := range f.tensors {
			f.number[t] = int32(n)
		}
	}
	return func(t model.TensorID) model.Region {
		if n, there := f.number[t]; there && f.wanted[n] {
			return f.boxes[n]
		}
		return nil
	}
}

// Apart reports whether instances q and q + 1 write nothing in common.
func (f *Footprint) Apart(dim int, factor, q int64) bool {
	f.fill(dim, factor, q)
	made := make([]model.Region, len(f.outputs))
	for k, o := range f.outputs {
		made[k] = f.boxes[o].Clone()
	}
	f.fill(dim, factor, q+1)
	for k, o := range f.outputs {
		if made[k].Overlap(f.boxes[o]) > 0 {
			return false
		}
	}
	return true
}

// fill finds the boxes of an instance, as [InstanceRegions] does.
func (f *Footprint) fill(dim int, factor, q int64) {
	clear(f.wanted)
	for _, o := range f.outputs {
		box := f.boxes[o]
		for d, n := range f.g.Tensor(f.tensors[o]).Shape {
			box[d] = model.Interval{Hi: n}
		}
		if dim >= 0 {
			box[dim] = box[dim].Piece(q, factor)
		}
		f.wanted[o] = true
	}
	for i := len(f.ops) - 1; i >= 0; i-- {
		op := f.g.Op(f.ops[i])
		for out, o := range f.results[i] {
			if !f.wanted[o] || f.boxes[o].Elements() == 0 {
				continue
			}
			for k, in := range f.inputs[i] {
				if in < 0 {
					continue
				}
				need := f.need[:len(f.boxes[in])]
				clear(need)
				f.g.FillInputRegion(need, op, out, k, f.boxes[o])
				if f.wanted[in] {
					f.boxes[in].Include(need)
				} else {
					f.wanted[in] = true
					copy(f.boxes[in], need)
				}
			}
		}
	}
}

// peak is that for the bytes of the tensors.
func (f *Footprint) peak() int64 {
	live := int64(0)
	for _, t := range f.enters {
		live += f.bytes[t]
	}
	peak := live
	for k := range f.steps {
		c := &f.steps[k]
		overwritten := int32(-1)
		for _, m := range c.made {
			if overwritten < 0 {
				for _, t := range m.over {
					if f.bytes[t] == f.bytes[m.tensor] {
						overwritten = t
						break
					}
				}
				if overwritten >= 0 {
					continue
				}
			}
			live += f.bytes[m.tensor]
			peak = max(peak, live)
		}
		for _, t := range c.ended {
			if t != overwritten {
				live -= f.bytes[t]
			}
		}
		for _, t := range c.unread {
			live -= f.bytes[t]
		}
	}
	return peak
}
