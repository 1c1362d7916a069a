package mofang_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/systems/mofang"
	"github.com/dsasched/dsasched/systems/mofang/layering"
	"github.com/dsasched/dsasched/systems/mofang/pipelining"
	"github.com/dsasched/dsasched/systems/mofang/streams"
)

func TestThreadsAgainstScan(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := &pipelining.Loading{NamesSeconds: rng.Float64() / 10, ItemSeconds: rng.Float64() / 50,
			TrainSeconds: rng.Float64(), Batch: 1 + rng.IntN(300)}
		var table []mofang.Speedup
		for n := 1; n <= 64; n *= 2 {
			f := float64(n) * (0.5 + rng.Float64())
			table = append(table, mofang.Speedup{Threads: n, Factor: f})
			l.Speedups = append(l.Speedups, pipelining.Speedup{Threads: n, Factor: f})
		}
		want, err := pipelining.Threads(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := mofang.Threads(l.NamesSeconds, l.ItemSeconds, l.TrainSeconds, l.Batch, table); got.Threads != want.Threads {
			t.Fatalf("seed %d: %d threads, trying all %d", seed, got.Threads, want.Threads)
		}
	}
}

// Bisection, trying and the closed form agree.
func TestMicroBatches(t *testing.T) {
	for p := 1; p <= 64; p++ {
		for _, batch := range []int{1, 64, 256, 1000} {
			for _, device := range []int{7, 64, 300} {
				b, ok := mofang.MicroBatches(p, batch, mofang.Loss(batch, device))
				scan, err := pipelining.MicroBatches(p, batch, device)
				closed, _ := pipelining.ClosedForm(p, batch, device)
				if ok != (err == nil) || b != scan || b != closed {
					t.Fatalf("p %d, B %d, B_dev %d: bisection %d, scan %d, closed form %d", p, batch, device, b, scan, closed)
				}
			}
		}
	}
}

func random(rng *rand.Rand, n int) []streams.Operator {
	ops := make([]streams.Operator, n)
	for i := range ops {
		ops[i] = streams.Operator{Name: fmt.Sprint(i), Blocks: 1 + rng.Int64N(20), BlockSeconds: float64(1 + rng.IntN(9))}
		for h := range i {
			if rng.IntN(4) == 0 {
				ops[i].After = append(ops[i].After, h)
			}
		}
	}
	return ops
}

// Never worse than greedy, never better than the exact layering.
func TestLayering(t *testing.T) {
	better, worse := 0, 0
	ofChain, ofWork := 0, 0 // bounds that meet the optimum, of each kind
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := &streams.Machine{Processors: 10, LaunchSeconds: 0.5}
		ops := random(rng, 2+rng.IntN(9))
		p := &layering.Problem{Name: "random"}
		for _, op := range ops {
			p.After = append(p.After, op.After)
		}
		p.Price = func(set []int) float64 {
			_, phases := m.Best(ops, set)
			return streams.Seconds(phases)
		}
		layers, splits := mofang.Layering(context.Background(), m, ops, 0)
		if err := p.Check(layers); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		exact, err := layering.Solve(context.Background(), p, "exact", layering.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all := make([]int, len(ops))
		for i := range all {
			all[i] = i
		}
		bound := m.Bound(ops, all)
		if bound > exact.Seconds*(1+1e-9) {
			t.Fatalf("seed %d: bound %v, optimum %v", seed, bound, exact.Seconds)
		}
		wide := *m
		wide.Processors = 1e9 // on which work takes no time
		for i := range ops {
			ops[i].Width = m.Processors // but the longest path as long
		}
		if path := wide.Bound(ops, all); bound > path*(1+1e-9) {
			ofWork++
		} else if bound > exact.Seconds*0.9 {
			ofChain++
		}
		greedy, got := streams.Seconds(m.Run(ops, all, streams.SideBySide)), p.Seconds(layers)
		if got > greedy+1e-9 || got < exact.Seconds-1e-9 {
			t.Fatalf("seed %d: %v, greedy %v, exact %v", seed, got, greedy, exact.Seconds)
		}
		if got < greedy-1e-9 {
			better++
		}
		if got > exact.Seconds+1e-9 {
			worse++
		}
		if splits[0].Kept > splits[0].Tried {
			t.Fatalf("seed %d: %+v", seed, splits[0])
		}
		// Without a threshold nothing is dropped.
		if _, splits := mofang.Layering(context.Background(), m, ops, 2); splits[0].Kept != splits[0].Tried {
			t.Fatalf("seed %d: %+v", seed, splits[0])
		}
	}
	if ofChain == 0 || ofWork == 0 {
		t.Errorf("%d bounds of a longest path, %d of all work, expected both", ofChain, ofWork)
	}
	if better == 0 || worse == 0 {
		t.Errorf("%d better than greedy, %d worse than exact: the graphs tell nothing", better, worse)
	}
}

