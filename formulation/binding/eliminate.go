package binding

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/heap"
)

// defaultMaxTable keeps a table within 32 MiB.
const defaultMaxTable = 1 << 22

// maxTables keeps all tables together within a GiB or so: a table may take an eighth of what is left.
const maxTables = 1 << 27

// Search is dynamic programming over the graph of instances: it eliminates one node after the other.
//
// Idea: the best label of a node depends on the labels of its neighbours only. So for each combination of those the
// least cost of the node, with all its edges, is put into a table; the node disappears, and the table becomes a term
// that joins its neighbours. A leaf leaves a table over one node, a node within a chain or within a series-parallel
// graph one over two: on these, and on every graph where tables stay small, the last table is the optimum, and going
// back through the tables gives the labels.
//
//	while nodes are left:
//	    v <- the node whose neighbours have the fewest combinations of labels
//	    bucket <- all terms in which v takes part
//	    new term(neighbours) <- min over labels of v of the sum of bucket
//
// Where the table would pass Options.WorkLimit entries (0: 1 << 22) the bucket is cut into several, each small enough,
// and v takes the best label for each of them by itself (see minima). The sum of their minima is at most the minimum
// of their sum, so what remains at the end is a bound ("mini-buckets", Dechter and Rish 2003). Labels are then taken
// one after the other by the same terms, and bettered one at a time; a gap may be left.
//
// At a limit before the tables are complete the answer is the start, bettered, with [Problem.Floor].
func Search(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	began := time.Now()
	if err := p.begin(&opts); err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	r := p.search(ctx, opts)
	r.Method, r.Seconds = "search", time.Since(began).Seconds()
	return r, nil
}

func (p *Problem) search(ctx context.Context, opts Options) *Result {
	kept := p.Prune(ctx, false)
	e := &elimination{ctx: ctx, p: p.Restrict(kept), limit: cmp.Or(int(opts.WorkLimit), defaultMaxTable)}
	best, bound, report := opts.Start, p.Floor(), opts.Reporter()
	tell := func() {
		if best != nil {
			report(p.Seconds(best), bound, true)
		} else {
			report(math.Inf(1), bound, true)
		}
	}
	consider := func(c []int) {
		if best == nil || p.Seconds(c) < p.Seconds(best) {
			best = c
			tell()
		}
	}
	tell()
	sum, err := e.run()
	if err != nil {
		if best != nil {
			consider(p.improve(best))
		}
		return p.finish(best, bound, solve.Why(ctx))
	}
	bound = math.Max(sum, bound)
	tell()
	found := original(e.choose(), kept)
	consider(found)
	if p.Seconds(best)-bound <= tolerance*bound {
		return p.finish(best, bound, milp.Complete)
	}
	consider(p.improve(found))
	if opts.Start != nil {
		consider(p.improve(opts.Start))
	}
	return p.finish(best, bound, cmp.Or(solve.Why(ctx), milp.StopWork))
}

// A term is a table over the labels of some nodes, ascending; the last node's label changes fastest.
type term struct {
	nodes []int
	table []float64
}

type elimination struct {
	ctx   context.Context
	p     *Problem
	limit int // on the entries of a table
	total int // entries of all tables
	order []int
	// buckets[v] are the terms in which v took part when it went.
	buckets [][]term
}

func (e *elimination) size(v int) int { return len(e.p.Nodes[v].Labels) }

// entries is the size of a table over nodes, cut off above the limit.
func (e *elimination) entries(nodes []int) int {
	n := 1
	for _, v := range nodes {
		if n *= e.size(v); n > e.limit {
			return e.limit + 1
		}
	}
	return n
}

