package experts

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/internal/strict"
)

// A Problem is to place experts on equal devices, and to choose one option for all of them. Times are in seconds.
type Problem struct {
	Devices int
	// Load has the seconds that an expert adds to its device, by option, row and expert.
	Load [][][]float64
	// Scenario numbers the scenario of each row, ascending from 0. Weight has the relative frequency of each scenario.
	Scenario []int
	Weight   []float64
	// Worst asks for the least longest scenario, in place of the least mean.
	Worst bool
}

// A Plan fixes one option for all experts and a device for each, before the routing is known.
type Plan struct {
	Option int
	Device []int
}

// The sizes of a problem at most.
const (
	maxDevices = 1 << 12
	maxLoads   = 1 << 24
)

// Validate reports the first mistake of a problem.
func (p *Problem) Validate() error {
	bad := func(field string, found any, expected string) error {
		return strict.Error("", field, fmt.Sprint(found), expected)
	}
	if p.Devices < 1 || p.Devices > maxDevices {
		return bad("devices", p.Devices, fmt.Sprintf("1 to %d", maxDevices))
	}
	if len(p.Load) == 0 || len(p.Load[0]) == 0 || len(p.Load[0][0]) == 0 {
		return bad("loads", "none", "at least one option, row and expert")
	}
	rows, experts := len(p.Load[0]), len(p.Load[0][0])
	if len(p.Load) > maxLoads/rows/experts {
		return bad("loads", "more", fmt.Sprintf("at most %d", maxLoads))
	}
	for o, option := range p.Load {
		if len(option) != rows {
			return bad(fmt.Sprintf("loads[%d]", o), len(option), fmt.Sprintf("%d rows", rows))
		}
		for r, row := range option {
			if len(row) != experts {
				return bad(fmt.Sprintf("loads[%d][%d]", o, r), len(row), fmt.Sprintf("%d experts", experts))
			}
			for e, x := range row {
				if !(x >= 0 && x <= 1e9) {
					return bad(fmt.Sprintf("loads[%d][%d][%d]", o, r, e), x, "0 to 1e9 seconds")
				}
			}
		}
	}
	if len(p.Scenario) != rows {
		return bad("scenarios", len(p.Scenario), fmt.Sprintf("one for each of %d rows", rows))
	}
	for r, s := range p.Scenario {
		before := -1
		if r > 0 {
			before = p.Scenario[r-1]
		}
		if s != before && s != before+1 || s < 0 {
			return bad(fmt.Sprintf("scenarios[%d]", r), s, fmt.Sprintf("%d or %d", max(0, before), before+1))
		}
	}
	if n := p.Scenario[rows-1] + 1; len(p.Weight) != n {
		return bad("weights", len(p.Weight), fmt.Sprintf("one for each of %d scenarios", n))
	}
	for s, w := range p.Weight {
		if !(w > 0 && w <= 1e9) {
			return bad(fmt.Sprintf("weights[%d]", s), w, "more than 0, at most 1e9")
		}
	}
	return nil
}

// Check reports the first rule that a plan of a valid problem breaks.
func (p *Problem) Check(plan *Plan) error {
	if plan.Option < 0 || plan.Option >= len(p.Load) {
		return strict.Error("", "option", fmt.Sprint(plan.Option), fmt.Sprintf("0 to %d", len(p.Load)-1))
	}
	if n := len(p.Load[0][0]); len(plan.Device) != n {
		return strict.Error("", "devices", fmt.Sprint(len(plan.Device)), fmt.Sprintf("one for each of %d experts", n))
	}
	for e, d := range plan.Device {
		if d < 0 || d >= p.Devices {
			return strict.Error("", fmt.Sprintf("devices[%d]", e), fmt.Sprint(d), fmt.Sprintf("0 to %d", p.Devices-1))
		}
	}
	return nil
}

// Seconds returns the time of each scenario under a plan: the sum over its rows of the largest load of a device.
func (p *Problem) Seconds(plan *Plan) []float64 {
	seconds := make([]float64, len(p.Weight))
	on := make([]float64, p.Devices)
	for r, row := range p.Load[plan.Option] {
		clear(on)
		for e, x := range row {
			on[plan.Device[e]] += x
		}
		seconds[p.Scenario[r]] += slices.Max(on)
	}
	return seconds
}

// Mean returns the mean of the scenarios' seconds by their weights.
func (p *Problem) Mean(seconds []float64) float64 {
	sum, all := 0.0, 0.0
	for s, w := range p.Weight {
		sum, all = sum+w*seconds[s], all+w
	}
	return sum / all
}

// cost is the objective: the longest scenario, or the weighted mean of all.
func (p *Problem) cost(seconds []float64) float64 {
	if p.Worst {
		return slices.Max(seconds)
	}
	return p.Mean(seconds)
}

// least is a lower bound on the seconds of each row under any placement: the largest expert, or an
// equal share of all.
func (p *Problem) least(option int) []float64 {
	list := make([]float64, len(p.Scenario))
	for r, row := range p.Load[option] {
		sum := 0.0
		for _, x := range row {
			sum += x
		}
		list[r] = math.Max(slices.Max(row), sum/float64(p.Devices)*(1-near))
	}
	return list
}

// near is the tolerance within which a bound meets a cost: sums of the same numbers in another order.
const near = 1e-9

// byScenario adds up rows.
func (p *Problem) byScenario(rows []float64) []float64 {
	seconds := make([]float64, len(p.Weight))
	for r, x := range rows {
		seconds[p.Scenario[r]] += x
	}
	return seconds
}
