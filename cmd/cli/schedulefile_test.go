package cli

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

// What schedule has written, simulate gives back byte for byte, in a process that knows
// neither the network's file nor the flags.
func TestSimulateAgain(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"resnet50 --batch 32 --variant cross-layer",
		"dlrm --batch 4 --hardware a100",
		"squeezenet --batch 9",
		"bert-128 --batch 1 --clusters layers",
		"net.onnx --batch 6 --dtype f32 --variant exact-all",
		"bert-128 --batch 4 --spill largest-first --in-place",
		"net.onnx --batch 8 --order dfs --bind search --split search",
		"resnet50 --batch 2 --hardware goya --variant tvm",
	} {
		t.Run(args, func(t *testing.T) {
			workspace(t)
			words := append([]string{"schedule"}, strings.Fields(args)...)
			answer(t, append(words, "-o", "a.json")...)
			for _, more := range [][]string{nil, {"--json"}} {
				want := answer(t, append(words, more...)...)
				if err := os.Remove("net.onnx"); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(program, append([]string{"simulate", "a.json"}, more...)...)
				cmd.Env = append(os.Environ(), asMain+"=1")
				got, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != want {
					t.Errorf("simulate %v prints\n%s\nschedule has printed\n%s", more, got, want)
				}
				if err := os.WriteFile("net.onnx", perceptron(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if got := answer(t, "check", "schedule", "a.json"); !strings.Contains(got, "keeps all rules") {
				t.Errorf("check schedule prints %q", got)
			}
		})
	}
}

// edit changes a schedule as an outsider would: by a program that knows JSON.
func edit(t *testing.T, from, to string, change func(plan map[string]any)) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	change(f["schedules"].([]any)[0].(map[string]any))
	if data, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestEditedSchedules(t *testing.T) {
	workspace(t)
	answer(t, "schedule", "resnet50", "--batch", "32", "--variant", "tiled-groups", "--group", "alg2", "-o", "a.json")
	before := decode[answers.Report](t, answer(t, "simulate", "a.json", "--json"))

	// Another order, without a memory plan: it runs, and takes another time.
	edit(t, "a.json", "order.json", func(p map[string]any) {
		list := p["order"].([]any)
		var sorted []any
		for group := range 4 {
			for _, x := range list {
				if fmt.Sprint(x.([]any)[0]) == fmt.Sprint(group) {
					sorted = append(sorted, x)
				}
			}
		}
		p["order"] = sorted
		delete(p, "memory")
		delete(p, "nests") // they were made for that plan
	})
	if got := answer(t, "check", "schedule", "order.json"); !strings.Contains(got, "keeps all rules") ||
		!strings.Contains(got, "no memory plan") {
		t.Errorf("check schedule prints %q", got)
	}
	after := decode[answers.Report](t, answer(t, "simulate", "order.json", "--json"))
	if after.Order.Instances[7].Group != "g0" || after.ThroughputPerSecond == before.ThroughputPerSecond {
		t.Errorf("the order is %v, %g/s as before", after.Order.Instances, after.ThroughputPerSecond)
	}

	// Broken ones are refused by name.
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		want   []string // each in its own line
	}{
		{"order", func(p map[string]any) {
			o := p["order"].([]any)
			o[0], o[len(o)-1] = o[len(o)-1], o[0]
		}, []string{`schedules[0].order[0]: g3/0 runs before g2/0`, `g3/0 runs before g2/1`}},
		{"repeated", func(p map[string]any) {
			o := p["order"].([]any)
			o[1] = o[0]
		}, []string{`order[1]: g0/7 runs at position 0 already`, `order: g0/6 does not run`}},
		{"overlap", func(p map[string]any) {
			v := p["memory"].(map[string]any)["values"].([]any)
			v[1].(map[string]any)["address"] = v[0].(map[string]any)["address"]
		}, []string{`memory.values[1]: "`, `overlaps "`}},
		{"capacity", func(p map[string]any) {
			p["memory"].(map[string]any)["values"].([]any)[0].(map[string]any)["address"] = json.Number("1048576")
		}, []string{`leaves the 1048576 bytes of the L1`}},
		{"factor", func(p map[string]any) {
			p["groups"].([]any)[0].(map[string]any)["factor"] = json.Number("5")
		}, []string{`groups[0].factor: is 5, but extent 8 of dimension 0`}},
		{"cores", func(p map[string]any) {
			p["instances"].([]any)[0].(map[string]any)["cores"] = []any{1, 1, 4, 4}
		}, []string{`instances[0].cores: g0/0: cores [1 1 4 4], expected numbers of which the product is 1 to 8`}},
		{"operator", func(p map[string]any) {
			g := p["groups"].([]any)[1].(map[string]any)
			g["operators"] = g["operators"].([]any)[1:]
		}, []string{`is in none`, `groups[1].layers[0]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			edit(t, "a.json", "b.json", c.change)
			r := call(t, "check", "schedule", "b.json")
			if r.status != exitFailure || !strings.HasPrefix(r.stderr, "dsasched: b.json: ") {
				t.Errorf("check: status %d, stderr %q", r.status, r.stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(r.stdout, w) {
					t.Errorf("check schedule says nothing of %q:\n%s", w, r.stdout)
				}
			}
			v := decode[scheduler.Checked](t, call(t, "check", "schedule", "b.json", "--json").stdout)
			if v.OK || len(v.Violations) != strings.Count(r.stdout, "\n") {
				t.Errorf("%d violations in JSON, %d lines of text", len(v.Violations), strings.Count(r.stdout, "\n"))
			}
			r = call(t, "simulate", "b.json")
			if r.status != exitFailure || !strings.Contains(r.stderr, "breaks a rule") || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("simulate: status %d, stderr %q", r.status, r.stderr)
			}
		})
	}
}

func TestOtherAccelerator(t *testing.T) {
	workspace(t)
	faster := strings.Replace(string(mustRead(t, "my-npu.yaml")), "bandwidth: 108GB/s", "bandwidth: 216GB/s", 1)
	faster = strings.Replace(faster, "name: stcp920", "name: other", 1)
	if err := os.WriteFile("faster.yaml", []byte(faster), 0o666); err != nil {
		t.Fatal(err)
	}
	answer(t, "schedule", "resnet50", "--batch", "8", "-o", "a.json")
	slow := decode[answers.Report](t, answer(t, "simulate", "a.json", "--json"))
	fast := decode[answers.Report](t, answer(t, "simulate", "a.json", "--hardware", "faster.yaml", "--json"))
	if fast.ThroughputPerSecond <= slow.ThroughputPerSecond || fast.Hardware != "other" || len(fast.Notes) == 0 {
		t.Errorf("%g/s on %s with notes %q, %g/s before", fast.ThroughputPerSecond, fast.Hardware, fast.Notes,
			slow.ThroughputPerSecond)
	}
	// A schedule for an accelerator of one's own does not find it by name.
	answer(t, "schedule", "net.onnx", "--hardware", "faster.yaml", "-o", "b.json")
	if r := call(t, "simulate", "b.json"); r.status != exitFailure ||
		!strings.Contains(r.stderr, `hardware.name: found "other", which is not built in: give the file of its description `+
			`with --hardware`) {
		t.Errorf("%+v", r)
	}
	answer(t, "simulate", "b.json", "--hardware", "faster.yaml")
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Each picture is of its format, and the same the second time.
func TestPictures(t *testing.T) {
	workspace(t)
	for _, model := range []string{"net.onnx", "bert-128 --batch 4"} {
		var files [2]map[string][]byte
		for k := range files {
			args := append([]string{"schedule"}, strings.Fields(model)...)
			files[k] = map[string][]byte{}
			for _, f := range []string{"trace t.json", "gantt g.svg"} {
				args = append(args, strings.Fields("--"+f)...)
			}
			answer(t, args...)
			for _, f := range []string{"t.json", "g.svg"} {
				files[k][f] = mustRead(t, f)
			}
		}
		for name, data := range files[0] {
			if !bytes.Equal(data, files[1][name]) {
				t.Errorf("%s: %s is another one the second time", model, name)
			}
			switch filepath.Ext(name) {
			case ".svg":
				if err := xml.Unmarshal(data, new(struct{})); err != nil {
					t.Errorf("%s: %s: %v", model, name, err)
				}
			case ".json":
				if !json.Valid(data) {
					t.Errorf("%s: %s is no JSON", model, name)
				}
			}
		}
	}
	answer(t, strings.Fields("simulate net.schedule.json --gantt g.png")...)
	if data := mustRead(t, "g.png"); !bytes.HasPrefix(data, []byte("\x89PNG")) {
		t.Error("g.png is no PNG")
	}
}

// The file that a command writes passes the reader that names its fields.
func TestScheduleFileReads(t *testing.T) {
	workspace(t)
	f, err := schedulefile.Load("net.schedule.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.Write()
	if err != nil || !bytes.Equal(data, mustRead(t, "net.schedule.json")) {
		t.Errorf("written again, the file is another one: %v", err)
	}
}

func TestExplainTexts(t *testing.T) {
	workspace(t)
	answer(t, "schedule", "resnet50", "--batch", "8", "--chunk", "2", "--split", "search", "-o", "replaced.schedule.json")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"net.schedule.json",
			[]string{"limited by", "Critical path", "by command", "DDR load ", "waited for", "matrix unit "}},
		{"resnet50 --batch 64 --chunk 16 --variant cross-layer --group g1",
			[]string{"29 operators", "dimension n in 8", "does not fit", "fits", "rule (i)", "Merges refused at its borders",
				"Algorithm 2, rule (i)", "g1/7", "vector of"}},
		{"resnet50 --batch 64 --chunk 16 --variant cross-layer --tensor stage3.block5.add",
			[]string{"spilled", "LLB, not L1", "98 layers", "capacity      1 MiB", "too many", "stem.pool"}},
		{"bert-128 --batch 32 --chunk 8 --variant tiled-l1 --spill longest-lifetime --tensor encoder.layer0.ffn.gelu",
			[]string{"in 32 tiles", "weights       4.501 MiB per core, their buffer holds 192 KiB", "0 B too many"}},
		{"resnet50 --batch 8 --op stage2.block0.conv1", []string{"fused in it   stage2.block0.conv1", "waiting for"}},
		{"bert-128 --batch 4 --variant tvm --group k3", []string{"no merges     layers: a layer is a kernel"}},
		{"resnet50 --batch 8 --chunk 2 --variant exact-split --group g1",
			[]string{"split by      search: groups and factors of least measured time", "no merges     search"}},
		{"replaced.schedule.json --group g1",
			[]string{"split by      search: groups and factors of least measured time", "no merges     search"}},
		{"net.schedule.json --tensor w1", []string{"a constant"}},
		{"resnet50 --batch 8 --chunk 2 --against replaced.schedule.json",
			[]string{"against", "replaced.schedule.json, variant cross-layer", "stem.conv", "load over", "gain"}},
		{"net.schedule.json --tensor x", []string{"a network input"}},
		{"net.schedule.json --tensor y", []string{"a network output"}},
	} {
		got := answer(t, append([]string{"explain"}, strings.Fields(c.args)...)...)
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("explain %s says nothing of %q:\n%s", c.args, w, got)
			}
		}
	}
}

// A schedule that was made for another description of a machine is not taken for one of this without a word.
func TestExplainOfAnotherMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	text := answer(t, "hardware", "stcp920", "--yaml")
	mine := strings.Replace(text, "8MiB", "4MiB", 1)
	if mine == text {
		t.Fatal("the description has no 8MiB")
	}
	if err := os.WriteFile("my.yaml", []byte(mine), 0o666); err != nil {
		t.Fatal(err)
	}
	answer(t, "schedule", "toy-fig5", "--hardware", "my.yaml", "-o", "a.json")
	for _, command := range []string{"explain", "view"} {
		const want = "dsasched: a.json: made for another accelerator, stcp920, or another description of it\n"
		if r := call(t, command, "a.json"); r.status != exitOK || r.stderr != want {
			t.Errorf("%s: %d, %q", command, r.status, r.stderr)
		}
		if r := call(t, command, "a.json", "--hardware", "my.yaml"); r.status != exitOK || r.stderr != "" {
			t.Errorf("%s with its machine: %d, %q", command, r.status, r.stderr)
		}
	}
}
