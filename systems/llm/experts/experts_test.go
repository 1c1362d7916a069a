package experts

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// random draws a small problem: few and equal loads now and then.
func random(seed uint64, experts int) *Problem {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &Problem{Devices: 1 + r.IntN(4), Worst: r.IntN(2) == 0}
	scenarios, experts := 1+r.IntN(4), 1+r.IntN(experts)
	for s := range scenarios {
		p.Weight = append(p.Weight, float64(1+r.IntN(3)))
		for range 1 + r.IntN(2) {
			p.Scenario = append(p.Scenario, s)
		}
	}
	top := []int{2, 10, 1000}[r.IntN(3)]
	for o := range 1 + r.IntN(3) {
		p.Load = append(p.Load, nil)
		for range p.Scenario {
			var row []float64
			for range experts {
				row = append(row, float64(r.IntN(top))*1e-6)
			}
			p.Load[o] = append(p.Load[o], row)
		}
	}
	return p
}

// brute tries each option with each device for each expert, and adds up by itself.
func brute(p *Problem) float64 {
	n := len(p.Load[0][0])
	best, device := math.Inf(1), make([]int, n)
	var down func(e int)
	down = func(e int) {
		if e < n {
			for device[e] = range p.Devices {
				down(e + 1)
			}
			return
		}
		for _, option := range p.Load {
			mean, longest, all := 0.0, 0.0, 0.0
			for s, w := range p.Weight {
				seconds := 0.0
				for r, row := range option {
					if p.Scenario[r] != s {
						continue
					}
					most := 0.0
					for d := range p.Devices {
						sum := 0.0
						for k, x := range row {
							if device[k] == d {
								sum += x
							}
						}
						most = max(most, sum)
					}
					seconds += most
				}
				mean, longest, all = mean+w*seconds, max(longest, seconds), all+w
			}
			if mean /= all; p.Worst {
				mean = longest
			}
			best = min(best, mean)
		}
	}
	down(0)
	return best
}

func TestAgainstBruteForce(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	lost := map[string]int{}
	for seed := range uint64(1000) {
		p := random(seed, 6)
		want := brute(p)
		for _, m := range Methods() {
			if m.NeedsSolver && seed%10 > 0 {
				continue
			}
			r, err := Solve(context.Background(), p, m.Name, solve.Options[*Plan]{Solver: solver})
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, m.Name, err)
			}
			if err := p.Check(r.Plan); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, m.Name, err)
			}
			if got := p.cost(p.Seconds(r.Plan)); got != r.Objective || got < want*(1-near) || r.Bound > want*(1+1e-6)+1e-15 {
				t.Fatalf("seed %d: %s: plan %g, objective %g, bound %g, the best %g", seed, m.Name, got, r.Objective, r.Bound, want)
			}
			if m.Exact && (r.Objective > want*(1+1e-6)+1e-15 || r.Status != milp.Optimal) {
				t.Errorf("seed %d: %s: %g (%s), the best %g", seed, m.Name, r.Objective, r.Status, want)
			}
			if r.Objective > want*(1+1e-6) {
				lost[m.Name]++
			}
		}
	}
	if lost["greedy"] == 0 || lost["even"] <= lost["greedy"] {
		t.Errorf("no best plan: %v; expected some of greedy, and more of even", lost)
	}
}

