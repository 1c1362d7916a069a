package rules

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// TVM makes kernels of a graph for a SIMT machine by the rules of TVM's operator fusion (Chen et al., OSDI 2018,
// section 3): an injective operator joins the kernel of its immediate post-dominator, which is where all paths from it
// meet again, if all that lies between is injective and the end is injective or a reduction. Nothing is computed twice
// for several kernels; cost plays no part, so that an expensive operator in front of a broadcast is computed for each
// element. Nothing joins a reduction's result. Products and convolutions are library calls here, and keep nothing to
// themselves.
func TVM(g *model.Graph, m *simt.Machine) (*fusion.Plan, error) {
	roles, err := fusion.Roles(g)
	if err != nil {
		return nil, err
	}
	f := &fuser{g: g, roles: roles, part: make([]model.OpID, len(g.Ops)), why: make([]string, len(g.Ops))}
	f.fuse()

	parts := map[model.OpID][]model.OpID{}
	var order []model.OpID // the last operator of each part: a part has one result
	for i := len(g.Ops) - 1; i >= 0; i-- {
		id := model.OpID(i)
		if roles[id] == fusion.View {
			continue
		}
		r := f.find(id)
		if parts[r] == nil {
			order = append(order, r)
		}
		parts[r] = append(parts[r], id)
	}
	slices.SortFunc(order, func(a, b model.OpID) int { return int(parts[a][0] - parts[b][0]) })
	var kernels []fusion.Kernel
	for _, r := range order {
		ops := parts[r]
		slices.Sort(ops)
		if roles[ops[0]] == fusion.Heavy {
			kernels = append(kernels, fusion.Library(g, m, ops[0]))
			continue
		}
		k, ok := fusion.Single(g, m, ops, nil, m.Plain)
		if !ok {
			return nil, fmt.Errorf("tvm: machine %s can't run the kernel of %q", m.Name, g.Op(ops[0]).Name)
		}
		kernels = append(kernels, k)
	}
	return fusion.Finish("tvm", g, m, kernels, func(from, to model.OpID) string { return f.why[from] })
}

type fuser struct {
	g     *model.Graph
	roles []fusion.Role
	part  []model.OpID // union-find
	why   []string     // an operator joins nothing behind it
}

func (f *fuser) find(id model.OpID) model.OpID {
	for f.part[id] != id {
		f.part[id] = f.part[f.part[id]]
		id = f.part[id]
	}
	return id
}

// fuse joins operators with their post-dominators.
func (f *fuser) fuse() {
	g := f.g
	const end = -1
	readers := make([][]model.OpID, len(g.Ops))
	dominator := make([]int, len(g.Ops)) // immediate post-dominator, or end
	depth := make([]int, len(g.Ops))     // in the tree of post-dominators
	for i := len(g.Ops) - 1; i >= 0; i-- {
		f.part[i] = model.OpID(i)
		if f.roles[i] == fusion.View {
			continue
		}
		leaves := false
		for _, t := range g.Ops[i].Outputs {
			r, out := fusion.Readers(g, t)
			readers[i] = append(readers[i], r...)
			leaves = leaves || out
		}
		dominator[i] = end
		if !leaves && len(readers[i]) > 0 {
			dominator[i] = int(readers[i][0])
			for _, c := range readers[i][1:] {
				a, b := dominator[i], int(c)
				for a != b && a != end && b != end {
					switch {
					case depth[a] > depth[b]:
						a = dominator[a]
					case depth[b] > depth[a]:
						b = dominator[b]
					default:
						a, b = dominator[a], dominator[b]
					}
				}
				if dominator[i] = a; a != b {
					dominator[i] = end
				}
			}
		}
		depth[i] = 1
		if dominator[i] != end {
			depth[i] = depth[dominator[i]] + 1
		}
	}
	for _, op := range g.Ops {
		i := int(op.ID)
		switch d := dominator[i]; {
		case f.roles[i] == fusion.View:
		case f.roles[i] == fusion.Reduce:
			f.why[i] = "nothing joins a reduction's result"
		case f.roles[i] != fusion.Light:
			f.why[i] = "a library call"
		case d == end:
			f.why[i] = "no operator ends all paths from it"
		case f.roles[d] == fusion.Heavy:
			f.why[i] = "a library call reads it"
		default:
			between, ok := f.between(model.OpID(i), model.OpID(d), readers)
			if !ok {
				f.why[i] = "a reduction lies between it and the operator where its paths meet"
				continue
			}
			for _, id := range append(between, model.OpID(i)) {
				f.part[f.find(id)] = f.find(model.OpID(d))
			}
		}
	}
}

// between lists what lies on the paths from an operator to its post-dominator; false if not all of it is injective.
func (f *fuser) between(from, to model.OpID, readers [][]model.OpID) ([]model.OpID, bool) {
	seen := map[model.OpID]bool{to: true}
	var out []model.OpID
	for stack := []model.OpID{from}; len(stack) > 0; {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, c := range readers[id] {
			if seen[c] {
				continue
			}
			if f.roles[c] != fusion.Light {
				return nil, false
			}
			seen[c] = true
			out = append(out, c)
			stack = append(stack, c)
		}
	}
	return out, true
}
