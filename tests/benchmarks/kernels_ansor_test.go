package benchmarks

import (
	"testing"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/systems/ansor"
	"github.com/dsasched/dsasched/systems/ansor/tuning"
)

func init() { tuning.Register() }

// Kernels of more layers than are searched are no tasks.
func TestLargeKernels(t *testing.T) {
	f, greedy := Families()[0], recipes.Table()[4]
	made := run(t, f, 4*ansor.MaxLayers, greedy)
	tasks, err := ansor.Kernels(t.Context(), made.Schedule, made.Spec.Clusters, made.Lower)
	if err != nil {
		t.Fatal(err)
	}
	layers := map[int]int{} // of each instance
	for i := range made.Schedule.Steps {
		layers[made.Schedule.Steps[i].Instance]++
	}
	large := 0
	for k, id := range made.Schedule.Order {
		if layers[id] > ansor.MaxLayers {
			large++
		}
		if (tasks[k] == nil) != (layers[id] > ansor.MaxLayers) {
			t.Errorf("a kernel of %d layers is a task: %v, expected those of at most %d to be", layers[id],
				tasks[k] != nil, ansor.MaxLayers)
		}
	}
	if large == 0 {
		t.Errorf("no kernel of %s has more than %d layers", f.Name, ansor.MaxLayers)
	}
}
