package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func TestCompare(t *testing.T) {
	workspace(t)
	r := call(t, "compare", "bert-128", "--batch", "32", "--decision", "order,bind", "--json")
	if r.status != exitOK {
		t.Fatalf("status %d, stderr %q", r.status, r.stderr)
	}
	var a compareJSON
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Rows) != 10 || a.Model != "bert-128" || a.Batch != 32 {
		t.Errorf("%+v", a)
	}
	last := a.Rows[len(a.Rows)-1]
	greedy := a.Rows[len(a.Rows)-3] // then a row of another rule
	if last.Decision != "bind" || (last.Status == "optimal") != (*last.Objective == *last.Bound) ||
		*last.Objective >= *greedy.Objective || *last.Bound > *last.Objective ||
		*last.LatencySeconds >= *greedy.LatencySeconds || last.Judged == nil {
		t.Errorf("%+v after %+v", last, greedy)
	}
	// The same machine as for schedule, also where that is one level up.
	var s answers.Report
	r = call(t, "schedule", "toy-fig3", "--variant", "cross-layer", "--batch", "8", "--chunk", "2",
		"--hardware", "goya", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatal(err)
	}
	r = call(t, "compare", "toy-fig3", "--batch", "8", "--chunk", "2", "--hardware", "goya", "--decision",
		"memory,all", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil {
		t.Fatal(err)
	}
	for _, d := range a.Rows {
		if d.Method == "cross-layer" || d.Method == "alg4" || d.Method == "longest-lifetime" {
			if d.ThroughputPerSecond == nil || *d.ThroughputPerSecond/s.ThroughputPerSecond < 1-1e-6 ||
				*d.ThroughputPerSecond/s.ThroughputPerSecond > 1+1e-6 {
				t.Errorf("%s by %s: %+v, schedule has %g/s", d.Decision, d.Method, d, s.ThroughputPerSecond)
			}
		}
		if d.Decision == "memory" && (d.Bound == nil || d.Objective == nil ||
			*d.Bound > *d.Objective) {
			t.Errorf("%+v", d)
		}
	}
	text := call(t, "compare", "net.onnx", "--batch", "4", "--decision", "bind,split,tiled")
	words := strings.Join(strings.Fields(text.stdout), " ")
	for _, want := range []string{" is the fastest of 8. It has cross-layer's chunks and pieces here;",
		" columns priced; the gap is from simulated time to the bound"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in %s", want, text.stdout)
		}
	}
	if text.status != exitOK || !strings.Contains(text.stdout, "alg4") || strings.Contains(text.stdout, "\n order") {
		t.Errorf("status %d, %s%s", text.status, text.stdout, text.stderr)
	}
}

// Groups, factors and spills: the exact answer comes last, is no worse, and has the
// bound of all.
func TestCompareSplitAndMemory(t *testing.T) {
	workspace(t)
	r := call(t, "compare", "mobilenetv2", "--batch", "16", "--chunk", "4", "--decision", "split,memory", "--json")
	if r.status != exitOK {
		t.Fatalf("status %d, stderr %q", r.status, r.stderr)
	}
	var a compareJSON
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil {
		t.Fatal(err)
	}
	split := slices.IndexFunc(a.Rows, func(d answers.Compared) bool { return d.Decision == "memory" })
	if split < 2 || len(a.Rows)-split != 6 {
		t.Fatalf("%d rows, %d of them of split, want more of those and six of memory: %+v", len(a.Rows), split, a.Rows)
	}
	for _, rows := range [][]answers.Compared{a.Rows[:split], a.Rows[split:]} {
		exact := rows[len(rows)-1]
		if exact.Method != "search" || *exact.Bound > *exact.Objective ||
			(exact.Status == "optimal") != (*exact.Bound == *exact.Objective) ||
			(exact.Measured != nil) != (exact.Decision == "split") || (exact.Judged != nil) != (exact.Decision == "memory") {
			t.Errorf("%+v", exact)
		}
		for _, d := range rows {
			if d.Decision != exact.Decision || *d.Objective < *exact.Objective || *d.Bound != *exact.Bound ||
				d.ThroughputPerSecond == nil {
				t.Errorf("%+v beside %+v", d, exact)
			}
		}
		if *rows[0].Objective <= *exact.Objective {
			t.Errorf("%s: the greedy choice is no worse than the exact one, on a network where it is known to be",
				exact.Decision)
		}
	}
}

// The bound of memory plans is one of all rules, also of those that put values in the place of others.
func TestCompareBoundsOverwriting(t *testing.T) {
	workspace(t)
	var a compareJSON
	if err := json.Unmarshal([]byte(answer(t, "compare", "vit-b16", "--batch", "32", "--chunk", "4", "--decision", "memory",
		"--json")), &a); err != nil {
		t.Fatal(err)
	}
	exact, over := a.Rows[len(a.Rows)-1], 0
	for _, d := range a.Rows {
		r, err := recipes.Lookup("tiled")
		if err != nil {
			t.Fatal(err)
		}
		if r.Picking(scheduler.Pick{Stage: "spill", Strategy: d.Method}).Overwrites() {
			over++
		}
		if d.Bound == nil || *d.Bound != *exact.Bound || *d.Objective < *d.Bound || *d.Objective < *exact.Objective {
			t.Errorf("%+v beside %+v", d, exact)
		}
	}
	if over != 2 {
		t.Errorf("%d rules overwrite, expected 2", over)
	}
}

// On cores of several kinds the decisions that do not know them are left out, which is said.
func TestCompareOnKinds(t *testing.T) {
	mixed, err := os.ReadFile(filepath.Join("..", "..", "examples", "accelerator", "edge-mixed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	workspace(t)
	if err := os.WriteFile("mixed.yaml", mixed, 0o666); err != nil {
		t.Fatal(err)
	}
	var a compareJSON
	if err := json.Unmarshal([]byte(answer(t, "compare", "toy-fig5", "--batch", "1", "--hardware", "mixed.yaml", "--json")),
		&a); err != nil {
		t.Fatal(err)
	}
	var decisions []string
	for _, d := range a.Rows {
		if !slices.Contains(decisions, d.Decision) {
			decisions = append(decisions, d.Decision)
		}
	}
	if !slices.Equal(decisions, []string{"split", "order", "memory", "issue"}) || len(a.Notes) != 1 {
		t.Errorf("decisions %q, notes %q", decisions, a.Notes)
	}
	r := call(t, "compare", "toy-fig5", "--batch", "1", "--hardware", "mixed.yaml", "--decision", "order,bind")
	if r.status != exitFailure || !strings.Contains(r.stderr, "decision bind: ") {
		t.Errorf("%+v", r)
	}
}

// What rounds to 1.00 times as fast is no gain.
func TestCompareConclusion(t *testing.T) {
	row := func(decision, method, status string, seconds float64) answers.Compared {
		return answers.Compared{Decision: decision, Method: method, Status: status, LatencySeconds: &seconds}
	}
	for _, c := range []struct {
		all, bind float64
		want      string
	}{
		{1, 0.998, "exact decisions together are no faster than cross-layer; " +
			"alone, no exact decision is faster than that of cross-layer"},
		{0.5, 0.8, "exact decisions together simulate in 500 ms, 2.00 times as fast as cross-layer; " +
			"alone, the exact bind gains most, 1.25 times"},
	} {
		a := compareJSON{Rows: []answers.Compared{row("all", "cross-layer", "greedy", 1),
			row("bind", "search", "optimal", c.bind),
			row("all", "search", "feasible", c.all)}}
		if got := a.conclusion(); got != c.want {
			t.Errorf("found %q, expected %q", got, c.want)
		}
	}
}
