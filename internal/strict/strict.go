// Package strict reads JSON into structs and refuses unknown, missing, repeated and misspelt fields, and null. All
// packages that read problems return its error type.
package strict

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/internal/bail"
)

// InputError describes a mistake in a file or a problem.
type InputError struct {
	File     string // or the name of a problem that is in no file; "": it has none
	Field    string // such as "schedules[0].order[3]"; "file" for the file as a whole
	Found    string
	Expected string
}

func (e *InputError) Error() string {
	where := e.Field
	if e.File != "" {
		where = e.File + ": " + e.Field
	}
	return fmt.Sprintf("%s: found %s, expected %s", where, e.Found, e.Expected)
}

// Error returns an [InputError].
func Error(file, field, found, expected string) error {
	return &InputError{file, field, found, expected}
}

// Wrong is Error of a field, given as a format, of a problem that knows no file.
func Wrong(found, expected, at string, args ...any) error {
	return Error("", fmt.Sprintf(at, args...), found, expected)
}

// A Taker reads a value from its first token. It returns what it expected, "" if it took the token,
// which is then the whole value.
type Taker interface {
	Take(t json.Token) (expected string)
}

// A Cost is a whole number in the unit of its file, so small that sums are exact.
type Cost int64

const maxCost = 1 << 40

// Take reads one.
func (c *Cost) Take(t json.Token) string {
	if n, ok := t.(json.Number); ok {
		if v, err := n.Int64(); err == nil && v >= 0 && v <= maxCost {
			*c = Cost(v)
			return ""
		}
	}
	return fmt.Sprintf("a whole number from 0 to %d", int64(maxCost))
}

// Rounded are seconds in nanoseconds.
func Rounded(seconds []float64) (list []Cost) {
	for _, s := range seconds {
		list = append(list, Cost(math.Round(s*1e9)))
	}
	return list
}

// Floats are costs as problems have them.
func Floats(costs []Cost) (list []float64) {
	for _, c := range costs {
		list = append(list, float64(c))
	}
	return list
}

