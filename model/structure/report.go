package structure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/simplify"
)

// Report is a network in numbers, and the answer of `dsasched inspect`. Learned parameters are counted before
// simplification, which folds some away; the other figures are after it.
type Report struct {
	Model           string         `json:"model"`
	DType           string         `json:"dtype"`
	Params          int64          `json:"params"`
	ParamBytes      int64          `json:"param_bytes"`
	MACs            int64          `json:"macs"`
	VectorOps       int64          `json:"vector_ops"`
	OperatorsBefore int            `json:"operators_before_simplify"`
	OperatorsAfter  int            `json:"operators_after_simplify"`
	Passes          []PassReport   `json:"passes"`
	Kinds           []KindReport   `json:"kinds"`
	Layers          LayerReport    `json:"layers"`
	Inputs          []TensorReport `json:"inputs"`
	Outputs         []TensorReport `json:"outputs"`
	// The largest come first.
	LargestActivations []TensorReport `json:"largest_activations"`
	LargestConstants   []TensorReport `json:"largest_constants"`
	// In execution order.
	Stages     []StageReport `json:"stages"`
	Blocks     []BlockReport `json:"blocks"`
	BlockTypes []Type        `json:"block_types"`
}

// PassReport is the effect of a pass of the simplification, all sweeps together.
type PassReport struct {
	Pass             string `json:"pass"`
	Doc              string `json:"doc"`
	Changes          int    `json:"changes"`
	OperatorsRemoved int    `json:"operators_removed"`
}

// KindReport counts the operators of a kind.
type KindReport struct {
	Kind   model.Kind `json:"kind"`
	Class  string     `json:"class"`
	Before int        `json:"before_simplify"`
	After  int        `json:"after_simplify"`
}

// LayerReport counts layers.
type LayerReport struct {
	Count     int `json:"count"`
	Matrix    int `json:"matrix"`    // with a convolution or matrix product
	Reduction int `json:"reduction"` // with a pooling, softmax or normalisation
	Light     int `json:"light"`
}

// TensorReport is a tensor.
type TensorReport struct {
	Name  string      `json:"name"`
	Shape model.Shape `json:"shape"`
	DType string      `json:"dtype"`
	Bytes int64       `json:"bytes"`
}

// UseReport is the memory and work of a stage or block.
type UseReport struct {
	LayerCount int `json:"layers"`
	Operators  int `json:"operators"`
	// Output is the tensor that the next one reads; null if there is none.
	Output *TensorReport `json:"output"`
	// PeakBytes is the largest live set while one of the layers runs, PeakShare its share of that of the whole network.
	// ActivationBytes adds up what the layers write.
	PeakBytes         int64         `json:"peak_live_bytes"`
	PeakShare         float64       `json:"peak_share"`
	ActivationBytes   int64         `json:"activation_bytes"`
	Params            int64         `json:"params"`
	ParamBytes        int64         `json:"param_bytes"`
	MACs              int64         `json:"macs"`
	LargestActivation *TensorReport `json:"largest_activation"`
}

// StageReport is a stage.
type StageReport struct {
	Name       string `json:"name"`
	BlockCount int    `json:"blocks"`
	UseReport
	// Types names the types of its blocks, such as "E 3D".
	Types string `json:"-"`
}

// BlockReport is a block.
type BlockReport struct {
	Index int    `json:"index"`
	Stage string `json:"stage"`
	Type  string `json:"type"`
	UseReport
	LayerNames []string `json:"layer_names"`
	LiveBytes  []int64  `json:"live_bytes"` // while each layer runs
}

// largest bounds the tensors of a sort that a report lists.
const largest = 5

