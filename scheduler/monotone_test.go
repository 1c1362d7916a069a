package scheduler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// drawn is a small network: convolutions with residuals, or products with normalisations, of drawn widths.
func drawn(t *testing.T, seed uint64) network.Network {
	t.Helper()
	net, err := network.Of(fmt.Sprintf("drawn-%d", seed), func(batch int64) (*model.Graph, error) {
		rng := rand.New(rand.NewPCG(seed, 0))
		b := model.NewBuilder("drawn")
		name := func(kind string) string { return fmt.Sprint(kind, len(kind)+rng.IntN(1e6)) }
		if width := int64(16) << rng.Int64N(4); rng.IntN(2) == 0 {
			size := int64(7) << rng.Int64N(4)
			x := b.Input("x", model.F16, batch, width, size, size)
			conv := func(x model.TensorID, out, kernel, stride int64) model.TensorID {
				p := kernel / 2
				w := b.Param(name("w"), model.F16, out, b.Tensor(x).Shape[1], kernel, kernel)
				x = b.Op("Conv", name("conv"), model.Attr{Strides: []int64{stride, stride}, Dilations: []int64{1, 1},
					Pads: []int64{p, p, p, p}, Group: 1}, x, w)
				return b.Op("Relu", name("relu"), model.Attr{}, x)
			}
			for range 2 + rng.IntN(5) {
				switch rng.IntN(3) {
				case 0:
					width += 16 * rng.Int64N(4)
					x = conv(x, width, 1+2*rng.Int64N(2), 1+rng.Int64N(2))
				case 1:
					x = conv(x, width, 3, 1)
				default:
					x = b.Op("Add", name("add"), model.Attr{}, x, conv(conv(x, 16, 1, 1), width, 3, 1))
				}
			}
			b.Output(x)
		} else {
			rows := 1 + rng.Int64N(200)
			x := b.Input("x", model.F16, batch, rows, 8*width)
			for range 2 + rng.IntN(4) {
				wide := 64 + 64*rng.Int64N(32)
				y := b.Op("MatMul", name("up"), model.Attr{}, x, b.Param(name("w"), model.F16, 8*width, wide))
				y = b.Op([]model.Kind{"Relu", "Sigmoid"}[rng.IntN(2)], name("act"), model.Attr{}, y)
				y = b.Op("MatMul", name("down"), model.Attr{}, y, b.Param(name("w"), model.F16, wide, 8*width))
				x = b.Op("Add", name("add"), model.Attr{}, x, y)
			}
			b.Output(x)
		}
		return b.Build()
	})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// anyNetwork draws one of the names or a network of its own.
func anyNetwork(t *testing.T, rng *rand.Rand, names []string) network.Network {
	t.Helper()
	if rng.IntN(3) == 0 {
		return drawn(t, rng.Uint64N(1000))
	}
	net, err := network.Open(names[rng.IntN(len(names))], network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// anyMachine draws a machine with an LLB.
func anyMachine(t *testing.T, rng *rand.Rand) *hardware.Spec {
	t.Helper()
	names := []string{"stcp920", "stcp920", "stcp920-paper", "ascend910-abstract", "tpu-v4i"}
	spec, err := scheduler.OpenMachine(names[rng.IntN(5)])
	if err != nil {
		t.Fatal(err)
	}
	spec = spec.Clone()
	spec.Clusters = 1 + rng.IntN(4)
	spec.CoreTypes[0].Count = 2 + rng.IntN(15)
	spec.DDR.BandwidthBytesPerSecond *= math.Exp2(2*rng.Float64() - 1)
	spec.LLB.SizeBytes = spec.LLB.SizeBytes / 4 * hardware.Bytes(1+rng.IntN(8))
	spec.L1.SizeBytes = spec.L1.SizeBytes / 4 * hardware.Bytes(2+rng.IntN(6))
	return spec
}

// More cores, bandwidth, memory or clusters, or fewer images, make the default more than half a percent slower in at
// most one of fifty pairs, and in none by more than two percent.
func TestDefaultIsMonotone(t *testing.T) {
	pairs, names := 8, strings.Fields("toy-fig3 toy-fig5 dlrm")
	if os.Getenv("DSASCHED_FULL") != "" {
		pairs, names = 50, strings.Fields("squeezenet mobilenetv2 alexnet mamba-block toy-fig3 toy-fig5 resnet18 dlrm")
	}
	rng, slower := rand.New(rand.NewPCG(1, 2)), 0
	for range pairs {
		net, small := anyNetwork(t, rng, names), anyMachine(t, rng)
		batch := 1 + rng.Int64N(12)
		large, fewer, what := small.Clone(), batch, ""
		switch rng.IntN(6) {
		case 0:
			what = "cores"
			large.CoreTypes[0].Count += 1 + rng.IntN(8)
		case 1:
			what = "bandwidth"
			large.DDR.BandwidthBytesPerSecond *= 1 + 2*rng.Float64()
		case 2:
			what = "LLB"
			large.LLB.SizeBytes += large.LLB.SizeBytes / 4 * hardware.Bytes(1+rng.IntN(8))
		case 3:
			what = "L1"
			large.L1.SizeBytes += large.L1.SizeBytes / 4 * hardware.Bytes(1+rng.IntN(8))
		case 4:
			what = "clusters"
			large.Clusters += 1 + rng.IntN(4)
		case 5:
			what = "fewer images"
			fewer = max(1, batch-1-rng.Int64N(4))
		}
		a := ran(t, net, small, batch, scheduler.Default, scheduler.Options{})
		b := ran(t, net, large, fewer, scheduler.Default, scheduler.Options{})
		over := float64(b.Sim.TotalPs)/float64(a.Sim.TotalPs) - 1
		if over <= 0.005 {
			continue
		}
		slower++
		text := fmt.Sprintf("%s at %d on %s: %.1f %% slower with %s", net.Name, batch, small.Name, 100*over, what)
		for _, spec := range []*hardware.Spec{small, large} {
			text += fmt.Sprintf("; %d clusters of %d cores, LLB %v, L1 %v, DDR %.3g B/s", spec.Clusters, spec.CoreTypes[0].Count,
				spec.LLB.SizeBytes, spec.L1.SizeBytes, spec.DDR.BandwidthBytesPerSecond)
		}
		t.Log(text)
		if over > 0.02 {
			t.Error("that is more than 2 %")
		}
	}
	if slower > pairs/50 {
		t.Errorf("%d of %d pairs are more than .5 %% slower", slower, pairs)
	}
}

// Chunks, groups in place, tiles and shares that suit a part of a machine are tried on all of it: cores whose number is
// no power of two, fewer of each kind, clusters of cores of several kinds, two clusters of three and four of six, and
// two thirds of an LLB. The files of such schedules are the schedules.
func TestDefaultUsesPartOfTheMachine(t *testing.T) {
	for _, c := range []struct {
		net, machine string
		batch        int64
		small, large func(*hardware.Spec)
	}{
		{"mobilenetv2", "../examples/accelerator/my-npu.yaml", 4, func(s *hardware.Spec) { s.CoreTypes[0].Count = 8 },
			func(s *hardware.Spec) { s.CoreTypes[0].Count = 12 }},
		{"gpt2-decode", "../examples/accelerator/edge-pair.yaml", 4, func(*hardware.Spec) {},
			func(s *hardware.Spec) { s.Clusters = 2 }},
		{"mobilenetv2", "stcp920-paper", 12, func(s *hardware.Spec) { s.LLB.SizeBytes = 16 << 20 },
			func(s *hardware.Spec) { s.LLB.SizeBytes = 24 << 20 }},
		{"mofang-inception", "stcp920", 12, func(s *hardware.Spec) { few(s, 2) }, func(s *hardware.Spec) { few(s, 3) }},
		{"resnet18-tailor", "../examples/accelerator/edge-pair.yaml", 16,
			func(s *hardware.Spec) { s.CoreTypes[0].Count = 8 }, func(s *hardware.Spec) { s.CoreTypes[0].Count = 10 }},
		{"toy-fig5", "ascend910-abstract", 16, func(s *hardware.Spec) { s.Clusters = 4 },
			func(s *hardware.Spec) { s.Clusters = 6 }},
	} {
		net, err := network.Open(c.net, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var ps []int64
		for _, change := range []func(*hardware.Spec){c.small, c.large} {
			spec, err := scheduler.OpenMachine(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			spec = spec.Clone()
			change(spec)
			r := ran(t, net, spec, c.batch, scheduler.Default, scheduler.Options{})
			ps = append(ps, r.Sim.TotalPs)
			back, err := scheduler.Restore(t.Context(), r.File(schedulefile.Origin{}), spec)
			if err != nil || back.Sim.TotalPs != r.Sim.TotalPs {
				t.Errorf("%s on %s: %d ps, its file %v, %v", c.net, c.machine, r.Sim.TotalPs, back, err)
			}
		}
		if float64(ps[1]) > 1.005*float64(ps[0]) {
			t.Errorf("%s on %s: %d ps, with more of it %d", c.net, c.machine, ps[0], ps[1])
		}
	}
}

// What is left of a share beside whole chunks has cores of its own, so that one image more is not faster. The file of
// the schedule is the schedule.
func TestDefaultCutsRests(t *testing.T) {
	net, chip := open(t, "squeezenet"), load(t, "stcp920")
	less := ran(t, net, chip, 15, recipes.Default, scheduler.Options{})
	if more := ran(t, net, chip, 16, recipes.Default, scheduler.Options{}); less.Sim.TotalPs > more.Sim.TotalPs {
		t.Errorf("15 images take %d ps, 16 %d", less.Sim.TotalPs, more.Sim.TotalPs)
	}
	rest := less.Plans[3][0].Schedule
	if less.Schedule.Cores != 0 || rest.Cores != 6 ||
		!slices.Contains(less.Notes, "a chunk of 3 that is left of a share is on 6 of 8 cores, by divisors of these") {
		t.Errorf("chunks are on %d cores (0: all), the rest on %d: %q", less.Schedule.Cores, rest.Cores, less.Notes)
	}
	if !less.Beyond() {
		t.Error("a recipe starts with such a rest")
	}
	back, err := scheduler.Restore(t.Context(), less.File(schedulefile.Origin{}), chip)
	if err != nil || back.Sim.TotalPs != less.Sim.TotalPs {
		t.Errorf("%d ps, its file %v, %v", less.Sim.TotalPs, back, err)
	}
}

// Shares that fit no number of cores leave some idle, and a share that is less than the others' chunk is two: one image
// more is not faster. The file of such a schedule is the schedule.
func TestDefaultFitsOddShares(t *testing.T) {
	net := open(t, "squeezenet")
	if less, more := ran(t, net, load(t, "stcp920"), 4, recipes.Default, scheduler.Options{}),
		ran(t, net, load(t, "stcp920"), 6, recipes.Default, scheduler.Options{}); less.Sim.TotalPs > more.Sim.TotalPs {
		t.Errorf("4 images take %d ps, 6 in shares of 2 on 7 cores %d", less.Sim.TotalPs, more.Sim.TotalPs)
	}
	for machine, batch := range map[string]int64{"ascend910-abstract": 7, "stcp920": 31} {
		chip := load(t, machine)
		less := ran(t, net, chip, batch, recipes.Default, scheduler.Options{})
		more := ran(t, net, chip, batch+1, recipes.Default, scheduler.Options{})
		if less.Sim.TotalPs > more.Sim.TotalPs || !less.Beyond() {
			t.Errorf("%s: %d images take %d ps, one more %d", machine, batch, less.Sim.TotalPs, more.Sim.TotalPs)
		}
		if plan := less.Plans[len(less.Plans)-1]; machine == "stcp920" && len(plan) != 2 {
			t.Errorf("a share of 7 is %d chunks, expected 2", len(plan))
		}
		back, err := scheduler.Restore(t.Context(), less.File(schedulefile.Origin{}), chip)
		if err != nil || back.Sim.TotalPs != less.Sim.TotalPs {
			t.Errorf("%s: %d ps, its file %v, %v", machine, less.Sim.TotalPs, back, err)
		}
	}
}

// Where weights that each cluster loads take most of the time, layers over clusters are tried by default, and the file
// of the schedule is the schedule.
func TestDefaultDividesLayers(t *testing.T) {
	for _, c := range []struct {
		name  string
		batch int64
		l1    hardware.Bytes // with little, results are in the LLB
	}{{"alexnet", 8, 0}, {"resnet18", 4, 0}, {"resnet18", 8, 96 << 10}} {
		net, chip := open(t, c.name), load(t, "stcp920")
		if c.l1 > 0 {
			chip = load(t, "stcp920-paper").Clone()
			chip.L1.SizeBytes = c.l1
		}
		own := ran(t, net, chip, c.batch, recipes.Default, scheduler.Options{})
		for _, variant := range []string{"tiled-llb", "tiled-l1", "tiled-groups", recipes.Greedy} {
			r := ran(t, net, chip, c.batch, variant, scheduler.Options{Clusters: scheduler.OverLayer, Chunk: c.batch})
			if r.Sim.TotalPs < own.Sim.TotalPs*99/100 {
				t.Errorf("%s: %s by layers takes %d ps, the default %d", c.name, variant, r.Sim.TotalPs, own.Sim.TotalPs)
			}
		}
		if own.Clusters != scheduler.OverLayer || !slices.Contains(own.Also, "layers over clusters") {
			t.Errorf("%s: clusters by %q, also %q", c.name, own.Clusters, own.Also)
		}
	}
}

// Layers over kinds of core are tried in chunks, too.
func TestDefaultDividesLayersOverKinds(t *testing.T) {
	chip, err := scheduler.OpenMachine("../examples/accelerator/edge-pair.yaml")
	if err != nil {
		t.Fatal(err)
	}
	net := open(t, "mofang-inception")
	own := ran(t, net, chip, 12, recipes.Default, scheduler.Options{})
	r := ran(t, net, chip, 12, recipes.Default, scheduler.Options{Clusters: "kinds"})
	if float64(own.Sim.TotalPs) > 1.005*float64(r.Sim.TotalPs) {
		t.Errorf("by kinds it takes %d ps, the default %d", r.Sim.TotalPs, own.Sim.TotalPs)
	}
	// So they are by a caller's recipes, of which a single one has groups that are not split.
	recipe, err := recipes.Lookup("tiled-twelfth")
	if err != nil {
		t.Fatal(err)
	}
	recipe.Fallback, recipe.Scouts = []string{"tiled-groups"}, []string{"tiled-twelfth", "tiled-groups"}
	single, err := scheduler.Run(t.Context(), net, chip, 12, recipe, scheduler.Options{})
	if err != nil || float64(single.Sim.TotalPs) > 1.005*float64(r.Sim.TotalPs) {
		t.Errorf("by kinds it takes %d ps, a recipe that is tried in all ways %v, %v", r.Sim.TotalPs, single, err)
	}
}
