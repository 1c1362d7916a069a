package ablation

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots/recording"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// runToy simulates a small network; it is quick.
func runToy(t *testing.T, name string, chunk int64) *scheduler.Result {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	src := harness.OpenNetwork("toy-fig3")
	v, err := recipes.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, spec, 32, v, scheduler.Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The files of the experiment are what the viewer reads, and the same every time.
func TestTimelineReport(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	tl := timeline{hardware: "stcp920", variants: []string{"tvm", "cross-layer"}}
	once := func() *harness.Report {
		runs := []recording.Recorded{record(runToy(t, "tvm", 2), "images/s"), record(runToy(t, "cross-layer", 8), "images/s")}
		rep, err := tl.report(literature.Configurations()[:1], spec, runs)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range rep.Files {
			if filepath.Ext(f.Name) == ".tex" {
				harnesstest.LaTeX(t, f.Name, f.Data)
			}
		}
		return rep
	}
	a, b := once(), once()
	for i, f := range a.Files {
		if string(f.Data) != string(b.Files[i].Data) {
			t.Errorf("%s: other bytes the second time", f.Name)
		}
		if f.Name != recording.File {
			continue
		}
		var rec recording.Recording
		if err := json.Unmarshal(f.Data, &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Schema != 1 || len(rec.Configurations) != 1 || len(rec.Configurations[0].Variants) != 2 || rec.TickPs != 1000 {
			t.Errorf("recording of %d configurations, schema %d", len(rec.Configurations), rec.Schema)
		}
	}
	if len(a.Files) < 3 {
		t.Errorf("%d files, want JSON, Markdown and the recording", len(a.Files))
	}
}
