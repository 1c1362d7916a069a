package dsasched_test

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// documents are all texts of the project that show code or commands.
func documents(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range append(files, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "notebooks/README.md") {
		texts[f] = read(t, f)
	}
	return texts
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fenced lists the blocks of one language.
func fenced(text, language string) []string {
	var blocks []string
	for {
		_, after, found := strings.Cut(text, "\n```"+language+"\n")
		if !found {
			return blocks
		}
		block, rest, _ := strings.Cut(after, "```\n")
		blocks = append(blocks, block)
		text = rest
	}
}

// The program in the README is the tested Example, but for what makes it a test.
func TestREADMEShowsTheExample(t *testing.T) {
	blocks := fenced(read(t, "README.md"), "go")
	if len(blocks) != 1 {
		t.Fatalf("the README has %d programs, want 1", len(blocks))
	}
	example := read(t, "example_test.go")
	begin, end := strings.Index(example, "\t// Output:"), strings.Index(example, "}\n\nfunc check")
	if begin < 0 || end < begin {
		t.Fatal("example_test.go has no output, or no check behind it")
	}
	example = example[:begin] + example[end:]
	example = strings.Replace(example, "package dsasched_test", "package main", 1)
	example = strings.Replace(example, "func Example() {", "func main() {", 1)
	if blocks[0] != example {
		t.Errorf("the README's program is\n%s\nand the example\n%s", blocks[0], example)
	}
}

// Code in other documents stands, as it is, in a program under examples or in an example of the engine's.
func TestDocumentsShowExamples(t *testing.T) {
	programs, err := filepath.Glob("examples/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, p := range append(programs, "scheduler/example_test.go") {
		code.WriteString(read(t, p))
	}
	shown := 0
	for file, text := range documents(t) {
		if file == "README.md" {
			continue
		}
		for _, b := range fenced(text, "go") {
			shown++
			if !strings.Contains(code.String(), b) {
				t.Errorf("%s shows what is in no example:\n%s", file, b)
			}
		}
	}
	if shown < 4 {
		t.Errorf("the documents show %d pieces of code, want one for each way to extend at least", shown)
	}
}

// Commands in documents run in tests: those of dsasched in cmd/cli, and these
// where it is said.
func TestCommandsInDocumentsAreTested(t *testing.T) {
	tested := []string{
		// The tests as a whole, and what they run: run_experiments.sh's experiments and
		// the notebooks with outputs taken differ from it by an argument.
		"./run_tests.sh", "./run_experiments.sh", ". scripts/env.sh", "go test ./model/... ./hardware/...",
		"./notebooks/run.sh", "./notebooks/run.sh --update", "./notebooks/run.sh --install",
		// Examples in their own tests.
		"go run ./examples/accelerator", "go run ./examples/command variants", "go run ./examples/experiment",
		"go run ./examples/scheduler", "go run ./systems/ansor/example", "go test -run ExampleRun_cost -v ./scheduler",
	}
	for file, text := range documents(t) {
		for _, b := range fenced(text, "sh") {
			for line := range strings.Lines(b) {
				command, _, _ := strings.Cut(line, "#")
				command = strings.TrimSpace(command)
				if command != "" && !strings.HasPrefix(command, "dsasched ") && !slices.Contains(tested, command) {
					t.Errorf("%s: no test is known to run %q", file, command)
				}
			}
		}
	}
}

// Links between documents lead somewhere.
func TestLinks(t *testing.T) {
	for file, text := range documents(t) {
		for {
			_, after, found := strings.Cut(text, "](")
			if !found {
				break
			}
			target, rest, _ := strings.Cut(after, ")")
			text = rest
			target, _, _ = strings.Cut(target, "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", file, target)
			}
		}
	}
}

// The citation file has what version 1.2.0 of the format requires.
func TestCitation(t *testing.T) {
	type person struct {
		Name   string `yaml:"name"`
		Family string `yaml:"family-names"`
		Given  string `yaml:"given-names"`
	}
	type work struct {
		Type    string   `yaml:"type"`
		Title   string   `yaml:"title"`
		Authors []person `yaml:"authors"`
		Year    int      `yaml:"year"`
	}
	var c struct {
		work       `yaml:",inline"`
		Version    string   `yaml:"cff-version"`
		Message    string   `yaml:"message"`
		License    string   `yaml:"license"`
		Repository string   `yaml:"repository-code"`
		References []work   `yaml:"references"`
		Keywords   []string `yaml:"keywords"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "CITATION.cff")), &c); err != nil {
		t.Fatal(err)
	}
	if c.Version != "1.2.0" || c.Type != "software" || c.Message == "" || c.License != "Apache-2.0" {
		t.Errorf("version %q, type %q, message %q, licence %q", c.Version, c.Type, c.Message, c.License)
	}
	if !strings.Contains(read(t, "go.mod"), "module "+strings.TrimPrefix(c.Repository, "https://")+"\n") {
		t.Errorf("the repository is %q, which is not that of go.mod", c.Repository)
	}
	if len(c.References) == 0 || c.References[0].Year != 2023 || c.References[0].Type != "conference-paper" {
		t.Fatalf("the references are %+v, want GraphTurbo's paper first", c.References)
	}
	for _, w := range append([]work{c.work}, c.References...) {
		if w.Title == "" || len(w.Authors) == 0 {
			t.Errorf("a work has title %q and %d authors", w.Title, len(w.Authors))
		}
		for _, a := range w.Authors {
			if (a.Name == "") == (a.Family == "" || a.Given == "") {
				t.Errorf("%s: an author is %+v, want a name, or given and family names", w.Title, a)
			}
		}
	}
}

// The changelog keeps to its form: versions, newest first, in sections of known names.
func TestChangelog(t *testing.T) {
	sections := 0
	first := ""
	for line := range strings.Lines(read(t, "CHANGELOG.md")) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "### "); ok {
			sections++
			if !slices.Contains([]string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, name) {
				t.Errorf("section %q", name)
			}
		} else if name, ok := strings.CutPrefix(line, "## "); ok && first == "" {
			first = name
		}
	}
	if first != "[Unreleased]" || sections == 0 {
		t.Errorf("the first version is %q, with %d sections in all", first, sections)
	}
}

// Each package says what it is for at a length that can be read alone.
func TestPackagesAreDocumented(t *testing.T) {
	out, err := exec.Command("go", "list", "-f",
		`{{.ImportPath}} {{.Name}} {{.Dir}} {{join .GoFiles " "}}{{range .CgoFiles}} {{.}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		doc := ""
		for _, name := range f[3:] {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(f[2], name), nil,
				parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			doc += file.Doc.Text()
		}
		begin := "Package " + f[1] + " "
		if f[1] == "main" {
			begin = "Command " + path.Base(f[0]) + " "
		}
		if !strings.HasPrefix(doc, begin) || len(doc) < 60 {
			t.Errorf("%s: the documentation is %q, want some sentences that begin with %q", f[0], doc, begin)
		}
	}
}
