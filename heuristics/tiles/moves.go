package tiles

import (
	"slices"

	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// moveTile goes from the tiling of a layer's product or attention to one that differs in one extent, in the division
// over cores, in the order of loops or in buffers: of the layer alone or of all that do the same.
func moveTile(a *scheduler.Site) *scheduler.Decisions {
	own := *a.Schedule
	own.Steps, own.Values = slices.Clone(own.Steps), slices.Clone(own.Values)
	t, err := newTiler(&scheduler.Draft{Schedule: &own, Cost: a.Cost})
	i := step(a)
	if err != nil || i < 0 {
		return nil
	}
	st := own.Steps[i]
	var n *schedule.Nest
	if st.Attending != nil {
		n = attention(a, &st)
	} else if p, ok := t.problem(i); ok {
		n = neighbour(a, t, i, p)
	}
	if n == nil || !t.d.TryNest(i, n) {
		return nil
	}
	return a.Nest(i, n)
}

// neighbour is a nest next to a step's, or to that of the rule if the step has none in tiles; nil: there is none.
func neighbour(a *scheduler.Site, t *tiler, i int, p *tiling.Problem) *schedule.Nest {
	b, ok := t.blocks(i, p)
	if !ok {
		var err error
		if b, err = tiling.Rule(p); err != nil {
			return nil
		}
	}
	list := p.Neighbours(b)
	if len(list) == 0 {
		return nil
	}
	return t.nest(&t.d.Steps[i], p, list[a.Rand.IntN(len(list))])
}

// step draws a step with a product: half of the time all alike, else by their work; -1: there is none.
func step(a *scheduler.Site) int {
	s := a.Schedule
	var list []int
	var work []float64
	sum := 0.0
	for i := range s.Steps {
		st := &s.Steps[i]
		op := s.Graph.Op(schedule.LayerOf(s, st).Anchor)
		if !s.Graph.OnMatrixUnit(op) {
			continue
		}
		list = append(list, i)
		sum += float64(s.Graph.Work(op, s.Instances.Instances[st.Instance].Regions[op.Outputs[0]]).MACs)
		work = append(work, sum)
	}
	if len(list) == 0 {
		return -1
	}
	if a.Rand.IntN(2) == 0 {
		return list[a.Rand.IntN(len(list))]
	}
	x := a.Rand.Float64() * sum
	return list[min(len(list)-1, slices.IndexFunc(work, func(w float64) bool { return x < w || w == sum }))]
}

// attention is another tiling of a step's attention: a larger or smaller tile of queries or keys, another form, or,
// without a causal mask, more or fewer cores that share the keys.
func attention(a *scheduler.Site, st *schedule.Step) *schedule.Nest {
	at := st.Attending
	x := a.Schedule.AttentionTiles(st)
	switch k := a.Rand.IntN(6); k {
	case 3:
		x.Pieces = 1 + a.Rand.Int64N(min(4, x.Positions))
	case 4:
		x.Single = !x.Single
	case 5:
		if at.Causal {
			x.InTurn = !x.InTurn
			break
		}
		if x.Slices = max(1, x.Slices) * 2; a.Rand.IntN(2) == 0 {
			x.Slices /= 4
		}
		if x.Slices < 2 {
			x.Slices = 0
		}
		x.Keys = min(x.Keys, at.Slice(x))
	default:
		extents := []*int64{&x.Products, &x.Positions, &x.Keys}
		most := []int64{at.Products, at.Positions, at.Keys}
		e := *extents[k]
		if a.Rand.IntN(2) == 0 {
			e *= 2
		} else {
			e = (e + 1) / 2
		}
		*extents[k] = max(1, min(e, most[k]))
	}
	if at.CheckAttention(x) != nil {
		return nil
	}
	n := x.Nest(nil)
	if st.Nest != nil {
		n.Cores = st.Nest.Cores
	}
	return n
}

// blocks is the tiling that a blocked nest of a step runs; not ok: it has none.
func (t *tiler) blocks(i int, p *tiling.Problem) (b tiling.Blocks, ok bool) {
	st := &t.d.Steps[i]
	n := st.Nest
	if n == nil || !n.Blocked() || n.Cores == nil {
		return b, false
	}
	layout := t.d.Graph.Tensor(st.Output).Layout
	box := t.d.Instances.Instances[st.Instance].Regions[st.Output]
	row := rowDims(box, layout, p.N)
	reps, rows := t.rows(st, p.Reps, row)
	over := func(dims []int) (cores, part int64) {
		cores, part = 1, 1
		for _, d := range dims {
			cores *= n.Cores[d]
			part *= (box[d].Len() + n.Cores[d] - 1) / n.Cores[d]
		}
		return cores, part
	}
	var products int64
	b.Cores[0], products = over(reps)
	b.Cores[1], _ = over(rows)
	b.Cores[2] = n.Cores[layout[len(layout)-row]]
	if b.Cores[3] = 1; n.Rfactor > 1 {
		b.Cores[3] = n.Rfactor
	}
	b.Rows = max(1, n.Tiles/products)
	b.Columns, b.Reduction = slices.Max(n.Columns), slices.Max(n.Reduction)
	b.Columns = (b.Columns + p.Machine.Columns - 1) / p.Machine.Columns * p.Machine.Columns
	b.Reduction = (b.Reduction + p.Grain() - 1) / p.Grain() * p.Grain()
	b.ColumnsFirst, b.Stay, b.Once, b.Keep = n.ColumnsFirst, n.Stay, n.Once, n.Keep
	b.RoomRows, b.RoomColumns, b.Sums = n.Depth, max(2, n.ColumnDepth), n.Sums
	b.Group = [2]int64{max(1, n.Stage), max(1, n.Group)}
	return b, true
}
