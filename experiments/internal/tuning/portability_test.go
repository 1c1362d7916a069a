package tuning

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/hardware"
)

// smallPortability takes little time and has all kinds of machines: with an L1, with
// the LLB in its role, without an LLB, in a grid.
func smallPortability() portability {
	p := fullPortability()
	p.machines = []machine{{hardware: "stcp920"}, {hardware: "goya"}, {hardware: "ipu"},
		{hardware: "a100", grid: []int{9, 12}}}
	p.networks = []portedNetwork{{"toy-fig3", "images/s"}}
	p.batches = []int64{4, 8}
	return p
}

func TestPortability(t *testing.T) {
	p := smallPortability()
	var want map[string]string
	for _, workers := range []int{1, 3} {
		dir := t.TempDir()
		var out bytes.Buffer
		if err := p.experiment().Run(context.Background(),
			harness.Options{Out: dir, Workers: workers, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		harnesstest.LaTeXFiles(t, dir)
		got := harnesstest.Tree(t, dir)
		if want == nil {
			want = got
		}
		harnesstest.SameTree(t, got, want)
		for _, w := range []string{"toy-fig3, batch 4", "toy-fig3, batch 8", "goya-gb", "a100-grid", "i8"} {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q is not in the output:\n%s", w, out.String())
			}
		}
	}
	for _, ext := range []string{"csv", "json", "md", "tex", "png", "svg"} {
		if want[filepath.Join("portability", "portability."+ext)] == "" {
			t.Errorf("portability.%s is missing or empty", ext)
		}
	}
	records, err := csv.NewReader(strings.NewReader(want[filepath.Join("portability", "portability.csv")])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(records); n != 1+4*2*5 {
		t.Fatalf("%d records, want a header and 40 rows", n)
	}
	column := func(r []string, name string) string { return r[slices.Index(records[0], name)] }
	number := func(r []string, name string) float64 {
		x, err := strconv.ParseFloat(column(r, name), 64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return x
	}
	var first []string
	for i, r := range records[1:] {
		if i%5 == 0 {
			first = r
		}
		name := strings.Join(r[:5], " ")
		if got, want := number(r, "speedup_over_tvm"),
			number(r, "throughput_per_s")/number(first, "throughput_per_s"); math.Abs(got-want) > 1e-8*want {
			t.Errorf("%s: speedup %g, want %g", name, got, want)
		}
		if column(first, "variant") != "tvm" || column(first, "hardware") != column(r, "hardware") ||
			column(first, "batch") != column(r, "batch") {
			t.Errorf("%s is compared with %s", name, strings.Join(first[:5], " "))
		}
		for _, share := range []string{"mme_utilization", "ddr_bandwidth_share"} {
			if x := number(r, share); x <= 0 || x > 1 {
				t.Errorf("%s: %s is %g, expected a share", name, share, x)
			}
		}
		if number(r, "lower_bound_s") > number(r, "latency_s") {
			t.Errorf("%s: faster than the lower bound", name)
		}
		if wantType := map[bool]string{true: "i8", false: "f16"}[column(r, "hardware") == "goya-gb"]; column(r,
			"dtype") != wantType {
			t.Errorf("%s: type %s, want %s", name, column(r, "dtype"), wantType)
		}
	}
	var data struct {
		Rows []struct {
			Model   string  `json:"model"`
			DType   string  `json:"dtype"`
			Speedup float64 `json:"speedup_over_tvm"`
		} `json:"rows"`
	}
	if err := json.Unmarshal([]byte(want[filepath.Join("portability", "portability.json")]), &data); err != nil {
		t.Fatal(err)
	}
	if len(data.Rows) != 40 || data.Rows[0].Model != "toy-fig3" || data.Rows[0].Speedup != 1 ||
		data.Rows[5*2].DType != "i8" {
		t.Errorf("the JSON has %d rows, the first %+v", len(data.Rows), data.Rows[0])
	}
}

func TestTable5(t *testing.T) {
	p := fullTable5()
	p.batches = []int64{4}
	p.machines = p.machines[:1]
	dir := t.TempDir()
	var out bytes.Buffer
	if err := p.experiment().Run(context.Background(), harness.Options{Out: dir, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	harnesstest.LaTeXFiles(t, dir)
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
	// That is what fusing is for.
	if !(ddr[0] > ddr[1] && ddr[1] > ddr[2]) {
		t.Errorf("tvm, conv-fusion and cross-layer move %v bytes, want each fewer", ddr)
	}
}

// A published speedup stands beside its own machine and network only.
func TestPublishedSpeedups(t *testing.T) {
	group := func(hardware, model string, batch int64) []portedRow {
		row := func(variant string, throughput float64) portedRow {
			return portedRow{Row: harness.Row{Model: model, Hardware: hardware, Batch: batch, Variant: variant,
				ThroughputPerSecond: throughput}}
		}
		return []portedRow{row("tvm", 100), row("cross-layer", 300)}
	}
	table5 := fullTable5().published
	for _, c := range []struct {
		name      string
		published publishedSpeedup
		group     []portedRow
		want      float64
	}{
		{"another machine", table5[0], group("stcp920", "resnet18-tailor", 8), 0},
		{"another network", table5[0], group("a100", "resnet50", 8), 0},
		{"any batch", table5[0], group("a100", "resnet18-tailor", 5), 3},
		{"a grid of it", table5[0], group("a100-grid", "resnet18-tailor", 5), 3},
		{"a variant that did not run", table5[1], group("a100", "resnet18-tailor", 5), 0},
	} {
		if got := c.published.ours(c.group); got != c.want {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
	headlines := map[string]string{}
	for _, r := range harnesstest.PublishedCSV(t, "graphturbo_headlines.csv") {
		headlines[r["what"]] = r["value"]
	}
	for i, what := range []string{"ResNet18-Tailor on A100: GraphTurbo over TVM with CUTLASS",
		"ResNet18-Tailor on A100: GraphTurbo over CUTLASS convolution fusion"} {
		if got := strconv.FormatFloat(table5[i].value, 'f', 2, 64); headlines[what] != got {
			t.Errorf("%s: %s, the file has %q", what, got, headlines[what])
		}
	}
}

// Each machine of the experiment is one of the presets, and the grids are possible.
func TestMachinesLoad(t *testing.T) {
	names := map[string]bool{}
	for _, m := range append(fullPortability().machines, fullTable5().machines...) {
		spec, err := m.load()
		if err != nil {
			t.Errorf("%s: %v", m.hardware, err)
			continue
		}
		if baseMachine(spec.Name) != m.hardware {
			t.Errorf("%s is loaded as %s", m.hardware, spec.Name)
		}
		names[m.hardware] = true
	}
	for _, name := range hardware.Presets() {
		// tpu-v4i is the bound's outside case; these are in experiment measured, or of their makers and generations.
		measured := strings.Fields(
			"a100-40gb a100-80gb ascend310p ascend910a gaudi2 gemmini h100 h200 inferentia2 ipu-mk2 " +
				"mi210 t4 tpu-v3 trainium1 v100-16gb wormhole-n150")
		if name != "stcp920-paper" && name != "tpu-v4i" && !names[name] && !slices.Contains(measured, name) {
			t.Errorf("preset %s is in no experiment", name)
		}
	}
	if _, err := (machine{hardware: "a100", grid: []int{9, 9}}).load(); err == nil ||
		!strings.Contains(err.Error(), "a100 as a grid") {
		t.Errorf("an impossible grid gives %v", err)
	}
}
