package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/model/schedule"
)

// sequence is the order of the instances.
type sequence struct {
	strategy Strategy // none: the recipe's, Algorithm 3 in the place of an exact one
	order    []int    // nil: by the strategy
	name     string   // of the order
}

func takeOrder(d *Draft, _ bool) Decision { return sequence{order: d.Order, name: d.OrderName} }

// Stage names the row.
func (x sequence) Stage() string { return "order" }

// Apply orders the instances.
func (x sequence) Apply(ctx context.Context, d *Draft) error {
	if x.order != nil {
		d.Order, d.OrderName = x.order, x.name
		return nil
	}
	by := x.strategy
	if by.Decide == nil {
		if by = d.Recipe.at("order"); by.Exact {
			by = algorithm3
		}
	}
	return by.Decide(ctx, d)
}

// Key has the order, or who makes it.
func (x sequence) Key(b *Key, _ *Decisions) {
	b.Add(int64(len(x.order)))
	for _, id := range x.order {
		b.Add(int64(id))
	}
	b.Text(x.strategy.Name)
}

// After drops the order unless it is of the same instances all the same.
func (x sequence) After(changed string, _, _ *Decisions) Decision {
	if changed != "layers" && changed != "outputs" {
		x.order = nil
	}
	return x
}

func (x sequence) extend(*extension) Decision {
	x.order = nil
	return x
}

// Orders lists the rules by which a searched schedule may order instances: the recipe's own, if it is a caller's,
// first.
func (p *Decisions) Orders() []Strategy {
	list := []Strategy{algorithm3, depthFirst, BreadthFirst, layerByLayer, chunkByChunk}
	if own, ok := p.Recipe.own["order"]; ok {
		list = append([]Strategy{own}, list...)
	}
	return list
}

var orderMoves = []Move{
	{"order", 1, (*Site).moveOrder},
	{"position", 1, (*Site).movePosition},
}

func (a *Site) moveOrder() *Decisions {
	orders := a.Orders()
	return a.with(sequence{strategy: orders[a.Rand.IntN(len(orders))]})
}

// movePosition lets an instance run sooner or later, as far as what it reads and who reads
// it allow.
func (a *Site) movePosition() *Decisions {
	made := a.Schedule
	from := a.Rand.IntN(len(made.Order))
	id := made.Order[from]
	at := make([]int, len(made.Order))
	for i, x := range made.Order {
		at[x] = i
	}
	first, last := 0, len(made.Order)-1
	for _, d := range made.Instances.Instances[id].Deps {
		first = max(first, at[d.From]+1)
	}
	for _, c := range made.Instances.Consumers[id] {
		last = min(last, at[c]-1)
	}
	to := first + a.Rand.IntN(last-first+1)
	if to == from {
		return nil
	}
	x := of[sequence](a.Decisions)
	x.order, x.name = slices.Insert(slices.Delete(slices.Clone(made.Order), from, from+1), to, id), "best"
	return a.with(x)
}

// fixedOrder is a strategy that looks at groups and instances only.
func fixedOrder(name, description, orderName string, order func(*schedule.Schedule) []int) Strategy {
	return Strategy{Name: name, Description: description, Decide: func(_ context.Context, d *Draft) error {
		d.Order, d.OrderName = order(d.Schedule), orderName
		return nil
	}}
}

var (
	layerByLayer = fixedOrder("layer-by-layer", "all instances of a group before the next group", "groups",
		func(s *schedule.Schedule) []int {
			order := make([]int, len(s.Instances.Instances))
			for i := range order {
				order[i] = i
			}
			return order
		})
	chunkByChunk = fixedOrder("chunk-by-chunk", "an instance of every group before the next ones", "chunks",
		func(s *schedule.Schedule) []int {
			return chunkOrder(s.Grouping, s.Instances)
		})
	// BreadthFirst runs instances by their distance from the inputs.
	BreadthFirst = fixedOrder("bfs", "breadth first", "bfs",
		func(s *schedule.Schedule) []int { return graphturbo.BFS(s.Instances) })
	depthFirst = fixedOrder("dfs", "depth first", "dfs",
		func(s *schedule.Schedule) []int { return graphturbo.DFS(s.Instances) })
)

var algorithm3 = Strategy{Name: "alg3", Alias: "greedy",
	Description: "Algorithm 3 of the paper: the better of bfs and dfs",
	Decide: func(_ context.Context, d *Draft) error {
		d.Order, d.OrderName, d.Costs = graphturbo.Order(d.Instances, OrderItems(d.Schedule, d.Machine), d.Machine.LBBytes)
		return nil
	}}

