package sim

import (
	"math/bits"

	"github.com/dsasched/dsasched/hardware/isa"
)

// Bound holds lower bounds of a program's time that ignore how commands compete.
// They are computed without the event loop, so that a mistake in it shows.
type Bound struct {
	// ResourcePs is the largest time that one resource needs for its bytes at its
	// full rate; Resource is the first with that, or -1.
	ResourcePs int64
	Resource   int
	// QueuePs is the largest sum of the times of one queue's commands, each move
	// alone in the world; Queue is the first with that, or -1.
	QueuePs int64
	Queue   int
	// ChainPs is the longest path through dependencies and queues, each move
	// alone in the world. It is at least QueuePs.
	ChainPs int64
}

// Ps is the best of the bounds.
func (b Bound) Ps() int64 { return max(b.ResourcePs, b.QueuePs, b.ChainPs) }

// bound is for programs that were simulated: no time here passes one that has
// happened, so nothing overflows.
func bound(p *isa.Program, f *fold) Bound {
	b := Bound{Resource: -1, Queue: -1}
	total := make([]int64, len(p.Resources))
	one := make([]int64, len(p.Resources)) // of the present command
	busy := make([]int64, len(p.Queues))
	free := make([]int64, len(p.Queues))
	end := make([]int64, len(p.Commands))
	rates := make([]divisor, len(p.Resources))
	for r := range rates {
		rates[r] = newDivisor(uint64(p.Resources[r].BytesPerSecond))
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		var flow int64
		for _, u := range c.Uses {
			total[u.Resource] += f.bytes(p, c, u)
			one[u.Resource] += u.Bytes
			flow = max(flow, alone(one[u.Resource], rates[u.Resource]))
		}
		for _, u := range c.Uses {
			one[u.Resource] = 0
		}
		busy[c.Queue] += c.DurationPs + flow
		t := free[c.Queue]
		for _, d := range c.Deps {
			t = max(t, end[d])
		}
		t += c.DurationPs + flow
		end[i], free[c.Queue] = t, t
		b.ChainPs = max(b.ChainPs, t)
	}
	for i, bytes := range total {
		if t := alone(bytes, rates[i]); t > b.ResourcePs {
			b.ResourcePs, b.Resource = t, i
		}
	}
	for i, t := range busy {
		if t > b.QueuePs {
			b.QueuePs, b.Queue = t, i
		}
	}
	return b
}

// alone is the time that bytes need at a full rate per second, rounded up.
func alone(bytes int64, perSecond divisor) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 1_000_000_000_000)
	lo, carry := bits.Add64(lo, perSecond.d>>perSecond.shift-1, 0)
	return int64(perSecond.quotient(hi+carry, lo))
}
