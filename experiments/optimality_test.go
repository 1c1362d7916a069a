package experiments

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
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
	var gap bool
	for _, f := range rep.Files {
		gap = gap || strings.HasPrefix(f.Name, "gap.")
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
	if !strings.Contains(rep.Text, "; the order is proven best") || !strings.Contains(rep.Text, "loses most") {
		t.Errorf("text:\n%s", rep.Text)
	}
}
