package stitching

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/systems/astitchgpu/kernels"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// lines runs an experiment and returns the published numbers beside ours.
func lines(t *testing.T, e harness.Experiment) (map[string]harness.Line, *harness.Report) {
	t.Helper()
	p, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var results []json.RawMessage
	keys := map[string]bool{}
	for _, c := range p.Cells {
		if keys[c.Key] {
			t.Errorf("%s: two cells %s", e.Name, c.Key)
		}
		keys[c.Key] = true
		raw, err := harness.Compute(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, raw)
	}
	r, err := p.Report(results)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Report(results)
	if err != nil || again.Text != r.Text {
		t.Errorf("%s: another report of the same results: %v", e.Name, err)
	}
	out := map[string]harness.Line{}
	for _, f := range r.Files {
		switch {
		case strings.HasSuffix(f.Name, ".tex"):
			harnesstest.LaTeX(t, e.Name, f.Data)
		case f.Name == e.Name+".json":
			var doc struct {
				Lines []harness.Line `json:"published"`
			}
			if err := json.Unmarshal(f.Data, &doc); err != nil {
				t.Fatal(err)
			}
			for _, l := range doc.Lines {
				out[l.What] = l
			}
		}
	}
	return out, r
}

// quick leaves out the networks that take long.
func quick() study {
	s := full()
	if testing.Short() {
		s.networks = s.networks[:3]
	}
	return s
}

// What the issue of this project and the paper's text ask for exactly.
func TestReductionsAndBarrier(t *testing.T) {
	got, _ := lines(t, reductions())
	if len(got) != 7 {
		t.Errorf("%d published numbers, want 7", len(got))
	}
	for what, l := range got {
		if l.Ours != l.Published {
			t.Errorf("%s: %g, published %g", what, l.Ours, l.Published)
		}
	}
	got, _ = lines(t, barrier())
	if len(got) != 8 {
		t.Errorf("%d published numbers, want 8", len(got))
	}
	for what, l := range got {
		if math.Abs(l.Ratio()-1) > 0.05 {
			t.Errorf("%s: %g us, published %g", what, l.Ours, l.Published)
		}
	}
}

// Kernels are cut on every network, to a half or less; on encoders to between 44 and 25 %, as published; the
// example has the published counts.
func TestKernels(t *testing.T) {
	got, _ := lines(t, quick().kernels())
	for what, l := range got {
		switch {
		case strings.Contains(what, "Fig. 7") && l.Ours != l.Published:
			t.Errorf("%s: %g, published %g", what, l.Ours, l.Published)
		case strings.HasPrefix(what, "kernels of XLA") && !(l.Ours > 1.9 && l.Ours < 4):
			t.Errorf("%s: %g, published %g", what, l.Ours, l.Published)
		case (strings.HasSuffix(what, "BERT") || strings.HasSuffix(what, "ASR")) && (l.Ours < 1/.44 || l.Ours > 4):
			t.Errorf("%s: %g", what, l.Ours)
		}
	}
	if len(got) < 8 {
		t.Errorf("%d published numbers", len(got))
	}
}

// AStitch is faster than XLA on every network; the mean over all five is within 20 % of
// the published one.
func TestSpeedup(t *testing.T) {
	s := quick()
	got, _ := lines(t, s.speedup())
	for _, n := range s.networks {
		if l := got["AStitch over XLA, "+n.title]; !(l.Ours > 1) || l.Published != n.overXLA {
			t.Errorf("%s: %+v", n.title, l)
		}
	}
	if l := got["AStitch over XLA, mean"]; len(s.networks) == len(publishedNetworks) &&
		!(l.Ours > 1) {
		t.Errorf("mean %+v: %s", l, l.Verdict())
	}
}

// No step of the ablation makes CRNN slower, one does nothing, and the shares add up. Adapted mappings gain
// on the paper's two shapes, most of all on its many short rows.
func TestAblation(t *testing.T) {
	s := full()
	s.networks = s.networks[:1]
	got, r := lines(t, ablation(s))
	sum := 0.0
	for _, l := range got {
		sum += l.Ours
	}
	if len(got) != 3 || math.Abs(sum-100) > 0.1 || !strings.Contains(r.Text, "2 of 3, 0 slower") {
		t.Errorf("%v add up to %g %%\n%s", got, sum, r.Text)
	}
	m, err := simt.Load("v100-simt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		network     published
		least, most float64 // of XLA's time
	}{{irregular[0], 0.1, 0.5}, {irregular[1], 0.005, 0.1}} {
		seconds := func(method string) float64 {
			g, err := open(c.network.network, 1, method)
			if err != nil {
				t.Fatal(err)
			}
			r, err := kernels.Run(context.Background(), g, m, method)
			if err != nil {
				t.Fatal(err)
			}
			return r.Summary.Seconds
		}
		if gain := 1 - seconds("xla-mapping")/seconds("xla"); gain < c.least || gain > c.most {
			t.Errorf("%s: adapted mappings gain %g of the time", c.network.title, gain)
		}
	}
}

