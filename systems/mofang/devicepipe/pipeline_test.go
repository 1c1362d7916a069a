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
				{equal(p, 1, 2), Interleaved(p, 1, b)},
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

func TestOneChunkStores(t *testing.T) {
	r, err := Simulate(&Schedule{equal(4, 1, 2), Interleaved(4, 1, 8)}, Power{})
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
			s.Tasks = Interleaved(p, 1, b)
		}
		for range p {
			s.Stages = append(s.Stages, Stage{ForwardSeconds: float64(rng.IntN(9)), BackwardSeconds: float64(rng.IntN(9)),
				LinkSeconds: float64(rng.IntN(4)), Devices: rng.IntN(4), SyncSeconds: float64(rng.IntN(30))})
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
		want, work, of, devices := 0.0, 0.0, 0.0, 0.0
		for i := range p {
			want = max(want, end(i, 2*b-1)+s.Stages[i].SyncSeconds)
			n := float64(max(1, s.Stages[i].Devices))
			one := float64(b) * (s.Stages[i].ForwardSeconds + s.Stages[i].BackwardSeconds)
			devices += n
			work += one
			of += n * one
		}
		r, err := Simulate(s, Power{IdleWatts: 10, BusyWatts: 30})
		if err != nil || r.Seconds != want {
			t.Fatalf("seed %d: %v, %v, longest path %v", seed, r, err, want)
		}
		if energy := 10*devices*want + 20*of; math.Abs(r.EnergyJoules-energy) > 1e-6 {
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
		"no stage":  {},
		"twice":     {equal(1, 1, 1), [][]Task{{{MicroBatch: 0}, {MicroBatch: 0}}}},
		"different": {equal(2, 1, 1), [][]Task{{{MicroBatch: 0}}, {{MicroBatch: 1}}}},
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

// Two stages on each device: each pass once, half the bubbles of one stage of twice the time where links cost nothing,
// and more stored; the plain order is the one of a chunk.
func TestInterleaved(t *testing.T) {
	for p := 2; p <= 5; p++ {
		for _, b := range []int{p, 2 * p, 4 * p} {
			one, err := Simulate(&Schedule{equal(p, 2, 4), Interleaved(p, 1, b)}, Power{})
			if err != nil {
				t.Fatal(err)
			}
			two, err := Simulate(&Schedule{equal(2*p, 1, 2), Interleaved(p, 2, b)}, Power{})
			if err != nil {
				t.Fatal(err)
			}
			work := float64(6 * b)
			if got, want := two.Seconds-work, (one.Seconds-work)/2; math.Abs(got-want) > 1e-9 ||
				one.Seconds-work != float64(6*(p-1)) {
				t.Errorf("%d devices, %d micro-batches: bubbles of %v s, expected half of %v s", p, b, got, one.Seconds-work)
			}
			if len(two.Runs) != 4*p*b || 2*one.Stored[0] > two.Stored[0]+p {
				t.Errorf("%d devices, %d micro-batches: %d passes, %d stored of half the size, %d of one stage", p, b,
					len(two.Runs), two.Stored[0], one.Stored[0])
			}
		}
	}
	if _, err := Simulate(&Schedule{equal(3, 1, 1), Interleaved(2, 1, 2)}, Power{}); err == nil {
		t.Error("three stages on two devices pass")
	}
}
