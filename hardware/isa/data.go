package isa

import (
	"fmt"
	"math"
)

// Tensor is a tensor of the network.
type Tensor struct {
	Name        string
	Shape       []int64
	Order       []int32 // dimensions as they lie in memory, the outermost first
	ElementBits int64
}

// Range is a half-open interval of one dimension.
type Range struct{ Lo, Hi int64 }

// Operand is a box of a tensor that a task reads or writes, over all cores together.
type Operand struct {
	Tensor   int32   // index into Program.Tensors
	Instance int32   // that makes it; -1: an input or a constant of the network
	Box      []Range // one for each dimension of the tensor
	// Spread is, for what the task writes, how many cores each dimension of the box is cut
	// over, into equal parts: cores count through the dimensions in the order of memory,
	// the outermost slowest. What a core reads follows from what it writes. Nil: not cut.
	Spread []int64
	First  int32 // core, of those that it is spread over
	// Level is where the value is kept, whole: in the DDR, in the LLB from Address on, or spread over the L1s, each
	// core's part from Address on. Elements lie without gaps in the order of memory. NoLevel: not said.
	Level   Level
	Address int64
	// Stage is the L1 address of the StageBytes through which cores that need a read value from elsewhere take it, or
	// through which a written one leaves. Where the bytes are too few for all, tiles take turns in them, two at a time.
	Stage, StageBytes int64
	// Unit is, for what the task reads, the unit that does: Matrix, or Vector for vector work and special functions.
	// Launch: both.
	Unit Kind
	// Row, if not zero, is how many of the innermost dimensions a row has, which no part cuts: see Task.Sums.
	Row int32
}

// Task is one layer of one instance.
type Task struct {
	Instance      int32
	Operators     []int32 // indices into Program.Operators, in the order in which they run
	Reads, Writes []Operand
	// Columns and Reduction are the ends of the tiles that the matrix unit's stationary operand passes in, along the
	// columns of the product and along its reduction; where the task is several products, Columns cuts the list of
	// products. Tile 1 is the first of both, tile 2 the next along the reduction.
	Columns, Reduction []int64
	// Tiles is the number of tiles of the results that the commands are cut into and the stages hold Depth of; each
	// stands for Repeat of those that the stages were made for. 0 is 1, and a Depth of 2.
	Tiles, Repeat, Depth int32
	// Slices is the number of cores that make each part of the results together, if more than one. As
	// many cores as results are spread over add up the first slice of the reduction, as many
	// more the second, and so on; Columns and Reduction cut each slice. The first gather the
	// sums of the others by exchanges whose operand is len(Reads), and write the results.
	Slices int32
	// Sums, if not zero, says that the results are made in tiles of whole rows (see Operand.Row) and of Columns, in the
	// L1, where so many have room: those of all columns for each of Tiles tiles of rows or, with ColumnsFirst, of all
	// rows for each tile of columns. A load of a portion brings all that its part of the results needs of its tiles of
	// columns and reduction, in place of what such a load brought Depth loads before; of the product's second operand
	// ColumnDepth, of one beside the product Sums. Of the first operand the last Held tiles of the reduction have
	// places of their own, the others take turns in the first two of Depth.
	Sums         int32
	ColumnDepth  int32
	Held         int32
	ColumnsFirst bool
	// Keys, if not zero, says that the task is an attention: the cores go over tiles of queries, each of Products heads
	// of keys and Positions positions of all their heads of queries, and in each over tiles of Keys keys. Of its
	// commands Part counts the tiles of queries, and Tile those of keys from 1; a product that has Operand 1 makes
	// scores, one that has 2 is with the values. Slots tiles of each operand have room. A load of keys or values with
	// Tiles brings what all positions need of so many. Of queries and results, QuerySlots tiles have room.
	Products, Positions, Keys, Slots, QuerySlots int32
	// Pieces is how many pieces the positions of a tile are cut into, equal but for the last: of a command on scores Part
	// counts them. ScoreSlots pieces' scores have room. With InTurn cores take tiles of positions in
	// turn: of the results core c has no box but tiles c, c + n and so on if n cores divide the positions.
	Pieces, ScoreSlots int32
	InTurn             bool
}

// Portion is the share that a command has of its task.
//
// What each core writes of a result, in the order of memory, is cut into Parts equal parts. A command that computes or
// stores has part Part of them (from 0). A load of part Part brings what that part of the results needs of the operand
// and no earlier part has brought; a block of parameters is cut itself. Parts 0 is all.
type Portion struct {
	Operand int32 // of a move: index into the task's Reads, or, for a store, into its Writes
	Part    int32
	Parts   int32
	// Tile is the tile of the stationary operand, from 1, that is loaded or multiplied with,
	// or whose columns of the results the vector work and the stores behind a product
	// take; 0: all. A load may bring several, Tiles from this one on; 0: one.
	Tile, Tiles int32
}

// Cut returns part i of n of a portion.
func (p Portion) Cut(i, n int64) Portion {
	if n > 1 {
		p.Part, p.Parts = p.Part*int32(n)+int32(i), max(1, p.Parts)*int32(n)
	}
	return p
}

// Stores reports whether commands of this kind move what a task has written; other moves bring what it reads.
func (k Kind) Stores() bool { return k == L1Store || k == DDRStore }

// Sums reports whether a command of a task brings the sums of other cores.
func (c *Command) Sums(t *Task) bool {
	return c.Kind == Exchange && t.Slices > 1 && int(c.Operand) == len(t.Reads)
}

