package interp

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model"
)

// Report counts what a run without a fault has looked at.
type Report struct {
	Commands int
	Outputs  int64 // elements of network outputs that were compared
	Products int64 // multiplied
	// Stages and Pages count the bytes of moved elements that their stage in the L1, or
	// the buffer that they were moved to, had no room for: see the package documentation.
	Stages, Pages int64
}

// FaultError says what a command, or the program as a whole (-1), does wrong.
type FaultError struct {
	Program string
	Command int
	What    string
}

func (e *FaultError) Error() string {
	if e.Command < 0 {
		return fmt.Sprintf("program %q: %s", e.Program, e.What)
	}
	return fmt.Sprintf("program %q: command %d: %s", e.Program, e.Command, e.What)
}

// CoarseError reports a program that leaves open which part of a task a command does, in
// one of the ways that the package documentation lists.
type CoarseError struct{ Program, What string }

func (e *CoarseError) Error() string { return fmt.Sprintf("program %q: %s", e.Program, e.What) }

// key is an element of a value.
type key struct {
	tensor, instance int32
	element          int64
}

// cell is an element where it lies.
type cell struct {
	key
	iteration  int32
	value      uint64
	writer     int32
	readers    []int32 // the latest of each queue
	addr, size int64
}

// beyond is where what has no room goes, behind all memories.
const beyond = int64(1) << 40

const pageBytes = 256

// memory is an L1 or an LLB: the cell that each byte belongs to.
type memory struct {
	name     string
	capacity int64
	pages    map[int64]*[pageBytes]*cell
}

func (m *memory) at(a int64) *cell {
	if p := m.pages[a/pageBytes]; p != nil {
		return p[a%pageBytes]
	}
	return nil
}

func (m *memory) set(a int64, c *cell) {
	p := m.pages[a/pageBytes]
	if p == nil {
		p = new([pageBytes]*cell)
		m.pages[a/pageBytes] = p
	}
	p[a%pageBytes] = c
}

// cluster is the memory that a cluster's commands work on.
type cluster struct {
	gb    memory
	lb    []memory              // of each core
	bring []map[inTile][]copied // of each core: where in the L1 loads have put a constant
	spill int64                 // the next place beyond
	// written through a buffer: addresses by core and element
	buffers map[int32]*filled
	tasks   map[int32]*execution
	// iteration of the executions in tasks
	iteration int32
}

// inTile is an element of a constant in a tile of weights: steps that cut the same weights
// in different ways may each keep their own copy. The tile is by its ends along columns and
// reduction and how many there are, zero for other constants.
type inTile struct {
	key
	columns, reduction [2]int64
	tiles              int
}

// copied is a place in an L1, in a buffer of the program.
type copied struct {
	addr   int64
	buffer int32
}

// filled lists the data put into a buffer, in the order of arrival. In the LLB all is of
// core 0.
type filled struct {
	at   []map[key]int64
	runs []isa.Buffer // that the buffer goes on in
	next []int64      // bytes, of each core
}

// stored is an element in the DDR.
type stored struct {
	cluster, iteration int32
	key
}

// fault is thrown by what finds a fault and caught by Run.
type fault struct{ what string }

func fail(format string, args ...any) { panic(fault{fmt.Sprintf(format, args...)}) }

type machine struct {
	p      *isa.Program
	graphs [][]*model.Graph
	// together: iteration i of each cluster is a part of the same.
	together bool
	seed     uint64
	report   Report

	queues    int
	grain     int64     // addresses of a byte
	clock     []int32   // of each command: the last of each queue that has ended when it starts
	now       int32     // command
	times     [][]int64 // when commands start and end, in place of clock; nil: not known
	clusters  []*cluster
	tasks     []*task
	makers    map[key]maker // by tensor and instance
	ddr       map[stored]*cell
	iteration int32
	tensors   map[*model.Graph]map[string]*model.Tensor
	constant  []bool     // by tensor of the program
	same      []int32    // the first tensor with its name: chunks of two sizes share constants
	final     []isa.Kind // of the commands that write the results, by task
}

// maker is the task that writes a value, and which of its results it is.
type maker struct {
	task int32
	o    *isa.Operand
}

// Run executes a program in the order of its commands. graphs[k][i] is the network of
// iteration i of cluster k. It returns the first *FaultError, or a *CoarseError.
func Run(p *isa.Program, graphs [][]*model.Graph, seed uint64) (Report, error) {
	return run(p, graphs, false, seed)
}

// Together is Run where all clusters work on the same network in iteration i, graphs[i], and
// pass results to each other through the DDR.
func Together(p *isa.Program, graphs []*model.Graph, seed uint64) (Report, error) {
	return run(p, slices.Repeat([][]*model.Graph{graphs}, p.Clusters), true, seed)
}

