package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/formulation/whole"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// A WholeNetwork is the problem of all decisions together that a graph poses.
type WholeNetwork struct {
	Problem *whole.Problem
	// Given is the schedule among the choices, and Start the other one; nil if its order does not fit.
	Given, Start *whole.Choice
	// Ways is how many ways to split each set of layers has at most, if some were left out; 0: all there are.
	Ways int
	cuts []cut // one per part
	s    *schedule.Schedule
	opt  run
}

// MaxWhole is about how many parts a network has at most where it is posed as one problem: pairs of them are posed.
const MaxWhole = 200

// errPosed ends the stages where the problem of the bindings can be posed.
var errPosed = errors.New("posed")

// WholeProblem poses the problem of groups, factors, order, bindings and scopes of a schedule's
// graph. Parts are the candidates of [SplitProblem] in each of their ways (split.Network.Ways), and the groups of s
// and of another schedule of the same graph, unless that is nil. Labels and costs are those of [JointProblem]; a part
// costs its launches.
func WholeProblem(ctx context.Context, s, start *schedule.Schedule, opt Options) (*WholeNetwork, error) {
	return wholeProblem(ctx, s, start, opt, false)
}

// wholeProblem is WholeProblem, or what of it only has the groups of the schedules.
func wholeProblem(ctx context.Context, s, start *schedule.Schedule, opt Options, given bool) (*WholeNetwork, error) {
	n, err := SplitProblem(s, opt)
	if err != nil {
		return nil, err
	}
	w := &WholeNetwork{s: s, opt: run{opt, state{memo: schedule.NewMemo()}}, // parts stand in many groupings
		Problem: &whole.Problem{Name: s.Graph.Name, Atoms: len(n.Problem.Reads),
			CapacityBytes: schedule.DataBytes(s.Spec) * schedule.CoresWithLB(s.Spec), MoveSeconds: secondsPerByte(s.Spec)}}
	add := func(atoms []int, info schedule.SplitInfo) int {
		for k := range w.cuts {
			if x := w.cuts[k].split; slices.Equal(w.Problem.Parts[k].Atoms, atoms) && x.Factor == info.Factor &&
				(x.Dim == info.Dim || x.Factor == 1) {
				return k
			}
		}
		w.cuts = append(w.cuts, cut{n.Operators(atoms), info})
		w.Problem.Parts = append(w.Problem.Parts, whole.Part{Name: fmt.Sprintf("part%d", len(w.Problem.Parts)), Atoms: atoms})
		return len(w.cuts) - 1
	}
	var ways [][]split.Way
	var sets [][]int
	seen := map[string]bool{}
	for _, g := range n.Problem.Groups {
		if given {
			break
		}
		if key := fmt.Sprint(g.Atoms); !seen[key] {
			seen[key] = true
			list := n.Ways(g.Atoms)
			slices.SortStableFunc(list, func(a, b split.Way) int { return cmp.Compare(a.Seconds, b.Seconds) })
			sets, ways = append(sets, g.Atoms), append(ways, list)
		}
	}
	// As many ways of each set as there is room for, the cheapest by themselves first.
	for w.Ways = 1; ; w.Ways++ {
		all, more := 0, false
		for _, list := range ways {
			all += min(len(list), w.Ways)
			more = more || len(list) > w.Ways
		}
		if all > MaxWhole {
			if w.Ways--; w.Ways == 0 {
				return nil, fmt.Errorf("%s has %d sets of layers that can be a sub-graph, expected at most %d", s.Graph.Name,
					len(sets), MaxWhole)
			}
			break
		}
		if !more {
			w.Ways = 0
			break
		}
	}
	for k, atoms := range sets {
		for i, way := range ways[k] {
			if w.Ways == 0 || i < w.Ways {
				add(atoms, way.Split)
			}
		}
	}
	own := func(s *schedule.Schedule) (parts []int, err error) {
		for _, sg := range s.Grouping.Groups {
			atoms, info := n.AtomsOf(sg.Ops), sg.Split
			if found, all := len(sg.Ops), len(n.Operators(atoms)); found != all {
				return nil, fmt.Errorf("the schedule to start from: group %q: found %d operators, expected the %d of the "+
					"layers that they are of", sg.Name, found, all)
			}
			info.Factor = sg.Factor()
			parts = append(parts, add(atoms, info))
		}
		return parts, nil
	}
	first, err := own(s)
	if err != nil {
		return nil, err
	}
	var other []int
	if start != nil {
		if other, err = own(start); err != nil {
			return nil, err
		}
	}
	if err := w.pose(ctx, n); err != nil {
		return nil, err
	}
	if w.Given, err = w.give(first, s); err == nil && start != nil {
		w.Start, err = w.give(other, start)
	}
	if err != nil {
		return nil, err
	}
	return w, w.Problem.Validate()
}

