package isa

import (
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		change func(p *Program)
		index  int
		want   string // "" for no error
	}{
		{"as it is", func(p *Program) {}, 0, ""},
		{"empty", func(p *Program) { *p = Program{} }, 0, ""},
		{"a rate of nothing", func(p *Program) { p.Resources[1].BytesPerSecond = 0 }, -1, "resource 1 (gb) has 0 bytes"},
		{"cluster", func(p *Program) { p.Queues[1].Cluster = 1 }, -1, "queue 1 (cluster0.mme) is of cluster 1 of 1"},
		{"kind of a queue", func(p *Program) { p.Queues[1].Kind = NumQueueKinds }, -1,
			"queue 1 (cluster0.mme) is of the unknown kind"},
		{"kind of a resource", func(p *Program) { p.Resources[1].Kind = NumResourceKinds }, -1,
			"resource 1 (gb) is of the unknown kind"},
		{"order of a tensor", func(p *Program) { p.Tensors[0].Order[1] = 0 }, -1, "tensor 0 (image) has order"},
		{"size of a tensor", func(p *Program) { p.Tensors[1].Shape[0] = 1 << 60 }, -1, "tensor 1 (out) has order"},
		{"operator", func(p *Program) { p.Tasks[0].Operators[0] = 2 }, -1, "task 0 runs operator 2 of 2"},
		{"tensor", func(p *Program) { p.Tasks[0].Reads[0].Tensor = 3 }, -1, "task 0 has tensor 3 of 3"},
		{"box", func(p *Program) { p.Tasks[0].Writes[0].Box[1].Hi = 5 }, -1, "task 0 has the box"},
		{"dimensions of a box", func(p *Program) { p.Tasks[0].Writes[0].Box = nil }, -1, "task 0 has the box"},
		{"spread", func(p *Program) { p.Tasks[0].Writes[0].Spread[3] = 7 }, -1, "task 0 has the box"},
		{"task", func(p *Program) { p.Commands[3].Task = 3 }, 3, "task 2 of 2"},
		{"portion of nothing", func(p *Program) { p.Commands[4].Parts = 1 }, 4, "a portion of no task"},
		{"part", func(p *Program) { p.Commands[1].Part = 3 }, 1, "part 3 of 3"},
		{"tile", func(p *Program) { p.Commands[1].Tile = 3 }, 1, "tile 3 of 2"},
		{"operand", func(p *Program) { p.Commands[0].Operand = 2 }, 0, "operand 2 of 2"},
		{"stored operand", func(p *Program) { p.Commands[2].Operand = 1 }, 2, "operand 1 of 1"},
		{"kind", func(p *Program) { p.Commands[1].Kind = NumKinds }, 1, "unknown kind 10"},
		{"queue", func(p *Program) { p.Commands[2].Queue = 2 }, 2, "queue 2 of 2"},
		{"label", func(p *Program) { p.Commands[2].Label = -1 }, 2, "label -1 of 2"},
		{"duration", func(p *Program) { p.Commands[0].DurationPs = -1 }, 0, "negative"},
		{"level", func(p *Program) { p.Commands[0].WriteLevel = NumLevels }, 0, "unknown level 4"},
		{"computation that moves", func(p *Program) { p.Commands[1].Uses = []Use{{0, 1}} }, 1, "matrix uses a resource"},
		{"itself", func(p *Program) { p.Commands[2].Deps[1] = 2 }, 2, "depends on command 2, expected an earlier one"},
		{"resource", func(p *Program) { p.Commands[0].Uses[1].Resource = 2 }, 0, "uses 4096 bytes of resource 2 of 2"},
		{"bytes of a use", func(p *Program) { p.Commands[0].Uses[1].Bytes = -2 }, 0, "uses -2 bytes"},
		{"buffer", func(p *Program) { p.Buffers[1].First = 5 }, -1, "buffer 1 has"},
		{"last of a buffer", func(p *Program) { p.Buffers[0].Lasts[1] = -1 }, -1, "buffer 0 has"},
		{"level of a buffer", func(p *Program) { p.Buffers[0].Level = NoLevel }, -1, "buffer 0 has"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := example()
			test.change(p)
			err := p.Check()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *ProblemError
			if !errors.As(err, &e) || e.Index != test.index || !strings.HasPrefix(e.What, test.want) {
				t.Errorf("error %v, want command %d: %s", err, test.index, test.want)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for k := range NumKinds {
		name := k.String()
		if name == "" || seen[name] || strings.ContainsAny(name, " =#") {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[name] = true
		if k.IsMove() && k.IsCompute() {
			t.Errorf("%v is a move and a computation", k)
		}
	}
	if got := NumKinds.String(); got != "kind(10)" {
		t.Errorf("got %q", got)
	}
}
