package llm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm/sharding"
)

// A Sharded is a network whose operators are divided over chips. Times are of a batch.
type Sharded struct {
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	DType    string `json:"dtype"` // for the caller to set
	Chips    int64  `json:"chips"`
	Batch    int64  `json:"batch"`
	Variant  string `json:"variant"` // that schedules the pieces
	Method   string `json:"method"`

	// Of the formulas of package sharding, in seconds.
	Status    string  `json:"status"`
	Stop      string  `json:"stop"`
	Objective float64 `json:"objective"`
	Bound     float64 `json:"bound"`

	// Seconds are simulated: the pieces of a chip, one after the other, and the collectives
	// between them by their closed form.
	Seconds           float64 `json:"latency_s"`
	CollectiveSeconds float64 `json:"collective_s"`
	// Overlapped is simulated, too: all pieces as one program of a chip, whose collectives let loads of weights and of
	// the network's inputs go on; nil: not asked for, or no such program was found. Chunk is of a cluster's share of
	// the batch.
	Overlapped *float64 `json:"overlapped_latency_s,omitempty"`
	Chunk      int64    `json:"chunk,omitempty"`
	// OneChip is the whole network on one chip, in seconds; BatchDivided with a share of the batch
	// on each of as many chips, nil where they can't have equal shares.
	OneChip      float64  `json:"one_chip_latency_s"`
	BatchDivided *float64 `json:"batch_divided_latency_s"`

	Pieces    int             `json:"pieces"`          // between collectives
	Distinct  int             `json:"distinct_pieces"` // of them, which are simulated
	Moves     []sharding.Move `json:"collectives"`
	Operators []ShardedOp     `json:"operators"`
	Notes     []string        `json:"notes"`
}

// A ShardedOp is the division of an operator: "whole", "cut D" along dimension D of its outputs,
// or "partial" along a reduction.
type ShardedOp struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Layout string `json:"layout"`
}

// Shard divides the operators of a network over the chips of a machine by methods of
// [sharding.Methods], and simulates what a chip then does by a recipe, piece by piece and, if overlap is set, as one
// program.
func Shard(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, methods []string,
	recipe scheduler.Recipe, overlap bool, opts binding.Options, run scheduler.Options) ([]Sharded, error) {
	if machine.Chips == nil {
		return nil, fmt.Errorf("%s is one chip, expected a machine of several", machine.Name)
	}
	chip := machine.Clone()
	chip.Chips = nil
	group := chips.GroupOf(machine)
	g, err := net.Graph(batch)
	if err != nil {
		return nil, err
	}
	other, err := net.Graph(batch + 1)
	if err != nil {
		return nil, err
	}
	p, err := sharding.New(g, other, chip, group)
	if err != nil {
		return nil, err
	}
	run.Figures = true
	known := map[string]float64{}
	seconds := func(net network.Network, batch int64) (float64, error) {
		r, err := scheduler.Run(ctx, net, chip, batch, recipe, run)
		if err != nil {
			return 0, err
		}
		return r.LatencySeconds(), nil
	}
	a := Sharded{Model: net.Name, Hardware: machine.Name, Chips: group.Chips, Batch: batch,
		Variant: recipe.Name, Notes: []string{}}
	if net.Assumed != "" {
		a.Notes = append(a.Notes, "assumed: "+net.Assumed)
	}
	if a.OneChip, err = seconds(net, batch); err != nil {
		return nil, fmt.Errorf("on one chip: %w", err)
	}
	if batch%group.Chips == 0 {
		share, err := seconds(net, batch/group.Chips)
		if err != nil {
			return nil, fmt.Errorf("with a share of the batch: %w", err)
		}
		a.BatchDivided = &share
	}
	var list []Sharded
	for _, method := range methods {
		plan, err := p.Solve(ctx, method, opts)
		if err != nil {
			return nil, err
		}
		if plan.Choice == nil {
			return nil, errors.Join(errors.New("no division of the operators was found"), ctx.Err())
		}
		b := a
		b.Method, b.Status, b.Stop, b.Objective, b.Bound = method, plan.Status.String(), plan.Stop.String(),
			plan.Objective, plan.Bound
		for i, op := range g.Ops {
			b.Operators = append(b.Operators, ShardedOp{op.Name, string(op.Kind), plan.Options[i].Out[0].String()})
		}
		pieces, moves, err := p.Pieces(plan, g, 0)
		if err != nil {
			return nil, err
		}
		b.Moves = append([]sharding.Move{}, moves...)
		for _, m := range moves {
			b.CollectiveSeconds += m.Seconds
		}
		b.Seconds, b.Pieces = b.CollectiveSeconds, len(pieces)
		c := &chipProgram{net: net, chip: chip, batch: batch, p: p, plan: plan}
		if err := c.divide(); err != nil {
			return nil, err
		}
		for k, first := range c.like {
			key := schedulefile.GraphFingerprint(pieces[k].Graph)
			if first == k {
				b.Distinct++
			}
			if _, ok := known[key]; !ok {
				if known[key], err = seconds(c.network(k), batch); err != nil {
					return nil, fmt.Errorf("piece %d: %w", k, err)
				}
			}
			b.Seconds += known[key]
		}
		if overlap {
			if err := b.overlap(ctx, c, recipe, run); err != nil {
				return nil, err
			}
		}
		list = append(list, b)
	}
	return list, nil
}

