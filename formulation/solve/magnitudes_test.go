package solve_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
)

// A posed problem has its exact methods and, by trying everything, the least cost: +Inf if there is none.
type posed struct {
	name  string
	least float64
	whole bool // costs are whole numbers, to be met exactly
	rows  []solve.Method
	run   func(ctx context.Context, method string) (solve.Outcome, error)
}

// every calls f with each list of n digits below base.
func every(n, base int, f func(digits []int)) {
	digits := make([]int, n)
	for {
		f(digits)
		k := 0
		for ; k < n && digits[k] == base-1; k++ {
			digits[k] = 0
		}
		if k == n {
			return
		}
		digits[k]++
	}
}

// posedBySystems has the problems of systems, which can be taken off.
var posedBySystems []func(r *rand.Rand, unit float64, bytes int64, odd func() float64,
	solver milp.Solver) posed

// pose draws one problem of each kind, with times and costs, or bytes, about unit; beside is 1 or, for bytes and times
// of some, by how much more they are.
func pose(t *testing.T, seed uint64, unit, beside float64, solver milp.Solver) (list []posed) {
	r := rand.New(rand.NewPCG(seed, 5))
	odd := func() float64 {
		if r.IntN(3) == 0 {
			return beside
		}
		return 1
	}
	bytes := int64(min(max(1, unit), 1e13/beside))

	labels := tangle(r, 4, 3)
	for i := range labels.Nodes {
		for l := range labels.Nodes[i].Cost {
			labels.Nodes[i].Cost[l] *= 1e6 * unit * odd()
		}
	}
	for _, e := range labels.Edges {
		for _, row := range e.Cost {
			for k := range row {
				row[k] *= 1e6 * unit
			}
		}
	}
	least := math.Inf(1)
	every(len(labels.Nodes), 3, func(choice []int) { least = min(least, labels.Seconds(choice)) })
	list = append(list, posed{"bind", least, false, binding.Methods(),
		func(ctx context.Context, name string) (solve.Outcome, error) {
			return outcome(binding.Solve(ctx, labels, name, with[[]int](settings{}, nil, solver)))
		}})

	groups, _ := parts(r, 7)
	groups.Groups = groups.Groups[:7+r.IntN(6)]
	for k := range groups.Groups {
		groups.Groups[k].Seconds *= 1e5 * unit * odd()
	}
	least = math.Inf(1)
	every(len(groups.Groups), 2, func(in []int) {
		var choice []int
		made := map[int]bool{}
		for range in { // a group comes once all that it reads is made
			for k, x := range in {
				ready := x == 1 && !slices.Contains(choice, k)
				for _, a := range groups.Groups[k].Atoms {
					for _, u := range groups.Reads[a] {
						ready = ready && (made[u] || slices.Contains(groups.Groups[k].Atoms, u))
					}
				}
				if ready {
					choice = append(choice, k)
					for _, a := range groups.Groups[k].Atoms {
						made[a] = true
					}
				}
			}
		}
		if groups.CheckChoice(choice) == nil {
			least = min(least, groups.Seconds(choice))
		}
	})
	list = append(list, posed{"split", least, false, split.Methods(),
		func(ctx context.Context, name string) (solve.Outcome, error) {
			return outcome(split.Solve(ctx, groups, name, with[[]int](settings{}, nil, solver)))
		}})

	for _, more := range posedBySystems {
		list = append(list, more(r, unit, bytes, odd, solver))
	}

	buffers := memory(r, 6)
	for i := range buffers.Buffers {
		b := &buffers.Buffers[i]
		b.Lifetime.Lower, b.Lifetime.Upper = b.Lifetime.Lower/4, b.Lifetime.Upper/4+1
		b.Size = (1 + r.Int64N(9)) * bytes * int64(odd())
		*b.SpillCost = (1 + r.Int64N(9)) * bytes * int64(odd())
		if r.IntN(2) == 0 {
			b.Alignment = 1 + r.Int64N(8)
		}
	}
	list = append(list, posed{"allocate", float64(lowestPeak(buffers)), true, allocate.Methods(),
		func(ctx context.Context, name string) (solve.Outcome, error) {
			return outcome(allocate.Solve(ctx, buffers, allocate.NoLimit, name, with[[]int64](settings{}, nil, solver)))
		}})
	room := buffers.Bound() * 2 / 3
	least = math.Inf(1)
	every(len(buffers.Buffers), 2, func(in []int) {
		spilled := make([]bool, len(in))
		for i, x := range in {
			spilled[i] = x == 1
		}
		for time := range int64(20) {
			live := int64(0)
			for i, b := range buffers.Buffers {
				if !spilled[i] && b.Lifetime.Lower <= time && time < b.Lifetime.Upper {
					live += b.Size
				}
			}
			if live > room {
				return
			}
		}
		least = min(least, float64(allocate.SpillCost(buffers, spilled)))
	})
	list = append(list, posed{"spill", least, true, allocate.SpillMethods(),
		func(ctx context.Context, name string) (solve.Outcome, error) {
			return outcome(allocate.SolveSpill(ctx, buffers, room, name,
				allocate.SpillOptions{Options: with(settings{}, allocate.SpillStart{}, solver)}))
		}})

	order := halo(2)
	for k := range order.Subgraphs {
		order.Subgraphs[k].OutputBytes *= bytes * int64(odd())
		order.Subgraphs[k].WorkspaceBytes *= bytes
	}
	g := ordering.NewGraph(order)
	order.CapacityBytes = g.LargestNeed() + 2
	brute, err := ordering.Solve(t.Context(), order, ordering.Traffic, "search", with[[]int](settings{}, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, posed{"order", brute.Cost, true, ordering.Methods(),
		func(ctx context.Context, name string) (solve.Outcome, error) {
			return outcome(ordering.Solve(ctx, order, ordering.Traffic, name, with[[]int](settings{}, nil, solver)))
		}})
	return list
}

// lowestPeak is the least peak of all orders in which buffers are put, each as low as those before it allow: one of
// them is a best placement.
func lowestPeak(p *allocate.Problem) int64 {
	n := len(p.Buffers)
	best := int64(math.MaxInt64)
	offsets := make([]int64, n)
	var place func(done int, peak int64)
	place = func(done int, peak int64) {
		if peak >= best {
			return
		}
		if done == 1<<n-1 {
			best = peak
			return
		}
		for i := range n {
			if done>>i&1 == 1 {
				continue
			}
			b := &p.Buffers[i]
			at := int64(0)
			for again := true; again; {
				again = false
				for j := range n {
					o := &p.Buffers[j]
					if done>>j&1 == 1 && o.Lifetime.Lower < b.Lifetime.Upper && b.Lifetime.Lower < o.Lifetime.Upper &&
						at < offsets[j]+o.Size && offsets[j] < at+b.Size {
						at, again = b.Up(offsets[j]+o.Size), true
					}
				}
			}
			offsets[i] = at
			place(done|1<<i, max(peak, at+b.Size))
		}
	}
	place(0, 0)
	return best
}

// Every exact method finds what trying everything finds, whatever the unit of the numbers and with numbers of different
// sizes beside each other, and says optimal of nothing else.
func TestMagnitudes(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Skip(err)
	}
	seeds := uint64(12)
	if testing.Short() {
		seeds = 2
	}
	proven, all := map[string]int{}, 0
	for _, unit := range []float64{1e-9, 1e-3, 1, 1e6, 1e8, 1e12} {
		for _, beside := range []float64{1, 1e3, 1e9} {
			if unit*beside > 1e15 {
				continue
			}
			for seed := range seeds {
				all++
				for _, p := range pose(t, seed, unit, beside, solver) {
					for _, m := range p.rows {
						if !m.Exact {
							continue
						}
						at := fmt.Sprintf("%s %s, seed %d, unit %g beside %g", p.name, m.Name, seed, unit, beside)
						o, err := p.run(t.Context(), m.Name)
						near := solve.Agree * p.least
						if p.whole && m.Name != "ilp" {
							near = 0
						}
						switch {
						case err != nil:
							t.Errorf("%s: %v", at, err)
						case o.Bound > p.least+near && !math.IsInf(p.least, 1) || o.Objective < p.least-1e-9*p.least:
							t.Errorf("%s: %+v, the least is %v", at, o, p.least)
						case o.Status == milp.Optimal && o.Objective > p.least+near ||
							o.Status == milp.Infeasible != math.IsInf(p.least, 1):
							t.Errorf("%s: %+v, the least is %v", at, o, p.least)
						case o.Status == milp.Optimal || o.Status == milp.Infeasible:
							proven[p.name+" "+m.Name]++
						}
					}
				}
			}
		}
	}
	for name, n := range proven {
		t.Logf("%s: %d of %d proven", name, n, all)
	}
	for name, n := range proven {
		if n < all*9/10 {
			t.Errorf("%s proves %d of %d", name, n, all)
		}
	}
}
