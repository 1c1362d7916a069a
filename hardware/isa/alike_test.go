package isa

import (
	"reflect"
	"strings"
	"testing"
)

// twins is a program of three clusters, the last two of which do the same.
func twins() *Program {
	p := &Program{Name: "twins", Clusters: 3, Labels: []string{"a"}, As: []int32{0, 1, 1}, Operators: []string{"op"},
		Tensors:   []Tensor{{Name: "x", Shape: []int64{4}, Order: []int32{0}, ElementBits: 16}},
		Tasks:     []Task{{Operators: []int32{0}, Reads: []Operand{{Instance: -1, Box: []Range{{0, 4}}}}}},
		Resources: []Resource{{Name: "ddr", BytesPerSecond: 10, Kind: DDRBandwidth}}}
	for k := range int32(3) {
		p.Resources = append(p.Resources, Resource{Name: "gb", BytesPerSecond: 20, Kind: LLBBandwidth})
		p.Queues = append(p.Queues, Queue{Cluster: k, Kind: DDRLoadQueue}, Queue{Cluster: k, Kind: MatrixQueue})
	}
	for k := range int32(2) {
		p.Commands = append(p.Commands,
			Command{Kind: DDRLoad, Queue: 2 * k, Task: 1, Bytes: 8, Uses: []Use{{0, 8}, {1 + k, 8}}, To: k + 1},
			Command{Kind: Matrix, Queue: 2*k + 1, DurationPs: 5, Deps: []int32{2 * k}})
		p.Buffers = append(p.Buffers, Buffer{Level: LLB, Cluster: k, Bytes: 8, First: 2 * k, Lasts: []int32{2*k + 1}})
	}
	return p
}

func TestUnfolded(t *testing.T) {
	p := twins()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	want := twins()
	want.As = nil
	want.Commands = append(want.Commands,
		Command{Kind: DDRLoad, Queue: 4, Task: 1, Bytes: 8, Uses: []Use{{0, 8}, {3, 8}}, To: 3},
		Command{Kind: Matrix, Queue: 5, DurationPs: 5, Deps: []int32{4}})
	want.Buffers = append(want.Buffers, Buffer{Level: LLB, Cluster: 2, Bytes: 8, First: 4, Lasts: []int32{5}})
	full := p.Unfolded()
	if !reflect.DeepEqual(full, want) {
		t.Errorf("unfolded:\n%+v\nwant\n%+v", full, want)
	}
	if err := full.Check(); err != nil {
		t.Error(err)
	}
	if full.Unfolded() != full || !reflect.DeepEqual(p, twins()) {
		t.Error("a program is changed by what is made of it")
	}
}

func TestCheckAlike(t *testing.T) {
	for _, c := range []struct {
		change func(p *Program)
		want   string
	}{
		{func(p *Program) { p.As = p.As[:2] }, "2 clusters are as others, expected all 3"},
		{func(p *Program) { p.As[1] = 2 }, "cluster 1 is as cluster 2"},
		{func(p *Program) { p.As[1] = 0 }, "cluster 2 is as cluster 1, expected itself or an earlier one that is as itself"},
		{func(p *Program) { p.Resources = p.Resources[:3] }, "other queues or resources"},
		{func(p *Program) { p.Resources[2].Kind = DDRBandwidth }, "other queues or resources"},
		{func(p *Program) { p.Queues = append(p.Queues, Queue{Cluster: 2}) }, "other queues or resources"},
		{func(p *Program) { p.Queues[5].Kind = VectorQueue }, "queue 5 is not as queue 3"},
		{func(p *Program) { p.Resources[3].BytesPerSecond++ }, "resource 3 is not as resource 2"},
		{func(p *Program) { p.Commands[2].Queue = 4 }, "command 2 is of cluster 2"},
		{func(p *Program) { p.Commands[0], p.Commands[2] = p.Commands[2], p.Commands[0] }, "command 1 is of cluster 0"},
		{func(p *Program) { p.Commands[3].Deps[0] = 0 }, "command 3 depends on one of another cluster"},
		{func(p *Program) { p.Commands[2].Uses[1].Resource = 1 }, "command 2 uses a resource of cluster 0"},
		{func(p *Program) { p.Buffers[1].Cluster = 2 }, "buffer 1 is of cluster 2"},
		{func(p *Program) { p.Buffers[1].First = 0 }, "buffer 1 is used by commands of another cluster"},
	} {
		p := twins()
		c.change(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
