package milp

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

func TestInputErrors(t *testing.T) {
	tests := []struct {
		name  string
		build func(m *Model)
		want  string // "" is no error
	}{
		{"nothing", func(m *Model) {}, ""},
		{"all in order", func(m *Model) {
			x := m.Continuous("x", -inf, inf, -1)
			y := m.Integer("y", 2, 2, 0)
			m.AddRange("both", -inf, []Term{x.Times(1), y.Times(0)}, inf)
			m.AddEQ("none", nil, 0)
			m.SetBounds(x, 0, 4)
			m.Fix(m.Binary("b", 0), 1)
		}, ""},
		{"variable and constraint of one name", func(m *Model) { m.AddLE("a", Sum(m.Binary("a", 1)), 1) }, ""},

		{"unnamed variable", func(m *Model) { m.Binary("x", 0); m.Binary("", 0) }, `variable "#1": it has no name`},
		{"duplicate variable", func(m *Model) { m.Binary("x", 0); m.Integer("x", 0, 1, 0) },
			`variable "x": variable #0 has the same name`},
		{"variable, lo > hi", func(m *Model) { m.Continuous("x", 2, 1, 0) },
			`variable "x": the lower bound 2 is above the upper bound 1`},
		{"variable, NaN bound", func(m *Model) { m.Continuous("x", nan, 1, 0) }, `variable "x": the bounds are [NaN, 1]`},
		{"variable, empty range", func(m *Model) { m.Continuous("x", inf, inf, 0) },
			`variable "x": no number is within [+Inf, +Inf]`},
		{"variable, empty range below", func(m *Model) { m.Continuous("x", -inf, -inf, 0) }, `no number is within`},
		{"NaN cost", func(m *Model) { m.Binary("x", nan) }, `variable "x": its cost is NaN`},
		{"infinite cost", func(m *Model) { m.Binary("x", -inf) }, `variable "x": its cost is -Inf`},
		{"bounds of an unknown variable", func(m *Model) { m.SetBounds(-1, 0, 1) }, `variable "#-1"`},
		{"bounds set, lo > hi", func(m *Model) { m.SetBounds(m.Integer("x", 0, 9, 0), 5, 4) },
			`variable "x": the lower bound 5`},
		{"binary fixed at 2", func(m *Model) { m.Fix(m.Binary("x", 0), 2) },
			`variable "x": it is binary, but its bounds are set to [2, 2]`},

		{"unnamed constraint", func(m *Model) { m.AddLE("", nil, 1) }, `constraint "#0": it has no name`},
		{"duplicate constraint", func(m *Model) { m.AddLE("c", nil, 1); m.AddGE("c", nil, 0) },
			`constraint "c": constraint #0 has the same name`},
		{"constraint, lo > hi", func(m *Model) { m.AddRange("c", 1, nil, 0) },
			`constraint "c": the lower bound 1 is above the upper bound 0`},
		{"constraint, NaN side", func(m *Model) { m.AddLE("c", nil, nan) }, `constraint "c": the bounds are [-Inf, NaN]`},
		{"constraint, >= Inf", func(m *Model) { m.AddGE("c", nil, inf) }, `constraint "c": no number is within [+Inf, +Inf]`},
		{"NaN coefficient", func(m *Model) { m.AddLE("c", []Term{m.Binary("x", 0).Times(nan)}, 1) },
			`constraint "c": the coefficient of "x" is NaN`},
		{"infinite coefficient", func(m *Model) { m.AddLE("c", []Term{m.Binary("x", 0).Times(inf)}, 1) },
			`constraint "c": the coefficient of "x" is +Inf`},
		{"coefficients that add up to infinity", func(m *Model) {
			x := m.Binary("x", 0)
			m.AddLE("c", []Term{x.Times(1e308), x.Times(1e308)}, 1)
		}, `constraint "c": the coefficients of "x" add up to +Inf`},
		{"unknown variable", func(m *Model) { m.Binary("x", 0); m.AddLE("c", Sum(0, 1), 1) },
			`constraint "c": variable #1 is unknown: the model has 1 variables`},
		{"negative variable", func(m *Model) { m.AddLE("c", Sum(-1), 1) }, `constraint "c": variable #-1 is unknown`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := New("test")
			test.build(m)
			err := m.Err()
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			var in *InputError
			if !errors.As(err, &in) || in.Model != "test" {
				t.Errorf("the error is not an InputError of model test: %#v", err)
			}
		})
	}
}

func TestErrTellsTheFirstMistake(t *testing.T) {
	m := New("test")
	for i := range 5 {
		m.Binary(fmt.Sprintf("x%d", i), nan)
		if err := m.Err(); err == nil || !strings.Contains(err.Error(), `"x0"`) {
			t.Fatalf("error %v, want that of x0", err)
		}
	}
	if m.NumVars() != 5 {
		t.Errorf("%d variables, want all 5, so that numbers stay as the caller sees them", m.NumVars())
	}
}

