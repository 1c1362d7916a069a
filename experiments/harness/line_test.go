package harness

import "testing"

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		ours, published float64
		unit, want      string
	}{
		{110, 100, "images/s", Holds}, {120.001, 100, "images/s", Misses}, {79.9, 100, "%", Misses}, {80, 100, "%", Holds},
		// Ratios, not what is beyond 1; those on the other side of 1 are of the wrong sign.
		{1.24, 1.04, "x", Holds}, {1.25, 1.04, "x", Misses}, {2, 11.15, "x", Misses}, {.999, .87, "x", Holds},
		{1.01, .97, "x", WrongSign}, {.99, 1.04, "x", WrongSign}, {1, 1.04, "x", Holds},
		{1.2, 1, "x", Holds}, {1.21, 1, "x", WrongSign}, {.79, 1, "x", WrongSign},
		// As many decimals as are printed: 2 is 1.5 to 2.5, 0.2 is 0.15 to 0.25.
		{1.5, 2, "%", Holds}, {2.6, 2, "%", Misses}, {.25, .2, "ms", Holds}, {.26, .2, "ms", Misses}, {.4, 0, "%", Holds},
		// One tensor of fewer than ten.
		{1, 0, "tensors", Holds}, {2, 0, "tensors", Misses}, {4, 3, "tensors", Holds}, {5, 3, "tensors", Misses},
		{12, 10, "tensors", Holds}, {13, 10, "tensors", Misses},
	} {
		if got := (Line{Ours: tt.ours, Published: tt.published, Unit: tt.unit}).Verdict(); got != tt.want {
			t.Errorf("%g for %g %s: %s, want %s", tt.ours, tt.published, tt.unit, got, tt.want)
		}
	}
}

// What was fitted to, given, or is nothing in both was not predicted.
func TestPredicted(t *testing.T) {
	for want, lines := range map[bool][]Line{true: {{Published: 2, Ours: 3}, {Ours: 1}, {Published: 1}},
		false: {{}, {Published: 2, Ours: 2, Given: true}, {Published: 2, Ours: 2, Calibration: true}}} {
		for _, l := range lines {
			if l.Predicted() != want {
				t.Errorf("%+v: predicted %t", l, !want)
			}
		}
	}
	d := NewDocument(Experiment{Name: "x"})
	d.Number("share", "%", 3, 3)
	if d.Given(); d.Lines[0].Predicted() || d.claims[0].Verdict != NotCounted {
		t.Errorf("%+v, %+v", d.Lines[0], d.claims[0])
	}
}
