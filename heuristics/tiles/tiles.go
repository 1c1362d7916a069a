package tiles

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
)

var tiledNests = scheduler.Strategy{Name: "tiles",
	Description: "products in tiles of rows, columns and reduction, by closed form",
	Tiles:       true,
	Decide:      func(ctx context.Context, d *scheduler.Draft) error { return tileSteps(ctx, d, true) },
	Again:       func(ctx context.Context, d *scheduler.Draft) error { return tileSteps(ctx, d, false) }}

// tileSteps gives the steps of a draft tiles by rule, and those with values in the L1 only if it is asked to: they
// differ with each binding and group, so that a search would choose tiles for most of its schedules anew.
func tileSteps(ctx context.Context, d *scheduler.Draft, inPlace bool) error {
	t, err := newTiler(d)
	if err != nil {
		return err
	}
	t.inPlace = inPlace
	defer d.Index()()
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
	d     *scheduler.Draft
	known *scheduler.Memory
	spec  scheduler.Key // what the rule depends on for all steps of the draft,
	same  scheduler.Key // and the choices of nests
	cost  *cost.Model   // of a machine of the clusters that have work

	inPlace bool            // products with values in the L1, too
	room    int64           // of the product at hand, see [schedule.Schedule.Room]
	tried   map[string]bool // its nests that were simulated, as text
}

// rules has the tilings that the rule gives for products by the formulas' costs, by all that they depend on, of all
// runs: some 10 MB at most.
var rules struct {
	sync.Mutex
	known map[string][]tiling.Blocks
}

// rule gives the rule's tilings for a product; none where no tile fits: the generator's nest may.
func (t *tiler) rule(p *tiling.Problem, product scheduler.Key) []tiling.Blocks {
	key, own := string(t.spec)+string(product), t.d.Options.Cost != nil
	rules.Lock()
	list, known := rules.known[key]
	rules.Unlock()
	if known && !own {
		return list
	}
	if list, _ = tiling.Rules(p); !own {
		rules.Lock()
		defer rules.Unlock()
		if len(rules.known)%10_000 == 0 {
			rules.known = map[string][]tiling.Blocks{}
		}
		rules.known[key] = list
	}
	return list
}

func newTiler(d *scheduler.Draft) (t *tiler, err error) {
	t = &tiler{d: d, known: d.Remembered(), cost: d.Cost}
	n := d.BusyClusters()
	if n < d.Spec.Clusters {
		spec := d.Spec.Clone()
		spec.Clusters = n
		if t.cost, err = cost.New(spec); err != nil {
			return nil, err
		}
	}
	t.spec.Text(fmt.Sprint(schedulefile.Fingerprint(d.Spec), n))
	t.same = slices.Clone(t.spec)
	t.same.Text(fmt.Sprint(d.Lower.Generator, d.WeightRoom))
	return t, nil
}

// step gives a step the nest of the rule, if it is faster alone.
func (t *tiler) step(ctx context.Context, i int) error {
	p, ok := t.problem(i)
	if !ok {
		return nil
	}
	product := t.product(i, p)
	key := t.key(i, product, t.room, p.Shared)
	known, there := t.known.Nests.Load(key)
	if !there {
		n, err := t.choose(ctx, i, p, t.rule(p, product))
		if err != nil {
			return err
		}
		known, _ = t.known.Nests.LoadOrStore(key, n)
	}
	if n := known.(*schedule.Nest); n != nil {
		t.d.TryNest(i, n) // or the generator's stays: what it reads may lack what lies between its strides
	}
	return nil
}

// mostAttentions is how many nests of an attention are simulated, until their loops have mostVisits visits in all,
// beside the rule's if that has as few: small tiles have many.
const (
	mostAttentions = 8
	mostVisits     = 64 << 10
)

