package ansor_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
)

// tasks are those of a scheduled network, each once, with its weight.
func tasks(t testing.TB, r *scheduler.Result) []*ansor.Task {
	t.Helper()
	kernels, err := ansor.Kernels(t.Context(), r.Schedule, len(r.Plans), r.Lower)
	if err != nil {
		t.Fatal(err)
	}
	var list []*ansor.Task
	for _, k := range kernels {
		if !slices.Contains(list, k) {
			k.Weights = []int64{0}
			list = append(list, k)
		}
		k.Weights[0]++
	}
	return list
}

// Kernels that run one by one, with all their data in the DDR, take what they take alone:
// their times add up to the network's. And none is below its floor.
func TestKernelsAlone(t *testing.T) {
	for _, network := range []string{"resnet50", "bert-128", "mobilenetv2"} {
		r := plan(t, network, "tvm", 1)
		sum := 0.0
		for _, task := range tasks(t, r) {
			s, err := task.Seconds(context.Background(), task.Rule)
			if err != nil {
				t.Fatal(err)
			}
			if s < task.Floor*(1-1e-9) {
				t.Errorf("%s: %s takes %g s, below its floor of %g s", network, task.Name, s, task.Floor)
			}
			sum += s * float64(task.Weights[0])
		}
		if all := r.LatencySeconds(); math.Abs(sum-all) > 1e-3*all {
			t.Errorf("%s: the kernels take %g s one by one, the network takes %g s", network, sum, all)
		}
	}
}