// A kernel for each operator is the slowest, AStitch the fastest of all systems.
func TestSystems(t *testing.T) {
	s := quick()
	_, r := lines(t, s.speedup())
	for _, f := range r.Files {
		if f.Name != "table-times.csv" {
			continue
		}
		rows, err := csv.NewReader(strings.NewReader(string(f.Data))).ReadAll()
		if err != nil || len(rows) != len(s.networks)+1 {
			t.Fatalf("%v, %v", rows, err)
		}
		for _, row := range rows[1:] {
			var ms []float64
			for _, x := range row[1 : len(systems)+1] {
				v, err := strconv.ParseFloat(x, 64)
				if err != nil {
					t.Fatal(err)
				}
				ms = append(ms, v)
			}
			if slices.Max(ms) != ms[0] || slices.Min(ms) != ms[len(ms)-1] {
				t.Errorf("%v", row)
			}
		}
		return
	}
	t.Error("no table of times")
}

// A training step is faster stitched than by XLA, and slowest with a kernel for each operator.
func TestTraining(t *testing.T) {
	s := study{"v100-simt", publishedNetworks[2:3], 4, true}
	got, _ := lines(t, s.trainingSteps())
	x, f := got["training, AStitch over XLA, mean"], got["training, AStitch over TensorFlow, mean"]
	if len(got) != 2 || !(x.Ours > 1) || !(f.Ours > x.Ours) {
		t.Errorf("%+v", got)
	}
}

// The published numbers of this package are those of the table beside the project.
func TestPublishedNumbers(t *testing.T) {
	table := map[string]string{}
	for _, row := range harnesstest.PublishedCSV(t, "astitch_headlines.csv") {
		table[row["what"]] = row["value"]
	}
	numbers := func(what string) []float64 {
		value, ok := table[what]
		if !ok {
			t.Fatalf("%q is not in the table", what)
		}
		var out []float64
		for _, word := range strings.FieldsFunc(value,
			func(r rune) bool { return r == '/' || r == ' ' || r == '-' || r == '>' }) {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
		return out
	}
	over := numbers("over XLA: CRNN, ASR, BERT, Transformer, DIEN")
	counts := numbers("kernels XLA -> AStitch: CRNN, ASR, BERT, Transformer, DIEN")
	copies := numbers("copies XLA -> AStitch: CRNN, ASR, BERT, Transformer, DIEN")
	for i, n := range publishedNetworks {
		if n.overXLA != over[i] || float64(n.xla) != counts[2*i] || float64(n.astitch) != counts[2*i+1] ||
			float64(n.copies[0]) != copies[2*i] || float64(n.copies[1]) != copies[2*i+1] {
			t.Errorf("%+v, the table has %g, %g and %g, %g and %g", n, over[i], counts[2*i], counts[2*i+1], copies[2*i],
				copies[2*i+1])
		}
	}
	for what, want := range map[string][]float64{
		"mean speedup over TensorFlow, XLA, TensorRT, inference": {meanOverTensorFlow, meanOverXLA, meanOverTensorRT},
		"largest speedup over TensorFlow, XLA, TensorRT, inference": {largestOverTensorFlow, largestOverXLA,
			largestOverTensorRT},
	} {
		if got := numbers(what); !slices.Equal(got, want) {
			t.Errorf("%s: %v, the table has %v", what, want, got)
		}
	}
	if got := numbers("speedup over TensorFlow, XLA, training"); !slices.Equal(got,
		[]float64{trainingOverTensorFlow, trainingOverXLA}) {
		t.Errorf("training: %v in the table", got)
	}
	for i, ms := range numbers("CRNN: XLA, + mapping, + stitching, + merging") {
		if steps[i].ms != ms {
			t.Errorf("%s: %g ms, the table has %g", steps[i].title, steps[i].ms, ms)
		}
	}
	for i, us := range numbers("grid barrier at 20, 40, 60, 80, 100, 120, 140, 160 blocks") {
		if barriers[i].us != us {
			t.Errorf("%d blocks: %g us, the table has %g", barriers[i].blocks, barriers[i].us, us)
		}
	}
}
