package trace

import (
	"errors"
	"fmt"
)

// ErrUnknown says that a name is neither a readable file nor an embedded trace.
var ErrUnknown = errors.New("no such file and no embedded trace of that name")

// ParseError names a fault of a trace and its line.
type ParseError struct {
	Name string // the file, as it was named to Open or Read
	Line int    // counted from 1; the header is line 1
	What string
	Err  error // the cause where there is one (reading, decompression); may be nil
}

// Error names the file, the line and the fault.
func (e *ParseError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s:%d: %s: %v", e.Name, e.Line, e.What, e.Err)
	}
	return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.What)
}

// Unwrap is the cause, or nil.
func (e *ParseError) Unwrap() error { return e.Err }
