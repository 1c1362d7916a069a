package tiling

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// small is a random problem whose space can be enumerated.
func small(r *rand.Rand) *Problem {
	pick := func(list ...int64) int64 { return list[r.IntN(len(list))] }
	level := func() Level { return Level(r.IntN(3)) }
	p := &Problem{Product{Reps: pick(1, 1, 2, 3), M: 1 + r.Int64N(24), N: 1 + r.Int64N(24), K: 1 + r.Int64N(24),
		RowBytes: pick(1, 2, 4), ColumnBytes: pick(1, 2), ResultBytes: pick(1, 2, 4),
		RowsFrom: level(), ColumnsFrom: level(), To: level(), Constant: r.IntN(2) == 0},
		Machine{Cores: pick(1, 2, 3, 6), Rows: pick(1, 4, 8), Columns: pick(1, 4, 16), Row: 1 / float64(pick(1, 2, 4)),
			Load: float64(pick(0, 4)), Gap: float64(pick(0, 1)), Fill: float64(pick(0, 8)),
			Simple: 0.1, Special: 1, Move: 0.1, VectorFill: 4, SpecialFill: 4, Clock: 1e9,
			Data: pick(1<<10, 1<<12, 1<<14), Ring: pick(1<<9, 1<<11), Home: pick(0, 1<<10), In: float64(pick(4, 16)) * 1e9,
			Out:     float64(pick(4, 16)) * 1e9,
			LLBRate: float64(pick(8, 64)) * 1e9, DDRWeights: float64(pick(2, 16)) * 1e9, L1Latency: float64(pick(0, 20)) * 1e-9,
			DDRLatency: float64(pick(0, 50)) * 1e-9, Broadcast: r.IntN(2) == 0}}
	p.DDRActivations = p.DDRWeights * (0.5 + r.Float64()/2)
	p.MatrixUnits, p.VectorUnits, p.SpecialUnits = pick(1, p.Cores), p.Cores, pick(1, p.Cores)
	if p.Constant {
		p.Reps = 1
	}
	if r.IntN(2) == 0 {
		p.Shared = p.Data + p.Ring - 64*pick(0, 0, 4)
	}
	if r.IntN(3) > 0 {
		p.LLB, p.Page = pick(1<<14, 1<<16), 64
		p.Home, p.Head = 0, float64(pick(0, 20, 200))*1e-9
	} else {
		p.LLBRate = math.Inf(1)
		for _, l := range []*Level{&p.RowsFrom, &p.ColumnsFrom, &p.To} {
			if *l == LLB {
				*l = DDR
			}
		}
	}
	if r.IntN(3) == 0 {
		p.Product.Simple, p.Product.Special = float64(pick(1, 4)), float64(pick(0, 1))
	}
	if r.IntN(3) == 0 {
		p.Extra = []Extra{{pick(1, 2), p.To}}
	}
	if r.IntN(4) == 0 {
		p.Window = &Window{Height: pick(1, 3), Width: pick(1, 3), StrideHeight: pick(1, 2), StrideWidth: pick(1, 2),
			OutputWidth: 1 + r.Int64N(8)}
		p.K = p.Window.Height * p.Window.Width * (1 + r.Int64N(6))
	}
	if p.Constant && p.RowsFrom != L1 && r.IntN(2) == 0 {
		p.Deep = p.K
		if w := p.Window; w != nil {
			p.Deep /= w.Height * w.Width
		}
		p.Sync = float64(pick(0, 50)) * 1e-9
	}
	if r.IntN(4) == 0 {
		p.Most = 1 + r.Int64N(30)
	}
	if r.IntN(3) == 0 {
		outer, inner := 1+r.Int64N(5), 1+r.Int64N(5)
		p.M = outer * inner
		p.Divide([]int64{outer, inner}, []int64{p.N}, p.Cores)
	}
	if r.IntN(3) == 0 {
		p.InFlight = pick(2, 5)
	}
	return p
}