// Timed is Run where commands take the times given: what has ended when a command starts is by them.
func Timed(p *isa.Program, graphs [][]*model.Graph, seed uint64, start, end []int64) (Report, error) {
	return run(p, graphs, false, seed, start, end)
}

func run(p *isa.Program, graphs [][]*model.Graph, together bool, seed uint64, times ...[]int64) (
	report Report, err error) {
	if err := p.Check(); err != nil {
		return Report{}, err
	}
	p, grain := finer(p.Unfolded())
	m := &machine{p: p, grain: grain, graphs: graphs, together: together, seed: seed, now: -1, queues: len(p.Queues),
		times:  times,
		makers: map[key]maker{}, ddr: map[stored]*cell{}}
	defer func() {
		switch f := recover().(type) {
		case nil:
		case *CoarseError:
			err = f
		case fault:
			err = &FaultError{p.Name, int(m.now), f.what}
		default:
			panic(f)
		}
	}()
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.Repeat > 1 {
			return Report{}, &CoarseError{p.Name, "commands stand for several iterations of a loop"}
		}
		for k := range t.Writes {
			m.makers[key{t.Writes[k].Tensor, t.Instance, 0}] = maker{int32(i), &t.Writes[k]}
		}
	}
	m.tasks = make([]*task, len(p.Tasks))
	m.findOrder()
	m.prepare()
	for i := range p.Commands {
		m.now = int32(i)
		if p.Commands[i].Task > 0 {
			m.execute(&p.Commands[i])
		}
	}
	m.now = -1
	m.compare()
	m.report.Commands = len(p.Commands)
	return m.report, nil
}

// finer is a program whose addresses count parts of bytes, grain to each, so that narrow elements have their own.
func finer(p *isa.Program) (_ *isa.Program, grain int64) {
	grain = 1
	for _, t := range p.Tensors {
		for grain*t.ElementBits%8 > 0 {
			grain *= 2
		}
	}
	if grain == 1 {
		return p, grain
	}
	fine := *p
	for l := range fine.Capacity {
		fine.Capacity[l] *= grain
	}
	fine.Buffers, fine.Tasks = slices.Clone(p.Buffers), slices.Clone(p.Tasks)
	for i := range fine.Buffers {
		fine.Buffers[i].Address *= grain
		fine.Buffers[i].Bytes *= grain
	}
	for i := range fine.Tasks {
		t := &fine.Tasks[i]
		t.Reads, t.Writes = slices.Clone(t.Reads), slices.Clone(t.Writes)
		for _, list := range [][]isa.Operand{t.Reads, t.Writes} {
			for k := range list {
				list[k].Address *= grain
				list[k].Stage *= grain
				list[k].StageBytes *= grain
			}
		}
	}
	return &fine, grain
}

// size is the room of an element of a tensor.
func (m *machine) size(t int32) int64 { return m.p.Tensors[t].ElementBits * m.grain / 8 }

// align is what begins of tiles in a stage are multiples of.
func (m *machine) align() int64 { return 64 * m.grain }

// findOrder finds what must have ended when a command starts, however long commands take:
// its dependencies, the commands before it in its queue, and what those wait for.
func (m *machine) findOrder() {
	q := m.queues
	m.clock = make([]int32, len(m.p.Commands)*q)
	last := slices.Repeat([]int32{-1}, q)
	for i := range m.p.Commands {
		c := &m.p.Commands[i]
		own := m.clock[i*q : (i+1)*q]
		for k := range own {
			own[k] = -1
		}
		after := func(d int32) {
			for k, x := range m.clock[int(d)*q : (int(d)+1)*q] {
				own[k] = max(own[k], x)
			}
			own[m.p.Commands[d].Queue] = max(own[m.p.Commands[d].Queue], d)
		}
		if d := last[c.Queue]; d >= 0 {
			after(d)
		}
		for _, d := range c.Deps {
			after(d)
		}
		last[c.Queue] = int32(i)
	}
}

// ended reports whether a command has ended when the present one starts.
func (m *machine) ended(c int32) bool {
	if m.times != nil && c >= 0 && c != m.now {
		return m.times[1][c] <= m.times[0][m.now]
	}
	return c < 0 || c == m.now || m.clock[int(m.now)*m.queues+int(m.p.Commands[c].Queue)] >= c
}

// name is an element's, for messages.
func (m *machine) name(k key) string {
	return fmt.Sprintf("element %d of %q of instance %d", k.element, m.p.Tensors[k.tensor].Name, k.instance)
}

