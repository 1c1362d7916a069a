package convert

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/internal/strict"
)

// A Result is an accelerator of another tool as a file of ours.
type Result struct {
	Tool string   `json:"tool"`
	Name string   `json:"name"`
	Lost []string `json:"lost"` // fields without a counterpart, by their names there
	YAML string   `json:"yaml"`
}

// File converts the file of another tool. Files that it names are looked for beside it and in its folder cores.
func File(name string) (*Result, error) {
	read := func(p string) ([]byte, error) { return safefile.ReadUpTo(p, hardware.MaxFileBytes) }
	data, err := read(name)
	if err != nil {
		return nil, err
	}
	return Convert(name, data, func(core string) ([]byte, error) {
		data, err := read(filepath.Join(filepath.Dir(name), "cores", path.Base(core)))
		if err != nil {
			return read(filepath.Join(filepath.Dir(name), path.Base(core)))
		}
		return data, nil
	})
}

// Convert converts a text; read gives those of the cores that a system names.
func Convert(name string, data []byte, read func(core string) ([]byte, error)) (r *Result, err error) {
	c := &converter{read: read}
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(*strict.InputError)
			if !ok {
				panic(p)
			}
			r, err = nil, e
		}
	}()
	root := parse(name, data)
	out := &accelerator{}
	tool := ""
	switch {
	case root.has("arch"):
		tool = "AccelForge"
		c.accelforge(root, out)
	case root.has("cores"):
		tool = "Stream"
		c.stream(root, out)
	case root.has("operational_array"):
		tool = "ZigZag"
		c.zigzag(root, out)
	default:
		root.fail("a mapping without these keys", "operational_array (ZigZag), cores (Stream) or arch (AccelForge)")
	}
	text := out.yaml(tool, filepath.Base(name), c.lost)
	if _, err := hardware.Parse(name, []byte(text)); err != nil {
		return nil, fmt.Errorf("%s: what it describes is beyond our files: %w", name, err)
	}
	return &Result{Tool: tool, Name: out.name, Lost: c.lost, YAML: text}, nil
}

type converter struct {
	read func(string) ([]byte, error)
	lost []string
}

func (c *converter) lose(n node, why string) {
	if line := strings.TrimPrefix(n.path+": "+why, "file: "); !slices.Contains(c.lost, line) {
		c.lost = append(c.lost, line)
	}
}

// A node is a value with the place where it stands. Methods that find something else panic with an InputError,
// which Convert returns.
type node struct {
	file, path string
	*yaml.Node
}

func parse(file string, data []byte) node {
	root := node{file: file, path: "file", Node: &yaml.Node{Line: 1}}
	if len(data) > hardware.MaxFileBytes {
		root.fail("more than 1MiB", "a description of an accelerator")
	}
	text := root.defaults(string(data))
	if len(text) > 2*hardware.MaxFileBytes {
		root.fail("variables that make more than 2MiB", "a description of an accelerator")
	}
	if strings.Count(text, "[")+strings.Count(text, "{") > 10_000 {
		root.fail("more than 10000 brackets", "a description of an accelerator")
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		root.fail(strings.ReplaceAll(err.Error(), "\n", " "), "YAML")
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		root.fail("no mapping", "a description of an accelerator")
	}
	root.Node = doc.Content[0]
	return root
}

var (
	setDefault = regexp.MustCompile(`\{%-?\s*set\s+(\w+)\s*=\s*(\w+)\s*\|\s*default\("?([^")]*)"?\)\s*-?%\}`)
	useDefault = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
)

// defaults puts in place of jinja's variables what they are if nobody sets them.
func (n node) defaults(text string) string {
	value := map[string]string{}
	for _, m := range setDefault.FindAllStringSubmatch(text, -1) {
		if m[1] == m[2] {
			value[m[1]] = m[3]
		}
	}
	text = setDefault.ReplaceAllString(text, "")
	text = useDefault.ReplaceAllStringFunc(text, func(s string) string {
		if v, ok := value[useDefault.FindStringSubmatch(s)[1]]; ok {
			return v
		}
		return s
	})
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "{%") || strings.Contains(line, "{{") {
			n.Node = &yaml.Node{Line: i + 1}
			n.fail("a template", "a number, or a variable with a default")
		}
	}
	return text
}

