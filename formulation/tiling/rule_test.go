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
	return &Problem{Product{Reps: 1, M: ceilDiv(rows, clusters), N: n, K: k, RowBytes: 2, ColumnBytes: 2, ResultBytes: 2, Constant: true}, *m}
}

func TestRule(t *testing.T) {
	for _, name := range machines {
		m, clusters := machine(t, name)
		for _, s := range [][3]int64{{2048, 12288, 12288}, {8192, 1024, 1024}, {197, 3072, 768}, {333, 777, 1000}, {1, 4096, 4096}, {16, 64, 64}} {
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
			seconds, limit := p.Time(&b)
			floor := least(p)
			if !p.Fits(&b) || seconds < floor {
				t.Errorf("%s %v: %+v fits %v, takes %g s, limit %v, floor %g s", name, s, b, p.Fits(&b), seconds, limit, floor)
			}
			t.Logf("%s %v: %.1f us, floor %.1f, limit %v", name, s, seconds*1e6, floor*1e6, limit)
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
	for _, s := range p.splits() {
		floor = min(floor, s.floor)
	}
	return floor
}
