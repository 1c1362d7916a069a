package allocate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

func TestSweepAgainstAllChoices(t *testing.T) {
	cut := 0
	solver, noSolver := highs.New()
	forRandom(t, 60, func(t *testing.T, p *Problem) {
		n := len(p.Buffers)
		r := rand.New(rand.NewPCG(uint64(n), uint64(p.Bound())))
		stay := make([]bool, n)
		for i := range stay {
			stay[i] = r.IntN(5) == 0
		}
		demands := make([]Demand, r.IntN(4))
		for i := range demands {
			d := &demands[i]
			d.Time = r.Int64N(lastTime + 2)
			for free, cost := 1+r.Int64N(5), r.Int64N(3); free >= 0 && r.IntN(4) > 0 || len(d.Tiers) == 0; free,
				cost = free-1-r.Int64N(3), cost+r.Int64N(6) {
				d.Tiers = append(d.Tiers, Tier{max(free, 0), cost})
			}
		}
		growing := slices.Clone(demands)
		for i := range growing {
			d := &growing[i]
			var by []int64
			for k := range p.Buffers {
				if size := at(&p.Buffers[k], d.Time).Len(); size > 0 && r.IntN(3) > 0 {
					d.Of, by = append(d.Of, k), append(by, r.Int64N(size+1))
				}
			}
			d.Grown = func(spilled uint64) []Tier {
				tiers := slices.Clone(d.Tiers)
				for k, more := range by {
					for j := range tiers {
						tiers[j].Free += more * int64(spilled>>k&1)
					}
				}
				return tiers
			}
		}
		for _, capacity := range []int64{0, 3, 5, 8} {
			for _, opts := range []SweepOptions{{}, {MaxStates: 2}, {MaxStates: 3}, {Stay: stay}, {Stay: stay, MaxStates: 2},
				{Demands: demands}, {Demands: demands, MaxStates: 2}, {Demands: demands, Stay: stay},
				{Demands: growing}, {Demands: growing, MaxStates: 2}, {Demands: growing, MaxStates: 4},
				{Demands: growing, Stay: stay}} {
				least := int64(-1)
			choices:
				for set := range 1 << n {
					out := make([]bool, n)
					for i := range out {
						out[i] = set>>i&1 == 1
						if out[i] && opts.Stay != nil && opts.Stay[i] {
							continue choices
						}
					}
					if cost, ok := SweepCost(p, capacity, opts.Demands, out); ok && (least < 0 || cost < least) {
						least = cost
					}
				}
				sol, err := SpillSweep(context.Background(), p, capacity, opts)
				if err != nil {
					t.Fatal(err)
				}
				if noSolver == nil && capacity == 5 && opts.MaxStates == 0 {
					with := opts
					with.Solver = solver
					ilp, err := SpillSweepILP(context.Background(), p, capacity, with)
					if err != nil {
						t.Fatal(err)
					}
					if least < 0 && ilp.Status != milp.Infeasible ||
						least >= 0 && (ilp.Status != milp.Optimal || ilp.Cost != least || ilp.Bound != least) {
						t.Errorf("%+v: the integer program finds %+v, want %d", opts, ilp, least)
					}
				}
				if least < 0 {
					if sol.Status != milp.Infeasible {
						t.Errorf("capacity %d, %+v: found %+v, want infeasible", capacity, opts, sol)
					}
					continue
				}
				if !sol.Status.HasValues() {
					t.Fatalf("capacity %d, %+v: found %+v, want cost %d", capacity, opts, sol, least)
				}
				if cost, ok := SweepCost(p, capacity, opts.Demands, sol.Spilled); !ok || cost != sol.Cost {
					t.Errorf("capacity %d, %+v: cost %d, recorded %d, %v", capacity, opts, cost, sol.Cost, ok)
				}
				if sol.Cost < least || sol.Bound > least || opts.MaxStates == 0 && sol.Cost != least ||
					(sol.Status == milp.Optimal) != (sol.Cost == sol.Bound) {
					t.Errorf("capacity %d, %+v: found %+v, want %d", capacity, opts, sol, least)
				}
				if sol.Status == milp.Feasible {
					cut++
				}
				for i, out := range sol.Spilled {
					if out && opts.Stay != nil && opts.Stay[i] {
						t.Errorf("buffer %d is spilled and had to stay", i)
					}
				}
			}
		}
	})
	if cut == 0 {
		t.Error("two states were always enough")
	}
}

