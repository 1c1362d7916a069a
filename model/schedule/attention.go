package schedule

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
)

// AttentionTiles are the loops of a core's attention: tiles of queries, each of so many products (heads of keys) and
// so many positions of all their heads of queries, and inside of them tiles of keys. The scores of a tile of
// queries and keys are in the L1 and nowhere else: the maximum and the sum of a row go along with the keys.
type AttentionTiles struct {
	Products  int64 `json:"products"`
	Positions int64 `json:"positions"`
	Keys      int64 `json:"keys"`
	// Pieces is how many pieces the positions of a tile are cut into, each of which has scores with a tile of keys by
	// itself; 0: one.
	Pieces int64 `json:"pieces,omitempty"`
	// Single: there is room for one tile of keys and one of values, not for two.
	Single bool `json:"single,omitempty"`
	// InTurn: under a causal mask, cores take tiles of positions in turn, so that each sees about as many keys; else
	// each has positions in a row.
	InTurn bool `json:"in_turn,omitempty"`
	// Slices is how many cores share the keys of each query; 0: one. Each makes sums of its slice, and the first adds up
	// what they have.
	Slices int64 `json:"slices,omitempty"`
}

// Nest is the nest of such loops, for these cores; nil: for those of the step's binding.
func (t AttentionTiles) Nest(cores Binding) *Nest {
	return &Nest{Cores: cores, Tiles: 1, Depth: 1, Loads: 1, Pieces: 1, Store: AtTile, Attention: &t}
}

// pieces is how many pieces a tile is cut into.
func (t AttentionTiles) pieces() int64 { return max(1, t.Pieces) }

// slices is how many cores share the keys of a query.
func (t AttentionTiles) slices() int64 { return max(1, t.Slices) }

// Piece is how many positions a piece has; the last of a tile may have fewer.
func (t AttentionTiles) Piece() int64 { return ceil(t.Positions, t.pieces()) }

// Attending is the attention that a step runs, as its cores see it.
type Attending struct {
	Op *model.Op
	// Of the busiest core: heads of keys, heads of queries that share one, positions, keys that are seen.
	Products, Heads, Positions, Keys int64
	Depth, Width                     int64
	// Rows are the cores' positions, each interval once; with Causal a position sees First keys more than its number.
	Rows   []model.Interval
	Causal bool
	First  int64
	// Operands describes the step's reads, by tensor, then its constants.
	Operands []AttendedOperand
	// estimates are tiles with about how long they take, the fastest first, and tilings are by the binary logarithm of
	// Step.Tiles, of less and less room; found when they are asked for.
	estimates func() []estimated
	tilings   func() []AttentionTiles

	// Whether cores can take tiles of positions in turn, as far as the layer goes, and whether the rule lets them.
	dealt, deals bool
	// Whether cores can share the keys, as far as the layer goes.
	sliced        bool
	g             *model.Graph
	spec          *hardware.Spec
	dtype, result model.DType // of operands and of results
	cores         int64
	busy          int  // clusters that share the DDR
	far           bool // keys and values come from the DDR, through the LLB
}

// AttendedOperand is a tensor that a step with an attention reads.
type AttendedOperand struct {
	Tensor model.TensorID
	Input  int   // of the attention; -1: of what follows it
	Bytes  int64 // that the busiest core needs
	// Tiled: it passes tile by tile of queries, or of keys, or of both; else it is there from the start.
	Tiled bool
	// Constant: it is one of the network's. Element is the bytes of an element.
	Constant bool
	Element  model.DType

	lead, positions, keys bool  // what it depends on: the head, the position, the key
	part                  int   // of the keys or values; -1: it is neither
	from, to              int64 // which of the keys it has, or depends on
	remote                int64 // of Bytes, what exchanges bring from other cores
}

// IsKeys reports whether it is keys or values.
func (o *AttendedOperand) IsKeys() bool { return o.part >= 0 }

// Within counts the keys from lo to hi that an operand has.
func (o *AttendedOperand) Within(lo, hi int64) int64 { return max(0, min(hi, o.to)-max(lo, o.from)) }

// Slice is the number of keys of a query that one core sees; the last of those that share them may see fewer.
func (a *Attending) Slice(t AttentionTiles) int64 { return ceil(a.Keys, t.slices()) }

// Shared is Within of the keys from lo to hi of a slice, of all cores that share the keys; the first has most.
func (a *Attending) Shared(o *AttendedOperand, t AttentionTiles, lo, hi int64) (n int64) {
	each := a.Slice(t)
	for k := range t.slices() {
		n += o.Within(k*each+lo, min(k*each+min(hi, each), a.Keys))
	}
	return n
}

// Tiles are the tiles of keys that an operand has any of.
func (a *Attending) Tiles(o *AttendedOperand, t AttentionTiles) (first, end int64) {
	to := o.to
	if t.slices() > 1 {
		to = min(to, a.Slice(t))
	}
	return o.from / t.Keys, ceil(to, t.Keys)
}

// Visible is the number of keys any core sees of tile i of positions.
func (a *Attending) Visible(t AttentionTiles, i int64) (keys int64) {
	return a.VisibleTo(t, i, t.Positions)
}

// VisibleTo is Visible of the first so many positions of the tile.
func (a *Attending) VisibleTo(t AttentionTiles, i, positions int64) (keys int64) {
	if !a.Causal {
		return a.Slice(t)
	}
	if t.InTurn {
		lo, hi := a.span()
		turn := dealtTo(lo, hi, a.Positions, t.Positions, i, ceil(hi-lo, a.Positions)-1)
		return min(turn.Lo+positions, turn.Lo+min(t.Positions, a.Positions-i*t.Positions), hi) + a.First
	}
	for _, r := range a.Rows {
		if at := r.Lo + i*t.Positions; at < r.Hi {
			keys = max(keys, min(at+min(positions, t.Positions), r.Hi)+a.First)
		}
	}
	return keys
}

