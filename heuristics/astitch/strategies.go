package astitch

import (
	"context"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// Stitched makes kernels of TVM's: those without a matrix operator are stitched. kernels has TVM's, in an execution
// order; nil: a layer is one.
func Stitched(name, description string,
	kernels func(g *model.Graph, order []model.OpID) []schedule.Layer) scheduler.Strategy {
	return scheduler.Strategy{Name: name, Description: description, Sets: []scheduler.Pick{{Stage: "split", Strategy: "none"}},
		Decide: func(_ context.Context, d *scheduler.Draft) error {
			order := schedule.ExecutionOrder(d.Graph)
			var from []schedule.Layer
			if kernels != nil {
				from = kernels(d.Graph, order)
			}
			plan := Group(d.Graph, order, from, d.Machine.Cores)
			d.Grouping, d.Layers = plan.Grouping, plan.Layers
			return nil
		}}
}

// BlockLocal is the strategy of row bind with AStitch's block locality, upon bindings by another strategy.
func BlockLocal(plain scheduler.Strategy) scheduler.Strategy {
	return scheduler.Strategy{Name: "block-local",
		Description: "plain; only what a core itself reads again stays with it",
		Decide: func(ctx context.Context, d *scheduler.Draft) error {
			err := plain.Decide(ctx, d)
			d.Scopes = Scopes(len(d.Scopes))
			return err
		}, Refine: Localize}
}
