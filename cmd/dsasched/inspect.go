package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/plots"
)

type inspectJSON struct {
	Model string `json:"model"`
	DType string `json:"dtype"`
	// Learned parameters before simplification, which folds some away; the other
	// figures are after it.
	Params          int64        `json:"params"`
	ParamBytes      int64        `json:"param_bytes"`
	MACs            int64        `json:"macs"`
	VectorOps       int64        `json:"vector_ops"`
	OperatorsBefore int          `json:"operators_before_simplify"`
	OperatorsAfter  int          `json:"operators_after_simplify"`
	Passes          []passJSON   `json:"passes"`
	Kinds           []kindJSON   `json:"kinds"`
	Layers          layersJSON   `json:"layers"`
	Inputs          []tensorJSON `json:"inputs"`
	Outputs         []tensorJSON `json:"outputs"`
	// The largest come first.
	LargestActivations []tensorJSON `json:"largest_activations"`
	LargestConstants   []tensorJSON `json:"largest_constants"`
	// In execution order.
	Stages     []stageJSON     `json:"stages"`
	Blocks     []blockJSON     `json:"blocks"`
	BlockTypes []blockTypeJSON `json:"block_types"`
	Capacities []capacityJSON  `json:"capacities"` // of --hardware
	Files      []fileJSON      `json:"files"`      // written
}

// useJSON is what a stage or block takes.
type useJSON struct {
	LayerCount int `json:"layers"`
	Operators  int `json:"operators"`
	// Output is what the next one gets; null if there is nothing.
	Output *tensorJSON `json:"output"`
	// PeakBytes is the largest live set while one of the layers runs, PeakShare its
	// share of that of the whole network. ActivationBytes adds up what the layers
	// write.
	PeakBytes         int64       `json:"peak_live_bytes"`
	PeakShare         float64     `json:"peak_share"`
	ActivationBytes   int64       `json:"activation_bytes"`
	Params            int64       `json:"params"`
	ParamBytes        int64       `json:"param_bytes"`
	MACs              int64       `json:"macs"`
	LargestActivation *tensorJSON `json:"largest_activation"`
}

type stageJSON struct {
	Name       string `json:"name"`
	BlockCount int    `json:"blocks"`
	useJSON
	types string // of the blocks, for text
}

type blockJSON struct {
	Index int    `json:"index"`
	Stage string `json:"stage"`
	Type  string `json:"type"`
	useJSON
	LayerNames []string `json:"layer_names"`
	LiveBytes  []int64  `json:"live_bytes"` // while each layer runs
}

// blockTypeJSON is a class of isomorphic blocks.
type blockTypeJSON struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
}

type capacityJSON struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

type passJSON struct {
	Pass             string `json:"pass"`
	Doc              string `json:"doc"`
	Changes          int    `json:"changes"`
	OperatorsRemoved int    `json:"operators_removed"`
}

type kindJSON struct {
	Kind   string `json:"kind"`
	Class  string `json:"class"`
	Before int    `json:"before_simplify"`
	After  int    `json:"after_simplify"`
}

type layersJSON struct {
	Count     int `json:"count"`
	Matrix    int `json:"matrix"`    // with a convolution or matrix product
	Reduction int `json:"reduction"` // with a pooling, softmax or normalisation
	Light     int `json:"light"`
}

type tensorJSON struct {
	Name  string      `json:"name"`
	Shape model.Shape `json:"shape"`
	DType string      `json:"dtype"`
	Bytes int64       `json:"bytes"`
}

// largest is how many tensors of a sort inspect lists.
const largest = 5

// drawings says what inspect writes beside its answer.
type drawings struct {
	plot, dot   *outFile // dot "-": instead of the answer
	accelerator *string  // whose capacities are drawn; "": none
}

