package harness

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Progress is the state of a list of cells or points.
type Progress struct {
	Name        string // of the experiment; "" for a grid and where there are several
	Done, Total int
	Running     []string // what is being computed, in the order in which it began
	// Finished names the part just finished and its time; "" at a start.
	Finished        string
	FinishedSeconds float64
	Seconds         float64 // since the beginning
	// LeftSeconds is the time of the rest: by the experiments' costs where they are known, else as if it were like the
	// later half of what was computed so far; less than 0: too little is known.
	LeftSeconds float64
}

// tracker makes Progress of starts and ends. Its methods may be called from several
// goroutines; report is called by one at a time.
type tracker struct {
	report func(Progress)

	mu       sync.Mutex
	p        Progress
	began    time.Time
	ends     []float64 // of what was done since, in seconds
	starting map[string]time.Time
	left     func(elapsed float64) float64 // nil: by the ends so far
}

func NewTracker(name string, done, total int, report func(Progress)) *tracker {
	if report == nil {
		report = func(Progress) {}
	}
	return &tracker{report: report, p: Progress{Name: name, Done: done, Total: total},
		began: time.Now(), starting: map[string]time.Time{}}
}

func (t *tracker) Start(label string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starting[label] = time.Now()
	t.p.Running = append(slices.Clip(t.p.Running), label)
	t.tell("", 0)
}

// End takes a cell off the list. One that failed or was interrupted is not done.
func (t *tracker) End(label string, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seconds := time.Since(t.starting[label]).Seconds()
	if i := slices.Index(t.p.Running, label); i >= 0 {
		t.p.Running = slices.Delete(slices.Clone(t.p.Running), i, i+1)
	}
	if !done {
		label = ""
	} else {
		t.p.Done++
		t.ends = append(t.ends, time.Since(t.began).Seconds())
	}
	t.tell(label, seconds)
}

func (t *tracker) tell(finished string, seconds float64) {
	p := t.p
	p.Finished, p.FinishedSeconds = finished, seconds
	p.Seconds = time.Since(t.began).Seconds()
	if t.left != nil {
		p.LeftSeconds = t.left(p.Seconds)
	} else {
		p.LeftSeconds = secondsLeft(t.ends, p.Total-p.Done)
	}
	t.report(p)
}

// secondsLeft is the time of the rest at the rate of the later half of the ends: what was slow at the beginning, as
// reading networks is, does not come again. It is less than 0 where fewer than three have ended.
func secondsLeft(ends []float64, rest int) float64 {
	n := len(ends)
	if n < 3 {
		return -1
	}
	from := n / 2
	return (ends[n-1] - ends[from-1]) / float64(n-from) * float64(rest)
}

// Wait writes a time that people wait for: "12 s", "3 min", "1 h 20 min".
func Wait(seconds float64) string {
	switch n := int(math.Round(seconds)); {
	case n < 100:
		return fmt.Sprintf("%d s", n)
	case n < 60*60:
		return fmt.Sprintf("%d min", (n+30)/60)
	default:
		n = (n + 30) / 60
		return fmt.Sprintf("%d h %d min", n/60, n%60)
	}
}
