package layering

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/strict"
)

// maxOperators of one problem; larger graphs come as blocks.
const maxOperators = 64

// A Problem is a graph with the price of its layers.
type Problem struct {
	Name string
	// After lists for each operator those that must have ended before, all of smaller number.
	After [][]int
	// Price is the time of a layer, in seconds, at least 0. It is asked once for each set, which is sorted.
	Price func(set []int) float64
	// Bound is the least time of all layerings of a set, as far as that is known otherwise.
	// It stands where nothing is proven; nil: 0.
	Bound func(set []int) float64
}

// InputError describes a mistake in a problem.
type InputError = strict.InputError

// Validate reports the first thing that makes p no problem, as an *InputError.
func (p *Problem) Validate() error {
	if p.Price == nil {
		return strict.Error(p.Name, "price", "none", "a function")
	}
	if len(p.After) > maxOperators {
		return strict.Error(p.Name, "operators", fmt.Sprint(len(p.After)), fmt.Sprintf("at most %d in a block", maxOperators))
	}
	for i, after := range p.After {
		for _, h := range after {
			if h < 0 || h >= i {
				return strict.Error(p.Name, fmt.Sprintf("operator %d: comes after", i), fmt.Sprint(h), fmt.Sprintf("0 to %d", i-1))
			}
		}
	}
	return nil
}

// Check reports the first thing that makes layers no layering of a valid problem, as an *InputError.
func (p *Problem) Check(layers [][]int) error {
	at := make([]int, len(p.After))
	for l, layer := range layers {
		for _, i := range layer {
			if i < 0 || i >= len(at) || at[i] > 0 {
				return strict.Error(p.Name, fmt.Sprintf("layer %d", l), fmt.Sprintf("operator %d", i), "each operator once")
			}
			at[i] = l + 1
		}
	}
	for i, after := range p.After {
		if at[i] == 0 {
			return strict.Error(p.Name, "layers", "none with operator "+fmt.Sprint(i), "each operator once")
		}
		for _, h := range after {
			if at[h] > at[i] {
				return strict.Error(p.Name, fmt.Sprintf("operator %d in layer %d", i, at[i]-1),
					fmt.Sprintf("operator %d, which it waits for, in layer %d", h, at[h]-1), "it in the same or an earlier one")
			}
		}
	}
	return nil
}

// Seconds is the sum of the prices of layers.
func (p *Problem) Seconds(layers [][]int) float64 {
	sum := 0.0
	for _, l := range layers {
		sum += p.Price(l)
	}
	return sum
}

// Options are settings of [Solve]. The work that a limit counts is transitions; 0 is 20
// million. Start is layers to be no worse than.
type Options = solve.Options[[][]int]

// A Result is a method's answer.
type Result struct {
	Method string      `json:"method"`
	Status milp.Status `json:"status"`
	Stop   milp.Stop   `json:"stop"` // what ended the method early
	Layers [][]int     `json:"layers"`
	// Seconds is the sum of the layers' prices; no layering has less than Bound.
	Seconds     float64 `json:"latency_s"`
	Bound       float64 `json:"bound_s"`
	Sets        int64   `json:"sets,omitempty"`        // down-closed ones
	Transitions int64   `json:"transitions,omitempty"` // between them
	// Potentials has a potential in seconds for each down-closed set, as a mask of operators, where the answer is exact.
	Potentials map[uint64]float64 `json:"-"`
}

// rows are the methods with what they run.
var rows = solve.Table[func(context.Context, *Problem, Options) *Result]{
	{Method: solve.Method{Name: "exact", Description: "shortest path over down-closed sets, with proof", Exact: true},
		Run: exact},
	{Method: solve.Method{Name: "greedy", Description: "all that can run next at the same time"},
		Run: func(_ context.Context, p *Problem, _ Options) *Result { return p.answer("greedy", p.levels()) }},
	{Method: solve.Method{Name: "sequential", Description: "one operator after another"},
		Run: func(_ context.Context, p *Problem, _ Options) *Result { return p.answer("sequential", p.singles()) }},
}

