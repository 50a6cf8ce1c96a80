package actors

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/go-vram/vram/internal/recovered"
)

var (
	// ErrStopped is the answer of messages to an actor that was stopped without a cause.
	ErrStopped = errors.New("actors: stopped")

	errExit       = errors.New("the turn ended its goroutine")
	errNoBehavior = errors.New("actors: spawn without a behavior")
)

// PanicError is the answer of a message whose turn panicked.
type PanicError struct {
	Actor string // The name given to Spawn.
	Value any    // The argument of panic.
	Stack []byte // The stack at that place, as debug.Stack prints it.
}

// Error names the actor and the value, not the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("actors: %s panicked: %v", e.Actor, e.Value)
}

// Unwrap gives the value when it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func (e *PanicError) report() recovered.Panic {
	return recovered.Panic{Place: e.Actor, Value: e.Value, Stack: e.Stack}
}

// newPanicError is called by a deferred function that was not reached by a return. A nil value
// means runtime.Goexit.
func newPanicError(name string, recovered any) *PanicError {
	if recovered == nil {
		recovered = errExit
	}
	return &PanicError{Actor: name, Value: recovered, Stack: debug.Stack()}
}
