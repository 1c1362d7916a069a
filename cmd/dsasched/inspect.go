package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/network"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
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

func newInspect() *cobra.Command {
	batch := &number{min: 1}
	cmd := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Show what a network consists of",
		Long: `Show a network's size and work, what simplification makes of it, its operators,
layers, largest tensors, inputs and outputs. A layer is a run of operators that one
loop nest executes, at most one of them heavy.

Learned parameters are counted before simplification, which folds some of them
into others; work, layers and tensors after it. Without --batch, an ONNX file keeps
its own batch size and a built-in network has batch 1.`,
		Example: `  dsasched inspect resnet50
  dsasched inspect bert-128 --batch 8 --dtype f32
  dsasched inspect ./net.onnx --json`,
		Args:              oneArg("MODEL", "give a name that 'dsasched models' lists, or the path of an ONNX file"),
		ValidArgsFunction: completeModel,
	}
	asJSON := addJSON(cmd)
	cmd.Flags().Var(batch, "batch", "batch size (default: the file's own, or 1)")
	cmd.Flags().Lookup("batch").DefValue = "" // 0 would not be accepted
	completeFlag(cmd, "batch", cobra.NoFileCompletions)
	dt := addDType(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		answer, err := inspect(args[0], batch.value, dtype(dt))
		if err != nil {
			return err
		}
		return emit(cmd, *asJSON, answer, answer.write)
	}
	return cmd
}

func inspect(name string, batch int64, dt model.DType) (*inspectJSON, error) {
	raw, err := network.Raw(name, batch, dt)
	if err != nil {
		return nil, err
	}
	g, reports, err := simplify.Run(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a := &inspectJSON{
		Model: name, DType: dt.String(), Params: raw.Params(), MACs: g.MACs(),
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

	for _, l := range schedule.Layers(g, graphturbo.ExecutionOrder(g)) {
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
	return a, nil
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

func (a *inspectJSON) write(b *bytes.Buffer) {
	row(b, "model", "%s, %s", a.Model, a.DType)
	row(b, "parameters", "%s (%s)", count(a.Params), size(a.ParamBytes))
	row(b, "work", "%s, %s vector operations", unit(float64(a.MACs), "MAC"), count(a.VectorOps))
	row(b, "operators", "%d, %d after simplification", a.OperatorsBefore, a.OperatorsAfter)
	row(b, "layers", "%d: %d with a matrix operator, %d with a reduction, %d light", a.Layers.Count, a.Layers.Matrix, a.Layers.Reduction, a.Layers.Light)

	section := func(title string) { fmt.Fprintf(b, "\n%s\n", title) }
	section("Simplification")
	var rows [][]string
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
