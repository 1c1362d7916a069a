package schedulefile

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Fingerprint identifies a description of an accelerator: a hash of all that is in one but its prose.
func Fingerprint(spec *hardware.Spec) string {
	s := *spec
	s.Description = ""
	return hash(s)
}

// GraphFingerprint identifies a network at one batch size: a hash of all that files have of it.
func GraphFingerprint(g *model.Graph) string { return hash(NewGraph(g)) }

func hash(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("schedulefile: " + err.Error()) // numbers and texts
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:16]
}

// NewPlan puts a schedule of a chunk of batch elements into the words of the file. want is the level that
// [schedule.Schedule.BuildSteps] was given. Where clusters divide the chunk, s has the order of all instances and parts
// the schedules of the clusters, in which its memory stands. Whatever the schedule shares with its makers is copied.
func NewPlan(s *schedule.Schedule, batch int64, want schedule.Level, parts ...*schedule.Schedule) Plan {
	p := Plan{Batch: batch, Graph: NewGraph(s.Graph), Outputs: levelNames[want],
		UnevenCores: s.Slices != schedule.SlicesAlike, Divisors: s.Slices == schedule.SlicesByDivisors,
		Cores: s.Cores, WeightRoom: s.WeightRoom, OrderName: s.OrderName,
		Groups: []Group{}, Instances: []Instance{}, Order: [][2]int{},
		Memory: &Memory{Values: []Value{}, Stages: []Stage{}}}
	for k, sg := range s.Grouping.Groups {
		g := Group{Name: sg.Name, Ops: numbers(sg.Ops), Layers: [][]int{}, Factor: sg.Factor(), PeakBytes: sg.PeakBytes,
			TooBig: sg.Split.Factor == schedule.Unsplittable}
		for _, l := range s.Layers[k] {
			g.Layers = append(g.Layers, numbers(l.Ops))
		}
		if k < len(s.LayerBindings) {
			for _, b := range s.LayerBindings[k] {
				g.LayerCores = append(g.LayerCores, append([]int64{}, b...))
			}
		}
		for l := range s.Layers[k] {
			if s.LayerKinds != nil {
				g.LayerTypes = append(g.LayerTypes, s.Spec.Kinds()[s.LayerKinds[k][l]][0].Name)
			}
		}
		if d := sg.SplitDim(); d >= 0 {
			g.Dim, g.SplitOps = &d, sg.Split.Ops
		}
		p.Groups = append(p.Groups, g)
	}
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		x := Instance{Group: inst.Group, Index: inst.Index, Cores: append([]int64{}, s.Bindings[i]...),
			Scope: levelNames[s.Scopes[i]]}
		if s.Place != nil {
			x.Cluster = s.Place[i]
		}
		p.Instances = append(p.Instances, x)
	}
	for _, i := range s.Order {
		inst := &s.Instances.Instances[i]
		p.Order = append(p.Order, [2]int{inst.Group, int(inst.Index)})
	}
	for _, c := range s.Costs {
		p.Candidates = append(p.Candidates,
			Candidate{c.Name, c.Cost.MovedBytes, c.Cost.Utilization, c.Cost.PeakBytes, c.Cost.OverflowBytes})
	}
	if len(parts) == 0 {
		parts = []*schedule.Schedule{s}
	}
	for _, part := range parts {
		p.addMemory(part)
	}
	// Not all readers have the 64 bits of "can't be split".
	p.Merges = renamed(s.Grouping.Events, schedule.Unsplittable, 0)
	return p
}

// addMemory adds where things are while the instances of s run, and the loops that they run by.
func (p *Plan) addMemory(s *schedule.Schedule) {
	for i := range s.Values {
		v := &s.Values[i]
		if v.Instance < 0 || s.Away(v.Instance) {
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
		if st := &s.Steps[i]; st.Nest != nil {
			inst := &s.Instances.Instances[st.Instance]
			text := st.Nest.Text(s.Graph.Tensor(st.Output))
			p.Nests = append(p.Nests, Nest{inst.Group, inst.Index, st.Layer,
				strings.Split(strings.TrimSuffix(text, "\n"), "\n")})
		}
	}
	for i := range s.Steps {
		if st := &s.Steps[i]; st.StageBytes > 0 {
			inst := &s.Instances.Instances[st.Instance]
			p.Memory.Stages = append(p.Memory.Stages,
				Stage{inst.Group, inst.Index, st.Layer, max(1, st.Tiles), st.Panels, st.StageAddress})
		}
	}
	for _, sp := range s.Spills {
		v, st := &s.Values[sp.Value], &s.Steps[sp.Step]
		inst, at := &s.Instances.Instances[v.Instance], &s.Instances.Instances[st.Instance]
		p.Memory.Spills = append(p.Memory.Spills,
			Spill{inst.Group, inst.Index, int(v.Tensor), levelNames[sp.From], levelNames[sp.To],
				[3]int64{int64(at.Group), at.Index, int64(st.Layer)}})
	}
}

// renamed copies decisions, with a factor of from as one of to.
func renamed(events []schedule.MergeEvent, from, to int64) []schedule.MergeEvent {
	events = slices.Clone(events)
	for i := range events {
		e := &events[i]
		e.Parts, e.Factors = append([]string{}, e.Parts...), append([]int64{}, e.Factors...)
		for k, f := range e.Factors {
			if f == from {
				e.Factors[k] = to
			}
		}
		if e.Merged == from {
			e.Merged = to
		}
	}
	return events
}

func numbers[T ~int](ids []T) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

// NewGraph puts a graph into the words of the file.
func NewGraph(g *model.Graph) Graph {
	gr := Graph{Name: g.Name, Inputs: numbers(g.Inputs), Outputs: numbers(g.Outputs),
		Tensors: []Tensor{}, Ops: []Operator{}}
	for i, t := range g.Tensors {
		gr.Tensors = append(gr.Tensors, Tensor{i, t.Name, append([]int64{}, t.Shape...), t.DType.String(), t.Role.String(),
			t.Learned, append([]int64(nil), t.Ints...), t.Causal})
	}
	for i, op := range g.Ops {
		o := Operator{ID: i, Name: op.Name, Kind: op.Kind, Inputs: numbers(op.Inputs), Outputs: numbers(op.Outputs)}
		if data, err := json.Marshal(op.Attr); err != nil || string(data) != "{}" {
			o.Attr = op.Attr
		}
		gr.Ops = append(gr.Ops, o)
	}
	return gr
}

// Fingerprint is [GraphFingerprint] of a graph in a file.
func (gr *Graph) Fingerprint() string { return hash(gr) }
