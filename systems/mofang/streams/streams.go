package streams

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// An Operator is a kernel.
type Operator struct {
	Name string `json:"name"`
	// After lists the operators that end before this one starts.
	After        []int   `json:"after,omitempty"`
	Blocks       int64   `json:"blocks"`
	BlockSeconds float64 `json:"block_seconds"` // of its work alone
	// BlockBytes are moved by a block to and from the memory while it works.
	BlockBytes float64 `json:"block_bytes,omitempty"`
	// Width is the most processors that work on it at a time; 0 is all.
	Width int64 `json:"width,omitempty"`
	MACs  int64 `json:"macs"`
	// Merge is equal for operators that can run as one kernel: convolutions of one
	// input with equal windows. Empty is for none.
	Merge string `json:"-"`
}

// A Machine runs blocks.
type Machine struct {
	Name       string `json:"name"`
	Processors int64  `json:"processors"`
	// LaunchSeconds is from the start of an operator to that of its blocks.
	LaunchSeconds float64 `json:"launch_seconds"`
	// BytesPerSecond is the memory's bandwidth for all processors, ProcessorBytesPerSecond for one; 0: no limit.
	BytesPerSecond          float64 `json:"bytes_per_second,omitempty"`
	ProcessorBytesPerSecond float64 `json:"processor_bytes_per_second,omitempty"`
}

// A Mode is how a set of operators runs.
type Mode string

// The modes.
const (
	OneByOne   Mode = "sequential"
	SideBySide Mode = "greedy"
	AsOne      Mode = "merged" // side by side, operators that can be one kernel merged
)

// A Phase is operators that started together.
type Phase struct {
	Operators []int   `json:"operators"`
	Seconds   float64 `json:"seconds"`
	// Utilization is the mean share of the processors that were busy.
	Utilization float64 `json:"utilization"`
	Busy        []Busy  `json:"-"`
	Ends        []float64
}

// Busy says that from At seconds after the phase's start so many processors worked,
// until the next entry or the phase's end.
type Busy struct {
	At         float64
	Processors int64
}

// Validate reports the first operator that is none. Operators may only wait for earlier ones.
func Validate(ops []Operator) error {
	for i, op := range ops {
		switch {
		case op.Width < 0:
			return fmt.Errorf("operator %d (%s): found width %d, expected at least 0", i, op.Name, op.Width)
		case op.Blocks < 0:
			return fmt.Errorf("operator %d (%s): found %d blocks, expected at least 0", i, op.Name, op.Blocks)
		case !(op.BlockSeconds >= 0) || math.IsInf(op.BlockSeconds, 1):
			return fmt.Errorf("operator %d (%s): found %v s a block, expected a time", i, op.Name, op.BlockSeconds)
		case !(op.BlockBytes >= 0) || math.IsInf(op.BlockBytes, 1):
			return fmt.Errorf("operator %d (%s): found %v bytes a block, expected a size", i, op.Name, op.BlockBytes)
		}
		for _, h := range op.After {
			if h < 0 || h >= i {
				return fmt.Errorf("operator %d (%s): found it after operator %d, expected one of 0 to %d", i, op.Name, h, i-1)
			}
		}
	}
	return nil
}

// Alone is the time of one operator.
func (m *Machine) Alone(op *Operator) float64 {
	w := m.width(op)
	wave := func(n int64) float64 {
		t := m.block(op)
		if m.BytesPerSecond > 0 {
			t = max(t, float64(n)*op.BlockBytes/m.BytesPerSecond)
		}
		return t
	}
	seconds := m.LaunchSeconds + float64(op.Blocks/w)*wave(w)
	if left := op.Blocks % w; left > 0 {
		seconds += wave(left)
	}
	return seconds
}

// block is the time of a block with nothing beside it.
func (m *Machine) block(op *Operator) float64 {
	if m.ProcessorBytesPerSecond > 0 {
		return max(op.BlockSeconds, op.BlockBytes/m.ProcessorBytesPerSecond)
	}
	return op.BlockSeconds
}

// running are n blocks of an operator that began together.
type running struct {
	k       int // position in the set
	n       int64
	seconds float64 // of a block with nothing beside it
	demand  float64 // bytes a second of each block then
	left    float64 // of 1
	rate    float64 // 1 with nothing beside it
}

