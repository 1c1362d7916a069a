package binding

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Network is the problem that a schedule poses, and what it takes to carry a
// choice back.
type Network struct {
	Problem *Problem
	// Given is the choice that the schedule has made.
	Given []int
}

// Candidates lists the bindings that an instance may have: all tuples of powers of
// two that divide the extents of its first output, that leave the dimensions alone
// that the last operator runs along, and that use at most cores cores. These are
// all tuples that Algorithm 4 can come to, whether as plain bindings or by
// inference, and all that use fewer cores. They come with the first dimension's
// factor changing slowest.
//
// With uneven, powers of two need not divide, if the tuple keeps at least as many cores
// busy as any that does: Algorithm 4 looks for no others, and a loop has many.
func Candidates(r model.Region, forbidden []bool, cores int64, uneven bool) []schedule.Binding {
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

// FromSchedule poses the problem of a schedule whose groups, layers, instances and
// order are known, and whose outputs are wanted in the LB. Its own bindings and
// scopes are among the labels; the schedule is not changed.
func FromSchedule(s *schedule.Schedule, m *cost.Model) (*Network, error) {
	p := &pricer{s: s, m: m, cores: schedule.CoresWithLB(s.Spec)}
	if len(s.Bindings) != len(s.Instances.Instances) || len(s.Scopes) != len(s.Bindings) {
		return nil, fmt.Errorf("binding: %d bindings and %d scopes for %d instances", len(s.Bindings), len(s.Scopes), len(s.Instances.Instances))
	}
	bindings := make([][]schedule.Binding, len(s.Bindings)) // per instance
	most := 0
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		out := s.Grouping.Groups[inst.Group].Outputs[0]
		bindings[i] = Candidates(inst.Regions[out], lastForbidden(s.Graph, out), p.cores, s.UnevenCores)
		if !slices.ContainsFunc(bindings[i], s.Bindings[i].Equal) {
			bindings[i] = append(bindings[i], s.Bindings[i])
		}
		most = max(most, len(bindings[i]))
	}
	// One set of steps for each number of a candidate, with all instances at that
	// number: what an instance costs by itself does not depend on the others.
	runs := make([]*schedule.Schedule, most)
	for k := range runs {
		r := *s
		r.Bindings = make([]schedule.Binding, len(bindings))
		r.Scopes = make([]schedule.Level, len(bindings))
		for i := range bindings {
			r.Bindings[i] = bindings[i][min(k, len(bindings[i])-1)]
		}
		if err := r.BuildSteps(schedule.LB); err != nil {
			return nil, err
		}
		runs[k] = &r
	}
	return p.network(bindings, p.distinct(bindings, runs), runs)
}

// distinct lists, per instance, the numbers of the candidates that differ in what
// they do. By line 16 of Algorithm 4 a layer takes its plain binding where that uses
// more cores than what follows from the instance's, so that several candidates can
// come to the same: of these the schedule's own is kept, or else the first that
// says of the output what happens to it, or else the first.
func (p *pricer) distinct(bindings [][]schedule.Binding, runs []*schedule.Schedule) [][]int {
	s := p.s
	done := make([][]string, len(bindings)) // what each candidate comes to
	for k, r := range runs {
		for i := range bindings {
			if k < len(bindings[i]) {
				done[i] = append(done[i], "")
			}
		}
		for at := range r.Steps {
			st := &r.Steps[at]
			if i := st.Instance; k < len(bindings[i]) {
				done[i][k] += fmt.Sprint(st.Layer, st.Binding)
				for _, w := range st.Writes {
					done[i][k] += fmt.Sprint(r.Values[w].Binding)
				}
			}
		}
	}
	output := p.outputs(runs)
	kept := make([][]int, len(bindings))
	for i := range bindings {
		rank := func(k int) int {
			switch {
			case bindings[i][k].Equal(s.Bindings[i]):
				return 0
			case bindings[i][k].Equal(output[i][k]):
				return 1
			}
			return 2
		}
		best := map[string]int{}
		for k, what := range done[i] {
			if other, there := best[what]; !there || rank(k) < rank(other) {
				best[what] = k
			}
		}
		for k, what := range done[i] {
			if best[what] == k {
				kept[i] = append(kept[i], k)
			}
		}
	}
	return kept
}

// outputs is the binding of each instance's first output in each run.
func (p *pricer) outputs(runs []*schedule.Schedule) [][]schedule.Binding {
	out := make([][]schedule.Binding, len(p.s.Instances.Instances))
	for _, r := range runs {
		for i := range out {
			out[i] = append(out[i], nil)
		}
		for v := range r.Values {
			if v := &r.Values[v]; v.Instance >= 0 && v.Tensor == p.s.Grouping.Groups[p.s.Instances.Instances[v.Instance].Group].Outputs[0] {
				of := out[v.Instance]
				of[len(of)-1] = v.Binding
			}
		}
	}
	return out
}

