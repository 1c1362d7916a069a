package schedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Binding is the number of cores that each dimension of a tensor is spread over. Nil means not bound yet.
type Binding []int64

// Cores is the product of the factors: the cores that work.
func (b Binding) Cores() int64 {
	n := int64(1)
	for _, f := range b {
		n *= f
	}
	return n
}

// At is the binding of some dimensions, in their order.
func (b Binding) At(dims []int) Binding {
	part := make(Binding, len(dims))
	for i, d := range dims {
		part[i] = b[d]
	}
	return part
}

// Equal reports whether both bind alike.
func (b Binding) Equal(o Binding) bool { return slices.Equal(b, o) }

// One binds a tensor of this rank to a single core.
func One(rank int) Binding { return slices.Repeat(Binding{1}, rank) }

// Busy is the number of cores that the binding of a box keeps busy: all elements over those of the busiest core, to the
// nearest whole number. If all slices are alike it is [Binding.Cores].
func (b Binding) Busy(r model.Region) int64 {
	all, busiest := int64(1), int64(1)
	for d, f := range b {
		all *= r[d].Len()
		busiest *= r[d].Piece(0, f).Len()
	}
	if busiest == 0 {
		return b.Cores()
	}
	return (2*all + busiest) / (2 * busiest)
}

// GridBinding gives cores to the dimensions from the outermost inward, to each the largest power of two that is left
// and divides its extent. Dimensions with forbidden[d] get none. r is the box to spread. In a grid of several, loops
// are mapped to its dimensions one after the other (paper §3.6): the first takes loops from the outermost inward, the
// next from the innermost outward, and so on in turn, each of those that no other has taken; so that a product's rows
// lie along one and its columns along another. Beside the powers of two, a loop may take the whole of a dimension.
//
// Unless slices are alike, a power of two need not divide: of all bindings it is that which keeps most cores busy, and
// of these that with most on the outermost dimension, then on the next. So 197 rows of 768 columns on 8 cores are cut
// into 7 pieces of 25 rows and one of 22 (7.88 cores), since rows need less of each other than columns; but of 7 rows
// it is the columns, since 7 pieces of one row keep 7 cores busy. By divisors three images on six cores are cut in 3
// times 2.
func GridBinding(r model.Region, layout []int, forbidden []bool, grid []int64, how Slices) Binding {
	b := One(len(r))
	for k, cores := range grid {
		order := slices.Clone(layout)
		if k%2 == 1 {
			slices.Reverse(order)
		}
		if how != SlicesAlike {
			b.spread(r, order, forbidden, cores, how, len(grid) > 1)
			continue
		}
		left := cores
		for _, d := range order {
			if b[d] > 1 || d < len(forbidden) && forbidden[d] {
				continue
			}
			f := left
			if len(grid) == 1 || r[d].Len()%f != 0 {
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

// spread binds the loops of a box that have no cores yet, in this order; with whole, all
// cores that are left may go to one of them beside the powers of two.
func (b Binding) spread(r model.Region, order []int, forbidden []bool, cores int64, how Slices, whole bool) {
	now, best := slices.Clone(b), slices.Clone(b)
	most := int64(0)
	var extend func(i int, left int64)
	extend = func(i int, left int64) {
		if i == len(order) {
			if busy := now.Busy(r); busy > most {
				most = busy
				copy(best, now)
			}
			return
		}
		d := order[i]
		if b[d] > 1 || d < len(forbidden) && forbidden[d] {
			extend(i+1, left)
			return
		}
		for n := left; n > 0; n-- {
			pieces := model.Pieces(r[d].Len(), n)
			if n&(n-1) != 0 && (left%n != 0 || how != SlicesByDivisors && !(whole && n == left)) ||
				n > 1 && model.Pieces(r[d].Len(), n/2) == pieces {
				continue
			}
			now[d] = pieces
			extend(i+1, left/n)
			now[d] = b[d]
		}
	}
	extend(0, cores)
	copy(b, best)
}

// Slice is the box of core (0-based) under a binding: cores count through the dimensions in layout order, the outermost
// slowest. Cores beyond the binding's product get nothing (nil).
func Slice(r model.Region, b Binding, layout []int, core int64) model.Region {
	if r == nil || core >= b.Cores() {
		return nil
	}
	return sliceInto(make(model.Region, len(r)), r, b, layout, core)
}

// sliceInto is Slice in the given memory.
func sliceInto(s, r model.Region, b Binding, layout []int, core int64) model.Region {
	if core >= b.Cores() {
		return nil
	}
	copy(s, r)
	for i := len(layout) - 1; i >= 0; i-- {
		d := layout[i]
		f := b[d]
		if f == 1 {
			continue
		}
		s[d] = r[d].Piece(core%f, f)
		core /= f
	}
	return s
}

// CheckBinding verifies the rank, that each factor leaves something of its extent for
// every core, and that no more than cores are used.
func CheckBinding(r model.Region, b Binding, forbidden []bool, cores int64) error {
	if len(b) != len(r) {
		return fmt.Errorf("binding %v for %d dimensions", b, len(r))
	}
	for d, f := range b {
		if f < 1 || model.Pieces(r[d].Len(), f) != f {
			return fmt.Errorf(
				"binding %v: extent %d of dimension %d is not cut into %d pieces, of which the last is the shortest",
				b, r[d].Len(), d, f)
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

// cuts reports whether an extent can be cut into so many pieces, all alike or not.
func cuts(extent, pieces int64, how Slices) bool {
	return extent%pieces == 0 || how != SlicesAlike && model.Pieces(extent, pieces) == pieces
}

// Follows reports whether a tensor (box r) can be spread like another one.
func (b Binding) Follows(r model.Region, forbidden []bool, cores int64, how Slices) bool {
	for d, f := range b {
		if d < len(r) && !cuts(r[d].Len(), f, how) {
			return false
		}
	}
	return CheckBinding(r, b, forbidden, cores) == nil
}

// Inference carries the bindings of a sub-graph's output back to its other tensors: infer_binding of Algorithm 4.
type Inference struct {
	trackers []Tracker // per output dimension
}

// NewInference tracks every dimension of the sub-graph's first output.
func NewInference(g *model.Graph, sg *SubGraph) *Inference {
	inf := &Inference{}
	for d := range g.Tensor(sg.Outputs[0]).Shape {
		inf.trackers = append(inf.trackers, Track(g, sg.Ops, sg.Outputs, d))
	}
	return inf
}

// Infer returns the binding of tensor t (box r) that matches binding out of the sub-graph's output: each factor moves
// to the dimension that its own dimension matches, if that extent is divisible or, where slices differ, has so many
// pieces. It is nil (empty) if no dimension matches.
func (inf *Inference) Infer(out Binding, t model.TensorID, r model.Region, how Slices) Binding {
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
		if b[k] == 1 && cuts(r[k].Len(), f, how) {
			b[k] = f
		}
	}
	if !any {
		return nil
	}
	return b
}

// Bindings lists the bindings of a box that use at least half of the cores, or the most that can.
func Bindings(r model.Region, cores int64, how Slices) []Binding {
	var list []Binding
	var fill func(b Binding, left int64)
	fill = func(b Binding, left int64) {
		if len(b) == len(r) {
			list = append(list, slices.Clone(b))
			return
		}
		for f := int64(1); f <= left; f++ {
			if n := r[len(b)].Len(); left%f == 0 && cuts(n, f, how) {
				fill(append(b, f), left/f)
			}
		}
	}
	fill(nil, cores)
	most := int64(1)
	for _, b := range list {
		most = max(most, b.Cores())
	}
	return slices.DeleteFunc(list, func(b Binding) bool { return 2*b.Cores() < most })
}

// SpreadOver divides some dimensions of a box over at most so many cores, so that the largest
// part has the fewest elements; of equal ones, that with most on the first dimensions.
func SpreadOver(cores Binding, box model.Region, dims []int, n int64) {
	best, now := int64(math.MaxInt64), make([]int64, len(dims))
	var try func(i int, left, part int64)
	try = func(i int, left, part int64) {
		if part >= best {
			return
		}
		if i == len(dims) {
			best = part
			for k, d := range dims {
				cores[d] = now[k]
			}
			return
		}
		extent := box[dims[i]].Len()
		for f := min(left, extent); f >= 1; f-- {
			if now[i] = model.Pieces(extent, f); now[i] == f {
				try(i+1, left/f, part*((extent+f-1)/f))
			}
		}
	}
	try(0, n, 1)
}

// BindingsOf returns the candidate bindings of a layer on cores of a kind, of which an instance computes a box of the
// result.
func BindingsOf(s *Schedule, kind int, layer *Layer, out model.TensorID, region model.Region) []Binding {
	cores, forbidden := CoresWithL1(s.Spec.Kind(kind)), Forbidden(s.Graph, layer.Ops, out)
	return slices.DeleteFunc(Bindings(region, cores, s.Slices), func(b Binding) bool {
		return CheckBinding(region, b, forbidden, cores) != nil
	})
}