// span is all positions of the cores.
func (a *Attending) span() (lo, hi int64) {
	lo = math.MaxInt64
	for _, r := range a.Rows {
		lo, hi = min(lo, r.Lo), max(hi, r.Hi)
	}
	return lo, hi
}

// dealtTo is the positions of tile i of a core with this number, of those that have up to each positions of [lo, hi)
// and take tiles in turn; none is empty behind hi. The last tile of each is as short as that of positions in a row.
func dealtTo(lo, hi, each, tile, i, core int64) model.Interval {
	size, at := min(tile, each-i*tile), lo+i*tile*ceil(hi-lo, each)
	return model.Interval{Lo: at + core*size, Hi: at + (core+1)*size}
}

// Together is the bytes of tile j of an operand's keys that all cores load for tile i of positions if they take these
// in turn, of which the core that loads most loads so many. Less than 0 for i: for all positions.
func (a *Attending) Together(o *AttendedOperand, t AttentionTiles, i, j, bytes int64) int64 {
	lo, hi := a.span()
	sum, cores, most := int64(0), ceil(hi-lo, a.Positions), int64(1)
	for c := range cores {
		seen := a.Keys
		if i >= 0 {
			if seen = 0; dealtTo(lo, hi, a.Positions, t.Positions, i, c).Lo < hi {
				seen = min(hi, dealtTo(lo, hi, a.Positions, t.Positions, i, c).Hi) + a.First
			}
		}
		n := o.Within(j*t.Keys, min((j+1)*t.Keys, seen))
		sum, most = sum+n, max(most, n)
	}
	return ceil(bytes*sum*a.cores, most*cores)
}

// Blocks and Steps are how many tiles of products and of positions there are.
func (a *Attending) Blocks(t AttentionTiles) int64 { return ceil(a.Products, t.Products) }
func (a *Attending) Steps(t AttentionTiles) int64  { return ceil(a.Positions, t.Positions) }

// Visits is the number of products of scores of a core: with Causal at most, else exactly. The last tile of positions
// may have fewer pieces.
func (a *Attending) Visits(t AttentionTiles) int64 {
	whole := a.Steps(t) - 1
	pieces := whole*ceil(t.Positions, t.Piece()) + ceil(a.Positions-whole*t.Positions, t.Piece())
	return a.Blocks(t) * pieces * ceil(a.Slice(t), t.Keys)
}

// QuerySlots is the number of tiles of queries, and of results on their way out, that have room: one where there are
// enough tiles of keys that what comes and goes between tiles of queries takes little.
func (a *Attending) QuerySlots(t AttentionTiles) int64 {
	if ceil(a.Slice(t), t.Keys) > 2 || a.Blocks(t)*a.Steps(t) == 1 {
		return 1
	}
	return 2
}

// Slots is the number of tiles of keys, of values and of masks that have room: one if there is one or the nest says so,
// else two.
func (a *Attending) Slots(t AttentionTiles) int64 {
	if t.Single || a.Blocks(t)*a.Steps(t) == 1 && t.Keys >= a.Slice(t) {
		return 1
	}
	return 2
}

// ScoreSlots is the number of pieces whose scores have room: one if there is one, else two.
func (a *Attending) ScoreSlots(t AttentionTiles) int64 {
	if a.Blocks(t)*a.Steps(t)*t.pieces() == 1 && t.Keys >= a.Slice(t) {
		return 1
	}
	return 2
}

// Stay reports whether the keys and values of a tile of products stay in the L1 for all positions.
func (a *Attending) Stay(t AttentionTiles) bool { return ceil(a.Slice(t), t.Keys) <= a.Slots(t) }

// SlotBytes is the room that one tile of an operand takes.
func (a *Attending) SlotBytes(o *AttendedOperand, t AttentionTiles) int64 {
	if !o.Tiled {
		return Align(o.Bytes)
	}
	n := a.Elements(o, t)
	return Align(o.Element.Bytes(n))
}

// Elements is the number of elements of a tiled operand such tiles need.
func (a *Attending) Elements(o *AttendedOperand, t AttentionTiles) int64 {
	switch {
	case o.Input == 0:
		return t.Products * a.Heads * t.Positions * a.Depth
	case o.IsKeys() && o.Input%2 == 1:
		return t.Products * min(t.Keys, o.to-o.from) * a.Depth
	case o.IsKeys():
		return t.Products * min(t.Keys, o.to-o.from) * a.Width
	}
	n := int64(1)
	if o.lead {
		n *= t.Products * a.Heads
	}
	if o.positions {
		n *= t.Positions
	}
	if o.keys {
		n *= t.Keys
	}
	return n
}

// SumBytes is the bytes of the sums, the maxima and the sums of exponentials that the first of the cores that share the
// keys gathers for so many rows.
func (a *Attending) SumBytes(t AttentionTiles, rows int64) int64 {
	return (t.slices() - 1) * rows * (a.Width + 2) * AccumulatorBytes
}

// AddedUp is the vector work of the first of the cores that share the keys on what all have of so many rows: the
// greatest maximum, a factor for each and its product with sums and the sum of exponentials.
func (a *Attending) AddedUp(t AttentionTiles, rows int64) model.VectorWork {
	others := t.slices() - 1
	if others == 0 || !a.Op.Attr.Softmax {
		return model.VectorWork{Simple: others * rows * a.Width}
	}
	return model.VectorWork{Simple: rows * (others*2 + (2*others+1)*(a.Width+1)), Special: rows * (others + 1)}
}

// scratch is the bytes of scores, sums, maxima and constants in the L1.
func (a *Attending) scratch(t AttentionTiles) (bytes int64) {
	rows := t.Products * a.Heads * t.Positions
	bytes = a.ScoreSlots(t)*Align(4*t.Products*a.Heads*t.Piece()*t.Keys) + Align(4*rows*a.Width) + 2*Align(4*rows) +
		Align(a.SumBytes(t, rows))
	for i := range a.Operands {
		if o := &a.Operands[i]; o.Constant {
			bytes += a.room(o, t)
		}
	}
	return bytes
}