// Methods are the ways to solve a problem, the exact one first.
func Methods() []solve.Method { return rows.Methods() }

// Solve makes layers by the named method. If ctx or a limit ends, the result has the
// best layering so far with a bound and the reason; errors are for input.
func Solve(ctx context.Context, p *Problem, method string, opt Options) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m, err := rows.Find(method, opt.Solver)
	if err != nil {
		return nil, fmt.Errorf("layering: %w", err)
	}
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("layering: %w", err)
	}
	if opt.Start != nil {
		if err := p.Check(opt.Start); err != nil {
			return nil, fmt.Errorf("the layering to start from: %w", err)
		}
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	return m.Run(ctx, p, opt), nil
}

func (p *Problem) answer(method string, layers [][]int) *Result {
	r := &Result{Method: method, Status: milp.Feasible, Layers: layers, Seconds: p.Seconds(layers)}
	if p.Bound != nil {
		var all []int
		for i := range p.After {
			all = append(all, i)
		}
		r.Bound = min(p.Bound(all), r.Seconds) // but for sums in another order
	}
	return r
}

func (p *Problem) singles() [][]int {
	layers := make([][]int, len(p.After))
	for i := range layers {
		layers[i] = []int{i}
	}
	return layers
}

func (p *Problem) levels() [][]int {
	var layers [][]int
	level := make([]int, len(p.After))
	for i, after := range p.After {
		for _, h := range after {
			level[i] = max(level[i], level[h]+1)
		}
		if level[i] == len(layers) {
			layers = append(layers, nil)
		}
		layers[level[i]] = append(layers[level[i]], i)
	}
	return layers
}

// downClosed lists the down-closed sets, smaller ones first; nil if ctx ends, or there are more than limit.
func (p *Problem) downClosed(ctx context.Context, limit int) []uint64 {
	before := make([]uint64, len(p.After))
	for i, after := range p.After {
		for _, h := range after {
			before[i] |= 1 << h
		}
	}
	sets := []uint64{0}
	for from := 0; from < len(sets); {
		to := len(sets)
		seen := map[uint64]bool{}
		for _, s := range sets[from:to] {
			if len(sets) > limit || len(sets)%1024 == 0 && ctx.Err() != nil {
				return nil
			}
			for i, b := range before {
				if w := s | 1<<i; w != s && b&^s == 0 && !seen[w] {
					seen[w] = true
					sets = append(sets, w)
				}
			}
		}
		slices.Sort(sets[to:])
		from = to
	}
	return sets
}

