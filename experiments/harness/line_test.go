package harness

import "testing"

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		ours, published float64
		unit, want      string
	}{
		{110, 100, "images/s", "reproduced within 20 %"}, {0, 0, "tensors", "reproduced within 20 %"},
		{2, 11.15, "x", "direction only"},
		{1.24, 1.04, "x", "direction only"}, {.999, .87, "x", "not reproduced"}, {1.01, 1.62, "x", "not reproduced"},
		{.84, 1.04, "x", "not reproduced"}, {1.04, 1, "x", "reproduced within 20 %"}, {1.1, 1, "x", "not reproduced"},
		{0.9, 11.15, "x", "not reproduced"}, {180, 100, "images/s", "within a factor of two"},
		{3, 0, "tensors", "not reproduced"}, {1, 100, "ms", "not reproduced"},
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
