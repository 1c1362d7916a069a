package ansor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Reuse by formula is that of loops that are run, command by command.
func TestReuse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	reused := 0
	for n := range 200 {
		var list []loop
		iterations := 1.0
		for range r.IntN(5) {
			l := loop{extent: float64(2 + r.IntN(3))}
			for b := range l.moves {
				l.moves[b] = r.IntN(2) == 0
			}
			list, iterations = append(list, l), iterations*l.extent
		}
		var bytes, command [buffers]float64
		for b := range bytes {
			command[b] = float64(1 + r.IntN(9))
			bytes[b] = command[b]
			for _, l := range list {
				if l.moves[b] {
					bytes[b] *= l.extent
				}
			}
		}
		ops := iterations * float64(1+r.IntN(5))
		got := reuse(list, ops, 1, bytes)
		if len(got) != len(reuseNames()) {
			t.Fatalf("%d features, %d names", len(got), len(reuseNames()))
		}
		// The piece of each buffer that each command touches.
		var pieces [][buffers]int
		for at := range int(iterations) {
			var p [buffers]int
			scale := [buffers]int{1, 1, 1}
			for i := len(list) - 1; i >= 0; i-- {
				e := int(list[i].extent)
				for b := range p {
					if list[i].moves[b] {
						p[b] += at % e * scale[b]
						scale[b] *= e
					}
				}
				at /= e
			}
			pieces = append(pieces, p)
		}
		distinct := func(window [][buffers]int) (sum float64) {
			for b := range buffers {
				seen := map[int]bool{}
				for _, p := range window {
					seen[p[b]] = true
				}
				sum += float64(len(seen)) * command[b]
			}
			return sum
		}
		if want := ops / distinct(pieces); math.Abs(got[curvePoints-1]-want) > 1e-9*want {
			t.Fatalf("case %d: intensity of all %g, want %g", n, got[curvePoints-1], want)
		}
		for b := range buffers {
			x := got[curvePoints+b*reuseColumns:][:reuseColumns]
			again := slices.IndexFunc(pieces[1:], func(p [buffers]int) bool { return p[b] == pieces[0][b] }) + 1
			if again == 0 {
				if x[0] != 0 || x[1] != 0 || x[2] != 0 || x[3] != bytes[b] {
					t.Fatalf("case %d: buffer %d is used once, found %v", n, b, x)
				}
				continue
			}
			reused++
			count := 0 // uses at this distance
			for at := 0; at < len(pieces) && pieces[at][b] == pieces[0][b]; at += again {
				count++
			}
			if x[0] != float64(again) || math.Abs(x[1]-distinct(pieces[:again])) > 1e-9*x[1] {
				t.Fatalf("case %d: buffer %d again after %g iterations and %g bytes, want %d and %g", n, b, x[0], x[1], again,
					distinct(pieces[:again]))
			}
			if outer := count % int(x[2]); outer != 0 { // loops around may go on at the same distance
				t.Fatalf("case %d: buffer %d used %g times in a row, found %d", n, b, x[2], count)
			}
		}
	}
	if reused < 100 {
		t.Errorf("%d buffers are used again", reused)
	}
}

// Between a command and all of them the curve rises with the operations, where nothing else is used again.
func TestIntensityCurve(t *testing.T) {
	tile := loop{4, [buffers]bool{inBuffer: true, outBuffer: true}}
	columns := loop{8, [buffers]bool{weightBuffer: true, outBuffer: true}}
	got := reuse([]loop{tile, columns}, 1<<20, 4, [buffers]float64{1 << 10, 1 << 10, 1 << 12})[:curvePoints]
	if !slices.IsSorted(got) || got[0] >= got[curvePoints-1] {
		t.Errorf("curve %v, expected one that rises", got)
	}
}
