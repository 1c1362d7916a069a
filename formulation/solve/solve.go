// Package solve is the contract of all methods for the problems of this project:
// what a caller may set, and what an answer says of itself.
//
// # Settings
//
// Every method takes a context and the same [Options]: a time limit, a limit on work that ends at the same place on
// any machine, a start, a solver where one is needed, and sinks for progress and notes. A package adds switches of its
// own where it has some.
//
// # Answers
//
// Errors are for input that makes no sense and for failures. The end of the context (cancelled, or its deadline has
// passed) and limits are answers: the best solution known, at least the start, with a bound that holds for every
// solution, and the reason why the method stopped ([milp.Stop]). The status is
//
//	optimal      the solution's cost and the bound meet
//	feasible     a solution, and a bound below its cost
//	infeasible   no solution exists, proven
//	limit        no solution was found, and a bound
//
// When a method returns, its work has ended: no goroutine of it is left, but for a run
// of HiGHS that has not noticed yet that it is to stop (package highs).
//
// # Rows
//
// A package with several methods lists them as [Method] values, and has one function
// Solve that runs the one of a given name.
package solve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Options are the settings of every method; S is a solution of its problem. The zero value
// asks for a proven answer, however long it takes.
type Options[S any] struct {
	// TimeLimit ends the method; 0 is no limit. The context's deadline counts as well.
	TimeLimit time.Duration
	// WorkLimit ends the method after so many states, nodes or conflicts, as the method
	// counts them, at the same place on any machine. 0 is no limit or the method's own.
	WorkLimit int64
	// MemoryBytes ends the method when it takes about so much memory; 0 is no limit or
	// the method's own. Methods that need little memory ignore it.
	MemoryBytes int64
	// Gap ends an integer program's search where the objective is within it of the bound, relative to the objective;
	// 0 asks for a proof.
	Gap float64
	// Threads is the most threads of an integer program's solver, 0 for one; LogFile takes its log.
	Threads int
	LogFile string
	// Relax asks for the value of an integer program's relaxation, too: [milp.Effort].
	Relax bool
	// Seed is of the random choices of methods that make some, the solver's among them. Each gives one answer.
	Seed uint32
	// Start is a solution to begin from, for instance a heuristic's; the zero value is
	// none. The answer is never worse. A start that is no solution is an error.
	Start S
	// Solver is for methods that need one.
	Solver milp.Solver
	// Progress, if set, receives better solutions and bounds in the unit of the answer's cost. It holds the method up
	// while it runs, may cancel the context, and is not called after the method has returned.
	Progress func(milp.Progress)
	// Note, if set, receives what a reader of the answer should know, such as that a program was too large to be built.
	Note func(string)
}

// Numbers lists the numbers below n in ascending order.
func Numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Validate reports the first setting that makes no sense.
func (o *Options[S]) Validate() error {
	switch {
	case o.TimeLimit < 0:
		return fmt.Errorf("found time limit %v, expected 0 or more", o.TimeLimit)
	case o.WorkLimit < 0:
		return fmt.Errorf("found work limit %d, expected 0 or more", o.WorkLimit)
	case !(o.Gap >= 0):
		return fmt.Errorf("found gap %g, expected 0 or more", o.Gap)
	case o.Threads < 0:
		return fmt.Errorf("found %d threads, expected 0 or more", o.Threads)
	case o.MemoryBytes < 0:
		return fmt.Errorf("found memory limit of %d bytes, expected 0 or more", o.MemoryBytes)
	}
	return nil
}

// Begin is the context under the time limit. The caller must call the function.
func (o *Options[S]) Begin(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.TimeLimit > 0 {
		return context.WithTimeout(ctx, o.TimeLimit)
	}
	return context.WithCancel(ctx)
}

// MILP are the settings for the solver under a context of [Options.Begin], with
// progress in units of so much of the answer's cost.
func (o *Options[S]) MILP(unit float64) milp.Options {
	m := milp.Options{WorkLimit: o.WorkLimit, MemoryBytes: o.MemoryBytes, Seed: int32(o.Seed & math.MaxInt32),
		RelativeGap: o.Gap, Threads: o.Threads, LogFile: o.LogFile, Relax: o.Relax}
	if o.Progress != nil {
		m.Progress = func(p milp.Progress) {
			p.Objective *= unit
			p.Bound *= unit
			o.Progress(p)
		}
	}
	return m
}

// A Verdict judges a solution of an integer program by the arithmetic of its problem.
type Verdict struct {
	Cost float64 // of the answer that the solution stands for, in the unit of the program's objective
	// Clash, if not empty, are integer variables at bounds of theirs that no answer has at those values together, or
	// none that is better than the best so far.
	Clash []milp.Var
}

// Agree is the share by which a solver's cost and a problem's own may differ: solvers hold each row, and integers,
// within 1e-6, and a big-M row adds some of these up.
const Agree = 1e-5

