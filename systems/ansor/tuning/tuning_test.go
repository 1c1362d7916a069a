package tuning_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/ansor"
	"github.com/dsasched/dsasched/systems/ansor/tuning"
)

func init() { tuning.Register() }

func searched(t *testing.T, name string) scheduler.Recipe {
	t.Helper()
	r, err := recipes.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func open(t testing.TB, name string) network.Network {
	t.Helper()
	n, err := network.Open(name, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func load(t testing.TB, name string) *hardware.Spec {
	t.Helper()
	spec, err := hardware.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// A tuning that was interrupted goes on from its log to the same answer and the same log; the
// answer's kernels run in the network, which they make faster; a file of that schedule is
// read back to the same time.
func TestTune(t *testing.T) {
	machine := load(t, "stcp920")
	for _, variant := range []string{"ansor", "graphturbo+ansor"} {
		nets, recipe, opt := []network.Network{open(t, "toy-fig3")}, searched(t, variant), scheduler.Options{Chunk: 2}
		tune := func(set tuning.Settings) *tuning.Tuned {
			t.Helper()
			set.Trials, set.Seed = 60, 2
			tuned, err := tuning.Tune(t.Context(), nets, machine, 16, recipe, opt, set)
			if err != nil {
				t.Fatal(err)
			}
			return tuned
		}
		var log, rest bytes.Buffer
		whole := tune(tuning.Settings{Log: &log})
		lines := bytes.SplitAfter(log.Bytes(), []byte("\n"))
		if len(lines) != 62 {
			t.Fatalf("%s: the log has %d lines, want a head and 60 trials", variant, len(lines)-1)
		}
		for _, n := range []int{1, 20} {
			rest.Reset()
			begun := bytes.Join(lines[:n], nil)
			again := tune(tuning.Settings{Log: &rest, Before: bytes.NewReader(begun)})
			if !reflect.DeepEqual(whole, again) || string(begun)+rest.String() != log.String() {
				t.Errorf("%s: going on from %d lines of a log ends elsewhere", variant, n)
			}
		}
		data, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		if opt.Tuned, err = tuning.Read(data); err != nil {
			t.Fatal(err)
		}
		made, err := scheduler.Run(t.Context(), nets[0], machine, 16, recipe, opt)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := scheduler.Run(t.Context(), nets[0], machine, 16, searched(t, recipe.Fallback[0]),
			scheduler.Options{Chunk: 2})
		if err != nil {
			t.Fatal(err)
		}
		if made.Sim.TotalPs > rules.Sim.TotalPs || variant == "ansor" && made.Sim.TotalPs == rules.Sim.TotalPs {
			t.Errorf("%s: %v s tuned, %v s by the rules", variant, made.LatencySeconds(), rules.LatencySeconds())
		}
		text, err := made.File(schedulefile.Origin{Model: "toy-fig3"}).Write()
		if err != nil {
			t.Fatal(err)
		}
		f, err := schedulefile.Read("toy.json", text)
		if err != nil {
			t.Fatal(err)
		}
		back, err := scheduler.Restore(t.Context(), f, machine)
		if err != nil {
			t.Fatal(err)
		}
		if back.Sim.TotalPs != made.Sim.TotalPs {
			t.Errorf("%s: the file takes %v s, the schedule %v s", variant, back.LatencySeconds(), made.LatencySeconds())
		}
	}
}

// Kernels that differ in what others keep in the LLB alone are two tasks: loops that gather as
// many weights as one of them has room for do not fit the other, and only the first runs by
// them.
func TestRoomOfTasks(t *testing.T) {
	machine, net, recipe := load(t, "stcp920"), open(t, "bert-128"), searched(t, "graphturbo+ansor")
	opt := scheduler.Options{Chunk: 8}
	all, from, err := tuning.Tasks(t.Context(), []network.Network{net}, machine, 32, recipe, opt)
	if err != nil {
		t.Fatal(err)
	}
	tasks := slices.DeleteFunc(all, func(x *ansor.Task) bool { return x.Name != "encoder.layer0.ffn.up" })
	if len(tasks) != 2 {
		t.Fatalf("%d tasks of the kernel, want one for each room", len(tasks))
	}
	largest := func(task *ansor.Task) ansor.Program {
		rule := task.Rule[0]
		for group := int64(len(rule.Columns) * len(rule.Reduction)); group > 1; group-- {
			n := *rule
			n.Group = group
			if p := (ansor.Program{&n}); task.Check(p) == nil {
				return p
			}
		}
		return task.Rule
	}
	p, other := largest(tasks[0]), tasks[1]
	if q := largest(other); q[0].Group > p[0].Group {
		p, other = q, tasks[0]
	}
	if err := other.Check(p); err == nil || !strings.Contains(err.Error(), "a quarter of what values leave") {
		t.Errorf("%d tiles of weights together: %v where there is less room", p[0].Group, err)
	}
	one := tasks[0]
	if one == other {
		one = tasks[1]
	}
	opt.Tuned = &tuning.Tuned{From: from, Tasks: []tuning.Task{{Task: tuning.TaskName(one.Key),
		Layers: []tuning.Layer{{Layer: one.Layer(0), Nest: strings.Split(strings.TrimSuffix(p[0].Text(one.Output(0)),
			"\n"), "\n")}}}}}
	made, err := scheduler.Run(t.Context(), net, machine, 32, recipe, opt)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(made.Notes, "; "); !strings.Contains(notes, "12 of 49 kernels are among the tuned ones") {
		t.Errorf("want 12 kernels that are tuned: %s", notes)
	}
	// Given to both, the loops stay where there is room; the other keeps the rules', and the
	// schedule is that of the first alone.
	fallback := recipe.With("nest", scheduler.Strategy{Name: "both",
		Decide: func(ctx context.Context, d *scheduler.Draft) error {
			kernels, err := ansor.Kernels(ctx, d.Schedule, d.Spec.Clusters, d.Lower)
			if err != nil {
				return err
			}
			programs := map[*ansor.Task]ansor.Program{}
			for _, k := range kernels {
				if k.Key == one.Key || k.Key == other.Key {
					programs[k] = p
				}
			}
			return tuning.Adopt(ctx, d, kernels, programs)
		}})
	both, err := scheduler.Run(t.Context(), net, machine, 32, fallback, opt)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(both.Notes, "; "); !strings.Contains(notes,
		"layers keep the loops of the generator's rules: in their place, the memories have no room") ||
		both.Sim.TotalPs != made.Sim.TotalPs {
		t.Errorf("%d ps, want %d ps and a note of the layers without room: %s", both.Sim.TotalPs, made.Sim.TotalPs, notes)
	}
}

// What was tuned for something else, or was edited into what can't run, is refused by name.
func TestTunedRefuses(t *testing.T) {
	machine, net, recipe := load(t, "stcp920"), open(t, "toy-fig3"), searched(t, "ansor")
	opt := scheduler.Options{Chunk: 2}
	var log bytes.Buffer
	tuned, err := tuning.Tune(t.Context(), []network.Network{net}, machine, 16, recipe, opt,
		tuning.Settings{Options: ansor.Options{Trials: 8, Seed: 1}, Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(tuned)
	if err != nil {
		t.Fatal(err)
	}
	run := func(text string, net network.Network, hardware string) error {
		opt := opt
		var err error
		if opt.Tuned, err = tuning.Read([]byte(text)); err != nil {
			return err
		}
		_, err = scheduler.Run(context.Background(), net, load(t, hardware), 16, recipe, opt)
		return err
	}
	text := string(data)
	if err := run(text, net, "stcp920"); err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("the file has no %q", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	tile := tuned.Tasks[0].Layers[0].Nest[1]
	own := recipe
	recipe = searched(t, "graphturbo+ansor") // whose kernels are larger
	grouped := run(text, net, "stcp920")
	recipe = own
	for want, err := range map[string]error{
		"kernels is among them":           grouped,
		"none of the":                     run(text, open(t, "squeezenet"), "stcp920"),
		"as described then":               run(edit(tuned.Fingerprint, "0000000000000000"), net, "stcp920"),
		"kind is":                         run(edit(tuning.Kind, "something"), net, "stcp920"),
		"unknown field":                   run(edit(`"trials"`, `"trails"`), net, "stcp920"),
		"tasks[0].layers[0].nest: line 2": run(edit(tile, "for tile in none of 2"), net, "stcp920"),
		"there is room for":               run(edit(tile, "for tile in 2 of 9"), net, "stcp920"),
		"expected tuned kernels of":       run("[", net, "stcp920"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	opt.Tuned = &tuning.Tuned{}
	if err := json.Unmarshal([]byte(edit(tile, "for tile in none of 2")), opt.Tuned); err != nil {
		t.Fatal(err)
	}
	opt.Tuned.(*tuning.Tuned).Name = "tuned.json"
	if _, err := scheduler.Run(t.Context(), net, machine, 16, recipe, opt); err == nil ||
		!strings.Contains(err.Error(), "tuned.json: tasks[0]") {
		t.Errorf("%v, want the file's name", err)
	}
	opt.Tuned = nil
	other := tuning.Settings{Options: ansor.Options{Trials: 8, Seed: 2},
		Before: strings.NewReader("{}\n" + log.String()), Name: "trials.jsonl"}
	if _, err := tuning.Tune(t.Context(), []network.Network{net}, machine, 16, recipe, opt, other); err == nil ||
		!strings.Contains(err.Error(), `trials.jsonl: log: line 1 is of kind "" in version 0, expected "dsasched-trials"`) {
		t.Errorf("no log: %v", err)
	}
}

// A log is a data base: tunings with more trials, other seeds or of other networks begin with the best that it has, and
// none ends worse than that; what has been measured is measured once.
func TestLogOfTunings(t *testing.T) {
	machine, recipe, opt := load(t, "stcp920"), searched(t, "graphturbo+ansor"), scheduler.Options{Chunk: 2}
	toy, other := open(t, "toy-fig3"), open(t, "toy-fig3")
	other.Name = "other"
	var log bytes.Buffer
	best := map[string]float64{}
	for i, x := range []struct {
		net    network.Network
		seed   uint64
		trials int
		made   int // of them, now
	}{{toy, 1, 40, 40}, {toy, 1, 70, 30}, {toy, 2, 20, 20}, {other, 1, 5, 5}, {toy, 1, 70, 30}, {toy, 1, 30, 30}} {
		tuned, err := tuning.Tune(t.Context(), []network.Network{x.net}, machine, 16, recipe, opt, tuning.Settings{
			Options: ansor.Options{Trials: x.trials, Seed: x.seed}, Log: &log, Before: strings.NewReader(log.String())})
		if err != nil {
			t.Fatal(err)
		}
		if tuned.Trials != x.made {
			t.Errorf("tuning %d: %d trials, want %d", i, tuned.Trials, x.made)
		}
		for _, task := range tuned.Tasks {
			if old, ok := best[task.Task]; ok && task.Seconds > old || task.Seconds > task.RuleSeconds {
				t.Errorf("tuning %d: %s takes %v s, the log has %v, the rules %v", i, task.Name, task.Seconds,
					old, task.RuleSeconds)
			}
			best[task.Task] = task.Seconds
		}
	}
	// Lines that say of a kernel what it can't run are as if they were not there.
	edited := strings.NewReplacer(`"tiles":`, `"tiles":-1,"none":`, `"pieces":`, `"pieces":0,"none":`, `"depth":`,
		`"depth":0,"none":`).Replace(log.String())
	if _, err := tuning.Tune(t.Context(), []network.Network{toy}, machine, 16, recipe, opt, tuning.Settings{
		Options: ansor.Options{Trials: 10, Seed: 5}, Before: strings.NewReader(edited)}); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, line := range strings.Split(log.String(), "\n") {
		var x struct{ Task, Program string }
		if err := json.Unmarshal([]byte(line), &x); err == nil && x.Task != "" {
			if seen[x.Task+x.Program] {
				t.Errorf("%s: program %s is there twice", x.Task, x.Program)
			}
			seen[x.Task+x.Program] = true
		}
	}
	if len(seen) < 40+30+20+5+30/2 {
		t.Errorf("the log has %d programs", len(seen))
	}
}

// Logs of several seeds, networks and objectives are merged by writing one behind the other: what is tuned by them is
// no slower, kernel by kernel, than by any of them, whatever the seed and however few the trials; a network has kernels
// of others.
func TestMergedLogs(t *testing.T) {
	machine, recipe, opt := load(t, "stcp920"), searched(t, "ansor"), scheduler.Options{Chunk: 2}
	tune := func(name string, trials int, seed uint64, objective string, before ...string) (*tuning.Tuned, string) {
		t.Helper()
		var log bytes.Buffer
		tuned, err := tuning.Tune(t.Context(), []network.Network{open(t, name)}, machine, 16, recipe, opt,
			tuning.Settings{Options: ansor.Options{Trials: trials, Seed: seed, Objective: objective}, Log: &log,
				Before: strings.NewReader(strings.Join(before, ""))})
		if err != nil {
			t.Fatal(err)
		}
		return tuned, log.String()
	}
	best := func(tunings ...*tuning.Tuned) map[string]float64 {
		least := map[string]float64{}
		for _, tuned := range tunings {
			for _, x := range tuned.Tasks {
				if old, ok := least[x.Task]; !ok || x.Seconds < old {
					least[x.Task] = x.Seconds
				}
			}
		}
		return least
	}
	// shared is how many of the answer's kernels the others have.
	notWorse := func(what string, tuned *tuning.Tuned, least map[string]float64) (shared int) {
		t.Helper()
		for _, x := range tuned.Tasks {
			old, ok := least[x.Task]
			if ok {
				shared++
			}
			if ok && x.Seconds > old || x.Seconds > x.RuleSeconds {
				t.Errorf("%s: %s takes %v s, its logs have %v, the rules %v", what, x.Name, x.Seconds, old, x.RuleSeconds)
			}
		}
		return shared
	}
	for _, name := range []string{"toy-fig3", "resnet18"} {
		one, first := tune(name, 60, 1, "f1")
		two, second := tune(name, 60, 2, "f1")
		if first == second || reflect.DeepEqual(one.Tasks, two.Tasks) {
			t.Errorf("%s: two seeds make the same", name)
		}
		least := best(one, two)
		for seed := uint64(1); seed <= 3; seed++ {
			merged, _ := tune(name, 1, seed, "f1", first, second)
			if n := notWorse(name+" by two logs", merged, least); n != len(merged.Tasks) {
				t.Errorf("%s: its logs have %d of its %d kernels", name, n, len(merged.Tasks))
			}
			turned, _ := tune(name, 90, seed, "f1", second, first)
			notWorse(name+" by two logs, exchanged and extended", turned, least)
		}
		if name == "resnet18" {
			for seed := uint64(1); seed <= 2; seed++ {
				other, _ := tune("resnet34", 1, seed, "f2", second, first)
				if n := notWorse("resnet34 by logs of resnet18", other, least); n == 0 {
					t.Error("resnet34 has no kernel of resnet18")
				}
			}
		}
	}
}
