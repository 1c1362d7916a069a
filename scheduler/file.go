package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// Opened is a schedule from a file with its accelerator.
type Opened struct {
	Path string
	File *schedulefile.File
	Spec *hardware.Spec
	// Note says that the accelerator is another than the schedule was made for; "" if it is not.
	Note string
}

// Open reads a schedule and finds its accelerator: the one that is named, as OpenMachine
// takes it, or if none is, the built-in one that the file names.
func Open(path, accelerator string) (*Opened, error) {
	f, err := schedulefile.Load(path)
	if err != nil {
		return nil, err
	}
	o := &Opened{Path: path, File: f}
	if accelerator == "" && !slices.Contains(slices.Concat(hardware.Presets(), chips.Presets()), f.Hardware.Name) {
		return nil, fmt.Errorf("%s: hardware.name: found %q, which is not built in: give the file of its "+
			"description with --hardware", path, f.Hardware.Name)
	}
	if o.Spec, err = OpenMachine(cmp.Or(accelerator, f.Hardware.Name)); err != nil {
		return nil, err
	}
	if was := f.Hardware.Fingerprint; was != "" && was != schedulefile.Fingerprint(o.Spec) {
		o.Note = fmt.Sprintf("made for another accelerator, %s, or another description of it", f.Hardware.Name)
	}
	return o, nil
}

// Checked holds the violations of a schedule file. It is the answer of `dsasched check schedule`.
type Checked struct {
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

// Check checks the schedule against the rules; its loop nests are checked by lowering them.
func (o *Opened) Check(ctx context.Context) (*Checked, error) {
	machine, err := MachineOf(o.File, o.Spec)
	if err != nil {
		return nil, fmt.Errorf("%s: hardware.level: %w", o.Path, err)
	}
	c := &Checked{File: o.Path, Hardware: o.Spec.Name, Violations: append([]schedulefile.Violation{},
		schedulefile.Check(ctx, o.File, machine)...),
		Schedules: len(o.File.Schedules), MemoryPlan: true, Notes: []string{}}
	if len(c.Violations) == 0 {
		r, err := planned(ctx, o.File, o.Spec)
		if err == nil {
			_, err = lower.Program(r.ProgramName(), r.Spec, r.Plans, r.Lower.Until(ctx))
		}
		var bad *ViolationsError
		var large *lower.TooLargeError
		switch {
		case errors.As(err, &bad):
			c.Violations = append(c.Violations, bad.Violations...)
		case errors.As(err, &large):
			c.Notes = append(c.Notes, "its loop nests are not checked: "+err.Error())
		case err != nil:
			c.Violations = append(c.Violations, schedulefile.Violation{At: "schedules", What: err.Error()})
		}
	}
	c.OK = len(c.Violations) == 0
	for i := range o.File.Schedules {
		p := &o.File.Schedules[i]
		c.Groups += len(p.Groups)
		c.Instances += len(p.Instances)
		c.MemoryPlan = c.MemoryPlan && p.Memory != nil
	}
	if o.Note != "" {
		c.Notes = append(c.Notes, o.Note)
	}
	if !c.MemoryPlan {
		c.Notes = append(c.Notes, "there is no memory plan; 'dsasched simulate' makes one")
	}
	return c, ctx.Err()
}

// Restore simulates the schedule and returns its origin as recorded in the file.
func (o *Opened) Restore(ctx context.Context) (schedulefile.Origin, *Result, error) {
	origin := schedulefile.Origin{}
	if o.File.Origin != nil {
		origin = *o.File.Origin
	}
	origin.Model = cmp.Or(origin.Model, o.Path)
	r, err := Restore(ctx, o.File, o.Spec)
	var bad *ViolationsError
	switch {
	case errors.As(err, &bad):
		err = fmt.Errorf("%s breaks a rule, see 'dsasched check schedule': %w", o.Path, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", o.Path, err)
	case o.Note != "":
		r.Notes = append(r.Notes, o.Note)
	}
	return origin, r, err
}
