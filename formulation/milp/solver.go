package milp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Status is the solver's knowledge about a model once it has ended.
type Status int

const (
	// Unknown is the zero value and no solver's answer.
	Unknown Status = iota
	// Optimal: Values is a best solution, within the gap that was asked for.
	Optimal
	// Feasible: Values is a solution; a limit came before the proof that it
	// is a best one. Bound says how far off it can be.
	Feasible
	// Infeasible: there is no solution, proven.
	Infeasible
	// Unbounded: there are solutions of any objective, however good.
	Unbounded
	// InfeasibleOrUnbounded: one of the two, and the solver can't say which.
	InfeasibleOrUnbounded
	// Limit: a limit came before any solution was found.
	Limit
)

var statusNames = []string{"unknown", "optimal", "feasible", "infeasible", "unbounded", "infeasible or unbounded", "limit"}

func (s Status) String() string { return nameOf(statusNames, s) }

// MarshalText gives the status by its name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Status) UnmarshalText(text []byte) error { return named(s, statusNames, "status", text) }

func named[T ~int](x *T, names []string, what string, text []byte) error {
	k := slices.Index(names, string(text))
	if k < 0 {
		return fmt.Errorf("milp: %s %q is unknown", what, text)
	}
	*x = T(k)
	return nil
}

// HasValues reports whether a solution with the status has values.
func (s Status) HasValues() bool { return s == Optimal || s == Feasible }

// A Solution is a solver's answer.
type Solution struct {
	Status Status
	// Objective is f at Values, or what no solution can be worse than: see the package's section on answers.
	Objective float64
	// Bound is the value that no solution can beat.
	Bound float64
	// Values has one value per variable if Status.HasValues(), else it is nil.
	Values []float64
	// Stop is the reason for an early end of the search. It is Complete unless Status is Feasible or Limit.
	Stop Stop
	// Effort has the value of the relaxation in the model's unit of cost.
	Effort Effort
}

// An Effort is the size of an integer program and what its solution took: "program" in the JSON of answers.
type Effort struct {
	Rows     int   `json:"rows"`
	Columns  int   `json:"columns"`
	Nonzeros int   `json:"nonzeros"`
	Nodes    int64 `json:"nodes"` // of the branch and bound; 0: presolve was enough
	// LP is the optimum without integrality, in the unit of the answer; nil where [Options.Relax] is not set or a
	// limit came first.
	LP *float64 `json:"lp,omitempty"`
	// RootGap is |objective - LP| / |objective|; nil without an LP or a solution.
	RootGap *float64 `json:"root_gap,omitempty"`
}

// Add takes up a program that is solved beside e, whose costs add up.
func (e *Effort) Add(o Effort) {
	if e.Columns == 0 {
		*e = o
		return
	}
	e.Rows, e.Columns, e.Nonzeros, e.Nodes = e.Rows+o.Rows, e.Columns+o.Columns, e.Nonzeros+o.Nonzeros, e.Nodes+o.Nodes
	if e.LP != nil && o.LP != nil {
		sum := *e.LP + *o.LP
		e.LP = &sum
	} else {
		e.LP = nil
	}
}

// In is the effort for an answer whose cost is the model's times unit.
func (e Effort) In(unit, objective float64) *Effort {
	e.RootGap = nil
	if e.LP != nil {
		lp := *e.LP * unit
		e.LP = &lp
		if gap := (&Solution{Objective: objective, Bound: lp}).Gap(); !math.IsInf(gap, 0) && !math.IsNaN(gap) {
			e.RootGap = &gap
		}
	}
	return &e
}

// Stop is the reason why a search ended.
type Stop int

const (
	// Complete: nothing but the proof did.
	Complete Stop = iota
	// StopTime: [Options.TimeLimit], or the context's deadline.
	StopTime
	// StopCancelled: the context was cancelled.
	StopCancelled
	// StopMemory: [Options.MemoryBytes].
	StopMemory
	// StopWork: [Options.WorkLimit].
	StopWork
	// StopGap: [Options.RelativeGap].
	StopGap
)

var stopNames = []string{"complete", "time limit", "cancelled", "memory limit", "work limit", "gap"}

func (s Stop) String() string { return nameOf(stopNames, s) }

// MarshalText gives the reason by its name.
func (s Stop) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Stop) UnmarshalText(text []byte) error { return named(s, stopNames, "reason to stop", text) }

// Progress is the state of a search at a moment.
type Progress struct {
	// Objective and Bound are as in a [Solution]: infinite where nothing is known yet.
	Objective, Bound float64
	// Improved is set where Objective is new.
	Improved bool
	Seconds  float64 // since the start of Solve
}

// Value is the value of v. It panics if the solution has no values.
func (s *Solution) Value(v Var) float64 {
	if s.Values == nil {
		panic(fmt.Sprintf("milp: value of variable #%d of a solution without values (%v)", v, s.Status))
	}
	return s.Values[v]
}

