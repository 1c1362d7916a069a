package scheduler

import (
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// A Problem is the network, machine and batch that a search schedules, with what is known of them.
type Problem struct {
	Net     network.Network
	Machine *hardware.Spec // as described
	Spec    *hardware.Spec // as the decisions see it
	Batch   int64
	Shares  []int64 // of the batch: even ones, or those of a schedule to go on from
	opt     run
	graphs  map[int64]*model.Graph
	memos   map[memoKey]*schedule.Memo
	groups  map[grouped]*schedule.Schedule
	tiles   Memory
	mu      sync.Mutex
}

// NewProblem is the problem of a batch on a machine, as described and as the decisions see it; see [Level.Machine].
func NewProblem(net network.Network, machine, spec *hardware.Spec, batch int64, opt Options) *Problem {
	return &Problem{Net: net, Machine: machine, Spec: spec, Batch: batch, Shares: schedule.Shares(batch, spec.Clusters),
		opt:    run{Options: opt, state: state{paths: fewPaths}},
		graphs: map[int64]*model.Graph{}, memos: map[memoKey]*schedule.Memo{}, groups: map[grouped]*schedule.Schedule{}}
}

type memoKey struct {
	size   int64
	uneven schedule.Uneven
}

// grouped names the groups of a strategy.
type grouped struct {
	graph    *model.Graph
	strategy string
	inPlace  bool
	uneven   schedule.Uneven
}

// Options are the options of the search.
func (w *Problem) Options() Options { return w.opt.Options }

// Graph is the network at a size, one for all plans.
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

// Has reports whether a graph is the network's at a size.
func (w *Problem) Has(g *model.Graph, size int64) (bool, error) {
	own, err := w.Graph(size)
	if err != nil || own == g {
		return err == nil, err
	}
	return len(own.Ops) == len(g.Ops) && schedulefile.GraphFingerprint(own) == schedulefile.GraphFingerprint(g), nil
}

// memo returns the cache of the graph at a size, for pieces of a kind.
func (w *Problem) memo(size int64, uneven schedule.Uneven) *schedule.Memo {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := memoKey{size, uneven}
	if w.memos[key] == nil {
		w.memos[key] = schedule.NewMemo()
	}
	return w.memos[key]
}

// Graphs are the problems of the network's graph, of that which the recipes of one kernel make of it, and last of that
// with slices.
func (w *Problem) Graphs() []*Problem {
	list := []*Problem{w}
	for _, sliced := range []bool{false, true} {
		net := w.Net
		net.Graph = func(size int64) (*model.Graph, error) {
			g, err := w.Net.Graph(size)
			if err == nil {
				g, err = rewritten(g, w.Spec, w.opt.Lines, sliced)
			}
			return g, err
		}
		x := NewProblem(net, w.Machine, w.Spec, w.Batch, w.opt.Options)
		x.Shares = w.Shares
		list = append(list, x)
	}
	return list
}

// Of finds the problem whose graph of so many elements is g; the first if there is none.
func Of(list []*Problem, g *model.Graph, size int64) (*Problem, error) {
	for _, w := range list {
		if own, err := w.Has(g, size); own || err != nil {
			return w, err
		}
	}
	return list[0], nil
}
