package interp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/recipes"
)

// planted changes a program in one place; sites are the commands where it can.
type planted struct {
	name  string
	site  func(p *isa.Program, c *isa.Command) bool
	plant func(p *isa.Program, i int)
	want  []string // one of them is in what is reported
}

// copied returns a program of its own.
func copied(t *testing.T, p *isa.Program) *isa.Program {
	t.Helper()
	data, err := json.Marshal(p.Unfolded())
	if err != nil {
		t.Fatal(err)
	}
	var c isa.Program
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// nothing is a command that takes its place in the queue and does nothing.
func nothing(p *isa.Program, i int) {
	c := &p.Commands[i]
	*c = isa.Command{Kind: isa.Barrier, Queue: c.Queue, Label: c.Label, Deps: c.Deps}
}

func kindIs(kinds ...isa.Kind) func(*isa.Program, *isa.Command) bool {
	return func(_ *isa.Program, c *isa.Command) bool {
		for _, k := range kinds {
			if c.Kind == k {
				return true
			}
		}
		return false
	}
}

// needed lists the positions of a command's dependencies that nothing else implies, of
// those on commands that work with data.
func needed(p *isa.Program, i int) (list []int) {
	c := &p.Commands[i]
	for k, d := range c.Deps {
		if p.Commands[d].Task > 0 && !implied(p, i, k) {
			list = append(list, k)
		}
	}
	return list
}

// implied reports whether a command waits for dependency k without it, too.
func implied(p *isa.Program, i, k int) bool {
	seen := map[int]bool{}
	var open []int
	wait := func(c int) {
		if !seen[c] {
			seen[c] = true
			open = append(open, c)
		}
	}
	before := func(c int) {
		for b := c - 1; b >= 0; b-- {
			if p.Commands[b].Queue == p.Commands[c].Queue {
				wait(b)
				break
			}
		}
	}
	before(i)
	for j, d := range p.Commands[i].Deps {
		if j != k {
			wait(int(d))
		}
	}
	for len(open) > 0 {
		c := open[len(open)-1]
		open = open[:len(open)-1]
		before(c)
		for _, d := range p.Commands[c].Deps {
			wait(int(d))
		}
	}
	return seen[int(p.Commands[i].Deps[k])]
}

var faults = []planted{
	{"a wrong offset of a result in the L1", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind == isa.Vector && p.Tasks[c.Task-1].Writes[0].Level == isa.L1
	}, func(p *isa.Program, i int) { p.Tasks[p.Commands[i].Task-1].Writes[0].Address += 2 },
		[]string{"finds", "where nobody has written", "may still"}},
	{"a wrong offset of an operand", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind == isa.Exchange
	}, func(p *isa.Program, i int) {
		c := &p.Commands[i]
		p.Tasks[c.Task-1].Reads[c.Operand].Address += 64
	}, []string{"finds", "where nobody has written", "may still"}},
	{"a store missing", kindIs(isa.L1Store, isa.DDRStore), nothing, []string{"is missing", "where nobody", "finds"}},
	{"a load missing", kindIs(isa.DDRLoad), nothing, []string{"where nobody has put it"}},
	{"a product missing", kindIs(isa.Matrix), nothing,
		[]string{"not all products", "where nobody", "finds", "is missing", "doing"}},
	{"a part done twice, another not", func(_ *isa.Program, c *isa.Command) bool { return c.Kind.Stores() && c.Part > 0 },
		func(p *isa.Program, i int) { p.Commands[i].Part = 0 }, []string{"twice", "where nobody", "finds"}},
	{"another operand", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind == isa.L1Load && c.To > 0 && len(p.Tasks[c.Task-1].Reads) > 1
	}, func(p *isa.Program, i int) {
		c := &p.Commands[i]
		c.Operand = (c.Operand + 1) % int32(len(p.Tasks[c.Task-1].Reads))
		c.Tile = 0
	}, []string{"where nobody", "finds", "has not been brought"}},
	{"a capacity passed", kindIs(isa.Vector), func(p *isa.Program, i int) { p.Capacity[isa.L1] = 64 },
		[]string{"which has 64 bytes"}},
	{"a result behind the end", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind == isa.Vector && p.Tasks[c.Task-1].Writes[0].Level == isa.L1
	}, func(p *isa.Program, i int) {
		p.Tasks[p.Commands[i].Task-1].Writes[0].Address = p.Capacity[isa.L1]
	}, []string{"which has"}},
	{"a computation swapped with the next of its queue",
		func(p *isa.Program, c *isa.Command) bool { return c.Kind == isa.Matrix && next(p, c) >= 0 },
		func(p *isa.Program, i int) {
			j := next(p, &p.Commands[i])
			a, b := &p.Commands[i], &p.Commands[j]
			a.Task, b.Task, a.Portion, b.Portion = b.Task, a.Task, b.Portion, a.Portion
		}, []string{"where nobody", "finds", "has not been brought", "not all products", "may still"}},
}

