package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Check runs every check of this package on a complete schedule: the partition into sub-graphs, instances and what they
// read, the order, bindings, and the memory plan. It uses the words of this package (boxes, slices, boundaries), and
// nothing of the decisions that it judges.
func Check(s *Schedule) error {
	if err := CheckDecisions(s); err != nil {
		return err
	}
	return CheckPlan(s)
}

// CheckDecisions is Check of all but steps and memory plan.
func CheckDecisions(s *Schedule) error {
	if err := CheckGrouping(s.Graph, s.Grouping); err != nil {
		return err
	}
	instances := func(s *Schedule) error { return CheckInstances(s.Graph, s.Grouping, s.Instances) }
	for _, check := range []func(*Schedule) error{CheckLayers, CheckKinds, instances, CheckOrder} {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

// TooHeavy is the number of heavy operators a layer has, if they are more than one loop nest executes; else 0.
func TooHeavy(g *model.Graph, ops []model.OpID) (heavy int) {
	for _, id := range ops {
		if c := g.Op(id).Class(); c == model.MatrixClass || c == model.ReductionClass {
			heavy++
		}
	}
	if heavy == 1 || onePass(g, ops) {
		return 0
	}
	return heavy
}

// onePass reports whether a layer is running sums along one axis and sums over others of what they lead to: one loop
// nest, in the order of that axis, which keeps the sums of one position.
func onePass(g *model.Graph, ops []model.OpID) bool {
	axis := int64(-1)
	for _, id := range ops {
		if op := g.Op(id); op.Kind == "CumSum" {
			if axis >= 0 && op.Attr.Axis != axis {
				return false
			}
			axis = op.Attr.Axis
		}
	}
	for _, id := range ops {
		switch op := g.Op(id); op.Class() {
		case model.MatrixClass:
			return false
		case model.ReductionClass:
			if op.Kind != "CumSum" && (op.Kind != "ReduceSum" || slices.Contains(op.Attr.Axes, axis)) {
				return false
			}
		}
	}
	return axis >= 0
}

// Say is called with each rule that is broken: at what of the schedule, in the words of its file, and how.
type Say func(at, format string, args ...any)

// first is the first of what a check says, nil without any.
func first(check func(Say)) (err error) {
	check(func(at, format string, args ...any) {
		if err == nil {
			err = fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...))
		}
	})
	return err
}

// partition verifies lists, at some place each, of the operators of which in is k. done has the list of each, from 1.
func partition(g *model.Graph, in, done []int, k int, lists [][]model.OpID, at func(int) string, say Say) {
	for l, list := range lists {
		if len(list) == 0 {
			say(at(l), "has no operator")
		}
		for _, id := range list {
			op := g.Op(id)
			if in[id] != k {
				say(at(l), "operator %d (%s) is no operator of groups[%d]", id, op.Name, k-1)
				continue
			}
			if done[id] > 0 {
				say(at(l), "operator %d (%s) is in %s already", id, op.Name, at(done[id]-1))
				continue
			}
			for _, t := range op.Inputs {
				if p := g.Tensor(t).Producer; p != model.NoOp && in[p] == k && done[p] == 0 {
					say(at(l), "operator %d (%s) reads %q of operator %d (%s), which comes later", id, op.Name,
						g.Tensor(t).Name, p, g.Op(p).Name)
				}
			}
			done[id] = l + 1
		}
	}
}

// CheckLayers verifies that the layers of each sub-graph partition its operators,
// can run in their order, and hold at most one heavy operator each.
func CheckLayers(s *Schedule) error { return first(s.LayerFaults) }

// LayerFaults says all that [CheckLayers] verifies.
func (s *Schedule) LayerFaults(say Say) {
	g := s.Graph
	if len(s.Layers) != len(s.Grouping.Groups) {
		say("groups", "%d lists of layers for %d groups", len(s.Layers), len(s.Grouping.Groups))
		return
	}
	in, done := make([]int, len(g.Ops)), make([]int, len(g.Ops))
	for k, sg := range s.Grouping.Groups {
		for _, id := range sg.Ops {
			in[id] = k + 1
		}
	}
	for k, sg := range s.Grouping.Groups {
		at := func(l int) string { return fmt.Sprintf("groups[%d].layers[%d]", k, l) }
		var lists [][]model.OpID
		for l := range s.Layers[k] {
			ops := s.Layers[k][l].Ops
			if op := InFront(g, ops); op != nil {
				say(at(l), "operator %d (%s) makes what the layer's product reads, expected it in a layer in front", op.ID,
					op.Name)
			}
			if heavy := TooHeavy(g, ops); heavy > 0 {
				say(at(l), "has %d matrix operators and reductions, expected at most one, or running sums along one axis", heavy)
			}
			lists = append(lists, ops)
		}
		partition(g, in, done, k+1, lists, at, say)
		for _, id := range sg.Ops {
			if in[id] == k+1 && done[id] == 0 {
				say(fmt.Sprintf("groups[%d].layers", k), "operator %d (%s) is in none", id, g.Op(id).Name)
			}
		}
	}
}

