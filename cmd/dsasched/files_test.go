package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		{[]string{"inspect", file, "--allow-unknown"}, exitFailure, "", `the sizes of these dimensions must be given: "steps"`},
		{[]string{"inspect", file, "--dim", "steps=5"}, exitFailure, "", `node "odd" is Twist of domain com.example`},
		{[]string{"inspect", file, "--dim", "steps=5", "--allow-unknown"}, exitOK, "[1,5,4]", `node "odd": Twist of domain com.example is not known`},
		{[]string{"schedule", file, "--dim", "steps=5", "--allow-unknown", "--batch", "8"}, exitOK, "throughput", `warning: node "odd"`},
		{[]string{"inspect", file, "--dim", "steps"}, exitUsage, "", `found "steps", expected NAME=SIZE`},
		{[]string{"inspect", file, "--dim", "steps=-1"}, exitUsage, "", `found size "-1" of dimension "steps"`},
		{[]string{"inspect", file, "--dim", "steps=1", "--dim", "steps=2"}, exitUsage, "", `dimension "steps" is both 1 and 2`},
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

// What a file's experts get is known at run time only; the answer says what was taken instead.
func TestExpertsAreAssumed(t *testing.T) {
	t.Chdir(t.TempDir())
	attr := func(name string, v uint64) []byte {
		return bytesField(5, message(text(1, name), number64(3, v), number64(20, 2)))
	}
	var inputs []byte
	for _, name := range []string{"x", "r", "w1", "", "w2"} {
		inputs = append(inputs, text(1, name)...)
	}
	moe := bytesField(1, message(inputs, text(2, "y"), text(3, "moe"), text(4, "MoE"), text(7, "com.microsoft"), attr("k", 2)))
	if err := os.WriteFile("moe.onnx", onnxFile(moe, weight("w1", 4, 32, 16), weight("w2", 4, 16, 32), valueInfo(11, "x", 6, 16), valueInfo(11, "r", 6, 4), valueInfo(12, "y", 6, 16)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"tvm", "cross-layer"} {
		r := call(t, "schedule", "moe.onnx", "--variant", v)
		if want := "assumed: the tokens spread as evenly as they can over the 4 experts of a layer, 2 for each token"; r.status != exitOK || !strings.Contains(strings.Join(strings.Fields(r.stdout), " "), want) {
			t.Errorf("%s: status %d, %s%s", v, r.status, r.stdout, r.stderr)
		}
	}
}
