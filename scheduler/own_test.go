package scheduler_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/search"
)

// strategy is a caller's own.
func strategy(decide func(*scheduler.Draft) error) scheduler.Strategy {
	return scheduler.Strategy{Name: "mine", Decide: func(_ context.Context, d *scheduler.Draft) error { return decide(d) }}
}

// Decisions that come from outside give what the same decisions give by name.
func TestOwnDecisionsAreThoseOfTheName(t *testing.T) {
	for _, c := range []struct {
		stage, name string
		own         scheduler.Strategy
	}{
		{"group", "layers", strategy(func(d *scheduler.Draft) error {
			d.Grouping, _ = tvm.Group(d.Graph, schedule.ExecutionOrder(d.Graph))
			return nil
		})},
		{"order", "dfs", strategy(func(d *scheduler.Draft) error {
			d.Order = graphturbo.DFS(d.Instances)
			return nil
		})},
		{"bind", "plain", strategy(func(d *scheduler.Draft) error {
			d.Bindings, d.Scopes = graphturbo.PlainBindGrid(d.Graph, d.Grouping, d.Instances, schedule.Grid(d.Spec),
				d.Slices)
			return nil
		})},
		{"weights", "reload", strategy(func(d *scheduler.Draft) error {
			d.Lower.KeepWeights = false
			return nil
		})},
	} {
		t.Run(c.stage, func(t *testing.T) {
			want, err := last(t).Replace(scheduler.Options{}, scheduler.Pick{Stage: c.stage, Strategy: c.name})
			if err != nil {
				t.Fatal(err)
			}
			got := last(t).With(c.stage, c.own)
			if c.stage == "group" {
				if got, err = got.Replace(scheduler.Options{}, scheduler.Pick{Stage: "split", Strategy: "none"}); err != nil {
					t.Fatal(err)
				}
			}
			src, spec := open(t, "squeezenet"), load(t, "stcp920")
			w, err := scheduler.Run(context.Background(), src, spec, 8, want, scheduler.Options{Chunk: 2})
			if err != nil {
				t.Fatal(err)
			}
			g, err := scheduler.Run(context.Background(), src, spec, 8, got, scheduler.Options{Chunk: 2})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(g.Schedule.Order, w.Schedule.Order) ||
				!reflect.DeepEqual(g.Schedule.Bindings, w.Schedule.Bindings) || g.Sim.TotalPs != w.Sim.TotalPs {
				t.Errorf("%d ps in order %v, want %d ps in %v", g.Sim.TotalPs, g.Schedule.Order, w.Sim.TotalPs, w.Schedule.Order)
			}
		})
	}
}

