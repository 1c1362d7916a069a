package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// randomTimes are of a machine whose costs never fall and have no other order.
func randomTimes(r *rand.Rand, context int64) *Times {
	scale := []int64{1, 1000, 1_000_000_007}[r.IntN(3)]
	knots := func(first, last int64) []int64 {
		at := []int64{first}
		for at[len(at)-1] < last {
			at = append(at, at[len(at)-1]+1+r.Int64N(last))
		}
		return at
	}
	step := func() Cost { return Cost{r.Int64N(50) * scale, r.Int64N(9)} }
	curve := func(last int64) Curve {
		c := Curve{At: knots(1, last)}
		now := Cost{1 + r.Int64N(100)*scale, 3}
		for range c.At {
			c.Cost = append(c.Cost, now)
			now = now.plus(step())
		}
		return c
	}
	grid := func(first, rows, columns int64) Grid {
		g := Grid{Rows: knots(1, rows), Columns: knots(first, columns)}
		for i := range g.Rows {
			var line []Cost
			for j := range g.Columns {
				c := step()
				if i > 0 {
					c = Cost{max(c.Ps, g.Cost[i-1][j].Ps), max(c.Nj, g.Cost[i-1][j].Nj)}.plus(step())
				}
				if j > 0 {
					c = Cost{max(c.Ps, line[j-1].Ps), max(c.Nj, line[j-1].Nj)}.plus(step())
				}
				line = append(line, c)
			}
			g.Cost = append(g.Cost, line)
		}
		return g
	}
	return &Times{Model: "m", Hardware: "h", Chips: 1, Tokens: curve(context + 40), Scores: curve(16),
		Decode: grid(r.Int64N(9), 16, context),
		Prompt: grid(r.Int64N(2), 1+r.Int64N(20), context), CacheTokens: context + r.Int64N(4*context), StaticWatts: 2}
}

func randomProblem(r *rand.Rand, requests int, prompt, answer int32) *Problem {
	p := &Problem{Times: randomTimes(r, int64(prompt+answer))}
	gap := []int64{0, 3, 300, 300_000, 10_000_000_000}[r.IntN(5)]
	at := int64(0)
	for range requests {
		at += r.Int64N(gap + 1)
		p.Requests = append(p.Requests, Request{at, 1 + r.Int32N(prompt), 1 + r.Int32N(answer)})
	}
	p.Limits.Grain = 1 + r.Int64N(4)
	p.Limits.Batch = 1 + r.Int64N(6)
	p.Limits.Chunk = p.Limits.Batch + p.Limits.Grain + r.Int64N(8)
	p.Limits.Tokens = p.Limits.Chunk + r.Int64N(int64(prompt))
	return p
}

