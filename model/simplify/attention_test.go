package simplify_test

import (
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

// Keys and values that a Concat puts together become parts of the attention where it alone reads them, cut alike.
func TestKeyParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		parts  int
		change func(b *model.Builder, keys, values *[]model.TensorID)
		behind func(b *model.Builder, keys, values model.TensorID)
	}{
		{name: "cache and token", parts: 2},
		{name: "three", parts: 3, change: func(b *model.Builder, keys, values *[]model.TensorID) {
			*keys = append(*keys, b.Input("k2", model.F16, 2, 3, 4, 5))
			*values = append(*values, b.Input("v2", model.F16, 2, 3, 4, 6))
		}},
		{name: "another cut", parts: 1, change: func(_ *model.Builder, keys, _ *[]model.TensorID) {
			(*keys)[0], (*keys)[1] = (*keys)[1], (*keys)[0]
		}},
		{name: "a constant", parts: 1, change: func(b *model.Builder, keys, _ *[]model.TensorID) {
			(*keys)[0] = b.Param("prefix", model.F16, 2, 3, 7, 5)
		}},
		{name: "two readers", parts: 1, behind: func(b *model.Builder, keys, _ model.TensorID) {
			b.Output(b.Op("Relu", "more", model.Attr{}, keys))
		}},
		{name: "an output", parts: 1, behind: func(b *model.Builder, _, values model.TensorID) { b.Output(values) }},
	} {
		b := model.NewBuilder(c.name)
		keys := []model.TensorID{b.Input("k0", model.F16, 2, 3, 7, 5), b.Input("k1", model.F16, 2, 3, 1, 5)}
		values := []model.TensorID{b.Input("v0", model.F16, 2, 3, 7, 6), b.Input("v1", model.F16, 2, 3, 1, 6)}
		if c.change != nil {
			c.change(b, &keys, &values)
		}
		k, v := b.Op("Concat", "k", model.Attr{Axis: 2}, keys...), b.Op("Concat", "v", model.Attr{Axis: 2}, values...)
		if c.behind != nil {
			c.behind(b, k, v)
		}
		p := b.Op("MatMul", "scores", model.Attr{}, b.Input("q", model.F16, 2, 3, 2, 5),
			b.Op("Transpose", "columns", model.Attr{Perm: []int64{0, 1, 3, 2}}, k))
		b.Output(b.Op("MatMul", "context", model.Attr{}, b.Op("Softmax", "softmax", model.Attr{Axis: 3}, p), v))
		g, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		f, n, err := simplify.FuseAttention(g)
		if err != nil || n != 1 {
			t.Fatalf("%s: %d attentions, %v", c.name, n, err)
		}
		for _, op := range f.Ops {
			if op.Kind == "Attention" && op.KeyParts() != c.parts {
				t.Errorf("%s: keys in %d parts, want %d", c.name, op.KeyParts(), c.parts)
			}
		}
	}
	for _, name := range []string{"gpt2-decode", "llama3-8b-decode"} { // copies no cache
		g, err := zoo.Build(name, zoo.Options{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := simplify.FuseAttention(g)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range f.Ops {
			if op.Kind == "Attention" && op.KeyParts() != 2 {
				t.Errorf("%s: %q has keys in %d parts, want 2", name, op.Name, op.KeyParts())
			}
		}
	}
}
