package interp

import (
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// attending is an attention on its way.
type attending struct {
	visits  []*visited
	of      map[[2]int32]*visited // by piece of queries, counted over all tiles, and tile of keys
	loads   map[int32]*slotted    // by tensor of the program
	seen    []map[seenAt]uint64   // by core: what commands have read for a tile of queries
	finish  int32                 // the last command that has taken sums out
	added   map[int32]int32       // by tile of queries: the command that has brought the sums of other cores
	results []map[key]int32       // by core: the tile of queries that an element of a result is of
}

// visited is a piece of a tile of queries with a tile of keys: the commands for it.
type visited struct {
	tile, piece, keys      int32
	scores, rescale, times int32
	soft                   []int32
	vector                 bool
}

// seenAt is an element of an input, for a piece of queries, counted over all tiles.
type seenAt struct {
	piece   int32
	input   int
	element int64
}

// slotted is an operand that passes tile by tile.
type slotted struct {
	count  int64
	places []*slot
}

// slot is a place for a tile.
type slot struct {
	tile slotTile
	next []int64 // bytes, by core
	at   []map[key]int64
}

// slotTile is which tile a slot has: of queries, or of all queries of a tile of products, and of keys.
type slotTile struct {
	queries, keys int32
	all           bool
}

func (w *work) attending() *attending {
	if w.x.attention == nil {
		a := &attending{of: map[[2]int32]*visited{}, loads: map[int32]*slotted{}, finish: -1, added: map[int32]int32{}}
		for range w.t.cores {
			a.seen, a.results = append(a.seen, map[seenAt]uint64{}), append(a.results, nil)
		}
		w.x.attention = a
	}
	return w.x.attention
}

// tiler makes the tiles of a core's part of the task.
func (w *work) tiler(core int) *schedule.Tiler {
	t := w.t.Task
	var boxes []model.Region
	for core := range w.t.cores {
		boxes = append(boxes, w.t.whole[core][w.t.anchor.op.Outputs[0]])
	}
	tiler := schedule.NewTiler(w.t.g, w.t.anchor.op, schedule.AttentionTiles{Products: int64(t.Products),
		Positions: int64(t.Positions), Keys: int64(t.Keys), Pieces: int64(t.Pieces), InTurn: t.InTurn,
		Slices: int64(t.Slices)}, boxes)
	tiler.Slice = w.t.slice(core)
	return tiler
}

// steps and blocks are how many tiles of positions and of products the busiest core has.
func (w *work) steps() (steps, blocks int64) {
	for core := range w.t.cores {
		r := w.t.whole[core][w.t.anchor.op.Outputs[0]]
		if r.Elements() == 0 {
			continue
		}
		n := len(r)
		d := w.t.g.AttentionDims(w.t.anchor.op, r)
		steps, blocks = max(steps, (r[n-2].Len()+int64(w.t.Positions)-1)/int64(w.t.Positions)), max(blocks,
			(d.Products+int64(w.t.Products)-1)/int64(w.t.Products))
	}
	return steps, blocks
}

// ofQueries is the tile of queries of the command, and which part of it in how many.
func (w *work) ofQueries() (tile, part, parts int32) {
	steps, blocks := w.steps()
	parts = max(1, w.c.Parts/int32(steps*blocks))
	return w.c.Part / parts, w.c.Part % parts, parts
}

// attend does a command of an attention.
func (w *work) attend() {
	c, a := w.c, w.attending()
	tile, piece, pieces := w.ofQueries()
	switch {
	case c.Kind.Stores():
		w.storeAttention(tile)
	case c.Sums(w.t.Task):
		w.addUpAttention(tile)
	case c.Kind.IsMove():
		w.bringAttended(tile)
	case c.Kind == isa.Matrix && c.Operand == 1:
		w.makeScores(tile, piece)
	case c.Operand == 0:
		if c.Kind == isa.Vector {
			w.finishAttention(tile)
		}
	default:
		if pieces != w.t.Pieces {
			fail("works on one of %d pieces of tile %d of queries, which has %d", pieces, tile, w.t.Pieces)
		}
		v := a.of[[2]int32{tile*pieces + piece, c.Tile}]
		if v == nil {
			fail("works on tile %d of queries with tile %d of keys, for which there are no scores", tile, c.Tile)
		}
		w.onScores(v)
	}
}

// boxes are a core's boxes of an input for a piece of a tile of queries, or for less than 0 all of it, with a tile of
// keys; with all for all tiles of queries.
func (w *work) boxes(core, input int, tile, piece, keys int32, all bool) []model.Region {
	steps, _ := w.steps()
	r := w.t.whole[core][w.t.anchor.op.Outputs[0]]
	if r.Elements() == 0 {
		return nil
	}
	i := int64(tile) % steps
	if all {
		i = -1
	}
	return w.tiler(core).Boxes(input, r, int64(tile)/steps, i, int64(piece), int64(keys)-1)
}

// makeScores multiplies queries and keys.
func (w *work) makeScores(tile, piece int32) {
	a, c := w.attending(), w.c
	if n := len(a.visits) - int(w.t.ScoreSlots); n >= 0 && (a.visits[n].times < 0 || !w.ended(a.visits[n].times)) {
		fail("writes scores over those of tile %d of queries with tile %d of keys, which may still be in use",
			a.visits[n].tile, a.visits[n].keys)
	}
	at := [2]int32{tile*w.t.Pieces + piece, c.Tile}
	if a.of[at] != nil {
		fail("makes the scores of tile %d of queries with tile %d of keys twice", tile, c.Tile)
	}
	v := &visited{tile: tile, piece: piece, keys: c.Tile, scores: w.now, rescale: -1, times: -1}
	a.visits, a.of[at] = append(a.visits, v), v
	w.readTile(v, 0)
	for part := range w.t.anchor.op.KeyParts() {
		w.readTile(v, 2*part+1)
	}
}

// readTile reads a tile of an input on each core.
func (w *work) readTile(v *visited, input int) {
	for core := range w.t.cores {
		w.begin(core)
		for _, b := range w.boxes(core, input, v.tile, v.piece, v.keys, false) {
			each(b, func(at []int64) {
				id := w.t.anchor.op.Inputs[input]
				e := ravel(at, w.t.anchor.in[input])
				w.attending().seen[core][seenAt{v.tile*w.t.Pieces + v.piece, input, e}] = w.attended(v, input, id, e)
				if w.t.anchor.op.KeyPart(input) >= 0 && input%2 == 1 {
					w.report.Products++
				}
			})
		}
	}
}

// onScores is vector work on scores, or the product with values.
func (w *work) onScores(v *visited) {
	a, c := w.attending(), w.c
	after := func(d int32, what string) {
		if d < 0 || !w.ended(d) {
			fail("works on tile %d of queries with tile %d of keys, of which %s may not be there", v.tile, v.keys, what)
		}
	}
	before := a.of[[2]int32{v.tile*w.t.Pieces + v.piece, v.keys - 1}]
	softmax := w.t.anchor.op.Attr.Softmax
	switch {
	case c.Operand == 1: // one at least of the vector units
		after(v.scores, "the scores")
		v.soft, v.vector = append(v.soft, w.now), v.vector || c.Kind == isa.Vector
		for input := 1 + 2*w.t.anchor.op.KeyParts(); input < len(w.t.anchor.op.Inputs); input++ {
			w.readTile(v, input)
		}
	case c.Kind != isa.Matrix:
		for _, d := range v.soft {
			after(d, "the maximum")
		}
		if before == nil {
			fail("rescales the sums of tile %d of queries before there are any", v.tile)
		}
		after(before.times, "the sums")
		if c.Kind == isa.Vector { // special functions come before
			v.rescale = w.now
		}
	default:
		if len(v.soft) == 0 || softmax && !v.vector || v.times >= 0 {
			fail("multiplies tile %d of queries with tile %d of values before the vector work, or twice", v.tile, v.keys)
		}
		for _, d := range v.soft {
			after(d, "the exponentials")
		}
		switch {
		case v.keys > 1 && softmax:
			after(v.rescale, "the rescaled sums")
		case v.keys > 1:
			after(before.times, "the sums")
		case a.finish >= 0:
			after(a.finish, "the place of the sums, which another tile has,")
		}
		for part := range w.t.anchor.op.KeyParts() {
			w.readTile(v, 2*part+2)
		}
		v.times = w.now
	}
}

// attended reads an element of an operand from the L1 of the present core, for a visit.
func (w *work) attended(v *visited, input int, id model.TensorID, e int64) uint64 {
	steps, _ := w.steps()
	for i := range w.t.Reads {
		if w.t.reads[i] != id {
			continue
		}
		o := &w.t.Reads[i]
		k := key{o.Tensor, o.Instance, e}
		if w.t.g.Tensor(id).Role == model.Constant {
			k.tensor = w.same[k.tensor]
		} else {
			at := unravel(e, w.p.Tensors[o.Tensor].Shape)
			maker, box := w.home(o)
			if !inside(box, at) {
				continue
			}
			if o.Level == isa.L1 {
				if own := w.own(maker, w.core); own != nil && inside(own, at) {
					return w.load(w.lb(w.core), o.Address+w.index(own, k.tensor, at)*w.size(k.tensor), k)
				}
			}
		}
		if s := w.attending().loads[o.Tensor]; s != nil {
			keys := v.keys
			if input == 0 {
				keys = 0
			}
			for _, p := range s.places {
				if p.tile != (slotTile{v.tile, keys, false}) && p.tile != (slotTile{v.tile / int32(steps), keys, true}) {
					continue
				}
				if addr, ok := p.at[w.core][k]; ok {
					return w.load(w.lb(w.core), addr, k)
				}
			}
		}
		if st := w.x.stages[w.core][o.Tensor]; st != nil {
			if addr, ok := st.held[k]; ok {
				return w.load(w.lb(w.core), addr, k)
			}
		}
		fail("needs %s, which core %d has not been brought", w.name(k), w.core)
	}
	fail("needs element %d of %q, which the task does not read", e, w.t.g.Tensor(id).Name)
	return 0
}

// bringAttended does a load of an operand.
func (w *work) bringAttended(tile int32) {
	o := &w.t.Reads[w.c.Operand]
	id := w.t.reads[w.c.Operand]
	input := slices.Index(w.t.anchor.op.Inputs, id)
	if w.c.Kind == isa.Exchange || input != 0 && w.c.Tile == 0 {
		w.bringOperand()
		return
	}
	_, part, parts := w.ofQueries()
	steps, _ := w.steps()
	all := w.c.Tiles > 0
	identity := slotTile{tile, w.c.Tile, all}
	if all {
		identity.queries /= int32(steps)
	}
	constant := w.t.g.Tensor(id).Role == model.Constant
	want := make([][]key, w.t.cores)
	var home model.Region
	if !constant {
		_, home = w.home(o)
	}
	for core := range want {
		var boxes []model.Region
		for more := range max(1, w.c.Tiles) {
			boxes = append(boxes, w.boxes(core, input, tile, -1, w.c.Tile+more, all)...)
		}
		for _, b := range boxes {
			if !constant {
				b = b.Intersect(home)
			}
			each(b, func(at []int64) {
				k := key{o.Tensor, o.Instance, ravel(at, w.p.Tensors[o.Tensor].Shape)}
				if constant {
					k = key{w.same[o.Tensor], -1, k.element}
				}
				want[core] = append(want[core], k)
			})
		}
		n := len(want[core])
		want[core] = want[core][cut(n, part, parts):cut(n, part+1, parts)]
	}
	if w.toLLB(want) {
		return
	}
	slots := int64(w.t.Slots)
	if input == 0 {
		slots = int64(w.t.QuerySlots)
	}
	s, place := w.slot(o, identity, slots)
	size := w.size(o.Tensor)
	room := o.StageBytes / slots / w.align() * w.align()
	for core, ks := range want {
		for _, k := range ks {
			addr := o.Stage + place*room + s.next[core]
			if s.next[core]+size > room {
				addr = w.cl.beyond(size)
				w.report.Stages += size
			}
			s.next[core] += size
			s.at[core][k] = addr
			w.store(w.lb(core), addr, k, w.from(o, k), false)
		}
	}
}

// slot is where a tile of an operand is, or goes: then it takes the place of the oldest.
func (w *work) slot(o *isa.Operand, tile slotTile, n int64) (s *slot, place int64) {
	a := w.attending()
	all := a.loads[o.Tensor]
	if all == nil {
		all = &slotted{}
		for range n {
			all.places = append(all.places, &slot{tile: slotTile{queries: -1}})
		}
		a.loads[o.Tensor] = all
	}
	if all.count > 0 {
		if place = (all.count - 1) % n; all.places[place].tile == tile {
			return all.places[place], place
		}
	}
	place = all.count % n
	all.count++
	s = &slot{tile: tile, next: make([]int64, w.t.cores)}
	for range w.t.cores {
		s.at = append(s.at, map[key]int64{})
	}
	all.places[place] = s
	return s, place
}

// tilesOf finds the tile of queries of each element of a core's results.
func (w *work) tilesOf(core int) map[key]int32 {
	a := w.attending()
	if a.results[core] != nil {
		return a.results[core]
	}
	steps, blocks := w.steps()
	of := map[int64]int32{}
	for tile := range int32(steps * blocks) {
		for _, b := range w.boxes(core, -1, tile, -1, 1, false) {
			each(b, func(at []int64) { of[ravel(at, w.t.anchor.out[0])] = tile })
		}
	}
	list := map[key]int32{}
	for i, id := range w.t.writes {
		w.ownResults(i, core, func(_ int64, at []int64) {
			tile, own := int32(0), true
			w.anchored(id, slices.Clone(at), func(at []int64) {
				t, mine := of[ravel(at, w.t.anchor.out[0])]
				tile, own = max(tile, t), own && mine
			})
			if own {
				list[key{int32(i), 0, ravel(at, w.p.Tensors[w.t.Writes[i].Tensor].Shape)}] = tile
			}
		})
	}
	a.results[core] = list
	// Those that need several tiles read what the earlier ones have seen.
	return list
}

// ownResults visits the elements of a result that may be a core's: those of its box or, if cores take tiles in turn,
// all.
func (w *work) ownResults(write, core int, visit func(n int64, at []int64)) {
	if !w.t.InTurn {
		w.results(write, core, isa.Portion{}, func(n int64, at []int64, _ model.Region) { visit(n, at) })
		return
	}
	for other := range w.t.makers {
		w.results(write, other, isa.Portion{}, func(n int64, at []int64, _ model.Region) { visit(n, at) })
	}
}

// summed checks that all tiles of so many keys have been added to the sums of a piece, on the cores that share them.
func (w *work) summed(piece int32, sees int64) {
	each := (sees + int64(max(1, w.t.Slices)) - 1) / int64(max(1, w.t.Slices))
	for j := int32(1); int64(j-1)*int64(w.t.Keys) < each; j++ {
		if v := w.attending().of[[2]int32{piece, j}]; v == nil || v.times < 0 || !w.ended(v.times) {
			fail("takes the sums of tile %d of queries, to which tile %d of keys may not have been added", piece/w.t.Pieces, j)
		}
	}
}

// addUpAttention brings the sums of a tile of queries to the first of the cores that share the keys, each its own.
func (w *work) addUpAttention(tile int32) {
	a := w.attending()
	if _, twice := a.added[tile]; twice || !w.ended(a.finish) {
		fail("brings the sums of tile %d of queries twice, or over those of another tile, which may be in use", tile)
	}
	steps, _ := w.steps()
	positions := int64(0)
	for core := range w.t.makers {
		if r := w.t.whole[core][w.t.anchor.op.Outputs[0]]; r.Elements() > 0 {
			positions = max(positions, r[len(r)-2].Len()-int64(tile)%steps*int64(w.t.Positions))
		}
	}
	positions = min(positions, int64(w.t.Positions))
	size := (int64(w.t.Positions) + int64(w.t.Pieces) - 1) / int64(w.t.Pieces)
	for piece := int64(0); piece*size < positions; piece++ {
		w.summed(tile*w.t.Pieces+int32(piece), w.t.g.KeyStart(w.t.anchor.op, w.t.anchor.op.KeyParts()))
	}
	a.added[tile] = w.now
}

// attentionAt computes an element of the attention from what commands have read.
func (w *work) attentionAt(at []int64) uint64 {
	steps, blocks := w.steps()
	piece := int32(-1)
	for t := range int32(steps*blocks) * w.t.Pieces {
		for _, b := range w.boxes(w.core, -1, t/w.t.Pieces, t%w.t.Pieces, 1, false) {
			if inside(b, at) {
				piece = t
			}
		}
	}
	a, o := w.attending(), w.t.anchor
	w.summed(piece, o.sees(at))
	if by, ok := a.added[piece/w.t.Pieces]; w.t.Slices > 1 && (!ok || !w.ended(by)) {
		fail("takes the sums of tile %d of queries, to which those of other cores may not have been added", piece/w.t.Pieces)
	}
	return o.value(0, at, func(input int, x []int64) uint64 {
		v, ok := uint64(0), false
		for core := w.core; core < w.t.cores && !ok; core += w.t.makers { // those that share the keys
			v, ok = a.seen[core][seenAt{piece, input, ravel(x, o.in[input])}]
		}
		if !ok {
			fail("needs element %v of %q for tile %d of queries, which no command has read", x,
				w.t.g.Tensor(o.op.Inputs[input]).Name, piece/w.t.Pieces)
		}
		return v
	})
}

// finishAttention writes the results of a tile of queries.
func (w *work) finishAttention(tile int32) {
	type result struct {
		at    int64
		k     key
		value uint64
	}
	for core := range w.t.makers {
		w.begin(core)
		var list []result
		w.ofTile(core, tile, func(write int, at []int64, addr int64) {
			o := &w.t.Writes[write]
			k := key{o.Tensor, w.t.Instance, ravel(at, w.p.Tensors[o.Tensor].Shape)}
			list = append(list, result{addr, k, w.element(w.t.writes[write], slices.Clone(at))})
		})
		for _, x := range list {
			w.store(w.lb(core), x.at, x.k, x.value, true)
		}
	}
	w.attending().finish = w.now
}

// ofTile visits the elements of a core's results that are of a tile of queries, and where they are in its L1.
func (w *work) ofTile(core int, tile int32, visit func(write int, at []int64, addr int64)) {
	tiles := w.tilesOf(core)
	for i := range w.t.Writes {
		o := &w.t.Writes[i]
		size := w.size(o.Tensor)
		room := o.StageBytes / int64(w.t.QuerySlots) / w.align() * w.align()
		next := int64(0)
		w.ownResults(i, core, func(n int64, at []int64) {
			own, mine := tiles[key{int32(i), 0, ravel(at, w.p.Tensors[w.t.Writes[i].Tensor].Shape)}]
			if own != tile || !mine {
				return
			}
			addr := o.Stage + int64(tile%w.t.QuerySlots)*room + next
			switch {
			case o.Level == isa.L1:
				addr = o.Address + n*size
			case next+size > room:
				addr = beyond + o.Stage + int64(tile)*beyond + next
				w.report.Stages += size
			}
			next += size
			visit(i, at, addr)
		})
	}
}

// storeAttention moves a tile of a result, or a part of it, to its level.
func (w *work) storeAttention(tile int32) {
	_, part, parts := w.ofQueries()
	o := &w.t.Writes[w.c.Operand]
	size := w.size(o.Tensor)
	_, box := w.home(&isa.Operand{Tensor: o.Tensor, Instance: w.t.Instance})
	for core := range w.t.makers {
		w.begin(core)
		type place struct {
			at   []int64
			addr int64
		}
		var list []place
		w.ofTile(core, tile, func(write int, at []int64, addr int64) {
			if int32(write) == w.c.Operand {
				list = append(list, place{slices.Clone(at), addr})
			}
		})
		for _, x := range list[cut(len(list), part, parts):cut(len(list), part+1, parts)] {
			k := key{o.Tensor, w.t.Instance, ravel(x.at, w.p.Tensors[o.Tensor].Shape)}
			var v uint64
			if w.c.From > 0 {
				v = w.take(w.cl, w.c.From, k)
			} else {
				v = w.load(w.lb(core), x.addr, k)
			}
			switch {
			case w.c.Kind == isa.DDRStore:
				w.keep(k, w.k, v)
			case w.c.To > 0:
				w.put(w.cl, w.c.To, 0, k, v)
			default:
				w.store(&w.cl.gb, o.Address+w.index(box, o.Tensor, x.at)*size, k, v, true)
			}
		}
	}
}
