package main

import (
	"bytes"

	"github.com/spf13/cobra"
)

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