// room is the bytes of an operand in the stage.
func (a *Attending) room(o *AttendedOperand, t AttentionTiles) int64 {
	if !o.Tiled {
		return Align(o.Bytes)
	}
	slots := a.Slots(t)
	if o.Input == 0 {
		slots = a.QuerySlots(t)
	}
	return slots*a.SlotBytes(o, t) + Align(o.remote)
}

// outSlot is the room of a tile of results.
func (a *Attending) outSlot(t AttentionTiles, coreBytes int64) int64 {
	return min(Align(coreBytes), Align(a.result.Bytes(t.Products*a.Heads*t.Positions*a.Width)))
}

// Constant is where in the stage, behind the scores and sums, the place of a constant is.
func (a *Attending) Constant(tensor model.TensorID, t AttentionTiles) (offset, bytes int64) {
	offset = a.scratch(t)
	for i := range slices.Backward(a.Operands) {
		if o := &a.Operands[i]; o.Constant {
			bytes = a.room(o, t)
			if offset -= bytes; o.Tensor == tensor {
				return offset, bytes
			}
		}
	}
	panic("schedule: no such constant")
}

// Of is the operand that a tensor is.
func (a *Attending) Of(t model.TensorID) *AttendedOperand {
	i := slices.IndexFunc(a.Operands, func(o AttendedOperand) bool { return o.Tensor == t })
	return &a.Operands[i]
}

// AttentionTiles returns the tiles of the step's own nest, or those that fit the room which its number of tiles stands
// for. Cores take these in turn if nothing of the step stays in the L1, where each core has positions in a row.
func (s *Schedule) AttentionTiles(st *Step) AttentionTiles {
	if st.Nest != nil && st.Nest.Attention != nil {
		return *st.Nest.Attention
	}
	list := st.Attending.tilings()
	t := list[logarithm(st.Tiles, len(list))]
	t.InTurn = t.InTurn && s.InTurn(st) == nil
	return t
}

// FitAttention is the nest of least estimate for step i, which has an attention, in the room that values leave free in
// the L1 there, with the step's cores; nil: none is faster than the tiles that stand for a share of the L1.
func (s *Schedule) FitAttention(i int) *Nest {
	st, room := s.Steps[i], s.Room(i)
	st.Nest = nil
	now := s.AttentionTiles(&st)
	turns := s.InTurn(&st) == nil
	for _, t := range st.Attending.estimates() {
		if t.InTurn = t.InTurn && turns; t.AttentionTiles == now {
			return nil
		}
		st.Nest = t.Nest(nil)
		if st.Needs(s.Staged(&st)) <= room {
			return st.Nest
		}
	}
	return nil
}

// CheckAttending reports why a step with an attention can't run in such tiles.
func (s *Schedule) CheckAttending(st *Step, t AttentionTiles) error {
	if err := st.Attending.CheckAttention(t); err != nil {
		return err
	}
	if t.InTurn {
		if err := s.InTurn(st); err != nil {
			return fmt.Errorf("the loop over queries %w", err)
		}
	}
	if t.Slices > 0 {
		if err := s.OverKeys(st); err != nil {
			return fmt.Errorf("the loop over keys %w", err)
		}
	}
	return nil
}

// InTurn reports why the cores of a step with an attention can't take tiles of positions in turn.
func (s *Schedule) InTurn(st *Step) error {
	if !st.Attending.dealt {
		return fmt.Errorf(
			"takes tiles of positions in turn, expected a causal mask, cores that divide the positions, and no other operand that depends on them but tile by tile")
	}
	values := slices.Clone(st.Writes)
	for i := range st.Reads {
		values = append(values, st.Reads[i].Value)
	}
	for _, v := range values {
		if s.Values[v].Level == L1 {
			return fmt.Errorf("takes tiles of positions in turn, but %q stays in the L1",
				s.Graph.Tensor(s.Values[v].Tensor).Name)
		}
	}
	return nil
}

// OverKeys reports why the cores of a step with an attention can't share the keys.
func (s *Schedule) OverKeys(st *Step) error {
	if !st.Attending.sliced {
		return fmt.Errorf(
			"has cores that share the keys, expected no causal mask, and keys and values from the first key on, no constants, and no other operand tile by tile")
	}
	for i := range st.Reads {
		v := &s.Values[st.Reads[i].Value]
		if v.Level == L1 || i > 0 && s.Values[st.Reads[i-1].Value].Tensor == v.Tensor {
			return fmt.Errorf("has cores that share the keys, but %q comes from the L1, or in parts",
				s.Graph.Tensor(v.Tensor).Name)
		}
	}
	return nil
}

func logarithm(tiles int64, n int) int { return min(n, bits.Len64(uint64(max(1, tiles)))) - 1 }

// MostTiles is into how many pieces a step's output can be cut. The paper tiles the two outermost loop dimensions of
// what a core computes; where these are too small for the buffer, this goes on inward. Tiles of an attention stand for
// those of less and less room.
func (st *Step) MostTiles() int64 {
	if st.Attending != nil {
		return 1 << (len(st.Attending.tilings()) - 1)
	}
	n := int64(1)
	for _, iv := range st.CoreOutput {
		n *= iv.Len()
	}
	return n
}

