package simt

import "math"

// Work is the work of a loop nest.
type Work struct {
	ReadBytes   int64 // from the DRAM
	L2Bytes     int64 // from the L2 alone: what earlier nests of the kernel have written
	WriteBytes  int64 // to the DRAM
	SharedBytes int64 // to and from shared memory
	Simple      int64 // additions, multiplications, comparisons, moves
	Special     int64 // exponentials, divisions, roots
	Atomics     int64
	// Syncs is how often a block waits for all its threads in a task.
	Syncs int64
}

// Nest is a loop nest of a kernel.
type Nest struct {
	Mapping Mapping
	Work    Work
	// After lists earlier nests of the same phase whose results its block needs.
	After []int
}

// Kernel is a kernel as the machine sees it: phases with a barrier over all blocks between two of them.
type Kernel struct {
	Block  Block
	Blocks int64
	Phases [][]Nest
}

// Time is the time of a kernel, in seconds, by cause.
type Time struct {
	Launch  float64 `json:"launch_s"`
	Work    float64 `json:"work_s"`
	Barrier float64 `json:"barrier_s"`
	// Bound names what takes longest in the longest phase: dram, l2, shared, simple, special, atomics or latency.
	Bound string `json:"bound"`
}

// Total is the sum.
func (t Time) Total() float64 { return t.Launch + t.Work + t.Barrier }

// Time of a kernel. It panics if no block fits on an SM, or if a kernel with barriers
// has more blocks than a wave: check with [Machine.Wave] before.
func (m *Machine) Time(k Kernel) Time {
	wave := m.Wave(k.Block)
	if wave < 1 {
		panic("simt: a block that no SM can hold")
	}
	if len(k.Phases) > 1 && k.Blocks > wave {
		panic("simt: a barrier over more blocks than a wave")
	}
	t := Time{Launch: m.LaunchSeconds}
	longest := -1.0
	for _, phase := range k.Phases {
		s, bound := m.phase(phase, wave)
		if t.Work += s; s > longest {
			longest, t.Bound = s, bound
		}
	}
	t.Barrier = float64(len(k.Phases)-1) * m.Barrier(k.Blocks)
	return t
}

// phase is the time of a phase and what bounds it.
func (m *Machine) phase(nests []Nest, wave int64) (seconds float64, bound string) {
	var w Work
	blocks := int64(0)
	chain := make([]float64, len(nests)) // to the end of each nest
	longest, area := 0.0, 0.0
	for i, n := range nests {
		w.ReadBytes += n.Work.ReadBytes
		w.L2Bytes += n.Work.L2Bytes
		w.WriteBytes += n.Work.WriteBytes
		w.SharedBytes += n.Work.SharedBytes
		w.Simple += n.Work.Simple
		w.Special += n.Work.Special
		w.Atomics += n.Work.Atomics
		blocks += n.Mapping.Blocks
		before := 0.0
		for _, a := range n.After {
			before = math.Max(before, chain[a])
		}
		start := m.Block.StartSeconds
		if before > 0 {
			start = 0
		}
		life := start + m.lifetime(n)
		chain[i] = before + float64(ceil(n.Mapping.Blocks, wave))*life
		longest = math.Max(longest, chain[i])
		area += float64(n.Mapping.Blocks) * life
	}
	busy := float64(min(m.SMs, max(1, blocks)))
	perSM := m.ClockHz * busy
	for _, c := range []struct {
		name    string
		seconds float64
	}{
		{"dram", float64(w.ReadBytes+w.WriteBytes) / m.DRAM.BytesPerSecond},
		{"l2", float64(w.ReadBytes+w.WriteBytes+w.L2Bytes) / m.L2.BytesPerSecond},
		{"shared", float64(w.SharedBytes) / (m.SM.SharedBytesPerSecond * busy)},
		{"simple", float64(w.Simple) / (float64(m.SM.Lanes) * perSM)},
		{"special", float64(w.Special) / (float64(m.SM.Special) * perSM)},
		{"atomics", float64(w.Atomics) / m.AtomicsPerSecond},
		{"latency", math.Max(longest, area/float64(wave))},
	} {
		if c.seconds > seconds || bound == "" {
			seconds, bound = c.seconds, c.name
		}
	}
	return seconds, bound
}

// lifetime is the time of a block of a nest, from its first load on.
func (m *Machine) lifetime(n Nest) float64 {
	task := float64(n.Work.Syncs) * m.Block.SyncSeconds
	if n.Work.ReadBytes+n.Work.L2Bytes > 0 {
		p := n.Mapping // a thread loads the elements of a task one after the other
		task += float64(ceil(p.RowsPerTask*ceil(p.Cols, p.Parts), p.Threads)) * m.DRAM.LatencySeconds
	}
	return float64(n.Mapping.Tasks) * task
}
