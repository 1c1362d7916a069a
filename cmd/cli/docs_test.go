package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/highs"
)

// shown are the calls that have run, with what they printed: help and documents show some of them several times.
var shown = map[string]result{}

// callOnce runs a call, or gives what it printed when it last ran as it stands here, if it writes no file.
func callOnce(t *testing.T, line string) result {
	t.Helper()
	words := strings.Fields(line)
	r, again := shown[line]
	if !again || strings.Contains(line, "-o ") || words[1] == "run" {
		r = call(t, words[1:]...)
		shown[line] = r
	}
	return r
}

// callAsShown runs a call of dsasched as a document shows it, with ">" if it has one. One
// that writes no file runs once.
func callAsShown(t *testing.T, line string) {
	t.Helper()
	args, into, redirected := strings.Cut(line, ">")
	words := strings.Fields(args)
	if len(words) < 2 || words[0] != "dsasched" {
		t.Fatalf("%q is no call of dsasched", line)
	}
	if at := slices.Index(words, "--evaluations"); at > 0 {
		words[at+1] = "5" // all else of a search is as shown
	}
	r := callOnce(t, strings.Join(words, " "))
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
	if !found || !strings.HasPrefix(command, "dsasched ") {
		t.Fatalf("the README shows the command %q and the output %q", command, shown)
	}
	if r := callOnce(t, command); r.status != exitOK || !strings.HasPrefix(r.stdout, shown+"\n") {
		t.Errorf("%s prints\n%s\nand the README shows\n%s", command, r.stdout, shown)
	}
}

var code, times = regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?) (us|ms|s)\b`)

// Each command in the first column of the README's table of commands runs as it stands there, a flag alone
// after the command before it, and prints each time that its row names, to the digits that the row has. Rows
// that take more than seconds run in full tests alone.
func TestREADMERows(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(data), "\n| next | shows |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if rows := strings.Count(table, "\n") + 1; !found || rows < 8 {
		t.Fatalf("the README has %d rows of commands, expected 8 at least", rows)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	workspace(t)
	if err := os.Symlink(examples, "examples"); err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, " | ")
		t.Run(cells[0], func(t *testing.T) {
			var printed []float64 // seconds
			var command string
			for _, c := range code.FindAllStringSubmatch(cells[0], -1) {
				line := c[1]
				if strings.HasPrefix(line, "--") {
					line = command + " " + line
				} else {
					command = line
				}
				words := strings.Fields(line)
				if words[0] != "dsasched" {
					t.Fatalf("%q is no call of dsasched", line)
				}
				slow := []string{"best", "tune", "certify", "explain-kernel"}
				if slices.Contains(slow, words[1]) && os.Getenv("DSASCHED_FULL") == "" {
					t.SkipNow()
				}
				if words[1] == "run" || words[1] == "compare" {
					t.Skip("runs in tests of its own, and its row names no time")
				}
				r := callOnce(t, line)
				if strings.Contains(r.stderr, highs.ErrUnavailable.Error()) {
					t.Skip(r.stderr)
				}
				if r.status != exitOK {
					t.Fatalf("%s: status %d, stderr %q", line, r.status, r.stderr)
				}
				for _, m := range times.FindAllStringSubmatch(r.stdout, -1) {
					printed = append(printed, seconds(t, m))
				}
			}
			for _, m := range times.FindAllStringSubmatch(cells[1], -1) {
				_, digits, _ := strings.Cut(m[1], ".")
				half := .5000001 * seconds(t, []string{"", "1e-" + strconv.Itoa(len(digits)), m[2]})
				said := seconds(t, m)
				if !slices.ContainsFunc(printed, func(p float64) bool { return max(p, said)-min(p, said) <= half }) {
					t.Errorf("the README says %s, which its commands do not print", m[0])
				}
			}
		})
	}
}

// seconds converts a number and its unit to seconds.
func seconds(t *testing.T, m []string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v * map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1}[m[2]]
}
