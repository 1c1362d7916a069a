package ordering

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/regular"
)

// Load reads a problem from a file.
func Load(path string) (*Problem, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, err
	}
	return Read(path, data)
}

// LoadResult reads a result from a file.
func LoadResult(path string) (*Result, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, err
	}
	return ReadResult(path, data)
}

// Read reads and validates a problem. The name of the file is for errors, which
// are of type [*InputError]. Unknown, missing and repeated fields are errors.
func Read(file string, data []byte) (*Problem, error) {
	r := &reader{file: file}
	p := &Problem{}
	r.object(r.parse(data), "", fields{
		"name":                  func(v any, at string) { p.Name = r.text(v, at) },
		"capacity_bytes":        func(v any, at string) { p.CapacityBytes = r.whole(v, at) },
		"store_cost_per_byte":   func(v any, at string) { p.StoreCostPerByte = r.number(v, at) },
		"load_cost_per_byte":    func(v any, at string) { p.LoadCostPerByte = r.number(v, at) },
		"known_optimum_traffic": func(v any, at string) { known := r.number(v, at); p.KnownTraffic = &known },
		"subgraphs": func(v any, at string) {
			for i, v := range r.list(v, at) {
				var sg Subgraph
				r.object(v, fmt.Sprintf("%s[%d]", at, i), fields{
					"name":            func(v any, at string) { sg.Name = r.text(v, at) },
					"instances":       func(v any, at string) { sg.Instances = r.small(v, at) },
					"output_bytes":    func(v any, at string) { sg.OutputBytes = r.whole(v, at) },
					"workspace_bytes": func(v any, at string) { sg.WorkspaceBytes = r.whole(v, at) },
				}, "name", "instances", "output_bytes", "workspace_bytes")
				p.Subgraphs = append(p.Subgraphs, sg)
			}
		},
		"arcs": func(v any, at string) {
			for i, v := range r.list(v, at) {
				var a Arc
				r.object(v, fmt.Sprintf("%s[%d]", at, i), fields{
					"from": func(v any, at string) { a.From = r.small(v, at) },
					"to":   func(v any, at string) { a.To = r.small(v, at) },
					"reads": func(v any, at string) {
						for q, v := range r.list(v, at) {
							a.Reads = append(a.Reads, r.pair(v, fmt.Sprintf("%s[%d]", at, q)))
						}
					},
				}, "from", "to", "reads")
				p.Arcs = append(p.Arcs, a)
			}
		},
	}, "name", "capacity_bytes", "store_cost_per_byte", "load_cost_per_byte", "subgraphs", "arcs")
	if r.err != nil {
		return nil, r.err
	}
	if err := p.Validate(); err != nil {
		var e *InputError
		if errors.As(err, &e) {
			e.File = file
		}
		return nil, err
	}
	return p, nil
}

// ReadResult reads a result. Whether it fits a problem is for [Check] to say.
func ReadResult(file string, data []byte) (*Result, error) {
	r := &reader{file: file}
	res := &Result{}
	e := &InfeasibleError{}
	root := r.parse(data)
	refs := func(v any, at string) []Ref {
		var list []Ref
		for i, v := range r.list(v, at) {
			list = append(list, r.pair(v, fmt.Sprintf("%s[%d]", at, i)))
		}
		return list
	}
	needed := []string{"objective", "status", "steps"}
	if m, ok := root.(map[string]any); ok {
		switch m["status"] {
		case milp.Optimal.String(), milp.Feasible.String():
			needed = append(needed, "cost", "bound", "peak_bytes")
		case milp.Infeasible.String():
			needed = append(needed, "instance", "tensors", "missing_bytes")
			res.Infeasible = e
		}
	}
	r.object(root, "", fields{
		"method":        func(v any, at string) { res.Method = r.text(v, at) },
		"objective":     func(v any, at string) { res.Objective = Objective(r.text(v, at)) },
		"status":        func(v any, at string) { r.word(v, at, &res.Status, "optimal, feasible, infeasible or limit") },
		"stop":          func(v any, at string) { r.word(v, at, &res.Stop, "a reason to stop, such as \"time limit\"") },
		"cost":          func(v any, at string) { res.Cost = r.number(v, at) },
		"bound":         func(v any, at string) { res.Bound = r.number(v, at) },
		"peak_bytes":    func(v any, at string) { res.PeakBytes = r.whole(v, at) },
		"seconds":       func(v any, at string) { res.Seconds = r.number(v, at) },
		"instance":      func(v any, at string) { e.Instance = r.pair(v, at) },
		"tensors":       func(v any, at string) { e.Tensors = refs(v, at) },
		"missing_bytes": func(v any, at string) { e.MissingBytes = r.whole(v, at) },
		"steps": func(v any, at string) {
			for i, v := range r.list(v, at) {
				var s Step
				r.object(v, fmt.Sprintf("%s[%d]", at, i), fields{
					"store": func(v any, at string) { s.Store = refs(v, at) },
					"load":  func(v any, at string) { s.Load = refs(v, at) },
					"run":   func(v any, at string) { s.Run = r.pair(v, at) },
				}, "store", "load", "run")
				res.Steps = append(res.Steps, s)
			}
		},
	}, needed...)
	if r.err != nil {
		return nil, r.err
	}
	return res, nil
}

