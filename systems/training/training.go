// Package training derives from a network what one training step computes: the network itself, a loss for each output
// (where outputs are choices, as by ArgMax, for what they are made of), the gradient of each tensor that depends on
// learned parameters, and the update of each parameter.
//
// # Gradients
//
// With dY the gradient of an operator's output, the operator gives
//
//	products       Conv, ConvTranspose, MatMul, Gemm: for each factor that needs it a
//	               product of dY with the other factor, of as many multiply-accumulates
//	               as the operator; for a bias the sum of dY
//	Add, Sub       dY itself; summed where the input was broadcast
//	element-wise   dY times the derivative: the operator's own work and one
//	               multiplication for each element
//	BatchNorm      one pass for input, scale and shift together, twice the operator's work
//	reductions     pools, softmax, normalisations, means: the operator's work again
//	moves          the way back; Gather and its like add up what has gone several ways;
//	               a change of shape alone costs nothing
//
// A tensor with several readers adds up their gradients. Nothing flows to integers, to what depends on no learned
// parameter, or through operators without a derivative (comparisons, ArgMax and its like).
//
// An update is stochastic gradient descent with momentum: it reads weight, gradient and
// momentum and writes weight and momentum. The loss is a softmax with cross-entropy.
//
// Memory-bound gradients are counted by bytes read and written; caches, recomputation
// and fusion are not in the model. [Step] gives a step in operators, for who fuses them.
package training

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A Pass is a part of a training step.
type Pass uint8

// The passes, in order.
const (
	Forward Pass = iota
	Backward
	Update
)

// A Node is an operator of the step. It writes one tensor, or for forward operators with several outputs all of them.
type Node struct {
	Name string
	// Kind is the forward operator's kind, or for others one of "Loss", "LossGrad", the forward kind with "GradInput",
	// "GradWeight" or "GradBias", "GradSum" for what adds up gradients, and "Update".
	Kind string
	Pass Pass
	// Of is the forward operator that it belongs to: itself, that whose gradient it
	// is, or for an update the first reader of the parameter; NoOp for the loss.
	Of    model.OpID
	Shape model.Shape // of what it writes
	// MACs and Vector are its work.
	MACs                    int64
	Vector                  model.VectorWork
	InputBytes, OutputBytes int64
	After                   []int // nodes whose results it reads, ascending
}

// A Graph is a training step, in topological order.
type Graph struct {
	Name  string
	Nodes []Node
	// Gradient is for each tensor of the network the node that completes its gradient, -1 where there is none.
	Gradient []int
}

// flat are kinds without a derivative, beside those whose outputs are no floats.
var flat = map[model.Kind]bool{"ArgMax": true, "ArgMin": true, "Floor": true, "Ceil": true, "Round": true, "Sign": true,
	"Shape": true, "NonZero": true}

// Derive makes the training step of a network. A network without learned parameters is an error.
func Derive(net *model.Graph) (*Graph, error) {
	d := &deriver{net: net, g: &Graph{Name: net.Name}}
	d.forward()
	if !slices.Contains(d.needs, true) {
		return nil, fmt.Errorf("%s: found no learned parameter, expected one to train", net.Name)
	}
	parts := make([][]int, len(net.Tensors))
	for _, out := range d.ends() {
		parts[out] = append(parts[out], d.loss(out))
	}
	d.g.Gradient = slices.Repeat([]int{-1}, len(net.Tensors))
	for k := len(net.Ops) - 1; k >= 0; k-- {
		op := net.Ops[k]
		var dY []int
		for _, out := range op.Outputs {
			if g := d.sum(out, parts[out]); g >= 0 {
				dY = append(dY, g)
			}
		}
		if len(dY) > 0 && !flat[op.Kind] {
			d.backward(op, dY, parts)
		}
	}
	for _, t := range net.Tensors {
		if g := d.sum(t.ID, parts[t.ID]); t.Role == model.Constant && t.Learned && g >= 0 {
			d.add(Node{Name: t.Name + ".update", Kind: "Update", Pass: Update, Of: t.Consumers[0], Shape: t.Shape,
				Vector:     model.VectorWork{Simple: 4 * t.Shape.Elements()},
				InputBytes: 3 * t.Bytes(), OutputBytes: 2 * t.Bytes(), After: []int{g}})
		}
	}
	return d.g, nil
}

