package sharding

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
)

const prime = 1<<61 - 1 // of the values of package interp

func chip(t testing.TB) *hardware.Spec {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func group(n int64) chips.Group {
	return chips.Group{Chips: n, Link: hardware.Link{BandwidthBytesPerSecond: 25e9, LatencySeconds: 2e-6}}
}

// random is a network of blocks that transformers and convolutional networks are made of.
func random(r *rand.Rand, batch, chips int64) (*model.Graph, error) {
	b := model.NewBuilder("random")
	width := 4 * (1 + r.Int64N(2))
	if chips == 3 {
		width = 12
	}
	if r.IntN(3) == 0 {
		if chips == 3 {
			width = 6
		}
		x := b.Input("x", model.F16, batch, width, 3, 3)
		for k := range 1 + r.IntN(3) {
			same := model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1}
			in := []model.TensorID{x, b.Param(fmt.Sprint("w", k), model.F16, width, width, 3, 3)}
			if r.IntN(2) == 0 {
				same.Group = width
				in[1] = b.Param(fmt.Sprint("d", k), model.F16, width, 1, 3, 3)
			} else if r.IntN(2) == 0 {
				in = append(in, b.Param(fmt.Sprint("b", k), model.F16, width))
			}
			y := b.Op("Relu", "", model.Attr{}, b.Op("Conv", "", same, in...))
			if r.IntN(2) == 0 {
				y = b.Op("Add", "", model.Attr{}, y, x)
			}
			x = y
		}
		b.Output(b.Op("GlobalAveragePool", "", model.Attr{}, x))
		return b.Build()
	}
	x := b.Input("x", model.F16, batch, 4, width)
	linear := func(x model.TensorID, to int64) model.TensorID {
		from := b.Tensor(x).Shape[2]
		return b.Op("MatMul", "", model.Attr{}, x, b.Param("w", model.F16, from, to))
	}
	for range 1 + r.IntN(3) {
		y := x
		if r.IntN(2) == 0 {
			y = b.Op("RMSNorm", "", model.Attr{Axis: 2}, y, b.Param("scale", model.F16, width))
		}
		switch r.IntN(4) {
		case 0: // a gate beside a product
			y = b.Op("Mul", "", model.Attr{}, b.Op("Silu", "", model.Attr{}, linear(y, 2*width)), linear(y, 2*width))
			y = linear(y, width)
		case 1: // attention of heads
			heads := func(x model.TensorID, perm ...int64) model.TensorID {
				x = b.Op("Reshape", "", model.Attr{Shape: []int64{batch, 4, 4, width / 4}}, linear(x, width))
				return b.Op("Transpose", "", model.Attr{Perm: perm}, x)
			}
			p := b.Op("MatMul", "", model.Attr{}, heads(y, 0, 2, 1, 3), heads(y, 0, 2, 3, 1))
			p = b.Op("Softmax", "", model.Attr{Axis: 3}, p)
			z := b.Op("Transpose", "", model.Attr{Perm: []int64{0, 2, 1, 3}},
				b.Op("MatMul", "", model.Attr{}, p, heads(y, 0, 2, 1, 3)))
			y = linear(b.Op("Reshape", "", model.Attr{Shape: []int64{batch, 4, width}}, z), width)
		case 2: // a product with a bias in rows of the batch
			z := b.Op("Reshape", "", model.Attr{Shape: []int64{batch * 4, width}}, y)
			z = b.Op("Gemm", "", model.Attr{TransB: true}, z, b.Param("w", model.F16, width, width),
				b.Param("c", model.F16, width))
			y = b.Op("Reshape", "", model.Attr{Shape: []int64{batch, 4, width}}, z)
		case 3: // halves of a product
			if z := b.OpN("Split", "", model.Attr{Axis: 2, Splits: []int64{width, width}}, linear(y, 2*width)); z != nil {
				y = b.Op("Mul", "", model.Attr{}, z[0], z[1])
			}
		}
		if r.IntN(2) == 0 {
			y = b.Op("Add", "", model.Attr{}, y, x)
		}
		x = y
	}
	b.Output(x)
	return b.Build()
}

