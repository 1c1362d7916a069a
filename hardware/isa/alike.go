package isa

import (
	"fmt"
	"slices"
)

// checkAlike verifies what [Program.As] asks for.
func (p *Program) checkAlike() (what string) {
	if p.As == nil {
		return ""
	}
	if len(p.As) != p.Clusters {
		return fmt.Sprintf("%d clusters are as others, expected all %d", len(p.As), p.Clusters)
	}
	for k, a := range p.As {
		if a < 0 || int(a) > k || p.As[a] != a {
			return fmt.Sprintf("cluster %d is as cluster %d, expected itself or an earlier one that is as itself", k, a)
		}
	}
	queues, resources, ok := p.Parts()
	if !ok {
		return "the clusters that are alike have other queues or resources than each other"
	}
	for k, a := range p.As {
		for i, q := range queues[k] {
			if p.Queues[q].Kind != p.Queues[queues[a][i]].Kind {
				return fmt.Sprintf("queue %d is not as queue %d of the other cluster", q, queues[a][i])
			}
		}
		for i, r := range resources[k] {
			if b := resources[a][i]; p.Resources[r].Kind != p.Resources[b].Kind ||
				p.Resources[r].BytesPerSecond != p.Resources[b].BytesPerSecond {
				return fmt.Sprintf("resource %d is not as resource %d of the other cluster", r, b)
			}
		}
	}
	owner := slices.Repeat([]int32{-1}, len(p.Resources))
	for k, list := range resources {
		for _, r := range list {
			owner[r] = int32(k)
		}
	}
	last, begin := int32(-1), 0
	from, to := make([]int32, p.Clusters), make([]int32, p.Clusters) // of the commands of each cluster
	for i := range p.Commands {
		c := &p.Commands[i]
		k := p.Queues[c.Queue].Cluster
		if k != last {
			if k < last || p.As[k] != k {
				return fmt.Sprintf(
					"command %d is of cluster %d, expected the commands of those that are as themselves, one after another", i, k)
			}
			last, begin, from[k] = k, i, int32(i)
		}
		to[k] = int32(i) + 1
		for _, d := range c.Deps {
			if int(d) < begin {
				return fmt.Sprintf("command %d depends on one of another cluster", i)
			}
		}
		for _, u := range c.Uses {
			if o := owner[u.Resource]; o >= 0 && o != k {
				return fmt.Sprintf("command %d uses a resource of cluster %d", i, o)
			}
		}
	}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; p.As[b.Cluster] != b.Cluster || i > 0 && b.Cluster < p.Buffers[i-1].Cluster {
			return fmt.Sprintf(
				"buffer %d is of cluster %d, expected those of clusters that are as themselves, one after another", i, b.Cluster)
		}
		k := p.Buffers[i].Cluster
		foreign := func(c int32) bool { return c < from[k] || c >= to[k] }
		if foreign(p.Buffers[i].First) || slices.ContainsFunc(p.Buffers[i].Lasts, foreign) {
			return fmt.Sprintf("buffer %d is used by commands of another cluster", i)
		}
	}
	return ""
}

// Parts lists each cluster's queues and its own resources: those that are not the DDR's, in equal shares. It is not ok
// if the clusters have not as many each, or if a resource of the DDR stands behind.
func (p *Program) Parts() (queues, resources [][]int32, ok bool) {
	queues, resources = make([][]int32, p.Clusters), make([][]int32, p.Clusters)
	for q := range p.Queues {
		k := p.Queues[q].Cluster
		queues[k] = append(queues[k], int32(q))
	}
	shared := 0
	for shared < len(p.Resources) && p.Resources[shared].Kind == DDRBandwidth {
		shared++
	}
	each := (len(p.Resources) - shared) / max(1, p.Clusters)
	ok = shared+each*p.Clusters == len(p.Resources)
	for r := shared; r < len(p.Resources) && ok; r++ {
		k := (r - shared) / each
		resources[k] = append(resources[k], int32(r))
		ok = p.Resources[r].Kind != DDRBandwidth
	}
	for k := range queues {
		ok = ok && len(queues[k]) == len(queues[0])
	}
	return queues, resources, ok
}

// Unfolded is the program in which each cluster has its own commands and buffers. It shares
// with p what they have in common.
func (p *Program) Unfolded() *Program {
	if p.As == nil {
		return p
	}
	full := *p
	full.As = nil
	queues, resources, _ := p.Parts()
	// Where the commands and buffers of each cluster begin and end.
	commands, buffers := make([][2]int, p.Clusters), make([][2]int, p.Clusters)
	for i := range p.Commands {
		k := p.Queues[p.Commands[i].Queue].Cluster
		if commands[k][1] == 0 {
			commands[k][0] = i
		}
		commands[k][1] = i + 1
	}
	for i := range p.Buffers {
		k := p.Buffers[i].Cluster
		if buffers[k][1] == 0 {
			buffers[k][0] = i
		}
		buffers[k][1] = i + 1
	}
	nCommands, nBuffers, nIndices, nUses := 0, 0, 0, 0
	for _, a := range p.As {
		for _, c := range p.Commands[commands[a][0]:commands[a][1]] {
			nIndices += len(c.Deps)
			nUses += len(c.Uses)
		}
		for _, b := range p.Buffers[buffers[a][0]:buffers[a][1]] {
			nIndices += len(b.Lasts)
		}
		nCommands += commands[a][1] - commands[a][0]
		nBuffers += buffers[a][1] - buffers[a][0]
	}
	full.Commands, full.Buffers = make([]Command, 0, nCommands), make([]Buffer, 0, nBuffers)
	indices, uses := make([]int32, 0, nIndices), make([]Use, 0, nUses)
	queue, resource := make([]int32, len(p.Queues)), make([]int32, len(p.Resources))
	for r := range resource {
		resource[r] = int32(r)
	}
	for k, a := range p.As {
		for i, q := range queues[a] {
			queue[q] = queues[k][i]
		}
		for i, r := range resources[a] {
			resource[r] = resources[k][i]
		}
		shift, later := int32(len(full.Commands)-commands[a][0]), int32(len(full.Buffers)-buffers[a][0])
		shifted := func(list []int32) []int32 {
			if list == nil {
				return nil
			}
			n := len(indices)
			for _, i := range list {
				indices = append(indices, i+shift)
			}
			return indices[n:len(indices):len(indices)]
		}
		for _, c := range p.Commands[commands[a][0]:commands[a][1]] {
			c.Queue = queue[c.Queue]
			if c.From > 0 {
				c.From += later
			}
			if c.To > 0 {
				c.To += later
			}
			c.Deps = shifted(c.Deps)
			if c.Uses != nil {
				n := len(uses)
				for _, u := range c.Uses {
					uses = append(uses, Use{resource[u.Resource], u.Bytes})
				}
				c.Uses = uses[n:len(uses):len(uses)]
			}
			full.Commands = append(full.Commands, c)
		}
		for _, b := range p.Buffers[buffers[a][0]:buffers[a][1]] {
			b.Cluster = int32(k)
			b.First += shift
			b.Lasts = shifted(b.Lasts)
			full.Buffers = append(full.Buffers, b)
		}
	}
	return &full
}
