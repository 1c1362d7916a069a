package optimality

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

func TestTable4(t *testing.T) {
	e := fullTable4()
	e.configurations = e.configurations[:1]
	e.variants = []string{"tvm", "cross-layer"}
	p, err := e.plan()
	if err != nil {
		t.Fatal(err)
	}
	result, err := harness.Compute(context.Background(), p.Cells[0])
	if err != nil {
		t.Fatal(err)
	}
	var times []schedulingTime
	if err := json.Unmarshal(result, &times); err != nil || len(times) != 2 || times[0].Seconds <= 0 ||
		times[1].Variant != "cross-layer" {
		t.Errorf("%v: %+v", err, times)
	}
	rep, err := p.Report([]json.RawMessage{result})
	if err != nil || !strings.Contains(rep.Text, "resnet50") {
		t.Errorf("%v: %+v", err, rep)
	}
	for _, f := range rep.Files {
		if filepath.Ext(f.Name) == ".tex" {
			harnesstest.LaTeX(t, f.Name, f.Data)
		}
	}
}

func TestHeuristics(t *testing.T) {
	e := fullTable4()
	if got := strings.Join(e.heuristics().variants, " "); got != "tvm astitch cross-layer" {
		t.Errorf("without exact methods the variants are %s", got)
	}
	with, err := e.plan()
	if err != nil {
		t.Fatal(err)
	}
	without, err := e.heuristics().plan()
	if err != nil {
		t.Fatal(err)
	}
	// Neither run makes the cells of the other stale.
	for i := range with.Cells {
		if with.Cells[i].Key == without.Cells[i].Key {
			t.Errorf("cell %s is the same with and without exact methods", with.Cells[i].Key)
		}
	}
}
