package scheduler_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// configurationsAJ are the paper's ten networks with their batch sizes and TVM's
// batches per cluster.
var configurationsAJ = []struct {
	model        string
	batch, chunk int64
}{
	{"resnet50", 64, 2}, {"bert-128", 32, 4}, {"bert-256", 16, 2}, {"bert-384", 8, 1}, {"bert-512", 8, 1},
	{"dlrm", 1024, 64}, {"mobilenetv2", 128, 2}, {"vit-b16", 32, 4}, {"densenet121", 32, 4}, {"conformer", 12, 1},
}

// Stitching takes kernels and DDR traffic away and adds none, so it is never slower
// than the fusion that it starts from; checks and simulator accept what comes out.
func TestAStitchAgainstTVM(t *testing.T) {
	for _, c := range configurationsAJ {
		t.Run(c.model, func(t *testing.T) {
			tvm := run(t, c.model, "stcp920", c.batch, c.chunk, "tvm")
			as := run(t, c.model, "stcp920", c.batch, c.chunk, "astitch")
			if as.Sim.TotalPs > tvm.Sim.TotalPs {
				t.Errorf("%d ps, TVM takes %d", as.Sim.TotalPs, tvm.Sim.TotalPs)
			}
			if a, b := as.Sim.Dynamic.LevelBytes[isa.DDR], tvm.Sim.Dynamic.LevelBytes[isa.DDR]; a > b {
				t.Errorf("%d bytes of DDR traffic, TVM has %d", a, b)
			}
			if a, b := as.Schedule.Kernels(), tvm.Schedule.Kernels(); a > b {
				t.Errorf("%d kernels, TVM has %d", a, b)
			}
			// Matrix operators are where they were.
			if a, b := matrixKernels(as.Schedule), matrixKernels(tvm.Schedule); !reflect.DeepEqual(a, b) {
				t.Errorf("compute-intensive kernels %v, TVM's are %v", a, b)
			}
		})
	}
}

// matrixKernels lists the operators of each kernel with a matrix operator.
func matrixKernels(s *schedule.Schedule) map[string]int {
	kernels := map[string]int{}
	for k, sg := range s.Grouping.Groups {
		if l := s.Layers[k][0]; s.Graph.Op(l.Anchor).Class() == model.MatrixClass {
			kernels[fmt.Sprint(sg.Ops)]++
		}
	}
	return kernels
}

// What TVM leaves apart in BERT besides single softmaxes and normalisations, which
// have a matrix operator on either side, are the three kernels of the embeddings, which
// become one, and four transpositions in each of twelve layers. Those of query, key and
// value become one by remote stitching.
func TestAStitchKernelsOfBERT(t *testing.T) {
	tvm := run(t, "bert-128", "stcp920", 32, 4, "tvm").Schedule.Kernels()
	as := run(t, "bert-128", "stcp920", 32, 4, "astitch").Schedule.Kernels()
	if tvm != 3+12*15 || as != 1+12*13 {
		t.Errorf("%d kernels, TVM %d; want 157 and 183", as, tvm)
	}
}

