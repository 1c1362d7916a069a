// Package show prints tables and draws figures at the ends of the notebooks' cells. A cell prints or draws,
// not both: the two reach the notebook on different ways, in an order that is left to chance.
package show

import (
	"fmt"
	"os"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"

	"github.com/dsasched/dsasched/plots"
)

// Figure shows a figure. It takes what the functions of package plots return.
func Figure(f *plots.Figure, err error) {
	Check(err)
	png, err := f.PNG()
	Check(err)
	gonbui.DisplayPng(png)
	gonbui.Sync()
	Check(gonbui.Error())
}

// Bars shows a figure with a bar for each name; what is for the legend.
func Bars(title, label, what string, names []string, values []float64) {
	Figure(plots.GroupedBars(plots.Groups{Title: title, YLabel: label, Categories: names,
		Series: []plots.Series{{Name: what, Values: values}}}))
}

// Table prints rows below a header, the first column to the left, the others to the right.
func Table(header []string, rows [][]string) {
	width := make([]int, len(header))
	for _, r := range append([][]string{header}, rows...) {
		for i, s := range r {
			width[i] = max(width[i], len([]rune(s)))
		}
	}
	line := func(r []string) {
		var b strings.Builder
		for i, s := range r {
			pad := strings.Repeat(" ", width[i]-len([]rune(s)))
			if i == 0 {
				b.WriteString(s + pad)
			} else {
				b.WriteString("  " + pad + s)
			}
		}
		fmt.Println(strings.TrimRight(b.String(), " "))
	}
	line(header)
	for _, r := range rows {
		line(r)
	}
}

// Must is a value that comes with an error, which [Check] looks at.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Check ends the cell, and so the notebook, with an error, if there is one.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
