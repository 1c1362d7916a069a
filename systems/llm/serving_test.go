package llm

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm/serving"
)

// A decode of the parts takes about what the whole network takes; on four chips less, but no less than a quarter.
func TestServingTimes(t *testing.T) {
	recipe, err := recipes.Lookup(recipes.Default)
	if err != nil {
		t.Fatal(err)
	}
	limits := serving.Limits{Batch: 1, Tokens: 32, Chunk: 32, Grain: 16}
	alone := func(machine string, trace []serving.Request) (*serving.Times, int64) {
		spec, err := chips.LoadMachine(machine)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		times, err := ServingTimes(context.Background(), "gpt2", model.F16, spec, recipe, trace, limits, func(done, of int) {
			if done != asked || done >= of {
				t.Errorf("%d of %d after %d", done, of, asked)
			}
			asked++
		})
		if err != nil {
			t.Fatal(err)
		}
		p := &serving.Problem{Requests: trace, Times: times, Limits: limits}
		r, err := serving.Simulate(context.Background(), p, serving.Policies()[0])
		if err != nil {
			t.Fatal(err)
		}
		return times, int64(math.Round(r.EachMedian * 1e12))
	}
	trace := []serving.Request{{Prompt: 960, Answer: 64}}
	limits.Tokens, limits.Chunk = 512, 512
	times, parts := alone("stcp920", trace)
	net, err := network.Open("gpt2-decode", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := chips.LoadMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := scheduler.Run(context.Background(), net, spec, 1, recipe, scheduler.Options{Figures: true})
	if err != nil {
		t.Fatal(err)
	}
	if ratio := float64(parts) / float64(whole.Sim.TotalPs); ratio < 0.8 || ratio > 1.05 {
		t.Errorf("the parts of a decode take %d ps, the whole network %d", parts, whole.Sim.TotalPs)
	}
	if times.StaticWatts != 50 || times.Tokens.Cost[0].Nj == 0 {
		t.Errorf("found %v W and %d nJ", times.StaticWatts, times.Tokens.Cost[0].Nj)
	}
	four, shared := alone("stcp920x4", trace)
	if shared >= parts || 4*shared < parts || four.CacheTokens < 4*times.CacheTokens || four.Chips != 4 {
		t.Errorf("four chips take %d ps and keep %d tokens, one %d and %d", shared, four.CacheTokens, parts,
			times.CacheTokens)
	}
	for _, c := range []struct {
		decoder string
		trace   serving.Request
		want    string
	}{
		{"gpt2", serving.Request{Prompt: 1000, Answer: 25}, "request 1 has 1025 tokens, gpt2 has positions for 1024"},
		{"gpt3", serving.Request{Prompt: 1, Answer: 1}, `unknown decoder "gpt3"`},
		{"llama3-8b", serving.Request{Prompt: 1, Answer: 1}, "no room for keys and values"},
	} {
		small := spec.Clone()
		small.DDR.SizeBytes = 1 << 30
		if _, err := ServingTimes(context.Background(), c.decoder, model.F16, small, recipe, []serving.Request{c.trace},
			limits, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, expected %q", err, c.want)
		}
	}
}
