package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/rcpsp"
)

func newRCPSP() *cobra.Command {
	method := &choice{value: "search", kind: "METHOD", words: methodWords(rcpsp.Methods())}
	cmd := &cobra.Command{
		Use:   "rcpsp FILE.sm",
		Short: "Schedule a project under precedence and resource limits",
		Long: `Schedule a project of PSPLIB (single mode, .sm) so that it ends as early as possible:
activities have durations, wait for others and share renewable resources. It is the
problem of issuing a kernel's commands to units and DMA queues.

Start times are in the order of the jobs in the file. The status is optimal, or
feasible if the bound is below the makespan. ilp and search begin with the schedule
of list; if interrupted, they print the best one so far.`,
		Example: `  dsasched rcpsp project.sm
  dsasched rcpsp project.sm --method list --json
  dsasched rcpsp project.sm --time-limit 10s -o schedule.json`,
		Args: oneArg("FILE.sm", "give the path of a project in PSPLIB's .sm format"),
	}
	asJSON := addJSON(cmd)
	addChoice(cmd, method, "method", "how to schedule: list, ilp or search")
	limit := cmd.Flags().Duration("time-limit", time.Minute, "when to stop, such as 10s or 5m; 0 is never")
	completeFlag(cmd, "time-limit", cobra.NoFileCompletions)
	out := cmd.Flags().StringP("out", "o", "", "file to write the JSON to as well")
	quiet := addQuiet(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *limit < 0:
			return usagef("--time-limit is %v, expected 0 or more", *limit)
		case cmd.Flags().Changed("out") && *out == "":
			return usagef("--out is empty, expected a file name")
		case *out == stdoutName:
			return usagef("-o - is not needed: --json prints the answer")
		case *out != "" && sameFile(args[0], *out):
			return usagef("%s is the project itself: give -o another file", *out)
		}
		p, err := readProject(args[0])
		if err != nil {
			return err
		}
		show := newStatus(cmd, *quiet)
		opts := rcpsp.Options{TimeLimit: *limit, Progress: show.solve(method.value, decimal)}
		if opts.Solver, err = solverFor(rcpsp.Methods(), method.value); err != nil {
			return err
		}
		a, err := rcpsp.Solve(cmd.Context(), p, method.value, opts)
		show.end()
		if err != nil {
			return err
		}
		if *out != "" {
			data, err := json.MarshalIndent(a, "", "  ")
			if err != nil {
				return fmt.Errorf("the answer can't be written as JSON: %w", err)
			}
			if err := replaceFile(*out, append(data, '\n')); err != nil {
				return err
			}
		}
		if err := emit(cmd, *asJSON, a, func(b *bytes.Buffer) { writeRCPSP(b, p, a) }); err != nil {
			return err
		}
		return cmd.Context().Err() // what is known has been told
	}
	return cmd
}

func readProject(file string) (*rcpsp.Project, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rcpsp.ParsePSPLIB(f, file)
}

func writeRCPSP(b *bytes.Buffer, p *rcpsp.Project, a *rcpsp.Result) {
	row(b, "project", "%s, %d activities, %d resources", printable(p.Name), len(p.Activities), len(p.Resources))
	row(b, "method", "%s", a.Method)
	row(b, "status", "%s", a.Status)
	row(b, "makespan", "%d", a.Makespan)
	row(b, "bound", "%d", a.Bound)
	row(b, "time", "%s", duration(a.Seconds))
	b.WriteByte('\n')
	rows := make([][]string, len(a.Start))
	for i, s := range a.Start {
		rows[i] = []string{printable(p.Activities[i].Name), fmt.Sprint(s), fmt.Sprint(s + p.Activities[i].Duration)}
	}
	writeTable(b, "rrr", []string{"job", "start", "end"}, rows)
}
