package sharding

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
)

// A parcel is values on their way along a dimension of a torus, a byte each.
type parcel struct {
	key       int
	values    []uint64
	way, hops int
}

// wires pass values on over the links of a torus, event by event: chips have values by key.
type wires struct {
	chips.Group
	there   []map[int][]uint64
	seconds float64
}

// along is a chip's place in its ring of a dimension, the ring's extent, and the neighbour on a side.
func (w *wires) along(chip, dim, way int) (at, extent, neighbour int) {
	stride := 1
	for _, k := range w.Torus[dim+1:] {
		stride *= k
	}
	extent = w.Torus[dim]
	at = chip / stride % extent
	return at, extent, chip + ((at+way+extent)%extent-at)*stride
}

// pass lets each chip send values along a dimension. An idle link takes all that waits for it as one message. What
// arrives is taken, and sent on if it has further to go.
func (w *wires) pass(dim int, send func(chip, key int) (way, hops int), take func(chip int, p parcel) parcel) {
	type link struct{ from, to int }
	type message struct {
		at   float64
		link link
		what []parcel
	}
	waiting, busy := map[link][]parcel{}, map[link]bool{}
	put := func(chip int, p parcel) {
		_, _, to := w.along(chip, dim, p.way)
		waiting[link{chip, to}] = append(waiting[link{chip, to}], p)
	}
	for chip, own := range w.there {
		for _, key := range slices.Sorted(maps.Keys(own)) {
			values := own[key]
			if way, hops := send(chip, key); hops > 0 {
				put(chip, parcel{key, values, way, hops})
			}
		}
	}
	var sent []message
	for {
		for l, list := range waiting {
			if len(list) > 0 && !busy[l] {
				bytes := 0
				for _, p := range list {
					bytes += len(p.values)
				}
				at := w.seconds + w.Link.LatencySeconds + float64(bytes)/w.Link.BandwidthBytesPerSecond
				sent = append(sent, message{at, l, list})
				waiting[l], busy[l] = nil, true
			}
		}
		if len(sent) == 0 {
			return
		}
		w.seconds = math.Inf(1)
		for _, m := range sent {
			w.seconds = min(w.seconds, m.at)
		}
		var rest []message
		for _, m := range sent {
			if m.at > w.seconds {
				rest = append(rest, m)
				continue
			}
			busy[m.link] = false
			for _, p := range m.what {
				p.hops--
				if p = take(m.link.to, p); p.hops > 0 {
					put(m.link.to, p)
				}
			}
		}
		sent = rest
	}
}

var ways = []int{1, -1} // of the halves of what is sent

// halves puts values on a chip as two parcels.
func (w *wires) halves(chip, key int, values []uint64) {
	w.there[chip][2*key], w.there[chip][2*key+1] = values[:len(values)/2], values[len(values)/2:]
}

func (w *wires) both(chip, key int) []uint64 {
	return slices.Concat(w.there[chip][2*key], w.there[chip][2*key+1])
}

func wired(g chips.Group) *wires {
	w := &wires{Group: g}
	for range g.Chips {
		w.there = append(w.there, map[int][]uint64{})
	}
	return w
}

// gatherOver gives each chip the parts of all.
func gatherOver(g chips.Group, parts [][]uint64) (all [][][]uint64, seconds float64) {
	w := wired(g)
	for c := range parts {
		w.halves(c, c, parts[c])
	}
	for dim, extent := range g.Torus {
		w.pass(dim, func(_, key int) (int, int) { return ways[key%2], extent - 1 }, func(chip int, p parcel) parcel {
			w.there[chip][p.key] = p.values
			return p
		})
	}
	for c := range parts {
		var own [][]uint64
		for q := range parts {
			own = append(own, w.both(c, q))
		}
		all = append(all, own)
	}
	return all, w.seconds
}

// scatterOver gives chip q the sum of the chips' summands of part q.
func scatterOver(g chips.Group, summands [][][]uint64) (sums [][]uint64, seconds float64) {
	w := wired(g)
	for c := range summands {
		for q := range summands {
			w.halves(c, q, summands[c][q])
		}
	}
	for dim := len(g.Torus) - 1; dim >= 0; dim-- {
		w.pass(dim, func(chip, key int) (way, hops int) {
			for d := dim + 1; d < len(g.Torus); d++ {
				at, _, _ := w.along(chip, d, 0)
				if to, _, _ := w.along(key/2, d, 0); at != to {
					return 0, 0 // summed up elsewhere
				}
			}
			way = ways[key%2]
			at, extent, _ := w.along(chip, dim, 0)
			if to, _, _ := w.along(key/2, dim, 0); (to+way+extent)%extent != at {
				return 0, 0 // joins the sum when it comes by
			}
			return way, extent - 1
		}, func(chip int, p parcel) parcel {
			sum := slices.Clone(p.values)
			for i, x := range w.there[chip][p.key] {
				sum[i] = (sum[i] + x) % prime
			}
			if p.values = sum; p.hops == 0 {
				w.there[chip][p.key] = sum
			}
			return p
		})
	}
	for c := range summands {
		sums = append(sums, w.both(c, c))
	}
	return sums, w.seconds
}

