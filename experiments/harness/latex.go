package harness

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Tables in LaTeX are for papers in two columns: each is as wide as one column if it fits
// there, else as both, in the largest type in which it fits. What fits is computed from the
// widths of Computer Modern's letters, which article sets; it needs no LaTeX. The narrowest
// common page is A4, on which article has columns of 221 pt and lines of 453 pt.
const (
	columnPt = 220.0
	pagePt   = 450.0
	// heightPt is the height of rows on a page of article; more rows go to another table.
	heightPt = 440.0
)

// setting is a way of setting a table.
type setting struct {
	wide bool
	size string  // the command
	em   float64 // pt, of the type's letters per 1000 of cmr10's
	line float64 // pt from one line to the next
	sep  float64 // pt on each side of a column
	wrap bool    // text columns may have several lines
}

var settings = []setting{
	{false, `\small`, 9.25, 11, 6, false}, {false, `\small`, 9.25, 11, 4, false},
	{false, `\footnotesize`, 8.5, 9.5, 4, false}, {false, `\footnotesize`, 8.5, 9.5, 3, false},
	{true, `\small`, 9.25, 11, 6, false}, {true, `\small`, 9.25, 11, 4, false},
	{true, `\footnotesize`, 8.5, 9.5, 4, false}, {true, `\footnotesize`, 8.5, 9.5, 3, false},
	{true, `\small`, 9.25, 11, 4, true}, {true, `\footnotesize`, 8.5, 9.5, 4, true},
	{true, `\scriptsize`, 7.97, 8, 3, false}, {true, `\scriptsize`, 7.97, 8, 3, true},
}

func (s setting) limit() float64 {
	if s.wide {
		return pagePt
	}
	return columnPt
}

// letterWidths are the widths of cmr10 in thousandths of its size.
var letterWidths = func() map[rune]float64 {
	m := map[rune]float64{}
	for _, x := range []struct {
		width   float64
		letters string
	}{
		{278, "ijl.,:;!'-|"}, {306, "f"}, {333, " "}, {361, "I"}, {389, "()t"}, {392, "r"}, {394, "s"},
		{444, "cez"}, {472, "?"},
		{500, "0123456789agou/–*"}, {514, "J"}, {528, "kvxyq"}, {556, "bdhnpuS"}, {611, "Z"}, {625, "L"}, {653, "F"},
		{681, "EP"}, {708, "B"},
		{722, "wCTK"}, {736, "R"}, {750, "ADHNUVXY"}, {764, "D"}, {778, "GKOQ+=<>~^×#_"}, {833, "m%"}, {917, "M"},
		{1000, "—…&→"}, {1028, "W"},
	} {
		for _, r := range x.letters {
			m[r] = x.width
		}
	}
	return m
}()

// width is the width of a line of text in pt.
func (s setting) width(text string) float64 {
	w := 0.0
	for _, r := range text {
		if x, ok := letterWidths[r]; ok {
			w += x
		} else {
			w += 778 // no letter that a table has is wider, but those above
		}
	}
	return w * s.em / 1000
}

// widest is the width of the widest line.
func (s setting) widest(text string) float64 {
	w := 0.0
	for l := range strings.SplitSeq(text, "\n") {
		w = max(w, s.width(l))
	}
	return w
}

// longest is the width of the longest piece that LaTeX does not break.
func (s setting) longest(text string) float64 {
	w := 0.0
	for _, word := range strings.FieldsFunc(text, unicode.IsSpace) {
		for part := range strings.SplitAfterSeq(word, "-") {
			w = max(w, s.width(part))
		}
	}
	return w
}

// fit returns the widths of the columns that have several lines, 0 for the others; ok is
// false if the table is too wide in this setting.
func (t *Table) fit(s setting) (wrapped []float64, ok bool) {
	natural := make([]float64, len(t.Columns))
	longest := make([]float64, len(t.Columns))
	for i, c := range t.Columns {
		natural[i], longest[i] = s.widest(c.Name), s.longest(c.Name)
		for _, r := range t.Rows {
			natural[i] = max(natural[i], s.width(r[i]))
			longest[i] = max(longest[i], s.longest(r[i]))
		}
	}
	for _, g := range t.groups() {
		if g.name == "" {
			continue
		}
		sum := float64(g.end-g.first-1) * 2 * s.sep
		for i := g.first; i < g.end; i++ {
			sum += natural[i]
		}
		natural[g.end-1] += max(0, s.widest(g.name)-sum)
	}
	rest := s.limit() - float64(len(t.Columns)-1)*2*s.sep
	wrapped = make([]float64, len(t.Columns))
	var open []int // text columns that may become narrower
	for i, w := range natural {
		if rest -= w; s.wrap && t.Columns[i].Text && t.Columns[i].Group == "" && w > 1.1*longest[i] {
			open = append(open, i)
		}
	}
	if rest >= 0 {
		return wrapped, true
	}
	for _, i := range open {
		rest += natural[i]
	}
	// The narrow ones stay as they are; the others share what is left by the lengths of
	// their texts.
	slices.SortStableFunc(open, func(a, b int) int { return int(natural[a] - natural[b]) })
	for k, i := range open {
		left := 0.0
		for _, j := range open[k:] {
			left += natural[j]
		}
		share := rest / float64(len(open)-k)
		if natural[i] <= share {
			rest -= natural[i]
			continue
		}
		w := max(rest*natural[i]/left, longest[i], min(natural[i], share/2))
		wrapped[i] = w
		rest -= w
	}
	return wrapped, len(open) > 0 && rest >= -0.01
}

