package variant_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"github.com/dsasched/dsasched/experiments/network"
	"github.com/dsasched/dsasched/experiments/variant"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// What is written, read back and simulated is what was simulated.
func TestRestore(t *testing.T) {
	for _, c := range []struct {
		model, machine, variant string
		batch, chunk            int64
	}{
		{"resnet50", "stcp920", "cross-layer", 32, 0},
		{"resnet50", "stcp920", "tvm", 5, 2},
		{"bert-128", "stcp920", "cross-layer", 16, 0},
		{"bert-128", "stcp920", "astitch", 4, 0},
		{"toy-fig5", "stcp920", "llb", 7, 0},
		{"toy-fig5", "stcp920-paper", "exact-all", 4, 0},
		{"mobilenetv2", "goya", "cross-layer", 4, 0},
		{"dlrm", "stcp920", "cross-layer", 64, 0},
		{"densenet121", "a100", "l1", 1, 0},
	} {
		t.Run(c.model+" "+c.machine+" "+c.variant, func(t *testing.T) {
			src, err := network.Open(c.model, network.Options{})
			if err != nil {
				t.Fatal(err)
			}
			spec, err := hardware.Load(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			v, err := variant.Lookup(c.variant)
			if err != nil {
				t.Fatal(err)
			}
			r, err := variant.Run(context.Background(), src, spec, c.batch, v, variant.Options{Chunk: c.chunk})
			if err != nil {
				t.Fatal(err)
			}
			first, err := variant.File(r, schedulefile.Origin{Model: c.model}).Write()
			if err != nil {
				t.Fatal(err)
			}
			f, err := schedulefile.Read("a.json", first)
			if err != nil {
				t.Fatal(err)
			}
			again, err := variant.Restore(context.Background(), f, spec)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(again.Program, r.Program) {
				t.Error("another program")
			}
			if !reflect.DeepEqual(again.Sim, r.Sim) {
				t.Error("another result")
			}
			if !reflect.DeepEqual(again.Notes, r.Notes) || !reflect.DeepEqual(again.Shares, r.Shares) || again.Chunk != r.Chunk {
				t.Errorf("notes %q, shares %v, chunk %d; want %q, %v, %d", again.Notes, again.Shares, again.Chunk, r.Notes, r.Shares, r.Chunk)
			}
			second, err := variant.File(again, *f.Origin).Write()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, second) {
				t.Error("the file is another one when it is written again")
			}
			if third, err := f.Write(); err != nil || !bytes.Equal(first, third) {
				t.Errorf("what was read is written as something else: %v", err)
			}
		})
	}
}