// exchangeOver gives chip q the share of each chip for it.
func exchangeOver(g chips.Group, shares [][][]uint64) (got [][][]uint64, seconds float64) {
	w := wired(g)
	p := len(shares)
	for c := range shares {
		for q := range shares {
			w.halves(c, c*p+q, shares[c][q])
		}
	}
	for dim := range g.Torus {
		w.pass(dim, func(chip, key int) (way, hops int) {
			at, extent, _ := w.along(chip, dim, 0)
			to, _, _ := w.along(key/2%p, dim, 0)
			switch far := (to - at + extent) % extent; {
			case far == 0:
				return 0, 0
			case 2*far < extent || 2*far == extent && key%2 == 0:
				way, hops = 1, far
			default:
				way, hops = -1, extent-far
			}
			delete(w.there[chip], key)
			return way, hops
		}, func(chip int, p parcel) parcel {
			if p.hops == 0 {
				w.there[chip][p.key] = p.values
			}
			return p
		})
	}
	for q := range shares {
		var own [][]uint64
		for c := range shares {
			own = append(own, w.both(q, c*p+q))
		}
		got = append(got, own)
	}
	return got, w.seconds
}

// TestCollectivesOnTorus: values that go from neighbour to neighbour arrive where they should, and exactly when the
// closed forms say.
func TestCollectivesOnTorus(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	toruses := [][]int{{1, 4}, {2, 2}, {2, 3}, {3, 2}, {4, 2}, {4, 4}, {3, 5}, {2, 2, 2}, {4, 2, 3}, {3, 1, 4}}
	for k := 2; k <= 9; k++ {
		toruses = append(toruses, []int{k})
	}
	for _, torus := range toruses {
		p := 1
		for _, k := range torus {
			p *= k
		}
		// Of such numbers no sum or quotient is rounded.
		g := chips.Group{Chips: int64(p), Link: hardware.Link{BandwidthBytesPerSecond: 1, LatencySeconds: 5}, Torus: torus}
		share := 2 * (1 + r.IntN(3))
		table := make([][][]uint64, p) // by chip and part
		for c := range table {
			for range p {
				list := make([]uint64, share*p)
				for i := range list {
					list[i] = r.Uint64N(prime)
				}
				table[c] = append(table[c], list)
			}
		}
		bytes := int64(share * p * p)
		same := func(what string, got, want any, seconds float64, from, to layout) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%v: %s gives other values", torus, what)
			}
			if kind, closed := collective(g, from, to, bytes); kind != what || closed != seconds {
				t.Errorf("%v, %d bytes: %s takes %v s, expected %s of %v", torus, bytes, kind, closed, what, seconds)
			}
		}
		parts := table[0] // part c is on chip c
		all, gathered := gatherOver(g, parts)
		same(chips.AllGather, all, slices.Repeat([][][]uint64{parts}, p), gathered, Cut(0), Whole)
		want := make([][]uint64, p)
		for q := range want {
			want[q] = make([]uint64, share*p)
			for c := range table {
				for i, x := range table[c][q] {
					want[q][i] = (want[q][i] + x) % prime
				}
			}
		}
		sums, scattered := scatterOver(g, table)
		same(chips.ReduceScatter, sums, want, scattered, Partial, Cut(0))
		all, again := gatherOver(g, sums)
		same(chips.AllReduce, all, slices.Repeat([][][]uint64{want}, p), scattered+again, Partial, Whole)
		var shares, turned [][][]uint64
		for c := range table {
			var own, other [][]uint64
			for q := range table {
				own, other = append(own, table[c][q][:share]), append(other, table[q][c][:share])
			}
			shares, turned = append(shares, own), append(turned, other)
		}
		got, seconds := exchangeOver(g, shares)
		same(chips.AllToAll, got, turned, seconds, Cut(0), Cut(1))
	}
}

// change executes a collective on what chips have of a tensor.
func change(g chips.Group, shape model.Shape, from, to layout, own [][]uint64) (changed [][]uint64) {
	chips := g.Chips
	if g.Torus == nil {
		g.Torus = []int{int(chips)} // over other links, the same values
	}
	switch {
	case from >= 0 && to >= 0:
		less := func(l layout) model.Shape { return size(&model.Tensor{Shape: shape}, l, chips) }
		var shares [][][]uint64
		for c := range chips {
			var list [][]uint64
			for q := range chips {
				list = append(list, part(own[c], less(from), to, q, chips))
			}
			shares = append(shares, list)
		}
		got, _ := exchangeOver(g, shares)
		for c := range chips {
			changed = append(changed, joinParts(got[c], less(to), from))
		}
	case from >= 0:
		all, _ := gatherOver(g, own)
		for c := range chips {
			changed = append(changed, joinParts(all[c], shape, from))
		}
	default:
		along, flat := to, shape
		if to == Whole { // in any parts
			along, flat = Cut(0), model.Shape{int64(len(own[0]))}
			for flat[0]%chips != 0 {
				flat[0]++
			}
		}
		var summands [][][]uint64
		for c := range chips {
			var list [][]uint64
			padded := append(slices.Clone(own[c]), make([]uint64, int(flat.Elements())-len(own[c]))...)
			for q := range chips {
				list = append(list, part(padded, flat, along, q, chips))
			}
			summands = append(summands, list)
		}
		changed, _ = scatterOver(g, summands)
		if to == Whole {
			all, _ := gatherOver(g, changed)
			for c := range chips {
				changed[c] = slices.Concat(all[c]...)[:len(own[c])]
			}
		}
	}
	return changed
}

// joinParts is the inverse of part.
func joinParts(parts [][]uint64, shape model.Shape, l layout) (whole []uint64) {
	next := make([]int, len(parts))
	inner := shape[l+1:].Elements()
	for i := range shape.Elements() {
		c := i / inner % shape[l] / (shape[l] / int64(len(parts)))
		whole = append(whole, parts[c][next[c]])
		next[c]++
	}
	return whole
}
