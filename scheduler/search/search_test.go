package search

import (
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// Scores grow with latency and energy, however long the latency, and a schedule that takes
// static power alone takes no longer than its score allows.
func TestScores(t *testing.T) {
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range Objectives {
		last := 0.0
		for ps := int64(1e6); ps < 1e18; ps *= 10 {
			score := o.score(ps, chip.Energy.StaticWatts*float64(ps)*1e-12)
			if score <= last || math.IsInf(score, 1) {
				t.Errorf("%s: %g of %d ps, after %g", o, score, ps, last)
			}
			last = score
			if most := o.longest(score, chip); math.Abs(float64(most)/float64(ps)-1) > 1e-5 {
				t.Errorf("%s: at most %d ps by its score of %g, it takes %d", o, most, score, ps)
			}
		}
		if x := o.score(math.MaxInt64, 0); !math.IsInf(x, 1) {
			t.Errorf("%s: %g of more than the limit", o, x)
		}
	}
}

// A default that the limit ended is told apart from one that can't be had, and from one that ended.
func TestLateDefault(t *testing.T) {
	net, chip, _ := greedyFor(t, "toy-fig3")
	for limit, want := range map[time.Duration]bool{time.Nanosecond: true, 0: false} {
		_, known, late, err := BestOptions{}.from(t.Context(), limit, net, chip, 8)
		if late != want || (known == nil) != want || err != nil {
			t.Errorf("within %v: late is %v, found %v, error %v", limit, late, known != nil, err)
		}
	}
}

// Schedules that have one name take the same time, and moves often give one that is known.
func TestDecidedNames(t *testing.T) {
	recipe, err := recipes.Lookup(recipes.Greedy)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		network, machine string
		batch            int64
	}{{"squeezenet", "stcp920", 8}, {"toy-fig3", "ipu", 4}, {"bert-128", "goya", 3}} {
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		made, err := scheduler.Run(t.Context(), net, chip, c.batch, recipe, scheduler.Options{Chunk: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := &seeker{w: scheduler.NewProblem(net, chip, made.Spec, c.batch, scheduler.Options{}),
			opt:   BestOptions{Objective: ByLatency},
			found: &Found{}}
		x := &searcher{seeker: s, start: startAt{Decisions: made.Decisions(false, false)},
			rng: rand.New(rand.NewPCG(3, 0))}
		if err := x.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.moveFrom(x.best)
		times, again := map[[sha256.Size]byte]int64{}, 0
		for range 120 {
			m, ok := x.moves[x.pick()].make(x)
			if !ok {
				continue
			}
			r, name, err := s.w.Decided(t.Context(), m.Decisions)
			if err != nil {
				continue
			}
			o := s.w.Judge(t.Context(), m.Decisions, r, 0)
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			if ps, there := times[name]; there {
				if again++; ps != o.Ps {
					t.Errorf("%s: %d and %d ps of schedules of one name", c.network, ps, o.Ps)
				}
			}
			times[name] = o.Ps
		}
		if again == 0 || len(times) < 10 {
			t.Errorf("%s: %d names, %d of them known", c.network, len(times), again)
		}
	}
}

// searchFrom is a search that starts from the schedule of a recipe.
func searchFrom(t testing.TB, net network.Network, chip *hardware.Spec, batch int64, recipe scheduler.Recipe,
	chunk int64, seed uint64) *searcher {
	t.Helper()
	made, err := scheduler.Run(t.Context(), net, chip, batch, recipe, scheduler.Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	s := &seeker{w: scheduler.NewProblem(net, chip, made.Spec, batch, scheduler.Options{}),
		opt:   BestOptions{Objective: ByLatency},
		found: &Found{}, starts: map[family]startAt{}}
	x := &searcher{seeker: s, start: startAt{Decisions: made.Decisions(false, false)},
		rng: rand.New(rand.NewPCG(seed, 0))}
	if err := x.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.moveFrom(x.best)
	return x
}

// Programs lowered in the memory of those before them, which remembers what layers compute, have the same commands as
// alone, after moves of all kinds.
func TestMovesInMemory(t *testing.T) {
	for _, c := range []struct {
		network, machine, recipe string
		batch, chunk             int64 // of a cluster
	}{{"squeezenet", "stcp920", recipes.Greedy, 3, 2}, {"toy-fig5", "goya", recipes.Greedy, 2, 2},
		{"mobilenetv2", "stcp920", "tiled-groups", 4, 4}, {"bert-128", "a100", recipes.Greedy, 1, 1},
		{"resnet18", "ipu", recipes.Greedy, 1, 1}, {"mamba-block", "stcp920", "tiled-llb", 1, 1}} {
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := recipes.Lookup(c.recipe)
		if err != nil {
			t.Fatal(err)
		}
		recipe.Fallback = nil
		x := searchFrom(t, net, chip, c.batch*int64(chip.Clusters), recipe, c.chunk, 3)
		memory, times := &lower.Memory{}, map[int64]bool{}
		for try, done := 0, 0; done < 24 && try < 400; try++ {
			m, ok := x.moves[try%len(x.moves)].make(x)
			if !ok {
				continue
			}
			r, _, err := x.w.Decided(t.Context(), m.Decisions)
			if err != nil {
				continue
			}
			done++
			alone, _, err := lower.Outline("", r.Spec, r.Plans, r.Lower)
			opt := r.Lower
			opt.Memory = memory
			p, alike, other := lower.Outline("", r.Spec, r.Plans, opt)
			if (err == nil) != (other == nil) {
				t.Fatalf("%s on %s, %s: %v, alone %v", c.network, c.machine, x.moves[try%len(x.moves)].name, other, err)
			}
			if err != nil {
				continue
			}
			if !reflect.DeepEqual(p.Commands, alone.Commands) {
				t.Fatalf("%s on %s, %s: other commands than alone", c.network, c.machine, x.moves[try%len(x.moves)].name)
			}
			ps, _, err := sim.Latency(t.Context(), p, alike, 0)
			if err != nil {
				t.Fatal(err)
			}
			if times[ps] = true; try%7 > 0 {
				continue
			}
			// All of the program, with every check.
			if whole, err := x.w.Result(t.Context(), m.Decisions); err == nil && whole.Sim.TotalPs != ps {
				t.Errorf("%s on %s, %s: %d ps, its outline %d", c.network, c.machine, x.moves[try%len(x.moves)].name,
					whole.Sim.TotalPs, ps)
			}
		}
		if len(times) < 4 {
			t.Errorf("%s on %s: schedules of %d different times", c.network, c.machine, len(times))
		}
	}
}

// Moves on nests give schedules that pass all checks, in the time of the outline and, made by a problem that knows
// nothing yet, in the same: alone, with others, and for other groups.
func TestNestMoves(t *testing.T) {
	for _, c := range []struct {
		network, machine, recipe string
	}{{"gpt2-decode", "a100", "tiled-llb"}, {"squeezenet", "goya", "tiled-llb"}, {"toy-fig3", "stcp920", "tiled-llb"},
		{"squeezenet", "v100", "tvm-llb"}} {
		net, err := network.Open(c.network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := recipes.Lookup(c.recipe)
		if err != nil {
			t.Fatal(err)
		}
		batch := int64(chip.Clusters)
		x := searchFrom(t, net, chip, batch, recipe, 1, 5)
		w, spec, took := x.w, x.best.Schedule.Spec, x.best.Ps
		others, better := 0, 0
		for try := 0; others < 12 && try < 300; try++ {
			i := slices.IndexFunc(x.moves, func(m change) bool { return m.name == []string{"tile", "cut"}[try%2] })
			m, ok := x.moves[i].make(x)
			if !ok {
				continue
			}
			r, err := w.Result(t.Context(), m.Decisions)
			if scheduler.TooLarge(err) {
				continue
			}
			if err != nil {
				t.Fatalf("%s on %s: %v", c.network, c.machine, err)
			}
			fresh := scheduler.NewProblem(w.Net, chip, spec, batch, scheduler.Options{})
			known, again := w.Evaluate(t.Context(), m.Decisions, 0), fresh.Evaluate(t.Context(), m.Decisions, 0)
			if known.Ps != r.Sim.TotalPs || again.Ps != r.Sim.TotalPs {
				t.Errorf("%s on %s: %d ps, its outline %d, without what was known %d", c.network, c.machine, r.Sim.TotalPs,
					known.Ps, again.Ps)
			}
			if r.Sim.TotalPs != took {
				others++
			}
			if r.Sim.TotalPs < x.best.Ps {
				better++
				x.moveFrom(candidate{Decisions: m.Decisions, spans: m.spans, Outcome: known})
			}
		}
		if others < 5 {
			t.Errorf("%s on %s: %d schedules of another time, %d of them faster", c.network, c.machine, others, better)
		}
	}
}

// The plan of a schedule that the search found, read from its file, makes the same schedule again.
func TestPlanOfFile(t *testing.T) {
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bert-128", "mobilenetv2"} {
		net, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := Best(t.Context(), net, chip, 4, BestOptions{Evaluations: 60, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Restore(t.Context(), found.Result.File(schedulefile.Origin{}), chip)
		if err != nil {
			t.Fatal(err)
		}
		greedy, err := recipes.Lookup(recipes.Greedy)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Decisions(found.decisions.InPlace, true).By(greedy)
		w := scheduler.NewProblem(net, chip, chip, 4, scheduler.Options{})
		w.Shares = found.Result.Shares
		o := w.Evaluate(t.Context(), p, 0)
		if o.Err != nil || o.Ps != found.Sim.TotalPs {
			t.Errorf("%s: %d ps, from its file %d, %v", name, found.Sim.TotalPs, o.Ps, o.Err)
		}
	}
}

// greedyOn is what the greedy recipe needs for a built-in network on stcp920.
func greedyFor(t testing.TB, name string) (network.Network, *hardware.Spec, scheduler.Recipe) {
	t.Helper()
	net, err := network.Open(name, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup(recipes.Greedy)
	if err != nil {
		t.Fatal(err)
	}
	return net, chip, recipe
}

// On cores of several kinds the search leaves out what does not know them.
func TestBestOnKinds(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec.CoreTypes[0].Runs = []string{"matrix", "reduction", "element-wise", "injective"}
	other := spec.Clone().CoreTypes[0]
	other.Name, other.Count = "other", 2
	spec.CoreTypes = append(spec.CoreTypes, other)
	net, err := network.Open("toy-fig3", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := Best(t.Context(), net, spec, 4, BestOptions{Evaluations: 4, Threads: 1,
		Options: scheduler.Options{Chunk: 1}})
	if err != nil || found.LatencySeconds() > found.Greedy.LatencySeconds() {
		t.Errorf("%v, expected a schedule no slower than the greedy one", err)
	}
}