// attended lists the stage of a step with an attention.
func (s *Schedule) attended(st *Step) []StagePart {
	a := st.Attending
	var tilings []AttentionTiles
	if st.Nest != nil && st.Nest.Attention != nil {
		tilings = []AttentionTiles{*st.Nest.Attention}
	} else {
		tilings = a.tilings()
	}
	part := func(from, to int, of func(t AttentionTiles) int64) StagePart {
		p := StagePart{From: from, To: to, Whole: true}
		for _, t := range tilings {
			p.Sizes = append(p.Sizes, of(t))
		}
		return p
	}
	var parts []StagePart
	for i := 0; i < len(st.Reads); {
		from, t := i, s.Values[st.Reads[i].Value].Tensor
		o, elsewhere := *a.Of(t), false
		o.remote = 0
		for ; i < len(st.Reads) && s.Values[st.Reads[i].Value].Tensor == t; i++ {
			if s.Values[st.Reads[i].Value].Level == L1 {
				o.remote += st.Reads[i].CoreRemoteBytes
			} else {
				elsewhere = true
			}
		}
		switch {
		case elsewhere:
			parts = append(parts, part(from, i, func(t AttentionTiles) int64 { return a.room(&o, t) }))
		case o.remote > 0:
			parts = append(parts, part(from, i, func(AttentionTiles) int64 { return Align(min(o.remote, o.Bytes)) }))
		}
	}
	parts = append(parts, part(-1, -1, a.scratch))
	for _, w := range st.Writes {
		if v := &s.Values[w]; v.Level != L1 {
			parts = append(parts, part(-1, w, func(t AttentionTiles) int64 {
				return a.QuerySlots(t) * a.outSlot(t, v.CoreBytes)
			}))
		}
	}
	return parts
}

// attending describes the attention of a layer of which cores compute these boxes; nil if the layer has none, or none
// of its rows is needed for them. Operands that other steps make are at level want.
func (b *StepBuilder) attending(layer *Layer, cores int64, need []Regions, want Level) *Attending {
	g := b.Graph
	op := g.Op(layer.Anchor)
	if op.Kind != "Attention" {
		return nil
	}
	q := g.Tensor(op.Inputs[0])
	n := len(q.Shape)
	a := &Attending{Op: op, Causal: op.Attr.Causal, g: g, spec: b.machine, busy: b.BusyClusters(), dtype: q.DType,
		result: g.Tensor(layer.Outputs[0]).DType, cores: cores}
	elements, all := int64(0), model.Region(nil)
	for _, reg := range need {
		r := reg[op.Outputs[0]]
		if r.Elements() == 0 {
			continue
		}
		if elements += r.Elements(); all == nil {
			all = r.Clone()
		}
		for d := range all {
			all[d] = model.Interval{Lo: min(all[d].Lo, r[d].Lo), Hi: max(all[d].Hi, r[d].Hi)}
		}
		d := g.AttentionDims(op, r)
		a.Products, a.Heads, a.Keys = max(a.Products, d.Products), max(a.Heads, d.Heads), max(a.Keys, d.Keys)
		a.Depth, a.Width = d.Depth, max(a.Width, d.Width)
		a.Positions = max(a.Positions, r[n-2].Len())
		if !slices.Contains(a.Rows, r[n-2]) {
			a.Rows = append(a.Rows, r[n-2])
		}
	}
	if all == nil {
		return nil
	}
	parts := op.KeyParts()
	keys := g.KeyStart(op, parts)
	a.First = keys - q.Shape[n-2]
	lo, hi := a.span()
	a.dealt = a.Causal && hi-lo > a.Positions && (int64(len(need)) < cores || elements == all.Elements()) // nothing twice
	// the same factor for all
	for _, r := range a.Rows {
		a.dealt = a.dealt && (r.Lo-lo)%a.Positions == 0 && (r.Len() == a.Positions || r.Hi == hi)
	}
	a.far = b.Spec.LLB != nil && (want == DDR || g.Tensor(op.Inputs[1]).Producer == model.NoOp)
	limit := DataBytes(b.machine) / 16
	for _, t := range slices.Concat(layer.Inputs, layer.Constants) {
		x := g.Tensor(t)
		o := AttendedOperand{Tensor: t, Input: slices.Index(op.Inputs, t), Constant: x.Role == model.Constant,
			Element: x.DType, to: keys}
		if o.part = op.KeyPart(o.Input); o.IsKeys() {
			o.from, o.to = g.KeyStart(op, o.part), g.KeyStart(op, o.part+1)
		}
		for _, reg := range need {
			o.Bytes = max(o.Bytes, o.Element.Bytes(reg[t].Elements()))
		}
		switch {
		case o.Input < 0:
		case o.Input == 0:
			o.Tiled = true
		case o.IsKeys(): // a small part, such as a token's, is there from the start
			o.Tiled = parts == 1 || a.dealt || o.Bytes > limit
		default:
			for d, extent := range x.Shape {
				if extent > 1 {
					switch at := n - len(x.Shape) + d; at {
					case n - 1:
						o.keys = true
					case n - 2:
						o.positions = true
					default:
						o.lead = true
					}
				}
			}
			o.Tiled = o.Bytes > limit
		}
		if o.Input < 0 || !o.Tiled && (o.positions || o.keys) {
			a.dealt = false
		}
		a.Operands = append(a.Operands, o)
	}
	a.deals = a.dealt && want != L1
	a.sliced = !a.Causal
	for i := range a.Operands {
		if o := &a.Operands[i]; o.Input != 0 && o.Tiled {
			a.sliced = a.sliced && o.IsKeys() && o.from == 0 && !o.Constant
		}
	}
	a.estimates, a.tilings = sync.OnceValue(a.estimate), sync.OnceValue(a.halved)
	return a
}

// attentionKey is equal for layers with an attention that differ in names only.
func (b *StepBuilder) attentionKey(layer *Layer, t model.TensorID, region model.Region) string {
	var key []byte
	var seen []model.TensorID // a tensor's number says which operator feeds which
	for _, id := range layer.Ops {
		op := b.Graph.Op(id)
		key = op.Attr.AppendKey(append(key, op.Kind...))
		for _, list := range [...][]model.TensorID{op.Inputs, op.Outputs} {
			for _, x := range list {
				if tensor := b.Graph.Tensor(x); !slices.Contains(seen, x) {
					seen = append(seen, x)
					key = fmt.Append(key, tensor.Shape, tensor.DType, tensor.Role, tensor.Layout, x == t)
				}
				key = fmt.Append(key, slices.Index(seen, x))
			}
		}
	}
	return string(fmt.Append(key, region, b.kind))
}

