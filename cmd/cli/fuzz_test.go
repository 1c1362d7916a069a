package cli

import (
	"strings"
	"testing"
)

// The files of shards, which a command reads itself.
func FuzzFiles(f *testing.F) {
	f.Add([]byte(`{"schema": 1, "command": ["sweep", "toy-fig5"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := decodeShards("f.json", data); err == nil && len(s.Command) == 0 ||
			err != nil && !strings.HasPrefix(err.Error(), "f.json: ") {
			t.Errorf("shards %v, error %v", s, err)
		}
	})
}
