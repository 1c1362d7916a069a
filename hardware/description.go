package hardware

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dsasched/dsasched/internal/suggest"
)

// A Description is an accelerator as it is written: a tree of fields, of which those with one value can be given
// another. It does not change; With makes another one.
type Description struct {
	file   string
	root   *yaml.Node
	fields []field         // in the order of the file
	set    map[string]bool // paths that no longer have the file's value
}

// A field has one value: path is as in messages, "core_types[0].count".
type field struct {
	path, byName string // byName has names of list items: "core_types.core.count"
	node         *yaml.Node
}

// Describe reads the description of a preset or a file, by the rules of [Load].
func Describe(nameOrPath string) (*Description, error) {
	name, data, err := library.Read(nameOrPath)
	if err != nil {
		return nil, err
	}
	if _, err := Parse(name, data); err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err // Parse has read it
	}
	d := &Description{file: name, root: doc.Content[0], set: map[string]bool{}}
	d.fields = scalars(d.root, "", "")
	return d, nil
}

// scalars lists what has one value below a node, but for what names things.
func scalars(n *yaml.Node, path, byName string) []field {
	join := func(a, b string) string { return strings.TrimPrefix(a+"."+b, ".") }
	var list []field
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i].Value, n.Content[i+1]
			switch k {
			case "name", "description", "kind", "shares_with":
			default:
				list = append(list, scalars(v, join(path, k), join(byName, k))...)
			}
		}
	case yaml.SequenceNode:
		for i, v := range n.Content {
			at, name := fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%s[%d]", byName, i)
			for k := 0; k+1 < len(v.Content); k += 2 {
				if v.Content[k].Value == "name" {
					name = join(byName, v.Content[k+1].Value)
				}
			}
			list = append(list, scalars(v, at, name)...)
		}
	case yaml.ScalarNode:
		list = append(list, field{path, byName, n})
	}
	return list
}

// Fields lists the paths of the fields that With takes, in the order of the file: "gb.size", "core_types[0].count".
func (d *Description) Fields() []string {
	paths := make([]string, len(d.fields))
	for i, f := range d.fields {
		paths[i] = f.path
	}
	return paths
}

// Field finds the path of a field. Names of list items may stand for their numbers (core_types.core.count), l1 and llb
// for lb and gb, lb_bytes for lb.size (gb_bandwidth and the like likewise), and cores for core_types[0].count.
func (d *Description) Field(name string) (string, error) {
	f, err := d.field(name)
	if err != nil {
		return "", err
	}
	return f.path, nil
}

func (d *Description) field(name string) (*field, error) {
	for _, want := range []string{name, longName(name)} {
		for i, f := range d.fields {
			if f.path == want || f.byName == want {
				return &d.fields[i], nil
			}
		}
	}
	near := append(d.Fields(), "cores")
	for _, level := range []string{"l1", "llb", "ddr"} {
		for suffix := range shortEndings {
			near = append(near, level+suffix)
		}
	}
	slices.Sort(near)
	head, _, _ := strings.Cut(longName(name), ".")
	beside := slices.DeleteFunc(d.Fields(), func(f string) bool { return !strings.HasPrefix(f, head+".") })
	if len(beside) == 0 {
		beside = d.Fields()
	}
	return nil, fmt.Errorf("unknown field %s of %s%s", quote(name), d.file,
		suggest.HintOr(name, near, suggest.HintOr(longName(name), d.Fields(), ": there are "+suggest.Some(beside))))
}

// shortEndings are endings of short names, and the keys that they stand for.
var shortEndings = map[string]string{"_bytes": "size", "_size": "size", "_bandwidth": "bandwidth", "_latency": "latency"}

// longName is the path that a short name stands for.
func longName(name string) string {
	if name == "cores" {
		return "core_types[0].count"
	}
	for suffix, key := range shortEndings {
		if level, ok := strings.CutSuffix(name, suffix); ok {
			name = level + "." + key
		}
	}
	head, rest, _ := strings.Cut(name, ".")
	switch head {
	case "l1":
		head = "lb"
	case "llb":
		head = "gb"
	}
	if rest == "" {
		return head
	}
	return head + "." + rest
}

