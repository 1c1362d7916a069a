package cost_test

import (
	"fmt"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
)

func stcp920(t testing.TB) *cost.Model {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec = spec.Clone()
	spec.CoreTypes[0].Units[0].BlockCycles = 0 // TestMatrixBlocks has it
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A gap of 8 cycles between blocks, which the first block does not have.
func TestMatrixBlocks(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec = spec.Clone()
	spec.CoreTypes[0].Units[0].BlockCycles = 8
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		dims model.MatrixDims
		dt   model.DType
		want hardware.Cycles
	}{
		{"one block", model.MatrixDims{Reps: 1, M: 100, N: 32, K: 64}, model.F16, 100 + 25},
		{"four blocks", model.MatrixDims{Reps: 1, M: 100, N: 64, K: 128}, model.F16, 4*100 + 3*8 + 25},
		{"the gap does not shrink with the type", model.MatrixDims{Reps: 1, M: 100, N: 64, K: 128},
			model.I8, 4*50 + 3*8 + 25},
		{"repetitions", model.MatrixDims{Reps: 12, M: 128, N: 128, K: 64}, model.F16, 12*4*128 + 47*8 + 25},
	} {
		if got := m.MatrixCycles(c.dims, c.dt); got != c.want {
			t.Errorf("%s: %d cycles, want %d", c.name, got, c.want)
		}
	}
}

// The figures are worked out by hand from the formulas of the package
// documentation: a 64 x 32 array, 25 cycles of fill, 4096 bytes of weights per block
// at 512 bytes per cycle.
func TestMatrixCycles(t *testing.T) {
	m := stcp920(t)
	for _, c := range []struct {
		name string
		dims model.MatrixDims
		dt   model.DType
		want hardware.Cycles
	}{
		{"one block", model.MatrixDims{Reps: 1, M: 100, N: 32, K: 64}, model.F16, 100 + 25},
		{"edge waste in both directions", model.MatrixDims{Reps: 1, M: 100, N: 33, K: 65}, model.F16, 4*100 + 25},
		{"few rows wait for weights", model.MatrixDims{Reps: 1, M: 1, N: 64, K: 128}, model.F16, 4*8 + 25},
		{"repetitions", model.MatrixDims{Reps: 12, M: 128, N: 128, K: 64}, model.F16, 12*4*128 + 25},
		{"int8 at twice the rate", model.MatrixDims{Reps: 1, M: 100, N: 32, K: 64}, model.I8, 50 + 25},
		{"f32 at half the rate", model.MatrixDims{Reps: 1, M: 100, N: 32, K: 64}, model.F32, 200 + 25},
		{"nothing", model.MatrixDims{}, model.F16, 0},
	} {
		if got := m.MatrixCycles(c.dims, c.dt); got != c.want {
			t.Errorf("%s: %d cycles, want %d", c.name, got, c.want)
		}
	}
}

func TestVectorCycles(t *testing.T) {
	m := stcp920(t)
	for _, c := range []struct {
		name            string
		work            model.VectorWork
		dt              model.DType
		vector, special hardware.Cycles
	}{
		{"simple", model.VectorWork{Simple: 640}, model.F16, 10 + 10, 0},
		{"a partial group of lanes counts whole", model.VectorWork{Simple: 65}, model.F16, 2 + 10, 0},
		{"special", model.VectorWork{Special: 64}, model.F16, 0, 4 + 20},
		{"simple and move pay fill once", model.VectorWork{Simple: 64, Move: 64}, model.F16, 2 + 10, 0},
		{"f32 on half the lanes", model.VectorWork{Simple: 64}, model.F32, 2 + 10, 0},
		{"nothing", model.VectorWork{}, model.F16, 0, 0},
	} {
		v, s := m.VectorCycles(c.work, c.dt)
		if v != c.vector || s != c.special {
			t.Errorf("%s: %d and %d cycles, want %d and %d", c.name, v, s, c.vector, c.special)
		}
	}
}