// naive simulates token by token, with lists: another program for the same policies.
func naive(p *Problem, policy string) (first, last []int64, energy, steps int64, plan []Step) {
	type seat struct {
		request, done, written int64
		finished               bool
	}
	n := len(p.Requests)
	first, last = make([]int64, n), make([]int64, n)
	var seats []seat
	now, next, left := int64(0), 0, n
	var batch []int // static: who may join
	decoded := false
	for left > 0 {
		reserved := int64(0)
		for _, s := range seats {
			reserved += int64(p.Requests[s.request].Prompt + p.Requests[s.request].Answer)
		}
		if policy == "static" && len(seats) == 0 {
			batch, decoded = nil, false
			for i := next; i < n && p.Requests[i].Arrival <= now; i++ {
				batch = append(batch, i)
			}
		}
		decodes := int64(0)
		for _, s := range seats {
			if s.written > 0 {
				decodes++
			}
		}
		join := func() bool {
			if next == n || p.Requests[next].Arrival > now || int64(len(seats)) == p.Limits.Batch {
				return false
			}
			if policy == "static" && (decoded || !slices.Contains(batch, next)) {
				return false
			}
			r := p.Requests[next]
			if reserved+int64(r.Prompt+r.Answer) > p.Times.CacheTokens {
				return false
			}
			reserved += int64(r.Prompt + r.Answer)
			seats = append(seats, seat{request: int64(next)})
			next++
			return true
		}
		takes := map[int]int64{} // tokens of prompts by seat
		total := int64(0)
		if policy == "chunked" {
			total = decodes
			for k := 0; ; k++ {
				if k == len(seats) && (total >= p.Limits.Chunk || !join()) {
					break
				}
				rest := int64(p.Requests[seats[k].request].Prompt) - seats[k].done
				if rest == 0 {
					continue
				}
				c := p.Limits.Chunk - total
				if c >= rest {
					c = rest
				} else {
					c -= c % p.Limits.Grain
				}
				if c == 0 {
					break
				}
				takes[k] = c
				total += c
			}
		} else {
			if policy == "fcfs" {
				total = decodes
			}
			for next < n {
				c := int64(p.Requests[next].Prompt)
				if len(takes) > 0 && total+c > p.Limits.Tokens || !join() {
					break
				}
				takes[len(seats)-1] = c
				total += c
			}
		}
		ended := !slices.ContainsFunc(seats,
			func(s seat) bool { return !s.finished }) // static, and nobody wants a second token
		decode := decodes > 0 && !ended && (len(takes) == 0 || policy == "fcfs" || policy == "chunked")
		if !decode && len(takes) == 0 {
			if len(seats) > 0 && policy == "static" {
				seats = nil
				continue
			}
			now = p.Requests[next].Arrival
			continue
		}
		// The step's cost, from the table.
		step := Step{Start: now}
		var c Cost
		tokens, scores, contexts := int64(0), int64(0), int64(0)
		for k := range seats {
			s := &seats[k]
			r := p.Requests[s.request]
			if n, ok := takes[k]; ok {
				step.Parts = append(step.Parts, Part{int(s.request), n})
				rest, done := n, s.done
				for most := p.Times.Prompt.Rows[len(p.Times.Prompt.Rows)-1]; rest > 0; {
					c = c.plus(p.Times.Prompt.at(min(rest, most), done))
					done += min(rest, most)
					rest -= min(rest, most)
				}
				tokens += n
				if s.done+n == int64(r.Prompt) {
					scores++
				}
			} else if decode && s.written > 0 {
				step.Parts = append(step.Parts, Part{Request: int(s.request)})
				tokens, scores = tokens+1, scores+1
				contexts += int64(r.Prompt) + s.written
			}
		}
		if decode {
			c = c.plus(p.Times.row(decodes).value(contexts))
			decoded = true
		}
		c = c.plus(p.Times.Tokens.at(tokens)).plus(p.Times.Scores.at(scores))
		now += c.Ps
		energy += c.Nj
		steps++
		plan = append(plan, step)
		for k := range seats {
			s := &seats[k]
			r := p.Requests[s.request]
			if n, ok := takes[k]; ok {
				if s.done += n; s.done < int64(r.Prompt) {
					continue
				}
				first[s.request] = now
				s.written = 1
			} else if decode && s.written > 0 {
				s.written++
			}
			if s.written >= int64(r.Answer) && !s.finished {
				s.finished = true
				last[s.request] = now
				left--
			}
		}
		all := !slices.ContainsFunc(seats, func(s seat) bool { return !s.finished })
		if policy != "static" {
			seats = slices.DeleteFunc(seats, func(s seat) bool { return s.finished })
		} else if all && decoded {
			seats = nil
		}
	}
	return first, last, energy, steps, plan
}

