//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package harness

import (
	"cmp"
	"errors"
	"os"
	"syscall"
	"time"
)

// tryLock locks a file until it is closed or its process ends, unless another has.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// syncFolder writes the names in a folder to the disk, where the file system can.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// ProcessorTime returns the processor time of this process, user and system.
func ProcessorTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

// ThreadTime returns the processor time of this thread, where the system (Linux) counts it, else that of the process.
func ThreadTime() time.Duration { return cmp.Or(usage(1), ProcessorTime()) } // 1: RUSAGE_THREAD

func usage(of int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(of, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
