package ansor_test

import (
	"math/rand/v2"
	"testing"
)

// No program of a tree is faster than the bound of any choices that it begins with.
func TestTreeBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range [][2]string{{"resnet50", "tvm"}, {"bert-128", "tvm"}, {"resnet50", "cross-layer"}} {
		measured, near := 0, 0.0
		made := plan(t, c[0], c[1], 2)
		launch := made.Spec.LaunchSeconds
		for _, task := range tasks(t, made) {
			layers := len(task.Rule)
			tree := task.Tree()
			for range 12 {
				var choices []int
				for len(choices) < tree.Decisions() {
					list := tree.Behind(choices)
					k := 0
					if r.IntN(2*layers) == 0 {
						k = list[r.IntN(len(list))]
					}
					choices = append(choices, k)
				}
				p, ok := tree.Program(choices)
				if !ok {
					continue
				}
				x, err := task.Seconds(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				measured++
				for n := range len(choices) + 1 {
					b := tree.Bound(choices[:n])
					if b > x*(1+1e-9) {
						t.Fatalf("%s by %s: %s takes %g s, the bound of its first %d choices %v is %g s", c[0], c[1],
							task.Name, x, n, choices, b)
					}
					if n == len(choices) {
						near += (b - launch) / (x - launch)
					}
				}
			}
		}
		if measured < 20 {
			t.Errorf("%s: %d programs", c[0], measured)
		}
		t.Logf("%s by %s: %d programs, bound over time, without the launch, %.3f in the mean", c[0], c[1], measured,
			near/float64(measured))
	}
}
