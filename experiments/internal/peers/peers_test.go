package peers

import (
	"context"
	"encoding/json"
	"github.com/dsasched/dsasched/experiments/harness"
	"testing"
)

// TestZigZag: layer by layer, ResNet-18 takes what ZigZag says within a factor of 1.5, and no schedule is below the
// bound (measure itself refuses that).
func TestZigZag(t *testing.T) {
	for _, g := range cases[:2] {
		spec, err := g.spec()
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.measure(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if x := c.Seconds[byLayer] / g.seconds; x < 1/1.5 || x > 1.5 {
			t.Errorf("%s: %g s layer by layer, theirs %g s", g.machine, c.Seconds[byLayer], g.seconds)
		}
		if c.Seconds["tiled"] >= c.Seconds[byLayer] {
			t.Errorf("%s: tiled takes %g s, layer by layer %g s", g.machine, c.Seconds["tiled"], c.Seconds[byLayer])
		}
	}
}

// TestCasesOpen: each case has its machine and its network.
func TestCasesOpen(t *testing.T) {
	for _, g := range cases {
		if _, err := g.spec(); err != nil {
			t.Error(err)
		}
		net, err := g.network()
		if err != nil {
			t.Fatal(err)
		}
		graph, err := net.Graph(1)
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(3 * 256 * 2048 * 8192); g.workload == gated && graph.MACs() != want {
			t.Errorf("%d MACs, expected %d", graph.MACs(), want)
		}
	}
}

// TestReport: the tables fit their page.
func TestReport(t *testing.T) {
	var results []json.RawMessage
	for range cases {
		results = append(results, json.RawMessage(
			`{"certified_lower_bound_s": 1.234567, "seconds": {"by layer": 1.234567, "tiled": 1.234567}, "joules": {"by layer": 1.234567, "tiled": 1}, "limited_by": "DDR bandwidth, busy"}`))
	}
	if _, err := harness.Of(report)(results); err != nil {
		t.Error(err)
	}
}
