package recipes

import (
	"context"
	"errors"
	"slices"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/heuristics/astitch"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/heuristics/tiles"
	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// table is all that the engine is handed: the variants, and the methods that they name.
func table() scheduler.Table {
	return scheduler.Table{Recipes: Known(), Greedy: Greedy, Strategies: strategies(),
		Orders: []string{"alg3", "dfs", "bfs", "layer-by-layer", "chunk-by-chunk"},
		Moves:  slices.Concat(exact.Moves(), tiles.Moves()),
		Join: func(s *schedule.Schedule) []schedule.Join {
			return graphturbo.Join(s.Graph, s.Grouping, s.Instances, s.Order, s.Bindings, s.Scopes, s.Slices)
		},
		Place: func(ctx context.Context, s *schedule.Schedule, how scheduler.Placing) error {
			return graphturbo.Place(s, how, exact.Packer(ctx))
		},
		Apart: graphturbo.Apart}
}

// strategies lists the ways to decide the stages, the first by default: greedy ones of heuristics, then exact ones of
// formulation.
func strategies() map[string][]scheduler.Strategy {
	plain := graphturbo.PlainBinding()
	groups := slices.Concat([]scheduler.Strategy{tvm.Layers, tvm.FusedOps, tvm.Unfused, tvm.ConvolutionPairs,
		astitch.Stitched("stitch", "memory-intensive operators together, as AStitch", nil),
		astitch.Stitched("stitch-ops", "stitch, of the kernels of fuse-ops", tvm.FuseOps)}, graphturbo.Groups())
	for i := range groups { // a variant that gets them has the network's graph unless another is asked for
		groups[i].Sets = append(slices.Clone(groups[i].Sets), scheduler.Pick{Stage: "rewrite", Strategy: "as-is"})
	}
	all := map[string][]scheduler.Strategy{
		"group": append(groups, tiles.Groups()...),
		"split": slices.Concat(graphturbo.Splits(), exact.Splits()),
		"kinds": slices.Concat([]scheduler.Strategy{tiles.GreedyKinds()}, exact.Kinds()),
		"order": slices.Concat(graphturbo.Orders(), []scheduler.Strategy{exact.Heavy(), graphturbo.Algorithm3()},
			exact.Orders()),
		"bind": slices.Concat([]scheduler.Strategy{plain, tiles.EvenBinding(plain), tiles.HeadsBinding(plain),
			astitch.BlockLocal(plain), graphturbo.Algorithm4()}, exact.Bindings()),
		"spill": slices.Concat(graphturbo.Spills(), exact.Spills()),
		"nest": {
			{Name: "rules", Description: "by the kernel generator's rules",
				Decide: func(_ context.Context, d *scheduler.Draft) error {
					d.FitAttentions()
					return nil
				}},
			{Name: "ansor", Description: "searched by Ansor, or those of a file of tuned kernels", Trials: true,
				Decide: func(ctx context.Context, d *scheduler.Draft) error {
					if searchNests == nil {
						return errors.New("nest is \"ansor\", which this program does not have: expected package systems in it")
					}
					return searchNests(ctx, d)
				}},
			tiles.Nests(),
		},
	}
	for stage, more := range own.strategies {
		all[stage] = append(all[stage], more...)
	}
	return all
}

// searchNests decides for strategy ansor; nil: it is not part of the program.
var searchNests func(context.Context, *scheduler.Draft) error

// SetNestSearch sets the function of strategy ansor of row nest. Package systems calls it.
func SetNestSearch(decide func(context.Context, *scheduler.Draft) error) { searchNests = decide }
