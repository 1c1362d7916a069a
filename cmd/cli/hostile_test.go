package cli

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// A small file cannot make the program take much memory: all that it allocates, and so
// all that it holds at a time, stays below 200 MB. Each file is refused.
func TestHostileFiles(t *testing.T) {
	workspace(t)
	var laughs strings.Builder
	laughs.WriteString("name: a\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	deep := "name: " + strings.Repeat("[", 500_000)
	nested := strings.Repeat("[", 5_000_000)
	inner := []byte{}
	for range 10_000 {
		inner = bytesField(5, bytesField(6, bytesField(1, inner)))
	}
	lists := strings.Repeat(`{"a":[`, 1_000_000)
	for _, c := range []struct{ name, text, command string }{
		{"laughs.yaml", laughs.String(), "schedule toy-fig3 --hardware laughs.yaml"},
		{"laughs.yaml", laughs.String(), "solve pipeline resnet50 --server laughs.yaml"},
		{"laughs.yaml", laughs.String(), "solve stitch toy-fig3 --hardware laughs.yaml"},
		{"deep.yaml", deep, "schedule toy-fig3 --hardware deep.yaml"},
		{"deep.yaml", deep, "solve pipeline resnet50 --server deep.yaml"},
		{"deep.yaml", deep, "solve stitch toy-fig3 --hardware deep.yaml"},
		{"large.onnx", string(onnxFile(weight("w", 1<<40, 1<<40), node("Relu", "r", "y", "x"),
			valueInfo(11, "x", 1<<40, 1<<40), valueInfo(12, "y", 1<<40))), "schedule large.onnx"},
		{"deep.onnx", string(onnxFile(bytesField(1, append(inner, text(4, "If")...)))), "schedule deep.onnx"},
		{"cut.onnx", string(binary.AppendUvarint([]byte{7<<3 | 2}, 1<<40)), "schedule cut.onnx"},
		{"nodes.onnx", string(onnxFile([]byte(strings.Repeat("\n\x00", 2_000_000)))), "schedule nodes.onnx"},
		{"zip.onnx", "\x1f\x8b\x08" + strings.Repeat("\x00", 1_000_000), "schedule zip.onnx"},
		{"line.csv", "id,lower,upper,size\na,1,2," + strings.Repeat("9", 20_000_000) + "\n",
			"solve allocate line.csv --minimize"},
		{"columns.csv", strings.Repeat("id,", 5_000_000) + "\n", "solve allocate columns.csv --minimize"},
		{"many.json", strings.Replace(chainProblem, `"instances": 2`, `"instances": 1099511627776`, 1),
			"solve order many.json"},
		{"nested.json", nested, "solve order nested.json"},
		{"nested.json", nested, "solve partition nested.json"},
		{"nested.json", nested, "check schedule nested.json"},
		{"nested.json", nested, "certify nested.json"},
		{"nested.json", nested, "explain-kernel nested.json --task 0"},
		{"lists.json", lists, "solve order lists.json"},
		{"lists.json", lists, "solve partition lists.json"},
		{"lists.json", lists, "check schedule lists.json"},
		{"devices.json", strings.Replace(graphProblem, `"maxFPGAs": 2`, `"maxFPGAs": 1099511627776`, 1),
			"solve partition devices.json"},
		{"nested.json", nested, "solve order chain.json --start nested.json"},
		{"results/fig14/origin.json", nested, "report results"},
	} {
		if err := os.WriteFile(c.name, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := call(t, append(strings.Fields(c.command), "--json")...)
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d MiB, %.150s", c.command, took, r.stderr)
		if r.status != exitFailure || len(r.stderr) > 5000 || strings.Contains(r.stderr, "internal error") {
			t.Errorf("%s: status %d, %.300q", c.command, r.status, r.stderr)
		}
		if took > 200 {
			t.Errorf("%s: %d MiB were allocated", c.command, took)
		}
	}
}
