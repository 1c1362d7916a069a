package explore

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// axes reads "key=a,b key=c".
func axes(text string) []Axis {
	var list []Axis
	for _, word := range strings.Fields(text) {
		key, values, _ := strings.Cut(word, "=")
		list = append(list, Axis{key, strings.Split(values, ",")})
	}
	return list
}

func explorationPlan(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := Grid{Axes: axes(text)}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each row is what the scheduler says of that point alone.
func TestExploreIsTheScheduler(t *testing.T) {
	p := explorationPlan(t,
		"model=toy-fig5 hardware.llb_bytes=*0.5,8MiB batch=4,8 variant=tvm,cross-layer order=bfs,search")
	list, err := p.Explore(context.Background(), ExploreOptions{})
	if err != nil || len(list) != 16 {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	src := harness.OpenNetwork("toy-fig5")
	n := 0
	for _, llb := range []string{"4MiB", "8MiB"} {
		d, err := hardware.Describe("stcp920")
		if err != nil {
			t.Fatal(err)
		}
		if d, err = d.With("gb.size", llb); err != nil {
			t.Fatal(err)
		}
		spec, err := d.Spec()
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []string{"4", "8"} {
			for _, name := range []string{"tvm", "cross-layer"} {
				for _, order := range []string{"bfs", "search"} {
					e := list[n]
					n++
					// Model, hardware and type first: the defaults.
					if want := []string{"stcp920", "f16", "toy-fig5", llb, batch, name, order}; !slices.Equal(e.Values, want) {
						t.Fatalf("row %d is %q, want %q", n, e.Values, want)
					}
					v, err := recipes.Lookup(name)
					if err != nil {
						t.Fatal(err)
					}
					v, err = v.Replace(scheduler.Options{}, scheduler.Pick{Stage: "order", Strategy: order})
					if err != nil {
						t.Fatal(err)
					}
					size := int64(batch[0] - '0')
					r, err := scheduler.Run(context.Background(), src, spec, size, v, scheduler.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if e.Row == nil || e.Row.ThroughputPerSecond != harness.Round(r.ThroughputPerSecond()) || e.Row.Batch != size {
						t.Errorf("row %q: %+v, want %g per second", e.Values, e.Row, r.ThroughputPerSecond())
					}
				}
			}
		}
	}
}

// Files do not depend on the number of workers.
func TestExploreRepeats(t *testing.T) {
	var first [][]byte
	for _, workers := range []int{1, 4} {
		p := explorationPlan(t, "model=toy-fig3,toy-fig5 batch=4,8,16 variant=tvm,ordering,cross-layer")
		list, err := p.Explore(context.Background(), ExploreOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.Figure(list)
		if err != nil {
			t.Fatal(err)
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		var lines []byte
		for _, e := range list {
			line, err := json.Marshal(p.JSON(e))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(append(lines, line...), '\n')
		}
		files := [][]byte{p.CSV(list), lines, svg}
		if first == nil {
			first = files
		}
		for i := range files {
			if !bytes.Equal(files[i], first[i]) {
				t.Errorf("file %d differs with %d workers", i, workers)
			}
		}
		rows, err := csv.NewReader(bytes.NewReader(files[0])).ReadAll()
		if err != nil || len(rows) != 1+p.Points() {
			t.Errorf("%d rows of CSV, %v", len(rows), err)
		}
		if n := bytes.Count(lines, []byte("\n")); n != p.Points() {
			t.Errorf("%d lines of JSON", n)
		}
		for line := range bytes.Lines(lines) {
			var row map[string]any
			if err := json.Unmarshal(line, &row); err != nil || row["throughput_per_s"] == nil {
				t.Errorf("%v: %s", err, line)
			}
		}
	}
}

// A point without a schedule is a row that says why.
func TestExplorePointsThatDoNotFit(t *testing.T) {
	p := explorationPlan(t, "model=toy-fig5 hardware.l1_bytes=64B,1MiB hardware.lb.weights=64B chunk=1,3 batch=8")
	list, err := p.Explore(context.Background(), ExploreOptions{})
	if err != nil || len(list) != 4 {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	for i, want := range []string{"not even one tile fits", "chunk is 3, expected 1 to 2", "", "chunk is 3"} {
		e := list[i]
		if (e.Row == nil) != (want != "") || !strings.Contains(e.Err, want) || want == "" && e.Err != "" {
			t.Errorf("row %d: %+v, want %q", i, e, want)
		}
	}
	if _, err := p.Figure(list); err != nil {
		t.Error(err)
	}
	if _, err := p.Figure(list[:1]); err == nil {
		t.Error("a figure of nothing")
	}
}

func TestGridErrors(t *testing.T) {
	for _, c := range []struct{ axes, want string }{
		{"batch=1", "model: is missing"},
		{"model=resnet5O", `unknown model "resnet5O" (did you mean resnet50?)`},
		{"model=toy-fig5 bacth=4", "bacth: no setting (did you mean batch?)"},
		{"model=toy-fig5 batch=4,x", "batch=x: expected a whole number of at least 1"},
		{"model=toy-fig5 batch=0", "batch=0: expected a whole number of at least 1"},
		{"model=toy-fig5 chunk=-1", "chunk=-1: expected a whole number of at least 0"},
		{"model=toy-fig5 batch=4 batch=8", "batch: is set twice"},
		{"model=toy-fig5 batch=4,4", "batch=4: stands there twice"},
		{"model=toy-fig5 batch=4,,8", "batch: has an empty value"},
		{"model=toy-fig5 dtype=f17", "dtype=f17: "},
		{"model=toy-fig5 variant=cros-layer", `variant=cros-layer: unknown variant "cros-layer" (did you mean cross-layer?)`},
		{"model=toy-fig5 hardware=stcp92", `unknown accelerator "stcp92" (did you mean stcp920`},
		{"model=toy-fig5 hardware.gb.sise=1MiB",
			`hardware.gb.sise: unknown field "gb.sise" of preset stcp920 (did you mean gb.size?)`},
		{"model=toy-fig5 hardware.gb.size=4Mib", `hardware.gb.size=4Mib: gb.size: found "4Mib", expected a size in B, KiB`},
		{"model=toy-fig5 hardware.gb.size=4MiB hardware.llb_bytes=8MiB",
			"hardware.llb_bytes: is the field gb.size, which hardware.gb.size sets too"},
		{"model=toy-fig5 order=serach", `order is "serach" (did you mean search?)`},
		{"model=toy-fig5 order=ilp", "order ilp needs an integer-programming solver"},
		{"model=toy-fig5 group=layers split=alg1", "split is alg1, which does not go with group layers"},
	} {
		_, err := Grid{Axes: axes(c.axes)}.Plan()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.axes, err, c.want)
		}
	}
	var many []string
	for i := range 400 {
		many = append(many, strings.Repeat("1", i+1))
	}
	_, err := Grid{Axes: []Axis{{"model", []string{"toy-fig5"}}, {"batch", many}, {"chunk", many}}}.Plan()
	if err == nil || !strings.Contains(err.Error(), "more than 100000 points") {
		t.Errorf("160000 points: %v", err)
	}
}

// An interrupted grid gives what it has, in order.
func TestExploreInterrupted(t *testing.T) {
	p := explorationPlan(t, "model=toy-fig5 batch=1,2,3,4,5,6,7,8 variant=tvm,cross-layer")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	list, err := p.Explore(ctx, ExploreOptions{Workers: 1, Progress: func(q harness.Progress) {
		if q.Done == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(list) > 5 || len(list) == p.Points() {
		t.Fatalf("%d rows, %v", len(list), err)
	}
	for i, e := range list {
		if e.Row == nil || !slices.Equal(e.Values, p.points[i].values) {
			t.Errorf("row %d is %+v", i, e)
		}
	}
}

// Progress is consistent whatever the workers do.
func TestProgress(t *testing.T) {
	p := explorationPlan(t, "model=toy-fig5 batch=1,2,3,4,5,6,7,8 variant=tvm,cross-layer")
	var mu sync.Mutex
	var all []harness.Progress
	if _, err := p.Explore(context.Background(), ExploreOptions{Workers: 3, Progress: func(q harness.Progress) {
		mu.Lock()
		all = append(all, q)
		mu.Unlock()
	}}); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2*p.Points() {
		t.Fatalf("%d reports of %d starts and ends", len(all), 2*p.Points())
	}
	finished := map[string]bool{}
	for i, q := range all {
		if q.Total != p.Points() || len(q.Running) > 3 || q.Done+len(q.Running) > q.Total {
			t.Errorf("report %d: %+v", i, q)
		}
		if i > 0 && q.Done < all[i-1].Done {
			t.Errorf("report %d goes from %d done to %d", i, all[i-1].Done, q.Done)
		}
		if (q.LeftSeconds < 0) != (q.Done < 3) {
			t.Errorf("report %d: %d done, %g s left", i, q.Done, q.LeftSeconds)
		}
		if q.Finished != "" {
			if finished[q.Finished] || slices.Contains(q.Running, q.Finished) {
				t.Errorf("report %d: %s finishes again or still runs", i, q.Finished)
			}
			finished[q.Finished] = true
		}
	}
	if last := all[len(all)-1]; last.Done != p.Points() || len(last.Running) != 0 || last.LeftSeconds != 0 {
		t.Errorf("the last report is %+v", last)
	}
}

// What limits is what a change of it shows: more of it helps, more of the rest does
// not help as much.
func TestLimit(t *testing.T) {
	limit := func(text string) (string, float64, float64) {
		p := explorationPlan(t, text)
		list, err := p.Explore(context.Background(), ExploreOptions{})
		if err != nil || list[0].Row == nil {
			t.Fatalf("%s: %v, %+v", text, err, list)
		}
		e := list[0]
		return e.LimitedBy, e.LimitShare, e.Row.ThroughputPerSecond
	}
	name, share, base := limit("model=resnet50 batch=8 chunk=2 variant=tvm")
	if name != "DDR bandwidth" || share < 0.5 || share > 1 {
		t.Fatalf("layer by layer, resnet50 is limited by %s, %g", name, share)
	}
	_, _, faster := limit("model=resnet50 batch=8 chunk=2 variant=tvm hardware.ddr.bandwidth=*4")
	_, _, others := limit(
		"model=resnet50 batch=8 chunk=2 variant=tvm hardware.gb.bandwidth=*4 hardware.core_link.bandwidth=*4 hardware.lb.bandwidth=*4")
	if faster < 1.5*base || others > 1.1*base {
		t.Errorf("%g per second, %g with four times the DDR's bandwidth, %g with four times the others'",
			base, faster, others)
	}
	// With nearly free moves and launches the matrix unit is left, or dependencies.
	name, share,
		_ = limit(
		"model=resnet50 batch=32 chunk=8 hardware.ddr.bandwidth=*100 hardware.gb.bandwidth=*100 hardware.core_link.bandwidth=*100 hardware.launch=*0.01")
	if name != "matrix unit" && name != "dependencies" || share > 1 {
		t.Errorf("with moves for nothing, resnet50 is limited by %s, %g", name, share)
	}
}

// A greedy variant that is slower with more cores is named, with the worst pair; machines that differ in other things,
// and networks, are not compared.
// All bandwidths and sizes can be compared, and machines that differ in these alone are otherwise equal.
func TestAmounts(t *testing.T) {
	p := explorationPlan(t, "model=toy-fig5 hardware.core_link.bandwidth=64GB/s,256GB/s hardware.ddr.size=16GiB,32GiB")
	have, rest := amounts(p.points[0].spec)
	wider, same := amounts(p.points[2].spec)
	if !reflect.DeepEqual(rest, same) || slices.Compare(have, wider) >= 0 || len(have) != len(wider) {
		t.Errorf("%v and %v with a faster link, the rest %v and %v", have, wider, rest, same)
	}
	if _, other := amounts(p.points[1].spec); reflect.DeepEqual(rest, other) {
		t.Error("another DDR is not told apart")
	}
}

func TestNotMonotone(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"model=squeezenet batch=4 variant=cross-layer hardware.cores=8,4,16",
			"cross-layer is not monotone: with hardware.cores=16 in place of 4 it takes "},
		{"model=squeezenet batch=4 variant=cross-layer hardware.cores=2,4", ""},
		{"model=squeezenet,toy-fig5 variant=cross-layer,tvm", ""},
		{"model=squeezenet batch=4 variant=cross-layer hardware.clock=*1,*0.5", ""},
	} {
		p := explorationPlan(t, c.text)
		list, err := p.Explore(t.Context(), ExploreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.NotMonotone(list); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, expected %q", c.text, got, c.want)
		}
	}
}
