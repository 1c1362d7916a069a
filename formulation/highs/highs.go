//go:build cgo

package highs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	lanl "github.com/lanl/highs"

	"github.com/dsasched/dsasched/formulation/milp"
)

// Where HiGHS stops taking a number at its word; its options infinite_bound,
// infinite_cost, small_matrix_value and large_matrix_value have these values.
const (
	hugeBound = 1e20
	hugeCost  = 1e20
	smallCoef = 1e-9
	largeCoef = 1e15
)

// absoluteGap is HiGHS' mip_abs_gap: a solution this close to the bound is optimal whatever the relative gap.
const absoluteGap = 1e-6

// New returns a solver that may be used by several goroutines at once.
func New() (milp.Solver, error) { return solver{}, nil }

type solver struct{}

func (solver) Solve(ctx context.Context, m *milp.Model, opts milp.Options) (*milp.Solution, error) {
	if err := m.Err(); err != nil {
		return nil, err
	}
	if err := opts.Validate(m); err != nil {
		return nil, err
	}
	if m.NumVars() == 0 {
		return constant(m), nil
	}
	effort := m.Effort()
	if opts.Relax && m.HasIntegers() {
		began := time.Now()
		root, err := solver{}.Solve(ctx, m.Relaxed(), milp.Options{TimeLimit: opts.TimeLimit, MemoryBytes: opts.MemoryBytes,
			Threads: opts.Threads, LogFile: opts.LogFile})
		if err != nil {
			return nil, err
		}
		if root.Status == milp.Optimal {
			effort.LP = &root.Objective
		}
		if opts.TimeLimit > 0 {
			opts.TimeLimit = max(opts.TimeLimit-time.Since(began), 1)
		}
	}
	r := newSearch(ctx, m, opts)
	defer r.close()
	if err := fits(m, &r.scale); err != nil {
		return nil, err
	}
	if r.ctx.Err() == nil {
		raw, err := load(m, &r.scale, opts, r.limit)
		if err != nil {
			return nil, fmt.Errorf("highs: model %q: %w", m.Name(), err)
		}
		go r.run(raw)
	} else {
		r.ended <- ending{out: outcome{status: statusInterrupt, bound: math.NaN()}}
	}
	out, err := r.wait()
	if err != nil {
		return nil, fmt.Errorf("highs: model %q: HiGHS ended with %v: %w", m.Name(), out.status, err)
	}
	if lp := effort.LP; lp != nil && (math.IsNaN(out.bound) || out.bound < *lp) {
		out.bound = *lp // a run that ends in its root may know less
	}
	sol, err := answer(m, opts, out, absoluteGap/r.scale.objective)
	if err != nil {
		return nil, fmt.Errorf("highs: model %q: %w", m.Name(), err)
	}
	if sol.Status == milp.Feasible || sol.Status == milp.Limit {
		sol.Stop = r.why(out.status)
	}
	if gap := sol.Gap(); sol.Status == milp.Optimal && gap > 0 && gap <= opts.RelativeGap &&
		math.Abs(sol.Objective-sol.Bound) > absoluteGap {
		sol.Status, sol.Stop = milp.Feasible, milp.StopGap
	}
	if effort.Nodes = out.nodes; opts.Relax && !m.HasIntegers() && sol.Status == milp.Optimal {
		effort.LP = &sol.Objective
	}
	sol.Effort = effort
	return sol, nil
}

