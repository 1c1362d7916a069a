package astitch

import (
	"slices"

	"github.com/dsasched/dsasched/model/schedule"
)

// Scopes declares the result of every instance in the DDR: kernels exchange data
// there, and only inside a stitch operator it is nearer.
func Scopes(instances int) []schedule.Level {
	return slices.Repeat([]schedule.Level{schedule.DDR}, instances)
}

// Localize is the check of block locality, on a schedule with its steps and before its memory plan: a value that is
// wanted in the L1 stays there if every core reads only what it has made itself. Any other goes to the LLB.
func Localize(s *schedule.Schedule) {
	for i := range s.Steps {
		for _, r := range s.Steps[i].Reads {
			if v := &s.Values[r.Value]; v.Level == schedule.L1 && r.RemoteBytes > 0 {
				v.Wanted, v.Level = schedule.LLB, schedule.LLB
			}
		}
	}
}
