package schedulefile

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Fingerprint identifies a description of an accelerator: a hash of all that is in one
// but its prose.
func Fingerprint(spec *hardware.Spec) string {
	s := *spec
	s.Description = ""
	data, err := json.Marshal(s)
	if err != nil {
		panic("schedulefile: " + err.Error()) // numbers and texts
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:16]
}

// NewPlan puts a schedule of a chunk of batch elements into the words of the file.
// want is the level that [schedule.Schedule.BuildSteps] was given. Whatever the
// schedule shares with its makers is copied.
func NewPlan(s *schedule.Schedule, batch int64, want schedule.Level) Plan {
	p := Plan{Batch: batch, Graph: newGraph(s.Graph), Outputs: levelNames[want], OrderName: s.OrderName,
		Groups: []Group{}, Instances: []Instance{}, Order: [][2]int{}, Memory: &Memory{Values: []Value{}, Stages: []Stage{}}}
	for k, sg := range s.Grouping.Groups {
		g := Group{Name: sg.Name, Ops: numbers(sg.Ops), Layers: [][]int{}, Factor: sg.Factor(), PeakBytes: sg.PeakBytes,
			TooBig: sg.Split.Factor == schedule.Unsplittable}
		for _, l := range s.Layers[k] {
			g.Layers = append(g.Layers, numbers(l.Ops))
		}
		if d := sg.SplitDim(); d >= 0 {
			g.Dim, g.SplitOps = &d, sg.Split.Ops
		}
		p.Groups = append(p.Groups, g)
	}
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		p.Instances = append(p.Instances, Instance{inst.Group, inst.Index, append([]int64{}, s.Bindings[i]...), levelNames[s.Scopes[i]]})
	}
	for _, i := range s.Order {
		inst := &s.Instances.Instances[i]
		p.Order = append(p.Order, [2]int{inst.Group, int(inst.Index)})
	}
	for _, c := range s.Costs {
		p.Candidates = append(p.Candidates, Candidate{c.Name, c.Cost.MovedBytes, c.Cost.Utilization, c.Cost.PeakBytes, c.Cost.OverflowBytes})
	}
	for i := range s.Values {
		v := &s.Values[i]
		if v.Instance < 0 {
			continue
		}
		inst := &s.Instances.Instances[v.Instance]
		x := Value{Group: inst.Group, Index: inst.Index, Tensor: int(v.Tensor), Level: levelNames[v.Level]}
		if v.Wanted != v.Level {
			x.Wanted = levelNames[v.Wanted]
		}
		if v.Level != schedule.DDR {
			at := v.Address
			x.Address = &at
		}
		p.Memory.Values = append(p.Memory.Values, x)
	}
	for i := range s.Steps {
		if st := &s.Steps[i]; st.StageBytes > 0 {
			inst := &s.Instances.Instances[st.Instance]
			p.Memory.Stages = append(p.Memory.Stages, Stage{inst.Group, inst.Index, st.Layer, max(1, st.Tiles), st.Panels, st.StageAddress})
		}
	}
	for _, sp := range s.Spills {
		v, st := &s.Values[sp.Value], &s.Steps[sp.Step]
		inst, at := &s.Instances.Instances[v.Instance], &s.Instances.Instances[st.Instance]
		p.Memory.Spills = append(p.Memory.Spills, Spill{inst.Group, inst.Index, int(v.Tensor), levelNames[sp.From], levelNames[sp.To],
			[3]int64{int64(at.Group), at.Index, int64(st.Layer)}})
	}
	for _, e := range s.Grouping.Events {
		m := Merge{e.Round, e.Pattern, append([]string{}, e.Parts...), []int64{}, finite(e.Merged), e.Rule, e.Accepted, e.Reason}
		for _, f := range e.Factors {
			m.Factors = append(m.Factors, finite(f))
		}
		p.Merges = append(p.Merges, m)
	}
	return p
}

// finite writes "can't be split" as 0, since not all readers have 64 bits.
func finite(factor int64) int64 {
	if factor == schedule.Unsplittable {
		return 0
	}
	return factor
}

