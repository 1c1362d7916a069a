package serving

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"github.com/dsasched/dsasched/internal/strict"
)

// A Cost is what a step, or a part of one, takes.
type Cost struct {
	Ps int64 `json:"ps"` // picoseconds
	Nj int64 `json:"nj"` // nanojoules without those of standing still; 0 where nothing is known
}

func (c Cost) plus(d Cost) Cost { return Cost{c.Ps + d.Ps, c.Nj + d.Nj} }

func (c Cost) times(n int64) Cost { return Cost{n * c.Ps, n * c.Nj} }

// A Curve has a cost at some numbers of tokens, ascending from 1, and is linear between them, rounded down.
type Curve struct {
	At   []int64 `json:"at"`
	Cost []Cost  `json:"cost"`
}

// A Grid has a cost at each pair of a row and a column, both ascending, and is linear in each between
// them. Below the first it is that of the first.
type Grid struct {
	Rows    []int64  `json:"rows"`
	Columns []int64  `json:"columns"`
	Cost    [][]Cost `json:"cost"` // by row, then column
}

// Times are what the steps of a server are made of. A step that prompts and decodes pass together takes
//
//	Tokens(all tokens) + Scores(tokens that are written) + Decode(sequences, mean context)
//	  + Prompt(tokens, tokens before them), of each prompt in pieces of at most the last row's
//
// and nothing of a kind of which it has none. Costs never fall as sizes grow: what serves more serves
// less.
type Times struct {
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	Chips    int64  `json:"chips"`
	// Tokens is of all products of all layers, and of the collectives between chips; Scores of the last product.
	Tokens Curve `json:"tokens"`
	Scores Curve `json:"scores"`
	// Decode and Prompt are attention in all layers: of a token of each of so many sequences (rows) that has
	// so many keys (columns), and of so many tokens of a prompt (rows) behind others (columns).
	Decode Grid `json:"decode"`
	Prompt Grid `json:"prompt"`
	// CacheTokens is how many tokens' keys and values the memory has room for.
	CacheTokens int64 `json:"cache_tokens"`
	// StaticWatts is what all chips draw all the time; negative: nothing is known of energy.
	StaticWatts float64 `json:"static_w"`
}

const (
	maxCost  = 1 << 47 // picoseconds: 140 s
	maxKnots = 64
)

// ReadTimes reads the file that a Times is as JSON.
func ReadTimes(file string, data []byte) (*Times, error) {
	t := &Times{}
	if err := strict.Decode(file, data, t); err != nil {
		return nil, err
	}
	if err := t.check(file); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Times) check(file string) error {
	bad := func(field, found, expected string) error { return strict.Error(file, field, found, expected) }
	knots := func(field string, at []int64, first int64) error {
		if len(at) < 1 || len(at) > maxKnots || at[0] < first {
			return bad(field, fmt.Sprint(at), fmt.Sprintf("1 to %d ascending numbers from %d", maxKnots, first))
		}
		for i, x := range at {
			if x > MaxTokens || i > 0 && x <= at[i-1] {
				return bad(fmt.Sprintf("%s[%d]", field, i), fmt.Sprint(x), fmt.Sprintf("more than before it and at most %d",
					MaxTokens))
			}
		}
		return nil
	}
	costs := func(field string, list []Cost, n int) error {
		if len(list) != n {
			return bad(field, fmt.Sprintf("%d costs", len(list)), fmt.Sprint(n))
		}
		for i, c := range list {
			if c.Ps < 0 || c.Nj < 0 || c.Ps > maxCost || c.Nj > maxCost || i > 0 && (c.Ps < list[i-1].Ps ||
				c.Nj < list[i-1].Nj) {
				return bad(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("%d ps, %d nj", c.Ps, c.Nj),
					fmt.Sprintf("0 to %d, and no less than before it", int64(maxCost)))
			}
		}
		return nil
	}
	for _, c := range []struct {
		name string
		of   *Curve
	}{{"tokens", &t.Tokens}, {"scores", &t.Scores}} {
		if err := knots(c.name+".at", c.of.At, 1); err != nil {
			return err
		}
		if c.of.At[0] != 1 {
			return bad(c.name+".at[0]", fmt.Sprint(c.of.At[0]), "1")
		}
		if err := costs(c.name+".cost", c.of.Cost, len(c.of.At)); err != nil {
			return err
		}
	}
	for _, g := range []struct {
		name string
		of   *Grid
	}{{"decode", &t.Decode}, {"prompt", &t.Prompt}} {
		if err := knots(g.name+".rows", g.of.Rows, 1); err != nil {
			return err
		}
		if err := knots(g.name+".columns", g.of.Columns, 0); err != nil {
			return err
		}
		if len(g.of.Cost) != len(g.of.Rows) {
			return bad(g.name+".cost", fmt.Sprintf("%d rows", len(g.of.Cost)), fmt.Sprint(len(g.of.Rows)))
		}
		for i, row := range g.of.Cost {
			if err := costs(fmt.Sprintf("%s.cost[%d]", g.name, i), row, len(g.of.Columns)); err != nil {
				return err
			}
			for j := range row {
				if i > 0 && (row[j].Ps < g.of.Cost[i-1][j].Ps || row[j].Nj < g.of.Cost[i-1][j].Nj) {
					return bad(fmt.Sprintf("%s.cost[%d][%d]", g.name, i, j), fmt.Sprintf("%d ps, %d nj", row[j].Ps, row[j].Nj),
						"no less than in the row before")
				}
			}
		}
	}
	switch {
	case t.Tokens.Cost[0].Ps < 1:
		return bad("tokens.cost[0]", "0 ps", "at least 1")
	case t.Chips < 1:
		return bad("chips", fmt.Sprint(t.Chips), "at least 1")
	case t.CacheTokens < 1:
		return bad("cache_tokens", fmt.Sprint(t.CacheTokens), "at least 1")
	case !(t.StaticWatts >= -1 && t.StaticWatts <= 1e9):
		return bad("static_w", fmt.Sprint(t.StaticWatts), "up to 1e9 watts, or -1 for no energy")
	}
	return nil
}

