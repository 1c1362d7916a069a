package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/hardware"
)

// result is what a call of the program left behind.
type result struct {
	stdout, stderr string
	status         int
}

// call runs the program as main does, with fakeExperiment in place of the
// experiments.
func call(t *testing.T, args ...string) result {
	t.Helper()
	return callContext(t, context.Background(), args...)
}

func callContext(t *testing.T, ctx context.Context, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := execute(ctx, &stdout, &stderr, args, fakeExperiment)
	status := report(&stderr, err)
	return result{stdout.String(), stderr.String(), status}
}

// answer is call for what must succeed and say nothing on stderr.
func answer(t *testing.T, args ...string) string {
	t.Helper()
	r := call(t, args...)
	if r.status != exitOK || r.stderr != "" {
		t.Fatalf("%q: status %d, stderr %q", args, r.status, r.stderr)
	}
	return r.stdout
}

// fakeExperiment writes files as an experiment does, without the hours of work.
func fakeExperiment(_ context.Context, names []string, opt experiments.Options) error {
	if len(names) == 0 {
		names = experiments.Names()
	}
	for _, name := range names {
		dir := filepath.Join(opt.Out, name)
		if err := os.MkdirAll(filepath.Join(dir, "cells"), 0o777); err != nil {
			return err
		}
		for _, file := range []string{"cells/a.json", "b.csv", "a.md"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte("x\n"), 0o666); err != nil {
				return err
			}
		}
		if opt.Stdout != nil {
			opt.Stdout.Write([]byte("table of " + name + "\n"))
		}
		if !opt.Quiet {
			opt.Stderr.Write([]byte("progress of " + name + "\n"))
		}
	}
	return nil
}

// The fields of ONNX that the fixtures need, in the wire format of protobuf.
func message(fields ...[]byte) []byte { return bytes.Join(fields, nil) }

func number64(field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), v)
}

func bytesField(field int, data []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(field)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

func text(field int, s string) []byte { return bytesField(field, []byte(s)) }

func node(kind, name, output string, inputs ...string) []byte {
	var m []byte
	for _, in := range inputs {
		m = append(m, text(1, in)...)
	}
	return bytesField(1, message(m, text(2, output), text(3, name), text(4, kind)))
}

const onnxFloat = 1

func weight(name string, dims ...uint64) []byte {
	var m []byte
	for _, d := range dims {
		m = append(m, number64(1, d)...)
	}
	return bytesField(5, message(m, number64(2, onnxFloat), text(8, name)))
}

func valueInfo(field int, name string, dims ...uint64) []byte {
	var shape []byte
	for _, d := range dims {
		shape = append(shape, bytesField(1, number64(1, d))...)
	}
	tensor := message(number64(1, onnxFloat), bytesField(2, shape))
	return bytesField(field, message(text(1, name), bytesField(2, bytesField(1, tensor))))
}

// odd has an operator that nobody knows and a dimension without a size.
func odd() []byte {
	shape := append(bytesField(1, number64(1, 1)), bytesField(1, text(2, "steps"))...)
	shape = append(shape, bytesField(1, number64(1, 4))...)
	info := func(field int, name string) []byte {
		return bytesField(field, message(text(1, name),
			bytesField(2, bytesField(1, message(number64(1, onnxFloat), bytesField(2, shape))))))
	}
	twist := message(text(1, "x"), text(2, "a"), text(3, "odd"), text(4, "Twist"), text(7, "com.example"))
	return onnxFile(bytesField(1, twist), node("Relu", "relu", "y", "a"), info(11, "x"), info(12, "y"))
}

func onnxFile(graph ...[]byte) []byte {
	return message(number64(1, 8), bytesField(8, message(text(1, ""), number64(2, 13))),
		bytesField(7, message(append(graph, text(2, "net"))...)))
}

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// perceptron is two layers from 16 over 32 to 8 numbers.
func perceptron() []byte {
	return onnxFile(
		node("MatMul", "first", "a", "x", "w1"), node("Relu", "relu", "b", "a"), node("MatMul", "second", "y", "b", "w2"),
		weight("w1", 16, 32), weight("w2", 32, 8),
		valueInfo(11, "x", 1, 16), valueInfo(12, "y", 1, 8))
}

// workspace makes an empty folder with a few inputs the working directory.
func workspace(t *testing.T) {
	t.Helper()
	bench, err := filepath.Abs("../../bench")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(bench, "bench"); err != nil {
		t.Fatal(err)
	}
	preset, err := hardware.PresetYAML("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	replace := func(pairs ...string) []byte {
		s := string(preset)
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(s, pairs[i]) {
				t.Fatalf("the preset has no %q to replace", pairs[i])
			}
			s = strings.Replace(s, pairs[i], pairs[i+1], 1)
		}
		return []byte(s)
	}
	net := perceptron()
	for name, data := range map[string][]byte{
		"net.onnx":       net,
		"truncated.onnx": net[:len(net)/2],
		"garbage.onnx":   bytes.Repeat([]byte{0xff, 0x13, 0x7e}, 1000),
		"empty.onnx":     nil,
		"custom.onnx": onnxFile(node("Frobnicate", "fro", "a", "x"), node("Twiddle", "twi", "y", "a"),
			valueInfo(11, "x", 1, 16), valueInfo(12, "y", 1, 16)),
		"odd.onnx": odd(),
		"escape.onnx": onnxFile(node("Relu", "re\x1b[31mlu\n", "y", "x"),
			valueInfo(11, "x", 1, 16), valueInfo(12, "y", 1, 16)),
		"my-npu.yaml":   preset,
		"mistakes.yaml": replace("\nclusters: 4", "\nclusters: zero", "\nlaunch:", "\nlunch:"),
		"broken.json":   []byte(`{"name": "a",, }`),
		"syntax.yaml":   []byte("name: a\nlb: [1\n"),
		"tiny.yaml":     replace("size: 1MiB", "size: 64B", "weights: 256KiB", "weights: 64B"),
		"file":          nil,
		"buffers.csv":   []byte("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"),
		"plan.log":      []byte(tinyPlan),
		"placed.csv":    []byte("id,lower,upper,size,alignment,offset\nt0,1,4,256,1,0\nt1,2,8,256,1,384\nt2,5,10,384,1,0\n"),
		"clash.csv":     []byte("id,lower,upper,size,offset\na,0,3,4,0\nb,2,9,4,2\n"),
		"mistakes.csv":  []byte("id,lower,upper,size\nb1,0,3,four\nb2,3,3,4\n"),
		"chain.json":    []byte(chainProblem),
		"graph.json":    []byte(graphProblem),
		"latency.json":  []byte(strings.Replace(graphProblem, "{", `{"objective": "latency", `, 1)),
		"cycle.json":    []byte(strings.Replace(graphProblem, `"sourceId": 1, "destId": 3`, `"sourceId": 3, "destId": 1`, 1)),
		"large.json":    []byte(strings.Replace(graphProblem, `"size": 60`, `"size": 160`, 1)),
		"order.json":    []byte(chainOrder),
		"joint.json":    []byte(jointProblem),
		"tight.json":    []byte(strings.Replace(chainProblem, `"capacity_bytes": 9`, `"capacity_bytes": 7`, 1)),
		"twice.json":    []byte(strings.Replace(chainOrder, `"run": [0, 1]`, `"run": [0, 0]`, 1)),
		"field.json":    []byte(strings.Replace(chainProblem, `"instances": 2`, `"instances": 2.5`, 1)),
	} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	answer(t, "schedule", "net.onnx", "--variant", "cross-layer", "-o", "net.schedule.json")
	certificateOf(t, "net.onnx", "net.schedule.json", "net.certificate.json")
	experimentResults(t, filepath.Join("results", "fig14"), "fig14")
}

