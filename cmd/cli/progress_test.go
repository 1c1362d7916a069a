package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

// still is a clock on which no time passes, so that progress is shown where a test asks for
// it and not where the machine is busy.
func still() time.Time { return time.Unix(0, 0) }

// hurry gives statuses a clock on which an hour passes between any two looks, so
// that they show everything.
func hurry(t *testing.T) {
	t.Helper()
	var looks atomic.Int64
	clock = func() time.Time { return time.Unix(3600*looks.Add(1), 0) }
	t.Cleanup(func() { clock = still })
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		want     string
	}{
		{"file", false, "b\nnotice\nd\n"},
		{"terminal", true, "\rb\x1b[K\r\x1b[Knotice\n\rc\x1b[K\rd, which… the line\x1b[K\r\x1b[K"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			now := time.Unix(0, 0)
			s := &status{w: &b, terminal: c.terminal, width: func() int { return 19 },
				now: func() time.Time { return now }, last: now}
			s.line("a") // at once
			now = now.Add(3 * time.Second)
			s.line("b")
			s.Write([]byte("notice\n"))
			now = now.Add(time.Second)
			s.line("c")
			now = now.Add(time.Second)
			if c.terminal {
				s.line("d, which is longer than the line")
			} else {
				s.line("d")
			}
			s.end()
			now = now.Add(time.Hour)
			s.line("after the end")
			s.end()
			if b.String() != c.want {
				t.Errorf("%q, want %q", b.String(), c.want)
			}
		})
	}
	var quiet *status
	quiet.line("a")
	quiet.cells(experiments.Progress{})
	quiet.end()
	if quiet.solve("x", decimal) != nil || quiet.decision() != nil {
		t.Error("a quiet status wants reports")
	}
}

