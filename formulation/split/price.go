package split

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// pricer turns a group with a way to split it into seconds, as the package's section on costs has it.
type pricer struct {
	g      *model.Graph
	spec   *hardware.Spec
	m      *cost.Model
	cores  int64
	grid   []int64
	l1     int64 // bytes of all cores of a cluster
	peak   schedule.PeakOptions
	uneven schedule.Uneven
	// keep is the number of bytes of weights that stay from instance to instance.
	keep      int64
	layers    []schedule.Layer // one per atom
	forbidden [][]bool         // dimensions of each atom's main output
	times     map[string]float64
}

func newPricer(g *model.Graph, spec *hardware.Spec, m *cost.Model, layers []schedule.Layer,
	opts NetworkOptions) *pricer {
	p := &pricer{g: g, spec: spec, m: m, cores: schedule.CoresWithL1(spec), grid: schedule.Grid(spec),
		peak: schedule.PeakOptions{InPlace: opts.InPlace}, uneven: opts.Uneven, layers: layers, times: map[string]float64{}}
	p.l1 = schedule.DataBytes(spec) * p.cores
	p.keep = schedule.WeightsStay.HomeBytes(spec) * p.cores
	if spec.LLB != nil {
		p.keep = int64(spec.LLB.SizeBytes) / 2
	}
	for k := range layers {
		p.forbidden = append(p.forbidden, schedule.Forbidden(g, layers[k].Ops, layers[k].Outputs[0]))
	}
	return p
}

// prices are the seconds that layers, or boxes of their results, take on a cluster by the package's costs.
type prices struct{ p *pricer }

// NewPrices is for layers of a graph.
func NewPrices(g *model.Graph, spec *hardware.Spec, layers []schedule.Layer, opts NetworkOptions) (*prices, error) {
	m, err := cost.NewWith(spec, opts.Cost)
	if err != nil {
		return nil, err
	}
	return &prices{newPricer(g, spec, m, layers, opts)}, nil
}

// Layer is the time of a layer for the boxes of its results that reg has, with its parameters
// on their way from the LLB to the cores; from the DDR that is the caller's to add.
func (p *prices) Layer(layer int, reg schedule.Regions) float64 {
	return p.p.layer(layer, func(t model.TensorID) model.Region { return reg[t] },
		func() schedule.Regions { return reg }, false)
}

// A part is a group of atoms with what it reads and leaves behind.
type part struct {
	atoms           []int
	ops             []model.OpID
	inputs, outputs []model.TensorID
	footprint       *schedule.Footprint
}

func (p *pricer) part(atoms []int, ops []model.OpID) *part {
	q := &part{atoms: atoms, ops: ops}
	q.inputs, q.outputs = schedule.Boundary(p.g, ops)
	q.footprint = schedule.NewFootprint(p.g, ops, q.outputs, p.peak)
	return q
}

// instances of a split that stand for all: both ends and last the middle, with how many they stand for.
func instances(factor int64) (index, times []int64) {
	switch factor {
	case 1:
		return []int64{0}, []int64{1}
	case 2:
		return []int64{0, 1}, []int64{1, 1}
	}
	return []int64{0, factor - 1, factor / 2}, []int64{1, 1, factor - 2}
}

// moreFactors is the number of candidate factors beyond the smallest that fits.
const moreFactors = 2

