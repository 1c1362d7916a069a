package split

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// random is a graph of up to nine atoms with groups of any shape: intervals, and
// connected and other sets of atoms, some of which can't run together.
func random(r *rand.Rand) *Problem {
	n := 1 + r.IntN(9)
	p := &Problem{}
	for a := range n {
		var reads []int
		for b := range a {
			if r.IntN(3) == 0 || b == a-1 && r.IntN(2) == 0 {
				reads = append(reads, b)
			}
		}
		p.Reads = append(p.Reads, reads)
		p.Groups = append(p.Groups, Group{[]int{a}, float64(1+r.IntN(20)) * 1e-6})
	}
	for range r.IntN(40) {
		var atoms []int
		if lo := r.IntN(n); r.IntN(2) == 0 {
			for a := lo; a < n && (a == lo || r.IntN(4) > 0); a++ {
				atoms = append(atoms, a)
			}
		} else {
			for a := range n {
				if r.IntN(3) == 0 {
					atoms = append(atoms, a)
				}
			}
		}
		if len(atoms) > 0 {
			p.Groups = append(p.Groups, Group{atoms, float64(r.IntN(12*len(atoms))) * 1e-6})
		}
	}
	return p
}

// bruteForce is the least cost of all choices, found by taking the groups of the
// first atom that has none, one after the other; every complete choice is judged by
// trying to run its groups.
func bruteForce(p *Problem) float64 {
	n := len(p.Reads)
	of := make([]int, n)
	for a := range of {
		of[a] = -1
	}
	runs := func() bool {
		done := make([]bool, len(p.Groups))
		for range n {
			for a := range n { // run a's group if it can
				ready := !done[of[a]]
				for b := range n {
					if of[b] == of[a] {
						for _, c := range p.Reads[b] {
							ready = ready && (of[c] == of[a] || done[of[c]])
						}
					}
				}
				if ready {
					done[of[a]] = true
				}
			}
		}
		for a := range n {
			if !done[of[a]] {
				return false
			}
		}
		return true
	}
	best := math.Inf(1)
	var visit func(cost float64)
	visit = func(cost float64) {
		first := -1
		for a := n - 1; a >= 0; a-- {
			if of[a] < 0 {
				first = a
			}
		}
		if first < 0 {
			if cost < best && runs() {
				best = cost
			}
			return
		}
	groups:
		for k, g := range p.Groups {
			has := false
			for _, a := range g.Atoms {
				if of[a] >= 0 {
					continue groups
				}
				has = has || a == first
			}
			if !has {
				continue
			}
			for _, a := range g.Atoms {
				of[a] = k
			}
			visit(cost + g.Seconds)
			for _, a := range g.Atoms {
				of[a] = -1
			}
		}
	}
	visit(0)
	return best
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(a, b)+1e-15 }

func TestSearchAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	better := 0
	for k := range 600 {
		p := random(r)
		want := bruteForce(p)
		y, intervals := p.potentials()
		if err := p.CheckChoice(intervals); err != nil {
			t.Fatalf("problem %d: the best intervals are no choice: %v", k, err)
		}
		for g := range p.Groups {
			sum := 0.0
			for _, a := range p.Groups[g].Atoms {
				sum += y[a]
			}
			if sum > p.Groups[g].Seconds+1e-12 {
				t.Fatalf("problem %d: potentials of group %d are %g, its cost %g", k, g, sum, p.Groups[g].Seconds)
			}
		}
		if !same(p.Seconds(intervals), want) {
			better++
		}
		for _, opts := range []Options{{}, {Start: intervals}} {
			got, err := Search(context.Background(), p, opts)
			if err != nil {
				t.Fatalf("problem %d, %+v: %v", k, opts, err)
			}
			if err := p.CheckChoice(got.Choice); err != nil {
				t.Fatalf("problem %d, %+v: %v", k, opts, err)
			}
			if got.Status != milp.Optimal || !same(got.Objective, want) || !same(got.Bound, want) ||
				got.Objective != p.Seconds(got.Choice) {
				t.Fatalf("problem %d, %+v: got %+v, brute force finds %g", k, opts, got, want)
			}
		}
		judged, err := p.Judge(intervals)
		if err != nil || judged.Objective < want && !same(judged.Objective, want) ||
			judged.Bound > want && !same(judged.Bound, want) {
			t.Fatalf("problem %d: judged %+v, %v; the best is %g", k, judged, err, want)
		}
	}
	if better < 50 {
		t.Errorf("only %d problems need other groups than intervals", better)
	}
}

