package scheduler

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// ChunkByLLB is a rule for [Options.Chunk]: the largest divisor of a cluster's share of the batch
// with which each kernel's inputs and outputs, without weights, are in the LLB together; 1 if
// none is. bytes is what the largest kernel then needs.
func ChunkByLLB(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (chunk, bytes int64, err error) {
	if err := checkBatch(batch); err != nil {
		return 0, 0, err
	}
	spec, err := Machine(machine, opt.Level)
	if err != nil {
		return 0, 0, err
	}
	if spec.GB == nil {
		return 0, 0, fmt.Errorf("%s has no LLB", machine.Name)
	}
	if err := r.validate(opt); err != nil {
		return 0, 0, err
	}
	for _, chunk = range slices.Backward(Divisors(Shares(batch, spec.Clusters)[0], MaxTunedChunk)) {
		g, err := net.Graph(chunk)
		if err != nil {
			return 0, 0, err
		}
		d, err := newDraft(&schedule.Schedule{Graph: g, Spec: spec}, -1, r, run{Options: opt})
		if err != nil {
			return 0, 0, err
		}
		if err := r.at("group").Decide(ctx, d); err != nil {
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