// experimentResults writes what an experiment with a published number and a figure
// leaves behind.
func experimentResults(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for ext, data := range map[string]string{
		".json": `{"experiment": "` + name + `", "published": [{"experiment": "` + name +
			`", "what": "throughput", "unit": "images/s", "published": 100, "ours": 90}]}`,
		".md": "# " + name + ": a title\n\n![A picture](speed.png)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+ext), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "speed.svg"),
		[]byte(`<svg width="10pt" height="10pt"><path d="M0,0Z"/></svg>`), 0o666); err != nil {
		t.Fatal(err)
	}
}

// tinyPlan is a plan that TFLite Micro prints.
const tinyPlan = `a (id=0): size=256, offset=0, first_used=1 last_used=3
b (id=1): size=256, offset=256, first_used=2 last_used=7
c (id=2): size=384, offset=512, first_used=5 last_used=9
`

// chainProblem has two instances that a third one reads; the capacity makes one
// output leave.
const chainProblem = `{"name": "chain", "capacity_bytes": 9, "store_cost_per_byte": 1, "load_cost_per_byte": 1,
 "subgraphs": [
  {"name": "first", "instances": 2, "output_bytes": 3, "workspace_bytes": 4},
  {"name": "last", "instances": 1, "output_bytes": 2, "workspace_bytes": 0}],
 "arcs": [{"from": 0, "to": 1, "reads": [[0, 2]]}]}
`

// jointProblem is the chain with labels.
const jointProblem = `{"order": ` + chainProblem + `, "labels": {"name": "chain", "nodes": [
 {"name": "first/0", "labels": ["1 L1", "2 LLB"], "cost": [3, 4]}, {"name": "first/1", "labels": ["1 L1"], "cost": [3]},
 {"name": "last/0", "labels": ["1 L1", "2 L1"], "cost": [5, 4]}],
 "edges": [{"from": 0, "to": 2, "cost": [[0, 9], [1, 1]]}], "given": [0, 0, 0]}, "nanoseconds_per_cost": 2}
`

const chainOrder = `{"method": "by hand", "objective": "traffic", "status": "optimal", "cost": 6, "bound": 6, "peak_bytes": 8, "seconds": 0,
 "steps": [{"store": [], "load": [], "run": [0, 0]}, {"store": [[0, 0]], "load": [], "run": [0, 1]}, {"store": [], "load": [[0, 0]], "run": [1, 0]}]}
`

// sharedData is a folder of ONNX files of other origin, which is not part of the
// repository.
const sharedData = "../../../shared/data/onnx"

func sharedFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(sharedData, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: %s is not on this machine", path)
	}
	return path
}

// graphProblem is a chain of three nodes for two accelerators that hold two each.
const graphProblem = `{"maxSizePerFPGA": 120, "maxFPGAs": 2, "maxCPUs": 0, "nodes": [
 {"id": 1, "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": 0, "size": 60},
 {"id": 2, "supportedOnFpga": 1, "cpuLatency": 30, "fpgaLatency": 3, "isBackwardNode": 0, "size": 60},
 {"id": 3, "supportedOnFpga": 1, "cpuLatency": 30, "fpgaLatency": 3, "isBackwardNode": 0, "size": 60}],
 "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}, {"sourceId": 2, "destId": 3, "cost": 0.25}, {"sourceId": 1, "destId": 3, "cost": 0.5}]}`
