package ansor

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/model/schedule"
)

// A Method is the way in which a round finds the programs that it measures.
type Method string

// The methods; all but the first are for comparison (the paper's §7.1, Fig. 7).
const (
	// Evolution is the paper's with climbing in it: the best programs so far, mutated and crossed over for some
	// generations, ranked by the learned cost; and the best with a step, in shares that follow what each way has found.
	Evolution Method = "evolution"
	// Climb measures one step of the best program after the other, and learns no cost.
	Climb Method = "climb"
	// Random measures random programs: the paper's "no fine-tuning".
	Random Method = "random"
)

// Methods lists them.
var Methods = []Method{Evolution, Climb, Random}

// state is a task in tuning.
type state struct {
	*Task
	index    int
	measured map[string]bool
	trials   []trial
	// best[r] is the best time after r rounds, in ps of all passes; best[0] is the rule's.
	best   []int64
	chosen Program
	rounds int
	// earlier is the number of trials made by other tunings.
	earlier int
	done    bool    // no program is left that has not been measured, as far as sampling finds
	alike   [][]int // for each layer, those that may run alike
	// tried and found count the programs of each source, and those that were the best so far.
	tried, found, shares [sources]float64
}

// A source of programs to measure.
type source int

// The sources: random programs, those that the learned cost prefers, and the best program so far
// with a step in one layer, in several, or in all layers that are alike.
const (
	drawn source = iota
	preferred
	oneStep
	manySteps
	alikeStep
	sources
)

// trial is a measured program.
type trial struct {
	program  Program
	features [][]float64
	ps       int64
}

// id spells a program.
func (p Program) id() string {
	var b []byte
	for _, n := range p {
		for _, x := range n.Cores {
			b = strconv.AppendInt(append(b, 'x'), x, 10)
		}
		flags := int64(n.Vector)*16 + int64(n.Store)*4
		if n.ColumnsFirst {
			flags += 2
		}
		if n.Stay {
			flags++
		}
		if n.Once {
			flags += 64
		}
		for _, x := range [...]int64{n.Tiles, n.Depth, n.Loads, n.Pieces, n.Stage, n.Group, n.Rfactor, flags} {
			b = strconv.AppendInt(append(b, ' '), x, 10)
		}
		for _, list := range [...][]int64{n.Columns, n.Reduction} {
			b = append(b, '|')
			for _, x := range list {
				b = strconv.AppendInt(append(b, ' '), x, 10)
			}
		}
		b = append(b, ';')
	}
	return string(b)
}

// settled is a program whose nests name their bindings, so that programs that do the same are equal.
func (t *Task) settled(p Program) Program {
	for i, n := range p {
		if n.Cores == nil {
			same := *n
			same.Cores = t.kernel.Steps[i].Binding
			p[i] = &same
		}
	}
	return p
}

func (t *Task) random(r *rand.Rand) Program {
	p := make(Program, len(t.space))
	for i, sp := range t.space {
		p[i] = sp.sample(r)
	}
	return t.settled(p)
}

// mutated changes one layer's nest; nil if it can't run.
func (t *Task) mutated(r *rand.Rand, p Program) Program {
	i := r.IntN(len(p))
	n := t.space[i].mutate(r, p[i])
	if n == nil {
		return nil
	}
	made := slices.Clone(p)
	made[i] = n
	return t.settled(made)
}

// crossed takes each layer's nest from one of two programs, or crosses them where there is one layer.
func (t *Task) crossed(r *rand.Rand, a, b Program) Program {
	made := slices.Clone(a)
	for i := range made {
		switch {
		case len(made) == 1 || r.IntN(3) == 0:
			n := t.space[i].cross(r, a[i], b[i])
			if n == nil {
				return nil
			}
			made[i] = n
		case r.IntN(2) == 0:
			made[i] = b[i]
		}
	}
	return t.settled(made)
}

