package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/rcpsp"
	"github.com/dsasched/dsasched/internal/safefile"
)

func newRCPSP() *cobra.Command {
	cmd := command("solve rcpsp")
	cmd.Args = oneArg("FILE.sm", "give the path of a project in PSPLIB's .sm format")
	f := addFileSolver(cmd, rcpsp.Methods(), "`file` to write the JSON to as well",
		"schedule to begin with, a `file` of -o")
	return fileProblem[*rcpsp.Project, []int64, *rcpsp.Result]{readProject, loadStarts, rcpsp.Solve,
		writeRCPSP}.run(cmd, f)
}

func readProject(file string) (*rcpsp.Project, error) {
	f, err := safefile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rcpsp.ParsePSPLIB(f, file)
}

// loadStarts reads the start times of a result, and checks them.
func loadStarts(file string, p *rcpsp.Project) ([]int64, error) {
	data, err := safefile.Read(file)
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
