package tiling

import (
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
)

// machines are the presets, with one level up where the L1 is of no use to the matrix units.
var machines = []string{"a100", "ascend910", "goya", "ipu", "stcp920", "tpu-v4i", "v100"}

func machine(t testing.TB, name string) (*Machine, int64) {
	t.Helper()
	s, err := hardware.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if s.NeedsRaise() {
		if s, err = hardware.Raise(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := cost.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return NewMachine(c, model.F16, model.F16), int64(s.Clusters)
}

// matmul is a product of f16 with weights, divided over clusters by rows, from the DDR and to it.
func matmul(m *Machine, clusters int64, rows, n, k int64) *Problem {
	return &Problem{Product{Reps: 1, M: ceilDiv(rows, clusters), N: n, K: k, RowBytes: 2, ColumnBytes: 2, ResultBytes: 2,
		Constant: true, Deep: k}, *m}
}

func TestRule(t *testing.T) {
	for _, name := range machines {
		m, clusters := machine(t, name)
		for _, s := range [][3]int64{{2048, 12288, 12288}, {8192, 1024, 1024}, {197, 3072, 768}, {333, 777, 1000},
			{1, 4096, 4096}, {16, 64, 64}} {
			p := matmul(m, clusters, s[0], s[1], s[2])
			b, err := Rule(p)
			if err != nil {
				t.Errorf("%s %v: %v", name, s, err)
				continue
			}
			again, err := Rule(p)
			if err != nil || again != b {
				t.Errorf("%s %v: %+v, and then %+v, %v", name, s, b, again, err)
			}
			seconds := p.Time(&b)
			floor := least(p)
			if !p.Fits(&b) || seconds < floor {
				t.Errorf("%s %v: %+v fits %v, takes %g s, floor %g s", name, s, b, p.Fits(&b), seconds, floor)
			}
			t.Logf("%s %v: %.1f us, floor %.1f", name, s, seconds*1e6, floor*1e6)
		}
	}
}

// A deep product with few results has its reduction divided over cores, and is faster for it; a wide one is as
// fast as without slices.
func TestRuleSlices(t *testing.T) {
	m, clusters := machine(t, "a100")
	for _, c := range []struct {
		rows, n, k int64
		sliced     bool
	}{{64, 64, 16384, true}, {333, 64, 16384, true}, {2048, 4096, 4096, false}} {
		p := matmul(m, clusters, c.rows, c.n, c.k)
		b, err := Rule(p)
		if err != nil {
			t.Fatal(err)
		}
		with := p.Time(&b)
		p.Deep = 0
		whole, err := Rule(p)
		if err != nil {
			t.Fatal(err)
		}
		without := p.Time(&whole)
		if sliced := b.Cores[3] > 1; sliced != c.sliced || with > without || sliced && with > 0.9*without {
			t.Errorf("%d x %d x %d: cores %v, %g s, and %g s where none share a reduction", c.rows, c.k, c.n,
				b.Cores, with, without)
		}
	}
}

func BenchmarkRule(b *testing.B) {
	for _, name := range machines {
		m, clusters := machine(b, name)
		b.Run(name, func(b *testing.B) {
			p := matmul(m, clusters, 2048, 4096, 4096)
			for b.Loop() {
				if _, err := Rule(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// least is what no tiling over any cores is below.
func least(p *Problem) float64 {
	floor := math.Inf(1)
	for _, s := range p.splits(p.slices()) {
		floor = min(floor, s.floor)
	}
	return floor
}

// Smaller loads bring a number of tiles that divides the reduction's, at most half of those before, down to one.
func TestSmallerLoads(t *testing.T) {
	for sums := int64(1); sums <= 60; sums++ {
		p := &Problem{Product: Product{Reps: 1, M: 8, N: 8, K: sums, Constant: true},
			Machine: Machine{LLB: 1, Rows: 1, Columns: 1}}
		b := Blocks{Cores: [4]int64{1, 1, 1, 1}, Rows: 1, Columns: 8, Reduction: 1, Group: [2]int64{1, sums}}
		for was := sums; p.SmallerLoads(&b); was = b.Group[1] {
			if b.Group[1] < 1 || 2*b.Group[1] > was || sums%b.Group[1] != 0 {
				t.Fatalf("of %d tiles, loads of %d follow those of %d", sums, b.Group[1], was)
			}
		}
		if b.Group[1] != 1 {
			t.Errorf("of %d tiles, the smallest loads have %d", sums, b.Group[1])
		}
	}
}

// Where rows come in whole requests, narrow tiles take longer, and the rule takes wider ones; where few commands are
// under way, so do short lines.
func TestRequests(t *testing.T) {
	m, _ := machine(t, "gemmini")
	plain := *m
	plain.InFlight, plain.Row = 0, 1 // as of i8
	p := &Problem{Product: Product{Reps: 1, M: 28 * 28, N: 256, K: 512, RowBytes: 1, ColumnBytes: 1, ResultBytes: 1,
		Constant: true, Window: &Window{Height: 1, Width: 1, StrideHeight: 1, StrideWidth: 1, OutputWidth: 28}},
		Machine: plain}
	before, err := Rule(p)
	if err != nil {
		t.Fatal(err)
	}
	narrow := before
	narrow.Columns = 16
	free := p.Time(&narrow)
	p.Request = 64
	whole := p.Time(&narrow)
	if whole < 1.3*free {
		t.Errorf("rows of 16 bytes in requests of 64: %g s, before %g", whole, free)
	}
	after, err := Rule(p)
	if err != nil {
		t.Fatal(err)
	}
	if after.Columns < 64 {
		t.Errorf("tiles of %d columns, expected rows of a request of 64 bytes", after.Columns)
	}
	p.InFlight = m.InFlight
	long := p.block(112)
	p.Window.OutputWidth = 4
	if short := p.block(112); short < 1.5*long {
		t.Errorf("a block takes %g cycles with lines of 4, %g with lines of 28", short, long)
	}
}
