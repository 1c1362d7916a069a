package literature

import (
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/model/grain"
)

// TVM's batches by the LLB are Table 2's on eight configurations. B is where the rule was read; F and I it misses.
func TestTVMChunk(t *testing.T) {
	spec := harness.Accelerator("stcp920")
	misses := map[string]int64{"F": 256, "I": 2}
	for _, c := range Configurations() {
		n, err := TVMChunk(c.Network, c.BatchSize/int64(spec.Clusters), spec)
		want := c.TVMBatchesPerCluster
		if other, ok := misses[c.Label]; ok {
			want = other
		}
		if err != nil || n != want {
			t.Errorf("%s: %d (%v), want %d", c.Label, n, err, want)
		}
	}
	spec.LLB.SizeBytes *= 2
	if n, err := TVMChunk("bert-128", 8, spec); err != nil || n != 8 {
		t.Errorf("with twice the LLB %d (%v), want 8", n, err)
	}
}

func TestByText(t *testing.T) {
	for name, want := range map[string]string{"tvm": "fuse-ops none layer-by-layer in-order", "astitch": "stitch-ops none layer-by-layer in-order",
		"llb": "alg2-layers none bfs exposed", "l1": "alg2-layers none bfs exposed",
		"ordering": "alg2-layers alg1 alg3 exposed", "cross-layer": "alg2-layers alg1 alg3 cross-unit"} {
		v, at := ByText(name)
		if got := v.Pick("group") + " " + v.Pick("split") + " " + v.Pick("order") + " " + v.Pick("issue"); got != want ||
			v.Name != name || (at == grain.Framework) != (name == "tvm" || name == "astitch") {
			t.Errorf("%s is %s of %s, want %s", v.Name, got, at, want)
		}
	}
}
