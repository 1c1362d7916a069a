package scheduler

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/heuristics/astitch"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

var plainBinding = Strategy{Name: "plain", Description: "the outermost dimensions",
	Decide: func(_ context.Context, d *Draft) error {
		d.Bindings, d.Scopes = graphturbo.PlainBindGrid(d.Graph, d.Grouping, d.Instances, schedule.Grid(d.Spec), d.UnevenCores)
		return nil
	}}

var blockLocality = Strategy{Name: "block-local", Description: "plain; only what a core itself reads again stays with it",
	Decide: func(ctx context.Context, d *Draft) error {
		err := plainBinding.Decide(ctx, d)
		d.Scopes = astitch.Scopes(len(d.Scopes))
		return err
	}, Refine: astitch.Localize}

var algorithm4 = Strategy{Name: "alg4", Alias: "greedy", Description: "Algorithm 4 of the paper, an instance at a time",
	Decide: func(_ context.Context, d *Draft) error {
		d.Bindings, d.Scopes = graphturbo.BindGrid(d.Graph, d.Grouping, d.Instances, d.Order, schedule.Grid(d.Spec), d.UnevenCores)
		return nil
	}}

var exactBinding = Strategy{Name: "search", Description: "least cost, by dynamic programming", Exact: true,
	Decide: func(ctx context.Context, d *Draft) error { return d.leastBinding(ctx, "search") }}

var ilpBinding = Strategy{Name: "ilp", Description: "least cost, by integer program (HiGHS)", NeedsSolver: true, Exact: true,
	Decide: func(ctx context.Context, d *Draft) error { return d.leastBinding(ctx, "ilp") }}

// solverMemory keeps an integer program below what a small machine has.
const solverMemory = 4 << 30

// bindingOptions are those of a binding problem.
func (o Options) bindingOptions(n *binding.Network) binding.Options {
	return binding.Options{TimeLimit: o.TimeLimit, MemoryBytes: solverMemory, Start: n.Given, Solver: o.Solver, Progress: o.report("bind")}
}

// leastBinding gives a draft with an order the bindings and scopes of least cost.
func (d *Draft) leastBinding(ctx context.Context, method string) error {
	if err := algorithm4.Decide(ctx, d); err != nil {
		return err
	}
	n, err := d.Options.shared.bindings(ctx, d)
	if err != nil {
		return err
	}
	var r *binding.Result
	if method == "ilp" {
		r, err = binding.ILP(ctx, n.Problem, binding.ILPOptions{Options: d.Options.bindingOptions(n)})
	} else {
		opts := binding.SearchOptions{Options: d.Options.bindingOptions(n), NoBranch: !d.Options.TimeLimitOnly}
		opts.TimeLimit = d.Options.searchLimit()
		r, err = binding.Search(ctx, n.Problem, opts)
	}
	if err != nil {
		return err
	}
	d.Bindings, d.Scopes = n.Decode(r.Choice)
	d.solve("bind", secondsUnit, r.Outcome(), "")
	return nil
}

var joins = Strategy{Name: "derived", Description: "from bindings and scopes, §3.5 of the paper",
	Decide: func(_ context.Context, d *Draft) error {
		if d.Between != schedule.LB {
			for i := range d.Scopes {
				d.Scopes[i] = d.Between
			}
		}
		d.Joins = graphturbo.Join(d.Graph, d.Grouping, d.Instances, d.Order, d.Bindings, d.Scopes, d.UnevenCores)
		if err := d.BuildSteps(d.Outputs); err != nil {
			return err
		}
		if d.refine != nil {
			d.refine(d.Schedule)
		}
		measureJoins(d.Schedule)
		return nil
	}}

func checkBindings(s *schedule.Schedule) error {
	n := len(s.Instances.Instances)
	if len(s.Bindings) != n || len(s.Scopes) != n {
		return fmt.Errorf("%d bindings and %d scopes, expected %d, the number of instances", len(s.Bindings), len(s.Scopes), n)
	}
	cores := schedule.CoresWithLB(s.Spec)
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		out := sg.Outputs[0]
		op := s.Graph.Op(s.Graph.Tensor(out).Producer)
		forbidden := s.Graph.Sequential(op, slices.Index(op.Outputs, out))
		if err := schedule.CheckBinding(inst.Regions[out], s.Bindings[i], forbidden, cores); err != nil {
			return fmt.Errorf("instance %d of %s: %w", inst.Index, sg.Name, err)
		}
		if s.Scopes[i] > schedule.DDR {
			return fmt.Errorf("instance %d of %s: scope %d, expected LB, GB or DDR", inst.Index, sg.Name, s.Scopes[i])
		}
	}
	return nil
}

// measureJoins sets the bytes that redistributions move from what the steps read
// of other cores.
func measureJoins(s *schedule.Schedule) {
	type key struct {
		consumer int
		tensor   model.TensorID
	}
	remote := map[key]int64{}
	for i := range s.Steps {
		st := &s.Steps[i]
		for _, r := range st.Reads {
			if v := &s.Values[r.Value]; v.Instance >= 0 && v.Instance != st.Instance {
				remote[key{st.Instance, v.Tensor}] += r.RemoteBytes
			}
		}
	}
	for i := range s.Joins {
		if j := &s.Joins[i]; j.Kind == schedule.Redistribute {
			j.Bytes = remote[key{j.Consumer, j.Tensor}]
		}
	}
}
