package search

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A candidate may have more commands than the best one, but never more than programs may have at all.
func TestMostCommands(t *testing.T) {
	for _, c := range [][2]int{{10, 100_000}, {100_000, 400_000}, {749_999, 2_999_996}, {750_000, 0}, {7_000_000, 0}} {
		if n := mostCommands(c[0]); n != c[1] {
			t.Errorf("the best has %d commands: found %d, expected %d", c[0], n, c[1])
		}
	}
}

// What is found for the head of a network gives all blocks the same groups, passes all checks,
// and is a plan of the whole.
func TestBlocks(t *testing.T) {
	better, repeated := 0, 0
	names := []string{"bert-128", "vit-b16"}
	for _, name := range names {
		x := searching(t, name, 8, 2)
		s, r := x.seeker, x.repetition
		if r.Times != 12 && r.Times != 11 {
			t.Fatalf("%s: %+v, expected 11 or 12 blocks", name, r)
		}
		before := x.best.Score
		for range 2 { // it goes on where it was
			if found, err := x.blocks(t.Context(), budget{evaluations: 25}); err != nil || !found {
				t.Fatal(found, err)
			}
		}
		if x.best.Score < before {
			better++
		}
		for _, c := range x.extendHead(x.head.best) {
			made, err := s.w.Result(t.Context(), c.Decisions)
			if err != nil {
				t.Fatal(err)
			}
			if one := x.head.best.Score; one >= float64(made.Sim.TotalPs) {
				t.Errorf("%s: the head takes %g ps, the whole %d", name, one, made.Sim.TotalPs)
			}
		}
		if list, _ := x.repeat(x.head.best.spans); len(list) > 0 {
			repeated++
			at := map[int]span{}
			for _, y := range list {
				at[y.lo] = y
			}
			for _, y := range list {
				next, there := at[y.lo+r.Period*headBlocks*(headBlocks-1)/2] // 1 or 2 blocks are repeated
				if there && y.lo >= r.From+headBlocks*r.Period && (next.hi-next.lo != y.hi-y.lo || next.split != y.split) {
					t.Errorf("%s: atoms %d to %d are a group, some blocks on %d to %d", name, y.lo, y.hi, next.lo, next.hi)
				}
			}
			if end := list[len(list)-1].hi; end < r.From+(r.Times-2)*r.Period {
				t.Errorf("%s: groups are repeated up to atom %d, the blocks end at %d", name, end, r.From+r.Times*r.Period)
			}
		}
		if s.found.Evaluations > 80 {
			t.Errorf("%s: %d evaluations", name, s.found.Evaluations)
		}
	}
	if better == 0 || repeated == 0 {
		t.Errorf("of %d networks, %d got better and %d have blocks that are repeated, expected both of one at least",
			len(names), better, repeated)
	}
}

// Where time is up, what has been found is enough: recipes that come later are left out, but not the first.
func TestStartsInTime(t *testing.T) {
	net, chip, recipe := greedyFor(t, "bert-128")
	list := slices.Insert(recipes.Tiled()[1:3], 0, recipe)
	for _, c := range []struct {
		enough time.Time
		want   int
	}{{time.Time{}, 6}, {time.Now().Add(-time.Second), 1}} {
		s := &seeker{w: scheduler.NewProblem(net, chip, chip, 8, scheduler.Options{}), began: time.Now(), found: &Found{},
			starts: map[family]startAt{}, ended: map[ending]bool{}}
		all, err := s.startAll(t.Context(), list, []int64{1, 2}, c.enough)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.found.Evaluations; n < c.want || !all && n > c.want || all != c.enough.IsZero() || s.found.Result == nil {
			t.Errorf("enough at %v: %d starts, all: %v, expected %d", c.enough, n, all, c.want)
		}
	}
}

