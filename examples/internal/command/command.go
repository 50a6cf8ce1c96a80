// Package command has the common parts of the examples' programs: signals, exit codes, and the flags and variables that choose
// the device.
package command

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
	OK          = 0
	Failed      = 1
	Misused     = 2 // invalid flags or variables
	Interrupted = 130
)

// UsageError is a mistake on the command line or in the environment.
type UsageError struct{ Err error }

// Error returns the mistake.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *UsageError) Unwrap() error { return e.Err }

// Misuse returns a *UsageError.
func Misuse(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Interruptible runs a program whose context ends with an interrupt, and returns its exit code. A second interrupt ends the
// process.
func Interruptible(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// Exit prints a program's error to stderr after the program's name, on one line, and returns the exit code. Requested help is
// no error, and the end of ctx is an interrupt.
func Exit(ctx context.Context, name string, err error, stderr io.Writer) (code int) {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return OK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		_, _ = fmt.Fprintf(stderr, "%s: interrupted; all memory is given back\n", name)
		return Interrupted
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, ok := errors.AsType[*UsageError](err); ok {
		return Misused
	}
	return Failed
}
