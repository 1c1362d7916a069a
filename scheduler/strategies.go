package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/heuristics/graphturbo"

	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/spell"
)

// Strategies that no row of the tables has.
const (
	// HeavyOrder runs first what frees the most.
	HeavyOrder Ordering = "heavy"
	// ILPOrder is the order of least traffic, by integer program.
	ILPOrder Ordering = "ilp"
	// ILPBinding are the bindings and scopes that cost least, by integer program.
	ILPBinding Binding = "ilp"
)

// A Decision is one of those that make a schedule, with the strategies that can make
// it. The strategies are data: one more is one more row.
type Decision struct {
	Name        string
	Description string
	Strategies  []Strategy
}

// A Strategy is an implementation of a decision.
type Strategy struct {
	Name        string
	Alias       string // another name, if any
	Description string
	// NeedsSolver: Options.Solver must be set.
	NeedsSolver bool
	choose      func(*Recipe, *Options)
}

// Decisions lists all decisions in the order in which they are made, each with its
// strategies.
func Decisions() []Decision {
	group := func(name Grouping, description string) Strategy {
		return Strategy{Name: string(name), Description: description, choose: func(v *Recipe, _ *Options) {
			v.Groups = name
			if name != Algorithm2 {
				v.Split = NoSplit // kernels of layers are not split
			}
		}}
	}
	split := func(name Splitting, description string) Strategy {
		return Strategy{Name: string(name), Description: description, choose: func(v *Recipe, _ *Options) { v.Split = name }}
	}
	outputs := func(name string, level schedule.Level, description string) Strategy {
		return Strategy{Name: name, Description: description, choose: func(v *Recipe, _ *Options) { v.Outputs = level }}
	}
	order := func(name Ordering, description string) Strategy {
		return Strategy{Name: string(name), Description: description, NeedsSolver: name == ILPOrder,
			choose: func(v *Recipe, _ *Options) { v.Order = name }}
	}
	bind := func(name Binding, description string) Strategy {
		return Strategy{Name: string(name), Description: description, NeedsSolver: name == ILPBinding,
			choose: func(v *Recipe, _ *Options) { v.Bind = name }}
	}
	alias := func(name string, s Strategy) Strategy {
		s.Alias = name
		return s
	}
	spill := func(name graphturbo.SpillRule, description string) Strategy {
		return Strategy{Name: string(name), Description: description, choose: func(v *Recipe, o *Options) { v.Memory, o.Spill = "", name }}
	}
	joint := Strategy{Name: string(JointOrder), Description: "order, bindings and scopes of least cost together, by search",
		choose: func(v *Recipe, _ *Options) { v.Order, v.Bind = JointOrder, JointBinding }}
	return []Decision{
		{"group", "which operators become one kernel", []Strategy{
			group(LayerKernels, "a layer is a kernel"),
			group(ConvPairs, "a layer is a kernel, or two convolutions are"),
			group(StitchOps, "memory-intensive operators together, as AStitch"),
			group(Algorithm2, "Algorithm 2 of the paper"),
		}},
		{"split", "how a group is cut into instances", []Strategy{
			split(NoSplit, "not at all"),
			split(OneFactor, "the factor of the hungriest group for all"),
			split(Algorithm1, "Algorithm 1 of the paper, each group its own"),
			split(ExactSplit, "groups and factors of least cost, by search"),
		}},
		{"outputs", "the memory where a layer's output should stay", []Strategy{
			outputs("ddr", schedule.DDR, "off the chip"),
			outputs("llb", schedule.GB, "the buffer of a cluster"),
			outputs("l1", schedule.LB, "the buffer of a core"),
		}},
		{"order", "the order of the instances", []Strategy{
			order(LayerByLayer, "all instances of a group before the next group"),
			order(ChunkByChunk, "an instance of every group before the next ones"),
			order(BreadthFirst, "breadth first"),
			order(DepthFirst, "depth first"),
			order(HeavyOrder, "what frees most first, then what needs most"),
			alias("greedy", order(Algorithm3, "Algorithm 3 of the paper: the better of bfs and dfs")),
			order(ExactOrder, "least traffic, by state-space search"),
			order(ILPOrder, "least traffic, by integer program (HiGHS)"),
			joint,
		}},
		{"bind", "over which cores an output is spread, and its scope", []Strategy{
			bind(PlainBinding, "the outermost dimensions"),
			bind(BlockLocality, "plain; only what a core itself reads again stays with it"),
			alias("greedy", bind(Algorithm4, "Algorithm 4 of the paper, an instance at a time")),
			bind(ExactBinding, "least cost, by dynamic programming"),
			bind(ILPBinding, "least cost, by integer program (HiGHS)"),
			joint,
		}},
		{"spill", "what leaves a full memory first", []Strategy{
			spill(graphturbo.LongestLifetime, "the longest remaining lifetime"),
			spill(graphturbo.LargestFirst, "the largest"),
			{Name: string(ExactMemory), Description: "what moves least, by dynamic programming", choose: func(v *Recipe, _ *Options) { v.Memory = ExactMemory }},
		}},
		{"issue", "what the commands of a kernel may overtake", []Strategy{
			{Name: "in-order", Description: "a layer's commands wait for the layer before", choose: func(v *Recipe, _ *Options) {
				v.Lower.CrossLayer, v.Lower.Prefetch = false, false
			}},
			{Name: "cross-layer", Description: "loads and units overlap across layers and kernels", choose: func(v *Recipe, _ *Options) {
				v.Lower.CrossLayer, v.Lower.Prefetch = true, true
			}},
		}},
		{"weights", "whether weights stay in the LLB from kernel to kernel", []Strategy{
			{Name: "reload", Description: "each kernel loads its own", choose: func(v *Recipe, _ *Options) { v.Lower.KeepWeights = false }},
			{Name: "keep", Description: "they stay while there is room", choose: func(v *Recipe, _ *Options) { v.Lower.KeepWeights = true }},
		}},
	}
}

