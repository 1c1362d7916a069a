package serving

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/heap"
)

// A Part of a step is a piece of a request's prompt, or with 0 tokens the next token of its answer.
type Part struct {
	Request int   `json:"request"`
	Tokens  int64 `json:"prompt_tokens"`
}

// A Step serves requests at a time.
type Step struct {
	Start int64
	Parts []Part
}

// A Plan is an answer of [Best]. Objective and bound are the mean time from arrival to last token, in seconds.
type Plan struct {
	solve.Outcome
	Steps []Step // nil: no plan was found that is better than the policy's
	// Policy is the best policy, LatencyMean its mean time.
	Policy      string
	LatencyMean float64
	States      int64
}

// progress is what a request has had.
type progress struct{ done, written int64 }

// A state is that between two steps.
type state struct {
	now  int64
	had  []progress
	cost int64 // sum of times from arrival to last token of those that have finished
}

// step lets a state pass a step that begins now; an error says which rule it breaks.
func (p *Problem) step(s *state, parts []Part) error {
	var tokens, scores, decodes, contexts, prompts int64
	var c Cost
	took := make([]bool, len(s.had))
	for _, part := range parts {
		if part.Request < 0 || part.Request >= len(s.had) || took[part.Request] {
			return fmt.Errorf("request %d is none or takes part twice", part.Request)
		}
		took[part.Request] = true
		r, h := p.Requests[part.Request], &s.had[part.Request]
		rest := int64(r.Prompt) - h.done
		switch {
		case r.Arrival > s.now:
			return fmt.Errorf("request %d has not arrived", part.Request)
		case h.written == int64(r.Answer):
			return fmt.Errorf("request %d has finished", part.Request)
		case part.Tokens == 0 && rest > 0:
			return fmt.Errorf("request %d decodes with %d tokens of its prompt left", part.Request, rest)
		case part.Tokens == 0:
			decodes++
			contexts += int64(r.Prompt) + h.written
			tokens, scores = tokens+1, scores+1
			h.written++
			continue
		case part.Tokens < 0 || part.Tokens > rest || part.Tokens < rest && part.Tokens%p.Limits.Grain != 0:
			return fmt.Errorf("request %d passes %d of %d tokens, expected multiples of %d or all", part.Request, part.Tokens,
				rest, p.Limits.Grain)
		}
		c = c.plus(p.Times.prompt(part.Tokens, h.done))
		prompts++
		tokens += part.Tokens
		if h.done += part.Tokens; part.Tokens == rest {
			h.written, scores = 1, scores+1
		}
	}
	var begun, cached int64
	for i, h := range s.had {
		if r := p.Requests[i]; h.done > 0 && (h.written < int64(r.Answer) || took[i]) {
			begun, cached = begun+1, cached+int64(r.Prompt+r.Answer)
		}
	}
	switch {
	case len(parts) == 0:
		return errors.New("nobody takes part")
	case tokens > p.Limits.Tokens && prompts != 1:
		return fmt.Errorf("the step has %d tokens, expected at most %d", tokens, p.Limits.Tokens)
	case begun > p.Limits.Batch || cached > p.Times.CacheTokens:
		return fmt.Errorf("%d requests have begun and keep %d tokens, expected at most %d and %d", begun, cached,
			p.Limits.Batch, p.Times.CacheTokens)
	}
	if decodes > 0 {
		c = c.plus(p.Times.row(decodes).value(contexts))
	}
	s.now += c.plus(p.Times.Tokens.at(tokens)).plus(p.Times.Scores.at(scores)).Ps
	for i := range took {
		if took[i] && s.had[i].written == int64(p.Requests[i].Answer) {
			s.cost += s.now - p.Requests[i].Arrival
		}
	}
	return nil
}

// mean is that of a sum of picoseconds over the requests, in seconds.
func (p *Problem) mean(sum int64) float64 { return float64(sum) / second / float64(len(p.Requests)) }

// choices calls f with each step that a state allows, until f returns false; errors of step are left to it, but for too
// many tokens of several prompts, which others would only add to.
func (p *Problem) choices(s *state, f func([]Part) bool) {
	var parts []Part
	var from func(i int, tokens int64, prompts int) bool
	from = func(i int, tokens int64, prompts int) bool {
		if tokens > p.Limits.Tokens && prompts > 1 {
			return true
		}
		if i == len(s.had) {
			return len(parts) == 0 || f(parts)
		}
		if !from(i+1, tokens, prompts) {
			return false
		}
		r, h := p.Requests[i], s.had[i]
		rest := int64(r.Prompt) - h.done
		if r.Arrival > s.now || h.written == int64(r.Answer) {
			return true
		}
		for n := min(rest, p.Limits.Grain); ; n = min(rest, n+p.Limits.Grain) {
			more, of := max(1, n), prompts+1
			if n == 0 {
				of = prompts
			}
			parts = append(parts, Part{i, n})
			on := from(i+1, tokens+more, of)
			parts = parts[:len(parts)-1]
			if !on || n == rest {
				return on
			}
		}
	}
	from(0, 0, 0)
}

