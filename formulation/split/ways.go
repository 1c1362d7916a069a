package split

import (
	"math"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Way to split a group of atoms, with what it costs in the seconds of the problem.
type Way struct {
	Split   schedule.SplitInfo
	Seconds float64
}

// fewerFactors is the number of candidate factors too small for instances to fit the L1.
const fewerFactors = 2

// Ways lists ways to split atoms, ascending, that are to become one group: those that are candidates of the problem,
// and for each dimension some smaller factors, of which each instance passes what is too much through the LLB and back,
// or, of a single atom that reads too much, factors of which the results have room. Atoms that leave nothing behind
// have none.
func (n *Network) Ways(atoms []int) []Way {
	q := n.p.part(atoms, n.operators(atoms))
	if len(q.outputs) == 0 {
		return nil
	}
	g := n.g
	infos := n.p.splits(q)
	for i, info := range infos {
		if info.Factor == schedule.Unsplittable {
			infos[i].Factor, infos[i].Dim = 1, max(0, info.Dim)
		}
	}
	add := func(info schedule.SplitInfo) {
		same := func(x schedule.SplitInfo) bool {
			return x.Factor == info.Factor && (x.Factor == 1 || x.Dim == info.Dim)
		}
		if !slices.ContainsFunc(infos, same) {
			infos = append(infos, info)
		}
	}
	out := g.Tensor(q.outputs[0])
	for depth, d := range out.Layout {
		least := int64(math.MaxInt64) // that fits
		for _, x := range infos {
			if x.Dim == d && x.Factor > 1 {
				least = min(least, x.Factor)
			}
		}
		tr := schedule.Track(g, q.ops, q.outputs, d)
		if least == math.MaxInt64 {
			// What is read in full may never fit: then what is written is to, in half of the L1.
			if out.Shape[d] == 1 || !tr.Splittable || len(q.atoms) > 1 {
				continue
			}
			for least = 2; least < out.Shape[d] && (out.Bytes()/least > n.p.l1/2 || !n.p.divides(tr, q, least) ||
				model.Pieces(out.Shape[d], least) != least); least++ {
			}
			least *= 4 // of which are halves
		}
		for k, v := 0, least/2; k < fewerFactors && v > 1; k, v = k+1, v/2 {
			if n.p.divides(tr, q, v) && model.Pieces(out.Shape[d], v) == v {
				add(schedule.SplitInfo{Ops: len(q.ops) - tr.Unmatched, Factor: v, Dim: d, Depth: depth})
			}
		}
	}
	whole := schedule.SplitInfo{Ops: len(q.ops), Factor: 1, Dim: -1}
	if len(out.Layout) > 0 {
		whole.Dim = out.Layout[0]
	}
	add(whole)
	var ways []Way
	for _, info := range infos {
		if n.p.apart(q, info) {
			ways = append(ways, Way{info, n.price(q, info)})
		}
	}
	return ways
}

// price is the cost of a group that may not fit.
func (n *Network) price(q *part, info schedule.SplitInfo) float64 {
	sg := schedule.SubGraph{Split: info}
	again := n.p.weights(q) > n.p.keep
	index, times := instances(sg.Factor())
	sum := 0.0
	for k, i := range index {
		excess := max(0, q.footprint.Instance(sg.SplitDim(), sg.Factor(), i)-n.p.l1)
		sum += float64(times[k]) * (n.p.instance(q, sg.SplitDim(), sg.Factor(), i, again) + n.p.pass(2*excess))
	}
	return sum
}

// A Namer finds atoms that do the same.
type Namer struct {
	n       *Network
	classes []int
}

// Namer makes one for the network.
func (n *Network) Namer() *Namer { return &Namer{n, schedule.Classes(n.g)} }

// Name is equal for atoms, ascending, that do the same to tensors of the same shapes.
func (x *Namer) Name(atoms []int) string {
	return x.n.describe(x.n.operators(atoms), x.classes) + "/" + strconv.Itoa(len(atoms))
}

// Operators of atoms in the order of the network, and atoms of operators, ascending.
func (n *Network) Operators(atoms []int) []model.OpID { return n.operators(atoms) }

// AtomsOf are the atoms of operators, ascending.
func (n *Network) AtomsOf(ops []model.OpID) []int { return n.atoms(&schedule.SubGraph{Ops: ops}) }

// Connected reports whether atoms, ascending, hang together.
func (n *Network) Connected(atoms []int) bool { return n.connected(atoms) }
