//go:build cgo

package highs

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	lanl "github.com/lanl/highs"

	"github.com/dsasched/dsasched/formulation/milp"
)

const (
	// patience is the time that HiGHS has to end by itself after a request to stop.
	// Its own last answer is better than what its events reported, if only a little.
	patience = 300 * time.Millisecond
	// quiet is the least time between two reports of bounds.
	quiet = 100 * time.Millisecond
	// memoryPeriod is the time between two looks at the memory.
	memoryPeriod = 100 * time.Millisecond
)

// What ends a search from outside; the causes of its context.
var (
	errTime   = errors.New("time limit")
	errMemory = errors.New("memory limit")
)

// A search is one run of HiGHS, and all that is known of it while it lasts.
//
// HiGHS may not respond for long, so that whoever waits for the search does not wait for HiGHS: what it has reported
// by then is the answer, and the run is left to end by itself.
type search struct {
	m       *milp.Model
	vars    int // of m, which its owner may change once nobody waits
	scale   scaling
	opts    milp.Options
	limit   time.Duration // for HiGHS' own clock; 0 is none
	started time.Time

	// ctx ends when the search is to stop, for any reason.
	ctx     context.Context
	release []func()
	ended   chan ending

	mu        sync.Mutex
	closed    bool // nobody waits any longer
	values    []float64
	objective float64
	bound     float64
	reported  time.Time
}

// An ending is the result of a run that has ended.
type ending struct {
	out outcome
	err error
}

// newSearch sets up what stops the search. The limit also goes to HiGHS, which
// looks at its clock in more places than at anything else.
func newSearch(ctx context.Context, m *milp.Model, opts milp.Options) *search {
	r := &search{m: m, vars: m.NumVars(), scale: scaled(m), opts: opts, limit: opts.TimeLimit, started: time.Now(),
		ended:     make(chan ending, 1),
		objective: math.Inf(1), bound: math.Inf(-1)}
	if opts.Start != nil {
		r.objective = m.Objective(whole(m, opts.Start))
	}
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); r.limit == 0 || left < r.limit {
			r.limit = max(left, 1)
		}
	}
	stopping, cancel := context.WithCancelCause(ctx)
	r.ctx = stopping
	r.release = append(r.release, func() { cancel(nil) })
	if opts.TimeLimit > 0 {
		timer := time.AfterFunc(opts.TimeLimit, func() { cancel(errTime) })
		r.release = append(r.release, func() { timer.Stop() })
	}
	if opts.MemoryBytes > 0 {
		go watchMemory(stopping, opts.MemoryBytes, func() { cancel(errMemory) })
	}
	return r
}

// close ends the reports of progress, and asks a run that is still there to stop.
func (r *search) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, f := range r.release {
		f()
	}
}

// why returns the reason why a search ended without a proof.
func (r *search) why(s status) milp.Stop {
	if s == statusSolutionLimit {
		return milp.StopWork
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, errMemory):
		return milp.StopMemory
	case errors.Is(cause, context.Canceled):
		return milp.StopCancelled
	}
	return milp.StopTime // which HiGHS may notice before the timer does
}

// run solves raw and frees what it holds.
func (r *search) run(raw *lanl.RawModel) {
	// The binding frees a model when the collector finds it, and its Solve goes on using the model's memory after its
	// own last use of raw. So raw must live until all is read. Its memory is given back at once rather than when the
	// collector, which can't see it, happens to run.
	defer runtime.KeepAlive(raw)
	defer release(raw)
	done := listen(raw, r)
	_, err := raw.Solve()
	done()
	// The binding treats HiGHS' warnings as errors and then returns nothing, and a time limit is a warning. The outcome
	// is therefore always read from HiGHS itself.
	var call lanl.CallStatus
	if errors.As(err, &call) && call.IsWarning() {
		err = nil
	}
	out := read(raw)
	out.bound = r.scale.back(out.values, out.bound)
	r.ended <- ending{out, err}
}

// wait returns the outcome of the run, or, if that does not come soon after the
// end of the context, what is known by then.
func (r *search) wait() (outcome, error) {
	var e ending
	select {
	case e = <-r.ended:
	case <-r.ctx.Done():
		select {
		case e = <-r.ended:
		case <-time.After(patience):
			e.out = outcome{status: statusInterrupt, bound: math.NaN()}
		}
	}
	if s := e.out.status; e.err == nil && (s == statusInterrupt || s == statusTimeLimit || s == statusSolutionLimit) {
		e.out = r.merge(e.out)
	}
	return e.out, e.err
}

// merge completes the outcome of a run that was cut short by what its events have reported.
func (r *search) merge(out outcome) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values != nil && (!out.feasible || r.objective < r.m.Objective(whole(r.m, out.values))) {
		out.values, out.feasible = r.values, true
	}
	if math.IsNaN(out.bound) || math.Abs(out.bound) >= hugeBound || out.bound < r.bound {
		out.bound = r.bound
	}
	return out
}

// event takes note of a solution, if x is not nil, and of a bound.
func (r *search) event(x []float64, bound float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	bound = r.scale.back(x, bound)
	improved := false
	if x != nil {
		x = whole(r.m, x)
		// What HiGHS calls a solution is one up to its tolerances, and a little
		// more after rounding; it counts as one only where Check agrees.
		if f := r.m.Objective(x); f < r.objective && r.m.Check(x, milp.StartTolerance) == nil {
			r.values, r.objective, improved = x, f, true
		}
	}
	tighter := !math.IsNaN(bound) && math.Abs(bound) < hugeBound && r.bound < bound
	if tighter {
		r.bound = bound
	}
	now := time.Now()
	if r.opts.Progress == nil || !improved && (!tighter || now.Sub(r.reported) < quiet) {
		return
	}
	r.reported = now
	shown := min(r.bound, r.objective) // rounding may have put the bound on its wrong side
	r.opts.Progress(milp.Progress{Objective: r.objective, Bound: shown, Improved: improved,
		Seconds: now.Sub(r.started).Seconds()})
}

// watchMemory calls full when the process occupies at least limit bytes.
func watchMemory(ctx context.Context, limit int64, full func()) {
	tick := time.NewTicker(memoryPeriod)
	defer tick.Stop()
	for {
		if n, ok := residentBytes(); !ok {
			return
		} else if n >= limit {
			full()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// residentBytes is the resident memory of the process, where the system reports it.
func residentBytes() (int64, bool) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
