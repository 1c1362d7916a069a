package milp

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestGap(t *testing.T) {
	tests := []struct{ objective, bound, want float64 }{
		{10, 10, 0},
		{10, 9, 0.1},
		{-10, -12, 0.2},
		{8, 10, 0.25}, // a maximisation
		{0, 0, 0},
		{0, -1, inf},
		{inf, 3, inf},
		{5, -inf, inf},
		{inf, inf, 0}, // infeasible: the proof is complete
	}
	for _, test := range tests {
		s := &Solution{Objective: test.objective, Bound: test.bound}
		if got := s.Gap(); math.Abs(got-test.want) > 1e-12 && got != test.want {
			t.Errorf("objective %g, bound %g: gap %g, want %g", test.objective, test.bound, got, test.want)
		}
	}
}

func TestSolutionValues(t *testing.T) {
	s := &Solution{Status: Feasible, Values: []float64{0.25, 2.9999999}}
	if s.Value(0) != 0.25 || s.Int(1) != 3 {
		t.Errorf("values %g, %d", s.Value(0), s.Int(1))
	}
}

func TestOptions(t *testing.T) {
	m := New("test")
	x := m.Integer("x", 0, 5, 1)
	m.AddGE("floor", Sum(x), 2)
	tests := []struct {
		name string
		opts Options
		want string // "" is no error
	}{
		{"zero", Options{}, ""},
		{"all", Options{TimeLimit: time.Second, RelativeGap: 0.1, Seed: 3, Start: []float64{2}}, ""},
		{"start within the tolerance", Options{Start: []float64{2 - 1e-7}}, ""},
		{"negative time", Options{TimeLimit: -time.Second}, "time limit -1s"},
		{"negative gap", Options{RelativeGap: -0.1}, "relative gap -0.1"},
		{"NaN gap", Options{RelativeGap: nan}, "relative gap NaN"},
		{"negative work", Options{WorkLimit: -1}, "limit of -1 nodes"},
		{"negative memory", Options{MemoryBytes: -1}, "memory limit of -1 bytes"},
		{"negative seed", Options{Seed: -1}, "seed -1"},
		{"start too short", Options{Start: []float64{}}, "0 values for 1 variables"},
		{"start that is no solution", Options{Start: []float64{1}}, `constraint "floor" is 1`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.opts.Validate(m)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	var broken *Violation
	if err := (&Options{Start: []float64{1}}).Validate(m); !errors.As(err, &broken) {
		t.Errorf("%v is no Violation", err)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for s := Unknown; s <= Limit; s++ {
		seen[s.String()] = true
	}
	for s := Complete; s <= StopMemory; s++ {
		seen[s.String()] = true
	}
	for _, typ := range []Type{Continuous, Integer, Binary} {
		seen[typ.String()] = true
	}
	if want := 7 + 4 + 3; len(seen) != want {
		t.Errorf("%d different names, want %d: %v", len(seen), want, seen)
	}
	if got := Status(99).String() + Type(99).String() + Stop(99).String(); got != "Status(99)Type(99)Stop(99)" {
		t.Errorf("got %q", got)
	}
}

// Statuses and reasons are words in JSON, and come back.
func TestWords(t *testing.T) {
	for s := Unknown; s <= Limit; s++ {
		var back Status
		if data, err := json.Marshal(s); err != nil || json.Unmarshal(data, &back) != nil || back != s ||
			!strings.Contains(string(data), s.String()) {
			t.Errorf("%v is %s, read as %v", s, data, back)
		}
	}
	for s := Complete; s <= StopWork; s++ {
		var back Stop
		if data, err := json.Marshal(s); err != nil || json.Unmarshal(data, &back) != nil || back != s ||
			!strings.Contains(string(data), s.String()) {
			t.Errorf("%v is %s, read as %v", s, data, back)
		}
	}
	var status Status
	var stop Stop
	if status.UnmarshalText([]byte("best")) == nil || stop.UnmarshalText([]byte("bored")) == nil {
		t.Error("unknown words are read")
	}
}
