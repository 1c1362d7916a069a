package bound_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
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
		d.Lower = lower.Options{Generator: schedule.Generator{CrossLayer: true, KeepWeights: true, Prefetch: true,
			BeforeFirst: true}}
		return nil
	}})
}

// anyNests runs some layers by nests at random: with tiles of rows and weights, blocked ones, loops over queries and
// keys.
func anyNests(recipe scheduler.Recipe, r *rand.Rand) scheduler.Recipe {
	return recipe.With("nest", scheduler.Strategy{Name: "any", Decide: func(_ context.Context, d *scheduler.Draft) error {
		m, err := cost.New(d.Spec)
		if err != nil {
			return err
		}
		for i := range d.Steps {
			for range r.IntN(8) {
				steps, values := slices.Clone(d.Steps), slices.Clone(d.Values)
				n := anyNest(d.Schedule, i, m, r)
				if n == nil || n.Cores != nil && !n.Cores.Equal(d.Steps[i].Binding) {
					continue // the bindings are another stage's
				}
				if d.Schedule.Follow(i, n) == nil && lower.LoopsOf(d.Schedule, i, m).Check(d.Schedule, i) == nil {
					break
				}
				d.Steps, d.Values = steps, values
			}
		}
		return nil
	}})
}

// sample draws a nest of a step from Ansor's, where that is part of the project.
var sample = func(*schedule.Schedule, int, *cost.Model, *rand.Rand) *schedule.Nest { return nil }

// anyNest is a nest for a step that may run by it or not.
func anyNest(s *schedule.Schedule, i int, m *cost.Model, r *rand.Rand) *schedule.Nest {
	if a := s.Steps[i].Attending; a != nil {
		t := schedule.AttentionTiles{Products: pick(r, 1, 1, 1+r.Int64N(a.Products)),
			Positions: pick(r, a.Positions, 1+r.Int64N(a.Positions)),
			Keys:      pick(r, a.Keys, 1+r.Int64N(a.Keys)), Single: r.IntN(2) == 0, InTurn: a.Causal && r.IntN(2) == 0}
		t.Pieces = pick(r, 0, r.Int64N(t.Positions+1))
		return &schedule.Nest{Tiles: 1, Depth: 1, Loads: 1, Pieces: 1, Store: schedule.AtTile, Attention: &t}
	}
	n := sample(s, i, m, r)
	if n == nil || r.IntN(2) == 0 {
		return n
	}
	l := lower.LoopsOf(s, i, m)
	if l.Dims.M == 0 {
		return n
	}
	window := int64(1) // reductions are cut between channels
	if op := s.Graph.Op(s.Layers[s.Instances.Instances[s.Steps[i].Instance].Group][s.Steps[i].Layer].Anchor); op.Kind ==
		"Conv" {
		window = model.Shape(s.Graph.Tensor(op.Inputs[1]).Shape[2:]).Elements()
	}
	blocked := schedule.Nest{Loads: 1, Pieces: 1, Vector: schedule.AtColumns, Store: schedule.AtColumns,
		Sums:  1 + r.Int64N(2),
		Tiles: l.Dims.Reps * pick(r, 1, 2, 4, l.Dims.M, 1+r.Int64N(l.Dims.M)), Depth: 1 + r.Int64N(3),
		ColumnsFirst: r.IntN(2) == 0,
		Columns:      lower.Cut(l.Dims.N, pick(r, 1, l.UnitColumns), 1+r.Int64N(4)),
		Reduction:    lower.Cut(l.Dims.K, window*pick(r, 1, l.UnitRows), 1+r.Int64N(4))}
	if k := pick(r, int64(2), 3, 4); r.IntN(4) == 0 && l.Dims.K%k == 0 {
		blocked.Rfactor, blocked.Reduction = k, lower.Cut(l.Dims.K/k, window*pick(r, 1, l.UnitRows), 1+r.Int64N(3))
	}
	divisor := func() int64 { // of the tiles of the reduction
		if d, n := 1+r.Int64N(4), int64(len(blocked.Reduction)); n%d == 0 {
			return d
		}
		return 1
	}
	if s.Spec.LLB != nil && r.IntN(2) == 0 {
		blocked.Stage, blocked.Once = divisor(), r.IntN(2) == 0
	}
	if l.Weights == 0 {
		blocked.ColumnDepth = pick(r, int64(0), 1, 2, 4)
	} else if blocked.Stay = r.IntN(4) == 0; s.Spec.LLB != nil {
		if d := divisor(); d > 1 {
			blocked.Group = d
		}
	}
	return &blocked
}

// number finds the numbers of a nest's lines.
var number = regexp.MustCompile(`[0-9]+`)

// mutateNest changes a number of a nest, adds one, cuts one in two, or takes a line away.
func mutateNest(lines []string, r *rand.Rand) []string {
	lines = slices.Clone(lines)
	at := r.IntN(len(lines))
	places := number.FindAllStringIndex(lines[at], -1)
	if len(places) == 0 {
		if r.IntN(4) == 0 {
			lines = slices.Delete(lines, at, at+1)
		}
		return lines
	}
	x := places[r.IntN(len(places))]
	n, _ := strconv.ParseInt(lines[at][x[0]:x[1]], 10, 64)
	to := fmt.Sprint(pick(r, 1, 2, 2*n, n/2, n+1, n-1))
	switch {
	case r.IntN(3) == 0 && n > 1:
		first := 1 + r.Int64N(n-1)
		to = fmt.Sprint(first, n-first)
	case r.IntN(8) == 0:
		to = fmt.Sprint(n, n)
	}
	lines[at] = lines[at][:x[0]] + to + lines[at][x[1]:]
	return lines
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
	if n := len(p.Nests); n > 0 && r.IntN(2) == 0 {
		x := &p.Nests[r.IntN(n)]
		x.Lines = mutateNest(x.Lines, r)
		return
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