// TestEvents: driven by events and token by token, every policy gives the same times to the picosecond.
func TestEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 1000 {
		p := randomProblem(r, 1+r.IntN(30), 1+r.Int32N(40), 1+r.Int32N(60))
		for _, policy := range Policies() {
			m, err := run(context.Background(), p, policy)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			first, last, energy, steps, plan := naive(p, policy.Name)
			if !slices.Equal(m.first, first) || !slices.Equal(m.last, last) || m.busy.Nj != energy || m.steps != steps {
				t.Fatalf("round %d, %s: first tokens %v, last %v, %d nJ, %d steps; token by token %v, %v, %d, %d", round,
					policy.Name,
					m.first, m.last, m.busy.Nj, m.steps, first, last, energy, steps)
			}
			if policy.keep {
				continue
			}
			mean, err := p.replay(plan)
			if err != nil {
				t.Fatalf("round %d, %s: %v", round, policy.Name, err)
			}
			if got := m.sum().LatencyMean; math.Abs(got-mean) > 1e-9*mean {
				t.Errorf("round %d, %s: mean %v s, the referee has %v", round, policy.Name, got, mean)
			}
			if bound, err := Bound(p); err != nil || bound > mean {
				t.Errorf("round %d, %s: mean %v s, bound %v, %v", round, policy.Name, mean, bound, err)
			}
		}
	}
}

// brute tries every plan, also such that wait for any arrival.
func brute(p *Problem, s state, best int64) int64 {
	if p.finished(&s) {
		return min(best, s.cost)
	}
	if s.cost >= best {
		return best
	}
	all := *p
	all.Limits.Tokens = math.MaxInt64
	all.choices(&s, func(parts []Part) bool {
		next := state{s.now, slices.Clone(s.had), s.cost}
		if p.step(&next, parts) == nil {
			best = brute(p, next, best)
		}
		return true
	})
	for _, r := range p.Requests {
		if r.Arrival > s.now {
			best = brute(p, state{r.Arrival, s.had, s.cost}, best)
		}
	}
	return best
}

// Times beyond the range of sums are refused, and never wrap.
func TestTooLong(t *testing.T) {
	p := randomProblem(rand.New(rand.NewPCG(7, 8)), 1, 40, 1<<20)
	p.Requests = []Request{{Prompt: 1, Answer: 1 << 20}}
	for i := range p.Times.Tokens.Cost {
		p.Times.Tokens.Cost[i] = Cost{Ps: 1e14}
	}
	for _, policy := range Policies() {
		if r, err := Simulate(context.Background(), p, policy); err == nil ||
			!strings.Contains(err.Error(), "expected less") {
			t.Errorf("%s: %+v, %v", policy.Name, r, err)
		}
	}
}

// A search ends within the steps of one state, of which there may be billions.
func TestBestStops(t *testing.T) {
	p := randomProblem(rand.New(rand.NewPCG(5, 6)), MaxExact, 40, 40)
	p.Limits = Limits{Batch: MaxExact, Tokens: 56, Chunk: 56, Grain: 1}
	for i := range p.Requests {
		p.Requests[i] = Request{Prompt: 40, Answer: 40}
	}
	p.Times.CacheTokens = 1 << 30
	plan, err := Best(context.Background(), p, solve.Options[[]Step]{WorkLimit: 500})
	if err != nil || plan.Stop != milp.StopWork || plan.States > 500+1024 {
		t.Errorf("%+v: %v", plan, err)
	}
}

// TestBest: the search finds what trying every plan finds, no policy is better, and the referee agrees.
func TestBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	better := 0
	for round := range 150 {
		p := randomProblem(r, 1+r.IntN(3), 1+r.Int32N(6), 1+r.Int32N(3))
		p.Limits.Grain = 3
		p.Limits.Chunk = max(p.Limits.Chunk, p.Limits.Batch+3)
		p.Limits.Tokens = max(p.Limits.Tokens, p.Limits.Chunk)
		plan, err := Best(context.Background(), p, solve.Options[[]Step]{})
		if err != nil {
			t.Fatal(err)
		}
		want := p.mean(brute(p, state{had: make([]progress, len(p.Requests))}, math.MaxInt64))
		mean, err := p.replay(plan.Steps)
		if err != nil || plan.Status != milp.Optimal || plan.Objective != want || math.Abs(mean-want) > 1e-12*want {
			t.Fatalf("round %d: %v, %v s, by the referee %v, %v; all plans: %v", round, plan.Status, plan.Objective, mean, err,
				want)
		}
		if plan.LatencyMean < plan.Objective {
			t.Fatalf("round %d: %s takes %v s, the best plan %v", round, plan.Policy, plan.LatencyMean, plan.Objective)
		}
		if plan.LatencyMean > plan.Objective {
			better++
		}
		if bound, err := Bound(p); err != nil || bound > want {
			t.Fatalf("round %d: bound %v, %v, best %v", round, bound, err, want)
		}
		cut, err := Best(context.Background(), p, solve.Options[[]Step]{WorkLimit: 2})
		if err != nil || cut.Bound > want || cut.Objective < want {
			t.Fatalf("round %d, cut short: %v to %v, %v, best %v", round, cut.Bound, cut.Objective, err, want)
		}
	}
	if better < 15 {
		t.Errorf("the best plan beats every policy in %d of 150 problems, expected more", better)
	}
}

