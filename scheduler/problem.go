package scheduler

import (
	"fmt"

	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model/schedule"
)

// OrderProblem is the instance-ordering problem that a schedule's groups, factors
// and dependencies give, on the LBs of a cluster together. A byte moved costs 1
// either way.
//
// The problem has one size per sub-graph and one range per pair of instances. So
// the workspace is that of the largest instance, the outputs of a group are one,
// and an instance that reads with gaps reads what lies between as well; the notes
// say where that matters.
func OrderProblem(s *schedule.Schedule, opt Options) (p *ordering.Problem, notes []string, err error) {
	// The rates weigh only OrderItem.Seconds, which the problem does not have.
	items := OrderItems(s, graphturbo.SplitOptions{InPlace: opt.InPlace, MACsPerSecond: 1, VectorOpsPerSecond: 1})
	p = &ordering.Problem{
		Name:             s.Graph.Name,
		CapacityBytes:    schedule.AllDataBytes(s.Spec),
		StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []ordering.Subgraph{}, Arcs: []ordering.Arc{},
	}
	ig := s.Instances
	for k, sg := range s.Grouping.Groups {
		first, n := ig.First[k], int(sg.Factor())
		o := ordering.Subgraph{Name: sg.Name, Instances: n}
		uneven := false
		for i := first; i < first+n; i++ {
			uneven = uneven || items[i].OutputBytes != items[first].OutputBytes
			o.OutputBytes = max(o.OutputBytes, items[i].OutputBytes)
			o.WorkspaceBytes = max(o.WorkspaceBytes, items[i].WorkspaceBytes)
		}
		if uneven {
			notes = append(notes, fmt.Sprintf("instances of %q differ in their outputs; all count as the largest", sg.Name))
		}
		p.Subgraphs = append(p.Subgraphs, o)
		// By producer: the hull of what each instance reads of it.
		reads := make([][][2]int, k)
		for q := range n {
			for _, i := range items[first+q].Reads {
				from := ig.Instances[i].Group
				if reads[from] == nil {
					reads[from] = make([][2]int, n)
				}
				r, at := &reads[from][q], int(ig.Instances[i].Index)
				switch {
				case r[1] == 0:
					*r = [2]int{at, at + 1}
				default:
					if at > r[1] {
						notes = append(notes, fmt.Sprintf("instance %d of %q reads %q with gaps; the gaps count as read", q, sg.Name,
							s.Grouping.Groups[from].Name))
					}
					*r = [2]int{min(r[0], at), max(r[1], at+1)}
				}
			}
		}
		for from, ranges := range reads {
			if ranges != nil {
				ranges, wider := monotone(ranges)
				if wider {
					notes = append(notes, fmt.Sprintf("instances of %q read %q in another order than they are numbered; what "+
						"lies between counts as read", sg.Name, s.Grouping.Groups[from].Name))
				}
				p.Arcs = append(p.Arcs, ordering.Arc{From: from, To: k, Reads: ranges})
			}
		}
	}
	if err := p.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%s gives no ordering problem: %w", s.Graph.Name, err)
	}
	return p, notes, nil
}

// monotone widens ranges, where need be, until neither starts nor ends decrease, and gives some
// to instances that read nothing: empty ones before the first and after the last that reads;
// between them there may be no room for an empty one, so such an instance counts as reading
// what its forerunner reads. It reports whether a range got wider.
func monotone(ranges [][2]int) ([][2]int, bool) {
	last := len(ranges) - 1
	for ranges[last][1] == 0 {
		last--
	}
	wider, least := false, ranges[last][0]
	for q := last; q >= 0; q-- {
		if r := &ranges[q]; r[1] > 0 {
			wider = wider || r[0] > least
			least = min(least, r[0])
			r[0] = least
		}
	}
	for q := 1; q < len(ranges); q++ {
		switch end := ranges[q-1][1]; {
		case ranges[q][1] > 0:
			wider = wider || ranges[q][1] < end
			ranges[q][1] = max(ranges[q][1], end)
		case q > last:
			ranges[q] = [2]int{end, end}
		default:
			ranges[q] = ranges[q-1]
		}
	}
	return ranges, wider
}
