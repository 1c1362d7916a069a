package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/rcpsp"
)

// rcpspJSON has times in the file's unit, but for seconds, which are those that the
// method took.
type rcpspJSON struct {
	Method   string  `json:"method"`
	Status   string  `json:"status"`
	Makespan int64   `json:"makespan"`
	Bound    int64   `json:"bound"`
	Seconds  float64 `json:"seconds"`
	Start    []int64 `json:"start"`
}

func newRCPSP() *cobra.Command {
	method := &choice{value: "search", kind: "METHOD", words: []cobra.Completion{
		cobra.CompletionWithDesc("list", "list scheduling with priority rules and justification; no proof"),
		cobra.CompletionWithDesc("ilp", "integer linear program, solved by HiGHS; for small projects"),
		cobra.CompletionWithDesc("search", "constraint propagation that learns from dead ends"),
	}}
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
		a, stopped := solveProject(cmd.Context(), p, method.value, *limit, show.solve(method.value, decimal))
		show.end()
		if a == nil {
			return stopped
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
		return stopped
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

// solveProject answers by a method. An interrupted one gives an answer and an error.
func solveProject(ctx context.Context, p *rcpsp.Project, method string, limit time.Duration, progress func(milp.Progress)) (*rcpspJSON, error) {
	begin := time.Now()
	short, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		short, cancel = context.WithTimeout(ctx, limit)
	}
	start := rcpsp.Best(short, p, rcpsp.ListOptions{})
	cancel()
	r := &rcpsp.Result{Status: milp.Feasible, Start: start, Makespan: p.Makespan(start), Bound: p.Bounds().Best()}
	if r.Bound == r.Makespan {
		r.Status = milp.Optimal
	}
	err := ctx.Err()
	if err == nil && method != "list" && r.Status != milp.Optimal {
		if limit > 0 {
			limit = max(1, limit-time.Since(begin))
		}
		var better *rcpsp.Result
		switch method {
		case "search":
			better, err = rcpsp.Search(ctx, p, rcpsp.Options{TimeLimit: limit, Start: start, Progress: progress})
		case "ilp":
			var solver milp.Solver
			if solver, err = highs.New(); err == nil {
				better, err = rcpsp.ILP(ctx, solver, p, rcpsp.ILPOptions{TimeLimit: limit, Start: start, Progress: progress})
			}
		}
		if err != nil && (better == nil || ctx.Err() == nil) {
			return nil, err
		}
		r = better
	}
	if e := p.Check(r.Start); e != nil {
		return nil, e
	}
	return &rcpspJSON{method, r.Status.String(), r.Makespan, r.Bound, time.Since(begin).Seconds(), r.Start}, err
}

func writeRCPSP(b *bytes.Buffer, p *rcpsp.Project, a *rcpspJSON) {
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
