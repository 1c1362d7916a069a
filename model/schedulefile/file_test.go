package schedulefile_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

var edits = flag.Int("edits", 100, "random edits of each file in TestRandomEdits")

var update = flag.Bool("update", false, "write the golden file anew")

const golden = "testdata/toy-fig5.json"

func machine(t testing.TB) *hardware.Spec {
	t.Helper()
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// toy is the schedule of a small network, with two sub-graphs, as text.
func toy(t testing.TB) []byte {
	t.Helper()
	src, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("ordering")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, machine(t), 27, v,
		scheduler.Options{Chunk: 5, Uneven: schedule.UnevenNone})
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.File(schedulefile.Origin{Model: "toy-fig5"}).Write()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tiny is the schedule of two products and what lies between, as text.
func tiny(t testing.TB) []byte {
	t.Helper()
	src := network.Network{Name: "tiny", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("tiny")
		x := b.Input("x", model.F16, batch, 16)
		x = b.Op("Relu", "relu", model.Attr{}, b.Op("MatMul", "first", model.Attr{}, x, b.Param("w1", model.F16, 16, 32)))
		x = b.Op("Softmax", "softmax", model.Attr{Axis: 1},
			b.Op("MatMul", "second", model.Attr{}, x, b.Param("w2", model.F16, 32, 8)))
		b.Output(x)
		return b.Build()
	}}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, machine(t), 4, v, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.File(schedulefile.Origin{}).Write()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The format of version 1 stays as it is: files that were written once can be read.
func TestGolden(t *testing.T) {
	data := toy(t)
	if *update {
		if err := os.WriteFile(golden, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Errorf("%s differs; if the format has changed, so must the version; else go test -update", golden)
	}
	f, err := schedulefile.Read(golden, want)
	if err != nil {
		t.Fatal(err)
	}
	if bad := schedulefile.Check(t.Context(), f, machine(t)); len(bad) > 0 {
		t.Errorf("violations %v", bad)
	}
	again, err := f.Write()
	if err != nil || !bytes.Equal(again, want) {
		t.Errorf("written again, the file is another one: %v", err)
	}
	for line := range strings.Lines(string(want)) {
		if len(line) > 400 {
			t.Errorf("a line of %d characters: %s", len(line), line[:80])
		}
	}
}

// text is a file of which each field stands somewhere.
func text(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Bad input gives one line that names file, field, what was found and what was
// expected.
func TestReadErrors(t *testing.T) {
	good := text(t)
	for _, c := range []struct{ name, old, new, want string }{
		{"not JSON", "{", "<",
			"a.json: file: found invalid character '<' looking for beginning of value at byte 0, expected JSON"},
		{"cut", good[len(good)/2:], "", "a.json: "},
		{"more", "\n}\n", "\n}{}\n", "a.json: file: found more after the end of the object"},
		{"kind", `"kind": "dsasched-schedule"`, `"kind": "schedule"`,
			`a.json: kind: found "schedule", expected "dsasched-schedule"`},
		{"version", `"version": 1`, `"version": 2`, `a.json: version: found 2, expected 1, which this program reads`},
		{"version text", `"version": 1`, `"version": "1"`, `a.json: version: found "1", expected a whole number`},
		{"no version", `"version": 1,`, ``, `a.json: version: found nothing, expected the field`},
		{"unknown field", `"batch": 27`, `"btach": 27`,
			`a.json: btach: found an unknown field, expected one of kind, version`},
		{"strange field", `"batch": 27`, `"b\u001b a": 27`, `a.json: "b\x1b a": found an unknown field`},
		{"twice", `"batch": 27,`, `"batch": 27, "batch": 27,`,
			`a.json: batch: found the field a second time, expected it once`},
		{"null", `"batch": 27`, `"batch": null`, `a.json: batch: found null, expected a whole number`},
		{"fraction", `"batch": 27`, `"batch": 2.5`, `a.json: batch: found 2.5, expected a whole number`},
		{"large", `"batch": 27`, `"batch": 99999999999999999999`,
			`a.json: batch: found 99999999999999999999, expected a whole number`},
		{"zero", `"batch": 27`, `"batch": 0`, `a.json: batch: found 0, expected 1 to 1048576`},
		{"level", `"level":"lb"`, `"level":"l1"`, `a.json: hardware.level: found "l1", expected "lb" or "gb"`},
		{"generator", `"keep_weights":true`, `"keep_weights":1`,
			`a.json: generator.keep_weights: found 1, expected true or false`},
		{"quarters", `"keep_weights":true`, `"keep_weights":true,"keep_quarters":5`,
			`a.json: generator.keep_quarters: found 5, expected 1 to 4, or none`},
		{"pieces", `"keep_weights":true`, `"keep_weights":true,"pieces":65`,
			`a.json: generator.pieces: found 65, expected 1 to 64, or none`},
		{"tiles of weights", `"keep_weights":true`, `"keep_weights":true,"weight_tiles":65`,
			`a.json: generator.weight_tiles: found 65, expected 1 to 64, or none`},
		{"tiles of a load", `"keep_weights":true`, `"keep_weights":true,"load_tiles":65`,
			`a.json: generator.load_tiles: found 65, expected 1 to 64, or none`},
		{"outputs", `"outputs": "lb"`, `"outputs": "here"`,
			`a.json: schedules[0].outputs: found "here", expected "lb", "gb" or "ddr"`},
		{"room for weights", `"outputs": "lb"`, `"outputs": "lb", "weight_room": "all"`,
			`a.json: schedules[0].weight_room: found "all", expected "pass", "twelfth" or none, alike in `},
		{"shape", `"shape":[5,`, `"shape":[-5,`, `a.json: schedules[0].graph.tensors[0].shape: found [-5 `},
		{"dtype", `"dtype":"f16"`, `"dtype":"f17"`,
			`a.json: schedules[0].graph.tensors[0].dtype: found "f17", expected an element type`},
		{"role", `"role":"input"`, `"role":"output"`,
			`a.json: schedules[0].graph.tensors[0].role: found "output", expected activation, input or constant`},
		{"id", `{"id":1,`, `{"id":7,`, `a.json: schedules[0].graph.tensors[1].id: found 7, expected 1, its position`},
		{"operator", `"kind":"Conv"`, `"kind":"Convolve"`, `a.json: schedules[0].graph.operators[0].kind: found "Convolve"`},
		{"reads nothing", `"kind":"Conv","inputs":[0,`, `"kind":"Conv","inputs":[999,`,
			`a.json: schedules[0].graph.operators[0].inputs[0]: found 999, expected a tensor, 0 to `},
		{"attributes", `"kind":"Relu"`, `"kind":"ArgMax","attributes":{"axis":9}`,
			`a.json: schedules[0].graph.operators: found graph "toy-fig5": operator "conv.relu1" (ArgMax): positions along axes [], expected one axis, expected a sound network`},
		{"pair", `"order": [[`, `"order": [[0,`, `a.json: schedules[0].order[0]: found a longer list, expected a list of 2`},
		{"list", `"layers":[[`, `"layers":{"a":[`, `a.json: schedules[0].groups[0].layers: found an object, expected a list`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatalf("the file has no %q", c.old)
			}
			_, err := schedulefile.Read("a.json", []byte(bad))
			var in *schedulefile.InputError
			if !errors.As(err, &in) || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := schedulefile.Load("testdata/nosuch.json"); err == nil ||
		err.Error() != "testdata/nosuch.json: no such file or directory" {
		t.Errorf("error %v", err)
	}
}

// Each rule, broken by itself, is named.
func TestViolations(t *testing.T) {
	spec := machine(t)
	for _, c := range []struct {
		name   string
		change func(f *schedulefile.File, p *schedulefile.Plan)
		want   []string
	}{
		{"cluster", func(f *schedulefile.File, _ *schedulefile.Plan) { f.Clusters = f.Clusters[:3] },
			[]string{`clusters: 3 of them, "stcp920" has 4`}},
		{"batch", func(f *schedulefile.File, _ *schedulefile.Plan) { f.Batch = 26 },
			[]string{"clusters: they work on 27 batch elements, the batch is 26"}},
		{"segment", func(f *schedulefile.File, _ *schedulefile.Plan) {
			f.Clusters[0][0].Schedule = 9
			f.Clusters[1][0].Iterations = 0
		},
			[]string{"clusters[0][0].schedule: is 9, expected 0 to 2",
				"clusters[1][0].iterations: is 0, expected 1 to 1048576"}},
		{"idle schedule", func(f *schedulefile.File, _ *schedulefile.Plan) {
			for k := range f.Clusters {
				f.Clusters[k] = []schedulefile.Segment{{Schedule: 0, Iterations: 1}}
			}
			f.Batch = 20
		}, []string{"schedules[1]: no cluster runs it"}},
		{"chunk", func(f *schedulefile.File, p *schedulefile.Plan) { p.Batch = 3; f.Batch = 15 },
			[]string{"schedules[0].batch: is 3, which divides the first extent of no network input"}},
		{"empty group", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Groups[0].Ops = nil },
			[]string{"has no operator", "is in none", "comes later", "is no operator of group"}},
		{"operator twice", func(_ *schedulefile.File, p *schedulefile.Plan) {
			p.Groups[1].Ops = append(p.Groups[1].Ops, p.Groups[0].Ops[0])
		},
			[]string{"is in groups[0].operators already"}},
		{"operator of nowhere", func(_ *schedulefile.File,
			p *schedulefile.Plan) {
			p.Groups[1].Ops = append(p.Groups[1].Ops, -1, 999)
		},
			[]string{"-1 is no operator, expected 0 to", "999 is no operator"}},
		{"groups backwards", func(_ *schedulefile.File, p *schedulefile.Plan) {
			p.Groups[0], p.Groups[1] = p.Groups[1],
				p.Groups[0]
		}, []string{"which comes later"}},
		{"heavy layer", func(_ *schedulefile.File, p *schedulefile.Plan) {
			l := p.Groups[0].Layers
			p.Groups[0].Layers = append([][]int{append(append([]int{}, l[0]...), l[1]...)}, l[2:]...)
		}, []string{"matrix operators and reductions, expected at most one,"}},
		{"work in front of a product", func(f *schedulefile.File, p *schedulefile.Plan) {
			l := p.Groups[0].Layers // the last operator of a layer goes to the next one
			n := len(l[0]) - 1
			l[0], l[1] = l[0][:n:n], append([]int{l[0][n]}, l[1]...)
		}, []string{"makes what the layer's product reads, expected it in a layer in front"}},
		{"layer lost", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Groups[0].Layers = p.Groups[0].Layers[1:] },
			[]string{"groups[0].layers: operator", "is in none"}},
		{"layer empty", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Groups[0].Layers[0] = []int{} },
			[]string{"layers[0]: has no operator"}},
		{"layer cores of no layer", func(_ *schedulefile.File,
			p *schedulefile.Plan) {
			p.Groups[0].LayerCores = make([][]int64, 99)
		}, []string{"groups[0].layer_cores: has 99 entries"}},
		{"layer cores too many", func(_ *schedulefile.File, p *schedulefile.Plan) {
			p.Groups[0].LayerCores = [][]int64{{1 << 40, 1 << 40}}
		}, []string{"groups[0].layer_cores[0]: is [1099511627776 1099511627776], expected "}},
		{"layer cores of another rank", func(_ *schedulefile.File, p *schedulefile.Plan) {
			p.Groups[0].LayerCores = [][]int64{{1, 1, 1, 1, 1, 1, 1}}
		}, []string{"groups[0].layer_cores[0]: is [1 1 1 1 1 1 1], expected "}},
		{"factor zero", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Groups[0].Factor = 0 },
			[]string{"groups[0].factor: is 0, expected 1 to"}},
		{"factor huge", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Groups[0].Factor = 1 << 60 },
			[]string{"groups[0].factor: is 1152921504606846976"}},
		{"factor odd", func(_ *schedulefile.File, p *schedulefile.Plan) {
			d := 0
			p.Groups[0].Factor, p.Groups[0].Dim = 4,
				&d
		}, []string{"is 4, but extent 5 of dimension 0 of output", "makes only 3 pieces"}},
		{"dim", func(_ *schedulefile.File, p *schedulefile.Plan) { d := 7; p.Groups[0].Factor, p.Groups[0].Dim = 5, &d },
			[]string{"groups[0].dim: is 7, output"}},
		{"no dim", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Groups[0].Factor, p.Groups[0].Dim = 5, nil },
			[]string{"groups[0].dim: is missing, with a factor of 5"}},
		{"instance twice", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Instances[1] = p.Instances[0] },
			[]string{"instances[1]: instance g0/0 a second time", "is missing"}},
		{"instance of nowhere", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Instances[0].Index = -1 },
			[]string{"there is no instance -1 of group 0", "instance g0/0 is missing"}},
		{"cores", func(_ *schedulefile.File, p *schedulefile.Plan) {
			p.Instances[0].Cores = []int64{1 << 40, 1 << 40, 1, 1}
		}, []string{"instances[0].cores: g0/0: cores"}},
		{"rank", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Instances[0].Cores = []int64{1} },
			[]string{"binding [1] for 4 dimensions"}},
		{"scope", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Instances[0].Scope = "L1" },
			[]string{`instances[0].scope: is "L1", expected lb, gb or ddr`}},
		{"order short", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Order = p.Order[:len(p.Order)-1] },
			[]string{"does not run"}},
		{"order backwards", func(_ *schedulefile.File, p *schedulefile.Plan) {
			for i, j := 0, len(p.Order)-1; i < j; i, j = i+1, j-1 {
				p.Order[i], p.Order[j] = p.Order[j], p.Order[i]
			}
		}, []string{"runs before"}},
		{"order of nowhere", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Order[0] = [2]int{99, 0} },
			[]string{"order[0]: there is no instance 0 of group 99"}},
		{"value lost", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Memory.Values = p.Memory.Values[1:] },
			[]string{"memory.values: ", "has no place"}},
		{"value twice", func(_ *schedulefile.File, p *schedulefile.Plan) {
			p.Memory.Values = append(p.Memory.Values, p.Memory.Values[0])
		}, []string{"has a place in memory.values[0] already"}},
		{"value of nowhere", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Memory.Values[0].Tensor = 0 },
			[]string{"keeps no tensor 0 from layer to layer"}},
		{"level", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Memory.Values[0].Level = "moon" },
			[]string{`memory.values[0].level: is "moon"`}},
		{"address", func(_ *schedulefile.File, p *schedulefile.Plan) { a := int64(3); p.Memory.Values[0].Address = &a },
			[]string{"is 3, expected a multiple of 64"}},
		{"address lost", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Memory.Values[0].Address = nil },
			[]string{"memory.values[0].address: is missing"}},
		{"address huge", func(_ *schedulefile.File, p *schedulefile.Plan) {
			a := int64(1<<63 - 64)
			p.Memory.Values[0].Address = &a
		}, []string{"leaves the 1048576 bytes of the L1"}},
		{"output in L1", func(_ *schedulefile.File, p *schedulefile.Plan) {
			a := int64(0)
			v := &p.Memory.Values[len(p.Memory.Values)-1]
			v.Level, v.Address = "lb", &a
		}, []string{"network output", "expected the DDR"}},
		{"reserve", func(_ *schedulefile.File, p *schedulefile.Plan) {
			a := int64(8<<20 - 64)
			p.Memory.Values[0].Level, p.Memory.Values[0].Address = "gb", &a
			p.Memory.Stages = append(p.Memory.Stages, schedulefile.Stage{Tiles: 1, Address: 900 << 10})
		}, []string{"leaves the 7864320 bytes of the LLB that values may take"}},
		{"stage lost", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Memory.Stages = p.Memory.Stages[1:] },
			[]string{"memory.stages: layer", "pass through the L1"}},
		{"tiles", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Memory.Stages[0].Tiles = 1 << 50 },
			[]string{"memory.stages[0].tiles: is 1125899906842624, expected 1 to"}},
		{"stage of nowhere", func(_ *schedulefile.File, p *schedulefile.Plan) { p.Memory.Stages[0].Layer = 99 },
			[]string{"runs no layer 99"}},
		{"spill", func(_ *schedulefile.File, p *schedulefile.Plan) {
			p.Memory.Spills = []schedulefile.Spill{{Tensor: p.Memory.Values[0].Tensor, From: "lb", To: "attic"}}
		}, []string{`memory.spills[0]: from "lb" to "attic"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := schedulefile.Read(golden, []byte(text(t)))
			if err != nil {
				t.Fatal(err)
			}
			c.change(f, &f.Schedules[0])
			bad := schedulefile.Check(t.Context(), f, spec)
			var all []string
			for _, v := range bad {
				all = append(all, v.String())
			}
			list := strings.Join(all, "\n")
			for _, w := range c.want {
				if !strings.Contains(list, w) {
					t.Errorf("no violation %q in\n%s", w, list)
				}
			}
		})
	}
}

// All pairs that overlap are named, not only the first.
func TestEveryOverlapIsNamed(t *testing.T) {
	f, err := schedulefile.Read(golden, []byte(text(t)))
	if err != nil {
		t.Fatal(err)
	}
	zero := int64(0)
	for i := range f.Schedules[0].Memory.Values {
		if v := &f.Schedules[0].Memory.Values[i]; v.Level == "lb" {
			v.Address = &zero
		}
	}
	// By brute force, from the schedule that is right.
	right, err := schedulefile.Read(golden, []byte(text(t)))
	if err != nil {
		t.Fatal(err)
	}
	s, bad := right.Build(t.Context(), 0, machine(t), 0)
	if bad != nil {
		t.Fatal(bad)
	}
	for i := range s.Values {
		if v := &s.Values[i]; v.Level == schedule.L1 {
			v.Address = 0
		}
	}
	want := 0
	for i := range s.Values {
		for j := range i {
			a, b := &s.Values[i], &s.Values[j]
			if s.Replaces(i, j) || s.Replaces(j, i) { // which it may
				continue
			}
			if a.Instance >= 0 && b.Instance >= 0 && a.Level == schedule.L1 && b.Level == schedule.L1 &&
				a.Def <= b.Last && b.Def <= a.Last {
				want++
			}
		}
	}
	got := 0
	_, bad = f.Build(t.Context(), 0, machine(t), 0)
	for _, v := range bad {
		if strings.Contains(v.What, "overlaps") && !strings.Contains(v.What, "the stage of") {
			got++
		}
	}
	if got != want || want == 0 {
		t.Errorf("%d overlaps of values are named, expected %d", got, want)
	}
}

func TestFingerprint(t *testing.T) {
	a, b := *machine(t), *machine(t)
	b.Description = "other words"
	if schedulefile.Fingerprint(&a) != schedulefile.Fingerprint(&b) {
		t.Error("prose changes the fingerprint")
	}
	b.LaunchSeconds *= 2
	if schedulefile.Fingerprint(&a) == schedulefile.Fingerprint(&b) {
		t.Error("another machine has the same fingerprint")
	}
}

// Whatever is read either breaks a rule that is named or can be simulated.
func FuzzRead(f *testing.F) {
	good := string(tiny(f))
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"axis":1`, `"axis":9`, 1)))
	f.Add([]byte(strings.Replace(good, `"level":"lb","address":0`, `"level":"gb","address":0`, 1)))
	f.Add([]byte(strings.Replace(good, `"factor":1`, `"factor":2,"dim":0`, 1)))
	f.Add([]byte(`{"kind":"dsasched-schedule","version":1}`))
	spec := machine(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 20_000 {
			return
		}
		file, err := schedulefile.Read("a.json", data)
		if err != nil {
			var in *schedulefile.InputError
			if !errors.As(err, &in) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		first, err := file.Write()
		if err != nil {
			t.Fatal(err)
		}
		again, err := schedulefile.Read("a.json", first)
		if err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		second, err := again.Write()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("written again, the file is another one: %v", err)
		}
		if len(schedulefile.Check(t.Context(), file, spec)) > 0 || file.Hardware.Level != "lb" || file.Batch > 8 {
			return
		}
		if _, err := scheduler.Restore(context.Background(), file, spec); err != nil &&
			strings.Contains(err.Error(), "internal error") {
			t.Fatal(err)
		}
	})
}

