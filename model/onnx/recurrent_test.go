package onnx

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
)

// ring is arithmetic as the interpreter has it: sums and products modulo a prime, other functions as hashes.
type ring struct {
	t    *testing.T
	with map[string]uint64 // results by operator and operands
}

func (r *ring) of(kind model.Kind, attr model.Attr, xs ...uint64) uint64 {
	key := fmt.Sprint(kind, attr.Variant, xs)
	if y, ok := r.with[key]; ok {
		return y
	}
	b := model.NewBuilder("one")
	var in []model.TensorID
	for i := range xs {
		in = append(in, b.Const(fmt.Sprint(i), model.F32, nil, 1))
	}
	b.Output(b.Op(kind, "y", attr, in...))
	g, err := b.Build()
	if err != nil {
		r.t.Fatal(err)
	}
	values := interp.Evaluate(g, func(t *model.Tensor, _ int64) uint64 { return xs[t.ID] })
	r.with[key] = values[g.Outputs[0]][0]
	return r.with[key]
}

func (r *ring) add(a, b uint64) uint64 { return r.of("Add", model.Attr{}, a, b) }
func (r *ring) mul(a, b uint64) uint64 { return r.of("Mul", model.Attr{}, a, b) }

// recurrentCase is an operator with sizes.
type recurrentCase struct {
	op                                 string
	steps, batch, features, hidden     int64
	dirs, layout                       int64
	backwards, bias, state, before     bool
	computed, sequenceOnly, clip, acts bool
}

func (c recurrentCase) gates() int64 { return map[string]int64{"LSTM": 4, "GRU": 3, "RNN": 1}[c.op] }

func (c recurrentCase) states() int {
	if c.op == "LSTM" {
		return 2
	}
	return 1
}

// direct computes Y, Y_h and Y_c [.., hidden] as the definition of the operators has them, element by element.
func (c recurrentCase) direct(r *ring, value func(name string, at ...int64) uint64) (y, h,
	cell func(t, d, b, i int64) uint64) {
	variant, limit := "", "clip=1.5"
	act := func(i int, x uint64) uint64 {
		if c.clip {
			x = r.of("Clip", model.Attr{Variant: limit}, x)
		}
		kinds := map[string][]model.Kind{"LSTM": {"Sigmoid", "Tanh", "Tanh"}, "GRU": {"Sigmoid", "Tanh"},
			"RNN": {"Tanh"}}[c.op]
		if c.acts {
			kinds = []model.Kind{"HardSigmoid", "Relu", "Softplus"}
		}
		return r.of(kinds[i], model.Attr{Variant: variant}, x)
	}
	hs, cs := map[[4]int64]uint64{}, map[[4]int64]uint64{}
	for d := range c.dirs {
		for n := range c.steps {
			t, last := n, n-1
			if c.backwards || d == 1 {
				t, last = c.steps-1-n, c.steps-n
			}
			for b := range c.batch {
				before := func(name string, m map[[4]int64]uint64, i int64) uint64 {
					switch {
					case n > 0:
						return m[[4]int64{last, d, b, i}]
					case !c.state:
						return 0
					case c.layout == 1:
						return value(name, b, d, i)
					}
					return value(name, d, b, i)
				}
				old := func(i int64) uint64 { return before("initial_h", hs, i) }
				in := func(row int64) (s uint64) {
					for k := range c.features {
						at := []int64{t, b, k}
						if c.layout == 1 {
							at = []int64{b, t, k}
						}
						s = r.add(s, r.mul(value("x", at...), value("w", d, row, k)))
					}
					if c.bias {
						s = r.add(s, value("b", d, row))
					}
					return s
				}
				rec := func(row int64, of func(int64) uint64) (s uint64) {
					for k := range c.hidden {
						s = r.add(s, r.mul(of(k), value("r", d, row, k)))
					}
					if c.bias {
						s = r.add(s, value("b", d, c.gates()*c.hidden+row))
					}
					return s
				}
				gate := func(g, i int64) uint64 {
					row := g*c.hidden + i
					return r.add(in(row), rec(row, old))
				}
				for i := range c.hidden {
					at := [4]int64{t, d, b, i}
					switch c.op {
					case "LSTM": // input, output, forget, cell
						kept := r.mul(act(0, gate(2, i)), before("initial_c", cs, i))
						cs[at] = r.add(kept, r.mul(act(0, gate(0, i)), act(1, gate(3, i))))
						hs[at] = r.mul(act(0, gate(1, i)), act(2, cs[at]))
					case "GRU": // update, reset, hidden
						z, row := act(0, gate(0, i)), 2*c.hidden+i
						reset := func(k int64) uint64 { return r.mul(act(0, gate(1, k)), old(k)) }
						new := r.add(in(row), rec(row, reset))
						if c.before {
							new = r.add(in(row), r.mul(act(0, gate(1, i)), rec(row, old)))
						}
						hs[at] = r.add(r.mul(r.of("Sub", model.Attr{}, 1, z), act(1, new)), r.mul(z, old(i)))
					default:
						hs[at] = act(0, gate(0, i))
					}
				}
			}
		}
	}
	end := func(d int64) int64 {
		if c.backwards || d == 1 {
			return 0
		}
		return c.steps - 1
	}
	return func(t, d, b, i int64) uint64 { return hs[[4]int64{t, d, b, i}] },
		func(_, d, b, i int64) uint64 { return hs[[4]int64{end(d), d, b, i}] },
		func(_, d, b, i int64) uint64 { return cs[[4]int64{end(d), d, b, i}] }
}

