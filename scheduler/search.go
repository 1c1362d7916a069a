package scheduler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// perRound is how many plans are simulated at a time; what is found does not depend on how
// many there are cores for.
const perRound = 8

// A candidate is a plan under consideration.
type candidate struct {
	*plan
	spans []span
	move  string
	by    int // the move's number
	outcome
}

// searcher improves plans of one chunk, in two phases: groups that a [regrouper] proposes,
// then changes of one decision after the other, at one place or at all that are alike.
type searcher struct {
	*seeker
	start  startAt
	cost   *cost.Model
	rng    *rand.Rand
	g      *regrouper // nil: it has not begun
	whole  *searcher  // of which this searches the head; nil: none
	head   *searcher  // see blocks; nil: not begun, or none
	rhythm rhythm     // of the whole
	best   candidate
	at     candidate // what moves start from; as good as best, or nearly
	layers map[kindOf]*layerCosts
	set    bool                       // the generator's settings were tried
	known  map[[sha256.Size]byte]bool // plans, and what is decided by them, by name, that were simulated
	// of each move, how often it was tried and gave something better
	tried, won []float64
}

// simulate finds the latencies of candidates, in parallel; those above the limit are given up.
func (s *searcher) simulate(ctx context.Context, list []candidate, limit int64) error {
	_, err := s.simulateNew(ctx, list, limit, true)
	return err
}

// simulateNew is simulate of those that become another program than any before them, which it
// returns, or, if asked for, of all.
func (s *searcher) simulateNew(ctx context.Context, list []candidate, limit int64, all bool) ([]candidate, error) {
	made, names := make([]*Result, len(list)), make([][sha256.Size]byte, len(list))
	each := func(do func(i int)) error {
		var workers errgroup.Group
		workers.SetLimit(s.threads())
		for i := range list {
			workers.Go(func() error {
				do(i)
				return nil
			})
		}
		if err := workers.Wait(); err != nil {
			return err
		}
		return ctx.Err()
	}
	if s.known == nil {
		s.known = map[[sha256.Size]byte]bool{}
	}
	if err := each(func(i int) { made[i], names[i], list[i].err = s.w.decided(ctx, list[i].plan) }); err != nil {
		return nil, err
	}
	n := 0
	for i, c := range list {
		if made[i] == nil && c.err == nil {
			return nil, errors.New("internal error, a plan has neither decisions nor an error")
		}
		if again := c.err == nil && s.known[names[i]]; again && !all {
			continue
		}
		if c.err == nil {
			s.known[names[i]] = true
		}
		list[n], made[n] = c, made[i]
		n++
	}
	list = list[:n]
	return list, each(func(i int) {
		if list[i].err == nil {
			list[i].outcome = s.w.judge(ctx, list[i].plan, made[i], limit)
			list[i].score = s.opt.Objective.score(list[i].ps, list[i].joules)
		}
	})
}

// leastSettings is of how many evaluations some go to the generator's settings first; they are
// tried on the head of a network that is simulated less often than headSettings by default.
const (
	leastSettings = 60
	headSettings  = 400
)

// improve proposes groups for half of a budget and makes moves for the rest.
func (s *searcher) improve(ctx context.Context, b budget) error {
	if s.g == nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	before := s.found.Evaluations
	settings := func() error {
		if s.set || b.evaluations < leastSettings {
			return nil
		}
		s.set = true
		return s.settings(ctx)
	}
	if s.start.commands < defaultCommands/headSettings {
		if err := settings(); err != nil {
			return err
		}
	}
	groups := 0.5
	if found, err := s.blocks(ctx, b.rest(s.found.Evaluations-before).part(headShare)); err != nil {
		return err
	} else if found {
		groups = 0.1
	}
	if err := settings(); err != nil {
		return err
	}
	// A large budget goes round several times: what is best is left for other groups, from which
	// moves lead to other places.
	for again := 0; ; again++ {
		left := b.rest(s.found.Evaluations - before)
		if left.spent(0) >= 1 {
			return nil
		}
		share := 1.0
		if left.evaluations > 2*cycle {
			share = float64(cycle) / float64(left.evaluations)
		}
		if !left.end.IsZero() {
			share = 1 / float64(max(1, cycles-again))
		}
		now := left.part(share)
		began := s.found.Evaluations
		other, err := s.regroup(ctx, now.part(groups))
		if err != nil {
			return err
		}
		from := s.best
		if again%2 == 1 && other.plan != nil && other.score < from.score*(1+detour) {
			from = other
		}
		if err := s.polish(ctx, now.rest(s.found.Evaluations-began), from); err != nil {
			return err
		}
		if share == 1 || s.found.Evaluations == began {
			return nil
		}
	}
}

// cycle is how many schedules proposals and moves take in turn, and cycles how often they do in a
// time limit; every other time, moves begin with the best other groups, if those are worse by
// less than detour.
const (
	cycle  = 150
	cycles = 6
	detour = 0.1
)

