package sim

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// What moves read and write, by hand: a load of 100 bytes to the LLB, its broadcast to 8 cores, 20
// bytes between cores, 48 bytes back; on two clusters, or once for two.
func TestAccesses(t *testing.T) {
	build := func(clusters int) *isa.Program {
		p := newProgram(clusters)
		p.Resources = append(p.Resources, isa.Resource{Name: "ddr", BytesPerSecond: giga, Kind: isa.DDRBandwidth})
		for k := range clusters {
			first := int32(len(p.Resources))
			for kind := isa.DDRPort; kind < isa.NumResourceKinds; kind++ {
				p.Resources = append(p.Resources, isa.Resource{Name: kind.String(), BytesPerSecond: giga, Kind: kind})
			}
			p.Queues = append(p.Queues, isa.Queue{Name: "dma", Cluster: int32(k)})
			use := func(kind isa.ResourceKind, bytes int64) isa.Use {
				return isa.Use{Resource: first + int32(kind-isa.DDRPort), Bytes: bytes}
			}
			for _, c := range []isa.Command{
				// 150 of the DDR's time, for 100 bytes
				{Kind: isa.DDRLoad, Bytes: 100, Cores: 8,
					Uses: []isa.Use{{Resource: 0, Bytes: 150}, use(isa.DDRPort, 100), use(isa.LLBBandwidth, 100)}},
				{Kind: isa.L1Load, Bytes: 100, Cores: 8, Uses: []isa.Use{use(isa.LLBBandwidth, 100), use(isa.LinkIn, 100)}},
				{Kind: isa.Exchange, Bytes: 20, Cores: 8,
					Uses: []isa.Use{use(isa.LLBBandwidth, 40), use(isa.LinkIn, 3), use(isa.LinkOut, 3)}},
				{Kind: isa.L1Store, Bytes: 48, Cores: 8, Uses: []isa.Use{use(isa.LLBBandwidth, 48), use(isa.LinkOut, 6)}},
				{Kind: isa.Matrix, MACs: 1000, DurationPs: 1},
				{Kind: isa.Vector, VectorOps: 10, DurationPs: 1},
			} {
				c.Queue = int32(k)
				p.add(c)
			}
		}
		return &p.Program
	}
	want := [isa.NumLevels]int64{isa.DDR: 2 * 100, isa.LLB: 2 * (100 + 100 + 40 + 48), isa.L1: 2 * (800 + 20 + 24 + 48)}
	r, err := Run(context.Background(), build(2), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Dynamic.AccessBytes; got != want {
		t.Errorf("two clusters: %v, want %v", got, want)
	}
	if macs, ops, got := Accesses(build(1), []int{2}); got != want || macs != r.MACs ||
		ops != r.VectorOps || macs != 2000 {
		t.Errorf("one for two: %d, %d, %v, want 2000, 20, %v", macs, ops, got, want)
	}
}
