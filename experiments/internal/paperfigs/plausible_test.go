package paperfigs

import (
	"math"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
)

// Checked against what must hold: perfect order has no width, an interval holds its
// estimate, more pairs of the same kind make it narrower, and nothing depends on scale.
func TestSpearmanInterval(t *testing.T) {
	up := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	if low, high, ok := spearmanInterval(up, []float64{10, 20, 30, 40, 50, 60, 70, 80}); !ok || low != 1 || high != 1 {
		t.Errorf("a perfect order: %g to %g", low, high)
	}
	mixed := []float64{2, 1, 4, 3, 7, 5, 8, 6}
	low, high, ok := spearmanInterval(up, mixed)
	if r := harness.Spearman(up, mixed); !ok || low > r || high < r || low >= high || low < -1 || high > 1 {
		t.Errorf("%g to %g around %g", low, high, r)
	}
	var a, b, scaled []float64
	for k := range 6 {
		for i := range up {
			a, b = append(a, up[i]+float64(100*k)/1000), append(b, mixed[i]+float64(100*k)/1000)
		}
	}
	if l, h, _ := spearmanInterval(a, b); h-l >= high-low {
		t.Errorf("six times the pairs: %g to %g, not narrower than %g to %g", l, h, low, high)
	}
	for _, v := range mixed {
		scaled = append(scaled, math.Exp(v))
	}
	if l, h, _ := spearmanInterval(up, scaled); l != low || h != high {
		t.Errorf("another scale: %g to %g, want %g to %g", l, h, low, high)
	}
	if _, _, ok := spearmanInterval(up[:2], mixed[:2]); ok {
		t.Error("two pairs have an interval")
	}
	if _, _, ok := spearmanInterval([]float64{3, 3, 3}, mixed[:3]); ok {
		t.Error("equal values have an interval")
	}
}

// The arithmetic of BERT-base at 128 tokens, as the zoo counts it.
func TestEncoderMACs(t *testing.T) {
	src := harness.OpenNetwork("bert-128")
	g, err := src.Graph(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := encoderMACs(12, 128, 768); got != g.MACs() {
		t.Errorf("%d, the network has %d", got, g.MACs())
	}
}
