package exact_test

import (
	"slices"
	"testing"

	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// The exported problem says of a network what the scheduler's own evaluation of orders says: the same instances, reads
// and bytes, the same BFS and DFS orders, the same moves.
func TestOrderProblem(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, group string
		batch       int64
	}{
		{"resnet50", "alg2", 8}, {"inception-v3", "alg2", 8}, {"bert-128", "alg2", 8}, {"mobilenetv2", "alg2-layers", 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := zoo.Build(c.name, zoo.Options{Batch: c.batch})
			if err != nil {
				t.Fatal(err)
			}
			if g, _, err = simplify.Run(g); err != nil {
				t.Fatal(err)
			}
			v, err := recipes.Lookup("ordering")
			if err != nil {
				t.Fatal(err)
			}
			if v, err = v.Replace(scheduler.Options{}, scheduler.Pick{Stage: "group", Strategy: c.group}); err != nil {
				t.Fatal(err)
			}
			s, err := v.Schedule(t.Context(), g, spec, scheduler.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, notes, err := exact.OrderProblem(s, scheduler.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(notes) > 0 {
				t.Errorf("notes %q, expected none: the sizes below would differ", notes)
			}
			items := schedule.OrderItems(s, schedule.SplitOptions{Counting: s.Counting, MACsPerSecond: 1,
				VectorOpsPerSecond: 1})
			og := ordering.NewGraph(p)
			if len(items) != len(og.Refs) {
				t.Fatalf("%d instances, expected %d", len(og.Refs), len(items))
			}
			for i, it := range items {
				if og.Output[i] != it.OutputBytes || og.Work[i] < it.WorkspaceBytes || !slices.Equal(og.Reads[i], it.Reads) {
					t.Errorf("instance %d: output %d, workspace %d, reads %v; the scheduler has %+v", i, og.Output[i], og.Work[i],
						og.Reads[i], it)
				}
				it.WorkspaceBytes = og.Work[i]
				items[i] = it
			}
			for _, c := range []struct {
				method ordering.Rule
				order  []int
			}{{ordering.BFS, graphturbo.BFS(s.Instances)}, {ordering.DFS, graphturbo.DFS(s.Instances)}} {
				order, err := ordering.Order(og, c.method)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(order, c.order) {
					t.Errorf("%s: %v, the scheduler's is %v", c.method, order, c.order)
				}
				cost := schedule.EvaluateOrder(items, c.order, p.CapacityBytes)
				_, moved, peak, err := ordering.Sequence(og, order, ordering.Traffic)
				if err != nil {
					t.Fatal(err)
				}
				if moved != cost.MovedBytes {
					t.Errorf("%s: %d bytes moved, the scheduler has %d", c.method, moved, cost.MovedBytes)
				}
				if peak > p.CapacityBytes {
					t.Errorf("%s: peak %d above the capacity", c.method, peak)
				}
			}
		})
	}
}

// Ranges keep what they have, none decreases, and only those that must get wider.
func TestMonotone(t *testing.T) {
	for _, c := range []struct {
		given, want [][2]int
		wider       bool
	}{
		{[][2]int{{0, 0}, {0, 2}, {0, 0}, {1, 3}, {0, 0}}, [][2]int{{0, 0}, {0, 2}, {0, 2}, {1, 3}, {3, 3}}, false},
		{[][2]int{{2, 4}, {0, 2}}, [][2]int{{0, 4}, {0, 4}}, true},
		{[][2]int{{1, 2}, {0, 0}, {0, 4}, {2, 3}}, [][2]int{{0, 2}, {0, 2}, {0, 4}, {2, 4}}, true},
	} {
		if got, wider := exact.Monotone(slices.Clone(c.given)); !slices.Equal(got, c.want) || wider != c.wider {
			t.Errorf("%v became %v (wider: %t), expected %v (%t)", c.given, got, wider, c.want, c.wider)
		}
	}
}
