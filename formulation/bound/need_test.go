package bound

import (
	"testing"

	"github.com/dsasched/dsasched/model"
)

// Readers of a quarter each need all together, in whatever order they stand.
func TestNeedOfQuarters(t *testing.T) {
	for _, order := range [][4]int64{{0, 1, 2, 3}, {0, 3, 1, 2}, {3, 0, 2, 1}} {
		b := model.NewBuilder("quarters")
		x := b.Op("Relu", "x", model.Attr{}, b.Input("in", model.F16, 1, 8, 6))
		for _, q := range order {
			b.Output(b.Op("Slice", "quarter", model.Attr{Starts: []int64{0, q / 2, q % 2}, Steps: []int64{1, 2, 2},
				Shape: []int64{1, 4, 3}}, x))
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for apart, want := range map[bool]int64{false: 48, true: 12} {
			need, _ := needs(g, apart)
			if got := need[x].elements(); got != want {
				t.Errorf("readers %v, apart %v: %d elements are needed, expected %d", order, apart, got, want)
			}
		}
	}
}