// InFront is an operator of a layer, with work of its own, whose result the layer's product needs, which begins
// without it; nil: there is none.
func InFront(g *model.Graph, ops []model.OpID) *model.Op {
	for i, id := range ops {
		if !g.OnMatrixUnit(g.Op(id)) {
			continue
		}
		needed := map[model.TensorID]bool{}
		for _, at := range slices.Backward(ops[:i+1]) {
			op := g.Op(at)
			if at != id && !slices.ContainsFunc(op.Outputs, func(t model.TensorID) bool { return needed[t] }) {
				continue
			}
			if at != id && op.Class() != model.ViewClass {
				return op
			}
			for _, t := range op.Inputs {
				needed[t] = true
			}
		}
	}
	return nil
}

// CheckPlan verifies the memory plan: what [CheckSteps] verifies still holds; every value has one place within its
// level; and no two things in use at the same time share an address.
func CheckPlan(s *Schedule) error {
	if err := CheckSteps(s); err != nil {
		return err
	}
	var err error
	s.Clashes(0, func(_, _ int, format string, args ...any) {
		if err == nil {
			err = fmt.Errorf(format, args...)
		}
	})
	return err
}

// CheckSteps verifies the steps and their values: each step reads everything that its layer needs, from values that
// exist by then and still do, and network outputs end in the DDR.
func CheckSteps(s *Schedule) error {
	g := s.Graph
	var cores []int64 // by kind
	for k := range s.Spec.Kinds() {
		cores = append(cores, CoresWithL1(s.Spec.Kind(k)))
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		inst := &s.Instances.Instances[st.Instance]
		layer := &s.Layers[inst.Group][st.Layer]
		if kind := s.LayerKind(inst.Group, st.Layer); st.Kind != kind {
			return fmt.Errorf("step %d runs on cores of kind %d, its layer on those of kind %d", i, st.Kind, kind)
		}
		reg := Regions{}
		for _, w := range st.Writes {
			v := &s.Values[w]
			if v.Def != i || v.Instance != st.Instance || v.Kind != st.Kind {
				return fmt.Errorf("step %d on cores of kind %d writes value %d, which belongs to step %d on those of kind %d", i,
					st.Kind, w, v.Def, v.Kind)
			}
			if !v.Region.Equal(inst.Regions[v.Tensor]) {
				return fmt.Errorf("step %d writes %v of %q, its instance makes %v", i, v.Region, g.Tensor(v.Tensor).Name,
					inst.Regions[v.Tensor])
			}
			if err := CheckBinding(v.Region, v.Binding, nil, cores[st.Kind]); err != nil {
				return fmt.Errorf("step %d, %q: %w", i, g.Tensor(v.Tensor).Name, err)
			}
			most, sum, room := int64(0), int64(0), make(model.Region, len(v.Region))
			for c := range v.Binding.Cores() {
				n := sliceInto(room, v.Region, v.Binding, g.Tensor(v.Tensor).Layout, c).Elements()
				most, sum = max(most, n), sum+n
			}
			if sum != v.Region.Elements() {
				return fmt.Errorf("step %d: the cores' slices of %q hold %d of %d elements", i, g.Tensor(v.Tensor).Name, sum,
					v.Region.Elements())
			}
			if need := g.Tensor(v.Tensor).DType.Bytes(most); v.CoreBytes < need {
				return fmt.Errorf("step %d: %q takes %d bytes per core, recorded are %d", i, g.Tensor(v.Tensor).Name,
					need, v.CoreBytes)
			}
			reg[v.Tensor] = v.Region
			if s.ReadAway(v.Instance, v.Tensor) && v.Level != DDR {
				return fmt.Errorf("another cluster reads %q of instance %d, which ends in the %v", g.Tensor(v.Tensor).Name,
					v.Instance, v.Level)
			}
			if g.IsOutput(v.Tensor) && v.Level != DDR && v.Last == len(s.Steps) {
				return fmt.Errorf("network output %q, which no step reads, ends in the %v", g.Tensor(v.Tensor).Name, v.Level)
			}
		}
		BackPropagate(g, layer.Ops, reg)
		for _, t := range layer.Inputs {
			need, ok := reg[t]
			if !ok {
				continue
			}
			got := int64(0)
			for _, r := range st.Reads {
				v := &s.Values[r.Value]
				if v.Tensor != t {
					continue
				}
				if v.Def < 0 && v.Instance >= 0 && v.Level != DDR {
					return fmt.Errorf("step %d reads %q of instance %d in the %v, which no step has written", i, g.Tensor(t).Name,
						v.Instance, v.Level)
				}
				if v.Def >= i || v.Last < i {
					return fmt.Errorf("step %d reads %q, which lives from step %d to %d", i, g.Tensor(t).Name, v.Def, v.Last)
				}
				got += need.Overlap(v.Region)
			}
			if got == need.Elements() {
				continue
			}
			// A stride may leave out what lies between the parts of two cores.
			for c := int64(0); c < st.Cores; c++ {
				own := Regions{}
				for _, w := range st.Writes {
					v := &s.Values[w]
					if r := Slice(v.Region, v.Binding, g.Tensor(v.Tensor).Layout, c); r != nil {
						own[v.Tensor] = r
					}
				}
				BackPropagate(g, layer.Ops, own)
				got := int64(0)
				for _, r := range st.Reads {
					if v := &s.Values[r.Value]; v.Tensor == t {
						got += own[t].Overlap(v.Region)
					}
				}
				if got != own[t].Elements() {
					return fmt.Errorf("step %d (%s): core %d finds %d of the %d elements that it needs of %q", i, layer.Name, c, got,
						own[t].Elements(), g.Tensor(t).Name)
				}
			}
		}
	}
	for _, o := range g.Outputs {
		written := int64(0)
		for i := range s.Values {
			if v := &s.Values[i]; v.Tensor == o && v.Def >= 0 {
				written += v.Region.Elements()
			}
		}
		t := g.Tensor(o)
		all := t.Shape.Elements()
		for i := range s.Instances.Instances {
			if inst := &s.Instances.Instances[i]; s.Away(i) && slices.Contains(s.Grouping.Groups[inst.Group].Outputs, o) {
				all -= inst.Regions[o].Elements()
			}
		}
		if t.Role == model.Activation && written != all {
			return fmt.Errorf("%d of the %d elements of network output %q are written", written, all, t.Name)
		}
	}
	return nil
}

