// Package issue asks how much the order in which units and DMA queues get a kernel's
// commands matters: it turns a stretch of a program into a project (package
// formulation/rcpsp), so that in-order issue, the paper's across-layer rule (OSDI'23,
// §4.4), can be compared with list scheduling and with a bound.
//
// # From commands to activities
//
//	command     activity; its duration is what the cost model gave it, and for a move
//	            its latency plus the time that its bytes take on the slowest resource
//	            that it uses, as if it were alone
//	queue       resource of capacity one
//	wait        precedence, if the command waited for is in the stretch; what lies
//	            before it counts as done
//	in order    precedence from each command to the next of its queue
//
// # What the comparison says
//
// Moves that share bandwidth slow each other down in the simulator and not here, so
// makespans are those of an unshared memory and belong beside each other, not beside
// simulated times.
//
// A lowered program leaves out waits that in-order queues imply: on a command of the
// own queue, and on all but the last of another. Without in-order issue such waits are
// missing, and the project is a relaxation. Its bound is then below every
// reordering of the commands that is right, which shows how much in-order issue can
// lose at most; its schedule need not be a program.
package issue

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/dsasched/dsasched/formulation/rcpsp"
	"github.com/dsasched/dsasched/hardware/isa"
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

// A SpanError says that a span does not fit a program.
type SpanError struct {
	Program  string
	Span     Span
	Commands int
}

func (e *SpanError) Error() string {
	return fmt.Sprintf("program %q: found a span of commands %d to before %d, expected one within 0 to %d", e.Program,
		e.Span.First, e.Span.Last, e.Commands)
}

// Project turns commands of a program that passes its Check into a project, with or
// without in-order issue. Activity n is command First+n.
func Project(p *isa.Program, s Span, inOrder bool) (*rcpsp.Project, error) {
	if s.First < 0 || s.Last < s.First || s.Last > len(p.Commands) {
		return nil, &SpanError{p.Name, s, len(p.Commands)}
	}
	out := &rcpsp.Project{Name: p.Name}
	resource := make([]int, len(p.Queues)) // from 1, in the order of first use
	for i := s.First; i < s.Last; i++ {
		if q := p.Commands[i].Queue; resource[q] == 0 {
			out.Resources = append(out.Resources, rcpsp.Resource{Name: p.Queues[q].Name, Capacity: 1})
			resource[q] = len(out.Resources)
		}
	}
	last := make([]int, len(p.Queues)) // activity, from 1
	for i := s.First; i < s.Last; i++ {
		c := &p.Commands[i]
		d, err := alone(p, i)
		if err != nil {
			return nil, err
		}
		a := rcpsp.Activity{
			Name:     fmt.Sprintf("%d %v %s", i, c.Kind, p.Labels[c.Label]),
			Duration: d,
			Demand:   make([]int64, len(out.Resources)),
		}
		a.Demand[resource[c.Queue]-1] = 1
		for _, d := range c.Deps {
			if int(d) >= s.First {
				a.After = append(a.After, int(d)-s.First)
			}
		}
		if inOrder && last[c.Queue] > 0 {
			a.After = append(a.After, last[c.Queue]-1)
		}
		out.Activities = append(out.Activities, a)
		last[c.Queue] = len(out.Activities)
	}
	return out, out.Validate()
}

// alone is the time of command i if nothing else uses its resources.
func alone(p *isa.Program, i int) (int64, error) {
	c := &p.Commands[i]
	slowest := uint64(0)
	for _, u := range c.Uses {
		rate := uint64(p.Resources[u.Resource].BytesPerSecond)
		hi, lo := bits.Mul64(uint64(u.Bytes), 1_000_000_000_000)
		lo, carry := bits.Add64(lo, rate-1, 0)
		if hi += carry; hi >= rate {
			return 0, tooLong(p, i)
		}
		ps, _ := bits.Div64(hi, lo, rate)
		slowest = max(slowest, ps)
	}
	if slowest > uint64(rcpsp.MaxHorizon) || c.DurationPs > rcpsp.MaxHorizon {
		return 0, tooLong(p, i)
	}
	return c.DurationPs + int64(slowest), nil
}

func tooLong(p *isa.Program, i int) error {
	return &isa.ProblemError{Program: p.Name, Index: i, What: fmt.Sprintf("takes longer than the %d ps that a project can",
		rcpsp.MaxHorizon)}
}

// A Comparison is of one span; times are in picoseconds.
type Comparison struct {
	Span     Span
	Commands int
	// InOrderPs is the makespan with in-order issue, where nothing is left to decide.
	InOrderPs int64
	// ListPs is without in-order issue, by list scheduling; no reordering is below
	// BoundPs. See the package documentation.
	ListPs, BoundPs int64
}

// Compare schedules a span with in-order issue and by lists, and bounds both.
func Compare(ctx context.Context, p *isa.Program, s Span) (*Comparison, error) {
	ordered, err := Project(p, s, true)
	if err != nil {
		return nil, err
	}
	free, err := Project(p, s, false)
	if err != nil {
		return nil, err
	}
	// With its queues in order a project is chains, which start as early as they can.
	inOrder := rcpsp.InOrder(ordered)
	c := &Comparison{Span: s, Commands: s.Last - s.First, InOrderPs: ordered.Makespan(inOrder)}
	// In order is a schedule of the relaxation, too.
	c.ListPs = min(c.InOrderPs, free.Makespan(rcpsp.Best(ctx, free, rcpsp.ListOptions{Samples: -1})))
	c.BoundPs = free.Bound()
	return c, nil
}
