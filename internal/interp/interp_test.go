package interp_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// sample is how many of n random cases run: all with DSASCHED_FULL=1 in the environment, else a third.
func sample(n int) int {
	if os.Getenv("DSASCHED_FULL") != "" {
		return n
	}
	return (n + 2) / 3
}

// long is n, or 5000 with DSASCHED_LONG=1 in the environment.
func long(n int) int {
	if os.Getenv("DSASCHED_LONG") != "" {
		return 5000
	}
	return n
}

var (
	programs = flag.Int("programs", sample(120), "random programs to interpret")
	nests    = flag.Int("nests", sample(160), "random nests of single kernels to interpret")
	seed     = flag.Uint64("seed", 0, "of the first random program")
)

// graphs lists the network of each iteration of each cluster.
func graphs(plans [][]lower.Segment) [][]*model.Graph {
	list := make([][]*model.Graph, len(plans))
	for k, plan := range plans {
		for _, seg := range plan {
			for range seg.Iterations {
				list[k] = append(list[k], seg.Schedule.Graph)
			}
		}
	}
	return list
}

// random schedules and interprets a random network, with odd one whose extents do not
// divide, in chunks and on cores likewise.
func random(t *testing.T, seed uint64, recipes []scheduler.Recipe, odd bool, uneven schedule.Uneven) (string,
	interp.Report, error) {
	r := rand.New(rand.NewPCG(seed, 2))
	spec, recipe := machine(r), recipes[int(seed)%len(recipes)]
	chunk := pick(r, int64(1), 2, 4)
	if odd {
		chunk += r.Int64N(2)
		spec.CoreTypes[0].Count *= pick(r, 1, 2)
	}
	batch := int64(spec.Clusters)*chunk*pick(r, int64(1), 2) + r.Int64N(2)
	what := fmt.Sprintf("seed %d: %s, uneven %v, batch %d, chunk %d, %d clusters of %d cores, L1 %d + %d, LLB %v", seed,
		recipe.Name, uneven, batch, chunk,
		spec.Clusters, spec.CoreTypes[0].Count, spec.L1.SizeBytes, spec.L1WeightBytes, spec.LLB)
	if seed/2%2 == 0 {
		what += ", apart, weights first, stores in pieces"
		recipe = recipe.With("address", otherwise)
	}
	made, err := scheduler.Run(context.Background(), net(seed, odd), spec, batch, recipe,
		scheduler.Options{Chunk: chunk, Uneven: uneven, InPlace: r.IntN(2) == 0})
	if err != nil {
		return what, interp.Report{}, err
	}
	if r.IntN(2) == 0 {
		what += ", random nests"
		nested(t, made, r)
	}
	report, err := interp.Run(made.Program, graphs(made.Plans), seed)
	return what, report, err
}

// otherwise is what is tried beside the recipes' own.
var otherwise = scheduler.Strategy{Name: "apart, weights first and three at a time, stores in pieces",
	Decide: func(_ context.Context, d *scheduler.Draft) error {
		graphturbo.Apart(d.Schedule)
		d.Lower.WeightsFirst, d.Lower.StorePieces, d.Lower.LoadTiles = true, true, 3
		return nil
	}}

// softmaxes is a network of products and softmaxes of what they make, which others may read as well.
func softmaxes(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("softmaxes-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		g := &grower{Rand: rand.New(rand.NewPCG(seed, 8)), b: model.NewBuilder("softmaxes")}
		x := g.b.Input("x", model.F16, batch, 20+g.Int64N(12), 4)
		for range 2 {
			y := g.op("MatMul", model.Attr{}, x, g.param(g.shape(x)[2], 30+g.Int64N(12)))
			z, n := y, g.shape(y)[2]
			if g.IntN(2) == 0 {
				z = g.op("MatMul", model.Attr{}, y, g.param(n, n))
				g.b.Output(z) // a layer by itself, which may still run when the softmax begins
			}
			if x = g.op(pick[model.Kind](g.Rand, "Softmax", "Softmax", "Silu"), model.Attr{Axis: 2}, y); z != y {
				x = g.op("Add", model.Attr{}, z, x)
			}
			if g.IntN(2) == 0 { // what a product is added to
				n := g.shape(x)[2]
				z := g.op("Relu", model.Attr{}, g.op("MatMul", model.Attr{}, x, g.param(n, 8)))
				x = g.op("Relu", model.Attr{}, g.op("Add", model.Attr{}, x, g.op("MatMul", model.Attr{}, z, g.param(8, n))))
			}
		}
		g.b.Output(x)
		return g.b.Build()
	}}
}

