package ordering

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
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
func chainOf(counts []int, halo int, slack int64) *Problem {
	p := &Problem{Name: fmt.Sprint("chain", counts), StoreCostPerByte: 1, LoadCostPerByte: 1}
	for k, n := range counts {
		p.Subgraphs = append(p.Subgraphs, Subgraph{Name: fmt.Sprint("stage", k+1), Instances: n,
			OutputBytes: int64(3 + k%2), WorkspaceBytes: int64(4 - k%4)})
		if k > 0 {
			p.Arcs = append(p.Arcs, Arc{From: k - 1, To: k, Reads: aligned(counts[k-1], n, halo)})
		}
	}
	p.CapacityBytes = NewGraph(p).LargestNeed() + slack
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

// growth lists problems of growing size: trees in which all depends on all, chains
// of more sub-graphs, chains with many small components, and halos.
func growth() []struct {
	name string
	p    *Problem
} {
	var list []struct {
		name string
		p    *Problem
	}
	add := func(name string, counts []int, halo int) {
		list = append(list, struct {
			name string
			p    *Problem
		}{name, chainOf(counts, halo, 2)})
	}
	for n := 8; n <= 512; n *= 2 {
		add(fmt.Sprintf("tree/instances=%d", n), halving(n), 0)
	}
	for n := 8; n <= 512; n *= 4 {
		add(fmt.Sprintf("components/instances=%d", n), shrinking(n, 4), 0)
	}
	for k := 4; k <= 32; k *= 2 {
		add(fmt.Sprintf("components/subgraphs=%d", k), shrinking(8, k), 0)
	}
	for k := 4; k <= 32; k *= 2 {
		add(fmt.Sprintf("joined/subgraphs=%d", k), append(shrinking(16, k-1), 1), 0)
	}
	for n := 4; n <= 16; n *= 2 {
		add(fmt.Sprintf("halo/instances=%d", n), []int{n, n, n, n}, 1)
	}
	return list
}

// BenchmarkFiles is the search on the published files.
func BenchmarkFiles(b *testing.B) {
	for _, c := range optima {
		b.Run(c.file, func(b *testing.B) {
			p := load(b, c.file)
			for b.Loop() {
				mustSearch(b, p, Traffic, Options{})
			}
		})
	}
}

// BenchmarkGrowth is the search on problems of growing size, with the remaining gap
// in per cent where it is stopped after 10 s.
func BenchmarkGrowth(b *testing.B) {
	for _, objective := range []Objective{Traffic, Peak} {
		for _, c := range growth() {
			b.Run(fmt.Sprintf("%s/%s", objective, c.name), func(b *testing.B) {
				var res *Result
				for b.Loop() {
					res = mustSearch(b, c.p, objective, Options{TimeLimit: 10 * time.Second})
				}
				b.ReportMetric(100*res.Outcome().Gap(), "gap%")
			})
		}
	}
}

// What the search proves in moments today, it goes on proving.
func TestGrowth(t *testing.T) {
	for _, c := range growth() {
		if strings.HasSuffix(c.name, "=512") {
			continue // for the benchmark
		}
		bounded := mustSearch(t, c.p, Traffic, Options{WorkLimit: 60_000})
		if bounded.Bound > bounded.Cost || bounded.Status == milp.Feasible && bounded.Bound == bounded.Cost {
			t.Errorf("%s: %s, cost %v, bound %v", c.name, bounded.Status, bounded.Cost, bounded.Bound)
		}
		small := strings.HasPrefix(c.name, "components") || len(bounded.Steps) <= 63 && !strings.HasPrefix(c.name, "halo")
		if small && bounded.Status != milp.Optimal {
			t.Errorf("%s: %s, cost %v, bound %v within 60000 states", c.name, bounded.Status, bounded.Cost, bounded.Bound)
		}
	}
}
