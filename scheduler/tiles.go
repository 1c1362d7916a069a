package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/simplify"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

var tiledNests = Strategy{Name: "tiles",
	Description: "products in tiles of rows, columns and reduction, by closed form",
	Decide:      func(ctx context.Context, d *Draft) error { return tileSteps(ctx, d, true) }}

// tileSteps gives the steps of a draft tiles by rule, and those with values in the L1 only if it is asked to: they
// differ with each binding and group, so that a search would choose tiles for most of its schedules anew.
func tileSteps(ctx context.Context, d *Draft, inPlace bool) error {
	t, err := newTiler(d)
	if err != nil {
		return err
	}
	t.inPlace = inPlace
	for i := range d.Steps {
		step := t.step
		if d.Steps[i].Attending != nil {
			step = t.attention
		}
		if err := step(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// A tiler chooses tiles for the products of a draft, once for each distinct shape.
type tiler struct {
	d     *Draft
	known *tileMemo
	same  Key         // what the choices for all steps of the draft depend on
	cost  *cost.Model // of a machine of the clusters that have work

	inPlace bool // products with values in the L1, too
}

// A tileMemo has the tilings that the rule gives for products, and the nests that are chosen for steps, by all that
// they depend on; nil: the generator's is the fastest. It has the memory in which programs are made, too.
type tileMemo struct {
	rules, nests sync.Map
	memories
}

func newTiler(d *Draft) (t *tiler, err error) {
	t = &tiler{d: d, known: d.state.tiles, cost: d.Cost}
	if t.known == nil {
		t.known = &tileMemo{}
	}
	n := d.BusyClusters()
	if n < d.Spec.Clusters {
		spec := d.Spec.Clone()
		spec.Clusters = n
		if t.cost, err = cost.New(spec); err != nil {
			return nil, err
		}
	}
	t.same.Text(fmt.Sprint(d.Lower.Generator, n, d.WeightRoom))
	return t, nil
}

// step gives a step the nest of the rule, if it is faster alone.
func (t *tiler) step(ctx context.Context, i int) error {
	p, ok := t.problem(i)
	if !ok {
		return nil
	}
	product := t.product(i, p)
	key := t.key(i, product)
	known, there := t.known.nests.Load(key)
	if !there {
		rule, there := t.known.rules.Load(string(product))
		if !there {
			list, _ := tiling.Rules(p) // none where no tile fits: the generator's nest may
			rule = list
			t.known.rules.Store(string(product), rule)
		}
		n, err := t.choose(ctx, i, p, rule.([]tiling.Blocks))
		if err != nil {
			return err
		}
		known, _ = t.known.nests.LoadOrStore(key, n)
	}
	if n := known.(*schedule.Nest); n != nil {
		_, _ = t.follow(i, n) // or the generator's stays: what it reads may lack what lies between its strides
	}
	return nil
}

// mostAttentions is how many nests of an attention are simulated.
const mostAttentions = 8

// attention gives a step with an attention the fastest of the nests of least estimate, if it is faster alone.
func (t *tiler) attention(ctx context.Context, i int) error {
	s := t.d.Schedule
	for _, w := range s.Steps[i].Writes {
		if s.Values[w].Level == schedule.LB { // its readers expect it where it is
			if n := s.FitAttention(i); n != nil {
				_, _ = t.follow(i, n)
			}
			return nil
		}
	}
	var b Key
	b.Text(s.AttentionKey(i))
	key := t.key(i, b)
	known, there := t.known.nests.Load(key)
	if !there {
		var best *schedule.Nest
		least, err := t.alone(ctx, i, math.MaxInt64)
		if err != nil {
			return err
		}
		for _, n := range s.AttentionNests(i, mostAttentions) {
			undo, err := t.follow(i, n)
			if err != nil {
				continue
			}
			after, err := t.alone(ctx, i, least)
			undo()
			if err != nil {
				return err
			}
			if after < least {
				best, least = n, after
			}
		}
		known, _ = t.known.nests.LoadOrStore(key, best)
	}
	if n := known.(*schedule.Nest); n != nil {
		_, _ = t.follow(i, n) // or the rule's stays
	}
	return nil
}

// product has all that the rule depends on.
func (t *tiler) product(i int, p *tiling.Problem) Key {
	s := t.d.Schedule
	st := &s.Steps[i]
	var b Key
	b.Add(int64(st.Kind))
	b.Add(p.Reps, p.M, p.N, p.K, p.RowBytes, p.ColumnBytes, p.ResultBytes, int64(p.RowsFrom), int64(p.ColumnsFrom),
		int64(p.To), p.Deep, p.Most, p.Data, p.Ring, p.Home, p.Shared, p.LLB, int64(len(p.Extra)))
	for _, x := range []float64{p.Product.Simple, p.Product.Special, p.Product.Move, p.Machine.Row, p.Load,
		p.Gap, p.Machine.Simple,
		p.Machine.Special, p.Machine.Move, p.Head} {
		b.Add(int64(math.Float64bits(x)))
	}
	for _, x := range p.Extra {
		b.Add(x.Bytes, int64(x.From))
	}
	if p.Constant {
		b.Add(1)
	}
	if p.Kept() {
		b.binding(st.Binding)
	}
	if w := p.Window; w != nil {
		b.Add(w.Height, w.Width, w.StrideHeight, w.StrideWidth, w.OutputWidth)
	}
	out := t.d.Instances.Instances[st.Instance].Regions[st.Output]
	for _, d := range s.Graph.Tensor(st.Output).Layout {
		b.Add(int64(d), out[d].Len())
	}
	return b
}

// key has all that the choice for a step depends on.
func (t *tiler) key(i int, product Key) string {
	s := t.d.Schedule
	st, layer := &s.Steps[i], t.layer(&s.Steps[i])
	b := append(slices.Clone(t.same), product...)
	b.Add(int64(len(layer.Ops)), st.Tiles, st.StageBytes, s.Room(i), s.Shared(i))
	for _, id := range layer.Ops {
		b.Text(string(s.Graph.Op(id).Kind))
	}
	b.binding(st.Binding)
	b.Add(int64(len(st.Params)), int64(len(st.Reads)))
	for _, x := range st.Params {
		b.Add(x.CoreBytes, x.UnionBytes)
	}
	for k := range st.Reads {
		r := &st.Reads[k]
		b.Add(int64(s.Values[r.Value].Level), r.NeedBytes, r.RemoteBytes, r.UnionBytes, r.CoreNeedBytes, r.CoreRemoteBytes)
	}
	for _, w := range st.Writes {
		v := &s.Values[w]
		stored := int64(0)
		if s.Graph.IsOutput(v.Tensor) {
			stored = 1
		}
		b.Add(int64(v.Level), v.Bytes, stored)
	}
	return string(b)
}

func (t *tiler) layer(st *schedule.Step) *schedule.Layer { return layerAt(t.d.Schedule, st) }

// layerAt is the layer that a step runs.
func layerAt(s *schedule.Schedule, st *schedule.Step) *schedule.Layer {
	return &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
}

// follow makes a step run by a nest, if the generator can, and says how to undo it. After an error nothing has
// changed.
func (t *tiler) follow(i int, n *schedule.Nest) (undo func(), err error) {
	s := t.d.Schedule
	undo = t.d.save(i)
	if err = s.Follow(i, n); err == nil {
		err = lower.CheckNest(s, i, t.d.Cost)
	}
	if err != nil {
		undo()
	}
	return undo, err
}

// mostProducts is the number of products of tiles a step may have: more take long to simulate, and tiles are small
// then.
const mostProducts = 32 << 10

// moreRows bounds how often the rows of a tiling that does not fit are cut again.
const moreRows = 3

// choose returns the fastest nest of the rule's for a step; nil if the step alone is as fast without.
func (t *tiler) choose(ctx context.Context, i int, p *tiling.Problem, list []tiling.Blocks) (
	best *schedule.Nest, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	least, err := t.alone(ctx, i, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	var of tiling.Blocks
	launch := t.d.Spec.LaunchSeconds
	measure := func(b tiling.Blocks) error {
		for {
			n, after, err := t.fitting(ctx, i, p, b, least)
			if err != nil {
				return err
			}
			if n != nil && after < least {
				best, least, of = n, after, b
			}
			expected, _ := p.Time(&b)
			limit := float64(min(after, least)) * 1e-12
			if n == nil || (expected+launch)*stalls > limit || !p.SmallerLoads(&b) {
				return nil
			}
		}
	}
	for _, b := range list {
		if err := measure(b); err != nil {
			return nil, err
		}
	}
	if best != nil {
		for _, b := range near(p, of) {
			if err := measure(b); err != nil {
				return nil, err
			}
		}
	}
	return best, nil
}

// mostNear is the number of tilings beside the fastest that are simulated, too.
const mostNear = 4

// near lists the tilings of least closed form that differ from one in a step, and divide the product over the cores
// as it does: between these the closed form can't tell which is the fastest.
func near(p *tiling.Problem, b tiling.Blocks) []tiling.Blocks {
	list := slices.DeleteFunc(p.Neighbours(b), func(x tiling.Blocks) bool { return x.Cores != b.Cores })
	slices.SortStableFunc(list, func(x, y tiling.Blocks) int {
		tx, _ := p.Time(&x)
		ty, _ := p.Time(&y)
		return cmp.Compare(tx, ty)
	})
	list = slices.Compact(list)
	return list[:min(len(list), mostNear)]
}

// stalls is how much longer than the closed form says a tiling takes that waits for room in the LLB: smaller loads of
// weights leave more of it.
const stalls = 1.03

// fitting is a tiling as a nest that runs, and how long the step takes with it, if that is at most limit; nil: none
// does.
func (t *tiler) fitting(ctx context.Context, i int, p *tiling.Problem, b tiling.Blocks, limit int64) (
	*schedule.Nest, int64,
	error) {
	// The boxes around strided windows are larger than what is read of them.
	for range moreRows + 1 {
		n := t.nest(&t.d.Schedule.Steps[i], p, b)
		undo, err := t.follow(i, n)
		if err != nil && n.Ring > 0 {
			n.Ring, _ = p.RingBytes(&b)
			undo, err = t.follow(i, n)
		}
		if err != nil {
			b.Rows *= 2
			continue
		}
		after, err := t.alone(ctx, i, limit)
		undo()
		return n, after, err
	}
	return nil, 0, nil
}

// alone is how long step i takes with nothing beside it, in picoseconds, if that is at most limit.
func (t *tiler) alone(ctx context.Context, i int, limit int64) (int64, error) {
	s, opt := t.d.Schedule, t.d.Lower
	opt.Memory = t.known.take()
	defer t.known.give(opt.Memory)
	ps, err := latency(ctx, "step", s.Spec, t.d.onBusy(lower.StepAlone(s, i), 1), opt, limit)
	if err != nil && ctx.Err() == nil {
		return math.MaxInt64, nil
	}
	return ps, err
}

// problem is the product of a step as the rule sees it; not ok: there is none that it knows.
func (t *tiler) problem(i int) (*tiling.Problem, bool) {
	s := t.d.Schedule
	g, st := s.Graph, &s.Steps[i]
	layer := t.layer(st)
	anchor := g.Op(layer.Anchor)
	if !g.OnMatrixUnit(anchor) || st.Attending != nil || anchor.Kind == "ConvTranspose" || len(anchor.Inputs) < 2 {
		return nil, false
	}
	if from, _ := s.Overwritten(st); from != nil {
		return nil, false // a nest adds nothing up where another value lies
	}
	reg := schedule.Regions{}
	lies := false // in the L1, where the binding says
	for _, w := range st.Writes {
		v := &s.Values[w]
		lies = lies || v.Level == schedule.LB
		reg[v.Tensor] = v.Region
	}
	schedule.BackPropagate(g, layer.Ops, reg)
	dims, ok := g.MatrixDims(anchor, reg[anchor.Outputs[0]])
	out := reg[st.Output]
	layout := g.Tensor(st.Output).Layout
	constant := g.Tensor(anchor.Inputs[1]).Role == model.Constant
	row := rowDims(out, layout, dims.N)
	if !ok || dims.Reps > 1 && constant || row == 0 || out.Elements() != dims.Reps*dims.M*dims.N {
		return nil, false
	}
	loops := lower.LoopsOf(s, i, t.d.Cost)
	sums := float64(max(1, loops.Dims.Reps*loops.Dims.M*loops.Dims.N))
	p := &tiling.Problem{Product: tiling.Product{Reps: dims.Reps, M: dims.M, N: dims.N, K: dims.K, Constant: constant,
		RowBytes: g.Tensor(anchor.Inputs[0]).DType.Bytes(), ColumnBytes: g.Tensor(anchor.Inputs[1]).DType.Bytes(),
		ResultBytes: g.Tensor(st.Output).DType.Bytes(),
		To:          levelOf(s.Values[st.Writes[0]].Level), Simple: float64(loops.Vector.Simple) / sums,
		Special: float64(loops.Vector.Special) / sums, Move: float64(loops.Vector.Move) / sums},
		Machine: *tiling.NewMachine(t.cost.Kind(st.Kind), loops.DType, g.Tensor(st.Output).DType)}
	if anchor.Kind == "Conv" {
		shape, a := g.Tensor(anchor.Inputs[1]).Shape, anchor.Attr
		if len(shape) != 4 || len(a.Strides) != 2 {
			return nil, false
		}
		p.Window = &tiling.Window{Height: shape[2], Width: shape[3], StrideHeight: a.Strides[0], StrideWidth: a.Strides[1],
			OutputWidth: reg[anchor.Outputs[0]][3].Len()}
	}
	for k := range st.Reads {
		r := &st.Reads[k]
		v := &s.Values[r.Value]
		lies = lies || v.Level == schedule.LB
		level := levelOf(v.Level)
		switch s.RoleOf(st, v.Tensor) {
		case schedule.RowsOperand:
			p.RowsFrom = level
		case schedule.ColumnsOperand:
			p.ColumnsFrom = level
		default:
			if 2*r.UnionBytes > out.Elements()*g.Tensor(v.Tensor).DType.Bytes() {
				p.Extra = append(p.Extra, tiling.Extra{Bytes: g.Tensor(v.Tensor).DType.Bytes(), From: level})
			}
		}
	}
	if lies && !t.inPlace {
		return nil, false
	}
	if constant {
		p.ColumnsFrom = tiling.DDR
		if deep := lower.ReductionExtent(g, anchor); deep > 1 && g.Tensor(anchor.Inputs[0]).Role != model.Constant &&
			!lies {
			p.Deep = deep
		}
	}
	if p.LLB > 0 && t.d.Lower.Prefetch {
		p.Head = s.Spec.LaunchSeconds
	}
	room := s.WeightRoom
	p.Ring, p.Home = room.RingBytes(s.Spec), room.HomeBytes(s.Spec)
	p.Data, p.Shared, p.Most = min(room.DataBytes(s.Spec), s.Room(i)), s.Shared(i), mostProducts
	reps, rows := t.rows(st, p.Reps, row)
	if !lies {
		p.Divide(lengths(out, rows), []int64{out[layout[len(layout)-row]].Len()}, p.Cores)
	} else {
		columns := layout[len(layout)-row:]
		if st.Binding.At(columns[1:]).Cores() > 1 {
			return nil, false // cores take whole indices of the outermost dimension of columns
		}
		p.Keep(st.Binding.At(reps).Cores(), lengths(out, rows), st.Binding.At(rows), lengths(out, columns[:1])[0],
			st.Binding[columns[0]])
	}
	if p.LLB > 0 {
		for v := range s.Near(i) {
			if v.Level == schedule.GB && v.Def <= i && i <= v.Last {
				p.LLB -= schedule.Align(v.Bytes)
			}
		}
	}
	return p, true
}

// lengths are the extents of a box along some dimensions.
func lengths(box model.Region, dims []int) (list []int64) {
	for _, d := range dims {
		list = append(list, box[d].Len())
	}
	return list
}

// rowDims is the number of innermost dimensions of a box that have so many elements together; 0: none.
func rowDims(box model.Region, layout []int, columns int64) int {
	n := int64(1)
	for k := len(layout) - 1; k >= 0; k-- {
		if n *= box[layout[k]].Len(); n == columns {
			return len(layout) - k
		}
	}
	return 0
}

// rows are the dimensions of a step's output along which there are several products, and those of their rows.
func (t *tiler) rows(st *schedule.Step, products int64, row int) (reps, rows []int) {
	layout := t.d.Graph.Tensor(st.Output).Layout
	box := t.d.Instances.Instances[st.Instance].Regions[st.Output]
	for _, d := range layout[:len(layout)-row] {
		if n := box[d].Len(); products > 1 && products%n == 0 {
			products /= n
			reps = append(reps, d)
		} else {
			rows = append(rows, d)
		}
	}
	return reps, rows
}

func levelOf(l schedule.Level) tiling.Level {
	switch l {
	case schedule.LB:
		return tiling.L1
	case schedule.GB:
		return tiling.LLB
	}
	return tiling.DDR
}

// nest is a tiling as a nest of a step.
func (t *tiler) nest(st *schedule.Step, p *tiling.Problem, b tiling.Blocks) *schedule.Nest {
	g := t.d.Graph
	layout := g.Tensor(st.Output).Layout
	box := t.d.Instances.Instances[st.Instance].Regions[st.Output]
	row := rowDims(box, layout, p.N)
	outer := layout[len(layout)-row]
	reps, rows := t.rows(st, p.Reps, row)
	cores := slices.Clone(st.Binding)
	if !p.Kept() {
		cores = schedule.One(len(box))
		cores[outer] = model.Pieces(box[outer].Len(), min(b.Cores[2], box[outer].Len()))
		spreadOver(cores, box, reps, b.Cores[0])
		spreadOver(cores, box, rows, b.Cores[1])
	}
	core := schedule.Slice(box, cores, layout, 0)
	dims, columns := int64(1), p.N/box[outer].Len()*core[outer].Len()
	for _, d := range reps {
		dims *= core[d].Len()
	}
	m, depth := core.Elements()/columns/dims, p.K/max(1, b.Cores[3])
	n := &schedule.Nest{Cores: cores, Tiles: dims * min(m, b.Rows), Depth: b.RoomRows, Loads: 1, Pieces: 1,
		Vector: schedule.AtColumns, Store: schedule.AtColumns,
		ColumnsFirst: b.ColumnsFirst, Sums: b.Sums, Stay: b.Stay, Once: b.Once,
		Columns:   lower.Cut(columns, p.Machine.Columns, (columns+b.Columns-1)/b.Columns),
		Reduction: lower.Cut(depth, p.Grain(), (depth+b.Reduction-1)/b.Reduction)}
	_, n.Ring = p.RingBytes(&b)
	if k := b.Cores[3]; k > 1 {
		n.Rfactor = k
	}
	tiles := n.ReductionTiles()
	group := func(want int64) int64 {
		for want > 1 && tiles%want != 0 {
			want--
		}
		return want
	}
	if p.Constant {
		if k := group(b.Group[1]); k > 1 && p.LLB > 0 {
			n.Group = k
		}
	} else {
		n.ColumnDepth = b.RoomColumns
	}
	if p.LLB > 0 && (p.RowsFrom == tiling.DDR || !p.Constant && p.ColumnsFrom == tiling.DDR) {
		if k := group(b.Group[0]); k > 1 || b.Once {
			n.Stage = k
		}
	}
	if n.Once = n.Once && n.Stage > 0; n.Once && b.Keep < tiles/n.Stage {
		n.Keep = b.Keep
	}
	return n
}

// spreadOver divides some dimensions of a box over at most so many cores, so that the largest
// part has the fewest elements; of equal ones, that with most on the first dimensions.
func spreadOver(cores schedule.Binding, box model.Region, dims []int, n int64) {
	best, now := int64(math.MaxInt64), make([]int64, len(dims))
	var try func(i int, left, part int64)
	try = func(i int, left, part int64) {
		if part >= best {
			return
		}
		if i == len(dims) {
			best = part
			for k, d := range dims {
				cores[d] = now[k]
			}
			return
		}
		extent := box[dims[i]].Len()
		for f := min(left, extent); f >= 1; f-- {
			if now[i] = model.Pieces(extent, f); now[i] == f {
				try(i+1, left/f, part*((extent+f-1)/f))
			}
		}
	}
	try(0, n, 1)
}

// rewritten is the graph that oneKernel schedules: an operator for each attention, scans and group normalisations in
// parts unless layers are to be lines, and feed-forwards in slices if asked for. A graph with parts stays, since they
// can't be found again.
func rewritten(g *model.Graph, spec *hardware.Spec, lines, sliced bool) (*model.Graph, error) {
	if g.Together != nil {
		return g, nil
	}
	made, _, err := simplify.FuseAttention(g)
	if err == nil && sliced {
		if parts := SlicesOf(made, spec); parts != nil {
			made, err = simplify.Slice(made, parts)
		}
	}
	if err == nil && !lines {
		made, err = simplify.TakeApart(made, splitsNorm(made, spec), scanParts(made, spec))
	}
	if err == nil && made != g {
		made.Remember()
	}
	return made, err
}

// SlicesOf is the number of slices that each feed-forward is cut into; nil: none is. Those are cut for which it pays. A
// slice of the rows that run at a time fits the L1s.
func SlicesOf(g *model.Graph, spec *hardware.Spec) (parts []int64) {
	cut := false
	for _, f := range simplify.FeedForwards(g) {
		n := int64(1)
		if f.Pays(g, schedule.LargestRoom(spec)) {
			n = f.Parts(g, schedule.AllDataBytes(spec), matrixRows(spec))
		}
		parts, cut = append(parts, n), cut || n > 1
	}
	if !cut {
		return nil
	}
	return parts
}

// matrixRows is the number of elements along the reduction that a matrix unit takes at a time.
func matrixRows(spec *hardware.Spec) int64 {
	n := int64(1)
	for _, ct := range spec.Together() {
		for _, u := range ct.Units {
			n = max(n, int64(u.Rows))
		}
	}
	return n
}

// Idle reports whether a recipe has nothing that others have not: it is for slices, and a graph needs none, or takes
// room from weights, and these have a memory of their own, or values had better be in an LLB. The one whose weights
// pass all of their room has a rule for spills of its own, too.
func (r Recipe) Idle(g *model.Graph, spec *hardware.Spec) bool {
	switch buffer.named(r.Pick(buffer.Name)) {
	case schedule.WeightsPass:
		return false
	case schedule.WeightsTwelfth:
		return spec.GB != nil || spec.LBWeightBytes > 0
	}
	return r.Pick("group") == slicedKernel.Name && SlicesOf(g, spec) == nil
}

// Graphs are the problems of the network's graph, of that which the recipes of one kernel make of it, and last of that
// with slices.
func (w *Problem) Graphs() []*Problem {
	list := []*Problem{w}
	for _, sliced := range []bool{false, true} {
		net := w.Net
		net.Graph = func(size int64) (*model.Graph, error) {
			g, err := w.Net.Graph(size)
			if err == nil {
				g, err = rewritten(g, w.Spec, w.opt.Lines, sliced)
			}
			return g, err
		}
		list = append(list, NewProblem(net, w.Machine, w.Spec, w.Batch, w.opt.Options))
	}
	return list
}

// Of finds the problem whose graph of so many elements is g; the first if there is none.
func Of(list []*Problem, g *model.Graph, size int64) (*Problem, error) {
	for _, w := range list {
		if own, err := w.Has(g, size); own || err != nil {
			return w, err
		}
	}
	return list[0], nil
}

// rewrite makes the draft one of the rewritten graph.
func (d *Draft) rewrite(sliced bool) error {
	g, err := rewritten(d.Graph, d.Spec, d.Options.Lines, sliced)
	if err != nil {
		return err
	}
	if d.Graph = g; d.Memo != nil {
		d.Memo = schedule.NewMemo() // the other is of the network's graph
	}
	return nil
}

const apartGroups = "alg2-apart"

var algorithm2Apart = Strategy{Name: apartGroups,
	Description: "alg2, on the graph of strategy one where that has group normalisations in passes",
	Decide: func(ctx context.Context, d *Draft) error {
		splits := splitsNorm(d.Graph, d.Spec)
		if !d.Options.Lines &&
			slices.ContainsFunc(d.Graph.Ops, func(op *model.Op) bool { return op.Kind == "GroupNorm" && splits(op) }) {
			if err := d.rewrite(false); err != nil {
				return err
			}
		}
		return algorithm2.Decide(ctx, d)
	}}

var oneKernel = Strategy{Name: "one", Description: "the whole network is a kernel", Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error { return d.unite(false) }}

var slicedKernel = Strategy{Name: "one-sliced",
	Description: "one, with hidden columns of feed-forwards in slices where they fit neither the L1s nor the LLB",
	Sets:        unsplitGroups,
	Decide:      func(_ context.Context, d *Draft) error { return d.unite(true) }}

// unite makes the whole network a kernel.
func (d *Draft) unite(sliced bool) error {
	if err := d.rewrite(sliced); err != nil {
		return err
	}
	g := d.Graph
	layers := layersWith(g, d.Options.Lines)
	sg := &schedule.SubGraph{Name: "all", Split: schedule.SplitInfo{Ops: len(g.Ops), Factor: 1, Dim: -1}}
	for _, l := range layers {
		sg.Ops = append(sg.Ops, l.Ops...)
	}
	for _, t := range g.Inputs {
		if len(g.Tensor(t).Consumers) > 0 {
			sg.Inputs = append(sg.Inputs, t)
		}
	}
	for _, t := range g.Outputs {
		if g.Tensor(t).Producer != model.NoOp {
			sg.Outputs = append(sg.Outputs, t)
		}
	}
	slices.Sort(sg.Inputs)
	slices.Sort(sg.Outputs)
	sg.Inputs, sg.Outputs = slices.Compact(sg.Inputs), slices.Compact(sg.Outputs)
	d.Grouping, d.Layers = &schedule.Grouping{Groups: []*schedule.SubGraph{sg}}, [][]schedule.Layer{layers}
	return nil
}

var EvenBinding = Strategy{Name: "even",
	Description: "each layer over as many cores as leave the largest part the smallest",
	Decide: func(ctx context.Context, d *Draft) error {
		if err := plainBinding.Decide(ctx, d); err != nil {
			return err
		}
		d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
		for k, layers := range d.Layers {
			d.LayerBindings[k] = make([]schedule.Binding, len(layers))
			inst := &d.Instances.Instances[d.Instances.First[k]]
			for i := range layers {
				t := layers[i].Outputs[0]
				box := inst.Regions[t]
				if box.Elements() == 0 || d.Graph.Op(layers[i].Anchor).Kind == "Attention" { // by what its tiles cost
					continue
				}
				var dims []int
				forbidden := schedule.Forbidden(d.Graph, toward(d.Graph, layers[i].Ops, t), t)
				for _, dim := range d.Graph.Tensor(t).Layout {
					if !forbidden[dim] {
						dims = append(dims, dim)
					}
				}
				n := schedule.CoresWithLB(d.Spec.Kind(d.LayerKind(k, i)))
				cores := schedule.One(len(box))
				spreadOver(cores, box, dims, n)
				if !d.Graph.OnMatrixUnit(d.Graph.Op(layers[i].Anchor)) {
					cores = leastMoved(d.Graph, &layers[i], box, cores, dims, n)
				}
				d.LayerBindings[k][i] = cores
			}
		}
		return nil
	}}

// sampled is how many cores, evenly spaced, stand for all of a layer where bindings are compared.
const sampled = 16

// leastMoved is a layer's binding, or one over fewer of the outer dimensions or with larger parts of the outermost,
// with which no core reads and makes as many bytes. What is rolled, merged or cut into windows takes more of an image
// than it makes, above all where a core's windows begin in one row of them and end in the next.
func leastMoved(g *model.Graph, l *schedule.Layer, box model.Region, cores schedule.Binding, dims []int,
	n int64) schedule.Binding {
	t := l.Outputs[0]
	moved := func(b schedule.Binding) (most int64) {
		for k := range min(sampled, b.Cores()) {
			core := k * (b.Cores() - 1) / max(1, min(sampled, b.Cores())-1)
			reg := schedule.Regions{t: schedule.Slice(box, b, g.Tensor(t).Layout, core)}
			bytes := reg[t].Elements() * g.Tensor(t).DType.Bytes()
			schedule.BackPropagate(g, l.Ops, reg)
			for _, in := range l.Inputs {
				bytes += reg[in].Elements() * g.Tensor(in).DType.Bytes()
			}
			most = max(most, bytes)
		}
		return most
	}
	least := moved(cores)
	try := func(dims []int, n int64) {
		b := schedule.One(len(box))
		spreadOver(b, box, dims, n)
		if bytes := moved(b); bytes < least {
			cores, least = b, bytes
		}
	}
	for k := len(dims) - 1; k > 0; k-- {
		try(dims[:k], n)
	}
	if len(dims) > 0 {
		outer := box[dims[0]].Len()
		even := (outer + n - 1) / n
		for part := even + 1; part <= min(outer, 4*even); part += max(1, even/8) {
			try(dims[:1], (outer+part-1)/part)
		}
	}
	return cores
}

// splitsNorm says of which group normalisations there are fewer parts than cores, or larger ones than fit the L1.
func splitsNorm(g *model.Graph, spec *hardware.Spec) func(*model.Op) bool {
	return func(op *model.Op) bool {
		x := g.Tensor(op.Inputs[0])
		n, bytes := x.Shape[0], x.Bytes()/x.Shape[0]
		if op.Attr.Group == x.Shape[1] {
			n *= op.Attr.Group
		}
		return 2*n <= schedule.CoresWithLB(spec) || 2*bytes/op.Attr.Group > schedule.DataBytes(spec)
	}
}

// scanParts says into how many parts a scan is cut, so that what each needs and makes fits the L1s.
func scanParts(g *model.Graph, spec *hardware.Spec) func(*simplify.Scan) int64 {
	return func(s *simplify.Scan) int64 {
		out := g.Tensor(s.Outputs[0])
		box := model.Whole(out.Shape)
		cores, forbidden := schedule.One(len(box)), schedule.Forbidden(g, s.Ops, out.ID)
		var dims []int
		for _, d := range out.Layout {
			if !forbidden[d] {
				dims = append(dims, d)
			}
		}
		spreadOver(cores, box, dims, schedule.CoresWithLB(spec))
		reg := schedule.Regions{out.ID: schedule.Slice(box, cores, out.Layout, 0)}
		passes := reg[out.ID].Elements() * out.DType.Bytes()
		schedule.BackPropagate(g, s.Ops, reg)
		for _, t := range s.Inputs {
			passes += reg[t].Elements() * g.Tensor(t).DType.Bytes()
		}
		room := schedule.DataBytes(spec)
		for _, id := range s.Ops {
			if op := g.Op(id); op.Kind == "CumSum" { // the sums of the part before, and of this one
				room -= 2 * schedule.Align(reg[op.Outputs[0]].Elements()/s.Length*g.Tensor(op.Outputs[0]).DType.Bytes())
			}
		}
		return (passes + max(1, room/2) - 1) / max(1, room/2)
	}
}

// layersWith are the layers of a graph, each behind those that it reads of. What is to run together is one, and so are
// light operators whose paths meet, unless layers are to be lines.
func layersWith(g *model.Graph, lines bool) []schedule.Layer {
	order := graphturbo.ExecutionOrder(g)
	switch {
	case lines && len(g.Together) == 0:
		return movedLayers(g, order)
	case len(g.Together) == 0:
		return joinLight(g, movedLayers(g, order))
	}
	var made []schedule.Layer
	of := map[model.OpID]int{}
	for i, ops := range g.Together {
		made = append(made, schedule.NewLayer(g, ops))
		for _, id := range ops {
			of[id] = i
		}
	}
	rest := slices.DeleteFunc(slices.Clone(order), func(id model.OpID) bool { _, ok := of[id]; return ok })
	for _, l := range joinLight(g, movedLayers(g, rest)) {
		for _, id := range l.Ops {
			of[id] = len(made)
		}
		made = append(made, l)
	}
	var layers []schedule.Layer
	done := make([]bool, len(made))
	var visit func(i int)
	visit = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, t := range made[i].Inputs {
			if p := g.Tensor(t).Producer; p != model.NoOp {
				visit(of[p])
			}
		}
		layers = append(layers, made[i])
	}
	for _, id := range order {
		visit(of[id])
	}
	return layers
}

// movedLayers are layers whose operators run tile by tile of their product. The layer of a product on the matrix unit
// ends in front of an operator that moves elements, unless it is a transposition that keeps their order. Reshapes in
// front of it that change the order leave with it. The layer also ends in front of an operator that spreads the results
// over a larger tensor, since each core would need all of them. That operator joins the product of its larger operand,
// if it alone reads it. An attention merges its heads in its own layer: the cores divide whole heads.
func movedLayers(g *model.Graph, ops []model.OpID) (made []schedule.Layer) {
	of := map[model.TensorID]int{} // the layer that makes a result
	for _, l := range schedule.Layers(g, ops) {
		for ops := l.Ops; len(ops) > 0; {
			n := inTiles(g, ops)
			l := schedule.NewLayer(g, ops[:n])
			for _, t := range l.Outputs {
				of[t] = len(made)
			}
			made = append(made, l)
			if ops = ops[n:]; len(ops) == 0 {
				break
			}
			if k := productOf(g, made, of, ops[0]); k >= 0 {
				ops = slices.Concat(made[k].Ops, ops)
				made[k] = schedule.Layer{}
			}
		}
	}
	return slices.DeleteFunc(made, func(l schedule.Layer) bool { return len(l.Ops) == 0 })
}

// inTiles counts the operators at the head of a line that make a layer of [movedLayers].
func inTiles(g *model.Graph, ops []model.OpID) int {
	anchor := g.Op(ops[0])
	if !g.OnMatrixUnit(anchor) {
		return len(ops)
	}
	all := g.Tensor(anchor.Outputs[0]).Shape.Elements()
	turns := func(id model.OpID, class model.Class) bool {
		return anchor.Kind != "Attention" && g.Op(id).Class() == class && !g.KeepsOrder(g.Op(id))
	}
	for n := 1; n < len(ops); n++ {
		if g.Tensor(g.Op(ops[n]).Outputs[0]).Shape.Elements() > all {
			return n
		}
		if turns(ops[n], model.InjectiveClass) {
			for n > 1 && turns(ops[n-1], model.ViewClass) {
				n--
			}
			return n
		}
	}
	return len(ops)
}

// productOf finds the first layer of a product on the matrix unit whose result an element-wise operator alone reads, in
// its own shape; -1: there is none. of has the layer of each result.
func productOf(g *model.Graph, layers []schedule.Layer, of map[model.TensorID]int, id model.OpID) int {
	op, first := g.Op(id), -1
	if op.Class() != model.ElementwiseClass {
		return -1
	}
	for _, t := range op.Inputs {
		k, made := of[t]
		if made && len(layers[k].Outputs) == 1 && g.OnMatrixUnit(g.Op(layers[k].Anchor)) &&
			len(g.Tensor(t).Consumers) == 1 && !g.IsOutput(t) &&
			g.Tensor(t).Shape.Equal(g.Tensor(op.Outputs[0]).Shape) && (first < 0 || k < first) {
			first = k
		}
	}
	return first
}

// joinLight makes one layer of those that have element-wise operators and such as move elements alone, where no other
// reads what is between them: paths that part and meet again, as where positions turn queries.
func joinLight(g *model.Graph, layers []schedule.Layer) (joined []schedule.Layer) {
	light := func(l *schedule.Layer) bool {
		return !slices.ContainsFunc(l.Ops, func(id model.OpID) bool {
			op := g.Op(id)
			switch op.Class() {
			case model.ElementwiseClass, model.InjectiveClass, model.ViewClass:
				return op.Kind == "Gather"
			}
			return true
		})
	}
	in := map[model.OpID]int{} // the layer that a light operator is in
	parts := make([][]int, len(layers))
	for i, l := range slices.Backward(layers) {
		at := i
		if light(&l) {
			at = onlyReader(g, &l, in, i)
			for _, id := range l.Ops {
				in[id] = at
			}
		}
		parts[at] = append(parts[at], i)
	}
	for _, list := range parts {
		var ops []model.OpID
		for _, i := range slices.Backward(list) {
			ops = append(ops, layers[i].Ops...)
		}
		if ops != nil {
			joined = append(joined, schedule.NewLayer(g, ops))
		}
	}
	return joined
}

// onlyReader is the light layer that alone reads what a layer makes, or the layer itself.
func onlyReader(g *model.Graph, l *schedule.Layer, in map[model.OpID]int, self int) int {
	at := -1
	for _, t := range l.Outputs {
		for _, reader := range g.Tensor(t).Consumers {
			to, there := in[reader]
			if !there || at >= 0 && at != to {
				return self
			}
			at = to
		}
		if g.IsOutput(t) {
			return self
		}
	}
	return max(at, self)
}

// toward returns the operators among some, in execution order, on which a tensor depends.
func toward(g *model.Graph, ops []model.OpID, t model.TensorID) (list []model.OpID) {
	needed := map[model.TensorID]bool{t: true}
	for _, id := range slices.Backward(ops) {
		if op := g.Op(id); slices.ContainsFunc(op.Outputs, func(o model.TensorID) bool { return needed[o] }) {
			list = append(list, id)
			for _, in := range op.Inputs {
				needed[in] = true
			}
		}
	}
	slices.Reverse(list)
	return list
}
