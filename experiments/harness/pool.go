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

	"golang.org/x/sync/errgroup"
)

// job is an experiment of a run: its cells, where they are kept, and what became of them.
type job struct {
	Experiment
	*Plan
	quick       bool // the quick form is computed
	own, shared *store

	results []json.RawMessage
	failed  []error          // of each cell
	times   map[string]times // by key
	done    int
	pending int           // cells whose end is awaited
	ready   chan struct{} // closed when none is
	err     error         // why nothing is computed
}

// pool is the cells of all experiments of a run that are not finished, each once.
type pool struct {
	*runner
	jobs  []*job
	tasks []*task
	track *tracker

	out         sync.Mutex // of Stderr, once cells are computed
	mu          sync.Mutex
	meter       meter
	done, total int     // cells, those that were finished before among them
	rest, cost  float64 // processor seconds to come and of all, estimated; 0: not known
}

// task is a cell that is to be computed, and which experiments have it.
type task struct {
	Cell
	store *store
	label string
	cost  float64
	of    []slot
}

// slot is the place of a cell in an experiment.
type slot struct {
	*job
	at int
}

// open plans the experiments and reads their finished cells. Only a folder that can't be written to is an error.
func (r *runner) open(list []Experiment) (*pool, error) {
	p := &pool{runner: r}
	tasks, known := map[string]*task{}, true
	for _, e := range list {
		j, err := r.job(e)
		if err != nil {
			j = &job{Experiment: e, err: err}
		}
		j.ready = make(chan struct{})
		p.jobs = append(p.jobs, j)
		if err == nil {
			err = p.load(j, tasks)
		}
		if Aborted(err) {
			return nil, err
		}
		if j.err = err; err != nil || j.pending == 0 {
			j.pending = 0
			close(j.ready)
			continue
		}
		known = known && j.cost() > 0
	}
	p.total += len(p.tasks)
	name := ""
	if len(list) == 1 {
		name = list[0].Name
	}
	p.track = NewTracker(name, p.done, p.total, r.Progress)
	if p.cost = p.rest; known && p.rest > 0 {
		p.track.left = p.left
		fmt.Fprintf(r.Stderr, "%d of %d cells of %d experiments are to be computed: about %s on %d processors\n",
			len(p.tasks), p.total, len(list), Wait(p.rest/r.processors()), int(r.processors()))
	}
	return p, nil
}

func (r *runner) processors() float64 { return float64(max(1, min(r.Workers, runtime.NumCPU()))) }

// left is the time of the rest in seconds: as estimated at first, later by how that estimate has held.
func (p *pool) left(elapsed float64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.cost / 10 // weighs as much as what was computed so far
	return p.rest * (elapsed + before/p.processors()) / (p.cost - p.rest + before)
}

// cost is the estimated processor time of all cells; 0: not known.
func (j *job) cost() float64 {
	if j.quick || j.Quick == nil && j.Cost.Full == 0 {
		return j.Cost.Quick
	}
	return j.Cost.Full
}

// load reads the finished cells of an experiment and adds the others to the tasks.
func (p *pool) load(j *job, tasks map[string]*task) error {
	for _, s := range []*store{j.own, j.shared} {
		if err := s.open(); err != nil {
			return err
		}
	}
	TidyUp(filepath.Join(p.Out, j.Name))
	TidyUp(p.Out)
	keys, old := map[string]bool{}, 0
	for _, c := range j.Cells {
		if keys[c.Key] {
			panic("harness: " + j.Name + " has two cells " + c.Key)
		}
		keys[c.Key] = true
		result, err := j.store(c).load(c)
		j.results, j.failed = append(j.results, result), append(j.failed, nil)
		var stale *staleError
		switch {
		case err == nil:
			j.done++
			continue
		case errors.Is(err, os.ErrNotExist):
		case errors.As(err, &stale):
			old++
		default:
			fmt.Fprintf(p.Stderr, "%s: %v; it is computed anew\n", j.Name, err)
		}
	}
	missing := len(j.Cells) - j.done
	if j.done > 0 {
		fmt.Fprintf(p.Stderr, "%s: %d of %d cells were finished before\n", j.Name, j.done, len(j.Cells))
	}
	if old > 0 {
		fmt.Fprintf(p.Stderr, "%s: %d of %d cells are of another build of the program and are computed anew\n",
			j.Name, old, len(j.Cells))
	}
	p.done += j.done
	p.total += j.done
	if missing > 0 {
		j.times = readTiming(j.timing())
	}
	j.pending = missing
	for i, c := range j.Cells {
		if j.results[i] != nil {
			continue
		}
		inputs, err := marshalInputs(c)
		if err != nil {
			return err
		}
		path := j.store(c).path(c, inputs)
		t := tasks[path]
		if t == nil {
			t = &task{Cell: c, store: j.store(c), label: c.Label, cost: j.cost() / float64(len(j.Cells))}
			tasks[path] = t
			p.tasks = append(p.tasks, t)
			p.rest += t.cost
		}
		t.of = append(t.of, slot{j, i})
	}
	return nil
}

