package llm

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/llm/experts"
)

// A Placed is one plan for a layer of experts under many routings: which chip has which expert, and for how many
// tokens there are kernels.
type Placed struct {
	Model    string `json:"model"`
	Hardware string `json:"hardware"`
	DType    string `json:"dtype"` // for the caller to set
	Chips    int64  `json:"chips"`
	Variant  string `json:"variant"` // that schedules a chip's experts
	Method   string `json:"method"`
	Worst    bool   `json:"least_worst"` // of the longest scenario and not of the mean

	// Of the formulas of package experts, in seconds, for what the method makes least.
	Status    string  `json:"status"`
	Stop      string  `json:"stop"`
	Objective float64 `json:"objective_s"`
	Bound     float64 `json:"bound_s"`

	Kernels []int64 `json:"kernel_tokens"`
	Experts [][]int `json:"experts"` // by chip

	Scenarios []PlacedScenario `json:"scenarios"`
	// Mean is that of the scenarios by weight, Longest the longest. No plan that has each expert on one chip has a mean
	// below MeanBound, nor a longest scenario below LongestBound, whatever its kernels and schedules.
	Mean         float64 `json:"mean_s"`
	MeanBound    float64 `json:"mean_bound_s"`
	Longest      float64 `json:"longest_s"`
	LongestBound float64 `json:"longest_bound_s"`
	Simulated    int     `json:"different_chips"` // with different work
}

// A PlacedScenario is a routing under the plan. Seconds are simulated, but for the exchanges of tokens, which follow
// their closed form; no plan takes less than Bound.
type PlacedScenario struct {
	Weight   int64   `json:"weight"`
	Seconds  float64 `json:"latency_s"`
	Exchange float64 `json:"exchange_s"`
	Formula  float64 `json:"formula_s"`
	Bound    float64 `json:"certified_lower_bound_s"`
}

const (
	// leastKernel is the tokens of the smallest kernel, mostKernel of the largest; others are twice as large each.
	leastKernel, mostKernel = 16, 4096
	// manyRuns of the larger kernel are more than a plan has for an expert.
	manyRuns = 64
	// boundNodes are those of a search for a bound.
	boundNodes = 100_000
)

// A Placing is a method of [experts.Methods], and whether it makes the longest scenario least in place of the mean.
type Placing struct {
	Method string
	Worst  bool
}

// PlaceExperts plans a layer of experts for routings in several ways, and simulates each scenario: a chip's experts
// are scheduled together by a recipe. Tokens come from all chips alike and go back there.
func PlaceExperts(ctx context.Context, m *zoo.Mixture, machine *hardware.Spec, routings *experts.Routings,
	ways []Placing, recipe scheduler.Recipe, opts solve.Options[*experts.Plan]) ([]Placed, error) {
	if n := int64(len(routings.Tokens[0])); n != m.Experts() {
		return nil, fmt.Errorf("found tokens of %d experts, expected those of %d of %s", n, m.Experts(), m.Name)
	}
	x := &mixing{ctx: ctx, m: m, chip: machine.Clone(), group: chips.GroupOf(machine), recipe: recipe,
		seconds: map[string]float64{}, needs: map[int64]need{}, routings: routings}
	x.chip.Chips = nil
	var err error
	if x.machine, err = scheduler.Machine(x.chip, scheduler.LevelAuto); err != nil {
		return nil, err
	}
	if err := x.price(); err != nil {
		return nil, err
	}
	p := x.problem()
	bounds, mean, longest, err := x.bound()
	if err != nil {
		return nil, err
	}
	var list []Placed
	for _, way := range ways {
		p.Worst = way.Worst
		r, err := experts.Solve(ctx, p, way.Method, opts)
		if err != nil {
			return nil, err
		}
		a := Placed{Model: m.Name, Hardware: machine.Name, Chips: x.group.Chips, Variant: recipe.Name, Method: way.Method,
			Worst: way.Worst, Status: r.Status.String(), Stop: r.Stop.String(), Objective: x.latency() + r.Objective,
			Bound: x.latency() + r.Bound, Kernels: x.options[r.Plan.Option], Experts: make([][]int, x.group.Chips),
			MeanBound: mean, LongestBound: longest}
		for d := range a.Experts {
			a.Experts[d] = []int{}
		}
		for e, d := range r.Plan.Device {
			a.Experts[d] = append(a.Experts[d], e)
		}
		formula, seconds := p.Seconds(r.Plan), make([]float64, len(p.Weight))
		before := len(x.seconds)
		for s := range routings.Tokens {
			one := PlacedScenario{Weight: routings.Weight[s], Formula: x.latency() + formula[s], Bound: bounds[s]}
			if one.Seconds, one.Exchange, err = x.scenario(s, a.Experts, a.Kernels); err != nil {
				return nil, fmt.Errorf("scenario %d: %w", s+1, err)
			}
			if one.Seconds < one.Bound {
				return nil, fmt.Errorf("scenario %d takes %g s, the bound is %g s", s+1, one.Seconds, one.Bound)
			}
			seconds[s] = one.Seconds
			a.Scenarios = append(a.Scenarios, one)
		}
		a.Simulated = len(x.seconds) - before
		a.Mean, a.Longest = p.Mean(seconds), slices.Max(seconds)
		list = append(list, a)
	}
	return list, nil
}

