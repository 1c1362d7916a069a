package tuning

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/calibration"
	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Two configurations: a slower constant never makes anything faster, the throughputs as
// fitted are those of a plain run, and the report is complete and the same for any number
// of workers.
func TestSensitivity(t *testing.T) {
	s := fullSensitivity()
	s.labels = "FI"
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(s.variants); len(p.Cells) != want {
		t.Fatalf("%d cells, want %d", len(p.Cells), want)
	}
	spec, err := hardware.Load(s.hardware)
	if err != nil {
		t.Fatal(err)
	}
	list := turns(spec)
	for _, c := range p.Cells[:len(s.variants)] {
		result, err := c.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		r := result.(sensitivityCell)
		for i, k := range list[1:] {
			// Launch and gap slow down when doubled, a share of bandwidth when halved.
			slower := (k.value > calibration.Constants()[k.constant].Get(spec)) == (calibration.Constants()[k.constant].Unit != "")
			if ratio := r.Throughput[i+1] / r.Throughput[0]; slower && ratio > 1.0001 || !slower && ratio < 0.9999 {
				t.Errorf("%s: %g times the throughput with %s", c.Key, ratio, k.label())
			}
		}
	}
	src := harness.OpenNetwork("dlrm")
	v, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := scheduler.Run(context.Background(), src, spec, literature.ConfigurationOf("F").BatchSize, v,
		scheduler.Options{Chunk: literature.ConfigurationOf("F").TVMBatchesPerCluster})
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.Cells[0].Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := first.(sensitivityCell).Throughput[0]; math.Abs(got/plain.ThroughputPerSecond()-1) > 1e-6 {
		t.Errorf("%g as fitted, a plain run gives %g", got, plain.ThroughputPerSecond())
	}

	files := func(workers int) string {
		dir := t.TempDir()
		var out bytes.Buffer
		if err := s.experiment().Run(context.Background(),
			harness.Options{Out: dir, Stdout: &out, Workers: workers}); err != nil {
			t.Fatal(err)
		}
		harnesstest.LaTeXFiles(t, dir)
		for _, name := range []string{"sensitivity.md", "sensitivity.csv", "sensitivity.json", "tornado.svg"} {
			data, err := os.ReadFile(filepath.Join(dir, "sensitivity", name))
			if err != nil {
				t.Fatal(err)
			}
			out.Write(data)
		}
		return out.String()
	}
	one := files(2)
	if !raceDetector { // which makes it slow, and needs two workers only
		if alone := files(1); one != alone {
			t.Error("the number of workers shows in the files")
		}
	}
	for _, want := range []string{"mean speedup over TVM", "launch at", "faster than TVM on each network",
		"41us !", "mme.block"} {
		if !strings.Contains(one, want) {
			t.Errorf("%q is not in the report", want)
		}
	}
}

// The sentences about what depends on a constant, from made-up throughputs.
func TestSensitivitySentences(t *testing.T) {
	s := fullSensitivity()
	spec, err := hardware.Load(s.hardware)
	if err != nil {
		t.Fatal(err)
	}
	list := turns(spec)
	report := func(speedup func(turn int) float64) string {
		at := func(c literature.Configuration, variant string, turn int) float64 {
			if variant == "cross-layer" {
				return c.TVMThroughputPerSecond * speedup(turn)
			}
			return c.TVMThroughputPerSecond
		}
		b := harness.NewDocument(s.experiment())
		s.report(list, literature.Configurations(), at, b)
		rep, err := b.Report(harness.Data{})
		if err != nil {
			t.Fatal(err)
		}
		return rep.Text
	}
	if got := report(func(int) float64 { return 11 }); !strings.Contains(got, "No verdict depends on a fitted constant") ||
		strings.Contains(got, "Depends on") {
		t.Errorf("nothing changes:\n%s", got)
	}
	got := report(func(turn int) float64 { return []float64{11, 0.9, 11, 11, 11, 11, 11}[turn] })
	for _, want := range []string{
		"Depends on a fitted constant: whether the mean speedup over TVM is within 20 % of the published mean (it is 11.00): the figure loses it with launch at 10.25us.",
		"That GraphTurbo is faster than TVM on each network depends on a constant",
		"No fitted constant at half or double changes the verdict on: mean speedup over AStitch; mean gain of l1 over llb"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
