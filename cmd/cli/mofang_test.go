package cli

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/systems/mofang/partition"
)

// 2 and 3 on one device: 3 + 3 and the output of 1, which passes once. 1 and 2 on one:
// 2 + 3 and two outputs, and 3 + 0.75 on the other.
func TestPartition(t *testing.T) {
	workspace(t)
	for _, method := range []string{"exact", "ilp", "pipedream", "greedy"} {
		if _, err := highs.New(); err != nil && method == "ilp" {
			continue
		}
		text := answer(t, "solve", "partition", "graph.json", "--method", method, "--json", "-o", "out.json")
		var a struct {
			MaxLoad float64 `json:"max_load"`
			Bound   float64 `json:"bound"`
			Status  string  `json:"status"`
			Devices [][]int `json:"devices"`
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		if exact := method == "exact" || method == "ilp"; exact && (a.Status != "optimal" || a.MaxLoad != 5.75 ||
			a.Bound != 5.75 || fmt.Sprint(a.Devices) != "[[1 2] [3]]") || a.MaxLoad < 5.75 || len(a.Devices) != 2 {
			t.Errorf("%s: %+v", method, a)
		}
		p, err := partition.Load("graph.json")
		if err != nil {
			t.Fatal(err)
		}
		d, err := partition.LoadDivision("out.json", p)
		if err != nil || p.Check(d) != nil {
			t.Errorf("%s: the file has %v, %v", method, d, err)
		}
	}
}

func TestLayeringAndPipeline(t *testing.T) {
	workspace(t)
	latency := map[string]float64{}
	for _, method := range []string{"sequential", "greedy", "mofang", "exact"} {
		var a struct {
			Status  milp.Status `json:"status"`
			Latency float64     `json:"latency_s"`
			Layers  []struct {
				Operators []string `json:"operators"`
			} `json:"layers"`
		}
		if err := json.Unmarshal([]byte(answer(t, "solve", "layering", "mofang-inception", "--hardware", "v100", "--dtype",
			"f32", "--method", method, "--json")), &a); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, l := range a.Layers {
			n += len(l.Operators)
		}
		if latency[method] = a.Latency; n != 6 || method == "exact" && a.Status != milp.Optimal {
			t.Errorf("%s: %+v", method, a)
		}
	}
	if latency["exact"] > latency["mofang"] || latency["mofang"] > latency["greedy"] ||
		latency["greedy"] >= latency["sequential"] {
		t.Errorf("%v", latency)
	}
	batch := map[string]float64{}
	for _, method := range []string{"gpipe", "mofang", "exact"} {
		var a struct {
			Seconds float64 `json:"batch_s"`
			Fits    bool    `json:"fits"`
			Stages  []any   `json:"stages"`
		}
		if err := json.Unmarshal([]byte(answer(t, "solve", "pipeline", "resnet18", "--devices", "3", "--batch", "64",
			"--method", method, "--json")), &a); err != nil {
			t.Fatal(err)
		}
		if batch[method] = a.Seconds; !a.Fits || len(a.Stages) > 3 {
			t.Errorf("%s: %+v", method, a)
		}
	}
	if batch["exact"] > batch["mofang"] || batch["exact"] > batch["gpipe"] {
		t.Errorf("%v", batch)
	}
}
