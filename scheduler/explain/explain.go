// Package explain says why a schedule is as it is: why groups end where they do, why a
// factor is no smaller, why a value had to leave the L1, and what the units waited for.
//
// What the grouping algorithm decided is in the schedule (schedule.MergeEvent). Factors are asked for again, of
// Algorithm 1. Spills are played again in their order. Waiting is read off the simulation: a command starts when the
// last of what it waits for ends (sim.Causes).
//
// Times are in seconds; those of a group are of the cluster that ends last, unless others run it. Sizes are in bytes.
package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/picture"
)

// Explainer answers questions about one simulated schedule.
type Explainer struct {
	r       *scheduler.Result
	s       *schedule.Schedule
	opt     scheduler.Options
	causes  []int32
	owner   []int            // kernel of each command
	kernels []picture.Kernel // of the cluster, then of the others
	cluster int              // that ends last
	// groupOf is the group of each operator, layerOf its layer in the group.
	groupOf, layerOf []int
}

// New prepares the answers. opt are the options with which the schedule was made.
func New(r *scheduler.Result, opt scheduler.Options) *Explainer {
	e := &Explainer{r: r, s: r.Schedule, opt: opt, causes: sim.Causes(r.Program, r.Sim), cluster: r.Last()}
	e.owner, e.kernels = picture.Owners(r, e.cluster)
	for k := range r.Plans {
		if k == e.cluster {
			continue
		}
		owner, kernels := picture.Owners(r, k)
		for i, own := range owner {
			if own >= 0 {
				e.owner[i] = len(e.kernels) + own
			}
		}
		e.kernels = append(e.kernels, kernels...)
	}
	e.groupOf, e.layerOf = make([]int, len(e.s.Graph.Ops)), make([]int, len(e.s.Graph.Ops))
	for k, layers := range e.s.Layers {
		for l := range layers {
			for _, id := range layers[l].Ops {
				e.groupOf[id], e.layerOf[id] = k, l
			}
		}
	}
	return e
}

const second = 1e-12 // of a picosecond

// Share is a part of a time.
type Share struct {
	What    string  `json:"what"`
	Seconds float64 `json:"time_s"`
	Share   float64 `json:"share"` // of the whole
	Count   int     `json:"count"` // of commands
}

// Overview says where the time of the whole batch goes.
type Overview struct {
	Cluster      int     `json:"cluster"`
	TotalSeconds float64 `json:"total_s"`
	// Path sums up the commands of the critical path: by what they did, by the group that
	// they worked for, and moves by the resource that limits them.
	PathByKind     []Share      `json:"critical_path_by_kind"`
	PathByGroup    []GroupShare `json:"critical_path_by_group"`
	PathByResource []Share      `json:"critical_path_moves_by_resource"`
	// SharedSeconds is the time that moves of the path lost to others on the same resources,
	// LatencySeconds the time before anything flowed.
	SharedSeconds  float64 `json:"critical_path_shared_s"`
	LatencySeconds float64 `json:"critical_path_latency_s"`
	// Waits says, for each unit, what it did and what it waited for.
	Waits  []UnitWaits `json:"waits"`
	Limit  string      `json:"limit"`
	Bounds []Share     `json:"bounds"` // lower bounds of the time of this program
}

// GroupShare is the part of the path that a group's commands are, and what they did: moves
// with the resource that limits them.
type GroupShare struct {
	Share
	By []Share `json:"by"`
}

// UnitWaits is the time of a unit, in the cluster where it is busiest.
type UnitWaits struct {
	Unit        string  `json:"unit"`
	Cluster     int     `json:"cluster"`
	BusySeconds float64 `json:"busy_s"`
	// Causes lists the reasons for which the unit's next command waited while the unit was idle.
	Causes []Share `json:"waited_for"`
}

// tally adds up shares by name.
type tally struct {
	list []Share
}

func (t *tally) add(what string, ps int64) {
	i := slices.IndexFunc(t.list, func(s Share) bool { return s.What == what })
	if i < 0 {
		i = len(t.list)
		t.list = append(t.list, Share{What: what})
	}
	t.list[i].Seconds += float64(ps) * second
	t.list[i].Count++
}

// shares returns the shares of some time, largest first.
func (t *tally) shares(of float64) []Share {
	out := []Share{}
	for _, s := range t.list {
		if of > 0 {
			s.Share = s.Seconds / of
		}
		if s.Seconds > 0 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.What, b.What))
	})
	return out
}

