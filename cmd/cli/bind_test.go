//go:build cgo

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/scheduler/answers"
)

func bindAnswer(t *testing.T, args string) answers.AloneBinding {
	t.Helper()
	out := answer(t, append([]string{"solve", "bind", "--json", "--quiet"}, strings.Fields(args)...)...)
	a := decode[answers.AloneBinding](t, out)
	if a.Bound > a.Objective || a.Objective > a.Greedy || a.Gap == nil || *a.Gap < 0 || a.Seconds < 0 ||
		a.ThroughputPerSecond == nil || a.GreedyThroughputPerSecond == nil {
		t.Errorf("%s: bound %g, objective %g, greedy %g, gap %v, throughput %v", args, a.Bound, a.Objective, a.Greedy, a.Gap,
			a.ThroughputPerSecond)
	}
	return a
}

func TestBind(t *testing.T) {
	workspace(t)
	greedy := bindAnswer(t, "bert-128 --batch 32 --method greedy")
	if greedy.Status != "feasible" || greedy.Objective != greedy.Greedy || len(greedy.Changes) != 0 ||
		*greedy.ThroughputPerSecond != *greedy.GreedyThroughputPerSecond {
		t.Errorf("greedy: %+v", greedy)
	}
	search := bindAnswer(t, "bert-128 --batch 32")
	ilp := bindAnswer(t, "bert-128 --batch 32 --method ilp --time-limit 5m")
	for _, a := range []answers.AloneBinding{search, ilp} {
		if a.Status != "optimal" || a.Stop != "complete" || a.Greedy != greedy.Objective ||
			math.Abs(a.Objective-search.Objective) > 1e-9 || greedy.Bound > a.Objective {
			t.Errorf("%s: %+v; greedy %g, bound %g", a.Method, a, greedy.Objective, greedy.Bound)
		}
		if len(a.Changes) == 0 || *a.ThroughputPerSecond <= *a.GreedyThroughputPerSecond {
			t.Errorf("%s: %d changes, %v instead of %v per second", a.Method, len(a.Changes), *a.ThroughputPerSecond,
				*a.GreedyThroughputPerSecond)
		}
		for _, c := range a.Changes {
			if slices.Equal(c.Binding, c.Was.Binding) && c.Scope == c.Was.Scope || len(c.Binding) != len(c.Output) ||
				len(c.Binding) == 0 {
				t.Errorf("%s: no change: %+v", a.Method, c)
			}
		}
	}
	in := bindAnswer(t, "bert-128 --batch 32 --in-place")
	if in.Objective != in.Greedy || in.Status != "optimal" {
		t.Errorf("in place: %+v", in)
	}
}

// 'solve bind' and 'solve split' simulate greedy with the same pieces as 'schedule' does. Where clusters have unequal
// shares of the batch, they simulate nothing and print the shares.
func TestAlone(t *testing.T) {
	workspace(t)
	args := "toy-fig5 --hardware stcp920-paper --batch 32 --chunk 8"
	out := answer(t, append(strings.Fields("schedule "+args), "--variant", "cross-layer", "--json", "--quiet")...)
	want := decode[answers.Report](t, out).ThroughputPerSecond
	args += " --method greedy"
	for decision, greedy := range map[string]*float64{"bind": bindAnswer(t, args).GreedyThroughputPerSecond,
		"split": splitAnswer(t, args).GreedyThroughputPerSecond} {
		out := answer(t, "solve", decision, "net.onnx", "--batch", "5")
		if !strings.Contains(out, "not simulated: the clusters' shares [2 1 1 1]") || *greedy != want {
			t.Errorf("%s: greedy is %v per second, expected %v; got %s", decision, *greedy, want, out)
		}
	}
}

func TestBindExport(t *testing.T) {
	workspace(t)
	for file, want := range map[string]string{"model.lp": "end\n"} {
		answer(t, "solve", "bind", "resnet50", "--batch", "8", "--export", file)
		data, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(data), want) || !strings.Contains(string(data), "_1__one_label_0_") {
			t.Errorf("%s: %v, %d bytes", file, err, len(data))
		}
	}
	// The problem itself can be read back, and the method finds in it what it says.
	var a struct{ Objective, Greedy float64 }
	got := answer(t, "solve", "bind", "resnet50", "--batch", "8", "--export", "problem.json", "--json")
	if err := json.Unmarshal([]byte(strings.Replace(got, "greedy_objective", "greedy", 1)), &a); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("problem.json")
	if err != nil {
		t.Fatal(err)
	}
	p, given, err := binding.Read("problem.json", data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := binding.Solve(t.Context(), p, "search", binding.Options{})
	rounded := 1e-9 * float64(len(p.Nodes)+len(p.Edges))
	if err != nil || math.Abs(r.Objective*1e-9-a.Objective) > rounded ||
		math.Abs(p.Seconds(given)*1e-9-a.Greedy) > rounded {
		t.Errorf("%+v, %v; the command says %+v", r, err, a)
	}
}

// cancelWriter cancels on what it is first given to write.
type cancelWriter struct {
	bytes.Buffer
	cancel func()
}

func (w *cancelWriter) Write(p []byte) (int, error) {
	w.cancel()
	return w.Buffer.Write(p)
}

// An interrupt during the solve gives the best choice so far.
func TestBindInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hurry(t)
	var stdout bytes.Buffer
	stderr := &cancelWriter{cancel: cancel}
	err := execute(ctx, &stdout, stderr, []string{"solve", "bind", "swin-t", "--batch", "16", "--method", "ilp", "--json"},
		fakeExperiment)
	if stderr.Len() == 0 {
		t.Skip("skipped: this solver was done before it had anything to report")
	}
	if status := report(stderr, err); status != exitInterrupted {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	var a answers.AloneBinding
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		t.Fatalf("%v: %q", err, &stdout)
	}
	if a.Bound > a.Objective || a.Objective > a.Greedy || a.ThroughputPerSecond != nil || len(a.Notes) != 1 ||
		!strings.HasPrefix(stderr.String(), "ilp: best ") {
		t.Errorf("got %+v, stderr %q", a, stderr)
	}
	r := callContext(t, ctx, "solve", "bind", "resnet50")
	if r != (result{"", "dsasched: interrupted\n", exitInterrupted}) {
		t.Errorf("%+v", r)
	}
}
