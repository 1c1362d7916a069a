//go:build cgo

package highs

import (
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
)

// A scaling holds the factors of rows, columns and objective for HiGHS, all powers of two: its tolerances are
// absolute, and mean nothing beside numbers of 1e8 or 1e-9. Variable j is column[j] times HiGHS' own.
type scaling struct {
	row, column []float64
	objective   float64
}

const (
	// Programs are left as they are if their coefficients lie between tame and 1/tame, and those of each row within
	// a factor of 1/tame.
	tame = 0x1p-16
	// rounds of scaling rows and columns in turns.
	rounds      = 10
	feasibility = 1e-6 // HiGHS' mip_feasibility_tolerance
	// largeCost is the largest cost of a column that is left as it is; smallCost that of all columns.
	largeCost, smallCost = 0x1p20, 0x1p-4
)

// scaled finds the scaling of m. Rows get a largest coefficient of about 1, and continuous columns coefficients about
// 1; integers stay what they are.
func scaled(m *milp.Model) scaling {
	one := []float64{1}
	s := scaling{slices.Repeat(one, m.NumConstraints()), slices.Repeat(one, m.NumVars()), 1}
	wild := false
	for i := range s.row {
		low, high := 1/tame, tame
		for _, t := range m.Constraint(i).Terms {
			a := math.Abs(t.Coef)
			low, high = min(low, a), max(high, a)
		}
		wild = wild || low < tame*max(1, high) || high > 1/tame
	}
	for round := 0; wild && round < rounds; round++ {
		low, high := make([]float64, len(s.column)), make([]float64, len(s.column))
		for i := range s.row {
			terms, most, whole := m.Constraint(i).Terms, 0.0, 0.0
			for _, t := range terms {
				a := math.Abs(t.Coef) * s.column[t.Var]
				if most = max(most, a); m.Variable(t.Var).Type.Integral() {
					whole = max(whole, a)
				}
			}
			if whole > 0 && round < rounds-1 {
				most = whole // continuous columns follow
			}
			if most > 0 {
				s.row[i] = power(1 / most)
			}
			for _, t := range terms {
				a := math.Abs(t.Coef) * s.row[i] * s.column[t.Var]
				if high[t.Var] = max(high[t.Var], a); low[t.Var] == 0 || a < low[t.Var] {
					low[t.Var] = a
				}
			}
		}
		for j := range s.column {
			if high[j] > 0 && round < rounds-1 && !m.Variable(milp.Var(j)).Type.Integral() {
				s.column[j] *= power(1 / math.Sqrt(low[j]*high[j]))
			}
		}
	}
	most := 0.0
	for j, c := range s.column {
		most = max(most, math.Abs(m.Variable(milp.Var(j)).Cost)*c)
	}
	switch {
	case most > largeCost:
		s.objective = power(largeCost / most)
	case most > 0 && most < smallCost:
		s.objective = power(1 / most)
	}
	return s
}

// power is the power of two next to x.
func power(x float64) float64 { return math.Ldexp(1, int(math.Round(math.Log2(x)))) }

// terms gives the scaled terms of row i, with its range. A term too small for HiGHS goes where it leaves
// the row the most room, so that no solution is lost; it stays if its variable has no bounds. In a row of
// integers, a term below the tolerance is too small: HiGHS has been seen to cut off solutions that need it.
func (s *scaling) terms(m *milp.Model, i int) milp.Constraint {
	row := m.Constraint(i)
	row.Lo, row.Hi = row.Lo*s.row[i], row.Hi*s.row[i]
	terms := make([]milp.Term, 0, len(row.Terms))
	small := smallCoef
	if !slices.ContainsFunc(row.Terms, func(t milp.Term) bool { return !m.Variable(t.Var).Type.Integral() }) {
		small = feasibility
	}
	for _, t := range row.Terms {
		v := m.Variable(t.Var)
		a := t.Coef * s.row[i]
		if t.Coef = a * s.column[t.Var]; math.Abs(t.Coef) > small || math.IsInf(v.Lo, 0) || math.IsInf(v.Hi, 0) {
			terms = append(terms, t)
			continue
		}
		row.Lo, row.Hi = row.Lo-max(a*v.Lo, a*v.Hi), row.Hi-min(a*v.Lo, a*v.Hi)
	}
	row.Terms = terms
	return row
}

// back makes values and a bound of HiGHS those of the model.
func (s *scaling) back(values []float64, bound float64) float64 {
	for j := range values {
		values[j] *= s.column[j]
	}
	if math.Abs(bound) >= hugeBound {
		return bound // none
	}
	return bound / s.objective
}
