package hardware

import (
	"fmt"
	"math"
	"strings"
)

// Energy has the energies of an accelerator's work, in joules.
type Energy struct {
	// MAC and Vector are of one multiply-accumulate and of one operation on a lane, with
	// what they read and write of the core's own buffer, by dtype.
	MAC    map[string]float64 `json:"mac_joules"`
	Vector map[string]float64 `json:"vector_joules"`
	// L1, LLB and DDR are of a byte that a move reads or writes there; 0 where there is no such memory.
	L1  float64 `json:"lb_joules_per_byte"`
	LLB float64 `json:"gb_joules_per_byte"`
	DDR float64 `json:"ddr_joules_per_byte"`
	// StaticWatts is the power of the idle chip.
	StaticWatts float64 `json:"static_watts"`
}

const (
	expectEnergy = "an energy above zero such as 0.9pJ"
	expectPower  = "a power of zero or more such as 50W"

	minEnergy = 1e-18 // of an operation, or a byte
	maxEnergy = 1e-6
	maxPower  = 1e5
)

var (
	energyUnits = map[string]scale{"J": {1, 1}, "nJ": {1, 1e9}, "pJ": {1, 1e12}, "fJ": {1, 1e15}}
	powerUnits  = map[string]scale{"kW": {1e3, 1}, "W": {1, 1}, "mW": {1, 1e3}}
)

var energyFields = []string{"mac", "vector", "lb", "gb", "ddr", "static"}

// energy reads what an accelerator takes; lb and gb say whether there are such memories.
func (d *decoder) energy(f *fields, lb, gb bool) *Energy {
	if !f.has("energy") {
		return nil
	}
	m := f.child("energy", "a mapping with "+list(energyFields), "field", energyFields)
	if m == nil {
		return nil
	}
	read := func(f *fields, key string) float64 {
		return f.scaled(key, expectEnergy,
			func(t string, _ float64) (float64, bool) { return parseScaled(t, energyUnits, nil) })
	}
	byType := func(key string) map[string]float64 {
		t := m.child(key, "a mapping with an energy for any dtype of "+list(dtypes), "dtype", dtypes)
		if t == nil {
			return nil
		}
		v := map[string]float64{}
		for _, k := range dtypes {
			if t.has(k) {
				v[k] = read(t, k)
			}
		}
		if len(v) == 0 && len(m.value[key].Content) > 0 {
			d.check.markBad(m.at(key)) // its keys have been reported
		}
		return v
	}
	e := &Energy{MAC: byType("mac"), Vector: byType("vector"), DDR: read(m, "ddr")}
	if lb || m.has("lb") {
		e.L1 = read(m, "lb")
	}
	if gb || m.has("gb") {
		e.LLB = read(m, "gb")
	}
	e.StaticWatts = m.scaled("static", expectPower,
		func(t string, _ float64) (float64, bool) { return parseScaled(t, powerUnits, nil) })
	return e
}

// energy checks what an accelerator takes.
func (c *checker) energy(s *Spec) {
	e := s.Energy
	if e == nil {
		return
	}
	for _, t := range []struct {
		key string
		m   map[string]float64
	}{{"energy.mac", e.MAC}, {"energy.vector", e.Vector}} {
		c.figures(t.key, t.m, dtypes, "dtype", minEnergy, maxEnergy, expectEnergy, formatEnergy)
	}
	for _, l := range []struct {
		key    string
		v      float64
		memory *Memory
	}{{"lb", e.L1, s.L1}, {"gb", e.LLB, s.LLB}, {"ddr", e.DDR, s.DDR}} {
		switch {
		case l.memory != nil:
			c.inRange("energy."+l.key, l.v, minEnergy, maxEnergy, expectEnergy, formatEnergy)
		case l.v != 0 && !c.isBad(l.key):
			c.fail("energy."+l.key, formatEnergy(l.v), fmt.Sprintf("none, as %s is none", l.key))
		}
	}
	if w := e.StaticWatts; !(w >= 0) || w > maxPower {
		c.fail("energy.static", fmt.Sprintf("%gW", w), expectPower+fmt.Sprintf(", at most %gW", maxPower))
	}
}

func formatEnergy(v float64) string {
	if math.Abs(v) >= 1e-9 {
		return fmt.Sprintf("%.6gnJ", v*1e9)
	}
	return fmt.Sprintf("%.6gpJ", v*1e12)
}

func (e *Energy) describe() string {
	var parts []string
	add := func(name string, m map[string]float64) {
		for _, d := range dtypes {
			if v, ok := m[d]; ok {
				parts = append(parts, fmt.Sprintf("%s %s %s", name, d, formatEnergy(v)))
			}
		}
	}
	add("MAC", e.MAC)
	add("vector", e.Vector)
	for _, l := range []struct {
		name string
		v    float64
	}{{"L1", e.L1}, {"LLB", e.LLB}, {"DDR", e.DDR}} {
		if l.v > 0 {
			parts = append(parts, fmt.Sprintf("%s byte %s", l.name, formatEnergy(l.v)))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("static %gW", e.StaticWatts)), ", ")
}
