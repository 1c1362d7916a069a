package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// pipeline builds a program of the kind that the simulator is for: on each
// cluster, kernels that load weights and inputs from DDR into LLB and on into the
// local buffers, compute in tiles with double buffering, exchange, and store.
// All clusters share DDR; each has ports for LLB and its local buffers. The sizes
// vary, so that the clusters do not run in step and few events coincide. With
// one buffer for each tile and each of its inputs.
func pipeline(clusters, commands int) *isa.Program {
	p := &isa.Program{Name: "pipeline", Clusters: clusters, PeakMACsPerSecond: 128e12, PeakVectorOpsPerSecond: 4e12}
	resource := func(name string, rate int64) int32 {
		p.Resources = append(p.Resources, isa.Resource{Name: name, BytesPerSecond: rate})
		return int32(len(p.Resources) - 1)
	}
	label := func(name string) int32 {
		p.Labels = append(p.Labels, name)
		return int32(len(p.Labels) - 1)
	}
	add := func(c isa.Command) int32 {
		p.Commands = append(p.Commands, c)
		return int32(len(p.Commands) - 1)
	}
	type cluster struct {
		queue                           [10]int32
		llbRead, llbWrite, port, fabric int32
		last                            [10]int32 // command per queue
	}
	const host, weights, inputs, ddrStore, l1Weights, l1Load, l1Store, exchange, mme, vme = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	names := [10]string{"host", "ddr.weights", "ddr.inputs", "ddr.store", "lb.weights", "lb.load", "lb.store",
		"exchange", "mme", "vme"}
	ddr := resource("ddr", 108*giga)
	cs := make([]cluster, clusters)
	for i := range cs {
		c := &cs[i]
		c.llbRead = resource(fmt.Sprintf("cluster%d.gb.read", i), 256*giga)
		c.llbWrite = resource(fmt.Sprintf("cluster%d.gb.write", i), 256*giga)
		c.port = resource(fmt.Sprintf("cluster%d.lb", i), 1024*giga)
		c.fabric = resource(fmt.Sprintf("cluster%d.fabric", i), 200*giga)
		for q, name := range names {
			c.queue[q] = int32(len(p.Queues))
			p.Queues = append(p.Queues, isa.Queue{Name: fmt.Sprintf("cluster%d.%s", i, name), Cluster: int32(i)})
			c.last[q] = -1
		}
	}
	state := uint32(1)
	vary := func(n int64) int64 { // between n/2 and 3n/2
		state = state*1664525 + 1013904223
		return n/2 + int64(uint64(state)*uint64(n)>>32)
	}
	deps := func(ds ...int32) (out []int32) {
		for _, d := range ds {
			if d >= 0 {
				out = append(out, d)
			}
		}
		return out
	}
	for kernel := int32(0); len(p.Commands) < commands; kernel++ {
		l := label(fmt.Sprintf("kernel %d", kernel))
		for i := range cs {
			c := &cs[i]
			put := func(q int, cmd isa.Command) int32 {
				cmd.Queue, cmd.Label, cmd.Cores = c.queue[q], l, 8
				c.last[q] = add(cmd)
				return c.last[q]
			}
			move := func(kind isa.Kind, q int, bytes int64, ds []int32, uses ...isa.Use) int32 {
				return put(q, isa.Command{Kind: kind, DurationPs: 300_000, Bytes: bytes, Deps: ds, Uses: uses})
			}
			launch := put(host, isa.Command{Kind: isa.Launch, DurationPs: 2_000_000, Deps: deps(c.last[vme])})
			w := vary(200_000)
			wt := move(isa.DDRLoad, weights, w, deps(c.last[l1Weights]), isa.Use{Resource: ddr, Bytes: w},
				isa.Use{Resource: c.llbWrite, Bytes: w})
			wl := move(isa.L1Load, l1Weights, w, deps(wt, c.last[mme]), isa.Use{Resource: c.llbRead, Bytes: w},
				isa.Use{Resource: c.port, Bytes: 8 * w})
			for tile := range int32(8) {
				b := vary(60_000)
				in := move(isa.DDRLoad, inputs, b, deps(launch, c.last[l1Load]), isa.Use{Resource: ddr, Bytes: b},
					isa.Use{Resource: c.llbWrite, Bytes: b})
				load := move(isa.L1Load, l1Load, 2*b, deps(in, c.last[mme]), isa.Use{Resource: c.llbRead, Bytes: 2 * b},
					isa.Use{Resource: c.port, Bytes: 2 * b})
				slot := c.last[exchange] // which frees the place of this tile's output
				if tile%2 == 1 {
					slot = c.last[ddrStore]
				}
				m := put(mme, isa.Command{Kind: isa.Matrix, DurationPs: vary(1_500_000), MACs: 1000 * b,
					Deps: deps(load, wl, c.last[vme], slot)})
				v := put(vme, isa.Command{Kind: isa.Vector, DurationPs: vary(800_000), VectorOps: 10 * b,
					Deps: deps(m, c.last[l1Store], c.last[exchange]), WriteLevel: isa.L1})
				var out int32
				if tile%2 == 0 {
					out = move(isa.Exchange, exchange, b/2, deps(v), isa.Use{Resource: c.fabric, Bytes: b / 2},
						isa.Use{Resource: c.port, Bytes: b})
				} else {
					st := move(isa.L1Store, l1Store, b, deps(v), isa.Use{Resource: c.port, Bytes: b},
						isa.Use{Resource: c.llbWrite, Bytes: b})
					out = move(isa.DDRStore, ddrStore, b, deps(st), isa.Use{Resource: c.llbRead, Bytes: b},
						isa.Use{Resource: ddr, Bytes: b})
				}
				p.Buffers = append(p.Buffers,
					isa.Buffer{Label: l, Level: isa.LLB, Cluster: int32(i), Address: int64(tile%2) * 200_000, Bytes: 2 * b, First: in,
						Lasts: []int32{load}},
					isa.Buffer{Label: l, Level: isa.L1, Cluster: int32(i), Address: int64(tile%2) * 60_000, Bytes: b / 2, First: load,
						Lasts: []int32{m}},
					isa.Buffer{Label: l, Level: isa.L1, Cluster: int32(i), Address: 200_000 + int64(tile%2)*60_000, Bytes: b / 2,
						First: m, Lasts: []int32{v, out}})
			}
		}
	}
	return p
}

