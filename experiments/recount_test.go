package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
)

// recount counts GraphTurbo's facts from the simulated rows in the JSON of the experiments and the published tables
// alone, by rules written down here a second time.
type recount struct {
	t            *testing.T
	out          string
	facts, holds int
}

type written struct {
	Rows   []harness.Row
	Claims []harness.Claim
	Lines  []harness.Line `json:"published"`
}

func (r *recount) read(name string) (w written) {
	data, err := os.ReadFile(filepath.Join(r.out, name, name+".json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var whole struct {
		written
		Data struct{ Rows []harness.Row }
	}
	if err := json.Unmarshal(data, &whole); err != nil { // what an experiment explains is of another form
		if err := json.Unmarshal(data, &whole.written); err != nil {
			r.t.Fatal(err)
		}
	}
	whole.Rows = append(whole.Rows, whole.Data.Rows...)
	return whole.written
}

func (r *recount) row(w written, network, variant string, batch int64, policy harness.ChunkPolicy) harness.Row {
	for _, x := range w.Rows {
		if x.Model == network && x.Variant == variant && x.Batch == batch && x.ChunkPolicy == policy {
			return x
		}
	}
	r.t.Fatalf("no row of %s, %s, %d, %s", network, variant, batch, policy)
	return harness.Row{}
}

func (r *recount) fact(holds bool) {
	r.facts++
	if holds {
		r.holds++
	}
}

func near(ours, published float64) bool {
	_, digits, _ := strings.Cut(strconv.FormatFloat(published, 'f', -1, 64), ".")
	return math.Abs(ours-published) <= max(published/5, .5*math.Pow10(-len(digits))*(1+1e-9))
}

func (r *recount) rate(ours, published float64) { r.fact(near(ours, published)) }

// ratio is on its side of 1, and a par within 20 %.
func (r *recount) ratio(ours, published float64) {
	if published == 1 {
		r.fact(math.Abs(ours-1) <= .2)
		return
	}
	r.fact(near(ours, published) && (ours > 1) == (published > 1))
}

func (r *recount) writes(ours, published int64) {
	if ours != 0 || published != 0 {
		d := max(ours-published, published-ours)
		r.fact(5*d <= published || published < 10 && d <= 1)
	}
}

// words are the claims without a number: their verdicts are in the JSON.
func (r *recount) words(names ...string) {
	for _, name := range names {
		for _, c := range r.read(name).Claims {
			if !c.Line && (c.Verdict == "holds" || c.Verdict == "misses") {
				r.fact(c.Verdict == "holds")
			}
		}
	}
}

// GraphTurbo's headline equals a recount from the rows and the published tables.
func TestRecount(t *testing.T) {
	if os.Getenv("DSASCHED_FULL") == "" {
		t.Skip("runs all figures of GraphTurbo: DSASCHED_FULL=1 does")
	}
	r := &recount{t: t, out: t.TempDir()}
	names := []string{"table4", "fig3", "fig5", "fig8", "fig10", "fig12", "fig13", "table1", "batch-select", "fig14", "fig15",
		"table3", "fig16", "fig17", "table5"}
	if err := Run(context.Background(), names, harness.Options{Out: r.out}); err != nil {
		t.Fatal(err)
	}
	fig14, fig15, table3, batches := r.read("fig14"), r.read("fig15"), r.read("table3"), r.read("batch-select")
	const paper, tuned = harness.PaperChunks, harness.Tuned
	means := map[string]float64{}
	for _, m := range literature.Models {
		network := literature.StandIns[m.Label]
		tvm := r.row(fig14, network, "tvm", m.BatchSize, paper)
		turbo := r.row(fig14, network, "cross-layer", m.BatchSize, paper)
		if !strings.Contains("AGI", m.Label) { // fitted
			r.rate(tvm.ThroughputPerSecond, m.TVMThroughputPerSecond)
		}
		for _, x := range [][2]string{{"tvm", "cross-layer"}, {"astitch", "cross-layer"}} {
			means[x[0]] += turbo.ThroughputPerSecond / r.row(fig14, network, x[0], m.BatchSize, paper).ThroughputPerSecond / 10
		}
		for _, x := range [][2]string{{"llb", "l1"}, {"l1", "ordering"}, {"ordering", "cross-layer"}} {
			means[x[1]] += r.row(fig15, network, x[1], m.BatchSize, paper).ThroughputPerSecond /
				r.row(fig15, network, x[0], m.BatchSize, paper).ThroughputPerSecond / 10
		}
		if m.Label != "B" { // where TVM's rule was read
			for _, l := range batches.Lines {
				if strings.HasPrefix(l.What, m.Label+" ") && strings.Contains(l.What, "TVM") {
					r.rate(l.Ours, float64(m.TVMBatchesPerCluster))
				}
			}
		}
		r.rate(float64(r.row(batches, network, "cross-layer", m.BatchSize, tuned).BatchesPerCluster),
			float64(m.GraphTurboBatchesPerCluster))
		w := literature.WritesOf(m.Label)
		for _, x := range []struct {
			variant string
			theirs  harness.Levels
		}{{"tvm", w.TVM}, {"cross-layer", w.GraphTurbo}} {
			ours := r.row(table3, network, x.variant, m.BatchSize, paper).Writes
			if x.variant != "tvm" || !strings.Contains("CE", m.Label) { // as B
				r.writes(ours.DDR, x.theirs.DDR)
				r.writes(ours.LLB, x.theirs.LLB)
			}
			share := func(l harness.Levels) float64 {
				return harness.Round(100 * float64(l.L1) / float64(l.DDR+l.LLB+l.L1))
			}
			if ours.L1 != 0 || x.theirs.L1 != 0 {
				r.rate(share(ours), share(x.theirs))
			}
		}
	}
	r.ratio(means["tvm"], 11.15)
	r.ratio(means["astitch"], 6.16)
	r.ratio(means["l1"], 3.67)
	r.ratio(means["ordering"], 2.20)
	r.ratio(means["cross-layer"], 1.72)
	r.ratio((r.row(fig14, "resnet50", "cross-layer", 64, paper).ThroughputPerSecond/8725.94+
		r.row(fig14, "bert-128", "cross-layer", 32, paper).ThroughputPerSecond/4192)/2, 1.04)
	table1 := r.read("table1")
	for _, batch := range []int64{8, 16} {
		r.ratio(r.row(table1, "bert-128", "cross-layer", batch, harness.TunedInARow).ThroughputPerSecond/
			r.row(table1, "bert-128", "tvm", batch, harness.TunedInARow).ThroughputPerSecond, 1)
	}
	fig3 := r.read("fig3")
	r.ratio(r.row(fig3, "toy-fig3", "cross-layer", 32, paper).ThroughputPerSecond/
		r.row(fig3, "toy-fig3", "tvm", 32, paper).ThroughputPerSecond, 7.97)
	table5 := r.read("table5")
	table5.Rows = slices.DeleteFunc(table5.Rows, func(x harness.Row) bool { return x.Hardware != "a100" })
	for variant, published := range map[string]float64{"tvm": 1.23, "conv-fusion": 1.06} {
		sum, n := 0.0, 0.0
		for _, x := range table5.Rows {
			if x.Variant == variant {
				sum += r.row(table5, x.Model, "cross-layer", x.Batch, x.ChunkPolicy).ThroughputPerSecond / x.ThroughputPerSecond
				n++
			}
		}
		r.ratio(sum/n, published)
	}
	for _, c := range r.read("table4").Claims {
		var ours float64
		fmt.Sscanf(c.Ours, "%g", &ours)
		r.ratio(ours, 1)
	}
	r.words("fig3", "fig5", "fig8", "fig10", "fig12", "fig13", "fig16", "fig17")
	text, err := os.ReadFile(filepath.Join(r.out, "report.md"))
	if want := fmt.Sprintf("**GraphTurbo**: %d of %d published facts hold.", r.holds, r.facts); err != nil ||
		!strings.Contains(string(text), want) {
		_, after, _ := strings.Cut(string(text), "**GraphTurbo**")
		t.Errorf("%v: the report has %.60s, a recount %s", err, after, want)
	}
}
