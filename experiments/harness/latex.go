package harness

import (
	"fmt"
	"slices"
	"strings"
)

// latexLines is the number of lines that fit a page; what follows goes to another table. A column with a text of more
// than latexText bytes breaks it into lines of about latexLine.
const latexLines, latexText, latexLine = 40, 60, 36

// LaTeX returns the table as floating environments over both columns of a page, one for each page, for the packages
// booktabs and graphicx. What is wider than the page is set smaller, as LaTeX itself measures it.
func (t *Table) LaTeX(label string) string {
	var b strings.Builder
	spec, broken := "", make([]bool, len(t.Columns))
	for i, c := range t.Columns {
		switch long := func(r []string) bool { return len(r[i]) > latexText }; {
		case c.Text && slices.ContainsFunc(t.Rows, long):
			spec, broken[i] = spec+"p{6cm}", true
		case c.Text:
			spec += "l"
		default:
			spec += "r"
		}
	}
	rows := t.Rows
	for part := 1; part == 1 || len(rows) > 0; part++ {
		caption, name := escapeLaTeX(strings.TrimRight(t.Title, ".")), label
		if part > 1 {
			caption, name = caption+" (continued)", fmt.Sprintf("%s-%d", label, part)
		}
		fmt.Fprintf(&b, "\\begin{table*}\n  \\centering\\small\n  \\caption{%s.}\n  \\label{tab:%s}\n", caption, name)
		b.WriteString("  \\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n")
		fmt.Fprintf(&b, "  \\begin{tabular}{@{}%s@{}}\n    \\toprule\n%s    \\midrule\n", spec, t.latexHeading())
		for lines := 0; len(rows) > 0; rows = rows[1:] {
			longest := slices.MaxFunc(rows[0], func(x, y string) int { return len(x) - len(y) })
			if lines += 1 + len(longest)/latexLine; lines > latexLines && lines > 1+len(longest)/latexLine {
				break
			}
			cells := Each(rows[0], escapeLaTeX)
			for i := range cells {
				if broken[i] {
					cells[i] = `\raggedright\hspace{0pt}` + cells[i]
				}
			}
			fmt.Fprintf(&b, "    %s \\tabularnewline\n", strings.Join(cells, " & "))
		}
		b.WriteString("    \\bottomrule\n  \\end{tabular}}\n")
		if part == 1 {
			for _, n := range t.Notes {
				fmt.Fprintf(&b, "  \\par\\smallskip{\\footnotesize\\raggedright %s\\par}\n", escapeLaTeX(n))
			}
		}
		b.WriteString("\\end{table*}\n")
	}
	return b.String()
}

// latexHeading has the groups in a line above the names.
func (t *Table) latexHeading() string {
	var groups, rules, names []string
	for i := 0; i < len(t.Columns); {
		c, end := t.Columns[i], i+1
		for c.Group != "" && end < len(t.Columns) && t.Columns[end].Group == c.Group {
			end++
		}
		group := ""
		if c.Group != "" {
			group = fmt.Sprintf("\\multicolumn{%d}{c}{%s}", end-i, stack(c.Group, "c"))
			rules = append(rules, fmt.Sprintf("\\cmidrule(lr){%d-%d}", i+1, end))
		}
		groups, i = append(groups, group), end
	}
	for _, c := range t.Columns {
		names = append(names, stack(c.Name, map[bool]string{true: "l", false: "r"}[c.Text]))
	}
	above := ""
	if len(rules) > 0 {
		above = fmt.Sprintf("    %s \\\\\n    %s\n", strings.Join(groups, " & "), strings.Join(rules, " "))
	}
	return above + fmt.Sprintf("    %s \\tabularnewline\n", strings.Join(names, " & "))
}

// stack puts the lines of a heading one above the other, as the terminal does.
func stack(s, align string) string {
	lines := Each(strings.Split(s, "\n"), escapeLaTeX)
	if len(lines) == 1 {
		return lines[0]
	}
	return `\begin{tabular}[b]{@{}` + align + `@{}}` + strings.Join(lines, ` \\ `) + `\end{tabular}`
}

var latexEscapes = strings.NewReplacer(
	`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`,
	"~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`, "|", `\textbar{}`,
	"×", `$\times$`, "–", "--", "—", "---", "µ", `$\mu$`, "→", `$\to$`, "≤", `$\le$`, "≥", `$\ge$`, "±", `$\pm$`, "†",
	`$\dagger$`, "…", `\ldots{}`, "·", `$\cdot$`, "²", `$^2$`, "\n", " ")

func escapeLaTeX(s string) string { return latexEscapes.Replace(s) }
