package main

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments"
)

// reportJSON is the answer of `dsasched report`.
type reportJSON struct {
	File  string `json:"file"`
	Bytes int    `json:"file_bytes"`
	*experiments.Contents
}

func newReport() *cobra.Command {
	cmd := command("report")
	cmd.ValidArgsFunction = completeOne(nil, cobra.ShellCompDirectiveFilterDirs)
	cmd.Args = atMostOneArg("folder of results")
	out := addFile(cmd, "o output", "`file` to write; '-': the standard output (default RESULTS/report.html)")
	out.stdout = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := "results"
		if len(args) > 0 {
			dir = args[0]
		}
		if dir == "" {
			return usagef("the folder of results is empty, expected a name")
		}
		file := cmp.Or(out.name, filepath.Join(dir, "report.html"))
		html, contents := try2(experiments.Page(dir))
		if file == stdoutName {
			if _, err := cmd.OutOrStdout().Write(html); err != nil {
				return fmt.Errorf("the page can't be written: %w", err)
			}
			return nil
		}
		check(replaceFile(file, html))
		lines, figures := 0, 0
		var names []string
		for _, e := range contents.Experiments {
			lines += e.Lines
			figures += len(e.Figures)
			names = append(names, printable(e.Name))
		}
		answer := reportJSON{file, len(html), contents}
		return emit(cmd, answer, func(b *bytes.Buffer) {
			row(b, "page", "%s, %.2f MB", printable(file), float64(len(html))/1e6)
			rowOf(b, "experiments", names)
			row(b, "compared", "%d published numbers and statements", lines)
			row(b, "figures", "%d", figures)
			if !contents.Viewer {
				row(b, "viewer", "none: 'dsasched run timeline' records schedules for it")
			}
		})
	}
	return cmd
}

// solverVersion names the solver for the record, or is empty.
func solverVersion() string {
	if v := versions(); v.HiGHS != nil {
		return "HiGHS " + *v.HiGHS
	}
	return ""
}
