package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A schedule and the file written from it give the same page, alone and beside another.
func TestView(t *testing.T) {
	workspace(t)
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	answer(t, "schedule", "net.onnx", "--variant", "tvm", "-o", "tvm.schedule.json", "--html", "tvm.html")
	got := answer(t, "view", "tvm.schedule.json")
	for _, want := range []string{`(?m)^page +tvm\.schedule\.html, \d\.\d\d MB$`,
		`(?m)^schedule +tvm\.schedule\.json: .* on stcp920, variant tvm, `} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	// A file names its network as it was called.
	if a, b := read("tvm.html"), read("tvm.schedule.html"); a != b {
		t.Error("the page of the file is another one than that of its schedule")
	}
	answer(t, "schedule", "net.onnx", "--variant", "cross-layer", "-o", "cross.schedule.json", "--html", "a.html",
		"--against", "tvm.schedule.json")
	if html := answer(t, "view", "tvm.schedule.json", "cross.schedule.json", "-o", "-"); html != read("a.html") ||
		!strings.Contains(html, "Where the gain is") {
		t.Error("view has another page of two schedules than schedule --against")
	}
	if j := answer(t, "view", "tvm.schedule.json", "--json", "-o", "b.html"); !strings.Contains(j, `"variant": "tvm"`) ||
		!strings.Contains(j, `"file": "b.html"`) {
		t.Errorf("JSON %s", j)
	}
}

// --open hands the page to the browser that is named.
func TestViewOpens(t *testing.T) {
	workspace(t)
	browser := filepath.Join(t.TempDir(), "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\nprintf %s \"$1\" > opened.tmp && mv opened.tmp opened\n"),
		0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", browser)
	answer(t, "view", "net.schedule.json", "--open", "-o", "net.html")
	want, err := filepath.Abs("net.html")
	if err != nil {
		t.Fatal(err)
	}
	var opened []byte
	for range 600 { // the browser is not waited for
		if opened, err = os.ReadFile("opened"); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if string(opened) != want {
		t.Errorf("opened %q, want %q (%v)", opened, want, err)
	}
	t.Setenv("BROWSER", filepath.Join(t.TempDir(), "none"))
	if r := call(t, "view", "net.schedule.json", "--open"); r.status != exitFailure ||
		!strings.Contains(r.stderr, "--open: no browser starts") || !strings.Contains(r.stderr, "open net.schedule.html") {
		t.Errorf("status %d, stderr %q", r.status, r.stderr)
	}
}

func TestBadViews(t *testing.T) {
	workspace(t)
	answer(t, "schedule", "toy-fig3", "--batch", "8", "--variant", "tvm", "-o", "toy.schedule.json")
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"view", `SCHEDULE\.json is missing`, 2},
		{"view a b c", `takes at most two schedules, found 3`, 2},
		{"view nosuch.json", `nosuch\.json`, 1},
		{"view schedule.html", `schedule\.html is the file that is read: name another with -o`, 2},
		{"view my-npu.yaml", `my-npu\.yaml`, 1},
		{"view net.schedule.json -o net.schedule.json", `is the file that is read`, 2},
		{"view net.schedule.json --open -o -", `exclude each other`, 2},
		{"view net.schedule.json toy.schedule.json",
			`^dsasched: toy\.schedule\.json is of toy-fig3 at batch 8 on stcp920, expected .* on stcp920$`, 1},
		{"schedule net.onnx --against toy.schedule.json", `--against needs --html`, 2},
		{"schedule net.onnx --html a.png", `expected a name that ends in \.html`, 2},
		{"schedule net.onnx --html nosuch/a.html", `nosuch/a\.html`, 1},
	} {
		r := call(t, strings.Fields(c.args)...)
		if r.status != c.status || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			!regexp.MustCompile(c.want).MatchString(strings.TrimSpace(r.stderr)) {
			t.Errorf("%s: status %d, stdout %q, stderr %q, want %d and %q", c.args, r.status, r.stdout, r.stderr, c.status,
				c.want)
		}
	}
}
