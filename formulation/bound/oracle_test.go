package bound_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A path is a sequence of choices, each of so many.
type path struct{ chosen, of []int }

// next is the path behind p in the order of a dictionary, or false at the end.
func (p *path) next() bool {
	for k := len(p.chosen) - 1; k >= 0; k-- {
		if p.chosen[k]++; p.chosen[k] < p.of[k] {
			p.chosen, p.of = p.chosen[:k+1], p.of[:k+1]
			return true
		}
	}
	return false
}

// explore visits every sequence of choices that visit makes, or some at random if there are
// to be only so many.
func explore(some int, visit func(choose func(n int) int)) {
	r := rand.New(rand.NewPCG(5, 6))
	for p := (&path{}); ; {
		at := 0
		visit(func(n int) int {
			if some > 0 {
				return r.IntN(n)
			}
			if at == len(p.chosen) {
				p.chosen, p.of = append(p.chosen, 0), append(p.of, n)
			}
			at++
			return p.chosen[at-1]
		})
		if some--; some == 0 || some < 0 && !p.next() {
			return
		}
	}
}

// toy is a small network: products on images of so many rows and few channels.
func toy(name string, rows int64, build func(b *model.Builder, x model.TensorID,
	op func(model.Kind, model.Attr, ...model.TensorID) model.TensorID) model.TensorID) network.Network {
	return network.Network{Name: name, Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder(name)
		count := 0
		x := b.Input("x", model.F16, batch, 4, rows, 1)
		b.Output(build(b, x, func(kind model.Kind, a model.Attr, in ...model.TensorID) model.TensorID {
			count++
			if kind == "Conv" {
				in = append(in, b.Param(fmt.Sprintf("w%d", count), model.F16, 4, b.Tensor(in[0]).Shape[1], 1, 1))
				a = model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Group: 1}
			}
			return b.Op(kind, fmt.Sprintf("%s%d", kind, count), a, in...)
		}))
		return b.Build()
	}}
}

var toys = []struct {
	net network.Network
	// some: so many schedules at random; 0: all of them.
	some int
	// within: the best is at most so many times the bound.
	within float64
}{
	{toy("product", 1, func(b *model.Builder, x model.TensorID,
		op func(model.Kind, model.Attr, ...model.TensorID) model.TensorID) model.TensorID {
		return op("Relu", model.Attr{}, op("Conv", model.Attr{}, x))
	}), 0, 3},
	{toy("two products", 1, func(b *model.Builder, x model.TensorID,
		op func(model.Kind, model.Attr, ...model.TensorID) model.TensorID) model.TensorID {
		return op("Conv", model.Attr{}, op("Conv", model.Attr{}, x))
	}), 0, 3},
	{toy("residual", 2, func(b *model.Builder, x model.TensorID,
		op func(model.Kind, model.Attr, ...model.TensorID) model.TensorID) model.TensorID {
		y := op("Relu", model.Attr{}, op("Conv", model.Attr{}, x))
		y = op("Relu", model.Attr{}, op("Add", model.Attr{}, op("Conv", model.Attr{}, y), x))
		return op("Conv", model.Attr{}, op("Concat", model.Attr{Axis: 1}, y, op("Sigmoid", model.Attr{}, y)))
	}), 1500, 4},
}

// small is a machine that a toy network fills.
func small(t *testing.T) *hardware.Spec {
	s, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	s.Clusters, s.CoreTypes[0].Count = 1, 2
	for i := range s.CoreTypes[0].Units {
		if u := &s.CoreTypes[0].Units[i]; u.Kind == hardware.Matrix {
			u.Rows, u.Cols = 2, 2
		}
	}
	s.L1.SizeBytes, s.L1WeightBytes, s.LLB.SizeBytes = 256, 512, 16<<10
	s.LaunchSeconds = 1e-7
	return s
}

