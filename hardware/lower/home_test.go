package lower

import (
	"math/rand/v2"
	"testing"
)

// What stays in a home overlaps nothing else there, what leaves is waited for by what takes its place, and the last to
// leave leaves one gap.
func TestHome(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		const lo, hi = 100, 400
		log := &queueLog{mem: &Memory{}}
		h := home{space: space{log: log}, gaps: []gap{{lo, hi}}, tiles: map[tileKey]resident{}}
		held, users := map[tileKey]*stretch{}, [hi]int32{}
		for c := range int32(60) {
			log.queue = append(log.queue, uint8(r.IntN(numQueues)))
			if r.IntN(3) > 0 {
				key, bytes := tileKey{index: int(c)}, 1+r.Int64N(90)
				place, free := h.keep(bytes, true, 0)
				if place == nil {
					continue
				}
				if place.lo < lo || place.hi > hi || place.hi-place.lo != bytes {
					t.Fatalf("seed %d: %d bytes at %d to %d of %d to %d", seed, bytes, place.lo, place.hi, lo, hi)
				}
				for _, x := range held {
					if x.lo < place.hi && place.lo < x.hi {
						t.Fatalf("seed %d: %d to %d is taken twice", seed, place.lo, place.hi)
					}
				}
				var last lastOf
				for _, d := range free {
					last.wait(log.queue[d], d)
				}
				for at := place.lo; at < place.hi; at++ {
					if u := users[at] - 1; u >= 0 && (last.has>>log.queue[u]&1 == 0 || last.of[log.queue[u]] < u) {
						t.Fatalf("seed %d: byte %d is written without waiting for command %d", seed, at, u)
					}
					users[at] = c + 1
				}
				place.use(c)
				held[key], h.tiles[key] = place, resident{place: place}
				continue
			}
			for index := range int(c) {
				key := tileKey{index: index}
				if _, there := h.tiles[key]; there && r.IntN(2) == 0 {
					h.over = append(h.over, key)
					delete(held, key)
				}
			}
			h.leave()
		}
		for key := range h.tiles {
			h.over = append(h.over, key)
		}
		if h.leave(); len(h.gaps) != 1 || h.gaps[0] != (gap{lo, hi}) {
			t.Fatalf("seed %d: all has left, gaps %v", seed, h.gaps)
		}
	}
}
