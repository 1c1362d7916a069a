package schedule

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// Binding is the number of cores that each dimension of a tensor is spread over.
// Nil means not bound yet.
type Binding []int64

// Cores is the product of the factors: the cores that work.
func (b Binding) Cores() int64 {
	n := int64(1)
	for _, f := range b {
		n *= f
	}
	return n
}

// Equal reports whether both bind alike.
func (b Binding) Equal(o Binding) bool {
	if len(b) != len(o) {
		return false
	}
	for i := range b {
		if b[i] != o[i] {
			return false
		}
	}
	return true
}

// One binds a tensor of this rank to a single core.
func One(rank int) Binding {
	b := make(Binding, rank)
	for i := range b {
		b[i] = 1
	}
	return b
}

// PlainBinding gives cores to the dimensions from the outermost inward, to each
// the largest power of two that is left and divides its extent. Dimensions with
// forbidden[d] get none. r is the box to spread.
func PlainBinding(r model.Region, layout []int, forbidden []bool, cores int64) Binding {
	b := One(len(r))
	left := cores
	for _, d := range layout {
		if d < len(forbidden) && forbidden[d] {
			continue
		}
		f := int64(1)
		for f*2 <= left {
			f *= 2
		}
		for f > 1 && r[d].Len()%f != 0 {
			f /= 2
		}
		b[d] = f
		left /= f
	}
	return b
}

// GridBinding is PlainBinding for cores in a grid: loop dimensions are mapped to
// the dimensions of the grid one after the other (paper §3.6). The first dimension of
// the grid takes loops from the outermost inward, the next from the innermost
// outward, and so on in turn, each of those that no other has taken; so that a
// product's rows lie along one dimension and its columns along another. Beside the
// powers of two, a loop may take the whole of a dimension. In a grid of one
// dimension this is PlainBinding.
func GridBinding(r model.Region, layout []int, forbidden []bool, grid []int64) Binding {
	if len(grid) == 1 {
		return PlainBinding(r, layout, forbidden, grid[0])
	}
	b := One(len(r))
	for k, cores := range grid {
		left := cores
		for i := range layout {
			d := layout[i]
			if k%2 == 1 {
				d = layout[len(layout)-1-i]
			}
			if b[d] > 1 || d < len(forbidden) && forbidden[d] {
				continue
			}
			f := left
			if r[d].Len()%f != 0 {
				for f = 1; f*2 <= left; {
					f *= 2
				}
				for r[d].Len()%f != 0 {
					f /= 2
				}
			}
			b[d] = f
			left /= f
		}
	}
	return b
}

// Slice is the box of core (0-based) under a binding: cores count through the
// dimensions in layout order, the outermost slowest. Cores beyond the binding's
// product get nothing (nil).
func Slice(r model.Region, b Binding, layout []int, core int64) model.Region {
	if core >= b.Cores() {
		return nil
	}
	s := r.Clone()
	for i := len(layout) - 1; i >= 0; i-- {
		d := layout[i]
		f := b[d]
		if f == 1 {
			continue
		}
		k := core % f
		core /= f
		n := r[d].Len()
		s[d] = model.Interval{Lo: r[d].Lo + k*n/f, Hi: r[d].Lo + (k+1)*n/f}
	}
	return s
}

// CheckBinding verifies the rank, that each factor divides its extent, and that
// no more than cores are used.
func CheckBinding(r model.Region, b Binding, forbidden []bool, cores int64) error {
	if len(b) != len(r) {
		return fmt.Errorf("binding %v for %d dimensions", b, len(r))
	}
	for d, f := range b {
		if f < 1 || r[d].Len()%f != 0 {
			return fmt.Errorf("binding %v: %d does not divide extent %d of dimension %d", b, f, r[d].Len(), d)
		}
		if f > 1 && d < len(forbidden) && forbidden[d] {
			return fmt.Errorf("binding %v: dimension %d must not be bound", b, d)
		}
	}
	if b.Cores() > cores {
		return fmt.Errorf("binding %v uses %d of %d cores", b, b.Cores(), cores)
	}
	return nil
}

// Inference carries the bindings of a sub-graph's output back to its other
// tensors: infer_binding of Algorithm 4.
type Inference struct {
	trackers []Tracker // per output dimension
}

// NewInference tracks every dimension of the sub-graph's first output.
func NewInference(g *model.Graph, sg *SubGraph) *Inference {
	inf := &Inference{}
	for d := range g.Tensor(sg.Outputs[0]).Shape {
		tr := Track(g, sg.Ops, sg.Outputs, d)
		inf.trackers = append(inf.trackers, tr)
	}
	return inf
}

// Infer returns the binding of tensor t (box r) that matches binding out of the
// sub-graph's output: each factor moves to the dimension that its own dimension
// matches, if that extent is divisible. It is nil (empty) if no dimension
// matches.
func (inf *Inference) Infer(g *model.Graph, out Binding, t model.TensorID, r model.Region) Binding {
	b := One(len(r))
	any := false
	for d, f := range out {
		if d >= len(inf.trackers) {
			break
		}
		k, ok := inf.trackers[d].Dim[t]
		if !ok || k < 0 {
			continue
		}
		any = true
		if b[k] == 1 && r[k].Len()%f == 0 {
			b[k] = f
		}
	}
	if !any {
		return nil
	}
	return b
}