// fits reports the first number of m that HiGHS would take for another, even scaled.
func fits(m *milp.Model, scale *scaling) error {
	big := func(x float64) bool { return math.Abs(x) >= hugeBound && !math.IsInf(x, 0) }
	bad := func(kind, name, format string, args ...any) error {
		return &milp.InputError{Model: m.Name(), Kind: kind, Name: name, Reason: fmt.Sprintf(format, args...)}
	}
	for j := range m.NumVars() {
		v := m.Variable(milp.Var(j))
		if big(v.Lo/scale.column[j]) || big(v.Hi/scale.column[j]) {
			return bad("variable", v.Name, "HiGHS takes bounds from %g on for infinite; they are [%g, %g]",
				hugeBound, v.Lo, v.Hi)
		}
		if math.Abs(v.Cost*scale.column[j]*scale.objective) >= hugeCost {
			return bad("variable", v.Name, "HiGHS takes costs from %g on for infinite; it is %g", hugeCost, v.Cost)
		}
	}
	for i := range m.NumConstraints() {
		row := scale.terms(m, i)
		if big(row.Lo) || big(row.Hi) {
			return bad("constraint", row.Name, "HiGHS takes bounds from %g on for infinite; they are [%g, %g]",
				hugeBound, row.Lo, row.Hi)
		}
		for _, t := range row.Terms {
			if a := math.Abs(t.Coef); a <= smallCoef || a >= largeCoef {
				return bad("constraint", row.Name, "HiGHS takes coefficients between %g and %g; that of %q is %g, scaled",
					smallCoef, largeCoef, m.Variable(t.Var).Name, t.Coef)
			}
		}
	}
	return nil
}

// constant answers a model without variables, which the binding can't load.
func constant(m *milp.Model) *milp.Solution {
	if m.Check(nil, 0) != nil {
		return &milp.Solution{Status: milp.Infeasible, Objective: math.Inf(1), Bound: math.Inf(1)}
	}
	return &milp.Solution{Status: milp.Optimal, Values: []float64{}}
}

