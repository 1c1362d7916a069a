package rcpsp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// A family is a setting of PSPLIB's generator. Source: R. Kolisch, A. Sprecher and A.
// Drexl, Characterization and generation of a general class of resource-constrained
// project scheduling problems, Management Science 41, 1995.
type family struct {
	jobs       int
	complexity float64 // arcs per job, none of them redundant
	factor     float64 // share of jobs and resources where the one demands of the other
	strength   float64 // capacity: 0 the largest demand, 1 the peak if all start as early as they can
}

// families lists the 48 settings of PSPLIB's sets for a number of jobs, in its order.
func families(jobs int) []family {
	var all []family
	for _, complexity := range []float64{1.5, 1.8, 2.1} {
		for _, factor := range []float64{.25, .5, .75, 1} {
			for _, strength := range []float64{.2, .5, .7, 1} {
				all = append(all, family{jobs, complexity, factor, strength})
			}
		}
	}
	return all
}

// draw makes a project of the family with three jobs at each end, at most three arcs
// into and out of a job, four resources, and durations and demands of 1 to 10.
func (f family) draw(seed uint64) *Project {
	const ends, degree, resources, most = 3, 3, 4, 10
	n := f.jobs
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	p := &Project{Name: fmt.Sprintf("%d jobs, %v, %v, %v, seed %d", n, f.complexity, f.factor, f.strength, seed)}
	out := make([]int, n)
	reach := make([][]bool, n) // from, to, itself included
	for i := range n {
		reach[i] = make([]bool, n)
		reach[i][i] = true
		p.Activities = append(p.Activities, Activity{Duration: 1 + rng.Int64N(most), Demand: make([]int64, resources)})
	}
	arcs := 2 * ends // of source and sink
	link := func(i, j int) bool {
		after := p.Activities[j].After
		if reach[i][j] || out[i] >= degree || len(after) >= degree {
			return false
		}
		for b := range n {
			if !reach[j][b] {
				continue
			}
			for _, a := range p.Activities[b].After {
				if reach[a][i] {
					return false // i before j would say it
				}
			}
		}
		p.Activities[j].After = append(after, i)
		out[i]++
		arcs++
		for a := range n {
			for b := range n {
				reach[a][b] = reach[a][b] || reach[a][i] && reach[j][b]
			}
		}
		return true
	}
	for j := ends; j < n; j++ {
		for try := 0; try < 100 && !link(rng.IntN(min(j, n-ends)), j); try++ {
		}
	}
	for i := range n - ends {
		for try := 0; try < 100 && out[i] == 0; try++ {
			link(i, max(i+1, ends)+rng.IntN(n-max(i+1, ends)))
		}
	}
	for try := 0; try < 10_000 && float64(arcs) < f.complexity*float64(n+2); try++ {
		j := ends + rng.IntN(n-ends)
		link(rng.IntN(min(j, n-ends)), j)
	}

	demand := func(i, k int) bool {
		d := &p.Activities[i].Demand[k]
		if *d > 0 {
			return false
		}
		*d = 1 + rng.Int64N(most)
		return true
	}
	for i := range n {
		demand(i, rng.IntN(resources))
	}
	for left := int(f.factor*float64(n*resources)+.5) - n; left > 0; {
		if demand(rng.IntN(n), rng.IntN(resources)) {
			left--
		}
	}
	head := p.Heads()
	for k := range resources {
		least, peak := int64(0), int64(0)
		for i, a := range p.Activities {
			least = max(least, a.Demand[k])
			at := int64(0)
			for j, b := range p.Activities {
				if head[j] <= head[i] && head[i] < head[j]+b.Duration {
					at += b.Demand[k]
				}
			}
			peak = max(peak, at)
		}
		p.Resources = append(p.Resources, Resource{fmt.Sprintf("R%d", k+1), least + int64(f.strength*float64(peak-least)+.5)})
	}
	return p
}

// TestFamily: projects have what the generator's settings ask for, and the search's switches
// agree on them.
func TestFamily(t *testing.T) {
	for n, f := range families(14) {
		p := f.draw(uint64(n))
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		demands := 0
		for _, a := range p.Activities {
			for _, d := range a.Demand {
				demands += int(min(d, 1))
			}
		}
		if want := int(f.factor*float64(f.jobs*len(p.Resources)) + .5); demands != want {
			t.Errorf("%s: %d demands, want %d", p.Name, demands, want)
		}
		var all []*Result
		for _, opt := range []SearchOptions{{}, {NoEnergy: true}, {NoPairs: true}} {
			r, err := Search(context.Background(), p, opt)
			if err != nil {
				t.Fatal(err)
			}
			if all = append(all, r); r.Status != milp.Optimal || r.Makespan != all[0].Makespan || p.Check(r.Start) != nil {
				t.Errorf("%s, %+v: %+v, want %d", p.Name, opt, r, all[0].Makespan)
			}
		}
	}
}

// Projects of 60 jobs, of PSPLIB's 48 settings in turn. Seeds below 1000 are those to develop
// on, others to judge by. The share that is proven within ten seconds each is reported, and
// the mean gap of all.
func BenchmarkFamily(b *testing.B) {
	all := families(60)
	for _, c := range []struct {
		name string
		from int
	}{{"developing", 0}, {"judging", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			proven, gap, n := 0, 0.0, 0
			for b.Loop() {
				r, err := Solve(context.Background(), all[n%len(all)].draw(uint64(c.from+n)), "search", Options{TimeLimit: 10 * time.Second})
				if err != nil {
					b.Fatal(err)
				}
				if n++; r.Status == milp.Optimal {
					proven++
				}
				gap += float64(r.Makespan-r.Bound) / float64(max(1, r.Bound))
			}
			b.ReportMetric(100*float64(proven)/float64(n), "%proven")
			b.ReportMetric(100*gap/float64(n), "%gap")
		})
	}
}