// both are a random network at two batch sizes.
func both(t testing.TB, seed uint64, chips int64) (g, small *model.Graph) {
	t.Helper()
	g, err := random(rand.New(rand.NewPCG(seed, 1)), 2, chips)
	if err != nil {
		t.Fatal(err)
	}
	small, err = random(rand.New(rand.NewPCG(seed, 1)), 1, chips)
	if err != nil {
		t.Fatal(err)
	}
	return g, small
}

// Any choice of options computes what the network does: each chip runs its pieces on values, and
// collectives pass these values on from chip to chip.
func TestValues(t *testing.T) {
	cuts, partial, kinds := 0, 0, map[string]int{}
	spec := chip(t)
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		on := group(2 + r.Int64N(3))
		on.Torus = [][]int{nil, {int(on.Chips)}, {2, int(on.Chips) / 2}}[r.IntN(2+int(1-on.Chips%2))]
		g, small := both(t, seed, on.Chips)
		p, err := New(g, small, spec, on)
		if err != nil {
			t.Fatal(err)
		}
		choice := make([]int, len(p.pairs.Nodes))
		for i := range g.Ops {
			choice[i] = r.IntN(len(p.Options[i]))
		}
		p.settle(choice, func(_ int, ok []int) int { return ok[r.IntN(len(ok))] })
		plan, err := p.Solve(context.Background(), "greedy", binding.Options{Start: choice})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range plan.Options {
			switch {
			case o.Out[0] >= 0:
				cuts++
			case o.Out[0] == Partial:
				partial++
			}
		}
		want := interp.Evaluate(g, func(s *model.Tensor,
			i int64) uint64 {
			return uint64(s.ID)*1_000_003 + uint64(i)*7919 + 5
		})
		for _, m := range execute(t, p, plan, want, seed) {
			kinds[m.Kind]++
		}
	}
	if cuts == 0 || partial == 0 || len(kinds) != 4 {
		t.Errorf("%d operators were cut, %d along a reduction, collectives %v: expected some of each", cuts, partial, kinds)
	}
	t.Logf("%d operators cut, %d along a reduction, collectives %v", cuts, partial, kinds)
}

