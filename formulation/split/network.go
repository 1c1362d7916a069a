package split

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// NetworkOptions say what a network's problem consists of. The zero value is the default.
type NetworkOptions struct {
	// InPlace lets element-wise operators overwrite their input in footprints.
	InPlace bool
	// Uneven says which factors are candidates that do not divide.
	Uneven schedule.Uneven
	// MaxGroups bounds the candidates; 0 stands for 6000.
	MaxGroups int
	// Cost is another operator cost than the formulas'; nil is theirs.
	Cost cost.Custom
	// Also are other groupings at whose ends atoms are cut, too.
	Also []*schedule.Grouping
}

// defaultMaxGroups keeps the pricing of a network within seconds.
const defaultMaxGroups = 6000

// A Network is the problem that a graph poses on an accelerator.
type Network struct {
	Problem *Problem
	// Splits has the best way to split each group of the problem.
	Splits []schedule.SplitInfo
	// Given is the choice of the given groups, each at its best factor, and
	// GivenSeconds is their cost with the given factors.
	Given        []int
	GivenSeconds float64
	// Longest is the largest number of atoms of a candidate that is not one of the
	// groups given. If it spans all atoms, no interval was left out.
	Longest int

	g      *model.Graph
	p      *pricer
	layers []schedule.Layer // one per atom
	atomOf []int            // of each operator
	rank   []int            // of each operator
}

// FromGraph poses the problem of a graph: order is the order in which its operators are numbered, given a grouping
// (such as Algorithm 2's) to compare with, which is among the choices. The grouping is not changed.
//
// The atoms are the layers of the graph, cut where groups of given, or of opts.Also, end.
func FromGraph(g *model.Graph, order []model.OpID, given *schedule.Grouping, spec *hardware.Spec,
	opts NetworkOptions) (*Network, error) {
	if opts.MaxGroups < 0 {
		return nil, fmt.Errorf("split: at most %d groups, expected at least 0", opts.MaxGroups)
	}
	opts.MaxGroups = cmp.Or(opts.MaxGroups, defaultMaxGroups)
	m, err := cost.NewWith(spec, opts.Cost)
	if err != nil {
		return nil, err
	}
	n := &Network{Problem: &Problem{}, g: g, atomOf: make([]int, len(g.Ops)), rank: make([]int, len(g.Ops))}
	for i, id := range order {
		n.rank[id] = i
	}
	groupOf := make([]string, len(g.Ops))
	for _, gr := range append([]*schedule.Grouping{given}, opts.Also...) {
		for k, sg := range gr.Groups {
			for _, id := range sg.Ops {
				groupOf[id] += fmt.Sprint(k, " ")
			}
		}
	}
	for _, l := range schedule.Layers(g, order) {
		for at := 0; at < len(l.Ops); {
			end := at + 1
			for end < len(l.Ops) && groupOf[l.Ops[end]] == groupOf[l.Ops[at]] {
				end++
			}
			// A run of a layer's operators is a layer.
			n.layers = append(n.layers, schedule.Layers(g, l.Ops[at:end])...)
			at = end
		}
	}
	// Cut layers may have lost their order.
	slices.SortStableFunc(n.layers, func(a, b schedule.Layer) int {
		return n.rank[a.Ops[len(a.Ops)-1]] - n.rank[b.Ops[len(b.Ops)-1]]
	})
	for a, l := range n.layers {
		for _, id := range l.Ops {
			n.atomOf[id] = a
		}
	}
	for a, l := range n.layers {
		if len(l.Outputs) == 0 {
			return nil, fmt.Errorf("split: layer %q has no reader", l.Name)
		}
		var reads []int
		for _, t := range l.Inputs {
			if p := g.Tensor(t).Producer; p != model.NoOp {
				reads = append(reads, n.atomOf[p])
			}
		}
		slices.Sort(reads)
		reads = slices.Compact(reads)
		if len(reads) > 0 && reads[len(reads)-1] >= a {
			return nil, fmt.Errorf("split: layer %q runs before %q, which it reads", l.Name, n.layers[reads[len(reads)-1]].Name)
		}
		n.Problem.Reads = append(n.Problem.Reads, reads)
	}
	n.p = newPricer(g, spec, m, n.layers, opts)
	n.enumerate(opts.MaxGroups)
	if n.Given, n.GivenSeconds, err = n.Choice(given); err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	return n, n.Problem.Validate()
}

// operators of atoms in the order of the network.
func (n *Network) operators(atoms []int) []model.OpID {
	var ops []model.OpID
	for _, a := range atoms {
		ops = append(ops, n.layers[a].Ops...)
	}
	slices.SortFunc(ops, func(a, b model.OpID) int { return n.rank[a] - n.rank[b] })
	return ops
}

// enumerate adds the candidates: the intervals of at most Longest atoms of two orders, that of the atoms and the one
// that visits operands the other way round, as far as they hang together.
func (n *Network) enumerate(most int) {
	atoms, orders := len(n.Problem.Reads), n.orders()
	for count := 0; n.Longest < atoms; n.Longest++ {
		if count += len(orders) * (atoms - n.Longest); count > most && n.Longest > 0 {
			break
		}
	}
	seen := map[string]bool{}
	prices := map[string]priced{}
	classes := schedule.Classes(n.g)
	for length := 1; length <= n.Longest; length++ {
		for _, order := range orders {
			for first := 0; first+length <= atoms; first++ {
				set := slices.Sorted(slices.Values(order[first : first+length]))
				if k := name(set); !seen[k] {
					seen[k] = true
					if n.connected(set) {
						n.add(set, classes, prices)
					}
				}
			}
		}
	}
}

