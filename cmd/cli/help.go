package cli

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/highs"
)

// helpText says of each command what its help says. A section begins with "== " and how the command is used; a line of
// what it does, a text and examples follow.
//
//go:embed help.txt
var helpText string

// command makes a command with what the text says of it, and the flag --json. Its name is the whole one: "solve order".
func command(name string) *cobra.Command {
	for section := range strings.SplitSeq(strings.TrimPrefix(helpText, "== "), "\n== ") {
		use, text, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(use+" ", name+" ") {
			continue
		}
		text, examples, _ := strings.Cut(text, "\nExamples:\n")
		short, long, _ := strings.Cut(text, "\n\n")
		return withJSON(&cobra.Command{Use: use[strings.LastIndexByte(name, ' ')+1:], Short: strings.TrimSpace(short),
			Long: strings.TrimSpace(long), Example: strings.TrimRight(examples, "\n")})
	}
	panic("dsasched: help.txt says nothing of " + name)
}

// withJSON adds --json, of which asJSON is the value.
func withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "print JSON instead of text")
	return cmd
}

func newMan() *cobra.Command {
	cmd := command("man")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var b bytes.Buffer
		writeReference(&b, cmd.Root())
		answer := struct {
			Document string `json:"document"`
		}{b.String()}
		return emit(cmd, answer, func(out *bytes.Buffer) { out.Write(b.Bytes()) })
	}
	return cmd
}

// documented lists a command and those below it, by name.
func documented(cmd *cobra.Command) []*cobra.Command {
	cmd.InitDefaultHelpFlag() // cobra adds it only to the command that runs
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			list = append(list, documented(c)...)
		}
	}
	return list
}

// writeReference writes all commands as one document. Examples are run by a test of
// the help, so they stand here without being marked as calls.
func writeReference(b *bytes.Buffer, root *cobra.Command) {
	b.WriteString(
		"# Commands\n\nWritten by `dsasched man`: what `--help` says of each command, in one place.\n\n")
	list := documented(root)
	for _, c := range list[1:] {
		path := c.CommandPath()
		fmt.Fprintf(b, "- [`%s`](#%s): %s\n", strings.TrimPrefix(path, root.Name()+" "),
			strings.ReplaceAll(path, " ", "-"), c.Short)
	}
	block := func(text string) { fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.TrimRight(text, "\n")) }
	for _, c := range list {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		block(c.UseLine())
		if c.Long != "" {
			block(c.Long)
		}
		if flags := c.NonInheritedFlags().FlagUsagesWrapped(lineWidth); flags != "" {
			block(flags)
		}
		var calls []string
		for line := range strings.Lines(c.Example) {
			calls = append(calls, strings.TrimSpace(line))
		}
		b.WriteString("\nExamples:\n")
		block(strings.Join(calls, "\n"))
	}
}

// shells have a script, by cobra's generators.
var shells = []string{"bash", "zsh", "fish"}

func newCompletion() *cobra.Command {
	cmd := command("completion")
	cmd.Args = oneArg("SHELL", "expected "+oneOf(shells))
	cmd.ValidArgsFunction = completeOne(shells, cobra.ShellCompDirectiveNoFileComp)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var script bytes.Buffer
		var err error
		switch root := cmd.Root(); args[0] {
		case "bash":
			err = root.GenBashCompletionV2(&script, true)
		case "zsh":
			err = root.GenZshCompletion(&script)
		case "fish":
			err = root.GenFishCompletion(&script, true)
		default:
			err = usagef("unknown shell %q, expected %s", args[0], oneOf(shells))
		}
		if err != nil {
			return err
		}
		answer := struct {
			Shell  string `json:"shell"`
			Script string `json:"script"`
		}{args[0], script.String()}
		return emit(cmd, answer, func(b *bytes.Buffer) { b.Write(script.Bytes()) })
	}
	return cmd
}

type versionJSON struct {
	Module   string  `json:"module"`
	Version  string  `json:"version"`
	Revision string  `json:"revision,omitempty"`
	Modified bool    `json:"modified"` // since that revision
	Go       string  `json:"go"`
	Platform string  `json:"platform"`
	Cgo      bool    `json:"cgo"`
	HiGHS    *string `json:"highs"` // null: not in this build
	Note     string  `json:"note,omitempty"`
}

func newVersion() *cobra.Command {
	cmd := command("version")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions()
		return emit(cmd, v, func(b *bytes.Buffer) {
			version := v.Version
			if v.Revision != "" {
				version += " (revision " + v.Revision
				if v.Modified {
					version += ", modified"
				}
				version += ")"
			}
			row(b, "dsasched", "%s", version)
			cgo := "with cgo"
			if !v.Cgo {
				cgo = "without cgo"
			}
			row(b, "Go", "%s %s, %s", v.Go, v.Platform, cgo)
			if v.HiGHS != nil {
				row(b, "HiGHS", "%s", *v.HiGHS)
			} else {
				row(b, "HiGHS", "%s", v.Note)
			}
		})
	}
	return cmd
}

// release is the version of a released program, which scripts/release.sh sets; "": that of the module.
var release string

func versions() versionJSON {
	v := versionJSON{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Module = info.Main.Path
		if info.Main.Version != "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "CGO_ENABLED":
				v.Cgo = s.Value == "1"
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if release != "" {
		v.Version = release
	}
	if _, err := highs.New(); errors.Is(err, highs.ErrUnavailable) {
		v.Note = highs.ErrUnavailable.Error()
	} else if err != nil {
		v.Note = err.Error()
	} else {
		version := highs.Version()
		v.HiGHS = &version
	}
	return v
}
