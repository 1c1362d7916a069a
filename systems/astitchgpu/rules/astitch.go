package rules

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/heuristics/astitch"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// Options are switches. The zero value is the whole method.
type Options struct {
	// NoRemote leaves out remote stitching.
	NoRemote bool
	// NoMerging leaves every candidate dominant a group of its own.
	NoMerging bool
}

// AStitch makes kernels of a graph for a SIMT machine.
func AStitch(g *model.Graph, m *simt.Machine, opt Options) (*fusion.Plan, error) {
	scopes, err := Scopes(g, opt)
	if err != nil {
		return nil, err
	}
	kernels := make([]fusion.Kernel, 0, len(scopes))
	for _, s := range scopes {
		if s.Library {
			kernels = append(kernels, fusion.Library(g, m, s.Ops[0]))
			continue
		}
		k, ok := Kernel(g, m, s.Ops, opt, nil)
		if !ok {
			return nil, fmt.Errorf("astitch: machine %s can't run the kernel of %q", m.Name, g.Op(s.Ops[0]).Name)
		}
		kernels = append(kernels, k)
	}
	return fusion.Finish("astitch", g, m, kernels, func(from, to model.OpID) string {
		if opt.NoRemote {
			return "separate without remote stitching, or a library call between them"
		}
		return "a library call between them: one kernel would wait for itself"
	})
}

// A scope becomes one kernel: operators in execution order.
type scope struct {
	Library bool
	Ops     []model.OpID
}

// Scopes identifies the stitching scopes of a graph, in an order in which they can run.
// Views by themselves are in none.
func Scopes(g *model.Graph, opt Options) ([]scope, error) {
	roles, err := fusion.Roles(g)
	if err != nil {
		return nil, err
	}
	pos := make([]int, len(g.Ops))
	parts := make([][]model.OpID, len(g.Ops))
	heavy := make([]bool, len(g.Ops))
	for i := range g.Ops {
		pos[i], parts[i], heavy[i] = i, []model.OpID{model.OpID(i)}, roles[i] == fusion.Heavy
	}
	p := astitch.NewPartition(g, pos, parts)
	p.Scopes(heavy)
	idle := func(ops []model.OpID) bool {
		for _, id := range ops {
			if roles[id] != fusion.View {
				return false
			}
		}
		return true
	}
	if !opt.NoRemote {
		apart := append([]bool(nil), heavy...)
		for k, ops := range p.Ops {
			apart[k] = heavy[k] || idle(ops)
		}
		p.Remote(apart)
	}
	var out []scope
	for _, k := range p.Sorted() {
		if !idle(p.Ops[k]) {
			out = append(out, scope{heavy[k], p.Ops[k]})
		}
	}
	return out, nil
}

// Kernel makes the kernel of a stitching scope: groups around its dominants, their mappings, a scheme for each
// dependency between them. Links of which global says so are served by global memory even where shared memory would
// do; nil asks for none. It reports whether the machine can run the kernel.
func Kernel(g *model.Graph, m *simt.Machine, ops []model.OpID, opt Options,
	global func(from model.OpID, t model.TensorID) bool) (fusion.Kernel, bool) {
	k := fusion.Kernel{Block: simt.Block{Threads: m.Block.Threads}}
	s := &stitcher{g: g, m: m, wave: m.Wave(m.Start())}
	s.group(&k, ops, opt)
	s.spread(&k)
	s.link(&k, global)

	k.Block.Registers = m.Registers(s.blocks(&k), k.Block.Threads)
	k.Layout(g)
	for k.Block.SharedBytes > m.Shared(s.blocks(&k)) && s.overflow(&k) {
		k.Layout(g)
	}
	ok := k.Price(g, m)
	return k, ok
}

type stitcher struct {
	g    *model.Graph
	m    *simt.Machine
	wave int64
	of   map[model.OpID]int // group of each operator
	// parts has the contents of the parts from which groups are formed.
	parts []contents
}

// blocks is the number of blocks that must be on the machine at a time.
func (s *stitcher) blocks(k *fusion.Kernel) int64 {
	n := int64(1)
	for _, gr := range k.Groups {
		n = max(n, gr.Mapping.Blocks)
	}
	return min(n, s.wave)
}

