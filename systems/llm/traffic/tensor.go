package traffic

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm"
)

var (
	tensorMachines = []string{"stcp920x4", "v100x16"}
	tensorNetworks = []struct {
		name  string
		batch int64
	}{{"resnet50", 16}, {"bert-128", 1}, {"bert-128", 16}, {"gpt2-prefill", 1}, {"gpt2-decode", 1},
		{"llama2-7b-decode", 1}}
	tensorMethods = []string{"greedy", "search"}
)

func tensor() harness.Experiment {
	e := harness.Experiment{Name: "tensor",
		Description: "operators divided over the chips of a machine: greedily, and exactly by formulas, judged by the simulator",
		Paper:       "none; tensor parallelism on machines of several chips"}
	e.Plan = func() (*harness.Plan, error) {
		p := &harness.Plan{}
		for _, machine := range tensorMachines {
			for _, n := range tensorNetworks {
				key := fmt.Sprintf("%s-%s-%d", machine, n.name, n.batch)
				p.Cells = append(p.Cells, harness.Cell{Key: key, Label: key,
					Inputs: []any{machine, n.name, n.batch, tensorMethods, recipes.Default},
					Run:    func(ctx context.Context) (any, error) { return shard(ctx, machine, n.name, n.batch) }})
			}
		}
		p.Report = harness.Of(func(rows [][]llm.Sharded) (*harness.Report, error) { return reportTensor(e, rows) })
		return p, nil
	}
	return e
}

func shard(ctx context.Context, machine, name string, batch int64) ([]llm.Sharded, error) {
	spec, recipe, err := machineAndRecipe(machine)
	if err != nil {
		return nil, err
	}
	net, err := network.Open(name, network.Options{})
	if err != nil {
		return nil, err
	}
	list, err := llm.Shard(ctx, net, spec, batch, tensorMethods, recipe, false, binding.Options{}, scheduler.Options{})
	for i := range list {
		list[i].DType, list[i].Operators, list[i].Moves = "f16", nil, nil
	}
	return list, err
}

func reportTensor(e harness.Experiment, rows [][]llm.Sharded) (*harness.Report, error) {
	d := harness.NewDocument(e)
	latency := harness.Table{Title: "Latency of a batch, ms", Name: "latency",
		Columns: harness.Columns("<Machine", "<Network", "Batch", "One chip", "Batch divided", "Greedy", "Exact",
			"Of it collectives")}
	ratios := harness.Table{Title: "What it gains", Name: "ratios",
		Columns: harness.Columns("<Machine", "<Network", "Batch", "One chip over exact", "Greedy over exact",
			"The same by formulas", "Pieces")}
	for _, row := range rows {
		greedy, exact := row[0], row[1]
		batch := ""
		if exact.BatchDivided != nil {
			batch = short(*exact.BatchDivided * 1e3)
		}
		key := []string{exact.Hardware, exact.Model, fmt.Sprint(exact.Batch)}
		latency.Add(key, short(exact.OneChip*1e3), batch, short(greedy.Seconds*1e3), short(exact.Seconds*1e3),
			short(exact.CollectiveSeconds*1e3))
		ratios.Add(key, fmt.Sprintf("%.2f", exact.OneChip/exact.Seconds),
			fmt.Sprintf("%.2f", greedy.Seconds/exact.Seconds), fmt.Sprintf("%.2f", greedy.Objective/exact.Objective),
			exact.Pieces)
		if exact.Status != "optimal" {
			d.Note("%s, batch %d on %s: the exact choice is %s, bound %s s", exact.Model, exact.Batch, exact.Hardware,
				exact.Status, short(exact.Bound))
		}
	}
	d.Note(
		"One chip has the whole batch; divided, each chip has its share of the batch and all weights. Greedy and exact divide operators (package systems/llm/sharding) and schedule the pieces between collectives by %s. Collectives follow their closed form and do not overlap with pieces.", recipes.Default)
	d.Note(
		"Greedily, an operator is cut if that costs less than its inputs' layouts then do; whether all that follows can stay cut shows later. Exact choices are proven by the formulas, not in the simulator.")
	d.Table(latency, ratios)
	return d.Report(harness.Data{Data: rows})
}
