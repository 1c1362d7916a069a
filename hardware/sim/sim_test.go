package sim

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// program builds small programs for tests: one cluster unless told, a queue per
// name, resources by name.
type program struct {
	isa.Program
	queues    map[string]int32
	resources map[string]int32
}

func newProgram(clusters int) *program {
	return &program{
		Program: isa.Program{Name: "test", Clusters: clusters, Labels: []string{""}},
		queues:  map[string]int32{}, resources: map[string]int32{},
	}
}

func (p *program) resource(name string, bytesPerSecond int64) {
	p.resources[name] = int32(len(p.Resources))
	p.Resources = append(p.Resources, isa.Resource{Name: name, BytesPerSecond: bytesPerSecond})
}

func (p *program) queue(name string, cluster int32) int32 {
	q, ok := p.queues[name]
	if !ok {
		q = int32(len(p.Queues))
		p.queues[name] = q
		p.Queues = append(p.Queues, isa.Queue{Name: name, Cluster: cluster})
	}
	return q
}

func (p *program) add(c isa.Command) int32 {
	p.Commands = append(p.Commands, c)
	return int32(len(p.Commands) - 1)
}

func (p *program) compute(queue string, ps int64, deps ...int32) int32 {
	return p.add(isa.Command{Kind: isa.Matrix, Queue: p.queue(queue, 0), DurationPs: ps, Deps: deps})
}

type uses map[string]int64

// move adds a load; uses are sorted by resource.
func (p *program) move(queue string, latencyPs int64, u uses, deps ...int32) int32 {
	c := isa.Command{Kind: isa.DDRLoad, Queue: p.queue(queue, 0), DurationPs: latencyPs, Deps: deps}
	for i, r := range p.Resources {
		if b, ok := u[r.Name]; ok {
			c.Uses = append(c.Uses, isa.Use{Resource: int32(i), Bytes: b})
			c.Bytes = max(c.Bytes, b)
		}
	}
	return p.add(c)
}

const giga = 1_000_000_000 // bytes per second: one byte in 1000 ps

type interval struct{ start, end int64 }

