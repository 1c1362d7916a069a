package network

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/simplify"
)

// shared is where the ONNX files stand beside the project; they are no part of it.
const shared = "../../../shared/data/onnx"

func raw(t *testing.T, name string) (g, simple *model.Graph) {
	t.Helper()
	g, err := Raw(name, 2, Options{})
	if err != nil {
		t.Fatal(err)
	}
	simple, _, err = simplify.Run(g)
	if err != nil {
		t.Fatal(err)
	}
	return g, simple
}

// products lists the operators with multiply-accumulates, in order: MACs, and the
// elements of the weights.
func products(g *model.Graph) []string {
	var list []string
	for _, op := range g.Ops {
		if n := g.Work(op, nil).MACs; n > 0 {
			list = append(list, fmt.Sprintf("%d MACs with %d weights", n, g.Tensor(op.Inputs[1]).Shape.Elements()))
		}
	}
	return list
}

// surplus counts how many operators of each kind a has more than b.
func surplus(a, b *model.Graph) map[model.Kind]int {
	diff := map[model.Kind]int{}
	for _, k := range a.KindCounts() {
		diff[k.Kind] += k.Count
	}
	for _, k := range b.KindCounts() {
		if diff[k.Kind] -= k.Count; diff[k.Kind] == 0 {
			delete(diff, k.Kind)
		}
	}
	return diff
}

// scales counts the learned constants of a graph's normalisations.
func scales(g *model.Graph) int64 {
	n := int64(0)
	for _, op := range g.Ops {
		if op.Kind == "BatchNorm" {
			n += g.Tensor(op.Inputs[1]).Shape.Elements() + g.Tensor(op.Inputs[2]).Shape.Elements()
		}
	}
	return n
}

// TestThreeResNet18s: the zoo's, a file with folded normalisations and one whose
// layers are functions of the file are one network after simplification.
func TestThreeResNet18s(t *testing.T) {
	_, zoo := raw(t, "resnet18")
	for _, file := range []string{"resnet18.onnx", "resnet18_dynamo.onnx"} {
		path := filepath.Join(shared, file)
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
		_, g := raw(t, path)
		if a, b := products(zoo), products(g); !slices.Equal(a, b) {
			t.Errorf("%s: products\n%q, want\n%q", file, b, a)
		}
		if g.Params() != zoo.Params() {
			t.Errorf("%s: %d parameters, want %d", file, g.Params(), zoo.Params())
		}
		// The zoo's ends in a softmax; the exporter wrote the average as a mean.
		got := surplus(g, zoo)
		delete(got, "Softmax")
		if got["ReduceMean"] == -got["GlobalAveragePool"] {
			delete(got, "ReduceMean")
			delete(got, "GlobalAveragePool")
		}
		if len(got) > 0 {
			t.Errorf("%s: other operators by kind: %v", file, got)
		}
	}
}

// TestZooAgreesWithFiles compares networks of the zoo with files that others
// exported: the products one by one, parameters, and operators by kind after
// simplification. What differs is listed here, with the reason, and nothing else
// may.
func TestZooAgreesWithFiles(t *testing.T) {
	none := func(*model.Graph) int64 { return 0 }
	for _, tt := range []struct {
		name, file string
		// folded: the file's normalisations are already part of its convolutions, so
		// its parameters are those of the simplified network.
		folded bool
		params func(zoo *model.Graph) int64 // that the file has more
		kinds  map[model.Kind]int           // that the file has more, or less
	}{
		// The file averages with a window of the whole image.
		{"resnet50", "light_resnet50", false, none, map[model.Kind]int{"AveragePool": 1, "GlobalAveragePool": -1}},
		{"squeezenet", "light_squeezenet", false, none, nil},
		{"vgg19", "light_vgg19", false, none, nil},
		{"alexnet", "light_bvlc_alexnet", false, none, nil},
		{"inception-v1", "light_inception_v1", false, none, nil},
		// In Caffe scale and shift are a layer of their own, behind a normalisation
		// that has a scale and a shift in ONNX again: the file has all of them twice.
		// Its classifier is a 1x1 convolution, and the softmax is not part of it.
		{"densenet121", "light_densenet121", false, scales,
			map[model.Kind]int{"Mul": 121, "Add": 121, "Conv": 1, "Gemm": -1, "Reshape": -1, "Softmax": -1}},
		// torchvision leaves the softmax to the user.
		{"resnet18", "resnet18", true, none, map[model.Kind]int{"Softmax": -1}},
		{"mobilenetv2", "mobilenetv2", true, none, map[model.Kind]int{"Softmax": -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(shared, tt.file+".onnx")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("no shared file %s", path)
			}
			zoo, zooSimple := raw(t, tt.name)
			file, fileSimple := raw(t, path)
			if a, b := zoo.MACs(), file.MACs(); a != b {
				t.Errorf("%d MACs, the file has %d", a, b)
			}
			if a, b := products(zoo), products(file); !slices.Equal(a, b) {
				t.Errorf("products\n%v\nthe file has\n%v", a, b)
			}
			want := zoo.Params() + tt.params(zoo)
			if tt.folded {
				want = zooSimple.Params()
			}
			if got := file.Params(); got != want {
				t.Errorf("the file has %d parameters, expected %d", got, want)
			}
			if got := surplus(fileSimple, zooSimple); fmt.Sprint(got) != fmt.Sprint(tt.kinds) {
				t.Errorf("the simplified file has %v operators more, expected %v", got, tt.kinds)
			}
			if len(tt.kinds) == 0 {
				identical(t, zooSimple, fileSimple)
			}
		})
	}
}

