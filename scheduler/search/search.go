package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/scheduler"
)

// perRound is the number of candidates that are simulated at a time. The answer does not depend on the number of cores.
const perRound = 8

// A candidate is a schedule under consideration.
type candidate struct {
	*scheduler.Decisions
	spans []span
	move  string
	by    int // the move's number
	scheduler.Outcome
}

// searcher improves the schedule of one chunk in two phases. First a [regrouper] proposes groups, then moves change one
// decision after the other, at one place or at all that are alike. Moves are drawn like the options of a bandit: those
// that have improved more often are likelier.
type searcher struct {
	*seeker
	start         startAt
	cost          *cost.Model
	rng           *rand.Rand
	g             *regrouper          // nil: it has not begun
	whole         *searcher           // of which this searches the head; nil: none
	head          *searcher           // see blocks; nil: not begun, or none
	repetition    simplify.Repetition // of the whole
	best          candidate
	at            candidate                  // what moves start from; as good as best, or nearly
	tuned         bool                       // the settings were tried
	each          time.Duration              // that the start took to be made and simulated
	round         time.Duration              // that the last round of proposed groups took
	proposalShare float64                    // of proposed groups: 1, or less where they were no better
	known         map[[sha256.Size]byte]bool // plans, and what is decided by them, by name, that were simulated
	moves         []change                   // of groups, and of the rows
	site          *scheduler.Site            // at, for the rows' moves
	// options are changes of decisions: of each setting all values.
	options [][]func(*scheduler.Decisions) *scheduler.Decisions
	// of each move, how often it was tried and gave something better
	tried, won []float64
}

