package harness

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

// What made results is found in the inputs of the cells.
func TestOrigin(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	preset, err := Hash(spec)
	if err != nil {
		t.Fatal(err)
	}
	type inputs struct {
		Hardware string `json:"hardware"`
		Hash     string `json:"hardware_sha256"`
		Seed     int    `json:"seed"`
	}
	cells := []Cell{{Inputs: inputs{"stcp920", preset, 3}}, {Inputs: inputs{"stcp920", "other", 4}},
		{Inputs: inputs{"stcp920", preset, 3}},
		{Inputs: 5}, {Inputs: map[string]any{"hardware": map[string]int{"x": 1}}}}
	o, err := originOf(cells, Options{SolverVersion: "S 1", Revision: "abc-dirty"})
	if err != nil {
		t.Fatal(err)
	}
	yaml, err := hardware.PresetYAML("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	if want := []originHardware{{"stcp920", preset, string(yaml)}, {"stcp920", "other", ""}}; !slices.Equal(
		o.Hardware, want) {
		t.Errorf("hardware %+v, want %+v", o.Hardware, want)
	}
	if got := fmt.Sprintf("%s", o.Seeds); got != "[3 4]" {
		t.Errorf("seeds %s", got)
	}
	if info, ok := debug.ReadBuildInfo(); !ok ||
		!slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" }) {
		if o.Revision != "abc" || !o.Modified {
			t.Errorf("revision %q, modified %v", o.Revision, o.Modified)
		}
	}
	if o.Solver != "S 1" || o.Go == "" {
		t.Errorf("origin %+v", o)
	}
}