// identical compares operator by operator.
func identical(t *testing.T, zoo, file *model.Graph) {
	t.Helper()
	describe := func(g *model.Graph, i int) string {
		op := g.Ops[i]
		s := fmt.Sprintf("%s %v", op.Kind, g.Tensor(op.Outputs[0]).Shape)
		if op.Kind == "Softmax" {
			return s // the file's operator set reads the axis as that of a matrix
		}
		a := op.Attr
		return fmt.Sprintf("%s kernel %v strides %v pads %v group %d shape %v %s", s, a.Kernel, a.Strides, a.Pads, a.Group,
			a.Shape, a.Variant)
	}
	if len(zoo.Ops) != len(file.Ops) {
		t.Fatalf("%d operators, the file has %d", len(zoo.Ops), len(file.Ops))
	}
	for i := range zoo.Ops {
		if a, b := describe(zoo, i), describe(file, i); a != b {
			t.Errorf("operator %d is %s, in the file %s", i, a, b)
		}
	}
}

// What a file has whole is taken apart as the grain says; what it has in parts stays so at
// every grain, and nothing is put together.
func TestGrainsOfFiles(t *testing.T) {
	for _, c := range []struct {
		file  string
		kinds map[grain.Grain]string // layer normalisations, means, softmaxes, sums
	}{
		{"CCT_FP32_CCT_2_32_32_128.onnx", map[grain.Grain]string{grain.Given: "5 0 3 0", grain.Framework: "0 10 3 0",
			grain.Primitive: "0 10 0 3"}},
		{"torchscript_model.onnx", map[grain.Grain]string{grain.Given: "0 21 10 0", grain.Framework: "0 21 10 0",
			grain.Primitive: "0 21 0 10"}},
	} {
		path := filepath.Join(shared, c.file)
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
		for _, to := range grain.Grains() {
			g, err := Raw(path, 0, Options{Grain: to})
			if err != nil {
				t.Fatal(err)
			}
			n := map[model.Kind]int{}
			for _, k := range g.KindCounts() {
				n[k.Kind] = k.Count
			}
			if got := fmt.Sprint(n["LayerNorm"], n["ReduceMean"], n["Softmax"], n["ReduceSum"]); got != c.kinds[to] {
				t.Errorf("%s, %s: %s layer normalisations, means, softmaxes and sums, want %s", c.file, to, got, c.kinds[to])
			}
		}
	}
}

// A name says its grain, and is read back.
func TestAt(t *testing.T) {
	net, err := Open("bert-128", Options{Grain: grain.Framework})
	if err != nil {
		t.Fatal(err)
	}
	if name, to := At(net.Name); net.Name != "bert-128@framework" || name != "bert-128" || to != grain.Framework {
		t.Errorf("%s is %s at %s", net.Name, name, to)
	}
	if name, to := At("bert-128@fine"); name != "bert-128@fine" || to != "" {
		t.Errorf("no grain: %s at %q", name, to)
	}
}
