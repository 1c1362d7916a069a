package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func last(t testing.TB) scheduler.Recipe {
	t.Helper()
	table := recipes.Table()
	return table[len(table)-1]
}

// Every strategy of every decision makes a schedule that passes all checks and does
// the same arithmetic, and making it again gives the same.
func TestEveryStrategy(t *testing.T) {
	solver, missing := highs.New()
	for _, c := range []struct {
		model        string
		batch, chunk int64
	}{{"toy-fig3", 16, 4}, {"squeezenet", 8, 2}} {
		src, spec := open(t, c.model), load(t, "stcp920")
		opt := scheduler.Options{Chunk: c.chunk}
		want, err := scheduler.Run(context.Background(), src, spec, c.batch, last(t), opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range scheduler.Choices() {
			for _, s := range d.Strategies {
				t.Run(fmt.Sprintf("%s/%s=%s", c.model, d.Name, s.Name), func(t *testing.T) {
					opt := opt
					if s.NeedsSolver {
						if _, err := last(t).Replace(opt, scheduler.Pick{Stage: d.Name, Strategy: s.Name}); !errors.Is(err,
							scheduler.ErrNoSolver) {
							t.Errorf("without a solver: %v", err)
						}
						if missing != nil {
							t.Skip(missing)
						}
						if c.model != "toy-fig3" {
							t.Skip("an integer program takes minutes")
						}
						opt.Solver = solver
					}
					v, err := last(t).Replace(opt, scheduler.Pick{Stage: d.Name, Strategy: s.Name})
					if err != nil {
						t.Fatal(err)
					}
					got, err := scheduler.Run(context.Background(), src, spec, c.batch, v, opt)
					if err != nil {
						t.Fatal(err)
					}
					if got.Sim.MACs != want.Sim.MACs {
						t.Errorf("%d MACs, want %d", got.Sim.MACs, want.Sim.MACs)
					}
					if c.model != "toy-fig3" && os.Getenv("DSASCHED_FULL") == "" {
						return
					}
					again, err := scheduler.Run(context.Background(), src, spec, c.batch, v, opt)
					if err != nil || again.Sim.TotalPs != got.Sim.TotalPs {
						t.Errorf("the second run takes %d ps, the first %d (%v)", again.Sim.TotalPs, got.Sim.TotalPs, err)
					}
				})
			}
		}
	}
}

// The rows of the tables can be put together from their decisions.
func TestReplaceMakesTheTables(t *testing.T) {
	for _, v := range slices.Concat(recipes.Table(), recipes.Exact()) {
		var picks []scheduler.Pick
		for _, st := range scheduler.Stages() {
			picks = append(picks, scheduler.Pick{Stage: st.Name, Strategy: v.Pick(st.Name)})
		}
		for _, from := range recipes.Table() {
			got, err := from.Replace(scheduler.Options{}, picks...)
			if err != nil {
				t.Fatalf("%s from %s: %v", v.Name, from.Name, err)
			}
			if from.Name == v.Name && got.Name != v.Name {
				t.Errorf("%s is called %s though nothing changes", v.Name, got.Name)
			}
			for _, p := range picks {
				if got.Pick(p.Stage) != p.Strategy {
					t.Errorf("%s from %s: %s is %s, want %s", v.Name, from.Name, p.Stage, got.Pick(p.Stage), p.Strategy)
				}
			}
		}
	}
}

func TestReplaceNamesWhatChanges(t *testing.T) {
	pick := func(words ...string) []scheduler.Pick {
		var p []scheduler.Pick
		for i := 0; i < len(words); i += 2 {
			p = append(p, scheduler.Pick{Stage: words[i], Strategy: words[i+1]})
		}
		return p
	}
	for _, c := range []struct {
		picks []scheduler.Pick
		want  string // or what the error has
		fails bool
	}{
		{nil, "cross-layer", false},
		{pick("order", "alg3", "spill", "longest-lifetime"), "cross-layer", false},
		{pick("bind", "greedy", "order", "bfs"), "cross-layer+order=bfs", false},
		{pick("spill", "largest-first", "order", "search"), "cross-layer+order=search+spill=largest-first", false},
		{pick("group", "layers"), "cross-layer+group=layers", false},
		{pick("group", "layers", "split", "one-factor"),
			"split is one-factor, which does not go with group layers: expected group alg2", true},
		{pick("order", "dfs", "order", "bfs"), "order is both dfs and bfs", true},
		{pick("order", "greedy", "order", "alg3"), "cross-layer", false},
		{pick("order", "serach"), `order is "serach" (did you mean search?)`, true},
		{pick("ordre", "bfs"), `unknown stage "ordre" (did you mean order?)`, true},
		{pick("order", ""), `order is "", expected`, true},
	} {
		v, err := last(t).Replace(scheduler.Options{}, c.picks...)
		switch {
		case c.fails && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%v: %v, want %s", c.picks, err, c.want)
		case !c.fails && (err != nil || v.Name != c.want):
			t.Errorf("%v: %q, %v, want %s", c.picks, v.Name, err, c.want)
		case strings.Contains(c.want, "spill=") && v.Pick("spill") != "largest-first":
			t.Errorf("%v: the spill rule is %q", c.picks, v.Pick("spill"))
		}
	}
}

// Searches report bounds that hold and of objectives that only get better.
func TestProgressOfDecisions(t *testing.T) {
	for _, p := range []scheduler.Pick{{Stage: "order", Strategy: "search"}, {Stage: "bind", Strategy: "search"}} {
		opt := scheduler.Options{Chunk: 4}
		v, err := last(t).Replace(opt, p)
		if err != nil {
			t.Fatal(err)
		}
		var reports []milp.Progress
		opt.Progress = func(decision string, r milp.Progress) {
			if decision != p.Stage {
				t.Errorf("a report of %s while %s is made", decision, p.Stage)
			}
			reports = append(reports, r)
		}
		if _, err := scheduler.Run(context.Background(), open(t, "resnet50"), load(t, "stcp920"), 16, v, opt); err != nil {
			t.Fatal(err)
		}
		if len(reports) == 0 {
			t.Errorf("%s %s reports nothing", p.Stage, p.Strategy)
		}
		for i, r := range reports {
			if r.Bound > r.Objective*(1+1e-9) {
				t.Errorf("%s %s: bound %g above objective %g", p.Stage, p.Strategy, r.Bound, r.Objective)
			}
			if i > 0 && (r.Objective > reports[i-1].Objective || r.Bound < reports[i-1].Bound) {
				t.Errorf("%s %s: report %d is worse than the one before: %+v, %+v", p.Stage, p.Strategy, i, reports[i-1], r)
			}
		}
	}
}

// content is a solver that a limit ends at once: it keeps what it starts from.
type content struct{}

func (content) Solve(_ context.Context, m *milp.Model, opts milp.Options) (*milp.Solution, error) {
	return &milp.Solution{Status: milp.Feasible, Values: opts.Start, Objective: m.Objective(opts.Start),
		Stop: milp.StopTime}, nil
}

// A solve that a limit ends says so in the notes, and leaves the greedy decision.
func TestLimitIsNoted(t *testing.T) {
	for _, p := range []scheduler.Pick{{Stage: "bind", Strategy: "ilp"}, {Stage: "order", Strategy: "ilp"}} {
		opt := scheduler.Options{Chunk: 8, Solver: content{}}
		v, err := last(t).Replace(opt, p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(context.Background(), open(t, "toy-fig3"), load(t, "stcp920"), 32, v, opt)
		if err != nil {
			t.Fatal(err)
		}
		greedy := run(t, "toy-fig3", "stcp920", 32, 8, "cross-layer")
		if r.Sim.TotalPs != greedy.Sim.TotalPs {
			t.Errorf("%s: %d ps, the greedy decision %d", p.Stage, r.Sim.TotalPs, greedy.Sim.TotalPs)
		}
		if p.Stage == "bind" && !strings.Contains(strings.Join(r.Notes, "\n"), "bind by ilp: not proven") {
			t.Errorf("%s: notes %q", p.Stage, r.Notes)
		}
	}
}