// attention gives a step with an attention the fastest of the nests of least estimate, if it is faster alone or the
// rule's has too many visits to be simulated.
func (t *tiler) attention(ctx context.Context, i int) error {
	s := t.d.Schedule
	for _, w := range s.Steps[i].Writes {
		if s.Values[w].Level == schedule.L1 { // its readers expect it where it is
			if n := s.FitAttention(i); n != nil {
				t.d.TryNest(i, n)
			}
			return nil
		}
	}
	var b scheduler.Key
	b.Text(s.AttentionKey(i))
	key := t.key(i, b, s.Room(i), s.Shared(i))
	known, there := t.known.Nests.Load(key)
	if !there {
		var best *schedule.Nest
		st, visits, least := &s.Steps[i], int64(0), int64(math.MaxInt64)
		if st.Attending.Visits(s.AttentionTiles(st)) <= mostVisits {
			var err error
			if least, err = t.d.StepAlone(ctx, i, least); err != nil {
				return err
			}
		}
		for _, n := range s.AttentionNests(i, mostAttentions) {
			if visits >= mostVisits {
				break
			}
			undo, err := t.d.TryAlone(i, n)
			if err != nil {
				continue
			}
			visits += st.Attending.Visits(*n.Attention)
			after, err := t.d.StepAlone(ctx, i, least)
			undo()
			if err != nil {
				return err
			}
			if after < least {
				best, least = n, after
			}
		}
		known, _ = t.known.Nests.LoadOrStore(key, best)
	}
	if n := known.(*schedule.Nest); n != nil {
		t.d.TryNest(i, n) // or the rule's stays
	}
	return nil
}

