package graphturbo

import (
	"cmp"
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Splitter runs Algorithm 1 on sub-graphs of one graph.
type Splitter struct {
	g          *model.Graph
	opt        schedule.SplitOptions
	candidates map[int64][]int64 // by extent
}

// NewSplitter prepares Algorithm 1 for a graph.
func NewSplitter(g *model.Graph, opt schedule.SplitOptions) *Splitter {
	return &Splitter{g: g, opt: opt, candidates: map[int64][]int64{}}
}

// SplitInfo is Algorithm 1: for each loop dimension of the output, the smallest factor with which an instance fits the
// L1, and how many operators it splits. What Eq. (1) compares is f_d as lines 4 to 10 have it: ceil(peak/v) fits, and v
// divides the intermediates. The factor itself divides the output, too.
//
// Readings: an output without intermediates emits a tuple too; the factor divides the extent; candidates are the powers
// of two up to the cores, then every integer; n_d counts the operators that dimension d does split, as the text defines
// it. Where the pseudo-code compares ceil(peak/v) with the L1, this compares the footprint of an instance, which is the
// same when all tensors match and larger when some do not (they are computed whole) or have halos.
func (s *Splitter) SplitInfo(ops []model.OpID, outputs []model.TensorID) (infos []schedule.SplitInfo, peak int64) {
	a := s.ask(&listed{s.g, ops, outputs, s.opt.Peak()})
	for _, f := range a.dims {
		if info, ok := a.at(f); ok {
			infos = append(infos, info)
		}
	}
	return infos, a.peak
}

// asked is the state of Algorithm 1 on a sub-graph. Each dimension is evaluated on demand.
type asked struct {
	*Splitter
	part
	peak        int64 // or an upper bound that fits
	dims        []*along
	best        schedule.SplitInfo
	recomputing bool // no dimension can be cut without computing anything twice
}

// along is a dimension that may be cut; nil: nothing is, and the info is complete.
type along struct {
	*cut
	info      schedule.SplitInfo
	known, ok bool // whether it was asked for, and whether it has a factor
}

// ask finds the best factor. Dimensions that split fewer operators are not looked at for it.
func (s *Splitter) ask(x part) *asked {
	a := &asked{Splitter: s, part: x, peak: x.footprint()}
	out := s.g.Tensor(x.results()[0])
	if len(out.Layout) == 0 && a.fits(1) {
		a.dims = []*along{{info: schedule.SplitInfo{Ops: x.size(), Factor: 1, Dim: -1}}} // a scalar has no loop
	}
	for depth, d := range out.Layout {
		list := s.Candidates(out.Shape[d])
		if len(list) == 0 || !a.fits(list[len(list)-1]) {
			continue
		}
		// If nothing is cut, any dimension will do, and all operators count.
		f := &along{info: schedule.SplitInfo{Ops: x.size(), Factor: 1, Dim: d, Depth: depth}}
		if !a.fits(1) {
			if f.cut = x.follow(d); !f.splittable {
				continue
			}
			f.info.Ops -= f.unmatched
		}
		a.dims = append(a.dims, f)
	}
	order := slices.Clone(a.dims)
	slices.SortStableFunc(order, func(f, g *along) int { return g.info.Ops - f.info.Ops })
	for _, a.recomputing = range []bool{false, true} {
		a.best = Best(nil)
		for _, f := range order {
			if f.info.Ops < a.best.Ops {
				break
			}
			if info, ok := a.at(f); ok {
				a.best = Best([]schedule.SplitInfo{info, a.best})
			}
		}
		if a.best.Factor != schedule.Unsplittable {
			break
		}
	}
	return a
}

// fits reports whether a piece of v may fit.
func (a *asked) fits(v int64) bool { return (a.peak+v-1)/v <= a.opt.L1Bytes }

// at is the smallest factor along a dimension with which an instance fits.
func (a *asked) at(f *along) (info schedule.SplitInfo, ok bool) {
	if f.cut == nil || f.known || f.recomputes != a.recomputing {
		return f.info, f.cut == nil || f.ok
	}
	f.known = true
	var footprint *schedule.Footprint
	for _, v := range a.Candidates(a.g.Tensor(a.results()[0]).Shape[f.info.Dim]) {
		if !a.fits(v) || !a.divides(f.cut, v, a.opt.Uneven == schedule.UnevenNone) {
			continue
		}
		if !f.adds() || !f.aligned(v) {
			if footprint == nil {
				footprint = schedule.NewFootprint(a.g, a.operators(), a.results(), a.opt.Peak())
			}
			if largest(footprint, f.info.Dim, v, a.opt.L1Bytes) > a.opt.L1Bytes {
				continue
			}
		}
		f.info.Factor, f.info.Least = v, a.least(f.cut, a.peak, v)
		// A larger factor computes even more twice.
		f.ok = !f.recomputes || a.worthRecomputing(a.operators(), a.results(), f.info.Dim, v)
		break
	}
	return f.info, f.ok
}

// least is f_d by lines 4 to 10 of Algorithm 1, at most the factor that divides the output as well.
func (s *Splitter) least(c *cut, peak, factor int64) int64 {
	if s.opt.Divisors {
		return factor
	}
	every := roundUp(s.opt.Cores)
	for v := (peak + s.opt.L1Bytes - 1) / s.opt.L1Bytes; v < factor; v++ {
		if v >= every || v&(v-1) == 0 {
			if s.divides(c, v, false) {
				return v
			}
		}
	}
	return factor
}

// divides is line 10: the factor divides the matched extent of every intermediate and, if asked, of every output.
func (s *Splitter) divides(c *cut, v int64, outputsToo bool) bool {
	return s.opt.Uneven.Slices() != schedule.SlicesAlike || c.divides(v, outputsToo)
}

// roundUp is the power of two from which on every integer is a candidate for v.
func roundUp(cores int64) int64 {
	n := int64(1)
	for n < cores {
		n *= 2
	}
	return n
}

// Footprint is the bytes that the largest instance takes if the operators are split
// in v along dimension d of their outputs: what Algorithm 1 compares with the L1.
func (s *Splitter) Footprint(ops []model.OpID, outputs []model.TensorID, d int, v int64) int64 {
	return largest(schedule.NewFootprint(s.g, ops, outputs, s.opt.Peak()), d, v, math.MaxInt64)
}

// Candidates lists the factors that Algorithm 1 tries for a dimension, ascending.
func (s *Splitter) Candidates(extent int64) []int64 {
	list, ok := s.candidates[extent]
	if !ok {
		list = factors(extent, s.opt.Cores, s.opt.Uneven != schedule.UnevenNone)
		s.candidates[extent] = list
	}
	return list
}

// factors lists the candidates for v in the order that Algorithm 1 tries them: those
// that divide the extent or, with uneven, that cut it into so many pieces.
func factors(extent, cores int64, uneven bool) []int64 {
	every := roundUp(cores)
	var low, high []int64
	add := func(v int64) {
		if v >= every || v&(v-1) == 0 {
			if v*v <= extent {
				low = append(low, v)
			} else {
				high = append(high, v)
			}
		}
	}
	// In pairs, of a number and a size of pieces: extents may be large.
	for v := int64(1); v*v <= extent; v++ {
		if extent%v == 0 || uneven && model.Pieces(extent, v) == v {
			add(v)
		}
		if other := (extent + v - 1) / v; other*other > extent && (extent%v == 0 || uneven) {
			add(other)
		}
	}
	slices.Reverse(high)
	return slices.Compact(append(low, high...))
}

// largest is the footprint of the largest instance, or one above the limit. Inner ones have halos on both sides, so a
// middle one, the likeliest, stands for all but the ends.
func largest(f *schedule.Footprint, d int, v, limit int64) (most int64) {
	for _, q := range slices.Compact([]int64{v / 2, v - 1, 0}) {
		if most = max(most, f.Instance(d, v, q)); most > limit {
			break
		}
	}
	return most
}

func (s *Splitter) worthRecomputing(ops []model.OpID, outputs []model.TensorID, d int, v int64) bool {
	g := s.g
	var once, split model.Work
	intermediates := int64(0)
	for _, id := range ops {
		op := g.Op(id)
		w := g.Work(op, nil)
		once.MACs += w.MACs
		once.Vector = once.Vector.Add(w.Vector)
		if o := op.Outputs[0]; !slices.Contains(outputs, o) && op.Class() != model.ViewClass {
			intermediates += g.Tensor(o).Bytes()
		}
	}
	for q := int64(0); q < v; q++ {
		reg := schedule.InstanceRegions(g, ops, outputs, d, v, q)
		for _, id := range ops {
			op := g.Op(id)
			for _, o := range op.Outputs {
				if r := reg[o]; r != nil {
					w := g.Work(op, r)
					split.MACs += w.MACs
					split.Vector = split.Vector.Add(w.Vector)
				}
			}
		}
	}
	extra := float64(split.MACs-once.MACs)/s.opt.MACsPerSecond +
		float64(split.Vector.Total()-once.Vector.Total())/s.opt.VectorOpsPerSecond
	saved := 2 * float64(intermediates) / s.opt.LLBBytesPerSecond
	return extra <= saved
}

// Best is Eq. (1): the lexicographic maximum of (n_d, -f_d, -d). Without any
// element the sub-graph can't be split to fit.
func Best(infos []schedule.SplitInfo) schedule.SplitInfo {
	best := schedule.SplitInfo{Factor: schedule.Unsplittable, Dim: -1}
	for i, c := range infos {
		if i == 0 || cmp.Or(cmp.Compare(c.Ops, best.Ops), cmp.Compare(best.Compared(), c.Compared()),
			cmp.Compare(best.Depth, c.Depth)) > 0 {
			best = c
		}
	}
	return best
}
