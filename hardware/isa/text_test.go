package isa

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func example() *Program {
	return &Program{
		Name: "two tiles", Clusters: 1, Labels: []string{"conv", "add\n# \"x\""},
		Resources: []Resource{{"ddr", 108e9, DDRBandwidth}, {Name: "gb", BytesPerSecond: 256e9}},
		Queues:    []Queue{{Name: "cluster0.dma"}, {Name: "cluster0.mme", Kind: MatrixQueue}},
		Operators: []string{"conv", "relu\n"},
		Tensors: []Tensor{
			{"image", []int64{1, 3, 8, 6}, []int32{0, 2, 3, 1}, 2}, {"out", []int64{1, 4, 8, 6}, []int32{0, 2, 3, 1}, 2}, {"number", nil, nil, 4},
		},
		Tasks: []Task{
			{Instance: 5, Operators: []int32{0, 1}, Reads: []Operand{{Instance: -1, Box: []Range{{0, 1}, {0, 3}, {0, 5}, {0, 6}}}, {Tensor: 2, Instance: 4}},
				Writes: []Operand{{Tensor: 1, Instance: 5, Box: []Range{{0, 1}, {0, 4}, {0, 4}, {0, 6}}, Spread: []int64{1, 1, 1, 2}, Level: GB, Address: 64, Stage: 128, StageBytes: 96}}, Columns: []int64{2, 4}, Reduction: []int64{27}},
			{},
		},
		Commands: []Command{
			{Kind: DDRLoad, Cores: 8, Task: 1, Portion: Portion{Operand: 1}, DurationPs: 300_000, Uses: []Use{{0, 4096}, {1, 4096}}, Bytes: 4096},
			{Kind: Matrix, Queue: 1, Cores: 8, Task: 1, Portion: Portion{Part: 1, Parts: 3, Tile: 2}, DurationPs: 1_000_000, Deps: []int32{0}, MACs: 1000, WriteLevel: LB},
			{Kind: DDRStore, Label: 1, Iteration: 3, Task: 1, Portion: Portion{Part: 3, Parts: 4}, DurationPs: 300_000, Deps: []int32{0, 1}, Uses: []Use{{0, 4096}}, Bytes: 4096, WriteLevel: DDR},
			{Kind: Vector, Queue: 1, Task: 2, VectorOps: 7},
			{},
		},
		Buffers: []Buffer{
			{Label: 0, Level: LB, Bytes: 4096, First: 0, Lasts: []int32{1, 2}},
			{Label: 1, Level: GB, Address: 64, Bytes: 1, First: 4},
		},
		Capacity:          [NumLevels]int64{LB: 1 << 16, GB: 1 << 20},
		PeakMACsPerSecond: 128e12, PeakVectorOpsPerSecond: 1.0 / 3,
	}
}

func ExampleProgram_WriteText() {
	if err := example().WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// isa 1
	// program "two tiles"
	// clusters 1
	// capacity LB=65536 GB=1048576
	// peak macs/s=1.28e+14 vectorops/s=0.3333333333333333
	// label 0 "conv"
	// label 1 "add\n# \"x\""
	// resource 0 "ddr" bytes/s=108000000000 kind=ddr
	// resource 1 "gb" bytes/s=256000000000
	// queue 0 "cluster0.dma" cluster=0
	// queue 1 "cluster0.mme" cluster=0 kind=mme
	// operator 0 "conv"
	// operator 1 "relu\n"
	// tensor 0 "image" bytes=2 shape=1,3,8,6 order=0,2,3,1
	// tensor 1 "out" bytes=2 shape=1,4,8,6 order=0,2,3,1
	// tensor 2 "number" bytes=4
	// task 0 instance=5 operators=0,1 reads=0@-1[0:1,0:3,0:5,0:6];2@4[] writes=1@5[0:1,0:4,0:4,0:6/2]GB:64~128+96 columns=2,4 reduction=27
	// task 1 instance=0
	// command 0 ddr.load queue=0 label=0 cores=8 task=0 operand=1 ps=300000 uses=0:4096,1:4096 bytes=4096  # cluster0.dma: conv
	// command 1 matrix queue=1 label=0 cores=8 task=0 part=1/3 tile=2 ps=1000000 deps=0 macs=1000 write=LB  # cluster0.mme: conv
	// command 2 ddr.store queue=0 label=1 iteration=3 task=0 part=3/4 ps=300000 deps=0,1 uses=0:4096 bytes=4096 write=DDR  # cluster0.dma: "add\n# \"x\""
	// command 3 vector queue=1 label=0 task=1 vectorops=7  # cluster0.mme: conv
	// command 4 launch queue=0 label=0  # cluster0.dma: conv
	// buffer 0 LB label=0 cluster=0 address=0 bytes=4096 first=0 lasts=1,2  # conv
	// buffer 1 GB label=1 cluster=0 address=64 bytes=1 first=4  # "add\n# \"x\""
}

// A program that is wrong can be written, to look at it.
func TestTextOfBrokenProgram(t *testing.T) {
	p := example()
	p.Commands[0].Kind = 77
	p.Commands[1].WriteLevel = 9
	p.Commands[2].Queue = -1
	p.Commands[2].Label = 100
	p.Buffers[0].Level = 9
	var text bytes.Buffer
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind(77)", "write=level(9)", "queue=-1 label=100", "# ?: ?", "buffer 0 level(9)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestTextIOErrors(t *testing.T) {
	if err := example().WriteText(fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

var errFull = errors.New("full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func BenchmarkText100k(b *testing.B) {
	p := example()
	for i := len(p.Commands); i < 100_000; i++ {
		c := p.Commands[i%3]
		c.Deps = []int32{int32(i - 1), int32(i - 2)}
		p.Commands = append(p.Commands, c)
	}
	var text bytes.Buffer
	for b.Loop() {
		text.Reset()
		if err := p.WriteText(&text); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(text.Len()))
}
