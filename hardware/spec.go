package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// UnitKind is the class of operations of a compute unit.
type UnitKind string

const (
	// Matrix units multiply matrices (and so do convolutions).
	Matrix UnitKind = "matrix"
	// Vector units work element by element on lanes.
	Vector UnitKind = "vector"
	// Special units work on lanes too and also do what a plain vector unit
	// may lack: exponentials, error functions, roots, divisions.
	Special UnitKind = "special"
)

var unitKinds = []UnitKind{Matrix, Vector, Special}

// The classes of operations on lanes that [Unit.CyclesPerOp] knows.
const (
	OpSimple  = "simple"  // add, multiply, multiply-add, compare, select, maximum, convert
	OpSpecial = "special" // exp, log, erf, tanh, sigmoid, division, square root
	OpMove    = "move"    // copy, transpose, gather: no arithmetic
)

var (
	opClasses = []string{OpSimple, OpSpecial, OpMove}
	dtypes    = []string{"f64", "f32", "f16", "bf16", "i8", "u8", "i16", "i32", "i64", "bool", "f8"}
)

// Spec describes one accelerator. See the package comment for the model.
type Spec struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	ClockHz     float64 `json:"clock_hz"`
	// LoadClockHz is the clock to which matrix units fall that work for long, by the limit of power; 0: they don't. No
	// bound and no peak has it.
	LoadClockHz float64 `json:"clock_under_load_hz,omitempty"`

	// Clusters on the chip; all are alike.
	Clusters int `json:"clusters"`
	// CoreTypes lists the cores of one cluster; where all cores are alike
	// it has one entry. Cores are numbered in this order.
	CoreTypes []CoreType `json:"core_types"`

	// L1 is the data part of one core's local buffer; nil if cores have none.
	L1 *Memory `json:"lb" words:"null"`
	// L1WeightBytes is a separate buffer for weights beside L1, also per core. If 0, weights share L1 with the data.
	L1WeightBytes Bytes `json:"lb_weight_bytes"`
	// LLB is the buffer that the cores of one cluster share; nil if none.
	LLB *Memory `json:"gb" words:"null"`
	// DDR is the off-chip memory of the whole chip; never nil.
	DDR *Memory `json:"ddr"`
	// DDRActivationEfficiency is the share of the DDR's bandwidth that moves of activations reach; 0 means all of it,
	// as for weights. Weights are laid out beforehand in the order of use; activations come and go in short rows, and
	// reads and writes alternate.
	DDRActivationEfficiency float64 `json:"ddr_activation_efficiency,omitempty"`

	// CoreLink joins one core with the LLB, or with the fabric between the
	// cores if LLB is nil. Its bandwidth holds for each direction.
	CoreLink Link `json:"core_link"`
	// Network is the links between the cores of a cluster; nil: each core has a CoreLink to all else.
	Network *Network `json:"network,omitempty"`
	// DDRLink joins one cluster with the DDR. A bandwidth of 0 means that only the DDR itself limits.
	DDRLink Link `json:"ddr_link"`

	LaunchSeconds float64 `json:"launch_seconds"` // start of one kernel on a cluster
	SyncSeconds   float64 `json:"sync_seconds"`   // barrier over the cores of one cluster
	// GapSeconds is from the end of a layer to the start of the next in a kernel, on machines
	// that run each layer as a program of its own; 0: layers overlap as data allows.
	GapSeconds float64 `json:"gap_seconds,omitempty"`
	// MatrixStartSeconds comes on top of the launch or gap before a layer that uses the matrix unit. Where layers
	// overlap, the first of a kernel alone waits for it. No bound has it.
	MatrixStartSeconds float64 `json:"matrix_start_seconds,omitempty"`
	// HostSeconds is the time of a call of the host beside the program. No simulated time has it.
	HostSeconds float64 `json:"host_seconds,omitempty"`

	// Chips are the linked chips of the machine; nil: the chip is alone. What is said of a chip, its DDR
	// among it, each of them has for itself.
	Chips *Chips `json:"chips,omitempty"`

	sides int  // of Apart
	fast  ends // but those of units

	// Energy has the energies of work; nil: the description has no figures.
	Energy *Energy `json:"energy,omitempty"`
}

// Chips are equal chips in one machine.
type Chips struct {
	// File is the description as it was named, for messages; "" if it was built in code.
	File  string `json:"-"`
	Count int    `json:"count"`
	// Link joins any two. At its rate a chip sends to all others together, and takes from them.
	Link Link `json:"link"`
}

