package lower_test

import (
	"context"
	"fmt"
	"math/big"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A stage of a task moves one operand from one place to the next, or works with one tile
// of weights.
type stage struct {
	task, iteration int32
	kind            isa.Kind
	operand, tile   int32
}

// In each iteration the commands of a task load, compute and store everything once, part
// behind part. Constants are left out, since some stay.
func TestPortions(t *testing.T) {
	for _, c := range []struct {
		network, hardware, variant string
		batch                      int64
	}{
		{"toy-fig3", "stcp920", "cross-layer", 6}, {"resnet50", "stcp920", "tvm", 16},
		{"resnet50", "stcp920", "cross-layer", 40},
		{"resnet50", "ipu", "cross-layer", 4}, {"dlrm", "stcp920", "llb", 64}, {"swin-t", "a100", "ordering", 2},
	} {
		t.Run(fmt.Sprint(c.network, c.hardware, c.variant), func(t *testing.T) {
			spec, err := hardware.Load(c.hardware)
			if err != nil {
				t.Fatal(err)
			}
			src, err := network.Open(c.network, network.Options{})
			if err != nil {
				t.Fatal(err)
			}
			v, _ := recipes.Lookup(c.variant)
			r, err := scheduler.Run(context.Background(), src, spec, c.batch, v, scheduler.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkPortions(t, r.Program, r.Schedule.Graph)
		})
	}
}

func checkPortions(t *testing.T, p *isa.Program, g *model.Graph) {
	constant := map[string]bool{}
	for _, tensor := range g.Tensors {
		constant[tensor.Name] = tensor.Role == model.Constant
	}
	done := map[stage]*big.Rat{}
	for i := range p.Commands {
		c := &p.Commands[i]
		if p.Queues[c.Queue].Cluster != 0 {
			continue
		}
		reads, writes, ok := p.Data(i)
		requests := p.Queues[c.Queue].Kind == isa.OtherQueue && len(c.Uses) == 0
		if launches := c.Kind == isa.Launch || c.Kind == isa.Barrier; ok == (launches || requests) {
			t.Fatalf("command %d (%v): a task is known: %t", i, c.Kind, ok)
		}
		if !ok || c.Kind.IsMove() && constant[p.Tensors[reads[0].Tensor].Name] {
			continue
		}
		if c.Kind.IsCompute() || c.Kind.Stores() {
			for _, o := range writes {
				if maker := p.Tasks[c.Task-1].Instance; o.Instance != maker {
					t.Fatalf("command %d of instance %d writes for instance %d", i, maker, o.Instance)
				}
			}
		}
		key := stage{c.Task, c.Iteration, c.Kind, c.Operand, c.Tile}
		if done[key] == nil {
			done[key] = new(big.Rat)
		}
		if from := big.NewRat(int64(c.Part), int64(max(1, c.Parts))); from.Cmp(done[key]) != 0 {
			t.Fatalf("command %d begins at %v of %+v, expected %v", i, from, key, done[key])
		}
		done[key].SetFrac64(int64(c.Part)+1, int64(max(1, c.Parts)))
	}
	for key, end := range done {
		if end.Cmp(big.NewRat(1, 1)) != 0 {
			t.Errorf("%+v (%s) ends at %v", key, p.Operators[p.Tasks[key.task-1].Operators[0]], end)
		}
	}
	if len(done) == 0 {
		t.Error("no task")
	}
}