// LookupDecision finds a decision by name.
func LookupDecision(name string) (Decision, error) {
	var names []string
	for _, d := range Decisions() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return Decision{}, fmt.Errorf("unknown decision %q%s, expected one of %s", name, spell.Hint(name, names), strings.Join(names, ", "))
}

// Lookup finds a strategy by its name or alias.
func (d Decision) Lookup(name string) (Strategy, error) {
	var names, known []string
	for _, s := range d.Strategies {
		if name == s.Name || name != "" && name == s.Alias {
			return s, nil
		}
		names = append(names, s.Name)
		if known = append(known, s.Name); s.Alias != "" {
			known = append(known, s.Alias)
		}
	}
	return Strategy{}, fmt.Errorf("%s is %q%s, expected one of %s", d.Name, name, spell.Hint(name, known), strings.Join(names, ", "))
}

// A Pick is a strategy for a decision, by their names.
type Pick struct{ Decision, Strategy string }

// ErrNoSolver tells that a strategy needs Options.Solver, which is not set.
var ErrNoSolver = errors.New("needs an integer-programming solver")

// Replace is a variant with some of its decisions made by other strategies, and the
// options for it. Its name tells which: "cross-layer+order=search". A combination
// that has no meaning is an error.
func Replace(v Recipe, opt Options, picks ...Pick) (Recipe, Options, error) {
	base, name := v, v.Name
	has := map[string]string{}
	for _, d := range Decisions() {
		for _, p := range picks {
			if p.Decision != d.Name {
				continue
			}
			s, err := d.Lookup(p.Strategy)
			if err != nil {
				return Recipe{}, opt, err
			}
			if old, twice := has[d.Name]; twice && old != s.Name {
				return Recipe{}, opt, fmt.Errorf("%s is both %s and %s", d.Name, old, s.Name)
			}
			if s.NeedsSolver && opt.Solver == nil {
				return Recipe{}, opt, fmt.Errorf("%s %s %w", d.Name, s.Name, ErrNoSolver)
			}
			has[d.Name] = s.Name
			before, spill := v, opt.Spill
			s.choose(&v, &opt)
			if v != before || opt.Spill != spill && (spill != "" || opt.Spill != graphturbo.LongestLifetime) {
				name += "+" + d.Name + "=" + s.Name
			}
		}
	}
	for _, p := range picks {
		if _, err := LookupDecision(p.Decision); err != nil {
			return Recipe{}, opt, err
		}
	}
	if v.Groups != Algorithm2 && v.Split != NoSplit {
		return Recipe{}, opt, fmt.Errorf("split is %s, but groups of %s are never split: expected split none or group %s", v.Split, v.Groups, Algorithm2)
	}
	if v.Name = name; v.Name != base.Name {
		v.Description = base.Name + " with " + strings.ReplaceAll(strings.TrimPrefix(name, base.Name+"+"), "+", ", ")
	}
	return v, opt, nil
}

