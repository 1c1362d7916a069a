package main

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"
)

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

// fit makes a table as wide as the screen at most. A last column of prose goes on in
// rows of its own, below; of other columns on the left side the longest texts are
// shortened, first of all those that don't name the row, none below a few
// characters. Columns of numbers stay as they are, since a shortened number is a
// wrong one.
func fit(align string, header []string, rows [][]string, width int) [][]string {
	const space, least, middling, prose = 2, 8, 12, 24
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
