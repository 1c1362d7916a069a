package pipelining

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

func TestThreads(t *testing.T) {
	table := []Speedup{{1, 1}, {8, 8}, {16, 16}, {32, 32}, {48, 48}, {64, 40}}
	for _, c := range []struct {
		l    Loading
		want int
	}{
		{Loading{0, 0.01, 0.2, 256, table}, 16},  // 12.8 times one thread are enough
		{Loading{0, 0.01, 0.02, 256, table}, 48}, // none is, and 64 are slower
		{Loading{9, 0.01, 0.02, 256, table}, 1},  // names of files hold all up
		{Loading{0, 0, 1, 1, table}, 1},
	} {
		got, err := Threads(&c.l)
		if err != nil || got.Threads != c.want {
			t.Errorf("%+v: %v, %v, expected %d", c.l, got, err, c.want)
		}
	}
	for _, l := range []Loading{{0, 0, 0, 0, table}, {0, -1, 0, 1, table}, {0, 0, 0, 1, nil},
		{0, 0, 0, 1, []Speedup{{2, 1}, {1, 1}}}, {0, 0, 0, 1, []Speedup{{1, 0}}}} {
		if _, err := Threads(&l); !isInput(err) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func TestMicroBatches(t *testing.T) {
	// By hand from b = ceil(2 + 2 sqrt p).
	for p, want := range map[int]int{1: 1, 2: 5, 3: 6, 4: 6, 5: 7, 6: 7, 7: 8, 8: 8, 9: 8, 64: 18} {
		if b, err := MicroBatches(p, 256, 64); err != nil || b != want {
			t.Errorf("%d stages: %d, %v, expected %d", p, b, err, want)
		}
	}
	for p := 1; p <= 200; p++ {
		for _, batch := range []int{1, 7, 64, 100, 256, 1000} {
			for _, device := range []int{1, 3, 64, 300} {
				a, errA := MicroBatches(p, batch, device)
				b, errB := ClosedForm(p, batch, device)
				if a != b || (errA == nil) != (errB == nil) {
					t.Fatalf("p %d, B %d, B_dev %d: %d, %v by trying, %d, %v by formula", p, batch, device, a, errA, b, errB)
				}
			}
		}
	}
}

// Every set of ends.
func bruteStages(layers []Layer, limit float64) *staging {
	var best *staging
	for mask := range 1 << (len(layers) - 1) {
		var ends []int
		for i := range len(layers) - 1 {
			if mask>>i&1 != 0 {
				ends = append(ends, i+1)
			}
		}
		s := NewStaging(layers, append(ends, len(layers)))
		if s.Utilization <= limit+1e-9 && (best == nil || s.Seconds < best.Seconds-1e-12 ||
			s.Seconds < best.Seconds+1e-12 && len(s.Stages) < len(best.Stages)) {
			best = s
		}
	}
	return best
}

func TestStages(t *testing.T) {
	// The paper's example (Fig. 11), layers of equal time.
	var layers []Layer
	for _, u := range []float64{.5, .4, .3, .4, .5, .4} {
		layers = append(layers, Layer{1, u})
	}
	if s, err := Stages(layers, 1); err != nil || fmt.Sprint(s.Stages) != "[[0 3] [3 6]]" || s.Utilization != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	solver, noSolver := highs.New()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		layers = nil
		for range 1 + rng.IntN(9) {
			layers = append(layers, Layer{float64(rng.IntN(8)), float64(rng.IntN(10)) / 10})
		}
		want := bruteStages(layers, 1)
		got, err := Stages(layers, 1)
		if err != nil || got.Seconds != want.Seconds || len(got.Stages) != len(want.Stages) {
			t.Fatalf("seed %d: %+v, %v, brute force %+v", seed, got, err, want)
		}
		if seed%10 == 0 && noSolver == nil {
			got, err := StagesILP(context.Background(), solver, layers, 1)
			if err != nil || math.Abs(got.Seconds-want.Seconds) > 1e-6 {
				t.Fatalf("seed %d: integer program %+v, %v, brute force %+v", seed, got, err, want)
			}
		}
	}
	if _, err := Stages([]Layer{{1, 0.9}}, 0.5); !isInput(err) {
		t.Errorf("a layer over the limit: %v", err)
	}
}

func Example() {
	for p := 2; p <= 8; p++ {
		b, err := MicroBatches(p, 256, 64)
		fmt.Print(b, " ")
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println()
	// Output: 5 6 6 7 7 8 8
}

// StagesILP is Stages by an integer linear program.
func StagesILP(ctx context.Context, solver milp.Solver, layers []Layer, limit float64) (*staging, error) {
	if err := checkLayers(layers, limit); err != nil {
		return nil, err
	}
	total := 0.0
	for _, l := range layers {
		total += l.Seconds
	}
	scale := max(total, 1e-300)
	m := milp.New("stages")
	T := m.Continuous("T", 0, 1, 1)
	cover, time := make([][]milp.Term, len(layers)), make([][]milp.Term, len(layers))
	var use []milp.Term
	x := map[[2]int]milp.Var{}
	for i := range layers {
		t, u := 0.0, 0.0
		for j := i + 1; j <= len(layers); j++ {
			t += layers[j-1].Seconds / scale
			u = max(u, layers[j-1].Utilization)
			v := m.Binary(fmt.Sprintf("x[%d,%d]", i, j), 1e-6/float64(len(layers)))
			x[[2]int{i, j}] = v
			use = append(use, v.Times(u))
			for k := i; k < j; k++ {
				cover[k] = append(cover[k], v.Times(1))
				time[k] = append(time[k], v.Times(t))
			}
		}
	}
	for k := range layers {
		m.AddEQ(fmt.Sprintf("(3) %d", k), cover[k], 1)
		m.AddLE(fmt.Sprintf("(5) %d", k), append(time[k], T.Times(-1)), 0)
	}
	m.AddLE("(4)", use, limit+slack)
	sol, err := solver.Solve(ctx, m, milp.Options{})
	if err != nil {
		return nil, err
	}
	if !sol.Status.HasValues() {
		return nil, fmt.Errorf("stages: the integer program is %v", sol.Status)
	}
	var ends []int
	for i := 0; i < len(layers); {
		for j := i + 1; j <= len(layers); j++ {
			if sol.Int(x[[2]int{i, j}]) == 1 {
				ends = append(ends, j)
				i = j
				break
			}
		}
	}
	return NewStaging(layers, ends), nil
}

func isInput(err error) bool {
	var e *InputError
	return errors.As(err, &e)
}