type deriver struct {
	net      *model.Graph
	g        *Graph
	needs    []bool // tensors that gradients flow to
	producer []int  // nodes
}

func (d *deriver) add(n Node) int {
	slices.Sort(n.After)
	n.After = slices.Compact(n.After)
	d.g.Nodes = append(d.g.Nodes, n)
	return len(d.g.Nodes) - 1
}

// reads lists the nodes that write some tensors, and their bytes.
func (d *deriver) reads(tensors ...model.TensorID) (after []int, bytes int64) {
	for _, id := range tensors {
		bytes += d.net.Tensor(id).Bytes()
		if d.producer[id] >= 0 {
			after = append(after, d.producer[id])
		}
	}
	return after, bytes
}

// forward copies the network and finds what needs gradients.
func (d *deriver) forward() {
	d.needs, d.producer = make([]bool, len(d.net.Tensors)), make([]int, len(d.net.Tensors))
	for i, t := range d.net.Tensors {
		d.producer[i] = -1
		d.needs[i] = t.Role == model.Constant && t.Learned && t.DType.IsFloat() && len(t.Consumers) > 0
	}
	for _, op := range d.net.Ops {
		after, in := d.reads(op.Inputs...)
		work := d.net.Work(op, nil)
		n := Node{Name: op.Name, Kind: string(op.Kind), Of: op.ID, MACs: work.MACs, Vector: work.Vector,
			InputBytes: in, After: after}
		flows := slices.ContainsFunc(op.Inputs, func(id model.TensorID) bool { return d.needs[id] }) && !flat[op.Kind]
		for k, out := range op.Outputs {
			t := d.net.Tensor(out)
			if k == 0 {
				n.Shape = t.Shape
			}
			n.OutputBytes += t.Bytes()
			d.needs[out] = flows && t.DType.IsFloat()
		}
		id := d.add(n)
		for _, out := range op.Outputs {
			d.producer[out] = id
		}
	}
}

// ends are the tensors that have a loss: outputs, or where none depends on a parameter
// in a way that has a derivative, what the last operators without one read.
func (d *deriver) ends() (ends []model.TensorID) {
	for _, out := range d.net.Outputs {
		if d.needs[out] && d.producer[out] >= 0 {
			ends = append(ends, out)
		}
	}
	if ends != nil {
		return ends
	}
	for _, t := range d.net.Tensors {
		if d.needs[t.ID] && d.producer[t.ID] >= 0 && len(t.Consumers) > 0 &&
			!slices.ContainsFunc(t.Consumers, func(op model.OpID) bool {
				return slices.ContainsFunc(d.net.Op(op).Outputs, func(out model.TensorID) bool { return d.needs[out] })
			}) {
			ends = append(ends, t.ID)
		}
	}
	return ends
}

// loss adds the loss of a tensor and its gradient.
func (d *deriver) loss(out model.TensorID) int {
	t := d.net.Tensor(out)
	n := t.Shape.Elements()
	loss := d.add(Node{Name: t.Name + ".loss", Kind: "Loss", Of: model.NoOp, Shape: model.Shape{1},
		Vector:     model.VectorWork{Simple: n, Special: n},
		InputBytes: 2 * t.Bytes(), OutputBytes: t.DType.Bytes(1), After: []int{d.producer[out]}})
	return d.add(Node{Name: t.Name + ".loss.grad", Kind: "LossGrad", Pass: Backward, Of: model.NoOp, Shape: t.Shape,
		Vector:     model.VectorWork{Simple: n},
		InputBytes: 2 * t.Bytes(), OutputBytes: t.Bytes(), After: []int{d.producer[out], loss}})
}

