package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Blocked reports whether a product runs in tiles of rows, columns and reduction, with sums
// that stay in the L1: see Nest.Sums.
func (n *Nest) Blocked() bool { return n != nil && n.Sums > 0 }

// AccumulatorBytes is the size of a sum of a blocked nest that is not complete.
const AccumulatorBytes = 4

// ReductionTiles is the number of tiles that a nest cuts the reduction into; at least 1.
func (n *Nest) ReductionTiles() int64 { return int64(max(1, len(n.Reduction))) }

// ColumnTiles is the number of tiles that a nest cuts the columns into; at least 1.
func (n *Nest) ColumnTiles() int64 { return int64(max(1, len(n.Columns))) }

// Times is how often work at the end of a loop runs in so many tiles of rows.
func (n *Nest) Times(at Attach, tiles int64) int64 {
	if at != AtTile {
		tiles *= n.ColumnTiles()
	}
	if at == AtPiece {
		tiles *= n.Pieces
	}
	return tiles
}

// Staying is the number of loads of a tile's reduction that stay in the LLB for all tiles of rows and columns that need
// them.
func (n *Nest) Staying() int64 {
	switch {
	case !n.Once || n.Stage == 0:
		return 0
	case n.Keep > 0:
		return n.Keep
	}
	return n.ReductionTiles() / n.Stage
}

// RoomFor is the number of tiles of an operand the L1 has room for.
func (n *Nest) RoomFor(role OperandRole) int64 {
	switch role {
	case RowsOperand:
		return n.Depth
	case ColumnsOperand:
		return cmp.Or(n.ColumnDepth, n.Depth)
	}
	return n.Sums // it comes while products add up
}

// Held is how many tiles of rows, the last of a reduction that passes again for each tile of columns, have a place of
// their own in the L1: where there are more than two places, but not for all, the first take turns in two. Those that
// one load gathers in the LLB do the same.
func (n *Nest) Held() int64 {
	sums := n.ReductionTiles()
	if n.ColumnsFirst || n.ColumnTiles() == 1 || n.Depth < 3 || n.Depth >= sums {
		return 0
	}
	stage := max(1, n.Stage)
	return max(0, sums-ceil(sums-n.Depth+2, stage)*stage)
}

// RowDims is the number of innermost dimensions of a step's output that make up a row: those along
// which a core makes as many elements as its product has columns. 0: there is no such number.
func (s *Schedule) RowDims(st *Step, columns int64) int {
	layout := s.Graph.Tensor(st.Output).Layout
	n := int64(1)
	for k := len(layout) - 1; k >= 0; k-- {
		if n *= st.CoreOutput[layout[k]].Len(); n == columns {
			return len(layout) - k
		}
	}
	return 0
}

// narrow keeps elements lo to hi, in the order of memory, of some dimensions of a box, or the smallest box around them.
func narrow(box model.Region, dims []int, lo, hi int64) {
	left := int64(1)
	for _, d := range dims {
		left *= box[d].Len()
	}
	for _, d := range dims {
		left /= box[d].Len()
		first, last := lo/left, (hi-1)/left
		box[d] = model.Interval{Lo: box[d].Lo + first, Hi: box[d].Lo + last + 1}
		if first != last {
			break
		}
		lo, hi = lo-first*left, hi-first*left
	}
}

// RowTile returns the box of a core's output that part p of n whole rows makes: nil if there is none. Of the
// columns it has those in cols.
func (s *Schedule) RowTile(st *Step, core, p, n int64, cols model.Interval) model.Region {
	layout := s.Graph.Tensor(st.Output).Layout
	at := len(layout) - s.RowDims(st, total(st.Nest.Columns))
	box := Slice(s.Instances.Instances[st.Instance].Regions[st.Output], st.Binding, layout, core)
	if box == nil { // a core of another result's alone
		return nil
	}
	rows, columns := int64(1), int64(1)
	for k, d := range layout {
		if k < at {
			rows *= box[d].Len()
		} else {
			columns *= box[d].Len()
		}
	}
	cols.Hi = min(cols.Hi, columns) // the last core may have fewer
	if rows*p/n == rows*(p+1)/n || cols.Len() < 1 {
		return nil
	}
	narrow(box, layout[:at], rows*p/n, rows*(p+1)/n)
	narrow(box, layout[at:], cols.Lo, cols.Hi)
	return box
}

