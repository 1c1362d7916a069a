package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware/isa"
)

// What Limit says where no resource and no queue stands out.
const (
	limitDependencies = "dependencies"
	limitNothing      = "nothing" // an empty program
)

// Use says how busy a unit (a queue of commands), of the cluster where it is busiest, or a bandwidth is. Every view
// takes names and numbers from here.
type Use struct {
	What    string  `json:"what"`
	Seconds float64 `json:"time_s"`             // latencies included; a bandwidth's: of its bytes alone
	Share   float64 `json:"share"`              // of the schedule's latency
	Count   int     `json:"commands,omitempty"` // of a queue
	// Bytes of a bandwidth, at its full rate: activations count 1/activation_efficiency times.
	Bytes int64 `json:"charged_bytes,omitempty"`

	alone int64 // picoseconds if everything else is free
}

// Uses lists the busy units, then the bandwidths in use, each name once.
func (r *Result) Uses() (list []Use) {
	add := func(u Use, ps float64) {
		u.Seconds, u.Share = ps*1e-12, ps/float64(max(1, r.Sim.TotalPs))
		switch i := slices.IndexFunc(list, func(x Use) bool { return x.What == u.What }); {
		case i < 0:
			list = append(list, u)
		case u.Seconds > list[i].Seconds:
			list[i] = u
		}
	}
	for i, u := range r.Sim.Queues {
		if u.Commands > 0 {
			add(Use{What: r.QueueWord(r.Program.Queues[i]), Count: u.Commands, alone: u.AlonePs}, float64(u.BusyPs))
		}
	}
	for i, u := range r.Sim.Resources {
		if ps := u.Utilization * float64(r.Sim.TotalPs); u.Bytes > 0 {
			add(Use{What: r.ResourceWord(r.Program.Resources[i]), Bytes: u.Bytes, alone: int64(ps)}, ps)
		}
	}
	return list
}

// Limit names the bottleneck of a schedule: of the units and bandwidths that are busy for half of the time, the one
// that would need the longest if everything else were free; the share is that for which it is busy (see [Use]). If
// none is, waiting: chains of dependencies, whose longest one then gives the share.
func (r *Result) Limit() (name string, share float64) {
	if r.Sim.TotalPs == 0 {
		return limitNothing, 0
	}
	name, share = limitDependencies, float64(r.Sim.Bound.ChainPs)/float64(r.Sim.TotalPs)
	alone := int64(-1)
	for _, u := range r.Uses() {
		if u.Share >= 0.5 && u.alone > alone {
			name, share, alone = u.What, u.Share, u.alone
		}
	}
	return name, share
}

// LimitText names the limit in words; see Result.Limit.
func (r *Result) LimitText() string {
	switch what, share := r.Limit(); what {
	case limitNothing:
		return "nothing runs"
	case limitDependencies:
		return fmt.Sprintf("dependencies: no unit is busy for half of the time; the longest chain takes %.1f %% of it",
			100*share)
	default:
		return fmt.Sprintf("%s, busy for %.1f %% of the time", what, 100*share)
	}
}

// Words for the kinds of resource, of queue and of command.
var (
	resourceWords = map[isa.ResourceKind]string{
		isa.DDRBandwidth: "DDR bandwidth", isa.DDRPort: "DDR port", isa.LLBBandwidth: "LLB bandwidth",
		isa.LinkIn: "links into the cores", isa.LinkOut: "links out of the cores",
		isa.ToChips: "links between chips", isa.FromChips: "links between chips",
		isa.CoreNetwork: "links between cores",
	}
	queueWords = map[isa.QueueKind]string{
		isa.ControlQueue: "launches", isa.DDRLoadQueue: "DDR loads", isa.DDRStoreQueue: "DDR stores",
		isa.InQueue: "L1 loads", isa.OutQueue: "L1 sends",
		isa.MatrixQueue: "matrix unit", isa.VectorQueue: "vector unit", isa.SpecialQueue: "special unit",
	}
	commandWords = map[isa.Kind]string{isa.DDRLoad: "DDR load", isa.DDRStore: "DDR store", isa.L1Load: "L1 load",
		isa.L1Store: "L1 store"}
)

// QueueWord names a queue: on machines with several loads in flight a request's, too.
func (r *Result) QueueWord(q isa.Queue) string {
	if w := queueWords[q.LatencyOf]; w != "" {
		return "latency of " + r.raise(w)
	}
	return r.raise(cmp.Or(queueWords[q.Kind], q.Name))
}

// CommandWord names what commands of a kind do, in the words of their queues.
func (r *Result) CommandWord(k isa.Kind) string {
	return r.raise(cmp.Or(commandWords[k], k.String()))
}

// ResourceWord names a bandwidth.
func (r *Result) ResourceWord(x isa.Resource) string {
	return r.raise(cmp.Or(resourceWords[x.Kind], x.Name))
}

// raise names what has the role of L1s and cores where that is not theirs.
func (r *Result) raise(word string) string {
	if r.Raised() {
		word = strings.NewReplacer("L1", "LLB", "cores", "clusters").Replace(word)
	}
	return word
}