// load copies m into a HiGHS model with its options and start set. A limit of 0 is none; it stands for opts.TimeLimit.
//
// It goes row by row through the binding's raw model. The binding's friendlier Model leaves rows without terms out of
// its row starts, which shifts every row after them.
func load(m *milp.Model, scale *scaling, opts milp.Options, limit time.Duration) (*lanl.RawModel, error) {
	raw := lanl.NewRawModel()
	seconds := math.Inf(1)
	if limit > 0 {
		seconds = limit.Seconds()
	}
	// Silence comes first: HiGHS greets on its first call otherwise.
	err := errors.Join(
		raw.SetBoolOption("output_flag", opts.LogFile != ""),
		raw.SetBoolOption("log_to_console", false),
		raw.SetStringOption("log_file", opts.LogFile),
		raw.SetIntOption("threads", max(opts.Threads, 1)),
		raw.SetStringOption("parallel", map[bool]string{true: "on", false: "off"}[opts.Threads > 1]),
		raw.SetIntOption("random_seed", int(opts.Seed)),
		raw.SetFloat64Option("time_limit", seconds),
		raw.SetFloat64Option("mip_rel_gap", opts.RelativeGap),
		raw.SetFloat64Option("mip_abs_gap", absoluteGap),
	)
	if opts.WorkLimit > 0 {
		err = errors.Join(err, raw.SetIntOption("mip_max_nodes", int(min(opts.WorkLimit, math.MaxInt32))))
	}
	if err != nil {
		return nil, err
	}

	n := m.NumVars()
	lo, hi, cost := make([]float64, n), make([]float64, n), make([]float64, n)
	types := make([]lanl.VariableType, n)
	for j := range n {
		v := m.Variable(milp.Var(j))
		lo[j], hi[j], cost[j] = v.Lo/scale.column[j], v.Hi/scale.column[j], v.Cost*scale.column[j]*scale.objective
		if v.Type.Integral() {
			types[j] = lanl.IntegerType
		}
	}
	err = errors.Join(
		raw.AddColumnBounds(lo, hi),
		raw.SetColumnCosts(cost),
		raw.SetIntegrality(types),
	)
	if err != nil {
		return nil, err
	}

	var (
		rowLo, rowHi []float64
		start, index []int
		value        []float64
	)
	for i := range m.NumConstraints() {
		row := scale.terms(m, i)
		rowLo, rowHi = append(rowLo, row.Lo), append(rowHi, row.Hi)
		start = append(start, len(index))
		for _, t := range row.Terms {
			index, value = append(index, int(t.Var)), append(value, t.Coef)
		}
	}
	if len(index) == 0 {
		// The binding can neither add rows without any term nor solve a
		// model without rows: one that says nothing makes up for both.
		rowLo, rowHi = append(rowLo, math.Inf(-1)), append(rowHi, math.Inf(1))
		start, index, value = append(start, 0), []int{0}, []float64{1}
	}
	if err := raw.AddCompSparseRows(rowLo, start, index, value, rowHi); err != nil {
		return nil, err
	}

	if opts.Start != nil && m.HasIntegers() {
		start := whole(m, opts.Start)
		for j := range start {
			start[j] /= scale.column[j]
		}
		if err := setStart(raw, start); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// answer makes a solution of what HiGHS reports; it takes objectives within absolute of each other for equal.
func answer(m *milp.Model, opts milp.Options, out outcome, absolute float64) (*milp.Solution, error) {
	sol := &milp.Solution{Objective: math.Inf(1), Bound: math.Inf(-1)}
	switch out.status {
	case statusOptimal:
		sol.Status = milp.Optimal
	case statusInfeasible:
		sol.Status, sol.Bound = milp.Infeasible, math.Inf(1)
	case statusUnbounded:
		sol.Status, sol.Objective = milp.Unbounded, math.Inf(-1)
	case statusUnboundedOrInfeasible:
		sol.Status = milp.InfeasibleOrUnbounded
	case statusTimeLimit, statusInterrupt, statusSolutionLimit:
		sol.Status = milp.Limit
		if out.feasible {
			sol.Status = milp.Feasible
		}
	default:
		return nil, fmt.Errorf("HiGHS ended with %v", out.status)
	}
	if sol.Status.HasValues() {
		sol.Values = whole(m, out.values)
		sol.Objective = m.Objective(sol.Values)
	}
	if opts.Start != nil {
		if err := useStart(m, opts, sol); err != nil {
			return nil, err
		}
	}
	switch {
	case !m.HasIntegers() && sol.Status == milp.Optimal:
		sol.Bound = sol.Objective
	case m.HasIntegers() && (sol.Status.HasValues() || sol.Status == milp.Limit) && !math.IsNaN(out.bound) &&
		math.Abs(out.bound) < hugeBound:
		sol.Bound = out.bound
	}
	if sol.Status.HasValues() {
		// The solution is a better proof of what is possible than a bound that rounding has put on its wrong side.
		sol.Bound = math.Min(sol.Bound, sol.Objective)
	}
	if sol.Status == milp.Feasible && math.Abs(sol.Objective-sol.Bound) <= absolute {
		// The limit came between the proof and its being noticed.
		sol.Status = milp.Optimal
	}
	return sol, nil
}

// useStart keeps the promise that no answer is worse than the start, which HiGHS may have had no time to look at.
func useStart(m *milp.Model, opts milp.Options, sol *milp.Solution) error {
	start := whole(m, opts.Start)
	f := m.Objective(start)
	switch sol.Status {
	case milp.Infeasible:
		return fmt.Errorf("HiGHS finds no solution, but the start is one, of objective %g", f)
	case milp.InfeasibleOrUnbounded:
		sol.Status, sol.Objective = milp.Unbounded, math.Inf(-1)
	case milp.Limit:
		sol.Status, sol.Values, sol.Objective = milp.Feasible, start, f
	case milp.Feasible:
		if f < sol.Objective {
			sol.Values, sol.Objective = start, f
		}
	}
	return nil
}

// whole is x with the values of integer variables rounded to integers, which they are already up to HiGHS' tolerance.
func whole(m *milp.Model, x []float64) []float64 {
	y := make([]float64, len(x))
	for j := range x {
		y[j] = x[j]
		if m.Variable(milp.Var(j)).Type.Integral() {
			y[j] = math.Round(x[j]) + 0 // -0 becomes 0
		}
	}
	return y
}
