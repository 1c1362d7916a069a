package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fake is an experiment of n cells that are computed at once. Each counts in runs;
// before, if any, is called first and may fail.
func fake(n int, runs *atomic.Int64, before func(ctx context.Context, i int) error) Experiment {
	return Experiment{Name: "fake", Plan: func() (*Plan, error) {
		p := &Plan{Report: func(results []json.RawMessage) (*Report, error) {
			var b bytes.Buffer
			for i, r := range results {
				fmt.Fprintf(&b, "%d %s\n", i, r)
			}
			return &Report{Text: b.String(), Files: []File{{"fake.txt", b.Bytes()}}}, nil
		}}
		for i := range n {
			p.Cells = append(p.Cells, Cell{
				Key: fmt.Sprintf("cell-%d", i), Label: fmt.Sprintf("cell %d", i), Inputs: map[string]int{"i": i},
				Run: func(ctx context.Context) (any, error) {
					if before != nil {
						if err := before(ctx, i); err != nil {
							return nil, err
						}
					}
					runs.Add(1)
					return map[string]any{"square": i * i, "third": float64(i) / 3, "text": "a<b>&é"}, nil
				},
			})
		}
		return p, nil
	}}
}

func TestAnyNumberOfWorkers(t *testing.T) {
	var runs atomic.Int64
	var want map[string]string
	var wantText string
	for _, workers := range []int{1, 2, 7, 100} {
		dir := t.TempDir()
		var out bytes.Buffer
		// The later a cell begins, the earlier it ends.
		e := fake(20, &runs, func(_ context.Context, i int) error {
			time.Sleep(time.Duration(20-i) * 100 * time.Microsecond)
			return nil
		})
		if err := e.Run(context.Background(), Options{Out: dir, Workers: workers, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		got := tree(t, dir)
		if want == nil {
			want, wantText = got, out.String()
		}
		sameTree(t, got, want)
		if out.String() != wantText {
			t.Errorf("%d workers print\n%s\nwant\n%s", workers, out.String(), wantText)
		}
	}
	if len(want) != 22 {
		t.Errorf("%d files, want 20 cells, a report and where it comes from", len(want))
	}
	if runs.Load() != 80 {
		t.Errorf("%d cells were computed, want 80", runs.Load())
	}
}

func TestFinishedCellsAreNotComputedAgain(t *testing.T) {
	var runs atomic.Int64
	dir := t.TempDir()
	e := fake(5, &runs, nil)
	var first bytes.Buffer
	if err := e.Run(context.Background(), Options{Out: dir, Stdout: &first}); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	var second, progress bytes.Buffer
	if err := e.Run(context.Background(), Options{Out: dir, Stdout: &second, Stderr: &progress}); err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 5 {
		t.Errorf("%d cells were computed, want 5", runs.Load())
	}
	sameTree(t, tree(t, dir), before)
	if first.String() != second.String() {
		t.Errorf("printed\n%s\nwant\n%s", second.String(), first.String())
	}
	if want := "fake: 5 of 5 cells were finished before\nfake: 1 files in " + filepath.Join(dir, "fake") +
		"\n"; progress.String() != want {
		t.Errorf("progress is %q, want %q", progress.String(), want)
	}
}

func TestInterrupted(t *testing.T) {
	for _, workers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			var runs atomic.Int64
			whole := t.TempDir()
			if err := fake(8, &runs, nil).Run(context.Background(), Options{Out: whole}); err != nil {
				t.Fatal(err)
			}

			dir := t.TempDir()
			ctx, cancel := context.WithCancel(context.Background())
			runs.Store(0)
			e := fake(8, &runs, func(ctx context.Context, i int) error {
				if i == 4 {
					cancel()
				}
				return ctx.Err()
			})
			var out bytes.Buffer
			err := e.Run(ctx, Options{Out: dir, Workers: workers, Stdout: &out})
			var stop *InterruptedError
			if !errors.As(err, &stop) || !errors.Is(err, context.Canceled) {
				t.Fatalf("error is %v, want an InterruptedError", err)
			}
			done := stop.Done // with one worker all that ran: others may be under way at the end
			if most := int(runs.Load()); done > most || workers == 1 && done < most || stop.Total != 8 || done < 2 ||
				done > 7 {
				t.Errorf("%d of %d cells are finished, %d were", stop.Done, stop.Total, most)
			}
			want := fmt.Sprintf(
				"interrupted: %d of 8 cells of fake are finished and kept in %s; run the same command again to go on from there",
				done, dir)
			if err.Error() != want {
				t.Errorf("error is %q, want %q", err, want)
			}
			if out.Len() != 0 {
				t.Errorf("printed %q, want nothing", out.String())
			}
			left := tree(t, dir)
			if len(left) != done {
				t.Errorf("%d files are left, want the %d finished cells: %v", len(left), done, left)
			}
			for name, data := range left {
				if data != tree(t, whole)[name] {
					t.Errorf("%s is not as it should be", name)
				}
			}

			runs.Store(0)
			var progress bytes.Buffer
			if err := fake(8, &runs, nil).Run(context.Background(),
				Options{Out: dir, Workers: workers, Stderr: &progress}); err != nil {
				t.Fatal(err)
			}
			if int(runs.Load()) != 8-done {
				t.Errorf("%d cells were computed, want the missing %d", runs.Load(), 8-done)
			}
			if want := fmt.Sprintf("fake: %d of 8 cells were finished before\nfake: %d/8 cell ", done,
				done+1); !strings.HasPrefix(progress.String(), want) {
				t.Errorf("progress is %q, want it to begin with %q", progress.String(), want)
			}
			sameTree(t, tree(t, dir), tree(t, whole))
			times := readTiming(filepath.Join(dir, "fake", "timing.csv"))
			if len(times) != 8 {
				t.Errorf("there are times of %d cells, want 8", len(times))
			}
		})
	}
}

func TestInterruptedBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var runs atomic.Int64
	var stop *InterruptedError
	if err := fake(3, &runs, nil).Run(ctx, Options{Out: t.TempDir()}); !errors.As(err, &stop) {
		t.Errorf("error is %v, want an InterruptedError", err)
	}
	if runs.Load() != 0 {
		t.Errorf("%d cells were computed, want none", runs.Load())
	}
}

func TestBadCellsAreComputedAnew(t *testing.T) {
	edit := func(change func(f *cellFile)) func([]byte) []byte {
		return func(data []byte) []byte {
			var f cellFile
			if err := json.Unmarshal(data, &f); err != nil {
				panic(err)
			}
			change(&f)
			data, err := json.Marshal(f)
			if err != nil {
				panic(err)
			}
			return data
		}
	}
	for _, test := range []struct {
		name   string
		damage func([]byte) []byte
		notice string // "" if it is none of a damaged file
	}{
		{"empty", func([]byte) []byte { return nil }, "damaged"},
		{"truncated", func(d []byte) []byte { return d[:len(d)/2] }, "damaged"},
		{"garbage", func([]byte) []byte { return []byte("\x00\x01\x02") }, "damaged"},
		{"another type", func([]byte) []byte { return []byte(`[1, 2]`) }, "damaged"},
		{"another result", edit(func(f *cellFile) { f.Result = json.RawMessage(`{"square":7}`) }), "damaged"},
		{"no result", edit(func(f *cellFile) { f.Result = nil }), "damaged"},
		{"another program", edit(func(f *cellFile) { f.Fingerprint = "0" }), ""},
		{"another schema", edit(func(f *cellFile) { f.Schema++ }), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var runs atomic.Int64
			dir := t.TempDir()
			e := fake(3, &runs, nil)
			if err := e.Run(context.Background(), Options{Out: dir}); err != nil {
				t.Fatal(err)
			}
			want := tree(t, dir)
			paths, err := filepath.Glob(filepath.Join(dir, "fake", "cells", "cell-1-*.json"))
			if err != nil || len(paths) != 1 {
				t.Fatal(paths, err)
			}
			path := paths[0]
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, test.damage(data), 0o666); err != nil {
				t.Fatal(err)
			}
			runs.Store(0)
			var progress bytes.Buffer
			if err := e.Run(context.Background(), Options{Out: dir, Stderr: &progress}); err != nil {
				t.Fatal(err)
			}
			if runs.Load() != 1 {
				t.Errorf("%d cells were computed, want 1", runs.Load())
			}
			sameTree(t, tree(t, dir), want)
			lines := strings.Split(progress.String(), "\n")
			if test.notice != "" {
				if !strings.HasPrefix(lines[0], "fake: "+path+" is "+test.notice) ||
					!strings.HasSuffix(lines[0], "; it is computed anew") {
					t.Errorf("the notice is %q", lines[0])
				}
			} else if !strings.Contains(progress.String(),
				"1 of 3 cells are of another build of the program and are computed anew") {
				t.Errorf("progress is %q", progress.String())
			}
		})
	}
}