// On larger problems the sweep and the integer program agree, and with few states
// cost and bound are on either side of the optimum.
func TestSweepAgainstSpill(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skip(err)
	}
	proven := 0
	for seed := range uint64(20) {
		p := larger(seed, 30)
		other, err := spillILP(context.Background(), p, 20, SpillOptions{Options: solve.Options[SpillStart]{Solver: solver}})
		if err != nil {
			t.Fatal(err)
		}
		sol, err := SpillSweep(context.Background(), p, 20, SweepOptions{MaxStates: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		if sol.Cost < other.Bound || other.Cost < sol.Bound {
			t.Errorf("seed %d: the sweep finds %+v, the integer program %+v", seed, sol, other)
		}
		if sol.Status == milp.Optimal && other.Status == milp.Optimal {
			proven++
			if sol.Cost != other.Cost {
				t.Errorf("seed %d: the sweep finds %d, the integer program %d", seed, sol.Cost, other.Cost)
			}
		}
		few, err := SpillSweep(context.Background(), p, 20, SweepOptions{MaxStates: 4})
		if err != nil || few.Cost < sol.Bound || few.Bound > sol.Cost {
			t.Errorf("seed %d: with four states %+v, %v; the best is %+v", seed, few, err, sol)
		}
		again, err := SpillSweep(context.Background(), p, 20, SweepOptions{MaxStates: 4})
		if err != nil || !slices.Equal(few.Spilled, again.Spilled) {
			t.Errorf("seed %d: first %v, then %v, %v", seed, few.Spilled, again.Spilled, err)
		}
	}
	if proven < 10 {
		t.Errorf("only %d problems are proven by both", proven)
	}
}

// More buffers than can be followed at a time: the prices alone give a choice and a bound. The least
// cost is that of the cheapest, as all are alike but for what they cost.
func TestSweepMany(t *testing.T) {
	const n, capacity = 300, 200
	p := &Problem{}
	r := rand.New(rand.NewPCG(4, 2))
	costs := make([]int64, n)
	for i := range costs {
		costs[i] = 100 + r.Int64N(900)
		p.Buffers = append(p.Buffers, Buffer{ID: fmt.Sprint(i), Lifetime: Interval{r.Int64N(10), 20 + r.Int64N(10)}, Size: 2,
			Alignment: 1, SpillCost: &costs[i]})
	}
	demands := []Demand{{Time: 15, Tiers: []Tier{{40, 0}, {20, 50_000}}}}
	sol, err := SpillSweep(context.Background(), p, capacity, SweepOptions{Demands: demands})
	if err != nil {
		t.Fatal(err)
	}
	least := int64(0)
	for _, cost := range slices.Sorted(slices.Values(costs))[:n-(capacity-40)/2] {
		least += cost
	}
	if cost, ok := SweepCost(p, capacity, demands, sol.Spilled); !ok || cost != sol.Cost {
		t.Errorf("cost %d, recorded %d, %v", cost, sol.Cost, ok)
	}
	if sol.Cost < least || sol.Bound > least || sol.Cost != least && sol.Stop != milp.StopMemory ||
		float64(sol.Cost-sol.Bound) > 0.01*float64(least) {
		t.Errorf("found %v, %d, bound %d, want %d", sol.Status, sol.Cost, sol.Bound, least)
	}
}

func TestSweepErrors(t *testing.T) {
	p := larger(1, 10)
	for want, call := range map[string]func() (*SpillResult, error){
		"allocate: found capacity -1, expected 0 or more": func() (*SpillResult,
			error) {
			return SpillSweep(context.Background(), p, -1, SweepOptions{})
		},
		"allocate: found 3 buffers that may or may not be spilled, expected 10": func() (*SpillResult, error) {
			return SpillSweep(context.Background(), p, 9, SweepOptions{Stay: make([]bool, 3)})
		},
		"allocate: found at most -2 states, expected 0 or more": func() (*SpillResult, error) {
			return SpillSweep(context.Background(), p, 9, SweepOptions{MaxStates: -2})
		},
	} {
		if _, err := call(); err == nil || err.Error() != want {
			t.Errorf("found %v, want %s", err, want)
		}
	}
	if _, err := SpillSweep(context.Background(), p, 9,
		SweepOptions{Demands: []Demand{{Tiers: []Tier{{3, 0}, {4, 1}}}}}); err == nil ||
		err.Error() !=
			"allocate: demand #0: found tiers [{3 0} {4 1}], expected fewer and fewer free bytes at costs that don't fall, none negative" {
		t.Errorf("found %v", err)
	}
}

// With more looks the bound rises and the cost falls, to the optimum; no more are taken than are allowed
// but for the first sweep and the section at hand.
func TestSweepLooks(t *testing.T) {
	cut := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 31))
		p := &Problem{Name: "looks"}
		for i := range 60 {
			from := int64(i)
			p.Buffers = append(p.Buffers, Buffer{ID: fmt.Sprint(i),
				Lifetime: Interval{Lower: from, Upper: from + 2 + r.Int64N(16)}, Size: 20 + r.Int64N(80), Alignment: 1})
		}
		best, err := SpillSweep(t.Context(), p, 300, SweepOptions{})
		if err != nil || best.Status != milp.Optimal {
			t.Fatalf("seed %d: %+v, %v", seed, best, err)
		}
		bound := int64(0)
		for _, most := range []int64{0, 3000, 30_000, mostLooks} {
			w, err := newSweep(p, 300, SweepOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.most, w.mostLooks = 4, most
			got, err := w.solve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Bound < bound || got.Bound > best.Cost || got.Cost < best.Cost ||
				most == mostLooks && got.Status != milp.Optimal {
				t.Errorf("seed %d, %d looks: cost %d, bound %d, %s; the bound with fewer %d, the optimum %d", seed, most, got.Cost,
					got.Bound, got.Status, bound, best.Cost)
			}
			bound = got.Bound
			// The first sweep keeps 8 choices for each of 20 buffers of a section, at most.
			if section := int64(w.most) * 2 * 20 * 2; w.looks > max(8*20*3*60, most+section) {
				t.Errorf("seed %d: %d looks, expected about %d", seed, w.looks, most)
			}
			if got.Status != milp.Optimal {
				cut++
			}
		}
	}
	if cut == 0 {
		t.Error("no sweep was cut short")
	}
}
