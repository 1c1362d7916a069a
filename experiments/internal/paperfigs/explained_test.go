package paperfigs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/model/schedule"
)

// explained runs an experiment into a folder and reads what it wrote of data. Whatever
// the experiment, it must draw something, say all of each claim, and
// come out byte for byte the same, with another number of workers, after a cell is lost.
func explained(t *testing.T, e harness.Experiment, data any) (dir string, claims []harness.Claim) {
	t.Helper()
	out := t.TempDir()
	if err := e.Run(context.Background(), harness.Options{Out: out, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	compileTables(t, out)
	dir = filepath.Join(out, e.Name)
	first := filesOf(t, dir)
	pictures := 0
	for path, data := range first {
		if filepath.Ext(path) == ".png" {
			pictures++
			if _, err := png.DecodeConfig(bytes.NewReader(data)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if pictures == 0 {
		t.Error("there is no picture")
	}
	cells, err := os.ReadDir(filepath.Join(dir, "cells"))
	if err != nil || len(cells) == 0 {
		t.Fatalf("cells: %v, %v", cells, err)
	}
	if err := os.Remove(filepath.Join(dir, "cells", cells[0].Name())); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background(), harness.Options{Out: out, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	second := filesOf(t, dir)
	if len(first) != len(second) {
		t.Errorf("%d files, then %d", len(first), len(second))
	}
	for path, data := range first {
		if !bytes.Equal(data, second[path]) {
			t.Errorf("%s differs", path)
		}
	}

	answer := struct {
		Claims []harness.Claim `json:"claims"`
		Data   any             `json:"data"`
	}{Data: data}
	if err := json.Unmarshal(first[e.Name+".json"], &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Claims) < 3 {
		t.Errorf("%d claims of the paper, want at least 3", len(answer.Claims))
	}
	for _, c := range answer.Claims {
		if c.Quantity == "" || c.Paper == "" || c.Ours == "" || c.Verdict == "" {
			t.Errorf("claim %+v has an empty part", c)
		}
	}
	return dir, answer.Claims
}

// verdictOf is that of the claim that begins with a text.
func verdictOf(t *testing.T, claims []harness.Claim, quantity string) string {
	t.Helper()
	i := slices.IndexFunc(claims, func(c harness.Claim) bool { return strings.HasPrefix(c.Quantity, quantity) })
	if i < 0 {
		t.Fatalf("no claim begins with %q in %v", quantity, claims)
	}
	return claims[i].Verdict
}

// filesOf reads the files of a folder, but for the times, by their paths in it.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "timing") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFig3(t *testing.T) {
	var data struct {
		Runs []orderedRun
		Rows []harness.Row
	}
	_, claims := explained(t, fig3().experiment(), &data)
	coarse, bfs, dfs := data.Runs[0], data.Runs[1], data.Runs[2]
	if got := stagePattern(dfs); got != "aabaabcaabaabcd" {
		t.Errorf("DFS runs %s, Fig. 7f has aabaabcaabaabcd", got)
	}
	if got := stagePattern(bfs); got != "aaaaaaaabbbbccd" {
		t.Errorf("BFS runs %s, Fig. 7a has aaaaaaaabbbbccd", got)
	}
	if dfs.MovedBytes >= bfs.MovedBytes || dfs.Throughput <= bfs.Throughput || dfs.Throughput <= coarse.Throughput {
		t.Errorf("DFS moves %d bytes at %g images/s, BFS %d at %g, stage by stage %g; the first should be best",
			dfs.MovedBytes, dfs.Throughput, bfs.MovedBytes, bfs.Throughput, coarse.Throughput)
	}
	for _, r := range data.Runs {
		byID := map[int]orderedInst{}
		end := 0.0
		for _, x := range r.Instances {
			byID[x.ID] = x
			if x.StartSeconds != end || x.EndSeconds <= x.StartSeconds {
				t.Errorf("%s: %s runs from %g to %g, the one before ended at %g", r.Order, x.Name,
					x.StartSeconds, x.EndSeconds, end)
			}
			end = x.EndSeconds
			if x.TouchedBytes > r.CapacityBytes {
				t.Errorf("%s: %s touches %d bytes of %d", r.Order, x.Name, x.TouchedBytes, r.CapacityBytes)
			}
			// What is read has run, and each edge of the sub-graphs is either needed or not.
			for _, p := range x.Reads {
				if y, ok := byID[p]; !ok || slices.Contains(x.Redundant, p) || y.EndSeconds > x.StartSeconds {
					t.Errorf("%s: %s reads %d, which has not run or is redundant", r.Order, x.Name, p)
				}
			}
		}
		redundant := 0
		for _, x := range r.Instances {
			redundant += len(x.Redundant)
		}
		if redundant != r.RedundantEdges {
			t.Errorf("%s: %d redundant edges are listed, %d counted", r.Order, redundant, r.RedundantEdges)
		}
	}
	if i := slices.IndexFunc(claims, func(c harness.Claim) bool { return c.Quantity == "Order chosen" }); i < 0 ||
		claims[i].Verdict != harness.NotCounted || !strings.HasPrefix(claims[i].Ours, "DFS: a8 a7 b4 ") {
		t.Errorf("order chosen: %+v", claims)
	}
	for _, q := range []string{"Factors of the stages", "Edges kept", "L1 use"} { // the example was made so
		i := slices.IndexFunc(claims, func(c harness.Claim) bool { return strings.HasPrefix(c.Quantity, q) })
		if i < 0 || claims[i].Verdict != harness.NotCounted ||
			!strings.HasPrefix(strings.ReplaceAll(claims[i].Ours, ".0", ""), claims[i].Paper[:5]) {
			t.Errorf("%s: %+v", q, claims)
		}
	}
}

func TestFig5(t *testing.T) {
	var runs []mergeRun
	_, claims := explained(t, fig5().experiment(), &runs)
	for _, r := range runs {
		for k, st := range r.States {
			// Each state has every operator once.
			seen := make([]bool, len(r.Ops))
			for _, g := range st.Groups {
				for _, i := range g.Ops {
					if seen[i] {
						t.Errorf("%d per cluster, %s: operator %d is in two sub-graphs", r.PerCluster, st.title(), i)
					}
					seen[i] = true
				}
			}
			if slices.Contains(seen, false) {
				t.Errorf("%d per cluster, %s: an operator is missing", r.PerCluster, st.title())
			}
			if k > 0 && len(st.Groups) >= len(r.States[k-1].Groups) {
				t.Errorf("%d per cluster: %d sub-graphs after %d", r.PerCluster, len(st.Groups), len(r.States[k-1].Groups))
			}
		}
		made := 0
		for _, e := range r.Events {
			if e.Accepted {
				made += len(e.Parts) - 1
			}
			if e.Accepted == (e.Reason != "") || !strings.HasPrefix(e.Rule, "rule (i") {
				t.Errorf("%d per cluster: merge of %v: accepted %v, rule %q, reason %q", r.PerCluster, e.Parts,
					e.Accepted, e.Rule, e.Reason)
			}
		}
		if got := len(r.Ops) - made; got != len(r.States[len(r.States)-1].Groups) {
			t.Errorf("%d per cluster: %d merges leave %d sub-graphs, the last state has %d", r.PerCluster, made, got,
				len(r.States[len(r.States)-1].Groups))
		}
	}
	// Where the patterns alone decide, the steps are those of Fig. 5: 5, 3 and 1 sub-graphs.
	var sizes []int
	for _, st := range runs[1].States {
		sizes = append(sizes, len(st.Groups))
	}
	if !slices.Equal(sizes, []int{15, 5, 3, 1}) {
		t.Errorf("sub-graphs are %v, want 15, 5, 3, 1", sizes)
	}
	if v := verdictOf(t, claims, "Sub-graphs in the end, 2 images"); v != harness.NotCounted {
		t.Error(v)
	}
}

func TestReplayRefusesUnknownParts(t *testing.T) {
	for _, e := range []schedule.MergeEvent{
		{Parts: []string{"a", "x"}, Factors: []int64{1, 1}, Accepted: true},
		{Parts: []string{"x", "b"}, Factors: []int64{1, 1}, Accepted: true},
	} {
		if _, err := replay([]string{"a", "b"}, []schedule.MergeEvent{e}); err == nil ||
			!strings.Contains(err.Error(), `"x"`) {
			t.Errorf("parts %v: error %v, want one that names x", e.Parts, err)
		}
	}
	if _, err := replay([]string{"a", "a"}, nil); err == nil {
		t.Error("two operators of one name are taken")
	}
}

func TestFig8(t *testing.T) {
	var runs []joinRun
	_, claims := explained(t, fig8().experiment(), &runs)
	for i, ours := range []string{"7", "0.00 MiB"} {
		if claims[i].Verdict != harness.NotCounted || claims[i].Ours != ours {
			t.Errorf("%+v, expected %s, not counted", claims[i], ours)
		}
	}
	for _, c := range claims[2:] { // so many of so many
		var have, of int
		if n, _ := fmt.Sscanf(c.Ours, "%d of %d", &have, &of); n < 2 || have != of || have == 0 ||
			c.Verdict != harness.NotCounted {
			t.Errorf("%+v", c)
		}
	}
	seen := map[string]bool{}
	for _, r := range runs {
		for _, j := range r.Joins {
			seen[j.Kind] = true
			reads := r.Instances[j.Consumer].Reads
			for _, p := range j.From {
				if !slices.Contains(reads, joinRead{p, j.Tensor}) {
					t.Errorf("%s: %s joins %d's %s, which %s does not read", r.Model, j.Kind, p, j.Tensor,
						r.Instances[j.Consumer].Name)
				}
			}
			moves := j.Kind == string(schedule.Copy) || j.Kind == string(schedule.Redistribute)
			if moves != (j.Bytes > 0) {
				t.Errorf("%s: %s in front of %s moves %d bytes", r.Model, j.Kind, r.Instances[j.Consumer].Name, j.Bytes)
			}
			// Data move because what is and what is wanted differ.
			if j.Kind == string(schedule.Redistribute) && slices.Equal(j.Have, j.Want) {
				t.Errorf("%s: %s in front of %s though bound as wanted", r.Model, j.Kind, r.Instances[j.Consumer].Name)
			}
			if j.Why == "" {
				t.Errorf("%s: %s in front of %s without a reason", r.Model, j.Kind, r.Instances[j.Consumer].Name)
			}
		}
	}
	for _, k := range joinKinds {
		if !seen[string(k)] {
			t.Errorf("no network has a %s", k)
		}
	}
}

func TestFig10(t *testing.T) {
	var data struct {
		Instance unfolded
		TVM      []unfoldedLayer `json:"tvm_kernels"`
	}
	dir, claims := explained(t, fig10().experiment(), &data)
	if i := slices.IndexFunc(claims,
		func(c harness.Claim) bool { return c.Quantity == "TVM's kernels for the stage" }); i < 0 ||
		claims[i].Ours != "13 for 13 convolutions" {
		t.Errorf("TVM's kernels for the stage: %+v", claims)
	}
	for _, q := range []string{"operators", "convolutions", "kernels of an instance", "instances"} {
		// The counts are the paper's own, not only near them.
		i := slices.IndexFunc(claims, func(c harness.Claim) bool { return strings.HasPrefix(c.Quantity, q) })
		if i < 0 || !claims[i].Line || claims[i].Ours != claims[i].Paper {
			t.Errorf("no claim of %s with the same number as the paper in %v", q, claims)
		}
	}
	for _, l := range data.Instance.Layers {
		heavy := 0
		for _, op := range l.Ops {
			if op.Kind == "Conv" {
				heavy++
			}
		}
		if heavy > 1 {
			t.Errorf("layer %s has %d convolutions", l.Name, heavy)
		}
		if heavy == 1 && (l.Commands["matrix"] == 0 || l.Commands["lb.load"] == 0 || l.WeightBytes == 0) {
			t.Errorf("layer %s has commands %v and %d bytes of weights, expected some of each", l.Name,
				l.Commands, l.WeightBytes)
		}
		if l.Level != schedule.L1.String() {
			t.Errorf("layer %s is left in the %s, expected the L1: outputs are stitched there", l.Name, l.Level)
		}
	}
	for _, l := range data.TVM {
		if l.Level != schedule.DDR.String() {
			t.Errorf("TVM's kernel %s leaves its output in the %s", l.Name, l.Level)
		}
	}
	md, err := os.ReadFile(filepath.Join(dir, "fig10.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"for k 1152:", "parallel for core 8 (n 4, h 2, w 1, c 1):",
		"stage2.block1.relu2 = Relu(stage2.block1.bn2)   # in the L1"} {
		if !strings.Contains(string(md), line) {
			t.Errorf("the loop nests lack %q", line)
		}
	}
}

func TestFig13(t *testing.T) {
	var runs []crossRun
	_, claims := explained(t, fig13().experiment(), &runs)
	for _, r := range runs {
		blocks := [3]int{}
		end := map[string]float64{}
		busy := 0.0
		for _, c := range r.Commands {
			blocks[c.Block]++
			// Queues are in order and run one command at a time.
			if c.Start < end[c.Queue] || c.End < c.Start || c.End > r.Seconds {
				t.Errorf("%s: %s of %s runs from %g to %g on %s, the one before ended at %g, the blocks at %g", r.Variant, c.Kind,
					c.Layer, c.Start, c.End, c.Queue, end[c.Queue], r.Seconds)
			}
			end[c.Queue] = c.End
			if c.Kind == "matrix" {
				busy += c.End - c.Start
			}
		}
		if blocks[0] == 0 || blocks[1] == 0 {
			t.Errorf("%s: %v commands of the blocks", r.Variant, blocks)
		}
		if d := busy - r.MatrixBusy; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s: matrix commands take %g s, busy for %g s", r.Variant, busy, r.MatrixBusy)
		}
		if r.LayersAtOnce > r.Seconds || r.UnitsAtOnce > r.LayersAtOnce {
			t.Errorf("%s: two layers for %g s, two units for %g s of %g s", r.Variant, r.LayersAtOnce, r.UnitsAtOnce, r.Seconds)
		}
	}
	// A barrier between layers leaves nothing to run at once.
	if runs[0].LayersAtOnce != 0 || runs[1].LayersAtOnce == 0 {
		t.Errorf("%s runs two layers at once for %g s, across layers for %g", runs[0].Variant, runs[0].LayersAtOnce,
			runs[1].LayersAtOnce)
	}
	if runs[1].Advance >= runs[0].Advance {
		t.Errorf("the blocks add %g s across layers, %g s without", runs[1].Advance, runs[0].Advance)
	}
	if v := verdictOf(t, claims, "Loads of a layer"); v != harness.NotCounted {
		t.Error(v)
	}
}

func TestFig12(t *testing.T) {
	f := fig12()
	var runs []spillRun
	_, claims := explained(t, f.experiment(), &runs)
	if len(runs) != len(f.cases)*len(f.methods) {
		t.Fatalf("%d plans, want %d", len(runs), len(f.cases)*len(f.methods))
	}
	for _, r := range runs {
		if r.MovedBytes < r.SpilledBytes || (r.ToLLB+r.ToDDR == 0) != (r.SpilledBytes == 0) {
			t.Errorf("%s, %s: %d values of %d bytes spill, %d bytes move", r.Model, r.Method, r.ToLLB+r.ToDDR,
				r.SpilledBytes, r.MovedBytes)
		}
	}
	// No rule moves less than the bound. The best plan is of least time: it may move more, from the LLB, where cores would
	// have values later from each other, but then it is faster.
	for i := 0; i < len(runs); i += len(f.methods) {
		best := runs[i+2]
		if best.BoundBytes == nil {
			t.Fatalf("%s, %s: no bound", best.Model, best.Method)
		}
		for _, r := range runs[i : i+2] { // the plan of least time may have results over what they read
			if n := r.MovedBytes + r.AgainBytes; n < *best.BoundBytes {
				t.Errorf("%s, %s: %d bytes move, less than the bound %d", r.Model, r.Method, n, *best.BoundBytes)
			}
		}
		paper := runs[i]
		less := paper.MovedBytes+paper.AgainBytes < best.MovedBytes+best.AgainBytes
		if less && paper.Throughput >= best.Throughput {
			t.Errorf("%s: the paper's rule moves less than the best plan and takes %v times as long", paper.Model,
				best.Throughput/paper.Throughput)
		}
	}
	// Of what is alive where the L1 is full, nothing that stays lives longer than what
	// goes by the paper's rule, and nothing is larger than what goes by the other.
	at := f.fullAt(runs)
	for k, measure := range []func(spillValue) int64{
		func(v spillValue) int64 { return int64(v.End - v.First) },
		func(v spillValue) int64 { return v.Bytes },
	} {
		gone, kept := int64(-1), int64(-1)
		for _, v := range runs[k].Values {
			switch {
			case v.First > at || v.End <= at:
			case v.Spilled:
				gone = max(gone, measure(v))
			case v.Level == schedule.L1.String():
				kept = max(kept, measure(v))
			}
		}
		if gone < 0 || kept > gone {
			t.Errorf("%s: the most of what goes is %d, of what stays %d", runs[k].Method, gone, kept)
		}
	}
	// The paper's rule moves fewer bytes in more networks than it moves more in, as the verdict says.
	fewer, more := 0, 0
	for i := 0; i < len(runs); i += len(f.methods) {
		paper, largest := runs[i].MovedBytes, runs[i+1].MovedBytes
		switch {
		case paper < largest:
			fewer++
		case paper > largest:
			more++
		}
	}
	v := verdictOf(t, claims, "Longest lifetime first moves fewer")
	if (v == harness.Holds) != (fewer > more) || fewer <= more {
		t.Errorf("fewer bytes in %d networks, more in %d: %s", fewer, more, v)
	}
}