// bottleneck is the resource that limits a move that is alone, and the time that its bytes take there.
func (e *Explainer) bottleneck(c *isa.Command) (slowest *isa.Resource, ps int64) {
	for _, u := range c.Uses {
		res := &e.r.Program.Resources[u.Resource]
		t := int64(float64(u.Bytes) / float64(res.BytesPerSecond) * 1e12)
		if slowest == nil || t > ps {
			slowest, ps = res, t
		}
	}
	return slowest, ps
}

// Overview explains the whole.
func (e *Explainer) Overview() Overview {
	p, r := e.r.Program, e.r.Sim
	o := Overview{Cluster: e.cluster, TotalSeconds: float64(r.TotalPs) * second, Waits: []UnitWaits{}}
	var kinds, groups, resources tally
	inside := map[string]*tally{}
	shared, latency := int64(0), int64(0)
	for _, i := range sim.CriticalPath(p, r) {
		c := &p.Commands[i]
		took := r.End[i] - r.Start[i]
		group := e.kernels[e.owner[i]].Group().Name
		if inside[group] == nil {
			inside[group] = &tally{}
		}
		kinds.add(e.r.CommandWord(c.Kind), took)
		groups.add(group, took)
		inside[group].add(e.what(c), took)
		if len(c.Uses) > 0 {
			slowest, alone := e.bottleneck(c)
			resources.add(e.r.ResourceWord(*slowest), took)
			latency += min(took, c.DurationPs)
			shared += max(0, took-c.DurationPs-alone)
		}
	}
	o.PathByKind, o.PathByResource, o.PathByGroup = kinds.shares(o.TotalSeconds), resources.shares(o.TotalSeconds),
		[]GroupShare{}
	for _, s := range groups.shares(o.TotalSeconds) {
		o.PathByGroup = append(o.PathByGroup, GroupShare{s, inside[s.What].shares(o.TotalSeconds)})
	}
	o.SharedSeconds, o.LatencySeconds = float64(shared)*second, float64(latency)*second
	for _, q := range e.units() {
		w := UnitWaits{Unit: e.r.QueueWord(p.Queues[q]), Cluster: int(p.Queues[q].Cluster),
			BusySeconds: float64(r.Queues[q].BusyPs) * second}
		var t tally
		free := int64(0)
		for i := range p.Commands {
			if int(p.Commands[i].Queue) != q {
				continue
			}
			if wait := r.Start[i] - free; wait > 0 && e.causes[i] >= 0 {
				t.add(e.r.CommandWord(p.Commands[e.causes[i]].Kind), wait)
			}
			free = r.End[i]
		}
		if free < r.TotalPs {
			t.add("nothing left to do", r.TotalPs-free)
		}
		w.Causes = t.shares(o.TotalSeconds)
		o.Waits = append(o.Waits, w)
	}
	var bounds tally
	if b := r.Bound; b.Resource >= 0 {
		bounds.add(e.r.ResourceWord(p.Resources[b.Resource]), b.ResourcePs)
	}
	if b := r.Bound; b.Queue >= 0 {
		name := e.r.QueueWord(p.Queues[b.Queue])
		if r.Queues[b.Queue].BusyPs > b.QueuePs {
			name += " if each move were alone"
		}
		bounds.add(name, b.QueuePs)
	}
	bounds.add("longest chain of dependencies", r.Bound.ChainPs)
	o.Bounds = bounds.shares(o.TotalSeconds)
	o.Limit = e.r.LimitText()
	return o
}

// units are the queues that ran anything: of those of a name the busiest, as in [scheduler.Result.Uses].
func (e *Explainer) units() (list []int) {
	queues, use := e.r.Program.Queues, e.r.Sim.Queues
	for q := range queues {
		if use[q].Commands == 0 || queues[q].LatencyOf != isa.OtherQueue {
			continue // latencies pass without a unit
		}
		at := slices.IndexFunc(list, func(x int) bool { return e.r.QueueWord(queues[x]) == e.r.QueueWord(queues[q]) })
		if at < 0 {
			list = append(list, q)
		} else if more := use[q].BusyPs - use[list[at]].BusyPs; more > 0 || more == 0 && int(queues[q].Cluster) == e.cluster {
			list[at] = q
		}
	}
	return list
}

// what a command does; of a move, over what.
func (e *Explainer) what(c *isa.Command) string {
	if len(c.Uses) == 0 {
		return e.r.CommandWord(c.Kind)
	}
	slowest, _ := e.bottleneck(c)
	return e.r.CommandWord(c.Kind) + " over " + e.r.ResourceWord(*slowest)
}

