package scheduler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Networks of equal functions take equal time and have equal bounds: weights that are moved when the network runs or
// stored so, dequantised before or behind the move, products with transposed weights or as they are, attention over a
// window of a cache, with a new token or without, or over a cache of that length, and no longer than under a mask over
// all keys. A transposed convolution has no higher bound than a network of the plain convolutions of its phases takes.
// With DSASCHED_FULL=1 in the environment these are 200 pairs.
func TestEqualFunctions(t *testing.T) {
	pairs := 12
	if os.Getenv("DSASCHED_FULL") != "" {
		pairs = 200
	}
	for n := range pairs {
		r := rand.New(rand.NewPCG(uint64(n), 7))
		pick := func(of ...int64) int64 { return of[r.IntN(len(of))] }
		spec, err := hardware.Load([]string{"stcp920", "a100", "goya"}[r.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := recipes.Lookup("cross-layer")
		if err != nil {
			t.Fatal(err)
		}
		price := func(name string, build func(b *model.Builder, batch int64)) (seconds, least float64) {
			net, err := network.Of(name, func(batch int64) (*model.Graph, error) {
				b := model.NewBuilder(name)
				build(b, batch)
				return b.Build()
			})
			if err != nil {
				t.Fatalf("pair %d: %v", n, err)
			}
			made, err := scheduler.Run(t.Context(), net, spec, 1, recipe, scheduler.Options{})
			if err != nil {
				t.Fatalf("pair %d: %v", n, err)
			}
			below, err := bound.Cold(t.Context(), net, made.Spec, 1)
			if err != nil {
				t.Fatalf("pair %d: %v", n, err)
			}
			if below.Seconds > made.LatencySeconds() {
				t.Errorf("pair %d, %s: bound %g s, simulated in %g", n, name, below.Seconds, made.LatencySeconds())
			}
			return made.LatencySeconds(), below.Seconds
		}
		rows, in, out := pick(1, 8, 60), pick(128, 200, 512), pick(64, 300, 1024)
		scales := r.IntN(3)
		codes := []model.DType{model.I8, model.F8, model.U4, model.F4, model.I2}[r.IntN(5)]
		weight := func(b *model.Builder, turned bool) model.TensorID {
			shape, axis := []int64{in, out}, int64(1)
			if turned {
				shape, axis = []int64{out, in}, 0
			}
			a, w := model.Attr{Axis: int64(model.F16)}, []model.TensorID{b.Param("w", codes, shape...)}
			switch scales {
			case 0:
				w = append(w, b.Param("scale", model.F16))
			case 1:
				a.Axes = []int64{axis}
				w = append(w, b.Param("scale", model.F16, out), b.Param("zero", codes, out))
			default:
				s := append([]int64(nil), shape...)
				s[1-axis] /= 8
				w = append(w, b.Param("scale", model.F16, s...))
			}
			return b.Op("Dequantize", "d", a, w...)
		}
		switch r.IntN(6) {
		case 5: // a window of the last keys, as a slice, as all that the cache holds, or as a mask over all
			heads, width, keys := pick(1, 4, 12), pick(32, 64), pick(96, 400)
			queries, window, token := pick(1, 16), pick(16, 64), pick(0, 1)
			price := func(name string, held, seen int64) (float64, float64) {
				return price(name, func(b *model.Builder, batch int64) {
					cache := func(name string) model.TensorID {
						x := b.Input(name, model.F16, batch, heads, held-token, width)
						if token > 0 {
							new := b.Input(name+"/new", model.F16, batch, heads, token, width)
							x = b.Op("Concat", name+"/all", model.Attr{Axis: 2}, x, new)
						}
						if s := b.Tensor(x).Shape; seen < held {
							return b.Op("Slice", name+"/seen", model.SliceOf(s, 2, held-seen, held), x)
						}
						return x
					}
					turned := b.Op("Transpose", "t", model.Attr{Perm: []int64{0, 1, 3, 2}}, cache("k"))
					y := b.Op("MatMul", "scores", model.Attr{}, b.Input("q", model.F16, batch, heads, queries, width), turned)
					y = b.Op("Add", "masked", model.Attr{}, y, b.Const("mask", model.F16, nil, queries, seen))
					y = b.Op("Softmax", "softmax", model.Attr{Axis: 3}, y)
					b.Output(b.Op("MatMul", "y", model.Attr{}, y, cache("v")))
				})
			}
			a, la := price("window", keys, window)
			if c, lc := price("all that is held", window, window); math.Abs(a-c) > .002*c || la != lc {
				t.Errorf("pair %d: %g s, at least %g, with a window of what is held %g s and %g", n, c, lc, a, la)
			}
			if m, lm := price("mask", keys, keys); a > m || la > lm {
				t.Errorf("pair %d: %g s, at least %g, with a mask over all keys %g s and %g", n, a, la, m, lm)
			}
		case 3: // a slice of the last rows before or behind an element-wise operator and a product
			last := func(b *model.Builder, x model.TensorID) model.TensorID {
				s := b.Tensor(x).Shape
				if rows == 1 {
					return x
				}
				return b.Op("Slice", "last", model.SliceOf(s, 1, s[1]-1, s[1]), x)
			}
			price := func(before bool) (float64, float64) {
				return price(fmt.Sprint("before ", before), func(b *model.Builder, batch int64) {
					x := b.Input("x", model.F16, batch, rows, in)
					if before {
						x = last(b, x)
					}
					y := b.Op("MatMul", "y", model.Attr{}, b.Op("Relu", "r", model.Attr{}, x), b.Param("w", model.F16, in, out))
					if !before {
						y = last(b, y)
					}
					b.Output(y)
				})
			}
			a, la := price(true)
			if c, lc := price(false); math.Abs(a-c) > .01*a || math.Abs(la-lc) > .01*la { // a row of inputs, or of results
				t.Errorf("pair %d: %g s, at least %g, with the slice behind, %g s and %g before", n, c, lc, a, la)
			}
		case 4: // a product and a sum, or a Gemm
			a, la := price("gemm", func(b *model.Builder, batch int64) {
				b.Output(b.Op("Gemm", "y", model.Attr{}, b.Input("x", model.F16, batch*rows, in), weight(b, false),
					b.Param("bias", model.F16, out)))
			})
			c, lc := price("sum", func(b *model.Builder, batch int64) {
				y := b.Op("MatMul", "y", model.Attr{}, b.Input("x", model.F16, batch*rows, in), weight(b, false))
				b.Output(b.Op("Add", "sum", model.Attr{}, y, b.Param("bias", model.F16, out)))
			})
			if math.Abs(a-c) > .02*a || math.Abs(la-lc) > .02*la {
				t.Errorf("pair %d: %g s, at least %g, as a product and a sum %g s and %g", n, a, la, c, lc)
			}
		case 0: // dequantised, then moved
			a, la := price("stored", func(b *model.Builder, batch int64) {
				b.Output(b.Op("MatMul", "y", model.Attr{}, b.Input("x", model.F16, batch, rows, in), weight(b, false)))
			})
			c, lc := price("moved", func(b *model.Builder, batch int64) {
				x := b.Input("x", model.F16, batch, rows, in)
				w := b.Op("Transpose", "turned", model.Attr{Perm: []int64{1, 0}}, weight(b, true))
				b.Output(b.Op("MatMul", "y", model.Attr{}, x, w))
			})
			if a != c || la != lc {
				t.Errorf("pair %d: %g s, at least %g, with weights stored the other way %g s and %g", n, c, lc, a, la)
			}
		case 1: // Gemm with transposed weights
			price := func(turned bool) (float64, float64) {
				return price(fmt.Sprint("turned ", turned), func(b *model.Builder, batch int64) {
					shape := []int64{in, out}
					if turned {
						shape = []int64{out, in}
					}
					b.Output(b.Op("Gemm", "y", model.Attr{TransB: turned}, b.Input("x", model.F16, batch*rows, in),
						b.Param("w", model.F16, shape...)))
				})
			}
			a, la := price(false)
			if c, lc := price(true); a != c || la != lc {
				t.Errorf("pair %d: %g s, at least %g, with weights stored the other way %g s and %g", n, c, lc, a, la)
			}
		default: // a kernel of 3 and stride 2: kernels of 2 x 2, 2 x 1, 1 x 2 and 1 x 1 with stride 1
			c, k, size := pick(16, 64), pick(32, 100), pick(8, 20)
			_, least := price("transposed", func(b *model.Builder, batch int64) {
				b.Output(b.Op("ConvTranspose", "y", model.Attr{Strides: []int64{2, 2}, Dilations: []int64{1, 1}, Group: 1,
					Pads: []int64{1, 1, 1, 1}, OutputPadding: []int64{1, 1}}, b.Input("x", model.F16, batch, c, size, size),
					b.Param("w", model.F16, c, k, 3, 3)))
			})
			four, _ := price("phases", func(b *model.Builder, batch int64) {
				x := b.Input("x", model.F16, batch, c, size, size)
				for i := range int64(4) {
					h, w := i/2, i%2
					b.Output(b.Op("Conv", fmt.Sprint("y", i), model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Group: 1,
						Pads: []int64{0, 0, h, w}}, x, b.Param(fmt.Sprint("w", i), model.F16, k, c, 1+h, 1+w)))
				}
			})
			if least > four {
				t.Errorf("pair %d: a transposed convolution takes at least %g s, four plain ones %g", n, least, four)
			}
		}
	}
}

// What crosses the DDR's bus for one product of dequantised weights is the bits of its tensors, added up by hand, and
// the bound has no more.
func TestBytesOfNarrowWeights(t *testing.T) {
	bits := map[model.DType]int64{model.I8: 8, model.F8: 8, model.I4: 4, model.U4: 4, model.F4: 4, model.I2: 2,
		model.U2: 2}
	for _, machine := range []string{"stcp920", "a100"} {
		spec, err := hardware.Load(machine)
		if err != nil {
			t.Fatal(err)
		}
		recipe, err := recipes.Lookup("cross-layer")
		if err != nil {
			t.Fatal(err)
		}
		for dt, width := range bits {
			for _, extents := range [][2]int64{{1024, 4096}, {320, 96}, {33, 7}} {
				in, out := extents[0], extents[1]
				net := network.Network{Name: dt.String(), Graph: func(batch int64) (*model.Graph, error) {
					b := model.NewBuilder("product")
					w := b.Op("Dequantize", "d", model.Attr{Axis: int64(model.F16)}, b.Param("w", dt, in, out),
						b.Param("scale", model.F16))
					b.Output(b.Op("MatMul", "y", model.Attr{}, b.Input("x", model.F16, batch, in), w))
					return b.Build()
				}}
				made, err := scheduler.Run(t.Context(), net, spec, 1, recipe, scheduler.Options{})
				if err != nil {
					t.Fatal(err)
				}
				want := (in*out*width+7)/8 + 2 + 2*in
				got := made.Sim.Dynamic.MoveBytes[isa.DDRLoad]
				if got != want && got != want+2*in { // kernels of halves load the input each
					t.Errorf("%s: weights %v of %v: %d bytes from the DDR, expected %d", machine, extents, dt, got, want)
				}
				_, proof, err := bound.Prove(t.Context(), net, made.Spec, 1)
				if err != nil {
					t.Fatal(err)
				}
				if got := proof.Shares[0].WeightBytes; got != float64(want-2*in) {
					t.Errorf("%s: weights %v of %v: the bound has %g bytes, expected %d", machine, extents, dt, got, want-2*in)
				}
			}
		}
	}
}
