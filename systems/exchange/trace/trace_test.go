package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func write(t *testing.T, p *isa.Program) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(context.Background(), &b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// small has a load, a product that waits for it, and a store, with a name that needs
// quoting.
func small() *isa.Program {
	return &isa.Program{
		Name: "small", Clusters: 1, Labels: []string{"a \"b\"", "c"},
		Resources: []isa.Resource{{Name: "ddr", Kind: isa.DDRBandwidth, BytesPerSecond: 1_000_000_000_000}},
		Queues:    []isa.Queue{{Name: "cluster0.dma"}, {Name: "cluster0.mme", Kind: isa.MatrixQueue}},
		Operators: []string{"product"},
		Tensors: []isa.Tensor{
			{Name: "x\"", Shape: []int64{4, 2}, Order: []int32{0, 1}, ElementBits: 16},
			{Name: "y", Shape: []int64{4}, Order: []int32{0}, ElementBits: 16},
		},
		Tasks: []isa.Task{{Instance: 3, Operators: []int32{0},
			Reads:  []isa.Operand{{Instance: -1, Box: []isa.Range{{Lo: 0, Hi: 4}, {Lo: 0, Hi: 2}}}},
			Writes: []isa.Operand{{Tensor: 1, Instance: 3, Box: []isa.Range{{Lo: 0, Hi: 2}}}}, Columns: []int64{1},
			Reduction: []int64{2}}},
		Commands: []isa.Command{
			{Kind: isa.DDRLoad, Queue: 0, Task: 1, Uses: []isa.Use{{Resource: 0, Bytes: 2000}}, Bytes: 2000, DurationPs: 500},
			{Kind: isa.Matrix, Queue: 1, Label: 1, Task: 1, Portion: isa.Portion{Part: 1, Parts: 2, Tile: 1},
				DurationPs: 1_000_001, Deps: []int32{0}, MACs: 7, Cores: 2},
			{Kind: isa.DDRStore, Queue: 0, Label: 1, Uses: []isa.Use{{Resource: 0, Bytes: 1000}}, Bytes: 1000, Deps: []int32{1}},
		},
		Buffers: []isa.Buffer{
			{Level: isa.L1, Address: 64, Bytes: 2000, First: 0, Lasts: []int32{1}},
			{Level: isa.L1, Address: 4096, Bytes: 1000, First: 1, Lasts: []int32{2}, Label: 1},
		},
	}
}

// The whole text, so that a change of the format is seen.
func TestWriteSmall(t *testing.T) {
	const want = `{"displayTimeUnit":"ns","otherData":{"program":"small"},
"traceEvents":[
{"ph":"M","name":"process_name","ts":0,"pid":1,"tid":0,"args":{"name":"chip"}},
{"ph":"M","name":"process_sort_index","ts":0,"pid":1,"tid":0,"args":{"sort_index":1}},
{"ph":"M","name":"process_name","ts":0,"pid":2,"tid":0,"args":{"name":"cluster 0"}},
{"ph":"M","name":"process_sort_index","ts":0,"pid":2,"tid":0,"args":{"sort_index":2}},
{"ph":"M","name":"thread_name","ts":0,"pid":2,"tid":1,"args":{"name":"cluster0.dma"}},
{"ph":"M","name":"thread_sort_index","ts":0,"pid":2,"tid":1,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","ts":0,"pid":2,"tid":2,"args":{"name":"mme"}},
{"ph":"M","name":"thread_sort_index","ts":0,"pid":2,"tid":2,"args":{"sort_index":2}},
{"ph":"X","name":"a \"b\"","cat":"ddr.load","ts":0,"dur":0.0025,"pid":2,"tid":1,"args":{"command":0,"iteration":0,"bytes":2000,"instance":3,"tensor":"x\"[0:4,0:2]"}},
{"ph":"X","name":"c","cat":"matrix","ts":0.0025,"dur":1.000001,"pid":2,"tid":2,"args":{"command":1,"iteration":0,"cores":2,"macs":7,"instance":3,"reads":["x\"[0:4,0:2]"],"writes":["y[0:2]"],"part":"2 of 2","weight_tile":1}},
{"ph":"X","name":"c","cat":"ddr.store","ts":1.002501,"dur":0.001,"pid":2,"tid":1,"args":{"command":2,"iteration":0,"bytes":1000}},
{"ph":"s","name":"data","cat":"flow","id":1,"ts":0,"pid":2,"tid":1},
{"ph":"f","bp":"e","name":"data","cat":"flow","id":1,"ts":0.0025,"pid":2,"tid":2},
{"ph":"s","name":"data","cat":"flow","id":2,"ts":0.0025,"pid":2,"tid":2},
{"ph":"f","bp":"e","name":"data","cat":"flow","id":2,"ts":1.002501,"pid":2,"tid":1},
{"ph":"M","name":"thread_name","ts":0,"pid":2,"tid":3,"args":{"name":"L1 0"}},
{"ph":"M","name":"thread_sort_index","ts":0,"pid":2,"tid":3,"args":{"sort_index":3}},
{"ph":"X","name":"a \"b\"","cat":"L1","ts":0,"dur":1.002501,"pid":2,"tid":3,"args":{"address":64,"bytes":2000}},
{"ph":"M","name":"thread_name","ts":0,"pid":2,"tid":4,"args":{"name":"L1 1"}},
{"ph":"M","name":"thread_sort_index","ts":0,"pid":2,"tid":4,"args":{"sort_index":4}},
{"ph":"X","name":"c","cat":"L1","ts":0.0025,"dur":1.001001,"pid":2,"tid":4,"args":{"address":4096,"bytes":1000}},
{"ph":"C","name":"L1 in use, per core","ts":0,"pid":2,"tid":0,"args":{"bytes":2000}},
{"ph":"C","name":"L1 in use, per core","ts":0.0025,"pid":2,"tid":0,"args":{"bytes":3000}},
{"ph":"C","name":"L1 in use, per core","ts":1.002501,"pid":2,"tid":0,"args":{"bytes":1000}},
{"ph":"C","name":"L1 in use, per core","ts":1.003501,"pid":2,"tid":0,"args":{"bytes":0}},
{"ph":"C","name":"DDR bandwidth","ts":0.0005,"pid":1,"tid":0,"args":{"bytes_per_s":1000000000000}},
{"ph":"C","name":"DDR bandwidth","ts":0.0025,"pid":1,"tid":0,"args":{"bytes_per_s":0}},
{"ph":"C","name":"DDR bandwidth","ts":1.002501,"pid":1,"tid":0,"args":{"bytes_per_s":1000000000000}},
{"ph":"C","name":"DDR bandwidth","ts":1.003501,"pid":1,"tid":0,"args":{"bytes_per_s":0}}
]}
`
	got := string(write(t, small()))
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := verify([]byte(got)); err != nil {
		t.Error(err)
	}
}

func program(t *testing.T, model, machine string, batch int64) *isa.Program {
	t.Helper()
	src, err := network.Open(model, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load(machine)
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, spec, batch, v, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Program
}

// Traces of whole networks keep the rules of the format, and say what the result says.
func TestWriteNetworks(t *testing.T) {
	for _, c := range []struct {
		model, machine string
		batch          int64
	}{{"resnet50", "stcp920", 8}, {"bert-128", "stcp920", 4}, {"toy-fig5", "goya", 2}} {
		t.Run(c.model, func(t *testing.T) {
			p := program(t, c.model, c.machine, c.batch)
			data := write(t, p)
			counts, err := verify(data)
			if err != nil {
				t.Fatal(err)
			}
			if counts["X"] < len(p.Commands) || counts["s"] == 0 || counts["s"] != counts["f"] || counts["C"] == 0 {
				t.Errorf("events %v for %d commands", counts, len(p.Commands))
			}
			if !bytes.Equal(data, write(t, p)) {
				t.Error("other bytes the second time")
			}
			t.Logf("%d bytes, events %v", len(data), counts)
		})
	}
}

// The bandwidth counter adds up to the bytes that the result counts, and never passes
// the rate of the resource.
func TestBandwidthAddsUp(t *testing.T) {
	p := program(t, "resnet50", "stcp920", 8)
	m := newMeter(p)
	r, err := sim.Run(context.Background(), p, sim.Options{OnRate: m.rate})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.shared) != 1 || p.Resources[m.shared[0]].Name != "ddr" {
		t.Fatalf("shared resources %v", m.shared)
	}
	sum := 0.0
	list := m.changes[0]
	for i, c := range list {
		if c.rate < 0 || c.rate > p.Resources[0].BytesPerSecond {
			t.Fatalf("%d bytes per second at %d ps", c.rate, c.ps)
		}
		if i > 0 {
			sum += float64(list[i-1].rate) * float64(c.ps-list[i-1].ps) * 1e-12
		}
	}
	if last := list[len(list)-1]; last.rate != 0 {
		t.Errorf("the last rate is %d", last.rate)
	}
	if want := float64(r.Resources[0].Bytes); math.Abs(sum-want) > 1e-4*want {
		t.Errorf("the counter adds up to %.0f bytes, the resource passed %.0f", sum, want)
	}
}

// Random programs, whose buffers and dependencies cross anyhow.
func TestWriteRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := &isa.Program{Clusters: 2, Labels: []string{"x", ""},
			Resources: []isa.Resource{{Name: "ddr", BytesPerSecond: 1 << 20}, {Name: "cluster0.gb", BytesPerSecond: 1 << 22}}}
		for q := range 4 {
			p.Queues = append(p.Queues, isa.Queue{Name: fmt.Sprintf("cluster%d.q%d", q/2, q), Cluster: int32(q / 2)})
		}
		for i := range int32(rng.IntN(40) + 1) {
			c := isa.Command{Kind: isa.Kind(rng.IntN(int(isa.NumKinds))), Queue: int32(rng.IntN(4)),
				DurationPs: int64(rng.IntN(3)) * 1000}
			if c.Kind.IsMove() {
				c.Uses = []isa.Use{{Resource: int32(rng.IntN(2)), Bytes: int64(rng.IntN(100))}}
			}
			for i > 0 && rng.IntN(2) == 0 {
				c.Deps = append(c.Deps, int32(rng.IntN(int(i))))
			}
			p.Commands = append(p.Commands, c)
			if rng.IntN(2) == 0 {
				p.Buffers = append(p.Buffers, isa.Buffer{Level: isa.L1, Cluster: p.Queues[c.Queue].Cluster, Bytes: 8,
					First: int32(rng.IntN(int(i) + 1)), Lasts: []int32{i}})
			}
		}
		if _, err := verify(write(t, p)); err != nil {
			t.Fatal(err)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteErrors(t *testing.T) {
	if err := Write(context.Background(), fullDisk{}, small()); err == nil ||
		!strings.Contains(err.Error(), "no space") {
		t.Errorf("error %v", err)
	}
	p := small()
	p.Commands[0].Queue = 9
	if err := Write(context.Background(), &bytes.Buffer{}, p); err == nil {
		t.Error("a broken program has a trace")
	}
}

// The verifier itself finds what is wrong.
func TestVerifyFinds(t *testing.T) {
	good := string(write(t, small()))
	for _, c := range []struct{ name, old, new, want string }{
		{"no pid", `"pid":2,"tid":1,"args":{"command":0`, `"tid":1,"args":{"command":0`, "no ph, ts, pid or tid"},
		{"half a flow", `{"ph":"f","bp":"e","name":"data","cat":"flow","id":2`,
			`{"ph":"f","bp":"e","name":"data","cat":"flow","id":3`, "has one end"},
		{"flow outside", `"id":1,"ts":0,`, `"id":1,"ts":0.9,`, "flow 1"},
		{"flow backwards", `"id":2,"ts":1.002501`, `"id":2,"ts":0.0001`, "flow 2 ends before"},
		{"overlap", `"ts":0,"dur":0.0025`, `"ts":0,"dur":1.0029`, "overlap"},
		{"counter back", `"ts":1.002501,"pid":1`, `"ts":0.0001,"pid":1`, "goes back in time"},
		{"no name", `"name":"thread_name","ts":0,"pid":2,"tid":4`,
			`"name":"thread_name","ts":0,"pid":2,"tid":9`, "has no name"},
		{"phase", `{"ph":"X","name":"c"`, `{"ph":"Q","name":"c"`, `phase "Q"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatalf("nothing to replace: %s", c.old)
			}
			if _, err := verify([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// verify reads a trace back and verifies the rules of the format that a viewer relies on:
// every event has a phase, a time, a process and a track; slices of a track do not
// overlap unless one holds the other; each flow begins once and ends once, later, both
// within a slice of its track; the times of a counter ascend; processes and tracks with
// events have names. It returns the number of events by phase.
func verify(data []byte) (map[string]int, error) {
	var file struct {
		TraceEvents []struct {
			Ph   *string
			Name string
			Cat  string
			Ts   *json.Number
			Dur  *json.Number
			Pid  *int
			Tid  *int
			ID   *int
			Args map[string]any
		}
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	type track struct{ pid, tid int }
	type slice struct{ from, to int64 }
	type flow struct {
		begin, end int64
		at         [2]track
		has        [2]bool
	}
	counts := map[string]int{}
	slicesOf := map[track][]slice{}
	flows := map[int]*flow{}
	counters := map[string]int64{}
	named := map[track]bool{}
	used := map[track]bool{}
	for i, e := range file.TraceEvents {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("trace: event %d: %s", i, fmt.Sprintf(format, args...))
		}
		if e.Ph == nil || e.Ts == nil || e.Pid == nil || e.Tid == nil {
			return nil, bad("no ph, ts, pid or tid")
		}
		counts[*e.Ph]++
		ts, err := picoseconds(e.Ts.String())
		if err != nil {
			return nil, bad("ts %v", err)
		}
		at := track{*e.Pid, *e.Tid}
		switch *e.Ph {
		case "M":
			switch name, _ := e.Args["name"].(string); {
			case (e.Name == "process_name" || e.Name == "thread_name") && name == "":
				return nil, bad("%s without a name", e.Name)
			case e.Name == "process_name":
				named[track{at.pid, 0}] = true
			case e.Name == "thread_name":
				named[at] = true
			case e.Name != "process_sort_index" && e.Name != "thread_sort_index":
				return nil, bad("metadata %q", e.Name)
			}
			continue
		case "X":
			if e.Dur == nil || e.Name == "" {
				return nil, bad("a slice without a duration or a name")
			}
			dur, err := picoseconds(e.Dur.String())
			if err != nil {
				return nil, bad("dur %v", err)
			}
			slicesOf[at] = append(slicesOf[at], slice{ts, ts + dur})
		case "s", "f":
			if e.ID == nil {
				return nil, bad("a flow without an id")
			}
			f := flows[*e.ID]
			if f == nil {
				f = &flow{}
				flows[*e.ID] = f
			}
			k := 0
			if *e.Ph == "f" {
				k, f.end = 1, ts
			} else {
				f.begin = ts
			}
			if f.has[k] {
				return nil, bad("flow %d has two of %q", *e.ID, *e.Ph)
			}
			f.has[k], f.at[k] = true, at
		case "C":
			if len(e.Args) == 0 {
				return nil, bad("a counter without a value")
			}
			key := fmt.Sprint(at.pid, e.Name)
			if last, ok := counters[key]; ok && ts <= last {
				return nil, bad("counter %q goes back in time", e.Name)
			}
			counters[key] = ts
			if !named[track{at.pid, 0}] {
				return nil, bad("a counter of a process without a name")
			}
			continue
		default:
			return nil, bad("phase %q", *e.Ph)
		}
		used[at] = true
	}
	for at := range used {
		if !named[track{at.pid, 0}] || !named[at] {
			return nil, fmt.Errorf("trace: track %d of process %d has no name", at.tid, at.pid)
		}
	}
	for at, list := range slicesOf {
		slices.SortFunc(list, func(a, b slice) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
		var open []slice
		for _, s := range list {
			for len(open) > 0 && open[len(open)-1].to <= s.from {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && s.to > open[len(open)-1].to {
				return nil, fmt.Errorf("trace: slices of track %d of process %d overlap at %s us", at.tid, at.pid, us(s.from))
			}
			open = append(open, s)
		}
	}
	within := func(at track, ps int64) bool {
		list := slicesOf[at]
		k, _ := slices.BinarySearchFunc(list, ps+1, func(s slice, ps int64) int { return cmp.Compare(s.from, ps) })
		return k > 0 && (list[k-1].to > ps || list[k-1].from == ps)
	}
	for id, f := range flows {
		switch {
		case !f.has[0] || !f.has[1]:
			return nil, fmt.Errorf("trace: flow %d has one end", id)
		case f.end < f.begin:
			return nil, fmt.Errorf("trace: flow %d ends before it begins", id)
		case !within(f.at[0], f.begin) || !within(f.at[1], f.end):
			return nil, fmt.Errorf("trace: flow %d has an end outside of any slice", id)
		}
	}
	return counts, nil
}

// picoseconds reads what us has written.
func picoseconds(s string) (int64, error) {
	whole, rest, _ := strings.Cut(s, ".")
	if len(rest) > 6 {
		return 0, fmt.Errorf("%q has more than picoseconds", s)
	}
	n, err := strconv.ParseInt(whole+rest+strings.Repeat("0", 6-len(rest)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no time", s)
	}
	return n, nil
}