// Change is a group's part of the critical paths of two schedules of a network.
type Change struct {
	// Group is its name in the schedule that has it, First and Last are its operators.
	Group         string  `json:"group"`
	First         string  `json:"first"`
	Last          string  `json:"last"`
	BeforeSeconds float64 `json:"before_s"`
	AfterSeconds  float64 `json:"after_s"`
	// By are the changes of what its commands do, the largest first.
	By []Difference `json:"by"`
}

// Difference is a part of a change.
type Difference struct {
	What          string  `json:"what"`
	BeforeSeconds float64 `json:"before_s"`
	AfterSeconds  float64 `json:"after_s"`
}

// Compare says where one schedule of a network gains over another one: all changes together are the difference of
// their times. Groups are the same if their operators are; the largest gain comes first.
func Compare(before, after *Explainer) []Change {
	list := []Change{}
	at := map[string]int{}
	for side, e := range []*Explainer{before, after} {
		seconds := func(b, a *float64) *float64 { return [2]*float64{b, a}[side] }
		for _, i := range sim.CriticalPath(e.r.Program, e.r.Sim) {
			kernel, key := &e.kernels[e.owner[i]], ""
			g, of := kernel.Group(), kernel.Schedule.Graph
			c := Change{g.Name, of.Op(g.Ops[0]).Name, of.Op(g.Ops[len(g.Ops)-1]).Name, 0, 0, []Difference{}}
			for _, id := range g.Ops {
				key += of.Op(id).Name + "\n"
			}
			n, ok := at[key]
			if !ok {
				n = len(list)
				at[key], list = n, append(list, c)
			}
			x, what := &list[n], e.what(&e.r.Program.Commands[i])
			d := slices.IndexFunc(x.By, func(d Difference) bool { return d.What == what })
			if d < 0 {
				d, x.By = len(x.By), append(x.By, Difference{What: what})
			}
			took := float64(e.r.Sim.End[i]-e.r.Sim.Start[i]) * second
			*seconds(&x.BeforeSeconds, &x.AfterSeconds) += took
			*seconds(&x.By[d].BeforeSeconds, &x.By[d].AfterSeconds) += took
		}
	}
	for i := range list {
		slices.SortStableFunc(list[i].By, func(a, b Difference) int {
			return cmp.Compare(math.Abs(b.BeforeSeconds-b.AfterSeconds), math.Abs(a.BeforeSeconds-a.AfterSeconds))
		})
	}
	slices.SortStableFunc(list, func(a, b Change) int {
		return cmp.Compare(b.BeforeSeconds-b.AfterSeconds, a.BeforeSeconds-a.AfterSeconds)
	})
	return list
}

func (e *Explainer) instanceName(i int) string {
	inst := &e.s.Instances.Instances[i]
	return fmt.Sprintf("%s/%d", e.s.Grouping.Groups[inst.Group].Name, inst.Index)
}

// Group explains a group.
type Group struct {
	Name       string `json:"name"`
	Operators  int    `json:"operators"`
	First      string `json:"first"`
	Last       string `json:"last"`
	LayerCount int    `json:"layers"`
	Factor     int64  `json:"split_factor"`
	Dim        string `json:"split_dim"` // "": not split
	TooBig     bool   `json:"too_big"`   // for the L1, however it is split
	L1Bytes    int64  `json:"lb_bytes"`  // of the cluster's L1s together, for activations
	// Footprints are the bytes of the largest instance at the factor and at the
	// smaller ones that were possible, from 1 on; along the dimension that is split.
	Footprints []Footprint `json:"footprints"`
	// GroupedBy and SplitBy are the variant's strategies for the decisions, "" where a schedule does not say; groups of
	// clusters that divide the network are by their division.
	GroupedBy string `json:"grouped_by"`
	SplitBy   string `json:"split_by"`
	// Choices lists the options of Algorithm 1; Eq. (1) takes the first. Another strategy may have taken something else.
	Choices []Choice `json:"choices"`
	// Merges lists the merges that made the group, Stops the merges that were refused at its
	// borders. Both are empty if the schedule does not say.
	Merges    []Merge    `json:"merges"`
	Stops     []Merge    `json:"stops"`
	Instances []Instance `json:"runs"`
}

