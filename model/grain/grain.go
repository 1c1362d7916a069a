package grain

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// Result is a graph at the frameworks' grain.
type Result struct {
	Graph *model.Graph
	// Scalars are the values of the constants that the pass put in.
	Scalars map[model.TensorID]float64
	// Expanded is the number of operators that were taken apart.
	Expanded int
}

// A Grain says which operators stay whole.
type Grain string

// The grains, the coarsest first.
const (
	Given     Grain = "given"     // as the file or the zoo has them
	Framework Grain = "framework" // as graphs of TensorFlow 1 and PyTorch have them
	Primitive Grain = "primitive" // as compilers fuse them: element-wise, reductions, moves, products
)

// Grains lists them.
func Grains() []Grain { return []Grain{Given, Framework, Primitive} }

// Parse finds a grain by name; "" is Given.
func Parse(name string) (Grain, error) {
	if name == "" {
		return Given, nil
	}
	if slices.Contains(Grains(), Grain(name)) {
		return Grain(name), nil
	}
	return "", fmt.Errorf("unknown grain %q, expected one of given, framework, primitive", name)
}

// To takes operators apart as far as a grain has them in parts. It puts none together:
// what a file has in parts stays so. The given graph must be valid, and stays as it is.
func To(g *model.Graph, grain Grain) (Result, error) {
	rules := rulesOf[grain]
	if rules == nil {
		return Result{Graph: g}, nil
	}
	e := &expander{Builder: model.NewBuilder(g.Name), from: g, id: make([]model.TensorID, len(g.Tensors)),
		scalars: map[model.TensorID]float64{}}
	for _, t := range g.Inputs { // in their order
		u := g.Tensor(t)
		e.id[t] = e.Input(u.Name, u.DType, u.Shape...)
	}
	for _, u := range g.Tensors {
		switch {
		case u.Role == model.Constant && u.Learned:
			e.id[u.ID] = e.Param(u.Name, u.DType, u.Shape...)
		case u.Role == model.Constant:
			e.id[u.ID] = e.Const(u.Name, u.DType, u.Ints, u.Shape...)
		}
	}
	res := Result{}
	for _, op := range g.Ops {
		in := make([]model.TensorID, len(op.Inputs))
		for k, t := range op.Inputs {
			in[k] = e.id[t]
		}
		names := make([]string, len(op.Outputs))
		for k, t := range op.Outputs {
			names[k] = g.Tensor(t).Name
		}
		e.op, e.out = op, names[0]
		if rule, ok := rules[op.Kind]; ok {
			if y, ok := rule(e, op, in); ok {
				e.id[op.Outputs[0]] = y
				res.Expanded++
				continue
			}
		}
		for k, t := range e.OpNamed(op.Kind, op.Name, *op.Attr, in, names) {
			e.id[op.Outputs[k]] = t
		}
	}
	for _, t := range g.Outputs {
		e.Output(e.id[t])
	}
	out, err := e.Build()
	if err != nil {
		return Result{}, fmt.Errorf("grain: %w", err)
	}
	res.Graph, res.Scalars = out, e.scalars
	return res, nil
}

type expander struct {
	*model.Builder
	from    *model.Graph
	id      []model.TensorID // in the new graph, of the given one's tensors
	scalars map[model.TensorID]float64
	op      *model.Op // being taken apart
	out     string    // name of its result
}

// A rule builds the parts of an operator from its inputs and returns the result, or
// false if the operator must stay whole.
type rule func(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool)

var (
	common = map[model.Kind]rule{
		"RMSNorm":   normalised(rmsNorm),
		"GroupNorm": normalised(groupNorm),
		"Silu":      gated("Sigmoid"),
		"HardSwish": gated("HardSigmoid"),
		"Mish":      gated("Softplus", "Tanh"),
	}
	rulesOf = map[Grain]map[model.Kind]rule{
		Framework: with(common, map[model.Kind]rule{"LayerNorm": normalised(moments), "Gather": bag,
			"Gelu": cdf}),
		Primitive: with(common, map[model.Kind]rule{"LayerNorm": normalised(layerNorm), "Gather": lookUp,
			"Gelu": gelu, "Softmax": softmax}),
	}
)

func with(a, b map[model.Kind]rule) map[model.Kind]rule {
	a = maps.Clone(a)
	maps.Copy(a, b)
	return a
}

// part adds an operator called after the one being taken apart.
func (e *expander) part(name string, kind model.Kind, attr model.Attr, in ...model.TensorID) model.TensorID {
	return e.Op(kind, e.op.Name+"/"+name, attr, in...)
}

// last adds the operator whose result is the result of the whole.
func (e *expander) last(kind model.Kind, attr model.Attr, in ...model.TensorID) (model.TensorID, bool) {
	out := e.OpNamed(kind, e.op.Name, attr, in, []string{e.out})
	if len(out) != 1 {
		return 0, true // Build reports it
	}
	return out[0], true
}