// members lists the operators of a mask.
func members(set uint64) []int {
	list := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

const (
	defaultTransitions = 20_000_000
	// even is the difference up to which two times count as equal: sums in another order.
	even = 1e-12
)

// exact is the search of the package documentation. Of layerings with the least time
// it takes the most even one, with the least sum of squares.
func exact(ctx context.Context, p *Problem, opt Options) *Result {
	best := p.answer("exact", p.levels())
	for _, layers := range [][][]int{p.singles(), opt.Start} {
		if layers != nil {
			if r := p.answer("exact", layers); r.Seconds < best.Seconds {
				best = r
			}
		}
	}
	limit := opt.WorkLimit
	if limit <= 0 {
		limit = defaultTransitions
	}
	sets := p.downClosed(ctx, int(min(limit, 1<<22)))
	n := len(sets)
	potential := make([]float64, n)
	square := make([]float64, n) // sum of the squares of the layers' times
	from := make([]int, n)
	prices := map[uint64]float64{}
	transitions := int64(0)
	best.Stop = milp.StopWork
	for w := 1; w < n; w++ {
		potential[w], square[w] = math.Inf(1), math.Inf(1)
		for u := range w {
			if sets[u]&^sets[w] != 0 {
				continue
			}
			if transitions++; transitions > limit || transitions%256 == 0 && ctx.Err() != nil {
				n = 0
				break
			}
			layer := sets[w] &^ sets[u]
			price, known := prices[layer]
			if !known {
				price = p.Price(members(layer))
				prices[layer] = price
			}
			d, sq := potential[u]+price, square[u]+price*price
			if d < potential[w]*(1-even) || d <= potential[w]*(1+even) && sq < square[w]*(1-even) {
				potential[w], square[w], from[w] = min(d, potential[w]), sq, u
			}
		}
	}
	if n == 0 {
		if why := solve.Why(ctx); why != milp.Complete {
			best.Stop = why
		}
		return best
	}
	best.Status, best.Stop, best.Sets, best.Transitions = milp.Optimal, milp.Complete, int64(n), transitions
	best.Potentials = map[uint64]float64{}
	for i, s := range sets {
		best.Potentials[s] = potential[i]
	}
	best.Bound, best.Seconds = potential[n-1], potential[n-1]
	best.Layers = nil
	for w := n - 1; w > 0; w = from[w] {
		best.Layers = append(best.Layers, members(sets[w]&^sets[from[w]]))
	}
	slices.Reverse(best.Layers)
	return best
}

// Blocks solves each block of a graph of operators by the named method. Cuts are the numbers of operators between the
// blocks, from 0 to that of all; after, price and bound are those of [Problem], over the whole graph. Where a block is
// larger than maxOperators, the exact method gives the best of the others and says so. Of start, a layering of all,
// the exact method takes the layers of each block. each, if not nil, is called for every block.
func Blocks(ctx context.Context, name string, after [][]int, cuts []int, price, bound func([]int) float64,
	method string, opt Options, each func(first int, p *Problem, r *Result)) (*Result, error) {
	total := &Result{Method: method, Status: milp.Optimal}
	for b := range cuts[1:] {
		lo, hi := cuts[b], cuts[b+1]
		p := &Problem{Name: fmt.Sprintf("%s, operators %d to %d", name, lo, hi-1), After: make([][]int, hi-lo)}
		shifted := func(of func([]int) float64) func([]int) float64 {
			return func(set []int) float64 {
				there := make([]int, len(set))
				for k, i := range set {
					there[k] = i + lo
				}
				return of(there)
			}
		}
		p.Price = shifted(price)
		if bound != nil {
			p.Bound = shifted(bound)
		}
		for i := range p.After {
			for _, h := range after[lo+i] {
				if h >= lo {
					p.After[i] = append(p.After[i], h-lo)
				}
			}
		}
		o := opt
		o.Start = nil
		for _, layer := range opt.Start {
			var here []int
			for _, i := range layer {
				if i >= lo && i < hi {
					here = append(here, i-lo)
				}
			}
			if here != nil {
				o.Start = append(o.Start, here)
			}
		}
		var r *Result
		var err error
		if hi-lo > maxOperators {
			r = p.answer(method, p.singles())
			if method != "sequential" {
				r = p.answer(method, p.levels())
			}
			if method == "exact" {
				for _, layers := range [][][]int{p.singles(), o.Start} {
					if other := p.answer(method, layers); layers != nil && other.Seconds < r.Seconds {
						r = other
					}
				}
				r.Stop = milp.StopMemory
				opt.Notef("a block of %d operators, exact up to %d: it has the best of the other methods", hi-lo, maxOperators)
			}
		} else if r, err = Solve(ctx, p, method, o); err != nil {
			return nil, err
		}
		if each != nil {
			each(lo, p, r)
		}
		for _, layer := range r.Layers {
			for k := range layer {
				layer[k] += lo
			}
			total.Layers = append(total.Layers, layer)
		}
		total.Seconds += r.Seconds
		total.Bound += r.Bound
		total.Sets += r.Sets
		total.Transitions += r.Transitions
		if r.Status != milp.Optimal {
			total.Status = milp.Feasible
		}
		total.Stop = cmp.Or(total.Stop, r.Stop)
	}
	return total, nil
}
