package main

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"
)

type completionJSON struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

// shells maps each shell to cobra's generator of its script.
var shells = []struct {
	name     string
	generate func(root *cobra.Command, w io.Writer) error
}{
	{"bash", func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
	{"zsh", func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) }},
	{"fish", func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
}

func newCompletion() *cobra.Command {
	var names []string
	for _, s := range shells {
		names = append(names, s.name)
	}
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh or fish",
		Long: `Print a script that makes the shell complete commands, flags, and the names of
networks, accelerators, variants and experiments. Write it to a file to have it in
every new shell:

  bash  with the package bash-completion, into
        ~/.local/share/bash-completion/completions/dsasched
  zsh   into a file _dsasched in a folder that is in $fpath before compinit runs
  fish  into ~/.config/fish/completions/dsasched.fish`,
		Example: `  dsasched completion bash
  dsasched completion zsh
  dsasched completion fish`,
		Args: oneArg("SHELL", "expected "+oneOf(names)),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, s := range shells {
			if s.name != args[0] {
				continue
			}
			var script bytes.Buffer
			if err := s.generate(cmd.Root(), &script); err != nil {
				return err
			}
			return emit(cmd, *asJSON, completionJSON{s.name, script.String()}, func(b *bytes.Buffer) { b.Write(script.Bytes()) })
		}
		return usagef("unknown shell %q, expected %s", args[0], oneOf(names))
	}
	return cmd
}
