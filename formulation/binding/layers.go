package binding

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Layers prices the bindings of the layers inside one instance, with all else of a schedule as it is: which values are
// where, and how other instances are bound. Its nodes are the instance's steps, in order.
type Layers struct {
	// Anchors are the anchors of the steps' layers, Bindings what each may have.
	Anchors  []model.OpID
	Bindings [][]schedule.Binding
	// Given is the choice that the schedule has made, -1 where it is not among the bindings.
	Given []int
	steps []layerCost
	edges []Edge // reads of one step's results by another
}

// layerCost is the cost of each binding of a layer, in seconds: its units, the way of its weights
// into the L1, and moves from and to what is not of the instance's own layers.
type layerCost struct{ units, weights, moves []float64 }

// Weights say how much of each kind of cost of a schedule counts.
type Weights struct{ Weights, Moves float64 }

// LayersOf finds out what the layers of an instance cost in a schedule with a memory plan. candidates lists the
// bindings that a layer may have, whose first result that anyone needs is t and of which the instance computes region.
func LayersOf(ctx context.Context, s *schedule.Schedule, instance int, m *cost.Model,
	candidates func(layer *schedule.Layer, t model.TensorID, region model.Region) []schedule.Binding) (*Layers, error) {
	p := &pricer{s: s, m: m, cores: schedule.CoresWithL1(s.Spec)}
	type key struct {
		instance int
		tensor   model.TensorID
	}
	levels := map[key]schedule.Level{}
	for i := range s.Values {
		levels[key{s.Values[i].Instance, s.Values[i].Tensor}] = s.Values[i].Level
	}
	group := s.Instances.Instances[instance].Group
	var own []int // steps
	for i := range s.Steps {
		if s.Steps[i].Instance == instance {
			own = append(own, i)
		}
	}
	l := &Layers{Given: make([]int, len(own)), Bindings: make([][]schedule.Binding, len(own)),
		steps: make([]layerCost, len(own))}
	most := 0
	for n, i := range own {
		st := &s.Steps[i]
		layer := &s.Layers[group][st.Layer]
		l.Anchors = append(l.Anchors, layer.Anchor)
		l.Bindings[n] = candidates(layer, st.Output, s.Instances.Instances[instance].Regions[st.Output])
		if l.Given[n] = slices.IndexFunc(l.Bindings[n], st.Binding.Equal); len(l.Bindings[n]) == 0 {
			l.Bindings[n], l.Given[n] = []schedule.Binding{st.Binding}, 0
		}
		most = max(most, len(l.Bindings[n]))
		x := make([]float64, 3*len(l.Bindings[n]))
		k := len(l.Bindings[n])
		l.steps[n] = layerCost{x[:k], x[k : 2*k], x[2*k:]}
	}
	// As in FromSchedule, one set of steps for each number of a candidate.
	runs := make([]*schedule.Schedule, most)
	for k := range runs {
		r := *s
		r.LayerBindings = make([][]schedule.Binding, len(s.Layers))
		copy(r.LayerBindings, s.LayerBindings)
		r.LayerBindings[group] = make([]schedule.Binding, len(s.Layers[group]))
		for n, i := range own {
			r.LayerBindings[group][s.Steps[i].Layer] = l.Bindings[n][min(k, len(l.Bindings[n])-1)]
		}
		if err := r.BuildSteps(ctx, schedule.L1); err != nil {
			return nil, err
		}
		if len(r.Steps) != len(s.Steps) || len(r.Values) != len(s.Values) {
			return nil, fmt.Errorf("binding: %d steps and %d values, expected %d and %d", len(r.Steps), len(r.Values),
				len(s.Steps), len(s.Values))
		}
		runs[k] = &r
	}
	place := map[int]int{} // of steps among the instance's
	for n, i := range own {
		place[i] = n
	}
	level := func(v *schedule.Value) schedule.Level { return levels[key{v.Instance, v.Tensor}] }
	index := map[[2]int]int{} // of edges
	for n, i := range own {
		for k := range l.Bindings[n] {
			r := runs[k]
			st := &r.Steps[i]
			c := &l.steps[n]
			c.units[k], c.weights[k] = p.parts(r, st)
			for _, w := range st.Writes {
				c.moves[k] += p.write(&r.Values[w], level(&r.Values[w]))
			}
			need := p.needs(r, st)
			for q := range st.Reads {
				rd := &st.Reads[q]
				v := &r.Values[rd.Value]
				from, inside := place[v.Def]
				if !inside || level(v) != schedule.L1 {
					c.moves[k] += p.read(p.from(rd, &s.Values[rd.Value], need), &s.Values[rd.Value], level(v))
					continue
				}
				e, there := index[[2]int{from, n}]
				if !there {
					e = len(l.edges)
					index[[2]int{from, n}] = e
					cost := make([][]float64, len(l.Bindings[from]))
					for a := range cost {
						cost[a] = make([]float64, len(l.Bindings[n]))
					}
					l.edges = append(l.edges, Edge{From: from, To: n, Cost: cost})
				}
				for a := range l.Bindings[from] {
					made := &runs[a].Values[rd.Value]
					l.edges[e].Cost[a][k] += p.read(p.from(rd, made, need), made, schedule.L1)
				}
			}
		}
	}
	// What other instances read of the results.
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Instance == instance {
			continue
		}
		var need []schedule.Regions
		for q := range st.Reads {
			rd := &st.Reads[q]
			n, inside := place[s.Values[rd.Value].Def]
			if !inside || s.Values[rd.Value].Level != schedule.L1 {
				continue
			}
			if need == nil {
				need = p.needs(s, st)
			}
			for k := range l.Bindings[n] {
				made := &runs[k].Values[rd.Value]
				l.steps[n].moves[k] += p.read(p.from(rd, made, need), made, schedule.L1)
			}
		}
	}
	return l, nil
}

// Problem poses the problem of the layers, with a weight for each kind of cost, and each cost of a layer
// times what noise gives.
func (l *Layers) Problem(w Weights, noise func() float64) *Problem {
	p := &Problem{}
	for n, c := range l.steps {
		node := Node{Name: fmt.Sprint(n)}
		for k, b := range l.Bindings[n] {
			node.Labels = append(node.Labels, Label{Binding: b, Output: b})
			node.Cost = append(node.Cost, noise()*(math.Max(c.units[k], w.Weights*c.weights[k])+w.Moves*c.moves[k]))
		}
		p.Nodes = append(p.Nodes, node)
	}
	for _, e := range l.edges {
		x := Edge{From: e.From, To: e.To}
		for _, row := range e.Cost {
			scaled := make([]float64, len(row))
			for b := range row {
				scaled[b] = w.Moves * row[b]
			}
			x.Cost = append(x.Cost, scaled)
		}
		p.Edges = append(p.Edges, x)
	}
	return p
}
