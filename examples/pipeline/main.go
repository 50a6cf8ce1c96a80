package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-vram/vram/examples/internal/command"
)

func main() { os.Exit(command.Interruptible(run)) }

// run executes the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err == nil {
		err = demonstrate(ctx, o, stdout)
	}
	return command.Exit(ctx, "pipeline", err, stderr)
}

// demonstrate trains with a display, and prints the figures, also after an interrupt.
func demonstrate(ctx context.Context, o options, stdout io.Writer) error {
	t, err := open(ctx, o)
	if err != nil {
		return errors.Join(err, t.close())
	}
	info := t.device.Info()
	_, _ = fmt.Fprintf(stdout, "%s, driver %s\nlimit %s, footprint %v\n%d stages, %d micro-batches, %d steps, speed %g\n\n",
		info.Name, info.Driver, size(t.stats().LimitBytes), o.config.Footprint, stageCount, microBatchCount, o.stepCount, o.speed)
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
