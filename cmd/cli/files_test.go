package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Files of other origin go all the way through, as people have them.
func TestSchedulesSharedFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(sharedFile(t, "resnet18.onnx")), "*.onnx"))
	if len(files) < 15 {
		t.Errorf("%d files, expected at least 15", len(files))
	}
	for _, path := range files {
		for _, v := range []string{"tvm", "cross-layer"} {
			t.Run(filepath.Base(path)+"/"+v, func(t *testing.T) {
				r := call(t, "schedule", path, "--hardware", "stcp920", "--batch", "8", "--variant", v)
				if r.status != exitOK || !strings.Contains(r.stdout, "throughput") {
					t.Errorf("status %d, stderr %q", r.status, r.stderr)
				}
			})
		}
	}
}

// A network with an operator that nobody knows, and a dimension without a size.
func TestUnknownAndSymbolic(t *testing.T) {
	workspace(t)
	const file = "odd.onnx"
	for _, c := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"inspect", file}, exitFailure, "", `node "odd" is Twist of domain com.example`},
		{[]string{"inspect", file, "--allow-unknown"}, exitFailure, "",
			`the sizes of these dimensions must be given by --dim NAME=SIZE: "steps"`},
		{[]string{"inspect", file, "--dim", "steps=5"}, exitFailure, "", `node "odd" is Twist of domain com.example`},
		{[]string{"inspect", file, "--dim", "steps=5", "--allow-unknown"}, exitOK, "[1,5,4]",
			`node "odd": Twist of domain com.example is not known`},
		{[]string{"schedule", file, "--dim", "steps=5", "--allow-unknown", "--batch", "8"}, exitOK, "throughput",
			`warning: node "odd"`},
		{[]string{"inspect", file, "--dim", "steps"}, exitUsage, "", `found "steps", expected NAME=SIZE`},
		{[]string{"inspect", file, "--dim", "steps=-1"}, exitUsage, "", `found size "-1" of dimension "steps"`},
		{[]string{"inspect", file, "--dim", "steps=1", "--dim", "steps=2"}, exitUsage, "",
			`dimension "steps" is both 1 and 2`},
		{[]string{"inspect", "resnet50", "--dim", "steps=1"}, exitFailure, "", "no symbolic dimension"},
	} {
		r := call(t, c.args...)
		if r.status != c.status || !strings.Contains(r.stdout, c.stdout) || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", c.args, r.status, r.stdout, r.stderr)
		}
		if n := strings.Count(r.stderr, "\n"); n > 1 {
			t.Errorf("%q: %d lines on stderr: %s", c.args, n, r.stderr)
		}
	}
}

// What can't be written later is an error before any work.
func TestFoldersThatAreMissing(t *testing.T) {
	workspace(t)
	worked := false
	clock = func() time.Time { worked = true; return still() } // a status begins with the work
	t.Cleanup(func() { clock = still })
	for _, c := range []string{
		"best net.onnx -o nosuch/a.json", "best net.onnx --certificate nosuch/a.json", "tune net.onnx -o nosuch/a.json",
		"schedule net.onnx --trace nosuch/a.json", "sweep net.onnx --set batch=1,2 --csv nosuch/a.csv",
		"solve order chain.json -o nosuch/b/a.json",
	} {
		r := call(t, strings.Fields(c)...)
		if r.status != exitFailure || r.stdout != "" || !strings.HasPrefix(r.stderr, "dsasched: write ") {
			t.Errorf("%s: %+v", c, r)
		}
		if worked {
			t.Errorf("%s: the work began", c)
		}
	}
}

// The answer is printed although its file can't be written, and does not name the file.
func TestAnswerWithoutFile(t *testing.T) {
	workspace(t)
	t.Cleanup(func() { clock = still })
	for _, c := range []struct{ args, answer string }{
		{"best net.onnx --evaluations 5 -o gone/a.json", "throughput"},
		{"best net.onnx --evaluations 5 --certificate gone/a.json", "throughput"},
		{"tune net.onnx --trials 4 -o gone/a.json", "tuned"},
		{"schedule net.onnx -o gone/a.json", "throughput"},
		{"schedule net.onnx --trace gone/a.json", "throughput"},
		{"solve order chain.json -o gone/a.json", "status"},
		{"solve layering net.onnx --hardware v100 -o gone/a.json", "status"},
	} {
		if err := os.Mkdir("gone", 0o777); err != nil {
			t.Fatal(err)
		}
		clock = func() time.Time { os.RemoveAll("gone"); return still() } // the work begins
		r := call(t, strings.Fields(c.args)...)
		if r.status != exitFailure || !strings.Contains(r.stdout, c.answer) || strings.Contains(r.stdout, "gone") ||
			!strings.Contains(r.stderr, "write gone/a.json: no such file") {
			t.Errorf("%s: %+v", c.args, r)
		}
	}
}

// A file takes the place of the one that a link points to: the link and the permissions stay.
func TestFilesThroughLinks(t *testing.T) {
	workspace(t)
	first := answer(t, "export", "order", "net.onnx", "-o", stdoutName)
	answer(t, "export", "order", "net.onnx", "-o", "out.json")
	data, err := os.ReadFile("out.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != first {
		t.Error("the file and the standard output differ")
	}
	if err := os.Chmod("out.json", 0o662); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("out.json", "link.json"); err != nil {
		t.Fatal(err)
	}
	answer(t, "export", "order", "net.onnx", "-o", "link.json", "--batch", "8")
	info, err := os.Stat("out.json")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o662 {
		t.Errorf("permissions are %v, were 0662", info.Mode().Perm())
	}
	if data, err := os.ReadFile("out.json"); err != nil || string(data) == first {
		t.Errorf("the file was not replaced: %v", err)
	}
	if info, err := os.Lstat("link.json"); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if err := os.Symlink("net.onnx", "link.onnx"); err != nil {
		t.Fatal(err)
	}
	if r := call(t, "export", "order", "link.onnx", "-o", "net.onnx"); r.status != exitUsage {
		t.Errorf("a network was written over: %+v", r)
	}
	for _, name := range fileNames(t) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left behind", name)
		}
	}
}
