// Package recipes has the one table of variants. It names a strategy for the stages of each, and hands the table to the
// engine, package scheduler, which knows no variant.
package recipes

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/scheduler"
)

func init() { scheduler.SetTable(table()) }

// Greedy is the baseline of searches and exact decisions: all of GraphTurbo.
const Greedy = "cross-layer"

// graphTurbo has the picks of the recipe Greedy.
const graphTurbo = "group=alg2 split=alg1 outputs=l1 order=alg3 bind=alg4 issue=cross-layer prefetch=ahead weights=keep"

// Table lists the recipes in the order of the paper's Fig. 15: each row changes one idea of the row before.
func Table() []scheduler.Recipe {
	return []scheduler.Recipe{
		scheduler.Parse("tvm", "a kernel per layer, results through the DDR, the batch looped over in chunks", ""),
		scheduler.Parse("llb", "variant 1: sub-graphs of Algorithm 2, split alike, outputs in the LLB",
			"group=alg2 split=one-factor outputs=llb order=chunk-by-chunk issue=exposed weights=keep"),
		scheduler.Parse("l1", "variant 2: outputs in the L1",
			"group=alg2 split=one-factor outputs=l1 order=chunk-by-chunk issue=exposed weights=keep"),
		scheduler.Parse("ordering", "variant 3: each sub-graph its own factor, instances ordered (Algorithms 1, 3, 4)",
			"group=alg2 split=alg1 outputs=l1 order=alg3 bind=alg4 issue=exposed weights=keep"),
		scheduler.Parse(Greedy, "variant 4: instructions scheduled across layers; all of GraphTurbo", graphTurbo),
	}
}

// Baselines lists the other published systems beside the table's TVM, and other readings of that: Table 1 has TVM on a
// par where "the LLB holds all batches" (§5.1), and TVM's own pass fuses by rules of its own.
func Baselines() []scheduler.Recipe {
	return []scheduler.Recipe{
		scheduler.Parse("tvm-llb", "tvm with results in the LLB where they fit", "outputs=llb"),
		scheduler.Parse("tvm-fuse", "tvm with the kernels of TVM's pass FuseOps", "group=fuse-ops"),
		scheduler.Parse("astitch", "TVM's kernels; those without a matrix operator stitched, results inside in the L1",
			"group=stitch outputs=l1 bind=block-local"),
		scheduler.Parse("astitch-fuse", "astitch beginning with the kernels of tvm-fuse",
			"group=stitch-ops outputs=l1 bind=block-local"),
	}
}

// Exact lists the recipes that replace greedy decisions of the table's last one by exact ones.
func Exact() []scheduler.Recipe {
	row := func(name, description, picks string) scheduler.Recipe {
		r := scheduler.Parse(name, description, graphTurbo)
		for _, p := range scheduler.Parse("", "", picks).Picks {
			r = r.Picking(p)
		}
		return r
	}
	all := row("exact-all", "cross-layer with every decision exact, or the fastest of cross-layer and the other "+
		"exact ones where that is slower",
		"split=search order=search bind=search spill=search")
	all.Fallback = []string{"cross-layer", "exact-split", "exact-order", "exact-bind", "exact-memory"}
	return []scheduler.Recipe{
		row("exact-split", "cross-layer with the groups and factors of least measured time", "split=search"),
		row("exact-order", "cross-layer with the instance order of least traffic", "order=search"),
		row("exact-bind", "cross-layer with the bindings and scopes of least cost", "bind=search"),
		row("exact-memory", "cross-layer with the spills of least traffic", "spill=search"),
		row("exact-joint", "cross-layer with order, bindings and scopes of least cost together", "order=joint bind=joint"),
		all,
	}
}

// Searched lists the recipes whose loops inside kernels are searched as by Ansor. Where kernels tuned one by one are
// slower side by side, the loops of the rules are kept.
func Searched() []scheduler.Recipe {
	var list []scheduler.Recipe
	for _, x := range [][3]string{{"tvm", "ansor", "TVM's kernels with loops searched by Ansor"},
		{Greedy, "graphturbo+ansor", "GraphTurbo's kernels with loops searched by Ansor"}} {
		r := named(Table(), x[0]).Picking(scheduler.Pick{Stage: "nest", Strategy: "ansor"})
		r.Name, r.Description, r.Fallback = x[1], x[2], []string{r.Name}
		list = append(list, r)
	}
	return list
}

// named is the recipe of a list with a name that is in it.
func named(list []scheduler.Recipe, name string) scheduler.Recipe {
	return list[slices.IndexFunc(list, func(r scheduler.Recipe) bool { return r.Name == name })]
}

// Whole is the recipe that searches all decisions together by simulated latency.
func Whole() scheduler.Recipe {
	r := named(Table(), Greedy)
	r.Name, r.Description = "best",
		"cross-layer or tiled improved as a whole, in 400 simulated schedules ('dsasched best' simulates more)"
	r.Evaluations = 400
	return r
}

// Default is the recipe that is used where none is named.
const Default = "tiled"

