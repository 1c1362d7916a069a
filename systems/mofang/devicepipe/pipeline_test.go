package devicepipe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func equal(n int, forward, backward float64) []Stage {
	stages := make([]Stage, n)
	for i := range stages {
		stages[i] = Stage{Name: fmt.Sprint("stage ", i), ForwardSeconds: forward, BackwardSeconds: backward}
	}
	return stages
}

// Figures 20 and 21 of the paper, and the identity behind them: idle share
// (p-1)/(b+p-1) with equal stages, with and without backward passes.
func TestIdleShare(t *testing.T) {
	for p := 1; p <= 9; p++ {
		for b := 1; b <= 12; b++ {
			want := float64(p-1) / float64(b+p-1)
			for _, s := range []*Schedule{
				{equal(p, 1, 0), GPipe(p, b, false)},
				{equal(p, 1, 2), GPipe(p, b, true)},
				{equal(p, 1, 2), alternating(p, b)},
			} {
				r, err := Simulate(s, Power{})
				if err != nil || math.Abs(r.IdleShare-want) > 1e-12 {
					t.Fatalf("p %d, b %d: %v, %v, expected %v", p, b, r, err, want)
				}
			}
		}
	}
	for _, c := range []struct {
		p, b int
		want float64
	}{{5, 4, 0.5}, {3, 6, 0.25}} {
		r, err := Simulate(&Schedule{equal(c.p, 1, 2), GPipe(c.p, c.b, true)}, Power{})
		if err != nil || r.IdleShare != c.want || r.FillSeconds != float64(c.p-1) || r.Stored[0] != c.b {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}

// alternating is another order than GPipe's: a stage begins as many forward passes as there are stages from it to the
// end, then alternates.
func alternating(stages, microBatches int) [][]Task {
	tasks := make([][]Task, stages)
	for i := range tasks {
		for k := range microBatches + stages - i {
			if k < microBatches {
				tasks[i] = append(tasks[i], Task{MicroBatch: k})
			}
			if done := k - (stages - i) + 1; done >= 0 && done < microBatches {
				tasks[i] = append(tasks[i], Task{MicroBatch: done, Backward: true})
			}
		}
	}
	return tasks
}

func TestStored(t *testing.T) {
	r, err := Simulate(&Schedule{equal(4, 1, 2), alternating(4, 8)}, Power{})
	if err != nil || fmt.Sprint(r.Stored) != "[4 3 2 1]" {
		t.Errorf("%v, %v", r.Stored, err)
	}
}

// Longest paths through the tasks, by recursion, as a second simulator.
func TestAgainstLongestPaths(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p, b := 1+rng.IntN(5), 1+rng.IntN(6)
		s := &Schedule{Tasks: GPipe(p, b, true)}
		if seed%2 == 0 {
			s.Tasks = alternating(p, b)
		}
		for range p {
			s.Stages = append(s.Stages, Stage{ForwardSeconds: float64(rng.IntN(9)), BackwardSeconds: float64(rng.IntN(9)),
				LinkSeconds: float64(rng.IntN(4))})
		}
		memo := map[string]float64{}
		var end func(i, k int) float64
		end = func(i, k int) float64 {
			key := fmt.Sprint(i, k)
			if v, ok := memo[key]; ok {
				return v
			}
			task, at := s.Tasks[i][k], 0.0
			if k > 0 {
				at = end(i, k-1)
			}
			other := func(j int, want Task, link float64) {
				for n, o := range s.Tasks[j] {
					if o == want {
						at = max(at, end(j, n)+link)
					}
				}
			}
			seconds := s.Stages[i].ForwardSeconds
			if task.Backward {
				seconds = s.Stages[i].BackwardSeconds
				other(i, Task{MicroBatch: task.MicroBatch}, 0)
				if i+1 < p {
					other(i+1, task, s.Stages[i].LinkSeconds)
				}
			} else if i > 0 {
				other(i-1, task, s.Stages[i-1].LinkSeconds)
			}
			memo[key] = at + seconds
			return memo[key]
		}
		want, work := 0.0, 0.0
		for i := range p {
			want = max(want, end(i, 2*b-1))
			work += float64(b) * (s.Stages[i].ForwardSeconds + s.Stages[i].BackwardSeconds)
		}
		r, err := Simulate(s, Power{IdleWatts: 10, BusyWatts: 30})
		if err != nil || r.Seconds != want {
			t.Fatalf("seed %d: %v, %v, longest path %v", seed, r, err, want)
		}
		if energy := 10*float64(p)*want + 20*work; math.Abs(r.EnergyJoules-energy) > 1e-6 {
			t.Fatalf("seed %d: %v J, expected %v", seed, r.EnergyJoules, energy)
		}
		busy := 0.0
		for _, run := range r.Runs {
			busy += run.End - run.Start
		}
		if math.Abs(busy-work) > 1e-6 {
			t.Fatalf("seed %d: %v s busy, expected %v", seed, busy, work)
		}
	}
}

func TestErrors(t *testing.T) {
	for name, s := range map[string]*Schedule{
		"no stage":     {},
		"three on two": {equal(3, 1, 1), GPipe(2, 2, true)},
		"twice":        {equal(1, 1, 1), [][]Task{{{MicroBatch: 0}, {MicroBatch: 0}}}},
		"different":    {equal(2, 1, 1), [][]Task{{{MicroBatch: 0}}, {{MicroBatch: 1}}}},
		"for ever": {equal(2, 1, 1), [][]Task{{{MicroBatch: 0, Backward: true}, {MicroBatch: 0}},
			{{MicroBatch: 0}, {MicroBatch: 0, Backward: true}}}},
		"no time":     {equal(1, -1, 1), [][]Task{{{MicroBatch: 0}}}},
		"one missing": {equal(2, 1, 1), [][]Task{{{MicroBatch: 0}, {MicroBatch: 1}}, {{MicroBatch: 0}}}},
	} {
		if _, err := Simulate(s, Power{}); err == nil || !strings.HasPrefix(err.Error(), "not a schedule of a pipeline: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func Example() {
	// GPipe with five stages and four micro-batches (Fig. 20 of the paper).
	s := &Schedule{Stages: equal(5, 1, 2), Tasks: GPipe(5, 4, true)}
	r, err := Simulate(s, Power{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f s, %.0f %% idle\n", r.Seconds, 100*r.IdleShare)
	// Output: 24 s, 50 % idle
}
