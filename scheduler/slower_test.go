package scheduler

import (
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
)

// No schedule takes less than the bound for which it may be left out, and the bound is no empty one.
func TestLeastPs(t *testing.T) {
	tightest := 0.0
	for _, c := range []struct {
		net, machine, recipe string
		batch, chunk         int64
	}{{"gpt2-prefill", "stcp920", "tiled-groups", 1, 1}, {"gpt2-prefill", "a100", "tiled-groups", 1, 1},
		{"resnet50", "stcp920", "tiled-groups", 8, 1}, {"resnet50", "goya", "tiled-llb", 4, 2},
		{"bert-128", "ipu", "tiled-llb", 2, 1}, {"mobilenetv2", "v100", "tiled-groups", 3, 1},
		{"gpt2-decode", "tpu-v4i", "tiled-l1", 1, 1}, {"gpt2-decode", "stcp920", "tiled-groups", 5, 1}} {
		t.Run(c.net+"/"+c.machine+"/"+c.recipe, func(t *testing.T) {
			r, err := Lookup(c.recipe)
			if err != nil {
				t.Fatal(err)
			}
			net, err := network.Open(c.net, network.Options{})
			if err != nil {
				t.Fatal(err)
			}
			spec, err := hardware.Load(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			least := int64(-1)
			opt := run{Options: Options{Chunk: c.chunk}}
			opt.slower = func(ps int64) bool { least = ps; return false }
			made, err := prepare(t.Context(), net, spec, c.batch, r, opt)
			if err != nil {
				t.Fatal(err)
			}
			ps, err := made.latency(t.Context(), math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("at least %d of %d ps", least, ps)
			if least < 0 || least > ps {
				t.Errorf("takes %d ps, which is less than the bound of %d", ps, least)
			}
			tightest = max(tightest, float64(least)/float64(ps))
		})
	}
	if tightest < 0.25 {
		t.Errorf("the bound is %.3g of the time at most, expected a quarter", tightest)
	}
}