// The methods agree where there are too many placements to try, and a scenario's own best plan takes no longer than
// one that serves all.
func TestLarger(t *testing.T) {
	solver, err := highs.New()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		p := random(seed, 12)
		a, err := Solve(context.Background(), p, "search", solve.Options[*Plan]{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Solve(context.Background(), p, "ilp", solve.Options[*Plan]{Solver: solver})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != milp.Optimal || math.Abs(a.Objective-b.Objective) > 1e-6*a.Objective {
			t.Errorf("seed %d: search %g (%s), ilp %g (%s)", seed, a.Objective, a.Status, b.Objective, b.Status)
		}
		alone := make([]float64, len(p.Weight))
		for s, seconds := range p.Seconds(a.Plan) {
			one, err := Solve(context.Background(), p.only(s), "search", solve.Options[*Plan]{})
			if err != nil {
				t.Fatal(err)
			}
			if alone[s] = one.Bound; one.Bound > seconds*(1+near) {
				t.Errorf("seed %d: scenario %d alone takes %g, of all %g", seed, s, one.Bound, seconds)
			}
		}
		if p.cost(alone) > a.Bound*(1+1e-6) {
			t.Errorf("seed %d: scenarios alone take %g, together %g", seed, p.cost(alone), a.Bound)
		}
	}
}

func TestLimits(t *testing.T) {
	p := random(3, 4)
	p.Devices = 7
	r := rand.New(rand.NewPCG(1, 1))
	for o := range p.Load {
		for row := range p.Load[o] {
			p.Load[o][row] = nil
			for range 40 {
				p.Load[o][row] = append(p.Load[o][row], r.Float64())
			}
		}
	}
	a, err := Solve(context.Background(), p, "search", solve.Options[*Plan]{WorkLimit: 100})
	if err != nil || a.Status != milp.Feasible || a.Stop != milp.StopWork || a.Bound > a.Objective {
		t.Fatalf("%+v, %v", a, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	b, err := Solve(ctx, p, "search", solve.Options[*Plan]{Start: a.Plan})
	if err != nil || b.Stop != milp.StopTime || b.Objective > a.Objective {
		t.Fatalf("%+v, %v", b, err)
	}
	for want, change := range map[string]func(*Problem){
		"devices":              func(p *Problem) { p.Devices = 0 },
		"loads: found none":    func(p *Problem) { p.Load = nil },
		"loads[0][1]: found 2": func(p *Problem) { p.Load = [][][]float64{{{1}, {1, 2}}} },
		"loads[0][1][1]":       func(p *Problem) { p.Load = [][][]float64{{{1, 2}, {1, math.NaN()}}} },
		"loads[1]: found 1":    func(p *Problem) { p.Load = [][][]float64{{{1}, {1}}, {{1}}} },
		"scenarios":            func(p *Problem) { p.Scenario = []int{1} },
		"weights":              func(p *Problem) { p.Weight = append(slices.Clone(p.Weight), 1) },
		"weights[0]":           func(p *Problem) { p.Weight = make([]float64, len(p.Weight)) },
	} {
		q := *p
		change(&q)
		if err := q.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error about %s, found %v", want, err)
		}
	}
}

func TestDraw(t *testing.T) {
	even, err := Draw(50, 8, 400, 2, 0, 7)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Draw(50, 8, 400, 2, 0, 7)
	if err != nil || !reflect.DeepEqual(even, again) {
		t.Errorf("the same seed gives others: %v", err)
	}
	skewed, err := Draw(50, 8, 400, 2, 1.5, 7)
	if err != nil {
		t.Fatal(err)
	}
	most := func(r *Routings) (n int64) {
		for _, tokens := range r.Tokens {
			sum := int64(0)
			for _, x := range tokens {
				if sum += x; x > 400 {
					t.Fatalf("%d tokens of 400 at one expert", x)
				}
			}
			if sum != 800 {
				t.Fatalf("%d tokens of 400 at two experts each", sum)
			}
			n += slices.Max(tokens)
		}
		return n / int64(len(r.Tokens))
	}
	// Of equal experts each has 100, with a deviation of less than 10.
	if a, b := most(even), most(skewed); a < 100 || a > 130 || b < 2*a {
		t.Errorf("the expert with most tokens has %d of equal and %d of skewed ones", a, b)
	}
	for _, r := range []*Routings{even, skewed} {
		back, err := ReadRoutings("f.csv", WriteRoutings(r))
		if err != nil || !reflect.DeepEqual(r, back) {
			t.Errorf("read back: %v", err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    `f.csv: line 1: found "", expected the heading weight,expert_0,expert_1`,
		"weight,expert_1\n1,2\n":              "f.csv: line 1: found",
		"weight,expert_0\n":                   "f.csv: found 0 scenarios, expected 1 to 1024",
		"weight,expert_0\n1\n":                "f.csv: line 2: columns: found 1, expected 2",
		"weight,expert_0\n0,1\n":              `f.csv: line 2: weight: found "0", expected a whole number from 1`,
		"weight,expert_0\n1,1\n1,x\n":         `f.csv: line 3: expert_0: found "x", expected a whole number from 0`,
		"weight,expert_0\n1,0\n":              "f.csv: line 2: found no token",
		"weight,expert_0,expert_1\n1,65536,1": `f.csv: line 2: expert_1: found "1", expected a whole number from 0 to 0`,
	} {
		if _, err := ReadRoutings("f.csv", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: found %v, expected %q", text, err, want)
		}
	}
}

func FuzzReadRoutings(f *testing.F) {
	f.Add([]byte("weight,expert_0,expert_1\n1,3,4\n2,0,7\n"))
	f.Add([]byte("\ufeffweight,expert_0\r\n1,3\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadRoutings("f.csv", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.csv: ") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v", err)
			}
			return
		}
		back, err := ReadRoutings("f.csv", WriteRoutings(r))
		if err != nil || !reflect.DeepEqual(r, back) {
			t.Fatalf("%v read back as %v: %v", r, back, err)
		}
	})
}

// only is the problem of one scenario.
func (p *Problem) only(scenario int) *Problem {
	q := &Problem{Devices: p.Devices, Weight: []float64{1}}
	for _, option := range p.Load {
		var rows [][]float64
		for r, row := range option {
			if p.Scenario[r] == scenario {
				rows = append(rows, row)
			}
		}
		q.Load = append(q.Load, rows)
	}
	q.Scenario = make([]int, len(q.Load[0]))
	return q
}
