package schedulefile

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/strict"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Violation is a rule that a schedule breaks.
type Violation struct {
	At   string `json:"at"` // field of the file
	What string `json:"what"`
}

func (v Violation) String() string { return v.At + ": " + v.What }

// builder makes a schedule from a plan and collects what is wrong with it.
type builder struct {
	ctx  context.Context
	plan *Plan
	// cluster is the one whose part is made; -1: one has all.
	cluster int
	at      string
	spec    *hardware.Spec
	busy    int // clusters that have work
	s       *schedule.Schedule
	bad     []Violation
	more    int   // that are not listed
	places  []int // of the instances in the order, once asked for
}

// MaxViolations is the number of violations of a schedule that are listed.
const MaxViolations = 100

func (b *builder) say(field, format string, args ...any) {
	if len(b.bad) == MaxViolations {
		b.more++
		return
	}
	at := b.at
	if field != "" {
		at += "." + field
	}
	b.bad = append(b.bad, Violation{at, fmt.Sprintf(format, args...)})
}

// Build makes schedule i for a machine, which is the raised one where the level of the file is "gb". It is complete but
// for joins and, if the file has none, the memory plan. It is nil if there are violations. Where clusters divide a
// chunk, it is the part of the given one, which else does not matter.
func (f *File) Build(ctx context.Context, i int, spec *hardware.Spec, cluster int) (*schedule.Schedule, []Violation) {
	if f.Division == "" {
		cluster = -1
	}
	b := &builder{ctx: ctx, plan: &f.Schedules[i], cluster: cluster, at: fmt.Sprintf("schedules[%d]", i), spec: spec}
	for _, segments := range f.Clusters {
		if len(segments) > 0 {
			b.busy++
		}
	}
	// Each stage stands on those before.
	for _, stage := range []func(){b.graph, b.groups, b.instances, b.steps, b.memory, b.secondOpinion} {
		if stage(); b.more > 0 {
			return nil, append(b.bad, Violation{b.at, fmt.Sprintf("and %d more", b.more)})
		}
		if len(b.bad) > 0 {
			return nil, b.bad
		}
	}
	return b.s, nil
}

func (b *builder) graph() {
	g, err := b.plan.Graph.build("", b.at)
	if err != nil {
		b.say("graph", "%v", err) // Read has refused it
		return
	}
	b.s = &schedule.Schedule{Graph: g, Spec: b.spec, Busy: b.busy,
		WeightRoom: b.plan.WeightRoom,
		Grouping:   &schedule.Grouping{}}
	if b.plan.Divisors {
		b.s.Slices = schedule.SlicesByDivisors
	} else if b.plan.UnevenCores {
		b.s.Slices = schedule.SlicesUneven
	}
	if n, most := b.plan.Cores, schedule.CoresWithL1(b.spec); n != 0 && (n < 0 || n > most || b.spec.Part(n) == nil) {
		b.say("cores", "is %d, expected 1 to %d on a machine whose cores are in no network, or nothing", n, most)
	} else {
		b.s.Cores = n
	}
	found := len(g.Inputs) == 0
	for _, t := range g.Inputs {
		if s := g.Tensor(t).Shape; len(s) > 0 && s[0]%b.plan.Batch == 0 {
			found = true
		}
	}
	if !found {
		b.say("batch", "is %d, which divides the first extent of no network input", b.plan.Batch)
	}
}

// groups verifies the partition into groups and layers, and the factors.
func (b *builder) groups() {
	s, g := b.s, b.s.Graph
	total, steps := int64(0), int64(0)
	for k, gr := range b.plan.Groups {
		at := fmt.Sprintf("groups[%d]", k)
		s.Grouping.Groups = append(s.Grouping.Groups, &schedule.SubGraph{ID: k, Name: gr.Name, PeakBytes: gr.PeakBytes,
			Ops: b.operators(at+".operators", gr.Ops)})
		layers := make([]schedule.Layer, len(gr.Layers))
		for l, list := range gr.Layers {
			if ops := b.operators(fmt.Sprintf("%s.layers[%d]", at, l), list); len(ops) > 0 {
				layers[l] = schedule.NewLayer(g, ops)
			}
		}
		s.Layers = append(s.Layers, layers)
		total += max(0, min(gr.Factor, maxFactor))
		steps += max(0, min(gr.Factor, maxFactor)) * int64(len(gr.Layers))
	}
	s.Grouping.Partition(g, b.say)
	s.LayerFaults(b.say)
	if total > maxInstances {
		b.say("groups", "the factors make %d instances, at most %d are possible", total, maxInstances)
	}
	if steps > maxSteps {
		b.say("groups", "the instances run %d layers, at most %d are possible", steps, maxSteps)
	}
	if len(b.bad) > 0 {
		return
	}
	for k, gr := range b.plan.Groups {
		sg := b.s.Grouping.Groups[k]
		sg.Inputs, sg.Outputs = schedule.Boundary(g, sg.Ops)
		b.factor(fmt.Sprintf("groups[%d]", k), &gr, sg)
		b.layerTypes(fmt.Sprintf("groups[%d].layer_core_types", k), k, &gr)
		if len(b.bad) > 0 {
			return
		}
		b.layerCores(fmt.Sprintf("groups[%d].layer_cores", k), k, &gr)
	}
	b.s.Grouping.Events = renamed(b.plan.Merges, 0, schedule.Unsplittable)
}

