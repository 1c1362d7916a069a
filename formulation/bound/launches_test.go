package bound_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// What programs launch, move and compute is no less, however it is weighted, than what
// the bound says of all chunks and groups, and not always far from it.
func TestLaunchesAgainstBytes(t *testing.T) {
	ctx := context.Background()
	chosen := []string{"tvm", "cross-layer", "astitch"}
	r := rand.New(rand.NewPCG(1, 2))
	closest, binding := 0.0, 0.0
	for _, c := range append([]cell{{"bert-512", "stcp920", 4}, {"mobilenetv2", "stcp920", 32},
		{"densenet121", "ascend910", 16}, {"bert-128", "stcp920-paper", 8}}, cells...) {
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
			for _, chunk := range []int64{0, 1} {
				made, err := scheduler.Run(ctx, net, chip, c.batch, recipe, scheduler.Options{InPlace: true, Chunk: chunk})
				if err != nil {
					t.Fatal(err)
				}
				n := made.Shares[0]
				least, err := bound.Trade(net, made.Spec, n)
				if err != nil {
					t.Fatal(err)
				}
				launches, moved, matrix := spent(made.Program)
				bytes, products := least.Bytes, least.Products
				perByte := 1 / made.Spec.DDR.BandwidthBytesPerSecond
				fewest := least.Fewest(64, perByte, 1)
				found := perByte*(moved-bytes) + matrix - products
				if k := min(int(launches), 64); launches <= 64 && fewest[k] > found*(1+1e-9)+1e-15 {
					t.Errorf("%s on %s, %s, chunk %d: %d launches with %g s of bytes and products, want at least %g",
						c.network, c.machine, name, made.Chunk, k, found, fewest[k])
				}
				// Launches of each number, with a price, are no less than what mixes them.
				price, sum := made.Spec.LaunchSeconds, math.Inf(1)
				for k := 1; k <= 64; k++ {
					sum = min(sum, price*float64(k)+fewest[k])
				}
				mixed := least.Least(price, perByte, 1)
				if mixed > sum*(1+1e-9) {
					t.Errorf("%s on %s: launches by number %g s, mixed %g s", c.network, c.machine, sum, mixed)
				}
				if sum > 1.5*price {
					binding = max(binding, mixed/sum)
				}
				for range 20 {
					a, b, d := r.Float64(), r.Float64(), r.Float64()
					a, b, d = a*a*made.Spec.LaunchSeconds, b*b/made.Spec.DDR.BandwidthBytesPerSecond, d*d
					found, bound := a*launches+b*(moved-bytes)+d*(matrix-products), least.Least(a, b, d)
					if bound > found*(1+1e-9) {
						t.Errorf(
							"%s on %s, %s, chunk %d: %g launches, %g bytes of at least %g, %g s of products of at least %g, by weights %g, %g, %g in all %g, expected at least %g",
							c.network, c.machine, name, made.Chunk, launches, moved, bytes, matrix, products, a, b, d, found, bound)
					}
					closest = max(closest, bound/found)
				}
			}
		}
	}
	t.Logf("the closest is %g of what is found; mixed, %g of what launches by number take", closest, binding)
	if min(closest, binding) < 0.5 {
		t.Error("expected some to be closer")
	}
}

// spent is what the first cluster does: launches, bytes that it takes of the DDR, seconds of products.
func spent(p *isa.Program) (launches, bytes, products float64) {
	for i := range p.Commands {
		c := &p.Commands[i]
		q := p.Queues[c.Queue]
		if q.Cluster != 0 {
			continue
		}
		switch {
		case c.Kind == isa.Launch:
			launches++
		case c.Kind == isa.Matrix:
			products += float64(c.DurationPs) * 1e-12
		}
		for _, u := range c.Uses {
			if p.Resources[u.Resource].Kind == isa.DDRBandwidth {
				bytes += float64(u.Bytes)
			}
		}
	}
	return launches, bytes, products
}
