package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A mutant is a call that must fail in one line with these words, of those with a bar between them with one. Its file,
// if it has text, is written first.
type mutant struct {
	file, text, command string
	status              int
	words               []string
}

// Two hundred calls with a wrong file, name or flag end in one line that names what is wrong, and none runs on.
func TestMutants(t *testing.T) {
	workspace(t)
	list := slices.Concat(jsonMutants(t), linesMutants(t), onnxMutants(), textMutants(), flagMutants())
	if len(list) < 200 {
		t.Errorf("%d calls", len(list))
	}
	var longest time.Duration
	var most uint64
	slow, large := "", ""
	for _, m := range list {
		if m.text != "" {
			if err := os.WriteFile(m.file, []byte(m.text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		args := strings.Fields(m.command)
		for i, a := range args {
			args[i] = strings.NewReplacer("EMPTY", "", "LONG", strings.Repeat("n", 5000), "ESCAPE", "\x1b[31m").Replace(a)
		}
		// Nothing here needs a second. The limit only keeps what hangs from hanging the test.
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errors.New("ran on"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		r := callContext(t, ctx, args...)
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		cancel()
		if took > longest {
			longest, slow = took, m.command
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > most {
			most, large = bytes, m.command
		}
		what := fmt.Sprintf("%q: status %d, %.400q", m.command, r.status, r.stderr)
		if r.status != m.status || r.stdout != "" {
			t.Errorf("%s, expected status %d", what, m.status)
		}
		said := slices.DeleteFunc(strings.SplitAfter(r.stderr, "\n"), func(l string) bool {
			return l == "" || strings.HasPrefix(l, "dsasched: warning: ")
		})
		if len(said) != 1 || len(r.stderr) > 8000 || strings.ContainsAny(r.stderr, "\x1b\x00") ||
			strings.Contains(r.stderr, "internal error") {
			t.Errorf("%s, expected one plain line", what)
		}
		for _, w := range m.words {
			if !slices.ContainsFunc(strings.Split(w, "|"), func(w string) bool {
				return strings.Contains(r.stderr, w)
			}) {
				t.Errorf("%s, expected %q in it", what, w)
			}
		}
	}
	t.Logf("%d calls; the longest %v: %.60s; the most memory asked for %d KiB: %.60s", len(list), longest, slow, most>>10,
		large)
}

// spread takes so many of a list, evenly.
func spread[T any](list []T, n int) (some []T) {
	for i := range min(n, len(list)) {
		some = append(some, list[i*len(list)/min(n, len(list))])
	}
	return some
}

// field is a field of JSON with a value that is not a list or mapping.
var field = regexp.MustCompile(`"([a-z_A-Z]+)": *("[^"]*"|-?[0-9][0-9.e+-]*|true|false)`)

// jsonMutants have a value of another type, or a field that nobody knows, at places all over each kind of file.
func jsonMutants(t *testing.T) (list []mutant) {
	for _, c := range []struct {
		file, command string
		n             int
	}{
		{"net.schedule.json", "check schedule bad.json", 24},
		{"net.schedule.json", "simulate bad.json", 8},
		{"net.certificate.json", "certify bad.json", 16},
		{"chain.json", "solve order bad.json", 12},
		{"joint.json", "solve joint bad.json", 16},
		{"order.json", "check order chain.json bad.json", 8},
		{"graph.json", "solve partition bad.json", 12},
	} {
		data, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		var all []mutant
		for _, at := range field.FindAllSubmatchIndex(data, -1) {
			key, value := string(data[at[2]:at[3]]), string(data[at[4]:at[5]])
			other := `"x"`
			if value[0] == '"' {
				other = "[7]"
			}
			made := func(text string, word string) {
				all = append(all, mutant{"bad.json", text, c.command, exitFailure, []string{"bad.json", word}})
			}
			made(string(data[:at[4]])+other+string(data[at[5]:]), key)
			made(string(data[:at[2]])+"no_field"+string(data[at[3]:]), "no_field|"+key)
		}
		list = append(list, spread(all, c.n)...)
		for _, part := range []int{3, 2} {
			cut := string(data[:len(data)/part])
			list = append(list, mutant{"bad.json", cut, c.command, exitFailure, []string{"bad.json"}})
		}
	}
	return list
}

// linesMutants are of files that are read line by line.
func linesMutants(t *testing.T) (list []mutant) {
	data, err := os.ReadFile("my-npu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	setting := regexp.MustCompile(`(?m)^[ -]*([a-z_]+): *([^#{\n ]+)`)
	for _, at := range setting.FindAllSubmatchIndex(data, -1) {
		key := string(data[at[2]:at[3]])
		for _, other := range []string{"[7]", "-1"} {
			if key == "name" && other == "-1" || key == "description" {
				continue
			}
			all = append(all, mutant{"bad.yaml", string(data[:at[4]]) + other + string(data[at[5]:]),
				"schedule toy-fig3 --hardware bad.yaml", exitFailure, []string{"bad.yaml:", key}})
		}
		all = append(all, mutant{"bad.yaml", string(data[:at[2]]) + "nofield" + string(data[at[3]:]),
			"hardware ./bad.yaml", exitFailure, []string{"bad.yaml:", "nofield"}})
	}
	list = append(list, spread(all, 40)...)
	for _, column := range []string{"lower", "upper", "size"} {
		for _, value := range []string{"x", "-1e3", "99999999999999999999", "1.5", "NaN"} {
			cells := map[string]string{"lower": "0", "upper": "3", "size": "4", column: value}
			list = append(list, mutant{"bad.csv",
				fmt.Sprintf("id,lower,upper,size\na,%s,%s,%s\n", cells["lower"], cells["upper"], cells["size"]),
				"solve allocate bad.csv --minimize", exitFailure, []string{"bad.csv:2", column}})
		}
	}
	return list
}

func onnxMutants() (list []mutant) {
	add := func(text []byte, words ...string) {
		list = append(list, mutant{"bad.onnx", string(text), "schedule ./bad.onnx", exitFailure, append(words, "bad.onnx")})
	}
	net := perceptron()
	for i := 1; i < 12; i++ {
		add(net[:len(net)*i/12])
	}
	x, y := valueInfo(11, "x", 1, 16), valueInfo(12, "y", 1, 16)
	add(onnxFile(node("Relu", "one", "y", "z"), x, y), "z")
	add(onnxFile(node("Relu", "one", "y", "y"), x, y), "one")
	add(onnxFile(node("Relu", "one", "a", "b"), node("Relu", "two", "b", "a"), x, valueInfo(12, "b", 1, 16)), "one")
	add(onnxFile(node("Relu", "one", "y", "x"), node("Relu", "two", "y", "x"), x, y), "two")
	add(onnxFile(node("Relu", "one", "y", "x", "x"), x, y), "one")
	add(onnxFile(node("Relu", "one", "y"), x, y), "one")
	add(onnxFile(node("MatMul", "one", "y", "x", "w"), weight("w", 15, 16), x, y), "one")
	add(onnxFile(node("MatMul", "one", "y", "x", "w"), weight("w", 1<<62, 1<<62), x, y), "w")
	add(onnxFile(node("Conv", "one", "y", "x", "w"), weight("w", 4), x, y), "one")
	add(onnxFile(node("Conv", "one", "y", "x", "w"), weight("w", 4, 3, 9, 9), valueInfo(11, "x", 1, 3, 4, 4), y), "one")
	add(onnxFile(node("Add", "one", "y", "x", "w"), weight("w", 5, 7), x, y), "one")
	add(onnxFile(node("Reshape", "one", "y", "x", "w"), weight("w", 3), x, y), "one")
	add(onnxFile(node("Concat", "one", "y", "x", "w"), weight("w", 3), x, y), "one")
	add(onnxFile(node("Nonsense", "one", "y", "x"), x, y), "Nonsense")
	add(onnxFile(node("Relu", "one", "y", "x"), x))
	add(onnxFile(x, y))
	add(onnxFile(node("Relu", "one", "y", "x"), valueInfo(11, "x", 1<<40, 1<<40), y), "x")
	add(onnxFile(node("Relu", "one", "y", "x"), valueInfo(11, "x", 1, 0), valueInfo(12, "y", 1, 0)), "x")
	return list
}

// textMutants are networks as StableHLO text.
func textMutants() (list []mutant) {
	const good = `func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x3xf32>) -> tensor<4x3xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %1 = stablehlo.tanh %0 : tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}
`
	for _, c := range [][2]string{
		{"tanh %0", "tanh %9"}, {"tanh %0", "nonsense %0"}, {"%1 = ", "%0 = "}, {"[1] x [0]", "[7] x [0]"},
		{"[1] x [0]", "[1] x [1]"}, {"[1] x [0]", "[x]"}, {"-> tensor<4x3xf32>\n", "-> tensor<4x99xf32>\n"},
		{"tanh %0", "tanh (%0"},
		{"%arg1: tensor<8x3xf32>", "%arg1: tensor<8x-3xf32>"},
		{"%arg1: tensor<8x3xf32>", "%arg1: tensor<999999999999999999999xf32>"},
		{"%1 : tensor", "%7 : tensor"}, {"return", "retrun"}, {"@main", "main"}, {"{", ""},
		{"contracting_dims", "contracting"},
		{"%0 = ", "= "},
	} {
		list = append(list, mutant{"bad.mlir", strings.Replace(good, c[0], c[1], 1), "schedule ./bad.mlir", exitFailure,
			[]string{"bad.mlir:"}})
	}
	return list
}

func flagMutants() (list []mutant) {
	add := func(status int, command string, words ...string) {
		list = append(list, mutant{command: command, status: status, words: words})
	}
	for _, batch := range []string{"0", "-1", "1048577", "9223372036854775807"} {
		add(exitUsage, "schedule toy-fig3 --batch "+batch, "batch", batch)
	}
	for _, batch := range []string{"x", "1e3", "9223372036854775808", "EMPTY", "0x", "1_000_000_000_000_000_000_000"} {
		add(exitUsage, "schedule toy-fig3 --batch="+batch, "batch")
	}
	for _, flag := range []string{"variant", "order", "bind", "spill", "issue", "dtype", "clusters", "uneven"} {
		add(exitUsage, "schedule toy-fig3 --"+flag+" nonsense", flag, "nonsense")
	}
	add(exitFailure, "schedule toy-fig3 --chunk 7 --batch 4", "chunk")
	add(exitUsage, "schedule toy-fig3 --chunk -1", "chunk")
	add(exitUsage, "schedule toy-fig3 --nonsense", "nonsense")
	add(exitUsage, "schedule", "MODEL")
	add(exitUsage, "nonsense toy-fig3", "nonsense")
	add(exitUsage, "solve nonsense", "nonsense")
	add(exitUsage, "sweep toy-fig3 --set nonsense=1", "nonsense")
	add(exitUsage, "sweep toy-fig3 --set batch=", "batch")
	for _, name := range []string{"resnet5O", "LONG", "ESCAPE", "EMPTY", "..", "./missing.onnx", "./", "/dev/zero",
		"a/b/c.onnx", "./ESCAPE.onnx"} {
		add(exitFailure, "schedule "+name)
	}
	for _, name := range []string{"stcp92O", "LONG", "ESCAPE", "EMPTY", "./missing.yaml", "./", "/dev/zero"} {
		add(exitFailure, "schedule toy-fig3 --hardware="+name)
	}
	for _, out := range []string{"missing/x.json", "./", "/dev/null/x.json"} {
		add(exitFailure, "schedule toy-fig3 -o "+out, out)
	}
	for _, command := range []string{"check schedule", "simulate", "certify", "solve order", "solve joint", "solve partition",
		"solve allocate --minimize", "view", "report"} {
		add(exitFailure, command+" missing.json", "missing.json")
	}
	return list
}
