package lower

import (
	"math/big"
	"math/rand"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
)

// A stretch remembers who touched it, whatever is written over it in parts.
func TestSpaceKeepsWaitingForParts(t *testing.T) {
	// Commands 0 to 3 are of different queues, so that none stands for another.
	s := space{log: &queueLog{[]uint8{0, 1, 2, 3}, &Memory{}}}
	a, deps := s.take(0, 100, 0)
	if len(deps) != 0 {
		t.Fatalf("the first allocation waits for %v", deps)
	}
	a.use(1, 2)
	b, deps := s.take(40, 20, 0)
	if len(deps) != 2 {
		t.Fatalf("writing into the middle waits for %v, want both users", deps)
	}
	b.use(3)
	for _, c := range []struct {
		lo, size int64
		want     int
	}{{0, 40, 2}, {60, 40, 2}, {40, 20, 1}, {100, 50, 0}} {
		probe := space{log: s.log, parts: slices.Clone(s.parts)}
		if _, deps := probe.take(c.lo, c.size, 0); len(deps) != c.want {
			t.Errorf("[%d, %d) waits for %v, want %d commands", c.lo, c.lo+c.size, deps, c.want)
		}
	}
}

// Against a byte-by-byte record: every allocation waits for at least the users of
// every byte that it covers.
func TestSpaceAgainstBytes(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	log := queueLog{nil, &Memory{}}
	s := space{log: &log}
	const n = 200
	users := make([]map[int32]bool, n)
	for i := range users {
		users[i] = map[int32]bool{}
	}
	for cmd := int32(0); cmd < 3000; cmd++ {
		log.queue = append(log.queue, uint8(rng.Intn(numQueues)))
		lo := rng.Int63n(n)
		size := 1 + rng.Int63n(n-lo)
		st, deps := s.take(lo, size, 0)
		var got [numQueues]int32 // waiting for a command covers earlier ones of its queue
		for _, d := range deps {
			got[log.queue[d]] = d
		}
		for i := lo; i < lo+size; i++ {
			for u := range users[i] {
				if got[log.queue[u]] < u {
					t.Fatalf("command %d writes byte %d without waiting for %d", cmd, i, u)
				}
			}
			users[i] = map[int32]bool{cmd: true}
		}
		st.use(cmd)
	}
}

// Against a list that is looked through from end to end: every allocation, also one of no bytes, waits for the same.
func TestSpaceAgainstList(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	log := queueLog{nil, &Memory{}}
	s := space{log: &log}
	var list []part
	var all []*stretch
	for cmd := int32(0); cmd < 5000; cmd++ {
		log.queue = append(log.queue, uint8(rng.Intn(numQueues)))
		log.mem.unnamed = cmd > 2500 // from there on, of each queue the last is enough
		lo, size := rng.Int63n(100), rng.Int63n(20)
		n, deps := s.take(lo, size, 0)
		var kept []part
		var want lastOf
		for _, p := range list {
			if p.hi <= lo || lo+size <= p.lo {
				kept = append(kept, p)
				continue
			}
			for _, c := range p.lasts {
				want.wait(log.queue[c], c)
			}
			if p.lo < lo {
				kept = append(kept, part{p.lo, lo, &stretch{lasts: slices.Clone(p.lasts)}})
			}
			if p.hi > lo+size {
				kept = append(kept, part{lo + size, p.hi, &stretch{lasts: slices.Clone(p.lasts)}})
			}
		}
		list = append(kept, part{lo, lo + size, n})
		if !slices.Equal(deps, want.list(&log.mem.numbers)) {
			t.Fatalf("command %d at [%d, %d) waits for %v, expected %v", cmd, lo, lo+size, deps, want.list(&log.mem.numbers))
		}
		all = append(all, n)
		all[rng.Intn(len(all))].use(cmd)
		n.use(cmd)
	}
}

