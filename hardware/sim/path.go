package sim

import (
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
)

// Causes gives, for each command, why it did not start earlier: the command of which it had to await the end and that
// ended last, be it a dependency or the one before in its queue; -1 if it started at time zero. A command starts when
// its cause ends. Of several that ended together, it is the one of the highest index, dependencies first, since a
// queue's own predecessor says less.
func Causes(p *isa.Program, r *Result) []int32 {
	cause := make([]int32, len(p.Commands))
	before := slices.Repeat([]int32{-1}, len(p.Queues))
	for i := range p.Commands {
		c := &p.Commands[i]
		cause[i] = -1
		for _, d := range c.Deps {
			if cause[i] < 0 || r.End[d] > r.End[cause[i]] || r.End[d] == r.End[cause[i]] && d > cause[i] {
				cause[i] = d
			}
		}
		if b := before[c.Queue]; b >= 0 && (cause[i] < 0 || r.End[b] > r.End[cause[i]]) {
			cause[i] = b
		}
		if cause[i] >= 0 && r.End[cause[i]] == 0 {
			cause[i] = -1
		}
		before[c.Queue] = int32(i)
	}
	return cause
}

// CriticalPath lists the commands from time zero to the end of the program of which
// each starts when the one before it ends. To end sooner, the program must make one of
// them shorter, or not wait for it. Their times add up to Result.TotalPs.
func CriticalPath(p *isa.Program, r *Result) []int32 {
	last := int32(-1)
	for i, end := range r.End {
		if last < 0 || end > r.End[last] {
			last = int32(i)
		}
	}
	if last < 0 {
		return nil
	}
	cause := Causes(p, r)
	var path []int32
	for i := last; i >= 0; i = cause[i] {
		path = append(path, i)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}
