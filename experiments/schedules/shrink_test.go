package schedules

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/model"
)

// What is left fails, and no more without any one element; where failing only takes some elements together, these are
// left, as trying all subsets finds them.
func TestShrink(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		n := 1 + rng.IntN(9)
		var list []int
		for i := range n {
			list = append(list, i)
		}
		var sets []int // bits of elements that fail together
		for range 1 + rng.IntN(3) {
			sets = append(sets, 1+rng.IntN(1<<n-1))
		}
		fails := func(list []int) (bool, error) {
			have := 0
			for _, i := range list {
				have |= 1 << i
			}
			return slices.ContainsFunc(sets, func(s int) bool { return have&s == s }), nil
		}
		small, minimal, err := shrink(list, 1000, fails)
		if err != nil || !minimal {
			t.Fatalf("%v of %v: minimal %v, %v", small, sets, minimal, err)
		}
		if bad, _ := fails(small); !bad {
			t.Fatalf("%v does not fail by %b", small, sets)
		}
		// Brute force: the answer is one of the minimal subsets.
		all := 0
		for _, i := range small {
			all |= 1 << i
		}
		for sub := range 1 << n {
			var part []int
			for i := range n {
				if sub>>i&1 == 1 {
					part = append(part, i)
				}
			}
			if bad, _ := fails(part); bad && sub != all && sub&all == sub {
				t.Fatalf("%v fails, which is less than %v", part, small)
			}
		}
	}
	if _, minimal, _ := shrink([]int{1, 2, 3, 4}, 1, func(l []int) (bool, error) { return len(l) == 4, nil }); minimal {
		t.Error("minimal after one test")
	}
	broken := errors.New("broken")
	if _, _, err := shrink([]int{1, 2}, 9, func([]int) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("found %v, expected the test's error", err)
	}
}

// A part of a network has the operators, shapes and work of the whole; all of it is the whole.
func TestPartOf(t *testing.T) {
	for _, name := range []string{"squeezenet", "mamba-block", "gpt3-175b-decode"} {
		net := harness.OpenNetwork(name)
		g, err := net.Graph(2)
		if err != nil {
			t.Fatal(err)
		}
		var ids []model.OpID
		for _, op := range g.Ops {
			ids = append(ids, op.ID)
		}
		all, err := partOf(g, ids)
		if err != nil {
			t.Fatal(err)
		}
		if all.MACs() != g.MACs() || all.Params() != g.Params() || len(all.Outputs) != len(g.Outputs) {
			t.Errorf("%s: all of it has %d MACs and %d outputs, expected %d and %d", name, all.MACs(),
				len(all.Outputs), g.MACs(),
				len(g.Outputs))
		}
		sum := int64(0)
		for from := 0; from < len(ids); from += 5 {
			part, err := partOf(g, ids[from:min(from+5, len(ids))])
			if err != nil {
				t.Fatal(err)
			}
			sum += part.MACs()
		}
		if sum != g.MACs() {
			t.Errorf("%s: parts have %d MACs, expected %d", name, sum, g.MACs())
		}
	}
}
