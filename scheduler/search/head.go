package search

import (
	"context"
	"slices"

	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/scheduler"
)

// Networks repeat their blocks, and what is best for one is so for all of them, or nearly. So
// where a sequence of atoms has many equal blocks the search looks for groups in the head of the
// network: the part up to the end of some blocks, which is simulated in a fraction of the time.
// It extends what it finds to all blocks and judges that as any other schedule.

// A head has headBlocks.
const headBlocks = 3

// repetition finds the repetition of the sequence.
func (g *regrouper) repetition() simplify.Repetition {
	known := map[string]int{}
	names := make([]int, len(g.seq))
	for i, atom := range g.seq {
		name := g.namer.Name([]int{atom})
		if _, there := known[name]; !there {
			known[name] = len(known)
		}
		names[i] = known[name]
	}
	return simplify.RepetitionOf(len(names), func(i, j int) bool { return names[i] == names[j] })
}

// headOf returns the decisions for the first groups, up to atom n of the sequence; nil: a group that goes on there
// can't be cut.
func (s *searcher) headOf(p *scheduler.Decisions, spans []span, n int) *scheduler.Decisions {
	k := slices.IndexFunc(spans, func(x span) bool { return x.hi >= n })
	head := slices.Clone(spans[:k+1])
	if !s.trim(&head[k], head[k].lo, n) {
		return nil
	}
	return s.afresh(p, head)
}

// trim leaves a group the atoms from lo to hi, if they make one.
func (s *searcher) trim(x *span, lo, hi int) bool {
	if x.lo == lo && x.hi == hi {
		return true
	}
	g := s.g.group(lo, hi)
	if g == nil {
		return false
	}
	if x.lo, x.hi = lo, hi; x.split.Factor > 1 {
		info, ok := s.splitLike(g, x.split)
		if !ok {
			info = g.ways[0].Split
		}
		x.split = info
	}
	return true
}

// extendHead takes the groups of a head, found with their places in the same sequence, for the whole: those of some
// blocks, the last ones that begin and end with groups, for all behind them. What comes last, or all if there are no
// such blocks, has the groups of the best plan, from where both have a border, or some that are proposed.
func (s *searcher) extendHead(c candidate) (lifted []candidate) {
	spans, from := s.repeat(c.spans)
	add := func(n int, tail []span) {
		// The first groups have all that is decided for those of the head that they repeat.
		p := c.ExtendTo(s.afresh(s.best.Decisions, append(slices.Clone(spans[:n]), tail...)), s.best.Schedule.Graph, from[:n])
		if s.fresh(p) {
			lifted = append(lifted, candidate{Decisions: p, spans: s.g.spans(p), move: "blocks"})
		}
	}
	n, k := len(spans), len(s.best.spans)
	for n > 0 && k > 0 && spans[n-1].hi != s.best.spans[k-1].hi {
		if spans[n-1].hi > s.best.spans[k-1].hi {
			n--
		} else {
			k--
		}
	}
	if n == 0 || k == 0 {
		n, k = 0, 0
	}
	add(n, s.best.spans[k:])
	to := 0
	if len(spans) > 0 {
		to = spans[len(spans)-1].hi
	}
	for try := 0; len(lifted) < perRound && try < perRound && to < len(s.g.seq); try++ {
		if tail := s.g.propose(to, s.rng, float64(try)/perRound); tail != nil {
			add(len(spans), tail)
		}
	}
	return lifted
}

// repeat continues the groups of a head with those of its own blocks; from says of each group
// which of the head's it repeats. Both are empty if no blocks begin and end with groups.
func (s *searcher) repeat(head []span) (spans []span, from []int) {
	r := s.repetition
	begins := map[int]int{} // groups by their first atoms
	for i, x := range head {
		begins[x.lo] = i
	}
	last := head[len(head)-1].hi
	for length := r.Period; length < headBlocks*r.Period; length += r.Period {
		for at := last - length - 1; at >= r.From; at-- { // what ends a head is written out
			first, begin := begins[at]
			end, ends := begins[at+length]
			if !begin || !ends {
				continue
			}
			for i := range end {
				from = append(from, i)
			}
			spans = slices.Clone(head[:end])
			for shift, i := length, first; ; {
				x := head[i]
				if x = (span{x.lo + shift, x.hi + shift, x.split}); x.hi > r.End || s.g.group(x.lo, x.hi) == nil {
					return spans, from
				}
				spans, from = append(spans, x), append(from, i)
				if i++; i == end {
					shift, i = shift+length, first
				}
			}
		}
	}
	return nil, nil
}

// headShare is the share of a cycle that goes to the head at first; each time that the head has found nothing better
// for the network, it is halved.
const headShare = 0.5

// blocks searches the head and takes what it finds for the whole. false: no blocks are repeated.
func (s *searcher) blocks(ctx context.Context, b budget) (bool, error) {
	if s.whole != nil {
		return false, nil
	}
	r := s.repetition
	n := r.From + headBlocks*r.Period
	if r.Times == 0 || s.best.spans == nil || slices.ContainsFunc(s.w.Shares,
		func(share int64) bool { return share%s.best.Chunk != 0 }) {
		return false, nil
	}
	p := s.headOf(s.best.Decisions, s.best.spans, n)
	if s.head == nil && p == nil {
		return false, nil
	}
	if s.head == nil {
		head := &searcher{seeker: s.seeker, start: startAt{Decisions: p}, rng: s.rng, whole: s}
		if err := head.begin(ctx); err != nil || !slices.Equal(head.g.seq, s.g.seq[:n]) {
			return false, ctx.Err()
		}
		s.head = head
	} else if p != nil {
		again := []candidate{{Decisions: p, spans: s.head.g.spans(p)}}
		if _, err := s.simulate(ctx, again, 0, false); err != nil {
			return false, err
		}
		if _, err := s.head.consider(ctx, again[0]); err != nil {
			return false, err
		}
	}
	if !s.tuned && s.head.affords(minEvalsForSettings, 1) {
		s.tuned = true
		if err := s.head.settings(ctx); err != nil {
			return false, err
		}
	}
	all := b
	all.evaluations = int(float64(b.evaluations) / s.head.part())
	s.head.proposalShare = 1
	if _, err := s.head.proposals(ctx, all, 0.5); err != nil {
		return false, err
	}
	if err := s.head.polish(ctx, all.part(0.5), s.head.best); err != nil {
		return false, err
	}
	return true, s.tryAll(ctx, s.extendHead(s.head.best), 0)
}