// begin simulates a start and poses its groups.
func (s *searcher) begin(ctx context.Context) (err error) {
	start := s.start.plan
	first := []candidate{{plan: start, move: "start"}}
	if err := s.simulate(ctx, first, 0); err != nil {
		return err
	}
	if err := first[0].err; err != nil {
		return fmt.Errorf("internal error, a recipe's own schedule can't be had again: %w", err)
	}
	s.best = first[0]
	made := s.best.s
	if s.cost, err = cost.NewWith(made.Spec, s.opt.Cost); err != nil {
		return err
	}
	if s.whole != nil {
		s.prepare(s.whole.g.net, s.whole.g.namer, s.whole.g.costs)
		return nil
	}
	n, err := split.FromGraph(made.Graph, graphturbo.ExecutionOrder(made.Graph), made.Grouping, made.Spec,
		split.NetworkOptions{InPlace: start.inPlace, Uneven: start.uneven, Cost: s.opt.Cost, MaxGroups: 1})
	if err != nil {
		return err
	}
	s.prepare(n, n.Namer(), &costs{kinds: map[string]*kind{}})
	s.rhythm = s.g.rhythm()
	return ctx.Err()
}

// prepare makes what the search learns.
func (s *searcher) prepare(n *split.Network, namer *split.Namer, known *costs) {
	s.g, s.layers = newRegrouper(n, namer, s.start.plan, known), map[kindOf]*layerCosts{}
	s.best.spans = s.g.spans(s.start.plan)
	s.g.learn(s.best.spans, s.best.groups)
	s.g.prices(firstPrices)
	s.tried, s.won = make([]float64, len(moves)), make([]float64, len(moves))
	s.known[s.best.name()] = true
	s.count()
}

// count counts an evaluation, of a head as a part of one.
func (s *searcher) count() {
	s.simulated += s.part()
	s.found.Evaluations += int(s.simulated)
	s.simulated -= math.Floor(s.simulated)
}

// fresh reports whether a plan was not simulated before, and takes it for simulated.
func (s *searcher) fresh(p *plan) bool {
	name := p.name()
	if s.known[name] {
		return false
	}
	s.known[name] = true
	return true
}

// part is how much of the network is searched.
func (s *searcher) part() float64 {
	if s.whole == nil {
		return 1
	}
	return float64(len(s.g.seq)) / float64(len(s.whole.g.seq))
}

// afresh is a plan with other groups, whose results take the place of operands where they can:
// more fits the L1, and larger groups with it.
func (s *searcher) afresh(p *plan, spans []span) *plan {
	q := p.regroup(s.g.cuts(spans))
	q.over = true
	return q
}

// orders are those that a plan may have its instances in.
var orders = []Strategy{algorithm3, depthFirst, breadthFirst, layerByLayer, chunkByChunk}

// regroup simulates proposed groups; the best of these is returned, that of the search aside.
func (s *searcher) regroup(ctx context.Context, b budget) (other candidate, err error) {
	for done := 0; b.spent(done) < 1; {
		boldness := 1 - b.spent(done)
		s.g.prices(roundPrices)
		var list []candidate
		for try := 0; len(list) < perRound && try < 4*perRound; try++ {
			spans := s.g.propose(s.rng, boldness)
			if spans == nil {
				continue
			}
			p := s.afresh(s.best.plan, spans)
			p.order = orders[0]
			if s.rng.IntN(3) == 0 {
				p.order = orders[s.rng.IntN(len(orders))]
			}
			if s.fresh(p) {
				list = append(list, candidate{plan: p, spans: spans, move: "groups"})
			}
		}
		if len(list) == 0 {
			return other, nil
		}
		if list, err = s.simulateNew(ctx, list, 0, false); err != nil {
			return other, err
		}
		for _, c := range list {
			better, err := s.consider(ctx, c)
			if err != nil {
				return other, err
			}
			if c.err == nil && !better && (other.plan == nil || c.score < other.score) {
				other = c
			}
		}
		done += max(1, len(list))
	}
	return other, nil
}

// consider learns from a simulated candidate, and takes it if it is better and breaks no
// rule.
func (s *searcher) consider(ctx context.Context, c candidate) (better bool, err error) {
	s.count()
	if c.err != nil {
		s.g.avoid(c.spans)
		return false, nil
	}
	if c.groups != nil {
		s.g.learn(c.spans, c.groups)
	}
	known := c.score >= s.best.score
	if s.whole != nil {
		if !known {
			s.best = c
		}
		return !known, nil
	}
	if known && (!s.opt.Front || c.ps == math.MaxInt64 || s.found.Front.beats(Point{float64(c.ps) * 1e-12, c.joules, ""})) {
		return false, nil
	}
	r, err := s.w.result(ctx, c.plan)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		s.g.avoid(c.spans)
		return false, nil
	case r.Sim.TotalPs != c.ps:
		return false, fmt.Errorf("internal error, a schedule takes %d ps, its outline %d", r.Sim.TotalPs, c.ps)
	}
	s.offer(r, c.plan, c.move)
	if known { // a point of the front
		return false, nil
	}
	s.best = c
	return true, nil
}