// Clashes reports what leaves its memory, of which values leave so many bytes of the LLB, and any two things that share
// an address while both are in use. Each is about a value, or with -1 about the stage or the nest of a step.
func (s *Schedule) Clashes(reserve int64, say func(value, step int, format string, args ...any)) {
	type use struct {
		lo, hi     int64
		start, end int // steps, inclusive
		value      int // -1: the stage of the step that it starts with
	}
	name := func(u use) string {
		if u.value < 0 {
			return "the stage of " + s.layerName(u.start)
		}
		v := &s.Values[u.value]
		return fmt.Sprintf("%q of %s", s.Graph.Tensor(v.Tensor).Name, s.InstanceName(v.Instance))
	}
	var uses [2][]use // by level
	for i := range s.Values {
		v := &s.Values[i]
		if v.Def < 0 || v.Level == DDR {
			continue
		}
		size := v.CoreBytes
		if v.Level == LLB {
			size = v.Bytes
		}
		uses[v.Level] = append(uses[v.Level], use{v.Address, v.Address + size, v.Def, v.Last, i})
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Nest.Blocked() {
			if err := s.CheckRing(st); err != nil {
				say(-1, i, "the nest of %s %v", s.layerName(i), err)
			}
		}
		if st.StageBytes == 0 {
			continue
		}
		u := use{st.StageAddress, st.StageAddress + st.StageBytes, i, i, -1}
		if end := s.DataEnd(st); end != s.L1Capacity {
			if u.hi > end {
				say(-1, i, "%s at [%d, %d) leaves the %d bytes in front of its ring of weights", name(u), u.lo, u.hi, end)
			}
			u.hi = min(u.hi, s.L1Capacity)
		}
		uses[L1] = append(uses[L1], u)
	}
	for l, capacity := range [...]int64{L1: s.L1Capacity, LLB: s.LLBCapacity - reserve} {
		level, list := Level(l), uses[l]
		for _, u := range list {
			if u.lo < 0 || u.hi > capacity || u.hi < u.lo {
				say(u.value, u.start, "%s at [%d, %d) leaves the %d bytes of the %v that values may take", name(u), u.lo, u.hi,
					capacity, level)
			}
		}
		// Sweep over steps; few things are alive at a time.
		slices.SortStableFunc(list, func(a, b use) int { return cmp.Compare(a.start, b.start) })
		var alive []use
		for _, u := range list {
			alive = slices.DeleteFunc(alive, func(o use) bool { return o.end < u.start })
			for _, o := range alive {
				if o.lo < u.hi && u.lo < o.hi && (o.value < 0 || u.value < 0 || !s.Replaces(u.value, o.value)) {
					say(u.value, u.start, "%s at [%d, %d) of the %v overlaps %s at [%d, %d) while %s runs", name(u), u.lo, u.hi,
						level, name(o), o.lo, o.hi, s.layerName(u.start))
				}
			}
			alive = append(alive, u)
		}
	}
}

// InstanceName writes an instance as group/index.
func (s *Schedule) InstanceName(i int) string {
	inst := &s.Instances.Instances[i]
	return fmt.Sprintf("%s/%d", s.Grouping.Groups[inst.Group].Name, inst.Index)
}

func (s *Schedule) layerName(step int) string {
	return fmt.Sprintf("layer %d of %s", s.Steps[step].Layer, s.InstanceName(s.Steps[step].Instance))
}
