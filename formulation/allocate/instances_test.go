package allocate

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// instances are those of google/minimalloc, which are not part of the repository,
// with the capacity that each must fit into and its least peak.
var instances = []struct {
	name           string
	capacity, peak int64
}{
	{"A", 1048576, 1048576}, {"C", 1048576, 1039360}, {"E", 1048576, 1048576}, {"F", 1048576, 1048576},
	{"K", 1048576, 1048576},
	{"input", 12, 12},
}

func instance(t testing.TB, name string) *Problem {
	t.Helper()
	files, err := filepath.Glob("../../../shared/data/minimalloc/" + name + ".*.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Skipf("skipped: ../shared/data has no file %s", name)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadCSV(files[0], data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Nodes are counted rather than time, so that a busy machine does not fail the
// test.
func TestInstances(t *testing.T) {
	for _, c := range instances {
		t.Run(c.name, func(t *testing.T) {
			p := instance(t, c.name)
			fit, err := Fit(context.Background(), p, c.capacity, Options{WorkLimit: 200_000})
			if err != nil || !fit.Status.HasValues() || peak(fit) > c.capacity {
				t.Fatalf("found %v with peak %d after %d nodes, %v", fit.Status, peak(fit), fit.Nodes, err)
			}
			if err := Check(p, c.capacity, fit.Offsets); err != nil {
				t.Error(err)
			}
			least, err := Minimize(context.Background(), p, Options{WorkLimit: 200_000})
			checkMinimum(t, p, c.peak, least, err)
			below, err := Fit(context.Background(), p, c.peak-1, Options{})
			if err != nil || below.Status != milp.Infeasible || below.Bound != c.peak {
				t.Errorf("below the least peak found %v with bound %d, %v", below.Status, below.Bound, err)
			}
			t.Logf("%d and %d nodes", fit.Nodes, least.Nodes)
		})
	}
}

func BenchmarkFit(b *testing.B) {
	for _, c := range instances {
		b.Run(c.name, func(b *testing.B) {
			p := instance(b, c.name)
			for b.Loop() {
				sol, err := Fit(context.Background(), p, c.capacity, Options{})
				if err != nil || !sol.Status.HasValues() {
					b.Fatalf("%+v, %v", sol, err)
				}
				b.ReportMetric(float64(sol.Nodes), "nodes")
			}
		})
	}
}

// Seeds below 1000 are those to develop on, others to judge by. The share that is solved
// within ten seconds each is reported.
func BenchmarkFamily(b *testing.B) {
	for _, c := range []struct {
		name string
		from uint64
	}{{"developing", 0}, {"judging", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			solved, all := 0, 0
			for b.Loop() {
				p, capacity := family(c.from + uint64(all%240))
				sol, err := Fit(context.Background(), p, capacity, Options{TimeLimit: 10 * time.Second})
				if err != nil {
					b.Fatal(err)
				}
				if all++; sol.Status != milp.Limit {
					solved++
				}
			}
			b.ReportMetric(100*float64(solved)/float64(all), "%solved")
		})
	}
}

func BenchmarkMinimize(b *testing.B) {
	for _, c := range instances {
		b.Run(c.name, func(b *testing.B) {
			p := instance(b, c.name)
			for b.Loop() {
				sol, err := Minimize(context.Background(), p, Options{})
				if err != nil || peak(sol) != c.peak || sol.Status != milp.Optimal {
					b.Fatalf("%+v, %v", sol, err)
				}
			}
		})
	}
}

func BenchmarkSpill(b *testing.B) {
	for _, c := range instances {
		b.Run(c.name, func(b *testing.B) {
			p := instance(b, c.name)
			for b.Loop() {
				sol, err := Spill(context.Background(), p, c.capacity*7/8,
					SpillOptions{Options: solve.Options[SpillStart]{WorkLimit: 20_000}})
				if err != nil || !sol.Status.HasValues() {
					b.Fatalf("%+v, %v", sol, err)
				}
			}
		})
	}
}
