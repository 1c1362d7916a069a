package answers_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/answers"
	"github.com/dsasched/dsasched/internal/pipeline"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// columns is a feed-forward of two products whose weights take the DDR's time.
func columns(batch int64) (*model.Graph, error) {
	b := model.NewBuilder("columns")
	x := b.Input("x", model.F16, batch, 1, 2048)
	y := b.Op("MatMul", "up", model.Attr{}, x, b.Param("up.weight", model.F16, 2048, 8192))
	y = b.Op("MatMul", "down", model.Attr{}, b.Op("Relu", "relu", model.Attr{}, y),
		b.Param("down.weight", model.F16, 8192, 2048))
	b.Output(b.Op("Add", "add", model.Attr{}, x, y))
	return b.Build()
}

// Columns first, rows second: one sum over the chips for two products, and each chip loads its
// share of the weights.
func TestShard(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := pipeline.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	net := network.Network{Name: "columns", Graph: columns}
	shard := func(method string) (*answers.Sharded, error) {
		list, err := answers.Shard(context.Background(), net, spec, 1, []string{method}, recipe, false, binding.Options{},
			pipeline.Options{})
		if err != nil {
			return nil, err
		}
		return &list[0], nil
	}
	if _, err := shard("search"); err == nil || !strings.Contains(err.Error(), "one chip") {
		t.Errorf("a machine of one chip gives %v", err)
	}
	spec.Chips = &hardware.Chips{Count: 4, Link: hardware.Link{BandwidthBytesPerSecond: 25e9, LatencySeconds: 2e-6}}
	whole, err := shard("whole")
	if err != nil {
		t.Fatal(err)
	}
	if whole.Seconds != whole.OneChip || whole.CollectiveSeconds != 0 || whole.Pieces != 1 {
		t.Errorf("all on every chip takes %g s in %d pieces, on one chip %g", whole.Seconds, whole.Pieces, whole.OneChip)
	}
	a, err := shard("search")
	if err != nil {
		t.Fatal(err)
	}
	if a.Seconds > whole.Seconds/2 || a.Bound > a.Objective || a.Status != "optimal" || a.BatchDivided != nil {
		t.Errorf("four chips take %g s (one %g), %s, objective %g, bound %g", a.Seconds, whole.Seconds, a.Status,
			a.Objective, a.Bound)
	}
	if got := a.Operators[0].Layout + ", " + a.Operators[1].Layout + ", " +
		a.Operators[2].Layout; got != "cut 2, cut 2, partial" {
		t.Errorf("the operators are %s, expected cut 2, cut 2, partial", got)
	}
	sum := 0.0
	for _, m := range a.Moves {
		if m.Before < 1 || m.Before > a.Pieces {
			t.Errorf("%s of %s is before piece %d of %d", m.Kind, m.Tensor, m.Before, a.Pieces)
		}
		sum += m.Seconds
	}
	if math.Abs(sum-a.CollectiveSeconds) > 1e-15 || sum == 0 {
		t.Errorf("collectives take %g s, their sum is %g", a.CollectiveSeconds, sum)
	}
}
