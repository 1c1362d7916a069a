package allocate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// kind says what random problems may have.
type kind struct {
	name           string
	aligned, fixed bool
}

var kinds = []kind{
	{name: "plain"},
	{name: "alignment", aligned: true},
	{name: "fixed", fixed: true},
	{name: "all", aligned: true, fixed: true},
}

const lastTime = 8

// random is a problem that exhaustive search can cope with.
func random(k kind, seed uint64) *Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	within := func(lo, hi int64) int64 { return lo + r.Int64N(hi-lo+1) }
	p := &Problem{Name: fmt.Sprintf("%s %d", k.name, seed)}
	for i := range within(1, 6) {
		b := Buffer{ID: fmt.Sprintf("b%d", i), Size: within(0, 4)}
		b.Lifetime.Lower = within(0, lastTime-1)
		b.Lifetime.Upper = within(b.Lifetime.Lower+1, lastTime)
		if k.aligned && r.IntN(2) == 0 {
			b.Alignment = within(1, 3)
		}
		if k.fixed && r.IntN(4) == 0 {
			o := b.Up(within(0, 5))
			b.Offset = &o
		}
		if r.IntN(4) == 0 {
			h := within(0, 6)
			b.Hint = &h
		}
		if r.IntN(3) == 0 {
			c := within(0, 9)
			b.SpillCost = &c
		}
		p.Buffers = append(p.Buffers, b)
	}
	return p
}

// fits tries all offsets. All lifetimes end by 12.
func fits(p *Problem, capacity int64) bool {
	offsets := make([]int64, len(p.Buffers))
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(p.Buffers) {
			return true
		}
		b := &p.Buffers[i]
		for o := int64(0); o+b.Size <= capacity; o += b.Align() {
			if b.Offset != nil && *b.Offset != o {
				continue
			}
			offsets[i] = o
			free := true
			for j := 0; j < i && free; j++ {
				for t := int64(0); t < 12 && free; t++ {
					x, y := at(b, t), at(&p.Buffers[j], t)
					free = x.Len() == 0 || y.Len() == 0 || o+x.Upper <= offsets[j]+y.Lower || offsets[j]+y.Upper <= o+x.Lower
				}
			}
			if free && place(i+1) {
				return true
			}
		}
		return false
	}
	return place(0)
}

// leastPeak is the optimum by trying all, -1 if there is no placement.
func leastPeak(p *Problem) int64 {
	for c := int64(0); c <= p.Reach(); c++ {
		if fits(p, c) {
			return c
		}
	}
	return -1
}

// forRandom runs a test on seeded problems of all kinds.
func forRandom(t *testing.T, seeds uint64, test func(t *testing.T, p *Problem)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for seed := range seeds {
				p := random(k, seed)
				if err := p.Validate(); err != nil {
					t.Fatalf("%s: %v", p.Name, err)
				}
				test(t, p)
				if t.Failed() {
					t.Fatalf("%s: %+v", p.Name, p.Buffers)
				}
			}
		})
	}
}

// peak is a result's peak, -1 without one.
func peak(r *Result) int64 {
	if r.Peak == nil {
		return -1
	}
	return *r.Peak
}

// finder is a search for one placement.
type finder interface {
	fit(ctx context.Context, rule preorder, capacity, limit int64) (verdict, int64)
	offsets() []int64
}

// finders are the searches that are complete by themselves.
func finders(p *Problem) []finder {
	return []finder{newPairwise(p), newCanonical(p)}
}

func checkMinimum(t *testing.T, p *Problem, want int64, sol *Result, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Error(err)
	case want < 0:
		if sol.Status != milp.Infeasible || sol.Offsets != nil {
			t.Errorf("found %+v, want infeasible", sol)
		}
	case sol.Status != milp.Optimal || peak(sol) != want || sol.Bound != want:
		t.Errorf("found %+v, want peak and bound %d", sol, want)
	default:
		if err := Check(p, want, sol.Offsets); err != nil {
			t.Error(err)
		}
	}
}

