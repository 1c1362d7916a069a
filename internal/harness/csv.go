package harness

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// Field is a column of a CSV file of T: its name, which ends in its unit, and its value, a
// string, a number, a truth value or nil for an empty cell.
type Field[T any] struct {
	Name string
	Of   func(T) any
}

// CSV returns a CSV file with these columns.
func CSV[T any](rows []T, fields []Field[T]) []byte {
	out := make([][]string, 1, len(rows)+1)
	for _, f := range fields {
		out[0] = append(out[0], f.Name)
	}
	for _, r := range rows {
		var line []string
		for _, f := range fields {
			line = append(line, csvCell(f.Of(r)))
		}
		out = append(out, line)
	}
	return csvBytes(out)
}

func csvCell(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case float64:
		return exact(x)
	case int:
		return strconv.Itoa(x)
	case int64:
		return Count(x)
	case bool:
		return strconv.FormatBool(x)
	case []string:
		return strings.Join(x, "; ")
	}
	panic(fmt.Sprintf("harness: a CSV file can't hold a %T", v))
}

// csvBytes returns records as a CSV file.
func csvBytes(records [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(records); err != nil {
		panic("harness: " + err.Error()) // a buffer takes everything
	}
	return b.Bytes()
}
