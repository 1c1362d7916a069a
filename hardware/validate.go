package hardware

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// The limits are far beyond any machine. They keep sums of bytes within int64
// and catch a wrong unit, such as a bandwidth of 108B/s.
const (
	maxSize      Bytes   = 1 << 50 // also for a level over the whole chip
	maxClusters          = 1 << 10
	maxCores             = 1 << 20 // of the chip
	maxWidth             = 1 << 16 // rows, columns, lanes
	maxFill      Cycles  = 1e9
	maxResults           = 1 << 30 // that a matrix unit holds
	minClock     float64 = 1e6
	maxClock     float64 = 1e11
	minBandwidth float64 = 1e6
	maxBandwidth float64 = 2e15 // below what package sim counts
	maxSeconds   float64 = 1
	minRate      float64 = 1e-3
	maxRate      float64 = 1e6
	minPerOp     float64 = 1e-3
	maxPerOp     float64 = 1e6
)

// Error is one mistake in a description.
type Error struct {
	File    string // "" for a Spec that was built in code
	Line    int    // 0 if unknown
	Field   string // such as "lb.size"; "" for the whole description
	Problem string // what was found and what was expected
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	return b.String() + e.Problem
}

// Validate checks a Spec that was built or changed in code by the rules that Parse applies. All mistakes are reported,
// as *Error values in one joined error.
func (s *Spec) Validate() error {
	var errs []error
	c := checker{report: func(path, found, expected string) {
		errs = append(errs, &Error{Field: path, Problem: problem(found, expected)})
	}}
	c.spec(s)
	return errors.Join(errs...)
}

func problem(found, expected string) string {
	return fmt.Sprintf("found %s, expected %s", found, expected)
}

// A checker walks over a Spec and reports what breaks a rule. It marks the path of each report, and the parser marks
// those that it could not read, so that one mistake does not cause further reports.
type checker struct {
	report func(path, found, expected string)
	bad    map[string]bool
}

func (c *checker) fail(path, found, expected string) {
	if c.isBad(path) {
		return
	}
	c.markBad(path)
	c.report(path, found, expected)
}

func (c *checker) markBad(path string) {
	if c.bad == nil {
		c.bad = make(map[string]bool)
	}
	c.bad[path] = true
}

// isBad reports whether the path or one that contains it was reported.
func (c *checker) isBad(path string) bool {
	for p := path; p != ""; {
		if c.bad[p] {
			return true
		}
		i := strings.LastIndexAny(p, ".[")
		if i < 0 {
			break
		}
		p = p[:i]
	}
	return c.bad[""]
}