func TestStages(t *testing.T) {
	var layers []mofang.Layer
	for _, u := range []float64{.5, .4, .3, .4, .5, .4} { // Fig. 11
		layers = append(layers, mofang.Layer{Seconds: 1, Utilization: u})
	}
	if s := mofang.Stages(layers); fmt.Sprint(s) != "[[0 3] [3 6]]" {
		t.Errorf("stages %v, expected two", s)
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		layers = nil
		var same []pipelining.Layer
		for range 1 + rng.IntN(9) {
			l := mofang.Layer{Seconds: float64(rng.IntN(9)), Utilization: rng.Float64()}
			layers = append(layers, l)
			same = append(same, pipelining.Layer(l))
		}
		exact, err := pipelining.Stages(same, 1)
		if err != nil {
			t.Fatal(err)
		}
		ends := func(stages [][2]int) (e []int) {
			for k, s := range stages {
				if k > 0 && s[0] != stages[k-1][1] || s[1] <= s[0] {
					t.Fatalf("seed %d: stages %v", seed, stages)
				}
				e = append(e, s[1])
			}
			return e
		}
		got := pipelining.NewStaging(same, ends(mofang.Stages(layers)))
		if got.Utilization > 1+1e-9 && len(got.Stages) > 1 || got.Seconds < exact.Seconds-1e-9 {
			t.Fatalf("seed %d: %+v, exact %+v", seed, got, exact)
		}
	}
}

// No division into as many stages has a shorter longest one.
func TestBalanced(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		seconds := make([]float64, 1+rng.IntN(9))
		for i := range seconds {
			seconds[i] = float64(rng.IntN(9))
		}
		n := 1 + rng.IntN(len(seconds))
		longest := func(stages [][2]int) (most float64) {
			for _, s := range stages {
				sum := 0.0
				for _, t := range seconds[s[0]:s[1]] {
					sum += t
				}
				most = max(most, sum)
			}
			return most
		}
		best := math.Inf(1)
		for mask := range 1 << (len(seconds) - 1) {
			var stages [][2]int
			from := 0
			for i := range seconds {
				if mask>>i&1 != 0 || i == len(seconds)-1 {
					stages = append(stages, [2]int{from, i + 1})
					from = i + 1
				}
			}
			if len(stages) == n {
				best = min(best, longest(stages))
			}
		}
		got := mofang.Balanced(seconds, n)
		at := 0
		for _, s := range got {
			if s[0] != at || s[1] <= at {
				t.Fatalf("seed %d: stages %v", seed, got)
			}
			at = s[1]
		}
		if len(got) != n || at != len(seconds) || longest(got) != best {
			t.Fatalf("seed %d: %v in %d stages: %v, expected a longest of %v", seed, seconds, n, got, best)
		}
	}
}

func TestEnergy(t *testing.T) {
	if e := mofang.EnergyJoules([]mofang.Use{{2, 0.5}, {3, 0}}, 50, 300); e != 2*175+3*50 {
		t.Errorf("%v J", e)
	}
}

func Example() {
	// The module of IOS: a and the b that waits for it, c and d.
	m := &streams.Machine{Processors: 80}
	ops := []streams.Operator{
		{Name: "a", Blocks: 48, BlockSeconds: 0.08}, {Name: "b", After: []int{0}, Blocks: 96, BlockSeconds: 0.08},
		{Name: "c", Blocks: 48, BlockSeconds: 0.08}, {Name: "d", Blocks: 96, BlockSeconds: 0.08},
	}
	layers, _ := mofang.Layering(context.Background(), m, ops, 0)
	sum := 0.0
	for _, layer := range layers {
		_, phases := m.Best(ops, layer)
		sum += streams.Seconds(phases)
	}
	fmt.Printf("%v %.2f\n", layers, sum)
	// Output: [[0 3] [1 2]] 0.32
}
