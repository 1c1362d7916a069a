package solve_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/model/schedule"
)

// settings are the options of any method, but for the start, of which a method
// here has one or none.
type settings struct {
	limit    time.Duration
	work     int64
	start    bool
	progress func(milp.Progress)
}

// A method runs on a problem that takes it longer than the tests wait.
type method struct {
	name string
	run  func(ctx context.Context, set settings) (solve.Outcome, error)
	// start is the cost of the start.
	start float64
	// nodes: the work is a solver's, whose first node takes long.
	nodes bool
	// loose: progress may be of solutions that turn out to be none.
	loose bool
}

// with makes the options of a package.
func with[S any](set settings, start S, solver milp.Solver) solve.Options[S] {
	o := solve.Options[S]{TimeLimit: set.limit, WorkLimit: set.work, Progress: set.progress, Solver: solver}
	if set.start {
		o.Start = start
	}
	return o
}

// outcome is the outcome of a result of any package.
func outcome(r interface{ Outcome() solve.Outcome }, err error) (solve.Outcome, error) {
	if err != nil {
		return solve.Outcome{}, err
	}
	return r.Outcome(), nil
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// adder lists the exact ones of some methods, which run on a hard problem whose start has that cost.
type adder func(rows []solve.Method, problem string, start float64,
	run func(ctx context.Context, name string, set settings) (solve.Outcome, error))

// ofSystems are the methods of systems (package systems).
var ofSystems []func(milp.Solver, adder)

// methods lists every exact method of every package on a hard problem.
func methods(t *testing.T) []method {
	solver, missing := highs.New()
	r := rand.New(rand.NewPCG(1, 2))
	var list []method
	add := func(rows []solve.Method, problem string, start float64,
		run func(ctx context.Context, name string, set settings) (solve.Outcome, error)) {
		for _, m := range rows {
			if m.Exact && (!m.NeedsSolver || missing == nil) {
				list = append(list, method{problem + " " + m.Name, func(ctx context.Context, set settings) (solve.Outcome,
					error) {
					return run(ctx, m.Name, set)
				}, start, m.NeedsSolver, strings.Contains(problem, "place=true")})
			}
		}
	}

	order := halo(9)
	g := ordering.NewGraph(order)
	for _, objective := range []ordering.Objective{ordering.Traffic, ordering.Peak} {
		greedy := must[*ordering.Result](t)(ordering.ByRule(order, ordering.BFS, objective))
		add(ordering.Methods(), "order "+string(objective), greedy.Cost,
			func(ctx context.Context, name string, set settings) (solve.Outcome, error) {
				return outcome(ordering.Solve(ctx, order, objective, name, with(set, g.Topological(), solver)))
			})
	}

	labels := tangle(r, 14, 5)
	first := make([]int, len(labels.Nodes))
	add(binding.Methods(), "bind", labels.Seconds(first),
		func(ctx context.Context, name string, set settings) (solve.Outcome, error) {
			return outcome(binding.Solve(ctx, labels, name, with(set, first, solver)))
		})

	groups, alone := parts(r, 26)
	add(split.Methods(), "split", groups.Seconds(alone),
		func(ctx context.Context, name string, set settings) (solve.Outcome, error) {
			return outcome(split.Solve(ctx, groups, name, with(set, alone, solver)))
		})

	buffers := memory(r, 60)
	stack := make([]int64, len(buffers.Buffers))
	all := make([]bool, len(buffers.Buffers))
	none := make([]int64, len(buffers.Buffers))
	for i := range stack {
		if all[i], none[i] = true, -1; i > 0 {
			stack[i] = stack[i-1] + buffers.Buffers[i-1].Size
		}
	}
	add(allocate.Methods(), "allocate", float64(buffers.Peak(stack)),
		func(ctx context.Context, name string, set settings) (solve.Outcome, error) {
			return outcome(allocate.Solve(ctx, buffers, allocate.NoLimit, name, with(set, stack, solver)))
		})
	out := allocate.SpillStart{Spilled: all, Offsets: none}
	room := buffers.Bound() / 2
	spilled := float64(allocate.SpillCost(buffers, all))
	for _, place := range []bool{false, true} {
		add(allocate.SpillMethods(), fmt.Sprintf("spill, place=%v,", place), spilled,
			func(ctx context.Context, name string, set settings) (solve.Outcome, error) {
				return outcome(allocate.SolveSpill(ctx, buffers, room, name,
					allocate.SpillOptions{Options: with(set, out, solver), Place: place}))
			})
	}
	add([]solve.Method{{Name: "sweep", Exact: true}}, "spill", spilled,
		func(ctx context.Context, _ string, set settings) (solve.Outcome, error) {
			return outcome(allocate.SpillSweep(ctx, buffers, room,
				allocate.SweepOptions{Options: with(set, out, solver), MaxStates: 100_000}))
		})
	for _, more := range ofSystems {
		more(solver, add)
	}
	return list
}

// Whatever ends a method early, it gives what it has: the start or better, a bound that
// holds, the reason, and no error; and nothing of it goes on.
func TestContract(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for _, m := range methods(t) {
		t.Run(m.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			known := math.Inf(1) // the best cost seen
			check := func(name string, o solve.Outcome, err error, start bool, stop milp.Stop) {
				t.Helper()
				switch {
				case err != nil:
					t.Fatalf("%s: %v", name, err)
				case o.Status == milp.Optimal:
					if o.Stop != milp.Complete || math.Abs(o.Objective-o.Bound) > 1e-9*math.Abs(o.Objective) {
						t.Errorf("%s: %+v", name, o)
					}
				case o.Stop != stop || o.Status != milp.Feasible && o.Status != milp.Limit:
					t.Errorf("%s: %+v, expected to stop for %v", name, o, stop)
				}
				if start && (!o.Status.HasValues() || o.Objective > m.start*(1+1e-12)) {
					t.Errorf("%s: %+v, the start costs %g", name, o, m.start)
				}
				if o.Status == milp.Feasible && o.Bound >= o.Objective || math.IsNaN(o.Bound) || math.IsInf(o.Bound, 0) {
					t.Errorf("%s: %+v, expected a bound below the objective", name, o)
				}
				if known = min(known, o.Objective); o.Bound > known*(1+1e-9) {
					t.Errorf("%s: %+v, but %g is known", name, o, known)
				}
			}
			for _, c := range []struct {
				name string
				ctx  context.Context
				set  settings
				stop milp.Stop
			}{
				{"cancelled before", cancelled, settings{}, milp.StopCancelled},
				{"cancelled before, start", cancelled, settings{start: true}, milp.StopCancelled},
				{"expired", expired, settings{}, milp.StopTime},
				{"expired, start", expired, settings{start: true}, milp.StopTime},
				{"time limit", context.Background(), settings{start: true, limit: time.Millisecond}, milp.StopTime},
				{"work limit", context.Background(), settings{start: true, work: 1}, milp.StopWork},
			} {
				if m.nodes && c.set.work > 0 {
					continue
				}
				o, err := m.run(c.ctx, c.set)
				check(c.name, o, err, c.set.start, c.stop)
			}
			// In the middle: after the first news, or after a while if there is none.
			running, stop := context.WithCancel(context.Background())
			timer := time.AfterFunc(200*time.Millisecond, stop)
			last := milp.Progress{Objective: math.Inf(1), Bound: math.Inf(-1)}
			o, err := m.run(running, settings{start: true, progress: func(p milp.Progress) {
				if p.Objective < last.Objective {
					last = p
				}
				stop()
			}})
			timer.Stop()
			check("cancelled in the middle", o, err, true, milp.StopCancelled)
			if o.Objective > last.Objective*(1+1e-9) && !m.loose {
				t.Errorf("%+v was told, the answer is %+v", last, o)
			}
			// Goroutines end by themselves; HiGHS may take a moment to notice.
			for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				}
			}
		})
	}
}