func (c *checker) spec(s *Spec) {
	c.name("name", s.Name)
	if strings.ContainsFunc(s.Description, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		c.fail("description", quote(s.Description), "one line of text")
	}
	c.inRange("clock", s.ClockHz, minClock, maxClock, expectClock, func(v float64) string { return formatSI(v, "Hz") })
	if s.LoadClockHz != 0 {
		c.inRange("clock_under_load", s.LoadClockHz, minClock, math.Max(minClock, s.ClockHz), "no more than clock",
			func(v float64) string { return formatSI(v, "Hz") })
	}
	c.count("clusters", s.Clusters, maxClusters)

	if len(s.CoreTypes) == 0 {
		c.fail("core_types", "no core", "at least one core type")
	}
	cores, withL1, noneHasL1 := 0, 0, true
	kinds, known := map[UnitKind]bool{}, true
	names := map[string]bool{}
	for i, t := range s.CoreTypes {
		path := fmt.Sprintf("core_types[%d]", i)
		c.coreType(path, t, names)
		if t.Count > 0 && t.Count <= maxCores {
			cores = min(cores+t.Count, maxCores+1)
			if t.HasL1 {
				withL1 = min(withL1+t.Count, maxCores+1)
			}
		}
		for j, u := range t.Units {
			kinds[u.Kind] = true
			known = known && !c.isBad(fmt.Sprintf("%s.units[%d].kind", path, j))
		}
		known = known && !c.isBad(path+".units")
		if t.HasL1 || c.isBad(path) {
			noneHasL1 = false
			if s.L1 == nil && !c.isBad("lb") {
				c.fail(path+".has_lb", "true", "false, as lb is none")
			}
		}
	}
	if known && !kinds[Matrix] && !kinds[Vector] {
		c.fail("core_types", "no matrix unit and no vector unit", "at least one of them")
	}
	if c.runs(s); !s.Mixed() {
		c.alike(s.CoreTypes)
		c.classes(s.CoreTypes, 0)
	} else {
		for i := range s.CoreTypes {
			c.classes(s.CoreTypes[i:i+1], i)
		}
	}
	if n := int64(cores) * int64(max(1, min(s.Clusters, maxClusters))); n > maxCores {
		c.fail("core_types", fmt.Sprintf("%d cores or more on the chip", n), fmt.Sprintf("at most %d", maxCores))
	}

	if s.L1 == nil && s.LLB == nil && !c.isBad("lb") && !c.isBad("gb") {
		c.fail("gb", "none", "a memory on the chip, as lb is none too")
	}
	switch {
	case s.L1 != nil:
		c.memory("lb", s.L1)
		if noneHasL1 && len(s.CoreTypes) > 0 {
			c.fail("lb", "a buffer that no core has, as has_lb is false in every core type", "none")
		}
		c.total("lb.size", s.L1.SizeBytes, withL1, s.Clusters)
	case s.L1WeightBytes != 0:
		c.fail("lb.weights", s.L1WeightBytes.String(), "no weight buffer, as lb is none")
	}
	if s.L1WeightBytes < 0 || s.L1WeightBytes > maxSize {
		c.size("lb.weights", s.L1WeightBytes)
	}
	c.total("lb.weights", s.L1WeightBytes, withL1, s.Clusters)
	if s.LLB != nil {
		c.memory("gb", s.LLB)
		c.total("gb.size", s.LLB.SizeBytes, 1, s.Clusters)
	}
	if s.DDR == nil {
		c.fail("ddr", "none", "the off-chip memory: size, bandwidth, latency")
	} else {
		c.memory("ddr", s.DDR)
	}
	if e := s.DDRActivationEfficiency; !(e >= 0 && e <= 1) {
		c.fail("ddr.activation_efficiency", fmt.Sprint(e), expectEfficiency)
	}

	c.bandwidth("core_link.bandwidth", s.CoreLink.BandwidthBytesPerSecond)
	c.time("core_link.latency", s.CoreLink.LatencySeconds)
	c.network(s)
	if s.DDRLink.BandwidthBytesPerSecond != 0 {
		c.bandwidth("ddr_link.bandwidth", s.DDRLink.BandwidthBytesPerSecond)
	}
	c.time("ddr_link.latency", s.DDRLink.LatencySeconds)
	if s.DDRLink.Broadcast {
		c.fail("ddr_link.broadcast", "true", "false: only the core link can broadcast")
	}
	for _, l := range []struct {
		name  string
		loads int
	}{{"core_link", s.CoreLink.InFlight}, {"ddr_link", s.DDRLink.InFlight}} {
		if l.loads < 0 || l.loads > MostInFlight {
			c.fail(l.name+".in_flight", fmt.Sprint(l.loads), expectCount(MostInFlight))
		}
	}
	c.time("launch", s.LaunchSeconds)
	c.time("sync", s.SyncSeconds)
	c.time("gap", s.GapSeconds)
	c.time("matrix_start", s.MatrixStartSeconds)
	c.time("host", s.HostSeconds)
	c.energy(s)
}

const (
	allToAll      = "all-to-all"
	expectNetwork = "all-to-all, bus, ring, mesh or torus"
)

// network refuses links between cores over which there are no ways.
func (c *checker) network(s *Spec) {
	const path = "core_link.network"
	n := s.Network
	if n == nil || len(s.CoreTypes) == 0 || c.isBad(path) {
		return
	}
	t := s.CoreTypes[0]
	switch {
	case !slices.Contains([]string{Bus, Ring, Mesh, Torus}, n.Kind):
		c.fail(path+".kind", quote(n.Kind), expectNetwork+", the first without memory")
	case len(s.CoreTypes) > 1 || !t.HasL1 || len(t.Runs) > 0:
		c.fail(path, n.Kind, "none, as there is not a single type of core, with an L1 and without runs")
	case t.Count > maxNetworked:
		c.fail(path, fmt.Sprintf("%s of %d cores", n.Kind, t.Count), fmt.Sprintf("at most %d", maxNetworked))
	case (n.Kind == Mesh || n.Kind == Torus) && len(t.Grid) < 2:
		c.fail("core_types[0].grid", quote(formatGrid(t.Grid)), "two extents or more, as core_link.network is a "+n.Kind)
	}
	for i, at := range n.Memory {
		if at < 0 || at >= t.Count || slices.Contains(n.Memory[:i], at) {
			c.fail(path+".memory", fmt.Sprint(at), fmt.Sprintf("different cores from 0 to %d", t.Count-1))
			break
		}
	}
}