// Network is how the cores of a cluster are linked. Each link has the bandwidth of [Spec.CoreLink] in each direction,
// and so has the one between a core and its router; the latency is of each of them that a move passes. Moves take the
// shortest way, first along the last dimension of the grid of the core type.
type Network struct {
	Kind string `json:"kind"` // Bus, Ring, Mesh or Torus
	// Memory lists the cores beside which the LLB is, or without one the DDR, with as much behind each; nil: the first.
	// Cores are counted along the last dimension first.
	Memory []int `json:"memory,omitempty"`
}

// The kinds of [Network]: one link that all share, or links between neighbours, of which the last of a row is the
// first one's on a ring or a torus.
const (
	Bus   = "bus"
	Ring  = "ring"
	Mesh  = "mesh"
	Torus = "torus"
)

// maxNetworked is the number of cores that a network has at most.
const maxNetworked = 256

// ChipCount is the number of chips the machine has.
func (s *Spec) ChipCount() int {
	if s.Chips == nil {
		return 1
	}
	return s.Chips.Count
}

// AllClusters is the number of clusters the chips of the machine have. Those of a chip stand in a row.
func (s *Spec) AllClusters() int { return s.Clusters * s.ChipCount() }

// DDRSeconds is the time for weights and for activations through the DDR, at all of its rate.
func (s *Spec) DDRSeconds(weights, activations int64) float64 {
	return (float64(weights) + float64(activations)/cmp.Or(s.DDRActivationEfficiency, 1)) / s.DDR.BandwidthBytesPerSecond
}

// CoreType is a number of equal cores in each cluster.
type CoreType struct {
	Name  string `json:"name"`
	Count int    `json:"count"` // per cluster
	Units []Unit `json:"units"`
	// HasL1 reports whether these cores have the local buffer of [Spec.L1].
	// Those that have none (Goya's matrix engine) work from the LLB.
	HasL1 bool `json:"has_lb"`
	// Grid is how the cores are arranged, if not in a line: the extent of each dimension, which together make Count.
	// Loop dimensions are mapped to one after the other.
	Grid []int `json:"grid,omitempty"`
	// Runs are the classes of operators that these cores run, of a machine with several kinds of core: a layer
	// runs on cores of one kind. nil, as in all types or in none: the cores of all types run each layer together.
	Runs []string `json:"runs,omitempty"`
}

// Memory is one level of the memory hierarchy.
type Memory struct {
	SizeBytes Bytes `json:"size_bytes"`
	// BandwidthBytesPerSecond counts reads and writes together.
	BandwidthBytesPerSecond float64 `json:"bandwidth_bytes_per_second"`
	// LatencySeconds is the time that each access to this memory adds to the latency of the link it comes over.
	LatencySeconds float64 `json:"latency_seconds"`
}

// Link is a connection between two levels.
type Link struct {
	BandwidthBytesPerSecond float64 `json:"bandwidth_bytes_per_second"` // per direction
	LatencySeconds          float64 `json:"latency_seconds"`
	// Broadcast says that one read of the LLB can reach all cores at once.
	Broadcast bool `json:"broadcast"`
	// InFlight is the number of loads towards the cores that one cluster has under way at most; 0: one. Their latencies
	// overlap, their bytes share the bandwidth.
	InFlight int `json:"in_flight,omitempty"`
}

// MostInFlight is the largest [Link.InFlight].
const MostInFlight = 4

// Loads is the number of loads that one cluster has under way at most.
func (l *Link) Loads() int { return max(1, l.InFlight) }

