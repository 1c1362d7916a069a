package experiments

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

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
		src, err := openNetwork(name)
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
	src, err := openNetwork("toy-fig3")
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

func TestOptimality(t *testing.T) {
	o := fullOptimality()
	o.configurations = o.configurations[1:2]
	p, err := o.plan()
	if err != nil || len(p.cells) != 1 {
		t.Fatalf("%v: %d cells", err, len(p.cells))
	}
	result, err := compute(context.Background(), p.cells[0])
	if err != nil {
		t.Fatal(err)
	}
	rep, err := p.report([]json.RawMessage{result})
	if err != nil {
		t.Fatal(err)
	}
	var gap bool
	for _, f := range rep.files {
		gap = gap || strings.HasPrefix(f.name, "gap.")
	}
	if !gap {
		t.Error("no figure of the gaps")
	}
	var list []Decided
	if err := json.Unmarshal(result, &list); err != nil {
		t.Fatal(err)
	}
	gaps := map[string]float64{}
	for _, s := range o.gaps([][]Decided{list}) {
		gaps[s.Name] = s.Values[0]
	}
	if gaps[DecisionOrder] != 0 || gaps[DecisionBind] <= 0 || gaps[DecisionBind] >= 100 {
		t.Errorf("gaps %v, want none of the order, which is proven best, and one of the bindings", gaps)
	}
	if !strings.Contains(rep.text, "; the order is proven best") || !strings.Contains(rep.text, "loses most") {
		t.Errorf("text:\n%s", rep.text)
	}
}
