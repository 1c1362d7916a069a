package serving

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/internal/heap"
)

// Limits are what a server keeps to.
type Limits struct {
	Batch  int64 `json:"batch"`       // requests that have begun and are not finished
	Tokens int64 `json:"step_tokens"` // of a step, unless it has one prompt only
	Chunk  int64 `json:"chunk"`       // of a step under the policy chunked
	Grain  int64 `json:"grain"`       // pieces of prompts are multiples of it, or the rest
}

// A Problem is a trace and the machine that answers it.
type Problem struct {
	Requests []Request
	Times    *Times
	Limits   Limits
}

// A RequestError reports a request that no server of the kind can answer.
type RequestError struct {
	Number  int // from 1
	Problem string
}

func (e *RequestError) Error() string { return fmt.Sprintf("request %d %s", e.Number, e.Problem) }

// Check says what makes no sense; of a request a [RequestError].
func (l Limits) Check() error {
	switch {
	case l.Batch < 1 || l.Batch > 1<<13:
		return fmt.Errorf("batch is %d, expected 1 to 8192", l.Batch)
	case l.Grain < 1 || l.Grain > MaxTokens:
		return fmt.Errorf("grain is %d, expected 1 to %d", l.Grain, MaxTokens)
	case l.Chunk < l.Batch+l.Grain:
		return fmt.Errorf("chunk is %d, expected at least the batch and a grain, %d", l.Chunk, l.Batch+l.Grain)
	case l.Tokens < l.Chunk || l.Tokens > MaxTokens:
		return fmt.Errorf("tokens of a step are %d, expected those of a chunk, %d, to %d", l.Tokens, l.Chunk, MaxTokens)
	}
	return nil
}

// Check says what makes no sense.
func (p *Problem) Check() error {
	if err := p.Limits.Check(); err != nil {
		return err
	}
	for i, r := range p.Requests {
		if need := int64(r.Prompt + r.Answer); need > p.Times.CacheTokens {
			return &RequestError{i + 1, fmt.Sprintf("needs room for %d tokens, the memory has %d", need, p.Times.CacheTokens)}
		}
	}
	return p.Times.covers(NeedOf(p.Requests, p.Limits))
}

// NeedOf says how far the times of a trace must reach.
func NeedOf(list []Request, l Limits) need {
	var prompt, answer int64
	for _, r := range list {
		prompt, answer = max(prompt, int64(r.Prompt)), max(answer, int64(r.Answer))
	}
	return need{l.Batch, max(l.Tokens, prompt+l.Batch), prompt + answer, prompt - 1}
}

// A Policy says who takes part in the next step.
type Policy struct {
	Name, Description string
	next              func(*machine)
	// keep: who has finished is computed on until all of the batch have.
	keep bool
}

// Policies are the built-in ones.
func Policies() []Policy {
	return []Policy{
		{Name: "fcfs",
			Description: "all that run and the whole prompts of all that fit, in one step (Orca: Yu et al., OSDI 2022)",
			next:        fcfs},
		{Name: "prefill-first",
			Description: "whole prompts of all that fit as a step of their own, else decodes (vLLM: Kwon et al., SOSP 2023)",
			next:        prefillFirst},
		{Name: "chunked",
			Description: "decodes, and pieces of prompts up to --chunk tokens (Sarathi-Serve: Agrawal et al., OSDI 2024)",
			next:        chunked},
		{Name: "static", Description: "as many as wait when the last batch has ended, until the longest of them ends",
			next: static, keep: true},
	}
}

// A prompt is one of which tokens are left.
type prompt struct{ request, done int64 }

type piece struct {
	prompt int // place in machine.prompts
	tokens int64
}

type running struct {
	end     int64 // the count of decodes after which it has finished
	request int64
}

