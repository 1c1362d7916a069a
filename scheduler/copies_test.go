package scheduler_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Clusters with the same schedule are lowered and simulated once; with schedules that
// are equal but not the same, each by itself. Nothing may differ, also if clusters with
// less work stand between.
func TestCopiesAreAsIfLowered(t *testing.T) {
	spec, src := load(t, "stcp920"), open(t, "resnet50")
	for _, v := range recipes.Table() {
		t.Run(v.Name, func(t *testing.T) {
			of := func(chunk int64) *schedule.Schedule {
				g, err := src.Graph(chunk)
				if err != nil {
					t.Fatal(err)
				}
				s, err := v.Schedule(context.Background(), g, spec, scheduler.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			whole, rest := of(2), of(1)
			shared := [][]lower.Segment{
				{{Schedule: whole, Iterations: 2}, {Schedule: rest, Iterations: 1}},
				{{Schedule: whole, Iterations: 2}},
				{{Schedule: whole, Iterations: 2}, {Schedule: rest, Iterations: 1}},
				{{Schedule: whole, Iterations: 2}},
			}
			var apart [][]lower.Segment
			for _, plan := range shared {
				var own []lower.Segment
				for _, s := range plan {
					size := int64(1)
					if s.Schedule == whole {
						size = 2
					}
					own = append(own, lower.Segment{Schedule: of(size), Iterations: s.Iterations})
				}
				apart = append(apart, own)
			}
			made, err := v.Prepare(context.Background(), src, spec, 1, scheduler.Options{Chunk: 1})
			if err != nil {
				t.Fatal(err)
			}
			may := made.Lower
			p, err := lower.Program("x", spec, shared, may)
			if err != nil {
				t.Fatal(err)
			}
			q, err := lower.Program("x", spec, apart, may)
			if err != nil {
				t.Fatal(err)
			}
			// Equal schedules list their tensors once each; what commands do with them is
			// the same.
			for i := range p.Commands {
				if a, b := data(p, i), data(q, i); a != b {
					t.Fatalf("command %d works on %s, with copies on %s", i, b, a)
				}
			}
			if !reflect.DeepEqual(withoutData(p), withoutData(q)) {
				t.Fatal("the program with copies is another")
			}
			folded, err := sim.Run(context.Background(), p, sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			commands := 0
			full, err := sim.Run(context.Background(), q, sim.Options{OnCommand: func(int, int64, int64) { commands++ }})
			if err != nil {
				t.Fatal(err)
			}
			if commands != len(q.Commands) {
				t.Errorf("%d commands were simulated one by one, want all %d", commands, len(q.Commands))
			}
			if !reflect.DeepEqual(folded, full) {
				t.Errorf("simulated once for all: %d ps, each by itself: %d ps", folded.TotalPs, full.TotalPs)
			}
		})
	}
}

// data spells out what a command reads and writes.
func data(p *isa.Program, i int) string {
	reads, writes, ok := p.Data(i)
	text := fmt.Sprint(ok, p.Commands[i].Portion)
	for _, o := range slices.Concat(reads, writes) {
		text += fmt.Sprint(" ", p.Tensors[o.Tensor].Name, o.Instance, o.Box, o.Spread)
	}
	return text
}

func withoutData(p *isa.Program) *isa.Program {
	c := *p
	c.Operators, c.Tensors, c.Tasks = nil, nil, nil
	c.Commands = slices.Clone(p.Commands)
	for i := range c.Commands {
		c.Commands[i].Task = 0
	}
	return &c
}