// Footprint is the footprint of the largest instance at a factor.
type Footprint struct {
	Factor int64 `json:"split_factor"`
	Bytes  int64 `json:"bytes"`
	Fits   bool  `json:"fits"`
}

// Choice is a way to split a group.
type Choice struct {
	Dim       string `json:"split_dim"`
	Factor    int64  `json:"split_factor"`
	Operators int    `json:"operators"` // that it splits
	Depth     int    `json:"depth"`     // of the dimension in the loop nest, 0 the outermost
}

// Merge is a decision of the grouping algorithm.
type Merge struct {
	Round    int      `json:"round"`
	Pattern  string   `json:"pattern"`
	Parts    []string `json:"parts"`
	Accepted bool     `json:"accepted"`
	Rule     string   `json:"rule"` // with its numbers; of a refusal, what stood against it
}

func newMerge(ev schedule.MergeEvent) Merge {
	m := Merge{ev.Round, ev.Pattern, append([]string{}, ev.Parts...), ev.Accepted, ev.Rule}
	if !ev.Accepted {
		m.Rule = ev.Reason
	}
	return m
}

// Instance is one run of a piece of a group.
type Instance struct {
	Name     string   `json:"name"`
	Position int      `json:"position"`
	Cores    []int64  `json:"binding"`
	Levels   []string `json:"output_levels"` // where its outputs are, after spilling
	Start    float64  `json:"start_s"`
	Took     float64  `json:"time_s"`
	// What the launch waited for: the command that ended last before it.
	WaitedFor string `json:"waited_for"`
}

// UnknownError says that there is nothing of a name.
type UnknownError struct {
	What, Name string
	Near       []string // names that have it as a part
	Hint       string   // the name it may have meant, if none has it as a part
}

func (e *UnknownError) Error() string {
	if len(e.Near) > 0 {
		return fmt.Sprintf("there is no %s %q; names with it: %s", e.What, e.Name, strings.Join(e.Near, ", "))
	}
	return fmt.Sprintf("there is no %s %q%s", e.What, e.Name, e.Hint)
}

// unknown is the error of a name that none of a list has.
func unknown[T any](what, name string, list []T, nameOf func(T) string) *UnknownError {
	e := &UnknownError{What: what, Name: name}
	var names []string
	for _, x := range list {
		n := nameOf(x)
		names = append(names, n)
		if name != "" && strings.Contains(n, name) && len(e.Near) < 5 {
			e.Near = append(e.Near, n)
		}
	}
	if e.Hint = suggest.Hint(name, names); e.Hint == "" && what == "group" && len(names) > 0 {
		if e.Hint = ", expected " + names[0]; len(names) > 1 {
			e.Hint += " to " + names[len(names)-1]
		}
	}
	return e
}