// A caller's wide recipe may have only alternatives with split groups. Its layers are then not divided over kinds of
// core or clusters, since that division needs groups that are not split.
func TestWideRecipeOfSplitGroups(t *testing.T) {
	mixed, clusters := load(t, "stcp920").Clone(), load(t, "stcp920")
	mixed.CoreTypes[0].Runs = []string{"matrix", "reduction", "element-wise", "injective"}
	mixed.CoreTypes = append(mixed.CoreTypes, mixed.Clone().CoreTypes[0])
	mixed.CoreTypes[1].Name = "other"
	split := last(t)
	split.Name, split.Fallback, split.Scouts = "mine", []string{"ordering"}, []string{"mine"}
	for _, spec := range []*hardware.Spec{mixed, clusters} {
		r, err := scheduler.Run(t.Context(), open(t, "toy-fig3"), spec, 2, split, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(r.Also, func(also string) bool { return strings.HasPrefix(also, "layers over") }) {
			t.Errorf("%s: also %v", spec.Name, r.Also)
		}
	}
}

// A dump of the row outputs says all that its strategies differ in.
func TestDumpOfOutputs(t *testing.T) {
	for strategy, want := range map[string]string{
		"ddr":       "DDR",
		"l1":        "L1",
		"l1-inside": "L1 inside a kernel, DDR between kernels",
		"llb-kept":  "LLB, network outputs that layers read as well as in the DDR",
	} {
		recipe, err := last(t).Replace(scheduler.Options{}, scheduler.Pick{Stage: "outputs", Strategy: strategy},
			scheduler.Pick{Stage: "bind", Strategy: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(t.Context(), open(t, "squeezenet"), load(t, "stcp920"), 1, recipe,
			scheduler.Options{Chunk: 1})
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.Dump("outputs")
		if _, got, _ := strings.Cut(text, "\n"); err != nil || got != want+"\n" {
			t.Errorf("%s: %q, %v, expected %q", strategy, got, err, want)
		}
	}
}

// What the caller's own decision does wrong is the caller's mistake, and said so, by
// the check of its stage.
func TestOwnMistakes(t *testing.T) {
	for _, c := range []struct {
		name, stage string
		own         scheduler.Strategy
		want        string
	}{
		{"a group is missing", "group", strategy(func(d *scheduler.Draft) error {
			d.Grouping, _ = tvm.Group(d.Graph, schedule.ExecutionOrder(d.Graph))
			d.Grouping.Groups = d.Grouping.Groups[:len(d.Grouping.Groups)-1]
			return nil
		}), "group by mine: groups: operator "},
		{"no groups", "group", strategy(func(*scheduler.Draft) error { return errors.New("not today") }),
			"group by mine: not today"},
		{"nothing at all", "group", strategy(func(*scheduler.Draft) error { return nil }),
			"group by mine: there are no groups"},
		{"a group that is nil", "group", strategy(func(d *scheduler.Draft) error {
			d.Grouping = &schedule.Grouping{Groups: []*schedule.SubGraph{nil}}
			return nil
		}), "group by mine: a group is nil"},
		{"a factor that does not divide", "split", strategy(func(d *scheduler.Draft) error {
			d.Grouping.Groups[0].Split.Factor, d.Grouping.Groups[0].Split.Dim = 7919, 0
			return nil
		}), "split by mine: "},
		{"no instances", "instances", strategy(func(*scheduler.Draft) error { return nil }),
			"instances by mine: there are no instances"},
		{"outputs nowhere", "outputs", strategy(func(d *scheduler.Draft) error {
			d.Outputs = 9
			return nil
		}), "outputs by mine: level 9, expected L1, LLB or DDR"},
		{"reversed", "order", strategy(func(d *scheduler.Draft) error {
			d.Order = graphturbo.DFS(d.Instances)
			slices.Reverse(d.Order)
			return nil
		}), "order by mine: instance "},
		{"nothing bound", "bind", strategy(func(*scheduler.Draft) error { return nil }),
			"bind by mine: 0 bindings and 0 scopes, expected "},
		{"too many cores", "bind", strategy(func(d *scheduler.Draft) error {
			d.Bindings, d.Scopes = graphturbo.PlainBindGrid(d.Graph, d.Grouping, d.Instances, schedule.Grid(d.Spec),
				d.Slices)
			d.Bindings[0] = slices.Clone(d.Bindings[0])
			d.Bindings[0][0] = 1 << 20
			return nil
		}), "bind by mine: instance 0 of g0: "},
		{"a level that does not exist", "bind", strategy(func(d *scheduler.Draft) error {
			d.Bindings, d.Scopes = graphturbo.PlainBindGrid(d.Graph, d.Grouping, d.Instances, schedule.Grid(d.Spec),
				d.Slices)
			d.Scopes[0] = 7
			return nil
		}), "scope 7, expected L1, LLB or DDR"},
		{"no memory plan", "spill", strategy(func(*scheduler.Draft) error { return nil }), "spill by mine: "},
		{"no function", "order", scheduler.Strategy{Name: "mine"}, "order mine has no function Decide"},
		{"no such stage", "ordre", strategy(func(*scheduler.Draft) error { return nil }),
			`unknown stage "ordre" (did you mean order?)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := scheduler.Run(context.Background(), open(t, "resnet50"), load(t, "stcp920"), 8,
				last(t).With(c.stage, c.own), scheduler.Options{Chunk: 2})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "internal error") {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

// Groups that come without a split get that of Algorithm 1.
func TestOwnGroupsAreSplit(t *testing.T) {
	greedy := schedule.SplitOptions{}
	mine := last(t).With("group", strategy(func(d *scheduler.Draft) error {
		greedy = d.Machine
		made, err := graphturbo.Group(t.Context(), d.Graph, d.Machine)
		if err != nil {
			return err
		}
		d.Grouping = made
		for _, sg := range d.Grouping.Groups {
			sg.Split = schedule.SplitInfo{}
		}
		return nil
	}))
	r, err := scheduler.Run(context.Background(), open(t, "squeezenet"), load(t, "stcp920"), 32, mine,
		scheduler.Options{Chunk: 8})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []schedule.SplitInfo
	for _, sg := range r.Schedule.Grouping.Groups {
		got = append(got, sg.Split)
	}
	again, err := graphturbo.Group(t.Context(), r.Schedule.Graph, greedy)
	if err != nil {
		t.Fatal(err)
	}
	for _, sg := range again.Groups {
		want = append(want, sg.Split)
	}
	if !slices.Equal(got, want) || want[0].Factor < 2 {
		t.Errorf("split %v, want %v", got, want)
	}
}

// What a recipe falls back to must not hide a mistake of its own, and a recipe with a
// caller's strategy falls back to nothing unless the caller says so.
func TestFallbackHidesNoMistake(t *testing.T) {
	all, err := recipes.Lookup("exact-all")
	if err != nil {
		t.Fatal(err)
	}
	r := all.With("order", strategy(func(*scheduler.Draft) error { return errors.New("not today") }))
	if len(r.Fallback) > 0 || len(all.Fallback) == 0 {
		t.Errorf("falls back to %v, from a recipe with %v", r.Fallback, all.Fallback)
	}
	r.Fallback = []string{"tvm"}
	_, err = scheduler.Run(context.Background(), open(t, "toy-fig3"), load(t, "stcp920"), 8, r,
		scheduler.Options{Chunk: 1})
	if err == nil || !strings.Contains(err.Error(), "order by mine: not today") {
		t.Errorf("the error is %v", err)
	}
}

// A result is called by its recipe, whichever it fell back to.
func TestFallbackKeepsTheName(t *testing.T) {
	r, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Fallback = "slow or fast", []string{"cross-layer"}
	got, err := scheduler.Run(context.Background(), open(t, "squeezenet"), load(t, "stcp920"), 8, r,
		scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got.Notes, "slow or fast: the schedule is that of cross-layer, the fastest of 2") ||
		got.Program.Name != "squeezenet/stcp920/slow or fast" {
		t.Errorf("program %q, notes %q", got.Program.Name, got.Notes)
	}
}

// A caller's own strategy, whatever it holds, survives the replacement of others.
func TestReplaceKeepsOwnStrategies(t *testing.T) {
	calls := []string{} // a strategy that holds a slice
	mine := strategy(func(d *scheduler.Draft) error {
		calls = append(calls, "order")
		d.Order = graphturbo.DFS(d.Instances)
		return nil
	})
	v, err := last(t).With("order", mine).Replace(scheduler.Options{},
		scheduler.Pick{Stage: "spill", Strategy: "largest-first"})
	if err != nil {
		t.Fatal(err)
	}
	if v.Pick("order") != "mine" || v.Name != "cross-layer+spill=largest-first" {
		t.Errorf("%s with order %s", v.Name, v.Pick("order"))
	}
	if _, err := scheduler.Run(context.Background(), open(t, "toy-fig3"), load(t, "stcp920"), 8, v,
		scheduler.Options{Chunk: 2}); err != nil || len(calls) != 1 {
		t.Errorf("%d calls, %v", len(calls), err)
	}
	if v, err = v.Replace(scheduler.Options{}, scheduler.Pick{Stage: "order", Strategy: "bfs"}); err != nil ||
		v.Pick("order") != "bfs" {
		t.Errorf("order %s, %v", v.Pick("order"), err)
	}
}

// slow makes every product take four times as long.
type slow struct{}

func (slow) MatrixCycles(f *cost.Model, d model.MatrixDims, dt model.DType) hardware.Cycles {
	return 4 * f.MatrixCycles(d, dt)
}

func (slow) VectorCycles(f *cost.Model, w model.VectorWork, dt model.DType) (vector, special hardware.Cycles) {
	return f.VectorCycles(w, dt)
}

// An operator cost reaches the program and, where they price, the decisions; on a machine
// seen one level up, too.
func TestOwnCost(t *testing.T) {
	for _, hw := range []string{"stcp920", "../hardware/testdata/goya.yaml"} {
		for _, name := range []string{"cross-layer", "exact-bind"} {
			v, err := recipes.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			src, spec := open(t, "squeezenet"), load(t, hw)
			var total [2]int64
			for i, c := range []cost.Custom{nil, slow{}} {
				r, err := scheduler.Run(context.Background(), src, spec, 2, v, scheduler.Options{Chunk: 1, Cost: c})
				if err != nil {
					t.Fatal(err)
				}
				total[i] = r.Sim.TotalPs
			}
			if total[1] <= total[0] || total[1] > 4*total[0] {
				t.Errorf("%s on %s: %d ps with slower products, %d ps without", name, hw, total[1], total[0])
			}
		}
	}
}

// A caller's own grouping is searched like the built-in one: the same function under another name gives the same
// search.
func TestOwnGroupsAreSearched(t *testing.T) {
	built, err := scheduler.LookupStage("group")
	if err != nil {
		t.Fatal(err)
	}
	alg2, err := built.Lookup("alg2")
	if err != nil {
		t.Fatal(err)
	}
	var found []*search.Found
	for _, r := range []scheduler.Recipe{last(t), last(t).With("group",
		scheduler.Strategy{Name: "mine", Decide: alg2.Decide})} {
		r.Name = "searched"
		x, err := search.Best(t.Context(), open(t, "squeezenet"), load(t, "stcp920"), 8,
			search.BestOptions{Options: scheduler.Options{Chunk: 2}, Recipes: []scheduler.Recipe{r}, Evaluations: 60,
				Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, x)
	}
	a, b := found[0], found[1]
	if a.Sim.TotalPs != b.Sim.TotalPs || a.Evaluations != b.Evaluations || !slices.Equal(a.Trajectory, b.Trajectory) ||
		len(a.Trajectory) < 4 {
		t.Errorf("%d ps after %d evaluations by %v, of the caller's own %d after %d by %v",
			a.Sim.TotalPs, a.Evaluations, a.Trajectory, b.Sim.TotalPs, b.Evaluations, b.Trajectory)
	}
}

// The search asks a caller's strategy again when a caller's setting in front of it has another value; one in front of
// the split it refuses.
func TestOwnStageAsksAgain(t *testing.T) {
	for _, stage := range []string{"outputs", "spill", "issue", "prefetch", "nest"} {
		set := scheduler.Setting[int]{Name: "set", Choices: []scheduler.Choice[int]{{Name: "first", Value: 0},
			{Name: "second", Value: 1}}}
		st, err := scheduler.LookupStage(stage)
		if err != nil {
			t.Fatal(err)
		}
		given, err := st.Lookup(last(t).Pick(stage))
		if err != nil {
			t.Fatal(err)
		}
		asked := map[int]int{}
		asks := scheduler.Strategy{Name: "asks", Decide: func(ctx context.Context, d *scheduler.Draft) error {
			asked[set.Of(d)]++
			return given.Decide(ctx, d)
		}}
		r := last(t).With(stage, asks).WithStage(stage, set.Stage())
		found, err := search.Best(t.Context(), open(t, "toy-fig3"), load(t, "stcp920"), 8,
			search.BestOptions{Options: scheduler.Options{Chunk: 2}, Recipes: []scheduler.Recipe{r}, Evaluations: 60, Seed: 3,
				Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if asked[0] == 0 || asked[1] == 0 || found.Decided("set") == "" {
			t.Errorf("%s was asked %v, decided %q, expected both values", stage, asked, found.Decided("set"))
		}
	}
	set := scheduler.Setting[int]{Name: "set"}
	for _, before := range []string{"group", "split"} {
		_, err := search.Best(t.Context(), open(t, "toy-fig3"), load(t, "stcp920"), 8, search.BestOptions{
			Recipes: []scheduler.Recipe{last(t).WithStage(before, set.Stage())}, Evaluations: 1})
		if err == nil || !strings.Contains(err.Error(), `stage "set" stands in front of "split", expected behind`) {
			t.Errorf("in front of %s: %v", before, err)
		}
	}
}

// The search is never worse than the default recipe where a caller names that alone, nor than one made of it.
func TestBestOfDefault(t *testing.T) {
	tiled, err := recipes.Lookup(recipes.Default)
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	order := scheduler.Strategy{Name: "mine", Decide: func(_ context.Context, d *scheduler.Draft) error {
		asked, d.Order = true, graphturbo.BFS(d.Instances)
		return nil
	}}
	for _, r := range []scheduler.Recipe{tiled, tiled.With("order", order)} {
		net, chip, opt := open(t, "toy-fig3"), load(t, "goya"), scheduler.Options{Chunk: 2}
		made, err := scheduler.Run(t.Context(), net, chip, 2, r, opt)
		if err != nil {
			t.Fatal(err)
		}
		asked = false
		found, err := search.Best(t.Context(), net, chip, 2,
			search.BestOptions{Options: opt, Recipes: []scheduler.Recipe{r}, Evaluations: 1, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if found.Sim.TotalPs > made.Sim.TotalPs {
			t.Errorf("the search takes %d ps, where it begins %d", found.Sim.TotalPs, made.Sim.TotalPs)
		}
	}
	if !asked {
		t.Error("the search did not ask the caller's strategy")
	}
}

// A caller's own stage is decided, searched, written to files and read again.
func TestOwnStage(t *testing.T) {
	late := scheduler.Setting[int]{Name: "late", Choices: []scheduler.Choice[int]{{Name: "first", Value: 0},
		{Name: "second", Value: 1}}}
	asked := map[int]bool{}
	order := scheduler.Strategy{Name: "swapped", Decide: func(_ context.Context, d *scheduler.Draft) error {
		asked[late.Of(d)] = true
		d.Order = graphturbo.BFS(d.Instances)
		if late.Of(d) == 0 {
			d.Order = graphturbo.DFS(d.Instances)
		}
		return nil
	}}
	r := last(t).With("order", order).WithStage("order", late.Stage())
	found, err := search.Best(t.Context(), open(t, "squeezenet"), load(t, "stcp920"), 8,
		search.BestOptions{Options: scheduler.Options{Chunk: 2}, Recipes: []scheduler.Recipe{r}, Evaluations: 60, Seed: 3,
			Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !asked[0] || !asked[1] {
		t.Errorf("asked for %v, expected both values", asked)
	}
	f := found.Result.File(schedulefile.Origin{})
	if d := f.Schedules[0].Decisions; len(d) != 1 || d[0].Stage != "late" {
		t.Fatalf("the file has %s", f.Schedules[0].Decisions)
	}
	want, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	if f, err = schedulefile.Read("", want); err != nil {
		t.Fatal(err)
	}
	back, err := scheduler.Restore(t.Context(), f, load(t, "stcp920"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := back.File(schedulefile.Origin{}).Write(); err != nil || string(got) != string(want) {
		t.Errorf("another file when it is written again: %v", err)
	}
	for _, c := range []struct {
		before string
		stage  scheduler.Stage
		want   string
	}{
		{"ordre", late.Stage(), `unknown stage "ordre"`},
		{"order", scheduler.Stage{Name: "empty"}, `stage "empty" has no strategy`},
		{"order", scheduler.Stage{Name: "bind", Strategies: late.Stage().Strategies}, `there are two stages "bind"`},
	} {
		_, err := scheduler.Run(t.Context(), open(t, "toy-fig3"), load(t, "stcp920"), 8, last(t).WithStage(c.before, c.stage),
			scheduler.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("stage %s in front of %s: %v, expected %q", c.stage.Name, c.before, err, c.want)
		}
	}
	empty := scheduler.Setting[int]{Name: "nothing"}
	if _, err := scheduler.Run(t.Context(), open(t, "toy-fig3"), load(t, "stcp920"), 8,
		last(t).WithStage("order", empty.Stage()), scheduler.Options{}); err != nil {
		t.Errorf("a setting without choices: %v", err)
	}
}
