package sim

import (
	"slices"
	"sort"

	"github.com/dsasched/dsasched/hardware/isa"
)

// Clusters that run the same commands do the same at the same time, so that one of
// them can be simulated for all. A cluster is a copy of an earlier one if
//
//   - the commands of each stand together in the program, and those of the one are
//     those of the other: same kinds, durations, dependencies and bytes, on queues
//     that correspond, in the same order;
//   - no command depends on one of another cluster;
//   - each use is of a resource that both share, or of one that only the one
//     cluster uses where the other uses its own, with the same rate;
//   - what is shared comes before what is not in the list of resources.
//
// Then exchanging the two clusters leaves the program as it is, and the rates are the same down to the last unit. For
// let L be the least level in sharing.solve. If a shared resource has it, that is chosen first, being the first by
// index, and all its flows freeze at L, on all copies. Else all shared levels are above L and, as levels never fall,
// stay there until each copy has frozen the same flows at L, in which the copies don't meet. In both cases the copies
// are alike again, and the shared resources have lost the same as if one flow had stood for all, with the sum of their
// coefficients.

// fold says which clusters are simulated.
type fold struct {
	// as is the cluster whose times a cluster has: itself, or the one that it is a copy of.
	as []int32
	// weight is the number of clusters a simulated cluster stands for, itself included.
	weight []uint64
	// from and to give the commands of each cluster. They mean something only if the cluster is a copy or has one.
	from, to []int32
	// shared marks the resources that several clusters use.
	shared []bool
}

// maxKinds is the number of different clusters a later one is compared with: a program of
// a thousand clusters, each another, is not compared pair by pair.
const maxKinds = 16

func (f *fold) isCopy(cluster int32) bool { return f.as[cluster] != cluster }

// noFold simulates every cluster.
func noFold(p *isa.Program) *fold {
	f := &fold{as: make([]int32, p.Clusters), weight: make([]uint64, p.Clusters), shared: make([]bool, len(p.Resources))}
	for k := range f.as {
		f.as[k], f.weight[k] = int32(k), 1
	}
	return f
}

// foldClusters finds the copies in a program that has passed its check.
func foldClusters(p *isa.Program) *fold {
	f := noFold(p)
	if p.As != nil { // a program that says so has passed a check of the same
		for k, a := range p.As {
			f.as[k], f.weight[k] = a, 0
			f.weight[a]++
		}
		for r := range p.Resources {
			f.shared[r] = p.Resources[r].Kind == isa.DDRBandwidth
		}
		return f
	}
	if p.Clusters < 2 ||
		unlike(p.Clusters, len(p.Commands), func(i int) int32 { return p.Queues[p.Commands[i].Queue].Cluster }) {
		return f
	}
	c := newComparison(p, f)
	if !c.stands() {
		return noFold(p)
	}
	var kinds []int32
	for k := range int32(p.Clusters) {
		if f.from[k] == nobody {
			continue
		}
		if i := slices.IndexFunc(kinds, func(a int32) bool { return c.alike(a, k) }); i >= 0 {
			f.as[k] = kinds[i]
			f.weight[kinds[i]]++
		} else if len(kinds) < maxKinds {
			kinds = append(kinds, k)
		}
	}
	return f
}

// A comparison of clusters looks for copies.
type comparison struct {
	*isa.Program
	*fold
	queues []int32 // of each cluster
	place  []int32 // of a queue among those of its cluster
	// here and there give each resource that only one of two clusters uses the other's that corresponds.
	here, there []int32
}

func newComparison(p *isa.Program, f *fold) *comparison {
	c := &comparison{Program: p, fold: f, queues: make([]int32, p.Clusters), place: make([]int32, len(p.Queues)),
		here: make([]int32, len(p.Resources)), there: make([]int32, len(p.Resources))}
	for q := range p.Queues {
		k := p.Queues[q].Cluster
		c.place[q] = c.queues[k]
		c.queues[k]++
	}
	f.from, f.to = slices.Repeat([]int32{nobody}, p.Clusters), make([]int32, p.Clusters)
	return c
}

// stands finds the commands of each cluster and the shared resources, and reports whether clusters can be compared: the
// commands of each stand together and depend on each other only, and shared resources come before others.
func (c *comparison) stands() bool {
	owner := slices.Repeat([]int32{nobody}, len(c.Resources)) // the only cluster that uses it
	for i := range c.Commands {
		x := &c.Commands[i]
		k := c.Queues[x.Queue].Cluster
		if c.from[k] == nobody {
			c.from[k] = int32(i)
		} else if c.to[k] != int32(i) {
			return false
		}
		c.to[k] = int32(i) + 1
		if slices.ContainsFunc(x.Deps, func(d int32) bool { return d < c.from[k] }) {
			return false
		}
		for _, u := range x.Uses {
			if o := &owner[u.Resource]; *o == nobody {
				*o = k
			} else if *o != k {
				c.shared[u.Resource] = true
			}
		}
	}
	alone := false
	for r, shared := range c.shared {
		if owner[r] == nobody {
			continue
		}
		if shared && alone {
			return false
		}
		alone = alone || !shared
	}
	return true
}

// alike reports whether cluster b is a copy of a.
func (c *comparison) alike(a, b int32) bool {
	n := c.to[a] - c.from[a]
	if c.from[b] == nobody || c.to[b]-c.from[b] != n || c.queues[a] != c.queues[b] {
		return false
	}
	for r := range c.here {
		c.here[r], c.there[r] = nobody, nobody
	}
	for i := range n {
		x, y := &c.Commands[c.from[a]+i], &c.Commands[c.from[b]+i]
		if x.Kind != y.Kind || x.DurationPs != y.DurationPs || c.place[x.Queue] != c.place[y.Queue] ||
			len(x.Deps) != len(y.Deps) || len(x.Uses) != len(y.Uses) {
			return false
		}
		for j, d := range x.Deps {
			if d-c.from[a] != y.Deps[j]-c.from[b] {
				return false
			}
		}
		for j, u := range x.Uses {
			if v := y.Uses[j]; u.Bytes != v.Bytes || !c.correspond(u.Resource, v.Resource) {
				return false
			}
		}
	}
	return true
}

// correspond reports whether one cluster can use resource u as another uses v: both are the same that is shared, or
// each is its cluster's own, has the same rate, and has corresponded to the other so far.
func (c *comparison) correspond(u, v int32) bool {
	if c.shared[u] || c.shared[v] {
		return u == v
	}
	if c.here[u] == nobody && c.there[v] == nobody {
		c.here[u], c.there[v] = v, u
	}
	return c.here[u] == v && c.there[v] == u && c.Resources[u].BytesPerSecond == c.Resources[v].BytesPerSecond
}

// unlike reports whether no two clusters can be alike by the n commands or buffers that each has, of
// which of says the cluster: no two have as many, or those of one do not stand together. It looks at few.
func unlike(clusters, n int, of func(i int) int32) bool {
	seen, counts := make([]bool, clusters), map[int]bool{}
	for i := 0; i < n; {
		k := of(i)
		count := sort.Search(n-i, func(j int) bool { return of(i+j) != k })
		if seen[k] {
			return true
		}
		if counts[count] {
			return false
		}
		seen[k], counts[count] = true, true
		i += count
	}
	return true
}

// spread gives copies the places of the times of their originals.
func (f *fold) spread(times []int32) {
	for k, a := range f.as {
		if int(a) != k && f.from != nil {
			copy(times[f.from[k]:f.to[k]], times[f.from[a]:f.to[a]])
		}
	}
}
