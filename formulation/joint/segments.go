package joint

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/model/schedule"
)

// A segment is a set of instances that the bound (b) looks at by itself.
type segment struct {
	choices []int // its instances that can have either scope
	// floor is, for each set of the choices with scope LLB (bit k: choices[k]), what the
	// segment's moves cost at least, in seconds.
	floor []float64
}

// segments cuts an order of all instances into runs with at most most choices each, where they spill most in all if
// all choices have scope L1, and keeps those that spill then: the others say nothing.
func (s *searcher) segments(line []int, most int) ([]segment, error) {
	n := len(line)
	known := map[string]*table{}
	// best[end] is the most that is spilled before end, from[end] where the last segment
	// begins; of equal ones the shortest, which has the smallest table.
	best, from := make([]float64, n+1), make([]int, n+1)
	for end := 1; end <= n; end++ {
		if s.ctx.Err() != nil {
			return nil, nil
		}
		best[end] = -1
		choices := 0
		for begin := end - 1; begin >= 0; begin-- {
			if s.choice(line[begin]) {
				choices++
			}
			if choices > most {
				break
			}
			t, err := s.table(line[begin:end], known)
			if err != nil {
				return nil, err
			}
			if sum := best[begin] + t.floor[0]; sum > best[end]+tolerance*sum {
				best[end], from[end] = sum, begin
			}
		}
	}
	var all []segment
	for end := n; end > 0; end = from[end] {
		t, err := s.table(line[from[end]:end], known)
		if err != nil {
			return nil, err
		}
		if t.floor[0] == 0 {
			continue
		}
		if err := s.fill(t); err != nil {
			return nil, err
		}
		seg := segment{floor: t.floor}
		ids := slices.Sorted(slices.Values(line[from[end]:end]))
		for _, k := range t.choices {
			seg.choices = append(seg.choices, ids[k])
		}
		all = append(all, seg)
	}
	return all, nil
}

// A table is shared by segments that are alike.
type table struct {
	ids     []int     // the instances of the first of them
	choices []int     // positions in ids
	floor   []float64 // of a segment; at first only for the empty set
}

// table finds the table of some instances, or begins one.
func (s *searcher) table(instances []int, known map[string]*table) (*table, error) {
	t := &table{ids: slices.Sorted(slices.Values(instances)), floor: make([]float64, 1)}
	for k, i := range t.ids {
		if s.choice(i) {
			t.choices = append(t.choices, k)
		}
	}
	q := s.p.moves(s.graph, s.inL1(), t.ids)
	key := fmt.Sprint(q.Subgraphs, q.Arcs, t.choices)
	if old := known[key]; old != nil {
		return old, nil
	}
	known[key] = t
	var err error
	t.floor[0], err = s.leastMoves(q)
	return t, err
}

// fill completes a table.
func (s *searcher) fill(t *table) error {
	gb := s.inL1()
	for set := len(t.floor); set < 1<<len(t.choices); set++ {
		if s.ctx.Err() != nil {
			t.floor = append(t.floor, 0) // a bound all the same
			continue
		}
		for b, k := range t.choices {
			gb[t.ids[k]] = set>>b&1 == 1
		}
		least, err := s.leastMoves(s.p.moves(s.graph, gb, t.ids))
		if err != nil {
			return err
		}
		t.floor = append(t.floor, least)
	}
	return nil
}

// inL1 is scope L1 for all that can have it.
func (s *searcher) inL1() []bool {
	return s.scopes(&subset{scopes: slices.Repeat([]decision{decidedL1}, len(s.kept))})
}

// leastMoves is a bound on the cost of an ordering problem in seconds.
func (s *searcher) leastMoves(q *ordering.Problem) (float64, error) {
	r, err := ordering.Search(s.ctx, q, ordering.Traffic, ordering.Options{WorkLimit: int64(s.opts.MaxStates)})
	if err != nil {
		return 0, err
	}
	return r.Bound * s.p.SecondsPerCost, nil
}

// withSegments joins the segments' tables to a binding problem of the labels left: for each a node whose labels are the
// sets of its choices with scope LLB, tied to the scopes by edges that cost more than everything where they differ.
func (s *searcher) withSegments(q *binding.Problem) {
	forbidden := 1.0
	for _, n := range q.Nodes {
		forbidden += slices.Max(n.Cost)
	}
	for _, e := range q.Edges {
		for _, row := range e.Cost {
			forbidden = math.Max(forbidden, slices.Max(row)*float64(len(q.Edges)))
		}
	}
	for _, seg := range s.pieces {
		forbidden += seg.floor[0]
	}
	for k, seg := range s.pieces {
		hub := binding.Node{Name: fmt.Sprintf("segment %d", k)}
		var sets []int
		for set, floor := range seg.floor {
			possible := true
			for b, i := range seg.choices {
				want := schedule.L1
				if set>>b&1 == 1 {
					want = schedule.LLB
				}
				possible = possible && slices.ContainsFunc(q.Nodes[i].Labels, func(l binding.Label) bool { return l.Scope == want })
			}
			if !possible {
				continue
			}
			sets = append(sets, set)
			hub.Labels = append(hub.Labels, binding.Label{Binding: schedule.Binding{int64(set) + 1}})
			hub.Cost = append(hub.Cost, floor)
		}
		at := len(q.Nodes)
		q.Nodes = append(q.Nodes, hub)
		for b, i := range seg.choices {
			e := binding.Edge{From: i, To: at}
			for _, l := range q.Nodes[i].Labels {
				row := make([]float64, len(sets))
				for c, set := range sets {
					if (set>>b&1 == 1) != (l.Scope == schedule.LLB) {
						row[c] = forbidden
					}
				}
				e.Cost = append(e.Cost, row)
			}
			q.Edges = append(q.Edges, e)
		}
	}
}
