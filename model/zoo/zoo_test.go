package zoo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

func build(t *testing.T, name string, batch int64) *model.Graph {
	t.Helper()
	g, err := Build(name, Options{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// count adds up the learned parameters under a prefix.
func count(g *model.Graph, prefix string) int64 {
	n := int64(0)
	for _, t := range g.Tensors {
		if t.Learned && strings.HasPrefix(t.Name, prefix) {
			n += t.Shape.Elements()
		}
	}
	return n
}

func shapeOf(t *testing.T, g *model.Graph, name string) model.Shape {
	t.Helper()
	for _, x := range g.Tensors {
		if x.Name == name {
			return x.Shape
		}
	}
	t.Fatalf("%s has no tensor %q", g.Name, name)
	return nil
}

// TestPublishedCounts compares with the counts that torchvision prints (its
// "GFLOPS" are multiply-accumulates) and with those of BERT-base. The MACs of
// BERT are those of the formula in TestBERTFormula.
func TestPublishedCounts(t *testing.T) {
	for _, tt := range []struct {
		name, prefix string
		params       int64
		gmacs        string
	}{
		{"resnet50", "", 25557032, "4.089"},
		{"bert-128", "encoder.", 85054464, "11.174"},
	} {
		g := build(t, tt.name, 1)
		if got := count(g, tt.prefix); got != tt.params {
			t.Errorf("%s: %d parameters under %q, want %d", tt.name, got, tt.prefix, tt.params)
		}
		if got := fmt.Sprintf("%.3f", float64(g.MACs())/1e9); got != tt.gmacs {
			t.Errorf("%s: %s GMAC, want %s", tt.name, got, tt.gmacs)
		}
	}
}

// TestFamilies: other sizes of both families come out at their published counts
// as well, so that they can become rows.
func TestFamilies(t *testing.T) {
	depth := func(bottleneck bool, blocks ...int64) func(string, Options) (*model.Graph, error) {
		return residual{Blocks: blocks, Bottleneck: bottleneck, Image: 224, Classes: 1000}.build
	}
	encoder := func(seq, layers, hidden, heads int64) func(string, Options) (*model.Graph, error) {
		return transformer{Seq: seq, Layers: layers, Hidden: hidden, Heads: heads, FFN: 4 * hidden,
			Vocabulary: 30522, TokenTypes: 2}.build
	}
	for _, tt := range []struct {
		name   string
		build  func(string, Options) (*model.Graph, error)
		params int64
		gmacs  string // empty: not published with these digits
	}{
		{"resnet18", depth(false, 2, 2, 2, 2), 11689512, "1.81"},
		{"resnet34", depth(false, 3, 4, 6, 3), 21797672, "3.66"},
		{"resnet101", depth(true, 3, 4, 23, 3), 44549160, "7.80"},
		{"resnet152", depth(true, 3, 8, 36, 3), 60192808, "11.51"},
		// The published models less the pooler, which has a hidden x hidden matrix
		// and a bias. They hold positions up to 512.
		{"bert-base", encoder(512, 12, 768, 12), 109482240 - 768*769, ""},
		{"bert-large", encoder(512, 24, 1024, 16), 335141888 - 1024*1025, ""},
	} {
		g, err := tt.build(tt.name, Options{Batch: 1})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := g.Params(); got != tt.params {
			t.Errorf("%s: %d parameters, want %d", tt.name, got, tt.params)
		}
		if got := fmt.Sprintf("%.2f", float64(g.MACs())/1e9); tt.gmacs != "" && got != tt.gmacs {
			t.Errorf("%s: %s GMAC, want %s", tt.name, got, tt.gmacs)
		}
	}
}

// TestBERTFormula: per layer, four projections, two products of the FFN, and the
// two products of attention.
func TestBERTFormula(t *testing.T) {
	for _, c := range []transformer{
		{Seq: 128, Layers: 12, Hidden: 768, Heads: 12, FFN: 3072, Vocabulary: 9, TokenTypes: 2},
		{Seq: 10, Layers: 3, Hidden: 24, Heads: 4, FFN: 50, Vocabulary: 9, TokenTypes: 2},
	} {
		g, err := c.build("formula", Options{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		want := 2 * c.Layers * (4*c.Seq*c.Hidden*c.Hidden + 2*c.Seq*c.Hidden*c.FFN + 2*c.Seq*c.Seq*c.Hidden)
		if got := g.MACs(); got != want {
			t.Errorf("%+v: %d MACs, want %d", c, got, want)
		}
	}
}

func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		batch int64
		want  map[string]model.Shape
	}{
		{"resnet50", 2, map[string]model.Shape{
			"image": {2, 3, 224, 224}, "stem.conv": {2, 64, 112, 112}, "stem.pool": {2, 64, 56, 56},
			"stage1.block2.relu": {2, 256, 56, 56}, "stage2.block3.relu": {2, 512, 28, 28},
			"stage3.block5.relu": {2, 1024, 14, 14}, "stage4.block2.relu": {2, 2048, 7, 7},
			// v1.5: the 1x1 before still has the extents of the stage before.
			"stage2.block0.conv1": {2, 128, 56, 56}, "stage2.block0.conv2": {2, 128, 28, 28},
			"stage2.block0.shortcut.conv": {2, 512, 28, 28}, "stage1.block0.shortcut.conv": {2, 256, 56, 56},
			"head.pool": {2, 2048, 1, 1}, "head.flatten": {2, 2048}, "head.softmax": {2, 1000},
		}},
		{"bert-128", 4, map[string]model.Shape{
			"token_ids": {4, 128}, "attention_mask": {4, 1, 1, 128}, "embeddings.norm": {4, 128, 768},
			"encoder.layer0.attention.query.transpose": {4, 12, 128, 64},
			"encoder.layer0.attention.key.transpose":   {4, 12, 64, 128},
			"encoder.layer5.attention.softmax":         {4, 12, 128, 128}, "encoder.layer5.attention.context": {4, 12, 128, 64},
			"encoder.layer5.attention.context.merge": {4, 128, 768}, "encoder.layer11.ffn.gelu": {4, 128, 3072},
			"encoder.layer11.ffn.norm": {4, 128, 768},
		}},
	} {
		g := build(t, tt.name, tt.batch)
		for name, want := range tt.want {
			if got := shapeOf(t, g, name); !got.Equal(want) {
				t.Errorf("%s: %s is %v, want %v", tt.name, name, got, want)
			}
		}
	}
}

func TestResNetOperators(t *testing.T) {
	g := build(t, "resnet50", 1)
	want :=
		"[{Add 16} {BatchNorm 53} {Conv 53} {Gemm 1} {GlobalAveragePool 1} {MaxPool 1} {Relu 49} {Reshape 1} {Softmax 1}]"
	if got := fmt.Sprint(g.KindCounts()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, x := range g.Tensors {
		if x.Role != model.Constant {
			continue
		}
		statistic := strings.HasSuffix(x.Name, ".mean") || strings.HasSuffix(x.Name, ".variance")
		if x.Learned == statistic {
			t.Errorf("%s: learned is %t", x.Name, x.Learned)
		}
	}
}

// TestBERTOrder: schedulers take the order of operators from here.
func TestBERTOrder(t *testing.T) {
	g := build(t, "bert-128", 1)
	const prefix = "encoder.layer3."
	var got []string
	for _, op := range g.Ops {
		if strings.HasPrefix(op.Name, prefix) {
			got = append(got, fmt.Sprintf("%s %s", op.Kind, strings.TrimPrefix(op.Name, prefix)))
		}
	}
	want := []string{
		"MatMul attention.query", "Add attention.query.add", "Reshape attention.query.heads",
		"Transpose attention.query.transpose",
		"MatMul attention.key", "Add attention.key.add", "Reshape attention.key.heads", "Transpose attention.key.transpose",
		"MatMul attention.scores", "Mul attention.scores.scale", "Add attention.scores.mask", "Softmax attention.softmax",
		"MatMul attention.value", "Add attention.value.add", "Reshape attention.value.heads",
		"Transpose attention.value.transpose",
		"MatMul attention.context", "Transpose attention.context.transpose", "Reshape attention.context.merge",
		"MatMul attention.output", "Add attention.output.add", "Add attention.residual", "LayerNorm attention.norm",
		"MatMul ffn.up", "Add ffn.up.add", "Gelu ffn.gelu", "MatMul ffn.down", "Add ffn.down.add", "Add ffn.residual",
		"LayerNorm ffn.norm",
	}
	if !slices.Equal(got, want) {
		t.Errorf("order\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if last := g.Ops[len(g.Ops)-1].Name; last != "encoder.layer11.ffn.norm" || g.Tensor(g.Outputs[0]).Name != last {
		t.Errorf("the last operator is %s, the output %s", last, g.Tensor(g.Outputs[0]).Name)
	}
	for _, id := range g.Inputs {
		x := g.Tensor(id)
		want := model.I32
		if x.Name == "attention_mask" {
			want = model.F16
		}
		if x.DType != want {
			t.Errorf("input %s has type %v, want %v", x.Name, x.DType, want)
		}
	}
}

// reached reports of each operator whether it depends on an input of the network.
func reached(g *model.Graph) []bool {
	r := make([]bool, len(g.Ops))
	for i, op := range g.Ops {
		r[i] = slices.ContainsFunc(op.Inputs, func(id model.TensorID) bool {
			x := g.Tensor(id)
			return x.Role == model.Input || x.Role == model.Activation && r[x.Producer]
		})
	}
	return r
}

// constantMACs counts the MACs of products of constants.
func constantMACs(g *model.Graph) int64 {
	n := int64(0)
	for i, r := range reached(g) {
		if !r {
			n += g.Work(g.Ops[i], nil).MACs
		}
	}
	return n
}

// isIndex reports whether lookups read the tensor, and only to know where to look.
func isIndex(g *model.Graph, x *model.Tensor) bool {
	for _, id := range x.Consumers {
		if op := g.Op(id); op.Kind != "Gather" || op.Inputs[0] == x.ID {
			return false
		}
	}
	return len(x.Consumers) > 0
}

// isPosition reports whether a tensor says where elements of another are.
func isPosition(g *model.Graph, x *model.Tensor) bool {
	if x.Producer == model.NoOp {
		return false
	}
	op := g.Op(x.Producer)
	return op.Kind == "ArgMax" || op.Kind == "TopK" && x.ID == op.Outputs[1] ||
		(op.Kind == "Reshape" || op.Kind == "TopK") && isPosition(g, g.Tensor(op.Inputs[0]))
}

func TestEveryModel(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names %v are not sorted or not unique", names)
	}
	for _, want := range []string{"resnet50", "bert-128"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %v", want, names)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			info, ok := Describe(name)
			if !ok || info.Name != name || info.Description == "" || info.Source == "" || info.Input == "" {
				t.Errorf("description %+v", info)
			}
			one := build(t, name, 1)
			if one.Name != name {
				t.Errorf("the graph is called %s", one.Name)
			}
			if err := one.Validate(); err != nil {
				t.Error(err)
			}
			seen := map[string]bool{}
			for _, op := range one.Ops {
				if seen[op.Name] {
					t.Errorf("two operators are called %s", op.Name)
				}
				seen[op.Name] = true
				if out := one.Tensor(op.Outputs[0]).Name; len(op.Outputs) == 1 && out != op.Name {
					t.Errorf("operator %s writes %s", op.Name, out)
				}
			}
			for _, x := range one.Tensors {
				if x.Role != model.Activation && len(x.Consumers) == 0 {
					t.Errorf("nothing reads %s", x.Name)
				}
				if len(x.Consumers) == 0 && !one.IsOutput(x.ID) {
					t.Errorf("%s goes nowhere", x.Name)
				}
			}
			fromInput := reached(one)
			for _, batch := range []int64{3, 32} {
				g := build(t, name, batch)
				// What reads constants only is done once for the whole batch.
				if c := constantMACs(one); g.MACs() != batch*(one.MACs()-c)+c || g.Params() != one.Params() ||
					len(g.Ops) != len(one.Ops) {
					t.Errorf("batch %d: %d MACs, %d parameters, %d operators; batch 1: %d, %d, %d", batch,
						g.MACs(), g.Params(), len(g.Ops), one.MACs(), one.Params(), len(one.Ops))
				}
				for _, op := range g.Ops {
					for k, out := range op.Outputs {
						a, b := one.Tensor(one.Ops[op.ID].Outputs[k]).Shape, g.Tensor(out).Shape
						want := a.Clone()
						if fromInput[op.ID] || op.Kind == "Expand" {
							want[0] *= batch
						}
						if !b.Equal(want) {
							t.Errorf("batch %d: %s is %v, at batch 1 %v", batch, op.Name, b, a)
						}
					}
				}
			}
			for _, dt := range []model.DType{model.BF16, model.F32, model.I8} {
				g, err := Build(name, Options{Batch: 1, DType: dt})
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range g.Tensors {
					want := dt
					if isIndex(g, x) {
						want = model.I32
					}
					if isPosition(g, x) {
						want = model.I64
					}
					if x.DType != want {
						t.Errorf("%v: %s has type %v", dt, x.Name, x.DType)
					}
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		opt  Options
		want []string
	}{
		{"resnet51", Options{Batch: 1}, []string{`"resnet51"`, "did you mean resnet50?"}},
		{"zzzzzzzz", Options{Batch: 1}, []string{`"zzzzzzzz"`, "expected one of alexnet, asr-encoder, ", fmt.Sprintf("and %d more", len(Names())-8)}},
		{"", Options{Batch: 1}, []string{`""`, "bert-128"}},
		{"resnet50", Options{}, []string{"resnet50", "batch 0", "at least 1"}},
		{"bert-128", Options{Batch: -4}, []string{"bert-128", "batch -4", "at least 1"}},
		{"resnet50", Options{Batch: 1, DType: 200}, []string{"dtype(200)"}},
		{"resnet50", Options{Batch: 1 << 40}, []string{"resnet50", "batch 1099511627776", "elements"}},
		{"bert-128", Options{Batch: 1 << 62}, []string{"bert-128", "elements"}},
	} {
		g, err := Build(tt.name, tt.opt)
		if err == nil || g != nil {
			t.Errorf("%q %+v: no error", tt.name, tt.opt)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q %+v: %q does not contain %q", tt.name, tt.opt, err, want)
			}
		}
	}
	if _, ok := Describe("resnet51"); ok {
		t.Error("an unknown model is described")
	}
	for _, heads := range []int64{0, 5} {
		c := transformer{Seq: 8, Layers: 1, Hidden: 16, Heads: heads, FFN: 32, Vocabulary: 9, TokenTypes: 2}
		if _, err := c.build("odd", Options{Batch: 1}); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d heads", heads)) {
			t.Errorf("%d heads: %v", heads, err)
		}
	}
}

func ExampleBuild() {
	g, err := Build("resnet50", Options{Batch: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.1f M parameters, %.1f GMAC per image\n", float64(g.Params())/1e6, float64(g.MACs())/8/1e9)
	// Output:
	// 25.6 M parameters, 4.1 GMAC per image
}

func ExampleDescribe() {
	info, _ := Describe("bert-128")
	fmt.Printf("%s: %s (%s)\n", info.Name, info.Input, info.Source)
	// Output:
	// bert-128: 128 tokens (Devlin et al., NAACL 2019)
}

func BenchmarkBuild(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(name, Options{Batch: 64}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