// runs refuses kinds of core that lack what a layer needs.
func (c *checker) runs(s *Spec) {
	if !slices.ContainsFunc(s.CoreTypes, func(t CoreType) bool { return len(t.Runs) > 0 }) {
		return
	}
	if n := len(s.CoreTypes); n > maxKinds {
		c.fail("core_types", fmt.Sprintf("%d types that have runs", n), fmt.Sprintf("at most %d", maxKinds))
		return
	}
	for i, t := range s.CoreTypes {
		path := fmt.Sprintf("core_types[%d]", i)
		if len(t.Runs) == 0 {
			c.fail(path+".runs", "none", "a list of "+list(operatorClasses)+", as another core type has one")
			continue
		}
		for j, class := range t.Runs {
			if !slices.Contains(operatorClasses, class) {
				c.fail(path+".runs", quote(class), "classes of operators: "+list(operatorClasses))
				break
			}
			if slices.Contains(t.Runs[:j], class) {
				c.fail(path+".runs", quote(class)+" twice", "each class once")
				break
			}
		}
		_, vector := t.UnitOf(Vector)
		if _, special := t.UnitOf(Special); !vector && !special && !c.isBad(path+".units") {
			c.fail(path+".units", "no vector unit and no special unit", "one of them in each core type that has runs")
		}
		if !t.HasL1 && !c.isBad("lb") {
			c.fail(path+".has_lb", "false", "true in each core type that has runs")
		}
	}
}

// classes refuses cores without a unit for some operations: special ones are the special unit's, the others the vector
// unit's, and where there is one of these units alone, it does all. from is the number of the first of the types.
func (c *checker) classes(types []CoreType, from int) {
	find := func(kind UnitKind) (of map[string]float64, path string) {
		for i, t := range types {
			for j, u := range t.Units {
				if u.Kind == kind {
					return u.CyclesPerOp, fmt.Sprintf("core_types[%d].units[%d].cycles_per_op", from+i, j)
				}
			}
		}
		return nil, ""
	}
	vector, at := find(Vector)
	special, behind := find(Special)
	if at == "" {
		vector, at = special, behind
	}
	if behind == "" {
		special, behind = vector, at
	}
	for _, class := range opClasses {
		of, path := vector, at
		if class == OpSpecial {
			of, path = special, behind
		}
		if _, ok := of[class]; !ok && path != "" && !c.isBad(path) {
			c.fail(path, "no "+class, "one, as no other unit of the cores does these operations")
		}
	}
}

// alike refuses units of one kind that differ from core to core: a layer is divided evenly over all cores that have
// the kind, and costs what the first one takes.
func (c *checker) alike(types []CoreType) {
	first := map[UnitKind]Unit{}
	of := map[UnitKind]string{}
	for i, t := range types {
		for j, u := range t.Units {
			path := fmt.Sprintf("core_types[%d].units[%d]", i, j)
			was, there := first[u.Kind]
			switch {
			case !there:
				first[u.Kind], of[u.Kind] = u, t.Name
			case of[u.Kind] != t.Name && !reflect.DeepEqual(was, u):
				c.fail(path, fmt.Sprintf("another %s unit than that of %s", u.Kind, quote(of[u.Kind])),
					"the same unit in all core types that have the kind, or runs in each type")
			}
		}
	}
}

func (c *checker) coreType(path string, t CoreType, names map[string]bool) {
	c.name(path+".name", t.Name)
	if names[t.Name] {
		c.fail(path+".name", quote(t.Name), "a name that no other core type has")
	}
	names[t.Name] = true
	c.count(path+".count", t.Count, maxCores)
	c.grid(path+".grid", t.Grid, t.Count)
	if len(t.Units) == 0 {
		c.fail(path+".units", "no unit", "at least one")
	}
	units, named := map[string]bool{}, true
	for j, u := range t.Units {
		p := fmt.Sprintf("%s.units[%d]", path, j)
		c.unit(p, u)
		if units[u.Name] {
			c.fail(p+".name", quote(u.Name), "a name that no other unit of the core has")
		}
		named = named && !c.isBad(p+".name")
		units[u.Name] = true
	}
	for j, u := range t.Units {
		p := fmt.Sprintf("%s.units[%d].shares_with", path, j)
		switch {
		case u.SharesWith == "":
		case u.SharesWith == u.Name:
			c.fail(p, quote(u.SharesWith), "another unit of the core than this one")
		case !units[u.SharesWith] && named:
			var others []string
			for _, o := range t.Units {
				if o.Name != u.Name {
					others = append(others, o.Name)
				}
			}
			expected := "the name of another unit of the core, and there is none"
			if len(others) > 0 {
				expected = "another unit of the core: " + list(others)
			}
			c.fail(p, quote(u.SharesWith), expected)
		}
	}
}

