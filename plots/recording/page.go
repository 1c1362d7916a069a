package recording

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/plots/page"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/explain"
)

// Shown is a schedule on a page.
type Shown struct {
	Result  *scheduler.Result
	Options scheduler.Options // with which it was made
	File    string            // "": it is in none
}

// What a page holds of a large schedule; the commands have the rest.
const (
	mostClusters = 8
	mostGroups   = 60 // with reasons
	mostSpills   = 20
	mostNodes    = 700
)

// OtherError says that two schedules do not belong on one page.
type OtherError struct{ Name, Was, Expected string }

func (e *OtherError) Error() string {
	return fmt.Sprintf("%s is of %s, expected %s", e.Name, e.Was, e.Expected)
}

// Page makes the page of a schedule, or of two of one network, batch and accelerator beside
// each other, the better one last. The same schedules give the same bytes.
func Page(list []Shown) ([]byte, error) {
	of := func(r *scheduler.Result) string {
		return fmt.Sprintf("%s at batch %d on %s", r.Schedule.Graph.Name, r.Batch, r.Machine.Name)
	}
	first := list[0].Result
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = x.Result.Recipe.Name
		if was, want := of(x.Result), of(first); was != want {
			return nil, &OtherError{cmp.Or(x.File, names[i]), was, want}
		}
	}
	for i := range names {
		if same := slices.Index(names[:i], names[i]); same >= 0 {
			for _, k := range []int{same, i} {
				names[k] = cmp.Or(list[k].File, fmt.Sprintf("%s (%d)", names[k], k+1))
			}
		}
	}
	p := &page.Schedule{Title: fmt.Sprintf("%s on %s, batch %d: schedule %s", first.Source, first.Machine.Name,
		first.Batch, strings.Join(names, " beside "))}
	var runs []Recorded
	explained, overviews := make([]*explain.Explainer, len(list)), make([]explain.Overview, len(list))
	for i, x := range list {
		r := x.Result
		explained[i] = explain.New(r, x.Options)
		overviews[i] = explained[i].Overview()
		var clusters []int
		for k := range r.Plans {
			if k == overviews[i].Cluster || r.Clusters != scheduler.OverBatch && k < mostClusters {
				clusters = append(clusters, k)
			}
		}
		row := harness.RowOf(r, harness.Given, "/s")
		for _, k := range clusters {
			rec := Record(r, k, row, MostCommands)
			if len(rec.Variant.Queues) == 0 { // an idle cluster has no timeline
				continue
			}
			rec.Variant.Name, rec.Variant.Description = names[i], cmp.Or(r.By().Text(), r.By().Description)
			if len(clusters) > 1 {
				rec.Variant.Schedule, rec.Variant.Other = names[i], k != overviews[i].Cluster
				rec.Variant.Name = fmt.Sprintf("cluster %d", k)
				if len(list) > 1 {
					rec.Variant.Name = names[i] + ", " + rec.Variant.Name
				}
			}
			if near := rec.Variant.MergedTicks; near > 0 {
				p.Preface = append(p.Preface, fmt.Sprintf(
					"%s: more than %d commands or buffers, so gaps and some buffers of at most %s are not drawn.",
					rec.Variant.Name, MostCommands, duration(float64(near)*TickPs*1e-12)))
			}
			p.ByGroup = p.ByGroup || len(rec.Variant.Groups) > 1
			runs = append(runs, rec)
		}
		p.Facts = append(p.Facts, facts(names[i], r, row, len(list) > 1)...)
	}
	conf, err := Join(Configuration{Name: first.Source, Title: first.Source, Hardware: first.Machine.Name,
		Batch: first.Batch, Unit: "/s"}, runs)
	if err != nil {
		return nil, err
	}
	if p.Recording, err = New(conf).JSON(); err != nil {
		return nil, err
	}
	if len(list) == 2 {
		p.Sections = append(p.Sections, gains(names, list, explain.Compare(explained[0], explained[1])))
	}
	path := page.Section{ID: "path", Title: "Critical path",
		Text: "The chain of commands that determines the latency: each starts when the one before it ends."}
	groups := page.Section{ID: "groups", Title: "Groups, and why",
		Text: "Each group of operators is a kernel, split into instances. Click a line for the reasons."}
	spills := page.Section{ID: "spills", Title: "Spills, and why"}
	drawn := page.Section{ID: "graph", Title: "Graph",
		Text: "Operators in rows, coloured by group, every second row from right to left. A click finds one in the timeline."}
	for i, x := range list {
		title := ""
		if len(list) > 1 {
			title = names[i]
		}
		path.Parts = append(path.Parts, critical(title, &overviews[i])...)
		reasons, err := groupReasons(explained[i], x.Result, &overviews[i])
		if err != nil {
			return nil, err
		}
		reasons.Title = title
		groups.Parts = append(groups.Parts, *reasons)
		spilled, err := spillReasons(explained[i], x.Result)
		if err != nil {
			return nil, err
		}
		spilled.Title = title
		spills.Parts = append(spills.Parts, *spilled)
		drawn.Parts = append(drawn.Parts, page.Part{Title: title, Wide: true, Graph: graph(x.Result.Schedule)})
	}
	p.Sections = append(p.Sections, path, decisions(names, list), groups, spills, drawn)
	var b bytes.Buffer
	if err := page.WriteSchedule(&b, p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func facts(name string, r *scheduler.Result, row harness.Row, several bool) []page.Fact {
	of := ""
	if several {
		of = name + ": "
	}
	divided := "per cluster"
	if r.Clusters != scheduler.OverBatch {
		divided = "for all clusters, which divide by " + r.Clusters.Name()
	}
	value, unit, _ := strings.Cut(duration(row.LatencySeconds), " ")
	list := []page.Fact{
		{What: of + "latency of the batch", Value: value, Unit: unit, Words: "no less than " +
			duration(row.LowerBoundSeconds) + " for these commands"},
		{What: of + "throughput", Value: harness.Significant(row.ThroughputPerSecond), Unit: "/s",
			Words: fmt.Sprintf("batch of %d, in chunks of %d %s", r.Batch, r.Chunk, divided)},
	}
	if several {
		return list
	}
	moved, unit, _ := strings.Cut(bytesText(row.MovedBytes.DDR), " ")
	return append(list,
		page.Fact{What: "of peak MACs", Value: harness.Percent(row.MMEUtilization), Unit: "%",
			Words: "the batch is limited by " + r.LimitText()},
		page.Fact{What: "DDR traffic", Value: moved, Unit: unit, Words: plural(int(row.KernelsDynamic), "launched kernel")})
}

func duration(seconds float64) string {
	switch {
	case seconds >= 1:
		return harness.Significant(seconds) + " s"
	case seconds >= 1e-3:
		return harness.Significant(seconds*1e3) + " ms"
	case seconds >= 1e-6:
		return harness.Significant(seconds*1e6) + " µs"
	}
	return harness.Significant(seconds*1e9) + " ns"
}

func bytesText(n int64) string { return hardware.Bytes(n).Rounded() }

func percent(share float64) string { return harness.Percent(share) + " %" }

// shares are the largest ones, and the rest as one.
func shares(list []explain.Share, most int) []page.Share {
	var out []page.Share
	rest, seconds := page.Share{What: "others"}, 0.0
	for i, s := range list {
		if i < most {
			out = append(out, page.Share{What: s.What, Text: duration(s.Seconds) + ", " + percent(s.Share), Share: s.Share})
			continue
		}
		rest.Share += s.Share
		seconds += s.Seconds
	}
	if rest.Share > 0 {
		rest.Text = duration(seconds) + ", " + percent(rest.Share)
		out = append(out, rest)
	}
	return out
}

func critical(title string, o *explain.Overview) []page.Part {
	head := func(text string) string {
		if title == "" {
			return strings.ToUpper(text[:1]) + text[1:]
		}
		return title + ": " + text
	}
	var groups []explain.Share
	for _, g := range o.PathByGroup {
		groups = append(groups, g.Share)
	}
	waits := page.Table{Columns: []string{"Unit", "Busy", "Waited for, while idle"}}
	for _, w := range o.Waits {
		var causes []string
		for _, c := range w.Causes[:min(3, len(w.Causes))] {
			causes = append(causes, c.What+" "+percent(c.Share))
		}
		waits.Rows = append(waits.Rows, []string{w.Unit, percent(w.BusySeconds / o.TotalSeconds), strings.Join(causes, ", ")})
	}
	return []page.Part{
		{Title: head("by what its commands do"), Text: "Limited by " + o.Limit + ".", Shares: shares(o.PathByKind, 8)},
		{Title: head("by group"), Shares: shares(groups, 10)},
		{Title: head("what each unit waited for"), Wide: true, Table: &waits},
	}
}

// gains says where the second schedule gains over the first.
func gains(names []string, list []Shown, changes []explain.Change) page.Section {
	before, after := list[0].Result.LatencySeconds(), list[1].Result.LatencySeconds()
	s := page.Section{ID: "gains", Title: "Where the gain is",
		Text: fmt.Sprintf(
			"%s is %s times as fast as %s: %s and %s. The difference is divided by groups' time on both critical paths.",
			names[1], harness.Significant(before/after), names[0], duration(after), duration(before))}
	t := page.Table{Columns: []string{"Group", "From", "To", names[0], names[1], "Gain", "Of"}}
	const most = 40
	for i, c := range changes {
		if i == most {
			s.Text += fmt.Sprintf(" The %d groups with the largest gains are listed, of %d.", most, len(changes))
			break
		}
		var by []string
		for _, d := range c.By[:min(3, len(c.By))] {
			if d.BeforeSeconds != d.AfterSeconds {
				by = append(by, d.What+" "+signed(d.BeforeSeconds-d.AfterSeconds))
			}
		}
		t.Rows = append(t.Rows, []string{c.Group, c.First, c.Last, orDash(c.BeforeSeconds),
			orDash(c.AfterSeconds),
			signed(c.BeforeSeconds - c.AfterSeconds), strings.Join(by, ", ")})
	}
	s.Parts = []page.Part{{Wide: true, Table: &t}}
	return s
}

// orDash is a time, or that there is none.
func orDash(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	return duration(seconds)
}

func signed(seconds float64) string {
	if seconds < 0 {
		return "−" + duration(-seconds)
	}
	return "+" + duration(seconds)
}

// decisions is a row for each stage, with the strategy of each schedule and what it does.
func decisions(names []string, list []Shown) page.Section {
	t := page.Table{Columns: []string{"Stage", "Decides"}}
	for _, n := range names {
		if len(names) == 1 {
			n = "Strategy"
		}
		t.Columns = append(t.Columns, n)
	}
	for _, st := range scheduler.Stages() {
		if len(st.Strategies) < 2 {
			continue
		}
		row := []string{st.Name, st.Description}
		for _, x := range list {
			row = append(row, Strategy(st.Name, x.Result.By().Pick(st.Name)))
		}
		t.Rows = append(t.Rows, row)
	}
	return page.Section{ID: "decisions", Title: "Decisions", Text: "The strategies of the stages, in their order.",
		Parts: []page.Part{{Wide: true, Table: &t}}}
}

// Strategy is one of a stage with its description: "search: ...".
func Strategy(stage, name string) string {
	if st, err := scheduler.LookupStage(stage); err == nil {
		if s, err := st.Lookup(name); err == nil {
			return s.Name + ": " + s.Description
		}
	}
	return cmp.Or(name, "the file does not say")
}

// groupReasons says of the groups with the largest parts of the critical path why they are as they are.
func groupReasons(e *explain.Explainer, r *scheduler.Result, o *explain.Overview) (*page.Part, error) {
	onPath := map[string]float64{}
	for _, g := range o.PathByGroup {
		onPath[g.What] = g.Share.Share
	}
	all := r.Schedule.Grouping.Groups
	chosen := make([]int, len(all))
	for k := range chosen {
		chosen[k] = k
	}
	part := &page.Part{Wide: true}
	if len(all) > mostGroups {
		slices.SortStableFunc(chosen, func(a, b int) int { return cmp.Compare(onPath[all[b].Name], onPath[all[a].Name]) })
		chosen = chosen[:mostGroups]
		slices.Sort(chosen)
		part.Text = fmt.Sprintf("%d groups, here the %d with most time on the critical path (any: 'explain --group NAME').",
			len(all), mostGroups)
	}
	for _, k := range chosen {
		g, err := e.Group(all[k].Name)
		if err != nil {
			return nil, err
		}
		part.Folded = append(part.Folded, page.Folded{Group: k, Lines: reasons(g),
			Summary: fmt.Sprintf("%s: %s%s, %s, %s, %s of the critical path", g.Name, g.First, to(g.First, g.Last),
				plural(g.Operators, "operator"), split(g), percent(onPath[g.Name]))})
	}
	return part, nil
}

func to(first, last string) string {
	if first == last {
		return ""
	}
	return " to " + last
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return harness.Count(int64(n)) + " " + thing + "s"
}

func split(g *explain.Group) string {
	switch {
	case g.TooBig:
		return "too big for the L1"
	case g.Dim == "":
		return "not split"
	}
	return fmt.Sprintf("%s split in %d", g.Dim, g.Factor)
}

func reasons(g *explain.Group) []string {
	var lines []string
	switch {
	case g.TooBig:
		lines = append(lines, "No dimension makes an instance fit the L1; it streams through the LLB.")
	case g.Dim == "":
		lines = append(lines, "Not split: it fits the L1, or its strategy does not split.")
	}
	var sizes []string
	for _, f := range g.Footprints[max(0, len(g.Footprints)-3):] {
		fits := "does not fit"
		if f.Fits {
			fits = "fits"
		}
		sizes = append(sizes, fmt.Sprintf("%s split in %d (%s)", bytesText(f.Bytes), f.Factor, fits))
	}
	lines = append(lines,
		fmt.Sprintf("Factor: the L1s of a cluster hold %s of activations; the largest instance takes %s.",
			bytesText(g.L1Bytes), strings.Join(sizes, ", ")))
	if len(g.Merges)+len(g.Stops) == 0 {
		by, stage := g.GroupedBy, "group"
		if g.SplitBy == "search" {
			by, stage = g.SplitBy, "split"
		}
		lines = append(lines, "Grouped by "+Strategy(stage, by)+".")
	}
	merge := func(what string, list []explain.Merge, most int) {
		for _, m := range list[max(0, len(list)-most):] {
			lines = append(lines, fmt.Sprintf("%s in round %d (%s): %s; %s", what, m.Round, m.Pattern, strings.Join(m.Parts,
				" + "), m.Rule))
		}
	}
	merge("Merged", g.Merges, 3)
	merge("Not merged", g.Stops, 4)
	for i, x := range g.Instances {
		if i == 3 {
			lines = append(lines, plural(len(g.Instances)-i, "more instance")+".")
			break
		}
		lines = append(lines, fmt.Sprintf("%s runs as number %d, from %s for %s, output in the %s; its launch waited for %s.",
			x.Name, x.Position+1, duration(x.Start), duration(x.Took), strings.ToUpper(strings.Join(x.Levels, " and ")),
			x.WaitedFor))
	}
	return lines
}

// spillReasons says of the first spilled values why they had to leave.
func spillReasons(e *explain.Explainer, r *scheduler.Result) (*page.Part, error) {
	part := &page.Part{Wide: true}
	s := r.Schedule
	// The values of each tensor by where they went; the first of each tensor.
	spilled, values := map[string]*[schedule.DDR + 1]int{}, 0
	var first []int
	for i := range s.Values {
		v := &s.Values[i]
		if v.Instance < 0 || v.Wanted >= v.Level {
			continue
		}
		name := s.Graph.Tensor(v.Tensor).Name
		if spilled[name] == nil {
			spilled[name] = new([schedule.DDR + 1]int)
			first = append(first, i)
		}
		spilled[name][v.Level]++
		values++
	}
	for _, i := range first[:min(len(first), mostSpills)] {
		v := &s.Values[i]
		name := s.Graph.Tensor(v.Tensor).Name
		t, err := e.Tensor(name)
		if err != nil {
			return nil, err
		}
		lines := []string{t.Why}
		for _, p := range t.Places {
			if p.Spill != nil {
				lines = append(lines,
					fmt.Sprintf(
						"%s: spilled when %s ran: %s. Live values took %s, the running layer needs at least %s, the capacity is %s.",
						p.Instance, p.Spill.At, p.Spill.Why, bytesText(p.Spill.LiveBytes), bytesText(p.Spill.StageBytes),
						bytesText(p.Spill.CapacityBytes)))
				break
			}
		}
		var went []string
		for level, n := range spilled[name] {
			if n > 0 {
				went = append(went, fmt.Sprintf("%d to the %s", n, schedule.Level(level).String()))
			}
		}
		part.Folded = append(part.Folded, page.Folded{Group: s.Instances.Instances[v.Instance].Group,
			Summary: fmt.Sprintf("%s, %s: %s", name, bytesText(v.Bytes), strings.Join(went, ", ")), Lines: lines})
	}
	part.Text = "No spills."
	if n := len(spilled); n > 0 {
		part.Text = fmt.Sprintf("%s of %s spilled (%s in all: a value that leaves the L1 and then the LLB counts twice).",
			plural(values, "value"), plural(n, "tensor"), plural(len(s.Spills), "spill"))
		if n > mostSpills {
			part.Text += fmt.Sprintf(" The first %d tensors are listed ('explain --tensor NAME' shows any).", mostSpills)
		}
	}
	return part, nil
}

// graph is that of the operators, or of the groups if there are too many.
func graph(s *schedule.Schedule) *page.Graph {
	g := s.Graph
	groupOf := make([]int, len(g.Ops))
	for k, sg := range s.Grouping.Groups {
		for _, id := range sg.Ops {
			groupOf[id] = k
		}
	}
	out := &page.Graph{Title: "Graph of " + g.Name}
	node := make([]int, len(g.Ops)) // of each operator
	switch {
	case len(g.Ops) <= mostNodes:
		for id, op := range g.Ops {
			k := groupOf[id]
			node[id] = id
			out.Nodes = append(out.Nodes, page.Node{Name: op.Name, Operator: op.Name, Group: k,
				GroupName: s.Grouping.Groups[k].Name,
				Words:     fmt.Sprintf("%s (%s), group %s", op.Name, op.Kind, s.Grouping.Groups[k].Name)})
		}
	case len(s.Grouping.Groups) <= mostNodes:
		copy(node, groupOf)
		for k, sg := range s.Grouping.Groups {
			first, last := g.Op(sg.Ops[0]).Name, g.Op(sg.Ops[len(sg.Ops)-1]).Name
			out.Nodes = append(out.Nodes, page.Node{Name: sg.Name, Group: k, Words: fmt.Sprintf("%s: %s, %s%s", sg.Name,
				plural(len(sg.Ops), "operator"), first, to(first, last))})
		}
	default:
		out.Nodes = []page.Node{{Name: g.Name, Group: -1, Words: fmt.Sprintf("%d groups are too many to draw",
			len(s.Grouping.Groups))}}
		return out
	}
	seen := map[[2]int]bool{}
	for id, op := range g.Ops {
		for _, t := range op.Inputs {
			from := g.Tensor(t).Producer
			if from < 0 {
				continue
			}
			if e := [2]int{node[from], node[id]}; e[0] != e[1] && !seen[e] {
				seen[e] = true
				out.Edges = append(out.Edges, e)
			}
		}
	}
	return out
}