// scalar is a constant of the type of x.
func (e *expander) scalar(name string, x model.TensorID, value float64) model.TensorID {
	id := e.Const(e.op.Name+"/"+name, e.Tensor(x).DType, nil, 1)
	e.scalars[id] = value
	return id
}

// reduce reduces x over axes and keeps them, with extent one.
func (e *expander) reduce(name string, kind model.Kind, axes []int64, x model.TensorID) model.TensorID {
	return e.part(name, kind, model.Attr{Axes: axes, KeepDims: true}, x)
}

func softmax(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool) {
	if op.Attr.Variant != "" {
		return 0, false
	}
	axes := op.Attr.Axes
	if len(axes) == 0 {
		axes = []int64{op.Attr.Axis}
	}
	x := e.part("subtract", "Sub", model.Attr{}, in[0], e.reduce("max", "ReduceMax", axes, in[0]))
	x = e.part("exp", "Exp", model.Attr{}, x)
	return e.last("Div", model.Attr{}, x, e.reduce("sum", "ReduceSum", axes, x))
}

// trailing are the axes from op's Axis on.
func trailing(e *expander, op *model.Op) []int64 {
	return model.Dims(int(op.Attr.Axis), len(e.from.Tensor(op.Inputs[0]).Shape))
}

// epsilon of a normalisation, 1e-5 where the variant does not say; false if it says anything else.
func epsilon(variant string) (float64, bool) {
	eps := 1e-5
	for _, word := range strings.Fields(variant) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "epsilon":
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, false
			}
			eps = v
		case "stash_type": // the type of the sums
		default:
			return 0, false
		}
	}
	return eps, true
}

// normalised is a rule of a normalisation with an epsilon.
func normalised(rule func(*expander, *model.Op, []model.TensorID, float64) (model.TensorID, bool)) rule {
	return func(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool) {
		eps, ok := epsilon(op.Attr.Variant)
		if !ok {
			return 0, false
		}
		return rule(e, op, in, eps)
	}
}

// root is the square root of the mean square of x over axes, with epsilon.
func (e *expander) root(x model.TensorID, axes []int64, eps float64) model.TensorID {
	v := e.part("square", "Mul", model.Attr{}, x, x)
	v = e.reduce("variance", "ReduceMean", axes, v)
	v = e.part("add", "Add", model.Attr{}, v, e.scalar("epsilon", x, eps))
	return e.part("root", "Sqrt", model.Attr{}, v)
}

// affine scales and shifts x by as many of the parameters as there are; divisor comes first.
func (e *expander) affine(x, divisor model.TensorID, params []model.TensorID) (model.TensorID, bool) {
	kinds := []model.Kind{"Div", "Mul", "Add"}
	names := []string{"divide", "scale"}
	operands := append([]model.TensorID{divisor}, params...)
	for k, p := range operands {
		if k == len(operands)-1 {
			return e.last(kinds[k], model.Attr{}, x, p)
		}
		x = e.part(names[k], kinds[k], model.Attr{}, x, p)
	}
	panic("grain: no divisor")
}

func layerNorm(e *expander, op *model.Op, in []model.TensorID, eps float64) (model.TensorID, bool) {
	axes := trailing(e, op)
	x := e.part("subtract", "Sub", model.Attr{}, in[0], e.reduce("mean", "ReduceMean", axes, in[0]))
	return e.affine(x, e.root(x, axes, eps), in[1:])
}

// moments is a layer normalisation as tf.nn.moments and tf.nn.batch_normalization make it,
// with which TensorFlow 1 and Keras write layer normalisations: the squared difference
// from the mean is used for the variance only, and x is scaled and shifted once.
func moments(e *expander, op *model.Op, in []model.TensorID, eps float64) (model.TensorID, bool) {
	axes := trailing(e, op)
	mean := e.reduce("mean", "ReduceMean", axes, in[0])
	scale := e.part("reciprocal", "Reciprocal", model.Attr{},
		e.root(e.part("difference", "Sub", model.Attr{}, in[0], mean), axes, eps))
	if len(in) > 1 {
		scale = e.part("scale", "Mul", model.Attr{}, scale, in[1])
	}
	x := e.part("scaled", "Mul", model.Attr{}, in[0], scale)
	shift := e.part("mean/scaled", "Mul", model.Attr{}, mean, scale)
	if len(in) < 3 {
		return e.last("Sub", model.Attr{}, x, shift)
	}
	return e.last("Add", model.Attr{}, x, e.part("shift", "Sub", model.Attr{}, in[2], shift))
}

func rmsNorm(e *expander, op *model.Op, in []model.TensorID, eps float64) (model.TensorID, bool) {
	return e.affine(in[0], e.root(in[0], trailing(e, op), eps), in[1:])
}

