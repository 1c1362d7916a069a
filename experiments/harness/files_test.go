package harness

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a killed process has left half written goes, what is being written stays.
func TestTidyUp(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	if !tryLock(open(".cell.json.9e3-2.tmp")) {
		t.Skip("skipped: files cannot be locked here")
	}
	for _, name := range []string{".cell.json.9e3-1.tmp", ".notes.tmp", ".config", "a.9e3-1.tmp"} {
		open(name)
	}
	TidyUp(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".cell.json.9e3-2.tmp", ".config", ".notes.tmp", "a.9e3-1.tmp"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

func TestWriteFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "x.json")
	var bad *fs.PathError
	if err := WriteFile(path, nil); !errors.As(err, &bad) || bad.Path != path ||
		!strings.HasPrefix(err.Error(), "results can't be written: ") {
		t.Errorf("without its folder: %v", err)
	}
	if err := MakeFolder(dir); err != nil {
		t.Fatal(err)
	}
	for i, mode := range []fs.FileMode{0o640, 0o600} {
		if err := WriteFile(path, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
				t.Errorf("written again, it has %v, %v", info.Mode(), err)
			}
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := MakeFolder(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file as folder: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// A text either has the result that its hash is of, or gives an error.
func FuzzCell(f *testing.F) {
	for _, sum := range []string{"", hash([]byte(`{"a":1}`))} {
		f.Add([]byte(`{"schema": 1, "fingerprint": "f", "inputs": {}, "result_sha256": "` + sum + `", "result": {"a": 1}}`))
	}
	f.Add(
		[]byte(`{"schema": 1, "version": "v1.0.0", "modules": [], "hardware": [{"name": "a", "sha256": "0"}], "seeds": [7]}`))
	f.Add([]byte("cell,wall_time_s\na,1.5\n\"b,\",NaN\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if result, err := decodeCell("f.json", data, "f"); err == nil && !json.Valid(result) || err != nil && result != nil {
			t.Errorf("result %q, error %v", result, err)
		}
		decodeTiming(data)
		if o, err := ReadOrigin("origin.json", data); err == nil && o.Schema > originSchema ||
			err != nil && !strings.HasPrefix(err.Error(), "origin.json: ") {
			t.Errorf("origin %v, error %v", o, err)
		}
	})
}
