package lower

import (
	"slices"

	"github.com/dsasched/dsasched/hardware"
)

// A network is the links between the cores of a cluster. Moves take the shortest way, first along the last dimension of
// the grid (dimension order). A multicast has each byte once on each link of its tree.
//
// The cores of a cluster move in lockstep, and a command stands for all of their moves: each core takes as much from
// each place of the memory above the cores, or as much from each other core. A link of which another carries at least
// as much in each such move never holds anything up, so that only the others are resources of a program.
type network struct {
	cores, places int64
	links         []carried
	// The most links that a move passes from or to the memory, and from core to core, the one between a core and its
	// router included.
	memoryHops, coreHops int64
}

// carried has the shares of a link in moves into the cores, out of them and across them.
type carried [3]struct {
	// ways counts pairs of a place and a core, or of two cores, whose way leads over the link; ends their places, or the
	// cores that send.
	ways, ends int64
}

const (
	into = iota
	outOf
	across
)

// within reports whether another link carries at least as much in every move.
func (x carried) within(y carried) bool {
	for i := range x {
		if x[i].ways > y[i].ways || x[i].ends > y[i].ends {
			return false
		}
	}
	return true
}

// newNetwork returns the network between the cores of a machine; nil: each core has a link of its own to all else.
func newNetwork(spec *hardware.Spec) *network {
	if spec.Network == nil {
		return nil
	}
	r := newRoutes(spec)
	places := spec.Network.Memory
	if len(places) == 0 {
		places = []int{0}
	}
	n := &network{cores: int64(r.cores), places: int64(len(places))}
	all, last := make([]carried, r.links), make([][3]int, r.links)
	pass := func(from, to, kind, end int) int64 {
		route := r.route(from, to)
		for _, l := range route {
			x := &all[l][kind]
			if x.ways++; last[l][kind] != end+1 {
				last[l][kind] = end + 1
				x.ends++
			}
		}
		return int64(len(route))
	}
	for _, p := range places {
		for c := range r.cores {
			n.memoryHops = max(n.memoryHops, pass(p, c, into, p), pass(c, p, outOf, p))
		}
	}
	for a := range r.cores {
		for b := range r.cores {
			if a != b {
				n.coreHops = max(n.coreHops, pass(a, b, across, a))
			}
		}
	}
	if n.coreHops++; spec.Network.Kind != hardware.Bus {
		n.memoryHops++
	}
	for i, x := range all {
		more := func(y carried) bool { return x != y && x.within(y) }
		if x != (carried{}) && !slices.Contains(all[:i], x) && !slices.ContainsFunc(all, more) {
			n.links = append(n.links, x)
		}
	}
	return n
}

// resources is the number of links that are resources of a program, for each cluster.
func (n *network) resources() int {
	if n == nil {
		return 0
	}
	return len(n.links)
}

// bytes returns the traffic of a link under a move that brings the busiest core in bytes and takes out bytes out of it.
// Between the memory and the cores pass memory bytes, a broadcast counted once; 0: the move is between cores.
func (n *network) bytes(x carried, memory, in, out int64) int64 {
	switch {
	case in > 0 && out > 0:
		return min(ceilDiv(in*x[across].ways, max(1, n.cores-1)), out*x[across].ends)
	case in > 0:
		return min(ceilDiv(in*x[into].ways, n.places), ceilDiv(memory*x[into].ends, n.places))
	}
	return min(ceilDiv(out*x[outOf].ways, n.places), ceilDiv(memory*x[outOf].ends, n.places))
}

// routes are the ways over a network. Link 2(c·d + k) leads from core c one step forth along dimension k of d, the
// next one back; a bus is one link.
type routes struct {
	cores, links int
	grid         []int
	wraps        bool
	way          []int // scratch
}

func newRoutes(spec *hardware.Spec) *routes {
	r := &routes{cores: spec.CoreTypes[0].Count, wraps: spec.Network.Kind != hardware.Mesh}
	switch spec.Network.Kind {
	case hardware.Bus:
		r.links = 1
		return r
	case hardware.Ring:
		r.grid = []int{r.cores}
	default:
		r.grid = spec.CoreTypes[0].Grid
	}
	r.links = 2 * r.cores * len(r.grid)
	return r
}

// route lists the links on the way between two cores, until the next call.
func (r *routes) route(from, to int) []int {
	r.way = r.way[:0]
	if r.grid == nil {
		return append(r.way, 0)
	}
	stride := 1
	for k := len(r.grid) - 1; k >= 0; k-- {
		extent := r.grid[k]
		a, b := from/stride%extent, to/stride%extent
		steps, forth := b-a, true
		if steps < 0 {
			steps, forth = -steps, false
		}
		if r.wraps && 2*steps > extent || r.wraps && 2*steps == extent && !forth {
			steps, forth = extent-steps, !forth
		}
		for range steps {
			link, next := 2*(from*len(r.grid)+k), (a+1)%extent
			if !forth {
				link, next = link+1, (a+extent-1)%extent
			}
			r.way = append(r.way, link)
			from, a = from+(next-a)*stride, next
		}
		stride *= extent
	}
	return r.way
}
