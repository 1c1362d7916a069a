package ordering

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The names that put siblings in order are an automorphism: a permutation that keeps
// sizes and who reads whom. Under them siblings run by number.
func TestInOrder(t *testing.T) {
	changed := 0
	for seed := range uint64(400) {
		p := randomProblem(seed, 12)
		pt := whole(NewGraph(p))[0]
		f := pt.family()
		pairs := f.siblings()
		if len(pairs) == 0 {
			continue
		}
		// Any numbers do as times.
		time := rand.New(rand.NewPCG(seed, 1)).Perm(len(pt.ids))
		name := f.inOrder(time)
		at := make([]int, len(name))
		for i, as := range name {
			at[as] = time[i]
			if i != as {
				changed++
			}
			if pt.graph.Output[i] != pt.graph.Output[as] || pt.graph.Work[i] != pt.graph.Work[as] {
				t.Fatalf("seed %d: %d is called %d, which has other sizes", seed, i, as)
			}
			var reads []int
			for _, r := range pt.graph.Reads[i] {
				reads = append(reads, name[r])
			}
			slices.Sort(reads)
			if !slices.Equal(reads, pt.graph.Reads[as]) {
				t.Fatalf("seed %d: %d, called %d, reads %v, expected %v", seed, i, as, reads, pt.graph.Reads[as])
			}
		}
		if sorted := slices.Sorted(slices.Values(name)); sorted[0] != 0 || len(slices.Compact(sorted)) != len(name) {
			t.Fatalf("seed %d: %v is no permutation", seed, name)
		}
		for _, pair := range pairs {
			if at[pair[0]] > at[pair[1]] {
				t.Errorf("seed %d: %d runs after its sibling %d", seed, pair[0], pair[1])
			}
		}
	}
	if changed < 100 {
		t.Errorf("%d instances got another name, expected many", changed)
	}
}
