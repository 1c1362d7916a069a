package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/plots/recording"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/explain"
)

// explainRows is the number of rows of a table that are printed; the others are in --json.
const explainRows = 8

// explainJSON has one of the five answers.
type explainJSON struct {
	Schedule string `json:"schedule"` // file or network
	Hardware string `json:"hardware"`
	Variant  string `json:"variant"`
	// Decisions are values of settings that are not the variant's.
	Decisions []schedulefile.Decision `json:"decisions,omitempty"`

	Note     string            `json:"note,omitempty"`
	Overview *explain.Overview `json:"overview,omitempty"`
	Tensor   *explain.Tensor   `json:"tensor,omitempty"`
	Operator *explain.Op       `json:"operator,omitempty"`
	Group    *explain.Group    `json:"group,omitempty"`
	Against  *againstJSON      `json:"against,omitempty"`
}

// againstJSON says where a schedule gains over another one.
type againstJSON struct {
	Schedule      string           `json:"schedule"`
	Variant       string           `json:"variant"`
	BeforeSeconds float64          `json:"before_s"`
	AfterSeconds  float64          `json:"after_s"`
	Groups        []explain.Change `json:"groups"`
}

func newExplain() *cobra.Command {
	cmd := command("explain")
	cmd.Args = oneArg("SCHEDULE.json or MODEL", scheduleHint+", or a name that 'dsasched models' lists")
	cmd.ValidArgsFunction = completeModel
	f := cmd.Flags()
	tensor := f.String("tensor", "", "explain the tensor of this `name`")
	op := f.String("op", "", "explain the operator of this `name`")
	group := f.String("group", "", "explain the group of this `name`, such as g1")
	against := f.String("against", "", "compare with the schedule of this `file`")
	quiet, recipe := addQuiet(cmd), addRecipe(cmd, recipes.Default, "group")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		about := ""
		for _, name := range []string{"tensor", "op", "group", "against"} {
			switch {
			case !f.Changed(name):
			case f.Lookup(name).Value.String() == "":
				return usagef("--%s is empty, expected a name", name)
			case about != "":
				return usagef("--%s and --%s exclude each other", about, name)
			default:
				about = name
			}
		}
		origin, r := try2(explained(cmd, args[0], recipe, *quiet))
		e := explain.New(r, scheduler.Options{InPlace: origin.InPlace})
		a := explainJSON{Schedule: args[0], Hardware: r.Machine.Name, Variant: r.Recipe.Name, Decisions: r.Settings()}
		var err error
		switch {
		case *tensor != "":
			a.Tensor, err = e.Tensor(*tensor)
		case *op != "":
			a.Operator, err = e.Op(*op)
			if lost := new(explain.UnknownError); errors.As(err, &lost) {
				if given, bad := network.Raw(origin.Model, 0, recipe.network.options()); bad == nil {
					a.Operator, err = e.Within(given, *op)
				}
			}
		case *group != "":
			a.Group, err = e.Group(*group)
		case *against != "":
			a.Against, err = compared(cmd, e, r, *against)
		default:
			o := e.Overview()
			a.Overview, a.Note = &o, r.Shortage()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return emit(cmd, a, a.write)
	}
	return cmd
}

// compared says where a schedule gains over that of a file.
func compared(cmd *cobra.Command, e *explain.Explainer, r *scheduler.Result, name string) (*againstJSON, error) {
	origin, other, err := restoreAloud(cmd, name, givenHardware(cmd))
	if err != nil {
		return nil, err
	}
	if was, is := other.Schedule.Graph.Name, r.Schedule.Graph.Name; was != is || other.Batch != r.Batch {
		return nil, fmt.Errorf("%s is of %s at batch %d, expected %s at batch %d", name, was, other.Batch, is, r.Batch)
	}
	return &againstJSON{name, other.Recipe.Name, other.LatencySeconds(), r.LatencySeconds(),
		explain.Compare(explain.New(other, scheduler.Options{InPlace: origin.InPlace}), e)}, nil
}

