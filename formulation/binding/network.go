package binding

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Network is the problem that a schedule poses, and what it takes to carry a choice back.
type Network struct {
	Problem *Problem
	// Given is the choice that the schedule has made.
	Given []int
}

// grids lists the bindings that an instance may have: all tuples of powers of two that divide the extents of its first
// output, that leave the dimensions alone that the last operator runs along, and that use at most cores cores. These
// are all tuples that Algorithm 4 can come to, whether as plain bindings or by inference, and all that use fewer
// cores. They come with the first dimension's factor changing slowest.
//
// With uneven, powers of two need not divide, if the tuple keeps at least as many cores
// busy as any that does: Algorithm 4 looks for no others, and a loop has many.
func grids(r model.Region, forbidden []bool, cores int64, uneven bool) []schedule.Binding {
	var all []schedule.Binding
	most := int64(0) // cores that even slices keep busy
	b := schedule.One(len(r))
	var extend func(d int, left int64, even, uneven bool)
	extend = func(d int, left int64, even, uneven bool) {
		if d == len(r) {
			if even || b.Busy(r) >= most {
				all = append(all, slices.Clone(b))
			}
			return
		}
		for n, last := int64(1), int64(0); n <= left; n *= 2 {
			f := model.Pieces(r[d].Len(), n)
			divides := r[d].Len()%n == 0
			if n > 1 && (f == last || !divides && !uneven || d < len(forbidden) && forbidden[d]) {
				break
			}
			b[d], last = f, f
			extend(d+1, left/n, even && divides, uneven)
		}
		b[d] = 1
	}
	extend(0, cores, true, false)
	if uneven {
		for _, c := range all {
			most = max(most, c.Cores())
		}
		all = nil
		extend(0, cores, true, true)
	}
	return all
}

// FromSchedule poses the problem of a schedule whose groups, layers, instances and order are known, and whose outputs
// are wanted in the L1. Its own bindings and scopes are among the labels; the schedule is not changed.
func FromSchedule(ctx context.Context, s *schedule.Schedule, m *cost.Model) (*Network, error) {
	if s.Spec.Mixed() {
		return nil, fmt.Errorf("binding: %s has cores of several kinds, expected one", s.Spec.Name)
	}
	p := &pricer{s: s, m: m, cores: schedule.CoresWithL1(s.Spec)}
	if len(s.Bindings) != len(s.Instances.Instances) || len(s.Scopes) != len(s.Bindings) {
		return nil, fmt.Errorf("binding: %d bindings and %d scopes for %d instances", len(s.Bindings), len(s.Scopes),
			len(s.Instances.Instances))
	}
	q := &poser{pricer: p, n: &Network{Problem: &Problem{}, Given: make([]int, len(s.Bindings))},
		all:  make([][]schedule.Binding, len(s.Bindings)),
		kept: make([][]int, len(s.Bindings)), scopes: make([][]schedule.Level, len(s.Bindings)), edges: map[[2]int]int{}}
	most := 0
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		out := s.Grouping.Groups[inst.Group].Outputs[0]
		q.all[i] = grids(inst.Regions[out], s.Graph.SequentialOf(out), p.cores, s.Slices != schedule.SlicesAlike)
		if !slices.ContainsFunc(q.all[i], s.Bindings[i].Equal) {
			q.all[i] = append(q.all[i], s.Bindings[i])
		}
		most = max(most, len(q.all[i]))
		q.n.Problem.Nodes = append(q.n.Problem.Nodes,
			Node{Name: fmt.Sprintf("%s/%d", s.Grouping.Groups[inst.Group].Name, inst.Index)})
		// The scope is a choice only where another instance reads.
		q.scopes[i] = []schedule.Level{schedule.L1}
		if len(s.Instances.Consumers[i]) > 0 {
			q.scopes[i] = append(q.scopes[i], schedule.LLB)
		}
		var from []int
		for _, d := range inst.Deps {
			from = append(from, d.From)
		}
		sort.Ints(from)
		for _, f := range slices.Compact(from) {
			q.edges[[2]int{f, i}] = len(q.n.Problem.Edges)
			q.n.Problem.Edges = append(q.n.Problem.Edges, Edge{From: f, To: i})
		}
	}
	// One set of steps for each number of a candidate, with all instances at that number, an
	// instance at a time: what it costs by itself does not depend on the others.
	for k := range most {
		r := *s
		r.Bindings = make([]schedule.Binding, len(q.all))
		r.Scopes = make([]schedule.Level, len(q.all))
		for i := range q.all {
			r.Bindings[i] = q.all[i][min(k, len(q.all[i])-1)]
		}
		q.runs = append(q.runs, &r)
	}
	builders := schedule.Builders(schedule.L1, q.runs...)
	for i := range s.Bindings {
		if s.Away(i) { // costs this cluster nothing but what it reads
			if err := q.instance(i); err != nil {
				return nil, err
			}
		}
	}
	for _, i := range s.Order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for k, b := range builders {
			if k >= len(q.all[i]) {
				b.AddAs(builders[k-1])
				continue
			}
			b.Steps = b.Steps[:0]
			if err := b.Add(i); err != nil {
				return nil, err
			}
		}
		if err := q.instance(i); err != nil {
			return nil, err
		}
	}
	return q.n, q.n.Problem.Validate()
}

// poser poses the problem of a schedule.
type poser struct {
	*pricer
	n *Network
	// all[i][k] is candidate k of instance i, which runs[k] has, with the steps of one instance and
	// the values up to it; kept[i] lists the numbers of those to choose from.
	all    [][]schedule.Binding
	kept   [][]int
	scopes [][]schedule.Level // to choose from
	edges  map[[2]int]int     // by the instances
	runs   []*schedule.Schedule
}

