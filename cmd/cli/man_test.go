package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The document is what the command prints. After a change:
// go test ./cmd/cli -run CommandsDocument -update
func TestCommandsDocument(t *testing.T) {
	const file = "../../docs/commands.md"
	want := answer(t, "man", "--markdown")
	for _, c := range allCommands() {
		if !strings.Contains(want, "\n## "+c.CommandPath()+"\n") {
			t.Errorf("the document does not have %s", c.CommandPath())
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the command prints; -update mends it", file)
	}
}

// Each command has a page, which a formatter takes without complaint and in which
// the texts of the help stand.
func TestManualPages(t *testing.T) {
	t.Chdir(t.TempDir())
	answer(t, "man", "pages")
	first := map[string]string{}
	for _, c := range allCommands() {
		name := filepath.Join("pages", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		first[name] = string(page)
		if !strings.HasPrefix(string(page), ".") || !strings.Contains(string(page), "\n.SH EXAMPLE\n") {
			t.Errorf("%s begins with %.60q", name, page)
		}
	}
	files, err := os.ReadDir("pages")
	if err != nil || len(files) != len(first) {
		t.Errorf("%d files for %d commands, %v", len(files), len(first), err)
	}
	answer(t, "man", "pages")
	for name, page := range first {
		if again, err := os.ReadFile(name); err != nil || string(again) != page {
			t.Errorf("%s: the second page differs from the first (%v)", name, err)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("skipped: groff is not on this machine")
	}
	for _, c := range allCommands() {
		name := filepath.Join("pages", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		out, err := exec.Command(groff, "-man", "-Tutf8", "-P-c", "-ww", "-rLL=5000n", name).CombinedOutput()
		if err != nil || strings.Contains(string(out), "warning:") || strings.Contains(string(out), "error:") {
			t.Errorf("%s: %v: %.300s", name, err, out)
		}
		// Words of the help, whatever the lines: a formatter may take an asterisk or an
		// underscore for markup.
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		text := strings.NewReplacer("‘", "'", "’", "'", "−", "-", "‐", "-", "\b", "").Replace(squeeze(string(out)))
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if line = squeeze(line); line != "" && !strings.Contains(text, line) {
				t.Errorf("%s does not have the line %q", name, line)
			}
		}
	}
}