// An OperandRole says how the tiles of a blocked nest cut an input.
type OperandRole uint8

// The roles.
const (
	BesideOperand  OperandRole = iota // of the vector work: by rows and columns
	RowsOperand                       // of the product: by rows and reduction
	ColumnsOperand                    // of the product: by reduction and columns
)

// RoleOf is the role of an input tensor of a step's layer.
func (s *Schedule) RoleOf(st *Step, t model.TensorID) OperandRole {
	anchor := s.Graph.Op(s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer].Anchor)
	switch {
	case len(anchor.Inputs) > 0 && t == anchor.Inputs[0]:
		return RowsOperand
	case len(anchor.Inputs) > 1 && t == anchor.Inputs[1]:
		return ColumnsOperand
	}
	return BesideOperand
}

// TileElements returns the most elements of each input that a core needs for part p of the rows and the columns in
// cols. Of all cores it takes the first and those that need most of an input, so that the parts add up to as much.
func (s *Schedule) TileElements(st *Step, p int64, cols model.Interval) map[model.TensorID]int64 {
	most := map[model.TensorID]int64{}
	s.AddTile(most, Regions{}, st, p, cols)
	return most
}

// AddTile is TileElements, and keeps what is larger in most. Boxes are put into reg.
func (s *Schedule) AddTile(most map[model.TensorID]int64, reg Regions, st *Step, p int64, cols model.Interval) {
	whole := s.Instances.Instances[st.Instance].Regions[st.Output]
	add := func(core int64) {
		clear(reg)
		tile := s.RowTile(st, core, p, st.Nest.Tiles, cols)
		if tile == nil {
			return
		}
		reg[st.Output] = tile
		for _, w := range st.Writes {
			if v := &s.Values[w]; v.Region.Equal(whole) { // in the same rows; see CheckRows
				reg[v.Tensor] = tile
			}
		}
		BackPropagate(s.Graph, s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer].Ops, reg)
		for i := range st.Reads {
			t := s.Values[st.Reads[i].Value].Tensor
			most[t] = max(most[t], reg[t].Elements())
		}
	}
	add(0)
	for i := range st.Reads {
		core := st.Reads[i].Busiest
		if core > 0 && !slices.ContainsFunc(st.Reads[:i], func(r Read) bool { return r.Busiest == core }) {
			add(core)
		}
	}
}

func total(list []int64) (n int64) {
	for _, x := range list {
		n += x
	}
	return n
}

func largest(list []int64) (most int64) {
	for _, n := range list {
		most = max(most, n)
	}
	return most
}

