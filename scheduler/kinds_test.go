package scheduler

import (
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/tests/benchmarks"
)

// mixed is a small machine of two or three kinds of core, of which the last may run no products, and a small network.
func mixed(t *testing.T, r *rand.Rand) (*hardware.Spec, *model.Graph) {
	t.Helper()
	spec, err := benchmarks.MixedMachine(r)
	if err != nil {
		t.Fatal(err)
	}
	g, err := benchmarks.MixedGraph(r)
	if err != nil {
		t.Fatal(err)
	}
	return spec, g
}
