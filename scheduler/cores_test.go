package scheduler_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// In which order the types of cores are described changes nothing.
func TestOrderOfCoreTypes(t *testing.T) {
	goya, err := hardware.Load("goya")
	if err != nil {
		t.Fatal(err)
	}
	two, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	two = two.Clone()
	two.CoreTypes[0].Count = 5
	more := two.Clone().CoreTypes[0]
	more.Name, more.Count = "more", 3
	two.CoreTypes = append(two.CoreTypes, more)
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := scheduler.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []*hardware.Spec{goya, two} {
		var took []float64
		for range 2 {
			r, err := scheduler.Run(context.Background(), net, spec, 8, v, scheduler.Options{})
			if err != nil {
				t.Fatal(err)
			}
			took = append(took, r.LatencySeconds())
			spec = spec.Clone()
			slices.Reverse(spec.CoreTypes)
		}
		if took[0] != took[1] {
			t.Errorf("%s: %v seconds", spec.Name, took)
		}
	}
}