// share sets the rates of blocks: the memory gives each as much as it can take, or as much as any other that could
// take more.
func (m *Machine) share(run []running) {
	all := 0.0
	for i := range run {
		run[i].rate = 1
		all += float64(run[i].n) * run[i].demand
	}
	if m.BytesPerSecond == 0 || all <= m.BytesPerSecond {
		return
	}
	order := make([]int, len(run))
	blocks := int64(0)
	for i := range run {
		order[i] = i
		blocks += run[i].n
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(run[a].demand, run[b].demand) })
	left := m.BytesPerSecond
	for _, i := range order {
		r := &run[i]
		if fair := left / float64(blocks); r.demand > fair {
			r.rate = fair / r.demand
		}
		left -= float64(r.n) * r.demand * r.rate
		blocks -= r.n
	}
}

// width is the number of processors that can work on an operator.
func (m *Machine) width(op *Operator) int64 {
	if op.Width > 0 {
		return min(op.Width, m.Processors)
	}
	return m.Processors
}

// Together runs operators that start at the same time. Nothing in it waits for anything else.
func (m *Machine) Together(ops []Operator, set []int) Phase {
	p := Phase{Operators: slices.Clone(set), Ends: make([]float64, len(set))}
	queue := make([]int, 0, len(set)) // positions in set
	for k, i := range set {
		p.Ends[k] = m.LaunchSeconds
		p.Seconds = max(p.Seconds, m.LaunchSeconds)
		if ops[i].Blocks > 0 {
			queue = append(queue, k)
		}
	}
	slices.SortStableFunc(queue, func(a, b int) int {
		x, y := &ops[set[a]], &ops[set[b]]
		return cmp.Or(cmp.Compare(m.block(y), m.block(x)), cmp.Compare(set[a], set[b]))
	})
	var run []running
	free, now, work := m.Processors, m.LaunchSeconds, 0.0
	left, room := make([]int64, len(set)), make([]int64, len(set))
	for k, i := range set {
		left[k], room[k] = ops[i].Blocks, m.width(&ops[i])
	}
	note := func() {
		b := Busy{now, m.Processors - free}
		if n := len(p.Busy); n > 0 && p.Busy[n-1].At == now {
			p.Busy[n-1] = b
		} else {
			p.Busy = append(p.Busy, b)
		}
	}
	for len(queue) > 0 || len(run) > 0 {
		for _, k := range queue {
			n, op := min(free, left[k], room[k]), &ops[set[k]]
			if n == 0 {
				continue
			}
			left[k] -= n
			room[k] -= n
			free -= n
			r := running{k: k, n: n, seconds: m.block(op), left: 1}
			if op.BlockBytes > 0 {
				if r.seconds == 0 { // of a machine where one processor has all of the memory
					r.seconds = op.BlockBytes / m.BytesPerSecond
				}
				r.demand = op.BlockBytes / r.seconds
			}
			run = append(run, r)
		}
		queue = slices.DeleteFunc(queue, func(k int) bool { return left[k] == 0 })
		note()
		if len(run) == 0 {
			break
		}
		m.share(run)
		step := math.Inf(1)
		for _, r := range run {
			step = min(step, r.left*r.seconds/r.rate)
		}
		now += step
		work += float64(m.Processors-free) * step
		going := run[:0]
		for _, r := range run {
			if t := r.left * r.seconds / r.rate; t > step*(1+1e-12) {
				r.left -= step * r.rate / r.seconds
				going = append(going, r)
				continue
			}
			p.Ends[r.k] = now
			free += r.n
			room[r.k] += r.n
		}
		run = going
		p.Seconds = max(p.Seconds, now)
	}
	note()
	if p.Seconds > 0 {
		p.Utilization = work / (float64(m.Processors) * p.Seconds)
	}
	return p
}

// Run runs a set of operators in a mode, phase after phase. Predecessors outside the set have ended before.
func (m *Machine) Run(ops []Operator, set []int, mode Mode) []Phase {
	set = slices.Clone(set)
	slices.Sort(set)
	var phases []Phase
	if mode == OneByOne {
		for _, i := range set {
			phases = append(phases, m.Together(ops, []int{i}))
		}
		return phases
	}
	for _, level := range Levels(ops, set) {
		phases = append(phases, m.Together(ops, level))
	}
	return phases
}

// Bound is a lower bound, in seconds, on every division of a set of operators into phases. A phase is a launch and no
// shorter than any of its operators alone, nor than the work of all on all processors, nor than all that they move;
// and operators of which each waits for the one before are in as many phases.
func (m *Machine) Bound(ops []Operator, set []int) float64 {
	set = slices.Clone(set)
	slices.Sort(set)
	end := map[int]float64{}
	longest, work, moved := 0.0, 0.0, 0.0
	for _, i := range set {
		before := 0.0
		for _, h := range ops[i].After {
			before = max(before, end[h])
		}
		end[i] = before + m.Alone(&ops[i])
		longest = max(longest, end[i])
		work += float64(ops[i].Blocks) * m.block(&ops[i])
		moved += float64(ops[i].Blocks) * ops[i].BlockBytes
	}
	if work /= float64(m.Processors); m.BytesPerSecond > 0 {
		work = max(work, moved/m.BytesPerSecond)
	}
	return max(longest, float64(len(Levels(ops, set)))*m.LaunchSeconds+work)
}

