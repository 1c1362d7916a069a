package interp

import (
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
)

// block is a place in the L1 of a core where a tile of an operand lies, of a task with sums.
type block struct {
	portion isa.Portion
	reads   []int32 // operands that have arrived
	held    map[key]int64
	next    int64
	place   int
}

// bringTile does a load or an exchange for a task with sums.
func (w *work) bringTile(o *isa.Operand, id model.TensorID) {
	want := make([][]key, w.t.cores)
	for core := range want {
		want[core] = w.inTiles(o, id, core)
	}
	if w.toLLB(want) {
		return
	}
	slots := int(w.t.Sums)
	switch a := w.t.anchor.op; id {
	case a.Inputs[0]:
		slots = int(w.t.depth())
	case a.Inputs[1]:
		slots = int(w.t.ColumnDepth)
	}
	room := o.StageBytes / int64(slots)
	for core, ks := range want {
		st := w.x.stages[core][o.Tensor]
		if st == nil {
			st = &stage{}
			w.x.stages[core][o.Tensor] = st
		}
		portion := w.c.Portion
		portion.Operand = 0
		n := len(st.blocks)
		if n == 0 || st.blocks[n-1].portion != portion || slices.Contains(st.blocks[n-1].reads, w.c.Operand) {
			turns, own := slots, -1
			if w.t.Held > 0 && id == w.t.anchor.op.Inputs[0] {
				turns, own = 2, w.sumTile(w.c.Tile)-len(w.t.Reduction)+int(w.t.Held)
			}
			b := &block{portion: portion, held: map[key]int64{}, place: turns + own}
			if own < 0 {
				b.place = st.turn % turns
				st.turn++
			}
			for _, o := range st.blocks {
				if o.place == b.place {
					o.held = nil // what was in its place
				}
			}
			st.blocks = append(st.blocks, b)
			n++
		}
		b := st.blocks[n-1]
		b.reads = append(b.reads, w.c.Operand)
		for _, k := range ks {
			size := w.size(k.tensor)
			addr := o.Stage + int64(b.place)*room + b.next
			if b.next+size > room {
				addr = w.cl.beyond(size)
				w.report.Stages += size
			}
			b.next += size
			b.held[k] = addr
			w.store(w.lb(core), addr, k, w.from(o, k), false)
		}
	}
}

// multiplied reports whether a tensor is an operand of the task's product.
func (w *work) multiplied(id model.TensorID) bool {
	return slices.Contains(w.t.anchor.op.Inputs[:2], id)
}

// inTiles lists what a core needs of a value for the tiles of the command.
func (w *work) inTiles(o *isa.Operand, id model.TensorID, core int) (list []key) {
	maker, box := w.home(o)
	var own model.Region
	if o.Level == isa.L1 {
		own = w.own(maker, core)
	}
	seen := map[int64]bool{}
	add := func(at []int64) {
		if e := ravel(at, w.p.Tensors[o.Tensor].Shape); inside(box, at) && !seen[e] && (own == nil || !inside(own, at)) {
			seen[e] = true
			list = append(list, key{o.Tensor, o.Instance, e})
		}
	}
	if !w.multiplied(id) {
		if core >= w.t.makers {
			return nil
		}
		if need := w.regions(w.t, core, w.c.Portion)[id]; need != nil {
			w.inOrder(need.Intersect(box), o.Tensor, func(_ int64, at []int64) { add(at) })
		}
		return list
	}
	a := w.t.anchor
	for _, e := range w.needed(core) {
		at := unravel(e, a.out[0])
		for tile := w.c.Tile; tile < w.c.Tile+max(1, w.c.Tiles); tile++ {
			if w.column(core, at) != w.columnTile(tile) {
				continue
			}
			a.terms(at, func(i int64, x, y []int64) {
				switch {
				case !w.t.in(core, i) || w.reductionTile(i) != w.sumTile(tile):
				case id == a.op.Inputs[1]:
					add(y)
				case x != nil:
					add(x)
				}
			})
		}
	}
	return list
}

// inBlocks is where a core has an element of an operand: the latest copy that has arrived.
func (w *work) inBlocks(st *stage, k key) (addr int64, ok bool) {
	for _, b := range slices.Backward(st.blocks) {
		at, here := b.held[k]
		if !here {
			continue
		}
		if c := w.lb(w.core).at(at); c != nil && w.ended(c.writer) {
			return at, true
		}
		if !ok {
			addr, ok = at, true
		}
	}
	return addr, ok
}

// tileAt is the L1 address of element n of what a core writes, in the place of its tile.
func (w *work) tileAt(o *isa.Operand, own model.Region, n int64) int64 {
	t, size := w.t, w.size(o.Tensor)
	width := w.rowOf(o, own)
	rows := own.Elements() / width
	p := int64(w.c.Part) * int64(t.Tiles) / int64(max(1, w.c.Parts))
	columns := between(t.Columns, w.columnTile(w.c.Tile))
	turn := p*int64(len(t.Columns)) + int64(w.columnTile(w.c.Tile))
	if t.ColumnsFirst {
		turn = int64(w.columnTile(w.c.Tile))*int64(t.Tiles) + p
	}
	room := o.StageBytes / int64(t.Sums)
	at := ((n/width-rows*p/int64(t.Tiles))*(columns[1]-columns[0]) + n%width - columns[0]) * size
	if at < 0 || at+size > room {
		fail("puts element %d of a result at %d of a tile with room for %d", n, at, room)
	}
	return o.Stage + turn%int64(t.Sums)*room + at
}

// rowOf is the number of elements of a core's box of a result that no part cuts.
func (m *machine) rowOf(o *isa.Operand, own model.Region) int64 {
	order, n := m.p.Tensors[o.Tensor].Order, int64(1)
	for _, d := range order[len(order)-int(o.Row):] {
		n *= own[d].Len()
	}
	return max(1, n)
}

// rowsCut is where part i of so many parts of what a core writes of a result begins.
func (w *work) rowsCut(o *isa.Operand, own model.Region, i, parts int32) int {
	unit := w.rowOf(o, own)
	return cut(int(own.Elements()/unit), i, parts) * int(unit)
}

// columnsOf narrows a core's box of a result, or a part of it, to a tile of columns, or to the smallest box around it.
func (m *machine) columnsOf(t *task, o *isa.Operand, box model.Region, tile int32) {
	columns := between(t.Columns, (int(tile)-1)/len(t.Reduction))
	order := m.p.Tensors[o.Tensor].Order
	inner := order[len(order)-int(o.Row):]
	left := m.rowOf(o, box)
	lo, hi := min(columns[0], left), min(columns[1], left)
	for _, d := range inner {
		if lo >= hi {
			box[d].Hi = box[d].Lo
			return
		}
		left /= box[d].Len()
		first, last := lo/left, (hi-1)/left
		box[d] = model.Interval{Lo: box[d].Lo + first, Hi: box[d].Lo + last + 1}
		if first != last {
			return
		}
		lo, hi = lo-first*left, hi-first*left
	}
}
