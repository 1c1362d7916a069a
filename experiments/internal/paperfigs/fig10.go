package paperfigs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// unfolding shows what one instance is made of (§4, Figs. 10 and 11): blocks, layers,
// operators and the loop nest of a layer.
type unfolding struct {
	hardware   string
	model      string
	perCluster int64
	group      int   // the paper's stage 2
	index      int64 // of its instance, from zero
	layer      string
}

func fig10() unfolding {
	return unfolding{"stcp920", "resnet50", 16, 1, 2, "stage2.block1.conv2"}
}

func (f unfolding) experiment() harness.Experiment {
	return harness.Experiment{
		Name: "fig10", Also: []string{"fig11"},
		Description: "one instance of ResNet-50's second stage as blocks, layers, operators and loop nests, beside TVM's kernels",
		Paper:       "GraphTurbo (OSDI 2023), §4.1, §4.2 and Figs. 10, 11",
		Plan:        f.plan,
	}
}

// unfolded is an instance, taken apart.
type unfolded struct {
	Name   string `json:"name"`
	Factor int64  `json:"factor"`
	// Kernels are the launches in the program of a cluster for the whole network, of which Instances are there.
	Kernels   int64           `json:"kernels"`
	Instances int64           `json:"instances"`
	Scope     string          `json:"scope"`
	Layers    []unfoldedLayer `json:"layers"`
}

type unfoldedLayer struct {
	Name    string       `json:"name"`
	Block   string       `json:"block"`
	Kernel  string       `json:"kernel"`
	Anchor  string       `json:"anchor"` // its kind
	Ops     []unfoldedOp `json:"operators"`
	Loops   string       `json:"loops"` // of the instance
	Reduce  int64        `json:"reduction"`
	Binding string       `json:"binding"`
	Cores   int64        `json:"cores"`
	Core    string       `json:"loops_per_core"`
	Tiles   int64        `json:"tiles"` // in which the layer passes through the L1
	Level   string       `json:"output_level"`
	// Per core.
	WeightBytes int64 `json:"weight_bytes_per_core"`
	RemoteBytes int64 `json:"bytes_from_other_cores"` // of all cores
	// Commands of this instance alone, in the program of a cluster.
	Commands map[string]int64 `json:"commands"`
}

type unfoldedOp struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	Reads []string `json:"reads"` // operators
}

// loopText writes the extents of a box in the order of its loops.
func loopText(layout []int, shape func(d int) int64) string {
	names := []string{"n", "c", "h", "w"}
	var parts []string
	for _, d := range layout {
		name := fmt.Sprintf("i%d", d)
		if len(layout) == len(names) {
			name = names[d]
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, shape(d)))
	}
	return strings.Join(parts, ", ")
}

// blockOf is the part of an operator's name that its block has: stage and block.
func blockOf(name string) string {
	parts := strings.Split(name, ".")
	return strings.Join(parts[:min(2, len(parts)-1)], ".")
}

// explain takes apart one instance, or, of kernels that are layers, all those that have an operator of ops.
func explainLayers(r *scheduler.Result, wanted func(group int, index int64, ops []model.OpID) bool) (unfolded, error) {
	s := r.Schedule
	g := s.Graph
	u := unfolded{Kernels: r.Sim.Static.Commands[isa.Launch], Instances: int64(len(s.Instances.Instances))}
	commands := kernelCommands(r)
	position := make(map[int]int, len(s.Order)) // instance to kernel
	for k, id := range s.Order {
		position[id] = k
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		inst := &s.Instances.Instances[st.Instance]
		sg := s.Grouping.Groups[inst.Group]
		if !wanted(inst.Group, inst.Index, sg.Ops) {
			continue
		}
		u.Name, u.Factor, u.Scope = instanceName(inst.Group, inst.Index), sg.Factor(), s.Scopes[st.Instance].String()
		l := &s.Layers[inst.Group][st.Layer]
		out := g.Tensor(st.Output)
		region := inst.Regions[st.Output]
		x := unfoldedLayer{Name: l.Name, Kernel: instanceName(inst.Group, inst.Index), Anchor: string(g.Op(l.Anchor).Kind),
			Block: blockOf(g.Op(l.Ops[len(l.Ops)-1]).Name),
			Loops: loopText(out.Layout, func(d int) int64 { return region[d].Len() }),
			Core:  loopText(out.Layout, func(d int) int64 { return st.CoreOutput[d].Len() }),
			Cores: st.Cores, Binding: loopText(out.Layout, func(d int) int64 { return st.Binding[d] }), Tiles: st.Tiles,
			Commands: map[string]int64{}}
		if g.Op(l.Anchor).Class() == model.MatrixClass {
			x.Reduce = g.Work(g.Op(l.Anchor), nil).MACs / g.Tensor(g.Op(l.Anchor).Outputs[0]).Shape.Elements()
		}
		for _, id := range l.Ops {
			op := unfoldedOp{Name: g.Op(id).Name, Kind: string(g.Op(id).Kind), Reads: []string{}}
			for _, t := range g.Op(id).Inputs {
				if p := g.Tensor(t).Producer; p != model.NoOp {
					op.Reads = append(op.Reads, g.Op(p).Name)
				}
			}
			x.Ops = append(x.Ops, op)
		}
		for _, w := range st.Writes {
			x.Level = s.Values[w].Level.String()
		}
		for _, p := range st.Params {
			x.WeightBytes += p.CoreBytes
		}
		for _, rd := range st.Reads {
			x.RemoteBytes += rd.RemoteBytes
		}
		for kind, n := range commands[kernelLayer{position[st.Instance], l.Name}] {
			if n > 0 {
				x.Commands[isa.Kind(kind).String()] = n
			}
		}
		u.Layers = append(u.Layers, x)
	}
	if len(u.Layers) == 0 {
		return u, fmt.Errorf("%s, variant %s: no kernel has the operators asked for", r.Source, r.Recipe.Name)
	}
	return u, nil
}

