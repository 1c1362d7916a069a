package answers

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A note says where latencies are long and a description has one load in flight.
func TestLatencies(t *testing.T) {
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ddr, core float64
		loads     int
		want      string
	}{{0, 0, 1, ""}, {20e-6, 0, 1, "ddr_link"}, {20e-6, 0, 4, ""}, {0, 20e-6, 1, "core_link"}} {
		spec := machine.Clone()
		spec.DDR.LatencySeconds, spec.DDRLink.LatencySeconds, spec.LLB.LatencySeconds = 0, c.ddr, 0
		spec.CoreLink.LatencySeconds, spec.DDRLink.InFlight, spec.CoreLink.InFlight = c.core, c.loads, c.loads
		r, err := scheduler.Run(t.Context(), net, spec, 1, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(latencies(r), "\n")
		s := r.Schedule // layers run by bindings of their own
		own := s.LayerBindings[0]
		cores := own[len(own)-1]
		cores[0]++
		if b := NewReport(r, schedulefile.Origin{}).Order.Instances[0].Binding; s.Bindings[0][0] == b[0] || b[0] != cores[0] {
			t.Errorf("binding %v, its last layer's is %v", b, cores)
		}
		if (c.want == "") != (notes == "") || !strings.Contains(notes, c.want) {
			t.Errorf("%+v: %q", c, notes)
		}
	}
}
