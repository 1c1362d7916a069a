package issue_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/issue"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
)

// A load, a product that waits for it, and one of the same queue that does not.
func small() *isa.Program {
	return &isa.Program{
		Name: "small", Clusters: 1, Labels: []string{"a", "b"},
		Resources: []isa.Resource{{Name: "ddr", BytesPerSecond: 3_000_000_000_000}},
		Queues:    []isa.Queue{{Name: "dma"}, {Name: "mme"}},
		Commands: []isa.Command{
			{Kind: isa.DDRLoad, Queue: 0, DurationPs: 10, Uses: []isa.Use{{Resource: 0, Bytes: 100}}},
			{Kind: isa.Matrix, Queue: 1, DurationPs: 20, Deps: []int32{0}},
			{Kind: isa.Matrix, Queue: 1, Label: 1, DurationPs: 30},
		},
	}
}

func TestProject(t *testing.T) {
	p := small()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	ordered, err := issue.Project(p, issue.Span{0, 3}, true)
	if err != nil {
		t.Fatal(err)
	}
	if a := ordered.Activities[0]; a.Name != "0 ddr.load a" || a.Duration != 10+34 ||
		!slices.Equal(a.Demand, []int64{1, 0}) {
		t.Errorf("%+v", a)
	}
	if a := ordered.Activities[2]; !slices.Equal(a.After, []int{1}) || !slices.Equal(a.Demand, []int64{0, 1}) {
		t.Errorf("%+v", a)
	}
	c, err := issue.Compare(context.Background(), p, issue.Span{0, 3})
	if err != nil {
		t.Fatal(err)
	}
	// In order 44 + 20 + 30; else the second product fills the wait.
	if c.InOrderPs != 94 || c.ListPs != 64 || c.BoundPs != 64 || c.Commands != 3 ||
		math.Abs(c.GapAtMost()-30.0/94) > 1e-12 {
		t.Errorf("%+v", c)
	}
	// Without the load there is nothing to wait for.
	if c, err = issue.Compare(context.Background(), p, issue.Span{1, 3}); err != nil ||
		c.InOrderPs != 50 || c.ListPs != 50 {
		t.Errorf("%+v, %v", c, err)
	}
	var span *issue.SpanError
	if _, err := issue.Project(p, issue.Span{1, 4}, true); !errors.As(err, &span) {
		t.Error(err)
	}
	p.Commands[0].Uses[0].Bytes = math.MaxInt64
	var problem *isa.ProblemError
	if _, err := issue.Project(p, issue.Span{0, 3}, true); !errors.As(err, &problem) || problem.Index != 0 {
		t.Error(err)
	}
}

// Kernels of ResNet-50: where order is precedence the longest path is what in-order issue
// takes, and without it nothing is longer.
func TestResNet50(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	src, err := network.Open("resnet50", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := scheduler.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, spec, 32, v, scheduler.Options{Chunk: 8})
	if err != nil {
		t.Fatal(err)
	}
	kernels := issue.Kernels(r.Program, 0)
	if len(kernels) < 3 {
		t.Fatalf("%d kernels", len(kernels))
	}
	reordered, seen := 0, map[int]bool{}
	for _, s := range kernels {
		// Larger kernels take minutes; those of one length are much alike.
		if n := s.Last - s.First; n > 250 || seen[n] {
			continue
		}
		seen[s.Last-s.First] = true
		ordered, err := issue.Project(r.Program, s, true)
		if err != nil {
			t.Fatal(err)
		}
		c, err := issue.Compare(context.Background(), r.Program, s)
		if err != nil {
			t.Fatal(err)
		}
		if c.BoundPs > c.ListPs || c.ListPs > c.InOrderPs || c.BoundPs <= 0 {
			t.Errorf("%+v", c)
		}
		path := int64(0)
		for i, head := range ordered.Heads() {
			path = max(path, head+ordered.Activities[i].Duration)
		}
		if path != c.InOrderPs {
			t.Errorf("%v: in order takes %d ps, the longest path %d", s, c.InOrderPs, path)
		}
		if c.ListPs < c.InOrderPs {
			reordered++
		}
		t.Logf("kernel of %d commands: in order %d ps, list %d, bound %d: at most %.1f %%",
			c.Commands, c.InOrderPs, c.ListPs, c.BoundPs, 100*c.GapAtMost())
	}
	if len(seen) < 3 || reordered == 0 {
		t.Errorf("%d kernels tried, of which %d gain by reordering: the test shows nothing", len(seen), reordered)
	}
}
