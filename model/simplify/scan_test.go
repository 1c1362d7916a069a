package simplify

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
)

// reals computes the tensors of a graph from the definitions of the operators that scans are made of; inputs follow
// from their names.
func reals(t *testing.T, g *model.Graph) map[string][]float64 {
	values := make([][]float64, len(g.Tensors))
	index := func(shape model.Shape, at []int64) (i int64) { // broadcast
		for d, n := range shape {
			i = i*n + at[len(at)-len(shape)+d]%n
		}
		return i
	}
	each := func(shape model.Shape, visit func(i int64, at []int64)) {
		at := make([]int64, len(shape))
		for i := range shape.Elements() {
			for d, rest := len(shape)-1, i; d >= 0; d-- {
				at[d], rest = rest%shape[d], rest/shape[d]
			}
			visit(i, at)
		}
	}
	fill := func(x *model.Tensor) {
		name := strings.TrimPrefix(x.Name, "norm.")
		r := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[0])))
		values[x.ID] = make([]float64, x.Shape.Elements())
		if name == "epsilon" {
			return
		}
		for i := range values[x.ID] {
			values[x.ID][i] = r.Float64()/4 + 0.1
		}
	}
	for _, x := range g.Tensors {
		if x.Producer == model.NoOp {
			fill(x)
		}
	}
	named := map[string][]float64{}
	for _, op := range g.Ops {
		out := g.Tensor(op.Outputs[0])
		y := make([]float64, out.Shape.Elements())
		in := func(k int, at []int64) float64 {
			return values[op.Inputs[k]][index(g.Tensor(op.Inputs[k]).Shape, at)]
		}
		first := g.Tensor(op.Inputs[0]).Shape
		done := int64(0)
		switch op.Kind {
		case "Reshape":
			copy(y, values[op.Inputs[0]])
		case "ReduceSum", "ReduceMean":
			share := 1.0
			if op.Kind == "ReduceMean" {
				share = float64(len(y)) / float64(first.Elements())
			}
			each(first, func(i int64, at []int64) {
				var to []int64
				for d, x := range at {
					if !slices.Contains(op.Attr.Axes, int64(d)) {
						to = append(to, x)
					} else if op.Attr.KeepDims {
						to = append(to, 0)
					}
				}
				y[index(out.Shape, to)] += share * values[op.Inputs[0]][i]
			})
		case "GroupNorm": // by definition, without what keeps the divisor from zero
			n := first.Elements() / first[0] / op.Attr.Group
			x := values[op.Inputs[0]]
			for lo := int64(0); lo < int64(len(x)); lo += n {
				mean, square := 0.0, 0.0
				for _, v := range x[lo : lo+n] {
					mean += v / float64(n)
				}
				for _, v := range x[lo : lo+n] {
					square += (v - mean) * (v - mean) / float64(n)
				}
				for i := lo; i < lo+n; i++ {
					y[i] = (x[i] - mean) / math.Sqrt(square)
					channel := i / first[2:].Elements() % first[1]
					y[i] = y[i]*values[op.Inputs[1]][channel] + values[op.Inputs[2]][channel]
				}
			}
		case "Concat":
			for _, x := range op.Inputs {
				shape := g.Tensor(x).Shape
				each(shape, func(i int64, at []int64) {
					at[op.Attr.Axis] += done
					y[index(out.Shape, at)] = values[x][i]
					at[op.Attr.Axis] -= done
				})
				done += shape[op.Attr.Axis]
			}
		default:
			each(out.Shape, func(i int64, at []int64) {
				switch op.Kind {
				case "Slice":
					for d := range at {
						at[d] += op.Attr.Starts[d]
					}
					y[i] = in(0, at)
				case "CumSum":
					y[i] = in(0, at)
					if at[op.Attr.Axis] > 0 {
						at[op.Attr.Axis]--
						y[i] += y[index(out.Shape, at)]
					}
				case "Expand":
					y[i] = in(0, at)
				case "Sub":
					y[i] = in(0, at) - in(1, at)
				case "Sqrt":
					y[i] = math.Sqrt(in(0, at))
				case "Mul":
					y[i] = in(0, at) * in(1, at)
				case "Div":
					y[i] = in(0, at) / in(1, at)
				case "Add":
					y[i] = in(0, at) + in(1, at)
				case "Exp":
					y[i] = math.Exp(in(0, at))
				default:
					t.Fatalf("operator %q is a %s", op.Name, op.Kind)
				}
			})
		}
		values[out.ID], named[out.Name] = y, y
	}
	return named
}

