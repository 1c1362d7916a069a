package partition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

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

// LoadDivision reads a division of p from a file.
func LoadDivision(path string, p *Problem) (*Division, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, err
	}
	return ReadDivision(path, data, p)
}

// Read reads and validates a problem in the format of the published data set of
// Tarnawski et al. The name of the file is for errors, which are of type
// [*InputError]. Missing and repeated fields are errors, and so are unknown ones
// but in nodes and edges, where the format allows remarks.
//
// The files do not say for which of the data set's two objectives they are
// made; one that has the field "objective" with another value than "throughput"
// is refused.
func Read(file string, data []byte) (p *Problem, err error) {
	r := &reader{file: file}
	defer r.recover(&err)
	p = &Problem{Name: file}
	top := r.object(data, "file")
	if _, ok := top["nodes"]; !ok {
		if _, ok := top["fpgas"]; ok {
			r.fail("file", "a division (fpgas, cpus)", "a graph with nodes and edges")
		}
	}
	if raw, ok := top["objective"]; ok {
		if o := r.text(raw, "objective"); o != "throughput" {
			r.fail("objective", fmt.Sprintf("%q", o), `"throughput", the largest load of a device`)
		}
	}
	if raw, ok := top["name"]; ok {
		r.text(raw, "name")
	}
	r.known(top, "file", "maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes", "edges", "objective", "name")
	p.MemoryBytes = r.number(r.need(top, "maxSizePerFPGA", ""), "maxSizePerFPGA")
	p.Accelerators = r.whole(r.need(top, "maxFPGAs", ""), "maxFPGAs")
	p.CPUs = r.whole(r.need(top, "maxCPUs", ""), "maxCPUs")
	index := map[int]int{}
	for i, raw := range r.list(r.need(top, "nodes", ""), "nodes") {
		at := fmt.Sprintf("nodes[%d]: ", i)
		o := r.object(raw, strings.TrimSuffix(at, ": "))
		v := Node{ID: r.whole(r.need(o, "id", at), at+"id"), Color: NoColor}
		at = fmt.Sprintf("node %d: ", v.ID)
		if _, twice := index[v.ID]; twice {
			r.fail(at+"id", "it twice", "an id of its own")
		}
		index[v.ID] = i
		if raw, ok := o["name"]; ok {
			v.Name = r.text(raw, at+"name")
		}
		if _, ok := o["containedSubnodes"]; ok {
			r.fail(at+"containedSubnodes", "a contracted node", "a graph that was not contracted")
		}
		v.Supported = r.flag(r.need(o, "supportedOnFpga", at), at+"supportedOnFpga")
		v.CPULatency = r.number(r.need(o, "cpuLatency", at), at+"cpuLatency")
		v.AcceleratorLatency = r.number(r.need(o, "fpgaLatency", at), at+"fpgaLatency")
		v.Backward = r.flag(r.need(o, "isBackwardNode", at), at+"isBackwardNode")
		if raw, ok := o["colorClass"]; ok {
			v.Color = r.whole(raw, at+"colorClass")
		}
		if raw, ok := o["size"]; ok {
			v.SizeBytes = r.number(raw, at+"size")
		}
		p.Nodes = append(p.Nodes, v)
	}
	for i, raw := range r.list(r.need(top, "edges", ""), "edges") {
		at := fmt.Sprintf("edges[%d]: ", i)
		o := r.object(raw, strings.TrimSuffix(at, ": "))
		end := func(field string) int {
			id := r.whole(r.need(o, field, at), at+field)
			j, ok := index[id]
			if !ok {
				r.fail(at+field, fmt.Sprint(id), "the id of a node")
			}
			return j
		}
		p.Edges = append(p.Edges, Edge{end("sourceId"), end("destId"), r.number(r.need(o, "cost", at), at+"cost")})
	}
	return p, p.Validate()
}

