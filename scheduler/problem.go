package scheduler

import (
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Problem is the network, machine and batch to schedule, with caches of what is known of them.
type Problem struct {
	Net     network.Network
	Machine *hardware.Spec // as described
	Spec    *hardware.Spec // as the decisions see it
	Batch   int64
	Shares  []int64 // of the batch: even ones, or those of a schedule to go on from
	opt     run
	graphs  map[int64]*model.Graph
	groups  map[grouped]*schedule.Schedule
	tiles   Memory
	mu      sync.Mutex
}

// NewProblem is the problem of a batch on a machine, as described and as the decisions see it; see [Level.Machine].
func NewProblem(net network.Network, machine, spec *hardware.Spec, batch int64, opt Options) *Problem {
	opt.Share()
	return &Problem{Net: net, Machine: machine, Spec: spec, Batch: batch, Shares: schedule.Shares(batch, spec.Clusters),
		opt:    run{Options: opt, state: state{paths: fewPaths}},
		graphs: map[int64]*model.Graph{}, groups: map[grouped]*schedule.Schedule{}}
}

// grouped names the groups of a strategy.
type grouped struct {
	graph    *model.Graph
	strategy string
	inPlace  bool
	uneven   schedule.Uneven
}

// Graph is the network at a size, shared by all plans.
func (w *Problem) Graph(size int64) (*model.Graph, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.graphs[size]; g != nil {
		return g, nil
	}
	g, err := w.Net.Graph(size)
	if err == nil {
		w.graphs[size] = g
	}
	return g, err
}

// GraphOf is the graph that decisions schedule.
func (w *Problem) GraphOf(p *Decisions) (*model.Graph, error) {
	g, err := w.Graph(p.Chunk)
	if err != nil {
		return nil, err
	}
	return w.tiles.form(graphForm{g, w.Spec, w.opt.Lines, p.Form()})
}

// Release frees the caches of steps and the memories for programs, which may be much larger than a search needs.
func (w *Problem) Release() {
	w.tiles.memos.Clear()
	w.tiles.mu.Lock()
	defer w.tiles.mu.Unlock()
	w.tiles.free = nil
}