// TestAlone: one request takes the sum of its steps.
func TestAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		p := randomProblem(r, 1, 30, 200)
		p.Requests[0].Prompt = min(p.Requests[0].Prompt, int32(p.Limits.Chunk)) // one piece under every policy
		q := p.Requests[0]
		now := q.Arrival + p.Times.prompt(int64(q.Prompt),
			0).Ps + p.Times.Tokens.at(int64(q.Prompt)).Ps + p.Times.Scores.at(1).Ps
		first := now
		for k := int64(1); k < int64(q.Answer); k++ {
			now += p.Times.Tokens.at(1).Ps + p.Times.Scores.at(1).Ps + p.Times.row(1).value(int64(q.Prompt)+k).Ps
		}
		for _, policy := range Policies() {
			m, err := run(context.Background(), p, policy)
			if err != nil {
				t.Fatal(err)
			}
			if m.first[0] != first || m.last[0] != now {
				t.Errorf("%s: tokens from %d to %d ps, expected %d to %d", policy.Name, m.first[0], m.last[0], first, now)
			}
		}
	}
}

// plainTimes have steps of 10 us, 1 us for each token, and 1 ns for each key.
func plainTimes() *Times {
	flat := func(rows, columns []int64, each int64) Grid {
		g := Grid{Rows: rows, Columns: columns}
		for _, n := range rows {
			var line []Cost
			for _, c := range columns {
				line = append(line, Cost{Ps: n * c * each})
			}
			g.Cost = append(g.Cost, line)
		}
		return g
	}
	return &Times{Model: "m", Hardware: "h", Chips: 1, CacheTokens: 100_000, StaticWatts: 10,
		Tokens: Curve{[]int64{1, 10_001}, []Cost{{11_000_000, 5}, {10_011_000_000, 5005}}}, Scores: Curve{[]int64{1, 1024},
			[]Cost{{}, {}}},
		Decode: flat([]int64{1, 1024}, []int64{0, 10_000}, 1000), Prompt: flat([]int64{1, 512}, []int64{0, 10_000}, 1000)}
}

// TestQueue: single tokens of equal requests, one at a time, wait as long as in a queue M/D/1.
func TestQueue(t *testing.T) {
	p := &Problem{Times: plainTimes(), Limits: Limits{Batch: 1, Tokens: 512, Chunk: 512, Grain: 64}}
	const service = 110e-6 // of 100 tokens
	for _, load := range []float64{0.3, 0.5, 0.8} {
		list, err := Generate(100_000, load/service, Mix{Prompt: Lengths{100, 100}, Answer: Lengths{1, 1}}, 1000, 7)
		if err != nil {
			t.Fatal(err)
		}
		p.Requests = list
		want := service * (1 + load/(2*(1-load)))
		for _, policy := range Policies() {
			got, err := Simulate(context.Background(), p, policy)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.LatencyMean/want-1) > 0.03 || math.Abs(got.Busy-load) > 0.01 {
				t.Errorf("%s at load %v: %v s, busy %v, expected %v s", policy.Name, load, got.LatencyMean, got.Busy, want)
			}
		}
		r, err := Simulate(context.Background(), p, Policies()[0])
		if err != nil {
			t.Fatal(err)
		}
		if bound, err := Bound(p); err != nil || bound < 0.999*r.LatencyMean || bound > r.LatencyMean {
			t.Errorf("load %v: bound %v, %v, expected close to %v", load, bound, err, r.LatencyMean)
		}
	}
}

