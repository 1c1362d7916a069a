package sharding

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// A partOf is what a chip has of a tensor of the network.
type partOf struct {
	ID     model.TensorID // in the graph of a piece
	Of     model.TensorID // in the network
	Layout layout
}

// A Piece is the operators between two collectives, on one chip.
type Piece struct {
	Graph *model.Graph
	// Sources enter the graph: constants, inputs of the network, what other pieces have left.
	// Results are the tensors that it leaves.
	Sources, Results []partOf
	// Late are the names of the sources that earlier pieces make.
	Late []string
}

// A Move is a collective.
type Move struct {
	Kind     string         `json:"kind"`
	Of       model.TensorID `json:"-"`
	Tensor   string         `json:"tensor"`
	From, To layout         `json:"-"`
	Bytes    int64          `json:"bytes"` // of the whole tensor
	Seconds  float64        `json:"seconds"`
	Traffic  int64          `json:"-"` // bytes through a chip's DDR, at most
	// Before is the piece behind that which makes the tensor; the number of pieces: none is.
	Before int `json:"before_piece"`
}

// Pieces cuts a network at a plan's collectives: the graphs of one chip, counted from 0, in the
// order in which they run, each with the moves in front of it. The network is the problem's at
// any batch size.
func (p *Problem) Pieces(plan *Plan, g *model.Graph, chip int64) ([]Piece, []Move, error) {
	c := &cutter{p: p, plan: plan, g: g, level: make([]int, len(g.Ops)), moved: map[variant]int{}}
	for i, op := range g.Ops {
		for k, t := range op.Inputs {
			c.level[i] = max(c.level[i], c.ready(t, plan.Options[i].In[k]))
		}
	}
	for _, t := range g.Outputs {
		if maker := g.Tensor(t).Producer; maker != model.NoOp && c.native(t) == Partial {
			c.change(t, Partial, Whole, c.level[maker])
		}
	}
	var pieces []Piece
	number := map[int]int{} // of a level: some have no operators
	for level := range slices.Max(c.level) + 1 {
		if !slices.Contains(c.level, level) {
			continue
		}
		number[level] = len(pieces)
		piece, err := c.piece(level, chip)
		if err != nil {
			return nil, nil, err
		}
		pieces = append(pieces, piece)
	}
	for i := range c.moves {
		at := c.moves[i].Before
		for c.moves[i].Before = len(pieces); at <= slices.Max(c.level); at++ {
			if n, ok := number[at]; ok {
				c.moves[i].Before = n
				break
			}
		}
	}
	slices.SortStableFunc(c.moves, func(a, b Move) int { return a.Before - b.Before })
	return pieces, c.moves, nil
}

type variant struct {
	of     model.TensorID
	layout layout
}

// A cutter finds the level of each operator: how many collectives come before it.
type cutter struct {
	p     *Problem
	plan  *Plan
	g     *model.Graph
	level []int
	moves []Move
	moved map[variant]int // the level from which on a collective's result is there
}

// native is the layout in which an operator leaves a tensor.
func (c *cutter) native(t model.TensorID) layout {
	maker := c.g.Tensor(t).Producer
	return c.plan.Options[maker].Out[slices.Index(c.g.Op(maker).Outputs, t)]
}

// ready is the level from which on a tensor is there in a layout.
func (c *cutter) ready(t model.TensorID, l layout) int {
	maker := c.g.Tensor(t).Producer
	if maker == model.NoOp {
		return 0
	}
	from, level := c.native(t), c.level[maker]
	if from == Whole || from == l { // whatever it is changed to besides
		return level
	}
	if via, ok := c.plan.changed[t]; ok {
		level = c.change(t, from, via, level)
		from = via
	}
	return c.change(t, from, l, level)
}

// change makes a collective, once, where one is needed, and returns the level behind it.
func (c *cutter) change(t model.TensorID, from, to layout, level int) int {
	bytes := c.g.Tensor(t).Bytes()
	kind, seconds := collective(c.p.Group, from, to, bytes)
	if kind == "" {
		return level
	}
	v := variant{t, to}
	if _, known := c.moved[v]; !known {
		c.moved[v] = level + 1
		c.moves = append(c.moves, Move{kind, t, c.g.Tensor(t).Name, from, to, bytes, seconds,
			traffic(c.p.Group, from, to, bytes), level + 1})
	}
	return c.moved[v]
}

// piece is the graph of the operators of a level. Operators and tensors are named by their
// places, so that pieces that are alike are equal.
func (c *cutter) piece(level int, chip int64) (Piece, error) {
	b := model.NewBuilder("piece")
	var piece Piece
	here := map[variant]model.TensorID{}
	chips := c.p.Group.Chips
	var get func(t model.TensorID, l layout) model.TensorID
	get = func(t model.TensorID, l layout) model.TensorID {
		v := variant{t, l}
		if id, ok := here[v]; ok {
			return id
		}
		whole := *c.g.Tensor(t)
		whole.Name = fmt.Sprintf("t%d", len(here))
		_, moved := c.moved[v]
		if l >= 0 && whole.Producer != model.NoOp && !moved && c.native(t) != l {
			from := get(t, Whole)
			shape := size(&whole, l, chips)
			starts := make([]int64, len(shape))
			starts[l] = chip * shape[l]
			here[v] = b.Op("Slice", whole.Name,
				model.Attr{Starts: starts, Steps: slices.Repeat([]int64{1}, len(shape)), Shape: shape}, from)
			return here[v]
		}
		here[v] = source(b, &whole, l, chips)
		piece.Sources = append(piece.Sources, partOf{here[v], t, l})
		if whole.Producer != model.NoOp {
			piece.Late = append(piece.Late, whole.Name)
		}
		return here[v]
	}
	for i, op := range c.g.Ops {
		if c.level[i] != level {
			continue
		}
		o := c.plan.Options[i]
		var in []model.TensorID
		for k, t := range op.Inputs {
			in = append(in, get(t, o.In[k]))
		}
		out := b.OpN(op.Kind, fmt.Sprintf("op%d", i-slices.Index(c.level, level)), attributes(c.g, op, o, chips), in...)
		if b.Err() != nil {
			break
		}
		for k, t := range op.Outputs {
			here[variant{t, o.Out[k]}] = out[k]
			if c.leaves(t, level) {
				b.Output(out[k])
				piece.Results = append(piece.Results, partOf{out[k], t, o.Out[k]})
			}
		}
	}
	var err error
	piece.Graph, err = b.Build()
	return piece, err
}

// leaves reports whether other pieces, a collective or the network's caller want a tensor.
func (c *cutter) leaves(t model.TensorID, level int) bool {
	return c.g.IsOutput(t) || len(c.g.Tensor(t).Consumers) == 0 ||
		slices.ContainsFunc(c.moves, func(m Move) bool { return m.Of == t }) ||
		slices.ContainsFunc(c.g.Tensor(t).Consumers, func(op model.OpID) bool { return c.level[op] != level })
}
