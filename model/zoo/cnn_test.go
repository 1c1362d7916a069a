package zoo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// TestPublishedCountsOfCNNs compares with what others state. Figures are compared
// with the digits that the source gives.
func TestPublishedCountsOfCNNs(t *testing.T) {
	const (
		// The metadata of torchvision's weights (num_params, and _ops, which are
		// multiply-accumulates).
		torchvision = "torchvision"
		// The same, less the auxiliary classifier, which has 3 326 696 parameters.
		withoutAux = "torchvision, aux_logits=False"
		// Parameters of the PyTorch port (pretrained-models.pytorch), MACs of the
		// paper's Tables 2 and 3.
		nasnets = "Zoph et al., CVPR 2018, and its PyTorch port"
		// Parameters of the released Caffe models; MACs of Sze et al., Proc. IEEE
		// 105(12), 2017, Table II.
		caffe = "BVLC releases; Sze et al. 2017"
	)
	for _, tt := range []struct {
		name   string
		params int64
		digits int // behind the point of the GMACs
		gmacs  string
		source string
	}{
		{"resnet18", 11689512, 3, "1.814", torchvision},
		{"resnet34", 21797672, 3, "3.664", torchvision},
		{"resnet101", 44549160, 3, "7.801", torchvision},
		{"resnet152", 60192808, 3, "11.514", torchvision},
		{"resnext50-32x4d", 25028904, 3, "4.230", torchvision},
		{"vgg16", 138357544, 3, "15.470", torchvision},
		{"vgg19", 143667240, 3, "19.632", torchvision},
		{"squeezenet", 1235496, 3, "0.349", torchvision},
		{"inception-v3", 27161264 - 3326696, 3, "5.713", withoutAux},
		{"densenet121", 7978856, 3, "2.834", torchvision},
		{"mobilenetv2", 3504872, 3, "0.301", torchvision},
		{"nasnet-mobile", 5289978, 3, "0.564", nasnets},
		{"nasnet-large", 88753150, 1, "23.8", nasnets},
		{"inception-v1", 6998552, 2, "1.43", caffe},
	} {
		g := build(t, tt.name, 1)
		if got := g.Params(); got != tt.params {
			t.Errorf("%s: %d parameters, want %d (%s)", tt.name, got, tt.params, tt.source)
		}
		if got := fmt.Sprintf("%.*f", tt.digits, float64(g.MACs())/1e9); got != tt.gmacs {
			t.Errorf("%s: %s GMAC, want %s (%s)", tt.name, got, tt.gmacs, tt.source)
		}
	}
	// AlexNet's 724 M are for 227 rows; the row of the zoo has 224.
	g, err := alexnet(227)("alexnet", Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.MACs(); (got+500_000)/1_000_000 != 724 || g.Params() != 60965224 {
		t.Errorf("alexnet at 227: %d MACs, %d parameters, want 724 M and 60965224 (%s)", got, g.Params(), caffe)
	}
	if got := build(t, "alexnet", 1).Params(); got != g.Params() {
		t.Errorf("alexnet at 224 has %d parameters, at 227 %d", got, g.Params())
	}
}

func TestShapesOfCNNs(t *testing.T) {
	for _, tt := range []struct {
		name string
		want map[string]model.Shape // at batch 2
	}{
		{"resnet18", map[string]model.Shape{
			"stage1.block1.relu": {2, 64, 56, 56}, "stage4.block1.relu": {2, 512, 7, 7},
			"stage2.block0.shortcut.conv": {2, 128, 28, 28}}},
		{"resnet18-tailor", map[string]model.Shape{
			"stage2.block0.conv1.weight": {128, 64, 3, 3}, "stage2.block0.conv2.weight": {128, 128, 1, 1},
			"stage4.block1.relu": {2, 512, 7, 7}}},
		{"resnext50-32x4d", map[string]model.Shape{
			"stage1.block0.conv1": {2, 128, 56, 56}, "stage1.block0.conv2.weight": {128, 4, 3, 3},
			"stage4.block2.conv2.weight": {1024, 32, 3, 3},
			"stage4.block2.conv3":        {2, 2048, 7, 7}}},
		{"vgg16", map[string]model.Shape{
			"stage1.pool": {2, 64, 112, 112}, "stage3.conv3": {2, 256, 56, 56}, "stage5.pool": {2, 512, 7, 7},
			"head.flatten": {2, 25088}}},
		{"vgg19", map[string]model.Shape{"stage5.conv4": {2, 512, 14, 14}, "head.fc6.weight": {4096, 25088},
			"head.softmax": {2, 1000}}},
		{"alexnet", map[string]model.Shape{
			"conv1": {2, 96, 54, 54}, "pool1": {2, 96, 26, 26}, "conv2.weight": {256, 48, 5, 5}, "pool2": {2, 256, 12, 12},
			"pool5": {2, 256, 6, 6}}},
		{"squeezenet", map[string]model.Shape{
			"conv1": {2, 64, 111, 111}, "fire3.concat": {2, 128, 55, 55}, "fire5.concat": {2, 256, 27, 27},
			"fire9.concat": {2, 512, 13, 13},
			"head.softmax": {2, 1000, 1, 1}}},
		{"inception-v1", map[string]model.Shape{
			"inception3a.concat": {2, 256, 27, 27}, "inception4e.concat": {2, 832, 13, 13},
			"inception5b.concat": {2, 1024, 6, 6}, "head.pool": {2, 1024, 1, 1}}},
		// Table 1 of Szegedy et al. 2016.
		{"inception-v3", map[string]model.Shape{
			"conv1a.conv": {2, 32, 149, 149}, "conv2b.conv": {2, 64, 147, 147}, "pool2": {2, 64, 73, 73},
			"pool4":          {2, 192, 35, 35},
			"mixed5b.concat": {2, 256, 35, 35}, "mixed5d.concat": {2, 288, 35, 35}, "mixed6a.concat": {2, 768, 17, 17},
			"mixed6e.concat": {2, 768, 17, 17}, "mixed7a.concat": {2, 1280, 8, 8}, "mixed7c.concat": {2, 2048, 8, 8},
			"mixed6b.branch1.1.conv.weight": {128, 128, 1, 7}, "mixed7b.branch2.3x1.conv": {2, 384, 8, 8}}},
		{"mofang-inception", map[string]model.Shape{"image": {2, 2048, 8, 8}, "mixed7c.concat": {2, 1280, 8, 8}}},
		{"densenet121", map[string]model.Shape{
			"block1.layer5.concat": {2, 256, 56, 56}, "transition1.pool": {2, 128, 28, 28},
			"block2.layer11.concat": {2, 512, 28, 28},
			"block3.layer23.concat": {2, 1024, 14, 14}, "block4.layer0.bottleneck.conv": {2, 128, 7, 7},
			"block4.layer15.concat": {2, 1024, 7, 7}}},
		{"mobilenetv2", map[string]model.Shape{
			"stage1.block0.depthwise.conv": {2, 32, 112, 112}, "stage2.block0.expand.conv": {2, 96, 112, 112},
			"stage2.block1.add":                   {2, 24, 56, 56},
			"stage4.block3.depthwise.conv.weight": {384, 1, 3, 3}, "stage7.block0.project.conv": {2, 320, 7, 7},
			"last.conv": {2, 1280, 7, 7}}},
		{"nasnet-mobile", map[string]model.Shape{
			"stem.conv": {2, 32, 111, 111}, "stem0.concat": {2, 44, 56, 56}, "stem1.concat": {2, 88, 28, 28},
			"stack1.cell0.concat": {2, 264, 28, 28},
			"reduction1.concat":   {2, 352, 14, 14}, "stack2.cell3.concat": {2, 528, 14, 14},
			"stack3.cell3.concat":                  {2, 1056, 7, 7},
			"stem0.pair0.right.1.pointwise.weight": {11, 32, 1, 1}}},
		{"nasnet-large", map[string]model.Shape{
			"stem.conv": {2, 96, 165, 165}, "stem0.concat": {2, 168, 83, 83}, "stem1.concat": {2, 336, 42, 42},
			"stack1.cell5.concat":            {2, 1008, 42, 42},
			"stack2.cell0.previous.odd.conv": {2, 168, 21, 21}, "stack2.cell5.concat": {2, 2016, 21, 21},
			"stack3.cell5.concat": {2, 4032, 11, 11}}},
	} {
		g := build(t, tt.name, 2)
		for name, want := range tt.want {
			if got := shapeOf(t, g, name); !got.Equal(want) {
				t.Errorf("%s: %s is %v, want %v", tt.name, name, got, want)
			}
		}
	}
}

// TestOperatorsOfCNNs counts what published descriptions let one count: layers
// with weights, sums, places where branches meet.
func TestOperatorsOfCNNs(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"resnet18",
			"[{Add 8} {BatchNorm 20} {Conv 20} {Gemm 1} {GlobalAveragePool 1} {MaxPool 1} {Relu 17} {Reshape 1} {Softmax 1}]"},
		{"vgg16", "[{Conv 13} {Dropout 2} {Gemm 3} {MaxPool 5} {Relu 15} {Reshape 1} {Softmax 1}]"},
		// Eleven modules; the last two fork twice each.
		{"inception-v3",
			"[{AveragePool 9} {BatchNorm 94} {Concat 15} {Conv 94} {Gemm 1} {GlobalAveragePool 1} {MaxPool 4} {Relu 94} {Reshape 1} {Softmax 1}]"},
		// One layer less than the name says is the product; a block's layers are pairs.
		{"densenet121",
			"[{AveragePool 3} {BatchNorm 121} {Concat 58} {Conv 120} {Gemm 1} {GlobalAveragePool 1} {MaxPool 1} {Relu 121} {Reshape 1} {Softmax 1}]"},
		{"mobilenetv2",
			"[{Add 10} {BatchNorm 52} {Clip 35} {Conv 52} {Gemm 1} {GlobalAveragePool 1} {Reshape 1} {Softmax 1}]"},
	} {
		if got := fmt.Sprint(build(t, tt.name, 1).KindCounts()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestMeansAreNoParameters: the statistics of all normalisations.
func TestMeansAreNoParameters(t *testing.T) {
	for _, name := range Names() {
		for _, x := range build(t, name, 1).Tensors {
			if statistic := strings.HasSuffix(x.Name, ".mean") ||
				strings.HasSuffix(x.Name, ".variance"); statistic && x.Learned {
				t.Errorf("%s: %s is learned", name, x.Name)
			}
		}
	}
}

// TestTailoredResNet: what is assumed of it is all that sets it apart.
func TestTailoredResNet(t *testing.T) {
	g, tailored := build(t, "resnet18", 1), build(t, "resnet18-tailor", 1)
	if len(g.Ops) != len(tailored.Ops) {
		t.Fatalf("%d operators, resnet18 has %d", len(tailored.Ops), len(g.Ops))
	}
	var changed []string
	for i, op := range g.Ops {
		x := tailored.Ops[i]
		if x.Name != op.Name || x.Kind != op.Kind ||
			!tailored.Tensor(x.Outputs[0]).Shape.Equal(g.Tensor(op.Outputs[0]).Shape) {
			t.Errorf("operator %d is %s %s, in resnet18 %s %s", i, x.Kind, x.Name, op.Kind, op.Name)
		}
		if fmt.Sprint(x.Attr) != fmt.Sprint(op.Attr) {
			changed = append(changed, x.Name)
		}
	}
	var want []string
	for s := 1; s <= 4; s++ {
		for i := range 2 {
			want = append(want, fmt.Sprintf("stage%d.block%d.conv2", s, i))
		}
	}
	if !slices.Equal(changed, want) {
		t.Errorf("differs in %v, want %v", changed, want)
	}
}

// TestMofangInception: the dependencies that the paper's text states, and that the
// convolutions are those of the whole network.
func TestMofangInception(t *testing.T) {
	g, whole := build(t, "mofang-inception", 1), build(t, "inception-v3", 1)
	letters := map[string]string{"mixed7c.branch1.0.conv": "a", "mixed7c.branch0.0.conv": "b",
		"mixed7c.branch2.1.conv": "c",
		"mixed7c.branch2.0.conv": "d", "mixed7c.pool.project.conv": "e"}
	// before lists the convolutions that each operator depends on, itself included.
	before := make([]map[string]bool, len(g.Ops))
	found := map[string][]string{}
	for i, op := range g.Ops {
		before[i] = map[string]bool{}
		for _, in := range op.Inputs {
			if p := g.Tensor(in).Producer; p != model.NoOp {
				for l := range before[p] {
					before[i][l] = true
				}
			}
		}
		if op.Kind != "Conv" {
			continue
		}
		letter := letters[op.Name]
		found[letter] = []string{}
		for l := range before[i] {
			found[letter] = append(found[letter], l)
		}
		before[i][letter] = true
		if a, b := shapeOf(t, g, op.Name+".weight"), shapeOf(t, whole, op.Name+".weight"); !a.Equal(b) {
			t.Errorf("%s has weights %v, in inception-v3 %v", op.Name, a, b)
		}
		if direct := op.Inputs[0] == g.Inputs[0]; direct != strings.Contains("abd", letter) {
			t.Errorf("(%s) reads the module's input: %t", letter, direct)
		}
	}
	if want := "map[a:[] b:[] c:[d] d:[] e:[]]"; fmt.Sprint(found) != want {
		t.Errorf("dependencies %v, want %s", found, want)
	}
}

// TestSamePadding: as TensorFlow documents SAME, for which the odd element of
// padding goes behind.
func TestSamePadding(t *testing.T) {
	g := build(t, "nasnet-mobile", 1)
	want := map[string]string{
		"stem0.pair0.right.1.depthwise":      "[3 3 3 3]", // 111 rows, stride 2, 7x7
		"stem1.pair0.right.1.depthwise":      "[2 2 3 3]", // 56 rows
		"stem1.pair0.right.2.depthwise":      "[3 3 3 3]", // 28 rows, stride 1
		"stem1.pair0.left.1.depthwise":       "[1 1 2 2]", // 5x5
		"stem1.pair1.left":                   "[0 0 1 1]", // pooling
		"stack1.cell0.pair2.left":            "[1 1 1 1]",
		"reduction1.pair4.left.1.depthwise":  "[1 1 1 1]", // 3x3, stride 1
		"reduction2.pair2.right.1.depthwise": "[1 1 2 2]",
	}
	for _, op := range g.Ops {
		// The diagonal of factorised reduction.
		if op.Kind == "Slice" && fmt.Sprint(op.Attr.Starts) != "[0 0 1 1]" {
			t.Errorf("%s starts at %v, want one row and column further", op.Name, op.Attr.Starts)
		}
		if w, ok := want[op.Name]; ok {
			if got := fmt.Sprint(op.Attr.Pads); got != w {
				t.Errorf("%s has pads %s, want %s", op.Name, got, w)
			}
			delete(want, op.Name)
		}
	}
	for name := range want {
		t.Errorf("no operator is called %s", name)
	}
}

// TestNASNetWiring spells out both cells as in the paper's Fig. 4, and what each
// cell reads: counts and shapes hold for other wirings as well.
func TestNASNetWiring(t *testing.T) {
	g := build(t, "nasnet-mobile", 1)
	// relative shortens the names of the cell's own tensors.
	relative := func(cell, name string) string {
		name, own := strings.CutPrefix(name, cell+".")
		if own {
			name = strings.TrimSuffix(strings.TrimSuffix(name, ".bn"), ".add")
		}
		return name
	}
	// side follows one side of a sum back to where it begins.
	side := func(cell, prefix string, x model.TensorID) string {
		what := ""
		for {
			p := g.Tensor(x).Producer
			op := g.Ops[p]
			if !strings.HasPrefix(op.Name, prefix) {
				return what + relative(cell, op.Name)
			}
			if op.Kind == "AveragePool" || op.Kind == "MaxPool" {
				what = fmt.Sprintf("%s%d/%d ", strings.ToLower(string(op.Kind[:3])), op.Attr.Kernel[0], op.Attr.Strides[0]) + what
			} else if op.Kind == "Conv" && op.Attr.Group > 1 {
				what = fmt.Sprintf("sep%d/%d ", g.Tensor(op.Inputs[1]).Shape[2], op.Attr.Strides[0]) + what
			}
			x = op.Inputs[0]
		}
	}
	normal := []string{
		"sep5/1 sep5/1 current + sep3/1 sep3/1 previous", "sep5/1 sep5/1 previous + sep3/1 sep3/1 previous",
		"ave3/1 current + previous", "ave3/1 previous + ave3/1 previous", "sep3/1 sep3/1 current + current",
		"previous pair0 pair1 pair2 pair3 pair4",
	}
	reducing := []string{
		"sep5/2 sep5/1 current + sep7/2 sep7/1 previous", "max3/2 current + sep7/2 sep7/1 previous",
		"ave3/2 current + sep5/2 sep5/1 previous", "ave3/1 pair0 + pair1", "sep3/1 sep3/1 pair0 + max3/2 current",
		"pair1 pair2 pair3 pair4",
	}
	for _, tt := range []struct {
		cell              string
		want              []string
		current, previous string // tensors that the cell reads
	}{
		{"stem0", reducing, "stem.bn", ""}, // its sums read the other input as it is
		{"stem1", reducing, "stem0.concat", "stem.bn"},
		{"stack1.cell0", normal, "stem1.concat", "stem0.concat"},
		{"stack1.cell1", normal, "stack1.cell0.concat", "stem1.concat"},
		{"stack1.cell3", normal, "stack1.cell2.concat", "stack1.cell1.concat"},
		{"reduction1", reducing, "stack1.cell3.concat", "stack1.cell2.concat"},
		{"stack2.cell0", normal, "reduction1.concat", "stack1.cell3.concat"},
		{"stack2.cell1", normal, "stack2.cell0.concat", "reduction1.concat"},
		{"stack3.cell3", normal, "stack3.cell2.concat", "stack3.cell1.concat"},
	} {
		var got []string
		reads := map[string]string{}
		for _, op := range g.Ops {
			name, own := strings.CutPrefix(op.Name, tt.cell+".")
			switch {
			case !own:
			case op.Kind == "Add":
				prefix := strings.TrimSuffix(op.Name, ".add")
				got = append(got, side(tt.cell, prefix+".left", op.Inputs[0])+" + "+side(tt.cell, prefix+".right", op.Inputs[1]))
			case name == "concat":
				var parts []string
				for _, in := range op.Inputs {
					parts = append(parts, relative(tt.cell, g.Tensor(in).Name))
				}
				got = append(got, strings.Join(parts, " "))
			case name == "current.relu" || name == "previous.relu":
				reads[strings.TrimSuffix(name, ".relu")] = g.Tensor(op.Inputs[0]).Name
			}
		}
		want := slices.Clone(tt.want)
		if tt.previous == "" {
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "previous", tt.current)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.cell, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if reads["current"] != tt.current || reads["previous"] != tt.previous {
			t.Errorf("%s reads %v, want %s and %q", tt.cell, reads, tt.current, tt.previous)
		}
	}
}

// TestErrorsWithinNetworks: a batch for which some tensor on the way becomes too
// large is an error that names the network, wherever that tensor stands.
func TestErrorsWithinNetworks(t *testing.T) {
	for _, name := range Names() {
		for shift := 20; shift <= 44; shift++ {
			g, err := Build(name, Options{Batch: 1 << shift})
			switch {
			case err == nil && shift == 44:
				t.Errorf("%s: no error at batch 2^44", name)
			case err != nil && (g != nil || !strings.Contains(err.Error(), name)):
				t.Errorf("%s at batch 2^%d: graph %v, error %v", name, shift, g, err)
			}
		}
	}
}