// Starts that take hopeless times as long as the first of their chunk are given up, but for the one that the answer is
// compared with. The others are as they are without the limit, which no other objective has.
func TestStartsGivenUp(t *testing.T) {
	net, _, greedy := greedyFor(t, "bert-128")
	chip, err := hardware.Load("v100")
	if err != nil {
		t.Fatal(err)
	}
	list := append(recipes.Tiled()[1:3], greedy)
	starts := func(o Objective) []Start {
		s := &seeker{w: scheduler.NewProblem(net, chip, chip, 2, scheduler.Options{}), opt: BestOptions{Objective: o},
			began: time.Now(), found: &Found{}, starts: map[family]startAt{}, ended: map[ending]bool{}}
		if _, err := s.startAll(t.Context(), list, []int64{2}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		return s.found.Starts
	}
	all, some := starts(ByEnergy), starts(ByLatency)
	want := slices.DeleteFunc(slices.Clone(all), func(x Start) bool {
		return x.ThroughputPerSecond*hopeless < all[0].ThroughputPerSecond && (x.Recipe != greedy.Name || x.InPlace)
	})
	if !slices.Equal(some, want) || len(some) == len(all) || len(some) < 2 {
		t.Errorf("starts are %v, expected %v of %v", some, want, all)
	}
}

// searching is a search that has begun with the greedy schedule of a network in chunks of one size.
func searching(t *testing.T, name string, batch, chunk int64) *searcher {
	t.Helper()
	net, chip, recipe := greedyFor(t, name)
	s := &seeker{w: scheduler.NewProblem(net, chip, chip, batch, scheduler.Options{}), began: time.Now(), found: &Found{},
		starts: map[family]startAt{}, ended: map[ending]bool{}}
	if _, err := s.startAll(t.Context(), []scheduler.Recipe{recipe}, []int64{chunk}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	x := &searcher{seeker: s, start: s.bestAt(chunk), rng: rand.New(rand.NewPCG(1, 0))}
	if err := x.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

// After a block was copied to all others, copying any of them changes nothing.
func TestCopy(t *testing.T) {
	x := searching(t, "bert-128", 8, 2)
	from := func(c candidate) bool {
		one := []candidate{c}
		if _, err := x.simulate(t.Context(), one, 0, false); err != nil {
			t.Fatal(err)
		}
		x.moveFrom(one[0])
		return one[0].Err == nil
	}
	copied, undone := 0, 0
	for try := 0; try < 40; try++ {
		x.moveFrom(x.best)
		name := []string{"spill", "layer", "scope"}[try%3]
		m := x.moves[slices.IndexFunc(x.moves, func(m change) bool { return m.name == name })]
		c, ok := m.make(x)
		if !ok || !from(c) {
			continue
		}
		all, ok := x.moveCopy()
		if !ok || !from(all) {
			continue // they are alike, or the plan can't be had
		}
		copied++
		if all.Decisions.Name() == x.best.Decisions.Name() {
			undone++ // a block was copied that had not changed
		}
		for range 5 {
			if _, ok := x.moveCopy(); ok {
				t.Errorf("after a change by %q, blocks differ that were copied", m.name)
			}
		}
	}
	if copied < 5 || undone == 0 {
		t.Errorf("%d blocks were copied to others that differ, %d of them as before, expected 5 and 1 at least", copied,
			undone)
	}
}

// A network can be cut anywhere, also in groups that are split, and before any move was made.
func TestHeadOf(t *testing.T) {
	x := searching(t, "gpt2-prefill", 1, 1)
	cut := 0
	for n := 1; n <= len(x.g.seq); n++ {
		p := x.headOf(x.best.Decisions, x.best.spans, n)
		if p == nil {
			continue
		}
		spans := x.g.spans(p)
		last := spans[len(spans)-1]
		if last.hi != n {
			t.Fatalf("a head of %d atoms ends at %d", n, last.hi)
		}
		if i := slices.IndexFunc(x.best.spans, func(y span) bool { return y.hi >= n }); x.best.spans[i].hi > n &&
			x.best.spans[i].split.Factor > 1 {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no head cuts a group that is split")
	}
}

// Proposals consist of all that they are asked for, also before all groups have a price.
func TestProposeAll(t *testing.T) {
	net, chip, recipe := greedyFor(t, "bert-large-384")
	s := &seeker{w: scheduler.NewProblem(net, chip, chip, 4, scheduler.Options{}), began: time.Now(), found: &Found{},
		starts: map[family]startAt{}, ended: map[ending]bool{}}
	if _, err := s.startAll(t.Context(), []scheduler.Recipe{recipe}, []int64{1}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	x := &searcher{seeker: s, start: s.bestAt(1), rng: rand.New(rand.NewPCG(1, 0))}
	if err := x.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := len(x.g.seq)
	if n <= firstPrices {
		t.Fatalf("%d atoms, expected more than the %d groups that have a price at first", n, firstPrices)
	}
	for _, first := range []int{n - 1, n - 5, n / 2, 0} {
		at := first
		for _, y := range x.g.propose(first, x.rng, 1) {
			if y.lo != at || y.hi <= y.lo {
				t.Fatalf("from %d: group %d to %d, expected one from %d on", first, y.lo, y.hi, at)
			}
			at = y.hi
		}
		if at != n {
			t.Errorf("from %d: groups up to %d of %d", first, at, n)
		}
	}
}
