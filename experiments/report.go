package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// verdicts in the order of the summary.
var verdicts = []string{"reproduced within 20 %", "within a factor of two", "direction only", "not reproduced"}

// writeReport gathers the published numbers beside ours from the experiments that
// have results in a folder, and writes report.md there. It depends on the results
// alone.
func writeReport(out string) error {
	var lines []Line
	var have []string
	for _, e := range registry() {
		data, err := os.ReadFile(filepath.Join(out, e.Name, e.Name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var f struct {
			Experiment string `json:"experiment"`
			Lines      []Line `json:"published"`
		}
		// Experiments that compare with nothing have another form.
		if err := json.Unmarshal(data, &f); err == nil {
			for _, l := range f.Lines {
				if l.Experiment != "" {
					lines = append(lines, l)
				}
			}
		}
		have = append(have, e.Name)
	}
	if len(have) == 0 {
		return nil
	}
	return writeFile(filepath.Join(out, "report.md"), []byte(reportText(have, lines)))
}

func reportText(have []string, lines []Line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Published numbers beside ours\n\nProgram: dsasched %s. Experiments with results: %s.\n\n", programVersion(), strings.Join(have, ", "))
	b.WriteString("Three constants of the accelerator are fitted (dsasched calibrate), to throughputs of ResNet-50 and BERT-128 alone. Numbers marked † are of these two networks, or of Table 1: the fit or the choice of mechanisms saw them (docs/deviations.md). All others are the evaluation set: they were compared afterwards.\n\n")
	summary := table{title: "Summary", columns: []column{{name: "Experiment", text: true}}}
	for _, v := range verdicts {
		summary.columns = append(summary.columns, column{name: v})
	}
	var tables []table
	for _, name := range have {
		t := table{title: name, columns: []column{{name: "What", text: true}, {name: "Unit", text: true}, {name: "Published"}, {name: "Ours"}, {name: "Ratio"}, {name: "Verdict", text: true}, {name: "Remark", text: true}}}
		counts := map[string]int{}
		for _, l := range lines {
			if l.Experiment != name {
				continue
			}
			what, unit, ratio := l.What, l.Unit, "–"
			if l.Calibration {
				what += " †"
			}
			if unit == "x" {
				unit = "×"
			}
			if l.Published != 0 {
				ratio = fixed(l.Ratio(), 2)
			}
			number := func(x float64) string {
				if x == float64(int64(x)) {
					return count(int64(x))
				}
				return significant(x)
			}
			t.rows = append(t.rows, []string{what, unit, number(l.Published), number(l.Ours), ratio, l.Verdict(), l.Remark})
			counts[l.Verdict()]++
		}
		if len(t.rows) == 0 {
			continue
		}
		row := []string{name}
		for _, v := range verdicts {
			row = append(row, count(int64(counts[v])))
		}
		summary.rows = append(summary.rows, row)
		tables = append(tables, t)
	}
	if len(tables) == 0 {
		b.WriteString("None of these compares with a published number line by line; see their own folders.\n")
		return b.String()
	}
	b.WriteString(summary.markdown())
	for _, t := range tables {
		b.WriteString(t.markdown())
	}
	b.WriteString("Figures, and the tables behind these lines, stand in the folders of the experiments.\n")
	return b.String()
}