// group forms the groups around the dominants.
func (s *stitcher) group(k *fusion.Kernel, ops []model.OpID, opt Options) {
	pos := make([]int, len(s.g.Ops))
	parts := make([][]model.OpID, len(ops))
	for i, id := range ops {
		pos[id], parts[i] = i, []model.OpID{id}
	}
	s.parts = make([]contents, len(parts))
	join := func(p *astitch.Partition, seed, other int, candidates map[model.OpID]bool) bool {
		return s.joins(p, seed, other, candidates, opt) && p.Mergeable(seed, other)
	}
	nests, loops := astitch.Around(s.g, pos, parts, join)
	s.of = map[model.OpID]int{}
	for i, nest := range nests {
		k.Groups = append(k.Groups, fusion.Group{Ops: nest, Dominant: loops[i].Dominant, Sub: loops[i].Sub})
		for _, id := range nest {
			s.of[id] = i
		}
	}
}

// contents is the demand of joins on a part with so many operators.
type contents struct {
	ops, reductions int
	leads           bool // a candidate dominant is among them
}

// contents counts what a part has, anew only when it has grown.
func (s *stitcher) contents(p *astitch.Partition, k int, candidates map[model.OpID]bool) contents {
	if c := s.parts[k]; c.ops == len(p.Ops[k]) {
		return c
	}
	c := contents{ops: len(p.Ops[k])}
	for _, id := range p.Ops[k] {
		if s.g.Op(id).Class() == model.ReductionClass {
			c.reductions++
		}
		c.leads = c.leads || candidates[id]
	}
	s.parts[k] = c
	return c
}

// joins reports whether all dependencies between two parts are local: one to one, or from operators so cheap that each
// reader computes them for itself; and whether the two have at most one reduction.
func (s *stitcher) joins(p *astitch.Partition, a, b int, candidates map[model.OpID]bool, opt Options) bool {
	x, y := s.contents(p, a, candidates), s.contents(p, b, candidates)
	if x.reductions+y.reductions > 1 || opt.NoMerging && x.leads && y.leads {
		return false
	}
	cheap := func(c contents) bool { return c.reductions == 0 && !c.leads }
	return (cheap(x) || s.oneToOne(p, a, b)) && (cheap(y) || s.oneToOne(p, b, a))
}

// oneToOne reports whether all that part b reads of part a is one to one.
func (s *stitcher) oneToOne(p *astitch.Partition, a, b int) bool {
	for _, id := range p.Ops[b] {
		op := s.g.Op(id)
		for _, t := range op.Inputs {
			from := s.g.Tensor(t).Producer
			if p.In(from, a) && op.Kind != "Split" && !s.g.OneToOne(op, t) {
				return false
			}
		}
	}
	return true
}

// spread chooses the mappings: reductions by their shape, then element-wise groups, the
// largest first. Such a group adapts to the rows of a neighbour (active locality).
func (s *stitcher) spread(k *fusion.Kernel) {
	threads := s.m.Block.Threads
	n := len(k.Groups)
	size := make([]int64, n)
	var rest []int
	mapped := make([]bool, n)
	for j := range k.Groups {
		gr := &k.Groups[j]
		op := s.g.Op(gr.Dominant)
		size[j] = s.g.Tensor(op.Outputs[0]).Shape.Elements()
		if op.Class() != model.ReductionClass {
			rest = append(rest, j)
			continue
		}
		cols := max(1, s.g.Tensor(op.Inputs[0]).Shape.Elements()/size[j])
		gr.Mapping, mapped[j] = simt.Pack(size[j], cols, threads, s.wave), true
	}
	near := s.near(k)
	sort.SliceStable(rest, func(a, b int) bool { return size[rest[a]] > size[rest[b]] })
	for _, j := range rest {
		gr := &k.Groups[j]
		best, links := simt.Pack(size[j], 1, threads, s.wave), 0
		tried := map[[2]int64]bool{}
		try := func(p simt.Mapping) {
			if tried[[2]int64{p.Rows, p.RowsPerBlock()}] || p.RowsPerBlock() == 0 {
				return
			}
			tried[[2]int64{p.Rows, p.RowsPerBlock()}] = true
			gr.Mapping = p
			if got := s.within(k, j, near[j], mapped); got > links {
				best, links = p, got
			}
		}
		for _, i := range near[j] {
			switch rows := k.Groups[i].Mapping.Rows; {
			case mapped[i] && size[j]%rows == 0:
				try(k.Groups[i].Mapping.Align(size[j] / rows))
			case !mapped[i] && size[i] < size[j] && size[j]%size[i] == 0:
				// The neighbour can follow, if that leaves as many blocks.
				if p := simt.Pack(size[i], size[j]/size[i], threads, s.wave); p.Parts == 1 && p.Blocks >= best.Blocks {
					try(p)
				}
			}
		}
		gr.Mapping, mapped[j] = best, true
	}
}

