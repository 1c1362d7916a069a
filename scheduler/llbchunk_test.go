package scheduler_test

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// TVM's batches per cluster in the paper are the most with which the inputs and outputs of every kernel, counted from
// the network, are in the LLB together.
func TestChunkByLLB(t *testing.T) {
	ctx, machine := context.Background(), load(t, "stcp920")
	largest := func(r *scheduler.Result) (most int64) {
		g := r.Schedule.Graph
		for _, sg := range r.Schedule.Grouping.Groups {
			inside, seen, n := map[model.OpID]bool{}, map[model.TensorID]bool{}, int64(0)
			for _, id := range sg.Ops {
				inside[id] = true
			}
			for _, id := range sg.Ops {
				for _, in := range g.Op(id).Inputs {
					if t := g.Tensor(in); t.Role != model.Constant && !seen[in] && (t.Producer == model.NoOp || !inside[t.Producer]) {
						seen[in], n = true, n+t.Bytes()
					}
				}
				for _, out := range g.Op(id).Outputs {
					leaves := g.IsOutput(out)
					for _, c := range g.Tensor(out).Consumers {
						leaves = leaves || !inside[c]
					}
					if leaves {
						n += g.Tensor(out).Bytes()
					}
				}
			}
			most = max(most, n)
		}
		return most
	}
	for _, c := range []struct {
		model string
		batch int64
		want  int64 // the paper's batches per cluster of TVM
	}{{"resnet50", 64, 2}, {"bert-128", 32, 4}, {"mobilenetv2", 128, 2}, {"bert-512", 8, 1}} {
		r, err := recipes.Lookup("tvm")
		if err != nil {
			t.Fatal(err)
		}
		net := open(t, c.model)
		chunk := c.batch / int64(machine.Clusters)
		for ; ; chunk /= 2 {
			made, err := r.Prepare(ctx, net, machine, c.batch, scheduler.Options{Chunk: chunk})
			if err != nil {
				t.Fatal(err)
			}
			if chunk == 1 || largest(made) <= int64(machine.LLB.SizeBytes) {
				break
			}
		}
		if chunk != c.want {
			t.Errorf("%s: chunk %d, want %d", c.model, chunk, c.want)
		}
	}
}
