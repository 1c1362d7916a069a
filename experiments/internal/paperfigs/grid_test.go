package paperfigs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/internal/literature"
)

// A reduced grid runs, writes what it says and the same again from kept cells.
func TestGrid(t *testing.T) {
	dir := t.TempDir()
	g := grid{name: "small", description: "two variants", paper: "none", hardware: "stcp920", variants: []string{"tvm"},
		policies: []harness.ChunkPolicy{harness.PaperChunks}, configurations: literature.Configurations,
		report: func(rows gridRows, b *harness.Document) {
			if len(rows) != 10 {
				t.Errorf("%d rows", len(rows))
			}
			for _, c := range literature.Configurations() {
				r := rows.at(c, "tvm", harness.PaperChunks)
				if r.ThroughputPerSecond <= 0 || r.BatchesPerCluster != c.TVMBatchesPerCluster {
					t.Errorf("%s: %+v", c.Label, r)
				}
			}
			b.Line(harness.Line{What: "number", Unit: "x", Published: 1, Ours: 1.1})
		}}
	read := func() string {
		var all bytes.Buffer
		for _, name := range []string{"small.json", "small.md", "small.csv"} {
			data, err := os.ReadFile(filepath.Join(dir, "small", name))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(data)
		}
		return all.String()
	}
	var first, notices bytes.Buffer
	if err := g.experiment().Run(context.Background(), harness.Options{Out: dir, Stdout: &first, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	before := read()
	if err := g.experiment().Run(context.Background(),
		harness.Options{Out: dir, Stderr: &notices, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if read() != before || !strings.Contains(notices.String(), "10 of 10 cells were finished before") {
		t.Errorf("the second run gives other files, or computes anew: %s", notices.String())
	}
	var out struct {
		Lines []harness.Line `json:"published"`
		Rows  []harness.Row  `json:"rows"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "small", "small.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil || len(out.Lines) != 1 || out.Lines[0].Experiment != "small" ||
		len(out.Rows) != 10 {
		t.Errorf("%v: %+v", err, out.Lines)
	}
}

// The reports of all grid experiments can be written from rows of any content.
func TestGridReports(t *testing.T) {
	for _, g := range []grid{fig14(), fig15(), table3(), batchSelect()} {
		t.Run(g.name, func(t *testing.T) {
			rows := gridRows{}
			for i, c := range g.configurations() {
				for j, v := range g.variants {
					for _, p := range g.policies {
						rows[gridKey(c.Network, c.BatchSize, v, p)] = harness.Row{Model: c.Network, Variant: v,
							ThroughputPerSecond: float64(100*(j+1) + i), SteadyThroughputPerSecond: float64(90*(j+1) + i),
							Batch: c.BatchSize, BatchesPerCluster: 1, Writes: harness.Levels{DDR: int64(i), LLB: 0, L1: 5},
							MovedBytes: harness.Levels{DDR: 1e9}, MMEUtilization: 0.1}
					}
				}
			}
			rep, err := g.experiment().WriteRows(g.hardware, func(b *harness.Document) { g.report(rows, b) }, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(rep.Text, "NaN") || strings.Contains(rep.Text, "Inf") ||
				!strings.Contains(rep.Text, "densenet121") {
				t.Errorf("text:\n%s", rep.Text)
			}
			for _, f := range rep.Files {
				if strings.HasSuffix(f.Name, ".tex") {
					harnesstest.LaTeX(t, f.Name, f.Data)
				}
			}
		})
	}
}

// The report of Figure 14 has a line for each published or measured throughput, and says
// which of them the fit has seen.
func TestFig14Lines(t *testing.T) {
	rows := gridRows{}
	for _, c := range literature.Configurations() {
		for _, v := range []string{"tvm", "astitch", "cross-layer"} {
			for _, p := range []harness.ChunkPolicy{harness.PaperChunks, harness.Tuned} {
				rows[gridKey(c.Network, c.BatchSize, v, p)] = harness.Row{ThroughputPerSecond: 100, LatencySeconds: 1,
					LowerBoundSeconds: 0.5, Batch: c.BatchSize}
			}
		}
	}
	b := harness.NewDocument(fig14().experiment())
	reportFig14(rows, b)
	throughputs, seen := 0, 0
	for _, l := range b.Lines {
		if l.Unit == "x" {
			continue
		}
		throughputs++
		if l.Calibration {
			seen++
		}
		if l.Calibration != (strings.Contains(literature.Calibrated, l.What[:1]) &&
			strings.HasSuffix(l.What, "TVM's throughput")) {
			t.Errorf("%s: seen by the fit: %t", l.What, l.Calibration)
		}
	}
	if throughputs != 12 || seen != len(literature.Calibrated) {
		t.Errorf(
			"%d throughputs, %d of them seen by the fit; want those of TVM on ten and two measured, those of TVM on "+
				literature.Calibrated+" seen", throughputs, seen)
	}
}

// The same for those by batch size.
func TestBatchReports(t *testing.T) {
	for _, e := range []byBatch{table1(), fig16()} {
		at := func(variant string, batch int64) harness.Row {
			return harness.Row{Model: e.network, Variant: variant, Batch: batch, ThroughputPerSecond: float64(1000 + batch),
				LatencySeconds: 0.01, BatchesPerCluster: 2, MMEUtilization: 0.5, VMEUtilization: 0.1, MMEBusyShare: 0.6}
		}
		rep, err := e.experiment().WriteRows(e.hardware, func(b *harness.Document) { e.report(at, b) }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(rep.Text, "NaN") || strings.Contains(rep.Text, "Inf") {
			t.Errorf("text:\n%s", rep.Text)
		}
		for _, f := range rep.Files {
			if strings.HasSuffix(f.Name, ".tex") {
				harnesstest.LaTeX(t, f.Name, f.Data)
			}
		}
	}
}
