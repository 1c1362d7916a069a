package main

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
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