// A machine is the state between two steps.
type machine struct {
	*Problem
	policy        Policy
	now           int64
	head, arrived int64 // requests from head to arrived wait
	begun, cached int64 // requests that have begun, and the tokens that they reserve
	prompts       []prompt
	decoding      *heap.Heap[running]
	padded        int64 // finished requests that the batch goes on with
	contexts      int64 // sum of those of the next decode
	forming       int64 // static: requests before it may join the batch; 0: none may
	rows          map[int64]*decodeRow

	// Of the next step: see Policy.
	pieces []piece
	decode bool

	first, last []int64 // of each request

	busy                        Cost
	steps, decodeSteps, decoded int64 // steps, those with decodes, decodes
	peak                        int64 // of cached
}

// A decodeRow is a step of decodes alone.
type decodeRow struct {
	*row
	fixed Cost // products
}

func (m *machine) sequences() int64 { return int64(m.decoding.Len()) + m.padded }

func (m *machine) row(sequences int64) *decodeRow {
	r := m.rows[sequences]
	if r == nil {
		r = &decodeRow{m.Times.row(sequences), m.Times.Tokens.at(sequences).plus(m.Times.Scores.at(sequences))}
		m.rows[sequences] = r
	}
	return r
}

// begin lets the first that waits begin, if it has arrived and fits.
func (m *machine) begin() bool {
	if m.head >= m.arrived || m.begun >= m.Limits.Batch {
		return false
	}
	r := m.Requests[m.head]
	if need := int64(r.Prompt + r.Answer); m.cached+need > m.Times.CacheTokens {
		return false
	} else {
		m.cached += need
	}
	m.prompts = append(m.prompts, prompt{m.head, 0})
	m.head, m.begun = m.head+1, m.begun+1
	return true
}

// whole takes the whole prompts of those that fit beside so many tokens.
func (m *machine) whole(tokens int64) {
	for m.head < m.arrived {
		n := int64(m.Requests[m.head].Prompt)
		if len(m.pieces) > 0 && tokens+n > m.Limits.Tokens || !m.begin() {
			return
		}
		m.pieces = append(m.pieces, piece{len(m.prompts) - 1, n})
		tokens += n
	}
}

func fcfs(m *machine) {
	m.decode = m.sequences() > 0
	m.whole(m.sequences())
}

func prefillFirst(m *machine) {
	m.whole(0)
	m.decode = len(m.pieces) == 0 && m.sequences() > 0
}

func chunked(m *machine) {
	m.decode = m.sequences() > 0
	left := m.Limits.Chunk - m.sequences()
	for k := 0; k < len(m.prompts) || m.begin(); k++ {
		n := int64(m.Requests[m.prompts[k].request].Prompt) - m.prompts[k].done
		if n > left {
			n = left / m.Limits.Grain * m.Limits.Grain
		}
		if n == 0 {
			return
		}
		m.pieces = append(m.pieces, piece{k, n})
		if left -= n; left < 1 {
			return
		}
	}
}

func static(m *machine) {
	if m.begun == 0 {
		m.forming = m.arrived
	}
	arrived := m.arrived
	m.arrived = min(arrived, m.forming)
	m.whole(0)
	m.arrived = arrived
	switch {
	case len(m.pieces) > 0 || m.begun == 0:
	case m.decoding.Len() > 0:
		m.decode, m.forming = true, 0
	default: // one token was all that anyone wanted
		m.dismiss()
		static(m)
	}
}

