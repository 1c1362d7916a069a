// Package isa is the program that a schedule is lowered to and that the simulator runs: commands in in-order queues,
// with dependencies, over shared resources. It knows neither graphs nor schedules nor hardware descriptions: whoever
// makes a Program has already turned work into durations and bytes.
//
// # Model
//
// A Program is one list of commands. Each command belongs to one queue (an engine of a cluster). A queue issues its
// commands in list order, one at a time: a command starts when the previous one of its queue has ended and all its
// dependencies have ended. A dependency is the index of an earlier command of the list, so every program terminates.
//
// A command with no Uses takes DurationPs. A command with Uses moves bytes: it waits DurationPs (its latency), then
// flows, sharing each resource that it uses with all other flowing commands, until all its bytes have passed.
//
// The cores of a cluster run in lockstep: one command stands for the same
// operation on Cores cores, and its duration is the busiest core's.
//
// # Data
//
// Where the program's maker knows it, a command names the Task that it is a part of, one layer of one instance, and its
// Portion of it: which operand it moves, or which share of the results it computes. That says for each command which
// operators, which instance and which boxes of which tensors it reads and writes; Program.Data puts it together. Timing
// does not depend on it. Tasks are shared by iterations and by clusters that do the same.
//
// Time is in integer picoseconds, sizes in bytes, rates in bytes per second.
package isa

import (
	"fmt"
)

// Kind is the kind of a command.
type Kind uint8

// The kinds of command.
const (
	Launch   Kind = iota // start a kernel on a cluster
	Barrier              // wait for dependencies, optionally for a fixed time
	DDRLoad              // DDR to LLB (to L1 where there is no LLB)
	DDRStore             // LLB (or L1) to DDR
	L1Load               // LLB to the L1s, each core its part, or broadcast
	L1Store              // L1s to LLB
	Exchange             // L1 to L1 of another core, over the cluster's fabric
	Matrix               // matrix unit
	Vector               // vector unit
	Special              // special functions
	NumKinds
)

var kindNames = [NumKinds]string{"launch", "barrier", "ddr.load", "ddr.store", "lb.load", "lb.store", "exchange",
	"matrix", "vector", "special"}

func (k Kind) String() string { return nameOf(k, kindNames[:], "kind") }

// nameOf is the name of a value of an enumeration, which may be out of range.
func nameOf[T ~uint8](v T, names []string, noun string) string {
	if int(v) >= len(names) {
		return fmt.Sprintf("%s(%d)", noun, uint8(v))
	}
	return names[v]
}

// IsMove reports whether the command moves bytes.
func (k Kind) IsMove() bool { return k >= DDRLoad && k <= Exchange }

// IsCompute reports whether the command runs on a compute unit.
func (k Kind) IsCompute() bool { return k >= Matrix && k <= Special }

// Level is a level of the memory hierarchy.
type Level uint8

// The levels, nearest first.
const (
	NoLevel Level = iota
	L1
	LLB
	DDR
	NumLevels
)

var levelNames = [NumLevels]string{"none", "L1", "LLB", "DDR"}

func (l Level) String() string { return nameOf(l, levelNames[:], "level") }

// ResourceKind is the path whose bandwidth a resource stands for.
type ResourceKind uint8

// The kinds of resource; the zero value is any other. The DDR and the ways between chips are a
// chip's, the others a cluster's own.
const (
	OtherResource ResourceKind = iota
	DDRBandwidth
	DDRPort // of a cluster to the DDR
	LLBBandwidth
	LinkIn  // into the cores
	LinkOut // out of the cores
	ToChips // out of a chip to others
	FromChips
	CoreNetwork // between cores
	NumResourceKinds
)

var resourceKindNames = [NumResourceKinds]string{"other", "ddr", "ddr-port", "gb", "link-in", "link-out",
	"to-chips", "from-chips", "core-network"}

func (k ResourceKind) String() string { return nameOf(k, resourceKindNames[:], "resource kind") }

// Resource is a bandwidth that commands share.
type Resource struct {
	Name           string // "cluster0.gb"
	BytesPerSecond int64
	Kind           ResourceKind
}

// Use is a command's demand for a resource.
type Use struct {
	Resource int32
	Bytes    int64
}

// QueueKind is the engine that a queue stands for.
type QueueKind uint8

// The kinds of queue; the zero value is any other engine.
const (
	OtherQueue   QueueKind = iota
	ControlQueue           // launches and barriers
	DDRLoadQueue
	DDRStoreQueue
	InQueue  // into the L1s
	OutQueue // out of the L1s
	MatrixQueue
	VectorQueue
	SpecialQueue
	NumQueueKinds
)

var queueKindNames = [NumQueueKinds]string{"other", "control", "ddr.load", "ddr.store", "lb.in", "lb.out",
	"mme", "vme", "special"}

func (k QueueKind) String() string { return nameOf(k, queueKindNames[:], "queue kind") }

// Queue is an in-order engine.
type Queue struct {
	Name    string // "cluster0.mme"
	Cluster int32
	Kind    QueueKind
	// LatencyOf is the kind of queue whose loads wait out their latency in this one, in one of several slots, on machines
	// with several loads under way; OtherQueue: this is no such queue.
	LatencyOf QueueKind
	Slot      int32
}