// splits lists the candidates for splitting a group: for each dimension of its output the smallest factors with which
// all instances fit the L1. Without any, an atom is not split; other groups then are none.
func (p *pricer) splits(q *part) []schedule.SplitInfo {
	g := p.g
	whole := q.footprint.Instance(-1, 1, 0)
	out := g.Tensor(q.outputs[0])
	var list []schedule.SplitInfo
	if whole <= p.l1 {
		info := schedule.SplitInfo{Ops: len(q.ops), Factor: 1, Dim: -1}
		if len(out.Layout) > 0 {
			info.Dim = out.Layout[0]
		}
		list = append(list, info)
	}
	for depth, d := range out.Layout {
		if out.Shape[d] == 1 {
			continue
		}
		tr := schedule.Track(g, q.ops, q.outputs, d)
		if !tr.Splittable {
			continue
		}
		found := 0
		for v := int64(2); v <= out.Shape[d] && found <= moreFactors; v++ {
			if model.Pieces(out.Shape[d], v) != v || v < p.cores && v&(v-1) != 0 || (whole+v-1)/v > p.l1 ||
				!p.divides(tr, q, v) {
				continue
			}
			if found == 0 && !p.fits(q, d, v) {
				continue
			}
			if info := (schedule.SplitInfo{Ops: len(q.ops) - tr.Unmatched, Factor: v, Dim: d, Depth: depth}); p.apart(q, info) {
				list = append(list, info)
				found++
			}
		}
	}
	if len(list) == 0 && len(q.atoms) == 1 {
		list = append(list, schedule.SplitInfo{Factor: schedule.Unsplittable, Dim: -1})
	}
	return list
}

// apart reports whether no two instances write the same: a result that the group itself
// reads with a halo may be one that others read, too.
func (p *pricer) apart(q *part, info schedule.SplitInfo) bool {
	if len(q.outputs) < 2 || info.Factor < 2 {
		return true
	}
	for _, i := range []int64{0, info.Factor/2 - 1, info.Factor - 2} {
		if !q.footprint.Apart(info.Dim, info.Factor, i) {
			return false
		}
	}
	return true
}

// divides is line 10 of Algorithm 1: the factor divides the matched extent of every
// intermediate, and, if no piece may be uneven, of every output.
func (p *pricer) divides(tr schedule.Tracker, q *part, v int64) bool {
	if p.uneven.Slices() != schedule.SlicesAlike {
		return true
	}
	for _, id := range q.ops {
		for _, o := range p.g.Op(id).Outputs {
			if p.uneven == schedule.UnevenOutputs && slices.Contains(q.outputs, o) {
				continue
			}
			if k, ok := tr.Dim[o]; ok && k >= 0 && p.g.Tensor(o).Shape[k]%v != 0 {
				return false
			}
		}
	}
	return true
}

func (p *pricer) fits(q *part, dim int, factor int64) bool {
	index, _ := instances(factor)
	for _, i := range index {
		if q.footprint.Instance(dim, factor, i) > p.l1 {
			return false
		}
	}
	return true
}

// seconds is the cost of a group that is split as info says, or something from limit on if it is that much.
func (p *pricer) seconds(q *part, info schedule.SplitInfo, limit float64) float64 {
	sg := schedule.SubGraph{Split: info}
	index, times := instances(sg.Factor())
	again := p.weights(q) > p.keep // from the DDR for each instance
	sum := 0.0
	for k := len(index) - 1; k >= 0; k-- {
		if sum >= limit {
			return sum
		}
		i := index[k]
		sum += float64(times[k]) * p.instance(q, sg.SplitDim(), sg.Factor(), i, again)
	}
	if info.Factor == schedule.Unsplittable {
		// What the L1 can't hold goes out and comes back.
		sum += p.pass(2 * max(0, q.footprint.Instance(-1, 1, 0)-p.l1))
	}
	return sum
}

// weights is the size of a group's constants.
func (p *pricer) weights(q *part) int64 {
	n := int64(0)
	for _, a := range q.atoms {
		for _, t := range p.layers[a].Constants {
			n += p.g.Tensor(t).Bytes()
		}
	}
	return n
}

// instance is the time of instance i of factor along a dimension: launch, layers, and boundaries.
func (p *pricer) instance(q *part, dim int, factor, i int64, again bool) float64 {
	g := p.g
	box := q.footprint.Boxes(dim, factor, i)
	whole := sync.OnceValue(func() schedule.Regions {
		return schedule.InstanceRegions(g, q.ops, q.outputs, dim, factor, i)
	})
	sum := p.spec.LaunchSeconds
	for _, a := range q.atoms {
		sum += p.layer(a, box, whole, again)
	}
	boundary := func(list []model.TensorID, written bool) {
		for _, t := range list {
			tensor := g.Tensor(t)
			n := tensor.DType.Bytes(box(t).Elements())
			tooLarge := p.spec.LLB != nil && tensor.Bytes() > int64(p.spec.LLB.SizeBytes)
			if tooLarge || written && g.IsOutput(t) || tensor.Producer == model.NoOp {
				sum += p.outside(n)
			} else {
				sum += p.pass(n)
			}
		}
	}
	boundary(q.inputs, false)
	boundary(q.outputs, true)
	return sum
}