// fields says what to do with each field of an object.
type fields map[string]func(v any, at string)

// A reader walks parsed JSON and keeps the first error.
type reader struct {
	file string
	err  error
}

func (r *reader) fail(at, found, expected string) {
	if r.err == nil {
		if at == "" {
			at = "file"
		}
		r.err = &InputError{File: r.file, Field: at, Found: found, Expected: expected}
	}
}

func (r *reader) parse(data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := r.value(d, "", 0)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			r.fail("", fmt.Sprintf("more after the end of the object, at byte %d", d.InputOffset()), "one JSON object")
		}
		return v
	}
	r.fail("", fmt.Sprintf("%v at byte %d", err, d.InputOffset()), "one JSON object")
	return nil
}

// maxDepth is deeper than either format.
const maxDepth = 10

// value reads one value; objects become maps, with the error of a repeated field
// kept.
func (r *reader) value(d *json.Decoder, at string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels of nesting", maxDepth)
	}
	t, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		m := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			if _, dup := m[name]; dup {
				r.fail(join(at, name), "the field a second time", "it once")
			}
			if m[name], err = r.value(d, join(at, name), depth+1); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return m, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := r.value(d, fmt.Sprintf("%s[%d]", at, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// describe says what a value is, in the words of an error.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

func (r *reader) object(v any, at string, known fields, needed ...string) {
	if r.err != nil {
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		r.fail(at, describe(v), "an object")
		return
	}
	for _, name := range needed {
		if _, ok := m[name]; !ok {
			r.fail(join(at, name), "nothing", "the field")
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		read, ok := known[name]
		if !ok {
			r.fail(join(at, name), "an unknown field", "one of "+fmt.Sprint(slices.Sorted(maps.Keys(known))))
			return
		}
		if read(m[name], join(at, name)); r.err != nil {
			return
		}
	}
}

func (r *reader) list(v any, at string) []any {
	l, ok := v.([]any)
	if !ok {
		r.fail(at, describe(v), "a list")
	}
	return l
}

func (r *reader) text(v any, at string) string {
	s, ok := v.(string)
	if !ok {
		r.fail(at, describe(v), "a text")
	}
	return s
}

// word reads a text that has its own type.
func (r *reader) word(v any, at string, to encoding.TextUnmarshaler, expected string) {
	if err := to.UnmarshalText([]byte(r.text(v, at))); err != nil {
		r.fail(at, describe(v), expected)
	}
}

func (r *reader) number(v any, at string) float64 {
	n, ok := v.(json.Number)
	if !ok {
		r.fail(at, describe(v), "a number")
		return 0
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		r.fail(at, describe(v), "a number")
	}
	return f
}

func (r *reader) whole(v any, at string) int64 {
	n, ok := v.(json.Number)
	if ok {
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	r.fail(at, describe(v), "a whole number")
	return 0
}

func (r *reader) small(v any, at string) int {
	n := r.whole(v, at)
	if n < math.MinInt32 || n > math.MaxInt32 {
		r.fail(at, describe(v), "a whole number of 32 bits")
		return 0
	}
	return int(n)
}

func (r *reader) pair(v any, at string) [2]int {
	l, ok := v.([]any)
	if !ok || len(l) != 2 {
		r.fail(at, describe(v), "a list of 2 whole numbers")
		return [2]int{}
	}
	return [2]int{r.small(l[0], at+"[0]"), r.small(l[1], at+"[1]")}
}
