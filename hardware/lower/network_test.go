package lower

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

// linked is a machine without an LLB whose cores are linked.
func linked(t *testing.T, kind string, memory []int, grid ...int) *hardware.Spec {
	t.Helper()
	s, err := hardware.Load("wormhole-n150")
	if err != nil {
		t.Fatal(err)
	}
	s.CoreTypes[0].Count = 1
	for _, n := range grid {
		s.CoreTypes[0].Count *= n
	}
	s.Network = &hardware.Network{Kind: kind, Memory: memory}
	if s.CoreTypes[0].Grid = nil; len(grid) > 1 {
		s.CoreTypes[0].Grid = grid
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

// A hop is a move of bytes over links, which may branch.
type hop struct {
	links []int
	bytes int64
}

// flow simulates moves that begin together, each in a queue of its own, over links of a byte per nanosecond.
func flow(t *testing.T, links int, moves []hop) int64 {
	t.Helper()
	p := &isa.Program{Name: "links", Clusters: 1, Labels: []string{""}}
	for l := range links {
		p.Resources = append(p.Resources, isa.Resource{Name: fmt.Sprint(l), BytesPerSecond: 1e9})
	}
	for i, m := range moves {
		p.Queues = append(p.Queues, isa.Queue{Name: fmt.Sprint(i)})
		c := isa.Command{Kind: isa.Exchange, Queue: int32(i), Bytes: m.bytes}
		for _, l := range m.links {
			c.Uses = append(c.Uses, isa.Use{Resource: int32(l), Bytes: m.bytes})
		}
		p.Commands = append(p.Commands, c)
	}
	r, err := sim.Run(t.Context(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.TotalPs
}

// near allows the picosecond that the simulator may be late by for each change of rates.
func near(t *testing.T, what string, got, want, late int64) {
	t.Helper()
	if got < want || got > want+late {
		t.Errorf("%s: %d ps, expected %d", what, got, want)
	}
}

// Of 64 cores in a mesh or torus of 8 x 8, as a Wormhole has them: each move over its own way takes exactly as long as
// the closed forms say.
func TestMesh(t *testing.T) {
	const k, n = 8, 1 << 20 // bytes
	for _, c := range []struct {
		kind                 string
		row, all, transposed int64 // bytes on the busiest link
	}{
		{hardware.Mesh, n, n * k * (k / 2) * (k / 2), n * (k - 1)},
		// Along a ring of k, k/2 steps forth or k/2 - 1 back at most: k/2 (k/2 + 1) / 2 pairs pass a link forth. A core of
		// row i sends forth along it up to k/2 columns, so that as many moves share the link before the diagonal.
		{hardware.Torus, n, n * k * (k / 2) * (k/2 + 1) / 2, n * (k / 2)},
	} {
		r := newRoutes(linked(t, c.kind, nil, k, k))
		var row, all, transposed []hop
		for a := range k * k {
			tree := map[int]bool{}
			for b := range k * k {
				way := append([]int(nil), r.route(a, b)...)
				if a != b {
					all = append(all, hop{way, n})
				}
				if b == a%k*k+a/k && a != b {
					transposed = append(transposed, hop{way, n})
				}
				if a%k == 0 && b/k == a/k {
					for _, l := range way {
						tree[l] = true
					}
				}
			}
			if a%k == 0 {
				var links []int
				for l := range r.links {
					if tree[l] {
						links = append(links, l)
					}
				}
				if len(links) != k-1 {
					t.Errorf("%s: a broadcast to a row of %d takes %d links", c.kind, k, len(links))
				}
				row = append(row, hop{links, n})
			}
		}
		near(t, c.kind+", row broadcast", flow(t, r.links, row), c.row*1000, 0)
		near(t, c.kind+", transposition", flow(t, r.links, transposed), c.transposed*1000, 100)
		near(t, c.kind+", all to all", flow(t, r.links, all), c.all*1000, 1000)
		net := newNetwork(linked(t, c.kind, nil, k, k))
		most := int64(0)
		for _, x := range net.links {
			most = max(most, net.bytes(x, 0, n*(k*k-1), n*(k*k-1)))
		}
		if most != c.all {
			t.Errorf("%s: the command of all to all has %d bytes on a link, expected %d", c.kind, most, c.all)
		}
		t.Logf("%s: %d resources for %d links; hops %d, %d", c.kind, len(net.links), r.links, net.memoryHops, net.coreHops)
	}
}

// Ways are connected and shortest, and what links are left carry as much of random moves as the busiest of all.
func TestNetworks(t *testing.T) {
	most := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		kind := []string{hardware.Bus, hardware.Ring, hardware.Mesh, hardware.Torus}[rng.IntN(4)]
		grid := []int{2 + rng.IntN(6)}
		if kind == hardware.Mesh || kind == hardware.Torus {
			grid = append(grid, 1+rng.IntN(6))
			if rng.IntN(3) == 0 {
				grid = append(grid, 1+rng.IntN(3))
			}
		}
		cores := 1
		for _, n := range grid {
			cores *= n
		}
		memory := rng.Perm(cores)[:1+rng.IntN(min(3, cores))]
		spec := linked(t, kind, memory, grid...)
		r, net := newRoutes(spec), newNetwork(spec)
		carry := make([][3]map[int]int64, r.links) // by source, what each of its moves brings over a link
		note := func(from, to, kind, source int) {
			for _, l := range r.route(from, to) {
				if carry[l][kind] == nil {
					carry[l][kind] = map[int]int64{}
				}
				carry[l][kind][source]++
			}
		}
		for a := range cores {
			for b := range cores {
				if kind != hardware.Bus {
					at, distance := a, 0
					for _, l := range r.route(a, b) {
						c, dim, back := l/2/len(grid), l/2%len(grid), l%2
						if c != at {
							t.Fatalf("%v %v: a way from %d to %d goes on from %d at %d", kind, grid, a, b, at, c)
						}
						stride := 1
						for _, n := range grid[dim+1:] {
							stride *= n
						}
						x := at / stride % grid[dim]
						next := (x + 1 + back*(grid[dim]-2)) % grid[dim]
						if kind == hardware.Mesh && next-x != 1-2*back {
							t.Fatalf("%v: the way from %d to %d wraps", grid, a, b)
						}
						at += (next - x) * stride
					}
					for i, stride := len(grid)-1, 1; i >= 0; i-- {
						d := a/stride%grid[i] - b/stride%grid[i]
						if d = max(d, -d); kind != hardware.Mesh {
							d = min(d, grid[i]-d)
						}
						distance, stride = distance+d, stride*grid[i]
					}
					if at != b || len(r.route(a, b)) != distance {
						t.Fatalf("%v %v: the way from %d to %d has %d links and ends at %d, expected %d", kind, grid, a, b,
							len(r.route(a, b)), at, distance)
					}
				}
				if a != b {
					note(a, b, across, a)
				}
			}
			for _, p := range memory {
				note(p, a, into, p)
				note(a, p, outOf, p)
			}
		}
		for range 20 {
			in, out, far := rng.Int64N(1000), rng.Int64N(1000), rng.Int64N(100000)
			busiest, kept := int64(0), int64(0)
			for l := range carry {
				ways, ends := [3]int64{}, [3]int64{}
				for kind := range ways {
					for _, n := range carry[l][kind] {
						ways[kind] += n
						ends[kind]++
					}
				}
				places, others := int64(len(memory)), int64(max(1, cores-1))
				up := func(a, b int64) int64 { return (a + b - 1) / b }
				switch {
				case in > 0 && out > 0:
					busiest = max(busiest, min(up(in*ways[across], others), out*ends[across]))
				case in > 0:
					busiest = max(busiest, min(up(in*ways[into], places), up(far*ends[into], places)))
				default:
					busiest = max(busiest, min(up(out*ways[outOf], places), up(far*ends[outOf], places)))
				}
			}
			for _, x := range net.links {
				kept = max(kept, net.bytes(x, far, in, out))
			}
			if busiest != kept {
				t.Fatalf("%v %v, memory at %v: %d in, %d out, %d of the memory: %d bytes on the links kept, %d on all", kind, grid,
					memory, in, out, far, kept, busiest)
			}
		}
		most = max(most, len(net.links))
	}
	t.Logf("at most %d links are left", most)
}