// grid checks that the dimensions make the count.
func (c *checker) grid(path string, grid []int, count int) {
	if len(grid) == 0 {
		return
	}
	product := 1
	for _, n := range grid {
		if n < 1 || n > maxCores || len(grid) < 2 {
			c.fail(path, quote(formatGrid(grid)), expectGrid)
			return
		}
		product = min(product*n, maxCores+1)
	}
	if count > 0 && product != count {
		c.fail(path, quote(formatGrid(grid)), fmt.Sprintf("dimensions whose product is the count of %d", count))
	}
}

func (c *checker) unit(path string, u Unit) {
	c.name(path+".name", u.Name)
	if !slices.Contains(unitKinds, u.Kind) {
		c.fail(path+".kind", quote(string(u.Kind)), "matrix, vector or special")
	}
	c.rates(path+".rate", u.Rate, dtypes, "dtype", minRate, maxRate)
	if u.FillCycles < 0 || u.FillCycles > maxFill {
		c.fail(path+".fill", u.FillCycles.String(), fmt.Sprintf("from 0cycles to %v", maxFill))
	}
	if !(u.BlockCycles >= 0 && u.BlockCycles <= float64(maxFill)) {
		c.fail(path+".block", fmt.Sprint(u.BlockCycles), fmt.Sprintf("from 0cycles to %v", maxFill))
	}
	if u.OperandBytesPerSecond != 0 || u.ResultsHeld != 0 {
		if u.Kind != Matrix && u.Kind != "" {
			c.fail(path+".operands", formatSI(u.OperandBytesPerSecond, "B/s"),
				fmt.Sprintf("none in a %s unit: it has lanes", u.Kind))
		}
		c.bandwidth(path+".operands", u.OperandBytesPerSecond)
		c.count(path+".results", u.ResultsHeld, maxResults)
	}
	if u.LeastCycles < 0 || u.LeastCycles > maxFill {
		c.fail(path+".least", u.LeastCycles.String(), fmt.Sprintf("from 0cycles to %v", maxFill))
	}
	if u.InFlight < 0 || u.InFlight > maxWidth {
		c.fail(path+".in_flight", fmt.Sprint(u.InFlight), expectCount(maxWidth))
	}
	if u.ClockHz != 0 {
		c.inRange(path+".clock", u.ClockHz, minClock, maxClock, expectClock,
			func(v float64) string { return formatSI(v, "Hz") })
	}
	switch u.Kind {
	case Matrix:
		c.count(path+".rows", u.Rows, maxWidth)
		c.count(path+".cols", u.Cols, maxWidth)
		if u.Lanes != 0 {
			c.fail(path+".lanes", fmt.Sprint(u.Lanes), "no lanes in a matrix unit: it has rows and cols")
		}
		if len(u.CyclesPerOp) != 0 {
			c.fail(path+".cycles_per_op", "a mapping", "none in a matrix unit: it has rows and cols")
		}
	case Vector, Special:
		if u.Synchronous {
			c.fail(path+".synchronous", "true", fmt.Sprintf("none in a %s unit: it has lanes", u.Kind))
		}
		if u.BlockCycles != 0 {
			c.fail(path+".block", fmt.Sprintf("%gcycles", u.BlockCycles), fmt.Sprintf("none in a %s unit: it has lanes", u.Kind))
		}
		if u.InFlight != 0 {
			c.fail(path+".in_flight", fmt.Sprint(u.InFlight), fmt.Sprintf("none in a %s unit: it has lanes", u.Kind))
		}
		c.count(path+".lanes", u.Lanes, maxWidth)
		for _, f := range []struct {
			key string
			n   int
		}{{"rows", u.Rows}, {"cols", u.Cols}} {
			if f.n != 0 {
				c.fail(path+"."+f.key, fmt.Sprint(f.n), fmt.Sprintf("none in a %s unit: it has lanes", u.Kind))
			}
		}
		p := path + ".cycles_per_op"
		c.rates(p, u.CyclesPerOp, opClasses, "operation class", minPerOp, maxPerOp)
		// A unit that can't do what its kind is named for is a slip.
		needs := OpSimple
		if u.Kind == Special {
			needs = OpSpecial
		}
		if _, ok := u.CyclesPerOp[needs]; !ok && !c.isBad(p+"."+needs) {
			c.fail(p, "no "+needs, fmt.Sprintf("one, as the unit's kind is %s", u.Kind))
		}
	}
}