// A Result is what a policy makes of a trace.
type Result struct {
	Policy   string `json:"policy"`
	Requests int64  `json:"requests"`
	Tokens   int64  `json:"answer_tokens"`
	// Seconds are from the first arrival to the last token.
	Seconds        float64  `json:"makespan_s"`
	FirstMedian    float64  `json:"ttft_median_s"` // time to first token
	First99        float64  `json:"ttft_p99_s"`
	EachMedian     float64  `json:"tpot_median_s"` // time per output token after the first, of requests with several
	Each99         float64  `json:"tpot_p99_s"`
	LatencyMean    float64  `json:"latency_mean_s"` // from arrival to last token
	LatencyMedian  float64  `json:"latency_median_s"`
	Latency99      float64  `json:"latency_p99_s"`
	TokensPerS     float64  `json:"tokens_per_s"`
	Joules         *float64 `json:"energy_j,omitempty"` // nil: nothing is known of energy
	TokensPerJoule *float64 `json:"tokens_per_j,omitempty"`
	Busy           float64  `json:"utilization"`      // share of the time in which a step runs
	PeakCache      float64  `json:"cache_peak_share"` // most that is reserved, of all that there is room for
	Steps          int64    `json:"steps"`
	DecodeSteps    int64    `json:"decode_steps"`
	Decodes        int64    `json:"decodes"` // tokens after the first ones
}

// MeanBatch is how many decodes a step has that has some.
func (r *Result) MeanBatch() float64 { return float64(r.Decodes) / float64(max(1, r.DecodeSteps)) }

// Simulate runs a trace by a policy. Its work grows with the requests, not with their tokens.
func Simulate(ctx context.Context, p *Problem, policy Policy) (*Result, error) {
	m, err := run(ctx, p, policy)
	if err != nil {
		return nil, err
	}
	return m.sum(), nil
}

// maxNow keeps all sums of times in range: 46 days.
const maxNow = 4_000_000 * second

func run(ctx context.Context, p *Problem, policy Policy) (*machine, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	n := int64(len(p.Requests))
	m := &machine{Problem: p, policy: policy, rows: map[int64]*decodeRow{}, first: make([]int64, n), last: make([]int64,
		n),
		decoding: heap.Of(func(a, b running) bool { return a.end < b.end || a.end == b.end && a.request < b.request })}
	for round := 0; ; round++ {
		if round%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for m.arrived < n && p.Requests[m.arrived].Arrival <= m.now {
			m.arrived++
		}
		m.pieces, m.decode = m.pieces[:0], false
		policy.next(m)
		switch {
		case len(m.pieces) > 0:
			m.mixed()
		case m.decode:
			m.steady()
		case m.arrived == n:
			return m, nil
		default:
			m.now = p.Requests[m.arrived].Arrival
		}
		if m.now > maxNow || m.busy.Nj > maxNow {
			return nil, fmt.Errorf("%s: the trace takes more than %d s or GJ, expected less", policy.Name, int64(maxNow/second))
		}
	}
}

// took lets a step, or several alike, pass.
func (m *machine) took(c Cost, steps int64) {
	m.now += c.Ps
	m.busy = m.busy.plus(c)
	m.steps += steps
}

// mixed runs a step with prompts.
func (m *machine) mixed() {
	var tokens, scores int64
	var c Cost
	if m.decode {
		tokens, scores = m.sequences(), m.sequences()
		c = m.row(tokens).value(m.contexts)
	}
	for _, p := range m.pieces {
		at := &m.prompts[p.prompt]
		c = c.plus(m.Times.prompt(p.tokens, at.done))
		tokens += p.tokens
		if at.done += p.tokens; at.done == int64(m.Requests[at.request].Prompt) {
			scores++
		}
	}
	m.took(c.plus(m.Times.Tokens.at(tokens)).plus(m.Times.Scores.at(scores)), 1)
	if m.decode {
		m.count(1)
	}
	m.prompts = slices.DeleteFunc(m.prompts, func(p prompt) bool {
		r := m.Requests[p.request]
		if p.done < int64(r.Prompt) {
			return false
		}
		m.first[p.request] = m.now
		m.contexts += int64(r.Prompt) + 1
		m.decoding.Push(running{m.decodeSteps + int64(r.Answer) - 1, p.request})
		return true
	})
	m.finish()
}

// count counts steps of all that run.
func (m *machine) count(steps int64) {
	m.decodeSteps += steps
	m.contexts += steps * m.sequences()
	m.decoded += steps * int64(m.decoding.Len())
	m.finish()
}