// Belady's rule keeps what is needed soonest: on the sequence a b c a b c ... with
// room for fewer than all, some are found again; first in, first out would find none.
func TestPagesKeepForReuse(t *testing.T) {
	log := queueLog{make([]uint8, 1000), &Memory{byTile: make([]tileUses, 6)}}
	p := newPages(&log, 256*256, func(*entry) {})
	bytes := p.pageBytes * 64 // four of these fill the pages, two may be kept
	hits := 0
	pos := int64(0)
	for round := 0; round < 10; round++ {
		for k := 0; k < 5; k++ {
			key := int32(k + 1)
			next := pos + 5
			if round == 9 {
				next = never
			}
			if e := p.find(key, next); e != nil {
				hits++
				p.use(e, int32(pos))
			} else {
				e, _ := p.add(key, bytes, next)
				p.bring(e, int32(pos))
				p.use(e, int32(pos))
			}
			pos++
		}
	}
	if hits < 9*2 {
		t.Errorf("%d of 50 uses found their tile, want at least 18", hits)
	}
	if p.retained > p.keepable() {
		t.Errorf("%d pages are kept, at most %d may", p.retained, p.keepable())
	}
}

// What may be kept grows by quarters of what is free, and something is always left to load into.
func TestPagesKeepQuarters(t *testing.T) {
	p := newPages(&queueLog{nil, &Memory{}}, 256*256, func(*entry) {})
	for quarters, want := range map[int]int{1: 64, 2: 128, 3: 192, 4: 255} {
		if p.quarters = quarters; p.keepable() != want {
			t.Errorf("%d quarters: %d of 256 pages may be kept, want %d", quarters, p.keepable(), want)
		}
	}
}

// The first of the least keys, as a look at all of them finds it.
func TestFirsts(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	f := firsts{all: unused}
	for i := range 20_000 {
		if i%200 == 0 {
			f.add()
		}
		key := int64(never)
		if rng.Intn(3) > 0 {
			key = rng.Int63n(40) - 20
		}
		f.set(int32(rng.Intn(len(f.keys))), key)
		if rng.Intn(2) == 0 {
			continue
		}
		want, least := int32(unused), int64(never)
		for k, key := range f.keys {
			if key < least {
				want, least = int32(k), key
			}
		}
		if place, key := f.first(); place != want || key != least {
			t.Fatalf("step %d: %d at place %d, expected %d at %d", i, key, place, least, want)
		}
	}
}

// Values take pages away and give them back; nothing is lost or counted twice.
func TestPagesClaims(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	log := queueLog{make([]uint8, 5000), &Memory{byTile: make([]tileUses, 5001)}}
	p := newPages(&log, 1<<20, func(*entry) {})
	type claim struct{ lo, hi int64 }
	var claims []claim
	for i := int32(0); i < 5000; i++ {
		switch rng.Intn(3) {
		case 0:
			if len(claims) < 3 {
				lo := rng.Int63n(1 << 19)
				c := claim{lo, lo + 1 + rng.Int63n(1<<17)}
				p.claim(c.lo, c.hi)
				claims = append(claims, c)
			}
		case 1:
			if len(claims) > 0 {
				p.unclaim(claims[0].lo, claims[0].hi, []int32{i})
				claims = claims[1:]
			}
		default:
			e, _ := p.add(i+1, 1+rng.Int63n(p.largest()), int64(i)+rng.Int63n(100))
			p.bring(e, i)
		}
		owned := make([]int, len(p.claims))
		for place, e := range p.entries {
			lastUse, nextUse := int64(never), int64(never)
			if e != nil {
				for _, pg := range e.pages {
					owned[pg]++
					if p.holder[pg] != int32(place) {
						t.Fatalf("step %d: page %d is held by another entry", i, pg)
					}
				}
				if e.retained {
					nextUse = -e.nextUse
				} else {
					lastUse = int64(e.load)
				}
			}
			if p.lastUse.keys[place] != lastUse || p.nextUse.keys[place] != nextUse {
				t.Fatalf("step %d: place %d is last used by %d and next at %d, want %d and %d", i, place, p.lastUse.keys[place],
					p.nextUse.keys[place], lastUse, nextUse)
			}
		}
		for _, turn := range p.free {
			owned[pageOf(turn)]++
		}
		if !slices.IsSorted(p.free) {
			t.Fatalf("step %d: free pages %v, expected them in order", i, p.free)
		}
		for pg, n := range p.claims {
			if n > 0 {
				owned[pg]++
			}
		}
		for pg, n := range owned {
			if n != 1 {
				t.Fatalf("step %d: page %d has %d owners", i, pg, n)
			}
		}
	}
}