// Results that take the place of operands, with their addresses apart or not.
func TestOverwriting(t *testing.T) {
	over := scheduler.Strategy{Name: "over", Decide: func(_ context.Context, d *scheduler.Draft) error {
		return graphturbo.Place(d.Schedule, scheduler.Placing{Rule: graphturbo.LongestLifetime, Over: true}, nil)
	}}
	recipes := slices.DeleteFunc(recipes.All(), func(r scheduler.Recipe) bool { return r.Pick("issue") != "cross-layer" })
	done, replaced, added := 0, 0, 0
	for i := uint64(0); done < *programs/3; i++ {
		r := rand.New(rand.NewPCG(i, 7))
		recipe := recipes[int(i)%len(recipes)].With("spill", over)
		if i%2 == 0 {
			recipe = recipe.With("address", otherwise)
		}
		spec, src := machine(r), net(i, i%3 == 0)
		if i%4 > 0 {
			src = softmaxes(r.Uint64())
			spec.L1.SizeBytes *= 16
		}
		made, err := scheduler.Run(context.Background(), src, spec, 8, recipe, scheduler.Options{Chunk: 1 + r.Int64N(2)})
		if err == nil {
			for k := range made.Schedule.Steps {
				st := &made.Schedule.Steps[k]
				switch from, rows := made.Schedule.Overwritten(st); {
				case rows > 1:
					replaced++
				case from != nil && made.Schedule.Graph.OnMatrixUnit(
					made.Schedule.Graph.Op(
						made.Schedule.Layers[made.Schedule.Instances.Instances[st.Instance].Group][st.Layer].Anchor)):
					added++
				}
			}
			_, err = interp.Run(made.Program, graphs(made.Plans), i)
		}
		var coarse *interp.CoarseError
		var tooBig *graphturbo.DoesNotFitError
		switch {
		case errors.As(err, &coarse) || errors.As(err, &tooBig):
			continue
		case err != nil:
			t.Errorf("seed %d, %s: %v", i, recipe.Name, err)
		}
		done++
	}
	if min(replaced, added) < done/8 {
		t.Errorf("%d results took the place of rows and %d that of what is added to products in %d programs",
			replaced, added, done)
	}
}

// What a product is added to has its sums in its place, unless the layer reads it again.
func TestAddendReadAgain(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	recipe = recipe.With("spill", scheduler.Strategy{Name: "over",
		Decide: func(_ context.Context, d *scheduler.Draft) error {
			return graphturbo.Place(d.Schedule, scheduler.Placing{Rule: graphturbo.LongestLifetime, Over: true}, nil)
		}})
	for _, kinds := range [][]model.Kind{{}, {"Add"}, {"Mul"}, {"Sigmoid", "Mul"}} {
		src := network.Network{Name: "addend", Graph: func(batch int64) (*model.Graph, error) {
			g := &grower{Rand: rand.New(rand.NewPCG(1, 1)), b: model.NewBuilder("addend")}
			product := func(x model.TensorID) model.TensorID { return g.op("MatMul", model.Attr{}, x, g.param(16, 16)) }
			x := product(g.b.Input("x", model.F16, batch, 32, 16))
			z := g.op("Relu", model.Attr{}, product(x))
			y := g.op("Add", model.Attr{}, product(x), z)
			for _, kind := range kinds {
				if kind == "Sigmoid" {
					y = g.op(kind, model.Attr{}, y)
				} else {
					y = g.op(kind, model.Attr{}, y, z)
				}
			}
			g.b.Output(product(y))
			return g.b.Build()
		}}
		made, err := scheduler.Run(context.Background(), src, machine(rand.New(rand.NewPCG(1, 1))), 3, recipe,
			scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, found := made.Schedule, 0
		for i := range s.Steps {
			if from, _ := s.Overwritten(&s.Steps[i]); from != nil {
				found++
			}
		}
		if (found > 0) != (len(kinds) == 0) {
			t.Errorf("%d results in the place of an addend that is read again by %v", found, kinds)
		}
	}
}

// single is a network of one kernel: a product, a convolution or a vector operator, and what
// may follow it.
func single(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("single-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		g := &grower{Rand: rand.New(rand.NewPCG(seed, 5)), b: model.NewBuilder("single"), odd: rand.New(rand.NewPCG(seed, 6))}
		x := g.b.Input("x", model.F16, batch, g.extent(2, 4, 8), g.extent(4, 6, 8, 12), g.extent(4, 8))
		in := x
		switch g.IntN(7) {
		case 5, 6: // few outputs, whose reduction cores may share
			x = g.b.Input("row", model.F16, batch, pick(g.Rand, int64(16), 24, 48))
			if in = x; g.IntN(2) == 0 {
				x = g.b.Input("column", model.F16, batch, pick(g.Rand, int64(8), 16, 24), 1, 1+g.Int64N(2))
				in = x
				x = g.conv(x, g.extent(1, 2, 4), 1, 1, 1)
				break
			}
			x = g.dense(x, g.extent(1, 2, 4))
		case 0, 1:
			x = g.conv(x, g.extent(4, 6, 8), pick(g.Rand, int64(1), 3), 1+g.Int64N(2), 1)
		case 2:
			x = g.conv(x, g.shape(x)[1], 3, 1, g.shape(x)[1]) // depthwise
		case 3:
			x = g.dense(x, g.extent(4, 8, 16))
		default:
			x = g.op(pick[model.Kind](g.Rand, "Relu", "Softmax", "Silu"), model.Attr{Axis: 3}, x)
		}
		if g.IntN(2) == 0 {
			x = g.op(pick[model.Kind](g.Rand, "Relu", "Sigmoid"), model.Attr{}, x)
		}
		if g.shape(x).Equal(g.shape(in)) && g.IntN(2) == 0 {
			x = g.op("Add", model.Attr{}, x, in)
		}
		g.b.Output(x)
		return g.b.Build()
	}}
}

