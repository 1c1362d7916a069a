package convert

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/hardware"
)

// A quantity is a number with where it is from.
type quantity struct {
	value  float64
	origin string
}

// A store is a memory: bytes, bytes a second, seconds, joules a byte (0: unknown).
type store struct {
	size, weights, rate, latency, energy quantity
}

// A coreType is what cores that are alike have.
type coreType struct {
	name             string
	count            quantity
	runs             []string // classes of operators, where a layer runs on cores of one type
	rows, cols, rate quantity // of the matrix unit; rate 0: there is none
	lanes            quantity // of the vector unit; 0: there is none
	shared           bool     // matrix and vector unit are the same hardware
}

// An accelerator holds what all three tools have in common with ours.
type accelerator struct {
	name, description    string
	clock                quantity
	types                []coreType
	lb, gb, ddr          *store
	coreLink, ddrLink    quantity // bytes a second; 0: none there
	mac, vector, staticW quantity
}

const (
	largest = 1 << 50 // bytes
	fastest = 1e18    // bytes a second
	least   = 2e-18   // joules of an operation or a byte
	most    = 9e-7
)

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// plainName is a name as our files may have it.
func plainName(name, otherwise string) string {
	name = cmp.Or(strings.Trim(notInName.ReplaceAllString(name, "-"), "-._"), otherwise)
	return name[:min(len(name), 64)]
}

// yaml writes an accelerator file.
func (a *accelerator) yaml(tool, file string, lost []string) string {
	var b strings.Builder
	line := func(indent int, key, value, origin string) {
		text := strings.Repeat(" ", indent) + key + ": " + value
		if origin != "" {
			text = fmt.Sprintf("%-35s # %s", text, clean(origin))
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	number := func(indent int, key string, q quantity, unit string) {
		line(indent, key, short(q.value)+unit, q.origin)
	}
	fmt.Fprintf(&b, "# Converted from %s of %s. Behind each figure: where it is from; ASSUMED is what is not there.\n",
		clean(file), tool)
	for _, l := range lost {
		fmt.Fprintf(&b, "#   lost: %s\n", clean(l))
	}
	a.name = plainName(a.name, "converted")
	b.WriteString("\n")
	line(0, "name", a.name, "name")
	line(0, "description", strconv.Quote(clean(a.description)), "")
	number(0, "clock", quantity{a.clock.value / 1e9, a.clock.origin}, "GHz")
	line(0, "clusters", "1", "ASSUMED: one program for all cores")
	b.WriteString("core_types:\n")
	rates := func(rate string) {
		b.WriteString("        rate:\n")
		for _, dtype := range []string{"f16", "bf16", "i8", "f32"} {
			line(10, dtype, rate, "ASSUMED: operands of any width")
		}
		line(8, "fill", "0cycles", "ASSUMED: none there")
	}
	for _, t := range a.types {
		line(2, "- name", t.name, "")
		number(4, "count", t.count, "")
		if len(t.runs) > 0 {
			line(4, "runs", "["+strings.Join(t.runs, ", ")+"]", "operator_types, or all")
		}
		b.WriteString("    units:\n")
		if t.rate.value > 0 {
			line(6, "- name", "array", "")
			line(8, "kind", "matrix", "")
			number(8, "rows", t.rows, "")
			number(8, "cols", t.cols, "")
			r := short(t.rate.value)
			line(8, "# rate", r, t.rate.origin)
			rates(r)
		}
		if t.lanes.value == 0 {
			continue
		}
		line(6, "- name", "vector", "")
		line(8, "kind", "vector", "")
		if t.shared {
			line(8, "shares_with", "array", "the array does all operators")
		}
		number(8, "lanes", t.lanes, "")
		rates("1")
		b.WriteString("        cycles_per_op:\n")
		for _, class := range []string{"simple", "move", "special"} {
			line(10, class, "1", "one operation a cycle and lane, whatever it is")
		}
	}
	memory := func(key string, s *store) {
		if s == nil {
			line(0, key, "none", "none there")
			return
		}
		b.WriteString(key + ":\n")
		line(2, "size", hardware.Bytes(min(s.size.value, largest)).String(), s.size.origin)
		if s.weights.value > 0 {
			line(2, "weights", hardware.Bytes(min(s.weights.value, largest)).String(), s.weights.origin)
		}
		number(2, "bandwidth", quantity{min(s.rate.value, fastest), s.rate.origin}, "B/s")
		number(2, "latency", quantity{s.latency.value * 1e9, s.latency.origin}, "ns")
	}
	memory("lb", a.lb)
	memory("gb", a.gb)
	memory("ddr", a.ddr)
	b.WriteString("core_link:\n")
	number(2, "bandwidth", quantity{min(a.coreLink.value, fastest), a.coreLink.origin}, "B/s")
	line(2, "latency", "0ns", "ASSUMED: none there")
	line(2, "broadcast", "false", "ASSUMED")
	b.WriteString("ddr_link:\n")
	if a.ddrLink.value > 0 && a.ddrLink.value < fastest {
		number(2, "bandwidth", a.ddrLink, "B/s")
	} else {
		line(2, "bandwidth", "unlimited", a.ddrLink.origin)
	}
	line(2, "latency", "0ns", "ASSUMED: none there")
	line(0, "launch", "0us", "ASSUMED: none there")
	line(0, "sync", "0cycles", "ASSUMED: none there")
	a.writeEnergy(&b, line)
	return b.String()
}

// writeEnergy writes what work takes, unless a figure is missing.
func (a *accelerator) writeEnergy(b *strings.Builder, line func(int, string, string, string)) {
	type row struct {
		indent int
		key    string
		q      quantity
	}
	var rows []row
	for _, m := range []struct {
		key string
		q   quantity
	}{{"mac", a.mac}, {"vector", a.vector}} {
		rows = append(rows, row{2, m.key, quantity{}})
		for _, t := range []string{"f16", "bf16", "i8", "f32"} {
			rows = append(rows, row{4, t, m.q})
		}
	}
	for _, m := range []struct {
		key string
		s   *store
	}{{"lb", a.lb}, {"gb", a.gb}, {"ddr", a.ddr}} {
		if m.s != nil {
			rows = append(rows, row{2, m.key, m.s.energy})
		}
	}
	for _, r := range rows {
		if r.q.origin == "" && r.indent == 2 && (r.key == "mac" || r.key == "vector") {
			continue
		}
		if !(r.q.value >= least && r.q.value <= most) {
			b.WriteString("# No energies: some are not in the file, or beyond what a file may have.\n")
			return
		}
	}
	b.WriteString("energy:\n")
	for _, r := range rows {
		if r.q.origin == "" {
			b.WriteString("  " + r.key + ":\n")
			continue
		}
		line(r.indent, r.key, short(r.q.value*1e12)+"pJ", r.q.origin)
	}
	line(2, "static", short(a.staticW.value)+"W", a.staticW.origin)
}

// short writes a number that our files read, without an exponent that sizes would refuse.
func short(v float64) string {
	if v == math.Trunc(v) && v < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}

// clean is text that stays within its comment.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' || r == '\u2028' || r == '\u2029' || r == '\u0085' || r == '\uFEFF' {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200])
	}
	return s
}