// Group explains the group of a name.
func (e *Explainer) Group(name string) (*Group, error) {
	g := e.s.Graph
	k := slices.IndexFunc(e.s.Grouping.Groups, func(sg *schedule.SubGraph) bool { return sg.Name == name })
	if k < 0 {
		return nil, unknown("group", name, e.s.Grouping.Groups, func(sg *schedule.SubGraph) string { return sg.Name })
	}
	sg := e.s.Grouping.Groups[k]
	x := &Group{Name: name, Operators: len(sg.Ops), First: g.Op(sg.Ops[0]).Name, Last: g.Op(sg.Ops[len(sg.Ops)-1]).Name,
		LayerCount: len(e.s.Layers[k]),
		GroupedBy:  e.r.By().Pick("group"), SplitBy: e.r.By().Pick("split"), Factor: sg.Factor(),
		TooBig: sg.Split.Factor == schedule.Unsplittable, Footprints: []Footprint{}, Choices: []Choice{}, Merges: []Merge{},
		Stops: []Merge{}, Instances: []Instance{}}
	if e.s.Place != nil {
		x.GroupedBy = "the division of the network by " + e.r.Clusters.Name()
	}
	opt, err := e.opt.SplitOptions(e.s)
	if err != nil {
		return nil, err
	}
	x.L1Bytes = opt.L1Bytes
	splitter := graphturbo.NewSplitter(g, opt)
	out := g.Tensor(sg.Outputs[0])
	dim, factors := sg.SplitDim(), []int64{1}
	if dim >= 0 {
		x.Dim, factors = out.DimName(dim), splitter.Candidates(out.Shape[dim])
	}
	for _, v := range factors {
		if v <= sg.Factor() {
			n := splitter.Footprint(sg.Ops, sg.Outputs, dim, v)
			x.Footprints = append(x.Footprints, Footprint{v, n, n <= opt.L1Bytes})
		}
	}
	infos, _ := splitter.SplitInfo(sg.Ops, sg.Outputs)
	for len(infos) > 0 {
		best := graphturbo.Best(infos)
		c := Choice{Factor: best.Factor, Operators: best.Ops, Depth: best.Depth}
		if best.Dim >= 0 {
			c.Dim = out.DimName(best.Dim)
		}
		x.Choices = append(x.Choices, c)
		infos = slices.DeleteFunc(infos, func(i schedule.SplitInfo) bool { return i == best })
	}
	x.Merges, x.Stops = e.merges(k)
	first, levels, own := e.first(k), map[int][]string{}, e.r.OutputBindings()
	for _, v := range e.s.Values {
		if v.Instance >= 0 && e.s.Instances.Instances[v.Instance].Group == k && slices.Contains(sg.Outputs, v.Tensor) &&
			!slices.Contains(levels[v.Instance], v.Level.Word()) {
			levels[v.Instance] = append(levels[v.Instance], v.Level.Word())
		}
	}
	for pos, i := range e.s.Order {
		inst := &e.s.Instances.Instances[i]
		if inst.Group != k {
			continue
		}
		run := Instance{Name: e.instanceName(i), Position: pos, Cores: append([]int64{}, own[i]...),
			Levels: levels[i]}
		if n, runs := first[i]; runs {
			kernel := &e.kernels[n]
			run.Start, run.Took = float64(kernel.FromPs)*second, float64(kernel.ToPs-kernel.FromPs)*second
			run.WaitedFor = e.cause(kernel.Launch)
		}
		x.Instances = append(x.Instances, run)
	}
	return x, nil
}

// merges lists the events in which group k took part: what it was made of, and what was
// refused between it and another group.
func (e *Explainer) merges(k int) (made, refused []Merge) {
	made, refused = []Merge{}, []Merge{}
	group := map[string]int{}
	for id, op := range e.s.Graph.Ops {
		group[op.Name] = e.groupOf[id]
	}
	for _, ev := range e.s.Grouping.Events {
		own, foreign := false, false
		for _, p := range ev.Parts {
			n, ok := group[p]
			own, foreign = own || ok && n == k, foreign || ok && n != k
		}
		switch {
		case ev.Accepted && own:
			made = append(made, newMerge(ev))
		case !ev.Accepted && own && foreign:
			refused = append(refused, newMerge(ev))
		}
	}
	return made, refused
}

// first has the first kernel of each instance of a group: of the first iteration, of e.s and not of a rest.
func (e *Explainer) first(group int) map[int]int {
	list := map[int]int{}
	for n := range e.kernels {
		kernel := &e.kernels[n]
		if _, known := list[kernel.Instance]; !known && kernel.Schedule.Graph == e.s.Graph && kernel.Group().ID == group {
			list[kernel.Instance] = n
		}
	}
	return list
}

// cause names the command or resource that a command waited for.
func (e *Explainer) cause(i int32) string {
	c := e.causes[i]
	if c < 0 {
		return "nothing"
	}
	return e.describe(c)
}

// describe names a command: what it does, for which layer, and what limits it.
func (e *Explainer) describe(i int32) string {
	p := e.r.Program
	c := &p.Commands[i]
	text := e.r.CommandWord(c.Kind) + " of " + p.Labels[c.Label]
	if c.Kind == isa.Launch {
		text = "the launch of " + p.Labels[c.Label]
	}
	if c.Kind != isa.Launch {
		text += " in " + e.kernels[e.owner[i]].Name()
	}
	if slowest, _ := e.bottleneck(c); slowest != nil {
		text += " over " + e.r.ResourceWord(*slowest)
	}
	return text
}

// Op explains an operator.
type Op struct {
	Name    string   `json:"name"`
	Part    string   `json:"part,omitempty"` // the operator of the network as it is given that is asked for, see Within
	Kind    string   `json:"kind"`
	Group   string   `json:"group"`
	Layer   string   `json:"layer"`
	With    []string `json:"layer_operators"`
	Merges  []Merge  `json:"merges"` // that name it as the end of a part, or group borders beside it
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	Runs    []Run    `json:"runs"` // of its layer
}

