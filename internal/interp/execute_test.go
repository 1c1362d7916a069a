package interp

import (
	"maps"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// task is a task of the program with its operators.
type task struct {
	*isa.Task
	g      *model.Graph
	ids    []model.OpID
	ops    map[model.TensorID]made // by output
	reads  []model.TensorID
	writes []model.TensorID
	anchor *operator          // that the matrix unit multiplies for; nil: none
	cores  int                // that take part,
	first  int                // from this one on
	makers int                // of these, the first that make results
	whole  []schedule.Regions // of each core
	terms  int64              // of the anchor's sums
	parts  map[portion]schedule.Regions
	tiles  map[portion][]int64 // elements of the anchor's second input
	needed map[portion][]int64 // and of its result
	slices map[operandOf]map[int64]bool
	ends   map[key]int // tile of columns of results, by index in writes, core and element
}

type made struct {
	o      *operator
	output int
}

// portion is a core's part of a task.
type portion struct {
	core              int
	part, parts, tile int32
}

// execution is a task on its way in one iteration.
type execution struct {
	stages []map[int32]*stage // of each core, by tensor
	sums   []map[int64]*sum
	rows   []map[key]*cell // of tables
	// attention is nil in tasks without one
	attention *attending
}

// sum is a product's element before all of the reduction has been added.
type sum struct {
	cell
	seen []bool // tiles of the reduction
	all  bool   // the sums of other cores have been added
}

// stage is a buffer in the L1 of a core through which tiles pass.
type stage struct {
	held  map[key]int64
	next  int64
	free  []int64
	tiles []int32 // that it has served, the latest last

	blocks []*block // of a task with sums, the latest last
	turn   int      // of the places that these take
}

func (m *machine) task(i int32, g *model.Graph) *task {
	if t := m.tasks[i]; t != nil {
		return t
	}
	it := &m.p.Tasks[i]
	t := &task{Task: it, g: g, ops: map[model.TensorID]made{}, cores: int(coresOf(it)) * int(max(1, it.Slices)),
		makers: int(coresOf(it)), parts: map[portion]schedule.Regions{}, tiles: map[portion][]int64{},
		needed: map[portion][]int64{}, ends: map[key]int{}, slices: map[operandOf]map[int64]bool{}}
	m.tasks[i] = t
	if len(it.Writes) > 0 {
		t.first = int(it.Writes[0].First)
	}
	tensor := func(o isa.Operand) model.TensorID {
		x := m.tensors[g][m.p.Tensors[o.Tensor].Name]
		if x == nil {
			fail("the network has no %q", m.p.Tensors[o.Tensor].Name)
		}
		return x.ID
	}
	for _, o := range it.Reads {
		t.reads = append(t.reads, tensor(o))
	}
	for _, o := range it.Writes {
		t.writes = append(t.writes, tensor(o))
	}
	for _, o := range it.Operators {
		k := slices.IndexFunc(g.Ops, func(op *model.Op) bool { return op.Name == m.p.Operators[o] })
		if k < 0 {
			fail("the network has no operator %q", m.p.Operators[o])
		}
		op := newOperator(g, g.Ops[k])
		t.ids = append(t.ids, model.OpID(k))
		for out, id := range g.Ops[k].Outputs {
			t.ops[id] = made{op, out}
		}
		if t.anchor == nil && g.OnMatrixUnit(g.Ops[k]) {
			t.anchor = op
			if op.op.Kind != "Attention" {
				t.terms = op.reduction()
			}
		}
	}
	for c := range t.cores {
		t.whole = append(t.whole, m.regions(t, c, isa.Portion{}))
	}
	return t
}

// box is a box of the program as one of the model; nil: the core has none.
func (m *machine) box(o *isa.Operand, p isa.Portion, core int) model.Region {
	if int64(core) >= spread(o) {
		return nil
	}
	r := make(model.Region, len(o.Box))
	for d, x := range partOf(m.p, *o, p, int64(core)) {
		r[d] = model.Interval{Lo: x.Lo, Hi: x.Hi}
	}
	return r
}

// own is what a core of the task has in its L1 of a value that its maker has left in the L1s; nil: nothing.
func (w *work) own(maker *isa.Operand, core int) model.Region {
	if int(maker.First) != w.t.first {
		return nil
	}
	return w.box(maker, isa.Portion{}, core)
}

// lb is the L1 of a core of the task.
func (w *work) lb(core int) *memory { return &w.cl.lb[w.t.first+core] }

// slice is which slice of the reduction a core adds up, and in says whether a term is in it.
func (t *task) slice(core int) int64 { return int64(core / t.makers) }

func (t *task) in(core int, term int64) bool {
	n := int64(max(1, t.Slices))
	return term*n/t.terms == t.slice(core)
}

// regions are the boxes around what a core needs for a part of the results, its own or those
// that it adds up a slice for.
func (m *machine) regions(t *task, core int, p isa.Portion) schedule.Regions {
	core %= t.makers
	k := portion{core, p.Part, p.Parts, 0}
	if t.Sums > 0 {
		k.tile = p.Tile
	}
	if reg := t.parts[k]; reg != nil {
		return reg
	}
	reg := schedule.Regions{}
	for i := range t.Writes {
		b := m.box(&t.Writes[i], p, core)
		if k.tile > 0 && b.Elements() > 0 {
			m.columnsOf(t, &t.Writes[i], b, k.tile)
		}
		if b.Elements() > 0 {
			reg[t.writes[i]] = b
		}
	}
	schedule.BackPropagate(t.g, t.ids, reg)
	t.parts[k] = reg
	return reg
}

func inside(r model.Region, at []int64) bool {
	for d, x := range at {
		if x < r[d].Lo || x >= r[d].Hi {
			return false
		}
	}
	return r != nil
}

// index is the position of an element of a box in the order of memory.
func (m *machine) index(r model.Region, tensor int32, at []int64) int64 {
	i := int64(0)
	for _, d := range m.p.Tensors[tensor].Order {
		i = i*r[d].Len() + at[d] - r[d].Lo
	}
	return i
}

// inOrder visits the elements of a box in the order of memory.
func (m *machine) inOrder(r model.Region, tensor int32, visit func(i int64, at []int64)) {
	order := m.p.Tensors[tensor].Order
	turned, at, i := make(model.Region, len(r)), make([]int64, len(r)), int64(0)
	for k, d := range order {
		turned[k] = r[d]
	}
	each(turned, func(x []int64) {
		for k, d := range order {
			at[d] = x[k]
		}
		visit(i, at)
		i++
	})
}

// home is the box of a value, and the operand that says how it is spread.
func (m *machine) home(o *isa.Operand) (*isa.Operand, model.Region) {
	if o.Instance < 0 {
		shape := m.p.Tensors[o.Tensor].Shape
		return o, model.Whole(shape)
	}
	mk, ok := m.makers[key{o.Tensor, o.Instance, 0}]
	if !ok {
		fail("no task writes %q of instance %d", m.p.Tensors[o.Tensor].Name, o.Instance)
	}
	r := make(model.Region, len(mk.o.Box))
	for d, x := range mk.o.Box {
		r[d] = model.Interval{Lo: x.Lo, Hi: x.Hi}
	}
	return mk.o, r
}

func (m *machine) execute(c *isa.Command) {
	k := m.p.Queues[c.Queue].Cluster
	cl := m.clusters[k]
	m.iteration = c.Iteration
	if cl.tasks == nil || cl.iteration != c.Iteration {
		cl.tasks, cl.iteration = map[int32]*execution{}, c.Iteration
	}
	t := m.task(c.Task-1, m.graphs[k][c.Iteration])
	x := cl.tasks[c.Task]
	if x == nil {
		x = &execution{}
		for range t.cores {
			x.stages = append(x.stages, map[int32]*stage{})
			x.sums = append(x.sums, map[int64]*sum{})
			x.rows = append(x.rows, map[key]*cell{})
		}
		cl.tasks[c.Task] = x
	}
	w := &work{machine: m, c: c, k: k, cl: cl, t: t, x: x}
	if t.Keys > 0 {
		w.attend()
		return
	}
	switch {
	case c.Kind.Stores():
		w.storeResults()
	case c.Sums(t.Task):
		w.addUp()
	case c.Kind.IsMove():
		w.bringOperand()
	case c.Kind == isa.Matrix:
		w.multiply()
	}
	if c.Kind == m.final[c.Task-1] {
		w.finish()
	}
}

// work is one command.
type work struct {
	*machine
	c  *isa.Command
	k  int32 // its cluster
	cl *cluster
	t  *task
	x  *execution

	core   int
	values map[key]uint64 // that the command has computed, by tensor of the model
}

// bringOperand does a load or an exchange.
func (w *work) bringOperand() {
	o := &w.t.Reads[w.c.Operand]
	id := w.t.reads[w.c.Operand]
	if w.t.Sums > 0 && w.t.g.Tensor(id).Role != model.Constant {
		w.bringTile(o, id)
		return
	}
	want := make([][]key, w.t.cores)
	rows := w.gathers(id)
	switch {
	case w.t.g.Tensor(id).Role != model.Constant:
		for core := range want {
			w.stage(o, core)
			want[core] = w.missing(o, id, core)
		}
	case rows != nil:
		w.wantedRows(o, rows, want)
	default:
		for core := range want {
			want[core] = w.constants(o, id, core)
		}
	}
	c := w.c
	if w.toLLB(want) {
		return
	}
	kept := map[key]bool{}
	for core, ks := range want {
		for _, k := range ks {
			v := w.from(o, k)
			switch {
			case rows != nil:
				w.x.rows[core][k] = &cell{key: k, value: v, writer: w.now}
			case c.To > 0:
				w.note(core, w.put(w.cl, c.To, w.t.first+core, k, v), k)
			default:
				w.arrive(o, id, core, k, v)
			}
			if c.Kind == isa.DDRLoad && c.From > 0 && !kept[k] {
				kept[k] = true
				w.share(k, v)
			}
		}
	}
}

// toLLB fetches what cores want into the LLB, each element once, if the command loads there.
func (w *work) toLLB(want [][]key) bool {
	c := w.c
	if c.Kind != isa.DDRLoad || c.To == 0 || w.p.Buffers[c.To-1].Level != isa.LLB {
		return false
	}
	done := map[key]bool{}
	for _, ks := range want {
		for _, k := range ks {
			if !done[k] {
				done[k] = true
				w.put(w.cl, c.To, 0, k, w.fetch(k, w.k))
			}
		}
	}
	return true
}

// note notes where in a core the command has put an element of a constant.
func (w *work) note(core int, addr int64, k key) {
	at, x := w.cl.bring[w.t.first+core], w.inTile(k)
	at[x] = append(slices.DeleteFunc(at[x], func(c copied) bool { return !w.holds(w.lb(core), c.addr, k) }),
		copied{addr, w.c.To})
}

// brought is where the core has a constant: the latest copy, but of several that in a buffer which the
// command is among the users of.
func (w *work) brought(x inTile) (addr int64, ok bool) {
	list := w.cl.bring[w.t.first+w.core][x]
	for _, c := range slices.Backward(list) {
		if !ok {
			addr, ok = c.addr, true
		}
		if len(list) > 1 && w.holds(w.lb(w.core), c.addr, x.key) &&
			slices.ContainsFunc(w.p.Buffers[c.buffer-1].Lasts, func(l int32) bool {
				return l >= w.now && w.p.Commands[l].Queue == w.c.Queue
			}) {
			return c.addr, true
		}
	}
	return addr, ok
}

// share keeps an element in the first core that has room in the buffer.
func (w *work) share(k key, v uint64) {
	b := w.p.Buffers[w.c.From-1]
	size := w.size(k.tensor)
	core := 0
	if f := w.cl.buffers[w.c.From]; f != nil {
		for core+1 < len(w.cl.lb) && f.next[core]+size > b.Bytes {
			core++
		}
	}
	w.put(w.cl, w.c.From, core, k, v)
}

// from reads an element where the move takes it.
func (w *work) from(o *isa.Operand, k key) uint64 {
	switch {
	case w.c.Kind == isa.DDRLoad:
		return w.fetch(k, w.k)
	case w.c.From > 0:
		return w.take(w.cl, w.c.From, k)
	}
	maker, box := w.home(o)
	return w.atHome(o, maker, box, k)
}

// atHome reads an element of a value where the value is kept.
func (w *work) atHome(o, maker *isa.Operand, box model.Region, k key) uint64 {
	at := unravel(k.element, w.p.Tensors[k.tensor].Shape)
	size := w.size(k.tensor)
	switch o.Level {
	case isa.LLB:
		return w.load(&w.cl.gb, o.Address+w.index(box, k.tensor, at)*size, k)
	case isa.L1:
		for core := range int(spread(maker)) {
			if own := w.box(maker, isa.Portion{}, core); inside(own, at) {
				return w.load(&w.cl.lb[int(maker.First)+core], o.Address+w.index(own, k.tensor, at)*size, k)
			}
		}
		fail("%s is in no core", w.name(k))
	}
	return w.fetch(k, w.k)
}

// missing lists what a core needs of a value for a part of the results and does not have.
func (w *work) missing(o *isa.Operand, id model.TensorID, core int) (list []key) {
	maker, box := w.home(o)
	need := w.regions(w.t, core, w.c.Portion)[id]
	if need == nil {
		return nil
	}
	var own model.Region
	if o.Level == isa.L1 {
		own = w.own(maker, core)
	}
	st := w.x.stages[core][o.Tensor]
	sliced := w.sliced(id, core)
	w.inOrder(need.Intersect(box), o.Tensor, func(_ int64, at []int64) {
		k := key{o.Tensor, o.Instance, ravel(at, w.p.Tensors[o.Tensor].Shape)}
		if own != nil && inside(own, at) || sliced != nil && !sliced[k.element] {
			return
		}
		if st != nil {
			if _, here := st.held[k]; here {
				return
			}
		}
		list = append(list, k)
	})
	return list
}

// sliced is a core's need of an operand for its slice of the reduction; nil: no less
// than it would need for all of it.
func (w *work) sliced(id model.TensorID, core int) map[int64]bool {
	t := w.t
	if t.Slices <= 1 || t.Keys > 0 {
		return nil
	}
	k := operandOf{id, core}
	if set, ok := t.slices[k]; ok {
		return set
	}
	set := map[int64]bool{}
	for _, op := range t.ids {
		a := t.ops[w.t.g.Op(op).Outputs[0]].o
		switch {
		case a == t.anchor && a.op.Inputs[0] == id:
			each(t.whole[core][a.op.Outputs[0]], func(at []int64) {
				a.terms(at, func(i int64, x, _ []int64) {
					if x != nil && t.in(core, i) {
						set[ravel(x, a.in[0])] = true
					}
				})
			})
		case core < t.makers && slices.Contains(a.op.Inputs, id):
			set = nil
		}
		if set == nil {
			break
		}
	}
	t.slices[k] = set
	return set
}

// operandOf is an operand as a core needs it.
type operandOf struct {
	id   model.TensorID
	core int
}

// addUp adds the sums of other cores for a part of the results to those of the cores that
// make them.
func (w *work) addUp() {
	a := w.t.anchor
	for core := range w.t.makers {
		for _, e := range w.needed(core) {
			if w.c.Tile > 0 && w.column(core, unravel(e, a.out[0])) != w.columnTile(w.c.Tile) {
				continue
			}
			own := w.x.sums[core][e]
			if own != nil && own.all {
				continue
			}
			for other := core; other < w.t.cores; other += w.t.makers {
				s := w.x.sums[other][e]
				if s == nil || slices.Contains(s.seen, false) {
					fail("brings the sum of core %d for element %d of %q, of which not all products have been added",
						other, e, a.op.Name)
				}
				if !w.ended(s.writer) {
					fail("brings the sum of core %d for element %d of %q, which command %d may still be adding to", other, e,
						a.op.Name, s.writer)
				}
				if other > core {
					own.value = add(own.value, s.value)
				}
			}
			own.all, own.writer = true, w.now
		}
	}
}

// tileOf is the outer tile that the command is of.
func (w *work) tileOf() int32 {
	if w.t.Tiles <= 1 || w.c.Parts < w.t.Tiles {
		return 0
	}
	return int32(int64(w.c.Part) * int64(w.t.Tiles) / int64(w.c.Parts))
}

// stage is where an operand passes through the L1 of a core, for the tile of the command.
func (w *work) stage(o *isa.Operand, core int) *stage {
	st := w.x.stages[core][o.Tensor]
	if st == nil {
		st = &stage{held: map[key]int64{}}
		w.x.stages[core][o.Tensor] = st
	}
	if t := w.tileOf(); len(st.tiles) == 0 || st.tiles[len(st.tiles)-1] != t {
		st.tiles = append(st.tiles, t)
	}
	return st
}

// arrive puts an element into the stage of a core.
func (w *work) arrive(o *isa.Operand, id model.TensorID, core int, k key, v uint64) {
	st := w.stage(o, core)
	size := w.size(k.tensor)
	if st.next+size > o.StageBytes && len(st.free) == 0 && w.t.Tiles > 1 {
		w.evict(st, o, id, core)
	}
	var addr int64
	switch n := len(st.free); {
	case st.next+size <= o.StageBytes:
		addr = o.Stage + st.next
		st.next += size
	case n > 0:
		addr, st.free = st.free[n-1], st.free[:n-1]
	default:
		addr = w.cl.beyond(size)
		w.report.Stages += size
	}
	st.held[k] = addr
	w.store(w.lb(core), addr, k, v, false)
}

// depth is the number of tiles that the stages have room for.
func (t *task) depth() int64 {
	if t.Depth == 0 {
		return 2
	}
	return int64(t.Depth)
}

// evict drops what neither this tile nor those before it that have room needs.
func (w *work) evict(st *stage, o *isa.Operand, id model.TensorID, core int) {
	recent := st.tiles[max(0, len(st.tiles)-int(w.t.depth())):]
	var gone []key
	for k := range st.held {
		at := unravel(k.element, w.p.Tensors[k.tensor].Shape)
		needed := false
		for _, i := range recent {
			r := w.regions(w.t, core, isa.Portion{Part: i, Parts: w.t.Tiles})[id]
			needed = needed || r != nil && inside(r, at)
		}
		if !needed {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, func(a, b key) int { return int(a.element - b.element) })
	for _, k := range gone {
		if a := st.held[k]; a < beyond {
			st.free = append(st.free, a)
		}
		delete(st.held, k)
	}
}

// constants lists a core's elements of a portion of a block of parameters.
func (w *work) constants(o *isa.Operand, id model.TensorID, core int) []key {
	var all []int64
	if w.c.Tile > 0 {
		all = w.tile(core, w.c.Tile)
		for more := int32(1); more < w.c.Tiles; more++ {
			all = append(all[:len(all):len(all)], w.tile(core, w.c.Tile+more)...)
		}
	} else if r := w.t.whole[core][id]; r != nil && (core < w.t.makers || w.t.Keys > 0) {
		w.inOrder(r, o.Tensor, func(_ int64, at []int64) { all = append(all, ravel(at, w.p.Tensors[o.Tensor].Shape)) })
	}
	var list []key
	for _, e := range all[cut(len(all), w.c.Part, w.c.Parts):cut(len(all), w.c.Part+1, w.c.Parts)] {
		list = append(list, key{w.same[o.Tensor], -1, e})
	}
	return list
}

// cut is where part i of n of a list begins.
func cut(total int, i, n int32) int { return int(int64(total) * int64(i) / int64(max(1, n))) }

// tile lists the elements of the stationary operand that a tile holds for a core.
func (w *work) tile(core int, tile int32) []int64 {
	k := portion{core, 0, 0, tile}
	if list, ok := w.t.tiles[k]; ok {
		return list
	}
	a := w.t.anchor
	rows := w.t.whole[core][a.op.Outputs[0]].Clone()
	for d := range rows {
		column := d == len(rows)-1 && len(a.in[1]) > 1
		switch a.op.Kind {
		case "Conv", "ConvTranspose":
			column = d == 1
		case "MatMul":
			lead := len(rows) - min(1, len(a.in[1])-1) - min(1, len(a.in[0])-1)
			column = column || d < lead && a.in[1][:max(0, len(a.in[1])-2)].Elements() > 1
		}
		if !column && rows[d].Len() > 1 {
			rows[d].Hi = rows[d].Lo + 1
		}
	}
	seen := map[int64]bool{}
	each(rows, func(at []int64) {
		if w.column(core, at) != w.columnTile(tile) {
			return
		}
		a.terms(at, func(i int64, _, x []int64) {
			if w.t.in(core, i) && w.reductionTile(i) == w.sumTile(tile) {
				seen[ravel(x, a.in[1])] = true
			}
		})
	})
	list := make([]int64, 0, len(seen))
	for e := range seen {
		list = append(list, e)
	}
	slices.Sort(list)
	w.t.tiles[k] = list
	return list
}

// columnTile and sumTile are a tile's numbers along columns and reduction.
// inTile is an element of a constant in the tile of the command.
func (w *work) inTile(k key) inTile {
	x := inTile{key: k}
	if t := w.c.Tile; t > 0 && len(w.t.Columns) > 0 && len(w.t.Reduction) > 0 {
		x.columns, x.reduction = between(w.t.Columns, w.columnTile(t)), between(w.t.Reduction, w.sumTile(t))
		x.tiles = len(w.t.Columns) * len(w.t.Reduction)
	}
	return x
}

// between are the ends of piece i of an extent cut at these ends.
func between(ends []int64, i int) (lohi [2]int64) {
	if i > 0 {
		lohi[0] = ends[i-1]
	}
	lohi[1] = ends[i]
	return lohi
}

func (w *work) columnTile(tile int32) int { return (int(tile) - 1) / len(w.t.Reduction) }
func (w *work) sumTile(tile int32) int    { return (int(tile) - 1) % len(w.t.Reduction) }

// column is the tile of columns that an element of the anchor's result is in.
func (w *work) column(core int, at []int64) int {
	if len(w.t.Columns) == 0 {
		return 0
	}
	a := w.t.anchor
	whole := w.t.whole[core][a.op.Outputs[0]]
	dims, _ := w.t.g.MatrixDims(a.op, whole)
	i := int64(0)
	switch conv := a.op.Kind == "Conv" || a.op.Kind == "ConvTranspose"; {
	case conv && dims.Reps > 1:
		n := max(1, a.out[0][1]/a.op.Attr.Group)
		i = at[1]/n - whole[1].Lo/n
	case conv:
		i = at[1] - whole[1].Lo
	case dims.Reps > 1 && w.t.Sums == 0:
		lead := len(at) - min(1, len(a.in[1])-1) - min(1, len(a.in[0])-1)
		for d := range lead {
			i = i*whole[d].Len() + at[d] - whole[d].Lo
		}
	case len(a.in[1]) > 1:
		d := len(at) - 1
		i = at[d] - whole[d].Lo
	}
	return among(w.t.Columns, i)
}

func (w *work) reductionTile(i int64) int {
	if len(w.t.Reduction) == 0 {
		return 0
	}
	terms := w.t.terms / int64(max(1, w.t.Slices))
	return among(w.t.Reduction, i%terms*w.t.Reduction[len(w.t.Reduction)-1]/terms)
}

func among(ends []int64, i int64) int {
	k, _ := slices.BinarySearch(ends, i+1)
	return min(k, len(ends)-1)
}

// gathers are the operators of the task that look up rows of a constant.
func (w *work) gathers(id model.TensorID) (list []*operator) {
	for _, op := range w.t.ids {
		if o := w.t.g.Op(op); o.Kind == "Gather" && o.Inputs[0] == id && w.t.g.Tensor(id).Role == model.Constant {
			list = append(list, w.t.ops[o.Outputs[0]].o)
		}
	}
	return list
}

// wantedRows lists the elements of a table that a portion of look-ups brings.
func (w *work) wantedRows(o *isa.Operand, gathers []*operator, want [][]key) {
	type wanted struct {
		core int
		key
	}
	var all []wanted
	for core := range want {
		for _, rows := range gathers {
			each(w.t.whole[core][rows.op.Outputs[0]], func(at []int64) {
				rows.value(0, at, func(input int, x []int64) uint64 {
					if input == 1 {
						return w.indexOf(rows.op.Inputs[1], x)
					}
					all = append(all, wanted{core, key{w.same[o.Tensor], -1, ravel(x, rows.in[0])}})
					return 0
				})
			})
		}
	}
	for _, x := range all[cut(len(all), w.c.Part, w.c.Parts):cut(len(all), w.c.Part+1, w.c.Parts)] {
		if !slices.Contains(want[x.core], x.key) {
			want[x.core] = append(want[x.core], x.key)
		}
	}
}

// indexOf reads the number of a row where it is kept.
func (w *work) indexOf(id model.TensorID, at []int64) uint64 {
	for i := range w.t.Reads {
		o := &w.t.Reads[i]
		if w.t.reads[i] != id {
			continue
		}
		if maker, box := w.home(o); inside(box, at) {
			return w.atHome(o, maker, box, key{o.Tensor, o.Instance, ravel(at, w.p.Tensors[o.Tensor].Shape)})
		}
	}
	t := w.t.g.Tensor(id)
	if t.Role != model.Constant {
		fail("the task reads no %q", t.Name)
	}
	return source(w.seed, t, w.owner(w.k), w.iteration, ravel(at, t.Shape))
}

// multiply adds a tile's products to the sums that a part of the results needs.
func (w *work) multiply() {
	a := w.t.anchor
	if a == nil {
		fail("multiplies for no product")
	}
	for core := range w.t.cores {
		w.begin(core)
		w.addProducts(core)
	}
}

func (w *work) begin(core int) { w.core, w.values = core, map[key]uint64{} }

// addProducts adds a tile's terms to the sums of a core.
func (w *work) addProducts(core int) {
	a, tile := w.t.anchor, w.c.Tile
	for _, e := range w.needed(core) {
		at := unravel(e, a.out[0])
		part := 0
		if tile > 0 {
			if w.column(core, at) != w.columnTile(tile) {
				continue
			}
			part = w.sumTile(tile)
		}
		s := w.x.sums[core][e]
		if s == nil {
			s = &sum{seen: make([]bool, max(1, len(w.t.Reduction)))}
			s.writer = -1
			w.x.sums[core][e] = s
		}
		if s.seen[part] {
			continue
		}
		if !w.ended(s.writer) {
			fail("adds to element %d of %q, which command %d may still be adding to", e, a.op.Name, s.writer)
		}
		s.seen[part], s.writer = true, w.now
		a.terms(at, func(i int64, x, y []int64) {
			if x != nil && w.t.in(core, i) && (tile == 0 || w.reductionTile(i) == part) {
				s.value = add(s.value, mul(w.element(a.op.Inputs[0], x), w.element(a.op.Inputs[1], y)))
				w.report.Products++
			}
		})
	}
}

// needed lists the elements of the anchor's result that those in the command's part of the results
// need: not all in the box around them, of whose operands some may come later.
func (w *work) needed(core int) []int64 {
	core %= w.t.makers
	p := isa.Portion{Part: w.c.Part, Parts: w.c.Parts}
	k := portion{core, p.Part, p.Parts, 0}
	if list, ok := w.t.needed[k]; ok {
		return list
	}
	set := map[int64]bool{}
	for i, id := range w.t.writes {
		w.results(i, core, p, func(_ int64, at []int64, _ model.Region) {
			w.anchored(id, slices.Clone(at), func(at []int64) { set[ravel(at, w.t.anchor.out[0])] = true })
		})
	}
	w.t.needed[k] = slices.Sorted(maps.Keys(set))
	return w.t.needed[k]
}

// element is the value of an element of any tensor, for the present core: computed if
// the task makes it, else read.
func (w *work) element(id model.TensorID, at []int64) uint64 {
	from, inTask := w.t.ops[id]
	if !inTask {
		return w.operand(id, at)
	}
	k := key{tensor: int32(id), element: ravel(at, from.o.out[from.output])}
	if v, ok := w.values[k]; ok {
		return v
	}
	read := func(input int, x []int64) uint64 { return w.element(from.o.op.Inputs[input], slices.Clone(x)) }
	var v uint64
	if w.t.Keys > 0 && from.o == w.t.anchor {
		v = w.attentionAt(at)
	} else if from.o == w.t.anchor {
		s := w.x.sums[w.core][k.element]
		if s == nil || slices.Contains(s.seen, false) {
			fail("needs element %d of %q, of which not all products have been added", k.element, from.o.op.Name)
		}
		if w.t.Slices > 1 && !s.all {
			fail("needs element %d of %q, of which the sums of other cores have not been added", k.element, from.o.op.Name)
		}
		if !w.ended(s.writer) {
			fail("needs element %d of %q, which command %d may still be adding to", k.element, from.o.op.Name, s.writer)
		}
		v = add(s.value, from.o.bias(at, read))
	} else {
		v = from.o.value(from.output, at, read)
	}
	w.values[k] = v
	return v
}

// operand reads an element from the core's L1.
func (w *work) operand(id model.TensorID, at []int64) uint64 {
	for i := range w.t.Reads {
		if w.t.reads[i] != id {
			continue
		}
		o := &w.t.Reads[i]
		k := key{o.Tensor, o.Instance, ravel(at, w.p.Tensors[o.Tensor].Shape)}
		if w.t.g.Tensor(id).Role == model.Constant {
			k.tensor = w.same[k.tensor]
			if c := w.x.rows[w.core][k]; c != nil {
				return w.see(c)
			}
			addr, ok := w.brought(inTile{key: k})
			if w.c.Kind == isa.Matrix {
				if a, tiled := w.brought(w.inTile(k)); tiled {
					addr, ok = a, true
				}
			}
			if !ok || !w.holds(w.lb(w.core), addr, k) {
				w.passesInBlocks(w.now, k)
			}
			if ok {
				return w.load(w.lb(w.core), addr, k)
			}
			fail("needs %s, which core %d has not been brought", w.name(k), w.core)
		}
		maker, box := w.home(o)
		if !inside(box, at) {
			continue
		}
		if o.Level == isa.L1 {
			if own := w.own(maker, w.core); own != nil && inside(own, at) {
				return w.load(w.lb(w.core), o.Address+w.index(own, k.tensor, at)*w.size(k.tensor), k)
			}
		}
		if st := w.x.stages[w.core][o.Tensor]; st != nil {
			if addr, ok := w.inBlocks(st, k); ok {
				return w.load(w.lb(w.core), addr, k)
			}
			if addr, ok := st.held[k]; ok {
				return w.load(w.lb(w.core), addr, k)
			}
		}
		fail("needs %s, which core %d has not been brought", w.name(k), w.core)
	}
	fail("needs element %v of %q, which the task does not read", at, w.t.g.Tensor(id).Name)
	return 0
}

// passesInBlocks ends the run if parameters that a command reads are loaded behind the first such work of its
// task as well: its parts take blocks of parameters in turn, and nothing says which.
func (m *machine) passesInBlocks(reader int32, k key) {
	r, computes := &m.p.Commands[reader], false
	for i := range m.p.Commands {
		c := &m.p.Commands[i]
		if c.Task != r.Task || c.Iteration != r.Iteration || m.p.Queues[c.Queue].Cluster != m.p.Queues[r.Queue].Cluster {
			continue
		}
		computes = computes || c.Kind == r.Kind
		if t := m.tasks[c.Task-1]; computes && (c.Kind == isa.L1Load || c.Kind == isa.DDRLoad) && c.Tile == 0 &&
			m.same[t.Reads[c.Operand].Tensor] == k.tensor {
			panic(&CoarseError{m.p.Name, "parameters pass in blocks between the parts of the work that reads them"})
		}
	}
}

// results visits the elements of a result that a portion holds for a core: their index
// in what the core writes, and where they are.
func (w *work) results(write, core int, p isa.Portion, visit func(i int64, at []int64, own model.Region)) {
	o := &w.t.Writes[write]
	own := w.box(o, isa.Portion{}, core)
	if own == nil {
		return
	}
	lo, hi := w.rowsCut(o, own, p.Part, p.Parts), w.rowsCut(o, own, p.Part+1, p.Parts)
	w.inOrder(own, o.Tensor, func(i int64, at []int64) {
		if i >= int64(lo) && i < int64(hi) && (p.Tile == 0 || w.endsIn(write, core, at) == w.columnTile(p.Tile)) {
			visit(i, at, own)
		}
	})
}

// anchored visits the elements of the anchor's result that an element of the task needs.
func (w *work) anchored(id model.TensorID, at []int64, visit func(at []int64)) {
	from, ok := w.t.ops[id]
	switch {
	case !ok:
	case from.o == w.t.anchor:
		visit(at)
	default:
		from.o.value(from.output, at, func(input int, x []int64) uint64 {
			w.anchored(from.o.op.Inputs[input], slices.Clone(x), visit)
			return 0
		})
	}
}

// endsIn is the last tile of columns that an element of a result needs.
func (w *work) endsIn(write, core int, at []int64) int {
	id := w.t.writes[write]
	k := key{int32(write), int32(core), ravel(at, w.p.Tensors[w.t.Writes[write].Tensor].Shape)}
	if tile, ok := w.t.ends[k]; ok {
		return tile
	}
	tile := 0
	w.anchored(id, at, func(at []int64) { tile = max(tile, w.column(core, at)) })
	w.t.ends[k] = tile
	return tile
}

// finish writes the results of a portion to the L1.
func (w *work) finish() {
	if t := w.c.Tile; t > 0 && w.c.Kind == isa.Matrix && w.sumTile(t) != len(w.t.Reduction)-1 {
		return
	}
	type result struct {
		at    int64
		k     key
		value uint64
	}
	for core := range w.t.makers {
		w.begin(core)
		var list []result // what is written may lie where an operand was
		for i := range w.t.Writes {
			o := &w.t.Writes[i]
			w.results(i, core, w.c.Portion, func(n int64, at []int64, own model.Region) {
				k := key{o.Tensor, w.t.Instance, ravel(at, w.p.Tensors[o.Tensor].Shape)}
				list = append(list, result{w.resultAt(o, own, n), k, w.element(w.t.writes[i], slices.Clone(at))})
			})
		}
		for _, x := range list {
			w.store(w.lb(core), x.at, x.k, x.value, true)
		}
	}
}

// resultAt is the L1 address of element n of what a core writes.
func (w *work) resultAt(o *isa.Operand, own model.Region, n int64) int64 {
	size := w.size(o.Tensor)
	if o.Level == isa.L1 {
		return o.Address + n*size
	}
	if w.t.Sums > 0 {
		return w.tileAt(o, own, n)
	}
	total := own.Elements()
	if total*size <= o.StageBytes || w.t.Tiles <= 1 {
		return o.Stage + n*size
	}
	// Tiles take turns.
	t := int64(w.t.Tiles)
	tile := n * t / total
	for cut(int(total), int32(tile+1), w.t.Tiles) <= int(n) {
		tile++
	}
	first := int64(cut(int(total), int32(tile), w.t.Tiles))
	room := o.StageBytes / w.t.depth()
	if (n-first+1)*size > room {
		w.report.Stages += size
		return beyond + o.Stage + tile%w.t.depth()*beyond + n*size
	}
	return o.Stage + tile%w.t.depth()*room + (n-first)*size
}

// storeResults moves a portion of a result to its level.
func (w *work) storeResults() {
	write := int(w.c.Operand)
	o := &w.t.Writes[write]
	size := w.size(o.Tensor)
	_, box := w.home(&isa.Operand{Tensor: o.Tensor, Instance: w.t.Instance})
	for core := range w.t.cores {
		w.results(write, core, w.c.Portion, func(n int64, at []int64, own model.Region) {
			k := key{o.Tensor, w.t.Instance, ravel(at, w.p.Tensors[o.Tensor].Shape)}
			var v uint64
			switch {
			case w.c.From > 0:
				v = w.take(w.cl, w.c.From, k)
			case w.c.Kind == isa.DDRStore && o.Level == isa.LLB:
				v = w.load(&w.cl.gb, o.Address+w.index(box, o.Tensor, at)*size, k)
			default:
				v = w.load(w.lb(core), w.resultAt(o, own, n), k)
			}
			switch {
			case w.c.Kind == isa.DDRStore:
				w.keep(k, w.k, v)
			case w.c.To > 0:
				w.put(w.cl, w.c.To, 0, k, v)
			default:
				w.store(&w.cl.gb, o.Address+w.index(box, o.Tensor, at)*size, k, v, true)
			}
		})
	}
}
