package allocate

import (
	"bytes"
	"cmp"
	"errors"
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

// maxReported is the number of mistakes of a file that are reported: enough to mend it in one go, and still readable.
const maxReported = 20

// An Error is a mistake in a file.
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
// others. So is its column "gaps", which no known file has. All mistakes are reported, as *[Error] values in one
// joined error in the order of their lines. file stands for the file in them.
func ReadCSV(file string, data []byte) (*Problem, error) {
	r := &reader{file: file}
	p := r.read(strings.TrimPrefix(string(data), "\ufeff"))
	if r.dropped > 0 {
		r.errs = append(r.errs, fmt.Errorf("%s: and %d more mistakes", file, r.dropped))
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	return p, nil
}

type reader struct {
	file    string
	line    int
	errs    []error
	dropped int

	names     []string // of columns as the file has them
	means     []string
	inclusive bool
}

func (r *reader) fail(column, found, format string, args ...any) {
	if len(r.errs) >= maxReported {
		r.dropped++
		return
	}
	r.errs = append(r.errs, &Error{r.file, r.line, column, found, fmt.Sprintf(format, args...)})
}

func (r *reader) read(text string) *Problem {
	p := &Problem{Name: r.file}
	lineOf := map[string]int{}
	total, blank := int64(0), 0
	if !utf8.ValidString(text) {
		r.line = 1
		r.fail("", "bytes that are not UTF-8", "a text file")
		return nil
	}
	for line := range strings.Lines(text) {
		r.line++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			blank = cmp.Or(blank, r.line)
			continue
		}
		if blank > 0 {
			found := r.line
			r.line = blank
			r.fail("", fmt.Sprintf("an empty line, and more in line %d", found), "empty lines at the end only")
			return nil
		}
		n := strings.Count(line, ",") + 1
		if n > len(columns) {
			r.fail("", fmt.Sprintf("%d fields", n), "at most %d", len(columns))
			if r.names == nil {
				return nil
			}
			continue
		}
		fields := strings.Split(line, ",")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if r.names == nil {
			if !r.header(fields) {
				return nil
			}
			continue
		}
		if len(fields) != len(r.names) {
			r.fail("", fmt.Sprintf("%d fields", len(fields)), "%d, as the first line has", len(r.names))
			continue
		}
		b, ok := r.buffer(fields)
		if !ok {
			continue
		}
		if before, dup := lineOf[b.ID]; dup {
			r.fail(r.column(colID), quote(b.ID), "a name that line %d does not have", before)
			continue
		}
		lineOf[b.ID] = r.line
		if total = addUp(total, &b); total > maxTotal {
			r.fail(r.column(colSize), fmt.Sprintf("%d bytes in all with the lines before", total), "at most %d", maxTotal)
			return nil
		}
		p.Buffers = append(p.Buffers, b)
	}
	if r.names == nil {
		r.line = 1
		r.fail("", "an empty file", "a first line with the names of columns")
	}
	return p
}

// column is the name that the file has for a column.
func (r *reader) column(means string) string {
	if i := slices.Index(r.means, means); i >= 0 {
		return r.names[i]
	}
	return means
}

func (r *reader) header(fields []string) bool {
	var known []string
	means := map[string]string{}
	for _, c := range columns {
		known = append(known, c.name)
		means[c.name] = c.means
	}
	before := len(r.errs)
	for i, name := range fields {
		m, ok := means[name]
		if !ok {
			r.fail(strconv.Itoa(i+1), quote(name), "one of %s", strings.Join(known, ", "))
			continue
		}
		if j := slices.Index(r.means, m); j >= 0 {
			r.fail(strconv.Itoa(i+1), quote(name), "one column with this meaning: column %s is before it", quote(r.names[j]))
			continue
		}
		r.names, r.means = append(r.names, name), append(r.means, m)
		r.inclusive = r.inclusive || name == colEnd
	}
	for _, m := range []string{colID, colLower, colUpper, colSize} {
		if !slices.Contains(r.means, m) && len(r.errs) == before {
			r.fail(m, "no such column", "columns id, lower, upper and size")
		}
	}
	return len(r.errs) == before
}

// buffer reads one line; it reports whether nothing is wrong with it.
func (r *reader) buffer(fields []string) (b Buffer, ok bool) {
	before := len(r.errs) + r.dropped
	number := func(i int) int64 {
		v, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			r.fail(r.names[i], quote(fields[i]), "a whole number")
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
			if strings.ContainsAny(b.ID, "\"\r") {
				r.fail(r.names[i], quote(b.ID), "a name without quotation marks, which the format does not have")
			}
		case colLower:
			b.Lifetime.Lower = number(i)
		case colUpper:
			b.Lifetime.Upper = r.end(number(i))
		case colSize:
			b.Size = number(i)
		case colAlignment:
			if b.Alignment = number(i); b.Alignment == 0 {
				r.fail(r.names[i], quote(fields[i]), "a whole number of at least 1")
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
	if len(r.errs)+r.dropped > before {
		return b, false
	}
	if f := b.fault(); f != nil {
		r.fail(r.column(f.column), f.found, "%s", f.expected)
		return b, false
	}
	return b, true
}

// end is the exclusive end for one that the file has.
func (r *reader) end(v int64) int64 {
	if r.inclusive && v < maxTime {
		v++
	}
	return v
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
