package split

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/internal/heap"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// DefaultMaxStates keeps the search within some 100 MB for networks of a few hundred atoms.
const DefaultMaxStates = 200_000

// Search finds a best choice of groups by dynamic programming over the sets of atoms that can have run.
//
// Idea: what the groups to come cost depends on the set D of atoms that have run, and not on the groups in which they
// did. D holds, with an atom, all that it reads. A group leads from D to a larger set if none of its atoms is in D and
// all that it reads from outside of itself are; each choice of groups is a path from the empty set to the full one,
// and the other way round.
//
//	open <- { {} at cost 0 }
//	while open is not empty:
//	    D <- the set of least cost + h(D); if it is full: done
//	    for each group S that can follow D:
//	        better D + S to the cost of D and that of S
//
// Where the groups are the intervals of one order of the atoms, the sets are its
// beginnings, and this is the textbook's dynamic program for parting a sequence.
//
// The bound h(D) is the sum of y(a) over the atoms that have not run. The y, one per atom, may be any numbers with
//
//	sum of y(a) over a in S <= cost of S     for all groups S            (D)
//
// that is, any point of the dual of the integer program's relaxation. With these, h never says too much, and never
// falls by more than a group costs, so that the first path to reach a set in order of cost + h is a best one. See
// potentials for where they come from.
//
// Groups that others replace are dropped before: if the atoms of S can be parted into other groups that are intervals
// of S in the order of the atoms, at no more cost, then these can run one after the other wherever S can.
//
// At a limit the answer is the best choice known; the least cost + h in open is a bound. Options.WorkLimit is the
// largest number of sets of atoms that are kept; 0 stands for [DefaultMaxStates].
func Search(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	began := time.Now()
	y, best, err := p.begin(&opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	limit := cmp.Or(int(opts.WorkLimit), DefaultMaxStates)
	tell := opts.Reporter()
	tell(p.Seconds(best), total(y), true)
	s := newSearch(p, p.prune(), y)
	s.tell = func(bound float64) { tell(p.Seconds(best), bound, false) }
	choice, bound, stop := s.run(ctx, p.Seconds(best), limit)
	if choice != nil && p.Seconds(choice) < p.Seconds(best) {
		best = choice
	}
	r := p.finish(best, bound, stop)
	tell(r.Objective, r.Bound, true)
	r.Method, r.Seconds, r.States = "search", time.Since(began).Seconds(), len(s.states)
	return r, nil
}

// begin checks the problem and the settings, and returns the potentials with the better
// of the start and of what they come with.
func (p *Problem) begin(opts *Options) (y []float64, best []int, err error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, nil, fmt.Errorf("split: %w", err)
	}
	y, best = p.potentials()
	if opts.Start != nil {
		if err := p.CheckChoice(opts.Start); err != nil {
			return nil, nil, err
		}
		if p.Seconds(opts.Start) <= p.Seconds(best) {
			best = opts.Start
		}
	}
	return y, best, nil
}

func total(y []float64) float64 {
	sum := 0.0
	for _, v := range y {
		sum += v
	}
	return sum
}

