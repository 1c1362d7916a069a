package interp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Parameters of columns that do not divide pass through a buffer that holds few of them, and a product's first operand
// that is a constant; and the first core has nothing but the border of a product's result.
func TestTinyBuffers(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	recipe = recipe.With("weights", scheduler.Strategy{Name: "own",
		Decide: func(_ context.Context, d *scheduler.Draft) error {
			d.Lower.Pieces, d.Lower.CrossLayer, d.Lower.KeepWeights, d.Lower.WeightsFirst = 8, true, true, true
			return nil
		}}).With("bind", scheduler.Strategy{Name: "last even dimension",
		Decide: func(_ context.Context, d *scheduler.Draft) error {
			d.Bindings, d.Scopes = make([]schedule.Binding, len(d.Instances.Instances)),
				make([]schedule.Level, len(d.Instances.Instances))
			for k, group := range d.Grouping.Groups {
				for i := d.Instances.First[k]; i < d.Instances.First[k]+int(group.Factor()); i++ {
					r := d.Instances.Instances[i].Regions[group.Outputs[0]]
					d.Scopes[i], d.Bindings[i] = schedule.DDR, schedule.One(len(r))
					for dim := range slices.Backward(r) {
						if r[dim].Len()%2 == 0 {
							d.Bindings[i][dim] = 2
							break
						}
					}
				}
			}
			return nil
		}})
	for _, c := range []struct {
		name    string
		machine func(r *rand.Rand, s *hardware.Spec)
		build   func(g *grower, batch int64) model.TensorID
	}{
		{"bias", func(r *rand.Rand, s *hardware.Spec) { s.L1WeightBytes = pick(r, hardware.Bytes(512), 1024) },
			func(g *grower, batch int64) model.TensorID {
				x := g.op("MatMul", model.Attr{}, g.b.Input("x", model.F16, batch, 3+g.Int64N(4), 16),
					g.param(16, 120+g.Int64N(20)))
				return g.op("Relu", model.Attr{}, g.op("Add", model.Attr{}, x, g.param(g.shape(x)[2])))
			}},
		{"border", func(*rand.Rand, *hardware.Spec) {}, func(g *grower, batch int64) model.TensorID {
			x := g.op("MatMul", model.Attr{}, g.b.Input("x", model.F16, batch, 4, 8), g.param(8, 3))
			return g.op("Pad", model.Attr{Pads: []int64{0, 0, 5, 0, 0, 0}}, x)
		}},
		{"constant rows", func(*rand.Rand, *hardware.Spec) {}, func(g *grower, batch int64) model.TensorID {
			x := g.b.Input("x", model.F16, batch, 12, 10)
			for range 2 {
				x = g.op("MatMul", model.Attr{}, g.param(pick(g.Rand, int64(4), 12, 30, 60), g.shape(x)[1]), x)
			}
			return g.dense(x, 8)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			done, coarse := 0, 0
			for i := range uint64(20) {
				r := rand.New(rand.NewPCG(i, 13))
				spec := machine(r)
				spec.Clusters, spec.CoreTypes[0].Count, spec.L1.SizeBytes = 1, 2, pick(r, hardware.Bytes(1024), 4096)
				c.machine(r, spec)
				src := network.Network{Name: c.name, Graph: func(batch int64) (*model.Graph, error) {
					g := &grower{Rand: rand.New(rand.NewPCG(i, 14)), b: model.NewBuilder(c.name)}
					g.b.Output(c.build(g, batch))
					return g.b.Build()
				}}
				made, err := scheduler.Run(context.Background(), src, spec, 1+r.Int64N(4), recipe, scheduler.Options{Chunk: 1})
				var tooBig *graphturbo.DoesNotFitError
				if errors.As(err, &tooBig) {
					continue
				}
				if err == nil {
					_, err = interp.Run(made.Program, graphs(made.Plans), i)
				}
				var part *interp.CoarseError
				switch {
				case errors.As(err, &part):
					coarse++
				case err != nil:
					t.Errorf("%d: %v", i, err)
				default:
					done++
				}
			}
			t.Logf("%d programs agree, %d do not say what their commands do", done, coarse)
			if done < 5 {
				t.Errorf("%d programs agree, %d do not say what their commands do, expected more", done, coarse)
			}
		})
	}
}