func newInspect() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Show what a network consists of",
		Long: `Show a network's size and work, what simplification makes of it, its operators,
layers, stages, largest tensors, inputs and outputs. A layer is a run of operators
that one loop nest executes, at most one of them heavy; a block a layer, or several
between two places where one tensor carries all data; a stage a run of blocks whose
results have the same size. Blocks of one type are isomorphic. The peak of a stage is
the largest sum of the activations that are alive while one of its layers runs.

Learned parameters are counted before simplification, which folds some of them
into others; all else after it. Without --batch, an ONNX file keeps its own batch
size and a built-in network has batch 1.

--plot draws the live activations over the layers, with the stages; --hardware adds
what the LBs of a cluster and its LLB (GB) hold, for networks whose batch is one
cluster's. --dot writes the graph for Graphviz; with - it prints that alone.`,
		Example: `  dsasched inspect resnet50
  dsasched inspect bert-128 --batch 8 --dtype f32
  dsasched inspect ./odd.onnx --dim steps=5 --allow-unknown
  dsasched inspect resnet50 --blocks
  dsasched inspect resnet50 --batch 8 --plot resnet50.svg --hardware stcp920
  dsasched inspect ./net.onnx --dot net.dot
  dsasched inspect ./net.onnx --dot - > net.dot
  dsasched inspect ./net.onnx --json`,
	}
	takesModel(cmd)
	asJSON, batch, read := addJSON(cmd), addOwnBatch(cmd), addNetwork(cmd)
	f := cmd.Flags()
	blocks := f.Bool("blocks", false, "print the blocks of the stages too")
	d := drawings{
		plot:        addFigure(cmd, "plot", "draw the memory in use into this `file`"),
		dot:         addFile(cmd, "dot", "write the simplified graph into this Graphviz `file`; - prints it"),
		accelerator: f.String("hardware", "", "with --plot: built-in accelerator or YAML `file` whose capacities are drawn"),
	}
	d.dot.stdout = true
	completeFlag(cmd, "hardware", completeHardware)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case f.Changed("hardware") && *d.accelerator == "":
			return usagef("--hardware is empty, expected a name")
		case *d.accelerator != "" && d.plot.name == "":
			return usagef("--hardware needs --plot: it adds to the figure")
		}
		a, n, err := inspect(args[0], batch.value, read.options())
		if err != nil {
			return err
		}
		dot, err := d.write(a, n, batch.value)
		if err != nil {
			return err
		}
		if d.dot.name == stdoutName {
			return emit(cmd, false, nil, func(b *bytes.Buffer) { b.Write(dot) })
		}
		return emit(cmd, *asJSON, a, func(b *bytes.Buffer) { a.write(b, *blocks) })
	}
	return cmd
}

