package partition

import (
	"fmt"
	"slices"
)

// A Division gives nodes, by id, to devices. Devices may be left out or empty.
type Division struct {
	Accelerators, CPUs [][]int
}

// A Violation is a rule of the package's problem that a division breaks.
type Violation struct {
	Problem string
	Rule    int // (3) to (7); 0 where a node is nowhere, twice or unknown
	What    string
}

func (e *Violation) Error() string {
	if e.Rule == 0 {
		return fmt.Sprintf("%s: %s", e.Problem, e.What)
	}
	return fmt.Sprintf("%s: rule (%d): %s", e.Problem, e.Rule, e.What)
}

// devices gives each node of a valid problem its device: accelerators first, then CPUs.
func (p *Problem) devices(d *Division) ([]int, error) {
	bad := func(format string, args ...any) error { return &Violation{p.Name, 0, fmt.Sprintf(format, args...)} }
	if len(d.Accelerators) > p.Accelerators || len(d.CPUs) > p.CPUs {
		return nil, bad("found %d accelerators and %d CPUs, expected at most %d and %d", len(d.Accelerators), len(d.CPUs),
			p.Accelerators, p.CPUs)
	}
	at := slices.Repeat([]int{-1}, len(p.Nodes))
	for dev, set := range slices.Concat(d.Accelerators, d.CPUs) {
		if dev >= len(d.Accelerators) {
			dev += p.Accelerators - len(d.Accelerators)
		}
		for _, id := range set {
			i, ok := p.index[id]
			if !ok {
				return nil, bad("node %d is not in the graph", id)
			}
			if at[i] >= 0 {
				return nil, bad("node %d is on %s and on %s", id, p.device(at[i]), p.device(dev))
			}
			at[i] = dev
		}
	}
	if i := slices.Index(at, -1); i >= 0 {
		return nil, bad("node %d is on no device", p.Nodes[i].ID)
	}
	return at, nil
}

func (p *Problem) device(d int) string {
	if d < p.Accelerators {
		return fmt.Sprintf("accelerator %d", d)
	}
	return fmt.Sprintf("CPU %d", d-p.Accelerators)
}

// Loads returns the load of each device, accelerators first, by (1) and (2), whether or
// not the division obeys (3) to (7). The error is a *Violation of rule 0.
func (p *Problem) Loads(d *Division) ([]float64, error) {
	at, err := p.devices(d)
	if err != nil {
		return nil, err
	}
	loads := make([]float64, p.Accelerators+p.CPUs)
	for i, v := range p.Nodes {
		if at[i] < p.Accelerators {
			loads[at[i]] += v.AcceleratorLatency
		} else {
			loads[at[i]] += v.CPULatency
		}
		pays := map[int]bool{}
		for _, w := range p.succ[i] {
			if at[w] != at[i] {
				pays[at[i]], pays[at[w]] = true, true
			}
		}
		for dev := range p.Accelerators {
			if pays[dev] {
				loads[dev] += p.cost[i]
			}
		}
	}
	return loads, nil
}

// MaxLoad is the largest of Loads.
func (p *Problem) MaxLoad(d *Division) (float64, error) {
	loads, err := p.Loads(d)
	if err != nil {
		return 0, err
	}
	return slices.Max(loads), nil
}

// Check tries rules (3) to (7) on a division of a valid problem and returns a *Violation for the first that it breaks.
func (p *Problem) Check(d *Division) error {
	at, err := p.devices(d)
	if err != nil {
		return err
	}
	bad := func(rule int, format string, args ...any) error {
		return &Violation{p.Name, rule, fmt.Sprintf(format, args...)}
	}
	bytes := make([]float64, p.Accelerators+p.CPUs)
	colour := map[int]int{}
	for i, v := range p.Nodes {
		bytes[at[i]] += p.size[i]
		if !v.Supported && at[i] < p.Accelerators {
			return bad(4, "node %d is on %s, expected a CPU", v.ID, p.device(at[i]))
		}
		if v.Color == NoColor {
			continue
		}
		if j, ok := colour[v.Color]; ok && at[j] != at[i] {
			return bad(5, "nodes %d and %d of colour %d are on %s and %s, expected one device", p.Nodes[j].ID, v.ID, v.Color,
				p.device(at[j]), p.device(at[i]))
		}
		colour[v.Color] = i
	}
	for dev := range p.Accelerators {
		if bytes[dev] > p.memory {
			return bad(3, "%s holds %.0f bytes, expected at most %.0f", p.device(dev), bytes[dev], p.MemoryBytes)
		}
	}
	for _, backward := range []bool{false, true} {
		for dev := range bytes {
			// left[v]: a node of the device lies before v and v is on a path that has left it.
			inside, left := make([]bool, len(p.Nodes)), make([]bool, len(p.Nodes))
			for _, i := range p.order {
				if p.Nodes[i].Backward != backward {
					continue
				}
				for _, u := range p.pred[i] {
					if p.Nodes[u].Backward == backward {
						left[i] = left[i] || left[u] || inside[u] && at[i] != dev
					}
				}
				if inside[i] = at[i] == dev; inside[i] && left[i] {
					return bad(6, "a path leaves %s and comes back to node %d", p.device(dev), p.Nodes[i].ID)
				}
			}
		}
	}
	if _, waits := p.places(at); waits >= 0 {
		return bad(7, "%s waits for what comes after it, expected devices in a row", p.device(waits))
	}
	return nil
}

// places returns the devices' places in a row by (7); waits is a device without one, or -1.
func (p *Problem) places(at []int) (place []int, waits int) {
	n := p.Accelerators + p.CPUs
	before := make([]map[int]bool, n)
	for i := range before {
		before[i] = map[int]bool{}
	}
	for _, arc := range p.row {
		if u, w := at[arc[0]], at[arc[1]]; u != w {
			before[w][u] = true
		}
	}
	place = slices.Repeat([]int{-1}, n)
	for k := range n {
		next := -1
		for dev := range n {
			ready := place[dev] < 0
			for b := range before[dev] {
				ready = ready && place[b] >= 0
			}
			if ready {
				next = dev
				break
			}
		}
		if next < 0 {
			return place, slices.Index(place, -1)
		}
		place[next] = k
	}
	return place, -1
}
