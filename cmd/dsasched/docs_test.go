package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
)

// shown are the calls that have run: help and documents show some of them twice.
var shown = map[string]bool{}

// callAsShown runs a call of dsasched as a document shows it, with ">" if it has one. One
// that writes no file runs once.
func callAsShown(t *testing.T, line string) {
	t.Helper()
	args, into, redirected := strings.Cut(line, ">")
	words := strings.Fields(args)
	if len(words) < 2 || words[0] != "dsasched" {
		t.Fatalf("%q is no call of dsasched", line)
	}
	writes := redirected || strings.Contains(line, "-o ") || words[1] == "run"
	if shown[line] && !writes {
		return
	}
	shown[line] = true
	if at := slices.Index(words, "--evaluations"); at > 0 && os.Getenv("DSASCHED_FULL") == "" {
		words[at+1] = "5" // all else of a search is as shown
	}
	r := call(t, words[1:]...)
	if strings.Contains(r.stderr, highs.ErrUnavailable.Error()) {
		t.Skip(r.stderr)
	}
	if r.status != exitOK || r.stdout == "" {
		t.Errorf("%s: status %d, stdout %q, stderr %q", line, r.status, r.stdout, r.stderr)
	}
	if redirected {
		if err := os.WriteFile(strings.TrimSpace(into), []byte(r.stdout), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Every call of dsasched in the documents' blocks, and in the last column of a table, runs as it stands there.
func TestDocumentedCalls(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../README.md", "../../CONTRIBUTING.md", "../../notebooks/README.md")
	texts := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[f] = string(data)
	}
	workspace(t)
	calls := 0
	for _, f := range files {
		inShell := false
		for line := range strings.Lines(texts[f]) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "```"):
				inShell = line == "```sh"
			case inShell && strings.HasPrefix(line, "dsasched "):
				calls++
				t.Run(line, func(t *testing.T) { callAsShown(t, line) })
			case !inShell && strings.HasSuffix(line, "` |"):
				if cells := strings.Split(line, "`"); strings.HasPrefix(cells[len(cells)-2], "dsasched ") {
					t.Run(line, func(t *testing.T) { callAsShown(t, cells[len(cells)-2]) })
				}
			}
		}
	}
	if calls < 5 {
		t.Errorf("the documents show %d calls, expected at least the README's", calls)
	}
}

// The README shows the beginning of what its command prints.
func TestREADMEShowsTheOutput(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```sh\n")
	command, rest, _ := strings.Cut(rest, "\n```\n")
	_, rest, _ = strings.Cut(rest, "```text\n")
	shown, _, found := strings.Cut(rest, "```\n")
	words := strings.Fields(command)
	if !found || len(words) < 2 {
		t.Fatalf("the README shows the command %q and the output %q", command, shown)
	}
	if r := call(t, words[1:]...); r.status != exitOK || !strings.HasPrefix(r.stdout, shown+"\n") {
		t.Errorf("%s prints\n%s\nand the README shows\n%s", command, r.stdout, shown)
	}
}
