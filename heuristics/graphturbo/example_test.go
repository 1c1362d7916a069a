package graphturbo_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

// The four stages of ResNet-50, with the factors of the vendor's hand partition, and
// the order of their instances.
func ExampleGroup() {
	g, err := zoo.Build("resnet50", zoo.Options{Batch: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	if g, _, err = simplify.Run(g); err != nil {
		fmt.Println(err)
		return
	}
	gr, err := graphturbo.Group(context.Background(), g, schedule.SplitOptions{L1Bytes: 8 << 20, Cores: 8,
		MACsPerSecond: 16e12, VectorOpsPerSecond: 0.5e12, LLBBytesPerSecond: 256e9})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sg := range gr.Groups {
		fmt.Printf("%s .. %s: %d\n", g.Op(sg.Ops[0]).Name, g.Op(sg.Ops[len(sg.Ops)-1]).Name, sg.Factor())
	}
	ig := schedule.NewInstanceGraph(g, gr)
	for _, i := range graphturbo.DFS(ig) {
		fmt.Print(ig.Instances[i].Group, " ")
	}
	fmt.Println()
	// Output:
	// stem.conv .. stage1.block2.add: 8
	// stage1.block2.relu .. stage2.block3.add: 4
	// stage2.block3.relu .. stage3.block5.add: 2
	// stage3.block5.relu .. head.softmax: 1
	// 0 0 1 0 0 1 2 0 0 1 0 0 1 2 3
}
