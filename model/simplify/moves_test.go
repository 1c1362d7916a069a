package simplify

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// origins lists, for an element of a tensor, the elements of constants that it is computed from, in order.
func origins(g *model.Graph, id model.TensorID, at model.Region) (list []string) {
	t := g.Tensor(id)
	if t.Producer == model.NoOp {
		pos := int64(0)
		for d, iv := range at {
			pos = pos*t.Shape[d] + iv.Lo
		}
		return []string{fmt.Sprintf("%s %d", strings.TrimSuffix(t.Name, "/moved"), pos)}
	}
	op := g.Op(t.Producer)
	for k, in := range op.Inputs {
		if r := g.InputRegion(op, 0, k, at); r.Elements() > 0 || len(r) == 0 {
			list = append(list, origins(g, in, r)...)
		}
	}
	return list
}

// Weights that are dequantised, scaled and moved when the network runs have their moves done on the constants: every
// result is computed from elements that stand elsewhere, but each always for the same one.
func TestMoveConstants(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	pick := func(of ...int64) int64 { return of[r.IntN(len(of))] }
	left, all := 0, 0
	for n := range 300 {
		b := model.NewBuilder("moves")
		weight := func(name string, shape model.Shape) model.TensorID {
			x := b.Param(name, model.I8, shape...)
			a, in := model.Attr{Axis: int64(model.F16)}, []model.TensorID{x}
			scale := func(s string, shape ...int64) { in = append(in, b.Param(name+s, model.F16, shape...)) }
			switch r.IntN(4) {
			case 0:
				scale("scale")
			case 1:
				d := r.IntN(len(shape))
				a.Axes = []int64{int64(d)}
				scale("scale", shape[d])
				scale("zero", shape[d])
			case 2:
				s := shape.Clone()
				s[len(s)-1] /= 16
				scale("scale", s...)
			default:
				scale("scale", append(shape[:len(shape)-1].Clone(), 1)...)
			}
			x = b.Op("Dequantize", name+"d", a, in...)
			if r.IntN(3) == 0 {
				x = b.Op("Mul", name+"m", model.Attr{}, x, b.Param(name+"f", model.F16, shape[len(shape)-1]))
			}
			return x
		}
		shape := model.Shape{pick(48, 64), pick(96, 128)}
		if r.IntN(3) == 0 {
			shape = model.Shape{8, pick(6, 16), pick(96, 128)}
		}
		x := weight("w", shape)
		moves := 1 + r.IntN(3)
		for i := range moves {
			s, name := b.Tensor(x).Shape, fmt.Sprint("move", i)
			switch r.IntN(4) {
			case 0:
				a := model.Attr{Shape: s.Clone()}
				for range s {
					a.Starts, a.Steps = append(a.Starts, 0), append(a.Steps, 1)
				}
				if d := r.IntN(len(s)); s[d]%32 == 0 {
					a.Starts[d], a.Shape[d] = 16, s[d]-16
				}
				x = b.Op("Slice", name, a, x)
			case 1:
				d := r.IntN(len(s))
				to := append(append(s[:d].Clone(), s[d]/2, 2), s[d+1:]...)
				if len(s) > 2 && r.IntN(2) == 0 {
					to = append(model.Shape{s[0] * s[1]}, s[2:]...)
				}
				if to.Elements() == s.Elements() {
					x = b.Op("Reshape", name, model.Attr{Shape: to}, x)
				}
			default:
				a := model.Attr{}
				for _, d := range r.Perm(len(s)) {
					a.Perm = append(a.Perm, int64(d))
				}
				x = b.Op("Transpose", name, a, x)
			}
		}
		b.Output(b.Op("Add", "out", model.Attr{}, x, b.Input("x", model.F16, 1)))
		g, err := b.Build()
		if err != nil {
			t.Fatal(n, err)
		}
		s, _, err := runPasses(g, passes, true)
		if err != nil {
			t.Fatal(n, err)
		}
		move := func(op *model.Op) bool { return op.Kind == "Transpose" || op.Kind == "Slice" }
		for _, op := range s.Ops {
			if move(op) {
				left++
			}
		}
		for _, op := range g.Ops {
			if move(op) {
				all++
			}
		}
		out := g.Tensor(g.Outputs[0]).Shape
		to, back := map[string]string{}, map[string]string{}
		for range 400 {
			at := make(model.Region, len(out))
			for d, n := range out {
				at[d].Lo = r.Int64N(n)
				at[d].Hi = at[d].Lo + 1
			}
			was, is := origins(g, g.Outputs[0], at), origins(s, s.Outputs[0], at)
			if strings.HasPrefix(is[0], "move") { // what is left is small: a constant
				break
			}
			if len(was) != len(is) {
				t.Fatalf("%d: %v, was %v", n, is, was)
			}
			for k := range was {
				x, y := was[k], is[k]
				name, _, _ := strings.Cut(x, " ")
				if other, _, _ := strings.Cut(y, " "); other != name {
					t.Fatalf("%d: element %v of %q, was of %q", n, at, other, name)
				}
				y = y + " of " + name[:1]
				if v, ok := to[y]; ok && v != x && !strings.Contains(y, "scale") && !strings.Contains(y, "zero") {
					t.Fatalf("%d: %s stands for %s and %s", n, y, v, x)
				}
				if v, ok := back[x]; ok && v != y && name == "w" {
					t.Fatalf("%d: %s became %s and %s", n, x, v, y)
				}
				to[y], back[x] = x, y
			}
		}
	}
	// Moves stay behind reshapes that cut blocks of one scale, or join a dimension of scales to another.
	if left > 5 {
		t.Errorf("%d of %d moves are left, expected 5 at most", left, all)
	}
	t.Logf("%d of %d moves are left", left, all)
}
