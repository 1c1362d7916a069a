package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Options are the settings of Run. The zero value is good.
type Options struct {
	// Out is the directory of the results, which is made if it is not there; empty:
	// "results".
	Out string
	// Workers is the number of cells computed at a time; 0: GOMAXPROCS. The results do
	// not depend on it.
	Workers int
	// Stdout gets the tables, Stderr progress and notices; nil: nobody does.
	Stdout, Stderr io.Writer
	// Progress, if not nil, is told of each start and end of a cell, by one goroutine
	// at a time; Stderr has no line per cell then.
	Progress func(Progress)
	// Quiet keeps Stderr empty and Progress untold.
	Quiet bool
	// NoExact leaves the methods that look for optima out, and the experiments that are
	// about nothing else.
	NoExact bool
	// SolverVersion names the solver of integer programs and its version, and Revision the
	// source, for the record of where results come from. Empty: none; what the build
	// knows, if anything.
	SolverVersion, Revision string
	// Solver is for the integer programs that growth measures; nil: it goes without.
	Solver milp.Solver
	// SolveLimit is the time for each solve of growth; 0: one second.
	SolveLimit time.Duration
}

// InterruptedError tells that the context of a run ended before the run did. It
// wraps the context's error.
type InterruptedError struct {
	Experiment  string
	Done, Total int // cells
	Out         string
	Err         error
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted: %d of %d cells of %s are finished and kept in %s; run the same command again to go on from there",
		e.Done, e.Total, e.Experiment, e.Out)
}

func (e *InterruptedError) Unwrap() error { return e.Err }

// Run runs this experiment alone.
func (e Experiment) Run(ctx context.Context, opt Options) error {
	return Run(ctx, []Experiment{e}, opt)
}

