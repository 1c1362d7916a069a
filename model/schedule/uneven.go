package schedule

import "fmt"

// Uneven says where the pieces of an extent may differ: the first ones are as long as
// the rounded-up quotient, the last has what is left.
type Uneven uint8

// The settings.
const (
	// UnevenAll: instances and the cores' slices.
	UnevenAll Uneven = iota
	// UnevenOutputs: instances, of outputs alone: Algorithm 1 as it is written, which asks
	// of intermediates that the factor divides them.
	UnevenOutputs
	// UnevenNone: all pieces are alike.
	UnevenNone
)

var unevenNames = [...]string{UnevenAll: "all", UnevenOutputs: "outputs", UnevenNone: "none"}

// UnevenNames lists the settings by name, the default first.
func UnevenNames() []string { return unevenNames[:] }

func (u Uneven) String() string { return unevenNames[u] }

// ParseUneven is the setting of a name.
func ParseUneven(name string) (Uneven, error) {
	for u, n := range unevenNames {
		if n == name {
			return Uneven(u), nil
		}
	}
	return 0, fmt.Errorf("uneven is %q, expected one of %v", name, unevenNames)
}
