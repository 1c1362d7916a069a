package lower

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
)

// passing is the state that the clusters working on a chunk together share: the
// commands after which results are in the DDR, and those that wait for them.
type passing struct {
	made  map[passed]int32
	waits []wait
}

// passed is a result on its way between clusters.
type passed struct {
	iteration int32
	instance  int
	tensor    model.TensorID
}

type wait struct {
	command int32
	what    passed
}

// pass notes that an output is in the DDR when its last store has ended.
func (l *lowering) pass(o *outgoing) {
	if l.passing != nil {
		l.passed = append(l.passed, stored{passed{l.iter, o.val.Instance, o.val.Tensor}, o.stored})
	}
}

// stored is a result with the command of the cluster that completes it.
type stored struct {
	passed
	command int32
}

// await lets the first load from the DDR among the commands from number from on, and all requests, wait for the
// inputs that other clusters make; the loads behind it are in the same queue.
func (l *lowering) await(from int32, ins ...*incoming) {
	waits := false // a load does
	for i := from; i < l.cmds.n; i++ {
		m := l.cmds.mark(i)
		if l.cmds.at(i).Kind != isa.DDRLoad || waits && !m.asks {
			continue
		}
		for _, in := range ins {
			if in.state.away {
				l.passing.waits = append(l.passing.waits,
					wait{i + l.cmds.between, passed{l.iter, in.val.Instance, in.val.Tensor}})
				m.roam = false
				if m.asks {
					l.cmds.mark(i + 1).roam = false // its load, with which it stays
				}
			}
		}
		waits = waits || !m.asks
	}
}

// fetchAway lets the loads of an input among the commands from number from on wait for the cluster
// that makes it, and if that is on another chip, take it from that one's DDR over the link.
func (l *lowering) fetchAway(from int32, in *incoming) {
	here := l.chipOf(l.cluster)
	for i := from; in.state.away && in.state.chip != here && i < l.cmds.n; i++ {
		if c := l.cmds.at(i); c.Kind == isa.DDRLoad && !l.cmds.mark(i).asks {
			c.DurationPs += l.chipLatency()
			c.Uses[0].Resource = in.state.chip
			out, into := l.chips+2*in.state.chip, l.chips+2*here+1
			c.Uses = append(c.Uses, isa.Use{Resource: out, Bytes: c.Uses[1].Bytes},
				isa.Use{Resource: into, Bytes: c.Uses[1].Bytes})
		}
	}
	l.await(from, in)
}

// loadAhead brings the weights of this and coming steps to the LLB, as far as it keeps them,
// before the queue of loads waits for what other clusters make.
func (l *lowering) loadAhead() {
	away := false
	for _, in := range l.ins {
		away = away || in.state.away || slices.Contains(l.late, in.val.Tensor)
	}
	if !away || l.pages == nil || !l.opt.Prefetch {
		return
	}
	task, full := l.task, false
	for _, lp := range l.coming {
		l.task = lp.task
		lp.eachUse(func(t *weightTile) {
			if full || l.mem.byTile[t.number].entry != nil || t.farBytes > l.pages.largest() {
				return
			}
			next := l.mem.byTile[t.number].at[l.mem.byTile[t.number].next]
			if full = !l.pages.keeps(t.farBytes, next); full {
				return
			}
			l.fetch(t, next, nil)
		})
	}
	l.task = task
}

// keeps reports whether an entry that is used next at a position would stay until then
// without pushing out what is needed sooner.
func (p *pages) keeps(bytes, next int64) bool {
	n := p.retained + p.need(bytes)
	for i, at := range p.nextUse.keys {
		if -at > next {
			n -= len(p.entries[i].pages)
		}
	}
	return n <= p.keepable()
}

// together lets commands wait for what other clusters pass to them, and puts the clusters' commands, ends[k] of which
// are up to the end of cluster k's, into an order in which all that a command waits for stands before it.
func (x *passing) together(p *isa.Program, ends []int) error {
	backward := true
	for _, w := range x.waits {
		d, ok := x.made[w.what]
		if !ok {
			return fmt.Errorf("%s: command %d waits for a result of instance %d that no cluster leaves in the DDR", p.Name,
				w.command, w.what.instance)
		}
		c := &p.Commands[w.command]
		c.Deps = append(c.Deps[:len(c.Deps):len(c.Deps)], d)
		backward = backward && d < w.command
	}
	if backward {
		return nil
	}
	place := slices.Repeat([]int32{-1}, len(p.Commands))
	next := append([]int{0}, ends[:len(ends)-1]...)
	commands := make([]isa.Command, 0, len(p.Commands))
	missing := func(d int32) bool { return place[d] < 0 }
	for len(commands) < len(p.Commands) {
		before := len(commands)
		for k := range ends {
			for ; next[k] < ends[k] && !slices.ContainsFunc(p.Commands[next[k]].Deps, missing); next[k]++ {
				place[next[k]] = int32(len(commands))
				commands = append(commands, p.Commands[next[k]])
			}
		}
		if len(commands) == before {
			return fmt.Errorf("%s: clusters wait for each other", p.Name)
		}
	}
	p.Commands = commands
	move := func(list []int32) []int32 {
		moved := make([]int32, len(list))
		for i, d := range list {
			moved[i] = place[d]
		}
		return moved
	}
	for i := range p.Commands {
		if c := &p.Commands[i]; len(c.Deps) > 0 {
			c.Deps = move(c.Deps)
		}
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		b.First, b.Lasts = place[b.First], move(b.Lasts)
	}
	return nil
}
