package joint

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
)

// A problem from a file has the optimum that a trial of all labels and plays finds, by each method that proves, and an
// answer from a file begins where it ended.
func TestFilesAgainstBruteForce(t *testing.T) {
	better := 0
	for seed := range uint64(60) {
		made := random(rand.New(rand.NewPCG(seed, 11)), 4+int(seed%4))
		made.Given = make([]int, len(made.Labels.Nodes))
		data, err := made.File()
		if err != nil {
			t.Fatal(err)
		}
		p, err := Read("made.json", data)
		if err != nil {
			t.Fatal(err)
		}
		want := bruteForce(made)
		r, err := Solve(t.Context(), p, "search", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != milp.Optimal || math.Abs(r.Objective-want) > 1e-12 {
			t.Errorf("seed %d: %v at %g, brute force %g", seed, r.Status, r.Objective, want)
		}
		greedy, err := Solve(t.Context(), p, "greedy", Options{})
		if err != nil || greedy.Choice != nil && greedy.Objective < want-1e-12 || greedy.Bound > want+1e-12 {
			t.Errorf("seed %d: greedy %+v, %v, brute force %g", seed, greedy, err, want)
		} else if greedy.Choice != nil && greedy.Objective > want+1e-12 {
			better++
		}
		path := filepath.Join(t.TempDir(), "a.json")
		if data, err = json.Marshal(r); err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		start, err2 := LoadStart(path, p)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		again, err := Solve(t.Context(), p, "search", Options{Start: start, WorkLimit: 1})
		if err != nil || math.Abs(again.Objective-want) > 1e-12 {
			t.Errorf("seed %d: from its own answer %+v, %v, brute force %g", seed, again, err, want)
		}
		start.Steps[len(start.Steps)-1].Run = ordering.Ref{99, 0}
		if data, err = json.Marshal(start); err == nil {
			err = os.WriteFile(path, []byte(strings.NewReplacer(`"Choice"`, `"choice"`, `"Steps"`, `"steps"`).
				Replace(string(data))), 0o600)
		}
		if _, err2 := LoadStart(path, p); err != nil || err2 == nil || !strings.HasPrefix(err2.Error(), path+": steps[") {
			t.Errorf("seed %d: a broken answer: %v, %v", seed, err, err2)
		}
	}
	if better < 20 {
		t.Errorf("the optimum is better than greedy in %d problems, expected 20: they are too easy", better)
	}
}

const chainFile = `{"order":{"name":"two","capacity_bytes":8,"store_cost_per_byte":1,"load_cost_per_byte":1,
"subgraphs":[{"name":"a","instances":1,"output_bytes":4,"workspace_bytes":0},
{"name":"b","instances":1,"output_bytes":4,"workspace_bytes":0}],"arcs":[{"from":0,"to":1,"reads":[[0,1]]}]},
"labels":{"name":"two","nodes":[{"name":"a","labels":["1 L1","2 LLB"],"cost":[3,5]},{"name":"b","labels":["1 L1"],"cost":[7]}],
"edges":[{"from":0,"to":1,"cost":[[9],[1]]}],"given":[0,0]},"nanoseconds_per_cost":2.5}`

func TestRead(t *testing.T) {
	p, err := Read("two.json", []byte(chainFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Solve(t.Context(), p, "search", Options{})
	if err != nil || !same(r.Objective, 13e-9) || r.Status != milp.Optimal {
		t.Errorf("%+v, %v", r, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"capacity_bytes":8`, `"capacity_bytes":-1`, "two.json: order.capacity_bytes: found -1, expected bytes from 0"},
		{`"to":1,"reads"`, `"to":0,"reads"`, "two.json: order.arcs[0].to: found 0, expected another sub-graph"},
		{`"instances":1,"output_bytes":4,"workspace_bytes":0},`, `"instances":2,"output_bytes":4,"workspace_bytes":0},`,
			"two.json: labels.nodes: found 2, expected 3, one for each instance of order.subgraphs"},
		{`"2 LLB"`, `"2 DDR"`, `two.json: labels.nodes[0].labels[1]: found "2 DDR", expected words of which the last is`},
		{`[3,5]`, `[3]`, "two.json: labels.nodes[0].labels: found 2, expected 1, one for each cost"},
		{`[3,5]`, `[3,-5]`, "two.json: labels.nodes[0].cost[1]: found -5, expected a whole number from 0 to"},
		{`[[9],[1]]`, `[[9]]`, "two.json: labels.edges[0].cost: found 1, expected 2, one for each label of node 0"},
		{`"given":[0,0]`, `"given":[0,1]`, "two.json: labels.given[1]: found 1, expected a label of node"},
		{`:2.5}`, `:-2.5}`, "two.json: nanoseconds_per_cost: found -2.5, expected 0 to"},
		{`:2.5}`, `:2.5,"more":1}`, "two.json: more: found "},
	} {
		if _, err := Read("two.json", []byte(strings.Replace(chainFile, c.from, c.to, 1))); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(chainFile))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read("f", data)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := Solve(ctx, p, "search", Options{}); err == nil && r.Choice != nil {
			if _, _, err := p.Seconds(r.Choice, r.Steps); err != nil {
				t.Error(err)
			}
		}
	})
}