// Each scheme on a graph that needs it.
func TestAStitchSchemes(t *testing.T) {
	none := model.Attr{}
	last := model.Attr{Axis: 2}
	rows := model.Attr{Axes: []int64{2}, KeepDims: true}
	type link struct {
		from, to string
		scheme   scheme
	}
	for _, c := range []struct {
		name     string
		hardware string
		build    func(b *model.Builder, n int64)
		want     []link
		// writes to L1, LLB and DDR
		writes [3]int64
	}{
		{name: "local", hardware: "stcp920",
			build: func(b *model.Builder, n int64) {
				x := b.Op("Relu", "r", none, b.Input("x", model.F16, n, 16, 64))
				b.Output(b.Op("Sigmoid", "s", none, x), b.Op("Tanh", "t", none, x))
			},
			want: []link{{"r", "s", local}, {"r", "t", local}}, writes: [3]int64{0, 0, 2}},
		{name: "regional", hardware: "stcp920",
			build: func(b *model.Builder, n int64) {
				x := b.Input("x", model.F16, n, 16, 64)
				e := b.Op("Exp", "exp", none, b.Op("Sub", "sub", none, x, b.Op("ReduceMax", "max", rows, x)))
				b.Output(b.Op("Div", "div", none, e, b.Op("ReduceSum", "sum", rows, e)))
			},
			want: []link{{"max", "sub", local}, {"sub", "exp", local}, {"exp", "sum", regional},
				{"exp", "div", regional}, {"sum", "div", local}}, writes: [3]int64{1, 0, 1}},
		{name: "global: rows, then columns", hardware: "stcp920",
			build: func(b *model.Builder, n int64) {
				x := b.Op("Softmax", "s", last, b.Input("x", model.F16, n/8, 64, 64))
				b.Output(b.Op("Softmax", "t", model.Attr{Axis: 1}, x))
			},
			want: []link{{"s", "t", global}}, writes: [3]int64{0, 1, 1}},
		{name: "global without an LLB", hardware: "../hardware/testdata/ipu.yaml",
			build: func(b *model.Builder, n int64) {
				x := b.Op("Softmax", "s", last, b.Input("x", model.F16, n/8, 64, 64))
				b.Output(b.Op("Softmax", "t", model.Attr{Axis: 1}, x))
			},
			want: []link{{"s", "t", global}}, writes: [3]int64{0, 0, 2}},
		{name: "regional, but too large for the L1", hardware: "stcp920",
			build: func(b *model.Builder, n int64) {
				x := b.Op("Softmax", "s", last, b.Input("x", model.F16, n, 512, 2048))
				b.Output(b.Op("LayerNorm", "n", last, x, b.Param("scale", model.F16, 2048)))
			},
			want: []link{{"s", "n", global}}, writes: [3]int64{0, 0, 2}},
		{name: "independent", hardware: "stcp920",
			build: func(b *model.Builder, n int64) {
				b.Output(b.Op("Softmax", "s", last, b.Input("x", model.F16, n, 16, 64)),
					b.Op("Softmax", "t", last, b.Input("y", model.F16, n, 4, 32)))
			},
			want: []link{{"s", "t", independent}}, writes: [3]int64{0, 0, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := built(c.name, c.build)
			spec := load(t, c.hardware)
			// Eight elements on one cluster.
			one := *spec
			one.Clusters = 1
			v, err := recipes.Lookup("astitch")
			if err != nil {
				t.Fatal(err)
			}
			r, err := scheduler.Run(t.Context(), src, &one, 8, v, scheduler.Options{Chunk: 8})
			if err != nil {
				t.Fatal(err)
			}
			var got []link
			for _, l := range linksOf(r.Schedule) {
				g := r.Schedule.Graph
				got = append(got, link{g.Op(l.From).Name, g.Op(l.To).Name, l.scheme})
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("links %v, want %v", got, c.want)
			}
			if k := r.Schedule.Kernels(); k != 1 {
				t.Errorf("%d kernels, want 1", k)
			}
			w := r.Sim.Static.TensorWrites
			if got := [3]int64{w[isa.L1], w[isa.LLB], w[isa.DDR]}; got != c.writes {
				t.Errorf("writes to L1, LLB and DDR %v, want %v", got, c.writes)
			}
		})
	}
}

