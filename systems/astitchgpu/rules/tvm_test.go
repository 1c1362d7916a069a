package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/rules"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

func fuseSIMT(b *model.Builder) (*fusion.Plan, error) {
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	m, err := simt.Load("v100-simt")
	if err != nil {
		return nil, err
	}
	return rules.TVM(g, m)
}

func operators(p *fusion.Plan) string {
	var out []string
	for _, k := range p.Kernels {
		out = append(out, strings.Join(k.Groups[0].Operators, " "))
	}
	return strings.Join(out, " | ")
}

func TestRulesOnSIMT(t *testing.T) {
	rows := model.Attr{Axes: []int64{1}, KeepDims: true}
	for _, c := range []struct {
		name  string
		build func(b *model.Builder)
		want  string
	}{
		{"a chain", func(b *model.Builder) {
			b.Output(b.Op("Exp", "e", model.Attr{}, b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8))))
		}, "n e"},
		{"a diamond", func(b *model.Builder) {
			n := b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8))
			b.Output(b.Op("Add", "a", model.Attr{}, b.Op("Exp", "e", model.Attr{}, n), b.Op("Abs", "f", model.Attr{}, n)))
		}, "n e f a"},
		{"a reduction in a diamond", func(b *model.Builder) {
			n := b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8, 4))
			b.Output(b.Op("Sub", "s", model.Attr{}, n, b.Op("ReduceSum", "r", rows, n)))
		}, "n | r | s"},
		{"into a reduction, through another operator", func(b *model.Builder) {
			b.Output(b.Op("ReduceSum", "r", rows,
				b.Op("Exp", "e", model.Attr{}, b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8, 4)))))
		}, "n e r"},
		{"a broadcast of something expensive", func(b *model.Builder) {
			b.Output(b.Op("Add", "a", model.Attr{}, b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 8, 1)),
				b.Input("y", model.F32, 8, 4)))
		}, "e a"},
		{"two results", func(b *model.Builder) {
			n := b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8))
			b.Output(n, b.Op("Exp", "e", model.Attr{}, n))
		}, "n | e"},
		{"around a product", func(b *model.Builder) {
			n := b.Op("Neg", "n", model.Attr{}, b.Input("x", model.F32, 8, 8))
			b.Output(b.Op("Add", "a", model.Attr{}, n, b.Op("MatMul", "m", model.Attr{}, n, b.Param("w", model.F32, 8, 8))))
		}, "n | m | a"},
	} {
		b := model.NewBuilder("rules")
		c.build(b)
		p, err := fuseSIMT(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := operators(p); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func ExampleTVM() {
	b := model.NewBuilder("mean")
	x := b.Input("x", model.F32, 64, 128)
	m := b.Op("ReduceMean", "mean", model.Attr{Axes: []int64{1}, KeepDims: true}, x)
	b.Output(b.Op("Exp", "exp", model.Attr{}, b.Op("Sub", "subtract", model.Attr{}, x, m)))
	p, err := fuseSIMT(b)
	if err != nil {
		panic(err)
	}
	fmt.Println(operators(p))
	for _, c := range p.Cuts {
		fmt.Println(c.FromName, "->", c.ToName+":", c.Reason)
	}
	// Output:
	// mean | subtract exp
	// mean -> subtract: nothing joins a reduction's result
}
