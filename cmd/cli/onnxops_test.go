package cli

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/onnx.md anew")

// The document has the table that the command prints. After a change:
// go test ./cmd/cli -run OperatorsDocument -update
func TestOperatorsDocument(t *testing.T) {
	const file, begin, end = "../../docs/onnx.md", "<!-- begin: dsasched onnx-ops --markdown -->\n", "<!-- end -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	}
	r := call(t, "onnx-ops", "--markdown")
	if r.status != exitOK || strings.Count(r.stdout, "\n") < 100 {
		t.Fatalf("status %d, stdout %q, stderr %q", r.status, r.stdout, r.stderr)
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+r.stdout+end+tail), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != r.stdout {
		t.Errorf("the table in %s is not what the command prints; -update mends it", file)
	}
}
