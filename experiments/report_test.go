package experiments

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportOverAll(t *testing.T) {
	dir := t.TempDir()
	if err := writeReport(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.md")); err == nil {
		t.Error("a report of nothing")
	}
	put := func(name string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, name+".json"), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("sweep", []int{1, 2}) // of another form
	put("fig14", map[string]any{"experiment": "fig14", "published": []Line{
		{Experiment: "fig14", What: "near", Unit: "images/s", Published: 100, Ours: 110, Calibration: true},
		{Experiment: "fig14", What: "far", Unit: "x", Published: 11.15, Ours: 6.75},
		{Experiment: "fig14", What: "none", Unit: "tensors", Published: 0, Ours: 3},
	}})
	if err := writeReport(dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fig14, sweep", "| fig14 | 1 | 0 | 1 | 1 |", "near † | images/s | 100 | 110 | 1.10 | reproduced within 20 % |", "| 11.2 | 6.75 | 0.61 | direction only |", "| 0 | 3 | – | not reproduced |"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %q in\n%s", want, data)
		}
	}
}
