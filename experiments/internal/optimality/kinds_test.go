package optimality

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

// On SqueezeNet the exact choice of kinds is faster than the greedy one in the simulator, too, and the table has a row
// for it; on Inception kinds side by side are faster than one behind the other. The cells themselves check the bounds.
func TestKinds(t *testing.T) {
	x := kinds{networks: []string{"squeezenet"}, beside: []string{"inception-v1"}, recipes: []string{"cross-layer"}}
	p, err := x.plan()
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	var cells [2]kindsCell
	for i := range cells {
		data, err := harness.Compute(context.Background(), p.Cells[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &cells[i]); err != nil {
			t.Fatal(err)
		}
		raw = append(raw, data)
	}
	if c := cells[0]; c.Seconds[1] >= c.Seconds[0] {
		t.Errorf("exactly %g s, greedily %g", c.Seconds[1], c.Seconds[0])
	}
	if c := cells[1]; slices.Min(c.Beside) >= slices.Min(c.Seconds) {
		t.Errorf("side by side %v s, one behind the other %v", c.Beside, c.Seconds)
	}
	rep, err := p.Report(raw)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, f := range rep.Files {
		if filepath.Ext(f.Name) == ".tex" {
			harnesstest.LaTeX(t, f.Name, f.Data)
		}
		if text := string(f.Data); strings.HasSuffix(f.Name, ".csv") &&
			(strings.Contains(text, "squeezenet,cross-layer") || strings.Contains(text, "inception-v1,cross-layer")) {
			rows++
		}
	}
	if rows < 2 {
		t.Errorf("%d tables have the networks", rows)
	}
}
