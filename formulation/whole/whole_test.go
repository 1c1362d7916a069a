package whole_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/whole"
	"github.com/dsasched/dsasched/model/schedule"
)

// random is a chain of atoms, some of which read another one as well; parts are intervals.
func random(seed uint64, atoms int) *whole.Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &whole.Problem{Name: fmt.Sprint("random ", seed), Atoms: atoms, CapacityBytes: 2 + r.Int64N(12), MoveSeconds: 1e-6 * float64(r.IntN(4))}
	reads := make([][]int, atoms)
	for a := 1; a < atoms; a++ {
		reads[a] = append(reads[a], a-1)
		if a > 1 && r.IntN(3) == 0 {
			reads[a] = append(reads[a], r.IntN(a-1))
		}
	}
	for lo := range atoms {
		for hi := lo + 1; hi <= min(atoms, lo+3); hi++ {
			for _, n := range []int{1, 2} {
				if hi > lo+1 && r.IntN(2) == 0 {
					continue
				}
				o := whole.Part{Name: fmt.Sprintf("%d-%d in %d", lo, hi, n), Seconds: 1e-6 * float64(r.IntN(5)*n)}
				for a := lo; a < hi; a++ {
					o.Atoms = append(o.Atoms, a)
				}
				for range n {
					in := whole.Instance{OutputBytes: 1 + r.Int64N(3), WorkspaceBytes: r.Int64N(3)}
					for l := range 2 + r.IntN(2) {
						in.Labels = append(in.Labels, binding.Label{Binding: schedule.Binding{int64(l + 1)}, Scope: []schedule.Level{schedule.LB, schedule.GB}[l%2]})
						in.Cost = append(in.Cost, 1e-6*float64(r.IntN(10)))
					}
					o.Instances = append(o.Instances, in)
				}
				p.Parts = append(p.Parts, o)
			}
		}
	}
	for a := range p.Parts {
		for b := range a {
			if r.IntN(4) == 0 {
				p.Apart = append(p.Apart, [2]int{a, b})
			}
		}
	}
	for f, from := range p.Parts {
		for t, to := range p.Parts {
			if !slices.ContainsFunc(to.Atoms, func(a int) bool {
				return slices.ContainsFunc(reads[a], func(b int) bool { return slices.Contains(from.Atoms, b) })
			}) || slices.ContainsFunc(to.Atoms, func(a int) bool { return slices.Contains(from.Atoms, a) }) {
				continue
			}
			for q, x := range from.Instances {
				for s, y := range to.Instances {
					if len(from.Instances) == len(to.Instances) && q != s {
						continue
					}
					e := whole.Edge{From: [2]int{f, q}, To: [2]int{t, s}}
					for range x.Labels {
						row := make([]float64, len(y.Labels))
						for k := range row {
							row[k] = 1e-6 * float64(r.IntN(6))
						}
						e.Cost = append(e.Cost, row)
					}
					p.Edges = append(p.Edges, e)
				}
			}
		}
	}
	return p
}

// brute solves every set of parts as a joint problem.
func brute(t *testing.T, p *whole.Problem) float64 {
	best := math.Inf(1)
	var cover func(parts []int, done int)
	cover = func(parts []int, done int) {
		if done < p.Atoms {
			for o, part := range p.Parts {
				if part.Atoms[0] == done {
					cover(append(slices.Clone(parts), o), done+len(part.Atoms))
				}
			}
			return
		}
		j, err := p.Joint(parts)
		if err != nil {
			t.Fatal(err)
		}
		if j == nil {
			return
		}
		sum := 0.0
		for _, o := range parts {
			sum += p.Parts[o].Seconds
		}
		r, err := joint.Search(context.Background(), j, joint.SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Choice != nil {
			if r.Status != milp.Optimal {
				t.Fatalf("parts %v are not solved: %v", parts, r.Status)
			}
			best = min(best, sum+r.Objective)
		}
	}
	cover(nil, 0)
	return best
}

// The search, the integer program and all sets of parts tried one by one agree.
func TestAgainstAllSets(t *testing.T) {
	solver, missing := highs.New()
	infeasible := 0
	for seed := range uint64(60) {
		p := random(seed, 3+int(seed%2))
		want := brute(t, p)
		for _, method := range []string{"search", "ilp"} {
			if method == "ilp" && (missing != nil || seed%2 == 1 || seed > 20) {
				continue
			}
			r, err := whole.Solve(context.Background(), p, method, whole.Options{Solver: solver})
			if err != nil {
				t.Fatalf("%s by %s: %v", p.Name, method, err)
			}
			if math.IsInf(want, 1) {
				if infeasible++; r.Status != milp.Infeasible {
					t.Errorf("%s by %s: %+v, expected no answer", p.Name, method, r)
				}
				continue
			}
			if r.Status != milp.Optimal || math.Abs(r.Objective-want) > 1e-9 {
				t.Errorf("%s by %s: %v, %g (bound %g), expected %g", p.Name, method, r.Status, r.Objective, r.Bound, want)
				continue
			}
			if cost, err := p.Seconds(r.Choice); err != nil || math.Abs(cost-r.Objective) > 1e-12 {
				t.Errorf("%s by %s: costs %g, says %g: %v", p.Name, method, cost, r.Objective, err)
			}
		}
	}
	if infeasible == 0 {
		t.Error("none of the problems has no answer")
	}
}

// Limits leave the start or better, and a bound that holds.
func TestLimits(t *testing.T) {
	p, all := random(0, 5), &whole.Result{}
	var err error
	for seed := uint64(0); all.Sets < 3 || all.Status != milp.Optimal; seed++ {
		p = random(seed, 5)
		if all, err = whole.Search(context.Background(), p, whole.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	one, err := whole.Search(context.Background(), p, whole.Options{WorkLimit: 1})
	if err != nil || one.Stop != milp.StopWork || one.Sets != 1 || one.Bound > all.Objective {
		t.Errorf("after one set: %+v, %v", one, err)
	}
	r, err := whole.Search(cancelled, p, whole.Options{Start: one.Choice})
	if err != nil || r.Stop != milp.StopCancelled || r.Objective != one.Objective || r.Bound > all.Objective {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	if _, err := whole.Search(cancelled, p, whole.Options{Start: &whole.Choice{Parts: []int{0}}}); err == nil || !strings.Contains(err.Error(), "atom") {
		t.Errorf("a start without all atoms: %v", err)
	}
}

// Problems that make no sense are refused.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		spoil func(*whole.Problem)
		want  string
	}{
		{func(p *whole.Problem) { p.MoveSeconds = math.NaN() }, "seconds to move"},
		{func(p *whole.Problem) { p.Parts[0].Atoms = []int{9} }, "atoms [9]"},
		{func(p *whole.Problem) { p.Parts[0].Instances = nil }, "0 instances"},
		{func(p *whole.Problem) { p.Parts[0].Instances[0].Cost[0] = -1 }, "costs"},
		{func(p *whole.Problem) { p.Apart = append(p.Apart, [2]int{0, 99}) }, "apart"},
		{func(p *whole.Problem) { p.Edges[0].To = p.Edges[0].From }, "edge 0 joins"},
		{func(p *whole.Problem) { p.Edges[0].Cost[0] = nil }, "labels"},
	} {
		p := random(1, 3)
		c.spoil(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected an error with %q", err, c.want)
		}
	}
}
