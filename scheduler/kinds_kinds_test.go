package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/tests/benchmarks"
)

// Side by side, a layer's work is on the cluster of its kind, and the kinds of a cluster share an LLB and a way to the
// DDR. Two chains without passing take about the longer of both, less than one behind the other.
func TestKindsSideBySide(t *testing.T) {
	recipe, err := Lookup("llb")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := benchmarks.Mixed(t, rand.New(rand.NewPCG(1, 1)))
	s.Clusters, s.LaunchSeconds, s.L1.SizeBytes, s.DDR.BandwidthBytesPerSecond = 1, 1e-9, 1<<20, 1e12
	s.CoreLink.BandwidthBytesPerSecond = 1e11
	s.CoreTypes = s.CoreTypes[:2]
	s.CoreTypes[1] = s.Clone().CoreTypes[0]
	s.CoreTypes[1].Name = "other"
	net := network.Network{Name: "chains", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("chains")
		for chain := range 2 {
			x := b.Input(fmt.Sprintf("x%d", chain), model.F16, 512*batch, 256)
			for i := range 4 {
				name := fmt.Sprintf("product%d.%d", chain, i)
				x = b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".w", model.F16, 256, 256))
			}
			b.Output(x)
		}
		return b.Build()
	}}
	seconds := map[Division]float64{}
	for _, by := range []Division{OverBatch, "kinds"} {
		r, err := Run(t.Context(), net, s, 1, recipe, Options{Chunk: 1, Clusters: by})
		if err != nil {
			t.Fatal(err)
		}
		seconds[by] = r.LatencySeconds()
		used := map[isa.ResourceKind]map[int32]bool{isa.DDRPort: {}, isa.LLBBandwidth: {}, isa.LinkIn: {}}
		kinds := map[int32]int{}
		for _, c := range r.Program.Commands {
			for _, u := range c.Uses {
				if of := used[r.Program.Resources[u.Resource].Kind]; of != nil {
					of[u.Resource] = true
				}
			}
			if c.Kind == isa.Matrix {
				kinds[r.Program.Queues[c.Queue].Cluster]++
			}
		}
		if by == "kinds" && (len(used[isa.DDRPort]) != 1 || len(used[isa.LLBBandwidth]) != 1 || len(used[isa.LinkIn]) != 2 ||
			len(kinds) != 2 || kinds[0] != kinds[1]) {
			t.Errorf("resources %v, products by cluster %v", used, kinds)
		}
		if u := r.Sim.MACUtilization; u <= 0 || u > 1 {
			t.Errorf("by %s, the units are busy for %g of the time", by.Name(), u)
		}
	}
	if gain := seconds[OverBatch] / seconds["kinds"]; gain < 1.5 || gain > 2.1 {
		t.Errorf("side by side is %.3f times as fast, expected about twice", gain)
	}
}