func (j *job) store(c Cell) *store {
	if c.Shared {
		return j.shared
	}
	return j.own
}

// timing is the file of the times of the cells.
func (j *job) timing() string { return filepath.Join(filepath.Dir(j.own.dir), "timing.csv") }

// compute computes and keeps the cells, so many at a time. A failure to write ends it, since there is no room for
// other results either, and is its error. Then all jobs are ready, some perhaps not done.
func (p *pool) compute(ctx context.Context) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(p.Workers)
	for _, t := range p.tasks {
		g.Go(func() error {
			if inner.Err() != nil {
				return nil
			}
			return p.one(inner, t)
		})
	}
	err := g.Wait()
	for _, j := range p.jobs {
		if j.pending > 0 {
			j.err = err
			close(j.ready)
		}
	}
	return err
}

// one computes a cell and takes down what becomes of it.
func (p *pool) one(ctx context.Context, t *task) error {
	label := t.label
	if len(p.jobs) > 1 && label != t.of[0].Name {
		label = t.of[0].Name + " " + label
	}
	p.mu.Lock()
	before := p.meter.turn(+1)
	p.mu.Unlock()
	p.track.Start(label)
	begin := time.Now()
	result, err := Compute(ctx, t.Cell)
	if err == nil {
		err = t.store.save(t.Cell, result)
	}
	spent := times{wall: time.Since(begin).Seconds()}
	p.mu.Lock()
	spent.processor = p.meter.turn(-1) - before
	p.rest -= t.cost
	if err == nil {
		p.done++
	}
	p.mu.Unlock()
	p.track.End(label, err == nil)
	var write *writeError
	if errors.As(err, &write) {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range t.of {
		s.results[s.at], s.failed[s.at] = result, err
		if err == nil {
			s.done++
			if s.job == t.of[0].job {
				s.times[t.Key] = spent
			}
		}
		if s.pending--; s.pending == 0 {
			close(s.ready)
		}
	}
	first := t.of[0]
	switch {
	case err != nil && ctx.Err() == nil:
		p.say("%s: %s failed\n", first.Name, t.Label)
	case err == nil && p.Progress == nil:
		p.say("%s: %d/%d %s  %.1f s\n", first.Name, first.done, len(first.Cells), t.Label, spent.wall)
	}
	return nil
}

// say writes a notice, whoever else does.
func (p *pool) say(format string, args ...any) {
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Fprintf(p.Stderr, format, args...)
}

// meter shares the process's processor time among the cells that run at a time, in equal parts.
type meter struct {
	running int
	at      time.Duration
	each    float64 // seconds of one that runs since the beginning
}

// turn takes down that one more or less runs from now on, and returns the time of each that runs until now.
func (m *meter) turn(more int) float64 {
	now := ProcessorTime()
	if m.running > 0 {
		m.each += (now - m.at).Seconds() / float64(m.running)
	}
	m.at, m.running = now, m.running+more
	return m.each
}

// keepTimes writes the file of times, unless others write it as well or nothing is new.
func (p *pool) keepTimes(j *job) error {
	if j.times == nil {
		return nil
	}
	return writeTiming(j.timing(), j.Cells, j.times)
}

// report makes the report of an experiment whose cells are done, or says why it can't.
func (p *pool) report(ctx context.Context, j *job) error {
	if j.err != nil {
		return j.err
	}
	if err := p.keepTimes(j); err != nil {
		return err
	}
	switch {
	case j.done == len(j.Cells): // even if the context ended just now
	case ctx.Err() != nil:
		return &InterruptedError{Experiment: p.track.p.Name, Total: p.total, Out: p.Out, Err: ctx.Err()}
	default:
		return j.failure()
	}
	dir := filepath.Join(p.Out, j.Name)
	rep, err := j.Report(j.results)
	if err != nil {
		return err
	}
	from, err := originOf(j.Cells, p.Options)
	if err != nil {
		return err
	}
	from.Quick = j.quick
	record, err := from.file()
	if err != nil {
		return err
	}
	for _, f := range append(rep.Files, record) {
		if err := WriteFile(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(p.Stdout, rep.Text); err != nil {
		return fmt.Errorf("the tables can't be printed: %w", err)
	}
	p.say("%s: %d files in %s\n", j.Name, len(rep.Files), dir)
	return nil
}