// output is the binding of an instance's first output in each of its runs.
func (q *poser) output(i int) []schedule.Binding {
	out := make([]schedule.Binding, len(q.all[i]))
	first := q.s.Grouping.Groups[q.s.Instances.Instances[i].Group].Outputs[0]
	for k := range out {
		out[k] = schedule.One(len(q.all[i][k])) // of another cluster's
		for at := range q.runs[k].Steps {
			for _, w := range q.runs[k].Steps[at].Writes {
				if v := &q.runs[k].Values[w]; v.Tensor == first {
					out[k] = v.Binding
				}
			}
		}
	}
	return out
}

// distinct lists the numbers of an instance's candidates that differ in what they do. By line 16 of Algorithm 4 a
// layer takes its plain binding where that uses more cores than what follows from the instance's, so that several
// candidates can come to the same: of these the schedule's own is kept, or else the first that says of the output what
// happens to it, or else the first.
func (q *poser) distinct(i int, output []schedule.Binding) (kept []int) {
	rank := func(k int) int {
		switch {
		case q.all[i][k].Equal(q.s.Bindings[i]):
			return 0
		case q.all[i][k].Equal(output[k]):
			return 1
		}
		return 2
	}
	done := make([]string, len(q.all[i])) // what each candidate comes to
	best := map[string]int{}
	for k := range done {
		var key []byte
		name := func(b schedule.Binding) {
			key = binary.AppendVarint(key, int64(len(b)))
			for _, f := range b {
				key = binary.AppendVarint(key, f)
			}
		}
		for at := range q.runs[k].Steps {
			st := &q.runs[k].Steps[at]
			key = binary.AppendVarint(key, int64(st.Layer))
			name(st.Binding)
			for _, w := range st.Writes {
				name(q.runs[k].Values[w].Binding)
			}
		}
		done[k] = string(key)
		if other, there := best[done[k]]; !there || rank(k) < rank(other) {
			best[done[k]] = k
		}
	}
	for k, what := range done {
		if best[what] == k {
			kept = append(kept, k)
		}
	}
	return kept
}

// instance finds out what the instance costs whose steps the runs have.
func (q *poser) instance(i int) error {
	s, node := q.s, &q.n.Problem.Nodes[i]
	output := q.output(i)
	kept := q.distinct(i, output)
	q.kept[i] = kept
	scopes, given := q.scopes[i], -1
	for _, scope := range scopes {
		for _, k := range kept {
			if q.all[i][k].Equal(s.Bindings[i]) && (scope == s.Scopes[i] || len(scopes) == 1) {
				given = len(node.Labels)
			}
			node.Labels = append(node.Labels, Label{q.all[i][k], scope, output[k]})
			node.Cost = append(node.Cost, 0)
		}
	}
	if given < 0 {
		return fmt.Errorf("binding: instance %q has scope %v, expected L1 or LLB", node.Name, s.Scopes[i])
	}
	q.n.Given[i] = given
	for _, d := range s.Instances.Instances[i].Deps {
		if e := &q.n.Problem.Edges[q.edges[[2]int{d.From, i}]]; e.Cost == nil {
			for range q.n.Problem.Nodes[d.From].Labels {
				e.Cost = append(e.Cost, make([]float64, len(node.Labels)))
			}
		}
	}
	for k, run := range kept {
		r := q.runs[run]
		for at := range r.Steps {
			st := &r.Steps[at]
			own := q.work(r, st)
			need := q.needs(r, st)
			for level, scope := range scopes {
				sum := own
				for n := range st.Reads {
					switch v := &r.Values[st.Reads[n].Value]; v.Instance {
					case -1:
						sum += q.read(&st.Reads[n], v, v.Level)
					case i:
						sum += q.read(&st.Reads[n], v, q.level(v, scope, s))
					}
				}
				for _, w := range st.Writes {
					sum += q.write(&r.Values[w], q.level(&r.Values[w], scope, s))
				}
				node.Cost[level*len(kept)+k] += sum
			}
			for n := range st.Reads {
				rd := &st.Reads[n]
				f := r.Values[rd.Value].Instance
				if f < 0 || f == i {
					continue
				}
				e := &q.n.Problem.Edges[q.edges[[2]int{f, i}]]
				for a, made := range q.kept[f] {
					// The same value as its producer makes it.
					v := &q.runs[made].Values[rd.Value]
					for level, scope := range q.scopes[f] {
						x := q.read(q.from(rd, v, need), v, q.level(v, scope, s))
						for l := range scopes {
							e.Cost[level*len(q.kept[f])+a][l*len(kept)+k] += x
						}
					}
				}
			}
		}
	}
	return nil
}

// Choice finds bindings and scopes, one per instance, among the labels.
func (n *Network) Choice(bindings []schedule.Binding, scopes []schedule.Level) ([]int, error) {
	choice := make([]int, len(n.Problem.Nodes))
	for i := range choice {
		node, scope := &n.Problem.Nodes[i], scopes[i]
		if node.Labels[len(node.Labels)-1].Scope == schedule.L1 { // nobody reads: no choice
			scope = schedule.L1
		}
		if choice[i] = find(node.Labels, bindings[i], scope); choice[i] < 0 {
			return nil, fmt.Errorf("instance %s: found binding %v in the %s, expected one of its %d choices", node.Name,
				bindings[i], scope, len(node.Labels))
		}
	}
	return choice, nil
}

// Decode is the bindings and scopes that a choice stands for, per instance.
func (n *Network) Decode(choice []int) ([]schedule.Binding, []schedule.Level) {
	var bs []schedule.Binding
	var ls []schedule.Level
	for i, l := range choice {
		label := n.Problem.Nodes[i].Labels[l]
		bs, ls = append(bs, label.Binding), append(ls, label.Scope)
	}
	return bs, ls
}
