package schedulefile

import (
	"fmt"
	"sort"
	"strings"

	"github.com/dsasched/dsasched/internal/strict"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// reserve is the part of the LLB that values must leave free, for weights and transfers on their way.
func reserve(capacity int64) int64 { return capacity / 16 }

// memory takes over and verifies the memory plan.
func (b *builder) memory() {
	s, g := b.s, b.s.Graph
	if b.plan.Memory == nil {
		b.nests()
		return
	}
	s.L1Capacity = s.WeightRoom.DataBytes(b.spec)
	if b.spec.LLB != nil {
		s.LLBCapacity = int64(b.spec.LLB.SizeBytes)
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
		return fmt.Sprintf("%q of %s", g.Tensor(v.Tensor).Name, b.s.InstanceName(v.Instance))
	}
	find := func(at string, group int, index int64, tensor int) int {
		i := b.find(group, index)
		if i < 0 {
			b.say(at, "there is no instance %d of group %d", index, group)
			return -1
		}
		v, ok := values[key{i, model.TensorID(tensor)}]
		if !ok {
			b.say(at, "%s keeps no tensor %d from layer to layer", b.s.InstanceName(i), tensor)
			return -1
		}
		return v
	}
	field := make([]string, len(s.Values))
	for k, x := range b.plan.Memory.Values {
		at := fmt.Sprintf("memory.values[%d]", k)
		if b.away(x.Group, x.Index) {
			continue
		}
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
			b.say(at+".level", "is %s, expected lb, gb or ddr", strict.Quote(x.Level))
			continue
		}
		wanted := level
		if x.Wanted != "" {
			if wanted, ok = parseLevel(x.Wanted); !ok {
				b.say(at+".wanted", "is %s, expected lb, gb or ddr", strict.Quote(x.Wanted))
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
		case level == schedule.LLB && s.LLBCapacity == 0:
			b.say(at+".level", "%s is in the LLB, which %q does not have", valueName(v), b.spec.Name)
		case g.IsOutput(v.Tensor) && level != schedule.DDR && v.Last == len(s.Steps):
			b.say(at+".level", "network output %s, which no layer reads, ends in the %v, expected the DDR", valueName(v),
				level)
		}
	}
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 && !s.Away(v.Instance) && field[i] == "" {
			b.say("memory.values", "%s has no place", valueName(v))
		}
	}
	if len(b.bad) > 0 {
		return
	}
	b.stages()
	for k, x := range b.plan.Memory.Spills {
		at := fmt.Sprintf("memory.spills[%d]", k)
		if b.away(x.Group, x.Index) {
			continue
		}
		v, st := find(at, x.Group, x.Index, x.Tensor), b.step(at+".at", int(x.AtLayer[0]), x.AtLayer[1], int(x.AtLayer[2]))
		from, ok1 := parseLevel(x.From)
		to, ok2 := parseLevel(x.To)
		if !ok1 || !ok2 {
			b.say(at, "from %s to %s, expected lb, gb or ddr", strict.Quote(x.From), strict.Quote(x.To))
		}
		if v >= 0 && st >= 0 {
			s.Spills = append(s.Spills, schedule.Spill{Value: v, From: from, To: to, Step: st, Bytes: s.Values[v].Bytes})
		}
	}
	b.overlaps(field)
}

// away reports whether there is such an instance, of another cluster.
func (b *builder) away(group int, index int64) bool {
	i := b.find(group, index)
	return i >= 0 && b.s.Away(i)
}

// step finds the step that runs a layer of an instance, or -1; it says nothing of another cluster's.
func (b *builder) step(at string, group int, index int64, layer int) int {
	if b.away(group, index) {
		return -1
	}
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
	b.say(at, "%s runs no layer %d", b.s.InstanceName(i), layer)
	return -1
}

func (b *builder) position(instance int) int {
	if b.places == nil {
		b.places = make([]int, len(b.s.Instances.Instances))
		for pos, i := range b.s.Order {
			b.places[i] = pos
		}
	}
	return b.places[instance]
}

func (b *builder) stepPosition(step int) int { return b.position(b.s.Steps[step].Instance) }

// nests takes over the loops of layers.
func (b *builder) nests() {
	s := b.s
	if b.plan.Memory == nil {
		if len(b.plan.Nests) > 0 {
			b.say("nests", "there are %d, but no memory plan that they were made for", len(b.plan.Nests))
		}
		return
	}
	for k, x := range b.plan.Nests {
		at := fmt.Sprintf("nests[%d]", k)
		i := b.step(at, x.Group, x.Index, x.Layer)
		if i < 0 {
			continue
		}
		st := &s.Steps[i]
		n, err := schedule.ParseNest(strings.Join(x.Lines, "\n"), s.Graph.Tensor(st.Output))
		if err == nil && n.Cores != nil && !n.Cores.Equal(st.Binding) {
			err = s.Rebind(i, n.Cores)
		}
		if err != nil {
			b.say(at+".lines", "%v", err)
			continue
		}
		if s.Steps[i].Nest != nil {
			b.say(at, "layer %d of %s has a nest already", x.Layer, b.s.InstanceName(st.Instance))
		}
		s.Steps[i].Nest, s.Steps[i].Tiles = n, n.Tiles
	}
}

// stages takes over what is said of the L1 space that things pass through.
func (b *builder) stages() {
	s := b.s
	b.nests()
	field := make([]string, len(s.Steps))
	for k, x := range b.plan.Memory.Stages {
		at := fmt.Sprintf("memory.stages[%d]", k)
		i := b.step(at, x.Group, x.Index, x.Layer)
		if i < 0 {
			continue
		}
		st := &s.Steps[i]
		if field[i] != "" {
			b.say(at, "layer %d of %s has a stage in %s already", x.Layer, b.s.InstanceName(st.Instance), field[i])
			continue
		}
		field[i] = at
		most := st.MostTiles()
		if x.Tiles < 1 || x.Tiles > most {
			b.say(at+".tiles", "is %d, expected 1 to %d, the elements that a core makes", x.Tiles, most)
			continue
		}
		if st.Nest != nil && x.Tiles != st.Nest.Tiles {
			b.say(at+".tiles", "is %d, the layer's nest has %d", x.Tiles, st.Nest.Tiles)
		}
		if x.Address < 0 || x.Address%64 != 0 {
			b.say(at+".address", "is %d, expected a multiple of 64", x.Address)
		}
		st.Tiles, st.Panels, st.StageAddress = x.Tiles, x.Panels, x.Address
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		st.Tiles = max(1, st.Tiles)
		st.StageBytes = st.Needs(s.Staged(st))
		switch {
		case st.StageBytes > 0 && field[i] == "":
			b.say("memory.stages", "layer %d of %s has none: %d bytes pass through the L1", st.Layer,
				b.s.InstanceName(st.Instance), st.StageBytes)
		case st.StageBytes == 0 && field[i] != "":
			b.say(field[i], "nothing passes through the L1 in layer %d of %s", st.Layer, b.s.InstanceName(st.Instance))
		}
	}
}

// overlaps verifies capacities, and that no two things share an address at a time.
func (b *builder) overlaps(field []string) {
	s := b.s
	for i := range s.Values {
		if v := &s.Values[i]; v.Instance >= 0 && v.Level == schedule.LLB {
			s.LLBActivationBytes = max(s.LLBActivationBytes, v.Address+schedule.Align(v.Bytes))
		}
	}
	s.Clashes(reserve(s.LLBCapacity), func(value, _ int, format string, args ...any) {
		at := "memory.stages"
		if value >= 0 {
			at = field[value]
		}
		b.say(at, format, args...)
	})
}
