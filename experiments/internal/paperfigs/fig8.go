package paperfigs

import (
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

// joining shows the operators that §3.5 puts between instances (Figs. 8 and 9): on the
// running example, and on a network that has all kinds.
type joining struct {
	hardware string
	cases    [2]struct {
		model      string
		perCluster int64
	}
	// groups is the number of the network's sub-graphs in the excerpt, which begins where its first copy is from.
	groups int
}

// fig8 has Conformer with 4 sentences, where all kinds are.
func fig8() joining {
	f := joining{hardware: "stcp920", groups: 4}
	f.cases[0].model, f.cases[0].perCluster = "toy-fig3", 8
	f.cases[1].model, f.cases[1].perCluster = "conformer", 4
	return f
}

func (f joining) experiment() harness.Experiment {
	return harness.Experiment{
		Name: "fig8", Also: []string{"fig9"},
		Description: "where concat, split, copy and redistribute operators are put between instances, and why",
		Paper:       "GraphTurbo (OSDI 2023), §3.4, §3.5 and Figs. 8, 9",
		Plan:        f.plan,
	}
}

// joinRun is a schedule's instances with what stands between them.
type joinRun struct {
	Model     string         `json:"model"`
	Instances []joinInstance `json:"instances"` // by ID
	Joins     []joinOp       `json:"joins"`     // in the order of the consumers
}

// levelNames are the chip's names of the paper's scopes.
var levelNames = map[schedule.Level]string{schedule.L1: "L1", schedule.LLB: "LLB", schedule.DDR: "DDR"}

type joinInstance struct {
	Name    string  `json:"name"`
	Group   int     `json:"group"`
	Index   int64   `json:"index"`
	First   string  `json:"first_operator"`
	Last    string  `json:"last_operator"`
	Output  []int64 `json:"output_shape"`
	Binding []int64 `json:"binding"`
	Scope   string  `json:"scope"`
	// Reads are the tensors of other instances.
	Reads []joinRead `json:"reads"`
}

type joinRead struct {
	From   int    `json:"from"`
	Tensor string `json:"tensor"`
}

type joinOp struct {
	Kind     string  `json:"kind"`
	Consumer int     `json:"consumer"`
	Tensor   string  `json:"tensor"`
	From     []int   `json:"from"`
	Bytes    int64   `json:"moved_bytes"`
	Binding  []int64 `json:"binding,omitempty"` // redistribute: the smaller factors
	// Have and Want are the bindings of a producer and of what the consumer asks of it.
	Have []int64 `json:"have"`
	Want []int64 `json:"want"`
	Why  string  `json:"why"`
}

func explainJoins(_ context.Context, r *scheduler.Result) (any, error) {
	s := r.Schedule
	g := s.Graph
	run := joinRun{Model: r.Source}
	inference := make([]*schedule.Inference, len(s.Grouping.Groups))
	for k, sg := range s.Grouping.Groups {
		inference[k] = schedule.NewInference(g, sg)
	}
	for i := range s.Instances.Instances {
		inst := &s.Instances.Instances[i]
		sg := s.Grouping.Groups[inst.Group]
		x := joinInstance{Name: instanceName(inst.Group, inst.Index), Group: inst.Group, Index: inst.Index,
			First: g.Op(sg.Ops[0]).Name, Last: g.Op(sg.Ops[len(sg.Ops)-1]).Name, Binding: s.Bindings[i],
			Scope: levelNames[s.Scopes[i]]}
		for _, iv := range inst.Regions[sg.Outputs[0]] {
			x.Output = append(x.Output, iv.Len())
		}
		x.Reads = []joinRead{}
		for _, d := range inst.Deps {
			x.Reads = append(x.Reads, joinRead{d.From, g.Tensor(d.Tensor).Name})
		}
		run.Instances = append(run.Instances, x)
	}
	want := func(consumer int, t model.TensorID, producer int) schedule.Binding {
		return inference[s.Instances.Instances[consumer].Group].Infer(s.Bindings[consumer], t,
			s.Instances.Instances[producer].Regions[t], s.Slices)
	}
	for _, j := range s.Joins {
		of := j.From[0] // of a redistribution, the last producer whose binding differs, from which the join has its own
		for _, p := range j.From {
			if j.Kind == schedule.Redistribute && s.Scopes[p] == schedule.L1 &&
				!s.Bindings[p].Equal(want(j.Consumer, j.Tensor, p)) {
				of = p
			}
		}
		x := joinOp{Kind: string(j.Kind), Consumer: j.Consumer, Tensor: g.Tensor(j.Tensor).Name, From: j.From, Bytes: j.Bytes,
			Binding: j.Binding, Have: s.Bindings[of], Want: want(j.Consumer, j.Tensor, of)}
		consumer, producer := run.Instances[j.Consumer].Name, run.Instances[of].Name
		switch j.Kind {
		case schedule.Concat:
			x.Why = fmt.Sprintf("%s reads what %d instances make", consumer, len(j.From))
		case schedule.SplitOp:
			x.Why = fmt.Sprintf("%s reads a part of what %s makes", consumer, producer)
		case schedule.Copy:
			x.Why = fmt.Sprintf("%s is in the %s: %s", producer, run.Instances[j.From[0]].Scope, demands(s, run, j, want))
		case schedule.Redistribute:
			x.Why = fmt.Sprintf("%s is bound %s, %s wants %s", producer, bindingText(x.Have), consumer, bindingText(x.Want))
		}
		run.Joins = append(run.Joins, x)
	}
	return run, nil
}

// demands lists which bindings the readers of a producer want, for which Algorithm 4 declared its output in the LLB.
func demands(s *schedule.Schedule, run joinRun, j schedule.Join,
	want func(int, model.TensorID, int) schedule.Binding) string {
	var texts []string
	for _, c := range s.Instances.Consumers[j.From[0]] {
		for _, d := range s.Instances.Instances[c].Deps {
			if d.From == j.From[0] && d.Tensor == j.Tensor {
				texts = append(texts, fmt.Sprintf("%s wants %s", run.Instances[c].Name, bindingText(want(c, d.Tensor, d.From))))
			}
		}
	}
	return strings.Join(texts, ", ")
}

func bindingText(b []int64) string {
	parts := harness.Each(b, harness.Count)
	if len(parts) == 0 {
		return "none"
	}
	return "(" + strings.Join(parts, ",") + ")"
}

func (f joining) plan() (*harness.Plan, error) {
	p := &harness.Plan{Report: harness.Of(f.report)}
	for _, c := range f.cases {
		p.Cells = append(p.Cells, literature.Scheduled(f.hardware, c.model, c.perCluster, "cross-layer").Cell(
			"joins-"+c.model, explainJoins))
	}
	return p, nil
}

// joinKinds are all kinds, in the order of the paper.
var joinKinds = []schedule.JoinKind{schedule.Concat, schedule.SplitOp, schedule.Copy, schedule.Redistribute}

// listedJoin is a join with the names that it goes by.
type listedJoin struct {
	joinOp
	Model    string `json:"model"`
	Consumer string `json:"consumer"`
	From     string `json:"from"`
}

func (f joining) report(runs []joinRun) (*harness.Report, error) {
	d := harness.NewDocument(f.experiment())
	totals := harness.Table{Name: "joins", Title: "Operators between instances",
		Columns: harness.Columns("<Network", "Batch per\ncluster", "Instances", "<Kind", "Number", "Moved (MiB)")}
	number := func(r joinRun, kind schedule.JoinKind) (n, bytes int64) {
		for _, j := range r.Joins {
			if j.Kind == string(kind) {
				n++
				bytes += j.Bytes
			}
		}
		return n, bytes
	}
	for i, r := range runs {
		for _, k := range joinKinds {
			n, bytes := number(r, k)
			totals.Add(r.Model, f.cases[i].perCluster, len(r.Instances), string(k), n, mebibytes(bytes))
		}
	}
	d.Table(totals)
	var all []listedJoin
	from, to := f.shown(runs[1])
	for i, r := range runs {
		what := "all"
		if i == 1 {
			what = fmt.Sprintf("of the %d sub-graphs around its first copy", f.groups)
		}
		t := harness.Table{Name: "joins-" + r.Model, Title: fmt.Sprintf("Joins of %s, %s", r.Model, what),
			Columns: harness.Columns("<Consumer", "<Tensor", "<Operator", "<From", "Moved (MiB)", "<Why")}
		for _, j := range r.Joins {
			makers := harness.Each(j.From, func(p int) string { return r.Instances[p].Name })
			consumer := r.Instances[j.Consumer]
			all = append(all, listedJoin{j, r.Model, consumer.Name, strings.Join(makers, " ")})
			if i == 0 || consumer.Group > from && consumer.Group < to {
				t.Add(consumer.Name, j.Tensor, j.Kind, strings.Join(makers, " "), mebibytes(j.Bytes), j.Why)
			}
		}
		d.Table(t)
	}
	d.File("joins.csv", harness.CSV(all, harness.Fields(
		"model consumer tensor kind from moved_bytes have want binding why",
		harness.Field[listedJoin]{Name: "have", Of: func(j listedJoin) any { return bindingText(j.Have) }},
		harness.Field[listedJoin]{Name: "want", Of: func(j listedJoin) any { return bindingText(j.Want) }},
		harness.Field[listedJoin]{Name: "binding", Of: func(j listedJoin) any { return bindingText(j.Binding) }})))

	example, network := runs[0], runs[1]
	n, moved := number(example, schedule.Concat)
	d.Claim("Concats in the four-stage example (Fig. 8)", "7, one for each instance behind stage 1", harness.Count(n),
		harness.Agreement(n == 7))
	d.Given()
	d.Claim("What a concat moves", "nothing: its operands stay where they are", mebibytes(moved)+" MiB",
		harness.Agreement(moved == 0))
	d.Given()
	copies, right := 0, 0
	for _, j := range network.Joins {
		if j.Kind == string(schedule.Copy) {
			copies++
			if !slices.ContainsFunc(j.From, func(p int) bool { return network.Instances[p].Scope == levelNames[schedule.L1] }) {
				right++
			}
		}
	}
	d.Claim("A copy stands where the producer's scope is not the L1 (Fig. 9, left), "+network.Model, "always",
		fmt.Sprintf("%d of %d", right, copies), harness.Agreement(copies > 0 && copies == right))
	d.Given()
	redistributions, smaller := 0, 0
	for _, r := range runs {
		for _, j := range r.Joins {
			if j.Kind != string(schedule.Redistribute) {
				continue
			}
			redistributions++
			ok := len(j.Binding) == len(j.Have) && len(j.Binding) == len(j.Want)
			for k := range j.Binding {
				ok = ok && j.Binding[k] == min(j.Have[k], j.Want[k])
			}
			if ok {
				smaller++
			}
		}
	}
	d.Claim("A redistribution takes the smaller factor of each dimension (Fig. 9, right)", "always",
		fmt.Sprintf("%d of %d", smaller, redistributions),
		harness.Agreement(redistributions > 0 && smaller == redistributions))
	d.Given()
	d.Note("§3.5 defines joins and their places. These lines check the definition and predict nothing.")
	d.Note("Bindings are cores per dimension of the tensor, in the file's order: (8,1,1) is 8 cores along the batch.")
	d.Note(
		"A split is the inverse of a concat (§3.6, for up-sampling). Here it also serves a consumer with a larger factor than its producer's.")
	again, _ := number(example, schedule.Redistribute)
	d.Note("The example has %s for %s. Fig. 8 does not show bindings.", harness.Plural(again, "redistribution"),
		harness.Plural(n, "concat"))
	f.figures(d, runs)
	return d.Report(harness.Data{Data: runs})
}

// joinChain is the chain of joins in front of a consumer for one tensor.
type joinChain struct {
	consumer int
	from     []int
	ops      []joinOp // from the producers to the consumer
}

// shown is the range of sub-graphs in the excerpt.
func (f joining) shown(r joinRun) (from, to int) {
	i := slices.IndexFunc(r.Joins, func(j joinOp) bool { return j.Kind == string(schedule.Copy) })
	if i >= 0 {
		from = r.Instances[r.Joins[i].From[0]].Group
	}
	return from, from + f.groups
}

// chains lists the chains between sub-graphs of a range.
func (r joinRun) chains(from, to int) []joinChain {
	var list []joinChain
	for _, j := range r.Joins {
		if n := r.Instances[j.Consumer].Group; n >= to || r.Instances[j.From[0]].Group < from {
			continue
		}
		i := slices.IndexFunc(list, func(c joinChain) bool { return c.consumer == j.Consumer && c.ops[0].Tensor == j.Tensor })
		if i < 0 {
			i = len(list)
			list = append(list, joinChain{consumer: j.Consumer, from: j.From})
		}
		// Data are moved before they are put together.
		if j.Kind == string(schedule.Copy) || j.Kind == string(schedule.Redistribute) {
			list[i].ops = append([]joinOp{j}, list[i].ops...)
		} else {
			list[i].ops = append(list[i].ops, j)
		}
	}
	return list
}

func (f joining) figures(d *harness.Document, runs []joinRun) {
	// The example, as Fig. 8 has it: a triangle.
	example, most := runs[0], 0
	for _, x := range example.Instances {
		most = max(most, int(x.Index)+1)
	}
	factor := map[int]int{}
	groups := 0
	for _, x := range example.Instances {
		factor[x.Group]++
		groups = max(groups, x.Group+1)
	}
	dia := plots.Diagram{RowHeight: 24}
	keys := []plots.DiagramKey{}
	for k := range groups {
		keys = append(keys, plots.DiagramKey{Text: fmt.Sprintf("stage %d", k+1), Colour: k})
	}
	keys = append(keys, plots.DiagramKey{Symbol: "C", Text: "concat"}, plots.DiagramKey{Symbol: "R", Text: "redistribute"})
	const perGroup = 3 // rows: instance, redistribute, concat
	for _, x := range example.Instances {
		width := float64(most) / float64(factor[x.Group])
		dia.Nodes = append(dia.Nodes, plots.DiagramNode{Text: x.Name, X: (float64(x.Index)+0.5)*width - 0.5,
			Y: float64(x.Group * perGroup), Colour: x.Group})
	}
	letters := map[string]string{string(schedule.Concat): "C", string(schedule.SplitOp): "S", string(schedule.Copy): "G",
		string(schedule.Redistribute): "R"}
	for _, c := range example.chains(0, groups) {
		behind, to := c.from, dia.Nodes[c.consumer]
		for k, op := range c.ops {
			at := len(dia.Nodes)
			dia.Nodes = append(dia.Nodes, plots.DiagramNode{Text: letters[op.Kind], X: to.X, Y: to.Y - float64(len(c.ops)-k),
				Colour: joinGrey, Shape: plots.Box})
			for _, p := range behind {
				dia.Edges = append(dia.Edges, plots.DiagramEdge{From: p, To: at})
			}
			behind = []int{at}
		}
		dia.Edges = append(dia.Edges, plots.DiagramEdge{From: behind[0], To: c.consumer})
	}
	fig, err := plots.Diagrams([]plots.Diagram{dia}, keys...)
	d.Figure("example", "Joins of the four-stage example", fig, err)
	fig, err = f.excerpt(runs[1])
	d.Figure("excerpt", fmt.Sprintf("Joins between sub-graphs of %s, around its first copy", runs[1].Model), fig, err)
}

// joinGrey is the place of grey in the palette.
const joinGrey = 7

// excerpt draws sub-graphs of a network as Fig. 9 does, with shapes, scopes and bindings.
func (f joining) excerpt(r joinRun) (*plots.Figure, error) {
	dia := plots.Diagram{RowHeight: 32}
	at := map[int]int{} // instance to node
	add := func(n plots.DiagramNode) int {
		dia.Nodes = append(dia.Nodes, n)
		return len(dia.Nodes) - 1
	}
	first, last := f.shown(r)
	inside := func(x joinInstance) bool { return x.Group >= first && x.Group < last }
	perGroup, most := map[int]int{}, 0
	for _, x := range r.Instances {
		if inside(x) {
			perGroup[x.Group]++
			most = max(most, perGroup[x.Group])
		}
	}
	const rows = 3
	columns := float64(most) + 1 // one for what passes by
	for id, x := range r.Instances {
		if !inside(x) {
			continue
		}
		shape := harness.Each(x.Output, harness.Count)
		column := (float64(x.Index)+0.5)*float64(most)/float64(perGroup[x.Group]) - 0.5
		at[id] = add(plots.DiagramNode{Text: fmt.Sprintf("%s\n%s\n%s, %s", x.Name, strings.Join(shape, "×"), x.Scope,
			bindingText(x.Binding)),
			X: column, Y: float64((x.Group - first) * rows), Colour: plots.NoColour, Shape: plots.Ellipse})
	}
	for _, c := range r.chains(first, last) {
		to := dia.Nodes[at[c.consumer]]
		var behind []int
		far := false
		for _, p := range c.from {
			behind = append(behind, at[p])
			far = far || r.Instances[c.consumer].Group-r.Instances[p].Group > 1
		}
		x := to.X
		if far {
			x = columns - 1
		}
		for k, op := range c.ops {
			text := op.Kind
			if op.Kind == string(schedule.Redistribute) {
				text += " " + bindingText(op.Binding)
			}
			if op.Bytes > 0 {
				text += "\n" + mebibytes(op.Bytes) + " MiB"
			}
			y := to.Y - float64(rows-1) + float64(k)
			if far { // beside the producers, on the way past what lies between
				y = float64((r.Instances[c.from[0]].Group-first)*rows+1) + float64(k)
			}
			colour := joinGrey
			if op.Bytes > 0 {
				colour = 1 // it moves something
			}
			node := add(plots.DiagramNode{Text: text, X: x, Y: y, Colour: colour, Shape: plots.Box})
			for _, p := range behind {
				dia.Edges = append(dia.Edges, plots.DiagramEdge{From: p, To: node})
			}
			behind = []int{node}
		}
		for _, p := range behind {
			dia.Edges = append(dia.Edges, plots.DiagramEdge{From: p, To: at[c.consumer]})
		}
	}
	for id, x := range r.Instances {
		for _, rd := range x.Reads {
			joined := slices.ContainsFunc(r.Joins, func(j joinOp) bool { return j.Consumer == id && j.Tensor == rd.Tensor })
			if inside(x) && inside(r.Instances[rd.From]) && !joined {
				dia.Edges = append(dia.Edges, plots.DiagramEdge{From: at[rd.From], To: at[id]})
			}
		}
	}
	return plots.Diagrams([]plots.Diagram{dia}, plots.DiagramKey{Symbol: "g0.1", Text: "instance; output; scope, binding"},
		plots.DiagramKey{Text: "moves data", Colour: 1}, plots.DiagramKey{Text: "renumbers addresses", Colour: joinGrey})
}

// Fig8 joins what consumers read from several places.
func Fig8() harness.Experiment { return fig8().experiment() }
