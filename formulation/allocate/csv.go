package allocate

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Names of columns as they are written.
const (
	colID        = "id"
	colLower     = "lower"
	colUpper     = "upper"
	colSize      = "size"
	colAlignment = "alignment"
	colHint      = "hint"
	colSpill     = "spill_cost"
	colOffset    = "offset"
	colEnd       = "end" // upper, but inclusive
)

// columns are all names that a header may have, with what they stand for. The
// aliases are MiniMalloc's; spill_cost is our own, and MiniMalloc skips it.
var columns = []struct{ name, means string }{
	{colID, colID}, {"buffer", colID}, {"buffer_id", colID},
	{colLower, colLower}, {"begin", colLower}, {"start", colLower},
	{colUpper, colUpper}, {colEnd, colUpper},
	{colSize, colSize}, {colAlignment, colAlignment}, {colHint, colHint}, {colSpill, colSpill},
	{colOffset, colOffset},
}

// An Error is the first mistake in a file.
type Error struct {
	File            string
	Line            int
	Column          string // its name, "" if the whole line is meant
	Found, Expected string
}

func (e *Error) Error() string {
	where := fmt.Sprintf("%s:%d", e.File, e.Line)
	if e.Column != "" {
		where += ": column " + e.Column
	}
	return fmt.Sprintf("%s: found %s, expected %s", where, e.Found, e.Expected)
}

// ReadCSV reads a file of MiniMalloc. The first line names the columns, in any order:
//
//	id (or buffer, buffer_id)   name, unique
//	lower (or begin, start)     start of the lifetime
//	upper                       its end, exclusive; or end, inclusive
//	size                        bytes
//	alignment                   divides the offset; optional
//	hint                        offset to try first, -1 for none; optional
//	spill_cost                  bytes moved if spilled, twice the size if empty; optional
//	offset                      fixed offset, none if empty; optional
//
// MiniMalloc stops at an empty line and skips columns that it does not know; here both are mistakes, since they hide
// others. So is its column "gaps", which no known file has. The error is an *[Error]; file stands for the file in it.
func ReadCSV(file string, data []byte) (*Problem, error) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	r := &reader{file: file, line: 1}
	if !utf8.ValidString(text) {
		return nil, r.fail("", "bytes that are not UTF-8", "a text file")
	}
	lines := strings.Split(strings.TrimRight(text, " \t\r\n"), "\n")
	if lines[0] == "" {
		return nil, r.fail("", "an empty file", "a first line with the names of columns")
	}
	if err := r.header(fieldsOf(lines[0])); err != nil {
		return nil, err
	}
	p := &Problem{Name: file}
	lineOf := map[string]int{}
	total := int64(0)
	for _, line := range lines[1:] {
		r.line++
		fields := fieldsOf(line)
		if strings.TrimSpace(line) == "" {
			return nil, r.fail("", "an empty line", "empty lines at the end only")
		}
		if len(fields) != len(r.names) {
			return nil, r.fail("", fmt.Sprintf("%d fields", len(fields)), "%d, as the first line has", len(r.names))
		}
		b, err := r.buffer(fields)
		if err != nil {
			return nil, err
		}
		if before, dup := lineOf[b.ID]; dup {
			return nil, r.fail(r.column(colID), quote(b.ID), "a name that line %d does not have", before)
		}
		lineOf[b.ID] = r.line
		if total = addUp(total, &b); total > maxTotal {
			return nil, r.fail(r.column(colSize), fmt.Sprintf("%d bytes in all with the lines before", total), "at most %d",
				maxTotal)
		}
		p.Buffers = append(p.Buffers, b)
	}
	return p, nil
}

