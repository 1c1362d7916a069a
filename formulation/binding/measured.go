package binding

import "slices"

// Measured are a problem's prices after what its instances took in schedules that were simulated, in seconds.
//
// An instance's formulas, its own and those of what it reads, are scaled by r_i, the mean of its times over that of its
// formulas. A label that was simulated costs what the instance took with it, in the mean, less what its edges then
// cost; any other one r_i u_i(l). What the capacity of the L1 and overlap do to an instance is in the former, and in
// r_i as far as all labels share it.
type Measured struct {
	p     *Problem
	into  [][]int // edges by the node that reads
	nodes []measured
}

// measured sums what was seen of a node.
type measured struct {
	took, formula float64
	labels        map[int]*seen
}

// seen sums what was seen of a label: edges are what a node reads, by the formulas.
type seen struct{ times, took, edges float64 }

// NewMeasured has the prices of the formulas.
func NewMeasured(p *Problem) *Measured {
	m := &Measured{p: p, into: make([][]int, len(p.Nodes)), nodes: make([]measured, len(p.Nodes))}
	for k, e := range p.Edges {
		m.into[e.To] = append(m.into[e.To], k)
	}
	return m
}

// Learn takes what each instance took in a schedule of a choice.
func (m *Measured) Learn(choice []int, seconds []float64) {
	for i := range m.nodes {
		n, l, edges := &m.nodes[i], choice[i], 0.0
		for _, k := range m.into[i] {
			e := &m.p.Edges[k]
			edges += e.Cost[choice[e.From]][l]
		}
		n.took, n.formula = n.took+seconds[i], n.formula+m.p.Nodes[i].Cost[l]+edges
		if n.labels == nil {
			n.labels = map[int]*seen{}
		}
		if n.labels[l] == nil {
			n.labels[l] = &seen{}
		}
		s := n.labels[l]
		s.times, s.took, s.edges = s.times+1, s.took+seconds[i], s.edges+edges
	}
}

// Problem is the problem at these prices, with those of labels that nobody has measured times a factor.
func (m *Measured) Problem(fresh float64) *Problem {
	p := &Problem{Nodes: slices.Clone(m.p.Nodes), Edges: slices.Clone(m.p.Edges)}
	ratio := func(i int) float64 {
		if n := &m.nodes[i]; n.took > 0 && n.formula > 0 {
			return n.took / n.formula
		}
		return 1
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Cost = slices.Clone(n.Cost)
		for l := range n.Cost {
			n.Cost[l] *= ratio(i) * fresh
			if s := m.nodes[i].labels[l]; s != nil {
				n.Cost[l] = max(0, s.took-ratio(i)*s.edges) / s.times
			}
		}
	}
	for k := range p.Edges {
		e := &p.Edges[k]
		e.Cost = slices.Clone(e.Cost)
		for a := range e.Cost {
			e.Cost[a] = slices.Clone(e.Cost[a])
			for b := range e.Cost[a] {
				e.Cost[a][b] *= ratio(e.To)
			}
		}
	}
	return p
}
