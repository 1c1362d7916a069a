package binding_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// What bindings of an instance's layers cost is what a schedule with these bindings costs step
// by step, but for what they have no part in; and the best of them is no worse than others.
func TestLayers(t *testing.T) {
	for _, c := range []networkCase{{"squeezenet", "stcp920", 1, false}, {"bert-128", "stcp920", 1, true},
		{"toy-fig5", "../../hardware/testdata/ipu.yaml", 1, false}} {
		t.Run(c.name(), func(t *testing.T) {
			s, _, m := pose(t, c)
			r := rand.New(rand.NewPCG(1, 1))
			cores := schedule.CoresWithL1(s.Spec)
			tried := 0
			for k, sg := range s.Grouping.Groups {
				if len(s.Layers[k]) < 2 || sg.Factor() > 1 || tried == 6 {
					continue
				}
				inst := s.Instances.First[k]
				// Values as the sum by steps prices them: where they are wanted.
				plain := *s
				if err := plain.BuildSteps(context.Background(), schedule.L1); err != nil {
					t.Fatal(err)
				}
				l, err := binding.LayersOf(t.Context(), &plain, inst, m,
					func(layer *schedule.Layer, out model.TensorID, region model.Region) []schedule.Binding {
						forbidden := schedule.Forbidden(s.Graph, layer.Ops, out)
						return slices.DeleteFunc(binding.Candidates(region, forbidden, cores, s.Slices != schedule.SlicesAlike),
							func(b schedule.Binding) bool {
								return 2*b.Cores() < cores || schedule.CheckBinding(region, b, forbidden, cores) != nil
							})
					})
				if err != nil {
					t.Fatal(err)
				}
				p := l.Problem(binding.Weights{Weights: 1, Moves: 1}, func() float64 { return 1 })
				if err := p.Validate(); err != nil {
					t.Fatal(err)
				}
				best, err := binding.Search(t.Context(), p, binding.Options{})
				if err != nil {
					t.Fatal(err)
				}
				seconds := func(choice []int) float64 {
					q := plain
					q.LayerBindings = make([][]schedule.Binding, len(s.Layers))
					q.LayerBindings[k] = make([]schedule.Binding, len(s.Layers[k]))
					for n, x := range choice {
						at := slices.IndexFunc(s.Layers[k], func(y schedule.Layer) bool { return y.Anchor == l.Anchors[n] })
						q.LayerBindings[k][at] = l.Bindings[n][x]
					}
					if err := q.BuildSteps(context.Background(), schedule.L1); err != nil {
						t.Fatal(err)
					}
					return binding.Seconds(&q, m)
				}
				rest := seconds(best.Choice) - p.Seconds(best.Choice)
				if rest < 0 {
					t.Errorf("%s: the layers cost %g s more than all of the schedule", sg.Name, -rest)
				}
				for range 5 {
					choice := make([]int, len(best.Choice))
					for n := range choice {
						choice[n] = r.IntN(len(l.Bindings[n]))
					}
					if got, want := seconds(choice)-rest, p.Seconds(choice); math.Abs(got-want) > 1e-9*want {
						t.Errorf("%s: %v costs %g s step by step, the problem says %g", sg.Name, choice, got, want)
					}
					if p.Seconds(choice) < best.Bound-1e-12 {
						t.Errorf("%s: %v costs %g s, below the bound %g", sg.Name, choice, p.Seconds(choice), best.Bound)
					}
				}
				tried++
			}
			if tried == 0 {
				t.Error("no group was tried")
			}
		})
	}
}
