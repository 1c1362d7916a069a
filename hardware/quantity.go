package hardware

import "fmt"

// The texts of quantities, for descriptions of other machines than a [Spec]'s. On
// failure the error says what was found and what was expected.

// ParseSize reads a size such as "96KiB", in bytes.
func ParseSize(text string) (Bytes, error) {
	b, expected := parseSize(text)
	if expected != "" {
		return 0, fmt.Errorf("found %s, expected %s", quote(text), expected)
	}
	return b, nil
}

// ParseClock reads a frequency such as "1.53GHz", in hertz.
func ParseClock(text string) (float64, error) {
	v, ok := parseClock(text)
	return quantityOr(v, ok, text, expectClock)
}

// ParseBandwidth reads a bandwidth such as "900GB/s" or "64B/cycle" of a clock above zero, in bytes per second.
func ParseBandwidth(text string, clockHz float64) (float64, error) {
	v, ok := parseBandwidth(text, clockHz)
	return quantityOr(v, ok, text, expectBandwidth)
}

// ParseTime reads a time such as "10us" or "20cycles" of a clock above zero, in seconds.
func ParseTime(text string, clockHz float64) (float64, error) {
	v, ok := parseTime(text, clockHz)
	return quantityOr(v, ok, text, expectTime)
}

func quantityOr(v float64, ok bool, text, expected string) (float64, error) {
	if !ok {
		return 0, fmt.Errorf("found %s, expected %s", quote(text), expected)
	}
	return v, nil
}