// outcome is what a tuning has found, as text.
func outcome(t *testing.T, list []*ansor.Task, o ansor.Options) (text string, out *ansor.Outcome) {
	t.Helper()
	out, err := ansor.Tune(context.Background(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, a := range out.Answers {
		fmt.Fprintln(&b, a.Name, a.Trials, a.Best)
		for i, n := range a.Program {
			b.WriteString(n.Text(a.Output(i)))
		}
	}
	fmt.Fprintln(&b, out.Curve)
	return b.String(), out
}

// A seed gives one answer, whatever the number of workers and whatever is known already; no
// answer is slower than the rules' or than one with fewer rounds; every trial is a program
// that has not been measured before.
func TestTune(t *testing.T) {
	list := tasks(t, plan(t, "resnet50", "tvm", 1))[:6]
	for _, method := range ansor.Methods {
		known := map[string]int64{}
		o := ansor.Options{Trials: 120, Seed: 3, Method: method, Workers: 1, Record: func(x ansor.Trial) error {
			id := x.Task.Key + x.ID
			if known[id] != 0 {
				t.Errorf("%s: a program of %s is measured twice", method, x.Task.Name)
			}
			known[id] = x.Picoseconds
			return nil
		}}
		one, out := outcome(t, list, o)
		if len(known) != 120 || out.Trials != 120 {
			t.Errorf("%s: %d programs in %d trials, want 120", method, len(known), out.Trials)
		}
		asked := 0
		o.Record, o.Workers, o.Known = nil, 3, func(key, id string) (int64, bool) {
			if asked++; asked > 60 {
				return 0, false
			}
			return known[key+id], true
		}
		if again, _ := outcome(t, list, o); again != one {
			t.Errorf("%s: with three workers and half of the trials known:\n%s\nwith one and none:\n%s", method, again, one)
		}
		for _, a := range out.Answers {
			if !slices.IsSortedFunc(a.Best, func(x, y float64) int { return cmp.Compare(y, x) }) || a.Seconds > a.RuleSeconds {
				t.Errorf("%s: %s by round: %v", method, a.Name, a.Best)
			}
			if s, err := a.Task.Seconds(context.Background(), a.Program); err != nil || s != a.Seconds {
				t.Errorf("%s: %s takes %g s (%v), measured were %g s", method, a.Name, s, err, a.Seconds)
			}
		}
	}
}

// Rules and steps of a caller are followed, what they make is checked like all else, and patience ends a tuning.
func TestOwnRules(t *testing.T) {
	list := tasks(t, plan(t, "resnet50", "tvm", 1))[:4]
	one := ansor.Rule{Name: "one place",
		Sketches: func(_ *ansor.Task, _ int, of []ansor.Sketch) []ansor.Sketch { return of[:1] }}
	o := ansor.Options{Trials: 80, Seed: 2, Method: ansor.Random, Blind: true, Rules: []ansor.Rule{one},
		Record: func(x ansor.Trial) error {
			for i, n := range x.Program {
				sketches, _ := x.Task.Sketches(i)
				if len(sketches) != 1 || n.ColumnsFirst && !sketches[0].ColumnsFirst || n.Stay && !sketches[0].Stay ||
					n.Vector > sketches[0].Vector {
					t.Errorf("%s: a program that the rule rules out:\n%s", x.Task.Name, n.Text(x.Task.Output(i)))
				}
			}
			return nil
		}}
	outcome(t, list, o)
	if sketches, _ := list[0].Sketches(0); len(sketches) < 2 {
		t.Errorf("the rule is left behind in the task: %+v", sketches)
	}

	steps, measured := 0, 0
	double := ansor.Mutation{Name: "double", Weight: 300, Apply: func(r *rand.Rand, n *schedule.Nest) {
		if steps++; r.IntN(3) == 0 {
			*n = schedule.Nest{} // nothing that could run
			return
		}
		n.Tiles *= 2
	}}
	o = ansor.Options{Trials: 120, Seed: 2, Mutations: []ansor.Mutation{double}, Workers: 1,
		Record: func(x ansor.Trial) error {
			measured++
			return x.Task.Check(x.Program)
		}}
	first, _ := outcome(t, list, o)
	o.Workers = 3
	if again, _ := outcome(t, list, o); again != first {
		t.Error("three workers find something else")
	}
	o.Patience, o.Trials = 100, 8000
	before := measured
	if _, out := outcome(t, list, o); out.Stopped != nil || measured-before != out.Trials || out.Trials >= 8000 {
		t.Errorf("with patience %d trials, %d recorded, %v", out.Trials, measured-before, out.Stopped)
	}
	if steps == 0 {
		t.Error("the step is never drawn")
	}
	for want, o := range map[string]ansor.Options{
		`rule "none": found no sketch of layer`: {
			Rules: []ansor.Rule{{Name: "none", Sketches: func(*ansor.Task, int, []ansor.Sketch) []ansor.Sketch { return nil }}}},
		`rule "far": found vector work at 9`: {
			Rules: []ansor.Rule{{Name: "far",
				Sketches: func(*ansor.Task, int, []ansor.Sketch) []ansor.Sketch { return []ansor.Sketch{{Vector: 9}} }}}},
		`mutation "idle": found weight 0, expected at`: {Mutations: []ansor.Mutation{{Name: "idle"}}},
	} {
		if _, err := ansor.Tune(t.Context(), list, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A search that learns what programs cost and loses to one that tries a step after the other would be worth nothing:
// of the same trials, the kernels together are no slower by it, nor those of one network by much.
func TestNoWorseThanClimbing(t *testing.T) {
	sums := map[ansor.Method]float64{}
	for _, x := range []struct{ network, variant string }{{"resnet50", "tvm"}, {"resnet50", "cross-layer"},
		{"mobilenetv2", "cross-layer"}, {"bert-128", "cross-layer"}} {
		list := tasks(t, plan(t, x.network, x.variant, 2))
		one := map[ansor.Method]float64{}
		for _, method := range []ansor.Method{ansor.Evolution, ansor.Climb} {
			for seed := range uint64(2) {
				_, out := outcome(t, list, ansor.Options{Trials: 24 * len(list), Seed: 1 + seed, Method: method,
					Scheduler: "round-robin"})
				for _, a := range out.Answers {
					one[method] += a.Seconds / a.RuleSeconds / float64(2*len(list))
				}
			}
			sums[method] += one[method]
		}
		t.Logf("%s by %s: %.4f of the rules' time, climbing %.4f", x.network, x.variant,
			one[ansor.Evolution], one[ansor.Climb])
		if one[ansor.Evolution] > one[ansor.Climb]*1.005 {
			t.Errorf("%s by %s: %g of the rules' time, climbing finds %g", x.network, x.variant,
				one[ansor.Evolution], one[ansor.Climb])
		}
	}
	if sums[ansor.Evolution] > sums[ansor.Climb] {
		t.Errorf("%g of the rules' time, climbing finds %g", sums[ansor.Evolution], sums[ansor.Climb])
	}
}

// Trials go where the objective says: f1 leaves a kernel that runs once for one that runs
// often, f3 looks at each network's own time, round-robin at nothing.
func TestObjectives(t *testing.T) {
	list := tasks(t, plan(t, "resnet50", "tvm", 1))[2:4]
	list[0].Weights, list[1].Weights = []int64{1000, 0}, []int64{0, 1}
	share := func(o ansor.Options) float64 {
		o.Trials, o.Batch, o.Epsilon, o.Seed = 60, 2, 1e-9, 1
		_, out := outcome(t, list, o)
		return float64(out.Answers[0].Trials) / 60
	}
	if s := share(ansor.Options{}); s < .9 {
		t.Errorf("f1 gives %.0f %% of the trials to the kernel that runs 1000 times", 100*s)
	}
	if s := share(ansor.Options{Objective: "f3"}); s > .9 {
		t.Errorf("f3 gives %.0f %% of the trials to one of two networks", 100*s)
	}
	if s := share(ansor.Options{Scheduler: "round-robin"}); s != .5 {
		t.Errorf("round-robin gives %.0f %% of the trials to one of two kernels", 100*s)
	}
	if s := share(ansor.Options{Objective: "f2", Enough: []float64{1, 0}}); s > .2 {
		t.Errorf("f2 gives %.0f %% of the trials to a network that is fast enough", 100*s)
	}
}

// A limited space keeps to the rules' binding, places, cuts of the reduction and pieces, and
// still has other programs; without fine-tuning, or without knowing the rules, no layer of
// many keeps to them.
func TestSpaces(t *testing.T) {
	tune := func(list []*ansor.Task, o ansor.Options) (programs []ansor.Program) {
		o.Trials, o.Seed, o.Blind = 30*len(list), 1, true
		o.Record = func(x ansor.Trial) error {
			programs = append(programs, x.Program)
			return nil
		}
		outcome(t, list, o)
		return programs
	}
	conv := tasks(t, plan(t, "resnet50", "tvm", 2))[3:4]
	for _, method := range ansor.Methods {
		rule, programs := conv[0].Rule[0], tune(conv, ansor.Options{Method: method, Limited: true})
		for _, p := range programs {
			n := p[0]
			if n.Vector != rule.Vector || n.Store != rule.Store || n.Stage > 0 || n.Group > 0 || n.Rfactor > 0 ||
				n.Pieces > rule.Pieces || len(n.Reduction) != len(rule.Reduction) {
				t.Errorf("%s: %+v in a space limited to %+v", method, n, rule)
			}
		}
		if len(programs) < 20 {
			t.Errorf("%s: %d programs in the limited space", method, len(programs))
		}
	}
	many := slices.DeleteFunc(tasks(t, plan(t, "mobilenetv2", "cross-layer", 2)),
		func(k *ansor.Task) bool { return len(k.Rule) < 20 })[:1]
	for _, o := range []ansor.Options{{Method: ansor.Random}, {Method: ansor.Climb}, {}} {
		for k, p := range tune(many, o) {
			same := 0
			for i, n := range p {
				if rule := many[0].Rule[i]; n.Tiles == rule.Tiles && n.Depth == rule.Depth && n.Loads == rule.Loads &&
					n.Pieces == rule.Pieces {
					same++
				}
			}
			if same > len(p)/2 {
				t.Errorf("%s: program %d runs %d of %d layers by the rules", o.Method, k, same, len(p))
			}
		}
	}
}

// Of a kernel of many layers a round changes few, so that less is expected of it than its
// bound promises: other kernels have their share of the trials.
func TestManyLayers(t *testing.T) {
	list := tasks(t, plan(t, "mobilenetv2", "cross-layer", 2))
	many := func(name string) (trials int) {
		_, out := outcome(t, list, ansor.Options{Trials: 24 * len(list), Batch: 4, Seed: 1, Scheduler: name, Epsilon: 1e-9})
		return slices.MaxFunc(out.Answers,
			func(a, b ansor.Answer) int { return cmp.Compare(len(a.Rule), len(b.Rule)) }).Trials
	}
	if gradient, published := many("gradient"), many("published"); 2*gradient > published {
		t.Errorf("%d trials for the kernel of most layers, %d by the published gradient", gradient, published)
	}
}

func TestTuneRefuses(t *testing.T) {
	list := tasks(t, plan(t, "resnet50", "tvm", 1))[:1]
	for want, o := range map[string]ansor.Options{
		`objective is "f5"`:        {Objective: "f5"},
		`scheduler is "greedy"`:    {Scheduler: "greedy"},
		`method is "annealing"`:    {Method: "annealing"},
		"negative":                 {Trials: -1},
		"expected 1, one for each": {Objective: "f2", Enough: []float64{1, 2}},
	} {
		if _, err := ansor.Tune(context.Background(), list, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out, err := ansor.Tune(ctx, list, ansor.Options{Trials: 10})
	if err != nil || out.Stopped == nil || out.Answers[0].Seconds != out.Answers[0].RuleSeconds {
		t.Errorf("cancelled at once: %+v, %v; want the rules' program and the reason", out, err)
	}
}

// Of a convolution with a bias, an addition and an activation the rules derive that all but
// the convolution are computed where their results are used.
func TestDerivation(t *testing.T) {
	for _, task := range tasks(t, plan(t, "resnet50", "tvm", 1)) {
		sketches, derivations := task.Sketches(0)
		var rules []string
		for _, d := range derivations {
			rules = append(rules, d.Rule)
		}
		var want []string
		switch task.Name {
		case "stage1.block1.conv3":
			want = []string{"inline", "inline", "multi-level tiling", "cache stage", "tiling with fusion", "cache stage"}
		case "stem.pool", "head.softmax":
			want = []string{"skip"}
		default:
			continue
		}
		if !reflect.DeepEqual(rules, want) || (len(sketches) > 1) != (len(want) > 1) {
			t.Errorf("%s: %v and %d sketches, want %v", task.Name, rules, len(sketches), want)
		}
	}
}

func BenchmarkTrial(b *testing.B) {
	task := tasks(b, plan(b, "resnet50", "tvm", 2))[3]
	for b.Loop() {
		if _, err := task.Seconds(context.Background(), task.Rule); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "trials/s")
}
