package staging

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// Tables that are looked up side by side have more ideals than can be visited: their stages are
// those along topological orders, which the note says.
func TestStagesOfManyBranches(t *testing.T) {
	net, err := network.Open("dlrm", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	g, err := net.Graph(4)
	if err != nil {
		t.Fatal(err)
	}
	stage, note, err := stages(t.Context(), g, chip, scheduler.Options{Clusters: Pipelined}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(note, "not proven") || slices.Max(stage) == 0 || slices.Max(stage) >= chip.Clusters {
		t.Errorf("stages %v, note %q", stage, note)
	}
	for _, op := range g.Ops {
		for _, in := range op.Inputs {
			if p := g.Tensor(in).Producer; p >= 0 && stage[p] > stage[op.ID] {
				t.Errorf("%s of stage %d reads what stage %d makes", op.Name, stage[op.ID], stage[p])
			}
		}
	}
}
