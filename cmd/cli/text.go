package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
)

// writeTable prints rows under a header. align has a letter per column: l or r.
func writeTable(b *bytes.Buffer, align string, header []string, rows [][]string) {
	columns := make([]tw.Align, len(align))
	for i, a := range align {
		columns[i] = tw.AlignLeft
		if a == 'r' {
			columns[i] = tw.AlignRight
		}
	}
	cells := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{PerColumn: columns},
		Padding:    tw.CellPadding{Global: tw.Padding{Left: " ", Right: " ", Overwrite: true}},
	}
	rows = fit(align, header, rows, screen.width)
	var out bytes.Buffer
	t := tablewriter.NewTable(&out,
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells}),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleASCII),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
	)
	t.Header(header)
	err := t.Bulk(rows)
	if err == nil {
		err = t.Render()
	}
	if err != nil {
		panic("dsasched: table: " + err.Error()) // a buffer takes everything
	}
	// The table pads the last column too.
	first := screen.bold
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, " \n")
		if first {
			line = bold + line + plainAgain
		}
		b.WriteString(line + "\n")
		first = false
	}
}

// What makes a terminal print bold, and ends it.
const bold, plainAgain = "\x1b[1m", "\x1b[m"

// writeDescriptions prints names and descriptions, which would make a table too wide, below it.
func writeDescriptions(b *bytes.Buffer, rows [][]string) {
	list(b, "", "<name|<description", rows, func(_ int, r []string) []any { return []any{r[0], r[1]} })
}

// row prints a label and a value.
func row(b *bytes.Buffer, label, format string, args ...any) {
	fmt.Fprintf(b, "%-*s%s\n", labelWidth, label, fmt.Sprintf(format, args...))
}

// rowOf prints a label and a list, which goes on under its beginning if it is long.
func rowOf(b *bytes.Buffer, label string, items []string) {
	for i := range items[:max(0, len(items)-1)] {
		items[i] += ","
	}
	rowWords(b, label, items, len(items)+1)
}

// rowWrapped prints a label and a text, which goes on under its beginning if it is long.
func rowWrapped(b *bytes.Buffer, label, text string) {
	words := strings.Fields(text)
	rowWords(b, label, words, len(words)+1)
}

// rowWords prints a label and at most n lines of words.
func rowWords(b *bytes.Buffer, label string, words []string, n int) {
	lines := wrap(words, strings.Repeat(" ", labelWidth), lineWidth, n)
	fmt.Fprintf(b, "%-*s%s", labelWidth, label, lines[min(labelWidth, len(lines)):])
}

// list prints a table below its title, or below an empty line unless it begins the answer: a row for each item of which
// there are cells. Columns have "|" between; "<" aligns to the left.
func list[T any](b *bytes.Buffer, title, columns string, items []T, cells func(i int, x T) []any) {
	listFirst(b, title, columns, items, len(items), cells)
}

// listFirst prints the first items; if there are more than most, the last row says how many.
func listFirst[T any](b *bytes.Buffer, title, columns string, items []T, most int, cells func(i int, x T) []any) {
	if title != "" {
		fmt.Fprintf(b, "\n%s\n", title)
	} else if b.Len() > 0 {
		b.WriteByte('\n')
	}
	align, header := "", strings.Split(columns, "|")
	for i, h := range header {
		header[i] = strings.TrimPrefix(h, "<")
		align += map[bool]string{true: "l", false: "r"}[h != header[i]]
	}
	var rows [][]string
	add := func(cells []any) {
		row := make([]string, len(header))
		for k, c := range cells {
			row[k] = fmt.Sprint(c)
		}
		rows = append(rows, row)
	}
	for i, x := range items {
		if i == most {
			add([]any{"...", fmt.Sprintf("%d more", len(items)-i)})
			break
		}
		if row := cells(i, x); row != nil {
			add(row)
		}
	}
	writeTable(b, align, header, rows)
}

