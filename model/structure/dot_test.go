package structure

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// dotFile is what parseDOT finds.
type dotFile struct {
	nodes    map[string]string // name -> label
	edges    [][2]string
	clusters []string
}

var dotToken = regexp.MustCompile(`^(?:\s+|"(?:[^"\\]|\\.)*"|->|[{}\[\]=;,]|[A-Za-z_][A-Za-z_0-9]*|[0-9]+)`)

// parseDOT reads the part of Graphviz's language that WriteDOT uses.
func parseDOT(text string) (*dotFile, error) {
	var tokens []string
	for rest := text; rest != ""; {
		tok := dotToken.FindString(rest)
		if tok == "" {
			return nil, fmt.Errorf("no token at %.40q", rest)
		}
		rest = rest[len(tok):]
		if strings.TrimSpace(tok) != "" {
			tokens = append(tokens, tok)
		}
	}
	d := &dotFile{nodes: map[string]string{}}
	at := 0
	next := func() string {
		if at == len(tokens) {
			return ""
		}
		at++
		return tokens[at-1]
	}
	peek := func() string {
		if at == len(tokens) {
			return ""
		}
		return tokens[at]
	}
	isName := func(s string) bool { return regexp.MustCompile(`^([A-Za-z_]\w*|".*"|\d+)$`).MatchString(s) }
	attributes := func() (map[string]string, error) {
		m := map[string]string{}
		if peek() != "[" {
			return m, nil
		}
		for next(); peek() != "]"; {
			name, eq, value := next(), next(), next()
			if !isName(name) || eq != "=" || !isName(value) {
				return nil, fmt.Errorf("attribute %q %q %q", name, eq, value)
			}
			m[name] = value
			if peek() == "," {
				next()
			}
		}
		next()
		return m, nil
	}
	var list func() error
	list = func() error {
		if t := next(); t != "{" {
			return fmt.Errorf("found %q, expected {", t)
		}
		for peek() != "}" {
			name := next()
			switch {
			case name == "subgraph":
				d.clusters = append(d.clusters, next())
				if err := list(); err != nil {
					return err
				}
				continue
			case !isName(name):
				return fmt.Errorf("found %q, expected a statement", name)
			case peek() == "=":
				next()
				if !isName(next()) {
					return fmt.Errorf("%s has no value", name)
				}
			case peek() == "->":
				next()
				d.edges = append(d.edges, [2]string{name, next()})
				if _, err := attributes(); err != nil {
					return err
				}
			default:
				m, err := attributes()
				if err != nil {
					return err
				}
				if name == "graph" || name == "node" || name == "edge" {
					break
				}
				if _, dup := d.nodes[name]; dup {
					return fmt.Errorf("node %s stands twice", name)
				}
				d.nodes[name] = m["label"]
			}
			if t := next(); t != ";" {
				return fmt.Errorf("found %q behind %s, expected ;", t, name)
			}
		}
		next()
		return nil
	}
	if next() != "digraph" || !isName(next()) {
		return nil, errors.New("no digraph")
	}
	if err := list(); err != nil {
		return nil, err
	}
	if at != len(tokens) {
		return nil, fmt.Errorf("more behind the end: %q", tokens[at:])
	}
	for _, e := range d.edges {
		for _, n := range e {
			if _, ok := d.nodes[n]; !ok {
				return nil, fmt.Errorf("edge of unknown node %q", n)
			}
		}
	}
	return d, nil
}

func writeDOT(t *testing.T, n *Network) string {
	t.Helper()
	var b strings.Builder
	if err := n.WriteDOT(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDOT(t *testing.T) {
	for _, name := range []string{"resnet50", "bert-128"} {
		n := fromZoo(t, name, 1)
		text := writeDOT(t, n)
		if again := writeDOT(t, fromZoo(t, name, 1)); again != text {
			t.Errorf("%s: other bytes the second time", name)
		}
		d, err := parseDOT(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		g := n.Graph
		edges := len(g.Outputs)
		for _, op := range g.Ops {
			label := d.nodes[fmt.Sprint("op", op.ID)]
			want := fmt.Sprintf(`"%s\n%s\n%v"`, op.Kind, op.Name, g.Tensor(op.Outputs[0]).Shape)
			if label != want {
				t.Errorf("%s: the label of %s is %s, want %s", name, op.Name, label, want)
			}
			for _, in := range op.Inputs {
				if g.Tensor(in).Role != model.Constant {
					edges++
				}
			}
		}
		if want := len(g.Ops) + len(g.Inputs) + len(g.Outputs); len(d.nodes) != want {
			t.Errorf("%s: %d nodes, want %d", name, len(d.nodes), want)
		}
		if len(d.edges) != edges {
			t.Errorf("%s: %d edges, want %d", name, len(d.edges), edges)
		}
		if want := len(n.Stages) + len(n.Blocks); len(d.clusters) != want {
			t.Errorf("%s: %d clusters, want %d", name, len(d.clusters), want)
		}
	}
}

func TestDOTEscapes(t *testing.T) {
	name := "a\"b\\n]; }\x00\n&lt;é\xff"
	b := model.NewBuilder(name)
	x := b.Input(name, model.F16, 4)
	b.Output(b.Op("Relu", name+"op", model.Attr{}, x), x)
	text := writeDOT(t, inOrder(built(t, b)))
	d, err := parseDOT(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got, want := d.nodes["op0"], `"Relu\na\"b\\n]; }??&amp;lt;é`+"\uFFFD"+`op\n[4]"`; got != want {
		t.Errorf("label %s, want %s", got, want)
	}
	if len(d.nodes) != 4 || len(d.edges) != 3 {
		t.Errorf("%d nodes and %d edges, want 4 and 3, in\n%s", len(d.nodes), len(d.edges), text)
	}
}

// Graphviz itself must be able to read it.
func TestDOTInGraphviz(t *testing.T) {
	path, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("skipped: dot is not on this machine")
	}
	cmd := exec.Command(path, "-Tcanon")
	cmd.Stdin = strings.NewReader(writeDOT(t, fromZoo(t, "resnet50", 1)))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "op122") {
		t.Errorf("%v: %.300s", err, out)
	}
}

// The parser is no witness if it takes everything.
func TestParserRefuses(t *testing.T) {
	for _, text := range []string{
		"", "graph g {}", `digraph "a {}`, `digraph g { a [label="x];}`, `digraph g { a [label="x"] }`,
		`digraph g { a; b; a -> c; }`,
		`digraph g { subgraph s { a; }`, `digraph g { a; } }`, `digraph g { a; a; }`, `digraph g { a [label=]; }`,
	} {
		if _, err := parseDOT(text); err == nil {
			t.Errorf("%q has no error", text)
		}
	}
}
