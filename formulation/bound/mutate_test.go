package bound_test

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/heuristics/ansor"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
)

// anyRecipe decides groups, factors, order, bindings and levels at random.
func anyRecipe(recipe scheduler.Recipe, r *rand.Rand) scheduler.Recipe {
	own := func(stage string, decide func(d *scheduler.Draft) error) {
		recipe = recipe.With(stage, scheduler.Strategy{Name: "any", Decide: func(_ context.Context,
			d *scheduler.Draft) error {
			return decide(d)
		}})
	}
	cut := pick(r, 2, 3, 8, 100)
	own("group", func(d *scheduler.Draft) error {
		d.Grouping = &schedule.Grouping{}
		var ops []model.OpID
		for i, op := range d.Graph.Ops {
			ops = append(ops, op.ID)
			if i < len(d.Graph.Ops)-1 && r.IntN(cut) > 0 {
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
			sg.Split = schedule.SplitInfo{Factor: 1, Dim: -1}
			if len(sg.Outputs) == 0 || r.IntN(3) == 0 {
				continue
			}
			out := d.Graph.Tensor(sg.Outputs[0])
			var dims []int
			for k, n := range out.Shape {
				if n > 1 && schedule.Track(d.Graph, sg.Ops, sg.Outputs, k).Splittable {
					dims = append(dims, k)
				}
			}
			if len(dims) > 0 {
				sg.Split.Dim = pick(r, dims...)
				n := out.Shape[sg.Split.Dim]
				sg.Split.Factor = pick(r, 2, min(n, 4), min(n, 16), 1+r.Int64N(min(n, 16)))
			}
		}
		return nil
	})
	if r.IntN(2) == 0 {
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
				i := pick(r, ready...)
				done[i] = true
				d.Order = append(d.Order, i)
			}
			return nil
		})
	}
	if r.IntN(2) == 0 {
		return anyOptions(recipe, r)
	}
	return recipe.With("weights", scheduler.Strategy{Name: "any", Decide: func(_ context.Context,
		d *scheduler.Draft) error {
		d.Lower = lower.Options{Generator: schedule.Generator{CrossLayer: true, KeepWeights: true, Prefetch: true, BeforeFirst: true}}
		return nil
	}})
}

// anyNests runs some layers by nests at random.
func anyNests(recipe scheduler.Recipe, r *rand.Rand) scheduler.Recipe {
	return recipe.With("nest", scheduler.Strategy{Name: "any", Decide: func(_ context.Context, d *scheduler.Draft) error {
		m, err := cost.New(d.Spec)
		if err != nil {
			return err
		}
		for i := range d.Steps {
			for range r.IntN(4) {
				steps, values := slices.Clone(d.Steps), slices.Clone(d.Values)
				n := ansor.Sample(d.Schedule, i, m, r)
				if n == nil || n.Cores != nil && !n.Cores.Equal(d.Steps[i].Binding) {
					continue // the bindings are another stage's
				}
				if d.Schedule.Follow(i, n) == nil {
					break
				}
				d.Steps, d.Values = steps, values
			}
		}
		return nil
	}})
}

