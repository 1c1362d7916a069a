// Package cli is the command dsasched, for a caller's own variants, too.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"syscall"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Main runs the command that the process's arguments name and exits with its status. Variants of the caller's own and
// their strategies stand beside the built-in ones; see [recipes.Add].
func Main(own ...scheduler.Recipe) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	collectLess(256 << 20)
	err := recipes.Add(own...)
	if err == nil {
		err = run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	}
	os.Exit(report(os.Stderr, err))
}

// heapFloor is the size below which the heap is not collected, in bytes.
var heapFloor atomic.Int64

// collectLess lets a run use memory instead of time: what recipes try comes and goes, and collecting it takes a sixth
// of the time. The heap grows to a size, or to twice what lives where that is more. GOGC and GOMEMLIMIT are respected.
func collectLess(floor int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(3 << 30) // for networks of a million operators
	}
	if heapFloor.Store(floor); os.Getenv("GOGC") == "" {
		(&collected{}).again()
	}
}

// collected is garbage that each collection finds.
type collected struct{ _ [32]byte }

func (c *collected) again() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	bytes := max(4<<20, int64(live[0].Value.Uint64())) // Go takes 4 MiB for the first
	debug.SetGCPercent(int(max(100, 100*(heapFloor.Load()-bytes)/bytes)))
	runtime.SetFinalizer(c, (*collected).again)
}
