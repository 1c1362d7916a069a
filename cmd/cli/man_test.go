package cli

import (
	"os"
	"strings"
	"testing"
)

// The document is what the command prints. After a change:
// go test ./cmd/cli -run CommandsDocument -update
func TestCommandsDocument(t *testing.T) {
	const file = "../../docs/commands.md"
	want := answer(t, "man")
	for _, c := range allCommands() {
		if !strings.Contains(want, "\n## "+c.CommandPath()+"\n") {
			t.Errorf("the document does not have %s", c.CommandPath())
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the command prints; -update mends it", file)
	}
}
