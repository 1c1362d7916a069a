package ordering

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// A family says which instances of a part can change places, each with all below it:
// the section on symmetry of the package's essay.
type family struct {
	graph   *Graph
	classes []class
	of      []int
}

func (p part) family() *family {
	f := &family{graph: p.graph}
	f.classes, f.of = classes(p.graph, counted)
	return f
}

// below lists the counted outputs that an instance reads, class by class, each
// ascending; for -1 the instances that nothing reads.
func (f *family) below(i int) [][]int {
	var of []int
	if i < 0 {
		for j := range f.graph.Refs {
			if len(f.graph.Readers[j]) == 0 {
				of = append(of, j)
			}
		}
	} else {
		for _, j := range f.graph.Reads[i] {
			if !f.classes[f.of[j]].shared {
				of = append(of, j)
			}
		}
	}
	slices.SortStableFunc(of, func(a, b int) int { return f.of[a] - f.of[b] })
	var groups [][]int
	for _, j := range of {
		if n := len(groups); n > 0 && f.of[groups[n-1][0]] == f.of[j] {
			groups[n-1] = append(groups[n-1], j)
		} else {
			groups = append(groups, []int{j})
		}
	}
	return groups
}

// siblings lists the pairs of neighbours in the groups that can change places.
func (f *family) siblings() [][2]int {
	var pairs [][2]int
	for i := -1; i < len(f.graph.Refs); i++ {
		for _, group := range f.below(i) {
			for k := 1; k < len(group); k++ {
				pairs = append(pairs, [2]int{group[k-1], group[k]})
			}
		}
	}
	return pairs
}

// inOrder gives instances names under which siblings run in the order of their IDs: the
// names by instance, for an order in which instance i runs at time[i].
func (f *family) inOrder(time []int) []int {
	name := make([]int, len(time))
	var give func(i, as int)
	give = func(i, as int) {
		if i >= 0 {
			name[i] = as
		}
		from, to := f.below(i), f.below(as)
		for g, group := range from {
			slices.SortFunc(group, func(a, b int) int { return time[a] - time[b] })
			for k, j := range group {
				give(j, to[g][k])
			}
		}
	}
	give(-1, -1)
	for i := range time {
		if c := &f.classes[f.of[i]]; c.shared {
			give(i, i)
		}
	}
	return name
}

// symmetry states (17).
func (f *program) symmetry() {
	if f.opts.NoSymmetry {
		return
	}
	for _, pair := range f.siblings {
		first, second := f.run[f.of[pair[0]]], f.run[f.of[pair[1]]]
		for t := range f.steps {
			terms := milp.Sum(second[:t+1]...)
			for _, x := range first[:t] {
				terms = append(terms, x.Times(-1))
			}
			f.model.AddLE(fmt.Sprintf("(17) %d before %d by step %d", pair[0], pair[1], t), terms, 0)
		}
	}
}

// told is the answer so far with names that obey (17).
func (f *program) told() []localStep {
	if f.opts.NoSymmetry || len(f.siblings) == 0 {
		return f.answer.steps
	}
	time := make([]int, len(f.answer.steps))
	for t, s := range f.answer.steps {
		time[s.run] = t
	}
	name := f.part.family().inOrder(time)
	rename := func(ids []int) []int {
		var out []int
		for _, i := range ids {
			out = append(out, name[i])
		}
		return out
	}
	var steps []localStep
	for _, s := range f.answer.steps {
		steps = append(steps, localStep{name[s.run], rename(s.store), rename(s.load)})
	}
	return steps
}
