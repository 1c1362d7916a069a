package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "five")
	if err := os.WriteFile(path, []byte("12345"), 0o666); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{3: "1234", 4: "12345", 5: "12345"} {
		if data, err := ReadUpTo(path, limit); string(data) != want || err != nil {
			t.Errorf("up to %d: %q, %v, want %q", limit, data, err, want)
		}
	}
	if _, err := ReadAtMost(path, 4); err == nil || err.Error() != path+": file: found more, expected at most 4 bytes" {
		t.Errorf("of more: %v", err)
	}
	if data, err := Read(path); string(data) != "12345" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := Read(dir); !errors.Is(err, Err) || err.Error() != dir+": no regular file but a folder" {
		t.Errorf("of a folder: %v", err)
	}
	if _, err := Read(path + "x"); !errors.Is(err, fs.ErrNotExist) || err.Error() != path+"x: no such file or directory" {
		t.Errorf("of no file: %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := OpenIn(root, "five")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "out")); err != nil {
		t.Skip(err)
	}
	if _, err := OpenIn(root, "out"); err == nil {
		t.Error("a link out of the root is followed")
	}
}
