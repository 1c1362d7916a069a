package simplify

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// pass is a row of the table.
type pass struct {
	name string
	// doc says what the pass is for and what Report.Changes counts.
	doc   string
	after []constraint
	run   func(*editor) int
}

// constraint is a pass that must stand earlier in the table.
type constraint struct{ pass, because string }

// passes in the order in which they run. Sweeping to a fixed point makes any order end in some fixed point; the
// constraints say which orders end in the best one, or sooner.
var passes = []pass{
	{"dead-code", "drops operators whose results reach no output; counts operators",
		nil, deadCode},
	{"fold-constants", "makes constants of operators that read nothing but constants; counts operators", []constraint{
		{"dead-code", "results without a reader are not computed"},
	}, foldConstants},
	{"remove-identities",
		"drops identities, dropouts, and reshapes, casts and the like that change nothing; counts operators",
		[]constraint{
			{"fold-constants", "an identity of a constant is a constant of its own name, not an alias"},
		}, removeIdentities},
	{"move-constants",
		"lets moves of what is computed from constants pass element-wise operators, and other slices a concat; counts those passed",
		[]constraint{
			{"fold-constants", "what is small is a constant, and needs no move"},
			{"remove-identities", "a cast that changes nothing hides the pair"},
		}, moveConstants},
	{"merge-duplicates",
		"merges operators of equal kind, attributes and inputs; counts operators and equal integer constants",
		[]constraint{
			{"remove-identities", "two readers of one value are seen to read the same only without the identities between"},
			{"fold-constants", "equal shape literals must be constants to compare"},
		}, mergeDuplicates},
	{"fold-batch-norms", "folds a batch normalisation into the convolution or product before it; counts operators",
		[]constraint{
			{"dead-code", "a dead reader of the convolution would seem to need its unscaled result"},
			{"fold-constants", "scale and shift may be computed from constants"},
			{"remove-identities", "a dropout between the two hides the pair"},
			{"merge-duplicates",
				"a folded convolution has weights of its own and equals no other one any more; and of two equal normalisations behind one convolution, neither is foldable until they are one"},
		}, foldBatchNorms},
}

func init() {
	if err := checkOrder(passes); err != nil {
		panic("simplify: " + err.Error())
	}
}

// checkOrder verifies that names are unique and every constraint is met.
func checkOrder(table []pass) error {
	at := map[string]int{}
	for i, p := range table {
		if _, dup := at[p.name]; dup {
			return fmt.Errorf("pass %q stands twice in the table", p.name)
		}
		at[p.name] = i
	}
	for i, p := range table {
		for _, c := range p.after {
			j, ok := at[c.pass]
			if !ok {
				return fmt.Errorf("pass %q comes after %q, which does not exist", p.name, c.pass)
			}
			if j >= i {
				return fmt.Errorf("pass %q must come after %q: %s", p.name, c.pass, c.because)
			}
		}
	}
	return nil
}

// PassInfo describes a row of the table of passes.
type PassInfo struct {
	Name, Doc string
	After     []string
}

// Passes lists the passes in the order in which they run.
func Passes() []PassInfo {
	var infos []PassInfo
	for _, p := range passes {
		info := PassInfo{Name: p.name, Doc: p.doc}
		for _, c := range p.after {
			info.After = append(info.After, c.pass)
		}
		infos = append(infos, info)
	}
	return infos
}

func deadCode(e *editor) int {
	g := e.g
	needed := make([]bool, len(g.Tensors))
	for _, o := range g.Outputs {
		needed[o] = true
	}
	n := 0
	for i := len(g.Ops) - 1; i >= 0; i-- {
		op := g.Ops[i]
		live := slices.ContainsFunc(op.Outputs, func(t model.TensorID) bool { return needed[t] })
		if !live {
			e.dead[i] = true
			n++
			continue
		}
		for _, t := range op.Inputs {
			needed[t] = true
		}
	}
	return n
}

// smallConstant is the size in elements up to which a constant may be larger than what it is computed from. A larger
// one costs more to fetch than to compute, so that an Expand of a scalar, say, stays.
const smallConstant = 4096

