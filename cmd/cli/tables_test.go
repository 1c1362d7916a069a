package cli

import (
	"os"
	"strings"
	"testing"
)

// named writes the file of an accelerator that has a name of its own.
func named(t *testing.T) {
	t.Helper()
	yaml := answer(t, "hardware", "stcp920", "--yaml")
	if err := os.WriteFile("mine.yaml", []byte(strings.Replace(yaml, "name: stcp920", "name: my-npu", 1)),
		0o666); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Tables for papers and pages hold what is printed, and accelerators and networks have their names.
func TestTables(t *testing.T) {
	workspace(t)
	named(t)
	got := answer(t, strings.Fields(
		"sweep net.onnx toy-fig3 --set hardware=mine.yaml,ipu --set variant=tvm,tiled --tex a.tex --md a.md")...)
	if !strings.Contains(got, "\nwritten       a.tex\nwritten       a.md\n") {
		t.Errorf("the files are not said to be written:\n%s", got)
	}
	if s := contents(t, "a.tex"); !strings.Contains(s, "toy-fig3 & my-npu & ") {
		t.Errorf("%s", s)
	}
	if s := contents(t, "a.md"); !strings.Contains(s, "| net | my-npu | tvm | ") {
		t.Errorf("%s", s)
	}
	for _, c := range []struct{ args, want, caption, legend string }{
		{"sweep toy-fig3 --set hardware=mine.yaml,ipu", "| my-npu | 1 |",
			`{Sweep of 2 points: batch 1, variant tiled, dtype f16, model toy-fig3.}`,
			"share: of the time that what limits is busy"},
		{"compare-hardware toy-fig3 --hardware mine.yaml,ipu", "| my-npu | 1 |",
			`{toy-fig3 (f16), batch 1, variant tiled.}`, "share: of the time that what limits is busy"},
		{"compare toy-fig3 --decision order", "| order | alg3 |", `{toy-fig3 on stcp920, batch 1 in chunks of 1.}`,
			"took: to decide"},
	} {
		answer(t, append(strings.Fields(c.args), "--md", "b.md", "--tex", "b.tex", "--quiet")...)
		if s := contents(t, "b.md"); !strings.Contains(s, c.want) {
			t.Errorf("%s: no %q in\n%s", c.args, c.want, s)
		}
		if s := contents(t, "b.tex"); !strings.Contains(s, `\begin{tabular}`) || !strings.Contains(s, `\caption`+c.caption) ||
			!strings.Contains(s, c.legend) {
			t.Errorf("%s: %s", c.args, s)
		}
	}
}

// The axis along which a figure shows throughputs has names, not paths.
func TestFigureHasNames(t *testing.T) {
	workspace(t)
	named(t)
	answer(t, strings.Fields("compare-hardware net.onnx --hardware ./mine.yaml,ipu -o a.svg --quiet")...)
	if s := contents(t, "a.svg"); !strings.Contains(s, "my-npu") || strings.Contains(s, "mine.yaml") ||
		strings.Contains(s, "net.onnx") {
		t.Errorf("%s", s)
	}
}