// attentionBinding spreads the result of a layer with an attention over the cores in the way that takes least by
// the estimate, with all of the L1's data for it; nil if there is nothing to choose. Operands that are wanted in the
// L1s come whole from other cores: where a way leaves room for them, others do not count.
func (b *StepBuilder) attentionBinding(layer *Layer, t model.TensorID, region model.Region) (best Binding) {
	for _, whole := range []bool{true, false} {
		if best != nil || whole && b.want != L1 {
			continue
		}
		least := math.Inf(1)
		b.attentionNests(layer, t, region, DataBytes(b.machine), whole, false,
			func(now Binding, _ AttentionTiles, seconds float64) {
				if seconds < least {
					least, best = seconds, slices.Clone(now)
				}
			})
	}
	return best
}

// mostKeys is how many tiles of keys are tried with each tile of positions, the largest that fit.
const mostKeys = 6

// slicings are numbers of cores that may share the keys: those there are, halves and so on; 0: none do.
func (a *Attending) slicings(share bool) []int64 {
	list := []int64{0}
	for n := CoresWithL1(a.spec) / a.cores; share && a.sliced && n > 1; n /= 2 {
		each := ceil(a.Keys, n)
		if k := ceil(a.Keys, each); k > 1 && k != list[len(list)-1] { // each has some
			list = append(list, k)
		}
	}
	return list
}

// attentionNests gives ways to spread the result of a layer with an attention over the cores, and tiles that take so
// much of the L1 at most, or so much with whole operands, with about how long they take; with share also of cores that
// share keys.
func (b *StepBuilder) attentionNests(layer *Layer, t model.TensorID, region model.Region, room int64, whole, share bool,
	try func(now Binding, tiles AttentionTiles, seconds float64)) {
	g := b.Graph
	layout, forbidden := g.Tensor(t).Layout, Forbidden(g, layer.Ops, t)
	m, err := cost.New(b.machine)
	if err != nil {
		return
	}
	own := g.Tensor(g.Op(layer.Anchor).Outputs[0]).Shape
	heads := own[len(own)-3]
	merged := heads * own[len(own)-1]
	factors := make([][]int64, len(region))
	for d, iv := range region {
		factors[d] = []int64{1}
		add := func(f int64) {
			if f > 1 && f <= b.cores && cuts(iv.Len(), f, b.Slices) && !slices.Contains(factors[d], f) {
				factors[d] = append(factors[d], f)
			}
		}
		if d < len(forbidden) && forbidden[d] {
			continue
		}
		for k := int64(1); k <= min(8, b.cores); k++ {
			add(b.cores / k)
			add(model.Pieces(iv.Len(), b.cores/k))
		}
		for f := int64(2); f <= b.cores; f *= 2 {
			add(f)
		}
		if iv.Len() == merged { // as many parts as heads, or fewer
			for f := int64(2); f <= heads; f++ {
				add(f)
			}
		}
		add(iv.Len())
	}
	most := int64(1) // cores that can have a part
	for _, f := range factors {
		most = min(b.cores, most*slices.Max(f))
	}
	now := One(len(region))
	var extend func(i int)
	extend = func(i int) {
		if i < len(layout) {
			for _, f := range factors[layout[i]] {
				if now[layout[i]] = f; now.Cores() <= b.cores {
					extend(i + 1)
				}
			}
			now[layout[i]] = 1
			return
		}
		if now.Cores()*4 < most && now.Busy(region) > 1 || CheckBinding(region, now, forbidden, b.cores) != nil {
			return
		}
		need := make([]Regions, 0, 2)
		for _, core := range [...]int64{0, now.Cores() - 1} { // the largest parts, and with a causal mask the last
			reg := Regions{t: Slice(region, now, layout, core)}
			BackPropagate(g, layer.Ops, reg)
			need = append(need, reg)
		}
		a := b.attending(layer, now.Cores(), need, b.want)
		if a == nil {
			return
		}
		for _, slices := range a.slicings(share) {
			var last AttentionTiles
			tried := 0
			for _, x := range a.lattice(slices) {
				if x.Products != last.Products || x.Positions != last.Positions || x.Pieces != last.Pieces ||
					x.Single != last.Single {
					tried, last = 0, x
				}
				if tried < mostKeys && a.stage(x, whole) <= room {
					tried++
					try(now, x, a.seconds(x, m))
				}
			}
		}
	}
	extend(0)
}

// AttentionNests are the nests of step i, which has an attention, that take least by the estimate: of each way to
// spread its result over the cores and each form of tiles one, so many at most. What the step makes must not stay in
// the L1.
func (s *Schedule) AttentionNests(i, most int) []*Nest {
	st := &s.Steps[i]
	inst := &s.Instances.Instances[st.Instance]
	layer := &s.Layers[inst.Group][st.Layer]
	b := &StepBuilder{Schedule: s, want: LLB, inst: inst}
	b.on(st.Kind)
	if st.Attending.far {
		b.want = DDR
	}
	type form struct {
		pieces int64
		single bool
		slices int64
	}
	type found struct {
		*Nest
		seconds float64
	}
	var list []found
	of := map[form]int{} // in list, of the present binding
	var cores Binding
	b.attentionNests(layer, st.Output, inst.Regions[st.Output], s.Room(i), false, s.OverKeys(st) == nil,
		func(now Binding, t AttentionTiles, seconds float64) {
			if cores == nil || !now.Equal(cores) {
				cores = slices.Clone(now)
				clear(of)
			}
			k, known := of[form{t.Pieces, t.Single, t.Slices}]
			if !known {
				k = len(list)
				of[form{t.Pieces, t.Single, t.Slices}] = k
				list = append(list, found{seconds: math.Inf(1)})
			}
			if seconds < list[k].seconds {
				list[k] = found{t.Nest(cores), seconds}
			}
		})
	slices.SortStableFunc(list, func(x, y found) int { return cmp.Compare(x.seconds, y.seconds) })
	var nests []*Nest
	for _, x := range list[:min(most, len(list))] {
		nests = append(nests, x.Nest)
	}
	return nests
}

