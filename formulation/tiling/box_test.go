package tiling

import (
	"math/rand/v2"
	"testing"
)

// The box of a tile is at least what one finds by walking through all positions of every tile, and no larger where
// tiles end with an index of an outer dimension.
func TestTileBox(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	exact := 0
	for range 4000 {
		dims := []int64{1 + r.Int64N(4), 1 + r.Int64N(7), 1 + r.Int64N(7)}
		m := dims[0] * dims[1] * dims[2]
		cores := 1 + r.Int64N(9)
		p := &Problem{Product: Product{M: m, N: 1}}
		p.Divide(dims, []int64{1}, cores)
		core := p.tileBox(cores, 1, nil)
		rows := core[0] * core[1] * core[2]
		if rows != share(m, cores, p.rowParts) {
			t.Fatalf("%v over %d cores: a box of %v, the largest part is %d", dims, cores, core, share(m, cores, p.rowParts))
		}
		tiles := 1 + r.Int64N(rows)
		var want [3]int64
		for q := range tiles {
			lo, hi := core, [3]int64{-1, -1, -1}
			least := [3]int64{lo[0], lo[1], lo[2]}
			for i := rows * q / tiles; i < rows*(q+1)/tiles; i++ {
				at := [3]int64{i / (core[1] * core[2]), i / core[2] % core[1], i % core[2]}
				for d := range at {
					least[d], hi[d] = min(least[d], at[d]), max(hi[d], at[d])
				}
			}
			for d := range want {
				want[d] = max(want[d], hi[d]-least[d]+1)
			}
		}
		got := p.tileBox(cores, tiles, nil)
		for d := range want {
			if got[d] < want[d] {
				t.Fatalf("%v over %d cores in %d tiles: a box of %v, a tile has %v", dims, cores, tiles, got, want)
			}
		}
		if tiles%core[0] == 0 && (tiles/core[0]%core[1] == 0 || core[1]%(tiles/core[0]) == 0) || core[0]%tiles == 0 {
			exact++
			if [3]int64(got) != want {
				t.Errorf("%v over %d cores in %d tiles: a box of %v, expected %v", dims, cores, tiles, got, want)
			}
		}
	}
	if exact < 300 {
		t.Errorf("%d cases of tiles that end with an index, expected 300 or more", exact)
	}
}