// scanned is a selective scan; odd ones have something that a scan must not have.
func scanned(t *testing.T, tokens, inner, state int64, odd string) *model.Graph {
	b := model.NewBuilder("scan")
	step, u := b.Input("step", model.F32, 1, tokens, inner, 1), b.Input("u", model.F32, 1, tokens, inner, 1)
	rate := b.Op("Mul", "rate", model.Attr{}, step, b.Param("a", model.F32, inner, state))
	since := b.Op("Exp", "since", model.Attr{}, b.Op("CumSum", "decay", model.Attr{Axis: 1}, rate))
	enter := b.Op("Mul", "enter", model.Attr{}, b.Op("Mul", "step.u", model.Attr{}, step, u),
		b.Input("bb", model.F32, 1, tokens, 1, state))
	axis := int64(1)
	if odd == "axis" {
		axis = 2
	}
	sum := b.Op("CumSum", "sum", model.Attr{Axis: axis}, b.Op("Div", "entered", model.Attr{}, enter, since))
	h := b.Op("Mul", "state", model.Attr{}, sum, since)
	read := b.Op("Mul", "read", model.Attr{}, h, b.Input("ccc", model.F32, 1, tokens, 1, state))
	over := int64(3)
	if odd == "tokens" {
		over = 1
	}
	b.Output(b.Op("ReduceSum", "y", model.Attr{Axes: []int64{over}}, read))
	if odd == "result" {
		b.Output(h)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A scan in any number of parts gives what it gives whole.
func TestCutScans(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		tokens, inner, state := 1+r.Int64N(12), 2+r.Int64N(4), 2+r.Int64N(3)
		g := scanned(t, tokens, inner, state, "")
		n := 1 + r.Int64N(tokens)
		cut, err := TakeApart(g, nil, func(*Scan) int64 { return n })
		if err != nil {
			t.Fatal(err)
		}
		if len(cut.Together) != int(n) {
			t.Errorf("seed %d: %d parts, expected %d", seed, len(cut.Together), n)
		}
		want, got := reals(t, g)["y"], reals(t, cut)[cut.Tensor(cut.Outputs[0]).Name]
		for i := range want {
			if len(got) != len(want) || math.Abs(got[i]-want[i]) > 1e-12*math.Abs(want[i]) {
				t.Fatalf("seed %d, %d tokens in %d parts: %v, expected %v", seed, tokens, n, got, want)
			}
		}
		for k, set := range cut.Together {
			for _, id := range set {
				if n > 1 && !strings.Contains(cut.Op(id).Name, "part") {
					t.Errorf("seed %d: part %d has %q", seed, k, cut.Op(id).Name)
				}
			}
		}
	}
}

// What is no scan stays as it is: sums along several axes, a state that leaves the network, sums over all positions.
func TestCutScansLeavesOthers(t *testing.T) {
	for _, odd := range []string{"axis", "result", "tokens"} {
		g := scanned(t, 6, 4, 3, odd)
		cut, err := TakeApart(g, nil, func(*Scan) int64 { return 2 })
		if err != nil || cut.Together != nil || len(cut.Ops) != len(g.Ops) {
			t.Errorf("%s: %d parts, %d operators of %d, %v", odd, len(cut.Together), len(cut.Ops), len(g.Ops), err)
		}
	}
}

// A group normalisation in passes gives what it gives at once, with as much work on its elements and no less; what the
// caller does not ask for stays.
func TestGroupNormInPasses(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		groups, each := 1+r.Int64N(3), 1+r.Int64N(3)
		shape := []int64{1 + r.Int64N(2), groups * each, 2 + r.Int64N(3), 2 + r.Int64N(3)}
		if seed%4 == 0 {
			shape = shape[:3]
		}
		b := model.NewBuilder("norm")
		in := []model.TensorID{b.Input("x", model.F32, shape...)}
		for _, name := range []string{"scale", "bias+"} {
			in = append(in, b.Param(name, model.F32, groups*each))
		}
		b.Output(b.Op("GroupNorm", "norm", model.Attr{Group: groups}, in...))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		same, err := TakeApart(g, func(*model.Op) bool { return false }, nil)
		if err != nil || same.Together != nil || len(same.Ops) != 1 {
			t.Fatalf("seed %d: %d operators, %v", seed, len(same.Ops), err)
		}
		apart, err := TakeApart(g, func(*model.Op) bool { return true }, nil)
		if err != nil || len(apart.Together) != 1 || len(apart.Together[0]) != 3 {
			t.Fatalf("seed %d: layers %v, %v", seed, apart.Together, err)
		}
		want, got := reals(t, g)["norm"], reals(t, apart)["norm"]
		for i := range want {
			if len(got) != len(want) || math.Abs(got[i]-want[i]) > 1e-9*(1+math.Abs(want[i])) {
				t.Fatalf("seed %d: %v, expected %v", seed, got, want)
			}
		}
		before, after := int64(0), int64(0)
		for _, op := range g.Ops {
			before += g.Work(op, nil).Vector.Simple
		}
		for _, op := range apart.Ops {
			after += apart.Work(op, nil).Vector.Simple
		}
		if after < before {
			t.Errorf("seed %d: %d simple operations, %d before", seed, after, before)
		}
	}
}