// Data returns the reads and writes of a command and others of its stage, of which its Portion is the command's own
// share: a move has the operand that it moves in both. Without a task, ok is false.
func (p *Program) Data(command int) (reads, writes []Operand, ok bool) {
	c := &p.Commands[command]
	if c.Task == 0 {
		return nil, nil, false
	}
	t := &p.Tasks[c.Task-1]
	reads, writes = t.Reads, t.Writes
	if c.Kind.Stores() {
		reads = writes[c.Operand : c.Operand+1]
		writes = reads
	} else if c.Kind.IsMove() && c.Sums(t) {
		return writes, writes, true
	} else if c.Kind.IsMove() {
		reads = reads[c.Operand : c.Operand+1]
		writes = reads
	}
	return reads, writes, true
}

// checkData looks for the first index out of range in tensors and tasks.
func (p *Program) checkData() (item string, index int, what string) {
	for i := range p.Tensors {
		t := &p.Tensors[i]
		seen := make([]bool, len(t.Shape))
		ok := len(t.Order) == len(t.Shape) && t.ElementBits >= 0
		elements := int64(1)
		for _, n := range t.Shape {
			ok = ok && n >= 0 && (n == 0 || elements <= math.MaxInt64/n)
			elements *= n
		}
		for _, d := range t.Order {
			ok = ok && d >= 0 && int(d) < len(seen) && !seen[d]
			if ok {
				seen[d] = true
			}
		}
		if !ok {
			return "tensor", i, fmt.Sprintf("(%s) has order %v for shape %v and elements of %d bits", t.Name, t.Order,
				t.Shape, t.ElementBits)
		}
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if min(t.Tiles, t.Repeat, t.Depth, t.Slices, t.Sums, t.Held, t.Products, t.Positions, t.Keys, t.Slots,
			t.QuerySlots, t.Pieces, t.ScoreSlots) < 0 ||
			t.Keys > 0 && min(t.Products, t.Positions, t.Slots, t.QuerySlots, t.Pieces, t.ScoreSlots) < 1 {
			return "task", i, fmt.Sprintf("is cut into %d tiles, of %d each, with room for %d, and for sums of %d", t.Tiles,
				t.Repeat, t.Depth, t.Sums)
		}
		for _, op := range t.Operators {
			if op < 0 || int(op) >= len(p.Operators) {
				return "task", i, fmt.Sprintf("runs operator %d of %d", op, len(p.Operators))
			}
		}
		for _, list := range [...][]Operand{t.Reads, t.Writes} {
			for _, o := range list {
				if o.Tensor < 0 || int(o.Tensor) >= len(p.Tensors) {
					return "task", i, fmt.Sprintf("has tensor %d of %d", o.Tensor, len(p.Tensors))
				}
				shape := p.Tensors[o.Tensor].Shape
				ok := len(o.Box) == len(shape) && (o.Spread == nil || len(o.Spread) == len(shape))
				for d := 0; ok && d < len(shape); d++ {
					r := o.Box[d]
					ok = 0 <= r.Lo && r.Lo <= r.Hi && r.Hi <= shape[d] &&
						(o.Spread == nil || 0 < o.Spread[d] && o.Spread[d] <= max(1, r.Hi-r.Lo))
				}
				if o.Level >= NumLevels || o.First < 0 || o.Address < 0 || o.Stage < 0 || o.StageBytes < 0 {
					return "task", i, fmt.Sprintf("has data at address %d of level %v, with a stage of %d bytes at %d", o.Address,
						o.Level, o.StageBytes, o.Stage)
				}
				if ok = ok && 0 <= o.Row && int(o.Row) <= len(shape); !ok {
					return "task", i, fmt.Sprintf("has the box %v of a tensor of shape %v, spread over %v cores",
						o.Box, shape, o.Spread)
				}
			}
		}
	}
	return "", 0, ""
}

// checkPortion says what is wrong with a command's reference to its task; "" if nothing.
func (p *Program) checkPortion(c *Command) string {
	switch {
	case c.Task < 0 || int(c.Task) > len(p.Tasks):
		return fmt.Sprintf("task %d of %d", c.Task-1, len(p.Tasks))
	case c.Task == 0 && (c.Portion != (Portion{}) || c.From != 0 || c.To != 0):
		return "a portion of no task"
	case c.Task == 0:
		return ""
	case c.Part < 0 || c.Parts < 0 || c.Part >= max(1, c.Parts):
		return fmt.Sprintf("part %d of %d", c.Part, c.Parts)
	}
	for _, b := range [...]int32{c.From, c.To} {
		if b < 0 || int(b) > len(p.Buffers) {
			return fmt.Sprintf("buffer %d of %d", b-1, len(p.Buffers))
		}
	}
	t, operands := &p.Tasks[c.Task-1], 1
	if t.Keys > 0 && c.Kind.IsCompute() {
		operands = 3
	}
	if c.Kind.Stores() {
		operands = len(t.Writes)
	} else if c.Kind.IsMove() {
		operands = len(t.Reads)
	}
	if c.Sums(t) {
		operands++
	}
	if c.Operand < 0 || int(c.Operand) >= operands {
		return fmt.Sprintf("operand %d of %d", c.Operand, operands)
	}
	if tiles := int64(len(t.Columns)) * int64(len(t.Reduction)); t.Keys > 0 && c.Tile >= 0 && c.Tiles >= 0 {
		return ""
	} else if c.Tile < 0 || c.Tiles < 0 || int64(c.Tile)+int64(max(1, c.Tiles))-1 > tiles {
		return fmt.Sprintf("tile %d of %d", int64(c.Tile)+int64(max(1, c.Tiles))-1, tiles)
	}
	return ""
}
