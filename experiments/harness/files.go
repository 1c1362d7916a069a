package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
)

// writeError says that results can't be written.
type writeError struct{ err error }

func (e *writeError) Error() string { return fmt.Sprintf("results can't be written: %v", e.err) }
func (e *writeError) Unwrap() error { return e.err }

var temporaries atomic.Int64

// temporaryName is a name in the same directory that no other call and no other process uses, be it on another machine.
func temporaryName(path string) string {
	dir, base := filepath.Split(path)
	return filepath.Join(dir, fmt.Sprintf(".%s.%x-%d.tmp", base, process, temporaries.Add(1)))
}

// process is a number of this process alone.
var process = rand.Uint64()

var temporaryForm = regexp.MustCompile(`^\..+\.[0-9a-f]+-[0-9]+\.tmp$`)

// WriteFile writes a file as a whole or not at all. When it returns, the file is on the
// disk, and so is its name. A file that was there gives its permissions.
func WriteFile(path string, data []byte) error {
	err := writeFile(path, data)
	if errors.Is(err, fs.ErrNotExist) { // tidied up by another process while it was not locked
		err = writeFile(path, data)
	}
	if err != nil {
		return &writeError{naming(path, err)}
	}
	return nil
}

// CanWrite finds, before there is anything to write, what would keep [WriteFile] from writing a file.
func CanWrite(path string) error {
	tmp := temporaryName(path)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return naming(path, err)
	}
	return errors.Join(f.Close(), os.Remove(tmp))
}

func writeFile(path string, data []byte) error {
	tmp := temporaryName(path)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	tryLock(f) // without locks, what a killed process has left stays
	_, err = f.Write(data)
	if info, no := os.Stat(path); err == nil && no == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// naming puts the file that was asked for into an error about the one that was to take its place.
func naming(path string, err error) error {
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &file):
		err = file.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}

// MakeFolder makes a folder for results, with those that it lies in, on the disk, and
// removes what killed processes have left there half written.
func MakeFolder(dir string) error {
	if err := makeFolder(dir); err != nil {
		return &writeError{err}
	}
	TidyUp(dir)
	return nil
}

func makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	outer := filepath.Dir(dir)
	if outer != dir {
		if err := makeFolder(outer); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil { // another process may have made it meanwhile
		return err
	}
	return syncFolder(outer)
}

// TidyUp removes the files that calls of [WriteFile] have left half written in a folder
// when their process was killed. Those that are still being written are locked.
func TidyUp(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // reported by who reads or writes there
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !temporaryForm.MatchString(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			if tryLock(f) {
				os.Remove(path)
			}
			f.Close()
		}
	}
}