const (
	// MaxExact is how many requests Best takes.
	MaxExact = 16
	// bestStates is its limit unless Options has one.
	bestStates = 1 << 18
)

type node struct {
	state
	least  int64 // that the cost of its plans is
	id     int64
	parent *node
	begin  int64 // of the step that led here
	parts  []Part
}

// Best searches for the plan of least mean time from arrival to last token. Options.WorkLimit is in states. When
// it or the context ends the search, the answer is the best policy's, with a bound.
func Best(ctx context.Context, p *Problem, opts solve.Options[[]Step]) (*Plan, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if len(p.Requests) > MaxExact {
		return nil, fmt.Errorf("found %d requests, expected at most %d for a proven plan", len(p.Requests), MaxExact)
	}
	plan, limit := &Plan{}, int64(-1)
	for _, policy := range Policies() {
		if policy.keep { // no plan of the search
			continue
		}
		m, err := run(ctx, p, policy)
		if err != nil {
			return nil, err
		}
		sum := int64(0)
		for i, r := range p.Requests {
			sum += m.last[i] - r.Arrival
		}
		if limit < 0 || sum < limit {
			limit, plan.Policy, plan.LatencyMean = sum, policy.Name, p.mean(sum)
		}
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	_, shares := p.bestShares()
	open := heap.Of(func(a, b *node) bool { return a.least < b.least || a.least == b.least && a.id > b.id })
	seen := map[string][]state{} // none of a list is both earlier and cheaper
	key := make([]byte, 0, 64)
	add := func(n *node) {
		key = key[:0]
		for _, h := range n.had {
			key = binary.AppendVarint(binary.AppendVarint(key, h.done), h.written)
		}
		worse := func(a, b state) bool { return a.now >= b.now && a.cost >= b.cost }
		list := seen[string(key)]
		if slices.ContainsFunc(list, func(s state) bool { return worse(n.state, s) }) {
			return
		}
		if n.least = n.cost + int64(p.remaining(shares, &n.state)); n.least > limit {
			return
		}
		seen[string(key)] = append(slices.DeleteFunc(list, func(s state) bool { return worse(s, n.state) }),
			state{now: n.now, cost: n.cost})
		plan.States++
		n.id = plan.States
		open.Push(n)
	}
	add(&node{state: state{had: make([]progress, len(p.Requests))}})
	stop, bound, tried := milp.Complete, int64(0), 0
	ended := func() bool {
		if stop = solve.Why(ctx); stop == milp.Complete && plan.States >= cmp.Or(opts.WorkLimit, bestStates) {
			stop = milp.StopWork
		}
		return stop != milp.Complete
	}
	for open.Len() > 0 && stop == milp.Complete {
		n := open.Pop()
		bound = max(bound, n.least)
		if n.cost == n.least && p.finished(&n.state) {
			plan.Objective, plan.Bound, plan.Status = p.mean(n.cost), p.mean(n.cost), milp.Optimal
			for ; n.parent != nil; n = n.parent {
				plan.Steps = append(plan.Steps, Step{n.begin, n.parts})
			}
			slices.Reverse(plan.Steps)
			return plan, nil
		}
		if ended() {
			break
		}
		// A step that does not begin at once begins with the arrival of one that takes part: else it could begin earlier.
		before := int64(-1)
		for i := -1; i < len(p.Requests); i++ {
			begin := n.now
			if i >= 0 {
				begin = p.Requests[i].Arrival
			}
			if begin < n.now || begin == before || i >= 0 && begin == n.now {
				continue
			}
			before = begin
			p.choices(&state{now: begin, had: n.had}, func(parts []Part) bool {
				if tried++; tried%1024 == 0 && ended() {
					return false
				}
				if begin > n.now && !slices.ContainsFunc(parts,
					func(x Part) bool { return p.Requests[x.Request].Arrival == begin }) {
					return true
				}
				next := &node{state: state{begin, slices.Clone(n.had), n.cost}, parent: n, begin: begin}
				if p.step(&next.state, parts) == nil {
					next.parts = slices.Clone(parts)
					add(next)
				}
				return true
			})
		}
	}
	plan.Status, plan.Stop, plan.Objective, plan.Bound = milp.Feasible, stop, plan.LatencyMean, p.mean(bound)
	return plan, nil
}

func (p *Problem) finished(s *state) bool {
	for i, h := range s.had {
		if h.written < int64(p.Requests[i].Answer) {
			return false
		}
	}
	return true
}
