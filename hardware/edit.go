package hardware

import (
	"fmt"
	"regexp"
	"strings"
)

// SetField writes another value into the text of a description and leaves all else as it is, comments included. The
// path is that of messages, such as "ddr.latency" or "core_types[0].units[1].fill". The comment takes the place of the
// one behind the value, and of the lines of comment that go on below it; those above stay. The field must be there,
// with a value in the same line, and the description must be valid before and after. The name stands for the file in
// messages.
func SetField(name string, data []byte, path, value, comment string) ([]byte, error) {
	d := &decoder{file: name, source: make(map[string]source)}
	d.check = checker{report: d.reportInvalid}
	root := d.document(data)
	if root != nil {
		d.check.spec(d.spec(root))
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	key := path[strings.LastIndexByte(path, '.')+1:]
	lines := strings.Split(string(data), "\n")
	src, ok := d.source[path]
	if !ok || src.found == "" {
		return nil, &Error{File: name, Field: path, Problem: "missing, expected a value that can be replaced by " + value}
	}
	line := lines[src.line-1]
	at := regexp.MustCompile(`(^|[\s{,])`+regexp.QuoteMeta(key)+`:[ \t]+`).FindAllStringIndex(line, -1)
	if len(at) != 1 {
		return nil, &Error{File: name, Line: src.line, Field: path,
			Problem: problem(fmt.Sprintf("%d values with the key %s in one line", len(at), key), "one, that can be replaced")}
	}
	head, rest := line[:at[0][1]], line[at[0][1]:]
	end := strings.IndexAny(rest, ",}#")
	if end < 0 {
		end = len(rest)
	}
	if tail := rest[end:]; strings.HasPrefix(tail, "#") || tail == "" {
		// The comment keeps its column where it can.
		lines[src.line-1] = head + value + strings.Repeat(" ", max(1, end-len(value))) + "# " + comment
		if tail == "" {
			lines[src.line-1] = head + value + "  # " + comment
		}
	} else {
		lines[src.line-1] = head + value + tail // in a mapping of one line: no room for a comment
	}
	out := []byte(strings.Join(lines, "\n"))
	if _, err := Parse(name, out); err != nil {
		return nil, err
	}
	return out, nil
}