// execute runs the pieces of all chips and compares what they leave with the network's values.
func execute(t *testing.T, p *Problem, plan *Plan, want [][]uint64, seed uint64) []Move {
	chips := p.Group.Chips
	pieces := make([][]Piece, chips)
	var moves []Move
	for c := range chips {
		var err error
		if pieces[c], moves, err = p.Pieces(plan, p.Graph, c); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	// there has the values that each chip has of a tensor in a layout.
	there := map[variant][][]uint64{}
	sent := map[variant][][]uint64{} // by collectives
	late := map[int][]func(){}       // what collectives bring by piece, which has it and none before it
	for k := range pieces[0] {
		for _, arrive := range late[k] {
			arrive()
		}
		for c := range chips {
			piece := pieces[c][k]
			in := map[model.TensorID][]uint64{}
			for _, s := range piece.Sources {
				of := p.Graph.Tensor(s.Of)
				switch {
				case of.Producer != model.NoOp:
					values, ok := there[variant{s.Of, s.Layout}]
					if !ok {
						t.Fatalf("seed %d: piece %d reads %s %v, which nothing has left there", seed, k, of.Name, s.Layout)
					}
					in[s.ID] = values[c]
				case s.Layout == first && c > 0:
					in[s.ID] = make([]uint64, of.Shape.Elements())
				default:
					in[s.ID] = part(want[s.Of], of.Shape, s.Layout, c, chips)
				}
			}
			values := interp.Evaluate(piece.Graph, func(s *model.Tensor, i int64) uint64 { return in[s.ID][i] })
			for _, r := range piece.Results {
				v := variant{r.Of, r.Layout}
				there[v] = append(there[v], values[r.ID])
			}
		}
		for _, r := range pieces[0][k].Results {
			of, got := p.Graph.Tensor(r.Of), there[variant{r.Of, r.Layout}]
			sum := make([]uint64, len(want[r.Of]))
			for c := range chips {
				if r.Layout == Partial {
					for i, x := range got[c] {
						sum[i] = (sum[i] + x) % prime
					}
					continue
				}
				if !slices.Equal(got[c], part(want[r.Of], of.Shape, r.Layout, c, chips)) {
					t.Fatalf("seed %d: chip %d of %d has %s %v wrong", seed, c, chips, of.Name, r.Layout)
				}
			}
			if r.Layout == Partial && !slices.Equal(sum, want[r.Of]) {
				t.Fatalf("seed %d: %d chips have %s partial wrong", seed, chips, of.Name)
			}
		}
		for _, m := range moves { // of what is there, a change gives what the network has
			own, made := sent[variant{m.Of, m.From}]
			if !made {
				own, made = there[variant{m.Of, m.From}]
			}
			if !made || sent[variant{m.Of, m.To}] != nil {
				continue
			}
			if m.Before <= k {
				t.Fatalf("seed %d: %s of %s is behind piece %d, before %d", seed, m.Kind, m.Tensor, k, m.Before)
			}
			shape := p.Graph.Tensor(m.Of).Shape
			got := change(p.Group, shape, m.From, m.To, own)
			sent[variant{m.Of, m.To}] = got
			late[m.Before] = append(late[m.Before], func() { there[variant{m.Of, m.To}] = got })
			for c, got := range got {
				if !slices.Equal(got, part(want[m.Of], shape, m.To, int64(c), chips)) {
					t.Fatalf("seed %d: %s leaves %s wrong on chip %d of %d, torus %v", seed, m.Kind, m.Tensor, c, chips, p.Group.Torus)
				}
			}
		}
	}
	for _, arrive := range late[len(pieces[0])] {
		arrive()
	}
	for _, out := range p.Graph.Outputs {
		ok := false
		for v := range there {
			ok = ok || v.of == out && v.layout != Partial
		}
		if !ok {
			t.Fatalf("seed %d: output %s is nowhere", seed, p.Graph.Tensor(out).Name)
		}
	}
	return moves
}

// part is what a chip has of a tensor's values.
func part(values []uint64, shape model.Shape, l layout, c, chips int64) (own []uint64) {
	if l < 0 {
		return values
	}
	inner := shape[l+1:].Elements()
	for i, x := range values {
		if at := int64(i) / inner % shape[l]; at/(shape[l]/chips) == c {
			own = append(own, x)
		}
	}
	return own
}

// Variable elimination and the greedy rule against all choices.
func TestExact(t *testing.T) {
	worse, counted := 0, 0
	for seed := range uint64(120) {
		on := [...]chips.Group{group(2), group(2), group(3), group(4)}[seed/60*(1+seed%3)]
		if seed >= 60 {
			on.Torus = [][]int{{2}, {3}, {2, 2}}[seed%3]
		}
		g, small := both(t, seed%60, on.Chips)
		p, err := New(g, small, chip(t), on)
		if err != nil {
			t.Fatal(err)
		}
		all := 1.0
		for _, n := range p.pairs.Nodes {
			all *= float64(len(n.Labels))
		}
		if all > 3e5 {
			continue
		}
		counted++
		least := math.Inf(1)
		choice := make([]int, len(p.pairs.Nodes))
		for more := true; more; {
			least = min(least, p.pairs.Seconds(choice))
			more = false
			for i := range choice {
				if choice[i]++; choice[i] < len(p.pairs.Nodes[i].Labels) {
					more = true
					break
				}
				choice[i] = 0
			}
		}
		found := map[string]float64{}
		for _, m := range []string{"whole", "greedy", "search"} {
			plan, err := p.Solve(context.Background(), m, binding.Options{})
			if err != nil {
				t.Fatal(err)
			}
			found[m] = plan.Objective
			moved := 0.0
			pieces, moves, err := p.Pieces(plan, g, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range plan.Options {
				moved += o.Seconds
			}
			for _, move := range moves {
				if moved += move.Seconds; move.Before < len(pieces) || p.node[move.Of] >= 0 {
					moved += p.launch
				}
			}
			if math.Abs(moved-plan.Objective) > 1e-9*moved {
				t.Errorf("seed %d, %s: operators and collectives take %g s, the objective is %g", seed, m, moved, plan.Objective)
			}
		}
		if math.Abs(found["search"]-least) > 1e-12*least {
			t.Errorf("seed %d: search found %g, the least of all choices is %g", seed, found["search"], least)
		}
		if found["greedy"] < least*(1-1e-9) || found["whole"] < least*(1-1e-9) {
			t.Errorf("seed %d: greedy %g or whole %g below %g", seed, found["greedy"], found["whole"], least)
		}
		if found["greedy"] > least*(1+1e-9) {
			worse++
		}
	}
	if counted < 60 {
		t.Errorf("%d networks were small enough, expected 60 or more", counted)
	}
	t.Logf("greedy is worse on %d of %d", worse, counted)
}

func TestCollective(t *testing.T) {
	g := chips.Group{Chips: 4, Link: hardware.Link{BandwidthBytesPerSecond: 1e9, LatencySeconds: 1e-6}}
	for _, c := range []struct {
		from, to layout
		kind     string
		us       float64
	}{
		{Whole, Whole, "", 0}, {Whole, Cut(1), "", 0}, {Cut(0), Cut(0), "", 0},
		{Cut(0), Whole, chips.AllGather, 1 + 6}, {Partial, Cut(0), chips.ReduceScatter, 1 + 6},
		{Partial, Whole, chips.AllReduce, 2 + 12},
		{Cut(0), Cut(1), chips.AllToAll, 1 + 1.5},
	} {
		kind, s := collective(g, c.from, c.to, 8000)
		if kind != c.kind || math.Abs(s*1e6-c.us) > 1e-9 {
			t.Errorf("%v to %v: found %q of %g us, expected %q of %g", c.from, c.to, kind, s*1e6, c.kind, c.us)
		}
	}
}

// A message is part of a tensor on its way from chip to chip.
type message struct {
	from, to int64
	left     float64 // bytes
}

// fluid is when the last of messages has arrived that are sent at once, if each chip sends and takes so many bytes a
// second at most and messages share both fairly: all of a port that leaves each the least are settled first.
func fluid(list []message, chips int64, rate float64) (seconds float64) {
	for len(list) > 0 {
		room := make([]float64, 2*chips) // what each chip can send, then take
		for i := range room {
			room[i] = rate
		}
		speed := make([]float64, len(list))
		for open := len(list); open > 0; {
			users := make([]float64, 2*chips)
			for i, m := range list {
				if speed[i] == 0 {
					users[m.from]++
					users[chips+m.to]++
				}
			}
			port := int64(-1)
			for q := range 2 * chips {
				if users[q] > 0 && (port < 0 || room[q]/users[q] < room[port]/users[port]) {
					port = q
				}
			}
			share := room[port] / users[port]
			for i, m := range list {
				if speed[i] == 0 && (m.from == port || chips+m.to == port) {
					speed[i] = share
					room[m.from] -= share
					room[chips+m.to] -= share
					open--
				}
			}
		}
		step := math.Inf(1)
		for i, m := range list {
			step = min(step, m.left/speed[i])
		}
		seconds += step
		var rest []message
		for i, m := range list {
			if m.left -= step * speed[i]; m.left > 1e-9 {
				rest = append(rest, m)
			}
		}
		list = rest
	}
	return seconds
}

// TestCollectivesAsMessages: what each chip lacks in the layout that is wanted, sent at once over the links, takes the
// closed forms' time.
func TestCollectivesAsMessages(t *testing.T) {
	const rate, latency = 1e9, 1e-6
	for n := int64(2); n <= 9; n++ {
		rows := 4 * n
		bytes := float64(rows * rows)
		g := chips.Group{Chips: n, Link: hardware.Link{BandwidthBytesPerSecond: rate, LatencySeconds: latency}}
		// owner has the chip of row i and column j in a layout; a byte each.
		owner := func(l layout, i, j int64) int64 { return []int64{i, j}[l] / 4 }
		for _, c := range []struct {
			from, to layout
			rounds   int
		}{{Cut(0), Whole, 1}, {Cut(0), Cut(1), 1}, {Cut(1), Cut(0), 1}, {Partial, Cut(0), 1}, {Partial, Whole, 2}} {
			sent := map[[2]int64]float64{}
			send := func(from, to int64) {
				if from != to {
					sent[[2]int64{from, to}]++
				}
			}
			for i := range rows {
				for j := range rows {
					for chip := range n {
						switch {
						case c.from == Partial: // each sends its summand to the chip that adds them up
							send(chip, owner(Cut(0), i, j))
						case c.to == Whole:
							send(owner(c.from, i, j), chip)
						case owner(c.to, i, j) == chip:
							send(owner(c.from, i, j), chip)
						}
					}
				}
			}
			var list []message
			for from := range n {
				for to := range n {
					if b := sent[[2]int64{from, to}]; b > 0 {
						list = append(list, message{from, to, b})
					}
				}
			}
			// Sums go back as the parts came.
			want := float64(c.rounds) * (latency + fluid(list, n, rate))
			if kind, got := collective(g, c.from, c.to, int64(bytes)); math.Abs(got-want) > 1e-12*want {
				t.Errorf("%d chips, %s from %v to %v: %g s, as messages %g", n, kind, c.from, c.to, got, want)
			}
		}
	}
}

// A product between another one and a normalisation is never slower than by rows, by columns or along its reduction
// alone, whichever links there are.
func TestProduct(t *testing.T) {
	best := map[layout]int{}
	spec := chip(t)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		on := group(2 + 2*r.Int64N(2))
		on.Torus = [][]int{nil, {int(on.Chips)}, {2, int(on.Chips) / 2}}[r.IntN(3)]
		rows, depth, cols := int64(1+r.IntN(64)), int64(8<<r.IntN(9)), int64(8<<r.IntN(13))
		build := func(batch int64) *model.Graph {
			b := model.NewBuilder("product")
			x := b.Input("x", model.F16, batch, rows, depth)
			x = b.Op("MatMul", "before", model.Attr{}, x, b.Param("v", model.F16, depth, depth))
			x = b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", model.F16, depth, cols))
			b.Output(b.Op("RMSNorm", "after", model.Attr{Axis: 2}, x, b.Param("shift", model.F16, cols)))
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		p, err := New(build(1), build(2), spec, on)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := p.Solve(t.Context(), "search", binding.Options{})
		if err != nil {
			t.Fatal(err)
		}
		least, by := math.Inf(1), Whole
		for _, pure := range []layout{Cut(1), Cut(2), Partial} {
			seconds, from := 0.0, Whole
			for i, op := range p.Graph.Ops {
				want := pure
				switch {
				case pure == Cut(1) || op.Name == "product":
				case op.Name == "before":
					want = Cut(2) // columns, which a reduction goes on with
				default:
					want = Whole
				}
				k := slices.IndexFunc(p.Options[i], func(o option) bool { return o.Out[0] == want })
				if k < 0 {
					seconds = math.Inf(1)
					break
				}
				seconds += p.Options[i][k].Seconds
				if kind, s := collective(on, from, p.Options[i][k].In[0], 2*p.Graph.Tensor(op.Inputs[0]).Shape.Elements()); i > 0 &&
					kind != "" {
					seconds += s + spec.LaunchSeconds
				}
				from = want
			}
			if seconds < least {
				least, by = seconds, pure
			}
		}
		best[by]++
		if plan.Objective > least*(1+1e-12) {
			t.Errorf("seed %d: the plan takes %g s, %v alone %g", seed, plan.Objective, by, least)
		}
	}
	if len(best) < 3 {
		t.Errorf("the best pure divisions are %v, expected some of each", best)
	}
	t.Log(best)
}
