package paperfigs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// merging is the paper's example of Algorithm 2 (§3.2, Figs. 4 and 5): a conv and an identity block, merge by merge.
type merging struct {
	hardware, model string
	// perCluster are numbers of images: as many as the paper has, where factors differ,
	// and few enough that all factors are 1, so that the patterns alone decide.
	perCluster []int64
}

func fig5() merging { return merging{"stcp920", "toy-fig5", []int64{8, 2}} }

func (f merging) experiment() harness.Experiment {
	return harness.Experiment{
		Name: "fig5", Also: []string{"fig4"},
		Description: "a conv and an identity block while Algorithm 2 merges them: patterns, rules and the graph after each step",
		Paper:       "GraphTurbo (OSDI 2023), §3.2 and Figs. 4, 5",
		Plan:        f.plan,
	}
}

// mergeRun is the merging of one graph.
type mergeRun struct {
	PerCluster int64       `json:"batches_per_cluster"`
	Ops        []mergedOp  `json:"operators"` // in execution order
	Events     []mergeStep `json:"merges"`    // made and refused, in order
	States     []mergeStat `json:"states"`    // before, and after each pass that changed something
}

type mergedOp struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Reads []int  `json:"reads"` // operators
}

type mergeStep struct {
	Round    int      `json:"round"`
	Pattern  string   `json:"pattern"`
	Parts    []string `json:"parts"` // by their last operators
	Factors  []int64  `json:"factors"`
	Merged   int64    `json:"merged_factor"`
	Rule     string   `json:"rule"`
	Accepted bool     `json:"accepted"`
	Reason   string   `json:"reason,omitempty"`
}

type mergeStat struct {
	Round   int         `json:"round"` // 0: before the first
	Pattern string      `json:"pattern"`
	Groups  []mergePart `json:"groups"`
}

type mergePart struct {
	Ops    []int `json:"operators"`
	Factor int64 `json:"factor"` // 0: never asked for
}

// replay makes the states of the graph from what Algorithm 2 noted. A part goes by
// its last operator, and so does what it becomes.
func replay(ops []string, events []schedule.MergeEvent) ([]mergeStat, error) {
	groups := map[string]*mergePart{}
	for i, name := range ops {
		if groups[name] != nil {
			return nil, fmt.Errorf("two operators are named %q, expected different names", name)
		}
		groups[name] = &mergePart{Ops: []int{i}}
	}
	// A factor is known from the first time that the part is asked about.
	for _, e := range slices.Backward(events) {
		for i, p := range e.Parts {
			if g := groups[p]; g != nil && len(g.Ops) == 1 {
				g.Factor = e.Factors[i]
			}
		}
	}
	var states []mergeStat
	snapshot := func(round int, pattern string) {
		st := mergeStat{Round: round, Pattern: pattern}
		for _, g := range groups {
			st.Groups = append(st.Groups, mergePart{slices.Clone(g.Ops), g.Factor})
		}
		slices.SortFunc(st.Groups, func(a, b mergePart) int { return a.Ops[0] - b.Ops[0] })
		states = append(states, st)
	}
	snapshot(0, "")
	changed := false
	for i, e := range events {
		if e.Accepted {
			last := groups[e.Parts[len(e.Parts)-1]]
			if last == nil {
				return nil, fmt.Errorf("merge %d is of %q, which is no part's last operator", i, e.Parts[len(e.Parts)-1])
			}
			for _, p := range e.Parts[:len(e.Parts)-1] {
				if groups[p] == nil {
					return nil, fmt.Errorf("merge %d is of %q, which is no part's last operator", i, p)
				}
				last.Ops = append(last.Ops, groups[p].Ops...)
				delete(groups, p)
			}
			slices.Sort(last.Ops)
			last.Factor = e.Merged
			changed = true
		}
		if changed && (i+1 == len(events) || events[i+1].Round != e.Round || events[i+1].Pattern != e.Pattern) {
			snapshot(e.Round, e.Pattern)
			changed = false
		}
	}
	return states, nil
}

func explainMerging(_ context.Context, r *scheduler.Result) (any, error) {
	g := r.Schedule.Graph
	run := mergeRun{PerCluster: r.Chunk}
	var names []string
	at := make([]int, len(g.Ops))
	var order []model.OpID
	for _, sg := range r.Schedule.Grouping.Groups {
		order = append(order, sg.Ops...)
	}
	for i, id := range order {
		op := g.Op(id)
		at[id] = i
		names = append(names, op.Name)
		m := mergedOp{Name: op.Name, Kind: string(op.Kind), Reads: []int{}}
		for _, t := range op.Inputs {
			if p := g.Tensor(t).Producer; p != model.NoOp {
				m.Reads = append(m.Reads, at[p])
			}
		}
		run.Ops = append(run.Ops, m)
	}
	events := r.Schedule.Grouping.Events
	for _, e := range events {
		run.Events = append(run.Events, mergeStep{e.Round, e.Pattern, e.Parts, e.Factors, e.Merged, e.Rule,
			e.Accepted, e.Reason})
	}
	var err error
	run.States, err = replay(names, events)
	return run, err
}