// Worse plans than the best are moved on from, by this share at first and by none at last;
// slack is by how much the simulation of a move may exceed that before it is given up, so
// that what its groups take is known of those that come near.
const (
	hottest = 0.005
	slack   = 0.05
)

// polish makes moves from a plan on.
func (s *searcher) polish(ctx context.Context, b budget, top candidate) error {
	s.at = top
	idle := 0
	for done := 0; b.spent(done) < 1; {
		heat := 1 + hottest*max(0, 1-1.25*b.spent(done))
		var list []candidate
		for try := 0; len(list) < perRound && try < 20*perRound; try++ {
			m := s.pick()
			if c, ok := moves[m].make(s); ok && s.fresh(c.plan) {
				c.move, c.by = moves[m].name, m
				list = append(list, c)
				s.tried[m]++
			}
		}
		if len(list) == 0 {
			return nil
		}
		var err error
		if list, err = s.simulateNew(ctx, list, s.opt.Objective.longest(top.score*(1+slack), s.w.spec), false); err != nil {
			return err
		}
		done += max(1, len(list))
		next := -1
		for i, c := range list {
			better, err := s.consider(ctx, c)
			if err != nil {
				return err
			}
			if better {
				s.won[c.by]++
			}
			if c.err == nil && c.score < top.score && c.score >= s.best.score { // else it breaks a rule
				top, idle = c, 0
			}
			if c.err == nil && (next < 0 || c.score < list[next].score) {
				next = i
			}
		}
		idle++
		switch {
		case next >= 0 && list[next].score < min(s.at.score, top.score*heat), next >= 0 && list[next].score == top.score:
			s.at = list[next]
		case idle%16 == 0:
			s.at = top
		}
	}
	return nil
}

// pick draws a move, those that have won more often than others.
func (s *searcher) pick() int {
	weights, sum := make([]float64, len(moves)), 0.0
	for m := range moves {
		weights[m] = moves[m].weight * (s.won[m] + 1) / (s.tried[m] + 20)
		sum += weights[m]
	}
	x := s.rng.Float64() * sum
	for m, w := range weights {
		if x -= w; x < 0 {
			return m
		}
	}
	return len(moves) - 1
}

// moves change one decision of the plan at hand; false: this one can't be changed so.
var moves = []struct {
	name   string
	weight float64
	make   func(*searcher) (candidate, bool)
}{
	{"split", 2, (*searcher).moveSplit},
	{"merge", 2, (*searcher).moveMerge},
	{"cut", 2, (*searcher).moveCut},
	{"shift", 2, (*searcher).moveShift},
	{"divide", 2, (*searcher).moveDivide},
	{"factor", 2, (*searcher).moveFactor},
	{"groups", 2, (*searcher).moveGroups},
	{"bind", 3, (*searcher).moveBinding},
	{"layer", 4, (*searcher).moveLayer},
	{"layers", 4, (*searcher).moveLayers},
	{"sequence", 2, (*searcher).moveSequence},
	{"alone", 1, (*searcher).moveAlone},
	{"scope", 1, (*searcher).moveScope},
	{"spill", 1, (*searcher).moveDown},
	{"order", 1, (*searcher).moveOrder},
	{"position", 1, (*searcher).movePosition},
	{"generator", 1, (*searcher).moveGenerator},
}

// kindOf is what a span has in common with those that are alike.
type kindOf struct {
	kind   int
	dim    int
	factor int64
}

func (s *searcher) kindOf(x span) kindOf {
	g := s.g.group(x.lo, x.hi)
	if g == nil {
		return kindOf{kind: -1 - x.lo}
	}
	return kindOf{g.number, x.split.Dim, x.split.Factor}
}

// alike lists where in the spans the m from k on stand again, that place among them, or
// that place alone.
func (s *searcher) alike(spans []span, k, m int, everywhere bool) []int {
	if !everywhere {
		return []int{k}
	}
	kinds := make([]kindOf, len(spans))
	for i, x := range spans {
		kinds[i] = s.kindOf(x)
	}
	var list []int
	for i := 0; i+m <= len(spans); i++ {
		if slices.Equal(kinds[i:i+m], kinds[k:k+m]) && (i == k || i+m <= k || i >= k+m) {
			list = append(list, i)
			i += m - 1
		}
	}
	return list
}

// rewrite puts other groups in the place of m from k on, and of those that are alike; ends
// are those of the new groups, relative to the beginning.
func (s *searcher) rewrite(k, m int, ends ...int) (candidate, bool) {
	spans := s.at.spans
	var infos []schedule.SplitInfo
	from := 0
	for _, end := range ends {
		g := s.g.group(spans[k].lo+from, spans[k].lo+end)
		if g == nil {
			return candidate{}, false
		}
		infos = append(infos, s.draw(g, schedule.SplitInfo{}))
		from = end
	}
	return s.replace(k, m, ends, infos)
}

