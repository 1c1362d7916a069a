package zoo

import (
	"testing"

	"github.com/dsasched/dsasched/model"
)

// The parts of a decoder have the multiply-accumulates and the parameters of the whole network, and
// those of several chips have together as many.
func TestDecoderParts(t *testing.T) {
	const batch, cached = 3, 100
	for _, name := range Decoders() {
		d, err := OpenDecoder(name, model.F16, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := d.whole
		c.Tokens, c.Cached = 1, cached
		whole, err := c.build(name, Options{Batch: batch, DType: model.F16})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.WeightBytes(); err != nil || got != 2*whole.Params() {
			t.Errorf("%s: %d bytes of weights, %v, expected %d", name, got, err, 2*whole.Params())
		}
		cache := int64(0)
		for _, id := range whole.Inputs {
			if x := whole.Tensor(id); len(x.Shape) == 4 {
				cache += x.Bytes()
			}
		}
		for _, chips := range []int64{1, 2, 4} {
			d, err := OpenDecoder(name, model.F16, chips)
			if err != nil {
				t.Fatal(err)
			}
			layer, err1 := d.Layer(batch, 1)
			attention, err2 := d.Attention(batch*d.KeyHeads(), 1, cached)
			head, err3 := d.Head(batch, 1)
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatal(err1, err2, err3)
			}
			lost := batch * chips * d.chip.Vocabulary * d.whole.Hidden // columns that fill up the last share
			lost -= batch * d.whole.Vocabulary * d.whole.Hidden
			if got := chips*(d.Layers*(layer.MACs()+attention.MACs())+head.MACs()) - lost; got != whole.MACs() {
				t.Errorf("%s on %d chips: %d MACs, the network has %d", name, chips, got, whole.MACs())
			}
			if got := chips * d.CacheBytes() * batch * cached; got != cache {
				t.Errorf("%s on %d chips: %d bytes of keys and values, the network has %d", name, chips, got, cache)
			}
		}
	}
	if _, err := OpenDecoder("gpt2", model.F16, 5); err == nil {
		t.Error("12 heads were divided over 5 chips")
	}
	if _, err := OpenDecoder("gpt3", model.F16, 1); err == nil {
		t.Error("gpt3 was opened")
	}
}

// Tokens of a prompt in two pieces have the products of the prompt, and in their attention more only
// where a mask hides it.
func TestPromptParts(t *testing.T) {
	d, err := OpenDecoder("llama3-8b", model.F16, 1)
	if err != nil {
		t.Fatal(err)
	}
	macs := func(g *model.Graph, err error) int64 {
		if err != nil {
			t.Fatal(err)
		}
		return g.MACs()
	}
	if a, b := macs(d.Layer(1, 64)), 2*macs(d.Layer(1, 32)); a != b {
		t.Errorf("64 tokens take %d MACs, twice 32 take %d", a, b)
	}
	if a, b := macs(d.Layer(4, 16)), macs(d.Layer(1, 64)); a != b {
		t.Errorf("4 times 16 tokens take %d MACs, 64 take %d", a, b)
	}
}
