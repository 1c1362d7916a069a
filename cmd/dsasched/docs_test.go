package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
)

// Every call of dsasched in the documents runs as it stands there.
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
				t.Run(line, func(t *testing.T) {
					args, into, redirected := strings.Cut(line, " > ")
					r := call(t, strings.Fields(args)[1:]...)
					if strings.Contains(r.stderr, highs.ErrUnavailable.Error()) {
						t.Skip(r.stderr)
					}
					if r.status != exitOK || r.stdout == "" {
						t.Errorf("%s: status %d, stdout %q, stderr %q", f, r.status, r.stdout, r.stderr)
					}
					if redirected {
						if err := os.WriteFile(into, []byte(r.stdout), 0o666); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}
	}
	if calls < 5 {
		t.Errorf("the documents show %d calls, expected at least the README's", calls)
	}
}
