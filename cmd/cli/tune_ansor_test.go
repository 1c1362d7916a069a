package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/systems/ansor/tuning"
)

// What is no log keeps all that it has, a last line without an end, too; such a line of a log is made again. A tuning
// with another seed is appended.
func TestLogOfTrials(t *testing.T) {
	workspace(t)
	tune := []string{"tune", "toy-fig3", "--trials", "40", "--quiet", "--log", "trials.jsonl"}
	answer(t, tune...)
	log := file(t, "trials.jsonl")
	for _, c := range []struct{ has, seed, want string }{
		{log[:len(log)-9], "1", ""},
		{log[:20], "1", "line 1 has no end"},
		{"some\nother file", "1", "line 1: invalid character"},
	} {
		if err := os.WriteFile("trials.jsonl", []byte(c.has), 0o666); err != nil {
			t.Fatal(err)
		}
		r := call(t, append(tune, "--seed", c.seed)...)
		want := c.has
		if c.want == "" {
			want = log
		}
		if (r.status == exitOK) != (c.want == "") || !strings.Contains(r.stderr, c.want) || file(t, "trials.jsonl") != want {
			t.Errorf("%q: status %d, %q", c.want, r.status, r.stderr)
		}
	}
	if err := os.WriteFile("trials.jsonl", []byte(log), 0o666); err != nil {
		t.Fatal(err)
	}
	answer(t, append(tune, "--seed", "2")...)
	if both := file(t, "trials.jsonl"); !strings.HasPrefix(both, log) ||
		strings.Count(both, `"kind":"dsasched-trials"`) != 2 {
		t.Errorf("the log of two seeds is\n%s", both)
	}
}

// A tuned file says how its network was read and cut, so that its kernels are found again.
func TestExplainKernelOfOtherFlags(t *testing.T) {
	workspace(t)
	for _, flags := range []string{"bert-128 --grain primitive --trials 19",
		"resnet18 --variant graphturbo+ansor --batch 28 --chunk 7 --uneven none --trials 6"} {
		answer(t, strings.Fields("tune "+flags+" --quiet -o tuned.json")...)
		var tuned tuning.Tuned
		if err := json.Unmarshal([]byte(file(t, "tuned.json")), &tuned); err != nil {
			t.Fatal(err)
		}
		for _, x := range tuned.Tasks {
			answer(t, "explain-kernel", "tuned.json", "--task", x.Task)
		}
	}
}

// By f2, a network that is fast enough gets no more trials: the other one ends faster.
// What a limit allowed is an answer; less than listing the kernels takes is none.
func TestTuneEnds(t *testing.T) {
	for _, early := range []string{"--time-limit 1s", "--patience 60"} {
		r := call(t, strings.Fields("tune squeezenet --trials 1000000 --json "+early)...)
		var tuned struct{ Trials int }
		if err := json.Unmarshal([]byte(r.stdout), &tuned); r.status != 0 || err != nil || tuned.Trials == 0 ||
			tuned.Trials >= 1000000 {
			t.Errorf("%s: status %d, %d trials, %v, %s", early, r.status, tuned.Trials, err, r.stderr)
		}
	}
	if r := call(t, strings.Fields("tune squeezenet --time-limit 1ns")...); r.status != exitFailure ||
		!strings.Contains(r.stderr, "--time-limit of 1ns: found no kernel") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
}

func TestEnough(t *testing.T) {
	tune := func(enough string) (list []float64) {
		var tuned tuning.Tuned
		if err := json.Unmarshal([]byte(answer(t, "tune", "toy-fig3", "squeezenet", "--trials", "300", "--objective", "f2",
			"--enough", enough, "--quiet", "--json")), &tuned); err != nil {
			t.Fatal(err)
		}
		for _, n := range tuned.Result {
			list = append(list, n.Seconds)
		}
		return list
	}
	if a, b := tune("1s,1us"), tune("1us,1s"); a[0] <= b[0] || a[1] >= b[1] {
		t.Errorf("%v where the first is fast enough, %v where the second is", a, b)
	}
	for _, args := range []string{"--enough 3ms", "--objective f2 --enough 3ms,2ms", "--objective f2 --enough 0s"} {
		if r := call(t, append([]string{"tune", "toy-fig3"}, strings.Fields(args)...)...); r.status != exitUsage ||
			!strings.Contains(r.stderr, "expected a time above 0 for each of 1 network, and --objective f2") {
			t.Errorf("%s: status %d, %q", args, r.status, r.stderr)
		}
	}
}

// Of a schedule's file, explain-kernel lists each distinct product and attention once, and shows one by its number or
// its layer's name: its buffers have room, nothing is busy for longer than it takes, and what must cross the DDR does.
func TestKernelsOfSchedule(t *testing.T) {
	workspace(t)
	answer(t, "schedule", "sd-attention", "--batch", "4", "--chunk", "1", "--quiet", "-o", "sd.json")
	list := func(args ...string) (a scheduledJSON) {
		if err := json.Unmarshal([]byte(answer(t, append([]string{"explain-kernel", "sd.json", "--json"}, args...)...)),
			&a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	all := list()
	forms := map[string]int{}
	for i, k := range all.Kernels {
		forms[k.Form] += k.Steps
		sum := int64(0)
		for _, b := range k.Buffers {
			sum += b.Bytes
		}
		if sum > k.L1Bytes || k.Seconds <= 0 || k.Accesses.DDR <= 0 || len(k.Nest) < 4 {
			t.Errorf("%+v: expected a nest of at most its room, that takes some time", k)
		}
		for _, u := range k.Uses {
			if u.Seconds > k.Seconds*1.0001 {
				t.Errorf("%s: %+v of %g s", k.Layer, u, k.Seconds)
			}
		}
		for _, name := range []string{fmt.Sprint(i), k.Layer} {
			if i > 1 && i < len(all.Kernels)-1 {
				break // each call lowers all kernels
			}
			if one := list("--task", name); len(one.Kernels) != 1 || one.Kernels[0].Layer != k.Layer {
				t.Errorf("--task %s: %+v, expected %s", name, one.Kernels, k.Layer)
			}
		}
		text := answer(t, "explain-kernel", "sd.json", "--task", fmt.Sprint(i))
		for _, want := range append(k.Nest, "in the L1 of each core", "matrix unit", k.Limit) {
			if !strings.Contains(text, strings.TrimSpace(want)) {
				t.Errorf("%s: no %q in\n%s", k.Layer, want, text)
			}
		}
	}
	if forms["attention"] != 1 {
		t.Errorf("forms %v, expected an attention", forms)
	}
	if r := call(t, "explain-kernel", "sd.json", "--task", "nothing"); r.status != exitUsage ||
		!strings.Contains(r.stderr, `--task is "nothing", expected a layer among the`) {
		t.Errorf("status %d, %q", r.status, r.stderr)
	}
}
