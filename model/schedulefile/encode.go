package schedulefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// lineWidth is the width of a line of the file. Longer objects and lists are broken.
const lineWidth = 160

// Write returns the file as text: JSON with one item per line, for eyes and for tools that compare lines. The same file
// gives the same bytes, and [Read] gives back what was written.
func (f *File) Write() ([]byte, error) { return Encode(f) }

// Encode lays out any value as [File.Write] does.
func Encode(v any) ([]byte, error) {
	var compact bytes.Buffer
	e := json.NewEncoder(&compact)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("the schedule can't be written as JSON: %w", err)
	}
	var out bytes.Buffer
	w := &breaker{out: &out, in: bytes.TrimSpace(compact.Bytes())}
	w.value(0)
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// A breaker lays out compact JSON: what fits a line stays in one.
type breaker struct {
	out *bytes.Buffer
	in  []byte // what is left of it
}

// span is the length of the value that in begins with.
func span(in []byte) int {
	depth, text := 0, false
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
			if depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case c == ',' && depth == 0:
			return i
		}
		if depth == 0 && !text && in[i] == '"' {
			return i + 1
		}
	}
	return len(in)
}

func (b *breaker) take(n int) []byte {
	t := b.in[:n]
	b.in = b.in[n:]
	return t
}

func (b *breaker) value(indent int) {
	n := span(b.in)
	first := b.in[0]
	if first != '{' && first != '[' || n+indent <= lineWidth {
		b.out.Write(b.take(n))
		return
	}
	b.out.WriteByte(b.take(1)[0])
	inner := "\n" + strings.Repeat(" ", indent+1)
	// Numbers fill lines.
	fill := first == '[' && (b.in[0] == '-' || b.in[0] >= '0' && b.in[0] <= '9' || b.in[0] == '[' && span(b.in) < 16)
	column := lineWidth
	for {
		n = span(b.in)
		if !fill || column+1+n > lineWidth {
			b.out.WriteString(inner)
			column = indent + 1
		} else {
			b.out.WriteByte(' ')
			column++
		}
		if first == '{' {
			b.out.Write(b.take(n)) // the name
			b.take(1)
			b.out.WriteString(": ")
			n = span(b.in)
		}
		b.value(indent + 1)
		column += n + 1
		if c := b.take(1)[0]; c != ',' {
			b.out.WriteString("\n" + strings.Repeat(" ", indent))
			b.out.WriteByte(c)
			return
		}
		b.out.WriteByte(',')
	}
}