// layerTypes verifies the core types that run a group's layers.
func (b *builder) layerTypes(at string, k int, gr *Group) {
	mixed, n := b.spec.Mixed(), len(b.s.Layers[k])
	if !mixed {
		n = 0
	}
	if len(gr.LayerTypes) != n {
		b.say(at, "has %d entries, expected %d: one for each layer where cores are of several kinds, else none",
			len(gr.LayerTypes), n)
		return
	}
	if !mixed {
		return
	}
	kinds := b.spec.Kinds()
	var own []int
	for l, name := range gr.LayerTypes {
		kind := slices.IndexFunc(kinds, func(t []hardware.CoreType) bool { return t[0].Name == name })
		if kind < 0 {
			b.say(fmt.Sprintf("%s[%d]", at, l), "is %q, which is no core type of %s", name, b.spec.Name)
		}
		own = append(own, max(0, kind))
	}
	b.s.LayerKinds = append(b.s.LayerKinds, own)
}

// layerCores verifies the bindings of a group's layers.
func (b *builder) layerCores(at string, k int, gr *Group) {
	if len(gr.LayerCores) == 0 {
		return
	}
	if n := len(b.s.Layers[k]); len(gr.LayerCores) > n {
		b.say(at, "has %d entries for %d layers", len(gr.LayerCores), n)
		return
	}
	if b.s.LayerBindings == nil {
		b.s.LayerBindings = make([][]schedule.Binding, len(b.plan.Groups))
	}
	for l, list := range gr.LayerCores {
		own := schedule.Binding(list)
		if len(list) == 0 {
			b.s.LayerBindings[k] = append(b.s.LayerBindings[k], nil)
			continue
		}
		b.s.LayerBindings[k] = append(b.s.LayerBindings[k], own)
		rank := 0
		if outs := b.s.Layers[k][l].Outputs; len(outs) > 0 {
			rank = len(b.s.Graph.Tensor(outs[0]).Shape)
		}
		cores := schedule.CoresWithL1(b.spec.Kind(b.s.LayerKind(k, l)))
		left := cores
		for _, f := range list {
			if f < 1 || f > left {
				left = -1
				break
			}
			left /= f
		}
		if len(list) != rank || left < 0 {
			b.say(fmt.Sprintf("%s[%d]", at, l), "is %v, expected %d numbers from 1 on, of at most %d cores together",
				list, rank, cores)
		}
	}
}

// operators converts numbers of operators, and reports numbers that the graph lacks.
func (b *builder) operators(at string, list []int) (ops []model.OpID) {
	for _, o := range list {
		if most := len(b.s.Graph.Ops) - 1; o < 0 || o > most {
			b.say(at, "%d is no operator, expected 0 to %d", o, most)
			continue
		}
		ops = append(ops, model.OpID(o))
	}
	return ops
}

