package timeline

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/literature"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/harness/harnesstest"
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
	src, err := harness.OpenNetwork("toy-fig3")
	if err != nil {
		t.Fatal(err)
	}
	v, err := scheduler.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, spec, 32, v, scheduler.Options{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The recording says what the simulation did, to the tick.
func TestRecordingIsTheSimulation(t *testing.T) {
	for _, c := range []struct {
		variant string
		chunk   int64
	}{{"tvm", 2}, {"cross-layer", 8}} {
		t.Run(c.variant, func(t *testing.T) {
			r := runToy(t, c.variant, c.chunk)
			rec := record(r, "images/s").Variant
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
				gap, length, label, kind, amount := columnOf(t, track.Gap), columnOf(t, track.Length), columnOf(t, track.Label), columnOf(t, track.Kind), columnOf(t, track.Amount)
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
						t.Fatalf("%s: command %d has label %d, kind %d, amount %d, want %+v", track.Name, n, label[n], kind[n], amount[n], cmd)
					}
					if gap[n] < 0 || length[n] < 0 || cmd.Bytes > 0 && cmd.MACs+cmd.VectorOps > 0 || cmd.MACs > 0 && cmd.VectorOps > 0 {
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
				level := isa.LB
				if m.Level == "GB" {
					level = isa.GB
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
	runs := []recorded{record(runToy(t, "tvm", 2), "images/s"), record(runToy(t, "cross-layer", 8), "images/s")}
	tl := timeline{hardware: "stcp920", variants: []string{"tvm", "cross-layer"}}
	conf, err := tl.join(literature.Configurations()[0], runs)
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
	if _, err := tl.join(literature.Configurations()[0], broken); err == nil || !strings.Contains(err.Error(), `label "99999" of`) {
		t.Errorf("error %v", err)
	}
}

// The files of the experiment are what the viewer reads, and the same every time.
func TestTimelineReport(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	tl := timeline{hardware: "stcp920", variants: []string{"tvm", "cross-layer"}}
	once := func() *harness.Report {
		runs := []recorded{record(runToy(t, "tvm", 2), "images/s"), record(runToy(t, "cross-layer", 8), "images/s")}
		rep, err := tl.report(literature.Configurations()[:1], spec, runs)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range rep.Files {
			if filepath.Ext(f.Name) == ".tex" {
				harnesstest.LaTeX(t, f.Name, f.Data)
			}
		}
		return rep
	}
	a, b := once(), once()
	for i, f := range a.Files {
		if string(f.Data) != string(b.Files[i].Data) {
			t.Errorf("%s: other bytes the second time", f.Name)
		}
		if f.Name != ViewerFile {
			continue
		}
		var rec recording
		if err := json.Unmarshal(f.Data, &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Schema != 1 || len(rec.Configurations) != 1 || len(rec.Configurations[0].Variants) != 2 || rec.TickPs != 1000 {
			t.Errorf("recording of %d configurations, schema %d", len(rec.Configurations), rec.Schema)
		}
	}
	if len(a.Files) < 3 {
		t.Errorf("%d files, want JSON, Markdown and the recording", len(a.Files))
	}
}
