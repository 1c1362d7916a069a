package fusion

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// Scheme is the way in which a dependency within a kernel is served.
type Scheme uint8

// The schemes, in the order of the memory that they use.
const (
	Independent Scheme = iota // no dependency
	Local                     // within a loop nest, in registers
	Regional                  // through a block's shared memory
	Global                    // through global memory
)

func (s Scheme) String() string {
	return [...]string{"independent", "local", "regional", "global"}[s]
}

// MarshalText writes the name.
func (s Scheme) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Group is a loop nest of a kernel.
type Group struct {
	Ops      []model.OpID `json:"-"` // in execution order
	Dominant model.OpID   `json:"-"`
	Sub      []model.OpID `json:"-"` // sub-dominants, in execution order

	Operators     []string     `json:"operators"`
	DominantName  string       `json:"dominant"`
	SubDominants  []string     `json:"sub_dominants,omitempty"`
	Mapping       simt.Mapping `json:"mapping"`
	Phase         int          `json:"phase"`
	ReadBytes     int64        `json:"read_bytes"`  // from the DRAM
	WriteBytes    int64        `json:"write_bytes"` // to the DRAM
	L2Bytes       int64        `json:"l2_bytes"`    // from the L2 alone
	SharedTraffic int64        `json:"shared_traffic_bytes"`
}

// Link is a dependency between two operators of a kernel.
type Link struct {
	From   model.OpID     `json:"-"`
	To     model.OpID     `json:"-"`
	Tensor model.TensorID `json:"-"`

	FromName string `json:"from"`
	ToName   string `json:"to"`
	Scheme   Scheme `json:"scheme"`
	Reason   string `json:"reason,omitempty"` // why not the one before
}

// Cut is a dependency between two kernels.
type Cut struct {
	From   model.OpID `json:"-"`
	To     model.OpID `json:"-"`
	First  int        `json:"from_kernel"`
	Second int        `json:"to_kernel"`

	FromName string `json:"from"`
	ToName   string `json:"to"`
	Bytes    int64  `json:"bytes"`
	Reason   string `json:"reason"`
}

// Kernel is one kernel of a plan.
type Kernel struct {
	// Library is set for a closed library call.
	Library bool `json:"library"`
	// Operators lists the operators of all groups, in their order.
	Operators []string `json:"operators"`
	Groups    []Group  `json:"groups"` // in an order in which they can run
	Links     []Link   `json:"links,omitempty"`
	// Again lists operators of the kernel whose results other kernels compute again,
	// so that this one does not write them.
	Again []model.OpID `json:"-"`
	// Block is the shape of the blocks, Blocks their number.
	Block  simt.Block `json:"block"`
	Blocks int64      `json:"blocks"`
	// Wave is the number of blocks that the machine holds at a time.
	Wave   int64 `json:"wave"`
	Waves  int64 `json:"waves"`
	Phases int   `json:"phases"`

	ReadBytes  int64     `json:"read_bytes"`
	WriteBytes int64     `json:"write_bytes"`
	Time       simt.Time `json:"time"`
	Seconds    float64   `json:"total_s"`
}

// Ops lists the operators of the kernel, group by group.
func (k *Kernel) Ops() []model.OpID {
	var ops []model.OpID
	for _, g := range k.Groups {
		ops = append(ops, g.Ops...)
	}
	return ops
}

// Plan divides a graph into kernels.
type Plan struct {
	Method   string        `json:"method"`
	Network  string        `json:"network"`
	Hardware string        `json:"hardware"`
	Graph    *model.Graph  `json:"-"`
	Machine  *simt.Machine `json:"-"`

	Operators int      `json:"operators"`
	Kernels   []Kernel `json:"kernels"` // in an order in which they can run
	// Cuts are the dependencies that go from kernel to kernel, library calls among them.
	Cuts    []Cut   `json:"cuts"`
	Summary Summary `json:"summary"`
}

// Summary adds up a plan.
type Summary struct {
	MemoryKernels  int     `json:"memory_kernels"` // all but library calls
	LibraryKernels int     `json:"library_kernels"`
	MemorySeconds  float64 `json:"memory_s"`
	LibrarySeconds float64 `json:"library_s"`
	Seconds        float64 `json:"total_s"`
	// Transactions of the DRAM by memory-intensive kernels.
	ReadTransactions  int64 `json:"dram_read_transactions"`
	WriteTransactions int64 `json:"dram_write_transactions"`
	// Links within kernels, by scheme.
	Local    int `json:"local_links"`
	Regional int `json:"regional_links"`
	Global   int `json:"global_links"`
}

