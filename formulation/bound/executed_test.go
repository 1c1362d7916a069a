package bound_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// executed are the MACs of matrix units in all that the instances of a schedule compute, and those of what its graph's
// outputs need.
func executed(s *schedule.Schedule) (computed, needed int64) {
	g := s.Graph
	reg, ids := schedule.Regions{}, []model.OpID(nil)
	for _, o := range g.Outputs {
		reg[o] = model.Whole(g.Tensor(o).Shape)
	}
	for _, op := range g.Ops {
		ids = append(ids, op.ID)
	}
	schedule.BackPropagate(g, ids, reg)
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		for _, id := range s.Grouping.Groups[inst.Group].Ops {
			if op := g.Op(id); g.OnMatrixUnit(op) {
				for _, o := range op.Outputs {
					if r := inst.Regions[o]; r.Elements() > 0 {
						computed += g.Work(op, r).MACs
					}
				}
			}
		}
	}
	for _, op := range g.Ops {
		for _, o := range op.Outputs {
			if r := reg[o]; g.OnMatrixUnit(op) && r.Elements() > 0 {
				needed += g.Work(op, r).MACs
			}
		}
	}
	return computed, needed
}

// strides is the product of all strides of slices: of a box at most so many elements stand for one that is needed.
func strides(g *model.Graph) int64 {
	n := int64(1)
	for _, op := range g.Ops {
		for _, step := range op.Attr.Steps {
			n *= max(1, step)
		}
	}
	return n
}

// No program uses its units for more than their time, and what it counts as work, and takes energy for, is what it
// executes: at least what outputs need, at most what instances compute, which is the same where none computes anything
// twice or in vain.
func TestWorkIsWhatIsExecuted(t *testing.T) {
	programs, most := 0, 400
	if os.Getenv("DSASCHED_FULL") != "" {
		most = 4000
	}
	exact, dead := 0, 0
	for seed := uint64(1); programs < most && seed < 40*uint64(most); seed++ {
		r := rand.New(rand.NewPCG(seed, 33))
		c := &campaign{t: t, others: map[string]int{}}
		machine, spec, level, net, batch, err := c.draw(r, seed)
		if err != nil {
			continue
		}
		g, err := net.Graph(batch)
		if err != nil || commands(g, spec) > 2000 {
			continue
		}
		for _, name := range []string{"cross-layer", "tvm", "tiled-l1"} {
			recipe, err := recipes.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			made, err := scheduler.Run(ctx, net, machine, batch, recipe, scheduler.Options{Level: level, Chunk: 1})
			cancel()
			if err != nil || made.Clusters != scheduler.OverBatch {
				continue
			}
			programs++
			if made.Sim.MACUtilization > 1 || made.Sim.VectorUtilization > 1 {
				t.Errorf("seed %d, %s: utilisation %g of matrix units, %g of vector units", seed, name,
					made.Sim.MACUtilization, made.Sim.VectorUtilization)
			}
			computed, needed := int64(0), int64(0)
			for _, plan := range made.Plans {
				for _, seg := range plan {
					all, some := executed(seg.Schedule)
					computed += int64(seg.Iterations) * all
					needed += int64(seg.Iterations) * some
				}
			}
			// Regions are boxes: of a slice with a stride they hold more than it needs.
			if made.Sim.MACs < needed/strides(made.Schedule.Graph) || made.Sim.MACs > computed {
				t.Errorf("seed %d, %s: %d MACs, outputs need %d, instances compute %d", seed, name, made.Sim.MACs, needed,
					computed)
			}
			if computed == needed {
				exact++
			} else {
				dead++
			}
			e := lower.Energy(made.Spec, made.Schedule.Graph, made.Sim.MACs, 0, made.Sim.Dynamic.AccessBytes, 0)
			if e != nil {
				if got := made.Energy(); got.Matrix != e.Matrix {
					t.Errorf("seed %d, %s: %g J of matrix units, expected %g", seed, name, got.Matrix, e.Matrix)
				}
			}
		}
	}
	t.Logf("%d programs: %d without dead or double work, %d with", programs, exact, dead)
	if programs < most || exact == 0 || dead == 0 {
		t.Errorf("%d programs, %d without dead or double work, %d with", programs, exact, dead)
	}
}