// potentials are numbers, one per atom, whose sum over the atoms of any group is at
// most the group's cost; so their sum over all is a bound on every choice. The
// choice is a best one among those whose groups are intervals of the atoms' order.
//
// For the intervals, d(i) is the least cost of parting the atoms before i: the differences y(i) = d(i+1) - d(i) keep
// to d(j) - d(i) <= cost of [i, j), and add up to the least cost. So without other groups the bound is met. A group
// that they sum up to too much takes its excess off its atoms, the same off each; then atoms are raised, in order and
// back, as far as all their groups let them.
func (p *Problem) potentials() (y []float64, choice []int) {
	n := len(p.Reads)
	d := make([]float64, n+1)
	last := make([]int, n+1)
	endingAt := make([][]int, n+1) // intervals
	of := make([][]int, n)         // groups of each atom
	for k, g := range p.Groups {
		first, end := g.Atoms[0], g.Atoms[len(g.Atoms)-1]+1
		if end-first == len(g.Atoms) {
			endingAt[end] = append(endingAt[end], k)
		}
		for _, a := range g.Atoms {
			of[a] = append(of[a], k)
		}
	}
	for i := 1; i <= n; i++ {
		d[i] = math.Inf(1)
		for _, k := range endingAt[i] {
			if c := d[p.Groups[k].Atoms[0]] + p.Groups[k].Seconds; c < d[i] {
				d[i], last[i] = c, k
			}
		}
	}
	for i := n; i > 0; i = p.Groups[last[i]].Atoms[0] {
		choice = append(choice, last[i])
	}
	slices.Reverse(choice)
	y = make([]float64, n)
	for a := range y {
		y[a] = d[a+1] - d[a]
	}
	slack := make([]float64, len(p.Groups))
	change := func(a int, by float64) {
		y[a] += by
		for _, k := range of[a] {
			slack[k] -= by
		}
	}
	for k, g := range p.Groups {
		slack[k] = g.Seconds
		for _, a := range g.Atoms {
			slack[k] -= y[a]
		}
	}
	for k, g := range p.Groups {
		// Within rounding the intervals keep to (D); what they lack costs as much.
		if by := slack[k] / float64(len(g.Atoms)); by < 0 {
			for _, a := range g.Atoms {
				change(a, by)
			}
		}
	}
	raise := func(a int) {
		room := math.Inf(1)
		for _, k := range of[a] {
			room = min(room, slack[k])
		}
		if room > 0 {
			change(a, room)
		}
	}
	for a := range n {
		raise(a)
	}
	for a := n - 1; a >= 0; a-- {
		raise(a)
	}
	return y, choice
}

// prune lists the groups that are not replaced: for each S the least cost of parting
// it into intervals of its atoms' order that are other groups.
func (p *Problem) prune() []int {
	// Of groups with the same atoms the cheapest, the first of equals, stands for all.
	n := len(p.Reads)
	from := make([][]int, n) // intervals by their first atom
	cheapest := map[string]int{}
	var kept []int
	for k, g := range p.Groups {
		key := name(g.Atoms)
		if other, there := cheapest[key]; !there || g.Seconds < p.Groups[other].Seconds {
			cheapest[key] = k
		}
	}
	stands := make([]bool, len(p.Groups))
	for _, k := range cheapest {
		stands[k] = true
	}
	for k, g := range p.Groups {
		if g.Atoms[len(g.Atoms)-1]-g.Atoms[0]+1 == len(g.Atoms) && stands[k] {
			from[g.Atoms[0]] = append(from[g.Atoms[0]], k)
		}
	}
	for k, g := range p.Groups {
		if !stands[k] {
			continue
		}
		// d[i]: the first i atoms of S.
		d := slices.Repeat([]float64{math.Inf(1)}, len(g.Atoms)+1)
		d[0] = 0
		for i, a := range g.Atoms {
			for _, part := range from[a] {
				atoms := p.Groups[part].Atoms
				end := i + len(atoms)
				// As long a run of numbers within S begins at a, or not.
				if len(atoms) == len(g.Atoms) || end > len(g.Atoms) || g.Atoms[end-1] != atoms[len(atoms)-1] {
					continue
				}
				d[end] = min(d[end], d[i]+p.Groups[part].Seconds)
			}
		}
		if len(g.Atoms) == 1 || d[len(g.Atoms)] > g.Seconds {
			kept = append(kept, k)
		}
	}
	return kept
}

// bits is a set of atoms, 64 to a word.
func bits(n int, atoms []int) []uint64 {
	b := make([]uint64, (n+63)/64)
	for _, a := range atoms {
		b[a/64] |= 1 << (a % 64)
	}
	return b
}

// name is equal for equal sets of atoms.
func name(atoms []int) string {
	first := slices.Min(atoms) / 8
	b := make([]byte, 8+slices.Max(atoms)/8-first+1)
	binary.LittleEndian.PutUint64(b, uint64(first))
	for _, a := range atoms {
		b[8+a/8-first] |= 1 << (a % 8)
	}
	return string(b)
}

func key(b []uint64) string {
	raw := make([]byte, 0, 8*len(b))
	for _, w := range b {
		for s := 0; s < 64; s += 8 {
			raw = append(raw, byte(w>>s))
		}
	}
	return string(raw)
}

// search is the state space.
type search struct {
	p *Problem
	y []float64
	// byFirst lists groups by their first atom, sets their atoms, needs what they read from outside.
	byFirst     [][]int
	sets, needs [][]uint64
	states      []state
	index       map[string]int
	open        *heap.Heap[entry]
	tell        func(bound float64)
}

