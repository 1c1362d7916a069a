package experts

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Routings are scenarios: how often each is, against the others, and the tokens of each expert in it.
type Routings struct {
	Weight []int64
	Tokens [][]int64 // by scenario and expert
}

// The sizes of routings at most.
const (
	maxScenarios = 1 << 10
	maxExperts   = 1 << 10
	maxTokens    = 1 << 16 // of a scenario
	maxWeight    = 1_000_000
	maxDraws     = 1 << 28
)

// ReadRoutings reads CSV: the heading weight,expert_0,expert_1,... and a line for each scenario, in whole numbers.
// Errors name file, line and column.
func ReadRoutings(file string, data []byte) (*Routings, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), "\n")
	experts := strings.Count(lines[0], ",")
	if experts < 1 || experts > maxExperts || lines[0] != heading(experts) {
		return nil, fmt.Errorf("%s: line 1: found %q, expected the heading %s,... of at most %d experts", file,
			shorten(lines[0]), heading(2), maxExperts)
	}
	if n := len(lines) - 1; n < 1 || n > maxScenarios {
		return nil, fmt.Errorf("%s: found %d scenarios, expected 1 to %d", file, n, maxScenarios)
	}
	r := &Routings{}
	for i, line := range lines[1:] {
		columns := strings.Split(line, ",")
		if len(columns) != experts+1 {
			return nil, fmt.Errorf("%s: line %d: columns: found %d, expected %d", file, i+2, len(columns), experts+1)
		}
		sum := int64(0)
		var numbers []int64
		for k, text := range columns {
			name, least, most := "weight", int64(1), int64(maxWeight)
			if k > 0 {
				name, least, most = fmt.Sprintf("expert_%d", k-1), 0, maxTokens-sum
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < least || n > most {
				return nil, fmt.Errorf("%s: line %d: %s: found %q, expected a whole number from %d to %d", file, i+2, name,
					shorten(text), least, most)
			}
			if numbers = append(numbers, n); k > 0 {
				sum += n
			}
		}
		if sum == 0 {
			return nil, fmt.Errorf("%s: line %d: found no token, expected at least one", file, i+2)
		}
		r.Weight, r.Tokens = append(r.Weight, numbers[0]), append(r.Tokens, numbers[1:])
	}
	return r, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

func heading(experts int) string {
	var b strings.Builder
	b.WriteString("weight")
	for e := range experts {
		fmt.Fprintf(&b, ",expert_%d", e)
	}
	return b.String()
}

// WriteRoutings writes routings as ReadRoutings reads them.
func WriteRoutings(r *Routings) []byte {
	b := []byte(heading(len(r.Tokens[0])) + "\n")
	for s, tokens := range r.Tokens {
		b = strconv.AppendInt(b, r.Weight[s], 10)
		for _, n := range tokens {
			b = strconv.AppendInt(append(b, ','), n, 10)
		}
		b = append(b, '\n')
	}
	return b
}

// Draw draws scenarios of equal weight, in each of which so many tokens take so many experts each. An expert's share is
// log-normal: half of its variance, which is the square of skew, is the same in all scenarios, the other half drawn
// for each. With skew 0 all experts are alike. A token takes different experts. The same seed gives the same routings.
func Draw(scenarios, experts, tokens, chosen int64, skew float64, seed uint64) (*Routings, error) {
	switch {
	case scenarios < 1 || scenarios > maxScenarios:
		return nil, fmt.Errorf("found %d scenarios, expected 1 to %d", scenarios, maxScenarios)
	case experts < 1 || experts > maxExperts || chosen < 1 || chosen > experts:
		return nil, fmt.Errorf("found %d of %d experts for each token, expected 1 to %d of them", chosen, experts,
			min(experts, maxExperts))
	case tokens < 1 || tokens > maxTokens/chosen:
		return nil, fmt.Errorf("found %d tokens, expected 1 to %d", tokens, maxTokens/chosen)
	case scenarios*tokens > maxDraws/experts:
		return nil, fmt.Errorf("found %d scenarios of %d tokens and %d experts, expected at most %d draws", scenarios,
			tokens, experts, int64(maxDraws))
	case !(skew >= 0 && skew <= 10):
		return nil, fmt.Errorf("found a skew of %g, expected 0 to 10", skew)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	normal := func() []float64 {
		list := make([]float64, experts)
		for e := range list {
			list[e] = skew * math.Sqrt2 / 2 * random.NormFloat64()
		}
		return list
	}
	r, always := &Routings{}, normal()
	type ranked struct {
		expert int
		score  float64
	}
	list := make([]ranked, experts)
	for range scenarios {
		now, counts := normal(), make([]int64, experts)
		for range tokens {
			for e := range list { // the largest of these are a draw without replacement (Gumbel)
				list[e] = ranked{e, always[e] + now[e] - math.Log(random.ExpFloat64())}
			}
			slices.SortFunc(list, func(a, b ranked) int {
				return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.expert, b.expert))
			})
			for _, x := range list[:chosen] {
				counts[x.expert]++
			}
		}
		r.Weight, r.Tokens = append(r.Weight, 1), append(r.Tokens, counts)
	}
	return r, nil
}
