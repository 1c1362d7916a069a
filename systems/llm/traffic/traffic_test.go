package traffic

import (
	"context"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/systems/llm"
)

// Exact is never worse than greedy by the formulas, and the report has a row for each network.
func TestTensor(t *testing.T) {
	row, err := shard(context.Background(), "stcp920x4", "squeezenet", 1)
	if err != nil {
		t.Fatal(err)
	}
	if greedy, exact := row[0], row[1]; exact.Objective > greedy.Objective || exact.Status != "optimal" {
		t.Errorf("exactly %v s, %s, greedily %v", exact.Objective, exact.Status, greedy.Objective)
	}
	r, err := reportTensor(tensor(), [][]llm.Sharded{row})
	if err != nil || len(r.Files) == 0 {
		t.Errorf("the report: %v, %v", r, err)
	}
}

// No policy is faster than the best plan or the bound, and the report has a row for each policy and load.
func TestServing(t *testing.T) {
	s, err := serve(context.Background(), servingCases[0], 100, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range s.Loads {
		for _, r := range l.Policies {
			if r.LatencyMean < l.Bound {
				t.Errorf("%s at load %v: mean latency %v s, bound %v", r.Policy, l.Load, r.LatencyMean, l.Bound)
			}
		}
	}
	for _, one := range s.Small {
		if one.Status != milp.Optimal || one.Best < one.Bound || one.Best > (1+1e-12)*slices.Min(one.Policies) {
			t.Errorf("the best plan is %v: %v s, bound %v, policies %v", one.Status, one.Best, one.Bound, one.Policies)
		}
	}
	r, err := reportServing(servingExperiment(), []served{*s})
	if err != nil || len(r.Files) == 0 {
		t.Errorf("the report: %v, %v", r, err)
	}
}