// near lists, for each group, those that it reads or that read it, ascending.
func (s *stitcher) near(k *fusion.Kernel) [][]int {
	near := make([][]int, len(k.Groups))
	for j := range k.Groups {
		seen := map[int]bool{j: true}
		s.each(k, j, func(from, _ model.OpID, _ model.TensorID) {
			if i := s.of[from]; !seen[i] {
				seen[i] = true
				near[j] = append(near[j], i)
				near[i] = append(near[i], j)
			}
		})
	}
	for j := range near {
		sort.Ints(near[j])
	}
	return near
}

// each calls f for every dependency of group j on a group of the kernel: once for each operator that reads and tensor
// that it reads.
func (s *stitcher) each(k *fusion.Kernel, j int, f func(from, to model.OpID, t model.TensorID)) {
	for _, id := range k.Groups[j].Ops {
		op := s.g.Op(id)
		if op.Class() == model.ViewClass {
			continue
		}
		for i, t := range op.Inputs {
			from := s.g.Tensor(fusion.Root(s.g, t)).Producer
			if from == model.NoOp || slices.Contains(op.Inputs[:i], t) {
				continue
			}
			if _, inside := s.of[from]; inside {
				f(from, id, t)
			}
		}
	}
}

// within counts the dependencies between group j and its mapped neighbours, or those
// that could follow it, that stay within blocks.
func (s *stitcher) within(k *fusion.Kernel, j int, near []int, mapped []bool) int {
	n := 0
	own := s.steps(k, j)
	count := func(reader int, read, made map[model.OpID]bool, maker int) {
		s.each(k, reader, func(from, to model.OpID, t model.TensorID) {
			if s.of[from] == maker && fusion.WithinBlocks(s.g, s.g.Op(to), t, k.Groups[maker].Mapping,
				k.Groups[reader].Mapping, made, read) {
				n++
			}
		})
	}
	for _, i := range near {
		was := k.Groups[i].Mapping
		if !mapped[i] { // as if it followed
			k.Groups[i].Mapping = k.Groups[j].Mapping.Align(1)
		}
		other := s.steps(k, i)
		count(j, own, other, i)
		count(i, other, own, j)
		k.Groups[i].Mapping = was
	}
	return n
}

func (s *stitcher) steps(k *fusion.Kernel, j int) map[model.OpID]bool {
	gr := &k.Groups[j]
	return fusion.Steps(s.g, gr.Ops, gr.Dominant, gr.Mapping.Rows)
}

// link gives every dependency between groups its scheme (passive locality), and lists the local ones.
func (s *stitcher) link(k *fusion.Kernel, global func(from model.OpID, t model.TensorID) bool) {
	steps := make([]map[model.OpID]bool, len(k.Groups))
	for j := range k.Groups {
		steps[j] = s.steps(k, j)
	}
	for j := range k.Groups {
		s.each(k, j, func(from, id model.OpID, t model.TensorID) {
			op, at := s.g.Op(id), s.of[from]
			l := fusion.Link{From: from, To: id, Tensor: t, Scheme: fusion.Local}
			a, b := k.Groups[at].Mapping, k.Groups[j].Mapping
			switch {
			case at == j:
			case a.Parts > 1:
				l.Scheme, l.Reason = fusion.Global, fmt.Sprintf("the maker's rows are split over %d blocks", a.Parts)
			case b.Parts > 1:
				l.Scheme, l.Reason = fusion.Global, fmt.Sprintf("the reader's rows are split over %d blocks", b.Parts)
			case !fusion.WithinBlocks(s.g, op, t, a, b, steps[at], steps[j]):
				l.Scheme, l.Reason = fusion.Global, "blocks read what other blocks make"
			case global != nil && global(from, t):
				l.Scheme, l.Reason = fusion.Global, "chosen"
			case s.g.OneToOne(op, t):
				l.Scheme, l.Reason = fusion.Regional, "one to one, but the reader is in another group"
			default:
				l.Scheme, l.Reason = fusion.Regional, "one to many"
			}
			k.Links = append(k.Links, l)
		})
	}
}

// overflow makes the largest regional value global; false if there is none left.
func (s *stitcher) overflow(k *fusion.Kernel) bool {
	worst, bytes := model.TensorID(-1), int64(-1)
	for _, l := range k.Links {
		root := fusion.Root(s.g, l.Tensor)
		if l.Scheme != fusion.Regional {
			continue
		}
		p := k.Groups[s.of[l.From]].Mapping
		if n := s.g.Tensor(root).Bytes() / p.Rows; n > bytes || n == bytes && root < worst {
			worst, bytes = root, n
		}
	}
	for i := range k.Links {
		if l := &k.Links[i]; l.Scheme == fusion.Regional && fusion.Root(s.g, l.Tensor) == worst {
			l.Scheme, l.Reason = fusion.Global, "shared memory is full"
		}
	}
	return worst >= 0
}
