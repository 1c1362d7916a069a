package harnesstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// LaTeX compiles tables on pages of article in two columns and fails if one is an error,
// wider than its column or page, or longer than a page. Without pdflatex it does nothing,
// unless the environment variable DSASCHED_LATEX is "required".
func LaTeX(t *testing.T, name string, tables []byte) {
	t.Helper()
	pdflatex, err := exec.LookPath("pdflatex")
	if err != nil {
		if os.Getenv("DSASCHED_LATEX") == "required" {
			t.Fatal(err)
		}
		t.Logf("%s is not compiled: %v", name, err)
		return
	}
	if len(tables) == 0 {
		t.Errorf("%s holds no tables", name)
		return
	}
	dir := t.TempDir()
	body := strings.ReplaceAll(string(tables), `\end{table*}`, "\\end{table*}\n\\clearpage")
	source := "\\documentclass[twocolumn,a4paper]{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n" + body +
		"\\end{document}\n"
	if err := os.WriteFile(filepath.Join(dir, "x.tex"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(pdflatex, "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "x.tex")
	cmd.Dir = dir
	// Its log breaks lines at 79 letters unless told otherwise.
	cmd.Env = append(os.Environ(), "max_print_line=1000")
	log, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, log)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "Overfull") || strings.Contains(line, "Float too large") {
			t.Errorf("%s: %s", name, line)
		}
	}
}
