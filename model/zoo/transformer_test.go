package zoo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/simplify"
)

type builder = func(string, Options) (*model.Graph, error)

func one(t *testing.T, build builder) *model.Graph {
	t.Helper()
	g, err := build("test", Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func row(name string) builder {
	e, ok := lookup(name)
	if !ok {
		return func(string, Options) (*model.Graph, error) { return nil, fmt.Errorf("no row %s", name) }
	}
	return func(_ string, opt Options) (*model.Graph, error) { return e.build(name, opt) }
}

// TestVisionTransformers compares with the parameters and "GFLOPS" (which are
// multiply-accumulates, those of attention included) of torchvision's pages on
// vit_b_16 (at 384 pixels: its weights IMAGENET1K_SWAG_E2E_V1), vit_b_32, vit_l_16,
// swin_t, swin_s and swin_b; parameters of vit_small_patch16_224 in timm, its work as
// Table 1 of the Swin paper has it (DeiT-S).
func TestVisionTransformers(t *testing.T) {
	plain := func(patch, layers, hidden, heads int64) builder {
		return vision{Image: 224, Patch: patch, Layers: layers, Hidden: hidden, Heads: heads,
			FFN: 4 * hidden, Classes: 1000}.build
	}
	shifted := func(width, third int64, heads ...int64) builder {
		return windowed{Image: 224, Patch: 4, Width: width, Depths: []int64{2, 2, third, 2}, Heads: heads, Window: 7,
			Expansion: 4, Classes: 1000}.build
	}
	for _, tt := range []struct {
		name   string
		build  builder
		params int64
		gmacs  string
	}{
		{"vit_b_16", row("vit-b16"), 86567656, "17.56"},
		{"vit_b_16 at 384", row("vit-b16-384"), 86859496, "55.48"},
		{"vit_b_32", plain(32, 12, 768, 12), 88224232, "4.41"},
		{"vit_l_16", row("vit-l16"), 304326632, "61.55"},
		{"vit_small_patch16_224", row("vit-s16"), 22050664, "4.6"},
		{"swin_t", row("swin-t"), 28288354, "4.49"},
		{"swin_s", shifted(96, 18, 3, 6, 12, 24), 49606258, "8.74"},
		{"swin_b", shifted(128, 18, 4, 8, 16, 32), 87768224, "15.43"},
	} {
		g := one(t, tt.build)
		if got := g.Params(); got != tt.params {
			t.Errorf("%s: %d parameters, want %d", tt.name, got, tt.params)
		}
		_, digits, _ := strings.Cut(tt.gmacs, ".")
		if got := fmt.Sprintf("%.*f", len(digits), float64(g.MACs())/1e9); got != tt.gmacs {
			t.Errorf("%s: %s GMAC, want %s", tt.name, got, tt.gmacs)
		}
	}
}

// TestVisionFormulas counts what the papers' formulas count: equation 2 of the
// Swin paper, 4hwC^2 + 2M^2hwC for the attention of a block, and the same with one
// window for ViT.
func TestVisionFormulas(t *testing.T) {
	v := vision{Image: 24, Patch: 4, Layers: 3, Hidden: 20, Heads: 5, FFN: 36, Classes: 7}
	n := v.Image / v.Patch * (v.Image / v.Patch)
	l := n + 1
	want := n*3*v.Patch*v.Patch*v.Hidden + v.Layers*(4*l*v.Hidden*v.Hidden+2*l*l*v.Hidden+2*l*v.Hidden*v.FFN) +
		v.Hidden*v.Classes
	if got := one(t, v.build).MACs(); got != want {
		t.Errorf("vit %+v: %d MACs, want %d", v, got, want)
	}

	w := windowed{Image: 48, Patch: 2, Width: 12, Depths: []int64{3, 2}, Heads: []int64{2, 3}, Window: 4,
		Expansion: 3, Classes: 5}
	side, c := w.Image/w.Patch, w.Width
	want = side * side * 3 * w.Patch * w.Patch * c
	for s, depth := range w.Depths {
		if s > 0 {
			side, c = side/2, 2*c
			want += side * side * 2 * c * c // 4C/2 features to 2C/2, of the stage before
		}
		hw, m := side*side, w.Window*w.Window
		want += depth * (4*hw*c*c + 2*m*hw*c + 2*hw*w.Expansion*c*c)
	}
	want += c * w.Classes
	if got := one(t, w.build).MACs(); got != want {
		t.Errorf("swin %+v: %d MACs, want %d", w, got, want)
	}
}

// TestBERTLengths: rows of one size differ in positions only, and at length 512 there
// are all of the published model less the pooler.
func TestBERTLengths(t *testing.T) {
	for _, tt := range []struct {
		name                string
		published           int64 // with the pooler and 512 positions
		seq, layers, hidden int64
	}{
		{"bert-128", 109482240, 128, 12, 768}, {"bert-256", 109482240, 256, 12, 768},
		{"bert-384", 109482240, 384, 12, 768}, {"bert-512", 109482240, 512, 12, 768},
		{"bert-large-384", 335141888, 384, 24, 1024},
	} {
		g, h := one(t, row(tt.name)), tt.hidden
		if got, want := g.Params(), tt.published-h*(h+1)-(512-tt.seq)*h; got != want {
			t.Errorf("%s: %d parameters, want %d", tt.name, got, want)
		}
		if got, want := g.MACs(), tt.layers*(12*tt.seq*h*h+2*tt.seq*tt.seq*h); got != want {
			t.Errorf("%s: %d MACs, want %d", tt.name, got, want)
		}
	}
}

// TestConformerSizes: Gulati et al. publish 10.3, 30.7 and 118.8 million
// parameters with an LSTM decoder of 320, 640 and 640 features. What encoder and
// LSTM leave of that is for the embedding of symbols and the joint network, which
// are not described: less than a million.
func TestConformerSizes(t *testing.T) {
	for _, tt := range []struct {
		name            string
		published, lstm int64
		layers, hidden  int64
	}{
		{"conformer-s", 10300000, 320, 16, 144},
		{"conformer-m", 30700000, 640, 16, 256},
		{"conformer", 118800000, 640, 17, 512},
	} {
		g := one(t, row(tt.name))
		d, l := tt.hidden, int64(256)
		ffn := 8*d*d + 5*d + 2*d
		attention := 5*d*d + 4*d + 2*d + 2*d // with biases u and v, and its normalisation
		convolution := 2*d*d + 2*d + 33*d + d*d + d + 2*d + 2*d
		want := 10*d + 9*d*d + d + 20*d*d + d + tt.layers*(2*ffn+attention+convolution+2*d)
		if got := g.Params(); got != want {
			t.Errorf("%s: %d parameters, want %d", tt.name, got, want)
		}
		if left := tt.published - g.Params() - 4*tt.lstm*(2*tt.lstm+1); left < 0 || left > 1000000 {
			t.Errorf("%s: the published model has %d parameters beside encoder and LSTM", tt.name, left)
		}
		// Per layer: feed-forwards, four projections, those of the distances, three
		// products, the two pointwise convolutions and the depthwise one.
		layer := 16*l*d*d + 4*l*d*d + (2*l-1)*d*d + 2*l*l*d + l*(2*l-1)*d + 3*l*d*d + 32*l*d
		macs := 512*40*9*d + 256*20*9*d*d + l*20*d*d + tt.layers*layer
		if got := g.MACs(); got != macs {
			t.Errorf("%s: %d MACs, want %d", tt.name, got, macs)
		}
	}
}

// TestEvenKernel: of 32 positions a convolution reads 15 of the past, its own, and
// 16 of the future.
func TestEvenKernel(t *testing.T) {
	n := 0
	for _, op := range build(t, "conformer", 1).Ops {
		if strings.HasSuffix(op.Name, ".conv.depthwise") {
			n++
			if !slices.Equal(op.Attr.Pads, []int64{15, 16}) {
				t.Errorf("%s has pads %v", op.Name, op.Attr.Pads)
			}
		}
	}
	if n != 17 {
		t.Errorf("%d depthwise convolutions, want 17", n)
	}
}

// TestDLRM compares with what is published for Criteo Kaggle: 540 million parameters (Naumov et al., section 5), and
// 33,762,577 categories, a number that other implementations for this data set have as well. For Terabyte no total was
// found: the sum of MLPerf's list, added up from another copy of it, guards against slips. Its tables must leave room
// in 16 GB.
func TestDLRM(t *testing.T) {
	sum := func(rows []int64) int64 {
		n := int64(0)
		for _, r := range rows {
			n += r
		}
		return n
	}
	for _, tt := range []struct {
		name                   string
		rows                   []int64
		total, features        int64
		bottom, top, perSample int64
	}{
		{"dlrm", criteoTerabyte, 49126297, 128,
			13*512 + 512*256 + 256*128, 479*1024 + 1024*1024 + 1024*512 + 512*256 + 256,
			512 + 256 + 128 + 1024 + 1024 + 512 + 256 + 1},
		{"dlrm-kaggle", criteoKaggle, 33762577, 16,
			13*512 + 512*256 + 256*64 + 64*16, 367*512 + 512*256 + 256, 512 + 256 + 64 + 16 + 512 + 256 + 1},
	} {
		g := one(t, row(tt.name))
		if got := sum(tt.rows); len(tt.rows) != 26 || got != tt.total {
			t.Errorf("%s: %d tables of %d rows, want 26 of %d", tt.name, len(tt.rows), got, tt.total)
		}
		if got := count(g, "table"); got != tt.total*tt.features {
			t.Errorf("%s: %d parameters in tables, want %d", tt.name, got, tt.total*tt.features)
		}
		if got, want := g.Params()-count(g, "table"), tt.bottom+tt.top+tt.perSample; got != want {
			t.Errorf("%s: %d parameters in layers, want %d", tt.name, got, want)
		}
		if got, want := g.MACs(), tt.bottom+27*27*tt.features+tt.top; got != want {
			t.Errorf("%s: %d MACs, want %d", tt.name, got, want)
		}
	}
	if got := one(t, row("dlrm-kaggle")).Params() / 1000000; got != 540 {
		t.Errorf("dlrm-kaggle: %d million parameters, want 540", got)
	}
	bytes := int64(0)
	for _, x := range one(t, row("dlrm")).Tensors {
		if x.Role == model.Constant {
			bytes += x.Bytes()
		}
	}
	// The layers in FP16, the tables, and 351 indices.
	if want := int64(2)*(170496+2194688+3713+49126297*128) + 4*351; bytes != want || bytes > 16e9 {
		t.Errorf("dlrm: constants have %d bytes, want %d, at most 16e9", bytes, want)
	}
}

func TestTransformerShapes(t *testing.T) {
	for _, tt := range []struct {
		name string
		want map[string]model.Shape
	}{
		{"bert-384", map[string]model.Shape{"encoder.layer11.attention.softmax": {2, 12, 384, 384},
			"embeddings.position.weight": {384, 768}}},
		{"vit-b16", map[string]model.Shape{
			"embeddings.patch": {2, 768, 14, 14}, "embeddings.class": {1, 1, 768}, "embeddings.class.expand": {2, 1, 768},
			"embeddings.concat": {2, 197, 768}, "encoder.layer0.attention.query.transpose": {2, 12, 197, 64},
			"encoder.layer11.attention.softmax": {2, 12, 197, 197}, "encoder.layer11.ffn.gelu": {2, 197, 3072},
			"head.class": {2, 1, 768}, "head.softmax": {2, 1000},
		}},
		{"swin-t", map[string]model.Shape{
			"embeddings.norm": {2, 56, 56, 96}, "stage1.block0.attention.windows.flatten": {128, 49, 96},
			"stage1.block0.attention.softmax": {128, 3, 49, 49}, "stage1.block1.attention.scores.mask": {2, 64, 3, 49, 49},
			"stage1.block1.attention.mask": {64, 1, 49, 49}, "stage1.block1.attention.shift.columns": {2, 56, 56, 96},
			"stage1.block1.attention.bias.table": {169, 3}, "stage1.block1.attention.bias.transpose": {3, 49, 49},
			"stage2.merge.concat": {2, 28, 28, 384}, "stage2.merge.reduce": {2, 28, 28, 192},
			"stage3.block5.attention.scores.mask": {2, 4, 12, 49, 49}, "stage4.block1.attention.softmax": {2, 24, 49, 49},
			"stage4.block1.ffn.gelu": {2, 7, 7, 3072}, "head.pool": {2, 768, 1, 1}, "head.softmax": {2, 1000},
		}},
		{"dlrm", map[string]model.Shape{
			"dense": {2, 13}, "sparse25": {2}, "bottom.result": {2, 128}, "table19": {2, 128},
			"interaction.vectors":  {2, 27, 128},
			"interaction.products": {2, 27, 27}, "interaction.triangle": {2, 351}, "interaction.result": {2, 479},
			"top.result": {2, 1},
		}},
		{"conformer", map[string]model.Shape{
			"frames": {2, 1, 1024, 80}, "subsampling.relu1": {2, 512, 512, 40}, "subsampling.relu2": {2, 512, 256, 20},
			"subsampling.flatten": {2, 256, 10240}, "subsampling.linear": {2, 256, 512},
			"encoder.layer0.ffn1.silu":          {2, 256, 2048},
			"encoder.layer3.attention.position": {2, 8, 256, 511}, "encoder.layer3.attention.shift.turn": {2, 8, 512, 256},
			"encoder.layer3.attention.shift": {2, 8, 256, 256}, "encoder.layer3.conv.expand": {2, 1024, 256},
			"encoder.layer3.conv.glu": {2, 512, 256}, "encoder.layer3.conv.depthwise": {2, 512, 256},
			"encoder.layer3.conv.depthwise.weight": {512, 1, 32}, "encoder.layer16.norm": {2, 256, 512},
		}},
		{"toy-fig5", map[string]model.Shape{"image": {2, 256, 56, 56}, "conv.relu": {2, 512, 28, 28},
			"identity.relu": {2, 512, 28, 28}}},
	} {
		g := build(t, tt.name, 2)
		for name, want := range tt.want {
			if got := shapeOf(t, g, name); !got.Equal(want) {
				t.Errorf("%s: %s is %v, want %v", tt.name, name, got, want)
			}
		}
	}
	// A stage of one window has nothing to shift.
	for _, op := range build(t, "swin-t", 1).Ops {
		if odd := strings.Contains(op.Name, "block1") || strings.Contains(op.Name, "block3") ||
			strings.Contains(op.Name, "block5"); strings.Contains(op.Name, "shift") &&
			(!odd || strings.HasPrefix(op.Name, "stage4")) {
			t.Errorf("%s shifts", op.Name)
		}
	}
}

// TestToys: each stage halves its tensor; and the blocks of Fig. 5 are those of
// ResNet-50, whose counts are checked against the published ones.
func TestToys(t *testing.T) {
	g := one(t, row("toy-fig3"))
	size := shapeOf(t, g, "image").Elements()
	for s := 1; s <= 4; s++ {
		for _, block := range []string{"conv", "identity"} {
			got := shapeOf(t, g, fmt.Sprintf("stage%d.%s.relu", s, block)).Elements()
			if got != size>>s {
				t.Errorf("stage %d, %s block: %d elements, want %d", s, block, got, size>>s)
			}
		}
	}
	if last := g.Ops[len(g.Ops)-1].Name; last != "stage4.identity.relu" {
		t.Errorf("the last operator is %s", last)
	}

	fig5, whole := one(t, row("toy-fig5")), one(t, row("resnet50"))
	if got, want := fig5.Params(), count(whole, "stage2.block0.")+count(whole, "stage2.block1."); got != want {
		t.Errorf("toy-fig5: %d parameters, want %d", got, want)
	}
	macs, ops := int64(0), 0
	for _, op := range whole.Ops {
		if strings.HasPrefix(op.Name, "stage2.block0.") || strings.HasPrefix(op.Name, "stage2.block1.") {
			macs += whole.Work(op, nil).MACs
			ops++
		}
	}
	if fig5.MACs() != macs || len(fig5.Ops) != ops {
		t.Errorf("toy-fig5: %d MACs in %d operators, want %d in %d", fig5.MACs(), len(fig5.Ops), macs, ops)
	}
}

// TestValuesAfterSoftmax: see the package documentation.
func TestValuesAfterSoftmax(t *testing.T) {
	for name, want := range map[string]int{"bert-512": 12, "vit-b16": 12, "swin-t": 12, "conformer": 17} {
		g, n := build(t, name, 1), 0
		for i, op := range g.Ops {
			if op.Kind != "Softmax" || !strings.HasSuffix(op.Name, ".attention.softmax") {
				continue
			}
			n++
			if next := g.Ops[i+1].Name; next != strings.TrimSuffix(op.Name, "softmax")+"value" {
				t.Errorf("%s: %s comes after %s", name, next, op.Name)
			}
		}
		if n != want {
			t.Errorf("%s: %d attentions, want %d", name, n, want)
		}
	}
}

// origin follows the element at an index of a tensor back through operators that
// move elements, to the tensor called from; nil if it is padding.
func origin(t *testing.T, g *model.Graph, name, from string, index []int64) []int64 {
	t.Helper()
	i := slices.IndexFunc(g.Tensors, func(x *model.Tensor) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("no tensor %s", name)
	}
	x := g.Tensors[i]
	for x.Name != from {
		if x.Producer == model.NoOp {
			t.Fatalf("%s does not come from %s", name, from)
		}
		op := g.Op(x.Producer)
		in := g.Tensor(op.Inputs[0])
		before := make([]int64, len(in.Shape))
		switch op.Kind {
		case "Reshape":
			flat := int64(0)
			for d, k := range index {
				flat = flat*x.Shape[d] + k
			}
			for d := len(before) - 1; d >= 0; d-- {
				before[d], flat = flat%in.Shape[d], flat/in.Shape[d]
			}
		case "Transpose":
			for d, p := range op.Attr.Perm {
				before[p] = index[d]
			}
		case "Slice":
			for d, k := range index {
				before[d] = op.Attr.Starts[d] + k*op.Attr.Steps[d]
			}
		case "Pad":
			for d, k := range index {
				before[d] = k - op.Attr.Pads[d]
				if before[d] < 0 || before[d] >= in.Shape[d] {
					return nil
				}
			}
		case "Concat":
			copy(before, index)
			for _, id := range op.Inputs {
				if in = g.Tensor(id); before[op.Attr.Axis] < in.Shape[op.Attr.Axis] {
					break
				}
				before[op.Attr.Axis] -= in.Shape[op.Attr.Axis]
			}
		default:
			t.Fatalf("%s computes", op.Name)
		}
		x, index = in, before
	}
	return index
}

// TestRelativeShift: row i, column j of the scores is for the distance i-j, which
// stands in column j-i+L-1 of the product.
func TestRelativeShift(t *testing.T) {
	const l = 5
	g := one(t, speech{Frames: 4 * l, Mels: 8, Layers: 1, Hidden: 6, Heads: 2, Kernel: 4, Expansion: 2}.build)
	att := "encoder.layer0.attention."
	for h := range int64(2) {
		for i := range int64(l) {
			for j := range int64(l) {
				want := []int64{0, h, i, j - i + l - 1}
				if got := origin(t, g, att+"shift", att+"position", []int64{0, h, i, j}); !slices.Equal(got, want) {
					t.Errorf("head %d, row %d, column %d comes from %v, want %v", h, i, j, got, want)
				}
			}
		}
	}
}

// TestWindows: windows are squares of the shifted image, and the way back leads
// to where an element was.
func TestWindows(t *testing.T) {
	const side, size, shift = 8, 4, 2
	g := one(t, windowed{Image: 16, Patch: 2, Width: 2, Depths: []int64{2, 1}, Heads: []int64{1, 1}, Window: size,
		Expansion: 2, Classes: 3}.build)
	for block, moved := range []int64{0, shift} {
		att := fmt.Sprintf("stage1.block%d.attention.", block)
		back := "image.flatten"
		if moved > 0 {
			back = "unshift.columns"
		}
		for y := range int64(side) {
			for x := range int64(side) {
				window, position := y/size*(side/size)+x/size, y%size*size+x%size
				in := []int64{0, (y + moved) % side, (x + moved) % side, 1}
				if got := origin(t, g, att+"windows.flatten", att+"norm", []int64{window, position, 1}); !slices.Equal(got, in) {
					t.Errorf("block %d: window %d, position %d comes from %v, want %v", block, window, position, got, in)
				}
				out := []int64{window, position, 1}
				if got := origin(t, g, att+back, att+"output.add", in); !slices.Equal(got, out) {
					t.Errorf("block %d: %v comes from %v, want %v", block, in, got, out)
				}
			}
		}
	}
	// Merging keeps neighbours together: rows first, as torchvision has it.
	for k, at := range [][2]int64{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
		want := []int64{0, 2*3 + at[0], 2*2 + at[1], 1}
		if got := origin(t, g, "stage2.merge.concat", "stage1.block1.ffn.residual",
			[]int64{0, 3, 2, 2*int64(k) + 1}); !slices.Equal(got, want) {
			t.Errorf("part %d comes from %v, want %v", k, got, want)
		}
	}
}

// TestSimplified: the normalisations of a Conformer go into its depthwise
// convolutions, and the projections of its distances, which read constants only,
// are done beforehand.
func TestSimplified(t *testing.T) {
	g := build(t, "conformer", 2)
	s, _, err := simplify.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	if c := constantMACs(g); c != 17*511*512*512 || s.MACs() != g.MACs()-c {
		t.Errorf("%d MACs, of which %d of constants; simplified %d", g.MACs(), c, s.MACs())
	}
	for _, k := range s.KindCounts() {
		if k.Kind == "BatchNorm" {
			t.Errorf("%d normalisations are left", k.Count)
		}
	}
}

func TestTransformerErrors(t *testing.T) {
	base := windowed{Image: 16, Patch: 2, Width: 4, Depths: []int64{1, 1}, Heads: []int64{1, 1}, Window: 4,
		Expansion: 2, Classes: 3}
	shape := func(change func(*windowed)) builder {
		c := base
		change(&c)
		return c.build
	}
	for _, tt := range []struct {
		name  string
		build builder
		want  string
	}{
		{"heads", vision{Image: 8, Patch: 4, Layers: 1, Hidden: 16, Heads: 3, FFN: 8, Classes: 2}.build,
			"16 features do not divide over 3 heads"},
		{"no heads", vision{Image: 8, Patch: 4, Layers: 1, Hidden: 16, FFN: 8, Classes: 2}.build,
			"16 features do not divide over 0 heads"},
		{"patches", vision{Image: 9, Patch: 4, Layers: 1, Hidden: 16, Heads: 2, FFN: 8, Classes: 2}.build,
			"9 rows does not divide into patches of 4"},
		{"no patch", vision{Image: 9, Layers: 1, Hidden: 16, Heads: 2, FFN: 8, Classes: 2}.build, "patches of 0"},
		{"swin patches", shape(func(c *windowed) { c.Patch = 3 }), "16 rows does not divide into patches of 3"},
		{"stages", shape(func(c *windowed) { c.Heads = c.Heads[:1] }), "2 stages with 1 numbers of heads"},
		{"windows", shape(func(c *windowed) { c.Window = 3 }), "stage1: 8 rows do not divide into windows of 3"},
		{"no window", shape(func(c *windowed) { c.Window = 0 }), "windows of 0"},
		{"later windows", shape(func(c *windowed) { c.Window = 8 }), "stage2: 4 rows do not divide into windows of 8"},
		{"swin heads", shape(func(c *windowed) { c.Heads = []int64{1, 3} }), "stage2: 8 features do not divide over 3 heads"},
		{"halves", shape(func(c *windowed) { c.Image, c.Window = 14, 7 }), "stage2.merge: 7 rows do not halve"},
		{"negative shapes", shape(func(c *windowed) { c.Width = -4 }), "expected a positive extent"},
		{"no layers", recommender{Dense: 3, Rows: []int64{5}, Bottom: []int64{4}}.build,
			"1 bottom layers, 0 top layers and 1 tables"},
		{"no dense", recommender{Rows: []int64{5}, Bottom: []int64{4}, Top: []int64{1}}.build, "expected a positive extent"},
		{"frames", speech{Frames: 10, Mels: 8, Layers: 1, Hidden: 8, Heads: 2, Kernel: 4, Expansion: 2}.build,
			"10 frames of 8 features cannot be quartered"},
		{"conformer heads", speech{Frames: 8, Mels: 8, Layers: 1, Hidden: 8, Heads: 5, Kernel: 4, Expansion: 2}.build,
			"8 features do not divide over 5 heads"},
		{"no kernel", speech{Frames: 8, Mels: 8, Layers: 1, Hidden: 8, Heads: 2, Expansion: 2}.build,
			"expected a positive extent"},
	} {
		g, err := tt.build("odd", Options{Batch: 1})
		if err == nil || g != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestDecoders: parameters as the published weights have them, and the products by formula:
// each weight once per token but for those looked up, and both of attention for all tokens
// and positions.
func TestDecoders(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		params                    int64
		tokens, positions, looked int64 // looked up and not multiplied by, elements
		apart                     int64 // no products: normalisations, biases
		c                         causal
	}{
		{"gpt2-prefill", 124439808, 1024, 1024, 1024 * 768, 12*(13*768) + 2*768, gpt2},
		{"gpt2-decode", 124439808, 1, 1024, 1024 * 768, 12*(13*768) + 2*768, gpt2},
		{"llama2-7b-prefill", 6738415616, 2048, 2048, 32000 * 4096, 65 * 4096, llama2},
		{"llama2-7b-decode", 6738415616, 1, 4096, 32000 * 4096, 65 * 4096, llama2},
		{"llama3-8b-prefill", 8030261248, 2048, 2048, 128256 * 4096, 65 * 4096, llama3},
		{"llama3-8b-decode", 8030261248, 1, 8192, 128256 * 4096, 65 * 4096, llama3},
		{"mixtral-8x7b-prefill", 46702792704, 2048, 2048, 32000*4096 + 32*6*3*4096*14336, 65 * 4096, mixtral},
		{"mixtral-8x7b-decode", 46702792704 - 32*6*3*4096*14336, 1, 4096, 32000 * 4096, 65 * 4096, mixtral},
	} {
		g := one(t, row(tt.name))
		if got := g.Params(); got != tt.params {
			t.Errorf("%s: %d parameters, want %d", tt.name, got, tt.params)
		}
		want := tt.tokens*(tt.params-tt.looked-tt.apart) + 2*tt.c.Layers*tt.tokens*tt.positions*tt.c.Hidden
		if got := g.MACs(); got != want {
			t.Errorf("%s: %d MACs, want %d", tt.name, got, want)
		}
	}
}

// TestDiffusion: parameters as diffusers counts those of Stable Diffusion v1.5, and of a
// part of it.
func TestDiffusion(t *testing.T) {
	for name, want := range map[string]int64{"sd-unet": 859520964, "sd-unet-block": 2255040 + 2546240,
		"sd-attention": 4*320*320 + 320} {
		if got := one(t, row(name)).Params(); got != want {
			t.Errorf("%s: %d parameters, want %d", name, got, want)
		}
	}
	n, c := int64(4096), int64(320)
	if got, want := one(t, row("sd-attention")).MACs(), 4*n*c*c+2*n*n*c; got != want {
		t.Errorf("sd-attention: %d MACs, want %d", got, want)
	}
}

// TestMamba: parameters of state-spaces/mamba-130m, 24 blocks with their embeddings.
func TestMamba(t *testing.T) {
	const block = 768 + 768*3072 + 5*1536 + 1536*80 + 49*1536 + 17*1536 + 1536*768
	for name, want := range map[string]int64{"mamba-130m": 129135360, "mamba-block": block} {
		if got := one(t, row(name)).Params(); got != want {
			t.Errorf("%s: %d parameters, want %d", name, got, want)
		}
	}
	if got, want := one(t, row("mamba-block")).MACs(), int64(512*(768*3072+4*1536+1536*80+48*1536+1536*768)); got != want {
		t.Errorf("mamba-block: %d MACs, want %d", got, want)
	}
}