// Program has the solver solve a method's program, to be minimised, and holds each answer against the problem: judge is
// called with every solution that breaks no row of integers, and says what it costs. A row of integers that holds only
// within the solver's tolerance, and a clash, become constraints of m, and the program is solved again. The status is
// Optimal only if the problem's cost is the solver's, and a bound above a known cost is no bound: it is -Inf. A note
// says so.
func (o *Options[S]) Program(ctx context.Context, m *milp.Model, settings milp.Options,
	judge func(*milp.Solution) (Verdict, error)) (*milp.Solution, error) {
	nodes := int64(0)
	for {
		sol, err := o.Solver.Solve(ctx, m, settings)
		if err != nil {
			return nil, err
		}
		spent := sol.Effort.Nodes
		nodes += spent
		if sol.Effort.Nodes = nodes; !sol.Status.HasValues() {
			return sol, nil
		}
		v := Verdict{Clash: m.Clash(sol.Values)}
		if len(v.Clash) == 0 {
			if v, err = judge(sol); err != nil {
				return nil, err
			}
		}
		if len(v.Clash) > 0 {
			m.Exclude(v.Clash, sol.Values)
			if settings.Start != nil && m.Check(settings.Start, milp.StartTolerance) != nil {
				settings.Start = nil
			}
			stop := max(sol.Stop, Why(ctx))
			if settings.WorkLimit > 0 {
				if settings.WorkLimit -= spent; settings.WorkLimit <= 0 {
					stop = milp.StopWork
				}
			}
			if stop != milp.Complete {
				return &milp.Solution{Status: milp.Limit, Objective: math.Inf(1), Bound: sol.Bound, Stop: stop,
					Effort: sol.Effort}, nil
			}
			continue
		}
		known := v.Cost
		if settings.Start != nil {
			known = min(known, m.Objective(settings.Start))
		}
		scale := Agree * max(math.Abs(v.Cost), math.Abs(sol.Objective))
		if sol.Bound > known+scale {
			o.Notef("the solver's bound %g is above a cost of %g: it does not count", sol.Bound, known)
			sol.Status, sol.Bound = milp.Feasible, math.Inf(-1)
		} else if sol.Status == milp.Optimal && v.Cost > sol.Objective+scale {
			o.Notef("the solver's optimum %g is a cost of %g: it counts as a bound alone", sol.Objective, v.Cost)
			sol.Status = milp.Feasible
		}
		return sol, nil
	}
}

// Notef passes a note on, if a sink is set.
func (o *Options[S]) Notef(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

// reportEvery is the least time between two reports of a better bound alone.
const reportEvery = 200 * time.Millisecond

// Reporter passes on what is news of an objective to be minimised and its bound. It returns a function to call with
// what is known, infinite where nothing is: a better objective is reported at once, a better bound after a while or if
// it is due now. Without a sink the function does nothing.
func (o *Options[S]) Reporter() func(objective, bound float64, due bool) {
	if o.Progress == nil {
		return func(float64, float64, bool) {}
	}
	began := time.Now()
	told := milp.Progress{Objective: math.Inf(1), Bound: math.Inf(-1)}
	var last time.Time
	return func(objective, bound float64, due bool) {
		p := milp.Progress{Objective: objective, Bound: min(bound, objective)}
		p.Improved = p.Objective < told.Objective
		now := time.Now()
		if p.Improved || p.Bound > told.Bound && (due || now.Sub(last) >= reportEvery) {
			p.Seconds = now.Sub(began).Seconds()
			told, last = p, now
			o.Progress(p)
		}
	}
}

// Why is the reason why a method under a context has to stop, [milp.Complete] while it need not.
func Why(ctx context.Context) milp.Stop {
	switch err := ctx.Err(); {
	case err == nil:
		return milp.Complete
	case errors.Is(err, context.DeadlineExceeded):
		return milp.StopTime
	}
	return milp.StopCancelled
}

// An Outcome summarises an answer to any problem.
type Outcome struct {
	Status milp.Status
	// Objective is the minimised value, +Inf without a solution, and Bound the value that no
	// solution is below, both in the unit of the problem.
	Objective, Bound float64
	Stop             milp.Stop // Complete if Status is Optimal or Infeasible
}

// If leaves out the objective unless a solution was found.
func (o Outcome) If(found bool) Outcome {
	if !found {
		o.Objective = math.Inf(1)
	}
	return o
}

// Gap is how far the objective is above the bound, as a share of that: +Inf where the bound says nothing.
func (o Outcome) Gap() float64 {
	if o.Objective == o.Bound {
		return 0
	} else if o.Bound <= 0 {
		return math.Inf(1)
	}
	return o.Objective/o.Bound - 1
}

// Judge is the status of an answer with a solution or without, and whether its cost
// meets the bound; and the reason to stop, which an optimum does not have.
func Judge(found, meet bool, stop milp.Stop) (milp.Status, milp.Stop) {
	switch {
	case !found:
		return milp.Limit, stop
	case meet:
		return milp.Optimal, milp.Complete
	}
	return milp.Feasible, stop
}

// A Method is a row of a package's table of methods.
type Method struct {
	Name        string
	Description string // a line
	// Exact methods prove what they find if they are given the time.
	Exact bool
	// NeedsSolver is set where [Options.Solver] must be.
	NeedsSolver bool
}

// A Row is a method with what runs it, a function of its package.
type Row[F any] struct {
	Method
	Run F
}

// A Table lists the methods of a package.
type Table[F any] []Row[F]

// Methods lists the methods without what runs them.
func (t Table[F]) Methods() []Method {
	list := make([]Method, len(t))
	for k := range t {
		list[k] = t[k].Method
	}
	return list
}

// Find returns the row of a name, or an error as [Find] does.
func (t Table[F]) Find(name string, solver milp.Solver) (Row[F], error) {
	k, err := Find(t.Methods(), name, solver)
	if err != nil {
		return Row[F]{}, err
	}
	return t[k], nil
}

// Find is the place of a method in a table. The error of an unknown name lists those
// that there are, and a method without the solver that it needs is one, too.
func Find(methods []Method, name string, solver milp.Solver) (int, error) {
	var names []string
	for k, m := range methods {
		if m.Name == name {
			if m.NeedsSolver && solver == nil {
				return 0, fmt.Errorf("method %q needs a solver", name)
			}
			return k, nil
		}
		names = append(names, m.Name)
	}
	return 0, fmt.Errorf("unknown method %q, expected one of %s", name, strings.Join(names, ", "))
}
