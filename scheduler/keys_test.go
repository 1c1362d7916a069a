package scheduler

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/tests/benchmarks"
)

// Schedules of one name are lowered to one program, and kernels that are alike take the same time alone, whatever kinds
// of core run them.
func TestEqualKeysEqualPrograms(t *testing.T) {
	programs, kernels := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		spec, g := benchmarks.Mixed(t, r)
		recipe, err := Lookup([]string{"l1", "tiled-llb", "cross-layer"}[r.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		net := network.Network{Name: "kinds", Graph: func(int64) (*model.Graph, error) { return g, nil }}
		w := NewProblem(net, spec, spec, 1, Options{})
		made, err := recipe.Prepare(t.Context(), net, spec, 1, Options{Chunk: 1})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// Machines whose kinds differ in nothing but their rates are the hardest to tell apart.
		own, p := kindsOf{}, made.Decisions(false, false)
		named, alike := map[[sha256.Size]byte][sha256.Size]byte{}, map[string]int64{}
		for range 6 {
			for _, layers := range made.Schedule.Layers {
				for l := range layers {
					own[layers[l].Anchor] = r.IntN(len(spec.Kinds()))
				}
			}
			q, name, err := w.Decided(t.Context(), p.with(kindsOf(cloned(own))))
			if TooLarge(err) {
				continue
			} else if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			program, err := lower.Program("", spec, q.Plans, q.Lower)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			text := sha256.Sum256(fmt.Appendf(nil, "%+v", program.Commands))
			if same, known := named[name]; known && same != text {
				t.Errorf("seed %d: two programs have one name", seed)
			} else if !known {
				named[name] = text
				programs++
			}
			d := &Draft{Schedule: q.Schedule, Lower: q.Lower}
			for i := range q.Schedule.Steps {
				alone, outline, err := lower.Outline("step", spec, d.onBusy(lower.StepAlone(q.Schedule, i), 1), d.Lower)
				if err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, i, err)
				}
				ps, _, err := sim.Latency(t.Context(), alone, outline, math.MaxInt64)
				if err != nil {
					t.Fatal(err)
				}
				key := kernelKey(q.Schedule, i)
				if was, known := alike[key]; known && was != ps {
					t.Errorf("seed %d, step %d: kernels of one key take %d and %d ps", seed, i, was, ps)
				} else if known {
					kernels++
				}
				alike[key] = ps
			}
		}
	}
	if programs < 100 || kernels < 50 {
		t.Errorf("%d programs and %d kernels: these say nothing", programs, kernels)
	}
	t.Logf("%d programs, %d kernels", programs, kernels)
}

// An exploration that other chunks' times cut short, or that divides layers by another weight, is no other call's.
func TestExploredAnew(t *testing.T) {
	opt, found := Options{}, 0
	opt.Share()
	for i, c := range []struct {
		of   state
		want int
	}{{state{}, 1}, {state{rival: &rival{}}, 1}, {state{rival: &rival{ps: 5}}, 2}, {state{rival: &rival{ps: 7}}, 3},
		{state{rival: &rival{ps: 5}}, 2}, {state{ddrWeight: 2}, 4}, {state{}, 1}} {
		d := &Draft{Options: opt, state: c.of, exact: 1}
		got, err := d.Explored(&Rehearsal{}, "", func() (any, error) {
			found++
			return found, nil
		})
		if err != nil || got != c.want {
			t.Errorf("call %d has exploration %v (%v), expected %d", i, got, err, c.want)
		}
	}
}
