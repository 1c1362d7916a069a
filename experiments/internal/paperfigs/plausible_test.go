package paperfigs

import (
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
)

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
