package experiments

import (
	"context"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
)

// Exact answers are never above greedy ones, bounds never above exact ones, and a
// decision that is not replaced leaves the schedule as it is.
func TestCompareDecisions(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bert-128", "toy-fig3", "mobilenetv2"} {
		src, err := harness.OpenNetwork(name)
		if err != nil {
			t.Fatal(err)
		}
		list, err := CompareDecisions(context.Background(), src, spec, 32, CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := CompareDecisions(context.Background(), src, spec, 32, CompareOptions{})
		if err != nil || len(again) != len(list) {
			t.Fatalf("%d answers, then %d (%v)", len(list), len(again), err)
		}
		seen := map[string]bool{}
		var base float64
		for i, d := range list {
			seen[d.Decision] = true
			if d.Bound > d.Cost*(1+1e-9) {
				t.Errorf("%s: %+v: the bound is above the objective", name, d)
			}
			x := again[i]
			x.Seconds = d.Seconds
			if x != d {
				t.Errorf("%s: %+v, the second time %+v", name, d, x)
			}
			if d.Method == "algorithm-4" || d.Decision == DecisionAll && d.Method == "greedy" {
				if base == 0 {
					base = d.ThroughputPerSecond
				}
				if base <= 0 || d.ThroughputPerSecond != base {
					t.Errorf("%s: the greedy schedule does %g and %g", name, d.ThroughputPerSecond, base)
				}
			}
		}
		for _, decision := range Decisions() {
			if !seen[decision] {
				t.Errorf("%s: no answer for %s", name, decision)
			}
			g, ok1 := find(list, decision, isGreedy)
			e, ok2 := find(list, decision, isExact)
			if ok1 && ok2 && g.Cost > 0 && e.Cost > g.Cost*(1+1e-9) && e.Status != "infeasible" {
				t.Errorf("%s: exact %+v costs more than greedy %+v", name, e, g)
			}
		}
	}
	src, err := harness.OpenNetwork("toy-fig3")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		batch int64
		opt   CompareOptions
		want  string
	}{
		{32, CompareOptions{Decisions: []string{"fate"}}, `unknown decision "fate"`},
		{32, CompareOptions{Chunk: 3}, "chunk is 3"},
		{30, CompareOptions{}, "does not divide evenly"},
	} {
		if _, err := CompareDecisions(context.Background(), src, spec, tt.batch, tt.opt); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("batch %d, %+v: %v, want %q", tt.batch, tt.opt, err, tt.want)
		}
	}
}
