package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const benchDir = "../../bench"

// benchCopy is the benchmark in a folder of the test's own.
func benchCopy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(benchDir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func benchPython(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("DSASCHED_PYTHON") == "required" {
			t.Fatal("DSASCHED_PYTHON=required, but python3 is not on the PATH")
		}
		t.Skip("python3 is not on the PATH, so that the benchmark's second checker is not tested")
	}
	out, err := exec.Command(python, args...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err == nil
}

// The frozen answers are right by the second checker, too, and each kind has 20.
func TestBenchmarkAnswers(t *testing.T) {
	out, ok := benchPython(t, benchDir+"/check.py", benchDir)
	if n := strings.Count(out, "ok "); !ok || n != 80 {
		t.Errorf("%d answers are right:\n%s", n, out)
	}
	bytes := int64(0)
	err := filepath.WalkDir(benchDir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil || bytes > 2<<20 {
		t.Errorf("%d bytes, %v; expected at most 2 MiB", bytes, err)
	}
}

// The generator makes the instances as they stand.
func TestBenchmarkGenerator(t *testing.T) {
	dir := t.TempDir()
	if out, ok := benchPython(t, benchDir+"/generate.py", "all", dir); !ok {
		t.Fatal(out)
	}
	n := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		made, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		frozen, err := os.ReadFile(filepath.Join(benchDir, path))
		if err == nil && string(frozen) != string(made) {
			t.Errorf("%s: the generator makes another one", path)
		}
		return err
	})
	if err != nil || n != 80 {
		t.Errorf("%d instances, %v", n, err)
	}
}

// Each planted error is found, and nothing but it.
func TestBenchmarkErrors(t *testing.T) {
	dir := benchCopy(t)
	first := func(kind, pattern string) string {
		files, err := filepath.Glob(filepath.Join(dir, "answers", kind, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no answer %s of %s, %v", pattern, kind, err)
		}
		return files[0]
	}
	csvFile, spillFile := first("allocation", "g10-0.csv"), first("spilling", "g25-*.csv")
	orderFile, projectFile := first("order", "g4-9.json"), first("rcpsp", "g20-8.json")
	best := filepath.Join(dir, "best.csv")
	all := func(pattern, with string) func(string) string {
		return func(s string) string { return regexp.MustCompile(pattern).ReplaceAllString(s, with) }
	}
	once := func(pattern, with string) func(string) string {
		return func(s string) string {
			at := regexp.MustCompile(pattern).FindStringSubmatchIndex(s)
			if at == nil {
				return s
			}
			return s[:at[0]] + string(regexp.MustCompile(pattern).ExpandString(nil, with, s, at)) + s[at[1]:]
		}
	}
	for _, c := range []struct {
		name, file string
		change     func(string) string
		want       string
	}{
		{"all at one place", csvFile, all(`(?m),\d+$`, ",0"), "share bytes"},
		{"below the memory", csvFile, once(`(?m),\d+$`, ",-1"), "lies at -1"},
		{"no offset", csvFile, once(`(?m),\d+$`, ","), "has no offset"},
		{"shorter life", csvFile, once(`(?m)^(b\d+,\d+),\d+,`, "$1,99,"), "upper is 99"},
		{"smaller buffer", csvFile, once(`(?m)^(b\d+,\d+,\d+),\d+,`, "$1,1,"), "size is 1"},
		{"buffer left out", csvFile, once(`(?m)^b0,.*\n`, ""), "9 of 10 buffers"},
		{"buffer twice", csvFile, once(`(?m)^(b0,.*\n)`, "$1$1"), "is there twice"},
		{"another's buffer", csvFile, once(`(?m)^b0,`, "x0,"), "is no buffer"},
		{"behind the capacity", spillFile, once(`(?m),\d+$`, ",100000"), "behind the capacity"},
		{"stays at another's place", spillFile, all(`(?m),\d+$`, ",0"), "share bytes"},
		{"cheaper than it is", spillFile, once(`(?m)^b\d+,.*\n`, ""), "best.csv says"},
		{"run again", orderFile, once(`"run":\[\d+,\d+\]\}\]`, `"run":[0,0]}]`), "again"},
		{"no instance", orderFile, once(`"run":\[0,1\]`, `"run":[9,1]`), "no instance"},
		{"reader first", orderFile, once(`\{"store":.*?"run":\[0,0\]\},`, ""), "not near"},
		{"loads what is there", orderFile, once(`"load":(null|\[\]),"run":\[0,1\]`, `"load":[[0,0]],"run":[0,1]`), "loads"},
		{"stores what is not there", orderFile, once(`"store":(null|\[\])`, `"store":[[0,1]]`), "stores"},
		{"last one missing", orderFile, once(`,\{"store":[^{]*\}\]`, "]"), "instances run"},
		{"too early", projectFile, all(`\[.*\]`, "["+strings.Repeat("0,", 21)+"0]"), "before job"},
		{"before the start", projectFile, once(`\[0`, "[-1"), "starts at -1"},
		{"job left out", projectFile, once(`\[0,`, "["), "21 starts for 22 jobs"},
		{"claims less", best, once(`(?m)^(rcpsp,g20-8,[^,]*),\d+`, "$1,1"), "best.csv says 1"},
		{"bound above", best, once(`(?m)^(order,g4-9,[^,]*,\d+),\d+`, "$1,100000"), "below the bound"},
	} {
		data, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		wrong := c.change(string(data))
		if wrong == string(data) {
			t.Errorf("%s: changes nothing", c.name)
		}
		if err := os.WriteFile(c.file, []byte(wrong), 0o666); err != nil {
			t.Fatal(err)
		}
		out, ok := benchPython(t, dir+"/check.py", dir)
		if ok || strings.Count(out, "broken ") != 1 || !strings.Contains(out, c.want) {
			broken := regexp.MustCompile(`(?m)^broken .*$`).FindAllString(out, -1)
			t.Errorf("%s: %q, want %s", c.name, broken, c.want)
		}
		if err := os.WriteFile(c.file, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A method's answers stand beside the best; --keep takes the better ones.
func TestBench(t *testing.T) {
	dir := benchCopy(t)
	got := answer(t, "bench", "order", "--dir", dir, "--method", "heavy")
	if strings.Count(got, "\n g") != 20 || !strings.Contains(got, "bytes stored and loaded") {
		t.Errorf("%s", got)
	}
	file := filepath.Join(dir, "best.csv")
	known, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^order,g4-7,.*$`)
	worse := line.ReplaceAllString(string(known), "order,g4-7,generate.py order 4 7,100000,0,none")
	if err := os.WriteFile(file, []byte(worse), 0o666); err != nil {
		t.Fatal(err)
	}
	answer(t, "bench", "order", "--dir", dir, "--method", "heavy", "--keep")
	after, err := os.ReadFile(file)
	if err != nil || !strings.HasSuffix(line.FindString(string(after)), ",heavy") || line.ReplaceAllString(string(after), "") != line.ReplaceAllString(string(known), "") {
		t.Errorf("best.csv is\n%s, want all but g4-7 as in\n%s", after, known)
	}
	if out, ok := benchPython(t, dir+"/check.py", dir); !ok {
		t.Errorf("what was kept is wrong:\n%s", out)
	}
	if r := call(t, "bench", "knitting", "--dir", dir); r.status == exitOK || !strings.Contains(r.stderr, "allocation, spilling, order, rcpsp") {
		t.Errorf("%+v", r)
	}
	if r := call(t, "bench", "order", "--dir", t.TempDir()); r.status == exitOK || !strings.Contains(r.stderr, "--dir") {
		t.Errorf("%+v", r)
	}
}
