package balancing

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

// Every experiment runs, and what is to be reached is reached.
func TestExperiments(t *testing.T) {
	type document struct {
		Claims []harness.Claim `json:"claims"`
		Lines  []harness.Line  `json:"published"`
	}
	got := map[string]document{}
	for _, e := range Experiments() {
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