func TestFingerprintCoversInputsAndProgram(t *testing.T) {
	a := &store{program: "a"}
	b := &store{program: "b"}
	if a.fingerprint([]byte(`{"x":1}`)) == a.fingerprint([]byte(`{"x":2}`)) {
		t.Error("other inputs have the same fingerprint")
	}
	if a.fingerprint(nil) == b.fingerprint(nil) {
		t.Error("another program has the same fingerprint")
	}
}

func TestFailingCell(t *testing.T) {
	var runs atomic.Int64
	dir := t.TempDir()
	bad := errors.New("does not fit by 3 bytes")
	fail := func(_ context.Context, i int) error {
		if i == 1 || i == 3 {
			return bad
		}
		return nil
	}
	var out bytes.Buffer
	err := fake(5, &runs, fail).Run(context.Background(), Options{Out: dir, Workers: 2, Stdout: &out})
	if want := "fake: cell 1: does not fit by 3 bytes (and 1 more cells failed)"; err == nil || err.Error() != want ||
		!errors.Is(err, bad) {
		t.Errorf("error is %v, want %s", err, want)
	}
	if runs.Load() != 3 || len(tree(t, dir)) != 3 || out.Len() != 0 {
		t.Errorf("%d cells were computed, %d files are there, printed %q; want 3 cells and nothing else", runs.Load(),
			len(tree(t, dir)), out.String())
	}
	runs.Store(0)
	if err := fake(5, &runs, nil).Run(context.Background(), Options{Out: dir}); err != nil || runs.Load() != 2 {
		t.Errorf("then %d cells were computed with error %v, want 2", runs.Load(), err)
	}
}

func TestOtherExperimentsGoOn(t *testing.T) {
	var runs atomic.Int64
	dir := t.TempDir()
	bad := Experiment{Name: "bad", Plan: func() (*Plan, error) { return nil, errors.New("no such accelerator") }}
	err := Run(context.Background(), []Experiment{bad, fake(2, &runs, nil)}, Options{Out: dir})
	if err == nil || err.Error() != "bad: no such accelerator" {
		t.Errorf("error is %v", err)
	}
	if runs.Load() != 2 {
		t.Errorf("%d cells were computed, want 2", runs.Load())
	}
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	var runs atomic.Int64
	obstacle := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(obstacle, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	err := fake(2, &runs, nil).Run(context.Background(), Options{Out: filepath.Join(obstacle, "out")})
	if err == nil || !strings.HasPrefix(err.Error(), "results can't be written: ") ||
		!strings.Contains(err.Error(), obstacle) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v", err)
	}
	if runs.Load() != 0 {
		t.Errorf("%d cells were computed, want none", runs.Load())
	}
}

func TestOutputThatVanishes(t *testing.T) {
	var runs atomic.Int64
	dir := t.TempDir()
	e := fake(50, &runs, func(ctx context.Context, i int) error {
		if i == 2 {
			return os.RemoveAll(filepath.Join(dir, "fake"))
		}
		return ctx.Err()
	})
	err := e.Run(context.Background(), Options{Out: dir, Workers: 1})
	if err == nil || !strings.HasPrefix(err.Error(), "results can't be written: ") {
		t.Errorf("error is %v", err)
	}
	if runs.Load() != 3 {
		t.Errorf("%d cells were computed, want it to stop after 3", runs.Load())
	}
}

