package isa

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
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

func ExampleParseText() {
	text := `
isa 1
program "one command"
clusters 1
label 0 "conv"
queue 0 "mme" cluster=0
command 0 matrix queue=0 label=0 ps=1000 deps=0
`
	_, err := ParseText("wrong.isa", strings.NewReader(text))
	fmt.Println(err)
	p, err := ParseText("right.isa", strings.NewReader(strings.Replace(text, "deps=0", "", 1)))
	fmt.Println(p.Name, p.Commands[0].Kind, p.Commands[0].DurationPs, err)
	// Output:
	// wrong.isa:7: program "one command": command 0: depends on command 0, expected an earlier one
	// one command matrix 1000 <nil>
}

func roundTrip(t *testing.T, p *Program) {
	t.Helper()
	var text bytes.Buffer
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	q, err := ParseText("text", bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text.Bytes())
	}
	if !reflect.DeepEqual(p, q) {
		t.Errorf("wrote %+v\nread %+v", p, q)
	}
	var again bytes.Buffer
	if err := q.WriteText(&again); err != nil || !bytes.Equal(text.Bytes(), again.Bytes()) {
		t.Errorf("%v: wrote\n%s\nthen\n%s", err, text.Bytes(), again.Bytes())
	}
}

func TestTextRoundTrip(t *testing.T) {
	roundTrip(t, example())
	roundTrip(t, &Program{})
	roundTrip(t, &Program{Name: "`\xff\x00\u2028☃\r", Capacity: [NumLevels]int64{NoLevel: -1, DDR: 1<<63 - 1}, PeakMACsPerSecond: 1e-300})
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := &Program{Name: fmt.Sprint("random ", seed), Clusters: 1 + rng.IntN(3), PeakVectorOpsPerSecond: rng.NormFloat64()}
		number := func() int64 { return rng.Int64() >> rng.IntN(64) }
		for i := range 1 + rng.IntN(4) {
			p.Labels = append(p.Labels, string([]byte{byte(rng.Uint32()), byte(rng.Uint32())}))
			p.Resources = append(p.Resources, Resource{fmt.Sprint("r", i), number() | 1, ResourceKind(rng.IntN(int(NumResourceKinds)))})
			p.Queues = append(p.Queues, Queue{p.Labels[i], rng.Int32N(int32(p.Clusters)), QueueKind(rng.IntN(int(NumQueueKinds)))})
		}
		index := func(n int) int32 { return rng.Int32N(int32(n)) }
		for i := range rng.IntN(30) {
			c := Command{
				Kind: Kind(rng.IntN(int(NumKinds))), Queue: index(len(p.Queues)), Label: index(len(p.Labels)),
				Iteration: rng.Int32() >> rng.IntN(32), Cores: rng.Int32() >> rng.IntN(32), DurationPs: number(),
				Bytes: number(), MACs: number(), VectorOps: number(), WriteLevel: Level(rng.IntN(int(NumLevels))),
			}
			for range min(i, rng.IntN(4)) {
				c.Deps = append(c.Deps, index(i))
			}
			if c.Kind.IsMove() {
				for range rng.IntN(4) {
					c.Uses = append(c.Uses, Use{index(len(p.Resources)), number()})
				}
			}
			p.Commands = append(p.Commands, c)
		}
		for range min(len(p.Commands), rng.IntN(10)) {
			b := Buffer{
				Label: index(len(p.Labels)), Level: LB + Level(rng.IntN(3)), Cluster: index(p.Clusters),
				Address: number(), Bytes: number(), First: index(len(p.Commands)),
			}
			for range rng.IntN(4) {
				b.Lasts = append(b.Lasts, index(len(p.Commands)))
			}
			p.Buffers = append(p.Buffers, b)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, p)
	}
}

// A program that is wrong can be written, to look at it, but not read.
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
	if _, err := ParseText("text", &text); err == nil {
		t.Error("no error")
	}
}

