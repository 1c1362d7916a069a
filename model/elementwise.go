package model

// Expensive reports whether an element-wise operator takes special functions, so that
// computing it again for each reader costs more than keeping it.
func (g *Graph) Expensive(op *Op) bool {
	return op.Class() == ElementwiseClass && g.Work(op, nil).Vector.Special > 0
}

// OneToOne reports whether each element of t serves one element of what op makes of it, or one reduction.
func (g *Graph) OneToOne(op *Op, t TensorID) bool {
	class := op.Class()
	switch {
	case class == ViewClass:
		return true
	case class == MatrixClass, len(op.Outputs) != 1:
		return false
	}
	out := g.Tensor(op.Outputs[0]).Shape
	sequential := g.Sequential(op, 0)
	for k, in := range op.Inputs {
		if in != t {
			continue
		}
		covered := make([]bool, len(out))
		for d, a := range g.Access(op, 0, k) {
			switch {
			case g.Tensor(t).Shape[d] == 1:
			case a.Full && class == ReductionClass:
			case !a.Exact(), a.Den > a.Num: // all of it, a halo, an enlargement
				return false
			default:
				covered[a.Out] = true
			}
		}
		for d, n := range out {
			if n > 1 && !covered[d] && !(class == ReductionClass && sequential[d]) {
				return false // a broadcast
			}
		}
	}
	return true
}
