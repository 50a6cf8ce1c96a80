package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program: what it prints goes to the writers, what it comes to is the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = demonstrate(ctx, o, stdout)
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "pipeline: interrupted; all memory is given back")
		return exitInterrupted
	}
	_, _ = fmt.Fprintln(stderr, "pipeline:", strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// demonstrate trains with a display, and prints the figures. After an interrupt it prints those so far.
func demonstrate(ctx context.Context, o options, stdout io.Writer) error {
	t, err := open(ctx, o)
	if err != nil {
		return errors.Join(err, t.close())
	}
	info := t.device.Info()
	_, _ = fmt.Fprintf(stdout, "%s, driver %s\nlimit %s, footprint %v\n%d stages, %d micro-batches, %d steps, speed %g\n\n",
		info.Name, info.Driver, size(t.device.Stats().LimitBytes), o.config.Footprint, stageCount, microBatchCount, o.stepCount, o.speed)
	display := show(t, stdout)
	err = t.run(ctx)
	display.end()
	if err != nil && ctx.Err() == nil {
		return errors.Join(err, t.close())
	}
	report := t.report()
	if closeErr := t.close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	_, printErr := fmt.Fprintf(stdout, "\n%s", report)
	return errors.Join(err, printErr)
}