func TestParseTextErrors(t *testing.T) {
	const head = "isa 1\nprogram \"p\"\nclusters 1\nlabel 0 \"l\"\nresource 0 \"r\" bytes/s=1\nqueue 0 \"q\" cluster=0\n" // 6 lines
	tests := []struct{ name, text, want string }{
		{"nothing", "", `f: there is no line "isa"`},
		{"comments only", "# isa 1\n\n", `f: there is no line "isa"`},
		{"something else", "PK\x03\x04", `f:1: expected "isa 1" as the first line, got "PK\x03\x04"`},
		{"version", "\n isa 2", `f:2: version "2" of the text form, expected "1"`},
		{"no clusters", "isa 1\nprogram \"p\"", `f: there is no line "clusters"`},
		{"unknown item", head + "robot 0", `f:7: unknown item "robot"`},
		{"twice", head + "clusters 2", `f:7: a second line "clusters"; the first is line 3`},
		{"more", "isa 1\nclusters 1 2", `f:2: unexpected "2"`},
		{"number", head + "label 2 \"x\"", `f:7: label 2, expected 1`},
		{"no number", head + "label \"x\"", `f:7: number of label: "\"x\"" is not an integer`},
		{"name", head + "label 1 x", `f:7: expected a quoted name`},
		{"name in other quotes", head + "label 1 'x'", `f:7: expected a quoted name`},
		{"name runs on", head + `label 1 "x"y`, `f:7: expected a space after "x"`},
		{"name without end", head + `label 1 "x`, `f:7: expected a quoted name`},
		{"word", head + "resource 1 \"x\" fast", `f:7: "fast" is not of the form key=value`},
		{"key of resource", head + "resource 1 \"x\" speed=1", `f:7: unknown field "speed"`},
		{"key of queue", head + "queue 1 \"x\" deps=1", `f:7: unknown field "deps"`},
		{"kind of queue", head + "queue 1 \"x\" kind=oven", `f:7: field kind: unknown kind of queue "oven"`},
		{"kind of resource", head + "resource 1 \"x\" kind=oven", `f:7: field kind: unknown kind of resource "oven"`},
		{"key of tensor", head + "tensor 0 \"x\" size=1", `f:7: unknown field "size"`},
		{"key of task", head + "task 0 parts=1", `f:7: unknown field "parts"`},
		{"operand", head + "task 0 reads=0@0[0:1", `f:7: field reads: "0@0[0:1" is not of the form tensor@instance[low:high,low:high/cores,...]level:address~stage+bytes`},
		{"range of an operand", head + "task 0 writes=0@0[1]", `f:7: field writes: "0@0[1]" is not of the form tensor@instance[low:high,low:high/cores,...]level:address~stage+bytes`},
		{"part", head + "command 0 matrix part=1", `f:7: field part: "1" is not of the form part/parts`},
		{"checked: tensor", head + "tensor 0 \"x\" shape=2", `f:7: program "p": tensor 0 (x) has order [] for shape [2] and elements of 0 bytes`},
		{"checked: box", head + "tensor 0 \"x\" shape=2 order=0\ntask 0 reads=0@0[1:3]", `f:8: program "p": task 0 has the box [{1 3}] of a tensor of shape [2], spread over [] cores`},
		{"checked: task", head + "command 0 matrix task=0", `f:7: program "p": command 0: task 0 of 0`},
		{"key of capacity", head + "capacity L3=1", `f:7: unknown field "L3"`},
		{"key of peak", head + "peak x=1", `f:7: unknown field "x"`},
		{"peak", head + "peak macs/s=fast", `f:7: field macs/s: "fast" is not a number`},
		{"key twice", head + "command 0 matrix ps=1 ps=2", `f:7: field "ps" comes twice`},
		{"kind", head + "command 0 pray", `f:7: unknown kind of command "pray"`},
		{"no kind", head + "command 0", `f:7: unknown kind of command ""`},
		{"key of command", head + "command 0 matrix colour=1", `f:7: unknown field "colour"`},
		{"integer", head + "command 0 matrix ps=1.5", `f:7: field ps: "1.5" is not an integer`},
		{"range", head + "command 0 matrix ps=9223372036854775808", `f:7: field ps: 9223372036854775808 does not fit 64 bits`},
		{"range of 32 bits", head + "command 0 matrix queue=2147483648", `f:7: field queue: 2147483648 does not fit 32 bits`},
		{"list", head + "command 0 matrix deps=1,,2", `f:7: field deps: "" is not an integer`},
		{"use", head + "command 0 ddr.load uses=1", `f:7: field uses: "1" is not of the form resource:bytes`},
		{"use", head + "command 0 ddr.load uses=0:1,0:x", `f:7: field uses: "x" is not an integer`},
		{"level", head + "command 0 matrix write=L2", `f:7: field write: unknown level "L2"`},
		{"level of a buffer", head + "buffer 0 L2", `f:7: unknown level "L2"`},
		{"key of buffer", head + "buffer 0 LB size=1", `f:7: unknown field "size"`},
		{"checked: resource", head + "\nresource 1 \"x\"", `f:8: program "p": resource 1 (x) has 0 bytes per second, expected more than zero`},
		{"checked: queue", head + "queue 1 \"x\" cluster=1", `f:7: program "p": queue 1 (x) is of cluster 1 of 1`},
		{"checked: command", head + "command 0 matrix\ncommand 1 matrix deps=1", `f:8: program "p": command 1: depends on command 1, expected an earlier one`},
		{"checked: buffer", head + "command 0 matrix\nbuffer 0 LB\n\nbuffer 1 LB first=1", `f:10: program "p": buffer 1 has an index or size out of range`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := ParseText("f", strings.NewReader(test.text))
			if p != nil || err == nil || err.Error() != test.want {
				t.Errorf("error\n%v, want\n%s", err, test.want)
			}
			var e *TextError
			if !errors.As(err, &e) {
				t.Errorf("a %T", err)
			}
			var problem *ProblemError
			if errors.As(err, &problem) != strings.HasPrefix(test.name, "checked") {
				t.Errorf("problem %v", problem)
			}
		})
	}
}

