package llm

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm/serving"
)

// ServingTimes simulates what a server's steps are made of, as far as a trace needs: a layer's products, its
// attention and the product with the vocabulary, each scheduled by a recipe on one chip, one after the other.
// Several chips share each layer (zoo.OpenDecoder) and add their results twice in it, by the closed form of
// package sharding. Progress, if not nil, is called before each simulation with the number of those before it and of
// all.
func ServingTimes(ctx context.Context, decoder string, dtype model.DType, machine *hardware.Spec,
	recipe scheduler.Recipe, trace []serving.Request,
	limits serving.Limits, progress func(done, of int)) (*serving.Times, error) {
	need := serving.NeedOf(trace, limits)
	count := int64(machine.ChipCount())
	d, err := zoo.OpenDecoder(decoder, dtype, count)
	if err != nil {
		return nil, err
	}
	for i, r := range trace {
		if n := int64(r.Prompt + r.Answer); d.Limit > 0 && n > d.Limit {
			return nil, &serving.RequestError{Number: i + 1,
				Problem: fmt.Sprintf("has %d tokens, %s has positions for %d", n, decoder, d.Limit)}
		}
	}
	chip := machine.Clone()
	chip.Chips = nil
	t := &serving.Times{Model: decoder, Hardware: machine.Name, Chips: count, StaticWatts: -1}
	if machine.Energy != nil {
		t.StaticWatts = float64(count) * machine.Energy.StaticWatts
	}
	weights, err := d.WeightBytes()
	if err != nil {
		return nil, err
	}
	room := int64(0)
	if chip.DDR != nil {
		room = int64(chip.DDR.SizeBytes)
	}
	if t.CacheTokens = (room - weights) / d.CacheBytes(); t.CacheTokens < 1 {
		return nil,
			fmt.Errorf("%s: a chip's share of the weights of %s takes %s, the DDR has %s: no room for keys and values",
				machine.Name, decoder, hardware.Bytes(weights).Rounded(), hardware.Bytes(room).Rounded())
	}
	s := &servingParts{ctx: ctx, chip: chip, recipe: recipe, chips: count, progress: progress,
		group: chips.GroupOf(machine)}
	up := func(n int64) int64 { return (n + 63) / 64 * 64 }
	t.Tokens.At = knots(append([]int64{1}, powers(16, 2, need.Tokens)...), up(need.Tokens))
	t.Scores.At = knots(powers(1, 4, need.Batch), need.Batch)
	t.Decode.Rows = t.Scores.At
	t.Decode.Columns = knots(append([]int64{16}, powers(256, 4, need.Context)...), up(need.Context))
	t.Prompt.Rows = knots(powers(16, 4, 512), min(512, up(need.Prompt+1)))
	t.Prompt.Columns = knots(append([]int64{0}, powers(512, 4, need.Prompt)...), up(need.Prompt))
	s.of = len(t.Tokens.At) + len(t.Scores.At) + len(t.Decode.Rows)*len(t.Decode.Columns) +
		len(t.Prompt.Rows)*len(t.Prompt.Columns)
	s.curve(&t.Tokens, func(n int64) serving.Cost {
		c := s.fastest(n, d.Layer)
		if count > 1 {
			seconds := s.group.Seconds(chips.AllReduce, n*d.ExchangeBytes())
			c.Ps += 2 * int64(math.Round((seconds+chip.LaunchSeconds)*1e12))
		}
		return serving.Cost{Ps: c.Ps * d.Layers, Nj: c.Nj * d.Layers}
	})
	s.curve(&t.Scores, func(n int64) serving.Cost {
		c := s.fastest(n, d.Head)
		if count > 1 {
			seconds := s.group.Seconds(chips.AllGather, n*d.ScoreBytes())
			c.Ps += int64(math.Round((seconds + chip.LaunchSeconds) * 1e12))
		}
		return c
	})
	attention := func(sequences, tokens, before int64) serving.Cost {
		c := s.run(sequences*d.KeyHeads(), "attention", func(batch int64) (*model.Graph, error) {
			return d.Attention(batch,
				tokens, before)
		})
		return serving.Cost{Ps: c.Ps * d.Layers, Nj: c.Nj * d.Layers}
	}
	s.grid(&t.Decode, func(sequences, keys int64) serving.Cost { return attention(sequences, 1, keys-1) })
	s.grid(&t.Prompt, func(tokens, before int64) serving.Cost { return attention(1, tokens, before) })
	return t, s.err
}

// powers lists first, first times by, ... below a limit.
func powers(first, by, below int64) (list []int64) {
	for n := first; n < below; n *= by {
		list = append(list, n)
	}
	return list
}

// knots are those before the last one, and it.
func knots(list []int64, last int64) []int64 {
	for len(list) > 0 && list[len(list)-1] >= last {
		list = list[:len(list)-1]
	}
	return append(list, last)
}

// servingParts simulates parts until one fails.
type servingParts struct {
	ctx      context.Context
	chip     *hardware.Spec
	recipe   scheduler.Recipe
	chips    int64
	group    chips.Group
	progress func(done, of int)
	done, of int
	err      error
}

// curve and grid let no cost be below that of less.
func (s *servingParts) curve(c *serving.Curve, cost func(int64) serving.Cost) {
	var least serving.Cost
	for _, n := range c.At {
		s.begin()
		least = most(least, cost(n))
		c.Cost = append(c.Cost, least)
	}
}

func (s *servingParts) grid(g *serving.Grid, cost func(row, column int64) serving.Cost) {
	for i, r := range g.Rows {
		g.Cost = append(g.Cost, nil)
		for j, c := range g.Columns {
			s.begin()
			x := cost(r, c)
			if i > 0 {
				x = most(x, g.Cost[i-1][j])
			}
			if j > 0 {
				x = most(x, g.Cost[i][j-1])
			}
			g.Cost[i] = append(g.Cost[i], x)
		}
	}
}

func most(a, b serving.Cost) serving.Cost {
	return serving.Cost{Ps: max(a.Ps, b.Ps), Nj: max(a.Nj, b.Nj)}
}

func (s *servingParts) begin() {
	if s.progress != nil && s.err == nil {
		s.progress(s.done, s.of)
	}
	s.done++
}

// fastest runs tokens on one cluster or over all, where they divide them.
func (s *servingParts) fastest(tokens int64, build func(batch, tokens int64) (*model.Graph, error)) serving.Cost {
	best := s.run(1, "products", func(batch int64) (*model.Graph, error) { return build(batch, tokens) })
	if n := int64(s.chip.Clusters); n > 1 && tokens%n == 0 {
		if c := s.run(n, "products", func(batch int64) (*model.Graph, error) {
			return build(batch,
				tokens/n)
		}); c.Ps < best.Ps {
			return c
		}
	}
	return best
}

// run is what a part takes on all chips: the time of one, the energy of all.
func (s *servingParts) run(batch int64, what string, build func(batch int64) (*model.Graph, error)) serving.Cost {
	if s.err != nil {
		return serving.Cost{}
	}
	net := network.Network{Name: what, Graph: func(batch int64) (*model.Graph, error) {
		return network.Simplified(build, batch)
	}}
	r, err := scheduler.Run(s.ctx, net, s.chip, batch, s.recipe, scheduler.Options{Figures: true})
	if err != nil {
		s.err = fmt.Errorf("%s of %d: %w", what, batch, err)
		return serving.Cost{}
	}
	c := serving.Cost{Ps: r.Sim.TotalPs}
	if e := r.Energy(); e != nil {
		c.Nj = int64(math.Round((e.Total() - e.Static) * float64(s.chips) * 1e9))
	}
	return c
}
