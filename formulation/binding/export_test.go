package binding

import (
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/schedule"
)

// Seconds is the cost of a schedule whose steps are built, added up over its steps
// as they are: the same sum as [Problem.Seconds] of its choice, found another way.
func Seconds(s *schedule.Schedule, m *cost.Model) float64 {
	p := &pricer{s: s, m: m, cores: schedule.CoresWithL1(s.Spec)}
	level := func(v *schedule.Value) schedule.Level {
		if v.Instance < 0 {
			return v.Level
		}
		return p.level(v, s.Scopes[v.Instance], s)
	}
	sum := 0.0
	for i := range s.Steps {
		st := &s.Steps[i]
		sum += p.work(s, st)
		for k := range st.Reads {
			v := &s.Values[st.Reads[k].Value]
			sum += p.read(&st.Reads[k], v, level(v))
		}
		for _, w := range st.Writes {
			sum += p.write(&s.Values[w], level(&s.Values[w]))
		}
	}
	return sum
}

// Candidates is grids.
var Candidates = grids
