package cli

import (
	"encoding/json"
	"fmt"
	"math"
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

// The table of what schedules reach has what its command prints; with DSASCHED_FULL all of its rows.
func TestTableOfReached(t *testing.T) {
	names := map[string]string{"A": "resnet50", "B": "bert-128", "C": "bert-256", "D": "bert-large-384", "E": "bert-512",
		"F": "dlrm", "G": "mobilenetv2", "H": "vit-b16", "I": "densenet121", "J": "conformer"}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "formulations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| network, batch | `cross-layer` | default |")
	table, rest, _ := strings.Cut(table, "\n\n")
	over, above, lines := 1., 1., strings.Split(table, "\n")[2:]
	if len(lines) != len(names) {
		t.Errorf("the table has %d networks, expected %d", len(lines), len(names))
	}
	for _, line := range lines {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		letter, batch := cells[0][:1], cells[0][strings.LastIndex(cells[0], " ")+1:]
		var gain, ratio float64
		if _, err := fmt.Sscan(cells[3]+" "+cells[4], &gain, &ratio); err != nil {
			t.Fatal(line, err)
		}
		over, above = over*gain, above*ratio
		if letter != "F" && letter != "I" && os.Getenv("DSASCHED_FULL") == "" {
			continue
		}
		ask := func(command string, more ...string) (a struct {
			Latency  float64 `json:"latency_s"`
			Form     float64 `json:"any_form_lower_bound_s"`
			Division float64 `json:"any_division_lower_bound_s"`
		}) {
			args := append([]string{command, names[letter], "--batch", batch, "--json"}, more...)
			if err := json.Unmarshal([]byte(answer(t, args...)), &a); err != nil {
				t.Fatal(args, err)
			}
			return a
		}
		own, greedy := ask("schedule", "--quiet"), ask("schedule", "--quiet", "--variant", "cross-layer")
		b := ask("bound")
		least := b.Form
		if letter == "F" {
			least = b.Division
		}
		got := fmt.Sprintf("%.4g | %.4g | %.3f | %.2f", 1e3*greedy.Latency, 1e3*own.Latency, greedy.Latency/own.Latency,
			own.Latency/least)
		if want := strings.Join(cells[1:], " | "); got != want {
			t.Errorf("%s: the commands print %s, the table has %s", cells[0], got, want)
		}
	}
	mean := fmt.Sprintf("Geometric mean: %.2f times the speed of `cross-layer`, %.2f times the bound.", math.Pow(over, .1),
		math.Pow(above, .1))
	if !strings.HasPrefix(rest, mean) {
		t.Errorf("the manual lacks %q", mean)
	}
}
