package ansor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// space is the set of nests of one layer.
type space struct {
	kernel      *schedule.Schedule
	scratch     *scratch // of all layers
	step        int
	model       *cost.Model
	loops       *lower.Loops
	rule        *schedule.Nest
	sketches    []Sketch
	derivations []Derivation
	gathers     bool // inputs may, in a stage in the LLB
	bindings    []spread
	tiles       []int64
	groups      []int64
	bound       map[string]*bound
	// kept: weights may be in the LLB already. template: of Options.Limited.
	kept, template bool
	least          load       // that a program asks for
	own            []mutation // of Options.Mutations
}

// bound is the layer under one binding.
type bound struct {
	step   schedule.Step
	values []schedule.Value // that it writes
	loops  *lower.Loops
	why    error
}

// scratch is a copy of a kernel, in which one layer at a time is under a binding.
type scratch struct {
	*schedule.Schedule
	of    *schedule.Schedule
	step  int
	under *bound
}

func newScratch(kernel *schedule.Schedule) *scratch {
	k := *kernel
	k.Steps, k.Values = slices.Clone(k.Steps), slices.Clone(k.Values)
	return &scratch{Schedule: &k, of: kernel}
}

// put lets a layer, and no other, be under a binding; nil: that of the kernel.
func (s *scratch) put(step int, x *bound) {
	if s.under != nil {
		s.Steps[s.step] = s.of.Steps[s.step]
		for _, w := range s.of.Steps[s.step].Writes {
			s.Values[w] = s.of.Values[w]
		}
	}
	if s.step, s.under = step, x; x != nil {
		s.Steps[step] = x.step
		for _, v := range x.values {
			s.Values[v.ID] = v
		}
	}
}

// take is the present form of a layer of the copy.
func (s *scratch) take(step int, x *bound) {
	x.step = s.Steps[step]
	for _, w := range x.step.Writes {
		x.values = append(x.values, s.Values[w])
	}
}

// The factors that sampling chooses from; a nest with others is as good, if it can run.
var (
	tileCounts  = []int64{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}
	depths      = []int64{1, 2, 3, 4}
	pieceCounts = []int64{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}
	stageCounts = []int64{0, 1, 2, 4, 8}
	groupCounts = []int64{0, 2, 3, 4, 8, 16}
)

const maxColumns, maxReduction = 32, 8

// maxCommands bounds the commands of a layer's products: sampling leaves programs of more
// out, unless the rule's has more. Each piece would take less than it costs to issue.
const maxCommands = 256

func commands(n *schedule.Nest) int64 {
	return n.Tiles * n.Pieces * int64(max(1, len(n.Columns))*max(1, len(n.Reduction)))
}

// allowed is check within the limits of sampling.
func (sp *space) allowed(n *schedule.Nest) bool {
	return commands(n) <= max(maxCommands, commands(sp.rule)) && sp.check(n) == nil
}

func newSpace(kernel *schedule.Schedule, copied *scratch, step int, m *cost.Model) *space {
	sp := &space{kernel: kernel, scratch: copied, step: step, model: m, bound: map[string]*bound{}}
	sp.loops = lower.LoopsOf(kernel, step, m)
	sp.rule = sp.loops.Rule
	sp.sketches, sp.gathers, sp.derivations = derive(kernel, step, sp.loops)
	sp.tiles, sp.groups = tileCounts, groupCounts
	if t := sp.rule.Tiles; !slices.Contains(tileCounts, t) {
		sp.tiles = append(slices.Clone(tileCounts), t) // larger than any there
		for i := int64(2); i <= 4; i *= 2 {
			sp.tiles = append(sp.tiles, i*t)
		}
	}
	for _, b := range bindings(kernel, step, kernel.Steps[step].Cores) {
		sp.bindings = append(sp.bindings, spread{b, 0})
	}
	sp.factor()
	return sp
}

// spread is the division of work over cores: those of a part of the output too, if rfactor is not 0.
type spread struct {
	cores   schedule.Binding
	rfactor int64
}

func (x spread) set(n *schedule.Nest) { n.Cores, n.Rfactor = x.cores, x.rfactor }