// In is an error of what was read from a part of a file, "" for all of it.
func In(file, part string, err error) error {
	if e := new(InputError); errors.As(err, &e) {
		return Error(file, part+e.Field, e.Found, e.Expected)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// Posed checks a problem that was read from a file, and the choice that is given with it.
func Posed[P interface {
	Validate() error
	CheckChoice(choice []int) error
}](file string, p P, given []int) (P, []int, error) {
	err := p.Validate()
	if err == nil {
		if err = p.CheckChoice(given); err != nil {
			err = fmt.Errorf("given: %w", err)
		}
		if e := new(InputError); errors.As(err, &e) {
			err = Error("", strings.Replace(e.Field, "choice", "given", 1), e.Found, e.Expected)
		}
	}
	if err != nil {
		var none P
		return none, nil, In(file, "", err)
	}
	return p, given, nil
}

// Rest as the type of a field named "*" makes an object take other fields than its own.
type Rest struct{}

// A decoder reads JSON into structs, token by token. Package bail ends it at the first wrong value.
type decoder struct {
	file string
	json *json.Decoder
	path []step // to the value that is read
}

// A step is a field, or with index an item of a list.
type step struct {
	field string
	index int
}

const unknownField = "an unknown field"

// fail ends with an error of the value that is read.
func (d *decoder) fail(found, expected string) {
	at := ""
	for _, s := range d.path {
		switch {
		case s.field == "":
			at += "[" + strconv.Itoa(s.index) + "]"
		case at == "":
			at = s.field
		default:
			at += "." + s.field
		}
	}
	bail.Check(&InputError{d.file, cmp.Or(at, "file"), found, expected})
}

// failIn is fail of a field of the value that is read.
func (d *decoder) failIn(field, found, expected string) {
	d.path = append(d.path, step{field: field})
	d.fail(found, expected)
}

// Decode reads JSON into the struct that v points to: every field once, unless its tag has omitempty or
// read:"optional", and nothing else. The tag words says what a text with a type of its own may be, the tag most how
// many items a list may have; "null" lets a pointer be null. Errors are of type [*InputError].
func Decode(file string, data []byte, v any) error {
	d := &decoder{file: file, json: json.NewDecoder(bytes.NewReader(data))}
	d.json.UseNumber()
	err := d.decode(v)
	// What is no JSON at all is told of that, not of a name that it may not have meant.
	var raw map[string]json.RawMessage
	if e := new(InputError); errors.As(err, &e) && e.Found == unknownField {
		if syntax := new(json.SyntaxError); errors.As(json.Unmarshal(data, &raw), &syntax) {
			return &InputError{file, "file", fmt.Sprintf("%v at byte %d", syntax, syntax.Offset-1), "JSON"}
		}
		for _, kind := range [][2]string{{"labels", "joint"}, {"subgraphs", "order"}, {"maxFPGAs", "partition"}} {
			if raw[kind[0]] != nil && raw[e.Field] != nil && !strings.Contains(e.Expected, kind[0]) {
				return &InputError{file, "file", "a problem of 'solve " + kind[1] + "'", "fields " + e.Expected[len("one of "):]}
			}
		}
	}
	return err
}

func (d *decoder) decode(v any) (err error) {
	defer bail.Caught(&err)
	d.value(reflect.ValueOf(v).Elem(), "", 0)
	if _, end := d.json.Token(); end != io.EOF {
		d.fail(fmt.Sprintf("more after the end of the object, at byte %d", d.json.InputOffset()), "one JSON object")
	}
	return nil
}

func (d *decoder) token() json.Token {
	t, err := d.json.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		d.fail(fmt.Sprintf("%v at byte %d", err, d.json.InputOffset()), "JSON")
	}
	return t
}

// part reads the next value, which stands in the one that is read.
func (d *decoder) part(s step, v reflect.Value, words string, most int) {
	d.path = append(d.path, s)
	d.value(v, words, most)
	d.path = d.path[:len(d.path)-1]
}

// value reads the next value into v. words are those of a text with a type of its own; a list has at most most items,
// unless that is 0.
func (d *decoder) value(v reflect.Value, words string, most int) {
	t := d.token()
	if v.Kind() == reflect.Pointer {
		if t == nil && words == "null" {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch x := v.Addr().Interface().(type) {
	case Taker:
		if expected := x.Take(t); expected != "" {
			d.fail(describe(t), expected)
		}
		return
	case encoding.TextUnmarshaler:
		if s, ok := t.(string); !ok || x.UnmarshalText([]byte(s)) != nil {
			d.fail(describe(t), words)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if t != json.Delim('{') {
			d.fail(describe(t), "an object")
		}
		d.object(v)
	case reflect.Slice, reflect.Array:
		if t != json.Delim('[') {
			d.fail(describe(t), "a list")
		}
		n := 0
		for ; d.json.More(); n++ {
			if most > 0 && n == most {
				d.fail("a longer list", fmt.Sprintf("a list of at most %d", most))
			}
			if v.Kind() == reflect.Slice {
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			} else if n == v.Len() {
				d.fail("a longer list", fmt.Sprintf("a list of %d", n))
			}
			d.part(step{index: n}, v.Index(n), words, 0)
		}
		if v.Kind() == reflect.Array && n < v.Len() {
			d.fail(fmt.Sprintf("a list of %d", n), fmt.Sprintf("a list of %d", v.Len()))
		}
		if n == 0 && v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		d.token()
	case reflect.Map: // of names
		if t != json.Delim('{') {
			d.fail(describe(t), "an object")
		}
		for v.Set(reflect.MakeMap(v.Type())); d.json.More(); {
			name, item := d.token().(string), reflect.New(v.Type().Elem()).Elem()
			d.part(step{field: fieldName(name)}, item, words, 0)
			if v.MapIndex(reflect.ValueOf(name)).IsValid() {
				d.failIn(fieldName(name), "the field a second time", "it once")
			}
			v.SetMapIndex(reflect.ValueOf(name), item)
		}
		d.token()
	case reflect.String:
		s, ok := t.(string)
		if !ok {
			d.fail(describe(t), "a text")
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := t.(bool)
		if !ok {
			d.fail(describe(t), "true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, _ := t.(json.Number)
		x, err := strconv.ParseInt(n.String(), 10, 64)
		if f, fail := n.Float64(); err != nil && fail == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			x, err = int64(f), nil // such as 2.0
		}
		if err != nil {
			d.fail(describe(t), "a whole number")
		}
		v.SetInt(x)
	case reflect.Float64:
		n, _ := t.(json.Number)
		x, err := strconv.ParseFloat(n.String(), 64)
		if err != nil {
			d.fail(describe(t), "a number")
		}
		v.SetFloat(x)
	default:
		panic("strict: a field of type " + v.Type().String())
	}
}

// object reads the fields of a struct behind the opening brace.
func (d *decoder) object(v reflect.Value) {
	t := v.Type()
	var fields []reflect.StructField
	var names []string
	var optional []bool
	open := false
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() { // no file has it
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields, names = append(fields, f), append(names, name)
		optional = append(optional, rest == "omitempty" || f.Tag.Get("read") == "optional" || name == "*")
		open = open || name == "*"
	}
	seen := make([]bool, len(names))
	for d.json.More() {
		name := d.token().(string)
		i := slices.Index(names, name)
		switch {
		case open && (i < 0 || name == "*"):
			var skipped json.RawMessage
			if err := d.json.Decode(&skipped); err != nil {
				d.failIn(fieldName(name), err.Error(), "JSON")
			}
			continue
		case i < 0:
			d.failIn(fieldName(name), unknownField, "one of "+strings.Join(names, ", "))
		case seen[i]:
			d.failIn(name, "the field a second time", "it once")
		}
		seen[i] = true
		most, _ := strconv.Atoi(fields[i].Tag.Get("most"))
		d.part(step{field: name}, v.FieldByIndex(fields[i].Index), fields[i].Tag.Get("words"), most)
	}
	for i, name := range names {
		if !seen[i] && !optional[i] {
			d.failIn(name, "nothing", "the field")
		}
	}
	d.token()
}

// fieldName is a name that may be anything.
func fieldName(s string) string {
	if q := Quote(s); q != `"`+s+`"` || strings.ContainsAny(s, " .[]") {
		return q
	}
	return s
}

// describe says what a value is that begins with a token.
func describe(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "a list"
	case string:
		return Quote(t)
	}
	return fmt.Sprint(t)
}

// Quote quotes a text and cuts a long one.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
