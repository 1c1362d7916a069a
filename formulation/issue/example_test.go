package issue_test

import (
	"fmt"

	"github.com/dsasched/dsasched/formulation/issue"
	"github.com/dsasched/dsasched/hardware/isa"
)

// The matrix unit gets two commands in the wrong order: the one that is ready waits
// behind the one whose operand is still on its way.
func ExampleCompare() {
	p := &isa.Program{
		Name: "example", Clusters: 1, PeakMACsPerSecond: 1e12, PeakVectorOpsPerSecond: 1e11, Labels: []string{"first", "second"},
		Resources: []isa.Resource{{Name: "ddr", BytesPerSecond: 100e9}},
		Queues:    []isa.Queue{{Name: "cluster0.dma"}, {Name: "cluster0.mme"}},
		Commands: []isa.Command{
			{Kind: isa.DDRLoad, Queue: 0, DurationPs: 100_000, Uses: []isa.Use{{Bytes: 40_000}}, Bytes: 40_000},
			{Kind: isa.Matrix, Queue: 1, DurationPs: 200_000, Deps: []int32{0}, MACs: 100_000},
			{Kind: isa.Matrix, Queue: 1, Label: 1, DurationPs: 500_000, MACs: 100_000},
		},
	}
	c, err := issue.Compare(p, issue.Span{First: 0, Last: len(p.Commands)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("in order %d ps, none below %d ps\n", c.InOrderPs, c.BoundPs)
	// Output: in order 1200000 ps, none below 700000 ps
}
