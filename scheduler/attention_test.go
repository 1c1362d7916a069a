package scheduler_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// asGiven is a machine whose figures are no estimates, so that its bound is of what the simulator has.
func asGiven(t *testing.T, spec *hardware.Spec) (taken *hardware.Spec) {
	t.Helper()
	data, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(data, &taken)
	}
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// alone is one attention as one operator.
func alone(a zoo.Attention) network.Network {
	return network.FuseAttention(network.Network{Name: "attention", Graph: func(batch int64) (*model.Graph, error) {
		return a.Build(zoo.Options{Batch: batch})
	}})
}

// Attention as one operator is close to its bound where the cores' L1 holds tiles large enough for its links, and moves
// no more than queries, keys, values and results, some of them again.
func TestAttentionAlone(t *testing.T) {
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		machine string
		zoo.Attention
		over float64 // the bound, at most
	}{
		{"stcp920", zoo.Attention{Heads: 16, Tokens: 512, Width: 64}, 1.2},
		{"stcp920", zoo.Attention{Heads: 16, Tokens: 2048, Width: 128}, 1.15},
		{"stcp920", zoo.Attention{Heads: 16, Tokens: 2048, Width: 64, Causal: true}, 1.2},
		{"tpu-v4i", zoo.Attention{Heads: 16, Tokens: 2048, Width: 64}, 1.05},
		{"tpu-v4i", zoo.Attention{Heads: 16, Tokens: 8192, Width: 128, Causal: true}, 1.1},
		{"tpu-v4i", zoo.Attention{Heads: 32, KeyHeads: 8, Tokens: 2048, Width: 128, Causal: true}, 1.15},
		{"ascend910", zoo.Attention{Heads: 16, Tokens: 2048, Width: 64}, 1.1},
		{"goya", zoo.Attention{Heads: 16, Tokens: 2048, Width: 64}, 1.1},
		{"a100", zoo.Attention{Heads: 16, Tokens: 8192, Width: 64}, 1.3},
	} {
		spec, err := hardware.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		net, batch := alone(c.Attention), int64(spec.Clusters)
		made, err := scheduler.Run(context.Background(), net, spec, batch, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := bound.Cold(context.Background(), net, asGiven(t, made.Spec), batch)
		if err != nil {
			t.Fatal(err)
		}
		over := made.LatencySeconds() / b.Seconds
		t.Logf("%s %+v: %.3g ms, %.2f of the bound (%s), tiles %+v", c.machine, c.Attention, made.LatencySeconds()*1e3, over,
			b.Term, made.Schedule.AttentionTiles(&made.Schedule.Steps[0]))
		if over < 1 || over > c.over {
			t.Errorf("%s %+v: %.3f of the bound, expected up to %.2f", c.machine, c.Attention, over, c.over)
		}
		if n := len(made.Schedule.Values); n != 4 {
			t.Errorf("%s: %d values, expected queries, keys, values and results", c.machine, n)
		}
		p, err := lower.Program("", made.Spec, made.Plans[:1], made.Lower)
		if err != nil {
			t.Fatal(err)
		}
		n, st := int64(0), &made.Schedule.Steps[0]
		for _, x := range p.Commands {
			if x.Kind == isa.Matrix {
				n++
			}
		}
		if most := 2 * st.Attending.Visits(made.Schedule.AttentionTiles(st)); n > most || 2*n < most ||
			n < most && !c.Causal {
			t.Errorf("%s %+v: %d products, the visits have %d", c.machine, c.Attention, n, most)
		}
	}
}

// An attention with millions of visits is refused before its first command is generated.
func TestAttentionOfManyVisits(t *testing.T) {
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	spec := load(t, "stcp920").Clone()
	spec.L1.SizeBytes = 12 << 10
	_, err = scheduler.Run(t.Context(), alone(zoo.Attention{Heads: 16, Tokens: 1 << 14, Width: 256}), spec, 1, recipe,
		scheduler.Options{})
	if err == nil || !strings.Contains(err.Error(), "at least") {
		t.Errorf("error %v, expected one of too many commands", err)
	}
}

// One query of each of a few heads is spread over as many cores as there are heads, though that is less than a quarter
// of all.
func TestAttentionOfFewHeads(t *testing.T) {
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	const heads = 16
	net := network.Network{Name: "decode", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("decode")
		keys := []int64{batch, heads, 4096, 128}
		b.Output(b.Op("Attention", "attention", model.Attr{Group: 1, Softmax: true},
			b.Input("q", model.F16, batch, heads, 1, 128), b.Input("k", model.F16, keys...), b.Input("v", model.F16, keys...)))
		return b.Build()
	}}
	made, err := scheduler.Run(context.Background(), net, spec, 1, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := 2 * 4096 * 128 * 2 / spec.CoreLink.BandwidthBytesPerSecond // of a head's keys and values
	if x := made.LatencySeconds(); x > 4*one {
		t.Errorf("%d heads take %g s, a core loads one in %g", heads, x, one)
	}
}

// Few heads of long keys are shared by more cores than there are heads, and take at most twice the bound; many are not.
func TestFewHeadsShareKeys(t *testing.T) {
	recipe, err := recipes.Lookup("tiled")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("h100")
	if err != nil {
		t.Fatal(err)
	}
	for heads, shared := range map[int64]bool{4: true, 128: false} {
		net := network.Network{Name: "decode", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("decode")
			b.Output(b.Op("Attention", "attention", model.Attr{Group: 1, Softmax: true},
				b.Input("q", model.BF16, batch, heads, 1, 128), b.Input("k", model.BF16, batch, heads, 8192, 128),
				b.Input("v", model.BF16, batch, heads, 8192, 128)))
			return b.Build()
		}}
		made, err := scheduler.Run(context.Background(), net, spec, 1, recipe, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		st := &made.Schedule.Steps[0]
		if got := st.Slices() > 1; got != shared {
			t.Errorf("%d heads: %d cores share the keys of each", heads, st.Slices())
		}
		if st.Active() > 132 || shared && st.Active() < 32 {
			t.Errorf("%d heads: %d cores work, of 132", heads, st.Active())
		}
		b, err := bound.Cold(context.Background(), net, asGiven(t, made.Spec), 1)
		if err != nil {
			t.Fatal(err)
		}
		if over := made.LatencySeconds() / b.Seconds; over < 1 || over > 2 {
			t.Errorf("%d heads take %.3g us, %.2f of the bound", heads, made.LatencySeconds()*1e6, over)
		}
	}
}
