package stablehlo

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/onnx"
)

// Options adjust an import as they do that of ONNX files. The batch is the leading dimension of the first argument that
// is no weight, and what follows it; Dims binds dimensions "?" of arguments by name, such as arg0.1 of %arg0.
type Options = onnx.Options

// maxBytes bounds a file. Compilers leave large constants out or write them as blobs.
const maxBytes = 1 << 30

// Register gives files of StableHLO text to the readers of networks, and bytecode (.mlirbc), which is refused.
func Register() {
	network.Register(".mlir", func(path string, batch int64, opt network.Options) (*model.Graph, error) {
		return Import(path, Options{Batch: batch, Float: &opt.DType, Dims: opt.Dims, AllowUnknown: opt.AllowUnknown,
			Warn: opt.Warn})
	})
}

// Import reads the network in a file.
func Import(path string, opt Options) (*model.Graph, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ImportReader(path, f, opt)
}

// ImportReader reads a network from r, which is called name in errors and becomes the graph's name
// without folder and extension.
func ImportReader(name string, r io.Reader, opt Options) (*model.Graph, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("more than %d bytes", maxBytes)
	}
	var g *model.Graph
	if err == nil {
		base := filepath.Base(name)
		g, err = build(strings.TrimSuffix(base, filepath.Ext(base)), string(data), opt)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}

// builder makes the graph of a flat module.
type builder struct {
	*source
	opt   Options
	b     *model.Builder
	class int   // of the batch
	old   int64 // the batch in the file, and the one to build
	batch int64
	to    *model.DType
	x     *flat // being built
}

func build(title, src string, opt Options) (g *model.Graph, err error) {
	defer bail.Caught(&err)
	n := flatten(bail.Of(parse(src)))
	b := &builder{source: n, opt: opt, b: model.NewBuilder(title), class: -1, to: opt.Float}
	to := opt.Float
	if to != nil && !to.IsFloat() {
		if *to != model.I8 {
			return nil, fmt.Errorf("floats cannot become %v", *to)
		}
		f := model.F16
		b.to = &f
	}
	b.arguments()
	for _, x := range n.ops {
		b.fuse(x)
	}
	for _, x := range n.ops {
		b.x = x
		if !x.fused {
			b.op(x)
		}
		b.typed(x)
	}
	if len(n.results) == 0 {
		return nil, fmt.Errorf("the network has no result")
	}
	for _, v := range n.results {
		if v.typ.tensor {
			b.x = v.by
			b.b.Output(b.tensor(v))
		}
	}
	g = bail.Of(b.b.Build())
	if to != nil && !to.IsFloat() {
		g.Retype(model.F16, *to)
	}
	return g, g.DropDead()
}

// arguments makes inputs and weights, and finds the batch.
func (b *builder) arguments() {
	first, weights := (*val)(nil), []string(nil)
	known, marks := map[string]int64{}, make([]mark, len(b.args))
	for i, v := range b.args {
		marks[i] = marked(v.arg)
		if first == nil && marks[i] != isWeight && len(v.dims) > 0 && !b.rightOnly(v) && b.used(v) {
			first = v
		}
	}
	if first == nil { // all look like weights
		for i, v := range b.args {
			if marks[i] != isWeight && len(v.dims) > 0 && b.used(v) {
				first = v
				break
			}
		}
	}
	if first == nil && b.opt.Batch > 1 {
		bail.Check(fmt.Errorf("batch %d: the network has no argument with a leading dimension", b.opt.Batch))
	}
	if first != nil {
		b.old = first.typ.shape[0]
		for _, x := range b.ops {
			if name := short(x.name); (name == "reshape" || name == "dynamic_reshape") && len(x.out) > 0 {
				a, y := x.in[0], x.out[0]
				model.ReshapePairs(a.typ.shape, y.typ.shape, b.old == 1, func(d, e int) { b.dims.Join(a.dims[d], y.dims[e]) })
			}
		}
		b.class = b.dims.Find(first.dims[0])
		if b.batch = b.opt.Batch; b.batch == 0 {
			b.batch = b.old
		}
	}
	for i, v := range b.args {
		dt, err := b.dtype(v.typ)
		if err != nil {
			failAt(v.arg.at, "", "argument %s %v", v.arg.name, err)
		}
		shape := make(model.Shape, len(v.dims))
		for d, n := range v.typ.shape {
			name := fmt.Sprintf("%s.%d", v.name, d)
			given, ok := b.opt.Dims[name]
			switch follows := b.dims.Find(v.dims[d]) == b.class; {
			case n == dynamic && ok:
				n = given
			case n == dynamic && follows && b.batch > 0:
				n = b.batch
			case n == dynamic:
				failAt(v.arg.at, "", "argument %s has type %s; give the extent of dimension %d by --dim %s=N",
					v.arg.name, v.typ, d, name)
			default:
				if n, err = b.scaled(n, v.dims[d]); err != nil {
					failAt(v.arg.at, "", "argument %s of type %s: %v", v.arg.name, v.typ, err)
				}
			}
			if v.typ.shape[d] == dynamic {
				known[name] = n
			}
			shape[d] = n
		}
		if err := shape.Check(); err != nil {
			failAt(v.arg.at, "", "argument %s: %v", v.arg.name, err)
		}
		v.shape = shape
		weight := marks[i] == isWeight || marks[i] == unmarked && v != first && b.rightOnly(v) &&
			(len(v.dims) == 0 || b.dims.Find(v.dims[0]) != b.class)
		switch {
		case !b.used(v):
			v.constant = true
		case weight:
			v.constant = true
			v.id, v.made = b.b.Param(v.name, dt, shape...), true
			if marks[i] == unmarked {
				weights = append(weights, v.arg.name)
			}
		default:
			v.id, v.made = b.b.Input(v.name, dt, shape...), true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.opt.Dims)) {
		if _, ok := known[name]; !ok {
			bail.Check(fmt.Errorf("no argument has a dimension ? that is called %q", name))
		}
	}
	if len(weights) > 0 && b.opt.Warn != nil {
		if n := len(weights); n > 6 {
			weights = append(weights[:5], fmt.Sprintf("... (%d)", n))
		}
		b.opt.Warn(fmt.Sprintf("arguments are taken as weights by what reads them: %s", strings.Join(weights, ", ")))
	}
	bail.Check(b.b.Err())
}

