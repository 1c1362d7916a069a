package streams

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestTogether(t *testing.T) {
	m := &Machine{Processors: 4, LaunchSeconds: 0.5}
	ops := []Operator{{Blocks: 6, BlockSeconds: 1}, {Blocks: 2, BlockSeconds: 3}, {Blocks: 0}, {Blocks: 3, BlockSeconds: 1, Width: 1}}
	for _, c := range []struct {
		set     []int
		seconds float64
		use     float64
	}{
		// By hand: 6 blocks on 4 processors are two waves.
		{[]int{0}, 2.5, 6 / (4 * 2.5)},
		// The long blocks first, then three waves of two short ones.
		{[]int{0, 1}, 3.5, 12 / (4 * 3.5)},
		{[]int{2}, 0.5, 0},
		// One processor at a time works on the last, after the first wave of the other.
		{[]int{3}, 3.5, 3 / (4 * 3.5)},
		{[]int{0, 3}, 4.5, 9 / (4 * 4.5)},
		{nil, 0, 0},
	} {
		p := m.Together(ops, c.set)
		if !near(p.Seconds, c.seconds) || !near(p.Utilization, c.use) {
			t.Errorf("%v: %v s, %v, expected %v s, %v", c.set, p.Seconds, p.Utilization, c.seconds, c.use)
		}
	}
	if alone := m.Alone(&ops[0]); alone != m.Together(ops, []int{0}).Seconds {
		t.Errorf("alone %v", alone)
	}
}

// A second simulator steps through time block by block.
func TestTogetherAgainstSteps(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := &Machine{Processors: 1 + rng.Int64N(9), LaunchSeconds: 2}
		var ops []Operator
		var set []int
		for i := range 1 + rng.IntN(5) {
			ops = append(ops, Operator{Blocks: rng.Int64N(30), BlockSeconds: float64(1 + rng.IntN(6))})
			set = append(set, i)
		}
		left := make([]int64, len(ops))
		for i := range ops {
			left[i] = ops[i].Blocks
		}
		ends := make([]float64, m.Processors) // of what each processor runs
		for i := range ends {
			ends[i] = m.LaunchSeconds
		}
		last := m.LaunchSeconds
		for {
			best := -1
			for i := range ops {
				if left[i] > 0 && (best < 0 || ops[i].BlockSeconds > ops[best].BlockSeconds) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			left[best]--
			k := slices.Index(ends, slices.Min(ends))
			ends[k] += ops[best].BlockSeconds
			last = max(last, ends[k])
		}
		if got := m.Together(ops, set).Seconds; !near(got, last) {
			t.Fatalf("seed %d: %v, stepping %v", seed, got, last)
		}
	}
}

func TestMerged(t *testing.T) {
	ops := []Operator{
		{Name: "a", Blocks: 2, BlockSeconds: 1, Merge: "x"},
		{Name: "b", Blocks: 3, BlockSeconds: 2, After: []int{0}, Merge: "x"},
		{Name: "c", Blocks: 4, BlockSeconds: 2, Merge: "x"},
		{Name: "d", Blocks: 1, BlockSeconds: 1, After: []int{2}},
	}
	merged, parts := Merged(ops)
	got := fmt.Sprint(parts)
	for _, op := range merged {
		got += fmt.Sprintf(" %s %d %v %v;", op.Name, op.Blocks, op.BlockSeconds, op.After)
	}
	if want := "[[0 2] [1] [3]] a+c 6 2 []; b 3 2 [0]; d 1 1 [0];"; got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
}

// The last block of Inception-v3: a branch of one convolution, one of a convolution
// and two after it, one of two convolutions and two after them, and a pool with a
// convolution. Ten operators after the block before.
func TestOperators(t *testing.T) {
	g, err := zoo.Build("inception-v3", zoo.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	g, _, err = simplify.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("v100")
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDevice(spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d.Processors != 80 {
		t.Errorf("%d processors", d.Processors)
	}
	ops, cuts, err := Operators(g, d)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(ops); err != nil {
		t.Error(err)
	}
	var sizes []int
	macs := int64(0)
	for i := range cuts[1:] {
		sizes = append(sizes, cuts[i+1]-cuts[i])
	}
	for _, op := range ops {
		macs += op.MACs
	}
	if macs != g.MACs() {
		t.Errorf("%d MACs, the network has %d", macs, g.MACs())
	}
	if want := "[1 1 1 1 1 1 1 8 8 8 5 11 11 11 11 7 10 10 1 1 1]"; fmt.Sprint(sizes) != want {
		t.Errorf("blocks of %v operators, expected %s", sizes, want)
	}
}
