package scheduler

import (
	"context"
	"slices"
	"sync"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
)

// rewrite says which graph of a network is scheduled. Later rows number its operators, so a search does not change it.
var rewrite = Setting[string]{Name: "rewrite", Description: "which graph of the network is scheduled",
	writes: "`Graph`, before all else",
	Choices: []Choice[string]{
		{"as-is", "the network's own", asIs},
		{"norms", "parts, if the network has group normalisations that parts splits; else as-is", "norms"},
		{"attention", "each attention as one operator", "attention"},
		{"parts", "attention; running sums in parts, group normalisations in passes where more cores then work", parts},
		{"sliced", "parts; feed-forwards cut into slices of hidden columns that fit neither the L1s nor the LLB",
			"sliced"},
	},
	Apply: func(d *Draft, form string) error {
		g, err := d.Remembered().form(graphForm{d.Graph, d.Spec, d.Options.Lines, form})
		if err == nil && g != d.Graph {
			if d.Graph = g; d.Memo != nil {
				d.Memo = d.Remembered().memo(g, d.Options.Uneven)
			}
		}
		return err
	}}

const asIs, parts = "as-is", "parts"

func rewriteStage() Stage {
	st := rewrite.Stage()
	st.settings, st.hopeless = nil, idle
	st.keep = func(_, _ *schedule.Schedule) {} // a draft begins with it
	for i := range st.Strategies {
		if s := &st.Strategies[i]; s.Name == "sliced" { // parts makes the same where no feed-forward is cut
			s.Idle = func(g *model.Graph, spec *hardware.Spec) bool { return SlicesOf(g, spec) == nil }
		}
	}
	return st
}

// Rewrite replaces the draft's graph by one of its forms, a strategy of row rewrite.
func (d *Draft) Rewrite(form string) error {
	return plain[string]{&rewrite, form}.Apply(context.Background(), d)
}

// A graphForm names what a strategy of row rewrite makes of a graph; lines is [Options].Lines.
type graphForm struct {
	of    *model.Graph
	spec  *hardware.Spec
	lines bool
	form  string
}

// form makes a graph once.
func (m *Memory) form(x graphForm) (*model.Graph, error) {
	made, _ := m.forms.LoadOrStore(x, sync.OnceValues(func() (*model.Graph, error) { return m.rewritten(x) }))
	return made.(func() (*model.Graph, error))()
}

// rewritten makes a graph. One with parts stays, since they can't be found again, and so do scans and normalisations
// where layers are to be lines.
func (m *Memory) rewritten(x graphForm) (made *model.Graph, err error) {
	as := func(form string) (*model.Graph, error) {
		x.form = form
		return m.form(x)
	}
	g, sliced := x.of, x.form == "sliced"
	switch {
	case x.form == asIs || g.Together != nil:
		return g, nil
	case x.form == "norms":
		splits := splitsNorm(g, x.spec)
		if x.lines || !slices.ContainsFunc(g.Ops, func(op *model.Op) bool { return op.Kind == "GroupNorm" && splits(op) }) {
			return g, nil
		}
		return as(parts)
	case x.form == "attention":
		var n int
		if made, n, err = simplify.FuseAttention(g); n == 0 {
			return g, err
		}
	default:
		if made, err = as("attention"); err != nil {
			return nil, err
		}
		if sliced {
			n := SlicesOf(made, x.spec)
			if n == nil {
				return as(parts)
			}
			made, err = simplify.Slice(made, n)
		}
		if err != nil || x.lines {
			break
		}
		whole := made
		if made, err = simplify.TakeApart(made, splitsNorm(made, x.spec), scanParts(made, x.spec)); err == nil &&
			len(made.Together) == 0 {
			made = whole
		}
	}
	if err == nil && made != g {
		made.Remember()
	}
	return made, err
}

// SlicesOf is the number of slices into which each feed-forward is cut; nil: none is. A feed-forward is cut where that
// saves loads, so that a slice of the rows that run at a time fits the L1s.
func SlicesOf(g *model.Graph, spec *hardware.Spec) (parts []int64) {
	cut := false
	for _, f := range simplify.FeedForwards(g) {
		n := int64(1)
		if f.Pays(g, schedule.LargestRoom(spec)) {
			n = f.Parts(g, schedule.AllDataBytes(spec), matrixRows(spec))
		}
		parts, cut = append(parts, n), cut || n > 1
	}
	if !cut {
		return nil
	}
	return parts
}

// matrixRows is the number of elements along the reduction that a matrix unit takes at a time.
func matrixRows(spec *hardware.Spec) int64 {
	n := int64(1)
	for _, ct := range spec.Together() {
		for _, u := range ct.Units {
			n = max(n, int64(u.Rows))
		}
	}
	return n
}

// splitsNorm says of which group normalisations there are fewer parts than cores, or larger ones than fit the L1.
func splitsNorm(g *model.Graph, spec *hardware.Spec) func(*model.Op) bool {
	return func(op *model.Op) bool {
		x := g.Tensor(op.Inputs[0])
		n, bytes := x.Shape[0], x.Bytes()/x.Shape[0]
		if op.Attr.Group == x.Shape[1] {
			n *= op.Attr.Group
		}
		return 2*n <= schedule.CoresWithL1(spec) || 2*bytes/op.Attr.Group > schedule.DataBytes(spec)
	}
}

// scanParts says into how many parts a scan is cut, so that what each needs and makes fits the L1s.
func scanParts(g *model.Graph, spec *hardware.Spec) func(*simplify.Scan) int64 {
	return func(s *simplify.Scan) int64 {
		out := g.Tensor(s.Outputs[0])
		box := model.Whole(out.Shape)
		cores, forbidden := schedule.One(len(box)), schedule.Forbidden(g, s.Ops, out.ID)
		var dims []int
		for _, d := range out.Layout {
			if !forbidden[d] {
				dims = append(dims, d)
			}
		}
		schedule.SpreadOver(cores, box, dims, schedule.CoresWithL1(spec))
		reg := schedule.Regions{out.ID: schedule.Slice(box, cores, out.Layout, 0)}
		passes := out.DType.Bytes(reg[out.ID].Elements())
		schedule.BackPropagate(g, s.Ops, reg)
		for _, t := range s.Inputs {
			passes += g.Tensor(t).DType.Bytes(reg[t].Elements())
		}
		room := schedule.DataBytes(spec)
		for _, id := range s.Ops {
			if op := g.Op(id); op.Kind == "CumSum" { // the sums of the part before, and of this one
				room -= 2 * schedule.Align(g.Tensor(op.Outputs[0]).DType.Bytes(reg[op.Outputs[0]].Elements()/s.Length))
			}
		}
		return (passes + max(1, room/2) - 1) / max(1, room/2)
	}
}
