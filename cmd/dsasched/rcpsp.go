package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/rcpsp"
	"github.com/dsasched/dsasched/regular"
)

func newRCPSP() *cobra.Command {
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
	f := addFileSolver(cmd, rcpsp.Methods(), "`file` to write the JSON to as well", "schedule to begin with, a `file` of -o")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := readProject(args[0])
		if err != nil {
			return err
		}
		a, err := solveFile(cmd, f, args[0], func(file string) ([]int64, error) { return loadStarts(file, p) }, func(ctx context.Context, method string, opts rcpsp.Options) (*rcpsp.Result, error) {
			return rcpsp.Solve(ctx, p, method, opts)
		})
		if err != nil {
			return err
		}
		if err := writeJSON(f.out.name, a, "  "); err != nil {
			return err
		}
		if err := emit(cmd, *f.asJSON, a, func(b *bytes.Buffer) { writeRCPSP(b, p, a) }); err != nil {
			return err
		}
		return cmd.Context().Err() // what is known is printed
	}
	return cmd
}

func readProject(file string) (*rcpsp.Project, error) {
	f, err := regular.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rcpsp.ParsePSPLIB(f, file)
}

// loadStarts reads the start times of a result, and checks them.
func loadStarts(file string, p *rcpsp.Project) ([]int64, error) {
	data, err := regular.Read(file)
	if err != nil {
		return nil, err
	}
	return decodeStarts(file, data, p)
}

func decodeStarts(file string, data []byte, p *rcpsp.Project) ([]int64, error) {
	var r rcpsp.Result
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w, expected the JSON of a schedule", file, err)
	}
	if err := p.Check(r.Start); err != nil {
		return nil, fmt.Errorf("%s: start: %w", file, err)
	}
	return r.Start, nil
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
