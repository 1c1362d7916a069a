// Package strict reads JSON into structs and refuses what does not fit them: unknown, missing and
// repeated fields, other spellings of a name, null. Its error is that of all packages that read
// problems.
package strict

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// InputError says what is wrong with a file or a problem.
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

// A Taker reads a value from its first token. It returns what it expected, "" if it took the token,
// which is then the whole value.
type Taker interface {
	Take(t json.Token) (expected string)
}

// Rest as the type of a field named "*" makes an object take other fields than its own.
type Rest struct{}

// A decoder reads JSON into structs, token by token. It says which value is wrong and stops at the
// first error.
type decoder struct {
	file string
	json *json.Decoder
}

func (d *decoder) fail(at, found, expected string) error {
	if at == "" {
		at = "file"
	}
	return &InputError{d.file, at, found, expected}
}

// Decode reads JSON into the struct that v points to: every field once, unless its tag has
// omitempty or read:"optional", and nothing else. The tag words says what a text with a type of its
// own may be; "null" lets a pointer be null. Errors are of type [*InputError].
func Decode(file string, data []byte, v any) error {
	d := &decoder{file, json.NewDecoder(bytes.NewReader(data))}
	d.json.UseNumber()
	if err := d.value("", reflect.ValueOf(v).Elem(), ""); err != nil {
		return err
	}
	if _, err := d.json.Token(); err != io.EOF {
		return d.fail("", fmt.Sprintf("more after the end of the object, at byte %d", d.json.InputOffset()), "one JSON object")
	}
	return nil
}

func (d *decoder) token(at string) (json.Token, error) {
	t, err := d.json.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, d.fail(at, fmt.Sprintf("%v at byte %d", err, d.json.InputOffset()), "JSON")
	}
	return t, nil
}

// value reads the next value into v. words are those of a text with a type of its own.
func (d *decoder) value(at string, v reflect.Value, words string) error {
	t, err := d.token(at)
	if err != nil {
		return err
	}
	if v.Kind() == reflect.Pointer {
		if t == nil && words == "null" {
			v.SetZero()
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	found := describe(t)
	switch x := v.Addr().Interface().(type) {
	case Taker:
		if expected := x.Take(t); expected != "" {
			return d.fail(at, found, expected)
		}
		return nil
	case encoding.TextUnmarshaler:
		if s, ok := t.(string); !ok || x.UnmarshalText([]byte(s)) != nil {
			return d.fail(at, found, words)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		if t != json.Delim('{') {
			return d.fail(at, found, "an object")
		}
		return d.object(at, v)
	case reflect.Slice, reflect.Array:
		if t != json.Delim('[') {
			return d.fail(at, found, "a list")
		}
		n := 0
		for ; d.json.More(); n++ {
			item := fmt.Sprintf("%s[%d]", at, n)
			if v.Kind() == reflect.Slice {
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			} else if n == v.Len() {
				return d.fail(at, "a longer list", fmt.Sprintf("a list of %d", n))
			}
			if err := d.value(item, v.Index(n), words); err != nil {
				return err
			}
		}
		if v.Kind() == reflect.Array && n < v.Len() {
			return d.fail(at, fmt.Sprintf("a list of %d", n), fmt.Sprintf("a list of %d", v.Len()))
		}
		if n == 0 && v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		_, err := d.token(at)
		return err
	case reflect.Map: // of names
		if t != json.Delim('{') {
			return d.fail(at, found, "an object")
		}
		for v.Set(reflect.MakeMap(v.Type())); d.json.More(); {
			key, err := d.token(at)
			if err != nil {
				return err
			}
			name, item := key.(string), reflect.New(v.Type().Elem()).Elem()
			if err := d.value(join(at, fieldName(name)), item, words); err != nil {
				return err
			}
			if v.MapIndex(reflect.ValueOf(name)).IsValid() {
				return d.fail(join(at, fieldName(name)), "the field a second time", "it once")
			}
			v.SetMapIndex(reflect.ValueOf(name), item)
		}
		_, err := d.token(at)
		return err
	case reflect.String:
		s, ok := t.(string)
		if !ok {
			return d.fail(at, found, "a text")
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := t.(bool)
		if !ok {
			return d.fail(at, found, "true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, ok := t.(json.Number)
		if !ok {
			return d.fail(at, found, "a whole number")
		}
		x, err := strconv.ParseInt(n.String(), 10, 64)
		if f, _ := n.Float64(); err != nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			x, err = int64(f), nil // such as 2.0
		}
		if err != nil {
			return d.fail(at, found, "a whole number")
		}
		v.SetInt(x)
	case reflect.Float64:
		n, ok := t.(json.Number)
		if !ok {
			return d.fail(at, found, "a number")
		}
		x, err := strconv.ParseFloat(n.String(), 64)
		if err != nil {
			return d.fail(at, found, "a number")
		}
		v.SetFloat(x)
	default:
		panic("strict: a field of type " + v.Type().String())
	}
	return nil
}

// object reads the fields of a struct behind the opening brace.
func (d *decoder) object(at string, v reflect.Value) error {
	t := v.Type()
	names := make([]string, t.NumField())
	optional := make([]bool, t.NumField())
	open := false
	for i := range names {
		name, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names[i], optional[i] = name, rest == "omitempty" || t.Field(i).Tag.Get("read") == "optional"
		open = open || name == "*"
	}
	if open {
		optional[slices.Index(names, "*")] = true
	}
	seen := make([]bool, len(names))
	for d.json.More() {
		key, err := d.token(at)
		if err != nil {
			return err
		}
		name := key.(string)
		i := slices.Index(names, name)
		switch {
		case open && (i < 0 || name == "*"):
			var skipped json.RawMessage
			if err := d.json.Decode(&skipped); err != nil {
				return d.fail(join(at, fieldName(name)), err.Error(), "JSON")
			}
			continue
		case i < 0:
			return d.fail(join(at, fieldName(name)), "an unknown field", "one of "+strings.Join(names, ", "))
		case seen[i]:
			return d.fail(join(at, name), "the field a second time", "it once")
		}
		seen[i] = true
		if err := d.value(join(at, name), v.Field(i), t.Field(i).Tag.Get("words")); err != nil {
			return err
		}
	}
	for i, name := range names {
		if !seen[i] && !optional[i] {
			return d.fail(join(at, name), "nothing", "the field")
		}
	}
	_, err := d.token(at)
	return err
}

// fieldName is a name that may be anything.
func fieldName(s string) string {
	if q := Quote(s); q != `"`+s+`"` || strings.ContainsAny(s, " .[]") {
		return q
	}
	return s
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
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
