package sim

import (
	"iter"

	"github.com/dsasched/dsasched/hardware/isa"
)

// A Span is a command of a program, in time.
type Span struct {
	Cluster         int
	Queue           string // such as cluster0.matrix
	Kind            isa.Kind
	Label           string  // the layer that it is of
	Start, End      float64 // seconds
	Bytes           int64   // that it moves
	MACs, VectorOps int64   // useful work, over all of its cores
}

// Timeline yields the commands of p, whose simulation r is, in the program's order: within a queue, that of time.
// Clusters that do as an earlier one (Program.As) have no spans of their own.
func (r *Result) Timeline(p *isa.Program) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for i := range p.Commands {
			c := &p.Commands[i]
			q := &p.Queues[c.Queue]
			start, end := 1e-12*float64(r.Start[i]), 1e-12*float64(r.End[i])
			if !yield(Span{int(q.Cluster), q.Name, c.Kind, p.Labels[c.Label], start, end, c.Bytes, c.MACs, c.VectorOps}) {
				return
			}
		}
	}
}
