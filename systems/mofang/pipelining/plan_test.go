package pipelining

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/systems/mofang/devicepipe"
)

// everyPlan calls f with each division of n layers over at most so many devices, of which r share a stage at most.
func everyPlan(n, devices, replicas int, recompute bool, f func([]Part)) {
	var rest func(from, left int, stages []Part)
	rest = func(from, left int, stages []Part) {
		if from == n {
			f(stages)
			return
		}
		for to := from + 1; to <= n; to++ {
			for r := 1; r <= min(left, replicas); r++ {
				rest(to, left-r, append(stages[:len(stages):len(stages)], Part{from, to, r, false}))
				if recompute {
					rest(to, left-r, append(stages[:len(stages):len(stages)], Part{from, to, r, true}))
				}
			}
		}
	}
	rest(0, devices, nil)
}

// simulate is a plan's time by the simulator of pipelines, which knows no formula.
func simulate(t *testing.T, costs []Cost, stages []Part, batch, b int, step float64) float64 {
	t.Helper()
	samples := (batch + b - 1) / b
	s := &devicepipe.Schedule{Tasks: devicepipe.GPipe(len(stages), b, true)}
	for k, p := range stages {
		st := devicepipe.Stage{Devices: p.Devices}
		st.ForwardSeconds, st.BackwardSeconds, st.SyncSeconds = p.Times(costs, samples, step)
		if k+1 < len(stages) {
			st.LinkSeconds = p.Crossing(costs, samples, &stages[k+1])
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
	infeasible, shared, again := 0, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		line := func() Line { return Line{float64(rng.IntN(3)), float64(rng.IntN(5))} }
		var costs []Cost
		for range 1 + rng.IntN(4) {
			costs = append(costs, Cost{Forward: line(), Backward: line(),
				Link: Line{float64(rng.IntN(2)), float64(rng.IntN(3)) / 2}, SyncSeconds: float64(rng.IntN(9)),
				WeightBytes: float64(rng.IntN(9)), ActivationBytes: float64(rng.IntN(4)), BoundaryBytes: float64(rng.IntN(3))})
		}
		batch := 1 + rng.IntN(8)
		m := Machine{Devices: 1 + rng.IntN(4), MemoryBytes: float64(8 + rng.IntN(40)), Replicas: rng.IntN(4),
			Recompute: seed%2 == 0, StepSeconds: float64(rng.IntN(2))}
		best := math.Inf(1)
		for b := 1; b <= batch; b++ {
			everyPlan(len(costs), m.Devices, max(1, m.Replicas), m.Recompute, func(stages []Part) {
				p := Measure(costs, stages, batch, b, m.StepSeconds)
				if s := simulate(t, costs, stages, batch, b, m.StepSeconds); math.Abs(s-p.BatchSeconds) > 1e-9 {
					t.Fatalf("seed %d: %+v: by formula %v s, simulated %v", seed, p, p.BatchSeconds, s)
				}
				if p.Bytes <= m.MemoryBytes {
					best = min(best, p.BatchSeconds)
				}
			})
		}
		p, bound, err := Jointly(context.Background(), costs, m, batch)
		if math.IsInf(best, 1) {
			infeasible++
			if !isInput(err) {
				t.Fatalf("seed %d: %+v, %v, brute force finds none", seed, p, err)
			}
			continue
		}
		if err != nil || math.Abs(p.BatchSeconds-best) > 1e-9 || bound != p.BatchSeconds || p.Bytes > m.MemoryBytes {
			t.Fatalf("seed %d: %+v, bound %v, %v, brute force %v", seed, p, bound, err, best)
		}
		for _, s := range p.Stages {
			if s.Devices > 1 {
				shared++
			}
			if s.Recomputes {
				again++
			}
		}
		// What is stopped has a bound all the same.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if p, bound, err := Jointly(ctx, costs, m, batch); err == nil || p != nil || bound > best+1e-9 || bound < 0 {
			t.Fatalf("seed %d: stopped: %+v, bound %v, %v, optimum %v", seed, p, bound, err, best)
		}
	}
	if infeasible == 0 || shared == 0 || again == 0 {
		t.Errorf("%d without an answer, %d stages shared, %d recomputed: nothing is tested", infeasible, shared, again)
	}
}
