package devicepipe

import (
	"fmt"
	"math"
	"slices"
)

// A Stage is a part of the network on a device of its own.
type Stage struct {
	Name            string  `json:"name"`
	ForwardSeconds  float64 `json:"forward_seconds"`  // of a micro-batch
	BackwardSeconds float64 `json:"backward_seconds"` // 0 for inference
	// LinkSeconds is the time of a micro-batch to the next stage, and of its gradient back.
	LinkSeconds float64 `json:"link_seconds"`
}

// A Task is a pass of a micro-batch on a stage.
type Task struct {
	MicroBatch int  `json:"micro_batch"`
	Backward   bool `json:"backward"`
}

// A Schedule is stages with the order of their tasks.
type Schedule struct {
	Stages []Stage  `json:"stages"`
	Tasks  [][]Task `json:"tasks"` // of each stage, in order
}

// A Power is the power of a device, in watts.
type Power struct{ IdleWatts, BusyWatts float64 }

// A Run is one task in time.
type Run struct {
	Stage int
	Task
	Start, End float64
}

// A Result is a simulated batch.
type Result struct {
	Runs         []Run     `json:"-"` // by start, then stage
	Seconds      float64   `json:"latency_s"`
	FillSeconds  float64   `json:"fill_s"`
	DrainSeconds float64   `json:"drain_s"`
	IdleShare    float64   `json:"idle_share"`
	Bubbles      []float64 `json:"bubble_s"` // of each stage
	Stored       []int     `json:"stored"`   // passes of micro-batches, of each device
	EnergyJoules float64   `json:"energy_j"`
}

func bad(format string, args ...any) error {
	return fmt.Errorf("not a schedule of a pipeline: "+format, args...)
}

// Simulate runs the tasks. It refuses a device that has a task twice, devices that have
// different tasks, and orders in which tasks wait for each other.
func Simulate(s *Schedule, power Power) (*Result, error) {
	p := len(s.Tasks)
	if p == 0 || len(s.Stages) != p {
		return nil, bad("found tasks of %d stages for %d, expected as many, and at least one", p, len(s.Stages))
	}
	for i, st := range s.Stages {
		for _, t := range []float64{st.ForwardSeconds, st.BackwardSeconds, st.LinkSeconds} {
			if !(t >= 0) || math.IsInf(t, 1) {
				return nil, bad("stage %d: found %v, expected times of at least 0", i, t)
			}
		}
	}
	end := make([]map[Task]float64, p)
	next := make([]int, p)
	free := make([]float64, p)
	for i := range end {
		end[i] = map[Task]float64{}
		seen := map[Task]bool{}
		for _, t := range s.Tasks[i] {
			if seen[t] {
				return nil, bad("stage %d has micro-batch %d twice", i, t.MicroBatch)
			}
			seen[t] = true
			if i > 0 && !slices.Contains(s.Tasks[0], t) || len(s.Tasks[i]) != len(s.Tasks[0]) {
				return nil, bad("stages 0 and %d have different tasks", i)
			}
		}
	}
	r := &Result{}
	for {
		moved, left := false, false
		for i := range p {
			for next[i] < len(s.Tasks[i]) {
				t := s.Tasks[i][next[i]]
				ready, seconds, ok := s.ready(end, i, t)
				if !ok {
					left = true
					break
				}
				start := max(free[i], ready)
				free[i] = start + seconds
				end[i][t] = free[i]
				r.Runs = append(r.Runs, Run{i, t, start, free[i]})
				next[i]++
				moved = true
			}
		}
		if !left {
			break
		}
		if !moved {
			i := slices.IndexFunc(next, func(n int) bool { return n < len(s.Tasks[0]) })
			return nil, bad("stage %d waits for ever for the inputs of micro-batch %d", i, s.Tasks[i][next[i]].MicroBatch)
		}
	}
	slices.SortFunc(r.Runs, func(a, b Run) int {
		switch {
		case a.Start != b.Start:
			return sign(a.Start - b.Start)
		case a.Stage != b.Stage:
			return a.Stage - b.Stage
		}
		return sign(a.End - b.End)
	})
	r.measure(s, power)
	return r, nil
}

func sign(x float64) int {
	if x < 0 {
		return -1
	}
	return 1
}

// ready is when the inputs of a task are there; ok is false while one is not known.
func (s *Schedule) ready(end []map[Task]float64, i int, t Task) (at, seconds float64, ok bool) {
	at, ok = 0, true
	need := func(stage int, backward bool, link float64) {
		e, known := end[stage][Task{t.MicroBatch, backward}]
		ok = ok && known
		at = max(at, e+link)
	}
	if !t.Backward {
		if i > 0 {
			need(i-1, false, s.Stages[i-1].LinkSeconds)
		}
		return at, s.Stages[i].ForwardSeconds, ok
	}
	need(i, false, 0)
	if i+1 < len(s.Stages) {
		need(i+1, true, s.Stages[i].LinkSeconds)
	}
	return at, s.Stages[i].BackwardSeconds, ok
}

func (r *Result) measure(s *Schedule, power Power) {
	p := len(s.Tasks)
	first, last, busy := slices.Repeat([]float64{math.Inf(1)}, p), make([]float64, p), make([]float64, p)
	for _, run := range r.Runs {
		r.Seconds = max(r.Seconds, run.End)
		first[run.Stage] = min(first[run.Stage], run.Start)
		last[run.Stage] = max(last[run.Stage], run.End)
		busy[run.Stage] += run.End - run.Start
	}
	if len(r.Runs) == 0 {
		first = make([]float64, p)
	}
	r.FillSeconds = slices.Max(first)
	r.DrainSeconds = r.Seconds - slices.Min(last)
	all := 0.0
	r.Stored = make([]int, p)
	for i := range p {
		all += busy[i]
		r.Bubbles = append(r.Bubbles, r.Seconds-busy[i])
		r.EnergyJoules += power.IdleWatts*r.Seconds + (power.BusyWatts-power.IdleWatts)*busy[i]
		held := 0
		for _, t := range s.Tasks[i] {
			if t.Backward {
				held--
			} else {
				held++
			}
			r.Stored[i] = max(r.Stored[i], held)
		}
	}
	if r.Seconds > 0 {
		r.IdleShare = 1 - all/(float64(p)*r.Seconds)
	}
}

// GPipe orders tasks as GPipe does: all forward passes, then all backward passes in reverse.
func GPipe(stages, microBatches int, training bool) [][]Task {
	tasks := make([][]Task, stages)
	for i := range tasks {
		for m := range microBatches {
			tasks[i] = append(tasks[i], Task{MicroBatch: m})
		}
		for m := microBatches - 1; m >= 0 && training; m-- {
			tasks[i] = append(tasks[i], Task{MicroBatch: m, Backward: true})
		}
	}
	return tasks
}
