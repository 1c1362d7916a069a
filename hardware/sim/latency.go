package sim

import (
	"context"
	"math"

	"github.com/dsasched/dsasched/hardware/isa"
)

// Latency is Result.TotalPs of a program in which cluster k stands for alike[k] clusters with commands of their own
// that do the same, and that share nothing but the DDR: as Run gives it when it finds such copies itself. start has the
// start of each command. Nothing else is measured, and the program is not checked: this is for searches, whose answer
// Run judges.
//
// A program that takes longer than limit, if that is not 0, is given up: the latency is then math.MaxInt64.
func Latency(ctx context.Context, p *isa.Program, alike []int, limit int64) (ps int64, start []int64, err error) {
	if limit == 0 {
		limit = never
	}
	e, err := outlined(ctx, p, alike, limit)
	if err != nil {
		return 0, nil, err
	}
	defer e.done()
	if e.left > 0 {
		return math.MaxInt64, nil, nil
	}
	return e.now, timesOf(e.start, e.times), nil
}

// Ends gives the end of each command of such a program.
func Ends(ctx context.Context, p *isa.Program, alike []int) ([]int64, error) {
	e, err := outlined(ctx, p, alike, never)
	if err != nil {
		return nil, err
	}
	defer e.done()
	return timesOf(e.end, e.times), nil
}

// outlined runs a program for [Latency] up to a limit.
func outlined(ctx context.Context, p *isa.Program, alike []int, limit int64) (*engine, error) {
	f := noFold(p)
	for k, n := range alike {
		f.weight[k] = uint64(n)
	}
	for r := range p.Resources {
		f.shared[r] = p.Resources[r].Kind == isa.DDRBandwidth
	}
	e := newEngine(p, Options{}, f)
	e.limit = limit
	return e, e.whole(ctx)
}
