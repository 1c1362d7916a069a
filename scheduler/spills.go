package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// placement is the set of values that leave the L1.
type placement struct {
	rule      string
	overwrite bool // see Placing.Over
	needed    bool // see Placing.Needed
	// forceLLB are results that go to the LLB, though there may be room in the L1.
	forceLLB map[model.TensorID]bool
	// spilled are the values that leave the L1, where others than by the rule do; nil: by the rule.
	spilled map[valueKey]bool
}

// A valueKey names a value among those of the same groups.
type valueKey struct {
	instance int
	tensor   model.TensorID
}

func takePlacement(d *Draft, all bool) Decision {
	longest := spillRules()[0]
	x := placement{rule: longest, forceLLB: map[model.TensorID]bool{}}
	how := d.Recipe.Strategy("spill").Places
	if how != nil {
		x.rule, x.overwrite = how.Rule, how.Over && how.Rule != longest && !all
	}
	for i := range d.Steps {
		from, _ := d.Overwritten(&d.Steps[i])
		x.overwrite = x.overwrite || from != nil
	}
	switch {
	case !d.Recipe.byRule("spill"):
		x.spilled = map[valueKey]bool{}
	case x.overwrite:
	case how != nil && how.Needed:
		x.needed = !gives(Placing{Rule: x.rule}, d.Schedule)
	}
	if x.overwrite && all {
		x.rule = ruleOf(d.Schedule, x.rule)
	}
	for i := range d.Values {
		v := &d.Values[i]
		if x.spilled != nil && v.Spilled() {
			x.spilled[valueKey{v.Instance, v.Tensor}] = true
		}
		if v.Instance < 0 || v.Wanted != schedule.LLB {
			continue
		}
		sg := d.Grouping.Groups[d.Instances.Instances[v.Instance].Group]
		if d.Scopes[v.Instance] != schedule.LLB || !slices.Contains(sg.Outputs, v.Tensor) {
			x.forceLLB[v.Tensor] = true
		}
	}
	return x
}

// spillRules are the rules that a search tries: those of the table's strategies.
func spillRules() (list []string) {
	for _, s := range table.Strategies["spill"] {
		if s.Places != nil && !slices.Contains(list, s.Places.Rule) {
			list = append(list, s.Places.Rule)
		}
	}
	return list
}

// overRule is the rule of the last strategy that lets values take the place of others.
func overRule() (rule string) {
	for _, s := range table.Strategies["spill"] {
		if s.Places != nil && s.Places.Over {
			rule = s.Places.Rule
		}
	}
	return rule
}

// Overwrites reports whether results may overwrite operands.
func (r Recipe) Overwrites() bool {
	how := r.Strategy("spill").Places
	return how != nil && how.Over
}

// ruleOf is the rule by which the values of a schedule have left their memories, where results take the place of
// operands; the other one if it is none of those that a search tries.
func ruleOf(s *schedule.Schedule, other string) string {
	for _, rule := range spillRules() {
		if gives(Placing{Rule: rule, Over: true}, s) {
			return rule
		}
	}
	return other
}

// gives reports whether the values of a schedule are where a memory plan puts them.
func gives(how Placing, s *schedule.Schedule) bool {
	again := s.Unspilled()
	again.Spills = nil
	for t := range again.Steps {
		again.Steps[t].Nest = nil // is decided behind
	}
	return table.Place(context.Background(), again, how) == nil &&
		slices.EqualFunc(again.Values, s.Values, func(a, b schedule.Value) bool { return a.Level == b.Level })
}

// Stage names the row.
func (x placement) Stage() string { return "spill" }

// Apply makes the memory plan.
func (x placement) Apply(ctx context.Context, d *Draft) error {
	var out []int
	for i := range d.Values {
		v := &d.Values[i]
		if v.Instance >= 0 && v.Level == schedule.L1 && x.forceLLB[v.Tensor] && d.Spec.LLB != nil {
			v.Wanted, v.Level = schedule.LLB, schedule.LLB
		}
		if x.spilled[valueKey{v.Instance, v.Tensor}] {
			out = append(out, i)
		}
	}
	return table.Place(ctx, d.Schedule, Placing{Rule: x.rule, Over: x.overwrite, Needed: x.needed,
		Chosen: x.spilled != nil, Spilled: out})
}

// Key has the rule and what differs from it.
func (x placement) Key(b *Key, _ *Decisions) {
	b.Text(x.rule)
	addMap(b, map[int]bool{0: x.overwrite, 1: x.spilled != nil, 2: x.needed}, is)
	addMap(b, x.forceLLB, is)
	for _, v := range slices.SortedFunc(maps.Keys(x.spilled), func(v, w valueKey) int {
		return cmp.Or(v.instance-w.instance, int(v.tensor-w.tensor))
	}) {
		b.Add(int64(v.instance), int64(v.tensor))
	}
}

// After drops what was chosen for values of other instances.
func (x placement) After(changed string, _, _ *Decisions) Decision {
	if changed == "group" || changed == "layers" {
		x.spilled = nil
	}
	return x
}

func (x placement) extend(e *extension) Decision {
	if !e.same {
		x.spilled = nil
	}
	x.forceLLB = extended(x.forceLLB, e.tensors)
	return x
}

