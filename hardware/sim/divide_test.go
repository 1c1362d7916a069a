package sim

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

func TestDivisor(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	edges := []uint64{0, 1, 2, 3, psPerUnit - 1, psPerUnit, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<63 + 1,
		math.MaxUint64 - 1, math.MaxUint64}
	some := func() uint64 {
		if random.IntN(3) == 0 {
			return edges[random.IntN(len(edges))]
		}
		return random.Uint64() >> random.IntN(64)
	}
	for range 300_000 {
		d, hi, lo := max(1, some()), some(), some()
		if hi %= d; random.IntN(4) == 0 && d > 1 {
			hi = d - 1
		}
		want, _ := bits.Div64(hi, lo, d)
		if got := newDivisor(d).quotient(hi, lo); got != want {
			t.Fatalf("(%d·2^64 + %d) / %d = %d, want %d", hi, lo, d, got, want)
		}
	}
}
