package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// The scripts say how they are used instead of working for an hour, and take no
// flag that they do not know.
func TestScriptsExplainThemselves(t *testing.T) {
	for _, script := range []string{"run_tests.sh", "run_experiments.sh", "scripts/shells.sh", "scripts/kills.sh",
		"scripts/fuzz.sh", "scripts/vulncheck.sh", "scripts/release.sh"} {
		for _, c := range []struct {
			flag   string
			status int
		}{{"-h", 0}, {"--help", 0}, {"--fast", 2}, {"-x", 2}} {
			var stdout, stderr bytes.Buffer
			cmd := exec.Command("../../"+script, c.flag)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("%s %s: status %d, want %d", script, c.flag, got, c.status)
			}
			told, silent := stdout.String(), stderr.String()
			if c.status != 0 {
				told, silent = silent, told
				if !strings.Contains(told, "found "+c.flag+", expected") {
					t.Errorf("%s %s says %q", script, c.flag, told)
				}
			}
			if !strings.Contains(told, "Usage: ") || silent != "" {
				t.Errorf("%s %s: stdout %q, stderr %q", script, c.flag, stdout.String(), stderr.String())
			}
		}
	}
}
