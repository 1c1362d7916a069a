package cli

import (
	"os"
	"strings"
	"testing"
)

// A plan goes to solve allocate and comes back with the better offsets.
func TestConvertPlan(t *testing.T) {
	workspace(t)
	if got := answer(t, "convert", "./plan.log", "-o", "buffers.csv"); !strings.Contains(got,
		"896 bytes; no plan needs less than 640") {
		t.Errorf("%s", got)
	}
	answer(t, "solve", "allocate", "buffers.csv", "--minimize", "--quiet", "-o", "placed.csv")
	answer(t, "convert", "./plan.log", "--offsets", "placed.csv", "-o", "better.log")
	if got := answer(t, "convert", "./better.log", "-o", "again.csv"); !strings.Contains(got, "640 bytes; no plan") {
		t.Errorf("%s", got)
	}
	// Offsets that clash are refused.
	placed, err := os.ReadFile("placed.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(placed)), "\n")
	for i := range lines[1:] {
		lines[i+1] = lines[i+1][:strings.LastIndex(lines[i+1], ",")] + ",0"
	}
	if err := os.WriteFile("wrong.csv", []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := call(t, "convert", "./plan.log", "--offsets", "wrong.csv"); r.status == exitOK {
		t.Error("offsets that clash are taken")
	}
}
