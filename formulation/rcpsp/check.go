package rcpsp

import (
	"cmp"
	"fmt"
	"slices"
)

// A Violation is a rule of the package's problem that start times break.
type Violation struct {
	Project string
	Rule    int // (1), (2) or (3); 0 where the start times are too few or too many
	What    string
}

func (e *Violation) Error() string {
	if e.Rule == 0 {
		return fmt.Sprintf("project %q: %s", e.Project, e.What)
	}
	return fmt.Sprintf("project %q: rule (%d): %s", e.Project, e.Rule, e.What)
}

// Is makes every Violation match ErrSchedule.
func (e *Violation) Is(target error) bool { return target == ErrSchedule }

// Makespan is when the last activity ends.
func (p *Project) Makespan(start []int64) int64 {
	end := int64(0)
	for i, a := range p.Activities {
		end = max(end, start[i]+a.Duration)
	}
	return end
}

// Check tries rules (3), (1) and (2) on start times of a valid project and returns a
// *Violation for the first that they break. It looks at every moment at which an
// activity starts, since the use of a resource grows at no other.
func (p *Project) Check(start []int64) error {
	bad := func(rule int, format string, args ...any) error {
		return &Violation{p.Name, rule, fmt.Sprintf(format, args...)}
	}
	if len(start) != len(p.Activities) {
		return bad(0, "found %d start times, expected one for each of %d activities", len(start), len(p.Activities))
	}
	const latest = 2 * MaxHorizon
	for i, s := range start {
		if s < 0 || s > latest {
			return bad(3, "%s starts at %d, expected 0 to %d", p.activity(i), s, latest)
		}
	}
	for i, a := range p.Activities {
		for _, h := range a.After {
			if end := start[h] + p.Activities[h].Duration; start[i] < end {
				return bad(1, "%s starts at %d, expected at least %d, when %s ends", p.activity(i), start[i], end, p.activity(h))
			}
		}
	}
	type change struct {
		at, by int64
		who    int
	}
	for k, r := range p.Resources {
		var changes []change
		for i, a := range p.Activities {
			if a.Duration > 0 && a.Demand[k] > 0 {
				changes = append(changes, change{start[i], a.Demand[k], i}, change{start[i] + a.Duration, -a.Demand[k], i})
			}
		}
		slices.SortFunc(changes, func(x, y change) int { // ends before starts
			return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.by, y.by), cmp.Compare(x.who, y.who))
		})
		used := int64(0)
		for _, c := range changes {
			if used += c.by; used > r.Capacity {
				return bad(2, "at %d, when %s starts, %d of %s are in use, expected at most %d", c.at, p.activity(c.who), used,
					p.resource(k), r.Capacity)
			}
		}
	}
	return nil
}
