package interp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// attended is the program of an attention with several tiles of queries and of keys; with in turn of cores that divide
// the positions.
func attended(t *testing.T, causal bool, tiles schedule.AttentionTiles) *scheduler.Result {
	t.Helper()
	spec := machine(rand.New(rand.NewPCG(1, 1)))
	spec.Clusters, spec.CoreTypes[0].Count, spec.L1WeightBytes = 1, 2*max(1, int(tiles.Slices)), 1024
	spec.L1.SizeBytes = 4096
	spec.LLB = &hardware.Memory{SizeBytes: 32 << 10, BandwidthBytesPerSecond: 256e9}
	src := network.FuseAttention(network.Network{Name: "attention", Graph: func(batch int64) (*model.Graph, error) {
		return zoo.Attention{Heads: 4, KeyHeads: 2, Tokens: 12, Width: 4, Causal: causal}.Build(zoo.Options{Batch: batch})
	}})
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduler.Run(context.Background(), src, spec, 1, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := made.Plans[0][0].Schedule
	n := &schedule.Nest{Tiles: 1, Depth: 1, Loads: 1, Pieces: 1, Store: schedule.AtTile, Attention: &tiles}
	if tiles.InTurn || tiles.Slices > 0 {
		n.Cores = schedule.One(len(s.Steps[0].Binding))
		n.Cores[len(n.Cores)-2] = 2
	}
	if err := s.Follow(0, n); err != nil {
		t.Fatal(err)
	}
	if made.Program, err = lower.Program("attention", spec, made.Plans, made.Lower); err != nil {
		t.Fatal(err)
	}
	if _, err := interp.Run(made.Program, graphs(made.Plans), 1); err != nil {
		t.Fatal(err)
	}
	return made
}

func attends(kind isa.Kind, operand int32) func(*isa.Program, *isa.Command) bool {
	return func(p *isa.Program, c *isa.Command) bool {
		return c.Task > 0 && c.Kind == kind && c.Operand == operand
	}
}

// unbound lets a command wait for nothing.
func unbound(p *isa.Program, i int) { p.Commands[i].Deps = nil }

// waited says that earlier products wait for all that one waits for: its keys may have stayed from other queries.
func waited(p *isa.Program, c *isa.Command) bool {
	before := map[int32]bool{}
	for i := range p.Commands {
		if d := &p.Commands[i]; d == c {
			break
		} else if d.Kind == c.Kind {
			for _, x := range d.Deps {
				before[x] = true
			}
		}
	}
	return !slices.ContainsFunc(c.Deps, func(x int32) bool { return !before[x] })
}

// isSum says that a command brings the sums of other cores.
func isSum(p *isa.Program, c *isa.Command) bool { return c.Task > 0 && c.Sums(&p.Tasks[c.Task-1]) }

var attentionFaults = []planted{
	{"keys that do not come", attends(isa.L1Load, 1), nothing, []string{"has not been brought"}},
	{"values that do not come", attends(isa.L1Load, 2), nothing, []string{"has not been brought"}},
	{"keys of another tile", attends(isa.L1Load, 1), func(p *isa.Program, i int) { p.Commands[i].Tile++ },
		[]string{"has not been brought", "where nobody"}},
	{"scores that are not made", attends(isa.Matrix, 1), nothing, []string{"no scores"}},
	{"scores made twice", attends(isa.Matrix, 1), func(p *isa.Program, i int) { p.Commands[i].Operand = 2 },
		[]string{"no scores", "before the vector work", "may not be there"}},
	{"values that are not added", attends(isa.Matrix, 2), nothing, []string{"may not have been added",
		"may not be there", "may still be in use"}},
	{"another tile of keys in place of one", attends(isa.Matrix, 2), func(p *isa.Program,
		i int) {
		p.Commands[i].Tile = p.Commands[i].Tile%2 + 1
	}, []string{"or twice", "may not be there", "no scores"}},
	{"no vector work on scores", attends(isa.Vector, 1), nothing, []string{"before the vector work"}},
	{"no rescaling", attends(isa.Vector, 2), nothing, []string{"the rescaled sums"}},
	{"a tile of results that is not divided", attends(isa.Vector, 0), nothing, []string{"where nobody", "finds",
		"may not be there", "may still be reading"}},
	{"a store of another tile", func(_ *isa.Program, c *isa.Command) bool { return c.Kind == isa.L1Store },
		func(p *isa.Program, i int) {
			p.Commands[i].Part = (p.Commands[i].Part + 1) % p.Commands[i].Parts
		}, []string{"where nobody", "finds", "may still", "twice"}},
	{"a product that does not wait", attends(isa.Matrix, 2), unbound, []string{"may not be there",
		"may still be writing"}},
	{"scores that do not wait for their place", func(p *isa.Program, c *isa.Command) bool {
		// other pieces stand behind it
		return attends(isa.Matrix, 1)(p, c) && c.Part > 0 && c.Part%p.Tasks[c.Task-1].Pieces == 0 && !waited(p, c)
	}, unbound, []string{"may still be writing", "may still be in use"}},
	{"a load that does not wait for its place", func(p *isa.Program, c *isa.Command) bool {
		// With pieces the first of a tile stands behind its queries, which wait for what it waits for.
		return attends(isa.L1Load, 2)(p, c) && c.Part > 1 && (c.Tile > 1 || p.Tasks[c.Task-1].Pieces == 1)
	}, unbound, []string{"may still be reading", "may still be writing"}},
	{"sums of other cores that do not come", isSum, nothing, []string{"those of other cores may not have been added"}},
	{"sums that come before they are made", isSum, unbound, []string{"may not have been added", "may be in use"}},
	{"one place for two tiles", attends(isa.Matrix, 1), func(p *isa.Program,
		i int) {
		p.Tasks[p.Commands[i].Task-1].Slots = 1
	},
		[]string{"may still be", "has not been brought"}},
}

// Every fault that is planted in an attention is found.
func TestFaultsOfAttention(t *testing.T) {
	for _, c := range []struct {
		causal bool
		tiles  schedule.AttentionTiles
	}{
		{false, schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3}},
		{true, schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3}},
		{false, schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3, Pieces: 2, Single: true}},
		{true, schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3, Pieces: 2, InTurn: true}},
		{false, schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3, Slices: 2}},
	} {
		made := attended(t, c.causal, c.tiles)
		for _, f := range attentionFaults {
			if f.name == "one place for two tiles" && c.tiles.Single {
				continue // there is one
			}
			tried, every := 0, 3/sample(3)
			for i := range made.Program.Commands {
				if !f.site(made.Program, &made.Program.Commands[i]) {
					continue
				}
				if tried++; tried%every != 1%every {
					continue
				}
				p := copied(t, made.Program)
				f.plant(p, i)
				_, err := interp.Run(p, graphs(made.Plans), 1)
				var fault *interp.FaultError
				found := false
				if errors.As(err, &fault) {
					for _, w := range f.want {
						found = found || strings.Contains(fault.What, w)
					}
				}
				if !found {
					t.Errorf("%s, at command %d of %+v: %v", f.name, i, c.tiles, err)
				}
			}
			if tried == 0 && (c.tiles.Slices > 0 || !strings.HasPrefix(f.name, "sums")) {
				t.Errorf("%s: no place for it", f.name)
			}
		}
		// No tensor of scores: what moves is queries, keys, values, the scale and results.
		for _, x := range made.Program.Tensors {
			if n := x.Shape; len(n) > 2 && n[len(n)-1] == 12 && n[len(n)-2] == 12 {
				t.Errorf("the program has %q of shape %v", x.Name, n)
			}
		}
	}
}

