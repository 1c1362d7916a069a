package schedule

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Uneven says where the pieces of an extent may differ: the first ones are as long as
// the rounded-up quotient, the last has what is left.
type Uneven uint8

// The settings.
const (
	// UnevenFastest: UnevenAll or UnevenNone, whichever gives the faster schedule. Where nothing
	// is simulated it is UnevenAll.
	UnevenFastest Uneven = iota
	// UnevenAll: instances and the cores' slices.
	UnevenAll
	// UnevenOutputs: instances, of outputs alone: Algorithm 1 as it is written, which asks
	// of intermediates that the factor divides them.
	UnevenOutputs
	// UnevenNone: all pieces are alike.
	UnevenNone
)

var unevenNames = [...]string{UnevenFastest: "fastest", UnevenAll: "all", UnevenOutputs: "outputs", UnevenNone: "none"}

// UnevenNames lists the settings by name, the default first.
func UnevenNames() []string { return unevenNames[:] }

func (u Uneven) String() string { return unevenNames[u] }

// Alternatives are the settings that u stands for.
func (u Uneven) Alternatives() []Uneven {
	if u == UnevenFastest {
		return []Uneven{UnevenAll, UnevenNone}
	}
	return []Uneven{u}
}

// ParseUneven is the setting of a name.
func ParseUneven(name string) (Uneven, error) {
	for u, n := range unevenNames {
		if n == name {
			return Uneven(u), nil
		}
	}
	return 0, fmt.Errorf("uneven is %q, expected one of %v", name, unevenNames)
}

// Uneven reports whether the pieces of some extent differ: instances of a group in their
// outputs, or the cores' slices of a value. Where none do, another setting differs at most in
// groups with an intermediate that their factor does not divide.
func (s *Schedule) Uneven() bool {
	whole := map[model.TensorID]int64{} // elements of an output's instances
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		for _, t := range s.Grouping.Groups[inst.Group].Outputs {
			n := inst.Regions[t].Elements()
			if whole[t] == 0 {
				whole[t] = n
			}
			if whole[t] != n {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.Values, func(v Value) bool {
		for d, cores := range v.Binding {
			if v.Region[d].Len()%cores != 0 {
				return true
			}
		}
		return false
	})
}
