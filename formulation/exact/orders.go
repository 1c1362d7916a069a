package exact

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

var heaviestFirst = scheduler.Strategy{Name: "heavy", Description: "what frees most first, then what needs most",
	Decide: func(ctx context.Context, d *scheduler.Draft) error {
		if err := graphturbo.Algorithm3().Decide(ctx, d); err != nil {
			return err
		}
		p, _, err := OrderProblem(d.Schedule, d.Options)
		if err != nil {
			return err
		}
		g := ordering.NewGraph(p)
		ids, err := ordering.Order(g, ordering.Heavy)
		if err != nil {
			return err
		}
		for k, i := range ids {
			ids[k] = d.Instances.First[g.Refs[i][0]] + g.Refs[i][1]
		}
		reorder(d, ids, "heavy")
		return nil
	}}

var exactOrder = scheduler.Strategy{Name: "search", Description: "least traffic, by state-space search", Exact: true,
	Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastTraffic(ctx, d, "search") }}

var ilpOrder = scheduler.Strategy{Name: "ilp", Description: "least traffic, by integer program (HiGHS)",
	NeedsSolver: true, Exact: true,
	Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastTraffic(ctx, d, "ilp") }}

// searchStates bounds the search for an order, so that it ends anywhere at the same place.
const searchStates = 200_000

// leastTraffic is the order of least traffic by an exact method, if it finds one that is better than Algorithm 3's.
func leastTraffic(ctx context.Context, d *scheduler.Draft, method string) error {
	if err := graphturbo.Algorithm3().Decide(ctx, d); err != nil {
		return err
	}
	p, _, err := OrderProblem(d.Schedule, d.Options)
	if err != nil {
		return err
	}
	g := ordering.NewGraph(p)
	start := g.Obey(d.Order)
	posed := slices.Equal(start, d.Order) // else instances of the problem read more than those of the schedule
	given, err := ordering.Fixed("greedy", g, start, ordering.Traffic)
	if err != nil {
		return err
	}
	if !given.HasOrder() {
		start = nil // the memory plan spills more than the problem allows
	}
	var r *ordering.Result
	opts := ordering.Options{TimeLimit: d.Options.TimeLimit, Start: start, Solver: d.Options.Solver,
		Progress: d.Options.ReportTo("order")}
	if method == "ilp" {
		opts.WorkLimit = d.Options.WorkLimit
		r, err = ordering.CountingILP(ctx, p, ordering.Traffic, opts)
	} else {
		opts.TimeLimit = d.Options.SearchLimit()
		if !d.Options.TimeLimitOnly {
			opts.WorkLimit = searchStates
		}
		r, err = ordering.Search(ctx, p, ordering.Traffic, opts)
	}
	if err != nil {
		return err
	}
	if !r.HasOrder() {
		note := "no order was found"
		if r.Infeasible != nil {
			note = r.Infeasible.Error()
		}
		d.Solve("order", scheduler.Solved{Outcome: r.Outcome(), Unit: solve.BytesUnit, Note: note})
		return nil
	}
	d.Solve("order", scheduler.Solved{Outcome: r.Outcome(), Unit: solve.BytesUnit, Program: r.Effort})
	rules := graphturbo.Orders() // whose orders are simulated beside the exact one, where they cost nearly as little
	slices.Reverse(rules)
	rules[len(rules)-1] = heaviestFirst // in place of layer by layer
	for _, by := range rules {
		other, s := *d, *d.Schedule
		s.Costs = slices.Clip(s.Costs)
		if other.Schedule = &s; by.Decide(ctx, &other) != nil {
			continue
		}
		f, err := ordering.Fixed(by.Name, g, g.Obey(s.Order), ordering.Traffic)
		if err == nil && f.HasOrder() && f.Cost <= scheduler.PoolGap*r.Cost {
			d.Also(&s)
		}
	}
	if better := orderOf(d.Schedule, r.Steps); !given.HasOrder() || r.Cost < given.Cost &&
		(posed || orderCost(d, better).Less(orderCost(d, d.Order))) {
		reorder(d, better, method)
	}
	return nil
}

// reorder takes an order by the strategy of a name.
func reorder(d *scheduler.Draft, order []int, name string) {
	d.Order, d.OrderName = order, name
	d.Costs = append(d.Costs, schedule.NamedCost{Name: name, Cost: orderCost(d, order)})
}

func orderCost(d *scheduler.Draft, order []int) schedule.OrderCost {
	return schedule.EvaluateOrder(schedule.OrderItems(d.Schedule, d.Machine), order, d.Machine.L1Bytes)
}

// orderOf turns the steps of an answer to OrderProblem into an order of instances.
func orderOf(s *schedule.Schedule, steps []ordering.Step) []int {
	var order []int
	for _, st := range steps {
		order = append(order, s.Instances.First[st.Run[0]]+st.Run[1])
	}
	return order
}

