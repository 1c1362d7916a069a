package allocate

import (
	"fmt"
	"math/rand/v2"
)

// family is instances like MiniMalloc's benchmark, by seed. Statistics of the five files
// at hand say how those came about: a square of 1024 kB by 1024 units of time is cut in
// two again and again, always the largest piece, across time or sizes at random, and some
// pieces are then left out. So lifetimes nest and cross, a time has up to 80 buffers, and
// most times are full to the last byte. A quarter of the seeds each has
//
//   - cuts anywhere and few pieces left out (A, C, E, K);
//   - cuts near the middle and up to 40 % left out, early ones more often (F);
//   - the first kind on a coarse grid, so that there are few kinds of sizes;
//   - no square behind them: lifetimes and sizes at random, where nobody knows whether
//     the capacity, the largest sum of live sizes and up to 2 %, suffices.
//
// The capacity of the first three is that of the square or, every other time, the largest
// sum of live sizes, which may be too little.
func family(seed uint64) (p *Problem, capacity int64) {
	const side, unit = 1024, 1024
	r := rand.New(rand.NewPCG(seed, 1848))
	kind := seed % 4
	p = &Problem{Name: fmt.Sprintf("family %d", seed)}
	add := func(from, upto, size int64) {
		p.Buffers = append(p.Buffers, Buffer{ID: fmt.Sprint(len(p.Buffers)),
			Lifetime: Interval{Lower: from * unit, Upper: upto * unit}, Size: size * unit})
	}
	if kind == 3 {
		var sizes []int64
		for range 4 + r.IntN(12) {
			sizes = append(sizes, 1+r.Int64N(8+r.Int64N(250)))
		}
		for range 100 + r.IntN(200) {
			length := 1 + r.Int64N(1+r.Int64N(300))
			from := r.Int64N(side - length + 1)
			add(from, from+length, sizes[r.IntN(len(sizes))])
		}
		return p, p.Bound() * (1000 + r.Int64N(21)) / 1000
	}
	type piece struct{ from, upto, low, high int64 }
	left, ramp, grid, least := 0.01+0.1*r.Float64(), false, int64(1), 0.0
	switch kind {
	case 1:
		left, ramp, least = 0.1+0.3*r.Float64(), true, 0.34
	case 2:
		grid = int64(16) << r.IntN(2)
	}
	across := 0.4 + 0.2*r.Float64()
	pieces := []piece{{0, side, 0, side}}
	for want := int(float64(140+r.IntN(340)) / (1 - left)); len(pieces) < want; {
		k, most := -1, int64(0)
		for i, q := range pieces {
			if area := (q.upto - q.from) * (q.high - q.low); area > most {
				k, most = i, area
			}
		}
		at := func(lo, hi int64) int64 {
			share := least + (1-2*least)*r.Float64()
			return lo + max(1, min(hi-lo-1, int64(share*float64(hi-lo))))
		}
		q := &pieces[k]
		switch alive, size := q.upto-q.from, q.high-q.low; {
		case alive > 1 && (size <= grid || r.Float64() < across):
			m := at(q.from, q.upto)
			pieces = append(pieces, piece{m, q.upto, q.low, q.high})
			pieces[k].upto = m
		default:
			m := max(1, at(q.low, q.high)/grid) * grid
			if m <= q.low || m >= q.high {
				m = q.low + size/2
			}
			pieces = append(pieces, piece{q.from, q.upto, m, q.high})
			pieces[k].high = m
		}
	}
	r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	for _, q := range pieces {
		share := left
		if ramp {
			share *= 2 * (1 - float64(q.from+q.upto)/2/side)
		}
		if r.Float64() >= share {
			add(q.from, q.upto, q.high-q.low)
		}
	}
	capacity = side * unit
	if r.IntN(2) == 0 {
		capacity = p.Bound()
	}
	return p, capacity
}