// explained gives the schedule of a file, or makes that of a network.
func explained(cmd *cobra.Command, name string, recipe *recipeFlags, quiet bool) (schedulefile.Origin,
	*scheduler.Result, error) {
	if !strings.HasSuffix(strings.ToLower(name), ".json") {
		show := newStatus(cmd, quiet)
		defer show.end()
		origin, r := recipe.run(cmd, name, show)
		return origin, r, nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "json", "quiet", "tensor", "op", "group", "against", "hardware":
		default:
			err = cmp.Or(err, usagef("--%s goes with a network: %s is a schedule, which says it itself", f.Name, name))
		}
	})
	if err != nil {
		return schedulefile.Origin{}, nil, err
	}
	return restoreAloud(cmd, name, givenHardware(cmd))
}

func (a explainJSON) write(b *bytes.Buffer) {
	switch {
	case a.Overview != nil:
		a.writeOverview(b)
	case a.Against != nil:
		a.writeAgainst(b)
	case a.Group != nil:
		a.writeGroup(b)
	case a.Operator != nil:
		a.writeOperator(b)
	default:
		a.writeTensor(b)
	}
}

// sharesOf writes the largest shares, and the rest as one.
func sharesOf(list []explain.Share, most int) []string {
	items, rest := []string(nil), 0.0
	for i, s := range list {
		if i < most && s.Share >= 0.0005 { // would not round to zero
			items = append(items, fmt.Sprintf("%s %s", shorten(s.What, 34), percent(s.Share)))
		} else {
			rest += s.Share
		}
	}
	if rest >= 0.0005 {
		items = append(items, "others "+percent(rest))
	}
	if len(items) == 0 {
		return []string{"nothing"}
	}
	return items
}

func (a explainJSON) writeOverview(b *bytes.Buffer) {
	o := a.Overview
	row(b, "schedule", "%s on %s, variant %s", printable(a.Schedule), a.Hardware, a.Variant)
	for _, d := range a.Decisions {
		row(b, "decided", "%s %s", printable(d.Stage), printable(d.Value))
	}
	row(b, "time", "%s for the batch, of cluster %d, which ends last", duration(o.TotalSeconds), o.Cluster)
	row(b, "limited by", "%s", o.Limit)
	if a.Note != "" {
		row(b, "note", "%s", a.Note)
	}
	for _, s := range o.Bounds {
		row(b, "bound", "%s: %s (%s)", s.What, duration(s.Seconds), percent(s.Share))
	}
	fmt.Fprintf(b, "\nCritical path: each command starts when the one before it ends\n")
	rowOf(b, "by command", sharesOf(o.PathByKind, 8))
	groups := harness.Each(o.PathByGroup, func(g explain.GroupShare) explain.Share { return g.Share })
	rowOf(b, "by group", sharesOf(groups, 8))
	rowOf(b, "moves over", sharesOf(o.PathByResource, 6))
	row(b, "of moves", "latency %s, shared with other moves %s", percent(o.LatencySeconds/o.TotalSeconds),
		percent(o.SharedSeconds/o.TotalSeconds))
	list(b, "What each unit waited for while it was idle, in the cluster where it is busiest", "<unit|busy|<waited for",
		o.Waits, func(_ int, w explain.UnitWaits) []any {
			return []any{w.Unit, percent(w.BusySeconds / o.TotalSeconds), strings.Join(sharesOf(w.Causes, 3), ", ")}
		})
	if len(groups) > 0 {
		fmt.Fprintf(b, "\n--group %s gives the reasons of its border, split and spills.\n"+
			"--op NAME and --tensor NAME explain one operator or tensor.\n",
			printable(groups[0].What))
	}
}

