package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
)

func allCommands() []*cobra.Command {
	root := newRoot(fakeExperiment)
	root.InitDefaultHelpCmd()
	return documented(root)
}

// What the help shows is run as it stands.
func TestExamples(t *testing.T) {
	workspace(t)
	answer(t, "tune", "toy-fig3", "--trials", "30", "-o", "tuned.json") // commands come in the order of their names
	answer(t, "schedule", "resnet50", "--batch", "8", "--variant", "tvm", "-o", "other.schedule.json")
	for _, c := range allCommands() {
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help %q", c.CommandPath(), c.Short)
		}
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			t.Run(line, func(t *testing.T) { callAsShown(t, line) })
		}
	}
}

func TestEveryCommandHasJSON(t *testing.T) {
	for _, c := range allCommands() {
		if !c.HasSubCommands() && c.Name() != "help" && c.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json", c.CommandPath())
		}
	}
}

// Help says what a command does, beginning with the verb.
func TestHelpBeginsWithAVerb(t *testing.T) {
	verbs := strings.Fields(
		"Check Choose Compare Convert Divide Explain Find Fit Give List Make Merge Order Place Play Print Run Schedule Show Simulate Solve Split Write")
	for _, c := range allCommands() {
		for _, text := range []string{c.Short, c.Long} {
			if first, _, _ := strings.Cut(text, " "); text != "" && !slices.Contains(verbs, first) {
				t.Errorf("%s: help begins with %q", c.CommandPath(), first)
			}
		}
	}
}

// The list of commands has headings, under which each stands where one looks for it.
func TestHelpHasGroups(t *testing.T) {
	at, titles := "", []string(nil)
	under := map[string]string{}
	for line := range strings.Lines(answer(t, "help")) {
		line = strings.TrimRight(line, "\n")
		switch name, _, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case strings.HasSuffix(line, ":") && line[0] != ' ':
			at = strings.TrimSuffix(line, ":")
			titles = append(titles, at)
		case strings.HasPrefix(line, "  "):
			under[name] = at
		}
	}
	if want := []string{"Usage", "Examples", "Schedule", "Compare and prove", "Search", "Draw", "Experiments", "Files",
		"Advanced", "Additional Commands", "Flags"}; !slices.Equal(titles, want) {
		t.Errorf("the headings are %q, want %q", titles, want)
	}
	for _, g := range commandGroups {
		for _, name := range strings.Fields(g.commands) {
			if under[name] != g.title {
				t.Errorf("%s stands under %q, want %q", name, under[name], g.title)
			}
		}
	}
}

