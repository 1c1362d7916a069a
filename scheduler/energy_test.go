package scheduler_test

import (
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// The energy of a program against a second count, from the schedule alone: of operators their
// arithmetic, of steps what they read and write, where that lies.
func TestEnergyFromSchedule(t *testing.T) {
	for _, c := range []struct {
		network, variant string
		chunk            int64
	}{{"toy-fig3", "tvm", 4}, {"toy-fig3", "llb", 1}, {"toy-fig3", "cross-layer", 1}, {"alexnet", "cross-layer", 2},
		{"toy-fig5", "cross-layer", 2}} {
		variant := c.network + " " + c.variant
		recipe, err := recipes.Lookup(c.variant)
		if err != nil {
			t.Fatal(err)
		}
		machine := load(t, "stcp920")
		machine.LLB.SizeBytes = 64 << 20 // no weights go and come again
		r, err := scheduler.Run(t.Context(), open(t, c.network), machine, 4*c.chunk, recipe,
			scheduler.Options{Chunk: c.chunk})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Schedule
		type params struct { // as the generator keeps them
			tensor             model.TensorID
			offset, size, core int64
		}
		loaded := map[params]bool{}
		var ddr, gb, lb int64
		for i := range s.Steps {
			st := &s.Steps[i]
			if !r.Lower.KeepWeights && i > 0 && st.Instance != s.Steps[i-1].Instance {
				clear(loaded)
			}
			for _, x := range st.Reads {
				v := &s.Values[x.Value]
				switch v.Level {
				case schedule.DDR:
					ddr += x.UnionBytes
					gb += 2 * x.UnionBytes // in and out again
					lb += x.CoreNeedBytes * st.Cores
				case schedule.LLB:
					gb += x.UnionBytes
					lb += x.CoreNeedBytes * st.Cores
				default:
					gb += 2 * x.RemoteBytes
					lb += x.RemoteBytes + x.CoreRemoteBytes*st.Cores
				}
			}
			for _, id := range st.Writes {
				v := &s.Values[id]
				switch v.Level {
				case schedule.DDR:
					ddr += v.Bytes
					gb += 2 * v.Bytes
					lb += v.Bytes
				case schedule.LLB:
					gb += v.Bytes
					lb += v.Bytes
				}
			}
			for _, x := range st.Params {
				if key := (params{x.Tensor, x.Offset, x.UnionBytes, x.CoreBytes}); !loaded[key] {
					loaded[key] = true
					ddr += x.UnionBytes
					gb += x.UnionBytes
				}
				gb += x.UnionBytes
				lb += x.CoreBytes * st.Cores
			}
		}
		clusters := int64(machine.Clusters)
		got := r.Sim.Dynamic.AccessBytes
		if got[isa.DDR] != clusters*ddr || got[isa.LLB] != clusters*gb || got[isa.L1] != clusters*lb {
			t.Errorf("%s: moves read and write %d, %d, %d bytes of DDR, LLB and L1, the schedule %d, %d, %d", variant,
				got[isa.DDR], got[isa.LLB], got[isa.L1], clusters*ddr, clusters*gb, clusters*lb)
		}
		macs := int64(0) // of what instances make, each once
		for _, inst := range s.Instances.Instances {
			for _, id := range s.Grouping.Groups[inst.Group].Ops {
				if op := s.Graph.Op(id); s.Graph.OnMatrixUnit(op) {
					macs += s.Graph.Work(op, inst.Regions[op.Outputs[0]]).MACs
				}
			}
		}
		if r.Sim.MACs != clusters*macs {
			t.Errorf("%s: %d MACs ran, instances make %d in each of %d clusters", variant, r.Sim.MACs, macs, clusters)
		}
		e := machine.Energy
		want := e.MAC["f16"]*float64(clusters*macs) + e.Vector["f16"]*float64(r.Sim.VectorOps) +
			e.DDR*float64(clusters*ddr) + e.LLB*float64(clusters*gb) + e.L1*float64(clusters*lb) +
			e.StaticWatts*r.LatencySeconds()
		if total := r.Energy().Total(); math.Abs(total/want-1) > 1e-12 {
			t.Errorf("%s: %v J, want %v", variant, total, want)
		}
		// What the search takes it for.
		p, alike, err := lower.Outline("", r.Spec, r.Plans, r.Lower)
		if err != nil {
			t.Fatal(err)
		}
		macs, ops, bytes := sim.Accesses(p, alike)
		outlined := lower.Energy(r.Spec, r.Schedule.Graph, macs, ops, bytes, r.Sim.TotalPs)
		if joules := outlined.Total(); joules != r.Energy().Total() {
			t.Errorf("%s: the outline takes %v J, the program %v", variant, joules, r.Energy().Total())
		}
	}
}

// A machine without figures says nothing of energy, and can't be searched for the least.
func TestNoFiguresOfEnergy(t *testing.T) {
	machine := load(t, "stcp920")
	machine.Energy = nil
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(t.Context(), open(t, "toy-fig3"), machine, 4, recipe, scheduler.Options{})
	if err != nil || r.Energy() != nil {
		t.Errorf("%v, %v, want no energy", r.Energy(), err)
	}
	want := `objective is energy, expected latency: the description of accelerator "stcp920" has no figures of energy`
	if _, err := search.Best(t.Context(), open(t, "toy-fig3"), machine, 4,
		search.BestOptions{Objective: search.ByEnergy}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Each objective's answer is not worse by it than the others', from the same recipe.
func TestBestObjectives(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	by := map[search.Objective]func(*scheduler.Result) float64{
		search.ByLatency: (*scheduler.Result).LatencySeconds,
		search.ByEnergy:  (*scheduler.Result).Joules,
		search.ByEDP:     func(r *scheduler.Result) float64 { return r.LatencySeconds() * r.Joules() },
	}
	var answers []*scheduler.Result
	for _, o := range search.Objectives {
		found, err := search.Best(t.Context(), open(t, "toy-fig3"), load(t, "stcp920"), 16,
			search.BestOptions{Recipes: []scheduler.Recipe{recipe}, Evaluations: 40, Objective: o})
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, found.Result)
	}
	for i, o := range search.Objectives {
		for k, other := range answers {
			if got, least := by[o](answers[i]), by[o](other); got > least*(1+1e-6) {
				t.Errorf("%s: found %v, %v by %s", o, got, least, search.Objectives[k])
			}
		}
	}
}

// By any objective, `best` is not worse than the default, here one that no recipe begins with: layers over clusters.
func TestBestIsTheDefaultAtLeast(t *testing.T) {
	net, chip := open(t, "alexnet"), load(t, "stcp920")
	tiled, err := recipes.Lookup(recipes.Default)
	if err != nil {
		t.Fatal(err)
	}
	own, err := scheduler.Run(t.Context(), net, chip, 4, tiled, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := search.Best(t.Context(), net, chip, 4,
		search.BestOptions{Recipes: []scheduler.Recipe{tiled}, Evaluations: 1, Objective: search.ByEnergy})
	if err != nil || found.Joules() > own.Joules() {
		t.Errorf("%v, %v: %v J by the default", found, err, own.Joules())
	}
}
