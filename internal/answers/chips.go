package answers

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/sharding"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/pipeline"
	"github.com/dsasched/dsasched/internal/schedulefile"
	"github.com/dsasched/dsasched/internal/search"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
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
// [sharding.Methods], and simulates what a chip then does by a recipe.
func Shard(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, methods []string,
	recipe pipeline.Recipe,
	opts binding.Options, run pipeline.Options) ([]Sharded, error) {
	if machine.Chips == nil {
		return nil, fmt.Errorf("%s is one chip, expected a machine of several", machine.Name)
	}
	chip := machine.Clone()
	chip.Chips = nil
	group := sharding.GroupOf(machine)
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
		r, err := search.Run(ctx, net, chip, batch, recipe, run)
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
		distinct := map[string]bool{}
		for k := range pieces {
			key := schedulefile.GraphFingerprint(pieces[k].Graph)
			distinct[key] = true
			if _, ok := known[key]; !ok {
				piece := network.Network{Name: fmt.Sprintf("%s, piece %d", net.Name, k),
					Graph: func(batch int64) (*model.Graph, error) {
						return graphOf(p, plan, net, batch, k)
					}}
				if known[key], err = seconds(piece, batch); err != nil {
					return nil, fmt.Errorf("piece %d: %w", k, err)
				}
			}
			b.Seconds += known[key]
		}
		b.Distinct = len(distinct)
		list = append(list, b)
	}
	return list, nil
}

// graphOf is a piece at a batch size.
func graphOf(p *sharding.Problem, plan *sharding.Plan, net network.Network, batch int64, piece int) (
	*model.Graph, error) {
	g, err := net.Graph(batch)
	if err != nil {
		return nil, err
	}
	pieces, _, err := p.Pieces(plan, g, 0)
	if err != nil {
		return nil, err
	}
	pieces[piece].Graph.Remember()
	return pieces[piece].Graph, nil
}