// mixing has what is known of a layer of experts on a chip.
type mixing struct {
	ctx           context.Context
	m             *zoo.Mixture
	chip, machine *hardware.Spec // as described, and as decisions see it
	group         chips.Group
	recipe        scheduler.Recipe
	routings      *experts.Routings

	tokens  []int64   // of kernels
	kernels []float64 // what each takes
	options [][]int64 // kernels that a plan may have
	seconds map[string]float64
	needs   map[int64]need
}

// need is the least that an expert takes of a chip: of the DDR, and of the matrix units of a cluster.
type need struct{ ddr, matrix float64 }

// price simulates an expert by the kernels' tokens. Plans have one or two kernels.
func (x *mixing) price() error {
	most := int64(0)
	for _, tokens := range x.routings.Tokens {
		most = max(most, slices.Max(tokens))
	}
	for n := int64(leastKernel); ; n *= 2 {
		t, err := x.simulate([][]int64{{n}})
		if err != nil {
			if len(x.tokens) > 0 && scheduler.TooLarge(err) {
				break
			}
			return fmt.Errorf("an expert of %d tokens: %w", n, err)
		}
		x.tokens, x.kernels = append(x.tokens, n), append(x.kernels, t)
		if n >= most || n >= mostKernel {
			break
		}
	}
	for i, a := range x.tokens {
		if a < most/manyRuns && i+1 < len(x.tokens) {
			continue
		}
		x.options = append(x.options, []int64{a})
		for _, b := range x.tokens[:i] {
			x.options = append(x.options, []int64{b, a})
		}
	}
	return nil
}

// runs are the kernels that take least time for n tokens, and this time.
func (x *mixing) runs(n int64, kernels []int64) (list []int64, seconds float64) {
	if n == 0 {
		return nil, 0
	}
	of := func(tokens int64) float64 { return x.kernels[slices.Index(x.tokens, tokens)] }
	small, large := kernels[0], kernels[len(kernels)-1]
	seconds = math.Inf(1)
	var many, rest int64
	for k := range (n+large-1)/large + 1 {
		left := (max(0, n-k*large) + small - 1) / small
		if t := float64(k)*of(large) + float64(left)*of(small); t < seconds {
			many, rest, seconds = k, left, t
		}
	}
	return append(slices.Repeat([]int64{large}, int(many)), slices.Repeat([]int64{small}, int(rest))...), seconds
}

// exchange is what a token more on the chip with most costs, there and back: all chips send as if each had as many.
func (x *mixing) exchange(tokens int64) float64 {
	if x.group.Chips == 1 {
		return 0
	}
	seconds := x.group.Seconds(chips.AllToAll, tokens*x.group.Chips*x.m.TokenBytes())
	return 2 * seconds
}

// latency is that of both exchanges, whatever they bring.
func (x *mixing) latency() float64 { return x.exchange(0) }

// problem has two rows for each scenario: the exchanges, and the experts.
func (x *mixing) problem() *experts.Problem {
	p := &experts.Problem{Devices: int(x.group.Chips)}
	for s, tokens := range x.routings.Tokens {
		p.Weight, p.Scenario = append(p.Weight, float64(x.routings.Weight[s])), append(p.Scenario, s, s)
		for o, kernels := range x.options {
			if s == 0 {
				p.Load = append(p.Load, nil)
			}
			var work []float64
			for _, n := range tokens {
				_, t := x.runs(n, kernels)
				work = append(work, t)
			}
			p.Load[o] = append(p.Load[o], x.sent(tokens), work)
		}
	}
	return p
}

func (x *mixing) sent(tokens []int64) (list []float64) {
	for _, n := range tokens {
		list = append(list, x.exchange(n)-x.latency())
	}
	return list
}