// A poser finds the instances of all parts, and what those of two parts cost together.
type poser struct {
	*WholeNetwork
	n    *split.Network
	todo map[[2]int]bool // pairs of which the second part reads the first
	of   [][]int         // parts by their first atom
}

// pose puts each two parts of which one reads the other into a grouping with as many such
// pairs more as follow, and every other atom in a group by itself.
func (w *WholeNetwork) pose(ctx context.Context, n *split.Network) error {
	parts := w.Problem.Parts
	p := poser{w, n, map[[2]int]bool{}, make([][]int, w.Problem.Atoms)}
	var pairs [][2]int
	for b := range parts {
		p.of[parts[b].Atoms[0]] = append(p.of[parts[b].Atoms[0]], b)
		for a := range parts {
			if !overlap(parts[a].Atoms, parts[b].Atoms) && p.reads(parts[b].Atoms, parts[a].Atoms) {
				pairs = append(pairs, [2]int{a, b})
				p.todo[[2]int{a, b}] = true
			}
		}
	}
	for _, x := range pairs {
		if !p.todo[x] {
			continue
		}
		cuts, at := p.grouping(p.more(x[:]))
		if cuts == nil {
			if cuts, at = p.grouping(x[:]); cuts == nil { // they wait for each other
				delete(p.todo, x)
				w.Problem.Apart = append(w.Problem.Apart, x)
				continue
			}
		}
		if err := p.take(ctx, cuts, at); err != nil {
			return err
		}
	}
	for k := range parts {
		if parts[k].Instances == nil { // nobody reads it, and it nobody
			cuts, at := p.grouping([]int{k})
			if cuts == nil {
				return fmt.Errorf("internal error: part %d of %s waits for itself", k, w.s.Graph.Name)
			}
			if err := p.take(ctx, cuts, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
}

// reads reports whether some of the atoms read some of others.
func (p *poser) reads(atoms, others []int) bool {
	return slices.ContainsFunc(atoms, func(x int) bool { return overlap(p.n.Problem.Reads[x], others) })
}

// more adds parts to some that make pairs with them.
func (p *poser) more(parts []int) []int {
	parts = slices.Clone(parts)
	for _, list := range p.of {
		for _, o := range list {
			atoms := p.Problem.Parts[o].Atoms
			if slices.ContainsFunc(parts, func(k int) bool { return overlap(atoms, p.Problem.Parts[k].Atoms) }) {
				continue
			}
			if slices.ContainsFunc(parts, func(k int) bool { return p.todo[[2]int{k, o}] || p.todo[[2]int{o, k}] }) {
				parts = append(parts, o)
				break
			}
		}
	}
	return parts
}

// grouping is one with the parts, and at the numbers of their groups; nil if there is none.
func (p *poser) grouping(parts []int) (cuts []cut, at map[int]int) {
	type set struct {
		part  int
		atoms []int
		cut   cut
	}
	var sets []set
	for _, k := range parts {
		sets = append(sets, set{k, p.Problem.Parts[k].Atoms, p.cuts[k]})
	}
	for x := range p.Problem.Atoms {
		if !slices.ContainsFunc(sets, func(s set) bool { return slices.Contains(s.atoms, x) }) {
			sets = append(sets, set{-1, []int{x}, cut{p.n.Operators([]int{x}), schedule.SplitInfo{Factor: 1, Dim: -1}}})
		}
	}
	slices.SortFunc(sets, func(s, t set) int { return s.atoms[0] - t.atoms[0] })
	at = map[int]int{}
	for len(sets) > 0 {
		k := slices.IndexFunc(sets, func(s set) bool {
			return !slices.ContainsFunc(sets, func(t set) bool { return t.atoms[0] != s.atoms[0] && p.reads(s.atoms, t.atoms) })
		})
		if k < 0 {
			return nil, nil
		}
		if sets[k].part >= 0 {
			at[sets[k].part] = len(cuts)
		}
		cuts = append(cuts, sets[k].cut)
		sets = slices.Delete(sets, k, k+1)
	}
	return cuts, at
}

// take takes over what a grouping says of its parts.
func (p *poser) take(ctx context.Context, cuts []cut, at map[int]int) error {
	d, m, err := p.instances(ctx, cuts)
	if err != nil {
		return err
	}
	items := OrderItems(d.Schedule, d.Machine)
	part := map[int]int{} // by group
	for _, o := range slices.Sorted(maps.Keys(at)) {
		part[at[o]] = o
		var list []whole.Instance
		first := d.Instances.First[at[o]]
		for i := first; i < first+int(d.Grouping.Groups[at[o]].Factor()); i++ {
			node := m.Problem.Nodes[i]
			list = append(list, whole.Instance{OutputBytes: items[i].OutputBytes, WorkspaceBytes: items[i].WorkspaceBytes,
				Labels: node.Labels, Cost: node.Cost})
		}
		if x := &p.Problem.Parts[o]; x.Instances == nil {
			x.Instances, x.Seconds = list, p.s.Spec.LaunchSeconds*float64(len(list))
		} else if !slices.EqualFunc(x.Instances, list, sameInstance) {
			return fmt.Errorf("internal error: part %d of %s costs something else beside other parts", o, p.s.Graph.Name)
		}
	}
	for _, e := range m.Problem.Edges {
		from, to := d.Instances.Instances[e.From], d.Instances.Instances[e.To]
		a, one := part[from.Group]
		b, two := part[to.Group]
		if !one || !two || !p.todo[[2]int{a, b}] {
			continue
		}
		p.Problem.Edges = append(p.Problem.Edges, whole.Edge{From: [2]int{a, int(from.Index)}, To: [2]int{b, int(to.Index)},
			Cost: e.Cost})
	}
	for x := range p.todo {
		if _, one := at[x[0]]; one {
			if _, two := at[x[1]]; two {
				delete(p.todo, x)
			}
		}
	}
	return nil
}

func sameInstance(a, b whole.Instance) bool {
	return a.OutputBytes == b.OutputBytes && a.WorkspaceBytes == b.WorkspaceBytes && slices.Equal(a.Cost, b.Cost) &&
		slices.EqualFunc(a.Labels, b.Labels, func(x, y binding.Label) bool { return x.Equal(y) && x.Output.Equal(y.Output) })
}

// instances makes the instances of a grouping, and their bindings' problem.
func (w *WholeNetwork) instances(ctx context.Context, cuts []cut) (made *Draft, n *binding.Network, err error) {
	r, err := Lookup("cross-layer")
	if err != nil {
		return nil, nil, err
	}
	r = r.With("order", Strategy{Name: "posed", Decide: func(_ context.Context, d *Draft) error {
		for i := range d.Instances.Instances {
			d.Order = append(d.Order, i)
		}
		return nil
	}})
	r = r.With("bind", Strategy{Name: "posed", Decide: func(_ context.Context, d *Draft) error {
		d.Bindings, d.Scopes = make([]schedule.Binding, len(d.Instances.Instances)),
			make([]schedule.Level, len(d.Instances.Instances))
		for i := range d.Instances.Instances {
			inst := &d.Instances.Instances[i]
			d.Bindings[i] = schedule.One(len(inst.Regions[d.Grouping.Groups[inst.Group].Outputs[0]]))
		}
		made = d
		if n, err = binding.FromSchedule(ctx, d.Schedule, d.Cost); err != nil {
			return err
		}
		return errPosed
	}})
	_, err = resume(ctx, &schedule.Schedule{Graph: w.s.Graph, Spec: w.s.Spec, Grouping: groups(cuts).grouping(w.s.Graph)},
		"split", r, w.opt)
	if errors.Is(err, errPosed) {
		err = nil
	}
	return made, n, err
}

// give finds a schedule's parts, labels and order among the choices; nil if its order does not fit. A
// binding that comes to the same as another one stands for it.
func (w *WholeNetwork) give(parts []int, s *schedule.Schedule) (*whole.Choice, error) {
	j, err := w.Problem.Joint(parts)
	if err != nil || j == nil {
		return nil, err
	}
	c := &whole.Choice{Parts: w.Problem.Arrange(parts)}
	number := map[[2]int]int{} // instances by group and index
	for k, o := range parts {
		first := s.Instances.First[k]
		for q := range w.Problem.Parts[o].Instances {
			number[[2]int{o, q}] = first + q
		}
	}
	place := make([]int, len(s.Order)) // in the choice, by instance
	for _, o := range c.Parts {
		for q, in := range w.Problem.Parts[o].Instances {
			i := number[[2]int{o, q}]
			place[i] = len(c.Labels)
			c.Labels = append(c.Labels, max(0, binding.Find(in.Labels, s.Bindings[i], s.Scopes[i])))
		}
	}
	order := make([]int, len(s.Order))
	for t, i := range s.Order {
		order[t] = place[i]
	}
	if c.Steps, err = j.Sequence(c.Labels, order); err != nil || c.Steps == nil {
		return nil, err
	}
	return c, nil
}

// Schedule is the schedule that a choice stands for, with all that follows as cross-layer makes it.
func (w *WholeNetwork) Schedule(ctx context.Context, c *whole.Choice) (*schedule.Schedule, error) {
	r, err := Lookup("cross-layer")
	if err != nil {
		return nil, err
	}
	var cuts []cut
	for _, o := range c.Parts {
		cuts = append(cuts, w.cuts[o])
	}
	d, _, err := w.instances(ctx, cuts)
	if err != nil {
		return nil, err
	}
	s, i := *d.Schedule, 0
	for _, o := range c.Parts {
		for _, in := range w.Problem.Parts[o].Instances {
			l := in.Labels[c.Labels[i]]
			s.Bindings[i], s.Scopes[i] = l.Binding, l.Scope
			i++
		}
	}
	for t, step := range c.Steps {
		s.Order[t] = step.Run[0]
	}
	d, err = resume(ctx, &s, "bind", r, w.opt)
	if err != nil {
		return nil, err
	}
	return d.Schedule, nil
}

// AloneWhole is the answer of [Together].
type AloneWhole struct {
	Alone
	Layers    int        `json:"layers"`
	Parts     int        `json:"parts"`
	Instances int        `json:"instances"` // of all parts
	Pairs     int        `json:"pairs"`     // of instances of which one may read the other
	Sets      int        `json:"sets"`      // of parts that the search has solved
	Moves     int        `json:"moves"`     // between L1 and LLB
	Groups    []GroupCut `json:"groups"`
}

// Together chooses groups, factors, order, bindings and scopes together by a method of
// whole.Methods, from the greedy schedule on. It is for small networks. When ctx or the time limit ends,
// the answer is the best choice so far.
func Together(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, method string,
	opt AloneOptions) (*AloneWhole, error) {
	base, c, err := alone(ctx, net, machine, batch, method, opt)
	if err != nil {
		return nil, err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if opt.TimeLimit > 0 {
		limited, cancel = context.WithTimeout(ctx, opt.TimeLimit)
	}
	defer cancel()
	var start *schedule.Schedule
	if opt.Start != nil {
		start = opt.Start.Schedule
	}
	began := time.Now()
	w, err := WholeProblem(limited, c.base.Schedule, start, opt.Options)
	posed := err == nil
	if err != nil && limited.Err() != nil { // the given schedules are an answer all the same
		w, err = wholeProblem(context.WithoutCancel(ctx), c.base.Schedule, start, opt.Options, true)
	}
	if err != nil {
		return nil, base.wrap(err)
	}
	a := &AloneWhole{Alone: *base, Layers: w.Problem.Atoms, Parts: len(w.Problem.Parts), Pairs: len(w.Problem.Edges),
		Groups: []GroupCut{}}
	for _, o := range w.Problem.Parts {
		a.Instances += len(o.Instances)
	}
	a.Program = func() (*milp.Model, error) { return whole.Formulate(w.Problem) }
	if w.Ways > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("of each sub-graph's ways to be split, the %d with the least cost by "+
			"themselves are candidates", w.Ways))
	}
	from := w.Given
	if w.Given == nil {
		a.Notes = append(a.Notes, "the greedy order does not fit the L1; its costs are left out")
	} else if a.Greedy, err = w.Problem.Seconds(w.Given); err != nil {
		return nil, a.wrap(err)
	}
	if w.Start != nil {
		if s, err := w.Problem.Seconds(w.Start); err != nil {
			return nil, a.wrap(err)
		} else if from == nil || s < a.Greedy {
			from = w.Start
		}
	}
	var r *whole.Result
	if posed {
		opts := whole.Options{MemoryBytes: solverMemory, Start: from, Solver: opt.Solver, Progress: opt.report("whole")}
		if r, err = whole.Solve(limited, w.Problem, method, opts); err != nil {
			return nil, a.wrap(err)
		}
	} else {
		a.Notes = append(a.Notes, "the problem was not posed in time: the bound is a launch and all products at the "+
			"peak rate")
		r = &whole.Result{}
		if r.Bound, err = c.leastSeconds(); err != nil {
			return nil, a.wrap(err)
		}
		r.Status, r.Stop = solve.Judge(from != nil, false, solve.Why(limited))
		if r.Choice = from; from != nil {
			r.Objective, err = w.Problem.Seconds(from)
		}
		if err != nil {
			return nil, a.wrap(err)
		}
	}
	a.solved(r.Status, r.Stop, r.Outcome().Objective, r.Bound, began)
	a.GreedyThroughputPerSecond = a.simulate(ctx, c, c.base.Schedule, nil)
	a.Sets = r.Sets
	if r.Choice == nil {
		a.Objective = 0
		return a, nil
	}
	for _, s := range r.Steps {
		a.Moves += len(s.Store) + len(s.Load)
	}
	made, err := w.Schedule(context.WithoutCancel(ctx), r.Choice)
	if err == nil {
		a.Groups = groupCuts(made, made.Grouping)
	}
	a.ThroughputPerSecond = a.simulate(ctx, c, made, err)
	return a, nil
}

// leastSeconds is what any choice costs at least: a launch and, by the formulas, all products at the
// peak rate.
func (c *comparer) leastSeconds() (float64, error) {
	s := c.base.Schedule
	if c.opt.Cost != nil {
		return s.Spec.LaunchSeconds, nil
	}
	m, err := cost.New(s.Spec)
	if err != nil {
		return 0, err
	}
	return s.Spec.LaunchSeconds + productSeconds(s.Graph, m), nil
}
