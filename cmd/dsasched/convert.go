package main

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware/convert"
)

func newConvert() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert FILE.yaml",
		Short: "Convert another tool's accelerator to a file of ours",
		Long: `Convert another tool's accelerator to a file that --hardware takes: a core of ZigZag,
a system of Stream (whose cores' files stand beside it or in its folder cores), a
hierarchy of AccelForge. Each field has a comment with its origin, or ASSUMED where
it has none. What has no counterpart is listed as lost, or refused by name where the
numbers would mean something else without it.`,
		Example: `  dsasched convert ./theirs.yaml -o ours.yaml
  dsasched convert ./theirs.yaml --json`,
		Args: oneArg("FILE.yaml", "give a file of ZigZag, Stream or AccelForge"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	asJSON := addJSON(cmd)
	out := addFile(cmd, "o out", "write the accelerator to this `file`", ".yaml", ".yml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := convert.File(args[0])
		if err != nil {
			return err
		}
		if out.name != "" {
			if err := replaceFile(out.name, []byte(r.YAML)); err != nil {
				return err
			}
		}
		return emit(cmd, *asJSON, r, func(b *bytes.Buffer) {
			if out.name == "" {
				b.WriteString(r.YAML)
				return
			}
			row(b, "accelerator", "%s, from %s", r.Name, r.Tool)
			row(b, "file", "%s", printable(out.name))
			for _, l := range r.Lost {
				row(b, "lost", "%s", printable(l))
			}
		})
	}
	return cmd
}
