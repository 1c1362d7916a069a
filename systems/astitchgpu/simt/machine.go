package simt

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// Machine describes a machine. Read one with [Load] or [Parse].
type Machine struct {
	Name             string  `json:"name"`
	Description      string  `json:"description"`
	ClockHz          float64 `json:"clock_hz"`
	SMs              int64   `json:"sms"`
	SM               SM      `json:"sm"`
	Block            Limits  `json:"block"`
	DRAM             DRAM    `json:"dram"`
	L2               L2      `json:"l2"`
	AtomicsPerSecond float64 `json:"atomics_per_s"`
	// LaunchSeconds is from the end of a kernel to the start of the next one's work.
	LaunchSeconds float64 `json:"launch_s"`
	// A barrier over n blocks takes BarrierSeconds + n x BarrierSecondsPerBlock.
	BarrierSeconds         float64 `json:"barrier_s"`
	BarrierSecondsPerBlock float64 `json:"barrier_per_block_s"`
	// LibraryEfficiency is the share of the roofline that library calls reach.
	LibraryEfficiency float64 `json:"library_efficiency"`
}

// SM describes one streaming multiprocessor.
type SM struct {
	Threads              int64   `json:"threads"` // at a time, as the next two
	Blocks               int64   `json:"blocks"`
	Registers            int64   `json:"registers"`
	SharedBytes          int64   `json:"shared_bytes"`
	Lanes                int64   `json:"simple_ops_per_cycle"`
	Special              int64   `json:"special_ops_per_cycle"`
	SharedBytesPerSecond float64 `json:"shared_bytes_per_s"`
	// MatrixMACs per cycle, by element type; f32 is always there.
	MatrixMACs Peaks `json:"peaks"`
}

// Peaks holds the operations of the matrix units per cycle, by element type.
type Peaks map[string]float64

// MarshalJSON lists them by element type.
func (p Peaks) MarshalJSON() ([]byte, error) {
	type peak struct {
		DType string  `json:"dtype"`
		MACs  float64 `json:"macs_per_cycle"`
	}
	list := []peak{}
	for _, t := range slices.Sorted(maps.Keys(p)) {
		list = append(list, peak{t, p[t]})
	}
	return json.Marshal(list)
}

// Limits holds the limits of a block, and its costs.
type Limits struct {
	Warp         int64   `json:"warp"`
	Threads      int64   `json:"threads"`
	Registers    int64   `json:"registers"` // per thread
	SharedBytes  int64   `json:"shared_bytes"`
	StartSeconds float64 `json:"start_s"` // until its first load
	SyncSeconds  float64 `json:"sync_s"`  // a barrier of the block
}

// DRAM is the memory behind all.
type DRAM struct {
	BytesPerSecond   float64 `json:"bandwidth_bytes_per_s"`
	LatencySeconds   float64 `json:"latency_s"`
	TransactionBytes int64   `json:"transaction_bytes"`
}

// L2 is the cache that all SMs share.
type L2 struct {
	SizeBytes      int64   `json:"size_bytes"`
	BytesPerSecond float64 `json:"bandwidth_bytes_per_s"`
}

// Block is the shape of a kernel's blocks.
type Block struct {
	Threads     int64 `json:"threads"`
	Registers   int64 `json:"registers"` // per thread
	SharedBytes int64 `json:"shared_bytes"`
}

// Occupancy is the number of blocks that an SM holds at a time; 0 if it can hold none.
func (m *Machine) Occupancy(b Block) int64 {
	if b.Threads > m.Block.Threads || b.Registers > m.Block.Registers || b.SharedBytes > m.Block.SharedBytes {
		return 0
	}
	n := min(m.SM.Blocks, m.SM.Threads/max(1, b.Threads))
	if b.Registers > 0 {
		n = min(n, m.SM.Registers/(b.Registers*max(1, b.Threads)))
	}
	if b.SharedBytes > 0 {
		n = min(n, m.SM.SharedBytes/b.SharedBytes)
	}
	return n
}

// Wave is the number of blocks that the machine holds at a time.
func (m *Machine) Wave(b Block) int64 { return m.SMs * m.Occupancy(b) }

// Registers is the most registers that a thread may have if so many blocks with so
// many threads are to be on the machine at a time.
func (m *Machine) Registers(blocks, threads int64) int64 {
	perSM := (blocks + m.SMs - 1) / m.SMs
	return min(m.Block.Registers, m.SM.Registers/(max(1, perSM)*max(1, threads)))
}

// Shared is the most shared memory that a block may have if so many are to be on the machine at a time, in bytes.
func (m *Machine) Shared(blocks int64) int64 {
	return min(m.Block.SharedBytes, m.SM.SharedBytes/max(1, (blocks+m.SMs-1)/m.SMs))
}

// Barrier is the time of a barrier over so many blocks.
func (m *Machine) Barrier(blocks int64) float64 {
	return m.BarrierSeconds + float64(blocks)*m.BarrierSecondsPerBlock
}

// Library is the time of a compute-intensive operator as a library's kernel: macs
// multiply-accumulates on elements of a type such as "f16", and bytes of the DRAM.
func (m *Machine) Library(macs int64, dtype string, bytes int64) float64 {
	per, ok := m.SM.MatrixMACs[dtype]
	if !ok {
		per = m.SM.MatrixMACs["f32"]
	}
	compute := float64(macs) / (m.LibraryEfficiency * per * float64(m.SMs) * m.ClockHz)
	return m.LaunchSeconds + math.Max(compute, float64(bytes)/m.DRAM.BytesPerSecond)
}

// Transactions is the number of DRAM transactions that so many bytes take.
func (m *Machine) Transactions(bytes int64) int64 {
	return (bytes + m.DRAM.TransactionBytes - 1) / m.DRAM.TransactionBytes
}