// known writes a number, or a dash where there is none.
func known[T any](x *T, write func(T) string) string {
	if x == nil {
		return "–"
	}
	return write(*x)
}

// gapText writes a gap, if the bound says something.
func gapText(objective, bound float64) string {
	if g := (solve.Outcome{Objective: objective, Bound: bound}).Gap(); !math.IsInf(g, 0) && !math.IsNaN(g) {
		return percent(g)
	}
	return "unknown"
}

const (
	labelWidth = 14
	lineWidth  = 80
)

// withPrefix writes a number with a decimal prefix and four significant digits: "25.56 M".
func withPrefix(v float64) string {
	for _, p := range []struct {
		name string
		size float64
	}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		// From 999.95 on, four digits round to 1000.
		if math.Abs(v) >= p.size*0.99995 {
			return significant(v/p.size) + " " + p.name
		}
	}
	return significant(v)
}

// significant writes four significant digits, without an exponent.
func significant(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e4 {
		return fmt.Sprintf("%.0f", v)
	}
	if math.Abs(v) < 0.001 { // of which three decimals would leave nothing
		return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(math.Abs(v)))), 64)
	}
	digits := 3
	for x := math.Abs(v); x >= 9.9995 && digits > 0; x /= 10 {
		digits--
	}
	return fmt.Sprintf("%.*f", digits, v)
}

// count writes a number with a prefix if it has one, as a unit wants it: "4.09 G" + "MAC".
func count(n int64) string { return withPrefix(float64(n)) }

// unit joins a number of withPrefix and its unit: "4.09 GMAC", "7 MAC".
func unit(n float64, name string) string {
	number, prefix, _ := strings.Cut(withPrefix(n), " ")
	return number + " " + prefix + name
}

// perSecond writes a rate of batch elements.
func perSecond(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f/s", v)
	}
	return significant(v) + "/s"
}

// size writes bytes with a binary prefix.
func size(n int64) string { return hardware.Bytes(n).Rounded() }

// duration writes seconds.
func duration(s float64) string { return small(s, "s") }

// small writes a quantity that is rarely above 1, such as seconds.
func small(v float64, name string) string {
	for _, p := range []struct {
		prefix string
		per    float64
	}{{"", 1}, {"m", 1e3}, {"u", 1e6}} {
		if math.Abs(v)*p.per >= 0.99995 {
			return significant(v*p.per) + " " + p.prefix + name
		}
	}
	return significant(v*1e9) + " n" + name
}

// joules writes an energy.
func joules(e float64) string {
	if e < 0.99995 && e > 0 {
		return small(e, "J")
	}
	return unit(e, "J")
}

// energyText writes an energy and its mean over the latency, if they are known.
func energyText(energy, power *float64) string {
	if energy == nil {
		return "unknown: the accelerator's description has no figures"
	}
	return fmt.Sprintf("%s, mean %s", joules(*energy), unit(*power, "W"))
}

// percent writes a share.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// plural writes a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, strings.Replace(thing+"s", "chs", "ches", 1))
}

