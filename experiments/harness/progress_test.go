package harness

import "testing"

// What is left is told by what came last, not by what was slow before.
func TestSecondsLeft(t *testing.T) {
	for _, c := range []struct {
		ends []float64
		rest int
		want float64
	}{
		{nil, 5, -1},
		{[]float64{9, 10}, 5, -1},
		{[]float64{30, 31, 32}, 4, 4},
		{[]float64{30, 60, 61, 62, 63, 64}, 10, 10},
		{[]float64{1, 2, 3, 4}, 0, 0},
	} {
		if got := secondsLeft(c.ends, c.rest); got != c.want {
			t.Errorf("%v, %d to come: %g s, want %g", c.ends, c.rest, got, c.want)
		}
	}
}
