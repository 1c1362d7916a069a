package rcpsp

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
)

// A rule ranks activities; ties go to the smaller index.
type rule int

// The priority rules.
const (
	listed         rule = iota // the project's own order
	latestFinish               // least latest finish: the longest chain behind it first
	latestStart                // least latest start
	mostSuccessors             // most activities behind it, directly or not
	greatestRank               // longest together with those right behind it
	shortestFirst              // shortest duration
	mostWork                   // most duration times share of capacities
	numRules
)

// listBy is the priority list of a valid project by a rule: each activity stands behind
// those it comes after.
func listBy(p *Project, rule rule) []int {
	n := len(p.Activities)
	rank := make([]float64, n)
	switch rule {
	case latestFinish, latestStart:
		for i, t := range p.Tails() {
			rank[i] = -float64(t)
			if rule == latestStart {
				rank[i] -= float64(p.Activities[i].Duration)
			}
		}
	case mostSuccessors:
		for i, c := range behind(p) {
			rank[i] = -float64(c)
		}
	case greatestRank:
		for i, next := range p.Successors() {
			rank[i] -= float64(p.Activities[i].Duration)
			for _, j := range next {
				rank[i] -= float64(p.Activities[j].Duration)
			}
		}
	case shortestFirst:
		for i, a := range p.Activities {
			rank[i] = float64(a.Duration)
		}
	case mostWork:
		for i, a := range p.Activities {
			for k, d := range a.Demand {
				if d > 0 {
					rank[i] -= float64(a.Duration) * float64(d) / float64(p.Resources[k].Capacity)
				}
			}
		}
	}
	return ranked(p, rank)
}

// behind counts the activities that come after each, directly or not.
func behind(p *Project) []int {
	order := mustOrder(p)
	next := p.Successors()
	count := make([]int, len(order))
	seen := make([]int, len(order))
	for i := range seen {
		seen[i] = -1
	}
	var stack []int
	for _, i := range order {
		stack = append(stack[:0], i)
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, j := range next[at] {
				if seen[j] != i {
					seen[j] = i
					count[i]++
					stack = append(stack, j)
				}
			}
		}
	}
	return count
}

func mustOrder(p *Project) []int {
	order, err := p.Order()
	if err != nil {
		panic("rcpsp: " + err.Error()) // the caller has validated it
	}
	return order
}

// ranked puts activities in ascending rank as far as precedence allows: always the
// least of those whose predecessors are all listed.
func ranked(p *Project, rank []float64) []int {
	byRank := make([]int, len(rank))
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortFunc(byRank, func(i, j int) int { return cmp.Or(cmp.Compare(rank[i], rank[j]), cmp.Compare(i, j)) })
	place := make([]int, len(rank))
	for n, i := range byRank {
		place[i] = n
	}
	// The topological order by places is the order of the project with activities renamed.
	named := &Project{Activities: make([]Activity, len(rank))}
	for i, a := range p.Activities {
		after := make([]int, len(a.After))
		for n, h := range a.After {
			after[n] = place[h]
		}
		named.Activities[place[i]].After = after
	}
	list := mustOrder(named)
	for n, i := range list {
		list[n] = byRank[i]
	}
	return list
}

// serially starts the activities of a list one by one, each as early as possible. The
// list must hold each activity once, behind those it comes after.
func serially(p *Project, list []int) []int64 {
	start := make([]int64, len(p.Activities))
	use := newProfile(p)
	for _, i := range list {
		start[i] = use.place(p, i, start, 0)
	}
	return start
}

// InOrder is Serial on the project's own order (Project.Order) with in-order issue: no
// activity starts before an earlier one with a demand for the same resource has.
func InOrder(p *Project) []int64 {
	start := make([]int64, len(p.Activities))
	use := newProfile(p)
	issued := make([]int64, len(p.Resources))
	for _, i := range mustOrder(p) {
		from := int64(0)
		for k, d := range p.Activities[i].Demand {
			if d > 0 {
				from = max(from, issued[k])
			}
		}
		start[i] = use.place(p, i, start, from)
		for k, d := range p.Activities[i].Demand {
			if d > 0 {
				issued[k] = start[i]
			}
		}
	}
	return start
}