// candidate is a program with what the learned cost says of it.
type candidate struct {
	program Program
	id      string
	score   float64
}

// source draws where the next program is from.
func (s *state) source(r *rand.Rand, o *Options) source {
	switch {
	case s.chosen == nil:
		return drawn
	case o.Method == Climb:
		return oneStep
	}
	x := r.Float64()
	for of := range sources {
		if x -= s.shares[of]; x < 0 {
			return of
		}
	}
	return oneStep
}

// proposal is a program to measure.
type proposal struct {
	candidate
	of source
}

// propose finds up to n programs that have not been measured, of which the learned cost prefers those of the
// queue. It depends on what has been measured and on r only.
func (s *state) propose(r *rand.Rand, n int, queue *[]candidate, o *Options) (list []proposal) {
	taken := map[string]bool{}
	take := func(p Program, of source) {
		if p == nil {
			return
		}
		if id := p.id(); !taken[id] && !s.measured[id] {
			taken[id] = true
			list = append(list, proposal{candidate{program: p, id: id}, of})
		}
	}
	if len(s.trials) == 0 && !o.Blind {
		take(s.settled(slices.Clone(s.Rule)), drawn) // one of the first
	}
	for of, tries := s.source(r, o), 0; len(list) < n && tries < 20*n; tries++ {
		if of == preferred && len(*queue) == 0 {
			of = oneStep
		}
		before := len(list)
		switch of {
		case preferred:
			for ; len(*queue) > 0 && len(list) == before; *queue = (*queue)[1:] {
				take((*queue)[0].program, of)
			}
		case drawn:
			take(s.sampled(r, o), of)
		default:
			take(s.stepped(r, s.chosen, of), of)
		}
		if len(list) > before || tries%10 == 9 { // what is hard to find has its share, too
			of = s.source(r, o)
		}
	}
	return list
}

// stepped is a program with steps in one layer or several; nil if it can't run.
func (s *state) stepped(r *rand.Rand, p Program, how source) Program {
	made := s.mutated(r, p)
	switch how {
	case manySteps:
		for n := 1 + r.IntN(3); n > 0 && made != nil; n-- {
			made = s.mutated(r, made)
		}
	case alikeStep:
		if made == nil {
			return nil
		}
		for i, n := range made {
			if n == p[i] {
				continue
			}
			for _, k := range s.alike[i] {
				if s.space[k].allowed(n) {
					made[k] = n
				}
			}
			break
		}
	}
	return made
}

// likeLayers lists, for each layer, those of the same extents and rules, itself too.
func (t *Task) likeLayers() [][]int {
	list, known := make([][]int, len(t.space)), map[string][]int{}
	keys := make([]string, len(t.space))
	for i, sp := range t.space {
		keys[i] = fmt.Sprint(sp.loops.Dims, sp.loops.Elements, sp.loops.Vector, Program{sp.rule}.id())
		known[keys[i]] = append(known[keys[i]], i)
	}
	for i, key := range keys {
		list[i] = known[key]
	}
	return list
}

// sampled is a random program. Of many layers, all at random would hardly ever be fast: two
// or so are, and the others as in the best program so far, or as the rules have them, except
// where there is no fine-tuning, or the rules are not to be known.
func (s *state) sampled(r *rand.Rand, o *Options) Program {
	n := len(s.space)
	if n < 3 || o.Method == Random || o.Blind && s.chosen == nil {
		return s.random(r)
	}
	p := slices.Clone(s.Rule)
	if s.chosen != nil && (o.Blind || r.IntN(4) > 0) {
		p = slices.Clone(s.chosen)
	}
	for i, sp := range s.space {
		if r.IntN(n) < 2 {
			p[i] = sp.sample(r)
		}
	}
	return s.settled(p)
}

