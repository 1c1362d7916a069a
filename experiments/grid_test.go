package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpearman(t *testing.T) {
	for _, tt := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{10, 20, 30, 40}, 1},
		{[]float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8}, // 1 - 6*4/(5*24)
		{[]float64{1, 1, 2}, []float64{5, 5, 9}, 1},
	} {
		if got := spearman(tt.a, tt.b); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%v, %v: %g, want %g", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		ours, published float64
		unit, want      string
	}{
		{110, 100, "images/s", "reproduced within 20 %"}, {0, 0, "tensors", "reproduced within 20 %"}, {2, 11.15, "x", "direction only"},
		{0.9, 11.15, "x", "not reproduced"}, {180, 100, "images/s", "within a factor of two"}, {3, 0, "tensors", "not reproduced"}, {1, 100, "ms", "not reproduced"},
	} {
		if got := (Line{Ours: tt.ours, Published: tt.published, Unit: tt.unit}).Verdict(); got != tt.want {
			t.Errorf("%g for %g %s: %s, want %s", tt.ours, tt.published, tt.unit, got, tt.want)
		}
	}
}

func TestConfigurations(t *testing.T) {
	list := Configurations()
	if len(list) != 10 {
		t.Fatalf("%d configurations", len(list))
	}
	for _, c := range list {
		if _, err := openNetwork(c.Network); err != nil {
			t.Errorf("%s: %v", c.Label, err)
		}
		// The paper's batches per cluster divide a cluster's share of the batch.
		for _, chunk := range []int64{c.TVMBatchesPerCluster, c.GraphTurboBatchesPerCluster} {
			if c.BatchSize%4 != 0 || c.BatchSize/4%chunk != 0 {
				t.Errorf("%s: %d per cluster of %d", c.Label, chunk, c.BatchSize)
			}
		}
	}
}

// A reduced grid runs, writes what it says and the same again from kept cells.
func TestGrid(t *testing.T) {
	dir := t.TempDir()
	g := grid{name: "small", description: "two variants", paper: "none", hardware: "stcp920", variants: []string{"tvm"}, policies: []ChunkPolicy{PaperChunks},
		report: func(rows gridRows, b *gridReport) error {
			if len(rows) != 10 {
				t.Errorf("%d rows", len(rows))
			}
			for _, c := range Configurations() {
				r := rows.at(c, "tvm", PaperChunks)
				if r.ThroughputPerSecond <= 0 || r.BatchesPerCluster != c.TVMBatchesPerCluster {
					t.Errorf("%s: %+v", c.Label, r)
				}
			}
			b.line(Line{What: "number", Unit: "x", Published: 1, Ours: 1.1})
			return nil
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
	if err := g.experiment().Run(context.Background(), Options{Out: dir, Stdout: &first, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	before := read()
	if err := g.experiment().Run(context.Background(), Options{Out: dir, Stderr: &notices, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if read() != before || !strings.Contains(notices.String(), "10 of 10 cells were finished before") {
		t.Errorf("the second run gives other files, or computes anew: %s", notices.String())
	}
	var out struct {
		Lines []Line `json:"published"`
		Rows  []Row  `json:"rows"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "small", "small.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil || len(out.Lines) != 1 || out.Lines[0].Experiment != "small" || len(out.Rows) != 10 {
		t.Errorf("%v: %+v", err, out.Lines)
	}
}

// The reports of all grid experiments can be written from rows of any content.
func TestGridReports(t *testing.T) {
	for _, g := range []grid{fig14(), fig15(), table3(), batchSelect()} {
		t.Run(g.name, func(t *testing.T) {
			rows := gridRows{}
			for i, c := range Configurations() {
				for j, v := range g.variants {
					for _, p := range g.policies {
						rows[gridKey(c.Network, c.BatchSize, v, p)] = Row{Model: c.Network, Variant: v, ThroughputPerSecond: float64(100*(j+1) + i), Batch: c.BatchSize, BatchesPerCluster: 1, Writes: Levels{int64(i), 0, 5}, MovedBytes: Levels{DDR: 1e9}, MMEUtilization: 0.1}
					}
				}
			}
			rep, err := g.write(func(b *gridReport) error { return g.report(rows, b) }, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(rep.text, "NaN") || strings.Contains(rep.text, "Inf") || !strings.Contains(rep.text, "densenet121") {
				t.Errorf("text:\n%s", rep.text)
			}
		})
	}
}

// The report of Figure 14 has a line for each published or measured throughput, and says
// which of them the fit has seen.
func TestFig14Lines(t *testing.T) {
	rows := gridRows{}
	for _, c := range Configurations() {
		for _, v := range []string{"tvm", "astitch", "cross-layer"} {
			for _, p := range []ChunkPolicy{PaperChunks, Tuned} {
				rows[gridKey(c.Network, c.BatchSize, v, p)] = Row{ThroughputPerSecond: 100, LatencySeconds: 1, LowerBoundSeconds: 0.5, Batch: c.BatchSize}
			}
		}
	}
	b := &gridReport{}
	if err := reportFig14(rows, b); err != nil {
		t.Fatal(err)
	}
	throughputs, seen := 0, 0
	for _, l := range b.lines {
		if l.Unit == "x" {
			continue
		}
		throughputs++
		if l.Calibration {
			seen++
		}
		if l.Calibration != (strings.HasPrefix(l.What, "A ") || strings.HasPrefix(l.What, "B ")) {
			t.Errorf("%s: seen by the fit: %t", l.What, l.Calibration)
		}
	}
	if throughputs != 12 || seen != 4 {
		t.Errorf("%d throughputs, %d of them seen by the fit; want those of TVM on ten and two measured, four seen", throughputs, seen)
	}
}
