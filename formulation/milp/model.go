package milp

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type says which values a variable may take.
type Type int

const (
	Continuous Type = iota // any value within the bounds
	Integer                // whole numbers within the bounds
	Binary                 // 0 or 1
)

var typeNames = []string{"continuous", "integer", "binary"}

func (t Type) String() string { return nameOf(typeNames, t) }

// nameOf is the name of one of some values that count from 0.
func nameOf[T ~int](names []string, x T) string {
	if x < 0 || int(x) >= len(names) {
		return strings.TrimPrefix(fmt.Sprintf("%T(%d)", x, int(x)), "milp.")
	}
	return names[x]
}

// Integral reports whether variables of the type take whole numbers only.
func (t Type) Integral() bool { return t == Integer || t == Binary }

// Var is a variable of one model: its index in the order of adding, from 0.
type Var int

// Times is the term coef*v.
func (v Var) Times(coef float64) Term { return Term{v, coef} }

// A Term is one summand coef*x of a linear sum.
type Term struct {
	Var  Var
	Coef float64
}

// Sum is the terms of v[0] + v[1] + ..., each with coefficient 1.
func Sum(vars ...Var) []Term {
	terms := make([]Term, len(vars))
	for i, v := range vars {
		terms[i] = Term{v, 1}
	}
	return terms
}

// A Variable describes a variable of a model.
type Variable struct {
	Name   string
	Type   Type
	Lo, Hi float64 // bounds, either may be infinite
	Cost   float64 // coefficient in the objective
}

// A Constraint is Lo <= the sum of Terms <= Hi.
type Constraint struct {
	Name   string
	Lo, Hi float64
	// Terms names each variable at most once and holds no zero coefficient.
	Terms []Term
}

// An InputError says what is wrong with one variable or constraint.
type InputError struct {
	Model  string // name of the model
	Kind   string // "variable" or "constraint"
	Name   string // name of the variable or constraint
	Reason string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("milp: model %q: %s %q: %s", e.Model, e.Kind, e.Name, e.Reason)
}

// A Model is a mixed-integer linear program under construction, to be minimised. Make one with
// [New]. It is not safe for use by several goroutines while it is built.
type Model struct {
	name     string
	vars     []Variable
	rows     []Constraint
	varNames map[string]Var
	rowNames map[string]int

	// merge[v] is 1 + the place of v among the terms of the row being added,
	// 0 outside AddRange. It spares a map per row.
	merge []int
	err   error // the first mistake
}

// New returns an empty model. The name appears in error messages.
func New(name string) *Model {
	return &Model{name: name, varNames: map[string]Var{}, rowNames: map[string]int{}}
}

func (m *Model) Name() string        { return m.name }
func (m *Model) NumVars() int        { return len(m.vars) }
func (m *Model) NumConstraints() int { return len(m.rows) }

// Variable describes v, which must be of this model.
func (m *Model) Variable(v Var) Variable { return m.vars[v] }

// Constraint is the i-th constraint in the order of adding. Its terms belong to the model and are not to be changed.
func (m *Model) Constraint(i int) Constraint { return m.rows[i] }

// Effort is the size of the model.
func (m *Model) Effort() Effort {
	e := Effort{Rows: len(m.rows), Columns: len(m.vars)}
	for i := range m.rows {
		e.Nonzeros += len(m.rows[i].Terms)
	}
	return e
}

// Relaxed is the model without integrality. It shares the constraints, which must not change after.
func (m *Model) Relaxed() *Model {
	r := *m
	r.vars = slices.Clone(m.vars)
	for j := range r.vars {
		r.vars[j].Type = Continuous
	}
	return &r
}

// HasIntegers reports whether any variable is an integer or binary one.
func (m *Model) HasIntegers() bool {
	for i := range m.vars {
		if m.vars[i].Type.Integral() {
			return true
		}
	}
	return false
}

// Err returns an *[InputError] for what was wrong first in the calls that built the model, nil if nothing was.
func (m *Model) Err() error { return m.err }

func (m *Model) fail(kind, name, format string, args ...any) {
	if m.err == nil {
		m.err = &InputError{m.name, kind, name, fmt.Sprintf(format, args...)}
	}
}

// Continuous adds a continuous variable.
func (m *Model) Continuous(name string, lo, hi, cost float64) Var {
	return m.add(Variable{name, Continuous, lo, hi, cost})
}

// Integer adds an integer variable.
func (m *Model) Integer(name string, lo, hi, cost float64) Var {
	return m.add(Variable{name, Integer, lo, hi, cost})
}

// Binary adds a variable that is 0 or 1.
func (m *Model) Binary(name string, cost float64) Var {
	return m.add(Variable{name, Binary, 0, 1, cost})
}

