package experiments

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/internal/report"
	"github.com/dsasched/dsasched/plots/page"
)

func TestRunArguments(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	err := Run(context.Background(), []string{"ablation", "ablatoin"}, harness.Options{Out: out})
	if want := `unknown experiment "ablatoin" (did you mean ablation?)`; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if err := Run(context.Background(), []string{"ablation"}, harness.Options{Out: out, Workers: -1}); err == nil ||
		err.Error() != "workers is -1, expected 0 or more" {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Error("something was written before the arguments were checked")
	}
}

func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Names() {
		e, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if e.Name != name || e.Description == "" || e.Paper == "" || e.Plan == nil || seen[name] {
			t.Errorf("%q is not as it should be: %+v", name, e)
		}
		seen[name] = true
	}
	if len(All()) != len(seen) {
		t.Errorf("All has %d experiments, Names %d", len(All()), len(seen))
	}
}

// A run leaves both reports behind, the same for any number of workers and after a
// second run, with the figures and tables of a real experiment and what made them.
func TestRunWritesThePage(t *testing.T) {
	e, err := Lookup("fig5")
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, workers := range []int{1, 2} {
		dir := t.TempDir()
		for range 2 {
			if err := e.Run(context.Background(),
				harness.Options{Out: dir, Workers: workers, SolverVersion: "S 1"}); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "report.html"))
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, string(data))
		}
	}
	for _, p := range pages[1:] {
		if p != pages[0] {
			t.Error("another page")
		}
	}
	open, err := page.Unpack([]byte(pages[0]))
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{`<section id="fig5"`: 1, "<svg ": 2, ">Sub-graphs in the end": 4,
		"<h4>The paper's claims beside ours</h4>": 1, "<summary>Accelerator stcp920": 1, "<td>S 1</td>": 1} {
		if got := strings.Count(string(open), want); got != n {
			t.Errorf("%q is there %d times, want %d", want, got, n)
		}
	}
}

func TestNoExact(t *testing.T) {
	err := Run(context.Background(), []string{"optimality"}, harness.Options{Out: t.TempDir(), NoExact: true})
	if err == nil || !strings.Contains(err.Error(), "optimality") {
		t.Errorf("optimality without exact methods: %v", err)
	}
}

// The names of the paper's figures and tables lead to the experiments that hold them, and are nobody else's.
func TestOtherNames(t *testing.T) {
	names := Names()
	for _, e := range All() {
		for _, also := range e.Also {
			got, err := Lookup(also)
			if err != nil || got.Name != e.Name || slices.Contains(names, also) {
				t.Errorf("%s is %s (%v), want %s", also, got.Name, err, e.Name)
			}
			names = append(names, also)
		}
	}
	if both, err := Select([]string{"fig6", "fig7", "fig3"}, Options{}); err != nil || len(both) != 1 {
		t.Errorf("%d experiments (%v), want one", len(both), err)
	}
}

// whole reports whether all systems with experiments are there (scripts/without.sh takes them off).
func whole() bool {
	return !slices.ContainsFunc([]string{"ansor", "astitchgpu", "measured", "mofang"}, func(name string) bool {
		_, err := os.Stat(filepath.Join("..", "systems", name))
		return err != nil
	})
}

// Each experiment is in one chapter of the report, and chapters name experiments that are
// there.
func TestChapters(t *testing.T) {
	for _, name := range Names() {
		var in []string
		for _, c := range report.Chapters {
			if c.Has(name) {
				in = append(in, c.Name)
			}
		}
		if len(in) != 1 {
			t.Errorf("%s is in chapters %q, want one", name, in)
		}
	}
	for _, c := range report.Chapters {
		for _, e := range c.Experiments {
			if whole() && !slices.ContainsFunc(Names(),
				func(name string) bool { return report.Chapter{Experiments: []string{e}}.Has(name) }) {
				t.Errorf("chapter %s has %s, of which there is no experiment", c.Name, e)
			}
		}
	}
}

// The costs by which a run says how long it takes are known of each experiment, and a run without names takes at most
// ten minutes on two processors, one of everything ninety.
func TestCosts(t *testing.T) {
	sum := func(opt Options) (seconds float64) {
		list, err := Select(nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if c := e.Cost; c.Quick <= 0 || c.Full < c.Quick {
				t.Errorf("%s: costs %+v", e.Name, c)
			}
			if opt.Full {
				seconds += e.Cost.Full
			} else {
				seconds += e.Cost.Quick
			}
		}
		return seconds
	}
	if quick := sum(Options{}); quick > 20*60 {
		t.Errorf("without names %g processor seconds", quick)
	}
	if all := sum(Options{Full: true}); all > 180*60 {
		t.Errorf("all %g processor seconds", all)
	}
	if lines := strings.Count(costsFile, "\n"); whole() && lines != len(Names())+1 {
		t.Errorf("costs.csv has %d lines, there are %d experiments", lines, len(Names()))
	}
}