func (b *builder) used(v *val) bool { return len(v.users) > 0 || slices.Contains(b.results, v) }

type mark uint8

const (
	unmarked mark = iota
	isInput
	isWeight
)

// marked is the role of an argument by its attributes.
func marked(a *argument) mark {
	for _, name := range slices.Sorted(maps.Keys(a.attrs)) {
		v := a.attrs[name]
		text := strings.ToLower(v.word)
		switch name {
		case "ttcore.argument_type", "tt.argument_type":
			kind := ""
			for _, e := range v.list {
				kind = e.word
			}
			if kind == "parameter" || kind == "constant" {
				return isWeight
			}
			return isInput
		case "jax.arg_info", "jax.arg_name":
			for _, w := range []string{"params", "weights", "variables", "state"} {
				if strings.HasPrefix(text, w) {
					return isWeight
				}
			}
			return isInput
		}
	}
	return unmarked
}

// rightOnly reports whether a value is read as weights are: as a kernel, as the right side of a product without a
// batch, as a table of rows, as scale and shift.
func (b *builder) rightOnly(v *val) bool {
	for _, x := range v.users {
		at := slices.Index(x.in, v)
		switch name := short(x.name); name {
		case "convolution", "dot", "dot_general":
			p, _ := x.product()
			if at != 1 || name == "dot_general" && len(p.lb) > 0 {
				return false
			}
		case "broadcast_in_dim", "reshape", "convert", "transpose":
			y := x.out[0]
			small := len(v.dims) <= 1 && name == "broadcast_in_dim"
			if !small && !b.rightOnly(y) {
				return false
			}
		case "gather":
			if at != 0 {
				return false
			}
		case "batch_norm_inference":
			if at == 0 {
				return false
			}
		default:
			return false
		}
	}
	return len(v.users) > 0
}

// scaled is the extent of a dimension at the batch that is built.
func (b *builder) scaled(n int64, class int) (int64, error) {
	if b.class < 0 || b.old < 1 || b.old == b.batch || b.old == dynamic || n == dynamic ||
		b.dims.Find(class) != b.dims.Find(b.class) {
		return n, nil
	}
	if n%b.old != 0 || n > model.MaxElements {
		return 0, fmt.Errorf("%d follows the batch of %d, of which it is no multiple", n, b.old)
	}
	return n / b.old * b.batch, nil
}

// want is the shape that a result's type says; known is false where it has a "?".
func (b *builder) want(v *val) (s model.Shape, known bool) {
	known = true
	for d, n := range v.typ.shape {
		if n == dynamic {
			known = false
		}
		n, err := b.scaled(n, v.dims[d])
		if err != nil {
			b.fail("result %s: %v", v.typ, err)
		}
		s = append(s, n)
	}
	if known {
		if err := s.Check(); err != nil {
			b.fail("result: %v", err)
		}
	}
	return s, known
}

// fail ends the import with an error of the operator that is being built.
func (b *builder) fail(format string, args ...any) { failAt(b.x.at, b.x.name, format, args...) }

// refuse ends the operator that is being built, which the graph can't have but as an unknown one.
func (b *builder) refuse(why string) { panic(unread(why)) }

func (b *builder) check(err error) {
	if err != nil {
		b.fail("%v", err)
	}
}

var elements = map[string]model.DType{"f16": model.F16, "f32": model.F32, "f64": model.F64, "bf16": model.BF16,
	"f4E2M1FN": model.F4, "i1": model.Bool, "i2": model.I2, "ui2": model.U2, "i4": model.I4, "ui4": model.U4,
	"i8": model.I8, "ui8": model.U8, "i16": model.I16, "ui16": model.I16, "i32": model.I32, "ui32": model.I32,
	"i64": model.I64, "ui64": model.I64, "index": model.I64}

// typeOf is the type of a value's elements.
func (b *builder) typeOf(v *val) model.DType {
	dt, err := b.dtype(v.typ)
	b.check(err)
	return dt
}

func (b *builder) dtype(t tensorType) (model.DType, error) {
	d, ok := elements[strings.TrimPrefix(t.elem, "s")]
	if strings.HasPrefix(t.elem, "f8E") {
		d, ok = model.F8, true
	}
	if !t.tensor || !ok {
		return 0, fmt.Errorf("has type %s, which is not supported", t.text)
	}
	if d.IsFloat() && !d.Narrow() && b.to != nil { // narrow storage stays
		return *b.to, nil
	}
	return d, nil
}