// Numbers changed at random: a schedule that passes the check can be simulated, and the
// simulator, which knows nothing of the check, finds no two buffers in one place.
func TestRandomEdits(t *testing.T) {
	spec := machine(t)
	number := regexp.MustCompile(`[\[:, ]-?\d+[,\]}]`)
	rng := rand.New(rand.NewPCG(7, 8))
	passed, refused := 0, 0
	for _, good := range [][]byte{tiny(t), []byte(text(t))} {
		places := number.FindAllIndex(good, -1)
		for range *edits {
			bad := bytes.Clone(good)
			for range 1 + rng.IntN(2) {
				p := places[rng.IntN(len(places))]
				old, err := strconv.Atoi(string(good[p[0]+1 : p[1]-1]))
				if err != nil {
					t.Fatal(err)
				}
				choices := []int{old + 1, old - 1, 0, 1, 2, old * 2, old / 2, old + 64, old - 64, rng.IntN(1 << 20), -old, 1 << 50}
				text := strconv.Itoa(choices[rng.IntN(len(choices))])
				if width := p[1] - p[0] - 2; len(text) > width {
					// The later places move: only this one is changed.
					bad = append(append(append([]byte{}, good[:p[0]+1]...), text...), good[p[1]-1:]...)
					break
				} else {
					copy(bad[p[0]+1:p[1]-1], strings.Repeat(" ", width-len(text))+text)
				}
			}
			f, err := schedulefile.Read("a.json", bad)
			if err != nil {
				refused++
				continue
			}
			if len(schedulefile.Check(t.Context(), f, spec)) > 0 {
				refused++
				continue
			}
			passed++
			if _, err := scheduler.Restore(context.Background(), f, spec); err != nil &&
				strings.Contains(err.Error(), "internal error") {
				t.Fatalf("%v\n%s", err, bad)
			}
		}
	}
	if passed == 0 || refused == 0 {
		t.Errorf("%d edits pass, %d are refused: the test says nothing", passed, refused)
	}
	t.Logf("%d edits pass, %d are refused", passed, refused)
}

