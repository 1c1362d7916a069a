package zoo

import (
	"testing"

	"github.com/dsasched/dsasched/model"
)

// Parameters by the networks' own formulas, from the publications' sizes.
func TestAStitchNetworks(t *testing.T) {
	lstm := func(in, hidden int64) int64 { return 4 * hidden * (in + hidden + 1) }
	gru := func(in, hidden int64) int64 { return 3 * hidden * (in + hidden + 1) }
	linear := func(in, out int64) int64 { return in*out + out }
	// A Transformer layer: four projections and a feed-forward, two normalisations.
	attention := 4 * linear(512, 512)
	ffn := linear(512, 2048) + linear(2048, 512)
	for _, c := range []struct {
		name string
		want int64
	}{
		{"transformer", 32000*512 + linear(512, 32000) + 6*(attention+ffn+2*2*512) + 6*(2*attention+ffn+3*2*512)},
		{"crnn", // convolutions with biases; two normalised ones; two layers of two directions
			64*(9+1) + 128*(64*9+1) + 256*(128*9+1) + 256*(256*9+1) + 512*(256*9+1) + 512*(512*9+1) + 512*(512*4+1) + 2*2*512 +
				2*lstm(512, 256) + 2*lstm(512, 256) + linear(512, 37)},
		{"dien", 18*(500_000+400_000+2_000) + 2*gru(36, 36) + linear(4*36, 80) + linear(80, 40) + linear(40, 1) +
			linear(18+36+36+36+36, 200) + 200 + linear(200, 80) + 80 + linear(80, 2)},
		{"asr-encoder", 64*(9+1) + 64*(64*9+1) + linear(64*20, 512) + 2*512 + 12*(attention+ffn+2*2*512)},
	} {
		if got := build(t, c.name, 2).Params(); got != c.want {
			t.Errorf("%s: %d parameters, want %d", c.name, got, c.want)
		}
	}
}

// A step of a recurrent layer waits for the one before: the longest chain of products
// grows with the steps, and both directions of a layer run side by side.
func TestStepsWaitForEachOther(t *testing.T) {
	for name, want := range map[string]int64{
		"crnn": 7 + 2*24 + 1, // convolutions, two layers of 24 steps, scores
		// The first step of the second GRU multiplies before it needs the attention.
		"dien": 2*100 + 3 + 2*99 + 3,
		// The encoder, one key, what the first token still has to do, 11 more tokens.
		"transformer": 6*6 + 1 + 5 + 5*10 + 1 + 11*(6*10+1),
	} {
		g := build(t, name, 1)
		depth := make([]int64, len(g.Ops))
		longest := int64(0)
		for i, op := range g.Ops {
			for _, in := range op.Inputs {
				if p := g.Tensor(in).Producer; p != model.NoOp {
					depth[i] = max(depth[i], depth[p])
				}
			}
			if op.Class() == model.MatrixClass {
				depth[i]++
			}
			longest = max(longest, depth[i])
		}
		if longest != want {
			t.Errorf("%s: %d products one after the other, want %d", name, longest, want)
		}
	}
}
