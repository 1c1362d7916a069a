package search

import (
	"testing"

	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// The search begins with what the default has found: uneven shares, fewer cores, or chunks that divide no share.
func TestBestKeepsTheDefault(t *testing.T) {
	machine, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup(recipes.Default)
	if err != nil {
		t.Fatal(err)
	}
	few := machine.Clone()
	few.CoreTypes[0].Count = 11
	uneven := false
	for _, c := range []struct {
		network string
		cores   int
		batch   int64
	}{{"toy-fig5", 8, 6}, {"dlrm", 8, 5}, {"squeezenet", 8, 9}, {"toy-fig3", 11, 5}} {
		spec := machine
		if c.cores == 11 {
			spec = few
		}
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(t.Context(), net, spec, c.batch, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := Best(t.Context(), net, spec, c.batch, BestOptions{Recipes: recipes.Tiled(), Evaluations: 10})
		if err != nil {
			t.Fatal(err)
		}
		if found.Sim.TotalPs > r.Sim.TotalPs {
			t.Errorf("%s at %d: %d ps, the default %d", c.network, c.batch, found.Sim.TotalPs, r.Sim.TotalPs)
		}
		even := schedule.Shares(c.batch, 4)
		uneven = uneven || r.Shares[0] != even[0] && found.Shares[0] == r.Shares[0]
	}
	if !uneven {
		t.Error("no answer has uneven shares, expected some")
	}
}
