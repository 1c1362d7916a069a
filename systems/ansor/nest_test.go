package ansor_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
)

// plan schedules a network of the zoo, one chunk for each cluster.
func plan(t testing.TB, name, variant string, chunk int64) *scheduler.Result {
	t.Helper()
	net, err := network.Open(name, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup(variant)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), net, spec, chunk*int64(spec.Clusters), recipe,
		scheduler.Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// followed is a schedule of which each step has the nest that choose gives.
func followed(t testing.TB, s *schedule.Schedule,
	choose func(s *schedule.Schedule, i int) *schedule.Nest) *schedule.Schedule {
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
		{"resnet50", "tvm", 2}, {"resnet50", "cross-layer", 8}, {"bert-128", "cross-layer", 4}, {"mobilenetv2", "tvm", 4},
		{"vgg16", "tvm", 1}, {"dlrm", "tvm", 64},
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
		if !reflect.DeepEqual(r.Program, p) {
			t.Errorf("%s by %s: the rules' nests make another program", c.network, c.variant)
		}
	}
}

// Nests that can't run are refused, each by what is wrong with it.
func TestNestsRefused(t *testing.T) {
	var task *ansor.Task
	for _, x := range tasks(t, plan(t, "resnet50", "tvm", 2)) {
		if x.Name == "stage1.block0.conv2" {
			task = x
		}
	}
	good := *task.Rule[0]
	if err := task.Check(ansor.Program{&good}); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(n *schedule.Nest){
		"expected a divisor":      func(n *schedule.Nest) { n.Cores, n.Rfactor, n.Tiles = schedule.One(4), 3, 8 },
		"rfactor 2 for each of 8": func(n *schedule.Nest) { n.Rfactor = 2 },
		"a reduction of":          func(n *schedule.Nest) { n.Cores, n.Rfactor, n.Tiles = schedule.One(4), 2, 8 },
		"expected 2 to the":       func(n *schedule.Nest) { n.Group = 99 },
		"has a stage of 2 parts":  func(n *schedule.Nest) { n.Loads, n.Pieces, n.Stage = 3, 3, 2 },
		"in front of the loops":   func(n *schedule.Nest) { n.Tiles, n.Once, n.Stage = 1, true, 1 },
		"has columns of":          func(n *schedule.Nest) { n.Columns = []int64{7} },
		"has room for 4 of 3":     func(n *schedule.Nest) { n.Tiles, n.Depth = 3, 4 },
		"brings the inputs":       func(n *schedule.Nest) { n.Loads, n.Pieces = 2, 3 },
	} {
		n := good
		change(&n)
		if err := task.Check(ansor.Program{&n}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", n, err, want)
		}
	}
}