// evolve lets a population of the best measured programs, of these with a step, and of random ones have offspring
// in proportion to what the learned cost says. It returns all programs in the order of that cost.
func (s *state) evolve(r *rand.Rand, population int, model *Trees, o *Options) []candidate {
	var programs []Program
	for _, t := range s.trials[:min(len(s.trials), population/5+1)] {
		programs = append(programs, t.program)
	}
	for best := len(programs); best > 0 && len(programs) < 4*population/5; {
		made := s.stepped(r, programs[r.IntN(best)], oneStep+source(r.IntN(3)))
		if made == nil {
			made = s.sampled(r, o)
		}
		programs = append(programs, made)
	}
	for len(programs) < population {
		programs = append(programs, s.sampled(r, o))
	}
	scores := map[string]float64{}
	var all []candidate
	for generation := 0; ; generation++ {
		sums := make([]float64, len(programs))
		total, least := 0.0, 0.0
		for i, p := range programs {
			id := p.id()
			score, known := scores[id]
			if !known {
				score = model.Score(s.Features(p))
				scores[id] = score
				all = append(all, candidate{p, id, score})
			}
			sums[i] = score
			least = min(least, score)
		}
		if generation == o.Generations {
			slices.SortStableFunc(all,
				func(a, b candidate) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
			return all
		}
		for i := range sums {
			total += sums[i] - least + 1e-3
			sums[i] = total
		}
		parent := func() Program {
			i, _ := slices.BinarySearch(sums, r.Float64()*total)
			return programs[min(i, len(programs)-1)]
		}
		next := make([]Program, 0, len(programs))
		for len(next) < len(programs) {
			p := parent()
			var made Program
			if r.Float64() < o.Mutation {
				made = s.mutated(r, p)
			} else {
				made = s.crossed(r, p, parent())
			}
			if made == nil {
				made = p
			}
			next = append(next, made)
		}
		programs = next
	}
}

// decisions lists, decision by decision, what a nest may be changed to.
func (sp *space) decisions() [][]func(*schedule.Nest) {
	var cores, sketches, tiles, depth, columns, reduction, group, pieces, loads, stage []func(*schedule.Nest)
	for _, b := range sp.bindings {
		cores = append(cores, func(n *schedule.Nest) {
			c, k := len(n.Columns), len(n.Reduction)
			b.set(n)
			sp.columns(n, c)
			sp.reduction(n, k)
		})
	}
	for _, x := range sp.sketches {
		sketches = append(sketches, func(n *schedule.Nest) { sp.form(n, x) })
	}
	for _, x := range sp.tiles {
		tiles = append(tiles, func(n *schedule.Nest) { n.Tiles = x })
	}
	for _, x := range depths {
		depth = append(depth, func(n *schedule.Nest) { n.Depth = x })
	}
	for x := 1; x <= maxColumns; x++ {
		columns = append(columns, func(n *schedule.Nest) { sp.columns(n, x) })
	}
	for x := 1; x <= maxReduction; x++ {
		reduction = append(reduction, func(n *schedule.Nest) { sp.reduction(n, x) })
	}
	for _, x := range pieceCounts {
		pieces = append(pieces, func(n *schedule.Nest) { n.Pieces = x })
		loads = append(loads, func(n *schedule.Nest) { n.Loads = x })
	}
	for _, x := range sp.groups {
		group = append(group, func(n *schedule.Nest) { n.Group = x })
	}
	for _, x := range stageCounts {
		for _, once := range []bool{false, true} {
			if x > 0 || !once {
				stage = append(stage, func(n *schedule.Nest) { n.Stage, n.Once = x, once })
			}
		}
	}
	return [][]func(*schedule.Nest){ofCores: cores, ofTiles: tiles, ofColumns: columns, ofReduction: reduction,
		ofGroup: group, ofPlaces: sketches, ofPieces: pieces, ofLoads: loads, ofStage: stage, ofDepth: depth}
}

// Random is a random program that can run, or that of the rules if none is found.
func (t *Task) Random(r *rand.Rand) Program { return t.random(r) }
