package interp_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

var attentionPrograms = flag.Int("attentions", sample(300), "how many programs of attentions to execute")

// attentions is a network of one attention, in one of the forms that networks have, and whether its mask is causal.
func attentions(seed uint64, batch int64) (*model.Graph, error) {
	r := rand.New(rand.NewPCG(seed, 21))
	g := &grower{Rand: r, b: model.NewBuilder("attention")}
	heads, group := 1+r.Int64N(3), pick(r, int64(1), 1, 2, 3)
	rows, depth, width := 1+r.Int64N(9), 1+r.Int64N(8), 1+r.Int64N(8)
	keys := rows + pick(r, 0, 0, r.Int64N(8))
	of := func(name string, shape ...int64) model.TensorID {
		return g.op("Relu", model.Attr{}, g.b.Input(name, model.F16, shape...))
	}
	shaped := func(x model.TensorID, shape ...int64) model.TensorID {
		return g.op("Reshape", model.Attr{Shape: shape}, x)
	}
	all := heads * group
	var cuts []int64 // parts of keys and values
	if keys > 1 && r.IntN(2) == 0 {
		first := 1 + r.Int64N(keys-1)
		if cuts = []int64{first, keys - first}; keys-first > 1 && r.IntN(3) == 0 {
			cuts = []int64{first, 1, keys - first - 1}
		}
	}
	ofKeys := func(name string, features int64) model.TensorID {
		if cuts == nil {
			return of(name, batch, heads, keys, features)
		}
		var parts []model.TensorID
		for i, n := range cuts {
			part := g.b.Input(fmt.Sprint(name, i), model.F16, batch, heads, n, features)
			if r.IntN(2) == 0 { // not from the DDR
				part = g.op("Relu", model.Attr{}, part)
			}
			parts = append(parts, part)
		}
		return g.op("Concat", model.Attr{Axis: 2}, parts...)
	}
	q, k, v := of("q", batch, all, rows, depth), ofKeys("k", depth), ofKeys("v", width)
	columns := func(x model.TensorID) model.TensorID {
		perm := []int64{0, 1, 3, 2}
		if len(g.shape(x)) == 5 {
			perm = []int64{0, 1, 2, 4, 3}
		}
		return g.op("Transpose", model.Attr{Perm: perm}, x)
	}
	form := 0
	if group > 1 {
		form = 1 + r.IntN(3)
	}
	scores, back := []int64{batch, all, rows, keys}, func(x model.TensorID) model.TensorID { return x }
	switch form {
	case 0:
		if r.IntN(2) == 0 {
			k = g.op("Relu", model.Attr{}, columns(k))
		} else {
			k = columns(k)
		}
	case 1: // heads that share keys in one product
		q, k = shaped(q, batch, heads, group*rows, depth), columns(k)
		back = func(x model.TensorID) model.TensorID { return shaped(x, batch, heads, group*rows, keys) }
	case 2: // a dimension of their own
		q, k, v = shaped(q, batch, heads, group, rows, depth), columns(shaped(k, batch, heads, 1, keys, depth)), shaped(v,
			batch, heads, 1, keys, width)
		back = func(x model.TensorID) model.TensorID { return shaped(x, batch, heads, group, rows, keys) }
	case 3: // copies
		copies := func(x model.TensorID, n int64) model.TensorID {
			x = g.op("Expand", model.Attr{Shape: []int64{batch, heads, group, keys, n}}, shaped(x, batch, heads, 1, keys, n))
			return shaped(x, batch, all, keys, n)
		}
		k, v = columns(copies(k, depth)), copies(v, width)
	}
	p := g.op("MatMul", model.Attr{}, q, k)
	apart := func() {
		if form == 1 || form == 2 {
			p = shaped(p, scores...)
		}
	}
	if r.IntN(4) > 0 {
		p = g.op(pick[model.Kind](r, "Mul", "Div"), model.Attr{}, p, g.b.Const("scale", model.F16, nil, pick(r, []int64{1},
			[]int64{})...))
	}
	masked := r.IntN(4) > 0
	if masked {
		apart()
		for range 1 + r.IntN(2) {
			switch r.IntN(5) {
			case 0, 1:
				m := g.b.Const("causal", model.F16, nil, rows, keys)
				g.b.Tensor(m).Causal = true
				p = g.op("Add", model.Attr{}, p, m)
			case 2:
				p = g.op("Add", model.Attr{}, p, g.b.Input("padding", model.F16, batch, 1, 1, keys))
			case 3:
				p = g.op("Add", model.Attr{}, p, g.param(all, rows, keys))
			case 4:
				m := g.b.Const("shown", model.Bool, nil, rows, keys)
				g.b.Tensor(m).Causal = r.IntN(2) == 0
				p = g.op("Where", model.Attr{}, m, p, g.b.Const("low", model.F16, nil, 1))
			}
		}
	}
	if r.IntN(8) == 0 {
		p = g.op("Tanh", model.Attr{}, p)
	}
	p = g.op("Softmax", model.Attr{Axis: int64(len(g.shape(p)) - 1)}, p)
	if masked {
		p = back(p)
	}
	y := g.op("MatMul", model.Attr{}, p, v)
	if form == 1 || form == 2 && r.IntN(2) == 0 {
		y = shaped(y, batch, all, rows, width)
	}
	if len(g.shape(y)) == 4 && r.IntN(2) == 0 {
		y = shaped(g.op("Transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, y), batch, rows, all*width)
	}
	g.b.Output(y)
	return g.b.Build()
}

// One operator gives the values of those that it stands for, and its work is what its queries see.
func TestFusedAttention(t *testing.T) {
	causal, apart, seeds := 0, 0, sample(2000)
	for seed := range uint64(seeds) {
		g, err := attentions(seed, 1+int64(seed%2))
		if err != nil {
			t.Fatal(err)
		}
		f, n, err := simplify.FuseAttention(g)
		if err != nil || n != 1 {
			t.Fatalf("seed %d: %d attentions, %v", seed, n, err)
		}
		of := func(t *model.Tensor, i int64) uint64 { return interp.Source(seed, t, i) }
		want, got := interp.Evaluate(g, of), interp.Evaluate(f, of)
		for k, o := range f.Outputs {
			if a, b := fmt.Sprint(want[g.Outputs[k]]), fmt.Sprint(got[o]); a != b {
				t.Errorf("seed %d: other values than of the operators one by one", seed)
			}
		}
		for _, op := range f.Ops {
			if op.Kind != "Attention" {
				continue
			}
			shape := f.Tensor(op.Outputs[0]).Shape
			d := len(shape)
			rows, width, keys := shape[d-2], shape[d-1], f.KeyStart(op, op.KeyParts())
			depth, products := f.Tensor(op.Inputs[0]).Shape[d-1], shape[:d-2].Elements()
			seen := rows * keys
			if op.KeyParts() > 1 {
				apart++
			}
			if op.Attr.Causal {
				causal++
				seen = 0
				for i := range rows {
					seen += i + 1 + keys - rows
				}
			}
			if macs := f.Work(op, nil).MACs; macs != seen*products*(depth+width) {
				t.Errorf("seed %d: %d multiplications of %d pairs in %d products of depth %d and width %d", seed, macs, seen,
					products, depth, width)
			}
		}
	}
	if causal < seeds/7 {
		t.Errorf("%d causal ones of %d", causal, seeds)
	}
	if apart < seeds/4 {
		t.Errorf("%d with keys in parts of %d", apart, seeds)
	}
}

// Which networks have how many attentions.
func TestAttentionsOfNetworks(t *testing.T) {
	for name, want := range map[string][2]int{ // all, causal ones
		"bert-128": {12}, "bert-large-384": {24}, "vit-b16": {12}, "swin-t": {12}, "sd-unet": {32}, "gpt2-prefill": {12,
			12}, "gpt2-decode": {12},
		"llama2-7b-prefill": {32, 32}, "llama3-8b-prefill": {32, 32}, "llama3-8b-decode": {32},
		"mixtral-8x7b-prefill": {32, 32}, "gpt3-175b-prefill": {1},
		"asr-encoder": {12}, "transformer": {150}, "conformer-s": {}, "resnet50": {}, "mamba-130m": {},
	} {
		g, err := zoo.Build(name, zoo.Options{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		f, n, err := simplify.FuseAttention(g)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		causal := 0
		for _, op := range f.Ops {
			if op.Kind == "Attention" && op.Attr.Causal {
				causal++
			}
		}
		if n != want[0] || causal != want[1] {
			t.Errorf("%s: %d attentions, %d causal, want %v", name, n, causal, want)
		}
		if w := f.MACs(); n > 0 && causal == 0 && w != g.MACs() {
			t.Errorf("%s: %d multiplications, before %d", name, w, g.MACs())
		}
	}
}

// fused is a network of one attention as one operator, with or without products around it.
func fused(seed uint64) network.Network {
	return network.Network{Name: fmt.Sprintf("attention-%d", seed), Graph: func(batch int64) (*model.Graph, error) {
		g, err := attentions(seed, batch)
		if err != nil {
			return nil, err
		}
		f, n, err := simplify.FuseAttention(g)
		if n != 1 {
			return nil, fmt.Errorf("%d attentions", n)
		}
		return f, err
	}}
}

// otherTiles lets attentions run by random tiles where those have room.
func otherTiles(t *testing.T, made *scheduler.Result, r *rand.Rand, count func(schedule.AttentionTiles)) {
	known := map[*schedule.Schedule]bool{}
	for _, plan := range made.Plans {
		for _, seg := range plan {
			s := seg.Schedule
			for i := range s.Steps {
				if s.Steps[i].Attending == nil || known[s] {
					continue
				}
				n := &schedule.Nest{Tiles: 1, Depth: 1, Loads: 1, Pieces: 1, Store: schedule.AtTile}
				if old := s.Steps[i].Nest; old != nil {
					n.Cores = old.Cores
				}
				list := s.AttentionNests(i, 30)
				if deals := slices.DeleteFunc(slices.Clone(list),
					func(n *schedule.Nest) bool { return !n.Attention.InTurn }); len(deals) > 0 {
					list = deals
				}
				a := s.Steps[i].Attending
				steps, values := slices.Clone(s.Steps), slices.Clone(s.Values)
				if len(list) > 0 && r.IntN(4) > 0 {
					if other := list[r.IntN(len(list))]; s.Follow(i, other) == nil {
						n.Cores, a = other.Cores, s.Steps[i].Attending
					}
				}
				for range 8 {
					s.Steps, s.Values = slices.Clone(steps), slices.Clone(values)
					tiles := schedule.AttentionTiles{Products: 1, Positions: 1 + r.Int64N(a.Positions), Keys: 1 + r.Int64N(a.Keys),
						Single: r.IntN(2) == 0, InTurn: a.Causal && r.IntN(4) > 0}
					if r.IntN(3) == 0 {
						tiles.Products, tiles.Positions = 1+r.Int64N(a.Products), a.Positions
					}
					tiles.Pieces, n.Attention = r.Int64N(min(4, tiles.Positions)+1), &tiles
					if s.Follow(i, n) == nil { // else there is no room, or something stays in the L1
						count(tiles)
						steps, values = s.Steps, s.Values
						break
					}
				}
				s.Steps, s.Values = steps, values
			}
			known[s] = true
			if err := schedule.CheckPlan(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	var err error
	if made.Program, err = lower.Program(made.Program.Name, made.Spec, made.Plans, made.Lower); err != nil {
		t.Fatal(err)
	}
}

// Programs of random attentions on random machines compute what the network says, with scores nowhere but in
// the L1, and take no less than the bound.
func TestAttentionPrograms(t *testing.T) {
	recipes := slices.DeleteFunc(recipes.All(), func(r scheduler.Recipe) bool { return r.Name == "tiled-slices" })
	inside, fitted, forms := 0, 0, map[string]int{}
	done, small, coarse, tight, reports := 0, 0, map[string]int{}, 0.0, interp.Report{}
	for seed := range uint64(*attentionPrograms) {
		r := rand.New(rand.NewPCG(seed, 22))
		spec := machine(r)
		if r.IntN(2) == 0 {
			spec = anyMachine(r)
		}
		for i := range spec.CoreTypes[0].Units {
			u := &spec.CoreTypes[0].Units[i]
			u.Synchronous = u.Kind == hardware.Matrix && seed%5 == 2
		}
		recipe := recipes[r.IntN(len(recipes))]
		batch := pick(r, int64(1), 2, 3)
		what := fmt.Sprintf("seed %d: %s, batch %d, %d bytes of L1", seed, recipe.Name, batch, spec.L1.SizeBytes)
		src := fused(seed)
		if seed%4 == 1 { // among other layers
			src = network.FuseAttention(pick(r, net(seed, false), net(seed, true), shared(seed)))
			g, err := src.Graph(1)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(g.Ops, func(op *model.Op) bool { return op.Kind == "Attention" }) {
				continue
			}
			inside++
		}
		made, err := scheduler.Run(context.Background(), src, spec, batch, recipe, scheduler.Options{Chunk: pick(r,
			int64(0), 1)})
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			small++
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i := range made.Schedule.Steps {
			if st := &made.Schedule.Steps[i]; st.Attending != nil && st.Nest != nil && recipe.Pick("nest") == "rules" {
				fitted++
			}
		}
		if seed%3 == 0 {
			otherTiles(t, made, r, func(x schedule.AttentionTiles) {
				for form, is := range map[string]bool{"in turn": x.InTurn, "single": x.Single, "pieces": x.Pieces > 1} {
					if is {
						forms[form]++
					}
				}
			})
			what += ", random tiles"
		}
		report, err := interp.Run(made.Program, graphs(made.Plans), seed)
		var part *interp.CoarseError
		if errors.As(err, &part) {
			coarse[part.What]++
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		reports.Stages, reports.Pages = reports.Stages+report.Stages, reports.Pages+report.Pages
		result, err := sim.Run(context.Background(), made.Program, sim.Options{})
		if err == nil {
			err = sim.CheckBuffers(made.Program, result)
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		done++
		if data, err := made.File(schedulefile.Origin{}).Write(); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if f, err := schedulefile.Read("file", data); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if again, err := scheduler.Restore(context.Background(), f, spec); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if r, err := sim.Run(context.Background(), again.Program, sim.Options{}); err != nil ||
			r.TotalPs != result.TotalPs {
			t.Errorf("%s: %d ps, of the file %d ps, %v", what, result.TotalPs, r.TotalPs, err)
		}
		b, err := bound.Cold(context.Background(), src, made.Spec, batch)
		if err != nil || bound.Covers(made.Schedule) != nil {
			coarse["no bound"]++
			continue
		}
		for _, term := range b.Terms {
			if term.Seconds > float64(result.TotalPs)*1e-12 {
				t.Errorf("%s: %+v, simulated in %d ps", what, term, result.TotalPs)
			}
		}
		tight = max(tight, b.Seconds/float64(result.TotalPs)*1e12)
	}
	for _, form := range []string{"in turn", "single", "pieces"} {
		if forms[form] == 0 {
			t.Errorf("no nest is %s", form)
		}
	}
	if fitted == 0 {
		t.Error("no attention has tiles for the room that is free, expected some")
	}
	t.Logf(
		"%d agree, %d of them among other layers, %d fitted, nests %v, %d do not fit, %v; the bound is up to %.2f of the time; beyond: %+v",
		done, inside, fitted, forms, small, coarse, tight, reports)
}

// Cores that share keys compute what the network says, whatever the number of cores, of keys and of tiles: each key is
// multiplied as often as by one core, no run takes less than the bound, and its file makes the same program.
func TestSharedKeys(t *testing.T) {
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	count, apart, uneven := 0, 0, 0
	for seed := range uint64(sample(30)) {
		r := rand.New(rand.NewPCG(seed, 23))
		heads, group, rows, keys := 1+r.Int64N(3), pick(r, int64(1), 1, 3), 1+r.Int64N(3), 5+r.Int64N(9)
		cache := keys
		if r.IntN(2) == 0 {
			cache -= 1 + r.Int64N(2)
		}
		padded, softmax := r.IntN(2) == 0, r.IntN(4) > 0
		src := network.Network{Name: "shared", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("shared")
			in := []model.TensorID{b.Input("q", model.F16, batch, heads*group, rows, 4)}
			for i, n := range []int64{cache, keys - cache} {
				if n > 0 {
					in = append(in, b.Input(fmt.Sprint("k", i), model.F16, batch, heads, n, 4),
						b.Input(fmt.Sprint("v", i), model.F16, batch, heads, n, 6))
				}
			}
			a := model.Attr{Group: group, Softmax: softmax}
			if padded {
				in = append(in, b.Input("padding", model.F16, batch, 1, 1, keys))
				a.Scores = []model.ScoreOp{{Kind: "Add", Operands: 2}}
			}
			b.Output(b.Op("Attention", "attention", a, in...))
			return b.Build()
		}}
		spec := machine(r)
		spec.CoreTypes[0].Count, spec.L1.SizeBytes, spec.L1WeightBytes = 6, 16<<10, 1024
		made, err := scheduler.Run(context.Background(), src, spec, 1, recipe, scheduler.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := made.Plans[0][0].Schedule
		steps, values := s.Steps, s.Values
		run := func(tiles schedule.AttentionTiles, cores schedule.Binding) int64 {
			what := fmt.Sprintf("seed %d: %+v over %v", seed, tiles, cores)
			s.Steps, s.Values = slices.Clone(steps), slices.Clone(values)
			if err := s.Follow(0, &schedule.Nest{Cores: cores, Tiles: 1, Depth: 1, Loads: 1, Pieces: 1, Store: schedule.AtTile,
				Attention: &tiles}); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if made.Program, err = lower.Program("shared", spec, made.Plans, made.Lower); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			report, err := interp.Run(made.Program, graphs(made.Plans), seed)
			if err != nil || report.Outputs != heads*group*rows*6 {
				t.Fatalf("%s: %d elements, %v", what, report.Outputs, err)
			}
			result, err := sim.Run(context.Background(), made.Program, sim.Options{})
			if err == nil {
				err = sim.CheckBuffers(made.Program, result)
			}
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if b, err := bound.Cold(context.Background(), src, spec, 1); err != nil ||
				b.Seconds > float64(result.TotalPs)*1e-12 {
				t.Errorf("%s: simulated in %d ps, the bound is %g s, %v", what, result.TotalPs, b.Seconds, err)
			}
			if tiles.Slices > 0 {
				data, err := made.File(schedulefile.Origin{}).Write()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				f, err := schedulefile.Read("file", data)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				again, err := scheduler.Restore(context.Background(), f, spec)
				if err != nil || !reflect.DeepEqual(again.Program.Commands, made.Program.Commands) {
					t.Errorf("%s: the file makes another program, %v", what, err)
				}
			}
			return report.Products
		}
		for _, of := range []int64{1, heads} {
			cores := schedule.One(4)
			cores[1] = of
			one := schedule.AttentionTiles{Products: 1, Positions: 1 + r.Int64N(rows), Keys: keys}
			one.Pieces = r.Int64N(one.Positions + 1)
			want := run(one, cores)
			for n := int64(2); n <= 6/of; n++ {
				if each := (keys + n - 1) / n; each*(n-1) >= keys {
					continue // a core has none
				} else if each*n > keys {
					uneven++
				}
				x := one
				x.Slices, x.Single = n, r.IntN(2) == 0
				x.Keys = 1 + r.Int64N((keys+n-1)/n)
				if got := run(x, cores); got != want {
					t.Errorf("seed %d: %+v multiplies %d elements of keys, one core %d", seed, x, got, want)
				}
				if count++; cache < keys {
					apart++
				}
			}
		}
	}
	if count == 0 || apart == 0 || uneven == 0 {
		t.Errorf("%d runs, %d with keys in parts, %d with slices of unequal size", count, apart, uneven)
	}
}