// blockedStage is Staged of a step with a blocked nest: slots for tiles of what passes, results on their
// way out, and sums.
func (s *Schedule) blockedStage(st *Step) (parts []StagePart) {
	n := st.Nest
	all := model.Interval{Hi: total(n.Columns)}
	if all.Hi < 1 || n.Tiles < 1 || n.Tiles > st.CoreOutput.Elements()/all.Hi || s.RowDims(st, all.Hi) == 0 {
		return nil // the generator refuses it, and says why
	}
	share := func(elements, part, of int64) int64 { return (elements*part + of - 1) / max(1, of) }
	reduction := total(n.Reduction) * st.Slices()
	var first, most map[model.TensorID]int64 // elements that the first part needs, and any
	for i := 0; i < len(st.Reads); {
		v := &s.Values[st.Reads[i].Value]
		t, from, away := v.Tensor, i, false
		for ; i < len(st.Reads) && s.Values[st.Reads[i].Value].Tensor == t; i++ {
			r := &st.Reads[i]
			away = away || s.Values[r.Value].Level != L1 || r.RemoteBytes > 0
		}
		if !away {
			continue
		}
		if first == nil {
			first, most = s.TileElements(st, 0, all), map[model.TensorID]int64{}
			reg := Regions{}
			for p := range n.Tiles {
				s.AddTile(most, reg, st, p, all)
			}
		}
		elements, slots := most[t], n.Depth
		switch s.RoleOf(st, t) {
		case RowsOperand:
			elements = share(elements, largest(n.Reduction), reduction)
		case ColumnsOperand:
			slots = n.RoomFor(ColumnsOperand)
			elements = share(share(elements, largest(n.Columns), all.Hi), largest(n.Reduction), reduction)
		default:
			// What all columns need alike, each tile of columns does.
			narrow := s.TileElements(st, 0, model.Interval{Hi: largest(n.Columns)})[t]
			elements, slots = share(elements, narrow, first[t]), n.RoomFor(BesideOperand)
		}
		bytes := s.Graph.Tensor(t).DType.Bytes(elements)
		parts = append(parts, StagePart{From: from, To: i, Bytes: slots * Align(bytes), Whole: true})
	}
	rows := st.CoreOutput.Elements() / max(1, all.Hi)
	tile := (rows + n.Tiles - 1) / n.Tiles * largest(n.Columns)
	least := int64(0) // room that sums may take of results
	for _, w := range st.Writes {
		if v := &s.Values[w]; v.Level != L1 {
			bytes := n.Sums * Align(s.Graph.Tensor(v.Tensor).DType.Bytes(tile))
			parts = append(parts, StagePart{From: -1, To: w, Bytes: bytes, Whole: true})
			least = bytes
		}
	}
	// Sums that are complete, and no other core's, are results.
	sums, others := int64(0), st.Slices()-1
	if n.ReductionTiles() > 1 || others > 0 {
		sums = max(0, n.Sums*Align(tile*AccumulatorBytes)-least)
	}
	if sums += others * Align(tile*AccumulatorBytes); sums > 0 {
		parts = append(parts, StagePart{From: -1, To: -1, Bytes: sums, Whole: true})
	}
	return parts
}

// CheckRows verifies that the rows and columns of a layer's product are those of what the
// step writes, so that tiles of one are tiles of the other.
func (s *Schedule) CheckRows(st *Step, dims model.MatrixDims) error {
	t := s.Graph.Tensor(st.Output)
	n := s.RowDims(st, dims.N)
	if n == 0 || st.CoreOutput.Elements() != dims.Reps*dims.M*dims.N {
		return fmt.Errorf(
			"%q has %d elements a core, of dimensions %v, expected rows of the product's %d columns and %d sums",
			t.Name, st.CoreOutput.Elements(), st.CoreOutput, dims.N, dims.Reps*dims.M*dims.N)
	}
	// Between cores, columns may be cut along the outermost dimension of a row alone.
	for _, d := range t.Layout[len(t.Layout)-n+1:] {
		if st.Binding[d] > 1 {
			return fmt.Errorf("%q is spread over %d cores along dimension %d, inside of rows of %d elements", t.Name,
				st.Binding[d], d, dims.N)
		}
	}
	for _, w := range st.Writes {
		if v := &s.Values[w]; v.Tensor != st.Output {
			o := s.Graph.Tensor(v.Tensor)
			if !v.Region.Equal(s.Instances.Instances[st.Instance].Regions[st.Output]) || !slices.Equal(o.Layout, t.Layout) ||
				!v.Binding.Equal(st.Binding) {
				return fmt.Errorf("the layer also writes %q, whose rows are not those of %q", o.Name, t.Name)
			}
		}
	}
	return nil
}
