package ordering

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dsasched/dsasched/model/ordering"
)

// aligned reads equal shares without overlap; halo instances more on either side.
func aligned(from, to, halo int) [][2]int {
	reads := make([][2]int, to)
	for q := range reads {
		reads[q] = [2]int{max(0, q*from/to-halo), min(from, ((q+1)*from+to-1)/to+halo)}
	}
	return reads
}

// chainOf is a chain of sub-graphs with so many instances each, with sizes like
// the published files', and a capacity of slack bytes above the largest need.
func chainOf(counts []int, halo int, slack int64) *ordering.Problem {
	p := &ordering.Problem{Name: fmt.Sprint("chain", counts), StoreCostPerByte: 1, LoadCostPerByte: 1}
	for k, n := range counts {
		p.Subgraphs = append(p.Subgraphs, ordering.Subgraph{Name: fmt.Sprint("stage", k+1), Instances: n,
			OutputBytes: int64(3 + k%2), WorkspaceBytes: int64(4 - k%4)})
		if k > 0 {
			p.Arcs = append(p.Arcs, ordering.Arc{From: k - 1, To: k, Reads: aligned(counts[k-1], n, halo)})
		}
	}
	p.CapacityBytes = ordering.NewGraph(p).LargestNeed() + slack
	return p
}

// halving is n, n/2, ..., 1: one tree, in which all depends on all.
func halving(n int) []int {
	var counts []int
	for ; n > 0; n /= 2 {
		counts = append(counts, n)
	}
	return counts
}

// shrinking has subgraphs sub-graphs from n instances down to a quarter.
func shrinking(n, subgraphs int) []int {
	var counts []int
	for k := range subgraphs {
		counts = append(counts, n>>min(2, 3*k/subgraphs))
	}
	return counts
}

func TestGrowthTable(t *testing.T) {
	if testing.Short() {
		t.Skip()
	}
	run := func(name string, p *ordering.Problem) {
		res, err := Search(context.Background(), p, ordering.Traffic, SearchOptions{TimeLimit: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-28s n=%5d %-9s cost %6v bound %6v %.3f s", name, len(res.Steps), res.Status, res.Cost, res.Bound, res.Seconds)
		res, err = Search(context.Background(), p, ordering.Peak, SearchOptions{TimeLimit: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-28s n=%5d %-9s peak %6v bound %6v %.3f s", name, len(res.Steps), res.Status, res.Cost, res.Bound, res.Seconds)
	}
	for n := 8; n <= 512; n *= 2 {
		run(fmt.Sprint("halving ", n), chainOf(halving(n), 0, 2))
	}
	for n := 8; n <= 512; n *= 4 {
		run(fmt.Sprint("shrinking 4 of ", n), chainOf(shrinking(n, 4), 0, 2))
	}
	for k := 4; k <= 32; k *= 2 {
		run(fmt.Sprint("shrinking 8 of ", k), chainOf(shrinking(8, k), 0, 2))
	}
	for k := 4; k <= 32; k *= 2 {
		run(fmt.Sprint("tree+ of 16, ", k), chainOf(append(shrinking(16, k-1), 1), 0, 2))
	}
	for n := 8; n <= 32; n *= 2 {
		run(fmt.Sprint("halo ", n), chainOf([]int{n, n, n, n}, 1, 2))
	}
	for n := 8; n <= 32; n *= 2 {
		run(fmt.Sprint("halo halving ", n), chainOf([]int{n, n / 2, n / 4}, 1, 2))
	}
}
