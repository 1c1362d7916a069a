package tuning

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/hardware"
)

// Turning a knob changes that quantity and no other, and leaves the preset alone.
func TestKnobs(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	before, err := harness.Hash(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range knobs {
		low, high := 1.0, 1.0
		for _, f := range k.factors {
			low, high = min(low, f), max(high, f)
			s, value := turned(spec, k, f)
			if err := s.Validate(); err != nil {
				t.Errorf("%s x %g: %v", k.name, f, err)
			}
			h, err := harness.Hash(s)
			if err != nil {
				t.Fatal(err)
			}
			if (h == before) != (f == 1) {
				t.Errorf("%s x %g: same accelerator: %t", k.name, f, h == before)
			}
			_, base := turned(spec, k, 1)
			if r := value / base; r < 0.9*f || r > 1.1*f {
				t.Errorf("%s x %g: %g of %g", k.name, f, value, base)
			}
		}
		if high/low < 60 {
			t.Errorf("%s goes from %g to %g", k.name, low, high)
		}
	}
	if after, _ := harness.Hash(spec); after != before {
		t.Error("the preset was changed")
	}
}

func TestSweep(t *testing.T) {
	s := fullSweep()
	s.networks = s.networks[:1]
	s.networks[0].model, s.networks[0].batch = "toy-fig5", 4
	s.knobs = []knob{knobs[0], knobs[5]}
	s.knobs[0].factors = []float64{0.001, 1}
	s.knobs[1].factors = []float64{1, 10}
	dir := t.TempDir()
	if err := s.experiment().Run(context.Background(), harness.Options{Out: dir, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	harnesstest.LaTeXFiles(t, dir)
	data, err := os.ReadFile(filepath.Join(dir, "sweep", "sweep.json"))
	if err != nil {
		t.Fatal(err)
	}
	var points []sweepPoint
	if err := json.Unmarshal(data, &points); err != nil || len(points) != 4 {
		t.Fatalf("%v: %d points", err, len(points))
	}
	for _, p := range points {
		if p.Error != "" || p.speedup() <= 0 {
			t.Errorf("%+v", p)
		}
	}
	if points[0].GraphTurbo >= points[1].GraphTurbo {
		t.Errorf("a kibibyte of L1 does as well as a mebibyte: %+v", points[:2])
	}
	if p := (sweepPoint{TVM: 5}); p.speedup() != 0 {
		t.Errorf("speedup %g without a schedule", p.speedup())
	}
	// The same machine twice, and one whose launches take ten times as long.
	if points[1].TVM != points[2].TVM || points[3].TVM >= points[2].TVM {
		t.Errorf("%+v", points[1:])
	}
	md, err := os.ReadFile(filepath.Join(dir, "sweep", "sweep.md"))
	if err != nil || !strings.Contains(string(md), "the speedup goes from") {
		t.Errorf("%v\n%s", err, md)
	}
}

func TestLeastSpeedup(t *testing.T) {
	points := []sweepPoint{{Value: 1}, {Value: 2, TVM: 1, GraphTurbo: 3}, {Value: 3, TVM: 1, GraphTurbo: 0.5}}
	if p, ok := leastSpeedup(points); !ok || p.Value != 3 {
		t.Errorf("%+v, %t", p, ok)
	}
	if _, ok := leastSpeedup(points[:1]); ok {
		t.Error("a machine on which nothing fits has a speedup")
	}
}

func TestWhere(t *testing.T) {
	point := func(value, speedup float64) sweepPoint {
		return sweepPoint{Model: "m", Knob: "LB size", Value: value, Unit: "KiB", TVM: 1, GraphTurbo: speedup}
	}
	for _, tt := range []struct {
		points []sweepPoint
		want   string
	}{
		{[]sweepPoint{point(100, 3), point(300, 4)}, ""},
		{[]sweepPoint{point(300, 2), point(100, 0.5)}, ", and passes 1 between 100 KiB and 300 KiB"},
		{[]sweepPoint{point(100, 1.2), point(300, 4), point(900, 1.4)},
			", and passes 1.5 between 100 KiB and 300 KiB, passes 1.5 between 300 KiB and 900 KiB"},
		// what does not fit has no speedup
		{[]sweepPoint{{Model: "m", Knob: "LB size", Value: 1, Unit: "KiB"}, point(300, 4)}, ""},
	} {
		if got := where("LB size", "m", tt.points); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
