package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/kernels"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"
)

// The JSON has what the text sums up, kernel by kernel.
func TestStitch(t *testing.T) {
	workspace(t)
	type plan struct {
		Operators int             `json:"operators"`
		Kernels   []fusion.Kernel `json:"kernels"`
		Cuts      []fusion.Cut    `json:"cuts"`
		Summary   fusion.Summary  `json:"summary"`
		Exact     *kernels.Exact  `json:"exact"`
		Method    string          `json:"method"`
		Network   string          `json:"network"`
		Hardware  string          `json:"hardware"`
	}
	for method, want := range map[string]int{"xla": 196, "tvm": 245, "astitch": 73, "exact": 73} {
		text := answer(t, "solve", "stitch", "bert-128", "--dtype", "f32", "--method", method, "--json")
		// Schemes are words, which only the writer knows.
		text = strings.NewReplacer(`"scheme": "local"`, `"scheme": 1`, `"scheme": "regional"`, `"scheme": 2`,
			`"scheme": "global"`, `"scheme": 3`).Replace(text)
		p := decode[plan](t, text)
		if p.Summary.MemoryKernels != want || len(p.Kernels) != p.Summary.MemoryKernels+p.Summary.LibraryKernels ||
			p.Method != method || (p.Exact != nil) != (method == "exact") {
			t.Errorf("%s: %+v and %d kernels, want %d", method, p.Summary, len(p.Kernels), want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"solve stitch bert-128 --method exact", "optimal: 73 of 73 scopes proven"},
		{"solve stitch bert-128 --explain encoder.layer0.attention.softmax/exp",
			"led by encoder.layer0.attention.softmax/sum"},
		{"solve stitch bert-128 --method xla --explain encoder.layer0.attention.softmax/exp", "not fused"},
		{"solve stitch net.onnx --hardware t4-simt", "t4-simt"},
	} {
		if got := answer(t, strings.Fields(c.args)...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s in it", c.args, got, c.want)
		}
	}
}

// A file of a machine is read; mistakes in the call and in the file take one line.
func TestStitchInput(t *testing.T) {
	workspace(t)
	good, err := simt.PresetYAML("v100-simt")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, from, to string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(strings.Replace(string(good), from, to, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.yaml", "name: v100-simt", "name: mine")
	if got := answer(t, "solve", "stitch", "squeezenet", "--hardware", "mine.yaml"); !strings.Contains(got, "mine") {
		t.Errorf("%s", got)
	}
	write("bad.yaml", "sms: 80", "sms: none")
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"solve stitch", exitUsage, "MODEL is missing"},
		{"solve stitch squeezenet --method magic", exitUsage, "expected one of astitch, xla"},
		{"solve stitch squeezenet --hardware v100", exitFailure, "did you mean"},
		{"solve stitch squeezenet --hardware bad.yaml", exitFailure, `bad.yaml:13: sms: found "none"`},
		{"solve stitch nothing", exitFailure, "unknown model"},
		{"solve stitch squeezenet --explain nothing", exitFailure, `has no operator "nothing"`},
	} {
		r := call(t, strings.Fields(c.args)...)
		if r.status != c.status || !strings.Contains(r.stderr, c.want) || r.stdout != "" ||
			strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v, want status %d and %s", c.args, r, c.status, c.want)
		}
	}
}