// mutate edits a schedule file as someone may by hand, who hopes for a faster one.
func mutate(f *schedulefile.File, r *rand.Rand) {
	p := &f.Schedules[r.IntN(len(f.Schedules))]
	if len(p.Groups) == 0 || len(p.Instances) == 0 {
		return
	}
	group := r.IntN(len(p.Groups))
	g := &p.Groups[group]
	inst := &p.Instances[r.IntN(len(p.Instances))]
	forget := func() { // what depends on groups and instances
		p.Memory, p.Nests = nil, nil
	}
	switch r.IntN(16) {
	case 0:
		o := &f.Generator
		for _, b := range []*bool{&o.KeepWeights, &o.CrossLayer, &o.Exposed, &o.Prefetch, &o.BeforeFirst, &o.WeightsFirst,
			&o.StorePieces} {
			*b = r.IntN(2) == 0
		}
		o.KeepQuarters, o.Pieces, o.WeightTiles, o.LoadTiles = r.IntN(5), pick(r, int64(0), 1, 3, 64), pick(r, int64(0), 2,
			8), pick(r, int64(0), 2, 64)
	case 1:
		inst.Scope = pick(r, "lb", "gb", "ddr")
		forget()
	case 2, 3:
		for d := range inst.Cores {
			inst.Cores[d] = pick(r, int64(1), 1, 2, 3, 4, 8, 16)
		}
		forget()
	case 4: // neighbours in the order
		if n := len(p.Order); n > 1 {
			i := r.IntN(n - 1)
			p.Order[i], p.Order[i+1] = p.Order[i+1], p.Order[i]
			forget()
		}
	case 5, 6: // two neighbouring layers in one
		if n := len(g.Layers); n > 1 {
			i := r.IntN(n - 1)
			g.Layers[i] = append(slices.Clone(g.Layers[i]), g.Layers[i+1]...)
			g.Layers = slices.Delete(g.Layers, i+1, i+2)
			g.LayerCores = nil
			forget()
		}
	case 7: // a layer in two
		i := r.IntN(len(g.Layers))
		if l := g.Layers[i]; len(l) > 1 {
			at := 1 + r.IntN(len(l)-1)
			g.Layers = slices.Insert(g.Layers, i+1, slices.Clone(l[at:]))
			g.Layers[i] = l[:at:at]
			g.LayerCores = nil
			forget()
		}
	case 8: // a layer's own cores
		for len(g.LayerCores) < len(g.Layers) {
			g.LayerCores = append(g.LayerCores, []int64{})
		}
		g.LayerCores[r.IntN(len(g.LayerCores))] = slices.Repeat([]int64{1}, 1+r.IntN(4))
		own := g.LayerCores[len(g.LayerCores)-1]
		if len(own) > 0 {
			own[r.IntN(len(own))] = pick(r, int64(2), 3, 8)
		}
		forget()
	case 9: // other factors, of which the instances follow
		factor, dim := pick(r, int64(1), 2, 3, 4, 7, 16), r.IntN(3)
		var others []schedulefile.Instance
		like := *inst
		for _, x := range p.Instances {
			if x.Group == group {
				like = x
			} else {
				others = append(others, x)
			}
		}
		at := slices.IndexFunc(p.Order, func(x [2]int) bool { return x[0] == group })
		order := slices.DeleteFunc(slices.Clone(p.Order), func(x [2]int) bool { return x[0] == group })
		for q := range factor {
			like.Index, like.Cores = q, slices.Repeat([]int64{1}, len(like.Cores))
			others = append(others, like)
			order = slices.Insert(order, min(len(order), at+int(q)), [2]int{group, int(q)})
		}
		g.Factor, g.Dim, p.Instances, p.Order = factor, &dim, others, order
		if factor == 1 {
			g.Dim = nil
		}
		g.LayerCores = nil
		forget()
	case 10: // two neighbouring groups in one
		if group+1 < len(p.Groups) && g.Factor == 1 && p.Groups[group+1].Factor == 1 {
			next := p.Groups[group+1]
			g.Ops, g.Layers, g.LayerCores = append(slices.Clone(g.Ops), next.Ops...), append(slices.Clone(g.Layers),
				next.Layers...), nil
			p.Groups = slices.Delete(p.Groups, group+1, group+2)
			p.Instances = slices.DeleteFunc(p.Instances, func(x schedulefile.Instance) bool { return x.Group == group })
			for i := range p.Instances {
				if p.Instances[i].Group > group {
					p.Instances[i].Group--
				}
			}
			p.Order = slices.DeleteFunc(p.Order, func(x [2]int) bool { return x[0] == group })
			for i := range p.Order {
				if p.Order[i][0] > group {
					p.Order[i][0]--
				}
			}
			forget()
		}
	case 11:
		p.UnevenCores = !p.UnevenCores
		forget()
	case 12:
		if p.Outputs = pick(r, "lb", "gb", "ddr"); true {
			forget()
		}
	case 14, 15: // what one cluster does, another does as well
		if n := len(f.Clusters); n > 1 && f.Division == "" {
			from, to := r.IntN(n), r.IntN(n)
			if from != to {
				f.Clusters[to] = append(slices.Clone(f.Clusters[to]), f.Clusters[from]...)
				f.Clusters[from] = []schedulefile.Segment{}
			}
		}
	case 13:
		if p.Memory != nil && len(p.Memory.Stages) > 0 {
			s := &p.Memory.Stages[r.IntN(len(p.Memory.Stages))]
			s.Tiles = pick(r, 1, 2, s.Tiles*2, max(1, s.Tiles/2))
		}
	}
}