// AttentionKey is equal for steps with an attention that differ in names and in what is around them only.
func (s *Schedule) AttentionKey(i int) string {
	st := &s.Steps[i]
	inst := &s.Instances.Instances[st.Instance]
	b := &StepBuilder{Schedule: s, kind: st.Kind}
	return b.attentionKey(&s.Layers[inst.Group][st.Layer], st.Output, inst.Regions[st.Output]) +
		fmt.Sprint(st.Attending.far)
}

// stage is the room that tiles take if nothing is in the L1 before, or with whole operands.
func (a *Attending) stage(t AttentionTiles, whole bool) int64 {
	n := a.scratch(t) + a.QuerySlots(t)*a.outSlot(t, math.MaxInt64/2)
	for i := range a.Operands {
		switch o := &a.Operands[i]; {
		case o.Constant:
		case whole:
			n += Align(o.Bytes)
		default:
			n += a.room(o, t)
		}
	}
	return n
}

// depths is the number of tilings, each of half the room of the one before.
const depths = 6

// estimated is tiles with about how long they take.
type estimated struct {
	AttentionTiles
	seconds float64
}

// estimate lists the lattice by time.
func (a *Attending) estimate() (list []estimated) {
	m, err := cost.New(a.spec)
	if err != nil {
		panic("schedule: " + err.Error()) // whoever made the schedule has one
	}
	for _, t := range a.lattice(0) {
		list = append(list, estimated{t, a.seconds(t, m)})
	}
	slices.SortStableFunc(list, func(x, y estimated) int { return cmp.Compare(x.seconds, y.seconds) })
	return list
}

// halved finds the best tiles for the data's part of the L1, half of it and so on, and last the smallest.
func (a *Attending) halved() (tilings []AttentionTiles) {
	least := AttentionTiles{Products: 1, Positions: 1, Keys: 1, InTurn: a.deals}
	for room, i := DataBytes(a.spec), 0; i < depths; room, i = room/2, i+1 {
		best := least
		for _, t := range a.estimates() {
			if a.stage(t.AttentionTiles, false) <= room {
				best = t.AttentionTiles
				break
			}
		}
		if k := len(tilings); k == 0 || a.stage(best, false) < a.stage(tilings[k-1], false) {
			tilings = append(tilings, best)
		}
	}
	if last := tilings[len(tilings)-1]; a.stage(least, false) < a.stage(last, false) {
		tilings = append(tilings, least)
	}
	return tilings
}

// lattice lists tiles: of a part of a product's positions, or of whole products, with keys that so many cores share.
func (a *Attending) lattice(slices int64) (list []AttentionTiles) {
	unit, _ := a.spec.UnitOf(hardware.Matrix)
	grain := int64(max(1, unit.Cols))
	var keys []int64
	all := a.Slice(AttentionTiles{Slices: slices})
	for parts := int64(1); ; parts++ {
		n := all
		if parts > 1 {
			n = min(all, ceil(ceil(all, parts), grain)*grain)
		}
		if len(keys) == 0 || n < keys[len(keys)-1] {
			keys = append(keys, n)
		}
		if n <= grain || parts > 8 && n <= 4*grain {
			break
		}
		if parts >= 8 { // then by powers of two
			parts = 2*parts - 1
		}
	}
	for k := int64(3); k > 0; k-- {
		if n := k * grain; n < keys[len(keys)-1] {
			keys = append(keys, n)
		}
	}
	add := func(products, positions int64) {
		t := AttentionTiles{Products: products, Positions: positions, InTurn: a.deals, Slices: slices}
		all := func() {
			for _, t.Keys = range keys {
				list = append(list, t)
			}
		}
		all()
		for t.Pieces = 2; t.Pieces <= min(4, positions); t.Pieces += 2 {
			t.Single = false
			all()
			t.Single = true
			all()
		}
	}
	for parts := int64(1); ; parts = max(parts+1, parts*5/4) {
		positions := ceil(a.Positions, parts)
		add(1, positions)
		if positions == 1 {
			break
		}
	}
	for parts := int64(1); parts < a.Products; parts = max(parts+1, parts*3/2) {
		if p := ceil(a.Products, parts); p > 1 {
			add(p, a.Positions)
		}
	}
	return list
}