func Run(ctx context.Context, list []Experiment, opt Options) error {
	if opt.Workers < 0 {
		return fmt.Errorf("workers is %d, expected 0 or more", opt.Workers)
	}
	if opt.Workers == 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	opt.Out = opt.Dir()
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
	r := &runner{Options: opt, program: program}
	var errs []error
	for _, e := range list {
		err := r.experiment(ctx, e)
		if Aborted(err) {
			return err // the others would fare no better
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Name, err))
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
func (o Options) Dir() string {
	if o.Out == "" {
		return "results"
	}
	return o.Out
}

type runner struct {
	Options
	program string // hash of the running executable
}

// sharedCells is the folder of the cells that several experiments have.
const sharedCells = "shared-cells"

func (r *runner) experiment(ctx context.Context, e Experiment) error {
	planned := e.Plan
	switch {
	case r.NoExact && e.Heuristic != nil:
		planned = e.Heuristic
	case e.With != nil:
		planned = func() (*Plan, error) { return e.With(r.Options) }
	}
	p, err := planned()
	if err != nil {
		return err
	}
	dir := filepath.Join(r.Out, e.Name)
	own, err := openStore(filepath.Join(dir, "cells"), r.program)
	if err != nil {
		return err
	}
	shared, err := openStore(filepath.Join(r.Out, sharedCells), r.program)
	if err != nil {
		return err
	}
	stores := func(c Cell) *store {
		if c.Shared {
			return shared
		}
		return own
	}
	results, err := r.cells(ctx, e.Name, p.Cells, stores, filepath.Join(dir, "timing.csv"))
	if err != nil {
		return err
	}
	rep, err := p.Report(results)
	if err != nil {
		return err
	}
	from, err := originOf(p.Cells, r.Options)
	if err != nil {
		return err
	}
	record, err := from.file()
	if err != nil {
		return err
	}
	for _, f := range append(rep.Files, record) {
		if err := WriteFile(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(r.Stdout, rep.Text); err != nil {
		return fmt.Errorf("the tables can't be printed: %w", err)
	}
	fmt.Fprintf(r.Stderr, "%s: %d files in %s\n", e.Name, len(rep.Files), dir)
	return nil
}

// cells returns the results of all cells, from the store where they are there.
func (r *runner) cells(ctx context.Context, name string, cells []Cell, stores func(Cell) *store, timingPath string) ([]json.RawMessage, error) {
	results := make([]json.RawMessage, len(cells))
	var missing []int
	keys := map[string]bool{}
	old := 0
	for i, c := range cells {
		if keys[c.Key] {
			panic("experiments: " + name + " has two cells " + c.Key)
		}
		keys[c.Key] = true
		result, err := stores(c).load(c)
		var stale *staleError
		switch {
		case err == nil:
			results[i] = result
			continue
		case errors.Is(err, os.ErrNotExist):
		case errors.As(err, &stale):
			old++
		default:
			fmt.Fprintf(r.Stderr, "%s: %v; it is computed anew\n", name, err)
		}
		missing = append(missing, i)
	}
	done := len(cells) - len(missing)
	if done > 0 {
		fmt.Fprintf(r.Stderr, "%s: %d of %d cells were finished before\n", name, done, len(cells))
	}
	if old > 0 {
		fmt.Fprintf(r.Stderr, "%s: %d of %d cells are of another build of the program and are computed anew\n", name, old, len(cells))
	}
	if len(missing) == 0 {
		return results, nil
	}

	// A failure to write stops the others: there is no room for their results either.
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu       sync.Mutex
		wg       sync.WaitGroup
		failed   = make([]error, len(cells))
		writeErr error
		times    = readTiming(timingPath)
		next     = make(chan int)
		track    = NewTracker(name, done, len(cells), r.Progress)
	)
	for range min(r.Workers, len(missing)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				c := cells[i]
				begin := time.Now()
				track.Start(c.Label)
				result, err := Compute(inner, c)
				if err == nil {
					err = stores(c).save(c, result)
				}
				elapsed := time.Since(begin)
				track.End(c.Label, err == nil)
				mu.Lock()
				var write *writeError
				switch {
				case errors.As(err, &write):
					if writeErr == nil {
						writeErr = err
					}
					cancel()
				case err != nil:
					failed[i] = err
					if inner.Err() == nil {
						fmt.Fprintf(r.Stderr, "%s: %s failed\n", name, c.Label)
					}
				default:
					results[i] = result
					times[c.Key] = elapsed.Seconds()
					done++
					if r.Progress == nil {
						fmt.Fprintf(r.Stderr, "%s: %d/%d %s  %.1f s\n", name, done, len(cells), c.Label, elapsed.Seconds())
					}
				}
				mu.Unlock()
			}
		}()
	}
feed:
	for _, i := range missing {
		// A closed Done and a waiting worker are both ready: which one select takes is
		// left to chance.
		if inner.Err() != nil {
			break
		}
		select {
		case next <- i:
		case <-inner.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()

	if writeErr != nil {
		return nil, writeErr
	}
	if err := writeTiming(timingPath, cells, times); err != nil {
		return nil, err
	}
	if done == len(cells) {
		return results, nil // even if the context ended just now
	}
	if ctx.Err() != nil {
		return nil, &InterruptedError{Experiment: name, Done: done, Total: len(cells), Out: r.Out, Err: ctx.Err()}
	}
	var first error
	more := 0
	for i, err := range failed {
		switch {
		case err == nil:
		case first == nil:
			first = fmt.Errorf("%s: %w", cells[i].Label, err)
		default:
			more++
		}
	}
	if more > 0 {
		first = fmt.Errorf("%w (and %d more cells failed)", first, more)
	}
	return nil, first
}

// Compute runs a cell. Its result passes through JSON, so that it is the same as
// one that was loaded.
func Compute(ctx context.Context, c Cell) (json.RawMessage, error) {
	result, err := c.Run(ctx)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("the result can't be written as JSON: %w", err)
	}
	return data, nil
}
