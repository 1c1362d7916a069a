package tiling

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
)

// best is the best tiling that was found, with what no tiling takes less than.
type best struct {
	solve.Outcome // in seconds
	Blocks        Blocks
	// Nodes is the number of bounded parts of the space, Leaves the number of enumerated ones.
	Nodes, Leaves int64
}

// prunings can be left out by tests: each must not change the answer.
type prunings struct{ noDivisions, noTiles, noLengths bool }

// Exact finds the best tiling by branch and bound over the space that Rule chooses from, all of it: divisions over
// cores, extents of tiles, and ways to run them. See the package comment for the bounds. The work that is limited
// is leaves, each of the ways to run tiles of given extents. Without a start it begins with Rule's tiling.
func Exact(ctx context.Context, p *Problem, opt solve.Options[*Blocks]) (*best, error) {
	return p.exact(ctx, opt, prunings{})
}

func (p *Problem) exact(ctx context.Context, opt solve.Options[*Blocks], without prunings) (*best, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	x := &exact{p: p, best: timed{seconds: math.Inf(1)}, divisions: p.divisions()}
	start := opt.Start
	if start == nil {
		if b, err := Rule(p); err == nil {
			start = &b
		}
	}
	space := Space{Decisions: 3, Behind: func(prefix []int) (choices []int) {
		for i := range x.choices(prefix) {
			choices = append(choices, i)
		}
		return choices
	},
		Bound: func(prefix []int) float64 {
			switch {
			case len(prefix) == 0:
				return 0
			case []bool{without.noDivisions, without.noTiles, without.noLengths}[len(prefix)-1]:
				return 0
			case len(prefix) == 1:
				return x.divisions[prefix[0]].floor
			}
			cores, tm, tn, tk := x.chosen(prefix)
			return p.tileFloor(p.busiest(cores), tm, tn, tk, math.Inf(1))
		},
		Cost: func(choices []int) (float64, error) {
			cores, tm, tn, tk := x.chosen(choices)
			return x.leaf(cores, tm, tn, tk), nil
		},
	}
	limits := solve.Options[[]int]{TimeLimit: opt.TimeLimit, WorkLimit: opt.WorkLimit, Progress: opt.Progress}
	if start != nil {
		limits.Start = x.known(start)
		if limits.Start == nil {
			return nil, fmt.Errorf("tiling: the start %+v is no tiling of the space, or does not fit", *start)
		}
	}
	found, err := Search(ctx, space, limits)
	if err != nil {
		return nil, err
	}
	b := &best{Outcome: found.Outcome, Blocks: x.best.Blocks, Nodes: found.Nodes, Leaves: found.Costs}
	return b, nil
}

// known is a tiling as choices, nil if it is none of the space.
func (x *exact) known(b *Blocks) []int {
	p := x.p
	division := slices.IndexFunc(x.divisions, func(s split) bool { return s.cores == b.Cores })
	if division < 0 || b.Rows < 1 || !p.Fits(b) {
		return nil
	}
	_, m, _ := p.part(b.Cores)
	rows, columns, ks := x.tiles(b.Cores)
	row, column := slices.Index(rows, ceilDiv(m, b.Rows)), slices.Index(columns, b.Columns)
	length := slices.Index(ks, b.Reduction)
	if row < 0 || column < 0 || length < 0 {
		return nil
	}
	return []int{division, column*len(rows) + row, length}
}

// exact is Exact at work.
type exact struct {
	p         *Problem
	best      timed
	divisions []split
	cores     [4]int64 // of the lists below
	rows      []int64
	columns   []int64
	ks        []int64
}

// tiles are the extents of rows, columns and reduction that a division over cores allows.
func (x *exact) tiles(cores [4]int64) (rows, columns, ks []int64) {
	if x.cores != cores {
		_, m, n := x.p.part(cores)
		x.cores, x.rows, x.columns = cores, extents(m, 1), extents(n, x.p.Machine.Columns)
		x.ks = extents(x.p.depth(cores), x.p.Grain())
	}
	return x.rows, x.columns, x.ks
}

// choices is the number of choices behind some.
func (x *exact) choices(prefix []int) int {
	switch len(prefix) {
	case 0:
		return len(x.divisions)
	}
	rows, columns, ks := x.tiles(x.divisions[prefix[0]].cores)
	if len(prefix) == 1 {
		return len(rows) * len(columns)
	}
	return len(ks)
}

// chosen decodes two or three choices; tk is 0 where that is open.
func (x *exact) chosen(prefix []int) (cores [4]int64, tm, tn, tk int64) {
	cores = x.divisions[prefix[0]].cores
	rows, columns, ks := x.tiles(cores)
	tm, tn = rows[prefix[1]%len(rows)], columns[prefix[1]/len(rows)]
	if len(prefix) > 2 {
		tk = ks[prefix[2]]
	}
	return cores, tm, tn, tk
}

// leaf is the least time of the ways to run tiles of given extents; +Inf: none fits.
func (x *exact) leaf(cores [4]int64, tm, tn, tk int64) float64 {
	best := math.Inf(1)
	x.p.leaves(cores, tm, tn, tk, func(b Blocks, seconds float64) {
		best = min(best, seconds)
		if t := (timed{b, seconds}); compare(t, x.best) < 0 {
			x.best = t
		}
	})
	return best
}

// leaves visits the ways to run tiles of given extents that fit.
func (p *Problem) leaves(cores [4]int64, tm, tn, tk int64, visit func(b Blocks, seconds float64)) {
	_, m, _ := p.part(cores)
	count := ceilDiv(p.depth(cores), tk)
	for sums := int64(1); sums <= 2; sums++ {
		first := Blocks{Cores: cores, Rows: ceilDiv(m, tm), Columns: tn, Reduction: tk, Sums: sums, Group: [2]int64{1, 1}}
		w := p.cut(&first)
		p.orders(first, &w, func(b Blocks) {
			if !p.fits(&b, &w) && !b.Once {
				return // more at a time needs no less room
			}
			for i := int64(1); i <= count; i++ {
				if count%i != 0 || i > 1 && (p.LLB == 0 || p.RowsFrom != DDR) {
					continue
				}
				for j := int64(1); j <= count; j++ {
					if count%j != 0 || j > 1 && (p.LLB == 0 || p.ColumnsFrom != DDR) {
						continue
					}
					b.Group = [2]int64{i, j}
					if p.keep(&b, &w); p.fits(&b, &w) {
						visit(b, p.time(&b, &w, math.Inf(1)))
					}
				}
			}
		})
	}
}

// divisions lists all ways to divide a product over cores; of several numbers of parts with the same largest
// part, the least.
func (p *Problem) divisions() (list []split) {
	if p.Kept() {
		return []split{p.split(p.kept)}
	}
	for _, ps := range p.slices() {
		for _, pr := range parts(p.Reps, p.Cores/ps, nil) {
			for _, pm := range parts(p.M, p.Cores/ps/pr, p.rowParts) {
				for _, pn := range parts(p.N, p.Cores/ps/pr/pm, p.columnParts) {
					list = append(list, p.split([4]int64{pr, pm, pn, ps}))
				}
			}
		}
	}
	return list
}
