package optimality

import (
	"context"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/scheduler/search"
	_ "github.com/dsasched/dsasched/systems" // reads .mlir
)

// A file is measured in place of the experiment's own networks, and its cells change with its graph.
func TestRegretOfFile(t *testing.T) {
	x := fullRegret()
	x.machines, x.options.Evaluations, x.options.Moves = []string{"stcp920", "a100"}, 8, 1
	const file = "../../../systems/exchange/stablehlo/testdata/mlp.mlir"
	pl, err := x.experiment().With(harness.Options{Networks: []string{file, "toy-fig5"}})
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, c := range pl.Cells {
		labels = append(labels, c.Label)
	}
	if got := strings.Join(labels, ", "); got != "mlp on stcp920, mlp on a100, toy-fig5 on stcp920, toy-fig5 on a100" {
		t.Errorf("cells are %s", got)
	}
	of := func(c harness.Cell) string {
		hash, err := harness.Hash(c.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	other, err := x.experiment().With(harness.Options{Networks: []string{"../../../systems/exchange/stablehlo/testdata/head.mlir"}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := x.experiment().With(harness.Options{Networks: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	if of(pl.Cells[0]) == of(other.Cells[0]) || of(pl.Cells[0]) != of(again.Cells[0]) {
		t.Error("cells are not told apart by their graphs")
	}
	r, err := pl.Cells[0].Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c := r.(*regretCell)
	if len(c.Regrets) != len(search.RegretDecisions()) || c.BestSeconds > c.GreedySeconds || c.BestSeconds < c.Bound {
		t.Errorf("%+v", c)
	}
	if _, err := x.experiment().With(harness.Options{Networks: []string{"absent.onnx"}}); err == nil ||
		!strings.Contains(err.Error(), "absent.onnx") {
		t.Errorf("a file that is not there: %v", err)
	}
}
