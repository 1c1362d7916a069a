package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// The table of integer programs in the manual has what its commands print.
func TestTableOfPrograms(t *testing.T) {
	if _, err := highs.New(); err != nil {
		t.Skip(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "formulations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| program | rows |")
	table, _, _ = strings.Cut(table, "\n\n")
	tested := 0
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		size := func(e milp.Effort) string { return fmt.Sprint(e.Rows, e.Columns, e.Nonzeros) }
		command := strings.Split(cells[0], "`")[1]
		tested++
		args := strings.Fields(strings.ReplaceAll(command, "bench/", root+"/bench/") + " --json --quiet")
		var a struct {
			Program milp.Effort `json:"program"`
		}
		err := json.Unmarshal([]byte(answer(t, args...)), &a)
		if err != nil || a.Program.LP == nil || a.Program.RootGap == nil {
			t.Fatalf("%s: %v, %+v", command, err, a)
		}
		got := fmt.Sprintf("%s %.4g %.1f", size(a.Program), *a.Program.LP, 100**a.Program.RootGap)
		if want := strings.Join(cells[1:6], " "); got != want {
			t.Errorf("%s: rows, columns, nonzeros, LP and root gap are %s, the table has %s", command, got, want)
		}
	}
	if tested < 6 {
		t.Errorf("%d programs are tested", tested)
	}
}
