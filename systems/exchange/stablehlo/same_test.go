package stablehlo_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/onnx"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/exchange/stablehlo"
)

func init() { stablehlo.Register() }

const f = model.F32

// The same networks in both formats: what a builder makes and ONNX files hold, and modules written by hand in
// testdata.
var both = []struct {
	name  string
	build func(b *model.Builder)
}{
	{"mlp", func(b *model.Builder) {
		x := b.Input("x", f, 8, 256)
		h := b.Op("Gemm", "h", model.Attr{}, x, b.Param("w1", f, 256, 512), b.Param("b1", f, 512))
		h = b.Op("Relu", "r", model.Attr{}, h)
		y := b.Op("Gemm", "y", model.Attr{TransB: true}, h, b.Param("w2", f, 64, 512), b.Param("b2", f, 64))
		b.Output(b.Op("Softmax", "p", model.Attr{Axis: 1}, y))
	}},
	{"conv", func(b *model.Builder) {
		conv := func(name string, x model.TensorID, in, out, k, stride, pad int64) model.TensorID {
			return b.Op("Conv", name, model.Attr{Strides: []int64{stride, stride}, Dilations: []int64{1, 1},
				Pads: []int64{pad, pad, pad, pad}, Group: 1},
				x, b.Param(name+".w", f, out, in, k, k), b.Param(name+".b", f, out))
		}
		x := b.Input("x", f, 4, 3, 32, 32)
		a := b.Op("Relu", "r1", model.Attr{}, conv("c1", x, 3, 16, 3, 1, 1))
		p := b.Op("MaxPool", "p", model.Attr{Kernel: []int64{2, 2}, Strides: []int64{2, 2}, Dilations: []int64{1, 1},
			Pads: []int64{0, 0, 0, 0}}, a)
		c := b.Op("Relu", "r2", model.Attr{}, conv("c2", p, 16, 16, 3, 1, 1))
		s := b.Op("Add", "s", model.Attr{}, c, p)
		d := b.Op("Relu", "r3", model.Attr{}, conv("c3", s, 16, 32, 1, 2, 0))
		m := b.Op("ReduceMean", "m", model.Attr{Axes: []int64{2, 3}}, d)
		b.Output(b.Op("Gemm", "y", model.Attr{}, m, b.Param("w", f, 32, 10), b.Param("b", f, 10)))
	}},
	{"head", func(b *model.Builder) {
		x := b.Input("x", f, 2, 128, 256)
		project := func(name string) model.TensorID {
			y := b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".w", f, 256, 64))
			return b.Op("Add", name+"b", model.Attr{}, y, b.Param(name+".b", f, 64))
		}
		q, k, v := project("q"), project("k"), project("v")
		t := b.Op("Transpose", "kt", model.Attr{Perm: []int64{0, 2, 1}}, k)
		s := b.Op("MatMul", "s", model.Attr{}, q, t)
		s = b.Op("Mul", "scaled", model.Attr{}, s, b.Const("scale", f, nil))
		p := b.Op("Softmax", "p", model.Attr{Axis: 2}, s)
		o := b.Op("MatMul", "o", model.Attr{}, p, v)
		y := b.Op("MatMul", "y", model.Attr{}, o, b.Param("w", f, 64, 256))
		b.Output(b.Op("Add", "sum", model.Attr{}, y, x))
	}},
}

func TestSameSchedule(t *testing.T) {
	machine, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range both {
		b := model.NewBuilder(c.name)
		c.build(b)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := onnx.Export(&file, g); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), c.name+".onnx")
		if err := os.WriteFile(path, file.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int64{1, 8} {
			for _, variant := range []string{"tvm", "cross-layer", "tiled"} {
				r, err := recipes.Lookup(variant)
				if err != nil {
					t.Fatal(err)
				}
				var took [2]float64
				for i, name := range []string{path, filepath.Join("testdata", c.name+".mlir")} {
					net, err := network.Open(name, network.Options{})
					if err != nil {
						t.Fatal(err)
					}
					res, err := scheduler.Run(context.Background(), net, machine, batch, r, scheduler.Options{})
					if err != nil {
						t.Fatal(err)
					}
					took[i] = res.LatencySeconds()
				}
				if took[0] != took[1] || took[0] <= 0 {
					t.Errorf("%s, batch %d, %s: %v s of ONNX, %v of StableHLO", c.name, batch, variant, took[0], took[1])
				}
			}
		}
	}
}

// Pieces of an output of which no layer reads any are in the DDR, though layers read others.
func TestPartlyReadOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "part.mlir")
	const all, part, square = "tensor<1x8192x64xf16>", "tensor<1x1024x64xf16>", "tensor<64x64xf16>"
	text := `module @part {
  func.func public @main(%x: ` + all + `, %w: ` + square + `, %v: ` + square + `) -> (` + all + `, ` + part + `) {
    %a = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (` + all + `, ` + square + `) -> ` + all + `
    %y = stablehlo.tanh %a : ` + all + `
    %s = stablehlo.slice %y [0:1, 0:1024, 0:64] : (` + all + `) -> ` + part + `
    %z = stablehlo.dot_general %s, %v, contracting_dims = [2] x [0] : (` + part + `, ` + square + `) -> ` + part + `
    return %y, %z : ` + all + `, ` + part + `
  }
}`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	net, err := network.Open(file, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := scheduler.OpenMachine("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec.L1.SizeBytes = 32 << 10
	for _, recipe := range recipes.Tiled() {
		if _, err := scheduler.Run(t.Context(), net, spec, 4, recipe, scheduler.Options{}); err != nil {
			t.Errorf("%s: %v", recipe.Name, err)
		}
	}
}