// Root is the tensor whose elements t has: t itself, or what views made it of.
func Root(g *model.Graph, t model.TensorID) model.TensorID {
	for {
		p := g.Tensor(t).Producer
		if p == model.NoOp || g.Op(p).Class() != model.ViewClass {
			return t
		}
		t = g.Op(p).Inputs[0]
	}
}

// Readers lists the operators that read the elements of t, through views too, in
// ascending order; leaves is set if the network gives them out.
func Readers(g *model.Graph, t model.TensorID) (readers []model.OpID, leaves bool) {
	leaves = g.IsOutput(t)
	for _, c := range g.Tensor(t).Consumers {
		if g.Op(c).Class() != model.ViewClass {
			readers = append(readers, c)
			continue
		}
		r, l := Readers(g, g.Op(c).Outputs[0])
		readers, leaves = append(readers, r...), leaves || l
	}
	return readers, leaves
}

// Library is the kernel of a compute-intensive operator, with the element-wise operators that its library computes on
// the result before it writes it: ops in execution order. What those compute is hidden behind the rest.
func Library(g *model.Graph, m *simt.Machine, ops ...model.OpID) Kernel {
	k := Kernel{Library: true, Groups: []Group{{Ops: ops, Dominant: ops[0]}}, Phases: 1}
	for i, id := range ops {
		op := g.Op(id)
		for j, t := range op.Inputs {
			if p := g.Tensor(t).Producer; p == model.NoOp || !slices.Contains(ops[:i], p) {
				k.ReadBytes += ReadBytes(g, op, j)
				continue
			}
			k.Links = append(k.Links, Link{From: g.Tensor(t).Producer, To: id, Tensor: t, Scheme: Local})
		}
	}
	lead, end := g.Op(ops[0]), g.Op(ops[len(ops)-1])
	for _, t := range end.Outputs {
		k.WriteBytes += g.Tensor(t).Bytes()
	}
	k.Seconds = m.Library(g.Work(lead, nil).MACs, g.Tensor(lead.Outputs[0]).DType.String(), k.ReadBytes+k.WriteBytes)
	k.Time = simt.Time{Launch: m.LaunchSeconds, Work: k.Seconds - m.LaunchSeconds, Bound: "library"}
	k.name(g)
	return k
}

// name fills in the names of operators.
func (k *Kernel) name(g *model.Graph) {
	k.Operators = nil
	for i := range k.Groups {
		gr := &k.Groups[i]
		gr.Operators, gr.SubDominants = nil, nil
		for _, id := range gr.Ops {
			gr.Operators = append(gr.Operators, g.Op(id).Name)
		}
		for _, id := range gr.Sub {
			gr.SubDominants = append(gr.SubDominants, g.Op(id).Name)
		}
		gr.DominantName = g.Op(gr.Dominant).Name
		k.Operators = append(k.Operators, gr.Operators...)
	}
	for i := range k.Links {
		l := &k.Links[i]
		l.FromName, l.ToName = g.Op(l.From).Name, g.Op(l.To).Name
	}
}

