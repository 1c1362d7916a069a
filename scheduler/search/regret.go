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

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A decision of which [Regrets] says what the greedy choice loses. Its rows are decided by strategies of the table, and
// its moves change it at one place, or at all that are alike.
type decision struct {
	name   string
	rows   []string
	moves  []string // of groups; those of the rows come on top
	all    bool     // its alternatives are all that there are
	kernel bool     // it is a part of the kernel generator's settings
}

var decisions = []decision{
	{name: "groups", rows: []string{"group"}, moves: []string{"merge", "cut", "shift", "divide", "groups", "split"}},
	{name: "factors", rows: []string{"split"}, moves: []string{"split", "factor"}},
	{name: "order", rows: []string{"layers", "order"}},
	{name: "bind", rows: []string{"bind"}},
	{name: "placement", rows: []string{"outputs", "spill", "address"}},
	{name: "issue", rows: []string{"issue"}, kernel: true},
	{name: "prefetch", rows: []string{"prefetch"}, kernel: true, all: true},
	{name: "weights", rows: []string{"weights"}, kernel: true, all: true},
	{name: "tiles", rows: []string{"nest"}},
}

// allDecisions adds the other rows that have several strategies, each by itself.
func allDecisions() []decision {
	list := slices.Clone(decisions)
	for _, st := range scheduler.Choices() {
		if st.Name != "rewrite" && // later decisions are of its graph
			!slices.ContainsFunc(decisions, func(d decision) bool { return slices.Contains(d.rows, st.Name) }) {
			list = append(list, decision{name: st.Name, rows: []string{st.Name}})
		}
	}
	return list
}

// RegretDecisions lists the decisions that [Regrets] knows.
func RegretDecisions() (names []string) {
	for _, d := range allDecisions() {
		names = append(names, d.name)
	}
	return names
}

// A Choice compares the greedy choice of a decision with the best one known, with all else equal.
type Choice struct {
	GreedySeconds float64 `json:"greedy_s"` // 0: that can't be had
	BestSeconds   float64 `json:"best_s"`
	By            string  `json:"by"` // what makes the best choice
	// Proven: no choice is faster. All that can be had were tried, or the best meets the bound on all schedules.
	Proven bool `json:"proven"`
}

// Loss is by how much the greedy choice takes longer, as a share of the best one's time; +Inf where it can't be had.
func (c Choice) Loss() float64 {
	if c.GreedySeconds == 0 {
		return math.Inf(1)
	}
	return c.GreedySeconds/c.BestSeconds - 1
}

// A Regret is what the greedy choice of one decision loses.
type Regret struct {
	Decision string `json:"decision"`
	AllBest  Choice `json:"all_else_best"`
	Greedy   Choice `json:"all_else_greedy"`
}

// RegretOptions are the settings of [Regrets].
type RegretOptions struct {
	Chunk       int64
	Evaluations int     // of the search for the best schedule
	Moves       int     // schedules that are tried of each decision, beside those of the table's strategies
	Bound       float64 // seconds that no schedule is faster than; 0: not known
}

// Regretted is the answer of [Regrets].
type Regretted struct {
	Recipe        string   `json:"greedy_variant"`
	GreedySeconds float64  `json:"greedy_s"`
	BestSeconds   float64  `json:"best_s"` // 0: not looked for
	Regrets       []Regret `json:"regrets"`
}

// Regrets says what each greedy decision loses, with all others greedy and with all others as in the best schedule that
// is found. The greedy schedule is the fastest of this project's greedy recipes. A greedy choice is that of the
// recipe's strategy on what the other rows have. The best choice known is the fastest of all strategies of the
// decision's rows, of what the other schedule has, and of a local search by the decision's moves. Both schedules are of
// the greedy one's graph: the network's, or what recipes of one kernel make of it.
func Regrets(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64,
	opt RegretOptions) (*Regretted, error) {
	spec, err := scheduler.LevelAuto.Machine(machine)
	if err != nil {
		return nil, err
	}
	options := scheduler.Options{Chunk: opt.Chunk}
	r := &regretter{opt: opt, searchers: map[*scheduler.Decisions]*searcher{}}
	greedy, alike, err := r.greedily(ctx, scheduler.NewProblem(net, machine, spec, batch, options))
	if err != nil {
		return nil, err
	}
	out := &Regretted{Recipe: r.recipe.Name, GreedySeconds: seconds(greedy.ps)}
	found, err := Best(ctx, r.w.Net, machine, batch, BestOptions{Options: options, Recipes: alike,
		Evaluations: opt.Evaluations, Threads: 1})
	if err != nil {
		return nil, err
	}
	best := priced{found.decisions, found.Sim.TotalPs, "the best schedule"}
	out.BestSeconds = seconds(best.ps)
	if o := r.w.Evaluate(ctx, best.Decisions, 0); o.Err != nil || o.Ps != best.ps {
		return nil, cmp.Or(ctx.Err(), o.Err,
			fmt.Errorf("internal error, the best schedule takes %d ps again, not %d", o.Ps, best.ps))
	}
	for _, d := range allDecisions() {
		x := Regret{Decision: d.name}
		if x.Greedy, err = r.choose(ctx, d, greedy, greedy, best); err != nil {
			return nil, err
		}
		if x.AllBest, err = r.choose(ctx, d, best, greedy, best); err != nil {
			return nil, err
		}
		out.Regrets = append(out.Regrets, x)
	}
	return out, nil
}

