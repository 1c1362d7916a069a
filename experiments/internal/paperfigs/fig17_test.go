package paperfigs

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// What the stages take adds up to what the simulator says of the whole, and each has the
// arithmetic of its layers.
func TestStagesAddUp(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	src := harness.OpenNetwork("resnet50")
	for _, v := range []string{"tvm", "ordering", "cross-layer"} {
		row, err := recipes.Lookup(v)
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(context.Background(), src, spec, 16, row, scheduler.Options{Chunk: 2})
		if err != nil {
			t.Fatal(err)
		}
		run, err := byStage(r)
		if err != nil {
			t.Fatal(err)
		}
		var seconds, share float64
		var macs int64
		last := len(run.Rows) - 1
		for _, s := range run.Rows[:last] {
			seconds, share, macs = seconds+s.Seconds, share+s.Share, macs+s.MACs
			if s.MME < 0 || s.MME > 1 || s.VME < 0 || s.VME > 1 {
				t.Errorf("%s: %s uses %v of the MME and %v of the VME", v, s.Stage, s.MME, s.VME)
			}
		}
		all := run.Rows[last]
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-8*math.Max(math.Abs(a), math.Abs(b)) }
		if !near(seconds, all.Seconds) || math.Abs(share-1) > 1e-6 || macs != all.MACs {
			t.Errorf("%s: the stages take %v s, a share of %v and %d MACs; all take %v s and %d MACs", v, seconds, share, macs,
				all.Seconds, all.MACs)
		}
		if all.MACs*int64(spec.Clusters) != r.Sim.MACs {
			t.Errorf("%s: %d MACs in a cluster, %d in all", v, all.MACs, r.Sim.MACs)
		}
		// The last store ends the program, and clusters are alike.
		if !near(all.Seconds, r.LatencySeconds()) || !near(all.MME, r.Sim.MACUtilization) {
			t.Errorf("%s: %v s and %v of the MME, the simulator has %v s and %v", v, all.Seconds, all.MME, r.LatencySeconds(),
				r.Sim.MACUtilization)
		}
		g, err := src.Graph(2)
		if err != nil {
			t.Fatal(err)
		}
		names, of := stagesOf(g)
		want := make([]int64, len(names))
		for _, op := range g.Ops {
			// Fully connected layers count like convolutions: all there is in this network.
			want[of[op.ID]] += g.Work(op, nil).MACs
		}
		for i, s := range run.Rows[:last] {
			// Four images on a cluster, two in the graph.
			if s.Stage != names[i] || s.MACs != 2*want[i] {
				t.Errorf("%s: %s has %d MACs, want %s with %d", v, s.Stage, s.MACs, names[i], 2*want[i])
			}
		}
	}
}

func TestFig17(t *testing.T) {
	out := [2]string{t.TempDir(), t.TempDir()}
	var written [2]map[string][]byte
	for i, dir := range out {
		if err := fig17().experiment().Run(context.Background(), harness.Options{Out: dir, Workers: i + 1}); err != nil {
			t.Fatal(err)
		}
		compileTables(t, dir)
		written[i] = filesOf(t, filepath.Join(dir, "fig17"))
		if len(written[i]) < 3 {
			t.Fatalf("found %d files, expected at least the data, the text and a figure", len(written[i]))
		}
	}
	if !maps.EqualFunc(written[0], written[1], bytes.Equal) {
		t.Error("one worker and two give other files")
	}
	raw, err := os.ReadFile(filepath.Join(out[0], "fig17", "fig17.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Claims []harness.Claim
		Data   []stageRun
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if v := verdictOf(t, got.Claims, "GraphTurbo uses the units far more"); v != harness.Agreement(true) {
		t.Errorf("the last three stages: %s", v)
	}
	if len(got.Data) != 2 || len(got.Data[0].Rows) != 7 {
		t.Errorf("%+v, want two variants with stem, four stages, head and all", got.Data)
	}
}