func (n node) fail(found, expected string) {
	panic(&strict.InputError{File: fmt.Sprintf("%s:%d", n.file, n.Line), Field: n.path, Found: found, Expected: expected})
}

func (n node) find(key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 { // the last counts, as in Python
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func (n node) has(key string) bool { return n.find(key) != nil }

func (n node) at(key string) node {
	v := n.find(key)
	p := strings.TrimPrefix(n.path+"."+key, "file.")
	if v == nil {
		node{n.file, p, n.Node}.fail("nothing", "a value")
	}
	if v.Kind == yaml.AliasNode {
		node{n.file, p, v}.fail("an alias", "the value itself")
	}
	return node{n.file, p, v}
}

// keys returns the keys of a mapping, which must be among known; nil: any.
func (n node) keys(known ...string) []string {
	if n.Kind != yaml.MappingNode {
		n.fail("no mapping", "a mapping")
	}
	var list []string
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			n.fail("a key that is no word", "a word")
		}
		if known != nil && !slices.Contains(known, k.Value) {
			node{n.file, strings.TrimPrefix(n.path+"."+k.Value, "file."), k}.fail("a field without a counterpart here",
				"one of "+strings.Join(known, ", "))
		}
		if !slices.Contains(list, k.Value) {
			list = append(list, k.Value)
		}
	}
	return list
}

func (n node) items() []node {
	if n.Kind != yaml.SequenceNode {
		n.fail("no list", "a list")
	}
	var list []node
	for i, v := range n.Content {
		if v.Kind == yaml.AliasNode {
			n.fail("an alias", "the value itself")
		}
		list = append(list, node{n.file, fmt.Sprintf("%s[%d]", n.path, i), v})
	}
	return list
}

func (n node) words() []string {
	var list []string
	for _, v := range n.items() {
		list = append(list, v.Value)
	}
	return list
}

// text is the value of a field, "" if it is not there.
func (n node) text(key string) string {
	if v := n.find(key); v != nil {
		return v.Value
	}
	return ""
}

// number is a number, or arithmetic on numbers.
func (n node) number() float64 {
	if n.Kind != yaml.ScalarNode {
		n.fail("no number", "a number")
	}
	text := strings.NewReplacer("_", "", "\n", " ").Replace(n.Value)
	x, err := parser.ParseExpr(text)
	v, ok := 0.0, err == nil && !strings.Contains(text, "//") && !strings.Contains(text, "/*") // comments of Go
	if ok {
		v, ok = arithmetic(x)
	}
	if !ok || math.IsNaN(v) || v < 0 {
		n.fail(strconv.Quote(n.Value), "a number of zero or more, or arithmetic on numbers")
	}
	return v
}

var plainNumber = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// arithmetic is the value of an expression.
func arithmetic(x ast.Expr) (v float64, ok bool) {
	switch x := x.(type) {
	case *ast.Ident:
		return math.Inf(1), x.Name == "inf"
	case *ast.BasicLit:
		v, err := strconv.ParseFloat(x.Value, 64)
		return v, err == nil && plainNumber.MatchString(x.Value)
	case *ast.ParenExpr:
		return arithmetic(x.X)
	case *ast.BinaryExpr:
		a, left := arithmetic(x.X)
		b, right := arithmetic(x.Y)
		ok = left && right
		switch x.Op {
		case token.ADD:
			return a + b, ok
		case token.SUB:
			return a - b, ok
		case token.MUL:
			return a * b, ok
		case token.QUO:
			return a / b, ok
		}
	}
	return 0, false
}
