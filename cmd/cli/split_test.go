//go:build cgo

package cli

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func splitAnswer(t *testing.T, args string) answers.AloneSplit {
	t.Helper()
	out := answer(t, append([]string{"solve", "split", "--json", "--quiet"}, strings.Fields(args)...)...)
	a := decode[answers.AloneSplit](t, out)
	if a.Bound > a.Objective || a.Objective > a.Greedy || a.Gap == nil || *a.Gap < 0 || a.Seconds < 0 ||
		a.ThroughputPerSecond == nil || a.GreedyThroughputPerSecond == nil {
		t.Errorf("%s: bound %g, objective %g, greedy %g, gap %v, throughput %v", args, a.Bound, a.Objective, a.Greedy, a.Gap,
			a.ThroughputPerSecond)
	}
	operators := 0
	for _, g := range a.Groups {
		operators += g.Operators
		if (g.Factor > 1) != (g.Dimension != "") || g.Factor < 1 || g.First == "" || g.Last == "" {
			t.Errorf("%s: %+v", args, g)
		}
	}
	for _, g := range a.GreedyGroups {
		operators -= g.Operators
	}
	if operators != 0 {
		t.Errorf("%s: the groups have %d operators more than the greedy ones", args, operators)
	}
	return a
}

func TestSplit(t *testing.T) {
	workspace(t)
	greedy := splitAnswer(t, "bert-128 --batch 32 --method greedy")
	if greedy.Status != "feasible" || greedy.Objective != greedy.Greedy ||
		*greedy.ThroughputPerSecond != *greedy.GreedyThroughputPerSecond {
		t.Errorf("greedy: %+v", greedy)
	}
	search := splitAnswer(t, "bert-128 --batch 32")
	ilp := splitAnswer(t, "bert-128 --batch 32 --method ilp --time-limit 5m")
	for _, a := range []answers.AloneSplit{search, ilp} {
		if a.Status != "optimal" || a.Stop != "complete" || a.Greedy != greedy.Objective ||
			math.Abs(a.Objective-search.Objective) > 1e-9 || greedy.Bound > a.Objective {
			t.Errorf("%s: %+v; greedy %g, bound %g", a.Method, a, greedy.Objective, greedy.Bound)
		}
		if *a.ThroughputPerSecond <= *a.GreedyThroughputPerSecond {
			t.Errorf("%s: %v instead of %v per second", a.Method, *a.ThroughputPerSecond, *a.GreedyThroughputPerSecond)
		}
	}
}

func TestSplitExport(t *testing.T) {
	workspace(t)
	for file, want := range map[string]string{"model.lp": "end\n"} {
		answer(t, "solve", "split", "toy-fig5", "--batch", "8", "--export", file)
		data, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(data), want) || !strings.Contains(string(data), "_1__one_group_0_") {
			t.Errorf("%s: %v, %d bytes", file, err, len(data))
		}
	}
	// The problem itself can be read back, and the method finds in it what it says.
	var a struct{ Objective, Greedy float64 }
	got := answer(t, "solve", "split", "toy-fig5", "--batch", "8", "--export", "problem.json", "--json")
	if err := json.Unmarshal([]byte(strings.Replace(got, "greedy_objective", "greedy", 1)), &a); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("problem.json")
	if err != nil {
		t.Fatal(err)
	}
	p, given, err := split.Read("problem.json", data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := split.Solve(t.Context(), p, "search", split.Options{})
	rounded := 1e-9 * float64(len(p.Reads))
	if err != nil || math.Abs(r.Objective*1e-9-a.Objective) > rounded || p.Seconds(given)*1e-9 > a.Greedy+rounded {
		t.Errorf("%+v, %v; the command says %+v", r, err, a)
	}
}
