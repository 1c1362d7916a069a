package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"

	"github.com/dsasched/dsasched/internal/bail"
)

// Options are the settings of Run. The zero value is good.
type Options struct {
	// Out is the directory of the results, which is made if it is not there; empty: "results".
	Out string
	// Workers is the number of cells computed at a time; 0: GOMAXPROCS. The results do not depend on it.
	Workers int
	// Stdout receives the tables, Stderr progress and notices; nil discards them.
	Stdout, Stderr io.Writer
	// Progress, if not nil, is called at the start and end of each cell, by one goroutine
	// at a time; Stderr has no line per cell then.
	Progress func(Progress)
	// Quiet discards Stderr and Progress.
	Quiet bool
	// Full takes the full form of experiments that have a quick one too.
	Full bool
	// NoExact leaves out the exact methods, and the experiments that are about nothing else.
	NoExact bool
	// SolverVersion names the solver of integer programs and its version, and Revision the source, for the record of
	// where results come from. Empty: none; what the build knows, if anything.
	SolverVersion, Revision string
}

// InterruptedError reports that the context ended before the run did. It wraps the context's error.
type InterruptedError struct {
	Experiment  string // "" where there are several
	Done, Total int    // cells
	Out         string
	Err         error
}

func (e *InterruptedError) Error() string {
	of := ""
	if e.Experiment != "" {
		of = " of " + e.Experiment
	}
	return fmt.Sprintf(
		"interrupted: %d of %d cells%s are finished and kept in %s; run the same command again to go on from there",
		e.Done, e.Total, of, e.Out)
}

func (e *InterruptedError) Unwrap() error { return e.Err }

// Run runs this experiment alone.
func (e Experiment) Run(ctx context.Context, opt Options) error {
	return Run(ctx, []Experiment{e}, opt)
}

// Run computes the cells of these experiments, each once however many have it, and makes their reports in the order of
// the list: while one waits for its last cell, those of the next are computed. If an experiment fails, the others
// still run.
func Run(ctx context.Context, list []Experiment, opt Options) error {
	if opt.Workers < 0 {
		return fmt.Errorf("workers is %d, expected 0 or more", opt.Workers)
	}
	opt.Workers = cmp.Or(opt.Workers, runtime.GOMAXPROCS(0))
	if opt.Stdout == nil {
		opt.Stdout = io.Discard
	}
	if opt.Stderr == nil || opt.Quiet {
		opt.Stderr = io.Discard
	}
	if opt.Quiet {
		opt.Progress = nil
	}
	program, err := executableHash()
	if err != nil {
		return err
	}
	opt.Out = opt.Dir()
	r := &runner{Options: opt, program: program}
	p, err := r.open(list)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	computed := make(chan error, 1)
	go func() { computed <- p.compute(inner) }()
	var errs []error
	for i, j := range p.jobs {
		<-j.ready
		err := p.report(ctx, j)
		if Aborted(err) { // the others would fail too
			cancel()
			failed := <-computed
			for _, later := range p.jobs[i+1:] {
				failed = cmp.Or(failed, p.keepTimes(later))
			}
			if stop := new(InterruptedError); errors.As(err, &stop) {
				stop.Done = p.done
				err = cmp.Or(failed, err)
			}
			return err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", j.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Aborted reports whether an error of a run says that it ended before its end: it was
// interrupted, or results can't be written.
func Aborted(err error) bool {
	var stop *InterruptedError
	var write *writeError
	return errors.As(err, &stop) || errors.As(err, &write)
}

// Dir is the directory of the results.
func (o Options) Dir() string { return cmp.Or(o.Out, "results") }

type runner struct {
	Options
	program string // hash of the running executable
}

// sharedCells is the folder of the cells that several experiments have.
const sharedCells = "shared-cells"

// job plans an experiment.
func (r *runner) job(e Experiment) (*job, error) {
	planned, quick := e.Plan, e.Quick != nil && !r.Full
	switch {
	case r.NoExact && e.Heuristic != nil:
		planned, quick = e.Heuristic, false
	case quick:
		planned = e.Quick
	case e.With != nil:
		planned = func() (*Plan, error) { return e.With(r.Options) }
	}
	p, err := planned()
	if err != nil {
		return nil, err
	}
	at := func(parts ...string) *store {
		return &store{filepath.Join(append([]string{r.Out}, parts...)...), r.program}
	}
	return &job{Experiment: e, Plan: p, quick: quick, own: at(e.Name, "cells"), shared: at(sharedCells)}, nil
}

// failure is the error of the first cell that failed, with the number of the others.
func (j *job) failure() error {
	var first error
	more := 0
	for i, err := range j.failed {
		switch {
		case err == nil:
		case first == nil:
			first = fmt.Errorf("%s: %w", j.Cells[i].Label, err)
		default:
			more++
		}
	}
	if more > 0 {
		first = fmt.Errorf("%w (and %d more cells failed)", first, more)
	}
	return first
}

// Compute runs a cell, which package bail may end. Its result passes through JSON, so that it is the same as one that
// was loaded.
func Compute(ctx context.Context, c Cell) (data json.RawMessage, err error) {
	defer bail.Caught(&err)
	result, err := c.Run(ctx)
	if err = cmp.Or(err, ctx.Err()); err != nil { // half an answer is not kept
		return nil, err
	}
	if data, err = json.Marshal(result); err != nil {
		return nil, fmt.Errorf("the result can't be written as JSON: %w", err)
	}
	return data, nil
}