// Run is a layer of an instance, in the first iteration.
type Run struct {
	Instance  string  `json:"instance_name"`
	Start     float64 `json:"start_s"`
	Took      float64 `json:"time_s"`
	Tiles     int64   `json:"tiles"`
	StageL1   int64   `json:"stage_bytes"`
	Waited    float64 `json:"waited_s"` // of its first computation, while the unit was idle
	WaitedFor string  `json:"waited_for"`
}

// Within explains the operator in which one of the network as it is given went up: the one that makes the first result
// behind that which the schedule has, too.
func (e *Explainer) Within(given *model.Graph, name string) (*Op, error) {
	made := map[string]model.OpID{}
	for _, t := range e.s.Graph.Tensors {
		made[t.Name] = t.Producer
	}
	next := []model.OpID{}
	for _, op := range given.Ops {
		if op.Name == name {
			next = append(next, op.ID)
		}
	}
	for seen := map[model.OpID]bool{}; len(next) > 0; next = next[1:] {
		for _, t := range given.Op(next[0]).Outputs {
			if id, there := made[given.Tensor(t).Name]; there && id != model.NoOp {
				x, err := e.Op(e.s.Graph.Op(id).Name)
				if err == nil && x.Name != name {
					x.Part = name
				}
				return x, err
			}
			for _, c := range given.Tensor(t).Consumers {
				if !seen[c] {
					seen[c], next = true, append(next, c)
				}
			}
		}
	}
	return e.Op(name)
}

// Op explains the operator of a name. Of several that share one, NAME#2 is the second.
func (e *Explainer) Op(name string) (*Op, error) {
	g := e.s.Graph
	called := func(name string) (list []int) {
		for i, op := range g.Ops {
			if op.Name == name {
				list = append(list, i)
			}
		}
		return list
	}
	alike := called(name)
	if at := strings.LastIndex(name, "#"); len(alike) == 0 && at >= 0 {
		nth, _ := strconv.Atoi(name[at+1:])
		if all := called(name[:at]); nth > 0 && nth <= len(all) {
			alike, name = all[nth-1:nth], name[:at]
		}
	}
	if len(alike) > 1 {
		return nil, fmt.Errorf("%d operators are called %q: give one as %s#1 to %s#%d", len(alike), name,
			name, name, len(alike))
	}
	if len(alike) == 0 {
		return nil, unknown("operator", name, g.Ops, func(op *model.Op) string { return op.Name })
	}
	at := alike[0]
	op := g.Ops[at]
	k, l := e.groupOf[at], e.layerOf[at]
	layer := &e.s.Layers[k][l]
	x := &Op{Name: name, Kind: string(op.Kind), Group: e.s.Grouping.Groups[k].Name, Layer: layer.Name, With: []string{},
		Merges: []Merge{}, Inputs: []string{}, Outputs: []string{}, Runs: []Run{}}
	for _, id := range layer.Ops {
		x.With = append(x.With, g.Op(id).Name)
	}
	for _, t := range op.Inputs {
		x.Inputs = append(x.Inputs, g.Tensor(t).Name)
	}
	for _, t := range op.Outputs {
		x.Outputs = append(x.Outputs, g.Tensor(t).Name)
	}
	for _, ev := range e.s.Grouping.Events {
		if slices.Contains(ev.Parts, name) {
			x.Merges = append(x.Merges, newMerge(ev))
		}
	}
	first := e.first(k)
	p, r := e.r.Program, e.r.Sim
	free := make([]int64, len(p.Queues))
	runs := map[int]*Run{} // by kernel
	var list []*Run
	for i := range p.Commands {
		c := &p.Commands[i]
		kernel := e.owner[i]
		before := free[c.Queue]
		free[c.Queue] = r.End[i]
		inst := e.kernels[kernel].Instance
		if n, runs := first[inst]; !runs || n != kernel || p.Labels[c.Label] != layer.Name || c.Kind == isa.Launch ||
			c.Kind == isa.Barrier {
			continue
		}
		run := runs[kernel]
		if run == nil {
			steps := e.kernels[kernel].Schedule.Steps
			st := steps[slices.IndexFunc(steps, func(st schedule.Step) bool { return st.Instance == inst && st.Layer == l })]
			run = &Run{Instance: e.instanceName(inst), Start: -1, Tiles: max(1, st.Tiles), StageL1: st.StageBytes}
			runs[kernel] = run
			list = append(list, run)
		}
		if !c.Kind.IsCompute() {
			continue
		}
		if run.Start < 0 {
			run.Start = float64(r.Start[i]) * second
			if wait := r.Start[i] - before; wait > 0 {
				run.Waited, run.WaitedFor = float64(wait)*second, e.cause(int32(i))
			}
		}
		run.Took = max(run.Took, float64(r.End[i])*second-run.Start)
	}
	for _, run := range list {
		x.Runs = append(x.Runs, *run)
	}
	return x, nil
}

