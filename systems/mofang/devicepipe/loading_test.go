package devicepipe

import (
	"math"
	"testing"
)

// The job takes what its slower side takes, as the closed form has it, beside what fills the pipeline; the other side
// waits. A second simulator moves time on by one.
func TestLoading(t *testing.T) {
	for _, l := range []Loading{{1, 2, 4, 4, 3, 5}, {4, 2, 4, 4, 3, 5}, {4, 2, 8, 4, 9, 6}, {3, 5, 7, 4, 6, 6},
		{2, 1, 12, 3, 4, 20}, {7, 3, 5, 5, 0, 4}, {2, 0, 6, 3, 4, 4}, {5, 1, 1, 1, 1, 9}} {
		got, err := l.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		waits := l.ItemSeconds * float64(l.Batch) / float64(l.Threads) // of a batch
		least := float64(l.Batches) * max(waits, l.TrainSeconds)
		if got.Seconds < least-1e-9 || got.Seconds > least+2*(float64(l.Batch)*l.ItemSeconds+l.TrainSeconds) {
			t.Errorf("%+v: %v s, by the closed form %v", l, got.Seconds, least)
		}
		if got.Most > l.Room || got.Most < l.Batch {
			t.Errorf("%+v: %d items in the queue", l, got.Most)
		}
		if s, full, empty := steps(l); math.Abs(s-got.Seconds) > 1e-9 || math.Abs(full-got.FullShare) > 1e-9 ||
			math.Abs(empty-got.EmptyShare) > 1e-9 {
			t.Errorf("%+v: %+v, by steps %v s, %v, %v", l, got, s, full, empty)
		}
	}
	for _, l := range []Loading{{}, {1, 1, 3, 4, 1, 1}, {1, math.Inf(1), 4, 4, 1, 1}, {1, math.NaN(), 4, 4, 1, 1}} {
		if _, err := l.Simulate(); err == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}

// steps simulates whole numbers of seconds.
func steps(l Loading) (seconds, full, empty float64) {
	type thread struct {
		item int
		left float64
	}
	threads := make([]thread, l.Threads)
	next, inside, entered, taken, all := 0, 0, 0, 0, l.Batch*l.Batches
	begin := func(k int) {
		if threads[k] = (thread{-1, 0}); next < all {
			threads[k] = thread{next, l.ItemSeconds}
			next++
		}
	}
	for k := range threads {
		begin(k)
	}
	busy, first, lastPut, waitedFull, waitedEmpty := 0.0, -1.0, 0.0, 0.0, 0.0
	for now := 0.0; ; now++ {
		for moved := true; moved; {
			moved = false
			for k := range threads {
				if x := threads[k]; x.item == entered && x.item >= 0 && x.left == 0 && inside < l.Room {
					entered, inside, lastPut, moved = entered+1, inside+1, now, true
					begin(k)
				}
			}
			if busy == 0 && inside >= l.Batch && taken < l.Batches {
				taken, inside, busy, moved = taken+1, inside-l.Batch, l.TrainSeconds, true
				if first < 0 {
					first = now + l.TrainSeconds
				}
			}
		}
		if taken == l.Batches && busy == 0 {
			seconds = now
			break
		}
		for k := range threads {
			if x := &threads[k]; x.item >= 0 && x.left == 0 {
				waitedFull++
			} else if x.item >= 0 {
				x.left--
			}
		}
		if busy > 0 {
			busy--
		} else if first >= 0 && now >= first {
			waitedEmpty++
		}
	}
	if lastPut > 0 {
		full = waitedFull / (float64(l.Threads) * lastPut)
	}
	if seconds > first {
		empty = waitedEmpty / (seconds - first)
	}
	return seconds, full, empty
}