// lastForbidden: the last operator's own sequential dimensions, as in Algorithm 4.
func lastForbidden(g *model.Graph, t model.TensorID) []bool {
	op := g.Op(g.Tensor(t).Producer)
	return g.Sequential(op, slices.Index(op.Outputs, t))
}

// network poses the problem. all[i][k] is candidate k of instance i, which runs[k]
// has; kept[i] lists the numbers of those to choose from.
func (p *pricer) network(all [][]schedule.Binding, kept [][]int, runs []*schedule.Schedule) (*Network, error) {
	s := p.s
	n := &Network{Problem: &Problem{}}
	output := p.outputs(runs)
	scopes := make([][]schedule.Level, len(all))
	for i, ks := range kept {
		inst := &s.Instances.Instances[i]
		node := Node{Name: fmt.Sprintf("%s/%d", s.Grouping.Groups[inst.Group].Name, inst.Index)}
		// The scope is a choice only where another instance reads.
		scopes[i] = []schedule.Level{schedule.LB}
		if len(s.Instances.Consumers[i]) > 0 {
			scopes[i] = append(scopes[i], schedule.GB)
		}
		given := -1
		for _, scope := range scopes[i] {
			for _, k := range ks {
				if all[i][k].Equal(s.Bindings[i]) && (scope == s.Scopes[i] || len(scopes[i]) == 1) {
					given = len(node.Labels)
				}
				node.Labels = append(node.Labels, Label{all[i][k], scope, output[i][k]})
				node.Cost = append(node.Cost, 0)
			}
		}
		if given < 0 {
			return nil, fmt.Errorf("binding: instance %q has scope %v, expected LB or GB", node.Name, s.Scopes[i])
		}
		n.Problem.Nodes = append(n.Problem.Nodes, node)
		n.Given = append(n.Given, given)
	}
	type pair struct{ from, to int }
	index := map[pair]int{}
	for i := range all {
		var from []int
		for _, d := range s.Instances.Instances[i].Deps {
			from = append(from, d.From)
		}
		sort.Ints(from)
		for _, f := range slices.Compact(from) {
			e := Edge{From: f, To: i}
			for range n.Problem.Nodes[f].Labels {
				e.Cost = append(e.Cost, make([]float64, len(n.Problem.Nodes[i].Labels)))
			}
			index[pair{f, i}] = len(n.Problem.Edges)
			n.Problem.Edges = append(n.Problem.Edges, e)
		}
	}
	for run, r := range runs {
		for at := range r.Steps {
			st := &r.Steps[at]
			i := st.Instance
			k, there := slices.BinarySearch(kept[i], run)
			if !there {
				continue
			}
			node := &n.Problem.Nodes[i]
			own := p.work(r, st)
			need := p.needs(r, st)
			for level, scope := range scopes[i] {
				sum := own
				for q := range st.Reads {
					switch v := &r.Values[st.Reads[q].Value]; v.Instance {
					case -1:
						sum += p.read(&st.Reads[q], v, v.Level)
					case i:
						sum += p.read(&st.Reads[q], v, p.level(v, scope, s))
					}
				}
				for _, w := range st.Writes {
					sum += p.write(&r.Values[w], p.level(&r.Values[w], scope, s))
				}
				node.Cost[level*len(kept[i])+k] += sum
			}
			for q := range st.Reads {
				rd := &st.Reads[q]
				f := r.Values[rd.Value].Instance
				if f < 0 || f == i {
					continue
				}
				e := &n.Problem.Edges[index[pair{f, i}]]
				for a, made := range kept[f] {
					// The same value as its producer makes it.
					v := &runs[made].Values[rd.Value]
					for level, scope := range scopes[f] {
						x := p.read(p.from(rd, v, need), v, p.level(v, scope, s))
						for l := range scopes[i] {
							e.Cost[level*len(kept[f])+a][l*len(kept[i])+k] += x
						}
					}
				}
			}
		}
	}
	return n, n.Problem.Validate()
}

// Choice finds bindings and scopes, one per instance, among the labels.
func (n *Network) Choice(bindings []schedule.Binding, scopes []schedule.Level) ([]int, error) {
	choice := make([]int, len(n.Problem.Nodes))
	for i := range choice {
		node, scope := &n.Problem.Nodes[i], scopes[i]
		if node.Labels[len(node.Labels)-1].Scope == schedule.LB { // nobody reads: no choice
			scope = schedule.LB
		}
		if choice[i] = Find(node.Labels, bindings[i], scope); choice[i] < 0 {
			return nil, fmt.Errorf("instance %s: found binding %v in the %s, expected one of its %d choices", node.Name, bindings[i], scope.Title(), len(node.Labels))
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