// bound is what each scenario takes at least, and what the mean and the longest of any plan do. An expert's weights
// and tokens cross the DDR of its chip, and its products keep the matrix units there: of both, that which gives a
// scenario more counts.
func (x *mixing) bound() (scenarios []float64, mean, longest float64, err error) {
	p := &experts.Problem{Devices: int(x.group.Chips), Load: make([][][]float64, 1)}
	for s, tokens := range x.routings.Tokens {
		p.Weight, p.Scenario = append(p.Weight, float64(x.routings.Weight[s])), append(p.Scenario, s, s)
		var ddr, matrix []float64
		for _, n := range tokens {
			v, err := x.need(n)
			if err != nil {
				return nil, 0, 0, err
			}
			ddr, matrix = append(ddr, v.ddr), append(matrix, v.matrix)
		}
		sent, best, most := x.sent(tokens), ddr, 0.0
		for _, work := range [][]float64{ddr, matrix} {
			one := &experts.Problem{Devices: p.Devices, Load: [][][]float64{{sent, work}}, Scenario: []int{0, 0},
				Weight: []float64{1}}
			r, err := experts.Solve(x.ctx, one, "search", solve.Options[*experts.Plan]{WorkLimit: boundNodes})
			if err != nil {
				return nil, 0, 0, err
			}
			if r.Bound > most {
				best, most = work, r.Bound
			}
		}
		scenarios = append(scenarios, x.latency()+most*exactly)
		p.Load[0] = append(p.Load[0], sent, best)
	}
	together := func(worst bool) float64 {
		p.Worst = worst
		var r *experts.Result
		if r, err = experts.Solve(x.ctx, p, "search", solve.Options[*experts.Plan]{WorkLimit: boundNodes}); err != nil {
			return 0
		}
		return x.latency() + r.Bound*exactly
	}
	mean, longest = max(p.Mean(scenarios), together(false)), max(slices.Max(scenarios), together(true))
	return scenarios, mean, longest, err
}

// exactly takes off what rounding may have added, as in package bound.
const exactly = 1 - 1e-6

// need is that of n tokens, divided over the clusters or not.
func (x *mixing) need(n int64) (need, error) {
	if n == 0 {
		return need{}, nil
	}
	clusters := int64(x.machine.Clusters)
	share := (n + clusters - 1) / clusters
	if v, known := x.needs[share]; known {
		return v, nil
	}
	_, w, err := bound.Prove(x.ctx, x.network(1, [][]int64{{share}}), x.machine, 1)
	if err != nil {
		return need{}, err
	}
	of := w.Shares[0]
	v := need{ddr: (of.WeightBytes + of.InputBytes + of.OutputBytes) / x.machine.DDR.BandwidthBytesPerSecond}
	for _, o := range of.Operators {
		v.matrix += o.Matrix
	}
	x.needs[share] = v
	return v, nil
}

// network has experts that run, each of a share of the tokens by batch element.
func (x *mixing) network(shares int64, runs [][]int64) network.Network {
	return network.Network{Name: x.m.Name + "-experts", Graph: func(batch int64) (*model.Graph, error) {
		var each [][]int64
		for _, list := range runs {
			each = append(each, nil)
			for _, n := range list {
				each[len(each)-1] = append(each[len(each)-1], (n+shares-1)/shares)
			}
		}
		g, err := x.m.Graph(batch, each)
		if err != nil {
			return nil, err
		}
		if g, _, err = simplify.Run(g); err == nil {
			g.Remember()
		}
		return g, err
	}}
}

// simulate is what a chip takes for experts that run: on one cluster, or divided over all.
func (x *mixing) simulate(runs [][]int64) (float64, error) {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b []int64) int { return slices.Compare(b, a) }) // experts are alike
	key := fmt.Sprint(runs)
	if t, known := x.seconds[key]; known {
		return t, nil
	}
	best, failed := math.Inf(1), error(nil)
	for _, shares := range slices.Compact([]int64{1, int64(x.chip.Clusters)}) {
		r, err := scheduler.Run(x.ctx, x.network(shares, runs), x.chip, shares, x.recipe, scheduler.Options{Figures: true})
		if err == nil {
			best = min(best, r.LatencySeconds())
		} else if failed = err; !scheduler.TooLarge(err) {
			return 0, err
		}
	}
	if math.IsInf(best, 1) {
		return 0, failed
	}
	x.seconds[key] = best
	return best, nil
}

// scenario simulates all chips in a scenario.
func (x *mixing) scenario(s int, chips [][]int, kernels []int64) (seconds, exchange float64, err error) {
	most := int64(0)
	for _, own := range chips {
		tokens := int64(0)
		var runs [][]int64
		for _, e := range own {
			if list, _ := x.runs(x.routings.Tokens[s][e], kernels); len(list) > 0 {
				runs = append(runs, list)
			}
			tokens += x.routings.Tokens[s][e]
		}
		if most = max(most, tokens); len(runs) == 0 {
			continue
		}
		t, err := x.simulate(runs)
		if err != nil {
			return 0, 0, err
		}
		seconds = max(seconds, t)
	}
	exchange = x.exchange(most)
	return seconds + exchange, exchange, nil
}