// TestRecurrent compares what recurrent operators become with their definition, in all values, and counts their work.
func TestRecurrent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	flip := func() bool { return random.IntN(2) == 0 }
	for n := range 40 {
		c := recurrentCase{op: []string{"LSTM", "GRU", "RNN"}[n%3], steps: 1 + random.Int64N(3), batch: 1 + random.Int64N(2),
			features: 1 + random.Int64N(3), hidden: 1 + random.Int64N(3), dirs: 1 + random.Int64N(2), layout: random.Int64N(2),
			bias: flip(), state: flip(), before: flip(), computed: flip(), sequenceOnly: flip(), clip: flip(), acts: flip()}
		c.backwards = c.dirs == 1 && flip()
		rows := c.gates() * c.hidden
		shapes := map[string][]int64{"x": {c.steps, c.batch, c.features}, "w": {c.dirs, rows, c.features},
			"r": {c.dirs, rows, c.hidden}, "b": {c.dirs, 2 * rows}, "initial_h": {c.dirs, c.batch, c.hidden},
			"initial_c": {c.dirs, c.batch, c.hidden}}
		if c.layout == 1 {
			for _, name := range []string{"x", "initial_h", "initial_c"} {
				s := shapes[name]
				s[0], s[1] = s[1], s[0]
			}
		}
		names := []string{"x", "w", "r", "", "lengths", "", ""}[:4+c.states()+1]
		var given []msg
		add := func(name string, constant bool) {
			if constant {
				given = append(given, weights(name, shapes[name]...))
				return
			}
			var s []any
			for _, n := range shapes[name] {
				s = append(s, int(n))
			}
			given = append(given, input(name, s...))
		}
		add("x", false)
		add("w", !c.computed)
		add("r", !c.computed)
		if c.bias {
			names[3] = "b"
			add("b", !c.computed)
		}
		if c.state {
			for i, s := range []string{"initial_h", "initial_c"}[:c.states()] {
				names[5+i] = s
				add(s, false)
			}
		}
		if flip() {
			names[4] = ""
		}
		var lengths []int64
		for range c.batch {
			lengths = append(lengths, c.steps)
		}
		given = append(given, msg(nil).sub(5, tensor("lengths", 6, c.batch).packed(5, lengths...)))
		direction := []string{"forward", "bidirectional"}[c.dirs-1]
		if c.backwards {
			direction = "reverse"
		}
		attrs := parts(attrInt("hidden_size", c.hidden), attrStr("direction", direction), attrInt("layout", c.layout))
		if c.before && c.op == "GRU" {
			attrs = append(attrs, attrInt("linear_before_reset", 1))
		}
		if c.clip {
			attrs = append(attrs, attrFlt("clip", 1.5))
		}
		if c.acts {
			a := msg(nil).str(1, "activations")
			for range c.dirs {
				n := map[string]int{"LSTM": 3, "GRU": 2, "RNN": 1}[c.op]
				for _, k := range []string{"HardSigmoid", "Relu", "Softplus"}[:n] {
					a = a.str(9, k)
				}
			}
			attrs = append(attrs, a.int(20, typeStrings))
		}
		outs := []string{"y", "y_h", "y_c"}[:1+c.states()]
		if c.sequenceOnly {
			outs = outs[:1]
		}
		for _, o := range outs {
			given = append(given, output(o))
		}
		g, err := load(file(14, append(given, node(c.op, "n", names, outs, attrs...))...), Options{})
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		// The elements of constants that are parts of weights are those of the weights.
		element := func(name string, e int64) uint64 {
			return uint64(e)*7919 + uint64(len(name))*104729 + uint64(name[len(name)-1])
		}
		values := interp.Evaluate(g, func(x *model.Tensor, e int64) uint64 {
			switch name, part, cut := strings.Cut(x.Name, "/"); {
			case strings.Contains(x.Name, "zero"):
				return 0
			case strings.Contains(x.Name, "/one"):
				return 1
			case cut:
				var d, from, to int64
				if _, err := fmt.Sscanf(part, "%d/%d:%d", &d, &from, &to); err != nil {
					t.Fatalf("constant %s: %v", x.Name, err)
				}
				s := shapes[name]
				row := model.Shape(s[2:]).Elements()
				return element(name, (d*s[1]+from)*row+e)
			}
			return element(x.Name, e)
		})
		r := &ring{t, map[string]uint64{}}
		y, h, cell := c.direct(r, func(name string, at ...int64) uint64 {
			e := int64(0)
			for i, n := range shapes[name] {
				e = e*n + at[i]
			}
			return element(name, e)
		})
		for k, o := range outs {
			shape, want := []int64{c.steps, c.dirs, c.batch, c.hidden}, []func(t, d, b, i int64) uint64{y, h, cell}[k]
			if k > 0 {
				shape[0] = 1
			}
			for s := range shape[0] {
				for d := range c.dirs {
					for b := range c.batch {
						for i := range c.hidden {
							at := ((s*c.dirs+d)*c.batch+b)*c.hidden + i
							if c.layout == 1 {
								at = ((b*shape[0]+s)*c.dirs+d)*c.hidden + i
							}
							if got := values[g.Outputs[k]][at]; got != want(s, d, b, i) {
								t.Fatalf("%+v: %s at step %d, direction %d, row %d, %d is %d, want %d\n%s", c, o, s, d, b, i, got,
									want(s, d, b, i), describe(g))
							}
						}
					}
				}
			}
		}
		if want := c.steps * c.dirs * c.batch * rows * (c.features + c.hidden); g.MACs() != want {
			t.Errorf("%+v: %d MACs, want %d", c, g.MACs(), want)
		}
		params := c.dirs * rows * (c.features + c.hidden)
		if c.bias {
			params += 2 * c.dirs * rows
		}
		if c.computed {
			params = 0
		}
		if g.Params() != params {
			t.Errorf("%+v: %d parameters, want %d", c, g.Params(), params)
		}
		exercise(t, g)
	}
}

