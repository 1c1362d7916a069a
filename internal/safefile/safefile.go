// Package safefile opens the files that users name: regular ones only. To open a named pipe
// waits for whoever writes to it, and a device may do anything. Errors begin with the name.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxBytes is the most that [Read] takes: what is larger is no text of the toolkit's.
const maxBytes = 256 << 20

// Err says of anything but a regular file that it is none.
var Err = errors.New("no regular file")

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return open(path, os.Stat, os.OpenFile) }

// OpenIn opens a file in root or below: links and ".." lead nowhere else.
func OpenIn(root *os.Root, path string) (*os.File, error) {
	return open(path, root.Stat, root.OpenFile)
}

func open(path string, stat func(string) (fs.FileInfo, error),
	openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, error) {
	var f *os.File
	info, err := stat(path) // first: to open a device may do something already
	if err == nil {
		err = check(info)
	}
	if err == nil {
		// However names change meanwhile, a pipe does not block, and what is looked at is what was opened.
		f, err = openFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err == nil {
		if info, err = f.Stat(); err == nil {
			err = check(info)
		}
		if err == nil {
			return f, nil
		}
		f.Close()
	}
	return nil, named(path, err)
}

func check(info fs.FileInfo) error {
	what := "something else"
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		what = "a folder"
	case m&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	case m&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("%w but %s", Err, what)
}

// named puts the name first, as messages about the content do.
func named(path string, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		err = file.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Load gives what read makes of the bytes of a file.
func Load[T any](path string, read func(path string, data []byte) (T, error)) (none T, _ error) {
	data, err := Read(path)
	if err != nil {
		return none, err
	}
	return read(path, data)
}

// Read gives the bytes of a file, at most maxBytes.
func Read(path string) ([]byte, error) { return ReadAtMost(path, maxBytes) }

// ReadAtMost gives the bytes of a file, and an error if it has more than limit.
func ReadAtMost(path string, limit int64) ([]byte, error) {
	data, err := ReadUpTo(path, limit)
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: file: found more, expected at most %d bytes", path, limit)
	}
	return data, err
}

// ReadUpTo gives the bytes of a file, and no more than one more than limit.
func ReadUpTo(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, named(path, err)
	}
	return data, nil
}
