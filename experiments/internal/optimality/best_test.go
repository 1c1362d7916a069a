package optimality

import (
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
)

// Machines change in what they say, and in nothing else that the report relies on.
func TestMachineChanges(t *testing.T) {
	for _, m := range machineChanges {
		was, err := hardware.Load("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		now, err := hardware.Load("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		m.change(now)
		a, b := was.CoreTypes[0].Units[0], now.CoreTypes[0].Units[0]
		if was.LaunchSeconds == now.LaunchSeconds && was.DDRActivationEfficiency == now.DDRActivationEfficiency &&
			a.BlockCycles == b.BlockCycles {
			t.Errorf("%s changes nothing", m.name)
		}
	}
}

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
	if a.Best < a.Greedy || a.Best > a.Bound || len(a.Machines) != len(machineChanges) || len(a.Losses) == 0 {
		t.Errorf("%+v", a)
	}
	if first, last := a.after(8, 1), a.after(8, float64(a.Evaluations)); first <= 0 || last < 1 ||
		last*a.Greedy < a.Best*(1-1e-9) {
		t.Errorf("the curve goes from %v to %v, best is %v times greedy", first, last, a.Best/a.Greedy)
	}
}