func foldConstants(e *editor) int {
	g, n := e.g, 0
	for i, op := range g.Ops {
		known, learned := true, false
		var before, after int64
		for _, in := range op.Inputs {
			t := g.Tensors[in]
			known = known && t.Role == model.Constant
			learned = learned || t.Learned
			before += t.Bytes()
		}
		elements := int64(0)
		for _, o := range op.Outputs {
			t := g.Tensors[o]
			known = known && !e.isOutput[o]
			after += t.Bytes()
			elements += t.Shape.Elements()
		}
		if !known || (after > before && elements > smallConstant) {
			continue
		}
		for _, o := range op.Outputs {
			t := g.Tensors[o]
			t.Role, t.Learned = model.Constant, learned
			if sameElements[op.Kind] {
				t.Ints = g.Tensors[op.Inputs[0]].Ints
			}
		}
		e.dead[i] = true
		n++
	}
	return n
}

// sameElements lists the kinds whose output has the elements of their input in the same order.
var sameElements = map[model.Kind]bool{"Identity": true, "Dropout": true, "Reshape": true}

// noOp reports, per kind, whether an operator returns its first input as it is. The shapes are equal already.
var noOp = map[model.Kind]func(op *model.Op, in, out *model.Tensor) bool{
	"Identity": always,
	"Dropout":  always,
	"Reshape":  always,
	"Expand":   always,
	"Slice": func(op *model.Op, _, _ *model.Tensor) bool {
		return !slices.ContainsFunc(op.Attr.Starts, func(s int64) bool { return s != 0 })
	},
	// An equal shape does not rule out a crop on one side and a pad on the other.
	"Pad": func(op *model.Op, _, _ *model.Tensor) bool {
		return !slices.ContainsFunc(op.Attr.Pads, func(v int64) bool { return v != 0 })
	},
	"Resize": always,
	"Split":  always, // into one part
	"Concat": func(op *model.Op, _, _ *model.Tensor) bool { return len(op.Inputs) == 1 },
	"Cast":   func(_ *model.Op, in, out *model.Tensor) bool { return in.DType == out.DType },
	"Transpose": func(op *model.Op, _, _ *model.Tensor) bool {
		for i, p := range op.Attr.Perm {
			if int64(i) != p {
				return false
			}
		}
		return true
	},
}

func always(*model.Op, *model.Tensor, *model.Tensor) bool { return true }

func removeIdentities(e *editor) int {
	g, n := e.g, 0
	for i, op := range g.Ops {
		e.resolve(op)
		f := noOp[op.Kind]
		if f == nil || len(op.Outputs) != 1 {
			continue
		}
		in, out := g.Tensors[op.Inputs[0]], g.Tensors[op.Outputs[0]]
		if !in.Shape.Equal(out.Shape) || in.DType != out.DType || !f(op, in, out) || !e.canReplace(out.ID, in.ID) {
			continue
		}
		e.replace(out.ID, in.ID)
		e.dead[i] = true
		n++
	}
	return n
}

// commutative kinds compute the same from two inputs in either order.
var commutative = map[model.Kind]bool{"Add": true, "Mul": true, "Max": true, "Min": true}

func mergeDuplicates(e *editor) int {
	g, n := e.g, 0
	constants := map[string]model.TensorID{}
	for _, t := range g.Tensors {
		if t.Role != model.Constant || t.Learned || len(t.Consumers) == 0 || e.isOutput[t.ID] ||
			len(t.Ints) == 0 || int64(len(t.Ints)) != t.Shape.Elements() {
			continue
		}
		k := []byte{byte(t.DType)}
		k = appendInts(k, t.Shape)
		k = appendInts(k, t.Ints)
		if first, ok := constants[string(k)]; ok {
			e.replace(t.ID, first)
			n++
		} else {
			constants[string(k)] = t.ID
		}
	}
	first := make(map[string]*model.Op, len(g.Ops))
	var k []byte
	for i, op := range g.Ops {
		e.resolve(op)
		k = appendKey(k[:0], op)
		twin, ok := first[string(k)]
		if !ok {
			first[string(k)] = op
			continue
		}
		same := len(twin.Outputs) == len(op.Outputs)
		for j := 0; same && j < len(op.Outputs); j++ {
			a, b := g.Tensors[twin.Outputs[j]], g.Tensors[op.Outputs[j]]
			same = a.Shape.Equal(b.Shape) && a.DType == b.DType && e.canReplace(b.ID, a.ID)
		}
		if !same {
			continue
		}
		for j, o := range op.Outputs {
			e.replace(o, twin.Outputs[j])
		}
		e.dead[i] = true
		n++
	}
	return n
}

