package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Recipe names a strategy for every stage.
type Recipe struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Picks are the strategies, in the order of the stages; a stage that is not named
	// has its first one. Change them with [Recipe.With] and [Recipe.Replace].
	Picks []Pick `json:"picks"`
	// Fallback names recipes that [Run] tries as well; the fastest is the result.
	Fallback []string `json:"fallback,omitempty"`
	// Scouts are those of them that differ most, which are tried before the others. With some, all that makes a schedule
	// faster is tried: element-wise operators in place or not, chunks that do not divide a share, fewer cores or clusters.
	Scouts []string `json:"-"`
	// Evaluations is the number of schedules that a search simulates to improve what the picks give; 0: that is the
	// answer.
	Evaluations int `json:"-"`
	// Ours marks this project's own greedy recipes; see [Recipe.OwnGreedy].
	Ours bool `json:"-"`

	own    map[string]Strategy // the caller's, by stage
	stages []Stage             // with the caller's; nil: those of the table
}

// A Pick is a strategy for a stage, by their names.
type Pick struct {
	Stage    string `json:"stage"`
	Strategy string `json:"strategy"`
}

func (p Pick) String() string { return p.Stage + "=" + p.Strategy }

// Text writes the picks as Parse reads them: "group=alg2 order=dfs".
func (r Recipe) Text() string {
	words := make([]string, len(r.Picks))
	for i, p := range r.Picks {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

// Parse reads a recipe's picks: a strategy for some stages, as in "group=alg2 order=dfs".
func Parse(name, description, picks string) Recipe {
	r := Recipe{Name: name, Description: description}
	for _, word := range strings.Fields(picks) {
		stage, strategy, _ := strings.Cut(word, "=")
		r.Picks = append(r.Picks, Pick{stage, strategy})
	}
	return r
}

// A Table is what the engine is handed: the variants that are known by name.
type Table struct {
	Recipes []Recipe
	Greedy  string // the recipe whose decisions stand in for exact and searched ones
	// Strategies are those of the rows of [Stages] that do not have their own, the first by default.
	Strategies map[string][]Strategy
	// Orders are the names of those of row order that a search tries.
	Orders []string
	// Moves are those that belong to methods; a row has their names.
	Moves []Move
	// Join finds what readers copy and redistribute, Place makes the memory plan, and Apart gives what lies in the L1s
	// other addresses, of a schedule that has all that decisions before give.
	Join  func(s *schedule.Schedule) []schedule.Join
	Place func(ctx context.Context, s *schedule.Schedule, how Placing) error
	Apart func(s *schedule.Schedule)
}

// ruleFor is the greedy strategy for a stage, which validate has found.
func ruleFor(stage string) Strategy {
	rules, _ := lookup(table.Greedy)
	return rules.Strategy(stage)
}

var table Table

// SetTable hands the engine its table. Package recipes calls it.
func SetTable(t Table) {
	table = t
	tableOnce.once = sync.Once{}
}

// lookup finds a recipe of the table by name.
func lookup(name string) (Recipe, error) {
	names := make([]string, len(table.Recipes))
	for i, r := range table.Recipes {
		if r.Name == name {
			return r, nil
		}
		names[i] = r.Name
	}
	if len(names) == 0 {
		return Recipe{}, fmt.Errorf("variant %q: no variants are known, expected package recipes in the program", name)
	}
	return Recipe{}, fmt.Errorf("unknown variant %q%s", name, suggest.Expected(name, names))
}

// Pick returns the name of the strategy for a stage, "" if there is no such stage.
func (r Recipe) Pick(stage string) string { return r.Strategy(stage).Name }

// Has reports whether the recipe already has the strategy of a pick, by name or alias.
func (r Recipe) Has(p Pick) bool {
	st, _ := r.stage(p.Stage) // where there is none, it has no strategies
	s, err := st.Lookup(p.Strategy)
	return err == nil && s.Name == r.choice(st).Name
}

// Having returns the recipe without those fallbacks that lack one of the picks, so that its result has them all.
func (r Recipe) Having(picks []Pick) Recipe {
	r.Fallback = slices.DeleteFunc(slices.Clone(r.Fallback), func(name string) bool {
		other, err := lookup(name)
		return err != nil || slices.ContainsFunc(picks, func(p Pick) bool { return !other.Has(p) })
	})
	return r
}

// Strategies lists the strategy of every stage that has a choice.
func (r Recipe) Strategies() []Pick {
	var list []Pick
	for _, st := range choices(r.table()) {
		list = append(list, Pick{st.Name, r.choice(st).Name})
	}
	return list
}

// Exact reports whether any of its strategies is exact.
func (r Recipe) Exact() bool {
	return slices.ContainsFunc(r.table(), func(st Stage) bool { return r.choice(st).Exact })
}

// With returns the recipe with a strategy of the caller's own for a stage; [Recipe.Replace] takes those of the tables.
// As with that, the recipe no longer falls back to others. A stage that does not exist is an error of every function
// that gets the recipe, and so is a strategy that panics.
func (r Recipe) With(stage string, s Strategy) Recipe {
	r.Picks, r.Fallback, r.Evaluations = slices.Clone(r.Picks), nil, 0
	r.set(Pick{stage, s.Name})
	own := map[string]Strategy{}
	maps.Copy(own, r.own)
	own[stage] = s.unpanicking()
	r.own = own
	return r
}

// WithStage returns the recipe with a stage of the caller's own in front of another one, or at the end if that is "".
// Best searches the decision as it does those of the table, if it stands behind "split". A stage that does not exist is
// an error of every function that gets the recipe.
func (r Recipe) WithStage(before string, st Stage) Recipe {
	list := r.table()
	at := slices.IndexFunc(list, func(x Stage) bool { return x.Name == before })
	if at < 0 {
		at = len(list)
		if before != "" {
			r.Picks = append(slices.Clone(r.Picks), Pick{before, ""}) // validate refuses it
		}
	}
	st.own, st.Strategies = true, slices.Clone(st.Strategies)
	for i, s := range st.Strategies {
		st.Strategies[i] = s.unpanicking()
	}
	st.moves = slices.Clone(st.moves)
	for i, m := range st.moves {
		st.moves[i].Make = func(a *Site) *Decisions {
			defer func() { a.Err = panicked("move "+m.Name, recover()) }()
			return m.Make(a)
		}
	}
	r.stages, r.Fallback, r.Evaluations = slices.Insert(slices.Clone(list), at, st), nil, 0
	return r
}

// unpanicking is the strategy with an error in the place of a panic, which says where that was.
func (s Strategy) unpanicking() Strategy {
	if decide := s.Decide; decide != nil {
		s.Decide = func(ctx context.Context, d *Draft) (err error) {
			defer func() { err = cmp.Or(panicked("strategy "+s.Name, recover()), err) }()
			return decide(ctx, d)
		}
	}
	return s
}

// panicked is the error of what was recovered in a deferred call; nil: nothing was.
func panicked(who string, p any) error {
	if p == nil {
		return nil
	}
	at := make([]uintptr, 16)
	frames := runtime.CallersFrames(at[:runtime.Callers(3, at)])
	f, more := frames.Next()
	for more && strings.HasPrefix(f.Function, "runtime.") {
		f, more = frames.Next()
	}
	return fmt.Errorf("%s panicked at %s:%d: %v", who, f.File, f.Line, p)
}

// table lists the stages of the recipe, for those that change nothing in it.
func (r Recipe) table() []Stage {
	if r.stages == nil {
		return stageTable()
	}
	return r.stages
}

// stage finds one of the recipe's stages by name.
func (r Recipe) stage(name string) (Stage, error) { return lookupStage(r.table(), name) }

// set puts a pick into its place. Copies of the recipe keep theirs: searches set picks of one recipe side by side.
func (r *Recipe) set(p Pick) {
	r.Picks = slices.Clone(r.Picks)
	if i := slices.IndexFunc(r.Picks, func(q Pick) bool { return q.Stage == p.Stage }); i >= 0 {
		r.Picks[i] = p
		return
	}
	r.Picks = append(r.Picks, p)
}

// greedy is the recipe with the last one of the table's decisions where its own are exact
// or searched; slow says whether there are any.
func (r Recipe) greedy() (g Recipe, slow bool) {
	return r.replaced(func(s Strategy) bool { return s.Exact || s.Trials }), r.slow()
}

// slow reports whether a decision is exact or searched.
func (r Recipe) slow() bool {
	return slices.ContainsFunc(r.table(), func(st Stage) bool { return r.choice(st).Exact || r.choice(st).Trials })
}

// replaced is the recipe with some strategies replaced by those of the table's greedy one, which validate has found.
func (r Recipe) replaced(which func(Strategy) bool) Recipe {
	g, rules := r, Recipe{}
	g.Picks, g.own = slices.Clone(r.Picks), maps.Clone(r.own)
	for _, st := range r.table() {
		if which(r.choice(st)) {
			if rules.Name == "" {
				rules, _ = lookup(table.Greedy)
			}
			delete(g.own, st.Name)
			g.set(Pick{st.Name, rules.choice(st).Name})
		}
	}
	return g
}

// Strategy is the strategy for the stage of a name.
func (r Recipe) Strategy(stage string) Strategy {
	st, err := r.stage(stage)
	if err != nil {
		return Strategy{} // the table has those that this package asks for
	}
	return r.choice(st)
}

// choice is the strategy for a stage: the caller's own, or the table's, or one without
// Decide if there is none of that name.
func (r Recipe) choice(st Stage) Strategy {
	if s, ok := r.own[st.Name]; ok {
		return s
	}
	for _, p := range r.Picks {
		if p.Stage == st.Name {
			s, err := st.Lookup(p.Strategy)
			if err != nil {
				return Strategy{Name: p.Strategy}
			}
			return s
		}
	}
	if len(st.Strategies) == 0 {
		return Strategy{}
	}
	return st.Strategies[0]
}

// ErrNoSolver says that a strategy needs Options.Solver, which is not set.
var ErrNoSolver = errors.New("needs an integer-programming solver")

// Usable reports what makes a recipe unusable, before any work: a stage or strategy
// that does not exist, a missing solver, strategies that do not go together.
func (r Recipe) Usable(opt Options) error {
	if r.slow() {
		if _, err := lookup(table.Greedy); err != nil {
			return fmt.Errorf("variant %s: greedy rules stand in for its exact and searched decisions: %w", r.Name, err)
		}
	}
	seen := map[string]bool{}
	for _, st := range r.stages {
		if seen[st.Name] {
			return fmt.Errorf("variant %s: there are two stages %q", r.Name, st.Name)
		}
		seen[st.Name] = true
	}
	for _, p := range r.Picks {
		st, err := r.stage(p.Stage)
		if err != nil {
			return fmt.Errorf("variant %s: %w", r.Name, err)
		}
		if own, ok := r.own[p.Stage]; ok {
			if own.Decide == nil {
				return fmt.Errorf("variant %s: %s %s has no function Decide", r.Name, p.Stage, own.Name)
			}
		} else if _, err := st.Lookup(p.Strategy); err != nil {
			return fmt.Errorf("variant %s: %w", r.Name, err)
		}
	}
	for _, st := range r.table() {
		s := r.choice(st)
		if s.Decide == nil {
			return fmt.Errorf("variant %s: stage %q has no strategy %q that decides", r.Name, st.Name, s.Name)
		}
		if s.NeedsSolver && opt.Solver == nil {
			return fmt.Errorf("%s %s %w", st.Name, s.Name, ErrNoSolver)
		}
		needs := map[string][]string{}
		for _, p := range s.Needs {
			needs[p.Stage] = append(needs[p.Stage], p.Strategy)
		}
		for _, other := range r.table() {
			_, own := r.own[other.Name] // may be what is needed
			if want := needs[other.Name]; want != nil && !own && !slices.Contains(want, r.choice(other).Name) {
				return fmt.Errorf("%s is %s, which does not go with %s %s: expected %s %s",
					st.Name, s.Name, other.Name, r.choice(other).Name, other.Name, strings.Join(want, " or "))
			}
		}
	}
	return nil
}

// OnKinds reports a strategy that does not support several kinds of core, on a machine that has them.
func (r Recipe) OnKinds(spec *hardware.Spec) error {
	bind, err := r.stage("bind")
	if err != nil || !spec.Mixed() {
		return nil
	}
	if s := r.choice(bind); s.Exact || s.NeedsSolver || r.Pick("nest") == "ansor" {
		return fmt.Errorf("variant %s: %s has cores of several kinds, expected one for exact bindings and tuned nests",
			r.Name, spec.Name)
	}
	return nil
}

// OwnGreedy reports whether the recipe is, pick by pick, one of this project's greedy recipes.
func (r Recipe) OwnGreedy() bool {
	known, err := lookup(r.Name)
	return err == nil && known.Ours && r.stages == nil && r.own == nil && known.Text() == r.Text()
}

// Searchable reports a stage of the caller's own that a search can't change: one in front of groups and splits, which
// the search changes itself.
func (r Recipe) Searchable() error {
	for _, st := range r.stages {
		if st.Name == "split" {
			return nil
		}
		if st.own {
			return fmt.Errorf(`variant %s: stage %q stands in front of "split", expected behind: `+
				"a search changes groups and splits itself", r.Name, st.Name)
		}
	}
	return nil
}

// Picking is the recipe with another strategy of the table for a stage, under the same name.
func (r Recipe) Picking(p Pick) Recipe {
	r.set(p)
	return r
}

// Own is the recipe's strategy of the caller's own for a stage, if it has one.
func (r Recipe) Own(stage string) (s Strategy, own bool) {
	s, own = r.own[stage]
	return s, own
}

// Replace returns a recipe with some of its decisions made by other strategies. Its name says which:
// "cross-layer+order=search". A combination that has no meaning is an error.
func (r Recipe) Replace(opt Options, picks ...Pick) (Recipe, error) {
	asked := map[string]string{} // by stage
	for _, p := range picks {
		st, err := r.stage(p.Stage)
		if err != nil {
			return Recipe{}, err
		}
		s, err := st.Lookup(p.Strategy)
		if err != nil {
			return Recipe{}, err
		}
		if old, twice := asked[st.Name]; twice && old != s.Name {
			return Recipe{}, fmt.Errorf("%s is both %s and %s", st.Name, old, s.Name)
		}
		asked[st.Name] = s.Name
	}
	made := r
	made.Picks, made.own = slices.Clone(r.Picks), nil
	for stage, s := range r.own {
		if _, gone := asked[stage]; !gone {
			made = made.With(stage, s)
		}
	}
	made.Fallback = r.Fallback
	name := r.Name
	for _, st := range r.table() {
		strategy, ok := asked[st.Name]
		if !ok {
			continue
		}
		s, _ := st.Lookup(strategy)
		if made.choice(st).Name != s.Name {
			name += "+" + Pick{st.Name, s.Name}.String()
			made.set(Pick{st.Name, s.Name})
		}
		for _, p := range s.Sets {
			if _, other := asked[p.Stage]; !other {
				made.set(p)
			}
		}
	}
	if name != r.Name && r.Evaluations > 0 {
		return Recipe{}, fmt.Errorf("variant %s makes all decisions together, expected none by another strategy", r.Name)
	}
	if made.Name = name; name != r.Name {
		made.Description = r.Name + " with " + strings.ReplaceAll(strings.TrimPrefix(name, r.Name+"+"), "+", ", ")
		made.Fallback = nil
	}
	return made, made.Usable(opt)
}
