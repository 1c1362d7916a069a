package dsasched_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/scheduler"
)

// shows fails where a document lacks a text that is made of data.
func shows(t *testing.T, document, want string) {
	t.Helper()
	if !strings.Contains(read(t, document), want) {
		t.Errorf("%s does not show\n%s", document, want)
	}
}

func TestExtendingShowsWhatStagesWrite(t *testing.T) {
	var b strings.Builder
	b.WriteString("| stage | what a strategy writes into the draft |\n|---|---|\n")
	for _, st := range scheduler.Choices() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", st.Name, st.Writes)
	}
	shows(t, "docs/extend-scheduler.md", b.String()+"\n")
}

func TestArchitectureShowsTheStages(t *testing.T) {
	var b strings.Builder
	b.WriteString("| stage | decides | strategies, the first by default |\n|---|---|---|\n")
	for _, st := range scheduler.Stages() {
		var names []string
		for _, s := range st.Strategies {
			names = append(names, "`"+s.Name+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", st.Name, st.Description, strings.Join(names, ", "))
	}
	shows(t, "docs/architecture.md", b.String())
}

// Packages stand in lines, so that each imports packages of lower lines only.
func TestArchitectureShowsTheImports(t *testing.T) {
	level := map[string]int{}
	var height func(p string) int
	height = func(p string) int {
		if _, known := level[p]; !known {
			h := 0
			for _, d := range mayImport[p] {
				h = max(h, height(d)+1)
			}
			level[p] = h
		}
		return level[p]
	}
	var lines [][]string
	for p := range mayImport {
		h := height(p)
		for len(lines) <= h {
			lines = append(lines, nil)
		}
		lines[h] = append(lines[h], p)
	}
	var b strings.Builder
	for h := len(lines) - 1; h >= 0; h-- {
		slices.Sort(lines[h])
		line := fmt.Sprintf("%2d ", h)
		for _, p := range lines[h] {
			if len(line)+len(p) > 110 {
				b.WriteString(line + "\n")
				line = "   "
			}
			line += " " + p
		}
		b.WriteString(line + "\n")
	}
	shows(t, "docs/architecture.md", "```text\n"+b.String()+"```\n")
}