// Unit is one compute unit of a core.
type Unit struct {
	Name string   `json:"name"` // such as "mme"; unique in its core
	Kind UnitKind `json:"kind"`
	// SharesWith names a unit of the same core that uses the same hardware,
	// so that only one of the two runs at a time; "" if there is none.
	SharesWith string `json:"shares_with,omitempty"`

	// ClockHz is the unit's own clock, of which its cycles are; 0: the chip's.
	ClockHz float64 `json:"clock_hz,omitempty"`

	// Rows and Cols are the geometry of a matrix unit, a weight-stationary array: each cycle it takes Rows elements
	// along the reduction and adds to Cols outputs, times the dtype's Rate.
	Rows int `json:"rows,omitempty"`
	Cols int `json:"cols,omitempty"`

	// Rate multiplies, by dtype, the multiply-accumulates per cycle of a matrix unit or the lanes of another one. A
	// dtype that is missing is not supported natively.
	Rate map[string]float64 `json:"rate"`
	// FillCycles is the overhead of one operation, on top of its work: filling and draining the pipeline of a matrix
	// unit, start-up of a vector unit.
	FillCycles Cycles `json:"fill_cycles"`
	// BlockCycles are lost by a matrix unit each time it goes on to the next block of its stationary operand within an
	// operation; 0 if blocks follow each other without a gap.
	BlockCycles float64 `json:"block_cycles,omitempty"`
	// LeastCycles is how long an instruction takes at least: each block of a matrix unit's
	// stationary operand, each command of another unit.
	LeastCycles Cycles `json:"least_cycles,omitempty"`

	// InFlight is the number of commands that a matrix unit has under way at most, where each passes at most Rows rows,
	// of one line of a convolution's results, and leaves FillCycles after its last row; 0: rows stream without a gap.
	InFlight int `json:"in_flight,omitempty"`
	// Synchronous says that a core waits for its products, whose results it has in F32 then (NVIDIA's mma.sync): what an
	// attention does with its scores runs between its products, and not beside them. No bound has it.
	Synchronous bool `json:"synchronous,omitempty"`

	// OperandBytesPerSecond is the rate at which a matrix unit reads its operands from the L1, in turn with
	// computing, for tiles of at most ResultsHeld results, which it adds up by itself; 0: both
	// operands are there when it needs them.
	OperandBytesPerSecond float64 `json:"operand_bytes_per_second,omitempty"`
	ResultsHeld           int     `json:"results_held,omitempty"`

	// Lanes is the width of a vector or special unit at rate 1.
	Lanes int `json:"lanes,omitempty"`
	// CyclesPerOp is how long all lanes of a vector or special unit take for one operation of a class (OpSimple, ...).
	// The unit can't do a class that is missing.
	CyclesPerOp map[string]float64 `json:"cycles_per_op,omitempty"`

	fast ends
}

// Clone is a copy that shares nothing with s.
func (s *Spec) Clone() *Spec {
	c := *s
	for _, m := range []**Memory{&c.L1, &c.LLB, &c.DDR} {
		if *m != nil {
			copied := **m
			*m = &copied
		}
	}
	if s.Chips != nil {
		chips := *s.Chips
		c.Chips = &chips
	}
	if s.Energy != nil {
		e := *s.Energy
		e.MAC, e.Vector = maps.Clone(e.MAC), maps.Clone(e.Vector)
		c.Energy = &e
	}
	if s.Network != nil {
		n := *s.Network
		n.Memory = slices.Clone(n.Memory)
		c.Network = &n
	}
	c.CoreTypes = slices.Clone(s.CoreTypes)
	for i := range c.CoreTypes {
		t := &c.CoreTypes[i]
		t.Grid, t.Runs = slices.Clone(t.Grid), slices.Clone(t.Runs)
		t.Units = slices.Clone(t.Units)
		for j := range t.Units {
			t.Units[j].Rate = maps.Clone(t.Units[j].Rate)
			t.Units[j].CyclesPerOp = maps.Clone(t.Units[j].CyclesPerOp)
		}
	}
	return &c
}

// Cores is the number of cores in one cluster, of all types.
func (s *Spec) Cores() int {
	n := 0
	for _, t := range s.CoreTypes {
		n += t.Count
	}
	return n
}

// CoresWith is the number of cores in one cluster that have a unit of this kind, among those that run a layer together.
func (s *Spec) CoresWith(kind UnitKind) int {
	n := 0
	for _, t := range s.Together() {
		if _, ok := t.UnitOf(kind); ok {
			n += t.Count
		}
	}
	return n
}

// UnitOf is the first unit of this kind, over the core types that run a layer together. A
// special unit does not count as a vector unit, nor the other way round.
func (s *Spec) UnitOf(kind UnitKind) (Unit, bool) {
	for _, t := range s.Together() {
		if u, ok := t.UnitOf(kind); ok {
			return u, true
		}
	}
	return Unit{}, false
}

// UnitOf is the first unit of this kind in the core.
func (t CoreType) UnitOf(kind UnitKind) (Unit, bool) {
	for _, u := range t.Units {
		if u.Kind == kind {
			return u, true
		}
	}
	return Unit{}, false
}

