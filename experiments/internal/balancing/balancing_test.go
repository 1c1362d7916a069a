package balancing

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/harness/harnesstest"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

// Stages take turns and so pass more batches than one cluster, and the report has a row for
// each batch.
func TestClusters(t *testing.T) {
	var rows []division
	for _, w := range clustersWays {
		d, err := scheduler.LookupDivision(w.by)
		if err != nil {
			t.Fatal(err)
		}
		row, err := divide(context.Background(), "squeezenet", 1, w.machine, d)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, *row)
	}
	if rows[1].RatePerSecond <= rows[0].RatePerSecond {
		t.Errorf("a pipeline passes %v batches of one a second, a cluster %v", rows[1].RatePerSecond, rows[0].RatePerSecond)
	}
	if rows[2].LatencySeconds > rows[0].LatencySeconds {
		t.Errorf("by layers a batch of one takes %v s, on one cluster %v", rows[2].LatencySeconds, rows[0].LatencySeconds)
	}
	if one, four := rows[1], rows[3]; four.RatePerSecond < one.RatePerSecond || one.LinkBytes != 0 {
		t.Errorf("a pipeline on four chips passes %v a second and %d bytes between them, on one chip %v and %d",
			four.RatePerSecond, four.LinkBytes, one.RatePerSecond, one.LinkBytes)
	}
	r, err := reportClusters(clusters(), rows)
	if err != nil || len(r.Files) == 0 {
		t.Errorf("the report: %v, %v", r, err)
	}
}

// Exact is never worse than greedy by the formulas, and the report has a row for each network.
func TestTensor(t *testing.T) {
	row, err := shard(context.Background(), "stcp920x4", "squeezenet", 1)
	if err != nil {
		t.Fatal(err)
	}
	if greedy, exact := row[0], row[1]; exact.Objective > greedy.Objective || exact.Status != "optimal" {
		t.Errorf("exactly %v s, %s, greedily %v", exact.Objective, exact.Status, greedy.Objective)
	}
	r, err := reportTensor(tensor(), [][]answers.Sharded{row})
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

// No plan is below a bound, nor the search above others by its formula, and the report has a row for each plan.
func TestPlacedExperts(t *testing.T) {
	r, err := route(context.Background(), routedCase{"stcp920x4", "olmoe-1b-7b", 12}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for k, a := range r.Plans {
		if a.Mean < a.MeanBound || a.Longest < a.LongestBound || k < 3 && a.Objective < r.Plans[2].Objective {
			t.Errorf("%s: %+v", a.Method, a)
		}
	}
	other := *r
	other.Skew = 2
	report, err := reportExperts(expertsExperiment(), []routed{*r, other})
	if err != nil || len(report.Files) == 0 {
		t.Errorf("the report: %v, %v", report, err)
	}
}

// Every experiment runs, and what is to be reached is reached.
func TestExperiments(t *testing.T) {
	type document struct {
		Claims []harness.Claim `json:"claims"`
		Lines  []harness.Line  `json:"published"`
	}
	got := map[string]document{}
	for _, e := range Experiments() {
		// minutes; see TestClusters, TestTensor, TestServing and TestPlacedExperts
		if slices.Contains([]string{"mofang-clusters", "tensor", "serving", "experts"}, e.Name) {
			continue
		}
		p, err := e.Plan()
		if err != nil {
			t.Fatal(err)
		}
		var results []json.RawMessage
		for _, c := range p.Cells {
			raw, err := harness.Compute(context.Background(), c)
			if err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
			results = append(results, raw)
		}
		r, err := p.Report(results)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		for _, f := range r.Files {
			if f.Name == e.Name+".tex" {
				harnesstest.LaTeX(t, f.Name, f.Data)
			}
			if f.Name == e.Name+".json" {
				var d document
				if err := json.Unmarshal(f.Data, &d); err != nil {
					t.Fatal(err)
				}
				got[e.Name] = d
			}
		}
	}
	// Claims in words are all as in the paper.
	for _, name := range []string{"mofang-fig13", "mofang-fig14", "mofang-fig19", "mofang-inception", "mofang-micro"} {
		n := 0
		for _, c := range got[name].Claims {
			if !c.Line {
				n++
				if c.Verdict != harness.Agreement(true) && (c.Verdict != harness.NotCounted || c.Ours != c.Paper) {
					t.Errorf("%s, %s: found %s, the paper has %s", name, c.Quantity, c.Ours, c.Paper)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s claims nothing", name)
		}
	}
	// Times within 15 %, and the identities of Figs. 20 and 21.
	within := map[string]float64{"mofang-fig17": 0.15, "mofang-fig19": 0.15, "mofang-inception": 0.15,
		"mofang-fig20": 0, "mofang-fig21": 0}
	for name, share := range within {
		lines := slices.DeleteFunc(got[name].Lines, func(l harness.Line) bool { return strings.Contains(l.What, "busy") })
		if len(lines) == 0 {
			t.Errorf("%s has no number", name)
		}
		for _, l := range lines {
			if math.Abs(l.Ratio()-1) > share {
				t.Errorf("%s, %s: found %v, published %v, expected within %v", name, l.What, l.Ours, l.Published, share)
			}
		}
	}
}
