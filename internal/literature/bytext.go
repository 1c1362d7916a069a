package literature

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// ByText is a recipe with the strategies that the paper's text gives the system of its name, and the operators in which
// that gets networks; docs/deviations.md has the sentences. Recipes keep their names.
func ByText(name string) (scheduler.Recipe, grain.Grain) {
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
	v = harness.Recipe(name, picks...)
	v.Name = name
	return v, at
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
	unit string) harness.Cell {
	v, at := ByText(name)
	return Named(harness.RowCell(harness.OpenNetwork(At(network, at)), model.F16, spec, batch, v, Options(chunk),
		policy, unit), network)
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
		kernels, _ := tvm.GroupOps(g, graphturbo.ExecutionOrder(g))
		if fits(g, kernels, int64(spec.GB.SizeBytes)) {
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

// PaperChunk is the batches per cluster of the paper's Table 2 for a variant. Whatever
// does not split works like TVM.
func (c Configuration) PaperChunk(v scheduler.Recipe) int64 {
	if strings.HasPrefix(v.Pick("group"), "alg2") {
		return c.GraphTurboBatchesPerCluster
	}
	return c.TVMBatchesPerCluster
}
