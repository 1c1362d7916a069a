package scheduler

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// A program's outline takes as long as the program: clusters that are alike and those
// that are not, rests of shares, machines with and without a shared buffer.
func TestOutlineTakesAsLong(t *testing.T) {
	memory := &lower.Memory{} // one for all
	for _, c := range []struct {
		network, machine string
		batch, chunk     int64
	}{
		{"toy-fig3", "stcp920", 16, 2}, {"resnet18", "stcp920", 4, 1}, {"mobilenetv2", "stcp920", 11, 2},
		{"toy-fig3", "ipu", 5, 1},
		{"squeezenet", "goya", 3, 2}, {"dlrm", "stcp920", 66, 16},
	} {
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range All() {
			if r.Exact() {
				continue
			}
			made, err := Run(t.Context(), net, chip, c.batch, r, Options{Chunk: c.chunk})
			if err != nil {
				if TooLarge(err) {
					continue
				}
				t.Fatal(err)
			}
			opt := made.Lower
			opt.Memory = memory
			p, alike, err := lower.Outline("", made.Spec, made.Plans, opt)
			if err != nil {
				t.Fatal(err)
			}
			ps, start, err := sim.Latency(t.Context(), p, alike, 0)
			if err != nil {
				t.Fatal(err)
			}
			if ps != made.Sim.TotalPs || len(start) != len(p.Commands) {
				t.Errorf("%+v, %s: %d ps, the program takes %d", c, r.Name, ps, made.Sim.TotalPs)
			}
			for _, limit := range []int64{ps - 1, ps} {
				if under, _, err := sim.Latency(t.Context(), p, alike, limit); err != nil || (under == ps) != (limit == ps) {
					t.Errorf("%+v, %s: %d ps and %v under a limit of %d", c, r.Name, under, err, limit)
				}
			}
		}
	}
}

