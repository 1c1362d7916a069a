package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
)

// madeBy is the maker in the files that schedule writes.
const madeBy = "dsasched"

// scheduleHint is for a missing SCHEDULE.json.
const scheduleHint = "give a file that 'dsasched schedule MODEL -o FILE' has written"

func addScheduleHardware(cmd *cobra.Command) *string {
	accelerator := cmd.Flags().String("hardware", "",
		"built-in accelerator or YAML `file` (default: the built-in one that the schedule names)")
	completeFlag(cmd, "hardware", completeHardware)
	return accelerator
}

// givenHardware is --hardware, "" where it has its default.
func givenHardware(cmd *cobra.Command) string {
	f := cmd.Flags().Lookup("hardware")
	if !f.Changed {
		return ""
	}
	return f.Value.String()
}

func newCheckSchedule() *cobra.Command {
	cmd := command("check schedule")
	cmd.Args = oneArg("SCHEDULE.json", scheduleHint)
	cmd.ValidArgsFunction = completeFile("json")
	accelerator := addScheduleHardware(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f := try(scheduler.Open(args[0], *accelerator))
		a := try(f.Check(cmd.Context()))
		check(emit(cmd, a, func(b *bytes.Buffer) { writeChecked(b, a) }))
		if !a.OK {
			return fmt.Errorf("%s: %s", a.File, plural(len(a.Violations), "violation"))
		}
		return nil
	}
	return cmd
}

func writeChecked(b *bytes.Buffer, a *scheduler.Checked) {
	for _, v := range a.Violations {
		fmt.Fprintf(b, "%s\n", printable(v.String()))
	}
	if a.OK {
		fmt.Fprintf(b, "%s keeps all rules on %s: %s, %s, %s\n", printable(a.File), a.Hardware,
			plural(a.Schedules, "schedule"), plural(a.Groups, "group"), plural(a.Instances, "instance"))
	}
	for _, n := range a.Notes {
		fmt.Fprintf(b, "note: %s\n", printable(n))
	}
}

func newSimulate() *cobra.Command {
	cmd := command("simulate")
	cmd.Args = oneArg("SCHEDULE.json", scheduleHint)
	cmd.ValidArgsFunction = completeFile("json")
	full := addFull(cmd)
	accelerator, draw := addScheduleHardware(cmd), addPictures(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		check(draw.check())
		origin, r := try2(restore(cmd.Context(), args[0], *accelerator))
		return printResult(cmd, origin, r, "", draw, *full)
	}
	return cmd
}

// restoreAloud is restore for commands that do not print the result's notes: a note on the machine goes to stderr.
func restoreAloud(cmd *cobra.Command, path, accelerator string) (schedulefile.Origin, *scheduler.Result, error) {
	f, err := scheduler.Open(path, accelerator)
	if err != nil {
		return schedulefile.Origin{}, nil, err
	}
	if f.Note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "dsasched: %s: %s\n", printable(path), f.Note)
	}
	return f.Restore(cmd.Context())
}

// restore simulates the schedule of a file.
func restore(ctx context.Context, path, accelerator string) (schedulefile.Origin, *scheduler.Result, error) {
	return try(scheduler.Open(path, accelerator)).Restore(ctx)
}
