package exact

import (
	"context"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// A JointNetwork is the problem of order, bindings and scopes that a schedule poses.
type JointNetwork struct {
	Problem *joint.Problem
	labels  *binding.Network
	order   []int // that of the schedule, with all that the problem says is read before its readers
}

// JointProblem poses it: [OrderProblem] and [binding.FromSchedule] over the same
// instances, with moves at the rate at which the cost of a binding has them, without
// latencies. An instance that is larger than the L1 passes in tiles: its labels pay for the parameters that pass again,
// and outputs that stream whatever the order for a store and loads where their scope is the L1.
func JointProblem(ctx context.Context, s *schedule.Schedule, opt scheduler.Options) (*JointNetwork, error) {
	m, err := opt.CostModel(s)
	if err != nil {
		return nil, err
	}
	n, err := binding.FromSchedule(ctx, s, m)
	if err != nil {
		return nil, err
	}
	return newJointProblem(s, n, opt)
}

func newJointProblem(s *schedule.Schedule, n *binding.Network, opt scheduler.Options) (*JointNetwork, error) {
	p, tiles, _, err := orderProblem(s, opt)
	if err != nil {
		return nil, err
	}
	seconds, labels := secondsPerByte(s.Spec), *n.Problem
	labels.Nodes = slices.Clone(labels.Nodes)
	g := ordering.NewGraph(p)
	for i := range labels.Nodes {
		node, kept := &labels.Nodes[i], 0.0
		k := s.Instances.Instances[i].Group
		if tiles.streamed[k] > 0 {
			kept = float64(tiles.streamed[k]) * float64(1+len(g.Readers[i]))
		}
		node.Cost = slices.Clone(node.Cost)
		for l := range node.Cost {
			again := float64(tiles.again[k])
			if node.Labels[l].Scope == schedule.L1 {
				again += kept
			}
			node.Cost[l] += seconds * again
		}
	}
	return &JointNetwork{&joint.Problem{Order: p, Labels: &labels, SecondsPerCost: seconds, Given: n.Given}, n,
		g.Obey(s.Order)}, nil
}

// secondsPerByte is the time of a byte between the L1s of a cluster and the next level, with all links at work.
func secondsPerByte(spec *hardware.Spec) float64 {
	t := float64(spec.Clusters) / spec.DDR.BandwidthBytesPerSecond
	if spec.LLB != nil {
		t = 1 / spec.LLB.BandwidthBytesPerSecond
	}
	if link := spec.CoreLink.BandwidthBytesPerSecond; link > 0 {
		t = math.Max(t, 1/(link*float64(schedule.CoresWithL1(spec))))
	}
	return t
}

// start has the labels that the schedule gives, and its order where the L1 has room for that.
func (n *JointNetwork) start() joint.Start {
	start := joint.Start{Choice: n.labels.Given}
	if ordering.NewGraph(n.Problem.Order).Feasible() == nil {
		start.Order = n.order
	}
	return start
}

// Search solves the problem from what the schedule has.
func (n *JointNetwork) Search(ctx context.Context, opts joint.SearchOptions) (*joint.Result, error) {
	opts.Start = n.start()
	return joint.Search(ctx, n.Problem, opts)
}

// Given is the cost of the schedule's own order and labels, in seconds, with the moves
// that its order needs; false if nothing fits.
func (n *JointNetwork) Given() (float64, bool, error) {
	steps, err := n.Problem.Sequence(n.labels.Given, n.order)
	if err != nil || steps == nil {
		return 0, false, err
	}
	labels, moves, err := n.Problem.Seconds(n.labels.Given, steps)
	return labels + moves, err == nil, err
}

// subsets of scopes are what the search looks at without a limit of time, and for an answer from which the program
// begins; programColumns is the size up to which a program has a first LP that needs no limit of time.
const (
	subsets        = 4
	programColumns = 10_000
)

// ILP solves the problem by integer program, from what a short search finds.
func (n *JointNetwork) ILP(ctx context.Context, opts joint.ILPOptions) (*joint.Result, error) {
	opts.Start = n.start()
	return joint.FromSearch(ctx, n.Problem, opts)
}

// solve ends anywhere at the same place; under a limit of time, one part that is hard by itself must not take all.
func (n *JointNetwork) solve(ctx context.Context, ilp bool, o scheduler.Options, note *string) (*joint.Result, error) {
	if ilp {
		opts := joint.ILPOptions{Options: joint.Options{TimeLimit: o.TimeLimit, WorkLimit: o.WorkLimit, Solver: o.Solver,
			MemoryBytes: solve.SolverMemory, Progress: o.ReportTo("bind"), Relax: true,
			Note: func(text string) { *note = text }}}
		if o.TimeLimit == 0 {
			opts.MaxColumns = programColumns
		}
		return n.ILP(ctx, opts)
	}
	opts := joint.SearchOptions{MaxStates: searchStates}
	if opts.TimeLimit = o.SearchLimit(); !o.TimeLimitOnly {
		opts.WorkLimit = subsets
	}
	return n.Search(ctx, opts)
}

var jointOrder, jointBinding = jointly("joint", "search", false)
var jointProgram, jointProgramBinding = jointly("joint-ilp", "integer program (HiGHS)", true)

// jointly is a method's strategies of the stages order and bind: the first chooses what both have.
func jointly(name, by string, ilp bool) (order, bind scheduler.Strategy) {
	pick := func(stage string) []scheduler.Pick { return []scheduler.Pick{{Stage: stage, Strategy: name}} }
	order = scheduler.Strategy{Name: name, Description: "order, bindings and scopes of least cost together, by " + by,
		Exact: true, NeedsSolver: ilp, Sets: pick("bind"), Needs: pick("bind"),
		Decide: func(ctx context.Context, d *scheduler.Draft) error { return leastTogether(ctx, d, name, ilp) }}
	bind = scheduler.Strategy{Name: name, Description: "what the order " + name + " has chosen with the order",
		Exact: true, NeedsSolver: ilp, Sets: pick("order"), Needs: pick("order"),
		Decide: func(ctx context.Context, d *scheduler.Draft) error {
			if d.Bindings != nil {
				return nil
			}
			return leastBinding(ctx, d, name)
		}}
	return order, bind
}

// leastTogether decides order, bindings and scopes; without an answer it leaves the greedy order, and no bindings.
func leastTogether(ctx context.Context, d *scheduler.Draft, name string, ilp bool) error {
	for _, greedy := range []scheduler.Strategy{graphturbo.Algorithm3(), graphturbo.Algorithm4()} {
		if err := greedy.Decide(ctx, d); err != nil {
			return err
		}
	}
	labels, err := binding.FromSchedule(ctx, d.Schedule, d.Cost)
	if err != nil {
		return err
	}
	n, err := newJointProblem(d.Schedule, labels, d.Options)
	if err != nil {
		return err
	}
	answer := scheduler.Solved{Unit: solve.SecondsUnit}
	r, err := n.solve(ctx, ilp, d.Options, &answer.Note)
	if err != nil {
		return err
	}
	answer.Outcome, answer.Program = r.Outcome(), r.Effort
	if d.Bindings, d.Scopes = nil, nil; r.Choice != nil {
		if order := orderOf(d.Schedule, r.Steps); !slices.Equal(order, d.Order) {
			d.Order, d.OrderName = order, name
		}
		d.Bindings, d.Scopes = n.labels.Decode(r.Choice)
	} else if answer.Note = "no order fits"; r.Infeasible != nil { // the memory plan spills
		answer.Note = r.Infeasible.Error()
	}
	d.Solve("order", answer)
	return nil
}

// tiledGroups says which sub-graphs pass in tiles.
type tiledGroups struct {
	streamed []int64 // bytes of an output of a sub-graph that is not kept in the L1s, whatever the order; 0: it may be
	times    []int64 // tiles of an instance of it
	again    []int64 // bytes of parameters that pass again for the tiles after the first
}

// passInTiles makes every instance of a problem fit. What one reads and makes comes first: where it passes the
// capacity by itself, the sub-graph whose outputs take most of it streams them through the LLB, so that they are
// workspace of their maker and of their readers, which is cut into tiles. Then the workspace is what is left, in as
// many tiles as that takes.
func passInTiles(p *ordering.Problem) tiledGroups {
	n := len(p.Subgraphs)
	t := tiledGroups{make([]int64, n), make([]int64, n), make([]int64, n)}
	into := make([][]ordering.Arc, n)
	for _, a := range p.Arcs {
		into[a.To] = append(into[a.To], a)
	}
	// parts are the bytes of an instance's outputs and of what it reads of each arc, by sub-graph.
	parts := func(k, q int, each func(from int, count int64)) {
		each(k, 1)
		for _, a := range into[k] {
			each(a.From, int64(a.Reads[q][1]-a.Reads[q][0]))
		}
	}
	for k := 0; k < n; k++ {
		for q := 0; q < p.Subgraphs[k].Instances; {
			sum, most, largest := int64(0), int64(0), -1
			parts(k, q, func(from int, count int64) {
				b := count * p.Subgraphs[from].OutputBytes
				if sum += b; b > most {
					most, largest = b, from
				}
			})
			if sum <= p.CapacityBytes {
				q++
				continue
			}
			t.streamed[largest], p.Subgraphs[largest].OutputBytes = p.Subgraphs[largest].OutputBytes, 0
		}
	}
	for k := range p.Subgraphs {
		sg := &p.Subgraphs[k]
		want, room := int64(0), p.CapacityBytes
		for q := range sg.Instances {
			stays, passes := int64(0), int64(0)
			parts(k, q, func(from int, count int64) {
				stays += count * p.Subgraphs[from].OutputBytes
				passes += count * t.streamed[from]
			})
			want, room = max(want, sg.WorkspaceBytes+passes), min(room, p.CapacityBytes-stays)
		}
		t.times[k] = 1
		if want > room {
			// Less than a sixteenth of the capacity is no tile: what is kept leaves that much to the memory plan.
			t.times[k] = (want + max(room, p.CapacityBytes/16, 1) - 1) / max(room, p.CapacityBytes/16, 1)
		}
		sg.WorkspaceBytes = min(want, room)
	}
	return t
}

// parameterBytes are the bytes of a group's parameters.
func parameterBytes(s *schedule.Schedule, k int) (bytes int64) {
	seen := map[model.TensorID]bool{}
	for _, id := range s.Grouping.Groups[k].Ops {
		for _, in := range s.Graph.Op(id).Inputs {
			if in < 0 || seen[in] {
				continue
			}
			if seen[in] = true; s.Graph.Tensor(in).Role == model.Constant {
				bytes += s.Graph.Tensor(in).Bytes()
			}
		}
	}
	return bytes
}