// next is the next computation of the command's queue, if it is of another task.
func next(p *isa.Program, c *isa.Command) int {
	found := false
	for i := range p.Commands {
		d := &p.Commands[i]
		if found && d.Queue == c.Queue && d.Kind.IsCompute() {
			if d.Task != c.Task && d.Iteration == c.Iteration && d.Kind == c.Kind {
				return i
			}
			return -1
		}
		found = found || d == c
	}
	return -1
}

// Every planted fault is found, at every place of two programs where it can be.
func TestFaults(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	sites := map[string]int{}
	for _, seed := range faultSeeds {
		made := lowered(t, seed, recipe)
		for _, f := range faults {
			tried := 0
			for i := range made.Program.Commands {
				if !f.site(made.Program, &made.Program.Commands[i]) {
					continue
				}
				if tried++; tried > 3 {
					break
				}
				p := copied(t, made.Program)
				f.plant(p, i)
				_, err := interp.Run(p, graphs(made.Plans), seed)
				var fault *interp.FaultError
				found := false
				if errors.As(err, &fault) {
					for _, w := range f.want {
						found = found || strings.Contains(fault.What, w)
					}
				}
				if !found {
					t.Errorf("seed %d: %s, at command %d: %v", seed, f.name, i, err)
				}
				sites[f.name]++
			}
		}
	}
	for _, f := range faults {
		if sites[f.name] == 0 {
			t.Errorf("%s: no place for it", f.name)
		}
	}
	t.Log(sites)
}

var faultSeeds = []uint64{4, 16, 40}

// A dependency that nothing else implies is missed as soon as it is dropped, but for a few:
// the last pieces of an operand often bring nothing new, and special functions leave their
// results to the vector work behind them.
func TestDroppedDependencies(t *testing.T) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	found, tried := 0, 0
	for _, seed := range faultSeeds {
		made := lowered(t, seed, recipe)
		p := made.Program
		for last := tried + 10; tried < last; {
			i := r.IntN(len(p.Commands))
			c := &p.Commands[i]
			list := needed(p, i)
			if c.Task == 0 || c.Kind == isa.Special || len(list) == 0 {
				continue
			}
			deps, k := c.Deps, list[r.IntN(len(list))]
			c.Deps = append(append([]int32(nil), deps[:k]...), deps[k+1:]...)
			tried++
			if _, err := interp.Run(p, graphs(made.Plans), seed); err != nil {
				found++
			} else {
				t.Logf("seed %d: command %d (%v) does not miss command %d (%v)", seed, i, c.Kind, deps[k], p.Commands[deps[k]].Kind)
			}
			c.Deps = deps
		}
	}
	if 10*found < 9*tried {
		t.Errorf("of %d dropped dependencies, %d were found", tried, found)
	}
	t.Logf("%d of %d", found, tried)
}

// nestFaults are what a wrong loop of a nest does to a program.
var nestFaults = []planted{
	{"a factor off by one", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind.Stores() && c.Parts > 1 && c.Part == c.Parts-1
	},
		func(p *isa.Program, i int) { p.Commands[i].Parts++ }, nil},
	{"a part of a reduction added again, another not at all", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind == isa.Matrix && c.Tile > 0 && len(p.Tasks[c.Task-1].Reduction) > 1
	}, func(p *isa.Program, i int) {
		c := &p.Commands[i]
		n := int32(len(p.Tasks[c.Task-1].Reduction))
		c.Tile = (c.Tile-1)/n*n + c.Tile%n + 1
	}, nil},
	{"vector work behind another tile of columns", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind == isa.Vector && c.Tile > 0 && len(p.Tasks[c.Task-1].Columns) > 1
	}, func(p *isa.Program, i int) {
		c := &p.Commands[i]
		n := int32(len(p.Tasks[c.Task-1].Reduction))
		c.Tile = (c.Tile+n-1)%(n*int32(len(p.Tasks[c.Task-1].Columns))) + 1
	}, nil},
	{"fewer tiles of weights together", func(_ *isa.Program, c *isa.Command) bool { return c.Tiles > 1 },
		func(p *isa.Program, i int) { p.Commands[i].Tiles-- }, nil},
	{"a quarter of a stage", func(p *isa.Program, c *isa.Command) bool {
		return c.Kind == isa.DDRLoad && c.Tile == 0 && feeds(p, c) > 1
	}, func(p *isa.Program, i int) { p.Commands[i].Portion = p.Commands[i].Cut(0, 4) }, nil},
	{"a store of another tile of rows",
		func(p *isa.Program, c *isa.Command) bool { return c.Kind.Stores() && c.Parts > 1 },
		func(p *isa.Program, i int) { p.Commands[i].Part = (p.Commands[i].Part + 1) % p.Commands[i].Parts }, nil},
}