// orders are that of the atoms, and the one that visits operands the other way round.
func (n *Network) orders() [2][]int {
	return [2][]int{solve.Numbers(len(n.Problem.Reads)), n.reversed()}
}

// reversed is a topological order of the atoms, depth first from the last on, the latest operands first.
func (n *Network) reversed() []int {
	reads := n.Problem.Reads
	read := make([]bool, len(reads))
	for _, list := range reads {
		for _, r := range list {
			read[r] = true
		}
	}
	var order []int
	done := make([]bool, len(reads))
	var visit func(a int)
	visit = func(a int) {
		if done[a] {
			return
		}
		done[a] = true
		for k := len(reads[a]) - 1; k >= 0; k-- {
			visit(reads[a][k])
		}
		order = append(order, a)
	}
	for a := range reads {
		if !read[a] {
			visit(a)
		}
	}
	return order
}

// connected reports whether atoms, ascending, hang together by what they read of each other.
func (n *Network) connected(atoms []int) bool {
	root := make([]int, len(atoms))
	var find func(int) int
	find = func(k int) int {
		if root[k] != k {
			root[k] = find(root[k])
		}
		return root[k]
	}
	parts := len(atoms)
	for k, a := range atoms {
		root[k] = k
		for _, r := range n.Problem.Reads[a] {
			if at, there := slices.BinarySearch(atoms, r); there && find(at) != find(k) {
				root[find(at)] = find(k)
				parts--
			}
		}
	}
	return parts == 1
}

// priced is the best way to split a group, if there is any.
type priced struct {
	info    schedule.SplitInfo
	seconds float64
	fits    bool
}

// add adds a candidate with its best split and returns its number, or -1 if no factor
// makes it fit. Networks repeat themselves; groups that do the same have one price.
func (n *Network) add(atoms []int, classes []int, prices map[string]priced) int {
	ops := n.operators(atoms)
	what := n.describe(ops, classes)
	pr, known := prices[what]
	if !known {
		q := n.p.part(atoms, ops)
		pr.seconds = math.Inf(1)
		for _, info := range n.p.splits(q) {
			if c := n.p.seconds(q, info, pr.seconds); c < pr.seconds {
				pr = priced{info, c, true}
			}
		}
		prices[what] = pr
	}
	if !pr.fits {
		return -1
	}
	n.Problem.Groups = append(n.Problem.Groups, Group{atoms, pr.seconds})
	n.Splits = append(n.Splits, pr.info)
	return len(n.Splits) - 1
}

// describe is equal for groups that do the same, in atoms that follow each other alike.
func (n *Network) describe(ops []model.OpID, classes []int) string {
	var b []byte
	for _, id := range ops {
		b = binary.AppendUvarint(b, uint64(n.atomOf[id]-n.atomOf[ops[0]]+len(n.layers)))
	}
	return string(schedule.AppendPattern(b, n.g, ops, classes))
}

// Choice finds the groups of a grouping among the candidates, or adds them; seconds is their
// cost in the way in which they are split there.
func (n *Network) Choice(gr *schedule.Grouping) (choice []int, seconds float64, err error) {
	index := map[string]int{}
	for k, g := range n.Problem.Groups {
		index[name(g.Atoms)] = k
	}
	classes, prices := schedule.Classes(n.g), map[string]priced{}
	for _, sg := range gr.Groups {
		atoms := n.atoms(sg)
		if found, whole := len(sg.Ops), len(n.operators(atoms)); found != whole {
			return nil, 0, fmt.Errorf("group %q: found %d operators, expected the %d of the layers that they are of",
				sg.Name, found, whole)
		}
		q := n.p.part(atoms, sg.Ops)
		own := n.p.seconds(q, sg.Split, math.Inf(1))
		seconds += own
		k, there := index[name(atoms)]
		if !there {
			if k = n.add(atoms, classes, prices); k < 0 {
				k = len(n.Splits)
				n.Problem.Groups = append(n.Problem.Groups, Group{atoms, own})
				n.Splits = append(n.Splits, sg.Split)
			}
		}
		// Its own way to split may be none of the candidates'.
		if own < n.Problem.Groups[k].Seconds {
			n.Problem.Groups[k].Seconds, n.Splits[k] = own, sg.Split
		}
		choice = append(choice, k)
	}
	return choice, seconds, n.Problem.CheckChoice(choice)
}

// Group is a candidate as a sub-graph, split in its best way.
func (n *Network) Group(k int) *schedule.SubGraph {
	return n.subGraph(k, n.Problem.Groups[k].Atoms, n.Splits[k])
}

// subGraph is a group of atoms, ascending, split in a way.
func (n *Network) subGraph(id int, atoms []int, by schedule.SplitInfo) *schedule.SubGraph {
	sg := &schedule.SubGraph{ID: id, Name: fmt.Sprintf("g%d", id), Ops: n.operators(atoms), Split: by}
	sg.Inputs, sg.Outputs = schedule.Boundary(n.g, sg.Ops)
	sg.PeakBytes = schedule.NewFootprint(n.g, sg.Ops, sg.Outputs, n.p.peak).Instance(-1, 1, 0)
	return sg
}

// Decode is the grouping that a choice stands for.
func (n *Network) Decode(choice []int) *schedule.Grouping {
	out := &schedule.Grouping{}
	for i, k := range choice {
		sg := n.Group(k)
		sg.ID, sg.Name = i, fmt.Sprintf("g%d", i)
		out.Groups = append(out.Groups, sg)
	}
	return out
}

// atoms of a sub-graph, ascending.
func (n *Network) atoms(sg *schedule.SubGraph) []int {
	var atoms []int
	for _, id := range sg.Ops {
		atoms = append(atoms, n.atomOf[id])
	}
	slices.Sort(atoms)
	return slices.Compact(atoms)
}
