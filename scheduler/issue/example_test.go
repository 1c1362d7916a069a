package issue_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/formulation/rcpsp"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/scheduler/issue"
)

// The matrix unit gets two commands in the wrong order: the one that is ready waits
// behind the one whose operand is still on its way.
func ExampleCompare() {
	p, err := isa.ParseText("example", strings.NewReader(`
isa 1
program "example"
clusters 1
peak macs/s=1e12 vectorops/s=1e11
label 0 "layer"
resource 0 "ddr" bytes/s=100000000000
queue 0 "cluster0.dma" cluster=0
queue 1 "cluster0.mme" cluster=0
command 0 ddr.load queue=0 label=0 ps=100000 uses=0:40000 bytes=40000
command 1 matrix   queue=1 label=0 ps=200000 deps=0 macs=100000
command 2 matrix   queue=1 label=0 ps=500000 macs=100000
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := issue.Compare(context.Background(), p, issue.Span{First: 0, Last: len(p.Commands)}, rcpsp.SearchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("in order %d ps, best %d ps (%v)\n", c.InOrderPs, c.ExactPs, c.Exact.Status)
	// Output: in order 1200000 ps, best 700000 ps (optimal)
}