// columnGroup is a range of columns under one heading, or a single one.
type columnGroup struct {
	name       string
	first, end int
}

func (t *Table) groups() []columnGroup {
	var list []columnGroup
	for i, c := range t.Columns {
		if n := len(list) - 1; n >= 0 && c.Group != "" && list[n].name == c.Group {
			list[n].end++
			continue
		}
		list = append(list, columnGroup{c.Group, i, i + 1})
	}
	return list
}

// printed is the table without what is for the screen alone.
func (t *Table) printed() *Table {
	p := &Table{Title: t.Title, Name: t.Name, Notes: t.Notes, Rows: make([][]string, len(t.Rows))}
	for i, c := range t.Columns {
		if c.Screen {
			continue
		}
		p.Columns = append(p.Columns, c)
		for k, r := range t.Rows {
			p.Rows[k] = append(p.Rows[k], r[i])
		}
	}
	return p
}

// LaTeX returns the table as floating environments, one unless it is longer than a page;
// they need the package booktabs. A table that is too wide in the smallest type is an
// error: some of its columns must be for the screen alone.
func (t *Table) LaTeX(label string) (string, error) {
	p := t.printed()
	for _, s := range settings {
		wrapped, ok := p.fit(s)
		if !ok {
			continue
		}
		var b strings.Builder
		rows := p.Rows
		for part := 0; part == 0 || len(rows) > 0; part++ {
			n := p.onePage(s, wrapped, rows)
			p.float(&b, s, wrapped, rows[:n], label, part)
			rows = rows[n:]
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("the table %q is wider than a page", t.Title)
}

// onePage is the number of rows, one at least, that fit on a page.
func (t *Table) onePage(s setting, wrapped []float64, rows [][]string) int {
	height := 0.0
	for k, r := range rows {
		lines := 1.0
		for i, w := range wrapped {
			if w > 0 {
				lines = max(lines, float64(int(1.15*s.width(r[i])/w)+1))
			}
		}
		if height += lines * s.line; height > heightPt && k > 0 {
			return k
		}
	}
	return len(rows)
}

func (t *Table) float(b *strings.Builder, s setting, wrapped []float64, rows [][]string, label string, part int) {
	environment, spec := "table", ""
	if s.wide {
		environment = "table*"
	}
	for i, c := range t.Columns {
		switch {
		case wrapped[i] > 0:
			spec += fmt.Sprintf("p{%.1fpt}", wrapped[i])
		case c.Text:
			spec += "l"
		default:
			spec += "r"
		}
	}
	caption := escapeLaTeX(strings.TrimRight(t.Title, "."))
	if part > 0 {
		caption += " (continued)"
		label += fmt.Sprintf("-%d", part+1)
	}
	fmt.Fprintf(b, "\\begin{%s}\n  \\centering%s\n  \\setlength{\\tabcolsep}{%gpt}\n  \\caption{%s.}\n  \\label{tab:%s}\n",
		environment, s.size, s.sep, caption, label)
	fmt.Fprintf(b, "  \\begin{tabular}{@{}%s@{}}\n    \\toprule\n", spec)
	// The upper line of the heading holds the groups.
	var groups, rules []string
	for _, g := range t.groups() {
		if g.name == "" {
			groups = append(groups, "")
			continue
		}
		groups = append(groups, fmt.Sprintf("\\multicolumn{%d}{c}{%s}", g.end-g.first, stack(g.name, "c")))
		rules = append(rules, fmt.Sprintf("\\cmidrule(lr){%d-%d}", g.first+1, g.end))
	}
	if len(rules) > 0 {
		fmt.Fprintf(b, "    %s \\\\\n    %s\n", strings.Join(groups, " & "), strings.Join(rules, " "))
	}
	cells := func(r []string, heading bool) {
		var parts []string
		for i, x := range r {
			switch align := "r"; {
			case wrapped[i] > 0:
				parts = append(parts, `\raggedright\hspace{0pt}`+escapeLaTeX(strings.ReplaceAll(x, "\n", " ")))
			case heading:
				if t.Columns[i].Text {
					align = "l"
				}
				parts = append(parts, stack(x, align))
			default:
				parts = append(parts, escapeLaTeX(x))
			}
		}
		fmt.Fprintf(b, "    %s \\tabularnewline\n", strings.Join(parts, " & "))
	}
	names := Each(t.Columns, func(c Column) string { return c.Name })
	cells(names, true)
	b.WriteString("    \\midrule\n")
	for _, r := range rows {
		cells(r, false)
	}
	b.WriteString("    \\bottomrule\n  \\end{tabular}\n")
	if part == 0 {
		for _, n := range t.Notes {
			fmt.Fprintf(b, "  \\par\\smallskip{\\footnotesize\\raggedright %s\\par}\n", escapeLaTeX(n))
		}
	}
	fmt.Fprintf(b, "\\end{%s}\n", environment)
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
	"~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`,
	"×", `$\times$`, "–", "--", "—", "---", "µ", `$\mu$`, "→", `$\to$`, "≤", `$\le$`, "≥", `$\ge$`, "±", `$\pm$`, "†",
	`$\dagger$`, "…", `\ldots{}`, "·", `$\cdot$`, "²", `$^2$`, "\n", " ")

func escapeLaTeX(s string) string { return latexEscapes.Replace(s) }
