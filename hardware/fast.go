package hardware

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ends has, by the key of a figure in the file, by what factor the figure may be another at its fast end: at most 1 for
// what takes longer the larger it is and for the shape of an array, at least 1 for all else. Figures without are known.
type ends map[string]float64

// Larger figures of these keys are slower. The first three are cycles of a unit.
var slowing = []string{"fill", "block", "least", "simple", "special", "move", "latency", "launch", "sync", "gap",
	"matrix_start"}

var (
	endsOf = regexp.MustCompile(`\brange ([0-9]+(?:\.[0-9]+)?)([A-Za-z/]*) to ([0-9]+(?:\.[0-9]+)?)([A-Za-z/]*)`)
	fitted = regexp.MustCompile(`^# fitted\b`)
)

// ends reads the comments behind the values of a mapping. "range A to B" gives the ends, but of figures that are fitted
// to measurements. What takes time and is marked ESTIMATE without a range may take none.
func (f *fields) ends(prefix string, into ends) ends {
	for key, n := range f.value {
		if n.Kind != yaml.ScalarNode || n.LineComment == "" || fitted.MatchString(n.LineComment) {
			continue
		}
		_, unit, _ := splitQuantity(n.Value)
		value, ok := Number(n.Value)
		slows, estimate := slices.Contains(slowing, key), strings.Contains(n.LineComment, "ESTIMATE")
		m := endsOf.FindStringSubmatch(n.LineComment)
		factor := 1.0
		switch {
		case key == "broadcast" && estimate:
			factor = 2
		case !ok || value == 0:
		case m != nil: // an end without a unit has the value's
			low, _ := Number(m[1] + cmp.Or(m[2], unit))
			high, _ := Number(m[3] + cmp.Or(m[4], unit))
			if factor = max(1, high/value); slows || key == "rows" || key == "cols" {
				factor = min(1, low/value)
			}
		case estimate && slows && prefix != "cycles_per_op.":
			factor = 0
		}
		if c := f.d.clockEnd; c > 1 && strings.Contains(unit, "cycle") && !slices.Contains(slowing[:3], key) {
			if factor *= c; slows { // in cycles of a clock that may be faster
				factor /= c * c
			}
		}
		if factor != 1 {
			into[prefix+key] = factor
		}
	}
	return into
}

// at gives a figure at its fast end.
func (e ends) at(key string, value float64) float64 {
	if factor, ok := e[key]; ok {
		return value * factor
	}
	return value
}

// whole is at of a whole number: it is rounded to the fast side.
func (e ends) whole(key string, value int) int {
	v := e.at(key, float64(value))
	if v < float64(value) {
		return int(math.Floor(v + 1e-9))
	}
	return int(math.Ceil(v - 1e-9))
}

// Fast is the machine with each figure that is an estimate at the fast end of its range, which bounds are of; see
// docs/machine-file.md. An array whose shape is an estimate is as small as it may be and does as much in a cycle.
func (s *Spec) Fast() *Spec {
	c := s.Clone()
	for key, v := range map[string]*float64{"clock": &c.ClockHz, "launch": &c.LaunchSeconds, "sync": &c.SyncSeconds,
		"gap": &c.GapSeconds, "matrix_start": &c.MatrixStartSeconds} {
		*v = s.fast.at(key, *v)
	}
	for key, m := range map[string]*Memory{"lb.": c.L1, "gb.": c.LLB, "ddr.": c.DDR} {
		if m != nil {
			m.SizeBytes = Bytes(s.fast.whole(key+"size", int(m.SizeBytes)))
			m.BandwidthBytesPerSecond = s.fast.at(key+"bandwidth", m.BandwidthBytesPerSecond)
			m.LatencySeconds = s.fast.at(key+"latency", m.LatencySeconds)
		}
	}
	c.L1WeightBytes = Bytes(s.fast.whole("lb.weights", int(c.L1WeightBytes)))
	c.DDRActivationEfficiency = min(1, s.fast.at("ddr.activation_efficiency", c.DDRActivationEfficiency))
	for key, l := range map[string]*Link{"core_link.": &c.CoreLink, "ddr_link.": &c.DDRLink} {
		l.BandwidthBytesPerSecond = s.fast.at(key+"bandwidth", l.BandwidthBytesPerSecond)
		l.LatencySeconds = s.fast.at(key+"latency", l.LatencySeconds)
		l.Broadcast = l.Broadcast || s.fast[key+"broadcast"] > 0
	}
	for i := range c.CoreTypes {
		for j := range c.CoreTypes[i].Units {
			c.CoreTypes[i].Units[j].speedUp()
		}
	}
	c.fast = nil
	return c
}

func (u *Unit) speedUp() {
	e := u.fast
	u.ClockHz, u.BlockCycles = e.at("clock", u.ClockHz), e.at("block", u.BlockCycles)
	u.FillCycles = Cycles(e.whole("fill", int(u.FillCycles)))
	u.LeastCycles = Cycles(e.whole("least", int(u.LeastCycles)))
	u.Lanes = e.whole("lanes", u.Lanes)
	cells := u.Rows * u.Cols
	u.Rows, u.Cols = max(min(u.Rows, 1), e.whole("rows", u.Rows)), max(min(u.Cols, 1), e.whole("cols", u.Cols))
	more := 1.0
	if cells > u.Rows*u.Cols { // so many more blocks
		more = float64(cells) / float64(u.Rows*u.Cols)
		u.BlockCycles, u.LeastCycles = u.BlockCycles/more, Cycles(float64(u.LeastCycles)/more)
	}
	for k, r := range u.Rate {
		u.Rate[k] = e.at("rate."+k, r) * more
	}
	for k, n := range u.CyclesPerOp {
		u.CyclesPerOp[k] = e.at("cycles_per_op."+k, n)
	}
	u.fast = nil
}

// Estimates lists what of the machine's description Fast changes, as it is there: "launch 500ns".
func (s *Spec) Estimates() []string {
	lines := func(s *Spec) []string {
		return strings.Split(strings.ReplaceAll(s.Describe(), "\n"+strings.Repeat(" ", 14), " "), "\n")
	}
	list, given := []string{}, lines(s)
	for _, line := range lines(s.Fast()) {
		if !slices.Contains(given, line) && !strings.HasPrefix(line, "peak") {
			list = append(list, strings.Join(strings.Fields(line), " "))
		}
	}
	return list
}