func TestHelpFitsAScreen(t *testing.T) {
	for _, c := range allCommands() {
		for line := range strings.Lines(c.Long) {
			if len(line) > 86 {
				t.Errorf("%s: %d characters: %s", c.CommandPath(), len(line), line)
			}
		}
		words := append([]string{"help"}, strings.Fields(c.CommandPath())[1:]...)
		text, all := answer(t, words...), answer(t, append(words, "--help-all")...)
		if n := strings.Count(text, "\n"); n > helpHeight+1 && !c.HasSubCommands() {
			t.Errorf("%s: help has %d lines, expected %d at most", c.CommandPath(), n, helpHeight)
		}
		if !strings.Contains(all, c.Long) {
			t.Errorf("%s: --help-all leaves out a part of the text", c.CommandPath())
		}
		for line := range strings.Lines(text + all) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > helpWidth {
				t.Errorf("%s: %d characters: %s", c.CommandPath(), n, line)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	var variants []string
	for _, v := range recipes.Known() {
		variants = append(variants, v.Name)
	}
	all := []string{
		"bench",
		"best",
		"bound",
		"calibrate",
		"certify",
		"check",
		"compare",
		"compare-hardware",
		"completion",
		"convert",
		"explain",
		"explain-kernel",
		"export",
		"hardware",
		"help",
		"inspect",
		"list",
		"man",
		"models",
		"onnx-ops",
		"report",
		"run",
		"schedule",
		"simulate",
		"solve",
		"sweep",
		"tasks",
		"tune",
		"variants",
		"version",
		"view",
	}
	for _, c := range []struct {
		args      []string
		want      []string
		directive string // of cobra: 0 also offers files, 4 does not, 8 offers files with these endings, 16 offers folders
	}{
		{[]string{""}, all, ":4"},
		{[]string{"help", ""}, all, ":4"},
		{[]string{"report", ""}, nil, ":16"},
		{[]string{"schedule", ""}, zoo.Names(), ":0"},
		{[]string{"schedule", "resnet50", ""}, nil, ":4"},
		{[]string{"inspect", ""}, zoo.Names(), ":0"},
		{[]string{"solve", "allocate", "--method", ""},
			[]string{"first-fit", "best-fit", "longest-lifetime", "largest-first", "search", "ilp"}, ":4"},
		{[]string{"solve", "allocate", ""}, []string{"csv"}, ":8"},
		{[]string{"hardware", ""}, allMachines(), ":0"},
		{[]string{"schedule", "--hardware", ""}, hardware.Presets(), ":0"},
		{[]string{"schedule", "--variant", ""}, variants, ":4"},
		{[]string{"schedule", "--dtype", ""}, []string{"f16", "f32", "f64", "bf16", "f8", "f4", "i8"}, ":4"},
		{[]string{"inspect", "--dtype", ""}, []string{"f16", "f32", "f64", "bf16", "f8", "f4", "i8"}, ":4"},
		{[]string{"schedule", "--spill", ""}, []string{"longest-lifetime", "largest-first", "needed", "overwrite",
			"least-moved", "search"}, ":4"},
		{[]string{"schedule", "--batch", ""}, nil, ":4"},
		{[]string{"simulate", ""}, []string{"json"}, ":8"},
		{[]string{"check", "schedule", "--hardware", ""}, hardware.Presets(), ":0"},
		{[]string{"explain", ""}, zoo.Names(), ":0"},
		{[]string{"explain", "--op", ""}, nil, ":4"},
		{[]string{"schedule", "--issue", ""}, []string{"in-order", "exposed", "cross-layer", "cross-unit"}, ":4"},
		{[]string{"sweep", ""}, zoo.Names(), ":0"},
		{[]string{"sweep", "resnet50", ""}, zoo.Names(), ":0"},
		{[]string{"sweep", "resnet50", "--set", "weights="}, []string{"weights=reload", "weights=keep",
			"weights=keep-inputs"}, ":6"},
		{[]string{"sweep", "resnet50", "--set", "spill=largest-first,"},
			[]string{"spill=largest-first,longest-lifetime", "spill=largest-first,needed", "spill=largest-first,overwrite",
				"spill=largest-first,least-moved", "spill=largest-first,search"},
			":6"},
		{[]string{"compare-hardware", "resnet50", "--variant", ""}, variants, ":4"},
		{[]string{"solve", "bind", ""}, zoo.Names(), ":0"},
		{[]string{"solve", "bind", "--method", ""}, []string{"greedy", "ilp", "search"}, ":4"},
		{[]string{"solve", "stitch", ""}, zoo.Names(), ":0"},
		{[]string{"solve", "stitch", "--hardware", ""}, []string{"t4-simt", "v100-simt"}, ":0"},
		{[]string{"solve", "stitch", "--method", ""}, []string{"astitch", "xla", "tvm", "tensorrt", "framework",
			"exact", "xla-mapping", "astitch-unmerged", "astitch-nearby"}, ":4"},
		{[]string{"solve", "split", ""}, zoo.Names(), ":0"},
		{[]string{"solve", "split", "--method", ""}, []string{"greedy", "ilp", "search"}, ":4"},
		{[]string{"solve", "order", "--method", ""}, []string{"bfs", "dfs", "heavy", "counting-ilp", "search"}, ":4"},
		{[]string{"solve", "order", "--objective", ""}, []string{"traffic", "peak"}, ":4"},
		{[]string{"run", ""}, experiments.Names(), ":4"},
		{append(append([]string{"run"}, experiments.Names()...), ""), nil, ":4"},
		{[]string{"run", "--out", ""}, nil, ":16"},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}, ":4"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			r := call(t, append([]string{"__complete"}, c.args...)...)
			if r.status != exitOK {
				t.Fatalf("%+v", r)
			}
			lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
			var words []string
			for _, l := range lines[:len(lines)-1] {
				word, _, _ := strings.Cut(l, "\t")
				words = append(words, word)
			}
			if !slices.Equal(words, c.want) || lines[len(lines)-1] != c.directive {
				t.Errorf("offers %q %s, want %q %s", words, lines[len(lines)-1], c.want, c.directive)
			}
		})
	}
}
