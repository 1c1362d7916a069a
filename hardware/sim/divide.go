package sim

import "math/bits"

// divisor divides by one number over and over, by multiplying with its inverse (Möller and
// Granlund, Improved division by invariant integers, IEEE Trans. Computers, 2011).
type divisor struct {
	d, inverse uint64 // d shifted until its highest bit is set, and 2^128/d - 2^64 of that
	shift      uint
}

func newDivisor(d uint64) divisor {
	shift := uint(bits.LeadingZeros64(d))
	d <<= shift
	inverse, _ := bits.Div64(^d, ^uint64(0), d)
	return divisor{d, inverse, shift}
}

// quotient is (hi·2^64 + lo) / d, rounded down, which has to fit 64 bits.
func (x divisor) quotient(hi, lo uint64) uint64 {
	hi = hi<<x.shift | lo>>(64-x.shift)
	lo <<= x.shift
	q, rest := bits.Mul64(x.inverse, hi)
	rest, carry := bits.Add64(rest, lo, 0)
	q, _ = bits.Add64(q, hi, carry)
	q++
	r := lo - q*x.d
	if r > rest {
		q--
		r += x.d
	}
	if r >= x.d {
		q++
	}
	return q
}
