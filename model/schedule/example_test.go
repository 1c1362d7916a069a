package schedule_test

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Two convolutions, each cut into two halves of rows: the window of the second reaches
// into both halves of the first.
func ExampleNewInstanceGraph() {
	b := model.NewBuilder("convolutions")
	attr := model.Attr{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1}
	x := b.Input("image", model.F16, 1, 16, 8, 8)
	x = b.Op("Conv", "first", attr, x, b.Param("w1", model.F16, 16, 16, 3, 3))
	b.Output(b.Op("Conv", "second", attr, x, b.Param("w2", model.F16, 16, 16, 3, 3)))
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	gr := &schedule.Grouping{}
	for i, op := range g.Ops {
		sg := &schedule.SubGraph{ID: i, Name: op.Name, Ops: []model.OpID{op.ID},
			Split: schedule.SplitInfo{Ops: 1, Factor: 2, Dim: 2, Depth: 1}}
		sg.Inputs, sg.Outputs = schedule.Boundary(g, sg.Ops)
		gr.Groups = append(gr.Groups, sg)
	}
	if err := schedule.CheckGrouping(g, gr); err != nil {
		fmt.Println(err)
		return
	}
	for _, inst := range schedule.NewInstanceGraph(g, gr).Instances {
		fmt.Print(gr.Groups[inst.Group].Name, " ", inst.Index, ":")
		for _, d := range inst.Deps {
			fmt.Printf(" %d bytes of instance %d", d.Bytes, d.From)
		}
		fmt.Println()
	}
	// Output:
	// first 0:
	// first 1:
	// second 0: 1024 bytes of instance 0 256 bytes of instance 1
	// second 1: 256 bytes of instance 0 1024 bytes of instance 1
}

// Three outputs are alive at once where only two fit: one leaves and comes back.
func ExampleEvaluateOrder() {
	items := []schedule.OrderItem{{OutputBytes: 4}, {OutputBytes: 4}, {OutputBytes: 4, Reads: []int{1}},
		{OutputBytes: 1, Reads: []int{0, 2}}}
	for _, capacity := range []int64{12, 9} {
		c := schedule.EvaluateOrder(items, []int{0, 1, 2, 3}, capacity)
		fmt.Printf("%d bytes: %d moved, %d at the peak\n", capacity, c.MovedBytes, c.PeakBytes)
	}
	// Output:
	// 12 bytes: 0 moved, 12 at the peak
	// 9 bytes: 8 moved, 9 at the peak
}
