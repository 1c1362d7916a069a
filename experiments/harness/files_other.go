//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package harness

import (
	"os"
	"time"
)

func tryLock(*os.File) bool { return false }

func syncFolder(string) error { return nil }

func ProcessorTime() time.Duration { return 0 } // not known

func ThreadTime() time.Duration { return time.Duration(time.Now().UnixNano()) } // not the thread's alone
