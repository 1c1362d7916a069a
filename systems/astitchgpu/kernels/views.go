package kernels

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
)

// Explanation says where an operator has gone, and why its data go where they go.
type Explanation struct {
	Operator string     `json:"operator"`
	Kind     model.Kind `json:"kind"`
	// Kernels lists the kernels that compute it, with its group in each.
	Kernels []Place       `json:"kernels"`
	Links   []fusion.Link `json:"links"` // within kernels, that it is an end of
	Cuts    []fusion.Cut  `json:"cuts"`  // between kernels
}

// Place is a kernel that computes an operator.
type Place struct {
	Kernel   int    `json:"kernel"`
	Library  bool   `json:"library"`
	Group    int    `json:"group"`
	Dominant string `json:"dominant"`
	Phase    int    `json:"phase"`
	// Again is set where other kernels compute the result, too.
	Again bool `json:"computed_again"`
}

// Explain finds an operator by its name.
func Explain(p *fusion.Plan, name string) (*Explanation, error) {
	var names []string
	id := model.NoOp
	for _, op := range p.Graph.Ops {
		if names = append(names, op.Name); op.Name == name {
			id = op.ID
		}
	}
	if id == model.NoOp {
		return nil, fmt.Errorf("%s has no operator %q%s", p.Network, name, suggest.Hint(name, names))
	}
	e := &Explanation{Operator: name, Kind: p.Graph.Op(id).Kind, Kernels: []Place{}, Links: []fusion.Link{},
		Cuts: []fusion.Cut{}}
	for i, k := range p.Kernels {
		for j, gr := range k.Groups {
			for _, o := range gr.Ops {
				if o == id {
					e.Kernels = append(e.Kernels, Place{Kernel: i, Library: k.Library, Group: j, Dominant: gr.DominantName,
						Phase: gr.Phase})
				}
			}
		}
		for _, l := range k.Links {
			if l.From == id || l.To == id {
				e.Links = append(e.Links, l)
			}
		}
	}
	for i := range e.Kernels {
		e.Kernels[i].Again = len(e.Kernels) > 1
	}
	for _, c := range p.Cuts {
		if c.From == id || c.To == id {
			e.Cuts = append(e.Cuts, c)
		}
	}
	return e, nil
}

// WriteDOT writes the plan in the language of Graphviz: a cluster for each kernel, in it one for each group, and an
// edge for each dependency, coloured by its scheme; dashed between kernels.
func WriteDOT(w io.Writer, p *fusion.Plan) error {
	var b bytes.Buffer
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
	}
	fmt.Fprintf(&b,
		"digraph %s {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\"];\n",
		quote(p.Network))
	node := func(kernel int, id model.OpID) string { return fmt.Sprintf("k%d_%d", kernel, id) }
	for i, k := range p.Kernels {
		label := fmt.Sprintf("kernel %d: %d blocks, %.2f us", i, k.Blocks, 1e6*k.Seconds)
		if k.Library {
			label = fmt.Sprintf("library call %d: %.2f us", i, 1e6*k.Seconds)
		}
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s; style=filled; color=\"#e8e8e8\";\n", i, quote(label))
		for j, gr := range k.Groups {
			fmt.Fprintf(&b, "    subgraph cluster_%d_%d {\n      label=%s; style=filled; color=\"#cfe2f0\";\n", i, j,
				quote(fmt.Sprintf("phase %d", gr.Phase)))
			for n, id := range gr.Ops {
				fmt.Fprintf(&b, "      %s [label=%s];\n", node(i, id), quote(gr.Operators[n]))
			}
			b.WriteString("    }\n")
		}
		for _, l := range k.Links {
			colour := map[fusion.Scheme]string{fusion.Local: "black", fusion.Regional: "blue", fusion.Global: "red"}[l.Scheme]
			fmt.Fprintf(&b, "    %s -> %s [color=%s, label=%s];\n", node(i, l.From), node(i, l.To), colour,
				quote(l.Scheme.String()))
		}
		b.WriteString("  }\n")
	}
	for _, c := range p.Cuts {
		fmt.Fprintf(&b, "  %s -> %s [style=dashed, label=%s];\n", node(c.First, c.From), node(c.Second, c.To),
			quote(fmt.Sprintf("%d B", c.Bytes)))
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// Picture draws the kernels one after the other: memory-intensive ones above, library calls below, launches pale.
func Picture(p *fusion.Plan) (*plots.Figure, error) {
	t := plots.Timeline{Title: fmt.Sprintf("%s on %s, %s", p.Network, p.Hardware, p.Method),
		Rows: []plots.TimelineRow{{Name: "memory-intensive"}, {Name: "library calls"}}}
	at := 0.0
	for _, k := range p.Kernels {
		row, colour := &t.Rows[0], 0
		if k.Library {
			row, colour = &t.Rows[1], 1
		}
		begun, end := at+k.Time.Launch*1e6, at+k.Seconds*1e6
		row.Bars = append(row.Bars, plots.TimelineBar{Start: at, End: begun, Colour: colour, Pale: true},
			plots.TimelineBar{Start: begun, End: end, Colour: colour})
		at = end
	}
	return plots.Gantt(t, "time (us); pale: launches", []string{"memory-intensive", "library call"})
}
