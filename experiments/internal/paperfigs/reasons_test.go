package paperfigs

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
)

func TestReasonTVM(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	// 100 elements move 1 GB; each of the four clusters runs 50 kernels.
	r := harness.Row{Batch: 100, MovedBytes: harness.Levels{DDR: 1e9}, KernelsDynamic: 200, ThroughputPerSecond: 10_000}
	for _, tt := range []struct {
		published float64
		want      []string
	}{
		{10_500, nil},
		{11_000, []string{}}, // faster than ours, and possible: no reason
		{20_000, []string{"200 GB/s", "the DDR's 108"}}, // 20 000 × 10 MB
		{5_000, []string{"400 µs", "200 here", "20.5"}}, // 100 / 5000 / 50
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
	for i, c := range literature.Configurations() {
		rows[gridKey(c.Network, c.BatchSize, "l1", harness.PaperChunks)] = harness.Row{ThroughputPerSecond: 100,
			LatencySeconds: 1}
		rows[gridKey(c.Network, c.BatchSize, "ordering", harness.PaperChunks)] = harness.Row{
			ThroughputPerSecond: float64(110 + 10*i), LatencySeconds: 1, LowerBoundSeconds: 0.4}
	}
	if got := reasonGain(rows, "ordering", "l1", 2); got != "from 1.10 (A) to 2.00 (J)" {
		t.Error(got) // 1 s over 0.4 s is not below the published gain
	}
	if got := reasonGain(rows, "ordering", "l1", 3); !strings.Contains(got, "(J); ") ||
		!strings.Contains(got, "allow 2.50 at most") {
		t.Error(got)
	}
}

func TestReasonWrites(t *testing.T) {
	tvm, paper := harness.Levels{DDR: 100}, harness.Levels{DDR: 200}
	for _, tt := range []struct {
		name            string
		level           string
		ours, published harness.Levels
		single          int
		want            string
	}{
		{"near", "L1", harness.Levels{DDR: 1, LLB: 0, L1: 110}, harness.Levels{DDR: 1, LLB: 0, L1: 100}, 9, ""},
		{"kernel per layer", "DDR", tvm, paper, 37, "100 fewer results; 37 softmaxes"},
		{"a network without them", "DDR", tvm, paper, 1, ""},
		{"the output", "DDR", harness.Levels{DDR: 1, LLB: 0, L1: 100}, harness.Levels{DDR: 0, LLB: 0, L1: 200}, 9,
			"the network's output"},
		{"more", "L1", harness.Levels{DDR: 0, LLB: 0, L1: 300}, harness.Levels{DDR: 0, LLB: 0, L1: 200}, 9,
			"3.00 writes for each result of TVM, published 1.00"},
		{"other levels", "LLB", harness.Levels{DDR: 0, LLB: 60, L1: 50}, harness.Levels{DDR: 0, LLB: 10, L1: 210}, 9,
			"1.10 writes for each result of TVM, published 1.10: as many, but TVM has 100 results here and 200 there"},
	} {
		got := reasonWrites(tt.level, tt.ours, tt.published, tvm, paper, tt.single)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if n, err := singleOperators("bert-128"); err != nil || n != 12+25 {
		// a softmax and two norms a layer, one of the embeddings
		t.Errorf("%d softmaxes and normalisations in BERT-base, %v", n, err)
	}
}

func TestReasonBatches(t *testing.T) {
	best := harness.Row{Batch: 10, BatchesPerCluster: 2, ThroughputPerSecond: 9, MovedBytes: harness.Levels{DDR: 2e7},
		Writes: harness.Levels{DDR: 1, LLB: 0, L1: 9}}
	paper := harness.Row{Batch: 10, BatchesPerCluster: 4, ThroughputPerSecond: 5, MovedBytes: harness.Levels{DDR: 8e7},
		Writes: harness.Levels{DDR: 5, LLB: 0, L1: 9}}
	if got := reasonBatches(best, best); got != "" {
		t.Error(got)
	}
	if got := reasonBatches(best, paper); got !=
		"DDR traffic is 8.00 MB for each element with the paper's batch, 2.00 with ours; tensor writes DDR/LLB/L1 5/0/9, with ours 1/0/9" {
		t.Error(got)
	}
}
