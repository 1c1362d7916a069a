// Package cli is the command dsasched, for a caller's own variants, too.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Main runs the command that the process's arguments name and exits with its status. Variants of the caller's own and
// their strategies stand beside the built-in ones; see [recipes.Add].
func Main(own ...scheduler.Recipe) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := recipes.Add(own...)
	if err == nil {
		err = run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	}
	os.Exit(report(os.Stderr, err))
}
