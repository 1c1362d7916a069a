package schedule

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Uneven says where the pieces of an extent may differ: the first ones are as long as
// the rounded-up quotient, the last has what is left.
type Uneven uint8

const (
	UnevenFastest  Uneven = iota // UnevenAll or UnevenNone, of the default UnevenDivisors, too; not simulated: UnevenAll
	UnevenAll                    // instances and the cores' slices
	UnevenOutputs                // instances, of outputs alone: Algorithm 1 as written, whose factors divide intermediates
	UnevenNone                   // all pieces are alike
	UnevenDivisors               // as UnevenAll, and over a dimension may go a divisor of the cores that are left
)

// UnevenNames lists the settings by name, the default first.
var UnevenNames = [...]string{UnevenFastest: "fastest", UnevenAll: "all", UnevenOutputs: "outputs", UnevenNone: "none",
	UnevenDivisors: "divisors"}

func (u Uneven) String() string { return UnevenNames[u] }

// Alternatives are the settings that u stands for.
func (u Uneven) Alternatives() []Uneven {
	if u == UnevenFastest {
		return []Uneven{UnevenAll, UnevenNone}
	}
	return []Uneven{u}
}

// Slices says how cores divide a tensor: over each dimension goes a power of two of them.
type Slices uint8

const (
	SlicesAlike      Slices = iota // a power of two that divides the extent
	SlicesUneven                   // the last slice may be shorter
	SlicesByDivisors               // so it may, and over a dimension may go a divisor of the cores that are left
)

func (u Uneven) Slices() Slices {
	return [len(UnevenNames)]Slices{UnevenAll: SlicesUneven, UnevenDivisors: SlicesByDivisors}[u]
}

// ParseUneven is the setting of a name.
func ParseUneven(name string) (Uneven, error) {
	for u, n := range UnevenNames {
		if n == name {
			return Uneven(u), nil
		}
	}
	return 0, fmt.Errorf("uneven is %q, expected one of %v", name, UnevenNames)
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
