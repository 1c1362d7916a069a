package fusion_test

import (
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

func machine(t testing.TB) *simt.Machine {
	t.Helper()
	m, err := simt.Load("v100-simt")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// softmaxLike is exp, sum of rows, quotient; the operators are e, s, d, after a product m.
func softmaxLike(t testing.TB) *model.Graph {
	t.Helper()
	b := model.NewBuilder("softmax")
	x := b.Op("MatMul", "m", model.Attr{}, b.Input("x", model.F32, 4096, 64), b.Param("w", model.F32, 64, 256))
	e := b.Op("Exp", "e", model.Attr{}, x)
	s := b.Op("ReduceSum", "s", model.Attr{Axes: []int64{1}, KeepDims: true}, e)
	b.Output(b.Op("Div", "d", model.Attr{}, e, s))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// plan is one kernel of two groups behind the product: e and s by rows, d as the test
// has it.
func plan(t testing.TB, g *model.Graph, m *simt.Machine, scheme fusion.Scheme) *fusion.Plan {
	t.Helper()
	rows := simt.Pack(4096, 256, 1024, 160)
	k := fusion.Kernel{
		Block: simt.Block{Threads: 1024},
		Groups: []fusion.Group{
			{Ops: []model.OpID{1, 2}, Dominant: 2, Mapping: rows},
			{Ops: []model.OpID{3}, Dominant: 3, Mapping: rows},
		},
		Links: []fusion.Link{
			{From: 1, To: 2, Tensor: g.Op(2).Inputs[0], Scheme: fusion.Local},
			{From: 1, To: 3, Tensor: g.Op(3).Inputs[0], Scheme: scheme},
			{From: 2, To: 3, Tensor: g.Op(3).Inputs[1], Scheme: scheme},
		},
	}
	if !k.Price(g, m) {
		t.Fatal("the machine can't run it")
	}
	p, err := fusion.Finish("test", g, m, []fusion.Kernel{fusion.Library(g, m, 0), k},
		func(from, to model.OpID) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Bytes by hand: the product's result is read once and the quotient written; a global
// exp is written too, and read again from the L2, which holds it.
func TestBytes(t *testing.T) {
	g, m := softmaxLike(t), machine(t)
	const tensor = 4096 * 256 * 4
	const column = 4096 * 4
	r := plan(t, g, m, fusion.Regional).Kernels[1]
	if r.ReadBytes != tensor || r.WriteBytes != tensor {
		t.Errorf("regional: %d bytes read and %d written, want %d each", r.ReadBytes, r.WriteBytes, tensor)
	}
	// Four rows of a task stand in shared memory, with their sums.
	if want := int64(4*256*4 + 4*4); r.Block.SharedBytes != want || r.Phases != 1 {
		t.Errorf("regional: %d bytes of shared memory in %d phases, want %d in 1", r.Block.SharedBytes, r.Phases, want)
	}
	l := plan(t, g, m, fusion.Global).Kernels[1]
	if l.ReadBytes != tensor || l.WriteBytes != 2*tensor+column || l.Phases != 2 {
		t.Errorf("global: %d bytes read and %d written in %d phases", l.ReadBytes, l.WriteBytes, l.Phases)
	}
	if got := l.Groups[1].L2Bytes; got != tensor+column {
		t.Errorf("global: %d bytes from the L2, want %d", got, tensor+column)
	}
	if l.Seconds <= r.Seconds || l.Time.Barrier != m.Barrier(l.Blocks) {
		t.Errorf("global takes %g s with %g at the barrier, regional %g", l.Seconds, l.Time.Barrier, r.Seconds)
	}
	// A smaller L2 sends part of it to the DRAM.
	small := *m
	small.L2.SizeBytes = tensor / 4
	if got := plan(t, g, &small, fusion.Global).Kernels[1].ReadBytes; got != tensor+tensor*3/4 {
		t.Errorf("a quarter in the L2: %d bytes read, want %d", got, tensor+tensor*3/4)
	}
	for _, k := range []fusion.Kernel{r, l} { // never under the roofline
		if floor := m.LaunchSeconds + float64(k.ReadBytes+k.WriteBytes)/m.DRAM.BytesPerSecond; k.Seconds < floor {
			t.Errorf("%g s, and the bytes alone take %g", k.Seconds, floor)
		}
	}
}

// An expensive operator in front of a broadcast within one nest is computed for each
// element; the referee and the price take it as given.
func TestComputedAgain(t *testing.T) {
	b := model.NewBuilder("again")
	e := b.Op("Exp", "e", model.Attr{}, b.Input("x", model.F32, 1024, 1))
	b.Output(b.Op("Add", "a", model.Attr{}, e, b.Input("y", model.F32, 1024, 4096)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := machine(t)
	m.SM.Special, m.DRAM.BytesPerSecond = 1, 1e13 // so that they show
	one, ok := fusion.Single(g, m, []model.OpID{0, 1}, nil, m.Plain)
	if want := float64(1024*4096) / (80 * m.ClockHz); !ok || one.Time.Bound != "special" || one.Time.Work != want {
		t.Errorf("%+v, want %g s of special functions", one.Time, want)
	}
}

func TestRefereeFindsFaults(t *testing.T) {
	g, m := softmaxLike(t), machine(t)
	for name, c := range map[string]struct {
		spoil func(p *fusion.Plan)
		want  string
	}{
		"lost": {func(p *fusion.Plan) { p.Kernels = p.Kernels[:1] }, `"e" is in no kernel`},
		"too early": {func(p *fusion.Plan) { p.Kernels[0], p.Kernels[1] = p.Kernels[1], p.Kernels[0] },
			`runs "e" before "m" is there`},
		"groups in the wrong order": {func(p *fusion.Plan) {
			gr := p.Kernels[1].Groups
			gr[0], gr[1] = gr[1], gr[0]
		}, `has group 0 of "d" before group 1`},
		"no scheme": {func(p *fusion.Plan) { p.Kernels[1].Links = nil },
			`serves "e" -> "d" as independent between two groups`},
		"local over groups": {func(p *fusion.Plan) { p.Kernels[1].Links[2].Scheme = fusion.Local },
			`serves "s" -> "d" as local`},
		"no barrier": {func(p *fusion.Plan) { p.Kernels[1].Links[2].Scheme = fusion.Global },
			`no barrier between "s" and "d"`},
		"other blocks": {func(p *fusion.Plan) { p.Kernels[1].Groups[1].Mapping.Tasks++ }, `within blocks of`},
		"twice": {func(p *fusion.Plan) { p.Kernels[1].Groups[1].Ops = []model.OpID{3, 2} },
			`has operator "s" in groups 0 and 1`},
		"not written": {func(p *fusion.Plan) { p.Kernels[1].Again = []model.OpID{3} },
			`no kernel writes the result of "d"`},
		"too large": {func(p *fusion.Plan) { p.Kernels[1].Block.SharedBytes = 1 << 20 }, `which no SM holds`},
		"a wave too many": {func(p *fusion.Plan) { p.Kernels[1].Phases, p.Kernels[1].Blocks = 2, 161 },
			`waits for 161 blocks, of which only 160`},
	} {
		p := plan(t, g, m, fusion.Regional)
		c.spoil(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Views are passed over on the way to a reader.
func TestViews(t *testing.T) {
	b := model.NewBuilder("views")
	x := b.Input("x", model.F32, 6)
	y := b.Op("Reshape", "v", model.Attr{Shape: []int64{2, 3}}, b.Op("Exp", "e", model.Attr{}, x))
	b.Output(b.Op("Reshape", "u", model.Attr{Shape: []int64{3, 2}}, y))
	b.Op("Neg", "n", model.Attr{}, y)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	e := g.Op(0).Outputs[0]
	if readers, leaves := fusion.Readers(g, e); len(readers) != 1 || g.Op(readers[0]).Name != "n" || !leaves {
		t.Errorf("%v read it, leaves %v; want n, and yes", readers, leaves)
	}
	if got := fusion.Root(g, g.Outputs[0]); got != e {
		t.Errorf("root %d, want %d", got, e)
	}
}
