package serving

import (
	"math"
	"slices"

	"github.com/dsasched/dsasched/internal/heap"
)

// shares are the least that a step takes for each of its parts: see the package's documentation.
type shares struct {
	step, token, score float64 // e, f and h
	decode, key        float64 // a and b
	prompt             float64 // g
	before, most       float64 // of a token of a prompt for each one before its piece, and the tokens of a piece
	oneToken, oneScore float64 // what a step takes at least that has a token, that writes one
}

// lines are those below a curve up to a number of tokens that touch it: intercept, at least 0, and slope.
func lines(c *Curve, most int64) (list [][2]float64) {
	var at []int64
	for _, n := range c.At {
		if n < most {
			at = append(at, n)
		}
	}
	at = append(at, most)
	y := func(i int) float64 { return max(0, float64(c.at(at[i]).Ps-1)) } // costs are rounded down between knots
	ratio := math.Inf(1)
	for i := range at {
		ratio = min(ratio, y(i)/float64(at[i]))
	}
	list = append(list, [2]float64{0, ratio})
	for i := 0; i < len(at)-1; { // the lower hull
		next, slope := 0, math.Inf(1)
		for j := i + 1; j < len(at); j++ {
			if s := (y(j) - y(i)) / float64(at[j]-at[i]); s <= slope {
				next, slope = j, s
			}
		}
		if base := y(i) - slope*float64(at[i]); base >= 0 && slope >= 0 {
			list = append(list, [2]float64{base, slope})
		}
		i = next
	}
	return list
}

// shares lists those of each line below the products.
func (p *Problem) shares() (list []*shares) {
	t := p.Times
	s := &shares{score: lines(&t.Scores, p.Limits.Batch)[0][1], decode: math.Inf(1), key: math.Inf(1), prompt: math.Inf(1),
		before: math.Inf(1), most: float64(slices.Max(t.Prompt.Rows)), oneToken: float64(t.Tokens.at(1).Ps),
		oneScore: float64(t.Scores.at(1).Ps)}
	for n := range p.Limits.Batch {
		r := t.row(n + 1)
		first := float64(r.cost[0].Ps)
		for j := range r.at[1:] {
			end := float64(r.cost[j].Ps + r.slope[j].Ps*(r.at[j+1]-r.at[j]))
			s.key = min(s.key, (end-first)/float64(r.at[j+1]-r.at[0]))
		}
		if r.at[0] > 0 {
			s.key = min(s.key, first/float64(r.at[0]))
		}
	}
	if math.IsInf(s.key, 1) {
		s.key = 0
	}
	for n := range p.Limits.Batch {
		r := t.row(n + 1)
		s.decode = min(s.decode, max(0, float64(r.cost[0].Ps)-s.key*float64(r.at[0]))/float64(n+1))
	}
	for i, n := range t.Prompt.Rows {
		costs := t.Prompt.Cost[i]
		s.prompt = min(s.prompt, max(0, float64(costs[0].Ps-2))/float64(n))
		for j, c := range t.Prompt.Columns[1:] {
			s.before = min(s.before, float64(costs[j+1].Ps-costs[0].Ps)/float64(n*c))
		}
	}
	if math.IsInf(s.before, 1) || t.Prompt.Columns[0] > 0 {
		s.before = 0
	}
	for _, line := range lines(&t.Tokens, NeedOf(p.Requests, p.Limits).Tokens) {
		of := *s
		of.step, of.token = line[0]/float64(p.Limits.Batch), line[1]
		list = append(list, &of)
	}
	return list
}

// left is the sum of a request's shares, and what it takes alone, once it has had so many tokens of its
// prompt and of its answer.
func (s *shares) left(r Request, done, written int64) (share, alone float64) {
	whole, rest := float64(r.Prompt), float64(int64(r.Prompt)-done)
	if rest > 0 {
		// Pieces of c tokens behind p others: the sum of c p is half of whole^2 - done^2 - sum of c^2.
		pairs := max(0, whole*whole-float64(done*done)-s.most*rest) / 2
		attention := s.prompt*rest + s.before*pairs
		share += s.step + s.token*rest + attention + s.score
		alone += max(s.token*rest, s.oneToken) + attention + s.oneScore
		written = 1
	}
	n := float64(int64(r.Answer) - written)
	keys := s.key * n * (whole + (float64(written)+float64(r.Answer)-1)/2)
	return share + n*(s.step+s.token+s.score+s.decode) + keys, alone + n*(s.oneToken+s.oneScore+s.decode) + keys
}

// A job of a machine that works on one at a time.
type job struct{ arrival, work float64 }

// shortestFirst is the least sum of ends of jobs, in order of arrival, on a machine that may interrupt them.
func shortestFirst(jobs []job) (sum float64) {
	waiting := heap.Of(func(a, b float64) bool { return a < b })
	now := 0.0
	for i := 0; i < len(jobs) || waiting.Len() > 0; {
		if waiting.Len() == 0 {
			now = max(now, jobs[i].arrival)
		}
		for i < len(jobs) && jobs[i].arrival <= now {
			waiting.Push(jobs[i].work)
			i++
		}
		work := waiting.Pop()
		if i < len(jobs) && now+work > jobs[i].arrival {
			waiting.Push(work - (jobs[i].arrival - now))
			now = jobs[i].arrival
			continue
		}
		now += work
		sum += now
	}
	return sum
}

// exactly is what rounding in floating point may have added to a sum, as a factor.
const exactly = 1 - 1e-9

// Bound is what the mean time from arrival to last token, in seconds, is at least, whatever the plan.
func Bound(p *Problem) (float64, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	bound, _ := p.bestShares()
	return bound / second / float64(len(p.Requests)), nil
}

// bestShares are those of the best bound, which is on the sum of times.
func (p *Problem) bestShares() (bound float64, best *shares) {
	begin := &state{had: make([]progress, len(p.Requests))}
	for _, s := range p.shares() {
		if b := p.remaining(s, begin); best == nil || b > bound {
			bound, best = b, s
		}
	}
	return bound, best
}

// remaining is the least that requests which have not finished add to a state's cost.
func (p *Problem) remaining(s *shares, at *state) float64 {
	jobs := make([]job, 0, len(p.Requests))
	var alone, arrivals float64
	for i, r := range p.Requests {
		if h := at.had[i]; h.written < int64(r.Answer) {
			share, a := s.left(r, h.done, h.written)
			from := max(float64(r.Arrival), float64(at.now))
			jobs = append(jobs, job{from, share})
			alone += from + a
			arrivals += float64(r.Arrival)
		}
	}
	return max(0, max(alone, shortestFirst(jobs))*exactly-arrivals)
}
