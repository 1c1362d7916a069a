package sim_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

// Two clusters load from the same memory: each gets half of it while both load.
func ExampleRun() {
	p := &isa.Program{
		Name: "example", Clusters: 2, PeakMACsPerSecond: 1e12, PeakVectorOpsPerSecond: 1e11, Labels: []string{"layer"},
		Resources: []isa.Resource{{Name: "ddr", BytesPerSecond: 100e9}},
		Queues:    []isa.Queue{{Name: "cluster0.dma"}, {Name: "cluster0.mme"}, {Name: "cluster1.dma", Cluster: 1}},
		Commands: []isa.Command{
			{Kind: isa.DDRLoad, Queue: 0, DurationPs: 100_000, Uses: []isa.Use{{Bytes: 10_000}}, Bytes: 10_000},
			{Kind: isa.DDRLoad, Queue: 2, DurationPs: 100_000, Uses: []isa.Use{{Bytes: 20_000}}, Bytes: 20_000},
			{Kind: isa.Matrix, Queue: 1, DurationPs: 500_000, Deps: []int32{0}, MACs: 200_000, WriteLevel: isa.L1},
		},
	}
	r, err := sim.Run(context.Background(), p, sim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range p.Commands {
		fmt.Printf("%-8v %6d to %6d ps\n", p.Commands[i].Kind, r.Start[i], r.End[i])
	}
	fmt.Printf("in all %d ps, at least %d\n", r.TotalPs, r.Bound.Ps())
	fmt.Printf("cluster 0: compute %d, moves %d, idle %d ps\n", r.Clusters[0].Time.ComputePs, r.Clusters[0].Time.MovePs,
		r.Clusters[0].Time.IdlePs)
	fmt.Printf("matrix units %.0f %%, ddr %.0f %%\n", 100*r.MACUtilization, 100*r.Resources[0].Utilization)
	// Output:
	// ddr.load      0 to 300000 ps
	// ddr.load      0 to 400000 ps
	// matrix   300000 to 800000 ps
	// in all 800000 ps, at least 700000
	// cluster 0: compute 500000, moves 300000, idle 0 ps
	// matrix units 25 %, ddr 38 %
}

func ExampleCheckBuffers() {
	p := &isa.Program{
		Name: "example", Clusters: 1, Capacity: [isa.NumLevels]int64{isa.L1: 65536}, Labels: []string{"first", "second"},
		Queues:   []isa.Queue{{Name: "mme"}, {Name: "vme"}},
		Commands: []isa.Command{{Kind: isa.Matrix, DurationPs: 500}, {Kind: isa.Vector, Queue: 1, Label: 1, DurationPs: 300}},
		Buffers: []isa.Buffer{
			{Level: isa.L1, Bytes: 4096, Lasts: []int32{0}},
			{Level: isa.L1, Label: 1, Address: 4000, Bytes: 100, First: 1, Lasts: []int32{1}},
		},
	}
	r, err := sim.Run(context.Background(), p, sim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sim.CheckBuffers(p, r))
	// Output:
	// program "example": L1 of cluster 0: buffer 1 (second) at [4000, 4100) from 0 to 300 ps overlaps buffer 0 (first) at [0, 4096) from 0 to 500 ps
}
