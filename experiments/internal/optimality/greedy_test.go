package optimality

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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
	if !slices.ContainsFunc(rep.Files, func(f harness.File) bool { return strings.HasPrefix(f.Name, "study.") }) {
		t.Error("no figure of the study")
	}
	var x studied
	if err := json.Unmarshal(result, &x); err != nil {
		t.Fatal(err)
	}
	by, any := x.speeds()
	for k, v := range by {
		if v < 1 || v > any {
			t.Errorf("%s: %g times as fast as greedy, bound %g", exactly[k].name, v, any)
		}
	}
	order, _ := find(x.Rows, "order", isGreedy)
	bind, _ := find(x.Rows, "bind", isGreedy)
	if order.Status != "optimal" || bind.Status != "optimal" {
		t.Errorf("order is %s and bindings %s, want both proven of the greedy ones", order.Status, bind.Status)
	}
	// What this prints of the network stands in the document, whose sentences the README begins with.
	document := read(t, "docs/study.md")
	page := slices.IndexFunc(rep.Files, func(f harness.File) bool { return filepath.Ext(f.Name) == ".md" })
	rows := 0
	for line := range strings.Lines(string(rep.Files[page].Data)) {
		if strings.HasPrefix(line, "| bert-128 |") {
			if rows++; !strings.Contains(document, line) {
				t.Errorf("docs/study.md lacks the line\n%s", line)
			}
		}
	}
	if rows < 9 {
		t.Errorf("the page has %d rows of bert-128, expected 9 at least", rows)
	}
	_, notes, _ := strings.Cut(document, "## Notes\n\n")
	notes, _, _ = strings.Cut(notes, "\n\n")
	for k, sentence := range strings.Split(notes, "\n")[:3] {
		if text := strings.TrimSpace(strings.TrimPrefix(sentence, "- ")); !strings.Contains(read(t, "README.md"), text) {
			t.Errorf("README.md lacks sentence %d\n%s", k, text)
		}
	}
}

// read is a file of the module, with its lines joined where README wraps them.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// By hand: of six pairs three are ranked as simulated, one otherwise, and two differ in time
// alone, one of them by what sums differ in; another decision and an answer that was not simulated do not count.
func TestConcordance(t *testing.T) {
	answer := func(decision string, objective, rate float64) answers.Compared {
		return answers.Compared{Decision: decision, Objective: &objective, ThroughputPerSecond: &rate}
	}
	unknown := answer("bind", 9, 9)
	unknown.ThroughputPerSecond = nil
	list := []answers.Compared{answer("bind", 1, 30), answer("bind", 1+1e-12, 50), answer("bind", 2, 20),
		answer("bind", 2, 40), answer("order", 0, 1), unknown}
	objective := func(d answers.Compared) *float64 { return d.Objective }
	if n := concordance(list, "bind", 0, objective); n != (agreement{3, 1}) || n.tau() != "0.50" {
		t.Errorf("%+v, want 3 as simulated and 1 otherwise", n)
	}
	if n := concordance(list, "bind", 0.3, objective); n != (agreement{2, 0}) {
		t.Errorf("%+v of pairs 30 %% apart, want 2 as simulated", n)
	}
	if n := concordance(list, "bind", 0, func(d answers.Compared) *float64 { return d.PredictedSeconds }); n.tau() != "–" {
		t.Errorf("%+v without predictions", n)
	}
}