// Tiled lists this project's own greedy recipes, first the one that takes the fastest of them: the network as one
// kernel, attention as one operator, and tiling at each level of memory.
func Tiled() []scheduler.Recipe {
	row := func(name, description, picks string) scheduler.Recipe {
		r := scheduler.Parse(name, description, picks+" issue=cross-layer prefetch=at-start weights=keep-inputs nest=tiles")
		r.Ours = true
		return r
	}
	const (
		inLLB  = "rewrite=parts group=one split=none outputs=llb-kept bind=even"
		sliced = "rewrite=sliced group=one split=none outputs=l1-kept bind=even "
	)
	list := []scheduler.Recipe{
		row(Default,
			"the fastest of cross-layer and the other tiled variants, in place or not, on all or fewer cores and clusters",
			inLLB),
		row("tiled-llb",
			"one kernel, attention as an operator, results in the LLB, products in tiles of rows, columns and reduction",
			inLLB),
		row("tiled-l1", "tiled-llb with results in the L1s where they fit",
			"rewrite=parts group=one split=none outputs=l1-kept bind=even spill=needed"),
		row("tiled-groups", "tiled-llb with the kernels of cross-layer, whose layers run in tiles (section 4.1)",
			"rewrite=norms group=alg2-layers split=alg1 outputs=l1-kept order=alg3 bind=alg4"),
		row("tiled-room", "tiled-llb with a quarter of the LLB left to transfers",
			inLLB+" reserve=quarter"),
		row("tiled-slices",
			"tiled-l1 with feed-forwards in slices, where hidden columns fit neither the L1s nor the LLB; sums in place",
			sliced+"spill=overwrite"),
		row("tiled-moved", "tiled-slices; values cheapest to move are spilled first, no weights kept in the L1s",
			sliced+"spill=least-moved buffer=pass"),
		row("tiled-twelfth", "tiled-slices with a twelfth of the L1s for weights, and the rest for values",
			sliced+"spill=overwrite buffer=twelfth"),
	}
	first := &list[0]
	for _, r := range list {
		if r.Text() != first.Text() { // tiled-llb has the same picks
			first.Fallback = append(first.Fallback, r.Name)
		}
	}
	first.Fallback = append(first.Fallback, Greedy)
	first.Scouts = []string{Default, "tiled-l1", "tiled-groups", Greedy}
	return list
}

// Unfused is the baseline without fusion, with the default's nests, so that the difference is the gain of fusion.
func Unfused() scheduler.Recipe {
	r := named(Tiled(), "tiled-llb").Picking(scheduler.Pick{Stage: "group", Strategy: "none"}).
		Picking(scheduler.Pick{Stage: "rewrite", Strategy: "as-is"})
	r.Name, r.Description = "unfused",
		"tiled-llb without fusion: each operator is a kernel (--rewrite parts: an attention, too)"
	r.Ours = false
	return r
}

// All lists the table's recipes, then the other baselines, then those with exact decisions: all that need no trials.
func All() []scheduler.Recipe {
	return slices.Concat(Table(), Baselines(), Exact(), Tiled(), own.recipes)
}

// own is what [Add] has taken.
var own struct {
	recipes    []scheduler.Recipe
	strategies map[string][]scheduler.Strategy // by stage
}

// Add registers a caller's own recipes and the own strategies in them, under their names, for all commands, comparisons
// and searches. It must be called before any of these.
func Add(list ...scheduler.Recipe) error {
	for _, r := range list {
		if _, err := Lookup(r.Name); err == nil || r.Name == "" {
			return fmt.Errorf("variant %q: expected a name that no other variant has", r.Name)
		}
		for _, st := range scheduler.Stages() {
			s, is := r.Own(st.Name)
			if !is || Added(st.Name, s.Name) {
				continue
			}
			if _, err := st.Lookup(s.Name); err == nil {
				return fmt.Errorf("variant %q: strategy %q of %s is built in, expected another name", r.Name, s.Name,
					st.Name)
			}
			if own.strategies == nil {
				own.strategies = map[string][]scheduler.Strategy{}
			}
			own.strategies[st.Name] = append(own.strategies[st.Name], s)
		}
		own.recipes = append(own.recipes, r)
		scheduler.SetTable(table())
	}
	return nil
}

// Known lists all recipes, the searched ones last.
func Known() []scheduler.Recipe {
	return append(append(All(), Unfused()), append(Searched(), Whole())...)
}

// Added reports whether a strategy of a stage was registered by Add.
func Added(stage, strategy string) bool {
	return slices.ContainsFunc(own.strategies[stage], func(s scheduler.Strategy) bool { return s.Name == strategy })
}

// ConvFusion is the baseline with convolutions fused in pairs, which the paper compares
// with on a GPU (§5.6). It is no step of the breakdown, so it is not in the table.
func ConvFusion() scheduler.Recipe {
	return scheduler.Parse("conv-fusion", "a kernel per layer, but one for a convolution and the 1x1 convolution behind it "+
		"(CUTLASS)",
		"group=conv-pairs outputs=l1-inside")
}

// Lookup finds a recipe by name.
func Lookup(name string) (scheduler.Recipe, error) {
	var names []string
	for _, r := range Known() {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return scheduler.Recipe{}, fmt.Errorf("unknown variant %q%s", name, suggest.Expected(name, names))
}