// rates checks a mapping from known names to positive numbers.
func (c *checker) rates(path string, m map[string]float64, known []string, noun string, lo, hi float64) {
	c.figures(path, m, known, noun, lo, hi, "a number above zero", func(v float64) string { return fmt.Sprint(v) })
}

// figures checks a mapping from known names to positive values.
func (c *checker) figures(path string, m map[string]float64, known []string, noun string, lo, hi float64,
	expected string, format func(float64) string) {
	if len(m) == 0 {
		c.fail(path, "nothing", fmt.Sprintf("at least one %s of %s", noun, list(known)))
		return
	}
	for _, k := range known {
		if v, ok := m[k]; ok {
			c.inRange(path+"."+k, v, lo, hi, expected, format)
		}
	}
	var unknown []string
	for k := range m {
		if !slices.Contains(known, k) {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	for _, k := range unknown {
		c.fail(path+"."+key(k), "an unknown "+noun, "one of "+list(known))
	}
}

func (c *checker) memory(path string, m *Memory) {
	c.size(path+".size", m.SizeBytes)
	c.bandwidth(path+".bandwidth", m.BandwidthBytesPerSecond)
	c.time(path+".latency", m.LatencySeconds)
}

func (c *checker) size(path string, b Bytes) {
	switch {
	case b <= 0:
		c.fail(path, b.String(), expectSize)
	case b > maxSize:
		c.fail(path, b.String(), "a size of at most "+maxSize.String())
	}
}

// total checks a level over all cores and clusters.
func (c *checker) total(path string, b Bytes, cores, clusters int) {
	n := Bytes(cores) * Bytes(clusters)
	if b <= 0 || cores <= 0 || cores > maxCores || clusters <= 0 || clusters > maxClusters || b <= maxSize/n {
		return
	}
	c.fail(path, b.String(), fmt.Sprintf("at most %v for all %d on the chip together", maxSize, n))
}

func (c *checker) bandwidth(path string, v float64) {
	c.inRange(path, v, minBandwidth, maxBandwidth, expectBandwidth, func(v float64) string { return formatSI(v, "B/s") })
}

func (c *checker) time(path string, v float64) {
	switch {
	case math.IsNaN(v) || v < 0:
		c.fail(path, formatSeconds(v), "a time of zero or more such as 84ns, 10us or 84cycles")
	case v > maxSeconds:
		c.fail(path, formatSeconds(v), "a time of at most "+formatSeconds(maxSeconds))
	}
}

// inRange says what is expected in plain words for zero, negative numbers and NaN, and names the limit otherwise.
func (c *checker) inRange(path string, v, lo, hi float64, expected string, format func(float64) string) {
	switch {
	case math.IsNaN(v) || v <= 0:
		c.fail(path, format(v), expected)
	case v < lo:
		c.fail(path, format(v), "at least "+format(lo))
	case v > hi:
		c.fail(path, format(v), "at most "+format(hi))
	}
}

func (c *checker) count(path string, n, limit int) {
	if n < 1 || n > limit {
		c.fail(path, fmt.Sprint(n), expectCount(limit))
	}
}

func expectCount(limit int) string { return fmt.Sprintf("a whole number from 1 to %d", limit) }

// A name becomes part of file names and table columns.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (c *checker) name(path, name string) {
	if !nameForm.MatchString(name) {
		c.fail(path, quote(name), "a name of up to 64 letters, digits, '.', '_' and '-'")
	}
}

// key is a mapping's key as part of a path: as it is if it looks like one.
func key(k string) string {
	if nameForm.MatchString(k) {
		return k
	}
	return quote(k)
}

// quote quotes a value for a message of one line.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q...", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}

func list(words []string) string { return strings.Join(words, ", ") }