var heaviestFirst = Strategy{Name: "heavy", Description: "what frees most first, then what needs most",
	Decide: func(ctx context.Context, d *Draft) error {
		if err := algorithm3.Decide(ctx, d); err != nil {
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
		order := make([]int, len(ids))
		for k, i := range ids {
			order[k] = d.Instances.First[g.Refs[i][0]] + g.Refs[i][1]
		}
		d.reorder(order, "heavy")
		return nil
	}}

var exactOrder = Strategy{Name: "search", Description: "least traffic, by state-space search", Exact: true,
	Decide: func(ctx context.Context, d *Draft) error { return d.leastTraffic(ctx, "search") }}

var ilpOrder = Strategy{Name: "ilp", Description: "least traffic, by integer program (HiGHS)", NeedsSolver: true,
	Exact:  true,
	Decide: func(ctx context.Context, d *Draft) error { return d.leastTraffic(ctx, "ilp") }}

// searchStates bounds the search for an order, so that it ends anywhere at the same
// place.
const searchStates = 200_000

// leastTraffic is the order of least traffic by an exact method, if it finds one that
// is better than Algorithm 3's.
func (d *Draft) leastTraffic(ctx context.Context, method string) error {
	if err := algorithm3.Decide(ctx, d); err != nil {
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
		opts.TimeLimit = d.Options.searchLimit()
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
		d.solve("order", BytesUnit, r.Outcome(), note)
		return nil
	}
	d.solve("order", BytesUnit, r.Outcome(), "")
	for _, by := range []Strategy{depthFirst, BreadthFirst, chunkByChunk, heaviestFirst} {
		other := *d
		s := *d.Schedule
		s.Costs = slices.Clip(s.Costs)
		if other.Schedule = &s; by.Decide(ctx, &other) != nil {
			continue
		}
		f, err := ordering.Fixed(by.Name, g, g.Obey(s.Order), ordering.Traffic)
		if err == nil && f.HasOrder() && f.Cost <= poolGap*r.Cost {
			d.alternatives = append(d.alternatives, &s)
		}
	}
	if better := orderOf(d.Schedule, r.Steps); !given.HasOrder() || r.Cost < given.Cost &&
		(posed || d.orderCost(better).Less(d.orderCost(d.Order))) {
		d.reorder(better, method)
	}
	return nil
}

// reorder takes an order by the strategy of a name.
func (d *Draft) reorder(order []int, name string) {
	d.Order, d.OrderName = order, name
	d.Costs = append(d.Costs, schedule.NamedCost{Name: name, Cost: d.orderCost(order)})
}

func (d *Draft) orderCost(order []int) schedule.OrderCost {
	return schedule.EvaluateOrder(OrderItems(d.Schedule, d.Machine), order, d.Machine.LBBytes)
}

// orderOf turns the steps of an answer to OrderProblem into an order of instances.
func orderOf(s *schedule.Schedule, steps []ordering.Step) []int {
	var order []int
	for _, st := range steps {
		order = append(order, s.Instances.First[st.Run[0]]+st.Run[1])
	}
	return order
}

// chunkOrder runs instance q of every group before instance q+1 of any, as far as
// dependencies allow.
func chunkOrder(gr *schedule.Grouping, ig *schedule.InstanceGraph) []int {
	most := int64(1)
	for _, sg := range gr.Groups {
		most = max(most, sg.Factor())
	}
	keys := make([][3]int64, len(ig.Instances)) // chunk, group and index
	ready := heap.Of(func(a, b int) bool { return slices.Compare(keys[a][:], keys[b][:]) < 0 })
	indegree := make([]int, len(ig.Instances))
	for i, inst := range ig.Instances {
		keys[i] = [3]int64{inst.Index * most / gr.Groups[inst.Group].Factor(), int64(inst.Group), inst.Index}
		for _, c := range ig.Consumers[i] {
			indegree[c]++
		}
	}
	for i, n := range indegree {
		if n == 0 {
			ready.Push(i)
		}
	}
	var order []int
	for ready.Len() > 0 {
		id := ready.Pop()
		order = append(order, id)
		for _, c := range ig.Consumers[id] {
			if indegree[c]--; indegree[c] == 0 {
				ready.Push(c)
			}
		}
	}
	return order
}

// OrderItems describes the instances to the ordering problem.
func OrderItems(s *schedule.Schedule, split graphturbo.SplitOptions) []schedule.OrderItem {
	g := s.Graph
	items := make([]schedule.OrderItem, len(s.Instances.Instances))
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		it := &items[i]
		for _, o := range sg.Outputs {
			it.OutputBytes += g.Tensor(o).DType.Bytes(inst.Regions[o].Elements())
		}
		reads := int64(0)
		for _, d := range inst.Deps {
			if n := len(it.Reads); n == 0 || it.Reads[n-1] != d.From {
				it.Reads = append(it.Reads, d.From)
			}
			reads += d.Bytes
		}
		sort.Ints(it.Reads)
		it.Reads = dedupe(it.Reads)
		peak := schedule.Peak(g, sg.Ops, sg.Outputs, inst.Regions, split.Peak())
		it.WorkspaceBytes = max(0, peak-reads-it.OutputBytes)
		for _, id := range sg.Ops {
			for _, o := range g.Op(id).Outputs {
				if r := inst.Regions[o]; r != nil {
					w := g.Work(g.Op(id), r)
					it.Seconds += float64(w.MACs)/split.MACsPerSecond + float64(w.Vector.Total())/split.VectorOpsPerSecond
				}
			}
		}
	}
	return items
}

