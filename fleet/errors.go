package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/ledger"
)

// The errors of this package, to be tested with errors.Is.
var (
	// ErrClosed reports a call after Member.Close or the ledger's Close.
	ErrClosed = ledger.ErrClosed
	// ErrNotOpen refuses a call on a nil or zero Member, Grant or ledger.
	ErrNotOpen = vram.ErrNotOpen
	// ErrNilContext refuses a nil context.
	ErrNilContext = vram.ErrNilContext
	// ErrLost reports that a grant has ended without Release: a device or its owner is gone, the lease has ended, or the ledger is closed.
	ErrLost = errors.New("fleet: the grant is lost")
	// ErrFenced refuses a ticket that has no living grant on the device, or is older than the device's grant for it.
	ErrFenced = errors.New("fleet: the ticket has no living grant here")
	// ErrNoDevice reports that no device of the fleet could ever serve the bytes.
	ErrNoDevice = errors.New("fleet: no device is large enough")
)

// check returns the error of a call with a nil context or ledger.
func check(ctx context.Context, l Ledger, call string) error {
	if ctx == nil {
		return ErrNilContext
	}
	if l == nil {
		return &ArgumentError{call, errors.New("the ledger is nil")}
	}
	return nil
}

// ArgumentError refuses an argument.
type ArgumentError struct {
	Call string
	Err  error
}

// Error names the call and the argument.
func (e *ArgumentError) Error() string { return "fleet: " + e.Call + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *ArgumentError) Unwrap() error { return e.Err }

// WaitError reports that a context ended while a gang waited, and for whom it waited. Nothing is held.
type WaitError struct {
	Verdict core.Verdict // the last one
	Ledger  error        // the last failure of the ledger; nil: it could be reached
	Err     error        // the context's
}

// Error says why the gang waited.
func (e *WaitError) Error() string {
	text := "fleet: " + e.Err.Error()
	switch v := e.Verdict; {
	case e.Ledger != nil:
		text += fmt.Sprintf(": the ledger: %v", e.Ledger)
	case v.Reason == core.NoDevices:
		text += ": no devices of the fleet could serve it, even if all their memory were free"
	case v.Reason == core.Turn:
		text += ": it waited for " + strings.Join(v.Before, ", ") + ", which are served first"
	case v.Reason == core.Memory:
		text += ": it waited for the memory of " + strings.Join(v.Holders, ", ")
	}
	return text
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.Err }
