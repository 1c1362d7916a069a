package explain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func explainer(t *testing.T, model, machine, name string, batch int64, clusters ...scheduler.Division) *Explainer {
	t.Helper()
	src, err := network.Open(model, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load(machine)
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	opt := scheduler.Options{}
	for _, opt.Clusters = range clusters {
	}
	r, err := scheduler.Run(context.Background(), src, spec, batch, v, opt)
	if err != nil {
		t.Fatal(err)
	}
	return New(r, scheduler.Options{})
}

func sum(list []Share) float64 {
	s := 0.0
	for _, x := range list {
		s += x.Seconds
	}
	return s
}

// Where several loads are under way, their latencies pass beside the units and are none of them.
func TestUnitsWithoutLatencies(t *testing.T) {
	e := explainer(t, "toy-fig5", "a100", "tiled", 2)
	latencies := 0
	for _, q := range e.r.Program.Queues {
		if q.LatencyOf != isa.OtherQueue {
			latencies++
		}
	}
	for _, w := range e.Overview().Waits {
		if w.Unit == isa.OtherQueue.String() {
			t.Errorf("a unit without a name is busy for %g s", w.BusySeconds)
		}
	}
	if latencies == 0 {
		t.Error("no loads in flight: this says nothing")
	}
}

// The gains of all groups are the difference of the times, and each is that of its commands;
// groups that both schedules have stand side by side, others on their own.
func TestCompareAddsUp(t *testing.T) {
	greedy, layers, again := explainer(t, "resnet50", "stcp920", "cross-layer", 16),
		explainer(t, "resnet50", "stcp920", "tvm", 16), explainer(t, "resnet50", "stcp920", "ordering", 16)
	for _, c := range [][2]*Explainer{{greedy, layers}, {layers, greedy}, {greedy, again}, {greedy, greedy}} {
		list := Compare(c[0], c[1])
		before, after, both := 0.0, 0.0, 0
		for _, x := range list {
			for _, d := range x.By {
				x.BeforeSeconds, x.AfterSeconds, before, after = x.BeforeSeconds-d.BeforeSeconds, x.AfterSeconds-d.AfterSeconds,
					before+d.BeforeSeconds, after+d.AfterSeconds
			}
			if math.Abs(x.BeforeSeconds)+math.Abs(x.AfterSeconds) > 1e-9 {
				t.Errorf("group %q: %g and %g s are of no command", x.Group, x.BeforeSeconds, x.AfterSeconds)
			}
			if x.By[0].BeforeSeconds > 0 && x.By[0].AfterSeconds > 0 {
				both++
			}
		}
		for i, e := range c {
			if got, want := []float64{before, after}[i], e.Overview().TotalSeconds; math.Abs(got-want) > 1e-9*want {
				t.Errorf("schedule %d of %s: commands take %g s, the batch %g s", i, e.r.Recipe.Name, got, want)
			}
		}
		if same := c[1] != layers && c[0] != layers; same != (both > 0) {
			t.Errorf("%s and %s: %d of %d groups on both paths", c[0].r.Recipe.Name, c[1].r.Recipe.Name, both, len(list))
		}
		if c[0] == c[1] && slices.ContainsFunc(list, func(x Change) bool { return x.BeforeSeconds != x.AfterSeconds }) {
			t.Errorf("a schedule gains over itself: %+v", list)
		}
	}
}

// All time is accounted for, whichever way it is cut.
func TestOverviewAddsUp(t *testing.T) {
	for _, c := range []struct {
		model, machine, variant string
		batch                   int64
	}{{"resnet50", "stcp920", "cross-layer", 64}, {"resnet50", "stcp920", "tvm", 4},
		{"toy-fig5", "goya", "cross-layer", 2}, {"bert-128", "stcp920", "astitch", 5}} {
		e := explainer(t, c.model, c.machine, c.variant, c.batch)
		o := e.Overview()
		near := func(what string, got float64) {
			if math.Abs(got-o.TotalSeconds) > 1e-9*o.TotalSeconds {
				t.Errorf("%s: %s adds up to %g of %g s", c.model, what, got, o.TotalSeconds)
			}
		}
		near("the path by kind", sum(o.PathByKind))
		groups := 0.0
		for _, g := range o.PathByGroup {
			near("group "+g.What, o.TotalSeconds-g.Seconds+sum(g.By))
			groups += g.Seconds
		}
		near("the path by group", groups)
		moves := 0.0
		for _, s := range o.PathByKind {
			for k := range isa.NumKinds {
				if k.IsMove() && e.r.CommandWord(k) == s.What {
					moves += s.Seconds
				}
			}
		}
		if got := sum(o.PathByResource); got > moves*(1+1e-9) {
			t.Errorf("%s: moves take %g s over resources, %g s by kind", c.model, got, moves)
		}
		if o.SharedSeconds < 0 || o.LatencySeconds < 0 || o.SharedSeconds+o.LatencySeconds > moves*(1+1e-9) {
			t.Errorf("%s: shared %g s, latency %g s of %g s", c.model, o.SharedSeconds, o.LatencySeconds, moves)
		}
		for _, w := range o.Waits {
			near("unit "+w.Unit, w.BusySeconds+sum(w.Causes))
		}
		for _, b := range o.Bounds {
			if b.Seconds > o.TotalSeconds {
				t.Errorf("%s: bound %s of %g s is above the time, %g s", c.model, b.What, b.Seconds, o.TotalSeconds)
			}
		}
		if o.Limit == "" {
			t.Errorf("%s: nothing limits", c.model)
		}
	}
}

// The factor fits, smaller ones that Algorithm 1 tried do not, and the first choice is
// the one that was made.
func TestGroups(t *testing.T) {
	e := explainer(t, "resnet50", "stcp920", "cross-layer", 64)
	for k, sg := range e.s.Grouping.Groups {
		x, err := e.Group(sg.Name)
		if err != nil {
			t.Fatal(err)
		}
		last := x.Footprints[len(x.Footprints)-1]
		if last.Factor != sg.Factor() || !last.Fits || last.Bytes > x.L1Bytes {
			t.Errorf("%s with factor %d: %+v", sg.Name, sg.Factor(), x.Footprints)
		}
		if last.Factor == 1 && last.Bytes != sg.PeakBytes {
			t.Errorf("%s takes %d bytes unsplit, Algorithm 1 has counted %d", sg.Name, last.Bytes, sg.PeakBytes)
		}
		if n := len(x.Footprints); n > 1 && x.Footprints[n-2].Fits {
			t.Errorf("%s: a smaller factor fits: %+v", sg.Name, x.Footprints)
		}
		if x.Choices[0].Factor != sg.Factor() {
			t.Errorf("%s: the first choice is %+v, the factor %d", sg.Name, x.Choices[0], sg.Factor())
		}
		// A group of n operators came of merges; at each border one was refused.
		if len(x.Merges) == 0 || len(e.s.Grouping.Groups) > 1 && len(x.Stops) == 0 {
			t.Errorf("%s: %d merges, %d stops", sg.Name, len(x.Merges), len(x.Stops))
		}
		for _, m := range x.Stops {
			if m.Accepted || m.Rule == "" {
				t.Errorf("%s: stop %+v", sg.Name, m)
			}
		}
		if len(x.Instances) != int(sg.Factor()) {
			t.Errorf("%s: %d instances", sg.Name, len(x.Instances))
		}
		for _, i := range x.Instances {
			if i.Took <= 0 || i.WaitedFor == "" {
				t.Errorf("group %d: instance %+v", k, i)
			}
		}
	}
	if x, err := explainer(t, "toy-fig5", "stcp920", "tvm", 4).Group("k2"); err != nil || len(x.Merges)+len(x.Stops) > 0 {
		t.Errorf("%+v, %v", x, err)
	}
}

// What a spill met really did not fit, and the victim is what the rule chooses.
func TestSpills(t *testing.T) {
	e := explainer(t, "resnet50", "stcp920", "cross-layer", 64)
	x, err := e.Tensor("stage3.block5.add")
	if err != nil {
		t.Fatal(err)
	}
	spilled := 0
	for _, p := range x.Places {
		if p.Spill == nil {
			if p.Wanted != p.Level {
				t.Errorf("%+v is not where it was wanted, and nothing says why", p)
			}
			continue
		}
		spilled++
		s := p.Spill
		if s.Over <= 0 || s.LiveBytes+s.StageBytes-s.CapacityBytes != s.Over {
			t.Errorf("%d live, %d passing, %d capacity, %d over", s.LiveBytes, s.StageBytes, s.CapacityBytes, s.Over)
		}
		total := int64(0)
		for _, l := range s.Live {
			total += l.Bytes
			if l.Lives > p.Lives {
				t.Errorf("%+v lives longer than the victim, %d layers", l, p.Lives)
			}
		}
		if total != s.LiveBytes {
			t.Errorf("the live values have %d bytes, %d in sum", total, s.LiveBytes)
		}
	}
	if want := len(slices.DeleteFunc(slices.Clone(e.s.Spills), func(sp schedule.Spill) bool {
		return e.s.Graph.Tensor(e.s.Values[sp.Value].Tensor).Name != x.Name
	})); spilled != want || want == 0 {
		t.Errorf("%d spills are explained, there are %d", spilled, want)
	}
}

// Every tensor, operator and group of a network has an explanation.
func TestEverything(t *testing.T) {
	e := explainer(t, "bert-128", "stcp920", "cross-layer", 8)
	for _, x := range e.s.Graph.Tensors {
		got, err := e.Tensor(x.Name)
		if err != nil || got.Why == "" || got.Bytes != x.Bytes() {
			t.Errorf("%s: %+v, %v", x.Name, got, err)
			continue
		}
		kept := 0
		for i := range e.s.Values {
			if v := &e.s.Values[i]; v.Tensor == x.ID && v.Instance >= 0 {
				kept++
			}
		}
		if x.Role == model.Activation && len(got.Places) != kept {
			t.Errorf("%s: %d places, %d values", x.Name, len(got.Places), kept)
		}
		if kept == 0 || e.s.Graph.IsOutput(x.ID) {
			continue
		}
		spilled := slices.ContainsFunc(got.Places, func(p Place) bool { return p.Level != p.Wanted })
		near := !slices.ContainsFunc(got.Places, func(p Place) bool { return p.Level != schedule.L1.Word() })
		if spilled != strings.HasPrefix(got.Why, "spilled") || near != strings.HasPrefix(got.Why, "it stays in the L1") {
			t.Errorf("%s: %q for %+v", x.Name, got.Why, got.Places)
		}
	}
	for _, op := range e.s.Graph.Ops[:60] {
		got, err := e.Op(op.Name)
		if err != nil || !slices.Contains(got.With, op.Name) || len(got.Runs) == 0 {
			t.Errorf("%s: %+v, %v", op.Name, got, err)
			continue
		}
		for _, r := range got.Runs {
			if r.Start < 0 || r.Took <= 0 || (r.Waited > 0) != (r.WaitedFor != "") {
				t.Errorf("%s: %+v", op.Name, r)
			}
		}
	}
}

// What any cluster runs has its times, and each unit is shown where it is busiest, as in a summary.
func TestDividedNetwork(t *testing.T) {
	e := explainer(t, "resnet50", "stcp920", "tiled-groups", 4, scheduler.OverLayer)
	o, others := e.Overview(), 0
	for _, x := range o.PathByGroup {
		g, err := e.Group(x.What)
		if err != nil || g.GroupedBy != "the division of the network by layers" {
			t.Fatalf("%q on the critical path: %+v, %v", x.What, g, err)
		}
		op, err := e.Op(g.First)
		if err != nil || len(op.Runs) != len(g.Instances) {
			t.Errorf("%s: %d runs, %v", g.First, len(op.Runs), err)
		}
		for _, i := range g.Instances {
			if i.Took <= 0 || i.WaitedFor == "" || len(i.Levels) == 0 {
				t.Errorf("%+v", i)
			}
		}
	}
	for _, u := range e.r.Uses()[:len(o.Waits)] {
		if !slices.ContainsFunc(o.Waits, func(w UnitWaits) bool { return w.Unit == u.What && w.BusySeconds == u.Seconds }) {
			t.Errorf("%+v is not among %+v", u, o.Waits)
		}
	}
	for k := range e.r.Plans {
		if k != o.Cluster && e.r.Sim.Clusters[k].Time != e.r.Sim.Clusters[o.Cluster].Time {
			others++
		}
	}
	if others == 0 {
		t.Error("the clusters do the same: this says nothing")
	}
}

// Operators of one name are told apart by their number.
func TestAlikeNames(t *testing.T) {
	e := explainer(t, "toy-fig5", "stcp920", "cross-layer", 4)
	ops := e.s.Graph.Ops
	first, last, name := ops[0], ops[len(ops)-1], ops[len(ops)-1].Name
	was := first.Name
	first.Name = name
	defer func() { first.Name = was }()
	if _, err := e.Op(name); err == nil || !strings.Contains(err.Error(), "2 operators are called") {
		t.Errorf("error %v", err)
	}
	for i, op := range []*model.Op{first, last} {
		got, err := e.Op(fmt.Sprintf("%s#%d", name, i+1))
		if err != nil || got.Name != name || !slices.Equal(got.Outputs, []string{e.s.Graph.Tensor(op.Outputs[0]).Name}) {
			t.Errorf("#%d: %+v, %v", i+1, got, err)
		}
	}
	var u *UnknownError
	for _, wrong := range []string{name + "#3", name + "#0", name + "#x"} {
		if _, err := e.Op(wrong); !errors.As(err, &u) {
			t.Errorf("%s: error %v", wrong, err)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	e := explainer(t, "toy-fig5", "stcp920", "cross-layer", 4)
	var u *UnknownError
	if _, err := e.Op("conv.conv"); !errors.As(err, &u) || !strings.Contains(err.Error(), "names with it: conv.conv1") {
		t.Errorf("error %v", err)
	}
	if _, err := e.Op("cnv.conv1"); !errors.As(err, &u) || !strings.Contains(err.Error(), "(did you mean conv.conv1?)") {
		t.Errorf("error %v", err)
	}
	if _, err := e.Group("last"); !errors.As(err, &u) || !strings.Contains(err.Error(), ", expected g0") {
		t.Errorf("error %v", err)
	}
	if _, err := e.Tensor("?"); !errors.As(err, &u) || err.Error() != `there is no tensor "?"` {
		t.Errorf("error %v", err)
	}
	op := e.s.Graph.Ops[len(e.s.Graph.Ops)-1]
	op.Name = "renamed"
	want := fmt.Sprintf("there is no tensor %q; the operator of that name makes %q", "renamed",
		e.s.Graph.Tensor(op.Outputs[0]).Name)
	if _, err := e.Tensor("renamed"); err == nil || err.Error() != want {
		t.Errorf("error %v, expected %s", err, want)
	}
	if _, err := e.Group("g99"); !errors.As(err, &u) {
		t.Errorf("error %v", err)
	}
}

// Each operator of a network as it is given is found in one of the schedule, of which it is a part.
func TestPartsAreFound(t *testing.T) {
	e := explainer(t, "bert-128", "stcp920", "tiled", 1)
	given, err := network.Raw("bert-128", 1, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, op := range given.Ops {
		x, err := e.Within(given, op.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Op(op.Name); (err != nil) != (x.Part == op.Name) || err == nil && x.Part != "" {
			t.Errorf("%s is part %q of %s", op.Name, x.Part, x.Name)
		}
		if x.Part != "" {
			parts++
		}
	}
	x, err := e.Within(given, "encoder.layer7.attention.softmax")
	if err != nil || x.Kind != "Attention" || !strings.HasPrefix(x.Name, "encoder.layer7.attention.") {
		t.Errorf("the softmax of layer 7 is in %+v, %v; expected its attention", x, err)
	}
	if parts < 3*12 {
		t.Errorf("%d parts, expected three or more of each attention", parts)
	}
	lost := new(UnknownError)
	if _, err := e.Within(given, "nosuch"); !errors.As(err, &lost) {
		t.Errorf("an unknown name: %v", err)
	}
}
