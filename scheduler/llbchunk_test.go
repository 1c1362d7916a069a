package scheduler_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/scheduler"
)

// The rule against what all kernels of a schedule read and write, counted from the network, at
// the chunk that it gives and at the next larger one.
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
		r, err := scheduler.Lookup("tvm")
		if err != nil {
			t.Fatal(err)
		}
		net := open(t, c.model)
		chunk, bytes, err := scheduler.ChunkByLLB(ctx, net, machine, c.batch, r, scheduler.Options{})
		if err != nil || chunk != c.want {
			t.Errorf("%s: chunk %d, %v; want %d", c.model, chunk, err, c.want)
			continue
		}
		for _, size := range []int64{chunk, 2 * chunk} {
			made, err := scheduler.Prepare(ctx, net, machine, c.batch, r, scheduler.Options{Chunk: size})
			if err != nil {
				t.Fatal(err)
			}
			n := largest(made)
			if fits := n <= int64(machine.GB.SizeBytes); fits != (size == chunk) && chunk > 1 {
				t.Errorf("%s: the largest kernel of %d takes %d bytes, the LLB has %d", c.model, size, n, machine.GB.SizeBytes)
			}
			if size == chunk && n != bytes {
				t.Errorf("%s: the largest kernel takes %d bytes, the rule says %d", c.model, n, bytes)
			}
		}
	}
	r, _ := scheduler.Lookup("tvm")
	if _, _, err := scheduler.ChunkByLLB(ctx, open(t, "resnet18"), load(t, "ipu"), 4, r,
		scheduler.Options{}); err == nil || !strings.Contains(err.Error(), "no LLB") {
		t.Errorf("a machine without LLB: %v", err)
	}
}
