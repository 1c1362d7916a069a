package scheduler

import (
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// A form of a graph is made once, and is the graph of another form where there is nothing more to change.
func TestFormsOfGraphs(t *testing.T) {
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{ // by form, the first one of the same graph
		"squeezenet":  {"as-is", "as-is", "as-is", "as-is", "as-is"},
		"bert-128":    {"as-is", "as-is", "attention", "attention", "attention"},
		"mamba-block": {"as-is", "as-is", "as-is", "parts", "parts"},
	} {
		net, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := NewProblem(net, chip, chip, 1, Options{})
		first := map[*model.Graph]string{}
		for i, c := range rewrite.Choices {
			p := &Decisions{Chunk: 1, Recipe: Recipe{Picks: []Pick{{rewrite.Name, c.Name}}}}
			g, err := w.GraphOf(p)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := w.GraphOf(p); again != g || err != nil {
				t.Errorf("%s, %s: another graph when it is asked for again, %v", name, c.Name, err)
			}
			if first[g] == "" {
				first[g] = c.Name
			}
			if first[g] != want[i] {
				t.Errorf("%s, %s: the graph of %s, expected that of %s", name, c.Name, first[g], want[i])
			}
		}
	}
}
