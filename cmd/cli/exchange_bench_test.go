package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	if n := strings.Count(out, "ok "); !ok || n != 161 || !strings.Contains(out, "ok schedules: 240 cells") {
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
	if err != nil || bytes > 10e6 {
		t.Errorf("%d bytes, %v; expected at most 10 MB", bytes, err)
	}
	rows, err := attempt(func() bestKnown { return readBest(benchDir + "/best.csv") })
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(benchDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range benchKinds {
		if n := strings.Count(out, "ok "+k.name+" "); n != 20 {
			t.Errorf("%d instances of %s, expected 20", n, k.name)
		}
		open := 0
		for _, r := range rows {
			if r.kind == k.name && r.best > r.bound {
				open++
			}
		}
		if said := fmt.Sprintf("%d of `%s`", open, k.name); open > 0 && !strings.Contains(string(readme), said) {
			t.Errorf("the README does not say that %s are open", said)
		}
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
	if err != nil || n != 100 {
		t.Errorf("%d instances, %v", n, err)
	}
}

// Each planted error is found, and nothing but it.
func TestBenchmarkErrors(t *testing.T) {
	dir := benchSmall(t, map[string]string{"allocation": "g10-0", "spilling": "g25-7.573", "order": "g4-9",
		"binding": "g10-0", "joint": "mobilenetv2-stcp920-128",
		"groups": "g10-0", "partition": "g10-1", "network": "mofang-inception-stcp920-4"})
	// Of the kind whose errors are planted in one place of an answer, that answer, although a better one may be
	// known.
	rows, err := attempt(func() bestKnown { return readBest(filepath.Join(dir, "best.csv")) })
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := os.ReadFile("testdata/bench-mofang-inception.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		old := r.answer(dir, "json")
		var data []byte
		switch r.kind {
		case "network":
			r.best, data = 394762730, schedule
		default:
			continue
		}
		if err := errors.Join(os.Remove(old), os.WriteFile(r.answer(dir, "json"), data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "best.csv"), rows.text(), 0o666); err != nil {
		t.Fatal(err)
	}
	first := func(kind, pattern string) string {
		files, err := filepath.Glob(filepath.Join(dir, "answers", kind, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no answer %s of %s, %v", pattern, kind, err)
		}
		return files[0]
	}
	csvFile, spillFile := first("allocation", "g10-0.*"), first("spilling", "g25-7.573.*")
	orderFile := first("order", "g4-9.*")
	bindFile, groupsFile := first("binding", "g10-0.*"), first("groups", "g10-0.*")
	jointFile := first("joint", "mobilenetv2-stcp920-128.*")
	divideFile := first("partition", "g10-1.*")
	netFile := first("network", "mofang-inception-stcp920-4.*")
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
	var args, names, wants []string
	reversed := func(s string) string {
		var a struct{ Choice []int }
		if err := json.Unmarshal([]byte(s), &a); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(a.Choice)
		b, err := json.Marshal(map[string]any{"choice": a.Choice})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
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
		{"claims less", best, once(`(?m)^(order,g4-9,[^,]*),\d+`, "$1,1"), "No such file"},
		{"bound above", best, once(`(?m)^(order,g4-9,[^,]*,\d+),\d+`, "$1,100000"), "below the bound"},
		{"half a byte", best, once(`(?m)^(order,g4-9,[^,]*,\d+),\d+`, "$1,0.5"), "no whole number"},
		{"other instance", filepath.Join(dir, "groups", "g10-0.json"), once(`$`, " "),
			"groups/g10-0.json is not the frozen instance"},
		{"node left out", bindFile, once(`,\d+\]`, "]"), "9 choices for 10 nodes"},
		{"no such label", bindFile, once(`\[\d+`, "[99"), "has choice 99 of"},
		{"negative label", bindFile, once(`\[\d+`, "[-1"), "no number from 0 on"},
		{"dearer label", bindFile, once(`\d+,\d+\]`, "0,0]"), "best.csv says"},
		{"no such label of an instance", jointFile, once(`"choice":\[\d+`, `"choice":[999`), "has choice 999 of"},
		{"other label of an instance", jointFile, once(`"choice":\[\d+`, `"choice":[0`), "best.csv says"},
		{"first instance missing", jointFile, once(`\{"store":[^{]*\},`, ""), "not near"},
		{"last instance missing", jointFile, once(`,\{"store":[^{]*\}\]`, "]"), "instances run"},
		{"group twice", groupsFile, once(`\[(\d+),`, "[$1,$1,"), "which have run"},
		{"group left out", groupsFile, once(`,\d+\]`, "]"), "atoms run"},
		{"no such group", groupsFile, once(`\[\d+`, "[9999"), "group 9999 of"},
		{"last group first", groupsFile, reversed, "runs before atoms"},
		{"layer left out", divideFile, once(`\[\[3,`, "[["), "19 of 20 nodes"},
		{"layer twice", divideFile, once(`\[\[3,`, "[[3,3,"), "node 3 is there twice"},
		{"no such layer", divideFile, once(`\[\[3,`, "[[20,3,"), "node 20 is not in the graph"},
		{"device left out", divideFile, once(`,\[\]`, ""), "3 devices of 3 and 1"},
		{"where it can't run", divideFile, all(`\[\[3,(.*)\[0,`, "[[0,3,$1["), "node 0 runs on CPUs alone"},
		{"away from its colour", divideFile, all(`\[\],(.*),11\]`, "[11],$1]"), "where the others of colour 0 are"},
		{"too large", divideFile, once(`\],\[2,(.*),\[\]`, ",2,$1,[],[]"), "device 0 holds 427 of 382 bytes"},
		{"leaves and comes back", divideFile, all(`,14\](.*),9,12(.*),19\]`, ",9,14,19]$1,12$2]"), "leaves device 0 and comes back"},
		{"no row", divideFile, once(`^.*`, `{"devices":[[3,4,5,6,7,13,14,15,16,17],[2,8,9,12,18,19],[],[0,1,10,11]]}`),
			"devices [0, 1] wait for each other"},
		{"all on a CPU", divideFile, once(`^.*`, `{"devices":[[],[],[],[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]]}`),
			"best.csv says"},
		{"another machine", netFile, once(`"name":"stcp920"`, `"name":"a100"`), "is for"},
		{"another batch", netFile, once(`"batch": 4`, `"batch": 8`), "another batch"},
		{"an idle cluster", netFile, once(`"clusters": \[\[[^]]*\]`, `"clusters": [[]`), "clusters have"},
		{"other weights", netFile, once(`"shape":\[(\d+),2048,1,1\]`, `"shape":[$1,1024,1,1]`), "graph.tensors"},
		{"another operator", netFile, once(`"kind": "AveragePool"`, `"kind": "MaxPool"`), "graph.operators"},
		{"operator left out", netFile, all(`\[6,7,8,9,10,11\](.*\n.*)\[6,7\]`, "[7,8,9,10,11]$1[7]"), "is before what makes"},
		{"layers of others", netFile, once(`\[\[6,7\],`, "[[6],"), "layers have other operators"},
		{"instance left out", netFile, once(`"order": \[\[0,0\],`, `"order": [`), "each instance once"},
		{"reader before", netFile, once(`"order": \[(.*),\[3,1\]\]`, `"order": [[3,1],$1]`), "runs before"},
		{"too many cores", netFile, once(`"index":0,"cores":\[1,1,8,1\]`, `"index":0,"cores":[1,2,8,1]`), "of 8 cores"},
		{"between lines", netFile, once(`"level":"lb","address":\d+`, `"level":"lb","address":32`), "lies at 32"},
		{"behind the L1", netFile, once(`"level":"lb","address":\d+`, `"level":"lb","address":1048576`), "lies at 1048576"},
		{"all in one place", netFile, all(`"level":"lb","address":\d+`, `"level":"lb","address":0`), "share bytes"},
		{"output in the L1", netFile, once(`"tensor":22,"level":"ddr"`, `"tensor":22,"level":"lb","address":0`),
			"does not end in the DDR"},
		{"bound of its own", best, once(`(?m)^(network,mofang[^,]*,[^,]*,\d+),\d+`, "$1,1000"), "best.csv says 1000"},
	} {
		data, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		wrong := c.change(string(data))
		if wrong == string(data) {
			t.Errorf("%s: changes nothing", c.name)
		}
		planted := t.TempDir()
		if err := os.CopyFS(planted, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		file, err := filepath.Rel(dir, c.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(planted, file), []byte(wrong), 0o666); err != nil {
			t.Fatal(err)
		}
		args, names, wants = append(args, planted), append(names, c.name), append(wants, c.want)
	}
	// One process checks all: most of a checker's time is its start.
	const each = `import runpy, sys
script, dirs = sys.argv[1], sys.argv[2:]
for d in dirs:
    sys.argv = [script, d]
    try:
        runpy.run_path(script)
    except SystemExit as e:
        print("status", e.code)
`
	out, _ := benchPython(t, append([]string{"-c", each, benchDir + "/check.py"}, args...)...)
	answers := strings.SplitAfter(out, "status 1\n")
	if len(answers) != len(args)+1 || strings.Contains(out, "status 0") || answers[len(args)] != "" {
		t.Fatalf("%d of %d are refused:\n%s", len(answers)-1, len(args), out)
	}
	for i, a := range answers[:len(args)] {
		if strings.Count(a, "broken ") != 1 || !strings.Contains(a, wants[i]) {
			broken := regexp.MustCompile(`(?m)^broken .*$`).FindAllString(a, -1)
			t.Errorf("%s: %q, want %s", names[i], broken, wants[i])
		}
	}
}

// A method's answers stand beside the best; --keep takes the better ones.
func TestBench(t *testing.T) {
	dir := benchCopy(t)
	got := answer(t, "bench", "order", "--dir", dir, "--method", "heavy", "--quiet")
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
	if err != nil || !strings.HasSuffix(line.FindString(string(after)), ",heavy") ||
		line.ReplaceAllString(string(after), "") != line.ReplaceAllString(string(known), "") {
		t.Errorf("best.csv is\n%s, want all but g4-7 as in\n%s", after, known)
	}
	if out, ok := benchPython(t, benchDir+"/check.py", dir, "order"); !ok {
		t.Errorf("what was kept is wrong:\n%s", out)
	}
	if r := call(t, "bench", "order", "--method", "tvm", "--dir", dir); r.status != exitUsage ||
		!strings.Contains(r.stderr, "--method tvm is none of order: ") {
		t.Errorf("%+v", r)
	}
	if r := call(t, "bench", "knitting", "--dir", dir); r.status == exitOK ||
		!strings.Contains(r.stderr, "allocation, spilling, order, binding") {
		t.Errorf("%+v", r)
	}
	if r := call(t, "bench", "order", "--dir", t.TempDir()); r.status == exitOK || !strings.Contains(r.stderr, "--dir") {
		t.Errorf("%+v", r)
	}
}

// benchSmall is the benchmark with one instance of each kind.
func benchSmall(t *testing.T, instances map[string]string) string {
	t.Helper()
	dir := benchCopy(t)
	for _, k := range benchKinds {
		all, err := filepath.Glob(filepath.Join(dir, k.name, "*"))
		if err != nil {
			t.Fatal(err)
		}
		answers, err := filepath.Glob(filepath.Join(dir, "answers", k.name, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(all, answers...) {
			if !strings.HasPrefix(filepath.Base(file), instances[k.name]+".") {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, file := range []string{"best.csv", "SHA256SUMS"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for i, line := range strings.SplitAfter(string(data), "\n") {
			keep := i == 0 && file == "best.csv"
			for _, k := range benchKinds {
				keep = keep || strings.HasPrefix(line, k.name+","+instances[k.name]+",") ||
					strings.HasSuffix(line, " "+k.name+"/"+instances[k.name]+"."+k.ending+"\n")
			}
			if keep {
				kept = append(kept, line)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.Join(kept, "")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Of every kind, a rule's answer is kept and checked where none is known, and a better one is handed in as the README
// says: its file, named by its cost, and its line.
func TestBenchmarkHandIn(t *testing.T) {
	instances := map[string]string{"allocation": "g60-7", "spilling": "g10-0.327", "order": "g4-9",
		"binding": "g10-0", "groups": "g10-0", "partition": "g10-3", "joint": "squeezenet-stcp920-paper-4",
		"network": "mofang-inception-stcp920-4"}
	methods := map[string]string{"allocation": "first-fit", "spilling": "largest-first", "order": "bfs",
		"binding": "greedy", "groups": "greedy", "partition": "greedy", "joint": "greedy",
		"network": "tvm"}
	dir := benchSmall(t, instances)
	best := filepath.Join(dir, "best.csv")
	known, err := os.ReadFile(best)
	if err != nil {
		t.Fatal(err)
	}
	answers := filepath.Join(dir, "answers")
	if err := os.Rename(answers, filepath.Join(dir, "mine")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(best, []byte("kind,instance,source,best,bound,method\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, k := range benchKinds {
		answer(t, "bench", k.name, "--dir", dir, "--method", methods[k.name], "--keep")
	}
	rule, err := os.ReadFile(best)
	if err != nil {
		t.Fatal(err)
	}
	if out, ok := benchPython(t, benchDir+"/check.py", dir); !ok || strings.Count(out, "ok ") != len(benchKinds)+1 {
		t.Fatalf("the rules' answers:\n%s\n%s", rule, out)
	}
	better := 0
	for _, k := range benchKinds {
		line := regexp.MustCompile(`(?m)^` + k.name + `,.*$`)
		is, was := strings.Split(line.FindString(string(known)), ","), strings.Split(line.FindString(string(rule)), ",")
		if is[3] != was[3] {
			better++
		}
		name := instances[k.name] + "." + is[3] + "." + k.answer
		data, err := os.ReadFile(filepath.Join(dir, "mine", k.name, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(answers, k.name, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
		was[3], was[5] = is[3], "someone, by hand"
		rule = line.ReplaceAll(rule, []byte(strings.Join(was, ",")))
	}
	rule = []byte(strings.ReplaceAll(string(rule), "someone, by hand", `"someone, by hand"`))
	if err := os.WriteFile(best, rule, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, ok := benchPython(t, benchDir+"/check.py", dir); !ok ||
		strings.Count(out, "ok ") != len(benchKinds)+1 || better < 6 {
		t.Errorf("%d are better than the rule's:\n%s\n%s", better, rule, out)
	}
	// What was handed in is not kept again.
	answer(t, "bench", "groups", "--dir", dir, "--method", "search", "--keep")
	if again, err := os.ReadFile(best); err != nil || !strings.Contains(string(again), `g10-0,`) ||
		strings.Count(string(again), "someone, by hand") != len(benchKinds) {
		t.Errorf("%v\n%s", err, again)
	}
}

// Wherever keeping an answer ends, best.csv names answers that are there and cost what it says.
func TestBenchmarkKeepInterrupted(t *testing.T) {
	dir := benchSmall(t, map[string]string{"order": "g4-9"})
	file := filepath.Join(dir, "best.csv")
	k, err := attempt(func() bestKnown { return readBest(file) })
	if err != nil || len(k) != 1 {
		t.Fatalf("%d rows, %v", len(k), err)
	}
	r := k[0]
	data, err := os.ReadFile(r.answer(dir, "json"))
	if err != nil {
		t.Fatal(err)
	}
	keep := func() error {
		_, err := attempt(func() any { k.keep(dir, "json", "search", r, benchAnswer{r.best - 8, 0, data}); return nil })
		return err
	}
	// The best is known as a dearer one; of what is written, best.csv fails.
	cost := r.best
	r.best += 8
	dear := r.answer(dir, "json")
	if err := os.WriteFile(dear, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := keep(); err == nil {
		t.Error("best.csv is a folder, and was written all the same")
	}
	if _, err := os.Stat(dear); err != nil {
		t.Errorf("best.csv still names the old answer: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".old", file); err != nil {
		t.Fatal(err)
	}
	if out, ok := benchPython(t, benchDir+"/check.py", dir, "order"); !ok {
		t.Errorf("%s", out)
	}
	// Now it does not fail, and the old answer goes.
	r.best = cost + 8
	if err := keep(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dear); err == nil {
		t.Error("the old answer is still there")
	}
	if out, ok := benchPython(t, benchDir+"/check.py", dir, "order"); !ok {
		t.Errorf("%s", out)
	}
}

// The referee still gives the times that are known: dsasched simulate of each answer.
func TestBenchmarkTimes(t *testing.T) {
	rows, err := attempt(func() bestKnown { return readBest(filepath.Join(benchDir, "best.csv")) })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.kind != "network" {
			continue
		}
		var a struct {
			Latency float64 `json:"latency_s"`
		}
		if err := json.Unmarshal([]byte(answer(t, "simulate", r.answer(benchDir, "json"), "--json")), &a); err != nil {
			t.Fatal(err)
		}
		if ps := math.Round(a.Latency * 1e12); ps != r.best {
			t.Errorf(
				"%s takes %.0f ps now, best.csv has %.0f: the simulator or the kernel generator has changed, so that the times of kind network are taken anew", r.instance, ps, r.best)
		}
	}
}

// A table of schedules is computed again and kept, whole or a sample, and says what changed; it concludes without that.
func TestBenchSchedules(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "schedules.csv")
	header, _, _ := strings.Cut(string(readFile(t, benchDir+"/schedules.csv")), "\n")
	text := header + "\ntoy-fig5,CNN,goya,0,0,0,0,0,0,,,,,not posed,not computed\ndlrm-kaggle,recommendation,goya,0,0,0,0,0,0,,,,,not posed,not computed\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (a struct {
		Sentences []string
		Cells     []benchCell `json:"computed_again"`
	}) {
		t.Helper()
		data := answer(t, append([]string{"bench", "schedules", "--dir", dir, "--json", "-q"}, args...)...)
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := run("--keep", "--certificates", filepath.Join(dir, "proofs")); len(a.Cells) != 2 || a.Cells[0].Change != "other" {
		t.Errorf("%+v", a)
	}
	if proofs, _ := filepath.Glob(filepath.Join(dir, "proofs", "*.json")); len(proofs) < 2 {
		t.Errorf("%d certificates", len(proofs))
	}
	if a := run("--sample", "1", "--report", filepath.Join(dir, "report")); len(a.Cells) != 1 || a.Cells[0].Change != "same" ||
		len(a.Sentences) != 3 {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat(filepath.Join(dir, "report", "schedules.png")); err != nil {
		t.Error(err)
	}
	if a := run("--sample", "0"); len(a.Cells) != 0 || len(a.Sentences) != 3 {
		t.Errorf("%+v", a)
	}
	if r := call(t, "bench", "schedules", "--dir", dir, "--smallest", "one-two"); r.status != exitUsage ||
		!strings.Contains(r.stderr, "--smallest one-two is no cell") {
		t.Errorf("%+v", r)
	}
	bad := strings.Replace(string(readFile(t, file)), " %,", "5 %,", 1)
	if err := os.WriteFile(file, []byte(bad), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := call(t, "bench", "schedules", "--dir", dir, "--sample", "0"); r.status != exitFailure ||
		!strings.Contains(r.stderr, "schedules.csv:2: ") {
		t.Errorf("%+v", r)
	}
}
