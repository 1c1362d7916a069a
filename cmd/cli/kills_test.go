package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Runs and sweeps that are killed, and that meet a full disk, end with the bytes of
// undisturbed ones; scripts/kills.sh alone does it 200 times.
func TestKills(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the script is for Linux")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../scripts/kills.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "4")
	cmd.Env = append(os.Environ(), "DSASCHED="+program, asMain+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "2 kills") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