func infinite(factor int64) int64 {
	if factor == 0 {
		return schedule.Unsplittable
	}
	return factor
}

func numbers[T ~int](ids []T) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

func newGraph(g *model.Graph) Graph {
	gr := Graph{Name: g.Name, Inputs: numbers(g.Inputs), Outputs: numbers(g.Outputs), Tensors: []Tensor{}, Ops: []Operator{}}
	for i, t := range g.Tensors {
		gr.Tensors = append(gr.Tensors, Tensor{i, t.Name, append([]int64{}, t.Shape...), t.DType.String(), t.Role.String(), t.Learned, append([]int64(nil), t.Ints...)})
	}
	for i, op := range g.Ops {
		o := Operator{ID: i, Name: op.Name, Kind: string(op.Kind), Inputs: numbers(op.Inputs), Outputs: numbers(op.Outputs)}
		a := op.Attr
		attr := Attribute{a.Kernel, a.Strides, a.Dilations, a.Pads, a.Group, a.CeilMode, a.Axis, a.Axes, a.KeepDims, a.Perm, a.TransA, a.TransB,
			a.Shape, a.Splits, a.Starts, a.Steps, a.OutputPadding, a.Variant}
		if data, err := json.Marshal(attr); err != nil || string(data) != "{}" {
			o.Attr = &attr
		}
		gr.Ops = append(gr.Ops, o)
	}
	return gr
}

// A Violation is a rule that a schedule breaks.
type Violation struct {
	At   string `json:"at"` // field of the file
	What string `json:"what"`
}

func (v Violation) String() string { return v.At + ": " + v.What }

// builder makes a schedule from a plan and collects what is wrong with it.
type builder struct {
	plan   *Plan
	at     string
	spec   *hardware.Spec
	s      *schedule.Schedule
	bad    []Violation
	places []int // of the instances in the order, once asked for
}

func (b *builder) say(field, format string, args ...any) {
	at := b.at
	if field != "" {
		at += "." + field
	}
	b.bad = append(b.bad, Violation{at, fmt.Sprintf(format, args...)})
}

