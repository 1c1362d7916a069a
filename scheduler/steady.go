package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
)

const (
	// The first batches fill the chip, and behind the last one no loads run ahead.
	leastBatches, mostBatches = 4, 16
	// steadyWithin bounds the difference of the rates of both halves of the batches.
	steadyWithin = 1e-3
)

// Steady is the throughput in batch elements per second where batches follow each other in one program, measured
// between the ends of two batches, without the first and the last. It takes 4 batches, then 8 and 16 as long as the
// rates of the later two halves differ by more than 0.1 %, for each chip of a machine. Weights stay in the LLB for the
// next batch or only as long as their own batch needs them, or a batch begins when the one before has ended, whichever
// is fastest. A program that gets too large is a *lower.TooLargeError.
func (r *Result) Steady(ctx context.Context) (perSecond float64, err error) {
	ways := []bool{false, true}
	if !r.Lower.KeepWeights {
		ways = ways[:1]
	} else if r.head != nil {
		kept, err := r.head.steady(ctx, false)
		if fresh, other := r.head.steady(ctx, true); err == nil && other == nil && kept != fresh {
			ways = []bool{fresh > kept}
		}
	}
	for _, fresh := range ways {
		rate, err := r.steady(ctx, fresh)
		if perSecond = max(perSecond, rate); err != nil {
			return perSecond, err
		}
	}
	if r.Sim != nil {
		perSecond = max(perSecond, r.ThroughputPerSecond())
	}
	return perSecond, nil
}

// steady is Steady with weights that stay for the next batch, or fresh ones.
func (r *Result) steady(ctx context.Context, fresh bool) (perSecond float64, err error) {
	chips := r.Spec.ChipCount()
	for n := leastBatches * chips; ; n *= 2 {
		ends, err := r.batchEnds(ctx, n, fresh)
		if err != nil {
			if perSecond > 0 && TooLarge(err) {
				return perSecond, nil
			}
			return 0, err
		}
		first, middle, last := n/2-2, (n/2-2+n-2)/2, n-2
		rate := func(from, to int) float64 {
			return float64(r.Batch) * float64(to-from) / (float64(ends[to]-ends[from]) * 1e-12)
		}
		perSecond = rate(first, last)
		if n >= mostBatches*chips || math.Abs(rate(first, middle)/rate(middle, last)-1) <= steadyWithin {
			return perSecond, nil
		}
	}
}

// errEnough ends a simulation of batches of which enough is known.
var errEnough = errors.New("the last batches are not asked for")

// batchEnds gives the times, in picoseconds, at which each of n batches in a row is done; the last one's may be less.
func (r *Result) batchEnds(ctx context.Context, n int, fresh bool) ([]int64, error) {
	plans := make([][]lower.Segment, len(r.Plans))
	var iterations []int // of a batch, for each cluster of an outline
	for k, plan := range r.Plans {
		if !slices.ContainsFunc(r.Plans[:k], func(other []lower.Segment) bool { return slices.Equal(plan, other) }) {
			own := 0
			for _, seg := range plan {
				own += seg.Iterations
			}
			iterations = append(iterations, own)
		}
		if len(plan) == 1 {
			plans[k] = []lower.Segment{{Schedule: plan[0].Schedule, Iterations: n * plan[0].Iterations}}
			continue
		}
		plans[k] = slices.Repeat(plan, n)
	}
	opt := r.Lower
	opt.Batches, opt.Fresh = n, fresh
	if len(slices.DeleteFunc(slices.Clone(iterations), func(n int) bool { return n == 0 })) == 1 {
		opt.Least = r.leastCommands()
	}
	ends := make([]int64, n)
	var first []int // the first command of each batch that has begun
	var left []int  // how many commands of each are under way
	measure := sim.Options{TimesOnly: true, OnCommand: func(i int, _, end int64) {
		batch := len(first) - 1
		for i < first[batch] {
			batch--
		}
		ends[batch] = max(ends[batch], end)
		left[batch]--
	}}
	own := max(1, slices.Max(iterations)) // if clusters differ, but for idle ones, there is no stream
	_, made, err := stream(ctx, r.ProgramName(), r.Spec, plans, opt, measure,
		func(s *sim.Stream, from int, commands []isa.Command) error {
			if from == 0 {
				first, left = first[:0], left[:0]
				clear(ends)
			}
			if len(first) == n && !slices.ContainsFunc(left[:n-1], func(n int) bool { return n > 0 }) && s.Past(ends[n-2]) {
				return errEnough
			}
			for i := range commands {
				switch batch := int(commands[i].Iteration) / own; batch {
				case len(first):
					first, left = append(first, from+i), append(left, 0)
				case len(first) - 1:
				default:
					return fmt.Errorf("command %d is of batch %d of %d, expected batch %d or %d", from+i, batch, n, len(first)-1,
						len(first))
				}
				left[len(left)-1]++
			}
			return nil
		})
	if made != nil || errors.Is(err, errEnough) {
		return ends, nil
	} else if err != nil {
		return nil, err
	}
	p, alike, err := lower.Outline(r.ProgramName(), r.Spec, plans, opt.Until(ctx))
	if err != nil {
		return nil, err
	}
	end, err := sim.Ends(ctx, p, alike)
	if err != nil {
		return nil, err
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		batch := int(c.Iteration) / iterations[p.Queues[c.Queue].Cluster]
		ends[batch] = max(ends[batch], end[i])
	}
	return ends, nil
}

// leastCommands is a number of commands that each of several batches has at least, by those of the one that was
// simulated; 0: none was. A later batch may need no load of weights from the DDR and, of a weight that comes in pieces
// of as many loads into the L1s, one of these.
func (r *Result) leastCommands() (n int) {
	if r.Sim == nil {
		return 0
	}
	for i, q := range r.Program.Queues {
		loads := q.Kind == isa.DDRLoadQueue
		switch commands := r.Sim.Queues[i].Commands; {
		case q.Kind == isa.OtherQueue, r.Spec.LLB == nil && (loads || q.Kind == isa.InQueue):
		case loads:
			n -= commands
		default:
			n += commands
		}
	}
	return n
}
