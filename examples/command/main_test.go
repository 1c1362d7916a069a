package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test binary be the program, too.
func TestMain(m *testing.M) {
	if os.Getenv("EXAMPLE_AS_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// All commands know the variant and its order.
func TestOwnVariant(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		want []string
	}{
		{"variants", []string{"live-range"}},
		{"schedule toy-fig3 --variant live-range --batch 32 --chunk 8 -o s.json", []string{"variant live-range", "Order: brief"}},
		{"simulate s.json", []string{"variant live-range"}},
		{"compare nasnet-mobile --decision order --batch 32 --chunk 8", []string{"brief            2.651 ms",
			"alg3             3.718 ms"}},
		{"schedule nasnet-mobile --order brief --batch 32 --chunk 8", []string{"cross-layer+order=brief", "2.651 ms"}},
		{"sweep toy-fig3 --set variant=live-range,cross-layer", []string{"live-range  "}},
	} {
		cmd := exec.Command(self, strings.Fields(c.args)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "EXAMPLE_AS_MAIN=1")
		out, err := cmd.CombinedOutput()
		if err != nil && strings.Contains(string(out), "HiGHS is not in this build") {
			t.Skip("without HiGHS")
		}
		for _, want := range c.want {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v, %q is missing in\n%s", c.args, err, want, out)
			}
		}
	}
}