// see reads a cell for the present command.
func (m *machine) see(c *cell) uint64 {
	if !m.ended(c.writer) {
		fail("reads %s, which command %d may still be writing", m.name(c.key), c.writer)
	}
	queue := m.p.Commands[m.now].Queue
	for i, r := range c.readers {
		if m.p.Commands[r].Queue == queue {
			c.readers[i] = m.now
			return c.value
		}
	}
	c.readers = append(c.readers, m.now)
	return c.value
}

// replace checks that nobody may still be at work on what the present command writes over.
func (m *machine) replace(old *cell, by key) {
	if !m.ended(old.writer) {
		fail("writes %s over %s, which command %d may still be writing", m.name(by), m.name(old.key), old.writer)
	}
	for _, r := range old.readers {
		if r != m.now && !m.ended(r) { // a command reads what it needs before it writes
			if old.instance < 0 && m.constant[old.tensor] {
				m.passesInBlocks(r, old.key)
			}
			fail("writes %s over %s, which command %d may still be reading", m.name(by), m.name(old.key), r)
		}
	}
}

// age is the iteration that an element is of; constants are of all.
func (m *machine) age(k key) int32 {
	if k.instance < 0 && m.constant[k.tensor] {
		return -1
	}
	return m.iteration
}

// load reads an element from an address.
func (m *machine) load(mem *memory, addr int64, k key) uint64 {
	c := mem.at(addr)
	switch {
	case c == nil:
		fail("reads %s at %s %d, where nobody has written", m.name(k), mem.name, addr)
	case !m.holds(mem, addr, k):
		fail("reads %s at %s %d, finds %s of iteration %d", m.name(k), mem.name, addr, m.name(c.key), c.iteration)
	}
	return m.see(c)
}

// holds reports whether an element is at an address, whole.
func (m *machine) holds(mem *memory, addr int64, k key) bool {
	c := mem.at(addr)
	return c != nil && c.addr == addr && mem.at(addr+m.size(k.tensor)-1) == c && c.key == k &&
		c.iteration == m.age(k)
}

// store writes an element to an address; once: it must not be there already.
func (m *machine) store(mem *memory, addr int64, k key, value uint64, once bool) {
	size := m.size(k.tensor)
	if addr < beyond && mem.capacity > 0 && addr+size > mem.capacity {
		fail("writes %s at %s %d, which has %d bytes", m.name(k), mem.name, addr, mem.capacity)
	}
	c := &cell{key: k, iteration: m.age(k), value: value, writer: m.now, addr: addr, size: size}
	for a := addr; a < addr+size; a++ {
		if old := mem.at(a); old != nil {
			if once && old.key == k && old.iteration == c.iteration {
				fail("writes %s twice", m.name(k))
			}
			m.replace(old, k)
		}
		mem.set(a, c)
	}
}

// owner is the cluster under which the DDR has what a cluster works on.
func (m *machine) owner(cl int32) int32 {
	if m.together {
		return 0
	}
	return cl
}

// fetch reads an element from the DDR.
func (m *machine) fetch(k key, cl int32) uint64 {
	if k.instance < 0 {
		if t := m.tensors[m.graphs[cl][m.iteration]][m.p.Tensors[k.tensor].Name]; t != nil {
			return source(m.seed, t, m.owner(cl), m.iteration, k.element)
		}
		fail("the network has no %q", m.p.Tensors[k.tensor].Name)
	}
	c := m.ddr[stored{m.owner(cl), m.iteration, k}]
	if c == nil {
		fail("reads %s in the DDR, where nobody has written it", m.name(k))
	}
	return m.see(c)
}

func (m *machine) keep(k key, cl int32, value uint64) {
	at := stored{m.owner(cl), m.iteration, k}
	if m.ddr[at] != nil {
		fail("writes %s to the DDR twice", m.name(k))
	}
	m.ddr[at] = &cell{key: k, iteration: m.iteration, value: value, writer: m.now}
}

// put adds an element to a buffer of the program and returns where it lies.
func (m *machine) put(cl *cluster, buffer int32, core int, k key, value uint64) int64 {
	f := cl.buffers[buffer]
	if f == nil {
		f = &filled{at: make([]map[key]int64, len(cl.lb)), next: make([]int64, len(cl.lb))}
		for i := range f.at {
			f.at[i] = map[key]int64{}
		}
		for b := buffer - 1; ; b++ {
			f.runs = append(f.runs, m.p.Buffers[b])
			if !m.p.Buffers[b].Continued || int(b)+1 == len(m.p.Buffers) {
				break
			}
		}
		cl.buffers[buffer] = f
	}
	size := m.size(k.tensor)
	addr, left := int64(-1), f.next[core]
	for _, run := range f.runs {
		// An element lies in one run.
		n := run.Bytes / size * size
		if left < n {
			addr = run.Address + left
			break
		}
		left -= n
	}
	f.next[core] += size
	if addr < 0 {
		addr = cl.beyond(size)
		m.report.Pages += size
	}
	m.store(m.bufferMemory(cl, buffer, core), addr, k, value, false)
	f.at[core][k] = addr
	return addr
}

