package answers

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A program in which clusters that are alike share their commands is the one in which each has
// its own: unfolded, and in all that the simulator says of it.
func TestFoldedProgram(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		net, machine, recipe string
		batch, chunk         int64
	}{
		{"resnet18", "stcp920", "cross-layer", 4, 1},
		{"resnet18", "stcp920", "tvm", 6, 1}, // two kinds of clusters
		{"toy-fig5", "stcp920", "l1", 2, 1},  // two idle ones
		{"toy-fig3", "ascend910", "llb", 8, 1},
		{"toy-fig5", "tpu-v4i", "cross-layer", 3, 1}, // one cluster
	} {
		net, err := network.Open(c.net, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		machine, err := scheduler.OpenMachine(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		r, err := recipes.Lookup(c.recipe)
		if err != nil {
			t.Fatal(err)
		}
		made, err := r.Prepare(ctx, net, machine, c.batch, scheduler.Options{Chunk: c.chunk})
		if err != nil {
			t.Fatal(err)
		}
		full, err := lower.Program("p", made.Spec, made.Plans, made.Lower)
		if err != nil {
			t.Fatal(err)
		}
		opt := made.Lower
		opt.Fold = true
		folded, err := lower.Program("p", made.Spec, made.Plans, opt)
		if err != nil {
			t.Fatal(err)
		}
		if len(made.Plans) > 1 && (folded.As == nil || len(folded.Commands) >= len(full.Commands) && c.batch > 1) {
			t.Errorf("%v: clusters are as %v, %d commands of %d", c, folded.As, len(folded.Commands), len(full.Commands))
		}
		if !reflect.DeepEqual(folded.Unfolded(), full) {
			t.Errorf("%v: unfolded, the program is another", c)
		}
		want, err := sim.Run(ctx, full, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := sim.Run(ctx, folded, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got.End); !slices.Equal(got.End, want.End[:n]) && folded.As[len(folded.As)-1] == 0 {
			t.Errorf("%v: the commands end at other times", c)
		}
		got.Start, got.End, want.Start, want.End = nil, nil, nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: the simulator says\n%+v\nof the folded program, want\n%+v", c, got, want)
		}
		var heard int
		if _, err := sim.Run(ctx, folded, sim.Options{OnCommand: func(int, int64, int64) { heard++ }}); err != nil ||
			heard != len(folded.Commands) {
			t.Errorf("%v: heard of %d commands of %d (%v)", c, heard, len(folded.Commands), err)
		}
	}
}

// A streamed program is simulated while it is lowered.
type streamed struct {
	net, machine string
	batch, chunk int64
	clusters     scheduler.Division
}

// streamedOfSystems are those by divisions of systems, which can be taken off.
var streamedOfSystems []streamed

// Simulated while it is lowered, a program says the same to the picosecond.
func TestStreamedProgram(t *testing.T) {
	ctx := context.Background()
	streams := 0
	for _, c := range append([]streamed{
		{"resnet18", "stcp920", 4, 1, scheduler.OverBatch},
		{"mobilenetv2", "a100", 216, 1, scheduler.OverBatch},
		{"gpt2-decode", "tpu-v4i", 2, 1, scheduler.OverBatch},
		{"bert-128", "ipu", 1, 1, scheduler.OverBatch},     // on few clusters
		{"toy-fig5", "stcp920", 6, 1, scheduler.OverBatch}, // two kinds of clusters
	}, streamedOfSystems...) {
		net, err := network.Open(c.net, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		machine, err := scheduler.OpenMachine(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range append(recipes.Table(), recipes.Baselines()...) {
			if r.Pick("nest") == "ansor" {
				continue
			}
			opt := scheduler.Options{Chunk: c.chunk, Clusters: c.clusters}
			want, err := scheduler.Run(ctx, net, machine, c.batch, r, opt)
			if err != nil {
				if scheduler.TooLarge(err) {
					continue
				}
				t.Fatal(err)
			}
			opt.Figures = true
			got, err := scheduler.Run(ctx, net, machine, c.batch, r, opt)
			if err != nil {
				t.Fatal(err)
			}
			if got.Program.Commands == nil {
				streams++
				want.Sim.Start, want.Sim.End = nil, nil
			}
			if !reflect.DeepEqual(got.Sim, want.Sim) {
				t.Errorf("%v by %s: the simulator says\n%+v\nwant\n%+v", c, r.Name, got.Sim, want.Sim)
			}
			if a, b := NewReport(got, schedulefile.Origin{}), NewReport(want, schedulefile.Origin{}); !reflect.DeepEqual(a, b) {
				t.Errorf("%v by %s: the report differs", c, r.Name)
			}
		}
	}
	if streams < 20 {
		t.Errorf("%d programs were streamed", streams)
	}
}
