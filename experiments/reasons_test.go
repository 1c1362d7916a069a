package experiments

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

func TestReasonTVM(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	// 100 elements move 1 GB; each of the four clusters runs 50 kernels.
	r := Row{Batch: 100, MovedBytes: Levels{DDR: 1e9}, KernelsDynamic: 200, ThroughputPerSecond: 10_000}
	for _, tt := range []struct {
		published float64
		want      []string
	}{
		{10_500, nil},
		{11_000, []string{}}, // faster than ours, and possible: no reason
		{20_000, []string{"200 GB/s", "DDR of 108"}},                // 20 000 × 10 MB
		{5_000, []string{"published: 400 µs", "ours: 200", "5.00"}}, // 100 / 5000 / 50
	} {
		got := reasonTVM(r, tt.published, spec)
		if len(tt.want) == 0 && got != "" {
			t.Errorf("%g: %q", tt.published, got)
		}
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%g: %q has no %q", tt.published, got, w)
			}
		}
	}
}

func TestReasonGain(t *testing.T) {
	rows := gridRows{}
	for i, c := range Configurations() {
		rows[gridKey(c.Network, c.BatchSize, "l1", PaperChunks)] = Row{ThroughputPerSecond: 100, LatencySeconds: 1}
		rows[gridKey(c.Network, c.BatchSize, "ordering", PaperChunks)] = Row{ThroughputPerSecond: float64(110 + 10*i), LatencySeconds: 1, LowerBoundSeconds: 0.4}
	}
	if got := reasonGain(rows, "ordering", "l1", 2); got != "from 1.10 (A) to 2.00 (J)" {
		t.Error(got) // 1 s over 0.4 s is not below the published gain
	}
	if got := reasonGain(rows, "ordering", "l1", 3); !strings.Contains(got, "(J); ") || !strings.Contains(got, "allow 2.50 at most") {
		t.Error(got)
	}
}

func TestReasonWrites(t *testing.T) {
	tvm, paper := Levels{DDR: 100}, Levels{DDR: 200}
	for _, tt := range []struct {
		name            string
		level           string
		ours, published Levels
		single          int
		want            string
	}{
		{"near", "L1", Levels{1, 0, 110}, Levels{1, 0, 100}, 9, ""},
		{"kernel per layer", "DDR", tvm, paper, 37, "100 fewer results; 37 softmaxes"},
		{"a network without them", "DDR", tvm, paper, 1, ""},
		{"the output", "DDR", Levels{1, 0, 100}, Levels{0, 0, 200}, 9, "the network's output"},
		{"more", "L1", Levels{0, 0, 300}, Levels{0, 0, 200}, 9, "3.00 writes for each result of TVM, published 1.00"},
		{"other levels", "LLB", Levels{0, 60, 50}, Levels{0, 10, 210}, 9, "1.10 writes for each result of TVM, published 1.10: as many, but TVM has 100 results here and 200 there"},
	} {
		got := reasonWrites(tt.level, tt.ours, tt.published, tvm, paper, tt.single)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if n, err := singleOperators("bert-128"); err != nil || n != 12+25 {
		t.Errorf("%d softmaxes and normalisations in BERT-base, %v", n, err) // a softmax and two norms a layer, one of the embeddings
	}
}

func TestReasonBatches(t *testing.T) {
	best := Row{Batch: 10, BatchesPerCluster: 2, ThroughputPerSecond: 9, MovedBytes: Levels{DDR: 2e7}, Writes: Levels{1, 0, 9}}
	paper := Row{Batch: 10, BatchesPerCluster: 4, ThroughputPerSecond: 5, MovedBytes: Levels{DDR: 8e7}, Writes: Levels{5, 0, 9}}
	if got := reasonBatches(best, best); got != "" {
		t.Error(got)
	}
	if got := reasonBatches(best, paper); got != "with the paper's the DDR carries 8.00 MB for each element, with ours 2.00; tensor writes DDR/LLB/L1 5/0/9, with ours 1/0/9" {
		t.Error(got)
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
		{[]sweepPoint{point(100, 1.2), point(300, 4), point(900, 1.4)}, ", and passes 1.5 between 100 KiB and 300 KiB, passes 1.5 between 300 KiB and 900 KiB"},
		{[]sweepPoint{{Model: "m", Knob: "LB size", Value: 1, Unit: "KiB"}, point(300, 4)}, ""}, // what does not fit has no speedup
	} {
		if got := where("LB size", "m", tt.points); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