// factor verifies how a group is split.
func (b *builder) factor(at string, gr *Group, sg *schedule.SubGraph) {
	g := b.s.Graph
	sg.Split = schedule.SplitInfo{Ops: len(sg.Ops), Factor: gr.Factor, Dim: -1}
	switch {
	case len(sg.Outputs) == 0:
		b.say(at, "group %q makes nothing that is read outside", gr.Name)
		return
	case gr.Factor < 1 || gr.Factor > maxFactor:
		b.say(at+".factor", "is %d, expected 1 to %d", gr.Factor, maxFactor)
		return
	case gr.Factor == 1:
		if gr.TooBig {
			sg.Split.Factor = schedule.Unsplittable
		}
		return
	case gr.TooBig:
		b.say(at+".too_big", "is for groups that can't be split, group %q is split in %d", gr.Name, gr.Factor)
		return
	case gr.Dim == nil:
		b.say(at+".dim", "is missing, with a factor of %d", gr.Factor)
		return
	}
	d := *gr.Dim
	for _, o := range sg.Outputs {
		t := g.Tensor(o)
		switch {
		case d < 0 || d >= len(t.Shape):
			b.say(at+".dim", "is %d, output %q has %d dimensions", d, t.Name, len(t.Shape))
		case model.Pieces(t.Shape[d], gr.Factor) != gr.Factor:
			b.say(at+".factor",
				"is %d, but extent %d of dimension %d of output %q makes only %d pieces of which the last is the shortest",
				gr.Factor, t.Shape[d], d, t.Name, model.Pieces(t.Shape[d], gr.Factor))
		default:
			continue
		}
		return
	}
	if !schedule.Track(g, sg.Ops, sg.Outputs, d).Splittable {
		b.say(at+".dim",
			"group %q can't be split along dimension %d: it is cut differently in its outputs, or an operator needs all of it at once", gr.Name, d)
		return
	}
	sg.Split = schedule.SplitInfo{Ops: gr.SplitOps, Factor: gr.Factor, Dim: d, Depth: g.Tensor(sg.Outputs[0]).Depth(d)}
}

// find gives the position of an instance, or -1.
func (b *builder) find(group int, index int64) int {
	if group < 0 || group >= len(b.plan.Groups) || index < 0 || index >= b.s.Grouping.Groups[group].Factor() {
		return -1
	}
	return b.s.Instances.First[group] + int(index)
}

// instances verifies order, bindings and scopes.
func (b *builder) instances() {
	s, g := b.s, b.s.Graph
	s.Instances = schedule.NewInstanceGraph(g, s.Grouping)
	n := len(s.Instances.Instances)
	s.Bindings, s.Scopes = make([]schedule.Binding, n), make([]schedule.Level, n)
	cores := schedule.CoresWithL1(b.spec)
	seen := make([]bool, n)
	if b.cluster >= 0 {
		s.Place, s.Cluster = make([]int, n), b.cluster
	}
	if k := len(b.plan.Instances); k > n {
		b.say("instances", "has %d entries for %d instances", k, n)
		return
	}
	for k, x := range b.plan.Instances {
		at := fmt.Sprintf("instances[%d]", k)
		i := b.find(x.Group, x.Index)
		if i < 0 {
			b.say(at, "there is no instance %d of group %d", x.Index, x.Group)
			continue
		}
		if seen[i] {
			b.say(at, "instance %s a second time", b.s.InstanceName(i))
			continue
		}
		seen[i] = true
		sg := s.Grouping.Groups[x.Group]
		out := sg.Outputs[0]
		s.Bindings[i] = schedule.Binding(x.Cores)
		op := g.Op(g.Tensor(out).Producer)
		var forbidden []bool
		for o := range op.Outputs {
			if op.Outputs[o] == out {
				forbidden = g.Sequential(op, o)
			}
		}
		if err := checkBinding(s.Instances.Instances[i].Regions[out], x.Cores, forbidden, cores); err != nil {
			b.say(at+".cores", "%s: %v", b.s.InstanceName(i), err)
		}
		switch {
		case s.Place == nil && x.Cluster != 0:
			b.say(at+".cluster", "is %d, but the clusters divide the batch", x.Cluster)
		case s.Place != nil && (x.Cluster < 0 || x.Cluster >= b.spec.AllClusters()):
			b.say(at+".cluster", "is %d, expected 0 to %d", x.Cluster, b.spec.Clusters-1)
		case s.Place != nil:
			s.Place[i] = x.Cluster
		}
		var ok bool
		if s.Scopes[i], ok = parseLevel(x.Scope); !ok {
			b.say(at+".scope", "is %s, expected lb, gb or ddr", strict.Quote(x.Scope))
		}
	}
	for i, ok := range seen {
		if !ok {
			b.say("instances", "instance %s is missing", b.s.InstanceName(i))
		}
	}

	if k := len(b.plan.Order); k > n {
		b.say("order", "has %d entries for %d instances", k, n)
		return
	}
	at := slices.Repeat([]int{-1}, n) // position in the order
	for pos, x := range b.plan.Order {
		field := fmt.Sprintf("order[%d]", pos)
		i := b.find(x[0], int64(x[1]))
		if i < 0 {
			b.say(field, "there is no instance %d of group %d", x[1], x[0])
			continue
		}
		if at[i] >= 0 {
			b.say(field, "%s runs at position %d already", b.s.InstanceName(i), at[i])
			continue
		}
		at[i] = pos
		s.Order = append(s.Order, i)
	}
	for i := range at {
		if at[i] < 0 {
			b.say("order", "%s does not run", b.s.InstanceName(i))
		}
	}
	for _, i := range s.Order {
		told := map[int]bool{}
		for _, d := range s.Instances.Instances[i].Deps {
			if at[d.From] > at[i] && !told[d.From] {
				told[d.From] = true
				b.say(fmt.Sprintf("order[%d]", at[i]), "%s runs before %s (position %d), of which it reads %d bytes of %q",
					b.s.InstanceName(i), b.s.InstanceName(d.From), at[d.From], d.Bytes, g.Tensor(d.Tensor).Name)
			}
		}
	}
	// Orders of the clusters that come from one of all never wait for each other in a circle.
	s.Order = slices.DeleteFunc(s.Order, s.Away)
	s.OrderName = b.plan.OrderName
	for _, c := range b.plan.Candidates {
		s.Costs = append(s.Costs, schedule.NamedCost{Name: c.Name, Cost: schedule.OrderCost{
			MovedBytes: c.MovedBytes, Utilization: c.Utilization, PeakBytes: c.PeakBytes, OverflowBytes: c.OverflowBytes}})
	}
}