// Build makes schedule i for a machine, which is the raised one where the level of
// the file is "gb". It is complete but for joins and, if the file has none, the
// memory plan. It is nil if there are violations.
func (f *File) Build(i int, spec *hardware.Spec) (*schedule.Schedule, []Violation) {
	b := &builder{plan: &f.Schedules[i], at: fmt.Sprintf("schedules[%d]", i), spec: spec}
	// Each stage stands on those before.
	for _, stage := range []func(){b.graph, b.groups, b.instances, b.steps, b.memory, b.secondOpinion} {
		if stage(); len(b.bad) > 0 {
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
	b.s = &schedule.Schedule{Graph: g, Spec: b.spec, Grouping: &schedule.Grouping{}}
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
	g := b.s.Graph
	owner := make([]int, len(g.Ops)) // group + 1
	total, steps := int64(0), int64(0)
	for k, gr := range b.plan.Groups {
		at := fmt.Sprintf("groups[%d]", k)
		sg := &schedule.SubGraph{ID: k, Name: gr.Name, PeakBytes: gr.PeakBytes}
		done := map[model.OpID]bool{}
		if len(gr.Ops) == 0 {
			b.say(at+".operators", "group %q has none", gr.Name)
		}
		for _, o := range gr.Ops {
			if o < 0 || o >= len(g.Ops) {
				b.say(at+".operators", "%d is no operator, expected 0 to %d", o, len(g.Ops)-1)
				continue
			}
			op := g.Op(model.OpID(o))
			if owner[o] > 0 {
				b.say(at+".operators", "operator %d (%s) is in group %q already", o, op.Name, b.plan.Groups[owner[o]-1].Name)
				continue
			}
			owner[o] = k + 1
			for _, t := range op.Inputs {
				if p := g.Tensor(t).Producer; p != model.NoOp && (owner[p] == 0 || owner[p] == k+1 && !done[p]) {
					b.say(at+".operators", "operator %d (%s) reads %q of operator %d (%s), which comes later", o, op.Name, g.Tensor(t).Name, p, g.Op(p).Name)
				}
			}
			done[op.ID] = true
			sg.Ops = append(sg.Ops, op.ID)
		}
		b.s.Grouping.Groups = append(b.s.Grouping.Groups, sg)
		b.s.Layers = append(b.s.Layers, b.layers(at, &gr, done))
		total += max(0, min(gr.Factor, maxFactor))
		steps += max(0, min(gr.Factor, maxFactor)) * int64(len(gr.Layers))
	}
	for o, k := range owner {
		if k == 0 {
			b.say("groups", "operator %d (%s) is in none", o, g.Ops[o].Name)
		}
	}
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
	}
	for _, e := range b.plan.Merges {
		ev := schedule.MergeEvent{Round: e.Round, Pattern: e.Pattern, Parts: e.Parts, Merged: infinite(e.Merged), Rule: e.Rule, Accepted: e.Accepted, Reason: e.Reason}
		for _, f := range e.Factors {
			ev.Factors = append(ev.Factors, infinite(f))
		}
		b.s.Grouping.Events = append(b.s.Grouping.Events, ev)
	}
}

func (b *builder) layers(at string, gr *Group, in map[model.OpID]bool) []schedule.Layer {
	g := b.s.Graph
	var layers []schedule.Layer
	done := map[model.OpID]bool{}
	for l, list := range gr.Layers {
		field := fmt.Sprintf("%s.layers[%d]", at, l)
		var ops []model.OpID
		heavy := 0
		for _, o := range list {
			id := model.OpID(o)
			switch {
			case !in[id]:
				b.say(field, "%d is no operator of group %q", o, gr.Name)
				continue
			case done[id]:
				b.say(field, "operator %d (%s) is in a layer already", o, g.Op(id).Name)
				continue
			}
			op := g.Op(id)
			for _, t := range op.Inputs {
				if p := g.Tensor(t).Producer; p != model.NoOp && in[p] && !done[p] {
					b.say(field, "operator %d (%s) reads %q of operator %d (%s), which comes later", o, op.Name, g.Tensor(t).Name, p, g.Op(p).Name)
				}
			}
			if c := op.Class(); c == model.MatrixClass || c == model.ReductionClass {
				heavy++
			}
			done[id] = true
			ops = append(ops, id)
		}
		if len(list) == 0 {
			b.say(field, "has no operator")
			continue
		}
		if heavy > 1 {
			b.say(field, "has %d matrix operators and reductions, expected at most one", heavy)
		}
		if len(ops) > 0 {
			layers = append(layers, schedule.NewLayer(g, ops))
		}
	}
	for _, o := range gr.Ops {
		if id := model.OpID(o); in[id] && !done[id] {
			b.say(at+".layers", "operator %d (%s) is in none", o, g.Op(id).Name)
			done[id] = true
		}
	}
	return layers
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
		case t.Shape[d]%gr.Factor != 0:
			b.say(at+".factor", "%d does not divide extent %d of dimension %d of output %q", gr.Factor, t.Shape[d], d, t.Name)
		default:
			continue
		}
		return
	}
	if !schedule.Track(g, sg.Ops, sg.Outputs, d).Splittable {
		b.say(at+".dim", "group %q can't be split along dimension %d: it is cut differently in its outputs, or an operator needs all of it at once", gr.Name, d)
		return
	}
	sg.Split = schedule.SplitInfo{Ops: gr.SplitOps, Factor: gr.Factor, Dim: d, Depth: g.Tensor(sg.Outputs[0]).Depth(d)}
}