// Inspect simplifies a network, whose name is for the report and for errors, finds its
// structure in the order of execution that order gives, and sums it up.
func Inspect(name string, raw *model.Graph, order func(*model.Graph) []model.OpID) (*Report, error) {
	g, sweeps, err := simplify.Run(raw)
	if err == nil {
		g, err = simplify.ReadParts(g)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	n := Find(g, order(g))
	a := &Report{
		Model: name, Params: raw.Params(), MACs: g.MACs(), OperatorsBefore: len(raw.Ops), OperatorsAfter: len(g.Ops),
		Passes: reportPasses(sweeps), Kinds: reportKinds(raw, g), Inputs: []TensorReport{}, Outputs: []TensorReport{},
		LargestActivations: largestOf(g, func(t *model.Tensor) bool { return t.Role != model.Constant }),
		LargestConstants:   largestOf(g, func(t *model.Tensor) bool { return t.Role == model.Constant }),
		Stages:             []StageReport{}, Blocks: []BlockReport{}, BlockTypes: append([]Type{}, n.Types...),
	}
	for _, t := range raw.Tensors {
		if t.Learned && len(t.Consumers) > 0 {
			a.ParamBytes += t.Bytes()
		}
	}
	for _, op := range g.Ops {
		a.VectorOps += g.Work(op, nil).Vector.Total()
	}
	for _, t := range g.Inputs {
		a.Inputs = append(a.Inputs, ReportTensor(g.Tensor(t)))
	}
	for _, t := range g.Outputs {
		a.Outputs = append(a.Outputs, ReportTensor(g.Tensor(t)))
	}
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
	highest := n.Total().PeakBytes
	for _, s := range n.Stages {
		a.Stages = append(a.Stages, StageReport{s.Name, s.End - s.First, n.reportUse(s.Use, s.Exit, highest), n.typesOf(s)})
	}
	for i, b := range n.Blocks {
		x := BlockReport{Index: i, Stage: n.Stages[b.Stage].Name, Type: n.Types[b.Type].Name,
			UseReport: n.reportUse(b.Use, b.Exit, highest),
			LiveBytes: n.LiveBytes[b.First:b.End]}
		for _, l := range n.Layers[b.First:b.End] {
			x.LayerNames = append(x.LayerNames, l.Name)
		}
		a.Blocks = append(a.Blocks, x)
	}
	return a, nil
}

// ReportTensor is the report of a tensor.
func ReportTensor(t *model.Tensor) TensorReport {
	return TensorReport{t.Name, append(model.Shape{}, t.Shape...), t.DType.String(), t.Bytes()}
}

func (n *Network) reportUse(u Use, exit model.TensorID, highest int64) UseReport {
	tensor := func(id model.TensorID) *TensorReport {
		if id == noTensor {
			return nil
		}
		t := ReportTensor(n.Graph.Tensor(id))
		return &t
	}
	return UseReport{LayerCount: u.Layers, Operators: u.Operators, Output: tensor(exit),
		PeakBytes: u.PeakBytes, PeakShare: float64(u.PeakBytes) / float64(max(1, highest)), ActivationBytes: u.SumBytes,
		Params: u.Params, ParamBytes: u.ParamBytes, MACs: u.MACs, LargestActivation: tensor(u.Largest)}
}

// typesOf writes the types of a stage's blocks, such as "E 3D", or how many there are if that is long.
func (n *Network) typesOf(s Stage) string {
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
	switch text := strings.Join(parts, " "); {
	case len(text) <= 20:
		return text
	case len(different) == 1:
		return "1 type"
	default:
		return fmt.Sprintf("%d types", len(different))
	}
}

// reportPasses sums up all sweeps, in the order of the table of passes.
func reportPasses(sweeps []simplify.Report) []PassReport {
	list := []PassReport{}
	for _, p := range simplify.Passes() {
		sum := PassReport{Pass: p.Name, Doc: p.Doc}
		for _, r := range sweeps {
			if r.Pass == p.Name {
				sum.Changes += r.Changes
				sum.OperatorsRemoved += r.OpsBefore - r.OpsAfter
			}
		}
		list = append(list, sum)
	}
	return list
}

// reportKinds lists the kinds of the network as it was, then those that simplification has brought.
func reportKinds(before, after *model.Graph) []KindReport {
	list := []KindReport{}
	at := func(k model.Kind) *KindReport {
		i := slices.IndexFunc(list, func(x KindReport) bool { return x.Kind == k })
		if i < 0 {
			i = len(list)
			list = append(list, KindReport{Kind: k})
			if info, ok := model.Info(k); ok {
				list[i].Class = info.Class.String()
			}
		}
		return &list[i]
	}
	for _, k := range before.KindCounts() {
		at(k.Kind).Before = k.Count
	}
	for _, k := range after.KindCounts() {
		at(k.Kind).After = k.Count
	}
	return list
}

func largestOf(g *model.Graph, keep func(*model.Tensor) bool) []TensorReport {
	list := []TensorReport{}
	for _, t := range g.Tensors {
		if keep(t) {
			list = append(list, ReportTensor(t))
		}
	}
	// The sort is stable, so that the order of tensors decides between equals.
	slices.SortStableFunc(list, func(a, b TensorReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list[:min(len(list), largest)]
}
