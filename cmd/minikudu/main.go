// Command minikudu keeps tables with a primary key in a directory: it creates and
// imports them, scans, aggregates and looks rows up, and checks and dumps files.
// Run it without arguments to see its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/minikudu/minikudu/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	app := &cli.App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Tune: tune}
	os.Exit(app.Run(ctx, os.Args[1:]))
}

// besideBudget is the memory of the process that the budget does not count: the
// runtime, batches on their way, files being read and written.
const besideBudget = 64 << 20

// tune makes the garbage collector keep the process near the memory budget. It is a
// soft limit: rather than fail, the collector runs more often.
func tune(budget int64) { debug.SetMemoryLimit(budget + budget/4 + besideBudget) }