func (s *searcher) replace(k, m int, ends []int, infos []schedule.SplitInfo) (candidate, bool) {
	spans := s.at.spans
	var made []span
	next := 0
	for _, i := range s.alike(spans, k, m, s.rng.IntN(3) > 0) {
		if i < next {
			continue
		}
		var parts []span
		from := spans[i].lo
		for j, end := range ends {
			x := span{from, spans[i].lo + end, infos[j]}
			if s.g.group(x.lo, x.hi) == nil {
				parts = nil
				break
			}
			parts = append(parts, x)
			from = x.hi
		}
		if parts == nil {
			continue
		}
		made = append(append(made, spans[next:i]...), parts...)
		next = i + m
	}
	made = append(made, spans[next:]...)
	if slices.Equal(made, spans) {
		return candidate{}, false
	}
	c := candidate{plan: s.afresh(s.at.plan, made), spans: made}
	if s.rng.IntN(2) == 0 {
		s.carry(c)
	}
	return c, true
}

// carry gives groups that are new in a plan the layers that they have at hand, with their bindings.
func (s *searcher) carry(c candidate) {
	made := s.at.s
	first := map[model.OpID]bool{}           // of a layer
	has := map[model.OpID]schedule.Binding{} // by anchor
	of := map[model.OpID]model.OpID{}        // anchors by operator
	for i := range made.Steps {
		st := &made.Steps[i]
		inst := &made.Instances.Instances[st.Instance]
		if layer := &made.Layers[inst.Group][st.Layer]; inst.Index == made.Grouping.Groups[inst.Group].Factor()/2 {
			has[layer.Anchor], first[layer.Ops[0]] = st.Binding, true
			for _, id := range layer.Ops {
				of[id] = layer.Anchor
			}
		}
	}
	old := map[piece]bool{}
	for i := range s.at.cuts {
		old[s.at.cuts[i].piece()] = true
	}
	c.inner, c.bound, c.alone = maps.Clone(c.inner), maps.Clone(c.bound), maps.Clone(c.alone)
	if c.inner == nil {
		c.inner = map[model.OpID]schedule.Binding{}
	}
	if c.alone == nil {
		c.alone = map[model.OpID]bool{}
	}
	for i := range c.cuts {
		x := &c.cuts[i]
		if old[x.piece()] {
			continue
		}
		for _, id := range x.ops {
			if b := has[id]; b != nil {
				c.inner[id] = b
			}
			if first[id] {
				c.alone[id] = true
			}
		}
		_, outputs := schedule.Boundary(made.Graph, x.ops)
		b := c.bound[x.piece()]
		if b.binding = has[of[made.Graph.Tensor(outputs[0]).Producer]]; b.binding != nil {
			c.bound[x.piece()] = b
		}
	}
}

// draw is a way to split a group, another than not: cheap ones are likelier.
func (s *searcher) draw(g *group, not schedule.SplitInfo) schedule.SplitInfo {
	mean, deviation := s.g.scale()
	best, least := g.arms[0].Split, math.Inf(1)
	for _, a := range g.arms {
		cost := a.mean
		if a.times == 0 {
			cost = a.Seconds * math.Exp(mean)
		}
		cost *= math.Exp(deviation * s.rng.NormFloat64())
		if a.Split != not && cost < least {
			best, least = a.Split, cost
		}
	}
	return best
}

// place draws one of the first n groups: half of the time all alike, else by what their kernels take.
func (s *searcher) place(n int) int {
	x := 0.0
	for _, ps := range s.at.groups[:n] {
		x += float64(ps)
	}
	if x *= s.rng.Float64(); s.rng.IntN(2) > 0 {
		for k, ps := range s.at.groups[:n] {
			if x -= float64(ps); x < 0 {
				return k
			}
		}
	}
	return s.rng.IntN(n)
}

func (s *searcher) moveSplit() (candidate, bool) {
	k := s.place(len(s.at.spans))
	x := s.at.spans[k]
	g := s.g.group(x.lo, x.hi)
	if g == nil {
		return candidate{}, false
	}
	return s.replace(k, 1, []int{x.hi - x.lo}, []schedule.SplitInfo{s.draw(g, x.split)})
}

func (s *searcher) moveMerge() (candidate, bool) {
	if len(s.at.spans) < 2 {
		return candidate{}, false
	}
	k := s.place(len(s.at.spans) - 1)
	return s.rewrite(k, 2, s.at.spans[k+1].hi-s.at.spans[k].lo)
}

func (s *searcher) moveCut() (candidate, bool) {
	k := s.place(len(s.at.spans))
	n := s.at.spans[k].hi - s.at.spans[k].lo
	if n < 2 {
		return candidate{}, false
	}
	return s.rewrite(k, 1, 1+s.rng.IntN(n-1), n)
}

