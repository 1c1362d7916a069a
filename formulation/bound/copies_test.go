package bound_test

import (
	"math"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// products are two products with a Relu between them.
func products(rows, columns, depth int64) network.Network {
	return network.Network{Name: "products", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("products")
		x := b.Input("x", model.F16, batch*rows, depth)
		x = b.Op("MatMul", "first", model.Attr{}, x, b.Param("w1", model.F16, depth, depth))
		x = b.Op("Relu", "relu", model.Attr{}, x)
		b.Output(b.Op("MatMul", "second", model.Attr{}, x, b.Param("w2", model.F16, depth, columns)))
		return b.Build()
	}}
}

// copying is a machine whose LLB is slow and does not broadcast.
func copying(t *testing.T, cores int) *hardware.Spec {
	spec := small(t)
	spec.Clusters, spec.CoreTypes[0].Count, spec.CoreLink.Broadcast = 1, cores, false
	spec.LaunchSeconds, spec.SyncSeconds, spec.LLB.BandwidthBytesPerSecond, spec.LLB.LatencySeconds = 0, 0, 1e6, 0
	spec.DDR.BandwidthBytesPerSecond, spec.DDR.LatencySeconds = 1e13, 0
	spec.CoreLink.BandwidthBytesPerSecond, spec.CoreLink.LatencySeconds = 1e13, 0
	spec.L1.SizeBytes, spec.L1WeightBytes, spec.LLB.SizeBytes = 1<<20, 1<<19, 1<<22
	return spec
}

func termsOf(b *bound.Bound) map[string]float64 {
	terms := map[string]float64{}
	for _, x := range b.Terms {
		terms[x.Name] = x.Seconds
	}
	return terms
}

// On one core each byte passes the LLB once on each way, and the LLB never rests: the best schedule takes the bound.
func TestCopiesMet(t *testing.T) {
	net, spec := products(16, 64, 64), copying(t, 1)
	b, err := bound.Cold(t.Context(), net, spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	best := math.Inf(1)
	for _, name := range []string{"cross-layer", "tiled", "tiled-l1"} {
		recipe, err := recipes.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(t.Context(), net, spec, 1, recipe, scheduler.Options{Level: scheduler.LevelL1})
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, r.LatencySeconds())
	}
	if c := termsOf(b)["copies"]; c == 0 || best < b.Seconds || best > 1.001*c {
		t.Errorf("the best schedule takes %g s, the term copies is %g s of %v, expected as much", best, c, b.Terms)
	}
}

// Parts of rows and columns and slices of the reduction are as many as are best, of all there are: none of them takes
// less than the mean, and one takes little more.
func TestCopiesAgainstAllParts(t *testing.T) {
	const cores, rows, columns, depth = 12, 24, 96, 60
	spec := copying(t, cores)
	spec.LLB.BandwidthBytesPerSecond, spec.LLB.LatencySeconds, spec.SyncSeconds = 1e9, 2e-7, 1e-6
	c, err := bound.Copies(products(rows, columns, depth), spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range [][2]float64{{0, 0}, {0, .3}, {.4, .3}, {.7, 0}, {.05, .9}, {0, 1}, {1, 0}} {
		path, llb := w[0], w[1]
		units := 1 - path - llb
		sum := 0.0
		for k, n := range []float64{depth, columns} { // of each product
			peak, least := n*rows*depth*c.Row, math.Inf(1) // on one core
			for s := 1.; s <= cores; s++ {
				for parts := 1.; parts*s <= min(cores, n*s); parts++ {
					for across := 1.; across*parts*s <= cores; across++ {
						own, wait := 1., 0.
						if s > 1 {
							own, wait = 0, 4*2e-7+1e-6
						} else if parts > 1 {
							wait = 2 * 2e-7
						}
						if k == 0 {
							own = 0
						}
						time := peak / (across * parts * s)
						brought := rows * depth * 2 * (parts - own) / 1e9
						moved := depth*n*2*across/1e9 + brought + (s-1)*2*rows*n*2/1e9
						along := time
						if k == 1 {
							along = max(time, brought) + wait
						}
						if math.Mod(depth, s) == 0 {
							least = min(least, units*time+path*along+llb*moved)
						}
					}
				}
			}
			sum += least
		}
		if found := c.Least(path, llb); found > sum*(1+1e-12) || found < .8*sum {
			t.Errorf("weights %v: %g s, the best of all parts take %g s", w, found, sum)
		}
	}
}

// Where waiting for the LLB is long and weights are too many to be copied, no schedule keeps rows where they are.
func TestCopiesOfResNet(t *testing.T) {
	net, err := network.Open("resnet18", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	b, w, err := bound.Prove(t.Context(), net, spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	terms := termsOf(b)
	if terms["copies"] <= max(terms["work"], terms["chain"], terms["series"], terms["llb"]) {
		t.Errorf("the terms are %v, expected more copies than work or bytes", terms)
	}
	if !slices.Contains(w.Path, "stem.conv") || w.Prices.Path <= 0 || w.Prices.LLB <= 0 {
		t.Errorf("the path is %v, its weights %+v", w.Path, w.Prices)
	}
	spec.CoreLink.Broadcast = true
	if b, err = bound.Cold(t.Context(), net, spec, 1); err != nil || termsOf(b)["copies"] != 0 {
		t.Errorf("with broadcast: %v, %v, expected no copies", b.Terms, err)
	}
}

// Fewer and larger cores of another kind load fewer copies.
func TestCopiesOfKinds(t *testing.T) {
	net, spec := products(512, 256, 256), copying(t, 8)
	for _, mixed := range []bool{false, true} {
		if mixed {
			spec.CoreTypes[0].Runs = []string{"matrix", "reduction", "element-wise", "injective"}
			large := spec.Clone().CoreTypes[0]
			large.Name, large.Count = "large", 1
			spec.CoreTypes = append(spec.CoreTypes, large)
		}
		b, err := bound.Cold(t.Context(), net, spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, counted := termsOf(b)["copies"]; counted == mixed {
			t.Errorf("kinds %v: terms %v", mixed, b.Terms)
		}
	}
}