// seconds is about what tiles take: visits of the units and of the loads side by side, and what is before and behind.
func (a *Attending) seconds(t AttentionTiles, m *cost.Model) float64 {
	dt := a.g.Tensor(a.Op.Inputs[0]).DType
	f := m.ScoreType(dt)
	clock := a.spec.ClockHz
	rows := t.Products * a.Heads * t.Positions
	score := model.ScoreWork(a.Op)
	ddr := a.spec.DDR.BandwidthBytesPerSecond / float64(a.busy)
	if e := a.spec.DDRActivationEfficiency; e > 0 {
		ddr *= e
	}
	latency, loads := a.spec.CoreLink.LatencySeconds, a.spec.CoreLink.Loads()
	if a.spec.LLB != nil {
		latency += a.spec.LLB.LatencySeconds
	} else {
		latency += a.spec.DDR.LatencySeconds + a.spec.DDRLink.LatencySeconds
		loads = a.spec.DDRLink.Loads()
	}
	waits := latency / float64(loads) // of loads in a row
	// Cores with heads of their own.
	lo, hi := a.span()
	apart := math.Max(1, float64(a.cores)/float64(ceil(hi-lo, a.Positions))) * float64(t.slices())
	rate := func(bytes int64) float64 { // seconds of a load of so many bytes
		each, from := float64(a.cores*t.slices()), ddr
		if a.spec.CoreLink.Broadcast {
			each = apart
		}
		if a.spec.LLB != nil {
			from = a.spec.LLB.BandwidthBytesPerSecond
		}
		return math.Max(float64(bytes)/a.spec.CoreLink.BandwidthBytesPerSecond, each*float64(bytes)/from)
	}
	// Keys and values that the LLB has no room for come from the DDR again for each tile of positions.
	again, once := 0.0, 0.0 // seconds of a visit that loads them: each, and those of the first tile of positions
	tile := apart * float64(a.dtype.Bytes(t.Products*t.Keys*(a.Depth+a.Width)))
	if a.far {
		once = tile / ddr
	}
	if a.far && a.Steps(t) > 1 && !a.Stay(t) {
		size := float64(a.spec.LLB.SizeBytes)
		if tile*float64(ceil(a.Slice(t), t.Keys)) > size*0.45 || tile > size/4 {
			again = tile / ddr
		}
	}
	// A tile of keys with so many of its positions: of the matrix unit, of the vector units, of the way in.
	piece := min(t.Piece(), t.Positions)
	product := func(n, k int64) float64 {
		return float64(m.MatrixCycles(model.MatrixDims{Reps: t.Products, M: a.Heads * piece, N: n, K: k}, dt))
	}
	known, scoring, meeting := int64(0), 0.0, 0.0 // cycles with so many keys: most visits are alike
	visit := func(keys, pieces int64) (total, first float64) {
		size := min(piece*pieces, t.Positions)
		rows := t.Products * a.Heads * size
		if keys != known {
			known, scoring, meeting = keys, product(keys, a.Depth), product(a.Width, keys)
		}
		scores, values := scoring*float64(pieces)/clock, meeting*float64(pieces)/clock
		matrix, each := scores+values, float64(pieces)
		w := model.VectorWork{Simple: ceil(score.Simple*rows*keys, pieces), Special: ceil(score.Special*rows*keys, pieces)}
		if a.Op.Attr.Softmax {
			w.Special += ceil(rows, pieces)
		}
		v, sp := m.VectorCycles(w, f)
		if a.Op.Attr.Softmax {
			r, _ := m.VectorCycles(model.VectorWork{Simple: ceil(rows*a.Width, pieces)}, f)
			v += r
		}
		vector := each * float64(max(v, sp)) / clock
		if m.SharedVector() {
			vector = each * float64(v+sp) / clock
		}
		load := latency + rate(a.dtype.Bytes(t.Products*keys*max(a.Depth, a.Width)))
		in := 2*waits + rate(a.dtype.Bytes(t.Products*keys*(a.Depth+a.Width)))
		if a.Stay(t) {
			in /= float64(a.Steps(t))
		}
		for i := range a.Operands {
			if o := &a.Operands[i]; o.Input > 0 && !o.IsKeys() && o.Tiled {
				in += waits + rate(a.SlotBytes(o, t))
			}
		}
		in = math.Max(in, again*float64(keys)/float64(t.Keys))
		if total = math.Max(matrix, vector); m.Synchronous() {
			total = matrix + each*float64(v+sp)/clock
		}
		total = math.Max(total, in)
		if t.Single && !a.Stay(t) { // keys come while scores meet their values, and values while scores are made
			total = math.Max(total, load+matrix-math.Min(2/each, 1)*math.Min(scores, values))
			// All scores of a tile meet their values before the next.
			soft := scores/each + float64(v+sp)/clock
			total = math.Max(total, soft+math.Max(values, vector*(each-1)/each+values/each))
		}
		return total, matrix/each + float64(v+sp)/clock + 2*latency + rate(a.dtype.Bytes(t.Products*keys*(a.Depth+a.Width)))
	}
	total, first := 0.0, 0.0
	pieces := ceil(t.Positions, piece)
	full, alone := visit(min(t.Keys, a.Slice(t)), pieces)
	steps := a.Steps(t)
	tried := steps // of them alike
	if !a.Causal {
		tried = 1
	}
	tried = min(tried, 32)
	for k := range tried {
		i := k * steps / tried
		whole := a.VisibleTo(t, i, piece) / t.Keys // tiles that all pieces see
		total += full * float64(whole)
		for seen := a.Visible(t, i); whole*t.Keys < seen; whole++ {
			some := int64(0) // that see any of it
			for p := range pieces {
				if a.VisibleTo(t, i, min(t.Positions, (p+1)*piece)) > whole*t.Keys {
					some++
				}
			}
			x, _ := visit(min(t.Keys, seen-whole*t.Keys), some)
			total += x
		}
		v, sp := m.VectorCycles(model.VectorWork{Simple: rows * a.Width, Special: rows}, f)
		total += float64(v+sp) / clock
	}
	if t.Slices > 0 {
		w := a.AddedUp(t, rows)
		v, sp := m.VectorCycles(w, f)
		total += float64(tried) * (2*latency + a.spec.SyncSeconds + rate(a.SumBytes(t, rows)) + float64(v+sp)/clock)
	}
	total *= float64(steps) / float64(tried)
	total += math.Max(0, once-full) * float64(ceil(a.Visible(t, 0), t.Keys))
	first = alone + rate(a.dtype.Bytes(rows*a.Depth))
	return total*float64(a.Blocks(t)) + first
}