// Command is one entry of a program.
type Command struct {
	Kind Kind
	// WriteLevel is the level at which this command completes an output tensor (of
	// a layer, of one instance), or NoLevel. The paper's Table 3 counts these.
	WriteLevel Level
	Queue      int32
	Label      int32 // index into Program.Labels
	Iteration  int32 // of the batch loop; 0 for the first and for unrolled code
	Cores      int32 // active cores
	Task       int32 // index into Program.Tasks plus one; 0: unknown, or none
	Portion          // of the task
	// From and To are indices into Program.Buffers plus one: the buffer that a move of
	// constants, or one through pages of the LLB, takes its data out of, and the one that it
	// fills. A load from the DDR with both keeps a copy in From. 0: as the operand says.
	From, To   int32
	DurationPs int64 // compute, launch, barrier: how long; moves: latency
	Deps       []int32
	Uses       []Use
	// Bytes is the payload of a move: what arrives, a broadcast counted once.
	Bytes int64
	// Useful arithmetic over all cores, without edge waste.
	MACs      int64
	VectorOps int64
}

// Buffer is a stretch of memory in use from the start of command First until the
// end of the last of Lasts. Size and address are per core for L1.
type Buffer struct {
	Label   int32
	Cluster int32
	First   int32
	Level   Level
	// Continued: what is in it goes on in the next buffer of the program.
	Continued bool
	Address   int64
	Bytes     int64
	Lasts     []int32
}

// Program is the input of the simulator.
type Program struct {
	Name      string
	Clusters  int
	Labels    []string
	Resources []Resource
	Queues    []Queue
	Operators []string // names
	Tensors   []Tensor
	Tasks     []Task
	Commands  []Command
	Buffers   []Buffer
	// As gives, for each cluster, the one whose commands and buffers are also its own, on its own queues and resources:
	// itself, or an earlier one that does as itself. Commands and Buffers then are those of clusters that are as
	// themselves, which share nothing but the DDR. Nil: all are.
	As []int32
	// Capacity of each level in bytes: L1 per core, LLB per cluster; 0: no check.
	Capacity [NumLevels]int64
	// PeakMACs and PeakVectorOps are the chip's per second, for utilisation.
	PeakMACsPerSecond      float64
	PeakVectorOpsPerSecond float64
}

// ProblemError describes a mistake in a program.
type ProblemError struct {
	Program string
	Index   int // of the command, or -1
	What    string
}

func (e *ProblemError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("program %q: %s", e.Program, e.What)
	}
	return fmt.Sprintf("program %q: command %d: %s", e.Program, e.Index, e.What)
}

// Check verifies the rules of the package documentation: indexes in range,
// dependencies on earlier commands only, no negative size or duration.
func (p *Program) Check() error {
	bad := func(i int, format string, args ...any) error {
		return &ProblemError{p.Name, i, fmt.Sprintf(format, args...)}
	}
	for i, r := range p.Resources {
		if r.BytesPerSecond <= 0 {
			return bad(-1, "resource %d (%s) has %d bytes per second, expected more than zero", i, r.Name, r.BytesPerSecond)
		}
		if r.Kind >= NumResourceKinds {
			return bad(-1, "resource %d (%s) is of the unknown kind %d", i, r.Name, r.Kind)
		}
	}
	for i := range p.Queues {
		if c := p.Queues[i].Cluster; c < 0 || int(c) >= p.Clusters {
			return bad(-1, "queue %d (%s) is of cluster %d of %d", i, p.Queues[i].Name, c, p.Clusters)
		}
		if k := p.Queues[i].Kind; k >= NumQueueKinds {
			return bad(-1, "queue %d (%s) is of the unknown kind %d", i, p.Queues[i].Name, k)
		}
	}
	if item, index, what := p.checkData(); what != "" {
		return bad(-1, "%s %d %s", item, index, what)
	}
	for i := range p.Commands {
		if err := p.CheckCommand(i, &p.Commands[i]); err != nil {
			return err
		}
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		ok := b.Level > NoLevel && b.Level < NumLevels && b.Cluster >= 0 && int(b.Cluster) < p.Clusters &&
			b.Address >= 0 && b.Bytes >= 0 && b.First >= 0 && int(b.First) < len(p.Commands) &&
			b.Label >= 0 && int(b.Label) < len(p.Labels)
		for _, l := range b.Lasts {
			ok = ok && l >= 0 && int(l) < len(p.Commands)
		}
		if !ok {
			return bad(-1, "buffer %d has an index or size out of range", i)
		}
	}
	if what := p.checkAlike(); what != "" {
		return bad(-1, "%s", what)
	}
	return nil
}

// CheckCommand is the part of Check that looks at a command, which has index i.
func (p *Program) CheckCommand(i int, c *Command) error {
	bad := func(i int, format string, args ...any) error {
		return &ProblemError{p.Name, i, fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Kind >= NumKinds:
		return bad(i, "unknown kind %d", c.Kind)
	case c.Queue < 0 || int(c.Queue) >= len(p.Queues):
		return bad(i, "queue %d of %d", c.Queue, len(p.Queues))
	case c.Label < 0 || int(c.Label) >= len(p.Labels):
		return bad(i, "label %d of %d", c.Label, len(p.Labels))
	case c.DurationPs < 0 || c.Bytes < 0 || c.MACs < 0 || c.VectorOps < 0 || c.Iteration < 0 || c.Cores < 0:
		return bad(i, "negative duration, size, work, iteration or core count")
	case c.WriteLevel >= NumLevels:
		return bad(i, "unknown level %d", c.WriteLevel)
	case len(c.Uses) > 0 && !c.Kind.IsMove():
		return bad(i, "%v uses a resource, only moves may", c.Kind)
	}
	if what := p.checkPortion(c); what != "" {
		return bad(i, "%s", what)
	}
	for _, d := range c.Deps {
		if d < 0 || int(d) >= i {
			return bad(i, "depends on command %d, expected an earlier one", d)
		}
	}
	for _, u := range c.Uses {
		if u.Resource < 0 || int(u.Resource) >= len(p.Resources) || u.Bytes < 0 {
			return bad(i, "uses %d bytes of resource %d of %d", u.Bytes, u.Resource, len(p.Resources))
		}
	}
	return nil
}