func (a explainJSON) writeAgainst(b *bytes.Buffer) {
	x := a.Against
	row(b, "schedule", "%s on %s, variant %s: %s", printable(a.Schedule), a.Hardware, a.Variant, duration(x.AfterSeconds))
	row(b, "against", "%s, variant %s: %s", printable(x.Schedule), x.Variant, duration(x.BeforeSeconds))
	gain := func(before, after float64) string { return fmt.Sprintf("%+.2f us", 1e6*(before-after)) }
	total := explain.Change{Group: "total", BeforeSeconds: x.BeforeSeconds, AfterSeconds: x.AfterSeconds}
	list(b, "Groups on the critical paths, and what their gain is of", "<group|<from|before|after|gain|<of",
		append(x.Groups[:len(x.Groups):len(x.Groups)], total), func(_ int, g explain.Change) []any {
			var by []string
			for _, d := range g.By[:min(3, len(g.By))] {
				if d.BeforeSeconds != d.AfterSeconds {
					by = append(by, d.What+" "+gain(d.BeforeSeconds, d.AfterSeconds))
				}
			}
			return []any{printable(g.Group), printable(shorten(g.First, 30)),
				duration(g.BeforeSeconds), duration(g.AfterSeconds), gain(g.BeforeSeconds, g.AfterSeconds),
				strings.Join(by, ", ")}
		})
}

// mergeLines writes the last merges, since these decide.
func mergeLines(b *bytes.Buffer, list []explain.Merge, most int) {
	if skip := len(list) - most; skip > 0 {
		fmt.Fprintf(b, "  (%d earlier ones are in --json)\n", skip)
		list = list[skip:]
	}
	for _, m := range list {
		parts := harness.Each(m.Parts, func(p string) string { return shorten(p, 26) })
		fmt.Fprintf(b, "  round %d, %s: %s\n    %s\n", m.Round, m.Pattern, strings.Join(parts, " + "), m.Rule)
	}
}

func (a explainJSON) writeGroup(b *bytes.Buffer) {
	g := a.Group
	row(b, "group", "%s of %s: %s, %s", g.Name, printable(a.Schedule), plural(g.Operators, "operator"),
		plural(g.LayerCount, "layer"))
	row(b, "from, to", "%s, %s", printable(g.First), printable(g.Last))
	switch {
	case g.TooBig:
		row(b, "split", "no: no dimension makes an instance fit the L1; it streams through the LLB")
	case g.Dim == "" && len(g.Footprints) > 0 && !g.Footprints[0].Fits:
		row(b, "split", "no, by strategy %s: what has no room in the L1 goes through the LLB", cmp.Or(g.SplitBy, "none"))
	case g.Dim == "":
		row(b, "split", "no: it fits the L1 whole")
	default:
		row(b, "split", "dimension %s in %d", g.Dim, g.Factor)
	}
	list(b, fmt.Sprintf("Why this factor: the L1s of a cluster hold %s of activations", size(g.L1Bytes)),
		"factor|largest instance|<", g.Footprints, func(_ int, f explain.Footprint) []any {
			fits := "does not fit"
			if f.Fits && f.Factor < g.Factor {
				fits = "fits, but the factor does not divide an extent, or computes too much twice"
			} else if f.Fits {
				fits = "fits"
			}
			return []any{f.Factor, size(f.Bytes), fits}
		})
	if len(g.Choices) > 0 {
		var items []string
		for _, c := range g.Choices {
			c.Dim = cmp.Or(c.Dim, "none")
			items = append(items, fmt.Sprintf("%s in %d (splits %s)", c.Dim, c.Factor, plural(c.Operators, "operator")))
		}
		if g.SplitBy != "" && g.SplitBy != "alg1" {
			rowWrapped(b, "split by", recording.Strategy("split", g.SplitBy)+"; Algorithm 1 would take the first of these:")
		}
		rowOf(b, "Algorithm 1", items)
	}
	if len(g.Merges)+len(g.Stops) == 0 {
		b.WriteByte('\n')
		switch {
		case g.SplitBy == "search":
			rowWrapped(b, "no merges", recording.Strategy("split", g.SplitBy))
		case g.GroupedBy == "":
			rowWrapped(b, "no merges", "the file does not say how its groups were made")
		default:
			rowWrapped(b, "no merges", recording.Strategy("group", g.GroupedBy))
		}
	}
	if len(g.Merges) > 0 {
		fmt.Fprintf(b, "\n%s, the last of them\n", plural(len(g.Merges), "merge"))
		mergeLines(b, g.Merges, 3)
	}
	if len(g.Stops) > 0 {
		fmt.Fprintf(b, "\nMerges refused at its borders\n")
		mergeLines(b, g.Stops, 4)
	}
	listFirst(b, plural(len(g.Instances), "instance"), "<name|position|launched|took|<output|<launch waited for",
		g.Instances, explainRows, func(_ int, x explain.Instance) []any {
			return []any{x.Name, x.Position, duration(x.Start), duration(x.Took), strings.ToUpper(strings.Join(x.Levels, ", ")),
				shorten(x.WaitedFor, 48)}
		})
}