// mulDiv is a b / c rounded down, of numbers from 0 with b <= c.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// between is linear from a at x0 to b at x1.
func between(a, b Cost, x, x0, x1 int64) Cost {
	return Cost{a.Ps + mulDiv(b.Ps-a.Ps, x-x0, x1-x0), a.Nj + mulDiv(b.Nj-a.Nj, x-x0, x1-x0)}
}

// segment is the last place whose knot is at most x, but never the last of several; what is below the first
// is in the first.
func segment(at []int64, x int64) int {
	return max(0, min(sort.Search(len(at), func(i int) bool { return at[i] > x })-1, len(at)-2))
}

// along is the cost at x of costs at ascending knots.
func along(at []int64, x int64, cost func(int) Cost) Cost {
	i := segment(at, x)
	if x <= at[i] || len(at) == 1 {
		return cost(i)
	}
	return between(cost(i), cost(i+1), min(x, at[len(at)-1]), at[i], at[i+1])
}

func (c *Curve) at(x int64) Cost {
	if x == 0 {
		return Cost{}
	}
	return along(c.At, x, func(i int) Cost { return c.Cost[i] })
}

func (g *Grid) at(row, column int64) Cost {
	return along(g.Columns, column, func(j int) Cost {
		return along(g.Rows, row,
			func(i int) Cost { return g.Cost[i][j] })
	})
}

// prompt is the attention of tokens of a prompt behind others.
func (t *Times) prompt(tokens, before int64) Cost {
	most := t.Prompt.Rows[len(t.Prompt.Rows)-1]
	var sum Cost
	for ; tokens > most; tokens, before = tokens-most, before+most {
		sum = sum.plus(t.Prompt.at(most, before))
	}
	return sum.plus(t.Prompt.at(tokens, before))
}

// A row is what attention takes for so many sequences by the sum of their contexts: linear between knots, with
// whole slopes, so that the sum over many steps is one of arithmetic series.
type row struct {
	at    []int64 // sums of contexts
	cost  []Cost
	slope []Cost // for each of the sum, behind each knot
}

func (t *Times) row(sequences int64) *row {
	r := &row{}
	for j, c := range t.Decode.Columns {
		r.at = append(r.at, c*sequences)
		r.cost = append(r.cost, along(t.Decode.Rows, sequences, func(i int) Cost { return t.Decode.Cost[i][j] }))
		if j > 0 {
			d := r.at[j] - r.at[j-1]
			r.slope = append(r.slope, Cost{(r.cost[j].Ps - r.cost[j-1].Ps) / d, (r.cost[j].Nj - r.cost[j-1].Nj) / d})
		}
	}
	r.slope = append(r.slope, Cost{})
	return r
}

// place is the segment of a sum of contexts, -1 below the first knot.
func (r *row) place(sum int64) int {
	return sort.Search(len(r.at), func(i int) bool { return r.at[i] > sum }) - 1
}

func (r *row) value(sum int64) Cost {
	j := r.place(sum)
	if j < 0 {
		return r.cost[0]
	}
	return r.cost[j].plus(r.slope[j].times(sum - r.at[j]))
}

// need is how far the times must reach.
type need struct {
	Batch   int64 // sequences at a time
	Tokens  int64 // of a step
	Context int64 // of a sequence
	Prompt  int64 // tokens before the last of a prompt
}

// covers says what the times lack.
func (t *Times) covers(n need) error {
	for _, c := range []struct {
		field string
		at    []int64
		need  int64
	}{{"tokens.at", t.Tokens.At, n.Tokens}, {"scores.at", t.Scores.At, n.Batch}, {"decode.rows", t.Decode.Rows, n.Batch},
		{"decode.columns", t.Decode.Columns, n.Context}, {"prompt.columns", t.Prompt.Columns, n.Prompt}} {
		if last := slices.Max(c.at); last < c.need {
			return fmt.Errorf("%s: found up to %d, expected up to %d or more for the requests and limits, "+
				"as times have that are made for this trace", c.field, last, c.need)
		}
	}
	return nil
}
