package optimality

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/harness/harnesstest"
)

// On SqueezeNet the exact choice of kinds is faster than the greedy one in the simulator, too, and the table has a row
// for it. The cell itself checks the bound.
func TestKinds(t *testing.T) {
	x := kinds{networks: []string{"squeezenet"}, recipes: []string{"cross-layer"}}
	p, err := x.plan()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := harness.Compute(context.Background(), p.Cells[0])
	if err != nil {
		t.Fatal(err)
	}
	var c kindsCell
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	if c.Seconds[1] >= c.Seconds[0] {
		t.Errorf("exactly %g s, greedily %g", c.Seconds[1], c.Seconds[0])
	}
	rep, err := p.Report([]json.RawMessage{raw})
	if err != nil {
		t.Fatal(err)
	}
	row := false
	for _, f := range rep.Files {
		if filepath.Ext(f.Name) == ".tex" {
			harnesstest.LaTeX(t, f.Name, f.Data)
		}
		row = row || strings.HasSuffix(f.Name, ".csv") && strings.Contains(string(f.Data), "squeezenet,cross-layer")
	}
	if !row {
		t.Error("no table has the network")
	}
}