// overlap simulates all pieces as one program.
func (a *Sharded) overlap(ctx context.Context, c *chipProgram, recipe scheduler.Recipe, run scheduler.Options) error {
	s, chunk, err := c.fastest(ctx, recipe, run)
	if err != nil {
		return fmt.Errorf("all pieces as one program: %w", err)
	}
	if !math.IsInf(s, 1) {
		a.Overlapped, a.Chunk = &s, chunk
	}
	return nil
}

// A chipProgram is the pieces of a chip on their way into one program.
type chipProgram struct {
	net    network.Network
	chip   *hardware.Spec
	batch  int64
	p      *sharding.Problem
	plan   *sharding.Plan
	pieces []sharding.Piece
	like   []int // the first piece with the same graph
}

// divide finds the pieces.
func (c *chipProgram) divide() error {
	g, err := c.net.Graph(c.batch)
	if err != nil {
		return err
	}
	if c.pieces, _, err = c.p.Pieces(c.plan, g, 0); err != nil {
		return err
	}
	first := map[string]int{}
	for k := range c.pieces {
		key := schedulefile.GraphFingerprint(c.pieces[k].Graph)
		if _, ok := first[key]; !ok {
			first[key] = k
		}
		c.like = append(c.like, first[key])
	}
	return nil
}

// network is a piece at any batch size.
func (c *chipProgram) network(piece int) network.Network {
	return network.Network{Name: fmt.Sprintf("%s, piece %d", c.net.Name, piece),
		Graph: func(batch int64) (*model.Graph, error) {
			g, err := c.net.Graph(batch)
			if err != nil {
				return nil, err
			}
			pieces, _, err := c.p.Pieces(c.plan, g, 0)
			if err != nil {
				return nil, err
			}
			pieces[piece].Graph.Remember()
			return pieces[piece].Graph, nil
		}}
}

// fastest tries each divisor of a cluster's share as chunk, unless run says one, and a recipe that takes the fastest
// of several with that for each piece and with each of them for all. Where none can make a program, it takes no end.
func (c *chipProgram) fastest(ctx context.Context, recipe scheduler.Recipe, run scheduler.Options) (seconds float64,
	chunk int64, err error) {
	recipes, err := recipe.Alternatives(run)
	if err != nil {
		return 0, 0, err
	}
	spec, err := run.Level.Machine(c.chip)
	if err != nil {
		return 0, 0, err
	}
	share := schedule.Shares(c.batch, spec.Clusters)[0]
	chunks := []int64{run.Chunk}
	if run.Chunk == 0 {
		chunks = schedule.Divisors(share, scheduler.MaxTunedChunk)
	}
	// Clusters exchange what is of their own elements, each as long as if all had as many at once.
	g, err := c.net.Graph(share * min(c.batch, int64(spec.Clusters)))
	if err != nil {
		return 0, 0, err
	}
	_, moves, err := c.p.Pieces(c.plan, g, 0)
	if err != nil {
		return 0, 0, err
	}
	candidates := []scheduler.Recipe{recipe}
	if len(recipes) > 1 {
		for _, r := range recipes {
			r.Fallback = nil
			candidates = append(candidates, r)
		}
	}
	seconds = math.Inf(1)
	for _, run.Chunk = range chunks {
		for _, r := range candidates {
			s, err := c.simulate(ctx, r, run, moves)
			if err != nil && (ctx.Err() != nil || !scheduler.TooLarge(err)) {
				return 0, 0, err
			}
			if err == nil && s < seconds {
				seconds, chunk = s, run.Chunk
			}
		}
	}
	return seconds, chunk, nil
}

// idle counts the clusters without work.
func idle(plans [][]lower.Segment) (n int) {
	for _, plan := range plans {
		if len(plan) == 0 {
			n++
		}
	}
	return n
}

// simulate makes the program of all pieces by a recipe, with the collectives in between, and simulates it. It takes
// no end where the kernel generator has other settings for one piece than for another.
func (c *chipProgram) simulate(ctx context.Context, r scheduler.Recipe, run scheduler.Options, moves []sharding.Move) (
	seconds float64, err error) {
	made := make([]*scheduler.Result, len(c.pieces))
	var whole scheduler.Result
	for k, first := range c.like {
		if first == k {
			if made[k], err = scheduler.Run(ctx, c.network(k), c.chip, c.batch, r, run); err != nil {
				return 0, fmt.Errorf("piece %d: %w", k, err)
			}
		}
		made[k] = made[first]
		if k == 0 {
			whole = *made[0]
			whole.Source, whole.Plans = c.net.Name, make([][]lower.Segment, len(whole.Plans))
		} else if made[k].Lower.Generator != whole.Lower.Generator {
			return math.Inf(1), nil
		}
		x := &lower.Exchange{Late: c.pieces[k].Late}
		for _, m := range moves {
			if m.Before == k {
				x.Seconds += m.Seconds
				x.Bytes += m.Traffic
			}
		}
		if working := int64(len(made[k].Plans) - idle(made[k].Plans)); working > 0 { // each cluster has a part
			x.Bytes = (x.Bytes + working - 1) / working
		}
		for n, plan := range made[k].Plans {
			plan = slices.Clone(plan)
			if k > 0 && len(plan) > 0 {
				plan[0].Exchange = x
			}
			whole.Plans[n] = append(whole.Plans[n], plan...)
		}
	}
	if err := whole.Simulate(ctx); err != nil {
		return 0, err
	}
	seconds = whole.LatencySeconds()
	for _, m := range moves {
		if m.Before == len(c.pieces) { // nothing follows
			seconds += m.Seconds
		}
	}
	return seconds, nil
}
