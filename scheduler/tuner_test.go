package scheduler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
)

// byDefault is the schedule of the default variant.
func byDefault(t *testing.T, name string, spec *hardware.Spec, batch int64, opt scheduler.Options) *scheduler.Result {
	t.Helper()
	net, err := network.Open(name, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ran(t, net, spec, batch, scheduler.Default, opt)
}

func ran(t *testing.T, net network.Network, spec *hardware.Spec, batch int64, variant string,
	opt scheduler.Options) *scheduler.Result {
	t.Helper()
	recipe, err := scheduler.Lookup(variant)
	if err != nil {
		t.Fatal(err)
	}
	opt.Uneven = schedule.UnevenFastest
	r, err := scheduler.Run(t.Context(), net, spec, batch, recipe, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The default is no slower than by its own flags and than the variant that it is compared with, and a file of its
// schedule, on fewer cores or clusters too, gives the same again.
func TestDefaultTakesTheFastest(t *testing.T) {
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	wide, slow := chip.Clone(), chip.Clone()
	wide.CoreTypes[0].Count = 32
	slow.DDR.BandwidthBytesPerSecond = 54e9
	found := map[string]bool{}
	for _, x := range []struct {
		net   string
		spec  *hardware.Spec
		batch int64
	}{{"squeezenet", wide, 16}, {"squeezenet", chip, 9}, {"mobilenetv2", slow, 16}, {"mobilenetv2", chip, 1}, {"mamba-block", chip, 2},
		{"gpt2-decode", chip, 4}} {
		r := byDefault(t, x.net, x.spec, x.batch, scheduler.Options{})
		net, err := network.Open(x.net, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for what, other := range map[string]*scheduler.Result{
			"cross-layer":       ran(t, net, x.spec, x.batch, scheduler.GreedyRecipe, scheduler.Options{}),
			"in place":          byDefault(t, x.net, x.spec, x.batch, scheduler.Options{InPlace: true}),
			"one at a time":     byDefault(t, x.net, x.spec, x.batch, scheduler.Options{Chunk: 1}),
			"two at a time":     byDefault(t, x.net, x.spec, x.batch, scheduler.Options{Chunk: min(2, (x.batch+3)/4)}),
			"tiled-l1, 1 chunk": ran(t, net, x.spec, x.batch, "tiled-l1", scheduler.Options{}),
		} {
			if r.Sim.TotalPs > other.Sim.TotalPs {
				t.Errorf("%s at %d: %d ps by default, %s %d", x.net, x.batch, r.Sim.TotalPs, what, other.Sim.TotalPs)
			}
		}
		if r.Schedule.Cores > 0 {
			found["cores"] = true
		}
		if r.Shares[0] > schedule.Shares(r.Batch, r.Spec.Clusters)[0] {
			found["shares"] = true
		}
		b, err := r.File(schedulefile.Origin{}).Write()
		if err != nil {
			t.Fatal(err)
		}
		f, err := schedulefile.Read("schedule.json", b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := scheduler.Restore(t.Context(), f, x.spec)
		if err != nil {
			t.Fatal(err)
		}
		if again.Sim.TotalPs != r.Sim.TotalPs || again.Schedule.Cores != r.Schedule.Cores {
			t.Errorf("%s at %d: %d ps, %d from its file", x.net, x.batch, r.Sim.TotalPs, again.Sim.TotalPs)
		}
	}
	for _, what := range []string{"cores", "shares"} {
		if !found[what] {
			t.Errorf("no schedule has fewer %s, expected some", what)
		}
	}
}

// Also lists the tried chunks beside the divisors of a share, without the kept chunk.
func TestTriedChunksLeaveOutTheKept(t *testing.T) {
	r := byDefault(t, "squeezenet", load(t, "stcp920"), 7, scheduler.Options{Clusters: "pipeline"})
	if 7%r.Chunk == 0 || !slices.Equal(r.Also[:1], []string{"chunks of 4, 3"}) {
		t.Errorf("chunk %d is kept, also tried: %q", r.Chunk, r.Also)
	}
}

// Where equal blocks repeat, what is the fastest on a few is within half a percent of what is the fastest on all.
func TestHeads(t *testing.T) {
	recipe, err := scheduler.Lookup(scheduler.Default)
	if err != nil {
		t.Fatal(err)
	}
	issue := scheduler.Stages()[slices.IndexFunc(scheduler.Stages(),
		func(st scheduler.Stage) bool { return st.Name == "issue" })]
	same, err := issue.Lookup(recipe.Pick("issue"))
	if err != nil {
		t.Fatal(err)
	}
	whole := recipe.With("issue", same) // a caller's own strategy, which may look at all of a network
	for _, x := range []struct {
		net, spec string
		batch     int64
	}{{"bert-128", "stcp920", 5}, {"vit-b16", "goya", 3}, {"asr-encoder", "stcp920", 8}, {"gpt2-decode", "stcp920", 4},
		{"resnet101", "stcp920", 4}} {
		net, err := network.Open(x.net, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		spec, err := scheduler.OpenMachine(x.spec)
		if err != nil {
			t.Fatal(err)
		}
		var results []*scheduler.Result
		for _, r := range []scheduler.Recipe{recipe, whole} {
			made, err := scheduler.Run(t.Context(), net, spec, x.batch, r, scheduler.Options{Uneven: schedule.UnevenFastest})
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, made)
		}
		compared := func(r *scheduler.Result) bool {
			return slices.ContainsFunc(r.Notes, func(note string) bool { return strings.Contains(note, "equal blocks") })
		}
		if !compared(results[0]) || compared(results[1]) {
			t.Errorf("%s: compared on few blocks: %v, %v", x.net, compared(results[0]), compared(results[1]))
		}
		if a, b := results[0].Sim.TotalPs, results[1].Sim.TotalPs; float64(a) > 1.005*float64(b) || a == 0 {
			t.Errorf("%s at %d on %s: %d ps by few blocks, %d by all", x.net, x.batch, x.spec, a, b)
		}
		steady, err := results[0].Steady(t.Context())
		if both, other := results[0].WithoutHead().Steady(t.Context()); err != nil || other != nil || steady < 0.995*both {
			t.Errorf("%s: %g/s (%v) in the way that few blocks have chosen, %g (%v) in both", x.net, steady, err, both, other)
		}
		most := results[0].ThroughputPerSecond()
		for _, x := range results[0].Tried {
			if x.Err == nil && x.ThroughputPerSecond > 1.05*most {
				t.Errorf("chunk %d gives %g/s, but the fastest %g", x.Chunk, x.ThroughputPerSecond, most)
			}
		}
	}
}