func (a explainJSON) writeOperator(b *bytes.Buffer) {
	o := a.Operator
	row(b, "operator", "%s (%s) of %s", printable(o.Name), o.Kind, printable(a.Schedule))
	if o.Part != "" {
		row(b, "part of", "%s of the given network", printable(o.Part))
	}
	row(b, "group", "%s", o.Group)
	row(b, "layer", "%s", printable(o.Layer))
	rowOf(b, "fused in it", harness.Each(o.With, printable))
	if len(o.Merges) > 0 {
		fmt.Fprintf(b, "\nMerges at this operator\n")
		mergeLines(b, o.Merges, 6)
	}
	listFirst(b, "Its layer, by instance", "<instance|computes from|for|tiles|unit idle|<waiting for", o.Runs, explainRows,
		func(_ int, r explain.Run) []any {
			waited := "-"
			if r.Waited > 0 {
				waited = duration(r.Waited)
			}
			return []any{r.Instance, duration(r.Start), duration(r.Took), r.Tiles, waited, shorten(r.WaitedFor, 50)}
		})
}

func (a explainJSON) writeTensor(b *bytes.Buffer) {
	t := a.Tensor
	row(b, "tensor", "%s of %s: %v %s, %s", printable(t.Name), printable(a.Schedule), t.Shape, t.DType, size(t.Bytes))
	if t.Producer != "" {
		row(b, "made by", "%s", printable(t.Producer))
	}
	readers := harness.Each(t.Readers, printable)
	if len(readers) == 0 {
		readers = []string{"nothing"}
	}
	rowOf(b, "read by", readers)
	rowWrapped(b, "why", t.Why)
	if len(t.Places) == 0 {
		return
	}
	listFirst(b, "", "<made by|size|<in|address|lives|<until", t.Places, explainRows, func(_ int, p explain.Place) []any {
		level := strings.ToUpper(p.Level)
		if p.Wanted != p.Level {
			level += ", not " + strings.ToUpper(p.Wanted)
		}
		at := "-"
		if p.Level != "DDR" {
			at = fmt.Sprint(p.Address)
		}
		return []any{p.Instance, size(p.Bytes), level, at, plural(p.Lives, "layer"), shorten(p.To, 40)}
	})
	i := slices.IndexFunc(t.Places, func(p explain.Place) bool { return p.Spill != nil })
	if i < 0 {
		return
	}
	s := t.Places[i].Spill
	fmt.Fprintf(b, "\nWhy the one of %s was spilled\n", t.Places[i].Instance)
	row(b, "layer", "%s", printable(s.At))
	rowWrapped(b, "reason", s.Why)
	row(b, "capacity", "%s", size(s.CapacityBytes))
	if s.WeightBytes > s.BufferBytes {
		row(b, "weights", "%s per core, their buffer holds %s", size(s.WeightBytes), size(s.BufferBytes))
	}
	row(b, "live values", "%s, and %s at least pass through: %s too many", size(s.LiveBytes),
		size(s.StageBytes), size(s.Over))
	var live bytes.Buffer
	listFirst(&live, "", "<live value|<made by|bytes|lives", s.Live, explainRows/2, func(_ int, l explain.Live) []any {
		return []any{shorten(l.Tensor, 40), l.Instance, size(l.Bytes), plural(l.Lives, "layer")}
	})
	b.Write(live.Bytes())
}
