package harness

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Field is a column of a CSV file of T: its name, which ends in its unit, and its value, a
// string, a number, a truth value or nil for an empty cell.
type Field[T any] struct {
	Name string
	Of   func(T) any
}

// Fields are the columns of these names, separated by spaces: of own, or fields of T by their names in JSON. In a
// field that is a struct, ddr_moved_bytes is the field ddr of moved_bytes, and any other name that of a field of it.
// A nil pointer, and a zero that JSON omits, is an empty cell.
func Fields[T any](names string, own ...Field[T]) []Field[T] {
	var list []Field[T]
	for name := range strings.FieldsSeq(names) {
		if i := slices.IndexFunc(own, func(f Field[T]) bool { return f.Name == name }); i >= 0 {
			list = append(list, own[i])
			continue
		}
		index, omit := jsonField(reflect.TypeFor[T](), name)
		if index == nil {
			panic(fmt.Sprintf("harness: %v has no field %s", reflect.TypeFor[T](), name))
		}
		list = append(list, Field[T]{name, func(x T) any {
			v := reflect.ValueOf(x).FieldByIndex(index)
			if (omit || v.Kind() == reflect.Pointer) && v.IsZero() {
				return nil
			}
			return reflect.Indirect(v).Interface()
		}})
	}
	return list
}

// jsonField finds a field, nil if there is none, and whether JSON omits its zero.
func jsonField(t reflect.Type, name string) (index []int, omit bool) {
	fields := reflect.VisibleFields(t)
	for _, f := range fields {
		if tag, options, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Index, options == "omitempty"
		}
	}
	for _, f := range fields {
		if f.Type.Kind() != reflect.Struct || f.Anonymous {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if index, omit := jsonField(f.Type, strings.TrimSuffix(name, "_"+tag)); index != nil {
			return slices.Concat(f.Index, index), omit
		}
	}
	return nil, false
}

// CSV returns a CSV file with these columns.
func CSV[T any](rows []T, fields []Field[T]) []byte {
	out := make([][]string, 1, len(rows)+1)
	for _, f := range fields {
		out[0] = append(out[0], f.Name)
	}
	for _, r := range rows {
		line := Each(fields, func(f Field[T]) string { return csvCell(f.Of(r)) })
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
	case ChunkPolicy:
		return string(x)
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
