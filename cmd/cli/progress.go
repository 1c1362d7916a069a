package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/milp"
)

// How often progress is shown: a line that is drawn over itself may change often, one that stays in a log may not.
const (
	redrawEvery = 100 * time.Millisecond
	lineEvery   = 2 * time.Second
)

// clock gives statuses the time. Tests have one that runs fast.
var clock = time.Now

// status shows the progress of long work on the standard error: on a terminal as one line that is drawn over itself,
// else as a line at intervals. A nil status is quiet. Its methods may be called by several goroutines.
type status struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	width    func() int
	now      func() time.Time

	last   time.Time                      // that something was shown; at first, that the work began
	latest func(age time.Duration) string // what is shown, as it is after a while
	heard  time.Time                      // when that was
	stop   chan struct{}                  // ends the redrawing
	shown  bool                           // a line stands on the terminal that is to be drawn over
	ended  bool
}

// newStatus makes the status of a command; nil if it is to be quiet. Nothing is shown of work that ends at once.
func newStatus(cmd *cobra.Command, quiet bool) *status {
	if quiet {
		return nil
	}
	s := &status{w: cmd.ErrOrStderr(), now: clock, width: func() int { return lineWidth }}
	if f, ok := s.w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.terminal = true
		s.width = func() int {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
			return lineWidth
		}
	}
	s.last = s.now()
	if s.terminal {
		s.stop = make(chan struct{})
		go s.redraw()
	}
	return s
}

// redraw lets the times of the line go on while nothing happens.
func (s *status) redraw() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.stop:
			return
		}
		s.mu.Lock()
		latest, heard := s.latest, s.heard
		s.mu.Unlock()
		if latest != nil {
			s.line(latest(s.now().Sub(heard)))
		}
	}
}

// show shows a text that changes with its age.
func (s *status) show(latest func(age time.Duration) string) {
	if s == nil {
		return
	}
	s.line(latest(0))
	s.mu.Lock()
	s.latest, s.heard = latest, s.now()
	s.mu.Unlock()
}

// addQuiet adds --quiet.
func addQuiet(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("quiet", "q", false, "show no progress")
}

// line shows a text unless another was shown just now.
func (s *status) line(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	every := lineEvery
	if s.terminal {
		every = redrawEvery
	}
	now := s.now()
	if s.ended || now.Sub(s.last) < every {
		return
	}
	s.last = now
	if !s.terminal {
		fmt.Fprintln(s.w, text)
		return
	}
	// To the line's beginning; the text, short of the edge so that it does not wrap; clear the rest.
	fmt.Fprintf(s.w, "\r%s\x1b[K", shorten(text, max(1, s.width()-1)))
	s.shown = true
}

// Write prints what stays: notices above the line that is drawn over.
func (s *status) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.w.Write(p)
}

func (s *status) clear() {
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
	s.shown = false
}

// below is an output that may be the same terminal as a status' line.
type below struct {
	status *status
	w      io.Writer
}

func (b below) Write(p []byte) (int, error) {
	b.status.mu.Lock()
	defer b.status.mu.Unlock()
	b.status.clear()
	return b.w.Write(p)
}

// end takes the line off the terminal; nothing is shown after.
func (s *status) end() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if s.stop != nil && !s.ended {
		close(s.stop)
	}
	s.ended = true
}

// cells shows how far a list of cells is.
func (s *status) cells(p experiments.Progress) {
	if s == nil {
		return
	}
	s.show(func(age time.Duration) string {
		later := p
		later.Seconds += age.Seconds()
		if p.LeftSeconds >= 0 {
			later.LeftSeconds = max(0, p.LeftSeconds-age.Seconds())
		}
		return cellsText(later)
	})
}

func cellsText(p experiments.Progress) string {
	var parts []string
	if p.LeftSeconds >= 0 && p.Done < p.Total {
		parts = append(parts, "about "+harness.Wait(p.LeftSeconds)+" left")
	}
	if len(p.Running) > 0 {
		parts = append(parts, "running: "+strings.Join(p.Running, "; "))
	}
	text := fmt.Sprintf("%d of %d done in %s", p.Done, p.Total, harness.Wait(p.Seconds))
	if p.Name != "" {
		text = p.Name + ": " + text
	}
	return printable(strings.Join(append([]string{text}, parts...), ", "))
}

// solve shows incumbent, bound and gap of a method; number writes an objective.
func (s *status) solve(what string, number func(float64) string) func(milp.Progress) {
	if s == nil {
		return nil
	}
	return func(p milp.Progress) { s.solving(what, p, number) }
}

func (s *status) solving(what string, p milp.Progress, number func(float64) string) {
	s.show(func(age time.Duration) string {
		later := p
		later.Seconds += age.Seconds()
		return solveText(what, later, number)
	})
}

func solveText(what string, p milp.Progress, number func(float64) string) string {
	known := func(v float64) string {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return "none"
		}
		return number(v)
	}
	return fmt.Sprintf("%s: best %s, bound %s, gap %s after %s", what, known(p.Objective), known(p.Bound),
		gapText(p.Objective, p.Bound), harness.Wait(p.Seconds))
}

// chunks shows how many chunks have been tried.
func (s *status) chunks() func(chunk int64, before, all int) {
	if s == nil {
		return nil
	}
	began := s.now()
	return func(chunk int64, before, all int) {
		taken := s.now().Sub(began)
		s.show(func(age time.Duration) string {
			return fmt.Sprintf("%d of %d chunks tried in %s, running: chunk %d", before, all,
				harness.Wait((taken + age).Seconds()), chunk)
		})
	}
}

// decision shows a decision of the scheduler being made; the unit of its objective depends on which it is.
func (s *status) decision() func(string, milp.Progress) {
	if s == nil {
		return nil
	}
	return func(decision string, p milp.Progress) {
		if decision == "bind" || decision == "split" { // others count bytes
			s.solving(decision, p, duration)
		} else {
			s.solving(decision, p, func(v float64) string { return size(int64(v)) })
		}
	}
}