// No tile is faster than the peak rates allow.
// A type without a rate has F16's by size, at most that of a byte, and no less than a wider one's of its kind.
func TestMissingRates(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rate map[string]float64
		of   model.DType
		said string
	}{
		{map[string]float64{"f16": 1, "i8": 5}, model.F8, "2 times that of f16"},
		{map[string]float64{"f16": 1, "i8": 5}, model.F4, "2 times that of f16"},
		{map[string]float64{"f16": 1, "f8": 5, "i8": 6}, model.F4, "1 times that of f8"},
		{map[string]float64{"f16": 1, "f8": 5, "i8": 6}, model.I2, "1 times that of i8"},
		{map[string]float64{"f8": 5}, model.F4, "1 times that of f8"},
		{map[string]float64{"f8": 5}, model.F16, "1"},
		{map[string]float64{"f8": 5, "f4": 4}, model.F4, ""},
	} {
		spec := spec.Clone()
		spec.CoreTypes[0].Units[0].Rate = c.rate
		m, err := cost.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		if said := m.Assumed(c.of); said != c.said {
			t.Errorf("%v: %v is assumed to have %q, want %q", c.rate, c.of, said, c.said)
		}
	}
}

func TestNeverFasterThanPeak(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	m := stcp920(t)
	perCore := m.PeakMACsPerSecond(model.F16) / float64(spec.Clusters*spec.Cores()) / spec.ClockHz
	if perCore != 64*32 {
		t.Errorf("peak of a core is %v MACs per cycle, want 2048", perCore)
	}
	for mm := int64(1); mm < 300; mm += 37 {
		for n := int64(1); n < 200; n += 31 {
			for k := int64(1); k < 300; k += 41 {
				d := model.MatrixDims{Reps: 3, M: mm, N: n, K: k}
				c := m.MatrixCycles(d, model.F16)
				if float64(c)*perCore < float64(3*mm*n*k) {
					t.Fatalf("%+v takes %d cycles, fewer than the peak allows", d, c)
				}
			}
		}
	}
}

func TestPicosecondsRoundUp(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec.ClockHz = 3e9
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Picoseconds(1); got != 334 {
		t.Errorf("one cycle at 3 GHz is %d ps, want 334", got)
	}
}

func ExampleModel_MatrixCycles() {
	spec, _ := hardware.Load("stcp920")
	m, _ := cost.New(spec)
	// A 3x3 convolution of 64 to 64 channels on 7 rows of 56 pixels.
	fmt.Println(m.MatrixCycles(model.MatrixDims{Reps: 1, M: 7 * 56, N: 64, K: 64 * 9}, model.F16))
	// Output: 7081cycles
}

// By hand, on an array of 64 x 32 whose cycles are half of the chip's.
func TestOwnClockAndLeast(t *testing.T) {
	spec := stcp920(t).Spec().Clone()
	u := &spec.CoreTypes[0].Units[0]
	u.ClockHz, u.LeastCycles = 2*spec.ClockHz, 64
	v := &spec.CoreTypes[0].Units[1]
	v.ClockHz, v.LeastCycles = spec.ClockHz/2, 8
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		dims model.MatrixDims
		want hardware.Cycles
	}{
		{"at twice the clock, with the fill", model.MatrixDims{Reps: 1, M: 100, N: 32, K: 64}, 50 + 13},
		{"no block is shorter than the least", model.MatrixDims{Reps: 1, M: 10, N: 64, K: 128}, 4*32 + 13},
	} {
		if got := m.MatrixCycles(c.dims, model.F16); got != c.want {
			t.Errorf("%s: %d cycles, want %d", c.name, got, c.want)
		}
	}
	if row, load, _ := m.MatrixRate(model.F16); row != 0.5 || load != 32 {
		t.Errorf("a row takes %g and a block at least %g cycles, want 0.5 and 32", row, load)
	}
	if got, _ := m.VectorCycles(model.VectorWork{Simple: 64}, model.F16); got != 16+20 {
		t.Errorf("a short command takes %d cycles, want the least and the fill at half the clock, 36", got)
	}
	if got, _ := m.VectorCycles(model.VectorWork{Simple: 64 * 20}, model.F16); got != 40+20 {
		t.Errorf("20 groups of lanes take %d cycles, want 60", got)
	}
	if got, want := m.PeakMACsPerSecond(model.F16), spec.PeakMACsPerSecond("f16"); got != want ||
		got != 2*64*32*float64(spec.Clusters*spec.Cores())*spec.ClockHz {
		t.Errorf("the peaks are %g and %g, want twice as much as at the chip's clock", got, want)
	}
}