// layer is the time of an atom: its units or its parameters, whichever is longer. It
// is a matter of the boxes of its outputs, which many groups have in common; whole has those of constants, too.
func (p *pricer) layer(a int, box func(model.TensorID) model.Region, whole func() schedule.Regions,
	again bool) float64 {
	what := binary.AppendUvarint(nil, uint64(a))
	what = strconv.AppendBool(what, again)
	for _, t := range p.layers[a].Outputs {
		for _, v := range box(t) {
			what = binary.AppendUvarint(binary.AppendUvarint(what, uint64(v.Lo)), uint64(v.Hi))
		}
		what = append(what, 0)
	}
	t, known := p.times[string(what)]
	if !known {
		t = p.priceLayer(a, whole(), again)
		p.times[string(what)] = t
	}
	return t
}

func (p *pricer) priceLayer(a int, reg schedule.Regions, again bool) float64 {
	g, layer := p.g, &p.layers[a]
	out := layer.Outputs[0]
	for _, t := range layer.Outputs {
		if reg[t].Elements() > 0 {
			out = t
			break
		}
	}
	r := reg[out]
	if r.Elements() == 0 {
		return 0 // the instance does not need it
	}
	var forbidden []bool
	if out == layer.Outputs[0] {
		forbidden = p.forbidden[a]
	} else {
		forbidden = schedule.Forbidden(g, layer.Ops, out)
	}
	b := schedule.GridBinding(r, g.Tensor(out).Layout, forbidden, p.grid, p.uneven.Slices())
	core := schedule.Regions{out: schedule.Slice(r, b, g.Tensor(out).Layout, 0)}
	for _, t := range layer.Outputs {
		if t == out || reg[t].Elements() == 0 {
			continue
		}
		other := schedule.GridBinding(reg[t], g.Tensor(t).Layout, nil, p.grid, p.uneven.Slices())
		core[t] = schedule.Slice(reg[t], other, g.Tensor(t).Layout, 0)
	}
	schedule.BackPropagate(g, layer.Ops, core)
	busy := p.m.LayerCycles(cost.Layer{Graph: g, Ops: layer.Ops, Anchor: layer.Anchor, Boxes: core,
		Output: out, Cores: b.Cores()})
	load := 0.0
	for _, t := range layer.Constants {
		size := g.Tensor(t).DType.Bytes
		one, _ := schedule.ConstantElements(g, layer.Ops, t, core)
		all, _ := schedule.ConstantElements(g, layer.Ops, t, reg)
		one, all = size(one), size(all)
		if !p.spec.CoreLink.Broadcast {
			all = one * b.Cores()
		}
		load += p.move(all, one, again)
	}
	return math.Max(float64(p.m.Picoseconds(busy))*1e-12, load)
}

// move is the time for parameters to come to the cores: all bytes together, one of the busiest core.
func (p *pricer) move(all, one int64, again bool) float64 {
	t := 0.0
	if p.spec.LLB != nil {
		t = float64(all) / p.spec.LLB.BandwidthBytesPerSecond
	}
	if again {
		t = math.Max(t, p.outside(all))
	}
	if link := p.spec.CoreLink.BandwidthBytesPerSecond; link > 0 {
		t = math.Max(t, float64(one)/link)
	}
	return t
}

// pass is the time for data of one cluster between L1 and LLB, or between L1 and DDR without an LLB.
func (p *pricer) pass(bytes int64) float64 {
	if p.spec.LLB == nil {
		return p.outside(bytes)
	}
	return float64(bytes) / p.spec.LLB.BandwidthBytesPerSecond
}

// outside is the time for data between one cluster and the DDR.
func (p *pricer) outside(bytes int64) float64 {
	return float64(bytes) / (p.spec.DDR.BandwidthBytesPerSecond / float64(p.spec.Clusters))
}