func groupNorm(e *expander, op *model.Op, in []model.TensorID, eps float64) (model.TensorID, bool) {
	s := e.from.Tensor(op.Inputs[0]).Shape
	groups := []int64{s[0], op.Attr.Group, s.Elements() / (s[0] * op.Attr.Group)}
	x := e.part("groups", "Reshape", model.Attr{Shape: groups}, in[0])
	x = e.part("subtract", "Sub", model.Attr{}, x, e.reduce("mean", "ReduceMean", []int64{2}, x))
	d := e.root(x, []int64{2}, eps)
	if len(in) == 1 {
		x = e.part("divide", "Div", model.Attr{}, x, d)
		return e.last("Reshape", model.Attr{Shape: s.Clone()}, x)
	}
	x = e.part("divide", "Div", model.Attr{}, x, d)
	x = e.part("channels", "Reshape", model.Attr{Shape: s.Clone()}, x)
	perChannel := slices.Repeat([]int64{1}, len(s)-1)
	perChannel[0] = s[1]
	scale := e.part("scale/channels", "Reshape", model.Attr{Shape: perChannel}, in[1])
	if len(in) == 2 {
		return e.last("Mul", model.Attr{}, x, scale)
	}
	x = e.part("scale", "Mul", model.Attr{}, x, scale)
	return e.last("Add", model.Attr{}, x, e.part("bias/channels", "Reshape", model.Attr{Shape: perChannel}, in[2]))
}

func gelu(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool) {
	return e.gelu(op, in, false)
}

// cdf is a GELU as BERT's TensorFlow code has it: x times half of the rest.
func cdf(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool) {
	return e.gelu(op, in, true)
}

func (e *expander) gelu(op *model.Op, in []model.TensorID, halfFirst bool) (model.TensorID, bool) {
	var y model.TensorID
	x := in[0]
	switch op.Attr.Variant {
	case "", "approximate=none":
		y = e.part("argument", "Mul", model.Attr{}, x, e.scalar("1/sqrt2", x, math.Sqrt2/2))
		y = e.part("erf", "Erf", model.Attr{}, y)
	case "approximate=tanh":
		y = e.part("square", "Mul", model.Attr{}, x, x)
		y = e.part("cube", "Mul", model.Attr{}, y, x)
		y = e.part("cubic", "Mul", model.Attr{}, y, e.scalar("0.044715", x, 0.044715))
		y = e.part("sum", "Add", model.Attr{}, x, y)
		y = e.part("argument", "Mul", model.Attr{}, y, e.scalar("sqrt2/pi", x, math.Sqrt(2/math.Pi)))
		y = e.part("tanh", "Tanh", model.Attr{}, y)
	default:
		return 0, false
	}
	y = e.part("add", "Add", model.Attr{}, y, e.scalar("one", x, 1))
	half := e.scalar("half", x, 0.5)
	if halfFirst {
		return e.last("Mul", model.Attr{}, x, e.part("cdf", "Mul", model.Attr{}, y, half))
	}
	return e.last("Mul", model.Attr{}, e.part("multiply", "Mul", model.Attr{}, x, y), half)
}

// gated is x times a function of x, in steps.
func gated(steps ...model.Kind) rule {
	return func(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool) {
		if op.Attr.Variant != "" {
			return 0, false
		}
		y := in[0]
		for _, k := range steps {
			y = e.part(strings.ToLower(string(k)), k, model.Attr{}, y)
		}
		return e.last("Mul", model.Attr{}, in[0], y)
	}
}

// lookUp keeps positions within the table, as frameworks do before they gather.
func lookUp(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool) {
	table, positions := e.from.Tensor(op.Inputs[0]), e.from.Tensor(op.Inputs[1])
	if table.Role != model.Constant || positions.Role == model.Constant {
		return 0, false
	}
	if p := positions.Producer; p != model.NoOp && e.from.Op(p).Kind == "Clip" {
		return 0, false // in parts already
	}
	limits := fmt.Sprintf("min=0 max=%d", table.Shape[op.Attr.Axis]-1)
	clipped := e.part("clip", "Clip", model.Attr{Variant: limits}, in[1])
	return e.last("Gather", *op.Attr, in[0], clipped)
}

// Bag is the Attr.Variant of a look-up that is written as the sum over a bag of positions,
// of which there is one: PyTorch's EmbeddingBag.
const Bag = "bag=sum"

// bag gathers the rows of the bag, and adds them up.
func bag(e *expander, op *model.Op, in []model.TensorID) (model.TensorID, bool) {
	if op.Attr.Variant != Bag || op.Attr.Axis != 0 {
		return 0, false
	}
	out := e.from.Tensor(op.Outputs[0]).Shape
	rank := int64(len(e.from.Tensor(op.Inputs[1]).Shape))
	rows := e.part("rows", "Gather", model.Attr{}, in[0], in[1])
	rows = e.part("bags", "Reshape", model.Attr{Shape: slices.Insert(out.Clone(), int(rank), 1)}, rows)
	return e.last("ReduceSum", model.Attr{Axes: []int64{rank}}, rows)
}
