package optimality

import (
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
)

func TestBestExperiment(t *testing.T) {
	c := literature.ConfigurationOf("G")
	c.BatchSize = 8
	src, err := network.Open("squeezenet", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	w := wholeSchedules{hardware: "stcp920", configurations: []literature.Configuration{c}, evaluations: 40}
	a, err := w.run(t.Context(), src, spec, c)
	if err != nil {
		t.Fatal(err)
	}
	if a.Best < a.Greedy || a.Best > a.Bound || len(a.Losses) == 0 {
		t.Errorf("%+v", a)
	}
}