func (m *machine) bufferMemory(cl *cluster, buffer int32, core int) *memory {
	if m.p.Buffers[buffer-1].Level == isa.LLB {
		return &cl.gb
	}
	return &cl.lb[core]
}

// beyond is a place for what has no room.
func (cl *cluster) beyond(size int64) int64 {
	cl.spill += size
	return beyond + cl.spill - size
}

// take reads an element out of a buffer, of any core if it is in L1s.
func (m *machine) take(cl *cluster, buffer int32, k key) uint64 {
	if f := cl.buffers[buffer]; f != nil {
		for core := range f.at {
			if addr, ok := f.at[core][k]; ok {
				return m.load(m.bufferMemory(cl, buffer, core), addr, k)
			}
		}
	}
	fail("reads %s in buffer %d, where nobody has put it", m.name(k), buffer-1)
	return 0
}

func (m *machine) prepare() {
	m.tensors = map[*model.Graph]map[string]*model.Tensor{}
	constant := map[string]bool{}
	for _, graphs := range m.graphs {
		for _, g := range graphs {
			if m.tensors[g] != nil {
				continue
			}
			m.tensors[g] = map[string]*model.Tensor{}
			for _, t := range g.Tensors {
				m.tensors[g][t.Name] = t
				constant[t.Name] = t.Role == model.Constant
			}
		}
	}
	first := map[string]int32{}
	for i, t := range m.p.Tensors {
		if _, ok := first[t.Name]; !ok {
			first[t.Name] = int32(i)
		}
		m.constant = append(m.constant, constant[t.Name])
		m.same = append(m.same, first[t.Name])
	}
	// Vector work comes behind products, and behind special functions.
	rank := [isa.NumKinds]int{isa.Matrix: 1, isa.Special: 2, isa.Vector: 3}
	m.final = make([]isa.Kind, len(m.p.Tasks))
	for i := range m.p.Commands {
		if c := &m.p.Commands[i]; c.Task > 0 && rank[c.Kind] > rank[m.final[c.Task-1]] {
			m.final[c.Task-1] = c.Kind
		}
	}
	cores := int64(1)
	for i := range m.p.Tasks {
		t := &m.p.Tasks[i]
		for k := range t.Writes {
			cores = max(cores, int64(t.Writes[k].First)+coresOf(t)*int64(max(1, t.Slices)))
		}
	}
	for range m.p.Clusters {
		cl := &cluster{buffers: map[int32]*filled{}}
		cl.gb = memory{"LLB", m.p.Capacity[isa.LLB], map[int64]*[pageBytes]*cell{}}
		for range cores {
			cl.lb = append(cl.lb, memory{"L1", m.p.Capacity[isa.L1], map[int64]*[pageBytes]*cell{}})
			cl.bring = append(cl.bring, map[inTile][]copied{})
		}
		m.clusters = append(m.clusters, cl)
	}
}

// coresOf is the number of cores that a task works on.
func coresOf(t *isa.Task) int64 {
	n := int64(1)
	for i := range t.Writes {
		n = max(n, spread(&t.Writes[i]))
	}
	return n
}

func spread(o *isa.Operand) int64 {
	n := int64(1)
	for _, f := range o.Spread {
		n *= f
	}
	return n
}

// compare looks at every element of every output of every iteration.
func (m *machine) compare() {
	tensors := map[string][]int32{}
	for i, t := range m.p.Tensors {
		tensors[t.Name] = append(tensors[t.Name], int32(i))
	}
	found := map[stored]uint64{}
	for at, c := range m.ddr {
		at.instance = 0
		found[at] = c.value
	}
	for cl, graphs := range m.graphs {
		if m.owner(int32(cl)) != int32(cl) {
			continue
		}
		for it, g := range graphs {
			values := Evaluate(g, func(t *model.Tensor, e int64) uint64 { return source(m.seed, t, int32(cl), int32(it), e) })
			for _, id := range g.Outputs {
				t := g.Tensor(id)
				if t.Producer == model.NoOp {
					continue
				}
				for e, want := range values[id] {
					ok := false
					for _, p := range tensors[t.Name] {
						got, here := found[stored{int32(cl), int32(it), key{p, 0, int64(e)}}]
						if ok = ok || here; here && got != want {
							fail("element %d of output %q of iteration %d of cluster %d is %d, expected %d", e, t.Name, it, cl, got, want)
						}
					}
					if !ok {
						fail("element %d of output %q of iteration %d of cluster %d is missing", e, t.Name, it, cl)
					}
					m.report.Outputs++
				}
			}
		}
	}
}
