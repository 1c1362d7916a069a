package interp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/interp"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// No schedule of a random network is faster than the bound on all of them.
func TestBoundOfRandomNetworks(t *testing.T) {
	recipes := scheduler.All()
	closest := 0.0
	for i, done := *seed, 0; done < 2**programs; i++ {
		r := rand.New(rand.NewPCG(i, 3))
		spec, recipe := machine(r), recipes[int(i)%len(recipes)]
		spec.LaunchSeconds = pick(r, 0, 1e-7, 5e-6) // a dear one hides the rest
		batch := pick(r, int64(1), 2, 3, 8)
		made, err := scheduler.Run(context.Background(), net(i, false), spec, batch, recipe, scheduler.Options{InPlace: r.IntN(2) == 0})
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		done++
		b, err := bound.Cold(context.Background(), net(i, false), made.Spec, batch)
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		for _, term := range b.Terms {
			if term.Seconds > made.LatencySeconds() {
				t.Errorf("seed %d, %s, batch %d: %+v, simulated in %g s", i, recipe.Name, batch, term, made.LatencySeconds())
			}
		}
		closest = max(closest, b.Seconds/made.LatencySeconds())
	}
	if closest < 0.3 {
		t.Errorf("the bound is at most %g of a simulated time, expected some to be close", closest)
	}
	t.Logf("the closest is %g of the simulated time", closest)
}

// Of a table that a layer looks up twice, both look-ups' rows pass, but no more than a small table has.
func TestLookUpsOfOneTable(t *testing.T) {
	for _, rows := range []int64{4, 2000} {
		net := network.Network{Name: "look-ups", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("look-ups")
			table := b.Param("table", model.F16, rows, 16)
			x := b.Op("Gather", "x", model.Attr{}, table, b.Input("i", model.I32, batch, 8))
			y := b.Op("Gather", "y", model.Attr{}, table, b.Input("j", model.I32, batch, 8))
			b.Output(b.Op("Add", "add", model.Attr{}, x, y))
			return b.Build()
		}}
		for seed := range uint64(8) {
			spec := machine(rand.New(rand.NewPCG(seed, 5)))
			spec.DDR.BandwidthBytesPerSecond = 1e8 // all waits for it
			for _, name := range []string{"cross-layer", "astitch"} {
				recipe, err := scheduler.Lookup(name)
				if err != nil {
					t.Fatal(err)
				}
				made, err := scheduler.Run(context.Background(), net, spec, 6, recipe, scheduler.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := interp.Run(made.Program, graphs(made.Plans), seed); err != nil {
					t.Errorf("%d rows, seed %d, %s: %v", rows, seed, name, err)
				}
				b, err := bound.Cold(context.Background(), net, made.Spec, 6)
				if err != nil {
					t.Fatal(err)
				}
				if b.Seconds > made.LatencySeconds() {
					t.Errorf("%d rows, seed %d, %s: the bound is %g s by %s, simulated in %g s", rows, seed, name, b.Seconds, b.Term, made.LatencySeconds())
				}
			}
		}
	}
}

// Products of fewer rows than the parameters behind them, each of which a piece brings: pieces without
// rows take no time on the matrix unit.
func TestBoundOfFewRows(t *testing.T) {
	recipe, err := scheduler.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	closest := 0.0
	for i := range uint64(48) {
		r := rand.New(rand.NewPCG(i, 4))
		spec, rows, params := machine(r), 1+r.Int64N(5), 1+r.IntN(12)
		spec.LaunchSeconds, spec.DDR.LatencySeconds, spec.CoreLink.LatencySeconds = 0, 0, 0
		spec.DDR.BandwidthBytesPerSecond *= 1000
		spec.DDRLink.BandwidthBytesPerSecond *= 1000
		spec.CoreLink.BandwidthBytesPerSecond *= 1000
		spec.LB.SizeBytes, spec.LBWeightBytes, spec.GB = 64<<10, 64<<10, nil
		for k := range spec.CoreTypes[0].Units {
			if u := &spec.CoreTypes[0].Units[k]; u.Kind == hardware.Matrix {
				u.FillCycles, u.BlockCycles = 1000, 0
			} else {
				u.FillCycles, u.Lanes = 0, pick(r, 16, 64)
			}
		}
		src := network.Network{Name: "few rows", Graph: func(batch int64) (*model.Graph, error) {
			g := &grower{Rand: rand.New(rand.NewPCG(i, 4)), b: model.NewBuilder("few rows")}
			x := g.b.Input("x", model.F16, batch, rows, 8)
			x = g.op("MatMul", model.Attr{}, x, g.param(8, 500))
			for range params {
				x = g.op("Add", model.Attr{}, x, g.param(500))
			}
			g.b.Output(g.op("Gelu", model.Attr{}, x))
			return g.b.Build()
		}}
		made, err := scheduler.Run(context.Background(), src, spec, 1, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := bound.Cold(context.Background(), src, made.Spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		if b.Seconds > made.LatencySeconds() {
			t.Errorf("%d: %d rows, %d parameters: %s says %g s, simulated in %g s", i, rows, params, b.Term, b.Seconds, made.LatencySeconds())
		}
		closest = max(closest, b.Seconds/made.LatencySeconds())
	}
	if closest < 0.9 {
		t.Errorf("the bound is at most %g of a simulated time, expected some to be close", closest)
	}
	t.Logf("the closest is %g of the simulated time", closest)
}