// name writes an instance as group/index.
func (b *builder) name(i int) string {
	inst := &b.s.Instances.Instances[i]
	return fmt.Sprintf("%s/%d", b.s.Grouping.Groups[inst.Group].Name, inst.Index)
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
	cores := schedule.CoresWithLB(b.spec)
	seen := make([]bool, n)
	for k, x := range b.plan.Instances {
		at := fmt.Sprintf("instances[%d]", k)
		i := b.find(x.Group, x.Index)
		if i < 0 {
			b.say(at, "there is no instance %d of group %d", x.Index, x.Group)
			continue
		}
		if seen[i] {
			b.say(at, "instance %s a second time", b.name(i))
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
			b.say(at+".cores", "%s: %v", b.name(i), err)
		}
		var ok bool
		if s.Scopes[i], ok = parseLevel(x.Scope); !ok {
			b.say(at+".scope", "is %s, expected lb, gb or ddr", printable(x.Scope))
		}
	}
	for i, ok := range seen {
		if !ok {
			b.say("instances", "instance %s is missing", b.name(i))
		}
	}

	at := make([]int, n) // position in the order
	for i := range at {
		at[i] = -1
	}
	for pos, x := range b.plan.Order {
		field := fmt.Sprintf("order[%d]", pos)
		i := b.find(x[0], int64(x[1]))
		if i < 0 {
			b.say(field, "there is no instance %d of group %d", x[1], x[0])
			continue
		}
		if at[i] >= 0 {
			b.say(field, "%s runs at position %d already", b.name(i), at[i])
			continue
		}
		at[i] = pos
		s.Order = append(s.Order, i)
	}
	for i := range at {
		if at[i] < 0 {
			b.say("order", "%s does not run", b.name(i))
		}
	}
	for _, i := range s.Order {
		told := map[int]bool{}
		for _, d := range s.Instances.Instances[i].Deps {
			if at[d.From] > at[i] && !told[d.From] {
				told[d.From] = true
				b.say(fmt.Sprintf("order[%d]", at[i]), "%s runs before %s (position %d), of which it reads %d bytes of %q",
					b.name(i), b.name(d.From), at[d.From], d.Bytes, g.Tensor(d.Tensor).Name)
			}
		}
	}
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
	if err := b.s.BuildSteps(b.plan.OutputLevel()); err != nil {
		b.say("", "%v", err)
	}
}

// reserve is the part of the GB that values must leave free, for weights and
// transfers on their way.
func reserve(capacity int64) int64 { return capacity / 16 }

// memory takes over and verifies the memory plan.
func (b *builder) memory() {
	s, g := b.s, b.s.Graph
	if b.plan.Memory == nil {
		return
	}
	s.LBCapacity = schedule.DataBytes(b.spec)
	if b.spec.GB != nil {
		s.GBCapacity = int64(b.spec.GB.SizeBytes)
	}
	type key struct {
		instance int
		tensor   model.TensorID
	}
	values := map[key]int{}
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 {
			values[key{v.Instance, v.Tensor}] = i
		}
	}
	valueName := func(v *schedule.Value) string {
		return fmt.Sprintf("%q of %s", g.Tensor(v.Tensor).Name, b.name(v.Instance))
	}
	find := func(at string, group int, index int64, tensor int) int {
		i := b.find(group, index)
		if i < 0 {
			b.say(at, "there is no instance %d of group %d", index, group)
			return -1
		}
		v, ok := values[key{i, model.TensorID(tensor)}]
		if !ok {
			b.say(at, "%s keeps no tensor %d from layer to layer", b.name(i), tensor)
			return -1
		}
		return v
	}
	field := make([]string, len(s.Values))
	for k, x := range b.plan.Memory.Values {
		at := fmt.Sprintf("memory.values[%d]", k)
		i := find(at, x.Group, x.Index, x.Tensor)
		if i < 0 {
			continue
		}
		v := &s.Values[i]
		if field[i] != "" {
			b.say(at, "%s has a place in %s already", valueName(v), field[i])
			continue
		}
		field[i] = at
		level, ok := parseLevel(x.Level)
		if !ok {
			b.say(at+".level", "is %s, expected lb, gb or ddr", printable(x.Level))
			continue
		}
		wanted := level
		if x.Wanted != "" {
			if wanted, ok = parseLevel(x.Wanted); !ok {
				b.say(at+".wanted", "is %s, expected lb, gb or ddr", printable(x.Wanted))
			}
		}
		v.Level, v.Wanted = level, wanted
		switch {
		case level == schedule.DDR && x.Address != nil:
			b.say(at+".address", "%s is in the DDR, where nothing has an address", valueName(v))
		case level == schedule.DDR:
			v.Address = 0
		case x.Address == nil:
			b.say(at+".address", "is missing: %s is in the %v", valueName(v), level)
		case *x.Address < 0 || *x.Address%64 != 0:
			b.say(at+".address", "is %d, expected a multiple of 64", *x.Address)
		default:
			v.Address = *x.Address
		}
		switch {
		case level == schedule.GB && s.GBCapacity == 0:
			b.say(at+".level", "%s is in the LLB, which %q does not have", valueName(v), b.spec.Name)
		case g.IsOutput(v.Tensor) && level != schedule.DDR:
			b.say(at+".level", "network output %s ends in the %v, expected the DDR", valueName(v), level)
		}
	}
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 && field[i] == "" {
			b.say("memory.values", "%s has no place", valueName(v))
		}
	}
	if len(b.bad) > 0 {
		return
	}
	b.stages()
	for k, x := range b.plan.Memory.Spills {
		at := fmt.Sprintf("memory.spills[%d]", k)
		v, st := find(at, x.Group, x.Index, x.Tensor), b.step(at+".at", int(x.AtLayer[0]), x.AtLayer[1], int(x.AtLayer[2]))
		from, ok1 := parseLevel(x.From)
		to, ok2 := parseLevel(x.To)
		if !ok1 || !ok2 {
			b.say(at, "from %s to %s, expected lb, gb or ddr", printable(x.From), printable(x.To))
		}
		if v >= 0 && st >= 0 {
			s.Spills = append(s.Spills, schedule.Spill{Value: v, From: from, To: to, Step: st, Bytes: s.Values[v].Bytes})
		}
	}
	b.overlaps(field)
}