// simulate lowers and simulates candidates, in parallel; those above the limit are given up. Of fresh ones, it drops
// those whose program was simulated before. Each is judged as soon as its schedule is made: of two with one program in
// a list both are, and of fresh ones the first stays. It returns what stays.
func (s *searcher) simulate(ctx context.Context, list []candidate, limit int64, fresh bool) ([]candidate, error) {
	names := make([][sha256.Size]byte, len(list))
	var workers errgroup.Group
	workers.SetLimit(s.threads())
	for i := range list {
		c := &list[i]
		workers.Go(func() error {
			made, name, err := s.w.Decided(ctx, c.Decisions)
			if c.Err, names[i] = err, name; ctx.Err() != nil || err != nil || fresh && s.known[name] {
				return ctx.Err()
			}
			if s.best.Decisions != nil {
				made.Lower.Most = mostCommands(s.best.Commands)
			}
			c.Outcome = s.w.Judge(ctx, c.Decisions, made, limit)
			c.Score = s.opt.Objective.score(c.Ps, c.Joules)
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := 0
	for i, c := range list {
		if fresh && s.known[names[i]] { // before, or by another of these
			continue
		}
		if names[i] != ([sha256.Size]byte{}) { // its decisions gave a schedule
			s.known[names[i]] = true
		}
		list[n] = c
		n++
	}
	return list[:n], nil
}

// tryAll simulates candidates and takes what is better.
func (s *searcher) tryAll(ctx context.Context, list []candidate, limit int64) error {
	if _, err := s.simulate(ctx, list, limit, false); err != nil {
		return err
	}
	for _, c := range list {
		if _, err := s.consider(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// A candidate's program may have manyTimes the commands of the best one's, or fewCommands. Now and then a choice of
// tiles makes a hundred times as many, which takes as long to lower as a hundred others.
const (
	manyTimes   = 4
	fewCommands = 100_000
)

// mostCommands is the number of commands that a candidate may have if the best one has so many; 0: as many as any
// program. It is below all limits of programs, which memory asks for.
func mostCommands(best int) int {
	if n := max(fewCommands, manyTimes*best); n < lower.MaxRepeated {
		return n
	}
	return 0
}

// minEvalsForSettings is the number of evaluations from which the search tunes the settings first. It tunes them on the
// head of a network that is simulated less often than headSettings by default.
const (
	minEvalsForSettings = 60
	headSettings        = 400
)

// improve goes on in the head, proposes groups and makes moves, in turn, until a budget is spent.
func (s *searcher) improve(ctx context.Context, b budget) error {
	if s.g == nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	s.proposalShare = 1
	before := s.found.Evaluations
	settings := func() error {
		if s.tuned || b.evaluations < minEvalsForSettings || !s.affords(minEvalsForSettings, 1) {
			return nil
		}
		s.tuned = true
		return s.settings(ctx)
	}
	if s.start.Commands < defaultCommands/headSettings {
		if err := settings(); err != nil {
			return err
		}
	}
	blocks := headShare
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
		began, score, groups := s.found.Evaluations, s.best.Score, 0.5
		if found, err := s.blocks(ctx, now.part(blocks)); err != nil {
			return err
		} else if found {
			groups = 0.1
		}
		if blocks /= 2; s.best.Score < score {
			blocks = headShare
		}
		untuned := s.found.Evaluations
		if err := settings(); err != nil {
			return err
		}
		began += s.found.Evaluations - untuned
		other, err := s.proposals(ctx, now.rest(s.found.Evaluations-began), groups)
		if err != nil {
			return err
		}
		from := s.best
		if again%2 == 1 && other.Decisions != nil && other.Score < from.Score*(1+detour) {
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

// cycle is the number of schedules proposals and moves take in turn, and cycles how often they do in a time limit;
// every other time, moves begin with the best other groups, if those are worse by less than detour.
const (
	cycle  = 150
	cycles = 6
	detour = 0.1
)

// begin simulates a start and poses its groups.
func (s *searcher) begin(ctx context.Context) (err error) {
	s.known = map[[sha256.Size]byte]bool{}
	first, began := []candidate{{Decisions: s.start.Decisions, move: "start"}}, time.Now()
	if _, err := s.simulate(ctx, first, 0, false); err != nil {
		return err
	}
	s.each = time.Since(began)
	if err := first[0].Err; err != nil {
		return fmt.Errorf("internal error, a recipe's own schedule can't be had again: %w", err)
	}
	s.best = first[0]
	made := s.best.Schedule
	if s.cost, err = cost.NewWith(made.Spec, s.opt.Cost); err != nil {
		return err
	}
	if s.whole != nil {
		s.prepare(ctx, s.whole.g.net, s.whole.g.namer, s.whole.g.costs)
		return nil
	}
	n, err := split.FromGraph(made.Graph, schedule.ExecutionOrder(made.Graph), made.Grouping, made.Spec,
		split.NetworkOptions{InPlace: s.start.InPlace, Uneven: s.start.Uneven, Cost: s.opt.Cost, MaxGroups: 1})
	if err != nil {
		return err
	}
	s.prepare(ctx, n, n.Namer(), &costs{kinds: map[string]*kind{}})
	s.repetition = s.g.repetition()
	return ctx.Err()
}

// prepare makes what the search learns.
func (s *searcher) prepare(ctx context.Context, n *split.Network, namer *split.Namer, known *costs) {
	s.g = newRegrouper(n, namer, s.start.Decisions, known)
	s.site = &scheduler.Site{Context: ctx, Rand: s.rng, Cost: s.cost,
		Kind: func(k int) any { return s.kindOf(s.at.spans[k]) },
		Same: func(k int) []int { return s.alike(s.at.spans, k, 1, true) }}
	s.best.spans = s.g.spans(s.start.Decisions)
	s.g.learn(s.best.spans, s.best.Took)
	s.g.prices(firstPrices)
	s.moves = slices.Clone(groupMoves)
	moves, options := s.start.Moves()
	for _, m := range moves {
		s.moves = append(s.moves, change{m.Name, m.Weight, func(s *searcher) (candidate, bool) {
			p := m.Make(s.site)
			return candidate{Decisions: p, spans: s.at.spans}, p != nil
		}})
	}
	s.options = options
	s.moves = append(s.moves, change{"generator", 1, (*searcher).moveGenerator})
	s.tried, s.won = make([]float64, len(s.moves)), make([]float64, len(s.moves))
	s.known[s.best.Name()] = true
	s.count()
}

// count counts an evaluation, of a head as a part of one.
func (s *searcher) count() {
	s.simulated += s.part()
	s.found.Evaluations += int(s.simulated)
	s.simulated -= math.Floor(s.simulated)
}

// fresh reports whether decisions were not simulated before, and notes them as simulated.
func (s *searcher) fresh(p *scheduler.Decisions) bool {
	name := p.Name()
	if s.known[name] {
		return false
	}
	s.known[name] = true
	return true
}

// part is the share of the network that is searched.
func (s *searcher) part() float64 {
	if s.whole == nil {
		return 1
	}
	return float64(len(s.g.seq)) / float64(len(s.whole.g.seq))
}

// afresh is a plan with other groups, whose results take the place of operands where they can:
// more fits the L1, and larger groups with it.
func (s *searcher) afresh(p *scheduler.Decisions, spans []span) *scheduler.Decisions {
	return p.Regrouped(s.g.cuts(spans))
}

// leastProposalShare is the least share of its part of a budget that proposals of groups get.
const leastProposalShare = 1.0 / 16

// affords reports whether the time that is left is so many times as much as it takes to simulate so many schedules like
// the start.
func (s *searcher) affords(schedules, times int) bool {
	rounds := (schedules + s.threads() - 1) / s.threads()
	return s.until.IsZero() || time.Until(s.until) >= time.Duration(times*rounds)*s.each
}

// proposals is regroup for a share of a budget: half as much each time that it has found nothing better, and then none
// if a round takes longer. It does nothing where a round would take much of the time of the whole search.
func (s *searcher) proposals(ctx context.Context, b budget, share float64) (other candidate, err error) {
	before := s.best.Score
	now := b.part(share * s.proposalShare)
	if !now.end.IsZero() && s.proposalShare < 1 && now.end.Sub(now.began) < s.round || !s.affords(perRound, 8) {
		return other, nil
	}
	other, err = s.regroup(ctx, now)
	if s.best.Score < before {
		s.proposalShare = 1
	} else {
		s.proposalShare = max(s.proposalShare/2, leastProposalShare)
	}
	return other, err
}

// regroup simulates proposed groups; the best of these is returned, that of the search aside.
func (s *searcher) regroup(ctx context.Context, b budget) (other candidate, err error) {
	for done := 0; b.spent(done) < 1; {
		boldness, began := 1-b.spent(done), time.Now()
		s.g.prices(roundPrices)
		var list []candidate
		for try := 0; len(list) < perRound && try < 4*perRound; try++ {
			spans := s.g.propose(0, s.rng, boldness)
			if spans == nil {
				continue
			}
			p, orders := s.afresh(s.best.Decisions, spans), s.best.Orders()
			order := orders[0]
			if s.rng.IntN(3) == 0 {
				order = orders[s.rng.IntN(len(orders))]
			}
			p = p.Ordered(order)
			if s.fresh(p) {
				list = append(list, candidate{Decisions: p, spans: spans, move: "groups"})
			}
		}
		if len(list) == 0 {
			return other, nil
		}
		if list, err = s.simulate(ctx, list, 0, true); err != nil {
			return other, err
		}
		for _, c := range list {
			better, err := s.consider(ctx, c)
			if err != nil {
				return other, err
			}
			if c.Err == nil && !better && (other.Decisions == nil || c.Score < other.Score) {
				other = c
			}
		}
		done += max(1, len(list))
		s.round = time.Since(began)
	}
	return other, nil
}

// consider learns from a simulated candidate, and takes it if it is better and breaks no rule.
func (s *searcher) consider(ctx context.Context, c candidate) (better bool, err error) {
	s.count()
	if c.Err != nil {
		s.g.avoid(c.spans)
		return false, nil
	}
	if c.Took != nil {
		s.g.learn(c.spans, c.Took)
	}
	if c.Score >= s.best.Score {
		return false, nil
	}
	if s.whole != nil {
		s.best = c
		return true, nil
	}
	r, err := s.w.Result(ctx, c.Decisions)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		s.g.avoid(c.spans)
		return false, nil
	case r.Sim.TotalPs != c.Ps:
		return false, fmt.Errorf("internal error, a schedule takes %d ps, its outline %d", r.Sim.TotalPs, c.Ps)
	}
	s.offer(r, c.Decisions, c.move)
	s.best = c
	return true, nil
}

// slack is the share by which a move's time may exceed the best before its simulation is given up, so that what its
// groups take is known of those that come near.
const slack = 0.05

// polish climbs from a candidate on: of each round of moves it takes the best, if that is not worse.
func (s *searcher) polish(ctx context.Context, b budget, top candidate) error {
	s.moveFrom(top)
	idle := 0
	for done := 0; b.spent(done) < 1; {
		var list []candidate
		for try := 0; len(list) < perRound && try < 20*perRound; try++ {
			m := s.pick()
			if c, ok := s.moves[m].make(s); s.site.Err != nil {
				return s.site.Err
			} else if ok && s.fresh(c.Decisions) {
				c.move, c.by = s.moves[m].name, m
				list = append(list, c)
				s.tried[m]++
			}
		}
		if len(list) == 0 {
			return nil
		}
		var err error
		if list, err = s.simulate(ctx, list, s.opt.Objective.longest(top.Score*(1+slack), s.w.Spec), true); err != nil {
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
			if c.Err == nil && c.Score < top.Score && c.Score >= s.best.Score { // else it breaks a rule
				top, idle = c, 0
			}
			if c.Err == nil && (next < 0 || c.Score < list[next].Score) {
				next = i
			}
		}
		idle++
		switch {
		case next >= 0 && (list[next].Score < s.at.Score || list[next].Score == top.Score):
			s.moveFrom(list[next])
		case idle%16 == 0:
			s.moveFrom(top)
		}
	}
	return nil
}

// moveFrom lets moves start from a candidate.
func (s *searcher) moveFrom(c candidate) {
	s.at = c
	s.site.Decisions, s.site.Schedule, s.site.Took = c.Decisions, c.Schedule, c.Took
}

// pick draws a move, those that have won more often than others.
func (s *searcher) pick() int {
	weights, sum := make([]float64, len(s.moves)), 0.0
	for m := range s.moves {
		weights[m] = s.moves[m].weight * (s.won[m] + 1) / (s.tried[m] + 20)
		sum += weights[m]
	}
	x := s.rng.Float64() * sum
	for m, w := range weights {
		if x -= w; x < 0 {
			return m
		}
	}
	return len(s.moves) - 1
}

// A change is a move with what the search knows of groups; false: the schedule at hand can't be changed so.
type change struct {
	name   string
	weight float64
	make   func(*searcher) (candidate, bool)
}

var groupMoves = []change{
	{"split", 2, (*searcher).moveSplit},
	{"merge", 2, (*searcher).moveMerge},
	{"cut", 2, (*searcher).moveCut},
	{"shift", 2, (*searcher).moveShift},
	{"factor", 2, (*searcher).moveFactor},
	{"groups", 2, (*searcher).moveGroups},
	{"copy", 2, (*searcher).moveCopy},
}

// kindOf is equal for spans that are alike.
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

// alike lists where in the spans the m from k on stand again, that place among them, or that place alone.
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
	c := candidate{Decisions: s.afresh(s.at.Decisions, made), spans: made}
	if s.rng.IntN(2) == 0 {
		c.Decisions = c.Inheriting(s.at.Schedule, s.at.Decisions) // what new groups have at hand in others
	}
	return c, true
}

// draw is a way to split a group, another than not: cheap ones are likelier.
func (s *searcher) draw(g *group, not schedule.SplitInfo) schedule.SplitInfo {
	mean, deviation := s.g.scale()
	best, least := g.ways[0].Split, math.Inf(1)
	for _, a := range g.ways {
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

func (s *searcher) moveSplit() (candidate, bool) {
	k := s.site.Place(len(s.at.spans))
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
	k := s.site.Place(len(s.at.spans) - 1)
	return s.rewrite(k, 2, s.at.spans[k+1].hi-s.at.spans[k].lo)
}

func (s *searcher) moveCut() (candidate, bool) {
	k := s.site.Place(len(s.at.spans))
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
	k := s.site.Place(len(s.at.spans) - 1)
	a, b := s.at.spans[k], s.at.spans[k+1]
	end := a.hi - a.lo + []int{-3, -2, -1, 1, 2, 3}[s.rng.IntN(6)]
	if end <= 0 || a.lo+end >= b.hi {
		return candidate{}, false
	}
	return s.rewrite(k, 2, end, b.hi-a.lo)
}

// splitLike is a way to split a group along a dimension of the kind and in the factor of
// another's, as far as it has one.
func (s *searcher) splitLike(g *group, like schedule.SplitInfo) (schedule.SplitInfo, bool) {
	ops := s.g.net.Operators(g.atoms)
	_, outputs := schedule.Boundary(s.best.Schedule.Graph, ops)
	out := s.best.Schedule.Graph.Tensor(outputs[0])
	if like.Factor <= 1 || like.Dim < 0 || like.Dim >= len(out.Shape) ||
		model.Pieces(out.Shape[like.Dim], like.Factor) != like.Factor {
		return schedule.SplitInfo{}, false
	}
	for _, a := range g.ways {
		if a.Split.Dim == like.Dim && a.Split.Factor > 1 {
			info := a.Split
			info.Factor = like.Factor
			return info, true
		}
	}
	tr := schedule.Track(s.best.Schedule.Graph, ops, outputs, like.Dim)
	like.Ops, like.Depth = len(ops)-tr.Unmatched, slices.Index(out.Layout, like.Dim)
	return like, tr.Splittable && like.Depth >= 0
}

// moveFactor splits a group more or less often along the same dimension.
func (s *searcher) moveFactor() (candidate, bool) {
	k := s.site.Place(len(s.at.spans))
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
	spans := s.g.propose(0, s.rng, 0.5*s.rng.Float64())
	if spans == nil {
		return candidate{}, false
	}
	return candidate{Decisions: s.afresh(s.at.Decisions, spans), spans: spans}, true
}

// moveCopy makes the decisions of one of the blocks that repeat for all of them, as far as these have the same groups.
func (s *searcher) moveCopy() (candidate, bool) {
	r := s.repetition
	if s.whole != nil {
		r = s.whole.repetition
	}
	end := min(r.End, len(s.g.seq))
	if r.Times == 0 || end-r.From < 2*r.Period {
		return candidate{}, false
	}
	block := r.From + r.Period*s.rng.IntN((end-r.From)/r.Period)
	var pairs [][2]model.OpID
	for i := r.From; i < end; i++ {
		from := s.g.net.Operators(s.g.seq[block+(i-r.From)%r.Period:][:1])
		all := s.g.net.Operators(s.g.seq[i : i+1])
		if len(all) != len(from) {
			return candidate{}, false
		}
		for n, to := range all {
			pairs = append(pairs, [2]model.OpID{from[n], to})
		}
	}
	p := s.at.Copied(s.at.Schedule.Graph, pairs)
	return candidate{Decisions: p, spans: s.at.spans}, p != s.at.Decisions
}

func (s *searcher) moveGenerator() (candidate, bool) {
	list := s.options[s.rng.IntN(len(s.options))]
	return s.set(s.at, list[s.rng.IntN(len(list))])
}

// set is a candidate with another setting; false: it has it.
func (s *searcher) set(c candidate, change func(*scheduler.Decisions) *scheduler.Decisions) (candidate, bool) {
	p := change(c.Decisions)
	return candidate{Decisions: p, spans: c.spans, move: "generator"}, p != c.Decisions
}

// settings tries each of the generator's settings by itself, and then those that gain something
// together, the best first.
func (s *searcher) settings(ctx context.Context) error {
	base := s.best
	type gain struct {
		setting int
		set     func(*scheduler.Decisions) *scheduler.Decisions
		score   float64
	}
	var gains []gain
	var list []candidate
	for k, values := range s.options {
		for _, set := range values {
			if c, ok := s.set(base, set); ok {
				list, gains = append(list, c), append(gains, gain{setting: k, set: set})
			}
		}
	}
	if err := s.tryAll(ctx, list, s.opt.Objective.longest(base.Score, s.w.Spec)); err != nil {
		return err
	}
	for i, c := range list {
		gains[i].score = c.Score
	}
	slices.SortStableFunc(gains, func(a, b gain) int { return cmp.Compare(a.score, b.score) })
	done := map[int]bool{gains[0].setting: true}
	for _, g := range gains[1:] {
		if g.score >= base.Score || done[g.setting] {
			continue
		}
		done[g.setting] = true
		c, _ := s.set(s.best, g.set)
		if err := s.tryAll(ctx, []candidate{c}, 0); err != nil {
			return err
		}
	}
	return nil
}
