package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model/schedule"
)

// A Setting declares a decision that is one value: one of some choices, or what Change makes of them. [Setting.Stage]
// makes the row. All of it but the name may be left out.
type Setting[T any] struct {
	Name, Description string
	Choices           []Choice[T] // the first by default
	// Apply lets a draft follow the value. A strategy of a later row may ask for the value with [Setting.Of] instead.
	Apply func(d *Draft, x T) error
	// Change draws another value for a search to try, beside the choices; false: there is none.
	Change func(r Rand, s *schedule.Schedule, x T) (T, bool)

	writes string                             // see Stage
	check  func(x T) error                    // of a value that a file has
	inPlan bool                               // the schedule file has it in other words
	text   func(b *strings.Builder, d *Draft) // see Stage
}

// A Choice is a named value of a setting, which becomes a strategy of its row.
type Choice[T any] struct {
	Name, Description string
	Value             T
}

// Rand is a source of random numbers.
type Rand interface {
	IntN(n int) int
	Float64() float64
	NormFloat64() float64
}

// plain is the decision of a setting.
type plain[T any] struct {
	of    *Setting[T]
	value T
}

func (x plain[T]) Stage() string { return x.of.Name }

func (x plain[T]) Apply(_ context.Context, d *Draft) error {
	d.values = maps.Clone(d.values) // may be shared
	if d.values == nil {
		d.values = map[string]Decision{}
	}
	d.values[x.of.Name] = x
	if x.of.Apply == nil {
		return nil
	}
	return x.of.Apply(d, x.value)
}

func (x plain[T]) Key(b *Key, _ *Decisions) {
	data, err := json.Marshal(x.value)
	if err != nil {
		data = fmt.Append(nil, x.value) // Stage has tried the choices
	}
	b.Text(string(data))
}

// MarshalJSON writes the value.
func (x plain[T]) MarshalJSON() ([]byte, error) { return json.Marshal(x.value) }

// Of returns the value that a draft follows, the first choice if none was made.
func (s *Setting[T]) Of(d *Draft) (x T) {
	if v, ok := d.values[s.Name].(plain[T]); ok {
		return v.value
	}
	if len(s.Choices) > 0 {
		x = s.Choices[0].Value
	}
	return x
}

// named is the value of a choice, the first's if there is none of that name.
func (s *Setting[T]) named(name string) T {
	i := max(0, slices.IndexFunc(s.Choices, func(c Choice[T]) bool { return c.Name == name }))
	return s.Choices[i].Value
}

// choice is the name of a choice.
func (s *Setting[T]) choice(x T) string {
	i := slices.IndexFunc(s.Choices, func(c Choice[T]) bool { return any(c.Value) == any(x) })
	return s.Choices[i].Name
}

// Stage returns the setting's row.
func (s *Setting[T]) Stage() Stage {
	st := Stage{Name: s.Name, Description: s.Description, Writes: s.writes, inPlan: s.inPlan, text: s.text}
	var all []func(*Decisions) *Decisions
	for _, c := range s.Choices {
		x := plain[T]{s, c.Value}
		st.Strategies = append(st.Strategies, Strategy{Name: c.Name, Description: c.Description,
			Decide: func(ctx context.Context, d *Draft) error { return x.Apply(ctx, d) }})
		all = append(all, func(p *Decisions) *Decisions { return p.unless(x) })
	}
	if len(all) == 0 {
		st.Strategies = []Strategy{{Name: "none", Decide: func(context.Context, *Draft) error { return nil }}}
	}
	if len(all) > 1 {
		st.settings = append(st.settings, all)
	}
	st.take = func(d *Draft, _ bool) Decision {
		if x, there := d.values[s.Name]; there {
			return x
		}
		for _, c := range s.Choices {
			if c.Name == d.Recipe.Pick(s.Name) {
				return plain[T]{s, c.Value}
			}
		}
		return plain[T]{s, s.Of(d)}
	}
	st.read = func(data []byte) (Decision, error) {
		x := plain[T]{of: s}
		if err := json.Unmarshal(data, &x.value); err != nil {
			such, _ := json.Marshal(s.Of(&Draft{}))
			return nil, fmt.Errorf("value is %s, expected one such as %s", data, such)
		}
		if s.check != nil {
			return x, s.check(x.value)
		}
		return x, nil
	}
	if s.Change != nil {
		st.moves = []Move{{s.Name, 1, func(a *Site) *Decisions {
			v, _ := a.value(s.Name).(plain[T])
			x, ok := s.Change(a.Rand, a.Schedule, v.value)
			if !ok {
				return nil
			}
			return a.with(plain[T]{s, x})
		}}}
	}
	return st
}