type kernelLayer struct {
	kernel int
	layer  string
}

// kernelCommands counts the commands of cluster 0 for each layer of each kernel. Loads
// from the DDR are left out: they run ahead of the kernel that they are for.
func kernelCommands(r *scheduler.Result) map[kernelLayer]*[isa.NumKinds]int64 {
	counts := map[kernelLayer]*[isa.NumKinds]int64{}
	kernel := -1
	for i := range r.Program.Commands {
		c := &r.Program.Commands[i]
		switch {
		case r.Program.Queues[c.Queue].Cluster != 0 || c.Iteration != 0 || c.Kind == isa.DDRLoad:
			continue
		case c.Kind == isa.Launch:
			kernel++
			continue
		}
		k := kernelLayer{kernel, r.Program.Labels[c.Label]}
		if counts[k] == nil {
			counts[k] = &[isa.NumKinds]int64{}
		}
		counts[k][c.Kind]++
	}
	return counts
}

func (f unfolding) plan() (*harness.Plan, error) {
	ours := literature.Scheduled(f.hardware, f.model, f.perCluster, "cross-layer")
	ours.Raw = true
	theirs := ours
	theirs.Variant, _ = literature.ByText("tvm") // of the same operators
	instance := ours.Cell("instance", func(_ context.Context, r *scheduler.Result) (any, error) {
		return explainLayers(r, func(group int, index int64, _ []model.OpID) bool {
			return group == f.group && index == f.index
		})
	})
	kernels := theirs.Cell("tvm", func(_ context.Context, r *scheduler.Result) (any, error) {
		// All kernels; the report picks those of the instance.
		return explainLayers(r, func(int, int64, []model.OpID) bool { return true })
	})
	return &harness.Plan{Cells: []harness.Cell{instance, kernels},
		Report: harness.Of(func(list []unfolded) (*harness.Report, error) { return f.report(list[0], list[1]) })}, nil
}

