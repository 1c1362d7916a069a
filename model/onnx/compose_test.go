package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// array is a tensor with values.
type array struct {
	shape model.Shape
	v     []int64
}

func filled(r *rand.Rand, s model.Shape) array {
	a := array{s, make([]int64, s.Elements())}
	for i := range a.v {
		a.v[i] = r.Int64N(7) - 3
	}
	return a
}

func (a array) at(ix []int64) *int64 {
	p := int64(0)
	for d, n := range a.shape {
		p = p*n + ix[d]
	}
	return &a.v[p]
}

// evaluate computes the operators that an Einsum becomes, from their definitions.
func evaluate(t *testing.T, g *model.Graph, in map[string]array) array {
	t.Helper()
	val := map[model.TensorID]array{}
	for _, x := range g.Tensors {
		if a, ok := in[x.Name]; ok && x.Producer == model.NoOp {
			val[x.ID] = a
		}
	}
	for _, op := range g.Ops {
		o := op.Outputs[0]
		x := val[op.Inputs[0]]
		y := array{g.Tensor(o).Shape, make([]int64, g.Tensor(o).Shape.Elements())}
		switch op.Kind {
		case "Identity", "Reshape":
			copy(y.v, x.v)
		case "Transpose":
			each(y.shape, func(ix []int64) {
				from := make([]int64, len(ix))
				for i, d := range op.Attr.Perm {
					from[d] = ix[i]
				}
				*y.at(ix) = *x.at(from)
			})
		case "ReduceSum":
			each(x.shape, func(ix []int64) {
				var to []int64
				for d, i := range ix {
					if !slices.Contains(op.Attr.Axes, int64(d)) {
						to = append(to, i)
					}
				}
				*y.at(to) += *x.at(ix)
			})
		case "MatMul":
			w := val[op.Inputs[1]]
			n := len(y.shape)
			each(append(y.shape.Clone(), x.shape[len(x.shape)-1]), func(ix []int64) {
				k, to := ix[n], ix[:n]
				a := append(slices.Clone(to[:n-1]), k)
				b := append(slices.Clone(to[:n-2]), k, to[n-1])
				*y.at(to) += *x.at(a) * *w.at(b)
			})
		default:
			t.Fatalf("%s of kind %s", op.Name, op.Kind)
		}
		val[o] = y
	}
	return val[g.Outputs[0]]
}

// TestEinsum compares random equations with what they mean: the sum, over all
// values of the labels, of the products of the elements that they choose.
func TestEinsum(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 600 {
		letters := []rune("abcXY")
		extent := map[rune]int64{}
		for _, l := range letters {
			extent[l] = 1 + r.Int64N(4)
		}
		dots := []int64{1 + r.Int64N(3), 1 + r.Int64N(3)}
		// The labels of "..." are digits here.
		extent['1'], extent['0'] = dots[0], dots[1]
		var terms [][]rune
		var texts []string
		used := map[rune]bool{}
		most := 0
		for range 1 + r.IntN(3) {
			var l []rune
			for _, i := range r.Perm(len(letters))[:r.IntN(4)] {
				l = append(l, letters[i])
			}
			s := string(l)
			if r.IntN(3) == 0 {
				n, at := r.IntN(3), r.IntN(len(l)+1)
				s = string(l[:at]) + "..." + string(l[at:])
				l = slices.Insert(l, at, []rune("10")[2-n:]...)
				most = max(most, n)
			}
			for _, c := range l {
				used[c] = true
			}
			terms, texts = append(terms, l), append(texts, s)
		}
		ellipsis := strings.Contains(strings.Join(texts, ","), "...")
		var out []rune
		eq := strings.Join(texts, ",")
		if r.IntN(4) == 0 { // the result is implied
			if ellipsis {
				out = append(out, []rune("10")[2-most:]...)
			}
			for _, c := range "XYabc" {
				if strings.Count(eq, string(c)) == 1 {
					out = append(out, c)
				}
			}
		} else {
			var text string
			for _, i := range r.Perm(len(letters)) {
				if c := letters[i]; used[c] && r.IntN(2) == 0 {
					out, text = append(out, c), text+string(c)
				}
			}
			if ellipsis {
				at := r.IntN(len(out) + 1)
				text = text[:at] + "..." + text[at:]
				out = slices.Insert(out, at, []rune("10")[2-most:]...)
			}
			eq += " -> " + text
		}

		var all []rune
		for c := range used {
			all = append(all, c)
		}
		slices.Sort(all)
		shapeOf := func(l []rune) model.Shape {
			s := model.Shape{}
			for _, c := range l {
				s = append(s, extent[c])
			}
			return s
		}
		want := array{shapeOf(out), make([]int64, shapeOf(out).Elements())}
		in := map[string]array{}
		var names []string
		var given []msg
		for i, l := range terms {
			name := fmt.Sprint("x", i)
			in[name] = filled(r, shapeOf(l))
			names = append(names, name)
			var dims []any
			for _, n := range shapeOf(l) {
				dims = append(dims, int(n))
			}
			given = append(given, input(name, dims...))
		}
		each(shapeOf(all), func(ix []int64) {
			pick := func(l []rune) []int64 {
				var p []int64
				for _, c := range l {
					p = append(p, ix[slices.Index(all, c)])
				}
				return p
			}
			product := int64(1)
			for i, l := range terms {
				product *= *in[names[i]].at(pick(l))
			}
			*want.at(pick(out)) += product
		})

		g, err := load(file(12, append(given, node("Einsum", "e", names, []string{"y"}, attrStr("equation", eq)),
			output("y"))...), Options{})
		if err != nil {
			t.Fatalf("%s of %v: %v", eq, in, err)
		}
		got := evaluate(t, g, in)
		if !got.shape.Equal(want.shape) || !slices.Equal(got.v, want.v) {
			t.Errorf("%s: got %v %v\nwant %v %v\n%s", eq, got.shape, got.v, want.shape, want.v, describe(g))
		}
		if len(terms) != 2 {
			continue
		}
		// What only one operand has and nobody needs is summed before.
		macs := int64(1)
		for _, c := range all {
			if slices.Contains(out, c) || slices.Contains(terms[0], c) && slices.Contains(terms[1], c) {
				macs *= extent[c]
			}
		}
		if g.MACs() != macs {
			t.Errorf("%s: %d MACs, want %d\n%s", eq, g.MACs(), macs, describe(g))
		}
		exercise(t, g)
	}
}