func seconds(ps int64) float64 { return float64(ps) * 1e-12 }

// regretter compares choices.
type regretter struct {
	w      *scheduler.Problem
	opt    RegretOptions
	recipe scheduler.Recipe // of the greedy schedule
	exact  scheduler.Groups // those of least estimated cost; nil: not looked for
	// searchers are begun, by the decisions that moves change.
	searchers map[*scheduler.Decisions]*searcher
}

// priced decisions have a simulated time.
type priced struct {
	*scheduler.Decisions
	ps int64
	by string
}

// greedily makes the greedy schedule of a network. Recipes of its graph are alike.
func (r *regretter) greedily(ctx context.Context, w *scheduler.Problem) (best priced, alike []scheduler.Recipe,
	err error) {
	var failed error
	r.w = w
	g, err := w.Graph(r.opt.Chunk)
	if err != nil {
		return best, nil, err
	}
	of := map[*model.Graph][]scheduler.Recipe{}
	for _, recipe := range recipes.Tiled()[1:] {
		if recipe.Idle(g, w.Spec) {
			continue
		}
		made, x, err := w.Fastest(ctx, recipe, false, r.opt.Chunk, nil)
		if ctx.Err() != nil {
			return best, nil, ctx.Err()
		}
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		p := made.Decisions(false, false)
		graph, err := w.GraphOf(p)
		if err != nil {
			return best, nil, err
		}
		of[graph] = append(of[graph], recipe)
		if best.Decisions == nil || x.Ps < best.ps {
			best, g, r.recipe = priced{p, x.Ps, "greedy"}, graph, recipe
		}
	}
	if best.Decisions == nil {
		return best, nil, failed
	}
	if o := r.w.Evaluate(ctx, best.Decisions, 0); o.Err != nil || o.Ps != best.ps {
		return best, nil, cmp.Or(ctx.Err(), o.Err,
			fmt.Errorf("internal error, the greedy schedule takes %d ps again, not %d", o.Ps, best.ps))
	}
	return best, of[g], nil
}

// choose compares choices of a decision, all else being as in base.
func (r *regretter) choose(ctx context.Context, d decision, base, greedy, best priced) (c Choice, err error) {
	byGreedy := base.Decisions
	if base.Decisions != greedy.Decisions {
		if byGreedy, err = r.greedyOf(ctx, d, base.Decisions, greedy.Decisions); err != nil {
			return c, err
		}
	}
	known := map[any]bool{}
	top, all := base, d.all // the fastest that breaks no rule
	try := func(p *scheduler.Decisions, by string, limit int64) (int64, error) {
		name := p.Name()
		if known[name] {
			return math.MaxInt64, nil
		}
		known[name] = true
		o := r.w.Evaluate(ctx, p, limit)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if o.Err != nil || o.Ps == math.MaxInt64 {
			return math.MaxInt64, nil
		}
		if o.Ps < top.ps {
			if made, err := r.w.Result(ctx, p); err == nil && made.Sim.TotalPs == o.Ps {
				top = priced{p, o.Ps, by}
			} else {
				all = false
			}
		}
		return o.Ps, ctx.Err()
	}
	ps := greedy.ps
	if base.Decisions != greedy.Decisions {
		if ps, err = try(byGreedy, "greedy", 0); err != nil {
			return c, err
		}
	}
	if ps != math.MaxInt64 {
		c.GreedySeconds = seconds(ps)
	}
	list, err := r.alternatives(ctx, d, base.Decisions, best.Decisions)
	if err != nil {
		return c, err
	}
	for _, x := range list {
		if _, err := try(x.Decisions, x.by, top.ps); err != nil {
			return c, err
		}
	}
	if !d.all && r.opt.Moves > 0 {
		if top, err = r.climb(ctx, d, base, top); err != nil {
			return c, err
		}
	}
	c.BestSeconds, c.By = seconds(top.ps), top.by
	c.Proven = all || r.opt.Bound > 0 && c.BestSeconds <= r.opt.Bound*(1+1e-9)
	return c, nil
}

// greedyOf makes a decision greedily, all else being as in p.
func (r *regretter) greedyOf(ctx context.Context, d decision, p, greedy *scheduler.Decisions) (
	*scheduler.Decisions, error) {
	if d.kernel {
		return p.TakingGenerator(d.name, greedy), nil
	}
	if d.name == "groups" {
		return r.w.Take(ctx, p, greedy, d.rows...)
	}
	var picks []scheduler.Pick
	for _, row := range d.rows {
		if row == "layers" { // the strategy of the groups may have made them
			p = p.Taking(row, greedy)
			continue
		}
		picks = append(picks, scheduler.Pick{Stage: row, Strategy: r.recipe.Pick(row)})
	}
	return r.w.Redecide(ctx, p, picks...)
}

