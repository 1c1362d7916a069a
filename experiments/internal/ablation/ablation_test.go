package ablation

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
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func fakeAblation() []harness.Row {
	rows := slices.Concat(
		fakeRows("resnet50", harness.Tuned, 64, "images/s", 1500, 1510, 3000, 6000, 8000),
		fakeRows("bert-128", harness.Tuned, 32, "sentences/s", 900, 2000, 1900, 3000, 4000),
		fakeRows("resnet50", harness.PaperChunks, 64, "images/s", 1100, 1500, 2900, 6000, 8000),
		fakeRows("bert-128", harness.PaperChunks, 32, "sentences/s", 500, 1950, 1900, 3000, 4000),
	)
	rows[1].Notes = []string{"an example of a note"}
	return rows
}

func TestReport(t *testing.T) {
	rep, err := fullAblation().report(fakeAblation(), nil, nil, strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	harnesstest.Golden(t, "ablation/stdout.txt", []byte(rep.Text))
	var names []string
	for _, f := range rep.Files {
		names = append(names, f.Name)
		switch filepath.Ext(f.Name) {
		case ".png", ".svg", ".pdf": // package plots tests them
			if len(f.Data) == 0 {
				t.Errorf("%s is empty", f.Name)
			}
		default:
			harnesstest.Golden(t, "ablation/"+f.Name, f.Data)
			if filepath.Ext(f.Name) == ".tex" {
				harnesstest.LaTeX(t, f.Name, f.Data)
			}
		}
	}
	for _, want := range strings.Fields(
		"ablation.csv ablation.json ablation.md ablation.tex tuning.csv throughput.png throughput.svg throughput.pdf utilization.png utilization.svg utilization.pdf") {
		if !slices.Contains(names, want) {
			t.Errorf("no %s among %v", want, names)
		}
	}
}

func TestReportIsDeterministic(t *testing.T) {
	var first *harness.Report
	for range 3 {
		rep, err := fullAblation().report(fakeAblation(), nil, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = rep
		}
		for i, f := range rep.Files {
			if !bytes.Equal(f.Data, first.Files[i].Data) {
				t.Errorf("%s differs from one time to the next", f.Name)
			}
		}
	}
}

// requiredColumns are those that others rely on.
const requiredColumns = "model,hardware,batch,variant,throughput_per_s,latency_s,kernels,ddr_tensor_writes,llb_tensor_writes,l1_tensor_writes,mme_utilization,vme_utilization"

// Exact variants are alternatives to the last step: compared with it, and none of the
// steps that the mechanism is made of.
func TestExactSteps(t *testing.T) {
	var rows []harness.Row
	for _, x := range []struct {
		variant    string
		throughput float64
	}{{"tvm", 1}, {"cross-layer", 4}, {"exact-order", 5}, {"exact-all", 6}, {"ansor", 2}, {"graphturbo+ansor", 5}} {
		rows = append(rows, harness.Row{Model: "net", Variant: x.variant, ThroughputPerSecond: x.throughput})
	}
	rated := rate(rows)
	for i, want := range []float64{0, 4, 1.25, 1.5, 2, 1.25} {
		if rated[i].OverPrevious != want {
			t.Errorf("%s: %g over the previous one, want %g", rated[i].Variant, rated[i].OverPrevious, want)
		}
	}
}

func TestPlan(t *testing.T) {
	p, err := fullAblation().plan()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Cells) != 32+40 {
		t.Errorf("%d cells, want 2 networks x (7 variants x 2 policies + 2 searched ones), and 8 x 5", len(p.Cells))
	}
	if heuristic, err := fullAblation().heuristics().plan(); err != nil || len(heuristic.Cells) != 20+40 {
		t.Errorf("without exact methods: %v, want 2 networks x 5 variants x 2 policies, and 8 x 5", err)
	}
	chunks := map[string]int64{}
	for _, c := range p.Cells {
		data, err := json.Marshal(c.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		var in struct{ Options scheduler.Options }
		if err := json.Unmarshal(data, &in); err != nil {
			t.Fatal(err)
		}
		chunks[c.Label] = in.Options.Chunk
	}
	for label, want := range map[string]int64{
		"resnet50@framework tvm (tuned)": 0, "resnet50@framework tvm (paper)": 2, "resnet50 llb (paper)": 16, "resnet50 cross-layer (paper)": 16,
		"bert-128 cross-layer (tuned)": 0, "bert-128@framework tvm (paper)": 4, "bert-128 l1 (paper)": 8,
	} {
		if got, ok := chunks[label]; !ok || got != want {
			t.Errorf("%s has chunk %d, want %d", label, got, want)
		}
	}
}

// TestEndToEnd runs the real thing on a small batch.
func TestEndToEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates ten schedules")
	}
	small := ablation{
		hardware: "stcp920",
		variants: recipes.Table(),
		networks: []ablationNetwork{{model: "resnet50", batch: 6, unit: "images/s", layerChunk: 1, chunk: 2}},
	}
	dir := t.TempDir()
	var out bytes.Buffer
	if err := small.experiment().Run(context.Background(), harness.Options{Out: dir, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "ablation")
	f, err := os.Open(filepath.Join(dir, "ablation.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(records[0], ","); !strings.HasPrefix(got, requiredColumns+",") {
		t.Errorf("columns are %s, want them to begin with %s", got, requiredColumns)
	}
	if len(records) != 11 {
		t.Errorf("%d records, want a header and 10 rows", len(records))
	}
	column := func(record []string, name string) string { return record[slices.Index(records[0], name)] }
	number := func(record []string, name string) float64 {
		x, err := strconv.ParseFloat(column(record, name), 64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return x
	}
	for _, r := range records[1:] {
		name := column(r, "variant") + " " + column(r, "chunk_policy")
		throughput, latency := number(r, "throughput_per_s"), number(r, "latency_s")
		if math.Abs(throughput*latency-6) > 1e-6 {
			t.Errorf("%s: %g images/s and %g s do not make 6 images", name, throughput, latency)
		}
		sum := number(r, "compute_s") + number(r, "move_s") + number(r, "launch_s") + number(r, "idle_s")
		if math.Abs(sum-latency) > 1e-8*latency {
			t.Errorf("%s: the parts of the time are %g s, the whole %g s", name, sum, latency)
		}
		if number(r, "lower_bound_s") > latency || number(r, "lower_bound_s") <= 0 {
			t.Errorf("%s: the lower bound is %g s, the latency %g s", name, number(r, "lower_bound_s"), latency)
		}
		for _, unit := range []string{"mme", "vme"} {
			if u, b := number(r, unit+"_utilization"), number(r, unit+"_busy_share"); u <= 0 || u > 1 || b <= 0 || b > 1 {
				t.Errorf("%s: utilisation %g and busy share %g of %s, expected shares", name, u, b, unit)
			}
		}
		if column(r, "chunk_policy") == "tuned" {
			continue
		}
		if want := map[bool]string{true: "1", false: "2"}[column(r, "variant") == "tvm"]; column(r,
			"batches_per_cluster") != want {
			t.Errorf("%s: %s batches per cluster, want %s", name, column(r, "batches_per_cluster"), want)
		}
		if !strings.Contains(column(r, "notes"), "batch 6 does not divide over 4 clusters") {
			t.Errorf("%s: the notes %q do not say that the clusters take unequal shares", name, column(r, "notes"))
		}
	}
	// A tuned variant is at least as fast as with any other number of batches.
	for i := 1; i <= 5; i++ {
		if a, b := number(records[i], "throughput_per_s"), number(records[i+5], "throughput_per_s"); a < b {
			t.Errorf("%s: tuned %g images/s, with the paper's batches per cluster %g", column(records[i], "variant"), a, b)
		}
	}
	for _, want := range []string{"resnet50, batch 6, on stcp920: best batches per cluster",
		"Does the mechanism come out?", "cross-layer"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the output:\n%s", want, out.String())
		}
	}
}
