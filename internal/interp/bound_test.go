package interp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

// anyOptions draws what the generator may be told and no recipe tells it.
func anyOptions(r *rand.Rand, recipe scheduler.Recipe) scheduler.Recipe {
	apart, over := r.IntN(2) == 0, r.IntN(2) == 0
	o := schedule.Generator{CrossLayer: r.IntN(4) > 0, KeepWeights: r.IntN(4) > 0, Prefetch: r.IntN(4) > 0,
		BeforeFirst:  r.IntN(2) == 0,
		KeepQuarters: r.IntN(5), Pieces: pick(r, int64(0), 1, 2, 8, 64), WeightTiles: pick(r, int64(0), 2, 4),
		LoadTiles:    pick(r, int64(0), 2, 4, 64),
		WeightsFirst: r.IntN(2) == 0, StorePieces: r.IntN(2) == 0}
	if over {
		recipe = recipe.With("spill", scheduler.Strategy{Name: "over",
			Decide: func(_ context.Context, d *scheduler.Draft) error {
				return graphturbo.Place(d.Schedule, scheduler.Placing{Rule: graphturbo.LongestLifetime, Over: true}, nil)
			}})
	}
	if apart {
		recipe = recipe.With("address", otherwise)
	}
	return recipe.With("weights", scheduler.Strategy{Name: "any",
		Decide: func(_ context.Context, d *scheduler.Draft) error {
			d.Lower.Generator = o
			return nil
		}})
}

// tally is what became of random programs: how close each term of the bound came to the simulated time, how many
// agreed with it, and why others were left out.
type tally struct {
	done    int
	several int  // on several kinds of core
	linked  int  // machines whose cores are linked
	narrow  bool // networks have elements of less than a byte
	closest map[string]float64
	others  map[string]int
}

