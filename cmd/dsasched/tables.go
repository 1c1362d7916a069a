package main

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
)

// tableFiles are the files of a table for papers and pages.
type tableFiles struct{ tex, md *outFile }

func addTables(cmd *cobra.Command) *tableFiles {
	return &tableFiles{
		tex: addFile(cmd, "tex", "write the table to this `file` as LaTeX, for the package booktabs: .tex", ".tex"),
		md:  addFile(cmd, "md", "write the table to this `file` as Markdown: .md", ".md"),
	}
}

// write writes the files that were asked for.
func (f *tableFiles) write(t harness.Table, command string) error {
	if err := f.tex.write(func() ([]byte, error) {
		text, err := t.LaTeX("dsasched-" + command)
		return []byte(text), err
	}); err != nil {
		return err
	}
	return f.md.write(func() ([]byte, error) { return []byte(t.Markdown()), nil })
}

// tableOf makes a table for files of what writeTable prints, under a title.
func tableOf(command, title, align string, header []string, rows [][]string, notes []string) harness.Table {
	t := harness.Table{Title: title, Name: command, Rows: rows, Notes: notes}
	for i, h := range header {
		t.Columns = append(t.Columns, harness.Column{Name: cmp.Or(h, "share"), Text: align[i] == 'l'})
	}
	return t
}

// writeGrouped prints a table whose columns have groups: those of each group by themselves, beside the columns that
// have none.
func writeGrouped(b *bytes.Buffer, t harness.Table) {
	var groups []string
	for _, c := range t.Columns {
		if c.Group != "" {
			groups = addOnce(groups, c.Group)
		}
	}
	fmt.Fprintf(b, "%s\n", t.Title)
	for k := range max(1, len(groups)) {
		align, header, rows := "", []string(nil), make([][]string, len(t.Rows))
		for i, c := range t.Columns {
			if c.Group != "" && c.Group != groups[k] {
				continue
			}
			if c.Text {
				align += "l"
			} else {
				align += "r"
			}
			header = append(header, printable(c.Name))
			for j, r := range t.Rows {
				rows[j] = append(rows[j], printable(r[i]))
			}
		}
		b.WriteByte('\n')
		if len(groups) > 0 {
			fmt.Fprintf(b, "on %s\n", printable(groups[k]))
		}
		writeTable(b, align, header, rows)
	}
}
