package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
)

// madeBy is the maker in the files that schedule writes.
const madeBy = "dsasched"

// scheduleHint is for a missing SCHEDULE.json.
const scheduleHint = "give a file that 'dsasched schedule MODEL -o FILE' has written"

func completeScheduleFile(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// openSchedule reads a schedule and finds its accelerator: the one that is asked for,
// or the built-in one that the file names. The note is empty unless the accelerator
// is another than the schedule was made for.
func openSchedule(path, accelerator string) (f *schedulefile.File, spec *hardware.Spec, note string, err error) {
	if f, err = schedulefile.Load(path); err != nil {
		return nil, nil, "", err
	}
	name := accelerator
	if name == "" {
		name = f.Hardware.Name
		if !slices.Contains(hardware.Presets(), name) {
			return nil, nil, "", fmt.Errorf("%s: hardware.name: found %q, which is not built in: give --hardware with its file", path, name)
		}
	}
	if spec, err = hardware.Load(name); err != nil {
		return nil, nil, "", err
	}
	if was := f.Hardware.Fingerprint; was != "" && was != schedulefile.Fingerprint(spec) {
		note = fmt.Sprintf("made for another accelerator, %s, or another description of it", f.Hardware.Name)
	}
	return f, spec, note, nil
}

func addScheduleHardware(cmd *cobra.Command) *string {
	accelerator := cmd.Flags().String("hardware", "", "built-in accelerator or YAML `file` (default: the built-in one that the schedule names)")
	completeFlag(cmd, "hardware", completeHardware)
	return accelerator
}

type checkJSON struct {
	File       string                   `json:"file"`
	Hardware   string                   `json:"hardware"`
	OK         bool                     `json:"ok"`
	Violations []schedulefile.Violation `json:"violations"`
	Schedules  int                      `json:"schedule_count"`
	Groups     int                      `json:"group_count"`
	Instances  int                      `json:"instances"`
	MemoryPlan bool                     `json:"memory_plan"` // whether all schedules have one
	Notes      []string                 `json:"notes"`
}

// violationsError makes the exit status that of a failure; what is wrong is on the
// standard output.
type violationsError struct {
	file  string
	count int
}

func (e *violationsError) Error() string {
	return fmt.Sprintf("%s: %s", e.file, plural(e.count, "violation"))
}

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check SCHEDULE.json",
		Short: "Check a schedule against the rules",
		Long: `Check a schedule, whoever has made it, against the rules, without asking how it
was made: groups and layers hold each operator once and can run in their order;
factors divide what they split; each instance runs once, after all that it reads;
bindings have the cores; every value has a place within its memory, with nothing
else there at the time; the clusters work on the whole batch.

Every violation is named with its field in the file. Where later rules make no
sense before earlier ones hold, they are left for the next time.
docs/file-formats.md describes the file.

Exit status: 1 if a rule is broken.`,
		Example: `  dsasched check net.schedule.json
  dsasched check net.schedule.json --hardware stcp920 --json`,
		Args:              oneArg("SCHEDULE.json", scheduleHint),
		ValidArgsFunction: completeScheduleFile,
	}
	asJSON := addJSON(cmd)
	accelerator := addScheduleHardware(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, spec, note, err := openSchedule(args[0], *accelerator)
		if err != nil {
			return err
		}
		machine, err := scheduler.MachineOf(f, spec)
		if err != nil {
			return fmt.Errorf("%s: hardware.level: %w", args[0], err)
		}
		a := checkJSON{File: args[0], Hardware: spec.Name, Violations: schedulefile.Check(f, machine), Schedules: len(f.Schedules), MemoryPlan: true, Notes: []string{}}
		a.OK = len(a.Violations) == 0
		if a.OK {
			a.Violations = []schedulefile.Violation{}
		}
		for i := range f.Schedules {
			a.Groups += len(f.Schedules[i].Groups)
			a.Instances += len(f.Schedules[i].Instances)
			a.MemoryPlan = a.MemoryPlan && f.Schedules[i].Memory != nil
		}
		if note != "" {
			a.Notes = append(a.Notes, note)
		}
		if !a.MemoryPlan {
			a.Notes = append(a.Notes, "there is no memory plan; 'dsasched simulate' makes one")
		}
		if err := emit(cmd, *asJSON, a, a.write); err != nil {
			return err
		}
		if !a.OK {
			return &violationsError{a.File, len(a.Violations)}
		}
		return nil
	}
	return cmd
}

func (a checkJSON) write(b *bytes.Buffer) {
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
	cmd := &cobra.Command{
		Use:   "simulate SCHEDULE.json",
		Short: "Simulate a schedule from a file",
		Long: `Simulate a schedule, whoever has made it, and sum it up as 'dsasched schedule'
does: what that command has written gives the same answer here, byte for byte.

The schedule is checked first ('dsasched check'). Without a memory plan in the file
one is made; so, to try another order of the instances, edit it and take the memory
plan out. --hardware runs the schedule on another accelerator than the one that it
was made for, as far as it fits there.`,
		Example: `  dsasched simulate net.schedule.json
  dsasched simulate net.schedule.json --hardware my-npu.yaml --json
  dsasched simulate net.schedule.json --gantt net.gantt.svg`,
		Args:              oneArg("SCHEDULE.json", scheduleHint),
		ValidArgsFunction: completeScheduleFile,
	}
	asJSON, full := addJSON(cmd), addFull(cmd)
	accelerator, draw := addScheduleHardware(cmd), addPictures(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := draw.check(); err != nil {
			return err
		}
		origin, r, err := restore(cmd.Context(), args[0], *accelerator)
		if err != nil {
			return err
		}
		return printResult(cmd, origin, r, draw, *asJSON, *full)
	}
	return cmd
}

// restore simulates the schedule of a file.
func restore(ctx context.Context, path, accelerator string) (schedulefile.Origin, *scheduler.Result, error) {
	origin := schedulefile.Origin{}
	f, spec, note, err := openSchedule(path, accelerator)
	if err != nil {
		return origin, nil, err
	}
	if f.Origin != nil {
		origin = *f.Origin
	}
	origin.Model = cmp.Or(origin.Model, path)
	r, err := scheduler.Restore(ctx, f, spec)
	var bad *scheduler.ViolationsError
	switch {
	case errors.As(err, &bad):
		err = fmt.Errorf("%s breaks a rule, see 'dsasched check': %w", path, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case note != "":
		r.Notes = append(r.Notes, note)
	}
	return origin, r, err
}
