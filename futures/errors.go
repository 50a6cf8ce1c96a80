package futures

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

var (
	// ErrCanceled is the answer of a future whose Cancel came first. It is a context.Canceled for
	// errors.Is.
	ErrCanceled = fmt.Errorf("futures: request canceled: %w", context.Canceled)

	// ErrNoFutures is the answer of First without futures: there is nothing that could succeed.
	ErrNoFutures = errors.New("futures: first of no futures")

	// ErrNilContext refuses a nil context. Nothing has been done; a pending request stays.
	ErrNilContext = errors.New("futures: nil context")

	// ErrNoPromise is the answer of a wait on a nil Promise: no producer will complete it.
	ErrNoPromise = errors.New("futures: the promise is nil")

	errExit = errors.New("the callback ended its goroutine")
)

// PanicError is the answer of a future whose function panicked or ended its goroutine.
type PanicError struct {
	Value any    // The argument of panic.
	Stack []byte // The stack at that place, as debug.Stack prints it.
}

// Error names the value, not the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("futures: callback panicked: %v", e.Value) }

// Unwrap gives the value when it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// newPanicError is called by a deferred function that was not reached by a return. A nil value
// means runtime.Goexit.
func newPanicError(value any) *PanicError {
	if value == nil {
		value = errExit
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}
