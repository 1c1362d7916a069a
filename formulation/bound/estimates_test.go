package bound_test

import (
	"regexp"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

var comments = regexp.MustCompile(`#.*`)

// Estimates are in the bound at the fast ends of their ranges: it is that of the machine made of these ends, and not
// above that of the figures as they are.
func TestBoundAtFastEndsOfEstimates(t *testing.T) {
	for _, c := range []string{"resnet18", "gpt2-decode"}[:1+min(1, usual()/36)] {
		net, err := network.Open(c, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range hardware.Presets() {
			given, err := hardware.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			taken := withoutEstimates(t, name)
			var least [3]float64
			for k, spec := range []*hardware.Spec{given, given.Fast(), taken} {
				if spec, err = scheduler.LevelAuto.Machine(spec); err != nil {
					t.Fatal(err)
				}
				b, err := bound.Cold(t.Context(), net, spec, 4)
				if err != nil || (k == 0) != (len(b.Estimates) > 0) {
					t.Fatalf("%s on %s: %v (%v)", c, name, b.Estimates, err)
				}
				least[k] = b.Seconds
			}
			t.Logf("%s on %s: %.3f of the bound of the figures as they are", c, name, least[0]/least[2])
			if least[0] != least[1] || least[0] > least[2] {
				t.Errorf("%s on %s: %g s, expected %g and at most %g", c, name, least[0], least[1], least[2])
			}
		}
	}
}

// withoutEstimates is a preset of which no figure is an estimate.
func withoutEstimates(t *testing.T, name string) *hardware.Spec {
	t.Helper()
	text, err := hardware.PresetYAML(name)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Parse(name, comments.ReplaceAll(text, nil))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}
