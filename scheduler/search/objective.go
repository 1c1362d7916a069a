package search

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
)

// Objective is the quantity that [Best] minimises.
type Objective string

// The objectives. Energy needs an accelerator whose description has figures.
const (
	ByLatency Objective = "latency"
	ByEnergy  Objective = "energy"
	ByEDP     Objective = "edp" // energy times latency
)

// Objectives lists them, the first by default.
var Objectives = []Objective{ByLatency, ByEnergy, ByEDP}

// check refuses an objective that is unknown, or that the machine has no figures for.
func (o Objective) check(spec *hardware.Spec) error {
	switch {
	case o.byLatency():
		return nil
	case !slices.Contains(Objectives, o):
		return fmt.Errorf("objective is %q, expected %v", o, Objectives)
	case spec.Energy == nil:
		return fmt.Errorf("objective is %s, expected %s: the description of accelerator %q has no figures of energy", o,
			ByLatency, spec.Name)
	}
	return nil
}

func (o Objective) byLatency() bool { return o == "" || o == ByLatency }

// score is the value that the search compares: picoseconds, joules or joules times picoseconds; +Inf of
// math.MaxInt64, which is more than the limit.
func (o Objective) score(ps int64, joules float64) float64 {
	switch {
	case ps == math.MaxInt64:
		return math.Inf(1)
	case o == ByEnergy:
		return joules
	case o == ByEDP:
		return joules * float64(ps)
	}
	return float64(ps)
}

// longest is a latency, in picoseconds, above which no schedule has a score up to this one,
// whatever its operations and moves take; 0: none.
func (o Objective) longest(score float64, spec *hardware.Spec) int64 {
	if o.byLatency() {
		return int64(score)
	}
	s := score / spec.Energy.StaticWatts * 1e12 // J / W = s
	if o == ByEDP {
		s = math.Sqrt(s)
	}
	if !(s < 1<<62) {
		return 0
	}
	return int64(s) + 1
}
