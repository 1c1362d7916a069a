package lower

import (
	"math/rand"
	"testing"

	"github.com/dsasched/dsasched/model/schedule"
)

// Visits counts exactly the visits of an attention without a mask. The refusal of large programs relies on that count.
func TestVisits(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		a := &schedule.Attending{Products: 1 + rng.Int63n(6), Positions: 1 + rng.Int63n(40), Keys: 1 + rng.Int63n(40)}
		tiles := schedule.AttentionTiles{Products: 1 + rng.Int63n(a.Products), Positions: 1 + rng.Int63n(a.Positions),
			Keys: 1 + rng.Int63n(a.Keys), Slices: rng.Int63n(4)}
		tiles.Pieces = rng.Int63n(min(4, tiles.Positions) + 1)
		n := int64(0)
		for range (&attending{attention: &attention{Attending: a, tiles: tiles}}).eachVisit {
			n++
		}
		if got := a.Visits(tiles); got != n {
			t.Fatalf("%d products, %d positions, %d keys in %+v: %d visits, expected %d", a.Products, a.Positions, a.Keys,
				tiles, got, n)
		}
	}
}
