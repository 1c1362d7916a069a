package harness

import "testing"

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		ours, published float64
		unit, want      string
	}{
		{110, 100, "images/s", "reproduced within 20 %"}, {0, 0, "tensors", "reproduced within 20 %"}, {2, 11.15, "x", "direction only"},
		{0.9, 11.15, "x", "not reproduced"}, {180, 100, "images/s", "within a factor of two"}, {3, 0, "tensors", "not reproduced"}, {1, 100, "ms", "not reproduced"},
	} {
		if got := (Line{Ours: tt.ours, Published: tt.published, Unit: tt.unit}).Verdict(); got != tt.want {
			t.Errorf("%g for %g %s: %s, want %s", tt.ours, tt.published, tt.unit, got, tt.want)
		}
	}
}