func dedupe(s []int) []int {
	out := s[:0]
	for i, v := range s {
		if i == 0 || v != s[i-1] {
			out = append(out, v)
		}
	}
	return out
}

// OrderProblem is the instance-ordering problem that a schedule's groups, factors
// and dependencies give, on the LBs of a cluster together. A byte moved costs 1
// either way.
//
// The problem has one size per sub-graph and one range per pair of instances. So
// the workspace is that of the largest instance, the outputs of a group are one,
// and an instance that reads with gaps reads what lies between as well; the notes
// say where that matters.
//
// An instance that passes the capacity passes in tiles: see [passInTiles].
func OrderProblem(s *schedule.Schedule, opt Options) (p *ordering.Problem, notes []string, err error) {
	p, _, notes, err = orderProblem(s, opt)
	return p, notes, err
}

func orderProblem(s *schedule.Schedule, opt Options) (p *ordering.Problem, tiles tiledGroups,
	notes []string, err error) {
	// The rates weigh only OrderItem.Seconds, which the problem does not have.
	items := OrderItems(s, graphturbo.SplitOptions{InPlace: opt.InPlace, MACsPerSecond: 1, VectorOpsPerSecond: 1})
	p = &ordering.Problem{
		Name:             s.Graph.Name,
		CapacityBytes:    schedule.AllDataBytes(s.Spec),
		StoreCostPerByte: 1, LoadCostPerByte: 1,
		Subgraphs: []ordering.Subgraph{}, Arcs: []ordering.Arc{},
	}
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
			notes = append(notes, fmt.Sprintf("instances of %q differ in their outputs; all count as the largest", sg.Name))
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
						notes = append(notes, fmt.Sprintf("instance %d of %q reads %q with gaps; the gaps count as read", q, sg.Name,
							s.Grouping.Groups[from].Name))
					}
					*r = [2]int{min(r[0], at), max(r[1], at+1)}
				}
			}
		}
		for from, ranges := range reads {
			if ranges != nil {
				ranges, wider := monotone(ranges)
				if wider {
					notes = append(notes, fmt.Sprintf("instances of %q read %q in another order than they are numbered; what "+
						"lies between counts as read", sg.Name, s.Grouping.Groups[from].Name))
				}
				p.Arcs = append(p.Arcs, ordering.Arc{From: from, To: k, Reads: ranges})
			}
		}
	}
	tiles = passInTiles(p)
	for k, times := range tiles.times {
		if times > 1 {
			tiles.again[k] = (times - 1) * parameterBytes(s, k)
			notes = append(notes, fmt.Sprintf("instances of %q are larger than the L1s and pass in tiles", p.Subgraphs[k].Name))
		}
		if tiles.streamed[k] > 0 {
			notes = append(notes, fmt.Sprintf("outputs of %q stream through the LLB, whatever the order", p.Subgraphs[k].Name))
		}
	}
	if err := p.Validate(); err != nil {
		return nil, tiles, nil, fmt.Errorf("%s gives no ordering problem: %w", s.Graph.Name, err)
	}
	return p, tiles, notes, nil
}

// monotone widens ranges, where need be, until neither starts nor ends decrease, and gives some
// to instances that read nothing: empty ones before the first and after the last that reads;
// between them there may be no room for an empty one, so such an instance counts as reading
// what its forerunner reads. It reports whether a range got wider.
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