// TestDay: a day of a million requests is no matter of tokens.
func TestDay(t *testing.T) {
	list, err := Generate(1_000_000, 12, Mix{Prompt: Lengths{300, 900}, Answer: Lengths{100, 300}}, 4000, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &Problem{Requests: list, Times: plainTimes(), Limits: Limits{Batch: 64, Tokens: 2048, Chunk: 512, Grain: 64}}
	for _, policy := range Policies() {
		r, err := Simulate(context.Background(), p, policy)
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens < 100_000_000 || r.Busy <= 0 || r.Busy > 1 {
			t.Errorf("%s: %d tokens, busy %v", policy.Name, r.Tokens, r.Busy)
		}
	}
	if bound, err := Bound(p); err != nil || bound <= 0 {
		t.Errorf("bound %v, %v", bound, err)
	}
}

// TestGenerate: lengths and gaps are those that are asked for, and the seed says all.
func TestGenerate(t *testing.T) {
	mix := Mixes()[0]
	a, err := Generate(100_000, 5, mix, MaxTokens, 3)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Generate(100_000, 5, mix, MaxTokens, 3)
	if c, _ := Generate(100_000, 5, mix, MaxTokens, 4); !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the seed does not say all")
	}
	if rate := 100_000 / (float64(a[len(a)-1].Arrival) / second); math.Abs(rate/5-1) > 0.02 {
		t.Errorf("%v requests a second, expected 5", rate)
	}
	for _, of := range []struct {
		get  func(Request) int32
		want Lengths
	}{{func(r Request) int32 { return r.Prompt }, mix.Prompt}, {func(r Request) int32 { return r.Answer }, mix.Answer}} {
		var list []int32
		for _, r := range a {
			list = append(list, of.get(r))
		}
		slices.Sort(list)
		if m, p90 := float64(list[50_000]), float64(list[90_000]); math.Abs(m/of.want.Median-1) > 0.03 ||
			math.Abs(p90/of.want.P90-1) > 0.03 {
			t.Errorf("median %v, 90th percentile %v, expected %v", m, p90, of.want)
		}
	}
	short, err := Generate(1000, 5, mix, 1024, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range short {
		if r.Prompt < 1 || r.Answer < 1 || r.Prompt+r.Answer > 1024 {
			t.Fatalf("%v has more than 1024 tokens", r)
		}
	}
}

// TestExampleTrace: the trace of the examples is the one that the documentation says.
func TestExampleTrace(t *testing.T) {
	data, err := os.ReadFile("../../../examples/traces/short.csv")
	if err != nil {
		t.Fatal(err)
	}
	list, err := Generate(200, 5, Mixes()[2], 1024, 1)
	if err != nil || !bytes.Equal(data, WriteTrace(list)) {
		t.Errorf("dsasched export trace --requests 200 --rate 5 --mix short --limit 1024 writes another trace, %v", err)
	}
}

func TestTraceErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `f.csv: line 1: found "", expected the heading arrival_s`},
		{"time,in,out\n1,2,3\n", `line 1: found "time,in,out"`},
		{"@\n", "f.csv: found no request"},
		{"@0,1\n", `line 2: columns: found "0,1", expected three`},
		{"@0,1,1,1\n", `line 2: columns: found "0,1,1,1"`},
		{"@0,1,1\n\n0,1,1\n", `line 3: columns: found ""`},
		{"@-1,1,1\n", `line 2: arrival_s: found "-1"`},
		{"@1.,1,1\n", `line 2: arrival_s: found "1."`},
		{"@0.0000000000001,1,1\n", "with at most 12 decimals"},
		{"@2000000.1,1,1\n", `arrival_s: found "2000000.1"`},
		{"@1,1,1\n0.5,1,1\n", `line 3: arrival_s: found "0.5", expected no less`},
		{"@0,0,1\n", `line 2: prompt_tokens: found "0"`},
		{"@0,1,x\n", `line 2: answer_tokens: found "x"`},
		{"@0,1048576,1\n", "at most 1048576 together"},
	} {
		text := strings.Replace(c.text, "@", traceHeader+"\n", 1)
		if _, err := ReadTrace("f.csv", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: found %v, expected %q", c.text, err, c.want)
		}
	}
	got, err := ReadTrace("f", []byte("\ufeff"+traceHeader+"\r\n0.000000000001,2,3\r\n7,4,5"))
	if want := []Request{{1, 2, 3}, {7 * second, 4, 5}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v, %v, expected %v", got, err, want)
	}
}