func fieldsOf(line string) []string {
	fields := strings.Split(line, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields
}

type reader struct {
	file  string
	line  int
	names []string // of columns as the file has them
	means []string
}

func (r *reader) fail(column, found, format string, args ...any) error {
	return &Error{r.file, r.line, column, found, fmt.Sprintf(format, args...)}
}

// column is the name that the file has for a column.
func (r *reader) column(means string) string {
	if i := slices.Index(r.means, means); i >= 0 {
		return r.names[i]
	}
	return means
}

func (r *reader) header(fields []string) error {
	var known []string
	means := map[string]string{}
	for _, c := range columns {
		known = append(known, c.name)
		means[c.name] = c.means
	}
	for i, name := range fields {
		m, ok := means[name]
		if !ok {
			return r.fail(strconv.Itoa(i+1), quote(name), "one of %s", strings.Join(known, ", "))
		}
		if j := slices.Index(r.means, m); j >= 0 {
			return r.fail(strconv.Itoa(i+1), quote(name), "one column with this meaning: column %s is before it",
				quote(r.names[j]))
		}
		r.names, r.means = append(r.names, name), append(r.means, m)
	}
	for _, m := range []string{colID, colLower, colUpper, colSize} {
		if !slices.Contains(r.means, m) {
			return r.fail(m, "no such column", "columns id, lower, upper and size")
		}
	}
	return nil
}

// buffer reads one line.
func (r *reader) buffer(fields []string) (b Buffer, err error) {
	number := func(i int) int64 {
		v, wrong := strconv.ParseInt(fields[i], 10, 64)
		if wrong != nil && err == nil {
			err = r.fail(r.names[i], quote(fields[i]), "a whole number")
		}
		return v
	}
	optional := func(i int) *int64 {
		if fields[i] == "" {
			return nil
		}
		v := number(i)
		return &v
	}
	for i, m := range r.means {
		switch m {
		case colID:
			b.ID = fields[i]
		case colLower:
			b.Lifetime.Lower = number(i)
		case colUpper:
			b.Lifetime.Upper = number(i)
			if r.names[i] == colEnd && b.Lifetime.Upper < maxTime {
				b.Lifetime.Upper++ // it is inclusive
			}
		case colSize:
			b.Size = number(i)
		case colAlignment:
			if b.Alignment = number(i); b.Alignment == 0 && err == nil {
				err = r.fail(r.names[i], quote(fields[i]), "a whole number of at least 1")
			}
		case colHint:
			if b.Hint = optional(i); b.Hint != nil && *b.Hint == -1 {
				b.Hint = nil
			}
		case colSpill:
			b.SpillCost = optional(i)
		case colOffset:
			b.Offset = optional(i)
		}
	}
	if err == nil && strings.ContainsAny(b.ID, "\"\r") {
		err = r.fail(r.column(colID), quote(b.ID), "a name without quotation marks, which the format does not have")
	}
	if f := b.fault(); f != nil && err == nil {
		err = r.fail(r.column(f.column), f.found, "%s", f.expected)
	}
	return b, err
}

// WriteCSV writes a problem so that MiniMalloc and [ReadCSV] read it. Columns in which no buffer has anything are left
// out. offsets, unless nil, go into the column of fixed offsets, in place of the problem's own.
func WriteCSV(w io.Writer, p *Problem, offsets []int64) error {
	if offsets != nil && len(offsets) != len(p.Buffers) {
		return fmt.Errorf("allocate: found %d offsets, expected one for each of %d buffers", len(offsets), len(p.Buffers))
	}
	any := func(has func(b *Buffer) bool) bool {
		return slices.ContainsFunc(p.Buffers, func(b Buffer) bool { return has(&b) })
	}
	number := func(v *int64, none string) string {
		if v == nil {
			return none
		}
		return strconv.FormatInt(*v, 10)
	}
	cols := []struct {
		name string
		on   bool
		text func(i int, b *Buffer) string
	}{
		{colID, true, func(_ int, b *Buffer) string { return b.ID }},
		{colLower, true, func(_ int, b *Buffer) string { return number(&b.Lifetime.Lower, "") }},
		{colUpper, true, func(_ int, b *Buffer) string { return number(&b.Lifetime.Upper, "") }},
		{colSize, true, func(_ int, b *Buffer) string { return number(&b.Size, "") }},
		{colAlignment, any(func(b *Buffer) bool { return b.Align() > 1 }),
			func(_ int, b *Buffer) string { return strconv.FormatInt(b.Align(), 10) }},
		{colHint, any(func(b *Buffer) bool { return b.Hint != nil }),
			func(_ int, b *Buffer) string { return number(b.Hint, "-1") }},
		{colSpill, any(func(b *Buffer) bool { return b.SpillCost != nil }),
			func(_ int, b *Buffer) string { return number(b.SpillCost, "") }},
		{colOffset, offsets != nil || any(func(b *Buffer) bool { return b.Offset != nil }), func(i int, b *Buffer) string {
			if offsets != nil {
				return strconv.FormatInt(offsets[i], 10)
			}
			return number(b.Offset, "")
		}},
	}
	var out bytes.Buffer
	line := func(field func(k int) string) {
		first := true
		for k := range cols {
			if cols[k].on {
				if !first {
					out.WriteByte(',')
				}
				first = false
				out.WriteString(field(k))
			}
		}
		out.WriteByte('\n')
	}
	line(func(k int) string { return cols[k].name })
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if id := b.ID; id != strings.TrimSpace(id) || strings.ContainsAny(id, ",\"\r\n") {
			return fmt.Errorf(
				"allocate: buffer #%d: found the name %s, expected one that the format can hold: no comma, quotation mark, line end or space around it", i, quote(id))
		}
		line(func(k int) string { return cols[k].text(i, b) })
	}
	_, err := w.Write(out.Bytes())
	return err
}
