package sharding

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// mostChunks is the number of chunks of a piece at most; each is a kernel.
const mostChunks = 16

// A Split has the last operators of a piece, from products on, computed in equal chunks of rows or columns, each of
// which is on the links while the next is computed. What the chunks read is computed before them.
type Split struct {
	Chunks int64
	of     variant // what is on the links
	// ops has, by operator of the piece, the parts that a chunk reads and makes; nil: before the chunks.
	ops []*option
}

// pipelined is the time of n equal chunks, each computed for a seconds, then on the links for b, one behind the other
// on both. Behind each chunk but the last the next kernel is launched.
func pipelined(n int64, a, b, launch float64) float64 {
	return a + b + float64(n-1)*math.Max(a+launch, b)
}

// Splits chooses, by piece of a plan, how the tensor whose collective takes longest is made: nil at once, or in as many
// chunks as take least by the formulas, times what a piece takes beyond them. other is the network at another batch
// size: chunks have a part of each element of the batch. Piece i takes seconds[i]; nil: the times of the formulas.
func (p *Problem) Splits(plan *Plan, other *model.Graph, seconds []float64) ([]*Split, error) {
	pieces, moves, err := p.Pieces(plan, p.Graph, 0)
	if err != nil {
		return nil, err
	}
	small, _, err := p.Pieces(plan, other, 0)
	if err != nil {
		return nil, err
	}
	list := make([]*Split, len(pieces))
	for k := range pieces {
		var longest *Move
		for i := range moves {
			if m := &moves[i]; pieces[k].result(variant{m.Of, m.From}) >= 0 && (longest == nil || m.Seconds > longest.Seconds) {
				longest = m
			}
		}
		if longest == nil || slices.ContainsFunc(moves, func(m Move) bool {
			return m.Of == longest.Of && m.To != longest.To
		}) {
			continue
		}
		beyond := 1.0
		if seconds != nil {
			sum, all := 0.0, &shapes{g: pieces[k].Graph, small: small[k].Graph, chips: 1}
			for _, op := range pieces[k].Graph.Ops {
				if one, err := all.alone(op, wholly(op)); err == nil {
					sum += p.price.seconds(one)
				}
			}
			if sum > 0 {
				beyond = seconds[k] / sum
			}
		}
		list[k] = p.split(&pieces[k], &small[k], longest, beyond)
	}
	return list, nil
}

// split chooses dimension and number of the chunks of a piece's result.
func (p *Problem) split(piece, small *Piece, m *Move, beyond float64) (best *Split) {
	of := variant{m.Of, m.From}
	out := piece.result(of)
	least := math.Inf(1)
	for d, extent := range piece.Graph.Tensor(out).Shape {
		for n := int64(2); n <= min(mostChunks, extent); n++ {
			s := &shapes{g: piece.Graph, small: small.Graph, chips: n}
			ops := s.chain(out, d)
			if ops == nil {
				continue
			}
			whole, each, before := 0.0, 0.0, 0.0
			for i, op := range piece.Graph.Ops {
				if ops[i] == nil {
					before = p.launch
					continue
				}
				all, err := s.alone(op, wholly(op))
				part, other := s.alone(op, *ops[i])
				if err != nil || other != nil {
					panic("sharding: a chunk of operator " + op.Name + " can't be computed") // chain has tried
				}
				whole += p.price.seconds(all)
				each += p.price.seconds(part)
			}
			_, links := collective(p.Group, m.From, m.To, m.Bytes/n)
			t := before + pipelined(n, beyond*each, links, p.launch)
			if t < min(least, beyond*whole+m.Seconds) {
				least, best = t, &Split{n, of, ops}
			}
		}
	}
	return best
}

// chain finds what can be computed in chunks along a dimension of a result: its maker and what only that reads, back to
// products, of which there must be one.
func (s *shapes) chain(out model.TensorID, dim int) []*option {
	if len(s.g.Tensor(out).Consumers) > 0 {
		return nil
	}
	ops, found := make([]*option, len(s.g.Ops)), false
	want := map[model.TensorID]layout{out: Cut(dim)}
	for i := len(s.g.Ops) - 1; i >= 0; i-- {
		op := s.g.Ops[i]
		l, wanted := want[op.Outputs[0]]
		if !wanted || len(op.Outputs) > 1 || op.Outputs[0] != out && !s.only(op.Outputs[0], ops) {
			continue
		}
		in, ok := s.needs(op, int(l))
		if !ok {
			continue
		}
		o := option{In: in, Out: []layout{l}}
		if _, err := s.alone(op, o); err != nil {
			continue
		}
		ops[i] = &o
		if op.Class() == model.MatrixClass {
			found = true
			continue
		}
		for k, t := range op.Inputs {
			if in[k] >= 0 {
				want[t] = in[k]
			}
		}
	}
	if !found {
		return nil
	}
	as := map[model.TensorID]layout{}
	for i, o := range ops {
		if o == nil {
			continue
		}
		as[s.g.Ops[i].Outputs[0]] = o.Out[0]
		for k, t := range s.g.Ops[i].Inputs {
			if l, known := as[t]; known && l != o.In[k] { // in two ways
				return nil
			}
			as[t] = o.In[k]
		}
	}
	return ops
}

