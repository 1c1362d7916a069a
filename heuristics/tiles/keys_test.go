package tiles_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/tiles"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/tests/benchmarks"
)

// Steps for whose tiles one choice is made take the same time alone, whatever kinds of core run them.
func TestEqualKeysEqualTimes(t *testing.T) {
	choices := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		spec, g := benchmarks.Mixed(t, r)
		recipe, err := recipes.Lookup([]string{"l1", "tiled-llb", "cross-layer"}[r.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		recipe = recipe.Picking(scheduler.Pick{Stage: "nest", Strategy: "rules"})
		took := map[string]int64{}
		for range 6 {
			own := scheduler.Strategy{Name: "any", Decide: func(_ context.Context, d *scheduler.Draft) error {
				d.LayerKinds = make([][]int, len(d.Layers))
				for k, layers := range d.Layers {
					for l := range layers {
						seconds, err := d.KindSeconds(k, l)
						if err != nil {
							return err
						}
						kind := r.IntN(len(seconds))
						if math.IsInf(seconds[kind], 1) {
							kind = slices.Index(seconds, slices.Min(seconds))
						}
						d.LayerKinds[k] = append(d.LayerKinds[k], kind)
					}
				}
				return nil
			}}
			d, err := recipe.With("kinds", own).Draft(t.Context(), g, spec, scheduler.Options{Chunk: 1})
			if scheduler.TooLarge(err) {
				continue
			} else if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			keys, err := tiles.Keys(d)
			if err != nil {
				t.Fatal(err)
			}
			for i, key := range keys {
				if key == "" {
					continue
				}
				ps, err := d.StepAlone(t.Context(), i, math.MaxInt64)
				if err != nil {
					t.Fatal(err)
				}
				if was, known := took[key]; known && was != ps {
					t.Errorf("seed %d, step %d: steps of one key take %d and %d ps", seed, i, was, ps)
				} else if known {
					choices++
				}
				took[key] = ps
			}
		}
	}
	if choices < 50 {
		t.Errorf("%d choices of tiles: these say nothing", choices)
	}
	t.Logf("%d choices of tiles", choices)
}

// A product cut in rows and columns over 8 x 8 cores of a Wormhole takes its rows from the L1s of others: each of these
// sends what it has once, to all cores of its rows, as SUMMA does, and without multicast once to each of them.
func TestRowsAreMulticast(t *testing.T) {
	const m, k, n, side = 1024, 1024, 1024, 8
	b := model.NewBuilder("product")
	made := b.Op("Relu", "made", model.Attr{}, b.Input("x", model.BF16, m, k))
	y := b.Op("MatMul", "product", model.Attr{}, made, b.Param("w", model.BF16, k, n))
	b.Output(b.Op("MatMul", "read", model.Attr{}, y, b.Param("v", model.BF16, n, 64)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("wormhole-n150")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-l1")
	if err != nil {
		t.Fatal(err)
	}
	of := network.Network{Name: "product", Graph: func(int64) (*model.Graph, error) { return g, nil }}
	result, err := scheduler.Run(t.Context(), of, spec, 1, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, st := range result.Schedule.Steps {
		for i := range st.Reads {
			r := &st.Reads[i]
			v := &result.Schedule.Values[r.Value]
			if v.Level != schedule.L1 || g.Tensor(v.Tensor).Name != "made" || st.Binding.Cores() != side*side {
				continue
			}
			seen = true
			columns := st.Binding[1]
			if all := int64(m * k * 2); r.Sent(spec) != all || r.RemoteBytes != all*columns-all {
				t.Errorf("cores %v send %d bytes of %d to %d readers, %d without multicast", st.Binding, r.Sent(spec), all,
					columns, r.RemoteBytes)
			}
			alone := spec.Clone()
			if alone.CoreLink.Broadcast = false; r.Sent(alone) != r.RemoteBytes {
				t.Errorf("without multicast %d bytes are sent, expected %d", r.Sent(alone), r.RemoteBytes)
			}
		}
	}
	if !seen {
		t.Error("no product takes rows from the L1s of others")
	}
}
