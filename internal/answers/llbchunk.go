package answers

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/pipeline"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
)

// ChunkByLLB is a rule for [Options.Chunk]: the largest divisor of a cluster's share of the batch
// with which each kernel's inputs and outputs, without weights, are in the LLB together; 1 if
// none is. bytes is the need of the largest kernel.
func ChunkByLLB(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r pipeline.Recipe,
	opt pipeline.Options) (chunk, bytes int64, err error) {
	if err := pipeline.CheckBatch(batch); err != nil {
		return 0, 0, err
	}
	spec, err := pipeline.Machine(machine, opt.Level)
	if err != nil {
		return 0, 0, err
	}
	if spec.GB == nil {
		return 0, 0, fmt.Errorf("%s has no LLB", machine.Name)
	}
	for _, chunk = range slices.Backward(
		pipeline.Divisors(pipeline.Shares(batch, spec.Clusters)[0], pipeline.MaxTunedChunk)) {
		g, err := net.Graph(chunk)
		if err != nil {
			return 0, 0, err
		}
		d, err := pipeline.GroupDraft(ctx, g, spec, r, opt)
		if err != nil {
			return 0, 0, err
		}
		bytes = 0
		for _, sg := range d.Grouping.Groups {
			n := int64(0)
			for _, t := range slices.Concat(sg.Inputs, sg.Outputs) {
				n += g.Tensor(t).Bytes()
			}
			bytes = max(bytes, n)
		}
		if bytes <= int64(spec.GB.SizeBytes) {
			break
		}
	}
	return chunk, bytes, nil // 1 divides every share
}