// unsplit gives every group one instance. Those that Algorithm 1 cut do not fit
// whole, by its count.
func unsplit(gr *schedule.Grouping) {
	for _, sg := range gr.Groups {
		if sg.Factor() > 1 {
			sg.Split = schedule.SplitInfo{Ops: len(sg.Ops), Factor: schedule.Unsplittable, Dim: -1}
		}
	}
}

// heavyOrder sets the order of the rule that runs first what frees most.
func heavyOrder(s *schedule.Schedule, split graphturbo.SplitOptions, opt Options) error {
	p, _, err := OrderProblem(s, opt)
	if err != nil {
		return err
	}
	g := ordering.NewGraph(p)
	ids, err := ordering.Order(g, ordering.Heavy)
	if err != nil {
		return err
	}
	s.Order = s.Order[:0]
	for _, i := range ids {
		s.Order = append(s.Order, s.Instances.First[g.Refs[i][0]]+g.Refs[i][1])
	}
	s.OrderName = string(HeavyOrder)
	s.Costs = append(s.Costs, schedule.NamedCost{Name: s.OrderName, Cost: schedule.EvaluateOrder(OrderItems(s, split), s.Order, split.LBBytes)})
	return nil
}

// solveOrder is the order of least traffic by a complete method, if it finds one
// that is better than Algorithm 3's, which s has.
func solveOrder(ctx context.Context, s *schedule.Schedule, split graphturbo.SplitOptions, method Ordering, opt Options) error {
	p, _, err := OrderProblem(s, opt)
	if err != nil {
		return err
	}
	start := append([]int(nil), s.Order...)
	given, err := ordering.Fixed("greedy", ordering.NewGraph(p), start, ordering.Traffic)
	if err != nil || !given.HasOrder() {
		return err // nothing fits: the memory plan spills
	}
	var r *ordering.Result
	if method == ILPOrder {
		r, err = ordering.CountingILP(ctx, p, ordering.Traffic, ordering.ILPOptions{Options: ordering.Options{TimeLimit: opt.TimeLimit, Start: start, Solver: opt.Solver, Progress: opt.report("order")}})
	} else {
		r, err = ordering.Search(ctx, p, ordering.Traffic, ordering.SearchOptions{Options: ordering.Options{WorkLimit: searchStates, Start: start, Progress: opt.report("order")}})
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // the order would depend on when it was
	}
	if !r.HasOrder() {
		return nil
	}
	if r.Bound < r.Cost {
		opt.tell(fmt.Sprintf("order by %s: not proven to be the best, traffic %.0f bytes, bound %.0f", method, r.Cost, r.Bound))
	}
	if r.Cost < given.Cost {
		s.Order, s.OrderName = OrderOf(s, r), string(method)
		s.Costs = append(s.Costs, schedule.NamedCost{Name: s.OrderName, Cost: schedule.EvaluateOrder(OrderItems(s, split), s.Order, split.LBBytes)})
	}
	return nil
}

// solveBinding finds the bindings of least cost by integer program.
func solveBinding(ctx context.Context, n *binding.Network, opt Options) (*binding.Result, error) {
	const memory = 4 << 30 // what a small machine has
	r, err := binding.ILP(ctx, n.Problem, binding.ILPOptions{Options: binding.Options{TimeLimit: opt.TimeLimit, MemoryBytes: memory,
		Start: n.Given, Solver: opt.Solver, Progress: opt.report("bind")}})
	if err != nil {
		return nil, err
	}
	if r.Status != milp.Optimal {
		opt.tell(fmt.Sprintf("bindings by ilp: not proven to be the best, cost %.4g s, bound %.4g s", r.Objective, r.Bound))
	}
	return r, nil
}

// tell passes a note on, if anybody listens.
func (o Options) tell(note string) {
	if o.note != nil {
		o.note(note)
	}
}

// report is what a method tells of its progress to, nil for nobody.
func (o Options) report(decision string) func(milp.Progress) {
	if o.Progress == nil {
		return nil
	}
	return func(p milp.Progress) { o.Progress(decision, p) }
}
