package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
)

// Each command starts when its cause ends, its cause is one that it must await, and the
// critical path fills the time from zero to the end.
func TestCausesRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		p := &isa.Program{Clusters: 1, Labels: []string{""},
			Resources: []isa.Resource{{Name: "ddr", BytesPerSecond: 1 << 30}}}
		for range 3 {
			p.Queues = append(p.Queues, isa.Queue{Name: "q"})
		}
		for i := range int32(rng.IntN(30) + 1) {
			c := isa.Command{Kind: isa.Matrix, Queue: int32(rng.IntN(3)), DurationPs: int64(rng.IntN(4)) * 1000}
			if rng.IntN(3) == 0 {
				c.Kind = isa.DDRLoad
				c.Uses = []isa.Use{{Bytes: int64(rng.IntN(1000))}}
			}
			for i > 0 && rng.IntN(2) == 0 {
				c.Deps = append(c.Deps, int32(rng.IntN(int(i))))
			}
			p.Commands = append(p.Commands, c)
		}
		r, err := Run(context.Background(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range Causes(p, r) {
			if c < 0 {
				if r.Start[i] != 0 {
					t.Fatalf("command %d starts at %d ps without a cause", i, r.Start[i])
				}
				continue
			}
			if r.End[c] != r.Start[i] {
				t.Fatalf("command %d starts at %d ps, its cause %d ends at %d", i, r.Start[i], c, r.End[c])
			}
			if p.Commands[c].Queue != p.Commands[i].Queue && !slices.Contains(p.Commands[i].Deps, c) {
				t.Fatalf("command %d does not wait for its cause %d", i, c)
			}
		}
		sum := int64(0)
		for _, i := range CriticalPath(p, r) {
			sum += r.End[i] - r.Start[i]
		}
		if sum != r.TotalPs {
			t.Fatalf("the critical path takes %d of %d ps", sum, r.TotalPs)
		}
	}
}

func TestCriticalPathOfNothing(t *testing.T) {
	p := &isa.Program{}
	r, err := Run(context.Background(), p, Options{})
	if err != nil || CriticalPath(p, r) != nil {
		t.Errorf("%v, %v", CriticalPath(p, r), err)
	}
}
