package beside

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// DLRM by two recipes and the search, on a machine with figures of energy and one without: no
// schedule is below the bound, the search is not worse than what it begins with, and energy is
// said where it is known alone.
func TestSystems(t *testing.T) {
	table := recipes.Table()
	two := []scheduler.Recipe{table[0], table[len(table)-1]}
	s := systems{machines: []string{"stcp920", "ipu"},
		configurations: []literature.Configuration{literature.ConfigurationOf("F")}, first: two, others: two, evaluations: 8}
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	var results []json.RawMessage
	for _, c := range p.Cells {
		x, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, data)
	}
	rep, err := p.Report(results)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Systems []struct {
			Bound  float64 `json:"certified_lower_bound_s"`
			Energy bool    `json:"energy_known"`
			Rows   []entry `json:"rows"`
		} `json:"systems"`
	}
	for _, f := range rep.Files {
		if f.Name == "systems.json" {
			if err := json.Unmarshal(f.Data, &got); err != nil {
				t.Fatal(err)
			}
		}
		if f.Name == "energy-ipu.svg" {
			t.Error("a figure of energy for a machine without figures")
		}
	}
	if len(got.Systems) != 2 || len(got.Systems[0].Rows) != 3 || len(got.Systems[1].Rows) != 2 {
		t.Fatalf("%+v, want three systems on one machine, two on the other", got)
	}
	for _, x := range got.Systems {
		for _, e := range x.Rows {
			if e.Row.LatencySeconds < x.Bound || (e.Row.EnergyJoules != nil) != x.Energy {
				t.Errorf("%s on %s: %v s above %v s, energy %v, known %v", e.Row.Variant, e.Row.Hardware, e.Row.LatencySeconds,
					x.Bound, e.Row.EnergyJoules, x.Energy)
			}
		}
	}
	if rows := got.Systems[0].Rows; rows[2].Row.Variant != "best" ||
		rows[2].Row.LatencySeconds > rows[1].Row.LatencySeconds {
		t.Errorf("best is %+v, begun with %+v", rows[2].Row, rows[1].Row)
	}
	if !strings.Contains(rep.Text, "All systems on ipu") {
		t.Errorf("no table for ipu in\n%s", rep.Text)
	}
}