// alternatives are the choices of other strategies and of the best schedule.
func (r *regretter) alternatives(ctx context.Context, d decision, p, best *scheduler.Decisions) (
	list []priced, err error) {
	add := func(x *scheduler.Decisions, by string, err error) {
		if err == nil && (d.name != "factors" || x.SameKernels(p)) {
			list = append(list, priced{Decisions: x, by: by})
		}
	}
	if p != best {
		const by = "the best schedule's"
		switch {
		case d.kernel:
			add(p.TakingGenerator(d.name, best), by, nil)
		case d.name == "factors":
			add(p.Taking("group", best), by, nil)
		default:
			x, err := r.w.Take(ctx, p, best, d.rows...)
			add(x, by, err)
		}
	}
	if d.name == "groups" {
		if r.exact == nil {
			x, err := r.w.Redecide(ctx, p, scheduler.Pick{Stage: "group", Strategy: "alg2"},
				scheduler.Pick{Stage: "split", Strategy: "search"})
			if err != nil {
				return nil, err
			}
			r.exact = x.Groups()
		}
		add(p.With(r.exact), "split=search", nil)
	}
	for _, row := range d.rows {
		st, err := scheduler.LookupStage(row)
		if err != nil {
			return nil, err
		}
		for _, s := range st.Strategies {
			if s.NeedsSolver || s.Trials {
				continue
			}
			ways := [][]scheduler.Pick{{{Stage: row, Strategy: s.Name}}}
			if row == "group" {
				ways[0] = append(ways[0], scheduler.Pick{Stage: "split", Strategy: "none"})
				ways = append(ways, []scheduler.Pick{ways[0][0], {Stage: "split", Strategy: "alg1"}})
			}
			for _, picks := range ways {
				x, err := r.w.Redecide(ctx, p, picks...)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				by := picks[0].String()
				if len(picks) > 1 {
					by += " " + picks[1].String()
				}
				add(x, by, err)
				if err != nil || !d.kernel || !d.all && s.Name != st.Strategies[0].Name {
					continue
				}
				if !d.all { // one setting after the other
					x, by = p, "another setting"
				}
				issue, err := scheduler.LookupStage("issue")
				if err != nil {
					return nil, err
				}
				for _, values := range issue.Settings() {
					for _, set := range values {
						if y := x.TakingGenerator(d.name, set(x)); y != x {
							add(y, by, nil)
						}
					}
				}
			}
		}
	}
	return list, nil
}

// climb makes moves of a decision from the best choice known on, as long as the budget lasts. Moves of groups start
// from the groups of base.
func (r *regretter) climb(ctx context.Context, d decision, base, top priced) (priced, error) {
	s := r.searchers[base.Decisions]
	if s == nil {
		s = &searcher{seeker: &seeker{w: r.w, opt: BestOptions{Threads: 1}, found: &Found{}, starts: map[family]startAt{}},
			start: startAt{Decisions: base.Decisions}}
		if s.begin(ctx) != nil {
			return top, ctx.Err()
		}
		r.searchers[base.Decisions] = s
	}
	x := *s
	x.seeker = &seeker{w: r.w, opt: s.opt, found: &Found{}, starts: s.starts}
	x.rng = rand.New(rand.NewPCG(0, 0))
	site := *s.site
	site.Rand = x.rng
	site.Kind = func(k int) any { return x.kindOf(x.at.spans[k]) }
	site.Same = func(k int) []int { return x.alike(x.at.spans, k, 1, true) }
	x.site, x.known, x.options, x.moves = &site, map[[sha256.Size]byte]bool{}, nil, nil
	names := slices.Clone(d.moves)
	for _, st := range scheduler.Stages() {
		for _, m := range st.Moves() {
			if slices.Contains(d.rows, st.Name) {
				names = append(names, m.Name)
			}
		}
	}
	for _, m := range s.moves {
		if !slices.Contains(names, m.name) {
			continue
		}
		if from := base.Decisions; len(d.moves) > 0 {
			move := m.make
			m.make = func(s *searcher) (candidate, bool) {
				c, ok := move(s)
				if ok { // all else stays as it was, where it can
					c.Decisions = from.With(c.Groups())
				}
				return c, ok && (d.name != "factors" || c.SameKernels(from))
			}
		}
		x.moves = append(x.moves, m)
	}
	x.tried, x.won = make([]float64, len(x.moves)), make([]float64, len(x.moves))
	if len(x.moves) == 0 {
		return top, nil
	}
	if len(d.moves) == 0 {
		list := []candidate{{Decisions: top.Decisions, spans: s.best.spans}}
		if err := x.simulateAll(ctx, list, 0); err != nil {
			return top, err
		}
		x.best = list[0]
	}
	if err := x.polish(ctx, budget{evaluations: r.opt.Moves, began: time.Now()}, x.best); err != nil {
		return top, err
	}
	if x.best.Ps < top.ps {
		top = priced{x.best.Decisions, x.best.Ps, "local search"}
	}
	return top, nil
}
