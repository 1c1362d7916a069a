package ansor_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/heuristics/ansor"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

// plan schedules a network of the zoo, one chunk for each cluster.
func plan(t testing.TB, name, variant string, chunk int64) *scheduler.Result {
	t.Helper()
	net, err := scheduler.OpenNetwork(name)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := scheduler.Lookup(variant)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), net, spec, chunk*int64(spec.Clusters), recipe, scheduler.Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// followed is a schedule of which each step has the nest that choose gives.
func followed(t testing.TB, s *schedule.Schedule, choose func(s *schedule.Schedule, i int) *schedule.Nest) *schedule.Schedule {
	t.Helper()
	k := *s
	k.Steps, k.Values = slices.Clone(s.Steps), slices.Clone(s.Values)
	for i := range k.Steps {
		if err := k.Follow(i, choose(&k, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := schedule.CheckPlan(&k); err != nil {
		t.Fatal(err)
	}
	return &k
}

// The generator's rules are a point of the space: a schedule whose steps all have the nests
// that the rules make becomes the same program, byte by byte. And what Text shows of
// nests, ParseNest reads.
func TestRulesAreNests(t *testing.T) {
	for _, c := range []struct {
		network, variant string
		chunk            int64
	}{
		{"resnet50", "tvm", 2}, {"resnet50", "cross-layer", 8}, {"bert-128", "cross-layer", 4}, {"mobilenetv2", "tvm", 4}, {"vgg16", "tvm", 1}, {"dlrm", "tvm", 64},
	} {
		r := plan(t, c.network, c.variant, c.chunk)
		m, err := cost.New(r.Spec)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 1))
		rules := followed(t, r.Schedule, func(s *schedule.Schedule, i int) *schedule.Nest {
			n := lower.LoopsOf(s, i, m).Rule
			for _, x := range []*schedule.Nest{n, ansor.Sample(s, i, m, random)} {
				output := s.Graph.Tensor(s.Steps[i].Output)
				again, err := schedule.ParseNest(x.Text(output), output)
				if err != nil {
					t.Fatalf("%s: %v in\n%s", c.network, err, x.Text(output))
				}
				if again.Text(output) != x.Text(output) {
					t.Fatalf("%s:\n%s\nbecomes\n%s", c.network, x.Text(output), again.Text(output))
				}
			}
			return n
		})
		plans := make([][]lower.Segment, len(r.Plans))
		for k := range plans {
			plans[k] = []lower.Segment{{Schedule: rules, Iterations: 1}}
		}
		p, err := lower.Program(r.Program.Name, r.Spec, plans, r.Lower)
		if err != nil {
			t.Fatal(err)
		}
		var was, is strings.Builder
		if err := r.Program.WriteText(&was); err != nil {
			t.Fatal(err)
		}
		if err := p.WriteText(&is); err != nil {
			t.Fatal(err)
		}
		if was.String() != is.String() {
			t.Errorf("%s by %s: the rules' nests make another program", c.network, c.variant)
		}
	}
}
