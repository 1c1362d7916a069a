package sim

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
)

// lookBack is how many computations and loads of a task, before a command, are looked at.
const lookBack = 128

// place is a value of an iteration of a cluster at a level, a portion of a buffer, or, with neither, a task.
type place struct {
	cluster, iteration, task, buffer, tensor, instance int32
	level                                              isa.Level
	isa.Portion
}

// written is what has written a box of a value: of all commands, and of those that each write all of it, the one that
// ends last, or -1.
type written struct {
	box []isa.Range
	by  [2]int32
}

// checkReads looks for reads of what is written later: moves of a value before all of it is stored, moves out of a
// buffer before the same portion is in it, computations before loads for their part, and vector work and stores before
// what makes the same part. Commands of tasks alone say what they move. Of attentions and of sums in the L1, a
// program does not say which part needs what; package interp finds that on values.
func checkReads(p *isa.Program, start, end []int64) (err error) {
	values, recent := map[place][]written{}, map[place][]int32{}
	for i := range p.Commands {
		c := &p.Commands[i]
		if c.Task == 0 {
			continue
		}
		t, stores := &p.Tasks[c.Task-1], c.Kind.Stores()
		computes, sums := c.Kind >= isa.Matrix, c.Kind == isa.Exchange && c.Sums(t)
		task := place{cluster: p.Queues[c.Queue].Cluster, iteration: c.Iteration, task: c.Task}
		at := func(o *isa.Operand, level isa.Level) place {
			return place{cluster: task.cluster, iteration: c.Iteration, tensor: o.Tensor, instance: o.Instance, level: level}
		}
		after := func(writer int32, what string) {
			if err == nil && writer >= 0 && start[i] < end[writer] {
				err = fmt.Errorf("program %q: command %d begins at %d ps and reads %s, which command %d writes until %d ps",
					p.Name, i, start[i], what, writer, end[writer])
			}
		}
		// Any part needs what one command makes of all parts.
		reads := func(k place, box []isa.Range, all bool, what string) {
			for _, w := range values[k] {
				if all && (box == nil || within(w.box, box) || within(box, w.box)) {
					after(w.by[0], what)
				} else if !all && within(box, w.box) {
					after(w.by[1], what)
				}
			}
		}
		writes := func(k place, box []isa.Range, whole bool) {
			n := slices.IndexFunc(values[k], func(w written) bool { return slices.Equal(w.box, box) })
			if n < 0 {
				n = len(values[k])
				values[k] = append(values[k], written{box, [2]int32{-1, -1}})
			}
			for all, w := range values[k][n].by {
				if (all == 0 || whole) && (w < 0 || end[i] > end[w]) {
					values[k][n].by[all] = int32(i)
				}
			}
		}
		if c.Kind.IsMove() && c.From > 0 && (c.Kind != isa.DDRLoad || c.To == 0) {
			reads(place{buffer: c.From, task: c.Task, Portion: c.Portion}, nil, true, "a buffer")
		}
		if c.Kind.IsMove() && !stores && !sums && c.From == 0 && t.Reads[c.Operand].Instance >= 0 {
			o := &t.Reads[c.Operand]
			if what := p.Tensors[o.Tensor].Name; o.Level == isa.L1 {
				reads(at(o, o.Level), o.Box, c.Parts <= 1, what)
			} else { // A value elsewhere is read when all of it is there.
				reads(at(o, o.Level), nil, true, what)
			}
		}
		known := t.Keys == 0 && t.Sums == 0
		if known && (computes || sums || c.Kind == isa.L1Store || c.Kind == isa.DDRStore && c.From == 0) {
			for _, k := range recent[task][max(0, len(recent[task])-lookBack):] {
				if needs(c, &p.Commands[k], t) {
					after(k, "an operand or a result of its task")
				}
			}
		}
		for k := range t.Reads {
			if o := &t.Reads[k]; known && computes && o.Instance >= 0 && o.Level == isa.L1 && does(c, o) {
				reads(at(o, isa.L1), o.Box, c.Parts <= 1 && wholly(c, t, o), p.Tensors[o.Tensor].Name)
			}
		}
		if err != nil {
			return err
		}
		for k := range t.Writes {
			if o := &t.Writes[k]; known && computes && o.Level == isa.L1 {
				writes(at(o, isa.L1), o.Box, c.Parts <= 1 && len(t.Columns) <= 1 && len(t.Reduction) <= 1)
			}
		}
		if c.Kind == isa.L1Load || c.Kind == isa.Exchange || c.Kind == isa.DDRLoad && c.From == 0 && c.To == 0 ||
			known && computes {
			recent[task] = append(recent[task], int32(i))
		}
		if c.To > 0 {
			writes(place{buffer: c.To, task: c.Task, Portion: c.Portion}, nil, false)
		}
		if o := t.Writes; stores {
			level := isa.LLB
			if c.Kind == isa.DDRStore {
				level = isa.DDR
			}
			writes(at(&o[c.Operand], level), o[c.Operand].Box, false)
		}
	}
	return nil
}

// within reports whether a box is inside of another.
func within(inner, outer []isa.Range) bool {
	for d, r := range inner {
		if r.Lo < outer[d].Lo || r.Hi > outer[d].Hi {
			return false
		}
	}
	return true
}

// wholly reports whether a computation reads all of an operand, if its part is all rows: there is one tile, or the
// operand is the first of a product with a constant whose reduction is not cut.
func wholly(c *isa.Command, t *isa.Task, o *isa.Operand) bool {
	return c.Tile == 0 || len(t.Reduction) <= 1 && (len(t.Columns) <= 1 || o.Unit == isa.Matrix &&
		slices.ContainsFunc(t.Reads, func(w isa.Operand) bool { return w.Unit == isa.Matrix && w.Instance < 0 }))
}

// does reports whether a computation's unit reads an operand.
func does(c *isa.Command, o *isa.Operand) bool {
	return o.Unit == isa.Launch || (o.Unit == isa.Matrix) == (c.Kind == isa.Matrix)
}

// needs reports whether a command needs what one of its task before it makes: vector work, stores and sums the same
// part, and computations what loads bring for their part or an earlier one, and their tile.
func needs(c, made *isa.Command, t *isa.Task) bool {
	n, m := int64(max(1, c.Parts)), int64(max(1, made.Parts))
	begun := int64(made.Part)*n < int64(c.Part+1)*m
	if made.Kind == isa.Exchange && made.Sums(t) {
		if c.Kind <= isa.Matrix {
			return false
		}
	} else if made.Kind.IsMove() {
		return c.Kind >= isa.Matrix && begun && does(c, &t.Reads[made.Operand]) && (made.Tile == 0 || c.Tile == 0 ||
			c.Kind == isa.Matrix && made.Tile <= c.Tile && c.Tile < made.Tile+max(1, made.Tiles))
	} else if c.Kind == isa.Matrix || c.Kind == made.Kind || made.Kind > isa.Matrix && c.Kind == isa.Special {
		return false
	}
	reduction := max(1, int32(len(t.Reduction)))
	return begun && int64(c.Part)*m < int64(made.Part+1)*n &&
		(c.Tile == 0 || made.Tile == 0 || (c.Tile-1)/reduction == (made.Tile-1)/reduction)
}
