package lower

import "github.com/dsasched/dsasched/model/schedule"

// Alone is the schedule of one kernel of a schedule: what other kernels have made is there
// from the start, and what lives on stays. The steps and values are copies.
func Alone(s *schedule.Schedule, instance int) *schedule.Schedule {
	first, last := len(s.Steps), -1
	for i := range s.Steps {
		if s.Steps[i].Instance == instance {
			first, last = min(first, i), i
		}
	}
	all := make([]int, len(s.Values))
	for i := range all {
		all[i] = i
	}
	return alone(s, instance, first, last, all)
}
