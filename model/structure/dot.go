package structure

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/dsasched/dsasched/model"
)

// WriteDOT writes the graph in the language of Graphviz: a node for each operator of the layers, one for each input
// and output of the network, an edge for each reading of an activation, with its shape and size, and a cluster for
// each stage and in it for each block. Constants are left out; there is one beside nearly every operator.
func (n *Network) WriteDOT(w io.Writer) error {
	var b bytes.Buffer
	g := n.Graph
	fmt.Fprintf(&b, "digraph %s {\n", quote(g.Name))
	b.WriteString("  graph [fontname=\"Helvetica\"];\n")
	b.WriteString("  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\"];\n")
	b.WriteString("  edge [fontname=\"Helvetica\", fontsize=9];\n")
	for _, t := range g.Inputs {
		fmt.Fprintf(&b, "  in%d [shape=ellipse, label=%s];\n", t, quote(g.Tensor(t).Name, describe(g.Tensor(t))))
	}
	seen := make([]bool, len(g.Ops))
	for i, s := range n.Stages {
		fmt.Fprintf(&b, "  subgraph cluster_s%d {\n    label=%s;\n    style=filled; color=\"#e8e8e8\";\n", i, quote(s.Name))
		for j := s.First; j < s.End; j++ {
			block := n.Blocks[j]
			fmt.Fprintf(&b, "    subgraph cluster_b%d {\n      label=%s;\n      style=filled; color=\"#cfe2f0\";\n",
				j, quote(fmt.Sprintf("block %d, type %s", j, n.Types[block.Type].Name)))
			for _, l := range n.Layers[block.First:block.End] {
				for _, id := range l.Ops {
					op := g.Op(id)
					seen[id] = true
					lines := []string{string(op.Kind), op.Name}
					for _, o := range op.Outputs {
						lines = append(lines, g.Tensor(o).Shape.String())
					}
					fmt.Fprintf(&b, "      op%d [label=%s];\n", id, quote(lines...))
				}
			}
			b.WriteString("    }\n")
		}
		b.WriteString("  }\n")
	}
	// An operator that reads a tensor twice has two edges.
	for _, op := range g.Ops {
		if !seen[op.ID] {
			continue
		}
		for _, id := range op.Inputs {
			switch t := g.Tensor(id); {
			case t.Role == model.Input:
				fmt.Fprintf(&b, "  in%d -> op%d;\n", id, op.ID)
			case t.Producer != model.NoOp && seen[t.Producer]:
				fmt.Fprintf(&b, "  op%d -> op%d [label=%s];\n", t.Producer, op.ID, quote(describe(t)))
			}
		}
	}
	for i, id := range g.Outputs {
		t := g.Tensor(id)
		fmt.Fprintf(&b, "  out%d [shape=ellipse, label=%s];\n", i, quote(t.Name, describe(t)))
		switch {
		case t.Producer != model.NoOp && seen[t.Producer]:
			fmt.Fprintf(&b, "  op%d -> out%d;\n", t.Producer, i)
		case t.Role == model.Input:
			fmt.Fprintf(&b, "  in%d -> out%d;\n", id, i)
		}
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func describe(t *model.Tensor) string {
	return fmt.Sprintf("%v %v, %d B", t.Shape, t.DType, t.Bytes())
}

// quote writes lines as a string of DOT. Graphviz takes backslashes and HTML
// entities in labels as its own; names come from files and may have either.
func quote(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`)
	for i, l := range lines {
		l = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return '?'
		}, l)
		lines[i] = escape.Replace(l)
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