// Int is the value of an integer or binary variable. It panics if the solution has no values.
func (s *Solution) Int(v Var) int { return int(math.Round(s.Value(v))) }

// Gap is |Objective - Bound| / |Objective|, the relative distance between the
// two ends of what is known: 0 when they meet, +Inf when one is missing.
func (s *Solution) Gap() float64 {
	switch {
	case s.Objective == s.Bound:
		return 0
	case math.IsInf(s.Objective, 0) || math.IsInf(s.Bound, 0) || s.Objective == 0:
		return math.Inf(1)
	}
	return math.Abs(s.Objective-s.Bound) / math.Abs(s.Objective)
}

// Options are a solver's settings. The zero value asks for a proven optimum, however long it takes.
type Options struct {
	// TimeLimit ends the search; the answer is then the best solution so far with its bound. 0 is no limit.
	TimeLimit time.Duration
	// RelativeGap is the [Solution.Gap] that ends the search: a solution above its bound is then Feasible.
	// 0 asks for a proof up to the solver's absolute tolerance.
	RelativeGap float64
	// Threads is the most threads of the solver; 0 is one. Another number than that of the process' first search
	// may be an error.
	Threads int
	// LogFile is a file for the solver's own log; empty: none.
	LogFile string
	// Relax has the relaxation solved first, for [Effort.LP].
	Relax bool
	// Seed is for the solver's random choices. Each seed gives one answer,
	// the same each time, unless a time limit cuts the search short.
	Seed int32
	// Start is a solution to start from, one value per variable, for instance a heuristic's. nil is none. The answer
	// is never worse than Start. A Start that breaks a constraint is an error: it shows that the model and whatever
	// made the start don't agree.
	Start []float64
	// Progress, if not nil, receives each better solution, and every so often a better bound. It is called by one
	// goroutine at a time, never after Solve has returned, and holds the search up while it runs. It may cancel the
	// context.
	Progress func(Progress)
	// WorkLimit ends the search after this many nodes, at the same place on any
	// machine. 0 is no limit; linear programs have no nodes.
	WorkLimit int64
	// MemoryBytes ends the search, as the time limit does, when the process has come to occupy this much memory,
	// whoever took it. 0 is no limit. It is polled several times a second on Linux, and ignored elsewhere.
	MemoryBytes int64
}

// StartTolerance is the amount by which [Options.Start] may break a constraint, in the sense of [Model.Check].
const StartTolerance = 1e-6

// Validate reports settings that no solver can follow for m. Solvers call it first.
func (o *Options) Validate(m *Model) error {
	if o.TimeLimit < 0 {
		return fmt.Errorf("milp: time limit %v is negative", o.TimeLimit)
	}
	if !(o.RelativeGap >= 0) {
		return fmt.Errorf("milp: relative gap %g is not a number from 0 on", o.RelativeGap)
	}
	if o.Threads < 0 {
		return fmt.Errorf("milp: %d threads, expected 0 or more", o.Threads)
	}
	if o.MemoryBytes < 0 {
		return fmt.Errorf("milp: memory limit of %d bytes is negative", o.MemoryBytes)
	}
	if o.WorkLimit < 0 {
		return fmt.Errorf("milp: limit of %d nodes is negative", o.WorkLimit)
	}
	if o.Seed < 0 {
		return fmt.Errorf("milp: seed %d is negative", o.Seed)
	}
	if o.Start != nil {
		if len(o.Start) != m.NumVars() {
			return fmt.Errorf("milp: model %q: the start has %d values for %d variables", m.Name(), len(o.Start), m.NumVars())
		}
		if err := m.Check(o.Start, StartTolerance); err != nil {
			return fmt.Errorf("milp: the start is no solution: %w", err)
		}
	}
	return nil
}

// A Solver finds best solutions.
//
// Solve does not change the model. Infeasible and unbounded models are answers, not errors, and so are limits: of time,
// work and memory, and the end of the context, upon which Solve returns within a second with the best solution so far
// and its bound; [Solution.Stop] is which it was. Errors are for invalid models and options and for a solver's failure.
type Solver interface {
	Solve(ctx context.Context, m *Model, opts Options) (*Solution, error)
}

// Keep is a Solver that solves nothing: it keeps the first model that it gets, for those
// who want to see the program of a method, and knows no solution.
type Keep struct {
	Model *Model
	Kept  func() // called then, if set
}

// Solve keeps m.
func (k *Keep) Solve(_ context.Context, m *Model, _ Options) (*Solution, error) {
	if k.Model == nil {
		if k.Model = m; k.Kept != nil {
			k.Kept()
		}
	}
	return &Solution{Status: Limit, Objective: math.Inf(1), Bound: math.Inf(-1), Stop: StopCancelled}, nil
}
