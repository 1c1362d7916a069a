package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// onTerminal runs the program on a terminal of its own, as wide as given.
func onTerminal(t *testing.T, columns string, env []string, args ...string) string {
	t.Helper()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("skipped: script, which makes terminals, is not on this machine")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "-qec", "stty cols "+columns+" && '"+self+"' "+strings.Join(args, " "), "/dev/null")
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "COLUMNS" && name != "NO_COLOR" && name != "TERM" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, asMain+"=1", "TERM=xterm"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// On a terminal, tables have a bold header and are no wider than it; COLUMNS is
// stronger, and NO_COLOR takes the bold away.
func TestTerminal(t *testing.T) {
	const bold = "\x1b[1m"
	widest := func(out string) int {
		most := 0
		for line := range strings.Lines(out) {
			most = max(most, len([]rune(strings.NewReplacer(bold, "", "\x1b[m", "", "\n", "").Replace(line))))
		}
		return most
	}
	narrow := onTerminal(t, "70", nil, "variants")
	if n := widest(narrow); n > 70 || !strings.Contains(narrow, bold) {
		t.Errorf("%d wide, %q", n, narrow)
	}
	if wide := onTerminal(t, "300", nil, "variants"); widest(wide) <= 70 || strings.Contains(wide, "…") {
		t.Errorf("%d wide, %q", widest(wide), wide)
	}
	if set := onTerminal(t, "300", []string{"COLUMNS=70"}, "variants"); set != narrow {
		t.Errorf("%q, want %q", set, narrow)
	}
	if plain := onTerminal(t, "70", []string{"NO_COLOR=1"}, "variants"); strings.Contains(plain, "\x1b") ||
		plain != strings.NewReplacer(bold, "", "\x1b[m", "").Replace(narrow) {
		t.Errorf("%q", plain)
	}
	if dumb := onTerminal(t, "70", []string{"TERM=dumb"}, "variants"); strings.Contains(dumb, "\x1b") {
		t.Errorf("%q", dumb)
	}
}

// The line of progress is drawn over itself and gone in the end.
func TestProgressOnATerminal(t *testing.T) {
	const clear = "\r\x1b[K"
	out := onTerminal(t, "40", nil, "sweep", "mobilenetv2", "--set", "batch=32,64,128", "--set",
		"variant=tvm,cross-layer", "--workers", "1")
	lines, table, ok := strings.Cut(out, clear+"sweep")
	if !ok || !strings.Contains(lines, "\r") || strings.Contains(lines, "\n") {
		t.Fatalf("%q", out)
	}
	for _, shown := range strings.Split(lines, "\r")[1:] {
		if n := len([]rune(strings.TrimSuffix(shown, "\x1b[K"))); n > 39 || !strings.Contains(shown, "of 6 done") {
			t.Errorf("%d wide: %q", n, shown)
		}
	}
	if quiet := onTerminal(t, "40", nil, "sweep", "mobilenetv2", "--set", "batch=32,64,128", "--set",
		"variant=tvm,cross-layer", "--quiet"); !strings.HasPrefix(quiet, "sweep") ||
		!strings.HasSuffix(quiet, strings.TrimPrefix(table, "sweep")) {
		t.Errorf("%q, want the end of %q", quiet, out)
	}
}