// recipeOf decides everything by choice: groups are stretches of the order of execution, with any
// factor along any dimension; instances run in any order, on any cores, and leave their
// results at any level.
func recipeOf(t *testing.T, choose func(int) int) scheduler.Recipe {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	own := func(stage string, decide func(d *scheduler.Draft) error) {
		recipe = recipe.With(stage, scheduler.Strategy{Name: "any",
			Decide: func(_ context.Context, d *scheduler.Draft) error { return decide(d) }})
	}
	own("group", func(d *scheduler.Draft) error {
		d.Grouping = &schedule.Grouping{}
		var ops []model.OpID
		for i, op := range d.Graph.Ops {
			ops = append(ops, op.ID)
			if i < len(d.Graph.Ops)-1 && choose(2) == 0 {
				continue
			}
			sg := &schedule.SubGraph{ID: len(d.Grouping.Groups), Name: op.Name, Ops: ops}
			sg.Inputs, sg.Outputs = schedule.Boundary(d.Graph, ops)
			d.Grouping.Groups = append(d.Grouping.Groups, sg)
			ops = nil
		}
		return nil
	})
	own("split", func(d *scheduler.Draft) error {
		for _, sg := range d.Grouping.Groups {
			out := d.Graph.Tensor(sg.Outputs[0])
			sg.Split = schedule.SplitInfo{Factor: 1, Dim: -1}
			var dims []int
			for k, n := range out.Shape {
				if n > 1 && schedule.Track(d.Graph, sg.Ops, sg.Outputs, k).Splittable {
					dims = append(dims, k)
				}
			}
			if k := choose(len(dims) + 1); k < len(dims) {
				sg.Split.Dim, sg.Split.Factor = dims[k], 2
			}
		}
		return nil
	})
	own("order", func(d *scheduler.Draft) error {
		n := len(d.Instances.Instances)
		done := make([]bool, n)
		for range n {
			var ready []int
			for i := range d.Instances.Instances {
				ok := !done[i]
				for _, dep := range d.Instances.Instances[i].Deps {
					ok = ok && done[dep.From]
				}
				if ok {
					ready = append(ready, i)
				}
			}
			i := ready[choose(len(ready))]
			done[i] = true
			d.Order = append(d.Order, i)
		}
		return nil
	})
	own("bind", func(d *scheduler.Draft) error {
		d.Bindings, d.Scopes = make([]schedule.Binding, len(d.Instances.Instances)),
			make([]schedule.Level, len(d.Instances.Instances))
		for k, sg := range d.Grouping.Groups {
			out := sg.Outputs[0]
			dims := []int{-1}
			for dim, iv := range d.Instances.Instances[d.Instances.First[k]].Regions[out] {
				if iv.Len()%2 == 0 {
					dims = append(dims, dim)
				}
			}
			dim, level := dims[choose(len(dims))], schedule.Level(choose(3))
			for q := range int(sg.Factor()) {
				i := d.Instances.First[k] + q
				r := d.Instances.Instances[i].Regions[out]
				d.Scopes[i], d.Bindings[i] = level, schedule.One(len(r))
				if dim >= 0 {
					d.Bindings[i][dim] = 2
				}
			}
		}
		return nil
	})
	own("weights", func(d *scheduler.Draft) error {
		d.Lower = lower.Options{Generator: schedule.Generator{CrossLayer: choose(2) == 1, KeepWeights: true, Prefetch: true}}
		return nil
	})
	return recipe
}

// Of all schedules of toy networks on a small machine, simulated, none is below the bound, and
// the best is not far above it.
func TestAllSchedulesOfToys(t *testing.T) {
	ctx := context.Background()
	for _, c := range toys {
		t.Run(c.net.Name, func(t *testing.T) {
			spec := small(t)
			b, err := bound.Cold(ctx, c.net, spec, 2)
			if err != nil {
				t.Fatal(err)
			}
			all, best, refused := 0, 0.0, map[string]int{}
			explore(c.some, func(choose func(int) int) {
				chunk := int64(1 + choose(2))
				r, err := scheduler.Run(ctx, c.net, spec, 2, recipeOf(t, choose), scheduler.Options{Chunk: chunk})
				if err != nil {
					refused[err.Error()]++
					return
				}
				all++
				if best == 0 || r.LatencySeconds() < best {
					best = r.LatencySeconds()
				}
			})
			t.Logf("%d schedules: the best takes %g s, the bound is %g s (%s), %.3f times", all, best, b.Seconds,
				b.Term, best/b.Seconds)
			if len(refused) > all {
				t.Errorf("more are refused: %v", refused)
			}
			if best < b.Seconds {
				t.Error("the best is below the bound")
			}
			if best > c.within*b.Seconds {
				t.Errorf("the best is more than %g times the bound", c.within)
			}
		})
	}
}