func (f unfolding) report(u, tvm unfolded) (*harness.Report, error) {
	d := harness.NewDocument(f.experiment())
	kinds := map[string]int{}
	ops, total := map[string]bool{}, 0
	for _, l := range u.Layers {
		for _, op := range l.Ops {
			kinds[op.Kind]++
			ops[op.Name] = true
			total++
		}
	}
	// TVM's kernels with a convolution of the instance: the ReLU at its start belongs to the layer before.
	var theirs []unfoldedLayer
	for _, l := range tvm.Layers {
		if slices.ContainsFunc(l.Ops, func(op unfoldedOp) bool { return op.Kind == "Conv" && ops[op.Name] }) {
			theirs = append(theirs, l)
		}
	}
	t := harness.Table{Name: "layers", Title: fmt.Sprintf("Layers of instance %s (of %d) of %s with %d images per cluster",
		u.Name, u.Factor, f.model, f.perCluster), Columns: harness.Columns("<Block", "<Layer", "<Operators",
		"<Loops of the instance", "<Cores", "<Output in", "Weights per\ncore (KiB)", "Matrix and vector\ncommands")}
	for _, l := range u.Layers {
		names := harness.Each(l.Ops, func(op unfoldedOp) string { return op.Kind })
		t.Add(l.Block, l.Name, strings.Join(names, " "), l.Loops, l.Binding, l.Level,
			harness.Fixed(float64(l.WeightBytes)/1024, 1),
			l.Commands["matrix"]+l.Commands["vector"]+l.Commands["special"])
	}
	d.Table(t)
	k := harness.Table{Name: "kernels", Title: "TVM's kernels for the same convolutions",
		Columns: harness.Columns("<Kernel", "<Operators", "<Output in")}
	for _, l := range theirs {
		names := harness.Each(l.Ops, func(op unfoldedOp) string { return op.Kind })
		k.Add(l.Name, strings.Join(names, " "), l.Level)
	}
	d.Table(k)
	i := slices.IndexFunc(u.Layers, func(l unfoldedLayer) bool { return l.Name == f.layer })
	if i < 0 {
		return nil, fmt.Errorf("instance %s has no layer %q", u.Name, f.layer)
	}
	d.Listing("Loop nests of "+f.layer, u.Layers[i].loopNests())

	paperOps := total - kinds["Add"]
	d.Number("operators of an instance of stage 2", "operators", 38, float64(paperOps))
	d.Why("additions and the ReLUs behind them counted once, as the figure draws them; %d apart", total)
	d.Given()
	d.Number("convolutions among them", "operators", 13, float64(kinds["Conv"]))
	d.Given()
	d.Number("kernels of an instance", "kernels", 1, float64(u.Kernels)/float64(u.Instances))
	d.Given()
	d.Number("instances of stage 2", "instances", 4, float64(u.Factor))
	d.Why("factors follow from the extents and the reading of Algorithm 1's peak")
	d.Given()
	d.Claim("TVM's kernels for the stage", "one for each layer",
		fmt.Sprintf("%d for %d convolutions", len(theirs), kinds["Conv"]), harness.Agreement(len(theirs) == kinds["Conv"]))
	d.Given()
	d.Number("TVM's kernels in all", "kernels", 65, float64(tvm.Kernels))
	d.Why("the paper does not say of which network; Table 3's 58 outputs have a line in table3")
	d.Given()
	lastLayer := u.Layers[len(u.Layers)-1]
	lastOp := lastLayer.Ops[len(lastLayer.Ops)-1]
	d.Note(
		"The network is taken as it stands, with its batch normalisations, as in Fig. 10. The instance goes from %s to %s: three identity blocks and the next stage's conv block, where the paper's begins with its own stage's conv block. Algorithm 1 with tensors inside layers in tiles (§4.1) puts the boundaries one block behind the stages.",
		u.Layers[0].Ops[0].Name, lastOp.Name)
	d.Note("The paper does not say which network has its 65 kernels. TVM's fusion rule gives %d here.", tvm.Kernels)
	fig, err := f.figure(u, theirs)
	d.Figure("instance", fmt.Sprintf("Instance %s, operator by operator", u.Name), fig, err)
	return d.Report(harness.Data{Data: struct {
		Instance unfolded        `json:"instance"`
		TVM      []unfoldedLayer `json:"tvm_kernels"`
	}{u, theirs}})
}

// loopNests writes the layer before and after fusion, as Fig. 11 does.
func (l unfoldedLayer) loopNests() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Before: %s\n", harness.Plural(int64(len(l.Ops)), "loop nest"))
	for _, op := range l.Ops {
		fmt.Fprintf(&b, "  for %s:\n", l.Loops)
		if op.Name == l.Name && l.Reduce > 0 {
			fmt.Fprintf(&b, "    for k %d:\n  ", l.Reduce)
		}
		fmt.Fprintf(&b, "    %s = %s(%s)\n", op.Name, op.Kind, strings.Join(op.Reads, ", "))
	}
	work := max(l.Commands["matrix"], l.Commands["vector"])
	fmt.Fprintf(&b, "After: one loop nest on %s\n", harness.Plural(l.Cores, "core"))
	fmt.Fprintf(&b, "  parallel for core %d (%s):\n", l.Cores, l.Binding)
	if l.RemoteBytes > 0 {
		fmt.Fprintf(&b, "    exchange %d bytes with other cores   # %s\n", l.RemoteBytes,
			harness.Plural(l.Commands["exchange"], "command"))
	}
	if l.WeightBytes > 0 {
		fmt.Fprintf(&b, "    promote %d bytes of weights, DDR -> LLB -> L1   # %s from the LLB\n", l.WeightBytes,
			harness.Plural(l.Commands["lb.load"], "load"))
	}
	fmt.Fprintf(&b, "    for tile %d:   # of %s\n", work, l.Core)
	for i, op := range l.Ops {
		where := "within the tile"
		if i == len(l.Ops)-1 {
			where = "in the " + l.Level
		}
		fmt.Fprintf(&b, "      %s = %s(%s)   # %s\n", op.Name, op.Kind, strings.Join(op.Reads, ", "), where)
	}
	return b.String()
}

