package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware/sim/trace"
	"github.com/dsasched/dsasched/model/structure"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/picture"
)

// pictures are what a command can draw of a simulated schedule: files, "" for none.
type pictures struct {
	cmd                         *cobra.Command
	trace, gantt, memory, graph string
	stretch                     string // of the Gantt chart, FROM:TO
	from, to                    int64  // the same in picoseconds
}

func addPictures(cmd *cobra.Command) *pictures {
	d := &pictures{cmd: cmd}
	f := cmd.Flags()
	f.StringVar(&d.trace, "trace", "", "write the simulation as Chrome trace events to this `file` (.json), for ui.perfetto.dev or chrome://tracing")
	f.StringVar(&d.gantt, "gantt", "", "draw what the first cluster's units did into this `file`: "+strings.Join(plotFormats(), ", "))
	f.StringVar(&d.stretch, "gantt-range", "", "with --gantt: the `FROM:TO` to draw, such as 0.5ms:800us or 2ms:")
	f.StringVar(&d.memory, "memory", "", "draw lifetimes by address into this `file`: "+strings.Join(plotFormats(), ", "))
	f.StringVar(&d.graph, "graph", "", "write groups and instances for Graphviz to this `file` (.dot)")
	completeFlag(cmd, "gantt-range", cobra.NoFileCompletions)
	return d
}

// check finds mistakes in the flags before any work is done. input is the file that the
// command reads, if it is one: a picture must not take its place.
func (d *pictures) check(input string) error {
	for _, c := range []struct {
		flag, file string
		plot       bool
	}{{"trace", d.trace, false}, {"gantt", d.gantt, true}, {"memory", d.memory, true}, {"graph", d.graph, false}} {
		switch {
		case !d.cmd.Flags().Changed(c.flag):
		case c.file == "":
			return usagef("--%s is empty, expected a file name", c.flag)
		case c.plot && plotFormat(c.file) == nil:
			return usagef("--%s %q, expected a name that ends in %s", c.flag, c.file, oneOf(plotFormats()))
		case sameFile(input, c.file):
			return usagef("--%s: %s is the file that is read: give another name", c.flag, c.file)
		}
	}
	if !d.cmd.Flags().Changed("gantt-range") {
		return nil
	}
	if d.gantt == "" {
		return usagef("--gantt-range needs --gantt: it says which part to draw")
	}
	from, to, ok := strings.Cut(d.stretch, ":")
	read := func(text string) int64 {
		if text == "" {
			return 0
		}
		s, err := time.ParseDuration(text)
		ok = ok && err == nil && s >= 0 && s.Nanoseconds() <= math.MaxInt64/1000
		return s.Nanoseconds() * 1000
	}
	d.from, d.to = read(from), read(to)
	if !ok || d.to != 0 && d.to <= d.from {
		return usagef("--gantt-range is %q, expected FROM:TO with times such as 0.5ms, FROM before TO; either may be left out", d.stretch)
	}
	return nil
}

// draw writes the files.
func (d *pictures) draw(ctx context.Context, r *scheduler.Result) error {
	if d.trace != "" {
		var b bytes.Buffer
		if err := trace.Write(ctx, &b, r.Program, trace.Options{}); err != nil {
			return err
		}
		if err := replaceFile(d.trace, b.Bytes()); err != nil {
			return err
		}
	}
	if d.graph != "" {
		var b bytes.Buffer
		if err := structure.WriteScheduleDOT(&b, r.Schedule); err != nil {
			return err
		}
		if err := replaceFile(d.graph, b.Bytes()); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		flag, file string
		figure     func() (*plots.Figure, error)
	}{
		{"gantt", d.gantt, func() (*plots.Figure, error) { return picture.Gantt(r, d.from, d.to) }},
		{"memory", d.memory, func() (*plots.Figure, error) { return picture.Memory(r) }},
	} {
		if c.file == "" {
			continue
		}
		fig, err := c.figure()
		if err != nil {
			return fmt.Errorf("--%s: %w", c.flag, err)
		}
		data, err := plotFormat(c.file)(fig)
		if err != nil {
			return fmt.Errorf("--%s: %w", c.flag, err)
		}
		if err := replaceFile(c.file, data); err != nil {
			return err
		}
	}
	return nil
}
