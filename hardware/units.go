package hardware

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Bytes is a size or an amount of data.
type Bytes int64

// Cycles is a number of cycles of the accelerator's clock.
type Cycles int64

// String gives the size in the largest binary unit that divides it, so that nothing is lost: 65536 is "64KiB", 1310720
// is "1280KiB", 1000 is "1000B". A description accepts the same text.
func (b Bytes) String() string {
	for _, u := range []struct {
		name string
		size Bytes
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b != 0 && b%u.size == 0 {
			return fmt.Sprintf("%d%s", int64(b/u.size), u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}

// Rounded gives the size as tables and messages do, in the largest binary unit below it and in four digits: 65536 is
// "64 KiB", 40000000000 is "37.25 GiB". A description does not accept all such texts.
func (b Bytes) Rounded() string {
	for _, u := range []struct {
		name string
		size Bytes
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		switch v := math.Abs(float64(b)) / float64(u.size); {
		case v < 1:
		case b%u.size == 0 && v < 1e4:
			return fmt.Sprintf("%d %s", int64(b/u.size), u.name)
		default:
			digits := 3
			for ; v >= 9.9995 && digits > 0; v /= 10 {
				digits--
			}
			return fmt.Sprintf("%.*f %s", digits, float64(b)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d B", int64(b))
}

// String gives the count with its unit, such as "24cycles".
func (c Cycles) String() string { return fmt.Sprintf("%dcycles", int64(c)) }

// quantity splits "1.5 GB/s" into number and unit. It is stricter than
// strconv: no "inf", "nan", hexadecimal or underscores.
var quantity = regexp.MustCompile(`^([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?) *([A-Za-zµμ/]*)$`)

// wholeNumber is a count, such as a number of cores.
var wholeNumber = regexp.MustCompile(`^[+-]?[0-9]+$`)

func splitQuantity(text string) (number, unit string, ok bool) {
	m := quantity.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// "KB" is left out on purpose: some mean 1000 by it and some 1024.
var sizeUnits = map[string]int64{
	"": 1, "B": 1,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

const expectSize = "a size above zero such as 64KiB"

// parseSize reads a size exactly. On failure, expected says what it wants.
func parseSize(text string) (size Bytes, expected string) {
	number, unit, ok := splitQuantity(text)
	if !ok {
		return 0, expectSize
	}
	scale, ok := sizeUnits[unit]
	if !ok {
		if unit == "KB" {
			return 0, "KiB (1024 bytes) or kB (1000 bytes)"
		}
		return 0, "a size in B, KiB, MiB, GiB, TiB, kB, MB, GB or TB"
	}
	// Arithmetic on rationals is exact, but an exponent makes it as slow as the number it stands for is long.
	if len(number) > 40 || strings.ContainsAny(number, "eE") {
		return 0, "a size without an exponent, such as 64KiB"
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, expectSize
	}
	r.Mul(r, new(big.Rat).SetInt64(scale))
	if !r.IsInt() {
		return 0, "a whole number of bytes"
	}
	if !r.Num().IsInt64() {
		return 0, "a size of at most " + maxSize.String()
	}
	return Bytes(r.Num().Int64()), ""
}

// A scale is kept as a factor and a divisor, because 84/1e9 is the float64 nearest to 84 ns and 84*1e-9 is not.
type scale struct{ mul, div float64 }

var (
	clockUnits = map[string]scale{
		"Hz": {1, 1}, "kHz": {1e3, 1}, "MHz": {1e6, 1}, "GHz": {1e9, 1},
	}
	bandwidthUnits = map[string]scale{
		"B/s": {1, 1}, "kB/s": {1e3, 1}, "MB/s": {1e6, 1}, "GB/s": {1e9, 1}, "TB/s": {1e12, 1},
		"KiB/s": {1 << 10, 1}, "MiB/s": {1 << 20, 1}, "GiB/s": {1 << 30, 1}, "TiB/s": {1 << 40, 1},
	}
	timeUnits = map[string]scale{
		"s": {1, 1}, "ms": {1, 1e3}, "us": {1, 1e6}, "µs": {1, 1e6}, "μs": {1, 1e6},
		"ns": {1, 1e9}, "ps": {1, 1e12},
	}
)

const (
	expectClock     = "a clock such as 1.0GHz"
	expectBandwidth = "a bandwidth above zero such as 108GB/s or 64B/cycle"
	expectTime      = "a time such as 84ns, 10us or 84cycles"
)

// parseScaled reads a number with one of the units, or in cycles of the given clock when perCycle names a unit. A clock
// of 0 is one that could not be read; the result is then NaN.
func parseScaled(text string, units map[string]scale, cycles map[string]scale) (float64, bool) {
	number, unit, ok := splitQuantity(text)
	if !ok {
		return 0, false
	}
	s, ok := units[unit]
	if !ok {
		if s, ok = cycles[unit]; !ok {
			return 0, false
		}
	}
	// The only error left is one of range; the infinity that comes with it is refused by the limits of the field.
	v, _ := strconv.ParseFloat(number, 64)
	if v == 0 {
		return 0, true // not -0
	}
	return v * s.mul / s.div, true
}

func parseClock(text string) (hz float64, ok bool) {
	return parseScaled(text, clockUnits, nil)
}

// parseBandwidth gives NaN for a bandwidth per cycle when the clock is 0, that is, could not be read.
func parseBandwidth(text string, clockHz float64) (bytesPerSecond float64, ok bool) {
	return parseScaled(text, bandwidthUnits, map[string]scale{"B/cycle": {nanIfZero(clockHz), 1}})
}

// parseTime gives NaN for a time in cycles when the clock is 0.
func parseTime(text string, clockHz float64) (seconds float64, ok bool) {
	c := scale{1, nanIfZero(clockHz)}
	return parseScaled(text, timeUnits, map[string]scale{"cycle": c, "cycles": c})
}

func nanIfZero(x float64) float64 { return cmp.Or(x, math.NaN()) }

// parseCycles reads "24cycles" or plain "24".
func parseCycles(text string) (Cycles, bool) {
	text = strings.TrimSpace(text)
	for _, unit := range []string{"cycles", "cycle"} {
		if t, ok := strings.CutSuffix(text, unit); ok {
			text = strings.TrimSpace(t)
			break
		}
	}
	if !wholeNumber.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return Cycles(n), err == nil
}

// formatSI writes a value with the largest decimal prefix that leaves at least
// one before the point: 1.08e11 B/s is "108GB/s".
func formatSI(v float64, unit string) string {
	for _, p := range []struct {
		name string
		size float64
	}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if math.Abs(v) >= p.size {
			return fmt.Sprintf("%.6g%s%s", v/p.size, p.name, unit)
		}
	}
	return fmt.Sprintf("%.6g%s", v, unit)
}

func formatSeconds(v float64) string {
	for _, p := range []struct {
		name string
		per  float64
	}{{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}} {
		if math.Abs(v)*p.per >= 1 {
			return fmt.Sprintf("%.4g%s", v*p.per, p.name)
		}
	}
	return fmt.Sprintf("%.4gns", v*1e9)
}