// The search agrees with trying all offsets on the least peak and on which capacities
// suffice, whatever the numbering.
func TestSearchAgainstAllOffsets(t *testing.T) {
	forRandom(t, 250, func(t *testing.T, p *Problem) {
		want := leastPeak(p)
		if want >= 0 && p.Bound() > want {
			t.Errorf("bound %d, but the least peak is %d", p.Bound(), want)
		}
		sol, err := Minimize(context.Background(), p, Options{})
		checkMinimum(t, p, want, sol, err)
		for c := max(0, want-2); c <= max(want+2, 6); c++ {
			sol, err := Fit(context.Background(), p, c, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if fit := want >= 0 && c >= want; fit != sol.Status.HasValues() || !fit && sol.Status != milp.Infeasible {
				t.Errorf("capacity %d: found %+v, but the least peak is %d", c, sol, want)
			} else if fit && (peak(sol) > c || Check(p, c, sol.Offsets) != nil || sol.Bound > want) {
				t.Errorf("capacity %d: found %+v, the least peak is %d: %v", c, sol, want, Check(p, c, sol.Offsets))
			} else if !fit && want >= 0 && sol.Bound > want {
				t.Errorf("capacity %d: bound %d, but the least peak is %d", c, sol.Bound, want)
			}
			for _, f := range finders(p) {
				if c < p.Bound() {
					continue // seen before any search
				}
				for _, rule := range []preorder{"T", "SO"} {
					v, _ := f.fit(context.Background(), rule, c, 1<<40)
					if (v == found) != (want >= 0 && c >= want) || v != found && v != notThere {
						t.Errorf("capacity %d: %T ends with %d, but the least peak is %d", c, f, v, want)
					}
					if v == found && Check(p, c, f.offsets()) != nil {
						t.Errorf("capacity %d: %T: %v", c, f, Check(p, c, f.offsets()))
					}
				}
			}
		}
	})
}

// larger is a problem beyond trying all offsets.
func larger(seed uint64, n int) *Problem {
	r := rand.New(rand.NewPCG(seed, 11))
	p := &Problem{Name: fmt.Sprint("larger ", seed)}
	for i := range n {
		lo := r.Int64N(20)
		p.Buffers = append(p.Buffers, Buffer{ID: fmt.Sprint(i), Size: 1 + r.Int64N(9),
			Lifetime: Interval{Lower: lo, Upper: lo + 1 + r.Int64N(8)}})
	}
	return p
}

// jagged is a problem of nine buffers with short lives.
func jagged(seed uint64, times, sizes int64) *Problem {
	r := rand.New(rand.NewPCG(seed, 13))
	p := &Problem{Name: fmt.Sprint("jagged ", seed)}
	for i := range 9 {
		lo := r.Int64N(times - 1)
		p.Buffers = append(p.Buffers, Buffer{ID: fmt.Sprint(i), Size: 1 + r.Int64N(sizes),
			Lifetime: Interval{Lower: lo, Upper: min(times, lo+1+r.Int64N(4))}})
	}
	return p
}

// Where each buffer may lie anywhere, few small problems need more than the largest
// sum of live sizes, one of 60,000 of this kind: these do. Whatever the
// numbering, the proof that the bound is out of reach must succeed.
func TestPeakAboveBound(t *testing.T) {
	for _, c := range []struct {
		seed         uint64
		times, sizes int64
	}{{3644, 8, 5}, {34224, 10, 3}, {47626, 10, 5}} {
		p := jagged(c.seed, c.times, c.sizes)
		bound := p.Bound()
		if fits(p, bound) || !fits(p, bound+1) {
			t.Fatalf("%s: %+v: want a least peak of %d", p.Name, p.Buffers, bound+1)
		}
		sol, err := Minimize(context.Background(), p, Options{})
		checkMinimum(t, p, bound+1, sol, err)
		if v, _ := newPairwise(p).fit(context.Background(), "", bound, 1<<40); v != notThere {
			t.Errorf("%s: the search over pairs ends with %d", p.Name, v)
		}
	}
}

func TestLimits(t *testing.T) {
	p := larger(3, 30)
	best, err := Minimize(context.Background(), p, Options{})
	if err != nil || best.Status != milp.Optimal {
		t.Fatalf("%+v, %v", best, err)
	}
	stack := make([]int64, len(p.Buffers))
	for i := 1; i < len(stack); i++ {
		stack[i] = stack[i-1] + p.Buffers[i-1].Size
	}
	for _, c := range []struct {
		name   string
		opts   Options
		status milp.Status
	}{
		{"nodes", Options{WorkLimit: 5}, milp.Limit},
		{"nodes, with a start", Options{WorkLimit: 5, Start: stack}, milp.Feasible},
		{"best start", Options{WorkLimit: 1, Start: best.Offsets}, milp.Feasible},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.status
			if c.name == "best start" && peak(best) == p.Bound() {
				want = milp.Optimal
			}
			sol, err := Minimize(context.Background(), p, c.opts)
			if err != nil || sol.Status != want || sol.Bound > peak(best) || sol.Status.HasValues() && peak(sol) < peak(best) ||
				!want.HasValues() && sol.Stop != milp.StopWork {
				t.Errorf("found %+v, %v, want %v", sol, err, want)
			}
		})
	}
}

// The least peak does not depend on whether a capacity is tried first, and a capacity
// that is too small is refused.
func TestTighten(t *testing.T) {
	for seed := range uint64(30) {
		p := larger(seed, 15)
		least, err := Minimize(context.Background(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, more := range []int64{-1, 0, 5, 1000} {
			c := peak(least) + more
			r, err := Tighten(context.Background(), p, c, "search", Options{})
			if err != nil || *r.Capacity != c || more < 0 && r.Status != milp.Infeasible ||
				more >= 0 && (r.Status != milp.Optimal || peak(r) != peak(least)) {
				t.Errorf("%s: %+v, %v, want %d", p.Name, r, err, peak(least))
			}
			if r, err = Tighten(context.Background(), p, c, string(firstFit), Options{}); err != nil ||
				r.Status.HasValues() && peak(r) > c {
				t.Errorf("%s: %+v, %v", p.Name, r, err)
			}
		}
	}
}

func TestSearchIsDeterministic(t *testing.T) {
	p := larger(5, 40)
	a, err := Minimize(context.Background(), p, Options{WorkLimit: 20000})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Minimize(context.Background(), p, Options{WorkLimit: 20000})
	if err != nil || !slices.Equal(a.Offsets, b.Offsets) || a.Nodes != b.Nodes || a.Bound != b.Bound {
		t.Errorf("first %+v, then %+v, %v", a, b, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	p := larger(1, 5)
	for _, o := range []Options{
		{TimeLimit: -1}, {WorkLimit: -1}, {Start: []int64{0}}, {Start: make([]int64, 5)},
	} {
		if sol, err := Minimize(context.Background(), p, o); err == nil {
			t.Errorf("%+v: found %+v, want an error", o, sol)
		}
		if sol, err := Fit(context.Background(), p, 100, o); err == nil {
			t.Errorf("%+v: found %+v, want an error", o, sol)
		}
	}
	if _, err := Fit(context.Background(), p, -1, Options{}); err == nil {
		t.Error("a negative capacity is accepted")
	}
	p.Buffers[0].Size = -1
	if _, err := Fit(context.Background(), p, 100, Options{}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a negative size: %v", err)
	}
}