// only reports whether nothing but operators in chunks reads a tensor.
func (s *shapes) only(t model.TensorID, ops []*option) bool {
	apart := func(op model.OpID) bool { return ops[op] == nil }
	return !s.g.IsOutput(t) && !slices.ContainsFunc(s.g.Tensor(t).Consumers, apart)
}

// result is the tensor of a piece's graph that is a result, -1: none is.
func (piece *Piece) result(v variant) model.TensorID {
	for _, r := range piece.Results {
		if (variant{r.Of, r.Layout}) == v {
			return r.ID
		}
	}
	return -1
}

// cut gives what comes before the chunks, without a graph if nothing does, and a chunk.
func (s *Split) cut(piece Piece) (before, chunk Piece, err error) {
	build := func(chunks bool, outputs func(op *model.Op, t model.TensorID) bool) (made Piece, err error) {
		b := model.NewBuilder(piece.Graph.Name)
		here := map[model.TensorID]model.TensorID{}
		n := 0
		for i, op := range piece.Graph.Ops {
			if (s.ops[i] != nil) != chunks {
				continue
			}
			o := wholly(op)
			if chunks {
				o = *s.ops[i]
			}
			var in []model.TensorID
			for k, t := range op.Inputs {
				if _, ok := here[t]; !ok {
					whole := *piece.Graph.Tensor(t)
					late := whole.Producer != model.NoOp || slices.Contains(piece.Late, whole.Name)
					whole.Name = fmt.Sprintf("t%d", len(here))
					here[t] = source(b, &whole, o.In[k], s.Chunks)
					made.Sources = append(made.Sources, partOf{here[t], t, o.In[k]})
					if late {
						made.Late = append(made.Late, whole.Name)
					}
				}
				in = append(in, here[t])
			}
			out := b.OpN(op.Kind, fmt.Sprintf("op%d", n), attributes(piece.Graph, op, o, s.Chunks), in...)
			if n++; b.Err() != nil {
				break
			}
			for k, t := range op.Outputs {
				if here[t] = out[k]; outputs(op, t) {
					b.Output(out[k])
					made.Results = append(made.Results, partOf{out[k], t, o.Out[k]})
				}
			}
		}
		if n > 0 {
			made.Graph, err = b.Build()
		}
		return made, err
	}
	read := func(t model.TensorID) bool {
		return slices.ContainsFunc(piece.Graph.Tensor(t).Consumers, func(op model.OpID) bool { return s.ops[op] != nil })
	}
	if before, err = build(false, func(_ *model.Op, t model.TensorID) bool {
		return piece.Graph.IsOutput(t) || read(t)
	}); err != nil {
		return before, chunk, err
	}
	chunk, err = build(true, func(_ *model.Op, t model.TensorID) bool { return piece.Graph.IsOutput(t) })
	return before, chunk, err
}

// Chunked is [Problem.Pieces] with pieces split. Sources and results of a split piece's parts are of the piece's graph,
// a chunk's in its layout of as many chunks.
func (p *Problem) Chunked(plan *Plan, g *model.Graph, chip int64, splits []*Split) (list []Piece, all []Move,
	err error) {
	pieces, moves, err := p.Pieces(plan, g, chip)
	if err != nil {
		return nil, nil, err
	}
	at := make([]int, len(pieces)+1) // the first part of each piece
	chunks := make([]int, len(pieces))
	for k, piece := range pieces {
		at[k] = len(list)
		if k >= len(splits) || splits[k] == nil {
			list = append(list, piece)
			chunks[k] = len(list) - 1
			continue
		}
		before, chunk, err := splits[k].cut(piece)
		if err != nil {
			return nil, nil, err
		}
		if before.Graph != nil {
			list = append(list, before)
		}
		chunks[k] = len(list)
		list = append(list, slices.Repeat([]Piece{chunk}, int(splits[k].Chunks))...)
	}
	at[len(pieces)] = len(list)
	for _, m := range moves {
		k := slices.IndexFunc(pieces, func(piece Piece) bool { return piece.result(variant{m.Of, m.From}) >= 0 })
		needed := at[m.Needed]
		switch {
		case k < 0 || k >= len(splits) || splits[k] == nil: // what another collective makes comes behind that
			m.Before, m.Needed = at[m.Before], needed
			all = append(all, m)
		case splits[k].of != variant{m.Of, m.From}:
			m.Before, m.Needed = min(chunks[k], at[m.Before]), needed
			all = append(all, m)
		default:
			n := splits[k].Chunks
			m.Bytes /= n
			_, m.Seconds = collective(p.Group, m.From, m.To, m.Bytes)
			m.Traffic = traffic(p.Group, m.From, m.To, m.Bytes)
			for i := range int(n) {
				m.Before, m.Needed = chunks[k]+i+1, needed
				all = append(all, m)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Move) int { return a.Before - b.Before })
	return list, all, nil
}
