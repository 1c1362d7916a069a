package rcpsp

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestReasons propagates one resource after random decisions and tries all start times:
// what is said to follow must follow from the reason alone, and no schedule may have all
// that is said to exclude each other.
func TestReasons(t *testing.T) {
	var pushes, conflicts [2]int
	for seed := range uint64(5000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		horizon := 5 + rng.Int64N(5)
		capacity := 2 + rng.Int64N(4)
		e := newEngine()
		var tasks []task
		for range 3 + rng.IntN(3) {
			d := 1 + rng.Int64N(4)
			tasks = append(tasks, task{x: e.variable(0, horizon-d), duration: d, demand: 1 + rng.Int64N(capacity)})
		}
		r := newTimetable(e, capacity, horizon, tasks)
		e.rose = func(x int32) { r.rose(x / 2) }
		e.fell = r.fell
		for range 1 + rng.IntN(8) {
			if x := int32(rng.IntN(len(e.lb))); !e.fixed(x) {
				e.decide(lit{x, e.lb[x] + 1 + rng.Int64N(min(2, e.ub(x)-e.lb[x]))})
			}
		}
		for way, propagate := range []func() bool{r.propagate, r.edgeFind} {
			before := len(e.trail)
			failed := !propagate()
			pushes[way] += len(e.trail) - before
			var facts [][]lit // none of them can all be
			for _, ev := range e.trail[before:] {
				l := lit{ev.x, ev.now}
				facts = append(facts, append(slices.Clone(e.explain(nil, l, ev.why)), l.not()))
			}
			if failed {
				conflicts[way]++
				facts = append(facts, e.confl)
				for _, l := range e.confl {
					if !e.isTrue(l) {
						t.Fatalf("seed %d, way %d: %v of conflict %v is not so", seed, way, l, e.confl)
					}
				}
			}
			for _, fact := range facts {
				if start := counterexample(r, horizon, fact); start != nil {
					t.Fatalf("seed %d, way %d: %v excludes %v, a schedule of %+v in %d", seed, way, fact, start, r.tasks, capacity)
				}
			}
			if failed {
				break
			}
		}
	}
	if min(pushes[0], pushes[1], conflicts[0], conflicts[1]) < 100 {
		t.Errorf("%v pushes and %v conflicts by the two ways, expected hundreds", pushes, conflicts)
	}
}

// counterexample looks for start times within the resource's capacity for which all of
// some literals hold.
func counterexample(r *timetable, horizon int64, lits []lit) []int64 {
	start := make([]int64, len(r.tasks))
	use := make([]int64, horizon)
	var put func(i int) bool
	put = func(i int) bool {
		if i == len(start) {
			return true
		}
		t := &r.tasks[i]
	next:
		for s := int64(0); s+t.duration <= horizon; s++ {
			for _, l := range lits {
				if l.x == t.x && s < l.v || l.x == t.x^1 && -s < l.v {
					continue next
				}
			}
			for u := s; u < s+t.duration; u++ {
				if use[u]+t.demand > r.capacity {
					continue next
				}
			}
			start[i] = s
			for u := s; u < s+t.duration; u++ {
				use[u] += t.demand
			}
			found := put(i + 1)
			for u := s; u < s+t.duration; u++ {
				use[u] -= t.demand
			}
			if found {
				return true
			}
		}
		return false
	}
	if put(0) {
		return start
	}
	return nil
}
