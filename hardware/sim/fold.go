package sim

import (
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
	if p.Clusters < 2 {
		return f
	}
	none := noFold(p)
	if unlike(p.Clusters, len(p.Commands), func(i int) int32 { return p.Queues[p.Commands[i].Queue].Cluster }) {
		return none
	}

	// The commands of each cluster, and the queues by their place among those of their cluster.
	const nobody = -1
	f.from, f.to = make([]int32, p.Clusters), make([]int32, p.Clusters)
	queues := make([]int32, p.Clusters)
	place := make([]int32, len(p.Queues))
	for q := range p.Queues {
		k := p.Queues[q].Cluster
		place[q] = queues[k]
		queues[k]++
	}
	owner := make([]int32, len(p.Resources)) // the only cluster that uses it
	for r := range owner {
		owner[r] = nobody
	}
	for k := range f.from {
		f.from[k] = nobody
	}
	for i := range p.Commands {
		c := &p.Commands[i]
		k := p.Queues[c.Queue].Cluster
		switch {
		case f.from[k] == nobody:
			f.from[k] = int32(i)
		case f.to[k] != int32(i):
			return none
		}
		f.to[k] = int32(i) + 1
		for _, d := range c.Deps {
			if d < f.from[k] {
				return none
			}
		}
		for _, u := range c.Uses {
			switch owner[u.Resource] {
			case nobody:
				owner[u.Resource] = k
			case k:
			default:
				f.shared[u.Resource] = true
			}
		}
	}
	alone := false
	for r := range f.shared {
		if owner[r] == nobody {
			continue
		}
		if f.shared[r] && alone {
			return none
		}
		alone = alone || !f.shared[r]
	}

	here, there := make([]int32, len(p.Resources)), make([]int32, len(p.Resources))
	isCopy := func(a, b int32) bool {
		n := f.to[a] - f.from[a]
		if f.from[b] == nobody || f.to[b]-f.from[b] != n || queues[a] != queues[b] {
			return false
		}
		for r := range here {
			here[r], there[r] = nobody, nobody
		}
		for i := range n {
			x, y := &p.Commands[f.from[a]+i], &p.Commands[f.from[b]+i]
			if x.Kind != y.Kind || x.DurationPs != y.DurationPs || place[x.Queue] != place[y.Queue] ||
				len(x.Deps) != len(y.Deps) || len(x.Uses) != len(y.Uses) {
				return false
			}
			for j, d := range x.Deps {
				if d-f.from[a] != y.Deps[j]-f.from[b] {
					return false
				}
			}
			for j, u := range x.Uses {
				v := y.Uses[j]
				if u.Bytes != v.Bytes {
					return false
				}
				if f.shared[u.Resource] || f.shared[v.Resource] {
					if u.Resource != v.Resource {
						return false
					}
					continue
				}
				if here[u.Resource] == nobody && there[v.Resource] == nobody {
					here[u.Resource], there[v.Resource] = v.Resource, u.Resource
				}
				if here[u.Resource] != v.Resource || there[v.Resource] != u.Resource ||
					p.Resources[u.Resource].BytesPerSecond != p.Resources[v.Resource].BytesPerSecond {
					return false
				}
			}
		}
		return true
	}
	var kinds []int32
	for k := range int32(p.Clusters) {
		if f.from[k] == nobody {
			continue
		}
		found := false
		for _, a := range kinds {
			if isCopy(a, k) {
				f.as[k] = a
				f.weight[a]++
				found = true
				break
			}
		}
		if !found && len(kinds) < maxKinds {
			kinds = append(kinds, k)
		}
	}
	return f
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
