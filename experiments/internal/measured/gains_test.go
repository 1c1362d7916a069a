package measured

import (
	"strings"
	"testing"
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

// Where values in the L1s gain on the chip, they gain here, for 10 of 12 products at least.
func TestValuesInL1Gain(t *testing.T) {
	list, err := readPairs(pairsFile)
	if err != nil {
		t.Fatal(err)
	}
	var sum tally
	for i := range list {
		p := &list[i]
		if p.Decision != ownProducts {
			continue
		}
		for way := range p.Predicted {
			if p.Predicted[way], err = p.predict(t.Context(), way); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s %s: %.1f and %.1f us, gain %.2f, measured %.2f", p.Case, p.Type, 1e6*p.Predicted[0], 1e6*p.Predicted[1],
			gain(p.Predicted), gain(p.Measured))
		sum.add(p)
	}
	t.Logf("%d of %d gain, error %.2f", sum.right, sum.beyond, sum.off.spread())
	if sum.beyond != 12 || sum.right < 10 {
		t.Errorf("%d of %d products gain, expected 10 of 12 at least", sum.right, sum.beyond)
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
