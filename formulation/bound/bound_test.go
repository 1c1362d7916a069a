package bound_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

var all = flag.Bool("all", false, "all networks, variants and machines, which takes hours")

type cell struct {
	network, machine string
	batch            int64
}

// cells are networks, machines and batches of which all variants are held against the bound.
var cells = []cell{
	{"resnet18", "stcp920", 16}, {"squeezenet", "stcp920", 8}, {"alexnet", "stcp920", 5},
	{"vit-b16", "stcp920", 4}, {"bert-128", "stcp920", 8}, {"resnet18", "goya", 4},
	{"resnet18", "ipu", 8}, {"squeezenet", "v100", 4}, {"bert-128", "ascend910", 4}, {"resnet18", "stcp920-paper", 4},
}

// counted is a context that is done once it has been asked for its error so often.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Whoever interrupts a bound waits for none of its parts: prices are looked for with
// a hundred questions of the context and more.
func TestBoundIsInterrupted(t *testing.T) {
	net, err := network.Open("resnet18", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range []int{0, 10, 100} {
		if _, err := bound.Cold(&counted{context.Background(), asked}, net, chip, 16); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d questions: found the error %v, expected that of the context", asked, err)
		}
	}
}

// No variant is faster than the bound on all schedules, and no program has a bound of its own
// below the part of that which does not order loads.
func TestNoScheduleIsFaster(t *testing.T) {
	ctx := context.Background()
	chosen := []string{"tvm", "cross-layer"}
	if *all {
		cells, chosen = nil, nil
		for _, r := range append(recipes.All(), recipes.Unfused()) {
			if !r.Exact() || r.Name == "exact-bind" {
				chosen = append(chosen, r.Name)
			}
		}
		for _, machine := range hardware.Presets() {
			for _, name := range zoo.Names() {
				cells = append(cells, cell{name, machine, 4})
			}
		}
	}
	for _, c := range cells {
		t.Run(fmt.Sprintf("%s on %s", c.network, c.machine), func(t *testing.T) {
			net, err := network.Open(c.network, network.Options{})
			if err != nil {
				t.Fatal(err)
			}
			chip, err := scheduler.OpenMachine(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range chosen {
				recipe, err := recipes.Lookup(name)
				if err != nil {
					t.Fatal(err)
				}
				r, err := scheduler.Run(ctx, net, chip, c.batch, recipe, scheduler.Options{InPlace: true})
				if err != nil && *all {
					t.Log(err) // not every machine holds every network
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				b, err := bound.Cold(ctx, net, r.Spec, c.batch)
				if err != nil {
					t.Fatal(err)
				}
				for _, term := range b.Terms {
					if term.Seconds > r.LatencySeconds() {
						t.Errorf("%s: %+v, simulated in %g s", name, term, r.LatencySeconds())
					}
					if own := float64(r.Sim.Bound.Ps()) * 1e-12; term.Seconds > own && !strings.Contains(term.Name, "loads") {
						t.Errorf("%s: %+v, the program's own bound is %g s", name, term, own)
					}
				}
				groups := 0.0
				for _, plan := range r.Plans[:1] {
					for _, seg := range plan {
						k, err := bound.Kernels(seg.Schedule)
						if err != nil {
							t.Fatal(err)
						}
						groups += k * float64(seg.Iterations)
					}
				}
				own := float64(r.Sim.Bound.Ps()) * 1e-12
				if work := b.Terms[0].Seconds; work > groups || groups > own || own > r.LatencySeconds() {
					t.Errorf("%s: any groups %g s, these groups %g s, this program %g s, simulated %g s, expected them to rise", name,
						work, groups, own, r.LatencySeconds())
				}
				t.Logf("%-12s bound %.3f, groups %.3f, program %.3f, simulated %.3f ms", name, 1e3*b.Seconds, 1e3*groups, 1e3*own,
					1e3*r.LatencySeconds())
				steady, err := bound.Steady(ctx, net, r.Spec, c.batch)
				if err != nil {
					t.Fatal(err)
				}
				rate, err := r.Steady(ctx)
				if err != nil && *all {
					t.Log(err)
					rate = 1e-9
				} else if err != nil {
					t.Fatal(err)
				}
				if per := float64(c.batch) / rate; steady.Seconds > per*1.001 { // the rate is of a few batches
					t.Errorf("%s: %g s per batch in a row, the bound is %g s", name, per, steady.Seconds)
				}
				if b.Seconds < 0.02*r.LatencySeconds() && name != "tvm" && !*all {
					t.Errorf("%s: bound %g s is no use for %g s", name, b.Seconds, r.LatencySeconds())
				}
			}
		})
	}
}

// Where clusters divide the network, or some have no work, schedules may beat the bound on even divisions of the
// batch, and none the bound on any division.
func TestAnyDivision(t *testing.T) {
	net, err := network.Open("alexnet", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	const batch = 16
	even, err := bound.Cold(t.Context(), net, chip, batch)
	if err != nil {
		t.Fatal(err)
	}
	least, err := bound.AnyDivision(t.Context(), net, chip, batch)
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	hold := func(name string, r *scheduler.Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if s := r.LatencySeconds(); s >= even.Seconds || s < least {
			t.Errorf("%s: %g s, expected less than %g s, the bound on even divisions, and no less than %g s", name, s,
				even.Seconds, least)
		}
		if even.Check(r.LatencySeconds()) == nil {
			t.Errorf("%s: %g s pass for an even division", name, r.LatencySeconds())
		}
	}
	for _, division := range divisions {
		r, err := scheduler.Run(t.Context(), net, chip, batch, recipe, scheduler.Options{Clusters: division, Chunk: batch})
		hold(division.Name(), r, err)
	}
	chip.Clusters = 1 // what one cluster does, it does among idle ones
	r, err := scheduler.Run(t.Context(), net, chip, batch, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := r.File(schedulefile.Origin{})
	if chip, err = scheduler.OpenMachine("stcp920"); err != nil {
		t.Fatal(err)
	}
	f.Hardware.Fingerprint = schedulefile.Fingerprint(chip)
	for len(f.Clusters) < chip.Clusters {
		f.Clusters = append(f.Clusters, []schedulefile.Segment{})
	}
	r, err = scheduler.Restore(t.Context(), f, chip)
	hold("one cluster", r, err)
}

// One layer of GPT-3 175B on a machine like the TPU v4i, where AccelForge's regression reference has
// 56.331 ms (fused) for 2048 tokens and 6.066 ms for one behind them. The arithmetic alone takes
// 55.425 ms, the bytes 6.06595.
func TestOutsideCase(t *testing.T) {
	for name, want := range map[string]float64{"gpt3-175b-prefill": 55.425e-3, "gpt3-175b-decode": 6.06595e-3} {
		net, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := scheduler.OpenMachine("tpu-v4i")
		if err != nil {
			t.Fatal(err)
		}
		b, err := bound.Cold(context.Background(), net, chip, 1)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(b.Seconds/want-1) > 1e-4 {
			t.Errorf("%s: %g s, want %g s", name, b.Seconds, want)
		}
	}
}

// What the bounds do not hold for is refused: here a Concat in one layer with what it reads, of
// which a core's part may have nothing of some operands.
func TestCovers(t *testing.T) {
	for name, want := range map[string]string{"cross-layer": "", "astitch": "",
		"tvm-fuse": `does not follow as the last light operator of a straight line`} {
		net, err := network.Open("dlrm-kaggle", network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		chip, err := scheduler.OpenMachine("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := recipes.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(context.Background(), net, chip, 64, recipe, scheduler.Options{Chunk: 16})
		if err != nil {
			t.Fatal(err)
		}
		if err := bound.Covers(r.Schedule); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What leaves of a tall product crosses the DDR behind the first launch and the latencies on its way. Behind the launch
// come the load into a core and a command, too, which is the largest term on a GPU, and no schedule in tiles is faster.
func TestStores(t *testing.T) {
	ctx := context.Background()
	spec, err := hardware.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	spec = spec.Fast() // of which the bound is
	net := network.Network{Name: "tall", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("tall")
		b.Output(b.Op("MatMul", "product", model.Attr{}, b.Input("x", model.F16, batch, 64),
			b.Param("w", model.F16, 64, 256)))
		return b.Build()
	}}
	b, err := bound.Cold(ctx, net, spec, 4096)
	if err != nil {
		t.Fatal(err)
	}
	want := .5e-6 + 100e-9 + 200e-9 + 4096*256*2/1555e9
	if found := termsOf(b)["launch, then stores"]; math.Abs(found-want) > 1e-6*want {
		t.Errorf("launch, then stores: %g s, expected %g", found, want)
	}
	if want += 100e-9 + 20/1.41e9; b.Term != "one product" || b.Seconds < want {
		t.Errorf("%s: %g s, expected one product, and %g at least", b.Term, b.Seconds, want)
	}
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []int64{512, 4096} {
		r, err := scheduler.Run(ctx, net, spec, 4096, recipe, scheduler.Options{Chunk: chunk})
		if err != nil {
			t.Fatal(err)
		}
		if r.LatencySeconds() < b.Seconds {
			t.Errorf("in chunks of %d it takes %g s, below the bound of %g", chunk, r.LatencySeconds(), b.Seconds)
		}
	}
}