// Kernels by random nests compute what their operators say. More of them:
// scripts/interpret.sh.
func TestNests(t *testing.T) {
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	done, coarse, kinds := 0, 0, map[string]bool{}
	var forms [4]int // programs with stages of a tile, of all tiles, of weights, with rfactor
	try := func(i uint64) {
		r := rand.New(rand.NewPCG(i, 7))
		spec := machine(r)
		spec.Clusters = 1
		if i%2 == 0 {
			spec.CoreTypes[0].Count = 4
		}
		made, err := scheduler.Run(context.Background(), single(i), spec, 1+r.Int64N(4), recipe, scheduler.Options{})
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			return
		}
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		base := made.Plans
		for range 8 {
			made.Plans = nil
			for _, plan := range base {
				var copies []lower.Segment
				for _, seg := range plan {
					s := *seg.Schedule
					s.Steps, s.Values = slices.Clone(s.Steps), slices.Clone(s.Values)
					copies = append(copies, lower.Segment{Schedule: &s, Iterations: seg.Iterations})
				}
				made.Plans = append(made.Plans, copies)
			}
			nested(t, made, r)
			_, err := interp.Run(made.Program, graphs(made.Plans), i)
			var iterations *interp.CoarseError
			switch {
			case errors.As(err, &iterations):
				coarse++
				continue
			case err != nil:
				t.Errorf("seed %d: %v", i, err)
			}
			s := made.Plans[0][0].Schedule
			for k := range s.Steps {
				n := s.Steps[k].Nest
				kinds[fmt.Sprint(n.Vector, n.Store, n.ColumnsFirst, n.Stay, n.Tiles > 1, n.Depth > 2, len(n.Columns) > 1,
					len(n.Reduction) > 1, n.Loads > 1, n.Stage > 0, n.Once, n.Group > 0, n.Rfactor)] = true
				for f, has := range [...]bool{n.Stage > 0 && !n.Once, n.Once, n.Group > 0, n.Rfactor > 0} {
					if has {
						forms[f]++
					}
				}
			}
			done++
		}
	}
	try(20002) // sums of parts that are no boxes
	for i := *seed; done < *nests; i++ {
		try(i)
	}
	if len(kinds) < min(30, *nests/10) {
		t.Errorf("%d forms of nests in %d programs", len(kinds), done)
	}
	if slices.Min(forms[:3]) == 0 || forms[3] == 0 && *nests >= 2000 {
		t.Errorf("programs with stages of a tile, of all tiles, of weights, with shared reductions: %v", forms)
	}
	t.Logf(
		"%d programs of single kernels agree, of %d forms: %d with a stage in the LLB for each tile, %d for all, %d for weights, %d with shared reductions; besides, %d whose commands stand for several iterations",
		done, len(kinds), forms[0], forms[1], forms[2], forms[3], coarse)
}

// randomNest draws a nest of a step from Ansor's, where that is part of the project.
var randomNest = func(*schedule.Schedule, int, *cost.Model, *rand.Rand) *schedule.Nest { return nil }

