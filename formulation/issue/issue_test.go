package issue_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/issue"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// least is the least makespan of commands over all orders of issue, by trying each.
func least(p *isa.Program) int64 {
	best := int64(math.MaxInt64)
	ends, free := make([]int64, len(p.Commands)), make([]int64, len(p.Queues))
	var try func(done int, issued []bool, latest int64)
	try = func(done int, issued []bool, latest int64) {
		if done == len(ends) {
			best = min(best, latest)
			return
		}
		for i := range p.Commands {
			c := &p.Commands[i]
			begins := free[c.Queue]
			ready := !issued[i]
			for d := range i { // of a layer: in order
				ready = ready && (issued[d] || p.Commands[d].Queue != c.Queue || p.Commands[d].Label != c.Label)
			}
			for _, d := range c.Deps {
				ready, begins = ready && issued[d], max(begins, ends[d])
			}
			if !ready {
				continue
			}
			before := free[c.Queue]
			issued[i], ends[i] = true, begins+c.DurationPs
			free[c.Queue] = ends[i]
			try(done+1, issued, max(latest, ends[i]))
			issued[i], free[c.Queue] = false, before
		}
	}
	try(0, make([]bool, len(ends)), 0)
	return best
}

// On small programs no order is below the bound or above the issue in order, and the bound is often met.
func TestAgainstAllOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	met, gains := 0, 0
	for range 200 {
		p := &isa.Program{Name: "small", Clusters: 1, Labels: []string{""}, Queues: make([]isa.Queue, 2+r.IntN(2))}
		for i := range 7 {
			c := isa.Command{Kind: isa.Matrix, Queue: int32(r.IntN(len(p.Queues))), Label: int32(r.IntN(4)),
				DurationPs: r.Int64N(9)}
			for d := range int32(i) {
				if r.IntN(4) == 0 {
					c.Deps = append(c.Deps, d)
				}
			}
			p.Commands = append(p.Commands, c)
		}
		c, err := issue.Compare(p, issue.Span{First: 0, Last: len(p.Commands)})
		if err != nil {
			t.Fatal(err)
		}
		best := least(p)
		if c.BoundPs > best || best > c.InOrderPs {
			t.Errorf("bound %d, best %d, in order %d: %+v", c.BoundPs, best, c.InOrderPs, p.Commands)
		}
		if c.BoundPs == best {
			met++
		}
		if best < c.InOrderPs {
			gains++
		}
	}
	if met < 150 || gains < 50 {
		t.Errorf("the bound is met %d times, another order is better %d times: the test shows little", met, gains)
	}
}

func TestBadInput(t *testing.T) {
	p := &isa.Program{Name: "p", Resources: []isa.Resource{{BytesPerSecond: 1}}, Queues: make([]isa.Queue, 1),
		Commands: []isa.Command{{Kind: isa.DDRLoad, Uses: []isa.Use{{Bytes: math.MaxInt64}}}}}
	var problem *isa.ProblemError
	if _, err := issue.Compare(p, issue.Span{First: 0, Last: 1}); !errors.As(err, &problem) || problem.Index != 0 {
		t.Error(err)
	}
	if _, err := issue.Compare(p, issue.Span{First: 0, Last: 2}); err == nil || !strings.Contains(err.Error(), "0 to 1") {
		t.Error(err)
	}
}

// With all waits, a program is right and simulates as without; no order of issue of its kernels saves as much as
// half a per cent; without those that queues imply the bound is lower.
func TestKernelsOfNetworks(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"resnet50", "bert-128"} {
		src, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := src.Graph(8)
		if err != nil {
			t.Fatal(err)
		}
		d, err := recipe.Draft(t.Context(), g, spec, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		plans := make([][]lower.Segment, spec.Clusters)
		plans[0] = []lower.Segment{{Schedule: d.Schedule, Iterations: 1}}
		gap := func(all bool) float64 {
			opt := d.Lower
			opt.AllWaits = all
			p, err := lower.Program(name, spec, plans, opt)
			if err == nil {
				err = p.Check()
			}
			if err != nil {
				t.Fatal(err)
			}
			sum := issue.Comparison{}
			for _, k := range issue.Kernels(p, 0) {
				c, err := issue.Compare(p, k)
				if err != nil || c.BoundPs > c.InOrderPs {
					t.Fatalf("%s: %+v (%v)", name, c, err)
				}
				sum.InOrderPs, sum.BoundPs = sum.InOrderPs+c.InOrderPs, sum.BoundPs+c.BoundPs
			}
			return float64(sum.InOrderPs)/float64(sum.BoundPs) - 1
		}
		with, without := gap(true), gap(false)
		t.Logf("%s: in order is %.2f %% above the bound, %.1f %% without the waits that queues imply", name, 100*with,
			100*without)
		if with > .005 || without <= with {
			t.Errorf("%s: %.4f with all waits, %.4f without", name, with, without)
		}
	}
}
