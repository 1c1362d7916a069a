package main

import (
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
