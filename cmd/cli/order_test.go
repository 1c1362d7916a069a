package cli

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
)

// Every method's order of the same problem passes the checker, and the exact ones
// agree.
func TestOrderMethods(t *testing.T) {
	workspace(t)
	for _, method := range []string{"bfs", "dfs", "heavy", "counting-ilp", "search"} {
		for objective, want := range map[string]float64{"traffic": 6, "peak": 10} {
			t.Run(method+" "+objective, func(t *testing.T) {
				r := call(t, "solve", "order", "chain.json", "--method", method, "--objective", objective, "-o",
					"made.json", "--json")
				if strings.Contains(r.stderr, "HiGHS is not in this build") {
					t.Skip("skipped: this build has no HiGHS")
				}
				if r.status != exitOK {
					t.Fatalf("%+v", r)
				}
				var got struct {
					Method, Objective, Status string
					Cost, Bound               float64
					Steps                     []struct{ Store, Load []ordering.Ref }
				}
				if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
					t.Fatal(err)
				}
				if got.Method != method || got.Objective != objective || got.Cost != want || got.Bound > want ||
					len(got.Steps) != 3 {
					t.Errorf("%+v, want cost %v", got, want)
				}
				if exact := strings.Contains("counting-ilp search", method); exact && got.Status != "optimal" {
					t.Errorf("status %q", got.Status)
				}
				for _, s := range got.Steps {
					if s.Store == nil || s.Load == nil {
						t.Error("a list is null")
					}
				}
				if text := answer(t, "check", "order", "chain.json", "made.json"); !strings.Contains(text, "made.json is valid") {
					t.Errorf("the checker says %q", text)
				}
			})
		}
	}
}

// An order alone gets the moves that it needs.
func TestOrderGiven(t *testing.T) {
	workspace(t)
	best, err := ordering.ReadResult("stdout", []byte(answer(t, "solve", "order", "chain.json", "--json")))
	if err != nil {
		t.Fatal(err)
	}
	var given struct {
		Order []ordering.Ref `json:"order"`
	}
	for _, s := range best.Steps {
		given.Order = append(given.Order, s.Run)
	}
	write := func() {
		data, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("mine.json", data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write()
	text := answer(t, "check", "order", "chain.json", "mine.json")
	if want := "cost " + size(int64(best.Cost)) + ", peak "; !strings.Contains(text, "mine.json is valid") ||
		!strings.Contains(text, want) {
		t.Errorf("%s, expected %s", text, want)
	}
	answer(t, "solve", "order", "chain.json", "--start", "mine.json")
	given.Order[0][1] = 7
	write()
	if r := call(t, "check", "order", "chain.json", "mine.json"); r.status != exitFailure ||
		!strings.Contains(r.stderr, "mine.json: order[0]: found [0 7], expected an instance of the problem") {
		t.Errorf("%+v", r)
	}
	given.Order = given.Order[1:]
	given.Order[0] = ordering.Ref{}
	write()
	if r := call(t, "check", "order", "chain.json", "mine.json"); r.status != exitFailure ||
		!strings.Contains(r.stderr, "mine.json: the order has 2 instances, expected 3") {
		t.Errorf("%+v", r)
	}
}

// A problem without an order is an answer with its proof.
func TestOrderInfeasible(t *testing.T) {
	workspace(t)
	for _, method := range []string{"dfs", "search"} {
		var got map[string]any
		if err := json.Unmarshal(
			[]byte(answer(t, "solve", "order", "tight.json", "--method", method, "-o", "made.json", "--json")),
			&got); err != nil {
			t.Fatal(err)
		}
		delete(got, "seconds")
		delete(got, "processor_s")
		text, _ := json.Marshal(got)
		want := `{"instance":[1,0],"method":"` + method +
			`","missing_bytes":1,"objective":"traffic","status":"infeasible","steps":[],"tensors":[[0,0],[0,1],[1,0]]}`
		if string(text) != want {
			t.Errorf("%s, want %s", text, want)
		}
		if text := answer(t, "check", "order", "tight.json", "made.json"); !strings.Contains(text, "is valid: infeasible") {
			t.Errorf("the checker says %q", text)
		}
	}
	if text := answer(t, "solve", "order", "tight.json"); !strings.Contains(text, `instance 0 of "last"`) ||
		!strings.Contains(text, "1 byte too many") || !strings.Contains(text, "[0], ") ||
		!strings.Contains(text, ", last[0]") {
		t.Errorf("%s", text)
	}
	tight := strings.Replace(jointProblem, `"capacity_bytes": 9`, `"capacity_bytes": 7`, 1)
	if err := os.WriteFile("tightjoint.json", []byte(tight), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := answer(t, "solve", "joint", "tightjoint.json"); !strings.Contains(text, "1 byte too many") {
		t.Errorf("%s", text)
	}
	if text := answer(t, "solve", "joint", "tightjoint.json", "--json"); !strings.Contains(text,
		`"infeasible": {
    "instance": [`) {
		t.Errorf("%s", text)
	}
	if r := call(t, "solve", "joint", "tightjoint.json", "--export", "no.lp"); r.status != exitFailure ||
		!strings.Contains(r.stderr, "ilp makes no program: there is no answer") {
		t.Errorf("%+v", r)
	}
}

// An interrupted search prints what it has found.
func TestOrderInterrupted(t *testing.T) {
	workspace(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := callContext(t, ctx, "solve", "order", "chain.json", "--json")
	got, err := ordering.ReadResult("stdout", []byte(r.stdout))
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.status != exitInterrupted || got.Status != milp.Feasible || got.Cost != 6 ||
		!strings.Contains(r.stderr, "interrupted") && !strings.Contains(r.stderr, "canceled") {
		t.Errorf("%+v", r)
	}
}
