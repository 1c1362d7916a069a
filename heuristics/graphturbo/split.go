package graphturbo

import (
	"cmp"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// SplitOptions are the inputs of Algorithm 1 beside the sub-graph.
type SplitOptions struct {
	LBBytes int64 // of the whole cluster, for activations
	Cores   int64
	InPlace bool
	// Divisors lets Eq. (1) compare factors that divide the output, too, where the text
	// asks this of intermediates only (line 10).
	Divisors bool
	// Uneven says which extents a factor need not divide.
	Uneven schedule.Uneven
	// The simple cost model against recomputation: a split whose instances compute
	// parts of intermediates twice is refused if another dimension needs none of
	// that, or if it takes longer than the traffic with the GB that keeping the
	// intermediates in the LB saves.
	MACsPerSecond      float64 // of one cluster
	VectorOpsPerSecond float64
	GBBytesPerSecond   float64
}

// Splitter runs Algorithm 1 on sub-graphs of one graph.
type Splitter struct {
	g   *model.Graph
	opt SplitOptions
}

// NewSplitter prepares Algorithm 1 for a graph.
func NewSplitter(g *model.Graph, opt SplitOptions) *Splitter { return &Splitter{g, opt} }

// SplitInfo is Algorithm 1: for each loop dimension of the output, the smallest
// factor with which an instance fits the LB, and how many operators it splits. What
// Eq. (1) compares is f_d as lines 4 to 10 have it: ceil(peak/v) fits, and v divides the
// intermediates. The factor itself divides the output, too.
//
// Readings: an output without intermediates emits a tuple too; the factor
// divides the extent; candidates are the powers of two up to the cores, then
// every integer; n_d counts the operators that dimension d does split, as the
// text defines it. Where the pseudo-code compares ceil(peak/v) with the LB, this
// compares the footprint of an instance, which is the same when all tensors
// match and larger when some do not (they are computed whole) or have halos.
func (s *Splitter) SplitInfo(ops []model.OpID, outputs []model.TensorID) ([]schedule.SplitInfo, int64) {
	g := s.g
	popt := schedule.PeakOptions{InPlace: s.opt.InPlace}
	whole := schedule.InstanceRegions(g, ops, outputs, -1, 1, 0)
	peak := schedule.Peak(g, ops, outputs, whole, popt)
	var infos, recomputing []schedule.SplitInfo
	out := g.Tensor(outputs[0])
	if len(out.Layout) == 0 && peak <= s.opt.LBBytes {
		infos = append(infos, schedule.SplitInfo{Ops: len(ops), Factor: 1, Dim: -1}) // a scalar has no loop
	}
	for depth, d := range out.Layout {
		var tr schedule.Tracker
		tracked := false
		for _, v := range s.Candidates(out.Shape[d]) {
			if (peak+v-1)/v > s.opt.LBBytes {
				continue
			}
			if v == 1 {
				// Nothing is cut: any dimension will do, and all operators count.
				infos = append(infos, schedule.SplitInfo{Ops: len(ops), Factor: 1, Dim: d, Depth: depth})
				break
			}
			if !tracked {
				tr = schedule.Track(g, ops, outputs, d)
				tracked = true
			}
			if !tr.Splittable {
				break
			}
			if !s.divides(tr, ops, outputs, v, s.opt.Uneven == schedule.UnevenNone) {
				continue
			}
			if !(tr.Exact && s.aligned(tr, v)) && !s.instancesFit(ops, outputs, d, v, popt) {
				continue
			}
			if tr.Recomputes && !s.worthRecomputing(ops, outputs, d, v) {
				break // a larger factor computes even more twice
			}
			info := schedule.SplitInfo{Ops: len(ops) - tr.Unmatched, Factor: v, Least: s.least(tr, ops, outputs, peak, v), Dim: d, Depth: depth}
			if tr.Recomputes {
				recomputing = append(recomputing, info)
			} else {
				infos = append(infos, info)
			}
			break
		}
	}
	if len(infos) == 0 {
		infos = recomputing
	}
	return infos, peak
}

// least is f_d by lines 4 to 10 of Algorithm 1, at most the factor that divides the output as well.
func (s *Splitter) least(tr schedule.Tracker, ops []model.OpID, outputs []model.TensorID, peak, factor int64) int64 {
	if s.opt.Divisors {
		return factor
	}
	every := roundUp(s.opt.Cores)
	for v := (peak + s.opt.LBBytes - 1) / s.opt.LBBytes; v < factor; v++ {
		if v >= every || v&(v-1) == 0 {
			if s.divides(tr, ops, outputs, v, false) {
				return v
			}
		}
	}
	return factor
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
// in v along dimension d of their outputs: what Algorithm 1 compares with the LB.
func (s *Splitter) Footprint(ops []model.OpID, outputs []model.TensorID, d int, v int64) int64 {
	most := int64(0)
	for _, q := range largest(v) {
		most = max(most, s.instanceBytes(ops, outputs, d, v, q, schedule.PeakOptions{InPlace: s.opt.InPlace}))
	}
	return most
}

// Candidates lists the factors that Algorithm 1 tries for a dimension, ascending.
func (s *Splitter) Candidates(extent int64) []int64 {
	return Factors(extent, s.opt.Cores, s.opt.Uneven != schedule.UnevenNone)
}

// Factors lists the candidates for v in the order that Algorithm 1 tries them: those
// that divide the extent or, with uneven, that cut it into so many pieces.
func Factors(extent, cores int64, uneven bool) []int64 {
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

// divides is line 10: the factor divides the matched extent of every intermediate and,
// if asked, of every output.
func (s *Splitter) divides(tr schedule.Tracker, ops []model.OpID, outputs []model.TensorID, v int64, outputsToo bool) bool {
	if s.opt.Uneven == schedule.UnevenAll {
		return true
	}
	for _, id := range ops {
		for _, o := range s.g.Op(id).Outputs {
			if !outputsToo && slices.Contains(outputs, o) {
				continue
			}
			if k, ok := tr.Dim[o]; ok && k >= 0 && s.g.Tensor(o).Shape[k]%v != 0 {
				return false
			}
		}
	}
	return true
}

// aligned reports whether the factor divides the matched extent of everything read,
// too: else a cut may lie within a block of elements that is read by both sides.
func (s *Splitter) aligned(tr schedule.Tracker, v int64) bool {
	for t, k := range tr.Dim {
		if k >= 0 && s.g.Tensor(t).Shape[k]%v != 0 {
			return false
		}
	}
	return true
}

// largest are the instances of which one takes the most: inner ones have halos on
// both sides, so a middle one, the likeliest, stands for all but the ends.
func largest(v int64) []int64 { return slices.Compact([]int64{v / 2, v - 1, 0}) }

func (s *Splitter) instanceBytes(ops []model.OpID, outputs []model.TensorID, d int, v, q int64, popt schedule.PeakOptions) int64 {
	return schedule.Peak(s.g, ops, outputs, schedule.InstanceRegions(s.g, ops, outputs, d, v, q), popt)
}

// instancesFit reports whether the largest instance fits.
func (s *Splitter) instancesFit(ops []model.OpID, outputs []model.TensorID, d int, v int64, popt schedule.PeakOptions) bool {
	for _, q := range largest(v) {
		if s.instanceBytes(ops, outputs, d, v, q, popt) > s.opt.LBBytes {
			return false
		}
	}
	return true
}

func (s *Splitter) worthRecomputing(ops []model.OpID, outputs []model.TensorID, d int, v int64) bool {
	g := s.g
	var once, split model.Work
	intermediates := int64(0)
	isOutput := map[model.TensorID]bool{}
	for _, o := range outputs {
		isOutput[o] = true
	}
	for _, id := range ops {
		op := g.Op(id)
		w := g.Work(op, nil)
		once.MACs += w.MACs
		once.Vector = once.Vector.Add(w.Vector)
		if o := op.Outputs[0]; !isOutput[o] && op.Class() != model.ViewClass {
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
	saved := 2 * float64(intermediates) / s.opt.GBBytesPerSecond
	return extra <= saved
}

// Best is Eq. (1): the lexicographic maximum of (n_d, -f_d, -d). Without any
// element the sub-graph can't be split to fit.
func Best(infos []schedule.SplitInfo) schedule.SplitInfo {
	best := schedule.SplitInfo{Factor: schedule.Unsplittable, Dim: -1}
	for i, c := range infos {
		if i == 0 || cmp.Or(cmp.Compare(c.Ops, best.Ops), cmp.Compare(best.Compared(), c.Compared()), cmp.Compare(best.Depth, c.Depth)) > 0 {
			best = c
		}
	}
	return best
}
