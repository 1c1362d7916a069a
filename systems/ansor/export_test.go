package ansor

import (
	"math/rand/v2"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/schedule"
)

// Sample is a random nest for step i of a planned schedule, or that of the rules, for tests of what runs on any nest.
func Sample(s *schedule.Schedule, i int, m *cost.Model, r *rand.Rand) *schedule.Nest {
	return newSpace(s, newScratch(s), i, m).sample(r)
}