func TestTermsAreMerged(t *testing.T) {
	m := New("test")
	x, y, z := m.Binary("x", 0), m.Binary("y", 0), m.Binary("z", 0)
	terms := []Term{y.Times(2), x.Times(1), y.Times(3), z.Times(4), x.Times(-1)}
	before := append([]Term(nil), terms...)
	i := m.AddLE("c", terms, 1)
	if want := []Term{{y, 5}, {z, 4}}; !reflect.DeepEqual(m.Constraint(i).Terms, want) {
		t.Errorf("terms %v, want %v", m.Constraint(i).Terms, want)
	}
	if !reflect.DeepEqual(terms, before) {
		t.Errorf("the caller's terms have changed: %v", terms)
	}
	// What merging keeps in mind must not reach the next constraint.
	j := m.AddLE("d", []Term{x.Times(7), y.Times(8)}, 1)
	if want := []Term{{x, 7}, {y, 8}}; !reflect.DeepEqual(m.Constraint(j).Terms, want) {
		t.Errorf("terms %v, want %v", m.Constraint(j).Terms, want)
	}
	if err := m.Err(); err != nil {
		t.Error(err)
	}
}

func TestConstraintKinds(t *testing.T) {
	m := New("test")
	x := Sum(m.Continuous("x", -inf, inf, 0))
	for i, want := range []Constraint{
		{"le", -inf, 3, x}, {"ge", 3, inf, x}, {"eq", 3, 3, x}, {"range", 2, 3, x},
	} {
		switch want.Name {
		case "le":
			m.AddLE("le", x, 3)
		case "ge":
			m.AddGE("ge", x, 3)
		case "eq":
			m.AddEQ("eq", x, 3)
		case "range":
			m.AddRange("range", 2, x, 3)
		}
		if got := m.Constraint(i); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestObjective(t *testing.T) {
	m := New("test")
	m.Continuous("x", 0, 1, 2.5)
	m.Binary("y", -3)
	if got := m.Objective([]float64{2, 1}); got != 2 {
		t.Errorf("got %g, want 2.5*2 - 3*1 = 2", got)
	}
}

func TestCheck(t *testing.T) {
	m := New("test")
	x := m.Continuous("x", 0, 10, 0)
	y := m.Integer("y", -2, 2, 0)
	big := m.Continuous("big", 0, inf, 0)
	m.AddRange("sum", 1, Sum(x, y), 6)
	m.AddLE("scaled", []Term{big.Times(1), big.Times(0)}, 1e9)
	m.AddGE("product", []Term{x.Times(-1), big.Times(1e-3)}, -8)

	tests := []struct {
		name string
		at   []float64
		want string // name of what is broken, "" for nothing
	}{
		{"inside", []float64{3, 1, 0}, ""},
		{"on the upper side", []float64{4, 2, 0}, ""},
		{"on the lower side", []float64{3, -2, 0}, ""},
		{"off by less than tol", []float64{4 + 5e-7, 2, 0}, ""},
		{"off by more than tol", []float64{4 + 1e-4, 2, 0}, "sum"},
		{"below the lower side", []float64{0, 0, 0}, "sum"},
		{"variable too high", []float64{10.1, 0, 0}, "x"},
		{"variable too low", []float64{-0.1, 2, 0}, "x"},
		{"fraction", []float64{3, 0.5, 0}, "y"},
		{"almost whole", []float64{3, 1 - 1e-7, 0}, ""},
		{"NaN", []float64{nan, 0, 0}, "x"},
		{"NaN integer", []float64{3, nan, 0}, "y"},
		{"infinite value", []float64{3, 0, inf}, "big"},
		{"relative tolerance", []float64{3, 0, 1e9 + 100}, ""},
		{"beyond the relative tolerance", []float64{3, 0, 1e9 + 2000}, "scaled"},
		{"later constraint", []float64{8.1, -2, 0}, "sum"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := m.Check(test.at, 1e-6)
			var broken *Violation
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!errors.As(err, &broken) || broken.Name != test.want):
				t.Errorf("got %v, want a violation of %q", err, test.want)
			}
		})
	}

	err := m.Check([]float64{0, 0, 0}, 0)
	if want := `milp: model "test": constraint "sum" is 0, outside [1, 6]`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = m.Check([]float64{3, 0.5, 0}, 0)
	if want := `milp: model "test": variable "y" is 0.5, not an integer`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLookup(t *testing.T) {
	m := New("test")
	m.Continuous("x", 0, 1, 0)
	if m.HasIntegers() {
		t.Error("a linear program has no integers")
	}
	y := m.Integer("y", 0, 3, 5)
	if !m.HasIntegers() {
		t.Error("y is an integer")
	}
	m.SetBounds(y, 1, 2)
	if got, want := m.Variable(y), (Variable{"y", Integer, 1, 2, 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	m.AddLE("c", Sum(y), 1)
	if got, want := m.String(),
		"test: 2 variables (0 binary, 1 integer, 1 continuous), 1 constraints, 1 terms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPanics(t *testing.T) {
	m := New("test")
	m.Binary("x", 0)
	for name, call := range map[string]func(){
		"objective of too few values": func() { m.Objective(nil) },
		"check of too many values":    func() { _ = m.Check([]float64{0, 0}, 0) },
		"value of no solution":        func() { (&Solution{Status: Limit}).Value(0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if msg, _ := recover().(string); !strings.HasPrefix(msg, "milp: ") {
					t.Errorf("panic %q, want one prefixed with the package", msg)
				}
			}()
			call()
		})
	}
}