// nested gives every step a random nest and lowers the result's plans again.
func nested(t *testing.T, made *scheduler.Result, r *rand.Rand) {
	t.Helper()
	m, err := cost.New(made.Spec)
	if err != nil {
		t.Fatal(err)
	}
	known := map[*schedule.Schedule]bool{}
	for _, plan := range made.Plans {
		for _, seg := range plan {
			if known[seg.Schedule] {
				continue
			}
			known[seg.Schedule] = true
			for i := range seg.Schedule.Steps {
				if from, _ := seg.Schedule.Overwritten(&seg.Schedule.Steps[i]); from != nil {
					continue // its rows are written where they are read, in the order of the rule's nest
				}
				if err := seg.Schedule.Follow(i, randomNest(seg.Schedule, i, m, r)); err != nil {
					t.Fatal(err)
				}
			}
			if err := schedule.CheckPlan(seg.Schedule); err != nil {
				t.Fatal(err)
			}
		}
	}
	if made.Program, err = lower.Program(made.Program.Name, made.Spec, made.Plans, made.Lower); err != nil {
		t.Fatal(err)
	}
	result, err := sim.Run(context.Background(), made.Program, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.CheckBuffers(made.Program, result); err != nil {
		t.Error(err)
	}
}

// lowered makes the program of a random network on a small machine with an LLB.
func lowered(t *testing.T, seed uint64, recipe scheduler.Recipe) *scheduler.Result {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	spec := machine(r)
	spec.Clusters, spec.CoreTypes[0].Count, spec.L1WeightBytes = 1, 4, 2048
	spec.L1.SizeBytes = 2048
	spec.LLB = &hardware.Memory{SizeBytes: 32 << 10, BandwidthBytesPerSecond: 256e9}
	made, err := scheduler.Run(context.Background(), net(seed, false), spec, 4, recipe,
		scheduler.Options{Chunk: 2, Uneven: schedule.UnevenNone})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := interp.Run(made.Program, graphs(made.Plans), seed); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return made
}

// Without an LLB and without broadcast, each core keeps its own part of the weights; another
// chunk may spread the same layer otherwise, so that cores need other parts of equal size.
func TestKeptWeights(t *testing.T) {
	if what, _, err := random(t, 78, recipes.All(), false, schedule.UnevenNone); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Where a core's columns of weights begin depends on how many cores share them: with a nest of
// its own, a chunk may cut other columns into tiles of equal number and place.
func TestTilesOfSharedWeights(t *testing.T) {
	if what, _, err := random(t, 1203791, recipes.All(), true, schedule.UnevenOutputs); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// The input of a convolution that is added to its result must stay until it has been added.
func TestInputOfMatrixAndVectorWork(t *testing.T) {
	for _, seed := range []uint64{2326, 2350, 2372} {
		if what, _, err := random(t, seed, recipes.All(), false, schedule.UnevenNone); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Programs of all recipes on small machines compute what their networks say. More of
// them: scripts/interpret.sh.
func TestRandom(t *testing.T) { interpret(t, recipes.All(), *programs) }

// So do those in which units begin on parts of results.
func TestPartsOfResults(t *testing.T) {
	recipes := recipes.All()
	for i := range recipes {
		var err error
		recipes[i], err = recipes[i].Replace(scheduler.Options{}, scheduler.Pick{Stage: "issue", Strategy: "cross-unit"})
		if err != nil {
			t.Fatal(err)
		}
	}
	interpret(t, recipes, *programs/4)
}

func interpret(t *testing.T, recipes []scheduler.Recipe, programs int) {
	t.Helper()
	done, refused := 0, 0
	coarse := map[string]int{}
	var total interp.Report
	for i := *seed; done < programs; i++ {
		// By turns of all recipes: two in three with odd extents, one in six each with the
		// other settings.
		turn := i / uint64(len(recipes))
		what, report, err := random(t, i, recipes, turn%3 > 0,
			[...]schedule.Uneven{schedule.UnevenAll, schedule.UnevenAll, schedule.UnevenOutputs, schedule.UnevenAll,
				schedule.UnevenAll, schedule.UnevenNone}[turn%6])
		var fault *interp.FaultError
		var iterations *interp.CoarseError
		var tooBig *graphturbo.DoesNotFitError
		switch {
		case errors.As(err, &fault):
			t.Errorf("%s: %v", what, err)
			done++
		case errors.As(err, &iterations):
			coarse[iterations.What]++
		case errors.As(err, &tooBig):
			refused++
		case err != nil:
			t.Fatalf("%s: %v", what, err)
		default:
			done++
			total.Commands += report.Commands
			total.Outputs += report.Outputs
			total.Products += report.Products
			total.Stages += report.Stages
			total.Pages += report.Pages
		}
	}
	t.Logf("%d programs: %+v; besides, %v and %d that do not fit", done, total, coarse, refused)
}

// Layers inside kernels may be bound in any way, whatever their group's binding is.
func TestLayerBindings(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	stage, err := scheduler.LookupStage("bind")
	if err != nil {
		t.Fatal(err)
	}
	alg4, err := stage.Lookup("alg4")
	if err != nil {
		t.Fatal(err)
	}
	done, other := 0, 0
	for i := uint64(0); done < *programs/3; i++ {
		r := rand.New(rand.NewPCG(i, 9))
		own := scheduler.Strategy{Name: "random", Decide: func(ctx context.Context, d *scheduler.Draft) error {
			d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
			for k, layers := range d.Layers {
				for _, l := range layers {
					b := schedule.One(len(d.Graph.Tensor(l.Outputs[0]).Shape))
					for n := r.IntN(3); n >= 0; n-- {
						b[r.IntN(len(b))] *= 2
					}
					d.LayerBindings[k] = append(d.LayerBindings[k], b)
				}
			}
			return alg4.Decide(ctx, d)
		}}
		made, err := scheduler.Run(context.Background(), net(i, i%2 == 0), machine(r), 4, recipe.With("bind", own),
			scheduler.Options{Chunk: 1 + r.Int64N(2)})
		if err == nil {
			s := made.Schedule
			for k := range s.Steps {
				if st := &s.Steps[k]; st.Binding.Equal(s.LayerBindings[s.Instances.Instances[st.Instance].Group][st.Layer]) &&
					st.Cores > 1 {
					other++
				}
			}
			_, err = interp.Run(made.Program, graphs(made.Plans), i)
		}
		var coarse *interp.CoarseError
		var tooBig *graphturbo.DoesNotFitError
		switch {
		case errors.As(err, &coarse) || errors.As(err, &tooBig):
			continue
		case err != nil:
			t.Errorf("seed %d: %v", i, err)
		}
		done++
	}
	if other < done {
		t.Errorf("%d layers bound at random in %d programs", other, done)
	}
}

// bags is a network with look-ups that frameworks write as sums over bags.
func bags(batch int64) (*model.Graph, error) {
	b := model.NewBuilder("bags")
	all := []model.TensorID{b.Input("dense", model.F16, batch, 8)}
	for k := range 3 {
		all = append(all, b.Op("Gather", fmt.Sprint("row", k), model.Attr{Variant: grain.Bag},
			b.Param(fmt.Sprint("table", k), model.F16, 20, 8), b.Input(fmt.Sprint("i", k), model.I32, batch)))
	}
	x := b.Op("Concat", "concat", model.Attr{Axis: 1}, all...)
	b.Output(b.Op("Relu", "relu", model.Attr{},
		b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, 32, 16))))
	return b.Build()
}

// The same at other grains: softmaxes, normalisations, activations and look-ups in parts,
// in kernels of TVM's pass, stitched, and in instances.
func TestGrains(t *testing.T) {
	recipes := recipes.All()
	done, parts := 0, 0
	for i := uint64(0); done < *programs/4; i++ {
		r := rand.New(rand.NewPCG(i, 3))
		whole, to := net(i, false), pick(r, grain.Framework, grain.Primitive)
		src := network.Network{Name: whole.Name, Graph: func(batch int64) (*model.Graph, error) {
			g, err := whole.Graph(batch)
			if i%8 == 0 {
				g, err = bags(batch)
			}
			if err != nil {
				return nil, err
			}
			e, err := grain.To(g, to)
			parts += e.Expanded
			return e.Graph, err
		}}
		recipe := recipes[int(i)%len(recipes)]
		made, err := scheduler.Run(context.Background(), src, machine(r), 4, recipe, scheduler.Options{Chunk: 2})
		if err == nil {
			_, err = interp.Run(made.Program, graphs(made.Plans), i)
		}
		var coarse *interp.CoarseError
		var tooBig *graphturbo.DoesNotFitError
		switch {
		case errors.As(err, &coarse) || errors.As(err, &tooBig):
			continue
		case err != nil:
			t.Errorf("seed %d, %s, %s: %v", i, to, recipe.Name, err)
		}
		done++
	}
	if parts < done/2 {
		t.Errorf("%d operators were taken apart in %d programs", parts, done)
	}
}
