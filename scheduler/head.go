package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
)

const (
	// headBlocks is the least number of equal blocks on which recipes compete for a network that has more.
	headBlocks = 3
	// manyBlocks is the least number where a network ends with one: what is in front of fewer weighs too much in the head.
	manyBlocks = 64
	// finalists is how many of them are tried on twice as many blocks, and nearest how many times as long as the fastest
	// they may take before.
	finalists = 4
	nearest   = 1.05
)

// head is the number of equal blocks of a network's head, by the graph of a size, and of the network: as few as have
// more weights than a cluster's memories hold, so that chunks load them again as they do in the network. 0: too little
// would be left out.
func (t *tuner) head(size int64) (blocks, of int, err error) {
	g, err := t.net.Graph(size)
	if err != nil {
		return 0, 0, err
	}
	room := schedule.CoresWithL1(t.spec) * int64(t.spec.L1.SizeBytes)
	if t.spec.LLB != nil {
		room += int64(t.spec.LLB.SizeBytes)
	}
	r := simplify.Repeated(g)
	ends := r.From+r.Times*r.Period == len(g.Ops) && r.Times < manyBlocks
	little := func(blocks int) bool { return ends || 2*(r.Times-blocks)*r.Period < len(g.Ops) } // is left out
	blocks = headBlocks + sort.Search(r.Times, func(more int) bool {
		if little(headBlocks + more) {
			return true
		}
		var short *model.Graph
		short, err = simplify.Shorten(g, r, headBlocks+more)
		return err != nil || weightBytes(short) > room
	})
	if little(blocks) {
		return 0, 0, nil
	}
	return blocks, r.Times, err
}

// graphs are those of the network with so many of its equal blocks.
func (t *tuner) graphs(blocks int) func(int64) (*model.Graph, error) {
	return once(func(size int64) (*model.Graph, error) {
		g, err := t.net.Graph(size)
		if err == nil {
			g, err = simplify.Shorten(g, simplify.Repeated(g), blocks)
		}
		return g, err
	})
}

// A finalist is an attempt on the head.
type finalist struct {
	attempt
	opt run
	ps  int64
}

// make makes the schedule of a finalist for a network's graphs.
func (t *tuner) make(ctx context.Context, graph func(int64) (*model.Graph, error), f finalist) (*Result, error) {
	opt, net := t.opt, t.net
	opt.Chunk, opt.Uneven, opt.InPlace, opt.part = f.chunk, f.pieces, f.inPlace, f.opt.part
	opt.share, opt.rests, opt.cut = f.opt.share, f.opt.rests, f.opt.cut
	net.Graph = graph
	return prepare(ctx, net, t.machine, t.batch, t.recipes[f.recipe], opt)
}

// onHead lets all that is tried compete on the head of a network whose blocks repeat, the fastest again on twice as
// many blocks, and makes for the whole what by both is the fastest of it. false: there is no head, or that is no
// schedule of the network.
func (t *tuner) onHead(ctx context.Context, chunks []int64) (done bool, err error) {
	if !t.wide || t.opt.Clusters != OverBatch || len(t.recipes[0].own) > 0 {
		return false, nil
	}
	blocks, of, err := t.head(chunks[0])
	if blocks == 0 || err != nil {
		return false, ctx.Err()
	}
	var mu sync.Mutex
	var list []finalist
	x := *t
	x.net.Graph, x.opt.Chunks = t.graphs(blocks), nil
	x.near = func(a attempt, opt run, ps int64) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, finalist{a, opt, ps})
	}
	if err := x.all(ctx, chunks); err != nil || x.best == nil {
		return false, ctx.Err()
	}
	list = slices.DeleteFunc(list, func(f finalist) bool { return float64(f.ps) > nearest*float64(x.least) })
	slices.SortStableFunc(list, func(a, b finalist) int {
		return cmp.Or(cmp.Compare(a.ps, b.ps), cmp.Compare(b.chunk, a.chunk), cmp.Compare(a.recipe, b.recipe))
	})
	list = slices.CompactFunc(list, func(a, b finalist) bool { return a.ps == b.ps }) // they do the same
	best, least := list[0], math.Inf(1)
	if list = list[:min(finalists, len(list))]; len(list) > 1 {
		more := min(2*blocks, of)
		longer := t.graphs(more)
		for _, f := range list {
			made, err := t.make(ctx, longer, f)
			ps := int64(0)
			if err == nil {
				ps, err = made.latency(ctx, math.MaxInt64)
			}
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			all := float64(ps) + float64(ps-f.ps)/float64(more-blocks)*float64(of-more)
			if err == nil && all < least {
				best, least = f, all
			}
		}
	}
	made, err := t.make(ctx, t.net.Graph, best)
	if err == nil {
		made.head, err = t.make(ctx, x.net.Graph, best)
	}
	if err == nil {
		err = made.Simulate(ctx)
	}
	if err != nil {
		return false, ctx.Err()
	}
	t.best, t.least, t.by, t.more, t.also, t.tried = made, made.Sim.TotalPs, best.recipe, x.more, x.also, x.tried
	for i := range t.tried {
		t.tried[i].ThroughputPerSecond *= float64(x.least) / float64(t.least)
	}
	made.Notes = append(made.Notes, fmt.Sprintf("recipes and chunks were compared on %d of %d equal blocks, and the fastest "+
		"made for all", blocks, of))
	return true, nil
}
