package rcpsp

import (
	"errors"
	"fmt"

	"github.com/dsasched/dsasched/internal/heap"
	"github.com/dsasched/dsasched/internal/strict"
)

// Limits that keep every sum of durations and of demands within 64 bits.
const (
	MaxHorizon  = int64(1) << 50 // of the sum of all durations
	maxCapacity = int64(1) << 40
)

// A Resource is renewable: what an activity takes is free again when it ends.
type Resource struct {
	Name     string
	Capacity int64
}

// An Activity is known by its index in Project.Activities.
type Activity struct {
	Name     string
	Duration int64
	// Demand has one number per resource of the project.
	Demand []int64
	// After lists the activities that must have ended before this one starts, in any
	// order and not necessarily with smaller indexes.
	After []int
}

// A Project is a set of activities to be scheduled.
type Project struct {
	Name       string
	Resources  []Resource
	Activities []Activity
}

// InputError describes a mistake in a project.
type InputError = strict.InputError

// Validate reports the first thing that makes p no project, or that no schedule can
// satisfy: an activity that demands more than there is, or one that waits for
// itself. The error is an *InputError. A valid project has a schedule.
func (p *Project) Validate() error {
	bad := func(field string, found any, want string, args ...any) error {
		return strict.Error(fmt.Sprintf("project %q", p.Name), field, fmt.Sprint(found), fmt.Sprintf(want, args...))
	}
	for k, r := range p.Resources {
		if r.Capacity < 0 || r.Capacity > maxCapacity {
			return bad(p.resource(k)+": capacity", r.Capacity, "0 to %d", maxCapacity)
		}
	}
	sum := int64(0)
	for i, a := range p.Activities {
		switch {
		case a.Duration < 0 || a.Duration > MaxHorizon:
			return bad(p.activity(i)+": duration", a.Duration, "0 to %d", MaxHorizon)
		case a.Duration > MaxHorizon-sum:
			return bad(p.activity(i)+": sum of durations so far", sum+a.Duration, "at most %d", MaxHorizon)
		case len(a.Demand) != len(p.Resources):
			return bad(p.activity(i)+": number of demands", len(a.Demand), "one for each of %d resources", len(p.Resources))
		}
		sum += a.Duration
		for k, r := range a.Demand {
			if r < 0 || r > p.Resources[k].Capacity {
				return bad(p.activity(i)+": demand of "+p.resource(k), r, "0 to its capacity, %d", p.Resources[k].Capacity)
			}
		}
		for _, h := range a.After {
			if h < 0 || h >= len(p.Activities) {
				return bad(p.activity(i)+": comes after", fmt.Sprintf("activity %d", h), "0 to %d", len(p.Activities)-1)
			}
		}
	}
	if _, err := p.Order(); err != nil {
		return err
	}
	return nil
}

// Order lists the activities so that each comes after those it waits for; of several
// that may come next it takes the one with the smallest index. Indexes in After must
// be in range. The error, if there is a cycle, is an *InputError that names it.
func (p *Project) Order() ([]int, error) {
	n := len(p.Activities)
	waits := make([]int, n)
	for i := range p.Activities {
		waits[i] = len(p.Activities[i].After)
	}
	next := p.Successors()
	ready := heap.Of(func(a, b int) bool { return a < b })
	for i, w := range waits {
		if w == 0 {
			ready.Push(i)
		}
	}
	order := make([]int, 0, n)
	for ready.Len() > 0 {
		i := ready.Pop()
		order = append(order, i)
		for _, j := range next[i] {
			if waits[j]--; waits[j] == 0 {
				ready.Push(j)
			}
		}
	}
	if len(order) == n {
		return order, nil
	}
	return nil, strict.Error(fmt.Sprintf("project %q", p.Name), p.activity(p.onCycle(waits)),
		"a wait for itself by way of those it comes after", "no cycle")
}

// onCycle follows activities that still wait until one comes back.
func (p *Project) onCycle(waits []int) int {
	at := 0
	for waits[at] == 0 {
		at++
	}
	seen := make([]bool, len(waits))
	for !seen[at] {
		seen[at] = true
		for _, h := range p.Activities[at].After {
			if waits[h] > 0 {
				at = h
				break
			}
		}
	}
	return at
}

// Successors lists for each activity those that come right after it, in ascending
// order, once per mention in After.
func (p *Project) Successors() [][]int {
	next := make([][]int, len(p.Activities))
	for j, a := range p.Activities {
		for _, h := range a.After {
			next[h] = append(next[h], j)
		}
	}
	return next
}

// Horizon is the sum of all durations, at which any project can be done.
func (p *Project) Horizon() int64 {
	sum := int64(0)
	for _, a := range p.Activities {
		sum += a.Duration
	}
	return sum
}

// Reversed is the project in a mirror of time: start times s of p with makespan M
// are start times M - s_i - d_i of it.
func (p *Project) Reversed() *Project {
	r := &Project{Name: p.Name, Resources: p.Resources, Activities: make([]Activity, len(p.Activities))}
	for i, next := range p.Successors() {
		a := p.Activities[i]
		a.After = next
		r.Activities[i] = a
	}
	return r
}

func (p *Project) activity(i int) string {
	return fmt.Sprintf("activity %d (%q)", i, p.Activities[i].Name)
}

func (p *Project) resource(k int) string {
	return fmt.Sprintf("resource %d (%q)", k, p.Resources[k].Name)
}

// ErrSchedule is wrapped by every Violation.
var ErrSchedule = errors.New("not a schedule of the project")

// Unrelated returns a function that reports of two activities of a valid project whether
// neither comes after the other, directly or not. It takes memory quadratic in the
// number of activities, one bit each.
func (p *Project) Unrelated() func(i, j int) bool {
	order, err := p.Order()
	if err != nil {
		panic("rcpsp: " + err.Error()) // the caller has validated it
	}
	n := len(order)
	words := (n + 63) / 64
	before := make([]uint64, n*words) // row i: what i comes after, and i
	for _, i := range order {
		row := before[i*words : (i+1)*words]
		row[i/64] |= 1 << (i % 64)
		for _, h := range p.Activities[i].After {
			for w, bits := range before[h*words : (h+1)*words] {
				row[w] |= bits
			}
		}
	}
	after := func(i, j int) bool { return before[i*words+j/64]>>(j%64)&1 == 1 }
	return func(i, j int) bool { return !after(i, j) && !after(j, i) }
}