func inspect(name string, batch int64, opt network.Options) (*inspectJSON, *structure.Network, error) {
	raw, err := network.Raw(name, batch, opt)
	if err != nil {
		return nil, nil, err
	}
	g, reports, err := simplify.Run(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	a := &inspectJSON{
		Model: name, DType: opt.DType.String(), Params: raw.Params(), MACs: g.MACs(),
		OperatorsBefore: len(raw.Ops), OperatorsAfter: len(g.Ops),
		Passes: []passJSON{}, Kinds: []kindJSON{}, Inputs: []tensorJSON{}, Outputs: []tensorJSON{},
	}
	for _, t := range raw.Tensors {
		if t.Learned && len(t.Consumers) > 0 {
			a.ParamBytes += t.Bytes()
		}
	}
	for _, op := range g.Ops {
		a.VectorOps += g.Work(op, nil).Vector.Total()
	}
	a.Passes = passes(reports)
	a.Kinds = kinds(raw, g)

	n := structure.Find(g, graphturbo.ExecutionOrder(g))
	for _, l := range n.Layers {
		a.Layers.Count++
		switch g.Op(l.Anchor).Class() {
		case model.MatrixClass:
			a.Layers.Matrix++
		case model.ReductionClass:
			a.Layers.Reduction++
		default:
			a.Layers.Light++
		}
	}
	for _, t := range g.Inputs {
		a.Inputs = append(a.Inputs, tensorOf(g.Tensor(t)))
	}
	for _, t := range g.Outputs {
		a.Outputs = append(a.Outputs, tensorOf(g.Tensor(t)))
	}
	a.LargestActivations = largestOf(g, func(t *model.Tensor) bool { return t.Role != model.Constant })
	a.LargestConstants = largestOf(g, func(t *model.Tensor) bool { return t.Role == model.Constant })
	a.addStructure(n)
	return a, n, nil
}

func (a *inspectJSON) addStructure(n *structure.Network) {
	a.Stages, a.Blocks, a.BlockTypes = []stageJSON{}, []blockJSON{}, []blockTypeJSON{}
	a.Capacities, a.Files = []capacityJSON{}, []fileJSON{}
	highest := n.Total().PeakBytes
	tensor := func(id model.TensorID) *tensorJSON {
		if id == structure.NoTensor {
			return nil
		}
		t := tensorOf(n.Graph.Tensor(id))
		return &t
	}
	use := func(u structure.Use, exit model.TensorID) useJSON {
		return useJSON{LayerCount: u.Layers, Operators: u.Operators, Output: tensor(exit),
			PeakBytes: u.PeakBytes, PeakShare: float64(u.PeakBytes) / float64(max(1, highest)), ActivationBytes: u.SumBytes,
			Params: u.Params, ParamBytes: u.ParamBytes, MACs: u.MACs, LargestActivation: tensor(u.Largest)}
	}
	for _, s := range n.Stages {
		a.Stages = append(a.Stages, stageJSON{Name: s.Name, BlockCount: s.End - s.First, useJSON: use(s.Use, s.Exit), types: typesOf(n, s)})
	}
	for i, b := range n.Blocks {
		j := blockJSON{Index: i, Stage: n.Stages[b.Stage].Name, Type: n.Types[b.Type].Name, useJSON: use(b.Use, b.Exit),
			LiveBytes: n.LiveBytes[b.First:b.End]}
		for _, l := range n.Layers[b.First:b.End] {
			j.LayerNames = append(j.LayerNames, l.Name)
		}
		a.Blocks = append(a.Blocks, j)
	}
	for _, t := range n.Types {
		a.BlockTypes = append(a.BlockTypes, blockTypeJSON{t.Name, t.Count})
	}
}

// typesOf writes the types of a stage's blocks, such as "E 3D", or how many there
// are if that is long.
func typesOf(n *structure.Network, s structure.Stage) string {
	var parts []string
	different := map[int]bool{}
	for i := s.First; i < s.End; {
		t, times := n.Blocks[i].Type, 0
		different[t] = true
		for ; i < s.End && n.Blocks[i].Type == t; i++ {
			times++
		}
		part := n.Types[t].Name
		if times > 1 {
			part = fmt.Sprint(times, part)
		}
		parts = append(parts, part)
	}
	if text := strings.Join(parts, " "); len(text) <= 20 {
		return text
	}
	return plural(len(different), "type")
}

// write writes the files and notes them in the answer. It returns the graph for
// Graphviz if there is no file for it.
func (d drawings) write(a *inspectJSON, n *structure.Network, batch int64) (dot []byte, err error) {
	file := func(path string, write func(io.Writer) error) error {
		size, err := writeFile(path, write)
		a.Files = append(a.Files, fileJSON{path, size})
		return err
	}
	if d.plot.name != "" {
		fig, err := d.figure(a, n, batch)
		if err != nil {
			return nil, err
		}
		if err := file(d.plot.name, func(w io.Writer) error { return writeFigure(w, "--plot", d.plot.name, fig, nil) }); err != nil {
			return nil, err
		}
	}
	switch d.dot.name {
	case "":
		return nil, nil
	case stdoutName:
		var b bytes.Buffer
		err := n.WriteDOT(&b)
		return b.Bytes(), err
	}
	return nil, file(d.dot.name, n.WriteDOT)
}

func (d drawings) figure(a *inspectJSON, n *structure.Network, batch int64) (*plots.Figure, error) {
	m := plots.Memory{Title: a.Model, LiveBytes: n.LiveBytes}
	if network.IsFile(a.Model) {
		m.Title = strings.TrimSuffix(filepath.Base(a.Model), filepath.Ext(a.Model))
	} else {
		batch = max(1, batch)
	}
	m.Title = shorten(m.Title, 32)
	if batch > 0 { // of a file it may be anything, or nothing
		m.Title += fmt.Sprintf(", batch %d", batch)
	}
	m.Title += ", " + a.DType
	for _, s := range n.Stages {
		m.Spans = append(m.Spans, plots.Span{Name: s.Name, First: n.Blocks[s.First].First, End: n.Blocks[s.End-1].End})
	}
	if *d.accelerator != "" {
		spec, err := hardware.Load(*d.accelerator)
		if err != nil {
			return nil, err
		}
		if spec.LB != nil {
			a.Capacities = append(a.Capacities, capacityJSON{"LBs of a cluster", int64(spec.LBTotalBytes())})
		}
		if spec.GB != nil {
			a.Capacities = append(a.Capacities, capacityJSON{"LLB", int64(spec.GB.SizeBytes)})
		}
		for i, c := range a.Capacities {
			if i > 0 && a.Capacities[i-1].Bytes == c.Bytes {
				m.Capacities[0].Name = fmt.Sprintf("%s, %s: %s each", a.Capacities[i-1].Name, c.Name, size(c.Bytes))
				continue // one line would cover the other
			}
			m.Capacities = append(m.Capacities, plots.Capacity{Name: c.Name + ": " + size(c.Bytes), Bytes: c.Bytes})
		}
	}
	return plots.MemoryInUse(m)
}

// passes sums up the reports of all sweeps, in the order of the table of passes.
func passes(reports []simplify.Report) []passJSON {
	list := []passJSON{}
	for _, p := range simplify.Passes() {
		sum := passJSON{Pass: p.Name, Doc: p.Doc}
		for _, r := range reports {
			if r.Pass == p.Name {
				sum.Changes += r.Changes
				sum.OperatorsRemoved += r.OpsBefore - r.OpsAfter
			}
		}
		list = append(list, sum)
	}
	return list
}

func kinds(before, after *model.Graph) []kindJSON {
	rest := map[model.Kind]int{}
	for _, k := range after.KindCounts() {
		rest[k.Kind] = k.Count
	}
	list := []kindJSON{}
	add := func(k model.Kind, before, after int) {
		j := kindJSON{Kind: string(k), Before: before, After: after}
		if info, ok := model.Info(k); ok {
			j.Class = info.Class.String()
		}
		list = append(list, j)
	}
	for _, k := range before.KindCounts() {
		add(k.Kind, k.Count, rest[k.Kind])
		delete(rest, k.Kind)
	}
	for _, k := range after.KindCounts() {
		if n, isNew := rest[k.Kind]; isNew {
			add(k.Kind, 0, n)
		}
	}
	return list
}

func tensorOf(t *model.Tensor) tensorJSON {
	shape := t.Shape
	if shape == nil {
		shape = model.Shape{}
	}
	return tensorJSON{t.Name, shape, t.DType.String(), t.Bytes()}
}

func largestOf(g *model.Graph, keep func(*model.Tensor) bool) []tensorJSON {
	list := []tensorJSON{}
	for _, t := range g.Tensors {
		if keep(t) {
			list = append(list, tensorOf(t))
		}
	}
	// The sort is stable, so that the order of tensors decides between equals.
	slices.SortStableFunc(list, func(a, b tensorJSON) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list[:min(len(list), largest)]
}

func (a *inspectJSON) write(b *bytes.Buffer, blocks bool) {
	row(b, "model", "%s, %s", a.Model, a.DType)
	row(b, "parameters", "%s (%s)", count(a.Params), size(a.ParamBytes))
	row(b, "work", "%s, %s vector operations", unit(float64(a.MACs), "MAC"), count(a.VectorOps))
	row(b, "operators", "%d, %d after simplification", a.OperatorsBefore, a.OperatorsAfter)
	row(b, "layers", "%d: %d with a matrix operator, %d with a reduction, %d light", a.Layers.Count, a.Layers.Matrix, a.Layers.Reduction, a.Layers.Light)

	for _, f := range a.Files {
		row(b, "written", "%s (%s)", printable(f.Path), size(f.Bytes))
	}

	section := func(title string) { fmt.Fprintf(b, "\n%s\n", title) }
	var rows [][]string
	if len(a.Stages) > 0 {
		section("Stages")
		for _, s := range a.Stages {
			rows = append(rows, append([]string{s.Name, fmt.Sprint(s.BlockCount), s.types}, s.cells()...))
		}
		writeTable(b, "lrlrrlrrrr", append([]string{"stage", "blocks", "types"}, useHeader...), rows)
	}
	if blocks && len(a.Blocks) > 0 {
		section("Blocks")
		rows = nil
		for _, k := range a.Blocks {
			rows = append(rows, append([]string{k.Stage, fmt.Sprint(k.Index), k.Type}, k.cells()...))
		}
		writeTable(b, "lrlrrlrrrr", append([]string{"stage", "block", "type"}, useHeader...), rows)
		words := []string{}
		for _, t := range a.BlockTypes {
			if t.Count > 1 {
				words = append(words, fmt.Sprintf("%s x%d", t.Type, t.Count))
			}
		}
		if len(words) > 0 {
			fmt.Fprintf(b, "  repeated: %s\n", strings.Join(words, ", "))
		}
	}

	section("Simplification")
	rows = nil
	var idle []string
	for _, p := range a.Passes {
		if p.Changes == 0 && p.OperatorsRemoved == 0 {
			idle = append(idle, p.Pass)
			continue
		}
		rows = append(rows, []string{p.Pass, fmt.Sprint(p.Changes), fmt.Sprint(p.OperatorsRemoved)})
	}
	if len(rows) > 0 {
		writeTable(b, "lrr", []string{"pass", "changes", "operators removed"}, rows)
	}
	if len(idle) > 0 {
		fmt.Fprintf(b, "  nothing to do for %s\n", strings.Join(idle, ", "))
	}

	section("Operators")
	rows = nil
	for _, k := range a.Kinds {
		rows = append(rows, []string{k.Kind, k.Class, fmt.Sprint(k.Before), fmt.Sprint(k.After)})
	}
	writeTable(b, "llrr", []string{"kind", "class", "before", "after"}, rows)

	for _, s := range []struct {
		title   string
		tensors []tensorJSON
	}{
		{"Inputs", a.Inputs}, {"Outputs", a.Outputs},
		{"Largest activations", a.LargestActivations}, {"Largest constants", a.LargestConstants},
	} {
		if len(s.tensors) == 0 {
			continue
		}
		section(s.title)
		rows = nil
		for _, t := range s.tensors {
			rows = append(rows, []string{shorten(t.Name, 48), t.Shape.String(), t.DType, size(t.Bytes)})
		}
		writeTable(b, "lllr", []string{"name", "shape", "type", "size"}, rows)
	}
}

// useHeader names the columns of cells.
var useHeader = []string{"layers", "operators", "output", "peak live", "of highest", "parameters", "MACs"}

func (u useJSON) cells() []string {
	output := "-"
	if u.Output != nil {
		output = u.Output.Shape.String()
	}
	return []string{fmt.Sprint(u.LayerCount), fmt.Sprint(u.Operators), output, size(u.PeakBytes), percent(u.PeakShare), count(u.Params), count(u.MACs)}
}