func BenchmarkRun100k(b *testing.B) {
	for _, clusters := range []int{1, 4} {
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			p := pipeline(clusters, 100_000)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Run(context.Background(), p, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(p.Commands)), "commands")
		})
	}
}

// Without measuring, to see what the event loop costs.
func BenchmarkEngine100k(b *testing.B) {
	p := pipeline(4, 100_000)
	for b.Loop() {
		if err := newEngine(p, Options{}, noFold(p)).whole(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// 40 flows at a time over 16 resources that are all connected: the worst case of
// the rates.
func BenchmarkContention(b *testing.B) {
	p := &isa.Program{Name: "contention", Clusters: 4, Labels: []string{""}}
	for i := range 16 {
		p.Resources = append(p.Resources, isa.Resource{Name: fmt.Sprint(i), BytesPerSecond: int64(50+13*i) * giga})
	}
	for i := range 40 {
		p.Queues = append(p.Queues, isa.Queue{Cluster: int32(i % 4)})
	}
	state := uint32(1)
	for i := range 100_000 {
		state = state*1664525 + 1013904223
		n := int64(state>>16) + 1
		p.Commands = append(p.Commands, isa.Command{Kind: isa.DDRLoad, Queue: int32(i % 40), DurationPs: 1000,
			Uses: []isa.Use{{Resource: 0, Bytes: n}, {Resource: 1 + int32(i%15), Bytes: n},
				{Resource: 1 + int32(i/40+i)%15, Bytes: 2 * n}}})
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := Run(context.Background(), p, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckBuffers100k(b *testing.B) {
	p := pipeline(4, 200_000)
	r, err := Run(context.Background(), p, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := CheckBuffers(p, r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(p.Buffers)), "buffers")
}

func TestPipeline(t *testing.T) {
	p := pipeline(4, 10_000)
	r := run(t, p)
	if err := checkTimes(p, r); err != nil {
		t.Error(err)
	}
	t.Logf("%.3f ms, bound %.3f ms, DDR %.2f, MACs %.2f", float64(r.TotalPs)/1e9, float64(r.Bound.Ps())/1e9,
		r.Resources[0].Utilization, r.MACUtilization)
	if r.TotalPs < r.Bound.Ps() {
		t.Errorf("total %d, bound %+v", r.TotalPs, r.Bound)
	}
	if r.Resources[0].Utilization < 0.5 {
		t.Errorf("DDR is used to %v: no contention to speak of", r.Resources[0].Utilization)
	}
	if err := CheckBuffers(p, r); err != nil {
		t.Error(err)
	}
}
