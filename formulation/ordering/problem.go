package ordering

import (
	"fmt"
	"math"

	"github.com/dsasched/dsasched/internal/strict"
)

// A Problem is an instance-ordering problem as its file has it.
type Problem struct {
	Name             string     `json:"name"`
	CapacityBytes    int64      `json:"capacity_bytes"`
	StoreCostPerByte float64    `json:"store_cost_per_byte"`
	LoadCostPerByte  float64    `json:"load_cost_per_byte"`
	Subgraphs        []Subgraph `json:"subgraphs"`
	Arcs             []Arc      `json:"arcs"`
	// KnownTraffic is the optimum that the file claims, nil if it claims none.
	KnownTraffic *float64 `json:"known_optimum_traffic,omitempty"`
}

// A Subgraph is Instances alike pieces of one kernel.
type Subgraph struct {
	Name           string `json:"name"`
	Instances      int    `json:"instances"`
	OutputBytes    int64  `json:"output_bytes"`    // of each instance
	WorkspaceBytes int64  `json:"workspace_bytes"` // needed only while it runs
}

// An Arc says what the instances of To read of those of From: instance q reads Reads[q][0] <= i < Reads[q][1].
type Arc struct {
	From  int      `json:"from"`
	To    int      `json:"to"`
	Reads [][2]int `json:"reads"`
}

// A Ref names an instance, and with it its output: sub-graph, then instance.
type Ref [2]int

// Limits of a problem. They keep every sum of bytes and of costs exact, in integers and in floating point alike.
const (
	maxInstances = 1 << 20
	maxReads     = 1 << 22 // over all instances
	maxBytes     = 1 << 44 // of one output, one workspace, the capacity
	maxCost      = 1 << 52 // of a whole order, in units
	maxDecimals  = 6       // of a cost per byte
)

// InputError describes a mistake in one field of a file.
type InputError = strict.InputError

// mistake is a field's error.
func mistake(field, expected, found string, args ...any) error {
	return &InputError{Field: field, Found: fmt.Sprintf(found, args...), Expected: expected}
}

// checkBytes reports a number of bytes out of range.
func checkBytes(field string, n int64) error {
	if n < 0 || n > maxBytes {
		return mistake(field, fmt.Sprintf("bytes from 0 to %d", int64(maxBytes)), "%d", n)
	}
	return nil
}

// Validate reports the first field that breaks the format's rules, as an [*InputError].
func (p *Problem) Validate() error {
	if err := checkBytes("capacity_bytes", p.CapacityBytes); err != nil {
		return err
	}
	for _, c := range []struct {
		field string
		cost  float64
	}{{"store_cost_per_byte", p.StoreCostPerByte}, {"load_cost_per_byte", p.LoadCostPerByte}} {
		if _, ok := decimals(c.cost); !ok || c.cost < 0 {
			return mistake(c.field, fmt.Sprintf("a cost from 0 with at most %d decimals", maxDecimals), "%v", c.cost)
		}
	}
	for _, check := range []func() error{p.checkSubgraphs, p.checkArcs, p.checkCycles} {
		if err := check(); err != nil {
			return err
		}
	}
	if most, unit := p.mostCost(), p.unit(); most > maxCost {
		return mistake("subgraphs", fmt.Sprintf("costs of at most %g in all", maxCost/unit), "up to %g", most/unit)
	}
	return nil
}

func (p *Problem) checkSubgraphs() error {
	if len(p.Subgraphs) == 0 {
		return mistake("subgraphs", "at least one sub-graph", "none")
	}
	total := 0
	for k, sg := range p.Subgraphs {
		at := fmt.Sprintf("subgraphs[%d]", k)
		if sg.Instances < 1 || sg.Instances > maxInstances {
			return mistake(at+".instances", fmt.Sprintf("1 to %d", maxInstances), "%d", sg.Instances)
		}
		if total += sg.Instances; total > maxInstances {
			return mistake(at+".instances", fmt.Sprintf("at most %d instances in all", maxInstances), "%d", sg.Instances)
		}
		if err := checkBytes(at+".output_bytes", sg.OutputBytes); err != nil {
			return err
		}
		if err := checkBytes(at+".workspace_bytes", sg.WorkspaceBytes); err != nil {
			return err
		}
	}
	return nil
}

