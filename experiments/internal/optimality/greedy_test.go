package optimality

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func TestOptimality(t *testing.T) {
	o := fullOptimality()
	o.configurations = o.configurations[1:2]
	p, err := o.plan()
	if err != nil || len(p.Cells) != 1 {
		t.Fatalf("%v: %d cells", err, len(p.Cells))
	}
	result, err := harness.Compute(context.Background(), p.Cells[0])
	if err != nil {
		t.Fatal(err)
	}
	rep, err := p.Report([]json.RawMessage{result})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rep.Files {
		if filepath.Ext(f.Name) == ".tex" {
			harnesstest.LaTeX(t, f.Name, f.Data)
		}
	}
	var gap, study bool
	for _, f := range rep.Files {
		gap, study = gap || strings.HasPrefix(f.Name, "gap."), study || strings.HasPrefix(f.Name, "study.")
	}
	if !gap || !study {
		t.Error("no figure of the gaps, or of the study")
	}
	var x studied
	if err := json.Unmarshal(result, &x); err != nil {
		t.Fatal(err)
	}
	by, class, any := x.speeds()
	for k, v := range by[:5] { // beside the search, which may be the faster one
		if v < 1 || v > any || exactly[k].decision == "split" && v > class {
			t.Errorf("%s: %g times as fast as greedy, bounds %g and %g", exactly[k].name, v, class, any)
		}
	}
	list := x.Rows
	gaps := map[string]float64{}
	for _, s := range o.gaps([][]answers.Compared{list}) {
		gaps[s.Name] = s.Values[0]
	}
	if gaps["order"] != 0 || gaps["bind"] <= 0 {
		t.Errorf("gaps %v, want none of the order, which is proven best, and one of the bindings", gaps)
	}
	if !strings.Contains(rep.Text, "With every decision exact, ") || !strings.Contains(rep.Text, "One at a time, ") {
		t.Errorf("text:\n%s", rep.Text)
	}
}

// By hand: of the three pairs one is ranked as simulated, one otherwise, and one differs in time
// alone; another decision and an answer that was not simulated do not count.
func TestConcordance(t *testing.T) {
	answer := func(decision string, objective, rate float64) answers.Compared {
		return answers.Compared{Decision: decision, Objective: &objective, ThroughputPerSecond: &rate}
	}
	unknown := answer("bind", 9, 9)
	unknown.ThroughputPerSecond = nil
	right, wrong := concordance([]answers.Compared{answer("bind", 1, 30), answer("bind", 2, 20), answer("bind", 2, 40),
		answer("order", 0, 1), unknown}, "bind")
	if right != 1 || wrong != 1 {
		t.Errorf("%d as simulated, %d otherwise, want 1 and 1", right, wrong)
	}
}
