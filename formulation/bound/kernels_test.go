package bound

import (
	"math"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Kernels bounds the time of a cluster for a schedule of one chunk by its groups and how they are
// split alone: kernels run one at a time, each with its launch and the unit that has most
// to do, or, if that is more, the layers of its group that wait for each other. What instances compute twice counts
// twice in the former. Order, bindings and places are free.
func Kernels(s *schedule.Schedule) (seconds float64, err error) {
	m, err := cost.New(s.Spec)
	if err != nil {
		return 0, err
	}
	w := &work{g: s.Graph, ops: make([][numUnits]float64, len(s.Graph.Ops)), hidden: make([]bool, len(s.Graph.Ops)),
		sliced: make([]bool, len(s.Graph.Ops))}
	w.need, w.turns = needs(s.Graph, false)
	w.link()
	p := &pricer{g: s.Graph, m: m, least: map[lanes]float64{}}
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		var sum best
		for _, id := range s.Grouping.Groups[inst.Group].Ops {
			if w.uneven[id] {
				continue
			}
			for u, t := range p.operator(s.Graph.Op(id), func(t model.TensorID) model.Region { return inst.Regions[t] }) {
				sum[u] += t
			}
		}
		seconds += s.Spec.LaunchSeconds + sum.most()
	}
	sum := 0.0
	for _, sg := range s.Grouping.Groups {
		least, err := Group(s.Graph, m, sg.Ops)
		if err != nil {
			return 0, err
		}
		sum += float64(sg.Factor())*s.Spec.LaunchSeconds + least
	}
	return math.Floor(max(seconds, sum)*exact*1e12) * 1e-12, nil
}
