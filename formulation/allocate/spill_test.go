package allocate

import (
	"context"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

func TestSpillAgainstAllChoices(t *testing.T) {
	solver, noSolver := highs.New()
	forRandom(t, 60, func(t *testing.T, p *Problem) {
		n := len(p.Buffers)
		for _, capacity := range []int64{0, 3, 5, 8} {
			// Least costs by sums, and with offsets.
			least, placed := int64(-1), int64(-1)
			for set := range 1 << n {
				out := make([]bool, n)
				for i := range out {
					out[i] = set>>i&1 == 1
				}
				cost := SpillCost(p, out)
				if checkSpill(p, capacity, out) != nil {
					continue
				}
				if least < 0 || cost < least {
					least = cost
				}
				if kept, _ := keep(p, out); (placed < 0 || cost < placed) && fits(kept, capacity) {
					placed = cost
				}
			}
			check := func(sol *SpillResult, err error, want int64) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				if sol.Status != milp.Optimal || sol.Cost != want || sol.Bound != want || SpillCost(p, sol.Spilled) != want {
					t.Errorf("capacity %d: found %+v, want cost %d", capacity, sol, want)
				}
				if err := checkSpill(p, capacity, sol.Spilled); err != nil {
					t.Error(err)
				}
				if sol.Offsets == nil {
					return
				}
				kept, place := keep(p, sol.Spilled)
				var offsets []int64
				for _, i := range place {
					offsets = append(offsets, sol.Offsets[i])
				}
				if err := Check(kept, capacity, offsets); err != nil {
					t.Error(err)
				}
				for i, out := range sol.Spilled {
					if out != (sol.Offsets[i] == -1) {
						t.Errorf("buffer %d: spilled %v, offset %d", i, out, sol.Offsets[i])
					}
				}
			}
			sol, err := Spill(context.Background(), p, capacity, SpillOptions{})
			check(sol, err, least)
			sol, err = Spill(context.Background(), p, capacity, SpillOptions{Place: true})
			check(sol, err, placed)
			if noSolver == nil && capacity == 5 {
				sol, err = spillILP(context.Background(), p, capacity,
					SpillOptions{Options: solve.Options[SpillStart]{Solver: solver}})
				check(sol, err, least)
				sol, err = spillILP(context.Background(), p, capacity,
					SpillOptions{Place: true, Options: solve.Options[SpillStart]{Solver: solver}})
				check(sol, err, placed)
			}
		}
	})
}

func TestSpillLimits(t *testing.T) {
	p := larger(9, 60)
	full, err := Spill(context.Background(), p, 20, SpillOptions{Options: solve.Options[SpillStart]{WorkLimit: 200000}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := Spill(context.Background(), p, 20, SpillOptions{Options: solve.Options[SpillStart]{WorkLimit: 100}})
	if err != nil || !one.Status.HasValues() || one.Bound > full.Cost || one.Cost < full.Cost {
		t.Errorf("found %+v, %v; with more nodes cost %d", one, err, full.Cost)
	}
	if one.Nodes >= full.Nodes || one.Stop != milp.StopWork {
		t.Errorf("%d nodes, then %v; without the limit %d", one.Nodes, one.Stop, full.Nodes)
	}
	again, err := Spill(context.Background(), p, 20, SpillOptions{Options: solve.Options[SpillStart]{WorkLimit: 100}})
	if err != nil || !slices.Equal(one.Spilled, again.Spilled) {
		t.Errorf("first %v, then %v, %v", one.Spilled, again.Spilled, err)
	}
	// Where no offsets are found in time, more leaves, and the bound stays right.
	placed, err := Spill(context.Background(), p, 40,
		SpillOptions{Place: true, Options: solve.Options[SpillStart]{WorkLimit: 20000}, PlaceNodes: int64(len(p.Buffers))})
	if err != nil || !placed.Status.HasValues() || placed.Bound > placed.Cost {
		t.Fatalf("found %+v, %v", placed, err)
	}
	kept, places := keep(p, placed.Spilled)
	var offsets []int64
	for _, i := range places {
		offsets = append(offsets, placed.Offsets[i])
	}
	if err := Check(kept, 40, offsets); err != nil {
		t.Error(err)
	}
	// A start is not the answer where something better is known.
	all := make([]bool, len(p.Buffers))
	for i := range all {
		all[i] = true
	}
	for _, place := range []bool{false, true} {
		for _, nodes := range []int64{1, 20000} {
			sol, err := Spill(context.Background(), p, 40,
				SpillOptions{Place: place, Options: solve.Options[SpillStart]{WorkLimit: nodes, Start: SpillStart{Spilled: all}}})
			if err != nil || !sol.Status.HasValues() || (sol.Offsets != nil) != place || sol.Cost >= SpillCost(p, all) ||
				nodes == 1 && sol.Stop != milp.StopWork {
				t.Errorf("place %v, %d nodes: found %+v, %v", place, nodes, sol, err)
			}
		}
	}
	for _, o := range []SpillOptions{
		{Options: solve.Options[SpillStart]{Start: SpillStart{Spilled: make([]bool, len(p.Buffers))}}},
		{Options: solve.Options[SpillStart]{Start: SpillStart{Spilled: []bool{true}}}},
		{Options: solve.Options[SpillStart]{Start: SpillStart{Spilled: all, Offsets: make([]int64, 1)}}},
		{Options: solve.Options[SpillStart]{TimeLimit: -1}}, {Options: solve.Options[SpillStart]{WorkLimit: -1}},
		{PlaceNodes: -1}} {
		if _, err := Spill(context.Background(), p, 20, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := Spill(context.Background(), p, -1, SpillOptions{}); err == nil {
		t.Error("a negative capacity is accepted")
	}
}