func TestQuiet(t *testing.T) {
	var runs atomic.Int64
	var out, progress bytes.Buffer
	if err := fake(3, &runs, nil).Run(context.Background(),
		Options{Out: t.TempDir(), Stdout: &out, Stderr: &progress, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	if progress.Len() != 0 || out.Len() == 0 {
		t.Errorf("progress %q and output %q, want only output", progress.String(), out.String())
	}
}

func TestHeuristicPlan(t *testing.T) {
	var all, some atomic.Int64
	x := fake(2, &all, nil)
	x.Heuristic = fake(1, &some, nil).Plan
	if err := x.Run(context.Background(), Options{Out: t.TempDir(), NoExact: true}); err != nil {
		t.Fatal(err)
	}
	if all.Load() != 0 || some.Load() != 1 {
		t.Errorf("%d cells of the whole plan and %d of the other were computed, want 0 and 1", all.Load(), some.Load())
	}
}

// Experiments that share a cell by its key, with other inputs each, do not take each other's
// for one of another build of the program.
func TestCellsOfOneKeyLiveSideBySide(t *testing.T) {
	dir := t.TempDir()
	var runs atomic.Int64
	experiment := func(name, precision string) Experiment {
		return Experiment{Name: name, Plan: func() (*Plan, error) {
			return &Plan{
				Cells: []Cell{{Key: "net", Shared: true, Inputs: precision, Run: func(context.Context) (any, error) {
					runs.Add(1)
					return precision, nil
				}}},
				Report: func(results []json.RawMessage) (*Report, error) { return &Report{Text: string(results[0])}, nil },
			}, nil
		}}
	}
	var progress, out bytes.Buffer
	for range 2 {
		if err := Run(context.Background(), []Experiment{experiment("a", "F16"), experiment("b", "I8")},
			Options{Out: dir, Stdout: &out, Stderr: &progress}); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(progress.String(), "another build") || runs.Load() != 2 || out.String() != `"F16""I8""F16""I8"` {
		t.Errorf("%d cells were computed, printed %s:\n%s", runs.Load(), out.String(), progress.String())
	}
}

// A run of several experiments counts the cells of all, reports in the order of the list though later ones are
// done first, computes what they share once, and says how long it will take where that is known.
func TestSeveralExperimentsAtATime(t *testing.T) {
	var runs atomic.Int64
	first := make(chan struct{})
	list := two(&runs, func(_ context.Context, i int) error {
		if i == 5 { // of the first alone
			<-first
		}
		return nil
	})
	list[0].Cost, list[1].Cost = Cost{Quick: 70}, Cost{Quick: 50}
	var out, progress bytes.Buffer
	var last Progress
	opt := Options{Out: t.TempDir(), Workers: 2, Stdout: &out, Stderr: &progress, Progress: func(p Progress) {
		if last = p; p.Done == 8 {
			close(first) // all others are done
		}
	}}
	if err := Run(t.Context(), list, opt); err != nil {
		t.Fatal(err)
	}
	if runs.Load() != 9 || last.Done != 9 || last.Total != 9 || last.Name != "" || last.LeftSeconds != 0 {
		t.Errorf("%d cells were computed, want 9: %+v", runs.Load(), last)
	}
	if !strings.HasPrefix(progress.String(), "9 of 9 cells of 2 experiments are to be computed: about ") ||
		strings.Index(progress.String(), "fake: 1 files") > strings.Index(progress.String(), "other: 1 files") {
		t.Errorf("progress is %q", progress.String())
	}
}

// The quick form is computed unless the full one is asked for, and its results say so.
func TestQuickForm(t *testing.T) {
	for _, full := range []bool{false, true} {
		var all, some atomic.Int64
		x, dir := fake(3, &all, nil), t.TempDir()
		x.Quick = fake(2, &some, nil).Plan
		if err := x.Run(t.Context(), Options{Out: dir, Full: full}); err != nil {
			t.Fatal(err)
		}
		origin := tree(t, dir)["fake/origin.json"]
		if quick := strings.Contains(origin, `"quick": true`); quick == full ||
			fmt.Sprint(all.Load(), some.Load()) != map[bool]string{false: "0 2", true: "3 0"}[full] {
			t.Errorf("full %v: %d cells of the full form and %d of the quick one, %s", full, all.Load(), some.Load(), origin)
		}
	}
}

// The processor time of cells that run at a time adds up to that of the process.
func TestMeterSharesTime(t *testing.T) {
	m := meter{running: 2, at: ProcessorTime()}
	begin, spun := m.at, 0
	for ProcessorTime() < begin+20*time.Millisecond && spun < 1e9 {
		spun++
	}
	one := m.turn(-1)
	alone := m.turn(0)
	if used := (m.at - begin).Seconds(); used <= 0 || alone < one || math.Abs(one+alone-used) > 1e-9 {
		t.Errorf("shares of %g and %g s of %g s", one, alone, used)
	}
}

// two are experiments of which some cells are the same.
func two(runs *atomic.Int64, before func(context.Context, int) error) []Experiment {
	a, b := fake(7, runs, before), fake(5, runs, before)
	b.Name = "other"
	for _, e := range []*Experiment{&a, &b} {
		plan := e.Plan
		e.Plan = func() (*Plan, error) {
			p, err := plan()
			for i := range p.Cells {
				p.Cells[i].Shared = i%2 == 0
			}
			return p, err
		}
	}
	return []Experiment{a, b}
}

// tree reads all files below a directory, apart from the wall times.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if filepath.Base(path) != "timing.csv" {
			files[rel] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, data := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if g != data {
			t.Errorf("%s differs:\n%s\nwant:\n%s", name, g, data)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s should not be there", name)
		}
	}
}
