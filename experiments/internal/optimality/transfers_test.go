package optimality

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/internal/harness"
)

// randomTensors is a network of n operators, each of which reads one or two of those before it, in little memory.
func randomTensors(rng *rand.Rand, n int) *wholeTensors {
	w := &wholeTensors{Problem: &ordering.Problem{Name: "random", CapacityBytes: 1 << 20, StoreCostPerByte: 1,
		LoadCostPerByte: 1}}
	for k := range n {
		w.Subgraphs = append(w.Subgraphs, ordering.Subgraph{Name: string(rune('a' + k)), Instances: 1,
			OutputBytes: 1 + rng.Int64N(9)})
		w.seconds = append(w.seconds, float64(1+rng.IntN(20))*1e-9)
		w.fixed, w.results = append(w.fixed, rng.Int64N(8)), append(w.results, 0)
		w.Subgraphs[k].WorkspaceBytes = w.fixed[k]
		if k > 0 {
			from := rng.IntN(k)
			w.Arcs = append(w.Arcs, ordering.Arc{From: from, To: k, Reads: [][2]int{{0, 1}}})
			if other := rng.IntN(k); other != from && rng.IntN(2) == 0 {
				w.Arcs = append(w.Arcs, ordering.Arc{From: other, To: k, Reads: [][2]int{{0, 1}}})
			}
		}
	}
	for k, readers := range ordering.NewGraph(w.Problem).Readers {
		if len(readers) == 0 {
			w.results[k] = w.Subgraphs[k].OutputBytes
		}
	}
	w.CapacityBytes = ordering.NewGraph(w.Problem).LargestNeed() + rng.Int64N(6)
	return w
}

// The search for windows finds the best of all windows of small networks, nothing that is slower than what it begins
// with, and what is in the memory at any simulated time fits.
func TestTransfersAgainstAllWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	met, all := 0, 0
	for range 40 {
		w := randomTensors(rng, 4+rng.IntN(2))
		r, err := ordering.Search(t.Context(), w.Problem, ordering.Traffic, ordering.Options{})
		if err != nil || !r.HasOrder() {
			t.Fatalf("no order: %v", err)
		}
		x, err := newTransfers(w, r.Steps, edge{bandwidth: 1e9, latency: 500})
		if err != nil {
			t.Fatal(err)
		}
		late := x.late()
		if !x.fits(late) {
			t.Fatalf("%+v does not fit %d as late as it can", r.Steps, w.CapacityBytes)
		}
		time := func(windows []int) float64 {
			a, err := x.measure(t.Context(), windows)
			if err != nil {
				t.Fatal(err)
			}
			if a.Bytes != w.compulsory()+int64(r.Cost) {
				t.Fatalf("%d bytes move, expected %d", a.Bytes, w.compulsory()+int64(r.Cost))
			}
			fitsInTime(t, x, windows)
			return a.Seconds
		}
		least, tried := math.Inf(1), 0
		var try func(windows []int, i int)
		try = func(windows []int, i int) {
			if i == len(x.moves) {
				tried++
				least = min(least, time(windows))
				return
			}
			for shift := 0; ; shift++ {
				next := windows
				if shift > 0 {
					var ok bool
					if next, ok = x.shifted(windows, i, shift); !ok {
						return
					}
				}
				try(next, i+1)
			}
		}
		try(late, 0)
		start := time(x.ahead())
		windows, err := x.search(t.Context(), 500)
		if err != nil {
			t.Fatal(err)
		}
		found := time(windows)
		if found < least || found > start {
			t.Fatalf("the search has %g s, all %d windows %g s, the start %g s", found, tried, least, start)
		}
		if all++; found == least {
			met++
		}
	}
	if met < all*9/10 {
		t.Errorf("%d of %d searches find the best windows", met, all)
	}
}

// fitsInTime adds up what is in the memory while a schedule is simulated: outputs from the start of their operators,
// loads from theirs, until the last reader or store has ended. It goes by the steps and moves, not by stays.
func fitsInTime(t *testing.T, x *transfers, windows []int) {
	t.Helper()
	p, command, operators := x.program(windows)
	r, err := sim.Run(t.Context(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	type span struct{ from, to, bytes int64 }
	var list []span
	for i, m := range x.moves {
		switch k := command[i]; {
		case m.load:
			list = append(list, span{r.Start[k], r.End[operators[m.until-1]], m.bytes})
		case !m.fixed:
			list = append(list, span{r.End[operators[m.step]], r.End[k], m.bytes})
		}
	}
	for _, s := range x.kept {
		list = append(list, span{r.Start[operators[s.from]], r.End[operators[s.to-1]], s.bytes})
	}
	for _, a := range list {
		full := int64(0)
		for _, b := range list {
			if b.from <= a.from && a.from < b.to {
				full += b.bytes
			}
		}
		if full > x.w.CapacityBytes {
			t.Fatalf("%d bytes at %d ps, the memory has %d", full, a.from, x.w.CapacityBytes)
		}
	}
}

// The problem of a network has its work, its weights and its results.
func TestWholeTensors(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range fullObjectives().networks {
		net := harness.OpenNetwork(name)
		g, err := net.Graph(1)
		if err != nil {
			t.Fatal(err)
		}
		w, err := wholeTensorsOf(g, spec)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		for _, tensor := range g.Tensors {
			if tensor.Producer < 0 && len(tensor.Consumers) > 0 || g.IsOutput(tensor.ID) {
				want += tensor.Bytes()
			}
		}
		if got := w.compulsory() - w.again; got != want {
			t.Errorf("%s: %d bytes must move, expected %d", name, got, want)
		}
	}
}