// sharing gives for each unit the index of the first unit that it shares hardware with, directly or through others.
func (t CoreType) sharing() []int {
	group := make([]int, len(t.Units))
	index := make(map[string]int, len(t.Units))
	for i, u := range t.Units {
		group[i] = i
		index[u.Name] = i
	}
	root := func(i int) int {
		for group[i] != i {
			i = group[i]
		}
		return i
	}
	for i, u := range t.Units {
		if j, ok := index[u.SharesWith]; ok && u.SharesWith != "" {
			a, b := root(i), root(j)
			group[max(a, b)] = min(a, b)
		}
	}
	for i := range group {
		group[i] = root(i)
	}
	return group
}

// PeakMACsPerSecond is the multiply-accumulates per second that all matrix units of the chip reach together for a
// dtype. If no matrix unit supports the dtype, it is what the other units reach, with a multiply-accumulate as one
// simple operation; 0 if none supports it. Of units that share hardware only the fastest counts.
func (s *Spec) PeakMACsPerSecond(dtype string) float64 {
	peak := func(matrix bool) float64 {
		perCycle := 0.0
		for _, t := range s.CoreTypes {
			best := make([]float64, len(t.Units)) // by resource
			for i, g := range t.sharing() {
				u := t.Units[i]
				if (u.Kind == Matrix) == matrix {
					best[g] = max(best[g], u.MACsPerCycle(dtype)/u.ClockRatio(s))
				}
			}
			for _, b := range best {
				perCycle += b * float64(t.Count)
			}
		}
		return perCycle * float64(s.Clusters/s.Sides()) * s.ClockHz
	}
	if p := peak(true); p > 0 {
		return p
	}
	return peak(false)
}

// ClockRatio is the length of a unit's cycle in the chip's cycles.
func (u Unit) ClockRatio(s *Spec) float64 {
	if u.ClockHz == 0 {
		return 1
	}
	return s.ClockHz / u.ClockHz
}

// Supports reports whether the unit computes with a dtype natively.
func (u Unit) Supports(dtype string) bool { return u.Rate[dtype] > 0 }

// MACsPerCycle is the peak of one unit; 0 if it does not support the dtype.
func (u Unit) MACsPerCycle(dtype string) float64 {
	if u.Kind == Matrix {
		return float64(u.Rows) * float64(u.Cols) * u.Rate[dtype]
	}
	return u.OpsPerCycle(OpSimple, dtype)
}

// OpsPerCycle is the number of elements a vector or special unit processes per
// cycle with operations of a class; 0 if it can't.
func (u Unit) OpsPerCycle(class, dtype string) float64 {
	cycles := u.CyclesPerOp[class]
	if u.Kind == Matrix || cycles <= 0 {
		return 0
	}
	return float64(u.Lanes) * u.Rate[dtype] / cycles
}