// sum completes the gradient of a tensor from its parts; -1 if it has none.
func (d *deriver) sum(id model.TensorID, parts []int) int {
	if d.g.Gradient[id] >= 0 || len(parts) == 0 {
		return d.g.Gradient[id]
	}
	at := parts[0]
	if n := int64(len(parts)); n > 1 {
		t := d.net.Tensor(id)
		of := t.Producer
		if of == model.NoOp {
			of = t.Consumers[0]
		}
		at = d.add(Node{Name: t.Name + ".grad", Kind: "GradSum", Pass: Backward, Of: of, Shape: t.Shape,
			Vector:     model.VectorWork{Simple: (n - 1) * t.Shape.Elements()},
			InputBytes: n * t.Bytes(), OutputBytes: t.Bytes(), After: slices.Clone(parts)})
	}
	d.g.Gradient[id] = at
	return at
}

// backward adds the gradients of an operator's inputs, each to the parts of its tensor.
func (d *deriver) backward(op *model.Op, dY []int, parts [][]int) {
	net := d.net
	work := net.Work(op, nil)
	out := net.Tensor(op.Outputs[0])
	outBytes, outElements := int64(0), int64(0)
	for _, id := range op.Outputs {
		outBytes += net.Tensor(id).Bytes()
		outElements += net.Tensor(id).Shape.Elements()
	}
	// part adds a gradient of input k that reads dY and other tensors.
	part := func(k int, suffix string, macs int64, vector model.VectorWork, others ...model.TensorID) {
		t := net.Tensor(op.Inputs[k])
		after, in := d.reads(others...)
		parts[t.ID] = append(parts[t.ID],
			d.add(Node{Name: op.Name + "." + suffix, Kind: string(op.Kind) + suffix, Pass: Backward, Of: op.ID, Shape: t.Shape,
				MACs: macs, Vector: vector, InputBytes: in + outBytes, OutputBytes: t.Bytes(), After: append(after, dY...)}))
	}
	simple := func(n int64) model.VectorWork { return model.VectorWork{Simple: n} }
	for k, id := range op.Inputs {
		if !d.needs[id] || slices.Contains(op.Inputs[:k], id) && op.Kind != "Add" && op.Kind != "Mul" {
			continue
		}
		t := net.Tensor(id)
		reduce := int64(0) // additions where the input was broadcast
		if t.Shape.Elements() < out.Shape.Elements() {
			reduce = out.Shape.Elements() - t.Shape.Elements()
		}
		switch class := op.Class(); {
		case class == model.MatrixClass && k < 2:
			suffix := "GradInput"
			if k == 1 {
				suffix = "GradWeight"
			}
			macs, vector := work.MACs, model.VectorWork{}
			if macs == 0 { // depthwise: on the lanes
				vector = work.Vector
			}
			part(k, suffix, macs, vector, op.Inputs[1-k])
		case class == model.MatrixClass:
			part(k, "GradBias", 0, simple(reduce))
		case op.Kind == "BatchNorm":
			if k == 0 {
				twice := work.Vector
				part(k, "GradInput", 0, twice.Add(twice), id, op.Inputs[1])
			} else {
				part(k, "GradWeight", 0, simple(reduce), op.Inputs[0])
			}
		case op.Kind == "Add" || op.Kind == "Sub":
			if reduce == 0 && op.Kind == "Add" && len(dY) == 1 {
				parts[id] = append(parts[id], dY[0]) // itself
				continue
			}
			n := reduce
			if op.Kind == "Sub" && k == 1 {
				n += out.Shape.Elements()
			}
			part(k, "GradInput", 0, simple(n))
		case class == model.ElementwiseClass:
			v := work.Vector.Add(simple(outElements + reduce))
			part(k, "GradInput", 0, v, op.Inputs...)
		case class == model.ReductionClass:
			if k == 0 {
				part(k, "GradInput", 0, work.Vector, id)
			} else {
				part(k, "GradWeight", 0, simple(reduce), op.Inputs[0])
			}
		case class == model.ViewClass && len(dY) == 1:
			parts[id] = append(parts[id], dY[0])
		default: // moves
			v := model.VectorWork{Move: min(outElements, t.Shape.Elements())}
			if op.Kind == "Gather" {
				v = simple(outElements)
			}
			part(k, "GradInput", 0, v)
		}
	}
}