// parallel moves through time and starts at each moment, in the order of a list, what
// can start. The list must be as for Serial.
func parallel(p *Project, list []int) []int64 {
	n := len(p.Activities)
	start := make([]int64, n)
	free := make([]int64, len(p.Resources))
	for k, r := range p.Resources {
		free[k] = r.Capacity
	}
	ready := make([]int64, n) // when the predecessors have ended, if all have started
	waits := make([]int, n)
	for i, a := range p.Activities {
		waits[i] = len(a.After)
	}
	next := p.Successors()
	var running []int
	waiting := slices.Clone(list)
	now := int64(0)
	for len(waiting) > 0 {
		kept := waiting[:0]
		for _, i := range waiting {
			a := &p.Activities[i]
			if waits[i] > 0 || ready[i] > now || a.Duration > 0 && !fits(a.Demand, free) {
				kept = append(kept, i)
				continue
			}
			start[i] = now
			for _, j := range next[i] {
				waits[j]--
				ready[j] = max(ready[j], now+a.Duration)
			}
			if a.Duration == 0 {
				continue
			}
			running = append(running, i)
			for k, d := range a.Demand {
				free[k] -= d
			}
		}
		waiting = kept
		// To the next end. Something runs: else the first of the list could start.
		end := int64(-1)
		for _, i := range running {
			if e := start[i] + p.Activities[i].Duration; end < 0 || e < end {
				end = e
			}
		}
		if end < 0 {
			break
		}
		now = end
		still := running[:0]
		for _, i := range running {
			if start[i]+p.Activities[i].Duration > now {
				still = append(still, i)
				continue
			}
			for k, d := range p.Activities[i].Demand {
				free[k] += d
			}
		}
		running = still
	}
	return start
}

func fits(demand, free []int64) bool {
	for k, d := range demand {
		if d > free[k] {
			return false
		}
	}
	return true
}

// justify improves start times by moving everything late, then everything early, for
// as long as that shortens the makespan.
func justify(p *Project, start []int64) []int64 {
	back := p.Reversed()
	best, span := start, p.Makespan(start)
	for {
		late := serially(back, byEnd(p, best))
		total := back.Makespan(late)
		mirrored := make([]int64, len(late))
		for i := range late {
			mirrored[i] = total - late[i] - p.Activities[i].Duration
		}
		early := serially(p, byStart(p, mirrored))
		if got := p.Makespan(early); got < span {
			best, span = early, got
			continue
		}
		return best
	}
}

// byEnd lists a project's mirror: the last to end first. Precedence settles ties.
func byEnd(p *Project, start []int64) []int {
	rank := make([]float64, len(start))
	for i := range start {
		rank[i] = -float64(start[i] + p.Activities[i].Duration)
	}
	return ranked(p.Reversed(), rank)
}

func byStart(p *Project, start []int64) []int {
	rank := make([]float64, len(start))
	for i := range start {
		rank[i] = float64(start[i])
	}
	return ranked(p, rank)
}

// ListOptions are settings of [Best].
type ListOptions struct {
	// Samples is the number of lists that Best draws at random beside one per rule; 0 is 200,
	// negative is none.
	Samples int
	// Seed chooses the draws. Each seed gives one answer.
	Seed uint64
}

// Best is the shortest schedule of a valid project that list scheduling finds: in
// order, and serial and parallel by each rule and by samples around the latest finish,
// each justified. If ctx ends, it is the shortest until then.
func Best(ctx context.Context, p *Project, opt ListOptions) []int64 {
	var best []int64
	span, bound := int64(0), p.Bound()
	try := func(start []int64) bool {
		if got := p.Makespan(start); best == nil || got < span {
			best, span = start, got
		}
		return span == bound || ctx.Err() != nil
	}
	if try(InOrder(p)) {
		return best
	}
	for r := listed; r < numRules; r++ {
		list := listBy(p, r)
		if try(justify(p, serially(p, list))) || try(justify(p, parallel(p, list))) {
			return best
		}
	}
	samples := opt.Samples
	samples = cmp.Or(samples, 200)
	rng := rand.New(rand.NewPCG(opt.Seed, 0))
	tails := p.Tails()
	longest := int64(1)
	for _, t := range tails {
		longest = max(longest, t)
	}
	rank := make([]float64, len(tails))
	for n := 0; n < samples; n++ {
		for i, t := range tails {
			rank[i] = -float64(t)/float64(longest) + 0.6*rng.Float64()
		}
		list := ranked(p, rank)
		if try(justify(p, serially(p, list))) {
			return best
		}
	}
	return best
}