// Describe gives the spec as a few lines of text.
func (s *Spec) Describe() string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		const margin, width = 12, 100
		fmt.Fprintf(&b, "%-*s", margin, label)
		at := margin
		for i, word := range strings.Split(fmt.Sprintf(format, args...), " ") {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case at+1+n > width:
				fmt.Fprintf(&b, "\n%*s", margin+2, "")
				at = margin + 2
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += n
		}
		b.WriteByte('\n')
	}
	line("name", "%s", s.Name)
	if s.Description != "" {
		line("description", "%s", s.Description)
	}
	line("clock", "%s", formatSI(s.ClockHz, "Hz"))
	if s.LoadClockHz > 0 {
		line("under load", "matrix units at %s", formatSI(s.LoadClockHz, "Hz"))
	}
	line("clusters", "%d, each with:", s.Clusters)
	for _, t := range s.CoreTypes {
		var with string
		if !t.HasL1 && s.L1 != nil {
			with = ", no L1"
		}
		if len(t.Grid) > 0 {
			with = ", grid " + formatGrid(t.Grid) + with
		}
		if len(t.Runs) > 0 {
			with += ", runs " + strings.Join(t.Runs, ", ")
		}
		line("  cores", "%d x %s%s", t.Count, t.Name, with)
		for _, u := range t.Units {
			line("    unit", "%s", u.describe())
		}
	}
	memory := func(m *Memory) string {
		if m == nil {
			return "none"
		}
		return fmt.Sprintf("%v, %s, latency %s", m.SizeBytes,
			formatSI(m.BandwidthBytesPerSecond, "B/s"), formatSeconds(m.LatencySeconds))
	}
	lb := memory(s.L1)
	if s.L1WeightBytes > 0 {
		lb += fmt.Sprintf(", and %v for weights", s.L1WeightBytes)
	}
	line("L1", "%s (per core)", lb)
	line("LLB", "%s (per cluster)", memory(s.LLB))
	ddr := memory(s.DDR)
	if s.DDRActivationEfficiency > 0 {
		ddr += fmt.Sprintf(", for activations at %g of it", s.DDRActivationEfficiency)
	}
	line("DDR", "%s (chip)", ddr)
	link := func(l Link) string {
		bandwidth := "unlimited"
		if l.BandwidthBytesPerSecond > 0 {
			bandwidth = formatSI(l.BandwidthBytesPerSecond, "B/s") + " per direction"
		}
		if l.Broadcast {
			bandwidth += " with broadcast"
		}
		latency := ", latency " + formatSeconds(l.LatencySeconds)
		if l.InFlight > 1 {
			latency += fmt.Sprintf(", %d loads in flight", l.InFlight)
		}
		return bandwidth + latency
	}
	line("core link", "%s", link(s.CoreLink))
	if n := s.Network; n != nil {
		line("  network", "%s, memory beside %s", n.Kind, formatCores(n.Memory))
	}
	line("DDR link", "%s", link(s.DDRLink))
	line("launch", "%s", formatSeconds(s.LaunchSeconds))
	line("sync", "%s", formatSeconds(s.SyncSeconds))
	if s.GapSeconds > 0 {
		line("gap", "%s between layers", formatSeconds(s.GapSeconds))
	}
	if s.MatrixStartSeconds > 0 {
		line("start", "%s more before a layer with the matrix unit", formatSeconds(s.MatrixStartSeconds))
	}
	if s.HostSeconds > 0 {
		line("host", "%s for each call", formatSeconds(s.HostSeconds))
	}
	if s.Energy != nil {
		line("energy", "%s", s.Energy.describe())
	} else {
		line("energy", "no figures")
	}
	for _, d := range dtypes {
		if p := s.PeakMACsPerSecond(d); p > 0 {
			on := ", on vector units"
			for _, t := range s.CoreTypes {
				if slices.ContainsFunc(t.Units, func(u Unit) bool { return u.Kind == Matrix && u.MACsPerCycle(d) > 0 }) {
					on = ""
				}
			}
			line("peak "+d, "%s%s", formatSI(p, "MAC/s"), on)
		}
	}
	return b.String()
}

// formatCores names the cores beside which the memory is.
func formatCores(cores []int) string {
	if len(cores) < 2 {
		return fmt.Sprintf("core %d", append(cores, 0)[0])
	}
	return "cores " + strings.Trim(fmt.Sprint(cores), "[]")
}

// formatGrid writes a grid as a description has it, such as "9x12".
func formatGrid(grid []int) string {
	var parts []string
	for _, n := range grid {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, "x")
}

func (u Unit) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s", u.Name, u.Kind)
	if u.SharesWith != "" {
		fmt.Fprintf(&b, ", shares hardware with %s", u.SharesWith)
	}
	b.WriteString("): ")
	if u.Kind == Matrix {
		fmt.Fprintf(&b, "%d x %d", u.Rows, u.Cols)
	} else {
		fmt.Fprintf(&b, "%d lanes", u.Lanes)
	}
	b.WriteString("; rate")
	for _, d := range dtypes {
		if r, ok := u.Rate[d]; ok {
			fmt.Fprintf(&b, " %s %g", d, r)
		}
	}
	fmt.Fprintf(&b, "; fill %v", u.FillCycles)
	if u.BlockCycles > 0 {
		fmt.Fprintf(&b, "; block %gcycles", u.BlockCycles)
	}
	if u.OperandBytesPerSecond > 0 {
		fmt.Fprintf(&b, "; operands %s for %d results", formatSI(u.OperandBytesPerSecond, "B/s"), u.ResultsHeld)
	}
	if u.InFlight > 0 {
		fmt.Fprintf(&b, "; %d commands in flight", u.InFlight)
	}
	if u.Synchronous {
		b.WriteString("; synchronous")
	}
	if u.LeastCycles > 0 {
		fmt.Fprintf(&b, "; at least %v", u.LeastCycles)
	}
	if u.ClockHz > 0 {
		fmt.Fprintf(&b, "; clock %s", formatSI(u.ClockHz, "Hz"))
	}
	if len(u.CyclesPerOp) > 0 {
		b.WriteString("; cycles per operation")
		for _, c := range opClasses {
			if v, ok := u.CyclesPerOp[c]; ok {
				fmt.Fprintf(&b, " %s %g", c, v)
			}
		}
	}
	return b.String()
}