// factor adds the bindings under which cores share reductions: where the output has fewer
// blocks than there are cores, and each core's slice has a block of the matrix unit or more.
func (sp *space) factor() {
	k, l := sp.kernel, sp.loops
	st := &k.Steps[sp.step]
	inst := &k.Instances.Instances[st.Instance]
	anchor := k.Graph.Op(k.Layers[inst.Group][st.Layer].Anchor)
	if l.Weights == 0 || l.Dims.Reps > 1 {
		return
	}
	all, _ := k.Graph.MatrixDims(anchor, inst.Regions[anchor.Outputs[0]])
	cores := schedule.CoresWithL1(k.Spec)
	if all.M*((all.N+l.UnitColumns-1)/l.UnitColumns) >= cores {
		return
	}
	extent := lower.ReductionExtent(k.Graph, anchor)
	spreads := sp.bindings
	for _, b := range bindings(k, sp.step, 1) {
		for f := int64(2); f*b.Cores() <= cores; f++ {
			if extent%f == 0 && all.K/f >= l.UnitRows {
				spreads = append(spreads, spread{b, f})
			}
		}
	}
	if len(spreads) == len(sp.bindings) {
		return
	}
	sp.bindings = spreads
	sp.derivations = append(sp.derivations, Derivation{anchor.Name, "rfactor",
		fmt.Sprintf("the output has fewer blocks than the %d cores, which may share the reduction over %d", cores, all.K)})
}

// bindings lists those that use so many cores or more; the step's own is the first.
func bindings(s *schedule.Schedule, i int, least int64) []schedule.Binding {
	st := &s.Steps[i]
	list := []schedule.Binding{st.Binding}
	for _, w := range st.Writes {
		if s.Values[w].Level == schedule.L1 {
			return list // readers know where it lies
		}
	}
	inst := &s.Instances.Instances[st.Instance]
	layer := &s.Layers[inst.Group][st.Layer]
	region := inst.Regions[st.Output]
	forbidden := schedule.Forbidden(s.Graph, layer.Ops, st.Output)
	cores := schedule.CoresWithL1(s.Spec)
	b := schedule.One(len(region))
	var extend func(d int)
	extend = func(d int) {
		if d == len(region) {
			if c := b.Cores(); c >= least && !b.Equal(st.Binding) && schedule.CheckBinding(region, b, forbidden, cores) == nil {
				list = append(list, slices.Clone(b))
			}
			return
		}
		for f := int64(1); f*b.Cores() <= cores && f <= region[d].Len(); f++ {
			b[d] = f
			if schedule.CheckBinding(region, b, forbidden, cores) == nil {
				extend(d + 1)
			}
			b[d] = 1
		}
	}
	extend(0)
	return list
}

// under is the layer under a binding; nil: the step's.
func (sp *space) under(b schedule.Binding) *bound {
	var key []byte
	if b != nil && !b.Equal(sp.kernel.Steps[sp.step].Binding) {
		for _, f := range b {
			key = strconv.AppendInt(append(key, 'x'), f, 10)
		}
	}
	if x := sp.bound[string(key)]; x != nil {
		return x
	}
	name := string(key)
	x := &bound{loops: sp.loops}
	k := sp.scratch
	k.put(sp.step, nil)
	k.under = x // to be put back
	if name != "" {
		if x.why = k.Rebind(sp.step, b); x.why == nil {
			x.loops = lower.LoopsOf(k.Schedule, sp.step, sp.model)
		}
	}
	k.take(sp.step, x)
	sp.bound[name] = x
	return x
}

// at is the kernel with the layer under a binding, until another is asked for.
func (sp *space) at(x *bound) *schedule.Schedule {
	sp.scratch.put(sp.step, x)
	return sp.scratch.Schedule
}

// check reports why a nest can't run.
func (sp *space) check(n *schedule.Nest) error {
	x := sp.under(n.Cores)
	if x.why != nil {
		return x.why
	}
	k := sp.at(x)
	defer sp.at(x)
	if err := k.Follow(sp.step, n); err != nil {
		return err
	}
	return x.loops.Check(k, sp.step)
}

