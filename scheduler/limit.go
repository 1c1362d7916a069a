package scheduler

import (
	"fmt"

	"github.com/dsasched/dsasched/hardware/isa"
)

// What Limit says where no resource and no queue stands out.
const (
	limitDependencies = "dependencies"
	limitNothing      = "nothing" // an empty program
)

// Limit names the bottleneck of a schedule: the resource or the queue of
// commands that is busy for the largest share of the time even if everything else
// is free, or, if none is for half of it, waiting: chains of dependencies, whose
// longest one then gives the share. Shares come from the lower bounds of package
// sim, so they do not count what a unit waits for others.
func (r *Result) Limit() (name string, share float64) {
	b, total := r.Sim.Bound, float64(r.Sim.TotalPs)
	if total == 0 {
		return limitNothing, 0
	}
	if b.Resource >= 0 {
		name, share = words(resourceWords, r.Program.Resources[b.Resource].Kind, r.Program.Resources[b.Resource].Name),
			float64(b.ResourcePs)/total
	}
	if s := float64(b.QueuePs) / total; b.Queue >= 0 && s > share {
		name, share = queueWord(r.Program.Queues[b.Queue]), s
	}
	const most = 0.5 // of the time: then no other is busier
	if share < most {
		return limitDependencies, float64(b.ChainPs) / total
	}
	return name, share
}

// LimitText says in a few words what keeps the program from being faster: see
// [Result.Limit].
func (r *Result) LimitText() string {
	switch what, share := r.Limit(); what {
	case limitNothing:
		return "nothing runs"
	case limitDependencies:
		return fmt.Sprintf("dependencies: no unit is busy for half of the time; the longest chain takes %.0f %% of it",
			100*share)
	default:
		return fmt.Sprintf("%s, busy for %.0f %% of the time", what, 100*share)
	}
}

// Words for the kinds of resource and of queue.
var (
	resourceWords = map[isa.ResourceKind]string{
		isa.DDRBandwidth: "DDR bandwidth", isa.DDRPort: "DDR port", isa.GBBandwidth: "LLB bandwidth",
		isa.LinkIn: "links into the cores", isa.LinkOut: "links out of the cores",
		isa.ToChips: "links between chips", isa.FromChips: "links between chips",
		isa.CoreNetwork: "links between cores",
	}
	queueWords = map[isa.QueueKind]string{
		isa.ControlQueue: "launches", isa.DDRLoadQueue: "DDR loads", isa.DDRStoreQueue: "DDR stores",
		isa.InQueue: "LLB to L1 moves", isa.OutQueue: "L1 to LLB moves",
		isa.MatrixQueue: "matrix unit", isa.VectorQueue: "vector unit", isa.SpecialQueue: "special unit",
	}
)

// queueWord names a queue: on machines with several loads in flight a request's, too.
func queueWord(q isa.Queue) string {
	if w := queueWords[q.LatencyOf]; w != "" {
		return "latency of " + w
	}
	return words(queueWords, q.Kind, q.Name)
}

// words has a kind in words, or the name where the kind says nothing.
func words[K comparable](of map[K]string, kind K, name string) string {
	if w, ok := of[kind]; ok {
		return w
	}
	return name
}