// At a limit there is an answer with a bound, and both hold.
func TestSearchAtLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	open := 0
	for k := range 200 {
		p := random(r)
		want := bruteForce(p)
		for _, c := range []struct {
			ctx  context.Context
			most int64
			stop milp.Stop
		}{{context.Background(), 3, milp.StopWork}, {cancelled, 0, milp.StopCancelled}} {
			got, err := Search(c.ctx, p, Options{WorkLimit: c.most})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.CheckChoice(got.Choice); err != nil {
				t.Fatalf("problem %d: %v", k, err)
			}
			if got.Objective < want && !same(got.Objective, want) || got.Bound > want && !same(got.Bound, want) {
				t.Fatalf("problem %d: got %+v, the best is %g", k, got, want)
			}
			if got.Status == milp.Feasible {
				if open++; got.Stop != c.stop {
					t.Fatalf("problem %d: stopped by %v, want %v", k, got.Stop, c.stop)
				}
			}
		}
	}
	if open == 0 {
		t.Error("no limit was reached")
	}
}

// Groups that read each other in a circle can't be chosen together, however cheap.
func TestCircle(t *testing.T) {
	// 0 -> 1 -> 2 -> 3, and {0, 2} with {1, 3} would wait for each other.
	p := &Problem{Reads: [][]int{nil, {0}, {1}, {2}}, Groups: []Group{
		{[]int{0}, 5}, {[]int{1}, 5}, {[]int{2}, 5}, {[]int{3}, 5}, {[]int{0, 2}, 1}, {[]int{1, 3}, 1}, {[]int{0, 1}, 9}}}
	got, err := Search(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Objective != 19 || got.Status != milp.Optimal {
		t.Errorf("got %+v, want 19: one pair and two atoms by themselves", got)
	}
	if order, circle := p.arrange([]int{4, 5}); order != nil || len(circle) != 2 {
		t.Errorf("got order %v and circle %v, want a circle of two", order, circle)
	}
	if p.CheckChoice([]int{4, 5}) == nil {
		t.Error("a circle passes the check")
	}
}

func TestValidate(t *testing.T) {
	ok := Problem{Reads: [][]int{nil, {0}}, Groups: []Group{{[]int{0}, 1}, {[]int{1}, 1}}}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Problem)
		want   string
	}{
		"reads itself": {func(p *Problem) { p.Reads = [][]int{nil, {1}} },
			"reads[1]: found [1], expected smaller numbers, ascending"},
		"no singleton": {func(p *Problem) { p.Groups = p.Groups[:1] },
			"groups: found none of atom 1 alone, expected each atom as a group of its own"},
		"empty group": {func(p *Problem) { p.Groups = append(p.Groups, Group{nil, 1}) },
			"groups[2].atoms: found [], expected some of 2 atoms, ascending"},
		"twice an atom": {func(p *Problem) { p.Groups = append(p.Groups, Group{[]int{1, 1}, 1}) },
			"groups[2].atoms: found [1 1], expected some of 2 atoms, ascending"},
		"infinite costs": {func(p *Problem) { p.Groups = append(p.Groups, Group{[]int{0, 1}, math.Inf(1)}) },
			"groups[2].cost: found +Inf, expected a finite number from 0 on"},
	} {
		p := Problem{Reads: ok.Reads, Groups: append([]Group(nil), ok.Groups...)}
		c.change(&p)
		if err := p.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
