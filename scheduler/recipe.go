package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/suggest"
)

// A Recipe names a strategy for every stage.
type Recipe struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Picks are the strategies, in the order of the stages; a stage that is not named
	// has its first one. Change them with [Recipe.With] and [Replace].
	Picks []Pick `json:"picks"`
	// Fallback names recipes that [Run] tries as well; the fastest is the result.
	Fallback []string `json:"fallback,omitempty"`

	own    map[string]Strategy // the caller's, by stage
	stages []Stage             // with the caller's; nil: those of the table
	// evaluations is the number of schedules [Best] simulates to improve what the picks give; 0: that
	// is the answer.
	evaluations int
}

// A Pick is a strategy for a stage, by their names.
type Pick struct {
	Stage    string `json:"stage"`
	Strategy string `json:"strategy"`
}

func (p Pick) String() string { return p.Stage + "=" + p.Strategy }

// Text writes the picks as parse reads them: "group=alg2 order=dfs".
func (r Recipe) Text() string {
	words := make([]string, len(r.Picks))
	for i, p := range r.Picks {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

// parse reads a recipe's picks.
func parse(name, description, picks string) Recipe {
	r := Recipe{Name: name, Description: description}
	for _, word := range strings.Fields(picks) {
		stage, strategy, _ := strings.Cut(word, "=")
		r.Picks = append(r.Picks, Pick{stage, strategy})
	}
	return r
}

// Table lists the recipes in the order of the paper's Fig. 15: each row changes one
// idea of the row before.
func Table() []Recipe {
	return []Recipe{
		parse("tvm", "a kernel per layer, results through the DDR, the batch looped over in chunks", ""),
		parse("llb", "variant 1: sub-graphs of Algorithm 2, split alike, outputs in the LLB",
			"group=alg2 split=one-factor outputs=llb order=chunk-by-chunk issue=exposed weights=keep"),
		parse("l1", "variant 2: outputs in the L1",
			"group=alg2 split=one-factor outputs=l1 order=chunk-by-chunk issue=exposed weights=keep"),
		parse("ordering", "variant 3: each sub-graph its own factor, instances ordered (Algorithms 1, 3, 4)",
			"group=alg2 split=alg1 outputs=l1 order=alg3 bind=alg4 issue=exposed weights=keep"),
		parse("cross-layer", "variant 4: instructions scheduled across layers; all of GraphTurbo",
			"group=alg2 split=alg1 outputs=l1 order=alg3 bind=alg4 issue=cross-layer prefetch=ahead weights=keep"),
	}
}

// Baselines lists the other published systems beside the table's TVM, and other readings
// of that: Table 1 has TVM on a par where "the LLB holds all batches" (§5.1), and TVM's own
// pass fuses by rules of its own.
func Baselines() []Recipe {
	return []Recipe{
		parse("tvm-llb", "tvm with results in the LLB where they fit", "outputs=llb"),
		parse("tvm-fuse", "tvm with the kernels of TVM's pass FuseOps", "group=fuse-ops"),
		parse("astitch", "TVM's kernels; those without a matrix operator stitched, results inside in the L1",
			"group=stitch outputs=l1 bind=block-local"),
		parse("astitch-fuse", "astitch beginning with the kernels of tvm-fuse",
			"group=stitch-ops outputs=l1 bind=block-local"),
	}
}

// Exact lists the recipes that replace greedy decisions of the table's last one by
// exact ones.
func Exact() []Recipe {
	const greedy = "group=alg2 split=alg1 outputs=l1 order=alg3 bind=alg4 issue=cross-layer prefetch=ahead weights=keep"
	row := func(name, description, picks string) Recipe {
		r := parse(name, description, greedy)
		for _, p := range parse("", "", picks).Picks {
			r.set(p)
		}
		return r
	}
	all := row("exact-all", "cross-layer with every decision exact, or the fastest of cross-layer and the other "+
		"exact ones where that is slower",
		"split=search order=search bind=search spill=search")
	all.Fallback = []string{"cross-layer", "exact-split", "exact-order", "exact-bind", "exact-memory"}
	return []Recipe{
		row("exact-split", "cross-layer with the groups and factors of least measured time", "split=search"),
		row("exact-order", "cross-layer with the instance order of least traffic", "order=search"),
		row("exact-bind", "cross-layer with the bindings and scopes of least cost", "bind=search"),
		row("exact-memory", "cross-layer with the spills that move least", "spill=search"),
		row("exact-joint", "cross-layer with order, bindings and scopes of least cost together", "order=joint bind=joint"),
		all,
	}
}

// Searched lists the recipes whose loops inside kernels are searched as Ansor does, which
// takes trials. Searched one by one, kernels may get slower side by side; then the loops are
// those of the rules.
func Searched() []Recipe {
	var list []Recipe
	for _, x := range [][3]string{{"tvm", "ansor", "TVM's kernels with loops searched by Ansor"},
		{"cross-layer", "graphturbo+ansor", "GraphTurbo's kernels with loops searched by Ansor"}} {
		r := Table()[slices.IndexFunc(Table(), func(r Recipe) bool { return r.Name == x[0] })]
		r.Name, r.Description, r.Fallback = x[1], x[2], []string{r.Name}
		r.set(Pick{"nest", "ansor"})
		if r.Pick("bind") == algorithm4.Name {
			r.set(Pick{"bind", insideBinding.Name})
		}
		list = append(list, r)
	}
	return list
}

// Whole is the recipe whose decisions are made together, by the simulator's judgement.
func Whole() Recipe {
	r := Table()[slices.IndexFunc(Table(), func(r Recipe) bool { return r.Name == GreedyRecipe })]
	r.Name, r.Description = "best",
		"cross-layer or tiled improved as a whole, in 400 simulated schedules ('dsasched best' simulates more)"
	r.evaluations = 400
	return r
}

// Default is the name of the recipe of who names none.
const Default = "tiled"

// Tiled lists this project's own greedy recipes, the one that takes the fastest of them first: the whole network as a
// kernel, attention as an operator, and products in tiles at each level of memory.
func Tiled() []Recipe {
	row := func(name, description, picks string) Recipe {
		return parse(name, description, picks+" issue=cross-layer prefetch=at-start weights=keep nest=tiles")
	}
	list := []Recipe{
		row(Default,
			"the fastest of tiled-llb, tiled-l1, tiled-groups, tiled-room, tiled-slices, tiled-moved and tiled-twelfth",
			"group=one split=none outputs=llb-kept bind=even"),
		row("tiled-llb",
			"one kernel, attention as an operator, results in the LLB, products in tiles of rows, columns and reduction",
			"group=one split=none outputs=llb-kept bind=even"),
		row("tiled-l1", "tiled-llb with results in the L1s where they fit",
			"group=one split=none outputs=l1-kept bind=even spill=needed"),
		row("tiled-groups", "tiled-llb with the kernels of cross-layer",
			"group=alg2-apart split=alg1 outputs=l1-kept order=alg3 bind=alg4"),
		row("tiled-room", "tiled-llb with a quarter of the LLB left to transfers",
			"group=one split=none outputs=llb-kept bind=even reserve=quarter"),
		row("tiled-slices",
			"tiled-l1 with feed-forwards in slices, where hidden columns fit neither the L1s nor the LLB; sums in place",
			"group=one-sliced split=none outputs=l1-kept bind=even spill=overwrite"),
	}
	const sliced = "group=one-sliced split=none outputs=l1-kept bind=even "
	list = append(list,
		row("tiled-moved", "tiled-slices where what is moved fastest leaves, and weights pass all of their room in the L1s",
			sliced+"spill=least-moved buffer=pass"),
		row("tiled-twelfth", "tiled-slices with a twelfth of the L1s for weights, and the rest for values",
			sliced+"spill=overwrite buffer=twelfth"))
	for _, r := range list[2:] {
		list[0].Fallback = append(list[0].Fallback, r.Name)
	}
	return list
}

// All lists the table's recipes, then the other baselines, then those with exact
// decisions: all that need no trials.
func All() []Recipe { return slices.Concat(Table(), Baselines(), Exact(), Tiled()) }

// Known lists all recipes, the searched ones last.
func Known() []Recipe { return append(append(All(), Searched()...), Whole()) }

// ConvFusion is the baseline with convolutions fused in pairs, which the paper compares
// with on a GPU (§5.6). It is no step of the breakdown, so it is not in the table.
func ConvFusion() Recipe {
	return parse("conv-fusion", "a kernel per layer, but one for a convolution and the 1x1 convolution behind it "+
		"(CUTLASS)",
		"group=conv-pairs outputs=l1-inside")
}

// Lookup finds a recipe by name.
func Lookup(name string) (Recipe, error) {
	var names []string
	for _, r := range Known() {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return Recipe{}, fmt.Errorf("unknown variant %q%s", name, suggest.Expected(name, names))
}

// Pick returns the name of the strategy for a stage, "" if there is no such stage.
func (r Recipe) Pick(stage string) string {
	st, err := r.stage(stage)
	if err != nil {
		return ""
	}
	return r.choice(st).Name
}

// Has reports whether the strategy of a pick, by its name or alias, is the recipe's own already.
func (r Recipe) Has(p Pick) bool {
	st, err := r.stage(p.Stage)
	if err != nil {
		return false
	}
	s, err := st.Lookup(p.Strategy)
	return err == nil && s.Name == r.choice(st).Name
}

// Having returns the recipe without those fallbacks that lack one of the picks, so that its result has them all.
func (r Recipe) Having(picks []Pick) Recipe {
	r.Fallback = slices.DeleteFunc(slices.Clone(r.Fallback), func(name string) bool {
		other, err := Lookup(name)
		return err != nil || slices.ContainsFunc(picks, func(p Pick) bool { return !other.Has(p) })
	})
	return r
}

// Strategies lists the strategy of every stage where there is a choice.
func (r Recipe) Strategies() []Pick {
	var list []Pick
	for _, st := range choices(r.table()) {
		list = append(list, Pick{st.Name, r.choice(st).Name})
	}
	return list
}

// Exact reports whether any of its strategies looks for an optimum.
func (r Recipe) Exact() bool {
	return slices.ContainsFunc(r.table(), func(st Stage) bool { return r.choice(st).Exact })
}

// With returns the recipe with a strategy of the caller's own for a stage; [Replace]
// takes those of the tables. As with that, the recipe no longer falls back to others. A
// stage that does not exist is an error of every function that gets the recipe.
func (r Recipe) With(stage string, s Strategy) Recipe {
	r.Picks, r.Fallback, r.evaluations = slices.Clone(r.Picks), nil, 0
	r.set(Pick{stage, s.Name})
	own := map[string]Strategy{stage: s}
	for name, other := range r.own {
		if name != stage {
			own[name] = other
		}
	}
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
	st.own = true
	r.stages, r.Fallback, r.evaluations = slices.Insert(slices.Clone(list), at, st), nil, 0
	return r
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
	rules := Table()[len(Table())-1]
	g, g.Picks = r, slices.Clone(r.Picks)
	for _, st := range r.table() {
		if s := r.choice(st); s.Exact || s.Trials {
			slow = true
			g.set(Pick{st.Name, rules.choice(st).Name})
		}
	}
	return g, slow
}

// at is the strategy for the stage of a name.
func (r Recipe) at(stage string) Strategy {
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

// GreedyRecipe is the recipe that the search is compared with.
const GreedyRecipe = "cross-layer"

// ErrNoSolver says that a strategy needs Options.Solver, which is not set.
var ErrNoSolver = errors.New("needs an integer-programming solver")

// validate reports what makes a recipe unusable, before any work: a stage or strategy
// that does not exist, a missing solver, strategies that do not go together.
func (r Recipe) validate(opt Options) error {
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

// Usable reports why a recipe can't be used, before any work.
func (r Recipe) Usable(opt Options) error { return r.validate(opt) }

// OnKinds reports a strategy of a recipe that does not know cores of several kinds, on a machine that has them.
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

// OwnGreedy reports whether a recipe is one of this project's own greedy ones, by its picks.
func (r Recipe) OwnGreedy() bool {
	return r.stages == nil && r.own == nil &&
		slices.ContainsFunc(Tiled(), func(x Recipe) bool { return x.Name == r.Name && x.Text() == r.Text() })
}

// Searchable reports why a search can't change a stage of the caller's own: it changes groups and their splits itself,
// and asks no strategy for them again.
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

// Evaluations is the number of schedules the search simulates to improve what a recipe's picks give; 0: those are the
// answer.
func (r Recipe) Evaluations() int { return r.evaluations }

// Picking is a recipe with another strategy of the table for a stage, under the same name.
func (r Recipe) Picking(p Pick) Recipe {
	r.Picks = slices.Clone(r.Picks)
	r.set(p)
	return r
}

// Own is the caller's own strategy for a stage, if the recipe has one.
func (r Recipe) Own(stage string) (s Strategy, own bool) {
	s, own = r.own[stage]
	return s, own
}

// Replace returns a recipe with some of its decisions made by other strategies. Its name
// says which: "cross-layer+order=search". A combination that has no meaning is an
// error.
func Replace(r Recipe, opt Options, picks ...Pick) (Recipe, error) {
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
	if name != r.Name && r.evaluations > 0 {
		return Recipe{}, fmt.Errorf("variant %s makes all decisions together, expected none by another strategy", r.Name)
	}
	if made.Name = name; name != r.Name {
		made.Description = r.Name + " with " + strings.ReplaceAll(strings.TrimPrefix(name, r.Name+"+"), "+", ", ")
		made.Fallback = nil
	}
	return made, made.validate(opt)
}