// Levels divides a sorted set of operators into those that wait for none of it, those that wait for such, and so on.
func Levels(ops []Operator, set []int) [][]int {
	var levels [][]int
	level := map[int]int{}
	for _, i := range set {
		at := 0
		for _, h := range ops[i].After {
			if l, in := level[h]; in {
				at = max(at, l+1)
			}
		}
		level[i] = at
		if at == len(levels) {
			levels = append(levels, nil)
		}
		levels[at] = append(levels[at], i)
	}
	return levels
}

// Seconds is how long phases take one after another.
func Seconds(phases []Phase) float64 {
	sum := 0.0
	for _, p := range phases {
		sum += p.Seconds
	}
	return sum
}

// Best runs a set in the fastest of the modes, side by side where they are equal.
func (m *Machine) Best(ops []Operator, set []int) (Mode, []Phase) {
	mode, best := SideBySide, m.Run(ops, set, SideBySide)
	if phases := m.Run(ops, set, OneByOne); Seconds(phases) < Seconds(best) {
		mode, best = OneByOne, phases
	}
	if phases := m.asOne(ops, set); phases != nil && Seconds(phases) < Seconds(best) {
		mode, best = AsOne, phases
	}
	return mode, best
}

// asOne runs a set side by side with operators merged that can be, nil if none can.
func (m *Machine) asOne(ops []Operator, set []int) (phases []Phase) {
	some := false
	for _, level := range Levels(ops, slices.Sorted(slices.Values(set))) {
		own := make([]Operator, len(level))
		for k, i := range level {
			if own[k] = ops[i]; own[k].Merge != "" && own[k].Width == 0 {
				own[k].Merge = fmt.Sprint(own[k].Merge, own[k].After)
			} else {
				own[k].Merge = ""
			}
			own[k].After = nil
		}
		merged, parts := Merged(own)
		some = some || len(merged) < len(own)
		all := make([]int, len(merged))
		for k := range all {
			all[k] = k
		}
		p := m.Together(merged, all)
		ends := p.Ends
		p.Operators, p.Ends = nil, nil
		for k, list := range parts {
			for _, x := range list {
				p.Operators, p.Ends = append(p.Operators, level[x]), append(p.Ends, ends[k])
			}
		}
		phases = append(phases, p)
	}
	if !some {
		return nil
	}
	return phases
}

// Merged makes one operator of each group of operators with one Merge key that wait for the same: its blocks are
// theirs together, at the longest of their times. It returns the operators, and for each which ones it has come from.
func Merged(ops []Operator) (merged []Operator, parts [][]int) {
	at := make([]int, len(ops))
	first := map[string]int{}
	for i, op := range ops {
		key := fmt.Sprint(op.Merge, op.After)
		if k, ok := first[key]; ok && op.Merge != "" {
			m := &merged[k]
			m.Name += "+" + op.Name
			m.BlockBytes = (float64(m.Blocks)*m.BlockBytes + float64(op.Blocks)*op.BlockBytes) /
				max(1, float64(m.Blocks+op.Blocks))
			m.Blocks += op.Blocks
			if m.Width > 0 && op.Width > 0 {
				m.Width += op.Width
			} else {
				m.Width = 0
			}
			m.BlockSeconds = max(m.BlockSeconds, op.BlockSeconds)
			m.MACs += op.MACs
			parts[k] = append(parts[k], i)
			at[i] = k
			continue
		}
		at[i] = len(merged)
		first[key] = at[i]
		op.After = slices.Clone(op.After)
		merged = append(merged, op)
		parts = append(parts, []int{i})
	}
	for k := range merged {
		var after []int
		for _, i := range parts[k] {
			for _, h := range ops[i].After {
				after = append(after, at[h])
			}
		}
		slices.Sort(after)
		merged[k].After = slices.Compact(after)
	}
	return merged, parts
}

// reach says of each operator for which others it waits.
func reach(ops []Operator) [][]bool {
	waits := make([][]bool, len(ops))
	for i, op := range ops {
		waits[i] = make([]bool, i)
		for _, h := range op.After {
			waits[i][h] = true
			for k, w := range waits[h] {
				waits[i][k] = waits[i][k] || w
			}
		}
	}
	return waits
}
