package plans

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/formulation/allocate"
)

// Plans written by hand in the form in which each tool prints them. The plans are valid, and none is the best.
var dumps = map[string]string{
	"XLA": `BufferAssignment:
allocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:
 value: <0 p @0> (size=64,offset=0): f32[16]{0}
allocation 1: size 896, preallocated-temp:
 value: <1 a @0> (size=256,offset=0): f32[64]{0}
 value: <2 loop{0} @0> (size=256,offset=256): f32[64]{0}
 value: <3 body (phi)> (size=256,offset=256): f32[64]{0}
 value: <4 b @0> (size=384,offset=512): f32[96]{0}
 value: <5 loop{} @0> (size=0,offset=0): (f32[64])
allocation 2: size 4, constant:
 value: <6 c @0> (size=4,offset=0): f32[]

Total bytes used: 964 (964B)

HloLiveRange (max 9):
  InstructionSequence:
    0:p
    1:a
  BufferLiveRange:
    p{}:0-9
    a{}:1-3
    loop{0}:2-6
    body{}:4-7
    b{}:5-9
    loop{}:2-6
    c{}:0-9
  Live ranges at 5 (peak):
    b{}: 384 bytes (cumulative: 384 bytes)
`,
	"TFLite Micro": `0 (id=0): size=256, offset=0, first_used=1 last_used=3
1 (id=1): size=256, offset=256, first_used=2 last_used=7
2 (id=2): size=384, offset=512, first_used=5 last_used=9
`,
	"tt-mlir": `{
  "variables" : [
    {"placement" : "scratch", "bound" : false, "domain" : {"scratch" : [0], "spill" : [1]}},
    {"placement" : "scratch", "bound" : true, "domain" : {"scratch" : [2], "spill" : []}},
    {"placement" : "spill", "bound" : false, "domain" : {"scratch" : [3], "spill" : [4]}}
  ],
  "requests" : [
    [0, 1, 3, 256, 0],
    [0, 2, 2, 32, 0],
    [1, 2, 7, 256, 256],
    [2, 5, 9, 100000, 0],
    [2, 5, 9, 384, 512]
  ]
}
`,
}

// All three have one problem in them, whose best plan is 640: behind the text's plan of 896 once offsets
// are put back.
func TestDumps(t *testing.T) {
	for tool, text := range dumps {
		d, err := Read("plan.txt", text, "")
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		if d.Tool != tool || d.Peak != 896 || len(d.Problem.Buffers) != 3 {
			t.Errorf("%s: read as %s with peak %d of %d buffers", tool, d.Tool, d.Peak, len(d.Problem.Buffers))
		}
		var lives [3]allocate.Interval
		for i, b := range d.Problem.Buffers {
			lives[i] = b.Lifetime
		}
		if want := [3]allocate.Interval{{Lower: 1, Upper: 4}, {Lower: 2, Upper: 8}, {Lower: 5, Upper: 10}}; lives != want {
			t.Errorf("%s: lifetimes %v, want %v", tool, lives, want)
		}
		var csv bytes.Buffer
		if err := allocate.WriteCSV(&csv, d.Problem, nil); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
		p, err := allocate.ReadCSV("plan.csv", csv.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		r, err := allocate.Solve(context.Background(), p, allocate.NoLimit, "search", allocate.Options{})
		if err != nil || r.Peak == nil || *r.Peak != 640 {
			t.Fatalf("%s: %+v, %v", tool, r, err)
		}
		back, err := d.WithOffsets(r.Offsets)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read("plan.txt", back, "")
		if err != nil {
			t.Fatalf("%s: %v in\n%s", tool, err, back)
		}
		if again.Peak != 640 {
			t.Errorf("%s: peak %d after offsets were put back:\n%s", tool, again.Peak, back)
		}
		for i, b := range again.Problem.Buffers {
			if *b.Hint != r.Offsets[i] || b.Lifetime != d.Problem.Buffers[i].Lifetime {
				t.Errorf("%s: buffer %d came back at %d, want %d", tool, i, *b.Hint, r.Offsets[i])
			}
		}
	}
}

func TestDumpErrors(t *testing.T) {
	xla := dumps["XLA"]
	whole, ranges, _ := strings.Cut(xla, "HloLiveRange (")
	if d, err := Read("a-buffer-assignment.txt", whole, "HloLiveRange ("+ranges); err != nil || d.Peak != 896 {
		t.Errorf("ranges beside: %v", err)
	}
	// A part of a file, without the first allocations.
	part := xla[strings.Index(xla, "allocation 1"):]
	if d, err := Read("a.txt", part, ""); err != nil || d.Tool != "XLA" || d.Peak != 896 {
		t.Errorf("a part of a file: %v", err)
	}
	for _, c := range []struct{ text, want string }{
		{"nonsense", "no plan of XLA"},
		{whole, "no live ranges"},
		{strings.Replace(xla, "    body{}:4-7\n", "", 1), "value body has no live range"},
		{strings.Replace(xla, "<4 b @0>", "4 b", 1), `found "value: 4 b (size=384`},
		{strings.Replace(xla, "preallocated-temp", "thread-local", 1), "no allocation is preallocated-temp"},
		{strings.Replace(xla, "a{}:1-3", "a{}:3-1", 1), "lifetime"},
		{strings.Replace(dumps["TFLite Micro"], "offset=256", "offset=-1", 1), "offset -1"},
		{strings.Replace(dumps["TFLite Micro"], "size=256", "size=99999999999999999999", 1), "expected a number"},
		{strings.Replace(dumps["tt-mlir"], "[2, 5, 9, 384, 512]", "[2, 5, 9, 384]", 1), "requests"},
		{strings.Replace(dumps["tt-mlir"], `"spill" : [4]`, `"spill" : [9]`, 1), "request 9 of 5"},
	} {
		if _, err := Read("f", c.text, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.50q: %v, want %s", c.text, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range dumps {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Read("f", text, "")
		if err != nil {
			return
		}
		offsets := make([]int64, len(d.Problem.Buffers))
		for i, b := range d.Problem.Buffers {
			offsets[i] = *b.Hint
		}
		if _, err := d.WithOffsets(offsets); err != nil {
			t.Error(err)
		}
	})
}

// Plans as TFLite Micro printed them until 2021 are those of today.
func TestOlderPlans(t *testing.T) {
	d, err := Read("plan.txt", `Planner buffer ID: 0, calculated offset: 2304, size required: 256, first_time_created: 2, last_time_used: 3
Planner buffer ID: 1, calculated offset: 0, size required: 16, first_time_created: 3, last_time_used: 4
`, "")
	if err != nil {
		t.Fatal(err)
	}
	b := d.Problem.Buffers
	if d.Tool != "TFLite Micro" || d.Peak != 2560 || len(b) != 2 || b[0].Size != 256 || *b[0].Hint != 2304 ||
		b[0].Lifetime != (allocate.Interval{Lower: 2, Upper: 4}) ||
		b[1].Lifetime != (allocate.Interval{Lower: 3, Upper: 5}) {
		t.Errorf("%s, peak %d: %+v", d.Tool, d.Peak, b)
	}
}
