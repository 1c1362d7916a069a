//go:build cgo

package joint

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// The program, the search and a trial of all labels and plays agree; a start changes nothing.
func TestILPAgainstBruteForce(t *testing.T) {
	s, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for seed := uint64(0); seed < 300 && compared < 25; seed++ {
		p := random(rand.New(rand.NewPCG(seed, 7)), 4+int(seed%4))
		search, err := Search(context.Background(), p, SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if search.MoveSeconds == 0 && search.Branches <= 1 && seed%40 > 0 {
			continue // easy, but for a few
		}
		compared++
		want := bruteForce(p)
		for _, start := range []Start{{}, {Choice: make([]int, len(p.Labels.Nodes))}, {Choice: search.Choice,
			Steps: search.Steps}} {
			got, err := ILP(context.Background(), p, ILPOptions{Options: Options{Solver: s, Start: start}})
			if err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, start, err)
			}
			// The solver's own tolerance is 1e-6 of a unit.
			if got.Status != milp.Optimal || math.Abs(got.Objective-want) > 1e-11 || math.Abs(search.Objective-want) > 1e-11 {
				t.Errorf("seed %d, %+v: %v at %g, the search %g, all plays %g", seed, start, got.Status, got.Objective,
					search.Objective, want)
			}
			verify(t, "ilp", p, got)
		}
	}
	if compared < 25 {
		t.Errorf("%d problems compared, expected 25", compared)
	}
}

// On larger problems each method's answer is above the other's bound, and where both prove they agree. A program that
// is too large says its size, and its answer is the start.
func TestILPAgainstSearch(t *testing.T) {
	s, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	proven := 0
	for seed := range uint64(8) {
		p := random(rand.New(rand.NewPCG(seed, 11)), 11)
		search, err := Search(context.Background(), p, SearchOptions{Options: Options{WorkLimit: 200}})
		if err != nil {
			t.Fatal(err)
		}
		opts := ILPOptions{Options: Options{Solver: s, WorkLimit: 20, Relax: true}}
		ilp, err := ILP(context.Background(), p, opts)
		if err != nil {
			t.Fatal(err)
		}
		if ilp.Objective < search.Bound-1e-11 || search.Objective < ilp.Bound-1e-11 || ilp.Bound < *ilp.Effort.LP-1e-11 {
			t.Errorf("seed %d: program [%g, %g] with LP %g, search [%g, %g]", seed, ilp.Bound, ilp.Objective, *ilp.Effort.LP,
				search.Bound, search.Objective)
		}
		if ilp.Status == milp.Optimal && search.Status == milp.Optimal {
			if proven++; math.Abs(ilp.Objective-search.Objective) > 1e-11 {
				t.Errorf("seed %d: the program proves %g, the search %g", seed, ilp.Objective, search.Objective)
			}
		}
		note := ""
		opts.MaxColumns, opts.Note = 1, func(n string) { note = n }
		opts.Start = Start{Choice: search.Choice, Steps: search.Steps}
		large, err := ILP(context.Background(), p, opts)
		if err != nil || large.Objective != search.Objective || large.Bound > search.Objective ||
			large.Effort.Columns != ilp.Effort.Columns || !strings.Contains(note, "columns, more than 1") {
			t.Errorf("seed %d: %+v with note %q (%v), expected the start", seed, large, note, err)
		}
	}
	if proven < 3 {
		t.Errorf("both prove %d problems, expected 3", proven)
	}
}