// appendKey appends a string that two operators share only if they compute the same from the same tensors.
func appendKey(k []byte, op *model.Op) []byte {
	k = append(binary.AppendVarint(k, int64(len(op.Kind))), op.Kind...)
	k = op.Attr.AppendKey(k)
	if len(op.Inputs) == 2 && commutative[op.Kind] && op.Inputs[0] > op.Inputs[1] {
		return appendInts(k, []model.TensorID{op.Inputs[1], op.Inputs[0]})
	}
	return appendInts(k, op.Inputs)
}

func appendInts[S ~[]E, E ~int | ~int64](k []byte, s S) []byte {
	k = binary.AppendVarint(k, int64(len(s)))
	for _, v := range s {
		k = binary.AppendVarint(k, int64(v))
	}
	return k
}

// foldBatchNorms turns normalise(W x + b) into W' x + b' with W' = s W and b' = s (b - mean) + shift, where s = scale /
// sqrt(variance + epsilon) belongs to the output channel. The products and their number stay the same.
func foldBatchNorms(e *editor) int {
	g, n := e.g, 0
	for i, op := range g.Ops {
		if op.Kind != "BatchNorm" || !e.constants(op.Inputs[1:]) {
			continue
		}
		mid := g.Tensors[op.Inputs[0]]
		if mid.Producer == model.NoOp || len(mid.Consumers) != 1 || e.isOutput[mid.ID] {
			continue
		}
		conv := g.Ops[mid.Producer]
		channels := mid.Shape[1]
		switch conv.Kind {
		case "Conv", "ConvTranspose":
		case "Gemm":
			// A bias that differs between rows stays a matrix; leave that to nobody's network.
			if len(conv.Inputs) > 2 {
				if s := g.Tensors[conv.Inputs[2]].Shape; len(s) == 2 && s[0] != 1 {
					continue
				}
			}
		default:
			continue
		}
		if !e.constants(conv.Inputs[1:]) {
			continue
		}
		conv.Inputs[1] = e.own(conv, 1, conv.Name+".weight")
		switch {
		case len(conv.Inputs) > 2 && g.Tensors[conv.Inputs[2]].Shape.Elements() == channels:
			conv.Inputs[2] = e.own(conv, 2, conv.Name+".bias")
			if g.Tensors[op.Inputs[2]].Learned {
				// A bias of zeros, which some exporters write, has the shift now.
				g.Tensors[conv.Inputs[2]].Learned = true
			}
		default:
			// The shift becomes the bias under its own name, if it is free to.
			shift := g.Tensors[op.Inputs[2]]
			id := shift.ID
			if !e.onlyReader(op, 2) || len(shift.Shape) != 1 {
				id = e.constant(model.Tensor{Name: conv.Name + ".bias", Shape: model.Shape{channels}, DType: shift.DType,
					Learned: shift.Learned})
			}
			conv.Inputs = append(conv.Inputs[:2:2], id)
		}
		conv.Outputs = op.Outputs
		e.dead[i] = true
		n++
	}
	return n
}

func (e *editor) constants(ids []model.TensorID) bool {
	return !slices.ContainsFunc(ids, func(id model.TensorID) bool { return e.g.Tensors[id].Role != model.Constant })
}

// onlyReader reports whether op's input k has no other use.
func (e *editor) onlyReader(op *model.Op, k int) bool {
	t := e.g.Tensors[op.Inputs[k]]
	uses := 0
	for _, in := range op.Inputs {
		if in == t.ID {
			uses++
		}
	}
	return uses == 1 && !e.isOutput[t.ID] && (len(t.Consumers) == 0 || len(t.Consumers) == 1 && t.Consumers[0] == op.ID)
}

// own returns op's input k, or a copy of it if others read it too: what is folded in must not reach them.
func (e *editor) own(op *model.Op, k int, name string) model.TensorID {
	if e.onlyReader(op, k) {
		return op.Inputs[k]
	}
	t := e.g.Tensors[op.Inputs[k]]
	return e.constant(model.Tensor{Name: name, Shape: t.Shape.Clone(), DType: t.DType, Learned: t.Learned})
}