// operand is an input of the layer's anchor; of a product, 1 is its weights.
func (sp *space) operand(input int) model.TensorID {
	st := &sp.kernel.Steps[sp.step]
	layer := &sp.kernel.Layers[sp.kernel.Instances.Instances[st.Instance].Group][st.Layer]
	return sp.kernel.Graph.Op(layer.Anchor).Inputs[input]
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// sample annotates a sketch at random, until the result can run; the rule's nest if none of many can.
func (sp *space) sample(r *rand.Rand) *schedule.Nest {
	for range 50 {
		n := &schedule.Nest{Tiles: pick(r, sp.tiles), Loads: pick(r, pieceCounts), Pieces: pick(r, pieceCounts)}
		n.Depth = pick(r, depths)
		pick(r, sp.bindings).set(n)
		sp.form(n, pick(r, sp.sketches))
		n.Group, n.Stage, n.Once = pick(r, sp.groups), pick(r, stageCounts), r.IntN(2) == 0
		sp.columns(n, 1+r.IntN(maxColumns))
		sp.reduction(n, 1+r.IntN(maxReduction))
		if n = sp.mend(n); sp.allowed(n) {
			return n
		}
	}
	return sp.rule
}

func (sp *space) form(n *schedule.Nest, s Sketch) {
	n.ColumnsFirst, n.Stay, n.Vector, n.Store = s.ColumnsFirst, s.Stay, s.Vector, s.Store
}

func (sp *space) columns(n *schedule.Nest, parts int) {
	l := sp.under(n.Cores).loops
	switch d := l.Dims; {
	case d.M == 0:
		n.Columns = nil
	case d.Reps > 1 && l.Weights > 0:
		n.Columns = lower.Cut(d.Reps, 1, int64(parts))
	case l.Weights > 0:
		n.Columns = lower.Cut(d.N, l.UnitColumns, int64(parts))
	case d.Reps > 1:
		n.Columns = []int64{d.Reps}
	default:
		n.Columns = []int64{d.N}
	}
}

func (sp *space) reduction(n *schedule.Nest, parts int) {
	l := sp.under(n.Cores).loops
	switch d := l.Dims; {
	case d.M == 0:
		n.Reduction = nil
	case d.Reps > 1 || l.Weights == 0:
		n.Reduction = []int64{d.K}
	default:
		n.Reduction = lower.Cut(d.K/max(1, n.Rfactor), l.UnitRows, int64(parts))
	}
}

// mend gives a nest the one form that programs of its meaning have.
func (sp *space) mend(n *schedule.Nest) *schedule.Nest {
	l := sp.under(n.Cores).loops
	if sp.template {
		n.Pieces = sp.rule.Pieces
		sp.reduction(n, len(sp.rule.Reduction))
	}
	n.Tiles = min(n.Tiles, l.Elements)
	n.Depth = min(n.Depth, n.Tiles)
	if n.Tiles == 1 {
		n.Depth, n.Stay, n.ColumnsFirst = 2, false, false
	}
	n.Loads, n.Pieces = min(n.Loads, l.Elements/n.Tiles), min(n.Pieces, l.Elements/n.Tiles)
	for l.Dims.M > 0 && n.Pieces%n.Loads != 0 {
		n.Loads--
	}
	if len(n.Columns) < 2 {
		n.ColumnsFirst = false
	}
	if n.Group = min(n.Group, int64(len(n.Columns)*len(n.Reduction))); n.Group < 2 || sp.kernel.Spec.LLB == nil {
		n.Group = 0
	}
	if l.Weights == 0 {
		n.Stay, n.Group = false, 0
	}
	sp.mendStage(n)
	if n.ColumnsFirst {
		n.Vector, n.Store = min(n.Vector, schedule.AtColumns), schedule.AtColumns
	}
	if l.Dims.M == 0 {
		n.Vector, n.Store = schedule.AtPiece, schedule.AtTile
	} else if l.Vector.Total() == 0 && n.Rfactor == 0 {
		n.Vector = schedule.AtPiece
	}
	return n
}

// mendStage lets a stage in the LLB have whole loads; one of a load each is none.
func (sp *space) mendStage(n *schedule.Nest) {
	n.Once = n.Once && n.Tiles > 1
	parts := n.Loads
	if n.Once {
		parts *= n.Tiles
	}
	for n.Stage > 0 && parts%n.Stage != 0 {
		n.Stage--
	}
	if !sp.gathers || !n.Once && n.Stage == n.Loads {
		n.Stage = 0
	}
	n.Once = n.Once && n.Stage > 0
}

// A mutation changes one decision of a nest.
type mutation struct {
	name   string
	weight int
	apply  func(sp *space, r *rand.Rand, n *schedule.Nest)
}

// mutations have the weights that TVM gives them: tile sizes .90, places .05, unrolling (here buffering and pieces)
// .04, parallelism .01. Since a machine of few cores leaves few factors of each kind, they are closer together here.
var mutations = []mutation{
	{"tile size", 50, func(sp *space, r *rand.Rand, n *schedule.Nest) {
		switch k := r.IntN(4); {
		case k == 0 && len(n.Columns) > 0:
			sp.columns(n, near(r, len(n.Columns), maxColumns))
		case k == 1 && len(n.Columns) > 0:
			sp.reduction(n, near(r, len(n.Reduction), maxReduction))
		case k == 2 && len(n.Columns) > 0:
			n.Group = pick(r, sp.groups)
		default:
			n.Tiles = neighbour(r, sp.tiles, n.Tiles)
		}
	}},
	{"place", 15, func(sp *space, r *rand.Rand, n *schedule.Nest) {
		if sp.gathers && r.IntN(2) == 0 {
			n.Stage, n.Once = pick(r, stageCounts), r.IntN(2) == 0
		} else {
			sp.form(n, pick(r, sp.sketches))
		}
	}},
	{"buffering", 25, func(_ *space, r *rand.Rand, n *schedule.Nest) {
		switch r.IntN(3) {
		case 0:
			n.Loads = neighbour(r, pieceCounts, n.Loads)
		case 1:
			n.Pieces = neighbour(r, pieceCounts, n.Pieces)
		default:
			n.Depth = pick(r, depths)
		}
	}},
	{"binding", 10, func(sp *space, r *rand.Rand, n *schedule.Nest) {
		columns, reduction := len(n.Columns), len(n.Reduction)
		pick(r, sp.bindings).set(n)
		sp.columns(n, columns)
		sp.reduction(n, reduction)
	}},
}

// near is a count beside another one, or any.
func near(r *rand.Rand, n, most int) int {
	if r.IntN(4) == 0 {
		return 1 + r.IntN(most)
	}
	return max(1, min(most, n+1-2*r.IntN(2)))
}

// neighbour is a choice beside the present one, or any.
func neighbour(r *rand.Rand, of []int64, now int64) int64 {
	i, ok := slices.BinarySearch(of, now)
	if !ok || r.IntN(4) == 0 {
		return pick(r, of)
	}
	return of[max(0, min(len(of)-1, i+1-2*r.IntN(2)))]
}

// mutate changes one decision; nil if what comes out can't run.
func (sp *space) mutate(r *rand.Rand, n *schedule.Nest) *schedule.Nest {
	total, all := 0, append(slices.Clip(mutations), sp.own...)
	for _, m := range all {
		total += m.weight
	}
	x := r.IntN(total)
	made := *n
	if made.Cores == nil {
		made.Cores = sp.kernel.Steps[sp.step].Binding
	}
	for _, m := range all {
		if x -= m.weight; x < 0 {
			m.apply(sp, r, &made)
			break
		}
	}
	if min(made.Tiles, made.Loads, made.Pieces, made.Depth) < 1 || made.Rfactor < 0 { // of a caller's
		return nil
	}
	if out := sp.mend(&made); sp.allowed(out) {
		return out
	}
	return nil
}

// cross takes each decision from one of two nests (node-wise crossover of the paper's §5.1, whose nodes are here the
// decisions of a layer: tiles of rows, tiles of weights, places, buffering); nil if what comes out can't run.
func (sp *space) cross(r *rand.Rand, a, b *schedule.Nest) *schedule.Nest {
	made := *a
	if r.IntN(2) == 0 {
		made.Tiles, made.Depth = b.Tiles, b.Depth
	}
	if r.IntN(2) == 0 {
		made.Loads, made.Pieces = b.Loads, b.Pieces
	}
	if r.IntN(2) == 0 {
		made.ColumnsFirst, made.Stay, made.Vector, made.Store = b.ColumnsFirst, b.Stay, b.Vector, b.Store
		made.Stage, made.Once = b.Stage, b.Once
	}
	if r.IntN(2) == 0 {
		sp.columns(&made, len(b.Columns))
		sp.reduction(&made, len(b.Reduction))
		made.Group = b.Group
	}
	if out := sp.mend(&made); sp.allowed(out) {
		return out
	}
	return nil
}

// Sample is a random nest for step i of a planned schedule, or that of the rules, for tests of what runs on any nest.
func Sample(s *schedule.Schedule, i int, m *cost.Model, r *rand.Rand) *schedule.Nest {
	return newSpace(s, newScratch(s), i, m).sample(r)
}
