package streams

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestTogether(t *testing.T) {
	m := &Machine{Processors: 4, LaunchSeconds: 0.5}
	ops := []Operator{{Blocks: 6, BlockSeconds: 1}, {Blocks: 2, BlockSeconds: 3}, {Blocks: 0},
		{Blocks: 3, BlockSeconds: 1, Width: 1}}
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

// Blocks that move more than the memory can slow each other, and only then.
func TestContention(t *testing.T) {
	m := &Machine{Processors: 4, BytesPerSecond: 8, ProcessorBytesPerSecond: 4}
	ops := []Operator{{Blocks: 4, BlockSeconds: 1, BlockBytes: 8}, {Blocks: 2, BlockSeconds: 3},
		{Blocks: 2, BlockSeconds: 1, BlockBytes: 8}, {Blocks: 2, BlockSeconds: 4, BlockBytes: 4}}
	for _, c := range []struct {
		set     []int
		seconds float64
	}{
		{[]int{0}, 4},    // each may have 2 of the memory's 8
		{[]int{2}, 2},    // as much as a processor moves
		{[]int{1, 2}, 3}, // nothing to share
		// The last asks for 1 each and has it; the others have 3 each until they end at 8/3, and nothing is slower then.
		{[]int{2, 3}, 4},
		{[]int{0, 2}, 6}, // 48 bytes
	} {
		if p := m.Together(ops, c.set); !near(p.Seconds, c.seconds) {
			t.Errorf("%v: %v s, expected %v", c.set, p.Seconds, c.seconds)
		}
	}
	// A second simulator moves each block on by small steps; no phase is below the bound, and what a machine with a
	// boundless memory does is no slower.
	const dt = 1e-3
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		m := &Machine{Processors: 1 + rng.Int64N(5), BytesPerSecond: float64(1 + rng.IntN(8)),
			ProcessorBytesPerSecond: float64(1 + rng.IntN(4))}
		var ops []Operator
		var set []int
		for i := range 1 + rng.IntN(3) {
			ops = append(ops, Operator{Blocks: 1 + rng.Int64N(6), BlockSeconds: float64(1 + rng.IntN(3)),
				BlockBytes: float64(rng.IntN(6))})
			set = append(set, i)
		}
		got := m.Together(ops, set).Seconds
		left := make([]int64, len(ops))
		type block struct{ work, bytes float64 } // left
		var on []block
		var of []int
		for i := range ops {
			left[i] = ops[i].Blocks
		}
		now := 0.0
		for ; ; now += dt {
			for k := len(on) - 1; k >= 0; k-- {
				if on[k].work <= dt/2 && on[k].bytes <= dt/2 {
					on, of = slices.Delete(on, k, k+1), slices.Delete(of, k, k+1)
				}
			}
			for int64(len(on)) < m.Processors {
				next := -1
				for i := range ops {
					if left[i] > 0 && (next < 0 || m.block(&ops[i]) > m.block(&ops[next])) {
						next = i
					}
				}
				if next < 0 {
					break
				}
				left[next]--
				on, of = append(on, block{ops[next].BlockSeconds, ops[next].BlockBytes}), append(of, next)
			}
			if len(on) == 0 {
				break
			}
			// Raise what all may move until the memory is used up.
			lo, hi := 0.0, m.ProcessorBytesPerSecond
			want := func(i int) float64 { return ops[i].BlockBytes / m.block(&ops[i]) }
			for range 50 {
				mid, sum := (lo+hi)/2, 0.0
				for _, i := range of {
					sum += min(mid, want(i))
				}
				if sum <= m.BytesPerSecond {
					lo = mid
				} else {
					hi = mid
				}
			}
			for k, i := range of {
				rate := 1.0
				if w := want(i); w > hi {
					rate = hi / w
				}
				on[k].work -= dt * rate * ops[i].BlockSeconds / m.block(&ops[i])
				on[k].bytes -= dt * rate * want(i)
			}
		}
		if math.Abs(got-now) > .02*now+20*dt {
			t.Errorf("seed %d: %v s, in steps %v", seed, got, now)
		}
		boundless := Machine{Processors: m.Processors}
		if b := m.Bound(ops, set); got < b*(1-1e-9) || got < boundless.Bound(ops, set)*(1-1e-9) {
			t.Errorf("seed %d: %v s, bound %v", seed, got, b)
		}
		for i := range ops {
			if a, x := m.Alone(&ops[i]), m.Together(ops, []int{i}).Seconds; !near(a, x) {
				t.Errorf("seed %d: alone %v s, simulated %v", seed, a, x)
			}
		}
	}
}

// Operators that can be one kernel are, where that saves a wave or a launch.
func TestAsOne(t *testing.T) {
	m := &Machine{Processors: 4, LaunchSeconds: 1}
	ops := []Operator{{Name: "a", Blocks: 2, BlockSeconds: 1, Merge: "x"},
		{Name: "b", Blocks: 6, BlockSeconds: 2, Merge: "x"},
		{Name: "c", Blocks: 4, BlockSeconds: 5, Merge: "x", After: []int{0}}}
	if mode, phases := m.Best(ops, []int{0, 1, 2}); mode != SideBySide || Seconds(phases) != 11 {
		t.Errorf("%s, %+v", mode, phases)
	}
	// Three blocks each on four processors: side by side two long waves, as one kernel as well, and a launch less than
	// apart.
	ops = []Operator{{Blocks: 3, BlockSeconds: 2, Merge: "x"}, {Blocks: 5, BlockSeconds: 2, Merge: "x"}}
	if p := m.asOne(ops, []int{0, 1}); len(p) != 1 || p[0].Seconds != 5 || !slices.Equal(p[0].Operators, []int{0, 1}) ||
		!slices.Equal(p[0].Ends, []float64{5, 5}) {
		t.Errorf("%+v", p)
	}
	if p := m.asOne(ops[:1], []int{0}); p != nil {
		t.Errorf("%+v", p)
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
