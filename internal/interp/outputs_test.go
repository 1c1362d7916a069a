package interp_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// handing is a random network that hands out some of what its layers read of each other.
func handing(seed uint64, odd bool) network.Network {
	n := net(seed, odd)
	graph := n.Graph
	n.Graph = func(batch int64) (*model.Graph, error) {
		g, err := graph(batch)
		if err != nil {
			return nil, err
		}
		r, made := rand.New(rand.NewPCG(seed, 31)), *g
		made.Outputs = slices.Clone(g.Outputs)
		for _, x := range g.Tensors {
			if x.Role == model.Activation && len(x.Consumers) > 0 && !g.IsOutput(x.ID) && r.IntN(3) == 0 {
				made.Outputs = append(made.Outputs, x.ID)
			}
		}
		return &made, nil
	}
	return n
}

// Outputs of a network that stay in the L1 or the LLB for the layers that read them are stored in the DDR as well, and
// are what the network says, by the project's own recipes, with random nests, and where clusters divide the network.
func TestKeptOutputs(t *testing.T) {
	chosen := slices.Clone(recipes.Tiled()[1:])
	for _, pick := range []scheduler.Pick{{Stage: "outputs", Strategy: "l1-kept"},
		{Stage: "outputs", Strategy: "llb-kept"}} {
		chosen = append(chosen, recipes.Table()[4].Picking(pick),
			recipes.Table()[0].Picking(pick))
	}
	kept := map[schedule.Level]int{}
	for seed := range uint64(*programs) {
		r := rand.New(rand.NewPCG(seed, 32))
		spec, recipe, chunk := machine(r), chosen[int(seed)%len(chosen)], pick(r, int64(1), 2)
		opt := scheduler.Options{Chunk: chunk, InPlace: r.IntN(2) == 0}
		batch := int64(spec.Clusters) * chunk
		if seed%5 == 0 && spec.Clusters > 1 {
			opt.Clusters, batch = scheduler.OverLayer, chunk
		}
		if r.IntN(3) == 0 {
			recipe = recipe.Picking(scheduler.Pick{Stage: "spill", Strategy: "overwrite"})
		}
		made, err := scheduler.Run(t.Context(), handing(seed, seed%2 == 1), spec, batch, recipe, opt)
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			continue
		}
		switch {
		case err != nil:
		case opt.Clusters != scheduler.OverBatch:
			_, err = interp.Together(made.Program, graphs(made.Plans)[0], seed)
		default:
			if r.IntN(2) == 0 {
				nested(t, made, r)
			}
			_, err = interp.Run(made.Program, graphs(made.Plans), seed)
		}
		var coarse *interp.CoarseError
		if err != nil && !errors.As(err, &coarse) {
			t.Errorf("seed %d, %s: %v", seed, recipe.Text(), err)
			continue
		}
		for _, plan := range made.Plans {
			for _, seg := range plan {
				for _, v := range seg.Schedule.Values {
					if v.Instance >= 0 && v.Def >= 0 && seg.Schedule.Graph.IsOutput(v.Tensor) {
						kept[v.Level]++
					}
				}
			}
		}
	}
	t.Logf("outputs in the L1, in the LLB and in the DDR alone: %d, %d, %d", kept[schedule.L1], kept[schedule.LLB],
		kept[schedule.DDR])
	if kept[schedule.L1] == 0 || kept[schedule.LLB] == 0 {
		t.Errorf("outputs are in %v, expected some in the L1 and in the LLB", kept)
	}
}

// Network inputs that stay in the LLB for layers that read them again are what the network says, by the project's own
// recipes, and are loaded less often.
func TestKeptInputs(t *testing.T) {
	shared := network.Network{Name: "shared", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("shared")
		x := b.Input("x", model.F16, batch, 12, 16)
		up := b.Op("MatMul", "up", model.Attr{}, x, b.Param("w", model.F16, 16, 24))
		gate := b.Op("Sigmoid", "act", model.Attr{}, b.Op("MatMul", "gate", model.Attr{}, x, b.Param("g", model.F16, 16, 24)))
		y := b.Op("MatMul", "down", model.Attr{}, b.Op("Mul", "mul", model.Attr{}, up, gate), b.Param("v", model.F16, 24, 16))
		b.Output(b.Op("Add", "add", model.Attr{}, x, y))
		return b.Build()
	}}
	fewer := 0
	for seed := range uint64(*programs) {
		r := rand.New(rand.NewPCG(seed, 33))
		spec, recipe, chunk := machine(r), recipes.Tiled()[1+int(seed)%7], pick(r, int64(1), 2)
		other := recipe.Picking(scheduler.Pick{Stage: "weights", Strategy: "keep"})
		opt, batch := scheduler.Options{Chunk: chunk}, chunk*int64(spec.Clusters)
		of := shared
		if seed%3 == 0 {
			of = handing(seed, seed%2 == 1)
		}
		made, err := scheduler.Run(t.Context(), of, spec, batch, recipe, opt)
		if scheduler.TooLarge(err) {
			continue
		}
		if err == nil {
			_, err = interp.Run(made.Program, graphs(made.Plans), seed)
		}
		var coarse *interp.CoarseError
		if err != nil && !errors.As(err, &coarse) {
			t.Errorf("seed %d, %s: %v", seed, recipe.Text(), err)
			continue
		}
		without, err := scheduler.Run(t.Context(), of, spec, batch, other, opt)
		if err != nil {
			t.Fatal(err)
		}
		if more, bytes := made.Sim.Dynamic.MoveBytes[isa.DDRLoad], without.Sim.Dynamic.MoveBytes[isa.DDRLoad]; more < bytes {
			fewer++
		}
	}
	if fewer == 0 {
		t.Error("no schedule loads less, expected some")
	}
}