// However much is wrong, the answer is short, and entries beyond the instances are not looked at.
func TestManyViolations(t *testing.T) {
	f, err := schedulefile.Read("x", toy(t))
	if err != nil {
		t.Fatal(err)
	}
	order := f.Schedules[0].Order
	f.Schedules[0].Order = slices.Repeat(order[:1], 100_000)
	bad := schedulefile.Check(t.Context(), f, machine(t))
	if len(bad) != 1 || !strings.Contains(bad[0].What, "100000 entries") {
		t.Errorf("an order of 100000: %d violations, first %v", len(bad), bad[0])
	}
	f.Schedules[0].Order = order
	for i := range f.Schedules[0].Groups {
		f.Schedules[0].Groups[i].Ops = nil
		for k := range 1000 {
			f.Schedules[0].Groups[i].Ops = append(f.Schedules[0].Groups[i].Ops, -1-k)
		}
	}
	bad = schedulefile.Check(t.Context(), f, machine(t))
	if n := len(bad); n < schedulefile.MaxViolations || n > schedulefile.MaxViolations+1 ||
		!strings.HasPrefix(bad[n-1].What, "and ") {
		t.Errorf("%d violations, last %v", n, bad[n-1])
	}
}

// A ring of weights of a nest's own passes the file, and what does not fit beside it is named.
func TestRing(t *testing.T) {
	spec, err := hardware.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	net := network.Network{Name: "product", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("product")
		b.Output(b.Op("MatMul", "product", model.Attr{}, b.Input("x", model.F16, batch, 512),
			b.Param("w", model.F16, 512, 512)))
		return b.Build()
	}}
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), net, spec, 4096, recipe, scheduler.Options{Chunk: 4096})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Schedule
	st := &s.Steps[0]
	if st.Nest == nil || st.Nest.Ring == 0 || st.StageAddress+st.StageBytes > s.DataEnd(st) {
		t.Fatalf("%+v, expected a ring of its own behind the stage at %d of %d bytes", st.Nest,
			st.StageAddress, st.StageBytes)
	}
	data, err := r.File(schedulefile.Origin{}).Write()
	if err != nil {
		t.Fatal(err)
	}
	ring := fmt.Sprintf("ring of %d", st.Nest.Ring)
	for _, tt := range []struct{ ring, want string }{
		{ring, ""},
		{fmt.Sprintf("ring of %d", s.DataEnd(st)+st.Nest.Ring), "bytes in front of its ring of weights"},
		{"ring of 100", "has a ring of 100 bytes for weights, expected a multiple of 64 up to the"},
		{"ring of 1048576", "has a ring of 1048576 bytes for weights, expected a multiple of 64 up to the"},
	} {
		f, err := schedulefile.Read("ring", bytes.Replace(data, []byte(ring), []byte(tt.ring), 1))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, v := range schedulefile.Check(t.Context(), f, spec) {
			said = append(said, v.String())
		}
		if all := strings.Join(said, "\n"); (tt.want == "") != (all == "") || !strings.Contains(all, tt.want) {
			t.Errorf("%s: %s\nexpected %q", tt.ring, all, tt.want)
		}
	}
}