func TestEinsumErrors(t *testing.T) {
	for _, tt := range []struct {
		equation string
		want     string
	}{
		{"ij", "2 operands, expected 1"},
		{"ij,jk,kl", "2 operands, expected 3"},
		{"ij,jkl", `"jkl" for an operand of 2 dimensions`},
		{"ij,jk->iz", `label 'z' of the result`},
		{"ij,jk->ii", `label 'i' of the result`},
		{"ij,ik", `label 'i' is both 2 and 3`},
		{"ij,j5", `'5' is not a label`},
		{"ij,jé", `'é' is not a label`},
		{"......,jk", "is not a label"},
		{"...ijk,...", "for an operand of 2 dimensions"},
		{"ij,jk->......", "several ellipses"},
		{"ij,jj",
			`1 unsupported operator: node "e" is Einsum of domain ai.onnx (equation "ij,jj": a diagonal, 'j' twice in one operand)`},
	} {
		_, err := load(file(12, input("x", 2, 3), input("z", 3, 4),
			node("Einsum", "e", in("x", "z"), out("y"), attrStr("equation", tt.equation)), output("y")), Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.equation, err, tt.want)
		}
	}
	// Letters and the dimensions of a long ellipsis do not meet.
	var dims []any
	for range 28 {
		dims = append(dims, 1)
	}
	g, err := load(file(12, input("x", append(dims, 2, 3)...), input("z", 3, 4),
		node("Einsum", "e", in("x", "z"), out("y"), attrStr("equation", "...AB,BC->...AC")), output("y")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := g.Tensor(g.Outputs[0]).Shape; len(s) != 30 || s[28] != 2 || s[29] != 4 || g.MACs() != 24 {
		t.Errorf("shape %v, %d MACs", s, g.MACs())
	}
}

// TestFused compares fused operators with what they fuse, written out in a file of
// plain operators.
func TestFused(t *testing.T) {
	split := func(name, from string, positions, n, d int) []msg { // to heads
		return parts(list(name+"s", 0, int64(positions), int64(n), int64(d)),
			node("Reshape", name+"r", in(from, name+"s"), out(name+"r")),
			node("Transpose", name, in(name+"r"), out(name), attrList("perm", 0, 2, 1, 3)))
	}
	attend := func(q, k, v string) []msg { // of operands as heads; result z
		return parts(node("Transpose", "kt", in(k), out("kt"), attrList("perm", 0, 1, 3, 2)),
			node("MatMul", "p", in(q, "kt"), out("p")),
			node("Softmax", "s", in("p"), out("s")), node("MatMul", "z", in("s", v), out("z")))
	}
	join := func(batch, positions, features int64) []msg {
		return parts(node("Transpose", "zt", in("z"), out("zt"), attrList("perm", 0, 2, 1, 3)),
			list("zs", batch, positions, features), node("Reshape", "zr", in("zt", "zs"), out("y")))
	}
	y := parts(output("y"))
	plain := slices.Concat[[]msg, msg]
	for _, tt := range []struct {
		name         string
		fused, plain []msg
		macs, params int64
	}{
		{"attention",
			parts(input("q", 2, 5, 8), input("k", 2, 7, 8), input("v", 2, 7, 12),
				nodeOf("", "Attention", "a", in("q", "k", "v"), out("y"), attrInt("q_num_heads", 2), attrInt("kv_num_heads", 2)),
				y[0]),
			plain(y, parts(input("q", 2, 5, 8), input("k", 2, 7, 8), input("v", 2, 7, 12)), split("Q", "q", 5, 2, 4),
				split("K", "k", 7, 2, 4), split("V", "v", 7, 2, 6), attend("Q", "K", "V"), join(2, 5, 12)),
			2 * 2 * 5 * 7 * (4 + 6), 0},
		{"attention with its projection",
			parts(input("x", 2, 3, 8), weights("w", 8, 24), weights("b", 24),
				nodeOf("com.microsoft", "Attention", "a", in("x", "w", "b"), out("y"), attrInt("num_heads", 2)), y[0]),
			plain(y, parts(input("x", 2, 3, 8), weights("w", 8, 24), weights("b", 24),
				node("MatMul", "m", in("x", "w"), out("m")), node("Add", "n", in("m", "b"), out("n")),
				node("Split", "sp", in("n"), out("q", "k", "v"), attrInt("axis", 2), attrInt("num_outputs", 3))),
				split("Q", "q", 3, 2, 4), split("K", "k", 3, 2, 4), split("V", "v", 3, 2, 4), attend("Q", "K", "V"), join(2, 3, 8)),
			2*3*8*24 + 2*2*3*3*8, 8*24 + 24},
		{"attention with bias and cache",
			parts(input("q", 2, 3, 8), input("k", 2, 3, 8), input("v", 2, 3, 8), weights("b", 24), input("pk", 2, 2, 6, 4),
				input("pv", 2, 2, 6, 4),
				nodeOf("com.microsoft", "MultiHeadAttention", "a", in("q", "k", "v", "b", "", "", "pk", "pv"), out("y"),
					attrInt("num_heads", 2)), y[0]),
			plain(y, parts(input("q", 2, 3, 8), input("k", 2, 3, 8), input("v", 2, 3, 8), weights("b1", 8), weights("b2", 8),
				weights("b3", 8), input("pk", 2, 2, 6, 4), input("pv", 2, 2, 6, 4),
				node("Add", "q1", in("q", "b1"), out("q1")), node("Add", "k1", in("k", "b2"), out("k1")),
				node("Add", "v1", in("v", "b3"), out("v1"))),
				split("Q", "q1", 3, 2, 4), split("K", "k1", 3, 2, 4), split("V", "v1", 3, 2, 4),
				parts(node("Concat", "kc", in("pk", "K"), out("kc"), attrInt("axis", 2)),
					node("Concat", "vc", in("pv", "V"), out("vc"), attrInt("axis", 2))), attend("Q", "kc", "vc"), join(2, 3, 8)),
			2 * 2 * 3 * 9 * (4 + 4), 24},
		{"grouped queries",
			parts(input("q", 1, 1, 64), input("k", 1, 1, 32), input("v", 1, 1, 32), input("pk", 1, 2, 6, 16),
				input("pv", 1, 2, 6, 16), of("len", tInt32, 1), of("total", tInt32), weights("cos", 32, 8), weights("sin", 32, 8),
				nodeOf("com.microsoft", "GroupQueryAttention", "a", in("q", "k", "v", "pk", "pv", "len", "total", "cos", "sin"),
					out("y"), attrInt("num_heads", 4), attrInt("kv_num_heads", 2), attrInt("do_rotary", 1)), y[0]),
			// Keys and values repeated for the heads; no rotation, which multiplies elements only.
			plain(y, parts(input("q", 1, 1, 64), input("k", 1, 4, 7, 16), input("v", 1, 4, 7, 16)), split("Q", "q", 1, 4, 16),
				attend("Q", "k", "v"), join(1, 1, 64)),
			4 * 1 * 7 * (16 + 16), 0},
		{"grouped queries that see four keys",
			parts(input("q", 1, 1, 64), input("k", 1, 1, 32), input("v", 1, 1, 32), input("pk", 1, 2, 6, 16),
				input("pv", 1, 2, 6, 16), of("len", tInt32, 1), of("total", tInt32),
				nodeOf("com.microsoft", "GroupQueryAttention", "a", in("q", "k", "v", "pk", "pv", "len", "total"), out("y"),
					attrInt("num_heads", 4), attrInt("kv_num_heads", 2), attrInt("local_window_size", 4)), y[0]),
			plain(y, parts(input("q", 1, 1, 64), input("k", 1, 4, 4, 16), input("v", 1, 4, 4, 16)), split("Q", "q", 1, 4, 16),
				attend("Q", "k", "v"), join(1, 1, 64)),
			4 * 1 * 4 * (16 + 16), 0},
		{"integers to floats",
			parts(of("x", tUint8, 2, 6), held("w", tInt8, 6, 4), held("s", tFloat), weights("ws", 4), weights("b", 4),
				nodeOf("com.microsoft", "MatMulIntegerToFloat", "a", in("x", "w", "s", "ws", "", "", "b"), out("y")), y[0]),
			plain(y, parts(input("x", 2, 6), weights("w", 6, 4), weights("b", 4), node("MatMul", "m", in("x", "w"), out("m")),
				node("Add", "n", in("m", "b"), out("y")))), 2 * 6 * 4, 24 + 4},
		{"packed weights",
			parts(input("x", 2, 3, 32), held("w", tUint8, 8, 2, 8), weights("s", 16),
				nodeOf("com.microsoft", "MatMulNBits", "a", in("x", "w", "s"), out("y"), attrInt("K", 32), attrInt("N", 8),
					attrInt("bits", 4), attrInt("block_size", 16)), y[0]),
			plain(y, parts(input("x", 2, 3, 32), weights("w", 32, 8), node("MatMul", "m", in("x", "w"), out("y")))),
			2 * 3 * 32 * 8, 256},
		{"convolution of channels in the last place",
			parts(input("x", 1, 9, 7, 4), weights("w", 6, 3, 3, 2), weights("b", 6),
				nodeOf("com.microsoft", "NhwcConv", "a", in("x", "w", "b"), out("y"), attrInt("group", 2),
					attrList("strides", 2, 2)), y[0]),
			plain(y, parts(input("x", 1, 4, 9, 7), weights("w", 6, 2, 3, 3), weights("b", 6),
				node("Conv", "c", in("x", "w", "b"), out("c"), attrInt("group", 2), attrList("strides", 2, 2)),
				node("Transpose", "t", in("c"), out("y"), attrList("perm", 0, 2, 3, 1)))),
			4 * 3 * 6 * 2 * 9, 6*2*9 + 6},
		{"decoder attention",
			parts(input("q", 2, 1, 8), input("k", 2, 1, 8), input("v", 2, 1, 8), weights("b", 24), input("pk", 2, 2, 6, 4),
				input("pv", 2, 2, 6, 4),
				nodeOf("com.microsoft", "DecoderMaskedMultiHeadAttention", "a",
					in("q", "k", "v", "", "", "pk", "pv", "", "", "", "b"), out("y"), attrInt("num_heads", 2)), y[0]),
			parts(input("q", 2, 1, 8), input("k", 2, 1, 8), input("v", 2, 1, 8), weights("b", 24), input("pk", 2, 2, 6, 4),
				input("pv", 2, 2, 6, 4),
				nodeOf("com.microsoft", "MultiHeadAttention", "a", in("q", "k", "v", "b", "", "", "pk", "pv"), out("y"),
					attrInt("num_heads", 2)), y[0]),
			2 * 2 * 7 * (4 + 4), 24},
		{"group norm of groups",
			parts(input("x", 1, 4, 8, 8), weights("s", 2), weights("b", 2),
				node("GroupNormalization", "a", in("x", "s", "b"), out("y"), attrInt("num_groups", 2)), y[0]),
			plain(y, parts(input("x", 1, 4, 8, 8), weights("s", 2, 1), weights("b", 2, 1), list("s1", 1, 2, 2, 64),
				list("s2", 1, 4, 8, 8), node("Reshape", "", in("x", "s1"), out("g")), weights("v", 1),
				node("Reshape", "", in("g", "s2"), out("h")), list("s3", 4, 1, 1), list("s4", 2, 2),
				node("Expand", "", in("s", "s4"), out("s5")), node("Reshape", "", in("s5", "s3"), out("s6")),
				node("Mul", "", in("h", "s6"), out("i")),
				node("Expand", "", in("b", "s4"), out("b5")), node("Reshape", "", in("b5", "s3"), out("b6")),
				node("Add", "", in("i", "b6"), out("y")))), 0, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opset := int64(23)
			switch {
			case tt.macs == 0:
				opset = 18
			}
			var got [2]*model.Graph
			for i, p := range [][]msg{tt.fused, tt.plain} {
				g, err := load(file(opset, p...), Options{})
				if err != nil {
					t.Fatal(err)
				}
				if g.MACs() != tt.macs || g.Params() != tt.params {
					t.Errorf("file %d: %d MACs and %d parameters, want %d and %d\n%s", i, g.MACs(), g.Params(), tt.macs,
						tt.params, describe(g))
				}
				got[i] = g
			}
			a, b := got[0].Tensor(got[0].Outputs[0]), got[1].Tensor(got[1].Outputs[0])
			if !a.Shape.Equal(b.Shape) {
				t.Errorf("fused %v, plain %v", a.Shape, b.Shape)
			}
		})
	}
}

