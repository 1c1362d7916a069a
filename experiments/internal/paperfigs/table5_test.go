package paperfigs

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

func TestTable5(t *testing.T) {
	p := table5{[][]int{nil}, []int64{4}}
	dir := t.TempDir()
	var out bytes.Buffer
	if err := p.experiment().Run(context.Background(), harness.Options{Out: dir, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	compileTables(t, dir)
	for _, w := range []string{"conv-fusion", "1.23", "1.06", "Table 5"} {
		if !strings.Contains(out.String(), w) {
			t.Errorf("%q is not in the output:\n%s", w, out.String())
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "table5", "table5.csv"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 4 {
		t.Fatalf("%d records, want a header and 3 rows", len(records))
	}
	moved := slices.Index(records[0], "ddr_moved_bytes")
	var ddr []int64
	for _, r := range records[1:] {
		n, err := strconv.ParseInt(r[moved], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ddr = append(ddr, n)
	}
	// Fusion saves traffic of the DDR.
	if !(ddr[0] > ddr[1] && ddr[1] > ddr[2]) {
		t.Errorf("tvm, conv-fusion and cross-layer move %v bytes, want each fewer", ddr)
	}
}

// A published speedup has ours beside it where both variants ran.
func TestPublishedSpeedups(t *testing.T) {
	row := func(variant string, throughput float64) table5Row {
		return table5Row{Row: harness.Row{Variant: variant, ThroughputPerSecond: throughput}}
	}
	group := []table5Row{row("tvm", 100), row("cross-layer", 300)}
	for i, want := range []float64{3, 0} { // conv-fusion did not run
		if got := table5Published[i].ours(group); got != want {
			t.Errorf("over %s: %g, want %g", table5Published[i].over, got, want)
		}
	}
	headlines := map[string]string{}
	for _, r := range harnesstest.PublishedCSV(t, "graphturbo_headlines.csv") {
		headlines[r["what"]] = r["value"]
	}
	for i, what := range []string{"ResNet18-Tailor on A100: GraphTurbo over TVM with CUTLASS",
		"ResNet18-Tailor on A100: GraphTurbo over CUTLASS convolution fusion"} {
		if got := strconv.FormatFloat(table5Published[i].value, 'f', 2, 64); headlines[what] != got {
			t.Errorf("%s: %s, the file has %q", what, got, headlines[what])
		}
	}
}

// The grid is possible, and an impossible one is refused.
func TestArranged(t *testing.T) {
	if spec, err := arranged([]int{9, 12}); err != nil || spec.Name != "a100-grid" {
		t.Errorf("%v, %v", spec, err)
	}
	if _, err := arranged([]int{9, 9}); err == nil ||
		!strings.Contains(err.Error(), "a100 as a grid") {
		t.Errorf("an impossible grid gives %v", err)
	}
}

// compileTables compiles the tables in a folder of results, each experiment's by itself.
func compileTables(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.tex"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		harnesstest.LaTeX(t, filepath.Base(f), data)
	}
}