// step finds the step that runs a layer of an instance, or -1.
func (b *builder) step(at string, group int, index int64, layer int) int {
	i := b.find(group, index)
	if i < 0 {
		b.say(at, "there is no instance %d of group %d", index, group)
		return -1
	}
	k := sort.Search(len(b.s.Steps), func(k int) bool { return b.stepPosition(k) >= b.position(i) })
	for ; k < len(b.s.Steps) && b.s.Steps[k].Instance == i; k++ {
		if b.s.Steps[k].Layer == layer {
			return k
		}
	}
	b.say(at, "%s runs no layer %d", b.name(i), layer)
	return -1
}

func (b *builder) position(instance int) int {
	if b.places == nil {
		b.places = make([]int, len(b.s.Order))
		for pos, i := range b.s.Order {
			b.places[i] = pos
		}
	}
	return b.places[instance]
}

func (b *builder) stepPosition(step int) int { return b.position(b.s.Steps[step].Instance) }

// stages takes over what is said of the LB space that things pass through.
func (b *builder) stages() {
	s := b.s
	field := make([]string, len(s.Steps))
	for k, x := range b.plan.Memory.Stages {
		at := fmt.Sprintf("memory.stages[%d]", k)
		i := b.step(at, x.Group, x.Index, x.Layer)
		if i < 0 {
			continue
		}
		st := &s.Steps[i]
		if field[i] != "" {
			b.say(at, "layer %d of %s has a stage in %s already", x.Layer, b.name(st.Instance), field[i])
			continue
		}
		field[i] = at
		most := int64(1)
		for _, iv := range st.CoreOutput {
			most *= iv.Len()
		}
		if x.Tiles < 1 || x.Tiles > most {
			b.say(at+".tiles", "is %d, expected 1 to %d, the elements that a core makes", x.Tiles, most)
			continue
		}
		if x.Address < 0 || x.Address%64 != 0 {
			b.say(at+".address", "is %d, expected a multiple of 64", x.Address)
		}
		st.Tiles, st.Panels, st.StageAddress = x.Tiles, x.Panels, x.Address
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		st.Tiles = max(1, st.Tiles)
		for _, p := range s.Staged(st) {
			st.StageBytes += p.Space(st.Tiles)
		}
		switch {
		case st.StageBytes > 0 && field[i] == "":
			b.say("memory.stages", "layer %d of %s has none: %d bytes pass through the L1", st.Layer, b.name(st.Instance), st.StageBytes)
		case st.StageBytes == 0 && field[i] != "":
			b.say(field[i], "nothing passes through the L1 in layer %d of %s", st.Layer, b.name(st.Instance))
		}
	}
}

