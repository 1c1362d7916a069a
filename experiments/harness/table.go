package harness

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// Table is a table that can be written in several forms.
type Table struct {
	Title string
	// Name identifies the table within its experiment: letters, digits and '-'. It names the
	// CSV file and is part of the label in LaTeX.
	Name    string
	Columns []Column
	Rows    [][]string
	Notes   []string // below the table
}

// Column is a heading. Neighbouring columns of one group share a heading above theirs.
type Column struct {
	Group, Name string
	Text        bool // aligned left
}

// Columns are columns by their headings. "Group|first|second" are two columns of a group, "<Network" is aligned left.
func Columns(headings ...string) (list []Column) {
	for _, h := range headings {
		names := strings.Split(h, "|")
		group := ""
		if len(names) > 1 {
			group, names = names[0], names[1:]
		}
		for _, n := range names {
			name, text := strings.CutPrefix(n, "<")
			list = append(list, Column{Group: group, Name: name, Text: text})
		}
	}
	return list
}

// AddColumns adds columns by their headings, as [Columns] has them.
func (t *Table) AddColumns(headings ...string) {
	t.Columns = append(t.Columns, Columns(headings...)...)
}

// Add adds a row: text as it is, whole numbers in full, other numbers by [Significant], and lists of text cell by cell.
func (t *Table) Add(cells ...any) {
	var row []string
	for _, c := range cells {
		switch x := c.(type) {
		case string:
			row = append(row, x)
		case []string:
			row = append(row, x...)
		case int:
			row = append(row, strconv.Itoa(x))
		case int64:
			row = append(row, Count(x))
		case float64:
			row = append(row, Significant(x))
		default:
			panic(fmt.Sprintf("harness: the table %q can't hold a %T", t.Title, c))
		}
	}
	t.Rows = append(t.Rows, row)
}

func (c Column) heading() string {
	if c.Group == "" {
		return c.Name
	}
	return c.Group + " " + c.Name
}

// WriteText writes the table for a terminal.
func (t *Table) WriteText(w io.Writer) error {
	var align tw.Alignment
	var header []string
	for _, c := range t.Columns {
		a := tw.AlignRight
		if c.Text {
			a = tw.AlignLeft
		}
		align = append(align, a)
		h := c.Name
		if c.Group != "" {
			h = c.Group + "\n" + c.Name
		}
		header = append(header, h)
	}
	if _, err := fmt.Fprintf(w, "%s\n", t.Title); err != nil {
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
	if err := tab.Bulk(t.Rows); err != nil {
		return err
	}
	if err := tab.Render(); err != nil {
		return err
	}
	for _, n := range t.Notes {
		if _, err := fmt.Fprintf(w, "%s\n", n); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// Markdown returns the table for Markdown, under a heading.
func (t *Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", EscapeMarkdown(t.Title))
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| ")
			b.WriteString(EscapeMarkdown(c))
			b.WriteByte(' ')
		}
		b.WriteString("|\n")
	}
	header := Each(t.Columns, func(c Column) string { return strings.ReplaceAll(c.heading(), "\n", " ") })
	line(header)
	for _, c := range t.Columns {
		if c.Text {
			b.WriteString("|:---")
		} else {
			b.WriteString("|---:")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.Rows {
		line(r)
	}
	b.WriteByte('\n')
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "%s\n\n", EscapeMarkdown(n))
	}
	return b.String()
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`",
	"<", "&lt;", "\n", " ")

func EscapeMarkdown(s string) string { return markdownEscapes.Replace(s) }

// CSV returns the table as a CSV file.
func (t *Table) CSV() []byte {
	header := Each(t.Columns, func(c Column) string { return strings.ReplaceAll(c.heading(), "\n", " ") })
	return csvBytes(append([][]string{header}, t.Rows...))
}

// Numbers in files: all digits that a row has.
func exact(x float64) string { return strconv.FormatFloat(Round(x), 'g', -1, 64) }
func Count(n int64) string   { return strconv.FormatInt(n, 10) }

// Numbers in tables for people.
func Fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
func Percent(x float64) string           { return Fixed(100*x, 1) }

// Significant writes a number with at least three digits that count, and all those before the point.
func Significant(x float64) string {
	switch a := max(x, -x); {
	case a >= 100 || a == 0:
		return Fixed(x, 0)
	case a >= 10:
		return Fixed(x, 1)
	case a >= 1:
		return Fixed(x, 2)
	default:
		return Fixed(x, 3)
	}
}