func (p *Problem) checkArcs() error {
	seen, reads := map[[2]int]int{}, 0
	for a, arc := range p.Arcs {
		at := fmt.Sprintf("arcs[%d]", a)
		for _, end := range []struct {
			field string
			k     int
		}{{".from", arc.From}, {".to", arc.To}} {
			if end.k < 0 || end.k >= len(p.Subgraphs) {
				return mistake(at+end.field, fmt.Sprintf("a sub-graph from 0 to %d", len(p.Subgraphs)-1), "%d", end.k)
			}
		}
		if arc.From == arc.To {
			return mistake(at+".to", "another sub-graph than from", "%d", arc.To)
		}
		pair := [2]int{arc.From, arc.To}
		if first, dup := seen[pair]; dup {
			return mistake(at, "at most one arc per pair of sub-graphs", "a second arc from %d to %d, after arcs[%d]",
				arc.From, arc.To, first)
		}
		seen[pair] = a
		from, to := p.Subgraphs[arc.From].Instances, p.Subgraphs[arc.To].Instances
		if n := len(arc.Reads); n != to {
			return mistake(at+".reads", fmt.Sprintf("%d ranges, one per instance of sub-graph %d", to, arc.To), "%d", n)
		}
		for q, r := range arc.Reads {
			if r[0] < 0 || r[0] > r[1] || r[1] > from {
				return mistake(fmt.Sprintf("%s.reads[%d]", at, q), fmt.Sprintf("0 <= lo <= hi <= %d", from), "[%d, %d]",
					r[0], r[1])
			}
			if q > 0 && (r[0] < arc.Reads[q-1][0] || r[1] < arc.Reads[q-1][1]) {
				return mistake(fmt.Sprintf("%s.reads[%d]", at, q), "ends that do not decrease", "[%d, %d] after [%d, %d]",
					r[0], r[1], arc.Reads[q-1][0], arc.Reads[q-1][1])
			}
			if reads += r[1] - r[0]; reads > maxReads {
				return mistake(at+".reads", fmt.Sprintf("at most %d reads in all", maxReads), "more")
			}
		}
	}
	return nil
}

// checkCycles reports an arc on or behind a cycle: sub-graphs that read of none that is left are taken away in turn.
func (p *Problem) checkCycles() error {
	next, open := make([][]int, len(p.Subgraphs)), make([]int, len(p.Subgraphs))
	for _, arc := range p.Arcs {
		next[arc.From] = append(next[arc.From], arc.To)
		open[arc.To]++
	}
	var ready []int
	for k, n := range open {
		if n == 0 {
			ready = append(ready, k)
		}
	}
	for len(ready) > 0 {
		k := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, to := range next[k] {
			if open[to]--; open[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	for a, arc := range p.Arcs {
		if open[arc.From] > 0 && open[arc.To] > 0 {
			return mistake(fmt.Sprintf("arcs[%d]", a), "sub-graphs without a cycle",
				"an arc on or behind a cycle, from %d to %d", arc.From, arc.To)
		}
	}
	return nil
}

// mostCost is the most units that an order can cost: each output stored once, and loaded for every reader.
func (p *Problem) mostCost() (most float64) {
	unit := p.unit()
	for _, sg := range p.Subgraphs {
		most += float64(sg.Instances) * float64(sg.OutputBytes) * p.StoreCostPerByte * unit
	}
	for _, arc := range p.Arcs {
		n := 0
		for _, r := range arc.Reads {
			n += r[1] - r[0]
		}
		most += float64(n) * float64(p.Subgraphs[arc.From].OutputBytes) * p.LoadCostPerByte * unit
	}
	return most
}

// decimals is the number of decimals of c, if they are few.
func decimals(c float64) (int, bool) {
	if math.IsNaN(c) || math.Abs(c) > maxBytes {
		return 0, false
	}
	for d, scale := 0, 1.0; d <= maxDecimals; d, scale = d+1, scale*10 {
		if math.Round(c*scale)/scale == c {
			return d, true
		}
	}
	return 0, false
}

// unit is the number of whole units in a cost of 1.
func (p *Problem) unit() float64 {
	s, _ := decimals(p.StoreCostPerByte)
	l, _ := decimals(p.LoadCostPerByte)
	return math.Pow10(max(s, l))
}