// Tensor explains a tensor.
type Tensor struct {
	Name     string   `json:"name"`
	Shape    []int64  `json:"shape"`
	DType    string   `json:"dtype"`
	Bytes    int64    `json:"bytes"`
	Role     string   `json:"role"`
	Producer string   `json:"producer"`
	Readers  []string `json:"readers"`
	Places   []Place  `json:"places"` // per instance that makes it; none: it lives within a layer
	Why      string   `json:"why"`
}

// Place is where a part of a tensor lives, from one layer of the order to another.
type Place struct {
	Instance  string `json:"instance_name"`
	Bytes     int64  `json:"bytes"`
	CoreBytes int64  `json:"core_bytes"`
	Wanted    string `json:"wanted"`
	Level     string `json:"level"`
	Address   int64  `json:"address_bytes"`
	From      string `json:"from"` // layer that makes it
	To        string `json:"to"`   // layer that reads it last
	Lives     int    `json:"layers"`
	Spill     *Spill `json:"spill"` // null: not spilled
}

// Spill says why a value had to leave a level.
type Spill struct {
	At            string `json:"at"` // layer that ran when space ran out
	CapacityBytes int64  `json:"capacity_bytes"`
	LiveBytes     int64  `json:"live_bytes"`  // of values then, this one too
	StageBytes    int64  `json:"stage_bytes"` // the least that had to pass through
	Over          int64  `json:"missing_bytes"`
	// Tiles lists the tiles in which the layer could have run beside the live values. If the
	// layer has more weights than the weight buffer, they pass once for each.
	Tiles       int64  `json:"tiles"`
	WeightBytes int64  `json:"weight_bytes"` // of the layer, per core
	BufferBytes int64  `json:"weight_buffer_bytes"`
	Live        []Live `json:"live"` // longest-lived first
	Why         string `json:"why"`
}

// Live is a value that was there when space ran out.
type Live struct {
	Tensor   string `json:"tensor"`
	Instance string `json:"instance_name"`
	Bytes    int64  `json:"bytes"` // per core in the L1
	Lives    int    `json:"layers"`
}

func (e *Explainer) stepName(i int) string {
	switch {
	case i < 0:
		return "the start"
	case i >= len(e.s.Steps):
		return "the end"
	}
	st := &e.s.Steps[i]
	return fmt.Sprintf("%s of %s", e.s.Layers[e.s.Instances.Instances[st.Instance].Group][st.Layer].Name,
		e.instanceName(st.Instance))
}

// Tensor explains the tensor of a name.
func (e *Explainer) Tensor(name string) (*Tensor, error) {
	g := e.s.Graph
	id := slices.IndexFunc(g.Tensors, func(t *model.Tensor) bool { return t.Name == name })
	if id < 0 {
		lost := unknown("tensor", name, g.Tensors, func(t *model.Tensor) string { return t.Name })
		if i := slices.IndexFunc(g.Ops, func(op *model.Op) bool { return op.Name == name }); i >= 0 {
			lost.Near, lost.Hint = nil, fmt.Sprintf("; the operator of that name makes %q", g.Tensor(g.Ops[i].Outputs[0]).Name)
		}
		return nil, lost
	}
	t := g.Tensors[id]
	x := &Tensor{Name: name, Shape: append([]int64{}, t.Shape...), DType: t.DType.String(), Bytes: t.Bytes(),
		Role: t.Role.String(), Readers: []string{}, Places: []Place{}}
	if t.Producer != model.NoOp {
		x.Producer = g.Op(t.Producer).Name
	}
	for _, c := range t.Consumers {
		x.Readers = append(x.Readers, g.Op(c).Name)
	}
	switch {
	case t.Role == model.Constant:
		x.Why = "a constant: it comes from the DDR and passes through the weight buffer of the L1, tile by tile"
		return x, nil
	case t.Role == model.Input:
		x.Why = "a network input: it stands in the DDR"
		return x, nil
	}
	spills := e.spills()
	for i := range e.s.Values {
		v := &e.s.Values[i]
		if int(v.Tensor) != id || v.Instance < 0 {
			continue
		}
		x.Places = append(x.Places, Place{Instance: e.instanceName(v.Instance), Bytes: v.Bytes, CoreBytes: v.CoreBytes,
			Wanted: v.Wanted.Word(), Level: v.Level.Word(),
			Address: v.Address, From: e.stepName(v.Def), To: e.stepName(v.Last), Lives: v.Last - v.Def + 1, Spill: spills[i]})
	}
	switch {
	case len(x.Places) == 0:
		x.Why = "it passes from operator to operator within a layer and is never kept"
	case g.IsOutput(t.ID):
		x.Why = "a network output: it ends in the DDR"
		if slices.ContainsFunc(x.Places, func(p Place) bool { return p.Level != schedule.DDR.Word() }) {
			x.Why = "a network output: it is stored in the DDR, and stays nearer for the layers that read it"
		}
	case slices.ContainsFunc(x.Places, func(p Place) bool { return p.Spill != nil || p.Level != p.Wanted }):
		x.Why = "spilled: there was no room at its wanted level"
	case e.r.Outputs == schedule.L1 &&
		slices.ContainsFunc(x.Places, func(p Place) bool { return p.Wanted == schedule.LLB.Word() }):
		x.Why = "declared in the LLB: its readers ask for different bindings to cores"
	case slices.ContainsFunc(x.Places, func(p Place) bool { return p.Wanted != schedule.L1.Word() }):
		x.Why = "the variant keeps outputs there"
	default:
		x.Why = "it stays in the L1 from the layer that makes it to the last that reads it"
	}
	return x, nil
}

