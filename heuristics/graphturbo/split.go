package graphturbo

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Splitter runs Algorithm 1 on sub-graphs of one graph.
type Splitter struct {
	g          *model.Graph
	opt        schedule.SplitOptions
	peak       schedule.PeakOptions
	candidates map[int64][]int64  // by extent
	classes    []int              // of the graph's operators; nil: nobody asked yet
	fit, worth map[instances]bool // whether they fit, and worthRecomputing, as far as they were asked
}

// NewSplitter prepares Algorithm 1 for a graph.
func NewSplitter(g *model.Graph, opt schedule.SplitOptions) *Splitter {
	return &Splitter{g: g, opt: opt, peak: opt.Peak(), candidates: map[int64][]int64{},
		fit: map[instances]bool{}, worth: map[instances]bool{}}
}

// SplitInfo is Algorithm 1: for each loop dimension of the output, the smallest factor with which an instance fits the
// L1, and how many operators it splits. What Eq. (1) compares is f_d as lines 4 to 10 have it: ceil(peak/v) fits, and v
// divides the intermediates. The factor itself divides the output, too.
//
// Readings: an output without intermediates emits a tuple too; the factor divides the extent; candidates are the powers
// of two up to the cores, then every integer; n_d counts the operators that dimension d does split, as the text defines
// it. Where the pseudo-code compares ceil(peak/v) with the L1, this compares the footprint of an instance, which is the
// same when all tensors match and larger when some do not (they are computed whole) or have halos.
func (s *Splitter) SplitInfo(ops []model.OpID, outputs []model.TensorID) ([]schedule.SplitInfo, int64) {
	return s.infos(&listed{s.g, ops, outputs, s.peak})
}

func (s *Splitter) infos(x part) ([]schedule.SplitInfo, int64) {
	peak := x.footprint()
	var infos, recomputing []schedule.SplitInfo
	var name *[sha256.Size]byte // nil: nobody asked yet
	var footprint *schedule.Footprint
	of := func(dim int, v int64) instances {
		if name == nil {
			name = s.name(x.operators(), x.results())
		}
		return instances{*name, dim, v}
	}
	out := s.g.Tensor(x.results()[0])
	if len(out.Layout) == 0 && peak <= s.opt.L1Bytes {
		infos = append(infos, schedule.SplitInfo{Ops: x.size(), Factor: 1, Dim: -1}) // a scalar has no loop
	}
	for depth, d := range out.Layout {
		var c *cut
		for _, v := range s.Candidates(out.Shape[d]) {
			if (peak+v-1)/v > s.opt.L1Bytes {
				continue
			}
			if v == 1 {
				// Nothing is cut: any dimension will do, and all operators count.
				infos = append(infos, schedule.SplitInfo{Ops: x.size(), Factor: 1, Dim: d, Depth: depth})
				break
			}
			if c == nil {
				c = x.follow(d)
			}
			if !c.splittable {
				break
			}
			if !s.divides(c, v, s.opt.Uneven == schedule.UnevenNone) {
				continue
			}
			if !(c.adds() && c.aligned(v)) && !recall(s.fit, of(d, v), func() bool {
				if footprint == nil {
					footprint = schedule.NewFootprint(s.g, x.operators(), x.results(), s.peak)
				}
				return largest(footprint, d, v, s.opt.L1Bytes) <= s.opt.L1Bytes
			}) {
				continue
			}
			if c.recomputes && !recall(s.worth, of(d, v), func() bool {
				return s.worthRecomputing(x.operators(), x.results(), d, v)
			}) {
				break // a larger factor computes even more twice
			}
			info := schedule.SplitInfo{Ops: x.size() - c.unmatched, Factor: v, Least: s.least(c, peak, v), Dim: d, Depth: depth}
			if c.recomputes {
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

// instances are those of operators that are split in v along a dimension.
type instances struct {
	ops [sha256.Size]byte
	dim int
	v   int64
}

// recall is what was found of instances, or is now.
func recall(known map[instances]bool, key instances, find func() bool) bool {
	x, there := known[key]
	if !there {
		x = find()
		known[key] = x
	}
	return x
}

// name is equal for operators that do the same and have the same order: networks repeat themselves, and what
// instances take is found once for equal blocks.
func (s *Splitter) name(ops []model.OpID, outputs []model.TensorID) *[sha256.Size]byte {
	if s.classes == nil {
		s.classes = schedule.Classes(s.g)
	}
	b := schedule.AppendPattern(binary.AppendUvarint(nil, uint64(len(ops))), s.g, ops, s.classes)
	for _, id := range ops { // layers prefer the later of two operands
		b = binary.AppendVarint(b, int64(id-ops[0]))
	}
	for _, t := range outputs {
		b = binary.AppendVarint(b, int64(s.g.Tensor(t).Producer-ops[0]))
		b = binary.AppendUvarint(b, uint64(slices.Index(s.g.Op(s.g.Tensor(t).Producer).Outputs, t)))
	}
	name := sha256.Sum256(b)
	return &name
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
	return s.opt.Uneven == schedule.UnevenAll || c.divides(v, outputsToo)
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
	return largest(schedule.NewFootprint(s.g, ops, outputs, s.peak), d, v, math.MaxInt64)
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
