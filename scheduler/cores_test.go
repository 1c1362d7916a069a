package scheduler_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
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
	v, err := recipes.Lookup("cross-layer")
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

// A result says how many cores work if a machine has some for which no layer has a part.
func TestCoresWithoutWork(t *testing.T) {
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, cores := range []int{8, 11} {
		spec = spec.Clone()
		spec.CoreTypes[0].Count = cores
		r, err := scheduler.Run(context.Background(), net, spec, 8, v, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		most := int64(0)
		for i := range r.Schedule.Steps {
			most = max(most, r.Schedule.Steps[i].Active())
		}
		if w := r.Working(); int64(w.Cores) != most || w.AllCores != cores || (w.Cores < cores) != (cores == 11) ||
			w.Clusters != 4 || w.AllClusters != 4 {
			t.Errorf("%d cores, at most %d work: %+v", cores, most, w)
		}
	}
}