func (e *elimination) run() (float64, error) {
	var terms []term                    // the older ones first
	of := make([][]int, len(e.p.Nodes)) // numbers of the terms of each node, ascending
	constant := 0.0
	add := func(t term) {
		if len(t.nodes) == 0 {
			constant += t.table[0]
			return
		}
		for _, v := range t.nodes {
			of[v] = append(of[v], len(terms))
		}
		terms = append(terms, t)
	}
	for i, n := range e.p.Nodes {
		add(term{[]int{i}, n.Cost})
	}
	for _, ed := range e.p.Edges {
		t := term{nodes: []int{min(ed.From, ed.To), max(ed.From, ed.To)}}
		if ed.From < ed.To {
			for _, row := range ed.Cost {
				t.table = append(t.table, row...)
			}
		} else {
			for b := range e.size(ed.To) {
				for a := range e.size(ed.From) {
					t.table = append(t.table, ed.Cost[a][b])
				}
			}
		}
		add(t)
	}
	seen := make([]bool, len(e.p.Nodes))
	scope := func(v int) (all []int) { // each once before they are sorted, which takes half of the time else
		for _, k := range of[v] {
			for _, u := range terms[k].nodes {
				if !seen[u] {
					seen[u], all = true, append(all, u)
				}
			}
		}
		for _, u := range all {
			seen[u] = false
		}
		slices.Sort(all)
		return all
	}
	e.buckets = make([][]term, len(e.p.Nodes))
	// The lightest node is next, the first of those; a weight that has changed since is passed over.
	type node struct {
		weight float64
		number int
	}
	left := heap.Of(func(a, b node) bool { return cmp.Or(cmp.Compare(a.weight, b.weight), a.number-b.number) < 0 })
	weight := make([]float64, len(e.p.Nodes))
	weigh := func(v int) {
		was := weight[v]
		weight[v] = 1
		for _, u := range scope(v) {
			weight[v] *= float64(e.size(u))
		}
		if weight[v] != was {
			left.Push(node{weight[v], v})
		}
	}
	for v := range weight {
		weigh(v)
	}
	gone := make([]bool, len(e.p.Nodes))
	for left.Len() > 0 {
		if err := e.ctx.Err(); err != nil {
			return 0, err
		}
		first := left.Pop()
		v := first.number
		if gone[v] || first.weight != weight[v] {
			continue
		}
		gone[v] = true
		around := scope(v)
		for _, k := range slices.Clone(of[v]) {
			e.buckets[v] = append(e.buckets[v], terms[k])
			for _, u := range terms[k].nodes {
				of[u] = slices.DeleteFunc(of[u], func(n int) bool { return n == k })
			}
		}
		e.order = append(e.order, v)
		minima, err := e.minima(v, e.parts(e.buckets[v]))
		if err != nil {
			return 0, err
		}
		for _, t := range minima {
			add(t)
			e.total += len(t.table)
			e.limit = min(e.limit, max(1, (maxTables-e.total)/8))
		}
		for _, u := range around {
			if u != v {
				weigh(u)
			}
		}
	}
	return constant, nil
}

// parts cuts a bucket so that the table over all nodes of each part keeps to the limit, the largest terms first, each
// into the first part that takes it. A term that passes the limit by itself, an edge with very many labels, is a part.
func (e *elimination) parts(bucket []term) [][]term {
	sorted := append([]term(nil), bucket...)
	sort.SliceStable(sorted, func(a, b int) bool { return len(sorted[a].table) > len(sorted[b].table) })
	var parts [][]term
	var nodes [][]int
next:
	for _, t := range sorted {
		for k := range parts {
			if u := union(nodes[k], t.nodes); e.entries(u) <= e.limit {
				parts[k], nodes[k] = append(parts[k], t), u
				continue next
			}
		}
		parts, nodes = append(parts, []term{t}), append(nodes, t.nodes)
	}
	return parts
}

func union(a, b []int) []int {
	u := append(append([]int(nil), a...), b...)
	sort.Ints(u)
	return slices.Compact(u)
}

