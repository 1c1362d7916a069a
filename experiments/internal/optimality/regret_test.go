package optimality

import (
	"context"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/scheduler/search"
)

// A file is measured in place of the experiment's own networks, and its cells change with its graph.
func TestRegretOfFile(t *testing.T) {
	x := fullRegret()
	x.machines, x.options.Evaluations, x.options.Moves = []string{"stcp920", "a100"}, 8, 1
	const file = "../../../model/stablehlo/testdata/mlp.mlir"
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
	other, err := x.experiment().With(harness.Options{Networks: []string{"../../../model/stablehlo/testdata/head.mlir"}})
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

// The tables count losses by decision and machine, keep what does not fit, and name the smallest part.
func TestRegretReport(t *testing.T) {
	x := regret{machines: []string{"wormhole-n150", "tpu-v4i"}, networks: []string{"one", "two", "three"}, most: 9}
	var cells []regretCell
	for i := range 6 {
		c := regretCell{Regretted: search.Regretted{Recipe: "tiled-llb", GreedySeconds: 2, BestSeconds: 1}, Bound: 0.5}
		for _, name := range search.RegretDecisions() {
			r := search.Regret{Decision: name, AllBest: search.Choice{GreedySeconds: 1, BestSeconds: 1},
				Greedy: search.Choice{GreedySeconds: 2, BestSeconds: 2}}
			if name == "bind" { // 0, 8, 16 % on the first machine, 4, 12, no fit on the second
				if r.Greedy.GreedySeconds = 2 * (1 + 0.04*float64(i)); i == 5 {
					r.Greedy.GreedySeconds = 0
				}
			}
			c.Regrets = append(c.Regrets, r)
		}
		if i < 4 {
			kinds := strings.Fields("Conv Relu Add Conv")[i:]
			c.Small = []small{{Decision: "bind", Operators: kinds, Minimal: i == 2, Loss: 0.25,
				By: "local search", Why: "because."}}
		}
		cells = append(cells, c)
	}
	rep, err := x.report(cells)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range rep.Files {
		files[f.Name] = string(f.Data)
	}
	for file, want := range map[string]string{
		"table-greedy.csv":   `bind,"8.0, 16.0, 2/3","12.0, no fit, 2/3","10.0, no fit, 4/6",0/6`,
		"table-best.csv":     `bind,"0.0, 0.0, 0/3","0.0, 0.0, 0/3","0.0, 0.0, 0/6",0/6`,
		"table-smallest.csv": "bind,wormhole-n150,two,2,Add Conv,25.0,local search",
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s has no line %q:\n%s", file, want, files[file])
		}
	}
	full := fullRegret() // has to fit a page
	full.networks = []string{"one"}
	if _, err := full.report(cells[:len(full.machines)]); err != nil {
		t.Error(err)
	}
	if files["regret.png"] == "" || !strings.Contains(files["regret.md"], "because.") {
		t.Error("there is no figure, or no reason")
	}
}