// checkBinding is schedule.CheckBinding for numbers from anywhere.
func checkBinding(r model.Region, cores []int64, forbidden []bool, most int64) error {
	n := int64(1)
	for _, f := range cores {
		if f < 1 || f > most || n*f > most {
			return fmt.Errorf("cores %v, expected numbers of which the product is 1 to %d", cores, most)
		}
		n *= f
	}
	return schedule.CheckBinding(r, cores, forbidden, most)
}

func (b *builder) steps() {
	if err := b.s.BuildSteps(b.ctx, b.plan.OutputLevel()); err != nil {
		b.say("", "%v", err)
	}
}

// secondOpinion asks the check that all schedules of this program pass.
func (b *builder) secondOpinion() {
	check := schedule.Check
	if b.plan.Memory == nil {
		check = schedule.CheckDecisions
	}
	if err := check(b.s); err != nil {
		b.say("", "%v", err)
	}
}

// Check judges a whole file for a machine (see [File.Build]) and returns all the rules that it breaks, as far as later
// ones can be judged when earlier ones are broken.
func Check(ctx context.Context, f *File, spec *hardware.Spec) []Violation {
	bad := f.checkClusters(spec)
	parts := 1
	if f.Division != "" {
		parts = spec.AllClusters()
	}
	for i := range f.Schedules {
		for k := range parts {
			if len(bad) > MaxViolations {
				return bad
			}
			_, found := f.Build(ctx, i, spec, k)
			for _, v := range found {
				if !slices.Contains(bad, v) { // of a part and not of all
					bad = append(bad, v)
				}
			}
		}
	}
	return bad
}

// checkClusters verifies that the clusters together work on the batch.
func (f *File) checkClusters(spec *hardware.Spec) []Violation {
	var bad []Violation
	say := func(at, format string, args ...any) { bad = append(bad, Violation{at, fmt.Sprintf(format, args...)}) }
	if n := len(f.Clusters); n != spec.AllClusters() {
		say("clusters", "%d of them, %q has %d", n, spec.Name, spec.AllClusters())
	}
	sum := int64(0)
	used := make([]bool, len(f.Schedules))
	for k, segments := range f.Clusters {
		for i, seg := range segments {
			at := fmt.Sprintf("clusters[%d][%d]", k, i)
			switch {
			case seg.Schedule < 0 || seg.Schedule >= len(f.Schedules):
				say(at+".schedule", "is %d, expected 0 to %d", seg.Schedule, len(f.Schedules)-1)
			case seg.Iterations < 1 || seg.Iterations > maxCount:
				say(at+".iterations", "is %d, expected 1 to %d", seg.Iterations, maxCount)
			default:
				used[seg.Schedule] = true
				if f.Division == "" || k == 0 {
					sum += seg.Iterations * f.Schedules[seg.Schedule].Batch
				}
			}
		}
	}
	for k, segments := range f.Clusters {
		if f.Division != "" && !slices.Equal(segments, f.Clusters[0]) {
			say(fmt.Sprintf("clusters[%d]", k), "runs other segments than clusters[0], with which it divides each chunk")
		}
	}
	for i, ok := range used {
		if !ok {
			say(fmt.Sprintf("schedules[%d]", i), "no cluster runs it")
		}
	}
	if len(bad) == 0 && sum != f.Batch {
		say("clusters", "they work on %d batch elements, the batch is %d", sum, f.Batch)
	}
	return bad
}
