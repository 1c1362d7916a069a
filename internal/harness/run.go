package harness

import (
	"cmp"
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

	"golang.org/x/sync/errgroup"
)

// Options are the settings of Run. The zero value is good.
type Options struct {
	// Out is the directory of the results, which is made if it is not there; empty:
	// "results".
	Out string
	// Workers is the number of cells computed at a time; 0: GOMAXPROCS. The results do
	// not depend on it.
	Workers int
	// Stdout receives the tables, Stderr progress and notices; nil discards them.
	Stdout, Stderr io.Writer
	// Progress, if not nil, is called at the start and end of each cell, by one goroutine
	// at a time; Stderr has no line per cell then.
	Progress func(Progress)
	// Quiet discards Stderr and Progress.
	Quiet bool
	// Shard is the part of the cells to compute; then no report is made.
	Shard Shard
	// From are folders of other runs, whose finished cells are taken over.
	From []string
	// Finished: nothing is computed, and a cell that is missing is a [MissingError].
	Finished bool
	// NoExact leaves out the exact methods, and the experiments that are
	// about nothing else.
	NoExact bool
	// SolverVersion names the solver of integer programs and its version, and Revision the
	// source, for the record of where results come from. Empty: none; what the build
	// knows, if anything.
	SolverVersion, Revision string
	// Networks are names and files of networks that regret takes in place of its own.
	Networks []string
}