func (s *searcher) moveShift() (candidate, bool) {
	if len(s.at.spans) < 2 {
		return candidate{}, false
	}
	k := s.place(len(s.at.spans) - 1)
	a, b := s.at.spans[k], s.at.spans[k+1]
	end := a.hi - a.lo + []int{-3, -2, -1, 1, 2, 3}[s.rng.IntN(6)]
	if end <= 0 || a.lo+end >= b.hi {
		return candidate{}, false
	}
	return s.rewrite(k, 2, end, b.hi-a.lo)
}

// moveDivide makes several groups of one, with about as many weights each, that are split as it
// was, or less often: each loads its weights for all its instances, one after the other.
func (s *searcher) moveDivide() (candidate, bool) {
	k := s.place(len(s.at.spans))
	x := s.at.spans[k]
	parts := 2 + s.rng.IntN(4)
	if x.hi-x.lo < parts {
		return candidate{}, false
	}
	info := x.split
	if info.Factor%2 == 0 && s.rng.IntN(2) == 0 {
		info.Factor /= 2
	}
	weights := make([]float64, x.hi-x.lo) // of the atoms up to each one, and a little for each
	sum := 0.0
	for i := range weights {
		for _, id := range s.g.net.Operators(s.g.seq[x.lo+i : x.lo+i+1]) {
			for _, t := range s.at.s.Graph.Op(id).Inputs {
				if tensor := s.at.s.Graph.Tensor(t); tensor.Role == model.Constant {
					sum += float64(tensor.Bytes())
				}
			}
		}
		sum++
		weights[i] = sum
	}
	var ends []int
	for i := range weights {
		if n := len(ends); n+1 < parts && weights[i] >= sum*float64(n+1)/float64(parts) && i+1 < len(weights) {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(weights))
	infos := make([]schedule.SplitInfo, len(ends))
	from := 0
	for j, end := range ends {
		g := s.g.group(x.lo+from, x.lo+end)
		if g == nil {
			return candidate{}, false
		}
		from = end
		infos[j] = s.draw(g, schedule.SplitInfo{})
		if y, ok := s.splitLike(g, info); ok {
			infos[j] = y
		}
	}
	c, ok := s.replace(k, 1, ends, infos)
	if ok && s.rng.IntN(2) == 0 {
		c.order = breadthFirst
	}
	return c, ok
}

// splitLike is a way to split a group along a dimension of the kind and in the factor of
// another's, as far as it has one.
func (s *searcher) splitLike(g *group, like schedule.SplitInfo) (schedule.SplitInfo, bool) {
	out := s.outputOf(g)
	if like.Factor <= 1 || like.Dim < 0 || like.Dim >= len(out.Shape) || model.Pieces(out.Shape[like.Dim], like.Factor) != like.Factor {
		return schedule.SplitInfo{}, false
	}
	for _, a := range g.arms {
		if a.Split.Dim == like.Dim && a.Split.Factor > 1 {
			info := a.Split
			info.Factor = like.Factor
			return info, true
		}
	}
	ops := s.g.net.Operators(g.atoms)
	_, outputs := schedule.Boundary(s.best.s.Graph, ops)
	tr := schedule.Track(s.best.s.Graph, ops, outputs, like.Dim)
	like.Ops, like.Depth = len(ops)-tr.Unmatched, slices.Index(out.Layout, like.Dim)
	return like, tr.Splittable && like.Depth >= 0
}

// outputOf is the first result that leaves a group.
func (s *searcher) outputOf(g *group) *model.Tensor {
	_, outputs := schedule.Boundary(s.best.s.Graph, s.g.net.Operators(g.atoms))
	return s.best.s.Graph.Tensor(outputs[0])
}

// moveFactor splits a group more or less often along the same dimension.
func (s *searcher) moveFactor() (candidate, bool) {
	k := s.place(len(s.at.spans))
	x := s.at.spans[k]
	g := s.g.group(x.lo, x.hi)
	info := x.split
	if g == nil || info.Factor < 1 {
		return candidate{}, false
	}
	switch s.rng.IntN(4) {
	case 0:
		info.Factor++
	case 1:
		info.Factor--
	case 2:
		info.Factor *= 2
	case 3:
		info.Factor /= 2
	}
	info, ok := s.splitLike(g, info)
	if !ok {
		return candidate{}, false
	}
	return s.replace(k, 1, []int{x.hi - x.lo}, []schedule.SplitInfo{info})
}

// moveGroups takes proposed groups with what was decided of others.
func (s *searcher) moveGroups() (candidate, bool) {
	spans := s.g.propose(s.rng, 0.5*s.rng.Float64())
	if spans == nil {
		return candidate{}, false
	}
	return candidate{plan: s.afresh(s.at.plan, spans), spans: spans}, true
}

// choose changes what is decided for a group and for those that are alike.
func (s *searcher) choose(k int, change func(c *choice, k int) bool) (candidate, bool) {
	p := *s.at.plan
	p.bound = maps.Clone(p.bound)
	for _, i := range s.alike(s.at.spans, k, 1, s.rng.IntN(3) > 0) {
		key := p.cuts[i].piece()
		c := p.bound[key]
		if !change(&c, i) {
			return candidate{}, false
		}
		p.bound[key] = c
	}
	return candidate{plan: &p, spans: s.at.spans}, true
}

func (s *searcher) moveBinding() (candidate, bool) {
	k := s.place(len(s.at.spans))
	made := s.at.s
	sg := made.Grouping.Groups[k]
	inst := &made.Instances.Instances[made.Instances.First[k]+int(sg.Factor()/2)]
	list := bindings(inst.Regions[sg.Outputs[0]], schedule.CoresWithLB(made.Spec), made.UnevenCores)
	b := list[s.rng.IntN(len(list))]
	if b.Equal(made.Bindings[inst.ID]) {
		return candidate{}, false
	}
	return s.choose(k, func(c *choice, _ int) bool {
		c.binding = b
		return true
	})
}

// bindings lists those of a box that use at least half of the cores, or the most that can.
func bindings(r model.Region, cores int64, uneven bool) []schedule.Binding {
	var list []schedule.Binding
	var fill func(b schedule.Binding, left int64)
	fill = func(b schedule.Binding, left int64) {
		if len(b) == len(r) {
			list = append(list, slices.Clone(b))
			return
		}
		for f := int64(1); f <= left; f++ {
			if n := r[len(b)].Len(); left%f == 0 && (n%f == 0 || uneven && model.Pieces(n, f) == f) {
				fill(append(b, f), left/f)
			}
		}
	}
	fill(nil, cores)
	most := int64(1)
	for _, b := range list {
		most = max(most, b.Cores())
	}
	return slices.DeleteFunc(list, func(b schedule.Binding) bool { return 2*b.Cores() < most })
}

// bindingsOf are those that a layer may have of which an instance computes a box of its result.
func bindingsOf(s *schedule.Schedule, layer *schedule.Layer, out model.TensorID, region model.Region) []schedule.Binding {
	cores, forbidden := schedule.CoresWithLB(s.Spec), schedule.Forbidden(s.Graph, layer.Ops, out)
	return slices.DeleteFunc(bindings(region, cores, s.UnevenCores), func(b schedule.Binding) bool {
		return schedule.CheckBinding(region, b, forbidden, cores) != nil
	})
}

func (s *searcher) moveScope() (candidate, bool) {
	k := s.place(len(s.at.spans))
	made := s.at.s
	to := schedule.LB
	if made.Scopes[made.Instances.First[k]] == schedule.LB {
		to = schedule.GB
	}
	return s.choose(k, func(c *choice, _ int) bool {
		c.scope = &to
		return true
	})
}

// places lists a position among the operators of a group, and of groups that are alike.
func (s *searcher) places(k, n int) []model.OpID {
	var list []model.OpID
	for _, i := range s.alike(s.at.spans, k, 1, s.rng.IntN(3) > 0) {
		list = append(list, s.at.cuts[i].ops[n])
	}
	return list
}

// moveDown lets a result go to the GB, or stay.
func (s *searcher) moveDown() (candidate, bool) {
	k := s.place(len(s.at.spans))
	g := s.at.s.Graph
	n := s.rng.IntN(len(s.at.cuts[k].ops))
	if s.at.s.Spec.GB == nil || g.Op(s.at.cuts[k].ops[n]).Class() == model.ViewClass {
		return candidate{}, false
	}
	p := *s.at.plan
	p.down = maps.Clone(p.down)
	if p.down == nil {
		p.down = map[model.TensorID]bool{}
	}
	down := !p.down[g.Op(s.at.cuts[k].ops[n]).Outputs[0]]
	for _, id := range s.places(k, n) {
		p.down[g.Op(id).Outputs[0]] = down
	}
	return candidate{plan: &p, spans: s.at.spans}, true
}

// moveLayer spreads a layer over the cores in another way than its group: such as take few
// cycles are likelier.
func (s *searcher) moveLayer() (candidate, bool) {
	made := s.at.s
	k := s.place(len(s.at.spans))
	l := s.rng.IntN(len(made.Layers[k]))
	layer := &made.Layers[k][l]
	inst := &made.Instances.Instances[made.Instances.First[k]+int(made.Grouping.Groups[k].Factor()/2)]
	if len(layer.Outputs) == 0 || inst.Regions[layer.Outputs[0]].Elements() == 0 {
		return candidate{}, false
	}
	g, out := made.Graph, layer.Outputs[0]
	region := inst.Regions[out]
	var own schedule.Binding
	least := math.Inf(1)
	for _, b := range bindingsOf(made, layer, out, region) {
		if b.Equal(s.at.inner[layer.Anchor]) {
			continue
		}
		boxes := schedule.Regions{out: schedule.Slice(region, b, g.Tensor(out).Layout, 0)}
		schedule.BackPropagate(g, layer.Ops, boxes)
		cycles := s.cost.LayerCycles(cost.Layer{Graph: g, Ops: layer.Ops, Anchor: layer.Anchor, Boxes: boxes, Output: out, Cores: b.Cores()})
		if c := float64(cycles) * math.Exp(0.3*s.rng.NormFloat64()); c < least {
			own, least = b, c
		}
	}
	if own == nil {
		return candidate{}, false
	}
	if s.at.inner[layer.Anchor] != nil && s.rng.IntN(4) == 0 {
		own = nil // as its group
	}
	p := *s.at.plan
	p.inner = maps.Clone(p.inner)
	if p.inner == nil {
		p.inner = map[model.OpID]schedule.Binding{}
	}
	for _, id := range s.places(k, slices.Index(s.at.cuts[k].ops, layer.Anchor)) {
		p.inner[id] = own
	}
	return candidate{plan: &p, spans: s.at.spans}, true
}

// layerCosts are what the layers of a kind of group cost under each of their bindings; places
// are their anchors' among the group's operators.
type layerCosts struct {
	*binding.Layers
	places []int
}

// layerCosts is that of a group in the schedule in which it was asked for first.
func (s *searcher) layerCosts(k int) *layerCosts {
	kind := s.kindOf(s.at.spans[k])
	if known, there := s.layers[kind]; there {
		return known
	}
	made := s.at.s
	inst := made.Instances.First[k] + int(made.Grouping.Groups[k].Factor()/2)
	l, err := binding.LayersOf(made, inst, s.cost, func(layer *schedule.Layer, t model.TensorID, region model.Region) []schedule.Binding {
		return bindingsOf(made, layer, t, region)
	})
	var costs *layerCosts // none: it can't be had
	if err == nil {
		costs = &layerCosts{Layers: l}
		for _, anchor := range l.Anchors {
			costs.places = append(costs.places, slices.Index(s.at.cuts[k].ops, anchor))
		}
	}
	s.layers[kind] = costs
	return costs
}

// moveLayers spreads all layers of a group over the cores at once: the best for costs that are
// drawn around what is known of them, by dynamic programming.
func (s *searcher) moveLayers() (candidate, bool) {
	k := s.place(len(s.at.spans))
	if len(s.at.s.Layers[k]) < 2 {
		return candidate{}, false
	}
	l := s.layerCosts(k)
	if l == nil {
		return candidate{}, false
	}
	draw := func(deviation float64) float64 { return math.Exp(deviation * s.rng.NormFloat64()) }
	problem := l.Problem(binding.Weights{Weights: draw(0.5), Moves: 0.7 * draw(0.7)}, func() float64 { return draw(0.05) })
	found, err := binding.Search(context.Background(), problem, binding.SearchOptions{NoBranch: true, MaxTable: 1 << 14})
	if err != nil || found.Choice == nil {
		return candidate{}, false
	}
	p := *s.at.plan
	p.inner = maps.Clone(p.inner)
	if p.inner == nil {
		p.inner = map[model.OpID]schedule.Binding{}
	}
	changed := false
	for _, i := range s.alike(s.at.spans, k, 1, s.rng.IntN(3) > 0) {
		for n, place := range l.places {
			anchor := s.at.cuts[i].ops[place]
			own := l.Bindings[n][found.Choice[n]]
			changed = changed || !own.Equal(p.inner[anchor])
			p.inner[anchor] = own
		}
	}
	return candidate{plan: &p, spans: s.at.spans}, changed
}

// moveSequence lets a layer of a kernel run sooner or later.
func (s *searcher) moveSequence() (candidate, bool) {
	k := s.place(len(s.at.spans))
	layers := s.at.s.Layers[k]
	if len(layers) < 2 || s.at.layers != nil {
		return candidate{}, false
	}
	anchor := layers[s.rng.IntN(len(layers))].Anchor
	p := *s.at.plan
	p.sooner = maps.Clone(p.sooner)
	if p.sooner == nil {
		p.sooner = map[model.OpID]int{}
	}
	by := (p.sooner[anchor] + 1 + s.rng.IntN(3)) % 4
	for _, id := range s.places(k, slices.Index(s.at.cuts[k].ops, anchor)) {
		p.sooner[id] = by
	}
	same := func(a, b schedule.Layer) bool { return a.Anchor == b.Anchor }
	return candidate{plan: &p, spans: s.at.spans}, !slices.EqualFunc(layers, p.layersOf(s.at.s.Graph, s.at.cuts[k].ops), same)
}

// moveAlone lets an operator begin a layer of its kernel, or join one again.
func (s *searcher) moveAlone() (candidate, bool) {
	k := s.place(len(s.at.spans))
	var could []model.OpID
	for _, l := range schedule.Layers(s.at.s.Graph, s.at.cuts[k].ops) {
		could = append(could, l.Ops[1:]...)
	}
	if len(could) == 0 || s.at.layers != nil {
		return candidate{}, false
	}
	id := could[s.rng.IntN(len(could))]
	p := *s.at.plan
	p.alone = maps.Clone(p.alone)
	if p.alone == nil {
		p.alone = map[model.OpID]bool{}
	}
	now := !p.alone[id]
	for _, id := range s.places(k, slices.Index(s.at.cuts[k].ops, id)) {
		p.alone[id] = now
	}
	return candidate{plan: &p, spans: s.at.spans}, true
}

func (s *searcher) moveOrder() (candidate, bool) {
	p := *s.at.plan
	p.own, p.order = nil, orders[s.rng.IntN(len(orders))]
	if p.bindings != nil { // they were made for an order
		p = *p.regroup(p.cuts)
	}
	return candidate{plan: &p, spans: s.at.spans}, true
}

// movePosition lets an instance run sooner or later, as far as what it reads and who reads
// it allow.
func (s *searcher) movePosition() (candidate, bool) {
	made := s.at.s
	from := s.rng.IntN(len(made.Order))
	id := made.Order[from]
	at := make([]int, len(made.Order))
	for i, x := range made.Order {
		at[x] = i
	}
	first, last := 0, len(made.Order)-1
	for _, d := range made.Instances.Instances[id].Deps {
		first = max(first, at[d.From]+1)
	}
	for _, c := range made.Instances.Consumers[id] {
		last = min(last, at[c]-1)
	}
	to := first + s.rng.IntN(last-first+1)
	if to == from {
		return candidate{}, false
	}
	p := *s.at.plan
	p.own = slices.Insert(slices.Delete(slices.Clone(made.Order), from, from+1), to, id)
	return candidate{plan: &p, spans: s.at.spans}, true
}

// generator lists what the kernel generator may do: of each setting all values.
var generator = [][]func(*plan){
	values(func(p *plan, x int64) { p.lower.WeightTiles = x }, 0, 2, 3, 4, 6),
	values(func(p *plan, x int64) { p.lower.LoadTiles = x }, 0, 2, 4, 8),
	values(func(p *plan, x bool) { p.apart = x }, false, true),
	values(func(p *plan, x bool) { p.over = x }, false, true),
	values(func(p *plan, x bool) { p.lower.WeightsFirst = x }, false, true),
	values(func(p *plan, x bool) { p.lower.StorePieces = x }, false, true),
	values(func(p *plan, x bool) { p.lower.KeepWeights = x }, false, true),
	values(func(p *plan, x int) { p.lower.KeepQuarters = x }, 1, 2, 3, 4),
	values(func(p *plan, x int64) { p.lower.Pieces = x }, 4, 6, 8, 12, 16, 24, 32),
	values(func(p *plan, x bool) { p.lower.BeforeFirst = x }, false, true),
	values(func(p *plan, x bool) { p.lower.CrossLayer = x }, false, true),
	values(func(p *plan, x bool) { p.lower.Prefetch = x }, false, true),
	values(func(p *plan, x graphturbo.SpillRule) { p.rule = x }, graphturbo.LongestLifetime, graphturbo.LargestFirst),
}

func values[T any](set func(*plan, T), list ...T) (of []func(*plan)) {
	for _, x := range list {
		of = append(of, func(p *plan) { set(p, x) })
	}
	return of
}

func (s *searcher) moveGenerator() (candidate, bool) {
	list := generator[s.rng.IntN(len(generator))]
	return s.with(s.at, list[s.rng.IntN(len(list))])
}

// with is a plan with another setting; false: it has it.
func (s *searcher) with(c candidate, set func(*plan)) (candidate, bool) {
	p := *c.plan
	set(&p)
	return candidate{plan: &p, spans: c.spans, move: "generator"}, p.rule != c.rule || p.apart != c.apart || p.over != c.over || p.lower != c.lower
}

// settings tries each of the generator's settings by itself, and then those that gain something
// together, the best first.
func (s *searcher) settings(ctx context.Context) error {
	base := s.best
	type gain struct {
		setting int
		set     func(*plan)
		score   float64
	}
	var gains []gain
	var list []candidate
	for k, values := range generator {
		for _, set := range values {
			if c, ok := s.with(base, set); ok {
				list, gains = append(list, c), append(gains, gain{setting: k, set: set})
			}
		}
	}
	if err := s.simulate(ctx, list, s.opt.Objective.longest(base.score, s.w.spec)); err != nil {
		return err
	}
	for i, c := range list {
		if _, err := s.consider(ctx, c); err != nil {
			return err
		}
		gains[i].score = c.score
	}
	slices.SortStableFunc(gains, func(a, b gain) int { return cmp.Compare(a.score, b.score) })
	done := map[int]bool{gains[0].setting: true}
	for _, g := range gains[1:] {
		if g.score >= base.score || done[g.setting] {
			continue
		}
		done[g.setting] = true
		c, _ := s.with(s.best, g.set)
		one := []candidate{c}
		if err := s.simulate(ctx, one, 0); err != nil {
			return err
		}
		if _, err := s.consider(ctx, one[0]); err != nil {
			return err
		}
	}
	return nil
}