func (m *Model) add(x Variable) Var {
	v := Var(len(m.vars))
	if x.Name == "" {
		m.fail("variable", fmt.Sprintf("#%d", v), "it has no name")
	} else if first, dup := m.varNames[x.Name]; dup {
		m.fail("variable", x.Name, "variable #%d has the same name", first)
	} else {
		m.varNames[x.Name] = v
	}
	if why := badRange(x.Lo, x.Hi); why != "" {
		m.fail("variable", x.Name, "%s", why)
	}
	if !finite(x.Cost) {
		m.fail("variable", x.Name, "its cost is %g", x.Cost)
	}
	// The variable is kept even if it is wrong, so that the numbers of those
	// that follow, and the terms that use it, stay as the caller sees them.
	m.vars = append(m.vars, x)
	m.merge = append(m.merge, 0)
	return v
}

// SetBounds replaces the bounds of v. A binary variable stays within 0 and 1.
func (m *Model) SetBounds(v Var, lo, hi float64) {
	if !m.has(v) {
		m.fail("variable", fmt.Sprintf("#%d", v), "bounds set, but the model has %d variables", len(m.vars))
		return
	}
	x := &m.vars[v]
	if why := badRange(lo, hi); why != "" {
		m.fail("variable", x.Name, "%s", why)
	} else if x.Type == Binary && (lo < 0 || hi > 1) {
		m.fail("variable", x.Name, "it is binary, but its bounds are set to [%g, %g]", lo, hi)
	}
	x.Lo, x.Hi = lo, hi
}

// Fix sets both bounds of v to value.
func (m *Model) Fix(v Var, value float64) { m.SetBounds(v, value, value) }

// AddRange adds lo <= sum of terms <= hi and returns the constraint's index. Terms of the same variable are added up.
// A sum without terms is zero: such a constraint either says nothing or makes the model infeasible.
func (m *Model) AddRange(name string, lo float64, terms []Term, hi float64) int {
	i := len(m.rows)
	if name == "" {
		m.fail("constraint", fmt.Sprintf("#%d", i), "it has no name")
	} else if first, dup := m.rowNames[name]; dup {
		m.fail("constraint", name, "constraint #%d has the same name", first)
	} else {
		m.rowNames[name] = i
	}
	if why := badRange(lo, hi); why != "" {
		m.fail("constraint", name, "%s", why)
	}
	m.rows = append(m.rows, Constraint{name, lo, hi, m.collect(name, terms)})
	return i
}

// AddLE adds sum of terms <= hi.
func (m *Model) AddLE(name string, terms []Term, hi float64) int {
	return m.AddRange(name, math.Inf(-1), terms, hi)
}

// AddGE adds sum of terms >= lo.
func (m *Model) AddGE(name string, terms []Term, lo float64) int {
	return m.AddRange(name, lo, terms, math.Inf(1))
}

// AddEQ adds sum of terms = value.
func (m *Model) AddEQ(name string, terms []Term, value float64) int {
	return m.AddRange(name, value, terms, value)
}