// What recurrent operators cannot be read with, and why.
func TestRecurrentErrors(t *testing.T) {
	x, w, r := input("x", 5, 2, 3), weights("w", 1, 16, 3), weights("r", 1, 16, 4)
	for _, tt := range []struct {
		name, want string
		more       []msg
		in         []string
		attrs      []msg
	}{
		{"peepholes", `"p"), products of the cell's state with weights of its own`, parts(weights("p", 1, 12)),
			in("x", "w", "r", "", "", "", "", "p"), nil},
		{"lengths", `has sequences of other lengths ("l") than the input's 5 steps`, parts(msg(nil).sub(5,
			tensor("l", 6, 2).packed(5, 5, 4))), in("x", "w", "r", "", "l"), nil},
		{"lengths at run time", `has sequences of other lengths ("l")`, parts(of("l", 6, 2)),
			in("x", "w", "r", "", "l"), nil},
		{"coupled gates", "couples its input and forget gates", nil, in("x", "w", "r"), parts(attrInt("input_forget", 1))},
		{"another hidden size", `attribute "hidden_size" is 5, expected 4 to 4`, nil, in("x", "w", "r"),
			parts(attrInt("hidden_size", 5))},
		{"two directions", "recurrence weights [1,16,4], expected three dimensions each, and 2 directions", nil,
			in("x", "w", "r"), parts(attrStr("direction", "bidirectional"))},
		{"weights", `weights "v" has shape [1,16,4], expected [1,16,3]`, parts(weights("v", 1, 16, 4)),
			in("x", "v", "r"), nil},
		{"a state of other rows", `initial state "h" has 3 rows, expected 2`, parts(input("h", 1, 3, 4)),
			in("x", "w", "r", "", "", "h"), nil},
		{"an activation", `has activation "Cubic"`, nil, in("x", "w", "r"),
			parts(msg(nil).str(1, "activations").str(9, "Cubic").str(9, "Tanh").str(9, "Tanh").int(20, typeStrings))},
		{"too many steps", "has 9000 steps, with those of others before it more than 8192", parts(input("z", 9000, 2, 3)),
			in("z", "w", "r"), nil},
		{"very many steps", "has 4398046511104 steps", parts(input("z", 1<<42, 2, 1), weights("v", 1, 16, 1)),
			in("z", "v", "r"), nil},
	} {
		given := append(parts(x, w, r, output("y"), node("LSTM", "n", tt.in, out("y"), tt.attrs...)), tt.more...)
		if _, err := load(file(14, given...), Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	// No step: the state is what it was.
	g, err := load(file(14, input("z", 0, 2, 3), w, r, input("h", 1, 2, 4), output("y"), output("l"),
		node("LSTM", "n", in("z", "w", "r", "", "", "h"), out("y", "l"))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := describe(g); !strings.Contains(got, "n/last/direction0[1,2,4] = Reshape(n/state/rows)") || g.MACs() != 0 {
		t.Errorf("no steps: %s", got)
	}
}

// The leading dimension of what a recurrence goes through step by step is no batch, be it a number or a name: at batch
// 1 all steps of the file are there, and there are no others. Where sequences lead, they are the batch.
func TestStepsAreNoBatch(t *testing.T) {
	w, r := weights("w", 1, 16, 3), weights("r", 1, 16, 4)
	lstm := func(x string, attrs ...msg) msg { return node("LSTM", "n", in(x, "w", "r"), out("y"), attrs...) }
	turned := parts(input("x", 2, 5, 3), w, r, node("Transpose", "t", in("x"), out("u"), attrList("perm", 1, 0, 2)), lstm("u"),
		node("Transpose", "v", in("y"), out("z"), attrList("perm", 2, 0, 1, 3)), output("z"))
	for _, tt := range []struct {
		name  string
		given []msg
		opt   Options
		macs  int64
		err   string
	}{
		{"steps lead", parts(input("x", 5, 2, 3), w, r, lstm("x"), output("y")), Options{Batch: 1}, 1120, ""},
		{"behind an operator", parts(input("x", 5, 2, 3), w, r, node("Relu", "e", in("x"), out("u")), lstm("u"), output("y")),
			Options{Batch: 1}, 1120, ""},
		{"steps as a batch", parts(input("x", 5, 2, 3), w, r, lstm("x"), output("y")), Options{Batch: 5}, 0,
			"the leading dimension counts the steps of a recurrence: expected batch 1"},
		{"named steps", parts(input("x", "T", 2, 3), w, r, lstm("x"), output("y")),
			Options{Batch: 1, Dims: map[string]int64{"T": 7}}, 1568, ""},
		{"named steps that are missing", parts(input("x", "T", 2, 3), w, r, lstm("x"), output("y")), Options{Batch: 1}, 0,
			`the sizes of these dimensions must be given by --dim NAME=SIZE: "T"`},
		{"sequences lead", parts(input("x", 2, 5, 3), w, r, lstm("x", attrInt("layout", 1)), output("y")), Options{Batch: 4},
			2240, ""},
		{"sequences lead, turned", turned, Options{Batch: 4}, 2240, ""},
	} {
		g, err := load(file(14, tt.given...), tt.opt)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, expected %s", tt.name, err, tt.err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if g.MACs() != tt.macs {
			t.Errorf("%s: %d MACs, expected %d", tt.name, g.MACs(), tt.macs)
		}
	}
}