// spills plays the spills again, in their order, and says what each met: by value, the last one of it.
func (e *Explainer) spills() map[int]*Spill {
	s := *e.s
	if s.Place != nil {
		return nil // spills name the steps of each cluster
	}
	s.Values = slices.Clone(e.s.Values)
	for i := range s.Values {
		s.Values[i].Level = s.Values[i].Wanted
		if s.LLBCapacity == 0 && s.Values[i].Level == schedule.LLB {
			s.Values[i].Level = schedule.DDR
		}
	}
	out := map[int]*Spill{}
	for _, sp := range s.Spills {
		st := s.Steps[sp.Step] // a copy: panels count only if they were in use
		st.Nest = nil          // chosen behind the spills
		x := &Spill{At: e.stepName(sp.Step), CapacityBytes: s.L1Capacity, Live: []Live{}}
		if sp.From == schedule.LLB {
			x.CapacityBytes = s.LLBCapacity - graphturbo.LLBReserve(&s)
		}
		for i := range s.Values {
			v := &s.Values[i]
			if v.Instance < 0 || v.Level != sp.From || v.Def > sp.Step || v.Last < sp.Step {
				continue
			}
			n := v.CoreBytes
			if sp.From == schedule.LLB {
				n = schedule.Align(v.Bytes)
			}
			x.LiveBytes += n
			x.Live = append(x.Live, Live{s.Graph.Tensor(v.Tensor).Name, e.instanceName(v.Instance), n, v.Last - v.Def + 1})
		}
		slices.SortStableFunc(x.Live, func(a, b Live) int { return b.Lives - a.Lives })
		if sp.From == schedule.L1 {
			most := st.MostTiles()
			stage := func(tiles int64) (n int64) {
				for _, part := range s.Staged(&st) {
					n += part.Space(tiles)
				}
				return n
			}
			x.StageBytes = stage(most)
			for x.Tiles = 1; x.Tiles < most && x.LiveBytes+stage(x.Tiles) > x.CapacityBytes; {
				x.Tiles = min(most, 2*x.Tiles) // as the memory plan tries them
			}
			for _, r := range st.Params {
				if !r.Rows {
					x.WeightBytes += r.CoreBytes
				}
			}
			x.BufferBytes = s.RingBytes()
		}
		x.Over = max(0, x.LiveBytes+x.StageBytes-x.CapacityBytes)
		switch {
		case x.Over > 0:
			x.Why = "no room"
		case x.Tiles > 1 && x.WeightBytes > x.BufferBytes:
			x.Why = fmt.Sprintf("there was room for the layer in %d tiles, but its weights are larger than their buffer "+
				"and would pass once per tile, which takes longer than the spill", x.Tiles)
		default:
			x.Why = "there was room by bytes, but no free stretch of addresses was long enough"
		}
		s.Values[sp.Value].Level = sp.To
		out[sp.Value] = x
	}
	return out
}