// feeds is how many loads take what a load from the DDR brings to the LLB.
func feeds(p *isa.Program, c *isa.Command) (n int) {
	for i := range p.Commands {
		if d := &p.Commands[i]; d.Kind == isa.L1Load && d.From > 0 && d.From == c.To && d.Task == c.Task {
			n++
		}
	}
	return n
}

// Programs of random nests with a fault planted in a loop are faulty nearly everywhere; a
// part may be so small that it holds nothing.
func TestFaultsOfNests(t *testing.T) {
	tried, found := map[string]int{}, map[string]int{}
	for seed := range uint64(14) {
		recipe, err := recipes.Lookup([]string{"cross-layer", "tvm"}[seed%2])
		if err != nil {
			t.Fatal(err)
		}
		made := lowered(t, seed+100, recipe)
		nested(t, made, rand.New(rand.NewPCG(seed, 9)))
		if _, err := interp.Run(made.Program, graphs(made.Plans), seed); err != nil {
			var coarse *interp.CoarseError
			if errors.As(err, &coarse) {
				continue
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, f := range nestFaults {
			sites := 0
			for i := range made.Program.Commands {
				if !f.site(made.Program, &made.Program.Commands[i]) {
					continue
				}
				if sites++; sites > 2 {
					break
				}
				p := copied(t, made.Program)
				f.plant(p, i)
				tried[f.name]++
				if _, err := interp.Run(p, graphs(made.Plans), seed); err != nil {
					found[f.name]++
				}
			}
		}
	}
	for _, f := range nestFaults {
		if tried[f.name] == 0 || 10*found[f.name] < 8*tried[f.name] {
			t.Errorf("%s: %d of %d found", f.name, found[f.name], tried[f.name])
		}
	}
	t.Log(found, tried)
}

// Waits dropped one at a time from random programs: of those whose loss can be seen on values at the times that the
// program then takes, the referee finds all.
func TestRefereeFindsDroppedWaits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	seen, found, wrong := map[string]int{}, map[string]int{}, 0
	for n := range uint64(sample(24)) {
		recipe, err := recipes.Lookup([]string{"cross-layer", "tvm", "l1"}[n%3])
		if err != nil {
			t.Fatal(err)
		}
		made := lowered(t, n+200, recipe)
		p := copied(t, made.Program)
		judged := func() (*sim.Result, error) {
			result, err := sim.Run(t.Context(), p, sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return result, sim.CheckBuffers(p, result)
		}
		if _, err := judged(); err != nil {
			t.Fatalf("seed %d: %v", n, err)
		}
		for range 60 {
			i := r.IntN(len(p.Commands))
			c := &p.Commands[i]
			list := needed(p, i)
			if c.Task == 0 || len(list) == 0 {
				continue
			}
			deps, k := c.Deps, list[r.IntN(len(list))]
			c.Deps = append(append([]int32(nil), deps[:k]...), deps[k+1:]...)
			result, judgement := judged()
			_, fault := interp.Timed(p, graphs(made.Plans), n, result.Start, result.End)
			what := fmt.Sprintf("%v after %v", c.Kind, p.Commands[deps[k]].Kind)
			switch {
			case fault != nil && judgement != nil:
				seen[what]++
				found[what]++
			case fault != nil:
				// Which part of a value a part of an exchange reads follows from windows, which a program does not say.
				if c.Kind != isa.Exchange || c.Parts <= 1 || p.Commands[deps[k]].Parts <= 1 {
					seen[what]++
				}
				t.Logf("seed %d: command %d misses command %d (%s): %v", n, i, deps[k], what, fault)
			case judgement != nil:
				wrong++
			}
			c.Deps = deps
		}
	}
	all := 0
	for what, n := range seen {
		all += n
		if n != found[what] {
			t.Errorf("%s: %d of %d found", what, found[what], n)
		}
	}
	if all < 100 {
		t.Errorf("%d dropped waits whose loss is seen, expected 100 or more", all)
	}
	t.Logf("%d seen and found, %d found alone", all, wrong)
}