// Nests that do not fit are refused with the loop, what it needs and what there is.
func TestAttentionNests(t *testing.T) {
	made := attended(t, false, schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3})
	s := made.Plans[0][0].Schedule
	out := s.Graph.Tensor(s.Steps[0].Output)
	for _, tt := range []struct {
		tiles schedule.AttentionTiles
		want  string
	}{
		{schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 13},
			"the loop over keys has tiles of 13, expected 1 to the 12 of a core"},
		{schedule.AttentionTiles{Products: 0, Positions: 3, Keys: 3}, "the loop over products has tiles of 0, expected 1 to"},
		{schedule.AttentionTiles{Products: 1, Positions: 300, Keys: 3},
			"the loop over positions has tiles of 300, expected 1 to"},
		{schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3, Pieces: 4},
			"the loop over pieces has 4 of 3 positions, expected at most one for each"},
		{schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3, Slices: 9},
			"the loop over keys divides 12 over 9 cores, expected 2 to"},
		{schedule.AttentionTiles{Products: 1, Positions: 3, Keys: 3, InTurn: true},
			"the loop over queries takes tiles of positions in turn, expected a causal mask"},
	} {
		n := &schedule.Nest{Tiles: 1, Depth: 1, Loads: 1, Pieces: 1, Store: schedule.AtTile, Attention: &tt.tiles}
		if err := s.Follow(0, n); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.tiles, err, tt.want)
		}
	}
	for _, tiles := range []schedule.AttentionTiles{*s.Steps[0].Nest.Attention,
		{Products: 1, Positions: 3, Keys: 3, Single: true},
		{Products: 1, Positions: 3, Keys: 3, Pieces: 2},
		{Products: 1, Positions: 3, Keys: 3, Slices: 2}, {Products: 1, Positions: 3, Keys: 3, Single: true, Slices: 4},
		{Products: 1, Positions: 3, Keys: 3, Pieces: 3, Single: true, InTurn: true}} {
		n := *s.Steps[0].Nest
		n.Attention = &tiles
		again, err := schedule.ParseNest(n.Text(out), out)
		if err != nil || *again.Attention != tiles || again.Text(out) != n.Text(out) {
			t.Errorf("%v of\n%s", err, n.Text(out))
		}
	}
	for text, want := range map[string]string{
		"for queries in 3\n  for keys in 3\n":        `expected "for queries in N N"`,
		"for keys in 3\n":                            "found loops over keys, expected",
		"for queries in 1 3\n  for keys in 3\n":      `expected "multiply"`,
		"for queries in 1 3\n  for keys in 3 of 2\n": `expected "for keys in 3 of 1"`,
		"for tile in 1 of 1\n  for queries in 1 3\n": "line 1",
	} {
		if _, err := schedule.ParseNest(text, out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := s.Follow(0, &schedule.Nest{Tiles: 1, Depth: 1, Loads: 1, Pieces: 1}); err == nil {
		_, err = lower.Program("attention", made.Spec, made.Plans, made.Lower)
		if err == nil || !strings.Contains(err.Error(), "the layer is an attention") {
			t.Errorf("loops over tiles: %v", err)
		}
	}
}