// bounded schedules a random network on a random machine. No schedule is faster than the bound on all of them; its
// program computes what the network says, and its file gives the same time. With mixed, the cores are of several kinds.
func bounded(t *testing.T, seed uint64, mixed bool, sum *tally) {
	t.Helper()
	ctx, recipes := context.Background(), recipes.All()
	r := rand.New(rand.NewPCG(seed, 3))
	spec, src, recipe := anyMachine(r), anyNet(r, seed), recipes[int(seed)%len(recipes)]
	if sum.narrow {
		src = narrowed(src, seed)
	}
	if mixed {
		r := rand.New(rand.NewPCG(seed, 31))
		spec, recipe = anyKinds(r, spec), recipe.With("kinds", kindsAtRandom(r))
	} else if link(rand.New(rand.NewPCG(seed, 37)), spec) {
		sum.linked++
	}
	if err := spec.Validate(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if r.IntN(2) == 0 {
		recipe = anyOptions(r, recipe)
	} else if mixed && seed%2 == 0 {
		recipe = recipe.With("issue", scheduler.Strategy{Name: "units on parts", Decide: func(_ context.Context,
			d *scheduler.Draft) error {
			d.Lower.CrossLayer, d.Lower.CrossUnits = true, true
			return nil
		}})
	}
	batch := pick(r, int64(1), 2, 3, 4, 6, 8)
	chunk := min(pick(r, int64(0), 0, 1, 2), schedule.Shares(batch, spec.Clusters)[0])
	what := fmt.Sprintf("seed %d: %s of %s, batch %d, chunk %d", seed, recipe.Name, src.Name, batch, chunk)
	made, err := scheduler.Run(ctx, src, spec, batch, recipe, scheduler.Options{InPlace: r.IntN(2) == 0, Chunk: chunk})
	var tooBig *graphturbo.DoesNotFitError
	if errors.As(err, &tooBig) {
		sum.others["do not fit"]++
		return
	}
	if mixed && err != nil && strings.Contains(err.Error(), "cores of several kinds, expected one") {
		sum.others["exact bindings"]++
		return
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	sum.done++
	kinds := map[int]bool{}
	for i := range made.Schedule.Steps {
		kinds[made.Schedule.Steps[i].Kind] = true
	}
	if len(kinds) > 1 {
		sum.several++
	}
	if plans := graphs(made.Plans); made.Clusters == scheduler.OverBatch {
		_, err = interp.Run(made.Program, plans, seed)
	} else { // the default may divide the layers
		_, err = interp.Together(made.Program, plans[0], seed)
	}
	var coarse *interp.CoarseError
	switch {
	case errors.As(err, &coarse):
		sum.others[coarse.What]++
	case err != nil:
		t.Errorf("%s: %v", what, err)
	}
	restored(ctx, t, what, made, spec)
	if bound.Covers(made.Schedule) != nil || made.Lower.CrossUnits {
		sum.others["not covered"]++
		return
	}
	b, err := bound.Cold(ctx, src, made.Spec, batch)
	if err != nil {
		sum.others[err.Error()]++
		return
	}
	for _, term := range b.Terms {
		if term.Seconds > made.LatencySeconds() {
			t.Errorf("%s: %+v, simulated in %g s", what, term, made.LatencySeconds())
		}
		sum.closest[term.Name] = max(sum.closest[term.Name], term.Seconds/made.LatencySeconds())
	}
}

func TestBoundOfRandomNetworks(t *testing.T) {
	sum := &tally{closest: map[string]float64{}, others: map[string]int{}}
	bounded(t, 6002091, false, sum) // an input of fewer bytes than parts
	for i := *seed; sum.done < *programs; i++ {
		bounded(t, i, false, sum)
	}
	if sum.linked < sum.done/8 {
		t.Errorf("%d machines of %d programs have cores that are linked, expected more", sum.linked, sum.done)
	}
	if sum.closest["work"] < 0.3 || sum.closest["loads in a row"] < 0.3 {
		t.Errorf("the terms are at most %v of a simulated time, expected some to be close", sum.closest)
	}
	t.Logf("closest %v; besides %v", sum.closest, sum.others)
}

// narrowed is a network of which all elements, or those of some weights, take a byte or less.
func narrowed(src network.Network, seed uint64) network.Network {
	return network.Network{Name: src.Name + "-narrow", Graph: func(batch int64) (*model.Graph, error) {
		g, err := src.Graph(batch)
		if err != nil {
			return nil, err
		}
		r := rand.New(rand.NewPCG(seed, 41))
		all, some := r.IntN(3) == 0, make([]model.DType, len(g.Tensors))
		for i := range some {
			some[i] = pick(r, model.I4, model.F4, model.U2, model.F8, model.F16)
		}
		if all {
			g.Retype(model.F16, pick(r, model.I4, model.F4, model.U2))
			return g, nil
		}
		first := map[model.TensorID]bool{} // gives a result its type
		for _, op := range g.Ops {
			first[op.Inputs[0]] = true
		}
		for i, t := range g.Tensors {
			if t.Role == model.Constant && t.DType == model.F16 && !first[t.ID] {
				t.DType = some[i]
			}
		}
		return g, g.Validate()
	}}
}

// Weights and results of 2 and 4 bits load, stay and count as such, and lie where the program says.
func TestNarrowElements(t *testing.T) {
	sum := &tally{closest: map[string]float64{}, others: map[string]int{}, narrow: true}
	for i := *seed; sum.done < long(*programs); i++ {
		bounded(t, i, i%4 == 3, sum)
	}
	t.Logf("closest %v; besides %v", sum.closest, sum.others)
}

// Layers run on any kind of core that can: what cores of another kind have made comes over the links. With
// DSASCHED_LONG=1 in the environment 5000 programs run.
func TestMixedCores(t *testing.T) {
	sum := &tally{closest: map[string]float64{}, others: map[string]int{}}
	for i := *seed; sum.done < long(*programs); i++ {
		bounded(t, i, true, sum)
	}
	if sum.several < sum.done/2 {
		t.Errorf("%d of %d schedules on several kinds of core, expected half at least", sum.several, sum.done)
	}
	t.Logf("%d of %d on several kinds of core; closest %v; besides %v", sum.several, sum.done, sum.closest, sum.others)
}

// anyKinds makes a machine one of two or three kinds of core: its own, others like it of other extents, and such as run
// no products or nothing else.
func anyKinds(r *rand.Rand, s *hardware.Spec) *hardware.Spec {
	classes := []string{"matrix", "reduction", "element-wise", "injective"}
	s = s.Clone()
	s.CoreTypes = s.CoreTypes[:1]
	s.CoreTypes[0].Runs, s.CoreTypes[0].HasL1 = classes, true
	for k := range 1 + r.IntN(2) {
		t := s.Clone().CoreTypes[0]
		t.Name, t.Count = fmt.Sprintf("kind%d", k+1), pick(r, 1, 2, 3, 8)
		for i := range t.Units {
			if u := &t.Units[i]; u.Kind == hardware.Matrix {
				u.Rows, u.Cols = pick(r, 1, 4, 16), pick(r, 1, 4, 16)
			} else {
				u.Lanes = pick(r, 1, 8, 128)
			}
		}
		if r.IntN(3) == 0 {
			t.Runs = classes[1:]
		}
		s.CoreTypes = append(s.CoreTypes, t)
	}
	if len(s.CoreTypes[1].Runs) == len(classes) && r.IntN(3) == 0 {
		s.CoreTypes[0].Runs = pick(r, classes[:1], classes[1:])
	}
	if r.IntN(2) == 0 {
		slices.Reverse(s.CoreTypes)
	}
	return s
}

// kindsAtRandom gives each layer one of the kinds of core that run it.
func kindsAtRandom(r *rand.Rand) scheduler.Strategy {
	seed := r.Uint64()
	return scheduler.Strategy{Name: "any", Decide: func(_ context.Context, d *scheduler.Draft) error {
		r, kinds := rand.New(rand.NewPCG(seed, 1)), d.Spec.Kinds()
		d.LayerKinds = nil
		for _, layers := range d.Layers {
			var own []int
			for l := range layers {
				var can []int
				for k := range kinds {
					if schedule.Runs(kinds[k], d.Graph, layers[l].Ops) {
						can = append(can, k)
					}
				}
				own = append(own, pick(r, can...))
			}
			d.LayerKinds = append(d.LayerKinds, own)
		}
		return nil
	}}
}

// Heads that are read in another order than they are made: the problem has instances read what lies between, so
// that the order to begin with is none of its orders.
func TestOrderOfHeads(t *testing.T) {
	const seed = 11005360
	r := rand.New(rand.NewPCG(seed, 3))
	spec, net, opt := anyMachine(r), anyNet(r, seed), scheduler.Options{Chunk: 8}
	for _, name := range []string{"cross-layer", "exact-order", "exact-all"} {
		recipe, err := recipes.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		made, err := scheduler.Run(t.Context(), net, spec, 8, recipe, opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p, _, err := exact.OrderProblem(made.Schedule, opt)
		if err != nil {
			t.Fatal(err)
		}
		g := ordering.NewGraph(p)
		if name == "cross-layer" && slices.Equal(g.Obey(made.Schedule.Order), made.Schedule.Order) {
			t.Error("the order is one of the problem's")
		}
	}
	if _, err := answers.Compare(t.Context(), net, spec, 8,
		answers.CompareOptions{Options: opt, Decisions: []string{"order"}}); err != nil {
		t.Error(err)
	}
}

// Of a table that a layer looks up twice, both look-ups' rows pass, but no more than a small table has.
func TestLookUpsOfOneTable(t *testing.T) {
	for _, rows := range []int64{4, 2000} {
		net := network.Network{Name: "look-ups", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("look-ups")
			table := b.Param("table", model.F16, rows, 16)
			x := b.Op("Gather", "x", model.Attr{}, table, b.Input("i", model.I32, batch, 8))
			y := b.Op("Gather", "y", model.Attr{}, table, b.Input("j", model.I32, batch, 8))
			b.Output(b.Op("Add", "add", model.Attr{}, x, y))
			return b.Build()
		}}
		for seed := range uint64(8) {
			spec := machine(rand.New(rand.NewPCG(seed, 5)))
			spec.DDR.BandwidthBytesPerSecond = 1e8 // all waits for it
			for _, name := range []string{"cross-layer", "astitch"} {
				recipe, err := recipes.Lookup(name)
				if err != nil {
					t.Fatal(err)
				}
				made, err := scheduler.Run(context.Background(), net, spec, 6, recipe, scheduler.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := interp.Run(made.Program, graphs(made.Plans), seed); err != nil {
					t.Errorf("%d rows, seed %d, %s: %v", rows, seed, name, err)
				}
				b, err := bound.Cold(context.Background(), net, made.Spec, 6)
				if err != nil {
					t.Fatal(err)
				}
				if b.Seconds > made.LatencySeconds() {
					t.Errorf("%d rows, seed %d, %s: the bound is %g s by %s, simulated in %g s", rows, seed, name, b.Seconds, b.Term,
						made.LatencySeconds())
				}
			}
		}
	}
}

// Products of fewer rows than the parameters behind them, each of which a piece brings: pieces without
// rows take no time on the matrix unit.
func TestBoundOfFewRows(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	closest := 0.0
	for i := range uint64(48) {
		r := rand.New(rand.NewPCG(i, 4))
		spec, rows, params := machine(r), 1+r.Int64N(5), 1+r.IntN(12)
		spec.LaunchSeconds, spec.DDR.LatencySeconds, spec.CoreLink.LatencySeconds = 0, 0, 0
		spec.DDR.BandwidthBytesPerSecond *= 1000
		spec.DDRLink.BandwidthBytesPerSecond *= 1000
		spec.CoreLink.BandwidthBytesPerSecond *= 1000
		spec.L1.SizeBytes, spec.L1WeightBytes, spec.LLB = 64<<10, 64<<10, nil
		for k := range spec.CoreTypes[0].Units {
			if u := &spec.CoreTypes[0].Units[k]; u.Kind == hardware.Matrix {
				u.FillCycles, u.BlockCycles = 1000, 0
			} else {
				u.FillCycles, u.Lanes = 0, pick(r, 16, 64)
			}
		}
		src := network.Network{Name: "few rows", Graph: func(batch int64) (*model.Graph, error) {
			g := &grower{Rand: rand.New(rand.NewPCG(i, 4)), b: model.NewBuilder("few rows")}
			x := g.b.Input("x", model.F16, batch, rows, 8)
			x = g.op("MatMul", model.Attr{}, x, g.param(8, 500))
			for range params {
				x = g.op("Add", model.Attr{}, x, g.param(500))
			}
			g.b.Output(g.op("Gelu", model.Attr{}, x))
			return g.b.Build()
		}}
		made, err := scheduler.Run(context.Background(), src, spec, 1, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := bound.Cold(context.Background(), src, made.Spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		if b.Seconds > made.LatencySeconds() {
			t.Errorf("%d: %d rows, %d parameters: %s says %g s, simulated in %g s", i, rows, params, b.Term, b.Seconds,
				made.LatencySeconds())
		}
		closest = max(closest, b.Seconds/made.LatencySeconds())
	}
	if closest < 0.9 {
		t.Errorf("the bound is at most %g of a simulated time, expected some to be close", closest)
	}
	t.Logf("the closest is %g of the simulated time", closest)
}

// What one kind of core makes part by part moves to the same core of another kind when that part is complete.
func TestPartsOfOtherKinds(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec.CoreTypes[0].Runs, spec.CoreTypes[0].HasL1 = []string{"matrix"}, true
	vector := spec.Clone().CoreTypes[0]
	vector.Name, vector.Runs = "vector", []string{"reduction", "element-wise", "injective"}
	spec.CoreTypes = append(spec.CoreTypes, vector)
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	net := network.Network{Name: "turns", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("turns")
		x := b.Input("x", model.F16, 256*batch, 32)
		for i := range 3 {
			x = b.Op("MatMul", fmt.Sprintf("product%d", i), model.Attr{}, x, b.Param(fmt.Sprintf("w%d", i), model.F16, 32, 32))
			x = b.Op("Relu", fmt.Sprintf("relu%d", i), model.Attr{}, x)
		}
		b.Output(x)
		return b.Build()
	}}
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err = recipe.Replace(scheduler.Options{}, scheduler.Pick{Stage: "group", Strategy: "one"},
		scheduler.Pick{Stage: "split", Strategy: "none"}, scheduler.Pick{Stage: "issue", Strategy: "cross-unit"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduler.Run(t.Context(), net, spec, 4, recipe, scheduler.Options{Chunk: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := interp.Run(made.Program, graphs(made.Plans), 1); err != nil {
		t.Error(err)
	}
	moves := func(c isa.Command) bool { return c.Kind == isa.Exchange }
	if !slices.ContainsFunc(made.Program.Commands, moves) {
		t.Error("nothing moves between kinds of core")
	}
}

// restored fails if a schedule, written to a file and read again, takes another time.
func restored(ctx context.Context, t *testing.T, what string, made *scheduler.Result, spec *hardware.Spec) {
	t.Helper()
	if data, err := made.File(schedulefile.Origin{}).Write(); err != nil {
		t.Errorf("%s: %v", what, err)
	} else if f, err := schedulefile.Read("file", data); err != nil {
		t.Errorf("%s: %v", what, err)
	} else if again, err := scheduler.Restore(ctx, f, spec); err != nil {
		t.Errorf("%s: %v", what, err)
	} else if again.LatencySeconds() != made.LatencySeconds() {
		t.Errorf("%s: %g s, of the file %g s", what, made.LatencySeconds(), again.LatencySeconds())
	}
}