// CheckAttention reports why a step can't run its attention in such tiles.
func (a *Attending) CheckAttention(t AttentionTiles) error {
	if most := min(a.Keys, CoresWithL1(a.spec)/a.cores); t.Slices != 0 && (t.Slices < 2 || t.Slices > most ||
		(t.Slices-1)*a.Slice(t) >= a.Keys) {
		return fmt.Errorf("the loop over keys divides %d over %d cores, expected 2 to %d, each with some", a.Keys, t.Slices,
			most)
	}
	for _, x := range []struct {
		loop      string
		have, all int64
	}{{"products", t.Products, a.Products}, {"positions", t.Positions, a.Positions}, {"keys", t.Keys, a.Slice(t)}} {
		if x.have < 1 || x.have > x.all {
			return fmt.Errorf("the loop over %s has tiles of %d, expected 1 to the %d of a core", x.loop, x.have, x.all)
		}
	}
	if t.Products > 1 && t.Positions < a.Positions {
		return fmt.Errorf(
			"the loop over queries has tiles of %d products with %d of their %d positions, expected all, or one product",
			t.Products, t.Positions, a.Positions)
	}
	if t.Pieces < 0 || t.Pieces > t.Positions {
		return fmt.Errorf("the loop over pieces has %d of %d positions, expected at most one for each", t.Pieces, t.Positions)
	}
	return nil
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// A Tiler finds what a core needs for tiles of an attention, of which it has the box r of the results.
type Tiler struct {
	Graph *model.Graph
	Op    *model.Op
	Tiles AttentionTiles
	Slice int64 // of the keys, that the core has

	lo, hi, each int64 // the positions of all cores, and most of one
}

// NewTiler is one for cores with these boxes of the results.
func NewTiler(g *model.Graph, op *model.Op, tiles AttentionTiles, boxes []model.Region) *Tiler {
	t := &Tiler{Graph: g, Op: op, Tiles: tiles, lo: math.MaxInt64}
	for _, r := range boxes {
		if r.Elements() > 0 {
			p := r[len(r)-2]
			t.lo, t.hi, t.each = min(t.lo, p.Lo), max(t.hi, p.Hi), max(t.each, p.Len())
		}
	}
	return t
}

// products lists the boxes of lead dimensions and heads of queries of the tile of products with this number.
func (t *Tiler) products(r model.Region, block int64, visit func(lead model.Region, kv int64, heads model.Interval)) {
	n, group := len(r), t.Op.Attr.Group
	if r.Elements() == 0 {
		return
	}
	first, last := r[n-3].Lo/group, (r[n-3].Hi-1)/group+1
	each := last - first
	all := each
	for _, iv := range r[:n-3] {
		all *= iv.Len()
	}
	for p := block * t.Tiles.Products; p < min(all, (block+1)*t.Tiles.Products); p++ {
		kv, at := first+p%each, p/each
		lead := r[:n-3].Clone()
		for d := n - 4; d >= 0; d-- {
			k := lead[d].Lo + at%lead[d].Len()
			at /= lead[d].Len()
			lead[d] = model.Interval{Lo: k, Hi: k + 1}
		}
		visit(lead, kv, model.Interval{Lo: kv * group, Hi: (kv + 1) * group}.Intersect(r[n-3]))
	}
}

// sees is the number of keys a core sees of these positions.
func (t *Tiler) sees(p model.Interval, n int) int64 {
	keys := t.Graph.KeyStart(t.Op, t.Op.KeyParts())
	if t.Op.Attr.Causal {
		if p.Len() > 0 {
			return p.Hi + keys - t.Graph.Tensor(t.Op.Inputs[0]).Shape[n-2]
		}
		return 0
	}
	return keys
}

// positions are those of tile i, or of a piece of it; less than 0: of all tiles, or pieces.
func (t *Tiler) positions(r model.Region, i, piece int64) model.Interval {
	p := r[len(r)-2]
	size := t.Tiles.Positions
	switch {
	case t.Tiles.InTurn:
		core, last := (p.Lo-t.lo)/t.each, max(0, i)
		all := model.Interval{Lo: t.lo, Hi: t.hi}
		if i < 0 {
			last = ceil(t.each, size) - 1
			for last > 0 && dealtTo(t.lo, t.hi, t.each, size, last, core).Intersect(all).Len() == 0 {
				last--
			}
		}
		p = dealtTo(t.lo, t.hi, t.each, size, last, core).Intersect(all)
		if i < 0 {
			p.Lo = dealtTo(t.lo, t.hi, t.each, size, 0, core).Lo
		}
	case i >= 0:
		p = model.Interval{Lo: p.Lo + i*size, Hi: p.Lo + (i+1)*size}.Intersect(p)
	}
	if piece >= 0 {
		size = t.Tiles.Piece()
		p = model.Interval{Lo: p.Lo + piece*size, Hi: p.Lo + (piece+1)*size}.Intersect(p)
	}
	return p
}

// Boxes returns the boxes of an input, or, for -1, of the results, that tile i of positions of a tile of products, or a
// piece of it, needs with tile j of keys; of keys and values with i less than 0 for all positions, with piece less than
// 0 for all pieces.
func (t *Tiler) Boxes(input int, r model.Region, block, i, piece, j int64) (list []model.Region) {
	positions := t.positions(r, i, piece)
	all := t.sees(positions, len(r))
	each := ceil(all, t.Tiles.slices())
	keys := model.Interval{Lo: t.Slice*each + j*t.Tiles.Keys, Hi: min(t.Slice*each+min((j+1)*t.Tiles.Keys, each), all)}
	part := t.Op.KeyPart(input)
	if part >= 0 {
		from := t.Graph.KeyStart(t.Op, part)
		keys = keys.Intersect(model.Interval{Lo: from, Hi: t.Graph.KeyStart(t.Op, part+1)})
		keys.Lo, keys.Hi = keys.Lo-from, keys.Hi-from
	}
	if positions.Len() == 0 || input > 0 && keys.Len() == 0 {
		return nil
	}
	width := r[len(r)-1]
	t.products(r, block, func(lead model.Region, kv int64, heads model.Interval) {
		b := lead
		head := model.Interval{Lo: kv, Hi: kv + 1}
		var shape model.Shape
		if input >= 0 {
			shape = t.Graph.Tensor(t.Op.Inputs[input]).Shape
		}
		switch {
		case input < 0:
			b = append(b, heads, positions, width)
		case input == 0:
			b = append(b, heads, positions, model.Interval{Hi: shape[len(shape)-1]})
		case part >= 0 && input%2 == 0:
			b = append(b, head, keys, width)
		case part >= 0 && t.Op.Attr.TransB:
			b = append(b, head, model.Interval{Hi: shape[len(shape)-2]}, keys)
		case part >= 0:
			b = append(b, head, keys, model.Interval{Hi: shape[len(shape)-1]})
		default:
			b = append(b, heads, positions, keys)[len(b)+3-len(shape):]
			for d := range b {
				if shape[d] == 1 {
					b[d] = model.Interval{Hi: 1}
				}
			}
			for _, other := range list { // what does not depend on the head
				if other.Equal(b) {
					return
				}
			}
		}
		list = append(list, b)
	})
	return list
}