// enumerated is the least time of all tilings: a naive loop, which calls each extent from 1 on a
// tile's and each number of cores, of the same space and more.
func enumerated(p *Problem) float64 {
	best := math.Inf(1)
	for pr := int64(1); pr <= min(p.Reps, p.Cores); pr++ {
		for pm := int64(1); pm <= min(p.M, p.Cores/pr); pm++ {
			for pn := int64(1); pn <= min(p.N, p.Cores/pr/pm); pn++ {
				for ps := int64(1); ps <= max(1, min(p.Deep, p.Cores/pr/pm/pn)); ps++ {
					if ps > 1 && p.Deep%ps != 0 || ps*p.Grain() > max(p.K, p.Grain()) {
						continue
					}
					cores := [4]int64{pr, pm, pn, ps}
					_, m, n := p.part(cores)
					for tm := int64(1); tm <= m; tm++ {
						for tn := int64(1); tn <= ceilDiv(n, p.Machine.Columns); tn++ {
							for tk := int64(1); tk <= ceilDiv(p.depth(cores), p.Grain()); tk++ {
								p.leaves(cores, tm, tn*p.Machine.Columns, tk*p.Grain(),
									func(_ Blocks, seconds float64) { best = min(best, seconds) })
							}
						}
					}
				}
			}
		}
	}
	return best
}

// Branch and bound finds what enumeration finds, with and without each pruning, and every bound holds.
func TestExact(t *testing.T) {
	ran, pruned := 0, int64(0)
	for seed := range uint64(500) {
		p := small(rand.New(rand.NewPCG(seed, 1)))
		want := enumerated(p)
		leaves := int64(0)
		for i, without := range []prunings{{}, {noDivisions: true}, {noTiles: true}, {noLengths: true}} {
			got, err := p.exact(context.Background(), solve.Options[*Blocks]{}, without)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if math.IsInf(want, 1) {
				if got.Status != milp.Infeasible {
					t.Errorf("seed %d: %v, expected that nothing fits", seed, got.Status)
				}
				continue
			}
			if got.Status != milp.Optimal || math.Abs(got.Objective-want) > 1e-9*want || got.Bound != got.Objective {
				t.Errorf("seed %d, without %+v: %v, %g (bound %g), enumeration has %g", seed, without, got.Status,
					got.Objective, got.Bound, want)
			}
			if x := p.Time(&got.Blocks); x != got.Objective || !p.Fits(&got.Blocks) {
				t.Errorf("seed %d: the tiling takes %g, not %g, or does not fit", seed, x, got.Objective)
			}
			if i == 0 {
				ran, leaves = ran+1, got.Leaves
			} else {
				pruned += got.Leaves - leaves
			}
		}
	}
	if ran < 300 || pruned == 0 {
		t.Errorf("%d problems, %d leaves pruned", ran, pruned)
	}
}

// The best tiling is the best of those that keep one of the divisions over the cores.
func TestKeep(t *testing.T) {
	ran := 0
	for seed := range uint64(200) {
		p := small(rand.New(rand.NewPCG(seed, 1)))
		p.Deep, p.Window, p.rowParts, p.columnParts, p.rowDims = 0, nil, nil, nil, nil
		least := func(p *Problem) float64 {
			got, err := p.exact(context.Background(), solve.Options[*Blocks]{}, prunings{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got.Status == milp.Infeasible {
				return math.Inf(1)
			}
			return got.Objective
		}
		best := math.Inf(1)
		for _, s := range p.divisions() {
			kept := *p
			kept.Keep(s.cores[0], []int64{p.M}, []int64{s.cores[1]}, p.N, s.cores[2])
			best = min(best, least(&kept))
			if b, err := Rule(&kept); err == nil && b.Cores != s.cores {
				t.Errorf("seed %d: the rule divides over %v, expected %v", seed, b.Cores, s.cores)
			}
		}
		if want := least(p); best != want {
			t.Errorf("seed %d: %g of all divisions, and %g of the best of each", seed, want, best)
		} else if !math.IsInf(best, 1) {
			ran++
		}
	}
	if ran < 100 {
		t.Errorf("only %d problems have a tiling", ran)
	}
}
