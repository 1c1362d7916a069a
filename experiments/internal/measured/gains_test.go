package measured

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/scheduler"
)

// All pairs that others have published are there, and those of the H100 beside them; each source is listed, and each
// counted case can be set up both ways.
func TestPairs(t *testing.T) {
	list, err := readPairs(pairsFile)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range list {
		if !strings.Contains(string(pairsFile), "# "+p.Source+": ") {
			t.Errorf("pair %d: source %q is not listed", i, p.Source)
		}
		if p.Uncounted != "" || p.Decision == ownProducts {
			continue
		}
		net, batch, _, err := p.network()
		if err != nil {
			t.Fatalf("pair %d: %v", i, err)
		}
		if _, err := net.Graph(batch); err != nil {
			t.Errorf("pair %d: %v", i, err)
		}
	}
	s, err := full()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, p := range fusedPairs(s.rows) {
		counts[p.Decision]++
		list = append(list, p)
	}
	if len(list) != 128 || counts[fuseCNNs] != 36 || counts[fuseTransformers] != 36 {
		t.Errorf("%d pairs, %v of an H100, expected 128, 36 and 36", len(list), counts)
	}
	for _, bad := range []string{"h\na,b,c,0,f,r,1,1,s,\n", "h\na,b,c,1,f,r,1,-1,s,\n", "h\na,b,c,1,f,r,x,1,s,\n"} {
		if _, err := readPairs([]byte("h,h,h,h,h,h,h,h,h,h\n" + bad[2:])); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// Where values in the L1s gain on the chip, they gain here, for 10 of 12 products at least, and the page of what is
// believed says what is predicted; with DSASCHED_FULL=1 of attention and of networks in L1s, too.
func TestPageOfGains(t *testing.T) {
	list, err := readPairs(pairsFile)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/believe.md")
	if err != nil {
		t.Fatal(err)
	}
	var done []pair
	for _, p := range list {
		if p.Uncounted != "" || p.Decision != ownProducts && os.Getenv("DSASCHED_FULL") == "" {
			continue
		}
		for way := range p.Predicted {
			if p.Predicted[way], err = p.predict(t.Context(), way); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s %s: %.1f and %.1f us, gain %.2f, measured %.2f", p.Case, p.Type, 1e6*p.Predicted[0], 1e6*p.Predicted[1],
			gain(p.Predicted), gain(p.Measured))
		done = append(done, p)
	}
	for _, x := range tallies(done) {
		row := fmt.Sprintf("| %s | %s | %d | %d | %.0f %% | %s | %s | %s |\n", x.decision, x.machine, x.pairs, x.beyond,
			100*float64(x.right)/float64(x.beyond), number(x.off.spread()), number(x.seen.bias()), number(x.said.bias()))
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/believe.md lacks the row %s", row)
		}
		if x.decision == ownProducts && (x.beyond != 12 || x.right < 10) {
			t.Errorf("%d of %d products gain, expected 10 of 12 at least", x.right, x.beyond)
		}
	}
}

// On an A100, where a core waits for its products, no two units of an attention work at a time, so that it takes their
// sum, which FlashAttention-2 takes as well; without softmax it takes less. The bound has units side by side.
func TestSoftmaxBetweenProducts(t *testing.T) {
	list, err := readPairs(pairsFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := range list {
		p := &list[i]
		if p.Decision != noSoftmax {
			continue
		}
		seen++
		spec, err := p.machine()
		if err != nil {
			t.Fatal(err)
		}
		net, batch, chunk, err := p.network()
		if err != nil {
			t.Fatal(err)
		}
		run := func() *scheduler.Result {
			made, err := scheduler.Run(t.Context(), net, spec, batch, two(oneAttention)[1], scheduler.Options{Chunk: chunk})
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		made := run()
		var spans []sim.Span
		sum := 0.0
		for s := range made.Timeline() {
			if s.Kind == isa.Matrix || s.Kind == isa.Vector || s.Kind == isa.Special {
				spans, sum = append(spans, s), sum+s.End-s.Start
			}
		}
		slices.SortFunc(spans, func(a, b sim.Span) int { return cmp.Compare(a.Start, b.Start) })
		for k := range spans[1:] {
			if spans[k+1].Start < spans[k].End-1e-12 {
				t.Fatalf("%s: %+v begins before the end of %+v", p.Case, spans[k+1], spans[k])
			}
		}
		took := made.LatencySeconds()
		if x := took / p.Measured[0]; took < sum || x < .85 || x > 1.15 {
			t.Errorf("%s: %g s, units work for %g s, measured %g s", p.Case, took, sum, p.Measured[0])
		}
		least, err := bound.Cold(t.Context(), net, spec, batch)
		if err != nil {
			t.Fatal(err)
		}
		spec.CoreTypes[0].Units[0].Synchronous = false
		beside := run().LatencySeconds()
		t.Logf("%s: %.0f us in turn, %.0f side by side, measured %.0f", p.Case, 1e6*took, 1e6*beside, 1e6*p.Measured[0])
		if beside > .85*took || least.Seconds > beside || least.Seconds > p.Measured[1] {
			t.Errorf("%s: %g s side by side, %g s in turn, bound %g s", p.Case, beside, took, least.Seconds)
		}
	}
	if seen != 3 {
		t.Errorf("%d attentions, expected 3", seen)
	}
}

// Pairs that are predicted as measured have no error, one that loses on the chip and gains here has a wrong sign, and
// machines have the same weight whatever the number of their pairs.
func TestReportOfGains(t *testing.T) {
	of := func(machine string, measured, predicted float64) pair {
		return pair{Decision: fuseCNNs, row: row{Machine: machine}, Measured: [2]float64{measured, 1},
			Predicted: [2]float64{predicted, 1}}
	}
	list := []pair{of("h100", 2, 2), of("h100", .5, .5), of("h100", 1.02, .9), of("a100", .5, 1.125)}
	all := tallies(append(list, pair{Decision: fuseCNNs, row: row{Machine: "a100"}, Uncounted: "x"}))
	if len(all) != 2 || all[0].beyond != 2 || all[0].right != 2 || all[1].pairs != 1 || all[1].right != 0 {
		t.Fatalf("tallies are %+v", all)
	}
	right, spread := alike(all)
	if off := all[0].off.spread(); right != .5 || spread < 1.5 || spread*spread < off*2.24 || spread*spread > off*2.26 {
		t.Errorf("machines alike: %g right, error %g", right, spread)
	}
	r, err := reportGains(list)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Text, "machines alike") || len(r.Files) < 7 {
		t.Errorf("%d files, text %s", len(r.Files), r.Text)
	}
}
