package optimality

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/harness/harnesstest"
)

// unable is a solver that never finds anything, and counts how often it was asked.
type unable struct{ asked *int }

func (s unable) Solve(context.Context, *milp.Model, milp.Options) (*milp.Solution, error) {
	*s.asked++
	return &milp.Solution{Status: milp.Limit, Stop: milp.StopTime}, nil
}

// Each series grows until its method proves nothing more; the report says where.
func TestGrowth(t *testing.T) {
	asked := 0
	e := fullGrowth()
	e.families = []growthFamily{e.families[0], e.families[3]}
	e.families[0].sizes, e.families[1].sizes = []int{8, 16}, []int{4, 8}
	e.limit, e.solver = time.Hour, unable{&asked}
	for _, f := range e.families {
		for _, size := range f.sizes {
			if err := f.problem(size).Validate(); err != nil {
				t.Error(err)
			}
		}
	}
	p, err := e.plan()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Cells) != 2*len(growthMethods()) {
		t.Fatalf("%d cells", len(p.Cells))
	}
	var results []json.RawMessage
	for i, c := range p.Cells {
		r, err := harness.Compute(context.Background(), c)
		if err != nil {
			t.Fatalf("%s: %v", c.Label, err)
		}
		results = append(results, r)
		var points []growthPoint
		if err := json.Unmarshal(r, &points); err != nil {
			t.Fatal(err)
		}
		method := growthMethods()[i%len(growthMethods())]
		want := 2 // all sizes
		if method == countingILP {
			want = 1 // the solver finds nothing
		}
		if len(points) != want {
			t.Errorf("%s: %d sizes, expected %d: %+v", c.Label, len(points), want, points)
		}
		for _, q := range points {
			if proven := q.Status == milp.Optimal.String(); proven != (method == stateSearch) ||
				q.Bound > q.Cost || q.Seconds < 0 {
				t.Errorf("%s: %+v", c.Label, q)
			}
		}
	}
	if asked == 0 {
		t.Error("the solver was never asked")
	}
	rep, err := p.Report(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rep.Files {
		if filepath.Ext(f.Name) == ".tex" {
			harnesstest.LaTeX(t, f.Name, f.Data)
		}
	}
	for _, want := range []string{"proven within 1h0m0s", "│ batch    │ search", "chain: sub-graphs of 16, 8, 4"} {
		if !strings.Contains(rep.Text, want) {
			t.Errorf("no %q in\n%s", want, rep.Text)
		}
	}
	if strings.Contains(rep.Text, "left out") {
		t.Errorf("a solver is there, but\n%s", rep.Text)
	}

	// Without a solver the integer programs are left out, and the text says so.
	x := e.experiment()
	without, err := x.With(harness.Options{SolveLimit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range growthMethods() {
		if m == countingILP {
			r, err := harness.Compute(context.Background(), without.Cells[i])
			if err != nil || string(r) != "[]" {
				t.Errorf("%s: %s (%v)", m, r, err)
			}
			results[i], results[i+len(growthMethods())] = r, r
		}
	}
	rep, err = without.Report(results)
	if err != nil || !strings.Contains(rep.Text, "left out") || !strings.Contains(rep.Text, "within 1m0s") {
		t.Errorf("%v:\n%s", err, rep.Text)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := harness.Compute(ctx, p.Cells[len(growthMethods())-1]); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
