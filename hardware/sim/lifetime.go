package sim

import "github.com/dsasched/dsasched/hardware/isa"

// Lifetime is the half-open time, in picoseconds, for which a buffer of the simulated
// program is in use: what the occupancies and CheckBuffers go by.
func (r *Result) Lifetime(b *isa.Buffer) (from, to int64) {
	return bufferTime(b, r.Start, r.End)
}
