package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
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
		want := strings.Join(cells[1:4], " ")
		command := strings.Split(cells[0], "`")[1]
		tested++
		if net, joint := strings.CutPrefix(command, "compare "); joint {
			if got := size(jointSize(t, strings.Fields(net)[0])); got != want {
				t.Errorf("%s: rows, columns, nonzeros are %s, the table has %s", command, got, want)
			}
			continue
		}
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

// jointSize is the size of the joint program of a network in chunks of 8.
func jointSize(t *testing.T, name string) milp.Effort {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	src, err := network.Open(name, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := src.Graph(8)
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Schedule(t.Context(), g, spec, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := exact.JointProblem(t.Context(), s, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := n.GivenPoint()
	if err != nil {
		t.Fatal(err)
	}
	return m.Effort()
}