// ReadDivision reads a division of p: {"fpgas": [{"nodes": [ids]}], "cpus": ...}
// as the published program writes it, or a [Result]. It does not check it.
func ReadDivision(file string, data []byte, p *Problem) (d *Division, err error) {
	r := &reader{file: file}
	defer r.recover(&err)
	top := r.object(data, "file")
	ids := func(raw json.RawMessage, at string) []int {
		set := []int{}
		for i, raw := range r.list(raw, at) {
			set = append(set, r.whole(raw, fmt.Sprintf("%s[%d]", at, i)))
		}
		return set
	}
	d = &Division{}
	if raw, ok := top["devices"]; ok {
		for i, raw := range r.list(raw, "devices") {
			at := fmt.Sprintf("devices[%d]", i)
			switch set := ids(raw, at); {
			case i < p.Accelerators:
				d.Accelerators = append(d.Accelerators, set)
			case i < p.Accelerators+p.CPUs:
				d.CPUs = append(d.CPUs, set)
			default:
				r.fail(at, "a device more", fmt.Sprintf("%d accelerators and %d CPUs", p.Accelerators, p.CPUs))
			}
		}
		return d, nil
	}
	for _, kind := range []struct {
		name string
		sets *[][]int
	}{{"fpgas", &d.Accelerators}, {"cpus", &d.CPUs}} {
		for i, raw := range r.list(r.need(top, kind.name, ""), kind.name) {
			at := fmt.Sprintf("%s[%d]", kind.name, i)
			*kind.sets = append(*kind.sets, ids(r.need(r.object(raw, at), "nodes", at+": "), at+": nodes"))
		}
	}
	return d, nil
}

// A reader turns the first thing that is wrong into a panic with an error.
type reader struct{ file string }

func (r *reader) recover(err *error) {
	switch e := recover().(type) {
	case nil:
	case *InputError:
		*err = e
	default:
		panic(e)
	}
}

func (r *reader) fail(where, found, want string) {
	panic(&InputError{r.file, where, found, want})
}

// object reads one level, so that a repeated field is seen.
func (r *reader) object(data []byte, at string) map[string]json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(data))
	token, err := dec.Token()
	if token != json.Delim('{') {
		r.failAt(at, data, err, "an object")
	}
	o := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if !ok {
			r.failAt(at, data, err, "a field")
		}
		if _, twice := o[name]; twice {
			r.fail(at, fmt.Sprintf("field %q twice", name), "each field once")
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			r.failAt(at, data, err, "JSON")
		}
		o[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		r.failAt(at, data, err, "the end of the object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		r.fail(at, "more behind the object", "one object")
	}
	return o
}

func (r *reader) failAt(at string, data []byte, err error, want string) {
	found := strings.TrimSpace(string(data[:min(len(data), 30)]))
	if err != nil && !errors.Is(err, io.EOF) {
		found = err.Error()
	} else if found == "" {
		found = "nothing"
	}
	r.fail(at, found, want)
}

func (r *reader) known(o map[string]json.RawMessage, at string, names ...string) {
	unknown := ""
fields:
	for name := range o {
		for _, k := range names {
			if name == k {
				continue fields
			}
		}
		if unknown == "" || name < unknown {
			unknown = name
		}
	}
	if unknown != "" {
		r.fail(at, fmt.Sprintf("field %q", unknown), strings.Join(names[:5], ", "))
	}
}

func (r *reader) need(o map[string]json.RawMessage, name, at string) json.RawMessage {
	raw, ok := o[name]
	if !ok {
		r.fail(at+name, "nothing", "the field")
	}
	return raw
}

func (r *reader) list(raw json.RawMessage, at string) []json.RawMessage {
	var l []json.RawMessage
	if err := json.Unmarshal(raw, &l); err != nil || l == nil {
		r.failAt(at, raw, nil, "a list")
	}
	return l
}

func (r *reader) text(raw json.RawMessage, at string) string {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		r.failAt(at, raw, nil, "a text")
	}
	return *s
}

func (r *reader) number(raw json.RawMessage, at string) float64 {
	var x *float64
	if err := json.Unmarshal(raw, &x); err != nil || x == nil || !usable(*x) {
		r.failAt(at, raw, nil, "a number from 0 to 1e18")
	}
	return *x
}

func (r *reader) whole(raw json.RawMessage, at string) int {
	var x *float64
	if err := json.Unmarshal(raw, &x); err != nil || x == nil || *x != math.Trunc(*x) || math.Abs(*x) > 1<<52 {
		r.failAt(at, raw, nil, "a whole number")
	}
	return int(*x)
}

func (r *reader) flag(raw json.RawMessage, at string) bool {
	switch s := strings.TrimSpace(string(raw)); s {
	case "0", "false":
		return false
	case "1", "true":
		return true
	}
	r.failAt(at, raw, nil, "true, false, 1 or 0")
	return false
}