// What is accepted is written as it is read.
func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(traceHeader + "\n0,1,1\n0.25,100,7\n"))
	f.Add([]byte(traceHeader + "\r\n0.000000000001,1048575,1"))
	f.Add([]byte(traceHeader + "\n,,\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ReadTrace("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %q", err)
			}
			return
		}
		again, err := ReadTrace("f", WriteTrace(list))
		if err != nil || !slices.Equal(list, again) {
			t.Errorf("written and read: %v, %v", again, err)
		}
	})
}

// What is accepted as times can be simulated, and is read back as it is.
func FuzzReadTimes(f *testing.F) {
	for seed := range uint64(3) {
		data, err := json.Marshal(randomTimes(rand.New(rand.NewPCG(seed, 1)), 50))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	list := []Request{{0, 5, 9}, {10, 3, 1}, {10, 9, 20}}
	f.Fuzz(func(t *testing.T, data []byte) {
		times, err := ReadTimes("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") || bytes.ContainsRune([]byte(err.Error()), '\n') {
				t.Errorf("the error is %q", err)
			}
			return
		}
		written, err := json.Marshal(times)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ReadTimes("f", written); err != nil || !reflect.DeepEqual(times, again) {
			t.Errorf("written and read: %v, %v", again, err)
		}
		p := &Problem{Requests: list, Times: times, Limits: Limits{Batch: 3, Tokens: 12, Chunk: 8, Grain: 2}}
		if p.Check() != nil {
			return
		}
		bound, err := Bound(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range Policies() {
			if r, err := Simulate(context.Background(), p, policy); err == nil && r.LatencyMean < bound {
				t.Errorf("%s takes %v s, bound %v", policy.Name, r.LatencyMean, bound)
			}
		}
	})
}

func TestCheck(t *testing.T) {
	good := Limits{Batch: 4, Tokens: 100, Chunk: 20, Grain: 5}
	for _, c := range []struct {
		set  func(*Problem)
		want string
	}{
		{func(p *Problem) { p.Limits.Batch = 0 }, "batch is 0"},
		{func(p *Problem) { p.Limits.Chunk = 8 }, "chunk is 8, expected at least the batch and a grain, 9"},
		{func(p *Problem) { p.Limits.Tokens = 19 }, "tokens of a step are 19"},
		{func(p *Problem) { p.Requests = []Request{{0, 100_000, 1}} },
			"request 1 needs room for 100001 tokens, the memory has 100000"},
		{func(p *Problem) { p.Requests = []Request{{0, 9_000, 2_000}} },
			"decode.columns: found up to 10000, expected up to 11000"},
	} {
		p := &Problem{Requests: []Request{{0, 1, 1}}, Times: plainTimes(), Limits: good}
		c.set(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, expected %q", err, c.want)
		}
	}
}

func ExampleSimulate() {
	p := &Problem{Requests: []Request{{0, 1000, 3}, {0, 10, 1}}, Times: plainTimes(), Limits: Limits{Batch: 8,
		Tokens: 512, Chunk: 256, Grain: 64}}
	for _, policy := range Policies() {
		r, err := Simulate(context.Background(), p, policy)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: mean %.3f ms\n", r.Policy, 1e3*r.LatencyMean)
	}
	// Output:
	// fcfs: mean 1.288 ms
	// prefill-first: mean 1.292 ms
	// chunked: mean 1.437 ms
	// static: mean 1.293 ms
}