// halo is a chain of four sub-graphs whose instances read their neighbours' inputs, too.
func halo(n int) *ordering.Problem {
	p := &ordering.Problem{Name: "halo", StoreCostPerByte: 1, LoadCostPerByte: 1}
	for k := range 4 {
		p.Subgraphs = append(p.Subgraphs, ordering.Subgraph{Name: fmt.Sprint("s", k), Instances: n,
			OutputBytes: int64(3 + k%2), WorkspaceBytes: int64(4 - k)})
		if k > 0 {
			a := ordering.Arc{From: k - 1, To: k}
			for q := range n {
				a.Reads = append(a.Reads, [2]int{max(0, q-1), min(n, q+2)})
			}
			p.Arcs = append(p.Arcs, a)
		}
	}
	p.CapacityBytes = ordering.NewGraph(p).LargestNeed() + 2
	return p
}

// tangle joins every node with every other.
func tangle(r *rand.Rand, n, labels int) *binding.Problem {
	p := &binding.Problem{}
	for i := range n {
		node := binding.Node{Name: fmt.Sprint(i)}
		for l := range labels {
			node.Labels = append(node.Labels, binding.Label{Binding: schedule.Binding{int64(l) + 1}})
			node.Cost = append(node.Cost, r.Float64()*1e-6)
		}
		p.Nodes = append(p.Nodes, node)
		for j := range i {
			e := binding.Edge{From: j, To: i}
			for range labels {
				row := make([]float64, labels)
				for k := range row {
					row[k] = r.Float64() * 1e-5
				}
				e.Cost = append(e.Cost, row)
			}
			p.Edges = append(p.Edges, e)
		}
	}
	return p
}

// parts has groups that are no intervals.
func parts(r *rand.Rand, n int) (p *split.Problem, alone []int) {
	p = &split.Problem{}
	for a := range n {
		var reads []int
		if a > 1 {
			reads = []int{a - 2}
		}
		p.Reads = append(p.Reads, reads)
		p.Groups = append(p.Groups, split.Group{Atoms: []int{a}, Seconds: 1e-5})
		alone = append(alone, a)
	}
	for range 400 {
		var atoms []int
		for a := r.IntN(n); a < n && len(atoms) < 5; a += 1 + r.IntN(3) {
			atoms = append(atoms, a)
		}
		p.Groups = append(p.Groups, split.Group{Atoms: atoms, Seconds: (0.5 + r.Float64()/2) * float64(len(atoms)) * 1e-5})
	}
	return p, alone
}

func memory(r *rand.Rand, n int) *allocate.Problem {
	p := &allocate.Problem{Name: "memory"}
	for i := range n {
		lo := r.Int64N(30)
		cost := 1 + r.Int64N(1000)
		p.Buffers = append(p.Buffers, allocate.Buffer{ID: fmt.Sprint(i), Size: 100 + r.Int64N(900), SpillCost: &cost,
			Lifetime: allocate.Interval{Lower: lo, Upper: lo + 1 + r.Int64N(20)}})
	}
	return p
}