func TestTimes(t *testing.T) {
	tests := []struct {
		name  string
		build func(p *program)
		want  []interval
	}{
		{"empty", func(p *program) {}, nil},
		{"one command", func(p *program) { p.compute("mme", 7) }, []interval{{0, 7}}},
		{"queue in order", func(p *program) {
			p.compute("mme", 7)
			p.compute("mme", 5)
		}, []interval{{0, 7}, {7, 12}}},
		{"two queues", func(p *program) {
			p.compute("mme", 7)
			p.compute("vme", 5)
		}, []interval{{0, 7}, {0, 5}}},
		{"chain over queues", func(p *program) {
			a := p.compute("mme", 7)
			b := p.compute("vme", 5, a)
			p.compute("mme", 1, a, b, b)
		}, []interval{{0, 7}, {7, 12}, {12, 13}}},
		{"a waiting command blocks its queue", func(p *program) {
			a := p.compute("mme", 100)
			p.compute("vme", 5, a)
			p.compute("vme", 5) // could run at 0 but for the one before
		}, []interval{{0, 100}, {100, 105}, {105, 110}}},
		{"no length", func(p *program) {
			a := p.compute("mme", 10)
			b := p.compute("vme", 0, a)
			c := p.compute("mme", 0, b)
			p.compute("vme", 3, c)
		}, []interval{{0, 10}, {10, 10}, {10, 10}, {10, 13}}},
		{"one move", func(p *program) {
			p.resource("ddr", giga)
			p.move("dma", 0, uses{"ddr": 100})
		}, []interval{{0, 100_000}}},
		{"latency before the flow", func(p *program) {
			p.resource("ddr", giga)
			p.move("dma", 500, uses{"ddr": 100})
			p.move("dma", 500, uses{"ddr": 100})
		}, []interval{{0, 100_500}, {100_500, 201_000}}},
		{"no bytes, only latency", func(p *program) {
			p.resource("ddr", giga)
			p.move("dma", 500, uses{"ddr": 0})
			p.move("dma", 300, nil)
			p.move("other", 0, uses{"ddr": 0})
		}, []interval{{0, 500}, {500, 800}, {0, 0}}},
		{"two share equally", func(p *program) {
			p.resource("ddr", giga)
			p.move("a", 0, uses{"ddr": 100})
			p.move("b", 0, uses{"ddr": 100})
		}, []interval{{0, 200_000}, {0, 200_000}}},
		{"the longer goes on alone", func(p *program) {
			// 100 each at half the rate until 200 us, the other 200 alone.
			p.resource("ddr", giga)
			p.move("a", 0, uses{"ddr": 100})
			p.move("b", 0, uses{"ddr": 300})
		}, []interval{{0, 200_000}, {0, 400_000}}},
		{"latency holds no bandwidth", func(p *program) {
			// a alone until 50_000 (50 left), both at half until 150_000 (b: 50
			// left), b alone.
			p.resource("ddr", giga)
			p.move("a", 0, uses{"ddr": 100})
			p.move("b", 50_000, uses{"ddr": 100})
		}, []interval{{0, 150_000}, {0, 200_000}}},
		{"rounding is never early", func(p *program) {
			// 1 byte at 3 GB/s: 333.3 ps.
			p.resource("ddr", 3*giga)
			p.move("a", 0, uses{"ddr": 1})
			p.move("a", 0, uses{"ddr": 1})
		}, []interval{{0, 334}, {334, 668}}},
		{"the slower of two resources", func(p *program) {
			p.resource("ddr", giga)
			p.resource("gb", 4*giga)
			p.move("a", 0, uses{"ddr": 100, "gb": 100})
		}, []interval{{0, 100_000}}},
		{"what one can't use goes to the other", func(p *program) {
			// a takes 1 of the 4 GB/s, as its port allows, and b the other 3.
			p.resource("ddr", 4*giga)
			p.resource("port", giga)
			p.move("a", 0, uses{"ddr": 200, "port": 200})
			p.move("b", 0, uses{"ddr": 300})
		}, []interval{{0, 200_000}, {0, 100_000}}},
		{"two bottlenecks", func(p *program) {
			// x: 1 GB/s by a and b; y: 2 GB/s by b and c. a = b = 0.5, c = 1.5.
			p.resource("x", giga)
			p.resource("y", 2*giga)
			p.move("a", 0, uses{"x": 100})
			p.move("b", 0, uses{"x": 100, "y": 100})
			p.move("c", 0, uses{"y": 300})
		}, []interval{{0, 200_000}, {0, 200_000}, {0, 200_000}}},
		{"broadcast: many bytes out for one in", func(p *program) {
			// 100 bytes of gb become 800 of the cores' ports at 2 GB/s: 400_000 ps.
			p.resource("gb", giga)
			p.resource("lb", 2*giga)
			p.move("a", 0, uses{"gb": 100, "lb": 800})
		}, []interval{{0, 400_000}}},
		{"broadcast leaves most of the buffer's bandwidth", func(p *program) {
			// Of gb, the broadcast takes a quarter of its rate and b all of its own:
			// gb is full at 1/(1+1/4) = 0.8 GB/s each, far below what lb gives. b
			// ends at 100_000; the broadcast's other 320 bytes then go at 4 GB/s.
			p.resource("gb", giga)
			p.resource("lb", 4*giga)
			p.move("a", 0, uses{"gb": 100, "lb": 400})
			p.move("b", 0, uses{"gb": 80})
		}, []interval{{0, 180_000}, {0, 100_000}}},
		{"uses of one resource add up", func(p *program) {
			p.resource("lb", giga)
			c := p.move("a", 0, uses{"lb": 50})
			p.Commands[c].Uses = append(p.Commands[c].Uses, isa.Use{Resource: 0, Bytes: 50})
		}, []interval{{0, 100_000}}},
		{"flows that meet without a gap", func(p *program) {
			// b takes over where a ends; c sees no change.
			p.resource("ddr", 2*giga)
			a := p.move("a", 0, uses{"ddr": 100})
			p.move("b", 0, uses{"ddr": 100}, a)
			p.move("c", 0, uses{"ddr": 200})
		}, []interval{{0, 100_000}, {100_000, 200_000}, {0, 200_000}}},
		{"compute and moves", func(p *program) {
			// Double buffering: the second load under the first computation.
			p.resource("ddr", giga)
			a := p.move("dma", 100, uses{"ddr": 10})
			b := p.move("dma", 100, uses{"ddr": 10})
			c := p.compute("mme", 30_000, a)
			p.compute("mme", 5_000, b, c)
		}, []interval{{0, 10_100}, {10_100, 20_200}, {10_100, 40_100}, {40_100, 45_100}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newProgram(1)
			test.build(p)
			r, err := Run(context.Background(), &p.Program, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []interval
			var last int64
			for i := range r.Start {
				got = append(got, interval{r.Start[i], r.End[i]})
				last = max(last, r.End[i])
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("times %v, want %v", got, test.want)
			}
			if r.TotalPs != last {
				t.Errorf("TotalPs %d, want %d", r.TotalPs, last)
			}
			if r.Bound.Ps() > r.TotalPs {
				t.Errorf("bound %+v above %d", r.Bound, r.TotalPs)
			}
		})
	}
}

func TestHook(t *testing.T) {
	p := newProgram(1)
	p.compute("b", 10)
	p.compute("a", 10)
	p.compute("a", 0)
	p.compute("c", 5)
	type call struct {
		index      int
		start, end int64
	}
	var got []call
	_, err := Run(context.Background(), &p.Program, Options{OnCommand: func(i int, start, end int64) {
		got = append(got, call{i, start, end})
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []call{{3, 0, 5}, {0, 0, 10}, {1, 0, 10}, {2, 10, 10}}
	if !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}

	// Ends at the same time come by index, wherever the queues stand.
	p = newProgram(1)
	for _, q := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		p.queue(q, 0)
	}
	for _, q := range []string{"f", "c", "h", "a", "g", "b", "e", "d"} {
		p.compute(q, 10)
	}
	var order []int
	_, err = Run(context.Background(), &p.Program,
		Options{OnCommand: func(i int, _, _ int64) { order = append(order, i) }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(order) {
		t.Errorf("ends in the order %v", order)
	}
}

func TestFigures(t *testing.T) {
	p := newProgram(2)
	p.PeakMACsPerSecond = 2e12
	p.PeakVectorOpsPerSecond = 1e12
	p.resource("ddr", giga)
	p.resource("gb", 2*giga)
	p.Labels = []string{"x", "y"}
	p.Queues = append(p.Queues, []isa.Queue{{Name: "0.host"}, {Name: "0.dma"}, {Name: "0.mme"}, {Name: "0.vme"},
		{Name: "0.dma2"}, {Name: "1.mme", Cluster: 1}}...)
	p.add(isa.Command{Kind: isa.Launch, Queue: 0, DurationPs: 10_000})
	p.add(isa.Command{Kind: isa.DDRLoad, Queue: 1, DurationPs: 1000, Deps: []int32{0}, Bytes: 40,
		Uses: []isa.Use{{Resource: 0, Bytes: 40}, {Resource: 1, Bytes: 40}}})
	p.add(isa.Command{Kind: isa.Matrix, Queue: 2, DurationPs: 20_000, Deps: []int32{1}, MACs: 30_000, WriteLevel: isa.L1})
	p.add(isa.Command{Kind: isa.Vector, Queue: 3, DurationPs: 10_000, Deps: []int32{1}, VectorOps: 4_000})
	p.add(isa.Command{Kind: isa.DDRLoad, Queue: 4, Deps: []int32{1}, Bytes: 5, Uses: []isa.Use{{Resource: 0, Bytes: 5}}})
	p.add(isa.Command{Kind: isa.L1Store, Queue: 1, Deps: []int32{2}, Bytes: 8, Uses: []isa.Use{{Resource: 1, Bytes: 8}},
		WriteLevel: isa.LLB})
	p.add(isa.Command{Kind: isa.DDRStore, Queue: 1, Iteration: 1, Bytes: 9, Uses: []isa.Use{{Resource: 0, Bytes: 9}},
		WriteLevel: isa.DDR})
	p.add(isa.Command{Kind: isa.Exchange, Queue: 1, Bytes: 6})
	p.add(isa.Command{Kind: isa.Special, Queue: 5, DurationPs: 16_000, Deps: []int32{1}, WriteLevel: isa.L1})
	// Times: launch 0-10, load 10-51, matrix 51-71, vector 51-61, load 51-56,
	// lb.store 71-75, ddr.store 75-84, exchange 84-84, special 51-67 (in ns).
	p.Buffers = []isa.Buffer{
		{Label: 0, Level: isa.L1, Address: 0, Bytes: 100, First: 1, Lasts: []int32{3}},            // 10-61
		{Label: 1, Level: isa.L1, Address: 100, Bytes: 50, First: 2, Lasts: []int32{5, 3}},        // 51-75
		{Label: 0, Level: isa.L1, Address: 0, Bytes: 100, First: 5},                               // 71-75
		{Label: 0, Level: isa.L1, Address: 0, Bytes: 150, First: 6},                               // 75-84
		{Label: 0, Level: isa.LLB, Cluster: 1, Address: 7, Bytes: 8, First: 8, Lasts: nil},        // 51-67
		{Label: 0, Level: isa.LLB, Cluster: 1, Address: 7, Bytes: 8, First: 7, Lasts: nil},        // 84-84
		{Label: 0, Level: isa.LLB, Cluster: 1, Address: 7, Bytes: 0, First: 0, Lasts: []int32{8}}, // nothing
	}
	r, err := Run(context.Background(), &p.Program, Options{})
	if err != nil {
		t.Fatal(err)
	}
	eq := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	eq("total", r.TotalPs, int64(84_000))
	eq("queues", r.Queues, []QueueUse{{1, 10_000, 10_000}, {4, 54_000, 54_000}, {1, 20_000, 20_000}, {1, 10_000, 10_000},
		{1, 5_000, 5_000}, {1, 16_000, 16_000}})
	eq("resources", r.Resources, []ResourceUse{{54, 54. / 84}, {48, 48. / 168}})
	eq("cluster 0", r.Clusters[0].Time, Breakdown{ComputePs: 20_000, MovePs: 54_000, LaunchPs: 10_000})
	eq("cluster 1", r.Clusters[1].Time, Breakdown{ComputePs: 16_000, IdlePs: 68_000})
	var kinds [isa.NumKinds]int64
	kinds[isa.Launch], kinds[isa.DDRLoad], kinds[isa.DDRStore] = 10_000, 46_000, 9_000
	kinds[isa.L1Store], kinds[isa.Matrix], kinds[isa.Vector] = 4_000, 20_000, 10_000
	eq("kinds", r.Clusters[0].KindPs, kinds)
	eq("MACs", r.MACs, int64(30_000))
	eq("vector operations", r.VectorOps, int64(4_000))
	eq("MAC utilisation", float32(r.MACUtilization), float32(30_000/(2e12*84e-9)))
	eq("vector utilisation", float32(r.VectorUtilization), float32(4_000/(1e12*84e-9)))
	eq("static writes", r.Static.TensorWrites, [isa.NumLevels]int64{isa.L1: 1, isa.LLB: 1})
	eq("dynamic writes", r.Dynamic.TensorWrites, [isa.NumLevels]int64{isa.L1: 2, isa.LLB: 1, isa.DDR: 1})
	eq("static bytes", r.Static.LevelBytes, [isa.NumLevels]int64{isa.L1: 6, isa.LLB: 8, isa.DDR: 45})
	eq("dynamic bytes", r.Dynamic.LevelBytes, [isa.NumLevels]int64{isa.L1: 6, isa.LLB: 8, isa.DDR: 54})
	eq("loaded bytes", r.Dynamic.MoveBytes[isa.DDRLoad], int64(45))
	eq("static launches", r.Static.Commands[isa.Launch], int64(1))
	eq("static specials", r.Static.Commands[isa.Special], int64(0))
	eq("dynamic specials", r.Dynamic.Commands[isa.Special], int64(1))
	lb := r.Clusters[0].Memory[isa.L1]
	eq("LB", lb, Occupancy{
		Steps:     []Step{{0, 0}, {10_000, 100}, {51_000, 150}, {61_000, 50}, {71_000, 150}, {84_000, 0}},
		PeakBytes: 150, MeanBytes: float64(41*100+10*150+10*50+13*150) / 84,
	})
	eq("GB", r.Clusters[1].Memory[isa.LLB], Occupancy{
		Steps:     []Step{{0, 0}, {51_000, 8}, {67_000, 0}},
		PeakBytes: 8, MeanBytes: 16. * 8 / 84,
	})
	eq("no GB", r.Clusters[0].Memory[isa.LLB], Occupancy{})
	for _, at := range []struct{ ps, bytes int64 }{{-1, 0}, {0, 0}, {9_999, 0}, {10_000, 100}, {50_999, 100},
		{51_000, 150}, {99_000, 0}} {
		eq("at", lb.At(at.ps), at.bytes)
	}
	eq("empty", (&Occupancy{}).At(5), int64(0))
	// Chain: launch, load, matrix, lb.store, ddr.store.
	eq("bound", r.Bound, Bound{ResourcePs: 54_000, Resource: 0, QueuePs: 54_000, Queue: 1, ChainPs: 84_000})
	if err := CheckBuffers(&p.Program, r); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	build := func(change func(p *program)) *isa.Program {
		p := newProgram(1)
		p.resource("ddr", giga)
		p.move("dma", 10, uses{"ddr": 100})
		p.compute("mme", 10, 0)
		change(p)
		return &p.Program
	}
	var problem *isa.ProblemError
	var limit *LimitError
	tests := []struct {
		name string
		p    *isa.Program
		as   any
		want string
	}{
		{"check", build(func(p *program) { p.Commands[0].Deps = []int32{1} }), &problem, "depends on command 1"},
		{"rate", build(func(p *program) { p.Resources[0].BytesPerSecond = 1 << 51 }), &limit,
			"resource 0 (ddr) has 2251799813685248 bytes per second"},
		{"bytes", build(func(p *program) { p.Commands[0].Uses[0].Bytes = 1 << 43 }), &limit,
			"command 0: moves more than 8796093022207 bytes"},
		{"bytes in two uses", build(func(p *program) {
			p.Commands[0].Uses = []isa.Use{{Bytes: 1 << 42}, {Bytes: 1 << 42}}
		}), &limit, "command 0: moves more"},
		{"clusters", &isa.Program{Clusters: -1}, &limit, "-1 clusters"},
		{"many clusters", build(func(p *program) { p.Clusters = 1 << 17 }), &limit, "131072 clusters"},
		{"many queues", build(func(p *program) { p.Queues = make([]isa.Queue, 1<<19) }), &limit, "524288 queues"},
		{"slow resource", build(func(p *program) {
			p.Queues = make([]isa.Queue, 5000)
			p.Resources[0].BytesPerSecond = 1
		}), &limit, "too few for 5000 queues"},
		{"duration", build(func(p *program) { p.Commands[1].DurationPs = 1<<63 - 1 }), &limit,
			"command 1: ends after more than 2^63 ps"},
		{"flow", build(func(p *program) {
			p.Resources[0].BytesPerSecond = 1
			p.Commands[0].Uses[0].Bytes = 1e10
		}), &limit, "command 0: ends after more than 2^63 ps"},
		{"work", build(func(p *program) {
			p.Commands[0].MACs = 1 << 62
			p.Commands[1].MACs = 1 << 62
		}), &limit, "command 1: the sum of bytes, MACs"},
		{"buffers", build(func(p *program) {
			p.Buffers = []isa.Buffer{{Level: isa.DDR, Bytes: 1 << 62}, {Level: isa.DDR, Bytes: 1 << 62}}
		}), &limit, "buffers up to 1 pass"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := Run(context.Background(), test.p, Options{})
			if err == nil || r != nil {
				t.Fatalf("result %v, error %v", r, err)
			}
			if !errors.As(err, test.as) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %T %q, want %T with %q", err, err, test.as, test.want)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	p := newProgram(1)
	for range 3 * eventsPerCheck {
		p.compute("mme", 1)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	_, err := Run(ctx, &p.Program, Options{OnCommand: func(int, int64, int64) {
		if n++; n == 10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n > 2*eventsPerCheck {
		t.Errorf("%d commands ran", n)
	}
	if _, err := Run(ctx, &p.Program, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