func (f merging) plan() (*harness.Plan, error) {
	p := &harness.Plan{Report: harness.Of(f.report)}
	for _, n := range f.perCluster {
		p.Cells = append(p.Cells, literature.Scheduled(f.hardware, f.model, n, "cross-layer").Cell(
			fmt.Sprintf("merging-%d", n), explainMerging))
	}
	return p, nil
}

func (f merging) report(runs []mergeRun) (*harness.Report, error) {
	d := harness.NewDocument(f.experiment())
	for _, r := range runs {
		t := harness.Table{Name: fmt.Sprintf("merges-%d", r.PerCluster),
			Title: fmt.Sprintf("Merges of %s with %s per cluster", f.model, harness.Plural(r.PerCluster, "image")),
			Columns: harness.Columns("Round", "<Pattern", "<Parts, by their last operators", "Best factors", "Merged",
				"<Made", "<Rule and the factors along the merged split"),
			Notes: []string{"A refusal that repeats in a later round stands once."}}
		for _, e := range r.Events {
			factors := harness.Each(e.Factors, func(x int64) string { return factorText(x) })
			made, why := "yes", e.Rule
			if !e.Accepted {
				made, why = "no", e.Reason
			}
			t.Add(e.Round, e.Pattern, strings.Join(e.Parts, " + "), strings.Join(factors, ", "), factorText(e.Merged),
				made, why)
		}
		d.Table(t)
		s := harness.Table{Name: fmt.Sprintf("groups-%d", r.PerCluster),
			Title:   fmt.Sprintf("Sub-graphs with %s per cluster", harness.Plural(r.PerCluster, "image")),
			Columns: harness.Columns("<After", "Number", "<Sub-graphs (factor)")}
		for _, st := range r.States {
			var parts []string
			for _, g := range st.Groups {
				name := r.Ops[g.Ops[0]].Name
				if n := len(g.Ops); n > 1 {
					name += " .. " + r.Ops[g.Ops[n-1]].Name
				}
				parts = append(parts, fmt.Sprintf("%s (%s)", name, factorText(g.Factor)))
			}
			if len(st.Groups) == len(r.Ops) {
				parts = []string{"each operator alone"}
			}
			s.Add(st.title(), len(st.Groups), strings.Join(parts, "; "))
		}
		d.Table(s)
		fig, err := r.figure()
		d.Figure(fmt.Sprintf("merging-%d", r.PerCluster),
			fmt.Sprintf("Merging with %s per cluster", harness.Plural(r.PerCluster, "image")), fig, err)
	}
	for _, r := range runs {
		who := fmt.Sprintf(", %s per cluster", harness.Plural(r.PerCluster, "image"))
		// Where all factors are 1 the patterns alone decide: the outcome is Algorithm 2 itself, no prediction.
		given := !slices.ContainsFunc(r.States[0].Groups, func(g mergePart) bool { return g.Factor > 1 })
		claim := func(quantity, paper, ours string, holds bool) {
			d.Claim(quantity+who, paper, ours, harness.Agreement(holds))
			if given {
				d.Given()
			}
			if !holds {
				d.Why("%s", r.refusals())
				d.Cause(causeExtents)
			}
		}
		last := len(r.States[len(r.States)-1].Groups)
		claim("Sub-graphs in the end", "1", harness.Count(int64(last)), last == 1)
		// Fig. 5a: labels 1 (three layers of the conv block), 2 (its shortcut), 3 (addition
		// and ReLU), 4 (three layers of the identity block), 5 (addition and ReLU).
		layers := 0
		for _, g := range r.States[min(1, len(r.States)-1)].Groups {
			if convolutions(r, g) == 3 {
				layers++
			}
		}
		claim("Three layers of each block merged by the first straight pass (Fig. 5a)", "2 of 2 blocks",
			fmt.Sprintf("%d of 2 blocks", layers), layers == 2)
		branches := 0
		for _, e := range r.Events {
			exit := e.Parts[len(e.Parts)-1]
			if e.Accepted && e.Pattern == "branch" && (strings.HasSuffix(exit, ".add") || strings.HasSuffix(exit, ".relu")) {
				branches++
			}
		}
		claim("Branch patterns at the blocks' exits (Fig. 5b)", "2", harness.Count(int64(branches)), branches == 2)
	}
	d.Note(
		"Fig. 5 draws an addition and the ReLU behind it as one node; here they are two operators, which rule (i) may keep apart. Batch normalisations are folded into convolutions.")
	d.Note("The paper gives no extents and no factors for Fig. 5. Where all factors are 1, the patterns alone decide.")
	return d.Report(harness.Data{Data: runs})
}

