// Package issue bounds what another order of issue of a kernel's commands could save: it compares in-order issue, the
// paper's across-layer rule (OSDI'23, §4.4), with a bound on every order that is right.
//
// Commands are jobs on queues of capacity one under precedence. A command takes its duration and, a move, the time of
// its bytes on the slowest resource that it uses, as if it were alone there. Moves that share bandwidth slow each other
// down in the simulator and not here, so both times are those of an unshared memory and belong beside each other, not
// beside simulated ones.
//
// The program must have been lowered with all of its waits ([lower.Options].AllWaits): otherwise those that in-order
// queues imply are missing, and the bound is that of orders of which most are wrong. Who reads a layer's result waits
// for the last command that makes it, so the commands of a layer on a queue keep their order.
package issue

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/heap"
)

// A Span is commands [First, Last) of a program.
type Span struct{ First, Last int }

// Kernels lists the kernels of a cluster: each from its launch to before the next. The
// launch must be in the cluster's part of the program, whose commands stand together.
func Kernels(p *isa.Program, cluster int32) []Span {
	var spans []Span
	for i := range p.Commands {
		c := &p.Commands[i]
		if p.Queues[c.Queue].Cluster != cluster {
			continue
		}
		switch n := len(spans); {
		case c.Kind == isa.Launch:
			spans = append(spans, Span{i, i + 1})
		case n > 0 && spans[n-1].Last == i:
			spans[n-1].Last = i + 1
		}
	}
	return spans
}

// alone is the time of command i if nothing else uses its resources, in picoseconds.
func alone(p *isa.Program, i int) (int64, error) {
	c := &p.Commands[i]
	slowest := uint64(0)
	for _, u := range c.Uses {
		rate := uint64(p.Resources[u.Resource].BytesPerSecond)
		hi, lo := bits.Mul64(uint64(u.Bytes), 1_000_000_000_000)
		lo, carry := bits.Add64(lo, rate-1, 0)
		if hi += carry; hi >= rate {
			slowest = math.MaxUint64
			break
		}
		ps, _ := bits.Div64(hi, lo, rate)
		slowest = max(slowest, ps)
	}
	if longest := int64(math.MaxInt64 / (len(p.Commands) + 1)); c.DurationPs > longest || slowest > uint64(longest) {
		return 0, &isa.ProblemError{Program: p.Name, Index: i, What: "takes longer than can be added up"}
	}
	return c.DurationPs + int64(slowest), nil
}

// A Comparison is of one span; times are in picoseconds.
type Comparison struct {
	// InOrderPs is the makespan of in-order issue; no order of issue is below BoundPs.
	InOrderPs, BoundPs int64
}

// Compare times a span of a program that passes its Check, in order, and bounds all orders: by the longest path and,
// for each queue, by the preemptive schedule of its commands with their heads and tails, longest tail first (Jackson
// 1955; Carlier, EJOR 11, 1982), which takes the queue's load, and that of each part of it, into account. What lies
// before the span counts as done.
func Compare(p *isa.Program, s Span) (c Comparison, err error) {
	if s.First < 0 || s.Last < s.First || s.Last > len(p.Commands) {
		return c, fmt.Errorf("program %q: found a span of commands %d to before %d, expected one within 0 to %d", p.Name,
			s.First, s.Last, len(p.Commands))
	}
	n := s.Last - s.First
	took, head, tail, ends := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	free := make([]int64, len(p.Queues)) // in order
	queues := make([][]int, len(p.Queues))
	layers := map[[4]int32]int{} // the last command of a layer of an instance on a queue
	after := make([][]int, n)
	for i := range n {
		cmd := &p.Commands[s.First+i]
		if took[i], err = alone(p, s.First+i); err != nil {
			return c, err
		}
		layer := [4]int32{cmd.Queue, cmd.Label, cmd.Task, cmd.Iteration}
		if k, there := layers[layer]; there {
			after[i] = append(after[i], k)
		}
		layers[layer] = i
		for _, d := range cmd.Deps {
			if k := int(d) - s.First; k >= 0 {
				after[i] = append(after[i], k)
			}
		}
		begins := free[cmd.Queue]
		for _, k := range after[i] {
			head[i], begins = max(head[i], head[k]+took[k]), max(begins, ends[k])
		}
		ends[i] = begins + took[i]
		free[cmd.Queue] = ends[i]
		c.InOrderPs = max(c.InOrderPs, ends[i])
		queues[cmd.Queue] = append(queues[cmd.Queue], i)
	}
	for i := n - 1; i >= 0; i-- {
		for _, k := range after[i] {
			tail[k] = max(tail[k], took[i]+tail[i])
		}
		c.BoundPs = max(c.BoundPs, head[i]+took[i]+tail[i])
	}
	for _, queue := range queues {
		c.BoundPs = max(c.BoundPs, preemptive(queue, took, head, tail))
	}
	return c, nil
}

// preemptive is the least time of jobs on one machine that may interrupt them, with heads before and tails behind.
func preemptive(jobs []int, took, head, tail []int64) (latest int64) {
	jobs, left := slices.Clone(jobs), slices.Clone(took)
	slices.SortStableFunc(jobs, func(i, j int) int { return cmp.Compare(head[i], head[j]) })
	ready := heap.Of(func(i, j int) bool { return tail[i] > tail[j] || tail[i] == tail[j] && i < j })
	for now := int64(0); len(jobs) > 0 || ready.Len() > 0; {
		if ready.Len() == 0 {
			now = max(now, head[jobs[0]])
		}
		for ; len(jobs) > 0 && head[jobs[0]] <= now; jobs = jobs[1:] {
			ready.Push(jobs[0])
		}
		i := ready.First()
		run := left[i]
		if len(jobs) > 0 {
			run = min(run, head[jobs[0]]-now)
		}
		now += run
		if left[i] -= run; left[i] == 0 {
			ready.Pop()
			latest = max(latest, now+tail[i])
		}
	}
	return latest
}
