package lower_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Kernels cut out in the order of a schedule are those cut out one by one, and the room of a step
// is the same whether the values around it are known or looked for.
func TestEachAlone(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tvm", "l1", "cross-layer"} {
		src, err := network.Open("mobilenetv2", network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		recipe, _ := recipes.Lookup(name)
		r, err := scheduler.Run(t.Context(), src, spec, 4*int64(spec.Clusters), recipe, scheduler.Options{Chunk: 4})
		if err != nil {
			t.Fatal(err)
		}
		s, n := r.Schedule, 0
		lower.EachAlone(s, func(instance, first, last int, alone func() *schedule.Schedule) {
			if instance != s.Order[n] {
				t.Errorf("%s: kernel %d is instance %d, expected %d", name, n, instance, s.Order[n])
			}
			n++
			if got, want := alone(), lower.Alone(s, instance); !reflect.DeepEqual(got, want) || len(got.Steps) != last-first+1 {
				t.Errorf("%s: instance %d in the order of the schedule has %d steps and %d values, by itself %d and %d, or others",
					name, instance, len(got.Steps), len(got.Values), len(want.Steps), len(want.Values))
			}
		})
		if n != len(s.Order) {
			t.Errorf("%s: %d kernels, expected %d", name, n, len(s.Order))
		}
		rooms := func() (list []int64) {
			for i := range s.Steps {
				list = append(list, s.Room(i), lower.Room(s, i, 8))
			}
			return list
		}
		looked := rooms()
		if s.Index(); !slices.Equal(rooms(), looked) {
			t.Errorf("%s: with an index steps have another room", name)
		}
	}
}