func convolutions(r mergeRun, g mergePart) int {
	n := 0
	for _, i := range g.Ops {
		if r.Ops[i].Kind == "Conv" {
			n++
		}
	}
	return n
}

func factorText(f int64) string {
	switch f {
	case schedule.Unsplittable:
		return "∞"
	case 0:
		return "–"
	}
	return harness.Count(f)
}

func (s mergeStat) title() string {
	if s.Round == 0 {
		return "nothing yet"
	}
	return fmt.Sprintf("%s merges of round %d", s.Pattern, s.Round)
}

// figure draws the states one below the other, each operator at the same place.
func (r mergeRun) figure() (*plots.Figure, error) {
	x, y := r.layout()
	letters := map[string]string{"Conv": "C", "Relu": "R", "Add": "+", "BatchNormalization": "B"}
	var list []plots.Diagram
	for k, st := range r.States {
		what := "Before merging"
		if st.Round > 0 {
			what = "After the " + st.title()
		}
		dia := plots.Diagram{Title: fmt.Sprintf("(%c) %s: %s", 'a'+k, what,
			harness.Plural(int64(len(st.Groups)), "sub-graph")), RowHeight: 21}
		for i, op := range r.Ops {
			letter := letters[op.Kind]
			letter = cmp.Or(letter, "?")
			dia.Nodes = append(dia.Nodes, plots.DiagramNode{Text: letter, X: float64(x[i]), Y: float64(y[i]),
				Colour: plots.NoColour})
			for _, from := range op.Reads {
				e := plots.DiagramEdge{From: from, To: i}
				if x[i]-x[from] > 1 && y[i] == y[from] { // a shortcut without operators
					e.Bend = 0.9
				}
				dia.Edges = append(dia.Edges, e)
			}
		}
		for i, g := range st.Groups {
			dia.Areas = append(dia.Areas, plots.DiagramArea{Nodes: g.Ops, Colour: i, Text: factorText(g.Factor)})
		}
		list = append(list, dia)
	}
	return plots.Diagrams(list, plots.DiagramKey{Symbol: "C", Text: "convolution"},
		plots.DiagramKey{Symbol: "R", Text: "ReLU"},
		plots.DiagramKey{Symbol: "+", Text: "addition"}, plots.DiagramKey{Symbol: "1", Text: "split factor"})
}

// layout gives each operator a column, as late as its readers allow, and the upper row;
// where that place is taken, one below its reader.
func (r mergeRun) layout() (x, y []int) {
	x, y = make([]int, len(r.Ops)), make([]int, len(r.Ops))
	depth := make([]int, len(r.Ops))
	for i, op := range r.Ops {
		for _, from := range op.Reads {
			depth[i] = max(depth[i], depth[from]+1)
		}
	}
	copy(x, depth)
	for i := range slices.Backward(r.Ops) {
		latest := -1
		for j, op := range r.Ops {
			if slices.Contains(op.Reads, i) && (latest < 0 || x[j]-1 < latest) {
				latest = x[j] - 1
			}
		}
		if latest >= 0 {
			x[i] = latest
		}
	}
	taken := map[[2]int]bool{}
	for i := range r.Ops {
		if taken[[2]int{x[i], 0}] {
			x[i]++ // below its reader
			y[i] = 1
		}
		for taken[[2]int{x[i], y[i]}] {
			y[i]++
		}
		taken[[2]int{x[i], y[i]}] = true
	}
	return x, y
}

// refusals says how many merges were refused for what.
func (r mergeRun) refusals() string {
	var rules []string
	number := map[string]int64{}
	for _, e := range r.Events {
		if e.Accepted {
			continue
		}
		if number[e.Rule] == 0 {
			rules = append(rules, e.Rule)
		}
		number[e.Rule]++
	}
	parts := harness.Each(rules, func(rule string) string {
		return fmt.Sprintf("%s (%s)", rule, harness.Plural(number[rule], "refusal"))
	})
	return strings.Join(parts, "; ") + "; the paper gives no factors for Fig. 5"
}

// Fig5 replays the merging of sub-graphs.
func Fig5() harness.Experiment { return fig5().experiment() }
