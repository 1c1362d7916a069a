package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// screen is how the standard output is looked at. There is one in a process; run
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

// fit shortens the cells of columns on the left side until the table is as wide as
// the screen at most: the longest texts first, none below a few characters. Columns
// of numbers stay as they are, since a shortened number is a wrong one.
func fit(align string, header []string, rows [][]string, width int) [][]string {
	const space, least = 2, 8
	if width <= 0 {
		return rows
	}
	columns := make([]int, len(header))
	total := 0
	for i, h := range header {
		columns[i] = len([]rune(h))
		for _, r := range rows {
			if i < len(r) {
				columns[i] = max(columns[i], len([]rune(r[i])))
			}
		}
		total += columns[i] + space
	}
	for total > width {
		widest := -1
		for i := range columns {
			if align[i] != 'r' && columns[i] > max(least, len([]rune(header[i]))) && (widest < 0 || columns[i] > columns[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // it is as narrow as it can be
		}
		columns[widest]--
		total--
	}
	fitted := make([][]string, len(rows))
	for k, r := range rows {
		for i, cell := range r {
			fitted[k] = append(fitted[k], cell)
			if align[i] != 'r' && len([]rune(cell)) > columns[i] {
				fitted[k][i] = shorten(cell, columns[i])
			}
		}
	}
	return fitted
}
