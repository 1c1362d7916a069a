package balance

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/systems/mofang"
	"github.com/dsasched/dsasched/systems/mofang/layering"
	"github.com/dsasched/dsasched/systems/mofang/streams"
)

// LayerMethods are the ways to divide operators into layers.
func LayerMethods() []solve.Method {
	return append([]solve.Method{{Name: "mofang",
		Description: "split again and again, after the balance of work (Mofang, Algorithm 1)"}}, layering.Methods()...)
}

// A Layering is operators divided into layers.
type Layering struct {
	Method string      `json:"method"`
	Status milp.Status `json:"status"`
	Stop   milp.Stop   `json:"stop"`
	// Seconds is the time of all layers; no layering takes less than Bound.
	Seconds     float64 `json:"latency_s"`
	Bound       float64 `json:"bound_s"`
	Sequential  float64 `json:"sequential_latency_s"`
	Greedy      float64 `json:"greedy_latency_s"`
	Sets        int64   `json:"sets,omitempty"`
	Transitions int64   `json:"transitions,omitempty"`
	// Tried and Kept count the splits that Mofang's search looked at, before and after the threshold.
	Tried int `json:"splits_tried,omitempty"`
	Kept  int `json:"splits_kept,omitempty"`
	// Utilization is the mean share of the device that is busy.
	Utilization float64 `json:"utilization"`
	Layers      []Layer `json:"layers"`
}

// A Layer is operators that start together or, where that is faster, run one by one.
type Layer struct {
	Numbers     []int           `json:"numbers"` // of the operators
	Operators   []string        `json:"operators"`
	Mode        streams.Mode    `json:"mode"`
	Seconds     float64         `json:"latency_s"`
	Utilization float64         `json:"utilization"`
	Phases      []streams.Phase `json:"-"`
}

// LayerOptions are settings of [LayerOperators].
type LayerOptions struct {
	layering.Options
	Threshold float64 // of Mofang; 0 is its default
}

// LayerOperators divides operators by the named method. The exact method starts from Mofang's layers. If ctx or a
// limit ends, the best layers so far come with a status that says so.
func LayerOperators(ctx context.Context, name string, m *streams.Machine, ops []streams.Operator, method string,
	opt LayerOptions) (*Layering, error) {
	if err := streams.Validate(ops); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := solve.Find(LayerMethods(), method, opt.Solver); err != nil {
		return nil, fmt.Errorf("layering: %w", err)
	}
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("layering: %w", err)
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	opt.TimeLimit = 0
	all := make([]int, len(ops))
	after := make([][]int, len(ops))
	for i, op := range ops {
		all[i], after[i] = i, op.After
	}
	out := &Layering{Method: method, Status: milp.Feasible,
		Sequential: streams.Seconds(m.Run(ops, all, streams.OneByOne)),
		Greedy:     streams.Seconds(m.Run(ops, all, streams.SideBySide))}
	bound := func(set []int) float64 { return m.Bound(ops, set) }
	var layers [][]int
	switch method {
	case "mofang":
		var splits []mofang.Split
		layers, splits = mofang.Layering(ctx, m, ops, opt.Threshold)
		for _, s := range splits {
			out.Tried, out.Kept = out.Tried+s.Tried, out.Kept+s.Kept
		}
		out.Stop = solve.Why(ctx)
		cuts := streams.Cuts(ops)
		for b := range cuts[1:] {
			out.Bound += bound(all[cuts[b]:cuts[b+1]])
		}
	default:
		if method == "exact" && opt.Start == nil {
			opt.Start, _ = mofang.Layering(ctx, m, ops, opt.Threshold)
		}
		price := func(set []int) float64 {
			_, phases := m.Best(ops, set)
			return streams.Seconds(phases)
		}
		r, err := layering.Blocks(ctx, name, after, streams.Cuts(ops), price, bound, method, opt.Options, nil)
		if err != nil {
			return nil, err
		}
		layers = r.Layers
		out.Status, out.Stop, out.Bound, out.Sets, out.Transitions = r.Status, r.Stop, r.Bound, r.Sets, r.Transitions
	}
	busy := 0.0
	for _, set := range layers {
		mode, phases := m.Best(ops, set)
		l := Layer{Numbers: set, Mode: mode, Phases: phases, Seconds: streams.Seconds(phases)}
		for _, i := range set {
			l.Operators = append(l.Operators, ops[i].Name)
		}
		for _, p := range phases {
			l.Utilization += p.Utilization * p.Seconds
		}
		busy += l.Utilization
		if l.Seconds > 0 {
			l.Utilization /= l.Seconds
		}
		out.Seconds += l.Seconds
		out.Layers = append(out.Layers, l)
	}
	if out.Stop == milp.Complete && out.Seconds <= out.Bound*(1+1e-9) {
		out.Status = milp.Optimal
	}
	if out.Seconds > 0 {
		out.Utilization = busy / out.Seconds
	}
	return out, nil
}
