package trace

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

// ChakraVersion is the schema that [Chakra] writes: mlcommons/chakra, et_def.proto.
const ChakraVersion = "0.0.4"

// The kinds of nodes of that schema that a kernel can be.
const chakraCompute = 4

// kernel is the work of a cluster from one launch to the next.
type kernel struct {
	name                string
	start, end          int64 // picoseconds
	macs, vector, bytes int64
	deps                []int // kernels of the same cluster, ascending
}

// kernels returns the kernels of each cluster, in the order of their launches. What precedes the first launch belongs
// to it.
func kernels(p *isa.Program, r *sim.Result) [][]kernel {
	list := make([][]kernel, p.Clusters)
	of := make([]int, len(p.Commands))
	for i := range p.Commands {
		c := &p.Commands[i]
		cluster := p.Queues[c.Queue].Cluster
		own := list[cluster]
		if len(own) == 0 || c.Kind == isa.Launch && (own[len(own)-1].macs|own[len(own)-1].vector|own[len(own)-1].bytes) != 0 {
			own = append(own, kernel{name: p.Labels[c.Label], start: r.Start[i]})
		}
		k := &own[len(own)-1]
		if c.Kind == isa.Launch {
			k.name = p.Labels[c.Label]
		}
		of[i] = len(own) - 1
		k.start, k.end = min(k.start, r.Start[i]), max(k.end, r.End[i])
		k.macs, k.vector, k.bytes = k.macs+c.MACs, k.vector+c.VectorOps, k.bytes+c.Bytes
		for _, d := range c.Deps {
			if p.Queues[p.Commands[d].Queue].Cluster == cluster && of[d] < of[i] {
				k.depend(of[d])
			}
		}
		list[cluster] = own
	}
	return list
}

func (k *kernel) depend(on int) {
	at := len(k.deps)
	for at > 0 && k.deps[at-1] >= on {
		if at--; k.deps[at] == on {
			return
		}
	}
	k.deps = append(k.deps, 0)
	copy(k.deps[at+1:], k.deps[at:])
	k.deps[at] = on
}

// Chakra simulates a program and gives an execution trace of Chakra for each cluster, a rank: a node for each kernel,
// behind the kernels whose data it needs and the one before it. Times are in whole microseconds there; attributes have
// picoseconds.
func Chakra(ctx context.Context, p *isa.Program) ([][]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	p = p.Unfolded()
	r, err := sim.Run(ctx, p, sim.Options{})
	if err != nil {
		return nil, err
	}
	var ranks [][]byte
	for _, own := range kernels(p, r) {
		file := message(nil, text(nil, 1, ChakraVersion))
		for i, k := range own {
			n := number(nil, 1, uint64(i))
			n = text(n, 2, k.name)
			n = number(n, 3, chakraCompute)
			if i > 0 {
				n = number(n, 4, uint64(i-1)) // kernels of a cluster run one after the other
			}
			for _, d := range k.deps {
				n = number(n, 5, uint64(d))
			}
			begin := micros(k.start)
			n = number(n, 6, begin)
			n = number(n, 7, micros(k.end)-begin)
			// What ASTRA-sim reads of a computation, and the exact times.
			n = attribute(n, "is_cpu_op", 27, 0)
			n = attribute(n, "num_ops", 9, uint64(2*k.macs+k.vector))
			n = attribute(n, "tensor_size", 13, uint64(k.bytes))
			n = attribute(n, "start_ps", 9, uint64(k.start))
			n = attribute(n, "duration_ps", 9, uint64(k.end-k.start))
			file = message(file, n)
		}
		ranks = append(ranks, file)
	}
	return ranks, nil
}

// micros rounds to the nearest microsecond.
func micros(ps int64) uint64 { return (uint64(ps) + 500_000) / 1_000_000 }

func message(b, body []byte) []byte { return protowire.AppendBytes(b, body) }

func number(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// attribute appends an AttributeProto whose value stands in a field of varints.
func attribute(b []byte, name string, field protowire.Number, v uint64) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, 10, protowire.BytesType), number(text(nil, 1, name), field, v))
}
