package sim_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
)

// Two clusters load from the same memory: each gets half of it while both load.
func ExampleRun() {
	p, err := isa.ParseText("example", strings.NewReader(`
isa 1
program "example"
clusters 2
peak macs/s=1e12 vectorops/s=1e11
label 0 "layer"
resource 0 "ddr" bytes/s=100000000000
queue 0 "cluster0.dma" cluster=0
queue 1 "cluster0.mme" cluster=0
queue 2 "cluster1.dma" cluster=1
command 0 ddr.load queue=0 label=0 ps=100000 uses=0:10000 bytes=10000
command 1 ddr.load queue=2 label=0 ps=100000 uses=0:20000 bytes=20000
command 2 matrix   queue=1 label=0 ps=500000 deps=0 macs=200000 write=LB
`))
	if err != nil {
		fmt.Println(err)
		return
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
	fmt.Printf("cluster 0: compute %d, moves %d, idle %d ps\n", r.Clusters[0].Time.ComputePs, r.Clusters[0].Time.MovePs, r.Clusters[0].Time.IdlePs)
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
	p, err := isa.ParseText("example", strings.NewReader(`
isa 1
program "example"
clusters 1
capacity LB=65536
label 0 "first"
label 1 "second"
queue 0 "mme" cluster=0
queue 1 "vme" cluster=0
command 0 matrix queue=0 label=0 ps=500
command 1 vector queue=1 label=1 ps=300
buffer 0 LB label=0 cluster=0 address=0    bytes=4096 first=0 lasts=0
buffer 1 LB label=1 cluster=0 address=4000 bytes=100  first=1 lasts=1
`))
	if err != nil {
		fmt.Println(err)
		return
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