// product has all that the rule depends on.
func (t *tiler) product(i int, p *tiling.Problem) scheduler.Key {
	s, st := t.d.Schedule, &t.d.Steps[i]
	var b scheduler.Key
	b.Add(int64(st.Kind))
	b.Add(p.Reps, p.M, p.N, p.K, p.RowBytes, p.ColumnBytes, p.ResultBytes, int64(p.RowsFrom), int64(p.ColumnsFrom),
		int64(p.To), p.Deep, p.Most, p.Data, p.Ring, p.Home, p.Shared, p.LLB, int64(len(p.Extra)))
	for _, x := range []float64{p.Product.Simple, p.Product.Special, p.Product.Move, p.Machine.Row, p.Load, p.Gap,
		p.Machine.Simple, p.Machine.Special, p.Machine.Move, p.Head} {
		b.Add(int64(math.Float64bits(x)))
	}
	for _, x := range p.Extra {
		b.Add(x.Bytes, int64(x.From))
	}
	if p.Constant {
		b.Add(1)
	}
	if p.Kept() {
		b.Binding(st.Binding)
	}
	if p.Exchanged {
		b.Add(2)
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
func (t *tiler) key(i int, product scheduler.Key, room, shared int64) string {
	s := t.d.Schedule
	st, layer := &s.Steps[i], schedule.LayerOf(s, &s.Steps[i])
	b := append(slices.Clone(t.same), product...)
	b.Add(int64(len(layer.Ops)), st.Tiles, st.StageBytes, room, shared)
	for _, id := range layer.Ops {
		b.Text(string(s.Graph.Op(id).Kind))
	}
	b.Binding(st.Binding)
	b.Add(int64(len(st.Params)), int64(len(st.Reads)))
	for _, x := range st.Params {
		b.Add(x.CoreBytes, x.UnionBytes)
	}
	for k := range st.Reads {
		r := &st.Reads[k]
		b.Add(int64(s.Values[r.Value].Level), r.NeedBytes, r.RemoteBytes, r.UnionBytes, r.CoreNeedBytes, r.CoreRemoteBytes)
	}
	for _, w := range st.Writes {
		v, stored := &s.Values[w], int64(0)
		if s.Graph.IsOutput(v.Tensor) {
			stored = 1
		}
		b.Add(int64(v.Level), v.Bytes, stored)
	}
	return string(b)
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
	least, known, of := int64(math.MaxInt64), false, tiling.Blocks{}
	t.tried = map[string]bool{}
	measure := func(b tiling.Blocks) error {
		for {
			n, after, err := t.fitting(ctx, i, p, b, least)
			if err == nil && !known { // the generator's loops are of interest if they are as fast
				known = true
				least, err = t.d.StepAlone(ctx, i, after)
			}
			if err != nil {
				return err
			}
			if n != nil && after < least {
				best, least, of = n, after, b
			}
			limit := float64(min(after, least)) * 1e-12
			if n == nil || (p.Time(&b)+t.d.Spec.LaunchSeconds)*stalls > limit || !p.SmallerLoads(&b) {
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
	times := make(map[tiling.Blocks]float64, len(list))
	for i := range list {
		times[list[i]] = p.Time(&list[i])
	}
	slices.SortStableFunc(list, func(x, y tiling.Blocks) int { return cmp.Compare(times[x], times[y]) })
	list = slices.Compact(list)
	return list[:min(len(list), mostNear)]
}

// stalls is how much longer than the closed form says a tiling takes that waits for room in the LLB: smaller loads of
// weights leave more of it.
const stalls = 1.03

// fitting is a tiling as a nest that runs, and how long the step takes with it, if that is at most limit; nil: none
// does.
func (t *tiler) fitting(ctx context.Context, i int, p *tiling.Problem, b tiling.Blocks, limit int64) (
	*schedule.Nest, int64, error) {
	// The boxes around strided windows are larger than what is read of them.
	for range moreRows + 1 {
		n := t.nest(&t.d.Schedule.Steps[i], p, b)
		undo, err := t.d.TryAlone(i, n)
		if err != nil && n.Ring > 0 {
			n.Ring, _ = p.RingBytes(&b)
			undo, err = t.d.TryAlone(i, n)
		}
		if err != nil {
			b.Rows *= 2
			continue
		}
		after := int64(math.MaxInt64)
		if text := fmt.Sprintf("%+v", *n); !t.tried[text] { // else it was no faster than the fastest so far, or is that
			t.tried[text] = true
			after, err = t.d.StepAlone(ctx, i, limit)
		}
		undo()
		return n, after, err
	}
	return nil, math.MaxInt64, nil
}

// problem is the product of a step as the rule sees it; not ok: there is none that it knows.
func (t *tiler) problem(i int) (*tiling.Problem, bool) {
	s := t.d.Schedule
	g, st := s.Graph, &s.Steps[i]
	layer := schedule.LayerOf(s, st)
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
		lies = lies || v.Level == schedule.L1
		reg[v.Tensor] = v.Region
	}
	schedule.BackPropagate(g, layer.Ops, reg)
	dims, ok := g.MatrixDims(anchor, reg[anchor.Outputs[0]])
	out := reg[st.Output]
	layout := g.Tensor(st.Output).Layout
	constant := g.Tensor(anchor.Inputs[1]).Role == model.Constant
	row := rowDims(out, layout, dims.N)
	if !ok || dims.Reps > 1 && constant || row == 0 ||
		out.Elements() != dims.Reps*dims.M*dims.N {
		return nil, false
	}
	loops := lower.LoopsOf(s, i, t.d.Cost)
	sums := float64(max(1, loops.Dims.Reps*loops.Dims.M*loops.Dims.N))
	p := &tiling.Problem{Product: tiling.Product{Reps: dims.Reps, M: dims.M, N: dims.N, K: dims.K, Constant: constant,
		RowBytes: g.Tensor(anchor.Inputs[0]).DType.Bytes(1), ColumnBytes: g.Tensor(anchor.Inputs[1]).DType.Bytes(1),
		ResultBytes: g.Tensor(st.Output).DType.Bytes(1),
		To:          levelOf[s.Values[st.Writes[0]].Level], Simple: float64(loops.Vector.Simple) / sums,
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
		lies = lies || v.Level == schedule.L1
		level := levelOf[v.Level]
		if level == tiling.L1 && r.RemoteBytes > 0 && s.Spec.LLB == nil {
			level = tiling.DDR // of other cores: they pass the stage and the core's link like tiles from above the L1s
		}
		switch s.RoleOf(st, v.Tensor) {
		case schedule.RowsOperand:
			p.RowsFrom, p.Exchanged = level, level != levelOf[v.Level]
		case schedule.ColumnsOperand:
			p.ColumnsFrom = level
		default:
			if 2*r.UnionBytes > g.Tensor(v.Tensor).DType.Bytes(out.Elements()) {
				p.Extra = append(p.Extra, tiling.Extra{Bytes: g.Tensor(v.Tensor).DType.Bytes(1), From: level})
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
	t.room = s.Room(i)
	p.Ring, p.Home = s.WeightRoom.RingBytes(s.Spec), s.WeightRoom.HomeBytes(s.Spec)
	p.Data, p.Shared, p.Most = min(s.WeightRoom.DataBytes(s.Spec), t.room), s.Shared(i), mostProducts
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
	for v := range s.Near(i) {
		if v.Level == schedule.LLB && v.Def <= i && i <= v.Last {
			p.LLB -= schedule.Align(v.Bytes)
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

var levelOf = [...]tiling.Level{schedule.L1: tiling.L1, schedule.LLB: tiling.LLB, schedule.DDR: tiling.DDR}

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
		schedule.SpreadOver(cores, box, reps, b.Cores[0])
		schedule.SpreadOver(cores, box, rows, b.Cores[1])
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
