package lower

import (
	"slices"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Loops are the loops of a step's nest, each a decision.
type Loops struct {
	// Rule is the nest that the generator's rules make.
	Rule *schedule.Nest
	// Dims is the product of the busiest core, zero if the layer has none. Weights is the bytes that its constant
	// operand takes there, 0 if it is no constant, and Buffer what they pass through.
	Dims            model.MatrixDims
	DType           model.DType
	Weights, Buffer int64
	// UnitRows and UnitColumns are the blocks of the matrix unit that tiles of weights are best multiples of.
	UnitRows, UnitColumns int64
	// Elements is the number of elements of the output the busiest core computes, MACs and
	// Vector the useful work of all cores and the vector work of the busiest.
	Elements, MACs int64
	Vector         model.VectorWork

	base *layerPlan // without a nest
}

// LoopsOf describes step i of a schedule with a memory plan. Its own nest, if it has one,
// plays no part but for its number of tiles.
func LoopsOf(s *schedule.Schedule, i int, m *cost.Model) *Loops {
	st := s.Steps[i]
	st.Nest = nil
	return loopsOf(s, &st, m)
}

func loopsOf(s *schedule.Schedule, st *schedule.Step, m *cost.Model) *Loops {
	m = m.Kind(st.Kind)
	lp, _ := prepare(s, st, m, grainFor(1), nil)
	l := &Loops{Rule: lp.rule(s, m, grainFor(1)), Dims: lp.dims, DType: lp.dtype, Elements: st.CoreOutput.Elements(),
		MACs: lp.macs, Vector: lp.vector, base: lp}
	if st.Attending == nil {
		l.Weights, l.Buffer, l.UnitRows, l.UnitColumns = lp.weightTotal, s.RingBytes(), m.MatrixRows(), m.MatrixCols()
	}
	return l
}

// Check reports why step i, of which these are the loops, can't run by its nest, in the terms of the nest.
func (l *Loops) Check(s *schedule.Schedule, i int) error {
	lp := *l.base
	lp.step, lp.nest, lp.staged = &s.Steps[i], s.Steps[i].Nest, nil
	lp.slice()
	return lp.check(s, l.Rule)
}

// Cut cuts an extent into at least parts pieces, multiples of a block but for the last, as
// equal as blocks allow; fewer if there are fewer blocks.
func Cut(extent, block, parts int64) []int64 { return even(extent, block, parts) }

// StepAlone is the schedule of one step, as [EachAlone] gives those of kernels.
func StepAlone(s *schedule.Schedule, step int) *schedule.Schedule {
	var values []int
	for v := range s.Near(step) {
		values = append(values, v.ID)
	}
	for _, r := range s.Steps[step].Reads {
		values = append(values, r.Value)
	}
	values = append(values, s.Steps[step].Writes...)
	slices.Sort(values)
	return alone(s, s.Steps[step].Instance, step, step, slices.Compact(values))
}

// EachAlone calls f with the steps of each instance in the order of a schedule, from the first to
// the last, and with its schedule alone where it is called: what other kernels have made is there from the start, and
// what lives on stays. The steps and values are copies.
func EachAlone(s *schedule.Schedule, f func(instance, first, last int, alone func() *schedule.Schedule)) {
	made := make([]int, len(s.Values)) // in the order of their steps
	for i := range made {
		made[i] = i
	}
	slices.SortStableFunc(made, func(a, b int) int { return s.Values[a].Def - s.Values[b].Def })
	var alive []int
	step := 0
	for _, id := range s.Order {
		first := step
		for step < len(s.Steps) && s.Steps[step].Instance == id {
			step++
		}
		alive = slices.DeleteFunc(alive, func(i int) bool { return s.Values[i].Last < first })
		for len(made) > 0 && s.Values[made[0]].Def < step {
			alive, made = append(alive, made[0]), made[1:]
		}
		if step == first { // nothing is needed of it
			f(id, len(s.Steps), -1, func() *schedule.Schedule { return alone(s, id, len(s.Steps), -1, nil) })
			continue
		}
		f(id, first, step-1,
			func() *schedule.Schedule { return alone(s, id, first, step-1, slices.Sorted(slices.Values(alive))) })
	}
}

// alone is the schedule of an instance with these steps; among values, ascending, are all of their time.
func alone(s *schedule.Schedule, instance, first, last int, values []int) *schedule.Schedule {
	k := *s
	k.Order, k.Steps, k.Values = []int{instance}, nil, nil
	k.Place = nil // what other clusters make is in the DDR
	used := map[int]bool{}
	for i := first; i <= last; i++ {
		for _, r := range s.Steps[i].Reads {
			used[r.Value] = true
		}
	}
	renamed := map[int]int{}
	for _, i := range values {
		v := s.Values[i]
		if v.Last < first || v.Def > last || !used[i] && v.Def < first && (v.Def < 0 || v.Level == schedule.DDR) {
			continue
		}
		renamed[i] = len(k.Values)
		v.ID, v.Last = len(k.Values), min(v.Last, last+1)-first
		if v.Def = v.Def - first; v.Def < 0 {
			v.Def = -1
		}
		k.Values = append(k.Values, v)
	}
	for i := first; i <= last; i++ {
		st := s.Steps[i]
		st.ID = len(k.Steps)
		st.Reads = append([]schedule.Read(nil), st.Reads...)
		for j := range st.Reads {
			st.Reads[j].Value = renamed[st.Reads[j].Value]
		}
		st.Writes = append([]int(nil), st.Writes...)
		for j := range st.Writes {
			st.Writes[j] = renamed[st.Writes[j]]
		}
		k.Steps = append(k.Steps, st)
	}
	k.Index()
	return &k
}
