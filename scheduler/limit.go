package scheduler

import (
	"fmt"
	"strings"
)

// What Limit tells where no resource and no queue stands out.
const (
	LimitDependencies = "dependencies"
	LimitNothing      = "nothing" // an empty program
)

// Limit tells what limits a schedule's throughput: the resource or the queue of
// commands that is busy for the largest share of the time even if everything else
// is free, or, if none is for half of it, waiting: chains of dependencies, whose
// longest one then gives the share. Shares come from the lower bounds of package
// sim, so they do not count what a unit waits for others.
func (r *Result) Limit() (name string, share float64) {
	b, total := r.Sim.Bound, float64(r.Sim.TotalPs)
	if total == 0 {
		return LimitNothing, 0
	}
	if b.Resource >= 0 {
		name, share = limitName(r.Program.Resources[b.Resource].Name), float64(b.ResourcePs)/total
	}
	if s := float64(b.QueuePs) / total; b.Queue >= 0 && s > share {
		name, share = limitName(r.Program.Queues[b.Queue].Name), s
	}
	const most = 0.5 // of the time: then no other is busier
	if share < most {
		return LimitDependencies, float64(b.ChainPs) / total
	}
	return name, share
}

// LimitText says in a few words what keeps the program from being faster: see
// [Result.Limit].
func (r *Result) LimitText() string {
	switch what, share := r.Limit(); what {
	case LimitNothing:
		return "nothing runs"
	case LimitDependencies:
		return fmt.Sprintf("dependencies: no unit is busy for half of the time; the longest chain takes %.0f %% of it", 100*share)
	default:
		return fmt.Sprintf("%s, busy for %.0f %% of the time", what, 100*share)
	}
}

// limitNames are words for what package lower calls its resources and queues.
var limitNames = map[string]string{
	"ddr": "DDR bandwidth", "ddr-port": "DDR port", "gb": "GB bandwidth", "link-in": "links into the cores", "link-out": "links out of the cores",
	"control": "launches", "ddr.load": "DDR loads", "ddr.store": "DDR stores", "lb.in": "GB to LB moves", "lb.out": "LB to GB moves",
	"mme": "matrix unit", "vme": "vector unit", "special": "special unit",
}

func limitName(name string) string {
	if i := strings.IndexByte(name, '.'); i >= 0 {
		name = name[i+1:] // the cluster
	}
	if words, ok := limitNames[name]; ok {
		return words
	}
	return name
}