// finish takes those out that have written all.
func (m *machine) finish() {
	m.peak = max(m.peak, m.cached)
	for m.decoding.Len() > 0 && m.decoding.First().end <= m.decodeSteps {
		i := m.decoding.Pop().request
		m.last[i] = m.now
		if r := m.Requests[i]; m.policy.keep {
			m.padded++
		} else {
			m.cached -= int64(r.Prompt + r.Answer)
			m.contexts -= int64(r.Prompt + r.Answer)
			m.begun--
		}
	}
	if m.padded > 0 && m.decoding.Len() == 0 && m.forming == 0 {
		m.dismiss()
	}
}

// dismiss ends a static batch.
func (m *machine) dismiss() { m.padded, m.begun, m.cached, m.contexts = 0, 0, 0, 0 }

// steady runs decodes until somebody finishes or comes.
func (m *machine) steady() {
	until := int64(math.MaxInt64)
	if m.head == m.arrived && m.arrived < int64(len(m.Requests)) {
		until = m.Requests[m.arrived].Arrival
	}
	n := m.sequences()
	r := m.row(n)
	left, sum, done := m.decoding.First().end-m.decodeSteps, m.contexts, int64(0)
	for left > 0 && m.now < until && m.now <= maxNow && m.busy.Nj <= maxNow { // beyond, run refuses the trace
		j := r.place(sum)
		steps, slope := min(left, 4096), Cost{} // sums stay in range
		if j+1 < len(r.at) {
			steps = min(steps, (r.at[j+1]-sum+n-1)/n)
		}
		if j >= 0 {
			slope = r.slope[j].times(n)
		}
		each := r.fixed.plus(r.value(sum))
		series := func(k int64) Cost { return each.times(k).plus(slope.times(k * (k - 1) / 2)) }
		if until-m.now <= series(steps).Ps {
			steps = int64(sort.Search(int(steps), func(k int) bool { return m.now+series(int64(k)).Ps >= until }))
		}
		m.took(series(steps), steps)
		left, sum, done = left-steps, sum+steps*n, done+steps
	}
	m.count(done)
}

// sum is what users ask of a run.
func (m *machine) sum() *Result {
	r := &Result{Policy: m.policy.Name, Requests: int64(len(m.Requests)), Steps: m.steps, DecodeSteps: m.decodeSteps,
		Decodes: m.decoded}
	var firsts, each, latencies []float64
	for i, q := range m.Requests {
		firsts = append(firsts, float64(m.first[i]-q.Arrival)/second)
		latencies = append(latencies, float64(m.last[i]-q.Arrival)/second)
		if q.Answer > 1 {
			each = append(each, float64(m.last[i]-m.first[i])/second/float64(q.Answer-1))
		}
		r.Tokens += int64(q.Answer)
		r.LatencyMean += latencies[i] / float64(len(m.Requests))
	}
	for _, l := range []struct {
		list        []float64
		median, p99 *float64
	}{{firsts, &r.FirstMedian, &r.First99}, {each, &r.EachMedian, &r.Each99}, {latencies, &r.LatencyMedian,
		&r.Latency99}} {
		if n := len(l.list); n > 0 { // by nearest rank
			slices.Sort(l.list)
			*l.median, *l.p99 = l.list[(n+1)/2-1], l.list[(99*n+99)/100-1]
		}
	}
	r.Seconds = float64(slices.Max(m.last)-m.Requests[0].Arrival) / second
	r.TokensPerS = float64(r.Tokens) / r.Seconds
	r.Busy = float64(m.busy.Ps) / second / r.Seconds
	r.PeakCache = float64(m.peak) / float64(m.Times.CacheTokens)
	if m.Times.StaticWatts >= 0 {
		joules := float64(m.busy.Nj)*1e-9 + m.Times.StaticWatts*r.Seconds
		if perJoule := float64(r.Tokens) / joules; joules > 0 {
			r.Joules, r.TokensPerJoule = &joules, &perJoule
		}
	}
	return r
}
