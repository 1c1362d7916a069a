package experiments

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// table is a table that can be written in several forms.
type table struct {
	title   string
	label   string // for references in LaTeX
	columns []column
	rows    [][]string
	notes   []string // below the table
}

// column is a heading. Neighbouring columns of one group share a heading above
// theirs.
type column struct {
	group, name string
	text        bool // aligned left
}

func (c column) heading() string {
	if c.group == "" {
		return c.name
	}
	return c.group + " " + c.name
}

// writeText writes the table for a terminal.
func (t *table) writeText(w io.Writer) error {
	var align tw.Alignment
	var header []string
	for _, c := range t.columns {
		a := tw.AlignRight
		if c.text {
			a = tw.AlignLeft
		}
		align = append(align, a)
		h := c.name
		if c.group != "" {
			h = c.group + "\n" + c.name
		}
		header = append(header, h)
	}
	if _, err := fmt.Fprintf(w, "%s\n", t.title); err != nil {
		return err
	}
	tab := tablewriter.NewTable(w,
		tablewriter.WithHeaderAutoFormat(tw.Off), // it would write units in capitals
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		// Widths must not depend on the locale.
		tablewriter.WithEastAsian(tw.Off),
		tablewriter.WithAlignment(align),
	)
	tab.Header(header)
	if err := tab.Bulk(t.rows); err != nil {
		return err
	}
	if err := tab.Render(); err != nil {
		return err
	}
	for _, n := range t.notes {
		if _, err := fmt.Fprintf(w, "%s\n", n); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// markdown returns the table for Markdown, under a heading.
func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", escapeMarkdown(t.title))
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| ")
			b.WriteString(escapeMarkdown(c))
			b.WriteByte(' ')
		}
		b.WriteString("|\n")
	}
	var header []string
	for _, c := range t.columns {
		header = append(header, strings.ReplaceAll(c.heading(), "\n", " "))
	}
	line(header)
	for _, c := range t.columns {
		if c.text {
			b.WriteString("|:---")
		} else {
			b.WriteString("|---:")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.rows {
		line(r)
	}
	b.WriteByte('\n')
	for _, n := range t.notes {
		fmt.Fprintf(&b, "%s\n\n", escapeMarkdown(n))
	}
	return b.String()
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "\n", " ")

func escapeMarkdown(s string) string { return markdownEscapes.Replace(s) }

// latex returns the table as a floating environment over both columns of a page;
// it needs the package booktabs.
func (t *table) latex() string {
	var b strings.Builder
	spec := ""
	for _, c := range t.columns {
		if c.text {
			spec += "l"
		} else {
			spec += "r"
		}
	}
	fmt.Fprintf(&b, "\\begin{table*}\n  \\centering\\small\n  \\caption{%s.}\n  \\label{%s}\n", escapeLaTeX(t.title), t.label)
	fmt.Fprintf(&b, "  \\begin{tabular}{@{}%s@{}}\n    \\toprule\n", spec)
	// The upper line of the heading holds the groups.
	var groups, rules []string
	grouped := false
	for i := 0; i < len(t.columns); {
		j := i + 1
		for t.columns[i].group != "" && j < len(t.columns) && t.columns[j].group == t.columns[i].group {
			j++
		}
		if g := t.columns[i].group; g != "" {
			grouped = true
			groups = append(groups, fmt.Sprintf("\\multicolumn{%d}{c}{%s}", j-i, stack(g, "c")))
			rules = append(rules, fmt.Sprintf("\\cmidrule(lr){%d-%d}", i+1, j))
		} else {
			groups = append(groups, "")
		}
		i = j
	}
	if grouped {
		fmt.Fprintf(&b, "    %s \\\\\n    %s\n", strings.Join(groups, " & "), strings.Join(rules, " "))
	}
	var names []string
	for _, c := range t.columns {
		align := "r"
		if c.text {
			align = "l"
		}
		names = append(names, stack(c.name, align))
	}
	fmt.Fprintf(&b, "    %s \\\\\n    \\midrule\n", strings.Join(names, " & "))
	for _, r := range t.rows {
		var cells []string
		for _, c := range r {
			cells = append(cells, escapeLaTeX(c))
		}
		fmt.Fprintf(&b, "    %s \\\\\n", strings.Join(cells, " & "))
	}
	b.WriteString("    \\bottomrule\n  \\end{tabular}\n")
	for _, n := range t.notes {
		fmt.Fprintf(&b, "  \\par\\smallskip\\footnotesize %s\n", escapeLaTeX(n))
	}
	b.WriteString("\\end{table*}\n")
	return b.String()
}

// stack puts the lines of a heading one above the other, as the terminal does.
func stack(s, align string) string {
	lines := strings.Split(s, "\n")
	if len(lines) == 1 {
		return escapeLaTeX(s)
	}
	for i, l := range lines {
		lines[i] = escapeLaTeX(l)
	}
	return `\begin{tabular}[b]{@{}` + align + `@{}}` + strings.Join(lines, ` \\ `) + `\end{tabular}`
}

var latexEscapes = strings.NewReplacer(
	`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`,
	"~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`, "×", `$\times$`, "–", "--")

func escapeLaTeX(s string) string { return latexEscapes.Replace(s) }

// csvBytes returns rows as a CSV file.
func csvBytes(rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(rows); err != nil {
		panic("experiments: " + err.Error()) // a buffer takes everything
	}
	return b.Bytes()
}

// Numbers in files: all digits that a row has.
func exact(x float64) string { return strconv.FormatFloat(round(x), 'g', -1, 64) }
func count(n int64) string   { return strconv.FormatInt(n, 10) }

// Numbers in tables for people.
func fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
func percent(x float64) string           { return fixed(100*x, 1) }

// significant writes a number with at least three digits that count, and all those
// before the point.
func significant(x float64) string {
	switch a := max(x, -x); {
	case a >= 100 || a == 0:
		return fixed(x, 0)
	case a >= 10:
		return fixed(x, 1)
	case a >= 1:
		return fixed(x, 2)
	default:
		return fixed(x, 3)
	}
}
