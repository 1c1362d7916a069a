package recording

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func columnOf(t *testing.T, s string) []int64 {
	t.Helper()
	var list []int64
	for word := range strings.FieldsSeq(s) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// runToy simulates a small network; it is quick.
func runToy(t *testing.T, name string, chunk int64) *scheduler.Result {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	return runToyOn(t, spec, name, chunk)
}

func runToyOn(t *testing.T, spec *hardware.Spec, name string, chunk int64) *scheduler.Result {
	t.Helper()
	return runOn(t, "toy-fig3", spec, 32, name, scheduler.Options{Chunk: chunk})
}

func runOn(t *testing.T, network string, spec *hardware.Spec, batch int64, name string,
	opt scheduler.Options) *scheduler.Result {
	t.Helper()
	v, err := recipes.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), harness.OpenNetwork(network), spec, batch, v, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func record(r *scheduler.Result) Recorded {
	return Record(r, 0, harness.RowOf(r, harness.Given, "/s"), math.MaxInt)
}

// The recording says what the simulation did, to the tick.
func TestRecordingIsTheSimulation(t *testing.T) {
	for _, c := range []struct {
		variant string
		chunk   int64
	}{{"tvm", 2}, {"cross-layer", 8}} {
		t.Run(c.variant, func(t *testing.T) {
			r := runToy(t, c.variant, c.chunk)
			rec := record(r).Variant
			byName := map[string]int{}
			for q := range r.Program.Queues {
				if r.Program.Queues[q].Cluster == 0 && r.Sim.Queues[q].Commands > 0 {
					byName[strings.TrimPrefix(r.Program.Queues[q].Name, "cluster0.")] = q
				}
			}
			if len(rec.Queues) != len(byName) {
				t.Errorf("%d queues, want %d", len(rec.Queues), len(byName))
			}
			for _, track := range rec.Queues {
				q := byName[track.Name]
				gap, length, label, kind, amount := columnOf(t, track.Gap), columnOf(t, track.Length), columnOf(t, track.Label),
					columnOf(t, track.Kind), columnOf(t, track.Amount)
				n, now := 0, int64(0)
				for i := range r.Program.Commands {
					cmd := &r.Program.Commands[i]
					if int(cmd.Queue) != q {
						continue
					}
					start := now + gap[n]
					now = start + length[n]
					if d := 1000*start - r.Sim.Start[i]; d < -500 || d > 500 {
						t.Fatalf("%s: command %d starts %d ps too late", track.Name, n, d)
					}
					if d := 1000*now - r.Sim.End[i]; d < -500 || d > 500 {
						t.Fatalf("%s: command %d ends %d ps too late", track.Name, n, d)
					}
					if label[n] != int64(cmd.Label) || kind[n] != int64(cmd.Kind) || amount[n] != cmd.Bytes+cmd.MACs+cmd.VectorOps {
						t.Fatalf("%s: command %d has label %d, kind %d, amount %d, want %+v", track.Name, n, label[n], kind[n],
							amount[n], cmd)
					}
					if gap[n] < 0 || length[n] < 0 || cmd.Bytes > 0 && cmd.MACs+cmd.VectorOps > 0 ||
						cmd.MACs > 0 && cmd.VectorOps > 0 {
						t.Fatalf("%s: command %d goes back in time or has two amounts: %+v", track.Name, n, cmd)
					}
					n++
				}
				if n != track.Commands || len(gap) != n || len(amount) != n {
					t.Errorf("%s: %d commands, %d recorded", track.Name, n, track.Commands)
				}
			}
			// The bytes held at any time are those of the simulator's own count, away from the
			// ticks that rounding may move.
			for _, m := range rec.Memories {
				level := isa.L1
				if m.Level == "LLB" {
					level = isa.LLB
				}
				gap, length, size, address := columnOf(t, m.Gap), columnOf(t, m.Length), columnOf(t, m.Size), columnOf(t, m.Address)
				start := make([]int64, len(gap))
				at := int64(0)
				for i := range gap {
					at += gap[i]
					start[i] = at
					if address[i] < 0 || address[i]+size[i] > m.Capacity {
						t.Fatalf("%s: buffer %d lies outside of the memory", m.Level, i)
					}
				}
				occupancy := &r.Sim.Clusters[0].Memory[level]
				checked := 0
				for k, step := range occupancy.Steps {
					until := r.Sim.TotalPs
					if k+1 < len(occupancy.Steps) {
						until = occupancy.Steps[k+1].Ps
					}
					if until-step.Ps < 4000 {
						continue
					}
					now, held := (step.Ps+until)/2/1000, int64(0)
					for i := range start {
						if start[i] <= now && now < start[i]+length[i] {
							held += size[i]
						}
					}
					checked++
					if held != step.Bytes {
						t.Fatalf("%s: %d bytes at %d ns, want %d", m.Level, held, now, step.Bytes)
					}
				}
				if checked < 10 {
					t.Errorf("%s: %d steps were long enough to check", m.Level, checked)
				}
			}
			if d := 1000*rec.EndTicks - r.Sim.TotalPs; d < -500 || d > 500 {
				t.Errorf("the end is %d ps too late", d)
			}
		})
	}
}

// Variants of one configuration name their operators by one list, layers first.
func TestRecordingsShareOperators(t *testing.T) {
	runs := []Recorded{record(runToy(t, "tvm", 2)), record(runToy(t, "cross-layer", 8))}
	conf, err := Join(Configuration{}, runs)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range runs {
		for k, q := range r.Variant.Queues {
			own, joined := columnOf(t, q.Label), columnOf(t, conf.Variants[i].Queues[k].Label)
			for n := range own {
				if r.Labels[own[n]] != conf.Operators[joined[n]] {
					t.Fatalf("command %d of %s is %q, want %q", n, q.Name, conf.Operators[joined[n]], r.Labels[own[n]])
				}
				if isLayer := slices.Contains(r.Layers, r.Labels[own[n]]); isLayer != (joined[n] < int64(conf.Layers)) {
					t.Fatalf("%q: a layer is %v", r.Labels[own[n]], isLayer)
				}
			}
		}
	}
	if sorted := slices.Clone(conf.Operators); len(slices.Compact(sorted)) != len(conf.Operators) || conf.Layers < 4 {
		t.Errorf("operators %q, %d of them layers", conf.Operators, conf.Layers)
	}
	broken := runs[:1:1]
	broken[0].Variant.Queues = slices.Clone(broken[0].Variant.Queues)
	broken[0].Variant.Queues[0].Label = "0 99999"
	if _, err := Join(Configuration{}, broken); err == nil || !strings.Contains(err.Error(), `label "99999" of`) {
		t.Errorf("error %v", err)
	}
}

// The commands on the critical path are marked, and instances stand in their order.
func TestRecordingHasPathAndInstances(t *testing.T) {
	r := runToy(t, "cross-layer", 8)
	conf, err := Join(Configuration{}, []Recorded{record(r)})
	if err != nil {
		t.Fatal(err)
	}
	v := conf.Variants[0]
	marked, took := 0, int64(0)
	for _, q := range v.Queues {
		length, at := columnOf(t, q.Length), int64(0)
		for _, d := range columnOf(t, q.Critical) {
			at += d
			marked++
			took += length[at]
		}
	}
	if want := len(sim.CriticalPath(r.Program, r.Sim)); marked != want {
		t.Errorf("%d commands are marked, want the %d of the critical path", marked, want)
	}
	if d := took - v.EndTicks; d < -int64(marked) || d > int64(marked) {
		t.Errorf("they take %d ticks, want %d but for rounding", took, v.EndTicks)
	}
	var order []string
	for _, l := range columnOf(t, v.Instances.Label) {
		order = append(order, conf.Operators[l])
	}
	var want []string
	for _, segment := range r.Plans[0] {
		for range segment.Iterations {
			for _, i := range segment.Schedule.Order {
				inst := &segment.Schedule.Instances.Instances[i]
				want = append(want, fmt.Sprintf("%s/%d", r.Schedule.Grouping.Groups[inst.Group].Name, inst.Index))
			}
		}
	}
	if !slices.Equal(order, want) {
		t.Errorf("instances %q, want %q", order, want)
	}
}

// What is left of a share is grouped on its own: each command is in a group of the chunk that runs it.
func TestRecordingGroupsARest(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	r := runOn(t, "resnet50", spec, 36, "cross-layer", scheduler.Options{Chunk: 8})
	x := record(r)
	known := len(r.Schedule.Grouping.Groups)
	if len(x.Variant.Groups) <= known || !strings.HasSuffix(x.Variant.Groups[known], " of the rest") {
		t.Fatalf("groups %q, want those of the rest behind %d", x.Variant.Groups, known)
	}
	rest := 0
	for _, q := range x.Variant.Queues {
		labels, groups := columnOf(t, q.Label), columnOf(t, q.Group)
		if len(groups) != q.Commands {
			t.Fatalf("%s: %d groups of %d commands", q.Name, len(groups), q.Commands)
		}
		for i, k := range groups {
			s := r.Schedule
			if k >= int64(known) {
				s, k, rest = r.Plans[0][1].Schedule, k-int64(known), rest+1
			}
			op := slices.IndexFunc(s.Graph.Ops, func(op *model.Op) bool { return op.Name == x.Labels[labels[i]] })
			if op >= 0 && !slices.Contains(s.Grouping.Groups[k].Ops, model.OpID(op)) {
				t.Fatalf("%s: command %d of %s is in group %s", q.Name, i, s.Graph.Ops[op].Name, s.Grouping.Groups[k].Name)
			}
		}
	}
	if rest == 0 {
		t.Error("no command is in a group of the rest")
	}
}

// Latencies of loads in flight have rows that say so.
func TestRecordingNamesLatencies(t *testing.T) {
	spec, err := hardware.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	r := runToyOn(t, spec, "tiled", 8)
	titles := map[string]int{}
	for _, q := range Record(r, 0, harness.Row{}, MostCommands).Variant.Queues {
		titles[q.Title]++
	}
	if titles["latency of DDR loads"] < 2 || titles["latency of L1 loads"] < 2 || titles["other"] > 0 {
		t.Errorf("%v", titles)
	}
}

// Of too many commands neighbours become one: what each unit does in all stays.
func TestRecordingMerges(t *testing.T) {
	r := runToy(t, "tvm", 2)
	row := harness.RowOf(r, harness.Given, "/s")
	whole, short := Record(r, 0, row, math.MaxInt).Variant, Record(r, 0, row, 60).Variant
	if whole.MergedTicks != 0 || short.MergedTicks == 0 {
		t.Errorf("merged over %d and %d ticks", whole.MergedTicks, short.MergedTicks)
	}
	commands := 0
	for k, q := range short.Queues {
		sum := func(column string) (n int64) {
			for _, x := range columnOf(t, column) {
				n += x
			}
			return n
		}
		if got, want := sum(q.Amount), sum(whole.Queues[k].Amount); got != want {
			t.Errorf("%s does %d, want %d", q.Name, got, want)
		}
		if got, want := sum(q.Gap)+sum(q.Length), sum(whole.Queues[k].Gap)+sum(whole.Queues[k].Length); got != want {
			t.Errorf("%s ends at %d, want %d", q.Name, got, want)
		}
		commands += q.Commands
	}
	for k, m := range short.Memories {
		if got, want := m.Buffers, min(60, whole.Memories[k].Buffers); got != want {
			t.Errorf("%s: %d buffers, want %d", m.Title, got, want)
		}
	}
	before := 0
	for _, q := range whole.Queues {
		before += q.Commands
	}
	if commands >= before {
		t.Errorf("%d commands, want fewer than %d", commands, before)
	}
}

// The page counts values that left a memory once, however far they went, beside the spills.
func TestSpillsOfPage(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	spec.L1.SizeBytes, spec.LLB.SizeBytes = 256<<10, 1<<20
	r := runToyOn(t, spec, "cross-layer", 4)
	values := map[int]bool{}
	for _, s := range r.Schedule.Spills {
		values[s.Value] = true
	}
	if len(values) == 0 || len(values) == len(r.Schedule.Spills) {
		t.Fatalf("%d spills of %d values: no value leaves two memories", len(r.Schedule.Spills), len(values))
	}
	html, err := Page([]Shown{{Result: r}})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d values of ", len(values))
	if s := string(html); !strings.Contains(s, want) ||
		!strings.Contains(s, fmt.Sprintf("spilled (%d spills in all", len(r.Schedule.Spills))) {
		t.Errorf("the page has no %q beside %d spills", want, len(r.Schedule.Spills))
	}
}

// Of a divided network, the clusters that run something have a timeline each.
func TestPageOfIdleClusters(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	r := runOn(t, "dlrm", spec, 4, "cross-layer", scheduler.Options{Clusters: scheduler.OverLayer})
	html, err := Page([]Shown{{Result: r}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(html), " for all clusters, which divide by layers") {
		t.Error("the page does not say that all clusters work on each chunk")
	}
	_, data, _ := strings.Cut(string(html), `id="viewer-data">`)
	data, _, _ = strings.Cut(data, "<")
	zipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Configurations []struct{ Variants []struct{ Queues []Queue } }
	}
	if err := json.NewDecoder(zipped).Decode(&shown); err != nil {
		t.Fatal(err)
	}
	list := shown.Configurations[0].Variants
	if len(list) != r.Working().Clusters || len(list) == len(r.Plans) {
		t.Errorf("%d timelines of %d clusters, of which %d work", len(list), len(r.Plans), r.Working().Clusters)
	}
	for i, x := range list {
		if len(x.Queues) == 0 {
			t.Errorf("timeline %d has no queue", i)
		}
	}
}

// The page has the parts that it promises, the same bytes every time, and refuses schedules
// that do not belong together.
func TestPage(t *testing.T) {
	greedy, best := Shown{Result: runToy(t, "tvm", 2)}, Shown{Result: runToy(t, "cross-layer", 8), File: "mine.json"}
	html, err := Page([]Shown{greedy, best})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"toy-fig3 on stcp920, batch 32: schedule tvm beside cross-layer", "Where the gain is",
		"Critical path", "alg2: Algorithm 2 of the paper",
		"Merged in round 1", "largest instance takes", "its launch waited for", "No spills.",
		`<svg class="graph"`, "split in 8"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if again, err := Page([]Shown{greedy, best}); err != nil || !bytes.Equal(html, again) {
		t.Errorf("other bytes the second time (%v)", err)
	}
	if html, err = Page([]Shown{best, best}); err != nil ||
		!strings.Contains(string(html), "schedule mine.json beside mine.json") {
		t.Errorf("two schedules of one variant have no names of their files (%v)", err)
	}
	other := *greedy.Result
	other.Batch = 5
	_, err = Page([]Shown{greedy, {Result: &other, File: "five.json"}})
	var of *OtherError
	if !errors.As(err, &of) ||
		err.Error() != "five.json is of toy-fig3 at batch 5 on stcp920, expected toy-fig3 at batch 32 on stcp920" {
		t.Errorf("error %v", err)
	}
}
