package scheduler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// mostTried is the number of groupings that the test simulates one by one.
const mostTried = 1000

// On small networks all groups in all ways are simulated: the exact split is the fastest, or within 2 % of it, never
// slower than the greedy one, and optimal only where the bound of its class meets it.
func TestMeasuredSplitIsTheFastest(t *testing.T) {
	compared := 0
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 1))
		spec, err := hardware.Load("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		spec.LB.SizeBytes, spec.LBWeightBytes = hardware.Bytes(1<<(13+rng.IntN(6))), 1<<14
		b := model.NewBuilder("small")
		wide := int64(64)
		last := b.Input("x", model.F16, 8, 64, wide)
		for l := range 2 + rng.IntN(3) {
			next := int64(32) << rng.IntN(3)
			last = b.Op("MatMul", fmt.Sprintf("product%d", l), model.Attr{}, last,
				b.Param(fmt.Sprintf("w%d", l), model.F16, wide, next))
			last = b.Op("Relu", fmt.Sprintf("relu%d", l), model.Attr{}, last)
			wide = next
		}
		b.Output(last)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := Lookup("exact-split")
		if err != nil {
			t.Fatal(err)
		}
		greedy, err := Lookup(GreedyRecipe)
		if err != nil {
			t.Fatal(err)
		}
		base, err := MakeDraft(t.Context(), g, spec, greedy, Options{})
		if err != nil {
			t.Fatal(err)
		}
		exact, err := MakeDraft(t.Context(), g, spec, recipe, Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := split.FromGraph(g, graphturbo.ExecutionOrder(g), base.Grouping, spec, split.NetworkOptions{MaxGroups: 1})
		if err != nil {
			t.Fatal(err)
		}
		var seq []int
		for _, sg := range base.Grouping.Groups {
			seq = append(seq, n.AtomsOf(sg.Ops)...)
		}
		// Groups with the ways to split them, by where they begin, and how many choices there are from there on.
		type column struct {
			hi  int
			cut Cut
		}
		from, choices := make([][]column, len(seq)), make([]float64, len(seq)+1)
		choices[len(seq)] = 1
		for lo := len(seq) - 1; lo >= 0; lo-- {
			for hi := lo + 1; hi <= len(seq); hi++ {
				atoms := slices.Sorted(slices.Values(seq[lo:hi]))
				if !n.Connected(atoms) {
					continue
				}
				for _, w := range n.Ways(atoms) {
					from[lo] = append(from[lo], column{hi, Cut{n.Operators(atoms), w.Split}})
					choices[lo] += choices[hi]
				}
			}
		}
		base.rest = greedy
		rehearsal := base.rehearse("split")
		least, tried := int64(math.MaxInt64), choices[0]
		var cuts Groups
		var visit func(lo int)
		visit = func(lo int) {
			if lo == len(seq) {
				o := rehearsal.simulate(t.Context(), &schedule.Schedule{Graph: g, Spec: spec, Grouping: cuts.grouping(g)}, 0)
				if o.Err == nil {
					least = min(least, o.Ps)
				}
				return
			}
			for _, c := range from[lo] {
				cuts = append(cuts, c.cut)
				visit(c.hi)
				cuts = cuts[:len(cuts)-1]
			}
		}
		if tried <= mostTried {
			visit(0)
		}
		a, _ := exact.Answer("split")
		m := a.Measured
		if m == nil || m.Simulated > m.Greedy || m.Bound > m.Simulated || m.Priced > m.Listed ||
			a.Status == milp.Optimal && m.Simulated > m.Bound*(1+1e-6) {
			t.Errorf("seed %d: %+v", seed, m)
			continue
		}
		if tried > mostTried {
			continue
		}
		t.Logf("seed %d: %g choices", seed, tried)
		compared++
		if found := m.Simulated; found > 1.02*float64(least)*1e-12 {
			t.Errorf("seed %d: %g s, the fastest of %g takes %g s", seed, found, tried, float64(least)*1e-12)
		}
	}
	if compared < 6 {
		t.Errorf("%d networks are small enough", compared)
	}
}