// Queries that see a window of keys pass in parts: each needs the keys of its window, products are those of the parts,
// at least the pairs that see each other and at most those of a window and a part more, and causal masks are known.
func TestWindowsOfManyQueries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	for range 60 {
		past, queries, window := r.Int64N(9), 1+r.Int64N(60), 1+r.Int64N(40)
		keys := past + queries
		p := parts(input("q", 1, int(queries), 64), input("k", 1, int(queries), 32), input("v", 1, int(queries), 32),
			input("pk", 1, 2, int(past), 16), input("pv", 1, 2, int(past), 16), of("len", tInt32, 1), of("total", tInt32),
			nodeOf("com.microsoft", "GroupQueryAttention", "a", in("q", "k", "v", "pk", "pv", "len", "total"), out("y"),
				attrInt("num_heads", 4), attrInt("kv_num_heads", 2), attrInt("local_window_size", window)), output("y"))
		if past == 0 {
			p[3], p[4] = nil, nil
			p[7] = nodeOf("com.microsoft", "GroupQueryAttention", "a", in("q", "k", "v", "", "", "len", "total"), out("y"),
				attrInt("num_heads", 4), attrInt("kv_num_heads", 2), attrInt("local_window_size", window))
		}
		g, err := load(file(23, p...), Options{})
		if err != nil {
			t.Fatal(err)
		}
		pairs := int64(0)
		for i := range queries {
			pairs += min(window, past+i+1)
		}
		part := (queries + 15) / 16
		if window > part {
			part = min(queries, window)
		}
		least, most := 4*pairs*32, 4*queries*min(keys, window+part-1)*32
		if got := g.MACs(); got < least || got > most {
			t.Errorf("%d queries, %d keys, window %d: %d MACs, expected %d to %d", queries, keys, window, got, least, most)
		}
		ops := make([]model.OpID, len(g.Ops))
		for i := range ops {
			ops[i] = model.OpID(i)
		}
		y := g.Outputs[0]
		for i := range queries {
			row := model.Whole(g.Tensor(y).Shape)
			row[1] = model.Interval{Lo: i, Hi: i + 1}
			reg := schedule.Regions{y: row}
			schedule.BackPropagate(g, ops, reg)
			var seen model.Interval
			for _, id := range g.Inputs {
				switch box := reg[id]; g.Tensor(id).Name {
				case "k":
					seen = seen.Hull(model.Interval{Lo: past + box[1].Lo, Hi: past + box[1].Hi})
				case "pk":
					if box.Elements() > 0 {
						seen = seen.Hull(box[2])
					}
				}
			}
			if seen.Lo > max(0, past+i+1-window) || seen.Hi < past+i+1 {
				t.Errorf("%d queries, %d keys, window %d: query %d needs keys %v", queries, keys, window, i, seen)
			}
		}
		causal := false
		for _, x := range g.Tensors {
			causal = causal || x.Causal
		}
		if !causal {
			t.Errorf("%d queries, %d keys: no mask is causal", queries, keys)
		}
	}
}

// Packed weights have their width, be there a type of the file for it or not.
func TestWidthsOfPackedWeights(t *testing.T) {
	for bits := int64(2); bits <= 8; bits++ {
		g, err := load(file(17, input("x", 2, 32), held("w", tUint8, 8, 1, 4*bits), weights("s", 8), output("y"),
			nodeOf("com.microsoft", "MatMulNBits", "n", in("x", "w", "s"), out("y"), attrInt("K", 32), attrInt("N", 8),
				attrInt("bits", bits), attrInt("block_size", 32))), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range g.Tensors {
			if w.Name == "w/unpacked" && w.Bytes() != 8*32*bits/8 {
				t.Errorf("%d bits: %d bytes, expected %d", bits, w.Bytes(), 32*bits)
			}
		}
	}
}