// decomposedBERT is a transformer encoder with softmax, GELU and normalisation in the
// parts that a framework's graph has them in.
func decomposedBERT(layers int, seq int64) network.Network {
	const hidden, heads, wide = 768, 12, 3072
	return built("transformer in parts", func(b *model.Builder, n int64) {
		none := model.Attr{}
		rows := func(rank int64) model.Attr { return model.Attr{Axes: []int64{rank - 1}, KeepDims: true} }
		param := func(name string, shape ...int64) model.TensorID { return b.Param(name, model.F16, shape...) }
		dense := func(name string, x model.TensorID, in, out int64) model.TensorID {
			return b.Op("Add", name+".bias", none, b.Op("MatMul", name, none, x, param(name+".w", in, out)),
				param(name+".b", out))
		}
		norm := func(name string, x model.TensorID) model.TensorID {
			d := b.Op("Sub", name+".centre", none, x, b.Op("ReduceMean", name+".mean", rows(3), x))
			v := b.Op("ReduceMean", name+".variance", rows(3), b.Op("Mul", name+".square", none, d, d))
			s := b.Op("Sqrt", name+".deviation", none, b.Op("Add", name+".epsilon", none, v, param(name+".e", 1)))
			y := b.Op("Mul", name+".scale", none, b.Op("Div", name+".divide", none, d, s), param(name+".g", hidden))
			return b.Op("Add", name+".shift", none, y, param(name+".b", hidden))
		}
		x := b.Op("Relu", "in", none, b.Input("x", model.F16, n, seq, hidden))
		for i := 0; i < layers; i++ {
			at := func(s string) string { return fmt.Sprintf("l%d.%s", i, s) }
			head := func(name string, perm []int64) model.TensorID {
				h := b.Op("Reshape", at(name+".heads"), model.Attr{Shape: []int64{n, seq, heads, hidden / heads}},
					dense(at(name), x, hidden, hidden))
				return b.Op("Transpose", at(name+".order"), model.Attr{Perm: perm}, h)
			}
			q, k, v := head("q", []int64{0, 2, 1, 3}), head("k", []int64{0, 2, 3, 1}), head("v", []int64{0, 2, 1, 3})
			s := b.Op("Mul", at("scale"), none, b.Op("MatMul", at("scores"), none, q, k), param(at("root"), 1))
			e := b.Op("Exp", at("exp"), none, b.Op("Sub", at("less"), none, s, b.Op("ReduceMax", at("max"), rows(4), s)))
			p := b.Op("Div", at("share"), none, e, b.Op("ReduceSum", at("sum"), rows(4), e))
			c := b.Op("Transpose", at("back"), model.Attr{Perm: []int64{0, 2, 1, 3}}, b.Op("MatMul", at("context"), none, p, v))
			o := dense(at("out"), b.Op("Reshape", at("merge"), model.Attr{Shape: []int64{n, seq, hidden}}, c), hidden, hidden)
			x = norm(at("norm1"), b.Op("Add", at("residual1"), none, o, x))
			u := dense(at("up"), x, hidden, wide)
			f := b.Op("Add", at("erf.one"), none, b.Op("Erf", at("erf"), none,
				b.Op("Mul", at("erf.root"), none, u, param(at("r2"), 1))), param(at("one"), 1))
			f = b.Op("Mul", at("gelu.half"), none, b.Op("Mul", at("gelu"), none, u, f), param(at("half"), 1))
			x = norm(at("norm2"), b.Op("Add", at("residual2"), none, dense(at("down"), f, wide, hidden), x))
		}
		b.Output(x)
	})
}

// Where the graph has softmax, GELU and normalisation in parts, fusion ends at each of
// their reductions and stitching saves the traffic between.
func TestAStitchOnReductionsInParts(t *testing.T) {
	src := decomposedBERT(2, 128)
	result := map[string]*scheduler.Result{}
	for _, name := range []string{"tvm", "astitch"} {
		v, err := recipes.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(t.Context(), src, load(t, "stcp920"), 32, v, scheduler.Options{Chunk: 4})
		if err != nil {
			t.Fatal(err)
		}
		result[name] = r
		t.Logf("%s: %d kernels, %.0f/s, %d MB through the DDR", name, r.Schedule.Kernels(), r.ThroughputPerSecond(),
			r.Sim.Dynamic.LevelBytes[isa.DDR]>>20)
	}
	tvm, as := result["tvm"], result["astitch"]
	// Per layer eight products, and one stitch operator each for softmax, GELU and the
	// two normalisations; and the operator in front.
	// TVM has two for the softmax, three for each normalisation, and four transpositions,
	// of which three are stitched to one.
	if a, b := as.Schedule.Kernels(), tvm.Schedule.Kernels(); a != 2*(8+4+2)+1 || b != 2*(8+9+4)+1 {
		t.Errorf("%d kernels, TVM %d; want 29 and 43", a, b)
	}
	if tvm.Sim.Dynamic.LevelBytes[isa.DDR] <= as.Sim.Dynamic.LevelBytes[isa.DDR] || tvm.Sim.TotalPs <= as.Sim.TotalPs {
		t.Errorf("TVM: %d bytes of DDR traffic, %d ps; stitched %d and %d", tvm.Sim.Dynamic.LevelBytes[isa.DDR],
			tvm.Sim.TotalPs, as.Sim.Dynamic.LevelBytes[isa.DDR], as.Sim.TotalPs)
	}
}