// collect copies terms, adding up those of one variable, and drops the zeros.
// Variables stand in the order of their first terms.
func (m *Model) collect(row string, terms []Term) []Term {
	sum := make([]Term, 0, len(terms))
	for _, t := range terms {
		if !m.has(t.Var) {
			m.fail("constraint", row, "variable #%d is unknown: the model has %d variables", t.Var, len(m.vars))
			continue
		}
		if !finite(t.Coef) {
			m.fail("constraint", row, "the coefficient of %q is %g", m.vars[t.Var].Name, t.Coef)
			continue
		}
		if at := m.merge[t.Var]; at > 0 {
			sum[at-1].Coef += t.Coef
			continue
		}
		sum = append(sum, t)
		m.merge[t.Var] = len(sum)
	}
	kept := sum[:0]
	for _, t := range sum {
		m.merge[t.Var] = 0
		if !finite(t.Coef) {
			m.fail("constraint", row, "the coefficients of %q add up to %g", m.vars[t.Var].Name, t.Coef)
		} else if t.Coef != 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

// Objective is f(x). It panics unless x has one value per variable.
func (m *Model) Objective(x []float64) float64 {
	m.mustFit(x)
	f := 0.0
	for j := range m.vars {
		f += m.vars[j].Cost * x[j]
	}
	return f
}

// A Violation is the first condition of a model that a point breaks.
type Violation struct {
	Model  string
	Kind   string // "variable" or "constraint"
	Name   string
	Value  float64 // of the variable or of the constraint's sum
	Lo, Hi float64
	// Fractional is set when the bounds hold and the value should be whole.
	Fractional bool
}

func (e *Violation) Error() string {
	if e.Fractional {
		return fmt.Sprintf("milp: model %q: %s %q is %g, not an integer", e.Model, e.Kind, e.Name, e.Value)
	}
	return fmt.Sprintf("milp: model %q: %s %q is %g, outside [%g, %g]", e.Model, e.Kind, e.Name, e.Value, e.Lo, e.Hi)
}

// Check tries (2), (3) and (1) of the package's notation on x, one by one, and returns a *[Violation] for the first
// that x breaks by more than tol. The tolerance of a constraint grows with the size of its summands, since their
// rounding errors do: it is tol * max(1, max_j |a_ij x_j|). Check panics unless x has one value per variable.
func (m *Model) Check(x []float64, tol float64) error {
	m.mustFit(x)
	// Conditions are written so that a NaN fails them. An infinite value would
	// make the tolerance of its constraints infinite, and is no solution.
	for j, v := range m.vars {
		if !(x[j] >= v.Lo-tol && x[j] <= v.Hi+tol) || math.IsInf(x[j], 0) {
			return &Violation{Model: m.name, Kind: "variable", Name: v.Name, Value: x[j], Lo: v.Lo, Hi: v.Hi}
		}
		if v.Type.Integral() && !(math.Abs(x[j]-math.Round(x[j])) <= tol) {
			return &Violation{Model: m.name, Kind: "variable", Name: v.Name, Value: x[j], Lo: v.Lo, Hi: v.Hi, Fractional: true}
		}
	}
	for _, row := range m.rows {
		sum, size := 0.0, 1.0
		for _, t := range row.Terms {
			sum += t.Coef * x[t.Var]
			size = math.Max(size, math.Abs(t.Coef*x[t.Var]))
		}
		if !(sum >= row.Lo-tol*size && sum <= row.Hi+tol*size) {
			return &Violation{Model: m.name, Kind: "constraint", Name: row.Name, Value: sum, Lo: row.Lo, Hi: row.Hi}
		}
	}
	return nil
}

// Clash finds a constraint of integer variables alone that x breaks, without a tolerance, and returns those of its
// variables that together break it: each is at its upper bound where its coefficient counts against the limit, else
// at its lower one. It is nil if there is none, or none whose variables are at bounds.
func (m *Model) Clash(x []float64) []Var {
rows:
	for _, row := range m.rows {
		sum := 0.0
		for _, t := range row.Terms {
			if !m.vars[t.Var].Type.Integral() {
				continue rows
			}
			sum += t.Coef * x[t.Var]
		}
		over := 1.0
		switch {
		case sum > row.Hi:
		case sum < row.Lo:
			over = -1
		default:
			continue
		}
		var clash []Var
		for _, t := range row.Terms {
			worst, best := m.vars[t.Var].Hi, m.vars[t.Var].Lo
			if t.Coef*over < 0 {
				worst, best = best, worst
			}
			if x[t.Var] == worst {
				clash = append(clash, t.Var)
			} else if x[t.Var] != best {
				continue rows
			}
		}
		return clash
	}
	return nil
}

// Exclude adds the constraint that not all of some integer variables, each at a bound of its own in x, are there.
func (m *Model) Exclude(vars []Var, x []float64) {
	terms, least := make([]Term, len(vars)), 1.0
	for k, v := range vars {
		terms[k] = v.Times(1)
		if x[v] == m.vars[v].Hi {
			terms[k].Coef = -1
		}
		least += terms[k].Coef * x[v]
	}
	m.AddGE(fmt.Sprintf("not at once %d", len(m.rows)), terms, least)
}

// String is the model's size in words.
func (m *Model) String() string {
	var count [3]int
	for _, v := range m.vars {
		count[v.Type]++
	}
	nz := 0
	for _, r := range m.rows {
		nz += len(r.Terms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d variables (%d binary, %d integer, %d continuous), %d constraints, %d terms",
		m.name, len(m.vars), count[Binary], count[Integer], count[Continuous], len(m.rows), nz)
	return b.String()
}

func (m *Model) has(v Var) bool { return v >= 0 && int(v) < len(m.vars) }

func (m *Model) mustFit(x []float64) {
	if len(x) != len(m.vars) {
		panic(fmt.Sprintf("milp: %d values for a model of %d variables", len(x), len(m.vars)))
	}
}

// badRange says why [lo, hi] is no range, "" if it is one.
func badRange(lo, hi float64) string {
	switch {
	case math.IsNaN(lo) || math.IsNaN(hi):
		return fmt.Sprintf("the bounds are [%g, %g]", lo, hi)
	case lo > hi:
		return fmt.Sprintf("the lower bound %g is above the upper bound %g", lo, hi)
	case math.IsInf(lo, 1) || math.IsInf(hi, -1):
		return fmt.Sprintf("no number is within [%g, %g]", lo, hi)
	}
	return ""
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// GCD is the greatest common divisor of two numbers that are not negative: the coarsest unit
// that keeps the coefficients of a constraint integers. That of no numbers is 0.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