// minima are the terms that are left when v goes from the parts of its bucket, each with the best label for itself.
//
// A part that would like another label than the others makes the bound weaker. So what each label costs at least in
// each part is evened out first: each part gets the mean of the parts in place of its own, which changes no sum over
// all parts ("max-marginal matching", Ihler et al. 2012).
func (e *elimination) minima(v int, parts [][]term) ([]term, error) {
	if len(parts) > 1 {
		mean := make([]float64, e.size(v))
		lows := make([][]float64, len(parts))
		for k, part := range parts {
			low := slices.Repeat([]float64{math.Inf(1)}, e.size(v))
			err := e.sweep(v, part, e.around(v, part), func(_ int, sums []float64) {
				for l, sum := range sums {
					low[l] = min(low[l], sum)
				}
			})
			if err != nil {
				return nil, err
			}
			lows[k] = low
			for l := range low {
				mean[l] += low[l] / float64(len(parts))
			}
		}
		for k, low := range lows {
			shift := make([]float64, len(low))
			for l := range low {
				shift[l] = mean[l] - low[l]
			}
			parts[k] = append(parts[k], term{[]int{v}, shift})
		}
	}
	var out []term
	for _, part := range parts {
		t := term{nodes: e.around(v, part)}
		n := 1
		for _, u := range t.nodes {
			n *= e.size(u)
		}
		t.table = make([]float64, n)
		err := e.sweep(v, part, t.nodes, func(at int, sums []float64) { t.table[at] = slices.Min(sums) })
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// around lists the nodes of terms but v.
func (e *elimination) around(v int, terms []term) []int {
	var all []int
	for _, t := range terms {
		all = union(all, t.nodes)
	}
	return slices.DeleteFunc(all, func(u int) bool { return u == v })
}

// sweep visits all labels of nodes, which are those of terms but v, numbered as in a
// table over them, and gives for each the sum of terms under every label of v.
func (e *elimination) sweep(v int, terms []term, nodes []int, visit func(at int, sums []float64)) error {
	n := 1
	for _, u := range nodes {
		n *= e.size(u)
	}
	// step[k][j]: how far term k's index moves with the label of nodes[j]; own[k], with that of v.
	step, own := make([][]int, len(terms)), make([]int, len(terms))
	for k, t := range terms {
		step[k] = make([]int, len(nodes))
		s := 1
		for j := len(t.nodes) - 1; j >= 0; j-- {
			if t.nodes[j] == v {
				own[k] = s
			} else {
				step[k][sort.SearchInts(nodes, t.nodes[j])] = s
			}
			s *= e.size(t.nodes[j])
		}
	}
	label, index := make([]int, len(nodes)), make([]int, len(terms))
	sums := make([]float64, e.size(v))
	for at := range n {
		if at%(1<<14) == 0 {
			if err := e.ctx.Err(); err != nil {
				return err
			}
		}
		for l := range sums {
			sums[l] = 0
			for k := range terms {
				sums[l] += terms[k].table[index[k]+l*own[k]]
			}
		}
		visit(at, sums)
		for j := len(label) - 1; j >= 0; j-- {
			label[j]++
			if label[j] < e.size(nodes[j]) {
				for k := range terms {
					index[k] += step[k][j]
				}
				break
			}
			for k := range terms {
				index[k] -= step[k][j] * (label[j] - 1)
			}
			label[j] = 0
		}
	}
	return nil
}

// choose goes back through the buckets: when a node's turn comes, its neighbours in the bucket have their labels.
func (e *elimination) choose() []int {
	choice := make([]int, len(e.p.Nodes))
	for k := len(e.order) - 1; k >= 0; k-- {
		v, best := e.order[k], math.Inf(1)
		at := 0
		for l := range e.size(v) {
			choice[v] = l
			sum := 0.0
			for _, t := range e.buckets[v] {
				i := 0
				for _, u := range t.nodes {
					i = i*e.size(u) + choice[u]
				}
				sum += t.table[i]
			}
			if sum < best {
				best, at = sum, l
			}
		}
		choice[v] = at
	}
	return choice
}
