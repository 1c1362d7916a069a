package literature

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// ByText is a recipe with the strategies that the paper's text gives the system of its name, and the operators in which
// that gets networks; docs/deviations.md has the sentences. Picks replace strategies of the text's. Recipes keep their
// names.
func ByText(name string, others ...scheduler.Pick) (scheduler.Recipe, grain.Grain) {
	v, at := harness.Recipe(name), grain.Given
	var picks []scheduler.Pick
	pick := func(stage, strategy string) { picks = append(picks, scheduler.Pick{Stage: stage, Strategy: strategy}) }
	switch v.Pick("group") {
	case "layers": // the framework's graph (set-up; 2.2 simplifies GraphTurbo's alone), and TVM's pass on it
		pick("group", "fuse-ops")
		at = grain.Framework
	case "stitch":
		pick("group", "stitch-ops")
		at = grain.Framework
	case "alg2":
		pick("group", "alg2-layers") // 4.1: a layer's inner tensors exist in tiles
		if v.Pick("split") == "one-factor" {
			pick("split", "none") // instances begin with variant 3
			pick("order", "bfs")
		}
		if v.Pick("issue") == "cross-layer" {
			pick("issue", "cross-unit") // Fig. 13
		}
	}
	picks = slices.DeleteFunc(picks, func(p scheduler.Pick) bool {
		return slices.ContainsFunc(others, func(q scheduler.Pick) bool { return q.Stage == p.Stage })
	})
	v = harness.Recipe(name, append(picks, others...)...)
	v.Name = name
	return v, at
}

// Scheduled is a network on an accelerator by the text's system of a name, for experiments that take schedules apart.
func Scheduled(hardware, network string, perCluster int64, name string, others ...scheduler.Pick) harness.Scheduled {
	v, at := ByText(name, others...)
	return harness.Scheduled{Hardware: hardware, Model: At(network, at), PerCluster: perCluster, Variant: v,
		Options: Options(perCluster)}
}

// Options are those of the text's systems: pieces of outputs alone may differ (Algorithm 1, lines 4 and 10).
func Options(chunk int64) scheduler.Options {
	return scheduler.Options{Chunk: chunk, Uneven: schedule.UnevenOutputs}
}

// At is the name of a network at a grain.
func At(name string, at grain.Grain) string {
	if at == grain.Given {
		return name
	}
	return name + "@" + string(at)
}

// Cell is a row of a system by the text, under the names of system and network; chunk 0 is the best of all.
func Cell(spec *hardware.Spec, network string, batch int64, name string, chunk int64, policy harness.ChunkPolicy,
	unit string, others ...scheduler.Pick) harness.Cell {
	v, at := ByText(name, others...)
	return Named(harness.RowCell(harness.OpenNetwork(At(network, at)), model.F16, spec, batch, v, Options(chunk),
		policy, unit), network)
}

// TVM is the cell of TVM with the batches per cluster that the LLB holds. Where that is the cluster's whole share,
// results stay in the LLB (5.1: TVM keeps up at batch 8 and 16 "since the cluster's LLB can hold all batches"); a
// cluster that loops over its batches passes them through the DDR (Table 3, whose ten configurations all loop).
func TVM(spec *hardware.Spec, network string, batch int64, policy harness.ChunkPolicy, unit string) (harness.Cell,
	error) {
	share := max(1, batch/int64(spec.Clusters))
	chunk, err := TVMChunk(network, share, spec)
	var whole []scheduler.Pick
	if chunk == share {
		whole = append(whole, scheduler.Pick{Stage: "outputs", Strategy: "llb"})
	}
	return Cell(spec, network, batch, "tvm", chunk, policy, unit, whole...), err
}

// Named is the cell of a row that has the network's name without its grain.
func Named(c harness.Cell, network string) harness.Cell {
	compute := c.Run
	c.Key += "-text"
	c.Inputs.(map[string]any)["by_text"] = true
	c.Run = func(ctx context.Context) (any, error) {
		r, err := compute(ctx)
		if row, ok := r.(harness.Row); ok {
			row.Model = network
			return row, err
		}
		return r, err
	}
	return c
}

// TVMChunk is the most of a cluster's share that TVM works on at a time: the most with which the inputs and outputs of
// each kernel lie in the LLB (5.1), one at least.
func TVMChunk(network string, share int64, spec *hardware.Spec) (int64, error) {
	_, at := ByText("tvm")
	src := harness.OpenNetwork(At(network, at))
	for n := share; n > 1; n-- {
		if share%n != 0 {
			continue
		}
		g, err := src.Graph(n)
		if err != nil {
			return 0, fmt.Errorf("%s at %d: %w", network, n, err)
		}
		kernels, _ := tvm.GroupOps(g, schedule.ExecutionOrder(g))
		if fits(g, kernels, int64(spec.LLB.SizeBytes)) {
			return n, nil
		}
	}
	return 1, nil
}

func fits(g *model.Graph, kernels *schedule.Grouping, bytes int64) bool {
	for _, k := range kernels.Groups {
		sum := int64(0)
		for _, id := range k.Outputs {
			sum += g.Tensor(id).Bytes()
		}
		for _, id := range k.Inputs {
			if t := g.Tensor(id); t.Role != model.Constant {
				sum += t.Bytes()
			}
		}
		if sum > bytes {
			return false
		}
	}
	return true
}

// PaperChunk is the batches per cluster of the paper's Table 2 for a variant. Whatever does not split works like TVM.
func (c Configuration) PaperChunk(v scheduler.Recipe) int64 {
	if strings.HasPrefix(v.Pick("group"), "alg2") {
		return c.GraphTurboBatchesPerCluster
	}
	return c.TVMBatchesPerCluster
}
