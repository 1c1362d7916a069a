package hardware_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

var rangeOf = regexp.MustCompile(`ESTIMATE.* range ([0-9.]+) to ([0-9]+(?:\.[0-9]+)?)`)

// An estimate of a preset lies in the range that its comment gives, and a machine at either end can be read.
func TestEstimates(t *testing.T) {
	ranges := 0
	for _, name := range hardware.Presets() {
		d, err := hardware.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range d.Fields() {
			comment, err := d.Comment(field)
			if err != nil {
				t.Fatal(err)
			}
			m := rangeOf.FindStringSubmatch(comment)
			if m == nil {
				continue
			}
			ranges++
			given, err := d.Value(field)
			if err != nil {
				t.Fatal(err)
			}
			unit := strings.TrimLeft(given, "0123456789.")
			var x [3]float64
			for i, text := range []string{m[1] + unit, given, m[2] + unit} {
				v, ok := hardware.Number(text)
				if !ok {
					t.Fatalf("%s: %s is %q, expected a number", name, field, text)
				}
				x[i] = v
				changed, err := d.With(field, text)
				if err == nil {
					_, err = changed.Spec()
				}
				if err != nil {
					t.Errorf("%s with %s at %s: %v", name, field, text, err)
				}
			}
			if !(x[0] <= x[1] && x[1] <= x[2] && x[0] < x[2]) {
				t.Errorf("%s: %s is %s, expected it in %s to %s", name, field, given, m[1], m[2])
			}
		}
	}
	if ranges < 15 {
		t.Errorf("%d figures with ranges, expected 15 or more", ranges)
	}
}