func TestStatusTexts(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct{ got, want string }{
		{cellsText(experiments.Progress{Total: 9, Running: []string{"a"}, LeftSeconds: -1}),
			"0 of 9 done in 0 s, running: a"},
		{cellsText(experiments.Progress{Name: "fig14", Done: 2, Total: 9, Running: []string{"a", "b\x1b"}, Seconds: 61,
			LeftSeconds: 214}),
			"fig14: 2 of 9 done in 61 s, about 4 min left, running: a; b?"},
		{cellsText(experiments.Progress{Done: 9, Total: 9, Seconds: 5400}), "9 of 9 done in 1 h 30 min"},
		{solveText("order", milp.Progress{Objective: 8, Bound: 6, Seconds: 3}, decimal),
			"order: best 8, bound 6, gap 33.3 % after 3 s"},
		{solveText("order", milp.Progress{Objective: 8, Seconds: 3}, decimal),
			"order: best 8, bound 0, gap unknown after 3 s"},
		{solveText("ilp", milp.Progress{Objective: inf, Bound: 6, Seconds: 3}, decimal),
			"ilp: best none, bound 6, gap unknown after 3 s"},
		{solveText("ilp", milp.Progress{Objective: 5, Bound: -inf}, decimal),
			"ilp: best 5, bound none, gap unknown after 0 s"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// Long work reports its progress, line by line where stderr is no terminal, and
// says nothing with --quiet. The answer is the same.
func TestProgressOfCommands(t *testing.T) {
	workspace(t)
	hurry(t)
	for _, c := range []struct{ args, want string }{
		{"sweep net.onnx --set batch=4,8 --json", "running: "},
		{"compare-hardware net.onnx --hardware stcp920,ipu --json", "running: "},
		{"compare toy-fig3 --batch 16 --decision order", ", running: order"},
		{"schedule toy-fig3 --batch 32 --chunk 8 --bind search --json", "bind: best "},
		{"schedule toy-fig3 --batch 32 --chunk 8 --split search --json", "split: best "},
		{"solve bind toy-fig3 --batch 32", "search: best "},
		{"solve split toy-fig3 --batch 32", ""},
		{"solve order chain.json", "search: best 6, bound "},
		{"solve allocate buffers.csv --minimize", "search: best "},
	} {
		loud, quiet := call(t, strings.Fields(c.args)...), call(t, append(strings.Fields(c.args), "--quiet")...)
		if strings.Contains(loud.stderr, "best 0 B, bound 0 B") {
			t.Errorf("%s: a time is shown as bytes: %q", c.args, loud.stderr)
		}
		if loud.status != exitOK || !strings.Contains(loud.stderr, c.want) || strings.Contains(loud.stderr, "\x1b") {
			t.Errorf("%s: status %d, stderr %q, want %q", c.args, loud.status, loud.stderr, c.want)
		}
		if quiet.stderr != "" || quiet.status != exitOK {
			t.Errorf("%s --quiet: status %d, stderr %q", c.args, quiet.status, quiet.stderr)
		}
		if strings.HasSuffix(c.args, "--json") && quiet.stdout != loud.stdout {
			t.Errorf("%s: --quiet changes the answer", c.args)
		}
	}
}

// The files of a sweep say the same as its answer, for any number of workers.
func TestSweepFiles(t *testing.T) {
	workspace(t)
	args := strings.Fields("sweep net.onnx --set hardware.llb_bytes=*0.5,*1,*2 --set batch=4,8 " +
		"--set variant=tvm,cross-layer --csv s.csv -o s.svg --quiet --json")
	first := map[string]string{}
	for _, workers := range []string{"1", "3"} {
		var a struct {
			Points, Finished int
			Rows             []json.RawMessage
		}
		if err := json.Unmarshal([]byte(answer(t, append(args, "--workers", workers)...)), &a); err != nil {
			t.Fatal(err)
		}
		if a.Points != 12 || a.Finished != 12 || len(a.Rows) != 12 {
			t.Errorf("%d points, %d finished, %d rows, want 12", a.Points, a.Finished, len(a.Rows))
		}
		for _, name := range []string{"s.csv", "s.svg"} {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if old, ok := first[name]; ok && old != string(data) {
				t.Errorf("%s differs with %s workers", name, workers)
			}
			first[name] = string(data)
		}
		rows, err := csv.NewReader(strings.NewReader(first["s.csv"])).ReadAll()
		if err != nil || len(rows) != 13 {
			t.Fatalf("%d rows of CSV, %v", len(rows), err)
		}
		for i, raw := range a.Rows {
			var row struct {
				Settings   map[string]string
				Throughput float64 `json:"throughput_per_s"`
			}
			if err := json.Unmarshal(raw, &row); err != nil {
				t.Fatal(err)
			}
			at := func(column string) string { return rows[i+1][slices.Index(rows[0], column)] }
			inCSV, err := strconv.ParseFloat(at("throughput_per_s"), 64)
			if err != nil || inCSV != row.Throughput || row.Throughput <= 0 {
				t.Errorf("row %d: %g per second, in CSV %s (%v)", i, row.Throughput, at("throughput_per_s"), err)
			}
			for _, key := range []string{"hardware.llb_bytes", "batch", "variant"} {
				if row.Settings[key] != at(key) {
					t.Errorf("row %d: %s is %s, in CSV %s", i, key, row.Settings[key], at(key))
				}
			}
		}
		if !strings.Contains(first["s.svg"], ">16MiB<") {
			t.Error("the figure does not have the largest LLB at its axis")
		}
	}
}

// A point of a sweep is what schedule says.
func TestSweepIsSchedule(t *testing.T) {
	workspace(t)
	var s struct {
		Throughput float64 `json:"throughput_per_s"`
	}
	if err := json.Unmarshal(
		[]byte(
			answer(t, strings.Fields("schedule toy-fig5 --batch 8 --variant ordering --order dfs --bind greedy --json")...)),
		&s); err != nil {
		t.Fatal(err)
	}
	var a struct {
		Rows []struct {
			Variant    string
			Throughput float64 `json:"throughput_per_s"`
		}
	}
	if err := json.Unmarshal(
		[]byte(answer(t, strings.Fields(
			"sweep toy-fig5 --set batch=8 --set variant=ordering --set order=dfs --set bind=alg4 --json")...)), &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Rows) != 1 || math.Abs(a.Rows[0].Throughput-s.Throughput) > 1e-6*s.Throughput ||
		a.Rows[0].Variant != "ordering+order=dfs" {
		t.Errorf("%+v, schedule says %g per second", a.Rows, s.Throughput)
	}
}

// Ctrl-C prints what is finished, with no file touched.
func TestSweepInterrupted(t *testing.T) {
	workspace(t)
	hurry(t)
	if err := os.WriteFile("s.csv", []byte("old\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &cancelAfter{text: "3 of 8 done", cancel: cancel}
	err := execute(ctx, &stdout, stderr,
		strings.Fields("sweep net.onnx --set batch=1,2,3,4,5,6,7,8 --workers 1 --csv s.csv"), fakeExperiment)
	if status := report(stderr, err); status != exitInterrupted {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	out := stdout.String()
	if !strings.Contains(out, "of 8 points are finished; no file is written") || !strings.Contains(out, "\n 1 ") ||
		strings.Contains(out, "\n 8 ") {
		t.Errorf("stdout %q", out)
	}
	if data, err := os.ReadFile("s.csv"); err != nil || string(data) != "old\n" {
		t.Errorf("s.csv is %q, %v", data, err)
	}
	if files := fileNames(t); slices.ContainsFunc(files, func(n string) bool { return strings.HasSuffix(n, ".tmp") }) {
		t.Errorf("files %q", files)
	}
}

// cancelAfter cancels once a text was written.
type cancelAfter struct {
	bytes.Buffer
	text   string
	cancel func()
}

func (w *cancelAfter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.cancel()
	}
	return w.Buffer.Write(p)
}

// Points without a schedule are told below the table; if there are no others, the
// command fails.
func TestSweepOfWhatDoesNotFit(t *testing.T) {
	workspace(t)
	out := answer(t, strings.Fields("sweep toy-fig5 --set hardware=stcp920,tiny.yaml --set batch=4 --quiet")...)
	if !strings.Contains(out, "(1) no schedule: ") || !strings.Contains(out, "not even one tile fits") ||
		!strings.Contains(out, " none ") {
		t.Errorf("stdout %q", out)
	}
	r := call(t, strings.Fields("sweep toy-fig5 --set hardware=tiny.yaml --set batch=4 --set hardware.launch=*1,*2 -q")...)
	if strings.Count(r.stdout, "(1)") != 3 || strings.Contains(r.stdout, "(2)") {
		t.Errorf("one reason of two rows is told otherwise than once:\n%s", r.stdout)
	}
	out = answer(t, strings.Fields("sweep toy-fig5 --set batch=4 --set hardware.ddr.size=1KiB,1GiB --quiet")...)
	if strings.Count(out, "(1)") != 2 || !strings.Contains(out, "(1) the DDR is too small") {
		t.Errorf("one of two rows has too small a DDR:\n%s", out)
	}
	out = answer(t, strings.Fields("schedule toy-fig5 --hardware stcp920x4 --clusters pipeline --variant l1 --quiet")...)
	if _, row, _ := strings.Cut(out, "\nclusters "); strings.Index(row, "\n") > lineWidth {
		t.Errorf("the row of clusters is wider than %d:\n%s", lineWidth, out)
	}
	r = call(t, strings.Fields("compare-hardware toy-fig5 --hardware tiny.yaml --batch 4 --quiet --csv chips.csv")...)
	if r.status != exitFailure || !strings.HasPrefix(r.stderr, "dsasched: no point has a schedule: ") ||
		!strings.Contains(r.stdout, "(1) no schedule") {
		t.Errorf("%+v", r)
	}
	if data, err := os.ReadFile("chips.csv"); err != nil || !strings.Contains(string(data), "not even one tile fits") {
		t.Errorf("chips.csv is %q, %v", data, err)
	}
}

// Every strategy can be asked for on the command line; what needs HiGHS says so
// where there is none. The default stays where all of its recipes have the strategy, or it decides nothing on the chip.
func TestDecisionFlags(t *testing.T) {
	workspace(t)
	usual, err := recipes.Lookup(recipes.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range scheduler.Choices() {
		for _, s := range d.Strategies {
			args := []string{"schedule", "net.onnx", "--batch", "8", "--chunk", "2", "--" + d.Name, s.Name, "--json"}
			r := call(t, args...)
			if s.NeedsSolver && r.status == exitFailure && strings.Contains(r.stderr, "needs an integer-programming solver: ") {
				continue
			}
			var a answers.Report
			if err := json.Unmarshal([]byte(r.stdout), &a); err != nil || r.status != exitOK || r.stderr != "" {
				t.Errorf("%q: %v, status %d, stderr %q", args, err, r.status, r.stderr)
			}
			if usual.Has(scheduler.Pick{Stage: d.Name, Strategy: s.Name}) || d.Name == "kinds" {
				if a.Variant != usual.Name {
					t.Errorf("%q: the variant is called %q, expected %q", args, a.Variant, usual.Name)
				}
			} else if !strings.HasPrefix(a.Variant, "cross-layer") ||
				strings.Contains(a.Variant, "+") && a.Variant != "cross-layer+"+d.Name+"="+s.Name {
				t.Errorf("%q: the variant is called %q", args, a.Variant)
			}
		}
	}
}

func TestFit(t *testing.T) {
	header := []string{"name", "n", "description"}
	rows := [][]string{{"a", "123456", "some words that are too long"}, {"a-name-of-fifteen", "1", "short"}}
	width := func(rows [][]string) int {
		var b bytes.Buffer
		writeTable(&b, "lrl", header, rows)
		most := 0
		for line := range strings.Lines(b.String()) {
			most = max(most, len([]rune(strings.TrimRight(line, "\n"))))
		}
		return most
	}
	whole := width(rows)
	for w := whole + 3; w >= 35; w-- {
		fitted := fit("lrl", header, rows, w)
		if got := width(fitted); got > w {
			t.Errorf("%d wide, want at most %d", got, w)
		}
		var description []string
		at := 0
		for ; at == 0 || fitted[at][0] == ""; at++ {
			description = append(description, fitted[at][2])
		}
		if fitted[0][1] != "123456" || strings.Join(description, " ") != rows[0][2] ||
			w > 40 && fitted[at][0] != rows[1][0] || fitted[at][2] != "short" {
			t.Errorf("%d wide: %q", w, fitted)
		}
	}
	if got := fit("lrl", header, rows, 0); got[0][2] != rows[0][2] {
		t.Error("a table is shortened where nobody says how wide it may be")
	}
	if got := fit("lrl", header, rows, 1); len([]rune(got[0][2])) < 8 {
		t.Errorf("a cell has become %q", got[0][2])
	}
}

// COLUMNS counts for tables; without a terminal there is no colour in any case.
func TestColumns(t *testing.T) {
	long := answer(t, "variants")
	t.Setenv("COLUMNS", "60")
	short := answer(t, "variants")
	if !strings.Contains(short, "…") {
		t.Errorf("%q", short)
	}
	for line := range strings.Lines(short) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 {
			t.Errorf("%d characters: %q", n, line)
		}
	}
	t.Setenv("COLUMNS", "sixty")
	if got := answer(t, "variants"); got != long || strings.Contains(got, "\x1b") {
		t.Errorf("%q, want %q", got, long)
	}
}
