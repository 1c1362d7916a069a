package schedule

import (
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Layer is a run of operators that one fused loop nest executes: the anchor, a
// heavy operator if there is one, and the light operators behind it.
type Layer struct {
	Name   string
	Ops    []model.OpID
	Anchor model.OpID // convolution or matrix product if present, else the last
	// Inputs are the activations read from outside the layer, ascending.
	Inputs []model.TensorID
	// Outputs are the tensors read outside the layer, ascending; nearly always one.
	Outputs []model.TensorID
	// Constants are the weights and other parameters read, ascending.
	Constants []model.TensorID
}

// Layers partitions the operators ops (in execution order) into layers, in an order in which they can run. A light
// operator joins the layer of the latest of its producers whose result only it reads; this is the fusion rule of
// existing compilers, which the paper's definition of a layer sums up: operators in a straight line, at most one of
// them with a heavy loop nest.
func Layers(g *model.Graph, ops []model.OpID) []Layer {
	class := make([]model.Class, len(ops))
	for i, id := range ops {
		class[i] = g.Op(id).Class()
	}
	step, n := layerSteps(g, ops, class, true)
	lists, layers := make([][]model.OpID, n), make([]Layer, n)
	for i, id := range ops {
		lists[step[i]] = append(lists[step[i]], id)
	}
	for i, ids := range lists {
		layers[i] = NewLayer(g, ids)
	}
	return layers
}

// layerSteps gives each operator the number of its layer, of which there are n; without layers, its own. A layer runs
// where its last operator stands: everything it reads is there by then, and nothing outside reads its results before.
func layerSteps(g *model.Graph, ops []model.OpID, class []model.Class, layers bool) (step []int, n int) {
	at := numbered(len(g.Ops))
	place, step := *at, make([]int, len(ops))
	before, goesOn := make([]int, len(ops)), make([]bool, len(ops)) // places in a layer, and whether one follows
	for i, id := range ops {
		place[id], before[i] = int32(i)+1, -1
		if p := joined(g, g.Op(id), class[i], place); layers && p != model.NoOp {
			before[i] = int(place[p]) - 1
			goesOn[before[i]] = true
		}
	}
	for i, on := range goesOn {
		if !on {
			for k := i; k >= 0; k = before[k] {
				step[k] = n
			}
			n++
		}
	}
	for _, id := range ops {
		place[id] = 0
	}
	places.Put(at)
	return step, n
}

// joined is the producer, one of those with a place, whose layer an operator joins; NoOp: none. Nobody else reads its
// result, so it is the last of its layer. An operator with a gather or several sources moves data of its own.
func joined(g *model.Graph, op *model.Op, c model.Class, place []int32) model.OpID {
	best := model.NoOp
	if c != model.ElementwiseClass && c != model.InjectiveClass && c != model.ViewClass ||
		op.Kind == "Gather" || op.Kind == "Concat" || len(op.Outputs) != 1 {
		return best
	}
	for _, in := range op.Inputs {
		t := g.Tensor(in)
		if p := t.Producer; p > best && len(t.Consumers) == 1 && !g.IsOutput(in) && len(g.Op(p).Outputs) == 1 &&
			place[p] > 0 {
			best = p
		}
	}
	return best
}

// FusedLayers are Layers as TVM's fusion has them (T. Chen et al., OSDI 2018, §3): behind a convolution or matrix
// product ("complex-out-fusable") come element-wise operators alone. A transposition, and what follows it, is a layer
// of its own. A reshape moves nothing and stays.
func FusedLayers(g *model.Graph, ops []model.OpID) []Layer {
	var layers []Layer
	for _, l := range Layers(g, ops) {
		cut := len(l.Ops)
		if g.Op(l.Anchor).Class() == model.MatrixClass {
			for i, id := range l.Ops {
				if g.Op(id).Class() == model.InjectiveClass {
					cut = i
					break
				}
			}
		}
		layers = append(layers, NewLayer(g, l.Ops[:cut]))
		if cut < len(l.Ops) {
			layers = append(layers, NewLayer(g, l.Ops[cut:]))
		}
	}
	return layers
}

// NewLayer describes the layer that runs these operators, of which there is at least one, in this order.
func NewLayer(g *model.Graph, ids []model.OpID) Layer {
	l := Layer{Ops: ids, Anchor: ids[len(ids)-1]}
	for _, id := range ids {
		if g.Op(id).Class() == model.MatrixClass {
			l.Anchor = id
			break
		}
	}
	l.Name = g.Op(l.Anchor).Name
	l.Inputs, l.Outputs = Boundary(g, ids)
	for _, id := range ids {
		for _, t := range g.Op(id).Inputs {
			if g.Tensor(t).Role == model.Constant {
				l.Constants = append(l.Constants, t)
			}
		}
	}
	slices.Sort(l.Constants)
	l.Constants = slices.Compact(l.Constants)
	return l
}

// LayerOf is the layer that a step runs.
func LayerOf(s *Schedule, st *Step) *Layer {
	return &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
}