// OrderProblem is the instance-ordering problem that a schedule's groups, factors and dependencies give, on the L1s of
// a cluster together. A byte moved costs 1 either way.
//
// The problem has one size per sub-graph and one range per pair of instances. So
// the largest instance sets the workspace, a group's outputs count as one output,
// and a read with gaps counts the gaps as well; the notes say where that matters.
//
// An instance that passes the capacity passes in tiles: see [passInTiles].
func OrderProblem(s *schedule.Schedule, opt scheduler.Options) (p *ordering.Problem, notes []string, err error) {
	p, _, notes, err = orderProblem(s, opt)
	return p, notes, err
}

func orderProblem(s *schedule.Schedule, opt scheduler.Options) (p *ordering.Problem, tiles tiledGroups,
	notes []string, err error) {
	// The rates weigh only OrderItem.Seconds, which the problem does not have.
	items := schedule.OrderItems(s, schedule.SplitOptions{InPlace: opt.InPlace, Counting: s.Counting, MACsPerSecond: 1,
		VectorOpsPerSecond: 1})
	p = &ordering.Problem{
		Name:             s.Graph.Name,
		CapacityBytes:    schedule.AllDataBytes(s.Spec),
		StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []ordering.Subgraph{}, Arcs: []ordering.Arc{},
	}
	simplified := map[string][]string{} // by how, the groups
	note := func(how, group string) { simplified[how] = append(simplified[how], group) }
	ig := s.Instances
	for k, sg := range s.Grouping.Groups {
		first, n := ig.First[k], int(sg.Factor())
		o := ordering.Subgraph{Name: sg.Name, Instances: n}
		uneven := false
		for i := first; i < first+n; i++ {
			uneven = uneven || items[i].OutputBytes != items[first].OutputBytes
			o.OutputBytes = max(o.OutputBytes, items[i].OutputBytes)
			o.WorkspaceBytes = max(o.WorkspaceBytes, items[i].WorkspaceBytes)
		}
		if uneven {
			note("instances differ in their outputs, and all count as the largest", sg.Name)
		}
		p.Subgraphs = append(p.Subgraphs, o)
		// By producer: the hull of what each instance reads of it.
		reads := make([][][2]int, k)
		for q := range n {
			for _, i := range items[first+q].Reads {
				from := ig.Instances[i].Group
				if reads[from] == nil {
					reads[from] = make([][2]int, n)
				}
				r, at := &reads[from][q], int(ig.Instances[i].Index)
				switch {
				case r[1] == 0:
					*r = [2]int{at, at + 1}
				default:
					if at > r[1] {
						note("instances read others with gaps, which count as read", sg.Name)
					}
					*r = [2]int{min(r[0], at), max(r[1], at+1)}
				}
			}
		}
		for from, ranges := range reads {
			if ranges != nil {
				ranges, wider := monotone(ranges)
				if wider {
					note("instances read others in another order than their own, and what lies between counts as read", sg.Name)
				}
				p.Arcs = append(p.Arcs, ordering.Arc{From: from, To: k, Reads: ranges})
			}
		}
	}
	tiles = passInTiles(p)
	for k, times := range tiles.times {
		if times > 1 {
			tiles.again[k] = (times - 1) * parameterBytes(s, k)
			note("instances are larger than the L1s, and pass in tiles", p.Subgraphs[k].Name)
		}
		if tiles.streamed[k] > 0 {
			note("outputs stream through the LLB, whatever the order", p.Subgraphs[k].Name)
		}
	}
	for _, how := range slices.Sorted(maps.Keys(simplified)) {
		groups := slices.Compact(simplified[how])
		notes = append(notes, fmt.Sprintf("%s: %d of %d groups, first %q", how, len(groups), len(p.Subgraphs), groups[0]))
	}
	if err := p.Validate(); err != nil {
		return nil, tiles, nil, fmt.Errorf("%s gives no ordering problem: %w", s.Graph.Name, err)
	}
	return p, tiles, notes, nil
}

// monotone widens ranges, where need be, until neither starts nor ends decrease, and gives some to instances that read
// nothing: empty ones before the first and after the last that reads; between them there may be no room for an empty
// one, so such an instance counts as reading what its forerunner reads. It reports whether a range got wider.
func monotone(ranges [][2]int) ([][2]int, bool) {
	last := len(ranges) - 1
	for ranges[last][1] == 0 {
		last--
	}
	wider, least := false, ranges[last][0]
	for q := last; q >= 0; q-- {
		if r := &ranges[q]; r[1] > 0 {
			wider = wider || r[0] > least
			least = min(least, r[0])
			r[0] = least
		}
	}
	for q := 1; q < len(ranges); q++ {
		switch end := ranges[q-1][1]; {
		case ranges[q][1] > 0:
			wider = wider || ranges[q][1] < end
			ranges[q][1] = max(ranges[q][1], end)
		case q > last:
			ranges[q] = [2]int{end, end}
		default:
			ranges[q] = ranges[q-1]
		}
	}
	return ranges, wider
}