// Value is the value of a field, as the description writes it.
func (d *Description) Value(name string) (string, error) {
	f, err := d.field(name)
	if err != nil {
		return "", err
	}
	return f.node.Value, nil
}

// With is the description with another value in a field: one that a file could have there, or a multiple of the present
// value, "*2" or "x0.5". A multiple of a size is rounded to whole kibibytes, as memories have them. Whether the value
// can be is for Spec to say, since it may depend on other fields.
func (d *Description) With(name, value string) (*Description, error) {
	f, err := d.field(name)
	if err != nil {
		return nil, err
	}
	if factor, ok := multiple(value); ok {
		if value, ok = times(f.node.Value, factor); !ok {
			return nil, &Error{Field: f.path, Problem: problem(quote(f.node.Value), "a number, if it is to be multiplied")}
		}
	}
	c := &Description{file: d.file, root: clone(d.root), set: maps.Clone(d.set)}
	c.fields = scalars(c.root, "", "")
	c.set[f.path] = true
	changed, err := c.field(f.path)
	if err != nil {
		return nil, err
	}
	// A plain scalar, whatever the value looks like: no part of it is YAML.
	// Another value is no longer the estimate that the comment tells of.
	comment := ""
	if value == changed.node.Value {
		comment = changed.node.LineComment
	}
	*changed.node = yaml.Node{Kind: yaml.ScalarNode, Value: value, Line: changed.node.Line, LineComment: comment}
	return c, nil
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child)
	}
	return &c
}

// Spec is the accelerator. The messages about fields that With has changed name no line.
func (d *Description) Spec() (*Spec, error) {
	dec := &decoder{file: d.file, source: make(map[string]source)}
	dec.check = checker{report: dec.reportInvalid}
	spec := dec.spec(d.root)
	dec.check.spec(spec)
	for _, e := range dec.errs {
		if d.set[e.Field] {
			e.File, e.Line = "", 0
		}
	}
	if err := dec.err(); err != nil {
		return nil, err
	}
	return spec, nil
}

// multiple reads "*2" or "x2".
func multiple(text string) (*big.Rat, bool) {
	if text == "" || text[0] != '*' && text[0] != 'x' {
		return nil, false
	}
	number, unit, ok := splitQuantity(text[1:])
	if !ok || unit != "" || len(number) > 40 || strings.ContainsAny(number, "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(number)
}

// times multiplies a number and keeps its unit.
func times(text string, factor *big.Rat) (string, bool) {
	number, unit, ok := splitQuantity(text)
	if !ok || len(number) > 40 || strings.ContainsAny(number, "eE") {
		return "", false
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return "", false
	}
	r.Mul(r, factor)
	if scale, isSize := sizeUnits[unit]; isSize && unit != "" {
		kib, _ := new(big.Rat).Mul(r, new(big.Rat).SetFrac64(scale, 1024)).Float64()
		if kib > float64(maxSize)/1024 {
			return "", false
		}
		return (1024 * Bytes(max(1, math.Round(kib)))).String(), true
	}
	// The product of two decimal numbers ends after as many digits as both have.
	product := r.FloatString(80)
	if strings.Contains(product, ".") {
		product = strings.TrimRight(strings.TrimRight(product, "0"), ".")
	}
	return product + unit, true
}

// Number reads a value that a description may have, in bytes, bytes per second,
// seconds, hertz or without a unit; false: it has none that stands alone.
func Number(text string) (float64, bool) {
	number, unit, ok := splitQuantity(text)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	if s, ok := sizeUnits[unit]; ok {
		return v * float64(s), true
	}
	for _, units := range []map[string]scale{clockUnits, bandwidthUnits, timeUnits, energyUnits, powerUnits} {
		if s, ok := units[unit]; ok {
			return v * s.mul / s.div, true
		}
	}
	if slices.Contains([]string{"cycle", "cycles", "B/cycle"}, unit) {
		return v, true
	}
	return 0, false
}