// figure draws the instance twice, as one kernel and as TVM's.
func (f unfolding) figure(u unfolded, theirs []unfoldedLayer) (*plots.Figure, error) {
	letters := map[string]string{"Conv": "C", "Relu": "R", "Add": "+", "BatchNorm": "B"}
	base := plots.Diagram{RowHeight: 17}
	at := map[string]int{}
	// A row and one for what passes beside it for each block; the operator in front of
	// the first block stands at its left.
	var blocks []string
	column := map[string]int{}
	first := u.Layers[0].Ops[0].Name
	for _, l := range u.Layers {
		for _, op := range l.Ops {
			block := blockOf(op.Name)
			x := 0
			if op.Name != first {
				if !slices.Contains(blocks, block) {
					blocks = append(blocks, block)
				}
				row := block
				if strings.Contains(op.Name, ".shortcut.") {
					row += ".shortcut"
					column[row] = max(column[row], column[block]-2)
				}
				column[row]++
				x = column[row]
			}
			y := 2 * max(0, len(blocks)-1)
			if strings.Contains(op.Name, ".shortcut.") {
				y++
			}
			letter := letters[op.Kind]
			if letter == "" {
				letter = "?"
			}
			at[op.Name] = len(base.Nodes)
			base.Nodes = append(base.Nodes, plots.DiagramNode{Text: letter, X: float64(x), Y: float64(y),
				Colour: plots.NoColour})
		}
	}
	// Where a block begins another row, dots stand for what it reads.
	dots := map[float64]int{}
	layerOf := func(layers []unfoldedLayer) map[string]int {
		m := map[string]int{}
		for i, l := range layers {
			for _, op := range l.Ops {
				m[op.Name] = i
			}
		}
		return m
	}
	draw := func(title string, areas []plots.DiagramArea, layer map[string]int) plots.Diagram {
		dia := plots.Diagram{Title: title, RowHeight: base.RowHeight, Nodes: slices.Clone(base.Nodes), Areas: areas}
		clear(dots)
		for _, l := range u.Layers {
			for _, op := range l.Ops {
				to := at[op.Name]
				n := dia.Nodes[to]
				for _, name := range op.Reads {
					from, inside := at[name]
					if !inside {
						continue
					}
					m := dia.Nodes[from]
					a, fromLayer := layer[name]
					b, toLayer := layer[op.Name]
					e := plots.DiagramEdge{From: from, To: to, Grey: !fromLayer || !toLayer || a != b}
					if m.Y < n.Y-1 {
						if _, ok := dots[n.Y]; !ok {
							dots[n.Y] = len(dia.Nodes)
							dia.Nodes = append(dia.Nodes,
								plots.DiagramNode{Text: "…", X: 0, Y: n.Y, Colour: plots.NoColour, Shape: plots.Bare})
						}
						e.From = dots[n.Y]
						m = dia.Nodes[e.From]
					}
					if n.X-m.X > 1.5 && m.Y == n.Y {
						e.Bend = 0.95
					}
					dia.Edges = append(dia.Edges, e)
				}
			}
		}
		return dia
	}
	var one plots.DiagramArea
	one.Colour = 0
	for i := range base.Nodes {
		one.Nodes = append(one.Nodes, i)
	}
	var separate []plots.DiagramArea
	for i, l := range theirs {
		a := plots.DiagramArea{Colour: 1 + i%2*4}
		for _, op := range l.Ops {
			if n, ok := at[op.Name]; ok {
				a.Nodes = append(a.Nodes, n)
			}
		}
		separate = append(separate, a)
	}
	list := []plots.Diagram{
		draw(fmt.Sprintf("(a) GraphTurbo: instance %s is 1 kernel of %d layers", u.Name, len(u.Layers)),
			[]plots.DiagramArea{one}, layerOf(u.Layers)),
		draw(fmt.Sprintf("(b) TVM: %d kernels", len(theirs)), separate, layerOf(theirs)),
	}
	return plots.Diagrams(list, plots.DiagramKey{Symbol: "C", Text: "convolution"},
		plots.DiagramKey{Symbol: "B", Text: "batch norm"},
		plots.DiagramKey{Symbol: "R", Text: "ReLU"}, plots.DiagramKey{Symbol: "+", Text: "addition"},
		plots.DiagramKey{Edge: true, Text: "one loop nest"},
		plots.DiagramKey{Edge: true, Grey: true, Text: "through (a) L1, (b) DDR"})
}

// Fig10 unfolds the loop nests of layers.
func Fig10() harness.Experiment { return fig10().experiment() }