func TestEven(t *testing.T) {
	for _, c := range []struct {
		n, grain, parts int64
		want            int
	}{{768, 32, 8, 8}, {100, 32, 2, 2}, {10, 32, 5, 1}, {3072, 32, 1, 1}} {
		got := even(c.n, c.grain, c.parts)
		sum := int64(0)
		for i, v := range got {
			sum += v
			if i < len(got)-1 && v%c.grain != 0 {
				t.Errorf("even(%d, %d, %d) = %v: %d is no multiple", c.n, c.grain, c.parts, got, v)
			}
		}
		if sum != c.n || len(got) != c.want {
			t.Errorf("even(%d, %d, %d) = %v", c.n, c.grain, c.parts, got)
		}
	}
}

// Weights move at the DDR's full rate, activations at their share of it.
func TestActivationEfficiency(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		efficiency float64
		want       int64
	}{{0, 1000}, {1, 1000}, {0.8, 1250}, {0.7, 1429}} {
		spec = spec.Clone()
		spec.DDRActivationEfficiency = c.efficiency
		e := &emitter{spec: spec, mem: &Memory{}}
		u := e.activationUses(1000, 300, 20, 0)
		if len(u) != 4 || u[0].Bytes != c.want || u[1].Bytes != 1000 || u[2].Bytes != 300 || u[3].Bytes != 20 {
			t.Errorf("efficiency %g: %+v, want %d bytes of the DDR", c.efficiency, u, c.want)
		}
		if w := e.moves(1000, 0, 0, 0); w[0].Bytes != 1000 {
			t.Errorf("efficiency %g: weights take %d bytes of the DDR", c.efficiency, w[0].Bytes)
		}
		if u := e.activationUses(0, 300, 20, 0); len(u) != 2 || u[0].Bytes != 300 {
			t.Errorf("efficiency %g: a move within the cluster is %+v", c.efficiency, u)
		}
	}
}

// Shares of bytes are exact, also where the product of their factors has more than 63 bits.
func TestMulDiv(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for i := range 10000 {
		a, c := rng.Int63n(1<<(1+rng.Int63n(62))), 1+rng.Int63n(1<<(1+rng.Int63n(62)))
		b := rng.Int63n(c + 1)
		if i == 0 {
			a, b, c = 49, 1, 49
		}
		want, rest := new(big.Int).DivMod(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(c), new(big.Int))
		if got := mulDiv(a, b, c); got != want.Int64() {
			t.Fatalf("%d * %d / %d is %d, expected %d", a, b, c, got, want)
		}
		if got, up := shareOf(a, b, c), want.Int64()+int64(rest.Sign()); got != up {
			t.Fatalf("%d * %d / %d rounded up is %d, expected %d", a, b, c, got, up)
		}
	}
}

// Tiles of weights add up to the whole, and strict ones are as small as is asked for, or a block of
// the matrix unit.
func TestTileWeights(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewSource(5))
	above := 0
	for range 2000 {
		d := model.MatrixDims{Reps: 1, M: 1, N: 1 + rng.Int63n(600), K: 1 + rng.Int63n(3000)}
		bytes, most := 2*d.N*d.K, 4096+rng.Int63n(100_000)
		for _, strict := range []bool{false, true} {
			columns, reduction := tileWeights(d, bytes, m, most, strict)
			if sum(columns) != d.N || sum(reduction) != d.K {
				t.Fatalf("%+v, at most %d: %v x %v", d, most, columns, reduction)
			}
			switch n, k := slices.Max(columns), slices.Max(reduction); {
			case 2*n*k <= most || n <= m.MatrixCols() && k <= m.MatrixRows():
			case !strict:
				above++
			default:
				t.Errorf("%+v: a tile of %d x %d is %d bytes, expected at most %d", d, n, k, 2*n*k, most)
			}
		}
	}
	if above == 0 {
		t.Error("none of the others is larger")
	}
}
