// Command dsasched schedules neural networks for accelerators and says how
// fast they would run. `dsasched --help` lists what it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(report(os.Stderr, run(ctx, os.Stdout, os.Stderr, os.Args[1:])))
}
