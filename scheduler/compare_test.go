package scheduler_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

// Exact answers are never above greedy ones, bounds never above exact ones, and a
// decision that is not replaced leaves the schedule as it is.
func TestCompare(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"toy-fig3", "squeezenet"} {
		src := open(t, name)
		list, err := answers.Compare(context.Background(), src, spec, 32, answers.CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again := list
		if name == "toy-fig3" {
			again, err = answers.Compare(context.Background(), src, spec, 32, answers.CompareOptions{})
		}
		if err != nil || len(again) != len(list) {
			t.Fatalf("%d answers, then %d (%v)", len(list), len(again), err)
		}
		seen := map[string]bool{}
		var base float64
		for i, d := range list {
			seen[d.Decision] = true
			if d.Bound != nil && *d.Bound > *d.Objective*(1+1e-9) {
				t.Errorf("%s: %+v: the bound is above the objective", name, d)
			}
			x := again[i]
			x.Seconds = d.Seconds
			if !reflect.DeepEqual(x, d) {
				t.Errorf("%s: %+v, the second time %+v", name, d, x)
			}
			if d.Method == "alg4" || d.Decision == "all" && d.Method == "cross-layer" {
				if base == 0 {
					base = *d.ThroughputPerSecond
				}
				if base <= 0 || *d.ThroughputPerSecond != base {
					t.Errorf("%s: the greedy schedule does %g and %g", name, *d.ThroughputPerSecond, base)
				}
			}
		}
		for _, decision := range answers.Comparisons() {
			if !seen[decision] {
				t.Errorf("%s: no answer for %s", name, decision)
			}
			var greedy, exact *answers.Compared // the first row and the last
			for i := range list {
				if list[i].Decision == decision {
					if greedy == nil {
						greedy = &list[i]
					}
					exact = &list[i]
				}
			}
			if g, e := greedy.Objective, exact.Objective; g != nil && e != nil && *g > 0 && *e > *g*(1+1e-9) {
				t.Errorf("%s: exact %+v costs more than greedy %+v", name, exact, greedy)
			}
			for _, d := range list {
				if decision == "all" && d.Method == "search" && d.ThroughputPerSecond != nil &&
					*exact.ThroughputPerSecond < *d.ThroughputPerSecond {
					t.Errorf("%s: all exact does %g, %s by %s %g", name, *exact.ThroughputPerSecond, d.Decision, d.Method,
						*d.ThroughputPerSecond)
				}
			}
		}
	}
	src := open(t, "toy-fig3")
	for _, tt := range []struct {
		batch int64
		opt   answers.CompareOptions
		want  string
	}{
		{32, answers.CompareOptions{Decisions: []string{"fate"}}, `unknown decision "fate"`},
		{32, answers.CompareOptions{Options: scheduler.Options{Chunk: 3}}, "chunk is 3"},
		{30, answers.CompareOptions{}, "does not divide evenly"},
	} {
		if _, err := answers.Compare(context.Background(), src, spec, tt.batch, tt.opt); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("batch %d, %+v: %v, want %q", tt.batch, tt.opt, err, tt.want)
		}
	}
}
