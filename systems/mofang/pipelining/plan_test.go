package pipelining

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/systems/mofang/devicepipe"
)

// everyPlan calls f with each division of n layers over at most so many devices.
func everyPlan(n, devices int, f func([]Part)) {
	var rest func(from, left int, stages []Part)
	rest = func(from, left int, stages []Part) {
		if from == n {
			f(stages)
			return
		}
		for to := from + 1; to <= n && left > 0; to++ {
			rest(to, left-1, append(stages[:len(stages):len(stages)], Part{from, to}))
		}
	}
	rest(0, devices, nil)
}

// simulate is a plan's time by the simulator of pipelines, which knows no formula.
func simulate(t *testing.T, costs []Cost, stages []Part, batch, b int) float64 {
	t.Helper()
	samples := (batch + b - 1) / b
	s := &devicepipe.Schedule{Tasks: devicepipe.GPipe(len(stages), b, true)}
	for k, p := range stages {
		st := devicepipe.Stage{}
		st.ForwardSeconds, st.BackwardSeconds = p.Times(costs, samples)
		if k+1 < len(stages) {
			st.LinkSeconds = p.Crossing(costs, samples)
		}
		s.Stages = append(s.Stages, st)
	}
	r, err := devicepipe.Simulate(s, devicepipe.Power{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Seconds
}

// The plan takes as long as the best of all, each simulated.
func TestJointly(t *testing.T) {
	infeasible, several := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		line := func() Line { return Line{float64(rng.IntN(3)), float64(rng.IntN(5))} }
		var costs []Cost
		for range 1 + rng.IntN(4) {
			costs = append(costs, Cost{Forward: line(), Backward: line(),
				Link:        Line{float64(rng.IntN(2)), float64(rng.IntN(3)) / 2},
				WeightBytes: float64(rng.IntN(9)), ActivationBytes: float64(rng.IntN(4))})
		}
		batch := 1 + rng.IntN(8)
		devices, memory := 1+rng.IntN(4), float64(8+rng.IntN(40))
		best := math.Inf(1)
		for b := 1; b <= batch; b++ {
			everyPlan(len(costs), devices, func(stages []Part) {
				p := Measure(costs, stages, batch, b)
				if s := simulate(t, costs, stages, batch, b); math.Abs(s-p.BatchSeconds) > 1e-9 {
					t.Fatalf("seed %d: %+v: by formula %v s, simulated %v", seed, p, p.BatchSeconds, s)
				}
				if p.Bytes <= memory {
					best = min(best, p.BatchSeconds)
				}
			})
		}
		p, bound, err := Jointly(context.Background(), costs, devices, memory, batch)
		if math.IsInf(best, 1) {
			infeasible++
			if !isInput(err) {
				t.Fatalf("seed %d: %+v, %v, brute force finds none", seed, p, err)
			}
			continue
		}
		if err != nil || math.Abs(p.BatchSeconds-best) > 1e-9 || bound != p.BatchSeconds || p.Bytes > memory {
			t.Fatalf("seed %d: %+v, bound %v, %v, brute force %v", seed, p, bound, err, best)
		}
		if len(p.Stages) > 1 {
			several++
		}
		// What is stopped has a bound all the same.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if p, bound, err := Jointly(ctx, costs, devices, memory, batch); err == nil || p != nil || bound > best+1e-9 ||
			bound < 0 {
			t.Fatalf("seed %d: stopped: %+v, bound %v, %v, optimum %v", seed, p, bound, err, best)
		}
	}
	if infeasible == 0 || several == 0 {
		t.Errorf("%d without an answer, %d of several stages: nothing is tested", infeasible, several)
	}
}