// Finish puts kernels together to a plan: it adds up and lists the cuts. reason says why
// two memory-intensive operators of different kernels do not share one.
func Finish(method string, g *model.Graph, m *simt.Machine, kernels []Kernel,
	reason func(from, to model.OpID) string) (*Plan, error) {
	p := &Plan{Method: method, Network: g.Name, Hardware: m.Name, Graph: g, Machine: m, Operators: len(g.Ops),
		Kernels: kernels, Cuts: []Cut{}}
	s := &p.Summary
	in := make([][]int, len(g.Ops)) // kernels of each operator, ascending
	for i := range kernels {
		k := &kernels[i]
		for _, id := range k.Ops() {
			in[id] = append(in[id], i)
		}
		s.Seconds += k.Seconds
		if k.Library {
			s.LibraryKernels++
			s.LibrarySeconds += k.Seconds
			continue
		}
		s.MemoryKernels++
		s.MemorySeconds += k.Seconds
		s.ReadTransactions += m.Transactions(k.ReadBytes)
		s.WriteTransactions += m.Transactions(k.WriteBytes)
		for _, l := range k.Links {
			switch l.Scheme {
			case Local:
				s.Local++
			case Regional:
				s.Regional++
			case Global:
				s.Global++
			}
		}
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	for _, op := range g.Ops {
		if op.Class() == model.ViewClass {
			continue
		}
		for _, t := range op.Inputs {
			from := g.Tensor(Root(g, t)).Producer
			if from == model.NoOp {
				continue
			}
			for _, second := range in[op.ID] {
				first := last(in[from], second)
				if first == second {
					continue
				}
				c := Cut{From: from, To: op.ID, First: first, Second: second, FromName: g.Op(from).Name, ToName: op.Name,
					Bytes: g.Tensor(t).Bytes()}
				switch {
				case kernels[first].Library:
					c.Reason = "a library call makes it: its kernel is closed"
				case kernels[second].Library:
					c.Reason = "a library call reads it: its kernel is closed"
				default:
					c.Reason = reason(from, op.ID)
				}
				p.Cuts = append(p.Cuts, c)
			}
		}
	}
	return p, nil
}

// last is the last of the ascending numbers that is at most n.
func last(numbers []int, n int) int {
	best := -1
	for _, k := range numbers {
		if k <= n {
			best = k
		}
	}
	return best
}

// Check is the referee: every operator that is no view is in some kernel, what a kernel reads is there by then,
// dependencies within a kernel have a scheme that can serve them, and no kernel passes what the machine has. It knows
// nothing of how the plan was made.
func (p *Plan) Check() error {
	g := p.Graph
	made := make([]bool, len(g.Ops)) // and written, by an earlier kernel
	covered := make([]bool, len(g.Ops))
	for i := range p.Kernels {
		k := &p.Kernels[i]
		group := map[model.OpID]int{}
		for j, gr := range k.Groups {
			for _, id := range gr.Ops {
				if other, dup := group[id]; dup {
					return fmt.Errorf("fusion: kernel %d has operator %q in groups %d and %d", i, g.Op(id).Name, other, j)
				}
				group[id] = j
			}
		}
		type pair struct{ from, to model.OpID }
		scheme := map[pair]Scheme{}
		for _, l := range k.Links {
			scheme[pair{l.From, l.To}] = l.Scheme
		}
		for j, gr := range k.Groups {
			for _, id := range gr.Ops {
				op := g.Op(id)
				if op.Class() == model.ViewClass {
					continue
				}
				for _, t := range op.Inputs {
					from := g.Tensor(Root(g, t)).Producer
					if from == model.NoOp {
						continue
					}
					at, inside := group[from]
					switch {
					case !inside && !made[from]:
						return fmt.Errorf("fusion: kernel %d runs %q before %q is there", i, op.Name, g.Op(from).Name)
					case inside && at > j:
						return fmt.Errorf("fusion: kernel %d has group %d of %q before group %d, which it reads", i, j, op.Name, at)
					case inside && at != j:
						s, ok := scheme[pair{from, id}]
						if !ok || s != Regional && s != Global {
							return fmt.Errorf("fusion: kernel %d serves %q -> %q as %v between two groups", i, g.Op(from).Name, op.Name, s)
						}
						if s == Global && gr.Phase <= k.Groups[at].Phase {
							return fmt.Errorf("fusion: kernel %d has no barrier between %q and %q", i, g.Op(from).Name, op.Name)
						}
						if s == Regional && (k.Groups[at].Mapping.RowsPerBlock() != gr.Mapping.RowsPerBlock() ||
							k.Groups[at].Mapping.Rows != gr.Mapping.Rows || gr.Mapping.RowsPerBlock() == 0) {
							return fmt.Errorf("fusion: kernel %d serves %q -> %q within blocks of %d and %d rows", i,
								g.Op(from).Name, op.Name,
								k.Groups[at].Mapping.RowsPerBlock(), gr.Mapping.RowsPerBlock())
						}
					}
				}
			}
		}
		if !k.Library {
			switch wave := p.Machine.Wave(k.Block); {
			case wave < 1:
				return fmt.Errorf("fusion: kernel %d has a block of %d threads, %d registers, %d bytes, which no SM holds", i,
					k.Block.Threads, k.Block.Registers, k.Block.SharedBytes)
			case k.Phases > 1 && k.Blocks > wave:
				return fmt.Errorf("fusion: kernel %d waits for %d blocks, of which only %d are there at a time", i, k.Blocks, wave)
			}
		}
		for id := range group {
			covered[id] = true
			made[id] = made[id] || !slices.Contains(k.Again, id)
		}
	}
	for _, op := range g.Ops {
		if op.Class() == model.ViewClass {
			continue
		}
		leaves := false
		for _, t := range op.Outputs {
			_, out := Readers(g, t)
			leaves = leaves || out
		}
		switch {
		case !covered[op.ID]:
			return fmt.Errorf("fusion: operator %q is in no kernel", op.Name)
		case leaves && !made[op.ID]:
			return fmt.Errorf("fusion: no kernel writes the result of %q, which the network gives out", op.Name)
		}
	}
	return nil
}
