package structure

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// widestGraph is the number of groups that stand beside each other.
const widestGraph = 12

// Fills of instances by where their outputs are.
var levelFills = [...]string{schedule.L1: "#9ecae1", schedule.LLB: "#fdd0a2", schedule.DDR: "#f4b6b6"}

// WriteScheduleDOT writes a schedule in the language of Graphviz: a cluster for each group, in it a node for each
// instance with its place in the order, the cores of its output's dimensions and the level of its output, and an edge
// for each instance that another one reads, with the bytes read. The fill shows the level, a thick border that the
// output was to be nearer and is spilled.
func WriteScheduleDOT(w io.Writer, s *schedule.Schedule) error {
	var b bytes.Buffer
	g := s.Graph
	fmt.Fprintf(&b, "digraph %s {\n", quote(g.Name))
	// From left to right, edges keep clear of the clusters' names; a long chain of groups
	// is easier to read from top to bottom.
	layout := "rankdir=LR, ranksep=0.9, nodesep=0.1"
	if len(s.Grouping.Groups) > widestGraph {
		layout = "ranksep=0.5, nodesep=0.15"
	}
	fmt.Fprintf(&b, "  graph [fontname=\"Helvetica\", %s];\n", layout)
	b.WriteString(
		"  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11, margin=\"0.08,0.04\"];\n")
	b.WriteString("  edge [fontname=\"Helvetica\", fontsize=8, color=\"#606060\", arrowsize=0.6];\n")
	at := make([]int, len(s.Instances.Instances))
	for pos, i := range s.Order {
		at[i] = pos
	}
	// Of several outputs, the farthest; and whether one of them is spilled.
	level := make([]schedule.Level, len(at))
	spilled := make([]bool, len(at))
	for i := range s.Values {
		v := &s.Values[i]
		if v.Instance < 0 {
			continue
		}
		for _, o := range s.Grouping.Groups[s.Instances.Instances[v.Instance].Group].Outputs {
			if o == v.Tensor {
				level[v.Instance] = max(level[v.Instance], v.Level)
				spilled[v.Instance] = spilled[v.Instance] || v.Wanted < v.Level
			}
		}
	}
	for k, sg := range s.Grouping.Groups {
		names := []string{fmt.Sprintf("%s: %s", sg.Name, g.Op(sg.Ops[0]).Name)}
		if n := len(sg.Ops); n > 1 {
			names[0] += " .. " + g.Op(sg.Ops[n-1]).Name
		}
		split := "not split"
		if d := sg.SplitDim(); d >= 0 {
			split = fmt.Sprintf("%s split in %d", g.Tensor(sg.Outputs[0]).DimName(d), sg.Factor())
		}
		names = append(names, fmt.Sprintf("%d operators, %s", len(sg.Ops), split))
		fmt.Fprintf(&b,
			"  subgraph cluster_g%d {\n    label=%s; fontsize=12; labeljust=l;\n    style=filled; color=\"#eeeeee\";\n",
			k, quote(names...))
		for q := range int(sg.Factor()) {
			i := s.Instances.First[k] + q
			border := ""
			if spilled[i] {
				border = ", color=\"#d55e00\", penwidth=2.5"
			}
			fmt.Fprintf(&b, "    i%d [label=%s, fillcolor=\"%s\"%s];\n", i,
				quote(fmt.Sprintf("%s/%d", sg.Name, q), fmt.Sprintf("runs as number %d", at[i]),
					cores(g.Tensor(sg.Outputs[0]), s.Bindings[i])+", "+level[i].String()),
				levelFills[level[i]], border)
		}
		b.WriteString("  }\n")
	}
	for i := range s.Instances.Instances {
		bytes := map[int]int64{}
		var from []int
		for _, d := range s.Instances.Instances[i].Deps {
			if _, ok := bytes[d.From]; !ok {
				from = append(from, d.From)
			}
			bytes[d.From] += d.Bytes
		}
		for _, f := range from {
			fmt.Fprintf(&b, "  i%d -> i%d [label=%s];\n", f, i, quote(kib(bytes[f])))
		}
	}
	b.WriteString("  subgraph cluster_legend {\n    label=\"output in\"; fontsize=11; color=\"#bbbbbb\";\n")
	for l, fill := range levelFills {
		fmt.Fprintf(&b, "    legend%d [label=\"%s\", fillcolor=\"%s\"];\n", l, schedule.Level(l).Title(), fill)
	}
	b.WriteString("    legend3 [label=\"spilled\", fillcolor=white, color=\"#d55e00\", penwidth=2.5];\n  }\n}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// cores writes the dimensions that are spread over cores: "n:4 h:2".
func cores(t *model.Tensor, b schedule.Binding) string {
	var parts []string
	for d, n := range b {
		if n > 1 {
			parts = append(parts, fmt.Sprintf("%s:%d", t.DimName(d), n))
		}
	}
	if len(parts) == 0 {
		return "one core"
	}
	return "cores " + strings.Join(parts, " ")
}

func kib(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.0f KiB", float64(bytes)/1024)
}
