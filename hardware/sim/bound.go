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
	// ChainPs is the longest path through dependencies and queues, each move alone in the world. It is at least QueuePs.
	ChainPs int64
}

// Ps is the best of the bounds.
func (b Bound) Ps() int64 { return max(b.ResourcePs, b.QueuePs, b.ChainPs) }

// bounding finds the bound of a program that is simulated: no time here passes one that has
// happened, so nothing overflows.
type bounding struct {
	p               *isa.Program
	f               *fold
	one, busy, free []int64 // one: of the present command
	flow            []int64 // of each queue, of its last move
	end             []int64
	rates           []divisor
	chain           int64
}

func newBounding(p *isa.Program, f *fold, s *scratch) *bounding {
	b := &bounding{p: p, f: f, one: make([]int64, len(p.Resources)), busy: make([]int64, len(p.Queues)),
		flow: make([]int64, len(p.Queues)), free: make([]int64, len(p.Queues)),
		end: empty(s.alone, len(p.Commands)), rates: make([]divisor, len(p.Resources))}
	for r := range b.rates {
		b.rates[r] = newDivisor(uint64(p.Resources[r].BytesPerSecond))
	}
	return b
}

// count takes the next command of the program, whose uses are those of the last move of its queue, or not.
func (b *bounding) count(c *isa.Command, again bool) {
	var flow int64
	if again {
		flow = b.flow[c.Queue]
	} else if len(c.Uses) > 0 {
		for _, u := range c.Uses {
			b.one[u.Resource] += u.Bytes
			flow = max(flow, alone(b.one[u.Resource], b.rates[u.Resource]))
		}
		for _, u := range c.Uses {
			b.one[u.Resource] = 0
		}
		b.flow[c.Queue] = flow
	}
	b.busy[c.Queue] += c.DurationPs + flow
	t := b.free[c.Queue]
	for _, d := range c.Deps {
		t = max(t, b.end[d])
	}
	t += c.DurationPs + flow
	b.free[c.Queue] = t
	b.end = longer(b.end, 1)
	b.end[len(b.end)-1] = t
	b.chain = max(b.chain, t)
}

// bound is the bound of all commands, which use so much of the resources of simulated clusters.
func (b *bounding) bound(resources []ResourceUse) Bound {
	most := Bound{Resource: -1, Queue: -1, ChainPs: b.chain}
	for i, use := range resources {
		if t := alone(use.Bytes, b.rates[i]); t > most.ResourcePs {
			most.ResourcePs, most.Resource = t, i
		}
	}
	for i, t := range b.busy {
		if t > most.QueuePs {
			most.QueuePs, most.Queue = t, i
		}
	}
	return most
}

// alone is the time that bytes need at a full rate per second, rounded up.
func alone(bytes int64, perSecond divisor) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 1_000_000_000_000)
	lo, carry := bits.Add64(lo, perSecond.d>>perSecond.shift-1, 0)
	return int64(perSecond.quotient(hi+carry, lo))
}
