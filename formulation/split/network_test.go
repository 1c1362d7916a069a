package split_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/split"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A networkCase is a network as one cluster sees it.
type networkCase struct {
	network, hardware string
	elements          int64
	inPlace           bool
}

var cases = []networkCase{
	{"toy-fig5", "stcp920", 8, false},
	{"squeezenet", "stcp920", 8, false},
	{"bert-128", "stcp920", 8, false},
	{"bert-128", "stcp920", 8, true},
	{"conformer-s", "stcp920", 4, false},                        // many non-intervals
	{"toy-fig5", "../../hardware/testdata/ipu.yaml", 1, false},  // no LLB
	{"toy-fig5", "../../hardware/testdata/goya.yaml", 1, false}, // cores without an L1
}

func pose(t *testing.T, c networkCase) (*schedule.Schedule, *split.Network) {
	t.Helper()
	spec, err := hardware.Load(c.hardware)
	if err != nil {
		t.Fatal(err)
	}
	src, err := network.Open(c.network, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := src.Graph(c.elements)
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	opt := scheduler.Options{InPlace: c.inPlace}
	s, err := v.Schedule(context.Background(), g, spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	n, err := exact.SplitProblem(s, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}

// On networks: the answer becomes a schedule that passes all checks and costs what
// it says; it is never worse than Algorithm 2's, and its bound never above.
func TestSearchOnNetworks(t *testing.T) {
	for _, c := range cases {
		t.Run(strings.Join([]string{c.network, c.hardware}, " on "), func(t *testing.T) {
			s, n := pose(t, c)
			if priced := n.Seconds(s.Grouping); math.Abs(priced-n.GivenSeconds) > 1e-12 {
				t.Errorf("the given groups cost %g, recorded are %g", priced, n.GivenSeconds)
			}
			if n.Problem.Seconds(n.Given) > n.GivenSeconds+1e-12 {
				t.Errorf("the given groups at their best cost %g, more than as given, %g",
					n.Problem.Seconds(n.Given), n.GivenSeconds)
			}
			r, err := split.Search(context.Background(), n.Problem, split.Options{Start: n.Given})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != milp.Optimal || r.Objective > n.GivenSeconds+1e-12 || r.Bound > r.Objective {
				t.Errorf("got %v, objective %g, bound %g; Algorithm 2's costs %g", r.Status, r.Objective, r.Bound, n.GivenSeconds)
			}
			groups := n.Decode(r.Choice)
			if priced := n.Seconds(groups); math.Abs(priced-r.Objective) > 1e-12 {
				t.Errorf("the groups cost %g, priced anew, and %g by the problem", priced, r.Objective)
			}
			v, err := recipes.Lookup("cross-layer")
			if err != nil {
				t.Fatal(err)
			}
			made, err := v.Continue(context.Background(), &schedule.Schedule{Graph: s.Graph, Spec: s.Spec,
				Grouping: groups}, "split", scheduler.Options{InPlace: c.inPlace})
			if err != nil {
				t.Fatal(err)
			}
			if err := schedule.Check(made); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every candidate's footprint keeps to the L1 at its factor, as Algorithm 1 demands:
// wherever Algorithm 1 finds a way to split a group that is the same and computes
// nothing twice, it finds no smaller factor.
func TestFactorsAgainstAlgorithm1(t *testing.T) {
	s, n := pose(t, cases[0])
	splitter := graphturbo.NewSplitter(s.Graph, schedule.SplitOptions{
		L1Bytes: schedule.DataBytes(s.Spec) * schedule.CoresWithL1(s.Spec), Cores: schedule.CoresWithL1(s.Spec),
		MACsPerSecond: 1, VectorOpsPerSecond: 1, LLBBytesPerSecond: 1})
	compared := 0
	for k := range n.Problem.Groups {
		sg := n.Group(k)
		infos, peak := splitter.SplitInfo(sg.Ops, sg.Outputs)
		if peak != sg.PeakBytes {
			t.Errorf("group %d: peak %d, Algorithm 1 has %d", k, sg.PeakBytes, peak)
		}
		for _, info := range infos {
			if d := sg.SplitDim(); d >= 0 && info.Dim == d {
				compared++
				if sg.Factor() < info.Factor {
					t.Errorf("group %d: factor %d along dimension %d, Algorithm 1's smallest is %d", k, sg.Factor(), d, info.Factor)
				}
			}
		}
	}
	if compared == 0 {
		t.Error("no group is split along a dimension that Algorithm 1 knows")
	}
}

// With few candidates the groups given are among them all the same.
func TestFewCandidates(t *testing.T) {
	s, _ := pose(t, cases[1])
	n, err := split.FromGraph(s.Graph, schedule.ExecutionOrder(s.Graph), s.Grouping, s.Spec,
		split.NetworkOptions{MaxGroups: 1})
	if err != nil {
		t.Fatal(err)
	}
	if n.Longest != 1 {
		t.Errorf("candidates have up to %d atoms, want 1", n.Longest)
	}
	if err := n.Problem.CheckChoice(n.Given); err != nil {
		t.Error(err)
	}
	for k, g := range n.Decode(n.Given).Groups {
		if len(g.Ops) != len(s.Grouping.Groups[k].Ops) {
			t.Errorf("group %d has %d operators, want %d", k, len(g.Ops), len(s.Grouping.Groups[k].Ops))
		}
	}
	if _, err := split.FromGraph(s.Graph, schedule.ExecutionOrder(s.Graph), s.Grouping, s.Spec,
		split.NetworkOptions{MaxGroups: -1}); err == nil || err.Error() != "split: at most -1 groups, expected at least 0" {
		t.Errorf("got %v", err)
	}
}

// doubled is an operator cost of twice the formulas'.
type doubled struct{}

func (doubled) MatrixCycles(f *cost.Model, d model.MatrixDims, dt model.DType) hardware.Cycles {
	return 2 * f.MatrixCycles(d, dt)
}

func (doubled) VectorCycles(f *cost.Model, w model.VectorWork, dt model.DType) (vector, special hardware.Cycles) {
	vector, special = f.VectorCycles(w, dt)
	return 2 * vector, 2 * special
}

// A caller's operator cost prices the groups, by the options of the scheduler as well.
func TestOperatorCost(t *testing.T) {
	s, plain := pose(t, cases[0])
	own, err := split.FromGraph(s.Graph, schedule.ExecutionOrder(s.Graph), s.Grouping, s.Spec,
		split.NetworkOptions{Cost: doubled{}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := exact.SplitProblem(s, scheduler.Options{Cost: doubled{}})
	if err != nil {
		t.Fatal(err)
	}
	if own.GivenSeconds <= plain.GivenSeconds || again.GivenSeconds != own.GivenSeconds {
		t.Errorf("the groups cost %g s at twice the cycles, %g through the scheduler, and %g at the formulas'",
			own.GivenSeconds, again.GivenSeconds, plain.GivenSeconds)
	}
}