// InterruptedError reports that the context ended before the run did. It
// wraps the context's error.
type InterruptedError struct {
	Experiment  string
	Done, Total int // cells
	Out         string
	Err         error
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf(
		"interrupted: %d of %d cells of %s are finished and kept in %s; run the same command again to go on from there",
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
	r, err := newRunner(opt)
	if err != nil {
		return err
	}
	var errs []error
	number := map[string]int{}
	for _, e := range list {
		err := r.experiment(ctx, e, number)
		if Aborted(err) {
			return err // the others would fail too
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

func newRunner(opt Options) (*runner, error) {
	program, err := executableHash()
	opt.Out = opt.Dir()
	return &runner{Options: opt, program: program}, err
}

// sharedCells is the folder of the cells that several experiments have.
const sharedCells = "shared-cells"

// job plans an experiment.
func (r *runner) job(e Experiment) (*job, error) {
	planned := e.Plan
	switch {
	case r.NoExact && e.Heuristic != nil:
		planned = e.Heuristic
	case e.With != nil:
		planned = func() (*Plan, error) { return e.With(r.Options) }
	}
	p, err := planned()
	if err != nil {
		return nil, err
	}
	at := func(parts ...string) *store {
		return &store{filepath.Join(append([]string{r.Out}, parts...)...), r.program, r.from(parts...)}
	}
	return &job{e, p, at(e.Name, "cells"), at(sharedCells)}, nil
}

// experiment computes the cells of one, or of a shard of it, and of all makes the report.
// number has the cells that were counted before.
func (r *runner) experiment(ctx context.Context, e Experiment, number map[string]int) error {
	j, err := r.job(e)
	if err != nil {
		return err
	}
	for _, s := range []*store{j.own, j.shared} {
		if err := s.open(); err != nil {
			return err
		}
	}
	dir := filepath.Join(r.Out, e.Name)
	TidyUp(dir)
	TidyUp(r.Out)
	cells, err := j.of(r.Shard, number)
	if err != nil {
		return err
	}
	results, err := r.finish(ctx, e.Name, cells, j.store, filepath.Join(dir, "timing.csv"))
	if err != nil {
		return err
	}
	if r.Shard.Count > 0 {
		fmt.Fprintf(r.Stderr, "%s: shard %v: %d of %d cells are finished\n", e.Name, r.Shard, len(cells), len(j.Cells))
		return nil
	}
	p := j.Plan
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

// pass is one run over the cells of an experiment.
type pass struct {
	*runner
	name    string
	cells   []Cell
	stores  func(Cell) *store
	results []json.RawMessage
	track   *tracker

	mu     sync.Mutex
	failed []error            // of each cell
	times  map[string]float64 // by key, in seconds
	done   int
}

// finish returns the results of all cells, from the store where they are there. Wall times
// are kept in the file timing.
func (r *runner) finish(ctx context.Context, name string, cells []Cell, stores func(Cell) *store, timing string) (
	[]json.RawMessage, error) {
	p := &pass{runner: r, name: name, cells: cells, stores: stores, results: make([]json.RawMessage, len(cells)),
		failed: make([]error, len(cells))}
	missing := p.load()
	if len(missing) == 0 {
		return p.results, nil
	}
	if r.Finished {
		return nil, &MissingError{name, len(missing), len(cells), cells[missing[0]].Label}
	}
	p.times = readTiming(timing)
	p.track = NewTracker(name, p.done, len(cells), r.Progress)
	if err := p.compute(ctx, missing); err != nil {
		return nil, err
	}
	if r.Shard.Count == 0 { // else others write it as well
		if err := writeTiming(timing, cells, p.times); err != nil {
			return nil, err
		}
	}
	switch {
	case p.done == len(cells): // even if the context ended just now
		return p.results, nil
	case ctx.Err() != nil:
		return nil, &InterruptedError{Experiment: name, Done: p.done, Total: len(cells), Out: r.Out, Err: ctx.Err()}
	}
	return nil, p.failure()
}

// load reads the finished cells and lists the others.
func (p *pass) load() (missing []int) {
	keys := map[string]bool{}
	old := 0
	for i, c := range p.cells {
		if keys[c.Key] {
			panic("harness: " + p.name + " has two cells " + c.Key)
		}
		keys[c.Key] = true
		result, err := p.stores(c).load(c)
		var stale *staleError
		switch {
		case err == nil:
			p.results[i] = result
			continue
		case errors.Is(err, os.ErrNotExist):
		case errors.As(err, &stale):
			old++
		default:
			fmt.Fprintf(p.Stderr, "%s: %v; it is computed anew\n", p.name, err)
		}
		missing = append(missing, i)
	}
	p.done = len(p.cells) - len(missing)
	if p.done > 0 {
		fmt.Fprintf(p.Stderr, "%s: %d of %d cells were finished before\n", p.name, p.done, len(p.cells))
	}
	if old > 0 {
		fmt.Fprintf(p.Stderr, "%s: %d of %d cells are of another build of the program and are computed anew\n",
			p.name, old, len(p.cells))
	}
	return missing
}

// compute computes and keeps cells, so many at a time. A failure to write ends it, since
// there is no room for other results either, and is its error.
func (p *pass) compute(ctx context.Context, missing []int) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(p.Workers)
	for _, i := range missing {
		g.Go(func() error {
			if inner.Err() != nil {
				return nil
			}
			return p.one(inner, i)
		})
	}
	return g.Wait()
}

// one computes a cell and takes down what becomes of it.
func (p *pass) one(ctx context.Context, i int) error {
	c := p.cells[i]
	begin := time.Now()
	p.track.Start(c.Label)
	result, err := Compute(ctx, c)
	if err == nil {
		err = p.stores(c).save(c, result)
	}
	elapsed := time.Since(begin).Seconds()
	p.track.End(c.Label, err == nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	var write *writeError
	switch {
	case errors.As(err, &write):
		return err
	case err != nil:
		p.failed[i] = err
		if ctx.Err() == nil {
			fmt.Fprintf(p.Stderr, "%s: %s failed\n", p.name, c.Label)
		}
		return nil
	}
	p.results[i], p.times[c.Key] = result, elapsed
	p.done++
	if p.Progress == nil {
		fmt.Fprintf(p.Stderr, "%s: %d/%d %s  %.1f s\n", p.name, p.done, len(p.cells), c.Label, elapsed)
	}
	return nil
}

// failure is the error of the first cell that failed, with the number of the others.
func (p *pass) failure() error {
	var first error
	more := 0
	for i, err := range p.failed {
		switch {
		case err == nil:
		case first == nil:
			first = fmt.Errorf("%s: %w", p.cells[i].Label, err)
		default:
			more++
		}
	}
	if more > 0 {
		first = fmt.Errorf("%w (and %d more cells failed)", first, more)
	}
	return first
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
