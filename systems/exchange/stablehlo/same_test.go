package stablehlo_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/exchange/stablehlo"
)

func init() { stablehlo.Register() }

// The same networks in both formats, each as testdata/NAME.onnx and testdata/NAME.mlir: two products with biases,
// convolutions with a residual, and a head of attention.
func TestSameSchedule(t *testing.T) {
	machine, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mlp", "conv", "head"} {
		path := filepath.Join("testdata", name)
		for _, batch := range []int64{1, 8} {
			for _, variant := range []string{"tvm", "cross-layer", "tiled"} {
				r, err := recipes.Lookup(variant)
				if err != nil {
					t.Fatal(err)
				}
				var took [2]float64
				for i, file := range []string{path + ".onnx", path + ".mlir"} {
					net, err := network.Open(file, network.Options{})
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
					t.Errorf("%s, batch %d, %s: %v s of ONNX, %v of StableHLO", name, batch, variant, took[0], took[1])
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
