package serving

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A Request asks for an answer to a prompt.
type Request struct {
	Arrival        int64 // picoseconds from the begin of the trace
	Prompt, Answer int32 // tokens, at least one each
}

const (
	// MaxRequests is how many a trace may have, MaxTokens how many tokens a prompt and an answer may
	// have together.
	MaxRequests = 1 << 23
	MaxTokens   = 1 << 20
	// maxArrival is 23 days.
	maxArrival = 2_000_000 * second
	second     = 1_000_000_000_000
)

const traceHeader = "arrival_s,prompt_tokens,answer_tokens"

// ReadTrace reads a trace as CSV: the heading arrival_s,prompt_tokens,answer_tokens and a line for each
// request, by arrival. Errors name file, line and column.
func ReadTrace(file string, data []byte) ([]Request, error) {
	text, rest, _ := bytes.Cut(data, []byte("\n"))
	if got := strings.TrimSuffix(string(bytes.TrimPrefix(text, []byte("\ufeff"))), "\r"); got != traceHeader {
		return nil, fmt.Errorf("%s: line 1: found %q, expected the heading %s", file, shorten(got), traceHeader)
	}
	list := make([]Request, 0, min(bytes.Count(rest, []byte("\n"))+1, MaxRequests))
	before := int64(0)
	for line := 2; len(rest) > 0; line++ {
		text, rest, _ = bytes.Cut(rest, []byte("\n"))
		text = bytes.TrimSuffix(text, []byte("\r"))
		if len(text) == 0 && len(rest) == 0 {
			break
		}
		bad := func(field, found, expected string) error {
			return fmt.Errorf("%s: line %d: %s: found %q, expected %s", file, line, field, shorten(found), expected)
		}
		arrival, tokens, ok1 := bytes.Cut(text, []byte(","))
		prompt, answer, ok2 := bytes.Cut(tokens, []byte(","))
		if !ok1 || !ok2 || bytes.IndexByte(answer, ',') >= 0 {
			return nil, bad("columns", string(text), "three: "+traceHeader)
		}
		r := Request{}
		var ok bool
		if r.Arrival, ok = parseSeconds(string(arrival)); !ok {
			return nil, bad("arrival_s", string(arrival), "seconds from 0 to 2000000 with at most 12 decimals")
		}
		if r.Arrival < before {
			return nil, bad("arrival_s", string(arrival), "no less than in the line before")
		}
		for _, f := range []struct {
			name string
			text []byte
			to   *int32
		}{{"prompt_tokens", prompt, &r.Prompt}, {"answer_tokens", answer, &r.Answer}} {
			n, err := strconv.ParseUint(string(f.text), 10, 32)
			if err != nil || n < 1 || n > MaxTokens {
				return nil, bad(f.name, string(f.text), fmt.Sprintf("a whole number from 1 to %d", MaxTokens))
			}
			*f.to = int32(n)
		}
		if r.Prompt+r.Answer > MaxTokens {
			return nil, bad("tokens", string(tokens), fmt.Sprintf("at most %d together", MaxTokens))
		}
		if before = r.Arrival; len(list) == MaxRequests {
			return nil, fmt.Errorf("%s: found more than %d requests", file, MaxRequests)
		}
		list = append(list, r)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: found no request, expected at least one", file)
	}
	return list, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

// parseSeconds reads a decimal number of seconds exactly, in picoseconds.
func parseSeconds(s string) (int64, bool) {
	whole, part, point := strings.Cut(s, ".")
	if len(part) > 12 || point && part == "" {
		return 0, false
	}
	for _, c := range whole + part {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > maxArrival/second {
		return 0, false
	}
	if point {
		f, err := strconv.ParseInt(part+strings.Repeat("0", 12-len(part)), 10, 64)
		if err != nil {
			return 0, false
		}
		n = n*second + f
	} else {
		n *= second
	}
	return n, n <= maxArrival
}

// WriteTrace writes a trace as ReadTrace reads it.
func WriteTrace(list []Request) []byte {
	b := append(make([]byte, 0, 24*len(list)+64), traceHeader+"\n"...)
	for _, r := range list {
		b = strconv.AppendInt(b, r.Arrival/second, 10)
		if part := r.Arrival % second; part > 0 {
			b = append(b, '.')
			b = append(b, strings.TrimRight(fmt.Sprintf("%012d", part), "0")...)
		}
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(r.Prompt), 10)
		b = append(b, ',')
		b = append(strconv.AppendInt(b, int64(r.Answer), 10), '\n')
	}
	return b
}

// Lengths are those of prompts or answers: log-normal, by their median and 90th percentile.
type Lengths struct {
	Median, P90 float64
}

// A Mix is what requests are like.
type Mix struct {
	Name, Source   string
	Prompt, Answer Lengths
}

// Mixes are the built-in ones.
func Mixes() []Mix {
	return []Mix{
		{"chat", "recalled: Agrawal et al., OSDI 2024 (Sarathi-Serve), Table 2, openchat_sharegpt4", Lengths{1730, 5696},
			Lengths{415, 834}},
		{"summary", "recalled: the same, arxiv_summarization", Lengths{7059, 12985}, Lengths{208, 371}},
		{"short", "ESTIMATE: for decoders of 1024 positions", Lengths{100, 300}, Lengths{50, 150}},
	}
}

// Generate draws a trace: arrivals with exponential gaps of a mean rate per second (a Poisson process), each in
// whole microseconds, and lengths of a mix. Prompts and answers that have more than limit tokens together
// are cut, first the prompt to half of the limit and then the answer. The same seed gives the same trace.
func Generate(requests int, rate float64, mix Mix, limit int32, seed uint64) ([]Request, error) {
	switch {
	case requests < 1 || requests > MaxRequests:
		return nil, fmt.Errorf("found %d requests, expected 1 to %d", requests, MaxRequests)
	case !(rate >= 1e-3 && rate <= 1e6):
		return nil, fmt.Errorf("found a rate of %g requests a second, expected 0.001 to 1e6", rate)
	case limit < 2 || limit > MaxTokens:
		return nil, fmt.Errorf("found a limit of %d tokens, expected 2 to %d", limit, MaxTokens)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	length := func(l Lengths) int32 {
		const z90 = 1.2815515655446004 // of the normal distribution
		x := math.Round(l.Median * math.Exp(math.Log(l.P90/l.Median)/z90*random.NormFloat64()))
		return int32(max(1, min(x, MaxTokens)))
	}
	list := make([]Request, requests)
	at := 0.0
	for i := range list {
		r := &list[i]
		at += random.ExpFloat64() / rate
		if at*second > maxArrival {
			return nil, fmt.Errorf("%d requests at %g a second take more than %d s, expected fewer", requests, rate,
				int64(maxArrival/second))
		}
		r.Arrival, r.Prompt, r.Answer = int64(at*1e6)*1e6, length(mix.Prompt), length(mix.Answer)
		if r.Prompt+r.Answer > limit {
			r.Prompt = min(r.Prompt, limit/2)
			r.Answer = min(r.Answer, limit-r.Prompt)
		}
	}
	return list, nil
}