// Operands of 16-bit elements at 64 bytes per cycle, for 1024 results: squares of 32 x 32 move
// 2 x 2 / 32 bytes for each multiply-accumulate, 2048 of them for each row of a block of 64 x 32.
func TestOperandsInTurn(t *testing.T) {
	spec := stcp920(t).Spec().Clone()
	u := &spec.CoreTypes[0].Units[0]
	u.OperandBytesPerSecond, u.ResultsHeld = 64*spec.ClockHz, 1024
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		dims model.MatrixDims
		want hardware.Cycles
	}{
		{"squares", model.MatrixDims{Reps: 1, M: 64, N: 64, K: 64}, 2*64*(1+4) + 25},
		{"a narrow result", model.MatrixDims{Reps: 1, M: 64, N: 16, K: 64}, 64*(1+5) + 25}, // 64 x 16 held
		{"few rows", model.MatrixDims{Reps: 1, M: 4, N: 32, K: 64}, 4*(1+18) + 25},         // 4 x 32
	} {
		if got := m.MatrixCycles(c.dims, model.F16); got != c.want {
			t.Errorf("%s: %d cycles, want %d", c.name, got, c.want)
		}
	}
	if row, _, _ := m.MatrixRate(model.F16); row != 1 || m.Feed(model.F16) != 4 {
		t.Errorf("a row takes at least %g and reading operands %g cycles, want 1 and 4", row, m.Feed(model.F16))
	}
}

// Blocks of commands in flight take what a pipeline with so many places takes, command by command: one begins behind
// the rows of the one before and when a place is free, which is the fill after the rows of the command so many before.
func TestCommandsInFlight(t *testing.T) {
	const rows, places, load, fill = 16, 5, 16, 33
	a := cost.Array{Rows: rows, InFlight: places, Row: 1, Load: load, Fill: fill}
	for line := int64(4); line <= 40; line++ {
		for lines := int64(1); lines <= 30; lines++ {
			var block []float64
			for range lines {
				for at := int64(0); at < line; at += rows {
					block = append(block, float64(min(rows, line-at)))
				}
			}
			block[0] = max(block[0], load)
			var start, takes []float64
			for range 400/len(block) + 4 {
				for _, r := range block {
					s, n := 0.0, len(start)
					if n > 0 {
						s = start[n-1] + takes[n-1]
					}
					if n >= places {
						s = max(s, start[n-places]+takes[n-places]+fill)
					}
					start, takes = append(start, s), append(takes, r)
				}
			}
			n := len(start)
			half := n / 2 / len(block) * len(block)
			want := (start[n-len(block)] - start[half]) / float64(n-len(block)-half) * float64(len(block))
			if got := a.Cycles(line*lines, line); got > want*1.005 || got < want*0.8 {
				t.Errorf("%d lines of %d: %g cycles, one by one %g", lines, line, got, want)
			}
		}
	}
	a.InFlight = 0
	if got := a.Cycles(7, 7); got != load {
		t.Errorf("7 rows that stream take %g cycles, expected %d", got, load)
	}
	if got := a.Cycles(100, 7); got != 100 {
		t.Errorf("100 rows that stream take %g cycles", got)
	}
}

// Under load products take as much longer as the clock is lower, and what bounds ask for stays.
func TestClockUnderLoad(t *testing.T) {
	of := func(load float64) (*cost.Model, float64) {
		spec, err := hardware.Load("a100")
		if err != nil {
			t.Fatal(err)
		}
		spec.LoadClockHz = load * spec.ClockHz
		m, err := cost.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		return m, float64(m.MatrixCycles(model.MatrixDims{Reps: 1, M: 4096, N: 4096, K: 4096}, model.F16))
	}
	fast, least := of(0)
	slow, took := of(.8)
	if x := took / least; x < 1.24 || x > 1.26 {
		t.Errorf("at .8 of the clock products take %g times as long, expected 1.25", x)
	}
	a, b, c := fast.MatrixRate(model.F16)
	if x, y, z := slow.MatrixRate(model.F16); a != x || b != y || c != z {
		t.Errorf("bounds see %g, %g, %g under load, expected %g, %g, %g", x, y, z, a, b, c)
	}
}