// overlaps verifies capacities, and that no two things share an address at a time.
func (b *builder) overlaps(field []string) {
	s, g := b.s, b.s.Graph
	type use struct {
		lo, hi     int64
		start, end int // steps, inclusive
		at, name   string
	}
	var lists [2][]use
	for i := range s.Values {
		v := &s.Values[i]
		if v.Instance < 0 || v.Level == schedule.DDR {
			continue
		}
		size := v.CoreBytes
		if v.Level == schedule.GB {
			size = schedule.Align(v.Bytes)
			s.GBActivationBytes = max(s.GBActivationBytes, v.Address+size)
		}
		lists[v.Level] = append(lists[v.Level], use{v.Address, v.Address + size, v.Def, v.Last, field[i],
			fmt.Sprintf("%q of %s", g.Tensor(v.Tensor).Name, b.name(v.Instance))})
	}
	for i := range s.Steps {
		if st := &s.Steps[i]; st.StageBytes > 0 {
			lists[schedule.LB] = append(lists[schedule.LB], use{st.StageAddress, st.StageAddress + st.StageBytes, i, i, "memory.stages",
				fmt.Sprintf("the stage of layer %d of %s", st.Layer, b.name(st.Instance))})
		}
	}
	for l, capacity := range [2]int64{s.LBCapacity, s.GBCapacity - reserve(s.GBCapacity)} {
		level, list := schedule.Level(l), lists[l]
		for _, u := range list {
			if u.hi > capacity || u.hi < u.lo {
				b.say(u.at, "%s at [%d, %d) leaves the %d bytes of the %v that values may take", u.name, u.lo, u.hi, capacity, level)
			}
		}
		sort.SliceStable(list, func(i, j int) bool { return list[i].start < list[j].start })
		var alive []use
		for _, u := range list {
			kept := alive[:0]
			for _, o := range alive {
				if o.end >= u.start {
					kept = append(kept, o)
				}
			}
			for _, o := range kept {
				if o.lo < u.hi && u.lo < o.hi {
					b.say(u.at, "%s at [%d, %d) of the %v overlaps %s at [%d, %d) (%s) while layer %d of %s runs",
						u.name, u.lo, u.hi, level, o.name, o.lo, o.hi, o.at, s.Steps[u.start].Layer, b.name(s.Steps[u.start].Instance))
				}
			}
			alive = append(kept, u)
		}
	}
}

// secondOpinion asks the check that all schedules of this program pass.
func (b *builder) secondOpinion() {
	check := schedule.Check
	if b.plan.Memory == nil {
		check = func(s *schedule.Schedule) error {
			for _, err := range []error{schedule.CheckGrouping(s.Graph, s.Grouping), schedule.CheckLayers(s),
				schedule.CheckInstances(s.Graph, s.Grouping, s.Instances), schedule.CheckOrder(s.Instances, s.Order)} {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	if err := check(b.s); err != nil {
		b.say("", "%v", err)
	}
}

// Check judges a whole file for a machine (see [File.Build]) and returns all the
// rules that it breaks, as far as later ones can be judged when earlier ones are
// broken.
func Check(f *File, spec *hardware.Spec) []Violation {
	bad := f.checkClusters(spec)
	for i := range f.Schedules {
		_, v := f.Build(i, spec)
		bad = append(bad, v...)
	}
	return bad
}

// checkClusters verifies that the clusters together work on the batch.
func (f *File) checkClusters(spec *hardware.Spec) []Violation {
	var bad []Violation
	say := func(at, format string, args ...any) { bad = append(bad, Violation{at, fmt.Sprintf(format, args...)}) }
	if n := len(f.Clusters); n != spec.Clusters {
		say("clusters", "%d of them, %q has %d", n, spec.Name, spec.Clusters)
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
				sum += seg.Iterations * f.Schedules[seg.Schedule].Batch
			}
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