// shorten cuts the middle out of a name that is longer than n characters: the
// beginning says which block, the end which operator.
func shorten(name string, n int) string {
	r := []rune(printable(name))
	if len(r) <= n {
		return string(r)
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// printable replaces what a terminal would not show but obey: names come from files.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// wrap breaks words into lines of at most width characters and gives at most n of
// them, each indented; the last one ends in "..." if there is more.
func wrap(words []string, indent string, width, n int) string {
	var b strings.Builder
	long := func(line string) int { return len([]rune(line)) }
	line, lines, first := indent, 0, 0 // first word of the line
	for i, w := range words {
		if long(line) > len(indent) && long(line)+1+long(w) > width {
			lines++
			if lines == n {
				end := i
				tail := func() string { return fmt.Sprintf(" ... (%d more)", len(words)-end) }
				for end > first+1 && long(line)+long(tail()) > width {
					end--
					line = strings.TrimSuffix(line, " "+words[end])
				}
				b.WriteString(line + tail() + "\n")
				return b.String()
			}
			first = i
			b.WriteString(line + "\n")
			line = indent
		}
		if long(line) > len(indent) {
			line += " "
		}
		line += w
	}
	b.WriteString(line + "\n")
	return b.String()
}

// tableFiles are the files of a table for papers and pages.
type tableFiles struct{ tex, md *outFile }

func addTables(cmd *cobra.Command) *tableFiles {
	return &tableFiles{
		tex: addFile(cmd, "tex", "write the table to this `file` as LaTeX, for booktabs and graphicx: .tex", ".tex"),
		md:  addFile(cmd, "md", "write the table to this `file` as Markdown: .md", ".md"),
	}
}

// write writes the files that were asked for.
func (f *tableFiles) write(t harness.Table, command string) error {
	if err := f.tex.write(func() ([]byte, error) {
		return []byte(t.LaTeX("dsasched-" + command)), nil
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

// screen describes the standard output. There is one in a process; run
// sets it before a command writes. The zero value is a file: no width, no colour.
var screen struct {
	width int  // in characters; 0: no limit
	bold  bool // headers of tables may be bold
}

// look sets screen for an output.
func look(w io.Writer) {
	screen.width, screen.bold = 0, false
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		screen.width = n
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	if screen.width == 0 {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			screen.width = n
		}
	}
	// no-color.org: set to anything but nothing.
	screen.bold = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// fit makes a table as wide as the screen at most. A last column of prose goes on in rows of its own, below; of other
// columns on the left side the longest texts are shortened, first of all those that don't name the row, none below a
// few characters. Columns of numbers stay as they are, since a shortened number is a wrong one.
func fit(align string, header []string, rows [][]string, width int) [][]string {
	const space, least, middling, prose = 2, 8, 12, 24
	if width <= 0 {
		return rows
	}
	columns, total := make([]int, len(header)), 0
	for i, h := range header {
		columns[i] = len([]rune(h))
		for _, r := range rows {
			if i < len(r) {
				columns[i] = max(columns[i], len([]rune(r[i])))
			}
		}
		total += columns[i] + space
	}
	last := len(header) - 1
	words := last >= 0 && align[last] != 'r' &&
		slices.ContainsFunc(rows, func(r []string) bool { return last < len(r) && strings.Contains(r[last], " ") })
	narrow := func(from, to, floor int) {
		for total > width {
			widest := -1
			for i := from; i < to; i++ {
				if align[i] != 'r' && columns[i] > max(floor, len([]rune(header[i]))) &&
					(widest < 0 || columns[i] > columns[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				return // they are as narrow as they can be
			}
			columns[widest]--
			total--
		}
	}
	others := len(header)
	if words {
		others = last
		narrow(last, last+1, prose)
	}
	narrow(min(1, others), others, middling)
	narrow(others, len(header), middling)
	narrow(min(1, others), others, least)
	narrow(0, 1, middling)
	narrow(0, len(header), least)
	var fitted [][]string
	for _, r := range rows {
		cells := slices.Clone(r)
		var more []string // lines of the last column
		for i, cell := range r {
			if align[i] == 'r' || len([]rune(cell)) <= columns[i] {
				continue
			}
			if i == last && words {
				more = strings.Split(strings.TrimSuffix(wrap(strings.Fields(cell), "", columns[i], len(cell)+1), "\n"), "\n")
				cells[i], more = shorten(more[0], columns[i]), more[1:]
				continue
			}
			cells[i] = shorten(cell, columns[i])
		}
		fitted = append(fitted, cells)
		for _, line := range more {
			cells := make([]string, len(header))
			cells[last] = shorten(line, columns[last])
			fitted = append(fitted, cells)
		}
	}
	return fitted
}