var placementMoves = []Move{{"spill", 1, (*Site).moveDown}}

func placementSettings() [][]func(*Decisions) *Decisions {
	return [][]func(*Decisions) *Decisions{
		values(func(x *placement, over bool) { x.overwrite = over }, false, true),
		values(func(x *placement, rule string) { x.rule, x.spilled = rule, nil }, spillRules()...),
	}
}

// moveDown lets a result go to the LLB, or stay.
func (a *Site) moveDown() *Decisions {
	k := a.Place(len(a.Groups()))
	g, layers := a.Schedule.Graph, a.Schedule.Layers[k]
	layer := &layers[a.Rand.IntN(len(layers))]
	if a.Schedule.Spec.LLB == nil || len(layer.Outputs) == 0 {
		return nil
	}
	t := layer.Outputs[a.Rand.IntN(len(layer.Outputs))]
	from := g.Tensor(t).Producer
	output := slices.Index(g.Op(from).Outputs, t)
	x := of[placement](a.Decisions)
	x.forceLLB = a.held(x.forceLLB)
	down := !x.forceLLB[t] // one that is held may return
	for _, id := range a.places(k, slices.Index(a.Groups()[k].Ops, from)) {
		if all := g.Op(id).Outputs; output < len(all) {
			x.forceLLB[all[output]] = down
		}
	}
	return a.with(x)
}

// held is a copy of the results that go to the LLB, half of the time with those that have left the L1 for want of room
// in all instances. Else these may come back to the room that one more leaves free.
func (a *Site) held(down map[model.TensorID]bool) map[model.TensorID]bool {
	down = cloned(down)
	if a.Rand.IntN(2) == 0 {
		return down
	}
	stays := map[model.TensorID]bool{}
	for _, v := range a.Schedule.Values {
		stays[v.Tensor] = stays[v.Tensor] || v.Level == schedule.L1
	}
	for i := range a.Schedule.Values {
		if v := &a.Schedule.Values[i]; v.Spilled() && !stays[v.Tensor] {
			down[v.Tensor] = true
		}
	}
	return down
}

// reserve says how much of the LLB values leave to what is on its way: with little room a product whose operands come
// from the DDR is cut into small tiles, and reads the other operand again for each.
var reserve = Setting[int64]{Name: "reserve", Description: "the part of the LLB kept free for weights and transfers",
	writes: "`Reserve`, in sixteenths",
	Choices: []Choice[int64]{
		{"sixteenth", "a sixteenth: few values are spilled", 1},
		{"quarter", "a quarter: large tiles for products with operands from the DDR", 4},
		{"half", "a half", 8},
	},
	check: func(sixteenths int64) error {
		if sixteenths < 1 || sixteenths > 15 {
			return fmt.Errorf("reserve is %d sixteenths of the LLB, expected 1 to 15", sixteenths)
		}
		return nil
	},
	Apply: func(d *Draft, sixteenths int64) error {
		d.Reserve = sixteenths
		return nil
	}}

// buffer says the part of a core's L1 for weights. On machines without an LLB, weights that stay there need not be
// loaded again for later chunks and instances. Without later uses their room is better spent: larger tiles pass in
// fewer loads, or more values stay.
var buffer = Setting[schedule.WeightRoom]{Name: "buffer", Description: "the part of a core's L1 for weights",
	inPlan: true, writes: "`WeightRoom`",
	Choices: []Choice[schedule.WeightRoom]{
		{"stay", "a quarter of the L1, or its weight memory; without an LLB, three quarters of that keep weights for reuse",
			schedule.WeightsStay},
		{"pass", "as much, all for weights in transit", schedule.WeightsPass},
		{"twelfth", "as pass, with a twelfth of an L1 shared with values", schedule.WeightsTwelfth},
	},
	Apply: func(d *Draft, room schedule.WeightRoom) error {
		d.WeightRoom = room
		return room.Check()
	}}

// bufferStage is the row of the room for weights. It is not searched where an LLB keeps weights, unless a recipe or a
// file has another than the first choice.
func bufferStage() Stage {
	st := buffer.Stage()
	st.unlessNil, st.text = true, bufferText
	st.take = func(d *Draft, _ bool) Decision {
		if d.Spec.LLB != nil && d.WeightRoom == schedule.WeightsStay &&
			buffer.named(d.Recipe.Pick(buffer.Name)) == schedule.WeightsStay {
			return nil
		}
		return plain[schedule.WeightRoom]{&buffer, d.WeightRoom}
	}
	return st
}

// addresses says the addresses of values in the L1.
var addresses = Setting[bool]{Name: "address", Description: "the addresses of values in the L1", inPlan: true,
	text: addressText, writes: "addresses of the `Values` and stages in the L1",
	Choices: []Choice[bool]{
		{"lowest", "the lowest free address, as the memory plan found it", false},
		{"apart", "the address that has been free for longest, so that fewer commands wait for earlier accesses", true},
	},
	Apply: func(d *Draft, apart bool) error {
		if apart {
			table.Apart(d.Schedule)
		}
		return nil
	}}