// A program that gets too large is an error, after which its memory serves for the next one.
func TestOutlineTooLarge(t *testing.T) {
	net, chip, r := greedyOn(t, "vgg16")
	made, err := r.Prepare(t.Context(), net, chip, 4, Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	opt := made.Lower
	opt.Memory = &lower.Memory{}
	row := opt
	row.Batches = 2 // of batches in a row, the commands of all clusters count
	if _, _, err := lower.Outline("", made.Spec, slices.Repeat(made.Plans[:1], 20_000), row); !TooLarge(err) {
		t.Errorf("error %v of 20000 clusters, expected one that says too large", err)
	}
	want, _, err := lower.Outline("", made.Spec, made.Plans, made.Lower)
	if err != nil {
		t.Fatal(err)
	}
	if p, _, err := lower.Outline("", made.Spec, made.Plans, opt); err != nil || len(p.Commands) != len(want.Commands) {
		t.Errorf("then %v, expected the outline of %d commands", err, len(want.Commands))
	}
}

// A schedule is the same whether its steps were found before, for it or for another one.
func TestMemo(t *testing.T) {
	for _, name := range []string{"squeezenet", "mobilenetv2", "bert-128"} {
		net, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		g, err := net.Graph(2)
		if err != nil {
			t.Fatal(err)
		}
		opt := run{}
		memo := schedule.NewMemo()
		for range 2 {
			for _, recipe := range []string{"ordering", "cross-layer", "tvm", "exact-bind"} {
				r, err := Lookup(recipe)
				if err != nil {
					t.Fatal(err)
				}
				opt.memo = nil
				plain, err := draft(t.Context(), g, chip, r, opt)
				if err != nil {
					t.Fatal(err)
				}
				opt.memo = memo
				again, err := draft(t.Context(), g, chip, r, opt)
				if err != nil {
					t.Fatal(err)
				}
				a, err := json.Marshal([]any{plain.Steps, plain.Values}) // not whether a memo knew its steps
				b, other := json.Marshal([]any{again.Steps, again.Values})
				if err = cmp.Or(err, other); err != nil || !bytes.Equal(a, b) {
					t.Errorf("%s, %s: other steps or values (%v)", name, recipe, err)
				}
			}
		}
	}
}

// Decisions have the same name if, and only if, they decide the same.
func TestDecisionNames(t *testing.T) {
	net, chip, recipe := greedyOn(t, "toy-fig3")
	made, err := Run(t.Context(), net, chip, 8, recipe, Options{Chunk: 2})
	if err != nil {
		t.Fatal(err)
	}
	first := made.Decisions(false, false)
	plain := first.with(first.Groups())
	op, level := plain.Groups()[0].Ops[0], schedule.LLB
	change := func(set func(*Decisions)) *Decisions {
		p := *plain
		set(&p)
		return &p
	}
	bound := func(x groupBinding) *Decisions {
		return alter(func(s *spreading) { s.groupBindings = map[piece]groupBinding{plain.Groups()[0].piece(): x} })(plain)
	}
	split := slices.Clone(plain.Groups())
	split[0].Split.Factor = 3
	layered := func(b schedule.Binding) *Decisions {
		return alter(func(x *spreading) { x.layerBindings = map[model.OpID]schedule.Binding{op: b} })(plain)
	}
	forced := func(down bool) *Decisions {
		return alter(func(x *placement) { x.forceLLB = map[model.TensorID]bool{1: down} })(plain)
	}
	hoist := func(n int) *Decisions {
		return alter(func(x *layering) { x.hoist = map[model.OpID]int{op: n} })(plain)
	}
	begins := func(begins bool) *Decisions {
		return alter(func(x *layering) { x.layerStarts = map[model.OpID]bool{op: begins} })(plain)
	}
	binding := schedule.Binding{1, 2, 1, 1}
	list := []*Decisions{first, plain,
		plain.with(sequence{order: made.Schedule.Order}),
		plain.with(sequence{strategy: table.Strategies["order"][3]}),
		alter(func(x *placement) { x.rule = "largest-first" })(plain),
		alter(func(x *placement) { x.overwrite = true })(plain),
		alter(func(x *placement) { x.spilled = map[valueKey]bool{} })(plain),
		alter(func(x *placement) { x.spilled = map[valueKey]bool{{1, 2}: true} })(plain),
		alter(func(x *generating) { x.Pieces = 6 })(plain),
		alter(func(x *loops) { x.nests = map[stepKey]*schedule.Nest{{}: nil} })(plain),
		alter(func(x *loops) { x.made = made.Schedule })(plain),
		alter(func(x *loops) { x.nests, x.tiles = nil, true })(plain),
		alter(func(x *loops) { x.own = map[model.OpID]*schedule.Nest{op: {Tiles: 1}} })(plain),
		plain.with(residence{outputs: schedule.DDR}),
		plain.with(plain.Stages[plain.row("address")].take(&Draft{Recipe: Parse("", "", "address=apart")}, false)),
		change(func(p *Decisions) { p.InPlace = true }),
		plain.with(split),
		layered(schedule.Binding{2, 1}), layered(schedule.Binding{1, 2}), forced(true), hoist(1), begins(true),
		bound(groupBinding{binding: binding}), bound(groupBinding{scope: &level}),
		bound(groupBinding{binding: binding, scope: &level})}
	for i, a := range list {
		for j, b := range list[:i] {
			if a.Name() == b.Name() {
				t.Errorf("decisions %d and %d have one name", j, i)
			}
		}
	}
	for _, same := range []*Decisions{
		plain.with(slices.Clone(plain.Groups())), layered(nil), forced(false), hoist(0), begins(false),
		alter(func(s *spreading) { s.groupBindings = map[piece]groupBinding{{factor: -1}: {scope: &level}} })(plain),
	} {
		if same.Name() != plain.Name() {
			t.Error("decisions that are the same have two names")
		}
	}
}

// What a schedule costs the search, and one that is known, against what it costs by itself.
func BenchmarkEvaluate(b *testing.B) {
	recipe, err := Lookup(GreedyRecipe)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		network      string
		batch, chunk int64
	}{{"resnet50", 32, 8}, {"resnet50", 64, 16}, {"bert-128", 32, 8}} {
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			b.Fatal(err)
		}
		chip, err := hardware.Load("stcp920")
		if err != nil {
			b.Fatal(err)
		}
		opt := Options{Chunk: c.chunk}
		made, err := Run(b.Context(), net, chip, c.batch, recipe, opt)
		if err != nil {
			b.Fatal(err)
		}
		w := NewProblem(net, chip, made.Spec, c.batch, Options{})
		name := fmt.Sprintf("%s/%d", c.network, c.batch)
		b.Run(name+"/search", func(b *testing.B) {
			p := made.Decisions(false, false)
			p = p.with(p.Groups())
			for b.Loop() {
				if o := w.Evaluate(b.Context(), p, 0); o.Err != nil {
					b.Fatal(o.Err)
				}
			}
		})
		b.Run(name+"/known", func(b *testing.B) {
			p := made.Decisions(false, false)
			p = p.with(p.Groups())
			for b.Loop() {
				if _, _, err := w.Decided(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/full", func(b *testing.B) {
			for b.Loop() {
				if _, err := Run(b.Context(), net, chip, c.batch, recipe, opt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A plan's settings of the generator are those of its schedule.
func TestPlanSettings(t *testing.T) {
	net, chip, recipe := greedyOn(t, "toy-fig3")
	made, err := Run(t.Context(), net, chip, 8, recipe, Options{Chunk: 2})
	if err != nil {
		t.Fatal(err)
	}
	w := NewProblem(net, chip, made.Spec, 8, Options{})
	for _, list := range generatorSettings {
		for i, set := range list {
			p := set(made.Decisions(false, false))
			r, err := w.Result(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if r.Lower.Generator != schedule.Generator(of[generating](p)) {
				t.Errorf("value %d: the schedule is made with %+v, expected %+v", i, r.Lower, of[generating](p))
			}
		}
	}
}

// Bindings of layers that have become others are left out, so that the file of the schedule can be
// read.
func TestBindingsOfOtherRank(t *testing.T) {
	net, chip, recipe := greedyOn(t, "toy-fig3")
	made, err := Run(t.Context(), net, chip, 8, recipe, Options{Chunk: 2})
	if err != nil {
		t.Fatal(err)
	}
	anchor := made.Schedule.Layers[0][0].Anchor
	own := map[model.OpID]schedule.Binding{anchor: {2, 1}}
	p := alter(func(x *spreading) { x.layerBindings = own })(made.Decisions(false, false))
	w := NewProblem(net, chip, made.Spec, 8, Options{})
	r, err := w.Result(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	comesBack(t, r, chip)
}

// madeBy is a schedule of a batch of 8 by a recipe on stcp920, with the problem of its graph.
func madeBy(t *testing.T, recipe, name string, chunk int64) (*Problem, *Result) {
	t.Helper()
	net, chip, _ := greedyOn(t, name)
	r, err := Lookup(recipe)
	if err != nil {
		t.Fatal(err)
	}
	made, err := Run(t.Context(), net, chip, 8, r, Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return NewProblem(net, chip, made.Spec, 8, Options{}), made
}

// comesBack expects that a schedule out of its file takes as long.
func comesBack(t *testing.T, r *Result, chip *hardware.Spec) {
	t.Helper()
	if back, err := Restore(t.Context(), r.File(schedulefile.Origin{}), chip); err != nil {
		t.Errorf("it does not come back: %v", err)
	} else if back.Sim.TotalPs != r.Sim.TotalPs {
		t.Errorf("%d ps, out of its file %d", r.Sim.TotalPs, back.Sim.TotalPs)
	}
}

// Decisions of which nothing is copied are the same ones, with the nests and bindings of single instances.
func TestNothingCopied(t *testing.T) {
	for _, name := range []string{"tiled-l1", "exact-bind"} {
		_, made := madeBy(t, name, "bert-128", 2)
		p := made.Decisions(false, true)
		op := made.Schedule.Graph.Ops[0].ID
		if q := p.Copied(made.Schedule.Graph, [][2]model.OpID{{op, op}}); q != p {
			t.Errorf("%s: an operator copied to itself changes decisions", name)
		}
	}
}

// A setting drops the tiles of the start, and the schedule's file has what it makes.
func TestTilesAnew(t *testing.T) {
	w, made := madeBy(t, "tiled-l1", "bert-128", 2)
	p := made.Decisions(false, true)
	if len(of[loops](p).nests) == 0 {
		t.Fatal("no product has tiles")
	}
	q := nestSettings[0][0](p)
	if again := nestSettings[0][0](q); of[loops](q).nests != nil || again != q {
		t.Error("nests stay, or are dropped twice")
	}
	r, err := w.Result(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sim.TotalPs == made.Sim.TotalPs {
		t.Error("the schedule is the same")
	}
	comesBack(t, r, w.Machine)
}

// A nest that names no cores takes the place of the tiles that a rule has given an attention. It runs on the cores of
// these, and the schedule's file says so.
func TestCoresOfRuleStay(t *testing.T) {
	w, made := madeBy(t, "tiled-llb", "bert-512", 1)
	own, bound := map[model.OpID]*schedule.Nest{}, map[model.OpID]schedule.Binding{}
	for i := range made.Schedule.Steps {
		if n := made.Schedule.Steps[i].Nest; n != nil && n.Attention != nil && n.Cores != nil {
			anchor, plain := schedule.LayerOf(made.Schedule, &made.Schedule.Steps[i]).Anchor, *n
			plain.Cores = nil
			own[anchor] = &plain
			bound[anchor] = schedule.One(len(n.Cores)) // the rule has better ones
		}
	}
	if len(own) == 0 {
		t.Fatal("no attention has cores of its own")
	}
	p := alter(func(x *loops) { *x = loops{tiles: true, own: own} })(made.Decisions(false, false))
	p = alter(func(x *spreading) { maps.Copy(x.layerBindings, bound) })(p)
	r, err := w.Result(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Schedule.Steps, func(st schedule.Step) bool {
		return own[schedule.LayerOf(r.Schedule, &st).Anchor] != nil && st.Cores > 1
	}) {
		t.Fatal("the rule gives no attention other cores than those it is bound to")
	}
	comesBack(t, r, w.Machine)
}

// Results take the place of operands in fewer bytes of the L1, and the file of such a schedule can be
// read and gone on from; a place that overlaps otherwise is refused.
func TestPlanOver(t *testing.T) {
	net, chip, recipe := greedyOn(t, "bert-128")
	made, err := Run(t.Context(), net, chip, 8, recipe, Options{Chunk: 2})
	if err != nil {
		t.Fatal(err)
	}
	p := alter(func(x *placement) { x.overwrite = true })(made.Decisions(false, false))
	w := NewProblem(net, chip, made.Spec, 8, Options{})
	r, err := w.Result(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s, replaced := r.Schedule, 0
	for i := range s.Steps {
		if from, _ := s.Overwritten(&s.Steps[i]); from != nil {
			replaced++
		}
	}
	if replaced < 12 {
		t.Fatalf("%d results took the place of operands, expected those of 12 softmaxes at least", replaced)
	}
	f := r.File(schedulefile.Origin{})
	back, err := Restore(t.Context(), f, chip)
	if err != nil {
		t.Fatal(err)
	}
	if back.Sim.TotalPs != r.Sim.TotalPs || !of[placement](back.Decisions(false, true)).overwrite ||
		of[placement](made.Decisions(false, false)).overwrite {
		t.Errorf("%d ps, from its file %d", r.Sim.TotalPs, back.Sim.TotalPs)
	}
	for i := range s.Steps {
		if from, _ := s.Overwritten(&s.Steps[i]); from != nil && from.CoreBytes > 64 {
			s.Values[s.Steps[i].Writes[0]].Address += 64
			break
		}
	}
	if err := schedule.Check(s); err == nil || !strings.Contains(err.Error(), "overlaps") {
		t.Errorf("a place that overlaps in part: %v", err)
	}
	var bad *ViolationsError
	if _, err := Restore(t.Context(), r.File(schedulefile.Origin{}), chip); !errors.As(err, &bad) {
		t.Errorf("in a file: %v", err)
	}
}

// A schedule for a part of the memories takes as long when its file is read, since its steps are made for the whole.
func TestPartsOfMemoriesComeBack(t *testing.T) {
	for _, c := range []struct{ net, machine string }{{"swin-t", "stcp920"}, {"mobilenetv2", "a100"}} {
		net, err := network.Open(c.net, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Lookup(Default)
		if err != nil {
			t.Fatal(err)
		}
		made, err := Run(t.Context(), net, chip, 1, r, Options{})
		if err != nil {
			t.Fatal(err)
		}
		back, err := Restore(t.Context(), made.File(schedulefile.Origin{}), chip)
		if err != nil || back.Sim.TotalPs != made.Sim.TotalPs {
			t.Errorf("%s on %s: %d ps, from its file %v (%v)", c.net, c.machine, made.Sim.TotalPs, back, err)
		}
		if !made.half {
			t.Errorf("%s on %s: the schedule is for all of the memories", c.net, c.machine)
		}
	}
}

// Shares as large as the largest even one may leave clusters without work, and the others more even.
func TestShares(t *testing.T) {
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	chip.Clusters = 5
	for share, want := range map[int64][]int64{0: {3, 2, 2, 2, 2}, 2: {3, 2, 2, 2, 2}, 3: {3, 3, 3, 2, 0},
		8: {8, 3, 0, 0, 0}} {
		opt := run{Options: Options{Clusters: OverBatch}, state: state{share: share}}
		if got := opt.shares(11, chip); !slices.Equal(got, want) {
			t.Errorf("shares of %d: %v, want %v", share, got, want)
		}
	}
}

// greedyOn is what the greedy recipe needs for a built-in network on stcp920.
func greedyOn(t testing.TB, name string) (network.Network, *hardware.Spec, Recipe) {
	t.Helper()
	net, err := network.Open(name, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := Lookup(GreedyRecipe)
	if err != nil {
		t.Fatal(err)
	}
	return net, chip, recipe
}

// The decisions of a recipe's schedule give it again, whether or not what the recipe's rules make at once is taken.
func TestDecisionsOfTiledRecipes(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		net, machine string
		batch, chunk int64
	}{{"bert-512", "stcp920", 16, 4}, {"bert-512", "ipu", 8, 4}, {"resnet50", "goya", 4, 4},
		{"resnet50", "a100", 4, 4}} {
		net, err := network.Open(c.net, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		described, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := LevelAuto.Machine(described)
		if err != nil {
			t.Fatal(err)
		}
		for _, recipe := range Tiled()[1:] {
			made, err := Run(ctx, net, described, c.batch, recipe, Options{Chunk: c.chunk})
			if TooLarge(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			w := NewProblem(net, described, spec, c.batch, Options{})
			for _, all := range []bool{false, true} {
				again, _, err := w.Decided(ctx, made.Decisions(false, all))
				if err == nil {
					err = again.Simulate(ctx)
				}
				if err != nil {
					t.Fatalf("%s on %s by %s: %v", c.net, c.machine, recipe.Name, err)
				}
				if again.Sim.TotalPs != made.Sim.TotalPs {
					t.Errorf("%s on %s by %s takes %d ps, from its decisions (all: %v) %d", c.net, c.machine,
						recipe.Name, made.Sim.TotalPs, all, again.Sim.TotalPs)
				}
			}
		}
	}
}