// state is a set of atoms that have run, reached at least cost so far through one group from another.
type state struct {
	done        []uint64
	atoms       int
	cost, bound float64 // bound: of a complete choice through here
	from, group int
	closed      bool
}

// entry is a state that is open with a bound: least bound first, then most atoms, then by number.
type entry struct {
	bound        float64
	atoms, state int
}

func (a entry) before(b entry) bool {
	switch {
	case a.bound != b.bound:
		return a.bound < b.bound
	case a.atoms != b.atoms:
		return a.atoms > b.atoms
	}
	return a.state < b.state
}

func (s *search) push(at int) {
	s.open.Push(entry{s.states[at].bound, s.states[at].atoms, at})
}

func newSearch(p *Problem, kept []int, y []float64) *search {
	n := len(p.Reads)
	s := &search{open: heap.Of(entry.before), p: p, y: y, byFirst: make([][]int, n), index: map[string]int{},
		sets: make([][]uint64, len(p.Groups)), needs: make([][]uint64, len(p.Groups))}
	for _, k := range kept {
		atoms := p.Groups[k].Atoms
		s.byFirst[atoms[0]] = append(s.byFirst[atoms[0]], k)
		s.sets[k] = bits(n, atoms)
		var reads []int
		for _, a := range atoms {
			reads = append(reads, p.Reads[a]...)
		}
		s.needs[k] = bits(n, reads)
		for w := range s.needs[k] {
			s.needs[k][w] &^= s.sets[k][w]
		}
	}
	return s
}

// run returns the best choice that costs less than limit, or nil, a bound on all choices, and what interrupted it.
func (s *search) run(ctx context.Context, limit float64, most int) (choice []int, bound float64, stop milp.Stop) {
	n := len(s.p.Reads)
	worth := func(bound float64) bool { return bound < limit-tolerance*limit }
	if b := total(s.y); worth(b) {
		s.states = append(s.states, state{done: bits(n, nil), bound: b})
		s.index[key(s.states[0].done)] = 0
		s.push(0)
	}
	for visited := 0; s.open.Len() > 0; visited++ {
		at := s.open.Pop().state
		now := s.states[at]
		if now.closed {
			visited--
			continue
		}
		if now.atoms == n {
			for k := at; k != 0; k = s.states[k].from {
				choice = append(choice, s.states[k].group)
			}
			slices.Reverse(choice)
			return choice, now.cost, milp.Complete
		}
		if len(s.states) >= most {
			return nil, now.bound, milp.StopWork
		}
		if visited%64 == 0 {
			if stop := solve.Why(ctx); stop != milp.Complete {
				return nil, now.bound, stop
			}
			s.tell(now.bound)
		}
		s.states[at].closed = true
		for first := range n {
			if now.done[first/64]>>(first%64)&1 == 1 ||
				slices.ContainsFunc(s.p.Reads[first], func(r int) bool { return now.done[r/64]>>(r%64)&1 == 0 }) {
				continue
			}
			for _, k := range s.byFirst[first] {
				s.follow(at, k, worth)
			}
		}
	}
	return nil, limit, milp.Complete
}

// follow runs group k after the state at, if that can be and is worth it.
func (s *search) follow(at, k int, worth func(float64) bool) {
	now := &s.states[at]
	done := make([]uint64, len(now.done))
	for w := range done {
		if now.done[w]&s.sets[k][w] != 0 || s.needs[k][w]&^now.done[w] != 0 {
			return
		}
		done[w] = now.done[w] | s.sets[k][w]
	}
	g := &s.p.Groups[k]
	cost, bound := now.cost+g.Seconds, now.bound+g.Seconds
	for _, a := range g.Atoms {
		bound -= s.y[a]
	}
	bound = max(bound, now.bound) // rounding
	if !worth(bound) {
		return
	}
	name := key(done)
	to, there := s.index[name]
	if !there {
		to = len(s.states)
		s.index[name] = to
		s.states = append(s.states, state{done: done, atoms: now.atoms + len(g.Atoms), cost: cost, bound: bound,
			from: at, group: k})
		s.push(to)
		return
	}
	if st := &s.states[to]; !st.closed && cost < st.cost {
		st.cost, st.bound, st.from, st.group = cost, bound, at, k
		s.push(to) // what it had is behind
	}
}