func TestParseTextForms(t *testing.T) {
	text := "# a comment\r\n\r\nisa 1\r\n command 0 matrix ps=5#fast\r\n\tcommand 1\tvector  deps=0  label=0 # label=1\r\nqueue 0 \"q#\" cluster=0\r\nlabel 0 \"l\"\r\nclusters 1\r\nprogram \"p\"#"
	p, err := ParseText("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &Program{
		Name: "p", Clusters: 1, Labels: []string{"l"}, Queues: []Queue{{Name: "q#"}},
		Commands: []Command{{Kind: Matrix, DurationPs: 5}, {Kind: Vector, Deps: []int32{0}}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
}

func TestTextIOErrors(t *testing.T) {
	_, err := ParseText("f", iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("isa 1"))))
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("error %v", err)
	}
	if err := example().WriteText(fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

var errFull = errors.New("full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// Whatever is read can be written and read again.
func FuzzParseText(f *testing.F) {
	var text bytes.Buffer
	example().WriteText(&text)
	f.Add(text.String())
	f.Add("isa 1\nprogram \"\"\nclusters -1\npeak macs/s=-0\n")
	f.Add("isa 1\nclusters 1\nprogram \"\"\nlabel 0 \"\\xff\"\nqueue 0 \"\\u2028\"\ncommand 0 exchange uses=\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseText("fuzz", strings.NewReader(text))
		if err != nil {
			var e *TextError
			if !errors.As(err, &e) {
				t.Fatalf("a %T: %v", err, err)
			}
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		var once, twice bytes.Buffer
		if err := p.WriteText(&once); err != nil {
			t.Fatal(err)
		}
		q, err := ParseText("again", bytes.NewReader(once.Bytes()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, once.Bytes())
		}
		if err := q.WriteText(&twice); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatalf("%v: wrote\n%s\nthen\n%s", err, once.Bytes(), twice.Bytes())
		}
		// NaN is not equal to itself.
		if p.PeakMACsPerSecond == p.PeakMACsPerSecond && p.PeakVectorOpsPerSecond == p.PeakVectorOpsPerSecond && !reflect.DeepEqual(p, q) {
			t.Fatalf("read %+v\nthen %+v", p, q)
		}
	})
}

func BenchmarkText100k(b *testing.B) {
	p := example()
	for i := len(p.Commands); i < 100_000; i++ {
		c := p.Commands[i%3]
		c.Deps = []int32{int32(i - 1), int32(i - 2)}
		p.Commands = append(p.Commands, c)
	}
	var text bytes.Buffer
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			text.Reset()
			if err := p.WriteText(&text); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(text.Len()))
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			if _, err := ParseText("text", bytes.NewReader(text.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}
